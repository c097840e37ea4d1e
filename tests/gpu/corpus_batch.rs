//! Tests that batches on the device give what the CPU gives: counts and places of words.
//!
//! `REQUIRE_GPU=1 cargo test --test gpu corpus_batch`. Without `REQUIRE_GPU=1` and without a
//! device, the tests print a line that they are skipped. Texts come from the builder and from
//! random grammars, whose rules may begin or end inside a word and contain implied blanks and empty
//! separators.

use std::sync::Arc;

use tadoc::Corpus;
use tadoc::analytics::segment_word_counts;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;
use tadoc::ids::DocId;
use tadoc::query::{WordQuery, count_batch, search_batch};
use tadoc::segment::Segment;
use tadoc_cuda::{CorpusText, CorpusWords, Device, DeviceCorpus, DocWord, GpuError};
use testkit::device::open_device;
use testkit::random::Random;
use testkit::scrambled::{NUM_SEPARATORS, corpus_of, segment};

/// Sizes of chunks. Words and rules end inside chunks, at their ends and behind them.
const CHUNK_BYTES: [u32; 3] = [64, 129, 4096];

/// Returns a random grammar of `num_rules` rules, each of which refers to the next ones.
fn random_segment(seed: u64, num_words: u32, num_rules: usize) -> Arc<Segment> {
    let mut random = Random(seed * 2 + 1);
    let first_rule = num_words + NUM_SEPARATORS;
    loop {
        let mut rules: Vec<Vec<u32>> = Vec::new();
        for rule in 0..num_rules {
            let len = 2 + random.below(if rule == 0 { 400 } else { 6 });
            let mut elements: Vec<u32> = Vec::new();
            for _ in 0..len {
                elements.push(match random.below(8) {
                    0 if rule + 1 < num_rules => {
                        let distance = 1 + random.below(8.min(num_rules - rule - 1));
                        first_rule + (rule + distance) as u32
                    }
                    1 | 2 => num_words + random.below(NUM_SEPARATORS as usize) as u32,
                    3 => 0,
                    _ => random.below(num_words as usize) as u32,
                });
            }
            elements.push(rule as u32 % num_words);
            rules.push(elements);
        }
        let is_used = |rule: usize| rules.iter().flatten().any(|&element| element == first_rule + rule as u32);
        let unused: Vec<usize> = (1..num_rules).filter(|&rule| !is_used(rule)).collect();
        rules[0].extend(unused.iter().map(|&rule| first_rule + rule as u32));
        let root_len = rules[0].len() as u32;
        let mut doc_offsets = vec![0];
        while *doc_offsets.last().unwrap() < root_len {
            let next = doc_offsets.last().unwrap() + random.below(root_len as usize) as u32;
            doc_offsets.push(next.min(root_len));
        }
        if let Some(segment) = segment(&rules, doc_offsets, num_words) {
            return segment;
        }
    }
}

