//! Devices that answer tasks over segments, as a trait.
//!
//! ```text
//! task over a corpus ─▶ Accelerator: rows of each segment ─▶ the core joins them to rows of the corpus
//!                            │ asks the RowAccount for memory before rows come to the host
//!                            └ an error, or no memory: the cores answer
//! ```
//!
//! The core defines the trait and knows no device. The crate `tadoc-cuda` implements it. A device gives the rows that
//! the cores give; the functions of [`analytics`](crate::analytics) that join rows of segments check their shape.
//!
//! ```
//! use std::error::Error;
//! use std::sync::atomic::{AtomicU64, Ordering};
//! use std::time::Duration;
//!
//! use tadoc::accelerator::{RowAccount, Step};
//!
//! /// Allows this many bytes of rows.
//! struct Budget(AtomicU64);
//!
//! impl RowAccount for Budget {
//!     fn reserve(&self, _: usize, len_bytes: usize) -> Result<(), Box<dyn Error + Send + Sync>> {
//!         let take = |left: u64| left.checked_sub(len_bytes as u64);
//!         let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take);
//!         taken.map(|_| ()).map_err(|left| format!("{left} bytes are left").into())
//!     }
//!
//!     fn add_time(&self, _: Step, _: Duration) {}
//!
//!     fn add_upload(&self, _: u64) {}
//! }
//!
//! let budget = Budget(AtomicU64::new(100));
//! assert!(budget.reserve(4, 64).is_ok());
//! assert_eq!(budget.reserve(4, 64).unwrap_err().to_string(), "36 bytes are left");
//! ```

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::analytics::{SegmentDocumentSequences, SegmentDocuments, SegmentRanked, SegmentSequences, SegmentTerms};
use crate::error::Result;
use crate::read::{Answers, Questions};
use crate::segment::Segment;

/// State of a device.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceState {
    /// Nobody has opened it.
    Closed,
    /// It is being opened.
    Opening {
        /// Seconds since opening began.
        elapsed_s: f64,
    },
    /// It is open.
    Open,
    /// There is none, or it failed, with the reason. It is not opened again.
    Missing(String),
}

/// A task over the segments of a corpus that devices have kernels for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SegmentTask {
    /// The words of each document, or the documents of each word.
    Terms,
    /// Counts of the sequences of this many words.
    Sequences(usize),
    /// Counts of the pairs of words in windows of this many words.
    Pairs(usize),
    /// The documents of each sequence of this many words, by rank.
    Ranked(usize),
    /// The sequences of this many words of each document.
    DocumentSequences(usize),
    /// Questions to documents.
    Questions,
}

/// A step of a device's work on a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Upload of missing parts of the segment.
    Preparing,
    /// Kernels.
    Counting,
    /// Transfer of rows to the host.
    Copying,
}

/// Receives the costs of a device's work, and decides if its rows may come to the host.
pub trait RowAccount: Sync {
    /// Reserves host memory for `num_rows` rows of `len_bytes` together.
    ///
    /// # Errors
    /// An error if there is no room.
    fn reserve(&self, num_rows: usize, len_bytes: usize) -> std::result::Result<(), Box<dyn StdError + Send + Sync>>;

    /// Adds the time of a step.
    fn add_time(&self, step: Step, time: Duration);

    /// Adds bytes that were uploaded.
    fn add_upload(&self, len_bytes: u64);
}

/// Segments to work on, and the limits of the work.
#[derive(Clone, Copy)]
pub struct SegmentWork<'a> {
    /// The segments.
    pub segments: &'a [Arc<Segment>],
    /// Largest amount of memory on each device, in bytes.
    pub max_bytes: u64,
    /// The account of the work.
    pub account: &'a dyn RowAccount,
}

impl fmt::Debug for SegmentWork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let num_segments = self.segments.len();
        f.debug_struct("SegmentWork").field("num_segments", &num_segments).finish_non_exhaustive()
    }
}

/// Devices that answer tasks over segments. A session owns one value; it opens the devices on first
/// use.
///
/// The rows are returned by segment, in order. All functions that answer wait until the devices
/// are open.
///
/// # Errors
/// The functions that return rows fail with [`Error::External`](crate::Error::External) for faults
/// of a device and for refusals of the account.
pub trait Accelerator: fmt::Debug + Send + Sync {
    /// Returns the state of the devices at once, without waiting for the driver.
    fn state(&self) -> DeviceState;

    /// Returns the reason why no device can be used, or `None` if one can. Waits for the driver,
    /// but not until a device is open.
    fn problem(&self) -> Option<String>;

    /// Opens the devices on a thread of their own, unless that was started before.
    fn open_soon(&self);

    /// Returns true while that thread runs.
    fn is_opening(&self) -> bool;

    /// Returns the elements of those `segments` of which no device has the parts that `task` needs.
    fn missing_elements(&self, task: SegmentTask, segments: &[Arc<Segment>]) -> u64;

    /// Drops the copies of `segments`, which are not loaded any more. A device that works drops
    /// them before its next work.
    fn forget(&self, segments: &mut dyn Iterator<Item = &Arc<Segment>>);

    /// Returns the words of each document.
    ///
    /// # Errors
    /// See the trait.
    fn term_vectors(&self, work: SegmentWork<'_>) -> Result<Vec<SegmentTerms>>;

    /// Returns the documents of each word.
    ///
    /// # Errors
    /// See the trait.
    fn word_documents(&self, work: SegmentWork<'_>) -> Result<Vec<SegmentDocuments>>;

    /// Returns the counts of the sequences of `num_words` words.
    ///
    /// # Errors
    /// See the trait.
    fn sequence_counts(&self, work: SegmentWork<'_>, num_words: usize) -> Result<Vec<SegmentSequences>>;

    /// Returns the counts of the pairs of words in windows of `window` words.
    ///
    /// # Errors
    /// See the trait.
    fn pair_counts(&self, work: SegmentWork<'_>, window: usize) -> Result<Vec<SegmentSequences>>;

    /// Returns the documents of each sequence of `num_words` words, by rank.
    ///
    /// # Errors
    /// See the trait.
    fn ranked_documents(&self, work: SegmentWork<'_>, num_words: usize) -> Result<Vec<SegmentRanked>>;

    /// Returns the sequences of `num_words` words of each document.
    ///
    /// # Errors
    /// See the trait.
    fn document_sequences(&self, work: SegmentWork<'_>, num_words: usize) -> Result<Vec<SegmentDocumentSequences>>;

    /// Answers `questions` to the documents of each segment.
    ///
    /// # Errors
    /// See the trait.
    fn answers(&self, work: SegmentWork<'_>, questions: &[Questions]) -> Result<Vec<Answers>>;
}
