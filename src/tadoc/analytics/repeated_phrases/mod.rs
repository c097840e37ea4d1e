//! Repeated phrases of a corpus, each as long as possible: boilerplate, licences, log templates,
//! text that versions have in common.
//!
//! ```text
//! documents   a b c d    x b c d y    b c          at least 2 words, 2 times
//! rows        b c        2 words, 3 times
//!             b c d      3 words, 2 times          not c d: b stands before it each time
//! ```
//!
//! A row is a maximal repeat (Gusfield, "Algorithms on Strings, Trees, and Sequences", 1997,
//! section 7.12): a sequence of words that occurs often enough, and that no word before or behind
//! it extends without losing an occurrence. Occurrences may overlap. The border of a document
//! differs from every word and from every other border. Separators are ignored.
//!
//! ```text
//! document    a b c a b c a b c a b c      at least 3 words
//! rows        a b c, 4 times               not a b c a b c, which is its own shift
//! ```
//!
//! A phrase that consists of two or more copies of its beginning, the last of which may be cut, is no row.
//!
//! ```text
//! text ──grams──▶ names ──chains──▶ few symbols ──suffixes──▶ sorted ──maximal──▶ rows
//! words, borders  of min_words      runs that always          by what   intervals with several
//!                 words, repeated   stand together            follows   words before them
//! ```
//!
//! Most text drops out in `grams`, because a sequence of `min_words` words that is not repeated is in no row. `chains`
//! replaces text that is repeated only as a whole by one symbol, so sorting is cheap where much is repeated. O(words *
//! log² words) in the worst case. Memory is at most 48 bytes for each word during the work, and afterwards 4 bytes for
//! each word of the text and 12 bytes for each row. A text that needs more memory than the caller allows is rejected
//! before it is read.
//!
//! The text and the names of its sequences are here. `maximal` has all that follows.
//!
//! # Names
//!
//! ```text
//! text       a  b  c  d  |  x  b  c  d  |        n = 3, from names of 2 words
//! 2 words    .  0  1  .  .  .  0  1  .  .        b c = 0, c d = 1; a b and x b stand alone
//! 3 words    .  0  .  .  .  .  0  .  .  .        0 and the name one further on: b c d
//! ```
//!
//! Names are numbered in the sorted order of the sequences, so comparing names compares words. Two overlapping names of
//! l words give a name of up to 2 l words (Karp, Miller, Rosenberg, 1972). The first names have as many words as fit 64
//! bits. In each round, sequences that occur too seldom lose their name, and no longer sequence that begins there is
//! considered; after one round, most of a prose text has no name. O(words * log words) for each of the log n rounds.

mod maximal;

use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Canceller, Error, Result};
use crate::segment::Corpus;

use super::doc_terms::WordWalk;
use super::sequences::entries::{Entry, sorted_buckets};
use super::vocabulary::WordRows;
use super::{DocSelection, TaskLimits, Vocabulary};

use maximal::{Chains, Phrase, Search, Suffixes};

/// Memory for each word or border during the search: 4 bytes for the text, 20 for sorted suffixes,
/// 8 while they are sorted or 12 for a row, and the reserve of vectors.
const WORD_BYTES: u64 = 48;
/// Text that replaces the words that were cut off.
const CUT: &str = "…";

/// Finds the phrases of `min_words` words or more that occur in `corpus` `min_count` times or more.
///
/// # Errors
/// [`Error::InvalidArgument`] if `min_words` is 0 or `min_count` is below 2, [`Error::Capacity`] if
/// the work needs more than the memory of `limits`, [`Error::Cancelled`], and the errors of
/// [`Vocabulary::new`].
pub fn repeated_phrases<'a>(
    corpus: &Corpus,
    min_words: usize,
    min_count: u64,
    limits: impl Into<TaskLimits<'a>>,
) -> Result<RepeatedPhrases> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    let docs = DocSelection::all(corpus);
    RepeatedPhrases::with_vocabulary(vocabulary, &docs, min_words, min_count, limits)
}

/// Repeated phrases as rows. Phrases that cover most words (words times count) come first; phrases
/// that cover the same number of words are in order of their words.
#[derive(Debug, Clone)]
pub struct RepeatedPhrases {
    vocabulary: Arc<Vocabulary>,
    /// Words of all documents; each phrase is a range of them.
    text: Vec<u32>,
    phrases: Vec<Phrase>,
}

