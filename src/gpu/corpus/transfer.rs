//! Numbers from the device to the host, and fillings for tests.

#![allow(unsafe_code, reason = "the driver fills memory by a call that has no safe form")]

use cudarc::driver::{DevicePtrMut, DeviceRepr, ValidAsZeroBits, result};

use crate::gpu::device::Device;
use crate::gpu::error::GpuError;
use crate::gpu::memory::DeviceBuffer;

/// The first `len` values of `buffer`, after all work on it.
pub(super) fn to_host<T: DeviceRepr + ValidAsZeroBits + Clone + Default>(
    device: &Device,
    buffer: &DeviceBuffer<T>,
    len: usize,
) -> Result<Vec<T>, GpuError> {
    let mut values = vec![T::default(); len];
    if len > 0 {
        let copied = device.stream().memcpy_dtoh(&buffer.slice(..len), &mut values);
        copied.map_err(device.fault("copying numbers of a corpus from the device"))?;
    }
    device.synchronize()?;
    Ok(values)
}

/// The value at `at` of `buffer`, after all work on it.
pub(super) fn one_to_host<T: DeviceRepr + Copy + Default>(
    device: &Device,
    buffer: &DeviceBuffer<T>,
    at: usize,
) -> Result<T, GpuError> {
    let mut value = [T::default()];
    let copied = device.stream().memcpy_dtoh(&buffer.slice(at..=at), &mut value);
    copied.map_err(device.fault("copying a number of a corpus from the device"))?;
    device.synchronize()?;
    Ok(value[0])
}

/// Fills `target` with the first `len` values of `first`, then with `rest`.
pub(super) fn append<T: DeviceRepr + ValidAsZeroBits>(
    device: &Device,
    first: &DeviceBuffer<T>,
    len: usize,
    rest: &[T],
    target: &mut DeviceBuffer<T>,
) -> Result<(), GpuError> {
    let copying = device.fault("copying numbers of a corpus");
    let stream = device.stream();
    if len > 0 {
        let copied = stream.memcpy_dtod(&first.slice(..len), &mut target.slice_mut(..len));
        copied.map_err(&copying)?;
    }
    if !rest.is_empty() {
        let copied = stream.memcpy_htod(rest, &mut target.slice_mut(len..len + rest.len()));
        copied.map_err(&copying)?;
    }
    Ok(())
}

/// Sets all bytes of `buffer` to `byte`.
pub(super) fn fill<T>(
    device: &Device,
    buffer: &mut DeviceBuffer<T>,
    byte: u8,
) -> Result<(), GpuError> {
    let filling = device.fault("filling device memory");
    let stream = device.stream();
    device.context().bind_to_thread().map_err(&filling)?;
    let num_bytes = buffer.num_bytes();
    let (at, _used_until_here) = buffer.device_ptr_mut(stream);
    // SAFETY: the allocation has `num_bytes` bytes, and the borrow lasts until it is enqueued.
    unsafe { result::memset_d8_async(at, byte, num_bytes, stream.cu_stream()) }.map_err(filling)
}

/// Sets `num_bytes` from `at` on to 0.
///
/// # Safety
///
/// They lie on `device`, and were taken on its stream.
pub(super) unsafe fn clear(device: &Device, at: u64, num_bytes: usize) -> Result<(), GpuError> {
    let clearing = device.fault("clearing device memory");
    device.context().bind_to_thread().map_err(&clearing)?;
    // SAFETY: the caller promises it.
    unsafe { result::memset_d8_async(at, 0, num_bytes, device.stream().cu_stream()) }
        .map_err(clearing)
}
