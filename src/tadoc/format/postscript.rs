//! Postscript of a `.tadoc` file: 40 bytes whose layout never changes, drawn in
//! [`format`](crate::format::layout).

use crate::error::Result;
use crate::format::cursor::{Cursor, Origin};
use crate::format::header::{
    FORMAT_MAJOR, FORMAT_MINOR, KNOWN_FEATURES, MAGIC, POSTSCRIPT_BYTES, check_version,
};

/// Last bytes of a file, which locate its footer.
pub(super) struct Postscript {
    /// Offset of the footer's first byte.
    pub footer_offset: u64,
    /// Length of the footer in bytes.
    pub footer_len: u32,
    /// Checksum of the footer.
    pub footer_crc32c: u32,
}

impl Postscript {
    /// Parses the last [`POSTSCRIPT_BYTES`] of a `file` of `file_len` bytes.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) for bytes that are not a postscript,
    /// [`Error::Version`](crate::Error::Version) for a later format.
    pub fn parse(file: &str, bytes: &[u8], file_len: u64) -> Result<Self> {
        let offset = file_len - POSTSCRIPT_BYTES as u64;
        let place = Origin { file, section: "postscript", offset };
        let mut cursor = Cursor::new(place, bytes);
        let (footer_offset, footer_len, footer_crc32c) =
            (cursor.u64()?, cursor.u32()?, cursor.u32()?);
        let (features, major, _minor) = (cursor.u64()?, cursor.u16()?, cursor.u16()?);
        let checked_len = POSTSCRIPT_BYTES - cursor.remaining();
        let crc32c = cursor.u32()?;
        if cursor.take(MAGIC.len())? != MAGIC {
            let reason = "expected the magic of a .tadoc file at the end; is it one, and whole?";
            return Err(place.fault(checked_len + 4, reason));
        }
        place.verify(&bytes[..checked_len], crc32c)?;
        check_version(file, "format", (FORMAT_MAJOR, KNOWN_FEATURES), (major, features))?;
        if footer_offset.checked_add(u64::from(footer_len)) != Some(offset) {
            let reason = format!(
                "expected a footer that ends here, got {footer_len} bytes at {footer_offset}"
            );
            return Err(place.fault(0, reason));
        }
        Ok(Self { footer_offset, footer_len, footer_crc32c })
    }

    /// Returns the bytes that [`parse`](Self::parse) reads.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(POSTSCRIPT_BYTES);
        out.extend(self.footer_offset.to_le_bytes());
        out.extend(self.footer_len.to_le_bytes());
        out.extend(self.footer_crc32c.to_le_bytes());
        out.extend(KNOWN_FEATURES.to_le_bytes());
        out.extend(FORMAT_MAJOR.to_le_bytes());
        out.extend(FORMAT_MINOR.to_le_bytes());
        out.extend(crc32c::crc32c(&out).to_le_bytes());
        out.extend(MAGIC);
        out
    }
}
