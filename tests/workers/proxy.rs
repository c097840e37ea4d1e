//! A proxy before a worker, which breaks its connections at a given byte of the answers, or delays them.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Bytes that are passed on at a time.
const PIECE: usize = 4096;

/// A proxy. Its threads end with the process of the tests.
pub struct Proxy {
    pub url: String,
    state: Arc<Mutex<State>>,
}

struct State {
    target: String,
    /// Bytes of answers that are still passed on. Then all connections break, now and later.
    num_left: u64,
    /// Pause before a piece of an answer.
    pause: Duration,
    open: Vec<TcpStream>,
}

impl State {
    fn close_all(&mut self) {
        for stream in self.open.drain(..) {
            // The other end may have closed it.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

impl Proxy {
    /// Starts a proxy before the worker at `url`, which passes on `num_bytes` of its answers, and makes a pause before
    /// each piece of them.
    pub fn start(url: &str, num_bytes: u64, pause: Duration) -> Self {
        let target = url.trim_start_matches("http://").trim_end_matches('/').to_owned();
        let state = State { target, num_left: num_bytes, pause, open: Vec::new() };
        let state = Arc::new(Mutex::new(state));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for client in listener.incoming() {
                connect(client.unwrap(), &shared);
            }
        });
        Self { url, state }
    }

    /// Returns true if the connections are broken.
    pub fn is_broken(&self) -> bool {
        self.state.lock().unwrap().num_left == 0
    }
}

/// Passes on what `client` and the worker send.
fn connect(client: TcpStream, shared: &Arc<Mutex<State>>) {
    let mut state = shared.lock().unwrap();
    if state.num_left == 0 {
        return;
    }
    let worker = TcpStream::connect(&state.target).unwrap();
    for stream in [&client, &worker] {
        stream.set_nodelay(true).unwrap();
        state.open.push(stream.try_clone().unwrap());
    }
    drop(state);
    let requests = (client.try_clone().unwrap(), worker.try_clone().unwrap());
    thread::spawn(move || pass_requests(requests.0, requests.1));
    let shared = Arc::clone(shared);
    thread::spawn(move || pass_answers(worker, client, &shared));
}

fn pass_requests(mut client: TcpStream, mut worker: TcpStream) {
    // A connection that breaks ends the copy.
    let _ = std::io::copy(&mut client, &mut worker);
    let _ = worker.shutdown(Shutdown::Both);
}

fn pass_answers(mut worker: TcpStream, mut client: TcpStream, shared: &Mutex<State>) {
    let mut piece = [0; PIECE];
    while let Ok(len @ 1..) = worker.read(&mut piece) {
        let pause = shared.lock().unwrap().pause;
        thread::sleep(pause);
        let mut state = shared.lock().unwrap();
        let num_passed = state.num_left.min(len as u64) as usize;
        state.num_left -= num_passed as u64;
        let is_sent = client.write_all(&piece[..num_passed]).is_ok();
        if state.num_left == 0 {
            state.close_all();
        }
        if !is_sent {
            break;
        }
    }
    let _ = client.shutdown(Shutdown::Both);
}
