//! Words around the hits of a query: in their context, and counted.
//!
//! ```text
//! text     (the power was lost; then, during the storm, it came back)
//! kwic     power was lost; then, |during| the storm, it came        width 4
//! ```
//!
//! A context begins and ends with a word. The bytes between the context and the hit, and between the words of the
//! context, are those of the document. A context never leaves the document. It has fewer words than requested if the
//! document ends before, or if it would be longer than [`MAX_CONTEXT_BYTES`]. Tokens are read from the hit outwards;
//! nothing else of the document is read. Memory is that of one batch.
//!
//! A [`ContextForm`] can ask for the words of a context too, nearest first: `lost`, `was`, `power`
//! to the left of the hit above. They sort concordances by their neighbours.
//!
//! # Collocates
//!
//! ```text
//! text      the power was lost; then, during the storm, the power came back
//! query     power            window of 1 word to the left, 2 to the right
//! counted   the 1 + 1, was 1, lost 1, came 1, back 1
//! ```
//!
//! The window of a hit is the `left` words before it and the `right` words after it, in its document. Separators do not
//! count. A window ends at the border of the document, and the words of the hit itself are not in it. A word that is in
//! the windows of two hits counts twice.
//!
//! The neighbours of each hit are walked in the grammar from the hit outwards, so the cost is that
//! of the search, O(depth * log rule length) for each hit, and O(1) for each token of its window.
//! Hits are walked on all cores. Words are counted by their ids. Their texts are read once in the
//! end. Memory: 32 bytes for each distinct word of each segment, and of each core while it walks.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::read::{check_output_len, reserve};
use crate::segment::Corpus;
use crate::text::Fold;

use super::language::query::Query;
use super::matching::climb::{Neighbour, Walk, walks_from};
use super::search::search_segments;
use super::{Hit, SearchOptions};

/// Default number of words of a context on each side.
pub const DEFAULT_KWIC_WIDTH: usize = 8;
/// Most bytes of a context on each side: 64 KiB, as many as the longest word has.
pub const MAX_CONTEXT_BYTES: usize = 1 << 16;

/// Most rows of a batch, and bytes from which on a batch is passed to the caller.
const BATCH_ROWS: usize = 1 << 12;
const BATCH_BYTES: usize = 1 << 20;

/// Size of contexts, and whether their words are listed. A number of words is a form without lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextForm {
    /// Number of words on each side.
    pub width: usize,
    /// True if the words of each side are listed.
    pub with_words: bool,
}

impl From<usize> for ContextForm {
    fn from(width: usize) -> Self {
        Self { width, with_words: false }
    }
}

/// Words of a context, nearest to the hit first.
#[derive(Debug, Clone, Copy)]
pub struct ContextWords<'a> {
    bytes: &'a [u8],
    places: &'a [Range<usize>],
}

impl<'a> ContextWords<'a> {
    /// Returns the words in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let bytes = self.bytes;
        self.places.iter().map(move |place| &bytes[place.clone()])
    }
}

/// A hit in its context.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// The hit.
    pub hit: Hit,
    /// Text before the hit.
    pub left: &'a [u8],
    /// Text of the hit.
    pub matched: &'a [u8],
    /// Text after the hit.
    pub right: &'a [u8],
    /// Words before the hit; empty if the form lists no words.
    pub left_words: ContextWords<'a>,
    /// Words after the hit; empty if the form lists no words.
    pub right_words: ContextWords<'a>,
}

/// A batch of hits in their contexts, in order.
#[derive(Debug, Default)]
pub struct ContextBatch {
    /// Left context, hit and right context of each row, end to end.
    bytes: Vec<u8>,
    /// Places in `bytes` of the words of each row, nearest first: left, then right.
    words: Vec<Range<usize>>,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    hit: Hit,
    /// Ends of left context, hit and right context in `bytes`.
    ends: [usize; 3],
    /// Ends of the left and the right words in `words`.
    word_ends: [usize; 2],
}

