//! The words of a few documents with counts, ascending, from the grammar of their segment.
//!
//! - *top-down*: counts of [`GROUP_LEN`] documents flow from the root to rules and words in one sweep
//!   ([`lane_counts`](super::lane_counts)).
//! - *bottom-up*: one document at a time; small rules add their bag of words
//!   ([`term_bags`](super::term_bags)).
//! - *token scan*: the document is written as an array of words and these are counted.
//!
//! Cost: O(root ranges + rules reached) for the first two, whatever the documents expand to;
//! O(words) for the third.

use std::ops::Range;

use crate::dag::{Dag, Expansion, MAX_WORDS, RuleTexts, num_words_at};
use crate::error::{Error, Result};

use super::Traversal;
use super::lane_counts::{Bodies, Held, LaneCounts};
use super::term_bags::TermBags;
use super::word_walk::WordWalk;

/// Documents of one sweep: 32 bytes a word and rule.
pub(super) const GROUP_LEN: usize = 8;
/// Counts of a group at most, about what caches hold: behind that a sweep for several documents is slower
/// than several sweeps (38 against 24 ms for 1.9 million elements, hardly one in two documents).
const MAX_GROUP_BYTES: usize = 1 << 24;
/// Text of a document at most where every token is looked at.
const MAX_SCAN_BYTES: u64 = 1 << 32;
/// Words that are handed over at once where a document is too large for an array.
const STEP_WORDS: usize = 1 << 16;

/// What was made for the rules of a segment to count its documents sooner.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Helps<'a> {
    /// For bottom-up.
    pub bags: Option<&'a TermBags>,
    /// For a token scan.
    pub texts: Option<&'a RuleTexts>,
}

/// Counts of the words of some documents at a time, all of one segment.
#[derive(Debug)]
pub(super) enum DocTerms {
    /// One sweep for several documents of fewer than 2^32 words.
    Group(Box<LaneCounts<u32, GROUP_LEN>>),
    /// One document at a time, of any size.
    Single(LaneCounts<u64, 1>),
    /// One document at a time, every token of it.
    Scan(LaneCounts<u64, 1>, Expansion),
}

impl DocTerms {
    /// Counts the words of documents of `dag` by `traversal`.
    pub fn new(dag: &Dag, traversal: Traversal) -> Self {
        let (num_words, num_rules) = (dag.num_words() as usize, dag.grammar().num_rules());
        let is_narrow = dag.len_words(dag.num_terminals()) <= u64::from(u32::MAX);
        let group_bytes = size_of::<[u32; GROUP_LEN]>() * (num_words + num_rules);
        match traversal {
            Traversal::TokenScan => Self::Scan(LaneCounts::new(num_words, 0), Expansion::default()),
            Traversal::TopDown if is_narrow && group_bytes <= MAX_GROUP_BYTES => {
                Self::Group(Box::new(LaneCounts::new(num_words, num_rules)))
            }
            _ => Self::Single(LaneCounts::new(num_words, num_rules)),
        }
    }

    /// Documents that are counted at once, at most.
    pub fn group_len(&self) -> usize {
        match self {
            Self::Group(_) => GROUP_LEN,
            Self::Single(_) | Self::Scan(..) => 1,
        }
    }

    /// Words of the document at `lane` of those that were counted last, ascending.
    pub fn words(&self, lane: usize) -> &[u32] {
        match self {
            Self::Group(counts) => counts.items(lane),
            Self::Single(counts) | Self::Scan(counts, _) => counts.items(lane),
        }
    }

    /// How often each of [`words`](Self::words) occurs.
    pub fn counts(&self, lane: usize) -> &[u64] {
        match self {
            Self::Group(counts) => counts.counts(lane),
            Self::Single(counts) | Self::Scan(counts, _) => counts.counts(lane),
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Group(counts) => counts.memory_bytes(),
            Self::Single(counts) => counts.memory_bytes(),
            Self::Scan(counts, expansion) => counts.memory_bytes() + expansion.memory_bytes(),
        }
    }

    /// Counts the words of `docs` (indexes inside the segment), one at least and at
    /// most [`group_len`](Self::group_len) of them, with bags and texts where there are any.
    ///
    /// # Errors
    /// [`Error::Capacity`] for a token scan of a document of more than 2^32 bytes.
    pub fn count(&mut self, dag: &Dag, docs: &[usize], helps: Helps<'_>) -> Result<()> {
        let words = Words { dag, bags: helps.bags };
        match self {
            Self::Group(counts) => counts.count(&words, docs),
            Self::Single(counts) => counts.count(&words, docs),
            Self::Scan(counts, expansion) => {
                let positions = dag.doc_range(docs[0]);
                check_len_bytes(dag, positions.clone())?;
                let none = RuleTexts::default();
                let texts = helps.texts.unwrap_or(&none);
                counts.count_each(|add| match num_words_at(dag, positions.clone()) {
                    0..=MAX_WORDS => add(expansion.expand(dag, texts, positions)),
                    _ => walk(dag, positions, add),
                });
            }
        }
        Ok(())
    }
}

/// Hands the words at `positions` over in small arrays.
fn walk(dag: &Dag, positions: Range<usize>, add: &mut dyn FnMut(&[u32])) {
    let mut walk = WordWalk::default();
    walk.start(positions);
    let mut words = Vec::with_capacity(STEP_WORDS);
    while walk.next_words(dag, STEP_WORDS, |word| words.push(word)) > 0 {
        add(&words);
        words.clear();
    }
}

pub(super) fn check_len_bytes(dag: &Dag, positions: Range<usize>) -> Result<()> {
    let lens = dag.grammar().symbols[positions].iter().map(|&element| dag.len_bytes(element));
    let len_bytes = lens.fold(0, u64::saturating_add);
    if len_bytes <= MAX_SCAN_BYTES {
        return Ok(());
    }
    Err(Error::Capacity {
        what: "a token scan of one document in bytes",
        requested: len_bytes,
        limit: MAX_SCAN_BYTES,
        knob: "nothing, but take another traversal (the others expand no document)",
    })
}

/// Words and rules on right-hand sides, or the bags of rules that have one.
struct Words<'a> {
    dag: &'a Dag,
    bags: Option<&'a TermBags>,
}

impl Words<'_> {
    #[inline]
    fn at(&self, positions: Range<usize>, mut f: impl FnMut(Held)) {
        let num_words = self.dag.num_words();
        for &element in &self.dag.grammar().symbols[positions] {
            if element < num_words {
                f(Held::Item(element));
            } else if let Some(rule_idx) = self.dag.rule_of(element) {
                f(Held::Rule(rule_idx));
            }
        }
    }
}

impl Bodies for Words<'_> {
    #[inline]
    fn of_doc(&self, doc: usize, f: impl FnMut(Held)) {
        self.at(self.dag.doc_range(doc), f);
    }

    #[inline]
    fn of_rule(&self, rule_idx: usize, mut f: impl FnMut(Held)) {
        match self.bags.and_then(|bags| bags.get(rule_idx)) {
            Some(bag) => bag.iter().for_each(|&(word, times)| f(Held::Items(word, times))),
            None => self.at(self.dag.rule_range(rule_idx), f),
        }
    }
}
