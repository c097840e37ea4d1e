//! Tests that tasks over corpora on the device give what the CPU gives: weights, passages,
//! sequences, words and documents, pairs.
//!
//! `REQUIRE_GPU=1 cargo test --test gpu corpus::`. Without `REQUIRE_GPU=1` and without a device,
//! the tests print a line that they are skipped. Outputs are filled with one byte, then another,
//! before each comparison. Under compute-sanitizer: `TADOC_MAX_ELEMENTS=20000 compute-sanitizer
//! --tool memcheck target/debug/deps/gpu-… corpus:: --test-threads=1`, then racecheck, synccheck
//! and initcheck.

use std::slice::from_ref;
use std::sync::Arc;

use tadoc::Corpus;
use tadoc::analytics::{
    Cooccurrences, DocSelection, InvertedIndex, RankedInvertedIndex, SegmentDocumentSequences, SequenceCounts,
    TermVectors, Tfidf, Traversal, Vocabulary, segment_word_counts,
};
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;
use tadoc::ids::DocId;
use tadoc::read::extract;
use tadoc::segment::{Measure, Segment};
use tadoc_cuda::{
    CorpusCopies, Device, DeviceCorpus, DeviceGroup, DocWord, DocumentSequenceRows, DocumentWords, GpuError,
    PassageQuery, Passages, RankedRows, SequenceRows, WordDocuments, WordOffsets,
};
use testkit::device::{POISONS, open_device};
use testkit::random::Random;
use testkit::scrambled::{NUM_SEPARATORS, corpus_of, segment};

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 4 << 30;

/// Returns a random grammar whose rules refer to one of the next `span` rules.
fn random_rules(random: &mut Random, num_words: u32, num_rules: usize, span: usize) -> Vec<Vec<u32>> {
    let first_rule = num_words + NUM_SEPARATORS;
    let max_rules_of_six = if num_rules < 100 { 2 } else { 1 };
    let mut rules: Vec<Vec<u32>> = (0..num_rules)
        .map(|rule| {
            let len = 2 + random.below(if rule == 0 { 300 } else { 7 });
            let mut element = |_| match random.below(6) {
                // Large grammars have fewer than one reference per rule, or lengths would double
                // forever.
                at @ (0 | 1) if rule + 1 < num_rules && at < max_rules_of_six => {
                    let distance = 1 + random.below(span.min(num_rules - rule - 1));
                    first_rule + (rule + distance) as u32
                }
                2 => num_words + random.below(NUM_SEPARATORS as usize) as u32,
                // The first word is in nearly all rules.
                3 => 0,
                _ => random.below(num_words as usize) as u32,
            };
            let mut elements: Vec<u32> = (0..len).map(&mut element).collect();
            elements.push(rule as u32 % num_words);
            elements
        })
        .collect();
    let mut is_used = vec![false; num_rules];
    for &element in rules.iter().flatten().filter(|&&element| element >= first_rule) {
        is_used[(element - first_rule) as usize] = true;
    }
    let unused = (1..num_rules).filter(|&rule| !is_used[rule]);
    let unused: Vec<u32> = unused.map(|rule| first_rule + rule as u32).collect();
    rules[0].extend(unused);
    rules
}

fn random_segment(seed: u64, num_words: u32, num_rules: usize, span: usize) -> Arc<Segment> {
    let mut random = Random(seed * 2 + 1);
    loop {
        let rules = random_rules(&mut random, num_words, num_rules, span);
        let mut doc_offsets = vec![0];
        let root_len = rules[0].len() as u32;
        while *doc_offsets.last().unwrap() < root_len {
            let next = doc_offsets.last().unwrap() + random.below(root_len as usize) as u32;
            doc_offsets.push(next.min(root_len));
        }
        if let Some(segment) = segment(&rules, doc_offsets, num_words) {
            return segment;
        }
    }
}

