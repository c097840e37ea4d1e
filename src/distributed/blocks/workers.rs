//! The ingest's side: it sends blocks to workers and takes segments.
//!
//! ```text
//! block ─▶ the worker with most free places ═▶ segment
//!            │ fault: it rests                └ damaged, foreign, too large: a fault
//!            ├─▶ another worker that does not rest ═▶ …
//!            └─▶ none is left: None, and the ingest builds the block itself
//! ```
//!
//! A fault is a worker that is gone, silent, slow, of another version, or asks for another token, and any answer that
//! is no segment of the block. It is reported once, and the worker rests: 5 seconds, and twice as long after each
//! further fault, so that one that is started again is used again. A worker without a free place is no fault, and rests
//! for a second.
//!
//! *Slow* is a worker that takes four times as long as blocks of this length took so far, or as they take at 1 MiB a
//! second, and 10 seconds more. *Silent* is one that does not answer the questions of the connection for 10 to 15
//! seconds. No request waits longer, so an ingest never hangs. A block is never lost: `None` is the answer to every
//! fault.

use std::collections::HashSet;
use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use datafusion_tadoc::travel::shown;
use futures::future::join_all;
use http_body_util::BodyExt;
use tadoc::build::{Block, IngestOptions, RemoteBuilder};
use tadoc::format::EncodedSegment;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, StatusCode};
use tower::ServiceExt;
use url::Url;

use super::message::{BlockMessage, max_segment_bytes, read_segment};
use super::service::body_from;
use super::{BUILD_PATH, LENGTH_HEADER, PLACES_HEADER, PLACES_PATH};
use crate::connections::{Connections, SILENT_FOR, with_causes};
use crate::workers::WorkerUrls;

/// Places of a worker that has not told their number.
const USUAL_PLACES: usize = 3;
/// Most places that a worker may tell.
const MAX_PLACES: usize = 64;
/// Most blocks that all workers have at a time. Each has a thread here.
const MAX_BLOCKS: usize = 512;
/// Blocks of the greatest size that each worker may have at a time: one is built, and one is on its way.
const WHOLE_BLOCKS: usize = 2;
/// Rest of a worker without a free place.
const BUSY: Duration = Duration::from_secs(1);
/// Rest after the first fault.
const FIRST_REST: Duration = Duration::from_secs(5);
/// Number of times that the rest is doubled.
const MAX_DOUBLED: u32 = 6;
/// Bytes a second below which no worker is taken for slow before others were measured.
const LEAST_RATE: f64 = (1 << 20) as f64;
/// Times as long as usual that a worker may take.
const SLACK: f64 = 4.0;
/// Most bytes of the text of a refusal.
const MAX_TEXT_BYTES: usize = 4 << 10;
/// Threads of the connections.
const NUM_THREADS: usize = 2;

/// Workers that build the blocks of an ingest. They are left out while they fail, and may all fail.
///
/// ```no_run
/// use std::sync::Arc;
/// use datafusion_tadoc_distributed::{BlockWorkers, WorkerUrls};
/// use tadoc::build::{CorpusBuilder, IngestOptions};
///
/// let workers: WorkerUrls = "http://one:8816,http://two:8816".parse()?;
/// let workers = BlockWorkers::new(&workers, |fault| eprintln!("warning: {fault}"))?;
/// let builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// let mut builder = builder.with_remote(Arc::new(workers));
/// builder.push_document("a.txt", b"to be or not to be")?;
/// # builder.finish(None)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BlockWorkers {
    urls: Vec<Url>,
    connections: Connections,
    /// Dropped without waiting.
    threads: Option<Runtime>,
    report: Box<dyn Fn(&str) + Send + Sync>,
    known: Mutex<Known>,
    is_freed: Condvar,
}

impl fmt::Debug for BlockWorkers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let urls: Vec<&str> = self.urls.iter().map(Url::as_str).collect();
        f.debug_struct("BlockWorkers").field("urls", &urls).finish_non_exhaustive()
    }
}

