//! A file that grows, is rotated and is truncated, and the files that were rotated from it.
//!
//! ```text
//! app.log   ████████░░░░           ░ appended since: read on
//!                   │
//!                 place: device, inode, offset, checksums of what was read
//!                   │
//! app.log.2 ████████░░             known: a late line is read wherever the file is named now
//! app.log.1 ░░░░                   unknown: read from its start, older ones first
//! app.log   ░░                     then the log
//! ```
//!
//! Each file is known by its inode and by the bytes before its offset, never by its time: times only tell the
//! order in which unknown files are read. Files that were there before the log was followed are known to
//! their ends. What happens to a file tells what is read next:
//!
//! - *renamed*: it is read on. It stays open until nothing came for [`WATCH`], so a late line is seen at once, and
//!   later at every look around: after each rotation, every [`LOOK_AROUND`], and at the start, also if it was moved to
//!   a folder nearby. If another file has the name of the log, the first one has ended when it did not grow for
//!   [`GRACE`]. Its last line, if that has no end yet, waits for the rest for [`PATIENCE`] times as long, while the log
//!   is read.
//! - *truncated*: a copy of it that begins with what was read is read on from the same place. Then comes the
//!   file from its start. A copy that was made before the last lines were read is not read again.
//! - *written again*: a log of at most 1 MiB that has the same bytes as before, and was written to since,
//!   is taken for one that was truncated. A note says so, as it may have been touched alone. If more bytes
//!   follow the same ones before the next look, nothing tells them from bytes that were appended.
//! - *copied*: a copy of a log that is still whole is left out, until the log is truncated.
//! - *gone*: it is kept for [`KEEP`], as it may come back under another inode.
//!
//! If a file may be a copy of what was read or a new file with the same bytes, it is read, and a note says so:
//! files of at most [`SMALL`] bytes that begin as one that is known. Such a line may be stored twice.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, UNIX_EPOCH};

use tadoc_documents::display;
use tadoc_session::{Failure, Outcome};

use super::Step;
use super::place::{self, FileId, FilePlace, Known, Listed, Mark, Place, checksum};

/// Time without new bytes after which a file that was renamed has ended.
const GRACE: Duration = Duration::from_secs(1);
/// Longest time for which a file that was renamed and still grows comes before the log.
const MAX_GRACE: Duration = Duration::from_secs(5);
/// Time for which a last line without an end waits for the rest in a file that was renamed, in times of
/// [`GRACE`].
const PATIENCE: u32 = 60;
/// Time without new bytes for which a file that was renamed stays open.
const WATCH: Duration = Duration::from_secs(600);
/// Time between two looks for files that were rotated, in times of [`GRACE`].
const LOOK_AROUND: u32 = 5;
/// Time between two looks at other files while the log grows.
const LOOK_ASIDE: Duration = Duration::from_secs(1);
/// Time for which a file that is gone is kept in the place, and most files in it.
const KEEP: Duration = Duration::from_secs(3600);
const MAX_FILES: usize = 128;
/// Bytes up to which a file may have those of another one by chance.
const SMALL: u64 = 4 << 10;
/// Number of bytes that are read at once.
const READ_BYTES: u64 = 256 << 10;
/// Number of reads whose ends are kept, to know copies that end there.
const MAX_CHECKPOINTS: usize = 4096;

/// A log that grows.
pub struct GrowingFile {
    path: PathBuf,
    /// The file that is read. It is none while no file has the name, and none was rotated.
    current: Option<Known>,
    others: Vec<Known>,
    /// True if the current file is not the one that was followed last, so that it need not grow.
    is_aside: bool,
    /// True if the current file has the same bytes again, which have to be read.
    is_same_again: bool,
    /// Files that are copies of a known one which is still whole, with their lengths.
    copies: Vec<(FileId, u64)>,
    /// Ends of the reads of the current file, and checksums of the bytes before them.
    checkpoints: VecDeque<(u64, u32)>,
    /// Time since which another file has the name, and the current one did not grow.
    ended: Option<Instant>,
    /// Time since which another file has the name.
    renamed: Option<Instant>,
    looked_around: Instant,
    looked_aside: Instant,
    grace: Duration,
    /// Texts for the user that were not told yet.
    notes: Vec<String>,
}

