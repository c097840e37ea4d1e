//! Blocks of a dictionary, of which one is decoded to find a word.
//!
//! ```text
//! section   tokens of a block | of each block: bytes of tokens, bytes of list, length and bytes of the
//!           first token | lists
//! list      front-coded strings in zstd (see `front_coded`)
//!
//! "plant"   … │ pink … plaid │ planet … plum │ plural … │ …     the last block that begins at or before it
//! ```
//!
//! Numbers are LEB128. Only the last block may have fewer tokens. A look-up decodes one block, 40 ns a token.
//!
//! | layout | tokens of a block | level of zstd | size of a file of 272 MB of sources, against adaptive lists |
//! | --- | ---: | ---: | ---: |
//! | fast | 4,096 | 9 | + 1.7 % |
//! | small | 16,384 | 15 | + 0.6 %; at level 9 1.3 %, at 19 0.6 % |
//!
//! In the layout `fast` a cold phrase looks up each word in many segments, which takes 40 ms longer with blocks of
//! 16,384 tokens.

use std::ops::Range;

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::Result;
use crate::format::codecs::token_list::{List, Tokens};
use crate::format::cursor::{Cursor, Origin, push_varint};
use crate::format::front_coded;
use crate::format::segment_layout::SegmentLayout;
use crate::text::Dictionary;

/// Sizes of blocks that are written.
#[derive(Debug, Clone, Copy)]
struct Shape {
    tokens_per_block: u32,
    /// Level of zstd.
    level: i32,
}

impl Shape {
    fn from_layout(layout: SegmentLayout) -> Self {
        match layout {
            SegmentLayout::Small => Self { tokens_per_block: 1 << 14, level: 15 },
            SegmentLayout::Fast => Self { tokens_per_block: 1 << 12, level: 9 },
        }
    }
}

/// Places of the blocks in their section.
#[derive(Debug, Clone)]
pub(in crate::format) struct Directory {
    num_words: u32,
    tokens_per_block: u64,
    num_blocks_of_words: usize,
    blocks: Vec<Block>,
}

#[derive(Debug, Clone)]
struct Block {
    num_tokens: u64,
    /// Length of its tokens in bytes.
    len: u64,
    /// The first token, as a range of the section.
    first: Range<usize>,
    /// The list, as a range of the section.
    list: Range<usize>,
}

/// Returns the section's bytes for `dictionary` in the layout `layout`.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if zstd cannot allocate memory.
pub(in crate::format) fn encode(dictionary: &Dictionary, layout: SegmentLayout) -> Result<Vec<u8>> {
    encode_with(dictionary, Shape::from_layout(layout))
}

fn encode_with(dictionary: &Dictionary, shape: Shape) -> Result<Vec<u8>> {
    let Shape { tokens_per_block, level } = shape;
    let starts: Vec<u32> = (0..dictionary.len()).step_by(tokens_per_block as usize).collect();
    let tokens_of = |&start: &u32| start..dictionary.len().min(start + tokens_per_block);
    let list_of = |start: &u32| -> Result<Vec<u8>> {
        let mut list = Vec::new();
        let tokens = tokens_of(start).map(|id| dictionary.get(id));
        front_coded::encode(&mut list, tokens, |_| level)?;
        Ok(list)
    };
    let lists = starts.par_iter().map(list_of).collect::<Result<Vec<_>>>()?;
    let mut out = Vec::new();
    push_varint(&mut out, tokens_per_block.into());
    for (start, list) in starts.iter().zip(&lists) {
        let tokens = tokens_of(start);
        let offset = |id: u32| u64::from(dictionary.offsets()[id as usize]);
        let first = dictionary.get(tokens.start);
        push_varint(&mut out, offset(tokens.end) - offset(tokens.start));
        push_varint(&mut out, list.len() as u64);
        push_varint(&mut out, first.len() as u64);
        out.extend_from_slice(first);
    }
    out.extend(lists.iter().flatten());
    Ok(out)
}

