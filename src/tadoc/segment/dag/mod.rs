//! Grammar as a graph: flat CSR arrays, and the arrays that tasks derive from them in O(G).
//!
//! Rules are nodes, numbered parents before children ([`Grammar`] guarantees it). So every top-down quantity takes one
//! forward sweep and every bottom-up quantity one backward sweep. All per-element arrays are indexed by element id
//! (words, separators and rules alike), so the sweeps have no branches:
//!
//! ```text
//! element      0 .. num_words .. num_terminals .. num_elements
//! lens         bytes of the expansion, including implied blanks inside it; words; edge class
//! ```
//!
//! A single blank between two words is not stored (spaceless model, de Moura et al., TOIS 2000). If an element ends
//! with a word, and its right neighbour in the same rule and the same document begins with a word, the expansion has a
//! blank between them. So the length and the edge class of each rule are stored.
//!
//! [`Inverse`], [`PrefixSums`], [`EdgeWords`], [`TextRuns`], [`ElementTexts`] and [`DocWords`] are derived from it when
//! they are needed. The segment keeps them ([`Segment`](crate::segment::Segment)), not the graph, which is immutable.
//! Expansions are limited to 2^64 - 1 bytes and 2^62 - 1 words, and larger ones are refused at open.
//!
//! # Inverse
//!
//! Inverse grammar: the positions of every element on right-hand sides.
//!
//! ```text
//! offsets      [0, 2, 2, 5 ...]              one for each element, plus the end
//! occurrences  [(rule, position) ...]        position is an index into `symbols`
//! ```
//!
//! It replaces `rule2location` of the TADOC papers (66 % of their index space). Every rule has at
//! least two uses, so climbing from a word to the root visits 1.1 to 1.6 nodes for each occurrence.
//! It is built by a counting sort in O(G) and needs 8 bytes for each element.
//!
//! # Hints
//!
//! ```text
//! bytes of the root   |........|........|........|.....     1 << shift bytes each
//! hints               0        2        9        11         last block that starts there or before
//! blocks              0 1 2 3 4 5 6 7 8 9 10 11 12 ...      of the prefix sums
//! ```
//!
//! Hints limit the search for a byte of the root to a few blocks. The root is most of a grammar, and text is too
//! irregular for a proportional guess: a binary search around one took about nine cache misses in a document of 2,500
//! blocks. A hint takes one, and leaves about as many blocks as share a hint. The hints need O(root / 12) time to
//! build, and 1 or 4 bytes for 12 positions of the root.

mod doc_words;
mod expansion;
mod lens;
mod prefix;
mod text_runs;

use std::num::NonZero;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::ids::{DocId, RuleId};

use super::DocumentLength;
use lens::Lens;

pub use doc_words::{DocWords, EdgeWords};
pub(crate) use expansion::{ELEMENT_TEXT_SLACK, ElementTexts, Expansion, MAX_WORDS, Place, RuleTexts, num_words_at};
pub(crate) use lens::Len;
pub use prefix::{Measure, PrefixSums};
pub(crate) use text_runs::{Cursor, Next, TEXT_SLACK, TextRuns};

/// A validated grammar with lengths and edge classes. It never changes.
#[derive(Debug)]
pub struct Dag {
    grammar: Grammar,
    num_words: u32,
    lens: Lens,
}

impl Dag {
    /// Derives the arrays from `grammar` and `terminal_len_bytes`, the length of each terminal.
    /// Terminals below `num_words` are words. It needs O(G) time.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if the grammar breaks an invariant, if a rule other than the root
    /// is never used or expands to no bytes, or if an expansion has 2^64 bytes or 2^62
    /// words.
    pub fn new(
        grammar: Grammar,
        num_words: u32,
        terminal_len_bytes: impl ExactSizeIterator<Item = u32>,
    ) -> Result<Self> {
        grammar.validate()?;
        check_every_rule_is_used(&grammar)?;
        Ok(Self::from_valid(grammar, num_words, terminal_len_bytes)?.0)
    }

