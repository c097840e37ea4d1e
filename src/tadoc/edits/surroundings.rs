//! Bytes around an edit that are written again with it, so that pieces begin and end at cuts.
//!
//! ```text
//! document   … the power lo|ss of …        an insert inside a word
//! kept                   lo|ss             from the last cut before to the first one after
//! ```
//!
//! A window of [`WINDOW_BYTES`] on each side has a cut in nearly every text. If it has none, wider
//! windows up to [`MAX_WINDOW_BYTES`] are read, so an edit reads 8 KiB at most.

use std::ops::Range;

use crate::error::Result;
use crate::text::{TokenizerProfile, first_cut, last_cut};

/// Number of bytes on each side of an edit that are first searched for a cut.
const WINDOW_BYTES: u64 = 48;
/// Factor by which each window is wider than the one before.
const WINDOW_GROWTH: u64 = 9;
/// Most bytes on each side that are searched.
const MAX_WINDOW_BYTES: u64 = 4096;

/// The bytes between two cuts around an edit, before and after it.
pub(super) struct Surroundings {
    seen: Vec<u8>,
    kept: Range<usize>,
    /// Position of the edit in `seen`.
    place: usize,
}

impl Surroundings {
    pub fn before(&self) -> &[u8] {
        &self.seen[self.kept.start..self.place]
    }

    pub fn behind(&self) -> &[u8] {
        &self.seen[self.place..self.kept.end]
    }
}

/// Returns the bytes from the last cut before `range` to its start, and from its end to the first
/// cut after it, in a document of `len_bytes`. `read` appends a range of its bytes. Returns `None`
/// if there is no cut nearby or the bytes cannot be read.
pub(super) fn surroundings(
    profile: TokenizerProfile,
    len_bytes: u64,
    range: &Range<u64>,
    read: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
) -> Option<Surroundings> {
    let mut window = WINDOW_BYTES;
    while window <= MAX_WINDOW_BYTES {
        if let Some(around) = within(profile, len_bytes, range, window, &read).ok()? {
            return Some(around);
        }
        window *= WINDOW_GROWTH;
    }
    None
}

fn within(
    profile: TokenizerProfile,
    len_bytes: u64,
    range: &Range<u64>,
    window: u64,
    read: &impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
) -> Result<Option<Surroundings>> {
    let first = range.start.saturating_sub(window);
    let last = len_bytes.min(range.end.saturating_add(window));
    let mut seen = Vec::with_capacity(2 * window as usize + 16);
    let stays = if range.is_empty() {
        [first..last, last..last]
    } else {
        [first..range.start, range.end..last]
    };
    for range in stays.into_iter().filter(|range| !range.is_empty()) {
        read(range, &mut seen)?;
    }
    let place = (range.start - first) as usize;
    let (before, behind) = seen.split_at(place);
    let start = last_cut(profile, before).or((first == 0).then_some(0));
    let is_end_seen = last == len_bytes;
    let end = first_cut(profile, behind).or(is_end_seen.then_some(behind.len()));
    let (Some(start), Some(num_behind)) = (start, end) else { return Ok(None) };
    Ok(Some(Surroundings { seen, kept: start..place + num_behind, place }))
}
