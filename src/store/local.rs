//! A storage in a folder of the local disk that survives power loss.
//!
//! ```text
//! put_if_absent   create <uuid>.unfinished, write, sync it; link it to its name (fails if the name
//!                 exists); remove <uuid>.unfinished; sync the folder
//! put_stream      create the name, write, sync it; sync the folder
//! hold            create and lock <uuid>.unfinished, an empty file, until the commit of its file
//! ```
//!
//! `object_store`'s `LocalFileSystem` (0.13) links as well, but syncs neither the file nor its
//! folder. After a power loss a version may be empty, or missing although its writer was told that
//! it exists. A commit here costs two syncs: one of the file and one of the folder.
//!
//! A failed sync is not repeated. The affected pages may be marked clean, and the next sync would succeed without
//! effect (Rebello et al., "Can Applications Recover from fsync Failures?", ATC 2020).

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use bytes::Bytes;
use futures::StreamExt;

use crate::staging::LockedFile;
use crate::storage::{
    ByteStream, CommitId, Hold, SEGMENTS, Storage, StorageError, StorageResult, StoredFile, UNFINISHED, VERSIONS,
    mark_name, marked_name, on_thread,
};

/// File system calls of [`LocalFolder`]. Tests replace them by a disk that loses power.
pub trait Disk: fmt::Debug + Send + Sync + 'static {
    /// Creates a folder, or returns [`ErrorKind::AlreadyExists`] if it exists.
    fn create_folder(&self, path: &Path) -> io::Result<()>;
    /// Creates an empty file, or returns [`ErrorKind::AlreadyExists`] if it exists.
    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>>;
    /// Gives a file a second name, or returns [`ErrorKind::AlreadyExists`] if a file has that name.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a name.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
    /// Reads the bytes of a file, at most `max_bytes + 1` of them.
    fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>>;
    /// Lists the names in a folder.
    fn list(&self, folder: &Path) -> io::Result<Vec<String>>;
    /// Returns the length of a file in bytes, and the time of its last write.
    fn stat(&self, path: &Path) -> io::Result<(u64, SystemTime)>;

    /// Creates an empty file that is locked as long as the result lives. Returns `None` without
    /// locks.
    fn create_locked(&self, _path: PathBuf) -> Option<LockedFile> {
        None
    }

    /// Locks those files of `folder` whose names pass `is_ours` and that nobody has locked.
    fn lock_abandoned(&self, _folder: &Path, _is_ours: fn(&str) -> bool) -> Vec<LockedFile> {
        Vec::new()
    }
}

/// A file that is being written.
pub trait DiskFile: Write + Send {
    /// Makes the written bytes durable.
    fn sync(&mut self) -> io::Result<()>;
}

/// Disk of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalDisk;

impl DiskFile for std::fs::File {
    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

impl Disk for LocalDisk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        std::fs::create_dir(path)
    }

    fn create_file(&self, path: &Path) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(std::fs::File::create_new(path)?))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        // Other systems cannot open folders as files, and make names durable together with the
        // file.
        if cfg!(unix) {
            std::fs::File::open(path)?.sync_all()?;
        }
        Ok(())
    }

    fn read(&self, path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)?.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(folder)? {
            // Our names are always UTF-8.
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn stat(&self, path: &Path) -> io::Result<(u64, SystemTime)> {
        let meta = std::fs::metadata(path)?;
        Ok((meta.len(), meta.modified()?))
    }

    fn create_locked(&self, path: PathBuf) -> Option<LockedFile> {
        LockedFile::create(path).ok()
    }

    fn lock_abandoned(&self, folder: &Path, is_ours: fn(&str) -> bool) -> Vec<LockedFile> {
        LockedFile::abandoned(folder, is_ours)
    }
}

/// A folder of a disk. File systems without hard links are refused at the first commit.
#[derive(Debug)]
pub struct LocalFolder<D = LocalDisk> {
    root: PathBuf,
    disk: Arc<D>,
}

impl<D> Clone for LocalFolder<D> {
    fn clone(&self) -> Self {
        Self { root: self.root.clone(), disk: Arc::clone(&self.disk) }
    }
}

impl LocalFolder {
    /// Creates the storage in the folder at `root`, which need not exist yet.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self::on_disk(root, LocalDisk)
    }
}

