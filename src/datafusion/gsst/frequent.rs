//! The most frequent rows of a GSST column, counted on a device: the plan node.
//!
//! ```text
//! SELECT c, count(*) AS n FROM t GROUP BY c ORDER BY n DESC LIMIT 10
//!
//! TadocFrequentRowsExec: column=c, rows=10, device=gpu: …
//!   SortExec TopK(fetch=10), n DESC                 the plan for the cores (`comparing` says when it is executed)
//!     ProjectionExec c, count(*) AS n
//!       AggregateExec GROUP BY c, count(*)     ◀──  groups from the device take the place of this node:
//!         DataSourceExec, file_type=gsst            the 10 most frequent rows, and some more
//! ```
//!
//! The device counts all rows, and sends those back that may be among the first ones. The sort and what lies between it
//! and the groups work on these few groups, so ties and other columns come out as on the cores. The group of null rows
//! always comes back.
//!
//! The rule knows a sort with a limit, whose first key is a count of all rows of the groups, descending; projections
//! below it; and groups of one column with this count alone. With a second key all rows that are as frequent as the
//! last one come back. If these are more than 262,144, or have more than 256 MiB of text, the cores do the work.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, Int64Array, RecordBatch, new_null_array};
use datafusion::arrow::compute::concat;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::{Column, Literal};
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::sorts::sort::SortExec;
use datafusion::physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use gsst::arrow::TextType;
use gsst::parquet::device::FrequentTexts;

use super::comparing::{ComparedColumn, ComparedRows, below_moves, has_one_key, input_of_aggregate};
use super::file_scan::device_error;
use crate::plan_methods::passing_methods;

/// Place of the count in the rows of the groups, behind their key.
const COUNT_IDX: usize = 1;

/// Plan node with the most frequent rows of a GSST column. See the module's description.
#[derive(Debug, Clone)]
pub(crate) struct FrequentRowsExec {
    /// The plan for the cores.
    input: Arc<dyn ExecutionPlan>,
    column: ComparedColumn,
    text_type: TextType,
    num_rows: usize,
    with_ties: bool,
}

impl FrequentRowsExec {
    /// Builds the node over `top` if that sorts the groups of a GSST column by their counts, and there may be a device.
    pub(super) fn over(top: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let sort = sort_of_all(top)?;
        let num_rows = sort.fetch()?;
        let first = sort.expr().first();
        let count_idx = first.expr.downcast_ref::<Column>()?.index();
        let groups = groups_below(sort.input(), count_idx).filter(|_| first.options.descending)?;
        let scan = input_of_aggregate(groups, counts_rows_by_key)?;
        let key_type = groups.schema().field(0).data_type().clone();
        Some(Self {
            input: Arc::clone(top),
            column: ComparedColumn::scanned_by(scan)?,
            text_type: TextType::ALL.into_iter().map(TextType::as_view).find(|one| one.data_type() == key_type)?,
            num_rows,
            with_ties: sort.expr().len() > 1,
        })
    }
}

impl DisplayAs for FrequentRowsExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.column.describe(self.name(), &format!("rows={}", self.num_rows), format, f)
    }
}

impl ExecutionPlan for FrequentRowsExec {
    passing_methods!("TadocFrequentRowsExec", |node, input| Ok(Self { input, ..node.clone() }));

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.column.metrics())
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let node = self.clone();
        let answer = move |rows: &ComparedRows| {
            let found = rows.counter.most_frequent(node.num_rows, node.with_ties, node.text_type);
            let found = found.map_err(|error| device_error(error, |error| error))?;
            found.map(|found| with_groups(&node.input, &found, rows.num_nulls)).transpose()
        };
        self.column.execute(&self.input, true, answer, context)
    }
}

/// Returns the sort that `top` is, or whose partitions it merges, if `top` has one partition.
fn sort_of_all(top: &Arc<dyn ExecutionPlan>) -> Option<&SortExec> {
    let Some(merge) = top.downcast_ref::<SortPreservingMergeExec>() else {
        return top.downcast_ref::<SortExec>().filter(|sort| !sort.preserve_partitioning());
    };
    let mut node = merge.input();
    while let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        node = projection.input();
    }
    node.downcast_ref()
}

