//! Traversals of a document task, the shape of a segment, and the choice of the cheapest by costs.
//!
//! ```text
//! cost of a way = sum over statistics of (statistic * nanoseconds of the table)
//! ```
//!
//! The statistics are counts of a footer, so `EXPLAIN` needs no grammar. Only the number of
//! elements that a group of documents reaches is estimated. If N words take G elements, n words
//! take about n^(ln G / ln N) elements (Heaps' law with the exponent of this text).
//!
//! `cargo bench --bench traversal` measures all tasks with each traversal forced, reports how good
//! the choices are, and prints a new table to put below. Times are those of one thread.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use Traversal::{BottomUp, TokenScan, TopDown};
use TraversalTask::{Cooccurrence, DocumentSequences, InvertedIndex, SequenceCount, TermVector};

use crate::error::{Error, Result};
use crate::format::SegmentMeta;
use crate::segment::Segment;

/// Order in which a task by document visits the rules. All traversals give the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Traversal {
    /// Traversal that [`choose_task_traversal`] chooses.
    #[default]
    Auto,
    /// Top-down: sets or counts of documents flow from parents to children, several documents in
    /// one sweep.
    TopDown,
    /// Bottom-up: sets of words flow from children to parents, or sequences get numbers. Documents
    /// add up the results of their rules.
    BottomUp,
    /// Token scan: every token of every document is read.
    TokenScan,
}

impl Traversal {
    const ALL: [Self; 4] = [Self::Auto, Self::TopDown, Self::BottomUp, Self::TokenScan];

    /// Returns the name used in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::TopDown => "top_down",
            Self::BottomUp => "bottom_up",
            Self::TokenScan => "token_scan",
        }
    }
}

impl fmt::Display for Traversal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Traversal {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|traversal| traversal.as_str() == name).ok_or_else(|| Error::InvalidArgument {
            name: "traversal",
            got: name.to_owned(),
            allowed: "one of auto, top_down, bottom_up, token_scan".to_owned(),
        })
    }
}

/// Statistics that decide about a traversal. A footer has them, so `EXPLAIN` needs no grammar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SegmentShape {
    /// Number of documents.
    pub num_docs: u64,
    /// Number of words of the text.
    pub num_words: u64,
    /// G: number of elements on all right-hand sides.
    pub num_elements: u64,
    /// Bytes of text.
    pub len_bytes: u64,
    /// Number of distinct words. Several segments are counted as if they had no word in common,
    /// which is closer to the truth than the number of one segment.
    pub vocabulary_len: u64,
}

/// Adds up the shapes of several segments to the shape of one.
impl Sum for SegmentShape {
    fn sum<I: Iterator<Item = Self>>(shapes: I) -> Self {
        shapes.fold(Self::default(), |sum, shape| Self {
            num_docs: sum.num_docs.saturating_add(shape.num_docs),
            num_words: sum.num_words.saturating_add(shape.num_words),
            num_elements: sum.num_elements.saturating_add(shape.num_elements),
            len_bytes: sum.len_bytes.saturating_add(shape.len_bytes),
            vocabulary_len: sum.vocabulary_len.saturating_add(shape.vocabulary_len),
        })
    }
}

impl From<&Segment> for SegmentShape {
    fn from(segment: &Segment) -> Self {
        let dag = &segment.dag;
        let root = dag.num_terminals();
        Self {
            num_docs: dag.grammar().num_docs() as u64,
            num_words: dag.len_words(root),
            num_elements: dag.grammar().symbols.len() as u64,
            len_bytes: dag.len_bytes(root),
            vocabulary_len: u64::from(dag.num_words()),
        }
    }
}

impl From<&SegmentMeta> for SegmentShape {
    fn from(meta: &SegmentMeta) -> Self {
        Self {
            num_docs: meta.num_docs,
            num_words: meta.num_word_tokens,
            num_elements: meta.num_elements,
            len_bytes: meta.len_bytes,
            vocabulary_len: u64::from(meta.num_words),
        }
    }
}

