//! Decoder of the grammar section, in two steps that run in parallel.
//!
//! ```text
//! rANS, plain bits ─ BatchReader ─▶ batch of symbols and numbers ─ Replay ─▶ grammar
//! ```
//!
//! Symbols and numbers depend on no element, so one batch is read while the one before is replayed, by
//! another thread if there is one. The result is the same in both cases.
//!
//! Experiment without effect: reading the entries of the next 24 or 64 events ahead in one loop. No event
//! waits for the one before, so the processor already overlaps their reads.

use crate::error::Result;
use crate::format::codecs::grammar::batches::{Batch, BatchReader};
use crate::format::codecs::grammar::replay::Replay;
use crate::format::codecs::grammar::{BATCH_LEN, check_counts, misfit};
use crate::format::cursor::Origin;
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

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
    check_counts(place, bytes, meta, BATCH_LEN as u64)?;
    let mut reader = BatchReader::new(place, bytes, meta)?;
    let mut replay = Replay::new(meta);
    let (mut batch, mut next) = (Batch::default(), Batch::default());
    reader.read(&mut batch);
    while !batch.is_empty() {
        let (_, fits) =
            rayon::join(|| reader.read(&mut next), || replay_batch(&mut replay, &batch));
        fits.ok_or_else(|| misfit(place))?;
        std::mem::swap(&mut batch, &mut next);
    }
    if !reader.is_at_end() {
        return Err(place.fault(0, "expected symbols and bits to end with their stream"));
    }
    replay.finish(meta.num_docs).ok_or_else(|| misfit(place))
}

/// Applies the events of `batch`. Returns `None` if one does not fit.
fn replay_batch(replay: &mut Replay, batch: &Batch) -> Option<()> {
    batch.events().try_for_each(|(symbol, number)| replay.event(symbol, number))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::format::codecs::grammar::encode;
    use crate::grammar::{RoundsOptions, build_rounds, expand_tokens};

    const PLACE: Origin<'_> = Origin { file: "a", section: "grammar", offset: 0 };

    fn meta_of(grammar: &Grammar, num_words: u32) -> SegmentMeta {
        SegmentMeta {
            num_docs: grammar.num_docs() as u64,
            num_words,
            num_separators: grammar.num_terminals - num_words,
            num_rules: grammar.num_rules() as u32,
            num_elements: grammar.symbols.len() as u64,
            ..SegmentMeta::default()
        }
    }

    /// Builds a grammar over 40 words and 9 separators from tokens that recur near and far.
    fn grammar_of(picks: &[(u16, u8)], num_docs: usize) -> Grammar {
        let mut tokens: Vec<u32> = Vec::new();
        for &(pick, kind) in picks {
            let (pick, before) = (usize::from(pick), tokens.len());
            match kind {
                0..3 => tokens.extend(40..40 + pick as u32 % 9),
                3..12 => tokens.push(pick as u32 % 40),
                _ => {
                    let start = before.saturating_sub(pick);
                    tokens.extend_from_within(start..start + (before - start).min(pick / 50));
                }
            }
            tokens.truncate(60_000);
        }
        let ends: Vec<usize> = (1..=num_docs).map(|doc| tokens.len() * doc / num_docs).collect();
        build_rounds(tokens, &ends, 49, &RoundsOptions::default()).unwrap()
    }

    fn check_round_trip(grammar: &Grammar) {
        let bytes = encode(grammar, 40);
        let read = decode(PLACE, &bytes, &meta_of(grammar, 40)).unwrap();
        read.validate().unwrap();
        assert_eq!(expand_tokens(&read), expand_tokens(grammar));
        assert_eq!(read.num_docs(), grammar.num_docs());
        assert_eq!(encode(&read, 40), bytes);
    }

    #[test]
    fn several_batches_come_back() {
        // A pair of random words seldom recurs, so that there are more events than in a batch.
        let mixed = |i: u32| i.wrapping_mul(0x9e37_79b1).rotate_left(i % 31) >> 7;
        let tokens: Vec<u32> = (0..150_000).map(|i| mixed(i) % 3_000).collect();
        let grammar =
            build_rounds(tokens, &[70_000, 70_000, 150_000], 3_001, &RoundsOptions::default())
                .unwrap();
        assert!(grammar.symbols.len() > 2 * BATCH_LEN);
        let bytes = encode(&grammar, 2_990);
        let meta = meta_of(&grammar, 2_990);
        let read = decode(PLACE, &bytes, &meta).unwrap();
        assert_eq!(expand_tokens(&read), expand_tokens(&grammar));
        assert_eq!(encode(&read, 2_990), bytes);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(one.install(|| decode(PLACE, &bytes, &meta).unwrap()), read);
        assert_eq!(one.install(|| encode(&grammar, 2_990)), bytes);
    }

    #[test]
    fn a_grammar_has_a_root() {
        let grammar = grammar_of(&[], 2);
        let bytes = encode(&grammar, 40);
        let meta = SegmentMeta { num_rules: 0, ..meta_of(&grammar, 40) };
        assert!(decode(PLACE, &bytes, &meta).is_err());
    }

    proptest! {
        #[test]
        fn grammars_come_back(
            picks in prop::collection::vec((any::<u16>(), 0u8..16), 0..900),
            num_docs in 1usize..5,
        ) {
            check_round_trip(&grammar_of(&picks, num_docs));
        }

        #[test]
        fn other_bytes_and_counts_are_refused_or_read(
            picks in prop::collection::vec((any::<u16>(), 0u8..16), 0..200),
            changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..4),
            (words, separators, rules, elements, docs) in (-2i64..3, -2i64..3, -2i64..3, -2i64..3, -2i64..3),
        ) {
            let grammar = grammar_of(&picks, 2);
            let mut bytes = encode(&grammar, 40);
            for (at, byte) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
            let mut meta = meta_of(&grammar, 40);
            meta.num_words = meta.num_words.saturating_add_signed(words as i32);
            meta.num_separators = meta.num_separators.saturating_add_signed(separators as i32);
            meta.num_rules = meta.num_rules.saturating_add_signed(rules as i32);
            meta.num_elements = meta.num_elements.saturating_add_signed(elements);
            meta.num_docs = meta.num_docs.saturating_add_signed(docs);
            if let Ok(read) = decode(PLACE, &bytes, &meta) {
                prop_assert!(read.validate().is_ok());
                prop_assert_eq!(meta_of(&read, meta.num_words), meta);
            }
        }

        #[test]
        fn any_bytes_are_refused_or_read(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            (num_elements, num_docs, num_rules) in (0u64..3_000, 0u64..4, 0u32..9),
        ) {
            let symbols = vec![0];
            let grammar = Grammar { num_terminals: 49, rule_offsets: vec![0, 1], symbols, doc_offsets: vec![0, 1] };
            let meta = SegmentMeta { num_docs, num_rules, num_elements, ..meta_of(&grammar, 40) };
            if let Ok(read) = decode(PLACE, &bytes, &meta) {
                prop_assert!(read.validate().is_ok());
            }
        }
    }
}
