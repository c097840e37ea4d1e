//! The worker's side: it builds the segments of blocks that it is sent.
//!
//! ```text
//! request   version? ─▶ length: memory? ─▶ place? ─▶ bytes ─▶ block ─▶ blocking thread ─▶ segment ══▶
//!             412          503               503       408      400         422
//! ```
//!
//! The worker reads and writes no file for it, and keeps nothing of it. Version, memory and place are checked
//! before the text is read. So a sender that is refused has sent little, and builds the block elsewhere. Memory is
//! reserved in the pool of the worker's statements, as `COPY` reserves it: six bytes for each byte of the message.
//! A sender that is silent loses its place, and so does one that sends more than it said. A request that is dropped
//! while its segment is built keeps the place until it is complete, because a core that builds cannot be stopped.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use futures::future::BoxFuture;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use tadoc::build::usual_blocks_at_once;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response, StatusCode};
use tonic::codegen::{Bytes, Service};
use tonic::server::NamedService;
use tonic::service::Routes;

use super::message::{read_block, segment_message};
use super::{BUILD_PATH, LENGTH_HEADER, PLACES_HEADER, PLACES_PATH, SERVICE};
use crate::connections::{SILENT_FOR, check_version};

/// Bytes of memory that are reserved for each byte of a message.
const MEMORY_FACTOR: usize = 6;
/// Places for each block that a process builds at a time: two pieces of blocks, and one on its way.
const PLACES_PER_BLOCK: usize = 3;

/// Lets the worker behind `routes` build blocks for `tadoc ingest --workers`, in the memory of `runtime`.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::runtime_env::RuntimeEnv;
/// use datafusion_tadoc_distributed::{Credentials, WorkerAccess, with_blocks, worker_of, worker_routes};
///
/// let runtime: Arc<RuntimeEnv> = Arc::default();
/// let worker = worker_of(Arc::clone(&runtime), Credentials::default(), WorkerAccess::Read);
/// let routes = with_blocks(worker_routes(worker), runtime);
/// # drop(routes);
/// ```
pub fn with_blocks(routes: Routes, runtime: Arc<RuntimeEnv>) -> Routes {
    let num_places = PLACES_PER_BLOCK * usual_blocks_at_once();
    routes.add_service(BlockService { runtime, num_places, places: Arc::new(Semaphore::new(num_places)) })
}

/// The service of a worker that builds blocks.
#[derive(Debug, Clone)]
struct BlockService {
    runtime: Arc<RuntimeEnv>,
    num_places: usize,
    places: Arc<Semaphore>,
}

impl NamedService for BlockService {
    const NAME: &'static str = SERVICE;
}

impl Service<Request<Body>> for BlockService {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (status, body) = match service.answer(request).await {
                Ok(body) => (StatusCode::OK, body),
                Err((status, text)) => (status, body_from([text.into()])),
            };
            let mut response = Response::new(body);
            *response.status_mut() = status;
            response.headers_mut().insert(PLACES_HEADER, service.num_places.into());
            Ok(response)
        })
    }
}

/// A status, and a text that says why.
type Refusal = (StatusCode, String);

impl BlockService {
    async fn answer(&self, request: Request<Body>) -> Result<Body, Refusal> {
        let (head, body) = request.into_parts();
        let version = check_version(&head.headers);
        version.map_err(|error| (StatusCode::PRECONDITION_FAILED, error.message().into_owned()))?;
        match head.uri.path() {
            PLACES_PATH => return Ok(Body::empty()),
            BUILD_PATH => {}
            other => return Err((StatusCode::NOT_FOUND, format!("expected {BUILD_PATH}, got {other}"))),
        }
        let len_bytes = length_of(&head.headers)?;
        let busy = |text: String| (StatusCode::SERVICE_UNAVAILABLE, text);
        let memory = MemoryConsumer::new("TadocBlock").register(&self.runtime.memory_pool);
        let reserved = memory.try_grow(len_bytes.saturating_mul(MEMORY_FACTOR));
        reserved.map_err(|error| busy(error.message().into_owned()))?;
        let place = Arc::clone(&self.places).try_acquire_owned();
        let place = place.map_err(|_| busy(format!("all {} places for blocks are taken", self.num_places)))?;
        let message = received(body, len_bytes).await?;
        let built = spawn_blocking(move || build(message, (memory, place))).await;
        built.unwrap_or_else(|error| Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())))
    }
}

/// Returns the length that a request says its block has.
fn length_of(headers: &HeaderMap) -> Result<usize, Refusal> {
    let said = headers.get(LENGTH_HEADER).and_then(|said| said.to_str().ok()?.parse().ok());
    said.ok_or_else(|| (StatusCode::LENGTH_REQUIRED, format!("expected the header {LENGTH_HEADER} with a number")))
}

/// Reads `len_bytes` of a body, and no more. Takes memory as they arrive.
async fn received(mut body: Body, len_bytes: usize) -> Result<Vec<u8>, Refusal> {
    let wrong = |text: String| (StatusCode::BAD_REQUEST, text);
    let mut message = Vec::new();
    loop {
        let frame = timeout(SILENT_FOR, body.frame()).await;
        let frame =
            frame.map_err(|_| (StatusCode::REQUEST_TIMEOUT, "the rest of the block did not come".to_owned()))?;
        let Some(frame) = frame else { break };
        let data = frame.map_err(|error| wrong(error.to_string()))?.into_data().unwrap_or_default();
        if data.len() > len_bytes - message.len() {
            return Err(wrong(format!("expected {len_bytes} bytes, got more")));
        }
        let has_room = message.try_reserve(data.len());
        has_room.map_err(|error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
        message.extend_from_slice(&data);
    }
    if message.len() == len_bytes {
        return Ok(message);
    }
    Err(wrong(format!("expected {len_bytes} bytes, got {}", message.len())))
}

/// Builds the segment of a block. Keeps its memory and its place until it is complete.
fn build(message: Vec<u8>, _held: (MemoryReservation, OwnedSemaphorePermit)) -> Result<Body, Refusal> {
    let block = read_block(message);
    let (block, options, checksum) = block.map_err(|error| (StatusCode::BAD_REQUEST, error.to_string()))?;
    let file = block.build(&options);
    let file = file.map_err(|error| (StatusCode::UNPROCESSABLE_ENTITY, error.to_string()))?;
    Ok(body_from(segment_message(checksum, file)))
}

/// Returns a body of `parts`.
pub(super) fn body_from<const N: usize>(parts: [Bytes; N]) -> Body {
    let frames = parts.map(|part| Ok::<_, Infallible>(Frame::data(part)));
    Body::new(StreamBody::new(futures::stream::iter(frames)))
}
