//! The place up to which a log and the files that were rotated from it were read.
//!
//! ```text
//! 2;offset device inode lines head tail whole written;offset device inode …
//! └┘└─ the file that is read now ────────────────────┘└─ the others, in any order
//! version
//! ```
//!
//! A file is known by its device and inode, and by checksums (CRC32C) of the bytes before the offset: of the
//! first KiB, of the last KiB, and of all of them. An inode that another file has now is told by them. All
//! bytes are read for it if they are at most [`MAX_WHOLE_BYTES`]. A file that was there before the log was
//! followed is a place, too: its end. It has no checksum of the whole (`-`). `written` is the time at which a file
//! that was read to its end was written last, if it is known.
//!
//! Early builds stored one file: `offset device inode head tail lines changed`.
//!
//! A file beside a log is its neighbour if its name is that of the log and `.` or `-` and more. It was rotated from the
//! log if a number or a date comes there (`NAME.1`, `NAME-20240506`), so a packed file was not. A file that is known is
//! also found in a folder beside or below, and in the one above, where some rotations move it.

use std::cmp::Reverse;
use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime};

use super::num_lines;

/// Number of bytes at the start and before the offset that are compared at every look.
const MARK_BYTES: usize = 1 << 10;
/// Most bytes before an offset that are read to tell a file from others.
const MAX_WHOLE_BYTES: u64 = 16 << 20;
/// First text of a place of more than one file.
const VERSION: &str = "2";
/// Number of words of a place in one file.
const NUM_WORDS: usize = 7;
/// Text of a place without a file, and of a checksum that is not known.
const NONE: &str = "-";

/// Device and inode of a file. On systems without them the time at which the file was made stands for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileId {
    pub device: u64,
    pub inode: u64,
}

impl FileId {
    #[cfg(unix)]
    pub fn new(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    #[cfg(not(unix))]
    pub fn new(metadata: &Metadata) -> Self {
        let made = metadata.created().ok();
        let made = made.and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
        let inode = made.and_then(|made| u64::try_from(made.as_nanos()).ok()).unwrap_or_default();
        Self { device: 0, inode }
    }
}

/// Returns the time at which a file was changed last, in nanoseconds since 1970.
pub fn changed(metadata: &Metadata) -> Option<u64> {
    let time = metadata.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    u64::try_from(time.as_nanos()).ok()
}

/// Returns true if the time of the last change is the one that a write has set, and none that was chosen. A
/// renamed file has none such.
#[cfg(unix)]
pub fn is_written(metadata: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    (metadata.mtime(), metadata.mtime_nsec()) == (metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
pub fn is_written(_metadata: &Metadata) -> bool {
    true
}

/// A place in one file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FilePlace {
    pub file: FileId,
    pub offset: u64,
    /// Number of lines before the offset.
    pub lines: u64,
    /// Checksums of the first bytes of the file, and of the bytes before the offset.
    head: u32,
    tail: u32,
    /// Checksum of all bytes before the offset, if it is known.
    whole: Option<u32>,
}

/// The place in a log, and in the files that were rotated from it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Place {
    /// The file that is read now.
    pub current: Option<FilePlace>,
    pub others: Vec<FilePlace>,
    /// Of an early build: the time at which the file was last changed when it was read, in nanoseconds since
    /// 1970; 0 if it is unknown. Later builds need none.
    pub changed: Option<u64>,
    /// Time at which the file was written last, in nanoseconds since 1970, if the offset was its end then.
    pub written: Option<u64>,
}

impl FilePlace {
    /// Returns true if the same bytes are before the offsets of both.
    pub fn has_bytes_of(&self, other: &Self) -> bool {
        Self { file: other.file, ..*self } == *other
    }
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file: FileId { device, inode }, offset, lines, head, tail, whole } = self;
        write!(f, "{offset} {device} {inode} {lines} {head} {tail} ")?;
        match whole {
            Some(whole) => write!(f, "{whole}"),
            None => f.write_str(NONE),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(VERSION)?;
        match &self.current {
            Some(current) => write!(f, ";{current}")?,
            None => write!(f, ";{NONE}")?,
        }
        if let Some(written) = self.written {
            write!(f, " {written}")?;
        }
        self.others.iter().try_for_each(|other| write!(f, ";{other}"))
    }
}

