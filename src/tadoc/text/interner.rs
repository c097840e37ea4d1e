//! Hash table of one thread that numbers tokens in order of their first occurrence.
//!
//! ```text
//! slots    | tag, id+1 | 0 | 0 | tag, id+1 | ...   8 bytes each, at most half of them used
//!                 |
//! entries  | key of 16 bytes, start, length and class | ...   24 bytes each, by id
//!                                |
//! text     ...token...           the first occurrence, not copied
//! ```
//!
//! Tokens are processed in batches: first all keys and hashes of a batch, then all probes. So the cache misses of
//! neighbouring tokens overlap. A token of up to 16 bytes is compared by its key alone. A longer token has a digest in
//! its key and is compared in the text. Frequent tokens occur early, so they get small ids and share few cache lines of
//! `entries`. Each table has a new random seed, so that no text can be made to collide. Ids do not depend on the seed.
//!
//! Token by token, with entries in the slots, or with keys computed in `push`, this is slower. A
//! smaller load gains nothing.
//!
//! # Repeats
//!
//! The token ids of repeated passages of text are copied instead of looked up.
//!
//! ```text
//! text   ..word\nto be or not\nto be\nThe ..      a passage begins and ends between a word and a
//!              |--- passage ----|                 line break: its tokens depend only on its bytes
//! ids    .. |17 3 25| ..                          copied when an equal passage is found
//! ```
//!
//! A passage is a range of the piece that one thread tokenizes. The table is small and lossy: a slot holds the last
//! passage whose first bytes have its hash. Bytes are compared before ids are copied. The search stops when it finds
//! little. It needs O(bytes) time and at most 512 KiB for each piece.
//!
//! Shorter passages find little more with twice as many look-ups, longer ones find less. So do
//! passages whose ends are chosen by a hash of the bytes before them.

use std::cmp::Ordering;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::ops::Range;

use memchr::memchr_iter;

use super::segments::Span;

/// Number of tokens that are looked up together.
const BATCH: usize = 128;
/// Number of bytes of a token that form its key.
const KEY_BYTES: usize = 16;
/// Bit that is set in the length of a word.
const WORD_BIT: u32 = 1 << 31;
/// Number of text bytes for each initial slot, about the final need of prose.
const TEXT_BYTES_PER_SLOT: usize = 64;
const MIN_SLOTS: usize = 1 << 10;
const MAX_SLOTS_AT_START: usize = 1 << 18;

/// A token and its first occurrence in the text.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Entry {
    /// The first 8 bytes, and the next 8 bytes, or a digest of all bytes if there are more.
    key: [u64; 2],
    start: u32,
    len_class: u32,
}

impl Entry {
    /// Returns true if the token is a word.
    pub(super) fn is_word(&self) -> bool {
        self.len_class & WORD_BIT != 0
    }

    /// Returns the first 8 bytes as a number with the same order. Tokens with equal numbers may
    /// differ.
    pub(super) fn order_prefix(&self) -> u64 {
        self.key[0].swap_bytes()
    }

    /// Compares two tokens by their bytes. They may be from different tables of the same text.
    pub(super) fn compare(&self, other: &Self, text: &[u8]) -> Ordering {
        let by_prefix = self.order_prefix().cmp(&other.order_prefix());
        by_prefix.then_with(|| {
            if self.is_short() && other.is_short() {
                let tails = self.key[1].swap_bytes().cmp(&other.key[1].swap_bytes());
                tails.then(self.len().cmp(&other.len()))
            } else {
                self.bytes(text).cmp(other.bytes(text))
            }
        })
    }

    /// Appends the token's bytes. `text` must be the text that was interned.
    pub(super) fn append_to(&self, arena: &mut Vec<u8>, text: &[u8]) {
        if self.is_short() {
            arena.extend_from_slice(&self.key_bytes()[..self.len()]);
        } else {
            arena.extend_from_slice(self.bytes(text));
        }
    }

    fn is_same(&self, other: &Self, text: &[u8]) -> bool {
        self.key == other.key
            && self.len_class == other.len_class
            && (self.is_short() || self.bytes(text) == other.bytes(text))
    }

    fn len(&self) -> usize {
        (self.len_class & !WORD_BIT) as usize
    }

    fn is_short(&self) -> bool {
        self.len() <= KEY_BYTES
    }

    fn key_bytes(&self) -> [u8; KEY_BYTES] {
        (u128::from(self.key[1]) << 64 | u128::from(self.key[0])).to_le_bytes()
    }

    fn bytes<'t>(&self, text: &'t [u8]) -> &'t [u8] {
        &text[self.start as usize..][..self.len()]
    }
}

/// Start and length of a token, with its class in the length, as stored in a batch.
type PackedSpan = (u32, u32);

/// A token that is being looked up.
#[derive(Clone, Copy, Default)]
struct Lookup {
    key: [u64; 2],
    len_class: u32,
    /// Id in the slot where the search begins, or a number without an entry if only the search can
    /// find the id. It is loaded ahead. An insert may make it stale, but then it belongs to another
    /// token, and the comparison detects this.
    hint: u32,
}

