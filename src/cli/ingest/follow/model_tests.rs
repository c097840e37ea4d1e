//! Tests of followed files against a model: each line that was written is stored once.
//!
//! A run writes lines, rotates by renaming or by copying and truncating, sets times, removes and packs old
//! files, writes late lines to renamed ones, and stops and kills the follower, in a random order. Files may
//! begin with the same bytes.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use testkit::random::Random;

use super::Step;
use super::growing::GrowingFile;
use super::place::Place;

const NUM_RUNS: u64 = 250;
const NUM_STEPS: usize = 40;
/// Looks without a byte after which a follower has seen everything.
const NUM_QUIET: usize = 3;

/// A corpus that takes lines, and the place of its last commit.
#[derive(Default)]
struct Corpus {
    lines: Vec<String>,
    place: Option<String>,
}

/// A process that follows a log.
struct Follower {
    file: GrowingFile,
    text: Vec<u8>,
    is_found: bool,
}

impl Follower {
    fn start(log: &Log, corpus: &Corpus) -> Self {
        let place = corpus.place.as_ref().map(|place| place.parse::<Place>().unwrap());
        let (file, is_found) = GrowingFile::try_open(&log.path(), place, Duration::ZERO).unwrap();
        Self { file, text: Vec::new(), is_found }
    }

    /// Commits `len` bytes.
    fn commit(&mut self, len: usize, corpus: &mut Corpus) {
        let rest = self.text.split_off(len);
        self.file.take(&self.text);
        let text = String::from_utf8(std::mem::replace(&mut self.text, rest)).unwrap();
        corpus.lines.extend(text.lines().map(str::to_owned));
        corpus.place = Some(self.file.place().to_string());
    }

    fn complete_len(&self) -> usize {
        self.text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1)
    }

    /// Reads once, and commits as the follower does.
    fn step(&mut self, corpus: &mut Corpus) -> Step {
        let step = self.file.read(&mut self.text).unwrap();
        match step {
            Step::Aside => {
                self.commit(self.complete_len(), corpus);
                self.text.clear();
                self.file.go_aside().unwrap();
            }
            Step::Ended => {
                self.commit(self.text.len(), corpus);
                self.file.next().unwrap();
            }
            Step::Quiet => self.commit(self.complete_len(), corpus),
            Step::Read | Step::Closed => {}
        }
        step
    }

    /// Reads everything that is there.
    fn settle(&mut self, corpus: &mut Corpus) {
        let mut num_quiet = 0;
        for _ in 0..1000 {
            num_quiet = if self.step(corpus) == Step::Quiet { num_quiet + 1 } else { 0 };
            if num_quiet == NUM_QUIET {
                return;
            }
        }
        panic!("the follower never rests");
    }
}

/// A log, and what was written to it.
struct Log {
    folder: tempfile::TempDir,
    lines: Vec<String>,
    /// Files that were renamed, and are still open for their writers.
    renamed: Vec<File>,
    banner: String,
}

impl Log {
    fn new(banner: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (lines, renamed) = Default::default();
        Self { folder, lines, renamed, banner: banner.to_owned() }
    }

    fn named(&self, end: &str) -> PathBuf {
        self.folder.path().join(format!("app.log{end}"))
    }

    fn path(&self) -> PathBuf {
        self.named("")
    }

    fn writer(&self) -> File {
        File::options().create(true).append(true).open(self.path()).unwrap()
    }

    fn write_to(&mut self, mut file: &File, line: &str) {
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
        self.lines.push(line.to_owned());
    }

    fn write(&mut self, line: &str) {
        let file = self.writer();
        if file.metadata().unwrap().len() == 0 && !self.banner.is_empty() {
            let banner = self.banner.clone();
            self.write_to(&file, &banner);
        }
        self.write_to(&file, line);
    }

    /// Renames `app.log.1` to `app.log.2`, and so on.
    fn shift(&self) {
        for number in (1..20).rev() {
            let from = self.named(&format!(".{number}"));
            if from.exists() {
                fs::rename(from, self.named(&format!(".{}", number + 1))).unwrap();
            }
        }
    }

    fn rename(&mut self) {
        if self.path().exists() {
            let file = self.writer();
            self.renamed.push(file);
            self.shift();
            fs::rename(self.path(), self.named(".1")).unwrap();
        }
    }

