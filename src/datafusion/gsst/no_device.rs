//! What stands for the devices where the feature `cuda` is off: none is there, and why.

use bytes::Bytes;
use datafusion::arrow::array::ArrayRef;
use datafusion::execution::memory_pool::MemoryReservation;

use crate::throughput::DeviceState;
use crate::throughput::calibration::DeviceCalibration;
use gsst::arrow::TextType;
use gsst::parquet::{CodePredicate, StretchMatches};
use tadoc::error::{Error, Result};

const PROBLEM: &str = "built without the feature cuda";

/// That there is no device.
pub(crate) fn problem() -> Option<String> {
    Some(PROBLEM.to_owned())
}

/// That there is no device.
pub(crate) fn state() -> DeviceState {
    DeviceState::Missing(PROBLEM.to_owned())
}

/// Nothing is there to be opened.
pub(crate) fn open_soon() {}

/// Nothing is there to be missed.
pub(crate) fn miss(_: f64, _: f64, _: usize) {}

/// Nothing is ever opened.
pub(crate) fn expect_nothing_more() {}

/// Never.
pub(crate) fn is_opening() -> bool {
    false
}

/// None.
pub(super) fn rates() -> Option<&'static DeviceCalibration> {
    None
}

/// Nothing that a device does can fail.
pub(super) fn way_out(_: &Error) -> Option<&'static str> {
    None
}

/// Cannot be had.
#[derive(Debug, Clone)]
pub(super) enum Scanner {}

/// Cannot be had.
#[derive(Debug)]
pub(super) enum Pending {}

/// Cannot be had.
#[derive(Debug)]
pub(super) enum Tests {}

/// Cannot be had.
#[derive(Debug)]
pub(super) enum PendingTests {}

impl Scanner {
    pub(super) fn of_partition(_: usize, _: u64) -> Result<Self> {
        Err(Error::external("GPU", PROBLEM))
    }

    pub(super) fn submit(
        &self,
        _: Vec<Bytes>,
        _: TextType,
        _: MemoryReservation,
    ) -> Result<Pending> {
        match *self {}
    }

    pub(super) fn tests(&self, _: &[&CodePredicate]) -> Result<Tests> {
        match *self {}
    }

    pub(super) fn submit_matching(
        &self,
        _: Vec<Bytes>,
        _: &Tests,
        _: TextType,
        _: bool,
        _: MemoryReservation,
    ) -> Result<PendingTests> {
        match *self {}
    }
}

impl PendingTests {
    pub(super) fn wait(self) -> Result<Vec<StretchMatches>> {
        match self {}
    }
}

impl Pending {
    pub(super) fn wait(self) -> Result<Vec<ArrayRef>> {
        match self {}
    }
}
