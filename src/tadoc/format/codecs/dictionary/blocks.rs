//! Blocks of a dictionary, of which one is decoded to find a word.
//!
//! ```text
//! codec 4   tokens of a block | of each block: bytes of tokens, bytes of list, length and bytes of the
//!           first token | lists
//! codec 6   head: tokens of a block | of each block: bytes of tokens, length and bytes of the first
//!           token, bytes of list, crc32c u32 of it; the lists are the section of the dictionary
//! list      front-coded strings in zstd (see `strings`)
//!
//! "plant"   … │ pink … plaid │ planet … plum │ plural … │ …     the last block that begins at or before it
//! ```
//!
//! Numbers are LEB128. Only the last block may have fewer tokens. A look-up decodes one block.
//!
//! | layout | tokens of a block | level of zstd | size of a file of 272 MB of sources, against adaptive lists |
//! | --- | ---: | ---: | ---: |
//! | indexed | 4,096 | 6 | + 1.8 %; at level 9 1.7 % |
//! | small | 16,384 | 15 | + 0.6 %; at level 9 1.3 %, at 19 0.6 % |
//!
//! In the layout `indexed` a cold phrase looks up each word in many segments, which takes longer with larger blocks.

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::Result;
use crate::format::codecs::{FirstTokens, Places, push_group, read_group};
use crate::format::cursor::{Cursor, Origin, push_varint};
use crate::format::framing::SegmentLayout;
use crate::format::layout::SegmentMeta;
use crate::format::strings::{self, List, Tokens};
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
            SegmentLayout::Indexed { .. } => Self { tokens_per_block: 1 << 12, level: 6 },
        }
    }
}

/// Places of the blocks in their section.
#[derive(Debug)]
pub(in crate::format) struct Directory {
    num_words: u32,
    tokens_per_block: u64,
    num_blocks_of_words: usize,
    blocks: Vec<Block>,
    firsts: FirstTokens,
    lists: Places,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    num_tokens: u64,
    /// Length of its tokens in bytes.
    len: u64,
}

/// Returns the section's bytes for `dictionary` in the layout `layout`.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if zstd cannot allocate memory.
pub(super) fn encode_blocks(dictionary: &Dictionary, layout: SegmentLayout) -> Result<Vec<u8>> {
    encode_with(dictionary, Shape::from_layout(layout))
}

/// Returns the bytes of the head and of the blocks of `dictionary` in the layout `layout`.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if zstd cannot allocate memory.
pub(super) fn encode_with_head(dictionary: &Dictionary, layout: SegmentLayout) -> Result<(Vec<u8>, Vec<u8>)> {
    encode_parts(dictionary, Shape::from_layout(layout))
}

fn encode_with(dictionary: &Dictionary, shape: Shape) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    push_varint(&mut out, shape.tokens_per_block.into());
    let blocks = blocks_for(dictionary, shape)?;
    for (len, first, list) in &blocks {
        push_varint(&mut out, *len);
        push_varint(&mut out, list.len() as u64);
        push_varint(&mut out, first.len() as u64);
        out.extend_from_slice(first);
    }
    blocks.iter().for_each(|(_, _, list)| out.extend_from_slice(list));
    Ok(out)
}

fn encode_parts(dictionary: &Dictionary, shape: Shape) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut head = Vec::new();
    let mut lists = Vec::new();
    push_varint(&mut head, shape.tokens_per_block.into());
    for (len, first, list) in blocks_for(dictionary, shape)? {
        push_varint(&mut head, len);
        push_varint(&mut head, first.len() as u64);
        head.extend_from_slice(first);
        push_group(&mut head, &list);
        lists.extend(list);
    }
    Ok((head, lists))
}

/// The bytes of the tokens of a block, its first token and its list.
type EncodedBlock<'a> = (u64, &'a [u8], Vec<u8>);

/// Encodes the blocks of `dictionary`.
fn blocks_for(dictionary: &Dictionary, shape: Shape) -> Result<Vec<EncodedBlock<'_>>> {
    let Shape { tokens_per_block, level } = shape;
    let starts: Vec<u32> = (0..dictionary.len()).step_by(tokens_per_block as usize).collect();
    let block_at = |&start: &u32| {
        let ids = start..dictionary.len().min(start + tokens_per_block);
        let offset = |id: u32| u64::from(dictionary.offsets()[id as usize]);
        let mut list = Vec::new();
        strings::encode(&mut list, ids.clone().map(|id| dictionary.get(id)), |_| level)?;
        Ok((offset(ids.end) - offset(ids.start), dictionary.get(start), list))
    };
    starts.par_iter().map(block_at).collect()
}

impl Directory {
    /// Reads the directory of the segment `meta` from its section, which has the lists, too.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `bytes` are no such section.
    pub(super) fn read(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        let mut directory = Self::read_blocks(&mut cursor, meta, |cursor, directory| {
            let len = cursor.varint()?;
            let list_len = cursor.varint()?;
            directory.lists.push(list_len);
            let first_len = cursor.varint()?;
            directory.firsts.push(cursor.take(usize::try_from(first_len).unwrap_or(usize::MAX))?);
            Ok(len)
        })?;
        let start = (bytes.len() - cursor.remaining()) as u64;
        directory.lists.move_to(start);
        directory.check(place, bytes.len() as u64)
    }

