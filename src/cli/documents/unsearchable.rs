//! Recognises inputs whose bytes are stored and cannot be searched: packed formats that are not unpacked,
//! UTF-16, and other binary data; and files whose names say that they are packed. The user gets a warning.
//!
//! Formats are recognised by their first bytes, in members of archives, too. A NUL there means binary data.

use std::collections::BTreeMap;

use crate::display;
use crate::inputs::Input;

/// A format: its name behind a number of files, its first bytes, and the way to searchable text.
struct Kind {
    name: &'static str,
    magics: &'static [&'static [u8]],
    remedy: &'static str,
}

const KINDS: [Kind; 7] = [
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
    Kind {
        name: "of binary data",
        magics: &[b"%PDF-"],
        remedy: "leave such files out (--glob '*.txt' takes others), or store their text (pdftotext FILE)",
    },
    Kind {
        name: "with the name of a packed file, and other bytes,",
        magics: &[],
        remedy: "if the file is damaged, make it anew; if it is plain text, nothing is wrong",
    },
];
/// Places of the last two kinds.
const BINARY: usize = 5;
const MISNAMED: usize = 6;

/// Ends of the names of packed files.
const PACKED_NAMES: [&str; 18] = [
    ".gz", ".tgz", ".zst", ".xz", ".txz", ".bz2", ".tbz2", ".lz4", ".lz", ".lzma", ".z", ".zip",
    ".tar", ".7z", ".rar", ".ar", ".cpio", ".cab",
];

/// Returns the place of the kind of an input with the name `path` that begins with `head`. `is_unpacked` tells
/// if the bytes were packed.
fn kind_idx(path: &str, head: &[u8], is_unpacked: bool) -> Option<usize> {
    let is_of = |kind: &Kind| kind.magics.iter().any(|magic| head.starts_with(magic));
    let path = path.to_ascii_lowercase();
    let is_named_so = || PACKED_NAMES.iter().any(|end| path.ends_with(end));
    KINDS.iter().position(is_of).or_else(|| match head {
        [] => None,
        _ if !is_unpacked && is_named_so() => Some(MISNAMED),
        _ if head.contains(&0) => Some(BINARY),
        _ => None,
    })
}

/// The unsearchable inputs so far: for each kind, their number and the name of the first.
#[derive(Default)]
pub struct Unsearchable(BTreeMap<usize, (u64, String)>);

impl Unsearchable {
    /// Counts `input`, which begins with `head`, if it is of such a kind. `is_unpacked` tells if it was packed.
    pub fn count(&mut self, input: &Input, head: &[u8], is_unpacked: bool) {
        if let Some(kind_idx) = kind_idx(&input.path, head, is_unpacked) {
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
        let kind = |head: &[u8]| kind_idx("a", head, false).map(|kind_idx| KINDS[kind_idx].name);
        assert_eq!(kind(b"7z\xbc\xaf\x27\x1c..."), Some("packed as 7z"));
        assert_eq!(kind(b"\x1f\x9d"), Some("packed as compress (.Z)"));
        assert_eq!(kind(b"]\0\0\x80\0\xff\xff"), Some("packed as lzma"));
        assert_eq!(kind(b"\xfe\xff\0a"), Some("in UTF-16"));
        for plain in [b"".as_slice(), b"7z", b"]\0\0\0\0", b"Rar! is how rar begins"] {
            assert_eq!(kind(plain), None, "{plain:?}");
        }
        for binary in [&[0; 600][..], b"\x89PNG\r\n\x1a\n\0", b"%PDF-1.7\n"] {
            assert_eq!(kind(binary), Some("of binary data"), "{binary:?}");
        }
        assert_eq!(kind_idx("a.log.GZ", b"plain text", false), Some(MISNAMED));
        assert_eq!(kind_idx("a.log.gz", b"plain text", true), None);
        assert_eq!(kind_idx("a.gz", b"", false), None);
    }
}
