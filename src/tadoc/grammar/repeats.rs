//! Repeats of many tokens, each of which becomes a rule at once: segments that are shared before the
//! rounds, and longer repeats of what remains after them.
//!
//! # Shared segments
//!
//! In this module a segment is a short range of a document's tokens, not a segment of a corpus. A
//! document is cut behind a token if a hash of the token and its left neighbour selects the place
//! (one of [`CUT_MASK`] + 1 places on average). So identical text is cut identically wherever it
//! occurs. A segment that occurs twice or more becomes a rule, and its body is compressed once:
//!
//! ```text
//! documents   a b c | d e f | a b c | g h      (| cuts)
//! symbols     S d e f S g h BARRIER   a b c BARRIER      S = num_terminals
//!             └── documents ──┘       └ body of S ┘
//! ```
//!
//! On versioned text this makes the whole build 3-4 times faster, with 1-3 % more elements. On prose it finds nothing.
//! So a sample decides whether it is used. The sample consists of the segments behind a cut whose hash also has the
//! bits of [`SAMPLE_MASK`] clear. This choice depends on content, so the sample shows repetitions at their true rate.
//! The cost is one hash for each token. Segments with equal hashes are compared before they are shared.
//!
//! # Repeats after the rounds
//!
//! ```text
//! elements  a b c d x a b c d y c d      after the rounds, hardly any pair stands three times
//! first     - - - - - 0 1 2 - - 2 -      first place of the pair (i, i+1), if it is an earlier one
//! runs                └───────┘   └─┘    first places that ascend: element 5 to 8 are 0 to 3
//! result    R x R y c d,  R = a b c d    a run of two elements is not worth a rule
//! ```
//!
//! A run is an earlier passage and its repeat. Runs are taken from the left. A run is cut where its elements already
//! belong to a rule, and it uses the rule of the earlier passage if it has the whole of it. This replaces rounds at
//! threshold 2, which are slower: they build a passage of n elements pair by pair in log n rounds.
//!
//! Finding the runs is parallel. Taking them is serial, but it reads and marks only the elements in
//! runs. The result depends neither on the number of threads nor on the ids that pairs have.
//! Complexity: O(n) for n elements. Memory: 8 bytes for each element.

use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};

use super::Grammar;
use super::pair_join::{BARRIER, PairId, SEEN_ONCE, ids_per_owner, pair};

/// Least number of elements of a repeat.
const LEAST_LEN: usize = 3;

/// Number of elements that a thread searches for runs at a time.
const PIECE_LEN: usize = 1 << 16;

/// Mark of an element that is in no repeat.
const FREE: u32 = 0;

/// Mark of an element of a repeat behind its first one, which has the number of its body plus 2.
const INSIDE: u32 = 1;
const FIRST_NUMBER: u32 = 2;

/// Mark of a pair without an earlier place.
const NOWHERE: u32 = u32::MAX;

/// Bodies of the rules that repeats became, stored one after the other.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    symbols: Vec<u32>,
    ends: Vec<u32>,
}

impl Repeats {
    /// Returns the bodies, in the order of their ids.
    pub(super) fn bodies(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        (0..self.ends.len()).map(|body| &self.symbols[self.range(body)])
    }

    /// Returns the number of symbols of all bodies.
    pub(super) fn num_symbols(&self) -> usize {
        self.symbols.len()
    }

    fn push(&mut self, body: &[u32]) {
        self.symbols.extend_from_slice(body);
        self.ends.push(self.symbols.len() as u32);
    }

    fn range(&self, body: usize) -> Range<usize> {
        let start = body.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[body] as usize
    }
}

/// Elements from `target` on that equal those from `source` on, which is before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Run {
    source: usize,
    target: usize,
    len: usize,
}

