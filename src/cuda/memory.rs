//! Device memory that knows what it may take.
//!
//! Every allocation of a [`Device`](super::Device) is counted in its [`MemoryBudget`], and given back
//! when it is dropped, in the order of the stream it was made on.

#![allow(unsafe_code, reason = "the driver's allocations by address have no safe form")]

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{
    CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, DriverError,
    LaunchArgs, PushKernelArg, SyncOnDrop, ValidAsZeroBits, result, sys,
};

use super::device::Device;
use super::error::GpuError;
use super::managed::{self, Lent};

/// Bytes of device memory: how many may be taken, are taken, and were taken at most.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    max_bytes: AtomicU64,
    used_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    /// Bytes sent there so far.
    copied_bytes: AtomicU64,
}

/// Bytes taken from a budget, until dropped.
#[derive(Debug)]
pub(super) struct Lease {
    budget: Arc<MemoryBudget>,
    num_bytes: u64,
}

impl MemoryBudget {
    pub(super) fn new(max_bytes: u64) -> Self {
        let [used_bytes, peak_bytes, copied_bytes] = [0; 3].map(AtomicU64::new);
        Self { max_bytes: AtomicU64::new(max_bytes), used_bytes, peak_bytes, copied_bytes }
    }

    /// What may be taken from now on; what was taken before stays.
    pub(super) fn set_max_bytes(&self, max_bytes: u64) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
    }

    pub(super) fn max_bytes(&self) -> u64 {
        self.max_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    pub(super) fn count_copied(&self, num_bytes: u64) {
        self.copied_bytes.fetch_add(num_bytes, Ordering::Relaxed);
    }

    pub(super) fn copied_bytes(&self) -> u64 {
        self.copied_bytes.load(Ordering::Relaxed)
    }

    /// Takes `requested_bytes` for `what`.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`] where fewer are left.
    pub(super) fn take(
        self: &Arc<Self>,
        what: &'static str,
        requested_bytes: u64,
    ) -> Result<Lease, GpuError> {
        let max_bytes = self.max_bytes();
        let fits = |used: u64| used.checked_add(requested_bytes).filter(|sum| *sum <= max_bytes);
        let before = self
            .used_bytes
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
            .map_err(|used| {
                let available_bytes = max_bytes.saturating_sub(used);
                GpuError::OutOfMemory { what, requested_bytes, available_bytes }
            })?;
        self.peak_bytes.fetch_max(before + requested_bytes, Ordering::Relaxed);
        Ok(Lease { budget: self.clone(), num_bytes: requested_bytes })
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.budget.used_bytes.fetch_sub(self.num_bytes, Ordering::Relaxed);
    }
}

/// Values in device memory that are counted: a slice of cudarc's with its lease. Whatever takes one of
/// those takes this.
#[derive(Debug)]
pub(super) struct DeviceBuffer<T> {
    /// Until it is dropped.
    slice: ManuallyDrop<CudaSlice<T>>,
    /// Whether it is memory of the host, too, which gives it back in its own way.
    is_managed: bool,
    _lease: Lease,
}

impl<T> DeviceBuffer<T> {
    pub(super) fn new(slice: CudaSlice<T>, lease: Lease) -> Self {
        Self { slice: ManuallyDrop::new(slice), is_managed: false, _lease: lease }
    }

    /// Of a slice that [`managed::take`] took.
    pub(super) fn managed(slice: CudaSlice<T>, lease: Lease) -> Self {
        Self { slice: ManuallyDrop::new(slice), is_managed: true, _lease: lease }
    }

    /// Whether the host reaches it where it lies.
    pub(super) fn is_managed(&self) -> bool {
        self.is_managed
    }
}

impl<T: DeviceRepr + ValidAsZeroBits> DeviceBuffer<T> {
    /// Lends the values to the host, after all work that `stream` was given; `None` where it does not reach them.
    pub(super) fn lend<'a>(
        &'a self,
        stream: &'a CudaStream,
    ) -> Result<Option<Lent<'a, T>>, DriverError> {
        self.is_managed.then(|| Lent::new(&self.slice, stream)).transpose()
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: nobody uses the field after this.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        if self.is_managed {
            managed::give_back(slice);
        }
    }
}

impl<T> Deref for DeviceBuffer<T> {
    type Target = CudaSlice<T>;

    fn deref(&self) -> &CudaSlice<T> {
        &self.slice
    }
}

impl<T> DerefMut for DeviceBuffer<T> {
    fn deref_mut(&mut self) -> &mut CudaSlice<T> {
        &mut self.slice
    }
}

impl<T> DeviceSlice<T> for DeviceBuffer<T> {
    fn len(&self) -> usize {
        self.slice.len()
    }

