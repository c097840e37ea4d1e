//! The part of HTTP/1 that lies between a client of S3 and its server: heads, lengths, one request
//! per connection.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Request {
    /// Method, target and headers, with the empty line.
    head: String,
    body: Vec<u8>,
}

impl Request {
    /// Reads a head except for its last byte. If a connection is dropped with unread bytes, it is
    /// reset, and its client knows that nobody has the request. Returns `None` if the client left.
    pub fn read_head(stream: &mut TcpStream) -> Option<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r") {
            let mut byte = [0];
            stream.read_exact(&mut byte).ok()?;
            head.push(byte[0]);
        }
        head.push(b'\n');
        Some(Self { head: String::from_utf8(head).ok()?, body: Vec::new() })
    }

    /// Reads the rest of the request.
    pub fn read_rest(&mut self, stream: &mut TcpStream) -> Option<()> {
        let len = self.header("content-length").map_or(0, |len| len.parse().unwrap());
        let mut rest = vec![0; 1 + len];
        stream.read_exact(&mut rest).ok()?;
        self.body = rest.split_off(1);
        Some(())
    }

    /// Returns true if the request may change stored objects.
    pub fn is_change(&self) -> bool {
        !(self.head.starts_with("GET ") || self.head.starts_with("HEAD "))
    }

    /// Returns true if the request puts an object only if none is there.
    pub fn is_conditional(&self) -> bool {
        self.header("if-none-match").is_some()
    }

    /// Returns method and target, which are equal for every attempt at one thing. Page tokens come
    /// from the server and differ each time, so they are left out.
    pub fn line(&self) -> String {
        let line = self.head.split("\r\n").next().unwrap_or_default();
        let parts = line.split(['?', '&', ' ']).filter(|part| !part.starts_with("continuation-"));
        parts.collect::<Vec<_>>().join(" ")
    }

    /// Sends the request to `server` and returns the answer as it came.
    pub fn send(&self, server: SocketAddr) -> std::io::Result<Vec<u8>> {
        let mut stream = TcpStream::connect(server)?;
        let head = self.head.replacen("\r\n", "\r\nconnection: close\r\n", 1);
        stream.write_all(head.as_bytes())?;
        stream.write_all(&self.body)?;
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            // The server answered before it had read the whole request.
            Err(error) if error.kind() == ErrorKind::ConnectionReset && !answer.is_empty() => {}
            read => drop(read?),
        }
        Ok(answer)
    }

    fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.split("\r\n").filter_map(|line| line.split_once(": "));
        headers.filter(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }
}

/// Returns the status of an answer.
pub fn status(answer: &[u8]) -> u16 {
    let status = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
    status.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
}

/// Builds an answer of S3 with the error `code`.
pub fn error_answer(status: &str, code: &str) -> Vec<u8> {
    let body = format!("<?xml version=\"1.0\"?><Error><Code>{code}</Code></Error>");
    let len = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/xml\r\n");
    format!("{head}content-length: {len}\r\nconnection: close\r\n\r\n{body}").into_bytes()
}
