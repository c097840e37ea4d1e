//! Which files are read: paths, folders, globs and `-` become a list of [`Input`]s.
//!
//! A folder is read recursively in the order of its names, hidden entries are skipped, links are
//! followed unless they lead back to a folder on the way. What is named on the command line is
//! always read, hidden or not.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Outcome};
use crate::pattern::{self, Pattern};

/// Where the bytes of an [`Input`] come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A file (or a pipe with a name).
    File(PathBuf),
    /// Standard input.
    Stdin,
}

/// One file to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    /// Where its bytes come from.
    pub source: Source,
    /// What its documents are called.
    pub path: String,
    /// Size on disk, 0 where it is not known.
    pub len_bytes: u64,
}

impl Input {
    /// The name to use in messages.
    pub fn shown(&self) -> String {
        match &self.source {
            Source::File(path) => path.display().to_string(),
            Source::Stdin => "standard input".to_owned(),
        }
    }
}

/// What limits the files taken from folders.
#[derive(Debug, Default)]
pub struct Filter {
    /// Only files that match one of these; all files where there is none.
    pub patterns: Vec<Pattern>,
    /// A file or folder to leave out, by its real path: the output, when it exists already.
    pub skip: Option<PathBuf>,
}

impl Filter {
    fn takes(&self, file: &Path, relative: &str) -> bool {
        let wanted = self.patterns.is_empty() || self.patterns.iter().any(|p| p.matches(relative));
        wanted && !self.skips(file)
    }

    /// Whether `file` is the output, or inside it.
    fn skips(&self, file: &Path) -> bool {
        let is_skipped = |skip: &Path| fs::canonicalize(file).is_ok_and(|f| f.starts_with(skip));
        self.skip.as_deref().is_some_and(is_skipped)
    }
}

/// The inputs that `arguments` name, in order, each file once.
///
/// # Errors
/// An argument that names nothing or the output, a folder that cannot be read, or nothing to read at all.
pub fn collect(arguments: &[PathBuf], filter: &Filter) -> Outcome<Vec<Input>> {
    let mut inputs = Vec::new();
    let folders = folder_names(arguments);
    for argument in arguments {
        if argument.as_os_str() == "-" {
            let path = "stdin".to_owned();
            inputs.push(Input { source: Source::Stdin, path, len_bytes: 0 });
            continue;
        }
        match fs::metadata(argument) {
            Ok(metadata) if metadata.is_dir() => {
                let prefix = folders.prefix_of(argument);
                add_folder(argument, &prefix, filter, &mut inputs)?;
            }
            Ok(_) if filter.skips(argument) => {
                let shown = argument.display();
                return Err(Failure::new(format!(
                    "{shown} is to be read and written; choose another name for the output"
                )));
            }
            Ok(metadata) => inputs.push(file_input(argument, metadata.len())),
            Err(_) if pattern::is_glob(&argument.to_string_lossy()) => {
                add_glob(&argument.to_string_lossy(), filter, &mut inputs)?;
            }
            Err(error) => return Err(Failure::with_cause(argument.display(), &error)),
        }
    }
    let mut seen = HashSet::new();
    inputs.retain(|input| seen.insert((input.path.clone(), input.shown())));
    match inputs.is_empty() {
        true => Err(nothing_found(arguments, filter)),
        false => Ok(inputs),
    }
}

/// What stands in front of the documents of each folder.
struct FolderNames {
    several: bool,
    ambiguous: bool,
}

impl FolderNames {
    fn prefix_of(&self, folder: &Path) -> String {
        match (self.several, self.ambiguous) {
            (false, _) => String::new(),
            (true, false) => format!("{}/", name_of(folder)),
            (true, true) => format!("{}/", clean(folder)),
        }
    }
}

/// Decides whether folder names are needed, and whether the last component is enough.
fn folder_names(arguments: &[PathBuf]) -> FolderNames {
    let folders: HashSet<&PathBuf> = arguments.iter().filter(|path| path.is_dir()).collect();
    let names: HashSet<String> = folders.iter().map(|folder| name_of(folder)).collect();
    FolderNames { several: arguments.len() > 1, ambiguous: names.len() < folders.len() }
}

/// Last component of a folder; of its real path where it is written as `.` or `..`.
fn name_of(folder: &Path) -> String {
    let real = || fs::canonicalize(folder).ok();
    match folder.file_name() {
        Some(name) => name.to_string_lossy().into_owned(),
        None => real()
            .and_then(|path| path.file_name().map(|name| name.to_string_lossy().into_owned()))
            .unwrap_or_else(|| clean(folder)),
    }
}

/// A path as text, without `./` in front and `/` at the end.
fn clean(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut text = text.as_ref();
    while let Some(rest) = text.strip_prefix("./") {
        text = rest.trim_start_matches('/');
    }
    match text.trim_end_matches('/') {
        "" => "/".to_owned(),
        text => text.to_owned(),
    }
}

fn file_input(path: &Path, len_bytes: u64) -> Input {
    Input { source: Source::File(path.to_owned()), path: clean(path), len_bytes }
}

