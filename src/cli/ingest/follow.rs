//! `tadoc ingest --follow`: appends a file that grows, or a pipe, in commits of some age or size.
//!
//! ```text
//! file or pipe ─▶ waiting text ─▶ complete lines ─▶ part ─▶ commit with a bookmark
//!      ▲                                                          │
//!      └──────────────── after a restart: the place ◀─────────────┘
//!
//! line 1\nline 2\n line 3\n line 4
//! └── complete lines ─────┘ └ waits for its line end
//! └── complete records ┘      with --record-start: the last record may go on
//! ```
//!
//! A commit holds the place up to which the file, and those rotated from it, were read, so each line is
//! stored once, also after `kill -9`. A file without a place gets one while its first lines wait, so that a
//! restart finds it if it was renamed meanwhile. Lines of a file come in order; a late line of a file that
//! was rotated comes when it is seen. Two processes that follow the same file cannot both commit: the
//! bookmark of the second is not the one that it has seen. A pipe has no places: what was read and not
//! committed is lost by `kill -9`. The last record goes on until the next one begins, or the text was quiet
//! for the age of a commit and as long again. Memory is that of the waiting text and of one ingest.

mod growing;
#[cfg(all(test, unix))]
mod model_tests;
mod place;

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::Args;
use memchr::{memchr_iter, memrchr};
use regex::bytes::Regex;
use tadoc_documents::{Documents, Input, Source, display};
use tadoc_session::{Failure, Outcome, interrupt, note};
use tadoc_store::{Bookmark, Change, CommitKind, Version};

use self::growing::GrowingFile;
use self::place::Place;
use super::append::{Appending, Moved, Shapes, add};
use super::job::Job;
use crate::inputs::{STDIN_PATH, path_of};
use crate::living::Living;
use crate::taken::TakenPaths;

/// Time between two looks at a file that does not grow.
const LOOK: Duration = Duration::from_millis(100);

/// Options for sources that grow.
#[derive(Debug, Clone, Args)]
pub struct Follow {
    /// With --append: add what is written to FILE or the pipe from now on, too, until Ctrl-C or the end of
    /// the pipe
    ///
    /// A file that is rotated or truncated is read to its end, then the new one from its start, and late lines
    /// of a file that was renamed when they are seen. A commit stores the place up to which the file was
    /// read: the next --follow goes on there, and no line is stored twice. A last line without a line end
    /// waits for it, a minute if the file was renamed, and with --record-start the last record waits for the next
    /// one, or until nothing came for twice --commit-every. The file is not decompressed.
    #[arg(long, requires = "append")]
    follow: bool,

    /// With --follow: commit lines that are this old, such as 30s or 5m
    #[arg(long, requires = "follow", default_value = "10s", value_name = "AGE",
          value_parser = display::parse_age)]
    commit_every: Duration,

    /// With --follow: commit as soon as this much text waits; it is held in memory
    #[arg(long, requires = "follow", default_value = "8MiB", value_name = "SIZE",
          value_parser = display::parse_size)]
    commit_bytes: u64,
}

impl Follow {
    /// Returns true if the source is followed.
    pub fn is_asked(&self) -> bool {
        self.follow
    }
}

/// Result of a look at a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Bytes.
    Read,
    /// Nothing now.
    Quiet,
    /// Another file comes first. What is not complete is read again later.
    Aside,
    /// The end of a file that was rotated or truncated. Another file follows.
    Ended,
    /// The end of the pipe.
    Closed,
}

/// A source that is followed.
enum Grown {
    /// A file, and the name of its bookmark.
    File(Box<GrowingFile>, String),
    /// A pipe, and the number of its lines that were taken.
    Pipe(Pipe, u64),
}

