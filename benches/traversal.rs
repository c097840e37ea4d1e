//! Benchmark of the traversals side by side: the time of each one, the quality of the choice among
//! them, and a comparison with peers that read arrays of word ids and know no grammar.
//!
//! `TADOC_CORPORA=/path cargo bench --bench traversal [TASK ...]` prints these values for each task
//! and corpus: the milliseconds of processor time of one thread (the least of several interleaved
//! runs), the traversal that the cost model chooses and its regret (the extra time over the fastest
//! one), the best peer (hash tables or sorting), and the factor by which the chosen traversal is
//! faster than that peer. At the end it prints the table of `src/tadoc/analytics/traversal.rs`
//! fitted anew (`fitting/mod.rs`), and the quality of its choices.
//!
//! Processor time comes from the kernel (`/proc/thread-self/schedstat`), so this benchmark needs
//! Linux.

#![allow(clippy::unwrap_used, missing_docs)]

mod corpora;
mod fitting;

use std::cmp::Reverse;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use corpora::{Subject, subjects};
use fitting::{Choices, Sample, print_fit};
use rustc_hash::FxHashMap;
use tadoc::analytics::{
    Cooccurrences, DocSelection, DocumentSequences, InvertedIndex, RankedInvertedIndex, SegmentShape, SequenceCounts,
    TermVectors, Traversal, TraversalTask, Vocabulary, choose_task_traversal, traversal_costs, traversal_statistics,
};

/// Memory limit in bytes that is larger than any task here needs.
const AMPLE: u64 = 64 << 30;
/// Largest number of runs of each traversal, and seconds after which one run is enough.
const MAX_ROUNDS: usize = 7;
const SECONDS: f64 = 3.0;

/// A run of a traversal or a peer, which returns its number of rows.
type Traverse<'a> = Box<dyn Fn() -> usize + Send + Sync + 'a>;

/// Windows and their counts, in ascending order.
type Rows<const N: usize> = Vec<([u32; N], u64)>;

/// A task on a corpus, with its peers and traversals.
struct Pair<'a> {
    name: String,
    task: TraversalTask,
    n: usize,
    peers: Vec<Traverse<'a>>,
    ways: Vec<(Traversal, Traverse<'a>)>,
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let mut samples = Vec::new();
    let mut choices = Choices::default();
    let mut num_pairs = 0;
    for (corpus, subject) in subjects().into_iter().enumerate() {
        let vocabulary = Arc::new(Vocabulary::new(&subject.corpus).unwrap());
        let segments = subject.corpus.segments().iter();
        let shape: SegmentShape = segments.map(|s| SegmentShape::from(s.as_ref())).sum();
        let docs = token_arrays(&subject, &vocabulary);
        println!("{}: {shape:?}, {} distinct words", subject.name, vocabulary.len());
        for pair in pairs(&docs, &vocabulary) {
            if !wanted.is_empty() && !wanted.iter().any(|name| pair.name.starts_with(name)) {
                continue;
            }
            let times = pool.install(|| measure(&pair));
            let (peers, ways) = times.split_at(pair.peers.len());
            let chosen = choose_task_traversal(pair.task, shape, pair.n).0;
            let mut least = f64::MAX;
            let mut of_chosen = 0.0;
            let mut shown = String::new();
            for ((way, _), &seconds) in pair.ways.iter().zip(ways) {
                least = least.min(seconds);
                let task = pair.task;
                let way = *way;
                samples.push(Sample {
                    corpus,
                    pair: num_pairs,
                    task,
                    way,
                    is_choosable: traversal_costs(task, shape, pair.n).any(|(of, _)| of == way),
                    statistics: traversal_statistics((task, way), shape, pair.n),
                    nanoseconds: seconds * 1e9,
                });
                shown += &format!(" {way} {:.2}", seconds * 1e3);
                if way == chosen {
                    of_chosen = seconds;
                }
            }
            let regret = of_chosen / least - 1.0;
            choices.push(regret);
            num_pairs += 1;
            let peer = peers.iter().copied().fold(f64::NAN, f64::min);
            println!(
                "  {:18} {chosen:10} regret {:4.0} %  peer {:.2} ratio {:.2} |{shown}",
                pair.name,
                regret * 100.0,
                peer * 1e3,
                peer / of_chosen
            );
        }
    }
    println!("{choices}");
    print_fit(&samples);
}

