//! Statistics of a corpus, of words that belong together, and of how evenly occurrences are spread.
//!
//! # Association
//!
//! A word occurs O times where E times are expected by chance:
//!
//! ```text
//!                     near the hits     elsewhere
//! the word            O                 word_count - O          E = near * word_count / total
//! other words         near - O          ...
//! ```
//!
//! | measure | formula | source |
//! | --- | --- | --- |
//! | logDice | 14 + log2(2 O / (hits + word_count)), at most 14 where O exceeds neither | Rychlý, "A lexicographer-friendly association score", RASLAN 2008 |
//! | MI | log2(O / E) | Church and Hanks, "Word association norms, mutual information, and lexicography", Computational Linguistics 16(1), 1990 |
//! | t | (O - E) / sqrt(O) | Church, Gale, Hanks, Hindle, "Using statistics in lexical analysis", 1991 |
//! | log-likelihood | 2 * sum of O ln(O / E) over the four cells, negative if O < E | Dunning, "Accurate methods for the statistics of surprise and coincidence", Computational Linguistics 19(1), 1993 |
//!
//! The expected counts are those of Evert, "Corpora and collocations", 2008, for windows: `near` is the number of words
//! in all windows. Windows may overlap, so O can exceed `word_count`; a cell is never below 0.
//!
//! [`keyness`] compares two corpora: the log-likelihood of the two counts of the word, as Rayson
//! and Garside, "Comparing corpora using frequency profiling", 2000, with the sign of the
//! difference; and the log ratio of Hardie, "Log ratio: an informal introduction", 2014: the binary
//! logarithm of the ratio of relative frequencies, where a count of 0 is taken as 0.5.
//!
//! # Dispersion
//!
//! A part `i` has `c_i` of the `f` occurrences, and `w_i` of the `W` words. There are `n` parts.
//!
//! | measure | formula | even | in one part | source |
//! | --- | --- | --- | --- | --- |
//! | range | number of parts with `c_i > 0` | n | 1 | |
//! | DP | half of the sum of abs(c_i / f - w_i / W) | 0 | 1 - w_i / W | Gries, "Dispersions and adjusted frequencies in corpora", International Journal of Corpus Linguistics 13(4), 2008 |
//! | normalized DP | DP / (1 - least w_i / W) | 0 | 1 at most | Lijffijt and Gries, the same journal 17(1), 2012 |
//! | Juilland's D | 1 - V / sqrt(n - 1), V the variation (standard deviation / mean) of c_i / w_i | 1 | 0 | Juilland, Brodin and Davidovitch, "Frequency dictionary of French words", 1970 |
//!
//! Only parts with an occurrence are read: the others are in the sums by their number and their
//! words. They are added in the order of their counts and words, so the order in which they come
//! has no influence on the last digits. O(n log n) for n parts with an occurrence.

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::segment::{Corpus, Dag, Segment};

/// Totals over all segments. Sums stop at 2^64 - 1, which only the sums of a hostile file can
/// reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CorpusStatistics {
    /// Number of segments.
    pub num_segments: u64,
    /// Number of documents. A document that is cut over segments counts once.
    pub num_docs: u64,
    /// Bytes of text.
    pub len_bytes: u64,
    /// Number of words of the text.
    pub num_words: u64,
    /// Number of dictionary entries that are words, summed over segments.
    pub num_distinct_words: u64,
    /// Number of dictionary entries that are separators, summed over segments.
    pub num_separators: u64,
    /// N: number of tokens of the text, without implied blanks.
    pub num_tokens: u64,
    /// G: number of elements on all right-hand sides.
    pub num_elements: u64,
    /// Number of rules, including the roots.
    pub num_rules: u64,
    /// Number of steps of the longest path from a root to a rule; 0 if there are only roots.
    pub depth: u32,
    /// Memory in bytes: dictionaries, grammars, paths, and data that was derived so far.
    pub memory_bytes: u64,
}

