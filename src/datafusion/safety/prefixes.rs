//! Allowed URLs: a scheme, a host and a path, and everything below.
//!
//! ```text
//! https://host:8443/corpora/   ─▶  "https://host:8443", path "corpora"
//! ```
//!
//! Paths are compared by segments after `..`, escapes and default ports are resolved.

use std::path::PathBuf;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use object_store::path::Path;
use url::{Position, Url};

use super::refusal::{Refusal, Refused};
use crate::errors::mask_secrets;

/// URLs that are allowed, with everything below them.
#[derive(Debug, Clone, Default)]
pub(super) struct Prefixes(Vec<(String, Path)>);

impl Prefixes {
    /// Allows everything below `url`.
    pub(super) fn allow(&mut self, url: &Url) -> Result<()> {
        check_user(url)?;
        self.0.push((server_of(url), object_path(url)?));
        Ok(())
    }

    /// Checks that `url` is below an allowed one.
    pub(super) fn check(&self, url: &Url) -> Result<()> {
        Ok(self.check_object(&server_of(url), &object_path(url)?)?)
    }

    /// Checks that `path` of `server` is below an allowed URL.
    pub(super) fn check_object(&self, server: &str, path: &Path) -> Result<(), Refused> {
        let mut of_server = self.0.iter().filter(|(allowed, _)| allowed == server);
        if of_server.any(|(_, allowed)| path.prefix_matches(allowed)) {
            Ok(())
        } else {
            Err(Refused::new(Refusal::Place, format!("{server}/{path}")))
        }
    }

    /// Checks that something of the server of `url` is allowed.
    pub(super) fn check_server(&self, url: &Url) -> Result<(), Refused> {
        let server = server_of(url);
        if self.0.iter().any(|(allowed, _)| *allowed == server) {
            Ok(())
        } else {
            Err(Refused::new(Refusal::Place, &server))
        }
    }
}

/// Returns the scheme, host and port of `url`, without the user.
pub(super) fn server_of(url: &Url) -> String {
    format!("{}://{}", url.scheme(), &url[Position::BeforeHost..Position::AfterPort])
}

fn object_path(url: &Url) -> Result<Path> {
    Path::from_url_path(url.path()).map_err(|error| {
        let shown = mask_secrets(url.as_str());
        plan_datafusion_err!("{shown}: not a path of an object store: {error}")
    })
}

/// Returns `location` as a URL; `None` if it is a path.
pub(super) fn parse(location: &str) -> Result<Option<Url>> {
    if !location.contains("://") {
        return Ok(None);
    }
    let url =
        Url::parse(location).map_err(|error| plan_datafusion_err!("{}: not a URL: {error}", mask_secrets(location)))?;
    Ok(Some(url))
}

/// Returns the path of a `file://` URL.
pub(super) fn path_of(url: &Url) -> Result<PathBuf, Refused> {
    url.to_file_path().map_err(|()| Refused::new(Refusal::Place, url.as_str()))
}

/// Checks that `url` contains no user and no password.
pub(super) fn check_user(url: &Url) -> Result<(), Refused> {
    if url.username().is_empty() && url.password().is_none() {
        Ok(())
    } else {
        let what = format!("a user or password in {}", server_of(url));
        Err(Refused::new(Refusal::Credentials, what))
    }
}

/// Checks that `url` names no account of Azure: stores are told apart by the part behind the `@`, so
/// containers of one account would be taken for each other.
///
/// # Errors
/// A plan error that shows the other form.
pub(crate) fn check_container(url: &Url) -> Result<()> {
    let scheme = url.scheme();
    if matches!(scheme, "az" | "azure" | "abfs" | "abfss" | "adl") && !url.username().is_empty() {
        return plan_err!(
            "{scheme}://CONTAINER@ACCOUNT/… is not supported: name the account in the environment \
             variable AZURE_STORAGE_ACCOUNT_NAME, and write az://CONTAINER/…"
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).unwrap()
    }

    #[test]
    fn urls_are_compared_by_segments_after_dots_and_escapes() {
        let mut prefixes = Prefixes::default();
        prefixes.allow(&url("https://host/a/b/")).unwrap();
        prefixes.allow(&url("s3://bucket")).unwrap();
        for inside in [
            "https://host:443/a/b",
            "https://HOST/a/b/c",
            "https://host/a/x/../b/c",
            "https://host/a/%62/c",
            "s3://bucket/any/thing",
        ] {
            prefixes.check(&url(inside)).unwrap();
        }
        for outside in [
            "https://host/a/bc",
            "https://host/a",
            "http://host/a/b",
            "https://host:444/a/b",
            "https://host.x/a/b",
            "https://host/a/b/../c",
            "https://host/a/b/%2e%2e/c",
            "https://host/a/b\\..\\c",
            "s3://bucket2/x",
        ] {
            let error = prefixes.check(&url(outside)).unwrap_err();
            assert!(Refused::from_error(&error).is_some(), "{outside}: {error}");
        }
    }
}