/// Returns the seconds of each peer, then of each traversal.
fn measure(pair: &Pair<'_>) -> Vec<f64> {
    let runs = || pair.peers.iter().chain(pair.ways.iter().map(|(_, run)| run));
    let expected = pair.ways.first().map(|(_, run)| run());
    let mut least = vec![f64::MAX; runs().count()];
    let start = Instant::now();
    for round in 0..MAX_ROUNDS {
        if round > 0 && start.elapsed().as_secs_f64() > SECONDS {
            break;
        }
        for (run, least) in runs().zip(&mut least) {
            let before = processor_seconds();
            let num_rows = run();
            *least = least.min(processor_seconds() - before);
            assert_eq!(Some(num_rows), expected, "{}", pair.name);
        }
    }
    least
}

/// Returns the processor time of this thread. The kernel updates it when the thread yields.
fn processor_seconds() -> f64 {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-9
}

fn pairs<'a>(docs: &'a [Vec<u32>], vocabulary: &'a Arc<Vocabulary>) -> Vec<Pair<'a>> {
    use Traversal::{BottomUp, TokenScan, TopDown};
    let all: Arc<[u64]> = (0..docs.len() as u64).collect();
    let words = move || vocabulary.clone();
    let of = move |ways: &[Traversal], run: fn(Arc<Vocabulary>, Traversal) -> usize| {
        let boxed = |&way: &Traversal| {
            let run: Traverse<'a> = Box::new(move || run(words(), way));
            (way, run)
        };
        ways.iter().map(boxed).collect::<Vec<_>>()
    };
    let three = [TopDown, BottomUp, TokenScan];
    let two = [TopDown, TokenScan];
    let mut pairs = vec![
        Pair {
            name: "inverted_index".into(),
            task: TraversalTask::InvertedIndex,
            n: 2,
            peers: Vec::new(),
            ways: of(&three, |words, way| {
                let index = InvertedIndex::with_vocabulary(words, way).unwrap();
                (0..index.len()).map(|row| index.num_docs(row)).sum()
            }),
        },
        Pair {
            name: "term_vector".into(),
            task: TraversalTask::TermVector,
            n: 2,
            peers: vec![Box::new(|| terms(docs))],
            ways: of(&three, |words, way| {
                let all = DocSelection::all(words.corpus());
                TermVectors::new(words, way).collect(&all, None).unwrap().num_rows()
            }),
        },
        Pair {
            name: "cooccurrence/5".into(),
            task: TraversalTask::Cooccurrence,
            n: 5,
            peers: vec![Box::new(|| pairs_by_hash(docs)), Box::new(|| pairs_by_sort(docs))],
            ways: of(&two, |words, way| Cooccurrences::with_vocabulary(words, 5, 1, way, AMPLE).unwrap().len()),
        },
        Pair {
            name: "ranked/3".into(),
            task: TraversalTask::DocumentSequences,
            n: 3,
            peers: vec![Box::new(|| ranked(docs, by_hash::<3>)), Box::new(|| ranked(docs, by_sort::<3>))],
            ways: of(&three, |words, way| {
                let index = RankedInvertedIndex::with_vocabulary(words, 3, way, AMPLE);
                index.unwrap().doc_ids().len()
            }),
        },
    ];
    macro_rules! sequences {
        ($n:literal, $ways:ident) => {
            let all = all.clone();
            // Makes as many rows as the tasks do, and keeps them until the last document is
            // counted.
            let each = |count: fn(&[Vec<u32>]) -> Rows<$n>| {
                let count = |doc| count(std::slice::from_ref(doc));
                let rows: Vec<Rows<$n>> = docs.iter().map(count).collect();
                black_box(rows).iter().map(Vec::len).sum()
            };
            let chunk = |way| -> Traverse<'a> {
                let all = all.clone();
                Box::new(move || {
                    let sequences = DocumentSequences::new(words(), $n, way, AMPLE).unwrap();
                    sequences.chunk(&all).unwrap().counts().len()
                })
            };
            pairs.push(Pair {
                name: concat!("sequence_count/", $n).into(),
                task: TraversalTask::SequenceCount,
                n: $n,
                peers: vec![
                    Box::new(|| black_box(by_hash::<$n>(docs)).len()),
                    Box::new(|| black_box(by_sort::<$n>(docs)).len()),
                ],
                ways: of(&two, |words, way| SequenceCounts::with_vocabulary(words, $n, way, AMPLE).unwrap().len()),
            });
            pairs.push(Pair {
                name: concat!("by_document/", $n).into(),
                task: TraversalTask::DocumentSequences,
                n: $n,
                peers: vec![Box::new(move || each(by_hash::<$n>)), Box::new(move || each(by_sort::<$n>))],
                ways: $ways.iter().map(|&way| (way, chunk(way))).collect(),
            });
        };
    }
    sequences!(2, three);
    sequences!(3, three);
    // The bottom-up traversal does not support windows of five words.
    sequences!(5, two);
    pairs
}

