//! `count(DISTINCT column)` of a GSST column on a device: the optimizer rule, and the plan node.
//!
//! ```text
//! TadocDistinctCountExec: column=c, device=gpu: …   blocks ─▶ device ─▶ text ─▶ table of rows ─▶ one number
//!   AggregateExec count                             the plan for the cores, which is executed
//!     AggregateExec GROUP BY c                        - if the place of the count is the cores,
//!       DataSourceExec, file_type=gsst                - if a device that is not demanded fails,
//!                                                     - if a file has another column under this name
//! ```
//!
//! The text never comes to the host, and one table on one device takes the rows of all row groups, files and
//! partitions. Rows are compared by their bytes (`kernels/gsst_distinct.cu`), so both plans give the same number.
//!
//! The rule knows the plan that DataFusion makes of `count(DISTINCT c)` alone: a count of groups, the groups, and
//! the scan, which reads one column without a condition or a limit. Other statements, and sessions whose plans may
//! travel to other processes, keep their plan. All text with new rows stays in the memory of the device until the
//! end. If it does not fit, the device fails.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::array::{Int64Array, RecordBatch};
use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::config::ConfigOptions;
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan};
use futures::TryStreamExt;
use gsst::parquet::device::DistinctCounter;

use super::file_scan::{Counters, DeviceUse, FileScan, device_error};
use super::source::GsstSource;
use crate::errors::task_error;
use crate::options::Device;
use crate::plan_methods::{file_scan, passing_methods};

/// Nodes between an aggregate and its input that only move rows to other partitions.
const MOVING_NODES: [&str; 4] = ["RepartitionExec", "CoalescePartitionsExec", "CoalesceBatchesExec", "CooperativeExec"];

/// Optimizer rule that puts [`DistinctCountExec`] above counts of the different rows of a GSST column.
#[derive(Debug, Default)]
pub(crate) struct CountDistinctOnDevice;

impl PhysicalOptimizerRule for CountDistinctOnDevice {
    fn optimize(&self, plan: Arc<dyn ExecutionPlan>, _config: &ConfigOptions) -> Result<Arc<dyn ExecutionPlan>> {
        let counted = |node: Arc<dyn ExecutionPlan>| {
            Ok(match DistinctCountExec::over(&node) {
                Some(exec) => Transformed::yes(Arc::new(exec) as _),
                None => Transformed::no(node),
            })
        };
        plan.transform_up(counted).data()
    }

    fn name(&self) -> &str {
        "tadoc_count_distinct_on_device"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// Plan node with the number of different rows of a GSST column that are not null. See the module's description.
#[derive(Clone)]
pub(crate) struct DistinctCountExec {
    /// The plan for the cores.
    input: Arc<dyn ExecutionPlan>,
    scan: FileScanConfig,
    source: GsstSource,
    column: String,
}

impl fmt::Debug for DistinctCountExec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistinctCountExec").field("column", &self.column).finish_non_exhaustive()
    }
}

impl DistinctCountExec {
    /// Builds the node over `count` if that counts the different rows of a GSST column, and there may be a device.
    fn over(count: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let groups = counted_groups(count)?;
        let scan = file_scan(grouped_scan(groups)?)?;
        let source = scan.file_source().downcast_ref::<GsstSource>()?;
        let settings = source.settings();
        if settings.may_travel || settings.options.device == Device::Cpu || settings.devices.problem().is_some() {
            return None;
        }
        if source.filter().is_some() || scan.limit.is_some() {
            return None;
        }
        let [projected] = source.projection()?.as_ref() else { return None };
        let column = projected.expr.downcast_ref::<Column>()?;
        let is_text = source.facts_on(column.index()).text_len_bytes.is_some();
        is_text.then(|| Self {
            input: Arc::clone(count),
            scan: scan.clone(),
            source: source.clone().with_own_metrics(),
            column: column.name().to_owned(),
        })
    }

