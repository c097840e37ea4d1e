//! The choice between one process and several workers, by estimated times.
//!
//! ```text
//! one process   work / cores
//! workers       work * share of the largest / cores  +  rows * (packing, sending, merging) / workers / cores  +  start
//! ```
//!
//! The number of workers is the one with the shortest time, so few runs of segments, or rows that cost more the more
//! workers there are, do not keep all of them.
//!
//! The work is that of the cheapest traversal, from the counts of footers ([`tadoc::analytics::traversal_costs`]).
//! Rows go with the elements that documents reach, each alone: logs have half the elements of sources, and as many
//! different sequences. Segments that are not open here are decoded first, in both cases. Workers are taken to have as
//! many cores as this machine. Where memory has room for it, each worker opens the words of the whole corpus, and rows
//! are sent without texts. The rates are those of a build of the profile release with two to eight workers
//! (`benches/results/2026-12-01-workers.md`). In the profile dev rows take several times as long, and a statement may
//! be slower on workers than in one process.
//!
//! Workers may be faster only because they divide the opening. If such a statement comes again, this process opens the
//! corpus, and then it is as fast as one process was from the begin.
//!
//! A function whose rows are put behind one another has no rows to add up, but perhaps words of which its scans are
//! told the numbers. Its work is that of its traversal, or goes with the bytes of text that it reads or searches. A
//! corpus that one process has no room for is divided, whatever it costs. A function that adds up rows and cannot pack
//! them runs in one process: adding up texts took longer on two workers than counting on one
//! (`benches/results/2026-11-25-h100.md`). A corpus of which workers have no room for their shares and the packed rows
//! is added up as texts, which spill.

use datafusion::common::stats::Precision;

use crate::corpora::OpenFile;
use crate::corpora::memory::Uses;
use crate::options::Divide;
use crate::planning::ScanSpec;
use crate::planning::function::{Facts, Merge, ParcelRows, Walk};
use tadoc::analytics::{SegmentShape, Traversal, TraversalTask, traversal_costs, traversal_statistics};

/// Nanoseconds to pack, send and merge the sequences or pairs of an element that a document reaches: a part that is
/// divided, and one for each worker. The more workers there are, the more rows and words are sent several times.
const ROW_NS: [f64; 2] = [24.0, 36.0];
/// The same for sequences and for pairs, if all machines number words alike.
const COMMON_ROW_NS: [f64; 2] = [12.0, 8.0];
const COMMON_PAIR_NS: [f64; 2] = [12.0, 14.0];
/// Bytes of a row that is packed, where it is merged.
const ROW_BYTES: u64 = 20;
/// The same for a document of a list, and for a word of a dictionary.
const ID_NS: [f64; 2] = [6.0, 16.0];
const WORD_ROW_NS: [f64; 2] = [0.0, 75.0];
/// Nanoseconds for a document of a list that is made of the words that segments keep.
const KEPT_ID_NS: f64 = 5.0;
/// Nanoseconds to decode an element of a grammar, and a word of a dictionary, of a segment that is not open.
const ELEMENT_NS: f64 = 35.0;
const WORD_NS: f64 = 150.0;
/// Time of a walk, as a part of the cost of its traversal.
const WALK_PART: f64 = 0.4;
/// Nanoseconds for a byte of a text that becomes rows, for one of a text in which places are found, and for the path
/// and the lengths of a document.
const TEXT_NS: f64 = 1.1;
const SEARCHED_NS: f64 = 0.4;
const DOC_NS: f64 = 100.0;
/// Nanoseconds that stages of a statement take before the first row, and after the last one, and the more for each
/// worker.
const START_NS: [f64; 2] = [2e6, 0.5e6];
/// Nanoseconds for a word whose number scans are told: a part that is divided, and one for each worker, which gets the
/// numbers of all words and looks up its own.
const TOLD_NS: [f64; 2] = [0.0, 600.0];
/// Nanoseconds for a word of a dictionary whose number is kept.
const KEPT_WORD_NS: f64 = 10.0;
/// The largest share of a worker, in equal shares.
const LARGEST_SHARE: f64 = 1.0625;
/// The part of the time of one process below which workers are taken. The estimates are off by a sixth and more.
const WORTH_DIVIDING: f64 = 0.85;

