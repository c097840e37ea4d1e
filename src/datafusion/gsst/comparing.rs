//! Different rows of a GSST column, collected on a device for a node that asks about them.
//!
//! ```text
//! blocks ─▶ device ─▶ text (of rows that meet the filter) ─▶ table of rows ─▶ the answer of the node
//! ```
//!
//! The text never comes to the host, and one table on one device takes the rows of all row groups, files and
//! partitions. Rows are compared by their bytes (`kernels/gsst_distinct.cu`).
//!
//! A node keeps the plan for the cores, which is executed
//!
//! - if the place of the count is the cores,
//! - if a device that is not demanded fails,
//! - if a file has another column under this name, or conditions that a device cannot test.
//!
//! The scan reads one column, without a limit and with conditions on the codes of this column only. Sessions whose
//! plans may travel to other processes keep their plans. All text with new rows stays in the memory of the device until
//! the end. If it does not fit, the device fails.

use std::fmt;
use std::sync::Arc;

use datafusion::common::runtime::{JoinSet, SpawnedTask};
use datafusion::datasource::physical_plan::{FileScanConfig, FileSource};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::DisplayFormatType;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use futures::TryStreamExt;
use gsst::parquet::device::DistinctCounter;

use super::conditions::are_on_codes_of;
use super::file_scan::{Counters, DeviceUse, FileScan, device_error};
use super::source::GsstSource;
use crate::errors::task_error;
use crate::options::Device;
use crate::placement::Placement;
use crate::plan_methods::file_scan;

/// Nodes between an aggregate and its input that only move rows to other partitions.
const MOVING_NODES: [&str; 4] = ["RepartitionExec", "CoalescePartitionsExec", "CoalesceBatchesExec", "CooperativeExec"];

/// A GSST column whose rows a device may compare.
#[derive(Clone)]
pub(super) struct ComparedColumn {
    scan: FileScanConfig,
    source: GsstSource,
    name: String,
}

/// Rows of a column on a device.
pub(super) struct ComparedRows {
    pub(super) counter: Arc<dyn DistinctCounter>,
    /// Rows that are null. None of them meets a filter.
    pub(super) num_nulls: u64,
}

