//! Memory that devices reach: their own, counted in a budget, and that of the host.
//!
//! The [`MemoryBudget`] of a [`Device`](super::Device) counts all its allocations. Each is freed
//! when it is dropped, in the order of its stream.
//!
//! # Managed memory
//!
//! An integrated device has no memory of its own. A copy to it is a copy within the host's memory, and passes through
//! the driver's staging pages. So its [`DeviceBuffer`]s are managed memory, which the host reads and writes in place:
//!
//! ```text
//! a grammar  Segment ──one copy──▶ where kernels read it              else by the driver's pages
//! rows       where kernels wrote them ──one copy──▶ the caller's Vec  else by pinned pages
//! ```
//!
//! Scans of GSST blocks use mapped page-locked memory instead. An integrated device does not cache page-locked memory,
//! which suits bytes that are read once. Kernels of corpora read the same elements many times, at random places.
//!
//! If a device lacks `concurrentManagedAccess`, as Tegra devices do, the host must not touch managed memory that the
//! device may use while any kernel runs. So the memory belongs to the host or to the device at any time. It is
//! allocated for the host, handed to the device in the order of its stream, and lent back to read rows.
//!
//! Before CUDA 13 the driver has no pool of managed memory: each buffer is a separate allocation, and freeing it waits
//! for the device. The costs and gains were not measured on an integrated device, because none was available.
//!
//! # Pinned memory
//!
//! Pageable memory of the host is copied at a fifth of the speed of pinned memory, and pinning a page
//! takes as long as copying it several times. So pinned buffers are kept. A [`PinnedPool`] holds at most
//! a given number of bytes, in use and free together. If that does not suffice, a buffer is pageable:
//! slower, but no caller waits for a reader that holds all other buffers.

#![allow(unsafe_code, reason = "memory of the driver by address, and calls for managed memory that have no safe form")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{self, CUdeviceptr, CUmemAttach_flags as Attach};
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DeviceRepr, DeviceSlice, DriverError, LaunchArgs,
    PushKernelArg, SyncOnDrop, ValidAsZeroBits, result,
};

use crate::error::{self, GpuError};

/// A budget of device memory: the limit, the bytes in use and the peak.
#[derive(Debug)]
pub(super) struct MemoryBudget {
    max_bytes: AtomicU64,
    used_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    /// Bytes copied to the device so far.
    copied_bytes: AtomicU64,
}

/// A share of a budget, held until it is dropped.
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

    /// Sets the limit for later allocations. Earlier ones stay.
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

    /// Reserves `requested_bytes` for `what`.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`] if fewer bytes are left.
    pub(super) fn take(self: &Arc<Self>, what: &'static str, requested_bytes: u64) -> Result<Lease, GpuError> {
        let max_bytes = self.max_bytes();
        let fits = |used: u64| used.checked_add(requested_bytes).filter(|sum| *sum <= max_bytes);
        let before = self.used_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).map_err(|used| {
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

/// A slice of cudarc's with its share of the budget. It can be used wherever such a slice can.
#[derive(Debug)]
pub(super) struct DeviceBuffer<T> {
    /// The slice; taken out on drop.
    slice: ManuallyDrop<CudaSlice<T>>,
    /// True if the memory is managed, so that [`give_back`] frees it.
    is_managed: bool,
    _lease: Lease,
}

impl<T> DeviceBuffer<T> {
    pub(super) fn new(slice: CudaSlice<T>, lease: Lease) -> Self {
        Self { slice: ManuallyDrop::new(slice), is_managed: false, _lease: lease }
    }

    /// Wraps a slice of [`take`].
    pub(super) fn managed(slice: CudaSlice<T>, lease: Lease) -> Self {
        Self { slice: ManuallyDrop::new(slice), is_managed: true, _lease: lease }
    }

    /// Returns true if the host reaches the memory in place.
    pub(super) fn is_managed(&self) -> bool {
        self.is_managed
    }
}

impl<T: DeviceRepr + ValidAsZeroBits> DeviceBuffer<T> {
    /// Lends the values to the host after all work of `stream`. `None` if the host does not reach
    /// them.
    pub(super) fn lend<'a>(&'a self, stream: &'a CudaStream) -> Result<Option<Lent<'a, T>>, DriverError> {
        self.is_managed.then(|| Lent::new(&self.slice, stream)).transpose()
    }
}

impl<T> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        // SAFETY: the field is not used after this.
        let slice = unsafe { ManuallyDrop::take(&mut self.slice) };
        if self.is_managed {
            give_back(slice);
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
    fn device_ptr_mut<'a>(&'a mut self, stream: &'a CudaStream) -> (sys::CUdeviceptr, SyncOnDrop<'a>) {
        self.slice.device_ptr_mut(stream)
    }
}

// SAFETY: the implementation pushes the address of the slice through cudarc's own implementation.
unsafe impl<'a, 'b: 'a, T> PushKernelArg<&'b DeviceBuffer<T>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, arg: &'b DeviceBuffer<T>) -> &mut Self {
        self.arg(&*arg.slice)
    }
}

