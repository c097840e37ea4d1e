//! `INSERT INTO "d$edits" (doc_id, pos, text) …`: changes inside documents.
//!
//! | pos | len_bytes | text | edit |
//! | --- | --- | --- | --- |
//! | p | NULL | t | inserts t before byte p |
//! | NULL | NULL | t | appends t |
//! | p | n | NULL | deletes n bytes from byte p on |
//!
//! All rows form one batch, in their order. `tadoc.edit_mode` says which text their offsets refer
//! to. Every document and offset is checked against the version that the commit is based on. The
//! check reads only lengths of documents, and only ids if all edits prepend or append text.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{Array, Int64Array, RecordBatch};
use datafusion::common::cast::{as_int64_array, as_string_view_array};
use datafusion::common::{exec_datafusion_err, exec_err};
use datafusion::error::Result;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, lit};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;

use crate::write::living::write::{Operation, column};
use tadoc::edits::{Edit, EditMode};
use tadoc_store::CommitKind;

/// Maximum number of documents that a filter lists. For more documents the filter gives the range
/// of ids.
const MAX_LISTED: usize = 256;
/// Columns that are read-only.
const FOR_READING: [&str; 5] = ["version", "place", "mode", "kind", "path"];

/// Operation that turns its rows into edits of texts.
#[derive(Debug)]
pub(super) struct TextEdits {
    pub(super) mode: EditMode,
    /// Query for all documents of the corpus.
    pub(super) documents: LogicalPlan,
}

#[async_trait]
impl Operation for TextEdits {
    fn name(&self) -> &'static str {
        "edit"
    }

    fn kind(&self) -> CommitKind {
        CommitKind::Edit
    }

    fn mode(&self) -> EditMode {
        self.mode
    }

    fn is_ordered(&self) -> bool {
        true
    }

    fn read(&self, rows: &RecordBatch, edits: &mut Vec<Edit>) -> Result<()> {
        let column = |name: &str| rows.column_by_name(name).ok_or_else(|| exec_datafusion_err!("no column {name}"));
        for name in FOR_READING {
            if column(name)?.logical_null_count() < rows.num_rows() {
                return exec_err!(
                    "INSERT: column {name} of edits is for reading; write INSERT INTO \"d$edits\" \
                     (doc_id, pos, text) SELECT doc_id, pos, text …"
                );
            }
        }
        let doc_ids = Numbers::from_column(rows, "doc_id")?;
        let (places, lens) = (Numbers::from_column(rows, "pos")?, Numbers::from_column(rows, "len_bytes")?);
        let texts = as_string_view_array(column("text")?)?;
        for row in 0..rows.num_rows() {
            let text = texts.is_valid(row).then(|| texts.value(row).as_bytes().to_vec());
            let (doc_id, offset, len) = (doc_ids.at(row)?, places.at(row)?, lens.at(row)?);
            let Some(doc_id) = doc_id else {
                return exec_err!("edit {}: doc_id is NULL, expected a document", edits.len());
            };
            edits.push(match (offset, len, text) {
                (Some(offset_bytes), None, Some(text)) => Edit::InsertText { doc_id, offset_bytes, text },
                (None, None, Some(text)) => Edit::AppendText { doc_id, text },
                (Some(offset_bytes), Some(len_bytes), None) => Edit::DeleteText { doc_id, offset_bytes, len_bytes },
                (offset, len, text) => {
                    return exec_err!(
                        "edit {}: got pos {}, len_bytes {}, text {}; expected text to put in at pos \
                         (NULL: at the end), or len_bytes to take out at pos",
                        edits.len(),
                        shown(offset),
                        shown(len),
                        if text.is_some() { "given" } else { "NULL" }
                    );
                }
            });
        }
        Ok(())
    }

    async fn check(&self, session: &SessionState, edits: &mut Vec<Edit>, context: &Arc<TaskContext>) -> Result<()> {
        let lens = self.lens(session, edits, context).await?;
        Lengths { before: &lens, now: lens.clone(), mode: self.mode }.check(edits)
    }
}