    fn copy(&mut self) {
        self.shift();
        fs::copy(self.path(), self.named(".1")).unwrap();
    }

    fn truncate(&mut self) {
        File::create(self.path()).unwrap();
    }

    /// Returns the rotated files, the newest first.
    fn rotated(&self) -> Vec<PathBuf> {
        let names = (1..22).map(|number| self.named(&format!(".{number}")));
        names.filter(|name| name.exists()).collect()
    }

    /// Moves the oldest rotated file to another folder.
    fn move_oldest(&self, number: usize) {
        let old = self.folder.path().join("old");
        fs::create_dir_all(&old).unwrap();
        // Nothing tells an empty file from another one with its inode.
        let is_empty = |file: &PathBuf| fs::metadata(file).unwrap().len() == 0;
        if let Some(oldest) = self.rotated().pop().filter(|oldest| !is_empty(oldest)) {
            fs::rename(oldest, old.join(format!("{number}"))).unwrap();
        }
    }

    /// Gives the files times in any order, or one for all.
    fn set_times(&self, random: &mut Random) {
        let now = SystemTime::now();
        for name in self.rotated().into_iter().chain([self.path()]).filter(|name| name.exists()) {
            let age = Duration::from_secs(random.below(4) as u64 * 3600);
            File::options().append(true).open(name).unwrap().set_modified(now - age).unwrap();
        }
    }
}

fn counted(lines: &[String]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    lines.iter().for_each(|line| *counts.entry(line.as_str()).or_default() += 1);
    counts
}

fn run(seed: u64) {
    let mut random = Random(seed);
    let banner = random.pick(&["", "short", &"#".repeat(1100), &"#".repeat(6000)]).to_string();
    let mut log = Log::new(&banner);
    let mut corpus = Corpus::default();
    log.write("first");
    let mut follower = Some(Follower::start(&log, &corpus));
    // The place is stored before anything happens to the file.
    follower.as_mut().unwrap().commit(0, &mut corpus);
    let mut steps = String::new();
    for step in 0..NUM_STEPS {
        let action = random.below(15);
        steps += &format!("{action} ");
        match action {
            0..4 => {
                for number in 0..1 + random.below(3) {
                    let line = format!("line {step} {number} {}", "x".repeat(random.below(300)));
                    log.write(&line);
                }
            }
            4 => log.rename(),
            5 => {
                log.rename();
                log.write(&format!("start {step}"));
            }
            // Of a file that was truncated twice between two looks, nothing remains to know it by.
            6 => {
                if let Some(follower) = &mut follower {
                    follower.settle(&mut corpus);
                    let is_new = fs::metadata(log.path()).map_or(true, |metadata| metadata.len() == 0);
                    log.write(&format!("before {step}"));
                    // A copy of a file of which nothing was read may be a new file.
                    if is_new {
                        follower.settle(&mut corpus);
                    }
                    log.copy();
                    // A copy that is small and not whole cannot be told from a new file.
                    let is_longer = log.banner.len() > 5000 && random.one_in(3);
                    if is_longer {
                        log.write(&format!("between {step}"));
                        follower.settle(&mut corpus);
                    }
                    for _ in 0..random.below(3) {
                        follower.step(&mut corpus);
                    }
                    log.truncate();
                    // After a restart such a copy is shorter than what was read, and may be a new file.
                    if is_longer {
                        follower.settle(&mut corpus);
                    }
                    if random.one_in(2) {
                        log.write(&format!("after {step}"));
                    }
                }
            }
            7 => log.set_times(&mut random),
            8 => {
                // The oldest file vanishes, or is packed, once it was read.
                if let Some(follower) = &mut follower {
                    follower.settle(&mut corpus);
                    if let Some(oldest) = log.rotated().pop() {
                        fs::rename(&oldest, oldest.with_extension("gz")).unwrap();
                        fs::remove_file(oldest.with_extension("gz")).unwrap();
                        log.renamed.clear();
                    }
                }
            }
            9 | 10 if !log.renamed.is_empty() => {
                let at = random.below(log.renamed.len());
                let late = log.renamed.swap_remove(at);
                log.write_to(&late, &format!("late {step}"));
                log.renamed.push(late);
            }
            // The oldest file is moved to another folder, once it was seen.
            13 => {
                if let Some(follower) = &mut follower {
                    follower.settle(&mut corpus);
                    log.move_oldest(step);
                }
            }
            11 => follower = None,
            12 => {
                for _ in 0..random.below(4) {
                    follower.as_mut().map(|follower| follower.step(&mut corpus));
                }
            }
            _ => {
                let follower = follower.get_or_insert_with(|| Follower::start(&log, &corpus));
                follower.settle(&mut corpus);
            }
        }
        if follower.is_none() && random.one_in(3) {
            follower = Some(Follower::start(&log, &corpus));
        }
    }
    drop(follower);
    let mut last = Follower::start(&log, &corpus);
    last.settle(&mut corpus);
    let stored = counted(&corpus.lines);
    let written = counted(&log.lines);
    let lines = stored.keys().chain(written.keys());
    let wrong: Vec<String> = lines
        .filter(|line| stored.get(*line) != written.get(*line))
        .map(|line| format!("{:.20}: {:?} of {:?}", line, stored.get(line), written.get(line)))
        .collect();
    assert!(wrong.is_empty(), "seed {seed}: {steps}: {wrong:?}");
}

