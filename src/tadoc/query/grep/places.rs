//! Places of a long document where a line may match, found without its text.
//!
//! ```text
//! pattern   disk (full|error)        demand: {disk full, disk error}
//! tokens    full, error              of each literal the run with the fewest places
//! root      A  b  C  d  A  e         A has `full` below it: entered
//! places    ──x─────────x─────       bytes of the tokens, and the number of line ends before each
//! ```
//!
//! A line that matches overlaps a token of the demand. One pass over the rules of a segment marks those above such
//! tokens and adds up their line ends. A walk over the elements of the document then enters only marked rules. Where a
//! document was cut at the border of a block, a token may be cut too, so the border is a place.
//!
//! Cost: O(rules) once for each segment of a search, O(elements of the document in the root), and
//! O(elements of the rules above the tokens). Memory: 8 bytes for each token and rule of a segment.
//!
//! # Literals
//!
//! ```text
//! expression                 demands: one literal of each is in the line
//! disk (full|error) on sd    {disk full on sd, disk error on sd}
//! a.*(foo|bar)+x             {foo, bar} {a} {x}
//! (?i)disk                   {DISK} in any case
//! foo.*abcd|bar.*abc         {foo, bar} {abcd, abc}
//! ```
//!
//! Each position of a sequence is tried as the start of literals, and each part that must match is tried alone. Of two
//! demands, one of which follows from the other, only the stronger is kept. If the expression has a class that is one
//! character in several cases, all literals are taken in any case. This only adds candidates.

use std::ops::Range;

use memchr::memchr_iter;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition,
};

use crate::ids::DocId;
use crate::query::matching::candidates::{TextPattern, tokens_of_demands};
use crate::segment::{Corpus, Segment};

/// Bytes of documents whose decoding takes as long as marking a rule.
const BYTES_PER_RULE: u64 = 10;
/// Bytes of a document for each place, from which on its places are worth it.
const BYTES_PER_PLACE: u64 = 8 << 10;

/// Bytes of a document that a matching line overlaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// Not empty.
    pub range: Range<u64>,
    /// Number of line ends before the range.
    pub num_line_ends: u64,
}

/// Finds places in documents, in their order.
#[derive(Debug)]
pub(super) struct PlaceFinder<'c> {
    corpus: &'c Corpus,
    demands: &'c [Vec<TextPattern>],
    /// The last segment that was walked, and its marks; no marks if its tokens say nothing or are frequent.
    marks: Option<(usize, Option<Marks>)>,
    /// A segment, and the bytes of its documents that were read without places.
    read: (usize, u64),
}

impl<'c> PlaceFinder<'c> {
    /// Creates the finder for a line with, for each entry of `demands`, one of its patterns.
    pub fn new(corpus: &'c Corpus, demands: &'c [Vec<TextPattern>]) -> Self {
        Self { corpus, demands, marks: None, read: (0, 0) }
    }

    /// Returns the places of document `doc_id` of `len_bytes`, ascending; `None` if reading all of
    /// it is expected to be faster, or if its tokens say nothing about a line.
    pub fn places(&mut self, doc_id: u64, len_bytes: u64) -> Option<Vec<Place>> {
        let is_worth = !self.demands.is_empty() && self.is_worth(doc_id, len_bytes);
        is_worth.then(|| self.find(doc_id, (len_bytes / BYTES_PER_PLACE) as usize)).flatten()
    }

    fn find(&mut self, doc_id: u64, most_places: usize) -> Option<Vec<Place>> {
        let corpus = self.corpus;
        let mut walk = Walk { at: 0, num_line_ends: 0, places: Vec::new(), most_places };
        for (segment_idx, doc) in corpus.doc_parts(doc_id) {
            if walk.at > 0 {
                walk.add_border();
            }
            let segment = &corpus.segments()[segment_idx];
            walk.part(segment, self.marks_for(segment_idx, segment)?, doc)?;
        }
        Some(walk.places)
    }