impl TextEdits {
    /// Returns the lengths in bytes of the existing documents that `edits` name. The lengths are 0
    /// if no edit depends on them.
    async fn lens(
        &self,
        session: &SessionState,
        edits: &[Edit],
        context: &Arc<TaskContext>,
    ) -> Result<HashMap<u64, u64>> {
        let named: BTreeSet<u64> = edits.iter().filter_map(Edit::doc_id).collect();
        let (Some(&first), Some(&last)) = (named.first(), named.last()) else {
            return Ok(HashMap::new());
        };
        let doc_id = column(&self.documents, "doc_id")?;
        let is_named = if named.len() <= MAX_LISTED {
            doc_id.clone().in_list(named.iter().map(|&id| lit(id as i64)).collect(), false)
        } else {
            doc_id.clone().between(lit(first as i64), lit(last as i64))
        };
        let len = if edits.iter().any(depends_on_length) { column(&self.documents, "bytes")? } else { lit(0i64) };
        let query =
            LogicalPlanBuilder::from(self.documents.clone()).filter(is_named)?.project([doc_id, len])?.build()?;
        let plan = session.create_physical_plan(&query).await?;
        let mut rows = execute_stream(plan, Arc::clone(context))?;
        let mut lens = HashMap::with_capacity(named.len());
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            let pairs = as_int64_array(batch.column(0))?.values().iter();
            let pairs = pairs.zip(as_int64_array(batch.column(1))?.values());
            let pairs = pairs.map(|(&doc_id, &len)| (doc_id as u64, len as u64));
            lens.extend(pairs.filter(|(doc_id, _)| named.contains(doc_id)));
        }
        Ok(lens)
    }
}

/// Returns true if `edit` may fail because a document is too short.
fn depends_on_length(edit: &Edit) -> bool {
    match edit {
        Edit::InsertText { offset_bytes, .. } => *offset_bytes > 0,
        Edit::AppendText { .. } => false,
        _ => true,
    }
}

/// Lengths of documents, in bytes, while edits are checked.
struct Lengths<'a> {
    before: &'a HashMap<u64, u64>,
    now: HashMap<u64, u64>,
    mode: EditMode,
}

impl Lengths<'_> {
    fn check(mut self, edits: &[Edit]) -> Result<()> {
        for (number, edit) in edits.iter().enumerate() {
            let doc_id = edit.doc_id().unwrap_or_default();
            let Some(now) = self.now.get_mut(&doc_id) else {
                return exec_err!("edit {number}: there is no document {doc_id}");
            };
            let len = match self.mode {
                EditMode::InSequence => *now,
                EditMode::InBatch => self.before[&doc_id],
            };
            let (end, added, removed) = match edit {
                Edit::InsertText { offset_bytes, text, .. } => (*offset_bytes, text.len(), 0),
                Edit::AppendText { text, .. } => (len, text.len(), 0),
                Edit::DeleteText { offset_bytes, len_bytes, .. } => {
                    (offset_bytes.saturating_add(*len_bytes), 0, *len_bytes)
                }
                _ => (0, 0, 0),
            };
            if end > len {
                return exec_err!(
                    "edit {number}: byte {end} lies behind the end of document {doc_id}, which has \
                     {len} bytes {}",
                    match self.mode {
                        EditMode::InSequence => "at this place of the batch",
                        EditMode::InBatch => "before the batch",
                    }
                );
            }
            if self.mode == EditMode::InSequence {
                *now = len - removed + added as u64;
            }
        }
        Ok(())
    }
}

fn shown(number: Option<u64>) -> String {
    number.map_or("NULL".into(), |number| number.to_string())
}

/// A column of numbers that are non-negative or NULL.
struct Numbers<'a> {
    name: &'static str,
    values: &'a Int64Array,
}

impl<'a> Numbers<'a> {
    fn from_column(rows: &'a RecordBatch, name: &'static str) -> Result<Self> {
        let column = rows.column_by_name(name);
        let column = column.ok_or_else(|| exec_datafusion_err!("no column {name}"))?;
        Ok(Self { name, values: as_int64_array(column)? })
    }

    fn at(&self, row: usize) -> Result<Option<u64>> {
        let Self { name, values } = self;
        match values.is_valid(row).then(|| values.value(row)) {
            Some(value) => match u64::try_from(value) {
                Ok(value) => Ok(Some(value)),
                Err(_) => exec_err!("{name}: got {value}, expected 0 or more"),
            },
            None => Ok(None),
        }
    }
}
