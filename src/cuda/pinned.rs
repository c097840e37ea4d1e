//! Pinned host memory, which devices copy at full speed, kept in a pool.
//!
//! Pageable memory is copied at a fifth of the speed of pinned memory, and pinning a page takes as
//! long as copying it several times. So pinned buffers are kept. A [`PinnedPool`] holds at most a
//! given number of bytes, in use and free together. If that does not suffice, a buffer is pageable:
//! slower, but no caller waits for a reader that holds all other buffers.

#![allow(unsafe_code, reason = "memory from the driver, by address")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::{CudaContext, result, sys};

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
