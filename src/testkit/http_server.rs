//! A file server that knows HEAD and ranged GET, for corpora behind HTTP.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use crate::command::Folder;

/// Serves the files `names` of `folder`, each at any path that ends with its name, for as long as
/// the test runs. Returns the port. Requests below `/forbidden/` are refused, and so are GET
/// requests below `/kept/`. `/moved/` redirects to the file, `/round/` to itself. A GET request
/// below `/together/` is answered once there is a second one, and refused after ten seconds.
pub fn serve(folder: &Folder, names: &[&str]) -> u16 {
    let read = |name: &&str| (format!("/{name}"), fs::read(folder.join(name)).unwrap());
    let files: Arc<Vec<(String, Vec<u8>)>> = Arc::new(names.iter().map(read).collect());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let files = Arc::clone(&files);
            thread::spawn(move || while answer(&stream, &files).is_some() {});
        }
    });
    port
}

/// Answers one request. Returns `None` once the client has left.
fn answer(stream: &TcpStream, files: &[(String, Vec<u8>)]) -> Option<()> {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let request = lines.next()?;
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let (method, path) = request.split_once(' ')?;
    let path = path.split(' ').next()?.split('?').next()?;
    let mut stream = stream;
    let is_get_below = |folder: &str| method == "GET" && path.starts_with(folder);
    if path.starts_with("/forbidden/") || is_get_below("/kept/") || is_get_below("/together/") && !is_accompanied() {
        return stream.write_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n").ok();
    }
    if let Some(target) = path.strip_prefix("/moved").or(path.starts_with("/round/").then_some(path)) {
        let moved = "HTTP/1.1 302 Found\r\ncontent-length: 0";
        return write!(stream, "{moved}\r\nlocation: {target}\r\n\r\n").ok();
    }
    let Some((_, bytes)) = files.iter().find(|(end, _)| path.ends_with(end)) else {
        return stream.write_all(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").ok();
    };
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

/// Waits for a second request, and returns false after ten seconds.
fn is_accompanied() -> bool {
    static NUM_REQUESTS: AtomicUsize = AtomicUsize::new(0);
    NUM_REQUESTS.fetch_add(1, Ordering::SeqCst);
    let start = Instant::now();
    let is_alone = || NUM_REQUESTS.load(Ordering::SeqCst) < 2;
    while is_alone() && start.elapsed() < Duration::from_secs(10) {
        thread::sleep(Duration::from_millis(1));
    }
    !is_alone()
}
