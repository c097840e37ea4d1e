//! `UPDATE d SET text = …, author = … WHERE …`: documents get a new text and new values of user
//! columns, under the same id and path.
//!
//! ```text
//! rows of the query   doc_id | text | author | number
//!                        │      │      └────────┴──▶ one table for all rows, and its row numbers
//!                        └──────┴───────────────────▶ the new bytes
//! ```
//!
//! DataFusion writes the statement as a projection of all columns of the table, in their order. A
//! column that is not set is projected unchanged; the others are cast to the types of the table.
//!
//! `DELETE FROM d WHERE …` drops documents. Their ids are never used again.

use async_trait::async_trait;
use bytes::Bytes;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::{as_binary_view_array, as_int64_array};
use datafusion::common::{DFSchema, TableReference, exec_err, internal_err, plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, Projection};

use crate::corpora::columns::{ColumnsWriter, RESERVED};
use crate::write::living::write::{Operation, column};
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

/// Operation that replaces the text of documents by the second column of its rows, if `has_text` is
/// true, and sets user columns from the columns after that.
#[derive(Debug)]
pub(super) struct Replacement {
    has_text: bool,
}

impl Replacement {
    /// Builds the operation, and the query for ids and values, of an `UPDATE` that DataFusion
    /// planned as `input`.
    ///
    /// # Errors
    /// A plan error for columns that cannot be set.
    pub(super) fn from_plan(table: &TableReference, input: &LogicalPlan) -> Result<(Self, LogicalPlan)> {
        let LogicalPlan::Projection(projection) = input else {
            return plan_err!("UPDATE {table}: expected a projection, got {}", input.display());
        };
        let (mut texts, mut values) = (Vec::new(), Vec::new());
        for (name, value) in assignments(projection) {
            match name {
                "text" | "content" => texts.push(value.alias(name)),
                name if RESERVED.contains(&name) => {
                    return Err(not_settable(table, name, &projection.schema));
                }
                name => values.push(value.alias(name)),
            }
        }
        if texts.len() > 1 {
            return plan_err!("UPDATE {table}: text and content are one; set one of them");
        }
        let has_text = !texts.is_empty();
        let query = [vec![column(&projection.input, "doc_id")?], texts, values].concat();
        let query = LogicalPlanBuilder::from(projection.input.as_ref().clone()).project(query)?;
        Ok((Self { has_text }, query.build()?))
    }

    /// Appends an edit of the text for each row of `rows`.
    fn replace_texts(rows: &RecordBatch, contents: &ArrayRef, edits: &mut Vec<Edit>) -> Result<()> {
        let contents = cast(contents, &DataType::BinaryView)?;
        let contents = as_binary_view_array(&contents)?;
        for (row, doc_id) in doc_ids(rows)?.enumerate() {
            let doc_id = doc_id?;
            if contents.is_null(row) {
                return exec_err!(
                    "UPDATE: the new text of document {doc_id} is NULL; write '' for an empty one, \
                     or DELETE it"
                );
            }
            edits.push(Edit::ReplaceDocument { doc_id, content: contents.value(row).to_vec() });
        }
        Ok(())
    }

    /// Appends an edit of user columns for each row of `rows`. The values are in the columns from
    /// `first` on.
    fn set_columns(rows: &RecordBatch, first: usize, edits: &mut Vec<Edit>) -> Result<()> {
        let positions = (first..rows.num_columns()).collect();
        let Some(mut writer) = ColumnsWriter::try_new(&rows.schema(), positions)? else {
            return internal_err!("no column is set");
        };
        writer.write(rows)?;
        let table = Bytes::from(writer.finish()?);
        for (row, doc_id) in doc_ids(rows)?.enumerate() {
            let (doc_id, row, table) = (doc_id?, row as u64, table.clone());
            edits.push(Edit::SetColumns { doc_id, row, table });
        }
        Ok(())
    }
}

/// Returns the columns of `projection` that are not projected unchanged.
fn assignments(projection: &Projection) -> impl Iterator<Item = (&str, Expr)> {
    let columns = projection.expr.iter().zip(projection.schema.fields());
    columns.filter_map(|(expr, field)| {
        let (name, value) = (field.name().as_str(), expr.clone().unalias_nested().data);
        let is_itself = matches!(&value, Expr::Column(own) if own.name == name);
        (!is_itself).then_some((name, value))
    })
}

/// Returns the error for a column `name` that is derived from the corpus. It lists the settable
/// columns among `columns`.
fn not_settable(table: &TableReference, name: &str, columns: &DFSchema) -> DataFusionError {
    let names = columns.fields().iter().map(|field| field.name().as_str());
    let own: Vec<&str> = names.filter(|name| !RESERVED.contains(name)).collect();
    let own = match own.as_slice() {
        [] => "it has no columns of its own".into(),
        own => format!("and its own columns: {}", own.join(", ")),
    };
    plan_datafusion_err!(
        "UPDATE {table}: column {name} cannot be set, text and content can ({own}); to change it \
         DELETE the documents and INSERT them again"
    )
}

#[async_trait]
impl Operation for Replacement {
    fn name(&self) -> &'static str {
        "update"
    }

    fn kind(&self) -> CommitKind {
        CommitKind::Update
    }

    fn read(&self, rows: &RecordBatch, edits: &mut Vec<Edit>) -> Result<()> {
        let first_user = if self.has_text { 2 } else { 1 };
        if self.has_text {
            Self::replace_texts(rows, rows.column(1), edits)?;
        }
        if rows.num_rows() > 0 && rows.num_columns() > first_user {
            Self::set_columns(rows, first_user, edits)?;
        }
        Ok(())
    }
}
