//! Limits of decoded text: checked before memory is taken.

use crate::error::{Error, Result};

/// Most bytes that one call decodes unless told otherwise: 2 GiB.
pub const DEFAULT_MAX_OUTPUT_BYTES: u64 = 2 << 30;

/// Length of an output of `len` bytes that grows by `added`, if the limit and the machine allow it.
pub(crate) fn check_output_len(len: u64, added: u64, limit: u64) -> Result<usize> {
    let requested = len.saturating_add(added);
    // Slack for short copies has to fit too; no allocation can be larger than this.
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

/// Makes room for `len` bytes in all; a machine without as much memory is an error, not an abort.
pub(crate) fn reserve(output: &mut Vec<u8>, len: usize) -> Result<()> {
    output.try_reserve(len.saturating_sub(output.len())).map_err(|_| Error::Capacity {
        what: "decoded text in bytes of memory",
        requested: len as u64,
        limit: output.capacity() as u64,
        knob: "the memory of this process",
    })
}