    /// Reads the directory of the segment `meta` from its head. The lists have `lists_len` bytes.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if `head` is no such head.
    pub(super) fn read_head(place: Origin<'_>, head: &[u8], meta: &SegmentMeta, lists_len: u64) -> Result<Self> {
        let mut cursor = Cursor::new(place, head);
        let directory = Self::read_blocks(&mut cursor, meta, |cursor, directory| {
            let len = cursor.varint()?;
            let first_len = cursor.varint()?;
            directory.firsts.push(cursor.take(usize::try_from(first_len).unwrap_or(usize::MAX))?);
            read_group(&mut directory.lists, cursor)?;
            Ok(len)
        })?;
        cursor.finish()?;
        directory.check(place, lists_len)
    }

    /// Reads the entries of blocks. `entry` reads one and returns the length of its tokens.
    fn read_blocks<'a>(
        cursor: &mut Cursor<'a>,
        meta: &SegmentMeta,
        entry: impl Fn(&mut Cursor<'a>, &mut Self) -> Result<u64>,
    ) -> Result<Self> {
        let tokens_per_block = cursor.varint()?;
        if tokens_per_block == 0 {
            return Err(cursor.fault("expected blocks of one token or more"));
        }
        let num_blocks_of_words = u64::from(meta.num_words).div_ceil(tokens_per_block) as usize;
        let (blocks, firsts, lists) = Default::default();
        let num_words = meta.num_words;
        let mut directory = Self { num_words, tokens_per_block, num_blocks_of_words, blocks, firsts, lists };
        let mut tokens_left = u64::from(num_words) + u64::from(meta.num_separators);
        let mut len_left = meta.dictionary_bytes;
        while tokens_left > 0 {
            let at = cursor.clone();
            let len = entry(cursor, &mut directory)?;
            let left = len_left.checked_sub(len);
            len_left = left.ok_or_else(|| at.fault("expected a block within the section"))?;
            let num_tokens = tokens_left.min(tokens_per_block);
            tokens_left -= num_tokens;
            directory.blocks.push(Block { num_tokens, len });
        }
        if len_left > 0 {
            let len = meta.dictionary_bytes;
            return Err(cursor.fault(format!("expected blocks of {len} bytes of tokens, {len_left} are left")));
        }
        Ok(directory)
    }

    /// Returns the directory if its blocks ascend and its lists end at `end`.
    fn check(self, place: Origin<'_>, end: u64) -> Result<Self> {
        self.firsts.check_order(place, self.num_blocks_of_words)?;
        if self.lists.end() != end {
            let got = self.lists.end();
            return Err(place.fault(0, format!("expected lists that end at {end}, got {got}")));
        }
        Ok(self)
    }

    pub(super) fn places(&self) -> &Places {
        &self.lists
    }

