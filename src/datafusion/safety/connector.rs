//! Stores of guarded sessions behind HTTP, and the client that checks where it connects to.
//!
//! ```text
//! request ─▶ Checked ── an address in the URL ── is it public?
//!               └─ reqwest ─▶ connect ─▶ Addresses: resolve ── are all public? ─▶ socket
//! answer  ◀──── redirect? an error
//! ```
//!
//! The client of `reqwest` asks the resolver for each connection and connects only to what it
//! answers, so nothing is resolved a second time behind the check.

use std::error::Error as StdError;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use datafusion::common::plan_err;
use datafusion::error::Result;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientConfigKey, ClientOptions, ObjectStore};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use url::Url;

use super::Sandbox;
use super::refusal::{Refusal, Refused};
#[cfg(feature = "azure")]
use crate::safety::urls::check_container;
use crate::safety::urls::{check_host, is_public, refused, server_of};

/// The limits of `object_store`'s own client.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Makes the store of the server of `url`, with settings and credentials of the environment.
pub(super) fn made_store(sandbox: &Sandbox, url: &Url) -> Result<Arc<dyn ObjectStore>> {
    let allows_private = sandbox.allows_private;
    let connector = Connector(Addresses { allows_private, lookup: system_lookup });
    match url.scheme() {
        #[cfg(feature = "http")]
        "http" | "https" => {
            use object_store::http::HttpBuilder;
            // A URL with http:// asks for plain connections.
            let options = ClientOptions::new().with_allow_http(url.scheme() == "http");
            let builder = HttpBuilder::new().with_url(server_of(url)).with_client_options(options);
            Ok(Arc::new(builder.with_http_connector(connector).build()?))
        }
        #[cfg(feature = "s3")]
        "s3" | "s3a" => {
            use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
            let builder = AmazonS3Builder::new().with_url(server_of(url));
            let builder =
                settings::<AmazonS3ConfigKey>().fold(builder, |builder, (key, value)| builder.with_config(key, value));
            Ok(Arc::new(builder.with_http_connector(connector).build()?))
        }
        #[cfg(feature = "gcs")]
        "gs" => {
            use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
            let builder = GoogleCloudStorageBuilder::new().with_url(server_of(url));
            let builder =
                settings::<GoogleConfigKey>().fold(builder, |builder, (key, value)| builder.with_config(key, value));
            Ok(Arc::new(builder.with_http_connector(connector).build()?))
        }
        #[cfg(feature = "azure")]
        "az" | "azure" | "abfs" | "abfss" | "adl" => {
            use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
            check_container(url)?;
            let builder = MicrosoftAzureBuilder::new().with_url(server_of(url));
            let builder =
                settings::<AzureConfigKey>().fold(builder, |builder, (key, value)| builder.with_config(key, value));
            Ok(Arc::new(builder.with_http_connector(connector).build()?))
        }
        scheme => plan_err!(
            "safe mode makes no store for {scheme}://…; register one on the session, or use file, \
             http, https, s3, gs or az (features http, s3, gcs and azure)"
        ),
    }
}

/// Returns the settings of a store in the environment. Their keys have the names of variables in lower
/// case.
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure"))]
fn settings<K: std::str::FromStr>() -> impl Iterator<Item = (K, String)> {
    std::env::vars().filter_map(|(name, value)| Some((name.to_ascii_lowercase().parse().ok()?, value)))
}

/// Connector of stores whose clients check where they connect to.
#[derive(Debug)]
struct Connector(Addresses);

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let is_plain = options.get_config_value(&ClientConfigKey::AllowHttp);
        let client = reqwest::Client::builder()
            .dns_resolver(Arc::new(self.0))
            .redirect(Policy::none())
            // A proxy would resolve names itself.
            .no_proxy()
            .https_only(is_plain.as_deref() != Some("true"))
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(REQUEST_TIMEOUT)
            // The lengths of ranges are those of the stored bytes.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .build();
        let client =
            client.map_err(|error| object_store::Error::Generic { store: "safe mode", source: Box::new(error) })?;
        let allows_private = self.0.allows_private;
        Ok(HttpClient::new(Checked { client, allows_private }))
    }
}

/// Client that checks addresses in URLs, and answers that redirect.
#[derive(Debug)]
struct Checked {
    client: reqwest::Client,
    allows_private: bool,
}