impl Directory {
    /// Reads the directory of a section of `num_tokens` tokens with `len` bytes, of which the first
    /// `num_words` are words.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `bytes` are no such section.
    pub(in crate::format) fn read(
        place: Origin<'_>,
        bytes: &[u8],
        (num_words, num_tokens): (u32, u64),
        len: u64,
    ) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        let tokens_per_block = cursor.varint()?;
        if tokens_per_block == 0 {
            return Err(cursor.fault("expected blocks of one token or more"));
        }
        let mut blocks: Vec<Block> = Vec::new();
        let (mut tokens_left, mut len_left) = (num_tokens, len);
        while tokens_left > 0 {
            let at = cursor.clone();
            let (len, list_len, first_len) = (cursor.varint()?, cursor.varint()?, cursor.varint()?);
            let first_at = bytes.len() - cursor.remaining();
            let first = cursor.take(usize::try_from(first_len).unwrap_or(usize::MAX))?;
            let list_len = usize::try_from(list_len).unwrap_or(usize::MAX);
            len_left = len_left
                .checked_sub(len)
                .filter(|_| list_len <= bytes.len())
                .ok_or_else(|| at.fault("expected a block within the section"))?;
            let num_tokens = tokens_left.min(tokens_per_block);
            tokens_left -= num_tokens;
            // The lists begin where the directory ends, which is not known yet.
            let list = 0..list_len;
            blocks.push(Block { num_tokens, len, first: first_at..first_at + first.len(), list });
        }
        for block in &mut blocks {
            let start = bytes.len() - cursor.remaining();
            cursor.take(block.list.len())?;
            block.list = start..start + block.list.len();
        }
        cursor.finish()?;
        let num_blocks_of_words = u64::from(num_words).div_ceil(tokens_per_block) as usize;
        let firsts =
            blocks.iter().take(num_blocks_of_words).map(|block| &bytes[block.first.clone()]);
        if !firsts.is_sorted_by(|a, b| a < b) {
            return Err(place.fault(0, "expected blocks of words in ascending order"));
        }
        if len_left > 0 {
            let reason = format!("expected blocks of {len} bytes of tokens, {len_left} are left");
            return Err(place.fault(0, reason));
        }
        Ok(Self { num_words, tokens_per_block, num_blocks_of_words, blocks })
    }

    /// Returns the number of bytes of main memory in use.
    pub(in crate::format) fn memory_bytes(&self) -> usize {
        self.blocks.len() * size_of::<Block>()
    }

    /// Decodes all blocks.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) for a block that is not as declared.
    pub(in crate::format) fn decode(&self, place: Origin<'_>, bytes: &[u8]) -> Result<Tokens> {
        let decoded = self.blocks.par_iter().map(|block| block.decode(place, bytes));
        Ok(Tokens::joined(&decoded.collect::<Result<Vec<_>>>()?))
    }

    /// Returns the id of `word`, if it is one of the words. Decodes one block.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if this block is not as declared, or not in order.
    pub(in crate::format) fn word_id(
        &self,
        place: Origin<'_>,
        bytes: &[u8],
        word: &[u8],
    ) -> Result<Option<u32>> {
        let of_words = &self.blocks[..self.num_blocks_of_words];
        let behind = of_words.partition_point(|block| bytes[block.first.clone()] <= *word);
        let Some(block_idx) = behind.checked_sub(1) else { return Ok(None) };
        let tokens = of_words[block_idx].decode(place, bytes)?;
        let before = block_idx as u64 * self.tokens_per_block;
        let num_words = (u64::from(self.num_words) - before).min(self.tokens_per_block) as u32;
        let Tokens { arena, offsets } = tokens;
        let words = Dictionary::from_parts(num_words, offsets, Bytes::from(arena))
            .map_err(|e| place.fault(0, e.to_string()))?;
        // The words of a segment have ids of 32 bits.
        Ok(words.word_id(word).map(|id| before as u32 + u32::from(id)))
    }
}

