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
//! The codec before the present one is decoded event by event. The symbol's distribution depends on the kind of the
//! previous event and on the trust in the prediction, so the next symbol waits for the element before last.
//!
//! # Prediction
//!
//! There the next element is predicted with trust:
//!
//! ```text
//! slots   by element: the element that followed two later, its run length
//! … x  y  ?        slots[x] predicts; then slots[x] learns the actual element
//! ```
//!
//! A slot keeps its element if another one follows once. The present codec does without (+0.1 %).
//! Two more slots represent the begin of a document. It needs 8 bytes for each id.
//!
//! # Batches
//!
//! ```text
//! section   symbols_len LEB128 | symbols | numbers_len LEB128 | bits of numbers | bits of indices
//! symbols   by batch of 32,768 events: states, then words
//! batch     symbols of events, four lanes in turn │ magnitudes, four lanes in turn
//! lane      0 ━━━━━━━━ 1 ━━━━━━━━ 2 ━━━━━━━━ 3 ━━━━━━━━ rest (lane 0)
//! ```
//!
//! A symbol depends on the two events before it in its lane, and a magnitude on its symbol. So a processor decodes four
//! symbols at a time, each from a quarter of the batch. All lanes share the distributions. Batches of fewer than 256
//! events have one lane, because a state takes eight bytes.
//!
//! AVX2 has a mask of all comparisons in two instructions, so it is faster than scalar search.
//! Searching with SSE2 (a sum of masks) is slower.

use crate::error::Result;
use crate::format::codecs::grammar::{
    Context, LANES, Models, lane_len, new_models, num_in_lanes, num_lanes, number_model,
};
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::{
    BitDecoder, Decoder, Distribution, Interval, MAX_SYMBOLS_PER_BYTE, SymbolDecoder, take_part,
};
use crate::format::layout::SegmentMeta;
use crate::grammar::Grammar;

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
    let mut batch = Batch::default();
    let mut next = Batch::default();
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
const NUM_LEVELS: usize = 3;
const MAX_RUN_LEN: u8 = 15;
const NOTHING: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Slot {
    element: u32,
    run_len: u8,
}

/// Predictions by element.
#[derive(Debug)]
struct Prediction {
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
    fn note_doc_end(&mut self) {
        self.before_last = self.slots.len() - 2;
        self.before = self.slots.len() - 1;
        self.slot = self.slots[self.before_last];
        self.before_slot = self.slots[self.before];
    }
}

/// Symbols of a batch of events, and the number or the index of each event that has one.
#[derive(Debug, Default)]
pub(super) struct Batch {
    symbols: Vec<u8>,
    numbers: Vec<u32>,
}

impl Batch {
    pub(super) fn is_empty(&self) -> bool {
        self.symbols.is_empty()
    }

    /// Returns the symbol of each event and its number or index, if it has one.
    pub(super) fn events(&self) -> impl Iterator<Item = (u8, u32)> {
        self.symbols.iter().copied().zip(self.numbers.iter().copied())
    }
}

/// Decoder of batches. Past the end it reads zeros.
struct BatchReader<'a> {
    stream: SymbolDecoder<'a, LANES>,
    bits: BitDecoder<'a>,
    indices: BitDecoder<'a>,
    models: Models,
    /// Events that are left.
    num_left: u64,
    /// Words and separators that are left.
    num_unseen: [u32; 2],
    /// Places of the events with numbers, then of those with indices.
    places: Vec<u16>,
}

impl<'a> BatchReader<'a> {
    /// Creates a reader of the section `bytes` at `place` of the segment `meta`.
    pub(super) fn new(place: Origin<'a>, bytes: &'a [u8], meta: &SegmentMeta) -> Result<Self> {
        let mut cursor = Cursor::new(place, bytes);
        Ok(Self {
            stream: SymbolDecoder::new(take_part(&mut cursor)?),
            bits: BitDecoder::new(take_part(&mut cursor)?),
            indices: BitDecoder::new(cursor.take(cursor.remaining())?),
            models: new_models(),
            // The first use of a rule is not an event, but its begin is one.
            num_left: meta.num_elements.saturating_add(meta.num_docs),
            num_unseen: [meta.num_words, meta.num_separators],
            places: vec![0; BATCH_LEN],
        })
    }

    /// Returns true if all bytes were read, and not more.
    pub(super) fn is_at_end(&self) -> bool {
        self.stream.is_at_end() && self.bits.is_at_end() && self.indices.is_at_end()
    }

