//! Numbers of lines with a match, counted on the grammar: no text is decoded.
//!
//! ```text
//! effect     of an expansion on a line in some state: the state at its end, and the lines with a match that end in it
//!
//! rule 9     error \n         from 0: state 0, 1 line
//! rule 8     [9] ok \n        from 0: state 0, 1 line      from 5 (behind `no `): state 0, 1 line
//! document   [8] [8] no [8]   1 + 1 + 1 lines; rule 9 is entered once from 0, rule 8 twice
//! ```
//!
//! The effect of a rule follows from those of its elements. Effects on a line that begins with an element are found
//! first, from the last rule to the first. An expansion in another state mostly ends its first element as there, for
//! a separator or a letter ends what was a part of a match, and then the whole has the same effect. Between two words
//! stands a blank that no element has, and the state in which an expansion begins is the one behind it.
//!
//! Cost: O(elements of the grammar) and O(bytes of its tokens), and once more for each state that matters. Memory:
//! 4 bytes for each element and each of the first states, and more where many begin in others. A pattern with more
//! than 254 states is not counted so ([`LineAutomaton`]), nor a rule of 2^19 such lines.
//!
//! # Automaton
//!
//! A pattern as a table: states of a line, and where each byte leads.
//!
//! ```text
//! pattern   ab              state 0, begin of a line   a ─▶ 2, others ─▶ 0
//!                           state 2, behind an a       b ─▶ 3, a ─▶ 2, others ─▶ 0
//!                           state 3, behind ab         each ─▶ 1
//!                           state 1, a match was found each ─▶ 1
//! ```
//!
//! The states are those of the lazy automaton of the crate regex-automata, which sees a match one byte behind its end.
//! They are numbered in the order in which they are reached, and the table is filled as it is asked. Patterns with
//! many states, with borders of words, or that match an empty line have no table: a begin of a line must say that it
//! has no match. Memory: 256 bytes for each state, and 8 MiB at most for the lazy automaton.

use std::ops::Range;
use std::sync::Arc;

use memchr::memchr;
use rayon::prelude::*;
use regex_automata::Input;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_syntax::hir::Hir;
use rustc_hash::FxHashMap;

use crate::ids::DocId;
use crate::segment::{Corpus, Segment};

use super::line_pattern::{LinePattern, MAX_COMPILED_BYTES};

/// Number of states whose effects have a place for each element. Those of others are in a hash table, but those behind
/// a match follow from those at the begin of a line.
const NUM_DENSE: usize = 12;

/// Counts the lines that a pattern selects.
///
/// ```
/// use tadoc::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
/// use tadoc::query::{MatchingLineCounter, LineExpression, LinePattern};
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a.log", b"error: disk full\nok\nerror: fan\n")?;
/// builder.push_document("b.log", b"no error")?;
/// let (file, _report) = builder.finish(None)?;
/// let (_footer, corpus) = Corpus::from_bytes("a.tadoc", &file, &OpenLimits::default())?;
///
/// let pattern = LinePattern::new(&LineExpression { source: "error", ..LineExpression::default() })?;
/// let counter = MatchingLineCounter::new(&pattern).expect("no borders of words");
/// assert_eq!(counter.count(&corpus, &[0, 1]), Some(vec![2, 1]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct MatchingLineCounter {
    dfa: Arc<DFA>,
}

impl MatchingLineCounter {
    /// Creates the counter of `pattern`. Returns `None` if lines must be read for it: it selects lines without a
    /// match, it matches an empty line, or it has borders of words.
    pub fn new(pattern: &LinePattern) -> Option<Self> {
        let dfa = compiled(pattern.matched_expression()?, MAX_COMPILED_BYTES)?;
        LineAutomaton::new(&dfa).ok()?;
        Some(Self { dfa })
    }

    /// Returns the number of selected lines of each of `docs`, which ascend. Those that do not exist have none. Returns
    /// `None` if the pattern has too many states in these documents. Segments are shared among the cores.
    pub fn count(&self, corpus: &Corpus, docs: &[u64]) -> Option<Vec<u64>> {
        let segments = |doc_id: u64| corpus.doc_parts(doc_id).map(|(segment_idx, _)| segment_idx);
        let chains: Vec<&[u64]> = docs.chunk_by(|&one, &next| segments(one).last() == segments(next).next()).collect();
        let counts = chains.par_iter().map(|docs| self.count_in_chain(corpus, docs));
        Some(counts.collect::<Option<Vec<Vec<u64>>>>()?.concat())
    }

