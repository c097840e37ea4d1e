//! Tests of tasks whose caller leaves: each family of analytics is stopped after some number of questions.
//!
//! A run whose caller stays counts the questions, and has the rows of a run that asks nobody. Then the caller
//! leaves at the first question, at the last one, or in between. The task must end with
//! [`Error::Cancelled`], and may ask at most as often as its threads have begun something.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use proptest::prelude::*;
use tadoc::analytics::{
    Cooccurrences, CorpusParts, DocSelection, DocumentSequences, Fold, InvertedIndex, LogTemplates, NearDuplicates,
    OverlapTexts, RankedInvertedIndex, RepeatedPhrases, RepeatedSpans, SegmentRanked, SegmentSequences, SequenceCounts,
    Sequences, TaskLimits, TemplateOptions, TermVectors, Traversal, Vocabulary, document_counts, document_counts_until,
    overlap,
};
use tadoc::{Corpus, Error, Result};
use testkit::scrambled::{self, recipes};

/// Memory that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;

const WAYS: [Traversal; 4] = [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan];

/// A question whether the caller has left.
type Ask<'a> = &'a (dyn Fn() -> bool + Sync);

/// A task that asks, with its rows as text, or its error.
type Run<'a> = Box<dyn Fn(Ask<'_>) -> Result<String> + 'a>;

/// A corpus in memory, as a part whose owner may leave.
struct Asked<'a> {
    corpus: &'a Corpus,
    ask: Ask<'a>,
}

impl<'a> CorpusParts for Asked<'a> {
    type Part = &'a Corpus;

    fn num_parts(&self) -> usize {
        1
    }

    fn num_words(&self) -> u64 {
        0
    }

    fn part(&self, _index: usize) -> Result<&'a Corpus> {
        Ok(self.corpus)
    }

    fn hold(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        (self.ask)()
    }
}

fn limits<'a>(max_memory_bytes: u64, is_cancelled: Ask<'a>) -> TaskLimits<'a> {
    TaskLimits { max_memory_bytes, is_cancelled }
}

/// Returns the rows of a task that nobody can stop, or its error.
fn shown(rows: Result<impl Debug>) -> String {
    rows.map_or_else(|error| kind(&error), |rows| format!("{rows:?}"))
}

/// Returns the text of an error. Errors of memory say how much was asked for, which threads decide.
fn kind(error: &Error) -> String {
    match error {
        Error::Capacity { .. } => "too much memory".to_owned(),
        error => error.to_string(),
    }
}

fn sequences(sequences: &Sequences, counts: &[u64]) -> Vec<(Vec<u32>, u64)> {
    counts.iter().enumerate().map(|(row, &n)| (sequences.words(row).collect(), n)).collect()
}

fn counted(counts: &SequenceCounts) -> Vec<(Vec<u32>, u64)> {
    sequences(counts.sequences(), counts.counts())
}

fn paired(pairs: &Cooccurrences) -> Vec<(Vec<u32>, u64)> {
    sequences(pairs.pairs(), pairs.counts())
}

/// A sequence, and the number of its occurrences in each document.
type Ranked = (Vec<u32>, Vec<(u64, u64)>);

fn ranked(index: &RankedInvertedIndex) -> Vec<Ranked> {
    let entries = |row| {
        let range = index.entries_of(row);
        index.doc_ids()[range.clone()].iter().copied().zip(index.counts()[range].iter().copied())
    };
    let words = |row| index.sequences().words(row).collect();
    (0..index.len()).map(|row| (words(row), entries(row).collect())).collect()
}

/// Returns the rows of documents, counted in two chunks.
fn by_document(counter: &DocumentSequences<'_>, num_docs: u64) -> Result<Vec<(u64, String)>> {
    let mut rows = Vec::new();
    for docs in [0..num_docs / 2, num_docs / 2..num_docs] {
        let chunk = counter.chunk(&docs.collect::<Vec<_>>())?;
        for (at, &doc_id) in chunk.doc_ids().iter().enumerate() {
            let rows_of = chunk.rows_of(at);
            let words = rows_of.map(|row| (chunk.sequences().words(row).collect::<Vec<_>>(), chunk.counts()[row]));
            rows.push((doc_id, format!("{:?}", words.collect::<Vec<_>>())));
        }
    }
    Ok(rows)
}

