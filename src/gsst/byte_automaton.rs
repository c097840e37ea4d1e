//! A pattern as a deterministic automaton over bytes.
//!
//! ```text
//! %ab%     {0} ─a▶ {0,1} ─b▶ {2}       states: sets of places in the pattern
//!           ▲ └other┘ │a:{0,1}          (KMP's failure links come out of the sets)
//!           └───other─┘
//! ```
//!
//! Subset construction over the places of the pattern, a place inside a character of `_` included.
//! Places before the last reached `%` are dropped: whatever they could still match, the `%` matches
//! too. So patterns without `_` have at most as many states as tokens; those with `_` can have
//! exponentially many and are given up at 256, which fit into a byte.

use std::collections::HashMap;

use super::pattern::{Pattern, Token, is_continuation, num_continuations};

/// An automaton; state 0 is the first.
#[derive(Debug, Clone)]
pub(super) struct ByteAutomaton {
    /// By state and byte the next state.
    next: Vec<[u8; 256]>,
    /// Whether a text that ends in the state matches.
    accepts: Vec<bool>,
    /// Whether the answer is the same whatever follows.
    is_final: Vec<bool>,
}

/// A place: `4 x token + continuation bytes that are missing`.
type Places = Vec<u32>;

impl ByteAutomaton {
    /// The automaton of `pattern`, where it has no more than 256 states.
    pub(super) fn new(pattern: &Pattern) -> Option<Self> {
        let tokens = pattern.tokens();
        let mut automaton = Self { next: Vec::new(), accepts: Vec::new(), is_final: Vec::new() };
        let mut ids: HashMap<Places, u8> = HashMap::new();
        let mut sets: Vec<Places> = Vec::new();
        let mut id_of = |set: Places, sets: &mut Vec<Places>| {
            if let Some(id) = ids.get(&set) {
                return Some(*id);
            }
            let id = u8::try_from(sets.len()).ok()?;
            ids.insert(set.clone(), id);
            sets.push(set);
            Some(id)
        };
        id_of(closed(vec![0], tokens), &mut sets)?;
        let mut state = 0;
        while state < sets.len() {
            let set = sets[state].clone();
            automaton.accepts.push(set.contains(&(4 * tokens.len() as u32)));
            let mut next = [0; 256];
            for byte in 0..=255 {
                let places = set.iter().flat_map(|place| steps(*place, byte, tokens));
                next[usize::from(byte)] = id_of(closed(places.collect(), tokens), &mut sets)?;
            }
            automaton.next.push(next);
            state += 1;
        }
        automaton.is_final = (0..automaton.next.len())
            .map(|state| automaton.next[state].iter().all(|next| usize::from(*next) == state))
            .collect();
        Some(automaton)
    }

    pub(super) fn num_states(&self) -> usize {
        self.next.len()
    }

    #[inline]
    pub(super) fn next(&self, state: u8, byte: u8) -> u8 {
        self.next[usize::from(state)][usize::from(byte)]
    }

    pub(super) fn accepts(&self, state: u8) -> bool {
        self.accepts[usize::from(state)]
    }

    pub(super) fn is_final(&self, state: u8) -> bool {
        self.is_final[usize::from(state)]
    }
}

/// Where a place can be after `byte`.
fn steps(place: u32, byte: u8, tokens: &[Token]) -> Option<u32> {
    let (token, num_missing) = (place / 4, place % 4);
    if num_missing > 0 {
        let after = if num_missing == 1 { 4 * (token + 1) } else { place - 1 };
        return is_continuation(byte).then_some(after);
    }
    match tokens.get(token as usize)? {
        Token::Byte(expected) => (byte == *expected).then_some(place + 4),
        Token::AnyBytes => Some(place),
        Token::AnyCharacter => match num_continuations(byte)? {
            0 => Some(place + 4),
            num_missing => Some(place + num_missing as u32),
        },
    }
}

/// Adds the places behind `%`, drops those before the last one reached, and sorts.
fn closed(mut places: Places, tokens: &[Token]) -> Places {
    let is_any = |place: u32| {
        place.is_multiple_of(4) && tokens.get(place as usize / 4) == Some(&Token::AnyBytes)
    };
    for i in 0..places.len() {
        let mut place = places[i];
        while is_any(place) {
            place += 4;
            places.push(place);
        }
    }
    places.sort_unstable();
    places.dedup();
    if let Some(last) = places.iter().rposition(|place| is_any(*place)) {
        places.drain(..last);
    }
    places
}
