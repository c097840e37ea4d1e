//! The grammar of the next segment, copied to a device while the device works on another.
//!
//! ```text
//! stream of the device   grammar 0 | kernels of 0 | rows of 0 back | kernels of 1 | rows of 1 back
//! stream of copies                 | grammar 1 ─────┘              | grammar 2 ─────┘
//! ```
//!
//! The stream of the device allocates and frees the memory, as for all corpora. A thread enqueues
//! the copy on the other stream after the allocation and waits for its end. So the grammar is
//! complete when it is taken. Only the grammar, 4 bytes per element, is copied early; the parts
//! made from it are made on demand.

use std::sync::Arc;
use std::thread::JoinHandle;

use cudarc::driver::CudaStream;

use crate::device::Device;
use crate::error::GpuError;
use tadoc::segment::Segment;

use super::{CopyKey, DeviceCorpus, GrammarArrays};

/// A grammar that is being copied.
#[derive(Debug)]
pub(super) struct Coming {
    key: CopyKey,
    copying: JoinHandle<Result<DeviceCorpus, GpuError>>,
}

impl Coming {
    /// Allocates memory for the grammar of `segment`, and starts its copy on `stream`.
    ///
    /// # Errors
    ///
    /// [`GpuError::OutOfMemory`], [`GpuError::Driver`].
    pub(super) fn begin(
        device: &Device,
        stream: &Arc<CudaStream>,
        segment: &Arc<Segment>,
    ) -> Result<Self, GpuError> {
        let mut arrays = GrammarArrays::take(device, segment)?;
        let key = CopyKey::of::<DeviceCorpus>(segment, 0);
        let (device, stream, segment) = (device.clone(), stream.clone(), segment.clone());
        let copying = std::thread::spawn(move || {
            arrays.fill(&device, &stream, &segment)?;
            stream.synchronize().map_err(device.fault("copying a grammar"))?;
            Ok(DeviceCorpus { device, segment, arrays: Arc::new(arrays) })
        });
        Ok(Self { key, copying })
    }

    /// Returns the key of the grammar.
    pub(super) fn key(&self) -> &CopyKey {
        &self.key
    }

    /// Waits for the end of the copy. `None` if it failed; a new copy then reports the error.
    pub(super) fn wait(self) -> Option<DeviceCorpus> {
        self.copying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).ok()
    }
}
