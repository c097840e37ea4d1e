//! Recognises inputs in packed formats that are not unpacked. Their packed bytes are stored, and
//! the user gets a warning.
//!
//! Formats are recognised by their first bytes, in members of archives, too.

use std::collections::BTreeMap;

use crate::display;
use crate::inputs::Input;

/// A packed format: its name, its first bytes, and the command that unpacks it.
struct Kind {
    name: &'static str,
    magic: &'static [u8],
    unpacked_by: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind { name: "7z", magic: b"7z\xbc\xaf\x27\x1c", unpacked_by: "7z x FILE" },
    Kind { name: "rar", magic: b"Rar!\x1a\x07", unpacked_by: "unrar x FILE" },
    Kind {
        name: "compress (.Z)",
        magic: b"\x1f\x9d",
        unpacked_by: "gzip -dc FILE | tadoc ingest -",
    },
];

fn kind_idx(head: &[u8]) -> Option<usize> {
    KINDS.iter().position(|kind| head.starts_with(kind.magic))
}

/// The packed inputs found so far: for each kind, their number and the name of the first.
#[derive(Default)]
pub struct Packed(BTreeMap<usize, (u64, String)>);

impl Packed {
    /// Counts `input`, which begins with `head`, if it is packed.
    pub fn count(&mut self, input: &Input, head: &[u8]) {
        if let Some(kind_idx) = kind_idx(head) {
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
    fn kinds_are_told_by_their_first_bytes() {
        let kind = |head: &[u8]| kind_idx(head).map(|kind_idx| KINDS[kind_idx].name);
        assert_eq!(kind(b"7z\xbc\xaf\x27\x1c..."), Some("7z"));
        assert_eq!(kind(b"\x1f\x9d"), Some("compress (.Z)"));
        for plain in [b"".as_slice(), b"7z", b"Rar! is how rar begins", &[0; 600]] {
            assert_eq!(kind(plain), None, "{plain:?}");
        }
    }
}
