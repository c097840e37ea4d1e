//! The embedded kernels, as machine code and PTX, and their loading onto a device.
//!
//! ```text
//! compute capability 8.x  <stem>.sm_80.cubin      loads in a millisecond
//! compute capability 9.x  <stem>.sm_90.cubin      likewise; a warp copies by the copy engine
//! newer                   <stem>.compute_90.ptx   the driver compiles it once and keeps it on disk
//! ```
//!
//! If a driver rejects the machine code of 9.x, it gets the PTX. `kernels/build.py` makes all
//! three.

use std::sync::Arc;

use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUfunction_attribute_enum as FunctionAttribute};
use cudarc::driver::{CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;

use super::device::Device;
use crate::error;
use crate::error::GpuError;

/// A source file of kernels, compiled for each kind of device.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    name: &'static str,
    sm_80: &'static [u8],
    sm_90: &'static [u8],
    compute_90: &'static str,
}

/// Embeds the files that `kernels/build.py` made from `kernels/<stem>.cu`.
macro_rules! source {
    ($stem:literal) => {
        Source {
            name: $stem,
            sm_80: include_bytes!(concat!("../../kernels/compiled/", $stem, ".sm_80.cubin")),
            sm_90: include_bytes!(concat!("../../kernels/compiled/", $stem, ".sm_90.cubin")),
            compute_90: include_str!(concat!("../../kernels/compiled/", $stem, ".compute_90.ptx")),
        }
    };
}

pub(super) const CORPUS_EDITS: Source = source!("corpus_edits");
pub(super) const CORPUS_EXTRACT: Source = source!("corpus_extract");
pub(super) const CORPUS_INDEX: Source = source!("corpus_index");
pub(super) const CORPUS_INVERSE: Source = source!("corpus_inverse");
pub(super) const CORPUS_RANKED: Source = source!("corpus_ranked");
pub(super) const CORPUS_SEARCH: Source = source!("corpus_search");
pub(super) const CORPUS_SEQUENCES: Source = source!("corpus_sequences");
pub(super) const CORPUS_SORT: Source = source!("corpus_sort");
pub(super) const CORPUS_TERMS: Source = source!("corpus_terms");
pub(super) const CORPUS_WEIGHTS: Source = source!("corpus_weights");
pub(super) const GSST_CHECK: Source = source!("gsst_check");
pub(super) const GSST_DECODE_8BIT: Source = source!("gsst_decode_8bit");
pub(super) const GSST_DECODE_12BIT: Source = source!("gsst_decode_12bit");
pub(super) const GSST_MATCH: Source = source!("gsst_match");
pub(super) const GSST_PLACES: Source = source!("gsst_places");
pub(super) const GSST_ROWS: Source = source!("gsst_rows");

/// The kernels of a file, loaded onto a device.
#[derive(Debug, Clone)]
pub(super) struct Module {
    module: Arc<CudaModule>,
    /// Ordinal of the device.
    ordinal: usize,
}

impl Module {
    /// Loads `source` in the form that fits the device. A device and its clones load each source
    /// once.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] below compute capability 8.0, [`GpuError::Driver`].
    pub(super) fn load(device: &Device, source: Source) -> Result<Self, GpuError> {
        if let Some(module) = device.modules().get(source.name) {
            return Ok(Self { module: Arc::clone(module), ordinal: device.ordinal() });
        }
        let (major, minor) = device.compute_capability();
        let load = |code| device.context().load_module(code);
        let machine_code = |code: &[u8]| load(Ptx::from_binary(code.to_vec()));
        let ptx = || load(Ptx::from_src(source.compute_90));
        let module = match major {
            ..8 => {
                return Err(GpuError::Unsupported {
                    device: device.name().to_owned(),
                    kernel: source.name,
                    reason: format!("compute capability {major}.{minor}, it needs 8.0"),
                });
            }
            8 => machine_code(source.sm_80),
            9 => machine_code(source.sm_90).or_else(|_| ptx()),
            _ => ptx(),
        };
        let module = module.map_err(device.fault("loading a kernel"))?;
        device.modules().insert(source.name, Arc::clone(&module));
        Ok(Self { module, ordinal: device.ordinal() })
    }

    /// Returns the kernel of this name.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub(super) fn kernel(&self, name: &'static str) -> Result<CudaFunction, GpuError> {
        self.module.load_function(name).map_err(error::fault(self.ordinal, name))
    }
}

/// Returns the number of thread blocks of `function` that run on the device at the same time.
/// Allows each of them `shared_bytes` of shared memory.
///
/// # Errors
///
/// [`GpuError::Unsupported`], naming `kernel`, if not one thread block fits; [`GpuError::Driver`].
pub(super) fn max_grid(
    device: &Device,
    function: &CudaFunction,
    kernel: &'static str,
    threads: u32,
    shared_bytes: u32,
) -> Result<u32, GpuError> {
    let setting_up = device.fault("setting up a kernel");
    let attribute = FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    function.set_attribute(attribute, shared_bytes as i32).map_err(&setting_up)?;
    let blocks_per_processor = function
        .occupancy_max_active_blocks_per_multiprocessor(threads, shared_bytes as usize, None)
        .map_err(&setting_up)?;
    let processors = device.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    if blocks_per_processor == 0 || processors == 0 {
        return Err(unsupported(device, kernel, "not one thread block fits".to_owned()));
    }
    Ok(processors * blocks_per_processor)
}

/// Builds the error for a feature that `device` lacks for `kernel`.
pub(super) fn unsupported(device: &Device, kernel: &'static str, reason: String) -> GpuError {
    GpuError::Unsupported { device: device.name().to_owned(), kernel, reason }
}