/// Returns the tasks of a corpus with the rows of each, as nobody can stop them. Rows and errors must be
/// those of a run that asks. With `little` memory windows are met in passes.
fn tasks(corpus: &Corpus, little: u64, windows: [usize; 3]) -> Vec<(String, String, Run<'_>)> {
    let vocabulary = Arc::new(Vocabulary::new(corpus).unwrap());
    let words = move || vocabulary.clone();
    let num_docs = corpus.num_docs();
    let all = DocSelection::all(corpus);
    let mut tasks: Vec<(String, String, Run<'_>)> = Vec::new();
    for (way, bytes) in WAYS.into_iter().flat_map(|way| [(way, AMPLE), (way, little)]) {
        for n in [1, 2, 3, 7, 40] {
            let name = format!("sequences of {n}, {way}, {bytes}");
            let of = |words, limits: TaskLimits<'_>| {
                SequenceCounts::with_vocabulary(words, n, way, limits).map(|c| counted(&c))
            };
            let expected = shown(of(words(), bytes.into()));
            let words = words.clone();
            let run = move |ask: Ask<'_>| {
                let rows = SequenceCounts::with_vocabulary(words(), n, way, limits(bytes, ask))?;
                Ok(format!("{:?}", counted(&rows)))
            };
            tasks.push((name, expected, Box::new(run)));
        }
        for window in windows {
            let of = move |words, limits: TaskLimits<'_>| {
                Cooccurrences::with_vocabulary(words, window, 1, way, limits).map(|p| paired(&p))
            };
            let expected = shown(of(words(), bytes.into()));
            let words = words.clone();
            let run = move |ask: Ask<'_>| Ok(format!("{:?}", of(words(), limits(bytes, ask))?));
            tasks.push((format!("pairs of {window}, {way}, {bytes}"), expected, Box::new(run)));
        }
        for n in [1, 3, 40] {
            let of = move |words, limits: TaskLimits<'_>| {
                RankedInvertedIndex::with_vocabulary(words, n, way, limits).map(|i| ranked(&i))
            };
            let expected = shown(of(words(), bytes.into()));
            let ask_words = words.clone();
            let run = move |ask: Ask<'_>| Ok(format!("{:?}", of(ask_words(), limits(bytes, ask))?));
            tasks.push((format!("ranks of {n}, {way}, {bytes}"), expected, Box::new(run)));
            let of = move |words, limits: TaskLimits<'_>| {
                by_document(&DocumentSequences::new(words, n, way, limits)?, num_docs)
            };
            let expected = shown(of(words(), bytes.into()));
            let words = words.clone();
            let run = move |ask: Ask<'_>| Ok(format!("{:?}", of(words(), limits(bytes, ask))?));
            tasks.push((format!("documents of {n}, {way}, {bytes}"), expected, Box::new(run)));
        }
    }
    for way in WAYS {
        let listed = |index: &InvertedIndex| -> Vec<Vec<u64>> {
            (0..index.len()).map(|row| index.doc_ids(row).collect()).collect()
        };
        let expected = shown(InvertedIndex::with_vocabulary(words(), way).map(|i| listed(&i)));
        let ask_words = words.clone();
        let run = move |ask: Ask<'_>| {
            let index = InvertedIndex::cancellable(ask_words(), way, ask)?;
            Ok(format!("{:?}", listed(&index)))
        };
        tasks.push((format!("inverted index, {way}"), expected, Box::new(run)));
        let vectors = TermVectors::new(words(), way);
        let docs = all.clone();
        let expected = shown(vectors.collect(&docs, Some(3)));
        let shared = vectors.clone();
        let run = move |ask: Ask<'_>| Ok(format!("{:?}", shared.collect_until(&docs, Some(3), ask)?));
        tasks.push((format!("term vectors, {way}"), expected, Box::new(run)));
        let expected = shown(document_counts(&vectors));
        let run = move |ask: Ask<'_>| Ok(format!("{:?}", document_counts_until(&vectors, ask)?));
        tasks.push((format!("document counts, {way}"), expected, Box::new(run)));
    }
    for (min_words, min_count) in [(1, 2), (3, 2), (20, 3)] {
        let phrases = |phrases: &RepeatedPhrases| -> Vec<(Vec<u32>, u64)> {
            (0..phrases.len()).map(|row| (phrases.words(row).to_vec(), phrases.count(row))).collect()
        };
        let docs = all.clone();
        let of = move |words, limits: TaskLimits<'_>| {
            RepeatedPhrases::with_vocabulary(words, &docs, min_words, min_count, limits)
        };
        let expected = shown(of(words(), AMPLE.into()).map(|found| phrases(&found)));
        let words = words.clone();
        let run = move |ask: Ask<'_>| Ok(format!("{:?}", phrases(&of(words(), limits(AMPLE, ask))?)));
        tasks.push((format!("phrases of {min_words}"), expected, Box::new(run)));
    }
    tasks.extend(tasks_of_parts(corpus));
    tasks.extend(joins(corpus, words()));
    tasks
}

