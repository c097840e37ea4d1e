//! Search of joined texts: documents that follow each other are searched at once.
//!
//! ```text
//! documents   0 1 2 3 4 5 6 7 8 9     searched: 3, 4, 7; two lines around each
//! stretch       1 2[3 4 5 6 7]8 9     decoded together, each with a line end; searched in [ ]
//! ```
//!
//! Documents between two that are searched are decoded if they are neighbours of one of them. What they have
//! in `[ ]` cannot match, so the search may pass over it. Memory is that of a batch, or of a stretch of one
//! document with its neighbours.

use super::places::{Place, PlaceFinder};
use super::texts::{LineStart, PathTexts, Run};
use super::{BATCH_BYTES, GrepOptions, LONG_BYTES, LineSearch, PIECE_BYTES, Search, Window};
use crate::error::Result;
use crate::read::{DocumentDecoder, document_len_bytes};

/// Times that a batch is longer than the neighbours of a document, so that few of them are decoded twice.
const BATCH_MARGINS: usize = 4;

/// Documents that were decoded together.
struct Stretch {
    text: usize,
    /// Id of the first document that is searched.
    doc_id: u64,
    /// Lines and bytes of the text before it.
    start: LineStart,
    /// Begin and end of the bytes.
    bytes: [usize; 2],
    /// Begin and end of the bytes that are searched.
    searched: [usize; 2],
    /// Place in the text behind the last document.
    end_place: u64,
}

/// A search through joined texts, in order.
pub(super) struct JoinedSearch<'a> {
    texts: &'a PathTexts,
    options: &'a GrepOptions<'a>,
    stretches: Vec<Stretch>,
    /// A text, and the number of lines of it that are still wanted.
    num_left: (usize, u64),
}

impl<'a> JoinedSearch<'a> {
    pub fn new(texts: &'a PathTexts, options: &'a GrepOptions<'a>) -> Self {
        Self { texts, options, stretches: Vec::new(), num_left: (usize::MAX, 0) }
    }

    /// Searches `docs`, which lie in `run`. Some may be searched later, by [`flush`](Self::flush).
    pub fn search(
        &mut self,
        search: &mut Search<'_, '_>,
        decoder: &mut DocumentDecoder,
        finder: &mut PlaceFinder<'_>,
        run: &Run,
        docs: &[u64],
    ) -> Result<()> {
        if self.num_left.0 != run.text {
            self.flush(search, decoder)?;
            self.num_left = (run.text, self.options.max_lines_per_doc);
        }
        let is_alone = self.options.before == 0 && self.options.after == 0;
        for &doc_id in docs {
            let len_bytes = document_len_bytes(search.corpus, doc_id)?;
            if self.is_full(decoder, len_bytes) {
                self.flush(search, decoder)?;
            }
            if search.is_over || self.num_left.1 == 0 {
                return Ok(());
            }
            let is_long = is_alone && len_bytes >= LONG_BYTES;
            let places = is_long.then(|| finder.places(doc_id, len_bytes)).flatten();
            if places.is_some() || is_alone && len_bytes > PIECE_BYTES {
                self.flush(search, decoder)?;
                self.search_long(search, run, doc_id, len_bytes, places)?;
            } else {
                self.add(decoder, run, doc_id)?;
            }
        }
        Ok(())
    }

    /// Returns true if a document of `len_bytes` has no room in the batch.
    fn is_full(&self, decoder: &DocumentDecoder, len_bytes: u64) -> bool {
        let Some(last) = self.stretches.last() else { return false };
        let margin = last.searched[0] - last.bytes[0];
        let room = BATCH_BYTES.max((margin * BATCH_MARGINS) as u64);
        decoder.bytes().len() as u64 + len_bytes > room
    }

    /// Decodes a document with its neighbours.
    fn add(&mut self, decoder: &mut DocumentDecoder, run: &Run, doc_id: u64) -> Result<()> {
        let GrepOptions { before, after, .. } = *self.options;
        let (before, place) = (before as u64, run.place(doc_id));
        let is_near = |last: &&mut Stretch| place.saturating_sub(last.end_place) <= before.saturating_add(after as u64);
        if let Some(last) = self.stretches.last_mut().filter(is_near) {
            for between in self.texts.documents_at(run.text, last.end_place..place + 1) {
                append(decoder, between)?;
            }
            last.searched[1] = decoder.bytes().len();
            last.end_place = place + 1;
            return Ok(());
        }
        self.close(decoder)?;
        let start = decoder.bytes().len();
        if place < before {
            decoder.append_bytes(self.texts.lines_before(run.text))?;
        }
        for neighbour in self.texts.documents_at(run.text, place.saturating_sub(before)..place) {
            append(decoder, neighbour)?;
        }
        let from = decoder.bytes().len();
        append(decoder, doc_id)?;
        self.stretches.push(Stretch {
            text: run.text,
            doc_id,
            start: self.texts.start_of(run, doc_id),
            bytes: [start, from],
            searched: [from, decoder.bytes().len()],
            end_place: place + 1,
        });
        Ok(())
    }

    /// Decodes the neighbours after the last stretch.
    fn close(&mut self, decoder: &mut DocumentDecoder) -> Result<()> {
        let Some(last) = self.stretches.last_mut() else { return Ok(()) };
        let end_place = last.end_place.saturating_add(self.options.after as u64);
        for neighbour in self.texts.documents_at(last.text, last.end_place..end_place) {
            append(decoder, neighbour)?;
        }
        last.bytes[1] = decoder.bytes().len();
        Ok(())
    }

    /// Searches what was decoded, and forgets it.
    pub fn flush(&mut self, search: &mut Search<'_, '_>, decoder: &mut DocumentDecoder) -> Result<()> {
        if self.stretches.is_empty() {
            return Ok(());
        }
        self.close(decoder)?;
        search.check_cancellation()?;
        for stretch in self.stretches.drain(..) {
            if search.is_over || self.num_left.1 == 0 {
                break;
            }
            let [start, end] = stretch.bytes;
            let [from, to] = stretch.searched.map(|at| at - start);
            let mut lines = LineSearch::new(search.pattern, stretch.doc_id, self.options);
            let offset = stretch.start.offset.wrapping_sub(from as u64);
            lines.start_at(LineStart { offset, ..stretch.start }, from, self.num_left.1);
            search.search_window(&mut lines, Window { bytes: &decoder.bytes()[start..end], to })?;
            self.num_left.1 = lines.num_left();
        }
        decoder.clear();
        Ok(())
    }

    /// Searches a document that is too long for a batch, or of which only lines at `places` are read.
    fn search_long(
        &mut self,
        search: &mut Search<'_, '_>,
        run: &Run,
        doc_id: u64,
        len_bytes: u64,
        places: Option<Vec<Place>>,
    ) -> Result<()> {
        let mut lines = LineSearch::new(search.pattern, doc_id, self.options);
        lines.start_at(self.texts.start_of(run, doc_id), 0, self.num_left.1);
        match places {
            Some(places) => search.search_places(&mut lines, doc_id, len_bytes, &places)?,
            None => search.search_in_pieces(&mut lines, doc_id, len_bytes, b"\n")?,
        }
        self.num_left.1 = lines.num_left();
        Ok(())
    }
}

/// Decodes a document and its line end.
fn append(decoder: &mut DocumentDecoder, doc_id: u64) -> Result<()> {
    decoder.append_document(doc_id)?;
    decoder.append_bytes(b"\n")
}
