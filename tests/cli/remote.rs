//! Corpora behind HTTP and S3: a server of one file, as much as HEAD and ranged GET.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use crate::harness::{Folder, Ran};

/// Serves `bytes` at any path that ends with `/c.tadoc`, for as long as the test runs; returns the
/// port.
fn serve(bytes: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let bytes = bytes.clone();
            thread::spawn(move || while answer(&stream, &bytes).is_some() {});
        }
    });
    port
}

/// Answers one request; `None` once the client has left.
fn answer(stream: &TcpStream, bytes: &[u8]) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next()?;
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let (method, path) = request.split_once(' ')?;
    let path = path.split(' ').next()?.split('?').next()?;
    let mut stream = stream;
    if !path.ends_with("/c.tadoc") {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").ok();
    }
    let range = head.iter().find_map(|line| {
        let line = line.to_ascii_lowercase();
        let (start, end) = line.strip_prefix("range: bytes=")?.split_once('-')?;
        let end: usize = end.parse().ok()?;
        Some(start.parse().ok()?..bytes.len().min(end + 1))
    });
    let status = if range.is_some() { "206 Partial Content" } else { "200 OK" };
    let body = &bytes[range.clone().unwrap_or(0..bytes.len())];
    let mut response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    response += "etag: \"1\"\r\nlast-modified: Fri, 20 Nov 2026 10:00:00 GMT\r\n";
    if let Some(range) = range {
        let (last, len) = (range.end - 1, bytes.len());
        response += &format!("content-range: bytes {}-{last}/{len}\r\n", range.start);
    }
    response += "\r\n";
    stream.write_all(response.as_bytes()).ok()?;
    if method == "GET" {
        stream.write_all(body).ok()?;
    }
    Some(())
}

fn corpus() -> (Folder, u16) {
    let folder = Folder::new();
    folder.write("in/a.txt", "to be or not to be");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    let port = serve(std::fs::read(folder.join("c.tadoc")).unwrap());
    (folder, port)
}

#[test]
fn http() {
    let (folder, port) = corpus();
    let url = format!("http://127.0.0.1:{port}/c.tadoc");
    let sql = format!("SELECT word, count FROM word_count('{url}') ORDER BY word LIMIT 2");
    assert_eq!(folder.rows(&sql), ["be,2", "not,1"]);
    let missing = format!("SELECT * FROM word_count('http://127.0.0.1:{port}/other.tadoc')");
    let ran = folder.run(&["sql", "-c", &missing]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("/other.tadoc"), "{}", ran.stderr);
}

#[test]
fn s3() {
    let (folder, port) = corpus();
    let sql = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 's3://bucket/c.tadoc';
               SELECT byte_offset FROM search('d', 'not')";
    let mut command = folder.command(&["sql", "-q", "--format", "csv", "-c", sql]);
    command.env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}"));
    command.envs([
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "anybody"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]);
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "byte_offset\n9\n", "{}", ran.stderr);
}
