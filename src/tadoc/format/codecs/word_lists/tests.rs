//! Tests of word lists: they come back, and hostile bytes are lists or faults.

use proptest::prelude::*;

use crate::build::corpus_from_texts;
use crate::format::codec_numbers::WORD_LISTS;

use super::*;

const PLACE: Origin<'_> = Origin { file: "a", section: "word lists", offset: 0 };

/// Documents of words by a seed: some words are in all of them, some in few.
fn documents(num_docs: u32, num_words: u32, seed: u32) -> WordDocuments {
    let mut documents = WordDocuments { num_docs, offsets: vec![0], docs: Vec::new(), counts: Vec::new() };
    for word in 0..num_words {
        let hash = |doc: u32| (doc ^ seed).wrapping_mul(0x9E37_79B1).wrapping_add(word * 77).wrapping_mul(0x85EB_CA6B);
        let rarity = [1, 1, 2, 3, 9, 200][(word % 6) as usize];
        let most = [1, 1, 4, 90][(word / 6 % 4) as usize];
        let first = documents.docs.len();
        for doc in (0..num_docs).filter(|&doc| hash(doc) >> 20 & 0xFF < 256 / rarity) {
            documents.docs.push(doc);
            documents.counts.push(1 + (hash(doc) >> 9) % most);
        }
        if documents.docs.len() == first {
            documents.docs.push(word % num_docs);
            documents.counts.push(5);
        }
        documents.offsets.push(documents.docs.len());
    }
    documents
}

/// Regions of 1 to 40 documents.
fn regions(num_docs: u32, seed: u32) -> Regions {
    let mut starts = vec![0];
    while let Some(&start) = starts.last().filter(|&&start| start < num_docs) {
        starts.push(num_docs.min(start + 1 + (start ^ seed).wrapping_mul(0x9E37_79B1) % 40));
    }
    Regions { starts }
}

fn meta_for(documents: &WordDocuments) -> SegmentMeta {
    SegmentMeta { num_docs: documents.num_docs.into(), num_words: documents.num_words(), ..SegmentMeta::default() }
}

/// Reads the lists of `words` from their groups alone.
fn read(directory: &ListDirectory, lists: &[u8], words: &[u32]) -> Result<Vec<Option<ListedWord>>> {
    let mut found = Vec::new();
    for words in words.chunk_by(|&a, &b| directory.group_of(a) == directory.group_of(b)) {
        let group = directory.group_of(words[0]);
        let range = directory.range(group);
        let bytes = &lists[range.start as usize..range.end as usize];
        found.extend(directory.lists(PLACE, group, bytes, words, &mut EntriesLeft::default())?);
    }
    Ok(found)
}

#[test]
fn lists_of_a_text_are_those_of_its_documents() {
    let texts: Vec<String> = (0..700).map(|at| format!("a {} b b {}", at % 3, "c ".repeat(at % 40))).collect();
    let corpus = corpus_from_texts(1 << 20, &texts);
    let documents = WordDocuments::from_dag(&corpus.segments()[0].dag).unwrap();
    let (directory, lists) = encode(&documents, &regions(700, 1), usize::MAX / 8);
    let directory =
        ListDirectory::read(PLACE, WORD_LISTS, &directory, &meta_for(&documents), lists.len() as u64).unwrap();
    directory.check(PLACE, &lists, &documents).unwrap();
    for (word, text) in [(3, "a"), (4, "b"), (5, "c")] {
        let Some(ListedWord::Counted(list)) = read(&directory, &lists, &[word]).unwrap().remove(0) else {
            panic!("all lists fit");
        };
        let found = corpus.term_count(text).unwrap();
        assert!(found.iter().map(|row| row.doc_id as u32).eq(list.docs.iter().copied()), "{text}");
        assert!(found.iter().map(|row| row.count as u32).eq(list.counts.iter().copied()), "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn lists_come_back(
        num_docs in 1u32..900, num_words in 0u32..200, seed: u32, percent in 0usize..120,
        words in proptest::collection::btree_set(0u32..200, 0..20),
    ) {
        let documents = documents(num_docs, num_words, seed);
        let regions = regions(num_docs, seed);
        let (_, all) = encode(&documents, &regions, usize::MAX / 8);
        let (directory, lists) = encode(&documents, &regions, all.len() * percent / 100);
        let meta = meta_for(&documents);
        let directory = ListDirectory::read(PLACE, WORD_LISTS, &directory, &meta, lists.len() as u64).unwrap();
        directory.check(PLACE, &lists, &documents).unwrap();
        let words: Vec<u32> = words.into_iter().filter(|&word| word < num_words).collect();
        for (&word, list) in words.iter().zip(read(&directory, &lists, &words).unwrap()) {
            let (docs, counts) = documents.list(word);
            match list {
                None => prop_assert!(percent < 100),
                Some(ListedWord::Counted(list)) => {
                    prop_assert_eq!((&list.docs[..], &list.counts[..]), (docs, counts));
                }
                Some(ListedWord::Near(near)) => {
                    prop_assert!(percent < 100 && docs.len() < 64);
                    let region = |&doc: &u32| regions.starts.partition_point(|&start| start <= doc);
                    let is_near = |doc: &u32| docs.iter().any(|other| region(other) == region(doc));
                    prop_assert_eq!(near, (0..num_docs).filter(is_near).collect::<Vec<_>>());
                }
            }
        }
    }

    #[test]
    fn changed_bytes_are_other_lists_or_a_fault(
        seed: u32, at in any::<proptest::sample::Index>(), change in 1u8..,
    ) {
        let documents = documents(300, 70, seed);
        let regions = regions(300, seed);
        let (_, all) = encode(&documents, &regions, usize::MAX / 8);
        let max_bytes = if seed.is_multiple_of(2) { usize::MAX / 8 } else { all.len() * 3 / 4 };
        let (mut directory_bytes, mut lists) = encode(&documents, &regions, max_bytes);
        let at = at.index(directory_bytes.len() + lists.len());
        let is_in_lists = at >= directory_bytes.len();
        if is_in_lists {
            lists[at - directory_bytes.len()] ^= change;
        } else {
            directory_bytes[at] ^= change;
        }
        let meta = meta_for(&documents);
        let words: Vec<u32> = (0..70).collect();
        if let Ok(mut directory) = ListDirectory::read(PLACE, WORD_LISTS, &directory_bytes, &meta, lists.len() as u64) {
            prop_assert!(!is_in_lists || directory.check(PLACE, &lists, &documents).is_err());
            // As if the checksums were right.
            for group in 0..directory.num_groups() {
                let range = directory.range(group);
                directory.groups[group].1 = crc32c::crc32c(&lists[range.start as usize..range.end as usize]);
            }
            for list in read(&directory, &lists, &words).unwrap_or_default().into_iter().flatten() {
                let docs = list.docs();
                prop_assert!(docs.is_sorted_by(|a, b| a < b) && docs.iter().all(|&doc| doc < 300));
                if let ListedWord::Counted(list) = &list {
                    prop_assert_eq!(list.docs.len(), list.counts.len());
                }
            }
        }
    }
}
