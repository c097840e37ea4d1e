//! Turns paths, folders, globs, URLs and `-` into a list of [`Input`]s.
//!
//! A folder is read recursively, ordered by name. Hidden entries, symbolic links, pipes and devices inside it are
//! skipped. On demand, links are followed unless they lead back to a folder on the current path; links that lead
//! nowhere are noted. An entry that is named on the command line is always read, even if it is hidden, a link or a
//! pipe. Only a device is refused, because it may never end. Names are bytes. Names that are not UTF-8 are escaped one
//! to one in the paths of documents ([`path_text`]).

mod repeated;

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tadoc::format::path_text;
use tadoc_documents::pattern::{self, Folders, Pattern};
use tadoc_documents::{Input, Source, display};
use tadoc_session::location::{local_path, url_of};
use tadoc_session::{BlockingResolver, Failure, Outcome};

use self::repeated::{files, keep_once};

/// Path of documents of standard input.
pub const STDIN_PATH: &str = "stdin";
/// Most links that a note names.
const MAX_NAMED: usize = 5;

/// The conditions on files of folders.
#[derive(Debug, Default)]
pub struct Filter {
    /// Globs of which a file must match at least one. Without globs, all files are taken.
    pub patterns: Vec<Pattern>,
    /// Real path or URL of a file or folder to skip: the output, if it exists already.
    pub skip: Option<PathBuf>,
    /// If true, symbolic links inside folders are followed.
    pub follow_links: bool,
    /// If true, an empty list of inputs is not an error.
    pub may_be_empty: bool,
    /// If true, a file that is named several times is taken each time.
    pub may_be_repeated: bool,
    /// If true, the real paths of the inputs are found.
    pub wants_files: bool,
}

impl Filter {
    fn wanted(&self, hidden: bool) -> Wanted {
        Wanted { hidden, links: self.follow_links }
    }

    fn takes(&self, file: &Path, relative: &str) -> bool {
        let wanted = self.patterns.is_empty() || self.patterns.iter().any(|p| p.matches(relative));
        wanted && !self.skips(file)
    }

    /// Returns true if `file` is the output or lies inside it.
    fn skips(&self, file: &Path) -> bool {
        let is_skipped = |skip: &Path| match url_of(file) {
            Some(url) => Path::new(url).starts_with(skip),
            None => fs::canonicalize(file).is_ok_and(|f| f.starts_with(skip)),
        };
        self.skip.as_deref().is_some_and(is_skipped)
    }
}

/// The files that a command line names.
#[derive(Debug, Default)]
pub struct Found {
    /// Inputs in order, each file once.
    pub inputs: Vec<Input>,
    /// Real paths or URLs of the inputs, if they are wanted; empty for pipes.
    pub files: Vec<String>,
    /// Numbers of skipped entries of folders.
    pub skipped: Skipped,
}

/// Numbers of skipped entries of folders.
#[derive(Debug, Default)]
pub struct Skipped {
    /// Number of hidden files and folders. Only an error about a folder without files names it.
    hidden: u64,
    /// Number of symbolic links.
    links: u64,
    /// Number of pipes, sockets and devices.
    special: u64,
    /// Number of symbolic links that are followed and lead nowhere, and the first of them.
    dangling: u64,
    first_dangling: Vec<String>,
    /// Number of names of files that were named before, and the first of them.
    repeated: u64,
    first_repeated: Option<String>,
}

