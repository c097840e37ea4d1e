//! Managed memory, which the host and an integrated device share.
//!
//! An integrated device has no memory of its own. A copy to it is a copy within the host's memory,
//! and passes through the driver's staging pages. So its
//! [`DeviceBuffer`](super::memory::DeviceBuffer)s are managed memory, which the host reads and
//! writes in place:
//!
//! ```text
//! a grammar  Segment ──one copy──▶ where kernels read it              else by the driver's pages
//! rows       where kernels wrote them ──one copy──▶ the caller's Vec  else by pinned pages
//! ```
//!
//! Scans of GSST blocks use mapped page-locked memory instead. An integrated device does not cache
//! page-locked memory, which suits bytes that are read once. Kernels of corpora read the same
//! elements many times, at random places.
//!
//! If a device lacks `concurrentManagedAccess`, as Tegra devices do, the host must not touch
//! managed memory that the device may use while any kernel runs. So the memory belongs to the host
//! or to the device at any time. It is allocated for the host, handed to the device in the order of
//! its stream, and lent back to read rows.
//!
//! Before CUDA 13 the driver has no pool of managed memory: each buffer is a separate allocation,
//! and freeing it waits for the device. The costs and gains were not measured on an integrated
//! device, because none was available.

#![allow(unsafe_code, reason = "the driver's calls for managed memory have no safe form")]

use std::marker::PhantomData;
use std::ops::Deref;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::{
    CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DriverError, ValidAsZeroBits,
    result,
    sys::{CUdeviceptr, CUmemAttach_flags as Attach},
};

/// Allocates uninitialized memory for `len` values, at least one. It belongs to the host until
/// [`give_to_device`].
pub(super) fn take<T>(stream: &Arc<CudaStream>, len: usize) -> Result<CudaSlice<T>, DriverError> {
    stream.context().bind_to_thread()?;
    let attached = Attach::CU_MEM_ATTACH_HOST;
    // SAFETY: a context is current; the caller initializes the memory.
    let at = unsafe { result::malloc_managed(len * size_of::<T>(), attached) }?;
    // SAFETY: the memory was just allocated for `len` values.
    Ok(unsafe { stream.upgrade_device_ptr(at, len) })
}

/// Frees memory of [`take`] after all work on it is done.
pub(super) fn give_back<T>(slice: CudaSlice<T>) {
    let stream = Arc::clone(slice.stream());
    // Makes the stream wait for other streams that used it.
    let at = slice.leak();
    if stream.context().bind_to_thread().is_err() {
        return;
    }
    // Ignores an error: it belongs to earlier work, and the wait for that work reports it.
    let _ = stream.synchronize();
    // SAFETY: allocated by `take` and freed once; it has no other user.
    let _ = unsafe { result::free_sync(at) };
}

/// Hands the memory to the device, after all earlier work of `stream`. Other streams wait for this
/// as for a copy.
pub(super) fn give_to_device<T>(
    slice: &mut CudaSlice<T>,
    stream: &CudaStream,
) -> Result<(), DriverError> {
    let (at, _written) = slice.device_ptr_mut(stream);
    attach(at, stream, Attach::CU_MEM_ATTACH_GLOBAL)
}

/// Writes as many of `values` as fit to memory that belongs to the host, and zeros after them.
pub(super) fn write<T: DeviceRepr + ValidAsZeroBits>(
    slice: &mut CudaSlice<T>,
    values: &[T],
    stream: &CudaStream,
) {
    let num_values = values.len().min(slice.len());
    let at: *mut T = ptr::with_exposed_provenance_mut(slice.device_ptr(stream).0 as usize);
    // SAFETY: the memory has room for `slice.len()` values and no other user. Its address is valid
    // on the host. `values` lie elsewhere.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr(), at, num_values) };
    // SAFETY: same argument as for the call above; all-zero bits are a valid value.
    unsafe { ptr::write_bytes(at.add(num_values), 0, slice.len() - num_values) };
}

/// Values that are lent to the host until this is dropped.
#[derive(Debug)]
pub(super) struct Lent<'a, T> {
    at: CUdeviceptr,
    len: usize,
    stream: &'a CudaStream,
    _values: PhantomData<&'a [T]>,
}

impl<'a, T: DeviceRepr + ValidAsZeroBits> Lent<'a, T> {
    /// Lends initialized memory of [`take`] to the host, after all earlier work of `stream`.
    pub(super) fn new(
        slice: &'a CudaSlice<T>,
        stream: &'a CudaStream,
    ) -> Result<Self, DriverError> {
        let (at, len) = (slice.device_ptr(stream).0, slice.len());
        attach(at, stream, Attach::CU_MEM_ATTACH_HOST)?;
        let lent = Self { at, len, stream, _values: PhantomData };
        stream.synchronize()?;
        Ok(lent)
    }
}

impl<T> Deref for Lent<'_, T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` values lie there, and any bits are valid. They belong to the host; a writer
        // waits for the end of the borrow.
        // them waits for the end of the borrow.
        unsafe {
            std::slice::from_raw_parts(ptr::with_exposed_provenance(self.at as usize), self.len)
        }
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        // Ignores an error: the next call on this memory reports it.
        let _ = attach(self.at, self.stream, Attach::CU_MEM_ATTACH_GLOBAL);
    }
}

fn attach(at: CUdeviceptr, stream: &CudaStream, to: Attach) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    // SAFETY: `at` is the start of managed memory; the length 0 attaches all of it.
    unsafe { result::stream::attach_mem_async(stream.cu_stream(), at, 0, to) }
}
