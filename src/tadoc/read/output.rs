//! Limits of decoded text, checked before memory is allocated, and the copying of short texts.

use crate::error::{Error, Result};

/// Default limit of the bytes that one call decodes: 2 GiB.
pub const DEFAULT_MAX_OUTPUT_BYTES: u64 = 2 << 30;

/// Returns the new length of an output of `len` bytes that grows by `added` bytes.
///
/// # Errors
/// [`Error::Capacity`] if the new length exceeds `limit` or the address space.
pub(crate) fn check_output_len(len: u64, added: u64, limit: u64) -> Result<usize> {
    let requested = len.saturating_add(added);
    // The slack for short copies must fit too. No allocation can be larger than this.
    let limit = limit.min(isize::MAX as u64 - 64);
    match usize::try_from(requested) {
        Ok(requested_len) if requested <= limit => Ok(requested_len),
        _ => Err(Error::Capacity {
            what: "decoded text in bytes",
            requested,
            limit,
            knob: "tadoc.max_output_bytes",
        }),
    }
}

/// Reserves memory for `len` bytes in total.
///
/// # Errors
/// [`Error::Capacity`] if the allocator fails; the process does not abort.
pub(crate) fn reserve(output: &mut Vec<u8>, len: usize) -> Result<()> {
    output.try_reserve(len.saturating_sub(output.len())).map_err(|_| Error::Capacity {
        what: "decoded text in bytes of memory",
        requested: len as u64,
        limit: output.capacity() as u64,
        knob: "the memory of this process",
    })
}

/// Copies the first `len` bytes of `source`. Up to `N` bytes are written if `len` is at most `N`: one
/// copy of a fixed length is faster than one of a length that has to be looked at.
#[inline]
pub(crate) fn copy_short<const N: usize>(output: &mut [u8], source: &[u8], len: usize) {
    match (output.first_chunk_mut::<N>(), source.first_chunk::<N>()) {
        (Some(output), Some(source)) if len <= N => *output = *source,
        _ => output[..len].copy_from_slice(&source[..len]),
    }
}
