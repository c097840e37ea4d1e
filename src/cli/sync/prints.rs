//! Prints of documents: path, length and digest, of files that are read without being stored.

use std::sync::Arc;

use blake3::{Hash, Hasher};
use tadoc_documents as documents;
use tadoc_documents::{Batch, Documents, Input, Sink};
use tadoc_session::{Failure, Outcome, interrupt};

use crate::columns::Columns;
use crate::ingest::Job;

/// A document as its file has it now.
#[derive(Debug)]
pub struct Print {
    pub path: Arc<str>,
    pub len_bytes: u64,
    pub digest: Hash,
}

/// Reads `inputs` as `job` does, and returns the prints of their documents, in order, and the faults of inputs that were
/// left out from there on.
///
/// # Errors
/// An input cannot be read, or the user has interrupted.
pub fn prints(inputs: &[Input], job: &Job) -> Outcome<(Vec<Print>, Vec<String>)> {
    let mut prints = Prints::default();
    let mut columns = Columns::for_documents(&Documents::Files);
    let read = documents::read(inputs, &job.division, job.read, &job.archives, &mut columns, &mut prints);
    if interrupt::is_asked() {
        return Err(Failure::interrupted());
    }
    Ok((prints.done, read?.faults))
}

#[derive(Default)]
struct Prints {
    done: Vec<Print>,
    /// Hasher and length of the document that goes on.
    open: Option<(Hasher, u64)>,
}

impl Sink for Prints {
    fn take(&mut self, batch: Batch) -> documents::Outcome {
        if interrupt::is_asked() {
            return Err(documents::Failure::new("interrupted"));
        }
        for (part, (path, _)) in batch.iter().zip(&batch.documents) {
            let (mut hasher, before) = self.open.take().unwrap_or_default();
            hasher.update(part.text);
            let len_bytes = before + part.text.len() as u64;
            if part.is_last {
                self.done.push(Print { path: Arc::clone(path), len_bytes, digest: hasher.finalize() });
            } else {
                self.open = Some((hasher, len_bytes));
            }
        }
        Ok(())
    }
}
