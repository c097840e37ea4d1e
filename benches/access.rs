//! Benchmark of reading and searching. Goals: decode at 500 MB/s and more on one core, read 64
//! bytes at any place in 1 us, find an occurrence of a word in some 15 ns, and answer phrases and
//! text predicates without reading the text.
//!
//! Command: `TADOC_CORPORA=/path cargo bench --bench access`. The timed body compares every answer
//! with one that was found by reading the documents.

#![allow(clippy::unwrap_used, missing_docs)]

mod corpora;

use std::hint::black_box;

use corpora::{Subject, subjects};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tadoc::analytics::word_count;
use tadoc::query::{Query, SearchOptions, TextPattern, candidate_documents, count, count_by_document, search};
use tadoc::read::{DocumentDecoder, extract_into};

/// Length of a passage in bytes.
const PASSAGE_BYTES: u64 = 64;
/// Number of passages in one iteration.
const NUM_PASSAGES: usize = 10_000;
/// Number of bytes that are decoded before the buffer is handed on, as for a batch of rows.
const BATCH_BYTES: usize = 4 << 20;

fn decode(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("access/decode");
    for subject in subjects {
        group.throughput(Throughput::Bytes(subject.len_bytes()));
        group.bench_function(&subject.name, |bencher| {
            let mut decoder = DocumentDecoder::new(subject.corpus.clone(), u64::MAX);
            bencher.iter(|| {
                let mut len_bytes = 0;
                for doc_id in 0..subject.corpus.num_docs() {
                    decoder.append_document(doc_id).unwrap();
                    if decoder.bytes().len() >= BATCH_BYTES {
                        len_bytes += black_box(decoder.bytes()).len() as u64;
                        decoder.clear();
                    }
                }
                len_bytes += black_box(decoder.bytes()).len() as u64;
                decoder.clear();
                assert_eq!(len_bytes, subject.len_bytes());
            });
        });
    }
}

/// Returns places spread evenly over the bytes, in a shuffled order.
fn places(subject: &Subject) -> Vec<(u64, u64)> {
    let total = subject.len_bytes();
    let mut ends = Vec::new();
    let mut sum = 0;
    for doc in &subject.docs {
        sum += doc.len() as u64;
        ends.push(sum);
    }
    (0..NUM_PASSAGES as u64)
        .map(|i| {
            let at = (i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 16) % total.max(1);
            let doc = ends.partition_point(|&end| end <= at);
            (doc as u64, at + subject.docs[doc].len() as u64 - ends[doc])
        })
        .collect()
}

fn extract(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("access/extract_64");
    group.throughput(Throughput::Elements(NUM_PASSAGES as u64));
    for subject in subjects {
        let places = places(subject);
        group.bench_function(&subject.name, |bencher| {
            let mut passage = Vec::new();
            bencher.iter(|| {
                for &(doc_id, offset) in &places {
                    passage.clear();
                    let limit = PASSAGE_BYTES;
                    let corpus = &subject.corpus;
                    extract_into(corpus, doc_id, offset, PASSAGE_BYTES, limit, &mut passage).unwrap();
                    let doc = &subject.docs[doc_id as usize];
                    let end = doc.len().min((offset + PASSAGE_BYTES) as usize);
                    assert_eq!(passage, doc[offset as usize..end]);
                }
            });
        });
    }
}

/// Returns the word at `rank` by frequency and the number of its occurrences.
fn ranked_word(subject: &Subject, rank: usize) -> Option<(String, u64)> {
    let counts = word_count(&subject.corpus).unwrap();
    let mut rows: Vec<(u64, &str)> = counts.iter().map(|(word, count)| (count, word)).collect();
    rows.sort_unstable_by(|a, b| b.cmp(a));
    rows.get(rank).map(|&(count, word)| (word.to_owned(), count))
}

