//! `tadoc restore`: writes the documents of a corpus as files below a folder.
//!
//! ```text
//! paths ─▶ targets, checked ─▶ chains of segments ─▶ tasks ─▶ files
//!          (no `..`, nothing    (few at a time)      (cores)   (written beside their name, renamed)
//!           is overwritten)
//! ```
//!
//! All targets are checked before the first file is written. The folder is opened once, and files by their path below
//! it (`cap-std`), so no link leads out of it. Documents that share a path, such as the lines of a file, become one
//! file with a line end behind each, and a note counts such files. Dates and permissions are not stored in a corpus, so
//! they are those of new files. Memory is that of as many segments as there are cores, of the text of their tasks, and
//! of all paths. What a killed restore left is removed by the next one that writes to the same folders.
//!
//! These are the names of files that a restore writes:
//!
//! ```text
//! FOLDER/.tadoc-restore-TOKEN.lock          locked as long as the restore runs
//! FOLDER/a/b/.tadoc-restore-TOKEN-NUMBER    a file while it is written
//! ```
//!
//! A file is abandoned if no folder above it has a lock of its token that somebody holds: the restore may
//! have had another folder. Each restore looks into the folders that it writes to. On file systems without
//! locks, abandoned files stay, because nobody can recognize them.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Write};
use std::mem::replace;
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use clap::Args;
use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::format::path_bytes;
use tadoc::read::{DocumentDecoder, document_len_bytes, extract};
use tadoc_documents::display::{bytes, plain, plural, rate, seconds};
use tadoc_session::{BlockingResolver, Failure, Outcome, interrupt, note};
use tadoc_store::staging::LockedFile;

use crate::ls::{Globs, Listing};
use crate::tasks::{Task, for_each_chain, num_at_once, path_of, tasks_of};

/// Longest name of a file or folder on most systems.
const MAX_NAME_BYTES: usize = 255;
/// Longest path on most systems. Folders are made one by one, so longer ones take quadratic time.
const MAX_PATH_BYTES: usize = 4096;
/// Bytes of a long document that are decoded at once.
const PIECE_BYTES: u64 = 16 << 20;

/// Write the documents of a corpus as files
///
/// Each document becomes the file of its path below a folder, with its exact bytes. Documents of one
/// path (lines or rows of one file) become one file, each followed by a line end. A path with one document
/// in each of several corpora is refused.
#[derive(Args)]
#[command(
    disable_version_flag = true,
    after_long_help = "Examples:\n  \
    tadoc restore notes.tadoc -o notes/\n  \
    tadoc restore notes.tadoc 'todo/**' -o notes/      some of them\n  \
    tadoc restore notes/ --version 3 -o then/          a living corpus, as it was"
)]
pub struct Arguments {
    /// The corpus: a file, a living corpus, or a folder or glob of files; a path or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Write only documents whose path matches one of these. A glob without a slash is compared with
    /// the name of the document
    #[arg(value_name = "GLOB")]
    globs: Vec<String>,

    /// The folder; it is created if it does not exist
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,

    /// Replace files that exist
    #[arg(long)]
    force: bool,

    /// Print nothing but errors
    #[arg(short, long)]
    quiet: bool,

    /// For a living corpus: write the documents of this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    interrupt::ask_first();
    let start = Instant::now();
    let globs = Globs::new(&arguments.globs)?;
    let listing = Listing::read(&BlockingResolver::new()?, &arguments.corpus, arguments.version)?;
    let plan = Plan::new(&listing, &globs)?;
    if plan.targets.is_empty() && !arguments.globs.is_empty() {
        return Err(globs.nothing_chosen(&arguments.corpus));
    }
    let folder = Folder::open(&arguments.output)?;
    if !arguments.force {
        folder.check_absent(&plan.targets)?;
    }
    let restore = Restore { plan: &plan, folder: &folder, num_bytes: AtomicU64::new(0) };
    restore.documents(&listing)?;
    if !arguments.quiet {
        let num_bytes = restore.num_bytes.into_inner();
        let elapsed = start.elapsed();
        let num_shared = plan.shared.len() as u64;
        let shared_note = format!("; {} of several documents each", plural(num_shared, "file"));
        note(format!(
            "{}: {}, {} of {} in {}, {}{}",
            plain(&arguments.output.to_string_lossy()),
            plural(plan.targets.len() as u64, "file"),
            bytes(num_bytes),
            plural(plan.num_docs, "document"),
            seconds(elapsed),
            rate(num_bytes, elapsed),
            if num_shared > 0 { &shared_note } else { "" }
        ));
    }
    Ok(())
}

