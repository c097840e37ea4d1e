//! Tests of corpora of which only the needed segments are opened, against all of their segments.

use std::ops::ControlFlow;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use tadoc::Corpus;
use tadoc::build::{BuilderKind, IngestOptions};
use tadoc::format::{FileFooter, OpenLimits, SegmentLayout, StoredDictionary, read_segment, read_segment_with};
use tadoc::query::{
    Hit, Query, SearchOptions, SegmentWords, TextPattern, candidate_documents, count_by_document, kwic, may_match,
    search, segments_for_query, segments_for_texts,
};
use tadoc::read::extract;
use tadoc::segment::Segment;
use tadoc::text::{Dictionary, TokenizerProfile};
use testkit::documents::{PROFILES, compress, numbered, options, path_of};

const WORDS: [&str; 9] = ["the", "of", "power", "Power", "loss", "storm", "plant", "é", "x1"];
const SEPARATORS: [&str; 4] = [" ", " ", ", ", "\n"];
const QUERIES: [&str; 14] = [
    "the",
    "storm",
    "absent",
    "\"power loss\"",
    "\"the power\"",
    "\"loss of the\"",
    "\"of absent\"",
    "pow*",
    "\"p* loss\"",
    "*o?m",
    "/st.*|x./",
    "storm é",
    "\"the power\" plant",
    "the *",
];
const FRAGMENTS: [&str; 9] = ["storm", "power loss", "er, lo", "the", "x1\n", "absent", "nt", " ", "oss of"];

/// A file and what is read of it.
struct Opened {
    file: Vec<u8>,
    footer: FileFooter,
    all: Corpus,
    stored: Vec<StoredDictionary>,
    dictionaries: Vec<Dictionary>,
}

impl Opened {
    fn new(profile: TokenizerProfile, texts: &[String], block_bytes: usize) -> Self {
        let documents = numbered(texts.iter().map(|text| text.clone().into_bytes()));
        let layout = [SegmentLayout::Small, SegmentLayout::INDEXED][texts.len() % 2];
        let options = options(profile, BuilderKind::Rounds, block_bytes);
        let file = compress(&documents, &IngestOptions { layout, ..options });
        let (footer, all) = Corpus::from_bytes("all", &file, &OpenLimits::default()).unwrap();
        let stored = |idx: usize| {
            let range = footer.segments[idx].dictionary_range();
            let bytes = file[range.start as usize..range.end as usize].to_vec();
            StoredDictionary::new("some", &footer, idx, bytes.into()).unwrap()
        };
        let stored: Vec<_> = (0..footer.segments.len()).map(stored).collect();
        let decode = |stored: &StoredDictionary| stored.decode(&OpenLimits::default()).unwrap();
        let dictionaries = stored.iter().map(decode).collect();
        Self { file, footer, all, stored, dictionaries }
    }

    fn words(&self) -> Vec<SegmentWords<'_>> {
        let segments = self.footer.segments.iter().zip(&self.dictionaries);
        let words = segments.map(|(meta, dictionary)| SegmentWords {
            dictionary,
            num_docs: meta.num_docs,
            continues: meta.continues,
        });
        words.collect()
    }

    /// Checks that a stored dictionary refuses no segment that `is_needed`, and all others if it can tell.
    fn check_stored(&self, query: &Query, is_needed: &[bool]) {
        let segments = &self.footer.segments;
        for (idx, stored) in self.stored.iter().enumerate() {
            if segments[idx..].iter().take(2).any(|segment| segment.continues) {
                continue;
            }
            let mut is_known = query.is_exact();
            let may_match = may_match(query, |word| {
                let word_id = stored.word_id(word)?;
                is_known &= word_id.is_some();
                Ok(word_id.map(|id| id.is_some()))
            });
            let may_match = may_match.unwrap();
            assert!(may_match || !is_needed[idx]);
            assert!(!is_known || may_match == is_needed[idx]);
        }
    }

    /// Opens the segments that are needed.
    fn some(&self, is_needed: &[bool]) -> Corpus {
        assert_eq!(is_needed.len(), self.footer.segments.len());
        let open = |(idx, &is_needed): (usize, &bool)| {
            let meta = &self.footer.segments[idx];
            let dictionary = self.dictionaries[idx].clone();
            let range = meta.rest_range();
            let bytes = &self.file[range.start as usize..range.end as usize];
            Arc::new(if is_needed {
                let footer = &self.footer;
                let limits = OpenLimits::default();
                read_segment_with("some", footer, idx, bytes, dictionary, &limits).unwrap()
            } else {
                Segment::absent(meta.num_docs as usize, meta.continues).unwrap()
            })
        };
        let segments = is_needed.iter().enumerate().map(open).collect();
        Corpus::new(self.footer.profile, segments)
    }
}

/// Returns the hits with their contexts and paths.
fn in_context(corpus: &Corpus, query: &Query) -> Vec<(Hit, Vec<u8>, Vec<u8>, String)> {
    let mut rows = Vec::new();
    kwic(corpus, query, 3, u64::MAX, &SearchOptions::default(), &mut |batch| {
        rows.extend(batch.iter().map(|context| {
            let path = path_of(corpus, context.hit.doc_id).to_owned();
            (context.hit, context.left.to_vec(), context.right.to_vec(), path)
        }));
        ControlFlow::Continue(())
    })
    .unwrap();
    rows
}

