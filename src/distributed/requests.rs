//! Requests that a worker answers: the sign of their end, and the scans of their tasks.
//!
//! ```text
//! coordinator ══ plan, then nothing until the statement has ended ══▶ Requests ─▶ worker ─▶ session
//!                                                                       ├─ Scans ──────────▶ its scans
//!                                                                       └─ Stop ───────────▶ its joins
//! ```
//!
//! The worker of datafusion-distributed keeps the plan of a task in a cache, which may drop it only at the
//! next request. A task that was spawned for the plan runs as long. And a join that finds no rows does
//! not notice that it was dropped. So a sign is set where the body of the request is dropped: the
//! statement has ended, its command was cancelled, or the connection broke.
//!
//! The engine makes a session for each task, and does not tell it which task it is. The header of the request does.

use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion_tadoc::Stop;
use http_body_util::BodyExt;
use tokio::task::futures::TaskLocalFuture;
use tonic::body::Body;
use tonic::codegen::http::Request;
use tonic::server::NamedService;
use tower::Service;

use crate::progress::{AllScans, Scans};

tokio::task_local! {
    /// State of the request that is being answered.
    static REQUEST: RequestState;
}

/// State of a request.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestState {
    /// Sign that is set when the request ends.
    stop: Stop,
    /// Scans of its task, if it names one.
    scans: Option<Arc<Scans>>,
}

/// Returns the sign that is set when the request that is being answered ends.
pub(super) fn stop_of_request() -> Stop {
    REQUEST.try_with(|request| request.stop.clone()).unwrap_or_default()
}

/// Returns the scans of the task that the request that is being answered names.
pub(super) fn scans_of_request() -> Option<Arc<Scans>> {
    REQUEST.try_with(|request| request.scans.clone()).ok().flatten()
}

/// A service whose requests have a [`Stop`], and the scans of their tasks.
#[derive(Debug, Clone)]
pub(super) struct Requests<S> {
    pub(super) inner: S,
    pub(super) scans: AllScans,
}

impl<S: NamedService> NamedService for Requests<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for Requests<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = TaskLocalFuture<RequestState, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let state = RequestState { stop: Stop::default(), scans: self.scans.for_task(request.headers()) };
        let at_end = SetAtEnd(state.stop.clone());
        let watched = |body: Body| {
            Body::new(body.map_frame(move |frame| {
                let _ = &at_end;
                frame
            }))
        };
        REQUEST.scope(state, self.inner.call(request.map(watched)))
    }
}

/// Sets the sign when it is dropped.
struct SetAtEnd(Stop);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.set();
    }
}
