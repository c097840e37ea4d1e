//! The choice between CPU and GPU for a task over a corpus, with its reason.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU; CPU if the task has no kernel; an error if there is no device
//!                auto ─▶ the chooser: CPU, or GPU if there is one
//! ```
//!
//! The choice is made once, when the plan is made. It uses the footers, and the copies that the
//! devices have at that time. `EXPLAIN` shows the choice and opens nothing. With `auto`, a task
//! waits for the driver only if it is so long that waiting is a gain. A closed device may be opened
//! for later tasks when the plan is executed ([`Placement::begin`]).

use crate::corpora::LoadedCorpus;
use crate::options::Device;
use crate::placement::{
    Choice, DeviceSession, Missed, Place, Placement, Task, Work, choose, demanded_but, hoped,
};
use crate::planning::ScanSpec;
use crate::throughput::DeviceState;
use tadoc::analytics::SegmentShape;

/// Decides the place of `task` in `scan`. If `task` is an error, it is the reason why the statement
/// has no task. `loaded` is the corpus if it is in memory.
pub(crate) fn place(
    scan: &ScanSpec,
    devices: &DeviceSession,
    task: std::result::Result<Task, &'static str>,
    loaded: Option<&LoadedCorpus>,
) -> Placement {
    let demanded = scan.options.device;
    let task = match (demanded, task) {
        (Device::Gpu, Err(reason)) => return Placement::on_cpu(reason),
        (_, Err(_)) => return Placement::default(),
        (Device::Cpu, Ok(_)) => return Placement::on_cpu("tadoc.device = cpu"),
        (Device::Auto | Device::Gpu, Ok(task)) => task,
    };
    let segments = scan.corpora().iter().flat_map(|open| &open.footer.segments);
    if let Some(reason) = task.refused(segments) {
        return Placement::on_cpu(reason);
    }
    if demanded == Device::Auto {
        return choose_place(scan, devices, task, loaded);
    }
    if let Some(problem) = devices.problem() {
        let reason = demanded_but(&problem);
        return Placement { place: Place::Nowhere, reason, ..Placement::default() };
    }
    Placement::on_device("")
}

fn choose_place(
    scan: &ScanSpec,
    devices: &DeviceSession,
    task: Task,
    loaded: Option<&LoadedCorpus>,
) -> Placement {
    let work = work(scan, devices, task, loaded);
    let rates = devices.calibration().corpus_rates();
    let choice =
        devices.decide(|state| choose(&work, &rates, state), |choice: &Choice| choice.is_on_device);
    let hoped = || {
        let effort = hoped(&work, &rates).filter(|effort| effort.gain_s() > 0.0);
        effort.filter(|_| devices.state() == DeviceState::Closed)
    };
    let timed = loaded.filter(|_| !work.are_words_kept).map(|_| task);
    if !choice.is_on_device {
        let missed = choice.missed.or_else(hoped);
        let missed = missed.map(|effort| Missed { effort, num_cores: work.num_cores });
        return Placement { timed, missed, ..Placement::on_cpu(choice.reason) };
    }
    Placement {
        is_for_all: matches!(task, Task::TermVector { .. }),
        timed: timed.filter(|_| work.missing_elements == 0),
        ..Placement::on_device(choice.reason)
    }
}

fn work(
    scan: &ScanSpec,
    devices: &DeviceSession,
    task: Task,
    loaded: Option<&LoadedCorpus>,
) -> Work {
    let segments = || scan.corpora().iter().flat_map(|open| &open.footer.segments);
    let shape: SegmentShape = segments().map(SegmentShape::from).sum();
    let are_words_kept = loaded.is_some_and(|loaded| {
        let mut segments = loaded.corpus.segments().iter();
        task.is_in_doc_words(&scan.options) && segments.all(|segment| segment.keeps_doc_words())
    });
    Work {
        task,
        shape,
        missing_elements: loaded.map_or(shape.num_elements, |loaded| {
            devices.missing_elements(task.segment_task(), loaded.corpus.segments())
        }),
        join: task.join(segments().count() > 1 || scan.living().is_some()),
        known: loaded.map(|loaded| loaded.tasks.for_task(task)).unwrap_or_default(),
        num_cores: rayon::current_num_threads(),
        are_words_kept,
    }
}
