//! An output in an object store: sends parts as they fill, and shows the object when it is
//! complete.
//!
//! ```text
//! write ─▶ buffer of a part ─▶ up to 4 parts in flight ─▶ persist: complete, or put a single part
//! ```
//!
//! Memory: the buffered parts. If the output fits into one part, the store itself refuses a name
//! that is taken. For a larger output, this module checks the name before it completes the upload.
//! If two writers complete in between, the later one wins. An interrupt aborts the upload. After
//! `kill -9` the store keeps invisible parts until its rule for unfinished uploads removes them.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use datafusion_tadoc::check_writable;
use object_store::{
    Error, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutResult, WriteMultipart,
};
use tadoc_session::location::text_of;
use tadoc_session::{BlockingResolver, Failure, Outcome, interrupt};

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
        let (part_bytes, buffer, parts) = (PART_BYTES, Vec::new(), None);
        let upload = Self { resolver, store, path, shown, replace, part_bytes, buffer, parts };
        upload.check_free()?;
        upload.check_writable()?;
        interrupt::ask_first();
        Ok(upload)
    }

    /// Checks that the store takes the object, before any input is read for it.
    fn check_writable(&self) -> Outcome {
        let checked = self.resolver.wait(check_writable(&self.store, &self.path));
        checked
            .map_err(|error| Failure::from(error).within(format!("{}: cannot write", self.shown)))
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
            Err(error) => {
                Err(Failure::with_cause(format!("{}: cannot look it up", self.shown), &error))
            }
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
        let (resolver, store) = (BlockingResolver::new().unwrap(), Arc::clone(store));
        let (path, shown) = ("c.tadoc".into(), "s3://b/c.tadoc".to_owned());
        let (part_bytes, buffer, parts) = (PART, Vec::new(), None);
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
            let (first, second) = (write(false, 1), write(false, 2));
            first.persist().unwrap();
            let refused = second.persist().unwrap_err().into_text();
            assert_eq!(refused, "s3://b/c.tadoc exists; choose another name or pass --force");
            assert_eq!(stored(&store), Some(vec![1; len_bytes]));
            write(true, 3).persist().unwrap();
            assert_eq!(stored(&store), Some(vec![3; len_bytes]));
        }
    }
}
