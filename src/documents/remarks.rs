//! Recognises inputs whose bytes are stored and cannot be searched: packed formats that are not unpacked,
//! UTF-16 and UTF-32, of which the user gets a warning; and files whose name says that they are packed while
//! their bytes do not, PDF, binary ones, and texts with bytes that are no UTF-8, of which the user gets a note.
//!
//! Formats are recognised by their first bytes, in members of archives, too, and texts by all of them. A file counts
//! once.
//!
//! [`Tally`] counts the inputs of each such remark and keeps the first as an example. So it does for texts that a
//! character set did not decode: U+FFFD stands for some bytes, or the bytes stay as they are because nobody knows the
//! name. The user gets one note for each character set.

use std::collections::BTreeMap;

use memchr::memchr;

use crate::charset::MARK;
use crate::decoders::is_skippable;
use crate::display;
use crate::inputs::Input;

/// A format: its name behind a number of files, its first bytes, and the way to searchable text.
struct Kind {
    name: &'static str,
    magics: &'static [&'static [u8]],
    remedy: &'static str,
}

const KINDS: [Kind; 10] = [
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
        name: "packed as lz4 of the old kind",
        magics: &[b"\x02\x21\x4c\x18"],
        remedy: "unpack first (lz4 -dc FILE | tadoc ingest -), or pass --no-decompress if the bytes are meant",
    },
    Kind {
        name: "packed as ar",
        magics: &[b"!<arch>\n"],
        remedy: "unpack first (ar x FILE), or pass --no-decompress if the bytes are meant",
    },
    Kind {
        name: "packed as cab",
        magics: &[b"MSCF\0\0\0\0"],
        remedy: "unpack first (cabextract FILE), or pass --no-decompress if the bytes are meant",
    },
    Kind {
        name: "packed as cpio",
        magics: &[b"\xc7\x71", b"0707010", b"0707020", b"0707070"],
        remedy: "unpack first (cpio -id < FILE), or pass --no-decompress if the bytes are meant",
    },
    Kind {
        name: "in UTF-32",
        magics: &[b"\xff\xfe\0\0", b"\0\0\xfe\xff"],
        remedy: "convert first (iconv -f utf-32 FILE | tadoc ingest -), or pass --charset keep if the bytes are \
                 meant",
    },
    Kind {
        name: "in UTF-16",
        magics: &[b"\xff\xfe", b"\xfe\xff"],
        remedy: "pass --charset auto to store the text, or --charset keep if the bytes are meant",
    },
];

/// Ends of the names of packed files, in small letters. `.ar` is also Arabic, so its bytes tell it.
const PACKED_NAMES: [&str; 35] = [
    "gz", "tgz", "zst", "tzst", "zstd", "xz", "txz", "bz2", "tbz", "tbz2", "lz4", "lz", "lzma", "lzo", "tlz", "zip",
    "zipx", "tar", "7z", "rar", "cpio", "cab", "jar", "whl", "epub", "docx", "xlsx", "pptx", "odt", "ods", "sfx",
    "taz", "tz2", "rpm", "deb",
];
/// Ends of the names of packed archives, which are no archives where their unpacked bytes come here.
const PACKED_ARCHIVES: [&str; 7] = ["tgz", "tzst", "txz", "tbz", "tbz2", "tlz", "taz"];
/// First bytes of PDF.
const PDF: &[u8] = b"%PDF-";
/// First bytes of binary files that may have no zero near their beginning.
const BINARY_MAGICS: [&[u8]; 12] = [
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"GIF87a",
    b"GIF89a",
    b"\x7fELF",
    b"OggS",
    b"wOFF",
    b"\x1f\x8b\x08",
    b"\x28\xb5\x2f\xfd",
    b"\xfd7zXZ\0",
    b"\x04\x22\x4d\x18",
    b"PK\x03\x04",
];

/// Of so many bytes that are no text, one is a control character. Of packed bytes, one in ten is.
const MIN_CONTROL_SHARE: usize = 32;

