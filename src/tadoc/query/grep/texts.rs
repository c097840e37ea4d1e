//! The documents of a corpus by path: lines and records of a file are one text again, and are searched as one.
//!
//! ```text
//! documents  0  1  2  3  4  5         runs    0..3 of a   3..4 of b   4..6 of a
//! paths      a  a  a  b  a  a         texts   a: 0 1 2 4 5            b: 3
//! ```
//!
//! A path that several documents have is a *joined text*: its documents in order, each followed by a line
//! end. So lines have the numbers that they have in the file from which they came, as far as it was stored.
//! A document alone with its path is a text as it stands.
//!
//! A corpus may be a part of a longer one: the first text may go on from before ([`TextLead`]), and the last
//! one may go on after it.
//!
//! Cost: O(documents) comparisons of neighbouring paths, and O(runs) memory. Line ends inside of documents
//! are counted without their text: O(rules) for each segment that has some, and 8 bytes for each document.
//!
//! # Search
//!
//! ```text
//! documents   0 1 2 3 4 5 6 7 8 9     searched: 3, 4, 7; two lines around each
//! stretch       1 2[3 4 5 6 7]8 9     decoded together, each with a line end; searched in [ ]
//! ```
//!
//! Documents between two that are searched are decoded if they are neighbours of one of them. What they have
//! in `[ ]` cannot match, so the search may pass over it. Memory is that of a batch, or of a stretch of one
//! document with its neighbours.

use std::collections::HashMap;
use std::ops::Range;

use memchr::memchr_iter;

use super::places::{Marks, Place, PlaceFinder};
use super::{BATCH_BYTES, GrepOptions, LONG_BYTES, LineSearch, PIECE_BYTES, Search, Window, start_of_last_lines};
use crate::error::Result;
use crate::read::{DocumentDecoder, document_len_bytes};
use crate::segment::{Corpus, PathRuns, Paths};
use crate::text::Dictionary;

/// Consecutive documents of one text.
#[derive(Debug, Clone)]
pub(super) struct Run {
    /// Number of the text.
    pub text: usize,
    /// The documents.
    pub docs: Range<u64>,
    /// Number of documents of the text before them.
    num_before: u64,
}

impl Run {
    /// Returns the place of a document among those of its text.
    pub fn place(&self, doc_id: u64) -> u64 {
        self.num_before + (doc_id - self.docs.start)
    }

    /// Returns the place behind the last document.
    fn end_place(&self) -> u64 {
        self.place(self.docs.end)
    }
}

/// The paths of a segment.
#[derive(Debug, Clone, Copy)]
pub enum SegmentPaths<'p> {
    /// One for each document.
    Each(&'p Paths),
    /// One for equal neighbours.
    Runs(&'p PathRuns),
}

/// Runs that are gathered in order of document.
#[derive(Default)]
struct Gather<'p> {
    runs: Vec<Run>,
    /// Text of each path, and its number of documents up to the last run.
    known: HashMap<&'p str, (usize, u64)>,
    last_path: &'p str,
    next_doc: u64,
    comes_back: bool,
    has_left_out: bool,
}

impl<'p> Gather<'p> {
    /// Adds the documents of the next segment.
    fn segment(&mut self, paths: SegmentPaths<'p>, continues: bool, is_left_out: Option<&dyn Fn(u64) -> bool>) {
        let num_seen = u64::from(continues && self.next_doc > 0);
        match paths {
            SegmentPaths::Each(paths) => {
                for path in (num_seen as usize..paths.len()).filter_map(|idx| paths.get(idx)) {
                    if is_left_out.is_some_and(|is_left_out| is_left_out(self.next_doc)) {
                        self.has_left_out = true;
                        self.next_doc += 1;
                    } else {
                        self.add(path, 1);
                    }
                }
            }
            SegmentPaths::Runs(runs) => {
                for (idx, (path, num_docs)) in runs.iter().enumerate() {
                    let num_docs = if idx == 0 { num_docs - num_seen.min(num_docs) } else { num_docs };
                    if num_docs > 0 {
                        self.add(path, num_docs);
                    }
                }
            }
        }
    }

