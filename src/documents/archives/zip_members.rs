//! The members of zip files, with their names and times.
//!
//! ```text
//! PK 1 2: entry of the list │ name │ extra fields: 75 70, length, checksum of the name, name in UTF-8 │ …
//! ```
//!
//! Info-ZIP puts a name in UTF-8 into an extra field, and one in a comment likewise. A program that changes the
//! name and not the field leaves a checksum of the name before: the field is to be ignored then (APPNOTE.TXT
//! 6.3.10, 4.6.8 and 4.6.9). The crate `zip` takes the whole zip file for damaged. Here such a field gets an id that
//! nobody knows while it is read.
//!
//! Source: APPNOTE.TXT 6.3.10 (PKWARE), 4.3 and appendix D; Info-ZIP, extrafld.txt.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::time::SystemTime;

use chrono::NaiveDate;
use flate2::Crc;
use tadoc::format::path_text;
use zip::read::{ArchiveOffset, Config, ZipFile, read_zipfile_from_stream};
use zip::result::ZipError;
use zip::{ExtraField, ZipArchive};

use super::{Archives, END, END_LIST_BYTES, ENTRY, Kind, MEMBER, Visit, damaged, has_at, seekable, tail};
use crate::failure::{Failure, MemberBytes, Outcome, RAW};
use crate::inputs::{Input, since_1970};
use crate::office::{self, Limits};
use crate::open::{Budget, Counters, Opened, limited, open_member};

/// Places of the lengths of the texts of an entry: name, extra fields and comment.
pub const LENGTHS: [usize; 3] = [28, 30, 32];
/// Place of the system that wrote an entry, and those that are Unix: it, and macOS.
const HOST: usize = 5;
const UNIX: [u8; 2] = [3, 19];
/// First bytes of the end of the list of zip64, and its bytes, with those of its locator behind it.
const END_64: (&[u8], u64, u64) = (b"PK\x06\x06", 56, 20);
/// Place of the size of the list in the end of zip64. Its place stands behind it, as in the other end.
const END_64_LIST_BYTES: usize = 40;
/// Ids of the fields with a name and with a comment in UTF-8.
const NAME_FIELD: u16 = 0x7075;
const COMMENT_FIELD: u16 = 0x6375;
/// Bytes of a field with a name before the name: a version and a checksum.
const FIELD_HEAD_BYTES: usize = 5;
/// Byte of an id that nobody knows.
const UNKNOWN: u8 = 0xff;