    /// Counts on the device. Returns `None` if a file has no GSST column under this name.
    async fn count(&self, context: &TaskContext) -> Result<Option<i64>> {
        let Some(partitions) = self.file_scans(context).await? else { return Ok(None) };
        let settings = self.source.settings();
        let Some(columns) = settings.devices.columns() else { return Ok(None) };
        let device = DeviceUse {
            columns: Arc::clone(columns),
            partition: 0,
            max_bytes: settings.options.gpu_memory_bytes,
            is_demanded: settings.options.device == Device::Gpu,
        };
        let opening = SpawnedTask::spawn_blocking(move || device.scanner()?.distinct());
        let counter = opening.join().await.map_err(task_error)?;
        let counter = counter.map_err(|error| device_error(error, |error| error))?;
        let mut adding = JoinSet::new();
        for scans in partitions {
            let counter = Arc::clone(&counter);
            adding.spawn(add_all(scans, counter));
        }
        while let Some(added) = adding.join_next().await {
            added.map_err(task_error)??;
        }
        Ok(Some(i64::try_from(counter.num_rows()).unwrap_or(i64::MAX)))
    }

    /// Returns the scans of all files with the indexes of their columns, by partition. `None` if a file has no GSST
    /// column under this name.
    async fn file_scans(&self, context: &TaskContext) -> Result<Option<Vec<Vec<(FileScan, usize)>>>> {
        let store = context.runtime_env().object_store(&self.scan.object_store_url)?;
        let mut partitions = Vec::new();
        for (partition, group) in self.scan.file_groups.iter().enumerate() {
            let placement = self.source.placement_of_count()?;
            let opener = self.source.opener(Arc::clone(&store), &self.scan, partition, placement);
            let mut scans = Vec::new();
            for file in group.iter() {
                let scan = opener.clone().plan(file.clone()).await?;
                let Some(column_idx) = scan.only_column() else { return Ok(None) };
                scans.push((scan, column_idx));
            }
            partitions.push(scans);
        }
        Ok(Some(partitions))
    }
}

/// Adds the rows of some files, one after the other.
async fn add_all(scans: Vec<(FileScan, usize)>, counter: Arc<dyn DistinctCounter>) -> Result<()> {
    for (scan, column_idx) in scans {
        scan.add_rows(column_idx, &counter).await?;
    }
    Ok(())
}

impl DisplayAs for DistinctCountExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (head, separator) = match format {
            DisplayFormatType::TreeRender => ("", "\n"),
            _ => ("TadocDistinctCountExec: ", ", "),
        };
        write!(f, "{head}column={}{separator}", self.column)?;
        match self.source.placement_of_count() {
            Ok(placement) => write!(f, "device={placement}"),
            Err(error) => write!(f, "device=none: {}", error.strip_backtrace()),
        }
    }
}

impl ExecutionPlan for DistinctCountExec {
    passing_methods!("TadocDistinctCountExec", |node, input| Ok(Self { input, ..node.clone() }));

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.source.metrics().clone_inner())
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        if !self.source.placement_of_count()?.is_on_device() {
            return self.input.execute(partition, context);
        }
        let node = self.clone();
        let rows = async move {
            let is_demanded = node.source.settings().options.device == Device::Gpu;
            match node.count(&context).await {
                Ok(Some(count)) => one_number(&node, count),
                Ok(None) => node.input.execute(partition, context),
                Err(error) if is_demanded => Err(error),
                Err(error) => {
                    tracing::warn!(column = %node.column, %error, "counting different rows on the CPU");
                    Counters::new(node.source.metrics(), partition).device_fallbacks.add(1);
                    node.input.execute(partition, context)
                }
            }
        };
        let rows = futures::stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// Returns the rows of `node` with `count` as its only value.
