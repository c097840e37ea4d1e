//! Stores of guarded sessions behind HTTP, the client that checks where it connects to, and the addresses that are
//! not public.
//!
//! ```text
//! request ─▶ Checked ── an address in the URL ── is it public?
//!               └─ reqwest ─▶ connect ─▶ Addresses: resolve ── are all public? ─▶ socket
//! answer  ◀──── redirect? an error
//! ```
//!
//! The client of `reqwest` asks the resolver for each connection and connects only to what it
//! answers, so nothing is resolved a second time behind the check.
//!
//! Everything that is not known to be public is refused: of IPv4 the special ranges of RFC 6890, of
//! IPv6 everything outside of 2000::/3 and the special ranges inside. Addresses that contain an IPv4
//! address (mapped, NAT64, 6to4) are judged by it.

use std::error::Error as StdError;
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure", feature = "http", test))]
use std::net::IpAddr;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
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
use url::{Host, Url};

#[cfg(feature = "azure")]
use super::prefixes::check_container;
use super::prefixes::server_of;
use super::{Refusal, Refused, Sandbox};

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

/// Special ranges of IPv4: first address and length of the prefix in bits (RFC 6890 and its updates).
const SPECIAL_V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// Special ranges inside 2000::/3: protocol assignments, with Teredo and ORCHID, and documentation.
const SPECIAL_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

const GLOBAL_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);
const SIX_TO_FOUR: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16);
const MAPPED_V4: (Ipv6Addr, u32) = (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96);
const NAT64: (Ipv6Addr, u32) = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// Returns true if `address` is known to be public.
#[cfg(any(feature = "s3", feature = "gcs", feature = "azure", feature = "http", test))]
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let is_in = |(first, bits): &(Ipv4Addr, u32)| (address.to_bits() ^ first.to_bits()).leading_zeros() >= *bits;
    !SPECIAL_V4.iter().any(is_in)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let bits = address.to_bits();
    let is_in = |(first, len): &(Ipv6Addr, u32)| (bits ^ first.to_bits()).leading_zeros() >= *len;
    let v4_at = |shift: u32| Ipv4Addr::from_bits((bits >> shift) as u32);
    if is_in(&MAPPED_V4) || is_in(&NAT64) {
        return is_public_v4(v4_at(0));
    }
    if is_in(&SIX_TO_FOUR) {
        return is_public_v4(v4_at(80));
    }
    is_in(&GLOBAL_V6) && !SPECIAL_V6.iter().any(is_in)
}

/// Checks the host of `url` if it is an address, and the names of this machine. Other names are
/// checked when they are resolved.
pub(super) fn check_host(url: &Url) -> Result<(), Refused> {
    let is_allowed = match url.host() {
        Some(Host::Ipv4(address)) => is_public_v4(address),
        Some(Host::Ipv6(address)) => is_public_v6(address),
        Some(Host::Domain(name)) => !is_this_machine(name),
        None => true,
    };
    if is_allowed { Ok(()) } else { Err(refused(url.host_str().unwrap_or_default())) }
}

/// Returns true for `localhost` and names below it (RFC 6761).
fn is_this_machine(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or(name);
    last.eq_ignore_ascii_case("localhost")
}

/// Returns the refusal of the host or address `host`.
pub(super) fn refused(host: &str) -> Refused {
    Refused::new(Refusal::Host, format!("the host {host}, which is not public"))
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

#[cfg(test)]
mod network_tests {
    use proptest::prelude::*;

    use super::*;

    /// The ranges as the registries of IANA write them.
    const SPECIAL: &str = "0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 \
        192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 \
        203.0.113.0/24 224.0.0.0/4 240.0.0.0/4";

    /// Compares bit by bit, as text.
    fn is_in(address: Ipv4Addr, range: &str) -> bool {
        let (first, len) = range.split_once('/').unwrap();
        let first: Ipv4Addr = first.parse().unwrap();
        let bits = |address: Ipv4Addr| address.octets().map(|o| format!("{o:08b}")).concat();
        let len: usize = len.parse().unwrap();
        bits(address)[..len] == bits(first)[..len]
    }

    proptest! {
        #[test]
        fn addresses_of_version_4_are_judged_as_by_the_registry(
            (first, low) in (prop::sample::select(SPECIAL.split_whitespace().collect::<Vec<_>>()), any::<u32>()),
            shift in 0u32..32,
        ) {
            let first: Ipv4Addr = first.split('/').next().unwrap().parse().unwrap();
            let address = Ipv4Addr::from_bits(first.to_bits() ^ (low >> shift));
            let expected = !SPECIAL.split_whitespace().any(|range| is_in(address, range));
            prop_assert_eq!(is_public(address.into()), expected);
            let bits = u128::from(address.to_bits());
            for v6 in [0xffff_0000_0000 | bits, (0x64_ff9b << 96) | bits, (0x2002 << 112) | (bits << 80)] {
                prop_assert_eq!(is_public(Ipv6Addr::from_bits(v6).into()), expected);
            }
        }
    }

    #[test]
    fn addresses_of_version_6_are_public_only_if_they_are_global() {
        for public in ["2606:4700::1111", "2a00:1450::1", "2001:4860::8888"] {
            assert!(is_public(public.parse().unwrap()), "{public}");
        }
        for special in [
            "::",
            "::1",
            "::127.0.0.1",
            "::8.8.8.8",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "fec0::1",
            "100::1",
            "2001:db8::1",
            "2001::1",
            "2001:20::1",
            "3fff::1",
            "64:ff9b:1::1",
            "4000::1",
        ] {
            assert!(!is_public(special.parse().unwrap()), "{special}");
        }
    }

    #[test]
    fn hosts_are_read_as_browsers_read_them() {
        let hosts = [
            "127.0.0.1",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "127.1",
            "0",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "localhost",
            "LOCALHOST.",
            "x.localhost",
            "169.254.169.254",
            "%31%32%37.0.0.1",
            "①②⑦.0.0.1",
            "10.0.0.1",
            "[fe80::1]",
            "[64:ff9b::a9fe:a9fe]",
        ];
        for host in hosts {
            let url = Url::parse(&format!("http://{host}/x")).unwrap();
            assert_eq!(check_host(&url).unwrap_err().refusal(), Refusal::Host, "{host}");
        }
        check_host(&Url::parse("http://example.org/x").unwrap()).unwrap();
    }
}
