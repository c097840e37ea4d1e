//! Repeated spans of a corpus: text of many words that stands at an earlier place, too. Training
//! data is cleaned by taking them out ("exact substring deduplication", Lee et al., "Deduplicating
//! Training Data Makes Language Models Better", ACL 2022; here with words in place of bytes).
//!
//! ```text
//! documents   0: a b c d e f g      1: x a b c d y      2: b c d e z a b c d      at least 3 words
//! span 0      0: a b c d e          1: a b c d          2: b c d e, a b c d
//! copy        0                     1                   2           3
//! ```
//!
//! A *window* is a sequence of `min_words` words of one document. It is a *repeat* if the same
//! words stand at an earlier window that does not overlap it. Separators are ignored. Rows:
//!
//! - A *copy* is a maximal stretch of words that are all in repeats. So copies do not overlap, and
//!   no word of a repeat is outside of them.
//! - The *first copy*, number 0, is a maximal stretch of words that are all in first places of repeats. It is one span.
//!   A copy belongs to the span that has the first places of most of its windows.
//!
//! Without the copies from number 1 on, no two windows of the text that is left have the same
//! words, save those across a cut, where words become neighbours, and those that overlap each
//! other. The first place of each word is left. A first copy may overlap other copies, also of its
//! own span where text repeats itself. Then the words that they share are cut in it, too.
//!
//! ```text
//! words ──windows──▶ anchors ──seen twice──▶ windows ──hash──▶ first place ──▶ runs ──compared──▶ rows
//!                    1 of 14                 of these only     or repeat       of windows
//! ```
//!
//! 1. Windows are read with their anchors (`places`). A filter finds the anchors that occur more
//!    than once. Most text drops out here.
//! 2. The other windows are looked up by their hashes (`rolling_hash`) in a table of first places.
//!    If the table takes more memory than it may, the windows are divided by their anchors, and the
//!    text is read once for each class. Equal windows are in one class.
//! 3. Neighbouring repeats of neighbouring windows are one run (`runs`). The words of each run are
//!    compared with those that it repeats. If any word differs, two windows had the
//!    same hash, and the search begins again with other random keys.
//! 4. Runs become rows, and places of words become bytes (`places`).
//!
//! The rows are exact. Equal windows have equal hashes, so the first window of each hash repeats none, and the others
//! were compared with it. A window that overlaps the first place of its words repeats none without overlap. So only the
//! first place matters, and a text that repeats a few words a million times takes no longer than others.
//!
//! O(words) for each class, and O(words that are repeated) for comparing. A corpus may come in parts ([`CorpusParts`]),
//! of which two are in memory at a time. Memory beside them: 4 bytes for each anchor, 16 to 32 for each window whose
//! anchor is repeated and that repeats none, 8 for each document, 240 for each run, and 8 for each word of a
//! dictionary. A corpus of more than eight words for each byte of memory is refused. One thread works.

mod places;
mod runs;

use std::borrow::Borrow;
use std::ops::Range;

use crate::analytics::doc_terms::WordWalk;
use crate::analytics::rolling_hash::{HashClass, Hashing};
use crate::error::{Canceller, Error, Result};
use crate::segment::Corpus;

use super::task_limits::{CorpusParts, OnePart, WORDS_PER_BYTE, sort_checked};
use places::{AnchorFilter, FirstPlaces, Full, PartAt, Places, Window, Windows};
use runs::{BYTES_PER_RUN, Comparison, Row, Run, Runs, rows_of};

/// A row of [`repeated_spans`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RepeatedSpan {
    /// Document that has the words.
    pub doc_id: u64,
    /// Bytes of the document before the first word.
    pub byte_offset: u64,
    /// Bytes from the first word to the end of the last one.
    pub byte_len: u64,
    /// Number of words.
    pub num_words: u64,
    /// Number of the span, in order of first copies.
    pub span: u64,
    /// Number of the copy of its span, in order; 0 for the first one.
    pub copy: u64,
}

