//! The place of a task over a corpus, chosen by measured times.
//!
//! ```text
//! first run        cores; a closed device is opened beside large work (DeviceSession::miss)
//! then             an open device is tried, as soon as the cores have spent on the task what copies
//!                  of the corpus may cost
//! from then on     the shorter one of the measured times
//! ```
//!
//! No task waits for a device. A trial costs at most about as much as the cores have worked on the
//! task before, which is the ski-rental rule (Karlin et al., Algorithmica 1988).
//!
//! The cores do three kinds of work in any case:
//! - Tasks over small texts: the cores are done before a device would be.
//! - Tasks about some documents: the cores count only these, a device would count all documents.
//! - Words of documents that the segments keep: nothing has to be counted.
//!
//! A [`Placement`] is the outcome, for these tasks and for GSST scans. A plan holds it and changes nothing.
//! [`Placement::begin`] opens devices and notes missed work when the plan is executed.

use std::fmt;

use datafusion::common::plan_err;
use datafusion::error::Result;

use crate::placement::session::DeviceSession;
use crate::placement::{Finds, Known, Task};
use crate::throughput::{DeviceState, Hindrance};

/// Reason of the cores if only some documents are counted.
pub(crate) const SOME_DOCUMENTS: &str = "some documents are asked for";

/// Reason of the cores if the segments keep the words of documents.
pub(crate) const WORDS_KEPT: &str = "the words of documents are kept";

/// Reason of the cores if there is little text.
pub(super) const SMALL: &str = "the text is small";

/// Reason of the cores before the first run.
pub(super) const NOT_TIMED: &str = "the task was not timed yet";

/// Reason of the cores before a trial.
pub(super) const TRIAL_COSTS_MORE: &str = "they have taken less time so far than a trial of a device may take";

/// Bytes of text below which a task stays on the cores. One core is done with most of them in
/// [`TRIAL_S`].
pub(super) const SMALL_BYTES: u64 = 128 << 10;

/// Seconds of a trial on a device without the copies.
const TRIAL_S: f64 = 5e-3;

/// Seconds to copy and prepare one element of a grammar: twice the time of an H100.
pub(super) const COPY_S: f64 = 10e-9;

/// A task as the choice sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Work {
    pub(crate) task: Task,
    pub(crate) text_bytes: u64,
    /// Number of elements in segments that lack copies on the device.
    pub(crate) missing_elements: u64,
    /// Times of earlier runs.
    pub(crate) known: Known,
    /// True if the segments keep the answer, the words of documents.
    pub(crate) are_words_kept: bool,
}

/// Place of a task, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    pub(crate) is_on_device: bool,
    pub(crate) reason: String,
    /// True if an open device may be faster.
    pub(crate) is_missed: bool,
}

impl Choice {
    pub(super) fn cores(reason: impl Into<String>, is_missed: bool) -> Self {
        Self { is_on_device: false, reason: reason.into(), is_missed }
    }
}

/// Chooses the place of a task. Asks for the `state` of the device only if it is to be used.
pub(crate) fn choose(work: &Work, state: impl FnOnce() -> DeviceState) -> Choice {
    if work.task.is_part() {
        return Choice::cores(SOME_DOCUMENTS, false);
    }
    if work.text_bytes < SMALL_BYTES {
        return Choice::cores(SMALL, false);
    }
    if work.are_words_kept {
        return Choice::cores(WORDS_KEPT, false);
    }
    let spent_s = work.known.spent_s;
    let cores_s = work.known.cores_s();
    let reason = match work.known.device_s(work.missing_elements > 0) {
        Some(device_s) if device_s >= cores_s => {
            let reason = format!("{cores_s:.3} s instead of {device_s:.3} s on a device");
            return Choice::cores(reason, false);
        }
        Some(device_s) => format!("{device_s:.3} s instead of {cores_s:.3} s on the cores"),
        None if spent_s == 0.0 => return Choice::cores(NOT_TIMED, true),
        None if spent_s < trial_s(work.missing_elements) => return Choice::cores(TRIAL_COSTS_MORE, true),
        None => format!("a trial, the cores have taken {spent_s:.3} s so far"),
    };
    match Hindrance::for_state(state()) {
        Some(hindrance) => Choice::cores(hindrance.to_string(), true),
        None => Choice { is_on_device: true, reason, is_missed: false },
    }
}

/// Returns the seconds that a trial may take that copies `missing_elements` elements.
pub(super) fn trial_s(missing_elements: u64) -> f64 {
    match missing_elements {
        0 => 0.0,
        missing => TRIAL_S + missing as f64 * COPY_S,
    }
}

/// The place where work is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Place {
    #[default]
    Cpu,
    Device,
    /// A device is demanded, and there is none.
    Nowhere,
}

/// The place where work is done, with its reason. Without a decision it is the CPU.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Placement {
    pub(crate) place: Place,
    pub(crate) reason: String,
    /// True if a device was chosen only because the statement asks for all documents.
    pub(crate) is_for_all: bool,
    /// The task whose runs are timed, and what this run finds.
    pub(crate) timed: Option<(Task, Finds)>,
    /// Rate of text that the model predicts, in GB/s.
    pub(crate) predicted_gb_per_s: Option<f64>,
    /// Bytes of text on which an open device may be faster; 0 if it does the work or is slower.
    pub(crate) missed_bytes: u64,
}

