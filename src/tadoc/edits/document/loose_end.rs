//! Text at the end of a document whose first border is found only when it is needed.
//!
//! ```text
//! document   … the po│wer loss     appended as it is, no byte of the base is read
//! settled    … the |power| loss    at the first count, search, snapshot or edit elsewhere
//! ```
//!
//! An append would have to read the base before it to find the last cut. That is most of the time
//! of an append to a document that was never edited, and it is useless if the document is only
//! extracted from later. So the border stays where it is, and text that follows is appended in
//! O(1). No data that depends on words is kept in this state. A document that is only read gets a
//! settled copy beside it, made of its pieces and new text. The next edit continues from that copy.

use std::ops::Range;

use super::{Borders, EditedDocument};
use crate::segment::Corpus;

impl EditedDocument {
    /// Returns true if text for `range` is appended at the end, and there are no word changes to
    /// update.
    pub(super) fn can_end_loose(&self, range: &Range<u64>) -> bool {
        range.start == self.len_bytes()
            && range.start > 0
            && self.borders == Borders::AtCuts
            && self.changes.get().is_none()
    }

    /// Finds the cuts beside a loose border. Returns true if all borders are then at cuts.
    pub(super) fn settle(&mut self, corpus: &Corpus) -> bool {
        if let Borders::LooseEnd { start } = self.borders {
            self.borders = match self.settle_at(corpus, start) {
                Some(()) => Borders::AtCuts,
                None => Borders::Anywhere,
            };
        }
        self.borders == Borders::AtCuts
    }

    /// Writes the text beside the border at `start` again, from cut to cut. If there is no cut
    /// nearby in the last piece, all of that piece is written again.
    fn settle_at(&mut self, corpus: &Corpus, start: u64) -> Option<()> {
        let ranges = [start..start, start..self.len_bytes()];
        let mut found = ranges.into_iter().filter_map(|range| {
            let around = self.surroundings(corpus, &range)?;
            Some((range, around))
        });
        let (range, around) = found.next()?;
        let mut text = Vec::new();
        self.read(corpus, range.clone(), u64::MAX, &mut text).ok()?;
        let (before, behind) = (around.before(), around.behind());
        let replaced = range.start - before.len() as u64..range.end + behind.len() as u64;
        self.replace(replaced, &[before, &text, behind]);
        Some(())
    }

    /// Returns the document with every border at a cut, or [not aligned](Self::is_aligned).
    pub fn settled(&self, corpus: &Corpus) -> &EditedDocument {
        if !matches!(self.borders, Borders::LooseEnd { .. }) {
            return self;
        }
        self.settled.get_or_init(|| {
            let mut settled = Box::new(self.clone());
            settled.settle(corpus);
            settled
        })
    }
}
