//! Tests that tasks of the library give the same answers on one, two and seven threads.

use std::ops::ControlFlow;
use std::sync::Arc;

use tadoc::Corpus;
use tadoc::analytics::{
    Cooccurrences, DocSelection, DocumentSequences, Fold, InvertedIndex, RankedInvertedIndex, SequenceCounts,
    TermVectors, Tfidf, Traversal, Vocabulary, document_counts, repeated_phrases, word_count,
};
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;
use tadoc::query::{Query, SearchOptions, kwic, search, term_count};

use crate::fixtures::files_below;

const AMPLE: u64 = 1 << 30;
const WAYS: [Traversal; 4] = [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan];

/// Returns the sources of `src/datafusion`, in segments of 100 KB that cut documents.
fn corpus() -> Corpus {
    let options = IngestOptions { block_bytes: 100_000, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    let root = testkit::root().join("src/datafusion");
    for file in files_below(&root) {
        builder.push_document(&file.display().to_string(), &std::fs::read(&file).unwrap()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    Corpus::from_bytes("sources", &file, &OpenLimits::default()).unwrap().1
}

/// Returns all counts with traversal `way`, as text.
fn counted(corpus: &Corpus, fold: Fold, way: Traversal) -> Vec<String> {
    let words = Vocabulary::new(corpus).unwrap();
    let words = Arc::new(words.folded(&fold).unwrap());
    let all = DocSelection::all(corpus);
    let mut shown = Vec::new();
    let vectors = TermVectors::new(words.clone(), way);
    shown.push(format!("{:?}", vectors.collect(&all, None).unwrap()));
    shown.push(format!("{:?}", vectors.collect(&all, Some(3)).unwrap()));
    shown.push(format!("{:?}", document_counts(&vectors).unwrap()));
    let tfidf = Tfidf::new(vectors).unwrap();
    let mut cursor = tfidf.cursor(&all, Some(5));
    while let Some(chunk) = cursor.next_chunk().unwrap() {
        shown.push(format!("{:?} {:?}", chunk.terms(), chunk.scores()));
    }
    let index = InvertedIndex::with_vocabulary(words.clone(), way).unwrap();
    shown.extend((0..index.len()).map(|row| format!("{:?}", index.doc_ids(row).collect::<Vec<_>>())));
    for n in [1, 3, 9] {
        let counts = SequenceCounts::with_vocabulary(words.clone(), n, way, AMPLE).unwrap();
        shown.push(format!("{:?}", counts.counts()));
        let index = RankedInvertedIndex::with_vocabulary(words.clone(), n, way, AMPLE).unwrap();
        shown.push(format!("{:?} {:?}", index.doc_ids(), index.counts()));
        let sequences = DocumentSequences::new(words.clone(), n, way, AMPLE).unwrap();
        let chunk = sequences.chunk(&(0..corpus.num_docs()).collect::<Vec<_>>()).unwrap();
        shown.push(format!("{:?}", chunk.counts()));
        for sequences in [counts.sequences(), index.sequences(), chunk.sequences()] {
            let row = |row: usize| sequences.words(row).collect::<Vec<_>>();
            shown.push(format!("{:?}", (0..sequences.len()).map(row).collect::<Vec<_>>()));
        }
    }
    let pairs = Cooccurrences::with_vocabulary(words.clone(), 4, 2, way, AMPLE).unwrap();
    shown.push(format!("{:?}", pairs.counts()));
    shown
}

/// Returns the results of tasks without a choice of traversal, as text.
fn found(corpus: &Corpus) -> Vec<String> {
    let counts = word_count(corpus).unwrap();
    let mut shown: Vec<String> =
        (0..counts.len()).map(|row| format!("{} {}", counts.word(row), counts.count(row))).collect();
    let phrases = repeated_phrases(corpus, 6, 2, AMPLE).unwrap();
    shown.extend((0..phrases.len()).map(|row| format!("{:?} {}", phrases.words(row), phrases.count(row))));
    let options = SearchOptions::default();
    for text in ["the", "\"of the s*\"", "/(?i)t.*/", "corpus \"a b*\""] {
        let query = Query::parse(corpus.profile(), text).unwrap();
        shown.push(format!("{:?}", search(corpus, &query, None).unwrap()));
        term_count(corpus, &query, &options, &mut |counts| {
            shown.push(format!("{counts:?}"));
            ControlFlow::Continue(())
        })
        .unwrap();
        kwic(corpus, &query, 2, u64::MAX, &options, &mut |batch| {
            shown.extend(batch.iter().map(|context| format!("{:?} {:?}", context.hit, context.right)));
            ControlFlow::Continue(())
        })
        .unwrap();
    }
    shown
}

#[test]
fn threads_change_nothing() {
    let mut expected: Option<Vec<Vec<String>>> = None;
    for num_threads in [1, 2, 7] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(num_threads).build().unwrap();
        let shown = pool.install(|| {
            let corpus = corpus();
            let mut shown = vec![found(&corpus)];
            for way in WAYS {
                shown.push(counted(&corpus, Fold::NONE, way));
            }
            // Words of documents are kept by now.
            shown.push(counted(&corpus, Fold::CASE, Traversal::Auto));
            shown.push(counted(&corpus, Fold::NONE, Traversal::Auto));
            shown.push(found(&corpus));
            assert!(shown[1..5].windows(2).all(|ways| ways[0] == ways[1]), "{num_threads} threads");
            assert!(shown[1] == shown[6] && shown[0] == shown[7], "{num_threads} threads");
            shown
        });
        match &expected {
            Some(expected) => assert!(*expected == shown, "{num_threads} threads"),
            None => expected = Some(shown),
        }
    }
}
