//! Words of documents, from the grammar of their segment: a few documents' words with their counts,
//! ascending; and words in text order as rows of the vocabulary, input for word2vec and similar tools.
//!
//! Counts:
//!
//! - *top-down*: counts of [`GROUP_LEN`] documents flow from the root to rules and words in one
//!   sweep ([`lane_counts`](super::lane_counts)).
//! - *bottom-up*: one document at a time; small rules add their bag of words.
//! - *token scan*: the document is expanded to an array of words, and these are counted.
//!
//! Cost: O(root ranges + rules reached) for the first two, independent of the length of the
//! expansions; O(words) for the third.
//!
//! A chunk of words in text order ends after a fixed number of words, also inside a document. So the cost for a corpus
//! of 2^60 words depends only on the words that are read, with a few steps through the grammar for each.

use std::ops::Range;
use std::sync::Arc;

use super::lane_counts::{Bodies, Count, Held, LaneCounts};
use super::vocabulary::WordRows;
use super::{DocSelection, Traversal, Vocabulary};
use crate::error::{Error, Result};
use crate::ids::{DocId, RuleId};
use crate::segment::dag::{Expansion, MAX_WORDS, RuleTexts, num_words_at};
use crate::segment::{Dag, Measure, PrefixSums};

/// Number of documents of one sweep, with 32 bytes for each word and rule.
pub(super) const GROUP_LEN: usize = 8;
/// Maximum size of the counts of a group in bytes, about the size of caches. If the counts are
/// larger, one sweep for several documents is slower than several sweeps.
const MAX_GROUP_BYTES: usize = 1 << 24;
/// Maximum length in bytes of a document for a token scan.
const MAX_SCAN_BYTES: u64 = 1 << 32;
/// Maximum number of words of a document that are sorted rather than counted one by one.
const FEW_WORDS: u64 = 512;
/// Number of words that are passed on at once if a document is too large for an array.
const STEP_WORDS: usize = 1 << 16;

/// Data about the rules of a segment that makes counting its documents faster.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Helps<'a> {
    /// Bags, for bottom-up.
    pub bags: Option<&'a TermBags>,
    /// Texts of rules, for a token scan.
    pub texts: Option<&'a RuleTexts>,
}

/// Counts of the words of some documents of one segment at a time.
#[derive(Debug)]
pub(super) enum DocTerms {
    /// Counts of one sweep for all documents.
    Sweep(Box<dyn Sweep>),
    /// Counts of a token scan, one document at a time.
    Scan(Box<LaneCounts<u64, 1>>, Expansion),
}

/// Counts that flow down the grammar for a few documents at once.
pub(super) trait Sweep: std::fmt::Debug + Send + Sync {
    fn group_len(&self) -> usize;
    fn count(&mut self, words: &Words<'_>, docs: &[DocId]);
    fn lane(&self, lane: usize) -> (&[u32], &[u64]);
    fn memory_bytes(&self) -> usize;
}

impl<C: Count, const LANES: usize> Sweep for LaneCounts<C, LANES> {
    fn group_len(&self) -> usize {
        LANES
    }

    fn count(&mut self, words: &Words<'_>, docs: &[DocId]) {
        self.count(words, docs);
    }

    fn lane(&self, lane: usize) -> (&[u32], &[u64]) {
        (self.items(lane), self.counts(lane))
    }

    fn memory_bytes(&self) -> usize {
        self.memory_bytes()
    }
}

impl DocTerms {
    /// Creates counts for the words of documents of `dag` by `traversal`. The caller counts
    /// `num_docs` documents at most.
    pub fn new(dag: &Dag, traversal: Traversal, num_docs: usize) -> Self {
        let num_words = dag.num_words() as usize;
        let num_rules = dag.grammar().num_rules();
        if traversal == Traversal::TokenScan {
            let counts = Box::new(LaneCounts::new(num_words, 0));
            return Self::Scan(counts, Expansion::default());
        }
        let is_narrow = dag.len_words(dag.num_terminals()) <= u64::from(u32::MAX);
        let num_lanes = num_docs.next_power_of_two().min(GROUP_LEN);
        let group_bytes = size_of::<u32>() * num_lanes * (num_words + num_rules);
        let is_group = traversal == Traversal::TopDown && is_narrow && group_bytes <= MAX_GROUP_BYTES;
        Self::Sweep(match if is_group { num_lanes } else { 1 } {
            GROUP_LEN.. => Box::new(LaneCounts::<u32, GROUP_LEN>::new(num_words, num_rules)),
            4 => Box::new(LaneCounts::<u32, 4>::new(num_words, num_rules)),
            2 => Box::new(LaneCounts::<u32, 2>::new(num_words, num_rules)),
            _ => Box::new(LaneCounts::<u64, 1>::new(num_words, num_rules)),
        })
    }

