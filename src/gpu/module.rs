//! The kernels as PTX, embedded, and their way onto a device.
//!
//! The driver compiles PTX for its device when a module is loaded, and keeps the result on disk.
//! There are two forms of each: one for compute capability 8.0 and newer, and one for 9.0 and newer
//! that uses the copy engine between shared and device memory. `kernels/build.py` makes both.

use std::sync::Arc;

use cudarc::driver::{CudaFunction, CudaModule};
use cudarc::nvrtc::Ptx;

use super::device::Device;
use super::error::GpuError;

/// A file of kernels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    name: &'static str,
    compute_80: &'static str,
    compute_90: &'static str,
}

/// `kernels/gsst_decode_8bit.cu`.
pub(super) const GSST_DECODE_8BIT: Source = Source {
    name: "gsst_decode_8bit",
    compute_80: include_str!("../../kernels/gsst_decode_8bit.compute_80.ptx"),
    compute_90: include_str!("../../kernels/gsst_decode_8bit.compute_90.ptx"),
};

/// `kernels/gsst_decode_12bit.cu`.
pub(super) const GSST_DECODE_12BIT: Source = Source {
    name: "gsst_decode_12bit",
    compute_80: include_str!("../../kernels/gsst_decode_12bit.compute_80.ptx"),
    compute_90: include_str!("../../kernels/gsst_decode_12bit.compute_90.ptx"),
};

/// The kernels of a file on a device.
#[derive(Debug, Clone)]
pub(super) struct Module {
    module: Arc<CudaModule>,
}

impl Module {
    /// Loads `source` in the form that fits the device.
    ///
    /// # Errors
    ///
    /// [`GpuError::Unsupported`] below compute capability 8.0, [`GpuError::Driver`].
    pub(super) fn load(device: &Device, source: Source) -> Result<Self, GpuError> {
        let (major, minor) = device.compute_capability();
        let ptx = match major {
            ..8 => {
                return Err(GpuError::Unsupported {
                    device: device.name().to_owned(),
                    kernel: source.name,
                    reason: format!("compute capability {major}.{minor}, it needs 8.0"),
                });
            }
            8 => source.compute_80,
            _ => source.compute_90,
        };
        let module = device.context().load_module(Ptx::from_src(ptx));
        Ok(Self { module: module.map_err(GpuError::driver("loading a kernel's PTX"))? })
    }

    /// The kernel of this name.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub(super) fn kernel(&self, name: &'static str) -> Result<CudaFunction, GpuError> {
        self.module.load_function(name).map_err(GpuError::driver(name))
    }
}
