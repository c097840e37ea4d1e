//! The combination of rows of portions with DataFusion's own operators, which spill.
//!
//! ```text
//! portions of sequence_count   sequence, count ─▶ sum(count) for each sequence
//! ```
//!
//! A function describes in a logical plan how its rows are computed from rows of functions over all
//! portions, its own or others ([`TableFunction::combine`]). The session optimizes and plans it
//! like any query, on all its threads. Each function in the plan reads all portions once.
//!
//! One node is ours. It joins the rows of one word into one, with the documents of all portions in order:
//!
//! ```text
//! word    doc_count  doc_ids              word    doc_count  doc_ids
//! apple   2          [9, 12]              apple   5          [0, 3, 4, 9, 12]
//! apple   3          [0, 3, 4]     ──▶    bear    1          [2]
//! bear    1          [2]
//! ```
//!
//! Its input is ordered by word, by a sort that spills, so that only the lists of one word are in memory. O(numbers).

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array, ListArray, RecordBatch, StringViewBuilder};
use datafusion::arrow::buffer::OffsetBuffer;
use datafusion::arrow::compute::SortOptions;
use datafusion::arrow::datatypes::{DataType, Int64Type, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::functions_window::expr_fn::row_number;
use datafusion::logical_expr::{Expr, ExprFunctionExt, LogicalPlanBuilder, TableType, cast, col, lit};
use datafusion::physical_expr::expressions::{Column, col as column};
use datafusion::physical_expr::{EquivalenceProperties, LexOrdering, OrderingRequirements, PhysicalSortExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, Partitioning, PlanProperties,
};
use futures::{StreamExt, future, stream};

use super::exec::{DOC_ID, DOC_IDS};
use super::{COUNT, COUNT_OF_DOCS, Planner, Portions, physical_plan};
use crate::plan_methods::one_input_methods;
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

    fn for_words(&self, function: Arc<dyn TableFunction>, column: &str) -> Result<LogicalPlanBuilder> {
        let columns = [WORD, column];
        let Some(num_parcels) = self.portions.num_parcels else {
            let rows = self.rows(function, &columns, Vec::new())?;
            return rows.aggregate([col(WORD)], [sum(col(column)).alias(column)]);
        };
        let name = function.signature().name;
        let words = self.planner.for_function(function, &columns, Vec::new())?;
        let merged = PlannedRows(words.merged(self.portions, num_parcels)?);
        LogicalPlanBuilder::scan(name, provider_as_source(Arc::new(merged)), None)
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

/// Numbers the rows of `words`, which are distinct. The result has the words and their rows in `word_count`.
///
/// # Errors
/// None is known.
pub(crate) fn numbered(words: LogicalPlanBuilder) -> Result<LogicalPlanBuilder> {
    let at = row_number().order_by(vec![col(WORD).sort(true, false)]).build()?.alias("at");
    let word_id = cast(col("at"), DataType::Int64) - lit(1i64);
    words.window([at])?.project([col(WORD), word_id.alias("word_id")])
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
pub struct PlannedRows(pub Arc<dyn ExecutionPlan>);

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

/// Name of the column by which rows are ordered.
pub(super) const WORD: &str = "word";

/// Plan node that joins the rows of one word. See the module's description.
#[derive(Debug)]
pub struct JoinedLists {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl JoinedLists {
    /// Builds a node over rows of `word`, and of the number of documents and their list if these
    /// columns are there.
    ///
    /// # Errors
    /// An error if there is no column `word`, or if there are other columns.
    pub fn try_new(input: Arc<dyn ExecutionPlan>) -> Result<Self> {
        let schema = input.schema();
        for field in schema.fields() {
            let is_known = match (field.name().as_str(), field.data_type()) {
                (WORD, DataType::Utf8View) | (COUNT_OF_DOCS, DataType::Int64) => true,
                (DOC_IDS, DataType::List(item)) => item.data_type() == &DataType::Int64,
                _ => false,
            };
            if !is_known {
                return internal_err!("TadocJoinedLists has rows of {WORD}, got {field}");
            }
        }
        let word = PhysicalSortExpr::new(column(WORD, &schema)?, by_word());
        let mut equivalence = EquivalenceProperties::new(schema);
        equivalence.add_ordering([word]);
        let properties = PlanProperties::new(
            equivalence,
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(Self { input, properties: Arc::new(properties) })
    }
}

fn by_word() -> SortOptions {
    SortOptions { descending: false, nulls_first: false }
}

impl DisplayAs for JoinedLists {
    fn fmt_as(&self, _format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TadocJoinedLists")
    }
}

impl ExecutionPlan for JoinedLists {
    one_input_methods!("TadocJoinedLists", |_node, input| Self::try_new(input));

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition]
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        let ordering = self.properties.output_ordering().cloned();
        vec![ordering.map(|ordering: LexOrdering| ordering.into())]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if partition > 0 {
            return internal_err!("TadocJoinedLists has no partition {partition}");
        }
        let schema = self.schema();
        let input = self.input.execute(0, context)?;
        // `None` follows the last batch, so that the last word is returned.
        let batches = input.map(|batch| batch.map(Some)).chain(stream::iter([Ok(None)]));
        let mut joining = Joining { schema: Arc::clone(&schema), pending: None };
        let joined = batches.map(move |batch| joining.rows(batch?));
        let some =
            |batch: &Result<RecordBatch>| future::ready(batch.as_ref().map_or(true, |batch| batch.num_rows() > 0));
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, joined.filter(some))))
    }
}