/// Returns segments of many shapes with their descriptions.
fn segments() -> Vec<(String, Arc<Segment>)> {
    let mut all = Vec::new();
    for seed in 1..=24 {
        let num_rules = [1, 3, 40, 400, 5000][seed as usize % 5];
        let num_words = [1, 5, 300][seed as usize % 3];
        let span = [2, 30][seed as usize % 2];
        let made = random_segment(seed, num_words, num_rules, span);
        all.push((format!("random {seed}"), made));
    }
    let first_rule = 2 + NUM_SEPARATORS;
    let mut add = |name: &str, rules: Vec<Vec<u32>>, doc_offsets: Vec<u32>| {
        all.push((name.to_owned(), segment(&rules, doc_offsets, 2).unwrap()));
    };
    let doubling = |levels: u32| -> Vec<Vec<u32>> {
        let mut rules: Vec<Vec<u32>> = (1..=levels).map(|next| vec![first_rule + next, first_rule + next]).collect();
        rules.push(vec![0, 3, 1]);
        rules
    };
    add("a bomb of 2^58 words", doubling(57), vec![0, 1, 2]);
    add(
        "a bomb of empty separators",
        {
            let mut rules = doubling(40);
            rules[40] = vec![2, 2, 2, 2, 1];
            rules
        },
        vec![0, 2],
    );
    let mut chain: Vec<Vec<u32>> = (1..5_000).map(|next| vec![0, first_rule + next, 1, 4]).collect();
    chain.push(vec![0, 1]);
    add("a chain of 5,000 rules", chain, vec![0, 1, 4]);
    let mut chain: Vec<Vec<u32>> = (1..70_000).map(|next| vec![first_rule + next, 1]).collect();
    chain.push(vec![0, 1]);
    add("a chain of 70,000 rules", chain, vec![0, 2]);
    // Thousands of rules contain the last 7 rules, and the root contains these thousands.
    let mut held: Vec<Vec<u32>> = vec![(1..20_000).map(|rule| first_rule + rule).collect()];
    let last = |rule: u32| first_rule + 20_000 + rule % 7;
    held.extend((1..20_000).map(|rule| vec![last(rule), 0, last(rule / 7)]));
    held.extend((0..7).map(|rule| vec![1; rule + 2]));
    add("rules that are held thousands of times", held, vec![0, 100, 19_999]);
    let long: Vec<u32> = (0..1_000_000).map(|at| at * 7 % 11 % 6).collect();
    add("a rule of 1,000,000 elements", vec![vec![first_rule + 1, 0, first_rule + 1], long.clone()], vec![0, 3]);
    let len = long.len() as u32;
    add("one document", vec![long.clone()], vec![0, len]);
    add("100,000 documents", vec![long.clone()], (0..=100_000).map(|doc| doc * 10).collect());
    add("1,000,000 documents", vec![long.clone()], (0..=1_000_000).collect());
    add("empty documents only", vec![vec![]], vec![0; 10]);
    add("separators only", vec![vec![2, 3, 4, 5, 3, first_rule + 1, first_rule + 1], vec![3; 500]], vec![0, 3, 7]);
    all.push(("built".to_owned(), built(5, 400)));
    all.retain(|(_, segment)| segment.dag.grammar().symbols.len() <= max_elements());
    all
}

/// Returns the limit for the elements of a segment. There is none except under compute-sanitizer,
/// which takes minutes for large segments.
fn max_elements() -> usize {
    std::env::var("TADOC_MAX_ELEMENTS").map_or(usize::MAX, |text| text.parse().unwrap())
}