impl FromStr for FilePlace {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let words: Vec<&str> = text.split(' ').collect();
        let [offset, device, inode, lines, head, tail, whole] = words[..] else { return Err(()) };
        let number = |word: &str| word.parse::<u64>().map_err(|_| ());
        let checksum = |word: &str| word.parse::<u32>().map_err(|_| ());
        let file = FileId { device: number(device)?, inode: number(inode)? };
        let offset = number(offset)?;
        let lines = number(lines)?;
        let whole = if whole == NONE { None } else { Some(checksum(whole)?) };
        let place = Self { file, offset, lines, head: checksum(head)?, tail: checksum(tail)?, whole };
        if lines > offset { Err(()) } else { Ok(place) }
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let mut files = text.split(';');
        if files.next() != Some(VERSION) {
            return early_place(text);
        }
        let current = files.next().ok_or(())?;
        let (current, written) = match current.rsplit_once(' ') {
            Some((file, written)) if file.split(' ').count() == NUM_WORDS => {
                (file, Some(written.parse().map_err(|_| ())?))
            }
            _ => (current, None),
        };
        let current = match current {
            NONE => None,
            file => Some(file.parse()?),
        };
        let others: Result<Vec<FilePlace>, ()> = files.map(str::parse).collect();
        Ok(Self { current, others: others?, changed: None, written })
    }
}

/// Reads a place of an early build. The first ones stored no number of lines, and later ones no time.
fn early_place(text: &str) -> Result<Place, ()> {
    let numbers: Result<Vec<u64>, _> = text.split(' ').map(str::parse).collect();
    let numbers = numbers.map_err(|_| ())?;
    let [offset, device, inode, head, tail, ref rest @ ..] = numbers[..] else { return Err(()) };
    let (lines, changed) = match *rest {
        [] => (0, 0),
        [lines] if lines <= offset => (lines, 0),
        [lines, changed] if lines <= offset => (lines, changed),
        _ => return Err(()),
    };
    let checksum = |number: u64| u32::try_from(number).map_err(|_| ());
    let head = checksum(head)?;
    let tail = checksum(tail)?;
    let file = FileId { device, inode };
    let current = FilePlace { file, offset, lines, head, tail, whole: None };
    let current = Some(current);
    Ok(Place { current, others: Vec::new(), changed: Some(changed), written: None })
}

/// The bytes before an offset that tell a file from others.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    pub offset: u64,
    /// Number of lines before the offset, as far as they were counted.
    pub lines: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Checksum of all bytes before the offset, if it is known.
    whole: Option<u32>,
}

impl Mark {
    /// Returns the mark at the start of a file.
    pub fn start() -> Self {
        Self { whole: Some(0), ..Self::default() }
    }

    /// Returns the mark of `file` at `offset`, or none if the file is shorter.
    pub fn new(mut file: &File, offset: u64) -> io::Result<Option<Self>> {
        if file.metadata()?.len() < offset {
            return Ok(None);
        }
        let len = offset.min(MARK_BYTES as u64);
        let mut read = |from: u64| {
            file.seek(SeekFrom::Start(from))?;
            let mut bytes = Vec::new();
            file.take(len).read_to_end(&mut bytes)?;
            Ok::<_, io::Error>(bytes)
        };
        let head = read(0)?;
        let tail = read(offset - len)?;
        let is_whole = head.len() as u64 == len && tail.len() as u64 == len;
        Ok(is_whole.then_some(Self { offset, lines: 0, head, tail, whole: None }))
    }

    /// Returns the mark of `file` at `place`, or none if the bytes before it are not those of the place.
    pub fn at(file: &File, place: &FilePlace) -> io::Result<Option<Self>> {
        let Some(mark) = Self::new(file, place.offset)? else { return Ok(None) };
        let mark = Self { lines: place.lines, whole: place.whole, ..mark };
        if mark.place(place.file) != *place {
            return Ok(None);
        }
        let is_same = match place.whole {
            Some(whole) if place.offset <= MAX_WHOLE_BYTES => checksum(file, place.offset)? == Some(whole),
            _ => true,
        };
        Ok(is_same.then_some(mark))
    }

    /// Returns true if `file` has the first and last bytes before the offset.
    pub fn is_in(&self, file: &File) -> io::Result<bool> {
        let mark = Self::new(file, self.offset)?;
        Ok(mark.is_some_and(|mark| mark.head == self.head && mark.tail == self.tail))
    }

