//! Parallel work on parts of an array, with its own threads.
//!
//! The arrays that a [`Dag`](crate::segment::Dag) derives on first use are built while others wait
//! for them. With rayon such a wait can deadlock. A task that waits for its parts runs other tasks
//! meanwhile, and one of these may need the same array. Or all threads of the pool wait for an
//! array that another thread builds, and no thread is left to build it. Here a waiting thread does
//! nothing else, and working threads wait for no other thread.

use std::num::NonZero;
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread;

/// Cores of this process. Linux reads the files of the control group for each question, 20 µs.
static NUM_CORES: LazyLock<usize> =
    LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));

/// Calls `work` with the number and the items of each chunk of `chunk_len` items. The last chunk
/// may be shorter. Returns the results in order. It uses all cores, or fewer if threads cannot be
/// created.
pub(super) fn map_chunks<T: Send, R: Send>(
    items: &mut [T],
    chunk_len: usize,
    work: impl Fn(usize, &mut [T]) -> R + Sync,
) -> Vec<R> {
    let num_threads = items.len().div_ceil(chunk_len).min(*NUM_CORES);
    let waiting = Mutex::new(items.chunks_mut(chunk_len).enumerate());
    let done = Mutex::new(Vec::new());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some((at, chunk)) = next() {
            let result = work(at, chunk);
            done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
        }
    };
    thread::scope(|scope| {
        for _ in 1..num_threads {
            if thread::Builder::new().spawn_scoped(scope, run).is_err() {
                break;
            }
        }
        run();
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|&(at, _)| at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::map_chunks;

    #[test]
    fn chunks_are_worked_on_once_and_answer_in_order() {
        for (len, chunk_len) in [(0, 3), (1, 3), (3, 3), (1000, 7), (1000, 5000)] {
            let mut items: Vec<usize> = (0..len).collect();
            let sums = map_chunks(&mut items, chunk_len, |at, chunk| {
                chunk.iter_mut().for_each(|item| *item += 1);
                (at, chunk.iter().sum::<usize>())
            });
            assert!(items.iter().copied().eq(1..=len));
            assert!(sums.iter().map(|sum| sum.0).eq(0..len.div_ceil(chunk_len)));
            assert_eq!(sums.iter().map(|sum| sum.1).sum::<usize>(), len * (len + 1) / 2);
        }
    }
}
