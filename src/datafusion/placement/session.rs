//! The devices of a session, the one place that decides between them and the cores, and the rates of stores and
//! ratios of GSST columns that it observes while it reads.
//!
//! ```text
//! with_tadoc ──▶ DeviceSession, an extension of the session's configuration
//!                  accelerator   tasks over corpora   (a trait of tadoc)
//!                  columns       GSST columns         (a trait of gsst)
//!                  stores        rates of stores, as they are read
//!                  missed work   ──▶ opens the devices if it is large
//! ```
//!
//! The crate `tadoc-cuda` implements both traits. A build without this crate, or a session that was
//! not set up, has no devices. All work then goes to the cores, and the reason says so. A session
//! opens its devices once. If work goes to the cores and open devices may be faster, it is missed work.
//! The session adds up its text, and opens the devices for later work when there is enough.
//!
//! ```text
//! reads of a store   ──┐ ┌────┐  ┌──        bytes of all reads
//!                      └─┘    └──┘     rate = ───────────────────────────────────
//!                     busy     busy           time in which at least one ran
//! ```
//!
//! Reads that run side by side share the store, so their times are not added. Short reads are not counted, because
//! opening takes most of their time. Older reads count less: after 4 GiB, the sums are halved.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::prelude::SessionConfig;

use crate::placement::windows::Windows;
use crate::throughput::calibration::{DeviceCalibration, installed_device};
use crate::throughput::{Calibration, DeviceState, ObservedStore, ObservedText};
use gsst::CodeWidth;
use gsst::parquet::device::ColumnDevice;
use tadoc::accelerator::{Accelerator, SegmentTask};
use tadoc::segment::Segment;

/// Bytes of text of missed work that are worth opening the devices. The cores are done with less text
/// before a device is open.
const WORTH_OPENING_BYTES: u64 = 64 << 20;

/// The devices of a session. The session's configuration holds it as an extension.
pub struct DeviceSession {
    devices: std::result::Result<Devices, &'static str>,
    /// Bytes of text of the work so far on which open devices may have been faster.
    missed_bytes: AtomicU64,
    is_last: AtomicBool,
    /// Name of the device that the system has, if it says so.
    installed: OnceLock<Option<String>>,
    stores: Arc<ObservedStores>,
}

/// Devices, and the name of the first one, which is set when they are open.
#[derive(Debug)]
struct Devices {
    accelerator: Arc<dyn Accelerator>,
    columns: Arc<dyn ColumnDevice>,
    name: Arc<OnceLock<String>>,
}

impl fmt::Debug for DeviceSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSession").field("devices", &self.devices).finish_non_exhaustive()
    }
}

impl Default for DeviceSession {
    /// Builds a session without devices.
    fn default() -> Self {
        Self::build(Err("the session was not set up for devices (with_tadoc)"))
    }
}

impl DeviceSession {
    /// Builds a session with the devices that this build supports. They are closed.
    pub fn new() -> Self {
        Self::build(devices_of_build())
    }

    /// Builds a session with devices of another crate. Their rates are calibrated or built in.
    pub fn with_devices(accelerator: Arc<dyn Accelerator>, columns: Arc<dyn ColumnDevice>) -> Self {
        Self::build(Ok(Devices { accelerator, columns, name: Arc::default() }))
    }

    fn build(devices: std::result::Result<Devices, &'static str>) -> Self {
        Self {
            devices,
            missed_bytes: AtomicU64::new(0),
            is_last: AtomicBool::new(false),
            installed: OnceLock::new(),
            stores: Arc::default(),
        }
    }

    /// Returns the devices of the session with this configuration.
    pub fn from_config(config: &SessionConfig) -> Arc<Self> {
        config.get_extension::<Self>().unwrap_or_default()
    }

    /// Declares that the next statement is the last one. No device is then opened in the background
    /// for later statements.
    pub fn expect_last_statement(&self) {
        self.is_last.store(true, Ordering::Relaxed);
    }

    /// Returns true while a thread opens a GPU. No query waits for that thread. A process that ends
    /// during this time should end without running its `atexit` handlers, because the driver's
    /// handler waits until the GPU is open.
    pub fn is_opening(&self) -> bool {
        self.accelerator().is_some_and(Accelerator::is_opening)
    }

    /// Returns the devices for tasks over corpora, if there are any.
    pub(crate) fn accelerator(&self) -> Option<&dyn Accelerator> {
        self.devices.as_ref().ok().map(|devices| devices.accelerator.as_ref())
    }

