//! The bytes of a word, by its number in a rule or a document.
//!
//! ```text
//! document  R1        R2          word 5 = word 2 of R2 = word 0 of R3 there
//! words     0 1 2     3 4 5 6     bytes before R2, before R3 in R2, and in R3 add up
//! ```
//!
//! The descent takes O(depth * log of a rule's length) with the prefix sums, and no text is read.

use std::ops::Range;

use crate::ids::WordId;
use crate::segment::dag::{Dag, Measure, PrefixSums};

/// A word of a right-hand side: its id and its range in the expansion of the rule or document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordSpan {
    pub word: WordId,
    pub byte_offset: u64,
    pub byte_len: u64,
}

impl PrefixSums {
    /// Returns the word with index `word_idx` among the words of `range` (one rule, or one document of
    /// the root), which must have that many words. O(depth * log rule length).
    pub(crate) fn word_span(
        &self,
        dag: &Dag,
        mut range: Range<usize>,
        mut word_idx: u64,
    ) -> WordSpan {
        let mut byte_offset = 0;
        loop {
            let (position, before) = self.locate(dag, Measure::Words, range.clone(), word_idx);
            word_idx -= before;
            byte_offset += self.between(dag, Measure::Bytes, range.start..position);
            let element = dag.grammar().symbols[position];
            match dag.rule_of(element) {
                Some(rule_id) => range = dag.rule_range(rule_id),
                None => {
                    let (word, byte_len) = (element.into(), dag.len_bytes(element));
                    return WordSpan { word, byte_offset, byte_len };
                }
            }
        }
    }
}
