//! Corpus files whose footers are known: portions of their segments, the sections that are read, and their decoding.
//!
//! ```text
//! SourceFile ─ footer: one request, or two ─▶ OpenFile ─ Sections ─▶ ranges of bytes ─ decoded ─▶ segments
//!
//! buffered        1 1 1 1 3 3 .      two tasks at a time: the third one waits for the second,
//!                 2 . . . 4 4 .      because the first one is not done
//! in_order        1 1 1 1 . .
//!                 2 3 3 4 4
//! ```
//!
//! Words with their counts are a tenth of a file and suffice to count words. Paths and lengths of documents are a
//! hundredth and suffice for rows without texts. Many ranges are read at a time, because stores answer slowly. They are
//! decoded on blocking threads, at most as many at a time as there are cores. Otherwise the memory of all decoders
//! would be in use at once, and no statement would be sooner.

use std::ops::Range;
use std::sync::{Arc, LazyLock};

use datafusion::error::Result;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryFutureExt, TryStreamExt, stream};
use object_store::ObjectStore;
use tokio::sync::Semaphore;

use crate::corpora::Source;
use crate::corpora::location::{SourceFile, read_range};
use crate::errors::{datafusion_error, task_error};
use tadoc::Error;
use tadoc::format::{FileFooter, FooterOutcome, OpenLimits, SegmentMeta};

/// A file and its footer.
#[derive(Debug, Clone)]
pub struct OpenFile {
    /// The file.
    pub file: SourceFile,
    /// Its footer.
    pub footer: Arc<FileFooter>,
    /// Portion of the segments, if this is not the whole file. The footer then lists only these
    /// segments.
    pub(crate) portion: Option<Portion>,
}

impl OpenFile {
    /// Returns a key that distinguishes its segments from those of other files, versions and
    /// portions.
    pub(crate) fn key(&self) -> String {
        self.file.version_key() + &self.portion.as_ref().map(Portion::suffix).unwrap_or_default()
    }

    /// Returns the segments that it contains, if these are not all of the file.
    pub fn segments(&self) -> Option<Range<usize>> {
        self.portion.as_ref().map(|portion| portion.segments.clone())
    }
}

/// Segments of a file that an [`OpenFile`] contains. Its footer lists no others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Portion {
    segments: Range<usize>,
    /// Documents of these segments, counted from the first document of the file.
    pub(crate) docs: Range<u64>,
    /// Number of documents in the file.
    pub(crate) num_docs_of_file: u64,
}

impl Portion {
    /// Returns a suffix that distinguishes it from other portions of its file.
    pub(crate) fn suffix(&self) -> String {
        format!(", segments {} to {}", self.segments.start, self.segments.end)
    }
}

impl OpenFile {
    /// Returns the file restricted to these segments. Their first document is `first_doc`.
    pub fn portion(&self, segments: Range<usize>, first_doc: u64) -> Self {
        let whole = &self.footer;
        let footer = FileFooter {
            profile: whole.profile,
            unicode_version: whole.unicode_version,
            writer: whole.writer.clone(),
            builder: whole.builder.clone(),
            segments: whole.segments[segments.clone()].to_vec(),
            columns: whole.columns.clone(),
            others: Vec::new(),
        };
        let docs = first_doc..first_doc + footer.num_docs();
        let portion = Portion { segments, docs, num_docs_of_file: whole.num_docs() };
        Self { file: self.file.clone(), footer: Arc::new(footer), portion: Some(portion) }
    }

    /// Appends the segments of `next`, which follow those of this portion.
    pub(crate) fn join(&mut self, next: Self) {
        let (Some(portion), Some(behind)) = (&mut self.portion, next.portion) else { return };
        (portion.segments.end, portion.docs.end) = (behind.segments.end, behind.docs.end);
        Arc::make_mut(&mut self.footer).segments.extend_from_slice(&next.footer.segments);
    }
}

/// Source of rows of user columns.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RowSource<'a> {
    /// The documents of a file.
    File(&'a OpenFile),
    /// A number of documents without user columns.
    Nulls(u64),
}

impl RowSource<'_> {
    /// Returns the number of rows.
    pub(crate) fn num_docs(&self) -> u64 {
        match self {
            Self::File(open) => open.footer.num_docs(),
            Self::Nulls(num_docs) => *num_docs,
        }
    }
}

