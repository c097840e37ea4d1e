//! Locations: paths and URLs as users write them, the corpora there, and the tables that they name.
//!
//! ```text
//! law=s3://x/laws.tadoc   table law      notes.tadoc   table notes      living/   table living
//! ```
//!
//! The library resolves locations in the same way as for SQL. [`BlockingResolver`] adds the waiting.
//!
//! An argument `NAME=LOCATION`, or a location that gives the name, is a table. It has all columns of its documents,
//! those of users too, as one of `CREATE EXTERNAL TABLE … STORED AS TADOC` has. A file that the session reads by its
//! name, such as one of Parquet, is a table too. The program names these tables, not a statement, so safe mode lets
//! them be made.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use datafusion::common::TableReference;
use datafusion::error::Result;
use datafusion_tadoc::{FileAt, Found, Resolver};
use futures::future::try_join_all;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use tadoc::Corpus;
use tadoc::format::{FileFooter, OpenLimits, path_text};
use tadoc_documents as documents;
use tadoc_store::{LivingStore, Part, StoreOptions};
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use url::Url;

use crate::failure::{Failure, Outcome};
use crate::session::{Session, runtime};

/// Names of the folders inside a living corpus.
pub const FOLDERS: [&str; 2] = ["segments", "versions"];

/// Returns true if `path` is a folder that holds a living corpus.
pub fn is_living_folder(path: &Path) -> bool {
    path.join(FOLDERS[1]).is_dir()
}

/// Returns `location` as text if it is a URL.
pub fn url_of(location: &Path) -> Option<&str> {
    location.to_str().filter(|text| text.contains("://"))
}

/// Returns the path of `location` on this machine, also for a `file://` URL. Returns `None` for a
/// location in a store.
///
/// # Errors
/// The URL is invalid.
pub fn local_path(location: &Path) -> Outcome<Option<PathBuf>> {
    let Some(text) = url_of(location) else { return Ok(Some(location.to_owned())) };
    let url = Url::parse(text).map_err(|error| Failure::with_cause(text, &error))?;
    if url.scheme() != "file" {
        return Ok(None);
    }
    let path = url.to_file_path();
    path.map(Some).map_err(|()| Failure::new(format!("{text}: expected file:///FOLDER/NAME")))
}

/// Returns a location as text for SQL and URLs. Names that are not UTF-8 are escaped; the library
/// reverses the escapes.
pub fn text_of(location: &Path) -> Cow<'_, str> {
    match url_of(location) {
        Some(url) => Cow::Borrowed(url),
        None => path_text(location.as_os_str().as_encoded_bytes()),
    }
}

/// Checks that a living corpus exists at `location` or can be created there.
///
/// # Errors
/// `location` is a file, or a folder that holds other files.
pub fn check_living_location(location: &Path) -> Outcome {
    if url_of(location).is_some() {
        return Ok(());
    }
    // A slash behind the name of a file would make the file look absent.
    let location: &Path = &location.components().collect::<PathBuf>();
    let shown = location.display();
    if location.symlink_metadata().is_err() {
        return Ok(());
    }
    if !location.is_dir() {
        return Err(Failure::new(format!(
            "{shown} is a file; --append adds to a folder or URL that holds a living corpus"
        )));
    }
    let entries = fs::read_dir(location).map_err(|error| Failure::with_cause(shown, &error))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    match names.filter(|name| !FOLDERS.iter().any(|folder| name == folder)).min() {
        Some(other) if !is_living_folder(location) => Err(Failure::new(format!(
            "{} holds other files, such as {}; name a new folder for the living corpus",
            location.display(),
            other.to_string_lossy()
        ))),
        _ => Ok(()),
    }
}

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
        let name = self.file.name().to_owned();
        let len_bytes = self.file.len_bytes();
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
    let mut ahead = Vec::new();
    let mut len_bytes = 0;
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

    /// Reads the bytes of several ranges of the file, all at once, so that a store is waited for once.
    ///
    /// # Errors
    /// One of the ranges cannot be read.
    pub fn read_each(&self, ranges: impl IntoIterator<Item = Range<u64>>) -> Outcome<Vec<Bytes>> {
        let reads = ranges.into_iter().map(|range| self.stored.file.read(range));
        Ok(self.stored.resolver.wait(try_join_all(reads))?)
    }
}

/// A location, and the name of its table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedLocation {
    /// Name of the table.
    pub name: String,
    /// Path or URL of the corpus or of the file.
    pub location: String,
}

