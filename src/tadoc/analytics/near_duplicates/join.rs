//! Pairs of similar sets, by an index of their prefixes.
//!
//! ```text
//! index    rank of an n-gram ─▶ sets that have it in their prefix, ascending
//! ```
//!
//! Sets that equal an earlier one are not in the index. See the description of the module above.

use super::SimilarPair;
use super::sets::Sets;

/// Slack of products of sizes and the threshold. It exceeds the error of rounding, and makes filters a
/// little weaker at most.
const SLACK: f64 = 1e-6;

/// Sets by the n-grams of their prefixes.
#[derive(Debug)]
pub(super) struct Index {
    /// Ends of the lists of each rank in `sets`.
    ends: Vec<usize>,
    sets: Vec<u32>,
    /// Sets that equal an earlier one: the first, and this one, ascending.
    equal: Vec<(u32, u32)>,
}

impl Index {
    /// Builds the index of `sets` for pairs of a similarity of `threshold` or more.
    pub fn new(sets: &Sets, threshold: f64) -> Self {
        let mut starts = vec![0; sets.num_ranks() + 1];
        let firsts = || (0..sets.len()).filter(|&set| sets.first_equal_to(set) == set);
        for set in firsts() {
            for &rank in prefix(sets, set, threshold) {
                starts[rank as usize + 1] += 1;
            }
        }
        for rank in 1..starts.len() {
            starts[rank] += starts[rank - 1];
        }
        let mut listed = vec![0; starts[starts.len() - 1]];
        for set in firsts() {
            for &rank in prefix(sets, set, threshold) {
                let at = &mut starts[rank as usize];
                listed[*at] = set as u32;
                *at += 1;
            }
        }
        // Each start has moved to the end of its list.
        starts.pop();
        let later = (0..sets.len()).filter(|&set| sets.first_equal_to(set) != set);
        let mut equal: Vec<(u32, u32)> =
            later.map(|set| (sets.first_equal_to(set) as u32, set as u32)).collect();
        equal.sort_unstable();
        Self { ends: starts, sets: listed, equal }
    }

    /// Appends the pairs of `set` with later ones, in order. A set that equals an earlier one has none.
    pub fn find_pairs(
        &self,
        sets: &Sets,
        set: usize,
        threshold: f64,
        pairs: &mut Vec<SimilarPair>,
    ) {
        if sets.first_equal_to(set) != set {
            return;
        }
        let first = self.equal.partition_point(|&(first, _)| (first as usize) < set);
        let equal = self.equal[first..].iter().take_while(|&&(first, _)| first as usize == set);
        let mut found: Vec<(u32, f64)> = equal.map(|&(_, other)| (other, 1.0)).collect();
        for other in self.candidates(sets, set, threshold) {
            found.extend(similarity(sets, set, other as usize, threshold).map(|s| (other, s)));
        }
        found.sort_unstable_by_key(|&(other, _)| other);
        pairs.extend(found.into_iter().map(|(other, similarity)| SimilarPair {
            doc_id_a: sets.doc_id(set),
            doc_id_b: sets.doc_id(other as usize),
            similarity,
        }));
    }

    /// Returns the later sets of a similar size whose prefix meets that of `set`.
    fn candidates(&self, sets: &Sets, set: usize, threshold: f64) -> Vec<u32> {
        let size = sets.size(set) as f64;
        let mut candidates: Vec<u32> = Vec::new();
        for &rank in prefix(sets, set, threshold) {
            let list = self.list(rank as usize);
            let later = &list[list.partition_point(|&other| other as usize <= set)..];
            candidates.extend(later.iter().filter(|&&other| {
                let other = sets.size(other as usize) as f64;
                size.min(other) >= threshold * size.max(other) - SLACK
            }));
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }

    fn list(&self, rank: usize) -> &[u32] {
        let start = rank.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.sets[start..self.ends[rank]]
    }

    /// Returns the bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        8 * self.ends.len() + 4 * self.sets.len() + 8 * self.equal.len()
    }
}

/// Returns the shared n-grams in the prefix of `set`. Its n-grams that no other document has come
/// before them.
fn prefix(sets: &Sets, set: usize, threshold: f64) -> &[u32] {
    let (size, shared) = (sets.size(set), sets.shared(set));
    let least_common = (threshold * size as f64 - SLACK).ceil().max(1.0) as usize;
    let len = (size + 1).saturating_sub(least_common).saturating_sub(sets.num_alone(set));
    &shared[..len.min(shared.len())]
}

/// Returns the similarity of two sets, if it is `threshold` or more.
fn similarity(sets: &Sets, a: usize, b: usize, threshold: f64) -> Option<f64> {
    let total = sets.size(a) + sets.size(b);
    // Common n-grams c have c / (total - c) >= threshold.
    let least_common = (threshold / (1.0 + threshold) * total as f64 - SLACK).ceil() as usize;
    let common = num_common(sets.shared(a), sets.shared(b), least_common)?;
    let similarity = common as f64 / (total - common) as f64;
    (similarity >= threshold).then_some(similarity)
}

/// Returns the number of common elements of two ascending lists, if it is `least` or more.
fn num_common(mut a: &[u32], mut b: &[u32], least: usize) -> Option<usize> {
    let mut common = 0;
    while let ([first_a, rest_a @ ..], [first_b, rest_b @ ..]) = (a, b) {
        if common + a.len().min(b.len()) < least {
            return None;
        }
        common += usize::from(first_a == first_b);
        (a, b) = match first_a.cmp(first_b) {
            std::cmp::Ordering::Less => (rest_a, b),
            std::cmp::Ordering::Greater => (a, rest_b),
            std::cmp::Ordering::Equal => (rest_a, rest_b),
        };
    }
    (common >= least).then_some(common)
}