/// Returns the tasks over corpora in parts, and templates.
fn tasks_of_parts(corpus: &Corpus) -> Vec<(String, String, Run<'_>)> {
    let mut tasks: Vec<(String, String, Run<'_>)> = Vec::new();
    let stays: Ask<'_> = &|| false;
    let mut push = |name: &str, run: Run<'static>| {
        tasks.push((name.to_owned(), run(stays).unwrap_or_else(|e| kind(&e)), run));
    };
    for min_words in [1, 4] {
        let corpus = corpus.clone();
        let run = move |ask: Ask<'_>| {
            let parts = Asked { corpus: &corpus, ask };
            let spans = RepeatedSpans::find(&parts, min_words, AMPLE)?;
            Ok(format!("{:?}", spans.rows(0, &corpus, spans.for_part(0))))
        };
        push("spans", Box::new(run));
    }
    let of = corpus.clone();
    let run = move |ask: Ask<'_>| {
        let parts = Asked { corpus: &of, ask };
        let documents = NearDuplicates::new(&parts, 0.3, 1, &Fold::NONE, AMPLE)?;
        let mut all = Vec::new();
        documents.for_each_pairs(|pairs| {
            all.extend_from_slice(pairs);
            Ok(true)
        })?;
        Ok(format!("{all:?}"))
    };
    push("near duplicates", Box::new(run));
    let of = corpus.clone();
    let run = move |ask: Ask<'_>| {
        let mut texts = OverlapTexts::new(of.profile(), Fold::NONE, 2);
        texts.push(b"power loss a b ab aa")?;
        Ok(format!("{:?}", overlap(&texts, &Asked { corpus: &of, ask }, AMPLE)?))
    };
    push("overlap", Box::new(run));
    let of = corpus.clone();
    let run = move |ask: Ask<'_>| {
        let templates = LogTemplates::new(&of, &TemplateOptions::default(), AMPLE, ask)?;
        Ok(format!("{:?}", templates.rows()))
    };
    push("templates", Box::new(run));
    tasks
}

