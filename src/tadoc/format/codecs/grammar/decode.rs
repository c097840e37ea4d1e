//! Decoder of the grammar section, in two steps that run in parallel.
//!
//! ```text
//! rANS, plain bits ─ BatchReader ─▶ batch of symbols and numbers ─ Replay ─▶ grammar
//! ```
//!
//! Symbols and numbers depend on no element, so one batch is read while the one before is replayed,
//! by another thread if there is one. The result is the same in both cases.
//!
//! Experiment without effect: reading the entries of the next 24 or 64 events ahead in one loop. No
//! event waits for the one before, so the processor already overlaps their reads.
//!
//! # Sequential
//!
//! Decoder of the grammar section in the codec before the present one, event by event.
//!
//! The symbol's distribution depends on the kind of the previous event and on the trust in the
//! prediction, so the next symbol waits for the element before last.
//!
//! # Prediction
//!
//! Prediction of the next element in the codec before the present one: with trust.
//!
//! ```text
//! slots   by element: the element that followed two later, its run length
//! … x  y  ?        slots[x] predicts; then slots[x] learns the actual element
//! ```
//!
//! A slot keeps its element if another one follows once. The present codec does without (+0.1 %).
//! Two more slots represent the begin of a document. It needs 8 bytes for each id.

use crate::error::Result;
use crate::format::cursor::Origin;
use crate::format::entropy::{Decoder, Distribution, MAX_SYMBOLS_PER_BYTE};
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

use super::batches::{Batch, BatchReader};
use super::replay::Replay;
use super::{
    BATCH_LEN, DOC_END, HAS_NUMBER, NEW_RULE, NUM_LISTS, NUM_SYMBOLS, PREDICTED, UNSEEN_SEPARATOR, UNSEEN_WORD,
    check_counts, ends_with_separator, misfit,
};

