//! Tests of decoding, extraction and search against oracles that read the plain text.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;
use tadoc::query::{
    Hit, Query, SearchOptions, TextPattern, WordPattern, candidate_docs, candidate_documents, count, count_by_document,
    kwic, search, search_with,
};
use tadoc::read::{DocumentDecoder, document_bytes, document_len_bytes, document_num_words, extract};
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::naive::Plain;
use testkit::scrambled::{self, bomb, recipes};

const NO_LIMIT: u64 = u64::MAX;

/// Finds the occurrences of the consecutive `words` by reading the plain text.
fn read_item(plain: &Plain, words: &[WordPattern]) -> Vec<Hit> {
    let words: Vec<&[String]> = words.iter().map(|word| word.as_spellings().unwrap()).collect();
    let mut hits = Vec::new();
    for (doc_id, placed) in plain.words.iter().enumerate() {
        for (word_index, window) in placed.windows(words.len()).enumerate() {
            if window.iter().zip(&words).all(|(word, spellings)| spellings.contains(&word.text)) {
                let first = &window[0];
                let last = &window[words.len() - 1];
                hits.push(Hit {
                    doc_id: doc_id as u64,
                    byte_offset: first.byte_offset,
                    byte_len: last.byte_offset + last.byte_len - first.byte_offset,
                    word_index: word_index as u64,
                });
            }
        }
    }
    hits
}

/// Finds the hits of all items in documents that contain all of them, by reading the plain text.
fn read_query(plain: &Plain, query: &Query, doc_id: Option<u64>) -> Vec<Hit> {
    let items: Vec<Vec<Hit>> = query.items().iter().map(|item| read_item(plain, item)).collect();
    let mut hits: Vec<Hit> = items
        .concat()
        .into_iter()
        .filter(|hit| items.iter().all(|item| item.iter().any(|h| h.doc_id == hit.doc_id)))
        .filter(|hit| doc_id.is_none_or(|doc_id| doc_id == hit.doc_id))
        .collect();
    hits.sort();
    hits
}

