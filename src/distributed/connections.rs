//! Connections to workers: their credentials, the version of both ends, and errors in the words of users.
//!
//! ```text
//! no connection     worker URL: no connection: reason; what to do about it
//! a broken one      worker URL: the connection broke while it ran a part; what to do
//! all others        worker URL: the error of the worker
//! ```
//!
//! The libraries below tell causes by their texts only. A text that is none of these stays as it is.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use datafusion::common::{config_err, exec_datafusion_err, exec_err};
use datafusion::error::{DataFusionError, Result};
use datafusion_distributed::grpc::BoxCloneSyncChannel;
use datafusion_tadoc::travel::shown;
use tonic::codegen::http::{HeaderMap, HeaderValue, Request};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};
use tower::ServiceExt;
use url::Url;

/// Version that the machines of a statement must share.
pub const WORKER_VERSION: &str = concat!("tadoc ", env!("CARGO_PKG_VERSION"), ", messages 12");

/// Header with the version of the sender.
const VERSION_HEADER: &str = "x-tadoc-version";
/// Time after which a machine that does not answer counts as gone.
pub(super) const SILENT_FOR: Duration = Duration::from_secs(10);
/// Time between two questions for a sign of life on a quiet connection.
pub(super) const ASK_EVERY: Duration = Duration::from_secs(5);

/// Begin of what is said about a connection that broke. A worker may have said it of another worker.
const BROKE: &str = "the connection broke while";
/// Signs of a connection to a worker that broke.
const SIGNS: [&str; 6] = [
    "transport error",
    "transport::Error(Transport",
    "h2 protocol error",
    "error reading a body from connection",
    "keep-alive timed out",
    "operation was canceled",
];
/// Sign of an error of an object store, whose connections are others.
const OF_STORE: &str = "Generic ";

/// Begin of what is said where no worker can be reached.
const UNREACHED: &str = "no connection: ";
/// Most bytes of the name of a kind of error.
const MAX_KIND_BYTES: usize = 40;

/// Returns the worker of `urls` that is lost, and the reason, if `error` says so. A worker may say it of another one.
///
/// Only what follows the names of workers and kinds of errors counts: values of users may be anywhere behind them.
pub(super) fn lost_worker<'a>(urls: &'a [Url], error: &DataFusionError) -> Option<(&'a Url, String)> {
    let text = error.strip_backtrace();
    let mut said = text.as_str();
    let mut lost = None;
    loop {
        if let Some(rest) = without_kind(said) {
            said = rest;
        } else if let Some((url, rest)) = without_name(said, urls) {
            lost = Some(url);
            said = rest;
        } else {
            break;
        }
    }
    let is_lost = said.starts_with(BROKE) || said.starts_with(UNREACHED);
    let reason = said.split("; ").next().unwrap_or(said);
    lost.filter(|_| is_lost).map(|url| (url, reason.to_owned()))
}

/// Returns `text` without the kind of an error at its begin, such as `Execution error: `.
fn without_kind(text: &str) -> Option<&str> {
    if let Some(cause) = text.strip_prefix("\ncaused by\n") {
        return Some(cause);
    }
    let (kind, rest) = text.split_once("rror: ")?;
    let is_kind = kind.len() < MAX_KIND_BYTES && kind.chars().all(|c| c.is_ascii_alphabetic() || c == ' ');
    is_kind.then_some(rest)
}

/// Returns `text` without the name of one of the workers of `urls` at its begin.
fn without_name<'a, 'b>(text: &'b str, urls: &'a [Url]) -> Option<(&'a Url, &'b str)> {
    let without = |url: &'a Url| {
        let rest = text.strip_prefix("worker ")?.strip_prefix(url.as_str())?;
        Some((url, rest.strip_prefix(": ").unwrap_or(rest)))
    };
    urls.iter().find_map(without)
}

/// Returns the words before what is said of the worker at `url`.
fn name_of_worker(url: &Url) -> String {
    format!("worker {url}: ")
}

/// Returns the error of a worker at `url` that cannot be reached.
fn unreachable(url: &Url, error: &dyn Error) -> DataFusionError {
    let reason = with_causes(error);
    let name = name_of_worker(url);
    match certificate_way_out(&reason) {
        Some(way_out) => exec_datafusion_err!("{name}{reason}; {way_out}"),
        None => exec_datafusion_err!("{name}{UNREACHED}{reason}; is `tadoc worker` running there?"),
    }
}