    fn count_in_chain(&self, corpus: &Corpus, docs: &[u64]) -> Option<Vec<u64>> {
        let mut automaton = LineAutomaton::new(&self.dfa).ok()?;
        let mut effects: Option<(usize, Effects<'_>)> = None;
        let mut counts = Vec::with_capacity(docs.len());
        for &doc_id in docs {
            let mut state = LINE_START;
            let mut num_lines = 0u64;
            for (segment_idx, doc) in corpus.doc_parts(doc_id) {
                let here = match effects.take() {
                    Some((known, here)) if known == segment_idx => here,
                    _ => Effects::new(&corpus.segments()[segment_idx], &mut automaton).ok()?,
                };
                let (_, here) = effects.insert((segment_idx, here));
                let end = here.pass_part(&mut automaton, doc, state).ok()?;
                state = end.state;
                num_lines = num_lines.checked_add(end.num_lines)?;
            }
            counts.push(num_lines + u64::from(automaton.is_match(state)));
        }
        Some(counts)
    }
}

/// Effect of an expansion on a line: bits 0 to 7 the state at its end, flags, and the number of lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Effect(u32);

const ENDS_WITH_WORD: u32 = 1 << 8;
const IS_KNOWN: u32 = 1 << 9;
/// Flag of an expansion in which a line ends, and one if the first of these has a match.
const HAS_LINE_END: u32 = 1 << 10;
const FIRST_MATCHES: u32 = 1 << 11;
const BEGINS_WITH_WORD: u32 = 1 << 12;
const COUNT_SHIFT: u32 = 13;

impl Effect {
    #[inline]
    fn is_known(self) -> bool {
        self.0 != 0
    }

    #[inline]
    fn state(self) -> u8 {
        self.0 as u8
    }

    #[inline]
    fn num_lines(self) -> u64 {
        u64::from(self.0 >> COUNT_SHIFT)
    }

    /// Returns the effect on a line in which a match was found, from that on a line that begins here.
    #[inline]
    fn behind_match(self) -> Self {
        if !self.is_known() {
            return self;
        }
        if self.0 & HAS_LINE_END == 0 {
            return Self(self.0 & !0xff | u32::from(MATCHED));
        }
        let num_more = u32::from(self.0 & FIRST_MATCHES == 0);
        Self((self.0 | FIRST_MATCHES) + (num_more << COUNT_SHIFT))
    }
}

/// Effect of the elements that are passed: a state, the flags of an effect, and the number of lines.
#[derive(Debug, Clone, Copy)]
struct Passed {
    state: u8,
    flags: u32,
    num_lines: u64,
}

impl Passed {
    fn new(from: u8) -> Self {
        Self { state: from, flags: 0, num_lines: 0 }
    }

    #[inline]
    fn after_word(self) -> bool {
        self.flags & ENDS_WITH_WORD != 0
    }

    #[inline]
    fn pass(&mut self, effect: Effect) {
        let first = if self.flags & HAS_LINE_END == 0 { effect.0 & (HAS_LINE_END | FIRST_MATCHES) } else { 0 };
        self.flags = self.flags & !ENDS_WITH_WORD | first | effect.0 & ENDS_WITH_WORD;
        self.state = effect.state();
        self.num_lines += effect.num_lines();
    }