/// Finds the text of `min_words` words or more that stands at an earlier place of `corpus`, too.
/// Rows are in order of documents and bytes.
///
/// ```
/// use tadoc::Corpus;
/// use tadoc::analytics::repeated_spans;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a.txt", b"All rights reserved. News of today")?;
/// builder.push_document("b.txt", b"Weather. All rights, reserved.")?;
/// let (file, _report) = builder.finish(None)?;
/// let (_footer, corpus) = Corpus::from_bytes("pages.tadoc", &file, &OpenLimits::default())?;
///
/// let spans = repeated_spans(&corpus, 3, 1 << 30)?;
/// let copy = spans[1];
/// assert_eq!((copy.doc_id, copy.byte_offset, copy.byte_len), (1, 9, 20));
/// assert_eq!((copy.span, copy.copy), (spans[0].span, 1));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] if `min_words` is 0, and [`Error::Capacity`] if the work needs more
/// than `max_memory_bytes`.
pub fn repeated_spans(corpus: &Corpus, min_words: u64, max_memory_bytes: u64) -> Result<Vec<RepeatedSpan>> {
    let parts = OnePart(corpus);
    let spans = RepeatedSpans::find(&parts, min_words, max_memory_bytes)?;
    Ok(spans.rows(0, corpus, spans.for_part(0)))
}

/// Repeated spans as rows whose bytes are looked up when they are asked for, part by part.
#[derive(Debug)]
pub struct RepeatedSpans {
    places: Places,
    rows: Vec<Row>,
}

impl RepeatedSpans {
    /// Finds the spans of `parts`.
    ///
    /// # Errors
    /// The errors of [`repeated_spans`] and of `parts`, and [`Error::Cancelled`].
    pub fn find(parts: &(impl CorpusParts + Sync), min_words: u64, max_memory_bytes: u64) -> Result<Self> {
        Self::find_with(parts, min_words, max_memory_bytes, u64::MAX)
    }