    /// Returns the maximum number of documents that are counted at once.
    pub fn group_len(&self) -> usize {
        match self {
            Self::Sweep(counts) => counts.group_len(),
            Self::Scan(..) => 1,
        }
    }

    /// Returns the words of the document at `lane` of those counted last, ascending, and their
    /// counts.
    pub fn lane(&self, lane: usize) -> (&[u32], &[u64]) {
        match self {
            Self::Sweep(counts) => counts.lane(lane),
            Self::Scan(counts, _) => (counts.items(lane), counts.counts(lane)),
        }
    }

    /// Returns the memory of the counts in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::Sweep(counts) => counts.memory_bytes(),
            Self::Scan(counts, expansion) => counts.memory_bytes() + expansion.memory_bytes(),
        }
    }

    /// Counts the words of `docs`, which are at least one and at most
    /// [`group_len`](Self::group_len) documents. Uses bags and texts if there are any.
    ///
    /// # Errors
    /// [`Error::Capacity`] for a token scan of a document of more than 2^32 bytes.
    pub fn count(&mut self, dag: &Dag, docs: &[DocId], helps: Helps<'_>) -> Result<()> {
        match self {
            Self::Sweep(counts) => counts.count(&Words { dag, bags: helps.bags }, docs),
            Self::Scan(counts, expansion) => {
                let positions = dag.doc_range(docs[0]);
                check_len_bytes(dag, positions.clone())?;
                match (helps.texts, num_words_at(dag, positions.clone())) {
                    (Some(texts), num_words @ ..=MAX_WORDS) => {
                        let words = expansion.expand(dag, texts, positions);
                        match num_words {
                            ..=FEW_WORDS => counts.count_few(words),
                            _ => counts.count_each(|add| add(words)),
                        }
                    }
                    _ => counts.count_each(|add| walk(dag, positions, add)),
                }
            }
        }
        Ok(())
    }
}

/// Passes the words at `positions` on in small arrays.
fn walk(dag: &Dag, positions: Range<usize>, add: &mut dyn FnMut(&[u32])) {
    let mut walk = WordWalk::default();
    walk.start(positions);
    let mut words = Vec::with_capacity(STEP_WORDS);
    while walk.next_words(dag, STEP_WORDS, |word| words.push(word)) > 0 {
        add(&words);
        words.clear();
    }
}

fn check_len_bytes(dag: &Dag, positions: Range<usize>) -> Result<()> {
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

/// Words and rules on right-hand sides, or the bags of rules that have a bag.
pub(super) struct Words<'a> {
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
            } else if let Some(rule_id) = self.dag.rule_of(element) {
                f(Held::Rule(rule_id));
            }
        }
    }
}

impl Bodies for Words<'_> {
    #[inline]
    fn len_of_doc(&self, doc: DocId) -> usize {
        self.dag.doc_range(doc).len()
    }

    #[inline]
    fn for_doc(&self, doc: DocId, f: impl FnMut(Held)) {
        self.at(self.dag.doc_range(doc), f);
    }

    #[inline]
    fn for_rule(&self, rule_id: RuleId, mut f: impl FnMut(Held)) {
        match self.bags.and_then(|bags| bags.get(rule_id)) {
            Some(bag) => bag.iter().for_each(|&(word, times)| f(Held::Items(word, times))),
            None => self.at(self.dag.rule_range(rule_id), f),
        }
    }
}

/// Maximum number of words in the bag of a rule. Larger rules get no bag and are expanded instead.
const MAX_BAG_WORDS: usize = 64;
/// Maximum number of words in all bags, for each element of the grammar.
const BAG_WORDS_PER_ELEMENT: usize = 4;
/// Position of a word that is not in the bag being filled.
const NOWHERE: u32 = u32::MAX;

/// Distinct words of small rules, with the number of occurrences in one expansion of the rule.
#[derive(Debug, Default)]
pub(super) struct TermBags {
    /// Range of each rule in `words`; empty for a rule without a bag.
    ranges: Vec<(u32, u32)>,
    words: Vec<(u32, u32)>,
}

