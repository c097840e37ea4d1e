//! Climb from the places of a rare word to the root, one path at a time.
//!
//! Nearly all words are rare. The climb then takes 1.1 to 1.6 steps for each occurrence of the
//! word, and no memory except the stack. A frequent word, or a grammar with long chains of rules,
//! exceeds the budget. The other ways have bounded costs, but take 2 us before they begin.

use std::ops::Range;

use crate::ids::{RuleId, WordId};
use crate::segment::{Measure, Segment};

/// Number of places that are climbed through in the time of one look-up of a word in a document.
pub(in crate::query) const MANY_POSITIONS: u64 = 8;

/// An element on the way to the root, and the byte offset of the word in its expansion.
type Step = (u32, u64);

/// Calls `found` with each occurrence of `word` in `ranges`: the index of the range and the byte
/// offset in it, in no order. The ranges are documents of the root in ascending order, none of them
/// empty. Returns false if `positions_left` was exceeded; `found` may have been called before.
/// Without `OFFSETS` all offsets are 0, which saves half of the loads.
pub(crate) fn climb<const OFFSETS: bool>(
    segment: &Segment,
    ranges: &[Range<usize>],
    word: WordId,
    positions_left: &mut usize,
    mut found: impl FnMut(usize, u64),
) -> bool {
    let dag = &segment.dag;
    let (sums, inverse) = (segment.prefix_sums_or_derive(), segment.inverse_or_derive());
    let start =
        |position: usize| if OFFSETS { sums.start(dag, Measure::Bytes, position) } else { 0 };
    let positions_before = *positions_left;
    let mut pending: Vec<Step> = Vec::new();
    let mut next = Some((u32::from(word), 0u64));
    while let Some((element, offset)) = next {
        let places = inverse.for_element(element);
        match positions_left.checked_sub(places.len()) {
            Some(left) => *positions_left = left,
            None => break,
        }
        for place in places {
            let position = place.position as usize;
            if place.rule_id == RuleId::ROOT {
                let before = ranges.partition_point(|range| range.end <= position);
                if let Some(range) = ranges.get(before).filter(|range| range.start <= position) {
                    let from_start = start(position).wrapping_sub(start(range.start));
                    found(before, offset.wrapping_add(from_start));
                }
                continue;
            }
            let from_start = if OFFSETS {
                let first = dag.rule_range(place.rule_id).start;
                start(position).wrapping_sub(start(first))
            } else {
                0
            };
            let element = dag.grammar().element_of(place.rule_id);
            pending.push((element, offset.wrapping_add(from_start)));
        }
        next = pending.pop();
    }
    let num_positions = (positions_before - *positions_left) as u64;
    if num_positions >= MANY_POSITIONS {
        segment.note_words_read(num_positions);
    }
    next.is_none()
}