    /// Returns the devices for GSST columns, if there are any.
    pub(crate) fn columns(&self) -> Option<&Arc<dyn ColumnDevice>> {
        self.devices.as_ref().ok().map(|devices| &devices.columns)
    }

    /// Returns the rates of stores that the session has observed.
    pub(crate) fn stores(&self) -> &Arc<ObservedStores> {
        &self.stores
    }

    /// Returns the state of the devices without waiting.
    pub(crate) fn state(&self) -> DeviceState {
        match &self.devices {
            Ok(devices) => devices.accelerator.state(),
            Err(reason) => DeviceState::Missing((*reason).to_owned()),
        }
    }

    /// Returns the devices for tasks over corpora, or the reason why none can be used. Waits for the
    /// driver.
    fn usable(&self) -> std::result::Result<&dyn Accelerator, String> {
        let devices = self.devices.as_ref().map_err(|reason| (*reason).to_owned())?;
        match devices.accelerator.problem() {
            Some(problem) => Err(problem),
            None => Ok(devices.accelerator.as_ref()),
        }
    }

    /// Returns the reason why no device can be used. Waits for the driver.
    pub(crate) fn problem(&self) -> Option<String> {
        self.usable().err()
    }

    /// Checks that there is a device, because the user demands one.
    ///
    /// # Errors
    /// A plan error that says what the user can do.
    pub(crate) fn demand(&self) -> Result<()> {
        self.problem().map_or(Ok(()), |problem| plan_err!("{}", demanded_but(&problem)))
    }

    /// Opens the devices on another thread, unless they are being opened or are open.
    pub(crate) fn open_soon(&self) {
        if let Some(accelerator) = self.accelerator() {
            accelerator.open_soon();
        }
    }

    /// Returns the choice of `choose`, which can ask for the state of the devices. If the choice is
    /// a device, the session first asks the driver if there is one, and otherwise chooses again.
    pub(crate) fn decide<C>(
        &self,
        choose: impl Fn(&dyn Fn() -> DeviceState) -> C,
        is_on_device: impl Fn(&C) -> bool,
    ) -> C {
        let choice = choose(&|| self.state());
        let problem = if is_on_device(&choice) { self.problem() } else { None };
        match problem {
            Some(problem) => choose(&|| DeviceState::Missing(problem.clone())),
            None => choice,
        }
    }

    /// Adds work on `text_bytes` of text to the missed work. Opens the devices if there is enough.
    pub(crate) fn miss(&self, text_bytes: u64) {
        let before = self.missed_bytes.fetch_add(text_bytes, Ordering::Relaxed);
        let is_worth = before.saturating_add(text_bytes) >= WORTH_OPENING_BYTES;
        let is_last = self.is_last.load(Ordering::Relaxed);
        if is_worth && !is_last && self.state() == DeviceState::Closed {
            self.open_soon();
        }
    }

    /// Returns the rates that plans use. Without a calibration, the rates of a device are those that
    /// are built in for its name.
    pub(crate) fn calibration(&self) -> Calibration {
        let mut calibration = Calibration::load().unwrap_or_else(|error| {
            tracing::warn!(%error, "planning with built-in rates; run tadoc calibrate");
            Calibration::default()
        });
        if calibration.device.is_none() {
            calibration.device = self.device_name().map(DeviceCalibration::named);
        }
        calibration
    }

    fn device_name(&self) -> Option<&String> {
        let devices = self.devices.as_ref().ok()?;
        devices.name.get().or_else(|| self.installed.get_or_init(installed_device).as_ref())
    }

    /// Returns the number of elements in those of `segments` that lack, on every device, the copies
    /// that `task` needs.
    pub(crate) fn missing_elements(&self, task: SegmentTask, segments: &[Arc<Segment>]) -> u64 {
        match self.accelerator() {
            Some(accelerator) => accelerator.missing_elements(task, segments),
            None => segments.iter().map(|one| one.dag.grammar().symbols.len() as u64).sum(),
        }
    }

    /// Drops the copies of `segments` from the devices, because the segments are not loaded any
    /// more.
    pub(crate) fn forget<'a>(&self, mut segments: impl Iterator<Item = &'a Arc<Segment>>) {
        if let Some(accelerator) = self.accelerator() {
            accelerator.forget(&mut segments);
        }
    }
}

/// Returns the error text of a statement that demands a device.
pub(crate) fn demanded_but(problem: &str) -> String {
    format!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'")
}