/// The chosen documents, and the files that they become.
#[derive(Default)]
struct Plan {
    /// Path below the folder of each chosen path.
    targets: HashMap<Box<str>, PathBuf>,
    /// Paths of several documents.
    shared: HashSet<Box<str>>,
    num_docs: u64,
    /// Ids of the chosen documents, as [`Listing`] has them.
    doc_ids: Vec<u64>,
}

impl Plan {
    fn new(listing: &Listing, globs: &Globs) -> Outcome<Self> {
        let mut plan = Self::default();
        // Two paths such as a/b and ./a/b mean one file. Each path has the last corpus file that holds it.
        let mut path_of_target: HashMap<PathBuf, (Box<str>, usize)> = HashMap::new();
        // Paths of several documents, with true if two of them are in one file, as lines are.
        let mut are_lines_by_path: HashMap<Box<str>, bool> = HashMap::new();
        listing.for_each(&mut |document| {
            let path = document.path;
            if !globs.choose(path) {
                return Ok(());
            }
            plan.num_docs += 1;
            plan.doc_ids.push(document.doc_id);
            let known = plan.targets.get(path).and_then(|target| path_of_target.get_mut(target));
            if let Some((_, last_file)) = known {
                let are_lines = replace(last_file, document.file_idx) == document.file_idx;
                *are_lines_by_path.entry(path.into()).or_default() |= are_lines;
                return Ok(());
            }
            let target = target(path).map_err(|reason| unsafe_path(path, &reason))?;
            let holder = (path.into(), document.file_idx);
            if let Some((other, _)) = path_of_target.insert(target.clone(), holder) {
                return Err(unsafe_path(path, &format!("is the same file as `{}`", plain(&other))));
            }
            plan.targets.insert(path.into(), target);
            Ok(())
        })?;
        let mut whole_files = are_lines_by_path.iter().filter(|(_, are_lines)| !**are_lines);
        if let Some((path, _)) = whole_files.next() {
            let reason = "is in several of these corpora; name one of them";
            return Err(unsafe_path(path, reason));
        }
        plan.shared = are_lines_by_path.into_keys().collect();
        for (path, target) in &plan.targets {
            let above = target.ancestors().skip(1).find_map(|above| path_of_target.get(above));
            if let Some((above, _)) = above {
                let reason = format!("lies below `{}`, which is a document, too", plain(above));
                return Err(unsafe_path(path, &reason));
            }
        }
        Ok(plan)
    }
}

fn unsafe_path(path: &str, reason: &str) -> Failure {
    Failure::new(format!(
        "document `{}` {reason}; nothing was written; give globs of the documents to restore",
        plain(path)
    ))
}

/// Returns the path below the folder of the document `path`, or the reason why it has none.
fn target(path: &str) -> Result<PathBuf, String> {
    let name = file_name(path);
    if name.as_os_str().len() > MAX_PATH_BYTES {
        return Err(format!("has a path of more than {MAX_PATH_BYTES} bytes"));
    }
    let mut target = PathBuf::new();
    for part in name.components() {
        match part {
            Component::Normal(part) if part.len() > MAX_NAME_BYTES => {
                return Err(format!("has a name of more than {MAX_NAME_BYTES} bytes"));
            }
            Component::Normal(part) if part.as_encoded_bytes().contains(&0) => {
                return Err("has a NUL in its name".to_owned());
            }
            Component::Normal(part) => target.push(part),
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => {
                return Err("would lie outside the folder".to_owned());
            }
        }
    }
    if target.as_os_str().is_empty() { Err("has no name of a file".to_owned()) } else { Ok(target) }
}

#[cfg(unix)]
fn file_name(path: &str) -> PathBuf {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;

    PathBuf::from(OsStr::from_bytes(&path_bytes(path)))
}

#[cfg(not(unix))]
fn file_name(path: &str) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(&path_bytes(path)).into_owned())
}

/// Documents on their way into files.
struct Restore<'a> {
    plan: &'a Plan,
    folder: &'a Folder,
    num_bytes: AtomicU64,
}

