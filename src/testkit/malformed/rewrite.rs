//! Files that are valid in every byte and written by the crate itself, but with grammars that no
//! builder makes. In this way, hostile content passes checksums and entropy coding.

use tadoc::error::Result;
use tadoc::format::{CorpusWriter, EncodedSegment, SegmentContents, SegmentLayout};
use tadoc::grammar::Grammar;
use tadoc::ids::RuleId;
use tadoc::segment::{Corpus, Dag, Paths, PrefixSums, Segment};
use tadoc::text::Dictionary;

use crate::random::Random;

/// A segment to be written.
#[derive(Debug, Clone)]
pub struct Draft {
    pub dictionary: Dictionary,
    pub grammar: Grammar,
    pub paths: Paths,
    pub continues: bool,
}

impl Draft {
    pub fn from_segment(segment: &Segment) -> Self {
        Self {
            dictionary: segment.dictionary.clone(),
            grammar: segment.dag.grammar().clone(),
            paths: segment.paths.clone(),
            continues: segment.continues,
        }
    }

    /// Writes the segment in the layout `layout`, with the right totals, if they exist.
    pub fn write(&self, writer: &mut CorpusWriter<Vec<u8>>, layout: SegmentLayout) -> Result<()> {
        let num_words = self.dictionary.num_words();
        let (num_tokens, num_word_tokens) = count_tokens(&self.grammar, num_words);
        let dag = Dag::new(self.grammar.clone(), num_words, self.dictionary.lengths());
        let len_bytes = dag.map_or(0, |dag| {
            let sums = PrefixSums::new(&dag);
            self.grammar.docs().map(|doc| sums.doc_len_bytes(doc)).sum()
        });
        let parts = SegmentContents {
            dictionary: self.dictionary.clone(),
            grammar: self.grammar.clone(),
            paths: self.paths.clone(),
            continues: self.continues,
            num_tokens,
            num_word_tokens,
            len_bytes,
        };
        writer.write_segment(EncodedSegment::new(&parts, layout)?)
    }

    /// Returns true if the draft is a valid segment.
    fn is_sound(&self) -> bool {
        let num_words = self.dictionary.num_words();
        Dag::new(self.grammar.clone(), num_words, self.dictionary.lengths()).is_ok()
    }

    /// Makes a random change that leaves most grammars valid.
    fn change(&mut self, random: &mut Random) {
        match random.below(11) {
            0..4 => self.replace_element(random),
            4..6 => self.repeat_elements(random),
            6..8 => self.add_rule(random),
            8 => self.add_border(random),
            9 => self.move_border(random),
            _ => self.continues = !self.continues,
        }
    }

    fn replace_element(&mut self, random: &mut Random) {
        let grammar = &mut self.grammar;
        if grammar.symbols.is_empty() {
            return;
        }
        let position = random.below(grammar.symbols.len());
        let rule_idx = grammar.rule_offsets.partition_point(|&start| start as usize <= position) - 1;
        let num_below = grammar.num_rules() - rule_idx - 1;
        let rule = grammar.num_terminals as usize + rule_idx + 1;
        let element = if num_below > 0 && random.one_in(2) {
            rule + random.below(num_below)
        } else {
            random.below(grammar.num_terminals as usize)
        };
        grammar.symbols[position] = element as u32;
    }

    /// Repeats a run of elements of a rule.
    fn repeat_elements(&mut self, random: &mut Random) {
        let grammar = &mut self.grammar;
        let rule_idx = random.below(grammar.num_rules());
        let run = random.range(grammar.rule(RuleId::from(rule_idx as u32)).len());
        let start = grammar.rule_offsets[rule_idx] as usize;
        let positions = start + run.start..start + run.end;
        let copy = grammar.symbols[positions.clone()].to_vec();
        let added = copy.len() as u32;
        grammar.symbols.splice(positions.end..positions.end, copy);
        grammar.rule_offsets[rule_idx + 1..].iter_mut().for_each(|offset| *offset += added);
        if rule_idx == 0 {
            let behind = |offset: &&mut u32| **offset as usize >= run.end;
            grammar.doc_offsets.iter_mut().skip(1).filter(behind).for_each(|o| *o += added);
        }
    }

