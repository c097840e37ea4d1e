//! Allowed files and folders of the local disk.
//!
//! ```text
//! /data/x/../link/c.tadoc ─ real path ─▶ /data/corpora/c.tadoc ─ below a root? ─▶ root, "c.tadoc"
//!                                              open "c.tadoc" relative to the handle of the root
//! ```
//!
//! The first step only finds out which root is meant. The second step holds whatever happens in
//! between: `cap-std` opens a path relative to a folder, and refuses links that lead out of it.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata};
use datafusion::common::plan_datafusion_err;
use datafusion::error::Result;

use super::refusal::{Refusal, Refused};

/// A folder, or one file in it.
#[derive(Debug)]
struct Root {
    /// Real path of the folder.
    folder: PathBuf,
    handle: Dir,
    /// Name of the only file that is allowed.
    only: Option<OsString>,
}

/// Allowed files and folders.
#[derive(Debug, Clone, Default)]
pub(super) struct Roots(Vec<Arc<Root>>);

/// A path below a root.
#[derive(Debug, Clone)]
pub(super) struct Rooted {
    root: Arc<Root>,
    below: PathBuf,
    /// Path as it was asked for.
    asked: PathBuf,
}

/// Facts of a file that its version is made of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stat {
    pub(super) is_folder: bool,
    pub(super) number: u64,
    pub(super) modified: SystemTime,
    pub(super) len_bytes: u64,
}

/// An entry of a folder.
pub(super) struct Entry {
    pub(super) path: PathBuf,
    pub(super) stat: Stat,
}

impl Roots {
    /// Allows the file or folder at `path`, which must exist.
    pub(super) fn allow(&mut self, path: &Path) -> Result<()> {
        let root =
            Root::open(path).map_err(|error| plan_datafusion_err!("{}: cannot be allowed: {error}", path.display()))?;
        self.0.push(Arc::new(root));
        Ok(())
    }

    /// Checks that `path` is allowed. The file need not exist.
    pub(super) fn check(&self, path: &Path) -> Result<(), Refused> {
        self.find(path).map(drop)
    }

    /// Returns the place of `path` below its root.
    pub(super) fn find(&self, path: &Path) -> Result<Rooted, Refused> {
        let real = real_path(path);
        let place = self.0.iter().find_map(|root| Some((root, root.below(real.as_ref()?)?)));
        let asked = path.to_owned();
        match place {
            Some((root, below)) => Ok(Rooted { root: Arc::clone(root), below, asked }),
            None => Err(Refused::new(Refusal::Place, path.display().to_string())),
        }
    }
}

impl Root {
    fn open(path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path)?;
        let (folder, only) = match (path.is_dir(), path.parent()) {
            (false, Some(parent)) => (parent.to_owned(), path.file_name().map(OsString::from)),
            _ => (path, None),
        };
        let handle = Dir::open_ambient_dir(&folder, ambient_authority())?;
        Ok(Self { folder, handle, only })
    }

    /// Returns the path from the folder to `real`, if it is allowed.
    fn below(&self, real: &Path) -> Option<PathBuf> {
        let below = real.strip_prefix(&self.folder).ok()?;
        match &self.only {
            Some(only) if below.as_os_str() != only => None,
            _ if below.as_os_str().is_empty() => Some(PathBuf::from(".")),
            _ => Some(below.to_owned()),
        }
    }
}

impl Rooted {
    /// Opens the file for reading.
    ///
    /// # Errors
    /// `NotFound` if no file is there; a refusal if a link leads out of the root.
    pub(super) fn open(&self) -> io::Result<(File, Stat)> {
        let handle = &self.root.handle;
        let found = handle.metadata(&self.below).map_err(|error| self.explain(error))?;
        if found.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        if !found.is_file() {
            // Opening a pipe would wait for its writer.
            return Err(io::Error::other("it is no regular file"));
        }
        let file = handle.open(&self.below).map_err(|error| self.explain(error))?;
        let opened = file.metadata()?;
        if self.root.only.is_some() && !self.is_named(&opened)? {
            return Err(self.refused().into());
        }
        Ok((file.into_std(), stat(&opened)))
    }