/// Returns the devices of NVIDIA. They are named when they are opened.
#[cfg(feature = "cuda")]
fn devices_of_build() -> std::result::Result<Devices, &'static str> {
    let name = Arc::new(OnceLock::new());
    let found = Arc::clone(&name);
    let session = Arc::new(tadoc_cuda::CudaSession::new(move |device| {
        let _known_before = found.set(device.name().to_owned());
    }));
    Ok(Devices { accelerator: session.clone(), columns: session, name })
}

/// Returns the reason why this build has no devices.
#[cfg(not(feature = "cuda"))]
fn devices_of_build() -> std::result::Result<Devices, &'static str> {
    Err("built without the feature cuda")
}

/// Shortest read that counts.
const MIN_READ_BYTES: u64 = 64 << 10;
/// Bytes of reads that have a rate of their own.
const WINDOW_BYTES: u64 = 32 << 20;

/// Observations of a session, by the URL of the store.
#[derive(Debug, Default)]
pub(crate) struct ObservedStores(Mutex<BTreeMap<String, Sums>>);

/// Sums of the reads of a store.
#[derive(Debug, Default)]
struct Sums {
    reads: Windows<WINDOW_BYTES>,
    eight: ObservedText,
    twelve: ObservedText,
}

/// A read that runs, until it is dropped. Without [`Reading::end`] it counts as one that failed.
#[derive(Debug)]
pub(crate) struct Reading {
    stores: Arc<ObservedStores>,
    url: String,
    read_bytes: u64,
}

impl ObservedStores {
    /// Notes that a read begins. Returns `None` if it is too short to count.
    pub(crate) fn begin(self: &Arc<Self>, url: &str, len_bytes: u64) -> Option<Reading> {
        if len_bytes < MIN_READ_BYTES {
            return None;
        }
        let mut stores = self.lock();
        let store = stores.entry(url.to_owned()).or_default();
        store.reads.begin_one();
        Some(Reading { stores: Arc::clone(self), url: url.to_owned(), read_bytes: 0 })
    }

    /// Notes text of GSST columns that was read, and the bytes that it takes in the store.
    pub(crate) fn add_text(&self, url: &str, width: CodeWidth, text_bytes: u64, stored_bytes: u64) {
        let mut stores = self.lock();
        let store = stores.entry(url.to_owned()).or_default();
        let text = match width {
            CodeWidth::Eight => &mut store.eight,
            CodeWidth::Twelve => &mut store.twelve,
        };
        text.text_bytes = text.text_bytes.saturating_add(text_bytes);
        text.stored_bytes = text.stored_bytes.saturating_add(stored_bytes);
    }

    /// Returns the rate of a store in GB per second, if reads of it were observed.
    pub(crate) fn rate_gb_per_s(&self, url: &str) -> Option<f64> {
        self.lock().get(url)?.rate_gb_per_s()
    }