/// Returns what to do about a certificate that is refused for this `reason`. Returns `None` for other reasons.
fn certificate_way_out(reason: &str) -> Option<&'static str> {
    let has = |sign: &str| reason.contains(sign);
    if has("CaUsedAsEndEntity") {
        Some(
            "its certificate is its own authority; give it a certificate that an authority signed, and give \
             --workers-ca the authority (sql/README.md has the commands of openssl)",
        )
    } else if has("UnknownIssuer") || has("BadSignature") {
        Some("no authority that is trusted here signed its certificate; give --workers-ca the one that did")
    } else if has("NotValidForName") {
        Some("its certificate is for other names; it needs the name of the URL as subjectAltName")
    } else if has("Expired") {
        Some("its certificate has expired; look at the clocks of both machines, or make a new one")
    } else if has("certificate") {
        Some("give --workers-ca the authority that signed its certificate")
    } else {
        None
    }
}

/// Returns the text of `error`, with those of its causes that say more.
pub(super) fn with_causes(error: &dyn Error) -> String {
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
            "{}{BROKE} it ran {part} ({}); see whether `tadoc worker` still runs there, or was ended for lack of \
             memory, and run the statement again",
            name_of_worker(url),
            shown(&text)
        );
    }
    if is_typed {
        error.context(format!("worker {url}"))
    } else {
        exec_datafusion_err!("{}{text}", name_of_worker(url))
    }
}

/// The token that is sent to workers, and the certificates that those at `https` URLs may have. Without
/// certificates the system's authorities are trusted.
///
/// ```
/// use datafusion_tadoc_distributed::{Credentials, WorkerUrls};
///
/// let credentials = Credentials::default().with_token("not-for-everybody")?;
/// let workers: WorkerUrls = "https://one:8816,https://two:8816".parse()?;
/// let workers = workers.with_credentials(credentials);
/// assert!(!format!("{workers:?}").contains("not-for-everybody"));
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Clone, Default)]
pub struct Credentials {
    token: Option<HeaderValue>,
    certificates: Option<Certificate>,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").finish_non_exhaustive()
    }
}

impl Credentials {
    /// Sends `token` to the workers, which ask for it.
    ///
    /// # Errors
    /// An error if it has other characters than a header may have.
    pub fn with_token(self, token: &str) -> Result<Self> {
        let Ok(mut token) = HeaderValue::try_from(format!("Bearer {token}")) else {
            return config_err!("the token of the workers: expected visible characters");
        };
        token.set_sensitive(true);
        Ok(Self { token: Some(token), ..self })
    }

    /// Trusts `certificates` (PEM) and no others: those of the workers, or of an authority that signed
    /// them.
    #[must_use]
    pub fn with_certificates(self, certificates: &str) -> Self {
        Self { certificates: Some(Certificate::from_pem(certificates)), ..self }
    }

    /// Returns the settings of connections to `https` URLs.
    fn tls(&self) -> ClientTlsConfig {
        match &self.certificates {
            Some(certificates) => ClientTlsConfig::new().ca_certificate(certificates.clone()),
            None => ClientTlsConfig::new().with_native_roots(),
        }
    }
}

/// Connections to workers, one for each. A clone shares them.
#[derive(Clone)]
pub(super) struct Connections {
    credentials: Credentials,
    open: Arc<Mutex<HashMap<Url, BoxCloneSyncChannel>>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

impl Connections {
    pub(super) fn new(credentials: Credentials) -> Self {
        Self { credentials, open: Arc::default() }
    }

    /// Returns the connection to the worker at `url`, which is made if there is none.
    pub(super) async fn channel(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        if let Some(channel) = self.known(url) {
            return Ok(channel);
        }
        let channel = self.connect(url).await?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(open.entry(url.clone()).or_insert(channel).clone())
    }

    /// Drops the connection to the worker at `url`, so that the next request makes another.
    pub(super) fn forget(&self, url: &Url) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(url);
    }