impl Skipped {
    /// Returns messages that say what was skipped and how to read it.
    pub fn notes(&self) -> Vec<String> {
        let links = display::plural(self.links, "symbolic link");
        let special = display::plural(self.special, "special file");
        let dangling = display::plural(self.dangling, "symbolic link");
        let names = self.first_dangling.join(", ");
        let more = if self.dangling > MAX_NAMED as u64 { " …" } else { "" };
        let repeated = display::plural(self.repeated, "name");
        let first_repeated = self.first_repeated.as_deref().unwrap_or_default();
        let notes = [
            (
                self.repeated,
                format!(
                    "{repeated} of files that were named before left out, first {first_repeated}; --duplicate \
                     stores them each time"
                ),
            ),
            (self.links, format!("{links} skipped; --follow-links reads what they point to")),
            (self.special, format!("{special} (pipe, socket, device) skipped; name one to read it")),
            (self.dangling, format!("{dangling} cannot be followed: {names}{more}")),
        ];
        notes.into_iter().filter(|(count, _)| *count > 0).map(|(_, note)| note).collect()
    }

    fn add(&mut self, other: Self) {
        self.hidden += other.hidden;
        self.links += other.links;
        self.special += other.special;
        self.dangling += other.dangling;
        self.first_dangling.extend(other.first_dangling);
        self.first_dangling.truncate(MAX_NAMED);
    }

    fn add_dangling(&mut self, link: &Path) {
        self.dangling += 1;
        if self.first_dangling.len() < MAX_NAMED {
            self.first_dangling.push(display::path(link));
        }
    }
}

/// Finds the inputs that `arguments` name.
///
/// # Errors
/// An argument names nothing, the output or a device; a folder cannot be read; two files have the same
/// path; or there is no input and `filter` does not allow that.
pub fn collect(arguments: &[PathBuf], filter: &Filter) -> Outcome<Found> {
    let mut found = Found::default();
    let folders = folder_names(arguments);
    let local: Vec<PathBuf> = arguments
        .iter()
        .map(|argument| Ok(local_path(argument)?.unwrap_or_else(|| argument.clone())))
        .collect::<Outcome<_>>()?;
    let mut ends = Vec::with_capacity(arguments.len());
    for argument in arguments {
        add_argument(argument, arguments.len() > 1, &folders, filter, &mut found)?;
        ends.push(found.inputs.len());
    }
    // The files of one argument differ.
    let is_once = arguments.len() > 1 && !filter.may_be_repeated;
    if is_once || filter.wants_files {
        found.files = files(&found.inputs, &local, &ends);
    }
    if is_once {
        keep_once(&mut found)?;
    }
    if found.inputs.is_empty() && !filter.may_be_empty {
        Err(nothing_found(arguments, filter, &found.skipped))
    } else {
        Ok(found)
    }
}

/// Adds the inputs that `argument` names, one of `several` or the only one.
fn add_argument(argument: &Path, several: bool, folders: &FolderNames, filter: &Filter, found: &mut Found) -> Outcome {
    if argument.as_os_str() == "-" {
        let input = Input::new(Source::Stdin, STDIN_PATH.to_owned(), 0);
        found.inputs.push(Input { members: String::new(), ..input });
        return Ok(());
    }
    let Some(argument) = &local_path(argument)? else {
        return add_url(argument, several, filter, &mut found.inputs);
    };
    match fs::metadata(argument) {
        Ok(metadata) if metadata.is_dir() => add_folder(argument, &folders.prefix_of(argument), filter, found),
        Ok(metadata) => {
            found.inputs.push(named_input(argument, &metadata, filter, several)?);
            Ok(())
        }
        Err(_) if pattern::is_glob(&text_of(argument)) => add_glob(argument, filter, found),
        Err(error) => Err(Failure::with_cause(display::path(argument), &error)),
    }
}

/// Returns `argument` itself as an input.
fn named_input(argument: &Path, metadata: &Metadata, filter: &Filter, several: bool) -> Outcome<Input> {
    let shown = display::path(argument);
    if filter.skips(argument) {
        return Err(Failure::new(format!("{shown} is to be read and written; choose another name for the output")));
    }
    if is_endless(argument, metadata) {
        return Err(Failure::new(format!(
            "{shown} is a device, which may never end; pass a part of it, such as \
             head -c 1000000 {shown} | tadoc ingest -"
        )));
    }
    let source = Source::File(argument.to_owned());
    let path = path_of(argument);
    let members = if several { format!("{path}/") } else { String::new() };
    let input = Input::new(source, path, metadata.len());
    Ok(Input { members, ..input })
}

