//! Codec of the dictionary section: words, then separators, both in byte order, as lists of
//! strings.
//!
//! ```text
//! codec 1   one list
//! codec 2   number of parts | of each: tokens, bytes of tokens, bytes of list | the lists
//! codec 3   front-coded strings in zstd (see `strings`)
//! codec 4   blocks of these (see below)
//! codec 5   tokens that are read alone (see `coded_tokens`)
//! ```
//!
//! Large dictionaries of the layout `indexed` have codec 5, because few of their tokens are needed at a
//! time. The layout `fast` has codec 4, and so have large dictionaries of the layout `small`. Blocks are
//! decoded several times as fast as a list, and a word is found in one block.
//!
//! See [`strings`] for a list. Numbers are LEB128. Decoding a list waits
//! for its next model in memory, so only other lists can be decoded at the same time. Therefore a
//! dictionary is cut into parts of equally many tokens, which threads decode in parallel. Each part
//! learns its distributions anew. Two parts make a dictionary 0.2 to 4 % larger, four 0.6 to 8 %,
//! which is 0.1 to 0.6 % of a file.
//!
//! The footer contains the number of tokens and of their bytes. [`Dictionary`] checks that tokens
//! ascend and that words are UTF-8.
//!
//! # Blocks
//!
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
//! Numbers are LEB128. Only the last block may have fewer tokens. A look-up decodes one block, 40
//! ns a token.
//!
//! | layout | tokens of a block | level of zstd | size of a file of 272 MB of sources, against adaptive lists |
//! | --- | ---: | ---: | ---: |
//! | fast | 4,096 | 9 | + 1.7 % |
//! | small | 16,384 | 15 | + 0.6 %; at level 9 1.3 %, at 19 0.6 % |
//!
//! In the layout `fast` a cold phrase looks up each word in many segments, which takes longer
//! with larger blocks.

use std::ops::Range;

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::format::codecs::coded_tokens::{self, CodedTokens};
use crate::format::cursor::{Cursor, Origin, push_varint};
use crate::format::entropy::Encoder;
use crate::format::framing::SegmentLayout;
use crate::format::layout::SegmentMeta;
use crate::format::strings;
use crate::format::strings::{List, StringModels, Tokens};
use crate::text::Dictionary;

/// Numbers of the codecs in the footer.
const LIST: u16 = 1;
const PARTS: u16 = 2;
const ZSTD: u16 = 3;
pub(in crate::format) const BLOCKS: u16 = 4;
pub(in crate::format) const CODED: u16 = 5;

/// Least number of token bytes in a part, decoded in about a millisecond, and greatest number of
/// parts that are written. With 16 parts f-dbtext, whose dictionary is two fifths of the file, was
/// 0.9 % larger, with four 0.25 %.
const PART_BYTES: u64 = 48 << 10;
const MAX_PARTS: u64 = 4;
/// Least number of token bytes for which the layout `small` has blocks. Smaller dictionaries are
/// decoded in a few hundredths of a second.
const MIN_BLOCKS_BYTES: usize = 1 << 20;
/// Least number of token bytes for which the layout `indexed` has tokens that are read alone. Smaller
/// dictionaries are decoded in a few milliseconds, and the tables of all contexts take about as much memory.
const MIN_CODED_BYTES: usize = 4 << 20;
/// Greatest number of parts that are read.
const MAX_PARTS_READ: u64 = 16;
/// Memory for the distributions of a part.
const MODELS_BYTES: u64 = 512 << 10;

/// Returns the number of parts of a dictionary of `dictionary_bytes` bytes: an even number, as
/// numbers of threads are, or 1.
fn num_parts(dictionary_bytes: u64) -> u64 {
    (dictionary_bytes / PART_BYTES / 2 * 2).clamp(1, MAX_PARTS)
}

/// Returns the memory that is free again after a dictionary of this length is decoded: its parts,
/// which are joined at the end, and their distributions.
pub(in crate::format) fn decoding_bytes(dictionary_bytes: u64) -> u64 {
    match num_parts(dictionary_bytes) {
        1 => 2 * MODELS_BYTES,
        num_parts => dictionary_bytes.saturating_add(num_parts * MODELS_BYTES),
    }
}

