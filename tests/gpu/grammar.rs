//! Tests that grammars whose rounds run on a device equal those of the cores.
//!
//! `REQUIRE_GPU=1 cargo test --test gpu grammar`. Without `REQUIRE_GPU=1` and without a device, the
//! tests print a line that they are skipped.

use std::sync::Arc;

use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::grammar::{
    Dedup, RoundsEngine, RoundsOptions, RoundsOutput, build_rounds, build_rounds_by,
};
use tadoc_cuda::{Device, DeviceRounds, GpuError};
use testkit::device::{Random, open_device};

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 4 << 30;
const NUM_TERMINALS: u32 = 3000;

fn device_with(max_bytes: u64) -> Option<Device> {
    open_device().map(|device| device.with_max_bytes(max_bytes))
}

/// Returns a stream of tokens of one kind: random, by rank, runs (some longer than a chunk), or
/// copies of earlier tokens.
fn stream(random: &mut Random, kind: usize, len: usize) -> Vec<u32> {
    let mut tokens = Vec::with_capacity(len + 100_000);
    while tokens.len() < len {
        match kind {
            0..=2 => tokens.push(random.below([2, 5, 40][kind]) as u32),
            3 => {
                let uniform = random.below(1 << 20) as f64 / f64::from(1 << 20);
                tokens.push(f64::from(NUM_TERMINALS).powf(uniform) as u32 - 1);
            }
            4 => {
                let is_long = random.below(40) == 0;
                let run_len = random.below(if is_long { 90_000 } else { 9 });
                let token = random.below(3) as u32;
                tokens.extend(std::iter::repeat_n(token, run_len));
            }
            _ if tokens.len() > 100 && random.below(3) > 0 => {
                let from = random.below(tokens.len() - 50);
                let copy_len = random.below(400).min(tokens.len() - from);
                tokens.extend_from_within(from..from + copy_len);
            }
            _ => tokens.extend((0..random.below(50)).map(|_| random.below(40) as u32)),
        }
    }
    tokens.truncate(len);
    tokens
}

/// Returns the offsets of documents of random lengths. Some documents are empty.
fn documents(random: &mut Random, len: usize) -> Vec<usize> {
    let mut offsets = vec![0];
    let mut end = 0;
    while end < len {
        let step = if random.below(6) == 0 { 0 } else { 1 + random.below(len / 3 + 1) };
        end = (end + step).min(len);
        offsets.push(end);
    }
    offsets
}

#[test]
fn grammars_are_those_of_the_cores() {
    let Some(device) = device_with(AMPLE) else { return };
    let engine = DeviceRounds::new(&device).unwrap();
    let mut random = Random(7);
    // Rules are learned from streams of the last two lengths.
    for len in [0, 1, 2, 3, 50, 2_000, 30_000, 70_000, 300_000, 1_000_000] {
        for kind in 0..6 {
            let tokens = stream(&mut random, kind, len);
            let docs = documents(&mut random, len);
            for dedup in [Dedup::Off, Dedup::Auto] {
                let options = RoundsOptions { dedup, ..RoundsOptions::default() };
                let expected =
                    build_rounds(tokens.clone(), &docs, NUM_TERMINALS, &options).unwrap();
                let engine = Some(&engine as &dyn RoundsEngine);
                let got = build_rounds_by(engine, tokens.clone(), &docs, NUM_TERMINALS, &options)
                    .unwrap();
                assert!(got == expected, "kind {kind}, {len} tokens, {dedup:?}");
            }
        }
    }
    assert_eq!(engine.fault(), None);
}

#[test]
fn little_memory_leaves_it_to_the_cores() {
    let Some(device) = device_with(1 << 20) else { return };
    let engine = Arc::new(DeviceRounds::new(&device).unwrap());
    let file = |engine: Option<Arc<DeviceRounds>>| {
        let options = IngestOptions { dedup: Dedup::Off, ..IngestOptions::default() };
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        if let Some(engine) = engine {
            builder = builder.with_engine(engine);
        }
        builder.push_document("a", "to be or not to be ".repeat(20_000).as_bytes()).unwrap();
        builder.finish(None).unwrap().0
    };
    assert!(file(Some(Arc::clone(&engine))) == file(None));
    assert!(matches!(engine.fault(), Some(GpuError::OutOfMemory { .. })));
}

#[test]
fn sequences_of_nothing_stay_nothing() {
    let Some(device) = device_with(AMPLE) else { return };
    let engine = DeviceRounds::new(&device).unwrap();
    assert_eq!(engine.rounds(&[], 1).unwrap(), RoundsOutput::default());
    let barriers = vec![u32::MAX; 3];
    let expected =
        RoundsOutput { symbols: barriers.clone(), pair_ids: barriers.clone(), rules: Vec::new() };
    assert_eq!(engine.rounds(&barriers, 1).unwrap(), expected);
}