/// The way in which the rows of a scan are computed in a session with workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Division {
    /// In one process, for the reason that EXPLAIN shows.
    OneProcess(String),
    /// By so many workers, which pack their rows, with common numbers of words if this is true. EXPLAIN shows the times.
    Parcels(Chosen, bool, String),
    /// By so many workers, whose rows are put behind one another, or added up as texts. EXPLAIN shows the times of the
    /// former.
    Runs(Chosen, Option<String>),
}

/// Workers of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(super) num_workers: usize,
    /// True if one process is faster once it has the corpus open.
    pub(super) is_faster_here: bool,
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
    /// Part of the corpus that its largest run of segments is.
    pub(super) largest_run: f64,
    /// True if the corpus is open here.
    pub(super) is_loaded: bool,
    /// True if its segments keep the words of documents.
    pub(super) are_words_kept: bool,
    /// True if workers have answered a statement over the corpus that is faster here once the corpus is open.
    pub(super) was_asked: bool,
    /// Memory of the words of the whole corpus at each, if these can number those of packed rows.
    pub(super) common_bytes: Option<u64>,
}

/// Chooses the way for the scan `spec`.
pub(super) fn division(spec: &ScanSpec, facts: &Facts, machines: Machines) -> Division {
    let must_divide = spec.options.divide == Divide::Always || machines.needed_bytes > machines.limit_bytes;
    let shape = shape_of(spec.corpora());
    let all = Chosen { num_workers: machines.num_workers, is_faster_here: false };
    let is_added_up = matches!(facts.merge, Merge::Combined | Merge::JoinedLists);
    if is_added_up && facts.parcels.is_none() {
        let reason = "none, the function does not pack its rows".to_owned();
        return if must_divide { Division::Runs(all, None) } else { Division::OneProcess(reason) };
    }
    let rows_bytes = packed_rows(shape, facts).saturating_mul(ROW_BYTES);
    let has_room = |num_workers: usize, more_bytes: u64| {
        let share_bytes = machines.share_bytes.max(machines.needed_bytes / num_workers as u64);
        let rows_bytes = rows_bytes / num_workers as u64;
        share_bytes.saturating_add(rows_bytes).saturating_add(more_bytes) <= machines.limit_bytes
    };
    let common_bytes = machines.common_bytes.filter(|&bytes| has_room(machines.num_workers, bytes));
    let machines = Machines { common_bytes, ..machines };
    let times = Times::new(shape, facts, machines);
    let open = Times::new(shape, facts, Machines { is_loaded: true, ..machines });
    let Some(chosen) = (if must_divide { Some(all) } else { times.chosen(open) }) else {
        return Division::OneProcess(times.in_one_process(open));
    };
    let num_workers = chosen.num_workers;
    let shown = times.on_workers(num_workers);
    match facts.merge {
        Merge::Behind => Division::Runs(chosen, Some(shown)),
        _ if has_room(num_workers, 0) => {
            let are_common = common_bytes.is_some_and(|bytes| has_room(num_workers, bytes));
            Division::Parcels(chosen, are_common, shown)
        }
        _ => Division::Runs(chosen, None),
    }
}

/// Returns an estimate of the rows that are packed, rather too high.
fn packed_rows(shape: SegmentShape, facts: &Facts) -> u64 {
    match facts.parcels {
        _ if facts.merge == Merge::Numbered => shape.vocabulary_len,
        Some(ParcelRows::Words) => shape.vocabulary_len,
        Some(ParcelRows::Task(TraversalTask::DocumentSequences, _)) => shape.num_words,
        _ => shape.num_elements.max(reached(shape) as u64),
    }
}

/// Returns an estimate of the elements that documents reach, each alone.
fn reached(shape: SegmentShape) -> f64 {
    let [_, _, _, reached, _] = traversal_statistics((TraversalTask::InvertedIndex, Traversal::TopDown), shape, 2);
    reached
}

/// Returns the estimated work of a scan with these `facts` of segments of this `shape`, in nanoseconds of one core.
/// All segments are open, or none is.
pub(crate) fn work_ns(shape: SegmentShape, facts: &Facts, are_open: bool) -> f64 {
    let machines = Machines {
        num_workers: 1,
        num_partitions: 1,
        limit_bytes: u64::MAX,
        needed_bytes: 0,
        share_bytes: 0,
        largest_run: 1.0,
        is_loaded: are_open,
        are_words_kept: false,
        was_asked: false,
        common_bytes: None,
    };
    Times::new(shape, facts, machines).work_ns
}

