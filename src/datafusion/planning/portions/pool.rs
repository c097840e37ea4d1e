//! The memory pool that sets memory aside for portions.
//!
//! ```text
//! session's pool   │ portions: used │ set aside │ sums, sorts, joins of their rows │ free │
//! ```
//!
//! Operators over the rows of portions grow as long as their pool has room, and spill if it has
//! none. If portions had no memory set aside, the next portion would find no room, and portions
//! cannot spill. So this part of the pool is taken before the first portion is loaded, as far as
//! there is room. It is given back after the last one.
//!
//! The part appears as a pool of that size. The cache keeps loaded files up to half of it, and
//! tasks see memory that nobody else can take. Memory that portions use beyond it comes from the
//! session's pool, as does memory of files that stay loaded afterwards.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::planning::batch_rows::context_with;

/// Memory pool inside the session's pool. See the module's description.
#[derive(Debug)]
struct PortionsPool {
    outer: Arc<dyn MemoryPool>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Reservation in the outer pool. It has the bytes used, or more while memory is set aside.
    held: MemoryReservation,
    used_bytes: usize,
    set_aside_bytes: usize,
}

impl State {
    /// Shrinks the reservation to the bytes that are used or set aside, whichever is more.
    fn give_back(&mut self) {
        let needed = self.used_bytes.max(self.set_aside_bytes);
        self.held.shrink(self.held.size().saturating_sub(needed));
    }
}

impl PortionsPool {
    fn new(outer: Arc<dyn MemoryPool>) -> Self {
        let held = MemoryConsumer::new("TadocPortions").register(&outer);
        let state = Mutex::new(State { held, used_bytes: 0, set_aside_bytes: 0 });
        Self { outer, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets `len_bytes` aside for the next portion, and half of the memory that is then left for
    /// tasks over it, at most `len_bytes`. Sets all free memory aside if there is less.
    fn set_aside(&self, len_bytes: usize) {
        // An unbounded pool needs nothing set aside.
        let MemoryLimit::Finite(limit) = self.outer.memory_limit() else { return };
        let mut state = self.state();
        let held_bytes = state.held.size();
        let left_bytes = held_bytes.saturating_add(limit.saturating_sub(self.outer.reserved()));
        let for_tasks = left_bytes.saturating_sub(len_bytes) / 2;
        let wanted = len_bytes.saturating_add(for_tasks.min(len_bytes)).min(left_bytes);
        // Another consumer may have taken the memory meanwhile.
        if state.held.try_grow(wanted.saturating_sub(held_bytes)).is_ok() {
            state.set_aside_bytes = wanted;
            state.give_back();
        }
    }

    fn give_back(&self) {
        let mut state = self.state();
        state.set_aside_bytes = 0;
        state.give_back();
    }
}

impl fmt::Display for PortionsPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        let (used, held) = (state.used_bytes, state.held.size());
        write!(f, "{}(used: {used}, held: {held}) of {}", self.name(), self.outer)
    }
}

impl MemoryPool for PortionsPool {
    fn name(&self) -> &str {
        "portions"
    }

    fn grow(&self, _reservation: &MemoryReservation, additional: usize) {
        let mut state = self.state();
        state.used_bytes += additional;
        state.held.grow(state.used_bytes.saturating_sub(state.held.size()));
    }

    fn shrink(&self, _reservation: &MemoryReservation, shrink: usize) {
        let mut state = self.state();
        state.used_bytes = state.used_bytes.saturating_sub(shrink);
        state.give_back();
    }

    fn try_grow(&self, _reservation: &MemoryReservation, additional: usize) -> Result<()> {
        let mut state = self.state();
        let used_bytes = state.used_bytes.saturating_add(additional);
        state.held.try_grow(used_bytes.saturating_sub(state.held.size()))?;
        state.used_bytes = used_bytes;
        Ok(())
    }

    fn reserved(&self) -> usize {
        let state = self.state();
        match state.set_aside_bytes {
            0 => self.outer.reserved(),
            _ => state.used_bytes,
        }
    }