    /// Returns true if marks exist, or if the bytes that were read without them would have paid for
    /// them.
    fn is_worth(&mut self, doc_id: u64, len_bytes: u64) -> bool {
        let segments = self.corpus.doc_parts(doc_id).map(|(segment_idx, _)| segment_idx);
        let mut last = 0;
        let mut num_rules = 0u64;
        for segment_idx in segments {
            last = segment_idx;
            num_rules += self.corpus.segments()[segment_idx].dag.grammar().num_rules() as u64;
        }
        if self.marks.as_ref().is_some_and(|&(marked, _)| marked == last) {
            return true;
        }
        if self.read.0 != last {
            self.read = (last, 0);
        }
        self.read.1 = self.read.1.saturating_add(len_bytes);
        self.read.1 >= num_rules.saturating_mul(BYTES_PER_RULE)
    }

    fn marks_for(&mut self, segment_idx: usize, segment: &Segment) -> Option<&Marks> {
        if self.marks.as_ref().is_none_or(|&(marked, _)| marked != segment_idx) {
            let found = tokens_of_demands(segment, self.corpus.profile(), self.demands);
            // Each place in the grammar is one in the text, at least.
            let most_places = segment.dag.len_bytes(segment.dag.num_terminals()) / BYTES_PER_PLACE;
            let rare = found.filter(|&(num_places, _)| num_places <= most_places);
            self.marks = Some((segment_idx, rare.map(|(_, tokens)| Marks::new(segment, &tokens))));
        }
        self.marks.as_ref()?.1.as_ref()
    }
}

/// Line ends of each element of a segment, and a flag for those with a token of the demand.
#[derive(Debug)]
pub(super) struct Marks(Vec<u64>);

const FLAG: u64 = 1 << 63;

impl Marks {
    pub fn new(segment: &Segment, tokens: &[u32]) -> Self {
        let grammar = segment.dag.grammar();
        let dictionary = &segment.dictionary;
        let mut marks = vec![0u64; grammar.num_terminals as usize + grammar.num_rules()];
        for id in dictionary.num_words()..dictionary.len() {
            marks[id as usize] = memchr_iter(b'\n', dictionary.get(id)).count() as u64;
        }
        tokens.iter().for_each(|&token| marks[token as usize] |= FLAG);
        // A rule refers to rules behind it.
        for rule_idx in (1..grammar.num_rules()).rev() {
            let offsets = &grammar.rule_offsets[rule_idx..=rule_idx + 1];
            let symbols = &grammar.symbols[offsets[0] as usize..offsets[1] as usize];
            let mut flag = 0;
            let mut num_line_ends = 0u64;
            for &element in symbols {
                let mark = marks[element as usize];
                flag |= mark & FLAG;
                num_line_ends = num_line_ends.wrapping_add(mark & !FLAG);
            }
            marks[grammar.num_terminals as usize + rule_idx] = flag | num_line_ends & !FLAG;
        }
        Self(marks)
    }

    /// Returns the number of line ends of the element.
    pub fn num_line_ends(&self, element: u32) -> u64 {
        self.for_element(element).1
    }

    /// Returns true if the element has a token of the demand, and the number of its line ends.
    #[inline]
    fn for_element(&self, element: u32) -> (bool, u64) {
        let mark = self.0[element as usize];
        (mark & FLAG != 0, mark & !FLAG)
    }
}

/// Elements of a rule, or of a document in the root, that are not passed yet.
#[derive(Clone, Copy)]
struct Frame {
    next: usize,
    end: usize,
    /// True behind an element that ends with a word.
    after_word: bool,
}

/// A walk over a document, part by part.
struct Walk {
    /// Bytes of the document before the walk.
    at: u64,
    num_line_ends: u64,
    places: Vec<Place>,
    most_places: usize,
}

impl Walk {
    /// Adds the first byte behind the border of a block. A literal across the border has it.
    fn add_border(&mut self) {
        let range = self.at..self.at + 1;
        let num_line_ends = self.num_line_ends;
        self.places.push(Place { range, num_line_ends });
    }

