//! Parallel work whose results are taken in order.
//!
//! ```text
//! tasks     0 1 2 3 | 4 5 6 ...
//! threads   1 3     |               a few tasks ahead of what is taken, no more
//! taken     0       |               in order, by the caller's thread, meanwhile
//! ```

use std::collections::VecDeque;
use std::sync::mpsc::sync_channel;

use rayon::prelude::*;

use crate::error::Result;

/// Maximum number of parallel tasks for each thread that run ahead of the result taken next.
const AHEAD_PER_THREAD: usize = 2;

/// Computes each task in parallel and passes the results to `take` in order, until it returns
/// false. Returns true if all results were taken. Only a few results wait at a time.
///
/// # Errors
/// The errors of `take`.
pub fn for_each_in_order<T: Send>(
    num_tasks: usize,
    compute: impl Fn(usize) -> T + Send + Sync,
    mut take: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    let max_ahead = AHEAD_PER_THREAD * rayon::current_num_threads();
    if rayon::current_thread_index().is_some() {
        // A thread of the pool must not wait here, because the pool would miss it.
        for start in (0..num_tasks).step_by(max_ahead) {
            let tasks = start..num_tasks.min(start + max_ahead);
            for made in tasks.into_par_iter().map(&compute).collect::<Vec<T>>() {
                if !take(made)? {
                    return Ok(false);
                }
            }
        }
        return Ok(true);
    }
    let compute = &compute;
    rayon::in_place_scope(|scope| {
        let mut waiting = VecDeque::with_capacity(max_ahead);
        let mut tasks = 0..num_tasks;
        loop {
            for task in tasks.by_ref().take(max_ahead - waiting.len()) {
                let (sender, receiver) = sync_channel(1);
                // Sending fails if the receiver no longer waits, which does no harm.
                scope.spawn(move |_| drop(sender.send(compute(task))));
                waiting.push_back(receiver);
            }
            let Some(first) = waiting.pop_front() else { return Ok(true) };
            // A task that panicked sends nothing; the scope panics when it ends.
            let Ok(made) = first.recv() else { return Ok(false) };
            if !take(made)? {
                return Ok(false);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(num_tasks: usize, up_to: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        for_each_in_order(
            num_tasks,
            |task| task * task,
            |made| {
                taken.push(made);
                Ok(taken.len() < up_to)
            },
        )
        .unwrap();
        taken
    }

    #[test]
    fn results_come_in_order_until_enough() {
        let squares = |len: usize| (0..len).map(|i| i * i).collect::<Vec<_>>();
        for (num_tasks, up_to) in [(0, 9), (1, 9), (100, usize::MAX), (100, 7)] {
            assert_eq!(taken(num_tasks, up_to), squares(num_tasks.min(up_to)));
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            assert_eq!(pool.install(|| taken(num_tasks, up_to)), squares(num_tasks.min(up_to)));
        }
    }
}
