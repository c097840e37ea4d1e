//! Files that a command line names more than once, and different files of one path.
//!
//! A file is known by its real place on the disk: that of the folder of its argument, and the names below
//! it. So `a.txt ./a.txt`, `docs/ docs/a.txt` and a link beside its target are one file each. A link inside
//! of a folder, which only `--follow-links` reads, is a name of its own.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use tadoc_documents::{Input, Source, display, pattern};
use tadoc_session::{Failure, Outcome};

use super::{Found, text_of};

/// Returns the real paths or URLs of `inputs`, empty for pipes. `ends` has the number of inputs behind each of
/// `arguments`.
pub fn files(inputs: &[Input], arguments: &[PathBuf], ends: &[usize]) -> Vec<String> {
    let mut files = Vec::with_capacity(inputs.len());
    for (argument, &end) in arguments.iter().zip(ends) {
        let folder = Folder::from_argument(argument);
        let inputs = &inputs[files.len()..end];
        files.extend(inputs.iter().map(|input| folder.file(&input.source)));
    }
    files
}

/// Keeps each file once, under the first of its names.
///
/// # Errors
/// Two files have the same path.
pub fn keep_once(found: &mut Found) -> Outcome {
    let mut seen = HashSet::new();
    let mut name_of_path: HashMap<String, String> = HashMap::new();
    let mut clash = None;
    let inputs = std::mem::take(&mut found.inputs);
    let files = std::mem::take(&mut found.files);
    for (input, file) in inputs.into_iter().zip(files) {
        let key = match &input.source {
            Source::File(path) if file.is_empty() => text_of(&fs::canonicalize(path).unwrap_or_else(|_| path.clone())),
            _ if file.is_empty() => input.shown(),
            _ => file.clone(),
        };
        if !seen.insert(key) {
            found.skipped.repeated += 1;
            found.skipped.first_repeated.get_or_insert_with(|| input.shown());
            continue;
        }
        if let Some(other) = name_of_path.insert(input.path.clone(), input.shown()) {
            clash.get_or_insert((input.path.clone(), other, input.shown()));
        }
        found.inputs.push(input);
        found.files.push(file);
    }
    let Some((path, one, other)) = clash else { return Ok(()) };
    Err(Failure::new(format!(
        "{one} and {other} would both be the document {}; name the folder above both, ingest one of them alone \
         with --path NAME, or pass --duplicate",
        display::plain(&path)
    )))
}

/// The folder that an argument names or lies in.
struct Folder {
    /// Its path as the inputs have it.
    written: PathBuf,
    /// Its real path. `None` if the argument is a file.
    real: Option<PathBuf>,
}

impl Folder {
    fn from_argument(argument: &Path) -> Self {
        let written = match argument.to_str() {
            Some(glob) if !argument.exists() => {
                let base: Vec<&str> = glob.split('/').take_while(|part| !pattern::is_glob(part)).collect();
                PathBuf::from(base.join("/"))
            }
            _ => argument.to_owned(),
        };
        let folder = if written.as_os_str().is_empty() { Path::new(".") } else { &written };
        let real = fs::canonicalize(folder).ok().filter(|folder| folder.is_dir());
        Self { written, real }
    }

    /// Returns the real path or URL of `source`, or an empty text for a pipe.
    fn file(&self, source: &Source) -> String {
        let real = match (source, &self.real) {
            (Source::File(path), Some(real)) => real.join(path.strip_prefix(&self.written).unwrap_or(path)),
            (Source::File(path), None) if path.is_file() => fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            (Source::Stored(stored), _) => return stored.name().to_owned(),
            (Source::File(_) | Source::Stdin | Source::Text { .. } | Source::Member(_), _) => {
                return String::new();
            }
        };
        text_of(&real)
    }
}