/// Returns true if a file is a device other than a terminal. `/dev/null` counts as an empty file.
#[cfg(unix)]
fn is_endless(path: &Path, metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let file_type = metadata.file_type();
    let is_device = file_type.is_char_device() || file_type.is_block_device();
    let is_terminal = || File::open(path).is_ok_and(|file| file.is_terminal());
    let is_null = || fs::canonicalize(path).is_ok_and(|path| path == Path::new("/dev/null"));
    is_device && !is_null() && !is_terminal()
}

#[cfg(not(unix))]
fn is_endless(_path: &Path, _metadata: &Metadata) -> bool {
    false
}

/// The naming of documents from several folders: their paths may need the folder's name in front.
struct FolderNames {
    several: bool,
    ambiguous: bool,
}

impl FolderNames {
    fn prefix_of(&self, folder: &Path) -> String {
        match (self.several, self.ambiguous) {
            (false, _) => String::new(),
            (true, false) => format!("{}/", name_of(folder)),
            (true, true) => format!("{}/", clean(&text_of(folder))),
        }
    }
}

/// Decides whether paths need folder names, and whether the last component of each is unique.
fn folder_names(arguments: &[PathBuf]) -> FolderNames {
    let folders: HashSet<&PathBuf> = arguments.iter().filter(|path| path.is_dir()).collect();
    let names: HashSet<String> = folders.iter().map(|folder| name_of(folder)).collect();
    FolderNames { several: arguments.len() > 1, ambiguous: names.len() < folders.len() }
}

/// Returns the last component of a folder. For `.` and `..`, it is taken from the real path.
fn name_of(folder: &Path) -> String {
    let name_in = |path: &Path| path.file_name().map(|name| text_of(Path::new(name)));
    name_in(folder).or_else(|| name_in(&fs::canonicalize(folder).ok()?)).unwrap_or_else(|| clean(&text_of(folder)))
}

/// Returns the path of documents of a file that is named on the command line.
pub fn path_of(path: &Path) -> String {
    clean(&text_of(path))
}