impl fmt::Debug for ComparedColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ComparedColumn").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ComparedColumn {
    /// Returns the column that `node` scans, if that is all it does, and there may be a device.
    pub(super) fn scanned_by(node: &Arc<dyn ExecutionPlan>) -> Option<Self> {
        let scan = file_scan(node)?;
        let source = scan.file_source().downcast_ref::<GsstSource>()?;
        let settings = source.settings();
        if settings.may_travel || settings.options.device == Device::Cpu || settings.devices.problem().is_some() {
            return None;
        }
        let [projected] = source.projection()?.as_ref() else { return None };
        let column = projected.expr.downcast_ref::<Column>()?;
        let is_text = source.facts_on(column.index()).text_len_bytes.is_some();
        let is_tested = source.filter().is_none_or(|filter| are_on_codes_of(column.index(), &filter));
        (is_text && is_tested && scan.limit.is_none()).then(|| Self {
            scan: scan.clone(),
            source: source.clone().with_own_metrics(),
            name: column.name().to_owned(),
        })
    }

    /// Returns the place where the rows are compared, at the time of the call.
    fn placement(&self) -> Result<Placement> {
        self.source.placement_of_comparison()
    }

    /// Returns the metrics of the scan for the device.
    pub(super) fn metrics(&self) -> MetricsSet {
        self.source.metrics().clone_inner()
    }

    /// Writes the column, what `more` says, and the place.
    pub(super) fn describe(
        &self,
        name: &str,
        more: &str,
        format: DisplayFormatType,
        f: &mut fmt::Formatter<'_>,
    ) -> fmt::Result {
        let (head, separator) = match format {
            DisplayFormatType::TreeRender => (String::new(), "\n"),
            _ => (format!("{name}: "), ", "),
        };
        write!(f, "{head}column={}{separator}", self.name)?;
        if !more.is_empty() {
            write!(f, "{more}{separator}")?;
        }
        match self.placement() {
            Ok(placement) => write!(f, "device={placement}"),
            Err(error) => write!(f, "device=none: {}", error.strip_backtrace()),
        }
    }

    /// Returns the rows of the plan that `answer` makes of the rows on the device, with or without counts of them.
    /// Executes `cores` if the rows are not compared on a device, or if `answer` returns none.
    pub(super) fn execute(
        &self,
        cores: &Arc<dyn ExecutionPlan>,
        has_counts: bool,
        answer: impl FnOnce(&ComparedRows) -> Result<Option<Arc<dyn ExecutionPlan>>> + Send + 'static,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        if !self.placement()?.is_on_device() {
            return cores.execute(0, context);
        }
        let (column, cores) = (self.clone(), Arc::clone(cores));
        let schema = cores.schema();
        let rows = async move {
            match column.answer(&context, has_counts, answer).await {
                Ok(plan) => plan.unwrap_or(cores).execute(0, context),
                Err(error) if column.is_device_demanded() => Err(error),
                Err(error) => {
                    tracing::warn!(column = %column.name, %error, "comparing rows on the CPU");
                    Counters::new(column.source.metrics(), 0).device_fallbacks.add(1);
                    cores.execute(0, context)
                }
            }
        };
        let rows = futures::stream::once(rows).try_flatten();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
    }

    fn is_device_demanded(&self) -> bool {
        self.source.settings().options.device == Device::Gpu
    }

    async fn answer(
        &self,
        context: &TaskContext,
        has_counts: bool,
        answer: impl FnOnce(&ComparedRows) -> Result<Option<Arc<dyn ExecutionPlan>>> + Send + 'static,
    ) -> Result<Option<Arc<dyn ExecutionPlan>>> {
        let Some(rows) = self.compare(context, has_counts).await? else { return Ok(None) };
        SpawnedTask::spawn_blocking(move || answer(&rows)).join().await.map_err(task_error)?
    }

    /// Compares all rows on the device. Returns `None` if a file has no GSST column under this name, or conditions that
    /// are not on its codes.
    async fn compare(&self, context: &TaskContext, has_counts: bool) -> Result<Option<ComparedRows>> {
        let Some(partitions) = self.file_scans(context).await? else { return Ok(None) };
        let settings = self.source.settings();
        let Some(columns) = settings.devices.columns() else { return Ok(None) };
        let device = DeviceUse {
            columns: Arc::clone(columns),
            partition: 0,
            max_bytes: settings.options.gpu_memory_bytes,
            is_demanded: self.is_device_demanded(),
        };
        let opening = SpawnedTask::spawn_blocking(move || device.scanner()?.distinct(has_counts));
        let counter = opening.join().await.map_err(task_error)?;
        let counter = counter.map_err(|error| device_error(error, |error| error))?;
        let mut adding = JoinSet::new();
        for scans in partitions {
            let counter = Arc::clone(&counter);
            adding.spawn(add_all(scans, counter));
        }
        let mut num_absent = 0;
        while let Some(added) = adding.join_next().await {
            num_absent += added.map_err(task_error)??;
        }
        let num_nulls = counter.num_nulls() + num_absent;
        Ok(Some(ComparedRows { counter, num_nulls }))
    }

    /// Returns the scans of all files with the indexes of their columns, by partition.
    async fn file_scans(&self, context: &TaskContext) -> Result<Option<Vec<Vec<(FileScan, usize)>>>> {
        let store = context.runtime_env().object_store(&self.scan.object_store_url)?;
        let mut partitions = Vec::new();
        for (partition, group) in self.scan.file_groups.iter().enumerate() {
            let placement = self.placement()?;
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

/// Adds the rows of some files, one after the other. Returns the number of null rows that are in no block.
async fn add_all(scans: Vec<(FileScan, usize)>, counter: Arc<dyn DistinctCounter>) -> Result<u64> {
    let mut num_absent = 0;
    for (scan, column_idx) in scans {
        num_absent += scan.add_rows(column_idx, &counter).await?;
    }
    Ok(num_absent)
}

/// Returns the input of `node`, below nodes that only move rows.
pub(super) fn below_moves(mut node: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    while MOVING_NODES.contains(&node.name())
        && let [input] = node.children()[..]
    {
        node = input;
    }
    node
}

/// Returns the input of the first stage of the aggregate `node`, if all its stages meet `is_wanted`.
pub(super) fn input_of_aggregate(
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

/// Returns true if the groups of `aggregate` are the values of one column.
pub(super) fn has_one_key(aggregate: &AggregateExec) -> bool {
    let group_by = aggregate.group_expr();
    let is_column = matches!(group_by.expr(), [(expr, _)] if expr.is::<Column>());
    is_column && group_by.is_single() && aggregate.limit_options().is_none()
}