// SAFETY: same argument as for the implementation above.
unsafe impl<'a, 'b: 'a, T> PushKernelArg<&'b mut DeviceBuffer<T>> for LaunchArgs<'a> {
    #[inline(always)]
    fn arg(&mut self, arg: &'b mut DeviceBuffer<T>) -> &mut Self {
        self.arg(&mut *arg.slice)
    }
}

/// Uninitialized bytes in device memory, aligned to 256.
#[derive(Debug)]
pub(super) struct DeviceMemory {
    at: sys::CUdeviceptr,
    len_bytes: usize,
    stream: Arc<CudaStream>,
    _lease: Lease,
}

impl DeviceMemory {
    /// Allocates `len_bytes` for `what`, at least one, within `budget`. The memory is used on
    /// `stream`, or after an event of `stream`.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub(super) fn new(
        budget: &Arc<MemoryBudget>,
        stream: &Arc<CudaStream>,
        what: &'static str,
        len_bytes: usize,
    ) -> Result<Self, GpuError> {
        let len_bytes = len_bytes.max(1);
        let lease = budget.take(what, len_bytes as u64)?;
        let context = stream.context();
        let fault = error::fault(context.ordinal(), what);
        context.bind_to_thread().map_err(&fault)?;
        let taken = if context.has_async_alloc() {
            // SAFETY: the stream is alive, and its context is current.
            unsafe { result::malloc_async(stream.cu_stream(), len_bytes) }
        } else {
            // SAFETY: the context is current.
            unsafe { result::malloc_sync(len_bytes) }
        };
        let at = taken.map_err(|error| match fault(error) {
            GpuError::OutOfMemory { what, .. } => {
                let available_bytes = context.mem_get_info().map_or(0, |(free, _)| free as u64);
                GpuError::OutOfMemory { what, requested_bytes: len_bytes as u64, available_bytes }
            }
            other => other,
        })?;
        Ok(Self { at, len_bytes, stream: stream.clone(), _lease: lease })
    }

    /// Moves the memory to `stream`, which uses and frees it from now on. Earlier work on it must
    /// be done.
    pub(super) fn moved_to(mut self, stream: &Arc<CudaStream>) -> Self {
        self.stream = stream.clone();
        self
    }

    /// Makes later work on the memory, freeing it included, wait for the work that the default stream has now.
    pub(super) fn follow_default_stream(&self) {
        let now = self.stream.context().default_stream().record_event(None);
        // Ignores an error: it belongs to earlier work, and the wait for that work reports it.
        let _ = now.and_then(|now| self.stream.wait(&now));
    }

    /// Returns the address on the device.
    pub(super) fn address(&self) -> u64 {
        self.at
    }

    /// Sets all bytes to one value, in the order of its stream.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`].
    pub(super) fn fill(&self, byte: u8) -> Result<(), GpuError> {
        let context = self.stream.context();
        let filling = error::fault(context.ordinal(), "filling device memory");
        context.bind_to_thread().map_err(&filling)?;
        // SAFETY: the allocation has this length and lives until the work on its stream is done.
        unsafe { result::memset_d8_async(self.at, byte, self.len_bytes, self.stream.cu_stream()) }.map_err(filling)
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
        // Ignores an error: it belongs to earlier work, and the wait for that work reports it.
        let _ = if context.has_async_alloc() {
            // SAFETY: allocated by `malloc_async` and freed once; this stream was given all work on
            // it before.
            unsafe { result::free_async(self.at, self.stream.cu_stream()) }
        } else {
            // SAFETY: allocated by `malloc_sync` and freed once; the call waits for the device.
            unsafe { result::free_sync(self.at) }
        };
    }
}

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
pub(super) fn give_to_device<T>(slice: &mut CudaSlice<T>, stream: &CudaStream) -> Result<(), DriverError> {
    let (at, _written) = slice.device_ptr_mut(stream);
    attach(at, stream, Attach::CU_MEM_ATTACH_GLOBAL)
}

