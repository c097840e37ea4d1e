//! Codec of the dictionary section: words, then separators, both in byte order, as lists of strings.
//!
//! ```text
//! codec 1   one list
//! codec 2   number of parts | of each: tokens, bytes of tokens, bytes of list | the lists
//! codec 3   front-coded strings in zstd (see `strings`)
//! codec 4   blocks of these (see `blocks`)
//! codec 5   tokens that are read alone (see `coded_tokens`)
//! codec 6   codec 4 with its directory in a section of its own, the head
//! codec 7   codec 5 with its codes and first tokens in a head, and with groups of tokens
//! ```
//!
//! Dictionaries of the layout `indexed` have a head, unless they are small: for one word the head and a block
//! or a group are read and nothing else. The head has the place and the checksum of each. Large ones have
//! codec 7, because few of their tokens are needed at a time, and the others codec 6. Small ones of the
//! layout `indexed` and large ones of the layout `small` have codec 4. Blocks are decoded several times as fast as
//! a list, and a word is found in one block.
//!
//! See [`strings`] for a list. Numbers are LEB128. Decoding a list waits for its next model in memory, so only other
//! lists can be decoded at the same time. Therefore a dictionary is cut into parts of equally many tokens, which
//! threads decode in parallel. Each part learns its distributions anew. Two parts make a dictionary 0.2 to 4 % larger,
//! four 0.6 to 8 %, which is 0.1 to 0.6 % of a file.
//!
//! The footer contains the number of tokens and of their bytes. [`Dictionary`] checks that tokens
//! ascend and that words are UTF-8.

mod blocks;

use std::ops::Range;

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::format::codec_numbers::{
    CODED_DICTIONARY, DICTIONARY_BLOCKS, DICTIONARY_LIST, DICTIONARY_PARTS, DICTIONARY_ZSTD, HEADED_BLOCKS,
    HEADED_CODED, has_head,
};
use crate::format::codecs::Places;
use crate::format::codecs::coded_tokens::{self, CodedTokens};
use crate::format::cursor::{Cursor, Origin, push_varint};
use crate::format::entropy::Encoder;
use crate::format::framing::SegmentLayout;
use crate::format::layout::SegmentMeta;
use crate::format::strings::{List, StringModels, Tokens};
use crate::text::Dictionary;

use blocks::Directory;

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
/// Least number of token bytes for which the layout `indexed` has a head. Smaller dictionaries take about as many
/// bytes as a block of a larger one.
const MIN_HEADED_BYTES: usize = 1 << 16;
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

/// A dictionary as it is written.
#[derive(Debug)]
pub(in crate::format) struct EncodedDictionary {
    pub codec: u16,
    /// Bytes of the head, if there is one.
    pub head: Option<Vec<u8>>,
    pub section: Vec<u8>,
}

/// Encodes `dictionary` in the layout `layout`.
///
/// # Errors
/// [`Error::Io`] if zstd cannot allocate memory.
pub(in crate::format) fn encode(dictionary: &Dictionary, layout: SegmentLayout) -> Result<EncodedDictionary> {
    let len = dictionary.bytes().len();
    let is_indexed = matches!(layout, SegmentLayout::Indexed { .. });
    if is_indexed && len >= MIN_HEADED_BYTES {
        let (codec, (head, section)) = if len >= MIN_CODED_BYTES {
            (HEADED_CODED, coded_tokens::encode_with_head(dictionary)?)
        } else {
            (HEADED_BLOCKS, blocks::encode_with_head(dictionary, layout)?)
        };
        return Ok(EncodedDictionary { codec, head: Some(head), section });
    }
    let (codec, section) = if layout == SegmentLayout::Small && len < MIN_BLOCKS_BYTES {
        encode_parts(dictionary, num_parts(len as u64) as usize)
    } else {
        (DICTIONARY_BLOCKS, blocks::encode_blocks(dictionary, layout)?)
    };
    Ok(EncodedDictionary { codec, head: None, section })
}

