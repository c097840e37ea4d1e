//! The words of one document with counts, ascending, from the grammar of its segment.
//!
//! A document's root range puts a count on each element it names; counts flow from rules to what
//! they hold, parents before children, so each rule is looked at once however often the document
//! uses it. Rules that wait are bits, with one bit more for each 64, so that the next one is found
//! in a few steps. Words that got a count are a list, sorted by comparison where they are few and
//! by one bit a word where they are many.
//!
//! ```text
//! document 7   root: [R1 R2 R3 R4]          ┐ R1 R2 R4 cancel out,   words of document 7
//! document 8   root: [R1 R2 R5 R4 "new"]    ┘ R5 - R3 flows down  ─▶ + and - where R5 differs
//! ```
//!
//! A document made of few large rules is compared with the one before it first: where they share
//! half of their words or more, only the difference flows down, and the words before are copied.
//! Counts wrap on the way and are exact at the end, as no document has 2^64 words.
//!
//! Cost: O(root range + rules reached), at most O(G) a document, whatever it expands to.

use std::ops::Range;

use crate::dag::Dag;
use crate::error::{Error, Result};

use super::Traversal;
use super::term_bags::TermBags;
use super::word_walk::WordWalk;

/// Words for each root element of a document from which it is compared with the one before.
const MIN_WORDS_TO_COMPARE: u64 = 8;
/// Text of a document at most where every token is looked at.
const MAX_SCAN_BYTES: u64 = 1 << 32;

/// Counts of the words of one document at a time, all of one segment.
#[derive(Debug)]
pub(super) struct DocTerms {
    /// By element, 0 between documents but for separators, whose counts nobody reads.
    element_counts: Vec<u64>,
    /// Words whose count changed from 0, maybe more than once.
    touched: Vec<u32>,
    /// One bit a rule: it waits for its count to be passed on.
    waiting: Vec<u64>,
    /// One bit for each element of `waiting`: it is not 0.
    waiting_blocks: Vec<u64>,
    num_waiting: usize,
    first_block: usize,
    /// One bit a word, all 0 between documents.
    word_bits: Vec<u64>,
    walk: WordWalk,
    last_doc: Option<usize>,
    words: Vec<u32>,
    word_counts: Vec<u64>,
    changes: Vec<(u32, u64)>,
}

impl DocTerms {
    pub fn new(dag: &Dag) -> Self {
        let num_blocks = dag.grammar().num_rules() / 64 + 1;
        Self {
            element_counts: vec![0; dag.num_elements()],
            touched: Vec::new(),
            waiting: vec![0; num_blocks],
            waiting_blocks: vec![0; num_blocks / 64 + 1],
            num_waiting: 0,
            first_block: usize::MAX,
            word_bits: vec![0; dag.num_words() as usize / 64 + 1],
            walk: WordWalk::default(),
            last_doc: None,
            words: Vec::new(),
            word_counts: Vec::new(),
            changes: Vec::new(),
        }
    }

    /// Words of the document that was counted last, ascending.
    pub fn words(&self) -> &[u32] {
        &self.words
    }

    /// How often each of [`words`](Self::words) occurs.
    pub fn counts(&self) -> &[u64] {
        &self.word_counts
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        8 * (self.element_counts.capacity()
            + self.waiting.capacity()
            + self.waiting_blocks.capacity()
            + self.word_bits.capacity()
            + self.word_counts.capacity())
            + 4 * (self.touched.capacity() + self.words.capacity())
            + 16 * self.changes.capacity()
    }

    /// Counts the words of document `doc` (index inside the segment), by bags where there are any.
    ///
    /// # Errors
    /// [`Error::Capacity`] for a token scan of a document of more than 2^32 bytes.
    pub fn count(
        &mut self,
        dag: &Dag,
        doc: usize,
        traversal: Traversal,
        bags: Option<&TermBags>,
    ) -> Result<()> {
        if traversal == Traversal::TokenScan {
            self.scan(dag, doc)?;
            self.replace(dag);
            return Ok(());
        }
        let positions = dag.doc_range(doc);
        self.add_all(dag, positions.clone(), 1);
        let is_similar = self.subtract_last(dag, positions);
        self.pass_on(dag, bags);
        match is_similar {
            true => self.change(dag),
            false => self.replace(dag),
        }
        self.last_doc = Some(doc);
        Ok(())
    }

    /// Takes the document before off the counts where that leaves less to do.
    fn subtract_last(&mut self, dag: &Dag, positions: Range<usize>) -> bool {
        let Some(last) = self.last_doc else { return false };
        let last = dag.doc_range(last);
        let symbols = &dag.grammar().symbols;
        let len_words = |element: u32| dag.len_words(element);
        let sum = |sum: u64, len: u64| sum.saturating_add(len);
        let num_words = symbols[positions.clone()].iter().map(|&e| len_words(e)).fold(0, sum);
        let num_elements = (positions.len() + last.len()) as u64;
        if num_elements * MIN_WORDS_TO_COMPARE > num_words {
            return false;
        }
        self.add_all(dag, last.clone(), u64::MAX);
        let both = symbols[positions].iter().chain(&symbols[last.clone()]);
        let changed = both.filter(|&&element| self.element_counts[element as usize] != 0);
        let num_changed = changed.map(|&e| len_words(e)).fold(0, sum);
        let is_similar = num_changed <= num_words;
        if !is_similar {
            self.add_all(dag, last, 1);
        }
        is_similar
    }

