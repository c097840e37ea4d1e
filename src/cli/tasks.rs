//! Runs of documents of about equal length, one for each task of a core.

use tadoc::Corpus;
use tadoc::read::document_len_bytes;
use tadoc_session::Outcome;

/// Least and greatest number of bytes of documents in one task. Texts that repeat are decoded once
/// in each task, and the texts of all tasks that are worked on together are held.
const MIN_TASK_BYTES: u64 = 1 << 20;
const MAX_TASK_BYTES: u64 = 4 << 20;
/// Length of a document from which on it is a task of its own, which is worked on in pieces.
pub const LONG_BYTES: u64 = 16 << 20;
/// Tasks for each core that are worked on together.
const TASKS_PER_CORE: usize = 2;

/// Documents that are worked on one after the other.
pub struct Task<'a> {
    pub docs: &'a [u64],
    /// True for one long document.
    pub is_long: bool,
}

/// Returns the number of tasks that are worked on together.
pub fn num_at_once() -> usize {
    TASKS_PER_CORE * rayon::current_num_threads()
}

/// Cuts `docs` into tasks, some for each core.
///
/// # Errors
/// A document does not exist.
pub fn tasks_of<'a>(corpus: &Corpus, docs: &'a [u64]) -> Outcome<Vec<Task<'a>>> {
    let lens = docs.iter().map(|&doc_id| document_len_bytes(corpus, doc_id));
    let lens = lens.collect::<tadoc::Result<Vec<u64>>>()?;
    let num_bytes = lens.iter().copied().fold(0, u64::saturating_add);
    let task_bytes = (num_bytes / num_at_once() as u64).clamp(MIN_TASK_BYTES, MAX_TASK_BYTES);
    let mut tasks = Vec::new();
    let (mut start, mut len_bytes) = (0, 0);
    for (idx, doc_bytes) in lens.into_iter().enumerate() {
        let is_long = doc_bytes >= LONG_BYTES;
        if start < idx && (is_long || len_bytes + doc_bytes > task_bytes) {
            tasks.push(Task { docs: &docs[start..idx], is_long: false });
            (start, len_bytes) = (idx, 0);
        }
        if is_long {
            tasks.push(Task { docs: &docs[idx..=idx], is_long });
            start = idx + 1;
        } else {
            len_bytes += doc_bytes;
        }
    }
    if start < docs.len() {
        tasks.push(Task { docs: &docs[start..], is_long: false });
    }
    Ok(tasks)
}

/// Returns the path of document `doc_id`; empty if there is none.
pub fn path_of(corpus: &Corpus, doc_id: u64) -> &str {
    corpus.path(doc_id).unwrap_or_default()
}