/// Replaces repeats in `symbols` by rules with the ids from `first_rule` on, and returns their
/// bodies. `pair_ids` has the id of the pair that begins at each symbol, or [`SEEN_ONCE`]. Equal
/// ids mean equal pairs, and pairs with barriers have none.
pub(super) fn replace_repeats(symbols: &mut Vec<u32>, mut pair_ids: Vec<PairId>, first_rule: u32) -> Repeats {
    let runs = runs(&pair_ids, &first_places(&pair_ids));
    // The ids are needed no more. Their memory is used for the marks.
    pair_ids.fill(FREE);
    let mut marks = pair_ids;
    let mut repeats = Repeats::default();
    let mut end = 0;
    for run in runs {
        end = take(run.behind(end), symbols, &mut marks, &mut repeats).max(end);
    }
    rewrite(symbols, &marks, &repeats, first_rule);
    repeats
}

impl Run {
    /// Returns the part whose target begins at `start` or behind it.
    fn behind(self, start: usize) -> Self {
        self.without(start.saturating_sub(self.target).min(self.len))
    }

    /// Returns the run without its first `num` elements.
    fn without(self, num: usize) -> Self {
        Self { source: self.source + num, target: self.target + num, len: self.len - num }
    }
}

/// Makes rules of a run, from the left, and marks their elements. Returns the end of the last
/// target, or 0 if there is none.
fn take(mut run: Run, symbols: &[u32], marks: &mut [u32], repeats: &mut Repeats) -> usize {
    let mut end = 0;
    while run.len >= LEAST_LEN {
        let Some(len) = repeat_at(run, symbols, marks, repeats) else {
            run = run.without(1);
            continue;
        };
        marks[run.target] = marks[run.source];
        marks[run.target + 1..run.target + len].fill(INSIDE);
        run = run.without(len);
        end = run.target;
    }
    end
}

/// Returns the length of the repeat at the start of `run`: a new one, or the whole of one that
/// already begins at its source.
fn repeat_at(run: Run, symbols: &[u32], marks: &mut [u32], repeats: &mut Repeats) -> Option<usize> {
    let Run { source, target, .. } = run;
    match marks[source] {
        FREE => {
            let limit = run.len.min(target - source);
            let free = marks[source..source + limit].iter().take_while(|&&mark| mark == FREE);
            let len = Some(free.count()).filter(|&len| len >= LEAST_LEN)?;
            marks[source] = FIRST_NUMBER + repeats.ends.len() as u32;
            marks[source + 1..source + len].fill(INSIDE);
            repeats.push(&symbols[source..source + len]);
            Some(len)
        }
        INSIDE => None,
        number => {
            let len = repeats.range((number - FIRST_NUMBER) as usize).len();
            (len <= run.len).then_some(len)
        }
    }
}

/// Replaces the marked elements.
fn rewrite(symbols: &mut Vec<u32>, marks: &[u32], repeats: &Repeats, first_rule: u32) {
    let mut read = 0;
    let mut write = 0;
    while let Some(&mark) = marks.get(read) {
        match mark.checked_sub(FIRST_NUMBER) {
            None => {
                symbols[write] = symbols[read];
                read += 1;
            }
            Some(body) => {
                symbols[write] = first_rule + body;
                read += repeats.range(body as usize).len();
            }
        }
        write += 1;
    }
    symbols.truncate(write);
}

/// Returns the first place of each id. Each owner has a range of the ids and reads all places.
fn first_places(pair_ids: &[PairId]) -> Vec<u32> {
    // SEEN_ONCE becomes 0.
    let num_ids = pair_ids.par_iter().map(|id| id.wrapping_add(1)).max().unwrap_or(0) as usize;
    let mut first_places = vec![NOWHERE; num_ids];
    let ids_per_owner = ids_per_owner(num_ids);
    first_places.par_chunks_mut(ids_per_owner).enumerate().for_each(|(owner, first_places)| {
        let first_id = owner * ids_per_owner;
        for (place, &id) in (0..).zip(pair_ids) {
            if let Some(first) = first_places.get_mut((id as usize).wrapping_sub(first_id)) {
                *first = place.min(*first);
            }
        }
    });
    first_places
}

