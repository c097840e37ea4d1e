//! Grammar as a graph: flat CSR arrays, and the arrays that tasks derive from them in O(G).
//!
//! Rules are nodes, numbered parents before children ([`Grammar`] guarantees it). So every top-down
//! quantity takes one forward sweep and every bottom-up quantity one backward sweep. All
//! per-element arrays are indexed by element id (words, separators and rules alike), so the sweeps
//! have no branches:
//!
//! ```text
//! element      0 .. num_words .. num_terminals .. num_elements
//! len_bytes    bytes of the expansion, including implied blanks inside it
//! len_words    words of the expansion
//! edge         bit 0: begins with a word, bit 1: ends with a word
//! ```
//!
//! A single blank between two words is not stored (spaceless model, de Moura et al., TOIS 2000). If
//! an element ends with a word, and its right neighbour in the same rule and the same document
//! begins with a word, the expansion has a blank between them. So the length and the edge class of
//! each rule are stored.
//!
//! Weights, [`Inverse`], [`PrefixSums`], [`EdgeWords`], [`TextRuns`] and [`DocWords`] are derived
//! on first use and kept. So counting tasks do not pay for the others. The last two are derived
//! only after enough use to pay for them. Expansions are limited to 2^64 - 1 bytes, and larger ones
//! are refused at open.

mod doc_words;
mod edge_words;
mod expansion;
mod inverse;
mod prefix;
mod root_hints;
mod text_runs;
mod threads;

pub use doc_words::DocWords;
pub use edge_words::EdgeWords;
pub(crate) use expansion::{Expansion, MAX_WORDS, RuleTexts, num_words_at};
pub use inverse::{Inverse, Occurrence};
pub use prefix::{Measure, PrefixSums};
pub use text_runs::{Cursor, Next, TEXT_SLACK, TextRuns};

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};
use crate::grammar::Grammar;

const BEGINS_WITH_WORD: u8 = 1;
const ENDS_WITH_WORD: u8 = 2;
/// Number of elements for each passage that is read before text runs are built. Building them takes
/// about twice the time that they would have saved until then.
const ELEMENTS_PER_PASSAGE: u64 = 64;
/// Words of documents are built after this part of the text's words was read without them. Reading
/// a word takes as long as building its entry, and such callers usually continue.
const PART_READ: u64 = 4;

/// A validated grammar with lengths, edge classes and, on demand, its inverse and prefix sums.
#[derive(Debug)]
pub struct Dag {
    grammar: Grammar,
    num_words: u32,
    len_bytes: Vec<u64>,
    len_words: Vec<u64>,
    edge: Vec<u8>,
    weights: OnceLock<Vec<u64>>,
    inverse: OnceLock<Inverse>,
    prefix_sums: OnceLock<PrefixSums>,
    edge_words: OnceLock<EdgeWords>,
    text_runs: OnceLock<Option<TextRuns>>,
    /// Number of passages that were read without text runs.
    num_passages: AtomicU64,
    doc_words: OnceLock<Option<DocWords>>,
    /// Number of words that were read and that the words of documents would have saved.
    num_words_read: AtomicU64,
}

impl Dag {
    /// Derives the arrays from `grammar` and `terminal_len_bytes`, the length of each terminal.
    /// Terminals below `num_words` are words. It needs O(G) time.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the grammar breaks an invariant, if a rule other than the root
    /// is never used or expands to no bytes, or if an expansion has more than 2^64 - 1 bytes.
    pub fn new(
        grammar: Grammar,
        num_words: u32,
        terminal_len_bytes: impl ExactSizeIterator<Item = u32>,
    ) -> Result<Self> {
        grammar.validate()?;
        check_every_rule_is_used(&grammar)?;
        let num_terminals = grammar.num_terminals as usize;
        if terminal_len_bytes.len() != num_terminals || num_words > grammar.num_terminals {
            return Err(Error::InvalidArgument {
                name: "terminal_len_bytes",
                got: format!("{} lengths, {num_words} words", terminal_len_bytes.len()),
                allowed: format!("{num_terminals} terminals, words first"),
            });
        }
        let num_elements = num_terminals + grammar.num_rules();
        let mut len_bytes: Vec<u64> = Vec::with_capacity(num_elements);
        len_bytes.extend(terminal_len_bytes.map(u64::from));
        len_bytes.resize(num_elements, 0);
        let mut len_words = vec![0u64; num_elements];
        len_words[..num_words as usize].fill(1);
        let mut edge = vec![0u8; num_elements];
        edge[..num_words as usize].fill(BEGINS_WITH_WORD | ENDS_WITH_WORD);
        let mut dag = Self {
            grammar,
            num_words,
            len_bytes,
            len_words,
            edge,
            weights: OnceLock::new(),
            inverse: OnceLock::new(),
            prefix_sums: OnceLock::new(),
            edge_words: OnceLock::new(),
            text_runs: OnceLock::new(),
            num_passages: AtomicU64::new(0),
            doc_words: OnceLock::new(),
            num_words_read: AtomicU64::new(0),
        };
        dag.derive_rules()?;
        Ok(dag)
    }

