//! CPU or GPU for a task over a corpus, and why.
//!
//! ```text
//! tadoc.device   cpu  ─▶ CPU
//!                gpu  ─▶ GPU; CPU where there is no kernel for it; an error where there is no device
//!                auto ─▶ the chooser: CPU, or GPU where one is there
//! ```
//!
//! Decided once, when the plan is made, from footers and from what lies on devices then: `EXPLAIN` shows
//! what will be done. With `auto` nobody waits for the driver, unless the task is so long that waiting is a gain; a device
//! that is closed is opened for the tasks after this one.

use crate::gsst::{calibration, device};
use crate::options::Device;
use crate::placement::answers::missing_elements;
use crate::placement::chooser::{Work, choose, hoped};
use crate::placement::decided::{Place, Placement};
use crate::placement::task::Task;
use crate::scan::Scan;
use crate::source::LoadedCorpus;
use crate::throughput::DeviceState;
use tadoc::analytics::SegmentShape;

/// Decides where `task` of `scan` is done; an error instead of one says why there is none. `loaded` is
/// the corpus, where it is in memory already.
pub(crate) fn place(
    scan: &Scan,
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
        return choose_place(scan, task, loaded);
    }
    if let Some(problem) = device::problem() {
        let reason = format!("tadoc.device = gpu: {problem}; SET tadoc.device = 'auto'");
        return Placement { place: Place::Nowhere, reason, ..Placement::default() };
    }
    device::open_soon();
    Placement { place: Place::Device, ..Placement::default() }
}

fn choose_place(scan: &Scan, task: Task, loaded: Option<&LoadedCorpus>) -> Placement {
    let work = work(scan, task, loaded);
    let rates = calibration().corpus_rates();
    let mut choice = choose(&work, &rates, device::state);
    if choice.is_on_device
        && let Some(problem) = device::problem()
    {
        choice = choose(&work, &rates, || DeviceState::Missing(problem));
    }
    if let Some(effort) = choice.missed {
        device::miss(effort.gain_s(), effort.startup_s, work.num_cores);
        loaded.inspect(|loaded| loaded.tasks.note_missed(task, effort.gain_s()));
    } else if let Some(effort) = hoped(&work, &rates)
        && !choice.is_on_device
        && effort.gain_s() > 0.0
        && device::state() == DeviceState::Closed
    {
        device::miss(effort.gain_s(), effort.startup_s, work.num_cores);
    }
    let timed = loaded.filter(|_| !work.are_words_kept).map(|_| task);
    if !choice.is_on_device {
        return Placement { timed, ..Placement::on_cpu(choice.reason) };
    }
    device::open_soon();
    Placement {
        place: Place::Device,
        reason: choice.reason,
        is_for_all: matches!(task, Task::TermVector { .. }),
        timed: timed.filter(|_| work.missing_elements == 0),
    }
}

fn work(scan: &Scan, task: Task, loaded: Option<&LoadedCorpus>) -> Work {
    let segments = || scan.corpora().iter().flat_map(|open| &open.footer.segments);
    let shape: SegmentShape = segments().map(SegmentShape::from).sum();
    let are_words_kept = loaded.is_some_and(|loaded| {
        let mut segments = loaded.corpus.segments().iter();
        task.is_in_doc_words(&scan.options) && segments.all(|segment| segment.keeps_doc_words())
    });
    Work {
        task,
        shape,
        missing_elements: loaded
            .map_or(shape.num_elements, |loaded| missing_elements(task, loaded.corpus.segments())),
        join: task.join(segments().count() > 1 || scan.living().is_some()),
        known: loaded.map(|loaded| loaded.tasks.of(task)).unwrap_or_default(),
        num_cores: rayon::current_num_threads(),
        are_words_kept,
    }
}
