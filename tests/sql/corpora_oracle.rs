//! Tests of every task and traversal on real text, against its words: the first MiB of each of the
//! project's corpora, in several segments that cut documents.
//!
//! The oracles use the rank of a word among all words, which is also its row in the vocabulary.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{AsArray, RecordBatch};
use datafusion::arrow::datatypes::Int64Type;
use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::SessionContext;
use datafusion_tadoc::TadocSessionStateBuilderExt;
use tadoc::Corpus;
use tadoc::analytics::{
    Cooccurrences, DocSelection, DocumentSequences, RankedInvertedIndex, SequenceCounts, Sequences, TermVectors, Tfidf,
    TokenCursor, Traversal, Vocabulary, document_counts, term_vector, word_count,
};
use tadoc::build::BuilderKind;
use tadoc::query::{Query, SearchOptions, kwic, search, term_count};
use tadoc::text::TokenizerProfile;
use testkit::documents::{Document, compress, open, options, real_corpora};
use testkit::naive::{self, Plain};

/// Number of bytes taken of each corpus. All of them (59 MB) would take half an hour without
/// optimization.
const MAX_BYTES: usize = 1 << 20;
const NUM_SEGMENTS: usize = 5;
/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;

const WAYS: [Traversal; 4] = [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan];

/// The beginning of a corpus, as text and in segments.
struct Beginning {
    name: String,
    plain: Plain,
    /// The words of each document as ranks.
    docs: Vec<Vec<u32>>,
    file: Vec<u8>,
    corpus: Corpus,
    vocabulary: Arc<Vocabulary>,
}

static BEGINNINGS: LazyLock<Vec<Beginning>> = LazyLock::new(|| {
    let of = |(name, documents): (String, Vec<Document>)| Beginning::new(name, documents);
    real_corpora().into_iter().map(of).collect()
});

impl Beginning {
    fn new(name: String, documents: Vec<Document>) -> Self {
        let documents = first_bytes(documents, MAX_BYTES);
        let num_bytes: usize = documents.iter().map(|(_, text)| text.len()).sum();
        let profile = TokenizerProfile::Word;
        let options = options(profile, BuilderKind::Rounds, num_bytes / NUM_SEGMENTS + 1);
        let file = compress(&documents, &options);
        let corpus = open(&file);
        assert!(corpus.segments().len() >= NUM_SEGMENTS.min(num_bytes), "{name}");
        let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
        let plain = Plain::from_documents(profile, &documents);
        let words: BTreeSet<&str> = plain.words.iter().flatten().map(|word| word.text.as_str()).collect();
        assert!((0..vocabulary.len()).map(|row| vocabulary.word(row)).eq(words.iter().copied()));
        let ranks: BTreeMap<&str, u32> = words.into_iter().zip(0..).collect();
        let rank = |words: &Vec<&str>| words.iter().map(|word| ranks[word]).collect();
        let docs = plain.texts().iter().map(rank).collect();
        Self { name, plain, docs, file, corpus, vocabulary }
    }

    fn docs_selected(&self) -> DocSelection {
        DocSelection::all(&self.corpus)
    }

    /// Returns document, rank and count of all words of all documents, by document and word.
    fn terms(&self) -> Vec<(u64, u32, u64)> {
        let of_doc = |(doc_id, words): (u64, &Vec<u32>)| {
            let terms = naive::sequences_of(words, 1).into_iter();
            terms.map(move |(word, count)| (doc_id, word[0], count)).collect::<Vec<_>>()
        };
        (0..).zip(&self.docs).flat_map(of_doc).collect()
    }
}

/// Returns the documents up to `max_bytes`. The last one may be cut at any byte.
fn first_bytes(documents: Vec<Document>, max_bytes: usize) -> Vec<Document> {
    let mut rest = max_bytes;
    let cut = |(path, mut text): Document| {
        text.truncate(rest);
        rest -= text.len();
        (rest > 0 || !text.is_empty()).then_some((path, text))
    };
    documents.into_iter().map_while(cut).collect()
}

/// Compares rows and prints only the first difference.
#[track_caller]
fn assert_same<Row: PartialEq + std::fmt::Debug>(
    rows: impl IntoIterator<Item = Row>,
    expected: impl IntoIterator<Item = Row>,
    what: &str,
) {
    let mut rows = rows.into_iter();
    let mut expected = expected.into_iter();
    for at in 0.. {
        match (rows.next(), expected.next()) {
            (None, None) => return,
            (row, expected) => assert_eq!(row, expected, "{what}, row {at}"),
        }
    }
}

