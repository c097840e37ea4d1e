//! Retries of failed operations: their number and the waits between them.
//!
//! Waits double up to a limit. Each wait is drawn between half of its length and all of it, so that
//! writers that collided once do not collide at every attempt (Brooker, "Exponential backoff and
//! jitter"). Stores that retry by themselves may take minutes for one attempt (`object_store`: 10
//! times or 3 minutes). After that there are no further attempts.
//!
//! # Threads
//!
//! Threads for blocking work and waiting, so that neither needs a runtime nor blocks the polling
//! thread.
//!
//! A thread costs much less than a sync of a disk.

use std::panic::resume_unwind;
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use tadoc::error::{Error, Result};

use crate::names::CommitId;
use crate::storage::{StorageError, StorageResult};

/// Time after the first attempt from which no further attempt begins.
const MAX_TIME: Duration = Duration::from_secs(180);

/// Limits for retries of storage operations, and of commits after a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Number of attempts, the first included. At least 1.
    pub max_attempts: u32,
    /// First wait. Each further wait is twice as long.
    pub first_wait: Duration,
    /// Longest wait.
    pub max_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 12, first_wait: Duration::from_millis(20), max_wait: Duration::from_secs(5) }
    }
}

impl RetryPolicy {
    /// Returns the wait after `num_failed` attempts, before jitter.
    fn wait(&self, num_failed: u32) -> Duration {
        let doubled = self.first_wait.saturating_mul(1 << num_failed.saturating_sub(1).min(31));
        doubled.min(self.max_wait)
    }
}

/// State of the attempts at one operation.
#[derive(Debug)]
pub(super) struct Attempts {
    policy: RetryPolicy,
    num_failed: u32,
    started: Instant,
}

impl Attempts {
    pub(super) fn new(policy: RetryPolicy) -> Self {
        Self { policy, num_failed: 0, started: Instant::now() }
    }

    /// Counts a failed attempt. If another attempt is allowed, waits and returns true.
    pub(super) async fn again(&mut self) -> bool {
        self.num_failed += 1;
        if self.num_failed >= self.policy.max_attempts || self.started.elapsed() >= MAX_TIME {
            return false;
        }
        let longest = self.policy.wait(self.num_failed);
        // Without random numbers, or without a thread to wait on, the next attempt comes sooner.
        let random = CommitId::random().map_or(0, |id| u32::from(id.as_bytes()[0]));
        let _waited = wait(longest / 2 + longest / 512 * random).await;
        true
    }
}

/// Calls `attempt` until it succeeds, fails for good, or has been called as often as the policy
/// allows.
pub(super) async fn retrying<T, F: Future<Output = StorageResult<T>>>(
    policy: RetryPolicy,
    mut attempt: impl FnMut() -> F,
) -> StorageResult<T> {
    let mut attempts = Attempts::new(policy);
    loop {
        match attempt().await {
            Err(StorageError::Transient(cause)) => {
                if !attempts.again().await {
                    return Err(StorageError::Transient(cause));
                }
            }
            done => return done,
        }
    }
}

/// Runs `work` on a thread of its own. The work runs to its end even if nobody waits for it any
/// more.
///
/// # Errors
/// [`Error::Io`] if the system cannot start more threads.
pub(super) async fn on_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    let (sender, receiver) = oneshot::channel();
    let thread = std::thread::Builder::new().name("tadoc-living".into()).spawn(move || {
        // The receiver is gone if nobody waits.
        let _unheard = sender.send(work());
    });
    let thread = thread.map_err(|e| Error::io("starting a thread", e))?;
    match receiver.await {
        Ok(answer) => Ok(answer),
        Err(_) => match thread.join() {
            Err(panic) => resume_unwind(panic),
            Ok(()) => Err(Error::Cancelled),
        },
    }
}

/// Runs `work`, which uses rayon's workers, on a thread of its own. If the caller is one of these
/// workers, the work gets a pool of its own, because the caller could be the last free worker.
///
/// # Errors
/// The errors of [`on_thread`], and [`Error::External`] if no pool can be started.
pub(super) async fn on_computing_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    if rayon::current_thread_index().is_none() {
        return on_thread(work).await;
    }
    let num_threads = rayon::current_num_threads();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build();
    let pool = pool.map_err(|e| Error::external("starting threads", e))?;
    on_thread(move || pool.install(work)).await
}

/// Waits for `duration`.
///
/// # Errors
/// The errors of [`on_thread`].
pub(super) async fn wait(duration: Duration) -> Result<()> {
    if duration.is_zero() { Ok(()) } else { on_thread(move || std::thread::sleep(duration)).await }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_limit() {
        let policy = RetryPolicy::default();
        let waits: Vec<u128> = [1, 2, 3, 20, 300].map(|n| policy.wait(n).as_millis()).into();
        assert_eq!(waits, [20, 40, 80, 5000, 5000]);
    }

    #[test]
    fn only_transient_failures_are_tried_again() {
        let policy = RetryPolicy { max_attempts: 3, first_wait: Duration::ZERO, ..Default::default() };
        for (error, expected) in [
            (|| StorageError::Transient("busy".into()), 3),
            (|| StorageError::Permanent("refused".into()), 1),
            (|| StorageError::NotFound, 1),
        ] as [(fn() -> StorageError, u32); 3]
        {
            let mut num_calls = 0;
            let attempt = || {
                num_calls += 1;
                std::future::ready(Err::<(), _>(error()))
            };
            let result = futures::executor::block_on(retrying(policy, attempt));
            assert!(result.is_err());
            assert_eq!(num_calls, expected);
        }
    }
}