impl NamedLocation {
    /// Parses `argument`: `NAME=LOCATION`, or a location whose last part is the name.
    ///
    /// # Errors
    /// The location gives no name.
    pub fn from_argument(argument: &Path) -> Outcome<Self> {
        let text = text_of(argument);
        if let Some((name, location)) = text.split_once('=')
            && !name.is_empty()
            && !name.contains(['/', '\\', ':'])
            && !argument.exists()
        {
            return Ok(Self { name: name.to_owned(), location: location.to_owned() });
        }
        let last = text.trim_end_matches(['/', '\\']);
        let last = last.rsplit(['/', '\\']).next().unwrap_or_default();
        let name = last.strip_suffix(".tadoc").unwrap_or(last);
        if name.is_empty() || name.contains(['*', '?']) {
            return Err(Failure::usage(format!("{text} gives no name for a table: write NAME={text}")));
        }
        Ok(Self { name: name.to_owned(), location: text.into_owned() })
    }

    /// Parses `arguments`, whose names differ.
    ///
    /// # Errors
    /// A location gives no name, or two give the same.
    pub fn from_arguments<'a>(arguments: impl IntoIterator<Item = &'a Path>) -> Outcome<Vec<Self>> {
        let mut all: Vec<Self> = Vec::new();
        for argument in arguments {
            let Self { name, location } = Self::from_argument(argument)?;
            if all.iter().any(|other| other.name == name) {
                return Err(Failure::new(format!(
                    "{location}: another corpus is the table {name} already; write NAME={location}"
                )));
            }
            all.push(Self { name, location });
        }
        Ok(all)
    }

    /// Returns the part of the location before its first wildcard, up to a slash: what a session in safe mode must be
    /// allowed to read.
    pub fn root(&self) -> &str {
        let location = &self.location;
        match location.find(['*', '?', '[']) {
            Some(wildcard) => match location[..wildcard].rfind('/') {
                Some(slash) => &location[..=slash],
                None => ".",
            },
            None => location,
        }
    }

    /// Returns true if the location has the ending of a file that is no corpus.
    fn is_other_file(&self) -> bool {
        let path = Path::new(&self.location);
        path.extension().is_some_and(|ending| ending != "tadoc") && !path.is_dir() && !self.location.ends_with('/')
    }
}

/// Name of a table until it has that of its corpus.
const MADE_TABLE: &str = "tadoc_corpus";

impl Session {
    /// Makes the table of `named`. Call it after [`prepare`](Self::prepare).
    ///
    /// # Errors
    /// There is a table of this name, or the location cannot be opened.
    pub async fn add_table(&self, named: NamedLocation) -> Outcome {
        let context = self.context();
        let is_other_file = named.is_other_file();
        let NamedLocation { name, location } = named;
        let table = if is_other_file {
            context.table_provider(TableReference::bare(location.as_str())).await.map(Some)
        } else {
            let quoted = location.replace('\'', "''");
            let create = format!("CREATE EXTERNAL TABLE {MADE_TABLE} STORED AS TADOC LOCATION '{quoted}'");
            match context.sql(&create).await {
                // A statement would take a name with a dot for that of a file.
                Ok(_) => context.deregister_table(MADE_TABLE),
                Err(error) => Err(error),
            }
        };
        let table = table.map_err(|error| Failure::from(error).about(&location))?;
        if let Some(table) = table {
            let made = context.register_table(TableReference::bare(name), table);
            made.map_err(|error| Failure::from(error).about(&location))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_the_names_of_files() {
        let name_of = |text: &str| NamedLocation::from_argument(Path::new(text)).map(|named| named.name).ok();
        for (corpus, name) in [
            ("notes.tadoc", "notes"),
            ("a/b/notes.v2.tadoc", "notes.v2"),
            ("living/", "living"),
            ("s3://bucket/tickets/", "tickets"),
            ("s3://bucket/a=b.tadoc", "a=b"),
            ("law=a/b.tadoc", "law"),
            ("law=s3://x/*.tadoc", "law"),
        ] {
            assert_eq!(name_of(corpus).as_deref(), Some(name), "{corpus}");
        }
        assert_eq!(name_of("a/*.tadoc"), None);
        assert_eq!(name_of("/"), None);
        for (location, root) in
            [("a/b.tadoc", "a/b.tadoc"), ("a/b/*.tadoc", "a/b/"), ("*.tadoc", "."), ("s3://b/x?/", "s3://b/")]
        {
            let named = NamedLocation { name: "x".into(), location: location.into() };
            assert_eq!(named.root(), root);
        }
    }

    #[test]
    fn names_differ() {
        let both = ["a/x.tadoc", "b/x.tadoc"].map(Path::new);
        let failure = NamedLocation::from_arguments(both).unwrap_err();
        assert!(format!("{failure:?}").contains("b/x.tadoc: another corpus is the table x already"), "{failure:?}");
    }
}
