//! Overlap of texts with a corpus: the sequences of n words of each text that the corpus has, too.
//! Benchmarks are checked for contamination by training data so (Brown et al., "Language Models are
//! Few-Shot Learners", 2020, appendix C, which takes sequences of 8 to 13 words).
//!
//! ```text
//! corpus      … the cat sat on the mat …          n = 3
//! text        my cat sat on the mat today
//! found          cat sat on, sat on the, on the mat        3 of 5 sequences, a stretch of 5 words
//! ```
//!
//! The texts are in memory, and the corpus is read once, in parts if it must be. Separators are
//! ignored. Sequences do not cross documents. Each sequence of the corpus is looked up by its hash and
//! compared word by word, so answers are exact. O(words of the corpus + words of the texts + texts with
//! sequences in each document). Memory: 64 bytes for each word of the texts, 4 for each word of the
//! dictionaries, and for each thread 8 for each word of the texts and 128 for each text.
//!
//! # Texts
//!
//! ```text
//! texts       0: a b a b c      1: x a b c            n = 2
//! words       0 1 0 1 2           3 0 1 2             in order of their first place
//! grams       0 1 0 2             3 0 2               a b = 0, b a = 1, b c = 2, x a = 3
//! lists       a b, b c: texts 0, 1      b a: text 0      x a: text 1
//! ```
//!
//! Sequences of the same texts share a list.
//!
//! # Counting
//!
//! Each task reads a range of documents. A word that no text has ends a run of words. Where a run
//! has n words or more, the hash of the last n is looked up: first in a filter that is small enough
//! for a cache, then in the table, whose words are compared.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::segment::{Corpus, Dag, Segment};
use crate::text::{Fold, TokenizerProfile, for_each_token};

use super::doc_terms::WordWalk;
use super::rolling_hash::{Hashing, Rolling};
use super::task_limits::{CorpusParts, WORDS_PER_BYTE, doc_words};

/// Greatest number of ids of documents of a text.
const MAX_DOC_IDS: usize = 10;

/// Overlap of one text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextOverlap {
    /// Number of sequences of the text.
    pub num_ngrams: u64,
    /// Number of these that the corpus has.
    pub num_found: u64,
    /// Words of the longest stretch of the text whose sequences are all in the corpus; 0 if there
    /// is none.
    pub longest_match_words: u64,
    /// Number of documents with a sequence of the text.
    pub num_docs: u64,
    /// Ids of the first of these documents, at most 10.
    pub doc_ids: Vec<u64>,
}

impl TextOverlap {
    /// Returns the share of the sequences that the corpus has, or `None` for a text that is too
    /// short to have any.
    pub fn share(&self) -> Option<f64> {
        (self.num_ngrams > 0).then(|| self.num_found as f64 / self.num_ngrams as f64)
    }
}

/// Looks for the sequences of `texts` in a corpus. Returns one answer for each text, in order.
///
/// # Errors
/// [`Error::Capacity`] if the work needs more than `max_memory_bytes`, [`Error::Cancelled`], and
/// the errors of `parts`.
pub fn overlap(
    texts: &OverlapTexts,
    parts: &(impl CorpusParts + Sync),
    max_memory_bytes: u64,
) -> Result<Vec<TextOverlap>> {
    let bytes = texts.max_search_bytes(num_tasks()) as u64;
    if bytes > max_memory_bytes {
        let what = "looking for sequences of the texts (bytes)";
        return Err(Error::memory_of_task(what, bytes, max_memory_bytes));
    }
    parts.hold(bytes)?;
    let grams = Grams::new(texts);
    let found = Found::new(grams.len());
    let mut documents = vec![Documents::default(); texts.len()];
    let mut first_doc_id = 0;
    let mut num_words = 0u64;
    for index in 0..parts.num_parts() {
        if texts.are_short() {
            break;
        }
        let part = parts.part(index)?;
        let corpus: &Corpus = part.borrow();
        num_words = num_words.saturating_add(corpus_words(corpus));
        let max_words = max_memory_bytes.saturating_mul(WORDS_PER_BYTE);
        if num_words > max_words {
            return Err(Error::memory_of_task("reading so many words", num_words, max_words));
        }
        let from_dictionaries = corpus.segments().iter().map(|s| u64::from(s.dag.num_words()));
        parts.hold(bytes + 4 * from_dictionaries.sum::<u64>())?;
        let is_cancelled = || parts.is_cancelled();
        let counted = count(&grams, corpus, first_doc_id, &found, &is_cancelled)?;
        documents.iter_mut().zip(counted).for_each(|(all, next)| all.append(next));
        first_doc_id += corpus.num_docs();
    }
    let answer = |(text, documents)| answer_for(&grams, text, &found, documents);
    Ok(documents.into_iter().enumerate().map(answer).collect())
}