impl TermBags {
    /// Builds the bags from children to parents. O(G + words of the bags).
    pub fn new(dag: &Dag) -> Self {
        let grammar = dag.grammar();
        let max_words = grammar.symbols.len().saturating_mul(BAG_WORDS_PER_ELEMENT).min(NOWHERE as usize);
        let mut bags = Self { ranges: vec![(0, 0); grammar.num_rules()], words: Vec::new() };
        let mut places = vec![NOWHERE; dag.num_words() as usize];
        for rule_id in grammar.rule_ids().skip(1).rev() {
            if bags.words.len() + 2 * MAX_BAG_WORDS > max_words {
                break;
            }
            let start = bags.words.len();
            let is_small = bags.fill(dag, rule_id, &mut places);
            for &(word, _) in &bags.words[start..] {
                places[word as usize] = NOWHERE;
            }
            if is_small {
                bags.ranges[rule_id.index()] = (start as u32, bags.words.len() as u32)
            } else {
                bags.words.truncate(start)
            }
        }
        bags
    }

    /// Appends the words of rule `rule_id`. Returns false if they are too many, if a count
    /// overflows, or if there is no word.
    fn fill(&mut self, dag: &Dag, rule_id: RuleId, places: &mut [u32]) -> bool {
        let start = self.words.len();
        for &element in dag.grammar().rule(rule_id) {
            let (child_start, child_end) = match dag.rule_of(element) {
                _ if dag.len_words(element) == 0 => continue,
                None => {
                    if !self.add(element, 1, places) || self.words.len() - start > MAX_BAG_WORDS {
                        return false;
                    }
                    continue;
                }
                Some(child) => self.ranges[child.index()],
            };
            if child_start == child_end {
                return false;
            }
            for at in child_start..child_end {
                let (word, count) = self.words[at as usize];
                if !self.add(word, count, places) {
                    return false;
                }
            }
            if self.words.len() - start > MAX_BAG_WORDS {
                return false;
            }
        }
        self.words.len() > start
    }

    fn add(&mut self, word: u32, count: u32, places: &mut [u32]) -> bool {
        let place = &mut places[word as usize];
        if *place == NOWHERE {
            *place = self.words.len() as u32;
            self.words.push((word, count));
            return true;
        }
        let slot = &mut self.words[*place as usize].1;
        match slot.checked_add(count) {
            Some(sum) => *slot = sum,
            None => return false,
        }
        true
    }

    /// Returns the words of one expansion of rule `rule_id` with their counts, if the rule has a
    /// bag.
    #[inline]
    pub fn get(&self, rule_id: RuleId) -> Option<&[(u32, u32)]> {
        let (start, end) = self.ranges[rule_id.index()];
        (start < end).then(|| &self.words[start as usize..end as usize])
    }

    /// Returns the memory of the bags in bytes.
    pub fn memory_bytes(&self) -> usize {
        8 * (self.ranges.capacity() + self.words.capacity())
    }
}

/// Maximum number of words of a chunk.
const CHUNK_WORDS: usize = 8192;
/// Maximum number of documents visited for a chunk, because empty documents have no words.
const CHUNK_DOCS: usize = 8192;

/// Cursor over the words of selected documents, one chunk at a time.
#[derive(Debug)]
pub struct TokenCursor {
    vocabulary: Arc<Vocabulary>,
    rows: Arc<WordRows>,
    docs: DocSelection,
    /// Index in `docs` of the current document; `part` is the current part of that document.
    next: usize,
    part: usize,
    is_inside: bool,
    word_index: u64,
    walk: WordWalk,
}

/// Consecutive words of the selection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TokenChunk {
    doc_ids: Vec<u64>,
    word_indexes: Vec<u64>,
    rows: Vec<u32>,
}

impl TokenCursor {
    /// Creates a cursor over the words of `docs`.
    pub fn new(vocabulary: Arc<Vocabulary>, docs: &DocSelection) -> Self {
        let rows = Arc::new(WordRows::new(&vocabulary));
        let docs = docs.within(0..vocabulary.corpus().num_docs());
        let walk = WordWalk::default();
        Self { vocabulary, rows, docs, next: 0, part: 0, is_inside: false, word_index: 0, walk }
    }

    /// Creates a cursor over the words of other documents, which shares the large data with this
    /// one.
    #[must_use]
    pub fn with_docs(&self, docs: &DocSelection) -> Self {
        Self {
            vocabulary: self.vocabulary.clone(),
            rows: self.rows.clone(),
            docs: docs.within(0..self.vocabulary.corpus().num_docs()),
            next: 0,
            part: 0,
            is_inside: false,
            word_index: 0,
            walk: WordWalk::default(),
        }
    }

