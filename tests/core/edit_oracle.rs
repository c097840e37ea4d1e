//! Tests of living corpora against a list of texts: random operations in both modes, and
//! comparisons of everything.
//!
//! Documents are hostile little texts ([`scrambled::PIECES`]) under arbitrary grammars or in blocks
//! of a few bytes. Some have a long run that cannot be cut, and some are added between batches.
//! Both sides run each batch. The test compares the reads of a batch, all documents after it, and
//! from time to time a snapshot with all data that is computed from it. `TADOC_EDIT_OPERATIONS`
//! sets the total number of operations.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tadoc::analytics::{Traversal, inverted_index, word_count};
use tadoc::edits::{Answer, Edit, EditBatch, EditMode, LivingCorpus, Operation};
use tadoc::query::{Query, WordQuery, search};
use tadoc::read::{ExtractQuery, document_bytes};
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::documents::{BUILDERS, Document, PROFILES, corpus_of, numbered, options};
use testkit::edit_model::{self, Model, Random};
use testkit::naive;
use testkit::scrambled;

const DEFAULT_OPERATIONS: usize = 1_000_000;
const BATCHES_PER_CASE: usize = 24;
const BATCHES_PER_SNAPSHOT: usize = 6;

#[test]
fn any_operations_agree_with_a_list_of_texts() {
    let operations = std::env::var("TADOC_EDIT_OPERATIONS").ok().and_then(|n| n.parse().ok());
    let wanted = operations.unwrap_or(DEFAULT_OPERATIONS);
    // The average batch has half the size of the largest one.
    let num_cases = wanted.div_ceil(BATCHES_PER_CASE * edit_model::MAX_OPERATIONS / 2) as u64;
    // The test has its own threads, because a corpus builder that waits for its encoder must not
    // hold a thread of the pool.
    let next_seed = AtomicU64::new(0);
    let num_run = AtomicUsize::new(0);
    let work = || loop {
        let seed = next_seed.fetch_add(1, Ordering::Relaxed);
        if seed >= num_cases {
            return;
        }
        num_run.fetch_add(run_case(seed), Ordering::Relaxed);
    };
    let num_threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| (0..num_threads).for_each(|_| drop(scope.spawn(work))));
    let num_run = num_run.into_inner();
    assert!(num_run * 2 >= wanted, "{num_run} operations");
}

/// Runs the batches of one seed and returns the number of operations.
fn run_case(seed: u64) -> usize {
    let mut random = Random::new(seed);
    let profile = PROFILES[random.below(3)];
    let texts: Vec<Vec<u8>> = (0..random.below(6)).map(|_| random.text(60)).collect();
    let mut living = LivingCorpus::new(base(&mut random, profile, &texts));
    let mut model = Model::new(texts);
    let mut num_run = 0;
    for batch in 0..BATCHES_PER_CASE {
        let what = format!("seed {seed}, batch {batch}, {profile}");
        if random.below(8) == 0 && model.docs.len() < 12 {
            let texts: Vec<Vec<u8>> = (0..random.below(4)).map(|_| random.text(60)).collect();
            living.append_base(&base(&mut random, profile, &texts)).unwrap();
            model.docs.extend(texts.into_iter().map(Some));
        }
        let mode = [EditMode::InSequence, EditMode::InBatch][random.below(2)];
        let (operations, expected) = model.run_batch(&mut random, profile, mode);
        num_run += operations.len();
        if random.below(2) == 0 {
            assert_eq!(living.run(mode, &operations).unwrap(), expected, "{what}");
        } else {
            let edits = operations.into_iter().filter_map(|operation| match operation {
                Operation::Edit(edit) => Some(edit),
                _ => None,
            });
            let first_added = living.num_docs();
            let added = living.apply(&EditBatch { mode, edits: edits.collect() }).unwrap();
            assert_eq!(added, first_added..model.docs.len() as u64, "{what}");
        }
        check_documents(&living, &model, profile, &mut random, &what);
        if batch % BATCHES_PER_SNAPSHOT == BATCHES_PER_SNAPSHOT - 1 {
            check_snapshot(&living, &model, profile, &mut random, &what);
        }
    }
    num_run
}

/// Returns a corpus of `texts` under a grammar of random shape, or cut into small blocks.
fn base(random: &mut Random, profile: TokenizerProfile, texts: &[Vec<u8>]) -> Corpus {
    if random.below(2) == 0 {
        let segment = scrambled::segment_of(profile, texts, false, random.number());
        return Corpus::new(profile, vec![Arc::new(segment)]);
    }
    let block_bytes = [7, 40, 1 << 20][random.below(3)];
    let builder = BUILDERS[random.below(2)];
    corpus_of(&documents(texts), &options(profile, builder, block_bytes))
}

fn documents(texts: &[Vec<u8>]) -> Vec<Document> {
    numbered(texts.iter().cloned())
}