fn kind_idx(head: &[u8]) -> Option<usize> {
    KINDS.iter().position(|kind| kind.magics.iter().any(|magic| head.starts_with(magic)))
}

/// Returns true if `bytes` are no text: they have zeros, or are no UTF-8 and have as many control characters as
/// packed bytes have, which character sets do not use.
fn is_binary(bytes: &[u8]) -> bool {
    if memchr(0, bytes).is_some() {
        return true;
    }
    // A character may be cut at the end.
    let is_utf8 = match str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    let is_control = |byte: &&u8| matches!(**byte, 1..=8 | 0x10..=0x1a | 0x1c..=0x1f | 0x7f);
    !is_utf8 && bytes.iter().filter(is_control).count() * MIN_CONTROL_SHARE > bytes.len()
}

/// Returns true if `bytes` are a part of a text in UTF-8, whose ends may cut a character.
fn is_utf8_part(bytes: &[u8]) -> bool {
    let num_cut = bytes.iter().take(3).take_while(|byte| matches!(**byte, 0x80..=0xbf)).count();
    match str::from_utf8(bytes.get(num_cut..).unwrap_or_default()) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    }
}

/// Returns true if `head` begins a script, which may have packed bytes behind it.
pub fn is_script(head: &[u8]) -> bool {
    head.starts_with(b"#!")
}

/// Returns true if `path` says that the bytes are packed. If they were unpacked, it may say that they are an archive.
fn is_named_packed(path: &str, is_unpacked: bool) -> bool {
    let Some((stem, end)) = path.rsplit_once('.') else { return false };
    let name = end.to_ascii_lowercase();
    if is_unpacked {
        PACKED_ARCHIVES.contains(&name.as_str()) || stem.to_ascii_lowercase().ends_with(".tar")
    } else {
        end == "Z" || PACKED_NAMES.contains(&name.as_str())
    }
}

/// The facts about an input by which its bytes are judged.
#[derive(Debug, Clone, Copy)]
pub struct Judged<'a> {
    /// Its first bytes, after decompression.
    pub head: &'a [u8],
    /// True if it was decompressed.
    pub is_unpacked: bool,
    /// True if the user says which character set it has.
    pub has_charset: bool,
    /// True if its text is stored as the bytes, and may be in UTF-8.
    pub is_kept: bool,
}

/// The unsearchable inputs so far.
#[derive(Default)]
pub struct Unsearchable {
    /// For each kind, their number and the name of the first.
    kinds: BTreeMap<usize, (u64, String)>,
    misnamed: Tally,
    pdf: Tally,
    binary: Tally,
    no_utf8: Tally,
    /// True in a script, behind which packed bytes may stand.
    is_in_script: bool,
    /// True in a text up to the first bytes that are no UTF-8.
    is_in_utf8: bool,
}

impl Unsearchable {
    /// Counts `input` if it is of such a kind.
    pub fn count(&mut self, input: &Input, judged: Judged<'_>) {
        let Judged { head, is_unpacked, has_charset, is_kept } = judged;
        (self.is_in_script, self.is_in_utf8) = (false, false);
        if head.is_empty() {
            return;
        }
        let kind_idx = kind_idx(head).filter(|idx| !has_charset || !KINDS[*idx].name.starts_with("in UTF-16"));
        // Readers of PDF skip what stands before it.
        let start = head.strip_prefix(MARK).unwrap_or(head).trim_ascii_start();
        let is_magic = BINARY_MAGICS.iter().any(|magic| head.starts_with(magic));
        // Texts in UTF-16 have zeros.
        let is_binary = is_magic || is_skippable(head) || (!has_charset && is_binary(head));
        if let Some(kind_idx) = kind_idx {
            self.kinds.entry(kind_idx).or_insert_with(|| (0, input.shown())).0 += 1;
        } else if is_named_packed(&input.path, is_unpacked) {
            self.misnamed.add(1, || input.shown());
        } else if start.starts_with(PDF) {
            self.pdf.add(1, || input.shown());
        } else if is_binary {
            self.binary.add(1, || input.shown());
        } else {
            self.is_in_script = !has_charset && is_script(head);
            self.is_in_utf8 = is_kept;
        }
    }