/// Writes as many of `values` as fit to memory that belongs to the host, and zeros after them.
pub(super) fn write<T: DeviceRepr + ValidAsZeroBits>(slice: &mut CudaSlice<T>, values: &[T], stream: &CudaStream) {
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
    pub(super) fn new(slice: &'a CudaSlice<T>, stream: &'a CudaStream) -> Result<Self, DriverError> {
        let at = slice.device_ptr(stream).0;
        let len = slice.len();
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
        unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance(self.at as usize), self.len) }
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

/// Smallest size of a buffer. Sizes are multiples of it, so that freed buffers fit later requests.
const GRAIN_BYTES: usize = 1 << 20;
/// Alignment of pageable buffers. Pinned ones start at a page.
const PAGEABLE_ALIGNMENT_BYTES: usize = 64;

/// A pool of pinned buffers, shared by the holders of its buffers.
#[derive(Debug)]
pub(super) struct PinnedPool {
    context: Arc<CudaContext>,
    max_bytes: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Pinned bytes, in use and free.
    pinned_bytes: usize,
    free: Vec<Pages>,
}

/// A range of memory that starts at a multiple of 64.
#[derive(Debug)]
struct Pages {
    at: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: the address has one owner and points to plain bytes.
unsafe impl Send for Pages {}
// SAFETY: the address has one owner, and shared references only read.
unsafe impl Sync for Pages {}

/// Host memory, pinned if its pool had room. It returns to the pool when dropped.
///
/// Arrow takes it without a copy: `Buffer::from_custom_allocation(buffer.as_non_null(), len, Arc)`.
#[derive(Debug)]
pub struct HostBuffer {
    pages: Pages,
    len_bytes: usize,
    /// Pool of the buffer; `None` if it is pageable.
    pool: Option<Arc<PinnedPool>>,
}

impl UnwindSafe for HostBuffer {}
impl RefUnwindSafe for HostBuffer {}

impl PinnedPool {
    /// Builds an empty pool of at most `max_bytes`.
    pub(super) fn new(context: &Arc<CudaContext>, max_bytes: usize) -> Arc<Self> {
        let max_bytes = AtomicUsize::new(max_bytes);
        let state = Mutex::default();
        Arc::new(Self { context: context.clone(), max_bytes, state })
    }

    /// Sets the limit to `max_bytes` from now on, and unpins free buffers to reach it.
    pub(super) fn set_max_bytes(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        self.make_room(&mut self.lock(), 0);
    }

    /// Takes a buffer of `len_bytes` with unspecified content.
    pub(super) fn take(self: &Arc<Self>, len_bytes: usize) -> HostBuffer {
        let wanted = len_bytes.max(1).next_multiple_of(GRAIN_BYTES);
        match self.pages(wanted) {
            Some(pages) => HostBuffer { pages, len_bytes, pool: Some(self.clone()) },
            None => HostBuffer { pages: pageable(wanted), len_bytes, pool: None },
        }
    }

    /// Returns the number of pinned bytes, in use and free.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.lock().pinned_bytes
    }

    fn pages(&self, wanted: usize) -> Option<Pages> {
        let mut state = self.lock();
        // The smallest buffer that is large enough, but less than four times the size.
        let fits = |pages: &Pages| (wanted..4 * wanted).contains(&pages.len_bytes);
        let found =
            (0..state.free.len()).filter(|at| fits(&state.free[*at])).min_by_key(|at| state.free[*at].len_bytes);
        if let Some(at) = found {
            return Some(state.free.swap_remove(at));
        }
        if !self.make_room(&mut state, wanted) {
            return None;
        }
        state.pinned_bytes += wanted;
        drop(state); // pinning takes milliseconds
        let pinned = self.pin(wanted);
        if pinned.is_none() {
            self.lock().pinned_bytes -= wanted;
        }
        pinned
    }

    /// Unpins free buffers until `wanted` more bytes fit. Returns true if they fit.
    fn make_room(&self, state: &mut State, wanted: usize) -> bool {
        while state.pinned_bytes + wanted > self.max_bytes.load(Ordering::Relaxed) {
            let Some(pages) = state.free.pop() else { return false };
            state.pinned_bytes -= pages.len_bytes;
            self.unpin(pages);
        }
        true
    }

