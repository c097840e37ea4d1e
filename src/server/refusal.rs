//! Refusals: errors of statements and requests, for Flight SQL and for HTTP.
//!
//! | kind | gRPC | HTTP |
//! | --- | --- | --- |
//! | `Invalid` | INVALID_ARGUMENT | 400 |
//! | `Forbidden` | PERMISSION_DENIED | 403 |
//! | `Exhausted` | RESOURCE_EXHAUSTED | 503 |
//! | `TimedOut`, `Stalled` | DEADLINE_EXCEEDED | 504 |
//! | `Cancelled` | CANCELLED | 499 |
//! | `Broken` | INTERNAL | 500 |

use axum::http::StatusCode;
use datafusion::arrow::error::ArrowError;
use datafusion::error::DataFusionError;
use datafusion_tadoc::safety::{Refusal as Cause, Refused};
use tadoc_session::Failure;
use tonic::{Code, Status};

/// Maximum bytes of a text. gRPC sends it in a header, and clients limit these.
const MAX_TEXT_BYTES: usize = 2000;

/// The kind of a refusal. Metrics count statements by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The statement is at fault.
    Invalid,
    /// The server does not run such statements.
    Forbidden,
    /// Memory or places are exhausted.
    Exhausted,
    /// The time of the statement is over.
    TimedOut,
    /// The client takes no rows.
    Stalled,
    /// The client has cancelled the statement, or left.
    Cancelled,
    /// The server or a corpus is at fault.
    Broken,
}

/// An error that a client gets.
#[derive(Debug, Clone)]
pub struct Refusal {
    /// Its kind.
    pub kind: Kind,
    /// Its text, on one line, without secrets.
    pub text: String,
}

impl Refusal {
    /// Creates a refusal.
    pub fn new(kind: Kind, text: impl Into<String>) -> Self {
        Self { kind, text: Failure::new(text).into_text() }
    }

    /// Returns the status of an answer over HTTP.
    pub fn http_status(&self) -> StatusCode {
        match self.kind {
            Kind::Invalid => StatusCode::BAD_REQUEST,
            Kind::Forbidden => StatusCode::FORBIDDEN,
            Kind::Exhausted => StatusCode::SERVICE_UNAVAILABLE,
            Kind::TimedOut | Kind::Stalled => StatusCode::GATEWAY_TIMEOUT,
            Kind::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
            Kind::Broken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl From<Failure> for Refusal {
    /// Failures come from parsing and from parameters.
    fn from(failure: Failure) -> Self {
        Self { kind: Kind::Invalid, text: failure.into_text() }
    }
}

impl From<DataFusionError> for Refusal {
    fn from(error: DataFusionError) -> Self {
        match Refused::from_error(&error) {
            Some(refused) => Self::new(Kind::Forbidden, text_of(refused)),
            None => Self { kind: kind_of(&error), text: Failure::from(error).into_text() },
        }
    }
}

impl From<ArrowError> for Refusal {
    fn from(error: ArrowError) -> Self {
        Self::from(DataFusionError::from(error))
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let code = match refusal.kind {
            Kind::Invalid => Code::InvalidArgument,
            Kind::Forbidden => Code::PermissionDenied,
            Kind::Exhausted => Code::ResourceExhausted,
            Kind::TimedOut | Kind::Stalled => Code::DeadlineExceeded,
            Kind::Cancelled => Code::Cancelled,
            Kind::Broken => Code::Internal,
        };
        let mut text = refusal.text;
        if text.len() > MAX_TEXT_BYTES {
            text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
            text.push('…');
        }
        Self::new(code, text)
    }
}

/// Returns the text of a refusal, with the options of this command.
fn text_of(refused: &Refused) -> String {
    let way_out = match refused.refusal() {
        Cause::Place | Cause::Redirect => "start it with --allow LOCATION to allow the place",
        Cause::Host => "start it with --allow-private to allow hosts that are not public",
        Cause::Credentials => "credentials and servers come from its environment",
        Cause::Function => "it reads corpora only",
        _ => "it only answers queries",
    };
    format!("the server refuses {}; {way_out}", refused.what())
}

fn kind_of(error: &DataFusionError) -> Kind {
    match error.find_root() {
        DataFusionError::ResourcesExhausted(_) => Kind::Exhausted,
        DataFusionError::SQL(..)
        | DataFusionError::Plan(_)
        | DataFusionError::SchemaError(..)
        | DataFusionError::Configuration(_)
        | DataFusionError::NotImplemented(_)
        | DataFusionError::Execution(_)
        | DataFusionError::ArrowError(..) => Kind::Invalid,
        // Errors of the core: bad arguments are the statement's fault, damaged files are not.
        DataFusionError::External(error) => match error.downcast_ref::<tadoc::Error>() {
            Some(error) if !error.is_damage() => Kind::Invalid,
            _ => Kind::Broken,
        },
        _ => Kind::Broken,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_between_characters() {
        let refusal = Refusal::new(Kind::Invalid, "é".repeat(2000));
        let status = Status::from(refusal);
        assert_eq!(status.code(), Code::InvalidArgument);
        assert!(status.message().ends_with("é…") && status.message().len() <= 2003);
    }

    #[test]
    fn memory_and_statements_are_told_apart() {
        let exhausted = DataFusionError::ResourcesExhausted("x".to_owned());
        assert_eq!(Refusal::from(exhausted.context("y")).kind, Kind::Exhausted);
        let planned = DataFusionError::Plan("there is no table".to_owned());
        assert_eq!(Refusal::from(planned).kind, Kind::Invalid);
        let internal = DataFusionError::Internal("x".to_owned());
        assert_eq!(Refusal::from(internal).kind, Kind::Broken);
    }
}
