//! Names of files that a restore writes, and the removal of those that killed restores left.
//!
//! ```text
//! FOLDER/.tadoc-restore-TOKEN.lock          locked as long as the restore runs
//! FOLDER/a/b/.tadoc-restore-TOKEN-NUMBER    a file while it is written
//! ```
//!
//! A file is abandoned if no folder above it has a lock of its token that somebody holds: the restore may
//! have had another folder. Each restore looks into the folders that it writes to. On file systems without
//! locks, abandoned files stay, because nobody can recognize them.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::Dir;
use tadoc_store::staging::LockedFile;

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
            above.join(&lock).symlink_metadata().is_ok()
                && LockedFile::abandoned(above, |name| name == lock).is_empty()
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
        for name in [&names(&alive), &names(&outer), ".tadoc-restore-12-3", ".tadoc-restore-x", "b"]
        {
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
        let mut expected =
            vec![names(&alive), names(&outer), ".tadoc-restore-x".into(), "b".into()];
        expected.sort();
        assert_eq!(left(), expected);
        drop((alive, outer));
        next.remove_abandoned(&dir, Path::new("a"));
        assert_eq!(left(), [".tadoc-restore-x", "b"]);
        drop(next);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