/// Builds a segment by ingest, with `num_docs` documents that repeat phrases.
fn built(seed: u64, num_docs: usize) -> Arc<Segment> {
    let mut random = Random(seed);
    let phrases: Vec<_> = (0..300).map(|_| random.words(4 + seed as usize % 90)).collect();
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    for doc in 0..num_docs {
        let len = random.below(200);
        let text: Vec<_> = (0..len).map(|_| &phrases[random.below(300)][..]).collect();
        builder.push_document(&doc.to_string(), &text.concat()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    let (_, corpus) = Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap();
    assert_eq!(corpus.segments().len(), 1);
    corpus.segments()[0].clone()
}

/// Without a device, this test shows that the cases are right.
#[test]
fn the_cpu_has_an_answer_to_each_case() {
    let mut random = Random(12);
    for (name, segment) in segments() {
        let cpu = corpus_of(&segment);
        for query in queries(&segment, &mut random, 40) {
            let passage = extract(&cpu, query.doc.into(), query.offset, query.len_bytes).unwrap();
            let left = segment.doc_length_or_derive(query.doc).len_bytes - query.offset;
            assert_eq!(passage.len() as u64, query.len_bytes.min(left), "{name}");
        }
        let pairs = sequence_counts(&name, &segment, 2);
        let num_pairs = |doc| segment.doc_length_or_derive(doc).num_words.saturating_sub(1);
        let expected = segment.dag.grammar().docs().map(num_pairs).sum::<u64>();
        assert_eq!(pairs.counts().iter().sum::<u64>(), expected, "{name}");
    }
}

fn sequence_counts(name: &str, segment: &Arc<Segment>, n: usize) -> SequenceCounts {
    let vocabulary = Arc::new(Vocabulary::new(&corpus_of(segment)).unwrap());
    let counts = SequenceCounts::with_vocabulary(vocabulary, n, Traversal::TopDown, AMPLE);
    counts.unwrap_or_else(|error| panic!("{name}, {n}: {error}"))
}

/// Returns the id of a word of `counts` in the only segment.
fn word_id(counts: &SequenceCounts, row: u32) -> u32 {
    counts.sequences().vocabulary().ids(row as usize).next().unwrap().1
}

fn upload(device: &Device, segment: &Arc<Segment>) -> DeviceCorpus {
    DeviceCorpus::upload(device, segment).unwrap()
}

#[test]
fn weights_are_the_cpus() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let corpus = upload(&device, &segment);
        let mut weights = corpus.weights().unwrap();
        let occurrences = weights.occurrences_to_host().unwrap();
        for element in 0..segment.dag.num_elements() as u32 {
            let places = segment.inverse_or_derive().for_element(element).iter();
            let expected = places.map(|place| (u32::from(place.rule_id), place.position));
            assert!(occurrences.for_element(element).eq(expected), "{name}, {element}");
        }
        for poison in POISONS {
            weights.fill(poison).unwrap();
            weights.run().unwrap();
            assert!(weights.to_host().unwrap() == segment.weights_or_derive(), "{name}");
            let counts = weights.word_counts_to_host().unwrap();
            assert!(counts == segment_word_counts(&segment), "{name}");
        }
    }
}

#[test]
fn lengths_and_starts_are_the_cpus() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let corpus = upload(&device, &segment);
        let dag = &segment.dag;
        let mut index = corpus.index().unwrap();
        // The second run must not depend on results of the first.
        for _ in POISONS {
            index.run().unwrap();
            let lens = index.lens_to_host().unwrap();
            for element in (0..dag.num_elements() as u32).filter(|&e| e != dag.num_terminals()) {
                let expected = (dag.len_bytes(element), dag.len_words(element));
                assert_eq!(lens[element as usize], expected, "{name}, {element}");
            }
            let starts = index.starts_to_host().unwrap();
            let start = |at| segment.prefix_sums_or_derive().start(dag, Measure::Bytes, at);
            assert!((0..starts.len()).all(|at| starts[at] == start(at)), "{name}");
        }
    }
}

/// Returns passages at random places, whole small documents, and passages at the end of documents.
fn queries(segment: &Segment, random: &mut Random, num_queries: usize) -> Vec<PassageQuery> {
    let num_docs = segment.dag.grammar().num_docs();
    let query = |at: usize| {
        let doc = DocId::from_index(random.below(num_docs));
        let len = segment.doc_length_or_derive(doc).len_bytes;
        let offset = (random.below(1 << 40) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) % (len + 1);
        let (offset, len_bytes) = match at % 8 {
            0 => (0, 300),
            1 => (len.saturating_sub(20), u64::MAX),
            2 => (offset, 5_000),
            3 => (len, 1),
            _ => (offset, random.below(100) as u64),
        };
        PassageQuery { doc, offset, len_bytes: len_bytes.min(100_000) }
    };
    (0..num_queries).map(query).collect()
}

