//! Files of formats before the present one open and answer. Each file in `fixtures` is named by the
//! day on which its format was last written, and holds the same four documents in segments of 64
//! bytes of text.
//!
//! | file | format |
//! | --- | --- |
//! | 2026-11-23 | without document lengths, one layout |

use tadoc::Corpus;
use tadoc::analytics::word_count;
use tadoc::format::OpenLimits;
use tadoc::query::{Query, search};
use tadoc::read::document_bytes;

const FIXTURES: [(&str, &[u8]); 1] =
    [("2026-11-23", include_bytes!("fixtures/2026-11-23.tadoc").as_slice())];
const DOCUMENTS: [(&str, &[u8]); 4] = [
    ("empty.txt", b""),
    ("hamlet.txt", b"to be or not to be, that is the question\n"),
    ("notes/song.txt", b"let it be, let it be\nwhisper words of wisdom, let it be\n"),
    ("odd.bin", b"\xff\xfe bytes that are no text: to be or not to be\n"),
];

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
