//! Retries of failed operations: their number and the waits between them.
//!
//! Waits double up to a limit. Each wait is drawn between half of its length and all of it, so that
//! writers that collided once do not collide at every attempt (Brooker, "Exponential backoff and
//! jitter"). Stores that retry by themselves may take minutes for one attempt (`object_store`: 10
//! times or 3 minutes). After that there are no further attempts.

use std::time::{Duration, Instant};

use super::names::CommitId;
use super::storage::{StorageError, StorageResult};
use super::thread;

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
        Self {
            max_attempts: 12,
            first_wait: Duration::from_millis(20),
            max_wait: Duration::from_secs(5),
        }
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
        let _waited = thread::wait(longest / 2 + longest / 512 * random).await;
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
        let policy =
            RetryPolicy { max_attempts: 3, first_wait: Duration::ZERO, ..Default::default() };
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
