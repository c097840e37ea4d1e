//! Memory that the host and an integrated device have in common.
//!
//! An integrated device has no memory of its own: what is copied to it is copied within the host's memory,
//! first to where the driver stages it. So its [`DeviceBuffer`](super::memory::DeviceBuffer)s are managed
//! memory, which the host writes and reads where it lies:
//!
//! ```text
//! a grammar   of a Segment ──one copy──▶ where kernels read it         else to the driver's pages, then there
//! rows        where kernels wrote them ──one copy──▶ the caller's Vec  else to pinned pages, then there
//! ```
//!
//! Managed and not mapped page-locked memory, as scans of GSST blocks use: an integrated device does not cache
//! page-locked memory, which is right for bytes that are read once; kernels of corpora read the same elements
//! many times, at random places.
//!
//! Where a device lacks `concurrentManagedAccess`, as Tegras do, the host must not touch managed memory that the
//! device may use while any kernel runs. So memory is the one's or the other's at a time: taken for the host, given
//! to the device behind what its stream was given before, and lent back to read rows.
//!
//! The driver has no pool of it before CUDA 13: each buffer is asked for, and giving it back waits for the device.
//! What that takes, and what it wins, was measured on no integrated device: there was none.

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

/// Room for `len` values, one or more, which is the host's until [`give_to_device`]; not initialized.
pub(super) fn take<T>(stream: &Arc<CudaStream>, len: usize) -> Result<CudaSlice<T>, DriverError> {
    stream.context().bind_to_thread()?;
    let attached = Attach::CU_MEM_ATTACH_HOST;
    // SAFETY: a context is current; whoever takes it initializes it.
    let at = unsafe { result::malloc_managed(len * size_of::<T>(), attached) }?;
    // SAFETY: it was just taken, for so many values.
    Ok(unsafe { stream.upgrade_device_ptr(at, len) })
}

/// Gives back what [`take`] took, when all work on it is done.
pub(super) fn give_back<T>(slice: CudaSlice<T>) {
    let stream = Arc::clone(slice.stream());
    // Has the stream wait for others that used it.
    let at = slice.leak();
    if stream.context().bind_to_thread().is_err() {
        return;
    }
    // An error here is one of work given before, which its own waiting reports.
    let _ = stream.synchronize();
    // SAFETY: taken by `take`, once; nobody uses it any more.
    let _ = unsafe { result::free_sync(at) };
}

/// Has it be the device's, behind all that `stream` was given before; other streams wait for that as for a copy.
pub(super) fn give_to_device<T>(
    slice: &mut CudaSlice<T>,
    stream: &CudaStream,
) -> Result<(), DriverError> {
    let (at, _written) = slice.device_ptr_mut(stream);
    attach(at, stream, Attach::CU_MEM_ATTACH_GLOBAL)
}

/// Writes `values`, and zeros behind them, to memory that is the host's. As many as fit.
pub(super) fn write<T: DeviceRepr + ValidAsZeroBits>(
    slice: &mut CudaSlice<T>,
    values: &[T],
    stream: &CudaStream,
) {
    let num_values = values.len().min(slice.len());
    let at: *mut T = ptr::with_exposed_provenance_mut(slice.device_ptr(stream).0 as usize);
    // SAFETY: there is room for `slice.len()` values, which nobody else has, at an address that is the host's
    // too; `values` lie elsewhere.
    unsafe { ptr::copy_nonoverlapping(values.as_ptr(), at, num_values) };
    // SAFETY: as above; all 0 is a value.
    unsafe { ptr::write_bytes(at.add(num_values), 0, slice.len() - num_values) };
}

/// Values that are lent to the host, until dropped.
#[derive(Debug)]
pub(super) struct Lent<'a, T> {
    at: CUdeviceptr,
    len: usize,
    stream: &'a CudaStream,
    _values: PhantomData<&'a [T]>,
}

impl<'a, T: DeviceRepr + ValidAsZeroBits> Lent<'a, T> {
    /// Lends what [`take`] took, which was initialized, when all that `stream` was given before is done.
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
        // SAFETY: so many values lie there, any bits of which are some; they are the host's, and who may write
        // them waits for the end of the borrow.
        unsafe {
            std::slice::from_raw_parts(ptr::with_exposed_provenance(self.at as usize), self.len)
        }
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        // Whoever works with it next is told what is wrong.
        let _ = attach(self.at, self.stream, Attach::CU_MEM_ATTACH_GLOBAL);
    }
}

fn attach(at: CUdeviceptr, stream: &CudaStream, to: Attach) -> Result<(), DriverError> {
    stream.context().bind_to_thread()?;
    // SAFETY: `at` is where managed memory starts, all of which (0) changes hands.
    unsafe { result::stream::attach_mem_async(stream.cu_stream(), at, 0, to) }
}
