//! Tests that have a process of their own: this binary again, for one case.
//!
//! Some faults of a device last as long as their process, and so do environment variables.

use std::fs::File;
use std::process::Command;

use datafusion_tadoc::throughput::Calibration;

use super::device::open_device;

/// In the environment of a process that is there for one case.
const CASE: &str = "TADOC_TEST_CASE";

/// What a process has of its own.
pub struct Process<'a> {
    pub variables: &'a [(&'a str, &'a str)],
    pub calibration: Calibration,
    pub needs_device: bool,
}

/// Runs `case`, which is all of the test `name`, in such a process; nothing where there is no device that it
/// needs. Cases take turns, those of other binaries too: a device that one of them fills has no memory for
/// others.
pub fn alone(name: &str, process: &Process<'_>, case: impl Future<Output = ()>) {
    if std::env::var(CASE).is_ok_and(|current| current == name) {
        return tokio::runtime::Runtime::new().unwrap().block_on(case);
    }
    let _turn = next_turn();
    if !process.needs_device || open_device().is_some() {
        run_apart(name, process);
    }
}

/// A file that one case of this machine has at a time, for as long as it is open: threads and
/// processes wait.
fn next_turn() -> File {
    let turn = File::create(std::env::temp_dir().join("tadoc-gpu-faults.turn")).unwrap();
    turn.lock().unwrap();
    turn
}

/// Runs the test `name` in another process.
fn run_apart(name: &str, process: &Process<'_>) {
    let dir = tempfile::tempdir().unwrap();
    let calibration = dir.path().join("calibration");
    process.calibration.save_to(&calibration).unwrap();
    let run = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CASE, name)
        .env("TADOC_CALIBRATION", &calibration)
        .envs(process.variables.iter().copied())
        .output()
        .unwrap();
    let [out, err] = [&run.stdout, &run.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(run.status.success() && out.contains("1 passed"), "{}\n{out}\n{err}", run.status);
}