impl CorpusStatistics {
    /// Returns G / N, the number of grammar elements for each token. A repetitive text has a low
    /// value.
    pub fn reuse(&self) -> f64 {
        self.num_elements as f64 / self.num_tokens.max(1) as f64
    }
}

/// Computes the statistics of `corpus`. O(G), because depth and tokens are counted over the rules.
/// No derived data stays in memory.
pub fn corpus_statistics(corpus: &Corpus) -> CorpusStatistics {
    let mut total = CorpusStatistics { num_docs: corpus.num_docs(), ..Default::default() };
    for segment in corpus.segments() {
        let dag = &segment.dag;
        let grammar = dag.grammar();
        let dictionary = &segment.dictionary;
        let num_separators = dictionary.len() - dictionary.num_words();
        total.num_segments += 1;
        total.len_bytes = total.len_bytes.saturating_add(len_bytes(dag));
        total.num_words = total.num_words.saturating_add(dag.len_words(dag.num_terminals()));
        total.num_distinct_words += u64::from(dictionary.num_words());
        total.num_separators += u64::from(num_separators);
        total.num_tokens = total.num_tokens.saturating_add(num_tokens(dag));
        total.num_elements += grammar.symbols.len() as u64;
        total.num_rules += grammar.num_rules() as u64;
        total.depth = total.depth.max(depth(dag));
        total.memory_bytes += memory_bytes(segment);
    }
    total
}

fn memory_bytes(segment: &Segment) -> u64 {
    let parts = [
        segment.dictionary.memory_bytes(),
        segment.dag.memory_bytes(),
        segment.kept_bytes(),
        segment.paths.memory_bytes(),
    ];
    parts.iter().map(|&bytes| bytes as u64).sum()
}

/// Returns the bytes of all documents: those of the root, without the blanks that would be implied
/// at document borders.
fn len_bytes(dag: &Dag) -> u64 {
    let root = dag.grammar().root();
    let mut starts = dag.grammar().doc_offsets.clone();
    starts.dedup();
    let is_blank = |&&start: &&u32| {
        let start = start as usize;
        let end = root.len();
        (1..end).contains(&start) && dag.ends_with_word(root[start - 1]) && dag.begins_with_word(root[start])
    };
    dag.len_bytes(dag.num_terminals()) - starts.iter().filter(is_blank).count() as u64
}

/// Returns the number of tokens in the expansion of the root.
fn num_tokens(dag: &Dag) -> u64 {
    let grammar = dag.grammar();
    let mut lens = vec![0u64; grammar.num_rules()];
    for rule_id in grammar.rule_ids().rev() {
        let of = |&element: &u32| dag.rule_of(element).map_or(1, |child| lens[child.index()]);
        lens[rule_id.index()] = grammar.rule(rule_id).iter().map(of).fold(0, u64::saturating_add);
    }
    lens.first().copied().unwrap_or(0)
}

fn depth(dag: &Dag) -> u32 {
    let grammar = dag.grammar();
    let mut levels = vec![0u32; grammar.num_rules()];
    for rule_id in grammar.rule_ids() {
        let below = levels[rule_id.index()] + 1;
        for &element in grammar.rule(rule_id) {
            if let Some(child) = dag.rule_of(element) {
                levels[child.index()] = levels[child.index()].max(below);
            }
        }
    }
    levels.into_iter().max().unwrap_or(0)
}

/// Counts of a word near the hits of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Company {
    /// Number of times that the word occurs in windows.
    pub together: u64,
    /// Number of hits.
    pub hits: u64,
    /// Number of words in all windows.
    pub near: u64,
    /// Number of times that the word occurs in the corpus.
    pub word_count: u64,
    /// Number of words of the corpus.
    pub total: u64,
}