/// Returns the codec of the section, and its bytes for `dictionary` in the layout `layout`.
///
/// # Errors
/// [`Error::Io`] if zstd cannot allocate memory.
pub(in crate::format) fn encode(dictionary: &Dictionary, layout: SegmentLayout) -> Result<(u16, Vec<u8>)> {
    match layout {
        SegmentLayout::Small if dictionary.bytes().len() < MIN_BLOCKS_BYTES => {
            let num_parts = num_parts(dictionary.bytes().len() as u64);
            Ok(encode_parts(dictionary, num_parts as usize))
        }
        SegmentLayout::Indexed { .. } if dictionary.bytes().len() >= MIN_CODED_BYTES => {
            Ok((CODED, coded_tokens::encode(dictionary)?))
        }
        _ => Ok((BLOCKS, encode_blocks(dictionary, layout)?)),
    }
}

/// Encodes `dictionary` in at most `num_parts` parts.
fn encode_parts(dictionary: &Dictionary, num_parts: usize) -> (u16, Vec<u8>) {
    let part_len = (dictionary.len() as usize).div_ceil(num_parts).max(1);
    let starts: Vec<usize> = (0..dictionary.len() as usize).step_by(part_len).collect();
    if starts.len() <= 1 {
        return (LIST, encode_list(dictionary, 0..dictionary.len()));
    }
    let range = |&start: &usize| start as u32..(start + part_len).min(dictionary.len() as usize) as u32;
    let lists: Vec<Vec<u8>> = starts.par_iter().map(|start| encode_list(dictionary, range(start))).collect();
    let mut out = Vec::new();
    push_varint(&mut out, lists.len() as u64);
    for (start, list) in starts.iter().zip(&lists) {
        let tokens = range(start);
        let offset = |id: u32| u64::from(dictionary.offsets()[id as usize]);
        push_varint(&mut out, tokens.len() as u64);
        push_varint(&mut out, offset(tokens.end) - offset(tokens.start));
        push_varint(&mut out, list.len() as u64);
    }
    out.extend(lists.iter().flatten());
    (PARTS, out)
}

fn encode_list(dictionary: &Dictionary, ids: std::ops::Range<u32>) -> Vec<u8> {
    let (mut models, mut encoder) = (StringModels::new(), Encoder::default());
    let mut previous: &[u8] = &[];
    for id in ids {
        let token = dictionary.get(id);
        models.encode(&mut encoder, previous, token);
        previous = token;
    }
    let mut out = Vec::new();
    encoder.finish(&mut out);
    out
}

/// Decodes the dictionary of the segment `meta` from its section, which is encoded by `codec`.
///
/// # Errors
/// [`Error::Format`] if the section does not contain exactly the tokens that `meta` declares,
/// [`Error::Version`] for an unknown codec.
pub(in crate::format) fn decode(place: Origin<'_>, codec: u16, bytes: &[u8], meta: &SegmentMeta) -> Result<Dictionary> {
    let num_tokens = u64::from(meta.num_words) + u64::from(meta.num_separators);
    let whole = List { num_tokens, len: meta.dictionary_bytes, bytes };
    let tokens = match codec {
        LIST => decode_lists(place, &[whole])?,
        PARTS => decode_lists(place, &parts(place, &whole)?)?,
        ZSTD => whole.decode_front_coded(place)?,
        BLOCKS => directory(place, bytes, meta)?.decode(place, bytes)?,
        CODED => CodedTokens::read(place, bytes, meta)?.decode(place, bytes)?,
        codec => {
            let (expected, got) = ("dictionary codec 1 to 5".into(), format!("dictionary codec {codec}"));
            return Err(Error::Version { file: place.file.into(), expected, got });
        }
    };
    Dictionary::from_parts(meta.num_words, tokens.offsets, Bytes::from(tokens.arena))
        .map_err(|e| place.fault(0, e.to_string()))
}

/// Returns the dictionary of the tokens `ids`, which ascend, of the segment `meta`.
///
/// # Errors
/// Same as [`decode`], and [`Error::OutOfRange`] for an id that does not exist.
pub(in crate::format) fn subset(
    place: Origin<'_>,
    codec: u16,
    bytes: &[u8],
    meta: &SegmentMeta,
    ids: &[u32],
) -> Result<Dictionary> {
    match codec {
        CODED => CodedTokens::read(place, bytes, meta)?.subset(place, bytes, ids),
        codec => decode(place, codec, bytes, meta)?.subset(ids),
    }
}

