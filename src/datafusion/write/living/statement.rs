//! Statements that need the exact set of rows: `DELETE`, `UPDATE`, `TRUNCATE`, and edits of texts.
//!
//! ```text
//! Dml(Delete, d, Filter(Scan d)) ─ analyzer ─▶ Dml(Delete, Target { query: doc_ids of Filter }, …)
//!                                                        └─ physical planner ─▶ ChangeExec(query)
//! ```
//!
//! DataFusion passes a table only the filters that it still finds in the optimized plan. Conditions that became a join
//! (`IN (SELECT …)`), an empty relation (`WHERE false`) or a limit are lost, and the table would take the remaining
//! filters, or no filter, as "all rows". So this module takes the whole query before any optimization and runs it as an
//! ordinary query.
//!
//! The same step gives all tables and functions of a plan one common [`Reading`]: one location has one store and one
//! latest version. A plan is analyzed each time it is planned, so a statement that runs again reads the latest
//! versions. Tables of this crate inside tables of other crates are not visible here: they look up versions themselves.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{internal_err, plan_datafusion_err};
use datafusion::config::ConfigOptions;
use datafusion::datasource::DefaultTableSource;
use datafusion::error::Result;
use datafusion::execution::SessionState;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::{
    DmlStatement, Expr, LogicalPlan, LogicalPlanBuilder, TableScan, TableSource, TableType, WriteOp,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_plan::ExecutionPlan;

use crate::corpora::living::Reading;
use crate::functions::CorpusFunction;
use crate::options::TadocOptions;
use crate::planning::table::TadocTable;
use crate::write::building::no_text;
use crate::write::living::changes::{ChangeExec, Deletion, Operation, Replacement, TextEdits, column};
use crate::write::living::tables::LivingTable;
use tadoc::edits::EditMode;

/// Analyzer rule that lets a statement read one version of each living corpus, and that keeps the
/// query of a statement that changes a corpus.
#[derive(Debug, Default)]
pub(crate) struct LivingStatements;

impl AnalyzerRule for LivingStatements {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        let plan = read_together(plan)?;
        let mode = TadocOptions::from_config(config).edit_mode;
        let rewrite = |node| match node {
            LogicalPlan::Dml(statement) => keep_query(statement, mode),
            other => Ok(Transformed::no(other)),
        };
        plan.transform_down(rewrite).map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "statement on a corpus"
    }
}

fn keep_query(statement: DmlStatement, mode: EditMode) -> Result<Transformed<LogicalPlan>> {
    let source = &statement.target;
    let name = &statement.table_name;
    let changed: (Arc<TadocTable>, Arc<dyn Operation>, LogicalPlan) = match &statement.op {
        WriteOp::Insert(InsertOp::Append) => match edited_documents(source) {
            Some(documents) => {
                let documents_source = Arc::new(DefaultTableSource::new(Arc::clone(&documents) as _));
                let all = LogicalPlanBuilder::scan(name.clone(), documents_source, None)?.build()?;
                let edits = TextEdits { mode, documents: all };
                (documents, Arc::new(edits), statement.input.as_ref().clone())
            }
            None => {
                if tadoc_table(source).is_some() {
                    check_values(&statement.input)?;
                }
                return Ok(Transformed::no(LogicalPlan::Dml(statement)));
            }
        },
        op => match (op, tadoc_table(source)) {
            (WriteOp::Delete, Some(table)) => (table, Arc::new(Deletion), doc_ids(statement.input.as_ref().clone())?),
            (WriteOp::Truncate, Some(table)) => {
                let all = LogicalPlanBuilder::scan(name.clone(), Arc::clone(source), None)?;
                (table, Arc::new(Deletion), doc_ids(all.build()?)?)
            }
            (WriteOp::Update, Some(table)) => {
                let (replacement, query) = Replacement::from_plan(name, &statement.input)?;
                (table, Arc::new(replacement), query)
            }
            _ => return Ok(Transformed::no(LogicalPlan::Dml(statement))),
        },
    };
    let (documents, operation, query) = changed;
    // EXPLAIN shows the query that runs.
    let input = Arc::new(query.clone());
    let target = Target { schema: source.schema(), documents, operation, query };
    let target = Arc::new(DefaultTableSource::new(Arc::new(target)));
    Ok(Transformed::yes(LogicalPlan::Dml(DmlStatement { target, input, ..statement })))
}

/// Refuses a NULL text in the `VALUES` below `input`. DataFusion would report it with a column name
/// of its own.
fn check_values(input: &LogicalPlan) -> Result<()> {
    let LogicalPlan::Projection(projection) = input else { return Ok(()) };
    let LogicalPlan::Values(values) = projection.input.as_ref() else { return Ok(()) };
    for (value_idx, column) in values.schema.fields().iter().enumerate() {
        let is_of_value = |(expr, field): (&Expr, &FieldRef)| {
            let is_text = field.name() == "text" || field.name() == "content";
            is_text && expr.column_refs().iter().any(|found| found.name() == column.name())
        };
        let num_nulls = values.values.iter().filter(|row| is_null(&row[value_idx])).count();
        let is_text = projection.expr.iter().zip(projection.schema.fields()).any(is_of_value);
        if is_text && num_nulls > 0 && !column.is_nullable() {
            return Err(no_text(num_nulls));
        }
    }
    Ok(())
}

