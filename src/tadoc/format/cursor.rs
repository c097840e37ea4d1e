//! Reader of untrusted bytes, whose errors name the file, the section and the offset.
//!
//! All multi-byte integers are little-endian. Variable-length integers are LEB128 (7 bits in each
//! byte, low bits first, at most 10 bytes). No allocation depends on a number from the bytes,
//! except in [`Cursor::unpack`], which receives a limit from its caller.
//!
//! ```
//! use tadoc::format::cursor::{Cursor, Origin, push_varint};
//!
//! let mut bytes = vec![7];
//! push_varint(&mut bytes, 300);
//! let place = Origin { file: "notes.tadoc", section: "grammar", offset: 64 };
//! let mut cursor = Cursor::new(place, &bytes);
//! assert_eq!((cursor.u8()?, cursor.varint()?), (7, 300));
//! assert!(cursor.u8().unwrap_err().to_string().starts_with("notes.tadoc: section grammar"));
//! # Ok::<(), tadoc::Error>(())
//! ```

use std::cell::RefCell;

use zstd::bulk::Decompressor;

use crate::error::{Error, Result};

thread_local! {
    /// Unpacks the streams of a thread. It clears 95 KB when it is made, more than most streams
    /// have.
    static UNPACKER: RefCell<Decompressor<'static>> = RefCell::default();
}

/// Origin of some bytes, for error messages.
#[derive(Debug, Clone, Copy)]
pub struct Origin<'a> {
    /// Location of the file.
    pub file: &'a str,
    /// Name of the section.
    pub section: &'static str,
    /// Offset of the section in the file.
    pub offset: u64,
}

impl Origin<'_> {
    /// Returns the error for a fault `at` bytes into the section.
    pub fn fault(&self, at: usize, reason: impl Into<String>) -> Error {
        Error::Format {
            file: self.file.into(),
            section: self.section,
            offset: self.offset.saturating_add(at as u64),
            reason: reason.into(),
        }
    }

    /// Checks `bytes`, which lie at this place, against their checksum.
    pub fn verify(&self, bytes: &[u8], expected: u32) -> Result<()> {
        let got = crc32c::crc32c(bytes);
        if got == expected {
            return Ok(());
        }
        let file = self.file.into();
        let section = self.section;
        let offset = self.offset;
        Err(Error::Checksum { file, section, offset, expected, got })
    }
}

/// Read position in the bytes of one section.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    place: Origin<'a>,
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of `bytes`, which lie at `place`.
    pub fn new(place: Origin<'a>, bytes: &'a [u8]) -> Self {
        Self { place, bytes, position: 0 }
    }

    /// Returns the number of bytes not yet read.
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    /// Returns the error for a fault at the current position.
    pub fn fault(&self, reason: impl Into<String>) -> Error {
        self.place.fault(self.position, reason)
    }

    /// Reads the next `len` bytes.
    #[inline]
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        if len > self.remaining() {
            let left = self.remaining();
            return Err(self.fault(format!("expected {len} more bytes, {left} are left")));
        }
        let start = self.position;
        self.position += len;
        Ok(&self.bytes[start..self.position])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Reads a byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(u8::from_le_bytes(self.array()?))
    }

    /// Reads an integer of two bytes.
    pub fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    /// Reads an integer of four bytes.
    pub fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    /// Reads an integer of eight bytes.
    pub fn u64(&mut self) -> Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a text of at most 255 bytes with its length in front.
    pub fn short_text(&mut self) -> Result<String> {
        let len = usize::from(self.u8()?);
        match std::str::from_utf8(self.take(len)?) {
            Ok(text) => Ok(text.into()),
            Err(_) => Err(self.fault("expected a name in UTF-8")),
        }
    }

    /// Reads a LEB128 integer.
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        if let Some(&byte @ ..0x80) = self.bytes.get(self.position) {
            self.position += 1;
            return Ok(byte.into());
        }
        self.long_varint()
    }

    /// Reads a LEB128 integer, in general of several bytes.
    fn long_varint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.fault("expected an integer of at most 10 bytes"))
    }

    /// Reads a stream written by [`pack`] and unpacks it to at most `max_len` bytes.
    pub fn unpack(&mut self, max_len: usize) -> Result<Vec<u8>> {
        let at = self.clone();
        let raw_len = self.varint()?;
        let packed_len = self.varint()?;
        let packed = self.take(usize::try_from(packed_len).unwrap_or(usize::MAX))?;
        // zstd needs at least 4 bytes for a block of 128 KiB.
        let plausible = (packed.len() as u64).saturating_mul(1 << 15).saturating_add(1 << 10);
        if raw_len > plausible.min(max_len as u64) {
            let reason = format!("expected a stream of at most {max_len} bytes, {raw_len} declared");
            return Err(at.fault(reason));
        }
        let raw = UNPACKER
            .with_borrow_mut(|unpacker| unpacker.decompress(packed, raw_len as usize))
            .map_err(|e| at.fault(format!("expected a zstd frame: {e}")))?;
        if raw.len() as u64 != raw_len {
            let got = raw.len();
            return Err(at.fault(format!("expected {raw_len} bytes from a zstd frame, got {got}")));
        }
        Ok(raw)
    }

    /// Leaves out a stream written by [`pack`].
    pub fn skip_packed(&mut self) -> Result<()> {
        let _raw_len = self.varint()?;
        let packed_len = self.varint()?;
        self.take(usize::try_from(packed_len).unwrap_or(usize::MAX)).map(drop)
    }

    /// Returns the bytes that `pass` leaves behind.
    pub fn behind(&mut self, pass: impl FnOnce(&mut Self) -> Result<()>) -> Result<&'a [u8]> {
        let start = self.position;
        pass(self)?;
        Ok(&self.bytes[start..self.position])
    }

    /// Checks that all bytes were read.
    pub fn finish(self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(self.fault(format!("expected the end of the section, {left} bytes are left"))),
        }
    }
}

/// Appends `value` as LEB128.
#[inline]
pub fn push_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends `raw` as one zstd frame, with its raw and its packed length in front.
pub fn pack(out: &mut Vec<u8>, raw: &[u8], level: i32) -> Result<()> {
    let packed = zstd::bulk::compress(raw, level).map_err(|e| Error::io("compressing with zstd", e))?;
    push_varint(out, raw.len() as u64);
    push_varint(out, packed.len() as u64);
    out.extend_from_slice(&packed);
    Ok(())
}
