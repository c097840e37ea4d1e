//! What stands for devices that build grammars where the feature `cuda` is off: the cores build all.

use std::sync::Arc;

use datafusion::common::plan_datafusion_err;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::ExecutionPlanMetricsSet;

use crate::gsst::device;
use crate::options::{Device, TadocOptions};
use tadoc::build::BuilderKind;
use tadoc::grammar::RoundsEngine;

/// Nothing.
///
/// # Errors
/// A plan error that names the way out where a device is demanded.
pub(crate) fn rounds_engine(
    options: &TadocOptions,
    _: &ExecutionPlanMetricsSet,
) -> Result<Option<Arc<dyn RoundsEngine>>> {
    let is_demanded = options.device == Device::Gpu && options.builder == BuilderKind::Rounds;
    match device::problem().filter(|_| is_demanded) {
        Some(problem) => {
            Err(plan_datafusion_err!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'"))
        }
        None => Ok(None),
    }
}
