//! Tests that have a process of their own: their binary again, for one case.
//!
//! Some faults of a device last as long as their process, and so do environment variables and the working directory.

use std::fs::File;
use std::process::Command;

/// In the environment of a process that is there for one case.
const CASE: &str = "TADOC_TEST_CASE";

/// Whether this process is there for the test `name`, with the names of its modules, alone.
pub fn is_alone(name: &str) -> bool {
    std::env::var(CASE).is_ok_and(|current| current == name)
}

/// Runs the test `name` in another process, which has what `prepare` gives it.
pub fn run_apart(name: &str, prepare: impl FnOnce(&mut Command)) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(CASE, name);
    prepare(&mut command);
    let run = command.output().unwrap();
    let [out, err] = [&run.stdout, &run.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(run.status.success() && out.contains("1 passed"), "{}\n{out}\n{err}", run.status);
}

/// A file that one case of this machine has at a time, for as long as it is open: threads and
/// processes wait, those of other binaries too. A device that one of them fills has no memory for others.
pub fn next_turn() -> File {
    let turn = File::create(std::env::temp_dir().join("tadoc-gpu-faults.turn")).unwrap();
    turn.lock().unwrap();
    turn
}
