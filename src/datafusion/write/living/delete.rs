//! `DELETE FROM d WHERE …`: drops documents. Their ids are never used again.

use async_trait::async_trait;
use datafusion::arrow::array::RecordBatch;
use datafusion::common::cast::as_int64_array;
use datafusion::common::exec_err;
use datafusion::error::Result;

use crate::write::living::write::Operation;
use tadoc::edits::Edit;
use tadoc_store::CommitKind;

/// Operation that drops the documents whose ids are in its rows.
#[derive(Debug)]
pub(super) struct Deletion;

#[async_trait]
impl Operation for Deletion {
    fn name(&self) -> &'static str {
        "delete"
    }

    fn kind(&self) -> CommitKind {
        CommitKind::Delete
    }

    fn read(&self, rows: &RecordBatch, edits: &mut Vec<Edit>) -> Result<()> {
        for doc_id in doc_ids(rows)? {
            edits.push(Edit::DropDocument { doc_id: doc_id? });
        }
        Ok(())
    }
}

/// Returns the ids in the first column of `rows`.
pub(super) fn doc_ids(rows: &RecordBatch) -> Result<impl Iterator<Item = Result<u64>>> {
    let ids = as_int64_array(rows.column(0))?;
    Ok(ids.iter().map(|id| match id.map(u64::try_from) {
        Some(Ok(id)) => Ok(id),
        _ => exec_err!("doc_id: got {id:?}, expected the number of a document"),
    }))
}
