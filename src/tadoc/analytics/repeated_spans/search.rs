//! The search: anchors, then windows class by class, then the comparison of words.

use std::borrow::Borrow;

use super::places::{AnchorFilter, FirstPlaces, Full, PartAt, Places, Window, Windows};
use super::runs::{BYTES_PER_RUN, Comparison, Run, Runs};
use crate::analytics::doc_selection::{CorpusParts, WORDS_PER_BYTE};
use crate::analytics::rolling_hash::Hashing;
use crate::analytics::task_limits::sort_checked;
use crate::analytics::tokens::WordWalk;
use crate::error::{Error, Result};
use crate::interrupt::Canceller;
use crate::segment::Corpus;

/// Number of words between two looks at memory and cancellation.
const CHUNK_WORDS: usize = 1 << 14;
/// Change of memory that is told to the owner of the parts.
const TOLD_BYTES: u64 = 1 << 20;
/// Greatest number of bits that divide windows into classes.
const MAX_CLASS_BITS: u32 = 20;

/// Finds the runs of `parts`, in order, and the places of their documents. Returns `None` if two
/// windows that differ had the same hash. Of the values of words `kept_bits` are kept.
///
/// # Errors
/// [`Error::Capacity`] if the work needs more than `max_memory_bytes`, [`Error::Cancelled`], and
/// the errors of `parts`.
pub(super) fn find_runs(
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

/// A class of windows: those whose anchors are repeated and have these first bits, when mixed.
#[derive(Debug, Clone, Copy)]
struct Class {
    number: u64,
    num_bits: u32,
}

impl Class {
    #[inline]
    fn contains(self, anchor: u64) -> bool {
        let mixed = anchor.wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.num_bits == 0 || mixed >> (64 - self.num_bits) == self.number
    }
}

impl<P: CorpusParts + Sync> Search<'_, P> {
    /// Finds all runs, in order. Their words are not compared yet.
    fn find(&mut self) -> Result<()> {
        let anchors = self.find_anchors()?;
        if self.places.max_doc_words() < self.min_words {
            return Ok(());
        }
        let mut class = Class { number: 0, num_bits: 0 };
        while class.number >> class.num_bits == 0 {
            if self.find_in(class, &anchors)? {
                self.runs.close();
                class.number += 1;
                continue;
            }
            // The first half of the class comes next.
            self.runs.remove_open();
            class = Class { number: 2 * class.number, num_bits: class.num_bits + 1 };
            if class.num_bits > MAX_CLASS_BITS {
                return Err(self.too_little());
            }
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
    fn find_in(&mut self, class: Class, anchors: &AnchorFilter) -> Result<bool> {
        let mut first_places = FirstPlaces::new(self.max_memory_bytes / 4);
        let min_words = self.min_words;
        for index in 0..self.parts.num_parts() {
            let part = self.parts.part(index)?;
            let (mut last, mut is_meant) = (None, false);
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
            let (later_idx, earlier_idx) = (pair[0].0, pair[0].1);
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
