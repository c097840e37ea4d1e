//! Phrases that a corpus repeats, each as long as it can be: boilerplate, licences, templates of
//! logs, text that was carried over from version to version.
//!
//! ```text
//! documents   a b c d    x b c d y    b c          at least 2 words, 2 times
//! rows        b c        2 words, 3 times
//!             b c d      3 words, 2 times          not c d: b stands before it each time
//! ```
//!
//! A row is a maximal repeat (Gusfield, "Algorithms on Strings, Trees, and Sequences", 1997, section
//! 7.12): a sequence of words that occurs often enough, in places that may overlap, and that no word
//! before or behind it can extend without losing a place. The border of a document differs from
//! every word and from every other border; separators do not matter.
//!
//! ```text
//! text ──grams──▶ names ──chains──▶ few symbols ──suffixes──▶ sorted ──maximal──▶ rows
//! words, borders  of min_words      runs that always          by what   intervals with several
//!                 words, repeated   stand together            follows   words before them
//! ```
//!
//! Most text is gone after `grams`: what does not repeat for `min_words` words is in no row. `chains`
//! takes text that is only repeated as a whole as one symbol, so that sorting costs little where much
//! is repeated. O(words * log² words) at worst; measured on one thread for 8 words, 2 times: 11 (short
//! strings) to 31 (logs) ms a MB of text. At most 48 bytes a word while it works, 4 bytes a word of
//! the text and 12 bytes a row after; a text that needs more than the caller allows is refused before
//! it is read.

mod chains;
mod grams;
mod maximal;
mod suffixes;
mod text;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::segment::Corpus;

use super::{DocSelection, Vocabulary};
use chains::Chains;
use maximal::{Phrase, maximal_repeats};
use suffixes::Suffixes;

/// What stands for the words that were left out.
const CUT: &str = "…";

/// The phrases of `min_words` words or more that occur in `corpus` `min_count` times or more.
///
/// # Errors
/// [`Error::InvalidArgument`] for `min_words` = 0 or a `min_count` below 2, [`Error::Capacity`] where
/// more than `max_memory_bytes` would be used, and as [`Vocabulary::new`].
pub fn repeated_phrases(
    corpus: &Corpus,
    min_words: usize,
    min_count: u64,
    max_memory_bytes: u64,
) -> Result<RepeatedPhrases> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    let docs = DocSelection::all(corpus);
    RepeatedPhrases::with_vocabulary(vocabulary, &docs, min_words, min_count, max_memory_bytes)
}

/// Phrases as rows: those that cover most words (words times count) first, of the same cover in
/// order of words.
#[derive(Debug, Clone)]
pub struct RepeatedPhrases {
    vocabulary: Arc<Vocabulary>,
    /// The words of all documents; each phrase is a piece of it.
    text: Vec<u32>,
    phrases: Vec<Phrase>,
}

impl RepeatedPhrases {
    /// The phrases that `docs` repeat, in words of `vocabulary`.
    ///
    /// # Errors
    /// As [`repeated_phrases`].
    pub fn with_vocabulary(
        vocabulary: Arc<Vocabulary>,
        docs: &DocSelection,
        min_words: usize,
        min_count: u64,
        max_memory_bytes: u64,
    ) -> Result<Self> {
        check_at_least("min_words", min_words as u64, 1)?;
        check_at_least("min_count", min_count, 2)?;
        let text = text::read(&vocabulary, docs, max_memory_bytes)?;
        let min_count = usize::try_from(min_count).unwrap_or(usize::MAX);
        let (names, num_names) = grams::name(&text, vocabulary.len(), min_words, min_count);
        let chains = Chains::new(&names, num_names);
        drop(names);
        let suffixes = Suffixes::new(chains.symbols());
        let phrases = maximal_repeats(&chains, &suffixes, min_words, min_count);
        Ok(Self { vocabulary, text, phrases })
    }

    /// The words, which [`words`](Self::words) are rows of.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.phrases.len()
    }

    /// Whether there is no phrase.
    pub fn is_empty(&self) -> bool {
        self.phrases.is_empty()
    }

    /// The words of `row` in order, as rows of the vocabulary.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    pub fn words(&self, row: usize) -> &[u32] {
        let phrase = &self.phrases[row];
        &self.text[phrase.start as usize..][..phrase.num_words as usize]
    }

    /// How often the phrase of `row` occurs; places may overlap.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    pub fn count(&self, row: usize) -> u64 {
        u64::from(self.phrases[row].count)
    }

    /// Appends the words of `row`, joined by one blank: as many whole words as `max_bytes` hold,
    /// then an ellipsis where that are not all. At most `max_bytes` + 4 bytes.
    ///
    /// # Panics
    /// When `row` is not below [`len`](Self::len).
    pub fn append_text(&self, row: usize, max_bytes: usize, output: &mut String) {
        let end = output.len().saturating_add(max_bytes);
        for (at, &word) in self.words(row).iter().enumerate() {
            let blank = if at > 0 { " " } else { "" };
            let word = self.vocabulary.word(word as usize);
            output.push_str(blank);
            if output.len() + word.len() > end {
                output.push_str(CUT);
                return;
            }
            output.push_str(word);
        }
    }

    /// Main memory of the rows, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        size_of_val(self.text.as_slice()) + size_of_val(self.phrases.as_slice())
    }
}

fn check_at_least(name: &'static str, got: u64, least: u64) -> Result<()> {
    if got >= least {
        return Ok(());
    }
    Err(Error::InvalidArgument { name, got: got.to_string(), allowed: format!("{least} or more") })
}