#[test]
fn passages_are_the_cpus() {
    let Some(device) = open_device() else { return };
    let mut random = Random(11);
    for (name, segment) in segments() {
        let corpus = upload(&device, &segment);
        let cpu = corpus_of(&segment);
        let queries = queries(&segment, &mut random, 400);
        let expected = |q: &PassageQuery| extract(&cpu, q.doc.into(), q.offset, q.len_bytes).unwrap();
        let expected: Vec<_> = queries.iter().map(expected).collect();
        for chunk_bytes in [8, 32, 256] {
            let reader = corpus.passages().unwrap().with_chunk_bytes(chunk_bytes);
            let mut batch = reader.batch(&queries).unwrap();
            for poison in POISONS {
                batch.fill(poison).unwrap();
                reader.run(&mut batch).unwrap();
                let got = batch.to_host().unwrap();
                assert_eq!(got.len(), expected.len());
                for (at, expected) in expected.iter().enumerate() {
                    assert!(got.get(at) == expected, "{name}, {:?}", queries[at]);
                }
            }
        }
        let reader = corpus.passages().unwrap();
        let mut none = reader.batch(&[]).unwrap();
        reader.run(&mut none).unwrap();
        assert!(none.to_host().unwrap().is_empty());
    }
}

#[test]
fn passages_that_are_not_there_are_refused() {
    let Some(device) = open_device() else { return };
    let one = built(1, 10);
    let other = built(2, 10);
    let corpus = upload(&device, &one);
    let reader = corpus.passages().unwrap();
    let len = one.doc_length_or_derive(3.into()).len_bytes;
    let refused = |doc: u32, offset| {
        let query = PassageQuery { doc: doc.into(), offset, len_bytes: 1 };
        matches!(reader.batch(&[query]), Err(GpuError::Mismatch { .. }))
    };
    assert!(refused(10, 0) && refused(u32::MAX, 0) && refused(3, len + 1));
    assert!(!refused(3, len));
    let other = upload(&device, &other);
    let mut batch = other.passages().unwrap().batch(&[]).unwrap();
    assert!(matches!(reader.run(&mut batch), Err(GpuError::Mismatch { .. })));
    let weights = other.weights().unwrap();
    let counted = corpus.sequences(2).unwrap().count(&weights);
    assert!(matches!(counted, Err(GpuError::Mismatch { .. })));
}

#[test]
fn sequences_are_the_cpus() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let corpus = upload(&device, &segment);
        let weights = corpus.weights().unwrap();
        for n in [2, 3, 5] {
            let word_bits = u32::BITS - segment.dag.num_words().saturating_sub(1).leading_zeros();
            let mut sequences = match corpus.sequences(n) {
                Err(GpuError::Unsupported { .. }) if n as u32 * word_bits > 64 => continue,
                sequences => sequences.unwrap(),
            };
            let cpu = sequence_counts(&name, &segment, n);
            // The second run uses the same memory again.
            for _ in POISONS {
                let rows = sequences.count(&weights).unwrap().to_host().unwrap();
                assert_eq!(rows.len(), cpu.len(), "{name}, {n}");
                assert!(rows.counts() == cpu.counts(), "{name}, {n}");
                // The CPU's ids are rows of a vocabulary, which leaves out words that do not occur.
                let is_same = |row| {
                    let ids = cpu.sequences().words(row).map(|at| word_id(&cpu, at));
                    rows.words(row).eq(ids)
                };
                assert!((0..rows.len()).all(is_same), "{name}, {n}");
            }
        }
    }
}

#[test]
fn cooccurrences_are_the_cpus() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let corpus = upload(&device, &segment);
        let weights = corpus.weights().unwrap();
        let vocabulary = Arc::new(Vocabulary::new(&corpus_of(&segment)).unwrap());
        for window in [2, 5] {
            let way = Traversal::TopDown;
            let rows = vocabulary.clone();
            let cpu = Cooccurrences::with_vocabulary(rows, window, 1, way, AMPLE).unwrap();
            let mut pairs = corpus.cooccurrences(window).unwrap();
            for _ in POISONS {
                let rows = pairs.count(&weights).unwrap().to_host().unwrap();
                assert!(rows.counts() == cpu.counts(), "{name}, {window}");
                let id = |row: u32| vocabulary.ids(row as usize).next().unwrap().1;
                let is_same = |row| rows.words(row).eq(cpu.pairs().words(row).map(id));
                assert!((0..rows.len()).all(is_same), "{name}, {window}");
            }
        }
    }
}