fn one_number(node: &DistinctCountExec, count: i64) -> Result<SendableRecordBatchStream> {
    let schema = node.schema();
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(Int64Array::from(vec![count]))])?;
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, futures::stream::once(async { Ok(batch) }))))
}

/// Returns the input of `node`, below nodes that only move rows.
fn below_moves(mut node: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    while MOVING_NODES.contains(&node.name())
        && let [input] = node.children()[..]
    {
        node = input;
    }
    node
}

/// Returns the input of the first stage of the aggregate `node`, if all its stages meet `is_wanted`.
fn input_of_aggregate(
    node: &Arc<dyn ExecutionPlan>,
    is_wanted: impl Fn(&AggregateExec) -> bool,
) -> Option<&Arc<dyn ExecutionPlan>> {
    let last = node.downcast_ref::<AggregateExec>().filter(|last| is_wanted(last))?;
    match last.mode() {
        AggregateMode::Single | AggregateMode::SinglePartitioned => Some(below_moves(last.input())),
        AggregateMode::Final | AggregateMode::FinalPartitioned => {
            let first = below_moves(last.input()).downcast_ref::<AggregateExec>().filter(|first| is_wanted(first))?;
            (*first.mode() == AggregateMode::Partial).then(|| below_moves(first.input()))
        }
        _ => None,
    }
}

/// Returns the groups whose number is the only row of `count`, if their key is not null.
fn counted_groups(count: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    let counts_one_column = |aggregate: &AggregateExec| {
        let filters = aggregate.filter_expr();
        let [counted] = aggregate.aggr_expr() else { return false };
        let is_of_column = matches!(&counted.expressions()[..], [expr] if expr.is::<Column>());
        let is_plain_count = counted.fun().name() == "count" && !counted.is_distinct() && is_of_column;
        is_plain_count && aggregate.group_expr().is_true_no_grouping() && filters.iter().all(Option::is_none)
    };
    input_of_aggregate(count, counts_one_column)
}

