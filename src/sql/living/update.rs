//! `UPDATE d SET text = … WHERE …`: documents get other bytes, under the same id and path.
//!
//! DataFusion writes the statement as a projection of all columns of the table, in their order, in
//! which those that are not set stand for themselves.

use async_trait::async_trait;
use datafusion::arrow::array::{Array, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::cast::as_binary_view_array;
use datafusion::common::{TableReference, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder};

use super::delete::doc_ids;
use super::statement::column;
use super::write::Operation;
use crate::edits::Edit;
use crate::living::CommitKind;

/// Gives documents the bytes of its second column; without one it only counts them.
#[derive(Debug)]
pub(super) struct Replacement;

impl Replacement {
    /// The replacement, and the query for ids and bytes, of an `UPDATE` that became `input`.
    ///
    /// # Errors
    /// A plan error for columns that cannot be set.
    pub(super) fn of(table: &TableReference, input: &LogicalPlan) -> Result<(Self, LogicalPlan)> {
        let LogicalPlan::Projection(projection) = input else {
            return plan_err!("UPDATE {table}: expected a projection, got {}", input.display());
        };
        let mut query = vec![column(&projection.input, "doc_id")?];
        for (expr, field) in projection.expr.iter().zip(projection.schema.fields()) {
            let (name, value) = (field.name().as_str(), expr.clone().unalias_nested().data);
            match (name, &value) {
                (_, Expr::Column(own)) if own.name == name => {}
                ("text" | "content", _) if query.len() == 1 => query.push(value),
                ("text" | "content", _) => {
                    return plan_err!("UPDATE {table}: text and content are one; set one of them");
                }
                _ => {
                    return plan_err!(
                        "UPDATE {table}: column {name} cannot be set, text and content can; for \
                         other columns DELETE the documents and INSERT them again"
                    );
                }
            }
        }
        let query = LogicalPlanBuilder::from(projection.input.as_ref().clone()).project(query)?;
        Ok((Self, query.build()?))
    }
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
        let Some(contents) = rows.columns().get(1) else { return Ok(()) };
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
}
