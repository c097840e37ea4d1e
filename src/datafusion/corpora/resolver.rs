//! The object stores of a runtime, and locations outside of statements, which the command line resolves as SQL does.
//!
//! ```text
//! FROM 's3://b/x.parquet' ─▶ get_store(s3://b) ─┬─ registered: by CREATE … OPTIONS or an earlier statement
//!                                               └─ made from the environment of the process, and kept
//!
//! location ─▶ Resolver ─┬─ corpora ─▶ Found::Living   a folder or prefix with versions
//!                       │             Found::Files    a .tadoc file; a folder or glob of them
//!                       ├─ files   ─▶ FileAt          any files: the input of an ingest
//!                       ├─ storage ─▶ Storage         location of a living corpus
//!                       └─ object  ─▶ store and path  location of a new file
//! ```
//!
//! The forms of a location are described in `location`. Only the stores are kept.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::object_store::{DefaultObjectStoreRegistry, ObjectStoreRegistry};
use datafusion::execution::runtime_env::{RuntimeEnv, RuntimeEnvBuilder};
use futures::stream::BoxStream;
use futures::{FutureExt, StreamExt, TryStreamExt};
use object_store::{ObjectStore, ObjectStoreExt};
use url::Url;

use crate::corpora::OpenFile;
use crate::corpora::cache::common_profile;
use crate::corpora::living::LivingLocation;
use crate::corpora::location::{
    ParsedLocation, SourceFile, Wanted, made_store, object_store, read_range, resolve_files, store_of,
};
use crate::corpora::open_file::{decoded, in_order, read_footer};
use crate::errors::{core_error, datafusion_error};
use crate::throughput::num_cores;
use tadoc::format::{FileFooter, OpenLimits, SegmentMeta, read_segment};
use tadoc::segment::{Corpus, Segment};
use tadoc_store::{LivingStore, Part, Storage, storage_in};

/// Lets a runtime make stores when a statement, or a plan of another machine, names them, from their URLs and
/// the environment of this process. Otherwise only stores that were registered are known.
#[must_use]
pub fn with_stores(builder: RuntimeEnvBuilder) -> RuntimeEnvBuilder {
    builder.with_object_store_registry(Arc::<StoresOnDemand>::default())
}

/// Registry that makes stores that it does not know.
#[derive(Debug, Default)]
struct StoresOnDemand(DefaultObjectStoreRegistry);

impl ObjectStoreRegistry for StoresOnDemand {
    fn register_store(&self, url: &Url, store: Arc<dyn ObjectStore>) -> Option<Arc<dyn ObjectStore>> {
        self.0.register_store(url, store)
    }

    fn deregister_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        self.0.deregister_store(url)
    }

    fn get_store(&self, url: &Url) -> Result<Arc<dyn ObjectStore>> {
        if let Ok(store) = self.0.get_store(url) {
            return Ok(store);
        }
        let store = made_store(url)?;
        self.0.register_store(url, Arc::clone(&store));
        Ok(store)
    }
}

/// Resolver of locations. Clones share the stores.
///
/// ```
/// use datafusion_tadoc::{Found, Resolver};
///
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let file = dir.path().join("plays.tadoc").display().to_string();
/// # let ctx = datafusion::prelude::SessionContext::new();
/// # datafusion_tadoc::register_all(&ctx)?;
/// # let copy = format!("COPY (SELECT 'a.txt' AS path, 'to be' AS text) TO '{file}'");
/// # ctx.sql(&copy).await?.collect().await?;
/// let found = Resolver::default().corpora(&file).await?;
/// let Found::Files(files) = found else { panic!("no version is there") };
/// let footer = files[0].footer(&Default::default()).await?;
/// assert_eq!((files.len(), footer.num_docs()), (1, 1));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct Resolver {
    runtime: Arc<RuntimeEnv>,
}

/// Corpora that a location resolves to.
#[derive(Debug)]
pub enum Found {
    /// A living corpus.
    Living(LivingStore),
    /// Corpus files in order of path, at least one.
    Files(Vec<FileAt>),
}

impl Resolver {
    /// Returns the corpora at `location`.
    ///
    /// # Errors
    /// A plan error that lists what was tried if nothing is there; errors of the store.
    pub async fn corpora(&self, location: &str) -> Result<Found> {
        if let Some(living) = LivingLocation::from_folder_or_prefix(&self.runtime, location)?
            && let Some(store) = living.open(&self.runtime).await?
        {
            return Ok(Found::Living(store));
        }
        Ok(Found::Files(self.resolve(location, Wanted::CorpusFiles).await?))
    }

    /// Returns the files at `location`, at least one, in order of path. A folder stands for all
    /// files below it that are not hidden.
    ///
    /// # Errors
    /// The errors of [`Resolver::corpora`].
    pub async fn files(&self, location: &str) -> Result<Vec<FileAt>> {
        self.resolve(location, Wanted::Files).await
    }

    async fn resolve(&self, location: &str, wanted: Wanted) -> Result<Vec<FileAt>> {
        let files = resolve_files(&self.runtime, location, wanted).await?;
        files.into_iter().map(|file| self.file_at(file)).collect()
    }

    fn file_at(&self, file: SourceFile) -> Result<FileAt> {
        Ok(FileAt { store: store_of(&self.runtime, &file)?, file })
    }

