//! Codecs of facts that are known without the grammar: paths and lengths of documents, and counts of words.
//!
//! Paths stand in the documents section, in document order. There are two codecs. The layout `small` takes the smaller
//! result, `indexed` the second codec:
//!
//! ```text
//! 1  strings (see `strings`)
//! 2  front-coded strings in zstd (see `front_coded`)
//! ```
//!
//! Neighbouring paths share their folder. In a corpus of lines or rows all paths are equal, or end in ascending
//! numbers. Names of one word each are smaller with the first codec (tldr pages: 23.6 KB, zstd 28.3). Names of repeated
//! parts are smaller with the second (Office reference: 25.2 KB, strings 32.1).
//!
//! # Lengths
//!
//! Bytes and words of each document's part in a segment, in document order:
//!
//! ```text
//! pack(bytes: LEB128 each) | pack(words: LEB128 each)      zstd
//! ```
//!
//! The section takes 3 bytes for each document that is a source file, 1 for each that is a line.
//!
//! # Word counts
//!
//! The occurrences of each word of a segment, in dictionary order. The distribution of a count's magnitude depends on
//! the length of the word, because short words are frequent. A count of 2^32 - 1 or more is an escape and two halves.
//! The section takes 2.6 to 8 bits for each word, 1 to 3 % of a file. It needs O(words) time.

use crate::error::{Error, Result};
use crate::format::codec_numbers::{DOCUMENTS_STRINGS, DOCUMENTS_ZSTD};
use crate::format::cursor::{Cursor, Origin, pack, push_varint};
use crate::format::entropy::{Decoder, Distribution, Encoder, MAX_SYMBOLS_PER_BYTE};
use crate::format::framing::SegmentLayout;
use crate::format::layout::SegmentMeta;
use crate::format::strings::{self, FrontCoded, StringModels};
use crate::grammar::Grammar;
use crate::segment::{DocumentLength, PathRuns, Paths};
use crate::text::Dictionary;

/// Compression level of the layout `small`.
const LEVEL: i32 = 19;
/// Compression level of the layout `indexed`. Level 19 takes twenty times as long, a twentieth of the time of ingestion
/// of small files, and makes files smaller by less than a thousandth.
const FAST_LEVEL: i32 = 9;
/// Compression level above [`LARGE_LEN_BYTES`], so that writing keeps up with the grammar builder.
const LEVEL_OF_LARGE: i32 = 6;
const LARGE_LEN_BYTES: usize = 1 << 20;

/// Returns the codec of the section and its bytes for `paths`, in the layout `layout`.
///
/// # Errors
/// [`Error::Io`] if zstd cannot allocate memory.
pub(in crate::format) fn encode(paths: &Paths, layout: SegmentLayout) -> Result<(u16, Vec<u8>)> {
    let all = || (0..paths.len()).filter_map(|doc| paths.get(doc)).map(str::as_bytes);
    let level = |len_bytes| {
        if len_bytes > LARGE_LEN_BYTES {
            LEVEL_OF_LARGE
        } else if layout == SegmentLayout::Small {
            LEVEL
        } else {
            FAST_LEVEL
        }
    };
    let mut packed = Vec::new();
    strings::encode(&mut packed, all(), level)?;
    if layout != SegmentLayout::Small {
        return Ok((DOCUMENTS_ZSTD, packed));
    }
    let mut models = StringModels::new();
    let mut encoder = Encoder::default();
    let mut previous: &[u8] = &[];
    for path in all() {
        models.encode(&mut encoder, previous, path);
        previous = path;
    }
    let mut strings = Vec::new();
    encoder.finish(&mut strings);
    Ok(if packed.len() < strings.len() { (DOCUMENTS_ZSTD, packed) } else { (DOCUMENTS_STRINGS, strings) })
}

/// Decodes the paths of the segment `meta` from its section, which is encoded by `codec`.
///
/// # Errors
/// [`Error::Format`] if the section does not contain exactly the paths that `meta` declares,
/// [`Error::Version`] for an unknown codec.
pub(in crate::format) fn decode(place: Origin<'_>, codec: u16, bytes: &[u8], meta: &SegmentMeta) -> Result<Paths> {
    Ok(decode_with(place, codec, bytes, meta, false)?.paths)
}

