//! Errors of the connections to workers, in the words of users: which worker, what it ran, what to do.
//!
//! ```text
//! no connection     worker URL: reason; what to do about it
//! a broken one      worker URL: the connection broke while it ran a part; what to do
//! all others        worker URL: the error of the worker
//! ```
//!
//! The libraries below tell causes by their texts only. A text that is none of these stays as it is.

use std::error::Error;

use datafusion::common::exec_datafusion_err;
use datafusion::error::DataFusionError;
use url::Url;

use datafusion_tadoc::travel::shown;

/// Begin of what is said about a connection that broke. A worker may have said it of another worker.
const BROKE: &str = "the connection broke while";
/// Signs of a connection to a worker that broke.
const SIGNS: [&str; 5] = [
    "transport error",
    "h2 protocol error",
    "error reading a body from connection",
    "keep-alive timed out",
    "operation was canceled",
];
/// Sign of an error of an object store, whose connections are others.
const OF_STORE: &str = "Generic ";

/// Returns the error of a worker at `url` that cannot be reached.
pub(super) fn unreachable(url: &Url, error: &dyn Error) -> DataFusionError {
    let reason = with_causes(error);
    exec_datafusion_err!("worker {url}: {reason}; {}", way_out(&reason))
}

/// Returns what to do about a connection that cannot be made for this `reason`.
fn way_out(reason: &str) -> &'static str {
    let has = |sign: &str| reason.contains(sign);
    if has("CaUsedAsEndEntity") {
        "its certificate is its own authority; give it a certificate that an authority signed, and give \
         --workers-ca the authority (sql/README.md has the commands of openssl)"
    } else if has("UnknownIssuer") || has("BadSignature") {
        "no authority that is trusted here signed its certificate; give --workers-ca the one that did"
    } else if has("NotValidForName") {
        "its certificate is for other names; it needs the name of the URL as subjectAltName"
    } else if has("Expired") {
        "its certificate has expired; look at the clocks of both machines, or make a new one"
    } else {
        "is `tadoc worker` running there?"
    }
}

/// Returns the text of `error`, with those of its causes that say more.
fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    text
}

/// Returns `error` with the URL of the worker that it comes from, which ran `part`. Errors of a
/// connection become text: a pipe that breaks there is none of this process.
pub(super) fn named(url: &Url, part: &str, error: DataFusionError) -> DataFusionError {
    let is_typed = !matches!(
        error.find_root(),
        DataFusionError::External(_)
            | DataFusionError::IoError(_)
            | DataFusionError::ArrowError(..)
            | DataFusionError::ObjectStore(_)
    );
    let text = error.strip_backtrace();
    let is_lost = SIGNS.iter().any(|sign| text.contains(sign));
    if is_lost && !text.contains(BROKE) && !text.contains(OF_STORE) {
        return exec_datafusion_err!(
            "worker {url}: {BROKE} it ran {part} ({}); see whether `tadoc worker` still runs there, or was \
             ended for lack of memory, and run the statement again",
            shown(&text)
        );
    }
    if is_typed { error.context(format!("worker {url}")) } else { exec_datafusion_err!("worker {url}: {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_connections_say_what_ran() {
        let url: Url = "http://one:8816".parse().unwrap();
        let named = |error: DataFusionError| named(&url, "task 2 of stage 1", error).to_string();
        let broken = DataFusionError::External("status: 'Unknown', self: \"h2 protocol error\"".into());
        let text = named(broken);
        assert!(
            text.contains("worker http://one:8816/: the connection broke while it ran task 2 of stage 1 ("),
            "{text}"
        );
        // Another worker has said so: this one is there.
        let again = named(DataFusionError::External(text.into()));
        assert_eq!(again.matches(BROKE).count(), 1, "{again}");
        let store = DataFusionError::External("Generic S3 error: transport error".into());
        assert!(!named(store).contains(BROKE));
        let other = DataFusionError::ResourcesExhausted("no room".to_owned());
        assert!(named(other).contains("no room"));
    }

    #[test]
    fn certificates_have_a_way_out() {
        assert!(way_out("invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))").contains("openssl"));
        assert!(way_out("invalid peer certificate: UnknownIssuer").contains("--workers-ca"));
        assert!(way_out("tcp connect error").contains("running there?"));
    }
}
