//! Host memory that devices copy to and from at full speed, and that goes back to its pool.
//!
//! Pageable memory is copied at a fifth of the speed of pinned memory, and pinning a page takes as
//! long as copying it several times. So pinned buffers are kept: a [`PinnedPool`] has at most a
//! given number of bytes, in use and free together. Where that is not enough, a buffer is pageable:
//! slower, but nobody waits for a reader that holds all others.

#![allow(unsafe_code, reason = "memory from the driver, by address")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaContext, result, sys};

/// Smallest buffer; sizes are multiples of it, so that buffers fit again.
const GRAIN_BYTES: usize = 1 << 20;
/// Alignment of pageable buffers; pinned ones start at a page.
const PAGEABLE_ALIGNMENT_BYTES: usize = 64;

/// Pinned buffers; shared by all who hold one of them.
#[derive(Debug)]
pub(super) struct PinnedPool {
    context: Arc<CudaContext>,
    max_bytes: AtomicUsize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Pinned, in use and free.
    pinned_bytes: usize,
    free: Vec<Pages>,
}

/// Bytes of memory, from a multiple of 64 on.
#[derive(Debug)]
struct Pages {
    at: NonNull<u8>,
    len_bytes: usize,
}

// SAFETY: an address that nobody else has; what it points to are plain bytes.
unsafe impl Send for Pages {}
// SAFETY: as above, and shared references only read.
unsafe impl Sync for Pages {}

/// Host memory, pinned where its pool had room. Goes back to the pool when dropped.
///
/// Arrow takes it without a copy: `Buffer::from_custom_allocation(buffer.as_non_null(), len, Arc)`.
#[derive(Debug)]
pub struct HostBuffer {
    pages: Pages,
    len_bytes: usize,
    /// `None`: pageable.
    pool: Option<Arc<PinnedPool>>,
}

impl UnwindSafe for HostBuffer {}
impl RefUnwindSafe for HostBuffer {}

impl PinnedPool {
    /// A pool of at most `max_bytes`, empty.
    pub(super) fn new(context: &Arc<CudaContext>, max_bytes: usize) -> Arc<Self> {
        let (max_bytes, state) = (AtomicUsize::new(max_bytes), Mutex::default());
        Arc::new(Self { context: context.clone(), max_bytes, state })
    }

    /// Holds at most `max_bytes` from now on, as far as buffers are free.
    pub(super) fn set_max_bytes(&self, max_bytes: usize) {
        self.max_bytes.store(max_bytes, Ordering::Relaxed);
        self.make_room(&mut self.lock(), 0);
    }

    /// A buffer of `len_bytes`, its content unspecified.
    pub(super) fn take(self: &Arc<Self>, len_bytes: usize) -> HostBuffer {
        let wanted = len_bytes.max(1).next_multiple_of(GRAIN_BYTES);
        match self.pages(wanted) {
            Some(pages) => HostBuffer { pages, len_bytes, pool: Some(self.clone()) },
            None => HostBuffer { pages: pageable(wanted), len_bytes, pool: None },
        }
    }

    /// Bytes that are pinned, in use and free.
    pub(super) fn pinned_bytes(&self) -> usize {
        self.lock().pinned_bytes
    }

    fn pages(&self, wanted: usize) -> Option<Pages> {
        let mut state = self.lock();
        // The smallest one that is large enough, but none of four times the size.
        let fits = |pages: &Pages| (wanted..4 * wanted).contains(&pages.len_bytes);
        let found = (0..state.free.len())
            .filter(|at| fits(&state.free[*at]))
            .min_by_key(|at| state.free[*at].len_bytes);
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

    /// Unpins free buffers until `wanted` more bytes are allowed; whether they are.
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
        // Readable by the host without a penalty (not write-combined), known to all devices, and to
        // be reached by them.
        let flags = sys::CU_MEMHOSTALLOC_PORTABLE | sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: a context is current; the memory is owned by the caller.
        let at = unsafe { result::malloc_host(len_bytes, flags) }.ok()?;
        let at = NonNull::new(at.cast::<u8>())?;
        // So that all of it can be read, whatever a copy leaves out.
        // SAFETY: the allocation has `len_bytes` bytes, and nobody else knows it yet.
        unsafe { at.write_bytes(0, len_bytes) };
        Some(Pages { at, len_bytes })
    }

    fn unpin(&self, pages: Pages) {
        if self.context.bind_to_thread().is_ok() {
            // Fails after a fault of the device only; the process ends with it anyway.
            // SAFETY: pinned by `pin`, and owned.
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
    // Lengths are multiples of 2^20 that were summed up from buffers in memory.
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
    /// Whether it is pinned.
    pub fn is_pinned(&self) -> bool {
        self.pool.is_some()
    }

    /// Its address on the devices; `None` where they cannot reach it, because it is pageable.
    pub(super) fn device_address(&self) -> Option<u64> {
        let pool = self.pool.as_ref()?;
        pool.context.bind_to_thread().ok()?;
        let mut address = 0;
        let at = self.pages.at.as_ptr().cast();
        // SAFETY: the memory was taken by `pin`, and the driver writes one address to a valid place.
        let status = unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, at, 0) };
        status.result().ok().map(|()| address)
    }

    /// Its address.
    pub fn as_non_null(&self) -> NonNull<u8> {
        self.pages.at
    }

    /// Uses its first `len_bytes`, at most its capacity.
    pub(super) fn set_len(&mut self, len_bytes: usize) {
        self.len_bytes = len_bytes.min(self.pages.len_bytes);
    }

    /// Bytes it can hold, which is what it takes.
    pub fn capacity_bytes(&self) -> usize {
        self.pages.len_bytes
    }
}

impl Deref for HostBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the allocation is initialized, has `len_bytes` bytes and more, and is owned.
        unsafe { std::slice::from_raw_parts(self.pages.at.as_ptr(), self.len_bytes) }
    }
}

impl DerefMut for HostBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and borrowed mutably.
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