impl RepeatedPhrases {
    /// Finds the phrases that `docs` repeat, as words of `vocabulary`.
    ///
    /// # Errors
    /// The errors of [`repeated_phrases`].
    pub fn with_vocabulary<'a>(
        vocabulary: Arc<Vocabulary>,
        docs: &DocSelection,
        min_words: usize,
        min_count: u64,
        limits: impl Into<TaskLimits<'a>>,
    ) -> Result<Self> {
        check_at_least("min_words", min_words as u64, 1)?;
        check_at_least("min_count", min_count, 2)?;
        let limits: TaskLimits<'_> = limits.into();
        let canceller = limits.canceller();
        let text = read(&vocabulary, docs, WORD_BYTES, limits)?;
        let min_count = usize::try_from(min_count).unwrap_or(usize::MAX);
        let (names, num_names) = name(&text, vocabulary.len(), min_words, min_count, canceller)?;
        let chains = Chains::new(&names, num_names, canceller)?;
        drop(names);
        let suffixes = Suffixes::new(chains.symbols(), canceller)?;
        let search = Search { text: &text, chains: &chains, suffixes: &suffixes, canceller };
        let phrases = search.maximal_repeats(min_words, min_count)?;
        Ok(Self { vocabulary, text, phrases })
    }

    /// Returns the vocabulary that the rows in [`words`](Self::words) belong to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.phrases.len()
    }

    /// Returns true if there is no phrase.
    pub fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// Returns the words of `row` in order, as rows of the vocabulary.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn words(&self, row: usize) -> &[u32] {
        let phrase = &self.phrases[row];
        &self.text[phrase.start as usize..][..phrase.num_words as usize]
    }

    /// Returns the number of occurrences of the phrase of `row`, which may overlap.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn count(&self, row: usize) -> u64 {
        u64::from(self.phrases[row].count)
    }

    /// Appends the words of `row`, joined by blanks: at most `max_words`, and as many whole words
    /// as fit `max_bytes`, then an ellipsis if words are left. Appends at most `max_bytes` + 4
    /// bytes.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn append_text(&self, row: usize, max_words: usize, max_bytes: usize, output: &mut String) {
        let end = output.len().saturating_add(max_bytes);
        for (at, &word) in self.words(row).iter().enumerate() {
            let blank = if at > 0 { " " } else { "" };
            let word = self.vocabulary.word(word as usize);
            output.push_str(blank);
            if at >= max_words || output.len() + word.len() > end {
                output.push_str(CUT);
                return;
            }
            output.push_str(word);
        }
    }

    /// Returns the memory of the rows in bytes, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.text.as_slice()) + size_of_val(self.phrases.as_slice())
    }
}

/// Checks that the argument `name` is `least` or more.
///
/// # Errors
/// [`Error::InvalidArgument`].
pub(in crate::analytics) fn check_at_least(name: &'static str, got: u64, least: u64) -> Result<()> {
    if got >= least {
        return Ok(());
    }
    Err(Error::InvalidArgument { name, got: got.to_string(), allowed: format!("{least} or more") })
}

/// Border behind the words of a document. It is no row, because there are fewer rows.
const BORDER: u32 = u32::MAX;
/// Number of words that are read between two looks at the cancellation.
const CHUNK_WORDS: usize = 1 << 14;

/// Reads the words of `docs`, for a task that needs `word_bytes` of memory for each word or border,
/// the text included.
///
/// # Errors
/// [`Error::Capacity`] if the task needs more than the memory of `limits`, and
/// [`Error::Cancelled`].
fn read(vocabulary: &Vocabulary, docs: &DocSelection, word_bytes: u64, limits: TaskLimits<'_>) -> Result<Vec<u32>> {
    let corpus = vocabulary.corpus();
    let docs = docs.within(0..corpus.num_docs());
    let len = text_len(vocabulary, &docs, word_bytes, limits)?;
    let mut interrupt = limits.canceller().interrupt();
    let mut text = Vec::with_capacity(len);
    let rows = WordRows::new(vocabulary);
    let mut walk = WordWalk::default();
    for doc_id in docs.iter() {
        let start = text.len();
        interrupt.check()?;
        for (segment_idx, doc) in corpus.doc_parts(doc_id) {
            let dag = &corpus.segments()[segment_idx].dag;
            let rows = rows.for_segment(segment_idx);
            walk.start(dag.doc_range(doc));
            while walk.next_words(dag, CHUNK_WORDS, |word| text.push(rows.row(word))) == CHUNK_WORDS {
                interrupt.pass(CHUNK_WORDS)?;
            }
        }
        if text.len() > start {
            text.push(BORDER);
        }
    }
    Ok(text)
}

/// Counts the words and borders of `docs` from the grammar, because a small file may expand to 2^60
/// words.
fn text_len(vocabulary: &Vocabulary, docs: &DocSelection, word_bytes: u64, limits: TaskLimits<'_>) -> Result<usize> {
    let max_memory_bytes = limits.max_memory_bytes;
    let mut interrupt = limits.canceller().interrupt();
    let limit = (max_memory_bytes / word_bytes).min(u64::from(u32::MAX - 1));
    let corpus = vocabulary.corpus();
    let mut len = 0u64;
    for doc_id in docs.iter() {
        len = len.saturating_add(1);
        for (segment_idx, doc) in corpus.doc_parts(doc_id) {
            let dag = &corpus.segments()[segment_idx].dag;
            let elements = dag.grammar().symbols[dag.doc_range(doc)].iter();
            interrupt.pass(elements.len() + 1)?;
            len = elements.fold(len, |len, &element| len.saturating_add(dag.len_words(element)));
        }
    }
    if len > limit {
        return Err(Error::memory_of_task(
            "looking for repeated phrases (bytes)",
            len.saturating_mul(word_bytes),
            max_memory_bytes.min(word_bytes.saturating_mul(u64::from(u32::MAX - 1))),
        ));
    }
    Ok(len as usize)
}

