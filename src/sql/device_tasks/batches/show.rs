//! What EXPLAIN says of calls that answer batches: a node above each one that makes calls.
//!
//! ```text
//! TadocBatchesExec: extract_text(c.tadoc), device=gpu                      metrics of its batches
//!   ProjectionExec: expr=[extract_text(c.tadoc, doc, pos, 64) as passage]
//! ```
//!
//! Functions of rows have neither a place in a plan nor metrics. The node has their [`Batches`], shows
//! what is known of them, and hands on the rows as they are: before a statement runs that is the setting,
//! behind `EXPLAIN ANALYZE` where batches were answered and why.

use std::fmt;
use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode, TreeNodeRecursion};
use datafusion::common::{Statistics, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::ScalarFunctionExpr;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion::physical_plan::metrics::MetricsSet;
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, PhysicalExpr, PlanProperties,
};

use super::Batches;
use crate::sql::functions::CorpusFunction;
use crate::sql::options::{Device, TadocOptions};

/// Puts [`TadocBatchesExec`] above what calls functions of rows.
#[derive(Debug, Default)]
pub(in crate::sql) struct ShowBatches;

/// A call of a function of rows.
#[derive(Debug, Clone)]
struct Call {
    /// Its name and its corpus.
    shown: String,
    batches: Arc<Batches>,
}

/// Shows the calls that `input` makes.
#[derive(Debug, Clone)]
struct TadocBatchesExec {
    input: Arc<dyn ExecutionPlan>,
    calls: Vec<Call>,
    device: Device,
}

impl PhysicalOptimizerRule for ShowBatches {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let device = TadocOptions::from_config(config).device;
        let show = |input: Arc<dyn ExecutionPlan>| {
            let calls = calls(input.as_ref())?;
            Ok(match calls.is_empty() {
                true => Transformed::no(input),
                false => Transformed::yes(Arc::new(TadocBatchesExec { input, calls, device }) as _),
            })
        };
        plan.transform_up(show).data()
    }

    fn name(&self) -> &str {
        "tadoc_show_batches"
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The calls in expressions of `plan` itself.
fn calls(plan: &dyn ExecutionPlan) -> Result<Vec<Call>> {
    let mut calls: Vec<Call> = Vec::new();
    let mut note = |expr: &Arc<dyn PhysicalExpr>| {
        let call = ScalarFunctionExpr::try_downcast_func::<CorpusFunction>(expr.as_ref());
        let function = call.and_then(|call| call.fun().inner().downcast_ref::<CorpusFunction>());
        if let Some((shown, batches)) = function.and_then(CorpusFunction::batches)
            && !calls.iter().any(|call| Arc::ptr_eq(&call.batches, &batches))
        {
            calls.push(Call { shown, batches });
        }
        Ok(TreeNodeRecursion::Continue)
    };
    plan.apply_expressions(&mut |expr| expr.apply(&mut note))?;
    Ok(calls)
}

impl TadocBatchesExec {
    fn shown(&self, call: &Call) -> String {
        let place = match (call.batches.to_string(), self.device) {
            (place, _) if !place.is_empty() => place,
            (_, Device::Auto) => "auto: chosen for each batch".to_owned(),
            (_, device) => device.to_string(),
        };
        format!("{}, device={place}", call.shown)
    }
}

impl DisplayAs for TadocBatchesExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let calls: Vec<String> = self.calls.iter().map(|call| self.shown(call)).collect();
        match format {
            DisplayFormatType::Default | DisplayFormatType::Verbose => {
                write!(f, "TadocBatchesExec: {}", calls.join("; "))
            }
            DisplayFormatType::TreeRender => {
                calls.iter().try_for_each(|call| writeln!(f, "{call}"))
            }
        }
    }
}

impl ExecutionPlan for TadocBatchesExec {
    fn name(&self) -> &str {
        "TadocBatchesExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.input.properties()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false]
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match (children.pop(), children.len()) {
            (Some(input), 0) => Ok(Arc::new(Self { input, ..Self::clone(&self) })),
            (_, more) => internal_err!("TadocBatchesExec has one child, got {more} more"),
        }
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }

    fn metrics(&self) -> Option<MetricsSet> {
        let mut all = MetricsSet::new();
        for call in &self.calls {
            call.batches.metrics().iter().for_each(|metric| all.push(Arc::clone(metric)));
        }
        Some(all)
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&input_stats[0]))
    }

    fn supports_limit_pushdown(&self) -> bool {
        true
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }
}
