//! Phrases as matches inside rules of the grammar.
//!
//! Each place of the phrase is a set of words, most often a set of one. The rarest set is the
//! *anchor*. The search starts from each place of the anchor on a right-hand side. It compares the
//! other words to the left and to the right, inside that rule first. If the rule is too short, the
//! rest is carried to the places of the rule in its parents, and so on, until the phrase is
//! complete in some rule or a word is not in its set. A complete phrase is a *match* of that rule.
//! It is found once, however often the rule occurs:
//!
//! ```text
//! phrase        power  loss  during         anchor: loss
//! rule 7        ...  power  loss            right side unmet: "during"
//! rule 3        ...  [7]  during  ...       complete: one match of rule 3
//! rule 5        ...  [7]  and  ...          differs: dropped
//! ```
//!
//! A state that is carried lies within the length of the phrase of an edge of its rule, and each
//! rule has one path to it. The total cost is O(G * words), however large the sets are, and also
//! where the corpus repeats without bound. Separators are ignored. Documents and parts of documents
//! end a phrase; `cut` handles phrases across a cut.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::Result;
use crate::ids::{DocId, RuleId};
use crate::segment::{Dag, EdgeWords, Measure, Occurrence, Segment};

use crate::interrupt::Interrupt;
use crate::query::matching::word_set::WordSet;

/// A match that is complete in one rule (or one document of the root) and in no rule below it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Match {
    /// Rule that holds the match.
    pub rule_id: RuleId,
    /// Document if the rule is the root, else the first.
    pub doc: DocId,
    /// Index of the first matched word among the words of the rule or document.
    pub word_idx: u64,
}

impl Match {
    /// Returns the positions of the rule or document that holds the match.
    pub fn range(&self, dag: &Dag) -> Range<usize> {
        match self.rule_id {
            RuleId::ROOT => dag.doc_range(self.doc),
            rule_id => dag.rule_range(rule_id),
        }
    }
}

/// A phrase as sets of words of one segment, with the set from which the search starts.
#[derive(Debug)]
pub(in crate::query) struct Phrase<'a> {
    segment: &'a Segment,
    edges: &'a EdgeWords,
    words: &'a [WordSet],
    anchor: usize,
}

/// A partial match: the anchor at word `anchor_idx` of rule `rule_id`, with words beside it that
/// are not found yet.
#[derive(Debug, Clone, Copy)]
struct Partial {
    rule_id: RuleId,
    anchor_idx: u64,
    unmet_left: usize,
    unmet_right: usize,
}

impl<'a> Phrase<'a> {
    /// Creates the phrase of `words`, which are two or more.
    pub fn new(segment: &'a Segment, words: &'a [WordSet]) -> Self {
        let rarest = (0..words.len()).min_by_key(|&at| words[at].weight(segment));
        Self { segment, edges: segment.edge_words_or_derive(), words, anchor: rarest.unwrap_or(0) }
    }

