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
//! A phrase that consists of two or more copies of its beginning, the last of which may be cut, is no
//! row ([`periodic`]): a line that is written a thousand times in a row is one row, and not a thousand.
//!
//! ```text
//! text ──grams──▶ names ──chains──▶ few symbols ──suffixes──▶ sorted ──maximal──▶ rows
//! words, borders  of min_words      runs that always          by what   intervals with several
//!                 words, repeated   stand together            follows   words before them
//! ```
//!
//! Most text drops out in `grams`, because a sequence of `min_words` words that is not repeated is
//! in no row. `chains` replaces text that is repeated only as a whole by one symbol, so sorting is
//! cheap where much is repeated. O(words * log² words) in the worst case. Measured on one thread
//! for 8 words, 2 times: 11 ms (short strings) to 31 ms (logs) for each MB of text. Memory is at
//! most 48 bytes for each word during the work, and afterwards 4 bytes for each word of the text
//! and 12 bytes for each row. A text that needs more memory than the caller allows is rejected
//! before it is read.
//!
//! Reading order: `text` (words as one array), `grams`, `chains`, `suffixes`, `periodic`, `maximal`.

mod chains;
mod grams;
mod maximal;
mod periodic;
mod suffixes;
mod text;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::segment::Corpus;

use super::{DocSelection, TaskLimits, Vocabulary};
use chains::Chains;
use maximal::{Phrase, Search};
use suffixes::Suffixes;

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
        let text = text::read(&vocabulary, docs, WORD_BYTES, limits)?;
        let min_count = usize::try_from(min_count).unwrap_or(usize::MAX);
        let (names, num_names) =
            grams::name(&text, vocabulary.len(), min_words, min_count, canceller)?;
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

    /// Appends the words of `row`, joined by blanks: at most `max_words`, and as many whole words as fit
    /// `max_bytes`, then an ellipsis if words are left. Appends at most `max_bytes` + 4 bytes.
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
