//! Numbers of weights, so that a window carries a few bits instead of 64.
//!
//! d distinct weights need d (d - 1) / 2 words of text, so there are few: 11 bits for a million
//! words.

use super::edges::Edges;

/// Limit below which weights are numbered by a table.
const TABLE_LEN: usize = 1 << 12;

/// Distinct weights, ascending.
#[derive(Debug, Clone)]
pub(in crate::analytics) struct Weights {
    weights: Vec<u64>,
    /// Numbers of the small weights, by weight.
    table: Vec<u32>,
}

impl Weights {
    /// Creates the numbers of weight 1 only.
    pub fn one() -> Self {
        Self { weights: vec![1], table: vec![0; 2] }
    }

    /// Numbers the weight 1 and the weights of all rules. O(rules).
    pub fn from_rules(edges: &[Edges]) -> Self {
        let mut is_used = vec![false; TABLE_LEN];
        is_used[1] = true;
        let mut large = Vec::new();
        for edges in edges {
            let first_rule = edges.dag().num_terminals() as usize;
            for &weight in &edges.weights()[first_rule..] {
                match is_used.get_mut(weight as usize) {
                    Some(is_used) => *is_used = true,
                    None => large.push(weight),
                }
            }
        }
        large.sort_unstable();
        large.dedup();
        let mut weights = Vec::new();
        let mut table = vec![0; TABLE_LEN];
        for weight in (0..TABLE_LEN).filter(|&weight| is_used[weight]) {
            table[weight] = weights.len() as u32;
            weights.push(weight as u64);
        }
        weights.append(&mut large);
        Self { weights, table }
    }
}

/// Weights with numbers.
pub(in crate::analytics) trait NumberedWeights {
    /// Returns the number of bits of a number, at most 32.
    fn bits(&self) -> u32;
    /// Returns the number of `weight`.
    fn number(&mut self, weight: u64) -> u32;
    /// Returns the weight of `number`.
    fn weight(&self, number: u32) -> u64;
}

impl NumberedWeights for &Weights {
    #[inline]
    fn bits(&self) -> u32 {
        usize::BITS - (self.weights.len() - 1).leading_zeros()
    }

    #[inline]
    fn number(&mut self, weight: u64) -> u32 {
        match self.table.get(weight as usize) {
            Some(&number) => number,
            None => self.weights.partition_point(|&other| other < weight) as u32,
        }
    }

    #[inline]
    fn weight(&self, number: u32) -> u64 {
        self.weights[number as usize]
    }
}

/// Weights in order of arrival. Equal weights may have several numbers.
#[derive(Debug)]
pub(in crate::analytics) struct ListedWeights {
    weights: Vec<u64>,
    bits: u32,
}

impl ListedWeights {
    /// Creates room for the weights that a document may have: one for each rule, each part of the
    /// document and all borders.
    pub fn from_rules(edges: &[Edges]) -> Self {
        let num_rules = edges.iter().map(|edges| edges.dag().grammar().num_rules() + 1);
        let bits = usize::BITS - num_rules.sum::<usize>().leading_zeros();
        Self { weights: Vec::new(), bits: bits.min(u32::BITS) }
    }

    /// Removes all weights and keeps the memory.
    pub fn clear(&mut self) {
        self.weights.clear();
    }
}

impl NumberedWeights for ListedWeights {
    #[inline]
    fn bits(&self) -> u32 {
        self.bits
    }

    #[inline]
    fn number(&mut self, weight: u64) -> u32 {
        self.weights.push(weight);
        (self.weights.len() - 1) as u32
    }

    #[inline]
    fn weight(&self, number: u32) -> u64 {
        self.weights[number as usize]
    }
}
