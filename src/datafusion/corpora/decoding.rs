//! Decoding on blocking threads, at most as many at a time as there are cores.
//!
//! ```text
//! buffered        1 1 1 1 3 3 .      two tasks at a time: the third one waits for the second,
//!                 2 . . . 4 4 .      because the first one is not done
//! in_order        1 1 1 1 . .
//!                 2 3 3 4 4
//! ```
//!
//! Many ranges are read at a time, because stores answer slowly. If each were decoded on a thread of its own, the
//! memory of all decoders would be in use at once, and no statement would be sooner.

use std::sync::LazyLock;

use datafusion::error::Result;
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryFutureExt, TryStreamExt, stream};
use tokio::sync::Semaphore;

use crate::errors::{datafusion_error, task_error};

/// One permit for each core.
static CORES: LazyLock<Semaphore> =
    LazyLock::new(|| Semaphore::new(std::thread::available_parallelism().map_or(1, usize::from)));

/// Returns the result of `decode`, which runs on a blocking thread when a core is free.
///
/// # Errors
/// Those of `decode`, as DataFusion knows them.
pub(super) async fn decoded<T: Send + 'static>(
    decode: impl FnOnce() -> tadoc::Result<T> + Send + 'static,
) -> Result<T> {
    // The semaphore is never closed.
    let permit = CORES.acquire().await.ok();
    let decoding = move || {
        let _permit = permit;
        decode()
    };
    tokio::task::spawn_blocking(decoding).await.map_err(task_error)?.map_err(datafusion_error)
}

/// Returns the results of `tasks`, in their order. At most `at_once` run at a time, and the next one begins when any is
/// done.
///
/// # Errors
/// The first error of a task. The others are dropped.
pub(super) fn in_order<'a, T: Send + 'a>(
    tasks: impl IntoIterator<Item = BoxFuture<'a, Result<T>>>,
    at_once: usize,
) -> BoxFuture<'a, Result<Vec<T>>> {
    // Boxed: the compiler cannot prove that closures over borrowed futures are `Send`.
    let numbered =
        |(number, task): (usize, BoxFuture<'a, Result<T>>)| task.map_ok(move |result| (number, result)).boxed();
    let numbered: Vec<_> = tasks.into_iter().enumerate().map(numbered).collect();
    let collect = async move {
        let mut done: Vec<(usize, T)> = stream::iter(numbered).buffer_unordered(at_once.max(1)).try_collect().await?;
        done.sort_unstable_by_key(|&(number, _)| number);
        Ok(done.into_iter().map(|(_, result)| result).collect())
    };
    collect.boxed()
}