    /// Adds the next documents, which have this path.
    #[inline]
    fn add(&mut self, path: &'p str, num_docs: u64) {
        let docs = self.next_doc..self.next_doc.saturating_add(num_docs);
        self.next_doc = docs.end;
        if let Some(last) = self.runs.last_mut() {
            if self.last_path == path && last.docs.end == docs.start {
                last.docs.end = docs.end;
                return;
            }
            self.known.insert(self.last_path, (last.text, last.end_place()));
        }
        let known = self.known.get(path).copied();
        let is_last = self.runs.last().map(|last| last.text) == known.map(|(text, _)| text);
        self.comes_back |= known.is_some() && !is_last;
        let (text, num_before) = known.unwrap_or((self.known.len(), 0));
        self.runs.push(Run { text, docs, num_before });
        self.last_path = path;
    }

    fn finish(mut self) -> PathTexts {
        let mut num_texts = self.known.len();
        if !self.runs.is_empty() && !self.known.contains_key(self.last_path) {
            num_texts += 1;
        }
        let by_doc = self.comes_back.then(|| {
            let mut sorted: Vec<usize> = (0..self.runs.len()).collect();
            sorted.sort_by_key(|&idx| (self.runs[idx].text, self.runs[idx].docs.start));
            let mut places = vec![0; sorted.len()];
            for (place, &idx) in sorted.iter().enumerate() {
                places[idx] = place;
            }
            self.runs.sort_by_key(|run| (run.text, run.docs.start));
            places
        });
        let has_left_out = self.has_left_out;
        PathTexts { runs: self.runs, by_doc, num_texts, has_left_out, ..PathTexts::default() }
    }
}

/// Lines and bytes of a text before one of its lines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LineStart {
    pub num_lines: u64,
    pub offset: u64,
}

/// The part of the first text that lies before a corpus.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextLead {
    /// Number of its documents; 0 if there is no such part.
    pub num_docs: u64,
    /// Number of its lines.
    pub num_lines: u64,
    /// Length of its lines with their ends.
    pub len_bytes: u64,
    /// Its last lines, each with its end, as many as were asked for.
    pub last_lines: Vec<u8>,
}

/// Documents of a corpus by path. Texts are numbered by their first documents.
#[derive(Debug, Clone, Default)]
pub struct PathTexts {
    /// Runs in order of text and document.
    runs: Vec<Run>,
    /// Indexes of the runs in order of document, unless that is their order.
    by_doc: Option<Vec<usize>>,
    num_texts: usize,
    has_left_out: bool,
    lead: TextLead,
    goes_on: bool,
    /// Line ends in the documents of the text before each document, if there are any.
    line_ends: Option<Vec<u64>>,
    /// Bytes of the text before each document, if they were asked for.
    offsets: Option<Vec<u64>>,
}

impl PathTexts {
    /// Joins the documents of `corpus` by their paths.
    pub fn new(corpus: &Corpus) -> Self {
        let mut gather = Gather::default();
        for segment in corpus.segments() {
            gather.segment(SegmentPaths::Each(&segment.paths), segment.continues, None);
        }
        gather.finish()
    }

    /// Joins the documents of `corpus` by their paths, but those that `is_left_out`.
    pub fn without(corpus: &Corpus, is_left_out: &dyn Fn(u64) -> bool) -> Self {
        let mut gather = Gather::default();
        for segment in corpus.segments() {
            gather.segment(SegmentPaths::Each(&segment.paths), segment.continues, Some(is_left_out));
        }
        gather.finish()
    }