/// Encodes `dictionary` in at most `num_parts` parts.
fn encode_parts(dictionary: &Dictionary, num_parts: usize) -> (u16, Vec<u8>) {
    let part_len = (dictionary.len() as usize).div_ceil(num_parts).max(1);
    let starts: Vec<usize> = (0..dictionary.len() as usize).step_by(part_len).collect();
    if starts.len() <= 1 {
        return (DICTIONARY_LIST, encode_list(dictionary, 0..dictionary.len()));
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
    (DICTIONARY_PARTS, out)
}

fn encode_list(dictionary: &Dictionary, ids: std::ops::Range<u32>) -> Vec<u8> {
    let mut models = StringModels::new();
    let mut encoder = Encoder::default();
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

/// Bytes of a dictionary, whose checksums are right.
#[derive(Debug, Clone, Copy)]
pub(in crate::format) struct DictionaryBytes<'a> {
    pub codec: u16,
    /// The head and its place, if the codec has one.
    pub head: Option<(Origin<'a>, &'a [u8])>,
    /// Place of the section.
    pub place: Origin<'a>,
    pub section: &'a [u8],
}

impl<'a> DictionaryBytes<'a> {
    /// Decodes the dictionary of the segment `meta`.
    ///
    /// # Errors
    /// [`Error::Format`] if it does not contain exactly the tokens that `meta` declares,
    /// [`Error::Version`] for an unknown codec.
    pub fn decode(&self, meta: &SegmentMeta) -> Result<Dictionary> {
        let &Self { place, section, .. } = self;
        let num_tokens = u64::from(meta.num_words) + u64::from(meta.num_separators);
        let whole = List { num_tokens, len: meta.dictionary_bytes, bytes: section };
        let tokens = match self.index(meta)? {
            Some(TokenIndex::Blocks(directory)) => directory.decode(place, section)?,
            Some(TokenIndex::Coded(coded)) => coded.decode(place, section)?,
            None if self.codec == DICTIONARY_PARTS => decode_lists(place, &parts(place, &whole)?)?,
            None if self.codec == DICTIONARY_ZSTD => whole.decode_front_coded(place)?,
            None => decode_lists(place, &[whole])?,
        };
        Dictionary::from_parts(meta.num_words, tokens.offsets, Bytes::from(tokens.arena))
            .map_err(|e| place.fault(0, e.to_string()))
    }

    /// Returns the dictionary of the tokens `ids`, which ascend, of the segment `meta`.
    ///
    /// # Errors
    /// Same as [`decode`](Self::decode), and [`Error::OutOfRange`] for an id that does not exist.
    pub fn subset(&self, meta: &SegmentMeta, ids: &[u32]) -> Result<Dictionary> {
        match self.index(meta)? {
            Some(TokenIndex::Coded(coded)) => coded.subset(self.place, self.section, ids),
            _ => self.decode(meta)?.subset(ids),
        }
    }

    /// Reads the index of the segment `meta`. Returns `None` if only all tokens can be decoded.
    ///
    /// # Errors
    /// [`Error::Format`] if the bytes are no such index, [`Error::Version`] for an unknown codec.
    pub fn index(&self, meta: &SegmentMeta) -> Result<Option<TokenIndex>> {
        let &Self { place, section, .. } = self;
        match (self.codec, self.head) {
            (DICTIONARY_BLOCKS, _) => Directory::read(place, section, meta).map(TokenIndex::Blocks).map(Some),
            (CODED_DICTIONARY, _) => CodedTokens::read(place, section, meta).map(TokenIndex::Coded).map(Some),
            (codec, Some((at, head))) => TokenIndex::from_head(at, codec, head, meta, section.len() as u64).map(Some),
            (DICTIONARY_LIST | DICTIONARY_PARTS | DICTIONARY_ZSTD, None) => Ok(None),
            (codec, None) if has_head(codec) => Err(place.fault(0, "expected a head of the dictionary")),
            (codec, None) => Err(unknown_codec(place, codec)),
        }
    }
}

fn unknown_codec(place: Origin<'_>, codec: u16) -> Error {
    let expected = "dictionary codec 1 to 7".into();
    let got = format!("dictionary codec {codec}");
    Error::Version { file: place.file.into(), expected, got }
}

/// The parts of a dictionary in which tokens are found before all are decoded.
#[derive(Debug)]
pub(in crate::format) enum TokenIndex {
    Blocks(Directory),
    Coded(CodedTokens),
}

impl TokenIndex {
    /// Reads the index of the segment `meta` from its head at `place`, whose section is encoded by `codec` and has
    /// `section_len` bytes.
    ///
    /// # Errors
    /// [`Error::Format`] if `head` is no such head, [`Error::Version`] for a codec without one.
    pub(in crate::format) fn from_head(
        place: Origin<'_>,
        codec: u16,
        head: &[u8],
        meta: &SegmentMeta,
        section_len: u64,
    ) -> Result<Self> {
        match codec {
            HEADED_BLOCKS => Directory::read_head(place, head, meta, section_len).map(Self::Blocks),
            HEADED_CODED => CodedTokens::read_head(place, head, meta, section_len).map(Self::Coded),
            codec => Err(unknown_codec(place, codec)),
        }
    }

    /// Returns the only group of tokens that can have `word`.
    pub(in crate::format) fn group_of(&self, word: &[u8]) -> Option<usize> {
        match self {
            Self::Blocks(directory) => directory.group_of(word),
            Self::Coded(coded) => coded.group_of(word),
        }
    }

    /// Returns the bytes of `group` in the section, or `None` if all of it are needed.
    pub(in crate::format) fn range(&self, group: usize) -> Option<Range<u64>> {
        self.places().map(|places| places.range(group))
    }

    fn places(&self) -> Option<&Places> {
        match self {
            Self::Blocks(directory) => Some(directory.places()),
            Self::Coded(coded) => coded.places(),
        }
    }

    /// Returns the id of `word`, if it is one of the words of `group`, from the `bytes` of the group at `place`,
    /// which are checked.
    ///
    /// # Errors
    /// [`Error::Checksum`] for other bytes, [`Error::Format`] if the tokens near the word are not as declared.
    pub(in crate::format) fn word_id_in(
        &self,
        place: Origin<'_>,
        group: usize,
        bytes: &[u8],
        word: &[u8],
    ) -> Result<Option<u32>> {
        self.places().map_or(Ok(()), |places| places.verify(place, group, bytes))?;
        match self {
            Self::Blocks(directory) => directory.word_id(place, group, bytes, word),
            Self::Coded(coded) => coded.word_id(place, group, bytes, word),
        }
    }

    /// Returns the id of `word`, if it is one of the words, from the bytes of the `section` at `place`.
    ///
    /// # Errors
    /// Same as [`word_id_in`](Self::word_id_in).
    pub(in crate::format) fn word_id(&self, place: Origin<'_>, section: &[u8], word: &[u8]) -> Result<Option<u32>> {
        let Some(group) = self.group_of(word) else { return Ok(None) };
        let bytes = self.places().map_or(Ok(section), |places| places.part(place, section, group))?;
        self.word_id_in(place, group, bytes, word)
    }

    /// Checks each group of the `section` at `place` by its own checksum.
    ///
    /// # Errors
    /// [`Error::Checksum`] for another one.
    pub(in crate::format) fn check_groups(&self, place: Origin<'_>, section: &[u8]) -> Result<()> {
        let Some(places) = self.places() else { return Ok(()) };
        (0..places.len()).try_for_each(|group| places.verify(place, group, places.part(place, section, group)?))
    }

    /// Drops what is made again when tokens are read.
    pub(in crate::format) fn forget_tables(&self) {
        if let Self::Coded(coded) = self {
            coded.forget_tables();
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

#[cfg(test)]
mod tests {
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
        let (codec, section) = encode_parts(dictionary, num_parts);
        check_encoded(dictionary, &EncodedDictionary { codec, head: None, section });
        check_encoded(dictionary, &encode(dictionary, SegmentLayout::INDEXED).unwrap());
        for (codec, parts) in [
            (HEADED_BLOCKS, blocks::encode_with_head(dictionary, SegmentLayout::INDEXED).unwrap()),
            (HEADED_CODED, coded_tokens::encode_with_head(dictionary).unwrap()),
        ] {
            check_encoded(dictionary, &EncodedDictionary { codec, head: Some(parts.0), section: parts.1 });
        }
    }

    fn decode(codec: u16, head: Option<&[u8]>, section: &[u8], meta: &SegmentMeta) -> Result<Dictionary> {
        DictionaryBytes { codec, head: head.map(|head| (PLACE, head)), place: PLACE, section }.decode(meta)
    }

    fn check_encoded(dictionary: &Dictionary, encoded: &EncodedDictionary) {
        let EncodedDictionary { codec, head, section } = encoded;
        let meta = meta(dictionary);
        let decode = |codec: u16, section: &[u8], meta: &SegmentMeta| decode(codec, head.as_deref(), section, meta);
        let decoded = decode(*codec, section, &meta).unwrap();
        assert_eq!(decoded.offsets(), dictionary.offsets());
        assert_eq!(decoded.bytes(), dictionary.bytes());
        // Another codec, a byte more or less, and other totals are each refused.
        assert!(matches!(decode(8, section, &meta), Err(Error::Version { .. })));
        assert!(decode(*codec, &[&section[..], &[0]].concat(), &meta).is_err());
        if let Some((_, less)) = section.split_last() {
            assert!(decode(*codec, less, &meta).is_err());
        }
        let more = SegmentMeta { num_separators: meta.num_separators + 1, ..meta.clone() };
        assert!(decode(*codec, section, &more).is_err());
        let longer = SegmentMeta { dictionary_bytes: meta.dictionary_bytes + 1, ..meta };
        assert!(decode(*codec, section, &longer).is_err());
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
            head in prop::collection::vec(any::<u8>(), 0..60),
            codec in DICTIONARY_LIST..=HEADED_CODED,
        ) {
            let words: Vec<String> = ["a", "ab", "b"].map(String::from).into();
            let dictionary = dictionary(&words, 2);
            drop(decode(codec, has_head(codec).then_some(&head[..]), &bytes, &meta(&dictionary)));
        }
    }

    #[test]
    fn large_dictionaries_have_parts() {
        let words: Vec<String> = (0..20_000).map(|i| format!("word{i:06}")).collect();
        let dictionary = dictionary(&words, 3);
        assert_eq!(dictionary.bytes().len(), 200_006);
        let EncodedDictionary { codec, section, .. } = encode(&dictionary, SegmentLayout::Small).unwrap();
        assert_eq!((codec, section[0]), (DICTIONARY_PARTS, 4));
        assert_eq!(encode_parts(&dictionary, 1).0, DICTIONARY_LIST);
        for num_parts in [1, 2, 3, 16] {
            check(&dictionary, num_parts);
        }
    }

    #[test]
    fn the_largest_dictionaries_have_groups() {
        let words: Vec<String> = (0..110_000).map(|i| format!("word{i:036}")).collect();
        let dictionary = dictionary(&words, 3);
        assert!(dictionary.bytes().len() >= MIN_CODED_BYTES);
        for (layout, codec) in [(SegmentLayout::Small, DICTIONARY_BLOCKS), (SegmentLayout::INDEXED, HEADED_CODED)] {
            let encoded = encode(&dictionary, layout).unwrap();
            assert_eq!(encoded.codec, codec);
            check_encoded(&dictionary, &encoded);
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
            matches!(decode(DICTIONARY_PARTS, None, &bytes, &meta), Err(Error::Format { .. }))
        };
        assert!(refused(&[]));
        assert!(refused(&[0]));
        assert!(refused(&[17]));
        assert!(refused(&[u64::MAX]));
        assert!(refused(&[1, 40, 120, 0]));
        assert!(refused(&[2, u64::MAX, 120, 0, 41, 0, 0]));
        assert!(refused(&[1, 40, 120, u64::MAX]));
    }
}