impl Grown {
    /// Opens the file or pipe `path`, or standard input. `latest` has the bookmark of the file `named`.
    fn open(path: &Path, named: Option<&str>, latest: &Version) -> Outcome<Self> {
        if path.as_os_str() == "-" {
            return Ok(Self::Pipe(Pipe::open(None, "standard input".to_owned()), 0));
        }
        let shown = display::path(path);
        let source = match named {
            Some(name) => name.to_owned(),
            None => path_of(&std::path::absolute(path)?),
        };
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(metadata) if metadata.is_dir() => {
                return Err(Failure::usage(format!(
                    "{shown} is a folder; --follow takes one file, or - for standard input"
                )));
            }
            Ok(_) => return Ok(Self::Pipe(Pipe::open(Some(path.to_owned()), shown), 0)),
            // A rotation may have renamed the file, and not made the next one yet.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if latest.bookmark(&source).is_none() && !place::has_rotated(path) {
                    return Err(Failure::with_cause(&shown, &error));
                }
                note(format!("note: {shown}: waiting for the file"));
            }
            Err(error) => return Err(Failure::with_cause(&shown, &error)),
        }
        let place = latest.bookmark(&source).map(|place| {
            place
                .parse::<Place>()
                .map_err(|()| Failure::new(format!("{source}: {place} is no place in a file; choose another --path")))
        });
        let (file, is_found) = GrowingFile::open(path, place.transpose()?)?;
        if !is_found {
            note(format!(
                "note: {shown}: the file that was read up to now is gone, perhaps with lines that were not read; \
                 going on with the next one"
            ));
        }
        Ok(Self::File(Box::new(file), source))
    }

    fn read(&mut self, text: &mut Vec<u8>) -> Outcome<Step> {
        match self {
            Self::Pipe(pipe, _) => pipe.read(text, LOOK),
            Self::File(file, _) => {
                let step = file.read(text)?;
                file.take_notes().into_iter().for_each(note);
                if !matches!(step, Step::Read | Step::Aside) {
                    sleep(LOOK);
                }
                Ok(step)
            }
        }
    }

    /// Returns the place of its bookmark in `latest`.
    fn place(&self, latest: &Version) -> Option<String> {
        match self {
            Self::Pipe(..) => None,
            Self::File(_, source) => latest.bookmark(source).map(str::to_owned),
        }
    }

    /// Returns the number of lines that were taken, of this file or of the pipe since its start.
    fn lines_taken(&self) -> u64 {
        match self {
            Self::Pipe(_, lines) => *lines,
            Self::File(file, _) => file.lines_taken(),
        }
    }

    /// Takes bytes that were read, and returns the bookmark behind them.
    fn take(&mut self, bytes: &[u8]) -> Option<Bookmark> {
        match self {
            Self::Pipe(_, lines) => *lines += num_lines(bytes),
            Self::File(file, _) => {
                file.take(bytes);
            }
        }
        self.bookmark()
    }

    /// Returns the bookmark behind the bytes that were taken.
    fn bookmark(&self) -> Option<Bookmark> {
        match self {
            Self::Pipe(..) => None,
            Self::File(file, source) => Some(Bookmark { source: source.clone(), place: file.place().to_string() }),
        }
    }
}

/// The corpus that takes what a source gives.
struct Appender<'a> {
    living: &'a Living,
    job: Job,
    /// Path of the documents.
    path: String,
    /// Version that the next commit is tried on.
    latest: Version,
    /// Place of the bookmark that the last commit has stored.
    place: Option<String>,
    recompress_ratio: f64,
    shapes: Shapes,
    quiet: bool,
}

impl Appender<'_> {
    /// Commits the documents in `text`. `lines_before` are before it, `bookmark` is behind it.
    fn commit(&mut self, text: Vec<u8>, lines_before: u64, bookmark: Option<Bookmark>) -> Outcome {
        let len_bytes = text.len() as u64;
        let source = Source::Text { bytes: Bytes::from(text), lines_before };
        let input = Input::new(source, self.path.clone(), len_bytes);
        let living = self.living;
        let job = self.job.clone();
        let ingest = job.options;
        let place = bookmark.as_ref().map(|bookmark| bookmark.place.clone());
        let moved = bookmark.map(|after| Moved { before: self.place.clone(), after });
        let added = add(living, job, vec![input], &self.latest, &mut self.shapes, moved)?;
        let Some((version, done)) = added else { return Ok(()) };
        self.place = place;
        let name = living.store.location();
        self.say(done.sizes(&format!("{name}: version {}", version.number)));
        if let Some(done) = living.recompress(&version, self.recompress_ratio, ingest) {
            self.say(done);
        }
        self.latest = living.version(None)?;
        Ok(())
    }

    /// Commits `bookmark` alone.
    fn mark(&mut self, bookmark: Option<Bookmark>) -> Outcome {
        let Some(after) = bookmark else { return Ok(()) };
        let place = after.place.clone();
        let change = Change::append(CommitKind::Append, &[]).with_bookmark(None, after);
        self.latest = self.living.wait(self.living.store.commit(&self.latest, &change))?;
        self.place = Some(place);
        Ok(())
    }

    fn say(&self, text: String) {
        if !self.quiet {
            note(text);
        }
    }
}