    /// Walks over part `doc` of the document in `segment`. Returns `None` if there are too many
    /// places.
    fn part(&mut self, segment: &Segment, marks: &Marks, doc: DocId) -> Option<()> {
        let dag = &segment.dag;
        let symbols = dag.grammar().symbols.as_slice();
        let frame_of = |range: Range<usize>| Frame { next: range.start, end: range.end, after_word: false };
        let mut frame = frame_of(dag.doc_range(doc));
        let mut outer = Vec::new();
        loop {
            while frame.next < frame.end {
                let element = symbols[frame.next];
                frame.next += 1;
                let blank = frame.after_word && dag.begins_with_word(element);
                self.at += u64::from(blank);
                frame.after_word = dag.ends_with_word(element);
                let (is_marked, num_line_ends) = marks.for_element(element);
                if let Some(rule_id) = dag.rule_of(element).filter(|_| is_marked) {
                    if frame.next < frame.end {
                        outer.push(frame);
                    }
                    frame = frame_of(dag.rule_range(rule_id));
                    continue;
                }
                let end = self.at + dag.len_bytes(element);
                if is_marked && self.at < end {
                    if self.places.len() >= self.most_places {
                        return None;
                    }
                    let num_line_ends = self.num_line_ends;
                    self.places.push(Place { range: self.at..end, num_line_ends });
                }
                self.at = end;
                self.num_line_ends = self.num_line_ends.wrapping_add(num_line_ends);
            }
            match outer.pop() {
                Some(parent) => frame = parent,
                None => return Some(()),
            }
        }
    }
}

/// Most demands that are kept, the strongest.
const MAX_DEMANDS: usize = 4;
/// Most literals of one demand.
const MAX_LITERALS: usize = 64;
/// Most characters of a class that are told apart.
const MAX_CLASS_CHARS: usize = 10;
/// Most parts of a sequence that are tried as the start of literals, and most parts of one.
const MAX_STARTS: usize = 128;
const MAX_PARTS: usize = 16;

/// Literals of which every match has one.
type Literals = Vec<String>;

/// Returns the demands on a text in which `hir` matches, at most [`MAX_DEMANDS`].
pub(super) fn demands_from(hir: &Hir) -> Vec<Vec<TextPattern>> {
    let (folded, is_any_case) = folded(hir);
    let mut found = required(if is_any_case { &folded } else { hir });
    found.sort_by_key(|literals| std::cmp::Reverse(strength(literals)));
    let mut kept: Vec<Literals> = Vec::new();
    for literals in found {
        if kept.len() < MAX_DEMANDS && !kept.iter().any(|other| implies(other, &literals)) {
            kept.push(literals);
        }
    }
    let pattern = |literal: String| {
        if is_any_case { TextPattern::contains_in_any_case(&literal) } else { TextPattern::contains(&literal) }
    };
    kept.into_iter().map(|literals| literals.into_iter().map(pattern).collect()).collect()
}

/// Returns sets of literals; every match of `hir` has one of each.
fn required(hir: &Hir) -> Vec<Literals> {
    let mut found = Vec::new();
    match hir.kind() {
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            found = required(&repetition.sub);
        }
        HirKind::Capture(capture) => found = required(&capture.sub),
        HirKind::Concat(parts) => {
            for (start, part) in parts.iter().enumerate().take(MAX_STARTS) {
                let end = parts.len().min(start + MAX_PARTS);
                found.extend(prefixes(&Hir::concat(parts[start..end].to_vec())));
                if matches!(part.kind(), HirKind::Alternation(_) | HirKind::Repetition(_) | HirKind::Capture(_)) {
                    found.extend(required(part));
                }
            }
        }
        HirKind::Alternation(parts) => {
            found.extend(prefixes(hir));
            let strongest = |part| required(part).into_iter().max_by_key(strength);
            let each: Option<Vec<Literals>> = parts.iter().map(strongest).collect();
            found.extend(each.map(|each| each.concat()));
        }
        _ => found.extend(prefixes(hir)),
    }
    found.retain(|literals| literals.len() <= MAX_LITERALS && strength(literals) > 0);
    found
}

