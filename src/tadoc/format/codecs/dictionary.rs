//! Codec of the dictionary section: words, then separators, both in byte order, as lists of
//! strings.
//!
//! ```text
//! codec 1   one list
//! codec 2   number of parts | of each: tokens, bytes of tokens, bytes of list | the lists
//! codec 3   front-coded strings in zstd (see `front_coded`)
//! codec 4   blocks of these (see `dictionary_blocks`)
//! ```
//!
//! The layout `fast` has codec 4, and so have large dictionaries of the layout `small`. A list is decoded at 350 to
//! 700 ns a token, blocks at 90, and a word is found in one block: the search for a word that does not occur in 272
//! MB of sources took half of the time of opening all of it.
//!
//! See [`strings`](crate::format::strings) for a list. Numbers are LEB128. Decoding a list waits
//! for its next model in memory, so only other lists can be decoded at the same time. Therefore a
//! dictionary is cut into parts of equally many tokens, which threads decode in parallel. Each part
//! learns its distributions anew. Two parts make a dictionary 0.2 to 4 % larger, four 0.6 to 8 %,
//! which is 0.1 to 0.6 % of a file.
//!
//! The footer contains the number of tokens and of their bytes. [`Dictionary`] checks that tokens
//! ascend and that words are UTF-8.

use bytes::Bytes;
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::format::codecs::dictionary_blocks::{self, Directory};
use crate::format::codecs::token_list::{List, Tokens};
use crate::format::cursor::{Cursor, Origin, push_varint};
use crate::format::entropy::Encoder;
use crate::format::layout::SegmentMeta;
use crate::format::segment_layout::SegmentLayout;
use crate::format::strings::StringModels;
use crate::text::Dictionary;

/// Numbers of the codecs in the footer.
const LIST: u16 = 1;
const PARTS: u16 = 2;
const ZSTD: u16 = 3;
pub(in crate::format) const BLOCKS: u16 = 4;

/// Least number of token bytes in a part, decoded in about a millisecond, and greatest number of
/// parts that are written. With 16 parts f-dbtext, whose dictionary is two fifths of the file, was
/// 0.9 % larger, with four 0.25 %.
const PART_BYTES: u64 = 48 << 10;
const MAX_PARTS: u64 = 4;
/// Least number of token bytes for which the layout `small` has blocks. Smaller dictionaries are decoded in a few
/// hundredths of a second.
const MIN_BLOCKS_BYTES: usize = 1 << 20;
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
pub(in crate::format) fn encode(
    dictionary: &Dictionary,
    layout: SegmentLayout,
) -> Result<(u16, Vec<u8>)> {
    match layout {
        SegmentLayout::Small if dictionary.bytes().len() < MIN_BLOCKS_BYTES => {
            let num_parts = num_parts(dictionary.bytes().len() as u64);
            Ok(encode_parts(dictionary, num_parts as usize))
        }
        _ => Ok((BLOCKS, dictionary_blocks::encode(dictionary, layout)?)),
    }
}

/// Encodes `dictionary` in at most `num_parts` parts.
fn encode_parts(dictionary: &Dictionary, num_parts: usize) -> (u16, Vec<u8>) {
    let part_len = (dictionary.len() as usize).div_ceil(num_parts).max(1);
    let starts: Vec<usize> = (0..dictionary.len() as usize).step_by(part_len).collect();
    if starts.len() <= 1 {
        return (LIST, encode_list(dictionary, 0..dictionary.len()));
    }
    let range =
        |&start: &usize| start as u32..(start + part_len).min(dictionary.len() as usize) as u32;
    let lists: Vec<Vec<u8>> =
        starts.par_iter().map(|start| encode_list(dictionary, range(start))).collect();
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
pub(in crate::format) fn decode(
    place: Origin<'_>,
    codec: u16,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<Dictionary> {
    let num_tokens = u64::from(meta.num_words) + u64::from(meta.num_separators);
    let whole = List { num_tokens, len: meta.dictionary_bytes, bytes };
    let tokens = match codec {
        LIST => decode_lists(place, &[whole])?,
        PARTS => decode_lists(place, &parts(place, &whole)?)?,
        ZSTD => whole.decode_front_coded(place)?,
        BLOCKS => directory(place, bytes, meta)?.decode(place, bytes)?,
        codec => {
            let (expected, got) =
                ("dictionary codec 1 to 4".into(), format!("dictionary codec {codec}"));
            return Err(Error::Version { file: place.file.into(), expected, got });
        }
    };
    Dictionary::from_parts(meta.num_words, tokens.offsets, Bytes::from(tokens.arena))
        .map_err(|e| place.fault(0, e.to_string()))
}

/// Reads the directory of the blocks of the segment `meta`, whose section has the codec [`BLOCKS`].
///
/// # Errors
/// Same as [`Directory::read`].
pub(in crate::format) fn directory(
    place: Origin<'_>,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<Directory> {
    let num_tokens = u64::from(meta.num_words) + u64::from(meta.num_separators);
    Directory::read(place, bytes, (meta.num_words, num_tokens), meta.dictionary_bytes)
}

fn decode_lists(place: Origin<'_>, lists: &[List<'_>]) -> Result<Tokens> {
    lists.iter().try_for_each(|list| list.check(place))?;
    let mut decoded: Vec<Tokens> =
        lists.par_iter().map(|list| list.decode(place)).collect::<Result<_>>()?;
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
    let sum = |number: fn(&List<'_>) -> u64| {
        lists.iter().try_fold(0u64, |sum, list| sum.checked_add(number(list)))
    };
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
        check_encoded(dictionary, encode_parts(dictionary, num_parts));
        check_encoded(dictionary, encode(dictionary, SegmentLayout::Fast).unwrap());
    }

    fn check_encoded(dictionary: &Dictionary, (codec, bytes): (u16, Vec<u8>)) {
        let meta = meta(dictionary);
        let decoded = decode(PLACE, codec, &bytes, &meta).unwrap();
        assert_eq!(decoded.offsets(), dictionary.offsets());
        assert_eq!(decoded.bytes(), dictionary.bytes());
        // Another codec, a byte more or less, and other totals are each refused.
        assert!(matches!(decode(PLACE, 5, &bytes, &meta), Err(Error::Version { .. })));
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
}
