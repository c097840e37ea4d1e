//! Parts of ranked sequences against the rows that cores make at once, of one segment and of many.

use std::sync::Arc;

use crate::analytics::{RankedInvertedIndex, Traversal};
use crate::corpus::Corpus;
use crate::sql::device_tasks::row_keys::word_bits;
use crate::sql::device_tasks::sequence_parts::tests::{corpus, documents, held};

use super::*;

/// What a device answers for a segment.
fn of_segment(corpus: &Corpus, segment_idx: usize, n: usize) -> SegmentRanked {
    let segment = corpus.segments()[segment_idx].clone();
    let word_bits = word_bits(segment.dag.num_words() as usize);
    let alone = Corpus::new(corpus.profile(), vec![segment]);
    let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
    let (words, way) = (vocabulary.clone(), Traversal::TokenScan);
    let index = RankedInvertedIndex::with_vocabulary(words, n, way, 1 << 30).unwrap();
    let id = |row: u32| u64::from(vocabulary.ids(row as usize).next().unwrap().1);
    let key = |row| index.sequences().words(row).fold(0, |key, at| key << word_bits | id(at));
    let ends = (0..index.len()).map(|row| index.places_of(row).end as u32);
    SegmentRanked {
        keys: (0..index.len()).map(key).collect(),
        starts: std::iter::once(0).chain(ends).collect(),
        docs: index.doc_ids().iter().map(|&doc| doc as u32).collect(),
        counts: index.counts().to_vec(),
        word_bits,
    }
}

#[test]
fn parts_are_the_rows_of_the_cores() {
    let texts = documents(300);
    for block_bytes in [1 << 20, 20_000] {
        let corpus = corpus(block_bytes, &texts);
        assert_eq!(corpus.segments().len() > 1, block_bytes < 1 << 20);
        let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
        let some: Vec<u64> = (0..300).filter(|doc| doc % 3 != 1).collect();
        let some = DocSelection::list(some).unwrap();
        for (n, docs) in [
            (1, DocSelection::all(&corpus)),
            (1, some.clone()),
            (3, some),
            (3, DocSelection::all(&corpus)),
        ] {
            let segments = 0..corpus.segments().len();
            let segments: Vec<_> = segments.map(|at| of_segment(&corpus, at, n)).collect();
            let parts = RankedParts::new(&vocabulary, &docs, n, segments.clone(), held()).unwrap();
            assert!(parts.num_parts() > 1);
            let index = RankedInvertedIndex::of_segments(vocabulary.clone(), &docs, n, segments);
            let index = index.unwrap();
            let (mut sequence, mut row) = (0, 0);
            for part in (0..parts.num_parts()).map(|at| parts.part(at)) {
                for at in 0..part.len() {
                    while index.places_of(sequence).end <= row {
                        sequence += 1;
                    }
                    assert!(part.words(at).eq(index.sequences().words(sequence)), "{n}, {row}");
                    let rank = (row - index.places_of(sequence).start + 1) as u64;
                    let got = (part.doc_ids()[at], part.counts()[at], part.ranks()[at]);
                    assert_eq!(
                        got,
                        (index.doc_ids()[row], index.counts()[row], rank),
                        "{n}, {row}"
                    );
                    row += 1;
                }
            }
            assert_eq!(row, index.doc_ids().len(), "{n}");
        }
    }
}

#[test]
fn what_is_no_matrix_is_refused() {
    let corpus = corpus(1 << 20, &documents(9));
    let (vocabulary, docs) = (Vocabulary::new(&corpus).unwrap(), DocSelection::all(&corpus));
    let refused = |change: fn(&mut SegmentRanked)| {
        let mut segment = of_segment(&corpus, 0, 2);
        change(&mut segment);
        RankedParts::new(&vocabulary, &docs, 2, vec![segment], held()).is_err()
    };
    assert!(!refused(|_| ()));
    assert!(refused(|segment| segment.starts[1] = 5000) && refused(|s| s.starts.truncate(3)));
    assert!(refused(|segment| segment.counts.truncate(1)) && refused(|s| s.docs.truncate(1)));
}