/// Returns the groups that `node` projects, if its column `count_idx` is their count.
fn groups_below(node: &Arc<dyn ExecutionPlan>, mut count_idx: usize) -> Option<&Arc<dyn ExecutionPlan>> {
    let mut node = below_moves(node);
    while let Some(projection) = node.downcast_ref::<ProjectionExec>() {
        count_idx = projection.expr().get(count_idx)?.expr.downcast_ref::<Column>()?.index();
        node = below_moves(projection.input());
    }
    (node.is::<AggregateExec>() && count_idx == COUNT_IDX).then_some(node)
}

/// Returns true if `aggregate` counts all rows by the values of one column, and does nothing else.
fn counts_rows_by_key(aggregate: &AggregateExec) -> bool {
    let filters = aggregate.filter_expr();
    let [counted] = aggregate.aggr_expr() else { return false };
    let is_constant = |expr: &Literal| !expr.value().is_null();
    let is_of_rows = matches!(&counted.expressions()[..], [expr] if expr.downcast_ref().is_some_and(is_constant));
    let is_plain_count = counted.fun().name() == "count" && !counted.is_distinct() && is_of_rows;
    is_plain_count && has_one_key(aggregate) && filters.iter().all(Option::is_none)
}

/// Returns `plan` with the groups that the device has found in place of its own.
fn with_groups(plan: &Arc<dyn ExecutionPlan>, found: &FrequentTexts, num_nulls: u64) -> Result<Arc<dyn ExecutionPlan>> {
    if plan.is::<AggregateExec>() {
        let schema = plan.schema();
        let batch = groups(Arc::clone(&schema), found, num_nulls)?;
        return Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None)?);
    }
    let inputs = plan.children().into_iter().map(|input| with_groups(input, found, num_nulls));
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    Arc::clone(plan).replace_children(inputs, options)
}

