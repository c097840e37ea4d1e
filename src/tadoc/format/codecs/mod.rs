//! Codecs of the sections: dictionary, coded tokens, documents, document lengths, word counts, word lists,
//! grammar; and the groups of tokens that codecs of the dictionary read alone.
//!
//! ```text
//! first tokens   fish     needle   plant        "pin" can be in the group of "needle" alone
//! places         │ 0 ──── │ 907 ── │ 2,014 ──── │   of the section of the dictionary
//! ```

pub(in crate::format) mod coded_tokens;
pub(in crate::format) mod dictionary;
pub(in crate::format) mod documents;
pub(in crate::format) mod grammar;
pub(in crate::format) mod grammar_stream;
pub(in crate::format) mod packed_grammar;
pub(in crate::format) mod word_lists;

use std::ops::Range;

use crate::error::Result;
use crate::format::cursor::{Cursor, Origin, push_varint};

/// First token of each group.
#[derive(Debug, Default)]
pub(in crate::format) struct FirstTokens {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl FirstTokens {
    fn push(&mut self, token: &[u8]) {
        self.bytes.extend_from_slice(token);
        self.ends.push(self.bytes.len());
    }

    fn get(&self, group: usize) -> &[u8] {
        let start = group.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[group]]
    }

    /// Refuses the groups at the `place` unless the first `num_groups` of them, which have words, ascend.
    fn check_order(&self, place: Origin<'_>, num_groups: usize) -> Result<()> {
        if (0..num_groups).map(|group| self.get(group)).is_sorted_by(|a, b| a < b) {
            return Ok(());
        }
        Err(place.fault(0, "expected groups of words in ascending order"))
    }

    /// Returns the only one of the first `num_groups` groups that can have `word`.
    fn group_of(&self, num_groups: usize, word: &[u8]) -> Option<usize> {
        let mut low = 0;
        let mut high = num_groups;
        while low < high {
            let middle = low.midpoint(high);
            (low, high) = if self.get(middle) <= word { (middle + 1, high) } else { (low, middle) };
        }
        low.checked_sub(1)
    }

    fn memory_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&self.ends[..])
    }
}

/// Place of each group in the section of the dictionary, with its checksum where it is read alone.
#[derive(Debug, Default)]
pub(in crate::format) struct Places {
    start: u64,
    ends: Vec<u64>,
    checksums: Vec<u32>,
}

impl Places {
    /// Appends a group of `len` bytes.
    fn push(&mut self, len: u64) {
        let end = self.ends.last().copied().unwrap_or(self.start);
        self.ends.push(end.saturating_add(len));
    }

    /// Appends the checksum of the next group.
    fn push_checksum(&mut self, crc32c: u32) {
        self.checksums.push(crc32c);
    }

    /// Places the first group at `start`, and the others behind it.
    fn move_to(&mut self, start: u64) {
        self.ends.iter_mut().for_each(|end| *end = end.saturating_add(start));
        self.start = start;
    }

    /// Returns the end of the last group.
    fn end(&self) -> u64 {
        self.ends.last().copied().unwrap_or(self.start)
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn range(&self, group: usize) -> Range<u64> {
        let start = group.checked_sub(1).map_or(self.start, |before| self.ends[before]);
        start..self.ends[group]
    }

    /// Checks the `bytes` of `group`, which lie at `place`, if there are checksums.
    fn verify(&self, place: Origin<'_>, group: usize, bytes: &[u8]) -> Result<()> {
        self.checksums.get(group).map_or(Ok(()), |&crc32c| place.verify(bytes, crc32c))
    }

    /// Returns the bytes of `group` in those of the section at `place`.
    fn part<'a>(&self, place: Origin<'_>, bytes: &'a [u8], group: usize) -> Result<&'a [u8]> {
        let Range { start, end } = self.range(group);
        let part = bytes.get(start as usize..end as usize);
        part.ok_or_else(|| place.fault(0, "expected all groups inside the section"))
    }

    fn memory_bytes(&self) -> usize {
        size_of_val(&self.ends[..]) + size_of_val(&self.checksums[..])
    }
}

/// Appends the length and the checksum of `group` to a head.
fn push_group(head: &mut Vec<u8>, group: &[u8]) {
    push_varint(head, group.len() as u64);
    head.extend(crc32c::crc32c(group).to_le_bytes());
}

/// Reads what [`push_group`] wrote.
fn read_group(places: &mut Places, cursor: &mut Cursor<'_>) -> Result<()> {
    places.push(cursor.varint()?);
    places.push_checksum(cursor.u32()?);
    Ok(())
}
