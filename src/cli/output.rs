//! The output of commands: files and objects that become visible when they are complete, and messages to the user.
//!
//! ```text
//! path, file://  a file beside its final name ─▶ sync ─▶ rename
//! s3://, gs://   parts of an upload ─▶ complete           (see [`Upload`])
//! ```
//!
//! A reader sees either the old file or the whole new one. Errors and Ctrl-C leave nothing behind. A temporary file
//! that `kill -9` leaves is removed by the next output in the same folder ([`StagedFile`]).
//!
//! The parts of an object are sent as they fill:
//!
//! ```text
//! write ─▶ buffer of a part ─▶ up to 4 parts in flight ─▶ persist: complete, or put a single part
//! ```
//!
//! Memory: the buffered parts. If the output fits into one part, the store itself refuses a name
//! that is taken. For a larger output, this module checks the name before it completes the upload.
//! If two writers complete in between, the later one wins. An interrupt aborts the upload. After
//! `kill -9` the store keeps invisible parts until its rule for unfinished uploads removes them.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use datafusion_tadoc::check_writable;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutResult, WriteMultipart};
use tadoc_session::location::{is_living_folder, local_path, text_of};
use tadoc_session::{BlockingResolver, Failure, Outcome, interrupt};
use tadoc_store::staging::StagedFile;

/// Writes a line to standard output.
///
/// # Errors
/// Standard output cannot be written. If its reader has gone, the [`Failure`] is silent.
pub fn say(line: impl Display) -> Outcome {
    Ok(writeln!(io::stdout().lock(), "{line}")?)
}

/// Writes the file `path` in one step; see [`Output`].
///
/// # Errors
/// The errors of [`Output::create`], or the file cannot be written. `path` is unchanged then.
pub fn write_file(path: &Path, bytes: &[u8], replace: bool) -> Outcome {
    let mut output = LocalFile::create(path, replace)?;
    output
        .write_all(bytes)
        .map_err(|error| Failure::with_cause(format!("{}: cannot write", path.display()), &error))?;
    output.persist()
}

/// An output that is not yet visible under its name.
pub enum Output {
    /// A file on the local disk.
    File(LocalFile),
    /// An object in an object store.
    Object(Upload),
}

impl Output {
    /// Starts a corpus with the final name `path`, a path or URL.
    ///
    /// # Errors
    /// `path` is a folder or a device, it exists and `replace` is false, or it cannot be written.
    pub fn create(path: &Path, replace: bool) -> Outcome<Self> {
        let Some(local) = local_path(path)? else {
            return Ok(Self::Object(Upload::create(path, replace)?));
        };
        check_corpus(&local)?;
        Ok(Self::File(LocalFile::create(&local, replace)?))
    }

    /// Makes the bytes durable and gives the output its final name.
    ///
    /// # Errors
    /// The output cannot be completed. The old file, if any, is then unchanged.
    pub fn persist(self) -> Outcome {
        match self {
            Self::File(file) => file.persist(),
            Self::Object(upload) => upload.persist(),
        }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Object(upload) => upload.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Object(upload) => upload.flush(),
        }
    }
}

/// A file on the local disk that is not yet visible under its name.
pub struct LocalFile {
    file: StagedFile,
    path: PathBuf,
    replace: bool,
}

impl LocalFile {
    fn create(path: &Path, replace: bool) -> Outcome<Self> {
        check_name(path, replace)?;
        // For a symbolic link, the target is replaced and not the link.
        let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let path = target.as_path();
        let failed = |error: io::Error| Failure::with_cause(format!("{}: cannot write", path.display()), &error);
        let file = interrupt::protect(|| StagedFile::create(path)).map_err(failed)?;
        file.probe().map_err(failed)?;
        Ok(Self { file, path: path.to_owned(), replace })
    }

    fn persist(self) -> Outcome {
        let Self { file, path, replace } = self;
        let failed = |error: io::Error| Failure::with_cause(format!("{}: cannot write", path.display()), &error);
        file.file().sync_all().map_err(failed)?;
        interrupt::finish(|| file.complete(replace)).map_err(failed)?;
        // Without this sync a power failure may lose the new name. Some file systems refuse to sync
        // a folder. The file itself is complete, so a refusal is not a failure.
        let _ = File::open(folder_of(&path)).and_then(|folder| folder.sync_all());
        Ok(())
    }
}

