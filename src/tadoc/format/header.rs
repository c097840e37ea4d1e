//! First and last bytes of a `.tadoc` file: magic and version, drawn in
//! [`layout`](crate::format::layout).

use crate::error::{Error, Result};
use crate::format::cursor::Origin;

/// First and last bytes of a file. A byte above 0x7f and a line end of two characters reveal a
/// transfer that treated the file as text.
pub(super) const MAGIC: [u8; 8] = *b"\x89TADOC\r\n";
pub(super) const FORMAT_MAJOR: u16 = 1;
pub(super) const FORMAT_MINOR: u16 = 0;
/// Required features that this build knows. None exist yet.
pub(super) const KNOWN_FEATURES: u64 = 0;
pub(super) const HEADER_BYTES: usize = 64;
/// Distance from the end of the file to the version in the postscript.
pub(super) const VERSION_FROM_END: usize = 14;
pub(super) const POSTSCRIPT_BYTES: usize = 40;

/// Refuses a file of a `format` that needs a later version. Known and required are each a major
/// version and bits of features.
pub fn check_version(
    file: &str,
    format: &str,
    (known_major, known_features): (u16, u64),
    (major, features): (u16, u64),
) -> Result<()> {
    let unknown = features & !known_features;
    let (expected, got) = if major != known_major {
        (format!("{format} {known_major}"), format!("{format} {major}"))
    } else if unknown != 0 {
        let bit = unknown.trailing_zeros();
        let expected = match known_features {
            0 => "no required features".to_owned(),
            known => format!("required features below {}", known.ilog2() + 1),
        };
        (expected, format!("required feature {bit}"))
    } else {
        return Ok(());
    };
    Err(Error::Version { file: file.into(), expected, got })
}

/// Returns the first 64 bytes of every file that this build writes.
pub(super) fn header() -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&FORMAT_MAJOR.to_le_bytes());
    header[10..12].copy_from_slice(&FORMAT_MINOR.to_le_bytes());
    header[16..24].copy_from_slice(&KNOWN_FEATURES.to_le_bytes());
    header
}

/// Checks the header, the first 64 bytes of a file. `bytes` is the header alone, or the header and
/// more bytes that end with the end of the file. In the second case the postscript must name the
/// same minor version.
///
/// # Errors
/// [`Error::Format`] if the header is wrong.
pub fn check_header(file: &str, bytes: &[u8]) -> Result<()> {
    let place = Origin { file, section: "header", offset: 0 };
    let mut expected = header();
    let minor_offset =
        if bytes.len() == HEADER_BYTES { 10 } else { bytes.len().saturating_sub(VERSION_FROM_END) };
    if let Some(minor) = bytes.get(minor_offset..minor_offset + 2) {
        expected[10..12].copy_from_slice(minor);
    }
    match bytes.iter().zip(&expected).position(|(got, expected)| got != expected) {
        None if bytes.len() >= HEADER_BYTES => Ok(()),
        at => Err(place.fault(at.unwrap_or(bytes.len()), "expected the header of a .tadoc file")),
    }
}
