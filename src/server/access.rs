//! Who may ask: a token, or programs of this machine.
//!
//! With a token, each request but those for the page and for `/healthz` carries it, as `Authorization: Bearer TOKEN`,
//! or as the password of `Authorization: Basic …`, which is what a Flight SQL client with a user name sends.
//!
//! Without a token, the server only listens at addresses of this machine, and answers only requests
//! to a name of this machine. A page of another site can make a browser ask a name that leads to
//! 127.0.0.1, and such a request has the name in its head.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::{Engine, alphabet};
use subtle::ConstantTimeEq;
use tadoc_session::{Failure, Outcome};
use tonic::Status;

/// Paths that need no token.
const OPEN_PATHS: [&str; 2] = ["/", "/healthz"];
/// The encoding of `Authorization: Basic`. The client of Flight in Go leaves the padding out.
const BASIC: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);
/// Environment variable of the token.
pub const TOKEN_VARIABLE: &str = "TADOC_TOKEN";

/// Parses an address and a port, or a name and a port. Of the addresses of a name it takes the first, of
/// IPv4 if there is one.
///
/// # Errors
/// The text is of another form, or the name has no address. The text of the error says so.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let expected = "expected ADDRESS:PORT or NAME:PORT, such as 127.0.0.1:8815 or localhost:8815";
    let name = match text.rsplit_once(':') {
        Some((name, port)) if !name.is_empty() && port.parse::<u16>().is_ok() => name,
        _ => return Err(expected.to_owned()),
    };
    let found = text.to_socket_addrs();
    let mut found = found.map_err(|error| format!("no address of {name}: {error}; {expected}"))?;
    let first = found.next();
    let address = first.filter(SocketAddr::is_ipv4).or_else(|| found.find(SocketAddr::is_ipv4));
    address.or(first).ok_or_else(|| format!("{name} has no address; {expected}"))
}

/// The token of the server, if it has one.
#[derive(Clone)]
pub struct Access {
    token: Option<Arc<str>>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Access")
    }
}

impl Access {
    /// Creates the access with `token`.
    ///
    /// # Errors
    /// The token is empty or has characters that no header has; or there is none, and other machines
    /// reach `address`.
    pub fn new(token: Option<String>, address: SocketAddr) -> Outcome<Self> {
        let token = token.map(|token| token.trim().to_owned());
        match &token {
            Some(token) if token.is_empty() || HeaderValue::from_str(token).is_err() => {
                Err(Failure::usage("the token is empty or no text of one line"))
            }
            None if !address.ip().is_loopback() => Err(Failure::usage(format!(
                "other machines reach {address}, so a token is needed: --token-file FILE, or the \
                 variable {TOKEN_VARIABLE}"
            ))),
            _ => Ok(Self { token: token.map(Arc::from) }),
        }
    }

    /// Returns the value of the header that a client sends after a handshake.
    pub fn bearer(&self) -> Option<String> {
        self.token.as_ref().map(|token| format!("Bearer {token}"))
    }

    fn allows(&self, path: &str, headers: &HeaderMap, host: Option<&str>) -> bool {
        match &self.token {
            Some(token) => OPEN_PATHS.contains(&path) || has_token(headers, token),
            None => host.is_none_or(is_this_machine),
        }
    }
}

/// Refuses requests without the token, and requests to other names than those of this machine.
pub async fn check(State(access): State<Access>, request: Request, next: Next) -> Response {
    let host_header = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = request.uri().host().or(host_header);
    if access.allows(request.uri().path(), request.headers(), host) {
        return next.run(request).await;
    }
    let (status, text) = match access.token {
        Some(_) => (StatusCode::UNAUTHORIZED, "the token is missing or wrong; send Authorization: Bearer TOKEN"),
        None => (StatusCode::FORBIDDEN, "without a token, only localhost and addresses are served"),
    };
    let kind = request.headers().get(header::CONTENT_TYPE);
    if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc")) {
        return Status::unauthenticated(text).into_http::<axum::body::Body>();
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (status, challenge, text).into_response()
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return false };
    let Ok(value) = value.to_str() else { return false };
    let (scheme, given) = value.split_once(' ').unwrap_or((value, ""));
    let is_token = |given: &[u8]| bool::from(given.ct_eq(token.as_bytes()));
    if scheme.eq_ignore_ascii_case("bearer") {
        return is_token(given.trim().as_bytes());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return false;
    }
    let Ok(pair) = BASIC.decode(given.trim()) else { return false };
    let colon = pair.iter().position(|&byte| byte == b':');
    colon.is_some_and(|colon| is_token(&pair[colon + 1..]))
}

/// Returns true if `host`, perhaps with a port, is an address or `localhost`.
fn is_this_machine(host: &str) -> bool {
    if host.parse::<SocketAddr>().is_ok() || host.parse::<IpAddr>().is_ok() {
        return true;
    }
    let has_port = !host.ends_with(']');
    let name = host.rsplit_once(':').filter(|_| has_port).map_or(host, |(name, _)| name);
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: ([u8; 4], u16) = ([127, 0, 0, 1], 1);

    fn headers(authorization: &str) -> HeaderMap {
        let value = HeaderValue::from_str(authorization).unwrap();
        HeaderMap::from_iter([(header::AUTHORIZATION, value)])
    }

    #[test]
    fn names_lead_to_addresses() {
        assert_eq!(parse_address("127.0.0.1:1"), Ok(LOCAL.into()));
        assert_eq!(parse_address("[::1]:0").map(|address| address.is_ipv6()), Ok(true));
        assert!(parse_address("localhost:8815").is_ok_and(|address| address.ip().is_loopback()));
        for wrong in ["localhost", ":8815", "localhost:", "localhost:70000", "8815", ""] {
            let error = parse_address(wrong).unwrap_err();
            assert!(error.starts_with("expected ADDRESS:PORT or NAME:PORT"), "{error}");
        }
    }

    #[test]
    fn a_token_is_asked_for() {
        let access = Access::new(Some("s3cret\n".to_owned()), LOCAL.into()).unwrap();
        let basic = BASIC.encode("anybody:s3cret");
        let unpadded = basic.trim_end_matches('=');
        assert_ne!(basic, unpadded);
        let basics = [&basic, unpadded].map(|basic| format!("Basic {basic}"));
        for right in ["Bearer s3cret", "bearer  s3cret", &basics[0], &basics[1]] {
            assert!(access.allows("/query", &headers(right), None), "{right}");
        }
        let basic = BASIC.encode("s3cret:");
        for wrong in ["s3cret", "Bearer", "Bearer s3cre", "Bearer s3crets", &format!("Basic {basic}")] {
            assert!(!access.allows("/query", &headers(wrong), None), "{wrong}");
        }
        assert!(!access.allows("/metrics", &HeaderMap::new(), Some("localhost")));
        assert!(access.allows("/healthz", &HeaderMap::new(), None));
    }

    #[test]
    fn without_a_token_only_this_machine_is_served() {
        let access = Access::new(None, LOCAL.into()).unwrap();
        let none = HeaderMap::new();
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:1", "[::1]", "::1"] {
            assert!(access.allows("/query", &none, Some(host)), "{host}");
        }
        for host in ["evil.example", "evil.example:8080", "localhost.evil.example", ""] {
            assert!(!access.allows("/", &none, Some(host)), "{host}");
        }
        assert!(Access::new(None, ([0, 0, 0, 0], 1).into()).is_err());
        assert!(Access::new(Some(" ".to_owned()), LOCAL.into()).is_err());
    }
}