/// Returns the number of line ends in `bytes`.
fn num_lines(bytes: &[u8]) -> u64 {
    memchr_iter(b'\n', bytes).count() as u64
}

/// Refuses a file without a place if the corpus has lines of its path: they came in another way, and would be
/// stored twice.
fn check_untaken(
    living: &Living,
    how: &Appending<'_>,
    latest: &Version,
    job: &Job,
    path: &str,
    file: Option<&str>,
) -> Outcome {
    if latest.num_doc_ids() == 0 {
        return Ok(());
    }
    let taken = TakenPaths::read(living, how.location, latest, &job.division.documents, &HashSet::new())?;
    let is_there = taken.has(path) || file.is_some_and(|file| taken.find_file(file).is_some());
    if !is_there {
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: lines of {} are there already, and no place up to which the file was read; nothing was added: --path \
         NAME stores them under another path, and --duplicate reads the file from its start",
        living.store.location(),
        display::plain(path)
    )))
}

/// Follows the source `path`. Its documents have the path `name`.
pub fn follow(
    mut job: Job,
    living: &Living,
    path: &Path,
    name: Option<&str>,
    options: &Follow,
    how: &Appending<'_>,
) -> Outcome {
    check_followable(&job)?;
    let quiet = job.quiet;
    // Lines that are left out may be all that a commit has.
    job.allow_empty = true;
    (job.quiet, job.heeds_interrupts) = (true, false);
    (job.read.decompress, job.archives.is_opened) = (false, false);
    job.options.profile = living.store.profile();
    let latest = living.version(None)?;
    let source = Grown::open(path, name, &latest)?;
    let waiting = Waiting::new(job.division.record_start.clone());
    let commit_bytes = usize::try_from(options.commit_bytes).unwrap_or(usize::MAX);
    let limits = Limits { len_bytes: commit_bytes, age: options.commit_every };
    let max_bytes = job.read.max_row_bytes.saturating_add(options.commit_bytes);
    let real = fs::canonicalize(path).ok();
    let file = real.filter(|_| name.is_none()).map(|real| path_of(&real));
    let path = match (name, path.as_os_str() == "-") {
        (Some(name), _) => name.to_owned(),
        (None, true) => STDIN_PATH.to_owned(),
        (None, false) => path_of(path),
    };
    let place = source.place(&latest);
    if matches!(source, Grown::File(..)) && place.is_none() && !how.may_duplicate {
        check_untaken(living, how, &latest, &job, &path, file.as_deref())?;
    }
    let appender = Appender {
        living,
        job,
        path,
        latest,
        place,
        recompress_ratio: how.recompress_ratio,
        shapes: Shapes::default(),
        quiet,
    };
    let mut following = Following { source, waiting, appender, limits, max_bytes };
    while following.go_on()?.is_continue() {}
    Ok(())
}

/// Checks that the documents of `job` are lines, whose ends are seen without reading all of the text.
fn check_followable(job: &Job) -> Outcome {
    if !matches!(job.division.documents, Documents::Lines | Documents::Jsonl(_)) {
        return Err(Failure::usage(format!(
            "--follow goes with --documents lines and jsonl:FIELD, not with {}",
            job.division.documents
        )));
    }
    if job.read.charset.is_some_and(|charset| !charset.has_plain_lines()) {
        return Err(Failure::usage(
            "--follow goes with character sets whose line ends are one byte; convert others in a pipe, as in \
             iconv -f utf-16 | tadoc ingest -",
        ));
    }
    Ok(())
}

/// A source that is followed.
struct Following<'a> {
    source: Grown,
    waiting: Waiting,
    appender: Appender<'a>,
    limits: Limits,
    /// Greatest length of a text that waits.
    max_bytes: u64,
}

