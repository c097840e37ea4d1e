//! The choice between one process and several workers, by estimated times.
//!
//! ```text
//! one process   work / cores
//! workers       work * share of the largest / cores  +  rows * (packing, sending, merging) / workers / cores  +  start
//! ```
//!
//! The work is that of the cheapest traversal, from the counts of footers ([`tadoc::analytics::traversal_costs`]).
//! A grammar has about one element for each distinct pair or triple of words that a text has (0.6 to 1.0 for
//! sources and their windows of 2 to 5 words). Segments that are not open here are decoded first, in both cases.
//! Workers are taken to have as many cores as this machine. The rates of rows are those of a build of the profile dev
//! with two to eight workers (`benches/results/2026-11-30-h200.md`); a build of the profile release has not been
//! measured, so it may stay in one process where workers would win.
//!
//! A function whose rows are put behind one another has no rows to add up. Its work is that of its traversal, or goes
//! with the bytes of text that it reads or searches. A corpus that one process has no room for is divided, whatever it
//! costs. A function that adds up rows and cannot pack them runs in one process: adding up
//! texts took longer on two workers than counting on one (`benches/results/2026-11-25-h100.md`). A corpus of which
//! workers have no room for their shares and the packed rows is added up as texts, which spill.

use datafusion::common::stats::Precision;

use crate::corpora::memory::Uses;
use crate::options::Divide;
use crate::planning::ScanSpec;
use crate::planning::function::{Facts, Merge, ParcelRows, Walk};
use tadoc::analytics::{SegmentShape, TraversalTask, traversal_costs, traversal_statistics};

/// Nanoseconds to pack, send and merge the rows of an element of the grammar, and the more for each worker: the more there
/// are, the more rows and words are sent several times.
const ROW_NS: [f64; 2] = [150.0, 45.0];
/// Bytes of a row that is packed, where it is merged.
const ROW_BYTES: u64 = 20;
/// The same for a document of a list.
const ID_NS: [f64; 2] = [0.0, 75.0];
/// Nanoseconds for a document of a list that is made of the words that segments keep.
const KEPT_ID_NS: f64 = 5.0;
/// Nanoseconds to decode an element of a grammar, and a word of a dictionary, of a segment that is not open.
const ELEMENT_NS: f64 = 25.0;
const WORD_NS: f64 = 60.0;
/// Nanoseconds for a byte of a text that becomes rows, for one of a text in which places are found, and for the path and
/// the lengths of a document.
const TEXT_NS: f64 = 2.2;
const SEARCHED_NS: f64 = 0.4;
const DOC_NS: f64 = 100.0;
/// Nanoseconds that stages of a statement take before the first row, and after the last one.
const START_NS: f64 = 14e6;
/// The largest share of a worker, in equal shares.
const LARGEST_SHARE: f64 = 1.0625;

/// The way in which the rows of a scan are computed in a session with workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Division {
    /// In one process, for the reason that EXPLAIN shows.
    OneProcess(String),
    /// By workers that pack their rows. EXPLAIN shows the times.
    Parcels(String),
    /// By workers whose rows are put behind one another, or added up as texts.
    Runs,
}

/// The machines of a statement.
#[derive(Debug, Clone, Copy)]
pub(super) struct Machines {
    pub(super) num_workers: usize,
    /// Partitions of each.
    pub(super) num_partitions: usize,
    /// Memory of each, in bytes.
    pub(super) limit_bytes: u64,
    /// Memory that the corpus needs in one process, and the share of a worker.
    pub(super) needed_bytes: u64,
    pub(super) share_bytes: u64,
    /// True if the corpus is open here.
    pub(super) is_loaded: bool,
    /// True if its segments keep the words of documents.
    pub(super) are_words_kept: bool,
}

