//! The choice between CPU and GPU for a task over a corpus, with its reason.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU; CPU if the task has no kernel; an error if there is no device
//!                auto ─▶ the chooser: CPU, or GPU if there is one
//! ```
//!
//! The choice is made once, when the plan is made. It uses the footers, and the copies that the
//! devices have at that time. `EXPLAIN` shows the choice and opens nothing. With `auto`, no task
//! waits for a device. A closed device may be opened for later tasks when the plan is executed
//! ([`Placement::begin`]).

use crate::corpora::LoadedCorpus;
use crate::options::Device;
use crate::placement::{Choice, DeviceSession, Finds, Place, Placement, Task, Work, choose, demanded_but};
use crate::planning::ScanSpec;

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

fn choose_place(scan: &ScanSpec, devices: &DeviceSession, task: Task, loaded: Option<&LoadedCorpus>) -> Placement {
    let work = work(scan, devices, task, loaded);
    let is_on_device = |choice: &Choice| choice.is_on_device;
    let choice = devices.decide(|state| choose(&work, state), is_on_device);
    if choice.is_on_device {
        let has_all = work.missing_elements == 0;
        let finds = if has_all { Finds::AllCopies } else { Finds::SomeCopies };
        return Placement {
            is_for_all: matches!(task, Task::TermVector { .. }),
            timed: Some((task, finds)),
            ..Placement::on_device(choice.reason)
        };
    }
    let finds = if loaded.is_some() { Finds::Corpus } else { Finds::Nothing };
    Placement {
        timed: (!work.are_words_kept).then_some((task, finds)),
        missed_bytes: if choice.is_missed { scan.len_bytes() } else { 0 },
        ..Placement::on_cpu(choice.reason)
    }
}

fn work(scan: &ScanSpec, devices: &DeviceSession, task: Task, loaded: Option<&LoadedCorpus>) -> Work {
    let are_words_kept = loaded.is_some_and(|loaded| {
        let mut segments = loaded.corpus.segments().iter();
        task.is_in_doc_words(&scan.options) && segments.all(|segment| segment.keeps_doc_words())
    });
    let missing_elements =
        loaded.map_or(0, |loaded| devices.missing_elements(task.segment_task(), loaded.corpus.segments()));
    Work {
        task,
        text_bytes: scan.len_bytes(),
        missing_elements,
        known: loaded.map(|loaded| loaded.tasks.for_task(task)).unwrap_or_default(),
        are_words_kept,
    }
}