impl ContextBatch {
    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns true if there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Returns the rows, in order of document and offset.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Context<'_>> {
        let mut start = 0;
        let mut first_word = 0;
        let words = |places| ContextWords { bytes: &self.bytes, places: &self.words[places] };
        self.rows.iter().map(move |row| {
            let [left, matched, right] = row.ends;
            let begin = std::mem::replace(&mut start, right);
            let [left_words, right_words] = row.word_ends;
            let word = std::mem::replace(&mut first_word, right_words);
            Context {
                hit: row.hit,
                left: &self.bytes[begin..left],
                matched: &self.bytes[left..matched],
                right: &self.bytes[matched..right],
                left_words: words(word..left_words),
                right_words: words(left_words..right_words),
            }
        })
    }

    /// Returns the number of bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let words_bytes = self.words.capacity() * size_of::<Range<usize>>();
        self.bytes.capacity() + words_bytes + self.rows.capacity() * size_of::<Row>()
    }
}

/// Calls `visit` with the occurrences of `query` in contexts of `form`, in batches, until it
/// breaks. Each batch, and all batches together, are in order of document and offset.
///
/// # Errors
/// As [`search_with`](super::search_with), and [`Error::Capacity`] for a hit of more than
/// `max_output_bytes`.
pub fn kwic(
    corpus: &Corpus,
    query: &Query,
    form: impl Into<ContextForm>,
    max_output_bytes: u64,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&ContextBatch) -> ControlFlow<()>,
) -> Result<()> {
    let segments = 0..corpus.segments().len();
    kwic_segments(corpus, query, segments, form, max_output_bytes, options, visit)
}