/// A measure of association.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Measure {
    /// logDice: comparable between corpora, and it does not favour rare words.
    #[default]
    LogDice,
    /// Mutual information: favours rare words.
    MutualInformation,
    /// t-score: favours frequent words.
    TScore,
    /// Log-likelihood ratio with sign.
    LogLikelihood,
    /// Mutual information with the cube of the count (Daille 1994): favours rare words less.
    CubedInformation,
    /// Dice's coefficient (Dice 1945): at most 1 where the count exceeds neither the hits nor the word's.
    Dice,
    /// Log ratio (Hardie 2014): how often the word's share doubles near the hits. An effect size: it does not grow with
    /// the corpus.
    LogRatio,
    /// Delta P (Gries 2013): how much larger the word's share is near the hits. An effect size from -1 to 1.
    DeltaP,
}

impl Measure {
    const ALL: [Self; 8] = [
        Self::LogDice,
        Self::MutualInformation,
        Self::TScore,
        Self::LogLikelihood,
        Self::CubedInformation,
        Self::Dice,
        Self::LogRatio,
        Self::DeltaP,
    ];

    /// Returns the name used in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LogDice => "logdice",
            Self::MutualInformation => "mi",
            Self::TScore => "t",
            Self::LogLikelihood => "ll",
            Self::CubedInformation => "mi3",
            Self::Dice => "dice",
            Self::LogRatio => "logratio",
            Self::DeltaP => "deltap",
        }
    }

    /// Returns the score of a word that occurs near a hit once or more. A higher score is a
    /// stronger association.
    ///
    /// ```
    /// use tadoc::analytics::{Company, Measure};
    ///
    /// // A word that is always beside the hits, and nowhere else.
    /// let always = Company { together: 8, hits: 8, near: 16, word_count: 8, total: 1024 };
    /// assert_eq!(Measure::LogDice.score(&always), 14.0);
    /// assert_eq!(Measure::MutualInformation.score(&always), 6.0);
    /// ```
    pub fn score(self, company: &Company) -> f64 {
        let observed = company.together as f64;
        let expected = company.near as f64 * company.word_count as f64 / (company.total.max(1)) as f64;
        let dice = 2.0 * observed / (company.hits as f64 + company.word_count as f64);
        match self {
            Self::LogDice => 14.0 + dice.log2(),
            Self::MutualInformation => (observed / expected).log2(),
            Self::TScore => (observed - expected) / observed.sqrt(),
            Self::LogLikelihood => signed_log_likelihood(company.divided()),
            Self::CubedInformation => (observed.powi(3) / expected).log2(),
            Self::Dice => dice,
            Self::LogRatio => {
                let [counts, sizes] = company.divided();
                (share(counts[0], sizes[0]) / share(counts[1], sizes[1])).log2()
            }
            Self::DeltaP => {
                let [counts, sizes] = company.divided();
                counts[0] / sizes[0].max(1.0) - counts[1] / sizes[1].max(1.0)
            }
        }
    }
}

impl Company {
    /// Returns the counts of the word, and the numbers of words: near the hits, and elsewhere.
    fn divided(&self) -> [[f64; 2]; 2] {
        let observed = self.together as f64;
        let elsewhere = self.total.saturating_sub(self.near) as f64;
        [[observed, (self.word_count as f64 - observed).max(0.0)], [self.near as f64, elsewhere]]
    }
}

/// Returns the share of `count` among `size` words, 1 at least. A count of 0 is taken as a half.
fn share(count: f64, size: f64) -> f64 {
    (if count == 0.0 { 0.5 } else { count }) / size.max(1.0)
}

impl FromStr for Measure {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let is_named = |measure: &Self| measure.as_str().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_named).ok_or_else(|| Error::InvalidArgument {
            name: "measure",
            got: name.to_owned(),
            allowed: format!("one of {}", Self::ALL.map(Self::as_str).join(", ")),
        })
    }
}