    fn known(&self, url: &Url) -> Option<BoxCloneSyncChannel> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).get(url).cloned()
    }

    async fn connect(&self, url: &Url) -> Result<BoxCloneSyncChannel> {
        let failed = |error: &dyn std::error::Error| unreachable(url, error);
        let endpoint = Endpoint::from_shared(url.to_string()).map_err(|error| failed(&error))?;
        let endpoint = endpoint
            .connect_timeout(SILENT_FOR)
            .tcp_nodelay(true)
            .keep_alive_while_idle(true)
            .http2_keep_alive_interval(ASK_EVERY)
            .keep_alive_timeout(SILENT_FOR);
        let endpoint = match url.scheme() {
            "https" => endpoint.tls_config(self.credentials.tls()).map_err(|error| failed(&error))?,
            _ => endpoint,
        };
        let channel = endpoint.connect().await.map_err(|error| failed(&error))?;
        let token = self.credentials.token.clone();
        let named = channel.map_request(move |mut request: Request<tonic::body::Body>| {
            let headers = request.headers_mut();
            headers.insert(VERSION_HEADER, HeaderValue::from_static(WORKER_VERSION));
            if let Some(token) = &token {
                headers.insert("authorization", token.clone());
            }
            request
        });
        Ok(BoxCloneSyncChannel::new(named))
    }
}

/// Refuses a request of another version.
pub(super) fn check_version(headers: &HeaderMap) -> Result<()> {
    let version = headers.get(VERSION_HEADER).and_then(|version| version.to_str().ok());
    match version {
        Some(WORKER_VERSION) => Ok(()),
        other => exec_err!(
            "the worker is {WORKER_VERSION}, the sender {}; run the same version on all machines",
            other.unwrap_or("of another program")
        ),
    }
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
    fn lost_workers_are_told_from_other_faults() {
        let urls: Vec<Url> = ["http://one:8816", "http://two:8816"].map(|url| url.parse().unwrap()).into();
        let lost = |error: &DataFusionError| lost_worker(&urls, error).map(|(url, reason)| (url.clone(), reason));
        let broken = named(&urls[1], "task 2 of stage 1", DataFusionError::External("transport error".into()));
        let reason = "the connection broke while it ran task 2 of stage 1 (External error: transport error)".to_owned();
        assert_eq!(lost(&broken), Some((urls[1].clone(), reason.clone())));
        // The first says it of the second.
        let told = named(&urls[0], "task 0 of stage 2", DataFusionError::External(broken.strip_backtrace().into()));
        assert_eq!(lost(&told), Some((urls[1].clone(), reason)));
        let refused = unreachable(&urls[0], &std::io::Error::other("tcp connect error"));
        assert_eq!(lost(&refused), Some((urls[0].clone(), "no connection: tcp connect error".to_owned())));
        let typed = DataFusionError::Context(format!("worker {}", urls[1]), Box::new(refused));
        assert_eq!(lost(&typed).map(|(url, _)| url), Some(urls[0].clone()));
        let certificate = unreachable(&urls[0], &std::io::Error::other("invalid peer certificate: UnknownIssuer"));
        let memory = named(&urls[0], "", DataFusionError::ResourcesExhausted("no room".to_owned()));
        let other =
            named(&"http://three:8816".parse().unwrap(), "", DataFusionError::External("transport error".into()));
        // A user writes it.
        let value = format!("Cannot cast string '{}' to value of Int64 type", broken.strip_backtrace());
        let value = named(&urls[0], "", DataFusionError::External(value.into()));
        for error in [certificate, memory, other, value] {
            assert_eq!(lost(&error), None, "{error}");
        }
    }

    #[test]
    fn certificates_have_a_way_out() {
        let way_out = |reason: &str| certificate_way_out(reason).unwrap_or_default();
        assert!(way_out("invalid peer certificate: Other(OtherError(CaUsedAsEndEntity))").contains("openssl"));
        assert!(way_out("invalid peer certificate: UnknownIssuer").contains("--workers-ca"));
        assert!(way_out("invalid peer certificate: UnsupportedSignatureAlgorithm").contains("--workers-ca"));
        assert_eq!(way_out("tcp connect error"), "");
    }

    #[test]
    fn other_versions_are_refused() {
        let mut headers = HeaderMap::new();
        assert!(check_version(&headers).unwrap_err().to_string().contains("another program"));
        headers.insert(VERSION_HEADER, HeaderValue::from_static("tadoc 1"));
        assert!(check_version(&headers).unwrap_err().to_string().contains("the sender tadoc 1"));
        headers.insert(VERSION_HEADER, HeaderValue::from_static(WORKER_VERSION));
        check_version(&headers).unwrap();
        assert!(WORKER_VERSION.ends_with(&format!(", messages {}", crate::message::VERSION)), "{WORKER_VERSION}");
    }
}
