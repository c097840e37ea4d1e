//! Tests that the valid files from which mutants are made have the content that was written.

use std::collections::BTreeSet;

use tadoc::Corpus;
use tadoc::format::SectionKind;
use testkit::malformed::LIMITS;
use testkit::malformed::samples::{content_of, samples};

#[test]
fn samples_hold_what_was_put_in() {
    let mut path_codecs = BTreeSet::new();
    let mut dictionary_codecs = BTreeSet::new();
    let mut grammar_codecs = BTreeSet::new();
    let mut num_continued = 0;
    for sample in samples() {
        let (footer, corpus) = Corpus::from_bytes("f", &sample.file, &LIMITS).unwrap();
        let content = content_of(&sample.file, &footer, &corpus).unwrap();
        assert_eq!(content, sample.content, "{}", sample.name);
        let sections = footer.segments.iter().flat_map(|segment| &segment.sections);
        for section in sections {
            match section.kind {
                SectionKind::Documents => path_codecs.insert(section.codec),
                SectionKind::Dictionary => dictionary_codecs.insert(section.codec),
                SectionKind::Grammar => grammar_codecs.insert(section.codec),
                _ => continue,
            };
        }
        num_continued += footer.segments.iter().filter(|segment| segment.continues).count();
        assert!(sample.file.len() < 40_000, "{}: {} bytes", sample.name, sample.file.len());
    }
    assert_eq!(path_codecs.len(), 2, "both codings of paths: {path_codecs:?}");
    assert_eq!(dictionary_codecs.len(), 3, "all codings of dictionaries: {dictionary_codecs:?}");
    assert_eq!(grammar_codecs.len(), 3, "all codings of grammars: {grammar_codecs:?}");
    assert!(num_continued > 12, "documents cut over segments: {num_continued}");
}
