//! First and last word of each rule's expansion.
//!
//! Phrase search compares them before it descends into a rule. This excludes almost every
//! candidate. They are built by one backward sweep, children before parents, in O(G). They need 8
//! bytes for each rule.

use crate::segment::Dag;

/// Mark of an expansion without words.
const NO_WORD: u32 = u32::MAX;

/// First and last word of each rule.
#[derive(Debug)]
pub struct EdgeWords {
    first: Vec<u32>,
    last: Vec<u32>,
}

impl EdgeWords {
    /// Finds the first and last word of each rule of `dag`, O(G).
    pub fn new(dag: &Dag) -> Self {
        let num_rules = dag.grammar.num_rules();
        let mut edges = Self { first: vec![NO_WORD; num_rules], last: vec![NO_WORD; num_rules] };
        for rule_id in dag.grammar.rule_ids().rev() {
            let rule = dag.grammar.rule(rule_id);
            let has_word = |&&element: &&u32| dag.len_words(element) > 0;
            if let Some(&element) = rule.iter().find(has_word) {
                edges.first[rule_id.index()] = edges.first_of(dag, element);
            }
            if let Some(&element) = rule.iter().rfind(has_word) {
                edges.last[rule_id.index()] = edges.last_of(dag, element);
            }
        }
        edges
    }

    /// Returns the first word of `element`. If its expansion has no word, the result is not a word
    /// id.
    #[inline]
    pub fn first_of(&self, dag: &Dag, element: u32) -> u32 {
        dag.rule_of(element).map_or(element, |rule_id| self.first[rule_id.index()])
    }

    /// Returns the last word of `element`. If its expansion has no word, the result is not a word
    /// id.
    #[inline]
    pub fn last_of(&self, dag: &Dag, element: u32) -> u32 {
        dag.rule_of(element).map_or(element, |rule_id| self.last[rule_id.index()])
    }

    pub(in crate::segment) fn memory_bytes(&self) -> usize {
        8 * self.first.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{EdgeWords, NO_WORD};
    use crate::segment::dag::tests::dag_of;

    #[test]
    fn skips_separators_at_the_edges() {
        // Words 0, 1; separator 2; rules 3 (root), 4 = ", a [6] ,", 5 = ", ,", 6 = "b ,".
        let dag = dag_of(
            vec![vec![4, 5, 6], vec![2, 0, 6, 2], vec![2, 2], vec![1, 2]],
            &[0, 3],
            2,
            &[1, 1, 1],
        );
        let edges = EdgeWords::new(&dag);
        let of = |element| (edges.first_of(&dag, element), edges.last_of(&dag, element));
        assert_eq!([of(3), of(4), of(6), of(1)], [(0, 1), (0, 1), (1, 1), (1, 1)]);
        assert_eq!(of(5), (NO_WORD, NO_WORD));
    }
}
