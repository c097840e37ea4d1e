//! Recognises inputs in packed formats that are not unpacked. Their packed bytes are stored, and
//! the user gets a warning.
//!
//! Formats are recognised by their first bytes, after gzip or zstd is decompressed: a `.tar.gz`
//! counts as a tar archive. The first 262 bytes of each input are examined.

use std::collections::BTreeMap;

use crate::display;
use crate::inputs::Input;

/// Offset of the magic bytes of a tar archive.
const TAR_AT: usize = 257;
const HEAD_BYTES: usize = TAR_AT + b"ustar".len();

/// A packed format: its name, its magic bytes and their offset, and the command that unpacks it.
struct Kind {
    name: &'static str,
    at: usize,
    magic: &'static [u8],
    unpacked_by: &'static str,
}

const KINDS: [Kind; 9] = [
    Kind { name: "xz", at: 0, magic: b"\xfd7zXZ\0", unpacked_by: "xz -dc FILE | tadoc ingest -" },
    Kind {
        name: "bzip2",
        at: 4,
        // These follow `BZh` and a digit. They are the digits of pi. A file without blocks has the
        // digits of its square root instead.
        magic: b"1AY&SY",
        unpacked_by: "bzip2 -dc FILE | tadoc ingest -",
    },
    Kind {
        name: "lz4",
        at: 0,
        magic: b"\x04\x22\x4d\x18",
        unpacked_by: "lz4 -dc FILE | tadoc ingest -",
    },
    Kind { name: "lzip", at: 0, magic: b"LZIP\x01", unpacked_by: "lzip -dc FILE | tadoc ingest -" },
    Kind { name: "7z", at: 0, magic: b"7z\xbc\xaf\x27\x1c", unpacked_by: "7z x FILE" },
    Kind { name: "rar", at: 0, magic: b"Rar!\x1a\x07", unpacked_by: "unrar x FILE" },
    Kind { name: "zip", at: 0, magic: b"PK\x03\x04", unpacked_by: "unzip FILE" },
    Kind {
        name: "compress (.Z)",
        at: 0,
        magic: b"\x1f\x9d",
        unpacked_by: "gzip -dc FILE | tadoc ingest -",
    },
    Kind { name: "tar", at: TAR_AT, magic: b"ustar", unpacked_by: "tar -xf FILE" },
];

/// The first bytes of an input.
#[derive(Default)]
pub struct Head {
    bytes: Vec<u8>,
}

impl Head {
    /// Adds the next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = HEAD_BYTES - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..room.min(bytes.len())]);
    }

    fn kind_idx(&self) -> Option<usize> {
        KINDS.iter().position(|kind| {
            self.bytes.get(kind.at..).is_some_and(|bytes| bytes.starts_with(kind.magic))
        })
    }
}

/// The packed inputs found so far: for each kind, their number and the name of the first.
#[derive(Default)]
pub struct Packed(BTreeMap<usize, (u64, String)>);

impl Packed {
    /// Counts `input`, which begins with `head`, if it is packed.
    pub fn count(&mut self, input: &Input, head: &Head) {
        if let Some(kind_idx) = head.kind_idx() {
            self.0.entry(kind_idx).or_insert_with(|| (0, input.shown())).0 += 1;
        }
    }

    /// Returns one warning for each packed format that was stored.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(&kind_idx, (count, first)): (&usize, &(u64, String))| {
            let Kind { name, unpacked_by, .. } = KINDS[kind_idx];
            let files = display::plural(*count, "file");
            format!(
                "{files} packed as {name} stored as the packed bytes, which nobody can search ({first}); \
                 unpack first ({unpacked_by}), or pass --no-decompress if the bytes are meant"
            )
        };
        self.0.iter().map(warning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_first_bytes_however_these_come() {
        let kind = |pieces: &[&[u8]]| {
            let mut head = Head::default();
            pieces.iter().for_each(|piece| head.push(piece));
            head.kind_idx().map(|kind_idx| KINDS[kind_idx].name)
        };
        assert_eq!(kind(&[b"\xfd7", b"zXZ\0more"]), Some("xz"));
        assert_eq!(kind(&[b"BZh91AY&SY..."]), Some("bzip2"));
        assert_eq!(kind(&[&[0; 200], &[0; 57], b"ustar\x0000", &[0; 600]]), Some("tar"));
        assert_eq!(kind(&[b"PK\x03\x04"]), Some("zip"));
        for plain in [b"".as_slice(), b"PK", b"BZh9 is how bzip2 begins", &[0; 600]] {
            assert_eq!(kind(&[plain]), None, "{plain:?}");
        }
    }
}
