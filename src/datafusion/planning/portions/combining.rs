//! The logical plans that combine rows of portions with DataFusion's own operators, which spill.
//!
//! ```text
//! portions of term_vector     doc_id, word, count ─────────┐
//! portions of inverted_index  word, doc_count ─▶ sum ──────┴ join ─▶ tf * ln(documents / df)
//! ```
//!
//! A function describes in a logical plan how its rows are computed from rows of functions over all
//! portions, its own or others ([`TableFunction::combine`]). The session optimizes and plans it
//! like any query, on all its threads. Each function in the plan reads all portions once.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlanBuilder, TableType, cast, col, lit};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};

use super::exec::DOC_ID;
use super::lists::{JoinedLists, WORD};
use super::{COUNT, Planner, Portions, physical_plan};
use crate::planning::ScanSpec;
use crate::planning::filter::is_claimable;
use crate::planning::function::{PortionRows, TableFunction};

/// Access to the rows of functions over all portions.
pub(super) struct AllPortions<'a> {
    pub(super) planner: &'a Planner<'a>,
    pub(super) portions: &'a Portions,
}

impl PortionRows for AllPortions<'_> {
    fn scan(&self) -> &ScanSpec {
        &self.planner.spec
    }

    fn for_all(&self, function: Arc<dyn TableFunction>, columns: &[&str]) -> Result<LogicalPlanBuilder> {
        self.rows(function, columns, Vec::new())
    }

    fn for_documents(&self, function: Arc<dyn TableFunction>, columns: &[&str]) -> Result<LogicalPlanBuilder> {
        let is_on_ids = |filter: &&Expr| is_claimable(filter, &|column| column == DOC_ID);
        let filters = self.planner.filters.iter().filter(is_on_ids).cloned().collect();
        self.rows(function, columns, filters)
    }
}

impl AllPortions<'_> {
    fn rows(
        &self,
        function: Arc<dyn TableFunction>,
        columns: &[&str],
        filters: Vec<Expr>,
    ) -> Result<LogicalPlanBuilder> {
        let name = function.signature().name;
        let rows = self.planner.for_function(function, columns, filters)?;
        let planned = PlannedRows(rows.behind(self.portions)?);
        LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(planned)), None)
    }
}

/// Adds up the counts of rows that are otherwise equal.
///
/// # Errors
/// None is known.
pub(crate) fn added_up(rows: LogicalPlanBuilder) -> Result<LogicalPlanBuilder> {
    let fields = rows.schema().fields().iter();
    let keys: Vec<Expr> = fields.filter(|field| field.name() != COUNT).map(|field| col(field.name())).collect();
    rows.aggregate(keys, [sum(col(COUNT)).alias(COUNT)])
}

/// Numbers the distinct words of `words`, which has a row for each portion that contains a word.
/// The result has the columns `key`, the word, and `word_id`, its row in `word_count`.
///
/// # Errors
/// None is known.
pub(crate) fn numbered(words: LogicalPlanBuilder) -> Result<LogicalPlanBuilder> {
    let at = row_number().order_by(vec![col("word").sort(true, false)]).build()?.alias("at");
    let word_id = cast(col("at"), DataType::Int64) - lit(1i64);
    words.distinct()?.window([at])?.project([col("word").alias("key"), word_id.alias("word_id")])
}

/// Joins the rows of one word into one, with the documents of all of them.
///
/// # Errors
/// The errors of planning.
pub(super) async fn joined_lists(session: &dyn Session, rows: LogicalPlanBuilder) -> Result<LogicalPlanBuilder> {
    let ordered = rows.sort([col(WORD).sort(true, false)])?.build()?;
    let ordered = physical_plan(session, &ordered).await?;
    let joined: Arc<dyn ExecutionPlan> = Arc::new(JoinedLists::try_new(ordered)?);
    LogicalPlanBuilder::scan("joined", provider_as_source(Arc::new(PlannedRows(joined))), None)
}

/// A table over rows that are planned already.
#[derive(Debug)]
struct PlannedRows(Arc<dyn ExecutionPlan>);

#[async_trait]
impl TableProvider for PlannedRows {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(projection) = projection else { return Ok(Arc::clone(&self.0)) };
        let schema = self.schema();
        let column = |&at: &usize| {
            let name = schema.field(at).name();
            ProjectionExpr { expr: Arc::new(Column::new(name, at)), alias: name.clone() }
        };
        let columns = projection.iter().map(column);
        Ok(Arc::new(ProjectionExec::try_new(columns, Arc::clone(&self.0))?))
    }
}