fn search_words(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("access/search_word");
    for subject in subjects {
        for (name, rank) in [("most_frequent", 0), ("common", 100), ("rare", 10_000)] {
            let Some((word, expected)) = ranked_word(subject, rank) else { continue };
            let query = Query::parse(subject.corpus.profile(), &word).unwrap();
            group.throughput(Throughput::Elements(expected));
            group.bench_function(format!("{}/{name}", subject.name), |bencher| {
                bencher.iter(|| {
                    let hits = search(&subject.corpus, black_box(&query), None).unwrap();
                    assert_eq!(hits.len() as u64, expected);
                });
            });
        }
    }
}

/// Returns consecutive words from the middle of a document in the middle of the corpus.
fn phrase(subject: &Subject, num_words: usize) -> Option<Vec<String>> {
    let order = (subject.docs.len() / 2..subject.docs.len()).chain(0..subject.docs.len() / 2);
    order.map(|doc_id| subject.words(doc_id)).find(|words| words.len() >= 2 * num_words).map(|words| {
        let start = words.len() / 2;
        words[start..start + num_words].to_vec()
    })
}

fn read_phrase(subject: &Subject, phrase: &[String]) -> (u64, u64) {
    let counts = (0..subject.docs.len())
        .map(|doc_id| subject.words(doc_id).windows(phrase.len()).filter(|window| *window == phrase).count());
    let counts: Vec<u64> = counts.map(|count| count as u64).collect();
    (counts.iter().sum(), counts.iter().filter(|&&count| count > 0).count() as u64)
}

fn search_phrases(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("access/phrase");
    for subject in subjects {
        for num_words in [2, 4] {
            let Some(words) = phrase(subject, num_words) else { continue };
            let (num_hits, num_docs) = read_phrase(subject, &words);
            let text = format!("\"{}\"", words.join(" "));
            let query = Query::parse(subject.corpus.profile(), &text).unwrap();
            let options = SearchOptions::default();
            group.throughput(Throughput::Elements(num_hits));
            let name = format!("{}/{num_words}_words", subject.name);
            group.bench_function(format!("{name}/search"), |bencher| {
                bencher.iter(|| {
                    let hits = search(&subject.corpus, black_box(&query), None).unwrap();
                    assert_eq!(hits.len() as u64, num_hits);
                });
            });
            group.bench_function(format!("{name}/count"), |bencher| {
                bencher.iter(|| {
                    let found = count(&subject.corpus, black_box(&query), &options).unwrap();
                    assert_eq!(found, num_hits);
                });
            });
            group.bench_function(format!("{name}/count_by_document"), |bencher| {
                bencher.iter(|| {
                    let docs = count_by_document(&subject.corpus, black_box(&query), &options).unwrap();
                    assert_eq!(docs.len() as u64, num_docs);
                });
            });
        }
    }
}

fn candidates(criterion: &mut Criterion, subjects: &[Subject]) {
    let mut group = criterion.benchmark_group("access/candidates");
    for subject in subjects {
        for literal in ["error", "ing the ", "xyzzyx"] {
            let pattern = TextPattern::contains(literal);
            let matching: Vec<u64> = (0u64..)
                .zip(&subject.docs)
                .filter(|(_, doc)| String::from_utf8_lossy(doc).contains(literal))
                .map(|(doc_id, _)| doc_id)
                .collect();
            group.bench_function(format!("{}/{literal}", subject.name), |bencher| {
                bencher.iter(|| {
                    let found = candidate_documents(&subject.corpus, black_box(&pattern));
                    assert!(found.is_none_or(|found| found.len() >= matching.len()));
                });
            });
        }
    }
}

fn access(criterion: &mut Criterion) {
    let subjects = subjects();
    decode(criterion, &subjects);
    extract(criterion, &subjects);
    search_words(criterion, &subjects);
    search_phrases(criterion, &subjects);
    candidates(criterion, &subjects);
}

criterion_group!(benches, access);
criterion_main!(benches);