    /// Returns the stores whose rate was observed, sorted by URL.
    pub(crate) fn all(&self) -> Vec<ObservedStore> {
        let stores = self.lock();
        let one = |(url, store): (&String, &Sums)| {
            let url = url.clone();
            let gb_per_s = store.rate_gb_per_s()?;
            Some(ObservedStore { url, gb_per_s, eight: store.eight, twelve: store.twelve })
        };
        stores.iter().filter_map(one).collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Sums>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sums {
    fn rate_gb_per_s(&self) -> Option<f64> {
        self.reads.rate_per_s().map(|bytes_per_s| bytes_per_s / 1e9)
    }
}

impl Reading {
    /// Notes that the read has succeeded.
    pub(crate) fn end(mut self, len_bytes: u64) {
        self.read_bytes = len_bytes;
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        if let Some(store) = self.stores.lock().get_mut(&self.url) {
            store.reads.end_one(self.read_bytes);
        }
    }
}

/// Devices for tests of placement. They answer questions to documents, on the cores, and no task.
#[cfg(test)]
pub(crate) mod fake {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::DeviceSession;
    use gsst::parquet::device::{ColumnDevice, ColumnScanner, DeviceError, DeviceFault, DeviceResult};
    use tadoc::accelerator::{Accelerator, DeviceState, SegmentTask, SegmentWork};
    use tadoc::analytics::{SegmentDocumentSequences, SegmentDocuments, SegmentRanked, SegmentSequences, SegmentTerms};
    use tadoc::query::{WordQuery, count_batch, search_batch};
    use tadoc::read::{Answers, DocPassage, DocWord, ExtractQuery, Questions, extract_batch};
    use tadoc::segment::{Corpus, Segment};
    use tadoc::text::TokenizerProfile;
    use tadoc::{Error, Result};

    /// Devices with a state that tests set.
    #[derive(Debug)]
    pub(crate) struct FakeDevices {
        state: Mutex<DeviceState>,
        problem: Mutex<Option<String>>,
        num_openings: AtomicUsize,
        num_answers: AtomicUsize,
    }

    impl FakeDevices {
        pub(crate) fn new(state: DeviceState) -> Arc<Self> {
            let problem = Mutex::default();
            let num_openings = AtomicUsize::new(0);
            let num_answers = AtomicUsize::new(0);
            Arc::new(Self { state: Mutex::new(state), problem, num_openings, num_answers })
        }

        pub(crate) fn set_state(&self, state: DeviceState) {
            *self.state.lock().unwrap() = state;
        }

        pub(crate) fn set_problem(&self, problem: &str) {
            *self.problem.lock().unwrap() = Some(problem.to_owned());
        }

        /// Returns how often questions were answered.
        pub(crate) fn num_answers(&self) -> usize {
            self.num_answers.load(Ordering::Relaxed)
        }

        pub(crate) fn num_openings(&self) -> usize {
            self.num_openings.load(Ordering::Relaxed)
        }
    }

    /// Returns a session with these devices.
    pub(crate) fn session(fake: &Arc<FakeDevices>) -> DeviceSession {
        DeviceSession::with_devices(fake.clone(), fake.clone())
    }

    /// Answers questions to a segment, which is a corpus of its own.
    fn answers(segment: &Arc<Segment>, questions: &Questions) -> Result<Answers> {
        let alone = Corpus::new(TokenizerProfile::default(), vec![Arc::clone(segment)]);
        let word = |asked: &DocWord| WordQuery { doc_id: asked.doc.into(), word: segment.dictionary.word(asked.word) };
        let words = |words: &[DocWord]| words.iter().map(word).collect::<Vec<_>>();
        match questions {
            Questions::Passages(passages) => {
                let query = |asked: &DocPassage| ExtractQuery {
                    doc_id: asked.doc.into(),
                    byte_offset: asked.byte_offset,
                    byte_len: asked.byte_len,
                };
                let queries: Vec<ExtractQuery> = passages.iter().map(query).collect();
                let (bytes, ends) = extract_batch(&alone, &queries, u64::MAX)?.into_parts();
                Ok(Answers::Passages { bytes, ends })
            }
            Questions::Counts(asked) => Ok(Answers::Counts(count_batch(&alone, &words(asked))?)),
            Questions::Places { words: asked, max_places } => {
                let (offsets, ends) = search_batch(&alone, &words(asked), *max_places)?.into_parts();
                Ok(Answers::Places { offsets, ends })
            }
        }
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

        fn document_sequences(&self, _: SegmentWork<'_>, _: usize) -> Result<Vec<SegmentDocumentSequences>> {
            refused()
        }

        fn answers(&self, work: SegmentWork<'_>, questions: &[Questions]) -> Result<Vec<Answers>> {
            self.num_answers.fetch_add(1, Ordering::Relaxed);
            // Others come to wait meanwhile.
            std::thread::sleep(Duration::from_millis(5));
            work.segments.iter().zip(questions).map(|(segment, questions)| answers(segment, questions)).collect()
        }
    }

    impl ColumnDevice for FakeDevices {
        fn scanner(&self, _: usize, _: u64) -> DeviceResult<Arc<dyn ColumnScanner>> {
            let error = gsst::Error::external("a device of a test", "it answers nothing");
            Err(DeviceError { fault: DeviceFault::Other, error })
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::fake::{FakeDevices, session};
    use super::*;
    use crate::throughput::Hindrance;

    /// Runs a scan that takes `cores_s` on the cores and 30 ms on a device, and returns the reason
    /// against the device.
    fn scan(devices: &DeviceSession, cores_s: f64) -> Option<Hindrance> {
        let choose = |state: &dyn Fn() -> DeviceState| Hindrance::for_times(cores_s, 0.03, 0.35, state);
        let hindrance = devices.decide(choose, Option::is_none);
        if hindrance == Some(Hindrance::Closed) {
            devices.miss(WORTH_OPENING_BYTES / 4);
        }
        hindrance
    }

    #[test]
    fn missed_scans_open_the_device_for_those_after_them() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        for num_openings in [0, 0, 0, 1] {
            assert_eq!(scan(&devices, 0.14), Some(Hindrance::Closed));
            assert_eq!(fake.num_openings(), num_openings);
        }
        fake.set_state(DeviceState::Opening { elapsed_s: 0.01 });
        assert_eq!(scan(&devices, 0.14), Some(Hindrance::Opening));
        fake.set_state(DeviceState::Open);
        assert_eq!(scan(&devices, 0.14), None);
        devices.miss(u64::MAX);
        assert_eq!(fake.num_openings(), 1);
    }

    #[test]
    fn work_that_the_cores_do_faster_opens_nothing() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        for _ in 0..100 {
            assert_eq!(scan(&devices, 0.03), Some(Hindrance::Slower));
        }
        assert_eq!(fake.num_openings(), 0);
    }

    #[test]
    fn the_last_statement_opens_nothing() {
        let fake = FakeDevices::new(DeviceState::Closed);
        let devices = session(&fake);
        devices.expect_last_statement();
        devices.miss(WORTH_OPENING_BYTES);
        assert_eq!(fake.num_openings(), 0);
        // A scan that is long enough waits for the device all the same.
        assert_eq!(scan(&devices, 4.0), None);
    }

    #[test]
    fn a_device_that_the_driver_does_not_have_is_not_chosen() {
        let fake = FakeDevices::new(DeviceState::Open);
        let devices = session(&fake);
        fake.set_problem("no device");
        assert_eq!(scan(&devices, 0.14), Some(Hindrance::Missing("no device".to_owned())));
        let error = devices.demand().unwrap_err().to_string();
        assert!(error.contains("tadoc.device = gpu: no device; SET tadoc.device"), "{error}");
    }

    #[test]
    fn two_sessions_have_devices_of_their_own() {
        let [one, other] = [(); 2].map(|()| Arc::new(DeviceSession::new()));
        let config = |devices: &Arc<_>| SessionConfig::new().with_extension(Arc::clone(devices));
        let [first, second] = [&one, &other].map(|devices| DeviceSession::from_config(&config(devices)));
        assert!(Arc::ptr_eq(&first, &one) && Arc::ptr_eq(&second, &other));
        let none = DeviceSession::from_config(&SessionConfig::new());
        assert!(none.accelerator().is_none() && none.problem().is_some());
    }

    const STORE: &str = "s3://bucket/";

    #[test]
    fn the_rate_is_that_of_all_reads_together() {
        let stores = Arc::new(ObservedStores::default());
        assert_eq!(stores.rate_gb_per_s(STORE), None);
        let began = Instant::now();
        let [one, two] = [(); 2].map(|()| stores.begin(STORE, 1 << 20).unwrap());
        std::thread::sleep(Duration::from_millis(20));
        one.end(1 << 20);
        two.end(1 << 20);
        let longest_s = began.elapsed().as_secs_f64();
        let rate = stores.rate_gb_per_s(STORE).unwrap();
        let both_gb = f64::from(2 << 20) / 1e9;
        assert!(rate >= both_gb / longest_s && rate <= both_gb / 0.02, "{rate}");
        // Time without a read does not count.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(stores.rate_gb_per_s(STORE), Some(rate));
        assert_eq!(stores.rate_gb_per_s("file:///"), None);
    }

    #[test]
    fn failed_reads_count_as_time_and_short_ones_do_not_count() {
        let stores = Arc::new(ObservedStores::default());
        assert!(stores.begin(STORE, 1000).is_none());
        drop(stores.begin(STORE, 1 << 20));
        assert_eq!(stores.rate_gb_per_s(STORE), None);
        assert_eq!(stores.lock()[STORE].reads.num_running, 0);
        stores.begin(STORE, 1 << 20).unwrap().end(1 << 20);
        assert!(stores.rate_gb_per_s(STORE).is_some());
        assert_eq!(stores.lock()[STORE].reads.busy_since, None);
    }

    #[test]
    fn text_is_kept_by_width() {
        let stores = Arc::new(ObservedStores::default());
        stores.begin(STORE, 1 << 20).unwrap().end(1 << 20);
        stores.add_text(STORE, CodeWidth::Twelve, 300, 100);
        stores.add_text(STORE, CodeWidth::Twelve, 300, 100);
        let [store] = &stores.all()[..] else { panic!() };
        assert_eq!(store.url, STORE);
        assert_eq!((store.eight.ratio(), store.twelve.ratio()), (None, Some(3.0)));
    }
}