impl Archives<'_> {
    pub(super) fn zip(&mut self, mut opened: Opened<'_>, input: &Input, depth: u32, visit: &mut Visit<'_>) -> Outcome {
        let budget = opened.budget.clone();
        let file = seekable(&mut opened, input)?;
        let file_bytes = file.metadata().map_err(|e| damaged(&budget.faults, input, Kind::Zip, &e))?.len();
        let failed = |error: ZipError| match error {
            ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Failure::new(format!(
                "{}: the zip file is encrypted; unpack it with its password first, or pass {RAW}",
                input.shown()
            )),
            ZipError::UnsupportedArchive(reason) => Failure::new(format!(
                "{}: {reason}; members may be stored or packed by deflate, bzip2 or zstd: pack it anew, or pass {RAW}",
                input.shown()
            )),
            error => damaged(&budget.faults, input, Kind::Zip, &error),
        };
        // All members together may expand as far as one file of this length.
        let counters = budget.counters(file_bytes);
        let damaged_file = |error: io::Error| damaged(&budget.faults, input, Kind::Zip, &error);
        let list = List::find(&file).map_err(damaged_file)?;
        // By itself the reader takes the first bytes behind the stated place that look like a list, also those of a
        // member.
        let known = list.map_or(ArchiveOffset::Detect, |list| ArchiveOffset::Known(list.front_bytes));
        let open = |file| ZipArchive::with_config(Config { archive_offset: known }, BufReader::new(file));
        let archive = match open(Patched::new(&file).map_err(damaged_file)?) {
            Ok(archive) => Ok(archive),
            Err(error) => match Patched::without_stale_fields(&file).map_err(damaged_file)? {
                Some(patched) => open(patched),
                None => Err(error),
            },
        };
        let mut archive = match archive {
            Ok(archive) => archive,
            Err(error) => {
                budget.faults.pass(input, Err(failed(error)))?;
                return self.cut_zip(&file, input, &counters, &budget, depth, visit);
            }
        };
        if let Some(max_held_bytes) = self.office_bytes.filter(|_| self.is_wanted(&input.path)) {
            let limits = Limits { budget: &budget, counters: &counters, max_held_bytes };
            if let Some(mut opened) = office::open_zip(&mut archive, input, limits)? {
                budget.add_disk_bytes(file_bytes);
                let head = opened.head().map_err(|error| opened.failed(input, &error))?;
                return visit(opened, input, &head);
            }
        }
        let list_at = list.map_or(archive.central_directory_start(), |list| list.at);
        let listed = Listed::read(&file, list_at).map_err(damaged_file)?;
        self.num_replaced += listed.num_repeated;
        if listed.num_names > archive.len() as u64 {
            let error = io::Error::other("the end of its list of members states too few of them");
            budget.faults.pass(input, Err(damaged(&budget.faults, input, Kind::Zip, &error)))?;
        }
        if archive.offset() > 0 && begins_with_member(&file).map_err(damaged_file)? {
            budget.faults.note(
                input,
                Failure::new(format!(
                    "{}: another zip file stands in front of this one, and its members are left out; split the \
                     file there, or pass {RAW}",
                    input.shown()
                )),
            );
        }
        for idx in 0..archive.len() {
            let packed = match archive.by_index(idx) {
                Ok(packed) => packed,
                Err(error) => {
                    budget.faults.pass(input, Err(failed(error)))?;
                    continue;
                }
            };
            let packed_bytes = packed.compressed_size().min(file_bytes);
            let name = name(&packed, &listed.from_unix);
            self.zip_member(Named { packed, name }, input, &counters, &budget, depth, visit)?;
            budget.add_disk_bytes(packed_bytes);
        }
        Ok(())
    }

    /// Reads `opened`, which is RTF, as text, or as it is if it is broken.
    pub(super) fn rtf(&mut self, mut opened: Opened<'_>, input: &Input, head: &[u8], visit: &mut Visit<'_>) -> Outcome {
        let Some(max_held_bytes) = self.office_bytes.filter(|_| self.is_wanted(&input.path)) else {
            return visit(opened, input, head);
        };
        let budget = opened.budget.clone();
        let file = seekable(&mut opened, input)?;
        let failed = |error: io::Error| opened.failed(input, &error);
        let file_bytes = file.metadata().map_err(failed)?.len();
        let counters = budget.counters(file_bytes);
        let limits = Limits { budget: &budget, counters: &counters, max_held_bytes };
        match office::open_rtf(&mut BufReader::new(&file), input, limits)? {
            Some(mut text) => {
                budget.add_disk_bytes(file_bytes);
                let head = text.head().map_err(|error| text.failed(input, &error))?;
                visit(text, input, &head)
            }
            None => {
                let mut file = file;
                file.rewind().map_err(|error| opened.failed(input, &error))?;
                opened.reader = Box::new(BufReader::new(file));
                visit(opened, input, head)
            }
        }
    }

    /// Reads the members of the zip file `input` without its list of members, up to the first one whose
    /// length does not stand before it. The last one may be cut.
    fn cut_zip(
        &mut self,
        mut file: &File,
        input: &Input,
        counters: &Counters,
        budget: &Budget,
        depth: u32,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        file.rewind().map_err(|error| damaged(&budget.faults, input, Kind::Zip, &error))?;
        let mut bytes = BufReader::new(file);
        while let Ok(Some(packed)) = read_zipfile_from_stream(&mut bytes) {
            let name = name(&packed, &HashSet::new());
            self.zip_member(Named { packed, name }, input, counters, budget, depth, visit)?;
        }
        Ok(())
    }

    fn zip_member(
        &mut self,
        Named { packed, name }: Named<'_, impl Read>,
        input: &Input,
        counters: &Counters,
        budget: &Budget,
        depth: u32,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        if packed.is_dir() {
            return Ok(());
        }
        if packed.is_symlink() {
            self.num_skipped += 1;
            return Ok(());
        }
        let len_bytes = packed.size();
        let changed = changed(&packed);
        let Some(member) = self.member(input, &name, len_bytes, changed, budget)? else {
            return Ok(());
        };
        let bytes = limited(Box::new(MemberBytes(packed)), counters, budget);
        let outcome = open_member(&member, bytes, true, budget)
            .and_then(|opened| self.visit_below(opened, &member, depth + 1, visit));
        budget.faults.pass(&member, outcome)
    }
}

