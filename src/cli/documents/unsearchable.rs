//! Recognises inputs whose bytes are stored and cannot be searched: packed formats that are not unpacked,
//! and UTF-16. The user gets a warning.
//!
//! Formats are recognised by their first bytes, in members of archives, too.

use std::collections::BTreeMap;

use crate::display;
use crate::inputs::Input;

/// A format: its name behind a number of files, its first bytes, and the way to searchable text.
struct Kind {
    name: &'static str,
    magics: &'static [&'static [u8]],
    remedy: &'static str,
}

const KINDS: [Kind; 5] = [
    Kind {
        name: "packed as 7z",
        magics: &[b"7z\xbc\xaf\x27\x1c"],
        remedy: "unpack first (7z x FILE), or pass --no-decompress if the bytes are meant",
    },
    Kind {
        name: "packed as rar",
        magics: &[b"Rar!\x1a\x07"],
        remedy: "unpack first (unrar x FILE), or pass --no-decompress if the bytes are meant",
    },
    Kind {
        name: "packed as compress (.Z)",
        magics: &[b"\x1f\x9d"],
        remedy: "unpack first (gzip -dc FILE | tadoc ingest -), or pass --no-decompress if the bytes are meant",
    },
    Kind {
        name: "packed as lzma",
        // The usual properties, and windows from 64 KiB to 64 MiB.
        magics: &[
            b"]\0\0\x01\0",
            b"]\0\0\x02\0",
            b"]\0\0\x04\0",
            b"]\0\0\x08\0",
            b"]\0\0\x10\0",
            b"]\0\0\x20\0",
            b"]\0\0\x40\0",
            b"]\0\0\x80\0",
            b"]\0\0\0\x01",
            b"]\0\0\0\x02",
            b"]\0\0\0\x04",
        ],
        remedy: "unpack first (xz -dc FILE | tadoc ingest -), or pass --no-decompress if the bytes are meant",
    },
    Kind {
        name: "in UTF-16",
        magics: &[b"\xff\xfe", b"\xfe\xff"],
        remedy: "pass --charset auto to store the text, or --charset keep if the bytes are meant",
    },
];

fn kind_idx(head: &[u8]) -> Option<usize> {
    KINDS.iter().position(|kind| kind.magics.iter().any(|magic| head.starts_with(magic)))
}

/// The unsearchable inputs so far: for each kind, their number and the name of the first.
#[derive(Default)]
pub struct Unsearchable(BTreeMap<usize, (u64, String)>);

impl Unsearchable {
    /// Counts `input`, which begins with `head`, if it is of such a kind.
    pub fn count(&mut self, input: &Input, head: &[u8]) {
        if let Some(kind_idx) = kind_idx(head) {
            self.0.entry(kind_idx).or_insert_with(|| (0, input.shown())).0 += 1;
        }
    }

    /// Returns one warning for each kind.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(&kind_idx, (count, first)): (&usize, &(u64, String))| {
            let Kind { name, remedy, .. } = KINDS[kind_idx];
            let files = display::plural(*count, "file");
            format!(
                "{files} {name} stored as the bytes, which nobody can search ({first}); {remedy}"
            )
        };
        self.0.iter().map(warning).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_told_by_their_first_bytes() {
        let kind = |head: &[u8]| kind_idx(head).map(|kind_idx| KINDS[kind_idx].name);
        assert_eq!(kind(b"7z\xbc\xaf\x27\x1c..."), Some("packed as 7z"));
        assert_eq!(kind(b"\x1f\x9d"), Some("packed as compress (.Z)"));
        assert_eq!(kind(b"]\0\0\x80\0\xff\xff"), Some("packed as lzma"));
        assert_eq!(kind(b"\xfe\xff\0a"), Some("in UTF-16"));
        for plain in [b"".as_slice(), b"7z", b"]\0\0\0\0", b"Rar! is how rar begins", &[0; 600]] {
            assert_eq!(kind(plain), None, "{plain:?}");
        }
    }
}