impl Write for LocalFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Checks that the name of a corpus file is not a folder.
fn check_corpus(path: &Path) -> Outcome {
    let shown = path.display();
    if is_living_folder(path) {
        return Err(Failure::new(format!("{shown} is a place of living corpora; pass --append to add to it")));
    }
    let folder = folder_of(path);
    if is_living_folder(folder) {
        let folder = folder.display();
        return Err(Failure::new(format!(
            "{shown} lies in the living corpus {folder}, whose readers would not see the file; pass -o \
             {folder} --append to add to it"
        )));
    }
    if path.is_dir() {
        let example = path.join("corpus.tadoc");
        let example = example.display();
        return Err(Failure::new(format!("{shown} is a folder; name a file, such as -o {example}")));
    }
    Ok(())
}

/// Checks that an output can be written, before any work is done for it.
///
/// # Errors
/// `path` is a folder or a device, it exists and `replace` is false, its folder does not exist or cannot be
/// written, or the disk is full.
pub fn check_file(path: &Path, replace: bool) -> Outcome {
    LocalFile::create(path, replace).map(|_not_needed| ())
}

/// Checks the name of an output.
fn check_name(path: &Path, replace: bool) -> Outcome {
    let shown = path.display();
    if path.is_dir() {
        return Err(Failure::new(format!("{shown} is a folder; name a file")));
    }
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(Failure::new(format!("{shown} is no ordinary file; name a new file")));
    }
    if path.symlink_metadata().is_ok() && !replace {
        return Err(Failure::new(format!("{shown} exists; choose another name or pass --force")));
    }
    let folder = folder_of(path);
    if !folder.is_dir() {
        let folder = folder.display();
        return Err(Failure::new(format!("{shown}: the folder {folder} does not exist; create it first")));
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Bytes of a part. Stores accept 10,000 parts.
const PART_BYTES: usize = 16 << 20;
/// Maximum number of parts in flight.
const MAX_PARTS: usize = 4;

/// An object that is not yet visible.
pub struct Upload {
    resolver: BlockingResolver,
    store: Arc<dyn ObjectStore>,
    path: object_store::path::Path,
    shown: String,
    replace: bool,
    part_bytes: usize,
    buffer: Vec<u8>,
    parts: Option<WriteMultipart>,
}

impl Upload {
    /// Starts an object with the final name `url`.
    ///
    /// # Errors
    /// `url` is not the URL of a corpus in a writable store, or it exists and `replace` is false.
    pub fn create(url: &Path, replace: bool) -> Outcome<Self> {
        let shown = text_of(url).into_owned();
        if shown.starts_with("http:") || shown.starts_with("https:") {
            return Err(Failure::new(format!(
                "{shown}: corpora are read over HTTP, not written; name a file, or an object such as \
                 s3://bucket/notes.tadoc"
            )));
        }
        if !shown.ends_with(".tadoc") {
            return Err(Failure::new(format!(
                "{shown}: expected a name that ends with .tadoc, such as {}/notes.tadoc; --append \
                 adds to a living corpus",
                shown.trim_end_matches('/')
            )));
        }
        let resolver = BlockingResolver::new()?;
        let (store, path) = resolver.inner.object(&shown)?;
        let part_bytes = PART_BYTES;
        let buffer = Vec::new();
        let parts = None;
        let upload = Self { resolver, store, path, shown, replace, part_bytes, buffer, parts };
        upload.check_free()?;
        upload.check_writable()?;
        interrupt::ask_first();
        Ok(upload)
    }

    /// Checks that the store takes the object, before any input is read for it.
    fn check_writable(&self) -> Outcome {
        let checked = self.resolver.wait(check_writable(&self.store, &self.path));
        checked.map_err(|error| Failure::from(error).within(format!("{}: cannot write", self.shown)))
    }

    /// Completes the object and makes it visible.
    pub fn persist(mut self) -> Outcome {
        let outcome = if self.parts.is_some() {
            self.check_free().and_then(|()| {
                self.send().map_err(|error| self.failed(&error))?;
                match self.parts.take() {
                    Some(parts) => self.resolver.wait(parts.finish()).map_err(|e| self.failed(&e)),
                    None => Ok(PutResult { e_tag: None, version: None }),
                }
            })
        } else {
            self.put()
        };
        outcome.map(|_| ())
    }

    /// Writes an output that fits into one part.
    fn put(&mut self) -> Outcome<PutResult> {
        let mode = if self.replace { PutMode::Overwrite } else { PutMode::Create };
        let options = PutOptions { mode, ..PutOptions::default() };
        let bytes = Bytes::from(std::mem::take(&mut self.buffer));
        let put = self.store.put_opts(&self.path, bytes.into(), options);
        self.resolver.wait(put).map_err(|error| match error {
            Error::AlreadyExists { .. } | Error::Precondition { .. } => self.taken(),
            error => self.failed(&error),
        })
    }

    fn check_free(&self) -> Outcome {
        if self.replace {
            return Ok(());
        }
        match self.resolver.wait(self.store.head(&self.path)) {
            Ok(_) => Err(self.taken()),
            Err(Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(Failure::with_cause(format!("{}: cannot look it up", self.shown), &error)),
        }
    }

    fn taken(&self) -> Failure {
        Failure::new(format!("{} exists; choose another name or pass --force", self.shown))
    }

    fn failed(&self, error: &(dyn std::error::Error + 'static)) -> Failure {
        Failure::with_cause(format!("{}: cannot write", self.shown), error)
    }

    /// Sends the buffer as one part.
    fn send(&mut self) -> io::Result<()> {
        let part = Bytes::from(std::mem::take(&mut self.buffer));
        let sent = async {
            let mut parts = match self.parts.take() {
                Some(parts) => parts,
                None => {
                    let begun = self.store.put_multipart(&self.path).await?;
                    WriteMultipart::new_with_chunk_size(begun, self.part_bytes)
                }
            };
            let free = parts.wait_for_capacity(MAX_PARTS).await;
            if free.is_ok() {
                parts.put(part);
            }
            self.parts = Some(parts);
            free
        };
        self.resolver.wait(sent).map_err(io::Error::other)
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() >= self.part_bytes {
            self.send()?;
        }
        let len = bytes.len().min(self.part_bytes - self.buffer.len());
        self.buffer.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            // If the store cannot abort, the object remains invisible anyway.
            let _aborted = self.resolver.wait(parts.abort());
        }
    }
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    const PART: usize = 100;

    fn upload(store: &Arc<dyn ObjectStore>, replace: bool) -> Upload {
        let resolver = BlockingResolver::new().unwrap();
        let store = Arc::clone(store);
        let (path, shown) = ("c.tadoc".into(), "s3://b/c.tadoc".to_owned());
        let part_bytes = PART;
        let buffer = Vec::new();
        let parts = None;
        Upload { resolver, store, path, shown, replace, part_bytes, buffer, parts }
    }

    fn stored(store: &Arc<dyn ObjectStore>) -> Option<Vec<u8>> {
        let get = async { store.get(&"c.tadoc".into()).await?.bytes().await };
        BlockingResolver::new().unwrap().wait(get).ok().map(Into::into)
    }

    #[test]
    fn an_object_of_any_size_shows_when_it_is_complete() {
        for len_bytes in [0, 1, PART - 1, PART, PART + 1, 7 * PART, 12 * PART + 5] {
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let bytes: Vec<u8> = (0..len_bytes).map(|i| (i % 251) as u8).collect();
            let mut given_up = upload(&store, false);
            given_up.write_all(&bytes).unwrap();
            drop(given_up);
            let mut whole = upload(&store, false);
            whole.write_all(&bytes).unwrap();
            assert_eq!(stored(&store), None, "{len_bytes}");
            whole.persist().unwrap();
            assert_eq!(stored(&store).as_ref(), Some(&bytes), "{len_bytes}");
        }
    }

    #[test]
    fn what_came_first_stays_unless_it_is_to_be_replaced() {
        for len_bytes in [PART / 2, 3 * PART] {
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let write = |replace, byte: u8| {
                let mut upload = upload(&store, replace);
                upload.write_all(&vec![byte; len_bytes]).unwrap();
                upload
            };
            let first = write(false, 1);
            let second = write(false, 2);
            first.persist().unwrap();
            let refused = second.persist().unwrap_err().into_text();
            assert_eq!(refused, "s3://b/c.tadoc exists; choose another name or pass --force");
            assert_eq!(stored(&store), Some(vec![1; len_bytes]));
            write(true, 3).persist().unwrap();
            assert_eq!(stored(&store), Some(vec![3; len_bytes]));
        }
    }
}