/// A member with its name.
struct Named<'p, R: Read> {
    packed: ZipFile<'p, R>,
    name: String,
}

/// Returns true if `file` begins with a member of a zip file.
///
/// # Errors
/// The errors of the disk.
fn begins_with_member(file: &File) -> io::Result<bool> {
    has_at(file, 0, MEMBER)
}

/// Returns the name of a member: in UTF-8 if its bytes are, as Unix and macOS write it also without saying so,
/// or else in code page 437. Other bytes of Unix stay, as in tar. The crate puts the Unicode path of Info-ZIP in place
/// of these bytes.
fn name(packed: &ZipFile<'_, impl Read>, from_unix: &HashSet<Vec<u8>>) -> String {
    let bytes = packed.name_raw();
    let stays = str::from_utf8(bytes).is_ok() || from_unix.contains(bytes);
    path_text(if stays { bytes } else { packed.name().as_bytes() }).into_owned()
}

/// Returns the time at which a member of a zip file was last changed: that of Unix, or that of a clock whose
/// zone is not stated.
fn changed(packed: &ZipFile<'_, impl Read>) -> Option<SystemTime> {
    let unix = packed.extra_data_fields().find_map(|field| match field {
        ExtraField::ExtendedTimestamp(times) => times.mod_time(),
        _ => None,
    });
    if let Some(seconds) = unix {
        return since_1970(seconds.into());
    }
    let shown = packed.last_modified().filter(|time| *time != zip::DateTime::default())?;
    let day = NaiveDate::from_ymd_opt(shown.year().into(), shown.month().into(), shown.day().into())?;
    let hour = shown.hour();
    let minute = shown.minute();
    let second = shown.second();
    let time = day.and_hms_opt(hour.into(), minute.into(), second.into())?;
    u64::try_from(time.and_utc().timestamp()).ok().and_then(since_1970)
}

/// The entries in the list of members. The reader of zip keeps one of those with the same name.
struct Listed {
    num_names: u64,
    /// Entries with the name of an earlier one.
    num_repeated: u64,
    /// Names that Unix wrote, and that are not UTF-8.
    from_unix: HashSet<Vec<u8>>,
}

impl Listed {
    /// Reads the list of `file` that begins at `start`.
    fn read(file: &File, start: u64) -> io::Result<Self> {
        let mut names = HashSet::new();
        let mut from_unix = HashSet::new();
        let mut num_repeated = 0;
        let mut list = BufReader::new(file);
        list.seek(SeekFrom::Start(start))?;
        let mut entry = [0; ENTRY.1];
        while list.read_exact(&mut entry).is_ok() && entry.starts_with(ENTRY.0) {
            let [name_bytes, extra_bytes, comment_bytes] =
                LENGTHS.map(|at| u16::from_le_bytes([entry[at], entry[at + 1]]));
            let mut name = vec![0; name_bytes.into()];
            if list.read_exact(&mut name).is_err() {
                break;
            }
            if UNIX.contains(&entry[HOST]) && str::from_utf8(&name).is_err() {
                from_unix.insert(name.clone());
            }
            num_repeated += u64::from(!names.insert(name));
            list.seek_relative(i64::from(extra_bytes) + i64::from(comment_bytes))?;
        }
        Ok(Self { num_names: names.len() as u64, num_repeated, from_unix })
    }
}

/// A zip file on a disk, with bytes that read as [`UNKNOWN`].
pub struct Patched<'a> {
    file: &'a File,
    at: u64,
    /// Places of these bytes, in order.
    places: Vec<u64>,
}

impl<'a> Patched<'a> {
    /// Reads `file` as it is.
    ///
    /// # Errors
    /// The errors of the disk.
    pub fn new(mut file: &'a File) -> io::Result<Self> {
        file.rewind()?;
        Ok(Self { file, at: 0, places: Vec::new() })
    }

    /// Reads `file` without its stale fields. Returns none if it has no such fields.
    ///
    /// # Errors
    /// The errors of the disk.
    pub fn without_stale_fields(file: &'a File) -> io::Result<Option<Self>> {
        let places = stale_fields(file)?;
        let patched = Self { places, ..Self::new(file)? };
        Ok(Some(patched).filter(|patched| !patched.places.is_empty()))
    }
}

