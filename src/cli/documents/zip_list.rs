//! The list of members of a zip file, with the stale names taken out that the crate `zip` refuses.
//!
//! ```text
//! PK 1 2: entry of the list │ name │ extra fields: 75 70, length, checksum of the name, name in UTF-8 │ …
//! ```
//!
//! Info-ZIP puts a name in UTF-8 into an extra field, and one in a comment likewise. A program that changes the
//! name and not the field leaves a checksum of the name before: the field is to be ignored then (APPNOTE.TXT
//! 6.3.10, 4.6.8 and 4.6.9). The crate takes the whole zip file for damaged. Here such a field gets an id that
//! nobody knows while it is read.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::Crc;

/// First bytes of an entry, and bytes of an entry besides texts.
pub const ENTRY: (&[u8], usize) = (b"PK\x01\x02", 46);
/// Places of the lengths of the texts of an entry: name, extra fields and comment.
pub const LENGTHS: [usize; 3] = [28, 30, 32];
/// First bytes of the end of the list, and its bytes without the comment.
pub const END: (&[u8], usize) = (b"PK\x05\x06", 22);
/// Greatest number of bytes of a comment.
const MAX_COMMENT_BYTES: u64 = 65_535;
/// Place of the size of the list in its end. All bits are set if it stands elsewhere (zip64).
pub const END_LIST_BYTES: usize = 12;
/// First bytes of the end of the list of zip64, and its bytes, with those of its locator behind it.
const END_64: (&[u8], u64, u64) = (b"PK\x06\x06", 56, 20);
/// Place of the size of the list in the end of zip64.
const END_64_LIST_BYTES: usize = 40;
/// Ids of the fields with a name and with a comment in UTF-8.
const NAME_FIELD: u16 = 0x7075;
const COMMENT_FIELD: u16 = 0x6375;
/// Bytes of a field with a name before the name: a version and a checksum.
const FIELD_HEAD_BYTES: usize = 5;
/// Byte of an id that nobody knows.
const UNKNOWN: u8 = 0xff;

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
            let byte =
                usize::try_from(*place - self.at).ok().and_then(|at| bytes[..len].get_mut(at));
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
    let Some(start) = list_start(file)? else { return Ok(Vec::new()) };
    let mut list = BufReader::new(file);
    let mut at = list.seek(SeekFrom::Start(start))?;
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

/// Returns the last bytes of `file`, in which the end of the list stands, and their place.
///
/// # Errors
/// The errors of the disk.
pub fn tail(mut file: &File) -> io::Result<(u64, Vec<u8>)> {
    let len_bytes = file.metadata()?.len();
    let tail_bytes = len_bytes.min(MAX_COMMENT_BYTES + END.1 as u64);
    let tail_at = file.seek(SeekFrom::Start(len_bytes - tail_bytes))?;
    let mut tail = Vec::new();
    file.take(tail_bytes).read_to_end(&mut tail)?;
    Ok((tail_at, tail))
}

/// Returns the place of the list of members, which its end tells.
fn list_start(mut file: &File) -> io::Result<Option<u64>> {
    let (tail_at, tail) = tail(file)?;
    let Some(at) = memchr::memmem::rfind(&tail, END.0) else { return Ok(None) };
    let Some(size) = tail.get(at + END_LIST_BYTES..at + END_LIST_BYTES + 4) else {
        return Ok(None);
    };
    let list_bytes = u32::from_le_bytes([size[0], size[1], size[2], size[3]]);
    let end_at = tail_at + at as u64;
    if list_bytes < u32::MAX {
        return Ok(end_at.checked_sub(list_bytes.into()));
    }
    let (magic, end_bytes, locator_bytes) = END_64;
    let Some(end_at) = end_at.checked_sub(end_bytes + locator_bytes) else { return Ok(None) };
    let mut end = [0; 56];
    file.seek(SeekFrom::Start(end_at))?;
    if file.read_exact(&mut end).is_err() || !end.starts_with(magic) {
        return Ok(None);
    }
    let size = end[END_64_LIST_BYTES..].first_chunk().copied().unwrap_or_default();
    Ok(end_at.checked_sub(u64::from_le_bytes(size)))
}