    /// Replaces an element by a rule of one or two tokens, or by a chain of such rules.
    fn add_rule(&mut self, random: &mut Random) {
        let grammar = &mut self.grammar;
        if grammar.num_terminals == 0 || grammar.symbols.is_empty() {
            return;
        }
        let mut position = random.below(grammar.symbols.len());
        for _ in 0..1 + random.below(3) {
            let rule = grammar.num_terminals + grammar.num_rules() as u32;
            let mut token = || random.below(grammar.num_terminals as usize) as u32;
            let mut body = vec![token()];
            if token() % 2 == 0 {
                body.push(token());
            }
            grammar.symbols[position] = rule;
            position = grammar.symbols.len();
            grammar.symbols.extend(body);
            grammar.rule_offsets.push(grammar.symbols.len() as u32);
        }
    }

    fn add_border(&mut self, random: &mut Random) {
        let root_len = self.grammar.root().len();
        self.grammar.doc_offsets.push(random.below(root_len + 1) as u32);
        self.grammar.doc_offsets.sort_unstable();
        if self.grammar.doc_offsets.len() == 2 {
            self.grammar.doc_offsets = vec![0, root_len as u32];
        }
        self.paths.push(&"x/y".repeat(random.below(4)));
    }

    fn move_border(&mut self, random: &mut Random) {
        let root_len = self.grammar.root().len();
        let num_docs = self.grammar.num_docs();
        if num_docs > 1 {
            let border = 1 + random.below(num_docs - 1);
            self.grammar.doc_offsets[border] = random.below(root_len + 1) as u32;
            self.grammar.doc_offsets.sort_unstable();
        }
    }
}

/// Counts the tokens and words of the text. Totals from 2^64 on saturate; the writer refuses them.
fn count_tokens(grammar: &Grammar, num_words: u32) -> (u64, u64) {
    let mut counts = vec![(0u64, 0u64); grammar.num_rules()];
    for rule_id in grammar.rule_ids().rev() {
        counts[rule_id.index()] = grammar.rule(rule_id).iter().fold((0, 0), |(tokens, words), &e| {
            let (t, w) = match grammar.rule_of(e) {
                Some(child) => counts.get(child.index()).copied().unwrap_or_default(),
                None => (1, u64::from(e < num_words)),
            };
            (tokens.saturating_add(t), words.saturating_add(w))
        });
    }
    counts[0]
}

/// Writes `corpus` again with changed, copied, removed and reordered segments. Returns `None` if
/// the writer refuses them.
pub fn rewritten(random: &mut Random, corpus: &Corpus) -> Option<Vec<u8>> {
    let mut drafts: Vec<Draft> = corpus.segments().iter().map(|s| Draft::from_segment(s)).collect();
    if !drafts.is_empty() && random.one_in(3) {
        let copied = random.pick(&drafts).clone();
        drafts.insert(random.below(drafts.len() + 1), copied);
        let other = random.below(drafts.len());
        let last = drafts.len() - 1;
        drafts.swap(other, last);
        drafts.truncate(1 + random.below(last + 1));
    }
    for _ in 0..random.below(12) {
        let at = random.below(drafts.len());
        let draft = drafts.get_mut(at)?;
        let mut changed = draft.clone();
        changed.change(random);
        // Invalid drafts are refused early. A few of them are useful, but most are not interesting.
        if changed.is_sound() || random.one_in(10) {
            *draft = changed;
        }
    }
    let mut writer = CorpusWriter::new(Vec::new(), corpus.profile(), "hostile").ok()?;
    for (i, draft) in drafts.iter_mut().enumerate() {
        draft.continues &= i > 0;
        let layout = *random.pick(&[SegmentLayout::Small, SegmentLayout::INDEXED]);
        draft.write(&mut writer, layout).ok()?;
    }
    Some(writer.finish(None).ok()?.0)
}
