//! Weights of elements and counts of words on a device: the wrapper of `kernels/corpus_weights.cu`.

#![allow(unsafe_code, reason = "launching kernels")]

use std::sync::Arc;

use cudarc::driver::{CudaFunction, DeviceSlice};

use crate::gpu::error::GpuError;
use crate::gpu::memory::DeviceBuffer;
use crate::gpu::module::{CORPUS_WEIGHTS, Module};

use super::launch::{Argument, THREADS, address, launch};
use super::levels::{Step, steps};
use super::plan::{CHUNK_ROWS, PullPlan};
use super::transfer::{fill, to_host};
use super::{DeviceCorpus, check_limit};

/// Levels of so many chunks are small: two for each warp of the one thread block.
const MAX_SMALL_CHUNKS: u32 = 64;
/// Threads of the thread block that has small levels.
const LEVELS_THREADS: u32 = 1024;

/// Weights of the elements of a segment, in device memory.
#[derive(Debug)]
pub struct CorpusWeights {
    corpus: DeviceCorpus,
    level: CudaFunction,
    levels: CudaFunction,
    weights: DeviceBuffer<u64>,
    plan: [DeviceBuffer<u32>; 5],
    /// Where the plan and the weights lie.
    plan_at: [Argument; 5],
    weights_at: u64,
    /// First chunk of each level, and the end of the last one.
    level_chunks: Vec<u32>,
    steps: Vec<Step>,
    num_elements: usize,
    num_words: usize,
    num_entries: usize,
}

impl CorpusWeights {
    pub(super) fn upload(corpus: &DeviceCorpus) -> Result<Self, GpuError> {
        const WHAT: &str = "inverse grammar";
        let (device, dag) = (&corpus.device, corpus.dag());
        let module = Module::load(device, CORPUS_WEIGHTS)?;
        let plan = PullPlan::new(dag)?;
        let copy = |values: &[u32]| device.copy_of(WHAT, values);
        let weights = device.alloc("weights", plan.num_slots)?;
        let arrays = [
            copy(&plan.chunk_starts)?,
            copy(&plan.entries)?,
            copy(&plan.row_slots)?,
            copy(&plan.row_bases)?,
            copy(&plan.level_chunks)?,
        ];
        let mut made = Self {
            level: module.kernel("corpus_weights_level")?,
            levels: module.kernel("corpus_weights_levels")?,
            plan_at: arrays.each_ref().map(|buffer| Argument::Long(address(device, buffer))),
            weights_at: address(device, &weights),
            weights,
            plan: arrays,
            corpus: corpus.clone(),
            steps: steps(&plan.level_chunks, MAX_SMALL_CHUNKS),
            num_elements: dag.num_elements(),
            num_words: dag.num_words() as usize,
            num_entries: plan.entries.len(),
            level_chunks: plan.level_chunks,
        };
        made.run()?;
        Ok(made)
    }

    /// Counts all elements anew. Returns when the work is given to the device, not when it is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn run(&mut self) -> Result<(), GpuError> {
        let device = &self.corpus.device;
        let [starts, entries, slots, bases, level_chunks] = self.plan_at;
        let weights = Argument::Long(self.weights_at);
        for step in &self.steps {
            let (function, grid, threads, mut arguments) = match *step {
                Step::Level(level) => {
                    let first = self.level_chunks[level as usize];
                    let end = self.level_chunks[level as usize + 1];
                    let grid = (end - first).div_ceil(THREADS / CHUNK_ROWS as u32);
                    let chunks = vec![Argument::Short(first), Argument::Short(end)];
                    (&self.level, grid, THREADS, chunks)
                }
                Step::Levels(first, end) => {
                    let levels = vec![level_chunks, Argument::Short(first), Argument::Short(end)];
                    (&self.levels, 1, LEVELS_THREADS, levels)
                }
            };
            arguments.splice(0..0, [starts, entries, slots, bases]);
            arguments.push(weights);
            // SAFETY: the arguments are those of the kernel; the plan was made from a validated
            // grammar, its slots are below the length of `weights`, and each is written in a level
            // before it is read.
            unsafe { launch(device, function, grid, threads, &arguments) }?;
        }
        Ok(())
    }

    /// How often each element occurs, by element id: what [`Dag::weights`](crate::dag::Dag::weights) gives.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the counting.
    pub fn to_host(&self) -> Result<Vec<u64>, GpuError> {
        to_host(&self.corpus.device, &self.weights, self.num_elements)
    }

    /// How often each word occurs, by word id; sums over several segments are the caller's.
    ///
    /// # Errors
    ///
    /// As [`to_host`](Self::to_host).
    pub fn word_counts_to_host(&self) -> Result<Vec<u64>, GpuError> {
        to_host(&self.corpus.device, &self.weights, self.num_words)
    }

    /// Sets all weights to one byte, as tests do to see what the kernels leave unwritten.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        fill(&self.corpus.device, &mut self.weights, byte)
    }

    /// That these are weights of `corpus`.
    pub(super) fn check_made_for(&self, corpus: &DeviceCorpus) -> Result<(), GpuError> {
        let is_own = Arc::ptr_eq(&self.corpus.arrays, &corpus.arrays);
        check_limit("weights of another corpus", usize::from(!is_own), 0)
    }

    /// Where the weights of rules begin on the device.
    pub(super) fn rules_at(&self, num_terminals: u32) -> u64 {
        address(&self.corpus.device, &self.weights)
            + u64::from(num_terminals) * size_of::<u64>() as u64
    }

    /// Bytes that a run reads and writes, each slot it reads counted with 8 bytes.
    pub fn traffic_bytes(&self) -> u64 {
        let rows = self.plan[2].len() as u64;
        self.num_entries as u64 * 12 + rows * 16
    }

    /// Launches of a run.
    pub fn num_launches(&self) -> usize {
        self.steps.len()
    }
}
