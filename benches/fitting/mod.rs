//! Fit of the table of `src/tadoc/analytics/traversal.rs` to measured times.
//!
//! ```text
//! starts       the table in use, and least squares of relative errors
//! moved        change one constant after the other at random, keep it if the loss does not grow
//! best         the best of all starts, each moved with several seeds
//! held out     the same without the samples of one corpus, from least squares alone
//! ```
//!
//! Least squares choose badly if two ways are close, and one search ends in one of many local
//! minima. From least squares alone, with one seed, the choices were right in 50 of 56 pairs and
//! lost up to 53 %. The best of several searches was right in 55 pairs and lost 3.6 % at most (the
//! same times of seven corpora, windows of two and three words).

use std::collections::BTreeSet;

use tadoc::analytics::{NUM_STATISTICS, TRAVERSAL_COSTS, Traversal, TraversalTask, traversal_cost};

/// One way of one task on one corpus.
pub struct Sample {
    /// Number of the corpus.
    pub corpus: usize,
    /// Number of the pair of a task and a corpus.
    pub pair: usize,
    pub task: TraversalTask,
    pub way: Traversal,
    /// Flag for a way that may be chosen at all, whatever its cost.
    pub is_choosable: bool,
    pub statistics: [f64; NUM_STATISTICS],
    pub nanoseconds: f64,
}

/// Costs in nanoseconds per unit of each statistic, for each way of one task.
type Fit = Vec<(Traversal, [f64; NUM_STATISTICS])>;

/// Quality of the choices of a table.
#[derive(Debug, Default)]
pub struct Choices {
    num_right: usize,
    /// Regret of each pair: the time of the chosen way over that of the fastest way, less 1.
    regrets: Vec<f64>,
}

/// Number of changes that a search tries, and number of seeds for each start.
const NUM_MOVES: usize = 6000;
const NUM_SEEDS: u64 = 12;
/// First values of constants that are 0 and begin to move.
const LEAST_CONSTANTS: [f64; NUM_STATISTICS] = [5.0, 5.0, 500.0, 5.0, 5.0];
/// Number of rounds of coordinate descent.
const NUM_ROUNDS: usize = 5000;

/// Prints the table fitted to `samples` and the quality of its choices: for these samples, and for
/// each corpus with a table that was fitted to the other corpora.
pub fn print_fit(samples: &[Sample]) {
    println!("elements, words, documents, reached by one, reached by a group:");
    let corpora: BTreeSet<usize> = samples.iter().map(|sample| sample.corpus).collect();
    let mut seen = Choices::default();
    let mut unseen = Choices::default();
    let mut tasks: Vec<TraversalTask> = TRAVERSAL_COSTS.iter().map(|(task, ..)| *task).collect();
    tasks.dedup();
    for task in tasks {
        let of_task: Vec<&Sample> = samples.iter().filter(|s| s.task == task).collect();
        if of_task.is_empty() {
            continue;
        }
        let in_use = TRAVERSAL_COSTS.iter().filter(|(of, ..)| *of == task);
        let in_use: Fit = in_use.map(|(_, way, constants)| (*way, *constants)).collect();
        let fit = best(&[least_squares(task, &of_task), in_use], &of_task);
        seen.add(&fit, &of_task);
        for (way, constants) in fit {
            println!("    ({task:?}, {way:?}, {constants:.1?}),");
        }
        for &corpus in corpora.iter().filter(|_| corpora.len() > 1) {
            let (held, others): (Vec<&Sample>, Vec<&Sample>) =
                of_task.iter().copied().partition(|sample| sample.corpus == corpus);
            unseen.add(&best(&[least_squares(task, &others)], &others), &held);
        }
    }
    println!("with this table {seen}");
    if corpora.len() > 1 {
        println!("each corpus with a table that was fitted to the others {unseen}");
    }
}

impl Choices {
    /// Adds the choice of a pair. `regret` is the share by which the choice is slower than the
    /// fastest way.
    pub fn push(&mut self, regret: f64) {
        self.num_right += usize::from(regret <= 0.0);
        self.regrets.push(regret);
    }

    fn add(&mut self, fit: &Fit, samples: &[&Sample]) {
        samples.chunk_by(|a, b| a.pair == b.pair).for_each(|pair| self.push(regret(fit, pair)));
    }
}

impl std::fmt::Display for Choices {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { num_right, regrets } = self;
        let mean = regrets.iter().sum::<f64>() / regrets.len().max(1) as f64;
        let most = regrets.iter().copied().fold(0.0, f64::max);
        let mean = 100.0 * mean;
        let most = 100.0 * most;
        let num_pairs = regrets.len();
        write!(f, "right in {num_right} of {num_pairs} pairs, regret {mean:.2} % on average, {most:.1} % at most")
    }
}

/// Returns the best of several searches from each of `beginnings`.
fn best(beginnings: &[Fit], samples: &[&Sample]) -> Fit {
    let searches = beginnings.iter().flat_map(|begin| (1..=NUM_SEEDS).map(|seed| moved(begin.clone(), samples, seed)));
    searches.min_by(|a, b| loss(a, samples).total_cmp(&loss(b, samples))).unwrap()
}