/// State of all workers.
#[derive(Debug, Default)]
struct Known {
    workers: Vec<State>,
    /// Bytes of the blocks that were built so far.
    built_bytes: f64,
    /// Seconds that they took, from the request to the segment.
    built_s: f64,
}

/// State of a worker.
#[derive(Debug)]
struct State {
    num_places: usize,
    num_taken: usize,
    rests_until: Option<Instant>,
    /// Number of faults since it built a block.
    num_faults: u32,
    /// Faults that were reported.
    told: HashSet<String>,
}

/// A reason why a worker has not built a block.
#[derive(Debug)]
enum Fault {
    /// It has no free place.
    Busy,
    /// Anything else, with a text.
    Failed(String),
}

impl BlockWorkers {
    /// Asks all `workers` for their number of places. `report` gets a text for each fault, now and later.
    ///
    /// # Errors
    /// The system cannot start threads.
    pub fn new(workers: &WorkerUrls, report: impl Fn(&str) + Send + Sync + 'static) -> io::Result<Self> {
        let threads = Builder::new_multi_thread().worker_threads(NUM_THREADS).enable_all().build()?;
        let state = |_: &Url| State {
            num_places: USUAL_PLACES,
            num_taken: 0,
            rests_until: None,
            num_faults: 0,
            told: HashSet::new(),
        };
        let urls = workers.urls().to_vec();
        let known = Known { workers: urls.iter().map(state).collect(), ..Known::default() };
        let asked = Self {
            urls,
            connections: Connections::new(workers.credentials().clone()),
            threads: Some(threads),
            report: Box::new(report),
            known: Mutex::new(known),
            is_freed: Condvar::new(),
        };
        let answers = asked.wait(join_all((0..asked.urls.len()).map(|at| asked.places(at))));
        for (at, places) in answers.into_iter().flatten().enumerate() {
            match places {
                Ok(num_places) => asked.known().workers[at].num_places = num_places,
                Err(fault) => asked.rest(at, fault),
            }
        }
        Ok(asked)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for `work` on the threads of the connections. Returns `None` after they have ended.
    fn wait<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        self.threads.as_ref().map(|threads| threads.block_on(work))
    }

    /// Asks the worker `at` for its number of places.
    async fn places(&self, at: usize) -> Result<usize, Fault> {
        let asked = timeout(2 * SILENT_FOR, self.ask(at, PLACES_PATH, 0, Body::empty())).await;
        let (headers, _) = asked.unwrap_or_else(|_| Err(Fault::Failed("no answer".to_owned())))?;
        let places = headers.get(PLACES_HEADER).and_then(|places| places.to_str().ok()?.parse::<usize>().ok());
        Ok(places.unwrap_or(USUAL_PLACES).clamp(1, MAX_PLACES))
    }

    /// Sends a request, and returns the head and body of an answer with the status 200 of this service.
    async fn ask(&self, at: usize, path: &str, len_bytes: usize, body: Body) -> Result<(HeaderMap, Body), Fault> {
        let channel = self.connections.channel(&self.urls[at]).await;
        let channel = channel.map_err(|error| Fault::Failed(error.message().into_owned()))?;
        let request = Request::post(path).header(LENGTH_HEADER, len_bytes).body(body);
        let request = request.map_err(|error| Fault::Failed(error.to_string()))?;
        let response = channel.oneshot(request).await.map_err(|error| Fault::Failed(with_causes(&error)))?;
        let (head, body) = response.into_parts();
        let is_service = head.headers.contains_key(PLACES_HEADER);
        match head.status {
            StatusCode::OK if is_service => Ok((head.headers, body)),
            StatusCode::OK => {
                let text = "it builds no blocks; run the same version of tadoc on all machines";
                Err(Fault::Failed(text.to_owned()))
            }
            StatusCode::SERVICE_UNAVAILABLE if is_service => Err(Fault::Busy),
            status => {
                let text = received(body, MAX_TEXT_BYTES).await.unwrap_or_default();
                let text = String::from_utf8_lossy(&text).into_owned();
                Err(Fault::Failed(if text.is_empty() { status.to_string() } else { shown(&text).into_owned() }))
            }
        }
    }

