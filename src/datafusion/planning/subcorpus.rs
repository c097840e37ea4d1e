//! Sub-corpora: a call about the documents that meet a condition.
//!
//! ```text
//! word_count('novels.tadoc', where => 'author = ''Balzac'' AND year < 1850')
//!
//! condition ─ typed by the columns of the documents ─▶ scan of documents ─▶ their ids ─▶ the same corpus without the others
//! ```
//!
//! The condition is any of SQL on the columns of documents: those that users added, `path`, `words`, `text`, and
//! `corpus` where there are several files. It is looked at when the call is scanned, because only then the columns are
//! known. The scan of documents decides what is read for it, as for `WHERE`. Answers are those of a corpus that has
//! only these documents, under their ids in the whole one.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::{Int64Type, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::TreeNode;
use datafusion::common::{DFSchema, plan_datafusion_err, plan_err};
use datafusion::datasource::provider_as_source;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableProviderFilterPushDown, TableType, col};
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::tokenizer::Tokenizer;
use futures::StreamExt;

use crate::corpora::Source;
use crate::corpora::columns::with_file_names;
use crate::corpora::glob::is_glob;
use crate::corpora::living::ranges_of;
use crate::depth::check_statement_depth;
use crate::errors::shown;
use crate::options::TadocOptions;
use crate::planning::table::TadocTable;
use crate::precedence::mend_expr;

/// Name of the relation of the documents, for messages.
const DOCUMENTS: &str = "documents";

impl TadocTable {
    /// Returns `source`, or the part of it that meets the table's condition.
    ///
    /// # Errors
    /// A plan error if the condition is none on columns of documents; the errors of reading them.
    pub(super) async fn narrowed(
        &self,
        session: &dyn Session,
        options: &TadocOptions,
        source: Source,
    ) -> Result<Source> {
        let Some(condition) = &self.condition else { return Ok(source) };
        let about = |error: DataFusionError| error.context(format!("where: {}", shown(&condition.text)));
        let runtime = session.runtime_env();
        let fields = self.cache.columns_in(runtime, &source).await?;
        let has_several = source.corpora().len() > 1 || is_glob(&self.location);
        let fields = if source.living().is_none() && has_several { with_file_names(fields) } else { fields };
        let documents = Opened {
            table: TadocTable::new(
                (condition.documents)(fields.clone()),
                self.location.clone(),
                Arc::clone(&self.cache),
            )
            .with_definition(self.options.clone(), None, fields),
            options: options.clone(),
            source: source.clone(),
        };
        let ids = documents.ids(session, &condition.text).await.map_err(about)?;
        self.cache.narrowed(runtime, source, &condition.text, ranges_of(&ids))
    }
}

/// Documents of a source that was opened, so that their ids are those of the scan that asks.
#[derive(Debug)]
struct Opened {
    table: TadocTable,
    options: TadocOptions,
    source: Source,
}

impl Opened {
    /// Returns the ids of the documents that meet `condition`, ascending.
    async fn ids(self, session: &dyn Session, condition: &str) -> Result<Vec<u64>> {
        let state = session.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
            plan_datafusion_err!("only a session of this process takes a condition; run the statement there")
        })?;
        let plan = self.plan(state, condition)?;
        let plan = state.create_physical_plan(&plan).await?;
        let consumer = MemoryConsumer::new("TadocCondition");
        let reservation = consumer.register(&session.runtime_env().memory_pool);
        let mut stream = execute_stream(plan, session.task_ctx())?;
        let mut ids: Vec<u64> = Vec::new();
        while let Some(batch) = stream.next().await.transpose()? {
            reservation.try_grow(8 * batch.num_rows())?;
            ids.extend(batch.column(0).as_primitive::<Int64Type>().values().iter().map(|id| id.unsigned_abs()));
        }
        ids.sort_unstable();
        Ok(ids)
    }

    fn plan(self, state: &SessionState, condition: &str) -> Result<LogicalPlan> {
        check_size(condition, &self.options)?;
        let schema = DFSchema::try_from_qualified_schema(DOCUMENTS, &self.schema())?;
        let mut parsed = state.sql_to_expr_with_alias(condition, &state.config_options().sql_parser.dialect)?;
        mend_expr(&mut parsed.expr);
        let expr = state.create_logical_expr_from_sql_expr(parsed, &schema)?;
        check(&expr)?;
        let source = provider_as_source(Arc::new(self));
        LogicalPlanBuilder::scan(DOCUMENTS, source, None)?.filter(expr)?.project([col("doc_id")])?.build()
    }
}

/// Refuses a condition that is longer than a query or deeper than a statement may be.
fn check_size(condition: &str, options: &TadocOptions) -> Result<()> {
    if condition.len() as u64 > options.max_query_bytes {
        return plan_err!("a condition of {} bytes is longer than tadoc.max_query_bytes", condition.len());
    }
    let tokens = Tokenizer::new(&GenericDialect, condition).tokenize();
    let tokens = tokens.map_err(|error| plan_datafusion_err!("{error}"))?;
    check_statement_depth(tokens, options.max_statement_depth)
}

/// Refuses what is no condition on the columns of one document, or has another value each time.
fn check(expr: &Expr) -> Result<()> {
    let is_foreign = expr.exists(|expr| {
        Ok(matches!(
            expr,
            Expr::ScalarSubquery(_)
                | Expr::InSubquery(_)
                | Expr::Exists(_)
                | Expr::SetComparison(_)
                | Expr::AggregateFunction(_)
                | Expr::WindowFunction(_)
                | Expr::Unnest(_)
                | Expr::Placeholder(_)
        ))
    })?;
    if is_foreign {
        return plan_err!("expected a condition on the columns of a document, without queries and aggregates");
    }
    if expr.is_volatile() {
        return plan_err!("expected a condition that has the same value each time, got a function such as random()");
    }
    Ok(())
}

#[async_trait]
impl TableProvider for Opened {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let opened = (self.options.clone(), self.source.clone());
        self.table.scan_of(session, opened, projection, filters, limit).await
    }
}
