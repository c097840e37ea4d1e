//! A proxy between a client and S3 that makes faults.
//!
//! ```text
//! client ─▶ proxy ─▶ moto        one request per connection, one thread per connection
//!             └ Plan: an answer of its own, no answer, the request later, the answer torn
//! ```
//!
//! S3 checks the condition of a put and writes in one step; moto does it in two. So the proxy
//! forwards one such request at a time.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;

use super::message::{self, Request};
use super::plan::{Course, Fault, Plan};

/// A proxy that serves for as long as the tests run.
pub struct Proxy {
    pub address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: SocketAddr,
    course: Mutex<Course>,
    /// A lock that is held while a conditional put is with the server.
    putting: Mutex<()>,
    /// Requests that arrive at the very end.
    held: Mutex<Vec<Request>>,
    num_serving: Mutex<usize>,
    has_served: Condvar,
}

impl Proxy {
    pub fn new(server: SocketAddr, plan: Plan) -> Self {
        let shared = Arc::new(Shared {
            server,
            course: Mutex::new(Course::new(plan)),
            putting: Mutex::default(),
            held: Mutex::default(),
            num_serving: Mutex::default(),
            has_served: Condvar::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = Self { address: listener.local_addr().unwrap(), shared: Arc::clone(&shared) };
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = Serving::new(&shared);
                thread::spawn(move || serving.0.serve(stream));
            }
        });
        proxy
    }

    pub fn num_requests(&self) -> usize {
        self.shared.course.lock().unwrap().num_requests()
    }

    pub fn num_faults(&self) -> usize {
        self.shared.course.lock().unwrap().num_faults()
    }

    /// Waits for requests under way whose clients have left, and lets the held requests arrive.
    /// Returns the statuses of the answers to the latter.
    pub fn deliver(&self) -> Vec<u16> {
        // Connections are accepted in order: once this one is accepted, all others are too.
        let mut last = TcpStream::connect(self.address).unwrap();
        last.shutdown(Shutdown::Write).unwrap();
        wait_for_the_end(&mut last);
        let num_serving = self.shared.num_serving.lock().unwrap();
        drop(self.shared.has_served.wait_while(num_serving, |num| *num > 0).unwrap());
        let held = std::mem::take(&mut *self.shared.held.lock().unwrap());
        held.iter().map(|request| message::status(&self.shared.forward(request).unwrap())).collect()
    }
}

/// A connection that is being served.
struct Serving(Arc<Shared>);

impl Serving {
    fn new(shared: &Arc<Shared>) -> Self {
        *shared.num_serving.lock().unwrap() += 1;
        Self(Arc::clone(shared))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        *self.0.num_serving.lock().unwrap() -= 1;
        self.0.has_served.notify_all();
    }
}

impl Shared {
    /// Serves one request. Returns `None` if the client left before its end.
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let mut request = Request::read_head(&mut stream)?;
        let fault = self.course.lock().unwrap().next(&request);
        if fault == Some(Fault::Reset) {
            return Some(());
        }
        request.read_rest(&mut stream)?;
        let answer = match fault {
            None => self.forward(&request)?,
            Some(Fault::Reset) => return Some(()),
            Some(Fault::Conflict) => message::error_answer("409 Conflict", "ConditionalRequestConflict"),
            Some(Fault::Precondition) => message::error_answer("412 Precondition Failed", "PreconditionFailed"),
            Some(Fault::InternalError) => message::error_answer("500 Internal Server Error", "InternalError"),
            Some(Fault::SlowDown) => message::error_answer("503 Slow Down", "SlowDown"),
            Some(Fault::Denied) => message::error_answer("403 Forbidden", "AccessDenied"),
            Some(Fault::Expired) => message::error_answer("400 Bad Request", "ExpiredToken"),
            Some(Fault::LostAnswer) => {
                self.forward(&request)?;
                return Some(());
            }
            Some(Fault::TornAnswer) => {
                let mut answer = self.forward(&request)?;
                answer.truncate(answer.len() / 2);
                answer
            }
            Some(Fault::Late) => {
                wait_for_the_end(&mut stream);
                self.forward(&request)?;
                return Some(());
            }
            Some(Fault::MuchLater) => {
                self.held.lock().unwrap().push(request);
                wait_for_the_end(&mut stream);
                return Some(());
            }
        };
        stream.write_all(&answer).ok()
    }

    fn forward(&self, request: &Request) -> Option<Vec<u8>> {
        let _one_at_a_time = request.is_conditional().then(|| self.putting.lock().unwrap());
        request.send(self.server).ok()
    }
}

/// Waits until the client closes the connection.
fn wait_for_the_end(stream: &mut TcpStream) {
    let mut rest = Vec::new();
    // An error also ends the connection, so the result does not matter.
    let _ended = stream.read_to_end(&mut rest);
}
