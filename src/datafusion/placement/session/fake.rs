//! Devices for tests of placement. They never answer a task.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use super::DeviceSession;
use gsst::parquet::device::{ColumnDevice, ColumnScanner, DeviceError, DeviceFault, DeviceResult};
use tadoc::accelerator::{Accelerator, DeviceState, SegmentTask, SegmentWork};
use tadoc::analytics::{SegmentDocuments, SegmentRanked, SegmentSequences, SegmentTerms};
use tadoc::segment::Segment;
use tadoc::{Error, Result};

/// Devices with a state that tests set.
#[derive(Debug)]
pub(crate) struct FakeDevices {
    state: Mutex<DeviceState>,
    problem: Mutex<Option<String>>,
    num_openings: AtomicUsize,
}

impl FakeDevices {
    pub(crate) fn new(state: DeviceState) -> Arc<Self> {
        let (problem, num_openings) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Self { state: Mutex::new(state), problem, num_openings })
    }

    pub(crate) fn set_state(&self, state: DeviceState) {
        *self.state.lock().unwrap() = state;
    }

    pub(crate) fn set_problem(&self, problem: &str) {
        *self.problem.lock().unwrap() = Some(problem.to_owned());
    }

    pub(crate) fn num_openings(&self) -> usize {
        self.num_openings.load(Ordering::Relaxed)
    }
}

/// Returns a session with these devices.
pub(crate) fn session(fake: &Arc<FakeDevices>) -> DeviceSession {
    DeviceSession::with_devices(fake.clone(), fake.clone())
}

fn refused<T>() -> Result<T> {
    Err(Error::external("a device of a test", "it answers nothing"))
}

impl Accelerator for FakeDevices {
    fn state(&self) -> DeviceState {
        self.state.lock().unwrap().clone()
    }

    fn problem(&self) -> Option<String> {
        self.problem.lock().unwrap().clone()
    }

    fn open_soon(&self) {
        self.num_openings.fetch_add(1, Ordering::Relaxed);
    }

    fn is_opening(&self) -> bool {
        false
    }

    fn missing_elements(&self, _: SegmentTask, _: &[Arc<Segment>]) -> u64 {
        0
    }

    fn forget(&self, _: &mut dyn Iterator<Item = &Arc<Segment>>) {}

    fn term_vectors(&self, _: SegmentWork<'_>) -> Result<Vec<SegmentTerms>> {
        refused()
    }

    fn word_documents(&self, _: SegmentWork<'_>) -> Result<Vec<SegmentDocuments>> {
        refused()
    }

    fn sequence_counts(&self, _: SegmentWork<'_>, _: usize) -> Result<Vec<SegmentSequences>> {
        refused()
    }

    fn pair_counts(&self, _: SegmentWork<'_>, _: usize) -> Result<Vec<SegmentSequences>> {
        refused()
    }

    fn ranked_documents(&self, _: SegmentWork<'_>, _: usize) -> Result<Vec<SegmentRanked>> {
        refused()
    }
}

impl ColumnDevice for FakeDevices {
    fn scanner(&self, _: usize, _: u64) -> DeviceResult<Arc<dyn ColumnScanner>> {
        let error = gsst::Error::external("a device of a test", "it answers nothing");
        Err(DeviceError { fault: DeviceFault::Other, error })
    }
}