impl Restore<'_> {
    fn documents(&self, listing: &Listing) -> Outcome {
        let mut shared = SharedFiles { folder: self.folder, parts: BTreeMap::new() };
        match listing {
            Listing::Living(corpus) => {
                self.corpus(&corpus.snapshot()?, Some(&self.plan.doc_ids), &mut shared)?;
            }
            Listing::Files(files) => {
                let mut rest = &self.plan.doc_ids[..];
                let mut first_doc_id = 0;
                for (file, facts) in files {
                    let end = first_doc_id + facts.num_docs();
                    let (here, behind) = rest.split_at(rest.partition_point(|&id| id < end));
                    let here: Vec<u64> = here.iter().map(|id| id - first_doc_id).collect();
                    (rest, first_doc_id) = (behind, end);
                    let visit = &mut |corpus: &Corpus| {
                        self.corpus(corpus, None, &mut shared)?;
                        Ok(ControlFlow::Continue(()))
                    };
                    if for_each_chain(file, Some(&here), visit)?.is_break() {
                        break;
                    }
                }
            }
        }
        shared.finish(&self.plan.targets)
    }

    /// Writes the documents `doc_ids` of `corpus`, by default all those that are chosen by path.
    fn corpus(&self, corpus: &Corpus, doc_ids: Option<&[u64]>, shared: &mut SharedFiles<'_>) -> Outcome {
        let chosen: Vec<u64>;
        let docs = match doc_ids {
            Some(docs) => docs,
            None => {
                let all = 0..corpus.num_docs();
                let is_chosen = |&doc: &u64| self.plan.targets.contains_key(path_of(corpus, doc));
                chosen = all.filter(is_chosen).collect();
                &chosen
            }
        };
        let tasks = tasks_of(corpus, docs)?;
        for tasks in tasks.chunk_by(|one, next| !one.is_long && !next.is_long) {
            if let [Task { docs: [doc_id], is_long: true }] = tasks {
                self.long_document(corpus, *doc_id, shared)?;
                continue;
            }
            for tasks in tasks.chunks(num_at_once()) {
                let texts = tasks.par_iter().map(|task| self.task(corpus, task.docs));
                for texts in texts.collect::<Vec<Outcome<Vec<Text<'_>>>>>() {
                    for text in texts? {
                        shared.append(text.path, &text.bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes the files of `docs`. Returns the texts of those that share a path.
    fn task<'c>(&self, corpus: &'c Corpus, docs: &[u64]) -> Outcome<Vec<Text<'c>>> {
        let mut texts: Vec<Text<'c>> = Vec::new();
        let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
        for &doc_id in docs {
            if interrupt::is_asked() {
                return Err(Failure::interrupted());
            }
            let start = decoder.bytes().len();
            decoder.append_document(doc_id)?;
            let path = path_of(corpus, doc_id);
            let document = &decoder.bytes()[start..];
            self.count(document.len());
            if !self.plan.shared.contains(path) {
                self.folder.write(path, self.target(path)?, |file| {
                    file.write_all(document).map_err(|error| at(path, &error))
                })?;
                continue;
            }
            if texts.last().is_none_or(|last| last.path != path) {
                texts.push(Text { path, bytes: Vec::new() });
            }
            if let Some(last) = texts.last_mut() {
                last.bytes.extend_from_slice(document);
                last.bytes.push(b'\n');
            }
        }
        Ok(texts)
    }

    /// Writes a document in pieces.
    fn long_document(&self, corpus: &Corpus, doc_id: u64, shared: &mut SharedFiles<'_>) -> Outcome {
        let path = path_of(corpus, doc_id);
        let pieces = |write: &mut dyn FnMut(&[u8]) -> Outcome| {
            for offset in (0..document_len_bytes(corpus, doc_id)?).step_by(PIECE_BYTES as usize) {
                if interrupt::is_asked() {
                    return Err(Failure::interrupted());
                }
                let piece = extract(corpus, doc_id, offset, PIECE_BYTES)?;
                self.count(piece.len());
                write(&piece)?;
            }
            Ok(())
        };
        if self.plan.shared.contains(path) {
            pieces(&mut |piece| shared.append(path, piece))?;
            return shared.append(path, b"\n");
        }
        self.folder.write(path, self.target(path)?, |file| {
            pieces(&mut |piece| file.write_all(piece).map_err(|error| at(path, &error)))
        })
    }

    fn target(&self, path: &str) -> Outcome<&Path> {
        let target = self.plan.targets.get(path);
        target.map(PathBuf::as_path).ok_or_else(|| unsafe_path(path, "was not listed"))
    }

    fn count(&self, len_bytes: usize) {
        self.num_bytes.fetch_add(len_bytes as u64, Ordering::Relaxed);
    }
}

/// Text of successive documents of one path.
struct Text<'c> {
    path: &'c str,
    bytes: Vec<u8>,
}

fn at(path: &str, error: &io::Error) -> Failure {
    Failure::with_cause(plain(path), error)
}

/// The folder of the files.
struct Folder {
    dir: Dir,
    running: Running,
    /// Folders below it that exist, without what killed restores left.
    made: Mutex<HashSet<PathBuf>>,
    /// Number of the next file while it is written.
    next: AtomicU64,
}

impl Folder {
    fn open(path: &Path) -> Outcome<Self> {
        let open = || -> io::Result<(Dir, Running)> {
            std::fs::create_dir_all(path)?;
            Ok((Dir::open_ambient_dir(path, ambient_authority())?, Running::begin(path)?))
        };
        let failed = |error: io::Error| Failure::with_cause(plain(&path.to_string_lossy()), &error);
        let (dir, running) = open().map_err(failed)?;
        Ok(Self { dir, running, made: Mutex::default(), next: AtomicU64::new(0) })
    }

    /// Refuses to replace a file.
    fn check_absent(&self, targets: &HashMap<Box<str>, PathBuf>) -> Outcome {
        let is_there = |target: &&PathBuf| self.dir.symlink_metadata(target).is_ok();
        let mut there: Vec<&PathBuf> = targets.par_iter().map(|(_, t)| t).filter(is_there).collect();
        there.sort_unstable();
        match there.first() {
            None => Ok(()),
            Some(first) => Err(Failure::new(format!(
                "{} already exist{}, such as {}; nothing was written; --force replaces them",
                plural(there.len() as u64, "file"),
                if there.len() == 1 { "s" } else { "" },
                plain(&first.to_string_lossy())
            ))),
        }
    }

    /// Writes the document `path` as the file `target` with `fill`. It has its name when it is complete.
    fn write(&self, path: &str, target: &Path, fill: impl FnOnce(&mut File) -> Outcome) -> Outcome {
        let part = self.new_part(target).map_err(|error| at(path, &error))?;
        let mut options = OpenOptions::new();
        let file = self.dir.open_with(&part, options.write(true).create_new(true));
        let written = file.map_err(|error| at(path, &error)).and_then(|mut file| {
            fill(&mut file)?;
            self.dir.rename(&part, &self.dir, target).map_err(|error| at(path, &error))
        });
        if written.is_err() {
            // The error above comes first.
            let _ = self.dir.remove_file(&part);
        }
        written
    }

    /// Returns a name that nothing has, in the folder of `target`, which exists then.
    fn new_part(&self, target: &Path) -> io::Result<PathBuf> {
        let parent = target.parent().unwrap_or(Path::new(""));
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if !made.contains(parent) {
            if !parent.as_os_str().is_empty() {
                self.dir.create_dir_all(parent)?;
            }
            self.running.remove_abandoned(&self.dir, parent);
            made.insert(parent.to_owned());
        }
        drop(made);
        Ok(parent.join(self.running.part_name(self.next.fetch_add(1, Ordering::Relaxed))))
    }
}

/// Files of several documents, which get their names at the end.
struct SharedFiles<'a> {
    folder: &'a Folder,
    /// Name of each file while it is written, by path of its documents.
    parts: BTreeMap<Box<str>, PathBuf>,
}

