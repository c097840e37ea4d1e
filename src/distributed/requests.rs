//! Requests to a worker: the plan of a task is stopped when the request that brought it ends.
//!
//! ```text
//! coordinator ══ plan, then nothing until the statement has ended ══▶ Requests ─▶ worker ─▶ session
//!                                                                       └─ Stop ───────────▶ its joins
//! ```
//!
//! The worker of datafusion-distributed keeps the plan of a task in a cache, which may drop it only at the
//! next request. A task that was spawned for the plan runs as long. And a join that finds no rows does
//! not notice that it was dropped. So the sign is set where the body of the request is dropped: the
//! statement has ended, its command was cancelled, or the connection broke.

use std::task::{Context, Poll};

use http_body_util::BodyExt;
use tokio::task::futures::TaskLocalFuture;
use tonic::body::Body;
use tonic::codegen::http::Request;
use tonic::server::NamedService;
use tower::Service;

use datafusion_tadoc::Stop;

tokio::task_local! {
    /// Sign of the request that is being answered.
    static STOP: Stop;
}

/// Returns the sign that is set when the request that is being answered ends.
pub(super) fn stop_of_request() -> Stop {
    STOP.try_with(Stop::clone).unwrap_or_default()
}

/// A service whose requests have a [`Stop`].
#[derive(Debug, Clone)]
pub(super) struct Requests<S> {
    pub(super) inner: S,
}

impl<S: NamedService> NamedService for Requests<S> {
    const NAME: &'static str = S::NAME;
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for Requests<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = TaskLocalFuture<Stop, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let stop = Stop::default();
        let at_end = SetAtEnd(stop.clone());
        let watched = |body: Body| {
            Body::new(body.map_frame(move |frame| {
                let _ = &at_end;
                frame
            }))
        };
        STOP.scope(stop, self.inner.call(request.map(watched)))
    }
}

/// Sets the sign when it is dropped.
struct SetAtEnd(Stop);

impl Drop for SetAtEnd {
    fn drop(&mut self) {
        self.0.set();
    }
}
