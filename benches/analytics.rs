//! Benchmark of counting and indexing. Goals: word_count 100 times and inverted_index 20 times as
//! fast as an engine that tokenizes the text for every query (`peers/` measures such engines on the
//! same bytes).
//!
//! Command: `TADOC_CORPORA=/path cargo bench --bench analytics`. The timed body compares every
//! answer with one that was found by reading the documents. `word_count/cold` visits all rules in
//! every iteration. `word_count/warm` reuses the counts of an earlier visit.

#![allow(clippy::unwrap_used, missing_docs)]

mod corpora;

use std::collections::{HashMap, HashSet};
use std::hint::black_box;
use std::sync::Arc;

use corpora::{Subject, subjects};
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use rustc_hash::FxHashMap;
use tadoc::Corpus;
use tadoc::analytics::{
    DocSelection, DocumentSequences, InvertedIndex, TermVectors, Traversal, Vocabulary, cooccurrence,
    corpus_statistics, ranked_inverted_index, sequence_count, word_count,
};
use tadoc::segment::{Dag, Segment};
use tadoc::text::for_each_token;

/// Returns a copy of the corpus without derived data.
fn cold(corpus: &Corpus) -> Corpus {
    let segments = corpus.segments().iter().map(|segment| {
        let dictionary = segment.dictionary.clone();
        let grammar = segment.dag.grammar().clone();
        let dag = Dag::new(grammar, dictionary.num_words(), dictionary.lengths()).unwrap();
        let paths = segment.paths.clone();
        let continues = segment.continues;
        Arc::new(Segment::new(dictionary, dag, paths, continues))
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
        let num_postings: usize =
            (0..subject.docs.len()).map(|doc_id| subject.words(doc_id).into_iter().collect::<HashSet<_>>().len()).sum();
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

/// Memory limit in bytes that is larger than any task here needs.
const AMPLE: u64 = 8 << 30;

/// Returns the input of the peer: the words of each document as ids in byte order. The peer does
/// not tokenize.
fn token_arrays(subject: &Subject) -> Vec<Vec<u32>> {
    let docs: Vec<Vec<String>> = (0..subject.docs.len()).map(|doc| subject.words(doc)).collect();
    let mut words: Vec<&str> = docs.iter().flatten().map(String::as_str).collect();
    words.sort_unstable();
    words.dedup();
    let ids: HashMap<&str, u32> = words.into_iter().zip(0..).collect();
    docs.iter().map(|doc| doc.iter().map(|word| ids[word.as_str()]).collect()).collect()
}

/// Counts windows as the peer does, in a hash table over the arrays, and returns sorted rows.
fn scanned<const N: usize>(docs: &[Vec<u32>]) -> Vec<([u32; N], u64)> {
    let mut counts: FxHashMap<[u32; N], u64> = FxHashMap::default();
    for window in docs.iter().flat_map(|doc| doc.windows(N)) {
        *counts.entry(window.try_into().unwrap()).or_default() += 1;
    }
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_unstable();
    rows
}

fn count_sequences_of<const N: usize>(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group(format!("analytics/sequence_count/{N}"));
    group.sample_size(10);
    for subject in subjects {
        let docs = token_arrays(subject);
        let expected = scanned::<N>(&docs);
        let num_windows: u64 = expected.iter().map(|(_, count)| count).sum();
        group.throughput(Throughput::Bytes(subject.len_bytes()));
        group.bench_function(format!("{}/grammar", subject.name), |bencher| {
            bencher.iter(|| {
                let counts = sequence_count(&subject.corpus, N, AMPLE).unwrap();
                assert_eq!(counts.len(), expected.len());
                assert_eq!(counts.counts().iter().sum::<u64>(), num_windows);
            });
        });
        group.bench_function(format!("{}/token_array", subject.name), |bencher| {
            bencher.iter(|| assert_eq!(scanned::<N>(&docs).len(), expected.len()));
        });
        group.bench_function(format!("{}/retokenized", subject.name), |bencher| {
            bencher.iter(|| {
                let rows = scanned::<N>(&token_arrays(subject));
                assert_eq!(rows.len(), expected.len());
            });
        });
    }
}

fn sequences_of_documents(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("analytics/sequences_of_documents/3");
    group.sample_size(10);
    for subject in subjects {
        let docs = token_arrays(subject);
        let scan = || docs.iter().map(|doc| scanned::<3>(std::slice::from_ref(doc)).len()).sum::<usize>();
        let num_rows = scan();
        let vocabulary = Arc::new(Vocabulary::new(&subject.corpus).unwrap());
        let all: Vec<u64> = (0..subject.corpus.num_docs()).collect();
        group.throughput(Throughput::Bytes(subject.len_bytes()));
        group.bench_function(format!("{}/by_document", subject.name), |bencher| {
            bencher.iter(|| {
                let sequences = DocumentSequences::new(vocabulary.clone(), 3, Traversal::Auto, AMPLE).unwrap();
                assert_eq!(sequences.chunk(&all).unwrap().counts().len(), num_rows);
            });
        });
        group.bench_function(format!("{}/token_array", subject.name), |bencher| {
            bencher.iter(|| assert_eq!(scan(), num_rows));
        });
        group.bench_function(format!("{}/ranked", subject.name), |bencher| {
            bencher.iter(|| {
                let index = ranked_inverted_index(&subject.corpus, 3, AMPLE).unwrap();
                assert_eq!(index.doc_ids().len(), num_rows);
            });
        });
    }
}

fn pair_words(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("analytics/cooccurrence/5");
    group.sample_size(10);
    for subject in subjects {
        let docs = token_arrays(subject);
        let scan = || {
            let mut counts: FxHashMap<[u32; 2], u64> = FxHashMap::default();
            for doc in &docs {
                for (at, &word) in doc.iter().enumerate() {
                    for &other in &doc[at + 1..doc.len().min(at + 5)] {
                        *counts.entry([word.min(other), word.max(other)]).or_default() += 1;
                    }
                }
            }
            let mut rows: Vec<_> = counts.into_iter().collect();
            rows.sort_unstable();
            rows
        };
        let expected: Vec<u64> = scan().into_iter().map(|(_, count)| count).collect();
        group.throughput(Throughput::Bytes(subject.len_bytes()));
        group.bench_function(format!("{}/grammar", subject.name), |bencher| {
            bencher.iter(|| {
                let pairs = cooccurrence(&subject.corpus, 5, 1, AMPLE).unwrap();
                assert_eq!(pairs.counts(), expected);
            });
        });
        group.bench_function(format!("{}/token_array", subject.name), |bencher| {
            bencher.iter(|| assert_eq!(scan().len(), expected.len()));
        });
    }
}

/// Measures term vectors beside two ways without a grammar: one hash table per document over an
/// array of word ids, and the same over the text.
fn vector_documents(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("analytics/term_vector");
    group.sample_size(20);
    for subject in subjects {
        let vocabulary = Arc::new(Vocabulary::new(&subject.corpus).unwrap());
        let row = |word: &String| vocabulary.row_of(word).unwrap() as u32;
        let tokens: Vec<Vec<u32>> =
            (0..subject.docs.len()).map(|doc_id| subject.words(doc_id).iter().map(row).collect()).collect();
        let expected = scan(&tokens);
        group.throughput(Throughput::Bytes(subject.len_bytes()));
        group.bench_function(format!("{}/token_array", subject.name), |bencher| {
            bencher.iter(|| assert_eq!(scan(&tokens).len(), expected.len()));
        });
        group.bench_function(format!("{}/text", subject.name), |bencher| {
            bencher.iter(|| assert_eq!(count_text(subject).len(), expected.len()));
        });
        for way in [Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan] {
            let all = DocSelection::all(&subject.corpus);
            group.bench_function(format!("{}/{way}", subject.name), |bencher| {
                bencher.iter(|| {
                    let vectors = TermVectors::new(vocabulary.clone(), way);
                    let found = vectors.collect(&all, None).unwrap();
                    assert!(found.iter().eq(expected.iter().copied()));
                });
            });
        }
    }
}

/// Returns documents, words and counts in ascending order.
fn scan(tokens: &[Vec<u32>]) -> Vec<(u64, u32, u64)> {
    let (mut counts, mut rows) = (FxHashMap::<u32, u64>::default(), Vec::new());
    for (doc_id, tokens) in (0..).zip(tokens) {
        tokens.iter().for_each(|&token| *counts.entry(token).or_default() += 1);
        let start = rows.len();
        rows.extend(counts.drain().map(|(row, count)| (doc_id, row, count)));
        rows[start..].sort_unstable();
    }
    rows
}

/// Returns the rows of [`scan`], counted over words that are cut from the text.
fn count_text(subject: &Subject) -> Vec<(u64, &[u8], u64)> {
    let mut rows = Vec::new();
    for (doc_id, doc) in (0..).zip(&subject.docs) {
        let mut counts = FxHashMap::<&[u8], u64>::default();
        for_each_token(subject.corpus.profile(), doc, |token| {
            if token.is_word {
                *counts.entry(token.bytes).or_default() += 1;
            }
        });
        let start = rows.len();
        rows.extend(counts.drain().map(|(word, count)| (doc_id, word, count)));
        rows[start..].sort_unstable();
    }
    rows
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
    vector_documents(criterion, &subjects);
    count_sequences_of::<2>(criterion, &subjects);
    count_sequences_of::<3>(criterion, &subjects);
    count_sequences_of::<5>(criterion, &subjects);
    sequences_of_documents(criterion, &subjects);
    pair_words(criterion, &subjects);
    statistics(criterion, &subjects);
}

criterion_group!(benches, analytics);
criterion_main!(benches);