    /// Returns true if the name of the file is that of the opened file, and not of a link, which may
    /// lead to another file of the folder.
    fn is_named(&self, opened: &Metadata) -> io::Result<bool> {
        let named = self.root.handle.symlink_metadata(&self.below)?;
        Ok(named.is_file() && (device(&named), number(&named)) == (device(opened), number(opened)))
    }

    /// Lists the folder; nothing if there is none. A link to a file outside of the roots is listed as
    /// itself, so that it is refused when it is read. A link to a folder outside is left out.
    pub(super) fn entries(&self, roots: &Roots) -> io::Result<Vec<Entry>> {
        let entries = match self.root.handle.read_dir(&self.below) {
            Ok(entries) if self.root.only.is_none() => entries,
            Ok(_) => return Err(self.refused().into()),
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(self.explain(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry?;
            let path = self.asked.join(entry.file_name());
            // A file that was removed meanwhile, or a broken link.
            let Ok(own) = entry.metadata() else { continue };
            let metadata = match own.is_symlink().then(|| roots.find(&path)) {
                Some(Ok(target)) => target.root.handle.metadata(&target.below),
                Some(Err(_)) if path.is_dir() => continue,
                Some(Err(_)) | None => Ok(own),
            };
            let Ok(metadata) = metadata else { continue };
            found.push(Entry { path, stat: stat(&metadata) });
        }
        Ok(found)
    }

    /// Returns the real path.
    pub(super) fn real(&self) -> PathBuf {
        self.root.folder.join(&self.below)
    }

    fn refused(&self) -> Refused {
        Refused::new(Refusal::Place, self.asked.display().to_string())
    }

    /// Returns the refusal if `error` says that a link leads out of the root.
    fn explain(&self, error: io::Error) -> io::Error {
        // Such errors of `cap-std` come from no call of the system.
        let is_escape = error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none();
        if is_escape { self.refused().into() } else { error }
    }
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn stat(metadata: &Metadata) -> Stat {
    Stat {
        is_folder: metadata.is_dir(),
        number: number(metadata),
        modified: metadata.modified().map_or(UNIX_EPOCH, |time| time.into_std()),
        len_bytes: metadata.len(),
    }
}

#[cfg(unix)]
fn number(metadata: &Metadata) -> u64 {
    cap_std::fs::MetadataExt::ino(metadata)
}

#[cfg(unix)]
fn device(metadata: &Metadata) -> u64 {
    cap_std::fs::MetadataExt::dev(metadata)
}

#[cfg(not(unix))]
fn number(_metadata: &Metadata) -> u64 {
    0
}

#[cfg(not(unix))]
fn device(_metadata: &Metadata) -> u64 {
    0
}

/// Returns the real path of `path`; of a file that does not exist, that of its folder and its name.
/// Returns `None` if `..` follows a folder that does not exist.
fn real_path(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = std::fs::canonicalize(path) {
        return Some(real);
    }
    let path = std::path::absolute(path).ok()?;
    let real = real_path(path.parent()?)?;
    Some(real.join(path.file_name()?))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    /// Parts of paths and of targets of links.
    const PARTS: [&str; 11] = ["in", "out", "a", "b", "l", "l2", "l3", "m", "..", ".", ""];

    fn path() -> impl Strategy<Value = String> {
        prop::collection::vec(select(PARTS.to_vec()), 1..6).prop_map(|parts| parts.join("/"))
    }

    /// Places of links, in folders that are no links, so that none is made elsewhere.
    fn place() -> impl Strategy<Value = String> {
        let folders = select(vec!["in", "in/m", "out", "out/m"]);
        (folders, select(vec!["l", "l2", "l3"])).prop_map(|(folder, name)| format!("{folder}/{name}"))
    }

    /// Opens as a guarded session does.
    fn text(roots: &Roots, path: &Path) -> io::Result<String> {
        let mut text = String::new();
        roots.find(path)?.open()?.0.read_to_string(&mut text)?;
        Ok(text)
    }

    /// Files below `in` and `out`, whose texts say where they really are, and random links.
    fn tree(folder: &Path, links: &[(String, String, bool)]) {
        for place in ["in", "out"] {
            for file in ["a", "b", "m/a", "m/b"] {
                let file = folder.join(place).join(file);
                fs::create_dir_all(file.parent().unwrap()).unwrap();
                fs::write(&file, file.strip_prefix(folder).unwrap().to_str().unwrap()).unwrap();
            }
        }
        for (at, target, is_absolute) in links {
            let target = if *is_absolute { folder.join(target) } else { target.into() };
            // Some are there already.
            let _ = symlink(target, folder.join(at));
        }
    }

    proptest! {
        /// The oracle is the system: it opens the path, and the text tells where the file is.
        #[test]
        fn exactly_what_is_really_below_a_root_is_opened(
            links in prop::collection::vec((place(), path(), any::<bool>()), 0..8),
            paths in prop::collection::vec(path(), 1..20),
            prefix in select(vec!["", "in", "in/m", "out"]),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let folder = dir.path().canonicalize().unwrap();
            tree(&folder, &links);
            let mut roots = Roots::default();
            roots.allow(&folder.join("in")).unwrap();
            let mut one = Roots::default();
            one.allow(&folder.join("out/m/a")).unwrap();
            for path in paths {
                let path = folder.join(prefix).join(path);
                let opened = fs::read_to_string(&path);
                let got = text(&roots, &path);
                let only = text(&one, &path);
                // A name such as `a/.` may mean the file `a`, where the system sees no folder.
                prop_assert!(got.as_ref().map_or(true, |text| text.starts_with("in/")));
                prop_assert!(only.as_ref().map_or(true, |text| text == "out/m/a"));
                if let Ok(opened) = opened {
                    let is_refused = |got: io::Result<String>| {
                        got.is_err_and(|error| Refused::from_error(&error).is_some())
                    };
                    prop_assert_eq!(is_refused(got), !opened.starts_with("in/"), "{:?}", path);
                    prop_assert_eq!(is_refused(only), opened != "out/m/a", "{:?}", path);
                }
            }
        }
    }

    /// Opens `path` while it is a file and a link to `other` in turn.
    ///
    /// Tries 5,000 times, and goes on until the file is met: the thread that swaps may sleep while
    /// the link is there.
    fn opened_while_swapped(roots: &Roots, path: &Path, other: &Path) -> Vec<String> {
        let file = path.with_extension("file");
        let link = path.with_extension("link");
        let is_over = AtomicBool::new(false);
        let deadline = Instant::now() + Duration::from_mins(1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    symlink(other, &link).unwrap();
                    fs::rename(&link, path).unwrap();
                    fs::write(&file, "in/a").unwrap();
                    fs::rename(&file, path).unwrap();
                }
            });
            let mut opened = Vec::new();
            let mut tries = 0;
            while tries < 5_000 || (opened.is_empty() && Instant::now() < deadline) {
                opened.extend(text(roots, path));
                tries += 1;
            }
            is_over.store(true, Ordering::Relaxed);
            opened
        })
    }

    /// Checks that the file was met, and nothing else.
    fn assert_only_file(opened: &[String]) {
        assert!(!opened.is_empty(), "the file is never met");
        assert!(opened.iter().all(|text| text == "in/a"), "{opened:?}");
    }

    #[test]
    fn links_that_appear_between_check_and_opening_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        tree(dir.path(), &[]);
        let path = dir.path().join("in/a");
        let mut folder = Roots::default();
        folder.allow(&dir.path().join("in")).unwrap();
        assert_only_file(&opened_while_swapped(&folder, &path, &dir.path().join("out/a")));
        // A file is allowed, and not the secret beside it.
        let mut file = Roots::default();
        file.allow(&path).unwrap();
        fs::write(dir.path().join("in/secret"), "secret").unwrap();
        assert_only_file(&opened_while_swapped(&file, &path, Path::new("secret")));
    }

    #[test]
    fn pipes_and_devices_are_not_opened() {
        let mut roots = Roots::default();
        roots.allow(Path::new("/dev")).unwrap();
        let error = roots.find(Path::new("/dev/zero")).unwrap().open().unwrap_err();
        assert!(error.to_string().contains("no regular file"), "{error}");
    }
}