    /// Returns the places of the anchor, which can be passed to [`resolve`](Self::resolve) in any
    /// chunks.
    pub fn anchors(&self) -> Cow<'a, [Occurrence]> {
        let anchor = &self.words[self.anchor];
        match anchor.only() {
            Some(word) => Cow::Borrowed(self.segment.inverse_or_derive().for_element(word.into())),
            None => Cow::Owned(anchor.positions(self.segment)),
        }
    }

    /// Calls `found` with each match whose anchor is one of `anchors`.
    pub fn resolve(
        &self,
        anchors: &[Occurrence],
        interrupt: &mut Interrupt<'_>,
        mut found: impl FnMut(Match),
    ) -> Result<()> {
        let (mut pending, mut scratch) = (Vec::new(), Vec::new());
        let right = self.words.len() - 1 - self.anchor;
        for &place in anchors {
            let fresh = Partial {
                rule_id: RuleId::ROOT,
                anchor_idx: 0,
                unmet_left: self.anchor,
                unmet_right: right,
            };
            self.extend(fresh, place, &mut pending, &mut scratch, &mut found);
            while let Some(partial) = pending.pop() {
                let element = self.segment.dag.grammar().element_of(partial.rule_id);
                for &place in self.segment.inverse_or_derive().for_element(element) {
                    interrupt.check()?;
                    self.extend(partial, place, &mut pending, &mut scratch, &mut found);
                }
            }
            interrupt.check()?;
        }
        Ok(())
    }

    /// Continues `partial` at `place`, one of the places of its rule (or of the anchor itself).
    fn extend(
        &self,
        partial: Partial,
        place: Occurrence,
        pending: &mut Vec<Partial>,
        scratch: &mut Vec<Range<usize>>,
        found: &mut impl FnMut(Match),
    ) {
        let dag = &self.segment.dag;
        let position = place.position as usize;
        let doc = match place.rule_id {
            RuleId::ROOT => self.segment.doc_at_or_derive(position),
            _ => DocId::FIRST,
        };
        let mut matched = Match { rule_id: place.rule_id, doc, word_idx: 0 };
        let range = matched.range(dag);
        let left = &self.words[..partial.unmet_left];
        let right = &self.words[self.words.len() - partial.unmet_right..];
        let Some(met_left) = self.match_backward(range.start..position, left, scratch) else {
            return;
        };
        let Some(met_right) = self.match_forward(position + 1..range.end, right, scratch) else {
            return;
        };
        let sums = self.segment.prefix_sums_or_derive();
        let before = sums.between(dag, Measure::Words, range.start..position);
        let next = Partial {
            rule_id: place.rule_id,
            anchor_idx: before + partial.anchor_idx,
            unmet_left: left.len() - met_left,
            unmet_right: right.len() - met_right,
        };
        if next.unmet_left == 0 && next.unmet_right == 0 {
            matched.word_idx = next.anchor_idx - self.anchor as u64;
            found(matched);
        } else if place.rule_id != RuleId::ROOT {
            pending.push(next);
        }
    }

    /// Returns the number of `words` with which the elements of `range` begin: all of them, or as
    /// many as the range has. Returns `None` if a word differs.
    fn match_forward(
        &self,
        mut range: Range<usize>,
        words: &[WordSet],
        stack: &mut Vec<Range<usize>>,
    ) -> Option<usize> {
        let symbols = &self.segment.dag.grammar().symbols;
        let mut met = 0;
        stack.clear();
        while met < words.len() {
            let Some(position) = range.next() else {
                match stack.pop() {
                    Some(outer) => range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            let len_words = self.segment.dag.len_words(element);
            if len_words == 0 {
                continue;
            }
            if !words[met].contains(self.edges.first_of(&self.segment.dag, element)) {
                return None;
            }
            match self.segment.dag.rule_of(element) {
                Some(rule_id) if len_words > 1 && met + 1 < words.len() => {
                    stack.push(std::mem::replace(&mut range, self.segment.dag.rule_range(rule_id)));
                }
                _ => met += 1,
            }
        }
        Some(met)
    }

    /// Returns the number of `words`, counted from their end, with which the elements of `range`
    /// end. This is the mirror image of [`match_forward`](Self::match_forward).
    fn match_backward(
        &self,
        mut range: Range<usize>,
        words: &[WordSet],
        stack: &mut Vec<Range<usize>>,
    ) -> Option<usize> {
        let symbols = &self.segment.dag.grammar().symbols;
        let mut unmet = words.len();
        stack.clear();
        while unmet > 0 {
            let Some(position) = range.next_back() else {
                match stack.pop() {
                    Some(outer) => range = outer,
                    None => break,
                }
                continue;
            };
            let element = symbols[position];
            let len_words = self.segment.dag.len_words(element);
            if len_words == 0 {
                continue;
            }
            if !words[unmet - 1].contains(self.edges.last_of(&self.segment.dag, element)) {
                return None;
            }
            match self.segment.dag.rule_of(element) {
                Some(rule_id) if len_words > 1 && unmet > 1 => {
                    stack.push(std::mem::replace(&mut range, self.segment.dag.rule_range(rule_id)));
                }
                _ => unmet -= 1,
            }
        }
        Some(words.len() - unmet)
    }
}
