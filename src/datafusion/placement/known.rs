//! Times of earlier tasks over a corpus. The chooser uses them when a task is repeated.
//!
//! A time is that of a whole run, after the corpus was loaded. The first run on the cores also
//! derives data that later runs find, and the first one on a device copies the corpus. So runs
//! count apart, by what they found.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::placement::task::Task;

/// Times by task.
#[derive(Debug, Default)]
pub(crate) struct KnownTasks(Mutex<HashMap<Task, Known>>);

/// The corpus and its copies as a run of a task finds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Finds {
    /// The cores find no corpus in memory.
    Nothing,
    /// The cores find the corpus.
    Corpus,
    /// A device lacks copies of the corpus.
    SomeCopies,
    /// A device has all copies.
    AllCopies,
}

/// Times of a task in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Known {
    /// Sum of all runs on the cores.
    pub(crate) spent_s: f64,
    /// Shortest run on the cores that found the corpus.
    cores_s: Option<f64>,
    /// Shortest run on a device that lacked copies.
    copying_s: Option<f64>,
    /// Shortest run on a device that had all copies.
    device_s: Option<f64>,
}

impl KnownTasks {
    /// Records the time of a whole run of `task`.
    pub(crate) fn note_time(&self, task: Task, finds: Finds, seconds: f64) {
        self.lock().entry(task).or_default().note_time(finds, seconds);
    }

    pub(crate) fn for_task(&self, task: Task) -> Known {
        self.lock().get(&task).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Task, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Known {
    fn note_time(&mut self, finds: Finds, seconds: f64) {
        if matches!(finds, Finds::Nothing | Finds::Corpus) {
            self.spent_s += seconds;
        }
        let least_s = match finds {
            Finds::Nothing => return,
            Finds::Corpus => &mut self.cores_s,
            Finds::SomeCopies => &mut self.copying_s,
            Finds::AllCopies => &mut self.device_s,
        };
        *least_s = Some(least_s.map_or(seconds, |least_s| least_s.min(seconds)));
    }

    /// Returns the time on the cores. A task that they have only run once is assumed to take half of
    /// that time again.
    pub(super) fn cores_s(&self) -> f64 {
        self.cores_s.unwrap_or(self.spent_s / 2.0)
    }

    /// Returns the time on a device, if such a run was timed.
    pub(super) fn device_s(&self, lacks_copies: bool) -> Option<f64> {
        if lacks_copies { self.copying_s } else { self.device_s }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_of_each_kind_of_run_is_kept() {
        let tasks = KnownTasks::default();
        let task = Task::InvertedIndex { is_folded: false };
        assert_eq!(tasks.for_task(task), Known::default());
        tasks.note_time(task, Finds::Nothing, 1.0);
        assert_eq!(tasks.for_task(task).cores_s(), 0.5);
        for seconds in [0.3, 0.2, 0.4] {
            tasks.note_time(task, Finds::Corpus, seconds);
        }
        tasks.note_time(task, Finds::SomeCopies, 0.7);
        tasks.note_time(task, Finds::AllCopies, 0.1);
        let known = tasks.for_task(task);
        assert!((known.spent_s - 1.9).abs() < 1e-9, "{known:?}");
        assert_eq!(known.cores_s(), 0.2);
        assert_eq!((known.device_s(true), known.device_s(false)), (Some(0.7), Some(0.1)));
        assert_eq!(tasks.for_task(Task::TermVector { is_part: false }), Known::default());
    }
}