/// Builds a segment by ingest, with `num_docs` documents that repeat phrases.
pub(super) fn built(seed: u64, num_docs: usize) -> Arc<Segment> {
    let mut random = Random(seed);
    let phrases: Vec<_> = (0..100).map(|_| random.words(4 + seed as usize % 60)).collect();
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    for doc in 0..num_docs {
        let len = random.below(100);
        let text: Vec<_> = (0..len).map(|_| &phrases[random.below(100)][..]).collect();
        builder.push_document(&doc.to_string(), &text.concat()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    let (_, corpus) = Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap();
    assert_eq!(corpus.segments().len(), 1);
    corpus.segments()[0].clone()
}

pub(super) fn segments() -> Vec<(String, Arc<Segment>)> {
    let mut all = Vec::new();
    for seed in 1..=12 {
        let num_rules = [1, 3, 40, 400][seed as usize % 4];
        let num_words = [1, 5, 300][seed as usize % 3];
        all.push((format!("random {seed}"), random_segment(seed, num_words, num_rules)));
    }
    let first_rule = 2 + NUM_SEPARATORS;
    let mut add = |name: &str, rules: Vec<Vec<u32>>, doc_offsets: Vec<u32>| {
        all.push((name.to_owned(), segment(&rules, doc_offsets, 2).unwrap()));
    };
    let mut chain: Vec<Vec<u32>> = (1..2_000).map(|next| vec![0, first_rule + next, 1, 4]).collect();
    chain.push(vec![0, 1]);
    add("a chain of 2,000 rules", chain, vec![0, 1, 4]);
    let long: Vec<u32> = (0..300_000).map(|at| at * 7 % 11 % 6).collect();
    let rules = vec![vec![first_rule + 1, 0, first_rule + 1], long.clone()];
    add("a rule of 300,000 elements", rules, vec![0, 3]);
    add("100,000 documents", vec![long], (0..=100_000).map(|doc| doc * 3).collect());
    add("empty documents only", vec![vec![]], vec![0; 10]);
    all.push(("built".to_owned(), built(5, 300)));
    all
}

pub(super) fn words_of(device: &Device, segment: &Arc<Segment>) -> (CorpusText, CorpusWords) {
    let text = DeviceCorpus::upload(device, segment).unwrap().text().unwrap();
    let words = text.words().unwrap();
    (text, words)
}

/// Returns queries for words of the dictionary and other words. Some ask one document twice.
fn word_queries(segment: &Segment, random: &mut Random, num_queries: usize) -> Vec<(DocId, String)> {
    let num_docs = segment.dag.grammar().num_docs();
    let query = |_| {
        let doc = DocId::from_index(random.below(num_docs));
        let num_words = segment.dictionary.num_words() as usize;
        let word = match random.below(12) {
            0 => "unheardof".to_owned(),
            1 | 2 => segment.dictionary.word(0.into()).to_owned(),
            _ => segment.dictionary.word((random.below(num_words) as u32).into()).to_owned(),
        };
        (doc, word)
    };
    let mut queries: Vec<(DocId, String)> = (0..num_queries).map(query).collect();
    queries.extend_from_within(..num_queries / 4);
    queries
}

pub(super) fn of_cpu(queries: &[(DocId, String)]) -> Vec<WordQuery<'_>> {
    queries.iter().map(|(doc, word)| WordQuery { doc_id: (*doc).into(), word }).collect()
}

pub(super) fn of_device(text: &CorpusText, queries: &[(DocId, String)]) -> Vec<DocWord> {
    let query = |(doc, word): &(DocId, String)| {
        let word = text.word_id(word.as_bytes());
        DocWord { doc: *doc, word }
    };
    queries.iter().map(query).collect()
}

/// Without a device, this test shows that the cases are right.
#[test]
fn the_cpu_has_an_answer_to_each_case() {
    let mut random = Random(12);
    let mut num_found = 0;
    for (name, segment) in segments() {
        let cpu = corpus_of(&segment);
        let queries = word_queries(&segment, &mut random, 40);
        let counts = count_batch(&cpu, &of_cpu(&queries)).unwrap();
        let lists = search_batch(&cpu, &of_cpu(&queries), u64::MAX).unwrap();
        for (at, &count) in counts.iter().enumerate() {
            assert_eq!(lists.get(at).unwrap().len() as u64, count, "{name}");
            num_found += count;
        }
    }
    assert!(num_found > 100_000);
}

#[test]
fn words_in_documents_are_the_cpus() {
    let Some(device) = open_device() else { return };
    let mut random = Random(12);
    for (name, segment) in segments() {
        let (cpu, (text, words)) = (corpus_of(&segment), words_of(&device, &segment));
        for num_queries in [1, 600] {
            let queries = word_queries(&segment, &mut random, num_queries);
            let counts = count_batch(&cpu, &of_cpu(&queries)).unwrap();
            let lists = search_batch(&cpu, &of_cpu(&queries), u64::MAX).unwrap();
            for chunk_bytes in CHUNK_BYTES {
                let words = text.words().unwrap().with_chunk_bytes(chunk_bytes);
                let mut batch = words.batch(&of_device(&text, &queries)).unwrap();
                // The second run uses the same memory again.
                for _ in 0..2 {
                    let got = words.count(&mut batch).unwrap().to_host().unwrap();
                    assert!(got == counts, "{name}, {chunk_bytes}");
                    let got = words.find(&mut batch, u64::MAX).unwrap().to_host().unwrap();
                    assert_eq!(got.len(), queries.len());
                    let is_same = |at: usize| got.get(at) == lists.get(at).unwrap();
                    assert!((0..queries.len()).all(is_same), "{name}, {chunk_bytes}");
                }
            }
        }
        let mut none = words.batch(&[]).unwrap();
        assert!(words.count(&mut none).unwrap().to_host().unwrap().is_empty());
        assert!(words.find(&mut none, 0).unwrap().to_host().unwrap().is_empty());
    }
}

#[test]
fn words_of_corpora_are_counted() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let corpus = DeviceCorpus::upload(&device, &segment).unwrap();
        let words = corpus.text().unwrap().words().unwrap();
        let weights = corpus.weights().unwrap();
        let expected = segment_word_counts(&segment);
        let all: Vec<u32> = (0..segment.dictionary.num_words()).rev().collect();
        let counts = words.corpus_counts(&weights, &all).unwrap().to_host().unwrap();
        assert!(counts.iter().rev().eq(expected.iter()), "{name}");
        let beyond = words.corpus_counts(&weights, &[segment.dictionary.num_words()]);
        assert!(matches!(beyond, Err(GpuError::Mismatch { .. })), "{name}");
    }
}

