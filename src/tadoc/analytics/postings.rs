//! Inverted index of one segment: the documents of each word, in one array.
//!
//! ```text
//! documents 0-63   ─▶ word 7: 0b1001, word 12: 0b0001 ...   ┐ split by      ┌ words 0 .. 4095
//! documents 64-127 ─▶ word 7: 0b0100 ...                    ├ word ranges ─▶├ words 4096 .. 8191
//! ...                                                       ┘               └ ...
//! ```
//!
//! One parallel task handles 64 documents. Each word gets a mask of the documents that contain it.
//! The three traversals differ only in how they fill the masks:
//!
//! - *top-down*: masks flow from the root to the rules below. Each rule reached is visited once for
//!   64 documents. O(root + rules reached * length).
//! - *bottom-up*: small rules get sets of words, children first. A document adds the sets of its
//!   rules. O(root + sets of the rules used).
//! - *token scan*: every token of every document is read.
//!
//! Then the masks are split by ranges of words. Each range becomes a contiguous part of the result that one task
//! writes, so the bytes are the same for any number of threads. Each task adds the number of its entries to one
//! counter, so that a small file of many documents with the same many words is rejected before it fills the memory.
//!
//! One set of documents for each element, joined from parents to children in one sweep as in the papers, takes several
//! times as long, as roaring bitmaps and as the papers' double-layered bitmaps.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::error::{Canceller, Error, Result};
use crate::ids::{DocId, RuleId};
use crate::segment::{Dag, Segment};

use super::Traversal;

/// Number of documents of a parallel task, with one bit of a mask each.
pub(super) const DOCS_PER_TASK: usize = 64;
/// Minimum number of words of a range, so that a small vocabulary is not split in vain.
const MIN_RANGE_WORDS: usize = 1024;
/// Maximum number of ranges, which limits the number of places written at random while splitting.
const MAX_RANGES: usize = 256;
/// Maximum number of words in the set of a rule. Larger rules get no set and are expanded instead.
const MAX_BAG_WORDS: usize = 256;
/// Maximum number of words in all sets, for each element of the grammar.
const BAG_WORDS_PER_ELEMENT: usize = 4;

/// Maximum number of documents in the lists of all words: 2 GiB. A block of 128 MiB of text has at
/// most an eighth of it.
const MAX_POSTINGS: u64 = 1 << 29;

/// Documents of one segment, by word.
#[derive(Debug)]
pub(super) struct Postings {
    offsets: Vec<usize>,
    docs: Vec<u32>,
    traversal: Traversal,
}

impl Postings {
    /// Builds the index of `segment` by `traversal`; `Auto` is treated as top-down. If `first_ids`
    /// is not empty, the documents of a word are in the list of its first id, and its own list is
    /// empty.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the lists of all words have more than 2^29 documents in total, and
    /// [`Error::Cancelled`].
    pub fn new(segment: &Segment, traversal: Traversal, first_ids: &[u32], canceller: Canceller<'_>) -> Result<Self> {
        canceller.check()?;
        let dag = &segment.dag;
        let num_docs = dag.grammar().num_docs();
        let num_words = dag.num_words() as usize;
        let bags = match traversal {
            Traversal::BottomUp => Bags::new(dag),
            _ => Bags::default(),
        };
        let num_threads = rayon::current_num_threads();
        let docs_per_task = num_docs.div_ceil(num_threads).clamp(1, DOCS_PER_TASK);
        let range_words = (num_words / MAX_RANGES + 1).max(MIN_RANGE_WORDS).next_power_of_two();
        let num_tasks = num_docs.div_ceil(docs_per_task);
        let num_postings = AtomicU64::new(0);
        let tasks: Result<Vec<TaskMasks>> = (0..num_tasks)
            .into_par_iter()
            .with_min_len(num_tasks.div_ceil(4 * num_threads))
            .map_init(
                || Masks::new(dag, first_ids),
                |masks, task| {
                    canceller.check()?;
                    let first = task * docs_per_task;
                    let docs = first..num_docs.min(first + docs_per_task);
                    match traversal {
                        Traversal::TokenScan => masks.scan(docs.clone()),
                        Traversal::BottomUp => masks.add_bags(&bags, docs.clone()),
                        _ => masks.sweep(docs.clone()),
                    }
                    let found = masks.split(DocId::from_index(first), range_words, num_words);
                    let before = num_postings.fetch_add(found.num_postings(), Ordering::Relaxed);
                    check_num_postings(before + found.num_postings())?;
                    Ok(found)
                },
            )
            .collect();
        let (offsets, docs) = join(&tasks?, num_words, range_words, canceller)?;
        Ok(Self { offsets, docs, traversal })
    }

