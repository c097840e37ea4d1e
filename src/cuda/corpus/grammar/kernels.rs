//! The kernels of the rounds, on one device.

#![allow(unsafe_code, reason = "launching kernels")]

use cudarc::driver::CudaFunction;

use crate::corpus::launch::{Argument, THREADS, grid_for, launch};
use crate::corpus::sort::Sorter;
use crate::device::Device;
use crate::error::GpuError;
use crate::module::{GRAMMAR_PAIRS, GRAMMAR_ROUNDS, Module};

/// The kernels of a round.
#[derive(Debug)]
pub(super) struct Kernels {
    pub(super) device: Device,
    pub(super) sorter: Sorter,
    pub(super) ends: CudaFunction,
    pub(super) fresh: CudaFunction,
    pub(super) fresh_write: CudaFunction,
    pub(super) slopes: CudaFunction,
    pub(super) choose: CudaFunction,
    pub(super) new_rules: CudaFunction,
    pub(super) make_rules: CudaFunction,
    pub(super) replaced: CudaFunction,
    pub(super) count: CudaFunction,
    pub(super) rewrite: CudaFunction,
    pub(super) starts: CudaFunction,
    pub(super) heads: CudaFunction,
    pub(super) seconds: CudaFunction,
    pub(super) passes: CudaFunction,
    pub(super) groups: CudaFunction,
    pub(super) number: CudaFunction,
    pub(super) answer: CudaFunction,
    pub(super) largest: CudaFunction,
}

impl Kernels {
    pub(super) fn new(device: &Device) -> Result<Self, GpuError> {
        let rounds = Module::load(device, GRAMMAR_ROUNDS)?;
        let pairs = Module::load(device, GRAMMAR_PAIRS)?;
        Ok(Self {
            device: device.clone(),
            sorter: Sorter::new(device)?,
            ends: rounds.kernel("grammar_rounds_ends")?,
            fresh: rounds.kernel("grammar_rounds_fresh")?,
            fresh_write: rounds.kernel("grammar_rounds_fresh_write")?,
            slopes: rounds.kernel("grammar_rounds_slopes")?,
            choose: rounds.kernel("grammar_rounds_choose")?,
            new_rules: rounds.kernel("grammar_rounds_new_rules")?,
            make_rules: rounds.kernel("grammar_rounds_make_rules")?,
            replaced: rounds.kernel("grammar_rounds_replaced")?,
            count: rounds.kernel("grammar_rounds_count")?,
            rewrite: rounds.kernel("grammar_rounds_rewrite")?,
            starts: rounds.kernel("grammar_rounds_starts")?,
            heads: pairs.kernel("grammar_pairs_heads")?,
            seconds: pairs.kernel("grammar_pairs_seconds")?,
            passes: pairs.kernel("grammar_pairs_passes")?,
            groups: pairs.kernel("grammar_pairs_groups")?,
            number: pairs.kernel("grammar_pairs_number")?,
            answer: pairs.kernel("grammar_pairs_answer")?,
            largest: pairs.kernel("grammar_pairs_largest")?,
        })
    }

    /// Launches `function` on the device with a thread for each of `len` items.
    ///
    /// # Safety
    ///
    /// The contract of [`launch`].
    pub(super) unsafe fn launch(
        &self,
        function: &CudaFunction,
        len: usize,
        arguments: &[Argument],
    ) -> Result<(), GpuError> {
        // SAFETY: the caller guarantees it.
        unsafe { launch(&self.device, function, grid_for(len), THREADS, arguments) }
    }
}

/// Builds an argument from an address.
pub(super) fn at(address: u64) -> Argument {
    Argument::Long(address)
}

/// Builds an argument from a number below 2^32.
pub(super) fn number(number: usize) -> Argument {
    Argument::Short(number as u32)
}