    /// Returns the next words, at most 8,192, or `None` after the last document. A chunk has no
    /// words if many empty documents follow each other.
    ///
    /// # Errors
    /// [`Error::Capacity`] for a document of 2^64 words or more, whose words cannot be numbered.
    pub fn next_chunk(&mut self) -> Result<Option<TokenChunk>> {
        let mut chunk = TokenChunk::default();
        let mut num_docs = 0;
        while chunk.len() < CHUNK_WORDS && num_docs < CHUNK_DOCS {
            let Some(doc_id) = self.docs.get(self.next) else {
                return Ok(Some(chunk).filter(|chunk| !chunk.is_empty()));
            };
            let Some((segment_idx, doc)) = self.vocabulary.corpus().doc_parts(doc_id).nth(self.part) else {
                (self.next, self.part, self.word_index) = (self.next + 1, 0, 0);
                num_docs += 1;
                continue;
            };
            let dag = &self.vocabulary.corpus().segments()[segment_idx].dag;
            if !self.is_inside {
                self.walk.start(dag.doc_range(doc));
                self.is_inside = true;
            }
            let rows = self.rows.for_segment(segment_idx);
            let max_words = CHUNK_WORDS - chunk.len();
            let push = |word| chunk.rows.push(rows.row(word));
            let num_words = self.walk.next_words(dag, max_words, push) as u64;
            let end = self.word_index.checked_add(num_words).ok_or_else(too_long)?;
            chunk.word_indexes.extend(self.word_index..end);
            chunk.doc_ids.resize(chunk.rows.len(), doc_id);
            self.word_index = end;
            if num_words < max_words as u64 {
                self.is_inside = false;
                self.part += 1;
            }
        }
        Ok(Some(chunk))
    }
}

impl TokenChunk {
    /// Returns the number of words.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there is no word.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the document id of each word.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// Returns the index of each word in its document, from 0.
    pub fn word_indexes(&self) -> &[u64] {
        &self.word_indexes
    }

    /// Returns the words, as rows of the vocabulary.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }
}

fn too_long() -> Error {
    Error::Capacity {
        what: "the words of one document",
        requested: u64::MAX,
        limit: u64::MAX - 1,
        knob: "nothing (word numbers are 64-bit)",
    }
}

/// Position of a walk over the expansion of a document.
#[derive(Debug, Default)]
pub(super) struct WordWalk {
    range: Range<usize>,
    stack: Vec<Range<usize>>,
}

impl WordWalk {
    /// Moves the walk before the first word at `positions` of the root.
    pub fn start(&mut self, positions: Range<usize>) {
        self.range = positions;
        self.stack.clear();
    }

    /// Moves the walk before word `word_index` of the expansion at `positions` of the root, which
    /// has more words. It needs O(depth * log of a rule's length) time.
    pub fn start_at(&mut self, dag: &Dag, sums: &PrefixSums, positions: Range<usize>, mut word_index: u64) {
        self.start(positions);
        loop {
            let range = self.range.clone();
            let (position, start) = sums.locate(dag, Measure::Words, range.clone(), word_index);
            word_index -= start;
            let rule_id = dag.rule_of(dag.grammar().symbols[position]);
            let Some(rule_id) = rule_id.filter(|_| word_index > 0) else {
                self.range = position..range.end;
                return;
            };
            if position + 1 < range.end {
                self.stack.push(position + 1..range.end);
            }
            self.range = dag.rule_range(rule_id);
        }
    }

    /// Calls `f` with the next words, at most `max_words`. Returns the number of words, which is
    /// smaller only at the end. The walk does not enter rules without words. So each step but the
    /// last few reaches a word or passes a separator that is an element of the grammar.
    #[inline]
    pub fn next_words(&mut self, dag: &Dag, max_words: usize, mut f: impl FnMut(u32)) -> usize {
        let symbols = &dag.grammar().symbols[..];
        let num_words = dag.num_words();
        let mut num_found = 0;
        while num_found < max_words {
            let Some(position) = self.range.next() else {
                match self.stack.pop() {
                    Some(outer) => self.range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            if element < num_words {
                f(element);
                num_found += 1;
            } else if let Some(rule_id) = dag.rule_of(element)
                && dag.len_words(element) > 0
            {
                let outer = std::mem::replace(&mut self.range, dag.rule_range(rule_id));
                if !outer.is_empty() {
                    self.stack.push(outer);
                }
            }
        }
        num_found
    }
}
