//! Tests of sections from another file that match every number and have right checksums. Ties tell
//! them apart.

use std::collections::BTreeSet;

use tadoc::build::CorpusBuilder;
use tadoc::format::{SectionKind, read_document_facts, read_words};
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::documents::{BUILDERS, options};
use testkit::malformed::LIMITS;
use testkit::malformed::anatomy::{Anatomy, Section, TIES};

/// Kinds of sections in the footer.
const GRAMMAR: [u8; 2] = [2, 0];
const WORD_COUNTS: [u8; 2] = [5, 0];
const DOCUMENT_LENGTHS: [u8; 2] = [7, 0];

/// Returns a file with two segments of `words` and with columns. Files of equally long words have
/// the same sums.
fn file_of(words: [&str; 3], path: &str, columns: &[u8; 16]) -> Vec<u8> {
    let options = options(TokenizerProfile::Word, BUILDERS[0], 16);
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    let [one, two, three] = words;
    for doc in 0..2 {
        let text = format!("{one} {one} {two} {three}");
        builder.push_document(&format!("{path}/{doc}"), text.as_bytes()).unwrap();
    }
    builder.finish(Some(columns.to_vec())).unwrap().0
}

/// Returns two such files of the same words. The total counts are the same, the counts of single
/// words differ.
fn twins() -> [Anatomy; 2] {
    let one = file_of(["aa", "bb", "cc"], "one", b"PAR1 ones   PAR1");
    let two = file_of(["bb", "cc", "aa"], "two", b"PAR1 twos   PAR1");
    [one, two].map(|file| Anatomy::from_file(&file))
}

fn without_ties(anatomy: &Anatomy) -> Anatomy {
    let mut old = anatomy.clone();
    let is_older = |section: &Section| section.kind != TIES;
    old.segments.iter_mut().for_each(|segment| segment.sections.retain(is_older));
    old.file_sections.retain(is_older);
    old
}

fn open(file: &[u8]) -> Result<Corpus, Error> {
    Corpus::from_bytes("f", file, &LIMITS).map(|(_, corpus)| corpus)
}

#[test]
fn a_section_of_another_file_is_found_whatever_its_checksums() {
    let [mut one, mut two] = twins();
    assert!([&one, &two].iter().all(|twin| open(&twin.assemble()).is_ok()));
    let records = |twin: &Anatomy| twin.segments.iter().map(|s| s.record.clone()).collect::<Vec<_>>();
    assert_eq!(records(&one), records(&two), "their sums are the same");
    let mut kinds = BTreeSet::new();
    for i in 0..one.clone().sections_mut().len() {
        let own = one.sections_mut()[i].clone();
        let other = two.sections_mut()[i].clone();
        assert_eq!(own.kind, other.kind);
        if own.bytes == other.bytes {
            continue;
        }
        kinds.insert(own.kind);
        *one.sections_mut()[i] = other;
        let error = open(&one.assemble()).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Format { section: "footer", .. }), "{text}");
        assert!(text.contains("written") && text.contains("from a copy"), "{text}");
        *one.sections_mut()[i] = own;
    }
    // The dictionaries are equal; counts, grammars, paths, columns and ties differ.
    assert_eq!(kinds, [2, 3, 4, 5, 6].map(|kind| [kind, 0]).into());
}

#[test]
fn a_segment_of_another_file_does_not_come_with_these_columns() {
    let [mut one, two] = twins();
    one.segments[1] = two.segments[1].clone();
    assert!(open(&one.assemble()).unwrap_err().to_string().contains("columns and segments"));
    one.file_sections.clear();
    assert_eq!(open(&one.assemble()).unwrap().num_docs(), 2);
}

#[test]
fn counts_of_files_without_ties_are_compared_with_the_grammar_and_not_used() {
    let [one, two] = twins().map(|twin| without_ties(&twin));
    let file = one.assemble();
    let (footer, _) = Corpus::from_bytes("f", &file, &LIMITS).unwrap();
    for (i, segment) in footer.segments.iter().enumerate() {
        assert!(segment.sections.iter().any(|section| section.kind == SectionKind::WordCounts));
        assert_eq!(segment.words_range(), None);
        let error = read_words("f", &footer, i, &file, &LIMITS).unwrap_err().to_string();
        assert!(error.contains("tied word counts"), "{error}");
    }
    for (i, other) in two.segments[0].sections.iter().enumerate() {
        let mut swapped = one.clone();
        swapped.segments[0].sections[i] = other.clone();
        let opened = open(&swapped.assemble()).map_err(|error| error.to_string());
        match other.kind {
            WORD_COUNTS | GRAMMAR => assert!(opened.unwrap_err().contains("word counts")),
            _ => assert!(opened.is_ok()),
        }
    }
}

/// Returns a file of two documents with `nums_words` words of two bytes each.
fn file_of_lengths(nums_words: [usize; 2]) -> Anatomy {
    let options = options(TokenizerProfile::Word, BUILDERS[0], 1 << 20);
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for num_words in nums_words {
        builder.push_document("a", vec!["aa"; num_words].join(" ").as_bytes()).unwrap();
    }
    Anatomy::from_file(&builder.finish(None).unwrap().0)
}

#[test]
fn lengths_of_documents_are_compared_with_the_grammar() {
    let one = file_of_lengths([3, 9]);
    let other = file_of_lengths([5, 7]);
    assert_eq!(one.segments[0].record, other.segments[0].record, "their sums are the same");
    let lengths = |file: &Anatomy| {
        let mut sections = file.segments[0].sections.iter();
        sections.position(|section| section.kind == DOCUMENT_LENGTHS).unwrap()
    };
    let mut swapped = one.clone();
    swapped.segments[0].sections[lengths(&one)] = other.segments[0].sections[lengths(&other)].clone();
    let error = open(&swapped.assemble()).unwrap_err().to_string();
    assert!(error.contains("from a copy"), "{error}");
    for lying in [swapped.clone().tied(), without_ties(&swapped)] {
        let error = open(&lying.assemble()).unwrap_err().to_string();
        assert!(error.contains("document lengths") && error.contains("document 0"), "{error}");
    }
}

#[test]
fn a_file_without_lengths_of_documents_opens() {
    let new = file_of_lengths([3, 9]);
    let mut old = new.clone();
    old.segments[0].sections.retain(|section| section.kind != DOCUMENT_LENGTHS);
    for old in [old.clone().tied(), without_ties(&old), without_ties(&new)] {
        let file = old.assemble();
        let (footer, corpus) = Corpus::from_bytes("f", &file, &LIMITS).unwrap();
        assert_eq!((corpus.num_docs(), footer.segments[0].facts_range()), (2, None));
        let error = read_document_facts("f", &footer, 0, &file, &LIMITS).unwrap_err().to_string();
        assert!(error.contains("tied document lengths"), "{error}");
    }
}