    fn effect(self) -> Result<Effect, TooLarge> {
        // One is left for a line that was matched before.
        let num_lines = u32::try_from(self.num_lines).ok().filter(|&count| count < u32::MAX >> COUNT_SHIFT);
        Ok(Effect(u32::from(self.state) | self.flags | IS_KNOWN | num_lines.ok_or(TooLarge)? << COUNT_SHIFT))
    }
}

/// Returns the state in which an element begins behind what was passed. `at_start` is its effect at the begin of a
/// line.
#[inline]
fn state_behind_blank(automaton: &LineAutomaton<'_>, passed: Passed, at_start: Effect) -> u8 {
    if !passed.after_word() {
        return passed.state;
    }
    let behind = automaton.known_next(passed.state, b' ');
    let has_blank = behind != passed.state && at_start.0 & BEGINS_WITH_WORD != 0;
    if has_blank { behind } else { passed.state }
}

/// A rule, or a document, of which some elements are passed.
#[derive(Debug, Clone, Copy)]
struct Frame {
    /// The rule, and the state in which it begins.
    element: u32,
    from: u8,
    /// The elements that are not passed.
    next: usize,
    end: usize,
    passed: Passed,
}

impl Frame {
    fn new(element: u32, from: u8, range: Range<usize>) -> Self {
        Self { element, from, next: range.start, end: range.end, passed: Passed::new(from) }
    }
}

/// Effects of the expansions of a segment.
#[derive(Debug)]
struct Effects<'s> {
    segment: &'s Segment,
    /// Effects for each of the first states, by element. Pages that are not written take no memory.
    dense: Vec<u32>,
    others: FxHashMap<(u8, u32), Effect>,
    /// Rules above the one that is passed.
    outer: Vec<Frame>,
}

impl<'s> Effects<'s> {
    /// Finds the effects of all elements on a line that begins with them.
    fn new(segment: &'s Segment, automaton: &mut LineAutomaton<'_>) -> Result<Self, TooLarge> {
        let dag = &segment.dag;
        let dense = vec![0; NUM_DENSE * dag.num_elements()];
        let mut effects = Self { segment, dense, others: FxHashMap::default(), outer: Vec::new() };
        for token in 0..dag.num_terminals() {
            effects.follow(automaton, token, LINE_START)?;
        }
        // A rule refers to rules behind it. The root is no element of any.
        for rule in (dag.num_terminals() + 1..dag.num_elements() as u32).rev() {
            let Some(rule_id) = dag.rule_of(rule) else { continue };
            let range = dag.rule_range(rule_id);
            let first = dag.grammar().symbols[range.start];
            let mut effect = effects.pass_all(automaton, Frame::new(rule, LINE_START, range))?.effect()?;
            effect.0 |= effects.known(first, LINE_START).0 & BEGINS_WITH_WORD;
            effects.keep(rule, LINE_START, effect);
        }
        Ok(effects)
    }

    /// Passes part `doc` of a document, which begins in the state `from`.
    fn pass_part(&mut self, automaton: &mut LineAutomaton<'_>, doc: DocId, from: u8) -> Result<Passed, TooLarge> {
        let root = self.segment.dag.num_terminals();
        self.pass_all(automaton, Frame::new(root, from, self.segment.dag.doc_range(doc)))
    }

    /// Passes all elements of `whole`.
    fn pass_all(&mut self, automaton: &mut LineAutomaton<'_>, whole: Frame) -> Result<Passed, TooLarge> {
        let dag = &self.segment.dag;
        self.outer.clear();
        let mut frame = whole;
        loop {
            if self.pass_known(automaton, &mut frame) {
                let Some(parent) = self.outer.pop() else { return Ok(frame.passed) };
                self.keep(frame.element, frame.from, frame.passed.effect()?);
                frame = parent;
                continue;
            }
            let element = dag.grammar().symbols[frame.next];
            let mut from = state_behind_blank(automaton, frame.passed, self.known(element, LINE_START));
            if from == UNKNOWN {
                from = automaton.next(frame.passed.state, b' ')?;
                if self.known(element, from).is_known() {
                    continue;
                }
            }
            let Some(rule_id) = dag.rule_of(element) else {
                self.follow(automaton, element, from)?;
                continue;
            };
            let token = self.first_token(element);
            if !self.known(token, from).is_known() {
                self.follow(automaton, token, from)?;
            }
            if from != LINE_START && self.known(token, from) == self.known(token, LINE_START) {
                // Behind its first token the rule is as at the begin of a line.
                self.keep(element, from, self.known(element, LINE_START));
                continue;
            }
            self.outer.push(frame);
            frame = Frame::new(element, from, dag.rule_range(rule_id));
        }
    }

