//! The heap of a process whose memory is limited: what is freed goes back to the system.
//!
//! The C library keeps freed memory for later, in a heap for every few threads, and takes ever longer pieces from
//! there. Under a limit that is memory which nobody uses, and nobody else can.

#![allow(unsafe_code, reason = "settings of the C library, which have no safe form")]

/// Says from here on that freed memory goes back: long pieces at once, others where [`give_back`] asks for it.
pub fn keep_little() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets three numbers of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, MOST_HEAPS);
        libc::mallopt(libc::M_MMAP_THRESHOLD, LONG_BYTES);
        libc::mallopt(libc::M_TRIM_THRESHOLD, LONG_BYTES);
    }
}

/// Gives back what was freed and is kept for later.
pub fn give_back() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: looks at free memory only.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Bytes of a page of memory.
#[cfg(target_os = "linux")]
pub fn page_bytes() -> usize {
    // SAFETY: asks for a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).unwrap_or(4096)
}

#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MOST_HEAPS: libc::c_int = 2;
/// Pieces of memory that are mapped one by one.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LONG_BYTES: libc::c_int = 256 << 10;
