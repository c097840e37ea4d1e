//! Texts of sequences: words joined by one blank, as views.
//!
//! ```text
//! row         a be see      a be seen              another banana split
//! head        a be_         a be_                  another banana_        kept while it is the same
//! block                                            another banana split  ...
//! view        |a be see     |a be seen             |anot, 20 bytes, at 0
//!              ╰─▶ the next row overwrites its place in the block
//! ```
//!
//! Rows ascend, so that several have the same head, which is all words but the last. The head is copied, the last word
//! is written behind it, and the view is computed from both without reading the written bytes. A text of up to 12 bytes
//! lies in its view, and the next row takes its place in the block. Words of up to 12 bytes lie in their own views, so
//! that they and heads are written 16 bytes at once, whatever their length. O(bytes).
//!
//! Copying the common prefix from the row before is slower, and `StringViewBuilder` even more
//! (`benches/results/2026-11-30-two-core.md`).

#![allow(unsafe_code, reason = "arrays of texts that are made of checked words")]

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, StringViewArray};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::error::{DataFusionError, Result};

use tadoc::analytics::Sequences;

/// Bytes of a view after the length: the longest text that lies in a view.
const INLINE_BYTES: usize = 12;
/// Bytes that are written at once: a word's view or a chunk of a head, and bytes that are
/// overwritten later.
const CHUNK_BYTES: usize = 16;
/// Bytes after which a block is closed.
const BLOCK_BYTES: usize = 1 << 20;

/// Returns the texts of `rows` of `sequences`, whose vocabulary is `words`.
///
/// # Errors
/// An error if a text is longer than a view can address.
pub(super) fn sequence_texts(sequences: &Sequences, words: &StringViewArray, rows: &[usize]) -> Result<ArrayRef> {
    texts_of_rows(words, sequences.num_words(), rows.iter().map(|&row| sequences.words(row)))
}

/// Returns the texts of sequences of `num_words` words. Each item of `rows` has the words of one
/// sequence, as positions in `words`.
///
/// # Errors
/// The errors of [`sequence_texts`].
pub(super) fn texts_of_rows(
    words: &StringViewArray,
    num_words: usize,
    rows: impl ExactSizeIterator<Item = impl Iterator<Item = u32>>,
) -> Result<ArrayRef> {
    let mut texts = SequenceTexts::new(words, num_words, rows.len());
    for row in rows {
        texts.push(row)?;
    }
    Ok(Arc::new(texts.finish()))
}

struct SequenceTexts<'a> {
    words: &'a StringViewArray,
    views: Vec<u128>,
    blocks: Vec<Buffer>,
    /// Current block, with room behind the written bytes.
    block: Vec<u8>,
    /// Position of the next text in the block.
    free: usize,
    head: Head,
}

/// Words of a row except the last.
struct Head {
    words: Vec<u32>,
    /// End of each word's text, including its blank.
    ends: Vec<usize>,
    /// Texts of the words, each followed by a blank, and bytes that are overwritten later.
    text: Vec<u8>,
    len: usize,
    /// First 16 bytes of the text, padded with 0.
    start: u128,
}

impl<'a> SequenceTexts<'a> {
    /// Builds an empty array with room for `num_rows` sequences of `num_words` words.
    fn new(words: &'a StringViewArray, num_words: usize, num_rows: usize) -> Self {
        let views = Vec::with_capacity(num_rows);
        let blocks = Vec::new();
        // No row has these words.
        let unlike = vec![u32::MAX; num_words.saturating_sub(1)];
        let ends = vec![0; unlike.len()];
        let head = Head { words: unlike, ends, text: vec![0; CHUNK_BYTES], len: 0, start: 0 };
        Self { words, views, blocks, block: Vec::new(), free: 0, head }
    }

    #[inline]
    fn push(&mut self, words: impl Iterator<Item = u32>) -> Result<()> {
        let mut last = 0;
        let mut first_other = usize::MAX;
        for (at, word) in words.enumerate() {
            match self.head.words.get_mut(at) {
                Some(before) if *before == word => {}
                Some(before) => {
                    *before = word;
                    first_other = first_other.min(at);
                }
                None => last = word,
            }
        }
        if first_other != usize::MAX {
            self.head.write(self.words, first_other);
        }
        let view = self.words.views()[last as usize];
        let head_len = self.head.len;
        let free = self.free;
        let len = head_len + len_of(view);
        if self.block.len() < free + len + 2 * CHUNK_BYTES {
            self.reserve(len);
        }
        for at in (0..head_len).step_by(CHUNK_BYTES) {
            let chunk = &self.head.text[at..at + CHUNK_BYTES];
            self.block[self.free + at..self.free + at + CHUNK_BYTES].copy_from_slice(chunk);
        }
        write_word(self.words, last, &mut self.block[self.free + head_len..]);
        self.push_view(len, view)
    }

