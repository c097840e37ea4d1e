//! Zip files: how one is told, also behind other bytes, and the names and times of its members.
//!
//! ```text
//! (program) │ PK 3 4: member │ … │ PK 1 2: entry of the list │ … │ PK 5 6: end of the list │ comment
//! ```
//!
//! Source: APPNOTE.TXT 6.3.10 (PKWARE), 4.3 and appendix D; Info-ZIP, extrafld.txt.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::time::SystemTime;

use chrono::NaiveDate;
use memchr::memmem;
use tadoc::format::path_text;
use zip::ExtraField;
use zip::read::ZipFile;

use super::open::Opened;
use super::unsearchable::is_script;
use super::zip_list::{END, END_LIST_BYTES, ENTRY, LENGTHS, tail};
use crate::inputs::{Input, Source, since_1970};

/// First bytes of a zip file, of one without members, and of the first of several parts.
const MAGICS: [&[u8]; 4] =
    [b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08PK\x03\x04", b"PK00PK\x03\x04"];
/// First bytes of programs: of Windows, of Unix, and scripts.
const PROGRAMS: [&[u8]; 3] = [b"MZ", b"\x7fELF", b"#!"];
/// Bytes of a script in front of a zip file, where it is no file on a disk.
const MAX_SCRIPT_BYTES: usize = 64 << 10;
/// Ends of the names of zip files and of programs that unpack themselves.
const NAMES: [&str; 3] = [".zip", ".exe", ".sfx"];

/// Returns true if `head` begins a zip file.
pub fn is_zip(head: &[u8]) -> bool {
    MAGICS.iter().any(|magic| head.starts_with(magic))
}

/// Returns true if a zip file may stand behind `head`: the input has the name of one, is a program on a disk, or a
/// script with a member behind it.
///
/// # Errors
/// The script cannot be read.
pub fn may_be_behind(opened: &mut Opened<'_>, input: &Input, head: &[u8]) -> io::Result<bool> {
    let name = input.path.to_ascii_lowercase();
    let is_on_disk = matches!(input.source, Source::File(_)) && opened.codec.is_none();
    let is_program = PROGRAMS.iter().any(|magic| head.starts_with(magic));
    if NAMES.iter().any(|end| name.ends_with(end)) || (is_on_disk && is_program) {
        return Ok(true);
    }
    let has_member = |bytes: &[u8]| memmem::find(bytes, MAGICS[0]).is_some();
    Ok(is_script(head) && has_member(&opened.first_bytes(MAX_SCRIPT_BYTES)?))
}

/// Returns true if `file` ends with the list of members of a zip file. The next byte is the first one then.
///
/// # Errors
/// The errors of the disk.
pub fn is_behind(file: &mut File) -> io::Result<bool> {
    let (magic, end_bytes) = END;
    let (tail_at, tail) = tail(file)?;
    let mut is_zip = false;
    for at in memmem::rfind_iter(&tail, magic) {
        let Some(end) = tail[at..].get(..end_bytes) else { continue };
        let comment_bytes = usize::from(u16::from_le_bytes([end[20], end[21]]));
        if at + end_bytes + comment_bytes != tail.len() {
            continue;
        }
        let size = &end[END_LIST_BYTES..][..4];
        let list_bytes = u64::from(u32::from_le_bytes([size[0], size[1], size[2], size[3]]));
        let end_at = tail_at + at as u64;
        let begins_list = match end_at.checked_sub(list_bytes) {
            _ if list_bytes == u64::from(u32::MAX) => true,
            Some(list_at) if list_bytes > 0 => has_at(file, list_at, ENTRY.0)?,
            _ => false,
        };
        is_zip |= begins_list;
    }
    file.rewind()?;
    Ok(is_zip)
}

/// Returns true if the bytes of `file` from `at` are `magic`.
fn has_at(mut file: &File, at: u64, magic: &[u8]) -> io::Result<bool> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(magic.len() as u64).read_to_end(&mut bytes)?;
    Ok(bytes == magic)
}

/// Returns true if `file` begins with a member of a zip file.
///
/// # Errors
/// The errors of the disk.
pub fn begins_with_member(file: &File) -> io::Result<bool> {
    has_at(file, 0, MAGICS[0])
}

/// Returns the name of a member: in UTF-8 if its bytes are, as Unix and macOS write it also without saying so,
/// or else in code page 437. The crate puts the Unicode path of Info-ZIP in place of these bytes.
pub fn name(packed: &ZipFile<'_, impl Read>) -> String {
    match str::from_utf8(packed.name_raw()) {
        Ok(name) => path_text(name.as_bytes()).into_owned(),
        Err(_) => path_text(packed.name().as_bytes()).into_owned(),
    }
}

/// Returns the time at which a member of a zip file was last changed: that of Unix, or that of a clock whose
/// zone is not stated.
pub fn changed(packed: &ZipFile<'_, impl Read>) -> Option<SystemTime> {
    let unix = packed.extra_data_fields().find_map(|field| match field {
        ExtraField::ExtendedTimestamp(times) => times.mod_time(),
        _ => None,
    });
    if let Some(seconds) = unix {
        return since_1970(seconds.into());
    }
    let shown = packed.last_modified().filter(|time| *time != zip::DateTime::default())?;
    let day =
        NaiveDate::from_ymd_opt(shown.year().into(), shown.month().into(), shown.day().into())?;
    let (hour, minute, second) = (shown.hour(), shown.minute(), shown.second());
    let time = day.and_hms_opt(hour.into(), minute.into(), second.into())?;
    u64::try_from(time.and_utc().timestamp()).ok().and_then(since_1970)
}

/// Returns the number of entries in the list of members of a zip file, which begins at `start`. The reader of
/// zip keeps one of those with the same name.
pub fn num_listed(file: &File, start: u64) -> io::Result<u64> {
    let (magic, mut num) = (ENTRY.0, 0);
    let mut list = BufReader::new(file);
    list.seek(SeekFrom::Start(start))?;
    let mut entry = [0; ENTRY.1];
    while list.read_exact(&mut entry).is_ok() && entry.starts_with(magic) {
        num += 1;
        let len = |at: usize| i64::from(u16::from_le_bytes([entry[at], entry[at + 1]]));
        list.seek_relative(LENGTHS.map(len).iter().sum())?;
    }
    Ok(num)
}