fn answer_for(grams: &Grams<'_>, text: usize, found: &Found, documents: Documents) -> TextOverlap {
    let from_text = grams.for_text(text);
    let mut num_found = 0;
    let mut stretch = 0;
    let mut longest = 0;
    for &gram in from_text {
        stretch = if found.has(gram) { stretch + 1 } else { 0 };
        num_found += u64::from(stretch > 0);
        longest = longest.max(stretch);
    }
    let before_last = grams.texts().num_words as u64 - 1;
    TextOverlap {
        num_ngrams: from_text.len() as u64,
        num_found,
        longest_match_words: if longest > 0 { longest + before_last } else { 0 },
        num_docs: documents.num_docs,
        doc_ids: documents.doc_ids,
    }
}

/// Number of a word that no text has, and of a place at which no sequence begins.
const NONE: u32 = u32::MAX;
/// Bits of the filter for each sequence.
const FILTER_BITS: usize = 16;

/// Texts whose sequences are looked for.
#[derive(Debug)]
pub struct OverlapTexts {
    profile: TokenizerProfile,
    fold: Fold,
    num_words: usize,
    hashing: Hashing,
    /// Number of each word, in folded form.
    numbers: HashMap<Box<str>, u32>,
    /// Value of each word, by number.
    values: Vec<u64>,
    /// Words of all texts.
    words: Vec<u32>,
    text_ends: Vec<usize>,
    words_bytes: usize,
    max_words: usize,
}

/// The sequences of texts.
#[derive(Debug)]
struct Grams<'a> {
    texts: &'a OverlapTexts,
    /// Sequence that begins at each word, or none.
    by_word: Vec<u32>,
    /// First place of each sequence.
    starts: Vec<u32>,
    /// Sequences by hash: number + 1, or 0.
    slots: Vec<u32>,
    filter: Vec<u64>,
    /// List of each sequence, and the texts of each list.
    list_of_gram: Vec<u32>,
    list_ends: Vec<usize>,
    listed: Vec<u32>,
}

impl OverlapTexts {
    /// Creates an empty set of texts whose sequences have `num_words` words, at least 1. `profile`
    /// is that of the corpus. Words are compared as `fold` leaves them.
    pub fn new(profile: TokenizerProfile, fold: Fold, num_words: usize) -> Self {
        Self {
            profile,
            fold,
            num_words: num_words.max(1),
            hashing: Hashing::new(u64::MAX),
            numbers: HashMap::new(),
            values: Vec::new(),
            words: Vec::new(),
            text_ends: Vec::new(),
            words_bytes: 0,
            max_words: 0,
        }
    }

    /// Appends a text.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the texts have 2^32 words or more.
    pub fn push(&mut self, text: &[u8]) -> Result<()> {
        let start = self.words.len();
        let Self { fold, hashing, numbers, values, words, words_bytes, .. } = self;
        for_each_token(self.profile, text, |token| {
            let Some(word) = std::str::from_utf8(token.bytes).ok().filter(|_| token.is_word) else {
                return;
            };
            let word = fold.text(word);
            let number = match numbers.get(&*word) {
                Some(&number) => number,
                None => {
                    let number = values.len() as u32;
                    *words_bytes += word.len();
                    values.push(hashing.value(word.as_bytes()));
                    numbers.insert(word.into(), number);
                    number
                }
            };
            words.push(number);
        });
        if self.words.len() >= NONE as usize {
            return Err(Error::Capacity {
                what: "the words of the texts",
                requested: self.words.len() as u64,
                limit: u64::from(NONE) - 1,
                knob: "nothing (their numbers have 32 bits)",
            });
        }
        self.max_words = self.max_words.max(self.words.len() - start);
        self.text_ends.push(self.words.len());
        Ok(())
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.text_ends.len()
    }

    /// Returns true if there is no text.
    pub fn is_empty(&self) -> bool {
        self.text_ends.is_empty()
    }