/// Returns the shape of segments of `files`.
pub(crate) fn shape_of(files: &[OpenFile]) -> SegmentShape {
    files.iter().flat_map(|open| &open.footer.segments).map(SegmentShape::from).sum()
}

/// Estimated work of a scan, in nanoseconds of one core.
#[derive(Debug, Clone, Copy)]
struct Times {
    /// Work that is divided as the segments are.
    work_ns: f64,
    /// Work to pack, send and merge rows: a part that is divided, and one for each worker.
    rows_ns: [f64; 2],
    machines: Machines,
}

impl Times {
    /// Estimates the times of a scan with these `facts`.
    fn new(shape: SegmentShape, facts: &Facts, machines: Machines) -> Self {
        let words = shape.vocabulary_len as f64;
        let (work_ns, rows_ns) = match (facts.merge, facts.parcels) {
            (Merge::Combined | Merge::JoinedLists, Some(ParcelRows::Task(task, window))) => {
                task_ns(shape, (task, window), machines)
            }
            (Merge::Combined | Merge::JoinedLists, _) => {
                let is_opened = if machines.is_loaded { 0.0 } else { WORD_NS };
                (words * (KEPT_WORD_NS + is_opened), WORD_ROW_NS.map(|ns| words * ns))
            }
            (Merge::Numbered, _) => (behind_ns(shape, facts, machines), TOLD_NS.map(|ns| words * ns)),
            (Merge::Behind | Merge::Never, _) => (behind_ns(shape, facts, machines), [0.0; 2]),
        };
        Self { work_ns, rows_ns, machines }
    }

    /// Returns the time in one process.
    fn alone_ns(self) -> f64 {
        self.work_ns / self.num_cores()
    }

    /// Returns the time on so many workers.
    fn divided_ns(self, num_workers: usize) -> f64 {
        let workers = num_workers.max(1) as f64;
        let share = (LARGEST_SHARE / workers).max(self.machines.largest_run).min(1.0);
        let rows_ns = self.rows_ns[0] / workers + self.rows_ns[1];
        (self.work_ns * share + rows_ns) / self.num_cores() + START_NS[0] + START_NS[1] * workers
    }

    fn num_cores(self) -> f64 {
        self.machines.num_partitions.max(1) as f64
    }

    /// Returns the number of workers with the shortest time, and 0 for one process where they save too little.
    fn best_number(self) -> usize {
        let mut best = (WORTH_DIVIDING * self.alone_ns(), 0);
        // One worker has the work of one process, and rows to send.
        for num_workers in 2..=self.machines.num_workers {
            let time_ns = self.divided_ns(num_workers);
            if time_ns < best.0 {
                best = (time_ns, num_workers);
            }
        }
        best.1
    }

    /// Returns the workers that are taken, and `None` for one process. It has the times `open` once the corpus is open
    /// here, and opens it for a statement that comes again and is faster then.
    fn chosen(self, open: Self) -> Option<Chosen> {
        let is_faster_here = open.best_number() == 0;
        if is_faster_here && self.machines.was_asked {
            return None;
        }
        let num_workers = self.best_number();
        (num_workers > 0).then_some(Chosen { num_workers, is_faster_here })
    }

    fn on_workers(self, num_workers: usize) -> String {
        let all = self.machines.num_workers;
        let time = shown_ns(self.divided_ns(num_workers));
        let alone = shown_ns(self.alone_ns());
        if num_workers == all {
            return format!("{num_workers}: {time} estimated, {alone} in one process");
        }
        let on_all = shown_ns(self.divided_ns(all));
        format!("{num_workers} of {all}: {time} estimated, {on_all} on all, {alone} in one process")
    }

    /// Returns the times of one process for EXPLAIN. They are `open` once the corpus is open here.
    fn in_one_process(self, open: Self) -> String {
        let all = self.machines.num_workers;
        let shown = format!(
            "none: {} estimated, {} on {all} workers",
            shown_ns(self.alone_ns()),
            shown_ns(self.divided_ns(all))
        );
        if self.best_number() == 0 {
            shown
        } else {
            format!("{shown}, {} once it is open here", shown_ns(open.alone_ns()))
        }
    }
}

