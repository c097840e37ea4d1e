//! Tests that texts after edits in sequence and in batch, and reads between edits, are those of the CPU.
//!
//! `REQUIRE_GPU=1 cargo test -p tadoc-cuda --features edits --test gpu corpus_edits`. Without `REQUIRE_GPU=1` and
//! without a device, the tests print a line that they are skipped. Texts are those of `corpus_batch`.

use std::sync::Arc;

use tadoc::edits::{Answer, Edit, EditBatch, EditMode, LivingCorpus, Operation};
use tadoc::grammar::Grammar;
use tadoc::ids::DocId;
use tadoc::segment::{Dag, Paths, Segment};
use tadoc::text::{Dictionary, TokenizerProfile};
use tadoc_cuda::{CorpusText, Device, GpuError, PassageQuery};
use testkit::device::open_device;
use testkit::random::Random;
use testkit::scrambled::corpus_of;

use crate::corpus_batch::{built, of_cpu, of_device, segments, words_of};

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