/// Compares sequences of words and their counts, without a copy of either.
#[track_caller]
fn assert_counted<'a>(
    sequences: &Sequences,
    counts: &[u64],
    expected: impl IntoIterator<Item = (&'a Vec<u32>, &'a u64)>,
    what: &str,
) {
    assert_eq!(sequences.len(), counts.len());
    let mut num_expected = 0;
    for (row, (words, count)) in expected.into_iter().enumerate() {
        let is_same = row < counts.len() && sequences.words(row).eq(words.iter().copied());
        assert!(is_same && counts[row] == *count, "{what}, row {row}: {words:?} {count}");
        num_expected = row + 1;
    }
    assert_eq!(counts.len(), num_expected, "{what}");
}

#[test]
fn words_and_terms_are_those_of_the_corpora() {
    for beginning in &*BEGINNINGS {
        let Beginning { name, corpus, vocabulary, docs, .. } = beginning;
        let counts = word_count(corpus).unwrap();
        let expected = naive::sequences(docs, 1);
        let sorted = counts.iter().map(|(word, count)| (word.to_owned(), count));
        let word = |rank: u32| vocabulary.word(rank as usize).to_owned();
        assert_same(sorted, expected.iter().map(|(w, &count)| (word(w[0]), count)), name);

        let terms = beginning.terms();
        let mut doc_counts = vec![0_u64; vocabulary.len()];
        terms.iter().for_each(|(_, word, _)| doc_counts[*word as usize] += 1);
        let ids = beginning.plain.doc_ids();
        let ends = ids.iter().map(|&id| terms.partition_point(|term| term.0 <= id) as u64);
        let offsets: Vec<u64> = std::iter::once(0).chain(ends).collect();
        for way in WAYS {
            let what = format!("{name}, {way}");
            // The result is a sparse matrix by rows, the layout of `doc_term_matrix`.
            let matrix = term_vector(corpus, way).unwrap();
            assert_eq!(matrix.doc_ids(), ids, "{what}");
            assert_eq!(matrix.offsets(), offsets, "{what}");
            assert_same(matrix.iter(), terms.iter().copied(), &what);

            let vectors = TermVectors::new(vocabulary.clone(), way);
            assert_eq!(document_counts(&vectors).unwrap(), doc_counts, "{what}");
            let tfidf = Tfidf::new(vectors).unwrap();
            let mut cursor = tfidf.cursor(&beginning.docs_selected(), None);
            let mut expected = terms.iter();
            while let Some(chunk) = cursor.next_chunk().unwrap() {
                for (found, score) in chunk.terms().iter().zip(chunk.scores()) {
                    let term = expected.next().unwrap();
                    assert_eq!(found, *term, "{what}");
                    let df = doc_counts[term.1 as usize] as f64;
                    let asked = term.2 as f64 * (docs.len() as f64 / df).ln();
                    assert!((score - asked).abs() <= 1e-9, "{what}: {score} for {asked}");
                }
            }
            assert_eq!(expected.next(), None, "{what}");
        }
    }
}

#[test]
fn tokens_are_those_of_the_corpora() {
    for Beginning { name, vocabulary, corpus, docs, .. } in &*BEGINNINGS {
        let mut cursor = TokenCursor::new(vocabulary.clone(), &DocSelection::all(corpus));
        let mut tokens = Vec::new();
        while let Some(chunk) = cursor.next_chunk().unwrap() {
            let places = chunk.doc_ids().iter().zip(chunk.word_indexes());
            tokens.extend(places.zip(chunk.rows()).map(|((&id, &at), &row)| (id, at, row)));
        }
        let of_doc =
            |(doc_id, words): (u64, &Vec<u32>)| (0..).zip(words.clone()).map(move |(at, word)| (doc_id, at, word));
        assert_same(tokens, (0..).zip(docs).flat_map(of_doc), name);
    }
}

