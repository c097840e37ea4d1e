//! Which words stand near one another, and how often.
//!
//! A pair of positions i < j < i + window of one document, counted in words, is one occurrence of the
//! pair of their words, the smaller word first; separators do not matter, and a word pairs with
//! itself. So `window` = 2 pairs neighbours, and k equal words in a row have k - 1 such pairs.
//!
//! Pairs are met like windows of `window` words, in the rule where they cross a border between two
//! children, with the rule's weight. O(windows * window).

use std::sync::Arc;

use super::Vocabulary;
use super::sequences::count::{Limit, counted, walk_tasks};
use super::sequences::edges::{Edges, Sink};
use super::sequences::entries::{Entry, sorted_buckets};
use super::sequences::packing::Packing;
use super::sequences::rows::{Counted, Sequences};
use crate::corpus::Corpus;
use crate::error::{Error, Result};

/// Words of a text that are kept before the oldest are dropped.
const CONTEXT_LEN: usize = 1 << 12;
/// Memory of a pair while it is counted.
const PAIR_BYTES: u64 = 64;

/// How often each pair of words stands at a distance below `window`, where that is `min_count`
/// times or more; ascending by the first word, then the second.
///
/// # Errors
/// [`Error::InvalidArgument`] for a `window` below 2, [`Error::Capacity`] where more than
/// `max_memory_bytes` would be used or a count has more than 64 bits, and as [`Vocabulary::new`].
pub fn cooccurrence(
    corpus: &Corpus,
    window: usize,
    min_count: u64,
    max_memory_bytes: u64,
) -> Result<Cooccurrences> {
    let vocabulary = Arc::new(Vocabulary::new(corpus)?);
    Cooccurrences::with_vocabulary(vocabulary, window, min_count, max_memory_bytes)
}

/// Pairs of words and their counts as rows.
#[derive(Debug, Clone)]
pub struct Cooccurrences {
    pairs: Sequences,
    counts: Vec<u64>,
}

impl Cooccurrences {
    /// The pairs of the words of `vocabulary`.
    ///
    /// # Errors
    /// As [`cooccurrence`].
    pub fn with_vocabulary(
        vocabulary: Arc<Vocabulary>,
        window: usize,
        min_count: u64,
        max_memory_bytes: u64,
    ) -> Result<Self> {
        if window < 2 {
            let allowed = "2 words or more".to_owned();
            return Err(Error::InvalidArgument {
                name: "window",
                got: window.to_string(),
                allowed,
            });
        }
        let packing = Packing::new(2, vocabulary.len());
        let edges = Edges::of_segments(&vocabulary, window - 1, max_memory_bytes / 2)?;
        let limit = Limit::of_windows(max_memory_bytes / 2 / PAIR_BYTES);
        let reach = window - 1;
        let tasks = walk_tasks(&edges, &vocabulary, &limit, || Pairs::new(packing, reach))?;
        drop(edges);
        let entries = tasks.into_iter().map(|pairs| pairs.entries).collect();
        let add = |entries: &mut [Entry]| {
            counted(entries, packing, &|_| &[][..], &|value| value, min_count)
        };
        let parts = sorted_buckets(entries, packing.key_bits(), add);
        let parts = parts.into_iter().collect::<Result<Vec<Counted>>>()?;
        let mut pairs = Sequences::new(vocabulary, packing);
        pairs.extend(parts.iter());
        let counts = parts.iter().map(|part| part.counts.as_slice()).collect::<Vec<_>>().concat();
        Ok(Self { pairs, counts })
    }

    /// The rows' pairs, as sequences of 2 words.
    pub fn pairs(&self) -> &Sequences {
        &self.pairs
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether there is no pair.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// How often the pair of each row occurs.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Main memory of the rows, without the vocabulary.
    pub fn memory_bytes(&self) -> usize {
        self.pairs.memory_bytes() + size_of_val(self.counts.as_slice())
    }
}

/// Pairs as they are met: the smaller word, then the other; the value is the weight.
#[derive(Debug)]
struct Pairs {
    packing: Packing,
    /// Largest distance.
    reach: usize,
    weight: u64,
    /// Words of the text so far; the last `reach` of them matter.
    context: Vec<u32>,
    entries: Vec<Entry>,
}

impl Pairs {
    fn new(packing: Packing, reach: usize) -> Self {
        Self { packing, reach, weight: 0, context: Vec::new(), entries: Vec::new() }
    }

    /// Pairs `word`, `skipped` words behind the context, with the words of that.
    #[inline]
    fn meet(&mut self, word: u32, skipped: usize) {
        let reach = self.reach.saturating_sub(skipped).min(self.context.len());
        let (packing, value) = (self.packing, self.weight);
        let near = &self.context[self.context.len() - reach..];
        self.entries.extend(near.iter().map(|&other| {
            let key = packing.rolled(u64::from(word.min(other)), word.max(other));
            Entry { key, value }
        }));
    }
}

impl Sink for Pairs {
    fn begin(&mut self, weight: u64) {
        self.context.clear();
        self.weight = weight;
    }

    #[inline]
    fn push(&mut self, word: u32) {
        self.meet(word, 0);
        self.context.push(word);
        if self.context.len() >= self.reach.saturating_mul(2).saturating_add(CONTEXT_LEN) {
            self.context.drain(..self.context.len() - self.reach);
        }
    }

    fn push_child(&mut self, head: &[u32], tail: Option<&[u32]>) {
        for (at, &word) in head.iter().enumerate() {
            self.meet(word, at);
        }
        match tail {
            None => self.context.extend_from_slice(head),
            Some(tail) => {
                self.context.clear();
                self.context.extend_from_slice(tail);
            }
        }
    }

    fn num_met(&self) -> usize {
        self.entries.len()
    }

    fn forget(&mut self, num_met: usize) {
        self.entries.truncate(num_met);
    }
}
