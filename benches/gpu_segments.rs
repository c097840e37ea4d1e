//! Benchmark of corpora of many segments on one device: with and without a transfer of the next
//! grammar during the count of the current one, and in memory for all segments and for half of
//! that.
//!
//! `REQUIRE_GPU=1 cargo bench --bench gpu_segments` makes text of three kinds and compresses it.
//! Each task counts all segments, one after the other, from an empty device to rows on the host.
//! Rows are compared with those of the first run. Without a device the benchmark says so and does
//! nothing, unless `REQUIRE_GPU=1`.
//!
//! ```text
//! TADOC_GPU_MIB    text of each kind     512
//! TADOC_GPU_BLOCK  text of a segment     32
//! TADOC_GPU_KINDS  kinds of text         log,versioned,prose
//! TADOC_GPU_RUNS   runs, the median and the least are shown    7
//! ```

#![allow(clippy::unwrap_used, missing_docs)]

mod measuring;
#[allow(dead_code, reason = "each bench uses its part")]
#[path = "gpu_corpus/mod.rs"]
mod texts;

use std::sync::Arc;
use std::time::{Duration, Instant};

use measuring::{AMPLE, built, number, open_device, variable};
use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::segment::Segment;
use tadoc_cuda::{CorpusCopies, Device, GpuError};
use texts::documents;

fn main() -> Result<(), GpuError> {
    let Some(device) = open_device()? else { return Ok(()) };
    println!("{}; milliseconds, median and least", device.name());
    let columns = "text | task | segments | memory, MB | apart | least | meanwhile | least | \
                   apart : meanwhile | preparing, apart | meanwhile";
    println!("| {columns} |\n|{}", " --- |".repeat(columns.split('|').count()));
    let kinds = variable("TADOC_GPU_KINDS", "log,versioned,prose");
    for kind in kinds.split(',') {
        let corpus = corpus_of(kind);
        let segments = corpus.segments();
        measure(&device, segments, (kind, "word_count"), &|copies, segment| {
            copies.word_counts(segment)
        })?;
        measure(&device, segments, (kind, "sequence_count(3)"), &|copies, segment| {
            copies.sequence_counts(segment, 3)?.to_host()
        })?;
        measure(&device, segments, (kind, "cooccurrence(5)"), &|copies, segment| {
            copies.pair_counts(segment, 5)?.to_host()
        })?;
        measure(&device, segments, (kind, "term_vector"), &|copies, segment| {
            copies.term_vectors(segment)?.to_host()
        })?;
        measure(&device, segments, (kind, "ranked_inverted_index(3)"), &|copies, segment| {
            copies.ranked_documents(segment, 3)?.to_host()
        })?;
    }
    Ok(())
}

/// A function that counts a segment for a task.
type Count<'a, R> = &'a dyn Fn(&mut CorpusCopies, &Arc<Segment>) -> Result<R, GpuError>;

/// Returns a corpus of this kind of text, in segments of `TADOC_GPU_BLOCK` MiB.
fn corpus_of(kind: &str) -> Corpus {
    let block_bytes = number("TADOC_GPU_BLOCK", 32) << 20;
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let builder = CorpusBuilder::new(Vec::new(), options).unwrap().with_blocks_at_once(4);
    built(builder, &documents(kind, number("TADOC_GPU_MIB", 512) << 20))
}

/// Result of one run: rows, times, and memory in use on the device.
struct Run<R> {
    rows: Vec<R>,
    all: Duration,
    preparing: Duration,
    used_bytes: u64,
}

fn run<R>(
    device: &Device,
    segments: &[Arc<Segment>],
    max_bytes: u64,
    is_expecting: bool,
    count: Count<'_, R>,
) -> Result<Run<R>, GpuError> {
    let mut copies = CorpusCopies::new(device.clone());
    copies.set_max_bytes(max_bytes)?;
    let start = Instant::now();
    let of_segment = |(at, segment): (usize, &Arc<Segment>)| {
        copies.expect(segments.get(at + 1).filter(|_| is_expecting));
        count(&mut copies, segment)
    };
    let rows = segments.iter().enumerate().map(of_segment).collect::<Result<_, _>>()?;
    let all = start.elapsed();
    let run = Run { rows, all, preparing: copies.prepare_time(), used_bytes: device.used_bytes() };
    drop(copies);
    device.synchronize()?;
    Ok(run)
}

fn measure<R: PartialEq>(
    device: &Device,
    segments: &[Arc<Segment>],
    (kind, task): (&str, &str),
    count: Count<'_, R>,
) -> Result<(), GpuError> {
    let first = run(device, segments, AMPLE, false, count)?;
    for max_bytes in [AMPLE, first.used_bytes / 2] {
        let (mut apart, mut meanwhile) = (Vec::new(), Vec::new());
        for _ in 0..number("TADOC_GPU_RUNS", 7) {
            for (is_expecting, times) in [(false, &mut apart), (true, &mut meanwhile)] {
                let run = run(device, segments, max_bytes, is_expecting, count)?;
                assert!(run.rows == first.rows, "{kind} {task}");
                assert!(run.used_bytes <= max_bytes, "{kind} {task}");
                times.push((run.all, run.preparing));
            }
        }
        let [apart, meanwhile] = [apart, meanwhile].map(shown);
        println!(
            "| {kind} | {task} | {} | {} | {:.1} | {:.1} | {:.1} | {:.1} | {:.2} | {:.1} | {:.1} |",
            segments.len(),
            max_bytes.min(first.used_bytes) / 1_000_000,
            apart[0],
            apart[1],
            meanwhile[0],
            meanwhile[1],
            apart[0] / meanwhile[0],
            apart[2],
            meanwhile[2],
        );
    }
    Ok(())
}

/// Returns the median and the least of all times, and the median of the preparation, in
/// milliseconds.
fn shown(mut times: Vec<(Duration, Duration)>) -> [f64; 3] {
    times.sort_unstable();
    let (median, least) = (times[times.len() / 2], times[0]);
    [median.0, least.0, median.1].map(|time| time.as_secs_f64() * 1000.0)
}
