//! Parcels: rows of one machine, packed as numbers for the machine that adds them up.
//!
//! ```text
//! machine 0   a b: 3   a c: 1   b a: 2     words  0 a  1 b  2 c         each has its own numbers
//! machine 1   a c: 4   b c: 5              words  0 a  1 b  2 c
//!
//! parcel 0    rows that begin with a       machine 0 ─▶ 0 1: 3  0 2: 1 ┐ merged by words
//!                                          machine 1 ─▶ 0 2: 4         ┴─▶ a b: 3   a c: 5
//! parcel 1    rows that begin with b       ...
//! ```
//!
//! A machine counts its own segments. Their vocabulary numbers the words in byte order, and rows ascend by
//! these numbers. The hash of the text of its first word says to which parcel a row belongs, so equal rows of
//! all machines meet in one parcel, and no machine asks another for its numbers. [`ParcelPacker`] writes the
//! rows of a parcel, and at last the words that they use. [`MergedParcels`] merges the words of all machines,
//! which maps the numbers of each to common ones in the same order. Then it merges the rows as numbers.
//! Texts are made of what is left.
//!
//! # Layout
//!
//! A parcel is a set of chunks of about [`CHUNK_BYTES`], in any order. Numbers are LEB128.
//!
//! ```text
//! rows    0 │ head │ words │ count [ids] │ head │ ...      head: words shared with the row before, count
//! lists   2 │ the same, and behind the count as many ids of documents: the first one, then the distances
//! words   1 │ number │ bytes │ text │ number │ ...         numbers: the first one, then distances less 1
//! ```
//!
//! A head is one byte: in its low half the words that the row shares with the row before it in the chunk, in
//! its high half the count. 15 says that a number with the rest follows. The first word that is not shared is
//! written as its distance to that of the row before, less 1. A sequence of three words takes 5 to 7 bytes.
//!
//! O(rows) to pack, O(rows * log machines + words * log words) to merge. A place that merges a parcel holds its
//! chunks and words. Ours; a merge of sorted runs.

mod merging;
mod packing;

pub use merging::{MergedParcels, MergedRows, NamedChunk};
pub use packing::{Packed, ParcelPacker};

/// Bytes of a chunk, after which another one begins.
const CHUNK_BYTES: usize = 1 << 10;
/// First byte of a chunk of rows with counts.
const COUNTS: u8 = 0;
/// First byte of a chunk of words.
const WORDS: u8 = 1;
/// First byte of a chunk of rows with lists of documents.
const LISTS: u8 = 2;
/// Half of a head that says that more follows.
const MORE: u64 = 15;

#[cfg(test)]
mod tests;
