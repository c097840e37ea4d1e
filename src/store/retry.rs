//! Trying again: how often, and how long to wait before.
//!
//! Waits double up to a limit, and each is drawn between half of its length and all of it, so that
//! writers that met once do not meet again at every attempt (Brooker, "Exponential backoff and
//! jitter"). Stores that try again themselves may take minutes over one attempt (`object_store`
//! does: 10 times or 3 minutes); there are no further attempts then.

use std::time::{Duration, Instant};

use super::storage::{StorageError, StorageResult};
use super::thread;
use super::version::CommitId;

/// No attempt is begun later than this after the first.
const MAX_TIME: Duration = Duration::from_secs(180);

/// How often a storage, or a commit that another came before, is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Attempts, the first included. At least 1.
    pub max_attempts: u32,
    /// The first wait; the next is twice as long.
    pub first_wait: Duration,
    /// The longest wait.
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
    /// How long to wait after `num_failed` attempts, before jitter.
    fn wait(&self, num_failed: u32) -> Duration {
        let doubled = self.first_wait.saturating_mul(1 << num_failed.saturating_sub(1).min(31));
        doubled.min(self.max_wait)
    }
}

/// Attempts at one thing.
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

    /// Counts an attempt that failed; waits and says yes where there is another.
    pub(super) async fn again(&mut self) -> bool {
        self.num_failed += 1;
        if self.num_failed >= self.policy.max_attempts || self.started.elapsed() >= MAX_TIME {
            return false;
        }
        let longest = self.policy.wait(self.num_failed);
        // Without random numbers or threads the next attempt comes at once.
        let random = CommitId::random().map_or(0, |id| u32::from(id.as_bytes()[0]));
        let _waited = thread::wait(longest / 2 + longest / 512 * random).await;
        true
    }
}

/// Calls `attempt` until it succeeds, fails for good, or has been called as often as allowed.
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
