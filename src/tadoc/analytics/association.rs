//! Measures of how strongly words belong together, or belong to a corpus.
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
//! The expected counts are those of Evert, "Corpora and collocations", 2008, for windows: `near` is the
//! number of words in all windows. Windows may overlap, so O can exceed `word_count`; a cell is never
//! below 0.
//!
//! [`keyness`] compares two corpora: the log-likelihood of the two counts of the word, as Rayson and
//! Garside, "Comparing corpora using frequency profiling", 2000, with the sign of the difference; and the log ratio of Hardie, "Log ratio:
//! an informal introduction", 2014: the binary logarithm of the ratio of relative frequencies, where a
//! count of 0 is taken as 0.5.

use std::str::FromStr;

use crate::error::{Error, Result};

/// Counts of a word near the hits of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Company {
    /// How often the word occurs in windows.
    pub together: u64,
    /// Number of hits.
    pub hits: u64,
    /// Number of words in all windows.
    pub near: u64,
    /// How often the word occurs in the corpus.
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
}

impl Measure {
    const ALL: [Self; 4] =
        [Self::LogDice, Self::MutualInformation, Self::TScore, Self::LogLikelihood];

    /// Returns the name used in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LogDice => "logdice",
            Self::MutualInformation => "mi",
            Self::TScore => "t",
            Self::LogLikelihood => "ll",
        }
    }

    /// Returns the score of a word that occurs near a hit once or more. A higher score is a stronger
    /// association.
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
        let expected =
            company.near as f64 * company.word_count as f64 / (company.total.max(1)) as f64;
        match self {
            Self::LogDice => {
                14.0 + (2.0 * observed / (company.hits as f64 + company.word_count as f64)).log2()
            }
            Self::MutualInformation => (observed / expected).log2(),
            Self::TScore => (observed - expected) / observed.sqrt(),
            Self::LogLikelihood => {
                let elsewhere = company.total.saturating_sub(company.near) as f64;
                signed_log_likelihood([
                    [observed, (company.word_count as f64 - observed).max(0.0)],
                    [company.near as f64, elsewhere],
                ])
            }
        }
    }
}

impl FromStr for Measure {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let is_named = |measure: &Self| measure.as_str().eq_ignore_ascii_case(name);
        Self::ALL.into_iter().find(is_named).ok_or_else(|| Error::InvalidArgument {
            name: "measure",
            got: name.to_owned(),
            allowed: "one of logdice, mi, t, ll".to_owned(),
        })
    }
}

/// Returns the keyness of a word in a corpus against a reference: the signed log-likelihood, and the
/// log ratio. `counts` are those of the word, `sizes` the numbers of words, of the corpus and of the
/// reference. Both are above 0 if the word is relatively more frequent in the corpus. They are 0 if
/// either has no words.
pub fn keyness(counts: [u64; 2], sizes: [u64; 2]) -> (f64, f64) {
    let [count, reference] = counts.map(|count| count as f64);
    let [size, reference_size] = sizes.map(|size| size as f64);
    if size == 0.0 || reference_size == 0.0 {
        return (0.0, 0.0);
    }
    let share = (count + reference) / (size + reference_size);
    let ratio = cell(count, size * share) + cell(reference, reference_size * share);
    let score = 2.0 * ratio.max(0.0) * if count < size * share { -1.0 } else { 1.0 };
    let rate = |count: f64, size: f64| if count == 0.0 { 0.5 / size } else { count / size };
    (score, (rate(count, size) / rate(reference, reference_size)).log2())
}

/// Returns the log-likelihood ratio of a word that occurs `counts[i]` times among `sizes[i]` words.
/// It is negative if the word is relatively rarer in the first part.
fn signed_log_likelihood([counts, sizes]: [[f64; 2]; 2]) -> f64 {
    let (all, total) = (counts[0] + counts[1], sizes[0] + sizes[1]);
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
        let error = "dice".parse::<Measure>().unwrap_err().to_string();
        assert!(error.contains("logdice, mi, t, ll"), "{error}");
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
            let (forth, back) = (keyness([a, b], [rest, other]), keyness([b, a], [other, rest]));
            prop_assert!((forth.0.abs() - back.0.abs()).abs() < 1e-6);
            prop_assert!((forth.1 + back.1).abs() < 1e-9);
        }
    }
}