/// Returns the documents that contain `fragment`, with their paths, as a scan finds them.
fn with_fragment(corpus: &Corpus, fragment: &str) -> Vec<(u64, String)> {
    let candidates = candidate_documents(corpus, &TextPattern::contains(fragment));
    let candidates = candidates.unwrap_or_else(|| (0..corpus.num_docs()).collect());
    let contains = |id: &u64| {
        let text = extract(corpus, *id, 0, u64::MAX).unwrap();
        String::from_utf8(text).unwrap().contains(fragment)
    };
    let found = candidates.into_iter().filter(contains);
    found.map(|id| (id, path_of(corpus, id).to_owned())).collect()
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let token = (0..WORDS.len(), 0..WORDS.len(), select(&SEPARATORS[..]));
    // The least of two numbers: words at the end of the list are rare.
    let token = token.prop_map(|(a, b, gap)| format!("{}{gap}", WORDS[a.min(b)]));
    let text = prop::collection::vec(token, 0..16).prop_map(|tokens| tokens.concat());
    prop::collection::vec(text, 0..10)
}

proptest! {
    #[test]
    fn answers_need_only_the_segments_that_are_chosen(
        texts in texts(),
        block_bytes in select(&[1usize, 7, 20, 60, 1 << 20][..]),
        profile in select(&PROFILES[..]),
        fold in select(&["none", "case", "accents", "accents,stem:english"][..]),
        queries in subsequence(&QUERIES[..], 5),
    ) {
        let opened = Opened::new(profile, &texts, block_bytes);
        let all = &opened.all;
        for text in queries {
            let query = Query::parse(profile, text).unwrap().folded(&fold.parse().unwrap()).unwrap();
            let is_needed = segments_for_query(&query, &opened.words());
            opened.check_stored(&query, &is_needed);
            let some = opened.some(&is_needed);
            prop_assert_eq!(some.num_docs(), all.num_docs());
            let hits = search(all, &query, None).unwrap();
            prop_assert_eq!(search(&some, &query, None).unwrap(), hits, "{}", text);
            let options = SearchOptions::default();
            let counts = count_by_document(all, &query, &options).unwrap();
            let counts_of_some = count_by_document(&some, &query, &options).unwrap();
            prop_assert_eq!(counts_of_some, counts, "{}", text);
            prop_assert_eq!(in_context(&some, &query), in_context(all, &query), "{}", text);
        }
        for fragment in FRAGMENTS {
            let demands = [vec![TextPattern::contains(fragment)]];
            let is_needed = segments_for_texts(&demands, profile, &opened.words());
            let found = with_fragment(&opened.some(&is_needed), fragment);
            prop_assert_eq!(found, with_fragment(all, fragment), "{}", fragment);
        }
        for id in 0..all.num_docs() {
            let is_needed = opened.footer.segments_of(&[id]);
            let parts: Vec<usize> = all.doc_parts(id).map(|(place, _)| place).collect();
            prop_assert!((0..is_needed.len()).filter(|&place| is_needed[place]).eq(parts));
            let some = opened.some(&is_needed);
            let text = extract(all, id, 0, u64::MAX).unwrap();
            prop_assert_eq!(extract(&some, id, 0, u64::MAX).unwrap(), text);
        }
        prop_assert!(!opened.footer.segments_of(&[all.num_docs()]).contains(&true));
        let even: Vec<u64> = (0..all.num_docs()).step_by(2).collect();
        let of_one = even.iter().map(|&id| opened.footer.segments_of(&[id]));
        let none = vec![false; all.segments().len()];
        let of_even = of_one.fold(none, |any, one| any.iter().zip(&one).map(|(a, b)| a | b).collect());
        prop_assert_eq!(opened.footer.segments_of(&even), of_even);
    }
}

#[test]
fn segments_without_the_words_are_not_needed() {
    let texts = ["the power, the loss", "of the storm", "the power loss"].map(str::to_owned);
    let opened = Opened::new(TokenizerProfile::Word, &texts, 20);
    assert_eq!(opened.footer.segments.len(), 3);
    let needed = |text: &str| {
        let query = Query::parse(TokenizerProfile::Word, text).unwrap();
        segments_for_query(&query, &opened.words())
    };
    assert_eq!(needed("the"), [true, true, true]);
    assert_eq!(needed("storm"), [false, true, false]);
    assert_eq!(needed("\"the power\""), [true, false, true]);
    assert_eq!(needed("storm loss"), [false, false, false]);
    let needed = |patterns: &[&[&str]]| {
        let any = |any: &&[&str]| any.iter().map(|text| TextPattern::contains(text)).collect();
        let demands: Vec<Vec<TextPattern>> = patterns.iter().map(any).collect();
        segments_for_texts(&demands, TokenizerProfile::Word, &opened.words())
    };
    assert_eq!(needed(&[&["stor"]]), [false, true, false]);
    assert_eq!(needed(&[&["stor", "er,"]]), [true, true, false]);
    assert_eq!(needed(&[&["the"], &["loss"]]), [true, false, true]);
    assert_eq!(needed(&[&["oss o"]]), [false, false, false]);
}

#[test]
fn a_dictionary_of_another_segment_is_refused() {
    let texts = ["a b c", "a b"].map(str::to_owned);
    let opened = Opened::new(TokenizerProfile::Word, &texts, 5);
    let range = opened.footer.segments[0].rest_range();
    let bytes = &opened.file[range.start as usize..range.end as usize];
    let footer = &opened.footer;
    let limits = OpenLimits::default();
    let other = opened.dictionaries[1].clone();
    let refused = read_segment_with("some", footer, 0, bytes, other, &limits);
    assert!(refused.unwrap_err().to_string().contains("terminals"));
    let whole = read_segment("some", footer, 0, bytes, &limits).unwrap_err().to_string();
    assert!(whole.contains("bytes"), "{whole}");
    for at in [0, bytes.len() / 2] {
        let mut flipped = bytes.to_vec();
        flipped[at] ^= 1;
        let dictionary = opened.dictionaries[0].clone();
        read_segment_with("some", footer, 0, &flipped, dictionary, &limits).unwrap_err();
    }
}
