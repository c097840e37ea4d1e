//! Reader of batches of events: entropy decoding, which needs no element.
//!
//! ```text
//! section   symbols_len LEB128 | symbols | numbers_len LEB128 | bits of numbers | bits of indices
//! symbols   by batch of 32,768 events: states, then words
//! batch     symbols of events, four lanes in turn │ magnitudes, four lanes in turn
//! lane      0 ━━━━━━━━ 1 ━━━━━━━━ 2 ━━━━━━━━ 3 ━━━━━━━━ rest (lane 0)
//! ```
//!
//! A symbol depends on the two events before it in its lane, and a magnitude on its symbol. So a
//! processor decodes four symbols at a time, each from a quarter of the batch. All lanes share the
//! distributions. Batches of fewer than 256 events have one lane, because a state takes eight
//! bytes.
//!
//! AVX2 has a mask of all comparisons in two instructions, so it is faster than scalar search.
//! Searching with SSE2 (a sum of masks) is slower.

use crate::error::Result;
use crate::format::codecs::grammar::{
    BATCH_LEN, Context, HAS_NUMBER, LANES, Models, NUM_SYMBOLS, UNSEEN_SEPARATOR, lane_len, new_models, num_in_lanes,
    num_lanes, number_model,
};
use crate::format::cursor::{Cursor, Origin};
use crate::format::entropy::{BitDecoder, Distribution, Interval, SymbolDecoder, take_part};
use crate::format::layout::SegmentMeta;

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
pub(super) struct BatchReader<'a> {
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

    use crate::format::codecs::grammar::encode_events;

    use super::*;

    const PLACE: Origin<'static> = Origin { file: "f", section: "s", offset: 0 };

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