impl<D: Disk> LocalFolder<D> {
    /// Creates the storage in the folder at `root` of `disk`.
    pub fn on_disk(root: impl Into<PathBuf>, disk: D) -> Self {
        Self { root: root.into(), disk: Arc::new(disk) }
    }

    /// Runs `work` with the disk and the root on a thread of its own.
    async fn with_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&D, &Path) -> StorageResult<T> + Send + 'static,
    ) -> StorageResult<T> {
        let this = self.clone();
        on_thread(move || work(&this.disk, &this.root)).await.unwrap_or_else(|e| Err(StorageError::Permanent(e.into())))
    }
}

/// Converts an error of an operation that had no visible effect.
fn failed(error: io::Error) -> StorageError {
    match error.kind() {
        ErrorKind::NotFound => StorageError::NotFound,
        ErrorKind::AlreadyExists => StorageError::Exists,
        ErrorKind::Interrupted | ErrorKind::WouldBlock | ErrorKind::TimedOut => StorageError::Transient(error.into()),
        _ => StorageError::Permanent(error.into()),
    }
}

/// Converts an error of writing, for which a missing folder is not a valid answer.
fn not_written(error: io::Error) -> StorageError {
    match failed(error) {
        StorageError::NotFound => StorageError::Permanent("the folder of the corpus is gone".into()),
        other => other,
    }
}

/// Creates `folder` and its missing parents, and makes their names durable.
fn create_folders(disk: &impl Disk, folder: &Path) -> io::Result<()> {
    let above: Vec<&Path> = folder.ancestors().filter(|at| !at.as_os_str().is_empty()).collect();
    let mut num_missing = 0;
    while let Some(at) = above.get(num_missing) {
        match disk.create_folder(at) {
            Err(e) if e.kind() == ErrorKind::NotFound => num_missing += 1,
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
            _ => break,
        }
    }
    for at in above[..num_missing].iter().rev() {
        match disk.create_folder(at) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(e),
            _ => {}
        }
    }
    // A folder that existed is synced too, because its creator may have ended before its own sync.
    for at in above.iter().take(num_missing + 1) {
        let parent = at.parent().filter(|parent| !parent.as_os_str().is_empty());
        match disk.sync_folder(parent.unwrap_or(Path::new("."))) {
            // Without permission to sync, nobody creates folders there.
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {}
            synced => synced?,
        }
    }
    Ok(())
}

fn write_file(mut file: Box<dyn DiskFile>, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync()
}

fn link_new(disk: &impl Disk, root: &Path, name: &str, bytes: &[u8]) -> StorageResult<()> {
    let target = root.join(name);
    let folder = target.parent().unwrap_or(root);
    let id = CommitId::random().map_err(|e| StorageError::Permanent(e.into()))?;
    let unfinished = folder.join(format!("{id}{UNFINISHED}"));
    let file = disk.create_file(&unfinished).map_err(not_written)?;
    let linked =
        write_file(file, bytes).map_err(not_written).and_then(|()| disk.link(&unfinished, &target).map_err(not_linked));
    // If the removal fails, the file is cleaned up later. Only the other name counts.
    let _removed = disk.remove(&unfinished);
    linked?;
    disk.sync_folder(folder).map_err(|e| StorageError::Unknown(e.into()))
}

fn not_linked(error: io::Error) -> StorageError {
    match error.kind() {
        ErrorKind::Unsupported | ErrorKind::PermissionDenied => {
            StorageError::Permanent(format!("{error}; a living corpus needs a file system with hard links").into())
        }
        _ => not_written(error),
    }
}

#[async_trait]
impl<D: Disk> Storage for LocalFolder<D> {
    fn location(&self) -> String {
        self.root.display().to_string()
    }

    async fn prepare(&self) -> StorageResult<()> {
        let prepare = |disk: &D, root: &Path| {
            create_folders(disk, root)?;
            create_folders(disk, &root.join(SEGMENTS))?;
            create_folders(disk, &root.join(VERSIONS))
        };
        self.with_disk(move |disk, root| prepare(disk, root).map_err(not_written)).await
    }