impl Read for Patched<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(bytes)?;
        let first = self.places.partition_point(|place| *place < self.at);
        for place in &self.places[first..] {
            let byte = usize::try_from(*place - self.at).ok().and_then(|at| bytes[..len].get_mut(at));
            let Some(byte) = byte else { break };
            *byte = UNKNOWN;
        }
        self.at += len as u64;
        Ok(len)
    }
}

impl Seek for Patched<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.at = self.file.seek(to)?;
        Ok(self.at)
    }
}

/// Returns the places of the ids of fields that do not fit, two bytes each.
fn stale_fields(file: &File) -> io::Result<Vec<u64>> {
    let Some(found) = List::find(file)? else { return Ok(Vec::new()) };
    let mut list = BufReader::new(file);
    let mut at = list.seek(SeekFrom::Start(found.at))?;
    let mut places = Vec::new();
    let mut entry = [0; ENTRY.1];
    while list.read_exact(&mut entry).is_ok() && entry.starts_with(ENTRY.0) {
        let [name_bytes, extra_bytes, comment_bytes] =
            LENGTHS.map(|at| usize::from(u16::from_le_bytes([entry[at], entry[at + 1]])));
        let mut texts = vec![0; name_bytes + extra_bytes + comment_bytes];
        if list.read_exact(&mut texts).is_err() {
            break;
        }
        let (name, rest) = texts.split_at(name_bytes);
        let mut fields = &rest[..extra_bytes];
        let mut field_at = at + (ENTRY.1 + name_bytes) as u64;
        while let [id, more_id, len, more_len, behind @ ..] = fields {
            let len = usize::from(u16::from_le_bytes([*len, *more_len]));
            let content = behind.get(..len).unwrap_or(behind);
            let is_stale = match u16::from_le_bytes([*id, *more_id]) {
                NAME_FIELD => !fits(content, name),
                // Comments are not read.
                COMMENT_FIELD => true,
                _ => false,
            };
            if is_stale {
                places.extend([field_at, field_at + 1]);
            }
            fields = &behind[content.len()..];
            field_at += 4 + len as u64;
        }
        at += (ENTRY.1 + texts.len()) as u64;
    }
    Ok(places)
}

/// Returns true if a field is that of the name.
fn fits(field: &[u8], name: &[u8]) -> bool {
    let Some((head, text)) = field.split_at_checked(FIELD_HEAD_BYTES) else { return false };
    let mut sum = Crc::new();
    sum.update(name);
    head[1..] == sum.sum().to_le_bytes() && str::from_utf8(text).is_ok()
}

/// The list of members, as its end tells it.
#[derive(Clone, Copy)]
struct List {
    /// Place in the file, which the length of the list tells.
    at: u64,
    /// Bytes in front of the zip file, which the places of its members do not count.
    front_bytes: u64,
}

impl List {
    /// Finds the list of `file`. Returns none if nothing begins like a list where it ought to be: the list is
    /// empty, or its end is damaged.
    ///
    /// # Errors
    /// The errors of the disk.
    fn find(mut file: &File) -> io::Result<Option<Self>> {
        let (tail_at, tail) = tail(file)?;
        let Some(end) = memchr::memmem::rfind(&tail, END.0) else { return Ok(None) };
        let mut end_at = tail_at + end as u64;
        let number = |at| u64::from(number_at::<4>(&tail[end..], at).map_or(0, u32::from_le_bytes));
        let mut stated = [number(END_LIST_BYTES), number(END_LIST_BYTES + 4)];
        let (magic, end_bytes, locator_bytes) = END_64;
        if let Some(at) = end_at.checked_sub(end_bytes + locator_bytes) {
            let mut end = [0; 56];
            file.seek(SeekFrom::Start(at))?;
            if file.read_exact(&mut end).is_ok() && end.starts_with(magic) {
                end_at = at;
                let number = |at| number_at::<8>(&end, at).map_or(0, u64::from_le_bytes);
                stated = [number(END_64_LIST_BYTES), number(END_64_LIST_BYTES + 8)];
            }
        }
        let [list_bytes, stated_at] = stated;
        let Some(at) = end_at.checked_sub(list_bytes) else { return Ok(None) };
        let Some(front_bytes) = at.checked_sub(stated_at) else { return Ok(None) };
        Ok(has_at(file, at, ENTRY.0)?.then_some(Self { at, front_bytes }))
    }
}

fn number_at<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}
