//! Corpora by location: finds the corpora behind a path or URL, and reads them.
//!
//! The library resolves locations in the same way as for SQL. This module adds the waiting.

use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use datafusion::error::Result;
use datafusion_tadoc::{FileAt, Found, Resolver};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tadoc::Corpus;
use tadoc::format::{FileFooter, OpenLimits};
use tadoc_documents as documents;
use tadoc_store::{LivingStore, Part, StoreOptions};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

use crate::failure::{Failure, Outcome};
use crate::location::{is_living_folder, text_of};
use crate::session::runtime;

/// Resolver of locations that waits for results. Clones share threads and stores.
#[derive(Debug, Clone)]
pub struct BlockingResolver {
    /// The library's resolver of locations.
    pub inner: Resolver,
    runtime: Arc<Runtime>,
}

/// The corpora at a location.
#[derive(Debug, Clone)]
pub enum Corpora {
    /// A living corpus.
    Living(LivingStore),
    /// Corpus files, at least one of them.
    Files(Vec<StoredFile>),
}

impl BlockingResolver {
    /// Starts the threads that run asynchronous reads.
    ///
    /// # Errors
    /// The system cannot start the threads.
    pub fn new() -> Outcome<Self> {
        Ok(Self { inner: Resolver::default(), runtime: Arc::new(runtime()?) })
    }

    /// Waits for `future` and returns its output.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Returns the corpora at `location`.
    ///
    /// `version` must be `None` unless `location` is a living corpus: only living corpora have
    /// versions.
    ///
    /// # Errors
    /// Nothing is at `location`, it cannot be looked up, or `version` is given for corpus files.
    pub fn corpora(&self, location: &Path, version: Option<u64>) -> Outcome<Corpora> {
        // This path keeps the name that the user typed, which messages repeat.
        if is_living_folder(location) {
            let storage = self.inner.storage(location)?;
            let store = self.wait(LivingStore::open(storage, StoreOptions::default()))?;
            return Ok(Corpora::Living(store));
        }
        match (self.wait(self.inner.corpora(&text_of(location)))?, version) {
            (Found::Living(store), _) => Ok(Corpora::Living(store)),
            (Found::Files(_), Some(_)) => Err(Failure::new(format!(
                "{} is no living corpus and has no versions; leave out --version",
                location.display()
            ))),
            (Found::Files(files), None) => {
                let stored = |file| StoredFile { file, resolver: self.clone() };
                Ok(Corpora::Files(files.into_iter().map(stored).collect()))
            }
        }
    }

    /// Returns all files at the URL `location`, ordered by name. There is at least one.
    ///
    /// # Errors
    /// Nothing is at `location`, or it cannot be looked up.
    pub fn files(&self, location: &Path) -> Outcome<Vec<StoredFile>> {
        let files = self.wait(self.inner.files(&text_of(location)))?;
        let stored = |file| StoredFile { file, resolver: self.clone() };
        Ok(files.into_iter().map(stored).collect())
    }

    /// Opens and checks all documents of `files` together.
    ///
    /// # Errors
    /// A file cannot be read, or it is damaged.
    pub fn open(&self, files: Vec<StoredFile>) -> Outcome<Corpus> {
        let files: Vec<FileAt> = files.into_iter().map(|stored| stored.file).collect();
        Ok(self.wait(self.inner.open(&files, &OpenLimits::default()))?)
    }

    /// Returns the file of `part` of the living corpus at `location`, with its footer. Returns
    /// `None` if the part consists of edits.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn part(&self, location: &Path, part: &Part) -> Outcome<Option<CorpusFile>> {
        let file = self.inner.part(&text_of(location), part)?;
        file.map(|file| StoredFile { file, resolver: self.clone() }.open()).transpose()
    }
}

/// A file on a disk or in a store.
#[derive(Debug, Clone)]
pub struct StoredFile {
    /// The library's handle of the file.
    pub file: FileAt,
    resolver: BlockingResolver,
}

