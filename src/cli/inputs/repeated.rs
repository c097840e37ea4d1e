//! Files that a command line names more than once, and different files of one path.
//!
//! A file is known by its real place on the disk: that of the folder of its argument, and the names below
//! it. So `a.txt ./a.txt`, `docs/ docs/a.txt` and a link beside its target are one file each. A link inside
//! of a folder, which only `--follow-links` reads, is a name of its own.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use super::{Found, Source};
use crate::display;
use crate::failure::{Failure, Outcome};
use crate::pattern;

/// Keeps each file once, under the first of its names. `ends` has the number of inputs behind each of
/// `arguments`.
///
/// # Errors
/// Two files have the same path.
pub fn keep_once(found: &mut Found, arguments: &[PathBuf], ends: &[usize]) -> Outcome {
    let mut places = Vec::with_capacity(found.inputs.len());
    for (argument, &end) in arguments.iter().zip(ends) {
        let folder = Folder::from_argument(argument);
        let inputs = &found.inputs[places.len()..end];
        places.extend(inputs.iter().map(|input| folder.place(&input.source)));
    }
    let mut seen = HashSet::new();
    let mut name_of_path: HashMap<String, String> = HashMap::new();
    let mut clash = None;
    let mut places = places.into_iter();
    let skipped = &mut found.skipped;
    found.inputs.retain(|input| {
        let place = places.next().unwrap_or_default();
        if !seen.insert(place) {
            skipped.repeated += 1;
            skipped.first_repeated.get_or_insert_with(|| input.shown());
            return false;
        }
        if let Some(other) = name_of_path.insert(input.path.clone(), input.shown()) {
            clash.get_or_insert((input.path.clone(), other, input.shown()));
        }
        true
    });
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
                let base: Vec<&str> =
                    glob.split('/').take_while(|part| !pattern::is_glob(part)).collect();
                PathBuf::from(base.join("/"))
            }
            _ => argument.to_owned(),
        };
        let folder = if written.as_os_str().is_empty() { Path::new(".") } else { &written };
        let real = fs::canonicalize(folder).ok().filter(|folder| folder.is_dir());
        Self { written, real }
    }

    /// Returns a path that is unique to the bytes of `source`.
    fn place(&self, source: &Source) -> PathBuf {
        match (source, &self.real) {
            (Source::File(path), Some(real)) => {
                let below = path.strip_prefix(&self.written).unwrap_or(path);
                real.join(below)
            }
            (Source::File(path), None) => fs::canonicalize(path).unwrap_or_else(|_| path.clone()),
            (Source::Stored(stored), _) => stored.file.name().into(),
            (Source::Stdin | Source::Text { .. }, _) => "-".into(),
            (Source::Member(shown), _) => shown.into(),
        }
    }
}