fn queries() -> impl Strategy<Value = String> {
    let words = ["a", "b", "ab", "aa", "power", "loss", "c1", "é", "中文", "don't", "a.b", "zz"];
    let item = prop::collection::vec(prop::sample::select(words.to_vec()), 1..5)
        .prop_map(|words| format!("\"{}\"", words.join(" ")));
    prop::collection::vec(item, 1..3).prop_map(|items| items.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn documents_decode_to_their_bytes(
        recipe in recipes(),
        keeps_copies in any::<bool>(),
        order in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let case = recipe.cook();
        if !keeps_copies {
            case.corpus.segments().iter().for_each(|segment| segment.keep_no_copies());
        }
        prop_assert_eq!(case.corpus.num_docs(), case.plain.docs.len() as u64);
        let mut decoder = DocumentDecoder::new(case.corpus.clone(), NO_LIMIT);
        let mut expected = Vec::new();
        for (step, index) in order.iter().enumerate().filter(|_| !case.plain.docs.is_empty()) {
            let doc_id = index.index(case.plain.docs.len());
            decoder.append_document(doc_id as u64).unwrap();
            expected.extend_from_slice(&case.plain.docs[doc_id]);
            prop_assert_eq!(decoder.bytes(), &expected[..]);
            match step % 5 {
                3 => prop_assert_eq!(decoder.take(), std::mem::take(&mut expected)),
                4 => {
                    decoder.clear();
                    expected.clear();
                }
                _ => {}
            }
        }
        for (doc_id, doc) in case.plain.docs.iter().enumerate() {
            let doc_id = doc_id as u64;
            prop_assert_eq!(&document_bytes(&case.corpus, doc_id, NO_LIMIT).unwrap(), doc);
            prop_assert_eq!(document_len_bytes(&case.corpus, doc_id).unwrap(), doc.len() as u64);
            let num_words = case.plain.words[doc_id as usize].len() as u64;
            prop_assert_eq!(document_num_words(&case.corpus, doc_id).unwrap(), num_words);
            if !doc.is_empty() {
                let refused = document_bytes(&case.corpus, doc_id, doc.len() as u64 - 1);
                let is_refused =
                    matches!(refused, Err(Error::Capacity { knob: "tadoc.max_output_bytes", .. }));
                prop_assert!(is_refused);
            }
        }
    }

    #[test]
    fn passages_are_slices(recipe in recipes(), places in prop::collection::vec((0usize..7, 0u64..90, 0u64..40), 1..12)) {
        let case = recipe.cook();
        for (doc_id, offset, len) in places {
            let got = extract(&case.corpus, doc_id as u64, offset, len);
            match case.plain.docs.get(doc_id) {
                None => prop_assert!(matches!(got, Err(Error::OutOfRange { what: "doc_id", .. })), "{got:?}"),
                Some(doc) if offset > doc.len() as u64 => {
                    prop_assert!(matches!(got, Err(Error::PastEnd { what: "byte_offset", .. })), "{got:?}");
                }
                Some(doc) => {
                    let end = doc.len().min((offset + len) as usize);
                    prop_assert_eq!(got.unwrap(), &doc[offset as usize..end]);
                }
            }
        }
    }

    #[test]
    fn searches_find_what_reading_finds(recipe in recipes(), queries in prop::collection::vec((queries(), prop::option::of(0u64..7)), 1..6)) {
        let case = recipe.cook();
        for (text, doc_id) in queries {
            let query = Query::parse(recipe.profile, &text).unwrap();
            let doc_id = doc_id.filter(|&doc_id| doc_id < case.corpus.num_docs());
            let expected = read_query(&case.plain, &query, doc_id);
            let got = search(&case.corpus, &query, doc_id).unwrap();
            prop_assert_eq!(&got, &expected, "{}", text);
            let options = SearchOptions { doc_id, ..Default::default() };
            prop_assert_eq!(count(&case.corpus, &query, &options).unwrap(), expected.len() as u64);
            let mut by_doc: BTreeMap<u64, u64> = BTreeMap::new();
            expected.iter().for_each(|hit| *by_doc.entry(hit.doc_id).or_default() += 1);
            let counted = count_by_document(&case.corpus, &query, &options).unwrap();
            let counted: Vec<(u64, u64)> = counted.iter().map(|c| (c.doc_id, c.count)).collect();
            prop_assert_eq!(counted, by_doc.into_iter().collect::<Vec<_>>());
            let mut batches = Vec::new();
            search_with(&case.corpus, &query, &options, &mut |batch| {
                batches.extend_from_slice(batch);
                ControlFlow::Continue(())
            }).unwrap();
            prop_assert_eq!(batches, expected);
        }
    }

    /// Every phrase of 2 to 4 words of documents that were cut is found.
    #[test]
    fn phrases_are_found_across_cuts(recipe in recipes()) {
        let case = recipe.cook();
        let cut = |doc_id: &usize| case.corpus.doc_parts(*doc_id as u64).count() > 1;
        let mut phrases: BTreeSet<Vec<&str>> = BTreeSet::new();
        for doc_id in (0..case.plain.docs.len()).filter(cut) {
            let words: Vec<&str> = case.plain.words[doc_id].iter().map(|w| &w.text[..]).collect();
            (2..5).for_each(|len| phrases.extend(words.windows(len).map(<[_]>::to_vec)));
        }
        for phrase in phrases {
            let text = format!("\"{}\"", phrase.join(" "));
            let query = Query::parse(recipe.profile, &text).unwrap();
            // Words that touch in the text can be one word in the query.
            let is_phrase = |item: &Vec<WordPattern>| {
                item.iter().map(|word| &word.as_spellings().unwrap()[0][..]).eq(phrase.iter().copied())
            };
            if query.items().len() == 1 && is_phrase(&query.items()[0]) {
                let expected = read_query(&case.plain, &query, None);
                prop_assert!(!expected.is_empty());
                prop_assert_eq!(search(&case.corpus, &query, None).unwrap(), expected, "{}", text);
            }
        }
    }

    #[test]
    fn limits_refuse_exactly_what_is_too_much(recipe in recipes(), text in queries(), max_hits in 0u64..4) {
        let case = recipe.cook();
        let query = Query::parse(recipe.profile, &text).unwrap();
        let options = SearchOptions { max_hits, ..Default::default() };
        let mut got = Vec::new();
        let ended = search_with(&case.corpus, &query, &options, &mut |batch| {
            got.extend_from_slice(batch);
            ControlFlow::Continue(())
        });
        let all = read_query(&case.plain, &query, None);
        let num_allowed = all.len().min(max_hits as usize);
        prop_assert_eq!(&got[..], &all[..num_allowed]);
        match ended {
            Err(Error::Capacity { knob: "tadoc.max_hits", .. }) => prop_assert!(all.len() > num_allowed),
            Err(other) => prop_assert!(false, "{other}"),
            Ok(()) => prop_assert_eq!(all.len(), num_allowed),
        }
    }
}

/// Generates fragments that are cut from the replaced texts at any character. Some are changed.
fn fragments() -> impl Strategy<Value = Vec<(prop::sample::Index, prop::sample::Index, usize)>> {
    let fragment = (any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0usize..9);
    prop::collection::vec(fragment, 1..4)
}

/// Returns true if `fragments` occur in `text` in order and without overlaps.
fn occur_in_order(text: &str, fragments: &[String]) -> bool {
    let mut rest = text;
    fragments.iter().all(|fragment| match rest.split_once(fragment.as_str()) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn candidates_leave_no_matching_document_out(recipe in recipes(), picks in fragments()) {
        let case = recipe.cook();
        let texts: Vec<String> =
            case.plain.docs.iter().map(|doc| String::from_utf8_lossy(doc).into_owned()).collect();
        let characters: Vec<char> = texts.concat().chars().collect();
        let fragments: Vec<String> = picks
            .iter()
            .filter(|_| !characters.is_empty())
            .map(|(start, _, len)| {
                let start = start.index(characters.len());
                characters[start..characters.len().min(start + len)].iter().collect()
            })
            .collect();
        let pattern = TextPattern::from_fragments(fragments.clone());
        let check = |pattern: &TextPattern, fits: &dyn Fn(&str) -> bool| {
            let matching: Vec<u64> =
                (0u64..).zip(&texts).filter(|(_, text)| fits(text)).map(|(id, _)| id).collect();
            if let Some(candidates) = candidate_documents(&case.corpus, pattern) {
                assert!(candidates.is_sorted_by(|a, b| a < b));
                assert!(matching.iter().all(|id| candidates.contains(id)), "{pattern:?} {candidates:?}");
            }
            for (segment_idx, segment) in case.corpus.segments().iter().enumerate() {
                let Some(docs) = candidate_docs(segment, recipe.profile, pattern) else { continue };
                for &(segment_of, doc) in matching.iter().flat_map(|&id| case.corpus.doc_parts(id)).collect::<Vec<_>>().iter() {
                    assert!(segment_of != segment_idx || docs.contains(doc));
                }
            }
        };
        check(&pattern, &|text| occur_in_order(text, &fragments));
        for fragment in &fragments {
            check(&TextPattern::contains(fragment), &|text| text.contains(fragment.as_str()));
            check(&TextPattern::starts_with(fragment), &|text| text.starts_with(fragment.as_str()));
        }
        for literal in texts.iter().chain(&fragments) {
            check(&TextPattern::equals(literal), &|text| text == literal);
        }
    }
}

/// Few hits in many documents: counts are kept as lists, and documents are scanned or walked.
#[test]
fn rare_and_common_words_are_found_in_many_documents() {
    let docs: Vec<Vec<u8>> = (0..400usize)
        .map(|doc| {
            let needle = if [7, 200, 399].contains(&doc) { "the needle, " } else { "" };
            let common = "of the power loss and of the loss ".repeat(doc % 5);
            format!("{common}{needle}doc {doc} ends; of the {}", doc % 17).into_bytes()
        })
        .collect();
    for seed in 0..20 {
        let case = scrambled::case_of(TokenizerProfile::Word, docs.clone(), seed);
        for text in ["needle", "the", "\"the needle\"", "\"of the\"", "\"doc 7\"", "needle loss", "loss needle the"] {
            let query = Query::parse(TokenizerProfile::Word, text).unwrap();
            for doc_id in [None, Some(7), Some(8), Some(399)] {
                let expected = read_query(&case.plain, &query, doc_id);
                assert_eq!(search(&case.corpus, &query, doc_id).unwrap(), expected, "{text}");
                let options = SearchOptions { doc_id, ..Default::default() };
                let counted = count_by_document(&case.corpus, &query, &options).unwrap();
                let sum: u64 = counted.iter().map(|counted| counted.count).sum();
                assert_eq!(sum, expected.len() as u64, "{text}");
                assert!(counted.iter().all(|c| expected.iter().any(|hit| hit.doc_id == c.doc_id)));
                assert!(counted.is_sorted_by(|a, b| a.doc_id < b.doc_id));
            }
        }
    }
}

#[test]
fn candidates_exclude_documents_without_the_tokens() {
    let docs = [&b"the quick, brown fox"[..], b"the lazy dog", b"a brownish dog\r\n", b""];
    let docs: Vec<Vec<u8>> = docs.iter().map(|doc| doc.to_vec()).collect();
    let profile = TokenizerProfile::Word;
    let segment = Arc::new(scrambled::segment_of(profile, &docs, false, 3));
    let corpus = Corpus::new(profile, vec![segment]);
    let of = |pattern: TextPattern| candidate_documents(&corpus, &pattern);
    assert_eq!(of(TextPattern::contains("brown f")), Some(vec![0]));
    assert_eq!(of(TextPattern::contains("brown")), Some(vec![0, 2]));
    assert_eq!(of(TextPattern::contains(" dog")), Some(vec![1, 2]));
    assert_eq!(of(TextPattern::contains("ck, br")), Some(vec![0]));
    assert_eq!(of(TextPattern::contains("\r")), Some(vec![2]));
    assert_eq!(of(TextPattern::contains("cat")), Some(vec![]));
    assert_eq!(of(TextPattern::equals("the lazy dog")), Some(vec![1]));
    assert_eq!(of(TextPattern::equals("")), Some(vec![3]));
    assert_eq!(of(TextPattern::contains(" ")), None);
    assert_eq!(of(TextPattern::like("%lazy%dog", None)), Some(vec![1]));
}

#[test]
fn a_bomb_is_counted_and_read_in_places_but_never_expanded() {
    let corpus = bomb();
    let parse = |text| Query::parse(TokenizerProfile::Word, text).unwrap();
    let options = SearchOptions::default();
    let copies = 1u64 << 59;
    assert_eq!(document_len_bytes(&corpus, 0).unwrap(), copies * 3 + 2);
    assert_eq!(count(&corpus, &parse("ab"), &options).unwrap(), copies + 2);
    assert_eq!(count(&corpus, &parse("\"ab ab\""), &options).unwrap(), copies);
    assert_eq!(count(&corpus, &parse("\"ab ab ab\""), &options).unwrap(), copies - 2);
    assert_eq!(count(&corpus, &parse("*"), &options).unwrap(), copies + 3);
    assert_eq!(count(&corpus, &parse("\"a? /.b|zz/\""), &options).unwrap(), copies + 1);
    let by_doc = count_by_document(&corpus, &parse("ab"), &options).unwrap();
    assert_eq!(by_doc.iter().map(|c| c.count).collect::<Vec<_>>(), [copies, 2]);
    let is_too_much =
        |result: Result<Vec<Hit>, Error>| matches!(result, Err(Error::Capacity { knob: "tadoc.max_hits", .. }));
    assert!(is_too_much(search(&corpus, &parse("ab"), None)));
    assert!(is_too_much(search(&corpus, &parse("\"ab ab\""), None)));
    assert!(is_too_much(search(&corpus, &parse("ab"), Some(0))));
    assert_eq!(search(&corpus, &parse("ab"), Some(1)).unwrap().len(), 2);
    let zz = Hit { doc_id: 0, byte_offset: copies * 3, byte_len: 2, word_index: copies };
    assert_eq!(search(&corpus, &parse("zz"), None).unwrap(), [zz]);
    let zz_in_context = kwic(&corpus, &parse("z*"), 2, 2, &options, &mut |batch| {
        let context = batch.iter().next().unwrap();
        assert_eq!((context.hit, context.left, context.right), (zz, &b"ab ab "[..], &b""[..]));
        ControlFlow::Break(())
    });
    zz_in_context.unwrap();
    for limit in [1 << 30, NO_LIMIT] {
        let refused = document_bytes(&corpus, 0, limit).unwrap_err();
        assert!(matches!(refused, Error::Capacity { .. }), "{refused}");
    }
    assert_eq!(extract(&corpus, 0, copies * 3 - 4, 99).unwrap(), b"b ab zz"[1..]);
    assert_eq!(extract(&corpus, 0, (copies / 3) * 3 + 1, 6).unwrap(), b"b ab a");
}

#[test]
fn a_search_without_end_can_be_stopped() {
    let corpus = bomb();
    let query = Query::parse(TokenizerProfile::Word, "ab").unwrap();
    let mut hits = Vec::new();
    search_with(&corpus, &query, &SearchOptions::default(), &mut |batch| {
        hits.extend_from_slice(batch);
        if hits.len() < 100_000 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
    .unwrap();
    for (hit, at) in hits.iter().zip(0..) {
        assert_eq!(*hit, Hit { doc_id: 0, byte_offset: 3 * at, byte_len: 2, word_index: at });
    }
    let options = SearchOptions { max_hits: u64::MAX, is_cancelled: &|| true, ..Default::default() };
    let stopped = search_with(&corpus, &query, &options, &mut |_| ControlFlow::Continue(()));
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
}