/// Returns the joins of the answers of segments. Segments that do not join are refused, asked or not.
fn joins(corpus: &Corpus, words: Arc<Vocabulary>) -> Vec<(String, String, Run<'_>)> {
    let segments = 0..corpus.segments().len();
    let ranks = |at| SegmentRanked::from_segment(corpus, at, 2).unwrap();
    let parts: Vec<SegmentRanked> = segments.map(ranks).collect();
    let num_pairs = |part: &SegmentRanked| part.starts.windows(2).map(|ends| u64::from(ends[1] - ends[0])).collect();
    let pairs: Vec<SegmentSequences> = parts
        .iter()
        .map(|part| SegmentSequences { keys: part.keys.clone(), counts: num_pairs(part), word_bits: part.word_bits })
        .collect();
    let all = DocSelection::all(corpus);
    let of = words.clone();
    let join = move |limits: TaskLimits<'_>| {
        let parts = parts.clone();
        RankedInvertedIndex::from_segments(of.clone(), &all, 2, parts, limits).map(|i| ranked(&i))
    };
    let expected = shown(join(0.into()));
    let run: Run<'_> = Box::new(move |ask| Ok(format!("{:?}", join(limits(AMPLE, ask))?)));
    let join_ranks = ("joined ranks".to_owned(), expected, run);
    let join = move |limits: TaskLimits<'_>| {
        let words = words.clone();
        let pairs = pairs.clone();
        SequenceCounts::from_segments(words, 2, pairs, limits).map(|c| counted(&c))
    };
    let expected = shown(join(0.into()));
    let run: Run<'_> = Box::new(move |ask| Ok(format!("{:?}", join(limits(AMPLE, ask))?)));
    vec![join_ranks, ("joined sequences".to_owned(), expected, run)]
}

/// Stops a task at some of its questions. Returns the number of its questions if nobody stops it.
fn check(name: &str, expected: &str, run: &Run<'_>) -> usize {
    let num_asked = AtomicUsize::new(0);
    let until = |stays_for: usize| {
        num_asked.store(0, Ordering::Relaxed);
        run(&|| num_asked.fetch_add(1, Ordering::Relaxed) >= stays_for)
    };
    let rows = until(usize::MAX).unwrap_or_else(|error| kind(&error));
    assert_eq!(rows, expected, "{name}: a caller who stays changes rows");
    // If memory is short, threads decide where a walk ends and so how often it asks.
    let all = num_asked.load(Ordering::Relaxed);
    for stays_for in [0, 1, all / 3, all / 2, all.saturating_sub(1)].into_iter().filter(|&k| k < all) {
        let stopped = until(stays_for);
        let Some(more) = num_asked.load(Ordering::Relaxed).checked_sub(stays_for).filter(|&n| n > 0) else {
            assert_eq!(stopped.unwrap_or_else(|error| kind(&error)), expected, "{name}");
            continue;
        };
        // Of two threads one may find that memory is short while the other one asks.
        let is_cancelled = match &stopped {
            Err(Error::Cancelled) => true,
            Err(error) => kind(error) == expected,
            Ok(_) => false,
        };
        assert!(is_cancelled, "{name}: {stays_for} of {all} questions: {stopped:?}");
        // Each thread may have begun a few things.
        let most = 4 * rayon::current_num_threads() + 4;
        assert!(more <= most, "{name}: {more} questions after {stays_for} of {all}");
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_caller_who_leaves_stops_every_task(recipe in recipes()) {
        let case = recipe.cook();
        for (name, expected, run) in tasks(&case.corpus, 1 << 12, [2, 5, 300]) {
            check(&name, &expected, &run);
        }
    }
}

/// Texts of so many words that loops ask, too, and not only parts of the work that begin.
#[test]
fn long_loops_ask_as_they_go() {
    let mut state = 7u64;
    let mut word = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        format!("w{} ", (state >> 33) % 700 * (state >> 50 & 3))
    };
    let texts: Vec<Vec<u8>> = (0..3).map(|_| (0..8_000).map(|_| word()).collect::<String>().into_bytes()).collect();
    let case = scrambled::case_of(tadoc::text::TokenizerProfile::Word, texts, 5);
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    for (name, expected, run) in tasks(&case.corpus, 1 << 18, [2, 5, 40]) {
        let num_asked = check(&name, &expected, &run);
        let family = name.split([' ', ',']).next().unwrap().to_owned();
        let most = asked.entry(family).or_default();
        *most = num_asked.max(*most);
    }
    for family in ["sequences", "pairs", "ranks", "documents", "phrases", "spans", "near"] {
        assert!(asked[family] > 3, "{family} of {asked:?}");
    }
}