    fn pin(&self, len_bytes: usize) -> Option<Pages> {
        self.context.bind_to_thread().ok()?;
        // The host reads it without a penalty (not write-combined). All devices know and reach it.
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: a context is current; the caller owns the memory.
        let at = unsafe { result::malloc_host(len_bytes, flags) }.ok()?;
        let at = NonNull::new(at.cast::<u8>())?;
        // Initializes the memory, so that all of it can be read even if a copy leaves out parts.
        // SAFETY: the allocation has `len_bytes` bytes and no other user yet.
        unsafe { at.write_bytes(0, len_bytes) };
        Some(Pages { at, len_bytes })
    }

    fn unpin(&self, pages: Pages) {
        if self.context.bind_to_thread().is_ok() {
            // The call fails only after a fault of the device. The memory is then freed with the
            // process.
            // SAFETY: allocated by `pin` and owned.
            let _ = unsafe { result::free_host(pages.at.as_ptr().cast()) };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PinnedPool {
    fn drop(&mut self) {
        for pages in std::mem::take(&mut self.lock().free) {
            self.unpin(pages);
        }
    }
}

fn layout(len_bytes: usize) -> Layout {
    // Lengths are multiples of 2^20 and describe buffers in memory, so the layout is valid.
    Layout::from_size_align(len_bytes, PAGEABLE_ALIGNMENT_BYTES).unwrap_or(Layout::new::<u64>())
}

fn pageable(len_bytes: usize) -> Pages {
    let layout = layout(len_bytes);
    // SAFETY: the layout is not empty.
    let at = unsafe { alloc_zeroed(layout) };
    match NonNull::new(at) {
        Some(at) => Pages { at, len_bytes },
        None => handle_alloc_error(layout),
    }
}

impl HostBuffer {
    /// Returns true if the buffer is pinned.
    pub fn is_pinned(&self) -> bool {
        self.pool.is_some()
    }

    /// Returns the address on the devices. `None` if they cannot reach it because it is pageable.
    pub(super) fn device_address(&self) -> Option<u64> {
        let pool = self.pool.as_ref()?;
        pool.context.bind_to_thread().ok()?;
        let mut address = 0;
        let at = self.pages.at.as_ptr().cast();
        // SAFETY: the memory comes from `pin`, and the driver writes one address to a valid place.
        let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, at, 0) };
        status.result().ok().map(|()| address)
    }

    /// Returns the address of the buffer.
    pub(crate) fn as_non_null(&self) -> NonNull<u8> {
        self.pages.at
    }

    /// Sets the length to the first `len_bytes`, at most the capacity.
    pub(super) fn set_len(&mut self, len_bytes: usize) {
        self.len_bytes = len_bytes.min(self.pages.len_bytes);
    }

    /// Returns the capacity in bytes, which is also the memory that the buffer uses.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.pages.len_bytes
    }
}

impl Deref for HostBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the allocation is initialized, owned, and has at least `len_bytes` bytes.
        unsafe { std::slice::from_raw_parts(self.pages.at.as_ptr(), self.len_bytes) }
    }
}

impl DerefMut for HostBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: the allocation is initialized, has at least `len_bytes` bytes, and is borrowed
        // mutably.
        unsafe { std::slice::from_raw_parts_mut(self.pages.at.as_ptr(), self.len_bytes) }
    }
}

impl Drop for HostBuffer {
    fn drop(&mut self) {
        let Pages { at, len_bytes } = self.pages;
        match &self.pool {
            Some(pool) => pool.lock().free.push(Pages { at, len_bytes }),
            // SAFETY: allocated by `pageable` with the same layout, and owned.
            None => unsafe { dealloc(at.as_ptr(), layout(len_bytes)) },
        }
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
        let expected = GpuError::OutOfMemory { what: "b", requested_bytes: 41, available_bytes: 40 };
        assert_eq!(refused, expected);
        let second = budget.take("b", 40).unwrap();
        assert_eq!((budget.used_bytes(), budget.peak_bytes()), (100, 100));
        drop(first);
        assert_eq!((budget.used_bytes(), budget.peak_bytes()), (40, 100));
        assert!(budget.take("c", u64::MAX).is_err());
        // A lower limit applies to later allocations.
        budget.set_max_bytes(30);
        assert_eq!((budget.used_bytes(), budget.max_bytes()), (40, 30));
        assert!(budget.take("d", 1).is_err());
        drop(second);
        assert_eq!(budget.used_bytes(), 0);
        assert!(budget.take("e", 30).is_ok());
    }
}