    /// Takes the next bytes of `input`, the one that was counted last.
    pub fn watch(&mut self, input: &Input, bytes: &[u8]) {
        if self.is_in_script && is_binary(bytes) {
            (self.is_in_script, self.is_in_utf8) = (false, false);
            self.binary.add(1, || input.shown());
        }
        if self.is_in_utf8 && !is_utf8_part(bytes) {
            self.is_in_utf8 = false;
            self.no_utf8.add(1, || input.shown());
        }
    }

    /// Returns one warning for each kind.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(&kind_idx, (count, first)): (&usize, &(u64, String))| {
            let Kind { name, remedy, .. } = KINDS[kind_idx];
            let files = display::plural(*count, "file");
            format!("{files} {name} stored as the bytes, which nobody can search ({first}); {remedy}")
        };
        self.kinds.iter().map(warning).collect()
    }

    /// Returns a note on misnamed files, one on PDF, one on other binary files, and one on texts in no UTF-8.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let misnamed = self.misnamed.first().map(|(count, first)| {
            let files = display::plural(count, "file");
            format!(
                "{files} named as packed, but not packed in a known way, stored as the bytes ({first}); unpack or \
                 rename first, or pass --no-decompress if the bytes are meant"
            )
        });
        let pdf = self.pdf.first().map(|(count, first)| {
            let files = display::plural(count, "PDF file");
            format!(
                "{files} stored as the bytes, whose words are no text ({first}); take the text first \
                 (pdftotext FILE.pdf), or pass --no-decompress if the bytes are meant"
            )
        });
        let binary = self.binary.first().map(|(count, first)| {
            let files = display::plural(count, "binary file");
            format!(
                "{files} stored as the bytes, whose words are no text ({first}); take only texts (--glob '*.txt'), \
                 name the character set if it is text (--charset utf-16le), or pass --no-decompress if the bytes are \
                 meant"
            )
        });
        let no_utf8 = self.no_utf8.first().map(|(count, first)| {
            let files = display::plural(count, "file");
            format!(
                "{files} with bytes that are no UTF-8 stored as they are, so that words end there ({first}); name the \
                 character set of the text (--charset windows-1252), or pass --charset keep if the bytes are meant"
            )
        });
        misnamed.into_iter().chain(pdf).chain(binary).chain(no_utf8)
    }
}

/// Returns a note on rows of JSON with values that the standard does not have.
pub fn odd_rows(rows: &Tally) -> Option<String> {
    let (count, first) = rows.first()?;
    Some(format!(
        "{} with NaN, Infinity or half a character (\\ud83d), which JSON does not have ({first}): NULL and \
         U+FFFD stand for them; write null and whole characters if they matter",
        display::plural(count, "row")
    ))
}

/// Returns a note on messages that were left out because they were being delivered.
pub fn undelivered(messages: &Tally) -> Option<String> {
    let (count, first) = messages.first()?;
    let files = display::plural(count, "file");
    Some(format!("{files} in folders tmp of Maildir left out, which are being delivered ({first})"))
}

/// Most character sets that are named. The names come from the inputs.
const MAX_NAMED: usize = 20;
/// Longest part of a name that is shown.
const MAX_NAME_CHARS: usize = 40;

/// The files so far whose texts were not decoded whole.
#[derive(Debug, Default)]
pub struct Undecoded {
    /// By the character set.
    damaged: BTreeMap<String, Files>,
    /// By the name that nobody knows.
    unknown: BTreeMap<String, Files>,
}

/// A number of files, each counted once.
#[derive(Debug, Default)]
struct Files {
    tally: Tally,
    latest: String,
}

impl Undecoded {
    /// Counts `input`, in which U+FFFD stands for bytes that mean nothing in `charset`.
    pub fn add_damaged(&mut self, charset: &str, input: &Input) {
        add(&mut self.damaged, charset, input);
    }