/// Returns the work of a task, and that of the rows that it packs.
fn task_ns(shape: SegmentShape, (task, window): (TraversalTask, usize), machines: Machines) -> (f64, [f64; 2]) {
    let cost = traversal_costs(task, shape, window).map(|(_, cost)| cost).reduce(f64::min).unwrap_or_default();
    let reached = reached(shape);
    let words = shape.vocabulary_len as f64;
    let are_common = machines.common_bytes.is_some();
    let [row_ns, pair_ns] = if are_common { [COMMON_ROW_NS, COMMON_PAIR_NS] } else { [ROW_NS; 2] };
    let (cost, mut rows_ns) = match task {
        TraversalTask::InvertedIndex => {
            let rows_ns = [0, 1].map(|part| words * WORD_ROW_NS[part] + reached * ID_NS[part]);
            (if machines.are_words_kept { reached * KEPT_ID_NS } else { WALK_PART * cost }, rows_ns)
        }
        TraversalTask::SequenceCount => (WALK_PART * cost, row_ns.map(|ns| reached * ns * window as f64 / 3.0)),
        TraversalTask::TermVector | TraversalTask::Cooccurrence => (WALK_PART * cost, pair_ns.map(|ns| reached * ns)),
        // A row for each sequence, and one for each of its documents.
        TraversalTask::DocumentSequences => {
            (WALK_PART * cost, ROW_NS.map(|ns| reached * ns * (1.0 + window as f64 / 3.0)))
        }
    };
    if are_common && !machines.is_loaded {
        // Each worker opens the words of all segments, and its own ones are among them.
        let opened = words * WORD_NS;
        rows_ns[0] -= opened;
        rows_ns[1] += opened;
    }
    (cost + opening_ns(shape, machines), rows_ns)
}

