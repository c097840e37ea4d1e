//! The progress bar of an ingest. It shows on a terminal after two seconds of work.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Time without a bar, as short work does not need one.
const SHOW_AFTER: Duration = Duration::from_secs(2);

const WITH_TOTAL: &str = "{bar:32} {decimal_bytes}/{decimal_total_bytes} \
                          {decimal_bytes_per_sec}, {eta} left {msg}";
const WITHOUT_TOTAL: &str = "{spinner} {decimal_bytes} {decimal_bytes_per_sec} {msg}";

/// A bar over the bytes of the inputs, counted as stored on disk.
pub struct Progress {
    bar: ProgressBar,
    start: Instant,
    is_wanted: bool,
}

impl Progress {
    /// Creates a bar that ends at `total_bytes`. If that is 0, the bar only counts.
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

    /// Advances the bar by `read_bytes` and shows `num_docs`, the number of documents so far.
    pub fn advance(&mut self, read_bytes: u64, num_docs: u64) {
        self.bar.inc(read_bytes);
        if self.is_wanted && self.start.elapsed() >= SHOW_AFTER {
            self.is_wanted = false;
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
            // Building a block may take seconds; the clock continues meanwhile.
            self.bar.enable_steady_tick(Duration::from_millis(200));
        }
        self.bar.set_message(tadoc_documents::display::plural(num_docs, "document"));
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
