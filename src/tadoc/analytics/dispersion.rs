//! Measures of how evenly the occurrences of a query are spread over the parts of a corpus.
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
//! Only parts with an occurrence are read: the others are in the sums by their number and their words.
//! They are added in the order of their counts and words, so the order in which they come has no influence
//! on the last digits. O(n log n) for n parts with an occurrence.

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
    /// The same, so that an occurrence of the shortest part alone gives 1. It is 0 for a single part.
    pub dp_norm: f64,
    /// Juilland's D, 1 (even) to 0. It is 1 for a single part.
    pub juilland_d: f64,
}

impl Dispersion {
    /// Returns the measures of the `parts` with an occurrence, or `None` if there are none. The order of
    /// `parts` has no influence.
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
        let (num_parts, words) = (whole.parts as f64, whole.words as f64);
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

    /// Adds up all parts, one by one.
    fn plainly(parts: &[(u64, u64)]) -> (f64, f64, f64) {
        let total = parts.iter().map(|(count, _)| count).sum::<u64>() as f64;
        let words = parts.iter().map(|(_, words)| words).sum::<u64>() as f64;
        let least = parts.iter().map(|(_, words)| *words).min().unwrap() as f64;
        let apart =
            |&(count, part): &(u64, u64)| (count as f64 / total - part as f64 / words).abs();
        let dp = parts.iter().map(apart).sum::<f64>() / 2.0;
        let rates: Vec<f64> = parts.iter().map(|(c, w)| *c as f64 / *w as f64).collect();
        let mean = rates.iter().sum::<f64>() / rates.len() as f64;
        let variance =
            rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / rates.len() as f64;
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
