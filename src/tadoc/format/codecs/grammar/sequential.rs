//! Decoder of the grammar section in the codec before the present one, event by event.
//!
//! The symbol's distribution depends on the kind of the previous event and on the trust in the
//! prediction, so the next symbol waits for the element before last.

use crate::error::Result;
use crate::format::codecs::grammar::prediction::{NUM_LEVELS, Prediction};
use crate::format::codecs::grammar::replay::Replay;
use crate::format::codecs::grammar::{
    DOC_END, HAS_NUMBER, NEW_RULE, NUM_LISTS, NUM_SYMBOLS, PREDICTED, UNSEEN_SEPARATOR,
    UNSEEN_WORD, check_counts, ends_with_separator, misfit,
};
use crate::format::cursor::Origin;
use crate::format::entropy::{Decoder, Distribution, MAX_SYMBOLS_PER_BYTE};
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

/// Number of kinds of events: an element of a list, unseen, new rule after a word or a separator,
/// document.
const NUM_KINDS: usize = NUM_LISTS + 5;
const UNSEEN_KIND: usize = NUM_LISTS;
const NEW_RULE_KIND: usize = NUM_LISTS + 2;
const DOC_END_KIND: usize = NUM_LISTS + 4;
/// Number of the codec in the footer.
pub(in crate::format) const CODEC: u16 = 1;

/// Decodes the grammar of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the section does not contain exactly the grammar that
/// `meta` declares.
pub(in crate::format) fn decode(
    place: Origin<'_>,
    bytes: &[u8],
    meta: &SegmentMeta,
) -> Result<Grammar> {
    check_counts(place, bytes, meta, MAX_SYMBOLS_PER_BYTE)?;
    let mut symbols = vec![Distribution::<NUM_SYMBOLS>::new(); NUM_KINDS * NUM_LEVELS];
    let mut numbers = vec![Distribution::<NUM_SYMBOLS>::new(); NUM_SYMBOLS];
    let mut decoder = Decoder::new(place, bytes)?;
    let mut replay = Replay::new(meta);
    let num_ids = meta.num_words + meta.num_separators + meta.num_rules;
    let mut prediction = Prediction::new(num_ids as usize);
    let mut kind = DOC_END_KIND;
    for _ in 0..meta.num_elements + meta.num_docs {
        let symbol = decoder.symbol(&mut symbols[NUM_KINDS * prediction.level() + kind]);
        let fits = match symbol {
            PREDICTED => replay.predicted(prediction.next()),
            UNSEEN_WORD | UNSEEN_SEPARATOR => {
                let number = decoder.uniform(replay.num_unseen(symbol - UNSEEN_WORD));
                replay.event(symbol as u8, number)
            }
            _ if HAS_NUMBER >> symbol & 1 == 0 => replay.event(symbol as u8, 0),
            _ => replay.event(symbol as u8, decoder.number(&mut numbers[symbol])),
        };
        fits.ok_or_else(|| misfit(place))?;
        match symbol {
            NEW_RULE => {}
            DOC_END => prediction.note_doc_end(),
            _ => prediction.note(replay.last_element()),
        }
        kind = match symbol {
            UNSEEN_WORD | UNSEEN_SEPARATOR => UNSEEN_KIND + replay.last_list(),
            NEW_RULE => NEW_RULE_KIND + usize::from(ends_with_separator(replay.last_list())),
            DOC_END => DOC_END_KIND,
            _ => replay.last_list(),
        };
    }
    decoder.finish()?;
    replay.finish(meta.num_docs).ok_or_else(|| misfit(place))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Corpus;
    use crate::format::codecs::grammar;
    use crate::format::{OpenLimits, SectionKind};

    /// A file of the codec, whose documents `tests/core/fixtures.rs` makes.
    const FILE: &[u8] = include_bytes!("../../../../../tests/core/fixtures/2026-11-24.tadoc");
    const PLACE: Origin<'static> = Origin { file: "f", section: "grammar", offset: 0 };

    fn section() -> (SegmentMeta, &'static [u8]) {
        let (footer, _) = Corpus::from_bytes("f", FILE, &OpenLimits::default()).unwrap();
        let meta = footer.segments[0].clone();
        let section = meta.section(SectionKind::Grammar).unwrap();
        let bytes = &FILE[section.offset as usize..][..section.len as usize];
        (meta, bytes)
    }

    #[test]
    fn either_codec_gives_the_same_grammar() {
        let (meta, bytes) = section();
        let read = decode(PLACE, bytes, &meta).unwrap();
        read.validate().unwrap();
        let again = grammar::encode(&read, meta.num_words);
        assert!(again.len() < bytes.len() + bytes.len() / 50);
        assert_eq!(grammar::decode(PLACE, &again, &meta).unwrap(), read);
    }

    proptest! {
        #[test]
        fn other_bytes_and_counts_are_refused_or_read(
            changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..4),
            len in prop_oneof![4 => Just(usize::MAX), 1 => 0usize..8_000],
            (rules, elements, docs) in (-2i32..3, -2i64..3, -2i64..3),
        ) {
            let (mut meta, bytes) = section();
            let mut bytes = bytes[..len.min(bytes.len())].to_vec();
            for (at, byte) in changes {
                let at = usize::from(at) % bytes.len().max(1);
                bytes.get_mut(at..=at).into_iter().for_each(|to| to[0] = byte);
            }
            meta.num_rules = meta.num_rules.saturating_add_signed(rules);
            meta.num_elements = meta.num_elements.saturating_add_signed(elements);
            meta.num_docs = meta.num_docs.saturating_add_signed(docs);
            if let Ok(read) = decode(PLACE, &bytes, &meta) {
                prop_assert!(read.validate().is_ok());
            }
        }
    }
}