impl Following<'_> {
    /// Reads the source once, and commits what is due. Breaks if nothing more comes, or if a user asked to stop.
    fn go_on(&mut self) -> Outcome<ControlFlow<()>> {
        let before = self.waiting.text.len();
        let step = self.source.read(&mut self.waiting.text)?;
        if step == Step::Read {
            self.waiting.note_read(before);
        }
        let is_asked = interrupt::is_asked();
        match self.take(step, is_asked) {
            Some(text) => {
                let lines_before = self.source.lines_taken();
                let bookmark = self.source.take(&text);
                self.appender.commit(text, lines_before, bookmark)?;
            }
            None if self.appender.place.is_none() => self.appender.mark(self.source.bookmark())?,
            None => {}
        }
        if is_asked || step == Step::Closed {
            return Ok(ControlFlow::Break(()));
        }
        match (&mut self.source, step) {
            (Grown::File(file, _), Step::Ended) => file.next()?,
            (Grown::File(file, _), Step::Aside) => {
                self.waiting.text.clear();
                file.go_aside()?;
            }
            _ => {}
        }
        self.check_length()?;
        Ok(ControlFlow::Continue(()))
    }

    /// Takes the waiting text that is due behind `step`, or the last one if a user asked to stop.
    fn take(&mut self, step: Step, is_asked: bool) -> Option<Vec<u8>> {
        let is_file = matches!(self.source, Grown::File(..));
        match step {
            Step::Ended | Step::Closed => self.waiting.take_all(),
            Step::Aside => self.waiting.take_complete(),
            // The rest of the last line of a file is read the next time, that of a pipe never.
            _ if is_asked && is_file => self.waiting.take_lines(),
            _ if is_asked => self.waiting.take_all(),
            _ => self.waiting.take_due(self.limits),
        }
    }

    /// Checks that the waiting text, which is a part of a line, may be held.
    fn check_length(&self) -> Outcome {
        if self.waiting.text.len() as u64 <= self.max_bytes {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{}: line {} is larger than {}; a line that is followed is held in memory as a whole: pass a larger \
             --max-row-size",
            self.appender.path,
            self.source.lines_taken() + 1,
            display::bytes(self.max_bytes)
        )))
    }
}

/// Number of bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// Number of reads that wait for their receiver. A writer that is faster waits.
const WAITING_READS: usize = 4;

/// A pipe that is read.
pub struct Pipe {
    name: String,
    reads: Receiver<io::Result<Vec<u8>>>,
}

impl Pipe {
    /// Starts to read the pipe at `path`, or standard input. Messages call it `name`. A named pipe has to be
    /// waited for until a program opens it.
    pub fn open(path: Option<PathBuf>, name: String) -> Self {
        let (sender, reads) = sync_channel(WAITING_READS);
        // The thread is not joined, as it may wait for bytes that never come.
        thread::spawn(move || match path.map(File::open) {
            None => send(io::stdin(), &sender),
            Some(Ok(file)) => send(file, &sender),
            Some(Err(error)) => {
                let _no_receiver = sender.send(Err(error));
            }
        });
        Self { name, reads }
    }

    /// Appends the next bytes to `text`. Waits for them up to `patience`.
    ///
    /// # Errors
    /// The pipe cannot be read.
    fn read(&self, text: &mut Vec<u8>, patience: Duration) -> Outcome<Step> {
        match self.reads.recv_timeout(patience) {
            Ok(Ok(bytes)) => {
                text.extend_from_slice(&bytes);
                Ok(Step::Read)
            }
            Ok(Err(error)) => Err(Failure::with_cause(format!("{}: cannot read", self.name), &error)),
            Err(RecvTimeoutError::Timeout) => Ok(Step::Quiet),
            Err(RecvTimeoutError::Disconnected) => Ok(Step::Closed),
        }
    }
}

/// Sends what `pipe` has until its end, an error, or the end of the receiver.
fn send(mut pipe: impl Read, reads: &SyncSender<io::Result<Vec<u8>>>) {
    let mut bytes = vec![0; READ_BYTES];
    loop {
        let read = match pipe.read(&mut bytes) {
            Ok(0) => return,
            Ok(len) => Ok(bytes.get(..len).unwrap_or_default().to_vec()),
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_failed = read.is_err();
        if reads.send(read).is_err() || is_failed {
            return;
        }
    }
}

/// The size and the age at which waiting text is committed.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Number of bytes.
    pub len_bytes: usize,
    /// Age of the oldest byte.
    pub age: Duration,
}

/// Text that waits.
#[derive(Debug)]
pub struct Waiting {
    /// Bytes that were read and not taken.
    pub text: Vec<u8>,
    start: Option<Regex>,
    /// Time since which there is text, and time of the last read.
    since: Instant,
    grown: Instant,
}

impl Waiting {
    /// Creates a text without bytes. `start` matches the first line of a record.
    pub fn new(start: Option<Regex>) -> Self {
        let now = Instant::now();
        Self { text: Vec::new(), start, since: now, grown: now }
    }

    /// Notes that bytes were appended to the text, which had `before` bytes.
    pub fn note_read(&mut self, before: usize) {
        self.grown = Instant::now();
        if before == 0 {
            self.since = self.grown;
        }
    }

