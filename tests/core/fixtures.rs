//! Files of formats before the present one open and answer. Each file in `fixtures` is named by the
//! day on which its format was last written.
//!
//! | file | format | documents |
//! | --- | --- | --- |
//! | 2026-11-23 | without document lengths, one layout | four in segments of 64 bytes of text |
//! | 2026-11-24 | small layout with codec 1 of grammars | [`recurring_documents`] |
//! | 2026-11-25 | fast layout with codec 3 of dictionaries | [`recurring_documents`] |
//! | 2026-11-30 | fast layout | four in segments of 64 bytes of text |

use tadoc::Corpus;
use tadoc::analytics::word_count;
use tadoc::format::{OpenLimits, SectionKind};
use tadoc::query::{Query, search};
use tadoc::read::document_bytes;

const FIXTURES: [(&str, &[u8]); 2] = [
    ("2026-11-23", include_bytes!("fixtures/2026-11-23.tadoc").as_slice()),
    ("2026-11-30", include_bytes!("fixtures/2026-11-30.tadoc").as_slice()),
];
const DOCUMENTS: [(&str, &[u8]); 4] = [
    ("empty.txt", b""),
    ("hamlet.txt", b"to be or not to be, that is the question\n"),
    ("notes/song.txt", b"let it be, let it be\nwhisper words of wisdom, let it be\n"),
    ("odd.bin", b"\xff\xfe bytes that are no text: to be or not to be\n"),
];

/// Returns six documents of lines that recur in part, of words of which a few are frequent. They are as
/// long as it takes to have far distances in all lists of the grammar.
fn recurring_documents() -> Vec<(String, String)> {
    let mut state = 1u64;
    let mut below = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    let document = |doc: u64| {
        let lines = (0..250).map(|line| {
            let words: Vec<String> = (0..6 + below(8)).map(|_| format!("w{}", 900 / (1 + below(900)))).collect();
            format!("{doc}.{line} level={} at {}: {}\n", below(4), below(60), words.join(" "))
        });
        (format!("{doc}.log"), lines.collect())
    };
    (0..6).map(document).collect()
}

#[test]
fn codecs_before_are_read() {
    let small = include_bytes!("fixtures/2026-11-24.tadoc").as_slice();
    check_recurring_documents(small, SectionKind::Grammar, 1);
    let fast = include_bytes!("fixtures/2026-11-25.tadoc").as_slice();
    check_recurring_documents(fast, SectionKind::Dictionary, 3);
}

/// Checks that `file`, whose one segment has `codec` in the section `kind`, has [`recurring_documents`].
fn check_recurring_documents(file: &[u8], kind: SectionKind, codec: u16) {
    let (footer, corpus) = Corpus::from_bytes("fixture", file, &OpenLimits::default()).unwrap();
    let mut sections = footer.segments[0].sections.iter();
    let section = sections.find(|section| section.kind == kind).unwrap();
    assert_eq!((footer.segments.len(), section.codec), (1, codec));
    for (doc_id, (path, text)) in (0..).zip(recurring_documents()) {
        assert_eq!(document_bytes(&corpus, doc_id, 1 << 20).unwrap(), text.as_bytes());
        assert_eq!(corpus.segments()[0].paths.get(doc_id as usize), Some(&*path));
    }
}

#[test]
fn files_of_earlier_formats_open_and_answer() {
    for (name, file) in FIXTURES {
        let (footer, corpus) = Corpus::from_bytes(name, file, &OpenLimits::default()).unwrap();
        assert!(footer.segments.len() > 1, "{name}");
        assert_eq!(corpus.num_docs(), 4, "{name}");
        for (doc_id, (path, text)) in (0..).zip(DOCUMENTS) {
            assert_eq!(document_bytes(&corpus, doc_id, 1 << 10).unwrap(), text, "{name}");
            let (segment_idx, doc) = corpus.doc_parts(doc_id).next().unwrap();
            let paths = &corpus.segments()[segment_idx].paths;
            assert_eq!(paths.get(doc.index()), Some(path), "{name}");
        }
        let counts = word_count(&corpus).unwrap();
        assert!(counts.iter().any(|(word, count)| (word, count) == ("be", 7)), "{name}");
        let query = Query::parse(corpus.profile(), "\"not to be\"").unwrap();
        let hits = search(&corpus, &query, None).unwrap();
        let found: Vec<_> = hits.iter().map(|hit| (hit.doc_id, hit.byte_offset)).collect();
        assert_eq!(found, [(1, 9), (3, 36)], "{name}");
    }
}