/// Returns the runs of at least [`LEAST_LEN`] elements, by ascending targets. A run is as long as
/// possible.
fn runs(pair_ids: &[PairId], first_places: &[u32]) -> Vec<Run> {
    let source_of = |place: usize| match pair_ids.get(place) {
        None | Some(&SEEN_ONCE) => NOWHERE,
        Some(&id) => Some(first_places[id as usize]).filter(|&first| (first as usize) < place).unwrap_or(NOWHERE),
    };
    let num_pieces = pair_ids.len().div_ceil(PIECE_LEN);
    let runs_in = |piece: usize| {
        let start = piece * PIECE_LEN;
        let before = start.checked_sub(1).map_or(NOWHERE, source_of);
        runs_that_begin(start..pair_ids.len().min(start + PIECE_LEN), before, source_of)
    };
    (0..num_pieces).into_par_iter().flat_map_iter(runs_in).collect()
}

/// Returns the runs that begin in `range`. They may end behind it. `before` is the source of the
/// place before the range.
fn runs_that_begin(range: Range<usize>, mut before: u32, source_of: impl Fn(usize) -> u32) -> Vec<Run> {
    let mut runs = Vec::new();
    let mut start = None;
    let mut place = range.start;
    loop {
        let source = source_of(place);
        let continues = before != NOWHERE && source == before + 1;
        if !continues {
            if let Some((source, target)) = start.take()
                && place - target + 1 >= LEAST_LEN
            {
                runs.push(Run { source: source as usize, target, len: place - target + 1 });
            }
            start = (source != NOWHERE).then_some((source, place));
        }
        if place >= range.end && (!continues || start.is_none()) {
            return runs;
        }
        before = source;
        place += 1;
    }
}

/// A place is a cut if its hash has these bits clear. Segments then have 32 tokens on average. (16
/// to 64 were measured within 2 % of each other in size and speed.)
const CUT_MASK: u64 = 31;

/// A segment belongs to the sample if the hash of its cut has these bits clear, 1 in 8.
const SAMPLE_MASK: u64 = 7 << 40;

/// Number of tokens below which all segments are the sample.
const SMALL_SAMPLE: usize = 1 << 18;

/// Number of tokens that a thread samples at a time.
const RANGE_LEN: usize = 1 << 16;

/// Greatest share of distinct tokens in the sample at which sharing pays (versioned text 0.24-0.35,
/// logs 0.84-0.96, prose 0.97-0.99).
const MAX_UNIQUE_SHARE: f64 = 0.6;

/// Greatest number of threads that look for equal segments. Each of them reads all hashes.
const MAX_OWNERS: usize = 8;

/// Number of documents, and of bodies of shared segments, that a thread writes at a time.
const MIN_DOCS: usize = 64;
const BODIES_AT_A_TIME: usize = 1 << 14;

/// Greatest number of tokens in one segment of a corpus. Ids and positions are 32-bit.
const MAX_TOKENS: usize = 1 << 31;

/// Choice of whether repeated segments are shared before the rounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dedup {
    /// A sample decides.
    #[default]
    Auto,
    /// Segments are always shared.
    On,
    /// Segments are never shared.
    Off,
}

/// Documents, then bodies of shared segments, each ended by a barrier.
pub(super) struct Shared {
    pub(super) symbols: Vec<u32>,
    pub(super) num_segments: u32,
}

impl Shared {
    /// Returns a finished grammar in this form. Its rules become the segments.
    pub(super) fn from_grammar(grammar: &Grammar) -> Self {
        let num_rules = grammar.num_rules();
        // Rule r has id num_terminals + r in the grammar. Segment k has num_terminals + k, without
        // the root.
        let renumber = |&e: &u32| if e < grammar.num_terminals { e } else { e - 1 };
        let mut symbols = Vec::with_capacity(grammar.symbols.len() + grammar.num_docs() + num_rules);
        let docs = grammar.doc_offsets.windows(2).map(|doc| doc[0] as usize..doc[1] as usize);
        let rules = grammar.rule_ids().skip(1).map(|rule_id| grammar.rule(rule_id));
        for elements in docs.map(|doc| &grammar.root()[doc]).chain(rules) {
            symbols.extend(elements.iter().map(renumber));
            symbols.push(BARRIER);
        }
        Self { symbols, num_segments: num_rules as u32 - 1 }
    }
}

