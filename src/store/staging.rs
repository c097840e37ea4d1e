//! Files that get their final name only when complete, and the removal of abandoned ones.
//!
//! ```text
//! .NAME.12-0.tadoc.part   locked by its writer ──complete──▶ NAME
//!         │ killed: the lock ends, the file stays
//!         └─▶ removed by the next writer that stages a file in this folder
//! ```
//!
//! The lock is advisory (flock) and ends with the process, however the process ends. So an incomplete file without a
//! lock is abandoned. Between the creation and the locking of a file, another process may take it for abandoned and
//! remove it. A writer that finds the name gone under its lock creates another file. On file systems without locks,
//! abandoned files stay, because nobody can recognize them.
//!
//! ```
//! use std::io::Write;
//!
//! use tadoc_store::staging::StagedFile;
//!
//! # let dir = tempfile::tempdir()?;
//! let target = dir.path().join("notes.tadoc");
//! let mut file = StagedFile::create(&target)?;
//! file.write_all(b"all of it")?;
//! assert!(!target.exists());
//! file.file().sync_all()?;
//! file.complete(false)?;
//! assert_eq!(std::fs::read(&target)?, b"all of it");
//! # Ok::<(), std::io::Error>(())
//! ```

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};

/// Ending of the names of staged files. Other programs do not use it.
const PART: &str = ".tadoc.part";
/// Bytes of a block that a disk must have room for.
const PROBE_BYTES: usize = 4096;

/// A file that stays locked as long as this value lives.
#[derive(Debug)]
pub struct LockedFile {
    file: File,
    path: PathBuf,
}

impl LockedFile {
    /// Creates and locks the file at `path`.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if the file exists or another process removed it, and those of
    /// the disk.
    pub fn create(path: PathBuf) -> io::Result<Self> {
        let file = File::create_new(&path)?;
        // A file system without locks refuses. Then nobody can lock the file in order to remove it
        // either.
        let _locked = file.lock();
        if is_named(&file, &path) { Ok(Self { file, path }) } else { Err(ErrorKind::AlreadyExists.into()) }
    }

    /// Locks and returns the files of `folder` whose names pass `is_ours` and whose writers have
    /// ended.
    pub fn abandoned(folder: &Path, is_ours: impl Fn(&str) -> bool) -> Vec<Self> {
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let ours = entries.flatten().filter(|entry| entry.file_name().to_str().is_some_and(&is_ours));
        ours.filter_map(|entry| Self::lock(entry.path())).collect()
    }

    /// Locks an existing file, unless another process has locked it.
    fn lock(path: PathBuf) -> Option<Self> {
        let file = File::open(&path).ok()?;
        file.try_lock().ok()?;
        is_named(&file, &path).then_some(Self { file, path })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file while it is locked.
    ///
    /// # Errors
    /// The errors of the disk.
    pub fn remove(self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// A file that gets its final name once it is complete. If it is dropped before, it is removed.
#[derive(Debug)]
pub struct StagedFile {
    file: LockedFile,
    target: PathBuf,
    is_complete: bool,
}

impl StagedFile {
    /// Creates a file beside `target`, after removing abandoned files from the folder.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] if the folder does not exist, and those of creating a file there.
    pub fn create(target: &Path) -> io::Result<Self> {
        let folder = folder_for(target);
        for left in LockedFile::abandoned(folder, |name| name.starts_with('.') && name.ends_with(PART)) {
            // The file may belong to another user, who will remove it.
            let _removed = left.remove();
        }
        let mut number = 0;
        loop {
            let mut name = OsString::from(".");
            // The target's name is only informative, and is left out if it is almost as long as
            // names may be.
            name.push(target.file_name().filter(|name| name.len() < 200).unwrap_or_default());
            name.push(format!(".{}-{number}{PART}", std::process::id()));
            match LockedFile::create(folder.join(name)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
                created => {
                    let file = created?;
                    let target = target.to_owned();
                    return Ok(Self { file, target, is_complete: false });
                }
            }
        }
    }

    /// Writes and removes a first block, so that a full disk is found before the work for the file
    /// is done.
    ///
    /// # Errors
    /// Those of the disk.
    pub fn probe(&self) -> io::Result<()> {
        let mut file = self.file();
        file.write_all(&[0; PROBE_BYTES])?;
        file.set_len(0)?;
        file.rewind()
    }

    /// Returns the file, for writing and syncing.
    pub fn file(&self) -> &File {
        &self.file.file
    }

    /// Returns the path of the file until it is complete.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Gives the file its final name. An existing file is replaced, or kept if `replace` is false.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`] if an existing file is kept, and those of the disk.
    pub fn complete(mut self, replace: bool) -> io::Result<()> {
        if !replace {
            match fs::hard_link(self.path(), &self.target) {
                // The first name is removed when `self` is dropped.
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(error),
                // On a file system without links, a file that another process creates just now
                // would be replaced.
                Err(_) if self.target.symlink_metadata().is_err() => {}
                Err(_) => return Err(ErrorKind::AlreadyExists.into()),
            }
        }
        fs::rename(self.path(), &self.target)?;
        self.is_complete = true;
        Ok(())
    }
}

impl Write for StagedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file().flush()
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.is_complete {
            let _removed = fs::remove_file(self.path());
        }
    }
}

/// Returns the folder that contains `path`.
fn folder_for(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns true if `path` is a name of `file`.
#[cfg(unix)]
fn is_named(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let (Ok(file), Ok(named)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    (file.dev(), file.ino()) == (named.dev(), named.ino())
}

/// Returns true if `path` exists. An open file keeps its name on this system.
#[cfg(not(unix))]
fn is_named(_file: &File, path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_complete_has_its_name_and_what_is_not_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("a.txt");
        let mut staged = StagedFile::create(&target).unwrap();
        staged.probe().unwrap();
        staged.write_all(b"one").unwrap();
        assert_eq!(names(dir.path()).len(), 1);
        staged.complete(false).unwrap();
        assert_eq!(names(dir.path()), ["a.txt"]);
        let refused = StagedFile::create(&target).unwrap().complete(false).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&target).unwrap(), b"one");
        StagedFile::create(&target).unwrap().complete(true).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"");
        drop(StagedFile::create(&target).unwrap());
        assert_eq!(names(dir.path()), ["a.txt"]);
    }

    #[test]
    fn what_nobody_writes_any_more_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let own = [".a.txt.part", "b.tadoc.part", ".c.tadoc"];
        for name in own {
            fs::write(dir.path().join(name), "kept").unwrap();
        }
        // A killed process leaves a file without a lock.
        fs::write(dir.path().join(".x.1-0.tadoc.part"), "left").unwrap();
        let alive = StagedFile::create(&dir.path().join("a")).unwrap();
        let other = StagedFile::create(&dir.path().join("a")).unwrap();
        let mut expected: Vec<String> = own.map(str::to_owned).into();
        for staged in [&alive, &other] {
            expected.push(staged.path().file_name().unwrap().to_str().unwrap().to_owned());
        }
        expected.sort();
        assert_eq!(names(dir.path()), expected);
    }
}
