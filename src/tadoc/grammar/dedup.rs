//! Sharing of repeated segments before the rounds.
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
//! On versioned text this makes the whole build 3-4 times faster, with 1-3 % more elements. On
//! prose it finds nothing. So a sample decides whether it is used. The sample consists of the
//! segments behind a cut whose hash also has the bits of [`SAMPLE_MASK`] clear. This choice depends
//! on content, so the sample shows repetitions at their true rate. The cost is one hash for each
//! token. Segments with equal hashes are compared before they are shared.

use std::ops::Range;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::Grammar;
use super::pair_join::pair;
use super::schedule::BARRIER;
use crate::error::{Error, Result};

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
            let (mut start, end) = (doc[0], doc[1]);
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
