//! Conversion of the core's errors to DataFusion's.
//!
//! Errors that a host distinguishes keep their meaning. Limits become `ResourcesExhausted`, and
//! mistakes of the caller become `Execution`. Errors about bytes remain typed errors inside
//! `External`, where `downcast_ref::<tadoc::Error>()` finds them.

use std::future::{Future, poll_fn};
use std::pin::pin;

use datafusion::error::{DataFusionError, Result};

use tadoc::containment::contain_panics;
use tadoc::error::Error;

/// Wraps `error` in the DataFusion variant with the same meaning. A wrapped DataFusion error is
/// unwrapped.
pub fn datafusion_error(error: Error) -> DataFusionError {
    match error {
        Error::Capacity { .. } => DataFusionError::ResourcesExhausted(error.to_string()),
        Error::InvalidArgument { .. }
        | Error::OutOfRange { .. }
        | Error::PastEnd { .. }
        | Error::InBatch { .. }
        | Error::Cancelled => DataFusionError::Execution(error.to_string()),
        Error::External { what, source } => match source.downcast::<DataFusionError>() {
            Ok(inner) => *inner,
            Err(source) => DataFusionError::External(Box::new(Error::External { what, source })),
        },
        other => DataFusionError::External(Box::new(other)),
    }
}

/// Converts an error of string columns to the core's error with the same meaning and text.
pub(crate) fn from_gsst(error: gsst::Error) -> Error {
    match error {
        gsst::Error::Format { file, section, offset, reason } => Error::Format { file, section, offset, reason },
        gsst::Error::Version { file, expected, got } => Error::Version { file, expected, got },
        gsst::Error::Checksum { file, section, offset, expected, got } => {
            Error::Checksum { file, section, offset, expected, got }
        }
        gsst::Error::InvalidArgument { name, got, allowed } => Error::InvalidArgument { name, got, allowed },
        gsst::Error::OutOfRange { what, got, len } => Error::OutOfRange { what, got, len },
        gsst::Error::Capacity { what, requested, limit, knob } => Error::Capacity { what, requested, limit, knob },
        gsst::Error::External { what, source } => Error::External { what, source },
        other => Error::external("string column", other),
    }
}

/// Wraps an error of string columns as [`datafusion_error`] does.
pub(crate) fn gsst_error(error: gsst::Error) -> DataFusionError {
    datafusion_error(from_gsst(error))
}

/// Wraps a DataFusion error for passing it through the core; [`datafusion_error`] unwraps it.
pub(crate) fn core_error(error: DataFusionError) -> Error {
    Error::external("query", error)
}

/// Returns the result of `work`, or an error about `what` if a library panics in it.
///
/// # Errors
/// The panic, as an error of [`contain_panics`].
pub async fn contain_panics_of<T>(what: &str, work: impl Future<Output = T>) -> Result<T> {
    let mut work = pin!(work);
    // After a panic the future is not polled again.
    let polled = poll_fn(|context| match contain_panics(what, || work.as_mut().poll(context)) {
        Ok(poll) => poll.map(Ok),
        Err(error) => std::task::Poll::Ready(Err(datafusion_error(error))),
    });
    polled.await
}

/// Returns the error for a background task that was aborted or panicked.
pub(crate) fn task_error(error: impl std::error::Error + Send + Sync + 'static) -> DataFusionError {
    datafusion_error(Error::external("background task", error))
}
