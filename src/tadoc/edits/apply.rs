//! Batches of edits and mixed batches on a living corpus, all or none.

use std::ops::Range;

use super::edit::{Answer, EditBatch, EditMode, Operation};
use super::living_corpus::{LivingCorpus, Step};
use super::plan::{Item, plan};
use crate::error::Result;

impl LivingCorpus {
    /// Makes the edits of `batch`, all or none. Returns the ids of the documents that it adds.
    ///
    /// # Errors
    /// [`OutOfRange`](crate::Error::OutOfRange) for a document that does not exist,
    /// [`PastEnd`](crate::Error::PastEnd) for an offset behind the end of its document, and
    /// [`InvalidArgument`](crate::Error::InvalidArgument) for a dropped document. In mode
    /// `in_batch` also [`InvalidArgument`](crate::Error::InvalidArgument) for a document that is
    /// dropped or replaced and has other edits. Nothing is changed then.
    pub fn apply(&mut self, batch: &EditBatch) -> Result<Range<u64>> {
        let first_added = self.num_docs();
        let plan = plan(self, batch.mode, batch.edits.iter().map(Item::Edit))?;
        self.make_all(&plan.steps, plan.num_docs);
        Ok(first_added..self.num_docs())
    }

    /// Makes the edits of a mixed batch, all or none, and answers its reads. Each read sees the
    /// edits before it.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and those of the reads. Nothing is changed then.
    pub fn run(&mut self, mode: EditMode, operations: &[Operation]) -> Result<Vec<Answer>> {
        let plan = plan(self, mode, operations.iter().map(Item::Operation))?;
        // A read may still fail for lack of memory. Then the edits before it must not be visible.
        let mut next = self.clone();
        let mut answers = Vec::with_capacity(operations.len());
        for step in &plan.steps {
            match step {
                Step::Read(read) => answers.push(next.answer(read)?),
                Step::Edited => answers.push(Answer::Edited),
                edit => {
                    next.make(edit);
                    if let Step::Add { .. } = edit {
                        answers.push(Answer::Added { doc_id: next.num_docs() - 1 });
                    }
                }
            }
        }
        *self = next;
        Ok(answers)
    }

    fn answer(&self, read: &Operation) -> Result<Answer> {
        Ok(match read {
            Operation::Extract { doc_id, offset_bytes, len_bytes } => {
                Answer::Text(self.extract(*doc_id, *offset_bytes, *len_bytes)?)
            }
            Operation::Search { doc_id, word } => Answer::Offsets(self.search(*doc_id, word)?),
            Operation::Count { doc_id, word } => Answer::Count(self.count(*doc_id, word)?),
            Operation::Edit(_) => Answer::Edited,
        })
    }
}