/// Returns the keyness of a word in a corpus against a reference: the signed log-likelihood, and
/// the log ratio. `counts` are those of the word, `sizes` the numbers of words, of the corpus and
/// of the reference. Both are above 0 if the word is relatively more frequent in the corpus. They
/// are 0 if either has no words.
pub fn keyness(counts: [u64; 2], sizes: [u64; 2]) -> (f64, f64) {
    let [count, reference] = counts.map(|count| count as f64);
    let [size, reference_size] = sizes.map(|size| size as f64);
    if size == 0.0 || reference_size == 0.0 {
        return (0.0, 0.0);
    }
    let both = (count + reference) / (size + reference_size);
    let ratio = cell(count, size * both) + cell(reference, reference_size * both);
    let score = 2.0 * ratio.max(0.0) * if count < size * both { -1.0 } else { 1.0 };
    (score, (share(count, size) / share(reference, reference_size)).log2())
}

/// Returns the log-likelihood ratio of a word that occurs `counts[i]` times among `sizes[i]` words.
/// It is negative if the word is relatively rarer in the first part.
fn signed_log_likelihood([counts, sizes]: [[f64; 2]; 2]) -> f64 {
    let all = counts[0] + counts[1];
    let total = sizes[0] + sizes[1];
    let both = |part: usize| {
        let expected = sizes[part] * all / total;
        let others = (sizes[part] - counts[part]).max(0.0);
        cell(counts[part], expected) + cell(others, (sizes[part] - expected).max(0.0))
    };
    let ratio = 2.0 * (both(0) + both(1)).max(0.0);
    if counts[0] * total < sizes[0] * all { -ratio } else { ratio }
}

/// Returns the part of a cell of a table in a log-likelihood.
fn cell(observed: f64, expected: f64) -> f64 {
    if observed > 0.0 && expected > 0.0 { observed * (observed / expected).ln() } else { 0.0 }
}

/// A part of a corpus with an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// Number of occurrences, 1 or more.
    pub count: u64,
    /// Number of words, 1 or more.
    pub words: u64,
}

/// All parts of a corpus, also those without an occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Whole {
    /// Number of parts that have words.
    pub parts: u64,
    /// Number of words.
    pub words: u64,
    /// Words of the shortest part.
    pub least_words: u64,
}

/// Measures of a query that is spread over parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dispersion {
    /// Deviation of proportions, 0 (even) to 1.
    pub dp: f64,
    /// The same, so that an occurrence of the shortest part alone gives 1. It is 0 for a single
    /// part.
    pub dp_norm: f64,
    /// Juilland's D, 1 (even) to 0. It is 1 for a single part.
    pub juilland_d: f64,
}

