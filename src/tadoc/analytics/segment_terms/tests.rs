//! Tests: parts counted by segment, or kept with segments, give the rows of the whole corpus.

use std::sync::Arc;

use crate::analytics::{DocSelection, Fold, InvertedIndex, TermVectors, Tfidf, Traversal, Vocabulary, document_counts};
use crate::build::corpus_from_texts;
use crate::segment::Corpus;

use super::*;

/// Returns documents with words that fold to others, documents without words, and one document that
/// is cut if blocks are small.
fn documents() -> Vec<String> {
    let word = |at: usize| ["be", "To", "or", "not", "to", "Be", "an"][at * at % 31 % 7];
    let text = |doc: usize| (0..doc * 7 % 40).map(|at| word(at + doc * 3)).collect::<Vec<_>>();
    let mut texts: Vec<_> = (0..150).map(|doc| text(doc).join(" ")).collect();
    texts.push("Not one TO be but many ".repeat(60));
    texts.extend(texts.clone());
    texts
}

fn folds(corpus: &Corpus) -> [Arc<Vocabulary>; 2] {
    let plain = Vocabulary::new(corpus).unwrap();
    let folded = plain.folded(&Fold::CASE).unwrap();
    [plain, folded].map(Arc::new)
}

/// Makes the segments keep the words of their documents.
fn keep_words(corpus: &Corpus) {
    corpus.segments().iter().for_each(|segment| segment.note_words_read(u64::MAX / 2));
}

/// Returns the answer of a device for each segment, from the words of its documents.
fn parts(corpus: &Corpus) -> (Vec<SegmentTerms>, Vec<SegmentDocuments>) {
    let part = |segment: &Arc<Segment>| {
        let alone = Corpus::new(corpus.profile(), vec![segment.clone()]);
        let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
        let vectors = TermVectors::new(vocabulary.clone(), Traversal::TopDown);
        let chunk = vectors.collect(&DocSelection::all(&alone), None).unwrap();
        let id = |row: u32| vocabulary.ids(row as usize).next().unwrap().1;
        let words: Vec<u32> = chunk.rows().iter().map(|&row| id(row)).collect();
        let mut lists = vec![Vec::new(); segment.dag.num_words() as usize];
        for doc in 0..chunk.num_docs() {
            chunk.range(doc).for_each(|at| lists[words[at] as usize].push(doc as u32));
        }
        let ends = lists.iter().scan(0, |end, list| {
            *end += list.len() as u32;
            Some(*end)
        });
        let from_words = SegmentDocuments { offsets: std::iter::once(0).chain(ends).collect(), docs: lists.concat() };
        let offsets = chunk.offsets().iter().map(|&offset| offset as u32).collect();
        (SegmentTerms { offsets, words, counts: chunk.counts().to_vec() }, from_words)
    };
    corpus.segments().iter().map(part).unzip()
}

#[test]
fn parts_give_the_rows_of_the_corpus() {
    for block_bytes in [1 << 20, 700, 300] {
        let corpus = corpus_from_texts(block_bytes, &documents());
        assert_eq!(corpus.segments().len() == 1, block_bytes == 1 << 20);
        let is_cut = (0..corpus.num_docs()).any(|doc| corpus.doc_parts(doc).count() > 1);
        assert_eq!(is_cut, block_bytes < 1 << 20);
        for vocabulary in folds(&corpus) {
            let (terms, docs) = parts(&corpus);
            let counted = TermVectors::from_segments(vocabulary.clone(), terms).unwrap();
            keep_words(&corpus);
            let kept = TermVectors::new(vocabulary.clone(), Traversal::Auto);
            assert!(kept.counted(0).is_some());
            let expected = TermVectors::new(vocabulary.clone(), Traversal::TopDown);
            assert!(expected.counted(0).is_none());
            let all = DocSelection::all(&corpus);
            let some = DocSelection::list([0, 1, 7, 149, 150, 151, 301]).unwrap();
            assert!(counted.memory_bytes() > expected.memory_bytes());
            for got in [counted, kept] {
                for (docs, top) in [(&all, None), (&all, Some(2)), (&some, None), (&some, Some(0))] {
                    let expected = expected.collect(docs, top).unwrap();
                    assert_eq!(got.collect(docs, top).unwrap(), expected);
                }
                let doc_counts = document_counts(&got).unwrap();
                assert_eq!(doc_counts, document_counts(&expected).unwrap());
                let score = |vectors| Tfidf::new(vectors).unwrap().score(2, 3);
                assert_eq!(score(got).to_bits(), score(expected.clone()).to_bits());
            }
            let index = |way| InvertedIndex::with_vocabulary(vocabulary.clone(), way).unwrap();
            let expected = index(Traversal::TopDown);
            let counted = InvertedIndex::from_segments(vocabulary.clone(), docs).unwrap();
            for got in [counted, index(Traversal::Auto)] {
                for row in 0..expected.len() {
                    assert!(got.doc_ids(row).eq(expected.doc_ids(row)), "{}", expected.word(row));
                    assert_eq!(got.num_docs(row), expected.num_docs(row));
                }
            }
        }
    }
}

/// Documents with many words are searched by ranges of words; other documents are read at once.
#[test]
fn documents_of_words_are_the_same_in_ranges() {
    let text = |doc: usize| (0..900).map(|at| format!("w{}", at * (doc + 1))).collect::<Vec<_>>();
    let corpus = corpus_from_texts(1 << 20, &(0..6).map(|doc| text(doc).join(" ")).collect::<Vec<_>>());
    keep_words(&corpus);
    let [segment] = corpus.segments() else { panic!("{} segments", corpus.segments().len()) };
    let (doc_words, num_words) = (segment.doc_words_or_derive_if_worth().unwrap(), segment.dag.num_words());
    let (starts, words) = doc_words.lists();
    assert!(words.len() >= 2 * PAIRS_PER_LOOK * starts.len());
    let num_words = num_words as usize;
    for ids in [0..num_words, 3..num_words / 2, num_words / 3..num_words, 5..5, 7..8] {
        let in_ranges = SegmentDocuments::from_doc_words(doc_words, num_words, ids.clone());
        assert_eq!(in_ranges, SegmentDocuments::from_few_pairs(doc_words, num_words, ids));
    }
}

#[test]
fn what_is_no_such_matrix_is_refused() {
    let corpus = corpus_from_texts(1 << 20, &documents());
    let [vocabulary, folded] = folds(&corpus);
    let (terms, docs) = parts(&corpus);
    let refused = |change: fn(&mut SegmentTerms)| {
        let mut terms = terms.clone();
        change(&mut terms[0]);
        let got = TermVectors::from_segments(vocabulary.clone(), terms).unwrap_err();
        assert!(matches!(got, Error::InvalidArgument { name: "counts of segments", .. }), "{got}");
    };
    refused(|part| part.offsets[0] = 1);
    refused(|part| part.offsets[1] = u32::MAX);
    refused(|part| part.offsets.truncate(3));
    refused(|part| part.offsets.clear());
    refused(|part| part.words[0] = 99);
    refused(|part| part.words.truncate(1));
    refused(|part| part.counts.truncate(1));
    assert!(TermVectors::from_segments(vocabulary, Vec::new()).is_err());
    assert!(InvertedIndex::from_segments(folded.clone(), Vec::new()).is_err());
    let changes: [fn(&mut SegmentDocuments); 2] = [|part| part.docs[0] = 9999, |part| part.offsets[0] = 1];
    for change in changes {
        let mut docs = docs.clone();
        change(&mut docs[0]);
        assert!(InvertedIndex::from_segments(folded.clone(), docs).is_err());
    }
}