    /// Replaces `batch` by the next one, which is empty after the last one.
    pub(super) fn read(&mut self, batch: &mut Batch) {
        let len = self.num_left.min(BATCH_LEN as u64) as usize;
        self.num_left -= len as u64;
        batch.symbols.resize(len, 0);
        batch.numbers.resize(len, 0);
        if len > 0 {
            self.stream.begin_batch(num_lanes(len));
            self.read_coded(batch);
            self.read_indices(batch);
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[allow(unsafe_code, reason = "1.45 times as fast, see above")]
    fn read_coded(&mut self, batch: &mut Batch) {
        use std::arch::is_x86_feature_detected as has;
        if has!("avx2") && has!("popcnt") && has!("bmi1") && has!("bmi2") && has!("lzcnt") {
            // SAFETY: the processor has the five features, which were asked for in the line above.
            unsafe { self.read_coded_avx2(batch) }
        } else {
            self.read_coded_by(batch, |model, slot| model.next(slot));
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn read_coded(&mut self, batch: &mut Batch) {
        self.read_coded_by(batch, |model, slot| model.next(slot));
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,popcnt,bmi1,bmi2,lzcnt")]
    fn read_coded_avx2(&mut self, batch: &mut Batch) {
        self.read_coded_by(batch, |model, slot| model.next_avx2(slot));
    }

    /// Reads symbols and numbers. `next` returns the symbol of a slot and its part. It is called at
    /// two places only, so that it is inlined in both.
    #[inline(always)]
    fn read_coded_by(&mut self, batch: &mut Batch, next: impl NextSymbol) {
        self.read_symbols(&mut batch.symbols, next);
        self.read_numbers(batch, next);
    }

    #[inline(always)]
    fn read_symbols(&mut self, symbols: &mut [u8], next: impl NextSymbol) {
        let lane_len = lane_len(symbols.len());
        let (in_lanes, rest) = symbols.split_at_mut(LANES * lane_len);
        let mut contexts = [Context::START; LANES];
        if lane_len > 0 {
            let mut lanes = in_lanes.chunks_exact_mut(lane_len);
            let mut lanes: [&mut [u8]; LANES] = std::array::from_fn(|_| lanes.next().unwrap_or_default());
            for at in 0..lane_len {
                for (lane, (context, to)) in contexts.iter_mut().zip(&mut lanes).enumerate() {
                    let model = &mut self.models[context.model()];
                    let symbol = self.stream.symbol_by(lane, |slot| next(model, slot));
                    context.note(symbol);
                    to[at] = symbol as u8;
                }
            }
        }
        let mut context = contexts[LANES - 1];
        for to in rest {
            let symbol = self.stream.symbol(0, &mut self.models[context.model()]);
            context.note(symbol);
            *to = symbol as u8;
        }
    }

    #[inline(always)]
    fn read_numbers(&mut self, batch: &mut Batch, next: impl NextSymbol) {
        let Batch { symbols, numbers } = batch;
        let num = places_from(symbols, |symbol| HAS_NUMBER >> symbol & 1 != 0, &mut self.places);
        let num_in_lanes = num_in_lanes(num, symbols.len());
        let (in_lanes, rest) = self.places[..num].split_at(num_in_lanes);
        for places in in_lanes.as_chunks::<LANES>().0 {
            for (lane, &at) in places.iter().enumerate() {
                let at = usize::from(at);
                let model = &mut self.models[number_model(symbols[at])];
                let magnitude = self.stream.symbol_by(lane, |slot| next(model, slot));
                numbers[at] = self.bits.number(magnitude);
            }
        }
        for at in rest.iter().map(|&at| usize::from(at)) {
            let magnitude = self.stream.symbol(0, &mut self.models[number_model(symbols[at])]);
            numbers[at] = self.bits.number(magnitude);
        }
    }

    fn read_indices(&mut self, batch: &mut Batch) {
        let Batch { symbols, numbers } = batch;
        let is_unseen = |symbol| usize::from(symbol) <= UNSEEN_SEPARATOR;
        let num = places_from(symbols, is_unseen, &mut self.places);
        for at in self.places[..num].iter().map(|&at| usize::from(at)) {
            let left = &mut self.num_unseen[usize::from(symbols[at]) % 2];
            numbers[at] = self.indices.uniform(*left);
            *left = left.saturating_sub(1);
        }
    }
}

/// Function that returns the symbol of a slot and its part, and learns it.
trait NextSymbol: Fn(&mut Distribution<NUM_SYMBOLS>, u16) -> (usize, Interval) + Copy {}

impl<F: Fn(&mut Distribution<NUM_SYMBOLS>, u16) -> (usize, Interval) + Copy> NextSymbol for F {}

/// Writes the places of the symbols that are `wanted` to `places` and returns their number.
#[inline]
fn places_from(symbols: &[u8], wanted: impl Fn(u8) -> bool, places: &mut [u16]) -> usize {
    // A place is always written, because a branch would be unpredictable.
    let mut num = 0;
    for (at, &symbol) in (0..).zip(symbols) {
        places[num] = at;
        num += usize::from(wanted(symbol));
    }
    num
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::Corpus;
    use crate::format::codecs::grammar::{self, encode, encode_events};
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

    proptest! {
        /// Any symbols are a batch, whether or not they are a grammar.
        #[test]
        fn batches_come_back_by_either_search(
            events in prop::collection::vec((0u8..32, any::<u32>(), 0u32..32), 1..1_500),
        ) {
            let events: Vec<(u8, u32)> =
                events.into_iter().map(|(symbol, number, shift)| (symbol, number >> shift)).collect();
            let bytes = encode_events(&events);
            let read_by = |is_plain: bool| {
                let mut reader = BatchReader::new(PLACE, &bytes, &SegmentMeta {
                    num_words: 1,
                    num_separators: 1,
                    num_rules: 1,
                    num_elements: events.len() as u64,
                    ..SegmentMeta::default()
                }).unwrap();
                let mut batch = Batch::default();
                if is_plain {
                    batch.symbols.resize(events.len(), 0);
                    batch.numbers.resize(events.len(), 0);
                    reader.stream.begin_batch(num_lanes(events.len()));
                    reader.read_coded_by(&mut batch, |model, slot| model.next(slot));
                } else {
                    reader.read(&mut batch);
                }
                assert!(reader.is_at_end());
                (batch.symbols, batch.numbers)
            };
            let (symbols, numbers) = read_by(false);
            prop_assert_eq!(&read_by(true), &(symbols.clone(), numbers.clone()));
            for (at, &(symbol, number)) in events.iter().enumerate() {
                prop_assert_eq!(symbols[at], symbol);
                if HAS_NUMBER >> symbol & 1 != 0 {
                    prop_assert_eq!(numbers[at], number);
                }
            }
        }
    }
}