fn check_documents(living: &LivingCorpus, model: &Model, profile: TokenizerProfile, random: &mut Random, what: &str) {
    assert_eq!(living.num_docs(), model.docs.len() as u64, "{what}");
    check_batches(living, model, profile, random, what);
    for (doc_id, doc) in (0..).zip(&model.docs) {
        let Some(text) = doc else {
            assert!(living.is_dropped(doc_id), "{what}");
            assert!(matches!(living.len_bytes(doc_id), Err(Error::InvalidArgument { .. })));
            continue;
        };
        assert_eq!(living.len_bytes(doc_id).unwrap(), text.len() as u64, "{what}, {doc_id}");
        assert!(living.extract(doc_id, 0, u64::MAX).unwrap() == *text, "{what}, {doc_id}");
        if random.below(3) > 0 {
            continue;
        }
        let word = model.word(random, profile);
        let offsets = edit_model::offsets(profile, text, &word);
        let count = living.count(doc_id, &word).unwrap();
        assert_eq!(count, offsets.len() as u64, "{what}, {doc_id}, {word}");
        assert_eq!(living.search(doc_id, &word).unwrap(), offsets, "{what}, {doc_id}, {word}");
    }
}

/// Asks every existing document in one batch.
fn check_batches(living: &LivingCorpus, model: &Model, profile: TokenizerProfile, random: &mut Random, what: &str) {
    let alive: Vec<(u64, &Vec<u8>)> =
        (0..).zip(&model.docs).filter_map(|(doc_id, doc)| Some((doc_id, doc.as_ref()?))).collect();
    let word = model.word(random, profile);
    let byte_offset = |text: &Vec<u8>| text.len() as u64 / 3;
    let passage =
        |&(doc_id, text): &(u64, &Vec<u8>)| ExtractQuery { doc_id, byte_offset: byte_offset(text), byte_len: 20 };
    let passages: Vec<ExtractQuery> = alive.iter().map(passage).collect();
    let texts = living.extract_batch(&passages, u64::MAX).unwrap();
    let words: Vec<WordQuery<'_>> = alive.iter().map(|&(doc_id, _)| WordQuery { doc_id, word: &word }).collect();
    let counts = living.count_batch(&words).unwrap();
    let lists = living.search_batch(&words, u64::MAX).unwrap();
    for (query_idx, (doc_id, text)) in alive.into_iter().enumerate() {
        let start = byte_offset(text) as usize;
        let expected = &text[start..text.len().min(start + 20)];
        assert_eq!(texts.get(query_idx).unwrap(), expected, "{what}, {doc_id}");
        let offsets = edit_model::offsets(profile, text, &word);
        assert_eq!(lists.get(query_idx).unwrap(), offsets, "{what}, {doc_id}, {word}");
        assert_eq!(counts[query_idx], offsets.len() as u64, "{what}, {doc_id}, {word}");
    }
}

fn check_snapshot(living: &LivingCorpus, model: &Model, profile: TokenizerProfile, random: &mut Random, what: &str) {
    let snapshot = living.snapshot().unwrap();
    assert_eq!(snapshot.num_docs(), model.docs.len() as u64, "{what}");
    let texts: Vec<Vec<u8>> = model.docs.iter().map(|doc| doc.clone().unwrap_or_default()).collect();
    let documents = documents(&texts);
    for (doc_id, text) in (0..).zip(&texts) {
        let bytes = document_bytes(&snapshot, doc_id, u64::MAX).unwrap();
        assert!(bytes == *text, "{what}, {doc_id}");
        let (segment_idx, doc) = snapshot.doc_parts(doc_id).next().unwrap();
        let path = snapshot.segments()[segment_idx].paths.get(doc.index());
        assert_eq!(path, living.path(doc_id), "{what}, {doc_id}");
    }
    for segment in snapshot.segments() {
        let weights = &segment.weights_or_derive()[..segment.dag.num_words() as usize];
        assert!(!weights.contains(&0), "{what}: a word that nothing uses");
    }
    let counts = word_count(&snapshot).unwrap();
    let counts: BTreeMap<String, u64> = counts.iter().map(|(word, count)| (word.to_owned(), count)).collect();
    assert_eq!(counts, naive::word_count(profile, &documents), "{what}");
    let index = inverted_index(&snapshot, Traversal::Auto).unwrap();
    let index: BTreeMap<String, Vec<u64>> =
        (0..index.len()).map(|row| (index.word(row).to_owned(), index.doc_ids(row).collect())).collect();
    assert_eq!(index, naive::inverted_index(profile, &documents), "{what}");
    for num_words in [1, 2] {
        let words: Vec<String> = (0..num_words).map(|_| model.word(random, profile)).collect();
        let Ok(query) = Query::parse(profile, &format!("\"{}\"", words.join(" "))) else {
            continue;
        };
        let hits = search(&snapshot, &query, None).unwrap();
        let items = BTreeSet::from([words]);
        let plain = naive::search(profile, &documents, &items);
        let offsets = hits.iter().map(|hit| (hit.doc_id, hit.byte_offset, hit.word_index));
        let expected = plain.iter().map(|at| (at.doc_id, at.byte_offset, at.word_index));
        assert!(offsets.eq(expected), "{what}, {items:?}");
    }
}