    /// Creates the index from lists that were made from the words of the text. The list of word `w`
    /// is `docs[offsets[w]..offsets[w + 1]]`.
    ///
    /// # Errors
    /// The errors of [`new`](Self::new).
    pub fn from_lists(offsets: Vec<usize>, docs: Vec<u32>) -> Result<Self> {
        check_num_postings(docs.len() as u64)?;
        Ok(Self { offsets, docs, traversal: Traversal::TokenScan })
    }

    /// Returns the memory of the lists in bytes.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.offsets.as_slice()) + size_of_val(self.docs.as_slice())
    }

    /// Returns the documents that contain `word`, ascending, by their id in the segment.
    pub fn docs(&self, word: u32) -> &[u32] {
        &self.docs[self.offsets[word as usize]..self.offsets[word as usize + 1]]
    }

    /// Returns the traversal that built the index.
    pub fn traversal(&self) -> Traversal {
        self.traversal
    }
}

/// Checks the number of entries so far. The final number is not known yet.
fn check_num_postings(at_least: u64) -> Result<()> {
    if at_least <= MAX_POSTINGS {
        return Ok(());
    }
    Err(Error::Capacity {
        what: "the inverted index of a segment (entries, at least)",
        requested: MAX_POSTINGS + 1,
        limit: MAX_POSTINGS,
        knob: "the number of segments (smaller blocks at ingest)",
    })
}

/// Masks of the documents of a parallel task, by element.
pub(super) struct Masks<'a> {
    dag: &'a Dag,
    /// For each word, the word whose mask it adds to. Empty if that is the word itself.
    first_ids: &'a [u32],
    masks: Vec<u64>,
    /// Words with a mask, in the order in which they were met.
    words: Vec<u32>,
    /// One bit for each rule: the rule has a mask.
    rules: Vec<u64>,
    /// Rules with a mask, for the traversals that need no order.
    touched_rules: Vec<RuleId>,
    stack: Vec<Range<usize>>,
}

impl<'a> Masks<'a> {
    pub fn new(dag: &'a Dag, first_ids: &'a [u32]) -> Self {
        Self {
            dag,
            first_ids,
            masks: vec![0; dag.num_elements()],
            words: Vec::new(),
            rules: vec![0; dag.grammar().num_rules() / 64 + 1],
            touched_rules: Vec::new(),
            stack: Vec::new(),
        }
    }

    /// Fills the masks top-down: they flow from the documents to the rules, parents before
    /// children.
    fn sweep(&mut self, docs: Range<usize>) {
        for (bit, doc) in DocId::range(docs).enumerate() {
            self.add_all(self.dag.doc_range(doc), 1 << bit);
        }
        let num_terminals = self.dag.num_terminals() as usize;
        let mut at = 0;
        while at < self.rules.len() {
            let bits = self.rules[at];
            if bits == 0 {
                at += 1;
                continue;
            }
            self.rules[at] = bits & (bits - 1);
            let rule_id = RuleId::from(at as u32 * 64 + bits.trailing_zeros());
            let mask = std::mem::take(&mut self.masks[num_terminals + rule_id.index()]);
            self.add_all(self.dag.rule_range(rule_id), mask);
        }
    }

    /// Adds `mask` to the words and rules at `positions`.
    fn add_all(&mut self, positions: Range<usize>, mask: u64) {
        let dag = self.dag;
        let num_words = dag.num_words();
        for &element in &dag.grammar().symbols[positions] {
            if element < num_words {
                self.add_word(element, mask);
            } else if let Some(rule_id) = dag.rule_of(element) {
                self.masks[element as usize] |= mask;
                self.rules[rule_id.index() / 64] |= 1 << (rule_id.index() % 64);
            }
        }
    }

    #[inline]
    fn add_word(&mut self, word: u32, mask: u64) {
        let slot = &mut self.masks[word as usize];
        if *slot == 0 {
            self.words.push(word);
        }
        *slot |= mask;
    }

    /// Fills the masks by a token scan, which reads every token of every document.
    fn scan(&mut self, docs: Range<usize>) {
        for (bit, doc) in DocId::range(docs).enumerate() {
            self.walk(doc, 1 << bit, |_, _| Step::Enter);
        }
    }