    /// Variant of [`new`](Self::new) for valid grammars whose rules are all used. Returns also the
    /// elements and the bytes of a steep rule, if there is one: walks of it take many steps and
    /// yield almost no text.
    pub(crate) fn from_valid(
        grammar: Grammar,
        num_words: u32,
        terminal_len_bytes: impl ExactSizeIterator<Item = u32>,
    ) -> Result<(Self, Option<(u64, u64)>)> {
        let num_terminals = grammar.num_terminals as usize;
        if terminal_len_bytes.len() != num_terminals || num_words > grammar.num_terminals {
            return Err(Error::InvalidArgument {
                name: "terminal_len_bytes",
                got: format!("{} lengths, {num_words} words", terminal_len_bytes.len()),
                allowed: format!("{num_terminals} terminals, words first"),
            });
        }
        let (lens, steep_rule) = Lens::new(&grammar, num_words, terminal_len_bytes)?;
        Ok((Self { grammar, num_words, lens }, steep_rule))
    }

    /// Creates a graph of words and separators with these lengths, without rules and documents.
    /// Terminals below `num_words` are words.
    ///
    /// # Errors
    /// Same as [`new`](Self::new).
    pub(crate) fn from_words(num_words: u32, terminal_len_bytes: impl ExactSizeIterator<Item = u32>) -> Result<Self> {
        let num_terminals = terminal_len_bytes.len() as u32;
        let rule_offsets = vec![0, 0];
        let doc_offsets = vec![0];
        let grammar = Grammar { num_terminals, rule_offsets, symbols: Vec::new(), doc_offsets };
        Self::new(grammar, num_words, terminal_len_bytes)
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
        self.lens.len()
    }

    /// Returns the rule that `element` is, or `None` for a terminal.
    #[inline]
    pub fn rule_of(&self, element: u32) -> Option<RuleId> {
        self.grammar.rule_of(element)
    }

    /// Returns the positions of rule `rule_id` in `symbols`.
    #[inline]
    pub(crate) fn rule_range(&self, rule_id: RuleId) -> std::ops::Range<usize> {
        self.grammar.rule_range(rule_id)
    }

    /// Returns the positions of document `doc` in `symbols`.
    #[inline]
    pub(crate) fn doc_range(&self, doc: DocId) -> std::ops::Range<usize> {
        let offsets = &self.grammar.doc_offsets;
        offsets[doc.index()] as usize..offsets[doc.index() + 1] as usize
    }

    /// Returns the length of document `doc`. It needs time proportional to its elements in the
    /// root.
    pub fn doc_length(&self, doc: DocId) -> DocumentLength {
        let mut length = DocumentLength::default();
        let mut after_word = false;
        for &element in &self.grammar.symbols[self.doc_range(doc)] {
            let blank = after_word && self.begins_with_word(element);
            length.len_bytes += self.len_bytes(element) + u64::from(blank);
            length.num_words += self.len_words(element);
            after_word = self.ends_with_word(element);
        }
        length
    }

    /// Returns the length of the element's expansion: [`len_bytes`](Self::len_bytes),
    /// [`len_words`](Self::len_words) and edge class.
    #[inline]
    pub(crate) fn len(&self, element: u32) -> Len {
        self.lens.for_element(element)
    }

    /// Returns the last position in `range` (one rule, or one document of the root) that starts at
    /// or before byte `offset`, counted from the start of the range, and the start of this
    /// position. The lengths before it are added up. [`PrefixSums::locate`] returns the same.
    pub(crate) fn locate_byte(&self, range: std::ops::Range<usize>, offset: u64) -> (usize, u64) {
        let mut found = (range.start, 0);
        let mut end = 0;
        let mut before = Len::default();
        for position in range {
            let len = self.len(self.grammar.symbols[position]);
            let start = end + len.blank_after(before);
            if start > offset {
                break;
            }
            found = (position, start);
            (end, before) = (start + len.bytes, len);
        }
        found
    }

    /// Returns the bytes of the element's expansion, including implied blanks inside it. For the
    /// root the result also counts blanks that would cross a document splitter. Use
    /// [`PrefixSums::doc_len_bytes`] for documents.
    #[inline]
    pub fn len_bytes(&self, element: u32) -> u64 {
        self.lens.for_element(element).bytes
    }

    /// Returns the number of words in the element's expansion.
    #[inline]
    pub fn len_words(&self, element: u32) -> u64 {
        self.lens.for_element(element).words
    }

    /// Returns true if the expansion begins with a word.
    #[inline]
    pub fn begins_with_word(&self, element: u32) -> bool {
        self.lens.begins_with_word(element)
    }

