//! Corpus files that are damaged or written with bad intent.
//!
//! Reading order: `samples` (the valid files), `anatomy` (takes a file apart and seals it again), `mutations` (the
//! changes), [`ask_everything`] (questions to a file that still opens, whose answers are checked against those of the
//! slow way, which expands all rules to tokens), and [`busy_time`] (the time that the questions take).

pub mod anatomy;
pub mod mutations;
pub mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use tadoc::analytics::{Traversal, corpus_statistics, inverted_index, word_count};
use tadoc::format::{FileFooter, OpenLimits};
use tadoc::grammar::expand_tokens;
use tadoc::query::{
    Hit, Query, SearchOptions, TextPattern, candidate_documents, count, count_by_document, search_with,
};
use tadoc::read::{DocumentDecoder, document_len_bytes, document_num_words, extract};
use tadoc::{Corpus, Error};

use crate::random::Random;

/// Limits of opening a file in these tests.
pub const LIMITS: OpenLimits = OpenLimits { max_footer_bytes: 1 << 20, max_memory_bytes: 64 << 20 };

/// Returns the processor time of this thread so far. If the system does not report it, returns the
/// elapsed time.
pub fn busy_time() -> Duration {
    static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = statistics.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.map_or_else(|| STARTED.elapsed(), Duration::from_nanos)
}

/// Maximum tokens of a text that is expanded for comparison.
const MAX_TOKENS: u64 = 50_000;
/// Limits that a typical caller sets.
const MAX_OUTPUT_BYTES: u64 = 1 << 20;
const MAX_HITS: u64 = 1_000;

/// The expanded text of a document.
#[derive(Default)]
struct Plain {
    bytes: Vec<u8>,
    /// Words with their offsets.
    words: Vec<(String, u64)>,
}

/// Asks `corpus` every kind of question.
///
/// Typed errors are allowed when a limit is exceeded.
///
/// # Panics
/// An answer is wrong.
pub fn ask_everything(random: &mut Random, footer: &FileFooter, corpus: &Corpus) {
    assert_eq!(footer.num_docs(), corpus.num_docs());
    let statistics = corpus_statistics(corpus);
    assert_eq!(statistics.num_docs, footer.num_docs());
    assert_eq!(statistics.len_bytes, footer.len_bytes());
    assert_eq!(statistics.num_tokens, footer.num_tokens());
    if footer.num_tokens() > MAX_TOKENS {
        return ask_without_comparing(corpus);
    }
    let plain = plain_documents(corpus);
    check_documents(random, corpus, &plain);
    check_word_tasks(random, corpus, &plain);
    for _ in 0..2 {
        check_search(random, corpus, &plain);
    }
    let fragment = plain.get(random.below(plain.len())).and_then(|doc| doc.words.first());
    let fragment = fragment.map_or("power", |(word, _)| word);
    let candidates = candidate_documents(corpus, &TextPattern::contains(fragment));
    assert!(candidates.is_none_or(|docs| docs.is_sorted() && docs.len() < plain.len()));
}

/// Expands the documents from tokens: puts a blank between two neighbouring words and joins the
/// parts of cut documents.
fn plain_documents(corpus: &Corpus) -> Vec<Plain> {
    let mut plain: Vec<Plain> = Vec::new();
    for segment in corpus.segments() {
        let dictionary = &segment.dictionary;
        for (doc, tokens) in expand_tokens(segment.dag.grammar()).iter().enumerate() {
            if plain.is_empty() || doc > 0 || !segment.continues {
                plain.push(Plain::default());
            }
            let Plain { bytes, words } = plain.last_mut().unwrap();
            let mut is_after_word = false;
            for &token in tokens {
                let is_word = dictionary.is_word(token);
                if is_word && is_after_word {
                    bytes.push(b' ');
                }
                if is_word {
                    words.push((dictionary.word(token.into()).to_owned(), bytes.len() as u64));
                }
                bytes.extend_from_slice(dictionary.get(token));
                is_after_word = is_word;
            }
        }
    }
    plain
}

fn check_documents(random: &mut Random, corpus: &Corpus, plain: &[Plain]) {
    assert_eq!(corpus.num_docs(), plain.len() as u64);
    let mut decoder = DocumentDecoder::new(corpus.clone(), MAX_OUTPUT_BYTES);
    for (doc_id, doc) in (0..).zip(plain) {
        decoder.clear();
        decoder.append_document(doc_id).unwrap();
        assert!(decoder.bytes() == doc.bytes, "document {doc_id}");
        assert_eq!(document_len_bytes(corpus, doc_id).unwrap(), doc.bytes.len() as u64);
        assert_eq!(document_num_words(corpus, doc_id).unwrap(), doc.words.len() as u64);
        let range = random.range(doc.bytes.len());
        let start = range.start as u64;
        let len = range.len() as u64;
        assert_eq!(extract(corpus, doc_id, start, len).unwrap(), doc.bytes[range]);
    }
    assert!(decoder.append_document(corpus.num_docs()).is_err());
}

