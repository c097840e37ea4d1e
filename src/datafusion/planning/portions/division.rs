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
//! A function whose rows are put behind one another is divided, whatever it costs, and so is a corpus that one
//! process has no room for. A function that adds up rows and cannot pack them runs in one process: adding up
//! texts took longer on two workers than counting on one (`benches/results/2026-11-25-h100.md`). A corpus of which
//! workers have no room for their shares and the packed rows is added up as texts, which spill.

use crate::options::Divide;
use crate::planning::ScanSpec;
use crate::planning::function::{Facts, Merge, ParcelRows};
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
    if !matches!(facts.merge, Merge::Combined | Merge::JoinedLists) {
        return Division::Runs;
    }
    let must_divide = spec.options.divide == Divide::Always || machines.needed_bytes > machines.limit_bytes;
    let Some(rows) = facts.parcels else {
        let reason = "none, the function does not pack its rows".to_owned();
        return if must_divide { Division::Runs } else { Division::OneProcess(reason) };
    };
    let segments = spec.corpora().iter().flat_map(|open| &open.footer.segments);
    let shape: SegmentShape = segments.map(SegmentShape::from).sum();
    let num_workers = machines.num_workers;
    let rows_bytes = shape.num_elements.saturating_mul(ROW_BYTES) / num_workers.max(1) as u64;
    if machines.share_bytes.saturating_add(rows_bytes) > machines.limit_bytes {
        return Division::Runs;
    }
    let Times { alone_ns, divided_ns } = Times::new(shape, rows, machines);
    let (alone, divided) = (shown_ns(alone_ns), shown_ns(divided_ns));
    if must_divide || divided_ns < alone_ns {
        Division::Parcels(format!("{num_workers}: {divided} estimated, {alone} in one process"))
    } else {
        Division::OneProcess(format!("none: {alone} estimated, {divided} on {num_workers} workers"))
    }
}

/// Estimated times of a scan.
#[derive(Debug, Clone, Copy)]
struct Times {
    alone_ns: f64,
    divided_ns: f64,
}

impl Times {
    fn new(shape: SegmentShape, rows: ParcelRows, machines: Machines) -> Self {
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
        let opening_ns = shape.num_elements as f64 * ELEMENT_NS + shape.vocabulary_len as f64 * WORD_NS;
        let work_ns = if machines.is_loaded { cost } else { cost + opening_ns };
        let cores = machines.num_partitions.max(1) as f64;
        let share = (LARGEST_SHARE / workers).min(1.0);
        Self { alone_ns: work_ns / cores, divided_ns: (work_ns * share + rows_ns / workers) / cores + START_NS }
    }
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

    fn times(num_elements: u64, num_workers: usize) -> Times {
        let shape = SegmentShape {
            num_docs: num_elements / 100 + 1,
            num_words: 5 * num_elements,
            num_elements,
            len_bytes: 30 * num_elements,
            vocabulary_len: num_elements / 50,
        };
        let rows = ParcelRows { task: TraversalTask::Cooccurrence, window: 5 };
        let machines = Machines {
            num_workers,
            num_partitions: 1,
            limit_bytes: u64::MAX,
            needed_bytes: 0,
            share_bytes: 0,
            is_loaded: true,
            are_words_kept: false,
        };
        Times::new(shape, rows, machines)
    }

    #[test]
    fn small_corpora_stay_in_one_process_and_large_ones_are_divided() {
        let small = times(1000, 2);
        assert!(small.alone_ns < small.divided_ns);
        let large = times(100_000_000, 4);
        assert!(large.divided_ns < large.alone_ns);
        assert!(times(100_000_000, 8).divided_ns < large.divided_ns);
        assert!(times(100_000_000, 1).divided_ns > large.alone_ns);
    }

    #[test]
    fn times_are_shown_with_their_unit() {
        assert_eq!((shown_ns(1.26e6), shown_ns(1.5e9)), ("1.3 ms".to_owned(), "1.50 s".to_owned()));
    }
}
