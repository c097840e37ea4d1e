//! Words that stand near the hits of a query, and how often.
//!
//! ```text
//! text      the power was lost; then, during the storm, the power came back
//! query     power            window of 1 word to the left, 2 to the right
//! counted   the 1 + 1, was 1, lost 1, came 1, back 1
//! ```
//!
//! The window of a hit is the `left` words before it and the `right` words after it, in its document.
//! Separators do not count. A window ends at the border of the document, and the words of the hit
//! itself are not in it. Other hits are words like others. A word that is in the windows of two hits
//! counts twice.
//!
//! The neighbours of each hit are walked in the grammar from the hit outwards, so the cost is that of
//! the search, O(depth * log rule length) for each hit, and O(1) for each token of its window. Hits are
//! walked on all cores. Words are counted by their ids. Their texts are read once in the end. Memory: 32
//! bytes for each distinct word of each segment, and of each core while it walks.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::query::hit::Hit;
use crate::query::language::query::Query;
use crate::query::matching::neighbours::{Walk, walks_from};
use crate::query::options::SearchOptions;
use crate::query::search::search_segments;
use crate::segment::Corpus;
use crate::text::Fold;

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
        let (mut num_left, mut num_tokens) = (num_words, 0);
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

/// Counts the words in the windows of the hits of `query` that begin in `segments`. `keep` is called
/// from time to time with the counts so far, until it breaks.
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
            counts.add(windows_of(corpus, hits, window, options));
            is_cancelled = (options.is_cancelled)();
            if is_cancelled || keep(&counts).is_break() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(())
    })?;
    if is_cancelled { Err(Error::Cancelled) } else { Ok(counts) }
}

/// Counts the words in the windows of `hits`, on all cores. The counts are of a part of them once the
/// caller has asked to stop.
fn windows_of(
    corpus: &Corpus,
    hits: &[Hit],
    window: Window,
    options: &SearchOptions<'_>,
) -> NeighbourCounts {
    let of_task = |hits: &[Hit]| {
        let mut counts = NeighbourCounts::default();
        if !(options.is_cancelled)() {
            hits.iter().for_each(|&hit| counts.add_window(corpus, hit, window));
        }
        counts
    };
    let tasks = hits.par_chunks(HITS_PER_TASK.max(hits.len() / (4 * rayon::current_num_threads())));
    tasks.map(of_task).reduce(NeighbourCounts::default, |mut one, other| {
        one.add(other);
        one
    })
}