    /// Variant of [`find`](Self::find) whose first search keeps only `kept_bits` of the values of
    /// words.
    fn find_with(
        parts: &(impl CorpusParts + Sync),
        min_words: u64,
        max_memory_bytes: u64,
        mut kept_bits: u64,
    ) -> Result<Self> {
        if min_words == 0 {
            let got = min_words.to_string();
            let allowed = "1 or more".into();
            return Err(Error::InvalidArgument { name: "min_words", got, allowed });
        }
        let is_cancelled = || parts.is_cancelled();
        let canceller = Canceller::new(&is_cancelled);
        loop {
            if let Some((places, runs)) = find_runs(parts, min_words, max_memory_bytes, kept_bits)? {
                let rows = rows_of(runs.as_slice(), min_words, canceller)?;
                let spans = Self { places, rows };
                parts.hold(spans.memory_bytes())?;
                return Ok(spans);
            }
            kept_bits = u64::MAX;
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows of `part`.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn for_part(&self, part: usize) -> Range<usize> {
        let places = self.places.for_part(part);
        let before = |place| self.rows.partition_point(|row| row.words.start < place);
        before(places.start)..before(places.end)
    }

    /// Returns `rows`, which are some of `part`, which is `corpus`.
    ///
    /// # Panics
    /// If the rows are not those of the part.
    pub fn rows(&self, part: usize, corpus: &Corpus, rows: Range<usize>) -> Vec<RepeatedSpan> {
        let part = PartAt { index: part, corpus };
        self.rows[rows].iter().map(|row| self.span(part, row)).collect()
    }

    fn span(&self, part: PartAt<'_>, row: &Row) -> RepeatedSpan {
        let byte_offset = self.places.bytes_of(part, row.words.start).start;
        let end = self.places.bytes_of(part, row.words.end - 1).end;
        RepeatedSpan {
            doc_id: self.places.doc_of(row.words.start) as u64,
            byte_offset,
            byte_len: end - byte_offset,
            num_words: row.words.end - row.words.start,
            span: row.span,
            copy: row.copy,
        }
    }

    /// Returns the id of the first document of `part`.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn first_doc_id(&self, part: usize) -> u64 {
        self.places.docs_of_part(part).start as u64
    }

    /// Returns the memory in bytes.
    pub fn memory_bytes(&self) -> u64 {
        self.places.memory_bytes() + (size_of::<Row>() * self.rows.capacity()) as u64
    }
}

/// Number of words between two looks at memory and cancellation.
const CHUNK_WORDS: usize = 1 << 14;
/// Change of memory that is told to the owner of the parts.
const TOLD_BYTES: u64 = 1 << 20;

/// Finds the runs of `parts`, in order, and the places of their documents. Returns `None` if two
/// windows that differ had the same hash. Of the values of words `kept_bits` are kept.
///
/// # Errors
/// [`Error::Capacity`] if the work needs more than `max_memory_bytes`, [`Error::Cancelled`], and
/// the errors of `parts`.
fn find_runs(
    parts: &(impl CorpusParts + Sync),
    min_words: u64,
    max_memory_bytes: u64,
    kept_bits: u64,
) -> Result<Option<(Places, Runs)>> {
    let (hashing, is_cancelled) = (Hashing::new(kept_bits), || parts.is_cancelled());
    let mut search = Search {
        parts,
        canceller: Canceller::new(&is_cancelled),
        hashing: &hashing,
        min_words,
        max_memory_bytes,
        places: Places::new(max_memory_bytes.saturating_mul(WORDS_PER_BYTE)),
        values: Vec::new(),
        runs: Runs::default(),
        told_bytes: 0,
    };
    search.find()?;
    let are_repeats = search.are_repeats()?;
    Ok(are_repeats.then_some((search.places, search.runs)))
}

/// A search for runs.
struct Search<'a, P> {
    parts: &'a P,
    canceller: Canceller<'a>,
    hashing: &'a Hashing,
    min_words: u64,
    max_memory_bytes: u64,
    places: Places,
    /// Values of the words of the segment that is read.
    values: Vec<u64>,
    runs: Runs,
    /// Memory of which the owner of the parts was told.
    told_bytes: u64,
}