/// The parts of a dictionary section in which tokens are found before all are decoded.
#[derive(Debug)]
pub(in crate::format) enum TokenIndex {
    Blocks(Directory),
    Coded(CodedTokens),
}

impl TokenIndex {
    /// Reads the index of the segment `meta` from its section, which is encoded by `codec`. Returns `None` if only
    /// all tokens can be decoded.
    ///
    /// # Errors
    /// [`Error::Format`] if `bytes` are no such section.
    pub(in crate::format) fn read(
        place: Origin<'_>,
        codec: u16,
        bytes: &[u8],
        meta: &SegmentMeta,
    ) -> Result<Option<Self>> {
        match codec {
            BLOCKS => directory(place, bytes, meta).map(Self::Blocks).map(Some),
            CODED => CodedTokens::read(place, bytes, meta).map(Self::Coded).map(Some),
            _ => Ok(None),
        }
    }

    /// Returns the id of `word`, if it is one of the words.
    ///
    /// # Errors
    /// [`Error::Format`] if the tokens near it are not as declared.
    pub(in crate::format) fn word_id(&self, place: Origin<'_>, bytes: &[u8], word: &[u8]) -> Result<Option<u32>> {
        match self {
            Self::Blocks(directory) => directory.word_id(place, bytes, word),
            Self::Coded(coded) => coded.word_id(place, bytes, word),
        }
    }

    /// Returns the number of bytes of main memory in use.
    pub(in crate::format) fn memory_bytes(&self) -> usize {
        match self {
            Self::Blocks(directory) => directory.memory_bytes(),
            Self::Coded(coded) => coded.memory_bytes(),
        }
    }
}

/// Reads the directory of the blocks of the segment `meta`, whose section has the codec [`BLOCKS`].
fn directory(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Directory> {
    let num_tokens = u64::from(meta.num_words) + u64::from(meta.num_separators);
    Directory::read(place, bytes, (meta.num_words, num_tokens), meta.dictionary_bytes)
}

fn decode_lists(place: Origin<'_>, lists: &[List<'_>]) -> Result<Tokens> {
    lists.iter().try_for_each(|list| list.check(place))?;
    let mut decoded: Vec<Tokens> = lists.par_iter().map(|list| list.decode(place)).collect::<Result<_>>()?;
    Ok(match decoded.len() {
        1 => decoded.swap_remove(0),
        _ => Tokens::joined(&decoded),
    })
}

