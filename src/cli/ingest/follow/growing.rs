//! A file that grows, is rotated and is truncated, and the place up to which it was read.
//!
//! ```text
//! app.log   ████████░░░░           ░ appended since: read on
//!                   │
//!                 Place: device, inode, offset, checksums of the first and last KiB before it, time
//!                   │
//! app.log   ██                     another file, or shorter: rotated or truncated
//! app.log.2 ████████░░             the file with the place: read to its end
//! app.log.1 ████                   changed after it: read from its start, then app.log
//! ```
//!
//! A file has a place if the bytes at its start and before the offset are the same. Of several, the one
//! with the inode is meant, then the file of the name, then its neighbours `NAME.*` and `NAME-*`: copies
//! that were made before the file was truncated. All files have the place at offset 0, so only the inode
//! counts there. A rotated file has ended when it did not grow for [`GRACE`]. Then comes the file that was
//! changed next: of files that were rotated several times between two looks each is read, if it has the name
//! with a number or a date behind it (`NAME.1`, `NAME-20240506`), is not packed, and is no copy of its
//! neighbours in time. If no file has the place any more, the time of the place tells which one came next.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{Step, num_lines};
use crate::display;
use crate::failure::{Failure, Outcome};

/// Time without new bytes after which a rotated file has ended.
const GRACE: Duration = Duration::from_secs(1);
/// Number of bytes at the start and before the offset that tell a file from others.
const MARK_BYTES: usize = 1 << 10;
/// Number of bytes that are read at once.
const READ_BYTES: u64 = 256 << 10;

/// A place in a file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    file: FileId,
    offset: u64,
    /// CRC32C of the first bytes of the file, and of the bytes before the offset.
    head: u32,
    tail: u32,
    /// Number of lines before the offset.
    lines: u64,
    /// Time at which the file was last changed when it was read, in nanoseconds since 1970; 0 if unknown.
    changed: u64,
}

/// Device and inode of a file. Zeros on systems without them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    #[cfg(unix)]
    fn of(metadata: &fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { device: metadata.dev(), inode: metadata.ino() }
    }

    #[cfg(not(unix))]
    fn of(_metadata: &fs::Metadata) -> Self {
        Self::default()
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file: FileId { device, inode }, offset, head, tail, lines, changed } = self;
        write!(f, "{offset} {device} {inode} {head} {tail} {lines} {changed}")
    }
}

impl FromStr for Place {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers: Result<Vec<u64>, _> = text.split(' ').map(str::parse).collect();
        let numbers = numbers.map_err(|_| ())?;
        let [offset, device, inode, head, tail, ref rest @ ..] = numbers[..] else {
            return Err(());
        };
        // Early builds stored no number of lines, and later ones no time.
        let (lines, changed) = match *rest {
            [] => (0, 0),
            [lines] if lines <= offset => (lines, 0),
            [lines, changed] if lines <= offset => (lines, changed),
            _ => return Err(()),
        };
        let checksum = |number: u64| u32::try_from(number).map_err(|_| ());
        let (head, tail) = (checksum(head)?, checksum(tail)?);
        Ok(Self { file: FileId { device, inode }, offset, head, tail, lines, changed })
    }
}

/// The bytes before an offset that tell a file from others.
#[derive(Debug, Clone, Default)]
struct Mark {
    offset: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
    /// Number of lines before the offset, as far as they were counted.
    lines: u64,
}

impl Mark {
    /// Returns the mark of `file` at `offset`, or none if the file is shorter.
    fn of(mut file: &File, offset: u64) -> io::Result<Option<Self>> {
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
        let (head, tail) = (read(0)?, read(offset - len)?);
        let is_whole = head.len() as u64 == len && tail.len() as u64 == len;
        Ok(is_whole.then_some(Self { offset, head, tail, lines: 0 }))
    }

    /// Moves on by `bytes`.
    fn advance(&mut self, bytes: &[u8]) {
        let room = MARK_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(MARK_BYTES)..]);
        self.tail.drain(..self.tail.len().saturating_sub(MARK_BYTES));
        self.offset += bytes.len() as u64;
        self.lines += num_lines(bytes);
    }

    fn place(&self, file: FileId) -> Place {
        let (head, tail) = (crc32c::crc32c(&self.head), crc32c::crc32c(&self.tail));
        Place { file, offset: self.offset, head, tail, lines: self.lines, changed: 0 }
    }
}

