//! Tests that batches on the device give what the CPU gives: counts and places of words, texts
//! after edits in sequence and in batch, and reads between edits.
//!
//! `REQUIRE_GPU=1 cargo test --test gpu corpus_batch`. Without `REQUIRE_GPU=1` and without a
//! device, the tests print a line that they are skipped. Texts come from the builder and from
//! random grammars, whose rules may begin or end inside a word and contain implied blanks and empty
//! separators.

use std::sync::Arc;

use tadoc::Corpus;
use tadoc::analytics::segment_word_counts;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Answer, Edit, EditBatch, EditMode, LivingCorpus, Operation};
use tadoc::format::OpenLimits;
use tadoc::grammar::Grammar;
use tadoc::ids::DocId;
use tadoc::query::{WordQuery, count_batch, search_batch};
use tadoc::segment::{Dag, Paths, Segment};
use tadoc::text::{Dictionary, TokenizerProfile};
use tadoc_cuda::{CorpusText, CorpusWords, Device, DeviceCorpus, DocWord, GpuError, PassageQuery};
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
fn built(seed: u64, num_docs: usize) -> Arc<Segment> {
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

fn segments() -> Vec<(String, Arc<Segment>)> {
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

fn words_of(device: &Device, segment: &Arc<Segment>) -> (CorpusText, CorpusWords) {
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

fn of_cpu(queries: &[(DocId, String)]) -> Vec<WordQuery<'_>> {
    queries.iter().map(|(doc, word)| WordQuery { doc_id: (*doc).into(), word }).collect()
}

fn of_device(text: &CorpusText, queries: &[(DocId, String)]) -> Vec<DocWord> {
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

const PROFILE: TokenizerProfile = TokenizerProfile::Word;
const MODES: [EditMode; 2] = [EditMode::InSequence, EditMode::InBatch];
/// Number of documents up to which all are compared. In larger corpora only edited documents are.
const MANY_DOCUMENTS: usize = 1000;

/// Generator of inserts, appends and deletes, also at the ends of documents and inside words.
/// Offsets are valid for `lens`, which follows the edits if `mode` requires it.
struct Edits<'a> {
    random: &'a mut Random,
    mode: EditMode,
    before: Vec<u64>,
    lens: Vec<u64>,
}

impl<'a> Edits<'a> {
    fn new(random: &'a mut Random, mode: EditMode, living: &LivingCorpus) -> Self {
        let len = |doc| living.len_bytes(doc).unwrap();
        let lens: Vec<u64> = (0..living.num_docs()).map(len).collect();
        Self { random, mode, before: lens.clone(), lens }
    }

    fn next(&mut self) -> Edit {
        // A few documents get most edits.
        let all = self.lens.len();
        let limit = if self.random.below(2) == 0 { all } else { all.min(3) };
        let doc_id = self.random.below(limit) as u64;
        let doc = doc_id as usize;
        let len = if self.mode == EditMode::InBatch { self.before[doc] } else { self.lens[doc] };
        let offset_bytes = match self.random.below(8) {
            0 => 0,
            1 => len,
            2 => self.random.below(len.min(40) as usize + 1) as u64,
            _ => self.random.below(1 << 40) as u64 % (len + 1),
        };
        let num_bytes = self.random.below(30);
        let text = self.random.words(num_bytes);
        match self.random.below(8) {
            0 | 1 => {
                self.lens[doc] += text.len() as u64;
                Edit::AppendText { doc_id, text }
            }
            2 => {
                let most = if self.random.below(20) == 0 { u64::MAX } else { 60 };
                let len_bytes = (len - offset_bytes).min(most);
                self.lens[doc] -= if self.mode == EditMode::InBatch { 0 } else { len_bytes };
                Edit::DeleteText { doc_id, offset_bytes, len_bytes }
            }
            _ => {
                self.lens[doc] += text.len() as u64;
                Edit::InsertText { doc_id, offset_bytes, text }
            }
        }
    }

    fn batch(mut self, num_edits: usize) -> EditBatch {
        let edits = (0..num_edits).map(|_| self.next()).collect();
        EditBatch { mode: self.mode, edits }
    }
}

/// Compares whole documents.
fn assert_same_texts(name: &str, text: &CorpusText, living: &LivingCorpus) {
    let docs: Vec<DocId> = match text.num_docs() {
        num_docs @ ..MANY_DOCUMENTS => DocId::range(0..num_docs).collect(),
        _ => living.edited_docs().into_iter().chain([0]).map(|doc| DocId::from_index(doc as usize)).collect(),
    };
    let query = |&doc: &DocId| PassageQuery { doc, offset: 0, len_bytes: u64::MAX };
    let queries: Vec<PassageQuery> = docs.iter().map(query).collect();
    let reader = text.passages().unwrap();
    let mut batch = reader.batch(&queries).unwrap();
    reader.run(&mut batch).unwrap();
    let passages = batch.to_host().unwrap();
    for (at, &doc) in docs.iter().enumerate() {
        let len = living.len_bytes(doc.into()).unwrap();
        assert_eq!(text.doc_len_bytes(doc).unwrap(), len, "{name}, document {doc}");
        let expected = living.extract(doc.into(), 0, len).unwrap();
        assert!(passages.get(at) == expected, "{name}, document {doc}");
    }
}

/// Compares counts and places of old and new words.
fn assert_same_words(name: &str, text: &CorpusText, living: &LivingCorpus, random: &mut Random) {
    const WORDS: [&str; 8] = ["the", "a", "sleep", "12345678", "furiously", "aa", "0a", "regulara"];
    let query = |_| (DocId::from_index(random.below(text.num_docs())), WORDS[random.below(8)].to_owned());
    let queries: Vec<(DocId, String)> = (0..500).map(query).collect();
    let words = text.words().unwrap();
    let mut batch = words.batch(&of_device(text, &queries)).unwrap();
    let counts = words.count(&mut batch).unwrap().to_host().unwrap();
    let lists = words.find(&mut batch, u64::MAX).unwrap().to_host().unwrap();
    let expected = living.count_batch(&of_cpu(&queries)).unwrap();
    assert!(counts == expected, "{name}");
    let expected = living.search_batch(&of_cpu(&queries), u64::MAX).unwrap();
    assert!((0..500).all(|at| lists.get(at) == expected.get(at).unwrap()), "{name}");
}

/// Returns segments whose tokens equal the tokenizer's tokens of their text.
fn built_segments() -> Vec<(String, Arc<Segment>)> {
    let sizes = [1, 2, 40, 300];
    sizes.into_iter().map(|size| (format!("built {size}"), built(size as u64, size))).collect()
}

#[test]
fn texts_after_edits_are_the_cpus() {
    let Some(device) = open_device() else { return };
    check_texts_after_edits(&device, segments().into_iter().chain(built_segments()));
    let shared = device.sharing_host_memory();
    check_texts_after_edits(&shared, built_segments().into_iter());
}

fn check_texts_after_edits(device: &Device, segments: impl Iterator<Item = (String, Arc<Segment>)>) {
    let mut random = Random(7);
    for (name, segment) in segments {
        for mode in MODES {
            let mut living = LivingCorpus::new(corpus_of(&segment));
            let mut text = words_of(device, &segment).0;
            for num_edits in [1, 200, 40] {
                let old_living = living.clone();
                let old_text = text.clone();
                let batch = Edits::new(&mut random, mode, &living).batch(num_edits);
                living.apply(&batch).unwrap();
                text = text.with_edits(PROFILE, &batch).unwrap();
                assert_same_texts(&name, &text, &living);
                if name.starts_with("built") {
                    assert_same_words(&name, &text, &living, &mut random);
                }
                // The earlier text does not change.
                assert_same_texts(&name, &old_text, &old_living);
            }
            let none = text.with_edits(PROFILE, &EditBatch::default()).unwrap();
            assert_same_texts(&name, &none, &living);
        }
    }
}

/// Returns a mix of edits and reads.
fn operations(edits: &mut Edits<'_>, number: usize, with_words: bool) -> Vec<Operation> {
    let operation = |_| {
        let doc = edits.random.below(edits.lens.len());
        let doc_id = doc as u64;
        let word = ["the", "a", "sleep", "nowhere"][edits.random.below(4)].to_owned();
        match edits.random.below(5) {
            0 => {
                let offset_bytes = edits.random.below(edits.lens[doc].min(999) as usize + 1) as u64;
                let len_bytes = edits.random.below(200) as u64;
                Operation::Extract { doc_id, offset_bytes, len_bytes }
            }
            1 if with_words => Operation::Search { doc_id, word },
            2 if with_words => Operation::Count { doc_id, word },
            _ => match edits.next() {
                // The generator does not track the rest of a document after deletes in batch.
                Edit::DeleteText { doc_id, .. } if edits.mode == EditMode::InBatch => {
                    Operation::Edit(Edit::AppendText { doc_id, text: Vec::new() })
                }
                edit => Operation::Edit(edit),
            },
        }
    };
    (0..number).map(operation).collect()
}

#[test]
fn mixed_batches_are_the_cpus() {
    let Some(device) = open_device() else { return };
    let mut random = Random(9);
    for (name, segment) in segments().into_iter().chain(built_segments()) {
        let with_words = name.starts_with("built");
        for mode in MODES {
            let mut living = LivingCorpus::new(corpus_of(&segment));
            let mut text = words_of(&device, &segment).0;
            for number in [0, 30, 120] {
                let mut edits = Edits::new(&mut random, mode, &living);
                let operations = operations(&mut edits, number, with_words);
                let expected: Vec<Answer> = living.run(mode, &operations).unwrap();
                let batch = text.plan_mixed(PROFILE, mode, &operations).unwrap();
                let results = batch.run().unwrap();
                assert!(results.to_host().unwrap() == expected, "{name}, {mode}");
                text = results.text().clone();
                assert_same_texts(&name, &text, &living);
            }
        }
    }
}

#[test]
fn edits_that_cannot_be_made_are_refused() {
    let Some(device) = open_device() else { return };
    let segment = built(1, 10);
    let text = words_of(&device, &segment).0;
    let len = text.doc_len_bytes(3.into()).unwrap();
    let refused = |text: &CorpusText, edit: &Edit| {
        let all_refuse = |mode| {
            let batch = EditBatch { mode, edits: vec![edit.clone()] };
            matches!(text.with_edits(PROFILE, &batch), Err(GpuError::Mismatch { .. }))
        };
        let refused = MODES.map(all_refuse);
        assert_eq!(refused[0], refused[1]);
        refused[0]
    };
    let insert = |doc_id, offset_bytes| Edit::InsertText { doc_id, offset_bytes, text: vec![b'x'] };
    assert!(refused(&text, &insert(10, 0)) && refused(&text, &insert(u64::MAX, 0)));
    assert!(refused(&text, &insert(3, len + 1)) && refused(&text, &insert(3, u64::MAX)));
    assert!(!refused(&text, &insert(3, len)) && !refused(&text, &insert(3, 0)));
    let delete = |offset_bytes, len_bytes| Edit::DeleteText { doc_id: 3, offset_bytes, len_bytes };
    assert!(refused(&text, &delete(0, len + 1)) && refused(&text, &delete(len, u64::MAX)));
    assert!(!refused(&text, &delete(0, len)));
    assert!(refused(&text, &Edit::DropDocument { doc_id: 3 }));
    let read = |read| text.plan_mixed(PROFILE, EditMode::InSequence, &[read]);
    let wrong = |operation| matches!(read(operation), Err(GpuError::Mismatch { .. }));
    assert!(wrong(Operation::Extract { doc_id: 3, offset_bytes: len + 1, len_bytes: 0 }));
    assert!(wrong(Operation::Count { doc_id: 10, word: "a".to_owned() }));
    assert!(wrong(Operation::Search { doc_id: 3, word: "a b".to_owned() }));
    // This word of a dictionary contains a place at which its tokenizer would cut it, and the
    // insert is at that place.
    let dictionary = Dictionary::from_parts(1, vec![0, 4], b"a, b".to_vec().into()).unwrap();
    let grammar = Grammar { num_terminals: 1, rule_offsets: vec![0, 1], symbols: vec![0], doc_offsets: vec![0, 1] };
    let dag = Dag::new(grammar, 1, dictionary.lengths()).unwrap();
    let mut paths = Paths::default();
    paths.push("odd");
    let odd = Arc::new(Segment::new(dictionary, dag, paths, false));
    assert!(refused(&words_of(&device, &odd).0, &insert(0, 0)));
}

#[test]
fn memory_of_edited_texts_is_given_back() {
    let Some(device) = open_device() else { return };
    let counted = device.clone().with_max_bytes(1 << 30);
    let segment = built(4, 100);
    let text = words_of(&counted, &segment).0;
    let before = counted.used_bytes();
    let edit = Edit::AppendText { doc_id: 3, text: b"more".to_vec() };
    let batch = EditBatch { edits: vec![edit], ..Default::default() };
    let edited = text.with_edits(PROFILE, &batch).unwrap();
    assert!(counted.used_bytes() > before);
    drop(edited);
    assert_eq!(counted.used_bytes(), before);
    drop(text);
    assert_eq!(counted.used_bytes(), 0);
    let little = device.with_max_bytes(before + 1_000);
    let text = words_of(&little, &segment).0;
    let refused = text.with_edits(PROFILE, &batch);
    assert!(matches!(refused, Err(GpuError::OutOfMemory { .. })));
    assert_eq!(little.used_bytes(), before);
    drop(text);
    assert_eq!(little.used_bytes(), 0);
}
