//! Search for the tokens of a dictionary that contain some bytes, in one pass over the arena, where
//! tokens are stored end to end.

use std::ops::Range;

use memchr::memmem::Finder;
use rayon::prelude::*;
use regex_automata::meta::Regex;

use crate::text::Dictionary;

/// Number of tokens that one task of a dictionary search reads.
const TOKENS_PER_TASK: usize = 1 << 15;

/// Returns the `ids` for which `fits` is true, in ascending order.
pub(in crate::query) fn filtered(ids: Range<u32>, fits: impl Fn(u32) -> bool + Sync) -> Vec<u32> {
    ids.into_par_iter().with_min_len(TOKENS_PER_TASK).filter(|&id| fits(id)).collect()
}

/// Returns the tokens of `ids` that contain `needle`, in ascending order, by a search over the
/// arena.
pub(in crate::query) fn tokens_containing(
    dictionary: &Dictionary,
    ids: Range<u32>,
    needle: &[u8],
) -> Vec<u32> {
    let finder = Finder::new(needle);
    let found = |bytes: &[u8]| finder.find(bytes).map(|at| at..at + needle.len());
    tasks(ids).flat_map_iter(|ids| search_range(dictionary, ids, found, (true, true))).collect()
}

/// Returns the tokens of `ids` that contain the text of `finder`, in ascending order. If `is_open`
/// is false in front of it or behind it, a token begins or ends with it.
pub(in crate::query) fn tokens_containing_any_case(
    dictionary: &Dictionary,
    ids: Range<u32>,
    finder: &AnyCaseFinder,
    is_open: (bool, bool),
) -> Vec<u32> {
    // Each task has its own copy, so that tasks do not wait for each other's scratch memory.
    let search = |AnyCaseFinder(regex): &mut AnyCaseFinder, ids: Range<u32>| {
        let found = |bytes: &[u8]| regex.find(bytes).map(|found| found.range());
        search_range(dictionary, ids, found, is_open)
    };
    tasks(ids).map_init(|| finder.clone(), search).flatten_iter().collect()
}

/// A text that is searched for in any case, by Unicode's simple case folding.
#[derive(Debug, Clone)]
pub(in crate::query) struct AnyCaseFinder(Regex);

impl AnyCaseFinder {
    /// Creates a finder of `text`; `None` if it is too long to be searched for.
    pub fn new(text: &str) -> Option<Self> {
        let syntax = regex_automata::util::syntax::Config::new().case_insensitive(true);
        let regex = Regex::builder().syntax(syntax).build(&regex_syntax::escape(text));
        regex.ok().map(Self)
    }
}

/// Returns the ids of each task of a search.
fn tasks(ids: Range<u32>) -> impl IndexedParallelIterator<Item = Range<u32>> {
    let starts: Vec<u32> = ids.clone().step_by(TOKENS_PER_TASK).collect();
    let end_of = move |start: u32| ids.end.min(start.saturating_add(TOKENS_PER_TASK as u32));
    starts.into_par_iter().map(move |start| start..end_of(start))
}

/// Returns the tokens of `ids` with a place that `find` finds, at their border where `is_open` is
/// false.
fn search_range(
    dictionary: &Dictionary,
    ids: Range<u32>,
    find: impl Fn(&[u8]) -> Option<Range<usize>>,
    is_open: (bool, bool),
) -> Vec<u32> {
    let offsets = &dictionary.offsets()[..=ids.end as usize];
    let end = offsets[ids.end as usize] as usize;
    let mut at = offsets[ids.start as usize] as usize;
    let mut first_id = ids.start as usize;
    let mut found = Vec::new();
    while let Some(hit) = find(&dictionary.bytes()[at..end]) {
        let hit = at + hit.start..at + hit.end;
        // The last token that starts at or before the hit. Empty tokens before it have the same
        // start.
        first_id += offsets[first_id..].partition_point(|&offset| offset as usize <= hit.start) - 1;
        let token = offsets[first_id] as usize..offsets[first_id + 1] as usize;
        let is_inside = hit.end <= token.end
            && (is_open.0 || hit.start == token.start)
            && (is_open.1 || hit.end == token.end);
        if is_inside {
            found.push(first_id as u32);
            at = token.end;
        } else {
            at = hit.start + 1;
        }
    }
    found
}