/// Returns a path as text, see [`path_text`].
fn text_of(path: &Path) -> String {
    path_text(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Removes `./` at the start and `/` at the end of a path.
fn clean(path: &str) -> String {
    let mut text = path;
    while let Some(rest) = text.strip_prefix("./") {
        text = rest.trim_start_matches('/');
    }
    match text.trim_end_matches('/') {
        "" => "/".to_owned(),
        text => text.to_owned(),
    }
}

fn add_folder(folder: &Path, prefix: &str, filter: &Filter, found: &mut Found) -> Outcome {
    let skipped = walk(folder, filter.wanted(false), None, &mut |file, relative, metadata| {
        if filter.takes(file, relative) {
            let source = Source::File(file.to_owned());
            found.inputs.push(Input::new(source, format!("{prefix}{relative}"), metadata.len()));
        }
    })?;
    found.skipped.add(skipped);
    Ok(())
}

/// Adds the files of a store at `url`.
///
/// A single file and the files that match a glob keep their full names. The path of a file below a
/// prefix is its name after the prefix. If there are `several` arguments, the last component of the
/// prefix stands in front.
fn add_url(url: &Path, several: bool, filter: &Filter, inputs: &mut Vec<Input>) -> Outcome {
    let files = BlockingResolver::new()?.files(url)?;
    let folder = format!("{}/", url.to_string_lossy().trim_end_matches('/'));
    let prefix = match folder.trim_end_matches('/').rsplit_once('/') {
        Some((_, last)) if several => format!("{last}/"),
        _ => String::new(),
    };
    for stored in files {
        let name = stored.file.name();
        let path = match name.strip_prefix(&folder) {
            Some(relative) if !filter.takes(Path::new(name), relative) => continue,
            Some(relative) => format!("{prefix}{relative}"),
            None if filter.skips(Path::new(name)) => continue,
            None => name.to_owned(),
        };
        let len_bytes = stored.file.len_bytes();
        let is_alone = !several && path == url.to_string_lossy();
        let mut input = Input::new(Source::Stored(Arc::new(stored)), path, len_bytes);
        if is_alone {
            input.members.clear();
        }
        inputs.push(input);
    }
    Ok(())
}

/// Adds the files that match `glob`. It walks the folder before the first component with a
/// wildcard.
fn add_glob(glob: &Path, filter: &Filter, found: &mut Found) -> Outcome {
    let Some(glob) = glob.to_str() else {
        let shown = display::path(glob);
        return Err(Failure::usage(format!("{shown}: a glob is text; write * for bytes that are no UTF-8")));
    };
    let pattern = Pattern::new(glob).map_err(Failure::usage)?;
    let base: Vec<&str> = glob.split('/').take_while(|part| !pattern::is_glob(part)).collect();
    let (base, folder) = match base.join("/") {
        base if base.is_empty() && !glob.starts_with('/') => (String::new(), PathBuf::from(".")),
        base => (format!("{base}/"), PathBuf::from(format!("{base}/"))),
    };
    let hidden = glob.split('/').any(|part| part.starts_with('.') && !matches!(part, "." | ".."));
    let before = found.inputs.len();
    let mut skipped = Skipped::default();
    if folder.is_dir() {
        // Below the folder as it is written, whose names may have a backslash.
        let folders = Folders::from_glob(glob.strip_prefix(&base).unwrap_or(glob));
        let wanted = filter.wanted(hidden);
        skipped = walk(&folder, wanted, Some(&folders), &mut |file, relative, metadata| {
            let path = format!("{base}{relative}");
            if pattern.matches_path(&path) && filter.takes(file, relative) {
                let source = Source::File(file.strip_prefix(".").unwrap_or(file).to_owned());
                found.inputs.push(Input::new(source, clean(&path), metadata.len()));
            }
        })?;
    }
    let notes = and_notes(&skipped);
    found.skipped.add(skipped);
    if found.inputs.len() > before || filter.may_be_empty {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: no file matches this glob (`*` stays inside one folder, `**` does not; hidden files are \
         skipped){notes}",
        display::plain(glob)
    )))
}

/// The kinds of folder entries that [`walk`] visits.
#[derive(Debug, Default, Clone, Copy)]
pub struct Wanted {
    /// If true, names that begin with a dot are visited.
    pub hidden: bool,
    /// If true, symbolic links are followed.
    pub links: bool,
}

/// Calls `found(file, path relative to folder, metadata)` for each file below `folder`, by name. If
/// `folders` are given, other folders are left out.
///
/// # Errors
/// A folder cannot be read.
pub fn walk(
    folder: &Path,
    wanted: Wanted,
    folders: Option<&Folders>,
    found: &mut dyn FnMut(&Path, &str, &Metadata),
) -> Outcome<Skipped> {
    let mut walk = Walk { wanted, folders, above: Vec::new(), skipped: Skipped::default(), found };
    walk.folder(folder, "")?;
    Ok(walk.skipped)
}

struct Walk<'a> {
    wanted: Wanted,
    folders: Option<&'a Folders>,
    /// Real paths of the folders on the current path, kept only if links are followed.
    above: Vec<PathBuf>,
    skipped: Skipped,
    found: &'a mut dyn FnMut(&Path, &str, &Metadata),
}