    /// Passes the elements of `frame` whose effects are known. Returns true if these are all.
    fn pass_known(&self, automaton: &LineAutomaton<'_>, frame: &mut Frame) -> bool {
        let symbols = &self.segment.dag.grammar().symbols[frame.next..frame.end];
        let mut passed = frame.passed;
        let mut num_passed = 0;
        for &element in symbols {
            // Most begin in this state. A load that does not wait for the state hides the memory behind the others.
            let at_start = Effect(self.dense[element as usize]);
            let from = state_behind_blank(automaton, passed, at_start);
            let effect = match from {
                LINE_START => at_start,
                MATCHED => at_start.behind_match(),
                _ => self.known(element, from),
            };
            if !effect.is_known() {
                break;
            }
            passed.pass(effect);
            num_passed += 1;
        }
        frame.next += num_passed;
        frame.passed = passed;
        frame.next == frame.end
    }

    /// Returns the first token of an expansion.
    fn first_token(&self, mut element: u32) -> u32 {
        let dag = &self.segment.dag;
        while let Some(rule_id) = dag.rule_of(element) {
            element = dag.grammar().symbols[dag.rule_range(rule_id).start];
        }
        element
    }

    /// Finds the effect of a token on a line in the state `from`.
    fn follow(&mut self, automaton: &mut LineAutomaton<'_>, token: u32, from: u8) -> Result<(), TooLarge> {
        let bytes = self.segment.dictionary.get(token);
        let mut passed = Passed::new(from);
        let mut rest = bytes;
        while let Some(at) = memchr(b'\n', rest) {
            let state = automaton.follow(passed.state, &rest[..at])?;
            let has_match = automaton.is_match(state);
            let first = if has_match { HAS_LINE_END | FIRST_MATCHES } else { HAS_LINE_END };
            passed.flags |= if passed.flags & HAS_LINE_END == 0 { first } else { 0 };
            passed.num_lines += u64::from(has_match);
            passed.state = LINE_START;
            rest = &rest[at + 1..];
        }
        passed.state = automaton.follow(passed.state, rest)?;
        let is_word = token < self.segment.dag.num_words();
        passed.flags |= if is_word { BEGINS_WITH_WORD | ENDS_WITH_WORD } else { 0 };
        self.keep(token, from, passed.effect()?);
        Ok(())
    }

    /// Returns the effect of `element` on a line in the state `from`, if it was kept.
    #[inline]
    fn known(&self, element: u32, from: u8) -> Effect {
        if from == MATCHED {
            return self.known(element, LINE_START).behind_match();
        }
        let from_idx = usize::from(from);
        if from_idx < NUM_DENSE {
            Effect(self.dense[from_idx * self.segment.dag.num_elements() + element as usize])
        } else {
            self.others.get(&(from, element)).copied().unwrap_or_default()
        }
    }

    fn keep(&mut self, element: u32, from: u8, effect: Effect) {
        let from_idx = usize::from(from);
        if from_idx < NUM_DENSE {
            self.dense[from_idx * self.segment.dag.num_elements() + element as usize] = effect.0;
        } else {
            self.others.insert((from, element), effect);
        }
    }
}

/// State at the begin of a line.
const LINE_START: u8 = 0;
/// State of a line in which a match was found.
const MATCHED: u8 = 1;
/// Stands for a state that is not known yet.
pub(super) const UNKNOWN: u8 = u8::MAX;
/// Most bytes of the states of the lazy automaton.
const CACHE_BYTES: usize = 8 << 20;

/// The reason why lines are not counted by a table: it has too many states, or there are too many lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TooLarge;

/// Compiles `expression`, no part of which matches a line end. Returns `None` if it has borders of words.
pub(super) fn compiled(expression: &Hir, max_bytes: usize) -> Option<Arc<DFA>> {
    let config =
        thompson::Config::new().utf8(false).nfa_size_limit(Some(max_bytes)).which_captures(WhichCaptures::None);
    let nfa = thompson::Compiler::new().configure(config).build_from_hir(expression).ok()?;
    let config = Config::new().cache_capacity(CACHE_BYTES).minimum_cache_clear_count(Some(0));
    let dfa = DFA::builder().configure(config).build_from_nfa(nfa).ok()?;
    Some(Arc::new(dfa))
}

/// The table of a pattern, as far as it was asked.
#[derive(Debug)]
struct LineAutomaton<'p> {
    dfa: &'p DFA,
    cache: Cache,
    /// State of the lazy automaton for each state. That of [`MATCHED`] is not used.
    lazy: Vec<LazyStateID>,
    numbers: FxHashMap<LazyStateID, u8>,
    /// The next state for each state and byte, or [`UNKNOWN`].
    next: Vec<[u8; 256]>,
    /// True for each state if a line that ends in it has a match.
    is_match: Vec<bool>,
}