#[test]
fn ranked_documents_are_the_cpus() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let corpus = DeviceGroup::upload(&device, from_ref(&segment)).unwrap();
        if len_words(&segment) >= MAX_TEXT_WORDS {
            assert!(matches!(corpus.ranked(2), Err(GpuError::Unsupported { .. })), "{name}");
            continue;
        }
        let vocabulary = Arc::new(Vocabulary::new(&corpus_of(&segment)).unwrap());
        for n in [1, 2, 4] {
            let way = Traversal::TokenScan;
            let rows = vocabulary.clone();
            let cpu = RankedInvertedIndex::with_vocabulary(rows, n, way, AMPLE).unwrap();
            let mut ranked = corpus.ranked(n).unwrap();
            for _ in POISONS {
                let rows = ranked.run().unwrap().to_host().unwrap();
                assert_eq!(rows.len(), cpu.len(), "{name}, {n}");
                let id = |row: u32| vocabulary.ids(row as usize).next().unwrap().1;
                for row in 0..rows.len() {
                    let words = cpu.sequences().words(row).map(id);
                    assert!(rows.words(row).eq(words), "{name}, {n}, {row}");
                    let (places, (docs, counts)) = (cpu.entries_of(row), rows.docs(row));
                    let expected = &cpu.doc_ids()[places.clone()];
                    assert!(docs.iter().map(|&doc| u64::from(doc)).eq(expected.iter().copied()));
                    assert!(*counts == cpu.counts()[places], "{name}, {n}, {row}");
                }
            }
        }
    }
}

#[test]
fn sequences_of_documents_are_the_cpus() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let group = DeviceGroup::upload(&device, from_ref(&segment)).unwrap();
        if len_words(&segment) >= MAX_TEXT_WORDS {
            assert!(matches!(group.ranked(2), Err(GpuError::Unsupported { .. })), "{name}");
            continue;
        }
        let corpus = corpus_of(&segment);
        for n in [1, 2, 4] {
            let expected = SegmentDocumentSequences::from_segment(&corpus, 0, n).unwrap();
            let mut ranked = group.ranked(n).unwrap();
            // The second run uses the same memory again.
            for _ in POISONS {
                let found = ranked.by_document().unwrap();
                assert_eq!(
                    (found.len(), found.num_sequences()),
                    (expected.counts.len(), expected.keys.len()),
                    "{name}"
                );
                assert!(found.to_host().unwrap().remove(0).into_segment() == expected, "{name}, {n}");
            }
        }
    }
}

/// Returns the sequences of each document, as words and counts.
fn sequences_by_document(rows: &DocumentSequenceRows, num_docs: usize) -> Vec<Vec<(Vec<u32>, u32)>> {
    let sequences = |doc| {
        let (sequences, counts) = rows.for_doc(doc);
        sequences.iter().zip(counts).map(|(&at, &count)| (rows.words(at).collect(), count)).collect()
    };
    DocId::range(0..num_docs).map(sequences).collect()
}

/// Limit for the number of words of segments that are expanded.
const MAX_TEXT_WORDS: u64 = 1 << 31;

fn len_words(segment: &Segment) -> u64 {
    segment.dag.len_words(segment.dag.num_terminals())
}