/// Task that has several traversals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraversalTask {
    /// Documents of each word.
    InvertedIndex,
    /// Words of each document.
    TermVector,
    /// Sequences of n words.
    SequenceCount,
    /// Sequences of n words of each document.
    DocumentSequences,
    /// Pairs of words in windows of n words.
    Cooccurrence,
}

/// Number of statistics that a cost depends on.
pub const NUM_STATISTICS: usize = 5;

/// Costs of each traversal in nanoseconds: for each element, for each word, for each document, for
/// each element reached by one document, and for each element reached by a group of 8 documents (64
/// for an inverted index). Elements count once for each of the n - 1 words that a window reaches
/// across a border (2 at most; all for pairs). The words of pairs count in the same way. All counts
/// are doubled if keys have more than 64 bits.
///
/// Fitted by `benches/fitting` to the times of seven corpora on one core. A corpus of versions is
/// the only one whose sequences of documents are counted best bottom-up.
pub const TRAVERSAL_COSTS: [(TraversalTask, Traversal, [f64; NUM_STATISTICS]); 13] = [
    (InvertedIndex, TopDown, [5.3, 0.0, 822.6, 0.0, 8.3]),
    (InvertedIndex, BottomUp, [4.6, 0.0, 332.9, 16.9, 0.0]),
    (InvertedIndex, TokenScan, [13.1, 15.0, 122.2, 3.0, 2.3]),
    (TermVector, TopDown, [0.0, 0.0, 4421.9, 4.4, 6.5]),
    (TermVector, BottomUp, [0.0, 4.9, 2373.0, 8.2, 0.0]),
    (TermVector, TokenScan, [4.9, 4.3, 614.6, 6.7, 4.0]),
    (SequenceCount, TopDown, [13.9, 1.9, 0.0, 2.6, 7.1]),
    (SequenceCount, TokenScan, [7.5, 32.1, 0.0, 3.3, 0.0]),
    (DocumentSequences, TopDown, [0.0, 0.0, 3975.0, 31.6, 15.9]),
    (DocumentSequences, BottomUp, [29.2, 0.0, 6738.5, 0.0, 34.1]),
    (DocumentSequences, TokenScan, [14.8, 14.9, 0.0, 6.6, 11.8]),
    (Cooccurrence, TopDown, [32.6, 2.8, 0.0, 0.0, 0.0]),
    (Cooccurrence, TokenScan, [18.4, 19.2, 0.0, 0.0, 0.0]),
];

/// Maximum number of words of a sequence that is assumed to fit a key. Such sequences fit if there
/// are two million distinct words or fewer. A footer does not tell the number for all segments
/// together.
const MAX_NUMBERED_WORDS: usize = 3;
/// Maximum number of words behind a border that add to the cost, because a window is met at most
/// once for each word.
const MAX_REACH: usize = 2;
/// Factor for the time of sequences whose keys have more than 64 bits: 1.5 to 2.6 on seven corpora.
const WIDE_KEYS: f64 = 2.0;
/// Typical number of bits of a weight number in keys of a top-down traversal, for some MB of text.
const WEIGHT_BITS: u64 = 8;

/// Maximum number of bytes of text, for each element of the grammar, for a token scan. Versions of
/// a text have about 50. Separators take time, too, and a hostile file of 1 KB may expand to 2^60.
const MAX_SCAN_BYTES_PER_ELEMENT: u64 = 64;