/// Variant of [`decode`] that keeps one path of equal neighbours.
///
/// # Errors
/// As [`decode`].
pub(in crate::format) fn decode_runs(
    place: Origin<'_>,
    codec: u16,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<PathRuns> {
    decode_with(place, codec, bytes, meta, true)
}

fn decode_with(place: Origin<'_>, codec: u16, bytes: &[u8], meta: &SegmentMeta, joins_equal: bool) -> Result<PathRuns> {
    let mut paths =
        PathsDecoder { place, meta, joins_equal, arena: Vec::new(), ends: Vec::new(), num_docs: Vec::new() };
    match codec {
        DOCUMENTS_STRINGS => {
            let mut models = StringModels::new();
            let mut decoder = Decoder::new(place, bytes)?;
            // Shared bytes cost nothing, so the section bounds only the number of paths.
            if meta.num_docs > (bytes.len() as u64).saturating_mul(MAX_SYMBOLS_PER_BYTE) {
                return Err(place.fault(0, format!("expected fewer than {} paths", meta.num_docs)));
            }
            paths.decode_all(|arena, previous, max_len| models.decode(&mut decoder, arena, previous, max_len))?;
            decoder.finish()?;
        }
        DOCUMENTS_ZSTD => {
            let mut cursor = Cursor::new(place, bytes);
            let packed = FrontCoded::unpack(place, &mut cursor, meta.num_docs, meta.paths_bytes)?;
            cursor.finish()?;
            let mut strings = packed.strings();
            paths.decode_all(|arena, previous, max_len| strings.decode(arena, previous, max_len))?;
            strings.finish()?;
        }
        codec => {
            let expected = "documents codec 1 or 2".into();
            let got = format!("documents codec {codec}");
            return Err(Error::Version { file: place.file.into(), expected, got });
        }
    }
    paths.finish()
}

struct PathsDecoder<'a> {
    place: Origin<'a>,
    meta: &'a SegmentMeta,
    /// If true, equal neighbours are one path.
    joins_equal: bool,
    arena: Vec<u8>,
    ends: Vec<u64>,
    /// Number of documents of each path, if equal neighbours are one.
    num_docs: Vec<u64>,
}

impl PathsDecoder<'_> {
    /// Decodes every path with `decode`. It appends one path to the arena, and receives the start
    /// of the previous path and the greatest length of the arena.
    fn decode_all(&mut self, mut decode: impl FnMut(&mut Vec<u8>, usize, usize) -> Option<()>) -> Result<()> {
        let mut previous = 0;
        let mut len_bytes = 0u64;
        for doc in 0..self.meta.num_docs {
            let start = self.arena.len();
            let is_decoded = decode(&mut self.arena, previous, self.meta.paths_bytes as usize);
            let is_equal = self.joins_equal && doc > 0 && self.arena[previous..start] == self.arena[start..];
            if is_decoded.is_none() || !is_equal && std::str::from_utf8(&self.arena[start..]).is_err() {
                let reason = format!("expected path {doc} in UTF-8 and within the bytes declared");
                return Err(self.place.fault(0, reason));
            }
            len_bytes = len_bytes.saturating_add((self.arena.len() - start) as u64);
            if is_equal {
                self.arena.truncate(start);
                if let Some(num_docs) = self.num_docs.last_mut() {
                    *num_docs += 1;
                }
                continue;
            }
            previous = start;
            self.ends.push(self.arena.len() as u64);
            if self.joins_equal {
                self.num_docs.push(1);
            }
        }
        let expected = self.meta.paths_bytes;
        if len_bytes != expected {
            return Err(self.place.fault(0, format!("expected {expected} bytes of paths, got {len_bytes}")));
        }
        Ok(())
    }

    fn finish(self) -> Result<PathRuns> {
        let bytes = String::from_utf8(self.arena).map_err(|e| self.place.fault(0, e.to_string()))?;
        Ok(PathRuns { paths: Paths::from_parts(bytes, self.ends), num_docs: self.num_docs })
    }
}

const LEVEL_OF_LENGTHS: i32 = 9;
/// Greatest length of an integer.
const MAX_INTEGER_BYTES: usize = 10;

/// Encodes the `lengths` of all documents.
///
/// # Errors
/// [`Error::Io`] if zstd cannot allocate memory.
pub(in crate::format) fn encode_lengths(lengths: &[DocumentLength]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let mut lens_bytes = Vec::new();
    let mut nums_words = Vec::new();
    for length in lengths {
        push_varint(&mut lens_bytes, length.len_bytes);
        push_varint(&mut nums_words, length.num_words);
    }
    pack(&mut out, &lens_bytes, LEVEL_OF_LENGTHS)?;
    pack(&mut out, &nums_words, LEVEL_OF_LENGTHS)?;
    Ok(out)
}

