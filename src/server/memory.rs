//! The memory of one statement: a limit of its own, inside the limit of the process.
//!
//! Operators of a statement take their memory from a [`StatementPool`], which passes each request on
//! to the pool of the session. Corpora that stay open belong to no statement and are not counted.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::common::resources_datafusion_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation, human_readable_size,
};
use datafusion_tadoc::is_memory_of_corpora;

/// The memory pool of one statement; see the module docs.
#[derive(Debug)]
pub struct StatementPool {
    session: Arc<dyn MemoryPool>,
    limit_bytes: usize,
    used_bytes: AtomicUsize,
}

impl StatementPool {
    /// Creates a pool of `limit_bytes` inside the pool of the session.
    pub fn new(session: Arc<dyn MemoryPool>, limit_bytes: usize) -> Arc<Self> {
        Arc::new(Self { session, limit_bytes, used_bytes: AtomicUsize::new(0) })
    }

    fn add(&self, additional: usize) -> Result<()> {
        let add = |used: usize| used.checked_add(additional).filter(|&used| used <= self.limit_bytes);
        let added = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
        added.map(drop).map_err(|used| {
            let [used, limit] = [used, self.limit_bytes].map(human_readable_size);
            resources_datafusion_err!(
                "the statement has {used} and may not take {} more: a statement may take {limit}; \
                 ask for fewer rows, or let the server be started with a larger --statement-memory",
                human_readable_size(additional)
            )
        })
    }
}

impl fmt::Display for StatementPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.name(), self.session)
    }
}

impl MemoryPool for StatementPool {
    fn name(&self) -> &str {
        "statement"
    }

    fn register(&self, consumer: &MemoryConsumer) {
        self.session.register(consumer);
    }

    fn unregister(&self, consumer: &MemoryConsumer) {
        self.session.unregister(consumer);
    }

    fn grow(&self, reservation: &MemoryReservation, additional: usize) {
        if !is_shared(reservation) {
            self.used_bytes.fetch_add(additional, Ordering::Relaxed);
        }
        self.session.grow(reservation, additional);
    }

    fn shrink(&self, reservation: &MemoryReservation, shrink: usize) {
        if !is_shared(reservation) {
            self.used_bytes.fetch_sub(shrink, Ordering::Relaxed);
        }
        self.session.shrink(reservation, shrink);
    }

    fn try_grow(&self, reservation: &MemoryReservation, additional: usize) -> Result<()> {
        if is_shared(reservation) {
            return self.session.try_grow(reservation, additional);
        }
        self.add(additional)?;
        let grown = self.session.try_grow(reservation, additional);
        if grown.is_err() {
            self.used_bytes.fetch_sub(additional, Ordering::Relaxed);
        }
        grown
    }

    fn reserved(&self) -> usize {
        self.session.reserved()
    }

    fn memory_limit(&self) -> MemoryLimit {
        self.session.memory_limit()
    }
}

fn is_shared(reservation: &MemoryReservation) -> bool {
    is_memory_of_corpora(reservation.consumer().name())
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    #[test]
    fn a_statement_has_its_limit_and_corpora_have_that_of_the_session() {
        let session: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        let pools = [(), ()].map(|()| StatementPool::new(Arc::clone(&session), 300));
        let [one, two] = pools.map(|pool| pool as Arc<dyn MemoryPool>);
        let sort = MemoryConsumer::new("Sort").register(&one);
        sort.try_grow(300).unwrap();
        let refused = sort.try_grow(1).unwrap_err().to_string();
        assert!(refused.contains("--statement-memory"), "{refused}");
        let corpus = MemoryConsumer::new("TadocCorpus[x]").register(&one);
        corpus.try_grow(600).unwrap();
        let other = MemoryConsumer::new("Sort").register(&two);
        assert!(other.try_grow(200).is_err());
        // A refusal of the session takes nothing from the statement.
        drop(corpus);
        other.try_grow(300).unwrap();
        drop(sort);
        assert_eq!(session.reserved(), 300);
    }
}