impl<'p> LineAutomaton<'p> {
    /// Creates the table of `dfa`.
    ///
    /// # Errors
    /// [`TooLarge`] if an empty line matches.
    pub fn new(dfa: &'p DFA) -> Result<Self, TooLarge> {
        let mut cache = dfa.create_cache();
        let start = dfa.start_state_forward(&mut cache, &Input::new("")).map_err(|_| TooLarge)?;
        let mut automaton = Self {
            dfa,
            cache,
            lazy: Vec::new(),
            numbers: FxHashMap::default(),
            next: Vec::new(),
            is_match: Vec::new(),
        };
        automaton.number_of_new(start)?;
        if automaton.is_match[usize::from(LINE_START)] {
            return Err(TooLarge);
        }
        automaton.lazy.push(start);
        automaton.next.push([MATCHED; 256]);
        automaton.is_match.push(true);
        Ok(automaton)
    }

    /// Returns the state behind `byte`, which is no line end, in `state`.
    ///
    /// # Errors
    /// [`TooLarge`] if there are too many states.
    #[inline]
    pub fn next(&mut self, state: u8, byte: u8) -> Result<u8, TooLarge> {
        match self.next[usize::from(state)][usize::from(byte)] {
            UNKNOWN => self.find_next(state, byte),
            next => Ok(next),
        }
    }

    /// Returns the state behind `byte` in `state`, or [`UNKNOWN`].
    #[inline]
    pub fn known_next(&self, state: u8, byte: u8) -> u8 {
        self.next[usize::from(state)][usize::from(byte)]
    }

    /// Returns true if a line that ends in `state` has a match.
    #[inline]
    pub fn is_match(&self, state: u8) -> bool {
        self.is_match[usize::from(state)]
    }