impl Placement {
    pub(crate) fn on_cpu(reason: impl Into<String>) -> Self {
        Self { place: Place::Cpu, reason: reason.into(), ..Self::default() }
    }

    pub(crate) fn on_device(reason: impl Into<String>) -> Self {
        Self { place: Place::Device, reason: reason.into(), ..Self::default() }
    }

    /// Returns the placement if only some of the documents are asked for.
    pub(crate) fn for_part(self) -> Self {
        if self.is_for_all { Self::on_cpu(SOME_DOCUMENTS) } else { self }
    }

    /// Returns true if a device does the work.
    pub(crate) fn is_on_device(&self) -> bool {
        self.place == Place::Device
    }

    /// Returns the task whose runs are timed, and what this run finds.
    pub(crate) fn timed(&self) -> Option<(Task, Finds)> {
        self.timed
    }

    /// Returns the rate of text that the model predicts, in GB/s, if the model was asked.
    pub(crate) fn predicted_gb_per_s(&self) -> Option<f64> {
        self.predicted_gb_per_s
    }

    /// Checks that there is a device if one is demanded.
    ///
    /// # Errors
    /// A plan error that says what the user can do.
    pub(crate) fn check(&self) -> Result<()> {
        match self.place {
            Place::Nowhere => plan_err!("{}", self.reason),
            Place::Cpu | Place::Device => Ok(()),
        }
    }

