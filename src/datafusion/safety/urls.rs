//! URLs of a guarded session: the allowed ones, with everything below, and hosts and addresses that are not public.
//!
//! ```text
//! https://host:8443/corpora/   ─▶  "https://host:8443", path "corpora"
//! ```
//!
//! Paths are compared by segments after `..`, escapes and default ports are resolved. Addresses that are not known to
//! be public are refused: of IPv4 the special ranges of RFC 6890, of IPv6 everything outside of 2000::/3 and the
//! special ranges inside. Addresses that contain an IPv4 address (mapped, NAT64, 6to4) are judged by it.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::error::Result;
use object_store::path::Path;
use url::{Host, Position, Url};

use crate::errors::mask_secrets;
use crate::safety::refusal::{Refusal, Refused};

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
        let mut on_server = self.0.iter().filter(|(allowed, _)| allowed == server);
        if on_server.any(|(_, allowed)| path.prefix_matches(allowed)) {
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

#[cfg(any(feature = "s3", feature = "gcs", feature = "azure", feature = "http", test))]
use std::net::IpAddr;

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
mod tests {
    use proptest::prelude::*;

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