/// Replaces repeated segments by symbols from `num_terminals` on, if `dedup` and the sample allow
/// it.
pub(super) fn share_segments(
    tokens: Vec<u32>,
    doc_offsets: &[usize],
    num_terminals: u32,
    dedup: Dedup,
) -> Result<Shared> {
    if tokens.len() > MAX_TOKENS {
        return Err(Error::Capacity {
            what: "tokens of one block",
            requested: tokens.len() as u64,
            limit: MAX_TOKENS as u64,
            knob: "nothing: choose a smaller block size",
        });
    }
    let is_worthwhile = || unique_share(&tokens, doc_offsets) <= MAX_UNIQUE_SHARE;
    if dedup == Dedup::On || dedup == Dedup::Auto && is_worthwhile() {
        return Ok(share(&tokens, doc_offsets, num_terminals));
    }
    Ok(Shared { symbols: with_barriers(tokens, doc_offsets), num_segments: 0 })
}

/// Inserts a barrier behind every document, in place.
fn with_barriers(mut tokens: Vec<u32>, doc_offsets: &[usize]) -> Vec<u32> {
    let num_docs = doc_offsets.len() - 1;
    tokens.resize(tokens.len() + num_docs, BARRIER);
    for doc in (0..num_docs).rev() {
        tokens.copy_within(doc_offsets[doc]..doc_offsets[doc + 1], doc_offsets[doc] + doc);
        tokens[doc_offsets[doc + 1] + doc] = BARRIER;
    }
    tokens
}

/// Returns the segments of all documents, in order. No segment is empty.
fn cut(tokens: &[u32], doc_offsets: &[usize]) -> Vec<Range<usize>> {
    doc_offsets
        .par_windows(2)
        .flat_map_iter(|doc| {
            let mut start = doc[0];
            let end = doc[1];
            std::iter::from_fn(move || {
                let segment = start..next_cut(tokens, start, end);
                start = segment.end;
                (!segment.is_empty()).then_some(segment)
            })
        })
        .collect()
}

/// Returns the end of the segment that begins at `start`. It is at most `end`. The segment has at
/// least two tokens, unless `end` comes first.
fn next_cut(tokens: &[u32], start: usize, end: usize) -> usize {
    let cut = tokens[start..end].windows(2).position(|pair| cut_hash(pair) & CUT_MASK == 0);
    cut.map_or(end, |before| start + before + 2)
}

/// Returns the hash of the two tokens before a place. It decides whether the place is a cut, and
/// whether the segment behind it belongs to the sample.
#[inline]
fn cut_hash(pair: &[u32]) -> u64 {
    mix(u64::from(pair[0]) << 32 | u64::from(pair[1]))
}

fn segment_hash(tokens: &[u32]) -> u64 {
    let (pairs, last) = tokens.as_chunks();
    let pairs = pairs.iter().map(|&[left, right]| pair(left, right));
    let values = pairs.chain(last.iter().map(|&token| u64::from(token)));
    mix(values
        .fold(tokens.len() as u64, |hash, value| (hash.rotate_left(29) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15)))
}

fn mix(value: u64) -> u64 {
    let mixed = value.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed ^ mixed >> 32
}

/// Returns the share of the sampled tokens that lie in the first occurrence of their segment.
fn unique_share(tokens: &[u32], doc_offsets: &[usize]) -> f64 {
    let mask = if tokens.len() < SMALL_SAMPLE { CUT_MASK } else { CUT_MASK | SAMPLE_MASK };
    let sampled: Vec<(u64, usize)> = (0..tokens.len().div_ceil(RANGE_LEN))
        .into_par_iter()
        .flat_map_iter(|range| {
            let first = range * RANGE_LEN;
            let pairs = tokens[first..tokens.len().min(first + RANGE_LEN + 1)].windows(2);
            let starts = pairs.enumerate().filter(|(_, pair)| cut_hash(pair) & mask == 0);
            starts.map(move |(before, _)| sampled_segment(tokens, doc_offsets, first + before + 2))
        })
        .collect();
    let num_sampled: usize = sampled.iter().map(|&(_, len)| len).sum();
    let lengths: FxHashMap<u64, usize> = sampled.into_iter().collect();
    lengths.values().sum::<usize>() as f64 / num_sampled.max(1) as f64
}