impl SharedFiles<'_> {
    fn append(&mut self, path: &str, text: &[u8]) -> Outcome {
        let mut append = || {
            if !self.parts.contains_key(path) {
                let target = target(path).map_err(io::Error::other)?;
                self.parts.insert(path.into(), self.folder.new_part(&target)?);
            }
            let mut options = OpenOptions::new();
            let part = &self.parts[path];
            let mut file = self.folder.dir.open_with(part, options.append(true).create(true))?;
            file.write_all(text)
        };
        append().map_err(|error| at(path, &error))
    }

    fn finish(mut self, targets: &HashMap<Box<str>, PathBuf>) -> Outcome {
        while let Some((path, part)) = self.parts.pop_first() {
            let dir = &self.folder.dir;
            let renamed = targets.get(&path).map_or(Ok(()), |target| dir.rename(&part, dir, target));
            if let Err(error) = renamed {
                self.parts.insert(path.clone(), part);
                return Err(at(&path, &error));
            }
        }
        Ok(())
    }
}

impl Drop for SharedFiles<'_> {
    fn drop(&mut self) {
        for part in self.parts.values() {
            // The error that ended the work comes first.
            let _ = self.folder.dir.remove_file(part);
        }
    }
}

/// Beginning of the names of files while they are written.
const PREFIX: &str = ".tadoc-restore-";
/// End of the name of the lock.
const LOCK: &str = ".lock";