#[test]
fn words_and_documents_are_the_cpus() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let group = DeviceGroup::upload(&device, from_ref(&segment)).unwrap();
        if len_words(&segment) >= MAX_TEXT_WORDS {
            assert!(matches!(group.terms(), Err(GpuError::Unsupported { .. })), "{name}");
            continue;
        }
        let cpu = corpus_of(&segment);
        let vocabulary = Arc::new(Vocabulary::new(&cpu).unwrap());
        let index = InvertedIndex::with_vocabulary(vocabulary.clone(), Traversal::TopDown).unwrap();
        let tfidf = Tfidf::new(TermVectors::new(vocabulary.clone(), Traversal::TopDown)).unwrap();
        let vectors = tfidf.vectors().collect(&DocSelection::all(&cpu), None).unwrap();
        let ids: Vec<u32> = (0..vocabulary.len()).map(|row| vocabulary.ids(row).next().unwrap().1).collect();
        let mut terms = group.terms().unwrap();
        // The second run uses the same memory again.
        for _ in POISONS {
            let found = terms.run().unwrap();
            let documents = terms.run().unwrap().into_documents();
            assert_eq!(documents.len(), found.len(), "{name}");
            let rows = documents.to_host().unwrap().remove(0);
            let num_words = segment.dictionary.num_words();
            let doc_counts: Vec<u64> = (0..num_words).map(|word| rows.docs(word).len() as u64).collect();
            assert_eq!(found.len() as u64, doc_counts.iter().sum::<u64>(), "{name}");
            for (row, &id) in ids.iter().enumerate() {
                let docs = rows.docs(id).iter().map(|&doc| u64::from(doc));
                assert!(docs.eq(index.doc_ids(row)), "{name}, {row}");
                assert_eq!(doc_counts[id as usize], tfidf.doc_counts()[row], "{name}, {row}");
            }
            let num_docs = segment.dag.grammar().num_docs() as f64;
            let weights: Vec<f64> = doc_counts.iter().map(|&count| (num_docs / count as f64).ln()).collect();
            let by_document = found.by_document().unwrap();
            let scores = by_document.scores(&weights).unwrap().to_host().unwrap();
            let words = by_document.to_host().unwrap().remove(0);
            assert_eq!(by_document.len(), vectors.num_rows(), "{name}");
            for doc in DocId::range(0..vectors.num_docs()) {
                let range = vectors.range(doc.index());
                let expected = vectors.rows()[range.clone()].iter().map(|&row| &ids[row as usize]);
                let (got, counts) = words.for_doc(doc);
                assert!(got.iter().eq(expected), "{name}, {doc}");
                let counts = counts.iter().map(|&count| u64::from(count));
                assert!(counts.eq(vectors.counts()[range].iter().copied()), "{name}, {doc}");
            }
            let score = |at| tfidf.score(vectors.rows()[at], vectors.counts()[at]);
            assert!((0..scores.len()).all(|at| scores[at] == score(at)), "{name}");
            assert!(matches!(by_document.scores(&[0.5; 3]), Err(GpuError::Mismatch { .. })));
        }
    }
}

/// Also where the text is too long to be written out.
#[test]
fn masks_of_documents_are_the_cpus() {
    let Some(device) = open_device() else { return };
    for (name, segment) in segments() {
        let cpu = corpus_of(&segment);
        let vocabulary = Arc::new(Vocabulary::new(&cpu).unwrap());
        let index = InvertedIndex::with_vocabulary(vocabulary.clone(), Traversal::TopDown).unwrap();
        let group = DeviceGroup::upload(&device, from_ref(&segment)).unwrap();
        let mut masks = group.documents_by_masks().unwrap();
        for _ in POISONS {
            let found = masks.run().unwrap();
            let rows = found.to_host().unwrap().remove(0);
            let mut num_rows = 0;
            for row in 0..vocabulary.len() {
                let docs = rows.docs(vocabulary.ids(row).next().unwrap().1);
                assert!(docs.iter().map(|&doc| u64::from(doc)).eq(index.doc_ids(row)), "{name}, {row}");
                num_rows += docs.len();
            }
            assert_eq!(found.len(), num_rows, "{name}");
        }
    }
}

/// Words of many documents that have little in common are sorted, else there are masks.
#[test]
fn the_way_that_moves_fewer_bytes_finds_documents() {
    let Some(device) = open_device() else { return };
    let words: Vec<u32> = (0..20_000).map(|at| at * 7 % 300).collect();
    let of_docs = |num_docs: u32| {
        let doc_offsets = (0..=num_docs).map(|doc| doc * (20_000 / num_docs)).collect();
        segment(from_ref(&words), doc_offsets, 300).unwrap()
    };
    for (num_docs, has_masks) in [(20, true), (20_000, false)] {
        let group = DeviceGroup::upload(&device, &[of_docs(num_docs)]).unwrap();
        let mut documents = group.documents().unwrap();
        assert_eq!(documents.has_masks(), has_masks, "{num_docs}");
        let rows = documents.run().unwrap().to_host().unwrap();
        assert!(rows == group.documents_by_masks().unwrap().run().unwrap().to_host().unwrap(), "{num_docs}");
    }
}