impl StoredFile {
    /// Reads the footer with at most two reads.
    ///
    /// # Errors
    /// The file cannot be read, or it is not a corpus.
    pub fn open(self) -> Outcome<CorpusFile> {
        let footer = self.resolver.wait(self.file.footer(&OpenLimits::default()))?;
        let (name, len_bytes) = (self.file.name().to_owned(), self.file.len_bytes());
        Ok(CorpusFile { name, len_bytes, footer, stored: self })
    }
}

impl documents::StoredFile for StoredFile {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn modified(&self) -> SystemTime {
        self.file.modified()
    }

    fn reader(&self, ahead_bytes: u64, answered: Box<dyn FnOnce(Duration) + Send>) -> Box<dyn documents::StoredBytes> {
        let runtime = Arc::clone(&self.resolver.runtime);
        let request = Some(runtime.spawn(start(self.file.clone(), ahead_bytes, answered)));
        let stream = stream::empty().boxed();
        Box::new(StoredBytes { runtime, request, stream, chunk: Bytes::new() })
    }
}

/// Requests the bytes of `file`, reads the first `ahead_bytes` of them, up to the end of the chunk behind
/// them, and returns a stream of all.
async fn start(
    file: FileAt,
    ahead_bytes: u64,
    answered: Box<dyn FnOnce(Duration) + Send>,
) -> Result<BoxStream<'static, Result<Bytes>>> {
    let asked = Instant::now();
    let mut rest = file.stream().await?;
    answered(asked.elapsed());
    let (mut ahead, mut len_bytes) = (Vec::new(), 0);
    // Up to the end of a file of that length, so that its connection is free for another.
    while len_bytes <= ahead_bytes {
        let Some(chunk) = rest.try_next().await? else { break };
        len_bytes += chunk.len() as u64;
        ahead.push(Ok(chunk));
    }
    Ok(stream::iter(ahead).chain(rest).boxed())
}

/// A reader over the bytes of a file that was requested.
struct StoredBytes {
    runtime: Arc<Runtime>,
    /// The request, until its stream is taken.
    request: Option<JoinHandle<Result<BoxStream<'static, Result<Bytes>>>>>,
    stream: BoxStream<'static, Result<Bytes>>,
    chunk: Bytes,
}

impl StoredBytes {
    fn next_chunk(&mut self) -> io::Result<Option<Bytes>> {
        if let Some(request) = self.request.take() {
            self.stream = self.runtime.block_on(request)?.map_err(io::Error::other)?;
        }
        self.runtime.block_on(self.stream.try_next()).map_err(io::Error::other)
    }
}

impl documents::StoredBytes for StoredBytes {
    fn has_answer(&self) -> bool {
        self.request.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl Drop for StoredBytes {
    fn drop(&mut self) {
        if let Some(request) = &self.request {
            request.abort();
        }
    }
}

impl Read for StoredBytes {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.chunk.is_empty() && !bytes.is_empty() {
            match self.next_chunk()? {
                Some(chunk) => self.chunk = chunk,
                None => return Ok(0),
            }
        }
        let len = self.chunk.len().min(bytes.len());
        bytes[..len].copy_from_slice(&self.chunk.split_to(len));
        Ok(len)
    }
}

/// A corpus file with its footer.
pub struct CorpusFile {
    /// Name of the file, for messages.
    pub name: String,
    /// Size of the file in bytes.
    pub len_bytes: u64,
    /// Footer: the sections of the file, the schema and the totals.
    pub footer: FileFooter,
    stored: StoredFile,
}

impl CorpusFile {
    /// Reads the bytes of a range of the file.
    ///
    /// # Errors
    /// The range cannot be read.
    pub fn read(&self, range: Range<u64>) -> Outcome<Bytes> {
        Ok(self.stored.resolver.wait(self.stored.file.read(range))?)
    }
}