impl Walk<'_> {
    fn folder(&mut self, folder: &Path, relative: &str) -> Outcome {
        let failed = |error| Failure::with_cause(format!("{}: cannot read", display::path(folder)), &error);
        if self.wanted.links {
            let real = fs::canonicalize(folder).map_err(failed)?;
            if self.above.contains(&real) {
                return Ok(()); // a link back to a folder on the current path
            }
            self.above.push(real);
        }
        let entries = fs::read_dir(folder).map_err(failed)?;
        let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            self.entry(&entry, relative)?;
        }
        self.above.pop();
        Ok(())
    }

    fn entry(&mut self, entry: &fs::DirEntry, relative: &str) -> Outcome {
        let name = text_of(Path::new(&entry.file_name()));
        if name.starts_with('.') && !self.wanted.hidden {
            self.skipped.hidden += 1;
            return Ok(());
        }
        let is_link = entry.file_type().is_ok_and(|file_type| file_type.is_symlink());
        if is_link && !self.wanted.links {
            self.skipped.links += 1;
            return Ok(());
        }
        let path = entry.path();
        let Ok(metadata) = fs::metadata(&path) else {
            // A file that was just removed holds no text.
            if is_link {
                self.skipped.add_dangling(&path);
            }
            return Ok(());
        };
        if metadata.is_dir() {
            let below = format!("{relative}{name}");
            return if self.folders.is_none_or(|folders| folders.enters(&below)) {
                self.folder(&path, &format!("{below}/"))
            } else {
                Ok(())
            };
        }
        if metadata.is_file() {
            (self.found)(&path, &format!("{relative}{name}"), &metadata)
        } else {
            self.skipped.special += 1
        }
        Ok(())
    }
}

fn nothing_found(arguments: &[PathBuf], filter: &Filter, skipped: &Skipped) -> Failure {
    let folders: Vec<String> = arguments.iter().map(|path| display::path(path)).collect();
    let folders = folders.join(", ");
    let patterns: Vec<&str> = filter.patterns.iter().map(Pattern::as_str).collect();
    let notes = and_notes(skipped);
    if patterns.is_empty() {
        let hidden = display::plural(skipped.hidden, "hidden name");
        let hidden = match skipped.hidden {
            0 => "none is hidden".to_owned(),
            _ => format!("{hidden} left out; name one to read it"),
        };
        Failure::new(format!(
            "{folders}: no file in it or below it ({hidden}){notes}; name a folder with \
                 files, or pass --allow-empty for a corpus without documents"
        ))
    } else {
        let patterns = patterns.join(", ");
        Failure::new(format!("{folders}: no file matches --glob {patterns}{notes}"))
    }
}