    /// Creates a graph of words and separators with these lengths, without rules and documents.
    /// Only [`weights`](Self::weights) has useful values: the counts in `word_counts`.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    pub fn of_words(
        word_counts: &[u64],
        terminal_len_bytes: impl ExactSizeIterator<Item = u32>,
    ) -> Result<Self> {
        let num_terminals = terminal_len_bytes.len() as u32;
        let (rule_offsets, doc_offsets) = (vec![0, 0], vec![0]);
        let grammar = Grammar { num_terminals, rule_offsets, symbols: Vec::new(), doc_offsets };
        let dag = Self::new(grammar, word_counts.len() as u32, terminal_len_bytes)?;
        let mut weights = word_counts.to_vec();
        weights.resize(dag.num_elements(), 0);
        dag.weights.get_or_init(|| weights);
        Ok(dag)
    }

    /// Fills the arrays of the rules, children before parents.
    fn derive_rules(&mut self) -> Result<()> {
        let num_terminals = self.grammar.num_terminals as usize;
        for rule_idx in (0..self.grammar.num_rules()).rev() {
            let range = self.rule_range(rule_idx);
            let (mut bytes, mut words) = (0u64, 0u64);
            for position in range.clone() {
                let element = self.grammar.symbols[position] as usize;
                let blank = u64::from(position > range.start && self.has_blank_between(position));
                bytes = self.len_bytes[element]
                    .checked_add(blank)
                    .and_then(|len| len.checked_add(bytes))
                    .ok_or_else(|| too_long(rule_idx))?;
                words =
                    self.len_words[element].checked_add(words).ok_or_else(|| too_long(rule_idx))?;
            }
            // Empty separators never touch, so no builder makes a rule of them alone. Without such
            // rules the bytes of an expansion bound every walk over it.
            if rule_idx > 0 && bytes == 0 {
                return Err(Error::InvalidArgument {
                    name: "symbols",
                    got: format!("rule {rule_idx}, which expands to nothing"),
                    allowed: "rules that expand to one byte or more".into(),
                });
            }
            let id = num_terminals + rule_idx;
            self.len_bytes[id] = bytes;
            self.len_words[id] = words;
            if let Some(last) = range.end.checked_sub(1).filter(|_| !range.is_empty()) {
                let head = self.edge[self.grammar.symbols[range.start] as usize];
                let tail = self.edge[self.grammar.symbols[last] as usize];
                self.edge[id] = head & BEGINS_WITH_WORD | tail & ENDS_WITH_WORD;
            }
        }
        Ok(())
    }

    /// Returns true if a blank is implied between the elements at `position - 1` and `position` of
    /// `symbols`, both in the same rule. The caller must handle document splitters in the root.
    #[inline]
    fn has_blank_between(&self, position: usize) -> bool {
        let symbols = &self.grammar.symbols;
        self.ends_with_word(symbols[position - 1]) && self.begins_with_word(symbols[position])
    }

    /// Returns the rules, root first.
    pub fn grammar(&self) -> &Grammar {
        &self.grammar
    }

    /// Returns the number of words. Smaller element ids are words.
    pub fn num_words(&self) -> u32 {
        self.num_words
    }

    /// Returns the number of words and separators. Element ids from this number on are rules.
    pub fn num_terminals(&self) -> u32 {
        self.grammar.num_terminals
    }

    /// Returns the number of words, separators and rules.
    pub fn num_elements(&self) -> usize {
        self.len_bytes.len()
    }

    /// Returns the rule index of `element`, or `None` for a terminal.
    #[inline]
    pub fn rule_of(&self, element: u32) -> Option<usize> {
        element.checked_sub(self.grammar.num_terminals).map(|r| r as usize)
    }

    /// Returns the positions of rule `rule_idx` in `symbols`.
    #[inline]
    pub fn rule_range(&self, rule_idx: usize) -> std::ops::Range<usize> {
        self.grammar.rule_offsets[rule_idx] as usize
            ..self.grammar.rule_offsets[rule_idx + 1] as usize
    }

    /// Returns the positions of document `doc` (index inside the segment) in `symbols`.
    #[inline]
    pub fn doc_range(&self, doc: usize) -> std::ops::Range<usize> {
        self.grammar.doc_offsets[doc] as usize..self.grammar.doc_offsets[doc + 1] as usize
    }

    /// Returns the document (index inside the segment) whose root range contains `root_position`.
    /// Empty documents contain no position.
    #[inline]
    pub fn doc_at(&self, root_position: usize) -> usize {
        self.prefix_sums().doc_at(self, root_position)
    }

    /// Returns the bytes of the element's expansion, including implied blanks inside it. For the
    /// root the result also counts blanks that would cross a document splitter. Use
    /// [`doc_len_bytes`](Self::doc_len_bytes) for documents.
    #[inline]
    pub fn len_bytes(&self, element: u32) -> u64 {
        self.len_bytes[element as usize]
    }

    /// Returns the number of words in the element's expansion.
    #[inline]
    pub fn len_words(&self, element: u32) -> u64 {
        self.len_words[element as usize]
    }

    /// Returns true if the expansion begins with a word.
    #[inline]
    pub fn begins_with_word(&self, element: u32) -> bool {
        self.edge[element as usize] & BEGINS_WITH_WORD != 0
    }

    /// Returns true if the expansion ends with a word.
    #[inline]
    pub fn ends_with_word(&self, element: u32) -> bool {
        self.edge[element as usize] & ENDS_WITH_WORD != 0
    }

    /// Returns the number of bytes of document `doc`.
    pub fn doc_len_bytes(&self, doc: usize) -> u64 {
        let sums = self.prefix_sums();
        sums.doc_starts(doc + 1)[0].wrapping_sub(sums.doc_starts(doc)[0])
    }

    /// Returns the number of words of document `doc`.
    pub fn doc_len_words(&self, doc: usize) -> u64 {
        let sums = self.prefix_sums();
        sums.doc_starts(doc + 1)[1].wrapping_sub(sums.doc_starts(doc)[1])
    }

    /// Returns the number of occurrences of each element in the corpus, by element id. The first
    /// use takes one forward sweep over the rules, O(G). The root has weight 1.
    ///
    /// The weights are exact for words, rules and separators with bytes, which occur at most as
    /// often as the root has bytes. Only the weight of the empty separator may wrap, because a
    /// hostile file can contain many of them side by side.
    ///
    /// The coarsening of the TADOC papers does not pay for one sweep. The sweep takes 24 ms for 6.8
    /// M elements (100 MB of sources). It takes 16 ms after equal elements of a rule are merged,
    /// but merging takes 72 ms. Inlining rules of two elements takes 124 ms and makes 30 % more
    /// elements.
    pub fn weights(&self) -> &[u64] {
        self.weights.get_or_init(|| weights(&self.grammar))
    }

    /// Returns the positions of each element on right-hand sides. Derived on first use, O(G).
    pub fn inverse(&self) -> &Inverse {
        self.inverse.get_or_init(|| Inverse::new(&self.grammar))
    }

    /// Returns the prefix sums of bytes and words over `symbols`. Derived on first use, O(G).
    pub fn prefix_sums(&self) -> &PrefixSums {
        self.prefix_sums.get_or_init(|| PrefixSums::new(self))
    }

    /// Returns the first and last word of each rule. Derived on first use, O(G).
    pub fn edge_words(&self) -> &EdgeWords {
        self.edge_words.get_or_init(|| EdgeWords::new(self))
    }

    /// Returns the documents as runs of texts. The tokens lie at `offsets` of `arena`. The runs are
    /// derived on first use, in time proportional to their number. Returns `None` if they would be
    /// much larger than the grammar.
    pub fn text_runs(&self, arena: &[u8], offsets: &[u32]) -> Option<&TextRuns> {
        self.text_runs.get_or_init(|| TextRuns::new(self, arena, offsets)).as_ref()
    }

    /// Returns the [`text_runs`](Self::text_runs) if enough passages were read to pay for building
    /// them. This call counts as one more passage.
    #[inline]
    pub fn text_runs_if_worth(&self, arena: &[u8], offsets: &[u32]) -> Option<&TextRuns> {
        if let Some(runs) = self.text_runs.get() {
            return runs.as_ref();
        }
        let num_passages = self.num_passages.fetch_add(1, Ordering::Relaxed) + 1;
        let is_worth = num_passages > self.grammar.symbols.len() as u64 / ELEMENTS_PER_PASSAGE;
        is_worth.then(|| self.text_runs(arena, offsets)).flatten()
    }

    /// Returns the words of each document if it pays to build them. This is so after a quarter of
    /// the text's words was read without them ([`note_words_read`](Self::note_words_read)).
    #[inline]
    pub fn doc_words_if_worth(&self) -> Option<&DocWords> {
        if let Some(doc_words) = self.doc_words.get() {
            return doc_words.as_ref();
        }
        let is_worth = self.are_doc_words_worth();
        is_worth.then(|| self.doc_words.get_or_init(|| DocWords::new(self)).as_ref()).flatten()
    }

    /// Returns true if the words of each document are kept, or the next task that can use them would
    /// make them. Changes nothing, so that plans can say what will be done.
    ///
    /// A few texts turn out to have too many different words when they are made; then nothing is kept.
    pub fn keeps_doc_words(&self) -> bool {
        match self.doc_words.get() {
            Some(doc_words) => doc_words.is_some(),
            None => self.are_doc_words_worth() && doc_words::can_be_made(self),
        }
    }

    fn are_doc_words_worth(&self) -> bool {
        let enough = self.len_words(self.num_terminals()).div_ceil(PART_READ).max(1);
        self.num_words_read.load(Ordering::Relaxed) >= enough
    }

    /// Notes that `num_words` words of the text, or positions of words, were read.
    #[inline]
    pub fn note_words_read(&self, num_words: u64) {
        self.num_words_read.fetch_add(num_words, Ordering::Relaxed);
    }

    /// Notes that all words of `num_docs` documents of average length were read.
    pub fn note_docs_read(&self, num_docs: u64) {
        let num_words = self.len_words(self.num_terminals());
        let per_doc = num_words.div_ceil((self.grammar.num_docs() as u64).max(1));
        self.note_words_read(per_doc.saturating_mul(num_docs));
    }

    /// Returns the number of bytes of memory in use, including the derived arrays that exist.
    pub fn memory_bytes(&self) -> usize {
        let grammar = &self.grammar;
        4 * (grammar.rule_offsets.len() + grammar.symbols.len() + grammar.doc_offsets.len())
            + 17 * self.num_elements()
            + self.weights.get().map_or(0, |weights| 8 * weights.len())
            + self.edge_words.get().map_or(0, EdgeWords::memory_bytes)
            + self.inverse.get().map_or(0, Inverse::memory_bytes)
            + self.prefix_sums.get().map_or(0, PrefixSums::memory_bytes)
            + self.text_runs.get().map_or(0, |runs| runs.as_ref().map_or(0, TextRuns::memory_bytes))
            + self
                .doc_words
                .get()
                .map_or(0, |words| words.as_ref().map_or(0, DocWords::memory_bytes))
    }

    /// Prevents that text runs and words of documents are built later. Those that exist are kept.
    /// Without them all questions are answered from the rules.
    pub fn keep_no_copies(&self) {
        self.text_runs.get_or_init(|| None);
        self.doc_words.get_or_init(|| None);
    }

    /// Returns the greatest number of bytes of memory that the words of documents can take.
    pub fn max_doc_words_bytes(&self) -> usize {
        match self.doc_words.get() {
            Some(None) => 0,
            _ => doc_words::max_memory_bytes(self),
        }
    }

    /// Returns the greatest number of bytes of memory that text runs can take in general.
    pub fn max_text_runs_bytes(&self) -> usize {
        match self.text_runs.get() {
            Some(None) => 0,
            _ => text_runs::max_memory_bytes(self),
        }
    }
}