/// Name of a sequence that is not repeated.
const NONE: u32 = u32::MAX;

/// Number of positions of a parallel task.
const TASK_POSITIONS: usize = 1 << 16;

/// Returns the name of the `num_words` words that begin at each position of `text`, and the number
/// of names. The name is [`NONE`] if the words occur fewer than `min_count` times or cross a
/// border. The words of `text` are below `num_rows`.
///
/// # Errors
/// [`Error::Cancelled`].
fn name(
    text: &[u32],
    num_rows: usize,
    num_words: usize,
    min_count: usize,
    canceller: Canceller<'_>,
) -> Result<(Vec<u32>, usize)> {
    let mut names = vec![NONE; text.len()];
    let bits = (usize::BITS - num_rows.saturating_sub(1).leading_zeros()).clamp(1, u32::BITS);
    let mut len = ((u64::BITS / bits) as usize).min(num_words);
    let entries = packed(text, bits, len, canceller)?;
    let last = u64::MAX >> (u64::BITS - bits * len as u32);
    let mut num_names = assign(entries, last, min_count, &mut names, canceller)?;
    while len < num_words && num_names > 0 {
        let step = len.min(num_words - len);
        let entries = paired(&names, step, canceller)?;
        let last = (num_names as u64) << 32;
        num_names = assign(entries, last, min_count, &mut names, canceller)?;
        len += step;
    }
    Ok((names, num_names))
}

/// Packs every sequence of `len` words without a border into a key, with `bits` bits for each word.
/// The value of an entry is its position.
fn packed(text: &[u32], bits: u32, len: usize, canceller: Canceller<'_>) -> Result<Vec<Vec<Entry>>> {
    let mask = u64::MAX >> (u64::BITS - bits * len as u32);
    let mut tasks = Vec::with_capacity(text.len().div_ceil(TASK_POSITIONS));
    let mut key = 0u64;
    let mut num_before = 0usize;
    let mut end = 0usize;
    for words in text.chunks(TASK_POSITIONS) {
        canceller.check()?;
        let mut entries = Vec::with_capacity(words.len());
        for &word in words {
            end += 1;
            if word == BORDER {
                num_before = 0;
                continue;
            }
            key = (key << bits | u64::from(word)) & mask;
            num_before += 1;
            if num_before >= len {
                entries.push(Entry { key, value: (end - len) as u64 });
            }
        }
        tasks.push(entries);
    }
    Ok(tasks)
}

/// Pairs every name with the name `step` positions later.
fn paired(names: &[u32], step: usize, canceller: Canceller<'_>) -> Result<Vec<Vec<Entry>>> {
    let starts: Vec<usize> = (0..names.len()).step_by(TASK_POSITIONS).collect();
    let entries = |start: usize| {
        canceller.check()?;
        let end = names.len().min(start + TASK_POSITIONS);
        let pairs = names[start..end].iter().zip(names.iter().skip(start + step)).zip(start as u64..);
        let are_named = |&((&first, &second), _): &((&u32, &u32), u64)| first != NONE && second != NONE;
        let key = |first: u32, second: u32| u64::from(first) << 32 | u64::from(second);
        let entry = |((&first, &second), value)| Entry { key: key(first, second), value };
        Ok(pairs.filter(are_named).map(entry).collect())
    };
    starts.into_par_iter().map(entries).collect()
}

/// Gives names to the entries of all `tasks` whose key occurs `min_count` times or more, in order
/// of keys, which are at most `last`. Returns the number of names.
fn assign(
    tasks: Vec<Vec<Entry>>,
    last: u64,
    min_count: usize,
    names: &mut [u32],
    canceller: Canceller<'_>,
) -> Result<usize> {
    // Positions and names of a bucket, and its number of names.
    let named = |entries: &mut [Entry]| {
        let runs = entries.chunk_by(|a, b| a.key == b.key).filter(|run| run.len() >= min_count);
        let mut places = Vec::new();
        let mut num_names = 0;
        for run in runs {
            places.extend(run.iter().map(|entry| (entry.value as u32, num_names)));
            num_names += 1;
        }
        Ok((places, num_names))
    };
    let buckets: Vec<(Vec<(u32, u32)>, u32)> = sorted_buckets(tasks, (0, last), canceller, named)?;
    names.fill(NONE);
    let mut interrupt = canceller.interrupt();
    let mut num_names = 0;
    for (places, num_added) in buckets {
        for (position, name) in places {
            interrupt.check()?;
            names[position as usize] = num_names + name;
        }
        num_names += num_added;
    }
    Ok(num_names as usize)
}