    /// Returns true if the expansion ends with a word.
    #[inline]
    pub fn ends_with_word(&self, element: u32) -> bool {
        self.lens.ends_with_word(element)
    }

    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        let grammar = &self.grammar;
        4 * (grammar.rule_offsets.len() + grammar.symbols.len() + grammar.doc_offsets.len()) + self.lens.memory_bytes()
    }
}

/// Checks that every rule except the root is used. As rules refer only forward, every rule is then
/// reachable from the root. So every climb ends in an occurrence, and a walk costs no more than its
/// results.
fn check_every_rule_is_used(grammar: &Grammar) -> Result<()> {
    let mut is_used = vec![false; grammar.num_rules()];
    is_used[0] = true;
    for &element in &grammar.symbols {
        if let Some(rule_id) = grammar.rule_of(element) {
            is_used[rule_id.index()] = true;
        }
    }
    match is_used.iter().position(|is_used| !is_used) {
        None => Ok(()),
        Some(rule_id) => Err(Error::InvalidArgument {
            name: "symbols",
            got: format!("no use of rule {rule_id}"),
            allowed: "rules that are used".into(),
        }),
    }
}

/// One occurrence of an element on a right-hand side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Occurrence {
    /// Rule that contains the element.
    pub rule_id: RuleId,
    /// Position in `symbols`.
    pub position: u32,
}

/// Occurrences of each element, ascending by position.
#[derive(Debug)]
pub struct Inverse {
    offsets: Vec<u32>,
    occurrences: Vec<Occurrence>,
}

impl Inverse {
    /// Sorts the positions of `grammar` by element, O(G).
    pub fn new(grammar: &Grammar) -> Self {
        let num_elements = grammar.num_terminals as usize + grammar.num_rules();
        let mut offsets = vec![0u32; num_elements + 1];
        for &element in &grammar.symbols {
            offsets[element as usize + 1] += 1;
        }
        for i in 0..num_elements {
            offsets[i + 1] += offsets[i];
        }
        let mut next = offsets.clone();
        let mut occurrences = vec![Occurrence::default(); grammar.symbols.len()];
        for rule_id in grammar.rule_ids() {
            for position in grammar.rule_range(rule_id) {
                let slot = &mut next[grammar.symbols[position] as usize];
                let position = position as u32;
                occurrences[*slot as usize] = Occurrence { rule_id, position };
                *slot += 1;
            }
        }
        Self { offsets, occurrences }
    }

    /// Returns the occurrences of `element` on right-hand sides, ascending by position.
    #[inline]
    pub fn for_element(&self, element: u32) -> &[Occurrence] {
        let element = element as usize;
        &self.occurrences[self.offsets[element] as usize..self.offsets[element + 1] as usize]
    }

    pub(in crate::segment) fn memory_bytes(&self) -> usize {
        4 * self.offsets.len() + 8 * self.occurrences.len()
    }
}

/// Cores of this process. Linux reads the files of the control group for each question.
static NUM_CORES: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));