/// Returns the literals with which matches begin.
fn prefixes(hir: &Hir) -> Option<Literals> {
    let mut extractor = Extractor::new();
    extractor.limit_class(MAX_CLASS_CHARS).limit_total(MAX_LITERALS);
    let found = extractor.extract(hir);
    let literals = found.literals()?.iter();
    // A literal may be cut inside a character, or have bytes that are not UTF-8.
    let text = |bytes: &[u8]| {
        let valid = bytes.utf8_chunks().map(|chunk| chunk.valid());
        valid.max_by_key(|valid| valid.len()).unwrap_or_default().to_owned()
    };
    let mut literals: Literals = literals.map(|literal| text(literal.as_bytes())).collect();
    literals.sort_unstable();
    literals.dedup();
    Some(literals)
}

/// Returns the length in bytes of the shortest literal, and 0 if the literals exclude next to
/// nothing: several of one byte each.
fn strength(literals: &Literals) -> usize {
    let shortest = literals.iter().map(String::len).min().unwrap_or(0);
    if shortest == 1 && literals.len() > 1 { 0 } else { shortest }
}

/// Returns true if a text with one of `literals` has one of `others`.
fn implies(literals: &Literals, others: &Literals) -> bool {
    literals.iter().all(|literal| others.iter().any(|other| literal.contains(other)))
}

/// Returns `hir` with the first of all cases of a character in place of each, and true if a class
/// is smaller for that. Large classes stay as they are: they give no literals.
fn folded(hir: &Hir) -> (Hir, bool) {
    let mut is_smaller = false;
    let folded = match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => Hir::literal(text.chars().map(first_case).collect::<String>().into_bytes()),
            Err(_) => hir.clone(),
        },
        HirKind::Class(class) => {
            let folded = folded_class(class);
            is_smaller = num_chars(&folded) < num_chars(class);
            Hir::class(folded)
        }
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let (sub, smaller) = folded(sub);
            is_smaller = smaller;
            let min = *min;
            let max = *max;
            let greedy = *greedy;
            let sub = Box::new(sub);
            Hir::repetition(Repetition { min, max, greedy, sub })
        }
        HirKind::Concat(parts) => {
            let parts = parts.iter().map(folded);
            Hir::concat(parts.inspect(|part| is_smaller |= part.1).map(|part| part.0).collect())
        }
        HirKind::Alternation(parts) => {
            let parts = parts.iter().map(folded);
            let parts = parts.inspect(|part| is_smaller |= part.1).map(|part| part.0);
            Hir::alternation(parts.collect())
        }
        HirKind::Capture(capture) => return folded(&capture.sub),
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
    };
    (folded, is_smaller)
}

fn folded_class(class: &Class) -> Class {
    if num_chars(class) > MAX_CLASS_CHARS {
        return class.clone();
    }
    match class {
        Class::Unicode(class) => {
            let chars = class.iter().flat_map(|range| range.start()..=range.end());
            let folded = chars.map(first_case).map(|c| ClassUnicodeRange::new(c, c));
            Class::Unicode(ClassUnicode::new(folded))
        }
        Class::Bytes(class) => {
            let bytes = class.iter().flat_map(|range| range.start()..=range.end());
            let folded = bytes.map(|byte| byte.to_ascii_uppercase());
            Class::Bytes(ClassBytes::new(folded.map(|byte| ClassBytesRange::new(byte, byte))))
        }
    }
}

fn num_chars(class: &Class) -> usize {
    match class {
        Class::Unicode(class) => class.iter().map(|range| range.len()).sum(),
        Class::Bytes(class) => class.iter().map(|range| range.len()).sum(),
    }
}

