//! Words of all documents in one array, as rows of the vocabulary, with a border behind each
//! document that has words.

use crate::analytics::word_rows::WordRows;
use crate::analytics::word_walk::WordWalk;
use crate::analytics::{DocSelection, TaskLimits, Vocabulary};
use crate::error::{Error, Result};

/// Border behind the words of a document. It is no row, because there are fewer rows.
pub(super) const BORDER: u32 = u32::MAX;
/// Number of words that are read between two looks at the cancellation.
const CHUNK_WORDS: usize = 1 << 14;

/// Reads the words of `docs`, for a task that needs `word_bytes` of memory for each word or border, the text
/// included.
///
/// # Errors
/// [`Error::Capacity`] if the task needs more than the memory of `limits`, and [`Error::Cancelled`].
pub(super) fn read(
    vocabulary: &Vocabulary,
    docs: &DocSelection,
    word_bytes: u64,
    limits: TaskLimits<'_>,
) -> Result<Vec<u32>> {
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
            while walk.next_words(dag, CHUNK_WORDS, |word| text.push(rows.row(word))) == CHUNK_WORDS
            {
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
fn text_len(
    vocabulary: &Vocabulary,
    docs: &DocSelection,
    word_bytes: u64,
    limits: TaskLimits<'_>,
) -> Result<usize> {
    let (max_memory_bytes, mut interrupt) =
        (limits.max_memory_bytes, limits.canceller().interrupt());
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