/// Decodes the lengths of all documents of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`] if the section does not contain exactly these lengths,
/// or if their sums differ from the bytes and words of text that `meta` declares.
pub(in crate::format) fn decode_lengths(
    place: Origin<'_>,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<Vec<DocumentLength>> {
    let mut cursor = Cursor::new(place, bytes);
    // One stream is unpacked at a time, which bounds the memory.
    let lens_bytes = unpack(&mut cursor, meta)?;
    let mut lengths = Vec::with_capacity(meta.num_docs as usize);
    for_each_integer(place, &lens_bytes, meta, ("bytes", meta.len_bytes), |_, len_bytes| {
        lengths.push(DocumentLength { len_bytes, num_words: 0 });
    })?;
    drop(lens_bytes);
    let nums_words = unpack(&mut cursor, meta)?;
    for_each_integer(place, &nums_words, meta, ("words", meta.num_word_tokens), |doc, num_words| {
        lengths[doc].num_words = num_words;
    })?;
    cursor.finish()?;
    Ok(lengths)
}

/// Unpacks the next stream, which has at least one byte for each document.
fn unpack(cursor: &mut Cursor<'_>, meta: &SegmentMeta) -> Result<Vec<u8>> {
    let raw = cursor.unpack((meta.num_docs as usize).saturating_mul(MAX_INTEGER_BYTES))?;
    if (raw.len() as u64) < meta.num_docs {
        let expected = meta.num_docs;
        let got = raw.len();
        return Err(cursor.fault(format!("expected {expected} numbers, got {got} bytes")));
    }
    Ok(raw)
}

/// Calls `take` with the position and the value of each integer of the stream `raw`, one for each
/// document. `total` names the integers and has their sum.
fn for_each_integer(
    place: Origin<'_>,
    raw: &[u8],
    meta: &SegmentMeta,
    total: (&str, u64),
    mut take: impl FnMut(usize, u64),
) -> Result<()> {
    let mut integers = Cursor::new(place, raw);
    let mut sum = Some(0u64);
    for doc in 0..meta.num_docs as usize {
        let integer = integers.varint()?;
        sum = sum.and_then(|sum| sum.checked_add(integer));
        take(doc, integer);
    }
    integers.finish()?;
    let (what, expected) = total;
    if sum == Some(expected) {
        Ok(())
    } else {
        Err(place.fault(0, format!("expected documents of {expected} {what} in all")))
    }
}

/// Returns the length of each document of `grammar`, whose terminals are those of `dictionary`. It
/// needs O(G) time. The grammar must be valid. Lengths of 2^64 or more wrap; no such file opens.
pub(in crate::format) fn document_lengths(grammar: &Grammar, dictionary: &Dictionary) -> Vec<DocumentLength> {
    let num_terminals = grammar.num_terminals as usize;
    let mut expansions = Vec::with_capacity(num_terminals + grammar.num_rules());
    expansions.extend((0..).zip(dictionary.lengths()).map(|(id, len_bytes)| {
        let is_word = id < dictionary.num_words();
        Expansion {
            len_bytes: len_bytes.into(),
            num_words: is_word.into(),
            begins_with_word: is_word,
            ends_with_word: is_word,
        }
    }));
    expansions.resize(num_terminals + grammar.num_rules(), Expansion::default());
    for rule_id in grammar.rule_ids().skip(1).rev() {
        expansions[grammar.element_for(rule_id) as usize] = Expansion::joined(grammar.rule(rule_id), &expansions);
    }
    let cuts = grammar.doc_offsets.windows(2);
    let docs = cuts.map(|cuts| &grammar.root()[cuts[0] as usize..cuts[1] as usize]);
    let joined = docs.map(|doc| Expansion::joined(doc, &expansions));
    joined.map(|Expansion { len_bytes, num_words, .. }| DocumentLength { len_bytes, num_words }).collect()
}

/// Length and edges of the expansion of some elements.
#[derive(Debug, Clone, Copy, Default)]
struct Expansion {
    len_bytes: u64,
    num_words: u64,
    begins_with_word: bool,
    ends_with_word: bool,
}

