//! Files of the local disk, with any name and any length that the file system reports.
//!
//! DataFusion's store addresses a file by text without control characters. If a folder contains one
//! other name, the store lists nothing of the folder. It skips names that end in `#` and digits. It
//! trusts reported lengths, but files of `/proc` report 0. So this module lists folders itself, and
//! a file that the store cannot read gets a store of its own, a [`DiskFile`]:
//!
//! ```text
//! location ─▶ find, list ─▶ FoundFile ─┬─ most files         the session's store for file://
//!                                      └─ names, no length   DiskFile
//! ```
//!
//! Names become text by [`path_text`], one to one. Links are followed, as in that store, except
//! links to a folder above. A listing takes O(entries of the folders that it reads) time.

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::{Path as DiskPath, PathBuf};
use std::time::UNIX_EPOCH;

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{
    Attributes, CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use crate::corpora::glob::Glob;
use crate::safety::{meta_of, text_of};
use tadoc::format::path_bytes;

/// Folder of the versions of a living corpus.
pub(crate) const VERSIONS: &str = "versions";
/// End of the names of files of versions.
pub(crate) const VERSION_EXTENSION: &str = ".tadoc-version";
/// Maximum number of bytes read from a file of unknown length.
const MAX_UNKNOWN_BYTES: u64 = i32::MAX as u64 + 1;

/// A file that a location resolves to.
#[derive(Debug)]
pub(crate) struct FoundFile {
    /// Name, relative to the folder that was listed.
    pub(crate) relative: String,
    /// Path in the store, length and version.
    pub(crate) meta: ObjectMeta,
    /// Store of the file if the session's store cannot read it.
    pub(crate) on_disk: Option<DiskFile>,
}

/// Returns the path on disk that `location` names. Escapes, as in shown paths, are undone if a file
/// with that name exists; otherwise the location is taken literally.
pub(crate) fn disk_path(location: &str) -> PathBuf {
    let unescaped = match path_bytes(location) {
        Cow::Borrowed(_) => None,
        Cow::Owned(name) => path_of(name).filter(|path| path.exists()),
    };
    unescaped.unwrap_or_else(|| PathBuf::from(location))
}

#[cfg(unix)]
fn path_of(name: Vec<u8>) -> Option<PathBuf> {
    use std::os::unix::ffi::OsStringExt;
    Some(PathBuf::from(std::ffi::OsString::from_vec(name)))
}

#[cfg(not(unix))]
fn path_of(name: Vec<u8>) -> Option<PathBuf> {
    String::from_utf8(name).ok().map(PathBuf::from)
}

/// Returns true if the session's store finds the file `path`.
fn is_addressed(path: &DiskPath) -> bool {
    let Ok(in_store) = Path::from_absolute_path(path) else { return false };
    let name = in_store.filename().unwrap_or_default();
    let (_, suffix) = name.split_once('#').unwrap_or_default();
    suffix.is_empty() || !suffix.bytes().all(|byte| byte.is_ascii_digit())
}

/// Finds the file or pipe at `path`; `None` for a folder, or if nothing exists there.
///
/// # Errors
/// An error for a device, which may never end.
pub(crate) async fn find(path: PathBuf) -> io::Result<Option<FoundFile>> {
    let find = move || match fs::metadata(&path) {
        Ok(metadata) if metadata.is_dir() => Ok(None),
        Ok(metadata) if is_device(&metadata) => {
            Err(io::Error::other("it is a device, which may never end; write the part that is meant to a file"))
        }
        Ok(metadata) => Ok(Some(local_file(String::new(), path, &metadata))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    tokio::task::spawn_blocking(find).await?
}

/// Lists the files below `folder`; none if the folder does not exist. With a `glob` from `folder` on, it
/// reads only folders that the glob can match in. Beside those it lists one version of each living
/// corpus, which shows that there is one.
///
/// # Errors
/// An error for a folder that has to be read and cannot.
pub(crate) async fn list(folder: PathBuf, glob: Option<Glob>) -> io::Result<Vec<FoundFile>> {
    let list = move || {
        let mut listing = Listing { glob, above: Vec::new(), files: Vec::new() };
        if folder.is_dir() { listing.folder(&folder, "").map(|()| listing.files) } else { Ok(Vec::new()) }
    };
    tokio::task::spawn_blocking(list).await?
}

struct Listing {
    glob: Option<Glob>,
    /// Real paths of the folders above.
    above: Vec<PathBuf>,
    files: Vec<FoundFile>,
}

impl Listing {
    fn folder(&mut self, folder: &DiskPath, relative: &str) -> io::Result<()> {
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", text_of(folder)));
        let opened = folder.canonicalize().and_then(|real| Ok((real, folder.read_dir()?)));
        let (real, entries) = match opened {
            Ok(opened) => opened,
            // The folder was removed meanwhile.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(failed(error)),
        };
        if self.above.contains(&real) {
            return Ok(()); // a link to a folder above
        }
        self.above.push(real);
        for entry in entries {
            let entry = entry.map_err(failed)?;
            let path = entry.path();
            let name = format!("{relative}{}", text_of(DiskPath::new(&entry.file_name())));
            // A broken link, or a file that was removed meanwhile.
            let Ok(metadata) = fs::metadata(&path) else { continue };
            if metadata.is_dir() {
                if self.glob.as_ref().is_none_or(|glob| glob.enters(&name)) {
                    self.folder(&path, &format!("{name}/"))?;
                } else if entry.file_name() == VERSIONS {
                    self.version(&path, &name);
                }
            } else if metadata.is_file() {
                self.files.push(local_file(name, path, &metadata));
            }
        }
        self.above.pop();
        Ok(())
    }

    /// Adds one file of a version in `folder`, if there is one. Nothing else in it is wanted, so it
    /// may be unreadable.
    fn version(&mut self, folder: &DiskPath, relative: &str) {
        let mut entries = folder.read_dir().into_iter().flatten().flatten();
        let is_version = |entry: &fs::DirEntry| text_of(&entry.path()).ends_with(VERSION_EXTENSION);
        if let Some(entry) = entries.find(is_version)
            && let Ok(metadata) = entry.metadata()
        {
            let name = format!("{relative}/{}", text_of(DiskPath::new(&entry.file_name())));
            self.files.push(local_file(name, entry.path(), &metadata));
        }
    }
}

fn local_file(relative: String, path: PathBuf, metadata: &Metadata) -> FoundFile {
    let meta = meta_from(&path, metadata);
    let is_known = metadata.is_file() && metadata.len() > 0 && is_addressed(&path);
    FoundFile { relative, meta, on_disk: (!is_known).then_some(DiskFile { path }) }
}

fn meta_from(path: &DiskPath, metadata: &Metadata) -> ObjectMeta {
    let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
    meta_of(path, file_number(metadata), modified, metadata.len())
}

#[cfg(unix)]
fn file_number(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn file_number(_metadata: &Metadata) -> u64 {
    0
}

#[cfg(unix)]
fn is_device(metadata: &Metadata) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let file_type = metadata.file_type();
    file_type.is_char_device() || file_type.is_block_device()
}

#[cfg(not(unix))]
fn is_device(_metadata: &Metadata) -> bool {
    false
}

/// Read-only store of one file. Ignores the path in requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DiskFile {
    path: PathBuf,
}

impl fmt::Display for DiskFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DiskFile({})", text_of(&self.path))
    }
}