/// A file that grows.
pub struct GrowingFile {
    path: PathBuf,
    file: File,
    id: FileId,
    /// Time at which the file was last changed when it was read.
    changed: SystemTime,
    /// Mark behind all bytes that were read.
    read: Mark,
    /// Mark behind all bytes that were [taken](Self::take).
    taken: Mark,
    /// Time since which another file has the name, and the open one did not grow.
    ended: Option<Instant>,
}

impl GrowingFile {
    /// Opens `path` behind `place`. Returns the file, and false if no file has this place any more: then it
    /// is the one that was rotated first after it, or the one that has the name.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path, place: Option<Place>) -> Outcome<(Self, bool)> {
        Self::try_open(path, place).map_err(|error| failed(path, &error))
    }

    fn try_open(path: &Path, place: Option<Place>) -> io::Result<(Self, bool)> {
        let Some(place) = place else {
            return Ok((Self::new(path, File::open(path)?, Mark::default())?, true));
        };
        if let Some((file, mark)) = find(path, &place)? {
            return Ok((Self::new(path, file, mark)?, true));
        }
        let changed = UNIX_EPOCH + Duration::from_nanos(place.changed);
        let later = match place.changed {
            0 => None,
            _ => rotated_since(path, changed, &place)?,
        };
        let file = later.map_or_else(|| File::open(path), Ok)?;
        Ok((Self::new(path, file, Mark::default())?, false))
    }

    fn new(path: &Path, file: File, read: Mark) -> io::Result<Self> {
        let metadata = file.metadata()?;
        let (id, changed) = (FileId::of(&metadata), metadata.modified()?);
        Ok(Self {
            path: path.to_owned(),
            file,
            id,
            changed,
            taken: read.clone(),
            read,
            ended: None,
        })
    }

    /// Appends the next bytes to `text`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&mut self, text: &mut Vec<u8>) -> Outcome<Step> {
        let step = self.try_read(text);
        step.map_err(|error| failed(&self.path, &error))
    }

    fn try_read(&mut self, text: &mut Vec<u8>) -> io::Result<Step> {
        let metadata = self.file.metadata()?;
        self.changed = metadata.modified()?;
        if metadata.len() == self.read.offset {
            return self.look_at_name();
        }
        let place = self.read.place(self.id);
        if !has_place(&self.file, &place)? {
            // What was written before the file was truncated may be in a copy.
            let Some((file, mark)) = find(&self.path, &place)? else { return Ok(Step::Ended) };
            let metadata = file.metadata()?;
            (self.id, self.changed) = (FileId::of(&metadata), metadata.modified()?);
            (self.file, self.read) = (file, mark);
        }
        let before = text.len();
        self.file.seek(SeekFrom::Start(self.read.offset))?;
        (&self.file).take(READ_BYTES).read_to_end(text)?;
        self.read.advance(text.get(before..).unwrap_or_default());
        self.ended = None;
        Ok(Step::Read)
    }

    /// Looks if another file has the name. The open one may still grow.
    fn look_at_name(&mut self) -> io::Result<Step> {
        let has_name = match fs::metadata(&self.path) {
            Ok(metadata) => FileId::of(&metadata) == self.id,
            // Between the two steps of a rotation no file has the name.
            Err(error) if error.kind() == io::ErrorKind::NotFound => true,
            Err(error) => return Err(error),
        };
        if has_name {
            self.ended = None;
            return Ok(Step::Quiet);
        }
        let ended = *self.ended.get_or_insert_with(Instant::now);
        Ok(if ended.elapsed() < GRACE { Step::Quiet } else { Step::Ended })
    }

    /// Opens the file that was rotated after the open one, or the one that has the name now, at its start.
    /// Without such a file the open one stays.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn next(&mut self) -> Outcome {
        let between = self.between().map_err(|error| failed(&self.path, &error))?;
        let opened = between.map_or_else(|| File::open(&self.path), Ok);
        match opened.and_then(|file| Self::new(&self.path, file, Mark::default())) {
            Ok(next) => {
                *self = next;
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(failed(&self.path, &error)),
        }
    }

    /// Returns the file that was rotated first after the open one, if there is one.
    fn between(&self) -> io::Result<Option<File>> {
        let changed = self.file.metadata()?.modified()?;
        rotated_since(&self.path, changed, &self.read.place(self.id))
    }

    /// Takes bytes that [`read`](Self::read) has returned, in order, and returns the place behind them.
    pub fn take(&mut self, bytes: &[u8]) -> Place {
        self.taken.advance(bytes);
        self.place()
    }

    /// Returns the place behind the bytes that were taken.
    pub fn place(&self) -> Place {
        let changed = self.changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let changed = u64::try_from(changed).unwrap_or_default();
        Place { changed, ..self.taken.place(self.id) }
    }

    /// Returns the number of lines of the file that were taken.
    pub fn lines_taken(&self) -> u64 {
        self.taken.lines
    }
}