/// Table that gives each distinct token of one text a number, see the [module documentation](self).
pub(super) struct Interner<'t> {
    text: &'t [u8],
    slots: Vec<u64>,
    entries: Vec<Entry>,
    seed: [u64; 2],
    batch: [PackedSpan; BATCH],
    batch_len: usize,
}

impl<'t> Interner<'t> {
    /// Creates a table for tokens of `text`, which must be shorter than 4 GiB.
    pub(super) fn new(text: &'t [u8]) -> Self {
        let state = RandomState::new();
        let num_slots = (text.len() / TEXT_BYTES_PER_SLOT).clamp(MIN_SLOTS, MAX_SLOTS_AT_START);
        Self {
            text,
            slots: vec![0; num_slots.next_power_of_two()],
            entries: Vec::new(),
            seed: [state.hash_one(0), state.hash_one(1)],
            batch: [(0, 0); BATCH],
            batch_len: 0,
        }
    }

    /// Adds one token. When a batch is full, appends its ids to `ids`.
    #[inline(always)]
    pub(super) fn push(&mut self, span: Span, ids: &mut Vec<u32>) {
        let class = if span.is_word { WORD_BIT } else { 0 };
        self.batch[self.batch_len] = (span.start as u32, (span.end - span.start) as u32 | class);
        self.batch_len += 1;
        if self.batch_len == BATCH {
            self.flush(ids);
        }
    }

    /// Returns the number of added tokens whose ids are not yet in `ids`.
    pub(super) fn num_pending(&self) -> usize {
        self.batch_len
    }

    /// Appends the ids of all tokens added so far.
    #[inline(never)]
    pub(super) fn flush(&mut self, ids: &mut Vec<u32>) {
        let batch = self.batch;
        let batch = &batch[..std::mem::take(&mut self.batch_len)];
        let mut lookups = [Lookup::default(); BATCH];
        for (&span, lookup) in batch.iter().zip(&mut lookups) {
            *lookup = self.prepare(span);
        }
        ids.extend(batch.iter().zip(&lookups).map(|(span, lookup)| self.id(span.0, lookup)));
    }

    /// Returns all tokens, in order of their ids.
    pub(super) fn into_entries(self) -> Vec<Entry> {
        self.entries
    }

    #[inline(always)]
    fn prepare(&self, (start, len_class): PackedSpan) -> Lookup {
        let len = (len_class & !WORD_BIT) as usize;
        let rest = &self.text[start as usize..];
        match (rest.first_chunk::<KEY_BYTES>(), KEY_MASKS.get(len)) {
            (Some(bytes), Some(mask)) => {
                let key = halves(u128::from_le_bytes(*bytes) & mask);
                let slot = self.slots[self.hash(key) as usize & (self.slots.len() - 1)];
                Lookup { key, len_class, hint: (slot as u32).wrapping_sub(1) }
            }
            _ => Lookup { key: self.rare_key(&rest[..len]), len_class, hint: u32::MAX },
        }
    }

    /// Returns the key of a token that is long or near the end of the text.
    #[cold]
    fn rare_key(&self, token: &[u8]) -> [u64; 2] {
        match token.first_chunk() {
            Some(first) if token.len() > KEY_BYTES => [u64::from_le_bytes(*first), self.digest(token)],
            _ => halves(padded(token)),
        }
    }

    #[inline(always)]
    fn id(&mut self, start: u32, lookup: &Lookup) -> u32 {
        match self.entries.get(lookup.hint as usize) {
            Some(entry) if entry.key == lookup.key && entry.len_class == lookup.len_class => lookup.hint,
            _ => self.find_or_insert(Entry { key: lookup.key, start, len_class: lookup.len_class }),
        }
    }

    #[inline(never)]
    fn find_or_insert(&mut self, entry: Entry) -> u32 {
        let hash = self.hash(entry.key);
        let mut slot_idx = hash as usize & (self.slots.len() - 1);
        while self.slots[slot_idx] != 0 {
            let slot = self.slots[slot_idx];
            let id = slot as u32 - 1;
            if (slot >> 32) as u32 == hash && self.entries[id as usize].is_same(&entry, self.text) {
                return id;
            }
            slot_idx = (slot_idx + 1) & (self.slots.len() - 1);
        }
        self.entries.push(entry);
        self.slots[slot_idx] = u64::from(hash) << 32 | self.entries.len() as u64;
        if self.entries.len() * 2 > self.slots.len() {
            self.grow();
        }
        self.entries.len() as u32 - 1
    }

    /// Doubles the number of slots. The tags suffice to place the entries again.
    fn grow(&mut self) {
        let num_slots = self.slots.len() * 2;
        let old = std::mem::replace(&mut self.slots, vec![0; num_slots]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let mut slot_idx = (slot >> 32) as usize & (num_slots - 1);
            while self.slots[slot_idx] != 0 {
                slot_idx = (slot_idx + 1) & (num_slots - 1);
            }
            self.slots[slot_idx] = slot;
        }
    }