/// Chooses the way for the scan `spec`.
pub(super) fn division(spec: &ScanSpec, facts: &Facts, machines: Machines) -> Division {
    let must_divide = spec.options.divide == Divide::Always || machines.needed_bytes > machines.limit_bytes;
    let segments = spec.corpora().iter().flat_map(|open| &open.footer.segments);
    let shape: SegmentShape = segments.map(SegmentShape::from).sum();
    let num_workers = machines.num_workers;
    if !matches!(facts.merge, Merge::Combined | Merge::JoinedLists) {
        let times = Times::without_sums(shape, facts, machines);
        let is_divided = must_divide || times.is_shorter_divided();
        return if is_divided { Division::Runs } else { Division::OneProcess(times.in_one_process(num_workers)) };
    }
    let Some(rows) = facts.parcels else {
        let reason = "none, the function does not pack its rows".to_owned();
        return if must_divide { Division::Runs } else { Division::OneProcess(reason) };
    };
    let rows_bytes = shape.num_elements.saturating_mul(ROW_BYTES) / num_workers.max(1) as u64;
    if machines.share_bytes.saturating_add(rows_bytes) > machines.limit_bytes {
        return Division::Runs;
    }
    let times = Times::with_parcels(shape, rows, machines);
    if must_divide || times.is_shorter_divided() {
        Division::Parcels(times.on_workers(num_workers))
    } else {
        Division::OneProcess(times.in_one_process(num_workers))
    }
}

/// Estimated times of a scan.
#[derive(Debug, Clone, Copy)]
struct Times {
    alone_ns: f64,
    divided_ns: f64,
}

impl Times {
    /// Estimates the times of a scan that packs `rows`.
    fn with_parcels(shape: SegmentShape, rows: ParcelRows, machines: Machines) -> Self {
        let ParcelRows { task, window } = rows;
        let costs = traversal_costs(task, shape, window);
        let Some((way, cost)) = costs.min_by(|one, other| one.1.total_cmp(&other.1)) else {
            return Self { alone_ns: 0.0, divided_ns: START_NS };
        };
        let [.., listed, _] = traversal_statistics((task, way), shape, window);
        let workers = machines.num_workers.max(1) as f64;
        let row_ns = ROW_NS[0] + ROW_NS[1] * workers;
        let listed_ns = listed * (ID_NS[0] + ID_NS[1] * workers) + shape.vocabulary_len as f64 * row_ns;
        let (cost, rows_ns) = match task {
            TraversalTask::InvertedIndex if machines.are_words_kept => (listed * KEPT_ID_NS, listed_ns),
            TraversalTask::InvertedIndex => (cost, listed_ns),
            TraversalTask::SequenceCount => (cost, shape.num_elements as f64 * row_ns * window as f64 / 3.0),
            _ => (cost, shape.num_elements as f64 * row_ns),
        };
        Self::new(cost + opening_ns(shape, machines), rows_ns, machines)
    }

    /// Estimates the times of a scan with these `facts` whose rows are put behind one another.
    fn without_sums(shape: SegmentShape, facts: &Facts, machines: Machines) -> Self {
        let work_ns = if let Some(Walk::ForSequences(task, num_words)) = facts.walk {
            let costs = traversal_costs(task, shape, num_words).map(|(_, cost)| cost);
            costs.reduce(f64::min).unwrap_or_default() + opening_ns(shape, machines)
        } else if facts.finds_few {
            // Lists of words say which parts of the text are decoded.
            shape.len_bytes as f64 * SEARCHED_NS
        } else if facts.uses == Uses::Facts {
            shape.num_docs as f64 * DOC_NS
        } else {
            let num_docs = shape.num_docs.max(1) as f64;
            let share = match facts.num_rows {
                Precision::Exact(num_rows) => (num_rows as f64 / num_docs).min(1.0),
                Precision::Inexact(_) | Precision::Absent => 1.0,
            };
            (shape.len_bytes as f64 * TEXT_NS + opening_ns(shape, machines)) * share
        };
        Self::new(work_ns, 0.0, machines)
    }