impl Expansion {
    /// Returns the expansion of `elements` in a row. `expansions` has those of all elements, by id.
    fn joined(elements: &[u32], expansions: &[Self]) -> Self {
        let begins_with_word = elements.first().is_some_and(|&first| expansions[first as usize].begins_with_word);
        let mut all = Self { begins_with_word, ..Self::default() };
        for &element in elements {
            let next = expansions[element as usize];
            let blank = all.ends_with_word & next.begins_with_word;
            all.len_bytes = all.len_bytes.wrapping_add(next.len_bytes).wrapping_add(blank.into());
            all.num_words = all.num_words.wrapping_add(next.num_words);
            all.ends_with_word = next.ends_with_word;
        }
        all
    }
}

/// Length in bytes from which on words share a distribution.
const MAX_WORD_LEN: usize = 15;
const ESCAPE: u32 = u32::MAX;

/// Distributions of magnitudes by the length of the word.
type CountModels = [Distribution<32>; MAX_WORD_LEN + 1];

/// Encodes the counts of the words of `dictionary`. `counts` is indexed by word id.
pub(in crate::format) fn encode_counts(dictionary: &Dictionary, counts: &[u64]) -> Vec<u8> {
    let mut models = new_count_models();
    let mut encoder = Encoder::default();
    for (id, &count) in (0..dictionary.num_words()).zip(counts) {
        let model = &mut models[dictionary.get(id).len().min(MAX_WORD_LEN)];
        let low = u32::try_from(count).unwrap_or(ESCAPE);
        encoder.number(model, low);
        if low == ESCAPE {
            encoder.number(model, count as u32);
            encoder.number(model, (count >> 32) as u32);
        }
    }
    let mut out = Vec::new();
    encoder.finish(&mut out);
    out
}

/// Decodes the counts of the words of `dictionary` from the section of the segment `meta`, by word
/// id.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the section does not contain exactly these counts, or
/// if their sum differs from the number of words of text that `meta` declares.
pub(in crate::format) fn decode_counts(
    place: Origin<'_>,
    bytes: &[u8],
    dictionary: &Dictionary,
    meta: &SegmentMeta,
) -> Result<Vec<u64>> {
    if u64::from(meta.num_words) > (bytes.len() as u64).saturating_mul(MAX_SYMBOLS_PER_BYTE) {
        return Err(place.fault(0, format!("expected fewer than {} counts", meta.num_words)));
    }
    let mut models = new_count_models();
    let mut decoder = Decoder::new(place, bytes)?;
    let mut count_of = |id| {
        let model = &mut models[dictionary.get(id).len().min(MAX_WORD_LEN)];
        match decoder.number(model) {
            ESCAPE => u64::from(decoder.number(model)) | u64::from(decoder.number(model)) << 32,
            count => u64::from(count),
        }
    };
    let counts: Vec<u64> = (0..meta.num_words).map(&mut count_of).collect();
    decoder.finish()?;
    let sum = counts.iter().try_fold(0u64, |sum, &count| sum.checked_add(count));
    if sum != Some(meta.num_word_tokens) {
        let expected = meta.num_word_tokens;
        return Err(place.fault(0, format!("expected counts of {expected} words of text")));
    }
    Ok(counts)
}