/// Returns the scan whose only column is the key of `groups`, which has no other columns.
fn grouped_scan(groups: &Arc<dyn ExecutionPlan>) -> Option<&Arc<dyn ExecutionPlan>> {
    let has_one_key = |aggregate: &AggregateExec| {
        let group_by = aggregate.group_expr();
        let is_column = matches!(group_by.expr(), [(expr, _)] if expr.is::<Column>());
        is_column && group_by.is_single() && aggregate.aggr_expr().is_empty() && aggregate.limit_options().is_none()
    };
    input_of_aggregate(groups, has_one_key)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::Mutex;

    use bytes::Bytes;
    use datafusion::arrow::array::AsArray;
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::execution::SessionStateBuilder;
    use datafusion::physical_plan::displayable;
    use datafusion::prelude::{SessionConfig, SessionContext};
    use gsst::Block;
    use gsst::arrow::TextType;
    use gsst::parquet::CodePredicate;
    use gsst::parquet::device::{
        ColumnDevice, ColumnMatcher, ColumnScanner, DeviceError, DeviceFault, DeviceResult, PendingRows, RowMemory,
    };
    use tadoc::accelerator::DeviceState;

    use super::*;
    use crate::placement::DeviceSession;
    use crate::placement::fake::FakeDevices;
    use crate::planning::Spreading;
    use crate::session::TadocSessionStateBuilderExt;

    /// A device that counts different rows on the host, and does nothing else.
    #[derive(Debug, Default)]
    struct Host {
        is_broken: Mutex<bool>,
    }

    #[derive(Debug, Default)]
    struct HostRows(Mutex<HashSet<Vec<u8>>>);

    #[derive(Debug)]
    struct HostScanner;

    fn refused<T>() -> DeviceResult<T> {
        let error = gsst::Error::external("a device of a test", "it does only count");
        Err(DeviceError { fault: DeviceFault::Other, error })
    }

    impl ColumnDevice for Host {
        fn scanner(&self, _: usize, _: u64) -> DeviceResult<Arc<dyn ColumnScanner>> {
            if *self.is_broken.lock().unwrap() { refused() } else { Ok(Arc::new(HostScanner)) }
        }
    }

    impl ColumnScanner for HostScanner {
        fn decode(
            &self,
            _: Vec<Bytes>,
            _: TextType,
            _: Box<dyn RowMemory>,
        ) -> DeviceResult<Box<dyn PendingRows<datafusion::arrow::array::ArrayRef>>> {
            refused()
        }

        fn matcher(&self, _: &[&CodePredicate]) -> DeviceResult<Box<dyn ColumnMatcher>> {
            refused()
        }

        fn distinct(&self) -> DeviceResult<Arc<dyn DistinctCounter>> {
            Ok(Arc::<HostRows>::default())
        }
    }

    impl DistinctCounter for HostRows {
        fn add(&self, blocks: Vec<Bytes>, _: TextType, _: &dyn RowMemory) -> DeviceResult<()> {
            for block in blocks {
                let block = Block::open(block)?;
                let rows = block.decode_all();
                let bounds = rows.offsets.windows(2).enumerate().filter(|(row, _)| !block.is_null(*row));
                let texts = bounds.map(|(_, bound)| rows.text[bound[0] as usize..bound[1] as usize].to_vec());
                self.0.lock().unwrap().extend(texts);
            }
            Ok(())
        }

        fn num_rows(&self) -> u64 {
            self.0.lock().unwrap().len() as u64
        }
    }

    /// Returns a session with the device `host`, whose plans stay here unless `may_travel`.
    fn session(host: &Arc<Host>, num_partitions: usize, may_travel: bool) -> SessionContext {
        let devices = DeviceSession::with_devices(FakeDevices::new(DeviceState::Open), Arc::clone(host) as _);
        let mut config = SessionConfig::new().with_target_partitions(num_partitions);
        config.options_mut().optimizer.repartition_file_min_size = 1;
        config.set_extension(Arc::new(devices));
        if may_travel {
            config.set_extension(Arc::new(Spreading { num_workers: 0 }));
        }
        let builder = SessionStateBuilder::new().with_config(config).with_default_features();
        SessionContext::new_with_state(builder.with_tadoc().build())
    }

    async fn run(context: &SessionContext, sql: &str) -> Result<Vec<RecordBatch>> {
        context.sql(sql).await?.collect().await
    }

    async fn plan(context: &SessionContext, sql: &str) -> String {
        let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
        displayable(plan.as_ref()).indent(false).to_string()
    }

    async fn number(context: &SessionContext, sql: &str) -> i64 {
        let rows = run(context, sql).await.unwrap();
        rows[0].column(0).as_primitive::<Int64Type>().value(0)
    }

    /// Writes files with a column `c` of texts that come in several files and row groups, with null rows and empty
    /// texts, and an ordinary column `n`.
    async fn write_files(context: &SessionContext, folder: &str) {
        for file in 0..3 {
            let first = file * 500;
            let text = "CASE value % 7 WHEN 0 THEN NULL WHEN 1 THEN '' ELSE 'text ' || (value % 1170) END";
            let rows = format!("SELECT {text} AS c, value AS n FROM range({first}, {})", first + 2000);
            let options = "OPTIONS (gsst_columns 'c', gsst_row_group_rows '700')";
            run(context, &format!("COPY ({rows}) TO '{folder}/{file}.parquet' STORED AS GSST {options}"))
                .await
                .unwrap();
        }
        run(context, &format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{folder}/'")).await.unwrap();
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
            // A demanded device that fails is an error, as in a scan.
            *host.is_broken.lock().unwrap() = true;
            let error = run(&context, COUNT).await.unwrap_err();
            assert!(error.to_string().contains("it does only count"), "{error}");
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
            "SELECT count(DISTINCT c) FROM t WHERE c LIKE '%1%'",
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