    /// Fills the masks bottom-up: each document adds the sets of its rules, each rule once.
    fn add_bags(&mut self, bags: &Bags, docs: Range<usize>) {
        let num_terminals = self.dag.num_terminals() as usize;
        for (bit, doc) in DocId::range(docs).enumerate() {
            let mask = 1 << bit;
            self.walk(doc, mask, |masks, rule_id| {
                let slot = &mut masks.masks[num_terminals + rule_id.index()];
                if *slot & mask != 0 {
                    return Step::Skip;
                }
                if *slot == 0 {
                    masks.touched_rules.push(rule_id);
                }
                *slot |= mask;
                match bags.get(rule_id) {
                    Some(words) => {
                        words.iter().for_each(|&word| masks.add_word(word, mask));
                        Step::Skip
                    }
                    None => Step::Enter,
                }
            });
        }
        for rule_id in self.touched_rules.drain(..) {
            self.masks[num_terminals + rule_id.index()] = 0;
        }
    }

    /// Walks over the expansion of `doc`. Adds `mask` to its words and asks `enter` at each rule.
    fn walk(&mut self, doc: DocId, mask: u64, mut enter: impl FnMut(&mut Self, RuleId) -> Step) {
        let dag = self.dag;
        let mut range = dag.doc_range(doc);
        loop {
            let Some(position) = range.next() else {
                match self.stack.pop() {
                    Some(outer) => range = outer,
                    None => return,
                }
                continue;
            };
            let element = dag.grammar().symbols[position];
            if element < dag.num_words() {
                self.add_word(element, mask);
            } else if let Some(rule_id) = dag.rule_of(element)
                && dag.len_words(element) > 0
                && matches!(enter(self, rule_id), Step::Enter)
            {
                let outer = std::mem::replace(&mut range, dag.rule_range(rule_id));
                if !outer.is_empty() {
                    self.stack.push(outer);
                }
            }
        }
    }

    /// Adds the number of documents that contain each word, at most 64, to `counts`. The masks are
    /// filled top-down.
    pub fn count_docs(&mut self, docs: Range<usize>, counts: &mut [u32]) {
        self.sweep(docs);
        self.join_folded();
        for word in self.words.drain(..) {
            counts[word as usize] += std::mem::take(&mut self.masks[word as usize]).count_ones();
        }
    }

    /// Adds the masks of words that fold to the same text to the mask of the first of these words.
    fn join_folded(&mut self) {
        if self.first_ids.is_empty() {
            return;
        }
        for at in 0..self.words.len() {
            let word = self.words[at];
            let first_id = self.first_ids[word as usize];
            if first_id != word {
                let mask = std::mem::take(&mut self.masks[word as usize]);
                self.add_word(first_id, mask);
            }
        }
        let masks = &self.masks;
        self.words.retain(|&word| masks[word as usize] != 0);
    }

    /// Returns the masks, grouped by ranges of `range_words` words, and clears them.
    fn split(&mut self, first_doc: DocId, range_words: usize, num_words: usize) -> TaskMasks {
        self.join_folded();
        let num_ranges = num_words.div_ceil(range_words);
        let mut ends = vec![0u32; num_ranges + 1];
        for &word in &self.words {
            ends[word as usize / range_words + 1] += 1;
        }
        for range in 0..num_ranges {
            ends[range + 1] += ends[range];
        }
        let mut next = ends.clone();
        let mut masks = vec![WordMask { word: 0, mask: 0 }; self.words.len()];
        for word in self.words.drain(..) {
            let slot = &mut next[word as usize / range_words];
            let mask = std::mem::take(&mut self.masks[word as usize]);
            masks[*slot as usize] = WordMask { word, mask };
            *slot += 1;
        }
        TaskMasks { first_doc, ends, masks }
    }
}

/// Decision about a rule during a walk.
enum Step {
    Enter,
    Skip,
}

/// Word and the documents of a parallel task that contain it.
#[derive(Debug, Clone, Copy)]
struct WordMask {
    word: u32,
    mask: u64,
}

/// Result of one parallel task.
struct TaskMasks {
    first_doc: DocId,
    /// Ends of the ranges of words: range `r` has `masks[ends[r]..ends[r + 1]]`.
    ends: Vec<u32>,
    masks: Vec<WordMask>,
}

impl TaskMasks {
    fn num_postings(&self) -> u64 {
        self.masks.iter().map(|found| u64::from(found.mask.count_ones())).sum()
    }

    fn for_range(&self, range: usize) -> &[WordMask] {
        &self.masks[self.ends[range] as usize..self.ends[range + 1] as usize]
    }
}