    async fn put_if_absent(&self, name: &str, bytes: Bytes) -> StorageResult<()> {
        let name = name.to_string();
        self.with_disk(move |disk, root| link_new(disk, root, &name, &bytes)).await
    }

    async fn put_stream(&self, name: &str, mut chunks: ByteStream) -> StorageResult<()> {
        let target = self.root.join(name);
        let path = target.clone();
        let mut file = self.with_disk(move |disk, _| disk.create_file(&path).map_err(not_written)).await?;
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|e| StorageError::Permanent(e.into()));
            let path = target.clone();
            file = self
                .with_disk(move |disk, _| {
                    let written = chunk.and_then(|chunk| file.write_all(&chunk).map_err(not_written));
                    if written.is_err() {
                        let _removed = disk.remove(&path);
                    }
                    written.map(|()| file)
                })
                .await?;
        }
        self.with_disk(move |disk, root| {
            file.sync().map_err(not_written)?;
            disk.sync_folder(target.parent().unwrap_or(root)).map_err(not_written)
        })
        .await
    }

    async fn hold(&self, name: &str) -> Option<Hold> {
        let name = name.to_string();
        let hold = self.with_disk(move |disk, root| {
            let mark = disk.create_locked(root.join(mark_name(&name)));
            Ok(mark.map(|mark| Hold::new(name, mark)))
        });
        // Without a hold, the file of a killed writer stays until it is old.
        hold.await.ok().flatten()
    }

    async fn abandoned(&self) -> Vec<Hold> {
        let marks = self.with_disk(|disk, root| {
            let is_mark = |name: &str| marked_name(name).is_some();
            Ok(disk.lock_abandoned(&root.join(SEGMENTS), is_mark))
        });
        let marks = marks.await.unwrap_or_default().into_iter();
        let marked = |mark: &LockedFile| marked_name(mark.path().file_name()?.to_str()?);
        marks.filter_map(|mark| Some(Hold::new(marked(&mark)?, mark))).collect()
    }

    async fn get(&self, name: &str, max_bytes: u64) -> StorageResult<Bytes> {
        let name = name.to_string();
        self.with_disk(move |disk, root| {
            let bytes = disk.read(&root.join(name), max_bytes).map_err(failed)?;
            if bytes.len() as u64 > max_bytes { Err(too_large(max_bytes)) } else { Ok(bytes.into()) }
        })
        .await
    }

    async fn exists(&self, name: &str) -> StorageResult<bool> {
        let name = name.to_string();
        self.with_disk(move |disk, root| match disk.stat(&root.join(name)) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            Err(e) => Err(failed(e)),
        })
        .await
    }

    async fn list(&self, folder: &str, after: Option<&str>) -> StorageResult<Vec<StoredFile>> {
        let folder = folder.to_string();
        let after = after.map(str::to_string);
        self.with_disk(move |disk, root| {
            let names = match disk.list(&root.join(&folder)) {
                Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
                names => names.map_err(failed)?,
            };
            let mut files = Vec::new();
            for name in names.into_iter().map(|name| format!("{folder}/{name}")) {
                if after.as_ref().is_some_and(|after| name <= *after) {
                    continue;
                }
                match disk.stat(&root.join(&name)) {
                    Ok((len_bytes, modified)) => files.push(StoredFile { name, len_bytes, modified }),
                    // The file was removed after the folder was read.
                    Err(e) if e.kind() == ErrorKind::NotFound => {}
                    Err(e) => return Err(failed(e)),
                }
            }
            Ok(files)
        })
        .await
    }

    async fn remove(&self, folder: &str, names: &[String]) -> StorageResult<()> {
        let folder = folder.to_string();
        let names = names.to_vec();
        self.with_disk(move |disk, root| {
            for name in &names {
                match disk.remove(&root.join(name)) {
                    Err(e) if e.kind() != ErrorKind::NotFound => return Err(failed(e)),
                    _ => {}
                }
            }
            if names.is_empty() { Ok(()) } else { disk.sync_folder(&root.join(folder)).map_err(failed) }
        })
        .await
    }
}

/// Returns the failure for a file that is larger than allowed.
pub(super) fn too_large(max_bytes: u64) -> StorageError {
    StorageError::Permanent(
        format!("it is larger than {max_bytes} bytes; raise max_version_bytes if it is yours").into(),
    )
}