#[test]
fn each_line_is_stored_once() {
    (0..NUM_RUNS).for_each(run);
}

/// Follows the log from where `corpus` is, and returns the lines that were added.
fn added(log: &Log, corpus: &mut Corpus) -> Vec<String> {
    let before = corpus.lines.len();
    Follower::start(log, corpus).settle(corpus);
    corpus.lines[before..].to_vec()
}

#[test]
fn files_are_known_by_their_bytes_and_not_by_their_times() {
    let start = |banner: &str| {
        let mut log = Log::new(banner);
        let mut corpus = Corpus::default();
        log.write("one");
        assert!(added(&log, &mut corpus).ends_with(&["one".to_owned()]));
        (log, corpus)
    };
    // Two rotated files with one time, which is that of the log.
    let (mut log, mut corpus) = start("");
    for line in ["one-b", "two", "three"] {
        log.write(line);
        if line != "three" {
            log.rename();
        }
    }
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    for name in log.rotated().into_iter().chain([log.path()]) {
        File::options().append(true).open(name).unwrap().set_modified(time).unwrap();
    }
    assert_eq!(added(&log, &mut corpus), ["one-b", "two", "three"]);

    // The first file is gone, and another one has its inode.
    let (mut log, mut corpus) = start("");
    log.rename();
    fs::remove_file(log.named(".1")).unwrap();
    log.renamed.clear();
    log.write("other");
    log.rename();
    log.write("last");
    assert!(!Follower::start(&log, &corpus).is_found);
    assert_eq!(added(&log, &mut corpus), ["other", "last"]);

    // One file is the beginning of another.
    let (mut log, mut corpus) = start("");
    for lines in [&["started", "ok"][..], &["started", "ok", "three"]] {
        log.rename();
        lines.iter().for_each(|line| log.write(line));
    }
    assert_eq!(added(&log, &mut corpus), ["started", "ok", "started", "ok", "three"]);
}

#[test]
fn a_start_between_the_steps_of_a_rotation_waits() {
    let mut log = Log::new("");
    let mut corpus = Corpus::default();
    log.write("one");
    added(&log, &mut corpus);
    log.write("two");
    log.rename();
    let mut follower = Follower::start(&log, &corpus);
    assert!(follower.is_found);
    follower.settle(&mut corpus);
    assert_eq!(corpus.lines, ["one", "two"]);
    log.write("three");
    follower.settle(&mut corpus);
    assert_eq!(corpus.lines, ["one", "two", "three"]);
    // Files that were there before the first start are not read, but for late lines.
    let mut log = Log::new("");
    let mut corpus = Corpus::default();
    log.write("old");
    log.rename();
    let mut follower = Follower::start(&log, &corpus);
    log.write("new");
    follower.settle(&mut corpus);
    drop(follower);
    let old = log.renamed.pop().unwrap();
    log.write_to(&old, "late");
    assert_eq!(added(&log, &mut corpus), ["late"]);
    assert_eq!(corpus.lines, ["new", "late"]);
}

