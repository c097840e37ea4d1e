//! The workers of a session: their URLs, and those that are lost for a while.
//!
//! ```text
//! http://one:8815   http://two:8815   http://three:8815      all
//!                   lost 12 s ago                            no task for two until a minute is over
//! ```
//!
//! A worker is lost when it cannot be reached, when a connection to it breaks, or when it is slow (`progress`).
//! Statements that begin in the next minute do without it. So do statements that it has left before their first row
//! (`retries`). Then it is asked again, since it may have been started again. If all workers are lost, statements run
//! in this process.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datafusion::common::config_err;
use datafusion::error::{DataFusionError, Result};
use datafusion_distributed::WorkerResolver;
use url::Url;

use crate::connections::Credentials;
use datafusion_tadoc::mask_secrets;

/// Most workers of a session.
const MAX_WORKERS: usize = 1024;
/// Time for which a lost worker gets no tasks.
const LOST_FOR: Duration = Duration::from_secs(60);

/// A function that is told of workers that statements go on without.
type Warn = Arc<dyn Fn(&str) + Send + Sync>;

/// The workers of a session: URLs like `http://host:8815` or `https://host:8815`, and the credentials of
/// the connections to them.
///
/// ```
/// use datafusion_tadoc_distributed::WorkerUrls;
///
/// let workers: WorkerUrls = "http://one:8815, http://two:8815".parse()?;
/// assert_eq!(workers.len(), 2);
/// assert!("ftp://one".parse::<WorkerUrls>().is_err());
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
#[derive(Clone)]
pub struct WorkerUrls {
    urls: Vec<Url>,
    credentials: Credentials,
    /// When each lost worker was lost.
    lost: Arc<Mutex<HashMap<Url, Instant>>>,
    warn: Option<Warn>,
}

impl fmt::Debug for WorkerUrls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls: Vec<&str> = self.urls.iter().map(Url::as_str).collect();
        f.debug_struct("WorkerUrls").field("urls", &urls).finish_non_exhaustive()
    }
}

impl WorkerUrls {
    /// Returns the number of workers.
    pub fn len(&self) -> usize {
        self.urls.len()
    }

    /// Returns true if there is no worker.
    pub fn is_empty(&self) -> bool {
        self.urls.is_empty()
    }

    pub(super) fn urls(&self) -> &[Url] {
        &self.urls
    }

    pub(super) fn credentials(&self) -> &Credentials {
        &self.credentials
    }

    /// Shows `credentials` to the workers.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self { credentials, ..self }
    }

    /// Calls `warn` with a text for each worker that a statement goes on without.
    #[must_use]
    pub fn with_warnings(self, warn: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self { warn: Some(Arc::new(warn)), ..self }
    }

    /// Notes that the worker at `url` is lost, for this `reason`.
    pub(super) fn lose(&self, url: &Url, reason: &str) {
        self.lost().insert(url.clone(), Instant::now());
        let Some(warn) = &self.warn else { return };
        let all = self.len();
        match self.left().len() {
            0 | 1 => warn(&format!("worker {url}: {reason}; the statement goes on in this process")),
            num_left => {
                warn(&format!("worker {url}: {reason}; the statement goes on with {num_left} of {all} workers"))
            }
        }
    }

    /// Returns the workers that are not lost.
    fn left(&self) -> Vec<Url> {
        let mut lost = self.lost();
        lost.retain(|_, since| since.elapsed() < LOST_FOR);
        self.urls.iter().filter(|url| !lost.contains_key(url)).cloned().collect()
    }

    fn lost(&self) -> MutexGuard<'_, HashMap<Url, Instant>> {
        self.lost.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FromStr for WorkerUrls {
    type Err = DataFusionError;

    /// Parses URLs with commas, blanks or line ends between them. A line that begins with `#` is a
    /// comment.
    fn from_str(text: &str) -> Result<Self> {
        let mut urls = Vec::new();
        let lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
        let parts = lines.flat_map(|line| line.split([',', ' ', '\t', '\r']));
        for part in parts.filter(|part| !part.is_empty()) {
            let url = worker_url(part)?;
            if urls.contains(&url) {
                return config_err!("workers: {url} is named twice");
            }
            urls.push(url);
        }
        match urls.len() {
            0 => config_err!("workers: expected URLs like http://host:8815, got none"),
            1..=MAX_WORKERS => Ok(Self { urls, credentials: Credentials::default(), lost: Arc::default(), warn: None }),
            more => config_err!("workers: expected at most {MAX_WORKERS}, got {more}"),
        }
    }
}

fn worker_url(text: &str) -> Result<Url> {
    let shown = mask_secrets(text);
    let Ok(url) = Url::parse(text) else {
        return config_err!("workers: expected a URL like http://host:8815, got {shown}");
    };
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return config_err!("workers: expected a URL like http://host:8815, got {shown}");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return config_err!("workers: {shown} has a user; give a token instead");
    }
    if !matches!(url.path(), "" | "/") || url.query().is_some() {
        return config_err!("workers: expected a URL without a path, got {shown}");
    }
    Ok(url)
}

impl WorkerResolver for WorkerUrls {
    fn get_urls(&self) -> Result<Vec<Url>> {
        let left = self.left();
        // A single worker gets no part of a statement.
        Ok(if left.is_empty() { self.urls.iter().take(1).cloned().collect() } else { left })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        text.parse::<WorkerUrls>().unwrap_err().to_string()
    }

    #[test]
    fn lists_of_workers_are_checked() {
        let workers: WorkerUrls = "# ours\nhttp://a:1\nhttp://b:2, http://c:3\n".parse().unwrap();
        assert_eq!(workers.len(), 3);
        assert!(refusal("").contains("got none"));
        assert!(refusal("http://a:1,http://a:1").contains("named twice"));
        assert!(refusal("a:1").contains("like http://host:8815"));
        assert!(refusal("http://a:1/x").contains("without a path"));
        let secret = refusal("http://me:secret@a:1");
        assert!(secret.contains("has a user") && !secret.contains("secret"), "{secret}");
    }

    #[test]
    fn tokens_are_not_shown() {
        let workers: WorkerUrls = "http://a:1".parse().unwrap();
        let credentials = Credentials::default().with_token("hush").unwrap();
        assert!(!format!("{credentials:?}").contains("hush"));
        let workers = workers.with_credentials(credentials.clone());
        assert!(!format!("{workers:?}").contains("hush"));
        assert!(credentials.with_token("a\nb").is_err());
    }

    #[test]
    fn lost_workers_get_no_tasks_while_others_are_left() {
        let workers: WorkerUrls = "http://a:1,http://b:2,http://c:3".parse().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&told);
        let workers = workers.with_warnings(move |text| kept.lock().unwrap().push(text.to_owned()));
        let [a, b, c] = [0, 1, 2].map(|at| workers.urls()[at].clone());
        workers.clone().lose(&a, "gone");
        assert_eq!(workers.get_urls().unwrap(), [b.clone(), c.clone()]);
        workers.lose(&b, "gone too");
        assert_eq!(workers.get_urls().unwrap(), std::slice::from_ref(&c));
        workers.lose(&c, "gone as well");
        assert_eq!(workers.get_urls().unwrap(), [a]);
        let told = told.lock().unwrap();
        assert_eq!(told[0], "worker http://a:1/: gone; the statement goes on with 2 of 3 workers");
        assert_eq!(told[1], "worker http://b:2/: gone too; the statement goes on in this process");
    }
}
