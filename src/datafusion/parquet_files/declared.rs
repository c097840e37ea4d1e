//! Columns of texts in Parquet files that a table declares as decimals: a scan refuses them.
//!
//! ```text
//! CREATE EXTERNAL TABLE t (price DECIMAL(9, 2)) STORED AS PARQUET …
//! x.parquet: price is a text  ─▶  error, before a row is read
//! ```
//!
//! DataFusion would cast the column while it scans, where nothing bounds the length of a text: Arrow's parser of
//! decimals recurses over the digits. A cast in a statement is bounded (`planner/decimal_texts.rs`).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, SchemaRef};
use datafusion::common::plan_err;
use datafusion::datasource::physical_plan::FileScanConfig;
use datafusion::error::Result;
use datafusion::physical_expr_adapter::{
    DefaultPhysicalExprAdapterFactory, PhysicalExprAdapter, PhysicalExprAdapterFactory,
};

use crate::planner::has_type;

/// Returns `scan`, which refuses files whose texts are declared as decimals.
pub(super) fn without_decimal_texts(mut scan: FileScanConfig) -> FileScanConfig {
    let usual = || Arc::new(DefaultPhysicalExprAdapterFactory) as _;
    let adapters = scan.expr_adapter_factory.take().unwrap_or_else(usual);
    scan.expr_adapter_factory = Some(Arc::new(NoDecimalTexts(adapters)));
    scan
}

/// Factory of adapters from the columns of a file to those of its table.
#[derive(Debug)]
struct NoDecimalTexts(Arc<dyn PhysicalExprAdapterFactory>);

impl PhysicalExprAdapterFactory for NoDecimalTexts {
    fn create(
        &self,
        logical_file_schema: SchemaRef,
        physical_file_schema: SchemaRef,
    ) -> Result<Arc<dyn PhysicalExprAdapter>> {
        for declared in logical_file_schema.fields() {
            let Ok(stored) = physical_file_schema.field_with_name(declared.name()) else {
                continue;
            };
            let is_decimal = has_type(declared.data_type(), &DataType::is_decimal);
            if is_decimal && has_type(stored.data_type(), &DataType::is_string) {
                return plan_err!(
                    "column {} is a text in the file and is declared as {}; declare a text, and cast it in statements",
                    declared.name(),
                    declared.data_type()
                );
            }
        }
        self.0.create(logical_file_schema, physical_file_schema)
    }
}
