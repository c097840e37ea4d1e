//! Resident memory and open files of a process over time.

use std::fs;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Growth that is not a leak: in a run too short to warm up, and in a long one. On two busy cores,
/// without optimization, the last third of 100 seconds held 7.5 MiB more than the second third, and
/// that of 400 seconds held 1.9 MiB more.
const SHORT_GROWTH_KIB: f64 = 32.0 * 1024.0;
const GROWTH_KIB: f64 = 8.0 * 1024.0;
/// Additional growth for each hour.
const GROWTH_KIB_PER_HOUR: f64 = 1024.0;
const SHORT: Duration = Duration::from_secs(240);
/// Number of additional open files that are no leak: statements may be under way at each sample of
/// a third.
const FEW_FILES: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Sample {
    after: Duration,
    resident_kib: u64,
    num_files: usize,
}

impl Sample {
    fn take(started: Instant) -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let resident_kib = line.trim().trim_end_matches(" kB").parse().unwrap();
        let num_files = fs::read_dir("/proc/self/fd").unwrap().count();
        Self { after: started.elapsed(), resident_kib, num_files }
    }
}

/// A thread that takes samples four times a second for as long as the run.
pub struct Usage {
    stop: Sender<()>,
    samples: JoinHandle<Vec<Sample>>,
}

impl Usage {
    pub fn start(run: Duration) -> Self {
        let (stop, stopped) = channel();
        let started = Instant::now();
        // There are at most 40,000 samples, so their own memory does not grow.
        let pause = Duration::from_millis(250).max(run / 40_000);
        let samples = std::thread::spawn(move || {
            let mut samples = Vec::with_capacity(1 << 17);
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                samples.push(Sample::take(started));
            }
            samples
        });
        Self { stop, samples }
    }

    /// Compares the last third of the run with the second third. The first third is for the
    /// warm-up.
    pub fn assert_flat(self) {
        drop(self.stop);
        let samples = self.samples.join().unwrap();
        let run = samples.last().unwrap().after;
        let third = |number: u32| {
            let is_in = |s: &&Sample| s.after * 3 >= run * number && s.after * 3 <= run * (number + 1);
            samples.iter().filter(is_in).copied().collect::<Vec<_>>()
        };
        let before = third(1);
        let after = third(2);
        let grown_kib = median_kib(&after) - median_kib(&before);
        let files = |of: &[Sample]| of.iter().map(|sample| sample.num_files).min().unwrap();
        let files_before = files(&before);
        let files_after = files(&after);
        let tenths = samples.chunks(samples.len().div_ceil(10)).map(median_kib);
        let tenths: Vec<String> = tenths.map(|kib| format!("{:.1}", kib / 1024.0)).collect();
        println!("MiB resident, by tenths of the run: {}", tenths.join(" "));
        let limit_kib =
            if run < SHORT { SHORT_GROWTH_KIB } else { GROWTH_KIB + GROWTH_KIB_PER_HOUR * run.as_secs_f64() / 3600.0 };
        println!(
            "{:.0} s: {:.1} MiB resident, {:+.2} MiB from the second third to the last; {files_after} \
             open files, {files_before} before",
            run.as_secs_f64(),
            median_kib(&after) / 1024.0,
            grown_kib / 1024.0,
        );
        assert!(grown_kib <= limit_kib, "{grown_kib} KiB more, {limit_kib} are no leak");
        let is_little = files_after <= files_before + FEW_FILES;
        assert!(is_little, "{files_after} open files after {files_before}");
    }
}

fn median_kib(samples: &[Sample]) -> f64 {
    let mut sizes: Vec<u64> = samples.iter().map(|sample| sample.resident_kib).collect();
    sizes.sort_unstable();
    sizes[sizes.len() / 2] as f64
}