/// Returns the input of the peers: the words of each document as ids in byte order.
fn token_arrays(subject: &Subject, vocabulary: &Vocabulary) -> Vec<Vec<u32>> {
    let ids: FxHashMap<&str, u32> = (0..vocabulary.len()).map(|row| (vocabulary.word(row), row as u32)).collect();
    let tokens = |doc| subject.words(doc).iter().map(|word| ids[word.as_str()]).collect();
    (0..subject.docs.len()).map(tokens).collect()
}

fn terms(docs: &[Vec<u32>]) -> usize {
    let (mut counts, mut rows) = (FxHashMap::<u32, u64>::default(), Vec::new());
    for (doc, tokens) in (0u64..).zip(docs) {
        tokens.iter().for_each(|&token| *counts.entry(token).or_default() += 1);
        let start = rows.len();
        rows.extend(counts.drain().map(|(row, count)| (doc, row, count)));
        rows[start..].sort_unstable();
    }
    black_box(rows).len()
}

fn windows<const N: usize>(docs: &[Vec<u32>]) -> impl Iterator<Item = [u32; N]> + '_ {
    docs.iter().flat_map(|doc| doc.windows(N)).map(|window| window.try_into().unwrap())
}

fn by_hash<const N: usize>(docs: &[Vec<u32>]) -> Rows<N> {
    let mut counts: FxHashMap<[u32; N], u64> = FxHashMap::default();
    windows(docs).for_each(|window| *counts.entry(window).or_default() += 1);
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_unstable();
    rows
}

fn by_sort<const N: usize>(docs: &[Vec<u32>]) -> Rows<N> {
    let mut all: Vec<[u32; N]> = windows(docs).collect();
    all.sort_unstable();
    all.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u64)).collect()
}

fn ranked<const N: usize>(docs: &[Vec<u32>], count: fn(&[Vec<u32>]) -> Rows<N>) -> usize {
    let mut rows = Vec::new();
    for (doc_id, doc) in (0u64..).zip(docs) {
        let counted = count(std::slice::from_ref(doc)).into_iter();
        rows.extend(counted.map(|(window, count)| (window, Reverse(count), doc_id)));
    }
    rows.sort_unstable();
    black_box(rows).len()
}

fn for_each_near(docs: &[Vec<u32>], mut f: impl FnMut(u64)) {
    for doc in docs {
        for (at, &word) in doc.iter().enumerate() {
            for &other in &doc[at + 1..doc.len().min(at + 5)] {
                f(u64::from(word.min(other)) << 32 | u64::from(word.max(other)));
            }
        }
    }
}

fn pairs_by_hash(docs: &[Vec<u32>]) -> usize {
    let mut counts: FxHashMap<u64, u64> = FxHashMap::default();
    for_each_near(docs, |pair| *counts.entry(pair).or_default() += 1);
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_unstable();
    black_box(rows).len()
}

fn pairs_by_sort(docs: &[Vec<u32>]) -> usize {
    let mut all: Vec<u64> = Vec::new();
    for_each_near(docs, |pair| all.push(pair));
    all.sort_unstable();
    let rows: Vec<_> = all.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    black_box(rows).len()
}