    /// Returns the memory in bytes.
    pub fn memory_bytes(&self) -> usize {
        let from_numbers = self.words_bytes + self.numbers.capacity() * 25;
        let from_texts = 8 * self.text_ends.capacity() + 4 * self.words.capacity();
        from_numbers + 8 * self.values.capacity() + from_texts
    }

    /// Returns the greatest number of bytes of memory of their sequences during a search, and of
    /// what `num_tasks` tasks note about them.
    fn max_search_bytes(&self, num_tasks: usize) -> usize {
        // Numbers, first places, slots, filter, lists, and found sequences; then lists and texts
        // seen.
        let word_bytes = 64 * self.words.len();
        word_bytes + num_tasks * (8 * self.words.len() + 128 * self.len())
    }

    /// Returns true if no text has a sequence.
    fn are_short(&self) -> bool {
        self.max_words < self.num_words
    }

    /// Returns the number of a word in folded form.
    fn number_for(&self, word: &str) -> u32 {
        self.numbers.get(&*self.fold.text(word)).copied().unwrap_or(NONE)
    }

    /// Returns the places of the words of `text`.
    fn words_from(&self, text: usize) -> Range<usize> {
        let start = text.checked_sub(1).map_or(0, |before| self.text_ends[before]);
        start..self.text_ends[text]
    }
}

impl<'a> Grams<'a> {
    /// Numbers the sequences of `texts`, O(words).
    pub fn new(texts: &'a OverlapTexts) -> Self {
        let num_slots = (2 * texts.words.len()).next_power_of_two();
        let filter_len = (FILTER_BITS * texts.words.len() / 64).next_power_of_two();
        let mut grams = Self {
            texts,
            by_word: vec![NONE; texts.words.len()],
            starts: Vec::new(),
            slots: vec![0; num_slots],
            filter: vec![0; filter_len],
            list_of_gram: Vec::new(),
            list_ends: Vec::new(),
            listed: Vec::new(),
        };
        if !texts.are_short() {
            let mut rolling = Rolling::new(&texts.hashing, texts.num_words);
            for text in 0..texts.len() {
                rolling.start();
                for at in texts.words_from(text) {
                    let value = texts.values[texts.words[at] as usize];
                    if let Some(hash) = rolling.push(value) {
                        let start = at + 1 - texts.num_words;
                        grams.by_word[start] = grams.add(hash, start);
                    }
                }
            }
        }
        grams.fill_lists();
        grams
    }

    /// Returns the number of the sequence at `start`, a new one if it is the first of its words.
    fn add(&mut self, hash: u64, start: usize) -> u32 {
        let words = &self.texts.words[start..start + self.texts.num_words];
        let mut slot = hash as usize & (self.slots.len() - 1);
        while let Some(gram) = self.slots[slot].checked_sub(1) {
            if self.words_of_gram(gram) == words {
                return gram;
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        let gram = self.starts.len() as u32;
        self.slots[slot] = gram + 1;
        self.starts.push(start as u32);
        let bit = self.bit_for(hash);
        self.filter[bit / 64] |= 1 << (bit % 64);
        gram
    }

    /// Returns the sequence of these words, which have this hash, if a text has it.
    #[inline]
    pub fn find(&self, hash: u64, has_words: impl Fn(&[u32]) -> bool) -> Option<u32> {
        let bit = self.bit_for(hash);
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return None;
        }
        let mut slot = hash as usize & (self.slots.len() - 1);
        while let Some(gram) = self.slots[slot].checked_sub(1) {
            if has_words(self.words_of_gram(gram)) {
                return Some(gram);
            }
            slot = (slot + 1) & (self.slots.len() - 1);
        }
        None
    }

    #[inline]
    fn bit_for(&self, hash: u64) -> usize {
        (hash >> 20) as usize & (64 * self.filter.len() - 1)
    }

    fn words_of_gram(&self, gram: u32) -> &[u32] {
        &self.texts.words[self.starts[gram as usize] as usize..][..self.texts.num_words]
    }

    /// Makes the lists of texts, with one list for all sequences of the same texts.
    fn fill_lists(&mut self) {
        let mut places: Vec<(u32, u32)> = Vec::with_capacity(self.by_word.len());
        for text in 0..self.texts.len() {
            let grams = self.by_word[self.texts.words_from(text)].iter();
            places.extend(grams.filter(|&&gram| gram != NONE).map(|&gram| (gram, text as u32)));
        }
        places.sort_unstable();
        places.dedup();
        let mut lists: HashMap<Vec<u32>, u32> = HashMap::new();
        for places in places.chunk_by(|a, b| a.0 == b.0) {
            let texts: Vec<u32> = places.iter().map(|&(_, text)| text).collect();
            let next = lists.len() as u32;
            let list = match lists.get(&texts) {
                Some(&list) => list,
                None => {
                    self.listed.extend_from_slice(&texts);
                    self.list_ends.push(self.listed.len());
                    lists.insert(texts, next);
                    next
                }
            };
            self.list_of_gram.push(list);
        }
    }

    /// Returns the texts that are searched.
    pub fn texts(&self) -> &'a OverlapTexts {
        self.texts
    }