    /// Returns the state behind `bytes`, which have no line end, in `state`.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn follow(&mut self, mut state: u8, bytes: &[u8]) -> Result<u8, TooLarge> {
        let mut rest = bytes;
        loop {
            if state == LINE_START {
                // Most bytes change nothing there, and each of these is seen without the one before.
                let changes = &self.next[usize::from(LINE_START)];
                let num_same = rest.iter().take_while(|&&byte| changes[usize::from(byte)] == LINE_START).count();
                rest = &rest[num_same..];
            }
            let Some((&byte, behind)) = rest.split_first() else { return Ok(state) };
            rest = behind;
            state = self.next(state, byte)?;
        }
    }

    #[cold]
    fn find_next(&mut self, state: u8, byte: u8) -> Result<u8, TooLarge> {
        let from = self.lazy[usize::from(state)];
        let lazy = self.dfa.next_state(&mut self.cache, from, byte).map_err(|_| TooLarge)?;
        let next = match self.numbers.get(&lazy) {
            _ if lazy.is_quit() => return Err(TooLarge),
            _ if lazy.is_match() => MATCHED,
            Some(&number) => number,
            None => self.number_of_new(lazy)?,
        };
        self.next[usize::from(state)][usize::from(byte)] = next;
        Ok(next)
    }

    /// Adds a state and returns its number.
    fn number_of_new(&mut self, lazy: LazyStateID) -> Result<u8, TooLarge> {
        let number = u8::try_from(self.lazy.len()).ok().filter(|&number| number < UNKNOWN).ok_or(TooLarge)?;
        let at_end = self.dfa.next_eoi_state(&mut self.cache, lazy).map_err(|_| TooLarge)?;
        self.lazy.push(lazy);
        self.numbers.insert(lazy, number);
        self.next.push([UNKNOWN; 256]);
        self.is_match.push(at_end.is_match());
        Ok(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::query::{GrepOptions, LineExpression, SearchOptions, grep};
    use crate::text::TokenizerProfile;

    use super::*;

    /// Patterns that touch words, blanks between words, separators, line ends and bytes that are no text.
    const PATTERNS: [&str; 24] = [
        "a",
        "b a",
        " a",
        "a ",
        "a b|c",
        "ab",
        "a.c",
        "a.*c",
        "^a",
        "a$",
        "^a b$",
        "a[^b]*c",
        "(?i)A B",
        "a  b",
        "[,;] a",
        ",",
        "é",
        "(?-u:\\xff)",
        "a(b|c)+ a",
        "\\w+ \\w+ \\w+",
        "b\\r$",
        "a{3}",
        "\\pL,",
        "[^a]b",
    ];
    const PIECES: [&[u8]; 14] =
        [b"a", b"b", b"c", b"ab", b"A", b" ", b"  ", b"\n", b"\r\n", b",", b"; ", "é".as_bytes(), b"\xff", b"\n\n"];

    fn corpus_for(texts: &[Vec<u8>], profile: TokenizerProfile, block_bytes: usize) -> Corpus {
        let options = IngestOptions { profile, block_bytes, ..IngestOptions::default() };
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        texts.iter().for_each(|text| builder.push_document("a", text).unwrap());
        let (file, _) = builder.finish(None).unwrap();
        Corpus::from_bytes("a", &file, &OpenLimits::default()).unwrap().1
    }

    fn pattern_for(source: &str) -> LinePattern {
        LinePattern::new(&LineExpression { source, ..LineExpression::default() }).unwrap()
    }

    /// Counts the lines of each document by reading them.
    fn counts_by_reading(corpus: &Corpus, pattern: &LinePattern) -> Vec<u64> {
        let mut counts = vec![0; corpus.num_docs() as usize];
        let search = SearchOptions { max_hits: u64::MAX, ..SearchOptions::default() };
        let options = GrepOptions { search, ..GrepOptions::default() };
        grep(corpus, pattern, &options, &mut |line| {
            counts[line.doc_id as usize] += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        counts
    }

    fn check(corpus: &Corpus, source: &str) {
        let pattern = pattern_for(source);
        let docs: Vec<u64> = (0..corpus.num_docs()).collect();
        let counter = MatchingLineCounter::new(&pattern).unwrap();
        assert_eq!(counter.count(corpus, &docs).unwrap(), counts_by_reading(corpus, &pattern), "{source}");
    }

    #[test]
    fn patterns_of_empty_lines_and_of_borders_of_words_are_not_counted() {
        for source in ["", "^$", "a*", r"\ba", r"a|\b"] {
            assert!(MatchingLineCounter::new(&pattern_for(source)).is_none(), "{source}");
        }
        let expression = LineExpression { source: "a", is_inverted: true, ..LineExpression::default() };
        assert!(MatchingLineCounter::new(&LinePattern::new(&expression).unwrap()).is_none());
    }

    #[test]
    fn a_pattern_with_many_states_is_not_counted() {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let text: String = (0..4_000).map(|_| ["ab ", "a ", "b "][random() as usize % 3]).collect();
        let corpus = corpus_for(&[text.into_bytes()], TokenizerProfile::Word, 1 << 20);
        let counter = MatchingLineCounter::new(&pattern_for("a.{12}c")).unwrap();
        assert_eq!(counter.count(&corpus, &[0]), None);
    }

    #[test]
    fn a_state_that_a_blank_reaches_first_keeps_what_is_known_of_it() {
        let text = b"   a ,  b; c\xff".repeat(4);
        let other = b"aa aaaa  ; aaa  c  a  aa\xff".repeat(4);
        let corpus = corpus_for(&[text, other, b"aaaa".to_vec()], TokenizerProfile::Whitespace, 1 << 20);
        check(&corpus, r"\pL,");
    }

    proptest! {
        #[test]
        fn counts_are_those_of_reading(
            docs in prop::collection::vec(prop::collection::vec(0..PIECES.len(), 0..60), 1..8),
            times in 1usize..6,
            profile in 0..TokenizerProfile::ALL.len(),
            block_bytes in prop_oneof![Just(1usize << 20), 3usize..200],
        ) {
            let text = |pieces: &Vec<usize>| {
                let pieces: Vec<u8> = pieces.iter().flat_map(|&at| PIECES[at].iter().copied()).collect();
                pieces.repeat(times)
            };
            let texts: Vec<Vec<u8>> = docs.iter().map(text).collect();
            let corpus = corpus_for(&texts, TokenizerProfile::ALL[profile], block_bytes);
            PATTERNS.iter().for_each(|source| check(&corpus, source));
        }
    }
}
