//! Keys: numbers that hold a whole sequence and, in the lowest bits, a small value. [`Packing`]
//! lays out their words, [`Keep`] says which of them a walk keeps.
//!
//! ```text
//! | word 1 | word 2 | word 3 | value |     bits of a word each, value_bits
//! ```
//!
//! Keys have the order of the sequences. Sequences that fit 64 bits with their value are counted in `u64`, up to 128
//! bits (7 words of 2^18) in `u128`. Longer ones are counted as positions in a text.
//!
//! A walk keeps all sequences, those of a range, or none while it counts them:
//!
//! ```text
//! keys      0 ............................................ last
//! tally       |  12  |   3  | 90 | 7 |  ...         one number for each range of 2^shift keys
//! ranges      [first ..... last] [first .. last]    as many of them as fit, together
//! ```
//!
//! # Windows of two and three words
//!
//! ```text
//! element     the    [r: b c d e f]     ,
//! head        the -   b c               - -      `-` where there is no such word
//! tail        - the   e f               - -
//! ```
//!
//! An element is a word, a separator, a rule of few words or a rule of many words almost at random.
//! So each test costs one or two mispredicted branches. Here one table has the first and last words
//! of every element. All windows that may end in an element are written, and those that are no
//! windows are overwritten. That halves the time of a walk. Windows of four and five words have
//! keys of 128 bits. Sorting these takes so long that they gain nothing from such a table.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Canceller, Result};
use crate::ids::RuleId;
use crate::segment::Dag;

use super::Sink;

/// Number that sequences are packed into.
pub(in crate::analytics) trait Key: Copy + Default + Ord + Debug + Send + Sync {
    /// Appends `word` to the sequence and removes its oldest word, whose bits lie above
    /// `total_bits`.
    fn rolled(self, word: u32, word_bits: u32, total_bits: u32) -> Self;
    /// Returns the key with `value` below the sequence.
    fn with_value(self, value: u32, value_bits: u32) -> Self;
    /// Returns the lowest `bits` bits, at most 32.
    fn low(self, bits: u32) -> u32;
    /// Returns the key without its lowest `bits` bits.
    fn above(self, bits: u32) -> Self;
    /// Returns the lowest 64 bits.
    fn number(self) -> u64;
    /// Returns the bits that are 1 in either key.
    fn joined(self, other: Self) -> Self;
    /// Returns the bits that differ between the keys.
    fn differing(self, other: Self) -> Self;
    /// Returns the number of bits up to the highest that is 1.
    fn num_bits(self) -> u32;
    /// Returns the difference to `first`, which must not be larger.
    fn minus(self, first: Self) -> Self;
    /// Returns the key whose lowest `bits` bits are 1 and all others 0.
    fn ones(bits: u32) -> Self;
}

/// Value to sort: a key, or a key with more data.
pub(in crate::analytics) trait Keyed: Copy + Default + Send + Sync {
    type Key: Key;
    fn key(self) -> Self::Key;
}

impl Keyed for u64 {
    type Key = Self;
    #[inline]
    fn key(self) -> Self {
        self
    }
}

impl Keyed for u128 {
    type Key = Self;
    #[inline]
    fn key(self) -> Self {
        self
    }
}

macro_rules! key {
    ($number:ty) => {
        impl Key for $number {
            #[inline]
            fn rolled(self, word: u32, word_bits: u32, total_bits: u32) -> Self {
                (self << word_bits | Self::from(word)) & (Self::MAX >> (Self::BITS - total_bits))
            }
            #[inline]
            fn with_value(self, value: u32, value_bits: u32) -> Self {
                self << value_bits | Self::from(value)
            }
            #[inline]
            fn low(self, bits: u32) -> u32 {
                (self & ((1 << bits) - 1)) as u32
            }
            #[inline]
            fn above(self, bits: u32) -> Self {
                self >> bits
            }
            #[inline]
            fn number(self) -> u64 {
                self as u64
            }
            #[inline]
            fn joined(self, other: Self) -> Self {
                self | other
            }
            #[inline]
            fn differing(self, other: Self) -> Self {
                self ^ other
            }
            #[inline]
            fn num_bits(self) -> u32 {
                Self::BITS - self.leading_zeros()
            }
            #[inline]
            fn minus(self, first: Self) -> Self {
                self - first
            }
            fn ones(bits: u32) -> Self {
                Self::MAX.checked_shr(Self::BITS - bits).unwrap_or(0)
            }
        }
    };
}