    /// Returns the number of bytes of main memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        size_of_val(&self.blocks[..]) + self.firsts.memory_bytes() + self.lists.memory_bytes()
    }

    /// Decodes all blocks. `bytes` are those of the section at `place`.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) for a block that is not as declared.
    pub(super) fn decode(&self, place: Origin<'_>, bytes: &[u8]) -> Result<Tokens> {
        let decode = |block: usize| self.decode_block(place, block, self.lists.part(place, bytes, block)?);
        let decoded = (0..self.blocks.len()).into_par_iter().map(decode);
        Ok(Tokens::joined(&decoded.collect::<Result<Vec<_>>>()?))
    }

    /// Returns the only block that can have `word`.
    pub(super) fn group_of(&self, word: &[u8]) -> Option<usize> {
        self.firsts.group_of(self.num_blocks_of_words, word)
    }

    /// Returns the id of `word`, if it is one of the words of the block, whose `list` lies at `place`.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if this block is not as declared, or not in order.
    pub(super) fn word_id(&self, place: Origin<'_>, block: usize, list: &[u8], word: &[u8]) -> Result<Option<u32>> {
        let Tokens { arena, offsets } = self.decode_block(place, block, list)?;
        let before = block as u64 * self.tokens_per_block;
        let num_words = (u64::from(self.num_words) - before).min(self.tokens_per_block) as u32;
        let words = Dictionary::from_parts(num_words, offsets, Bytes::from(arena))
            .map_err(|e| place.fault(0, e.to_string()))?;
        // The words of a segment have ids of 32 bits.
        Ok(words.word_id(word).map(|id| before as u32 + u32::from(id)))
    }

    fn decode_block(&self, place: Origin<'_>, block: usize, list: &[u8]) -> Result<Tokens> {
        let Block { num_tokens, len } = self.blocks[block];
        let tokens = List { num_tokens, len, bytes: list }.decode_front_coded(place)?;
        if tokens.first() == self.firsts.get(block) {
            Ok(tokens)
        } else {
            Err(place.fault(0, "expected the first token of the block"))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use crate::Error;

    use super::*;

    const BLOCKS_PLACE: Origin<'static> = Origin { file: "f", section: "dictionary", offset: 0 };

    /// Builds a dictionary of `words`, which ascend, and of separators.
    fn dictionary_of_words<'a>(words: impl Iterator<Item = &'a String>, num_separators: usize) -> Dictionary {
        let mut offsets = vec![0u32];
        let mut arena = String::new();
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

    fn word_id(directory: &Directory, bytes: &[u8], word: &str) -> Result<Option<u32>> {
        let Some(block) = directory.group_of(word.as_bytes()) else { return Ok(None) };
        let list = directory.places().part(BLOCKS_PLACE, bytes, block)?;
        directory.places().verify(BLOCKS_PLACE, block, list)?;
        directory.word_id(BLOCKS_PLACE, block, list, word.as_bytes())
    }

    fn meta(dictionary: &Dictionary) -> SegmentMeta {
        SegmentMeta {
            dictionary_bytes: dictionary.bytes().len() as u64,
            num_words: dictionary.num_words(),
            num_separators: dictionary.len() - dictionary.num_words(),
            ..SegmentMeta::default()
        }
    }

    fn encoded(dictionary: &Dictionary, tokens_per_block: u32) -> Vec<u8> {
        encode_with(dictionary, Shape { tokens_per_block, level: 9 }).unwrap()
    }

    fn read(dictionary: &Dictionary, bytes: &[u8]) -> Result<Directory> {
        Directory::read(BLOCKS_PLACE, bytes, &meta(dictionary))
    }

    fn read_head(dictionary: &Dictionary, head: &[u8], lists: &[u8]) -> Result<Directory> {
        Directory::read_head(BLOCKS_PLACE, head, &meta(dictionary), lists.len() as u64)
    }

    proptest! {
        #[test]
        fn blocks_hold_the_words_that_the_dictionary_holds(
            words in prop::collection::btree_set("[a-c]{1,4}|[aé]{1,9}", 0..80),
            asked in prop::collection::btree_set("[a-c]{0,5}|[aé]{1,9}| {1,3}", 0..20),
            num_separators in 0usize..4,
            tokens_per_block in 1u32..40,
        ) {
            let dictionary = dictionary_of_words(words.iter(), num_separators);
            let bytes = encoded(&dictionary, tokens_per_block);
            let (head, lists) = encode_parts(&dictionary, Shape { tokens_per_block, level: 9 }).unwrap();
            let with_head = read_head(&dictionary, &head, &lists).unwrap();
            for (directory, bytes) in [(read(&dictionary, &bytes).unwrap(), bytes), (with_head, lists)] {
                for word in words.iter().chain(&asked) {
                    let found = word_id(&directory, &bytes, word).unwrap();
                    prop_assert_eq!(found, words.iter().position(|w| w == word).map(|id| id as u32));
                }
                let Tokens { arena, offsets } = directory.decode(BLOCKS_PLACE, &bytes).unwrap();
                prop_assert_eq!((&arena[..], &offsets[..]), (&dictionary.bytes()[..], dictionary.offsets()));
            }
        }

        #[test]
        fn damaged_blocks_are_refused_or_answer(at in any::<prop::sample::Index>(), bit in 0u32..8) {
            let words: BTreeSet<String> = (0..300).map(|n| format!("w{}", n * n)).collect();
            let dictionary = dictionary_of_words(words.iter(), 2);
            let mut bytes = encoded(&dictionary, 64);
            let place = at.index(bytes.len());
            bytes[place] ^= 1 << bit;
            if let Ok(directory) = read(&dictionary, &bytes) {
                let _ = word_id(&directory, &bytes, "w100");
                let _ = directory.decode(BLOCKS_PLACE, &bytes);
            }
            let (mut head, mut lists) = encode_parts(&dictionary, Shape { tokens_per_block: 64, level: 9 }).unwrap();
            let directory = read_head(&dictionary, &head, &lists).unwrap();
            let place = at.index(lists.len());
            lists[place] ^= 1 << bit;
            let block = (0..directory.places().len()).find(|&block| directory.places().range(block).end > place as u64);
            let word = String::from_utf8(directory.firsts.get(block.unwrap()).to_vec()).unwrap();
            prop_assert!(word.starts_with(' ') || word_id(&directory, &lists, &word).is_err());
            lists[place] ^= 1 << bit;
            let place = at.index(head.len());
            head[place] ^= 1 << bit;
            if let Ok(directory) = read_head(&dictionary, &head, &lists) {
                let _ = word_id(&directory, &lists, "w100");
                let _ = directory.decode(BLOCKS_PLACE, &lists);
            }
        }
    }

    #[test]
    fn lies_of_the_directory_are_refused() {
        let words: Vec<String> = (0..40).map(|i| format!("w{i:02}")).collect();
        let dictionary = dictionary_of_words(words.iter(), 0);
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
        assert!(word_id(&directory, &bytes, "w25").is_err());
        assert!(directory.decode(BLOCKS_PLACE, &bytes).is_err());
    }
}
