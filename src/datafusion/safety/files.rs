//! The store of local files of a guarded session: the files below the allowed roots, and their paths and versions as
//! object stores write them.
//!
//! It addresses files as `object_store`'s local file system does, and gives them the same versions. Links to folders
//! are followed inside the roots, except to a folder above.

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::{Path as DiskPath, PathBuf};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use crate::safety::Sandbox;
use crate::safety::refusal::{Refusal, Refused};
use crate::safety::roots::{Entry, Rooted, Stat};
use tadoc::format::path_text;

/// The whole local file system. Only its names of files are used, and its writes after a check.
static DISK: LazyLock<LocalFileSystem> = LazyLock::new(LocalFileSystem::new);

/// Store of the files below the roots of a sandbox.
#[derive(Debug, Clone)]
pub(super) struct RootedFiles {
    sandbox: Sandbox,
}

impl RootedFiles {
    pub(super) fn new(sandbox: Sandbox) -> Self {
        Self { sandbox }
    }

    fn find(&self, location: &Path) -> Result<Rooted> {
        Ok(self.sandbox.roots.find(&disk_path(location)?)?)
    }

    fn open(&self, location: &Path) -> Result<(File, Stat)> {
        self.find(location)?.open().map_err(|error| failed(location, error))
    }

    fn get(&self, location: Path, options: &GetOptions) -> Result<GetResult> {
        let (file, stat) = self.open(&location)?;
        let path = disk_path(&location)?;
        let meta = ObjectMeta { location, ..meta_at(&path, &stat) };
        options.check_preconditions(&meta)?;
        let range = match &options.range {
            Some(range) => range.as_range(meta.size).map_err(|error| {
                let source = Box::new(error);
                Error::Generic { store: "RootedFiles", source }
            })?,
            None => 0..meta.size,
        };
        let payload = GetResultPayload::File(file, path);
        Ok(GetResult { payload, meta, range, attributes: Attributes::default() })
    }

    fn read(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let (mut file, stat) = self.open(location)?;
        let mut read = |range: &Range<u64>| -> io::Result<Bytes> {
            // The length bounds the memory that a wrong range takes.
            let end = range.end.min(stat.len_bytes);
            let len_bytes = end.checked_sub(range.start).filter(|len_bytes| *len_bytes > 0);
            let len_bytes =
                len_bytes.ok_or_else(|| io::Error::other(format!("range {range:?} of {} bytes", stat.len_bytes)))?;
            let mut bytes = vec![0; len_bytes as usize];
            file.seek(SeekFrom::Start(range.start))?;
            file.read_exact(&mut bytes)?;
            Ok(bytes.into())
        };
        let read = ranges.iter().map(&mut read).collect::<io::Result<_>>();
        read.map_err(|error| failed(location, error))
    }

    /// Returns the entries of the folder `location`.
    fn entries(&self, location: &Path) -> Result<Vec<(Path, Entry)>> {
        let folder = if location.as_ref().is_empty() { PathBuf::from("/") } else { folder_path(location)? };
        let rooted = self.sandbox.roots.find(&folder)?;
        let entries = rooted.entries(&self.sandbox.roots);
        let entries = entries.map_err(|error| failed(location, error))?;
        // Files whose names the store cannot say are left out, as in `object_store`.
        let named = |entry: Entry| {
            let name = Path::from_absolute_path(&entry.path).ok()?;
            let is_addressed = entry.stat.is_folder || DISK.path_to_filesystem(&name).is_ok();
            is_addressed.then_some((name, entry))
        };
        Ok(entries.into_iter().filter_map(named).collect())
    }

    /// Adds the files below the folder `location` to `files`. `above` holds the real paths of the
    /// folders above.
    fn walk(&self, location: &Path, above: &mut Vec<PathBuf>, files: &mut Vec<ObjectMeta>) -> Result<()> {
        let real = if location.as_ref().is_empty() {
            PathBuf::from("/")
        } else {
            self.sandbox.roots.find(&folder_path(location)?)?.real()
        };
        if above.contains(&real) {
            return Ok(()); // a link to a folder above
        }
        above.push(real);
        for (name, entry) in self.entries(location)? {
            if entry.stat.is_folder {
                self.walk(&name, above, files)?
            } else {
                files.push(ObjectMeta { location: name, ..meta_at(&entry.path, &entry.stat) });
            }
        }
        above.pop();
        Ok(())
    }

