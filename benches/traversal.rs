//! The ways through the grammar side by side: how long each takes, whether the fastest is chosen, and
//! how all compare with peers that read arrays of word ids and know no grammar.
//!
//! `TADOC_CORPORA=/path cargo bench --bench traversal [TASK ...]` prints for each task and corpus
//! milliseconds of processor time of one thread (the least of several interleaved runs), the way that
//! the cost model chooses and its regret (how much longer it takes than the fastest), the best peer (hash
//! tables or sorting) and how many times faster the chosen way is. At the end stands the table of
//! `src/analytics/costs.rs` fitted anew: non-negative least squares of relative errors, moved to where the
//! choices lose least.
//!
//! Processor time is the kernel's (`/proc/thread-self/schedstat`), so this bench needs Linux.

#![allow(clippy::unwrap_used, missing_docs)]

mod corpora;

use std::cmp::Reverse;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use corpora::{Subject, subjects};
use datafusion_tadoc::analytics::{
    Cooccurrences, DocSelection, DocumentSequences, InvertedIndex, NUM_STATISTICS,
    RankedInvertedIndex, SegmentShape, SequenceCounts, TermVectors, Traversal, TraversalTask,
    Vocabulary, choose_task_traversal, traversal_costs, traversal_statistics,
};
use rustc_hash::FxHashMap;

/// More than any task here needs.
const AMPLE: u64 = 64 << 30;
/// Runs of each way at most, and after how many seconds one is enough.
const MAX_ROUNDS: usize = 7;
const SECONDS: f64 = 3.0;

/// What is run; the result is the number of rows.
type Run<'a> = Box<dyn Fn() -> usize + Send + Sync + 'a>;

/// Windows and how often each occurs, ascending.
type Rows<const N: usize> = Vec<([u32; N], u64)>;

/// A task on a corpus: its peers and ways.
struct Pair<'a> {
    name: String,
    task: TraversalTask,
    n: usize,
    peers: Vec<Run<'a>>,
    ways: Vec<(Traversal, Run<'a>)>,
}

/// One measured way.
struct Sample {
    /// Which task on which corpus.
    pair: usize,
    task: TraversalTask,
    way: Traversal,
    statistics: [f64; NUM_STATISTICS],
    nanoseconds: f64,
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let (mut samples, mut num_right, mut regrets) = (Vec::new(), 0, Vec::new());
    for subject in subjects() {
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
            let (mut least, mut of_chosen, mut shown) = (f64::MAX, 0.0, String::new());
            for ((way, _), &seconds) in pair.ways.iter().zip(ways) {
                least = least.min(seconds);
                let statistics = traversal_statistics(pair.task, shape, pair.n);
                let nanoseconds = seconds * 1e9;
                let (task, way) = (pair.task, *way);
                samples.push(Sample { pair: regrets.len(), task, way, statistics, nanoseconds });
                shown += &format!(" {way} {:.2}", seconds * 1e3);
                if way == chosen {
                    of_chosen = seconds;
                }
            }
            let regret = of_chosen / least - 1.0;
            num_right += usize::from(regret <= 0.0);
            regrets.push(regret);
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
    let mean = regrets.iter().sum::<f64>() / regrets.len().max(1) as f64;
    let most = regrets.iter().copied().fold(0.0, f64::max);
    println!(
        "right in {num_right} of {} pairs, regret {:.1} % on average, {:.1} % at most",
        regrets.len(),
        mean * 100.0,
        most * 100.0
    );
    print_fit(&samples);
}

/// Seconds of each peer, then of each way.
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

/// Processor time of this thread. The kernel brings it up to date when the thread yields.
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
            let run: Run<'a> = Box::new(move || run(words(), way));
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
            ways: of(&two, |words, way| {
                Cooccurrences::with_vocabulary(words, 5, 1, way, AMPLE).unwrap().len()
            }),
        },
        Pair {
            name: "ranked/3".into(),
            task: TraversalTask::DocumentSequences,
            n: 3,
            peers: vec![
                Box::new(|| ranked(docs, by_hash::<3>)),
                Box::new(|| ranked(docs, by_sort::<3>)),
            ],
            ways: of(&three, |words, way| {
                let index = RankedInvertedIndex::with_vocabulary(words, 3, way, AMPLE);
                index.unwrap().doc_ids().len()
            }),
        },
    ];
    macro_rules! sequences {
        ($n:literal) => {
            let all = all.clone();
            pairs.push(Pair {
                name: concat!("sequence_count/", $n).into(),
                task: TraversalTask::SequenceCount,
                n: $n,
                peers: vec![
                    Box::new(|| black_box(by_hash::<$n>(docs)).len()),
                    Box::new(|| black_box(by_sort::<$n>(docs)).len()),
                ],
                ways: of(&two, |words, way| {
                    SequenceCounts::with_vocabulary(words, $n, way, AMPLE).unwrap().len()
                }),
            });
            let each = |count: fn(&[Vec<u32>]) -> Rows<$n>| {
                docs.iter().map(|doc| black_box(count(std::slice::from_ref(doc))).len()).sum()
            };
            let chunk = |way| -> Run<'a> {
                let all = all.clone();
                Box::new(move || {
                    let sequences = DocumentSequences::new(words(), $n, way, AMPLE).unwrap();
                    sequences.chunk(&all).unwrap().counts().len()
                })
            };
            pairs.push(Pair {
                name: concat!("by_document/", $n).into(),
                task: TraversalTask::DocumentSequences,
                n: $n,
                peers: vec![
                    Box::new(move || each(by_hash::<$n>)),
                    Box::new(move || each(by_sort::<$n>)),
                ],
                ways: three.iter().map(|&way| (way, chunk(way))).collect(),
            });
        };
    }
    sequences!(2);
    sequences!(3);
    pairs
}