#[test]
fn sequences_are_those_of_the_corpora() {
    for Beginning { name, vocabulary, docs, .. } in &*BEGINNINGS {
        for n in [1, 2, 3, 5] {
            let expected = naive::sequences(docs, n);
            let by_doc: Vec<_> = docs.iter().map(|words| naive::sequences_of(words, n)).collect();
            for way in WAYS {
                let what = format!("{name}, n = {n}, {way}");
                let words = vocabulary.clone();
                let counts = SequenceCounts::with_vocabulary(words, n, way, AMPLE).unwrap();
                assert_counted(counts.sequences(), counts.counts(), &expected, &what);

                let words = vocabulary.clone();
                let of_docs = DocumentSequences::new(words, n, way, AMPLE).unwrap();
                for ids in (0..docs.len() as u64).collect::<Vec<_>>().chunks(500) {
                    let chunk = of_docs.chunk(ids).unwrap();
                    assert_eq!(chunk.doc_ids(), ids, "{what}");
                    let expected = ids.iter().flat_map(|&id| &by_doc[id as usize]);
                    assert_counted(chunk.sequences(), chunk.counts(), expected, &what);
                    for (at, &id) in ids.iter().enumerate() {
                        assert_eq!(chunk.rows_of(at).len(), by_doc[id as usize].len(), "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn ranks_are_those_of_the_corpora() {
    for Beginning { name, vocabulary, docs, .. } in &*BEGINNINGS {
        for n in [2, 3] {
            let expected = naive::ranked(docs, n);
            for way in WAYS {
                let what = format!("{name}, n = {n}, {way}");
                let words = vocabulary.clone();
                let index = RankedInvertedIndex::with_vocabulary(words, n, way, AMPLE).unwrap();
                assert_eq!(index.len(), expected.len(), "{what}");
                for (row, (words, ranked)) in expected.iter().enumerate() {
                    assert!(index.sequences().words(row).eq(words.iter().copied()), "{what}");
                    let places = index.entries_of(row);
                    let found = index.counts()[places.clone()].iter().zip(&index.doc_ids()[places]);
                    let found = found.map(|(&count, &doc_id)| (Reverse(count), doc_id));
                    assert!(found.eq(ranked.iter().copied()), "{what}: {words:?}");
                }
            }
        }
    }
}

#[test]
fn pairs_are_those_of_the_corpora() {
    for Beginning { name, vocabulary, docs, .. } in &*BEGINNINGS {
        for (window, min_count) in [(2, 1), (5, 2)] {
            let expected = naive::pairs(docs, window, min_count);
            for way in WAYS {
                let words = vocabulary.clone();
                let pairs = Cooccurrences::with_vocabulary(words, window, min_count, way, AMPLE);
                let pairs = pairs.unwrap();
                let what = format!("{name}, window {window}, {way}");
                assert_counted(pairs.pairs(), pairs.counts(), &expected, &what);
            }
        }
    }
}

#[test]
fn matches_are_those_of_the_corpora() {
    let queries = [&["the"][..], &["pro*"], &["/[0-9]{2,}/"], &["of", "the"], &["t?e", "*ion"]];
    for Beginning { name, plain, corpus, .. } in &*BEGINNINGS {
        for item in queries {
            let item: Vec<String> = item.iter().map(|&word| word.to_owned()).collect();
            let text = format!("\"{}\"", item.join(" "));
            let query = Query::parse(plain.profile, &text).unwrap();
            let what = format!("{name}, {text}");
            let expected = naive::hits(plain, &[item], naive::fits);
            let found = search(corpus, &query, None).unwrap();
            assert_same(&found, &expected, &what);

            let options = SearchOptions::default();
            let mut counts = Vec::new();
            term_count(corpus, &query, &options, &mut |batch| {
                counts.extend(batch.iter().map(|counted| (counted.doc_id, counted.count)));
                ControlFlow::Continue(())
            })
            .unwrap();
            assert_same(counts, naive::counts_by_document(&expected), &what);

            let mut hits = expected.iter();
            kwic(corpus, &query, 5, u64::MAX, &options, &mut |batch| {
                for context in batch.iter() {
                    let hit = hits.next().unwrap();
                    let found = [context.left, context.matched, context.right];
                    assert_eq!(context.hit, *hit, "{what}");
                    assert_eq!(found, naive::context(plain, hit, 5), "{what}");
                }
                ControlFlow::Continue(())
            })
            .unwrap();
            assert_eq!(hits.next(), None, "{what}");
        }
    }
}

/// SQL gives the rows of `doc_term_matrix` for each traversal.
#[tokio::test]
async fn matrices_of_sql_are_those_of_the_corpora() {
    let dir = tempfile::tempdir().unwrap();
    let state = SessionStateBuilder::new().with_default_features().with_tadoc().build();
    let ctx = SessionContext::new_with_state(state);
    let rows_of = async |sql: &str| ctx.sql(sql).await.unwrap().collect().await.unwrap();
    for beginning in &*BEGINNINGS {
        let path = dir.path().join(format!("{}.tadoc", beginning.name));
        std::fs::write(&path, &beginning.file).unwrap();
        for way in WAYS {
            rows_of(&format!("SET tadoc.traversal = '{way}'")).await;
            let sql = format!("SELECT * FROM doc_term_matrix('{}') ORDER BY doc_id", path.display());
            let batches = rows_of(&sql).await;
            let what = format!("{}, {way}", beginning.name);
            let num_rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(num_rows, beginning.docs.len(), "{what}");
            assert_same(batches.iter().flat_map(terms_of), beginning.terms(), &what);
        }
    }
}

fn terms_of(batch: &RecordBatch) -> Vec<(u64, u32, u64)> {
    let ids = batch.column(0).as_primitive::<Int64Type>().values();
    let [words, counts] = [1, 2].map(|column| batch.column(column).as_list::<i32>());
    let mut terms = Vec::new();
    for (row, &id) in ids.iter().enumerate() {
        let [words, counts] =
            [words, counts].map(|lists| lists.value(row).as_primitive::<Int64Type>().values().to_vec());
        assert_eq!(words.len(), counts.len());
        let row = words.iter().zip(&counts);
        terms.extend(row.map(|(&word, &count)| (id as u64, word as u32, count as u64)));
    }
    terms
}