    /// Counts `input`, which has bytes in `charset`, a name that nobody knows.
    pub fn add_unknown(&mut self, charset: &str, input: &Input) {
        add(&mut self.unknown, charset, input);
    }

    /// Returns a note for each character set.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let damaged = self.damaged.iter().filter_map(|(charset, files)| {
            let (count, first) = files.tally.first()?;
            Some(format!(
                "{} with bytes that mean nothing in {charset}, for which U+FFFD stands ({first}); if that is the \
                 wrong character set, correct its name, or convert first (iconv); --charset keep and --html keep \
                 store the bytes",
                display::plural(count, "file"),
            ))
        });
        let unknown = self.unknown.iter().filter_map(|(charset, files)| {
            let (count, first) = files.tally.first()?;
            Some(format!(
                "{} with texts in {charset}, a character set that is not known, stored as the bytes ({first}); \
                 correct its name, or convert first (iconv -f {charset} -t utf-8)",
                display::plural(count, "file"),
            ))
        });
        damaged.chain(unknown)
    }
}

fn add(charsets: &mut BTreeMap<String, Files>, charset: &str, input: &Input) {
    let shown = input.shown();
    let named = display::plain(&charset.to_ascii_lowercase()).chars().take(MAX_NAME_CHARS).collect();
    let is_full = charsets.len() >= MAX_NAMED && !charsets.contains_key(&named);
    let name = if is_full { "other character sets".to_owned() } else { named };
    let files = charsets.entry(name).or_default();
    if files.latest != shown {
        files.tally.add(1, || shown.clone());
        files.latest = shown;
    }
}

/// A number of things, and the name of the first.
#[derive(Debug, Default)]
pub struct Tally {
    count: u64,
    first: String,
}

impl Tally {
    /// Adds `count` things. `name` is the name of the first of them.
    pub fn add(&mut self, count: u64, name: impl FnOnce() -> String) {
        if self.count == 0 && count > 0 {
            self.first = name();
        }
        self.count += count;
    }