/// Returns the statistics that the cost of `way` for `task` depends on, for a text of this `shape`
/// and windows of `n` words (2 for tasks without windows). O(1).
pub fn traversal_statistics(
    (task, way): (TraversalTask, Traversal),
    shape: SegmentShape,
    n: usize,
) -> [f64; NUM_STATISTICS] {
    let reach = n.saturating_sub(1).max(1) as f64;
    let elements = shape.num_elements as f64;
    let words = shape.num_words as f64;
    let num_docs = shape.num_docs.max(1) as f64;
    let exponent = (elements.max(2.0).ln() / words.max(2.0).ln()).min(1.0);
    let group_len = if task == InvertedIndex { 64.0 } else { 8.0_f64 };
    let reached = |group_len: f64| {
        let num_groups = (num_docs / group_len).max(1.0);
        num_groups * (words / num_groups).powf(exponent).min(elements)
    };
    let one = reached(1.0);
    let group = reached(group_len);
    match task {
        InvertedIndex | TermVector => [elements, words, num_docs, one, group],
        SequenceCount | DocumentSequences => {
            let reach = reach.min(MAX_REACH as f64);
            let width = if has_wide_keys(way, shape, n) { WIDE_KEYS } else { 1.0 };
            [reach * elements, words, num_docs, reach * one, reach * group].map(|s| width * s)
        }
        Cooccurrence => [reach * elements, reach * words, num_docs, reach * one, reach * group],
    }
}

/// Returns true if sequences of `n` words and the values counted with them exceed 64 bits.
fn has_wide_keys(way: Traversal, shape: SegmentShape, n: usize) -> bool {
    let word_bits = u64::from(u64::BITS - shape.vocabulary_len.saturating_sub(1).leading_zeros());
    let weight_bits = if way == TopDown { WEIGHT_BITS } else { 0 };
    word_bits.saturating_mul(n as u64).saturating_add(weight_bits) > 64
}

/// Returns the traversals of `task` and the cost of each, in nanoseconds. Bottom-up is left out for
/// sequences of many words, which have no numbers. A token scan is left out for a text that is very
/// much longer than its grammar.
pub fn traversal_costs(task: TraversalTask, shape: SegmentShape, n: usize) -> impl Iterator<Item = (Traversal, f64)> {
    let max_scan_bytes = shape.num_elements.saturating_mul(MAX_SCAN_BYTES_PER_ELEMENT);
    let is_way = move |way| match (task, way) {
        (_, TokenScan) => shape.len_bytes <= max_scan_bytes,
        (DocumentSequences, BottomUp) => n <= MAX_NUMBERED_WORDS,
        _ => true,
    };
    let ways = TRAVERSAL_COSTS.iter().filter(move |(of, way, _)| *of == task && is_way(*way));
    ways.map(move |(_, way, constants)| {
        let statistics = traversal_statistics((task, *way), shape, n);
        (*way, traversal_cost(constants, &statistics))
    })
}

/// Returns the cost in nanoseconds of a traversal with these `constants` ([`TRAVERSAL_COSTS`]), for
/// a text with these `statistics`.
pub fn traversal_cost(constants: &[f64; NUM_STATISTICS], statistics: &[f64; NUM_STATISTICS]) -> f64 {
    constants.iter().zip(statistics).map(|(nanoseconds, statistic)| nanoseconds * statistic).sum()
}

/// Chooses the cheapest traversal of `task` for a text of this `shape`. Returns it, never
/// [`Traversal::Auto`], and the reason for `EXPLAIN`. The reason names the other traversals by
/// cost, without numbers that a new table would change.
pub fn choose_task_traversal(task: TraversalTask, shape: SegmentShape, n: usize) -> (Traversal, String) {
    let costs = cheapest_first(task, shape, n);
    let words_per_doc = shape.num_words / shape.num_docs.max(1);
    let reuse = shape.num_elements as f64 / shape.num_words.max(1) as f64;
    let dearer: Vec<&str> = costs.iter().skip(1).map(|(way, _)| way.as_str()).collect();
    let verdict = if dearer.is_empty() {
        "the only traversal".to_owned()
    } else {
        format!("estimated to cost less than {}", dearer.join(", "))
    };
    let reason = format!("documents of {words_per_doc} words, {reuse:.2} grammar elements a word: {verdict}");
    (costs.first().map_or(TopDown, |&(way, _)| way), reason)
}

/// Returns the traversals of `task` and their costs, ascending by cost.
pub(super) fn cheapest_first(task: TraversalTask, shape: SegmentShape, n: usize) -> Vec<(Traversal, f64)> {
    let mut costs: Vec<(Traversal, f64)> = traversal_costs(task, shape, n).collect();
    costs.sort_by(|a, b| a.1.total_cmp(&b.1));
    costs
}

