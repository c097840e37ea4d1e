//! A file of a log that was read up to a place.

use std::fs::{File, Metadata};
use std::io;
use std::time::{Duration, Instant};

use super::place::{FileId, FilePlace, Mark, changed, is_written};

/// Most bytes of a log that may have been written again with the same bytes.
const MAX_SAME: u64 = 1 << 20;

/// A file that was read up to a place.
pub struct Known {
    pub id: FileId,
    /// The file, as long as it is open.
    pub file: Option<File>,
    /// Mark behind all bytes that were read.
    pub read: Mark,
    /// Mark behind all bytes that were [taken](super::growing::GrowingFile::take).
    pub taken: Mark,
    /// Place from an earlier process that was not compared with the file yet.
    pub unchecked: Option<FilePlace>,
    /// Time of the last read.
    pub grown: Instant,
    /// Length with a last line that waits for its end, and time since which the file has it.
    pub waits: Option<(u64, Instant)>,
    /// Time since which no file with this inode was seen.
    pub missing: Option<Instant>,
    /// Length of the file when it was read to its end, and time at which it was changed last then.
    pub written: Option<(u64, u64)>,
}

impl Known {
    pub fn new(id: FileId, file: Option<File>, mark: Mark) -> Self {
        let grown = Instant::now();
        let taken = mark.clone();
        let (unchecked, waits, missing, written) = (None, None, None, None);
        Self { id, file, taken, read: mark, unchecked, grown, waits, missing, written }
    }

    pub fn from_place(place: FilePlace) -> Self {
        let unchecked = Some(place);
        Self { unchecked, ..Self::new(place.file, None, Mark::default()) }
    }

    pub fn place(&self) -> FilePlace {
        self.unchecked.unwrap_or_else(|| self.taken.place(self.id))
    }

    /// Returns true if `file` begins with what was taken.
    pub fn is_in(&mut self, file: &File) -> io::Result<bool> {
        let Some(place) = self.unchecked else { return self.taken.is_in(file) };
        let Some(mark) = Mark::at(file, &place)? else { return Ok(false) };
        (self.taken, self.read, self.unchecked) = (mark.clone(), mark, None);
        Ok(true)
    }

    /// Returns the mark in a copy of the file, with all bytes compared.
    pub fn in_copy(&self, copy: &File) -> io::Result<Option<Mark>> {
        Mark::at(copy, &self.place())
    }

    pub fn len(&self) -> u64 {
        let metadata = self.file.as_ref().and_then(|file| file.metadata().ok());
        metadata.map_or(0, |metadata| metadata.len())
    }

    /// Returns the time of the last change of the file when all of its bytes were taken.
    pub fn written(&self) -> Option<u64> {
        let known = self.written.filter(|(len, _)| *len == self.place().offset);
        known.map(|(_, written)| written)
    }

    /// Returns true if a file of `metadata`, whose bytes are those that were read, was written again.
    pub fn is_same_again(&self, metadata: &Metadata) -> bool {
        let len = metadata.len();
        let Some((_, written)) = self.written.filter(|(known, _)| *known == len) else {
            return false;
        };
        let is_later = changed(metadata).is_some_and(|changed| changed != written);
        (1..=MAX_SAME).contains(&len) && is_later && is_written(metadata)
    }

    /// Notes the time of the last change of a file that was read to its end.
    pub fn note_written(&mut self, metadata: &Metadata) {
        let is_at_end = metadata.len() == self.read.offset;
        self.written = changed(metadata).filter(|_| is_at_end).map(|time| (metadata.len(), time));
    }

    /// Returns true if an open file has bytes that were not taken, and that do not wait for the end of a line.
    pub fn has_more(&self, patience: Duration) -> bool {
        self.file.is_some() && self.len() > self.seen(patience)
    }

    /// Returns the length up to which the bytes were taken or wait.
    pub fn seen(&self, patience: Duration) -> u64 {
        match self.waits {
            Some((len, since)) if since.elapsed() < patience => len.max(self.taken.offset),
            _ => self.taken.offset,
        }
    }

    /// Lets the last line, which was read and has no end, wait for it. Returns false if it has waited for long.
    pub fn waits_on(&mut self, patience: Duration) -> bool {
        let known = self.waits.filter(|(len, _)| *len == self.read.offset);
        let (len, since) = known.unwrap_or_else(|| (self.read.offset, Instant::now()));
        self.waits = Some((len, since));
        since.elapsed() < patience
    }
}