/// Returns the number of occurrences of each element of `grammar`, see [`Dag::weights`].
pub(crate) fn weights(grammar: &Grammar) -> Vec<u64> {
    let num_terminals = grammar.num_terminals as usize;
    let mut weights = vec![0u64; num_terminals + grammar.num_rules()];
    weights[num_terminals] = 1;
    for rule_idx in 0..grammar.num_rules() {
        let weight = weights[num_terminals + rule_idx];
        for &element in grammar.rule(rule_idx) {
            weights[element as usize] = weights[element as usize].wrapping_add(weight);
        }
    }
    weights
}

/// Checks that every rule except the root is used. As rules refer only forward, every rule is then
/// reachable from the root. So every climb ends in an occurrence, and a walk costs no more than its
/// results.
fn check_every_rule_is_used(grammar: &Grammar) -> Result<()> {
    let mut is_used = vec![false; grammar.num_rules()];
    is_used[0] = true;
    for &element in &grammar.symbols {
        if let Some(rule_idx) = element.checked_sub(grammar.num_terminals) {
            is_used[rule_idx as usize] = true;
        }
    }
    match is_used.iter().position(|is_used| !is_used) {
        None => Ok(()),
        Some(rule_idx) => Err(Error::InvalidArgument {
            name: "symbols",
            got: format!("no use of rule {rule_idx}"),
            allowed: "rules that are used".into(),
        }),
    }
}

