//! Text in device memory, with the copy back to the host.

#![allow(unsafe_code, reason = "the driver fills memory by a call that has no safe form")]

use cudarc::driver::{DevicePtrMut, result};

use super::device::Device;
use super::error::GpuError;
use super::memory::DeviceBuffer;

/// A text in device memory.
#[derive(Debug)]
pub struct DeviceText {
    device: Device,
    bytes: DeviceBuffer<u8>,
    len_bytes: usize,
}

impl DeviceText {
    /// Allocates device memory for `len_bytes` bytes, all 0.
    pub(super) fn new(device: &Device, len_bytes: usize) -> Result<Self, GpuError> {
        let bytes = device.alloc("text", len_bytes)?;
        Ok(Self { device: device.clone(), bytes, len_bytes })
    }

    /// Returns the buffer that kernels write to: at least [`DeviceText::len_bytes`] bytes, and at
    /// least one.
    pub(super) fn bytes_mut(&mut self) -> &mut DeviceBuffer<u8> {
        &mut self.bytes
    }

    /// Returns the length of the text in bytes.
    pub fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Sets all bytes to one value. Tests use this to find bytes that a kernel does not write.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub fn fill(&mut self, byte: u8) -> Result<(), GpuError> {
        let filling = GpuError::driver("filling device memory");
        let stream = self.device.stream();
        self.device.context().bind_to_thread().map_err(&filling)?;
        let num_bytes = self.bytes.len();
        let (at, _used_until_here) = self.bytes.device_ptr_mut(stream);
        // SAFETY: the allocation has `num_bytes` bytes, and the borrow lasts until the call is
        // enqueued.
        unsafe { result::memset_d8_async(at, byte, num_bytes, stream.cu_stream()) }.map_err(filling)
    }

    /// Copies the text to the host after all work on it is done.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of that work.
    pub fn to_host(&self) -> Result<Vec<u8>, GpuError> {
        let copying = GpuError::driver("copying text from the device");
        let mut text = vec![0; self.len_bytes];
        if self.len_bytes > 0 {
            self.device.stream().memcpy_dtoh(&self.bytes, &mut text).map_err(copying)?;
        }
        self.device.synchronize()?;
        Ok(text)
    }
}
