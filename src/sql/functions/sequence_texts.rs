//! Texts of sequences: words joined by one blank, as views.
//!
//! ```text
//! row         a be see      a be seen              another banana split
//! block                                            another banana split  ...
//! view        |a be see     |a be seen             |anot, 20 bytes, at 0
//!              ╰─▶ written where the next row stands then: its first words are there already
//! ```
//!
//! Rows ascend, so that a row often begins as the one before did. A text is written behind the last one that
//! a view points to; one of up to 12 bytes lies in its view, and the next row takes its place. Words of up to
//! 12 bytes lie in their own views and are written as 16 bytes at once, whatever their length.
//! O(bytes). 2.8 times as fast as `StringViewBuilder` with a `String` for each row (21 against 60 ns a row of
//! three words of b-gutenberg-authors, in one process); 1.1 times if every text is checked once more.

#![allow(unsafe_code, reason = "arrays of texts that are made of checked words")]

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::error::{DataFusionError, Result};

use crate::analytics::Sequences;

/// Bytes of a view that are no length: what a text in the view has at most.
const INLINE_BYTES: usize = 12;
/// Written at once for a short word: a blank, the bytes of its view, and what is written over.
const CHUNK_BYTES: usize = 16;
/// A block is closed when it has so many bytes.
const BLOCK_BYTES: usize = 1 << 20;

/// The texts of `rows` of `sequences`, of which `words` are the words.
///
/// # Errors
/// Where one text is longer than a view can say.
pub(super) fn sequence_texts(
    sequences: &Sequences,
    words: &StringViewArray,
    rows: &[usize],
) -> Result<ArrayRef> {
    let mut texts = SequenceTexts::new(words, rows.len());
    for &row in rows {
        texts.push(sequences.words(row))?;
    }
    Ok(Arc::new(texts.finish()))
}

struct SequenceTexts<'a> {
    words: &'a StringViewArray,
    views: Vec<u128>,
    blocks: Vec<Buffer>,
    /// The block at hand, with room behind what is written.
    block: Vec<u8>,
    /// Where the text of the last row lies, a blank before each word.
    start: usize,
    /// Where the next one may.
    free: usize,
    /// Words of the last row, and where each ends behind `start`.
    written: Vec<(u32, usize)>,
}

impl<'a> SequenceTexts<'a> {
    fn new(words: &'a StringViewArray, num_rows: usize) -> Self {
        let (views, blocks) = (Vec::with_capacity(num_rows), Vec::new());
        Self { words, views, blocks, block: Vec::new(), start: 0, free: 0, written: Vec::new() }
    }

    fn push(&mut self, words: impl Iterator<Item = u32>) -> Result<()> {
        if self.free > BLOCK_BYTES {
            self.close_block();
        }
        let mut end = 0;
        for (at, word) in words.enumerate() {
            if self.written.get(at).is_some_and(|&(other, _)| other == word) {
                end = self.written[at].1;
                continue;
            }
            if at < self.written.len() || self.start < self.free {
                self.written.truncate(at);
                self.keep(end);
            }
            end = self.append(word, end);
            self.written.push((word, end));
        }
        self.push_view(end)
    }

    /// Moves what the row begins with, `len` bytes of the last one, to where the row may lie.
    fn keep(&mut self, len: usize) {
        if self.start < self.free {
            self.reserve(self.free + len);
            self.block.copy_within(self.start..self.start + len, self.free);
            self.start = self.free;
        }
    }

    /// Writes a blank and `word` at `end` behind the start; returns where they end.
    #[inline]
    fn append(&mut self, word: u32, end: usize) -> usize {
        let view = self.words.views()[word as usize];
        let (len, at) = (view as u32 as usize, self.start + end);
        self.reserve(at + 1 + len);
        if len <= INLINE_BYTES {
            let chunk = (view >> 32 << 8 | u128::from(b' ')).to_le_bytes();
            self.block[at..at + CHUNK_BYTES].copy_from_slice(&chunk);
        } else {
            self.block[at] = b' ';
            let text = self.words.value(word as usize).as_bytes();
            self.block[at + 1..at + 1 + len].copy_from_slice(text);
        }
        end + 1 + len
    }