    /// Takes the complete documents if they are old or large enough.
    pub fn take_due(&mut self, limits: Limits) -> Option<Vec<u8>> {
        let is_large = self.text.len() >= limits.len_bytes;
        if self.text.is_empty() || !(is_large || self.since.elapsed() >= limits.age) {
            return None;
        }
        let is_quiet = self.grown.elapsed() >= limits.age.saturating_mul(2);
        self.take_up_to(self.complete_len(is_quiet))
    }

    /// Takes the complete lines, or none if there are none.
    pub fn take_lines(&mut self) -> Option<Vec<u8>> {
        self.take_up_to(self.complete_len(true))
    }

    /// Takes the complete documents, or none if there are none.
    pub fn take_complete(&mut self) -> Option<Vec<u8>> {
        self.take_up_to(self.complete_len(false))
    }

    /// Takes everything, or none if there is nothing.
    pub fn take_all(&mut self) -> Option<Vec<u8>> {
        self.take_up_to(self.text.len())
    }

    /// Returns the number of bytes of complete lines, without the last record unless it `has_ended`.
    fn complete_len(&self, has_ended: bool) -> usize {
        let lines_end = memrchr(b'\n', &self.text).map_or(0, |end| end + 1);
        let Some(start) = self.start.as_ref().filter(|_| !has_ended) else { return lines_end };
        let mut rest = self.text.get(..lines_end).unwrap_or_default();
        while let Some(lines) = rest.strip_suffix(b"\n") {
            let begin = memrchr(b'\n', lines).map_or(0, |end| end + 1);
            if lines.get(begin..).is_some_and(|line| start.is_match(line)) {
                return begin;
            }
            rest = lines.get(..begin).unwrap_or_default();
        }
        0
    }

    fn take_up_to(&mut self, len: usize) -> Option<Vec<u8>> {
        if len == 0 {
            return None;
        }
        let rest = self.text.split_off(len);
        self.since = Instant::now();
        Some(std::mem::replace(&mut self.text, rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Limits = Limits { len_bytes: 1 << 20, age: Duration::ZERO };

    fn waiting(text: &str, start: Option<&str>) -> Waiting {
        let mut waiting = Waiting::new(start.map(|start| Regex::new(start).unwrap()));
        waiting.text = text.as_bytes().to_vec();
        waiting.note_read(0);
        waiting
    }

    #[test]
    fn incomplete_lines_wait() {
        let mut lines = waiting("one\ntwo\nthr", None);
        assert_eq!(lines.take_due(AT_ONCE).unwrap(), b"one\ntwo\n");
        assert_eq!(lines.take_due(AT_ONCE), None);
        assert_eq!(lines.take_lines(), None);
        assert_eq!(lines.take_all().unwrap(), b"thr");
        assert_eq!(lines.take_all(), None);
    }

    #[test]
    fn text_is_due_by_age_or_size() {
        let mut lines = waiting("one\n", None);
        let age = Duration::from_secs(3600);
        assert_eq!(lines.take_due(Limits { len_bytes: 5, age }), None);
        assert_eq!(lines.take_due(Limits { len_bytes: 4, age }).unwrap(), b"one\n");
    }

    #[test]
    fn the_last_record_waits_until_it_is_quiet() {
        let text = "A\n b\nA\n c\n";
        let age = Duration::from_secs(3600);
        let mut records = waiting(text, Some("^A"));
        assert_eq!(records.take_due(Limits { len_bytes: 1, age }).unwrap(), b"A\n b\n");
        assert_eq!(records.take_due(Limits { len_bytes: 1, age }), None);
        assert_eq!(records.take_due(AT_ONCE).unwrap(), b"A\n c\n");
        // It also waits while it is old enough for a commit and its lines come slowly.
        let age = Duration::from_secs(60);
        let limits = Limits { len_bytes: 1 << 20, age };
        let mut slow = waiting(text, Some("^A"));
        let ago = |ages: f64| Instant::now().checked_sub(age.mul_f64(ages)).unwrap();
        (slow.since, slow.grown) = (ago(1.5), ago(1.5));
        assert_eq!(slow.take_due(limits).unwrap(), b"A\n b\n");
        slow.since = ago(1.5);
        assert_eq!(slow.take_due(limits), None);
        slow.grown = ago(2.0);
        assert_eq!(slow.take_due(limits).unwrap(), b"A\n c\n");
        assert_eq!(waiting(" b\n c\n", Some("^A")).take_lines().unwrap(), b" b\n c\n");
    }
}
