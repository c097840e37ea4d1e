//! Connections: HTTP/1 and HTTP/2 on one port, plain or with TLS, a limited number of them.
//!
//! ```text
//! accept ─▶ room? ─▶ first byte within 10 s ─▶ TLS handshake within 10 s ─▶ requests
//!           │ no: close the one that has been idle for longest; if none is idle, close the new one
//! ```
//!
//! A connection is idle while no request and no statement uses it. So many silent connections close each other, and
//! none that is in use. A stop tells all clients to send no more requests, and waits for what runs.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::metrics::Metrics;

/// Time for the first byte, for the TLS handshake, and for the head of a request.
const START: Duration = Duration::from_secs(10);
/// Time between two checks that a silent client is there, and for its answer.
const ALIVE: Duration = Duration::from_secs(30);
/// Time for the last bytes of a connection that is closed.
const CLOSING: Duration = Duration::from_millis(100);
/// Bytes of the headers of a request.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// Time to wait after the system has refused a connection, usually for want of open files.
const AFTER_REFUSAL: Duration = Duration::from_millis(50);

/// The open connections.
#[derive(Debug)]
pub struct Connections {
    max_open: usize,
    /// Requests at a time on one connection.
    max_requests: u32,
    metrics: Arc<Metrics>,
    clock: AtomicU64,
    open: Mutex<HashMap<u64, Arc<Connection>>>,
}

#[derive(Debug, Default)]
struct Connection {
    num_uses: AtomicUsize,
    last_used: AtomicU64,
    close: Notify,
}