/// Changes one constant after the other at random and keeps a change if [`loss`] does not grow.
fn moved(mut fit: Fit, samples: &[&Sample], seed: u64) -> Fit {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut below = |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    let mut least = loss(&fit, samples);
    for _ in 0..NUM_MOVES {
        let way = below(fit.len());
        let column = below(NUM_STATISTICS);
        let before = fit[way].1[column];
        let factor = ((below(2000) as f64 - 1000.0) / 1000.0).exp();
        let begin = if before > 0.0 { before } else { LEAST_CONSTANTS[column] };
        // Rounds the constant as it is printed.
        let after = (begin * factor * 10.0).round() / 10.0;
        fit[way].1[column] = if below(10) == 0 { 0.0 } else { after };
        match loss(&fit, samples) {
            after if after <= least => least = after,
            _ => fit[way].1[column] = before,
        }
    }
    fit
}

/// Returns the mean loss over all pairs. The loss of a pair is the regret of the choice (more
/// heavily above 4 %), plus a little for a wrong choice, for a choice with a narrow margin, and for
/// costs that differ from the times.
fn loss(fit: &Fit, samples: &[&Sample]) -> f64 {
    let mut sum = 0.0;
    let mut num_pairs = 0.0;
    for pair in samples.chunk_by(|a, b| a.pair == b.pair) {
        let fastest = fastest(pair);
        let regret = regret(fit, pair);
        let error = |sample: &&&Sample| (cost(fit, sample) / sample.nanoseconds).max(1e-6).ln();
        let choosable = || pair.iter().filter(|sample| sample.is_choosable);
        sum += 100.0 * regret + 300.0 * (regret - 0.04).max(0.0);
        sum += choosable().map(|sample| error(&sample).powi(2)).sum::<f64>();
        sum += if regret > 0.0 { 0.3 * pair.len() as f64 } else { 0.0 };
        let others = choosable().filter(|sample| sample.nanoseconds > 1.05 * fastest.nanoseconds);
        let least = others.map(|sample| cost(fit, sample)).fold(f64::INFINITY, f64::min);
        if fastest.is_choosable && least.is_finite() {
            sum += 8.0 * (1.05 * cost(fit, fastest) / least.max(1e-6)).max(1.0).ln();
        }
        num_pairs += 1.0;
    }
    sum / num_pairs
}

/// Returns the extra time of the cheapest way over the fastest way, as a share of the latter.
fn regret(fit: &Fit, pair: &[&Sample]) -> f64 {
    let choosable = pair.iter().filter(|sample| sample.is_choosable);
    let chosen = choosable.min_by(|a, b| cost(fit, a).total_cmp(&cost(fit, b))).unwrap();
    chosen.nanoseconds / fastest(pair).nanoseconds - 1.0
}

fn fastest<'a>(pair: &[&'a Sample]) -> &'a Sample {
    pair.iter().min_by(|a, b| a.nanoseconds.total_cmp(&b.nanoseconds)).unwrap()
}

fn cost(fit: &Fit, sample: &Sample) -> f64 {
    let (_, constants) = fit.iter().find(|(way, _)| *way == sample.way).unwrap();
    traversal_cost(constants, &sample.statistics)
}

/// Returns constants of at least 0 for the statistics that each way of `task` depends on.
fn least_squares(task: TraversalTask, samples: &[&Sample]) -> Fit {
    use Traversal::{BottomUp, TokenScan, TopDown};
    use TraversalTask::{DocumentSequences, InvertedIndex, TermVector};
    let ways = TRAVERSAL_COSTS.iter().filter(|(of, ..)| *of == task).map(|(_, way, _)| *way);
    let fit = |way| {
        let of_way: Vec<&Sample> = samples.iter().copied().filter(|s| s.way == way).collect();
        let columns: &[usize] = match (task, way) {
            (DocumentSequences, TopDown) => &[0, 2, 3],
            (DocumentSequences, BottomUp) => &[0, 2, 4],
            (InvertedIndex | TermVector, TopDown) => &[2, 4],
            (_, BottomUp) => &[0, 2, 3],
            (_, TokenScan) => &[0, 1, 2],
            _ => &[0, 2],
        };
        (way, descended(&of_way, columns))
    };
    ways.map(fit).collect()
}

/// Fits constants by coordinate descent over relative errors.
fn descended(samples: &[&Sample], columns: &[usize]) -> [f64; NUM_STATISTICS] {
    let mut constants = [0.0; NUM_STATISTICS];
    let share = |sample: &Sample, column: usize| sample.statistics[column] / sample.nanoseconds;
    for _ in 0..NUM_ROUNDS {
        for &column in columns {
            let mut above = 0.0;
            let mut below = 0.0;
            for sample in samples {
                let others = columns.iter().filter(|&&other| other != column);
                let rest: f64 = others.map(|&c| constants[c] * share(sample, c)).sum();
                above += share(sample, column) * (1.0 - rest);
                below += share(sample, column).powi(2);
            }
            constants[column] = if below > 0.0 { (above / below).max(0.0) } else { 0.0 };
        }
    }
    constants
}