    /// Returns the number and the name of the first, if there are any.
    pub fn first(&self) -> Option<(u64, &str)> {
        (self.count > 0).then_some((self.count, self.first.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Source;

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

    #[test]
    fn bytes_that_are_no_text_are_told() {
        let random = &mut testkit::random::Random(7);
        let mut packed: Vec<u8> = (0..512).map(|_| 1 + random.below(255) as u8).collect();
        assert!(is_binary(&packed) && is_binary(&packed[..64]));
        packed.retain(u8::is_ascii);
        assert!(!is_binary(&packed));
        for text in [
            &b"caf\xe9 cr\xe8me\tna\xefve\r\n"[..],
            b"\x93\xfa\x96{\x8c\xea\x82\xcc\x83e\x83L\x83X\x83g",
            b"\x1b$)C\x0eGQ19\x0f \xff",
            b"a\x01b\x01c\x01d\n",
            "é\u{1}é\u{1}".as_bytes(),
            &"\u{1}é\u{1}é".as_bytes()[..5],
            b"",
        ] {
            assert!(!is_binary(text), "{text:?}");
        }
    }

    #[test]
    fn files_count_once_by_bytes_and_name() {
        let counts = |path: &str, head: &[u8], is_unpacked, has_charset| {
            let input = Input::new(Source::Member(path.to_owned()), path.to_owned(), 0);
            let mut unsearchable = Unsearchable::default();
            unsearchable.count(&input, Judged { head, is_unpacked, has_charset, is_kept: !has_charset });
            let count = |tally: &Tally| tally.first().map_or(0, |(count, _)| count);
            assert_eq!(count(&unsearchable.pdf), u64::from(path.ends_with("pdf")), "{path}");
            (unsearchable.kinds.len(), count(&unsearchable.misnamed), count(&unsearchable.binary))
        };
        assert_eq!(counts("a.txt", b"text", false, false), (0, 0, 0));
        assert_eq!(counts("corpus.ar", b"text", false, false), (0, 0, 0));
        assert_eq!(counts("a.gz", b"", false, false), (0, 0, 0));
        assert_eq!(counts("a.GZ", b"text", false, false), (0, 1, 0));
        assert_eq!(counts("a.Z", b"text", false, false), (0, 1, 0));
        assert_eq!(counts("a.z", b"text", false, false), (0, 0, 0));
        assert_eq!(counts("a.gz", b"text", true, false), (0, 0, 0));
        assert_eq!(counts("a.tgz", b"text", true, false), (0, 1, 0));
        assert_eq!(counts("a.tar.xz", b"te\0t", true, false), (0, 1, 0));
        assert_eq!(counts("a.7z", b"7z\xbc\xaf\x27\x1c\0", false, false), (1, 0, 0));
        assert_eq!(counts("a.txt", b"te\0t", false, false), (0, 0, 1));
        assert_eq!(counts("a.txt", b"te\0t", false, true), (0, 0, 0));
        assert_eq!(counts("a.pdf", b"%PDF-1.4\n", false, true), (0, 0, 0));
        assert_eq!(counts("a", b"\xff\xfea\0", false, false), (1, 0, 0));
        assert_eq!(counts("a", b"\xff\xfea\0", false, true), (0, 0, 0));
        assert_eq!(counts("a", b"\xff\xfe\0\0a\0\0\0", false, true), (1, 0, 0));
        assert_eq!(counts("b.pdf", b"\r\n%PDF-1.4\n", false, true), (0, 0, 0));
        assert_eq!(counts("c.pdf", b"\xef\xbb\xbf%PDF-1.4\n", false, false), (0, 0, 0));
        assert_eq!(counts("a", b"the magic is %PDF-1.4", false, false), (0, 0, 0));
    }

    #[test]
    fn texts_in_another_character_set_count_once() {
        let mut unsearchable = Unsearchable::default();
        let mut count = |parts: &[&[u8]], is_kept: bool| {
            let input = Input::new(Source::Stdin, "p".to_owned(), 0);
            let judged = Judged { head: parts[0], is_unpacked: false, has_charset: !is_kept, is_kept };
            unsearchable.count(&input, judged);
            parts.iter().for_each(|part| unsearchable.watch(&input, part));
            let numbers = [&unsearchable.no_utf8, &unsearchable.binary].map(|tally| tally.count);
            (unsearchable.no_utf8, unsearchable.binary) = Default::default();
            numbers
        };
        assert_eq!(count(&[&b"cafe"[..], b"caf\xe9 caf\xe9", b"\xe9"], true), [1, 0]);
        assert_eq!(count(&[&b"cafe"[..], b"caf\xe9"], false), [0, 0]);
        assert_eq!(count(&["café".as_bytes()], true), [0, 0]);
        let text = "é€\u{1f600}".as_bytes();
        for at in 0..=text.len() {
            assert_eq!(count(&[&text[..at], &text[at..]], true), [0, 0], "{at}");
        }
        assert_eq!(count(&[b"\x93\xfa\x96{"], true), [1, 0]);
        assert_eq!(count(&[&b"#!/bin/sh\n"[..], b"\0\xff"], true), [0, 1]);
        assert_eq!(count(&[b"a\0\xff"], true), [0, 1]);
    }

    #[test]
    fn files_count_once_for_each_character_set() {
        let input = |path: &str| Input::new(Source::Member(path.to_owned()), path.to_owned(), 0);
        let mut undecoded = Undecoded::default();
        for path in ["a", "a", "b"] {
            undecoded.add_damaged("UTF-8", &input(path));
        }
        undecoded.add_unknown("x-none", &input("c"));
        let notes: Vec<String> = undecoded.notes().collect();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].starts_with("2 files with bytes that mean nothing in utf-8"), "{notes:?}");
        assert!(notes[0].contains("(a)"), "{notes:?}");
        assert!(notes[1].starts_with("1 file with texts in x-none, "), "{notes:?}");
        for idx in 0..1000 {
            undecoded.add_unknown(&format!("x-{idx}"), &input("d"));
        }
        assert_eq!(undecoded.notes().count(), MAX_NAMED + 2);
    }
}