fn add_folder(folder: &Path, prefix: &str, filter: &Filter, inputs: &mut Vec<Input>) -> Outcome {
    walk(folder, false, &mut |file, relative, len_bytes| {
        if filter.takes(file, relative) {
            let path = format!("{prefix}{relative}");
            inputs.push(Input { source: Source::File(file.to_owned()), path, len_bytes });
        }
    })
}

/// Adds the files that match `glob`; the folder before its first special component is walked.
fn add_glob(glob: &str, filter: &Filter, inputs: &mut Vec<Input>) -> Outcome {
    let pattern = Pattern::new(glob).map_err(Failure::usage)?;
    let base: Vec<&str> = glob.split('/').take_while(|part| !pattern::is_glob(part)).collect();
    let (base, folder) = match base.join("/") {
        base if base.is_empty() && !glob.starts_with('/') => (String::new(), PathBuf::from(".")),
        base => (format!("{base}/"), PathBuf::from(format!("{base}/"))),
    };
    let hidden = glob.split('/').any(|part| part.starts_with('.') && !matches!(part, "." | ".."));
    let before = inputs.len();
    if folder.is_dir() {
        walk(&folder, hidden, &mut |_, relative, len_bytes| {
            let path = format!("{base}{relative}");
            let file = Path::new(&path);
            if pattern.matches_path(&path) && filter.takes(file, relative) {
                inputs.push(file_input(file, len_bytes));
            }
        })?;
    }
    match inputs.len() > before {
        true => Ok(()),
        false => Err(Failure::new(format!(
            "{glob}: no file matches this glob (`*` stays inside one folder, `**` does not; hidden \
             files are skipped)"
        ))),
    }
}

/// Calls `found(file, path relative to folder, size)` for each file below `folder`.
pub fn walk(folder: &Path, hidden: bool, found: &mut dyn FnMut(&Path, &str, u64)) -> Outcome {
    let mut above = Vec::new();
    walk_folder(folder, "", hidden, &mut above, found)
}

fn walk_folder(
    folder: &Path,
    relative: &str,
    hidden: bool,
    above: &mut Vec<PathBuf>,
    found: &mut dyn FnMut(&Path, &str, u64),
) -> Outcome {
    let failed = |error| Failure::with_cause(format!("{}: cannot read", folder.display()), &error);
    let real = fs::canonicalize(folder).map_err(failed)?;
    if above.contains(&real) {
        return Ok(()); // a link to a folder on the way here
    }
    above.push(real);
    let mut entries =
        fs::read_dir(folder).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') && !hidden {
            continue;
        }
        let path = entry.path();
        // A link to nothing, or a file that has just been removed, holds no text.
        let Ok(metadata) = fs::metadata(&path) else { continue };
        let relative = format!("{relative}{name}");
        if metadata.is_dir() {
            walk_folder(&path, &format!("{relative}/"), hidden, above, found)?;
        } else if metadata.is_file() {
            found(&path, &relative, metadata.len());
        }
    }
    above.pop();
    Ok(())
}

fn nothing_found(arguments: &[PathBuf], filter: &Filter) -> Failure {
    let folders: Vec<String> = arguments.iter().map(|path| path.display().to_string()).collect();
    let folders = folders.join(", ");
    let patterns: Vec<&str> = filter.patterns.iter().map(Pattern::as_str).collect();
    match patterns.is_empty() {
        true => Failure::new(format!("{folders}: no file inside (hidden files are skipped)")),
        false => {
            let patterns = patterns.join(", ");
            Failure::new(format!("{folders}: no file matches --glob {patterns}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(folder: &Path, arguments: &[&str], patterns: &[&str]) -> Vec<String> {
        let arguments: Vec<PathBuf> = arguments.iter().map(|a| folder.join(a)).collect();
        let patterns = patterns.iter().map(|p| Pattern::new(p).unwrap()).collect();
        let inputs = collect(&arguments, &Filter { patterns, skip: None }).unwrap();
        inputs.into_iter().map(|input| input.path).collect()
    }

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for path in ["one/b.txt", "one/a.md", "one/sub/c.txt", "one/.git/x", "two/b.txt"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        dir
    }

    #[test]
    fn one_folder_gives_relative_paths_in_order() {
        let dir = tree();
        assert_eq!(paths(dir.path(), &["one"], &[]), ["a.md", "b.txt", "sub/c.txt"]);
        assert_eq!(paths(dir.path(), &["one"], &["*.txt"]), ["b.txt", "sub/c.txt"]);
        assert_eq!(paths(dir.path(), &["one"], &["sub/*"]), ["sub/c.txt"]);
    }

    #[test]
    fn several_folders_stand_in_front() {
        let dir = tree();
        let found = paths(dir.path(), &["one", "two"], &["*.txt"]);
        assert_eq!(found, ["one/b.txt", "one/sub/c.txt", "two/b.txt"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_folder_above_ends_the_walk() {
        let dir = tree();
        std::os::unix::fs::symlink(dir.path().join("one"), dir.path().join("one/sub/up")).unwrap();
        assert_eq!(paths(dir.path(), &["one"], &[]), ["a.md", "b.txt", "sub/c.txt"]);
    }

    #[test]
    fn paths_are_cleaned() {
        assert_eq!(clean(Path::new("./a/b.txt")), "a/b.txt");
        assert_eq!(clean(Path::new("a/")), "a");
        assert_eq!(clean(Path::new("../x")), "../x");
    }
}
