//! Tests of `kill -9` at random moments. Acknowledged changes are there, no change is there by
//! half, and the corpus opens at once.
//!
//! The binary runs 200 times on one corpus. Each run adds documents, makes edits (always of two
//! documents, so that half a change would show), or optimizes and cleans up. A run ends by itself
//! or is killed after a random time within the time of a whole run. The order of the runs and the
//! layouts that they write are seeded; the moments depend on the machine. After each run every
//! document is compared with plain texts.

use std::process::Stdio;
use std::thread::sleep;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use tadoc::format::OpenLimits;
use tadoc_store::{LivingStore, LocalFolder, StoreOptions};
use testkit::random::Random;

use crate::harness::{Folder, new_folder};

const NUM_RUNS: usize = 200;
/// Longest time to reopen a corpus. The requirement is one second, but a busy machine must not fail
/// the test.
const MAX_REOPEN: Duration = Duration::from_secs(20);

/// Documents by id; `None` for a dropped document.
type Texts = Vec<Option<Vec<u8>>>;

/// One attempt: its arguments, and the documents after it if it takes effect.
struct Attempt {
    arguments: Vec<String>,
    after: Texts,
}

fn next_run(folder: &Folder, random: &mut Random, run_idx: usize, texts: &Texts) -> Attempt {
    let mut after = texts.clone();
    let there: Vec<usize> = (0..texts.len()).filter(|&id| texts[id].is_some()).collect();
    let mut pick = || there[random.below(there.len())];
    let one = pick();
    let other = pick();
    let mark = format!(" mark {run_idx}");
    let layout = if random.one_in(2) { "indexed" } else { "small" };
    let arguments: Vec<String> = match random.below(10) {
        0..3 => {
            folder.write("in/1.txt", format!("document of run {run_idx}\n").repeat(20));
            folder.write("in/2.txt", &mark);
            for name in ["in/1.txt", "in/2.txt"] {
                after.push(Some(std::fs::read(folder.join(name)).unwrap()));
            }
            ["ingest", "in", "-o", "notes", "--append", "--duplicate", "--layout", layout].map(str::to_owned).into()
        }
        3..7 => {
            for id in [one, other] {
                after[id].as_mut().unwrap().extend(mark.as_bytes());
            }
            let one = one.to_string();
            let other = other.to_string();
            ["edit", "notes", "--append", &one, &mark, "--append", &other, &mark].map(str::to_owned).into()
        }
        7 if one != other && there.len() > 4 => {
            after[one] = None;
            after[other] = Some(mark.clone().into_bytes());
            folder.write("replacement", &mark);
            let one = one.to_string();
            let other = other.to_string();
            ["edit", "notes", "--drop", &one, "--replace", &other, "replacement"].map(str::to_owned).into()
        }
        8 => ["optimize", "notes", "--clean-up", "0"].map(str::to_owned).into(),
        _ => ["optimize", "notes", "--clean-up", "0", "--layout", layout].map(str::to_owned).into(),
    };
    Attempt { arguments, after }
}

/// Returns every document, and the time until the corpus was open.
fn reopened(folder: &Folder) -> (Texts, Duration) {
    let started = Instant::now();
    let corpus = block_on(async {
        let place = LocalFolder::new(folder.join("notes"));
        let store = LivingStore::open(place, StoreOptions::default()).await.unwrap();
        let latest = store.latest().await.unwrap();
        store.corpus(&latest, &OpenLimits::default()).await.unwrap()
    });
    let elapsed = started.elapsed();
    let text = |id| {
        if corpus.is_dropped(id) { None } else { Some(corpus.extract(id, 0, u64::MAX).unwrap()) }
    };
    ((0..corpus.num_docs()).map(text).collect(), elapsed)
}

#[test]
fn two_hundred_kills_lose_nothing() {
    let folder = new_folder();
    folder.write("in/1.txt", "the first document\n".repeat(50));
    let started = Instant::now();
    folder.ok(&["ingest", "in", "-o", "notes", "--append"]);
    let whole_run = started.elapsed();
    let mut random = Random(2026);
    let (mut texts, _) = reopened(&folder);
    let mut num_done = 0;
    let mut num_killed = 0;
    let mut slowest = Duration::ZERO;
    for run_idx in 0..NUM_RUNS {
        let run = next_run(&folder, &mut random, run_idx, &texts);
        let arguments: Vec<&str> = run.arguments.iter().map(String::as_str).collect();
        let mut command = folder.command(&arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        sleep(whole_run * random.below(1300) as u32 / 1000);
        // Sends SIGKILL. A run that has ended already keeps its exit status.
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let is_acknowledged = output.status.success() || said.contains(": version ");
        assert!(
            output.status.success() || output.status.code().is_none(),
            "run {run_idx}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let (there, reopen) = reopened(&folder);
        slowest = slowest.max(reopen);
        let happened = there == run.after;
        assert!(happened || !is_acknowledged && there == texts, "run {run_idx}: {arguments:?}");
        num_done += usize::from(is_acknowledged);
        num_killed += usize::from(!output.status.success());
        texts = there;
        if run_idx % 20 == 0 {
            folder.ok(&["verify", "--quiet", "notes"]);
        }
    }
    println!("{NUM_RUNS} runs: {num_killed} killed, {num_done} acknowledged; reopened in {slowest:?}");
    assert!(slowest < MAX_REOPEN, "{slowest:?}");
    folder.ok(&["optimize", "notes", "--clean-up", "0"]);
    let info = folder.ok(&["verify", "notes"]);
    let names = |name| std::fs::read_dir(folder.join(name)).unwrap().count();
    let num_files = info.lines().filter(|line| line.contains("segments/")).count();
    assert_eq!((names("notes/segments"), names("notes/versions")), (num_files, 1), "{info}");
    assert!(reopened(&folder).0 == texts);
}
