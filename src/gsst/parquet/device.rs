//! Devices that decode GSST columns and test predicates on them, as traits.
//!
//! ```text
//! blocks of a column ─▶ ColumnScanner ─ decode ──▶ PendingRows ─ wait ─▶ an array for each stretch
//!                             └ matcher ─▶ find ─▶ PendingRows ─ wait ─▶ matching rows of each stretch
//! ```
//!
//! The codec defines the traits and knows no device. The crate `tadoc-cuda` implements them. A
//! device gives the arrays that the cores give. The arrays of a run are slices of one buffer of the
//! host, which [`RowMemory`] accounts for as long as one of them lives.
//!
//! ```
//! use std::error::Error;
//!
//! use gsst::parquet::device::{DeviceError, DeviceFault, RowMemory};
//!
//! /// Allows runs of this many bytes.
//! struct Limit(usize);
//!
//! impl RowMemory for Limit {
//!     fn try_resize(&self, len_bytes: usize) -> Result<(), Box<dyn Error + Send + Sync>> {
//!         if len_bytes <= self.0 { Ok(()) } else { Err("the run is too large".into()) }
//!     }
//! }
//!
//! assert!(Limit(1 << 20).try_resize(1000).is_ok());
//! let full = Limit(10).try_resize(1000).unwrap_err();
//! let error = DeviceError {
//!     fault: DeviceFault::HostMemory,
//!     error: gsst::Error::external("rows of a device", full),
//! };
//! assert_eq!(error.to_string(), "rows of a device: the run is too large");
//! ```

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use arrow::array::ArrayRef;
use bytes::Bytes;

use super::{CodePredicate, StretchMatches};
use crate::arrow::TextType;

/// Kind of a failure of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceFault {
    /// The blocks are damaged. The cores find the same.
    Data,
    /// The device has too little memory, or the limit is too low.
    DeviceMemory,
    /// The account of host memory has no room.
    HostMemory,
    /// The device cannot be used again in this process.
    Lost,
    /// Another fault, or there is no device.
    Other,
}

/// Failure of a device.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct DeviceError {
    /// Kind of the failure.
    pub fault: DeviceFault,
    /// The cause.
    pub error: crate::Error,
}

impl From<crate::Error> for DeviceError {
    /// Wraps an error of the codec, which found damaged blocks.
    fn from(error: crate::Error) -> Self {
        Self { fault: DeviceFault::Data, error }
    }
}

/// `Result` with a [`DeviceError`].
pub type DeviceResult<T> = Result<T, DeviceError>;

/// Account of the host memory of one run. Dropping it gives the memory back.
pub trait RowMemory: Send + Sync {
    /// Changes the accounted memory to `len_bytes`.
    ///
    /// # Errors
    /// An error if there is no room.
    fn try_resize(&self, len_bytes: usize) -> Result<(), Box<dyn StdError + Send + Sync>>;
}

/// Rows that a device is working on.
pub trait PendingRows<T>: Send {
    /// Waits for the rows: one entry for each block.
    ///
    /// # Errors
    /// Errors of the device, or of the blocks.
    fn wait(self: Box<Self>) -> DeviceResult<Vec<T>>;
}

/// Devices that decode columns. A session owns one value.
pub trait ColumnDevice: fmt::Debug + Send + Sync {
    /// Returns the scanner of a partition, limited to `max_bytes` of memory on its device. Opens
    /// the devices, or waits until they are open. Partitions take turns among devices that did not
    /// fail.
    ///
    /// # Errors
    /// An error if no device can be used.
    fn scanner(&self, partition: usize, max_bytes: u64) -> DeviceResult<Arc<dyn ColumnScanner>>;
}

/// A scanner of blocks on one device.
pub trait ColumnScanner: fmt::Debug + Send + Sync {
    /// Submits `blocks` for decoding. Returns when the device has taken them.
    ///
    /// # Errors
    /// Errors of the device, of the blocks, or of `memory`.
    fn decode(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        memory: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<ArrayRef>>>;

    /// Builds the automata of `predicates` on one column, all of which must hold.
    ///
    /// # Errors
    /// An error if the device cannot test one of them.
    fn matcher(&self, predicates: &[&CodePredicate]) -> DeviceResult<Box<dyn ColumnMatcher>>;
}

/// Predicates on a column, ready for a device.
pub trait ColumnMatcher {
    /// Submits `blocks` to find the rows that match, and their text if `is_text_wanted`.
    ///
    /// # Errors
    /// Errors of the device, of the blocks, or of `memory`.
    fn find(
        &self,
        blocks: Vec<Bytes>,
        text_type: TextType,
        is_text_wanted: bool,
        memory: Box<dyn RowMemory>,
    ) -> DeviceResult<Box<dyn PendingRows<StretchMatches>>>;
}