/// Returns the first of all cases of `character`, by Unicode's simple case folding: the capital
/// letter for ASCII.
fn first_case(character: char) -> char {
    let mut cases = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
    match cases.try_case_fold_simple() {
        Ok(()) => cases.iter().next().map_or(character, |range| range.start()),
        Err(_) => character,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::build::corpus_from_texts;
    use crate::text::{TokenizerProfile, for_each_token};

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Each occurrence of a literal overlaps a place, and line ends are counted.
        #[test]
        fn places_are_where_the_text_has_them(
            texts in prop::collection::vec("([ab]{1,3}|[ ,.\n-]{1,2}){0,60}", 1..5),
            literal in "[ab ,\n]{0,2}[ab,][ab ,]{0,2}",
            block_bytes in prop::sample::select(vec![16usize, 64, 1 << 20]),
        ) {
            let corpus = corpus_from_texts(block_bytes, &texts);
            let demands = [vec![TextPattern::contains(&literal)]];
            let mut finder = PlaceFinder::new(&corpus, &demands);
            for (doc_id, text) in (0..).zip(&texts) {
                let Some(places) = finder.find(doc_id, usize::MAX) else { continue };
                for (at, _) in text.match_indices(&literal) {
                    let start = at as u64;
                    let end = (at + literal.len()) as u64;
                    let overlaps = |p: &Place| p.range.start < end && start < p.range.end;
                    prop_assert!(places.iter().any(overlaps), "{text:?} {literal:?} {at} {places:?}");
                }
                for place in &places {
                    let before = &text.as_bytes()[..text.len().min(place.range.start as usize)];
                    let num_line_ends = memchr_iter(b'\n', before).count() as u64;
                    prop_assert_eq!(place.num_line_ends, num_line_ends);
                    prop_assert!(place.range.start < place.range.end);
                }
                prop_assert!(places.is_sorted_by_key(|place| place.range.start));
            }
        }
    }

    #[test]
    fn few_places_of_long_documents_are_worth_it() {
        let line = "the quick brown fox jumps over the lazy dog\n";
        let text = line.repeat(3000) + "here is a needle\n" + &line.repeat(3000);
        let corpus = corpus_from_texts(1 << 20, std::slice::from_ref(&text));
        let found = |literal| {
            let demands = [vec![TextPattern::contains(literal)]];
            PlaceFinder::new(&corpus, &demands).places(0, text.len() as u64)
        };
        let start = text.find("needle").unwrap() as u64;
        assert_eq!(found("needle"), Some(vec![Place { range: start..start + 6, num_line_ends: 3000 }]));
        assert_eq!(found("fox"), None);
        assert_eq!(found("cat"), Some(Vec::new()));
    }

    fn demands(source: &str) -> Vec<Vec<String>> {
        let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(source).unwrap();
        let shown = |pattern: TextPattern| {
            let text = pattern.fragments.concat();
            if pattern.is_any_case { format!("{text}*") } else { text }
        };
        let found = demands_from(&hir).into_iter();
        found.map(|patterns| patterns.into_iter().map(shown).collect()).collect()
    }

    #[test]
    fn every_match_has_a_literal_of_each_demand() {
        for (source, expected) in [
            ("disk (full|error) on sd", vec![vec!["disk error on sd", "disk full on sd"]]),
            ("a.*(foo|bar)+x", vec![vec!["bar", "foo"], vec!["a"], vec!["x"]]),
            ("foo.*bar", vec![vec!["foo"], vec!["bar"]]),
            ("foo.*abcd|bar.*abc", vec![vec!["bar", "foo"], vec!["abcd", "abc"]]),
            ("^(error|warning)$", vec![vec!["error", "warning"]]),
            ("(?i)disk", vec![vec!["DISK*"]]),
            ("(?i:é)x|Y", vec![]),
            ("[Ff]oo", vec![vec!["FOO*"]]),
            ("x", vec![vec!["x"]]),
            ("x*", vec![]),
            (".", vec![]),
            ("a|b", vec![]),
            ("(?-u:\\xff)ab", vec![vec!["ab"]]),
        ] {
            let found = demands(source);
            let found: Vec<Vec<&str>> = found.iter().map(|set| set.iter().map(String::as_str).collect()).collect();
            assert_eq!(found, expected, "{source}");
        }
    }

    /// The tokens of a literal are those of the text in any other case.
    #[test]
    fn all_cases_of_a_character_have_one_class() {
        for profile in [TokenizerProfile::Auto, TokenizerProfile::Word, TokenizerProfile::Whitespace] {
            let is_word = |c: char| {
                let mut is_word = false;
                for_each_token(profile, c.to_string().as_bytes(), |token| is_word |= token.is_word);
                is_word
            };
            for character in '\0'..=char::MAX {
                let first = first_case(character);
                if first != character {
                    assert_eq!(is_word(first), is_word(character), "{character}");
                }
            }
        }
    }
}