#[test]
fn a_group_of_segments_has_the_rows_of_each() {
    let Some(device) = open_device() else { return };
    let mut segments = segments();
    let is_small =
        |segment: &Segment| len_words(segment) < MAX_TEXT_WORDS / 8 && segment.dag.grammar().num_docs() < 10_000;
    segments.retain(|(_, segment)| is_small(segment));
    for group in segments.chunks(7) {
        let names: Vec<&str> = group.iter().map(|(name, _)| name.as_str()).collect();
        let group: Vec<Arc<Segment>> = group.iter().map(|(_, segment)| segment.clone()).collect();
        let rows = |segments: &[Arc<Segment>]| {
            let group = DeviceGroup::upload(&device, segments).unwrap();
            let masks = group.documents_by_masks().unwrap().run().unwrap().to_host().unwrap();
            let found = group.terms().unwrap().run().unwrap();
            let vectors = found.by_document().unwrap().to_host().unwrap();
            let documents = found.into_documents().to_host().unwrap();
            assert!(masks == documents, "{names:?}");
            let sequences = group.ranked(3).unwrap().by_document().unwrap().to_host().unwrap();
            (documents, vectors, sequences)
        };
        let (documents, vectors, sequences) = rows(&group);
        let lens = [documents.len(), vectors.len(), sequences.len()];
        assert_eq!(lens, [group.len(); 3]);
        for (at, segment) in group.iter().enumerate() {
            let (own_documents, own_vectors, own_sequences) = rows(from_ref(segment));
            assert!(documents[at] == own_documents[0], "{}", names[at]);
            assert!(vectors[at] == own_vectors[0], "{}", names[at]);
            let num_docs = segment.dag.grammar().num_docs();
            let [got, expected] = [&sequences[at], &own_sequences[0]].map(|rows| sequences_by_document(rows, num_docs));
            assert!(got == expected, "{}", names[at]);
        }
    }
    let twice = [built(4, 300), built(5, 300)];
    let ranks = DeviceGroup::upload(&device, &twice).unwrap().ranked(2).unwrap().run();
    assert!(matches!(ranks, Err(GpuError::Mismatch { .. })));
    let none = DeviceGroup::upload(&device, &[]).unwrap();
    assert!(none.documents_by_masks().unwrap().run().unwrap().to_host().unwrap().is_empty());
    assert!(none.terms().unwrap().run().unwrap().by_document().unwrap().to_host().unwrap().is_empty());
    assert!(none.ranked(2).unwrap().by_document().unwrap().to_host().unwrap().is_empty());
}

#[test]
fn what_does_not_fit_is_refused() {
    let Some(device) = open_device() else { return };
    let many_words = random_segment(3, 300, 40, 30);
    let corpus = upload(&device, &many_words);
    for n in [0, 1, 8, usize::MAX] {
        let refused = corpus.sequences(n);
        assert!(matches!(refused, Err(GpuError::Unsupported { .. })), "{n}");
    }
    assert!(corpus.sequences(7).is_ok());
    for window in [0, 1, 256, usize::MAX] {
        let refused = corpus.cooccurrences(window);
        assert!(matches!(refused, Err(GpuError::Unsupported { .. })), "{window}");
    }
    for n in [0, 8, usize::MAX] {
        let refused = DeviceGroup::upload(&device, from_ref(&many_words)).unwrap().ranked(n);
        assert!(matches!(refused, Err(GpuError::Unsupported { .. })), "{n}");
    }
}

#[test]
fn memory_is_counted_and_given_back() {
    let Some(device) = open_device() else { return };
    let segment = built(4, 300);
    let little = device.clone().with_max_bytes(2_000);
    let refused = DeviceCorpus::upload(&little, &segment);
    assert!(matches!(refused, Err(GpuError::OutOfMemory { .. })));
    assert_eq!(little.used_bytes(), 0);
    let counted = device.with_max_bytes(1 << 30);
    let corpus = upload(&counted, &segment);
    let bytes_of_grammar = counted.used_bytes();
    assert!(bytes_of_grammar >= 4 * segment.dag.grammar().symbols.len() as u64);
    let weights = corpus.weights().unwrap();
    let mut sequences = corpus.sequences(3).unwrap();
    let rows = sequences.count(&weights).unwrap();
    assert!(rows.num_windows() >= rows.len() && !rows.is_empty());
    assert!(counted.used_bytes() > bytes_of_grammar);
    drop((rows, sequences, weights, corpus));
    assert_eq!(counted.used_bytes(), 0);
    assert!(counted.peak_bytes() > bytes_of_grammar);
}

