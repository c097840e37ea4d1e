//! Table of repeated passages of text, whose token ids are copied instead of looked up.
//!
//! ```text
//! text   ..word\nto be or not\nto be\nThe ..      a passage begins and ends between a word and a
//!              |--- passage ----|                 line break: its tokens depend only on its bytes
//! ids    .. |17 3 25| ..                          copied when an equal passage is found
//! ```
//!
//! A passage is a range of the piece that one thread tokenizes. The table is small and lossy: a
//! slot holds the last passage whose first bytes have its hash. Bytes are compared before ids are
//! copied. The search stops when it finds little. It needs O(bytes) time and at most 512 KiB for
//! each piece.
//!
//! Share of versioned text that was found, in experiments (this version: 67 %): passages of at
//! least 64 bytes 70 % with twice as many look-ups, of at least 200 bytes 62 %; ends chosen by a
//! hash of the bytes before them 58 to 65 %.

use std::ops::Range;

use memchr::memchr_iter;

/// Number of bytes at the start of a passage that select its slot.
const KEY_BYTES: usize = 32;

/// Least length of a passage. A shorter one is not worth a look-up.
const MIN_PASSAGE_BYTES: usize = 128;

/// Number of text bytes for each slot.
const TEXT_BYTES_PER_SLOT: usize = 256;
const MAX_SLOTS: usize = 1 << 15;

/// Number of bytes after which the benefit of the search is checked.
const TRIAL_BYTES: usize = 1 << 19;

/// The search continues while it finds at least one byte in this many.
const LEAST_FOUND: usize = 8;

/// A passage of text and the range of its ids.
#[derive(Clone, Copy, Default)]
struct TextSpan {
    start: u32,
    len_bytes: u32,
    first_id: u32,
    num_ids: u32,
}

/// Table of the passages of one piece.
pub(super) struct Repeats<'t> {
    text: &'t [u8],
    slots: Vec<TextSpan>,
    looked_for_bytes: usize,
    found_bytes: usize,
}

impl<'t> Repeats<'t> {
    /// Creates an empty table for a piece of `text` with `piece_bytes` bytes.
    pub(super) fn new(text: &'t [u8], piece_bytes: usize) -> Self {
        let num_slots = (piece_bytes / TEXT_BYTES_PER_SLOT).next_power_of_two().min(MAX_SLOTS);
        let slots = vec![TextSpan::default(); num_slots];
        Self { text, slots, looked_for_bytes: 0, found_bytes: 0 }
    }

    /// Returns true if the search is worth continuing.
    pub(super) fn is_worthwhile(&self) -> bool {
        self.looked_for_bytes < TRIAL_BYTES
            || self.found_bytes * LEAST_FOUND >= self.looked_for_bytes
    }

    /// Finds an earlier passage that occurs again at `at` and ends before `end`. Returns its length
    /// in bytes and the range of its ids.
    #[inline]
    pub(super) fn find(&mut self, at: usize, end: usize) -> Option<(usize, Range<usize>)> {
        let passage = self.slots[self.slot_idx(at)?];
        let len_bytes = passage.len_bytes as usize;
        // Compare the line break behind the passage too, so that the passage ends in the same way.
        let again = self.text[at..end].get(..=len_bytes)?;
        if len_bytes == 0 || again != &self.text[passage.start as usize..][..=len_bytes] {
            return None;
        }
        self.found_bytes += len_bytes;
        self.looked_for_bytes += len_bytes;
        let first_id = passage.first_id as usize;
        Some((len_bytes, first_id..first_id + passage.num_ids as usize))
    }

    /// Returns the end of the passage that begins at `at`, if it ends before `end`.
    #[inline]
    pub(super) fn passage_end(&self, at: usize, end: usize) -> Option<usize> {
        let from = at + MIN_PASSAGE_BYTES;
        let rest = self.text[..end].get(from..)?;
        let mut breaks = memchr_iter(b'\n', rest).map(|offset| from + offset);
        breaks.find(|&line_break| self.text[line_break - 1].is_ascii_alphanumeric())
    }

    /// Stores the ids of the passage `range`.
    #[inline]
    pub(super) fn insert(&mut self, range: Range<usize>, ids: Range<usize>) {
        self.looked_for_bytes += range.len();
        // Text with many empty separators may have more ids than bytes.
        if let Some(slot_idx) = self.slot_idx(range.start)
            && let Ok(first_id) = u32::try_from(ids.start)
        {
            self.slots[slot_idx] = TextSpan {
                start: range.start as u32,
                len_bytes: range.len() as u32,
                first_id,
                num_ids: ids.len() as u32,
            };
        }
    }

    /// Returns the slot of a passage that begins at `at`, or `None` near the end of the text.
    #[inline]
    fn slot_idx(&self, at: usize) -> Option<usize> {
        let (chunks, _) = self.text[at..].first_chunk::<KEY_BYTES>()?.as_chunks();
        let hash = chunks.iter().fold(0, |hash: u64, &chunk| {
            (hash.rotate_left(23) ^ u64::from_le_bytes(chunk)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        Some((hash >> 40) as usize & (self.slots.len() - 1))
    }
}
