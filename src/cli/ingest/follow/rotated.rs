//! The files beside a log that may have been rotated from it.
//!
//! A file is a neighbour if its name is that of the log and `.` or `-` and more. It was rotated from the log if
//! a number or a date comes there (`NAME.1`, `NAME-20240506`), so a packed file was not. A file that is known is
//! also found in a folder beside or below, and in the one above, where some rotations move it.

use std::cmp::Reverse;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::place::FileId;

/// Most folders in a folder that are searched for moved files.
#[cfg(unix)]
const MAX_FOLDERS: usize = 100;

/// A file that is there.
pub struct Listed {
    pub file: File,
    pub id: FileId,
    pub len: u64,
    pub changed: SystemTime,
    /// Name of the file.
    pub path: PathBuf,
    /// True if it has the name of the log.
    pub is_log: bool,
    /// True if it was rotated from the log, by its name.
    pub is_rotated: bool,
}

impl Listed {
    fn open(path: PathBuf, log: &Path) -> io::Result<Self> {
        // A pipe would have to be waited for.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        let (len, changed) = (metadata.len(), metadata.modified()?);
        let is_log = path == log;
        let is_rotated = !is_log && is_rotated(log, &path);
        Ok(Self { file, id: FileId::new(&metadata), len, changed, path, is_log, is_rotated })
    }
}

/// Returns the neighbours of the log `path`, the older ones first as far as times and numbers tell, and then the
/// log, if it is there.
///
/// # Errors
/// The log cannot be read.
pub fn list(path: &Path) -> io::Result<Vec<Listed>> {
    let others = neighbours(path).into_iter();
    // Neighbours may vanish or be unreadable.
    let mut listed: Vec<Listed> =
        others.filter_map(|other| Listed::open(other, path).ok()).collect();
    listed.sort_by_key(|other| (other.changed, Reverse(number(&other.path))));
    match Listed::open(path.to_owned(), path) {
        Ok(log) => listed.push(log),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(listed)
}

/// Returns the files among `ids` that lie in a folder beside or below that of the log `path`, or in the one above.
#[cfg(unix)]
pub fn find_moved(path: &Path, ids: &[FileId]) -> Vec<Listed> {
    use std::os::unix::fs::DirEntryExt;
    let mut found = Vec::new();
    let Ok(path) = std::path::absolute(path) else { return found };
    let Some(home) = path.parent() else { return found };
    let above = home.parent().map(Path::to_owned);
    let mut folders: Vec<PathBuf> = above.iter().cloned().collect();
    for folder in above.into_iter().chain([home.to_owned()]) {
        folders.extend(subfolders(&folder).filter(|folder| folder != home));
    }
    for entry in folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
        if ids.iter().any(|id| id.inode == entry.ino())
            && let Ok(listed) = Listed::open(entry.path(), &path)
            && ids.contains(&listed.id)
        {
            found.push(Listed { is_rotated: false, ..listed });
        }
    }
    found
}

/// On systems without inodes, a moved file is gone.
#[cfg(not(unix))]
pub fn find_moved(_path: &Path, _ids: &[FileId]) -> Vec<Listed> {
    Vec::new()
}

/// Returns the first folders in `folder`.
#[cfg(unix)]
fn subfolders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).take(MAX_FOLDERS)
}

/// Returns true if a file that was rotated from the log `path` is there.
pub fn has_rotated(path: &Path) -> bool {
    neighbours(path).iter().any(|other| is_rotated(path, other))
}

/// Returns the number at the end of the name, or 0.
fn number(path: &Path) -> u64 {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.and_then(|extension| extension.parse().ok()).unwrap_or_default()
}

/// Returns the files beside `path` whose names are its name and `.` or `-` and more, by name.
fn neighbours(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().map(|name| name.as_encoded_bytes()) else {
        return Vec::new();
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return Vec::new() };
    let paths = entries.flatten().filter(|entry| {
        let other = entry.file_name();
        let rest = other.as_encoded_bytes().strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(b".") || rest.starts_with(b"-"))
    });
    let mut paths: Vec<PathBuf> = paths.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns true if `other` has the name of `path` with a number or a date behind it, and is not packed.
fn is_rotated(path: &Path, other: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec());
    let (Some(name), Some(other)) = (name(path), name(other)) else { return false };
    let rest = other.get(name.len() + 1..).unwrap_or_default();
    let is_date = |byte: &u8| byte.is_ascii_digit() || b"-._:TZ".contains(byte);
    rest.first().is_some_and(u8::is_ascii_digit) && rest.iter().all(is_date)
}
