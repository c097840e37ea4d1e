//! From the crate's errors to DataFusion's.
//!
//! What a host branches on keeps its meaning: limits become `ResourcesExhausted`, a caller's
//! mistake becomes `Execution`, and everything about bytes stays our own typed error inside
//! `External`, where `downcast_ref::<datafusion_tadoc::Error>()` finds it.

use datafusion::error::DataFusionError;

use crate::error::Error;

/// Wraps `error` in the DataFusion variant of the same meaning.
pub(crate) fn datafusion_error(error: Error) -> DataFusionError {
    match error {
        Error::Capacity { .. } => DataFusionError::ResourcesExhausted(error.to_string()),
        Error::InvalidArgument { .. }
        | Error::OutOfRange { .. }
        | Error::InBatch { .. }
        | Error::Cancelled => DataFusionError::Execution(error.to_string()),
        other => DataFusionError::External(Box::new(other)),
    }
}

/// An error of a task of our own that was aborted or broke.
pub(crate) fn task_error(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    datafusion_error(Error::external("background task", error))
}