/// Returns the groups of the rows that were found, and that of null rows.
fn groups(schema: SchemaRef, found: &FrequentTexts, num_nulls: u64) -> Result<RecordBatch> {
    let mut counts = found.counts.clone();
    let mut texts: ArrayRef = Arc::clone(&found.texts);
    if num_nulls > 0 {
        counts.push(num_nulls);
        texts = concat(&[&texts, &new_null_array(texts.data_type(), 1)])?;
    }
    let counts = counts.into_iter().map(|count| i64::try_from(count).unwrap_or(i64::MAX));
    Ok(RecordBatch::try_new(schema, vec![texts, Arc::new(Int64Array::from_iter_values(counts))])?)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::prelude::SessionContext;

    use super::super::comparing_host::{Host, plan, run, session, write_files};
    use super::*;

    async fn rows(context: &SessionContext, device: &str, sql: &str) -> String {
        run(context, &format!("SET tadoc.device = '{device}'")).await.unwrap();
        let rows = run(context, sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        pretty_format_batches(&rows).unwrap().to_string()
    }

    const TOP: &str = "SELECT c, count(*) AS n FROM t GROUP BY c ORDER BY n DESC, c LIMIT 10";

    /// Statements with one order only.
    const STATEMENTS: [&str; 9] = [
        TOP,
        "SELECT c, count(*) FROM t GROUP BY c ORDER BY count(*) DESC, c DESC NULLS LAST LIMIT 3 OFFSET 2",
        "SELECT c FROM t GROUP BY c ORDER BY count(*) DESC, c LIMIT 4",
        "SELECT n + 1 AS more, upper(c) AS u FROM (SELECT c, count(1) AS n FROM t GROUP BY c) ORDER BY n DESC, c LIMIT 5",
        "SELECT c, count(*) AS n FROM t WHERE c LIKE '%1%' GROUP BY c ORDER BY n DESC, c LIMIT 20",
        "SELECT c, count(*) AS n FROM t WHERE c <> '' AND c NOT LIKE '%7' GROUP BY c ORDER BY n DESC, c LIMIT 20",
        "SELECT c, count(*) AS n FROM t WHERE c = 'nowhere' GROUP BY c ORDER BY n DESC, c LIMIT 20",
        "SELECT n FROM (SELECT c, count(*) AS n FROM t GROUP BY c ORDER BY n DESC LIMIT 70)",
        "SELECT sum(n) FROM (SELECT c, count(*) AS n FROM t GROUP BY c ORDER BY n DESC, c LIMIT 5000)",
    ];

    #[tokio::test]
    async fn the_device_has_the_groups_of_the_cores() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().display().to_string();
        for num_partitions in [1, 2, 5] {
            let host = Arc::<Host>::default();
            let context = session(&host, num_partitions, false);
            write_files(&context, &folder).await;
            for sql in STATEMENTS {
                let expected = rows(&context, "cpu", sql).await;
                assert_eq!(rows(&context, "gpu", sql).await, expected, "{sql}");
                let shown = plan(&context, sql).await;
                assert!(shown.contains("TadocFrequentRowsExec: column=c, rows="), "{sql}\n{shown}");
                assert!(shown.contains("DataSourceExec"), "{shown}");
            }
            *host.is_broken.lock().unwrap() = true;
            let error = run(&context, TOP).await.unwrap_err();
            assert!(error.to_string().contains("it does only compare"), "{error}");
        }
    }

    #[tokio::test]
    async fn other_statements_keep_their_plan() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().display().to_string();
        let context = session(&Arc::default(), 2, false);
        write_files(&context, &folder).await;
        run(&context, "SET tadoc.device = 'gpu'").await.unwrap();
        for sql in [
            "SELECT c, count(*) AS n FROM t GROUP BY c",
            "SELECT c, count(*) AS n FROM t GROUP BY c ORDER BY n DESC",
            "SELECT c, count(*) AS n FROM t GROUP BY c ORDER BY n LIMIT 10",
            "SELECT c, count(*) AS n FROM t GROUP BY c ORDER BY c, n DESC LIMIT 10",
            "SELECT c, count(*) AS n FROM t GROUP BY c ORDER BY n % 10 DESC LIMIT 10",
            "SELECT c, count(c) AS n FROM t GROUP BY c ORDER BY n DESC LIMIT 10",
            "SELECT c, count(DISTINCT n) AS n FROM t GROUP BY c ORDER BY n DESC LIMIT 10",
            "SELECT c, count(*) FILTER (WHERE n > 10) AS n FROM t GROUP BY c ORDER BY n DESC LIMIT 10",
            "SELECT c, count(*) AS n, max(n) FROM t GROUP BY c ORDER BY 2 DESC LIMIT 10",
            "SELECT c, count(*) AS m FROM t WHERE n > 100 GROUP BY c ORDER BY m DESC LIMIT 10",
            "SELECT c, count(*) AS n FROM t GROUP BY c HAVING count(*) > 2 ORDER BY n DESC LIMIT 10",
            "SELECT upper(c), count(*) AS n FROM t GROUP BY 1 ORDER BY n DESC LIMIT 10",
            "SELECT c, n, count(*) AS m FROM t GROUP BY c, n ORDER BY m DESC LIMIT 10",
            "SELECT n, count(*) AS m FROM t GROUP BY n ORDER BY m DESC LIMIT 10",
            "SELECT c, count(*) AS n FROM (SELECT c FROM t LIMIT 50) GROUP BY c ORDER BY n DESC LIMIT 10",
        ] {
            let shown = plan(&context, sql).await;
            assert!(!shown.contains("TadocFrequentRowsExec"), "{sql}\n{shown}");
        }
        // With auto, little text stays on the cores, and the plan says so.
        let expected = rows(&context, "cpu", TOP).await;
        assert_eq!(rows(&context, "auto", TOP).await, expected);
        let shown = plan(&context, TOP).await;
        assert!(shown.contains("TadocFrequentRowsExec: column=c, rows=10, device=cpu"), "{shown}");
    }
}