key!(u64);
key!(u128);

/// Layout of words in 64-bit keys, with the same number of bits for each row of a vocabulary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::analytics) struct Packing {
    /// Number of words of a sequence.
    pub num_words: usize,
    bits: u32,
}

impl Packing {
    /// Creates the layout for sequences of `num_words` words that are below `vocabulary_len`.
    pub fn new(num_words: usize, vocabulary_len: usize) -> Self {
        let bits = (usize::BITS - vocabulary_len.saturating_sub(1).leading_zeros()).max(1);
        Self { num_words, bits }
    }

    /// Returns the number of bits of a word.
    pub fn word_bits(self) -> u32 {
        self.bits
    }

    /// Returns the number of bits of all words, at most 2^32 - 1.
    pub fn all_bits(self) -> u32 {
        u32::try_from(self.num_words).unwrap_or(u32::MAX).saturating_mul(self.bits)
    }

    /// Returns the number of words of a key.
    pub fn words_per_key(self) -> usize {
        ((64 / self.bits) as usize).min(self.num_words)
    }

    /// Returns true if a key holds a whole sequence.
    pub fn is_whole(self) -> bool {
        self.words_per_key() == self.num_words
    }

    /// Returns the number of bits of a key.
    pub fn key_bits(self) -> u32 {
        self.bits * self.words_per_key() as u32
    }

    /// Returns the key of the first words of `words`. At the end of a sequence, these may be fewer
    /// than a key has.
    pub fn key(self, words: &[u32]) -> u64 {
        let len = self.words_per_key();
        let words = &words[..len.min(words.len())];
        let key = words.iter().fold(0u64, |key, &word| key << self.bits | u64::from(word));
        key << (self.bits as usize * (len - words.len())).min(63)
    }

    /// Returns word `at` of a whole sequence.
    #[inline]
    pub fn word<K: Key>(self, key: K, at: usize) -> u32 {
        key.above(self.bits * (self.num_words - 1 - at) as u32).low(self.bits)
    }
}

/// Choice of the sequences that a walk keeps.
#[derive(Debug, Clone, Default)]
pub(in crate::analytics) enum Keep<K> {
    #[default]
    All,
    /// Sequences from the first to the last.
    Within(K, K),
    /// No sequence; they are counted.
    Counted(Arc<Tally<K>>),
}

impl<K: Key> Keep<K> {
    /// Returns true if the sequence `key` is kept.
    #[inline]
    pub fn is_kept(&self, key: impl FnOnce() -> K) -> bool {
        match self {
            Self::All => true,
            Self::Within(first, last) => (*first..=*last).contains(&key()),
            Self::Counted(tally) => {
                tally.add(key());
                false
            }
        }
    }

    /// Returns true if all sequences are kept.
    pub fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }
}

/// Number of sequences met in each range of 2^`shift` keys.
#[derive(Debug)]
pub(in crate::analytics) struct Tally<K> {
    first: K,
    last: K,
    shift: u32,
    counts: Vec<AtomicU64>,
}

impl<K: Key> Tally<K> {
    /// Creates a tally for the keys that differ from `first` only in their lowest `bits` bits, with
    /// at most 2^`num_bits` ranges.
    pub fn new(first: K, bits: u32, num_bits: u32) -> Self {
        let num_bits = num_bits.min(bits);
        let counts = (0..1usize << num_bits).map(|_| AtomicU64::new(0)).collect();
        Self { first, last: first.joined(K::ones(bits)), shift: bits - num_bits, counts }
    }

    /// Returns the number of bits in which the keys of one range differ.
    pub fn shift(&self) -> u32 {
        self.shift
    }