    /// Lets the worker `at` build `block`.
    fn build_at(
        &self,
        at: usize,
        message: &BlockMessage,
        block: &Block,
        options: &IngestOptions,
    ) -> Result<EncodedSegment, Fault> {
        let patience = self.known().patience(message.len());
        let work = async {
            let body = body_from([message.text.clone(), message.rest.clone()]);
            let (_, body) = self.ask(at, BUILD_PATH, message.len(), body).await?;
            received(body, max_segment_bytes(block)).await
        };
        let answer = self.wait(async { timeout(patience, work).await });
        let slow = || Fault::Failed(format!("no segment after {} s", patience.as_secs()));
        let answer = answer.and_then(Result::ok).unwrap_or_else(|| Err(slow()))?;
        let segment = read_segment("its answer", &answer, (block, options, message.checksum));
        segment.map_err(|error| Fault::Failed(error.to_string()))
    }

    /// Waits for a place at a worker that is not `tried` and does not rest. Returns `None` if there is no such worker.
    fn take_place(&self, tried: &[bool]) -> Option<usize> {
        let mut known = self.known();
        loop {
            let now = Instant::now();
            let at = known.freest(tried, now)?;
            let worker = &mut known.workers[at];
            if worker.num_taken < worker.num_places {
                worker.num_taken += 1;
                return Some(at);
            }
            // A rest may end meanwhile.
            let waited = self.is_freed.wait_timeout(known, BUSY);
            known = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn free_place(&self, at: usize) {
        self.known().workers[at].num_taken -= 1;
        self.is_freed.notify_all();
    }

    /// Lets the worker `at` rest, and reports why.
    fn rest(&self, at: usize, fault: Fault) {
        let now = Instant::now();
        let mut known = self.known();
        let worker = &mut known.workers[at];
        let Fault::Failed(text) = fault else {
            worker.rests_until = Some(now + BUSY);
            return;
        };
        // The blocks that it had at one time have the same fault.
        let is_first = !worker.rests(now);
        if is_first {
            worker.rests_until = Some(now + FIRST_REST * 2u32.pow(worker.num_faults.min(MAX_DOUBLED)));
            worker.num_faults += 1;
        }
        let is_new = is_first && worker.told.insert(text.clone());
        drop(known);
        let url = &self.urls[at];
        self.connections.forget(url);
        if is_new {
            let name = format!("worker {url}: ");
            let text = text.strip_prefix(&name).unwrap_or(&text);
            (self.report)(&format!("{name}{text}; others build its blocks, or this process"));
        }
    }

    fn remember(&self, at: usize, len_bytes: usize, took: Duration) {
        let mut known = self.known();
        known.built_bytes += len_bytes as f64;
        known.built_s += took.as_secs_f64();
        known.workers[at].num_faults = 0;
    }
}

impl Known {
    /// Returns the time that a block of `len_bytes` may take.
    fn patience(&self, len_bytes: usize) -> Duration {
        let rate = if self.built_s > 0.0 { self.built_bytes / self.built_s } else { 0.0 };
        SILENT_FOR + Duration::from_secs_f64(SLACK * len_bytes as f64 / rate.max(LEAST_RATE))
    }

    /// Returns the worker with most free places among those that are not `tried` and do not rest.
    fn freest(&self, tried: &[bool], now: Instant) -> Option<usize> {
        let may_build = |at: &usize| !tried[*at] && !self.workers[*at].rests(now);
        let num_free = |at: &usize| {
            let worker = &self.workers[*at];
            worker.num_places.saturating_sub(worker.num_taken)
        };
        (0..self.workers.len()).rev().filter(may_build).max_by_key(num_free)
    }
}

impl State {
    fn rests(&self, now: Instant) -> bool {
        self.rests_until.is_some_and(|until| until > now)
    }
}

impl RemoteBuilder for BlockWorkers {
    fn num_places(&self) -> usize {
        self.known().workers.iter().map(|worker| worker.num_places).sum::<usize>().min(MAX_BLOCKS)
    }

    fn num_whole_blocks(&self) -> usize {
        WHOLE_BLOCKS * self.urls.len()
    }

    fn build(&self, block: &Arc<Block>, options: &IngestOptions) -> Option<EncodedSegment> {
        let message = BlockMessage::new(block, options);
        let mut tried = vec![false; self.urls.len()];
        while let Some(at) = self.take_place(&tried) {
            let started = Instant::now();
            let built = self.build_at(at, &message, block, options);
            let fault = match built {
                Ok(segment) => {
                    self.remember(at, message.len(), started.elapsed());
                    self.free_place(at);
                    return Some(segment);
                }
                Err(fault) => fault,
            };
            tried[at] = true;
            self.rest(at, fault);
            self.free_place(at);
        }
        None
    }
}

impl Drop for BlockWorkers {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.take() {
            // Requests that are under way are of no use any more.
            threads.shutdown_background();
        }
    }
}

/// Reads a body of at most `max_bytes`.
async fn received(mut body: Body, max_bytes: usize) -> Result<Vec<u8>, Fault> {
    let mut received = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| Fault::Failed(with_causes(&error)))?;
        let data = frame.into_data().unwrap_or_default();
        if data.len() > max_bytes - received.len() {
            return Err(Fault::Failed(format!("expected an answer of at most {max_bytes} bytes, got more")));
        }
        let has_room = received.try_reserve(data.len());
        has_room.map_err(|error| Fault::Failed(format!("its answer: {error}")))?;
        received.extend_from_slice(&data);
    }
    Ok(received)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(num_places: usize, num_taken: usize) -> State {
        State { num_places, num_taken, rests_until: None, num_faults: 0, told: HashSet::new() }
    }

    #[test]
    fn the_freest_worker_that_does_not_rest_is_next() {
        let now = Instant::now();
        let mut known = Known { workers: vec![state(3, 2), state(9, 4), state(3, 0)], ..Known::default() };
        assert_eq!(known.freest(&[false; 3], now), Some(1));
        assert_eq!(known.freest(&[false, true, false], now), Some(2));
        known.workers[2].rests_until = Some(now + BUSY);
        assert_eq!(known.freest(&[false, true, false], now), Some(0));
        assert_eq!(known.freest(&[true, true, false], now), None);
        assert_eq!(known.freest(&[true, true, false], now + BUSY), Some(2));
    }

    #[test]
    fn patience_follows_what_blocks_took() {
        let mut known = Known::default();
        let len_bytes = 8 << 20;
        assert_eq!(known.patience(0), SILENT_FOR);
        assert_eq!(known.patience(len_bytes), SILENT_FOR + Duration::from_secs(32));
        (known.built_bytes, known.built_s) = ((64 << 20) as f64, 8.0);
        assert_eq!(known.patience(len_bytes), SILENT_FOR + Duration::from_secs(4));
        // A small block that took long does not make workers patient for ever.
        (known.built_bytes, known.built_s) = (10.0, 8.0);
        assert_eq!(known.patience(len_bytes), SILENT_FOR + Duration::from_secs(32));
    }

    #[test]
    fn a_worker_that_is_gone_rests_and_is_reported_once() {
        let workers: WorkerUrls = "http://127.0.0.1:9,http://127.0.0.1:10".parse().unwrap();
        let told = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&told);
        let workers = BlockWorkers::new(&workers, move |text| reports.lock().unwrap().push(text.to_owned())).unwrap();
        assert_eq!(told.lock().unwrap().len(), 2);
        assert!(told.lock().unwrap()[0].starts_with("worker http://127.0.0.1:9/: "), "{told:?}");
        let block = Arc::new(Block::default());
        assert!(workers.build(&block, &IngestOptions::default()).is_none());
        for worker in &mut workers.known().workers {
            worker.rests_until = None;
        }
        assert!(workers.build(&block, &IngestOptions::default()).is_none());
        let known = workers.known();
        assert_eq!(told.lock().unwrap().len(), 2, "{told:?}");
        assert!(known.workers.iter().all(|worker| worker.num_taken == 0 && worker.num_faults == 2));
    }
}
