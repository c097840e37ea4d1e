//! Parcels have the rows of one machine, and damaged ones are refused.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::analytics::{Fold, InvertedIndex, RankedInvertedIndex, SequenceCounts, Traversal, Vocabulary};
use crate::build::corpus_from_texts;
use crate::error::Error;
use crate::segment::Corpus;

type Counts = BTreeMap<Vec<String>, u64>;

fn vocabulary(texts: &[String], fold: &Fold) -> Arc<Vocabulary> {
    let corpus = corpus_from_texts(64, texts);
    Arc::new(Vocabulary::new(&corpus).unwrap().folded(fold).unwrap())
}

/// Returns the vocabulary of each machine with the numbers that all have, and that of the whole corpus.
fn common_numbers(machines: &[Vec<String>], fold: &Fold) -> (Vec<Arc<Vocabulary>>, Vocabulary) {
    let corpora: Vec<Corpus> = machines.iter().map(|texts| corpus_from_texts(64, texts)).collect();
    let segments: Vec<_> = corpora.iter().flat_map(|corpus| corpus.segments().to_vec()).collect();
    let whole = Vocabulary::new(&Corpus::new(corpora[0].profile(), segments)).unwrap().folded(fold).unwrap();
    let mut first = 0;
    let of_part = |corpus: &Corpus| {
        let places: Vec<usize> = (first..first + corpus.segments().len()).collect();
        first += places.len();
        Arc::new(whole.for_part(corpus, &places).unwrap())
    };
    (corpora.iter().map(of_part).collect(), whole)
}

fn sequences(vocabulary: &Arc<Vocabulary>, n: usize) -> SequenceCounts {
    SequenceCounts::with_vocabulary(vocabulary.clone(), n, Traversal::Auto, 1 << 30).unwrap()
}

fn rows(counts: &SequenceCounts) -> impl Iterator<Item = (impl Iterator<Item = u32> + '_, u64)> {
    (0..counts.len()).map(|row| (counts.sequences().words(row), counts.counts()[row]))
}

/// Documents and their counts, by rank, of each sequence.
type Ranks = BTreeMap<Vec<String>, Vec<(u64, u64)>>;

fn ranked(texts: &[String], n: usize, fold: &Fold) -> RankedInvertedIndex {
    RankedInvertedIndex::with_vocabulary(vocabulary(texts, fold), n, Traversal::Auto, 1 << 30).unwrap()
}

/// Returns the documents of the sequence of `row`, ascending, and their counts.
fn documents(index: &RankedInvertedIndex, row: usize) -> Vec<(u64, u64)> {
    let entries = index.entries_of(row).map(|at| (index.doc_ids()[at], index.counts()[at]));
    let mut entries: Vec<(u64, u64)> = entries.collect();
    entries.sort_unstable();
    entries
}

/// Returns the chunks of all machines by parcel, each with its machine.
fn parcels(machines: &[Vec<Packed>], num_parcels: u32) -> Vec<Vec<(u64, Vec<u8>)>> {
    let mut parcels = vec![Vec::new(); num_parcels as usize];
    for (machine, chunks) in machines.iter().enumerate() {
        // Chunks may come in any order.
        for chunk in chunks.iter().rev() {
            parcels[chunk.parcel as usize].push((machine as u64, chunk.bytes.clone()));
        }
    }
    parcels
}

fn merged(num_words: usize, chunks: &[(u64, Vec<u8>)]) -> crate::error::Result<MergedParcels<'_>> {
    let named = chunks.iter().map(|(machine, bytes)| ((0, *machine as i64), bytes.as_slice()));
    MergedParcels::new(num_words, named.collect())
}