impl Dispersion {
    /// Returns the measures of the `parts` with an occurrence, or `None` if there are none. The
    /// order of `parts` has no influence.
    ///
    /// ```
    /// use tadoc::analytics::{Dispersion, Part, Whole};
    ///
    /// let whole = Whole { parts: 4, words: 400, least_words: 100 };
    /// let even = Dispersion::from_parts(&[Part { count: 2, words: 100 }; 4], &whole).unwrap();
    /// assert_eq!((even.dp, even.juilland_d), (0.0, 1.0));
    /// let once = Dispersion::from_parts(&[Part { count: 2, words: 100 }], &whole).unwrap();
    /// assert_eq!((once.dp, once.dp_norm, once.juilland_d), (0.75, 1.0, 0.0));
    /// ```
    pub fn from_parts(parts: &[Part], whole: &Whole) -> Option<Self> {
        let mut parts = parts.to_vec();
        parts.sort_unstable();
        let total: f64 = parts.iter().map(|part| part.count as f64).sum();
        let num_parts = whole.parts as f64;
        let words = whole.words as f64;
        if total == 0.0 || words == 0.0 {
            return None;
        }
        let share = |words: u64| words as f64 / whole.words as f64;
        let apart = |part: &Part| (part.count as f64 / total - share(part.words)).abs();
        let without = 1.0 - parts.iter().map(|part| share(part.words)).sum::<f64>();
        let dp = (parts.iter().map(apart).sum::<f64>() + without.max(0.0)) / 2.0;
        let rest = 1.0 - share(whole.least_words);
        let rates = parts.iter().map(|part| part.count as f64 / part.words.max(1) as f64);
        let mean = rates.clone().sum::<f64>() / num_parts;
        let square = |rate: f64| (rate - mean) * (rate - mean);
        let num_others = (num_parts - parts.len() as f64).max(0.0);
        let variance = (rates.map(square).sum::<f64>() + num_others * square(0.0)) / num_parts;
        Some(Self {
            dp,
            dp_norm: if rest > 0.0 { dp / rest } else { 0.0 },
            juilland_d: match whole.parts {
                ..=1 => 1.0,
                _ => (1.0 - variance.sqrt() / mean / (num_parts - 1.0).sqrt()).max(0.0),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn company(together: u64, word_count: u64) -> Company {
        Company { together, hits: 20, near: 200, word_count, total: 10_000 }
    }

    #[test]
    fn scores_are_those_of_the_formulas() {
        let company = company(8, 30);
        let expected = 200.0 * 30.0 / 10_000.0;
        let near = |measure: Measure, value: f64| {
            assert!((measure.score(&company) - value).abs() < 1e-9, "{measure:?}");
        };
        near(Measure::LogDice, 14.0 + (16.0f64 / 50.0).log2());
        near(Measure::MutualInformation, (8.0f64 / expected).log2());
        near(Measure::TScore, (8.0 - expected) / 8.0f64.sqrt());
        // The four cells, one by one.
        let cells: [(f64, f64); 4] = [
            (8.0, 0.6),
            (22.0, 9800.0 * 30.0 / 10_000.0),
            (192.0, 200.0 * 9970.0 / 10_000.0),
            (9778.0, 9800.0 * 9970.0 / 10_000.0),
        ];
        let sum: f64 = cells.iter().map(|(o, e)| o * (o / e).ln()).sum();
        near(Measure::LogLikelihood, 2.0 * sum);
    }

    #[test]
    fn names_are_read_back() {
        for measure in Measure::ALL {
            assert_eq!(measure.as_str().parse::<Measure>().unwrap(), measure);
        }
        let error = "jaccard".parse::<Measure>().unwrap_err().to_string();
        assert!(error.contains("logdice, mi"), "{error}");
    }

    #[test]
    fn what_is_as_frequent_in_both_is_not_key() {
        let (score, log_ratio) = keyness([10, 20], [1000, 2000]);
        assert!(score.abs() < 1e-9 && log_ratio.abs() < 1e-9);
        let (score, log_ratio) = keyness([40, 20], [1000, 2000]);
        assert!(score > 20.0 && (log_ratio - 2.0).abs() < 1e-9);
        assert!(keyness([0, 20], [1000, 2000]).0 < 0.0);
        assert_eq!(keyness([4, 0], [8, 0]), (0.0, 0.0));
    }

    proptest! {
        #[test]
        fn scores_are_numbers(counts in any::<[u32; 5]>()) {
            let [together, hits, near, word_count, total] = counts.map(u64::from);
            let company = Company { together: together.max(1), hits, near: near.max(1), word_count: word_count.max(1), total };
            for measure in Measure::ALL {
                prop_assert!(measure.score(&company).is_finite(), "{measure:?} {company:?}");
            }
            let (score, log_ratio) = keyness([together, hits], [near, total]);
            prop_assert!(score.is_finite() && log_ratio.is_finite());
        }

        /// The log-likelihood does not change if the parts change places, but for its sign.
        #[test]
        fn keyness_has_two_sides(a in 0u64..50, b in 0u64..50, rest in 50u64..500, other in 50u64..500) {
            let forth = keyness([a, b], [rest, other]);
            let back = keyness([b, a], [other, rest]);
            prop_assert!((forth.0.abs() - back.0.abs()).abs() < 1e-6);
            prop_assert!((forth.1 + back.1).abs() < 1e-9);
        }
    }

    /// Adds up all parts, one by one.
    fn plainly(parts: &[(u64, u64)]) -> (f64, f64, f64) {
        let total = parts.iter().map(|(count, _)| count).sum::<u64>() as f64;
        let words = parts.iter().map(|(_, words)| words).sum::<u64>() as f64;
        let least = parts.iter().map(|(_, words)| *words).min().unwrap() as f64;
        let apart = |&(count, part): &(u64, u64)| (count as f64 / total - part as f64 / words).abs();
        let dp = parts.iter().map(apart).sum::<f64>() / 2.0;
        let rates: Vec<f64> = parts.iter().map(|(c, w)| *c as f64 / *w as f64).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let variance = rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
        let d = 1.0 - variance.sqrt() / mean / (rates.len() as f64 - 1.0).sqrt();
        (dp, dp / (1.0 - least / words), d)
    }

    #[test]
    fn a_corpus_of_one_part_is_even() {
        let whole = Whole { parts: 1, words: 9, least_words: 9 };
        let dispersion = Dispersion::from_parts(&[Part { count: 3, words: 9 }], &whole).unwrap();
        assert_eq!(dispersion, Dispersion { dp: 0.0, dp_norm: 0.0, juilland_d: 1.0 });
        assert_eq!(Dispersion::from_parts(&[], &whole), None);
    }

    proptest! {
        #[test]
        fn parts_without_an_occurrence_count(
            parts in prop::collection::vec((0u64..9, 1u64..99), 2..20),
            (count, words) in (1u64..9, 1u64..99),
        ) {
            let parts = [parts, vec![(count, words)]].concat();
            let found = parts.iter().filter(|(count, _)| *count > 0);
            let found: Vec<Part> = found.map(|&(count, words)| Part { count, words }).collect();
            let whole = Whole {
                parts: parts.len() as u64,
                words: parts.iter().map(|(_, words)| words).sum(),
                least_words: parts.iter().map(|(_, words)| *words).min().unwrap(),
            };
            let dispersion = Dispersion::from_parts(&found, &whole).unwrap();
            let (dp, dp_norm, d) = plainly(&parts);
            prop_assert!((dispersion.dp - dp).abs() < 1e-9);
            prop_assert!((dispersion.dp_norm - dp_norm).abs() < 1e-9);
            prop_assert!((dispersion.juilland_d - d.max(0.0)).abs() < 1e-9);
            prop_assert!((0.0..=1.0).contains(&dispersion.dp));
            prop_assert!(dispersion.dp_norm < 1.0 + 1e-9);
        }

        #[test]
        fn the_order_of_parts_has_no_influence_on_any_digit(
            parts in prop::collection::vec((1u64..99, 1u64..999), 1..40),
            turn in 0usize..40,
        ) {
            let parts = parts.into_iter().map(|(count, words)| Part { count, words });
            let mut parts: Vec<Part> = parts.collect();
            let words = parts.iter().map(|part| part.words).sum::<u64>() + 1000;
            let whole = Whole { parts: parts.len() as u64 + 7, words, least_words: 1 };
            let bits = |parts: &[Part]| {
                let found = Dispersion::from_parts(parts, &whole).unwrap();
                [found.dp, found.dp_norm, found.juilland_d].map(f64::to_bits)
            };
            let expected = bits(&parts);
            let turn = turn % parts.len();
            parts.rotate_left(turn);
            prop_assert_eq!(bits(&parts), expected);
            parts.reverse();
            prop_assert_eq!(bits(&parts), expected);
        }

        #[test]
        fn measures_of_any_numbers_are_numbers(
            parts in prop::collection::vec(any::<(u64, u64)>(), 0..9),
            (num_parts, words, least_words) in any::<(u64, u64, u64)>(),
        ) {
            let parts: Vec<Part> = parts.iter().map(|&(count, words)| Part { count, words }).collect();
            if let Some(found) = Dispersion::from_parts(&parts, &Whole { parts: num_parts.max(1), words, least_words }) {
                prop_assert!(!found.dp.is_nan() && !found.dp_norm.is_nan());
            }
        }
    }
}