    /// Room for `len` bytes and a chunk behind them.
    #[inline]
    fn reserve(&mut self, len: usize) {
        if self.block.len() < len + 2 * CHUNK_BYTES {
            self.block.resize(2 * (len + 2 * CHUNK_BYTES), 0);
        }
    }

    /// The view of what lies up to `end` behind the start, without its first blank.
    #[inline]
    fn push_view(&mut self, end: usize) -> Result<()> {
        let (len, at) = (end.saturating_sub(1), self.start + 1);
        let Ok(len_of_view) = i32::try_from(len) else {
            let what = format!("a sequence of {len} bytes, Arrow's views have 2^31 - 1");
            return Err(DataFusionError::ResourcesExhausted(what));
        };
        self.reserve(at);
        let mut chunk = [0; CHUNK_BYTES];
        chunk.copy_from_slice(&self.block[at..at + CHUNK_BYTES]);
        let text = u128::from_le_bytes(chunk);
        let rest = if len <= INLINE_BYTES {
            text & ((1 << (8 * len)) - 1)
        } else {
            self.free = self.start + end;
            let prefix = u128::from(text as u32);
            prefix | (self.blocks.len() as u128) << 32 | (at as u128) << 64
        };
        self.views.push(rest << 32 | len_of_view as u128);
        Ok(())
    }

    /// Goes on in a new block.
    fn close_block(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        block.truncate(self.free);
        self.blocks.push(Buffer::from_vec(block));
        (self.start, self.free) = (0, 0);
        self.written.clear();
    }

    fn finish(mut self) -> StringViewArray {
        self.close_block();
        let (views, blocks) = (ScalarBuffer::from(self.views), self.blocks);
        debug_assert!(StringViewArray::try_new(views.clone(), blocks.clone(), None).is_ok());
        // SAFETY: each view is made of a text in its block by `push_view`, and a text is whole strings of
        // a `StringViewArray` with blanks between them: valid UTF-8.
        unsafe { StringViewArray::new_unchecked(views, blocks, None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `SequenceTexts` writes for `rows`, and the words joined one by one.
    fn both(words: &[String], rows: &[Vec<u32>]) -> (StringViewArray, Vec<String>) {
        let array = StringViewArray::from_iter_values(words);
        let mut texts = SequenceTexts::new(&array, rows.len());
        rows.iter().for_each(|row| texts.push(row.iter().copied()).unwrap());
        let joined = |row: &Vec<u32>| {
            let words: Vec<&str> = row.iter().map(|&word| words[word as usize].as_str()).collect();
            words.join(" ")
        };
        (texts.finish(), rows.iter().map(joined).collect())
    }

    #[test]
    fn texts_are_the_words_joined() {
        let lens = [1, 2, 3, 11, 12, 13, 14, 29, 70];
        let words: Vec<String> =
            lens.iter().zip('a'..).map(|(&len, c)| c.to_string().repeat(len)).collect();
        for n in 1..5u32 {
            let num_words = words.len() as u32;
            let row =
                |number: u32| (0..n).rev().map(move |at| number / num_words.pow(at) % num_words);
            let mut rows: Vec<Vec<u32>> =
                (0..num_words.pow(n)).map(|number| row(number).collect()).collect();
            let (got, expected) = both(&words, &rows);
            assert!(got.iter().eq(expected.iter().map(|text| Some(text.as_str()))), "{n}");
            // In no order, and some twice.
            let len = rows.len();
            (0..len).for_each(|at| rows.swap(at, at * 7919 % len));
            rows.extend_from_within(len / 2..);
            let (got, expected) = both(&words, &rows);
            assert!(got.iter().eq(expected.iter().map(|text| Some(text.as_str()))), "{n}");
        }
    }

    #[test]
    fn long_texts_take_several_blocks() {
        let words: Vec<String> = ["é".repeat(1 << 15), "of".into(), "ß".repeat(6)].into();
        let rows: Vec<Vec<u32>> = (0..200).map(|at| vec![at % 3, at / 3 % 3, at / 9 % 3]).collect();
        let (got, expected) = both(&words, &rows);
        assert!(got.data_buffers().len() > 2);
        assert!(got.iter().eq(expected.iter().map(|text| Some(text.as_str()))));
    }
}
