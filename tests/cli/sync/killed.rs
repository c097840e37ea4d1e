//! Syncs that are killed at random moments: the corpus has the documents before the sync, or those of the folder.

use std::fs;
use std::process::Stdio;
use std::thread::sleep;
use std::time::Instant;

use testkit::random::Random;

use super::{Documents, names_below, stored, sync};
use crate::harness::{Folder, new_folder};

const NUM_RUNS: usize = 60;
const NUM_FILES: usize = 40;

fn documents_of(folder: &Folder) -> Documents {
    let top = folder.join("in");
    let read = |path: &std::path::PathBuf| {
        let name = path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned();
        (name, vec![fs::read(path).unwrap()])
    };
    names_below(&top).iter().map(read).collect()
}

#[test]
fn a_killed_sync_loses_nothing() {
    let folder = new_folder();
    let name = |at: usize| format!("in/{}/{at}.txt", at % 3);
    for at in 0..NUM_FILES {
        folder.write(&name(at), format!("text {at}\n").repeat(50));
    }
    let started = Instant::now();
    sync(&folder, &[]);
    let whole_run = started.elapsed();
    let mut random = Random(7);
    let mut num_done = 0;
    let mut num_killed = 0;
    let mut before = stored(&folder, "c");
    for run_idx in 0..NUM_RUNS {
        for _ in 0..6 {
            let name = name(random.below(NUM_FILES));
            if random.one_in(3) {
                let _gone = fs::remove_file(folder.join(&name));
            } else {
                folder.write(&name, format!("run {run_idx}\n").repeat(random.below(100)));
            }
        }
        let after = documents_of(&folder);
        let optimizes = random.one_in(5);
        let arguments: &[&str] =
            if optimizes { &["optimize", "c", "--clean-up", "0"] } else { &["sync", "in", "c", "--json"] };
        let mut command = folder.command(arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        sleep(whole_run * random.below(1300) as u32 / 1000);
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let is_acknowledged = !optimizes && (output.status.success() || !output.stdout.is_empty());
        let is_killed = output.status.code().is_none();
        assert!(is_killed || output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let there = stored(&folder, "c");
        assert!(there == after || there == before && !is_acknowledged, "run {run_idx}");
        num_done += usize::from(is_acknowledged);
        num_killed += usize::from(is_killed);
        before = there;
    }
    println!("{NUM_RUNS} runs: {num_killed} killed, {num_done} acknowledged");
    sync(&folder, &[]);
    assert!(stored(&folder, "c") == documents_of(&folder));
    assert_eq!(sync(&folder, &[])[..3], [0, 0, 0]);
    folder.ok(&["verify", "-q", "c"]);
    folder.ok(&["optimize", "c", "-q", "--clean-up", "0"]);
    let num_segments = folder.ok(&["verify", "c"]).lines().filter(|line| line.contains("segments/")).count();
    let names = names_below(&folder.join("c"));
    // A version, what is known of the files, and the segments.
    assert_eq!(names.len(), num_segments + 2, "{names:?}");
}
