//! Plan nodes and sources of files: the methods that are written once for all of them, and other sources in the place
//! of those of a finished plan.
//!
//! ```text
//! DataSourceExec ─▶ FileScanConfig ─▶ FileSource          the last one is replaced
//! ```
//!
//! DataFusion's traits have no defaults for these methods: a node says which children it has, and refuses others.

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

/// Writes the methods of `ExecutionPlan` that all leaves share. The node has a field `properties`.
#[doc(hidden)]
#[macro_export]
macro_rules! leaf_methods {
    ($name:literal) => {
        fn name(&self) -> &str {
            $name
        }

        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            &self.properties
        }

        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![]
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
            _options: ::datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> ::datafusion::error::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            match children.len() {
                0 => Ok(self),
                more => {
                    ::datafusion::common::internal_err!("{} is a leaf, got {more} children", $name)
                }
            }
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::error::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            use ::datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            self.replace_children(children, options)
        }
    };
}

/// Writes the methods of `ExecutionPlan` that nodes share whose one child is their field `input`, and which
/// have no expressions. `$new` is the node `$node` above another child.
#[doc(hidden)]
#[macro_export]
macro_rules! one_input_methods {
    ($name:literal, |$node:ident, $input:ident| $new:expr) => {
        fn name(&self) -> &str {
            $name
        }

        fn children(&self) -> Vec<&::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            vec![&self.input]
        }

        fn apply_expressions(
            &self,
            _f: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_plan::PhysicalExpr>,
            ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            Ok(::datafusion::common::tree_node::TreeNodeRecursion::Continue)
        }

        fn replace_children(
            self: ::std::sync::Arc<Self>,
            mut children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
            _options: ::datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
        ) -> ::datafusion::error::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            let $node = self.as_ref();
            match (children.pop(), children.len()) {
                (Some($input), 0) => {
                    let new: ::datafusion::error::Result<Self> = $new;
                    Ok(::std::sync::Arc::new(new?))
                }
                (_, more) => {
                    ::datafusion::common::internal_err!("{} has one child, got {more} more", $name)
                }
            }
        }

        fn with_new_children(
            self: ::std::sync::Arc<Self>,
            children: Vec<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>>,
        ) -> ::datafusion::error::Result<::std::sync::Arc<dyn ::datafusion::physical_plan::ExecutionPlan>> {
            use ::datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep);
            self.replace_children(children, options)
        }
    };
}

/// Writes the methods of [`one_input_methods`], and those of a node whose rows are those of its input in the same
/// order and partitions.
macro_rules! passing_methods {
    ($name:literal, |$node:ident, $input:ident| $new:expr) => {
        $crate::plan_methods::one_input_methods!($name, |$node, $input| $new);

        fn properties(&self) -> &::std::sync::Arc<::datafusion::physical_plan::PlanProperties> {
            self.input.properties()
        }

        fn maintains_input_order(&self) -> Vec<bool> {
            vec![true]
        }
    };
}

/// Writes the methods of `ExecutionPlan` that nodes share whose rows are those of their field `input`.
#[doc(hidden)]
#[macro_export]
macro_rules! same_rows_methods {
    () => {
        fn benefits_from_input_partitioning(&self) -> Vec<bool> {
            vec![false]
        }

        fn child_stats_requests(
            &self,
            partition: Option<usize>,
        ) -> Vec<::datafusion::physical_plan::statistics::ChildStats> {
            vec![::datafusion::physical_plan::statistics::ChildStats::At(partition)]
        }

        fn statistics_from_inputs(
            &self,
            input_stats: &[::std::sync::Arc<::datafusion::common::Statistics>],
            _args: &::datafusion::physical_plan::statistics::StatisticsArgs,
        ) -> ::datafusion::error::Result<::std::sync::Arc<::datafusion::common::Statistics>> {
            Ok(::std::sync::Arc::clone(&input_stats[0]))
        }

        fn supports_limit_pushdown(&self) -> bool {
            true
        }

        fn cardinality_effect(&self) -> ::datafusion::physical_plan::execution_plan::CardinalityEffect {
            ::datafusion::physical_plan::execution_plan::CardinalityEffect::Equal
        }
    };
}

pub use leaf_methods;
pub use one_input_methods;
pub(crate) use passing_methods;
pub use same_rows_methods;

/// Returns the scan of files that `node` is.
pub(crate) fn file_scan(node: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    node.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref()
}

/// Returns `plan` with the sources that `replace` returns in place of those of its scans of files. Scans for which it
/// returns none stay.
pub(crate) fn with_sources(
    plan: Arc<dyn ExecutionPlan>,
    replace: impl Fn(&Arc<dyn FileSource>) -> Result<Option<Arc<dyn FileSource>>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let replaced = |node: Arc<dyn ExecutionPlan>| {
        let (Some(exec), Some(scan)) = (node.downcast_ref::<DataSourceExec>(), file_scan(&node)) else {
            return Ok(Transformed::no(node));
        };
        let Some(source) = replace(scan.file_source())? else { return Ok(Transformed::no(node)) };
        let scan = FileScanConfigBuilder::from(scan.clone()).with_source(source).build();
        Ok(Transformed::yes(Arc::new(exec.clone().with_data_source(Arc::new(scan))) as _))
    };
    plan.transform_up(replaced).data()
}

/// Writes the methods of `FileSource` that pass on what the source in the field `$inner` says.
macro_rules! passing_source_methods {
    ($inner:tt) => {
        fn table_schema(&self) -> &::datafusion::datasource::table_schema::TableSchema {
            self.$inner.table_schema()
        }

        fn projection(&self) -> Option<&::datafusion::physical_expr::projection::ProjectionExprs> {
            self.$inner.projection()
        }

        fn metrics(&self) -> &::datafusion::physical_plan::metrics::ExecutionPlanMetricsSet {
            self.$inner.metrics()
        }

        fn file_type(&self) -> &str {
            self.$inner.file_type()
        }

        fn fmt_extra(
            &self,
            kind: ::datafusion::physical_plan::DisplayFormatType,
            f: &mut ::std::fmt::Formatter<'_>,
        ) -> ::std::fmt::Result {
            self.$inner.fmt_extra(kind, f)
        }

        fn apply_expressions(
            &self,
            f: &mut dyn FnMut(
                &::std::sync::Arc<dyn ::datafusion::physical_plan::PhysicalExpr>,
            ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion>,
        ) -> ::datafusion::error::Result<::datafusion::common::tree_node::TreeNodeRecursion> {
            self.$inner.apply_expressions(f)
        }
    };
}

pub(crate) use passing_source_methods;
