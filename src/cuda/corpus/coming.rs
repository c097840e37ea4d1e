//! The grammar of the next segment, copied to a device while that works on another.
//!
//! ```text
//! stream of the device   grammar 0 | kernels of 0 | rows of 0 back | kernels of 1 | rows of 1 back | ...
//! stream of copies                 | grammar 1 ─────┘              | grammar 2 ─────┘
//! ```
//!
//! Memory is taken, and given back, on the stream of the device, as all memory of corpora; a thread has the
//! copy on the other stream behind that, and waits for its end, so whoever takes the grammar finds it there.
//! 4 bytes an element come early, and nothing else: what is made of them is made when it is needed.

use std::sync::Arc;
use std::thread::JoinHandle;

use cudarc::driver::CudaStream;

use crate::device::Device;
use crate::error::GpuError;
use tadoc::segment::Segment;

use super::{CopyKey, DeviceCorpus, GrammarArrays};

/// A grammar on its way.
#[derive(Debug)]
pub(super) struct Coming {
    key: CopyKey,
    copying: JoinHandle<Result<DeviceCorpus, GpuError>>,
}

impl Coming {
    /// Takes memory for the grammar of `segment`, and has it copied on `stream`.
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

    /// What it is known by.
    pub(super) fn key(&self) -> &CopyKey {
        &self.key
    }

    /// Waits for its end; what failed fails again for whoever copies it anew.
    pub(super) fn wait(self) -> Option<DeviceCorpus> {
        self.copying.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).ok()
    }
}