fn check_word_tasks(random: &mut Random, corpus: &Corpus, plain: &[Plain]) {
    let mut expected: BTreeMap<&str, (u64, BTreeSet<u64>)> = BTreeMap::new();
    for (doc_id, doc) in (0..).zip(plain) {
        for (word, _) in &doc.words {
            let (count, docs) = expected.entry(word).or_default();
            *count += 1;
            docs.insert(doc_id);
        }
    }
    let counts = word_count(corpus).unwrap();
    assert!(counts.iter().eq(expected.iter().map(|(word, (count, _))| (*word, *count))));
    let ways = [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan];
    let index = inverted_index(corpus, *random.pick(&ways)).unwrap();
    assert_eq!(index.len(), expected.len());
    for (row, (word, (_, docs))) in expected.iter().enumerate() {
        assert_eq!(index.word(row), *word);
        assert!(index.doc_ids(row).eq(docs.iter().copied()), "documents with {word}");
        assert_eq!(index.num_docs(row), docs.len());
    }
}

fn check_search(random: &mut Random, corpus: &Corpus, plain: &[Plain]) {
    let Some(doc) = plain.get(random.below(plain.len())).filter(|doc| !doc.words.is_empty()) else {
        return;
    };
    let start = random.below(doc.words.len());
    let phrase = doc.words[start..].iter().take(1 + random.below(4));
    let text = phrase.map(|(word, _)| word.as_str()).collect::<Vec<_>>().join(" ");
    // An untrusted word may be no word, or several words, for this tokenizer.
    let quoted = format!("\"{}\"", text.replace('"', "\"\""));
    let Ok(query) = Query::parse(corpus.profile(), &quoted) else { return };
    let words = query.items()[0].iter().map(|word| word.as_spellings().map(<[String]>::to_vec));
    // An untrusted word may also be a wildcard or a regular expression.
    let Some(words) = words.collect::<Option<Vec<Vec<String>>>>() else { return };
    let expected = plain_hits(plain, &words);
    assert_eq!(count(corpus, &query, &SearchOptions::default()).unwrap(), expected.len() as u64);
    let by_document = count_by_document(corpus, &query, &SearchOptions::default()).unwrap();
    assert_eq!(by_document.iter().map(|c| c.count).sum::<u64>(), expected.len() as u64);
    let (hits, outcome) = limited_search(corpus, &query);
    assert_eq!(outcome.is_ok(), expected.len() as u64 <= MAX_HITS);
    assert!(hits.iter().eq(expected.iter().take(MAX_HITS as usize)), "hits of {query}");
}

fn plain_hits(plain: &[Plain], words: &[Vec<String>]) -> Vec<Hit> {
    let mut hits = Vec::new();
    for (doc_id, doc) in (0..).zip(plain) {
        for (word_index, window) in (0..).zip(doc.words.windows(words.len())) {
            if window.iter().zip(words).all(|((word, _), spellings)| spellings.contains(word)) {
                let (last, last_offset) = &window[words.len() - 1];
                let byte_offset = window[0].1;
                let byte_len = last_offset + last.len() as u64 - byte_offset;
                hits.push(Hit { doc_id, byte_offset, byte_len, word_index });
            }
        }
    }
    hits
}

fn limited_search(corpus: &Corpus, query: &Query) -> (Vec<Hit>, Result<(), Error>) {
    let mut hits = Vec::new();
    let options = SearchOptions { max_hits: MAX_HITS, ..Default::default() };
    let outcome = search_with(corpus, query, &options, &mut |batch| {
        hits.extend_from_slice(batch);
        ControlFlow::Continue(())
    });
    (hits, outcome)
}

/// Asks the same questions about a text that is too large to be expanded here.
fn ask_without_comparing(corpus: &Corpus) {
    let counts = word_count(corpus).unwrap();
    inverted_index(corpus, Traversal::Auto).unwrap();
    let mut decoder = DocumentDecoder::new(corpus.clone(), MAX_OUTPUT_BYTES);
    for doc_id in 0..corpus.num_docs().min(1_000) {
        decoder.clear();
        let decoded = decoder.append_document(doc_id);
        assert!(matches!(decoded, Ok(()) | Err(Error::Capacity { .. })), "{decoded:?}");
        let len = document_len_bytes(corpus, doc_id).unwrap();
        extract(corpus, doc_id, len / 2, 100).unwrap();
    }
    let words = [0, counts.len() / 2].map(|row| counts.iter().nth(row));
    for (word, _) in words.into_iter().flatten() {
        if let Ok(query) = Query::parse(corpus.profile(), word) {
            count(corpus, &query, &SearchOptions::default()).unwrap();
            let (_, outcome) = limited_search(corpus, &query);
            assert!(matches!(outcome, Ok(()) | Err(Error::Capacity { .. })), "{outcome:?}");
        }
    }
}
