//! Limits on the cost of opening a file.

use crate::error::{Error, Result};

/// Limits on the cost of opening a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenLimits {
    /// Greatest size of the footer in bytes.
    pub max_footer_bytes: u64,
    /// Greatest memory of the decoded segments while they are opened, in bytes. The limit applies
    /// to one segment in [`read_segment`](crate::format::read_segment), and to all together in [`Corpus::open`](crate::Corpus::open) and
    /// [`Corpus::from_bytes`](crate::Corpus::from_bytes).
    pub max_memory_bytes: u64,
}

impl Default for OpenLimits {
    fn default() -> Self {
        Self { max_footer_bytes: 64 << 20, max_memory_bytes: 8 << 30 }
    }
}

impl OpenLimits {
    /// Refuses to decode segments that need `requested` bytes of memory if this exceeds the limit.
    pub fn check_memory(&self, requested: u64) -> Result<()> {
        if requested <= self.max_memory_bytes {
            return Ok(());
        }
        let (what, knob) = ("opening a corpus (bytes of memory)", "max_memory_bytes");
        Err(Error::Capacity { what, requested, limit: self.max_memory_bytes, knob })
    }
}