impl<P: CorpusParts + Sync> Search<'_, P> {
    /// Finds all runs, in order. Their words are not compared yet.
    fn find(&mut self) -> Result<()> {
        let anchors = self.find_anchors()?;
        if self.places.max_doc_words() < self.min_words {
            return Ok(());
        }
        let mut next_class = Some(HashClass::ALL);
        while let Some(class) = next_class {
            if self.find_in(class, &anchors)? {
                self.runs.close();
                next_class = class.next();
                continue;
            }
            // The first half of the class comes next.
            self.runs.remove_open();
            next_class = Some(class.first_half().ok_or_else(|| self.too_little())?);
        }
        self.runs.sort(self.canceller)?;
        self.values = Vec::new();
        // The filter is dropped, and the rows are made next.
        let bytes_of_rows = (self.runs.len() as u64).saturating_mul(BYTES_PER_RUN);
        if bytes_of_rows > self.max_memory_bytes / 2 {
            return Err(self.too_little());
        }
        drop(anchors);
        self.hold(bytes_of_rows)
    }

    /// Reads the places of all documents and finds the anchors that are repeated.
    fn find_anchors(&mut self) -> Result<AnchorFilter> {
        let mut anchors = AnchorFilter::new(1, u64::MAX);
        for index in 0..self.parts.num_parts() {
            let part = self.parts.part(index)?;
            self.places.push_part(part.borrow())?;
            if index == 0 {
                let num_words = self.places.num_places().max(self.parts.num_words());
                let num_anchors = Windows::num_anchors(self.min_words, num_words);
                anchors = AnchorFilter::new(num_anchors, self.max_memory_bytes / 4);
            }
            self.hold(anchors.memory_bytes())?;
            // An anchor of several neighbouring windows is one place.
            let mut last = None;
            let read = self.read_windows(index, part.borrow(), |_, window, doc_start, _| {
                let place = doc_start + window.anchor_start;
                if last.replace(place) != Some(place) {
                    anchors.add(window.anchor);
                }
                Ok(anchors.memory_bytes())
            })?;
            if read.is_err() {
                return Err(self.too_little());
            }
        }
        Ok(anchors)
    }

    /// Adds the runs of windows of `class`. Returns false if the class is too large.
    fn find_in(&mut self, class: HashClass, anchors: &AnchorFilter) -> Result<bool> {
        let mut first_places = FirstPlaces::new(self.max_memory_bytes / 4);
        let min_words = self.min_words;
        for index in 0..self.parts.num_parts() {
            let part = self.parts.part(index)?;
            let mut last = None;
            let mut is_meant = false;
            let read = self.read_windows(index, part.borrow(), |windows, window, start, runs| {
                let anchor_place = start + window.anchor_start;
                if last.replace(anchor_place) != Some(anchor_place) {
                    is_meant = class.contains(window.anchor) && anchors.is_repeated(window.anchor);
                }
                if is_meant {
                    let place = start + window.start;
                    let first = first_places.first(windows.hash(window), window.anchor, place)?;
                    if first + min_words <= place {
                        runs.push(place, first);
                    }
                }
                Ok(anchors.memory_bytes() + first_places.memory_bytes())
            })?;
            if read.is_err() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Calls `found` with each window of a part and the place at which its document begins. `found`
    /// returns the memory that it holds.
    fn read_windows(
        &mut self,
        part: usize,
        corpus: &Corpus,
        mut found: impl FnMut(&Windows<'_>, Window, u64, &mut Runs) -> Result<u64, Full>,
    ) -> Result<Result<(), Full>> {
        if self.places.max_doc_words() < self.min_words {
            return Ok(Ok(()));
        }
        if Windows::max_memory_bytes(self.min_words) > self.max_memory_bytes / 4 {
            return Err(self.too_little());
        }
        let mut windows = Windows::new(self.hashing, self.min_words);
        let mut walk = WordWalk::default();
        let mut read_segment = usize::MAX;
        let docs = self.places.docs_of_part(part);
        let first_doc = docs.start;
        for doc_id in docs {
            let places = self.places.for_doc(doc_id);
            if places.end - places.start < self.min_words {
                continue;
            }
            windows.start();
            for (segment_idx, doc) in corpus.doc_parts((doc_id - first_doc) as u64) {
                let segment = &corpus.segments()[segment_idx];
                if read_segment != segment_idx {
                    let value = |id| self.hashing.value(segment.dictionary.get(id));
                    self.values.clear();
                    self.values.extend((0..segment.dag.num_words()).map(value));
                    read_segment = segment_idx;
                }
                walk.start(segment.dag.doc_range(doc));
                loop {
                    let values = &self.values;
                    let runs = &mut self.runs;
                    let mut outcome = Ok(0);
                    let num_words = walk.next_words(&segment.dag, CHUNK_WORDS, |word| {
                        if let Some(window) = windows.push(values[word as usize])
                            && outcome.is_ok()
                        {
                            outcome = found(&windows, window, places.start, runs);
                        }
                    });
                    match outcome {
                        Ok(0) => {}
                        Ok(held_bytes) => self.hold(held_bytes)?,
                        Err(full) => return Ok(Err(full)),
                    }
                    self.canceller.check()?;
                    if num_words < CHUNK_WORDS {
                        break;
                    }
                }
            }
        }
        Ok(Ok(()))
    }

    /// Returns true if all runs are repeats, word by word.
    fn are_repeats(&mut self) -> Result<bool> {
        let runs = self.runs.as_slice();
        let bytes_of_rows = (runs.len() as u64).saturating_mul(BYTES_PER_RUN);
        let parts_for = |run: &Run| (self.places.part_from(run.at), self.places.part_from(run.from));
        let mut order: Vec<(usize, usize, u64, usize)> = Vec::with_capacity(runs.len());
        order.extend(runs.iter().enumerate().map(|(at, run)| {
            let (later, earlier) = parts_for(run);
            (later, earlier, run.from, at)
        }));
        sort_checked(&mut order, |&run| run, self.canceller)?;
        for pair in order.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
            let later_idx = pair[0].0;
            let earlier_idx = pair[0].1;
            let later = self.parts.part(later_idx)?;
            let earlier = (later_idx != earlier_idx).then(|| self.parts.part(earlier_idx));
            let earlier = earlier.transpose()?;
            let later = PartAt { index: later_idx, corpus: later.borrow() };
            let earlier =
                earlier.as_ref().map_or(later, |earlier| PartAt { index: earlier_idx, corpus: earlier.borrow() });
            self.hold(bytes_of_rows + Comparison::max_memory_bytes(later))?;
            let mut comparison = Comparison::new(&self.places, self.min_words, later, earlier);
            for &(.., run) in pair {
                if !comparison.is_repeat(&self.runs.as_slice()[run], self.canceller)? {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Notes the memory in use: `held_bytes`, and that of the values, places and runs.
    ///
    /// # Errors
    /// [`Error::Capacity`] if it is too much; the errors of the owner of the parts.
    fn hold(&mut self, held_bytes: u64) -> Result<()> {
        let from_runs = self.runs.memory_bytes();
        let from_words = self.places.memory_bytes() + 8 * self.values.capacity() as u64;
        let longest = self.min_words.min(self.places.max_doc_words());
        let bytes = held_bytes + from_runs + from_words + Windows::max_memory_bytes(longest);
        if from_runs > self.max_memory_bytes / 4 || bytes > self.max_memory_bytes {
            return Err(self.too_little());
        }
        if bytes.abs_diff(self.told_bytes) >= TOLD_BYTES {
            self.parts.hold(bytes)?;
            self.told_bytes = bytes;
        }
        Ok(())
    }

    fn too_little(&self) -> Error {
        let limit = self.max_memory_bytes;
        let requested = self.max_memory_bytes.saturating_mul(2);
        Error::memory_of_task("looking for repeated spans (bytes)", requested, limit)
    }
}

/// Tests of what only the module can force: hashes that collide.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;

    const AMPLE: u64 = 1 << 30;

    fn corpus_for(texts: &[String]) -> Corpus {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        for text in texts {
            builder.push_document("text", text.as_bytes()).unwrap();
        }
        let (file, _) = builder.finish(None).unwrap();
        Corpus::from_bytes("spans.tadoc", &file, &OpenLimits::default()).unwrap().1
    }

    /// If no bit of a value is kept, all windows have one hash. The first search fails.
    #[test]
    fn colliding_hashes_cost_only_time() {
        let text = |from: u32, to: u32| (from..to).map(|at| format!("w{} ", at * at % 97)).collect::<String>();
        let corpus = corpus_for(&[text(0, 90), text(40, 130), text(0, 60), "alone".into()]);
        for min_words in [1, 2, 5, 12] {
            let parts = OnePart(&corpus);
            let weak = 0;
            let strong = u64::MAX;
            assert!(find_runs(&parts, min_words, AMPLE, weak).unwrap().is_none(), "{min_words}");
            let [weak, strong] = [weak, strong].map(|kept_bits| {
                let spans = RepeatedSpans::find_with(&parts, min_words, AMPLE, kept_bits).unwrap();
                spans.rows(0, &corpus, spans.for_part(0))
            });
            assert!(!strong.is_empty());
            assert_eq!(weak, strong, "{min_words} words");
        }
    }
}