    /// Makes room for a text of `len` bytes and two chunks behind it. The room suffices for all
    /// remaining rows, up to the size of a block, if they are as long.
    #[cold]
    fn reserve(&mut self, len: usize) {
        if self.free > BLOCK_BYTES {
            self.close_block();
        }
        let num_left = self.views.capacity() - self.views.len();
        let all = num_left.saturating_mul(len + 1).min(BLOCK_BYTES + BLOCK_BYTES / 8);
        self.block.resize(self.free + all.max(2 * len) + 2 * CHUNK_BYTES, 0);
    }

    /// Appends the view of the last written text, which has `len` bytes. `view` is the view of its
    /// last word.
    #[inline]
    fn push_view(&mut self, len: usize, view: u128) -> Result<()> {
        let Ok(len_of_view) = i32::try_from(len) else {
            let what = format!("a sequence of {len} bytes, Arrow's views have 2^31 - 1");
            return Err(DataFusionError::ResourcesExhausted(what));
        };
        let word = (view >> 32).checked_shl(8 * self.head.len.min(CHUNK_BYTES) as u32).unwrap_or(0);
        let text = self.head.start | word;
        let rest = if len <= INLINE_BYTES {
            text
        } else {
            let at = self.free as u128;
            self.free += len;
            u128::from(text as u32) | (self.blocks.len() as u128) << 32 | at << 64
        };
        self.views.push(rest << 32 | len_of_view as u128);
        Ok(())
    }

    /// Closes the block and starts a new one.
    fn close_block(&mut self) {
        let mut block = std::mem::take(&mut self.block);
        block.truncate(self.free);
        self.blocks.push(Buffer::from_vec(block));
        self.free = 0;
    }

    fn finish(mut self) -> StringViewArray {
        self.close_block();
        let views = ScalarBuffer::from(self.views);
        let blocks = self.blocks;
        debug_assert!(StringViewArray::try_new(views.clone(), blocks.clone(), None).is_ok());
        // SAFETY: `push_view` makes each view of a text in its block, and a text consists of whole
        // strings of a `StringViewArray` with blanks between them: valid UTF-8.
        unsafe { StringViewArray::new_unchecked(views, blocks, None) }
    }
}

impl Head {
    /// Writes the texts of the words from `first` on.
    fn write(&mut self, words: &StringViewArray, first: usize) {
        self.len = first.checked_sub(1).map_or(0, |before| self.ends[before]);
        for at in first..self.words.len() {
            let word = self.words[at];
            let end = self.len + len_of(words.views()[word as usize]);
            if self.text.len() < end + 2 * CHUNK_BYTES {
                self.text.resize(2 * (end + 2 * CHUNK_BYTES), 0);
            }
            write_word(words, word, &mut self.text[self.len..]);
            self.text[end] = b' ';
            self.len = end + 1;
            self.ends[at] = self.len;
        }
        let chunk = self.text.first_chunk().map_or(0, |chunk| u128::from_le_bytes(*chunk));
        let behind = u128::MAX.checked_shl(8 * self.len.min(CHUNK_BYTES) as u32).unwrap_or(0);
        self.start = chunk & !behind;
    }
}

/// Returns the bytes of the text of a view.
#[inline]
fn len_of(view: u128) -> usize {
    view as u32 as usize
}

/// Writes `word` to `place`, which has room for it and a chunk.
#[inline]
fn write_word(words: &StringViewArray, word: u32, place: &mut [u8]) {
    let view = words.views()[word as usize];
    let len = len_of(view);
    if len <= INLINE_BYTES {
        place[..CHUNK_BYTES].copy_from_slice(&(view >> 32).to_le_bytes());
    } else {
        place[..len].copy_from_slice(words.value(word as usize).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts that `SequenceTexts` writes for `rows`, and the words joined one by one.
    fn both(words: &[String], rows: &[Vec<u32>]) -> (StringViewArray, Vec<String>) {
        let array = StringViewArray::from_iter_values(words);
        let num_words = rows.first().map_or(0, Vec::len);
        let mut texts = SequenceTexts::new(&array, num_words, rows.len());
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
        let words: Vec<String> = lens.iter().zip('a'..).map(|(&len, c)| c.to_string().repeat(len)).collect();
        for n in 1..5u32 {
            let num_words = words.len() as u32;
            let row = |number: u32| (0..n).rev().map(move |at| number / num_words.pow(at) % num_words);
            let mut rows: Vec<Vec<u32>> = (0..num_words.pow(n)).map(|number| row(number).collect()).collect();
            let (got, expected) = both(&words, &rows);
            assert!(got.iter().eq(expected.iter().map(|text| Some(text.as_str()))), "{n}");
            // Rows without order, some of them twice.
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
