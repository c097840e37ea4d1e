//! Tests of a dictionary so large that the writer cuts it into parts, and of wrong values in these
//! parts.

use std::path::Path;

use tadoc::format::{FileFooter, OpenLimits};
use tadoc::read::document_bytes;
use tadoc::{Corpus, Error};
use testkit::documents::{BUILDERS, PROFILES, compress, numbered, options};
use testkit::malformed::LIMITS;
use testkit::malformed::anatomy::{Anatomy, Section, footer_start};

const DICTIONARY: [u8; 2] = [1, 0];
/// Codec of a dictionary in parts.
const PARTS: [u8; 2] = [2, 0];
const NUM_WORDS: u64 = 14_000;

/// Returns a text with each word once. No two words share more than their first letters.
fn text() -> Vec<u8> {
    let word = |i: u64| format!("{:08x}", i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32);
    (0..NUM_WORDS).map(|i| word(i) + " ").collect::<String>().into_bytes()
}

fn dictionary_of(parts: &mut Anatomy) -> &mut Section {
    let sections = &mut parts.segments[0].sections;
    sections.iter_mut().find(|section| section.kind == DICTIONARY).unwrap()
}

#[test]
fn parts_of_a_dictionary_are_one_and_lies_about_them_are_refused() {
    let documents = numbered([text()]);
    let file = compress(&documents, &options(PROFILES[0], BUILDERS[0], 1 << 20));
    let (_, corpus) = Corpus::from_bytes("large", &file, &LIMITS).unwrap();
    assert_eq!(document_bytes(&corpus, 0, 1 << 20).unwrap(), documents[0].1);
    let anatomy = Anatomy::from_file(&file);
    let section = dictionary_of(&mut anatomy.clone()).clone();
    let num_parts = section.bytes[0];
    assert_eq!((section.codec, num_parts), (PARTS, 2));
    // Byte 0 is the number of parts. The number of tokens of the first part begins at byte 1 and
    // has two bytes. The lists do not match the wrong values.
    for (at, byte) in [(0, 0), (0, 1), (0, 3), (0, 17), (0, 0x80), (1, section.bytes[1] ^ 1)] {
        let mut lie = anatomy.clone();
        dictionary_of(&mut lie).bytes[at] = byte;
        refused(lie);
    }
    for len in [0, 1, 5, section.bytes.len() / 2, section.bytes.len() - 1] {
        let mut lie = anatomy.clone();
        dictionary_of(&mut lie).bytes.truncate(len);
        refused(lie);
    }
    for codec in [1, 3] {
        let mut lie = anatomy.clone();
        dictionary_of(&mut lie).codec = [codec, 0];
        refused(lie);
    }
}

fn refused(lie: Anatomy) {
    let error = Corpus::from_bytes("large", &lie.tied().assemble(), &LIMITS).unwrap_err();
    let is_typed = matches!(error, Error::Format { section: "dictionary", .. });
    assert!(is_typed || matches!(error, Error::Version { .. }), "{error}");
}

#[test]
fn a_footer_longer_than_the_first_read_is_read_whole() {
    // The document has so many segments that their records do not fit into the tail that is read
    // first.
    let options = options(PROFILES[0], BUILDERS[0], 6);
    let text = "ab cd ".repeat(700).into_bytes();
    let file = compress(&numbered([text.clone()]), &options);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("long.tadoc");
    std::fs::write(&path, &file).unwrap();
    let (_, corpus) = Corpus::open(&path, &OpenLimits::default()).unwrap();
    assert!((file.len() - footer_start(&file)) as u64 > FileFooter::TAIL_BYTES);
    assert_eq!(document_bytes(&corpus, 0, 1 << 20).unwrap(), text);
    check_damaged(&path, &file);
}

/// Checks faults that only a read from disk meets.
fn check_damaged(path: &Path, file: &[u8]) {
    let of = |bytes: &[u8]| {
        std::fs::write(path, bytes).unwrap();
        Corpus::open(path, &LIMITS).unwrap_err().to_string()
    };
    let mut damaged = file.to_vec();
    damaged[0] ^= 1;
    assert!(of(&damaged).contains("header"));
    assert!(of(&file[..100]).contains("long.tadoc"));
    std::fs::remove_file(path).unwrap();
    let missing = Corpus::open(path, &LIMITS).unwrap_err();
    assert!(matches!(missing, Error::Io { .. }), "{missing}");
}