/// Calls `visit` as [`kwic`] does, with the occurrences that begin in `segments`.
///
/// # Errors
/// As [`search_segments`], and [`Error::Capacity`] for a hit of more than `max_output_bytes`.
pub fn kwic_segments(
    corpus: &Corpus,
    query: &Query,
    segments: Range<usize>,
    form: impl Into<ContextForm>,
    max_output_bytes: u64,
    options: &SearchOptions<'_>,
    visit: &mut dyn FnMut(&ContextBatch) -> ControlFlow<()>,
) -> Result<()> {
    let form = form.into();
    let mut outcome = Ok(());
    search_segments(corpus, query, segments, options, &mut |hits| {
        let mut is_done = false;
        // Hits come in batches of thousands. Rows are not kept for the next batch.
        outcome = kwic_hits(corpus, hits, form, max_output_bytes, options.is_cancelled, &mut |batch| {
            let flow = visit(batch);
            is_done = flow.is_break();
            flow
        });
        if outcome.is_err() || is_done { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    outcome
}

/// Calls `visit` with the contexts of `hits`, in their order, in batches as [`kwic`] does.
///
/// # Errors
/// [`Error::Capacity`] for a hit of more than `max_output_bytes`; [`Error::Cancelled`].
pub fn kwic_hits(
    corpus: &Corpus,
    hits: &[Hit],
    form: impl Into<ContextForm>,
    max_output_bytes: u64,
    is_cancelled: &(dyn Fn() -> bool + Sync),
    visit: &mut dyn FnMut(&ContextBatch) -> ControlFlow<()>,
) -> Result<()> {
    let form = form.into();
    let mut batch = ContextBatch::default();
    let mut tokens = Vec::new();
    for hit in hits {
        batch.push(corpus, *hit, form, max_output_bytes, &mut tokens)?;
        let is_full = batch.len() == BATCH_ROWS || batch.bytes.len() >= BATCH_BYTES;
        if is_full && is_cancelled() {
            return Err(Error::Cancelled);
        }
        if is_full && batch.hand_on(visit).is_break() {
            return Ok(());
        }
    }
    let _ = batch.hand_on(visit);
    Ok(())
}

impl ContextBatch {
    /// Calls `visit` with the rows, if there are any, and removes them.
    fn hand_on(&mut self, visit: &mut dyn FnMut(&ContextBatch) -> ControlFlow<()>) -> ControlFlow<()> {
        if self.is_empty() {
            return ControlFlow::Continue(());
        }
        let flow = visit(self);
        self.bytes.clear();
        self.words.clear();
        self.rows.clear();
        flow
    }

    /// Appends the context of `hit`. `tokens` is scratch memory.
    fn push<'a>(
        &mut self,
        corpus: &'a Corpus,
        hit: Hit,
        form: ContextForm,
        max_output_bytes: u64,
        tokens: &mut Vec<Neighbour<'a>>,
    ) -> Result<()> {
        check_output_len(0, hit.byte_len, max_output_bytes)?;
        let len = check_output_len(self.bytes.len() as u64, hit.byte_len, u64::MAX)?;
        reserve(&mut self.bytes, len)?;
        let (mut before, mut after) = walks_from(corpus, hit.doc_id, hit.byte_offset);
        gather(&mut before, form.width, tokens);
        let first_word = self.words.len();
        for token in tokens.iter().rev() {
            self.push_token(token, form);
            self.push_blank(token.has_blank);
        }
        self.words[first_word..].reverse();
        let left_words = self.words.len();
        let left = self.bytes.len();
        let matched = left + hit.byte_len as usize;
        while self.bytes.len() < matched
            && let Some(token) = after.next()
        {
            self.push_blank(token.has_blank);
            self.bytes.extend_from_slice(token.bytes);
        }
        gather(&mut after, form.width, tokens);
        for token in tokens.iter() {
            self.push_blank(token.has_blank);
            self.push_token(token, form);
        }
        let ends = [left, matched, self.bytes.len()];
        let word_ends = [left_words, self.words.len()];
        self.rows.push(Row { hit, ends, word_ends });
        Ok(())
    }

    #[inline]
    fn push_token(&mut self, token: &Neighbour<'_>, form: ContextForm) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(token.bytes);
        if form.with_words && token.is_word {
            self.words.push(start..self.bytes.len());
        }
    }

    #[inline]
    fn push_blank(&mut self, has_blank: bool) {
        if has_blank {
            self.bytes.push(b' ');
        }
    }
}

/// Reads the tokens of `walk` up to the last of `width` words, of at most [`MAX_CONTEXT_BYTES`].
/// They are gathered before they are copied, so that the loads from the dictionary overlap.
fn gather<'a>(walk: &mut Walk<'a>, width: usize, tokens: &mut Vec<Neighbour<'a>>) {
    tokens.clear();
    let mut num_words = 0;
    let mut taken = 0;
    let mut len_bytes = 0;
    let mut num_steps = 0;
    while num_words < width
        && let Some(token) = walk.next()
    {
        len_bytes += usize::from(token.has_blank) + token.bytes.len();
        // Separators can be empty: a file can hold any number of them side by side.
        num_steps += 1;
        if len_bytes > MAX_CONTEXT_BYTES || num_steps > MAX_CONTEXT_BYTES {
            break;
        }
        tokens.push(token);
        if token.is_word {
            num_words += 1;
            taken = tokens.len();
        }
    }
    tokens.truncate(taken);
}

/// Most tokens of a window on each side. Separators can be empty, so a file can hold any number of
/// them side by side.
const MAX_WINDOW_TOKENS: usize = 1 << 16;

/// Hits that are walked between two looks at cancellation and memory.
const HITS_PER_ROUND: usize = 4096;
/// Fewest hits that are worth a task.
const HITS_PER_TASK: usize = 64;

/// The number of words before and after a hit that are its neighbours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Words before the hit.
    pub left: usize,
    /// Words after the hit.
    pub right: usize,
}

/// Counts of the words in the windows of hits.
#[derive(Debug, Clone, Default)]
pub struct NeighbourCounts {
    /// Counts by segment and word id.
    counts: FxHashMap<(usize, u32), u64>,
    num_hits: u64,
    num_words: u64,
}

impl NeighbourCounts {
    /// Returns the number of hits.
    pub fn num_hits(&self) -> u64 {
        self.num_hits
    }

    /// Returns the number of words in all windows.
    pub fn num_words(&self) -> u64 {
        self.num_words
    }

