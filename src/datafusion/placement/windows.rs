//! The rate of work that runs side by side: reads of a store, batches at a place.
//!
//! ```text
//! work  ──┐ ┌────┐  ┌──          amount of all work
//!         └─┘    └──┘     rate = ─────────────────────────────────────
//!        busy     busy           time in which at least one ran
//! ```
//!
//! Times of work that runs side by side are not added. Work that follows one another is a window, and the fastest of
//! the last windows has the rate: in the others the cores did something else of their statements, so that less work
//! ran, or it waited for the cores. Memory: that of [`NUM_WINDOWS`] numbers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Windows whose rates are kept.
const NUM_WINDOWS: usize = 64;

/// The last windows of work. One ends when `LEN` of its unit are done.
#[derive(Debug, Default)]
pub(super) struct Windows<const LEN: u64> {
    pub(super) num_running: usize,
    pub(super) busy_since: Option<Instant>,
    /// Time in which work of this window ran.
    busy: Duration,
    /// Work of this window.
    amount: u64,
    /// Rates of the last windows.
    rates: VecDeque<f64>,
}

impl<const LEN: u64> Windows<LEN> {
    /// Notes that a piece of work begins.
    pub(super) fn begin_one(&mut self) {
        self.num_running += 1;
        self.busy_since.get_or_insert_with(Instant::now);
    }

    /// Notes that one of the running pieces has ended, with this `amount`. Returns the time in which work ran since the
    /// last one began or ended.
    pub(super) fn end_one(&mut self, amount: u64) -> Duration {
        self.num_running = self.num_running.saturating_sub(1);
        let mut passed = Duration::ZERO;
        if let Some(since) = self.busy_since {
            let now = Instant::now();
            passed = now.duration_since(since);
            self.busy_since = (self.num_running > 0).then_some(now);
        }
        self.busy += passed;
        self.amount = self.amount.saturating_add(amount);
        if self.amount >= LEN {
            self.rates.extend(self.rate_of_window());
            if self.rates.len() > NUM_WINDOWS {
                self.rates.pop_front();
            }
            self.busy = Duration::ZERO;
            self.amount = 0;
        }
        passed
    }

    /// Returns the amount for each second of the fastest window, or of this one if none has ended.
    pub(super) fn rate_per_s(&self) -> Option<f64> {
        self.rates.iter().copied().reduce(f64::max).or_else(|| self.rate_of_window())
    }

    fn rate_of_window(&self) -> Option<f64> {
        let seconds = self.busy.as_secs_f64();
        (self.amount > 0 && seconds > 0.0).then(|| self.amount as f64 / seconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: u64 = 1 << 15;

    #[test]
    fn the_fastest_of_the_last_windows_counts() {
        let mut windows = Windows::<LEN>::default();
        let work = |windows: &mut Windows<LEN>, millis| {
            windows.busy += Duration::from_millis(millis);
            windows.end_one(LEN);
        };
        let is_rate_for = |windows: &Windows<LEN>, millis: f64| {
            let expected = LEN as f64 / millis * 1e3;
            (windows.rate_per_s().unwrap() / expected - 1.0).abs() < 1e-9
        };
        work(&mut windows, 100);
        assert!(is_rate_for(&windows, 100.0));
        work(&mut windows, 10);
        for _ in 1..NUM_WINDOWS {
            work(&mut windows, 100);
        }
        assert!(is_rate_for(&windows, 10.0));
        work(&mut windows, 100);
        assert!(is_rate_for(&windows, 100.0));
        // A window that has not ended says nothing as long as others do.
        windows.busy += Duration::from_secs(100);
        windows.end_one(1);
        assert!(is_rate_for(&windows, 100.0));
    }
}
