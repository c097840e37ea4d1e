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
//! The texts are in memory (`texts`), and the corpus is read once (`counting`), in parts if it must be.
//! Separators are ignored. Sequences do not cross documents. Each sequence of the corpus is looked up by
//! its hash and compared word by word, so answers are exact. O(words of the corpus + words of the texts +
//! texts with sequences in each document). Memory: 64 bytes for each word of the texts, 4 for each word
//! of the dictionaries, and for each thread 8 for each word of the texts and 128 for each text.

mod counting;
mod texts;

use std::borrow::Borrow;

use super::corpus_parts::{CorpusParts, WORDS_PER_BYTE};
use crate::error::{Error, Result};
use crate::segment::Corpus;
use counting::{Documents, Found, corpus_words, count, num_tasks};
use texts::Grams;
pub use texts::OverlapTexts;

/// Greatest number of ids of documents of a text.
const MAX_DOC_IDS: usize = 10;

/// Overlap of one text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextOverlap {
    /// Number of sequences of the text.
    pub num_ngrams: u64,
    /// Number of these that the corpus has.
    pub num_found: u64,
    /// Words of the longest stretch of the text whose sequences are all in the corpus; 0 if there is
    /// none.
    pub longest_match_words: u64,
    /// Number of documents with a sequence of the text.
    pub num_docs: u64,
    /// Ids of the first of these documents, at most 10.
    pub doc_ids: Vec<u64>,
}

impl TextOverlap {
    /// Returns the share of the sequences that the corpus has, or `None` for a text that is too short
    /// to have any.
    pub fn share(&self) -> Option<f64> {
        (self.num_ngrams > 0).then(|| self.num_found as f64 / self.num_ngrams as f64)
    }
}

/// Looks for the sequences of `texts` in a corpus. Returns one answer for each text, in order.
///
/// # Errors
/// [`Error::Capacity`] if the work needs more than `max_memory_bytes`, [`Error::Cancelled`], and the
/// errors of `parts`.
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
    let (mut first_doc_id, mut num_words) = (0, 0u64);
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
        let of_dictionaries = corpus.segments().iter().map(|s| u64::from(s.dag.num_words()));
        parts.hold(bytes + 4 * of_dictionaries.sum::<u64>())?;
        let is_cancelled = || parts.is_cancelled();
        let counted = count(&grams, corpus, first_doc_id, &found, &is_cancelled)?;
        documents.iter_mut().zip(counted).for_each(|(all, next)| all.append(next));
        first_doc_id += corpus.num_docs();
    }
    let answer = |(text, documents)| answer_of(&grams, text, &found, documents);
    Ok(documents.into_iter().enumerate().map(answer).collect())
}

fn answer_of(grams: &Grams<'_>, text: usize, found: &Found, documents: Documents) -> TextOverlap {
    let of_text = grams.for_text(text);
    let (mut num_found, mut stretch, mut longest) = (0, 0, 0);
    for &gram in of_text {
        stretch = if found.has(gram) { stretch + 1 } else { 0 };
        num_found += u64::from(stretch > 0);
        longest = longest.max(stretch);
    }
    let before_last = grams.texts().num_words as u64 - 1;
    TextOverlap {
        num_ngrams: of_text.len() as u64,
        num_found,
        longest_match_words: if longest > 0 { longest + before_last } else { 0 },
        num_docs: documents.num_docs,
        doc_ids: documents.doc_ids,
    }
}