fn new_count_models() -> CountModels {
    std::array::from_fn(|_| Distribution::new())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    const PLACE: Origin<'static> = Origin { file: "f", section: "document lengths", offset: 0 };

    fn meta(lengths: &[DocumentLength]) -> SegmentMeta {
        let num_word_tokens = lengths.iter().map(|length| length.num_words).sum();
        SegmentMeta {
            num_docs: lengths.len() as u64,
            len_bytes: lengths.iter().map(|length| length.len_bytes).sum(),
            num_tokens: num_word_tokens,
            num_word_tokens,
            num_rules: 1,
            ..SegmentMeta::default()
        }
    }

    fn any_lengths() -> impl Strategy<Value = Vec<DocumentLength>> {
        // At most 150 of these numbers have a sum below 2^64.
        let number = || (any::<u64>(), 8u32..64).prop_map(|(number, shift)| number >> shift);
        let length = (number(), number());
        let length = length.prop_map(|(len_bytes, num_words)| DocumentLength { len_bytes, num_words });
        prop::collection::vec(length, 0..150)
    }

    #[test]
    fn many_documents_take_few_bytes() {
        let length = |doc: u64| DocumentLength { len_bytes: 80 + doc % 7, num_words: 12 };
        let lengths: Vec<_> = (0..10_000).map(length).collect();
        assert!(encode_lengths(&lengths).unwrap().len() < 1_000);
        let empty = vec![DocumentLength::default(); 1 << 20];
        assert_eq!(decode_lengths(PLACE, &encode_lengths(&empty).unwrap(), &meta(&empty)).unwrap(), empty);
    }

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(lengths in any_lengths()) {
            let bytes = encode_lengths(&lengths).unwrap();
            let meta = meta(&lengths);
            prop_assert_eq!(&decode_lengths(PLACE, &bytes, &meta).unwrap(), &lengths);
            let longer = [&bytes[..], &[0]].concat();
            prop_assert!(decode_lengths(PLACE, &longer, &meta).is_err());
            prop_assert!(decode_lengths(PLACE, &bytes[..bytes.len() - 1], &meta).is_err());
            for other in [
                SegmentMeta { len_bytes: meta.len_bytes + 1, ..meta.clone() },
                SegmentMeta { num_word_tokens: meta.num_word_tokens + 1, ..meta.clone() },
                SegmentMeta { num_docs: meta.num_docs + 1, ..meta.clone() },
            ] {
                prop_assert!(decode_lengths(PLACE, &bytes, &other).is_err());
            }
        }

        #[test]
        fn any_bytes_are_refused_or_decode_to_the_sums(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            lens in prop::collection::vec(any::<u8>(), 0..20),
            num_docs in 0u64..20,
        ) {
            let meta = SegmentMeta { num_docs, ..meta(&[]) };
            let frames = [bytes.clone(), {
                let mut frames = Vec::new();
                pack(&mut frames, &bytes, 1).unwrap();
                pack(&mut frames, &lens, 1).unwrap();
                frames
            }];
            for input in frames {
                if let Ok(got) = decode_lengths(PLACE, &input, &meta) {
                    prop_assert_eq!(got, vec![DocumentLength::default(); num_docs as usize]);
                }
            }
        }
    }

    const COUNTS_PLACE: Origin<'static> = Origin { file: "f", section: "word counts", offset: 0 };

    fn dictionary(num_words: usize) -> Dictionary {
        let word = |i: usize| format!("{:0width$}", i, width = 3 + i / 9);
        let mut words: Vec<String> = (0..num_words).map(word).collect();
        words.sort();
        let mut offsets = vec![0u32];
        for word in &words {
            offsets.push(offsets[offsets.len() - 1] + word.len() as u32);
        }
        Dictionary::from_parts(num_words as u32, offsets, Bytes::from(words.concat())).unwrap()
    }

    fn meta_for_counts(counts: &[u64]) -> SegmentMeta {
        SegmentMeta {
            num_docs: 1,
            num_tokens: counts.iter().sum(),
            num_word_tokens: counts.iter().sum(),
            num_words: counts.len() as u32,
            num_rules: 1,
            ..SegmentMeta::default()
        }
    }

    proptest! {
        #[test]
        fn counts_that_are_coded_are_decoded(
            counts in prop::collection::vec((any::<u64>(), 8u32..64).prop_map(|(n, shift)| n >> shift), 0..150),
        ) {
            let dictionary = dictionary(counts.len());
            let bytes = encode_counts(&dictionary, &counts);
            let meta = meta_for_counts(&counts);
            prop_assert_eq!(decode_counts(COUNTS_PLACE, &bytes, &dictionary, &meta).unwrap(), counts.clone());
            let longer = [&bytes[..], &[0]].concat();
            prop_assert!(decode_counts(COUNTS_PLACE, &longer, &dictionary, &meta).is_err());
            let more = SegmentMeta { num_word_tokens: meta.num_word_tokens + 1, ..meta };
            prop_assert!(decode_counts(COUNTS_PLACE, &bytes, &dictionary, &more).is_err());
        }

        #[test]
        fn any_bytes_are_refused_or_decode_to_the_sum_of_counts(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            num_words in 0usize..40,
        ) {
            let counts = vec![1; num_words];
            if let Ok(got) = decode_counts(COUNTS_PLACE, &bytes, &dictionary(num_words), &meta_for_counts(&counts)) {
                prop_assert_eq!(got.iter().sum::<u64>(), num_words as u64);
            }
        }
    }
}
