//! Bags of words of small rules: the distinct words of a rule and their counts, children first.

use crate::ids::RuleId;
use crate::segment::Dag;

/// Maximum number of words in the bag of a rule. Larger rules get no bag and are expanded instead.
const MAX_BAG_WORDS: usize = 64;
/// Maximum number of words in all bags, for each element of the grammar.
const BAG_WORDS_PER_ELEMENT: usize = 4;
/// Position of a word that is not in the bag being filled.
const NOWHERE: u32 = u32::MAX;

/// Distinct words of small rules, with the number of occurrences in one expansion of the rule.
#[derive(Debug, Default)]
pub(super) struct TermBags {
    /// Range of each rule in `words`; empty for a rule without a bag.
    ranges: Vec<(u32, u32)>,
    words: Vec<(u32, u32)>,
}

impl TermBags {
    /// Builds the bags from children to parents. O(G + words of the bags).
    pub fn new(dag: &Dag) -> Self {
        let grammar = dag.grammar();
        let max_words =
            grammar.symbols.len().saturating_mul(BAG_WORDS_PER_ELEMENT).min(NOWHERE as usize);
        let mut bags = Self { ranges: vec![(0, 0); grammar.num_rules()], words: Vec::new() };
        let mut places = vec![NOWHERE; dag.num_words() as usize];
        for rule_id in grammar.rule_ids().skip(1).rev() {
            if bags.words.len() + 2 * MAX_BAG_WORDS > max_words {
                break;
            }
            let start = bags.words.len();
            let is_small = bags.fill(dag, rule_id, &mut places);
            for &(word, _) in &bags.words[start..] {
                places[word as usize] = NOWHERE;
            }
            if is_small {
                bags.ranges[rule_id.index()] = (start as u32, bags.words.len() as u32)
            } else {
                bags.words.truncate(start)
            }
        }
        bags
    }

    /// Appends the words of rule `rule_id`. Returns false if they are too many, if a count
    /// overflows, or if there is no word.
    fn fill(&mut self, dag: &Dag, rule_id: RuleId, places: &mut [u32]) -> bool {
        let start = self.words.len();
        for &element in dag.grammar().rule(rule_id) {
            let (child_start, child_end) = match dag.rule_of(element) {
                _ if dag.len_words(element) == 0 => continue,
                None => {
                    if !self.add(element, 1, places) || self.words.len() - start > MAX_BAG_WORDS {
                        return false;
                    }
                    continue;
                }
                Some(child) => self.ranges[child.index()],
            };
            if child_start == child_end {
                return false;
            }
            for at in child_start..child_end {
                let (word, count) = self.words[at as usize];
                if !self.add(word, count, places) {
                    return false;
                }
            }
            if self.words.len() - start > MAX_BAG_WORDS {
                return false;
            }
        }
        self.words.len() > start
    }

    fn add(&mut self, word: u32, count: u32, places: &mut [u32]) -> bool {
        let place = &mut places[word as usize];
        if *place == NOWHERE {
            *place = self.words.len() as u32;
            self.words.push((word, count));
            return true;
        }
        let slot = &mut self.words[*place as usize].1;
        match slot.checked_add(count) {
            Some(sum) => *slot = sum,
            None => return false,
        }
        true
    }

    /// Returns the words of one expansion of rule `rule_id` with their counts, if the rule has a
    /// bag.
    #[inline]
    pub fn get(&self, rule_id: RuleId) -> Option<&[(u32, u32)]> {
        let (start, end) = self.ranges[rule_id.index()];
        (start < end).then(|| &self.words[start as usize..end as usize])
    }

    /// Returns the memory of the bags in bytes.
    pub fn memory_bytes(&self) -> usize {
        8 * (self.ranges.capacity() + self.words.capacity())
    }
}