/// A restore that runs.
pub struct Running {
    /// Real path of its folder.
    root: PathBuf,
    /// Unique to this restore.
    token: String,
    lock: Option<LockedFile>,
}

impl Running {
    /// Begins a restore into the folder `root`, which exists.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn begin(root: &Path) -> io::Result<Self> {
        let root = root.canonicalize()?;
        let is_lock = |name: &str| name.starts_with(PREFIX) && name.ends_with(LOCK);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_nanos());
        let token = format!("{}.{now:x}", std::process::id());
        let lock = LockedFile::create(root.join(format!("{PREFIX}{token}{LOCK}")))?;
        for left in LockedFile::abandoned(&root, is_lock) {
            // It may belong to another user, who will remove it.
            let _removed = left.remove();
        }
        Ok(Self { root, token, lock: Some(lock) })
    }

    /// Returns the name of the file `number` while it is written.
    pub fn part_name(&self, number: u64) -> String {
        format!("{PREFIX}{}-{number}", self.token)
    }

    /// Removes abandoned files from `folder`, a path below the folder `dir` of this restore.
    pub fn remove_abandoned(&self, dir: &Dir, folder: &Path) {
        let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(entries) = dir.read_dir(here) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let token = name.to_str().and_then(token_of);
            if token.is_some_and(|token| self.is_abandoned(token, folder)) {
                // It may belong to another user, who will remove it.
                let _removed = dir.remove_file(folder.join(&name));
            }
        }
    }

    fn is_abandoned(&self, token: &str, folder: &Path) -> bool {
        let lock = format!("{PREFIX}{token}{LOCK}");
        let is_held = |above: &Path| {
            above.join(&lock).symlink_metadata().is_ok() && LockedFile::abandoned(above, |name| name == lock).is_empty()
        };
        !self.root.join(folder).ancestors().any(is_held)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // If the removal fails, the next restore does it.
        let _removed = self.lock.take().map(LockedFile::remove);
    }
}

/// Returns the token in the name of a file that is written.
fn token_of(name: &str) -> Option<&str> {
    let (token, number) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then_some(token)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use cap_std::ambient_authority;

    use super::*;

    #[test]
    fn what_killed_restores_left_is_removed_and_what_others_write_stays() {
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("a");
        fs::create_dir(&inner).unwrap();
        let alive = Running::begin(&inner).unwrap();
        let outer = Running::begin(folder.path()).unwrap();
        let names = |running: &Running| running.part_name(0);
        for name in [&names(&alive), &names(&outer), ".tadoc-restore-12-3", ".tadoc-restore-x", "b"] {
            fs::write(inner.join(name), "text").unwrap();
        }
        fs::write(folder.path().join(".tadoc-restore-9.1a.lock"), "").unwrap();
        let next = Running::begin(folder.path()).unwrap();
        assert!(!folder.path().join(".tadoc-restore-9.1a.lock").exists());
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        next.remove_abandoned(&dir, Path::new("a"));
        next.remove_abandoned(&dir, Path::new(""));
        let left = || {
            let entries = fs::read_dir(&inner).unwrap().flatten();
            let mut left: Vec<_> = entries.map(|e| e.file_name().into_string().unwrap()).collect();
            left.retain(|name| !name.ends_with(LOCK));
            left.sort();
            left
        };
        let mut expected = vec![names(&alive), names(&outer), ".tadoc-restore-x".into(), "b".into()];
        expected.sort();
        assert_eq!(left(), expected);
        drop((alive, outer));
        next.remove_abandoned(&dir, Path::new("a"));
        assert_eq!(left(), [".tadoc-restore-x", "b"]);
        drop(next);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