/// Returns the file that has `place`, and the mark there.
fn find(path: &Path, place: &Place) -> io::Result<Option<(File, Mark)>> {
    let mut found: Vec<(bool, File)> = Vec::new();
    for candidate in [path.to_owned()].into_iter().chain(neighbours(path)) {
        // Neighbours may vanish or be unreadable. A pipe would have to be waited for.
        let Some(metadata) = fs::metadata(&candidate).ok().filter(fs::Metadata::is_file) else {
            continue;
        };
        let Ok(file) = File::open(&candidate) else { continue };
        if has_place(&file, place)? {
            found.push((FileId::of(&metadata) == place.file, file));
        }
    }
    let idx = match found.iter().position(|(has_id, _)| *has_id) {
        Some(idx) => idx,
        // Every file has the place at its start.
        None if found.is_empty() || place.offset == 0 => return Ok(None),
        None => 0,
    };
    let file = found.swap_remove(idx).1;
    let mark = Mark::of(&file, place.offset)?;
    Ok(mark.map(|mark| (file, Mark { lines: place.lines, ..mark })))
}

fn has_place(file: &File, place: &Place) -> io::Result<bool> {
    let mark = Mark::of(file, place.offset)?;
    Ok(mark.is_some_and(|mark| {
        let mark = Mark { lines: place.lines, ..mark };
        Place { changed: place.changed, ..mark.place(place.file) } == *place
    }))
}

