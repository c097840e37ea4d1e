//! Rows and times of earlier tasks over a corpus. The chooser uses them when a task is repeated.
//!
//! ```text
//! rows        number of rows of the answer                            ┐
//! times       shortest time on the cores, shortest time on a device   ├─▶ chooser
//! missed      time that a device with the corpus would have saved     ┘
//! ```
//!
//! A time is that of a whole run, with the corpus loaded and, for a device, copied to it. So
//! measured times correct a choice that was made by estimates.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::placement::task::Task;

/// Records by task.
#[derive(Debug, Default)]
pub(crate) struct KnownTasks(Mutex<HashMap<Task, Known>>);

/// Rows of an earlier task, and its times in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Known {
    pub(crate) num_rows: Option<u64>,
    pub(crate) cores_s: Option<f64>,
    pub(crate) device_s: Option<f64>,
    pub(crate) missed_s: f64,
}

impl KnownTasks {
    /// Records the number of rows of `task`.
    pub(crate) fn note_rows(&self, task: Task, num_rows: u64) {
        self.lock().entry(task).or_default().num_rows = Some(num_rows);
    }

    /// Records the time of a whole run of `task`.
    pub(crate) fn note_time(&self, task: Task, is_on_device: bool, seconds: f64) {
        let mut tasks = self.lock();
        let known = tasks.entry(task).or_default();
        let least_s = if is_on_device { &mut known.device_s } else { &mut known.cores_s };
        *least_s = Some(least_s.map_or(seconds, |least_s| least_s.min(seconds)));
    }

    /// Adds the seconds that a device with the corpus would have saved in `task`.
    pub(crate) fn note_missed(&self, task: Task, gain_s: f64) {
        self.lock().entry(task).or_default().missed_s += gain_s;
    }

    pub(crate) fn for_task(&self, task: Task) -> Known {
        self.lock().get(&task).copied().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Task, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_time_of_each_place_is_kept() {
        let (tasks, task) = (KnownTasks::default(), Task::InvertedIndex { is_folded: false });
        assert_eq!(tasks.for_task(task), Known::default());
        for seconds in [0.3, 0.2, 0.4] {
            tasks.note_time(task, false, seconds);
        }
        tasks.note_time(task, true, 0.1);
        tasks.note_rows(task, 7);
        tasks.note_missed(task, 0.5);
        tasks.note_missed(task, 0.25);
        let (num_rows, cores_s, device_s) = (Some(7), Some(0.2), Some(0.1));
        assert_eq!(tasks.for_task(task), Known { num_rows, cores_s, device_s, missed_s: 0.75 });
        assert_eq!(tasks.for_task(Task::TermVector { is_part: false }), Known::default());
    }
}