impl DiskFile {
    /// Creates a store for `path`; `None` if the session's store finds the file.
    pub(crate) fn from_path(path: PathBuf) -> Option<Self> {
        (!is_addressed(&path)).then_some(Self { path })
    }

    /// Returns the path, as messages show it. [`disk_path`] reads it again.
    pub(crate) fn shown(&self) -> String {
        text_of(&self.path)
    }

    fn open(&self, options: &GetOptions) -> io::Result<GetResult> {
        let mut file = File::open(&self.path)?;
        let metadata = file.metadata()?;
        let mut meta = meta_from(&self.path, &metadata);
        let mut payload = None;
        if meta.size == 0 {
            let mut bytes = Vec::new();
            (&mut file).take(MAX_UNKNOWN_BYTES).read_to_end(&mut bytes)?;
            meta.size = bytes.len() as u64;
            payload = Some(bytes);
        }
        let range = match &options.range {
            Some(range) => range.as_range(meta.size).map_err(io::Error::other)?,
            None => 0..meta.size,
        };
        let payload = match payload {
            Some(bytes) => {
                let bytes = bytes[range.start as usize..range.end as usize].to_vec().into();
                GetResultPayload::Stream(stream::iter([Ok(bytes)]).boxed())
            }
            None => GetResultPayload::File(file, self.path.clone()),
        };
        Ok(GetResult { payload, meta, range, attributes: Attributes::default() })
    }

    fn refused<T>(&self) -> object_store::Result<T> {
        let source = "one file, to be read".into();
        Err(Error::NotSupported { source })
    }
}

#[async_trait]
impl ObjectStore for DiskFile {
    async fn get_opts(&self, _: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let file = self.clone();
        let opened = tokio::task::spawn_blocking(move || file.open(&options)).await?;
        opened.map_err(|error| {
            let source = Box::new(error);
            Error::Generic { store: "DiskFile", source }
        })
    }

    async fn put_opts(&self, _: &Path, _: PutPayload, _: PutOptions) -> object_store::Result<PutResult> {
        self.refused()
    }

    async fn put_multipart_opts(
        &self,
        _: &Path,
        _: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.refused()
    }

    fn delete_stream(
        &self,
        _: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        stream::iter([self.refused()]).boxed()
    }

    fn list(&self, _: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        stream::iter([self.refused()]).boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> object_store::Result<ListResult> {
        self.refused()
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> object_store::Result<()> {
        self.refused()
    }
}