fn too_long(rule_idx: usize) -> Error {
    Error::InvalidArgument {
        name: "symbols",
        got: format!("an expansion of rule {rule_idx} past 2^64 bytes"),
        allowed: "expansions below 2^64 bytes".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a graph of `rules` (element ids as in a grammar), root first.
    pub(super) fn dag_of(
        rules: Vec<Vec<u32>>,
        doc_offsets: &[u32],
        num_words: u32,
        terminal_len_bytes: &[u32],
    ) -> Dag {
        let grammar = grammar_of(rules, doc_offsets, terminal_len_bytes.len() as u32);
        Dag::new(grammar, num_words, terminal_len_bytes.iter().copied()).unwrap()
    }

    fn grammar_of(rules: Vec<Vec<u32>>, doc_offsets: &[u32], num_terminals: u32) -> Grammar {
        let mut rule_offsets = vec![0];
        for rule in &rules {
            rule_offsets.push(rule_offsets.last().unwrap() + rule.len() as u32);
        }
        let doc_offsets = doc_offsets.to_vec();
        Grammar { num_terminals, rule_offsets, symbols: rules.concat(), doc_offsets }
    }

    /// Returns the text of each document by full expansion.
    pub(super) fn expanded(dag: &Dag, terminals: &[&[u8]]) -> Vec<Vec<u8>> {
        let num_docs = dag.grammar().num_docs();
        let texts = (0..num_docs).map(|doc| {
            let mut pending: Vec<u32> = dag.grammar().root()[dag.doc_range(doc)].to_vec();
            pending.reverse();
            let (mut text, mut after_word) = (Vec::new(), false);
            while let Some(element) = pending.pop() {
                if let Some(rule_idx) = dag.rule_of(element) {
                    pending.extend(dag.grammar().rule(rule_idx).iter().rev());
                    continue;
                }
                let is_word = element < dag.num_words();
                if is_word && after_word {
                    text.push(b' ');
                }
                text.extend_from_slice(terminals[element as usize]);
                after_word = is_word;
            }
            text
        });
        texts.collect()
    }

    #[test]
    fn derives_lengths_edges_and_weights() {
        // Words "a", "bb"; separators "", ",": documents "a bb", "bba,a bb", "bba".
        let dag =
            dag_of(vec![vec![0, 1, 5, 3, 0, 1, 5], vec![1, 2, 0]], &[0, 2, 6, 7], 2, &[1, 2, 0, 1]);
        let texts = expanded(&dag, &[b"a", b"bb", b"", b","]);
        assert_eq!(texts, [&b"a bb"[..], b"bba,a bb", b"bba"]);
        assert_eq!((dag.len_bytes(5), dag.len_words(5)), (3, 2));
        assert!(dag.begins_with_word(5) && dag.ends_with_word(5));
        assert!(!dag.begins_with_word(2) && !dag.ends_with_word(3));
        assert_eq!(dag.weights(), [4, 4, 2, 1, 1, 2]);
        let of_b: Vec<_> = dag.inverse().of(1).iter().map(|o| (o.rule_idx, o.position)).collect();
        assert_eq!(of_b, [(0, 1), (0, 5), (1, 7)]);
    }

    #[test]
    fn refuses_rules_that_cannot_be_queried() {
        let fault = |rules: Vec<Vec<u32>>, docs: &[u32]| {
            Dag::new(grammar_of(rules, docs, 1), 1, [1].into_iter()).unwrap_err().to_string()
        };
        assert!(fault(vec![vec![0], vec![0, 0]], &[0, 1]).contains("no use of rule 1"));
        assert!(fault(vec![vec![2], vec![]], &[0, 1]).contains("rule 1, which expands to nothing"));
        let mut bomb: Vec<Vec<u32>> = (0..64).map(|r| vec![r + 2, r + 2]).collect();
        bomb.push(vec![0]);
        assert!(fault(bomb, &[0, 2]).contains("past 2^64"));
    }

    #[test]
    fn a_corpus_without_documents_answers() {
        let dag = dag_of(vec![vec![]], &[0], 0, &[]);
        assert_eq!(dag.weights(), [1]);
        assert_eq!(dag.prefix_sums().between(&dag, Measure::Bytes, 0..0), 0);
        assert_eq!(dag.grammar().num_docs(), 0);
    }
}