    fn memory_limit(&self) -> MemoryLimit {
        match self.state().set_aside_bytes {
            0 => self.outer.memory_limit(),
            set_aside_bytes => MemoryLimit::Finite(set_aside_bytes),
        }
    }
}

/// Task context in which portions are read: `context` with a pool of their own.
#[derive(Debug)]
pub(super) struct PortionsContext {
    pool: Arc<PortionsPool>,
    context: Arc<TaskContext>,
    len_bytes: usize,
}

impl PortionsContext {
    /// Builds a context in which `len_bytes` can be set aside.
    pub(super) fn new(context: &TaskContext, len_bytes: usize) -> Self {
        let pool = Arc::new(PortionsPool::new(Arc::clone(context.memory_pool())));
        let memory_pool = Arc::clone(&pool) as Arc<dyn MemoryPool>;
        let runtime = RuntimeEnv { memory_pool, ..context.runtime_env().as_ref().clone() };
        let config = context.session_config().clone();
        let context = context_with(context, config, Arc::new(runtime));
        Self { pool, context, len_bytes }
    }

    /// Returns the context of the next portion, and sets memory aside for it.
    pub(super) fn next(&self) -> Arc<TaskContext> {
        self.pool.set_aside(self.len_bytes);
        Arc::clone(&self.context)
    }
}

impl Drop for PortionsContext {
    fn drop(&mut self) {
        self.pool.give_back();
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;

    use super::*;

    fn reservation(name: &str, pool: &Arc<dyn MemoryPool>) -> MemoryReservation {
        MemoryConsumer::new(name).register(pool)
    }

    #[test]
    fn what_is_set_aside_is_for_portions() {
        let outer: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let pool = Arc::new(PortionsPool::new(Arc::clone(&outer)));
        let inner: Arc<dyn MemoryPool> = Arc::clone(&pool) as _;
        pool.set_aside(40);
        assert_eq!((outer.reserved(), inner.reserved()), (70, 0));
        pool.set_aside(20);
        assert_eq!((outer.reserved(), inner.reserved()), (40, 0));
        pool.set_aside(60);
        assert_eq!((outer.reserved(), inner.reserved()), (80, 0));
        let (sum, portion) = (reservation("sum", &outer), reservation("portion", &inner));
        sum.try_grow(20).unwrap();
        assert!(sum.try_grow(1).is_err());
        portion.try_grow(50).unwrap();
        assert_eq!((outer.reserved(), inner.reserved()), (100, 50));
        assert!(matches!(inner.memory_limit(), MemoryLimit::Finite(80)));
        let refused = portion.try_grow(31).unwrap_err().to_string();
        assert!(refused.contains("TadocPortions"), "{refused}");
        assert_eq!((portion.size(), inner.reserved()), (50, 50));
        // Portions may use more than is set aside if the outer pool has room.
        sum.free();
        portion.try_grow(40).unwrap();
        assert_eq!(outer.reserved(), 90);
        portion.shrink(80);
        assert_eq!((outer.reserved(), inner.reserved()), (80, 10));
        // Memory of files that stay loaded remains reserved.
        pool.give_back();
        assert_eq!((outer.reserved(), inner.reserved()), (10, 10));
        assert!(matches!(inner.memory_limit(), MemoryLimit::Finite(100)));
        portion.free();
        assert_eq!((outer.reserved(), inner.reserved()), (0, 0));
    }

    #[test]
    fn as_much_is_set_aside_as_there_is() {
        let outer: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(100));
        let (pool, sum) = (PortionsPool::new(Arc::clone(&outer)), reservation("sum", &outer));
        sum.try_grow(70).unwrap();
        pool.set_aside(60);
        assert_eq!(outer.reserved(), 100);
        sum.free();
        pool.set_aside(60);
        assert_eq!(outer.reserved(), 80);
        pool.give_back();
        assert_eq!(outer.reserved(), 0);
    }
}
