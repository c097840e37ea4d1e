//! The place of an export: a folder of this machine, or a prefix of an object store.
//!
//! ```text
//! FOLDER/        .writing-part-00000.jsonl ─ sync, rename ─▶ part-00000.jsonl     export.json, locked by a run
//! s3://b/train/   an upload ─ complete ───────────────────▶ part-00000.jsonl     export.json, put once
//! ```
//!
//! A file has its name when it is complete, and a run that was killed leaves others for the next one to remove. The
//! store keeps the parts of an upload until its rule for unfinished uploads removes them. It has no locks: two runs of
//! the same export at once write the same files twice, and of two different ones the second fails, as the first has
//! put `export.json`. That needs conditional puts, which living corpora need, too.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use datafusion_tadoc::Resolver;
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use tadoc_documents::display::plain;
use tadoc_session::location::{local_path, text_of};
use tadoc_session::{Failure, Outcome};

/// Name of the file that says what is exported.
pub const MANIFEST: &str = "export.json";
/// Begin of the names of files that are being written.
const WRITING: &str = ".writing-";

/// The place of the files of an export.
pub enum Place {
    /// A folder, which no other export writes to.
    Folder(Folder),
    /// A prefix of an object store.
    Prefix(Prefix),
}

impl Place {
    /// Opens the place that `output`, a path or URL, names. A folder is created if it is missing.
    ///
    /// # Errors
    /// It has files and no manifest, another export writes to the folder, or it cannot be read.
    pub async fn open(output: &Path) -> Outcome<Self> {
        match local_path(output)? {
            Some(folder) => Ok(Self::Folder(Folder::open(&folder)?)),
            None => Ok(Self::Prefix(Prefix::open(&text_of(output)).await?)),
        }
    }

    /// Returns the name of the place, for people.
    pub fn shown(&self) -> &str {
        match self {
            Self::Folder(folder) => &folder.shown,
            Self::Prefix(prefix) => &prefix.url,
        }
    }

    /// Returns the name of a file, for people.
    pub fn shown_file(&self, name: &str) -> String {
        format!("{}/{name}", self.shown().trim_end_matches('/'))
    }

    /// Returns the manifest of an export that began here; `None` if none did.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn manifest(&mut self) -> Outcome<Option<String>> {
        match self {
            Self::Folder(folder) => folder.manifest(),
            Self::Prefix(prefix) => prefix.manifest().await,
        }
    }

    /// Writes the manifest of an export that begins.
    ///
    /// # Errors
    /// It cannot be written, or another export has begun meanwhile.
    pub async fn write_manifest(&mut self, text: &str) -> Outcome {
        match self {
            Self::Folder(folder) => folder.write_manifest(text),
            Self::Prefix(prefix) => prefix.write_manifest(text).await,
        }
    }

    /// Returns the names of the files that are complete. Removes what a killed run was writing.
    ///
    /// # Errors
    /// The place cannot be listed, or an unfinished file cannot be removed.
    pub async fn complete_files(&self) -> Outcome<BTreeSet<String>> {
        match self {
            Self::Folder(folder) => folder.complete_files(),
            Self::Prefix(prefix) => prefix.names().await,
        }
    }

    /// Returns the location to which a statement writes the file `name`.
    pub fn begin(&self, name: &str) -> String {
        match self {
            Self::Folder(folder) => folder.writing(name).to_string_lossy().into_owned(),
            Self::Prefix(prefix) => format!("{}/{name}", prefix.url),
        }
    }

    /// Gives the file `name` its name, once its statement has ended. If `may_be_missing`, a file that is not there
    /// becomes an empty one.
    ///
    /// # Errors
    /// It cannot be stored or renamed.
    pub async fn complete(&self, name: &str, may_be_missing: bool) -> Outcome {
        match self {
            Self::Folder(folder) => folder.complete(name, may_be_missing),
            Self::Prefix(prefix) if may_be_missing => prefix.complete(name).await,
            Self::Prefix(_) => Ok(()),
        }
    }
}

/// A folder of this machine.
pub struct Folder {
    path: PathBuf,
    shown: String,
    /// The manifest, locked.
    file: File,
    /// The folders that are created for this export, the innermost first.
    created: Vec<PathBuf>,
    /// True if the folder has a manifest.
    has_begun: bool,
}

impl Folder {
    fn open(path: &Path) -> Outcome<Self> {
        let shown = plain(&path.to_string_lossy()).into_owned();
        let named = path.ancestors().filter(|folder| !folder.as_os_str().is_empty());
        let created = named.take_while(|folder| !folder.exists()).map(Path::to_owned).collect();
        fs::create_dir_all(path).map_err(|error| at(path, &error))?;
        let manifest = path.join(MANIFEST);
        if !manifest.exists() && fs::read_dir(path).map_err(|error| at(path, &error))?.next().is_some() {
            return Err(has_others(&shown));
        }
        let opened = File::options().read(true).write(true).create(true).truncate(false).open(&manifest);
        let file = opened.map_err(|error| at(&manifest, &error))?;
        match file.try_lock() {
            // Another run that did not begin may have removed the file before it gave the lock back.
            Ok(()) if manifest.exists() => Ok(Self { path: path.to_owned(), shown, file, created, has_begun: false }),
            Ok(()) | Err(TryLockError::WouldBlock) => {
                Err(Failure::new(format!("{shown}: another export writes to it; wait until it is done")))
            }
            Err(TryLockError::Error(error)) => Err(at(&manifest, &error)),
        }
    }

