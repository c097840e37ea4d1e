//! From the crate's errors to DataFusion's.
//!
//! What a host branches on keeps its meaning: limits become `ResourcesExhausted`, a caller's
//! mistake becomes `Execution`, and everything about bytes stays our own typed error inside
//! `External`, where `downcast_ref::<tadoc::Error>()` finds it.

use std::future::{Future, poll_fn};
use std::pin::pin;

use datafusion::error::{DataFusionError, Result};

use super::containment::contain_panics;
use tadoc::error::Error;

/// Wraps `error` in the DataFusion variant of the same meaning; one of DataFusion comes back.
pub(crate) fn datafusion_error(error: Error) -> DataFusionError {
    match error {
        Error::Capacity { .. } => DataFusionError::ResourcesExhausted(error.to_string()),
        Error::InvalidArgument { .. }
        | Error::OutOfRange { .. }
        | Error::InBatch { .. }
        | Error::Cancelled => DataFusionError::Execution(error.to_string()),
        Error::External { what, source } => match source.downcast::<DataFusionError>() {
            Ok(inner) => *inner,
            Err(source) => DataFusionError::External(Box::new(Error::External { what, source })),
        },
        other => DataFusionError::External(Box::new(other)),
    }
}

/// Returns the error of the same meaning, with the same text, for an error of string columns.
pub(crate) fn from_gsst(error: gsst::Error) -> Error {
    match error {
        gsst::Error::Format { file, section, offset, reason } => {
            Error::Format { file, section, offset, reason }
        }
        gsst::Error::Version { file, expected, got } => Error::Version { file, expected, got },
        gsst::Error::Checksum { file, section, offset, expected, got } => {
            Error::Checksum { file, section, offset, expected, got }
        }
        gsst::Error::InvalidArgument { name, got, allowed } => {
            Error::InvalidArgument { name, got, allowed }
        }
        gsst::Error::OutOfRange { what, got, len } => Error::OutOfRange { what, got, len },
        gsst::Error::Capacity { what, requested, limit, knob } => {
            Error::Capacity { what, requested, limit, knob }
        }
        gsst::Error::External { what, source } => Error::External { what, source },
        other => Error::external("string column", other),
    }
}

/// Wraps an error of string columns as [`datafusion_error`] does.
pub(crate) fn gsst_error(error: gsst::Error) -> DataFusionError {
    datafusion_error(from_gsst(error))
}

/// Carries an error of DataFusion through the library; [`datafusion_error`] hands it back.
pub(crate) fn core_error(error: DataFusionError) -> Error {
    Error::external("query", error)
}

/// What `work` ends in, or an error about `what` where a library panics in it.
///
/// # Errors
/// The panic, as [`contain_panics`] tells it.
pub async fn contain_panics_of<T>(what: &str, work: impl Future<Output = T>) -> Result<T> {
    let mut work = pin!(work);
    // Behind a panic it is not polled again.
    let polled = poll_fn(|context| match contain_panics(what, || work.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(error) => std::task::Poll::Ready(Err(datafusion_error(error))),
    });
    polled.await
}

/// An error of a task of our own that was aborted or broke.
pub(crate) fn task_error(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    datafusion_error(Error::external("background task", error))
}
