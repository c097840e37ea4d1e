//! The choice between cores and devices, for tasks over corpora and for scans of GSST columns; here are the tasks that
//! have kernels, the segments that the kernels refuse, and the times of earlier runs.
//!
//! ```text
//! with_tadoc ── DeviceSession ──▶ in the session's configuration, in each scan
//!
//! corpora   task of a function  ──▶ chooser ─┐  times of earlier runs
//! batches   questions of rows   ──▶ batches ─┤  rates of earlier batches
//! columns   columns of a scan   ──▶ model   ─┴─▶ DeviceSession::decide ─▶ Placement
//!           rates of stores as read ──▲
//!
//! Placement ── EXPLAIN: device=gpu: reason, device=cpu: reason
//!           ── begin, when the plan is executed: opens devices, notes missed work
//! ```
//!
//! Two traits hide the devices: [`tadoc::accelerator`] and [`gsst::parquet::device`]. SQL reaches a kernel through a
//! [`Task`] and one function in `planning/answers`. If a device fails, the CPU does its work: the log has the reason,
//! and `device_fallbacks` counts it. Only a device that is demanded and missing is an error.
//!
//! A time is that of a whole run, after the corpus was loaded. The first run on the cores also derives data that later
//! runs find, and the first one on a device copies the corpus. So runs count apart, by what they found.

mod batches;
mod chooser;
mod columns;
mod session;
mod windows;

pub(super) use batches::{BatchRates, BatchWork, MIN_ROWS, QuestionKind, choose_batch};
pub(super) use chooser::{Choice, Place, Placement, WORDS_KEPT, Work, choose};
pub(super) use columns::{ColumnWork, Storage, fastest_width, is_local, place_columns, prepare, selectivity};
pub use session::DeviceSession;
#[cfg(test)]
pub(crate) use session::fake;
pub(super) use session::{ObservedStores, demanded_but};

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::options::TadocOptions;
use tadoc::accelerator::SegmentTask;
use tadoc::analytics::Traversal;
use tadoc::format::SegmentMeta;

/// A task over a corpus that has kernels. It `is_folded` if words count as others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Task {
    /// The words of each document, or of some documents if `is_part`.
    TermVector { is_part: bool },
    /// The documents of each word.
    InvertedIndex { is_folded: bool },
    /// The count of each sequence of `num_words` words.
    SequenceCount { num_words: usize, is_folded: bool },
    /// The count of each pair of words within a window of `window` words.
    Cooccurrence { window: usize, is_folded: bool },
    /// The documents of each sequence of `num_words` words by rank, or some of them if `is_part`.
    RankedInvertedIndex { num_words: usize, is_folded: bool, is_part: bool },
    /// The sequences of `num_words` words of each document, or of some documents if `is_part`.
    DocumentSequences { num_words: usize, is_folded: bool, is_part: bool },
}

/// Largest window of pairs on a device, in words.
const MAX_PAIR_WINDOW: usize = 255;
/// Exclusive limit of the words of a segment, and of its pairs, on a device.
const MAX_SORTED: u64 = 1 << 31;

impl Task {
    /// Returns the task as devices know it.
    pub(crate) fn segment_task(self) -> SegmentTask {
        match self {
            Self::TermVector { .. } | Self::InvertedIndex { .. } => SegmentTask::Terms,
            Self::SequenceCount { num_words, .. } => SegmentTask::Sequences(num_words),
            Self::Cooccurrence { window, .. } => SegmentTask::Pairs(window),
            Self::RankedInvertedIndex { num_words, .. } => SegmentTask::Ranked(num_words),
            Self::DocumentSequences { num_words, .. } => SegmentTask::DocumentSequences(num_words),
        }
    }

    /// Returns true if only some documents are counted.
    pub(crate) fn is_part(self) -> bool {
        match self {
            Self::TermVector { is_part }
            | Self::RankedInvertedIndex { is_part, .. }
            | Self::DocumentSequences { is_part, .. } => is_part,
            _ => false,
        }
    }

