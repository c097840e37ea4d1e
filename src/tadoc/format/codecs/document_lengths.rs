//! Codec of document lengths: bytes and words of each document's part in a segment, in document
//! order.
//!
//! ```text
//! pack(bytes: LEB128 each) | pack(words: LEB128 each)      zstd
//! ```
//!
//! The section takes 3 bytes for each document that is a source file, 1 for each that is a line. With
//! it and the paths, the facts about documents are known without the grammar. Decoding both takes
//! about 25 ns for each line.

use crate::error::Result;
use crate::format::cursor::{Cursor, Origin, pack, push_varint};
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;
use crate::segment::DocumentLength;
use crate::text::Dictionary;

/// Number of the codec in the footer.
pub(in crate::format) const CODEC: u16 = 1;

const LEVEL: i32 = 9;
/// Greatest length of an integer.
const MAX_INTEGER_BYTES: usize = 10;

/// Encodes the `lengths` of all documents.
///
/// # Errors
/// [`Error::Io`](crate::Error::Io) if zstd cannot allocate memory.
pub(in crate::format) fn encode(lengths: &[DocumentLength]) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    let (mut lens_bytes, mut nums_words) = (Vec::new(), Vec::new());
    for length in lengths {
        push_varint(&mut lens_bytes, length.len_bytes);
        push_varint(&mut nums_words, length.num_words);
    }
    pack(&mut out, &lens_bytes, LEVEL)?;
    pack(&mut out, &nums_words, LEVEL)?;
    Ok(out)
}

/// Decodes the lengths of all documents of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the section does not contain exactly these lengths, or
/// if their sums differ from the bytes and words of text that `meta` declares.
pub(in crate::format) fn decode(
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
    for_each_integer(
        place,
        &nums_words,
        meta,
        ("words", meta.num_word_tokens),
        |doc, num_words| {
            lengths[doc].num_words = num_words;
        },
    )?;
    cursor.finish()?;
    Ok(lengths)
}

/// Unpacks the next stream, which has at least one byte for each document.
fn unpack(cursor: &mut Cursor<'_>, meta: &SegmentMeta) -> Result<Vec<u8>> {
    let raw = cursor.unpack((meta.num_docs as usize).saturating_mul(MAX_INTEGER_BYTES))?;
    if (raw.len() as u64) < meta.num_docs {
        let (expected, got) = (meta.num_docs, raw.len());
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
pub(in crate::format) fn document_lengths(
    grammar: &Grammar,
    dictionary: &Dictionary,
) -> Vec<DocumentLength> {
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
        expansions[grammar.element_of(rule_id) as usize] =
            Expansion::joined(grammar.rule(rule_id), &expansions);
    }
    let cuts = grammar.doc_offsets.windows(2);
    let docs = cuts.map(|cuts| &grammar.root()[cuts[0] as usize..cuts[1] as usize]);
    let joined = docs.map(|doc| Expansion::joined(doc, &expansions));
    joined
        .map(|Expansion { len_bytes, num_words, .. }| DocumentLength { len_bytes, num_words })
        .collect()
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
        let begins_with_word =
            elements.first().is_some_and(|&first| expansions[first as usize].begins_with_word);
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

#[cfg(test)]
mod tests {
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
        let length =
            length.prop_map(|(len_bytes, num_words)| DocumentLength { len_bytes, num_words });
        prop::collection::vec(length, 0..150)
    }

    #[test]
    fn many_documents_take_few_bytes() {
        let length = |doc: u64| DocumentLength { len_bytes: 80 + doc % 7, num_words: 12 };
        let lengths: Vec<_> = (0..10_000).map(length).collect();
        assert!(encode(&lengths).unwrap().len() < 1_000);
        let empty = vec![DocumentLength::default(); 1 << 20];
        assert_eq!(decode(PLACE, &encode(&empty).unwrap(), &meta(&empty)).unwrap(), empty);
    }

    proptest! {
        #[test]
        fn what_is_coded_is_decoded(lengths in any_lengths()) {
            let bytes = encode(&lengths).unwrap();
            let meta = meta(&lengths);
            prop_assert_eq!(&decode(PLACE, &bytes, &meta).unwrap(), &lengths);
            let longer = [&bytes[..], &[0]].concat();
            prop_assert!(decode(PLACE, &longer, &meta).is_err());
            prop_assert!(decode(PLACE, &bytes[..bytes.len() - 1], &meta).is_err());
            for other in [
                SegmentMeta { len_bytes: meta.len_bytes + 1, ..meta.clone() },
                SegmentMeta { num_word_tokens: meta.num_word_tokens + 1, ..meta.clone() },
                SegmentMeta { num_docs: meta.num_docs + 1, ..meta.clone() },
            ] {
                prop_assert!(decode(PLACE, &bytes, &other).is_err());
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
                if let Ok(got) = decode(PLACE, &input, &meta) {
                    prop_assert_eq!(got, vec![DocumentLength::default(); num_docs as usize]);
                }
            }
        }
    }
}