/// Chooses the traversal for the documents of a segment of this `shape`. Returns it, never
/// [`Traversal::Auto`], and the reason for `EXPLAIN`. O(1) from stored statistics.
pub fn choose_traversal(shape: impl Into<SegmentShape>) -> (Traversal, String) {
    choose_task_traversal(TraversalTask::InvertedIndex, shape.into(), 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_setting() {
        for way in Traversal::ALL {
            assert_eq!(way.to_string().parse::<Traversal>().unwrap(), way);
        }
        let fault = "sideways".parse::<Traversal>().unwrap_err();
        assert!(matches!(fault, Error::InvalidArgument { name: "traversal", .. }), "{fault}");
    }

    /// A text of 2^60 words in a hundred elements is never scanned.
    #[test]
    fn a_text_that_expands_is_not_scanned() {
        let shape =
            SegmentShape { num_docs: 3, num_words: 1 << 60, num_elements: 100, len_bytes: 1 << 62, vocabulary_len: 9 };
        for (task, ..) in TRAVERSAL_COSTS {
            assert_ne!(choose_task_traversal(task, shape, 3).0, TokenScan, "{task:?}");
        }
    }

    /// Text of 50,000 documents with one word and 50,000 commas each.
    #[test]
    fn separators_are_not_scanned_either() {
        let num_docs = 50_000;
        let num_words = 50_000;
        let num_elements = 100_001;
        let len_bytes = 50_000 * 50_001;
        let vocabulary_len = 1;
        let shape = SegmentShape { num_docs, num_words, num_elements, len_bytes, vocabulary_len };
        for (task, ..) in TRAVERSAL_COSTS {
            assert_ne!(choose_task_traversal(task, shape, 3).0, TokenScan, "{task:?}");
        }
    }

    /// Text of 1 GB of sources in 8 segments: 3.1 s top-down, 4.8 s by a token scan.
    #[test]
    fn keys_of_many_segments_are_as_wide_for_a_scan() {
        let part = SegmentShape {
            num_docs: 9_700,
            num_words: 16_000_000,
            num_elements: 6_600_000,
            len_bytes: 134_000_000,
            vocabulary_len: 500_000,
        };
        let shape = (0..8).map(|_| part).sum();
        assert_eq!(choose_task_traversal(SequenceCount, shape, 3).0, TopDown);
    }

    /// Shapes of corpora for which one traversal is much faster.
    #[test]
    fn documents_are_counted_by_the_way_that_was_fastest() {
        let shape = |num_docs, num_words, num_elements| SegmentShape {
            num_docs,
            num_words,
            num_elements,
            len_bytes: 6 * num_words,
            vocabulary_len: 30_000,
        };
        let logs = shape(30, 2_558_124, 488_478);
        let versions = shape(360, 1_113_111, 162_151);
        let small_pages = shape(7424, 596_730, 453_924);
        for (shape, n, fastest) in [
            (logs, 2, TopDown),
            (logs, 5, TopDown),
            (versions, 3, BottomUp),
            (versions, 5, TokenScan),
            (small_pages, 3, TokenScan),
        ] {
            assert_eq!(choose_task_traversal(DocumentSequences, shape, n).0, fastest, "{shape:?}");
        }
    }

    #[test]
    fn the_cheapest_way_is_chosen_and_all_are_shown() {
        let shape =
            SegmentShape { num_docs: 9, num_words: 5000, num_elements: 700, len_bytes: 30_000, vocabulary_len: 99 };
        for (task, ..) in TRAVERSAL_COSTS {
            let (chosen, reason) = choose_task_traversal(task, shape, 4);
            let costs: Vec<_> = traversal_costs(task, shape, 4).collect();
            let least = costs.iter().map(|&(_, cost)| cost).fold(f64::MAX, f64::min);
            assert!(costs.contains(&(chosen, least)), "{task:?}");
            let mut dearer = costs.iter().filter(|&&(way, _)| way != chosen);
            assert!(dearer.all(|(way, _)| reason.contains(way.as_str())), "{reason}");
        }
    }
}