impl GrowingFile {
    /// Opens the log `path` behind `place`. Returns it, and false if no file has this place any more.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path, place: Option<Place>) -> Outcome<(Self, bool)> {
        Self::try_open(path, place, GRACE).map_err(|error| failed(path, &error))
    }

    pub(super) fn try_open(path: &Path, place: Option<Place>, grace: Duration) -> io::Result<(Self, bool)> {
        let now = Instant::now();
        let mut growing = Self {
            path: path.to_owned(),
            current: None,
            others: Vec::new(),
            is_aside: false,
            is_same_again: false,
            copies: Vec::new(),
            checkpoints: VecDeque::new(),
            ended: None,
            renamed: None,
            looked_around: now,
            looked_aside: now,
            grace,
            notes: Vec::new(),
        };
        let Some(place) = place else {
            growing.know_others(None)?;
            growing.go_on()?;
            return Ok((growing, true));
        };
        if let Some(changed) = place.changed {
            growing.know_others(Some((changed, place.current)))?;
        }
        let current = place.current;
        let others = place.others.into_iter();
        growing.others.extend(current.into_iter().chain(others).map(Known::from_place));
        if let (Some(current), Some(known)) = (current, growing.others.first_mut()) {
            known.written = place.written.map(|written| (current.offset, written));
        }
        growing.go_on()?;
        let is_found = current.is_none_or(|current| {
            let all = growing.current.iter().chain(&growing.others);
            let mut there = all.filter(|known| known.missing.is_none());
            there.any(|known| {
                let is_same = known.id == current.file && known.place().offset == current.offset;
                is_same || current.offset > 0 && known.place().has_bytes_of(&current)
            })
        });
        Ok((growing, is_found))
    }

    /// Makes the files beside the log known to their ends. `since` are the time and the file of a place of an
    /// early build: files that were changed later are read.
    fn know_others(&mut self, since: Option<(u64, Option<FilePlace>)>) -> io::Result<()> {
        for listed in place::list(&self.path)? {
            let is_later = since.is_some_and(|(changed, current)| {
                let is_current = current.is_some_and(|current| current.file == listed.id);
                let changed = UNIX_EPOCH + Duration::from_nanos(changed);
                is_current || listed.changed > changed && changed > UNIX_EPOCH
            });
            if listed.is_log || is_later {
                continue;
            }
            if let Some(mark) = Mark::new(&listed.file, listed.len)? {
                self.others.push(Known::new(listed.id, None, mark));
            }
        }
        Ok(())
    }

    /// Appends the next bytes to `text`, which holds those that were read and not taken. After
    /// [`Step::Aside`], those that are not taken have to be forgotten, and [`go_aside`](Self::go_aside) follows.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, text: &mut Vec<u8>) -> Outcome<Step> {
        let step = self.try_read(text);
        step.map_err(|error| failed(&self.path, &error))
    }

    fn try_read(&mut self, text: &mut Vec<u8>) -> io::Result<Step> {
        let Some(current) = &self.current else {
            self.go_on()?;
            return Ok(Step::Quiet);
        };
        let Some(file) = &current.file else { return Ok(Step::Ended) };
        // It may have been truncated and filled again up to the same length.
        if !current.read.is_in(file)? {
            return self.truncated();
        }
        let metadata = file.metadata()?;
        if metadata.len() == current.read.offset {
            if !current.is_same_again(&metadata) {
                return self.look(text);
            }
            self.note_same_again();
            self.is_same_again = true;
            return self.truncated();
        }
        if !self.is_aside && self.looked_aside.elapsed() >= LOOK_ASIDE {
            self.looked_aside = Instant::now();
            if self.late().is_some() {
                return Ok(Step::Aside);
            }
        }
        let Some(current) = &mut self.current else { return Ok(Step::Quiet) };
        let Some(mut file) = current.file.as_ref() else { return Ok(Step::Ended) };
        let before = text.len();
        file.seek(SeekFrom::Start(current.read.offset))?;
        file.take(READ_BYTES).read_to_end(text)?;
        current.read.advance(text.get(before..).unwrap_or_default());
        let metadata = file.metadata()?;
        current.grown = Instant::now();
        current.note_written(&metadata);
        self.checkpoints.extend(current.read.checkpoint());
        if self.checkpoints.len() > MAX_CHECKPOINTS {
            self.checkpoints.pop_front();
        }
        self.ended = None;
        Ok(Step::Read)
    }

    /// Looks for late lines, and for another file with the name. The current file has no more bytes.
    fn look(&mut self, text: &[u8]) -> io::Result<Step> {
        let is_whole = text.last().is_none_or(|byte| *byte == b'\n');
        if self.is_aside {
            let ended = *self.ended.get_or_insert_with(Instant::now);
            let has_ended = is_whole || ended.elapsed() >= self.grace;
            return Ok(if has_ended { self.step_at_end(is_whole) } else { Step::Quiet });
        }
        if self.late().is_some() {
            return Ok(Step::Aside);
        }
        let id = self.current.as_ref().map(|current| current.id).unwrap_or_default();
        let has_name = match fs::metadata(&self.path) {
            Ok(metadata) => FileId::new(&metadata) == id,
            // Between the two steps of a rotation no file has the name.
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        if has_name {
            (self.ended, self.renamed) = (None, None);
            if self.looked_around.elapsed() >= self.grace * LOOK_AROUND {
                self.look_around()?;
            }
            return Ok(Step::Quiet);
        }
        let ended = *self.ended.get_or_insert_with(Instant::now);
        let renamed = *self.renamed.get_or_insert_with(Instant::now);
        let is_late = is_whole && renamed.elapsed() >= self.grace.max(MAX_GRACE);
        let has_ended = ended.elapsed() >= self.grace || is_late;
        Ok(if has_ended { self.step_at_end(is_whole) } else { Step::Quiet })
    }

    /// Returns the step at the end of a renamed file. A last line that has no end is left for later.
    fn step_at_end(&mut self, is_whole: bool) -> Step {
        let patience = self.patience();
        let mut current = self.current.as_mut();
        let waits = !is_whole && current.as_mut().is_some_and(|file| file.waits_on(patience));
        if waits { Step::Aside } else { Step::Ended }
    }

    fn patience(&self) -> Duration {
        self.grace * PATIENCE
    }

    /// Returns the place of another file that has more bytes, if there is one.
    fn late(&self) -> Option<usize> {
        let patience = self.patience();
        if !self.others.iter().any(|known| known.has_more(patience)) {
            return None;
        }
        let log = fs::metadata(&self.path).ok().map(|metadata| FileId::new(&metadata));
        let is_late = |known: &Known| known.has_more(patience) && log != Some(known.id);
        self.others.iter().position(is_late)
    }

    /// Goes to another file that has more bytes, or to the log. What was read and not taken is read again later.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn go_aside(&mut self) -> Outcome {
        let Some(idx) = self.late() else { return self.next() };
        let next = self.others.remove(idx);
        self.put_back();
        self.enter(next, true);
        Ok(())
    }

    /// Puts the current file to the others.
    fn put_back(&mut self) {
        if let Some(mut current) = self.current.take() {
            current.read = current.taken.clone();
            self.others.push(current);
        }
    }

    fn enter(&mut self, next: Known, is_aside: bool) {
        self.checkpoints.clear();
        self.checkpoints.extend(next.read.checkpoint());
        self.current = Some(next);
        self.is_aside = is_aside;
        (self.ended, self.renamed) = (None, None);
    }

    /// Goes on in a copy of the current file, which was truncated. Without one the file has ended.
    fn truncated(&mut self) -> io::Result<Step> {
        let copies = std::mem::take(&mut self.copies);
        let Some(current) = &mut self.current else { return Ok(Step::Quiet) };
        let place = current.read.place(current.id);
        let known: Vec<FileId> = self.others.iter().map(|other| other.id).collect();
        for listed in place::list(&self.path)? {
            if listed.id == current.id || listed.is_log || known.contains(&listed.id) {
                continue;
            }
            if let Some(mark) = Mark::at(&listed.file, &place)? {
                // Its bytes are those that were read, so what was taken is the same.
                (current.id, current.file, current.read) = (listed.id, Some(listed.file), mark);
                current.written = None;
                self.is_aside = true;
                self.is_same_again = false;
                return Ok(Step::Quiet);
            }
            // A copy that was made before the last bytes were read has none of its own.
            let is_within = |offset: u64| 0 < offset && offset <= listed.len;
            let within = self.checkpoints.iter().rev().find(|(offset, _)| is_within(*offset));
            let is_copy = match within {
                _ if copies.contains(&(listed.id, listed.len)) => true,
                Some((offset, whole)) => checksum(&listed.file, *offset)? == Some(*whole),
                None => false,
            };
            if is_copy && let Some(mark) = Mark::new(&listed.file, listed.len)? {
                self.others.push(Known::new(listed.id, None, mark));
            }
        }
        current.file = None;
        Ok(Step::Ended)
    }

    /// Goes to the next file, after [`Step::Ended`]: one that is not read to its end, or the log. Without
    /// such a file the open one stays.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&mut self) -> Outcome {
        self.go_on().map_err(|error| failed(&self.path, &error))
    }

    fn go_on(&mut self) -> io::Result<()> {
        let last = self.current.as_ref().map(|current| current.id);
        // Its place would be found again.
        if std::mem::take(&mut self.is_same_again) {
            self.current = None;
        }
        self.put_back();
        let log = self.look_around()?;
        let is_log = |known: &Known| log == Some(known.id);
        let patience = self.patience();
        let mut others = self.others.iter();
        let unread = others.position(|known| !is_log(known) && known.has_more(patience));
        let is_last = |known: &Known| Some(known.id) == last && known.file.is_some();
        let next =
            unread.or_else(|| self.others.iter().position(is_log)).or_else(|| self.others.iter().position(is_last));
        if let Some(next) = next {
            let next = self.others.remove(next);
            self.enter(next, unread.is_some());
        }
        Ok(())
    }

    /// Finds the known files again, and new ones. Returns the file that has the name.
    fn look_around(&mut self) -> io::Result<Option<FileId>> {
        self.looked_around = Instant::now();
        let mut listed = place::list(&self.path)?;
        self.add_moved(&mut listed)?;
        let log = listed.iter().find(|listed| listed.is_log).map(|log| log.id);
        let is_listed = |id: FileId| listed.iter().any(|listed| listed.id == id);
        let current = self.current.as_ref().map(|current| current.id);
        let patience = self.patience();
        for known in &mut self.others {
            let is_there = known.file.is_some() || is_listed(known.id);
            known.missing = if is_there { None } else { known.missing.or_else(|| Some(Instant::now())) };
        }
        let mut unknown = Vec::new();
        let mut truncated = Vec::new();
        let mut is_same_again = false;
        for mut listed in listed {
            if current == Some(listed.id) || unknown.iter().any(|other: &Listed| other.id == listed.id) {
                continue;
            }
            let Some(idx) = self.others.iter().position(|known| known.id == listed.id) else {
                unknown.push(listed);
                continue;
            };
            let Some(known) = self.others.get_mut(idx) else { continue };
            if known.file.is_none() && known.place().offset == 0 {
                // Nothing tells it from another file with its inode.
                self.others.remove(idx);
                listed.is_rotated = !listed.is_log;
                unknown.push(listed);
                continue;
            }
            let is_known = known.is_in(&listed.file)?;
            if is_known && listed.is_log && known.is_same_again(&listed.file.metadata()?) {
                is_same_again = true;
                truncated.push(self.others.remove(idx));
                unknown.push(listed);
            } else if !is_known {
                truncated.push(self.others.remove(idx));
                unknown.push(listed);
            } else if listed.len > known.seen(patience) {
                known.file.get_or_insert(listed.file);
                known.grown = Instant::now();
            } else if listed.is_log || known.grown.elapsed() < WATCH {
                known.file.get_or_insert(listed.file);
            }
        }
        if is_same_again {
            self.note_same_again();
        }
        if !truncated.is_empty() {
            self.copies.clear();
        }
        for listed in unknown {
            self.meet(listed, &mut truncated)?;
        }
        self.forget(log);
        Ok(log)
    }

    /// Adds known files that were moved to another folder.
    fn add_moved(&mut self, listed: &mut Vec<Listed>) -> io::Result<()> {
        let is_listed = |id: FileId| listed.iter().any(|listed| listed.id == id);
        let is_gone = |known: &&Known| known.file.is_none() && known.place().offset > 0 && !is_listed(known.id);
        let gone: Vec<FileId> = self.others.iter().filter(is_gone).map(|known| known.id).collect();
        if gone.is_empty() {
            return Ok(());
        }
        for moved in place::find_moved(&self.path, &gone) {
            let known = self.others.iter_mut().find(|known| known.id == moved.id);
            if let Some(known) = known
                && known.is_in(&moved.file)?
            {
                listed.insert(0, moved);
            }
        }
        Ok(())
    }

    /// Takes up a file that is not known.
    fn meet(&mut self, listed: Listed, truncated: &mut Vec<Known>) -> io::Result<()> {
        let Listed { file, id, len, .. } = listed;
        if !listed.is_log {
            // A copy of a file that was truncated or is gone goes on behind what was read.
            for idx in 0..truncated.len() {
                if truncated[idx].place().offset > 0
                    && let Some(mark) = truncated[idx].in_copy(&file)?
                {
                    truncated.remove(idx);
                    self.others.push(Known::new(id, Some(file), mark));
                    return Ok(());
                }
            }
            for known in &mut self.others {
                let is_gone = known.missing.is_some() && known.place().offset > SMALL;
                if is_gone && let Some(mark) = known.in_copy(&file)? {
                    *known = Known::new(id, Some(file), mark);
                    return Ok(());
                }
            }
        }
        if !(listed.is_log || listed.is_rotated) {
            return Ok(());
        }
        if listed.is_rotated && len > 0 {
            if self.copies.contains(&(id, len)) {
                return Ok(());
            }
            if self.is_copy(&file, len)? {
                self.copies.push((id, len));
                return Ok(());
            }
            self.note_short_copy(&file, len, truncated)?;
        }
        self.others.push(Known::new(id, Some(file), Mark::start()));
        Ok(())
    }

    /// Returns true if the file is a copy of the beginning of a known one that is still whole. Notes a small
    /// file that may be one.
    fn is_copy(&mut self, file: &File, len: u64) -> io::Result<bool> {
        for known in self.current.iter().chain(&self.others) {
            let Some(other) = &known.file else { continue };
            let other_len = known.len();
            let Some(mark) = Mark::new(file, len)?.filter(|_| len <= other_len) else { continue };
            if !mark.is_in(other)? || checksum(other, len)? != checksum(file, len)? {
                continue;
            }
            let is_unlikely = len > SMALL || len == other_len && self.has_name(known.id);
            if known.taken.offset > 0 && is_unlikely {
                return Ok(true);
            }
            self.note_unclear(len);
            return Ok(false);
        }
        Ok(false)
    }

    /// Notes a file that may be a copy of one that was truncated, from before its last lines were read.
    fn note_short_copy(&mut self, file: &File, len: u64, truncated: &[Known]) -> io::Result<()> {
        let head = |len: u64| Mark::new(file, len.min(SMALL / 4));
        let Some(mark) = head(len)? else { return Ok(()) };
        let is_like = |known: &Known| known.place().offset > len && known.taken.begins_as(&mark);
        if truncated.iter().any(is_like) {
            self.note_unclear(len);
        }
        Ok(())
    }

    fn note_same_again(&mut self) {
        self.notes.push(format!(
            "note: {}: it was written to and has the same bytes as before; it is read from its start, so lines are \
             stored twice if it was not truncated",
            display::path(&self.path)
        ));
    }

    fn note_unclear(&mut self, len: u64) {
        self.notes.push(format!(
            "note: {}: a rotated file of {len} bytes begins as another one; it is read as a file of its own, so \
             lines are stored twice if it is a copy",
            display::path(&self.path)
        ));
    }

    fn has_name(&self, id: FileId) -> bool {
        fs::metadata(&self.path).is_ok_and(|metadata| FileId::new(&metadata) == id)
    }

    /// Closes files that are quiet, and leaves out those that are gone for long.
    fn forget(&mut self, log: Option<FileId>) {
        let patience = self.patience();
        for known in &mut self.others {
            if log != Some(known.id) && known.grown.elapsed() >= WATCH && !known.has_more(patience) {
                known.file = None;
            }
        }
        let is_kept = |known: &Known| known.missing.is_none_or(|missing| missing.elapsed() < KEEP);
        self.others.retain(is_kept);
        while self.others.len() > MAX_FILES {
            let gone = self.others.iter().position(|known| known.missing.is_some());
            let Some(gone) = gone else { break };
            self.others.remove(gone);
        }
    }

    /// Takes bytes that [`read`](Self::read) has returned, in order.
    pub fn take(&mut self, bytes: &[u8]) {
        if let Some(current) = &mut self.current {
            current.taken.advance(bytes);
        }
    }

    /// Returns the place behind the bytes that were taken.
    pub fn place(&self) -> Place {
        let current = self.current.as_ref().map(Known::place);
        let others = self.others.iter().map(Known::place).collect();
        let written = self.current.as_ref().and_then(Known::written);
        Place { current, others, changed: None, written }
    }

    /// Returns the number of lines of the file that were taken.
    pub fn lines_taken(&self) -> u64 {
        self.current.as_ref().map_or(0, |current| current.taken.lines)
    }

    /// Returns the texts for the user that were not told yet.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::with_cause(format!("{}: cannot read", display::path(path)), error)
}