    /// Returns the number of sequences that differ.
    pub fn len(&self) -> usize {
        self.starts.len()
    }

    /// Returns the number of lists.
    pub fn num_lists(&self) -> usize {
        self.list_ends.len()
    }

    /// Returns the list of `gram`.
    #[inline]
    pub fn list_of(&self, gram: u32) -> usize {
        self.list_of_gram[gram as usize] as usize
    }

    /// Returns the texts of `list`.
    pub fn texts_of(&self, list: usize) -> &[u32] {
        let start = list.checked_sub(1).map_or(0, |before| self.list_ends[before]);
        &self.listed[start..self.list_ends[list]]
    }

    /// Returns the sequences of `text` in order.
    pub fn for_text(&self, text: usize) -> &[u32] {
        let words = self.texts.words_from(text);
        let num_grams = (words.len() + 1).saturating_sub(self.texts.num_words);
        &self.by_word[words.start..words.start + num_grams]
    }
}

/// Number of words between two looks at the cancellation.
const CHUNK_WORDS: usize = 1 << 14;

/// A set of sequences that all tasks fill.
#[derive(Debug)]
struct Found(Vec<AtomicU64>);

/// Documents with sequences of a text.
#[derive(Debug, Clone, Default)]
struct Documents {
    pub num_docs: u64,
    /// The first ids.
    pub doc_ids: Vec<u64>,
    /// The last document that was counted, plus 1.
    last: u64,
}