    /// Adds `count`, wrapping, to each element at `positions`.
    fn add_all(&mut self, dag: &Dag, positions: Range<usize>, count: u64) {
        let num_words = dag.num_words();
        for &element in &dag.grammar().symbols[positions] {
            if element < num_words {
                self.add_word(element, count);
            } else if let Some(rule_idx) = dag.rule_of(element) {
                let slot = &mut self.element_counts[element as usize];
                *slot = slot.wrapping_add(count);
                let (block, bit) = (rule_idx / 64, 1 << (rule_idx % 64));
                self.num_waiting += usize::from(self.waiting[block] & bit == 0);
                self.waiting[block] |= bit;
                self.waiting_blocks[block / 64] |= 1 << (block % 64);
                self.first_block = self.first_block.min(block / 64);
            }
        }
    }

    #[inline]
    fn add_word(&mut self, word: u32, count: u64) {
        let slot = &mut self.element_counts[word as usize];
        if *slot == 0 {
            self.touched.push(word);
        }
        *slot = slot.wrapping_add(count);
    }

    /// Passes the counts of rules on to words, parents before children.
    fn pass_on(&mut self, dag: &Dag, bags: Option<&TermBags>) {
        let num_terminals = dag.num_terminals() as usize;
        let mut at = self.first_block;
        while self.num_waiting > 0 {
            if self.waiting_blocks[at] == 0 {
                at += 1;
                continue;
            }
            let block = at * 64 + self.waiting_blocks[at].trailing_zeros() as usize;
            // Rules met on the way may wait in the same block, behind the one that is looked at.
            while self.waiting[block] != 0 {
                let rule_idx = block * 64 + self.waiting[block].trailing_zeros() as usize;
                self.waiting[block] &= self.waiting[block] - 1;
                self.num_waiting -= 1;
                let count = std::mem::take(&mut self.element_counts[num_terminals + rule_idx]);
                if count == 0 {
                    continue;
                }
                match bags.and_then(|bags| bags.get(rule_idx)) {
                    Some(bag) => bag.iter().for_each(|&(word, times)| {
                        self.add_word(word, count.wrapping_mul(u64::from(times)));
                    }),
                    None => self.add_all(dag, dag.rule_range(rule_idx), count),
                }
            }
            self.waiting_blocks[at] &= !(1 << (block % 64));
        }
        self.first_block = usize::MAX;
    }

    /// Looks at every token of the document.
    fn scan(&mut self, dag: &Dag, doc: usize) -> Result<()> {
        let positions = dag.doc_range(doc);
        let elements = &dag.grammar().symbols[positions.clone()];
        let lens = elements.iter().map(|&element| dag.len_bytes(element));
        let len_bytes = lens.fold(0, u64::saturating_add);
        if len_bytes > MAX_SCAN_BYTES {
            return Err(Error::Capacity {
                what: "a token scan of one document in bytes",
                requested: len_bytes,
                limit: MAX_SCAN_BYTES,
                knob: "nothing, but take another traversal (the others expand no document)",
            });
        }
        let mut walk = std::mem::take(&mut self.walk);
        walk.start(positions);
        walk.next_words(dag, usize::MAX, |word| self.add_word(word, 1));
        self.walk = walk;
        self.last_doc = None;
        Ok(())
    }

    /// Takes the counts of all words that were touched as the document's.
    fn replace(&mut self, dag: &Dag) {
        let (mut words, mut word_counts) =
            (std::mem::take(&mut self.words), std::mem::take(&mut self.word_counts));
        words.clear();
        word_counts.clear();
        self.drain(dag, |word, count| {
            words.push(word);
            word_counts.push(count);
        });
        (self.words, self.word_counts) = (words, word_counts);
    }

    /// Changes the words of the document before by what was touched.
    fn change(&mut self, dag: &Dag) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.clear();
        self.drain(dag, |word, count| changes.push((word, count)));
        let (words, counts) =
            (std::mem::take(&mut self.words), std::mem::take(&mut self.word_counts));
        let mut start = 0;
        self.words.reserve(words.len() + changes.len());
        self.word_counts.reserve(words.len() + changes.len());
        for &(word, change) in &changes {
            let end = start + words[start..].partition_point(|&before| before < word);
            self.words.extend_from_slice(&words[start..end]);
            self.word_counts.extend_from_slice(&counts[start..end]);
            let is_there = words.get(end) == Some(&word);
            let before = if is_there { counts[end] } else { 0 };
            let after = before.wrapping_add(change);
            if after != 0 {
                self.words.push(word);
                self.word_counts.push(after);
            }
            start = end + usize::from(is_there);
        }
        self.words.extend_from_slice(&words[start..]);
        self.word_counts.extend_from_slice(&counts[start..]);
        self.changes = changes;
    }

    /// Hands out the words with a count, ascending, and forgets them.
    fn drain(&mut self, dag: &Dag, mut f: impl FnMut(u32, u64)) {
        let num_words = dag.num_words() as usize;
        let num_steps = self.touched.len() * (self.touched.len() | 1).ilog2() as usize;
        if num_steps < num_words / 16 {
            self.touched.sort_unstable();
            for word in self.touched.drain(..) {
                let count = std::mem::take(&mut self.element_counts[word as usize]);
                if count != 0 {
                    f(word, count);
                }
            }
            return;
        }
        for word in self.touched.drain(..) {
            self.word_bits[word as usize / 64] |= 1 << (word % 64);
        }
        for (block, bits) in self.word_bits.iter_mut().enumerate() {
            let mut bits = std::mem::take(bits);
            while bits != 0 {
                let word = block * 64 + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let count = std::mem::take(&mut self.element_counts[word]);
                if count != 0 {
                    f(word as u32, count);
                }
            }
        }
    }
}