#[test]
fn a_copy_that_cannot_be_told_from_a_new_file_is_read_and_said() {
    let mut log = Log::new("");
    let mut corpus = Corpus::default();
    log.write("one");
    log.write("two");
    added(&log, &mut corpus);
    log.rename();
    log.write("three");
    fs::copy(log.named(".1"), log.named(".2")).unwrap();
    let mut late = log.renamed.pop().unwrap();
    late.write_all(b"four\n").unwrap();
    let mut follower = Follower::start(&log, &corpus);
    let notes = follower.file.take_notes();
    assert!(notes.len() == 1 && notes[0].contains("8 bytes begins as another one"), "{notes:?}");
    follower.settle(&mut corpus);
    let lines = ["one", "two", "four", "one", "two", "three"].map(str::to_owned);
    assert_eq!(counted(&corpus.lines[2..]), counted(&lines[2..]));
}

/// A file that was moved to another folder is known by its inode, and others there are not read.
#[test]
fn a_file_in_another_folder_is_read_on() {
    for is_restarted in [false, true] {
        let mut log = Log::new("");
        let mut corpus = Corpus::default();
        fs::create_dir(log.folder.path().join("below")).unwrap();
        log.write("one");
        let mut follower = Some(Follower::start(&log, &corpus));
        follower.as_mut().unwrap().settle(&mut corpus);
        if is_restarted {
            follower = None;
        }
        log.write("two");
        let writer = log.writer();
        fs::rename(log.path(), log.folder.path().join("below/app.log.1")).unwrap();
        fs::write(log.folder.path().join("below/app.log.2"), "other\n").unwrap();
        log.write("three");
        log.write_to(&writer, "late");
        let mut follower = follower.unwrap_or_else(|| Follower::start(&log, &corpus));
        assert!(follower.is_found);
        follower.settle(&mut corpus);
        assert_eq!(corpus.lines, ["one", "two", "late", "three"]);
        log.write_to(&writer, "later");
        drop(follower);
        assert_eq!(added(&log, &mut corpus), ["later"]);
    }
}

/// A log that is truncated and gets the same lines again is read again, which is said.
#[test]
fn the_same_bytes_written_again_are_read_again() {
    let again = |log: &mut Log, has_copy: bool| {
        // The clock of the file system moves on in steps.
        std::thread::sleep(Duration::from_millis(20));
        if has_copy {
            log.copy();
        }
        log.truncate();
        log.write("one");
        log.write("two");
    };
    for (has_copy, is_restarted) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut log = Log::new("");
        let mut corpus = Corpus::default();
        log.write("one");
        log.write("two");
        let mut follower = Follower::start(&log, &corpus);
        follower.settle(&mut corpus);
        for _ in 0..2 {
            again(&mut log, has_copy);
            if is_restarted {
                follower = Follower::start(&log, &corpus);
            }
            follower.settle(&mut corpus);
            let notes = follower.file.take_notes();
            let is_said = notes.iter().any(|note| note.contains("the same bytes as before"));
            assert!(is_said, "{has_copy} {is_restarted}: {notes:?}");
        }
        assert_eq!(corpus.lines, log.lines, "{has_copy} {is_restarted}");
        // A time that is set is no write, and neither is a name.
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        log.writer().set_modified(time).unwrap();
        follower.settle(&mut corpus);
        assert!(added(&log, &mut corpus).is_empty());
        log.write("three");
        assert_eq!(added(&log, &mut corpus), ["three"]);
    }
}

#[test]
fn places_of_early_builds_go_on() {
    let mut log = Log::new("");
    let mut corpus = Corpus::default();
    log.write("one");
    let place = {
        use std::os::unix::fs::MetadataExt;
        let metadata = fs::metadata(log.path()).unwrap();
        let checksum = crc32c::crc32c(b"one\n");
        let changed = metadata.mtime() as u64 * 1_000_000_000 + metadata.mtime_nsec() as u64;
        let device = metadata.dev();
        let inode = metadata.ino();
        format!("4 {device} {inode} {checksum} {checksum} 1 {changed}")
    };
    std::thread::sleep(Duration::from_millis(20));
    fs::write(log.named(".7"), "older\n").unwrap();
    let old = SystemTime::now() - Duration::from_secs(60);
    File::options().append(true).open(log.named(".7")).unwrap().set_modified(old).unwrap();
    log.write("one-b");
    log.rename();
    log.write("two");
    log.rename();
    log.write("three");
    corpus.place = Some(place);
    assert_eq!(added(&log, &mut corpus), ["one-b", "two", "three"]);
    assert!(corpus.place.is_some_and(|place| place.starts_with("2;")));
}