    /// Returns true if the cores can take the answer from the words of documents that segments
    /// keep. They cannot if the user sets a traversal.
    pub(crate) fn is_in_doc_words(self, options: &TadocOptions) -> bool {
        let is_about_words = matches!(self, Self::TermVector { .. } | Self::InvertedIndex { .. });
        is_about_words && options.traversal == Traversal::Auto
    }

    /// Returns the reason why a device cannot count `segments`, as far as footers tell.
    pub(crate) fn refused<'a>(self, segments: impl Iterator<Item = &'a SegmentMeta> + Clone) -> Option<String> {
        match self {
            Self::TermVector { .. } | Self::InvertedIndex { .. } => long_text(segments),
            Self::SequenceCount { num_words, .. } => {
                cut_document(segments.clone()).or_else(|| long_sequence(segments, num_words))
            }
            Self::Cooccurrence { window, .. } => {
                cut_document(segments.clone()).or_else(|| many_pairs(segments, window))
            }
            Self::RankedInvertedIndex { num_words, .. } | Self::DocumentSequences { num_words, .. } => {
                cut_document(segments.clone())
                    .or_else(|| long_text(segments.clone()))
                    .or_else(|| long_sequence(segments, num_words))
            }
        }
    }
}

fn cut_document<'a>(mut segments: impl Iterator<Item = &'a SegmentMeta>) -> Option<String> {
    let is_cut = segments.any(|segment| segment.continues);
    is_cut.then(|| "a document goes on in another segment".to_owned())
}

fn long_text<'a>(mut segments: impl Iterator<Item = &'a SegmentMeta>) -> Option<String> {
    let is_long = segments.any(|segment| segment.num_word_tokens >= MAX_SORTED);
    is_long.then(|| format!("a segment has {MAX_SORTED} words or more"))
}

fn long_sequence<'a>(segments: impl Iterator<Item = &'a SegmentMeta>, num_words: usize) -> Option<String> {
    let most_words = segments.map(|segment| segment.num_words).max().unwrap_or(0);
    let word_bits = (u64::BITS - u64::from(most_words).saturating_sub(1).leading_zeros()).max(1);
    (num_words > (u64::BITS / word_bits) as usize).then(|| format!("{num_words} words do not fit 64 bits"))
}

fn many_pairs<'a>(mut segments: impl Iterator<Item = &'a SegmentMeta>, window: usize) -> Option<String> {
    if window > MAX_PAIR_WINDOW {
        return Some(format!("windows of {window} words, {MAX_PAIR_WINDOW} at most"));
    }
    let pairs_per_element = (window * window.saturating_sub(1) / 2).max(1) as u64;
    let are_many = segments.any(|segment| segment.num_elements > MAX_SORTED / pairs_per_element);
    are_many.then(|| format!("a segment may have {MAX_SORTED} pairs or more"))
}

/// Times by task.
#[derive(Debug, Default)]
pub(crate) struct KnownTasks(Mutex<HashMap<Task, Known>>);

/// The corpus and its copies as a run of a task finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finds {
    /// The cores find no corpus in memory.
    Nothing,
    /// The cores find the corpus.
    Corpus,
    /// A device lacks copies of the corpus.
    SomeCopies,
    /// A device has all copies.
    AllCopies,
}

/// Times of a task in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Known {
    /// Sum of all runs on the cores.
    pub(crate) spent_s: f64,
    /// Shortest run on the cores that found the corpus.
    cores_s: Option<f64>,
    /// Shortest run on a device that lacked copies.
    copying_s: Option<f64>,
    /// Shortest run on a device that had all copies.
    device_s: Option<f64>,
}

impl KnownTasks {
    /// Records the time of a whole run of `task`.
    pub(crate) fn note_time(&self, task: Task, finds: Finds, seconds: f64) {
        self.lock().entry(task).or_default().note_time(finds, seconds);
    }