/// A use of a connection, by a request or a statement. The connection is not idle while it lives.
#[derive(Debug)]
pub struct InUse {
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl InUse {
    fn new(connection: &Arc<Connection>, connections: &Arc<Connections>) -> Self {
        connection.num_uses.fetch_add(1, Ordering::Relaxed);
        Self { connection: Arc::clone(connection), connections: Arc::clone(connections) }
    }

    /// Returns the use of a connection that takes no place and is never idle: standard input and output.
    pub fn without_place() -> Self {
        Self::new(&Arc::default(), &Connections::new(1, 1, Arc::default()))
    }

    /// Closes the connection.
    pub fn close(&self) {
        self.connection.close.notify_one();
    }
}

impl Clone for InUse {
    fn clone(&self) -> Self {
        Self::new(&self.connection, &self.connections)
    }
}

impl Drop for InUse {
    fn drop(&mut self) {
        let now = self.connections.clock.fetch_add(1, Ordering::Relaxed);
        self.connection.last_used.store(now, Ordering::Relaxed);
        self.connection.num_uses.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The place of an open connection. It is free when this is dropped.
struct Place {
    id: u64,
    connection: Arc<Connection>,
    connections: Arc<Connections>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connections.open().remove(&self.id);
        self.connections.metrics.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Connections {
    /// Creates places for `max_open` connections, each with `max_requests` at a time.
    pub fn new(max_open: usize, max_requests: u32, metrics: Arc<Metrics>) -> Arc<Self> {
        let clock = AtomicU64::new(0);
        let open = Mutex::default();
        Arc::new(Self { max_open, max_requests, metrics, clock, open })
    }

    /// Takes a place, if there is one or if a connection is idle, which is closed then.
    fn place(self: &Arc<Self>) -> Option<Place> {
        let mut open = self.open();
        if open.len() >= self.max_open {
            self.metrics.connections_refused.fetch_add(1, Ordering::Relaxed);
            let idle = open.iter().filter(|(_, c)| c.num_uses.load(Ordering::Relaxed) == 0);
            let oldest = idle.min_by_key(|(_, c)| c.last_used.load(Ordering::Relaxed));
            let oldest = oldest.map(|(&id, _)| id)?;
            open.remove(&oldest)?.close.notify_one();
        }
        let id = self.clock.fetch_add(1, Ordering::Relaxed);
        let connection = Arc::new(Connection { last_used: id.into(), ..Connection::default() });
        open.insert(id, Arc::clone(&connection));
        self.metrics.connections.fetch_add(1, Ordering::Relaxed);
        self.metrics.connections_total.fetch_add(1, Ordering::Relaxed);
        Some(Place { id, connection, connections: Arc::clone(self) })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Arc<Connection>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves `router` on `listener` until `stop` wakes, and then for at most `grace` what runs.
    pub async fn serve(
        self: &Arc<Self>,
        listener: TcpListener,
        tls: Option<TlsAcceptor>,
        router: Router,
        stop: Arc<Notify>,
        grace: Duration,
    ) {
        let (tell_stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                Some(_) = tasks.join_next() => continue,
                () = stop.notified() => break,
            };
            match accepted {
                Ok((stream, _)) => {
                    // Dropping the stream closes it.
                    let Some(place) = self.place() else { continue };
                    let tls = tls.clone();
                    let router = router.clone();
                    tasks.spawn(serve_stream(stream, tls, router, place, stopped.clone()));
                }
                Err(_) => sleep(AFTER_REFUSAL).await,
            }
        }
        drop(listener);
        let _ = tell_stop.send(true);
        let finish = async { while tasks.join_next().await.is_some() {} };
        // What still runs then is dropped with the set.
        let _ = timeout(grace, finish).await;
    }
}

async fn serve_stream(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    router: Router,
    place: Place,
    stopped: watch::Receiver<bool>,
) {
    // Small messages are sent at once. An error means that the client has left.
    let _ = stream.set_nodelay(true);
    let mut first = [0];
    let started = tokio::select! {
        peeked = timeout(START, stream.peek(&mut first)) => matches!(peeked, Ok(Ok(1..))),
        () = place.connection.close.notified() => false,
        () = is_stopped(stopped.clone()) => false,
    };
    if !started {
        return;
    }
    match tls {
        None => serve_requests(stream, router, place, stopped).await,
        Some(tls) => {
            if let Ok(Ok(stream)) = timeout(START, tls.accept(stream)).await {
                serve_requests(stream, router, place, stopped).await;
            }
        }
    }
}

async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    place: Place,
    stopped: watch::Receiver<bool>,
) {
    let connection = Arc::clone(&place.connection);
    let connections = Arc::clone(&place.connections);
    let max_requests = connections.max_requests;
    // Each request marks its connection as used.
    let router = router.layer(axum::middleware::from_fn(move |mut request: Request, next: axum::middleware::Next| {
        let in_use = InUse::new(&connection, &connections);
        async move {
            request.extensions_mut().insert(in_use.clone());
            let response = next.run(request).await;
            drop(in_use);
            response
        }
    }));
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(START);
    builder.http1().max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(ALIVE)
        .keep_alive_timeout(ALIVE)
        .max_concurrent_streams(max_requests)
        .max_header_list_size(MAX_HEADER_BYTES);
    let served = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut served = pin!(served);
    tokio::select! {
        _ = served.as_mut() => return,
        () = place.connection.close.notified() => {
            served.as_mut().graceful_shutdown();
            let _ = timeout(CLOSING, served).await;
            return;
        }
        () = is_stopped(stopped) => served.as_mut().graceful_shutdown(),
    }
    let _ = served.await;
}

/// Waits for the stop of the server.
async fn is_stopped(mut stopped: watch::Receiver<bool>) {
    // An error means that the server is gone, which is a stop too.
    let _ = stopped.wait_for(|&stopped| stopped).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connection_that_is_idle_for_longest_gives_its_place() {
        let metrics = Arc::new(Metrics::default());
        let connections = Connections::new(2, 32, Arc::clone(&metrics));
        let [first, second] = [(), ()].map(|()| connections.place().unwrap());
        let in_use = InUse::new(&first.connection, &connections);
        let third = connections.place().unwrap();
        assert!(!connections.open().contains_key(&second.id));
        let third_in_use = InUse::new(&third.connection, &connections);
        assert!(connections.place().is_none(), "all are in use");
        drop(third_in_use);
        drop(in_use);
        let _fourth = connections.place().unwrap();
        let open = connections.open();
        assert!(open.contains_key(&first.id) && !open.contains_key(&third.id));
        drop(open);
        assert_eq!(metrics.connections_refused.load(Ordering::Relaxed), 3);
    }
}
