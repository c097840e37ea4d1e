//! Prediction of the next element in the codec before the present one: with trust.
//!
//! ```text
//! slots   by element: the element that followed two later, its run length
//! … x  y  ?        slots[x] predicts; then slots[x] learns the actual element
//! ```
//!
//! A slot keeps its element if another one follows once. The present codec does without (+0.1 %).
//! Two more slots represent the begin of a document. It needs 8 bytes for each id.

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
    use super::*;

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
