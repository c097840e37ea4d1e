//! Workers that answer with anything, on loopback: each block gets its own segment, or `None` and a reason.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use datafusion::execution::runtime_env::RuntimeEnv;
use futures::FutureExt;
use futures::future::{BoxFuture, pending};
use tadoc::build::{Block, CorpusBuilder, IngestOptions, RemoteBuilder};
use tadoc::segment::Paths;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response, StatusCode};
use tonic::codegen::{Bytes, Service};
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

use super::message::{BlockMessage, segment_message};
use super::service::body_from;
use super::{BUILD_PATH, BlockWorkers, PLACES_HEADER, SERVICE, with_blocks};
use crate::{Credentials, WorkerAccess, WorkerUrls, worker_of, worker_routes};

/// Behaviour of a worker.
#[derive(Debug, Clone)]
enum Answers {
    /// To each block with these bytes.
    Bytes(Vec<u8>),
    /// To each request with a status and a text.
    Refusal(StatusCode, &'static str),
    /// To each request with status 200 and no header, as a server of gRPC without the service.
    OtherService,
    /// With bytes that never end.
    Endless,
    /// Never, while the connection lives.
    Nothing,
}

#[derive(Debug, Clone)]
struct Fake(Answers);

impl NamedService for Fake {
    const NAME: &'static str = SERVICE;
}

impl Service<Request<Body>> for Fake {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut response = Response::new(Body::empty());
        response.headers_mut().insert(PLACES_HEADER, 1.into());
        let is_block = request.uri().path() == BUILD_PATH;
        match self.0.clone() {
            Answers::Bytes(bytes) if is_block => *response.body_mut() = body_from([bytes.into()]),
            Answers::Refusal(status, text) => {
                *response.status_mut() = status;
                *response.body_mut() = body_from([text.into()]);
            }
            Answers::OtherService => response.headers_mut().clear(),
            Answers::Endless if is_block => {
                let frame = || Ok::<_, Infallible>(http_body::Frame::data(Bytes::from_static(&[0; 1 << 16])));
                let frames = futures::stream::repeat_with(frame);
                *response.body_mut() = Body::new(http_body_util::StreamBody::new(frames));
            }
            Answers::Nothing if is_block => return pending().boxed(),
            Answers::Bytes(_) | Answers::Endless | Answers::Nothing => {}
        }
        Box::pin(async { Ok(response) })
    }
}

/// Servers, and a client of them.
struct Scene {
    _threads: Runtime,
    workers: BlockWorkers,
    told: Arc<Mutex<Vec<String>>>,
}

impl Scene {
    fn new(all: Vec<Routes>) -> Self {
        let threads = Runtime::new().unwrap();
        let mut urls = Vec::new();
        for routes in all {
            let listener = threads.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
            urls.push(format!("http://{}", listener.local_addr().unwrap()));
            threads.spawn(Server::builder().add_routes(routes).serve_with_incoming(TcpIncoming::from(listener)));
        }
        let told = Arc::new(Mutex::new(Vec::new()));
        let reports = Arc::clone(&told);
        let urls: WorkerUrls = urls.join(",").parse().unwrap();
        let workers = BlockWorkers::new(&urls, move |text| reports.lock().unwrap().push(text.to_owned())).unwrap();
        Self { _threads: threads, workers, told }
    }

    fn told(&self) -> String {
        self.told.lock().unwrap().join("\n")
    }
}

fn fake(answers: Answers) -> Routes {
    Routes::new(Fake(answers))
}

fn worker() -> Routes {
    let runtime: Arc<RuntimeEnv> = Arc::default();
    let worker = worker_of(Arc::clone(&runtime), Credentials::default(), WorkerAccess::Read);
    with_blocks(worker_routes(worker), runtime)
}

fn block(text: &str) -> Arc<Block> {
    let mut paths = Paths::default();
    paths.push("a");
    Arc::new(Block::new(text.as_bytes().to_vec(), vec![text.len()], paths).unwrap())
}

/// Returns the message of the segment of `block`, as a worker makes it.
fn answer(block: &Arc<Block>, checksum: u32) -> Vec<u8> {
    segment_message(checksum, Block::clone(block).build(&IngestOptions::default()).unwrap()).concat()
}