#[test]
fn an_edit_that_cannot_be_made_leaves_all_as_it_was() {
    let texts = [b"to be or not".to_vec(), b"gone".to_vec(), b"".to_vec()];
    let options = options(TokenizerProfile::Word, BUILDERS[0], 1 << 20);
    let mut living = LivingCorpus::new(corpus_of(&documents(&texts), &options));
    let drop = Edit::DropDocument { doc_id: 1 };
    living.apply(&EditBatch { edits: vec![drop.clone()], ..Default::default() }).unwrap();
    let insert = |doc_id, offset_bytes| Edit::InsertText { doc_id, offset_bytes, text: b"x".into() };
    let delete = |offset_bytes, len_bytes| Edit::DeleteText { doc_id: 0, offset_bytes, len_bytes };
    let faults = [
        (insert(0, 14), "offset_bytes 14 is behind the end of document 0, which has 13 bytes"),
        (insert(1, 0), "1, a document that was dropped"),
        (insert(3, 0), "doc_id 3 is out of range, there are 3"),
        (insert(u64::MAX, 0), "doc_id 18446744073709551615 is out of range"),
        (insert(2, 1), "offset_bytes 1 is behind the end of document 2, which has 0 bytes"),
        (delete(13, 1), "end of the deleted bytes 14 is behind the end of document 0, which has 13 bytes"),
        (delete(0, u64::MAX), "end of the deleted bytes"),
        (delete(u64::MAX, 1), "offset_bytes 18446744073709551615 is behind the end of document 0"),
        (drop, "1, a document that was dropped"),
    ];
    let first = Edit::AppendText { doc_id: 0, text: b"!".to_vec() };
    for (fault, expected) in faults {
        for mode in [EditMode::InSequence, EditMode::InBatch] {
            let first = if mode == EditMode::InSequence { first.clone() } else { insert(2, 0) };
            let edits = vec![first, fault.clone()];
            let operations: Vec<_> = edits.iter().cloned().map(Operation::Edit).collect();
            let error = living.apply(&EditBatch { mode, edits }).unwrap_err().to_string();
            if mode == EditMode::InSequence {
                assert!(error.contains(expected), "{error}");
            }
            living.run(mode, &operations).unwrap_err();
        }
    }
    let whole = vec![Edit::ReplaceDocument { doc_id: 0, content: Vec::new() }, insert(0, 0)];
    let batch = EditBatch { mode: EditMode::InBatch, edits: whole };
    assert!(living.apply(&batch).unwrap_err().to_string().contains("in_sequence"));
    for word in ["", "to be", " ", "to ", "-"] {
        assert!(matches!(living.count(0, word), Err(Error::InvalidArgument { name: "word", .. })));
    }
    assert_eq!(living.extract(0, 0, 99).unwrap(), texts[0]);
    assert_eq!((living.edited_docs(), living.num_docs()), (vec![], 3));
    let mut dropped = LivingCorpus::new(living.base().clone());
    assert!(dropped.mark_dropped(1..4).is_err() && dropped.dropped_docs().len() == 0);
    dropped.mark_dropped(1..2).unwrap();
    assert!(dropped.len_bytes(1).is_err() && dropped.dropped_docs().eq([1]));
}

#[test]
fn clones_do_not_see_later_edits_and_share_segments() {
    let texts: Vec<Vec<u8>> = (0..40).map(|i| format!("doc {i} of many\n").into_bytes()).collect();
    let options = options(TokenizerProfile::Word, BUILDERS[0], 200);
    let mut living = LivingCorpus::new(corpus_of(&documents(&texts), &options));
    let append = |text: &[u8]| Operation::Edit(Edit::AppendText { doc_id: 3, text: text.to_vec() });
    living.run(EditMode::InSequence, &[append(b"one two")]).unwrap();
    let before = living.clone();
    let count = Operation::Count { doc_id: 3, word: "two".into() };
    let answers = living.run(EditMode::InSequence, &[count.clone(), append(b" two"), count]).unwrap();
    assert_eq!(answers, [Answer::Count(1), Answer::Edited, Answer::Count(2)]);
    assert_eq!(before.count(3, "two").unwrap(), 1);
    assert_eq!(before.extract(3, 0, 99).unwrap(), b"doc 3 of many\none two");
    let base = living.base();
    let snapshot = living.snapshot().unwrap();
    let same = base.segments().iter().zip(snapshot.segments()).filter(|(a, b)| Arc::ptr_eq(a, b));
    assert!(base.segments().len() > 2 && same.count() == base.segments().len() - 1);
}
