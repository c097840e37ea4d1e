//! The progress bar of an ingest: on a terminal, and only once the work has taken two seconds.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Short work needs no bar.
const SHOW_AFTER: Duration = Duration::from_secs(2);

const WITH_TOTAL: &str = "{bar:32} {decimal_bytes}/{decimal_total_bytes} \
                          {decimal_bytes_per_sec}, {eta} left {msg}";
const WITHOUT_TOTAL: &str = "{spinner} {decimal_bytes} {decimal_bytes_per_sec} {msg}";

/// A bar over the bytes of the inputs as they lie on disk.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    is_wanted: bool,
}

impl Progress {
    /// A bar that ends at `total_bytes`, or only counts where that is 0.
    pub fn new(total_bytes: u64, quiet: bool) -> Self {
        let bar = match total_bytes {
            0 => ProgressBar::no_length(),
            total => ProgressBar::new(total),
        };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        let template = if total_bytes == 0 { WITHOUT_TOTAL } else { WITH_TOTAL };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Self { bar, start: Instant::now(), is_wanted: !quiet && stderr().is_terminal() }
    }

    /// Moves on; `num_docs` is what there is so far.
    pub fn advance(&mut self, read_bytes: u64, num_docs: u64) {
        self.bar.inc(read_bytes);
        if self.is_wanted && self.start.elapsed() >= SHOW_AFTER {
            self.is_wanted = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            // A block may take seconds to build; the clock goes on meanwhile.
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
        self.bar.set_message(crate::display::plural(num_docs, "document"));
    }

    /// Removes the bar from the screen.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