/// Returns the hash and length of the segment that begins at `start`.
fn sampled_segment(tokens: &[u32], doc_offsets: &[usize], start: usize) -> (u64, usize) {
    let doc = doc_offsets.partition_point(|&offset| offset <= start);
    let end = doc_offsets.get(doc).copied().unwrap_or(start);
    let segment = &tokens[start..next_cut(tokens, start, end)];
    (segment_hash(segment), segment.len())
}

fn share(tokens: &[u32], doc_offsets: &[usize], num_terminals: u32) -> Shared {
    let segments = cut(tokens, doc_offsets);
    let firsts = first_of_each(tokens, &segments);
    // Symbol of each segment that is the first of several equal ones.
    let mut symbol_of_first = vec![None; segments.len()];
    let mut bodies = Vec::new();
    for (i, &first) in firsts.iter().enumerate() {
        let symbol = &mut symbol_of_first[first as usize];
        if first as usize != i && symbol.is_none() {
            *symbol = Some(num_terminals + bodies.len() as u32);
            bodies.push(first);
        }
    }
    let symbol_for = |segment: usize| symbol_of_first[firsts[segment] as usize];
    let documents = doc_offsets.par_windows(2).with_min_len(MIN_DOCS).fold(Vec::new, |mut to, doc| {
        let first = segments.partition_point(|segment| segment.start < doc[0]);
        let from_doc = segments[first..].iter().take_while(|segment| segment.start < doc[1]);
        for (segment, tokens_of) in (first..).zip(from_doc) {
            match symbol_for(segment) {
                Some(symbol) => to.push(symbol),
                None => to.extend_from_slice(&tokens[tokens_of.clone()]),
            }
        }
        to.push(BARRIER);
        to
    });
    let from_bodies = bodies.par_chunks(BODIES_AT_A_TIME).map(|bodies| {
        let mut to = Vec::new();
        for &body in bodies {
            to.extend_from_slice(&tokens[segments[body as usize].clone()]);
            to.push(BARRIER);
        }
        to
    });
    let parts: Vec<Vec<u32>> = documents.chain(from_bodies).collect();
    Shared { symbols: parts.concat(), num_segments: bodies.len() as u32 }
}

