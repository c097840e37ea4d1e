//! `count(DISTINCT column)` of a GSST column on a device: the plan node.
//!
//! ```text
//! TadocDistinctCountExec: column=c, device=gpu: …   one number, from the table of rows on the device
//!   AggregateExec count                             the plan for the cores (`comparing` says when it is executed)
//!     AggregateExec GROUP BY c
//!       DataSourceExec, file_type=gsst
//! ```
//!
//! The rule knows the plan that DataFusion makes of `count(DISTINCT c)` alone: a count of groups, the groups, and
//! the scan. Conditions on the codes of the column may be in the scan. Other statements keep their plan.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};

use super::comparing::{ComparedColumn, ComparedRows, has_one_key, input_of_aggregate};
use crate::plan_methods::passing_methods;

/// Plan node with the number of different rows of a GSST column that are not null. See the module's description.
#[derive(Debug, Clone)]
pub(crate) struct DistinctCountExec {
    /// The plan for the cores.
    input: Arc<dyn ExecutionPlan>,
    column: ComparedColumn,
}

impl DistinctCountExec {
    /// Builds the node over `count` if that counts the different rows of a GSST column, and there may be a device.
    pub(super) fn over(count: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let groups = input_of_aggregate(count, counts_one_column)?;
        let scan = input_of_aggregate(groups, |aggregate| has_one_key(aggregate) && aggregate.aggr_expr().is_empty())?;
        Some(Self { input: Arc::clone(count), column: ComparedColumn::scanned_by(scan)? })
    }
}

impl DisplayAs for DistinctCountExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.column.describe(self.name(), "", format, f)
    }
}

impl ExecutionPlan for DistinctCountExec {
    passing_methods!("TadocDistinctCountExec", |node, input| Ok(Self { input, ..node.clone() }));

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.column.metrics())
    }

    fn execute(&self, _partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let schema = self.schema();
        self.column.execute(&self.input, false, |rows| one_number(rows, schema).map(Some), context)
    }
}

/// Returns a plan whose only value is the number of different rows.
fn one_number(rows: &ComparedRows, schema: SchemaRef) -> Result<Arc<dyn ExecutionPlan>> {
    let count = i64::try_from(rows.counter.num_rows()).unwrap_or(i64::MAX);
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![count]))])?;
    Ok(MemorySourceConfig::try_new_exec(&[vec![batch]], schema, None)?)
}

/// Returns true if `aggregate` counts the values of a column that are not null, in all rows.
fn counts_one_column(aggregate: &AggregateExec) -> bool {
    let filters = aggregate.filter_expr();
    let [counted] = aggregate.aggr_expr() else { return false };
    let is_of_column = matches!(&counted.expressions()[..], [expr] if expr.is::<Column>());
    let is_plain_count = counted.fun().name() == "count" && !counted.is_distinct() && is_of_column;
    is_plain_count && aggregate.group_expr().is_true_no_grouping() && filters.iter().all(Option::is_none)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::prelude::SessionContext;

    use super::super::comparing_host::{Host, plan, run, session, write_files};
    use super::*;

    async fn number(context: &SessionContext, sql: &str) -> i64 {
        let rows = run(context, sql).await.unwrap();
        rows[0].column(0).as_primitive::<Int64Type>().value(0)
    }

    const COUNT: &str = "SELECT count(DISTINCT c) FROM t";

    #[tokio::test]
    async fn the_device_has_the_number_of_the_cores() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().display().to_string();
        for num_partitions in [1, 2, 5] {
            let host = Arc::<Host>::default();
            let context = session(&host, num_partitions, false);
            write_files(&context, &folder).await;
            run(&context, "SET tadoc.device = 'cpu'").await.unwrap();
            assert!(!plan(&context, COUNT).await.contains("TadocDistinctCountExec"));
            let expected = number(&context, COUNT).await;
            assert_eq!(expected, number(&context, "SELECT count(c) FROM (SELECT c FROM t GROUP BY c)").await);
            assert!(expected > 100);
            run(&context, "SET tadoc.device = 'gpu'").await.unwrap();
            let shown = plan(&context, COUNT).await;
            assert!(shown.contains("TadocDistinctCountExec: column=c, device=gpu: tadoc.device = gpu"), "{shown}");
            assert!(shown.contains("DataSourceExec"), "{shown}");
            for sql in [COUNT, "SELECT count(c) FROM (SELECT DISTINCT c FROM t)"] {
                assert_eq!(number(&context, sql).await, expected, "{sql}");
            }
            for condition in ["c LIKE '%1%'", "c NOT LIKE '%1%' AND c <> ''", "c IN ('text 9', 'text 900', '', 'no')"] {
                let sql = format!("{COUNT} WHERE {condition}");
                assert!(plan(&context, &sql).await.contains("TadocDistinctCountExec"), "{sql}");
                let by_groups =
                    format!("SELECT count(c) FROM (SELECT c, max(n) FROM t WHERE {condition} AND n >= 0 GROUP BY c)");
                run(&context, "SET tadoc.device = 'cpu'").await.unwrap();
                let expected = number(&context, &by_groups).await;
                run(&context, "SET tadoc.device = 'gpu'").await.unwrap();
                assert_eq!(number(&context, &sql).await, expected, "{sql}");
            }
            // A demanded device that fails is an error, as in a scan.
            *host.is_broken.lock().unwrap() = true;
            let error = run(&context, COUNT).await.unwrap_err();
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
            "SELECT count(DISTINCT n) FROM t",
            "SELECT count(DISTINCT c) FROM t WHERE n > 10",
            "SELECT count(DISTINCT c) FROM t WHERE c LIKE '%1%' AND n > 10",
            "SELECT count(DISTINCT c) FROM t WHERE length(c) > 7",
            "SELECT count(DISTINCT c) FROM t WHERE c LIKE '%1%' OR n > 10",
            "SELECT count(DISTINCT c), count(*) FROM t",
            "SELECT count(DISTINCT upper(c)) FROM t",
            "SELECT count(DISTINCT c) FROM (SELECT c FROM t LIMIT 5)",
            "SELECT n % 2, count(DISTINCT c) FROM t GROUP BY 1",
            "SELECT count(*) FROM (SELECT DISTINCT c FROM t)",
            "SELECT count(c) FROM t",
            "SELECT DISTINCT c FROM t",
            "SELECT max(c) FROM (SELECT DISTINCT c FROM t)",
        ] {
            let shown = plan(&context, sql).await;
            assert!(!shown.contains("TadocDistinctCountExec"), "{sql}\n{shown}");
        }
        // With auto, little text stays on the cores, and the plan says so.
        run(&context, "SET tadoc.device = 'auto'").await.unwrap();
        let shown = plan(&context, COUNT).await;
        assert!(shown.contains("TadocDistinctCountExec: column=c, device=cpu"), "{shown}");
        let expected = number(&context, "SELECT count(c) FROM (SELECT max(c) AS c FROM t GROUP BY c)").await;
        assert_eq!(number(&context, COUNT).await, expected);
        let travelling = session(&Arc::default(), 2, true);
        run(&travelling, "SET tadoc.device = 'gpu'").await.unwrap();
        run(&travelling, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{folder}/'")).await.unwrap();
        assert!(!plan(&travelling, COUNT).await.contains("TadocDistinctCountExec"));
    }
}