/// Returns the same device, set to share the host's memory.
fn sharing(device: &Device) -> Device {
    device.clone().sharing_host_memory().with_max_bytes(AMPLE)
}

/// Answers to all requests of SQL to a segment, or their errors.
#[derive(PartialEq)]
struct Answers {
    counts: Result<Vec<u64>, GpuError>,
    rows: [Result<SequenceRows, GpuError>; 2],
    ranked: Result<RankedRows, GpuError>,
    sequences: Result<Vec<DocumentSequenceRows>, GpuError>,
    documents: Result<Vec<WordDocuments>, GpuError>,
    vectors: Result<Vec<DocumentWords>, GpuError>,
    passages: Result<Passages, GpuError>,
    found: Result<(Vec<u64>, WordOffsets), GpuError>,
}

fn answers(copies: &mut CorpusCopies, segment: &Arc<Segment>, queries: &[PassageQuery], words: &[DocWord]) -> Answers {
    let mut found = || {
        let counts = copies.document_word_counts(segment, words)?;
        Ok((counts, copies.document_word_offsets(segment, words, 1 << 20)?))
    };
    Answers {
        found: found(),
        counts: copies.word_counts(segment),
        rows: [
            copies.sequence_counts(segment, 3).and_then(|rows| rows.to_host()),
            copies.pair_counts(segment, 3).and_then(|rows| rows.to_host()),
        ],
        ranked: copies.ranked_documents(segment, 2).and_then(|rows| rows.to_host()),
        sequences: copies.document_sequences(from_ref(segment), 2).and_then(|rows| rows.to_host()),
        documents: copies.word_documents(from_ref(segment)).and_then(|rows| rows.to_host()),
        vectors: copies.term_vectors(from_ref(segment)).and_then(|rows| rows.to_host()),
        passages: copies.passages(segment, queries),
    }
}

/// The other tests show that a device with its own memory is right.
#[test]
fn a_device_that_shares_the_hosts_memory_gives_the_same_answers() {
    let Some(device) = open_device() else { return };
    let mut random = Random(14);
    for (name, segment) in segments() {
        let queries = queries(&segment, &mut random, 200);
        let word = |query: &PassageQuery| {
            let num_words = segment.dictionary.num_words() as usize;
            DocWord { doc: query.doc, word: Some(random.below(num_words) as u32) }
        };
        let words: Vec<DocWord> = queries.iter().map(word).collect();
        let shared = sharing(&device);
        let mut copies = [device.clone(), shared.clone()].map(CorpusCopies::new);
        // The first run makes the data, the second uses the kept data.
        for _ in POISONS {
            let [expected, got] = copies.each_mut().map(|copies| answers(copies, &segment, &queries, &words));
            assert!(got.counts == expected.counts, "{name}: counts of words");
            assert!(got.rows == expected.rows, "{name}: sequences, pairs");
            assert!(got.documents == expected.documents, "{name}: documents of words");
            assert!(got == expected, "{name}: vectors, ranked documents, sequences of documents, passages, places");
        }
        let grammar_bytes = size_of_val(&segment.dag.grammar().symbols[..]) as u64;
        assert!(shared.used_bytes() >= grammar_bytes, "{name}: {}", shared.used_bytes());
        drop(copies);
        assert_eq!(shared.used_bytes(), 0, "{name}: all of it is given back");
    }
}

#[test]
fn memory_that_is_shared_has_its_limit() {
    let Some(device) = open_device() else { return };
    let segment = built(4, 300);
    let little = sharing(&device).with_max_bytes(2_000);
    let refused = DeviceCorpus::upload(&little, &segment);
    assert!(matches!(refused, Err(GpuError::OutOfMemory { .. })), "{refused:?}");
    assert_eq!((little.used_bytes(), little.copied_bytes()), (0, 0));
}