#[test]
fn words_that_cannot_be_asked_for_are_refused() {
    let Some(device) = open_device() else { return };
    let segment = built(1, 10);
    let (text, words) = words_of(&device, &segment);
    let word = Some(0);
    let refused = |query| matches!(words.batch(&[query]), Err(GpuError::Mismatch { .. }));
    let [doc, beyond, last] = [3, 10, u32::MAX].map(DocId::from);
    assert!(refused(DocWord { doc: beyond, word }) && refused(DocWord { doc: last, word }));
    let separator = Some(segment.dictionary.num_words());
    assert!(refused(DocWord { doc, word: separator }));
    assert!(refused(DocWord { doc, word: Some(u32::MAX) }));
    assert!(!refused(DocWord { doc, word }) && !refused(DocWord { doc, word: None }));
    let other = words_of(&device, &built(2, 10)).1;
    let mut batch = other.batch(&[]).unwrap();
    assert!(matches!(words.count(&mut batch), Err(GpuError::Mismatch { .. })));
    let the = text.word_id(b"the");
    let all: Vec<_> = DocId::range(0..10).map(|doc| DocWord { doc, word: the }).collect();
    let mut batch = words.batch(&all).unwrap();
    let number: u64 = words.count(&mut batch).unwrap().to_host().unwrap().iter().sum();
    assert!(number > 0);
    assert!(matches!(words.find(&mut batch, number - 1), Err(GpuError::Mismatch { .. })));
    assert_eq!(words.find(&mut batch, number).unwrap().num_offsets() as u64, number);
    // One document has 2^58 words, too many to read.
    let first_rule = 2 + NUM_SEPARATORS;
    let mut rules: Vec<Vec<u32>> = (1..57).map(|next| vec![first_rule + next; 2]).collect();
    rules.push(vec![0, 3, 1]);
    let bomb = self::segment(&rules, vec![0, 1, 2], 2).unwrap();
    let words = words_of(&device, &bomb).1;
    let refused = words.batch(&[DocWord { doc: DocId::FIRST, word }]);
    assert!(matches!(refused, Err(GpuError::Mismatch { .. })));
}