/// Calls `work` with the number and the items of each chunk of `chunk_len` items. The last chunk
/// may be shorter. Returns the results in order. It uses all cores, or fewer if threads cannot be
/// created.
fn map_chunks<T: Send, R: Send>(
    items: &mut [T],
    chunk_len: usize,
    work: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let num_threads = items.len().div_ceil(chunk_len).min(*NUM_CORES);
    let waiting = Mutex::new(items.chunks_mut(chunk_len).enumerate());
    let done = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some((at, chunk)) = next() {
            let result = work(at, chunk);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..num_threads {
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Hints for positions in the root.
#[derive(Debug)]
struct RootHints {
    shift: u32,
    /// Last block that starts at or before each multiple of `1 << shift`, then the last block of
    /// all.
    blocks: Vec<u32>,
}

impl RootHints {
    /// Creates the hints from the start of each block of the root, ascending from 0, and the length
    /// of the root in bytes. On average `blocks_per_hint` blocks share a hint.
    pub fn new(starts: impl ExactSizeIterator<Item = u64>, len_bytes: u64, blocks_per_hint: usize) -> Self {
        let num_blocks = starts.len();
        let max_hints = (num_blocks / blocks_per_hint) as u64;
        let mut shift = 0;
        while len_bytes >> shift > max_hints {
            shift += 1;
        }
        let mut blocks = Vec::with_capacity((len_bytes >> shift) as usize + 2);
        for (block, start) in (0u32..).zip(starts) {
            // Multiples below this start belong to the previous block.
            let num_below = start.div_ceil(1 << shift).min((len_bytes >> shift) + 1) as usize;
            while blocks.len() < num_below {
                blocks.push(block.saturating_sub(1));
            }
        }
        let last = num_blocks.saturating_sub(1) as u32;
        blocks.resize((len_bytes >> shift) as usize + 2, last);
        Self { shift, blocks }
    }

    /// Returns the first and the last block that may contain byte `offset` of the root.
    #[inline]
    pub fn window(&self, offset: u64) -> (usize, usize) {
        let hint = (offset >> self.shift) as usize;
        (self.blocks[hint] as usize, self.blocks[hint + 1] as usize)
    }

    pub fn memory_bytes(&self) -> usize {
        4 * self.blocks.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Builds a graph of `rules` (element ids as in a grammar), root first.
    pub(super) fn dag_for(
        rules: Vec<Vec<u32>>,
        doc_offsets: &[u32],
        num_words: u32,
        terminal_len_bytes: &[u32],
    ) -> Dag {
        let grammar = grammar_from(rules, doc_offsets, terminal_len_bytes.len() as u32);
        Dag::new(grammar, num_words, terminal_len_bytes.iter().copied()).unwrap()
    }

    pub(super) fn grammar_from(rules: Vec<Vec<u32>>, doc_offsets: &[u32], num_terminals: u32) -> Grammar {
        let mut rule_offsets = vec![0];
        for rule in &rules {
            rule_offsets.push(rule_offsets.last().unwrap() + rule.len() as u32);
        }
        let doc_offsets = doc_offsets.to_vec();
        Grammar { num_terminals, rule_offsets, symbols: rules.concat(), doc_offsets }
    }

    /// Returns the text of each document by full expansion.
    pub(super) fn expanded(dag: &Dag, terminals: &[&[u8]]) -> Vec<Vec<u8>> {
        let texts = dag.grammar().docs().map(|doc| {
            let mut pending: Vec<u32> = dag.grammar().root()[dag.doc_range(doc)].to_vec();
            pending.reverse();
            let mut text = Vec::new();
            let mut after_word = false;
            while let Some(element) = pending.pop() {
                if let Some(rule_id) = dag.rule_of(element) {
                    pending.extend(dag.grammar().rule(rule_id).iter().rev());
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
        let dag = dag_for(vec![vec![0, 1, 5, 3, 0, 1, 5], vec![1, 2, 0]], &[0, 2, 6, 7], 2, &[1, 2, 0, 1]);
        let texts = expanded(&dag, &[b"a", b"bb", b"", b","]);
        assert_eq!(texts, [&b"a bb"[..], b"bba,a bb", b"bba"]);
        assert_eq!((dag.len_bytes(5), dag.len_words(5)), (3, 2));
        assert!(dag.begins_with_word(5) && dag.ends_with_word(5));
        assert!(!dag.begins_with_word(2) && !dag.ends_with_word(3));
        let lengths = dag.grammar().docs().map(|doc| dag.doc_length(doc));
        let lengths: Vec<_> = lengths.map(|doc| (doc.len_bytes, doc.num_words)).collect();
        assert_eq!(lengths, [(4, 2), (8, 4), (3, 2)]);
        assert_eq!(dag.grammar().weights(), [4, 4, 2, 1, 1, 2]);
        let places_of_b: Vec<_> =
            Inverse::new(dag.grammar()).for_element(1).iter().map(|o| (u32::from(o.rule_id), o.position)).collect();
        assert_eq!(places_of_b, [(0, 1), (0, 5), (1, 7)]);
    }

    #[test]
    fn refuses_rules_that_cannot_be_queried() {
        let fault = |rules: Vec<Vec<u32>>, docs: &[u32]| {
            Dag::new(grammar_from(rules, docs, 1), 1, [1].into_iter()).unwrap_err().to_string()
        };
        assert!(fault(vec![vec![0], vec![0, 0]], &[0, 1]).contains("no use of rule 1"));
        assert!(fault(vec![vec![2], vec![]], &[0, 1]).contains("rule 1, which expands to nothing"));
        let mut bomb: Vec<Vec<u32>> = (0..64).map(|r| vec![r + 2, r + 2]).collect();
        bomb.push(vec![0]);
        assert!(fault(bomb, &[0, 2]).contains("past 2^64"));
    }

    #[test]
    fn lengths_are_exact_up_to_the_limits() {
        // Rule k of 1 to `times` is twice the next one, the last is twice the terminal `doubled`.
        let root_bytes = |lens: &[u32], num_words, doubled, times: u32, root: &[u32]| {
            let num_terminals = lens.len() as u32;
            let mut rules = vec![root.to_vec()];
            rules.extend((1..times).map(|k| vec![num_terminals + k + 1; 2]));
            rules.push(vec![doubled; 2]);
            let grammar = grammar_from(rules, &[0, root.len() as u32], num_terminals);
            let dag = Dag::new(grammar, num_words, lens.iter().copied());
            dag.ok().map(|dag| dag.len_bytes(num_terminals))
        };
        // Separators of 2^32 - 1 bytes and of 1 byte, rule 3 of 2^64 - 2^32 bytes.
        let for_separators = |root| root_bytes(&[u32::MAX, 1], 0, 0, 32, root);
        assert_eq!(for_separators(&[3, 0]), Some(u64::MAX));
        assert_eq!([for_separators(&[3, 0, 1]), for_separators(&[1, 3, 0])], [None, None]);
        // The blank between two words is one too many.
        let for_words = |root| root_bytes(&[(1 << 31) - 1, 1 << 31, u32::MAX], 2, 2, 32, root);
        assert_eq!(for_words(&[4, 0, 0]), Some(u64::MAX));
        assert_eq!([for_words(&[4, 0, 1]), for_words(&[0, 1, 4])], [None, None]);
        // 2^62 - 1 words, one more, and 2^64 words without bytes in 2^64 - 1 bytes.
        let all: Vec<u32> = [0].into_iter().chain(2..63).collect();
        assert_eq!(root_bytes(&[1], 1, 0, 61, &all), Some((1 << 63) - 3));
        assert_eq!(root_bytes(&[1], 1, 0, 62, &[2]), None);
        assert_eq!(root_bytes(&[0], 1, 0, 61, &[2; 8]), None);
    }

    #[test]
    fn a_corpus_without_documents_answers() {
        let dag = dag_for(vec![vec![]], &[0], 0, &[]);
        assert_eq!(dag.grammar().weights(), [1]);
        assert_eq!(PrefixSums::new(&dag).between(&dag, Measure::Bytes, 0..0), 0);
        assert_eq!(dag.grammar().num_docs(), 0);
    }

    #[test]
    fn chunks_are_worked_on_once_and_answer_in_order() {
        for (len, chunk_len) in [(0, 3), (1, 3), (3, 3), (1000, 7), (1000, 5000)] {
            let mut items: Vec<usize> = (0..len).collect();
            let sums = map_chunks(&mut items, chunk_len, |at, chunk| {
                chunk.iter_mut().for_each(|item| *item += 1);
                (at, chunk.iter().sum::<usize>())
            });
            assert!(items.iter().copied().eq(1..=len));
            assert!(sums.iter().map(|sum| sum.0).eq(0..len.div_ceil(chunk_len)));
            assert_eq!(sums.iter().map(|sum| sum.1).sum::<usize>(), len * (len + 1) / 2);
        }
    }

    proptest! {
        #[test]
        fn windows_hold_the_block_of_every_byte(
            blocks_per_hint in 1..6usize,
            lens in prop::collection::vec(prop_oneof![Just(0u64), 1u64..50, 1u64..100_000], 1..60),
        ) {
            let ends: Vec<u64> = lens.iter().scan(0, |sum, len| { *sum += len; Some(*sum) }).collect();
            let starts = [0].into_iter().chain(ends[..ends.len() - 1].iter().copied());
            let starts: Vec<u64> = starts.collect();
            let len_bytes = ends[ends.len() - 1];
            let hints = RootHints::new(starts.iter().copied(), len_bytes, blocks_per_hint);
            for at in starts.iter().flat_map(|&start| [start, start.saturating_sub(1), start + 1]) {
                if at < len_bytes {
                    let block = starts.partition_point(|&start| start <= at) - 1;
                    let (first, last) = hints.window(at);
                    prop_assert!(first <= block && block <= last, "{at}: {first} {block} {last}");
                }
            }
            prop_assert!(hints.blocks.len() <= lens.len() / blocks_per_hint + 2);
        }
    }
}
