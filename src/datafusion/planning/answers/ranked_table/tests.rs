//! Comparisons of slices of ranked sequences with the rows of the cores, for one segment and many.

use std::sync::Arc;

use crate::planning::answers::sequence_table::tests::{documents, held};
use tadoc::analytics::RankedInvertedIndex;
use testkit::corpus_of_texts;

use super::*;

#[test]
fn parts_are_the_rows_of_the_cores() {
    let texts = documents(300);
    for block_bytes in [1 << 20, 20_000] {
        let corpus = corpus_of_texts(block_bytes, &texts);
        assert_eq!(corpus.segments().len() > 1, block_bytes < 1 << 20);
        let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
        let some: Vec<u64> = (0..300).filter(|doc| doc % 3 != 1).collect();
        let some = DocSelection::list(some).unwrap();
        for (n, docs) in
            [(1, DocSelection::all(&corpus)), (1, some.clone()), (3, some), (3, DocSelection::all(&corpus))]
        {
            let segments = 0..corpus.segments().len();
            let segments: Vec<_> = segments.map(|at| SegmentRanked::from_segment(&corpus, at, n).unwrap()).collect();
            let table = RankedTable::new(&vocabulary, &docs, n, segments.clone(), held()).unwrap();
            assert!(table.num_slices() > 1);
            let index = RankedInvertedIndex::from_segments(vocabulary.clone(), &docs, n, segments, 0);
            let index = index.unwrap();
            let (mut sequence, mut row) = (0, 0);
            for slice in (0..table.num_slices()).map(|at| table.slice(at)) {
                for at in 0..slice.len() {
                    while index.entries_of(sequence).end <= row {
                        sequence += 1;
                    }
                    assert!(slice.words(at).eq(index.sequences().words(sequence)), "{n}, {row}");
                    let rank = (row - index.entries_of(sequence).start + 1) as u64;
                    let got = (slice.doc_ids()[at], slice.counts()[at], slice.ranks()[at]);
                    assert_eq!(got, (index.doc_ids()[row], index.counts()[row], rank), "{n}, {row}");
                    row += 1;
                }
            }
            assert_eq!(row, index.doc_ids().len(), "{n}");
        }
    }
}

#[test]
fn what_is_no_matrix_is_refused() {
    let corpus = corpus_of_texts(1 << 20, &documents(9));
    let (vocabulary, docs) = (Vocabulary::new(&corpus).unwrap(), DocSelection::all(&corpus));
    let refused = |change: fn(&mut SegmentRanked)| {
        let mut segment = SegmentRanked::from_segment(&corpus, 0, 2).unwrap();
        change(&mut segment);
        RankedTable::new(&vocabulary, &docs, 2, vec![segment], held()).is_err()
    };
    assert!(!refused(|_| ()));
    assert!(refused(|segment| segment.starts[1] = 5000) && refused(|s| s.starts.truncate(3)));
    assert!(refused(|segment| segment.counts.truncate(1)) && refused(|s| s.docs.truncate(1)));
}