    /// Returns true if the first bytes before both offsets are the same.
    pub fn begins_as(&self, other: &Self) -> bool {
        let len = self.head.len().min(other.head.len());
        len > 0 && self.head.get(..len) == other.head.get(..len)
    }

    /// Moves on by `bytes`.
    pub fn advance(&mut self, bytes: &[u8]) {
        let room = MARK_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(MARK_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(MARK_BYTES));
        self.offset += bytes.len() as u64;
        self.lines += num_lines(bytes);
        self.whole = self.whole.map(|whole| crc32c::crc32c_append(whole, bytes));
    }

    pub fn place(&self, file: FileId) -> FilePlace {
        let head = crc32c::crc32c(&self.head);
        let tail = crc32c::crc32c(&self.tail);
        let Self { offset, lines, whole, .. } = *self;
        FilePlace { file, offset, lines, head, tail, whole }
    }

    /// Returns the offset and the checksum of the bytes before it.
    pub fn checkpoint(&self) -> Option<(u64, u32)> {
        Some((self.offset, self.whole?))
    }
}

/// Returns the checksum of the first `len` bytes of `file`, or none if it is shorter.
pub fn checksum(mut file: &File, len: u64) -> io::Result<Option<u32>> {
    file.seek(SeekFrom::Start(0))?;
    let mut whole = 0;
    let mut left = len;
    let mut bytes = vec![0; 256 << 10];
    while left > 0 {
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let num_read = file.read(&mut bytes[..wanted])?;
        if num_read == 0 {
            return Ok(None);
        }
        whole = crc32c::crc32c_append(whole, &bytes[..num_read]);
        left -= num_read as u64;
    }
    Ok(Some(whole))
}

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
        let unchecked = None;
        let waits = None;
        let missing = None;
        let written = None;
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

/// Most folders in a folder that are searched for moved files.
#[cfg(unix)]
const MAX_FOLDERS: usize = 100;

/// A file that is there.
pub struct Listed {
    pub file: File,
    pub id: FileId,
    pub len: u64,
    pub changed: SystemTime,
    /// Name of the file.
    pub path: PathBuf,
    /// True if it has the name of the log.
    pub is_log: bool,
    /// True if it was rotated from the log, by its name.
    pub is_rotated: bool,
}

impl Listed {
    fn open(path: PathBuf, log: &Path) -> io::Result<Self> {
        // A pipe would have to be waited for.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let file = File::open(&path)?;
        let metadata = file.metadata()?;
        let len = metadata.len();
        let changed = metadata.modified()?;
        let is_log = path == log;
        let is_rotated = !is_log && is_rotated(log, &path);
        Ok(Self { file, id: FileId::new(&metadata), len, changed, path, is_log, is_rotated })
    }
}

