//! Text at the end of a document whose first border is not looked for until it matters.
//!
//! ```text
//! document   … the po│wer loss     appended as it is, no byte of the base is read
//! settled    … the |power| loss    at the first count, search, snapshot or edit elsewhere
//! ```
//!
//! Where text is appended, the base before it would have to be read for the last cut: most of the time of
//! an append to a document that was never edited, and in vain where it is only extracted from later.
//! So the border stays where it is, and text that follows is put behind it in O(1). Nothing that depends
//! on words is kept while it does. A document that is only read gets a settled copy beside it, of
//! its pieces and new text; the next edit goes on from that.

use std::ops::Range;

use super::{Borders, EditedDocument};
use crate::edits::surroundings::surroundings;
use crate::segment::Corpus;

impl EditedDocument {
    /// Whether text for `range` goes to the end, and no numbers of words have to follow it.
    pub(super) fn can_end_loose(&self, range: &Range<u64>) -> bool {
        range.start == self.len_bytes()
            && range.start > 0
            && self.borders == Borders::AtCuts
            && self.changes.get().is_none()
    }

    /// Looks for the cuts beside a loose border; returns whether all borders are at cuts then.
    pub(super) fn settle(&mut self, corpus: &Corpus) -> bool {
        if let Borders::LooseEnd { start } = self.borders {
            self.borders = match self.settle_at(corpus, start) {
                Some(()) => Borders::AtCuts,
                None => Borders::Anywhere,
            };
        }
        self.borders == Borders::AtCuts
    }

    /// Writes the text beside the border at `start` anew, from cut to cut; all of the last piece where
    /// no cut in it is near by.
    fn settle_at(&mut self, corpus: &Corpus, start: u64) -> Option<()> {
        let ranges = [start..start, start..self.len_bytes()];
        let mut found = ranges.into_iter().filter_map(|range| {
            let around = surroundings(self, corpus, &range)?;
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

    /// The document with every border at a cut, or [not aligned](Self::is_aligned).
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
