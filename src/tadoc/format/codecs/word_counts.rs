//! Codec of word counts: the number of occurrences of each word of a segment, in dictionary order.
//!
//! The distribution of a count's magnitude depends on the length of the word, because short words
//! are frequent. A count of 2^32 - 1 or more is an escape and two halves. The section takes 2.6 to
//! 8 bits for each word, 1 to 3 % of a file. With it words are counted without the grammar. It
//! needs O(words) time.

use crate::error::Result;
use crate::format::cursor::Origin;
use crate::format::entropy::{Decoder, Distribution, Encoder, MAX_SYMBOLS_PER_BYTE};
use crate::format::layout::SegmentMeta;
use crate::text::Dictionary;

/// Number of the codec in the footer.
pub(in crate::format) const CODEC: u16 = 1;

/// Length in bytes from which on words share a distribution.
const MAX_LEN: usize = 15;
const ESCAPE: u32 = u32::MAX;

/// Distributions of magnitudes by the length of the word.
type Models = [Distribution<32>; MAX_LEN + 1];

/// Encodes the counts of the words of `dictionary`. `counts` is indexed by word id.
pub(in crate::format) fn encode(dictionary: &Dictionary, counts: &[u64]) -> Vec<u8> {
    let mut models = new_models();
    let mut encoder = Encoder::default();
    for (id, &count) in (0..dictionary.num_words()).zip(counts) {
        let model = &mut models[dictionary.get(id).len().min(MAX_LEN)];
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
pub(in crate::format) fn decode(
    place: Origin<'_>,
    bytes: &[u8],
    dictionary: &Dictionary,
    meta: &SegmentMeta,
) -> Result<Vec<u64>> {
    if u64::from(meta.num_words) > (bytes.len() as u64).saturating_mul(MAX_SYMBOLS_PER_BYTE) {
        return Err(place.fault(0, format!("expected fewer than {} counts", meta.num_words)));
    }
    let mut models = new_models();
    let mut decoder = Decoder::new(place, bytes)?;
    let mut count_of = |id| {
        let model = &mut models[dictionary.get(id).len().min(MAX_LEN)];
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

fn new_models() -> Models {
    std::array::from_fn(|_| Distribution::new())
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::prelude::*;

    use super::*;

    const PLACE: Origin<'static> = Origin { file: "f", section: "word counts", offset: 0 };

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

    fn meta(counts: &[u64]) -> SegmentMeta {
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
        fn what_is_coded_is_decoded(counts in prop::collection::vec((any::<u64>(), 8u32..64).prop_map(|(n, shift)| n >> shift), 0..150)) {
            let dictionary = dictionary(counts.len());
            let bytes = encode(&dictionary, &counts);
            let meta = meta(&counts);
            prop_assert_eq!(decode(PLACE, &bytes, &dictionary, &meta).unwrap(), counts.clone());
            let longer = [&bytes[..], &[0]].concat();
            prop_assert!(decode(PLACE, &longer, &dictionary, &meta).is_err());
            let more = SegmentMeta { num_word_tokens: meta.num_word_tokens + 1, ..meta };
            prop_assert!(decode(PLACE, &bytes, &dictionary, &more).is_err());
        }

        #[test]
        fn any_bytes_are_refused_or_decode_to_the_sum(bytes in prop::collection::vec(any::<u8>(), 0..200), num_words in 0usize..40) {
            let counts = vec![1; num_words];
            if let Ok(got) = decode(PLACE, &bytes, &dictionary(num_words), &meta(&counts)) {
                prop_assert_eq!(got.iter().sum::<u64>(), num_words as u64);
            }
        }
    }
}