fn is_null(mut expr: &Expr) -> bool {
    while let Expr::Cast(cast) = expr {
        expr = &cast.expr;
    }
    matches!(expr, Expr::Literal(value, _) if value.is_null())
}

/// Returns the table behind `source` if it is `STORED AS TADOC`.
fn tadoc_table(source: &Arc<dyn TableSource>) -> Option<Arc<TadocTable>> {
    let source = source.downcast_ref::<DefaultTableSource>()?;
    let provider: Arc<dyn Any + Send + Sync> = Arc::clone(&source.table_provider) as _;
    provider.downcast().ok()
}

/// Returns the table of the documents if the table behind `source` is the table of their edits.
fn edited_documents(source: &Arc<dyn TableSource>) -> Option<Arc<TadocTable>> {
    let source = source.downcast_ref::<DefaultTableSource>()?;
    source.table_provider.downcast_ref::<LivingTable>()?.edited_documents().cloned()
}

/// Builds the query for the ids of the rows of `input`.
fn doc_ids(input: LogicalPlan) -> Result<LogicalPlan> {
    let doc_id = column(&input, "doc_id")?;
    LogicalPlanBuilder::from(input).project([doc_id])?.build()
}

/// Replacement for the table in the plan of one statement.
#[derive(Debug)]
struct Target {
    schema: SchemaRef,
    documents: Arc<TadocTable>,
    operation: Arc<dyn Operation>,
    query: LogicalPlan,
}

impl Target {
    async fn plan(&self, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        let location = self.documents.location();
        let changeable = self.documents.changeable(session).await?;
        let state = session.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
            plan_datafusion_err!("{location}: only a session of this process can change it; run the statement there")
        })?;
        let operation = Arc::clone(&self.operation);
        let query = self.query.clone();
        let state = state.clone();
        let location = location.to_string();
        Ok(Arc::new(ChangeExec::new(operation, query, state, location, changeable)))
    }
}

#[async_trait]
impl TableProvider for Target {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        _session: &dyn Session,
        _projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        internal_err!("the target of a statement is not read")
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        _input: Arc<dyn ExecutionPlan>,
        _operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.plan(session).await
    }

    async fn delete_from(&self, session: &dyn Session, _filters: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
        self.plan(session).await
    }

    async fn update(
        &self,
        session: &dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.plan(session).await
    }

    async fn truncate(&self, session: &dyn Session) -> Result<Arc<dyn ExecutionPlan>> {
        self.plan(session).await
    }
}

/// Gives all tables and functions of `plan` one new, common [`Reading`].
pub(super) fn read_together(plan: LogicalPlan) -> Result<LogicalPlan> {
    let reading = Arc::new(Reading::default());
    let with_reading = |node| match node {
        LogicalPlan::TableScan(scan) => Ok(match source_in(&scan.source, &reading) {
            Some(source) => Transformed::yes(LogicalPlan::TableScan(TableScan { source, ..scan })),
            None => Transformed::no(LogicalPlan::TableScan(scan)),
        }),
        node if calls_corpus(&node)? => node.map_expressions(|expr| expr.transform(|expr| Ok(call_in(expr, &reading)))),
        node => Ok(Transformed::no(node)),
    };
    plan.transform_down_with_subqueries(with_reading).data()
}

/// Returns the table behind `source` with `reading`; `None` if it is not a table of this crate.
fn source_in(source: &Arc<dyn TableSource>, reading: &Arc<Reading>) -> Option<Arc<dyn TableSource>> {
    let table = &source.downcast_ref::<DefaultTableSource>()?.table_provider;
    let provider: Arc<dyn datafusion::catalog::TableProvider> =
        match (table.downcast_ref::<TadocTable>(), table.downcast_ref::<LivingTable>()) {
            (Some(table), _) => Arc::new(table.clone().with_reading(Some(reading))),
            (_, Some(table)) => Arc::new(table.with_reading(reading)),
            _ => return None,
        };
    Some(Arc::new(DefaultTableSource::new(provider)))
}

fn corpus_function(expr: &Expr) -> Option<&CorpusFunction> {
    match expr {
        Expr::ScalarFunction(call) => call.func.inner().downcast_ref(),
        _ => None,
    }
}

fn calls_corpus(node: &LogicalPlan) -> Result<bool> {
    let mut calls = false;
    node.apply_expressions(|expr| {
        calls |= expr.exists(|expr| Ok(corpus_function(expr).is_some()))?;
        Ok(if calls { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    Ok(calls)
}

fn call_in(expr: Expr, reading: &Arc<Reading>) -> Transformed<Expr> {
    match (corpus_function(&expr).map(|function| function.with_reading(reading)), expr) {
        (Some(func), Expr::ScalarFunction(ScalarFunction { args, .. })) => {
            Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args }))
        }
        (_, expr) => Transformed::no(expr),
    }
}