/// The peers' input: words of each document as ids in byte order.
fn token_arrays(subject: &Subject, vocabulary: &Vocabulary) -> Vec<Vec<u32>> {
    let ids: FxHashMap<&str, u32> =
        (0..vocabulary.len()).map(|row| (vocabulary.word(row), row as u32)).collect();
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

/// Rounds of the search for better constants.
const NUM_MOVES: usize = 6000;
/// Where a constant that is 0 begins to move.
const LEAST_CONSTANTS: [f64; NUM_STATISTICS] = [5.0, 5.0, 500.0, 5.0, 5.0];

/// Constants of the ways of one task.
type Fit = Vec<(Traversal, [f64; NUM_STATISTICS])>;

/// The table of constants: least squares of relative errors, then moved.
fn print_fit(samples: &[Sample]) {
    use Traversal::{BottomUp, TokenScan, TopDown};
    use TraversalTask::{
        Cooccurrence, DocumentSequences, InvertedIndex, SequenceCount, TermVector,
    };
    println!("elements, words, documents, reached by one, reached by a group:");
    for task in [InvertedIndex, TermVector, SequenceCount, DocumentSequences, Cooccurrence] {
        let any = SegmentShape { num_docs: 1, num_words: 1, num_elements: 1, len_bytes: 1 };
        let of_task: Vec<&Sample> = samples.iter().filter(|s| s.task == task).collect();
        let mut fits = Fit::new();
        for (way, _) in traversal_costs(task, any, 2) {
            let of_way: Vec<&Sample> = of_task.iter().copied().filter(|s| s.way == way).collect();
            let columns: &[usize] = match (task, way) {
                (DocumentSequences, TopDown) => &[0, 2, 3],
                (DocumentSequences, BottomUp) => &[0, 2, 4],
                (InvertedIndex | TermVector, TopDown) => &[2, 4],
                (_, BottomUp) => &[0, 2, 3],
                (_, TokenScan) => &[0, 1, 2],
                _ => &[0, 2],
            };
            if !of_way.is_empty() {
                fits.push((way, fit(&of_way, columns)));
            }
        }
        for (way, constants) in moved(fits, &of_task) {
            println!("    ({task:?}, {way:?}, {constants:.1?}),");
        }
    }
}

/// One constant after the other is changed at random, and stays so where [`loss`] is not more.
fn moved(mut fits: Fit, samples: &[&Sample]) -> Fit {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    let mut least = loss(&fits, samples);
    for _ in 0..if fits.is_empty() { 0 } else { NUM_MOVES } {
        let (way, column) = (below(fits.len()), below(NUM_STATISTICS));
        let before = fits[way].1[column];
        let factor = ((below(2000) as f64 - 1000.0) / 1000.0).exp();
        let begin = if before > 0.0 { before } else { LEAST_CONSTANTS[column] };
        fits[way].1[column] = if below(10) == 0 { 0.0 } else { begin * factor };
        match loss(&fits, samples) {
            after if after <= least => least = after,
            _ => fits[way].1[column] = before,
        }
    }
    fits
}

/// Percents that the choices lose on average, a bit for each wrong one, and a bit for costs that are not
/// the times.
fn loss(fits: &Fit, samples: &[&Sample]) -> f64 {
    let cost = |sample: &Sample| {
        let constants = fits.iter().find(|(way, _)| *way == sample.way).unwrap().1;
        constants.iter().zip(sample.statistics).map(|(ns, statistic)| ns * statistic).sum::<f64>()
    };
    let (mut sum, mut num_pairs) = (0.0, 0.0);
    for pair in samples.chunk_by(|a, b| a.pair == b.pair) {
        let least = pair.iter().map(|sample| sample.nanoseconds).fold(f64::MAX, f64::min);
        let chosen = pair.iter().min_by(|a, b| cost(a).total_cmp(&cost(b))).unwrap();
        let regret = chosen.nanoseconds / least - 1.0;
        let error = |sample: &&Sample| (cost(sample) / sample.nanoseconds).max(1e-6).ln().powi(2);
        sum += 100.0 * regret + 0.2 * pair.iter().map(error).sum::<f64>();
        sum += if regret > 0.0 { 0.3 * samples.len() as f64 / pair.len() as f64 } else { 0.0 };
        num_pairs += 1.0;
    }
    sum / num_pairs
}

/// Coordinate descent, no coordinate below 0.
fn fit(samples: &[&Sample], columns: &[usize]) -> [f64; NUM_STATISTICS] {
    let mut constants = [0.0; NUM_STATISTICS];
    let share = |sample: &Sample, column: usize| sample.statistics[column] / sample.nanoseconds;
    for _ in 0..20_000 {
        for &column in columns {
            let (mut above, mut below) = (0.0, 0.0);
            for sample in samples {
                let others = columns.iter().filter(|&&other| other != column);
                let rest: f64 = others.map(|&c| constants[c] * share(sample, c)).sum();
                above += share(sample, column) * (1.0 - rest);
                below += share(sample, column).powi(2);
            }
            constants[column] = (above / below).max(0.0);
        }
    }
    constants
}