/// State of joining the rows of a stream.
struct Joining {
    schema: SchemaRef,
    /// The last word. More rows of it may come.
    pending: Option<Word>,
}

/// A word and the documents that were read of it so far.
struct Word {
    text: String,
    num_docs: i64,
    /// Lists of ids, one for each portion. Each is ascending, and no two share a document.
    lists: Vec<Vec<i64>>,
}

impl Joining {
    /// Adds the rows of `batch` and returns the words that are complete. `None` means the end of
    /// the input.
    fn rows(&mut self, batch: Option<RecordBatch>) -> Result<RecordBatch> {
        let mut done = Vec::new();
        let Some(batch) = batch else {
            done.extend(self.pending.take());
            return self.batch_of(done);
        };
        let words = batch.column_by_name(WORD).map(|column| column.as_string_view());
        let Some(words) = words else { return internal_err!("rows without words") };
        let counts = batch.column_by_name(COUNT_OF_DOCS).map(|c| c.as_primitive::<Int64Type>());
        let lists = batch.column_by_name(DOC_IDS).map(|column| column.as_list::<i32>());
        for row in 0..batch.num_rows() {
            let text = words.value(row);
            if self.pending.as_ref().is_none_or(|word| word.text != text) {
                let next = Word { text: text.to_owned(), num_docs: 0, lists: Vec::new() };
                done.extend(self.pending.replace(next));
            }
            let Some(word) = &mut self.pending else { continue };
            word.num_docs += counts.map_or(0, |counts| counts.value(row));
            let list = lists.map(|lists| lists.value(row));
            let numbers = list.as_ref().map(|list| list.as_primitive::<Int64Type>());
            word.lists.extend(numbers.map(|numbers| numbers.values().to_vec()));
        }
        self.batch_of(done)
    }

    fn batch_of(&self, mut words: Vec<Word>) -> Result<RecordBatch> {
        words.iter_mut().for_each(|word| word.lists.sort_unstable_by_key(|ids| ids.first().copied()));
        let column = |field: &Arc<datafusion::arrow::datatypes::Field>| -> Result<ArrayRef> {
            match (field.name().as_str(), field.data_type()) {
                (WORD, _) => {
                    let mut texts = StringViewBuilder::with_capacity(words.len());
                    words.iter().for_each(|word| texts.append_value(&word.text));
                    Ok(Arc::new(texts.finish()))
                }
                (DOC_IDS, DataType::List(item)) => {
                    let len = |word: &Word| word.lists.iter().map(Vec::len).sum();
                    let offsets = OffsetBuffer::from_lengths(words.iter().map(len));
                    let ids = words.iter().flat_map(|word| word.lists.iter().flatten().copied());
                    let ids = Arc::new(Int64Array::from_iter_values(ids));
                    Ok(Arc::new(ListArray::try_new(Arc::clone(item), offsets, ids, None)?))
                }
                _ => Ok(Arc::new(Int64Array::from_iter_values(words.iter().map(|word| word.num_docs)))),
            }
        };
        let columns = self.schema.fields().iter().map(column).collect::<Result<_>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}
