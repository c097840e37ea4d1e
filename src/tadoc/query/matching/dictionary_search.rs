//! Search for the tokens of a dictionary that contain some bytes, in one pass over the arena, where
//! tokens are stored end to end.

use std::ops::Range;

use memchr::memmem::Finder;
use rayon::prelude::*;

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
    let starts: Vec<u32> = ids.clone().step_by(TOKENS_PER_TASK).collect();
    let search = |start: u32| {
        let end = ids.end.min(start.saturating_add(TOKENS_PER_TASK as u32));
        search_range(dictionary, start..end, needle.len(), &finder)
    };
    starts.into_par_iter().flat_map_iter(search).collect()
}

fn search_range(
    dictionary: &Dictionary,
    ids: Range<u32>,
    needle_len: usize,
    finder: &Finder<'_>,
) -> Vec<u32> {
    let offsets = &dictionary.offsets()[..=ids.end as usize];
    let end = offsets[ids.end as usize] as usize;
    let mut at = offsets[ids.start as usize] as usize;
    let mut first_id = ids.start as usize;
    let mut found = Vec::new();
    while let Some(skipped) = finder.find(&dictionary.bytes()[at..end]) {
        let start = at + skipped;
        // The last token that starts at or before the hit. Empty tokens before it have the same
        // start.
        first_id += offsets[first_id..].partition_point(|&offset| offset as usize <= start) - 1;
        let token_end = offsets[first_id + 1] as usize;
        if start + needle_len <= token_end {
            found.push(first_id as u32);
            at = token_end;
        } else {
            at = start + 1;
        }
    }
    found
}