/// Adds the rows of a parcel to `all` and checks that they ascend. Their numbers are those of `common` words, if given.
fn add(all: &mut Counts, num_words: usize, chunks: &[(u64, Vec<u8>)], least_count: u64, common: Option<&Vocabulary>) {
    let mut merged = merged(num_words, chunks).unwrap();
    let num_common = common.filter(|_| !chunks.is_empty()).map(Vocabulary::len);
    assert_eq!(merged.num_common_words(), num_common);
    let words: Vec<String> = match common {
        Some(common) => (0..common.len()).map(|row| common.word(row).to_owned()).collect(),
        None => merged.words().iter().map(|&word| word.to_owned()).collect(),
    };
    assert!(words.is_sorted_by(|one, other| one < other));
    let mut last: Option<Vec<u32>> = None;
    loop {
        let rows = merged.next_rows(3, least_count).unwrap();
        if rows.counts.is_empty() {
            break;
        }
        for (row, &count) in rows.counts.iter().enumerate() {
            let row: Vec<u32> = rows.words_of(row).collect();
            assert!(last.as_ref() < Some(&row));
            last = Some(row.clone());
            let texts = row.iter().map(|&word| words[word as usize].clone()).collect();
            assert_eq!(all.insert(texts, count), None);
        }
    }
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let word = prop_oneof!["[a-c]{1,2}", "[A-C]", Just("Straße".to_owned()), "[a-z]{8,20}"];
    prop::collection::vec(prop::collection::vec(word, 0..30).prop_map(|words| words.join(" ")), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parcels_have_the_rows_of_one_machine(
        machines in prop::collection::vec(texts(), 1..5),
        n in 1usize..24,
        num_parcels in 1u32..5,
        least_count in 1u64..4,
        is_folded in any::<bool>(),
        are_common in any::<bool>(),
        is_at_once in any::<bool>(),
    ) {
        let fold = if is_folded { Fold::CASE } else { Fold::NONE };
        let (vocabularies, common) = common_numbers(&machines, &fold);
        let common = are_common.then_some(&common);
        let packed = |(texts, part): (&Vec<String>, &Arc<Vocabulary>)| {
            let vocabulary = if are_common { Arc::clone(part) } else { vocabulary(texts, &fold) };
            let counts = sequences(&vocabulary, n);
            let packer = if are_common {
                ParcelPacker::with_common_numbers(vocabulary, num_parcels, n)
            } else {
                ParcelPacker::new(vocabulary, num_parcels)
            };
            // Threads pack parts of the rows.
            let mut chunks = packer.pack(rows(&counts).take(counts.len() / 2));
            chunks.extend(packer.pack(rows(&counts).skip(counts.len() / 2)));
            if is_at_once {
                chunks = packer.pack_sequences(counts.sequences(), counts.counts());
            }
            chunks.extend(packer.words());
            chunks
        };
        let machines_packed: Vec<Vec<Packed>> = machines.iter().zip(&vocabularies).map(packed).collect();
        let parcels = parcels(&machines_packed, num_parcels);
        let mut got = Counts::new();
        let mut at_once = Counts::new();
        for chunks in &parcels {
            add(&mut got, n, chunks, least_count, common);
        }
        // One place may merge several parcels.
        let num_machines = machines.len() as u64;
        let named = |(parcel, chunks): (usize, Vec<(u64, Vec<u8>)>)| {
            chunks.into_iter().map(move |(machine, bytes)| (parcel as u64 * num_machines + machine, bytes))
        };
        let all: Vec<(u64, Vec<u8>)> = parcels.into_iter().enumerate().flat_map(named).collect();
        add(&mut at_once, n, &all, least_count, common);
        prop_assert_eq!(&got, &at_once);
        let whole = sequences(&vocabulary(&machines.concat(), &fold), n);
        let text = |word: u32| whole.sequences().vocabulary().word(word as usize).to_owned();
        let expected = rows(&whole).map(|(words, count)| (words.map(text).collect(), count));
        let expected: Counts = expected.filter(|(_, count)| *count >= least_count).collect();
        prop_assert_eq!(got, expected);
    }

    #[test]
    fn lists_are_those_of_one_machine(machines in prop::collection::vec(texts(), 1..5), num_parcels in 1u32..4) {
        let index = |texts: &[String]| {
            let vocabulary = vocabulary(texts, &Fold::NONE);
            let index = InvertedIndex::with_vocabulary(vocabulary.clone(), Traversal::Auto).unwrap();
            (vocabulary, index)
        };
        let mut packed = Vec::new();
        let mut first_doc = 0;
        for texts in &machines {
            let (vocabulary, index) = index(texts);
            let packer = ParcelPacker::new(vocabulary.clone(), num_parcels);
            let ids = |row| index.doc_ids(row).map(|id| id + first_doc).collect::<Vec<_>>().into_iter();
            let mut chunks = packer.pack_lists((0..vocabulary.len()).map(|row| (row as u32, ids(row))));
            chunks.extend(packer.words());
            packed.push(chunks);
            first_doc += texts.len() as u64;
        }
        let mut got = BTreeMap::new();
        for chunks in parcels(&packed, num_parcels) {
            let mut merged = merged(1, &chunks).unwrap();
            let words: Vec<String> = merged.words().iter().map(|&word| word.to_owned()).collect();
            let rows = merged.next_rows(usize::MAX, 0).unwrap();
            for (row, &count) in rows.counts.iter().enumerate() {
                let word = rows.words_of(row).next().unwrap();
                prop_assert_eq!(rows.ids_of(row).len() as u64, count);
                got.insert(words[word as usize].clone(), rows.ids_of(row).to_vec());
            }
        }
        let (vocabulary, index) = index(&machines.concat());
        let list = |row| (vocabulary.word(row).to_owned(), index.doc_ids(row).collect::<Vec<_>>());
        prop_assert_eq!(got, (0..vocabulary.len()).map(list).collect::<BTreeMap<_, _>>());
    }

    #[test]
    fn ranks_are_those_of_one_machine(
        machines in prop::collection::vec(texts(), 1..5),
        n in 1usize..6,
        num_parcels in 1u32..4,
        is_folded in any::<bool>(),
    ) {
        let fold = if is_folded { Fold::CASE } else { Fold::NONE };
        let mut packed = Vec::new();
        let mut first_doc = 0;
        for texts in &machines {
            let index = ranked(texts, n, &fold);
            let packer = ParcelPacker::new(index.sequences().vocabulary().clone(), num_parcels);
            let mut chunks = packer.pack_ranks((0..index.len()).map(|row| {
                let entries = documents(&index, row).into_iter().map(|(id, count)| (id + first_doc, count));
                (index.sequences().words(row), entries)
            }));
            chunks.extend(packer.words());
            packed.push(chunks);
            first_doc += texts.len() as u64;
        }
        let mut got: Ranks = BTreeMap::new();
        for chunks in parcels(&packed, num_parcels) {
            let mut merged = merged(n, &chunks).unwrap();
            let words: Vec<String> = merged.words().iter().map(|&word| word.to_owned()).collect();
            loop {
                let rows = merged.next_rows(4, 0).unwrap();
                if rows.counts.is_empty() {
                    break;
                }
                for (row, &count) in rows.counts.iter().enumerate() {
                    let sequence: Vec<String> = rows.words_of(row).map(|word| words[word as usize].clone()).collect();
                    let ranked = got.entry(sequence).or_default();
                    ranked.push((rows.ids_of(row)[0], count));
                    prop_assert_eq!(rows.ranks[row], ranked.len() as u64);
                }
            }
        }
        let whole = ranked(&machines.concat(), n, &fold);
        let text = |word: u32| whole.sequences().vocabulary().word(word as usize).to_owned();
        let by_rank = |row: usize| {
            let entries = whole.entries_of(row);
            entries.map(|at| (whole.doc_ids()[at], whole.counts()[at])).collect::<Vec<_>>()
        };
        let sequence = |row: usize| whole.sequences().words(row).map(text).collect::<Vec<_>>();
        let expected: Ranks = (0..whole.len()).map(|row| (sequence(row), by_rank(row))).collect();
        prop_assert_eq!(got, expected);
    }

    /// Any bytes give rows or an error.
    #[test]
    fn damaged_chunks_are_refused(
        texts in texts(),
        n in 1usize..6,
        has_ranks in any::<bool>(),
        are_common in any::<bool>(),
        place in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        is_cut in any::<bool>(),
    ) {
        let counts = sequences(&vocabulary(&texts, &Fold::NONE), n);
        let words = counts.sequences().vocabulary().clone();
        let packer =
            if are_common { ParcelPacker::with_common_numbers(words, 1, n) } else { ParcelPacker::new(words, 1) };
        let ranked = |row: usize| (counts.sequences().words(row), vec![(1, counts.counts()[row]), (7, 2)].into_iter());
        let mut chunks =
            if has_ranks { packer.pack_ranks((0..counts.len()).map(ranked)) } else { packer.pack(rows(&counts)) };
        chunks.extend(packer.words());
        prop_assume!(!chunks.is_empty());
        let chunk = place.index(chunks.len());
        let bytes = &mut chunks[chunk].bytes;
        let at = place.index(bytes.len());
        if is_cut { bytes.truncate(at) } else { bytes[at] = byte }
        let chunks = parcels(&[chunks], 1).remove(0);
        let read = merged(n, &chunks).and_then(|mut merged| loop {
            if merged.next_rows(100, 0)?.counts.is_empty() {
                return Ok(());
            }
        });
        match read {
            Ok(()) | Err(Error::Format { .. } | Error::Capacity { .. }) => {}
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}

#[test]
fn rows_that_use_words_without_a_text_are_refused() {
    let counts = sequences(&vocabulary(&["a b".to_owned()], &Fold::NONE), 2);
    let packer = ParcelPacker::new(counts.sequences().vocabulary().clone(), 1);
    let chunks = parcels(&[packer.pack(rows(&counts))], 1).remove(0);
    let error = merged(2, &chunks).unwrap_err().to_string();
    assert!(error.contains("expected the text of word 0"), "{error}");
}

#[test]
fn rows_that_a_machine_sends_twice_are_refused() {
    let text: Vec<String> = (0..3000u64).map(|n| format!("w{}", n * n % 1999)).collect();
    let counts = sequences(&vocabulary(&[text.join(" ")], &Fold::NONE), 2);
    let packer = ParcelPacker::new(counts.sequences().vocabulary().clone(), 1);
    let mut chunks = packer.pack(rows(&counts));
    let num_row_chunks = chunks.len();
    chunks.extend(packer.words());
    assert!(num_row_chunks > 3, "{num_row_chunks}");
    for twice in 0..chunks.len() {
        let mut sent = chunks.clone();
        sent.push(chunks[twice].clone());
        let sent = parcels(&[sent], 1).remove(0);
        let read = merged(2, &sent).and_then(|mut merged| merged.next_rows(counts.len(), 0));
        if twice < num_row_chunks {
            let error = read.unwrap_err();
            assert!(matches!(error, Error::Format { .. }), "{error}");
            assert!(error.to_string().contains("expected rows that ascend"), "{error}");
        } else {
            // A word has one text, however often it is said.
            assert_eq!(read.unwrap().counts, counts.counts());
        }
    }
}

#[test]
fn long_sequences_and_large_counts_are_packed() {
    let words: Vec<String> = (0..40).map(|n| format!("w{n:02}")).collect();
    let vocabulary = vocabulary(&[words.join(" ")], &Fold::NONE);
    let packer = ParcelPacker::new(vocabulary, 1);
    let row = |last: u32| (0..19).chain([last]);
    let mut chunks = packer.pack([(row(20), 7), (row(39), u64::MAX - 7)].into_iter());
    chunks.extend(packer.words());
    let chunks = parcels(&[chunks.clone(), chunks], 1).remove(0);
    let mut both = merged(20, &chunks).unwrap();
    let error = both.next_rows(9, 0).unwrap_err();
    assert!(matches!(error, Error::Capacity { .. }), "{error}");
    let one: Vec<(u64, Vec<u8>)> = chunks.into_iter().filter(|(machine, _)| *machine == 0).collect();
    let rows = merged(20, &one).unwrap().next_rows(9, 0).unwrap();
    assert_eq!((rows.words.len(), rows.counts.as_slice()), (40, &[7, u64::MAX - 7][..]));
    // Words that no row uses have no number.
    assert_eq!((rows.words[18], rows.words[19], rows.words[39]), (18, 19, 20));
}

#[test]
fn rows_of_two_kinds_are_refused() {
    let counts = sequences(&vocabulary(&["a b".to_owned()], &Fold::NONE), 1);
    let packer = ParcelPacker::new(counts.sequences().vocabulary().clone(), 1);
    let mut chunks = packer.pack(rows(&counts));
    chunks.extend(packer.pack_lists([(0, vec![3].into_iter())].into_iter()));
    let error = merged(1, &parcels(&[chunks], 1)[0]).unwrap_err().to_string();
    assert!(error.contains("expected words or rows of one kind"), "{error}");
}

#[test]
fn numbers_of_other_words_are_refused() {
    let machines = [vec!["a b c a b".to_owned()], vec!["b c d".to_owned()]];
    let (vocabularies, common) = common_numbers(&machines, &Fold::NONE);
    let counts = sequences(&vocabularies[0], 2);
    let packer = ParcelPacker::with_common_numbers(vocabularies[0].clone(), 1, 2);
    let mut chunks = packer.pack(rows(&counts));
    let without = parcels(std::slice::from_ref(&chunks), 1).remove(0);
    chunks.extend(packer.words());
    let read = parcels(std::slice::from_ref(&chunks), 1).remove(0);
    assert_eq!(merged(2, &read).unwrap().next_rows(9, 0).unwrap().counts, [2, 1, 1]);
    assert_eq!(merged(2, &read).unwrap().num_common_words(), Some(common.len()));
    let error = merged(2, &without).unwrap_err().to_string();
    assert!(error.contains("expected common numbers"), "{error}");
    let other = sequences(&vocabulary(&["a b".to_owned()], &Fold::NONE), 2);
    for packer in [
        ParcelPacker::with_common_numbers(other.sequences().vocabulary().clone(), 1, 2),
        ParcelPacker::new(other.sequences().vocabulary().clone(), 1),
    ] {
        let mut of_other = packer.pack(rows(&other));
        of_other.extend(packer.words());
        let sent = parcels(&[chunks.clone(), of_other], 1).remove(0);
        let error = merged(2, &sent).unwrap_err().to_string();
        assert!(error.contains("expected common numbers"), "{error}");
    }
    assert!(common.for_part(vocabularies[0].corpus(), &[]).is_err());
    assert_eq!((vocabularies[0].len(), vocabularies[0].word(0), vocabularies[0].word(3)), (4, "a", ""));
}