/// Returns the work of a scan with these `facts` whose rows are put behind one another.
fn behind_ns(shape: SegmentShape, facts: &Facts, machines: Machines) -> f64 {
    if let Some(Walk::ForSequences(task, num_words)) = facts.walk {
        let costs = traversal_costs(task, shape, num_words).map(|(_, cost)| cost);
        return WALK_PART * costs.reduce(f64::min).unwrap_or_default() + opening_ns(shape, machines);
    }
    if facts.finds_few {
        // Lists of words say which parts of the text are decoded.
        return shape.len_bytes as f64 * SEARCHED_NS;
    }
    if facts.uses == Uses::Facts {
        return shape.num_docs as f64 * DOC_NS;
    }
    let num_docs = shape.num_docs.max(1) as f64;
    let share = match facts.num_rows {
        Precision::Exact(num_rows) => (num_rows as f64 / num_docs).min(1.0),
        Precision::Inexact(_) | Precision::Absent => 1.0,
    };
    (shape.len_bytes as f64 * TEXT_NS + opening_ns(shape, machines)) * share
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
            num_docs: num_elements / 1000 + 1,
            num_words: 2 * num_elements,
            num_elements,
            len_bytes: 30 * num_elements,
            vocabulary_len: num_elements / 100,
        }
    }

    fn machines(num_workers: usize) -> Machines {
        Machines {
            num_workers,
            num_partitions: 1,
            limit_bytes: u64::MAX,
            needed_bytes: 0,
            share_bytes: 0,
            largest_run: 0.0,
            is_loaded: true,
            are_words_kept: false,
            was_asked: false,
            common_bytes: None,
        }
    }

    fn pairs() -> Facts {
        let parcels = Some(ParcelRows::Task(TraversalTask::Cooccurrence, 5));
        Facts { parcels, merge: Merge::Combined, ..Facts::default() }
    }

    /// Returns machines of which none has the corpus open.
    fn closed(num_workers: usize) -> Machines {
        Machines { is_loaded: false, ..machines(num_workers) }
    }

    fn is_divided(num_elements: u64, num_workers: usize) -> bool {
        Times::new(shape(num_elements), &pairs(), closed(num_workers)).best_number() > 0
    }

    #[test]
    fn small_corpora_stay_in_one_process_and_large_ones_are_divided() {
        assert!(!is_divided(1000, 8));
        assert!(is_divided(100_000_000, 8));
        assert!(is_divided(1_000_000_000, 8));
        assert!(!is_divided(100_000_000, 1));
        // Rows of pairs cost about as much as finding them in an open corpus.
        assert_eq!(Times::new(shape(100_000_000), &pairs(), machines(2)).best_number(), 0);
    }

    /// Boot logs, and headers and packages of Python, as benches/results/2026-12-01-workers.md has them.
    const LOGS: SegmentShape = SegmentShape {
        num_docs: 15_443,
        num_words: 53_853_279,
        num_elements: 11_902_702,
        len_bytes: 405_781_095,
        vocabulary_len: 4_940_744,
    };
    const PACKAGES: SegmentShape = SegmentShape {
        num_docs: 23_272,
        num_words: 33_248_514,
        num_elements: 22_856_843,
        len_bytes: 300_006_601,
        vocabulary_len: 1_641_135,
    };

    fn for_task(task: TraversalTask, window: usize) -> Facts {
        let parcels = Some(ParcelRows::Task(task, window));
        Facts { parcels, merge: Merge::Combined, ..Facts::default() }
    }

    /// Choices are those that measured times say, where these are not within a sixth of one another.
    #[test]
    fn choices_are_those_of_measured_times() {
        let sequences = for_task(TraversalTask::SequenceCount, 3);
        let pairs = for_task(TraversalTask::Cooccurrence, 5);
        let lists = for_task(TraversalTask::InvertedIndex, 2);
        let ranks = for_task(TraversalTask::DocumentSequences, 3);
        let words = Facts { parcels: Some(ParcelRows::Words), merge: Merge::Combined, ..Facts::default() };
        let numbered = Facts { uses: Uses::Text, merge: Merge::Numbered, ..Facts::default() };
        for (name, facts) in [
            ("sequences", &sequences),
            ("pairs", &pairs),
            ("lists", &lists),
            ("ranks", &ranks),
            ("words", &words),
            ("tfidf", &numbered),
        ] {
            for shape in [LOGS, PACKAGES] {
                for num_workers in [2, 4] {
                    let open = Times::new(shape, facts, machines(num_workers));
                    assert_eq!(open.best_number(), 0, "{name}, open, {num_workers} workers: {open:?}");
                }
                let closed = Times::new(shape, facts, closed(2));
                assert_eq!(closed.best_number(), 0, "{name}, closed: {closed:?}");
            }
        }
        let walk = Some(Walk::ForSequences(TraversalTask::DocumentSequences, 3));
        let by_doc = Facts { walk, uses: Uses::Text, merge: Merge::Behind, ..Facts::default() };
        let text = Facts { uses: Uses::Text, merge: Merge::Behind, ..Facts::default() };
        for (name, facts) in [("by document", &by_doc), ("text", &text)] {
            for shape in [LOGS, PACKAGES] {
                for num_workers in [2, 4, 8] {
                    for machines in [machines(num_workers), closed(num_workers)] {
                        let times = Times::new(shape, facts, machines);
                        assert_eq!(times.best_number(), num_workers, "{name}: {times:?}");
                    }
                }
            }
        }
        // Rows without texts pay in open corpora, too, from four workers on.
        for (name, facts) in [("sequences", &sequences), ("pairs", &pairs)] {
            for shape in [LOGS, PACKAGES] {
                for (num_workers, expected) in [(2, 0), (4, 4), (8, 8)] {
                    let common = Machines { common_bytes: Some(0), ..machines(num_workers) };
                    let times = Times::new(shape, facts, common);
                    assert_eq!(times.best_number(), expected, "{name}, common words: {times:?}");
                }
            }
        }
        // Eight workers open a corpus so fast that they gain.
        for (name, facts) in [("sequences", &sequences), ("pairs", &pairs), ("lists", &lists)] {
            for shape in [LOGS, PACKAGES] {
                let times = Times::new(shape, facts, closed(8));
                assert_eq!(times.best_number(), 8, "{name}: {times:?}");
            }
        }
    }

    #[test]
    fn a_corpus_is_opened_here_when_that_pays_from_the_second_time_on() {
        let chosen = |facts: &Facts, was_asked: bool| {
            let closed = Machines { was_asked, ..closed(8) };
            let times = Times::new(PACKAGES, facts, closed);
            times.chosen(Times::new(PACKAGES, facts, Machines { is_loaded: true, ..closed }))
        };
        let sequences = for_task(TraversalTask::SequenceCount, 3);
        assert_eq!(chosen(&sequences, false), Some(Chosen { num_workers: 8, is_faster_here: true }));
        assert_eq!(chosen(&sequences, true), None);
        let text = Facts { uses: Uses::Text, merge: Merge::Behind, ..Facts::default() };
        for was_asked in [false, true] {
            assert_eq!(chosen(&text, was_asked), Some(Chosen { num_workers: 8, is_faster_here: false }));
        }
    }

    #[test]
    fn workers_that_save_a_tenth_are_left_alone() {
        let text = Facts { uses: Uses::Text, merge: Merge::Behind, ..Facts::default() };
        let with_largest_run = |largest_run: f64| {
            Times::new(shape(100_000_000), &text, Machines { largest_run, ..machines(2) }).best_number()
        };
        assert_eq!((with_largest_run(0.8), with_largest_run(0.9)), (2, 0));
    }

    #[test]
    fn fewer_workers_than_all_are_taken_where_they_are_faster() {
        let times = |largest_run: f64, num_workers: usize| {
            let machines = Machines { largest_run, ..closed(num_workers) };
            Times::new(shape(100_000_000), &pairs(), machines)
        };
        assert_eq!((times(0.0, 8).best_number(), times(0.01, 8).best_number()), (8, 8));
        // Rows that words of three segments have are sent more often the more workers there are.
        let text = Facts { uses: Uses::Text, merge: Merge::Behind, ..Facts::default() };
        let behind = |num_workers: usize| {
            let machines = Machines { largest_run: 0.34, ..machines(num_workers) };
            Times::new(shape(100_000_000), &text, machines)
        };
        assert_eq!((behind(8).best_number(), behind(2).best_number()), (4, 2));
        let shown = behind(8).on_workers(4);
        assert!(shown.starts_with("4 of 8: ") && shown.contains(" on all, "), "{shown}");
        // One segment has all of the text.
        assert_eq!(times(1.0, 8).best_number(), 0);
    }

    #[test]
    fn rows_behind_one_another_are_divided_where_their_work_outweighs_the_start() {
        let is_divided =
            |num_elements: u64, facts: &Facts| Times::new(shape(num_elements), facts, machines(2)).best_number() > 0;
        let text = Facts { uses: Uses::Text, merge: Merge::Behind, ..Facts::default() };
        let found = Facts { finds_few: true, ..text.clone() };
        let paths = Facts { uses: Uses::Facts, ..text.clone() };
        let one = Facts { num_rows: Precision::Exact(1), ..text.clone() };
        let walk = Some(Walk::ForSequences(TraversalTask::DocumentSequences, 3));
        let counted = Facts { walk, ..text.clone() };
        let numbered = Facts { merge: Merge::Numbered, ..text.clone() };
        for facts in [&text, &found, &paths, &one, &counted, &numbered] {
            assert!(!is_divided(1000, facts), "{facts:?}");
        }
        for facts in [&text, &found, &paths, &counted, &numbered] {
            assert!(is_divided(100_000_000, facts), "{facts:?}");
        }
        assert!(!is_divided(100_000_000, &one));
    }

    #[test]
    fn work_goes_with_elements_where_a_grammar_is_walked() {
        let short = shape(1000);
        let long = SegmentShape { len_bytes: 100 * short.len_bytes, ..short };
        let text = Facts { uses: Uses::Text, merge: Merge::Behind, ..Facts::default() };
        let open = |shape: SegmentShape, facts: &Facts| work_ns(shape, facts, true);
        assert_eq!(open(short, &pairs()), open(long, &pairs()));
        assert!(open(long, &text) > 99.0 * open(short, &text));
        assert!(work_ns(short, &pairs(), false) > open(short, &pairs()));
    }

    #[test]
    fn times_are_shown_with_their_unit() {
        assert_eq!((shown_ns(1.26e6), shown_ns(1.5e9)), ("1.3 ms".to_owned(), "1.50 s".to_owned()));
    }
}
