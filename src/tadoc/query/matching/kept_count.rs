//! Count of a word in one document, from segments that keep the words of documents
//! ([`DocWords`](crate::segment::DocWords)): a search in a sorted list instead of a climb through
//! the grammar.

use crate::segment::Corpus;

/// Returns the number of occurrences of `word` in document `doc_id`; 0 if there is no such
/// document. Returns `None` if a segment with a part of the document does not keep words, or the
/// number does not fit into 64 bits.
pub(crate) fn kept_count(corpus: &Corpus, doc_id: u64, word: &str) -> Option<u64> {
    let mut sum = 0u64;
    for (segment_idx, doc) in corpus.doc_parts(doc_id) {
        let segment = &corpus.segments()[segment_idx];
        let doc_words = segment.doc_words_or_derive_if_worth()?;
        let word = segment.dictionary.word_id(word.as_bytes());
        sum = sum.checked_add(word.map_or(0, |word| doc_words.count(doc, word)))?;
    }
    Some(sum)
}
