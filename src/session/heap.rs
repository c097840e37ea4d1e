//! The heap of a process with limited memory: returns freed memory to the system.
//!
//! The C library keeps freed memory for later, in one heap per few threads, and raises its
//! threshold for separate mappings over time. Under a memory limit, nobody else can use that
//! memory.

#![allow(unsafe_code, reason = "settings of the C library, which have no safe form")]

/// Configures the allocator to return freed memory.
///
/// Long pieces are returned at once, other memory when [`give_back`] is called.
pub fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the calls only set three numbers of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, MOST_HEAPS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LONG_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LONG_BYTES);
    }
}

/// Returns freed memory that the allocator keeps for later to the system.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: the call only touches free memory.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Returns the number of bytes of a memory page.
#[cfg(target_os = "linux")]
pub fn page_bytes() -> usize {
    // SAFETY: the call only returns a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MOST_HEAPS: libc::c_int = 2;
/// Minimum bytes of a piece of memory that has a mapping of its own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LONG_BYTES: libc::c_int = 256 << 10;