    /// Returns the first key of each range, and the number of sequences met there.
    pub fn counts(&self) -> impl Iterator<Item = (K, u64)> + '_ {
        self.counts.iter().zip(0u32..).map(|(count, at)| {
            let offset = K::default().with_value(at, 0).with_value(0, self.shift);
            (self.first.joined(offset), count.load(Ordering::Relaxed))
        })
    }

    fn add(&self, key: K) {
        if (self.first..=self.last).contains(&key) {
            let at = key.minus(self.first).above(self.shift).number() as usize;
            self.counts[at].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// First and last `R` words of an element, side by side.
pub(in crate::analytics) type Ends<const R: usize> = [[u32; R]; 2];

/// Maximum number of words in a table. A table of 608,000 distinct words (f-dbtext) does not fit
/// the cache, which cost a tenth of the time of counting pairs. For few words, a table is faster
/// than tests.
const MAX_WORDS: u32 = 1 << 17;
/// Mark of a missing word, above any row of a vocabulary.
const NONE: u32 = u32::MAX;

/// First and last words of elements.
#[derive(Debug)]
pub(in crate::analytics) struct Table<const R: usize> {
    /// First element of the table. Elements below it are words whose rows are their ids; 0 if there
    /// are few.
    first: u32,
    /// First and last words of the elements from `first` on.
    ends: Vec<Ends<R>>,
}

/// First and last words of all elements, for windows of two or three words.
#[derive(Debug)]
pub(super) enum ShortEdges {
    One(Table<1>),
    Two(Table<2>),
}

impl ShortEdges {
    /// Builds the table for windows that reach `reach` words across a border. Returns `None` if the
    /// windows are longer or the table takes more than `max_bytes`. O(elements).
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn new(
        dag: &Dag,
        reach: usize,
        max_bytes: u64,
        rows: &[u32],
        canceller: Canceller<'_>,
    ) -> Result<Option<Self>> {
        let num_elements = u64::from(dag.num_terminals()) + dag.grammar().num_rules() as u64;
        let fits = num_elements.saturating_mul(8 * reach as u64) <= max_bytes;
        Ok(match reach {
            1 if fits => Some(Self::One(Table::new(dag, rows, MAX_WORDS, canceller)?)),
            2 if fits => Some(Self::Two(Table::new(dag, rows, MAX_WORDS, canceller)?)),
            _ => None,
        })
    }

    /// Returns the memory of the table in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Self::One(table) => size_of_val(table.ends.as_slice()),
            Self::Two(table) => size_of_val(table.ends.as_slice()),
        }
    }

    /// Returns the first and last words of rule `rule_id`. Without last words, the first words are
    /// all.
    #[inline]
    pub fn rule(&self, dag: &Dag, rule_id: RuleId) -> (&[u32], Option<&[u32]>) {
        let element = dag.grammar().element_for(rule_id) as usize;
        match self {
            Self::One(table) => parts(&table.ends[element - table.first as usize]),
            Self::Two(table) => parts(&table.ends[element - table.first as usize]),
        }
    }
}

/// Returns the first words and, if there are `R` of them, the last ones.
#[inline]
fn parts<const R: usize>([head, tail]: &Ends<R>) -> (&[u32], Option<&[u32]>) {
    match head.iter().position(|&word| word == NONE) {
        Some(len) => (&head[..len], None),
        None => (head, Some(tail)),
    }
}