/// Formats the notes about skipped entries for the end of a message.
fn and_notes(skipped: &Skipped) -> String {
    skipped.notes().iter().map(|note| format!("; {note}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(folder: &Path, arguments: &[&str], patterns: &[&str]) -> Vec<String> {
        let patterns = patterns.iter().map(|p| Pattern::new(p).unwrap()).collect();
        paths_with(folder, arguments, &Filter { patterns, ..Filter::default() })
    }

    fn paths_with(folder: &Path, arguments: &[&str], filter: &Filter) -> Vec<String> {
        let arguments: Vec<PathBuf> = arguments.iter().map(|a| folder.join(a)).collect();
        let found = collect(&arguments, filter).unwrap();
        found.inputs.into_iter().map(|input| input.path).collect()
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
    fn a_file_that_is_named_twice_is_one_document() {
        let dir = tree();
        std::os::unix::fs::symlink(dir.path().join("one/a.md"), dir.path().join("link.md")).unwrap();
        std::os::unix::fs::symlink(dir.path().join("one"), dir.path().join("other")).unwrap();
        let file = dir.path().join("one/a.md").display().to_string();
        for (arguments, num_once) in [
            (vec!["one/a.md", "one/a.md"], 1),
            (vec!["one/a.md", "one/./a.md", "two/../one/a.md", "./one/a.md"], 1),
            (vec!["one/a.md", "link.md"], 1),
            (vec!["one", "one/a.md"], 3),
            (vec!["one/*.md", "one"], 3),
            (vec!["one", "other"], 3),
            (vec!["one/sub/*.txt", "one/sub", "one/sub/c.txt"], 1),
            (vec!["one", "two"], 4),
        ] {
            let paths: Vec<PathBuf> = arguments.iter().map(|a| dir.path().join(a)).collect();
            let found = collect(&paths, &Filter::default()).unwrap();
            assert_eq!(found.inputs.len(), num_once, "{arguments:?}");
            let repeats = Filter { may_be_repeated: true, ..Filter::default() };
            let all = collect(&paths, &repeats).unwrap().inputs.len();
            let notes = found.skipped.notes();
            assert_eq!(notes.is_empty(), all == num_once, "{arguments:?}: {notes:?}");
        }
        let twice = [PathBuf::from(&file), PathBuf::from(&file)];
        let found = collect(&twice, &Filter::default()).unwrap();
        assert_eq!(
            found.skipped.notes(),
            [format!(
                "1 name of files that were named before left out, first {file}; --duplicate stores them \
                      each time"
            )]
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_counted_or_followed_and_loops_end() {
        use std::os::unix::fs::symlink;
        let dir = tree();
        symlink(dir.path().join("one"), dir.path().join("one/sub/up")).unwrap();
        symlink("../two", dir.path().join("one/two")).unwrap();
        symlink("a.md", dir.path().join("one/z.md")).unwrap();
        assert_eq!(paths(dir.path(), &["one"], &[]), ["a.md", "b.txt", "sub/c.txt"]);
        let found = collect(&[dir.path().join("one")], &Filter::default()).unwrap();
        assert_eq!(found.skipped.links, 3);
        let follow = Filter { follow_links: true, ..Filter::default() };
        let followed = ["a.md", "b.txt", "sub/c.txt", "two/b.txt", "z.md"];
        assert_eq!(paths_with(dir.path(), &["one"], &follow), followed);
        for name in ["one/a", "one/self", "two/b", "two/c", "two/d"] {
            symlink("self", dir.path().join(name)).unwrap();
        }
        let found = collect(&[dir.path().join("one"), dir.path().join("two")], &follow).unwrap();
        let notes = found.skipped.notes();
        assert!(notes[0].starts_with("8 symbolic links cannot be followed: "), "{notes:?}");
        assert!(notes[0].ends_with("one/two/d …") && notes.len() == 1, "{notes:?}");
        // A link that is named on the command line is followed.
        assert_eq!(paths(dir.path(), &["one/two"], &[]), ["b.txt"]);
        assert_eq!(paths(&dir.path().join("one"), &["z.md"], &[]).len(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_no_utf8_stay_apart() {
        use std::ffi::OsStr;
        use std::os::unix::ffi::OsStrExt;
        let dir = tempfile::tempdir().unwrap();
        for name in [b"n\xff.txt".as_slice(), b"n\xfe.txt", br"n\xFF.txt", "n\u{fffd}.txt".as_bytes()] {
            fs::write(dir.path().join(OsStr::from_bytes(name)), "x").unwrap();
        }
        let expected = [r"n\x5CxFF.txt", "n\u{fffd}.txt", r"n\xFE.txt", r"n\xFF.txt"];
        assert_eq!(paths(dir.path(), &["."], &[]), expected);
        let glob = dir.path().join("*.txt");
        let found = collect(&[glob], &Filter::default()).unwrap();
        assert_eq!(found.inputs.len(), 4);
        let is_there = |input: &Input| matches!(&input.source, Source::File(file) if file.is_file());
        assert!(found.inputs.iter().all(is_there));
    }

    #[test]
    fn paths_are_cleaned() {
        assert_eq!(clean("./a/b.txt"), "a/b.txt");
        assert_eq!(clean("a/"), "a");
        assert_eq!(clean("../x"), "../x");
    }
}