#[async_trait]
impl HttpService for Checked {
    async fn call(&self, request: HttpRequest) -> std::result::Result<HttpResponse, HttpError> {
        let url =
            Url::parse(&request.uri().to_string()).map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        if !self.allows_private {
            check_host(&url).map_err(once)?;
        }
        let answer = HttpService::call(&self.client, request).await;
        let answer = answer.map_err(|error| match Refused::from_error(&error) {
            Some(refused) => once(refused.clone()),
            None => error,
        })?;
        // Without a location it is an answer about the version of an object.
        if answer.status().is_redirection() && answer.headers().contains_key("location") {
            let what = format!("the redirect of {}", server_of(&url));
            return Err(once(Refused::new(Refusal::Redirect, what)));
        }
        Ok(answer)
    }
}

/// Returns an error that is not tried again.
fn once(refused: Refused) -> HttpError {
    HttpError::new(HttpErrorKind::Unknown, refused)
}

/// Finds the addresses of a name.
type Lookup = fn(&str) -> std::io::Result<Vec<SocketAddr>>;

/// Resolver that answers with addresses only if all of them are public.
#[derive(Debug, Clone, Copy)]
struct Addresses {
    allows_private: bool,
    lookup: Lookup,
}

type Failure = Box<dyn StdError + Send + Sync>;

impl Resolve for Addresses {
    fn resolve(&self, name: Name) -> Resolving {
        let Self { allows_private, lookup } = *self;
        Box::pin(async move {
            let host = name.as_str().to_owned();
            let found = tokio::task::spawn_blocking(move || resolved(&host, allows_private, lookup));
            let addresses = found.await.map_err(Failure::from)??;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

fn resolved(
    host: &str,
    allows_private: bool,
    lookup: impl Fn(&str) -> std::io::Result<Vec<SocketAddr>>,
) -> std::result::Result<Vec<SocketAddr>, Failure> {
    let addresses = lookup(host)?;
    if allows_private || addresses.iter().all(|address| is_public(address.ip())) {
        Ok(addresses)
    } else {
        Err(refused(host).into())
    }
}

/// Resolves a name as the system does. The client sets the port.
fn system_lookup(host: &str) -> std::io::Result<Vec<SocketAddr>> {
    Ok((host, 0).to_socket_addrs()?.collect())
}

#[cfg(test)]
#[cfg(feature = "http")]
mod tests {
    use std::cell::Cell;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use object_store::ObjectStoreExt;
    use object_store::http::HttpBuilder;
    use object_store::path::Path;

    use super::*;

    fn at(address: &str) -> SocketAddr {
        SocketAddr::new(address.parse().unwrap(), 0)
    }

    /// A name whose first answer is harmless (DNS rebinding): each connection asks again.
    #[test]
    fn a_name_is_judged_at_each_resolution() {
        let num_calls = Cell::new(0);
        let lookup = |_: &str| {
            num_calls.set(num_calls.get() + 1);
            Ok(vec![at(if num_calls.get() == 1 { "2606:4700::1" } else { "127.0.0.1" })])
        };
        assert_eq!(resolved("name", false, lookup).unwrap().len(), 1);
        let error = resolved("name", false, lookup).unwrap_err();
        assert_eq!(Refused::from_error(error.as_ref()).unwrap().refusal(), Refusal::Host);
        assert!(resolved("name", true, lookup).is_ok());
    }

    #[test]
    fn one_address_that_is_not_public_is_enough() {
        let lookup = |_: &str| Ok(vec![at("2606:4700::1"), at("fe80::1")]);
        assert!(resolved("name", false, lookup).is_err());
    }

    /// Answers requests with a byte. Counts the connections.
    fn stand_in() -> (u16, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connections = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&connections);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let _ = stream.read(&mut [0; 4096]);
                let head = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: close\r\n\r\n";
                let _ = stream.write_all(format!("{head}x").as_bytes());
            }
        });
        (port, connections)
    }

    async fn get(port: u16, addresses: Addresses) -> object_store::Result<bytes::Bytes> {
        let options = ClientOptions::new().with_allow_http(true);
        let builder = HttpBuilder::new().with_url(format!("http://name.invalid:{port}"));
        let builder = builder.with_client_options(options);
        let store = builder.with_http_connector(Connector(addresses)).build()?;
        store.get(&Path::from("x")).await?.bytes().await
    }

    /// The name passes every check before the connection.
    #[tokio::test]
    async fn a_name_of_this_machine_is_not_connected_to() {
        let (port, connections) = stand_in();
        let lookup = |_: &str| Ok(vec![at("127.0.0.1")]);
        let error = get(port, Addresses { allows_private: false, lookup }).await.unwrap_err();
        assert_eq!(Refused::from_error(&error).unwrap().refusal(), Refusal::Host);
        assert_eq!(connections.load(Ordering::Relaxed), 0);
        get(port, Addresses { allows_private: true, lookup }).await.unwrap();
        assert_eq!(connections.load(Ordering::Relaxed), 1);
    }
}