impl Found {
    pub fn new(num_grams: usize) -> Self {
        Self((0..num_grams.div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    #[inline]
    fn add(&self, gram: u32) {
        let word = &self.0[gram as usize / 64];
        let bit = 1 << (gram % 64);
        // Sequences are found again and again, and a store makes other cores wait.
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    pub fn has(&self, gram: u32) -> bool {
        self.0[gram as usize / 64].load(Ordering::Relaxed) >> (gram % 64) & 1 == 1
    }
}

impl Documents {
    /// Appends the documents of `next`, which come behind.
    pub fn append(&mut self, next: Self) {
        self.num_docs += next.num_docs;
        let num_left = MAX_DOC_IDS - self.doc_ids.len();
        self.doc_ids.extend(next.doc_ids.into_iter().take(num_left));
    }
}

/// Returns the number of tasks that read a part side by side.
fn num_tasks() -> usize {
    rayon::current_num_threads()
}

/// Reads all documents of `corpus`, whose first id is `first_doc_id`. Marks the sequences that it
/// has in `found`, and returns the documents of each text.
///
/// # Errors
/// [`Error::Cancelled`] if `is_cancelled` says so.
fn count(
    grams: &Grams<'_>,
    corpus: &Corpus,
    first_doc_id: u64,
    found: &Found,
    is_cancelled: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Documents>> {
    let numbers_of = |segment: &Arc<Segment>| -> Vec<u32> {
        let word = |id: u32| segment.dictionary.word(id.into());
        (0..segment.dag.num_words()).map(|id| grams.texts().number_for(word(id))).collect()
    };
    let numbers: Vec<Vec<u32>> = corpus.segments().par_iter().map(numbers_of).collect();
    let tasks: Vec<Range<u64>> = equal_ranges(corpus, num_tasks());
    let read = |docs: Range<u64>| {
        let reader = Reader { grams, corpus, numbers: &numbers, found, is_cancelled };
        reader.read(docs, first_doc_id)
    };
    let task_documents: Result<Vec<Vec<Documents>>> = tasks.into_par_iter().map(read).collect();
    let mut all = vec![Documents::default(); grams.texts().len()];
    for documents in task_documents? {
        all.iter_mut().zip(documents).for_each(|(all, next)| all.append(next));
    }
    Ok(all)
}

/// Returns the number of words of `corpus`, or 2^64 - 1 if there are more.
fn corpus_words(corpus: &Corpus) -> u64 {
    (0..corpus.num_docs()).map(|doc_id| doc_words(corpus, doc_id)).fold(0, u64::saturating_add)
}

/// Cuts the documents into ranges of about as many words.
fn equal_ranges(corpus: &Corpus, num_ranges: usize) -> Vec<Range<u64>> {
    let share = corpus_words(corpus) / num_ranges.max(1) as u64;
    let mut ranges = Vec::with_capacity(num_ranges);
    let mut start = 0;
    let mut len = 0u64;
    for doc_id in 0..corpus.num_docs() {
        len = len.saturating_add(doc_words(corpus, doc_id));
        if len > share || doc_id + 1 == corpus.num_docs() {
            ranges.push(start..doc_id + 1);
            (start, len) = (doc_id + 1, 0);
        }
    }
    ranges
}

/// Reader of a range of documents.
struct Reader<'a> {
    grams: &'a Grams<'a>,
    corpus: &'a Corpus,
    /// Number of each word, by segment and word id.
    numbers: &'a [Vec<u32>],
    found: &'a Found,
    is_cancelled: &'a (dyn Fn() -> bool + Sync),
}

impl Reader<'_> {
    fn read(&self, docs: Range<u64>, first_doc_id: u64) -> Result<Vec<Documents>> {
        let texts = self.grams.texts();
        let mut documents = vec![Documents::default(); texts.len()];
        let mut last_of_lists = vec![0u64; self.grams.num_lists()];
        let mut rolling = Rolling::new(&texts.hashing, texts.num_words);
        let mut recent = Recent::new(texts.num_words);
        let mut walk = WordWalk::default();
        for doc_id in docs {
            if (self.is_cancelled)() {
                return Err(Error::Cancelled);
            }
            rolling.start();
            let mark = first_doc_id + doc_id + 1;
            for (segment_idx, doc) in self.corpus.doc_parts(doc_id) {
                let dag = &self.corpus.segments()[segment_idx].dag;
                let numbers = &self.numbers[segment_idx];
                walk.start(dag.doc_range(doc));
                let read = |word: u32| {
                    let number = numbers[word as usize];
                    if number == NONE {
                        rolling.start();
                        return;
                    }
                    recent.push(number);
                    let Some(hash) = rolling.push(texts.values[number as usize]) else { return };
                    let Some(gram) = self.grams.find(hash, |words| recent.ends_with(words)) else {
                        return;
                    };
                    self.found.add(gram);
                    let list = self.grams.list_of(gram);
                    if std::mem::replace(&mut last_of_lists[list], mark) != mark {
                        for &text in self.grams.texts_of(list) {
                            documents[text as usize].add(mark);
                        }
                    }
                };
                self.read_words(&mut walk, dag, read)?;
            }
        }
        Ok(documents)
    }

    fn read_words(&self, walk: &mut WordWalk, dag: &Dag, mut read: impl FnMut(u32)) -> Result<()> {
        while walk.next_words(dag, CHUNK_WORDS, &mut read) == CHUNK_WORDS {
            if (self.is_cancelled)() {
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    }
}

impl Documents {
    /// Counts the document of id `mark` - 1, unless it was counted last.
    fn add(&mut self, mark: u64) {
        if self.last == mark {
            return;
        }
        self.last = mark;
        self.num_docs += 1;
        if self.doc_ids.len() < MAX_DOC_IDS {
            self.doc_ids.push(mark - 1);
        }
    }
}

/// The last words that were read.
struct Recent {
    words: Vec<u32>,
    next: usize,
}

impl Recent {
    fn new(num_words: usize) -> Self {
        Self { words: vec![NONE; num_words.next_power_of_two()], next: 0 }
    }

    #[inline]
    fn push(&mut self, word: u32) {
        let mask = self.words.len() - 1;
        self.words[self.next & mask] = word;
        self.next = self.next.wrapping_add(1);
    }

    /// Returns true if the last words are `words`.
    #[inline]
    fn ends_with(&self, words: &[u32]) -> bool {
        let mask = self.words.len() - 1;
        let start = self.next.wrapping_sub(words.len());
        (0..words.len()).all(|at| self.words[start.wrapping_add(at) & mask] == words[at])
    }
}
