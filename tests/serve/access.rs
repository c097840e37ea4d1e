//! Tokens, TLS, and names of hosts.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::server::{Response, Server, batches, corpora, rows};

const TOKEN: &str = "correct horse battery";
const QUERY: &str = r#"{"sql": "SELECT 1 AS one"}"#;

fn post(server: &Server, lines: &str) -> Response {
    let head = "POST /query HTTP/1.1\r\ncontent-type: application/json\r\n";
    server.request(&format!("{head}{lines}"), QUERY)
}

#[test]
fn names_are_listened_at_and_wrong_options_are_refused() {
    let server = Server::start_at("localhost:0", corpora(), &[], &[]);
    assert_eq!(server.get("/healthz").status, 200);
    let folder = corpora();
    for (arguments, text) in [
        (["--listen", "localhost"], "expected ADDRESS:PORT or NAME:PORT"),
        (["--timeout", "0"], "expected a time above 0"),
    ] {
        let ran = folder.run(&[&["serve", "notes.tadoc"][..], &arguments].concat());
        assert_eq!(ran.status, 2, "{}", ran.stderr);
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_asked_for() {
    let folder = corpora();
    folder.write("token", format!("{TOKEN}\n"));
    let server = Server::start_in(folder, &["--token-file", "token"], &[]);
    assert_eq!(server.get("/").status, 200);
    assert_eq!(server.get("/healthz").status, 200);
    assert_eq!(server.get("/metrics").status, 401);
    let refused = post(&server, "host: localhost\r\n");
    assert!(refused.status == 401 && refused.head.contains("www-authenticate: bearer"));
    let wrong = format!("authorization: Bearer {TOKEN}x\r\n");
    assert_eq!(post(&server, &wrong).status, 401);
    let right = format!("host: tadoc.example\r\nauthorization: Bearer {TOKEN}\r\n");
    assert_eq!(post(&server, &right).json()["rows"][0][0], 1);

    let mut client = server.client().await;
    let text = batches(&mut client, "SELECT 1").await.unwrap_err();
    assert!(text.to_lowercase().contains("token"), "{text}");
    client.set_token("wrong".to_owned());
    assert!(batches(&mut client, "SELECT 1").await.is_err());
    client.set_token(TOKEN.to_owned());
    assert_eq!(rows(&mut client, "SELECT 1").await, ["1"]);
    let mut named = server.client().await;
    assert!(named.handshake("anybody", "wrong").await.is_err());
    named.handshake("anybody", TOKEN).await.unwrap();
    assert_eq!(named.token().unwrap(), TOKEN);
    assert_eq!(rows(&mut named, "SELECT 2").await, ["2"]);
}

#[tokio::test]
async fn the_variable_has_the_token_too() {
    let server = Server::start_in(corpora(), &[], &[("TADOC_TOKEN", TOKEN)]);
    assert_eq!(server.query("SELECT 1").status, 401);
    let mut client = server.client().await;
    client.set_token(TOKEN.to_owned());
    assert_eq!(rows(&mut client, "SELECT 1").await, ["1"]);
}

#[test]
fn other_machines_need_a_token() {
    let folder = corpora();
    let ran = folder.run(&["serve", "--listen", "0.0.0.0:0", "notes.tadoc"]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("--token-file"), "{}", ran.stderr);
    folder.write("empty", "\n");
    let ran = folder.run(&["serve", "--token-file", "empty", "notes.tadoc"]);
    assert_eq!(ran.status, 2, "{}", ran.stderr);
}

#[test]
fn a_corpus_that_cannot_be_opened_is_named_once() {
    let folder = corpora();
    folder.write("none.tadoc", "no corpus");
    for location in ["missing.tadoc", "none.tadoc"] {
        let ran = folder.run(&["serve", "--listen", "127.0.0.1:0", location]);
        assert_eq!((ran.status, ran.stderr.matches(location).count()), (1, 1), "{}", ran.stderr);
    }
}

#[test]
fn only_names_of_this_machine_are_served_without_a_token() {
    let server = Server::start(&[]);
    for host in ["localhost", "127.0.0.1:8815", "[::1]"] {
        assert_eq!(post(&server, &format!("host: {host}\r\n")).status, 200, "{host}");
    }
    // A name of an attacker that leads to 127.0.0.1.
    for host in ["evil.example", "evil.example:8815", "localhost.evil.example"] {
        let refused = post(&server, &format!("host: {host}\r\n"));
        assert_eq!(refused.status, 403, "{host}");
        assert!(!refused.body.contains("rows"));
    }
    // What a page of another site may send without being asked whether it may.
    let head = "POST /query HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example\r\n";
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let refused = server.request(&format!("{head}content-type: {kind}\r\n"), QUERY);
        assert_eq!(refused.status, 400, "{kind}");
    }
    let asked = server.request("OPTIONS /query HTTP/1.1\r\nhost: localhost\r\n", "");
    assert!(!asked.head.contains("access-control"), "{}", asked.head);
}

#[test]
fn requests_are_encrypted() {
    let folder = corpora();
    folder.write("cert.pem", include_str!("tls/cert.pem"));
    folder.write("key.pem", include_str!("tls/key.pem"));
    let arguments = ["--tls-cert", "cert.pem", "--tls-key", "key.pem"];
    let server = Server::start_in(folder, &arguments, &[]);
    for protocol in [None, Some("http/1.1")] {
        let health = over_tls(&server, protocol, "GET /healthz HTTP/1.1");
        assert_eq!((health.status, health.body.as_str()), (200, "ok\n"), "{protocol:?}");
    }
    // The first bytes of HTTP/2 are its preface, and the first of the answer are settings.
    let preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    let mut stream = connect(&server, Some("h2"));
    stream.write_all(preface.as_bytes()).unwrap();
    let mut frame = [0; 9];
    std::io::Read::read_exact(&mut stream, &mut frame).unwrap();
    assert_eq!(frame[3], 4, "{frame:?}");
    // Plain text gets no answer in plain text.
    assert!(!server.get("/healthz").body.contains("ok"));
}

fn over_tls(server: &Server, protocol: Option<&str>, line: &str) -> Response {
    let mut stream = connect(server, protocol);
    let head = format!("{line}\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    Response::read(stream)
}

fn connect(server: &Server, protocol: Option<&str>) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    let certificate = CertificateDer::from_pem_slice(include_bytes!("tls/cert.pem")).unwrap();
    roots.add(certificate).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = protocol.iter().map(|name| name.as_bytes().to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    StreamOwned::new(connection, stream)
}

#[test]
fn bad_certificates_are_named() {
    let folder = corpora();
    folder.write("cert.pem", include_str!("tls/cert.pem"));
    folder.write("bad.pem", "no key");
    let serve = |cert: &str, key: &str| folder.run(&["serve", "--tls-cert", cert, "--tls-key", key, "notes.tadoc"]);
    for (cert, key, named) in [
        ("cert.pem", "bad.pem", "bad.pem"),
        ("missing.pem", "bad.pem", "missing.pem"),
        ("bad.pem", "cert.pem", "cert.pem"),
    ] {
        let ran = serve(cert, key);
        assert_eq!(ran.status, 1, "{}", ran.stderr);
        assert!(ran.stderr.contains(named), "{}", ran.stderr);
    }
    assert_eq!(folder.run(&["serve", "--tls-cert", "cert.pem", "notes.tadoc"]).status, 2);
}