/// Returns for each segment the index of the first equal one. The index is its own if it is the
/// first, has one token, or has a hash collision.
fn first_of_each(tokens: &[u32], segments: &[Range<usize>]) -> Vec<u32> {
    let hashes: Vec<u64> = segments.par_iter().map(|s| segment_hash(&tokens[s.clone()])).collect();
    let firsts: Vec<AtomicU32> = segments.par_iter().map(|_| AtomicU32::new(0)).collect();
    let num_owners = rayon::current_num_threads().min(MAX_OWNERS);
    (0..num_owners).into_par_iter().with_max_len(1).for_each(|owner| {
        let mut first_with_hash: FxHashMap<u64, u32> = FxHashMap::default();
        for (i, (segment, &hash)) in (0..).zip(segments.iter().zip(&hashes)) {
            if (hash >> 32) as usize % num_owners == owner {
                let is_alone = segment.len() < 2;
                let first = if is_alone { i } else { *first_with_hash.entry(hash).or_insert(i) };
                firsts[i as usize].store(first, Relaxed);
            }
        }
    });
    let checked = segments.par_iter().zip(firsts).enumerate().map(|(i, (segment, first))| {
        let first = first.into_inner();
        let is_equal = tokens[segments[first as usize].clone()] == tokens[segment.clone()];
        if is_equal { first } else { i as u32 }
    });
    checked.collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use crate::grammar::pair_join::BARRIER;

    use super::*;

    /// Returns the ids of pairs that stand twice or more.
    fn ids_from(symbols: &[u32]) -> Vec<PairId> {
        let is_pair = |pair: &[u32]| !pair.contains(&BARRIER);
        let mut counts: HashMap<&[u32], usize> = HashMap::new();
        for pair in symbols.windows(2).filter(|pair| is_pair(pair)) {
            *counts.entry(pair).or_default() += 1;
        }
        let mut ids = HashMap::new();
        let pairs = symbols.windows(2).map(|pair| {
            let next_id = ids.len() as PairId;
            match counts.get(pair) {
                Some(2..) => *ids.entry(pair).or_insert(next_id),
                _ => SEEN_ONCE,
            }
        });
        let mut pair_ids: Vec<PairId> = pairs.collect();
        pair_ids.resize(symbols.len(), SEEN_ONCE);
        pair_ids
    }

    /// Returns the runs of ids that have an earlier place, place by place.
    fn expected_runs(pair_ids: &[PairId]) -> Vec<Run> {
        let first_for = |place: usize| {
            let id = pair_ids[place];
            let first = pair_ids.iter().position(|&other| other == id);
            first.filter(|&first| id != SEEN_ONCE && first < place)
        };
        let mut runs: Vec<Run> = Vec::new();
        for target in 0..pair_ids.len() {
            let Some(source) = first_for(target) else { continue };
            match runs.last_mut() {
                Some(run) if run.target + run.len - 1 == target && run.source + run.len - 1 == source => {
                    run.len += 1;
                }
                _ => runs.push(Run { source, target, len: 2 }),
            }
        }
        runs.retain(|run| run.len >= LEAST_LEN);
        runs
    }

    fn check(symbols: &[u32], first_rule: u32) {
        let pair_ids = ids_from(symbols);
        assert_eq!(runs(&pair_ids, &first_places(&pair_ids)), expected_runs(&pair_ids));
        let mut replaced = symbols.to_vec();
        let repeats = replace_repeats(&mut replaced, pair_ids, first_rule);
        let bodies: Vec<&[u32]> = repeats.bodies().collect();
        let expanded = replaced.iter().flat_map(|&symbol| match symbol.checked_sub(first_rule) {
            Some(body) if symbol != BARRIER => bodies[body as usize].to_vec(),
            _ => vec![symbol],
        });
        assert!(expanded.eq(symbols.iter().copied()));
        for (body, symbol) in bodies.iter().zip(first_rule..) {
            assert!(body.len() >= LEAST_LEN && body.iter().all(|&symbol| symbol < first_rule));
            assert!(replaced.iter().filter(|&&other| other == symbol).count() >= 2);
        }
    }

    fn symbols() -> impl Strategy<Value = Vec<u32>> {
        let copies = prop::collection::vec((0..100usize, 1..20usize, 0..9u32), 0..30);
        copies.prop_map(|copies| {
            let mut symbols = vec![0, 1, 2, 3, BARRIER];
            for (start, len, other) in copies {
                let start = start % symbols.len();
                let end = (start + len).min(symbols.len());
                symbols.extend_from_within(start..end);
                symbols.push(if other == 8 { BARRIER } else { other });
            }
            symbols
        })
    }

    proptest! {
        #[test]
        fn repeats_expand_to_the_input(symbols in symbols()) {
            check(&symbols, 100);
        }
    }

    #[test]
    fn a_passage_becomes_one_rule() {
        let mut symbols = vec![0, 1, 2, 3, 9, 0, 1, 2, 3, 8, 2, 3];
        let pair_ids = ids_from(&symbols);
        let repeats = replace_repeats(&mut symbols, pair_ids, 10);
        assert_eq!(symbols, [10, 9, 10, 8, 2, 3]);
        assert!(repeats.bodies().eq([[0, 1, 2, 3]]));
    }

    #[test]
    fn runs_cross_pieces() {
        let passage: Vec<u32> = (0..PIECE_LEN as u32 + 9).collect();
        for gap in [1, 2, PIECE_LEN - 10, PIECE_LEN] {
            let symbols = [&passage[..], &vec![BARRIER; gap], &passage].concat();
            let pair_ids = ids_from(&symbols);
            let expected = Run { source: 0, target: passage.len() + gap, len: passage.len() };
            assert_eq!(runs(&pair_ids, &first_places(&pair_ids)), [expected]);
            check_length(&symbols, gap + 2);
        }
    }

    fn check_length(symbols: &[u32], expected: usize) {
        let mut replaced = symbols.to_vec();
        replace_repeats(&mut replaced, ids_from(symbols), 1 << 20);
        assert_eq!(replaced.len(), expected);
    }
}
