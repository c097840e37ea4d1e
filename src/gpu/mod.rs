//! The device: the only module that knows CUDA, and one typed wrapper per kernel.
//!
//! ```text
//! kernels/*.cu ──build.py──▶ PTX, embedded ──module──▶ kernels of a Device
//!                                                         │
//! gsst::Block (validated) ──upload──▶ DeviceBlocks ──GsstDecoder──▶ DeviceText ──▶ bytes
//! ```
//!
//! Everything here answers with a [`GpuError`] where there is no driver or no device, so one binary
//! runs anywhere; the CPU implementation is the reference, and the answer where this one fails.
//! Users need the NVIDIA driver (535 or newer) and nothing else. Whoever calls this module decides
//! what to do with an error; it never falls back by itself.

mod device;
mod device_text;
mod error;
mod gsst_decode;
mod module;

pub use device::{Device, num_devices};
pub use device_text::DeviceText;
pub use error::GpuError;
pub use gsst_decode::{DeviceBlocks, GsstDecoder};