/// Returns the parts of `whole`, which together are all of it.
fn parts<'a>(place: Origin<'a>, whole: &List<'a>) -> Result<Vec<List<'a>>> {
    let mut cursor = Cursor::new(place, whole.bytes);
    let num_parts = cursor.varint()?;
    if num_parts > MAX_PARTS_READ {
        let reason = format!("expected at most {MAX_PARTS_READ} parts, got {num_parts}");
        return Err(place.fault(0, reason));
    }
    let mut lens = Vec::new();
    for _ in 0..num_parts {
        lens.push([cursor.varint()?, cursor.varint()?, cursor.varint()?]);
    }
    let mut lists = Vec::with_capacity(lens.len());
    for [num_tokens, len, list_len] in lens {
        let bytes = cursor.take(usize::try_from(list_len).unwrap_or(usize::MAX))?;
        lists.push(List { num_tokens, len, bytes });
    }
    cursor.finish()?;
    let sum = |number: fn(&List<'_>) -> u64| lists.iter().try_fold(0u64, |sum, list| sum.checked_add(number(list)));
    let sums = (sum(|list| list.num_tokens), sum(|list| list.len));
    if sums != (Some(whole.num_tokens), Some(whole.len)) {
        let List { num_tokens, len, .. } = whole;
        return Err(place.fault(0, format!("expected parts of {num_tokens} tokens, {len} bytes")));
    }
    Ok(lists)
}

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
            SegmentLayout::Fast | SegmentLayout::Indexed { .. } => Self { tokens_per_block: 1 << 12, level: 9 },
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
/// [`Error::Io`] if zstd cannot allocate memory.
pub(in crate::format) fn encode_blocks(dictionary: &Dictionary, layout: SegmentLayout) -> Result<Vec<u8>> {
    encode_with(dictionary, Shape::from_layout(layout))
}

fn encode_with(dictionary: &Dictionary, shape: Shape) -> Result<Vec<u8>> {
    let Shape { tokens_per_block, level } = shape;
    let starts: Vec<u32> = (0..dictionary.len()).step_by(tokens_per_block as usize).collect();
    let tokens_of = |&start: &u32| start..dictionary.len().min(start + tokens_per_block);
    let list_of = |start: &u32| -> Result<Vec<u8>> {
        let mut list = Vec::new();
        let tokens = tokens_of(start).map(|id| dictionary.get(id));
        strings::encode(&mut list, tokens, |_| level)?;
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
    /// [`Error::Format`] if `bytes` are no such section.
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
        let firsts = blocks.iter().take(num_blocks_of_words).map(|block| &bytes[block.first.clone()]);
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
    /// [`Error::Format`] for a block that is not as declared.
    pub(in crate::format) fn decode(&self, place: Origin<'_>, bytes: &[u8]) -> Result<Tokens> {
        let decoded = self.blocks.par_iter().map(|block| block.decode(place, bytes));
        Ok(Tokens::joined(&decoded.collect::<Result<Vec<_>>>()?))
    }

    /// Returns the id of `word`, if it is one of the words. Decodes one block.
    ///
    /// # Errors
    /// [`Error::Format`] if this block is not as declared, or not in order.
    pub(in crate::format) fn word_id(&self, place: Origin<'_>, bytes: &[u8], word: &[u8]) -> Result<Option<u32>> {
        let from_words = &self.blocks[..self.num_blocks_of_words];
        let behind = from_words.partition_point(|block| bytes[block.first.clone()] <= *word);
        let Some(block_idx) = behind.checked_sub(1) else { return Ok(None) };
        let tokens = from_words[block_idx].decode(place, bytes)?;
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

    const PLACE: Origin<'static> = Origin { file: "f", section: "dictionary", offset: 0 };

    /// Builds a dictionary of ascending words and separators.
    fn dictionary(words: &[String], num_separators: usize) -> Dictionary {
        let separators: Vec<String> = (0..num_separators).map(|i| " ".repeat(i + 1)).collect();
        let tokens: Vec<&String> = words.iter().chain(&separators).collect();
        let mut offsets = vec![0u32];
        offsets.extend(tokens.iter().scan(0, |end, token| {
            *end += token.len() as u32;
            Some(*end)
        }));
        let bytes: String = tokens.into_iter().map(String::as_str).collect();
        Dictionary::from_parts(words.len() as u32, offsets, Bytes::from(bytes)).unwrap()
    }

    fn meta(dictionary: &Dictionary) -> SegmentMeta {
        SegmentMeta {
            num_docs: 1,
            dictionary_bytes: dictionary.bytes().len() as u64,
            num_words: dictionary.num_words(),
            num_separators: dictionary.len() - dictionary.num_words(),
            num_rules: 1,
            ..SegmentMeta::default()
        }
    }

    fn check(dictionary: &Dictionary, num_parts: usize) {
        check_encoded(dictionary, encode_parts(dictionary, num_parts));
        check_encoded(dictionary, encode(dictionary, SegmentLayout::Fast).unwrap());
    }

    fn check_encoded(dictionary: &Dictionary, (codec, bytes): (u16, Vec<u8>)) {
        let meta = meta(dictionary);
        let decoded = decode(PLACE, codec, &bytes, &meta).unwrap();
        assert_eq!(decoded.offsets(), dictionary.offsets());
        assert_eq!(decoded.bytes(), dictionary.bytes());
        // Another codec, a byte more or less, and other totals are each refused.
        assert!(matches!(decode(PLACE, 6, &bytes, &meta), Err(Error::Version { .. })));
        assert!(decode(PLACE, codec, &[&bytes[..], &[0]].concat(), &meta).is_err());
        assert!(decode(PLACE, codec, &bytes[..bytes.len() - 1], &meta).is_err());
        let more = SegmentMeta { num_separators: meta.num_separators + 1, ..meta.clone() };
        assert!(decode(PLACE, codec, &bytes, &more).is_err());
        let longer = SegmentMeta { dictionary_bytes: meta.dictionary_bytes + 1, ..meta };
        assert!(decode(PLACE, codec, &bytes, &longer).is_err());
    }

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(
            words in prop::collection::btree_set("[a-c]{1,6}|[a-zäöü]{1,40}", 0..120),
            num_separators in 0usize..9,
            num_parts in 1usize..12,
        ) {
            let words: Vec<String> = words.into_iter().collect();
            check(&dictionary(&words, num_separators), num_parts);
        }

        #[test]
        fn any_bytes_are_refused_or_decoded(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            codec in LIST..=BLOCKS,
        ) {
            let words: Vec<String> = ["a", "ab", "b"].map(String::from).into();
            let dictionary = dictionary(&words, 2);
            drop(decode(PLACE, codec, &bytes, &meta(&dictionary)));
        }
    }

    #[test]
    fn large_dictionaries_have_parts() {
        let words: Vec<String> = (0..20_000).map(|i| format!("word{i:06}")).collect();
        let dictionary = dictionary(&words, 3);
        assert_eq!(dictionary.bytes().len(), 200_006);
        let (codec, bytes) = encode(&dictionary, SegmentLayout::Small).unwrap();
        assert_eq!((codec, bytes[0]), (PARTS, 4));
        assert_eq!(encode_parts(&dictionary, 1).0, LIST);
        for num_parts in [1, 2, 3, 16] {
            check(&dictionary, num_parts);
        }
    }

    #[test]
    fn the_largest_dictionaries_have_blocks_in_both_layouts() {
        let words: Vec<String> = (0..110_000).map(|i| format!("word{i:06}")).collect();
        let dictionary = dictionary(&words, 3);
        assert!(dictionary.bytes().len() >= MIN_BLOCKS_BYTES);
        for layout in [SegmentLayout::Small, SegmentLayout::Fast] {
            let (codec, bytes) = encode(&dictionary, layout).unwrap();
            assert_eq!(codec, BLOCKS);
            check_encoded(&dictionary, (codec, bytes));
        }
    }

    #[test]
    fn lies_about_parts_are_refused() {
        let words: Vec<String> = (0..40).map(|i| format!("w{i:02}")).collect();
        let dictionary = dictionary(&words, 0);
        let meta = meta(&dictionary);
        let refused = |numbers: &[u64]| {
            let mut bytes = Vec::new();
            numbers.iter().for_each(|&number| push_varint(&mut bytes, number));
            matches!(decode(PLACE, PARTS, &bytes, &meta), Err(Error::Format { .. }))
        };
        assert!(refused(&[]));
        assert!(refused(&[0]));
        assert!(refused(&[17]));
        assert!(refused(&[u64::MAX]));
        assert!(refused(&[1, 40, 120, 0]));
        assert!(refused(&[2, u64::MAX, 120, 0, 41, 0, 0]));
        assert!(refused(&[1, 40, 120, u64::MAX]));
    }

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

    fn encoded(dictionary: &Dictionary, tokens_per_block: u32) -> Vec<u8> {
        encode_with(dictionary, Shape { tokens_per_block, level: 9 }).unwrap()
    }

    fn read(dictionary: &Dictionary, bytes: &[u8]) -> Result<Directory> {
        let sizes = (dictionary.num_words(), dictionary.len().into());
        Directory::read(BLOCKS_PLACE, bytes, sizes, dictionary.bytes().len() as u64)
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
            let directory = read(&dictionary, &bytes).unwrap();
            for word in words.iter().chain(&asked) {
                let word_id = directory.word_id(BLOCKS_PLACE, &bytes, word.as_bytes()).unwrap();
                prop_assert_eq!(word_id, words.iter().position(|w| w == word).map(|id| id as u32));
            }
            let Tokens { arena, offsets } = directory.decode(BLOCKS_PLACE, &bytes).unwrap();
            prop_assert_eq!((&arena[..], &offsets[..]), (&dictionary.bytes()[..], dictionary.offsets()));
        }

        #[test]
        fn damaged_blocks_are_refused_or_answer(at in any::<prop::sample::Index>(), bit in 0u32..8) {
            let words: BTreeSet<String> = (0..300).map(|n| format!("w{}", n * n)).collect();
            let dictionary = dictionary_of_words(words.iter(), 2);
            let mut bytes = encoded(&dictionary, 64);
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            if let Ok(directory) = read(&dictionary, &bytes) {
                let _ = directory.word_id(BLOCKS_PLACE, &bytes, b"w100");
                let _ = directory.decode(BLOCKS_PLACE, &bytes);
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
        assert!(directory.word_id(BLOCKS_PLACE, &bytes, b"w25").is_err());
        assert!(directory.decode(BLOCKS_PLACE, &bytes).is_err());
    }
}