    pub(crate) fn for_task(&self, task: Task) -> Known {
        self.lock().get(&task).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Task, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note_time(&mut self, finds: Finds, seconds: f64) {
        if matches!(finds, Finds::Nothing | Finds::Corpus) {
            self.spent_s += seconds;
        }
        let least_s = match finds {
            Finds::Nothing => return,
            Finds::Corpus => &mut self.cores_s,
            Finds::SomeCopies => &mut self.copying_s,
            Finds::AllCopies => &mut self.device_s,
        };
        *least_s = Some(least_s.map_or(seconds, |least_s| least_s.min(seconds)));
    }

    /// Returns the time on the cores. A task that they have only run once is assumed to take half of
    /// that time again.
    pub(super) fn cores_s(&self) -> f64 {
        self.cores_s.unwrap_or(self.spent_s / 2.0)
    }

    /// Returns the time on a device, if such a run was timed.
    pub(super) fn device_s(&self, lacks_copies: bool) -> Option<f64> {
        if lacks_copies { self.copying_s } else { self.device_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(num_word_tokens: u64, num_elements: u64) -> SegmentMeta {
        SegmentMeta {
            num_docs: 9,
            continues: false,
            len_bytes: 6 * num_word_tokens,
            num_tokens: num_word_tokens,
            num_word_tokens,
            dictionary_bytes: 800,
            paths_bytes: 9,
            num_words: 100,
            num_separators: 1,
            num_rules: 10,
            num_elements,
            sections: Vec::new(),
        }
    }

    #[test]
    fn what_kernels_have_no_numbers_for_is_refused() {
        let refused =
            |task: Task, last: SegmentMeta| task.refused([segment(9000, 900), last].iter()).unwrap_or_default();
        let terms = Task::TermVector { is_part: false };
        let index = Task::InvertedIndex { is_folded: false };
        let pairs = |window| Task::Cooccurrence { window, is_folded: false };
        let ranked = |num_words| Task::RankedInvertedIndex { num_words, is_folded: false, is_part: false };
        let by_doc = |num_words| Task::DocumentSequences { num_words, is_folded: false, is_part: false };
        for task in [terms, index, pairs(5), pairs(255), ranked(9), by_doc(9)] {
            assert_eq!(refused(task, segment(MAX_SORTED - 1, 9000)), "", "{task:?}");
        }
        for task in [terms, index, ranked(3), by_doc(3)] {
            let reason = refused(task, segment(MAX_SORTED, 9000));
            assert_eq!(reason, "a segment has 2147483648 words or more", "{task:?}");
        }
        for task in [ranked(10), by_doc(10)] {
            assert_eq!(refused(task, segment(9, 9)), "10 words do not fit 64 bits");
        }
        assert_eq!(refused(pairs(256), segment(9, 9)), "windows of 256 words, 255 at most");
        let most_elements = MAX_SORTED / 10;
        assert_eq!(refused(pairs(5), segment(9, most_elements)), "");
        let reason = refused(pairs(5), segment(9, most_elements + 1));
        assert_eq!(reason, "a segment may have 2147483648 pairs or more");
        let cut = || SegmentMeta { continues: true, ..segment(9, 9) };
        for task in [terms, index] {
            assert_eq!(refused(task, cut()), "", "{task:?}");
        }
        for task in [pairs(5), ranked(3), by_doc(1)] {
            assert_eq!(refused(task, cut()), "a document goes on in another segment");
        }
    }

    #[test]
    fn the_least_time_of_each_kind_of_run_is_kept() {
        let tasks = KnownTasks::default();
        let task = Task::InvertedIndex { is_folded: false };
        assert_eq!(tasks.for_task(task), Known::default());
        tasks.note_time(task, Finds::Nothing, 1.0);
        assert_eq!(tasks.for_task(task).cores_s(), 0.5);
        for seconds in [0.3, 0.2, 0.4] {
            tasks.note_time(task, Finds::Corpus, seconds);
        }
        tasks.note_time(task, Finds::SomeCopies, 0.7);
        tasks.note_time(task, Finds::AllCopies, 0.1);
        let known = tasks.for_task(task);
        assert!((known.spent_s - 1.9).abs() < 1e-9, "{known:?}");
        assert_eq!(known.cores_s(), 0.2);
        assert_eq!((known.device_s(true), known.device_s(false)), (Some(0.7), Some(0.1)));
        assert_eq!(tasks.for_task(Task::TermVector { is_part: false }), Known::default());
    }
}