#[test]
fn answers_that_are_no_segments_are_refused() {
    let options = IngestOptions::default();
    let own = block("to be or not");
    let twin = block("to be or nut");
    let checksum = BlockMessage::new(&own, &options).checksum;
    let right = answer(&own, checksum);
    let flipped = |at: usize| {
        let mut bytes = right.clone();
        bytes[at] ^= 1;
        bytes
    };
    let longer = answer(&block("to be or not to be"), checksum);
    for (answers, said) in [
        (Answers::Bytes(Vec::new()), "expected 8 more bytes"),
        (Answers::Bytes(b"HTTP and other bytes of no meaning".to_vec()), "expected the magic TADOCSEG"),
        (Answers::Bytes(flipped(0)), "expected the magic TADOCSEG"),
        (Answers::Bytes(flipped(8)), "version 1 of the message"),
        (Answers::Bytes(flipped(12)), "checksum"),
        (Answers::Bytes(flipped(right.len() / 2)), "its answer"),
        (Answers::Bytes(flipped(right.len() - 20)), "its answer"),
        (Answers::Bytes(right[..right.len() - 1].to_vec()), "its answer"),
        (Answers::Bytes([&right[..], &[0]].concat()), "its answer"),
        (Answers::Bytes(answer(&twin, BlockMessage::new(&twin, &options).checksum)), "checksum"),
        (Answers::Bytes(longer), "expected a segment with 12 bytes of text, got 18"),
        (Answers::Endless, "bytes, got more"),
        (Answers::OtherService, "it builds no blocks; run the same version"),
        (Answers::Refusal(StatusCode::UNAUTHORIZED, "the token is missing or wrong"), "the token is missing or wrong"),
        (Answers::Refusal(StatusCode::PRECONDITION_FAILED, "the worker is tadoc 1"), "the worker is tadoc 1"),
        (Answers::Refusal(StatusCode::INTERNAL_SERVER_ERROR, ""), "500"),
    ] {
        let scene = Scene::new(vec![fake(answers.clone())]);
        assert!(scene.workers.build(&own, &options).is_none(), "{said}");
        let told = scene.told();
        assert!(told.starts_with("worker http://127.0.0.1:") && told.contains(said), "{said}: {told}");
        assert_eq!(told.lines().count(), 1, "{told}");
        // Another worker builds the block.
        let scene = Scene::new(vec![fake(answers), worker()]);
        assert!(scene.workers.build(&own, &options).is_some(), "{said}: {}", scene.told());
    }
    let scene = Scene::new(vec![fake(Answers::Bytes(right))]);
    assert!(scene.workers.build(&own, &options).is_some());
    assert_eq!(scene.told(), "");
}

#[test]
fn a_worker_without_a_place_is_no_fault() {
    let busy = Answers::Refusal(StatusCode::SERVICE_UNAVAILABLE, "all places are taken");
    let scene = Scene::new(vec![fake(busy.clone()), worker()]);
    assert!(scene.workers.build(&block("to be"), &IngestOptions::default()).is_some());
    let alone = Scene::new(vec![fake(busy)]);
    assert!(alone.workers.build(&block("to be"), &IngestOptions::default()).is_none());
    assert_eq!((scene.told(), alone.told()), (String::new(), String::new()));
}

#[test]
fn a_worker_that_never_answers_is_slow() {
    let scene = Scene::new(vec![fake(Answers::Nothing)]);
    let start = Instant::now();
    assert!(scene.workers.build(&block("to be"), &IngestOptions::default()).is_none());
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert!(scene.told().contains("no segment after 10 s"), "{}", scene.told());
}

#[test]
fn one_of_many_workers_that_are_right_suffices() {
    let options = IngestOptions { block_bytes: 500, ..IngestOptions::default() };
    let file = |workers: Option<Arc<BlockWorkers>>| {
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        if let Some(workers) = workers {
            builder = builder.with_remote(workers);
        }
        for number in 0..60 {
            builder.push_document(&format!("{number}.txt"), "to be or not ".repeat(number).as_bytes()).unwrap();
        }
        builder.finish(None).unwrap()
    };
    let (alone, _) = file(None);
    let refusal = Answers::Refusal(StatusCode::PRECONDITION_FAILED, "of another version");
    let Scene { _threads, workers, told } =
        Scene::new(vec![fake(Answers::Bytes(b"garbage".to_vec())), worker(), fake(refusal)]);
    let (together, report) = file(Some(Arc::new(workers)));
    assert!(together == alone);
    assert_eq!(report.num_remote, report.footer.segments.len() as u64);
    assert!(report.num_remote > 20);
    assert_eq!(told.lock().unwrap().len(), 2);
}
