//! Benchmark of many questions in one call, on all cores, beside a plain store whose rows are read
//! by all cores too.
//!
//! A row has two times for a question, in nanoseconds: that of the clock, and that of all threads
//! together. Each is the least of some rounds.

use std::hint::black_box;
use std::time::Instant;

use rayon::prelude::*;
use tadoc::edits::{EditMode, LivingCorpus, Operation};
use tadoc::query::WordQuery;
use tadoc::read::ExtractQuery;

use super::{Plain, ROUNDS, Workload};

/// Returns the nanoseconds that all threads of this process have run.
fn process_nanos() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let of_task = |task: std::fs::DirEntry| {
        let stat = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
        stat.split(' ').next()?.parse::<u64>().ok()
    };
    tasks.filter_map(of_task).sum()
}

/// Nanoseconds of the clock and of all threads.
type Nanos = (u64, u64);

/// Runs both stores in turn for some rounds, compares their answers, and returns the least times of
/// each.
fn least(mut living: impl FnMut() -> u64, mut plain: impl FnMut() -> u64) -> (Nanos, Nanos) {
    let timed = |ask: &mut dyn FnMut() -> u64, least: &mut Nanos| {
        let started = Instant::now();
        let nanos = process_nanos();
        let sum = black_box(ask());
        least.0 = least.0.min(started.elapsed().as_nanos() as u64);
        least.1 = least.1.min(process_nanos() - nanos);
        sum
    };
    let mut of_both = ((u64::MAX, u64::MAX), (u64::MAX, u64::MAX));
    for _ in 0..ROUNDS {
        let sums = (timed(&mut living, &mut of_both.0), timed(&mut plain, &mut of_both.1));
        assert_eq!(sums.0, sums.1);
    }
    of_both
}

/// Measures batches of reads of `living`. `plain` holds the same documents.
pub fn measure(workload: &Workload<'_>, name: &str, living: &LivingCorpus, plain: &Plain) {
    for kind in ["extract", "count rare", "count usual", "search rare", "search usual"] {
        let operations = workload.operations(EditMode::InSequence, &[kind]);
        let words: Vec<WordQuery<'_>> = operations
            .iter()
            .filter_map(|operation| match operation {
                Operation::Count { doc_id, word } | Operation::Search { doc_id, word } => {
                    Some(WordQuery { doc_id: *doc_id, word })
                }
                _ => None,
            })
            .collect();
        let passages: Vec<ExtractQuery> = operations
            .iter()
            .filter_map(|operation| match *operation {
                Operation::Extract { doc_id, offset_bytes, len_bytes } => {
                    Some(ExtractQuery { doc_id, byte_offset: offset_bytes, byte_len: len_bytes })
                }
                _ => None,
            })
            .collect();
        let of_living = || match kind.split(' ').next() {
            Some("extract") => {
                let (bytes, _) = living.extract_batch(&passages, u64::MAX).unwrap().into_parts();
                bytes.len() as u64
            }
            Some("count") => living.count_batch(&words).unwrap().iter().sum(),
            _ => living.search_batch(&words, u64::MAX).unwrap().into_parts().0.len() as u64,
        };
        let of_plain = || {
            if passages.is_empty() {
                words.par_iter().map(|q| plain.find(q.doc_id, q.word).len() as u64).sum()
            } else {
                passages.par_iter().map(|q| plain.extract(q)).map(|t| t.len() as u64).sum()
            }
        };
        let (living, plain) = least(of_living, of_plain);
        let per = |nanos: u64| nanos as f64 / operations.len() as f64;
        let name = format!("{} batch, {name}: {kind}", workload.subject.name);
        println!(
            "{name:<50} {:>9.0} ns {:>9.0} ns of threads; Vec<u8>s {:>9.0} ns {:>9.0}; {:>6.2}x",
            per(living.0),
            per(living.1),
            per(plain.0),
            per(plain.1),
            plain.1 as f64 / living.1 as f64,
        );
    }
}