/// Decodes the grammar of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the section does not contain exactly the grammar that
/// `meta` declares.
pub(in crate::format) fn decode(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Grammar> {
    check_counts(place, bytes, meta, BATCH_LEN as u64)?;
    let mut reader = BatchReader::new(place, bytes, meta)?;
    let mut replay = Replay::new(meta);
    let (mut batch, mut next) = (Batch::default(), Batch::default());
    reader.read(&mut batch);
    while !batch.is_empty() {
        let (_, fits) = rayon::join(|| reader.read(&mut next), || replay_batch(&mut replay, &batch));
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

/// Number of kinds of events: an element of a list, unseen, new rule after a word or a separator,
/// document.
const NUM_KINDS: usize = NUM_LISTS + 5;
const UNSEEN_KIND: usize = NUM_LISTS;
const NEW_RULE_KIND: usize = NUM_LISTS + 2;
const DOC_END_KIND: usize = NUM_LISTS + 4;
/// Number of the codec in the footer.
pub(in crate::format) const SEQUENTIAL: u16 = 1;

/// Decodes the grammar of the segment `meta` from its section.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the section does not contain exactly the grammar that
/// `meta` declares.
pub(in crate::format) fn decode_sequential(place: Origin<'_>, bytes: &[u8], meta: &SegmentMeta) -> Result<Grammar> {
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

/// Number of trust levels. Each has its own distribution of symbols.
pub(in crate::format) const NUM_LEVELS: usize = 3;
const MAX_RUN_LEN: u8 = 15;
const NOTHING: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Slot {
    element: u32,
    run_len: u8,
}

/// Predictions by element.
#[derive(Debug)]
pub(in crate::format) struct Prediction {
    slots: Vec<Slot>,
    /// Previous element. Its slot is read one element before it is needed, because memory is slow.
    before: usize,
    before_slot: Slot,
    before_last: usize,
    slot: Slot,
}

impl Prediction {
    /// Creates predictions for ids below `num_elements`.
    pub(in crate::format) fn new(num_elements: usize) -> Self {
        let slot = Slot { element: NOTHING, run_len: 0 };
        Self {
            slots: vec![slot; num_elements + 2],
            before: num_elements + 1,
            before_slot: slot,
            before_last: num_elements,
            slot,
        }
    }

    /// Returns the trust in the prediction, less than [`NUM_LEVELS`].
    #[inline]
    pub(in crate::format) fn level(&self) -> usize {
        usize::from(self.slot.run_len > 0) + usize::from(self.slot.run_len > 2)
    }

    /// Returns the predicted element, or an id that does not exist.
    #[inline]
    pub(in crate::format) fn next(&self) -> u32 {
        self.slot.element
    }

    /// Learns that `element` came next.
    #[inline]
    pub(in crate::format) fn note(&mut self, element: u32) {
        let mut slot = self.slot;
        if slot.element == element {
            slot.run_len = (slot.run_len + 1).min(MAX_RUN_LEN);
        } else if slot.run_len > 1 {
            slot.run_len /= 2;
        } else {
            slot = Slot { element, run_len: 0 };
        }
        self.slots[self.before_last] = slot;
        self.slot = if self.before == self.before_last { slot } else { self.before_slot };
        self.before_last = self.before;
        self.before = element as usize;
        self.before_slot = self.slots[self.before];
    }

    /// Learns that the next element is the first of a document.
    pub(in crate::format) fn note_doc_end(&mut self) {
        self.before_last = self.slots.len() - 2;
        self.before = self.slots.len() - 1;
        self.slot = self.slots[self.before_last];
        self.before_slot = self.slots[self.before];
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Corpus;
    use crate::format::codecs::grammar::{self, encode};
    use crate::format::{OpenLimits, SectionKind};
    use crate::grammar::{Dedup, build_rounds, expand_tokens};

    use super::*;

    const PLACE: Origin<'_> = Origin { file: "a", section: "grammar", offset: 0 };

    fn meta_for(grammar: &Grammar, num_words: u32) -> SegmentMeta {
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
    fn grammar_from(picks: &[(u16, u8)], num_docs: usize) -> Grammar {
        let mut tokens: Vec<u32> = Vec::new();
        for &(pick, kind) in picks {
            let pick = usize::from(pick);
            let before = tokens.len();
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
        build_rounds(tokens, &ends, 49, Dedup::Auto).unwrap()
    }

    fn check_round_trip(grammar: &Grammar) {
        let bytes = encode(grammar, 40);
        let read = decode(PLACE, &bytes, &meta_for(grammar, 40)).unwrap();
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
        let grammar = build_rounds(tokens, &[70_000, 70_000, 150_000], 3_001, Dedup::Auto).unwrap();
        assert!(grammar.symbols.len() > 2 * BATCH_LEN);
        let bytes = encode(&grammar, 2_990);
        let meta = meta_for(&grammar, 2_990);
        let read = decode(PLACE, &bytes, &meta).unwrap();
        assert_eq!(expand_tokens(&read), expand_tokens(&grammar));
        assert_eq!(encode(&read, 2_990), bytes);
        let one = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        assert_eq!(one.install(|| decode(PLACE, &bytes, &meta).unwrap()), read);
        assert_eq!(one.install(|| encode(&grammar, 2_990)), bytes);
    }

    #[test]
    fn a_grammar_has_a_root() {
        let grammar = grammar_from(&[], 2);
        let bytes = encode(&grammar, 40);
        let meta = SegmentMeta { num_rules: 0, ..meta_for(&grammar, 40) };
        assert!(decode(PLACE, &bytes, &meta).is_err());
    }

    proptest! {
        #[test]
        fn grammars_come_back(
            picks in prop::collection::vec((any::<u16>(), 0u8..16), 0..900),
            num_docs in 1usize..5,
        ) {
            check_round_trip(&grammar_from(&picks, num_docs));
        }

        #[test]
        fn other_bytes_and_counts_are_refused_or_read(
            picks in prop::collection::vec((any::<u16>(), 0u8..16), 0..200),
            changes in prop::collection::vec((any::<u16>(), any::<u8>()), 0..4),
            (words, separators, rules, elements, docs) in (-2i64..3, -2i64..3, -2i64..3, -2i64..3, -2i64..3),
        ) {
            let grammar = grammar_from(&picks, 2);
            let mut bytes = encode(&grammar, 40);
            for (at, byte) in changes {
                let at = usize::from(at) % bytes.len();
                bytes[at] = byte;
            }
            let mut meta = meta_for(&grammar, 40);
            meta.num_words = meta.num_words.saturating_add_signed(words as i32);
            meta.num_separators = meta.num_separators.saturating_add_signed(separators as i32);
            meta.num_rules = meta.num_rules.saturating_add_signed(rules as i32);
            meta.num_elements = meta.num_elements.saturating_add_signed(elements);
            meta.num_docs = meta.num_docs.saturating_add_signed(docs);
            if let Ok(read) = decode(PLACE, &bytes, &meta) {
                prop_assert!(read.validate().is_ok());
                prop_assert_eq!(meta_for(&read, meta.num_words), meta);
            }
        }

        #[test]
        fn any_bytes_are_refused_or_read(
            bytes in prop::collection::vec(any::<u8>(), 0..300),
            (num_elements, num_docs, num_rules) in (0u64..3_000, 0u64..4, 0u32..9),
        ) {
            let symbols = vec![0];
            let grammar = Grammar { num_terminals: 49, rule_offsets: vec![0, 1], symbols, doc_offsets: vec![0, 1] };
            let meta = SegmentMeta { num_docs, num_rules, num_elements, ..meta_for(&grammar, 40) };
            if let Ok(read) = decode(PLACE, &bytes, &meta) {
                prop_assert!(read.validate().is_ok());
            }
        }
    }

    /// A file of the codec, whose documents `tests/core/fixtures.rs` makes.
    const FILE: &[u8] = include_bytes!("../../../../../tests/core/fixtures/2026-11-24.tadoc");
    const SEQUENTIAL_PLACE: Origin<'static> = Origin { file: "f", section: "grammar", offset: 0 };

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
        let read = decode_sequential(SEQUENTIAL_PLACE, bytes, &meta).unwrap();
        read.validate().unwrap();
        let again = grammar::encode(&read, meta.num_words);
        assert!(again.len() < bytes.len() + bytes.len() / 50);
        assert_eq!(grammar::decode(SEQUENTIAL_PLACE, &again, &meta).unwrap(), read);
    }

    proptest! {
        #[test]
        fn other_bytes_and_counts_of_old_sections_are_refused_or_read(
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
            if let Ok(read) = decode_sequential(SEQUENTIAL_PLACE, &bytes, &meta) {
                prop_assert!(read.validate().is_ok());
            }
        }
    }

    #[test]
    fn what_follows_two_later_is_predicted() {
        let mut prediction = Prediction::new(100);
        assert_eq!(prediction.next(), NOTHING);
        for field in 10..20 {
            for element in [1, field, 2, field + 10] {
                prediction.note(element);
            }
        }
        assert_eq!((prediction.next(), prediction.level()), (1, 2));
        prediction.note(5);
        prediction.note_doc_end();
        assert_eq!(prediction.next(), 1);
        prediction.note(1);
        assert_eq!(prediction.next(), 10);
    }
}