impl Block {
    fn decode(&self, place: Origin<'_>, bytes: &[u8]) -> Result<Tokens> {
        let (num_tokens, len) = (self.num_tokens, self.len);
        let list = List { num_tokens, len, bytes: &bytes[self.list.clone()] };
        let tokens = list.decode_front_coded(place)?;
        if tokens.first() == &bytes[self.first.clone()] {
            Ok(tokens)
        } else {
            Err(place.fault(self.first.start, "expected the first token of the block"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    const PLACE: Origin<'static> = Origin { file: "f", section: "dictionary", offset: 0 };

    /// Builds a dictionary of `words`, which ascend, and of separators.
    fn dictionary<'a>(
        words: impl Iterator<Item = &'a String>,
        num_separators: usize,
    ) -> Dictionary {
        let (mut offsets, mut arena) = (vec![0u32], String::new());
        words.for_each(|word| {
            arena.push_str(word);
            offsets.push(arena.len() as u32);
        });
        let num_words = offsets.len() as u32 - 1;
        for len in 1..=num_separators {
            arena.extend(std::iter::repeat_n(' ', len));
            offsets.push(arena.len() as u32);
        }
        Dictionary::from_parts(num_words, offsets, Bytes::from(arena)).unwrap()
    }

    fn encoded(dictionary: &Dictionary, tokens_per_block: u32) -> Vec<u8> {
        encode_with(dictionary, Shape { tokens_per_block, level: 9 }).unwrap()
    }

    fn read(dictionary: &Dictionary, bytes: &[u8]) -> Result<Directory> {
        let sizes = (dictionary.num_words(), dictionary.len().into());
        Directory::read(PLACE, bytes, sizes, dictionary.bytes().len() as u64)
    }

    proptest! {
        #[test]
        fn blocks_hold_the_words_that_the_dictionary_holds(
            words in prop::collection::btree_set("[a-c]{1,4}|[aé]{1,9}", 0..80),
            asked in prop::collection::btree_set("[a-c]{0,5}|[aé]{1,9}| {1,3}", 0..20),
            num_separators in 0usize..4,
            tokens_per_block in 1u32..40,
        ) {
            let dictionary = dictionary(words.iter(), num_separators);
            let bytes = encoded(&dictionary, tokens_per_block);
            let directory = read(&dictionary, &bytes).unwrap();
            for word in words.iter().chain(&asked) {
                let word_id = directory.word_id(PLACE, &bytes, word.as_bytes()).unwrap();
                prop_assert_eq!(word_id, words.iter().position(|w| w == word).map(|id| id as u32));
            }
            let Tokens { arena, offsets } = directory.decode(PLACE, &bytes).unwrap();
            prop_assert_eq!((&arena[..], &offsets[..]), (&dictionary.bytes()[..], dictionary.offsets()));
        }

        #[test]
        fn damaged_blocks_are_refused_or_answer(at in any::<prop::sample::Index>(), bit in 0u32..8) {
            let words: BTreeSet<String> = (0..300).map(|n| format!("w{}", n * n)).collect();
            let dictionary = dictionary(words.iter(), 2);
            let mut bytes = encoded(&dictionary, 64);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Ok(directory) = read(&dictionary, &bytes) {
                let _ = directory.word_id(PLACE, &bytes, b"w100");
                let _ = directory.decode(PLACE, &bytes);
            }
        }
    }

    #[test]
    fn lies_of_the_directory_are_refused() {
        let words: Vec<String> = (0..40).map(|i| format!("w{i:02}")).collect();
        let dictionary = dictionary(words.iter(), 0);
        let refused = |numbers: &[u64]| {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|&number| push_varint(&mut bytes, number));
            matches!(read(&dictionary, &bytes), Err(Error::Format { .. }))
        };
        assert!(refused(&[]));
        assert!(refused(&[0, 120, 0, 0]));
        assert!(refused(&[u64::MAX, 121, 0, 0]));
        assert!(refused(&[40, 119, 0, 0]));
        assert!(refused(&[40, 120, u64::MAX, 0]));
        assert!(refused(&[40, 120, 0, u64::MAX]));
        // Two blocks in falling order.
        assert!(refused(&[20, 60, 0, 1, u64::from(b'b'), 60, 0, 1, u64::from(b'a')]));
        // Another first token than that of the block.
        let mut bytes = encoded(&dictionary, 20);
        let first = bytes.windows(3).position(|bytes| bytes == b"w20").unwrap();
        bytes[first + 2] = b'1';
        let directory = read(&dictionary, &bytes).unwrap();
        assert!(directory.word_id(PLACE, &bytes, b"w25").is_err());
        assert!(directory.decode(PLACE, &bytes).is_err());
    }
}