    /// Returns the hash of a key. It ignores the length, which would only help tokens that differ
    /// in trailing NULs.
    #[inline(always)]
    fn hash(&self, key: [u64; 2]) -> u32 {
        self.fold(key[0], key[1], self.seed[0]) as u32
    }

    /// Returns the digest of a token longer than a key.
    #[inline(never)]
    fn digest(&self, bytes: &[u8]) -> u64 {
        let (chunks, tail) = bytes.as_chunks::<KEY_BYTES>();
        let chunks = chunks.iter().map(|chunk| u128::from_le_bytes(*chunk));
        chunks
            .chain([padded(tail)])
            .fold(self.seed[0], |digest, chunk| self.fold(chunk as u64, (chunk >> 64) as u64, digest))
    }

    /// Multiplies once and combines the halves of the product, as in wyhash.
    #[inline(always)]
    fn fold(&self, low: u64, high: u64, state: u64) -> u64 {
        let product = u128::from(low ^ state) * u128::from(high ^ self.seed[1]);
        product as u64 ^ (product >> 64) as u64
    }
}

fn halves(key: u128) -> [u64; 2] {
    [key as u64, (key >> 64) as u64]
}

/// Returns up to 16 bytes as a number, padded with zeros.
fn padded(bytes: &[u8]) -> u128 {
    let mut chunk = [0; KEY_BYTES];
    chunk[..bytes.len()].copy_from_slice(bytes);
    u128::from_le_bytes(chunk)
}

/// Masks of the lowest 0 to 16 bytes.
static KEY_MASKS: [u128; KEY_BYTES + 1] = {
    let mut masks = [u128::MAX; KEY_BYTES + 1];
    let mut len = 0;
    while len < KEY_BYTES {
        masks[len] = (1 << (8 * len)) - 1;
        len += 1;
    }
    masks
};

/// Number of bytes at the start of a passage that select its slot.
const PASSAGE_KEY_BYTES: usize = 32;

/// Least length of a passage. A shorter one is not worth a look-up.
const MIN_PASSAGE_BYTES: usize = 128;

/// Number of text bytes for each slot.
const TEXT_BYTES_PER_PASSAGE: usize = 256;
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
        let num_slots = (piece_bytes / TEXT_BYTES_PER_PASSAGE).next_power_of_two().min(MAX_SLOTS);
        let slots = vec![TextSpan::default(); num_slots];
        Self { text, slots, looked_for_bytes: 0, found_bytes: 0 }
    }

    /// Returns true if the search is worth continuing.
    pub(super) fn is_worthwhile(&self) -> bool {
        self.looked_for_bytes < TRIAL_BYTES || self.found_bytes * LEAST_FOUND >= self.looked_for_bytes
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
        let (chunks, _) = self.text[at..].first_chunk::<PASSAGE_KEY_BYTES>()?.as_chunks();
        let hash = chunks.iter().fold(0, |hash: u64, &chunk| {
            (hash.rotate_left(23) ^ u64::from_le_bytes(chunk)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        });
        Some((hash >> 40) as usize & (self.slots.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_like_a_hash_map(
            text in prop::collection::vec(0_u8..3, 1..400),
            spans in prop::collection::vec((any::<u16>(), 0_usize..40, any::<bool>()), 0..600),
        ) {
            let mut interner = Interner::new(&text);
            let mut ids = Vec::new();
            let mut expected = Vec::new();
            let mut slow: HashMap<(&[u8], bool), u32> = HashMap::new();
            for (start, len, is_word) in spans {
                let start = start as usize % text.len();
                let end = (start + len).min(text.len());
                interner.push(Span { start, end, is_word }, &mut ids);
                let next = slow.len() as u32;
                expected.push(*slow.entry((&text[start..end], is_word)).or_insert(next));
                prop_assert_eq!(ids.len() + interner.num_pending(), expected.len());
            }
            interner.flush(&mut ids);
            prop_assert_eq!(ids, expected);
            let entries = interner.into_entries();
            prop_assert_eq!(entries.len(), slow.len());
            for (id, entry) in entries.iter().enumerate() {
                prop_assert_eq!(slow[&(entry.bytes(&text), entry.is_word())], id as u32);
            }
        }
    }

    #[test]
    fn grows_over_many_distinct_tokens() {
        let text: Vec<u8> = (0..50_000_u32).flat_map(u32::to_be_bytes).collect();
        let mut interner = Interner::new(&text);
        let mut ids = Vec::new();
        for round in 0..2 {
            for start in (0..text.len()).step_by(4) {
                interner.push(Span { start, end: start + 4, is_word: true }, &mut ids);
            }
            interner.flush(&mut ids);
            assert_eq!(ids.len(), 50_000 * (round + 1));
        }
        assert!(ids[..50_000].iter().copied().eq(0..50_000));
        assert_eq!(ids[..50_000], ids[50_000..]);
    }
}