/// Returns the file that was rotated first from `path` after the file of `place`, which was last changed at
/// `ended`, if there is one.
fn rotated_since(path: &Path, ended: SystemTime, place: &Place) -> io::Result<Option<File>> {
    let Ok(current) = File::open(path) else { return Ok(None) };
    let now = current.metadata()?.modified()?;
    let mut rotated = rotated_files(path)?;
    rotated.sort_by_key(|(changed, _)| *changed);
    for at in 0..rotated.len() {
        let (changed, file) = &rotated[at];
        if *changed <= ended || *changed > now || FileId::of(&file.metadata()?) == place.file {
            continue;
        }
        let is_read = place.offset > 0 && has_place(file, place)?;
        let is_copy = is_read || begins_as(file, &current)? || is_among(file, &rotated[..at])?;
        if !is_copy {
            return Ok(Some(rotated.swap_remove(at).1));
        }
    }
    Ok(None)
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

/// Returns the files that were rotated from `path`, each with the time of its last change.
fn rotated_files(path: &Path) -> io::Result<Vec<(SystemTime, File)>> {
    let mut rotated = Vec::new();
    for candidate in neighbours(path).into_iter().filter(|other| is_rotated(path, other)) {
        // Neighbours may vanish or be unreadable. A pipe would have to be waited for.
        let is_file = fs::metadata(&candidate).is_ok_and(|metadata| metadata.is_file());
        let Some(file) = is_file.then(|| File::open(&candidate).ok()).flatten() else { continue };
        rotated.push((file.metadata()?.modified()?, file));
    }
    Ok(rotated)
}

/// Returns true if one of `others` has the length, the beginning and the end of `file`.
fn is_among(file: &File, others: &[(SystemTime, File)]) -> io::Result<bool> {
    let len = file.metadata()?.len();
    let Some(mark) = Mark::of(file, len)? else { return Ok(false) };
    let place = mark.place(FileId::default());
    for (_, other) in others {
        if other.metadata()?.len() == len && has_place(other, &place)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Returns true if `other` has the name of `path` with a number or a date behind it, and is not packed.
fn is_rotated(path: &Path, other: &Path) -> bool {
    let name = |path: &Path| path.file_name().map(|name| name.as_encoded_bytes().to_vec());
    let (Some(name), Some(other)) = (name(path), name(other)) else { return false };
    let rest = other.get(name.len() + 1..).unwrap_or_default();
    let is_date = |byte: &u8| byte.is_ascii_digit() || b"-._:TZ".contains(byte);
    rest.first().is_some_and(u8::is_ascii_digit) && rest.iter().all(is_date)
}

/// Returns true if `file` may be a copy of the beginning of `whole`: it has bytes, not more of them, and
/// the first ones are the same.
fn begins_as(file: &File, whole: &File) -> io::Result<bool> {
    let (len, of_whole) = (file.metadata()?.len(), whole.metadata()?.len());
    let head = len.min(MARK_BYTES as u64);
    let marks = (Mark::of(file, head)?, Mark::of(whole, head)?);
    Ok(match marks {
        (Some(one), Some(other)) => (1..=of_whole).contains(&len) && one.head == other.head,
        _ => false,
    })
}

fn failed(path: &Path, error: &io::Error) -> Failure {
    Failure::with_cause(format!("{}: cannot read", display::path(path)), error)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    struct Log(tempfile::TempDir);

    impl Log {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn path(&self) -> PathBuf {
            self.0.path().join("app.log")
        }

        fn write(&self, text: &str) {
            let mut file = File::options().create(true).append(true).open(self.path()).unwrap();
            file.write_all(text.as_bytes()).unwrap();
        }

        fn rotated(&self) -> PathBuf {
            self.0.path().join("app.log.1")
        }
    }

    /// Reads until the file is quiet or has ended.
    fn rest(file: &mut GrowingFile) -> (String, Step) {
        let mut text = Vec::new();
        loop {
            match file.read(&mut text).unwrap() {
                Step::Read => {}
                step => return (String::from_utf8(text).unwrap(), step),
            }
        }
    }

    fn text(file: &mut GrowingFile) -> String {
        rest(file).0
    }

    #[test]
    fn places_are_written_and_read() {
        let file = FileId { device: 1, inode: 2 };
        let place = Place { file, offset: u64::MAX, head: 3, tail: u32::MAX, lines: 4, changed: 5 };
        assert_eq!(place.to_string().parse(), Ok(place));
        let early = Place { offset: 9, tail: 4, lines: 0, changed: 0, ..place };
        assert_eq!("9 1 2 3 4".parse(), Ok(early));
        assert_eq!("9 1 2 3 4 8".parse(), Ok(Place { lines: 8, ..early }));
        for bad in
            ["", "1 2 3 4", "1 2 3 4 5 2", "1 2 3 4 5 1 1 1", "1 2 3 4 x", "1 2 3 4 4294967296"]
        {
            assert_eq!(bad.parse::<Place>(), Err(()), "{bad}");
        }
    }

    #[test]
    fn marks_are_the_same_in_steps_and_at_once() {
        let log = Log::new();
        let bytes: Vec<u8> = (0..5 * MARK_BYTES).map(|n| (n % 251) as u8).collect();
        fs::write(log.path(), &bytes).unwrap();
        let file = File::open(log.path()).unwrap();
        for step in [1, 7, MARK_BYTES - 1, MARK_BYTES, 3 * MARK_BYTES] {
            let mut mark = Mark::default();
            for part in bytes.chunks(step) {
                mark.advance(part);
                let at_once = Mark::of(&file, mark.offset).unwrap().unwrap();
                assert_eq!((&mark.head, &mark.tail), (&at_once.head, &at_once.tail), "{step}");
            }
        }
        assert!(Mark::of(&file, bytes.len() as u64 + 1).unwrap().is_none());
    }

    #[test]
    fn a_file_is_read_on_from_its_place() {
        let log = Log::new();
        log.write("one\n");
        let (mut file, is_found) = GrowingFile::open(&log.path(), None).unwrap();
        assert!(is_found);
        assert_eq!(text(&mut file), "one\n");
        log.write("two\nthr");
        assert_eq!(text(&mut file), "two\nthr");
        let place = file.take(b"one\ntwo\n");
        log.write("ee\n");
        let (mut again, is_found) = GrowingFile::open(&log.path(), Some(place)).unwrap();
        assert_eq!((text(&mut again).as_str(), is_found), ("three\n", true));
        assert_eq!((again.lines_taken(), again.take(b"three\n").lines), (2, 3));
    }

    #[test]
    fn a_rotated_file_is_read_to_its_end() {
        let log = Log::new();
        log.write("one\n");
        let (mut file, _) = GrowingFile::open(&log.path(), None).unwrap();
        assert_eq!(text(&mut file), "one\n");
        let place = file.take(b"one\n");
        fs::rename(log.path(), log.rotated()).unwrap();
        assert!(matches!(file.read(&mut Vec::new()), Ok(Step::Quiet)), "no file has the name");
        log.write("two\n");
        let mut old = File::options().append(true).open(log.rotated()).unwrap();
        assert_eq!(text(&mut file), "");
        old.write_all(b"late\n").unwrap();
        assert_eq!(text(&mut file), "late\n");
        file.ended = Instant::now().checked_sub(GRACE);
        assert!(matches!(rest(&mut file).1, Step::Ended));
        assert_eq!(file.take(b"late\n").lines, 2);
        file.next().unwrap();
        assert_eq!((text(&mut file).as_str(), file.lines_taken()), ("two\n", 0));
        // The same after a restart.
        let (mut again, is_found) = GrowingFile::open(&log.path(), Some(place)).unwrap();
        assert_eq!((text(&mut again).as_str(), is_found), ("late\n", true));
        again.ended = Instant::now().checked_sub(GRACE);
        assert!(matches!(rest(&mut again).1, Step::Ended));
    }

    #[test]
    fn a_truncated_file_is_read_from_its_start_behind_its_copy() {
        let log = Log::new();
        log.write("one\ntwo\n");
        let (mut file, _) = GrowingFile::open(&log.path(), None).unwrap();
        assert_eq!(text(&mut file), "one\ntwo\n");
        let place = file.take(b"one\ntwo\n");
        log.write("three\n");
        fs::copy(log.path(), log.rotated()).unwrap();
        // Shorter, and as long but other text.
        for new in ["new\n", "new text that is longer\n"] {
            fs::write(log.path(), new).unwrap();
            let (mut again, is_found) = GrowingFile::open(&log.path(), Some(place)).unwrap();
            assert_eq!((text(&mut again).as_str(), is_found), ("three\n", true));
            again.ended = Instant::now().checked_sub(GRACE);
            assert!(matches!(rest(&mut again).1, Step::Ended));
            again.next().unwrap();
            assert_eq!(text(&mut again), new);
        }
        assert_eq!(text(&mut file), "three\n");
        fs::remove_file(log.rotated()).unwrap();
        let (mut again, is_found) = GrowingFile::open(&log.path(), Some(place)).unwrap();
        assert_eq!((text(&mut again).as_str(), is_found), ("new text that is longer\n", false));
        fs::write(log.path(), "").unwrap();
        assert!(matches!(rest(&mut again).1, Step::Ended));
    }

    /// Reads all files up to the last one.
    fn all(file: &mut GrowingFile) -> String {
        let mut all = String::new();
        loop {
            all += &text(file);
            file.ended = Instant::now().checked_sub(GRACE);
            if !matches!(rest(file).1, Step::Ended) {
                return all;
            }
            file.next().unwrap();
        }
    }

    #[test]
    fn files_that_nobody_read_in_time_are_read() {
        let log = Log::new();
        let named = |end: &str| log.0.path().join(format!("app.log{end}"));
        // Each has a time of its own.
        let later = || std::thread::sleep(Duration::from_millis(20));
        log.write("one\n");
        let (mut file, _) = GrowingFile::open(&log.path(), None).unwrap();
        assert_eq!(text(&mut file), "one\n");
        let place = file.take(b"one\n");
        log.write("two\n");
        later();
        fs::rename(log.path(), named("-20240506")).unwrap();
        log.write("three\n");
        later();
        fs::rename(log.path(), named(".2")).unwrap();
        log.write("four\n");
        later();
        fs::copy(log.path(), named(".1")).unwrap();
        fs::write(log.path(), "").unwrap();
        log.write("five\n");
        // None of these is a rotated file: another name, packed, copies of what was read and of the last one.
        later();
        for name in [".bak", ".3.gz", ".notes-1"] {
            fs::write(named(name), "never\n").unwrap();
        }
        fs::copy(named("-20240506"), named(".20240506.1")).unwrap();
        fs::copy(log.path(), named(".9")).unwrap();
        later();
        log.write("six\n");
        let expected = "two\nthree\nfour\nfive\nsix\n";
        let (mut again, is_found) = GrowingFile::open(&log.path(), Some(place)).unwrap();
        assert_eq!((all(&mut again).as_str(), is_found), (expected, true));
        // The same for one that was reading, and is behind.
        assert_eq!(all(&mut file), expected);
    }

    #[test]
    fn files_behind_one_that_is_gone_are_read() {
        let log = Log::new();
        let named = |end: &str| log.0.path().join(format!("app.log{end}"));
        // Each has a time of its own.
        let later = || std::thread::sleep(Duration::from_millis(20));
        fs::write(named(".3"), "zero\n").unwrap();
        later();
        log.write("one\n");
        let (mut file, _) = GrowingFile::open(&log.path(), None).unwrap();
        assert_eq!(text(&mut file), "one\n");
        let place = file.take(b"one\n").to_string();
        fs::remove_file(log.path()).unwrap();
        for (name, line) in [(".2", "two\n"), (".1", "three\n"), ("", "four\n")] {
            later();
            fs::write(named(name), line).unwrap();
        }
        let expected = "two\nthree\nfour\n";
        let (mut again, is_found) = GrowingFile::open(&log.path(), place.parse().ok()).unwrap();
        assert_eq!((all(&mut again).as_str(), is_found), (expected, false));
        // A place of an early build does not tell which ones.
        let (early, _) = place.rsplit_once(' ').unwrap();
        let (mut again, is_found) = GrowingFile::open(&log.path(), early.parse().ok()).unwrap();
        assert_eq!((all(&mut again).as_str(), is_found), ("four\n", false));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_of_which_nothing_was_taken_is_found_by_its_inode() {
        let log = Log::new();
        log.write("old\n");
        let (mut file, _) = GrowingFile::open(&log.path(), None).unwrap();
        assert_eq!(text(&mut file), "old\n");
        let place = file.place();
        fs::rename(log.path(), log.rotated()).unwrap();
        log.write("new\n");
        let (mut again, is_found) = GrowingFile::open(&log.path(), Some(place)).unwrap();
        assert_eq!((all(&mut again).as_str(), is_found), ("old\nnew\n", true));
        // Without the inode no file is meant. `file` keeps the inode from being used again.
        fs::remove_file(log.rotated()).unwrap();
        let (mut again, is_found) = GrowingFile::open(&log.path(), Some(place)).unwrap();
        assert_eq!((text(&mut again).as_str(), is_found), ("new\n", false));
    }

    #[test]
    fn a_file_with_the_same_start_is_another_one() {
        let log = Log::new();
        log.write("header\n");
        let (mut file, _) = GrowingFile::open(&log.path(), None).unwrap();
        assert_eq!(text(&mut file), "header\n");
        let place = file.take(b"header\n");
        log.write("old\n");
        fs::rename(log.path(), log.rotated()).unwrap();
        log.write("header\nnew\n");
        let (mut again, _) = GrowingFile::open(&log.path(), Some(place)).unwrap();
        assert_eq!(text(&mut again), "old\n");
    }
}