/// Returns the neighbours of the log `path`, the older ones first as far as times and numbers tell, and then the
/// log, if it is there.
///
/// # Errors
/// The log cannot be read.
pub fn list(path: &Path) -> io::Result<Vec<Listed>> {
    let others = neighbours(path).into_iter();
    // Neighbours may vanish or be unreadable.
    let mut listed: Vec<Listed> = others.filter_map(|other| Listed::open(other, path).ok()).collect();
    listed.sort_by_key(|other| (other.changed, Reverse(number(&other.path))));
    match Listed::open(path.to_owned(), path) {
        Ok(log) => listed.push(log),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(listed)
}

/// Returns the files among `ids` that lie in a folder beside or below that of the log `path`, or in the one above.
#[cfg(unix)]
pub fn find_moved(path: &Path, ids: &[FileId]) -> Vec<Listed> {
    use std::os::unix::fs::DirEntryExt;
    let mut found = Vec::new();
    let Ok(path) = std::path::absolute(path) else { return found };
    let Some(home) = path.parent() else { return found };
    let above = home.parent().map(Path::to_owned);
    let mut folders: Vec<PathBuf> = above.iter().cloned().collect();
    for folder in above.into_iter().chain([home.to_owned()]) {
        folders.extend(subfolders(&folder).filter(|folder| folder != home));
    }
    for entry in folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten() {
        if ids.iter().any(|id| id.inode == entry.ino())
            && let Ok(listed) = Listed::open(entry.path(), &path)
            && ids.contains(&listed.id)
        {
            found.push(Listed { is_rotated: false, ..listed });
        }
    }
    found
}

/// On systems without inodes, a moved file is gone.
#[cfg(not(unix))]
pub fn find_moved(_path: &Path, _ids: &[FileId]) -> Vec<Listed> {
    Vec::new()
}

/// Returns the first folders in `folder`.
#[cfg(unix)]
fn subfolders(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.map(|entry| entry.path()).take(MAX_FOLDERS)
}

/// Returns true if a file that was rotated from the log `path` is there.
pub fn has_rotated(path: &Path) -> bool {
    neighbours(path).iter().any(|other| is_rotated(path, other))
}

/// Returns the number at the end of the name, or 0.
fn number(path: &Path) -> u64 {
    let extension = path.extension().and_then(|extension| extension.to_str());
    extension.and_then(|extension| extension.parse().ok()).unwrap_or_default()
}

/// Returns the files beside `path` whose names are its name and `.` or `-` and more, by name.
fn neighbours(path: &Path) -> Vec<PathBuf> {
    let Some(name) = path.file_name().map(|name| name.as_encoded_bytes()) else {
        return Vec::new();
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = fs::read_dir(folder.unwrap_or(Path::new("."))) else { return Vec::new() };
    let paths = entries.flatten().filter(|entry| {
        let other = entry.file_name();
        let rest = other.as_encoded_bytes().strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with(b".") || rest.starts_with(b"-"))
    });
    let mut paths: Vec<PathBuf> = paths.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Returns true if `other` has the name of `path` with a number or a date behind it, and is not packed.
fn is_rotated(path: &Path, other: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec());
    let (Some(name), Some(other)) = (name(path), name(other)) else { return false };
    let rest = other.get(name.len() + 1..).unwrap_or_default();
    let is_date = |byte: &u8| byte.is_ascii_digit() || b"-._:TZ".contains(byte);
    rest.first().is_some_and(u8::is_ascii_digit) && rest.iter().all(is_date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_written_and_read() {
        let file = FileId { device: 1, inode: 2 };
        let one = FilePlace { file, offset: u64::MAX, lines: 4, head: 3, tail: u32::MAX, whole: Some(7) };
        let other = FilePlace { whole: None, ..one };
        for (current, written) in [(Some(one), None), (Some(one), Some(u64::MAX)), (None, None)] {
            let place = Place { current, others: vec![other, one], changed: None, written };
            assert_eq!(place.to_string().parse(), Ok(place));
        }
        for bad in [
            "2",
            "2;",
            "2;x",
            "2;1 2 3 4 5 6",
            "2;1 2 3 2 5 6 7",
            "2;1 2 3 1 5 6 7 x",
            "2;1 2 3 1 5 6 7;1 2 3 1 5 6 7 8",
            "2;-;",
            "2;1 2 3 1 5 6 4294967296",
        ] {
            assert_eq!(bad.parse::<Place>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn places_of_early_builds_are_read() {
        let file = FileId { device: 1, inode: 2 };
        let early = FilePlace { file, offset: 9, head: 3, tail: 4, lines: 0, whole: None };
        let place = |lines, changed| {
            let current = Some(FilePlace { lines, ..early });
            Ok(Place { current, others: Vec::new(), changed: Some(changed), written: None })
        };
        assert_eq!("9 1 2 3 4".parse(), place(0, 0));
        assert_eq!("9 1 2 3 4 8".parse(), place(8, 0));
        assert_eq!("9 1 2 3 4 8 5".parse(), place(8, 5));
        for bad in ["", "1 2 3 4", "1 2 3 4 5 2", "1 2 3 4 5 1 1 1", "1 2 3 4 x", "1 2 3 4 4294967296"] {
            assert_eq!(bad.parse::<Place>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn marks_are_the_same_in_steps_and_at_once() {
        let mut text = Vec::new();
        let mut file = tempfile::tempfile().unwrap();
        let mut steps = Mark::start();
        for len in [1, 100, 1023, 1024, 1025, 5000] {
            let bytes: Vec<u8> = (0..len).map(|byte| (byte % 251) as u8).collect();
            io::Write::write_all(&mut file, &bytes).unwrap();
            text.extend_from_slice(&bytes);
            steps.advance(&bytes);
            assert_eq!(steps.whole, Some(crc32c::crc32c(&text)));
            let place = steps.place(FileId::default());
            assert!(Mark::at(&file, &place).unwrap().is_some());
            assert!(steps.is_in(&file).unwrap());
            let other = FilePlace { whole: Some(1), ..place };
            assert!(Mark::at(&file, &other).unwrap().is_none());
        }
    }
}