    /// Notes that the work begins. Opens the devices if the work needs them, or if the missed work
    /// is worth it.
    pub(crate) fn begin(&self, devices: &DeviceSession) {
        if self.is_on_device() {
            devices.open_soon();
        }
        if self.missed_bytes > 0 {
            devices.miss(self.missed_bytes);
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match self.place {
            Place::Cpu => "cpu",
            Place::Device => "gpu",
            Place::Nowhere => "none",
        };
        match self.reason.as_str() {
            "" => f.write_str(place),
            reason => write!(f, "{place}: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::placement::session::DeviceSession;
    use crate::placement::session::fake::{FakeDevices, session};
    use crate::placement::{Finds, KnownTasks};

    const TASK: Task = Task::SequenceCount { num_words: 3, is_folded: false };
    /// Elements of the corpus. A trial may take 15 ms.
    const NUM_ELEMENTS: u64 = 1_000_000;
    const LARGE_BYTES: u64 = 100 << 20;

    /// A session with a task over a corpus, which is in memory after the first run.
    struct Scene {
        fake: Arc<FakeDevices>,
        devices: DeviceSession,
        tasks: KnownTasks,
        text_bytes: u64,
        is_loaded: bool,
        missing_elements: u64,
    }

    impl Scene {
        fn new(state: DeviceState, text_bytes: u64) -> Self {
            let fake = FakeDevices::new(state);
            Self {
                devices: session(&fake),
                fake,
                tasks: KnownTasks::default(),
                text_bytes,
                is_loaded: false,
                missing_elements: NUM_ELEMENTS,
            }
        }

        fn work(&self) -> Work {
            let known = if self.is_loaded { self.tasks.for_task(TASK) } else { Known::default() };
            Work {
                task: TASK,
                text_bytes: self.text_bytes,
                missing_elements: self.missing_elements,
                known,
                are_words_kept: false,
            }
        }

        /// Runs the task, which takes these times, and returns its place with the reason.
        fn run(&mut self, cores_s: f64, device_s: f64) -> String {
            let work = self.work();
            let is_on_device = |choice: &Choice| choice.is_on_device;
            let choice = self.devices.decide(|state| choose(&work, state), is_on_device);
            let (place, finds, seconds) = match (choice.is_on_device, self.missing_elements) {
                (true, 0) => ("gpu", Finds::AllCopies, device_s),
                (true, _) => ("gpu", Finds::SomeCopies, 2.0 * device_s),
                (false, _) if self.is_loaded => ("cpu", Finds::Corpus, cores_s),
                (false, _) => ("cpu", Finds::Nothing, cores_s),
            };
            if choice.is_missed {
                self.devices.miss(self.text_bytes);
            }
            if choice.is_on_device {
                self.missing_elements = 0;
            }
            self.is_loaded = true;
            self.tasks.note_time(TASK, finds, seconds);
            format!("{place}: {}", choice.reason)
        }
    }

    #[test]
    fn the_cores_come_first_then_a_trial_then_the_faster_place() {
        let mut scene = Scene::new(DeviceState::Closed, LARGE_BYTES);
        assert_eq!(scene.run(0.5, 0.1), "cpu: the task was not timed yet");
        assert_eq!(scene.fake.num_openings(), 1);
        scene.fake.set_state(DeviceState::Opening { elapsed_s: 0.3 });
        assert_eq!(scene.run(0.4, 0.1), "cpu: the device is being opened");
        scene.fake.set_state(DeviceState::Open);
        // The first run on the device copies the corpus, so it is tried once more.
        for _ in 0..2 {
            assert_eq!(scene.run(0.4, 0.1), "gpu: a trial, the cores have taken 0.900 s so far");
        }
        for _ in 0..3 {
            assert_eq!(scene.run(0.4, 0.1), "gpu: 0.100 s instead of 0.400 s on the cores");
        }
        // Without its copies the device takes longer, but less than the cores.
        scene.missing_elements = NUM_ELEMENTS;
        assert_eq!(scene.run(0.4, 0.1), "gpu: 0.200 s instead of 0.400 s on the cores");
        scene.fake.set_problem("the device is lost");
        assert_eq!(scene.run(0.4, 0.1), "cpu: the device is lost");
        assert_eq!(scene.fake.num_openings(), 1);
    }

    #[test]
    fn a_device_that_was_slower_is_left() {
        let mut scene = Scene::new(DeviceState::Open, LARGE_BYTES);
        let places = [0; 6].map(|_| scene.run(0.05, 0.2)[..3].to_owned());
        assert_eq!(places, ["cpu", "gpu", "gpu", "cpu", "cpu", "cpu"]);
        assert_eq!(scene.run(0.05, 0.2), "cpu: 0.050 s instead of 0.200 s on a device");
    }

    /// The first run on the cores derives data, so a device that is hardly faster than that run
    /// is compared with another run on the cores.
    #[test]
    fn a_device_that_is_hardly_faster_waits_for_another_run_on_the_cores() {
        let mut scene = Scene::new(DeviceState::Open, LARGE_BYTES);
        let places = [0; 5].map(|_| scene.run(0.05, 0.03)[..3].to_owned());
        assert_eq!(places, ["cpu", "gpu", "gpu", "cpu", "gpu"]);
        let mut scene = Scene::new(DeviceState::Open, LARGE_BYTES);
        assert!(scene.run(0.05, 0.03).starts_with("cpu"));
        let places = [0; 5].map(|_| scene.run(0.01, 0.03)[..3].to_owned());
        assert_eq!(places, ["gpu", "gpu", "cpu", "cpu", "cpu"]);
    }

    #[test]
    fn a_short_task_is_tried_when_the_cores_have_spent_what_a_trial_may_cost() {
        let mut scene = Scene::new(DeviceState::Open, 1 << 20);
        let first = (1..).find(|_| scene.run(0.001, 0.001).starts_with("gpu: a trial"));
        assert!(first.is_some_and(|first| (15..=17).contains(&first)), "{first:?}");
        let mut scene = Scene::new(DeviceState::Open, 1 << 20);
        assert!(scene.run(0.001, 0.001).starts_with("cpu"));
        assert_eq!(scene.run(0.001, 0.001), format!("cpu: {TRIAL_COSTS_MORE}"));
    }

    #[test]
    fn texts_open_a_device_together() {
        let mut scene = Scene::new(DeviceState::Closed, 30 << 20);
        assert_eq!(scene.run(0.5, 0.1), "cpu: the task was not timed yet");
        assert_eq!(scene.run(0.5, 0.1), "cpu: the device is to be opened first");
        assert_eq!(scene.fake.num_openings(), 0);
        assert_eq!(scene.run(0.5, 0.1), "cpu: the device is to be opened first");
        assert_eq!(scene.fake.num_openings(), 1);
    }

    #[test]
    fn small_texts_stay_on_the_cores() {
        let mut scene = Scene::new(DeviceState::Closed, SMALL_BYTES - 1);
        for _ in 0..5 {
            assert_eq!(scene.run(0.5, 0.1), "cpu: the text is small");
        }
        assert_eq!(scene.fake.num_openings(), 0);
    }

    #[test]
    fn some_documents_and_words_that_are_kept_need_no_device() {
        let mut scene = Scene::new(DeviceState::Open, LARGE_BYTES);
        scene.run(0.5, 0.1);
        let asked = || unreachable!("the driver is asked");
        for task in [
            Task::TermVector { is_part: true },
            Task::RankedInvertedIndex { num_words: 3, is_folded: false, is_part: true },
            Task::DocumentSequences { num_words: 3, is_folded: false, is_part: true },
        ] {
            let choice = choose(&Work { task, ..scene.work() }, asked);
            assert_eq!(choice, Choice::cores(SOME_DOCUMENTS, false));
        }
        let kept = Work { are_words_kept: true, ..scene.work() };
        assert_eq!(choose(&kept, asked), Choice::cores(WORDS_KEPT, false));
        assert!(choose(&scene.work(), || DeviceState::Open).is_on_device);
    }

    #[test]
    fn a_device_that_was_chosen_for_all_documents_is_not_for_some() {
        let on_device = |is_for_all| Placement { is_for_all, ..Placement::on_device("estimated") };
        assert_eq!(on_device(true).for_part().to_string(), "cpu: some documents are asked for");
        assert_eq!(on_device(false).for_part(), on_device(false));
        assert_eq!(Placement::default().for_part(), Placement::default());
    }
}
