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

use std::sync::Arc;

use regex_automata::Input;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_syntax::hir::Hir;
use rustc_hash::FxHashMap;

/// State at the begin of a line.
pub(super) const LINE_START: u8 = 0;
/// State of a line in which a match was found.
pub(super) const MATCHED: u8 = 1;
/// Stands for a state that is not known yet.
pub(super) const UNKNOWN: u8 = u8::MAX;
/// Most bytes of the states of the lazy automaton.
const CACHE_BYTES: usize = 8 << 20;

/// The reason why lines are not counted by a table: it has too many states, or there are too many lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge;

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
pub(super) struct LineAutomaton<'p> {
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