    /// Joins the documents of segments of which only the paths are known, and for each the flag that its first
    /// document continues the last one before it.
    pub fn from_segments(segments: &[(SegmentPaths<'_>, bool)]) -> Self {
        let mut gather = Gather::default();
        for &(paths, continues) in segments {
            gather.segment(paths, continues, None);
        }
        gather.finish()
    }

    /// Says that the first text goes on from before the corpus.
    pub fn with_lead(mut self, lead: TextLead) -> Self {
        self.lead = lead;
        self
    }

    /// Says that the last text goes on after the corpus.
    pub fn with_more(mut self) -> Self {
        self.goes_on = true;
        self
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.num_texts
    }

    /// Returns true if there is no text.
    pub fn is_empty(&self) -> bool {
        self.num_texts == 0
    }

    /// Returns true if a text has documents after those of another one that began later.
    pub fn comes_back(&self) -> bool {
        self.by_doc.is_some()
    }

    /// Returns the number of the text of a document, if it is not left out.
    pub fn text_for(&self, doc_id: u64) -> Option<usize> {
        self.run_for(doc_id).map(|run| self.runs[run].text)
    }

    /// Returns the number of documents of a text in the corpus.
    pub fn num_docs(&self, text: usize) -> u64 {
        self.runs_for(text).last().map_or(0, Run::end_place)
    }

    /// Returns the number of bytes of a text in the corpus, with the line ends of a joined one.
    ///
    /// # Errors
    /// It has 2^64 bytes or more.
    pub fn len_bytes(&self, corpus: &Corpus, text: usize) -> Result<u64> {
        let lens = self.documents(text).map(|doc| document_len_bytes(corpus, doc)).sum::<Result<u64>>()?;
        Ok(if self.is_joined(text) { lens.saturating_add(self.num_docs(text)) } else { lens })
    }

    /// Returns the number of bytes of a text before the corpus.
    pub fn len_bytes_before(&self, text: usize) -> u64 {
        if text == 0 { self.lead.len_bytes } else { 0 }
    }

    /// Returns true if the last text goes on after the corpus.
    pub fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Returns the documents of a text in order.
    pub fn documents(&self, text: usize) -> impl DoubleEndedIterator<Item = u64> + '_ {
        self.runs_for(text).iter().flat_map(|run| run.docs.clone())
    }

    /// Returns true if a line end follows each document of a text: it has several, or goes on.
    pub fn is_joined(&self, text: usize) -> bool {
        let goes_on = text == 0 && self.lead.num_docs > 0 || text + 1 == self.num_texts && self.goes_on;
        goes_on || self.num_docs(text) > 1
    }

    /// Returns true if a text is joined.
    fn has_joined(&self) -> bool {
        (0..self.num_texts).any(|text| self.is_joined(text))
    }

    /// Returns true if a document lies in a joined text.
    pub(super) fn is_in_joined(&self, doc_id: u64) -> bool {
        self.run_with(doc_id).is_some_and(|run| self.is_joined(run.text))
    }

    /// Returns `docs`, which ascend, in order of text, without those that are left out.
    pub fn in_order(&self, mut docs: Vec<u64>) -> Vec<u64> {
        if self.has_left_out {
            docs.retain(|&doc| self.run_for(doc).is_some());
        }
        if self.comes_back() {
            docs.sort_by_cached_key(|&doc| self.run_for(doc).map(|run| (run, doc)));
        }
        docs
    }

    /// Counts the line ends in joined texts, so that their lines have numbers.
    pub fn count_line_ends(&mut self, corpus: &Corpus) {
        if !self.has_joined() {
            return;
        }
        let has_line_ends: Vec<bool> =
            corpus.segments().iter().map(|segment| has_line_ends(&segment.dictionary)).collect();
        if !has_line_ends.contains(&true) {
            return;
        }
        let mut for_docs = vec![0u64; corpus.num_docs() as usize];
        for (segment_idx, segment) in corpus.segments().iter().enumerate().filter(|&(idx, _)| has_line_ends[idx]) {
            let first = corpus.first_doc_id(segment_idx);
            let marks = Marks::new(segment, &[]);
            for doc in segment.dag.grammar().docs() {
                let symbols = &segment.dag.grammar().symbols[segment.dag.doc_range(doc)];
                let num_ends = symbols.iter().map(|&element| marks.num_line_ends(element));
                let num_ends = num_ends.fold(0u64, u64::wrapping_add);
                let total = &mut for_docs[(first + u64::from(doc)) as usize];
                *total = total.wrapping_add(num_ends);
            }
        }
        let own_ends = for_docs.clone();
        self.line_ends = Some(self.summed(for_docs, |doc| own_ends[doc as usize]));
    }

    /// Adds up the lengths of the documents of joined texts, so that their lines have offsets.
    ///
    /// # Errors
    /// A document has 2^64 bytes or more.
    pub fn count_bytes(&mut self, corpus: &Corpus) -> Result<()> {
        if !self.has_joined() {
            return Ok(());
        }
        let lens = (0..corpus.num_docs()).map(|doc| document_len_bytes(corpus, doc));
        let lens = lens.collect::<Result<Vec<u64>>>()?;
        self.offsets = Some(self.summed(lens.clone(), |doc| lens[doc as usize].saturating_add(1)));
        Ok(())
    }

    /// Returns, for each document, the sum of `of_doc` for those before it in its text.
    fn summed(&self, mut sums: Vec<u64>, of_doc: impl Fn(u64) -> u64) -> Vec<u64> {
        for runs in self.runs.chunk_by(|one, next| one.text == next.text) {
            let mut sum = 0u64;
            for doc in runs.iter().flat_map(|run| run.docs.clone()) {
                let own = of_doc(doc);
                sums[doc as usize] = sum;
                sum = sum.wrapping_add(own);
            }
        }
        sums
    }

    /// Returns the documents around `doc_id` that have its path, if it is not left out.
    pub(super) fn run_with(&self, doc_id: u64) -> Option<&Run> {
        self.run_for(doc_id).map(|run| &self.runs[run])
    }

    /// Returns the lines and bytes of a joined text before document `doc_id` of its `run`. Line ends inside of
    /// documents and bytes are those that were counted.
    fn start_of(&self, run: &Run, doc_id: u64) -> LineStart {
        let num_ends = self.line_ends.as_ref().map_or(0, |ends| ends[doc_id as usize]);
        let len_bytes = self.offsets.as_ref().map_or(0, |offsets| offsets[doc_id as usize]);
        let (lead_lines, lead_bytes) = if run.text == 0 { (self.lead.num_lines, self.lead.len_bytes) } else { (0, 0) };
        LineStart {
            num_lines: lead_lines.wrapping_add(run.place(doc_id)).wrapping_add(num_ends),
            offset: lead_bytes.wrapping_add(len_bytes),
        }
    }

    /// Returns the last lines of the part of the text before the corpus.
    fn lines_before(&self, text: usize) -> &[u8] {
        if text == 0 { &self.lead.last_lines } else { &[] }
    }

    /// Returns the documents of a text at `places`.
    fn documents_at(&self, text: usize, places: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let runs = self.runs_for(text);
        let first = runs.partition_point(|run| run.end_place() <= places.start);
        let docs = runs[first..].iter().flat_map(|run| run.docs.clone());
        let num_skipped = runs.get(first).map_or(0, |run| places.start.saturating_sub(run.num_before));
        docs.skip(num_skipped as usize).take(places.end.saturating_sub(places.start) as usize)
    }

    /// Returns the part of the last text up to the end of the corpus, with its last `num_lines` lines. Line ends and
    /// bytes are those that were counted.
    ///
    /// # Errors
    /// A document is longer than memory allows.
    pub fn lead_of_next(&self, corpus: &Corpus, num_lines: usize) -> Result<TextLead> {
        let Some(text) = self.num_texts.checked_sub(1) else { return Ok(self.lead.clone()) };
        let from_before = if text == 0 { self.lead.clone() } else { TextLead::default() };
        let last = self.documents(text).next_back().unwrap_or_default();
        let bytes = self.last_lines(corpus, text, num_lines, &from_before.last_lines)?;
        let own_ends = match self.line_ends {
            Some(_) => count_line_ends_of(corpus, last),
            None => 0,
        };
        let start = self.run_with(last).map(|run| self.start_of(run, last)).unwrap_or_default();
        Ok(TextLead {
            num_docs: from_before.num_docs + self.num_docs(text),
            num_lines: start.num_lines.wrapping_add(own_ends).wrapping_add(1),
            len_bytes: start.offset.wrapping_add(document_len_bytes(corpus, last)?).wrapping_add(1),
            last_lines: bytes,
        })
    }

    fn last_lines(&self, corpus: &Corpus, text: usize, num_lines: usize, before: &[u8]) -> Result<Vec<u8>> {
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut num_found = 0;
        let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
        for doc in self.documents(text).rev() {
            if num_found >= num_lines {
                break;
            }
            decoder.append_document(doc)?;
            decoder.append_bytes(b"\n")?;
            num_found += memchr_iter(b'\n', decoder.bytes()).count();
            parts.push(decoder.take());
        }
        parts.push(before.to_vec());
        parts.reverse();
        let lines = parts.concat();
        let start = start_of_last_lines(&lines, num_lines);
        Ok(lines[start..].to_vec())
    }

    /// Returns the first `num_lines` lines of the first text, each with its end.
    ///
    /// # Errors
    /// A document is longer than memory allows.
    pub fn first_lines(&self, corpus: &Corpus, num_lines: usize) -> Result<Vec<u8>> {
        let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
        let mut num_found = 0;
        for doc in self.documents(0) {
            if num_found >= num_lines {
                break;
            }
            let start = decoder.bytes().len();
            decoder.append_document(doc)?;
            decoder.append_bytes(b"\n")?;
            num_found += memchr_iter(b'\n', &decoder.bytes()[start..]).count();
        }
        let mut lines = decoder.take();
        lines.truncate(super::end_of_first_lines(&lines, num_lines));
        Ok(lines)
    }

    /// Returns the index of the run with a document, if it is not left out.
    fn run_for(&self, doc_id: u64) -> Option<usize> {
        let run = match &self.by_doc {
            Some(by_doc) => {
                let next = by_doc.partition_point(|&run| self.runs[run].docs.start <= doc_id);
                by_doc[next.checked_sub(1)?]
            }
            None => self.runs.partition_point(|run| run.docs.start <= doc_id).checked_sub(1)?,
        };
        self.runs[run].docs.contains(&doc_id).then_some(run)
    }

    fn runs_for(&self, text: usize) -> &[Run] {
        let start = self.runs.partition_point(|run| run.text < text);
        let len = self.runs[start..].partition_point(|run| run.text == text);
        &self.runs[start..start + len]
    }
}

/// Returns true if a document of a segment with this dictionary may have a line end.
pub fn has_line_ends(dictionary: &Dictionary) -> bool {
    (dictionary.num_words()..dictionary.len()).any(|id| dictionary.get(id).contains(&b'\n'))
}

/// Returns the number of line ends in a document.
fn count_line_ends_of(corpus: &Corpus, doc_id: u64) -> u64 {
    let parts = corpus.doc_parts(doc_id).map(|(segment_idx, doc)| {
        let segment = &corpus.segments()[segment_idx];
        let marks = Marks::new(segment, &[]);
        let symbols = &segment.dag.grammar().symbols[segment.dag.doc_range(doc)];
        symbols.iter().map(|&element| marks.num_line_ends(element)).fold(0, u64::wrapping_add)
    });
    parts.fold(0, u64::wrapping_add)
}

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
        let before = before as u64;
        let place = run.place(doc_id);
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
