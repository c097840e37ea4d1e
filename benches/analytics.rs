//! Counting and indexing: word_count 100 times and inverted_index 20 times as fast as an engine
//! that tokenizes the text for every query (`peers/` measures those on the same bytes).
//!
//! `TADOC_CORPORA=/path cargo bench --bench analytics`. Every answer is checked in the timed body
//! against one that was found by reading the documents. `word_count/cold` sweeps the rules on
//! every iteration; `word_count/warm` finds the sweep done.

#![allow(clippy::unwrap_used, missing_docs)]

mod corpora;

use std::collections::{HashMap, HashSet};
use std::hint::black_box;
use std::sync::Arc;

use corpora::{Subject, subjects};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use datafusion_tadoc::Corpus;
use datafusion_tadoc::analytics::{
    InvertedIndex, Traversal, Vocabulary, corpus_statistics, word_count,
};
use datafusion_tadoc::corpus::Segment;
use datafusion_tadoc::dag::Dag;

/// The corpus again, with nothing derived yet.
fn cold(corpus: &Corpus) -> Corpus {
    let segments = corpus.segments().iter().map(|segment| {
        let dictionary = segment.dictionary.clone();
        let grammar = segment.dag.grammar().clone();
        let dag = Dag::new(grammar, dictionary.num_words(), dictionary.lengths()).unwrap();
        let (paths, continues) = (segment.paths.clone(), segment.continues);
        Arc::new(Segment { dictionary, dag, paths, continues })
    });
    Corpus::new(corpus.profile(), segments.collect())
}

fn count_words(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("analytics/word_count");
    for subject in subjects {
        let mut expected: HashMap<String, u64> = HashMap::new();
        for doc_id in 0..subject.docs.len() {
            for word in subject.words(doc_id) {
                *expected.entry(word).or_default() += 1;
            }
        }
        let num_words: u64 = expected.values().sum();
        let check = |corpus: &Corpus| {
            let counts = word_count(corpus).unwrap();
            assert_eq!(counts.len(), expected.len());
            assert_eq!(black_box(counts.counts()).iter().sum::<u64>(), num_words);
        };
        group.throughput(Throughput::Bytes(subject.len_bytes()));
        group.bench_function(format!("{}/warm", subject.name), |bencher| {
            bencher.iter(|| check(&subject.corpus));
        });
        group.bench_function(format!("{}/cold", subject.name), |bencher| {
            let setup = || cold(&subject.corpus);
            bencher.iter_batched(setup, |corpus| check(&corpus), BatchSize::LargeInput);
        });
    }
}

fn index_documents(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("analytics/inverted_index");
    group.sample_size(20);
    for subject in subjects {
        let num_postings: usize = (0..subject.docs.len())
            .map(|doc_id| subject.words(doc_id).into_iter().collect::<HashSet<_>>().len())
            .sum();
        let vocabulary = Arc::new(Vocabulary::new(&subject.corpus).unwrap());
        group.throughput(Throughput::Bytes(subject.len_bytes()));
        for way in [Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan] {
            group.bench_function(format!("{}/{way}", subject.name), |bencher| {
                bencher.iter(|| {
                    let index = InvertedIndex::with_vocabulary(vocabulary.clone(), way).unwrap();
                    let found: usize = (0..index.len()).map(|row| index.num_docs(row)).sum();
                    assert_eq!(found, num_postings);
                });
            });
        }
    }
}

fn statistics(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("analytics/corpus_statistics");
    for subject in subjects {
        group.bench_function(&subject.name, |bencher| {
            bencher.iter(|| {
                let statistics = corpus_statistics(&subject.corpus);
                assert_eq!(statistics.len_bytes, subject.len_bytes());
            });
        });
    }
}

fn analytics(criterion: &mut Criterion) {
    let subjects = subjects();
    count_words(criterion, &subjects);
    index_documents(criterion, &subjects);
    statistics(criterion, &subjects);
}

criterion_group!(benches, analytics);
criterion_main!(benches);