/// Reads the footer of `file` with one request, or two if the footer is large.
pub(super) async fn read_footer(store: &dyn ObjectStore, limits: &OpenLimits, file: &SourceFile) -> Result<FileFooter> {
    let len = file.meta.size;
    let mut tail_len = FileFooter::TAIL_BYTES.min(len);
    loop {
        let tail = read_range(store, file, len - tail_len..len).await?;
        let outcome = FileFooter::parse(&file.path, &tail, len, limits).map_err(datafusion_error)?;
        match outcome {
            FooterOutcome::Footer(footer) => return Ok(footer),
            FooterOutcome::NeedsTail(needed) if needed > tail_len && needed <= len => {
                tail_len = needed;
            }
            FooterOutcome::NeedsTail(needed) => {
                let reason = format!("expected a footer inside the file, it asks for {needed} bytes");
                return Err(datafusion_error(Error::Format {
                    file: file.path.clone(),
                    section: "footer",
                    offset: len,
                    reason,
                }));
            }
        }
    }
}

/// Sections of a file that are read. Each choice is cached under its own key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sections {
    /// Whole segments.
    All,
    /// Words and their counts.
    Words,
    /// Paths and lengths of documents.
    Facts,
}

impl Sections {
    /// Returns a key that distinguishes these sections from those of other files, versions and
    /// portions.
    pub(super) fn key(self, file: &OpenFile) -> String {
        match self {
            Self::All => file.key(),
            Self::Words => format!("words of {}", file.key()),
            Self::Facts => format!("facts of {}", file.key()),
        }
    }

    /// Returns the keys of all files of `source`, and of the version with its edits.
    pub(super) fn keys(self, source: &Source) -> Vec<String> {
        let files = source.corpora().iter().map(|open| self.key(open));
        let view = source.living().filter(|_| self == Self::All);
        files.chain(view.map(|view| view.key.clone())).collect()
    }

    /// Returns the contiguous range of bytes in the file that is read for a segment.
    pub(super) fn range(self, segment: &SegmentMeta) -> Range<u64> {
        match self {
            Self::All => segment.byte_range(),
            Self::Words => segment.words_range().unwrap_or_default(),
            Self::Facts => segment.facts_range().unwrap_or_default(),
        }
    }

    /// Returns the memory of a segment while it is opened, in bytes.
    pub(super) fn memory_bytes(self, segment: &SegmentMeta) -> u64 {
        match self {
            Self::All => segment.memory_bytes(),
            Self::Words => segment.words_memory_bytes(),
            Self::Facts => segment.facts_memory_bytes(),
        }
    }

    /// Returns the part of that memory that is free again once the segment is decoded.
    pub(super) fn decoding_bytes(self, segment: &SegmentMeta) -> u64 {
        match self {
            Self::All => segment.decoding_bytes(),
            Self::Words => segment.words_decoding_bytes(),
            Self::Facts => 0,
        }
    }
}

/// One permit for each core.
static CORES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// Returns the result of `decode`, which runs on a blocking thread when a core is free.
///
/// # Errors
/// The errors of `decode`, as DataFusion knows them.
pub(super) async fn decoded<T: Send + 'static>(
    decode: impl FnOnce() -> tadoc::Result<T> + Send + 'static,
) -> Result<T> {
    // The semaphore is never closed.
    let permit = CORES.acquire().await.ok();
    let decoding = move || {
        let _permit = permit;
        decode()
    };
    tokio::task::spawn_blocking(decoding).await.map_err(task_error)?.map_err(datafusion_error)
}

/// Returns the results of `tasks`, in their order. At most `at_once` run at a time, and the next one begins when any is
/// done.
///
/// # Errors
/// The first error of a task. The others are dropped.
pub(super) fn in_order<'a, T: Send + 'a>(
    tasks: impl IntoIterator<Item = BoxFuture<'a, Result<T>>>,
    at_once: usize,
) -> BoxFuture<'a, Result<Vec<T>>> {
    // Boxed: the compiler cannot prove that closures over borrowed futures are `Send`.
    let numbered =
        |(number, task): (usize, BoxFuture<'a, Result<T>>)| task.map_ok(move |result| (number, result)).boxed();
    let numbered: Vec<_> = tasks.into_iter().enumerate().map(numbered).collect();
    let collect = async move {
        let mut done: Vec<(usize, T)> = stream::iter(numbered).buffer_unordered(at_once.max(1)).try_collect().await?;
        done.sort_unstable_by_key(|&(number, _)| number);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    };
    collect.boxed()
}
