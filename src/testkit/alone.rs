//! Runs a test in a process of its own: starts the test binary again for one case.
//!
//! Some faults of a device last as long as the process. The same holds for environment variables
//! and the working directory.

use std::fs::File;
use std::process::Command;

/// Environment variable that names the case of a process that runs only this case.
const CASE: &str = "TADOC_TEST_CASE";

/// Returns true if this process runs only the test `name`. `name` includes its modules.
pub fn is_alone(name: &str) -> bool {
    std::env::var(CASE).is_ok_and(|current| current == name)
}

/// Runs the test `name` in another process, which `prepare` configures.
pub fn run_apart(name: &str, prepare: impl FnOnce(&mut Command)) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(CASE, name);
    prepare(&mut command);
    let run = command.output().unwrap();
    let [out, err] = [&run.stdout, &run.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(run.status.success() && out.contains("1 passed"), "{}\n{out}\n{err}", run.status);
}

/// Waits for a lock that one case of this machine holds at a time, and returns the locked file.
///
/// The lock also covers other threads, processes and binaries. It is released when the file is
/// closed. If one case fills the device, other cases have no memory there.
pub fn next_turn() -> File {
    let turn = File::create(std::env::temp_dir().join("tadoc-gpu-faults.turn")).unwrap();
    turn.lock().unwrap();
    turn
}