impl<const R: usize> Table<R> {
    /// Builds the table, children before parents. `rows` are by word id, or empty if rows are the
    /// word ids. In that case words are left out of the table if there are more than `max_words`.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    fn new(dag: &Dag, rows: &[u32], max_words: u32, canceller: Canceller<'_>) -> Result<Self> {
        let mut interrupt = canceller.interrupt();
        let grammar = dag.grammar();
        let num_terminals = dag.num_terminals();
        let is_large = rows.is_empty() && dag.num_words() > max_words;
        let first = if is_large { dag.num_words() } else { 0 };
        let num_ends = (num_terminals - first) as usize + grammar.num_rules();
        let mut table = Self { first, ends: vec![[[NONE; R]; 2]; num_ends] };
        let (words, row) = (dag.num_words() - first, |word| rows.get(word as usize).copied());
        for (ends, word) in table.ends.iter_mut().zip(0..words) {
            let [head, tail] = ends;
            let row = row(word).unwrap_or(word);
            (head[0], tail[R - 1]) = (row, row);
        }
        for rule_id in grammar.rule_ids().skip(1).rev() {
            interrupt.check()?;
            let elements = grammar.rule(rule_id);
            let head = first_words(elements.iter().map(|&element| table.for_element(element)[0]));
            let last = elements.iter().rev().map(|&element| {
                let [_, mut tail] = table.for_element(element);
                tail.reverse();
                tail
            });
            let mut tail: [u32; R] = first_words(last);
            tail.reverse();
            table.ends[(num_terminals - first) as usize + rule_id.index()] = [head, tail];
        }
        Ok(table)
    }

    /// Returns the first and last words of `element`.
    #[inline]
    fn for_element(&self, element: u32) -> Ends<R> {
        if self.first == 0 { self.ends[element as usize] } else { self.for_any(element) }
    }

    /// Returns the first and last words of `element` for a table that leaves words out, without a
    /// branch.
    #[inline]
    fn for_any(&self, element: u32) -> Ends<R> {
        // All bits are 1 for a word that is left out; the first entry of the table is then read
        // instead.
        let own = 0u32.wrapping_sub(u32::from(element < self.first));
        let [mut head, mut tail] = self.ends[(element.wrapping_sub(self.first) & !own) as usize];
        head.iter_mut().chain(&mut tail).for_each(|word| *word |= own);
        let word = !own | element;
        head[0] &= word;
        tail[R - 1] &= word;
        [head, tail]
    }

    /// Passes `elements` to `sink`.
    pub fn push_each(&self, elements: &[u32], sink: &mut impl Sink) {
        for &element in elements {
            let ends = self.for_element(element);
            let (head, tail) = parts(&ends);
            sink.push_child(head, tail);
        }
    }
}

/// Returns the first `R` words of children that begin with `heads`.
#[inline]
fn first_words<const R: usize>(heads: impl Iterator<Item = [u32; R]>) -> [u32; R] {
    let mut words = [NONE; R];
    let mut len = 0;
    for head in heads {
        for word in head {
            if word != NONE && len < R {
                words[len] = word;
                len += 1;
            }
        }
        if len == R {
            break;
        }
    }
    words
}

/// Number of elements for which room is made at once.
const STEP_LEN: usize = 1 << 10;

/// Words before the next element, and their number up to `R`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Before<K> {
    pub key: K,
    pub len: usize,
}

/// Appends all windows of `R` + 1 words that end in `elements` and are kept to `keys`, each with
/// `value` in the lowest bits. `before` has the words before the elements, and afterwards those
/// before the next elements.
pub(super) fn append_windows<K: Key, const R: usize>(
    (table, elements): (&Table<R>, &[u32]),
    packing: Packing,
    value: (u32, u32),
    is_kept: impl Fn(K) -> bool,
    before: &mut Before<K>,
    keys: &mut Vec<K>,
) {
    match table.first {
        0 => append((|e| table.ends[e as usize], elements), packing, value, is_kept, before, keys),
        _ => append((|e| table.for_any(e), elements), packing, value, is_kept, before, keys),
    }
}