    /// Checks that the file `location` may be written.
    async fn check_write(&self, location: &Path) -> Result<()> {
        self.sandbox.check_write(format!("writing /{location}"))?;
        let this = self.clone();
        let location = location.clone();
        blocking(move || {
            let path = disk_path(&location)?;
            this.sandbox.roots.check(&path)?;
            // A link in place of the file would be replaced, or followed.
            if path.is_symlink() {
                Err(Refused::new(Refusal::Place, format!("the link /{location}")).into())
            } else {
                Ok(())
            }
        })
        .await
    }
}

fn disk_path(location: &Path) -> Result<PathBuf> {
    DISK.path_to_filesystem(location)
}

/// Returns the path of a folder, whose name may end as those of staged files of `object_store` do.
fn folder_path(location: &Path) -> Result<PathBuf> {
    let inside = location.clone().join("x");
    let inside = disk_path(&inside)?;
    Ok(inside.parent().map_or_else(|| PathBuf::from("/"), DiskPath::to_owned))
}

fn meta_at(path: &DiskPath, stat: &Stat) -> ObjectMeta {
    meta_of(path, stat.number, stat.modified, stat.len_bytes)
}

fn failed(location: &Path, error: io::Error) -> Error {
    let path = format!("/{location}");
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Error::NotFound { path, source: Box::new(error) },
        io::ErrorKind::PermissionDenied => Error::PermissionDenied { path, source: Box::new(error) },
        _ => Error::Generic { store: "RootedFiles", source: Box::new(error) },
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await?
}

impl fmt::Display for RootedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RootedFiles")
    }
}

#[async_trait]
impl ObjectStore for RootedFiles {
    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        let this = self.clone();
        let location = location.clone();
        blocking(move || this.get(location, &options)).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        let this = self.clone();
        let location = location.clone();
        let ranges = ranges.to_vec();
        blocking(move || this.read(&location, &ranges)).await
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let this = self.clone();
        let prefix = prefix.cloned().unwrap_or_default();
        let listing = blocking(move || {
            let mut files = Vec::new();
            this.walk(&prefix, &mut Vec::new(), &mut files)?;
            Ok(stream::iter(files.into_iter().map(Ok)))
        });
        listing.into_stream().try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let this = self.clone();
        let prefix = prefix.cloned().unwrap_or_default();
        let entries = blocking(move || this.entries(&prefix)).await?;
        let mut listed = ListResult { common_prefixes: Vec::new(), objects: Vec::new() };
        for (location, entry) in entries {
            if entry.stat.is_folder {
                listed.common_prefixes.push(location)
            } else {
                let meta = meta_at(&entry.path, &entry.stat);
                listed.objects.push(ObjectMeta { location, ..meta });
            }
        }
        Ok(listed)
    }

    async fn put_opts(&self, location: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        self.check_write(location).await?;
        DISK.put_opts(location, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.check_write(location).await?;
        DISK.put_multipart_opts(location, options).await
    }

    fn delete_stream(&self, _: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        Refused::new(Refusal::Write, "removing local files").into_stream()
    }

    async fn copy_opts(&self, _: &Path, to: &Path, _: CopyOptions) -> Result<()> {
        Err(Refused::new(Refusal::Write, format!("copying to /{to}")).into())
    }
}

/// Returns the path in a store of the absolute `path`. A path that a store cannot represent is
/// escaped.
pub(crate) fn store_path(path: &DiskPath) -> Path {
    Path::from_absolute_path(path).unwrap_or_else(|_| Path::from(text_of(path)))
}

/// Returns `path` as text, escaped where it is none.
pub(crate) fn text_of(path: &DiskPath) -> String {
    path_text(path.as_os_str().as_encoded_bytes()).into_owned()
}

/// Builds the metadata as the session's store does, so that a file has the same version either way.
pub(crate) fn meta_of(path: &DiskPath, number: u64, modified: SystemTime, size: u64) -> ObjectMeta {
    let micros = modified.duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
    ObjectMeta {
        location: store_path(path),
        last_modified: modified.into(),
        size,
        e_tag: Some(format!("{number:x}-{micros:x}-{size:x}")),
        version: None,
    }
}