    /// Estimates the times of work that takes one core `work_ns`, and of rows that only workers pack and add up.
    fn new(work_ns: f64, rows_ns: f64, machines: Machines) -> Self {
        let workers = machines.num_workers.max(1) as f64;
        let cores = machines.num_partitions.max(1) as f64;
        let share = (LARGEST_SHARE / workers).min(1.0);
        Self { alone_ns: work_ns / cores, divided_ns: (work_ns * share + rows_ns / workers) / cores + START_NS }
    }

    fn is_shorter_divided(self) -> bool {
        self.divided_ns < self.alone_ns
    }

    fn on_workers(self, num_workers: usize) -> String {
        format!("{num_workers}: {} estimated, {} in one process", shown_ns(self.divided_ns), shown_ns(self.alone_ns))
    }

    fn in_one_process(self, num_workers: usize) -> String {
        format!("none: {} estimated, {} on {num_workers} workers", shown_ns(self.alone_ns), shown_ns(self.divided_ns))
    }
}

/// Returns the time in which one core opens segments that are not open here.
fn opening_ns(shape: SegmentShape, machines: Machines) -> f64 {
    if machines.is_loaded {
        return 0.0;
    }
    shape.num_elements as f64 * ELEMENT_NS + shape.vocabulary_len as f64 * WORD_NS
}

fn shown_ns(time_ns: f64) -> String {
    match time_ns / 1e6 {
        ms @ ..1000.0 => format!("{ms:.1} ms"),
        ms => format!("{:.2} s", ms / 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(num_elements: u64) -> SegmentShape {
        SegmentShape {
            num_docs: num_elements / 100 + 1,
            num_words: 5 * num_elements,
            num_elements,
            len_bytes: 30 * num_elements,
            vocabulary_len: num_elements / 50,
        }
    }

    fn machines(num_workers: usize) -> Machines {
        Machines {
            num_workers,
            num_partitions: 1,
            limit_bytes: u64::MAX,
            needed_bytes: 0,
            share_bytes: 0,
            is_loaded: true,
            are_words_kept: false,
        }
    }

    fn is_divided(num_elements: u64, num_workers: usize) -> bool {
        let rows = ParcelRows { task: TraversalTask::Cooccurrence, window: 5 };
        Times::with_parcels(shape(num_elements), rows, machines(num_workers)).is_shorter_divided()
    }

    #[test]
    fn small_corpora_stay_in_one_process_and_large_ones_are_divided() {
        assert!(!is_divided(1000, 2));
        assert!(is_divided(100_000_000, 4));
        assert!(is_divided(100_000_000, 8));
        assert!(!is_divided(100_000_000, 1));
    }

    #[test]
    fn rows_behind_one_another_are_divided_where_their_work_outweighs_the_start() {
        let is_divided = |num_elements: u64, facts: &Facts| {
            Times::without_sums(shape(num_elements), facts, machines(2)).is_shorter_divided()
        };
        let text = Facts { uses: Uses::Text, ..Facts::default() };
        let found = Facts { finds_few: true, ..Facts::default() };
        let paths = Facts { uses: Uses::Facts, ..Facts::default() };
        let one = Facts { num_rows: Precision::Exact(1), ..Facts::default() };
        let walk = Some(Walk::ForSequences(TraversalTask::DocumentSequences, 3));
        let counted = Facts { walk, ..text.clone() };
        for facts in [&text, &found, &paths, &one, &counted] {
            assert!(!is_divided(1000, facts), "{facts:?}");
        }
        for facts in [&text, &found, &paths, &counted] {
            assert!(is_divided(100_000_000, facts), "{facts:?}");
        }
        assert!(!is_divided(100_000_000, &one));
    }

    #[test]
    fn times_are_shown_with_their_unit() {
        assert_eq!((shown_ns(1.26e6), shown_ns(1.5e9)), ("1.3 ms".to_owned(), "1.50 s".to_owned()));
    }
}