    /// Returns the counts, each with the segment and the id of its word there, in no order.
    pub fn by_id(&self) -> impl Iterator<Item = ((usize, u32), u64)> + '_ {
        self.counts.iter().map(|(&word, &count)| (word, count))
    }

    /// Returns the words and their counts, in byte order of the words. Words that are equal after
    /// `fold` are one. `corpus` is the corpus that was searched.
    pub fn by_word(&self, corpus: &Corpus, fold: &Fold) -> BTreeMap<String, u64> {
        let mut by_word = BTreeMap::new();
        for (&(segment_idx, word), count) in &self.counts {
            let text = corpus.segments()[segment_idx].dictionary.word(word.into());
            *by_word.entry(fold.text(text).into_owned()).or_default() += count;
        }
        by_word
    }

    /// Adds the counts of `other`, which are of other hits in the same corpus.
    pub fn add(&mut self, mut other: Self) {
        if other.counts.len() > self.counts.len() {
            std::mem::swap(&mut self.counts, &mut other.counts);
        }
        for (word, count) in other.counts {
            *self.counts.entry(word).or_default() += count;
        }
        self.num_hits += other.num_hits;
        self.num_words += other.num_words;
    }

    /// Returns the number of bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        32 * self.counts.capacity()
    }

    fn add_window(&mut self, corpus: &Corpus, hit: Hit, window: Window) {
        self.num_hits += 1;
        let (mut before, mut after) = walks_from(corpus, hit.doc_id, hit.byte_offset);
        self.add_words(&mut before, window.left);
        let mut len_bytes = 0;
        while len_bytes < hit.byte_len
            && let Some(token) = after.next()
        {
            len_bytes += u64::from(token.has_blank) + token.bytes.len() as u64;
        }
        self.add_words(&mut after, window.right);
    }

    /// Counts the next `num_words` words of `walk`.
    fn add_words(&mut self, walk: &mut Walk<'_>, num_words: usize) {
        let mut num_left = num_words;
        let mut num_tokens = 0;
        while num_left > 0
            && num_tokens < MAX_WINDOW_TOKENS
            && let Some(step) = walk.next_step()
        {
            num_tokens += 1;
            if step.is_word {
                *self.counts.entry((step.segment_idx, step.token)).or_default() += 1;
                self.num_words += 1;
                num_left -= 1;
            }
        }
    }
}

/// Counts the words in the windows of the hits of `query` that begin in `segments`. `keep` is
/// called from time to time with the counts so far, until it breaks.
///
/// # Errors
/// As [`search_segments`].
pub fn count_neighbours(
    corpus: &Corpus,
    query: &Query,
    segments: Range<usize>,
    window: Window,
    options: &SearchOptions<'_>,
    keep: &mut dyn FnMut(&NeighbourCounts) -> ControlFlow<()>,
) -> Result<NeighbourCounts> {
    let mut counts = NeighbourCounts::default();
    let mut is_cancelled = false;
    search_segments(corpus, query, segments, options, &mut |hits| {
        for hits in hits.chunks(HITS_PER_ROUND) {
            counts.add(windows_from(corpus, hits, window, options));
            is_cancelled = (options.is_cancelled)();
            if is_cancelled || keep(&counts).is_break() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    if is_cancelled { Err(Error::Cancelled) } else { Ok(counts) }
}

/// Counts the words in the windows of `hits`, on all cores. The counts are of a part of them once
/// the caller has asked to stop.
fn windows_from(corpus: &Corpus, hits: &[Hit], window: Window, options: &SearchOptions<'_>) -> NeighbourCounts {
    let for_task = |hits: &[Hit]| {
        let mut counts = NeighbourCounts::default();
        if !(options.is_cancelled)() {
            hits.iter().for_each(|&hit| counts.add_window(corpus, hit, window));
        }
        counts
    };
    let tasks = hits.par_chunks(HITS_PER_TASK.max(hits.len() / (4 * rayon::current_num_threads())));
    tasks.map(for_task).reduce(NeighbourCounts::default, |mut one, other| {
        one.add(other);
        one
    })
}
