//! Zip files: how one is told, also behind other bytes, and where its list of members stands.
//!
//! ```text
//! (program) │ PK 3 4: member │ … │ PK 1 2: entry of the list │ … │ PK 5 6: end of the list │ comment
//! ```
//!
//! Source: APPNOTE.TXT 6.3.10 (PKWARE), 4.3 and appendix D; Info-ZIP, extrafld.txt.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use memchr::memmem;

use crate::inputs::{Input, Source};
use crate::open::Opened;
use crate::remarks::is_script;

/// First bytes of a member.
pub const MEMBER: &[u8] = b"PK\x03\x04";
/// First bytes of a zip file, of one without members, and of the first of several parts.
const MAGICS: [&[u8]; 4] = [MEMBER, b"PK\x05\x06", b"PK\x07\x08PK\x03\x04", b"PK00PK\x03\x04"];
/// First bytes of programs: of Windows, of Unix, and scripts.
const PROGRAMS: [&[u8]; 3] = [b"MZ", b"\x7fELF", b"#!"];
/// Bytes of a script in front of a zip file, where it is no file on a disk.
const MAX_SCRIPT_BYTES: usize = 64 << 10;
/// Ends of the names of zip files and of programs that unpack themselves.
const NAMES: [&str; 3] = [".zip", ".exe", ".sfx"];

/// First bytes of an entry, and bytes of an entry besides texts.
pub const ENTRY: (&[u8], usize) = (b"PK\x01\x02", 46);
/// First bytes of the end of the list, and its bytes without the comment.
pub const END: (&[u8], usize) = (b"PK\x05\x06", 22);
/// Greatest number of bytes of a comment.
const MAX_COMMENT_BYTES: u64 = 65_535;
/// Place of the size of the list in its end. All bits are set if it stands elsewhere (zip64).
pub const END_LIST_BYTES: usize = 12;

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
    let has_member = |bytes: &[u8]| memmem::find(bytes, MEMBER).is_some();
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
pub fn has_at(mut file: &File, at: u64, magic: &[u8]) -> io::Result<bool> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(magic.len() as u64).read_to_end(&mut bytes)?;
    Ok(bytes == magic)
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