    fn manifest(&mut self) -> Outcome<Option<String>> {
        let mut text = String::new();
        self.file.read_to_string(&mut text).map_err(|error| at(&self.path.join(MANIFEST), &error))?;
        // A run that was killed before its first file may have written a part.
        self.has_begun = text.ends_with('\n');
        Ok(Some(text).filter(|_| self.has_begun))
    }

    fn write_manifest(&mut self, text: &str) -> Outcome {
        self.has_begun = true;
        let written = self.file.rewind().and_then(|()| self.file.set_len(0));
        let written = written.and_then(|()| self.file.write_all(text.as_bytes())).and_then(|()| self.file.sync_all());
        written.map_err(|error| at(&self.path.join(MANIFEST), &error))
    }

    fn complete_files(&self) -> Outcome<BTreeSet<String>> {
        let mut names = BTreeSet::new();
        for entry in fs::read_dir(&self.path).map_err(|error| at(&self.path, &error))? {
            let path = entry.map_err(|error| at(&self.path, &error))?.path();
            let name = path.file_name().unwrap_or_default();
            if name.as_encoded_bytes().starts_with(WRITING.as_bytes()) {
                fs::remove_file(&path).map_err(|error| at(&path, &error))?;
            } else {
                names.insert(name.to_string_lossy().into_owned());
            }
        }
        Ok(names)
    }

    fn writing(&self, name: &str) -> PathBuf {
        self.path.join(format!("{WRITING}{name}"))
    }

    fn complete(&self, name: &str, may_be_missing: bool) -> Outcome {
        let (writing, target) = (self.writing(name), self.path.join(name));
        if may_be_missing && !writing.exists() {
            File::create(&writing).map_err(|error| at(&writing, &error))?;
        }
        let stored = File::open(&writing).and_then(|file| file.sync_all());
        let renamed = stored.and_then(|()| fs::rename(&writing, &target));
        let kept = renamed.and_then(|()| File::open(&self.path)).and_then(|folder| folder.sync_all());
        kept.map_err(|error| at(&target, &error))
    }
}

/// Removes the folder of an export that did not begin.
impl Drop for Folder {
    fn drop(&mut self) {
        if self.has_begun {
            return;
        }
        // What cannot be removed is an empty file, with which the next export begins.
        let _ = fs::remove_file(self.path.join(MANIFEST));
        for folder in &self.created {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// A prefix of an object store.
pub struct Prefix {
    store: Arc<dyn ObjectStore>,
    path: ObjectPath,
    /// The URL without a slash at its end.
    url: String,
}

impl Prefix {
    async fn open(url: &str) -> Outcome<Self> {
        let url = url.trim_end_matches('/').to_owned();
        if url.starts_with("http:") || url.starts_with("https:") {
            return Err(Failure::new(format!(
                "{url}: files are read over HTTP, not written; name a folder, or a prefix such as s3://bucket/train"
            )));
        }
        if url.ends_with(':') {
            return Err(Failure::new(format!("{url}//: expected the name of a bucket, as in s3://bucket/train")));
        }
        let (store, manifest) = Resolver::default().object(&format!("{url}/{MANIFEST}"))?;
        let path = manifest.parent().unwrap_or_default();
        let prefix = Self { store, path, url };
        let names = prefix.names().await?;
        if !names.is_empty() && !names.contains(MANIFEST) {
            return Err(has_others(&prefix.url));
        }
        Ok(prefix)
    }

    fn object(&self, name: &str) -> ObjectPath {
        self.path.clone().join(name)
    }

    fn failed(&self, name: &str, error: &Error) -> Failure {
        Failure::with_cause(format!("{}/{name}", self.url), error)
    }

    async fn manifest(&self) -> Outcome<Option<String>> {
        let read = async { self.store.get(&self.object(MANIFEST)).await?.bytes().await };
        match read.await {
            Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).into_owned())),
            Err(Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed(MANIFEST, &error)),
        }
    }

    async fn write_manifest(&self, text: &str) -> Outcome {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        match self.store.put_opts(&self.object(MANIFEST), bytes.into(), options).await {
            Ok(_) => Ok(()),
            Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => {
                Err(Failure::new(format!("{}: another export has begun there; call the command again", self.url)))
            }
            Err(error) => Err(self.failed(MANIFEST, &error)),
        }
    }

    /// Returns the names of the objects and prefixes below this one.
    async fn names(&self) -> Outcome<BTreeSet<String>> {
        let listed = self.store.list_with_delimiter(Some(&self.path)).await;
        let listed = listed.map_err(|error| Failure::with_cause(&self.url, &error))?;
        let objects = listed.objects.into_iter().map(|object| object.location);
        let paths = objects.chain(listed.common_prefixes);
        // An object for the prefix itself, which some programs make of a folder, is none of its files.
        let names = paths.filter(|path| *path != self.path);
        Ok(names.filter_map(|path| path.filename().map(str::to_owned)).collect())
    }

    /// Puts an empty object `name` if there is none.
    async fn complete(&self, name: &str) -> Outcome {
        let path = self.object(name);
        match self.store.head(&path).await {
            Ok(_) => Ok(()),
            Err(Error::NotFound { .. }) => {
                let put = self.store.put(&path, Bytes::new().into()).await;
                put.map(|_| ()).map_err(|error| self.failed(name, &error))
            }
            Err(error) => Err(self.failed(name, &error)),
        }
    }
}

fn has_others(place: &str) -> Failure {
    Failure::new(format!("{place}: has files of something else; choose a folder that is empty or new"))
}

fn at(path: &Path, error: &std::io::Error) -> Failure {
    Failure::with_cause(plain(&path.to_string_lossy()), error)
}