#[inline]
fn append<K: Key, const R: usize>(
    (ends, elements): (impl Fn(u32) -> Ends<R>, &[u32]),
    packing: Packing,
    (value, value_bits): (u32, u32),
    is_kept: impl Fn(K) -> bool,
    before: &mut Before<K>,
    keys: &mut Vec<K>,
) {
    let word_bits = packing.word_bits();
    let all_bits = packing.all_bits();
    let rolled = |key: K, word: u32| key.rolled(word, word_bits, all_bits);
    let Before { mut key, mut len } = *before;
    let mut num_keys = keys.len();
    for elements in elements.chunks(STEP_LEN) {
        // Entries that are no windows are written, too, and the next entry overwrites them.
        keys.resize(num_keys + R * elements.len() + 1, K::default());
        for &element in elements {
            let [head, tail] = ends(element);
            let mut next = key;
            let mut next_len = len;
            for word in head {
                let is_word = word != NONE;
                let rolled = rolled(next, word);
                keys[num_keys] = rolled.with_value(value, value_bits);
                num_keys += usize::from(is_word & (next_len >= R) & is_kept(rolled));
                next = if is_word { rolled } else { next };
                next_len += usize::from(is_word);
            }
            let behind = tail.into_iter().fold(K::default(), rolled);
            key = if head[R - 1] != NONE { behind } else { next };
            len = next_len.min(R);
        }
    }
    keys.truncate(num_keys);
    *before = Before { key, len };
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use crate::analytics::{SequenceCounts, Traversal, Vocabulary};
    use crate::build::corpus_from_texts;

    use super::*;

    const WORDS: [&str; 5] = ["be", "not", "or", "to", "we"];

    /// Returns documents of recurring words, some of them empty.
    fn documents() -> impl Strategy<Value = Vec<Vec<&'static str>>> {
        let phrases = prop::collection::vec(prop::collection::vec(0..WORDS.len(), 0..9), 1..5);
        let choices = prop::collection::vec(prop::collection::vec(0..5usize, 0..30), 1..9);
        (phrases, choices).prop_map(|(phrases, choices)| {
            let document = |choices: Vec<usize>| {
                let phrases = choices.iter().flat_map(|choice| &phrases[choice % phrases.len()]);
                phrases.map(|&word| WORDS[word]).collect()
            };
            choices.into_iter().map(document).collect()
        })
    }

    fn expected(documents: &[Vec<&str>], n: usize) -> Vec<(String, u64)> {
        let mut counts: BTreeMap<Vec<&str>, u64> = BTreeMap::new();
        for window in documents.iter().flat_map(|words| words.windows(n)) {
            *counts.entry(window.to_vec()).or_default() += 1;
        }
        counts.into_iter().map(|(window, count)| (window.join(" "), count)).collect()
    }

    proptest! {
        #[test]
        fn windows_are_those_of_the_text(documents in documents(), is_cut in any::<bool>()) {
            let texts: Vec<String> = documents.iter().map(|words| words.join(", ")).collect();
            let corpus = corpus_from_texts(if is_cut { 200 } else { 1 << 20 }, &texts);
            let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
            for (n, memory_bytes) in [(2, 1 << 30), (3, 1 << 30), (2, 1 << 14), (3, 1 << 14)] {
                let words = vocabulary.clone();
                let way = Traversal::TopDown;
                let found = SequenceCounts::with_vocabulary(words, n, way, memory_bytes);
                // One sequence may occur more often than a small memory limit allows.
                let Ok(found) = found else { continue };
                let row = |row: usize| {
                    let words = found.sequences().words(row);
                    let words: Vec<&str> = words.map(|w| vocabulary.word(w as usize)).collect();
                    (words.join(" "), found.counts()[row])
                };
                let got: Vec<(String, u64)> = (0..found.len()).map(row).collect();
                prop_assert_eq!(got, expected(&documents, n));
            }
        }

        #[test]
        fn words_that_are_left_out_are_their_own_rows(documents in documents()) {
            let texts: Vec<String> = documents.iter().map(|words| words.join(" ")).collect();
            let corpus = corpus_from_texts(1 << 20, &texts);
            for segment in corpus.segments() {
                let dag = &segment.dag;
                let stays = Canceller::new(&|| false);
                let tables = [0, u32::MAX]
                    .map(|max_words| Table::<2>::new(dag, &[], max_words, stays).unwrap());
                for element in 0..dag.num_terminals() + dag.grammar().num_rules() as u32 {
                    let [few, all] = tables.each_ref().map(|table| table.for_element(element));
                    prop_assert_eq!(few[0], all[0]);
                    // Last words matter only if there are `R` first words.
                    prop_assert!(few[0][1] == NONE || few[1] == all[1]);
                }
            }
        }
    }
}