/// Joins the masks of all tasks, ascending by document, to offsets by word and an array of
/// documents.
///
/// # Errors
/// [`Error::Cancelled`].
fn join(
    tasks: &[TaskMasks],
    num_words: usize,
    range_words: usize,
    canceller: Canceller<'_>,
) -> Result<(Vec<usize>, Vec<u32>)> {
    let mut offsets = vec![0usize; num_words + 1];
    offsets[1..].par_chunks_mut(range_words).enumerate().try_for_each(|(range, counts)| {
        canceller.check()?;
        for found in tasks.iter().flat_map(|task| task.for_range(range)) {
            counts[found.word as usize % range_words] += found.mask.count_ones() as usize;
        }
        Ok(())
    })?;
    for word in 0..num_words {
        offsets[word + 1] += offsets[word];
    }
    let mut docs = vec![0u32; offsets[num_words]];
    let mut parts = Vec::with_capacity(num_words.div_ceil(range_words));
    let mut rest = docs.as_mut_slice();
    for first_word in (0..num_words).step_by(range_words) {
        let end_word = num_words.min(first_word + range_words);
        let (part, after) = rest.split_at_mut(offsets[end_word] - offsets[first_word]);
        parts.push((&offsets[first_word..end_word], part));
        rest = after;
    }
    parts.into_par_iter().enumerate().try_for_each(|(range, (offsets, docs))| {
        canceller.check()?;
        let base = offsets[0];
        let mut next: Vec<usize> = offsets.iter().map(|offset| offset - base).collect();
        for task in tasks {
            for found in task.for_range(range) {
                let next = &mut next[found.word as usize % range_words];
                let mut mask = found.mask;
                while mask != 0 {
                    docs[*next] = u32::from(task.first_doc) + mask.trailing_zeros();
                    *next += 1;
                    mask &= mask - 1;
                }
            }
        }
        Ok(())
    })?;
    Ok((offsets, docs))
}

/// Distinct words of small rules.
#[derive(Debug, Default)]
struct Bags {
    /// Range of each rule in `words`; empty for a rule without a set.
    ranges: Vec<(u32, u32)>,
    words: Vec<u32>,
}

impl Bags {
    /// Builds the sets from children to parents.
    fn new(dag: &Dag) -> Self {
        let grammar = dag.grammar();
        let max_words = grammar.symbols.len().saturating_mul(BAG_WORDS_PER_ELEMENT).min(u32::MAX as usize);
        let mut bags = Self { ranges: vec![(0, 0); grammar.num_rules()], words: Vec::new() };
        let mut seen_in = vec![RuleId::ROOT; dag.num_words() as usize];
        for rule_id in grammar.rule_ids().skip(1).rev() {
            if bags.words.len() + MAX_BAG_WORDS > max_words {
                break;
            }
            let start = bags.words.len();
            if bags.fill(dag, rule_id, &mut seen_in) {
                bags.ranges[rule_id.index()] = (start as u32, bags.words.len() as u32);
            } else {
                bags.words.truncate(start);
            }
        }
        bags
    }

    /// Appends the distinct words of rule `rule_id`. Returns false if they are too many.
    fn fill(&mut self, dag: &Dag, rule_id: RuleId, seen_in: &mut [RuleId]) -> bool {
        let start = self.words.len();
        for &element in dag.grammar().rule(rule_id) {
            let (child_start, child_end) = match dag.rule_of(element) {
                _ if dag.len_words(element) == 0 => continue,
                None => {
                    push_new(&mut self.words, element, rule_id, seen_in);
                    continue;
                }
                Some(child) => self.ranges[child.index()],
            };
            if child_start == child_end {
                return false;
            }
            for at in child_start..child_end {
                let word = self.words[at as usize];
                push_new(&mut self.words, word, rule_id, seen_in);
            }
            if self.words.len() - start > MAX_BAG_WORDS {
                return false;
            }
        }
        self.words.len() - start <= MAX_BAG_WORDS
    }

    fn get(&self, rule_id: RuleId) -> Option<&[u32]> {
        let (start, end) = self.ranges[rule_id.index()];
        (start < end).then(|| &self.words[start as usize..end as usize])
    }
}

#[inline]
fn push_new(words: &mut Vec<u32>, word: u32, rule_id: RuleId, seen_in: &mut [RuleId]) {
    if seen_in[word as usize] != rule_id {
        seen_in[word as usize] = rule_id;
        words.push(word);
    }
}