    /// Returns the file of `part` of the living corpus at `location`; `None` for edits.
    ///
    /// # Errors
    /// A plan error if `location` is not a location.
    pub fn part(&self, location: &str, part: &Part) -> Result<Option<FileAt>> {
        let file = LivingLocation::parse(&self.runtime, location)?.file(part);
        file.map(|file| self.file_at(file)).transpose()
    }

    /// Returns the storage at `location`, for a living corpus that exists or is created there.
    ///
    /// # Errors
    /// An error if `location` is not a location, or if no store can be made for it.
    pub fn storage(&self, location: &Path) -> tadoc::Result<Arc<dyn Storage>> {
        storage_in(location, |url| object_store(&self.runtime, url).map_err(core_error))
    }

    /// Returns the store and the path of the file that `location` names. The file need not exist.
    ///
    /// # Errors
    /// A plan error for a folder or glob, or if no store can be made.
    pub fn object(&self, location: &str) -> Result<(Arc<dyn ObjectStore>, object_store::path::Path)> {
        let parsed = ParsedLocation::parse_in(&self.runtime, location)?;
        if parsed.glob.is_some() || location.ends_with('/') || parsed.path.as_ref().is_empty() {
            return plan_err!("{location}: expected the name of one file");
        }
        Ok((object_store(&self.runtime, &parsed.url)?, parsed.path))
    }

    /// Opens `files` as one corpus of all their documents, in order. Checks every segment.
    ///
    /// # Errors
    /// Errors of the stores and of damaged files; a plan error if the files have different
    /// tokenizer profiles; an error if `limits` are exceeded.
    pub async fn open(&self, files: &[FileAt], limits: &OpenLimits) -> Result<Corpus> {
        let mut opened = Vec::with_capacity(files.len());
        for file in files {
            let footer = Arc::new(file.footer(limits).await?);
            opened.push(OpenFile { file: file.file.clone(), footer, portion: None });
        }
        let profile = common_profile(&opened)?;
        let segments = opened.iter().flat_map(|open| &open.footer.segments);
        let memory_bytes = segments.map(SegmentMeta::memory_bytes).fold(0, u64::saturating_add);
        limits.check_memory(memory_bytes).map_err(datafusion_error)?;
        let places = files
            .iter()
            .zip(&opened)
            .flat_map(|(file, open)| (0..open.footer.segments.len()).map(move |segment_idx| (file, open, segment_idx)));
        // Boxed: the compiler cannot prove that futures of borrowed files are `Send`.
        let loads: Vec<_> =
            places.map(|(file, open, idx)| file.segment(Arc::clone(&open.footer), idx, limits).boxed()).collect();
        let segments = in_order(loads, num_cores()).await?;
        Ok(Corpus::new(profile, segments))
    }
}

/// An existing file.
#[derive(Debug, Clone)]
pub struct FileAt {
    store: Arc<dyn ObjectStore>,
    file: SourceFile,
}

impl FileAt {
    /// Returns the name as shown to the user: the location, or the folder of the location and the
    /// path below it.
    pub fn name(&self) -> &str {
        &self.file.path
    }

    /// Returns the length of the file in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.file.meta.size
    }

    /// Returns the time at which the file was last changed.
    pub fn modified(&self) -> SystemTime {
        self.file.meta.last_modified.into()
    }

    /// Reads a range of bytes.
    ///
    /// # Errors
    /// Errors of the store; an error if the range exceeds the file.
    pub async fn read(&self, range: Range<u64>) -> Result<Bytes> {
        read_range(self.store.as_ref(), &self.file, range).await
    }

    /// Reads all bytes as a stream.
    ///
    /// # Errors
    /// Errors of the store, here and in the stream.
    pub async fn stream(&self) -> Result<BoxStream<'static, Result<Bytes>>> {
        let name = self.file.path.clone();
        let failed = move |error| DataFusionError::from(error).context(name.clone());
        let object = self.store.get(&self.file.meta.location).await.map_err(&failed)?;
        Ok(object.into_stream().map_err(failed).boxed())
    }

    /// Reads its footer with one request, or two if the footer is large.
    ///
    /// # Errors
    /// Errors of the store; a typed error of the core if the file is not a corpus.
    pub async fn footer(&self, limits: &OpenLimits) -> Result<FileFooter> {
        read_footer(self.store.as_ref(), limits, &self.file).await
    }

    async fn segment(&self, footer: Arc<FileFooter>, segment_idx: usize, limits: &OpenLimits) -> Result<Arc<Segment>> {
        let bytes = self.read(footer.segments[segment_idx].byte_range()).await?;
        let name = self.file.path.clone();
        let limits = limits.clone();
        let decode = move || read_segment(&name, &footer, segment_idx, &bytes, &limits);
        decoded(decode).await.map(Arc::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stores_are_made_once() {
        let runtime = with_stores(RuntimeEnvBuilder::new()).build().unwrap();
        let url = Url::parse("memory:///").unwrap();
        let registry = &runtime.object_store_registry;
        let one = registry.get_store(&url).unwrap();
        let other = registry.get_store(&url).unwrap();
        assert!(Arc::ptr_eq(&one, &other));
        let unknown = registry.get_store(&Url::parse("ftp://host").unwrap()).unwrap_err();
        assert!(unknown.to_string().contains("no object store for ftp"), "{unknown}");
    }
}