    fn stream(&self) -> &Arc<CudaStream> {
        self.slice.stream()
    }
}

impl<T> DevicePtr<T> for DeviceBuffer<T> {
    fn device_ptr<'a>(&'a self, stream: &'a CudaStream) -> (sys::CUdeviceptr, SyncOnDrop<'a>) {
        self.slice.device_ptr(stream)
    }
}

impl<T> DevicePtrMut<T> for DeviceBuffer<T> {
    fn device_ptr_mut<'a>(
        &'a mut self,
        stream: &'a CudaStream,
    ) -> (sys::CUdeviceptr, SyncOnDrop<'a>) {
        self.slice.device_ptr_mut(stream)
    }
}

// SAFETY: what is pushed is the address of the slice, by cudarc's own means.
unsafe impl<'a, 'b: 'a, T> PushKernelArg<&'b DeviceBuffer<T>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, arg: &'b DeviceBuffer<T>) -> &mut Self {
        self.arg(&*arg.slice)
    }
}

// SAFETY: as above.
unsafe impl<'a, 'b: 'a, T> PushKernelArg<&'b mut DeviceBuffer<T>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, arg: &'b mut DeviceBuffer<T>) -> &mut Self {
        self.arg(&mut *arg.slice)
    }
}

/// Bytes in device memory, from a multiple of 256 on; not initialized.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    at: sys::CUdeviceptr,
    len_bytes: usize,
    stream: Arc<CudaStream>,
    _lease: Lease,
}

impl DeviceMemory {
    /// Takes `len_bytes` for `what`, at least one, to be used on `stream` or behind an event of it.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub(super) fn new(
        device: &Device,
        stream: &Arc<CudaStream>,
        what: &'static str,
        len_bytes: usize,
    ) -> Result<Self, GpuError> {
        let len_bytes = len_bytes.max(1);
        let lease = device.budget().take(what, len_bytes as u64)?;
        device.context().bind_to_thread().map_err(device.fault(what))?;
        let taken = if device.context().has_async_alloc() {
            // SAFETY: the stream is alive, and its context is current.
            unsafe { result::malloc_async(stream.cu_stream(), len_bytes) }
        } else {
            // SAFETY: the context is current.
            unsafe { result::malloc_sync(len_bytes) }
        };
        let at = taken.map_err(|error| match device.fault(what)(error) {
            GpuError::OutOfMemory { what, .. } => {
                let available_bytes = device.free_bytes().unwrap_or(0);
                GpuError::OutOfMemory { what, requested_bytes: len_bytes as u64, available_bytes }
            }
            other => other,
        })?;
        Ok(Self { at, len_bytes, stream: stream.clone(), _lease: lease })
    }

    /// The same memory, to be used on `stream` and given back in its order from now on; work on it was
    /// waited for.
    pub(super) fn moved_to(mut self, stream: &Arc<CudaStream>) -> Self {
        self.stream = stream.clone();
        self
    }

    /// Its address on the device.
    pub(super) fn address(&self) -> u64 {
        self.at
    }

    pub(super) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    pub(super) fn stream(&self) -> &Arc<CudaStream> {
        &self.stream
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        let context = self.stream.context();
        if context.bind_to_thread().is_err() {
            return;
        }
        // An error here is one of work given before, which its own waiting reports.
        let _ = if context.has_async_alloc() {
            // SAFETY: taken by `malloc_async`, once; work on it was given to this stream before.
            unsafe { result::free_async(self.at, self.stream.cu_stream()) }
        } else {
            // SAFETY: taken by `malloc_sync`, once; freeing waits for the device.
            unsafe { result::free_sync(self.at) }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budgets_refuse_count_and_give_back() {
        let budget = Arc::new(MemoryBudget::new(100));
        let first = budget.take("a", 60).unwrap();
        let refused = budget.take("b", 41).unwrap_err();
        let expected =
            GpuError::OutOfMemory { what: "b", requested_bytes: 41, available_bytes: 40 };
        assert_eq!(refused, expected);
        let second = budget.take("b", 40).unwrap();
        assert_eq!((budget.used_bytes(), budget.peak_bytes()), (100, 100));
        drop(first);
        assert_eq!((budget.used_bytes(), budget.peak_bytes()), (40, 100));
        assert!(budget.take("c", u64::MAX).is_err());
        // A lower limit holds for what comes.
        budget.set_max_bytes(30);
        assert_eq!((budget.used_bytes(), budget.max_bytes()), (40, 30));
        assert!(budget.take("d", 1).is_err());
        drop(second);
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.take("e", 30).is_ok());
    }
}
