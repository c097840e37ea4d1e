//! Scans of files in a finished plan, and other sources in their place.
//!
//! ```text
//! DataSourceExec ─▶ FileScanConfig ─▶ FileSource          the last one is replaced
//! ```

use std::sync::Arc;

use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder, FileSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::error::Result;
use datafusion::physical_plan::ExecutionPlan;

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
