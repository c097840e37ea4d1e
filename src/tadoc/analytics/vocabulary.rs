//! Vocabulary: the words of all segments of a corpus, in byte order; and the number of occurrences of each.
//!
//! ```text
//! segment 0   apple  bear  cat            row      0      1      2      3
//! segment 1          bear        dog      word     apple  bear   cat    dog
//!                                         ids      0:0    0:1    0:2    1:1
//!                                                         1:0
//! ```
//!
//! One segment needs no table, because the row is the word id. The dictionaries of several segments are
//! merged by ranges of words in parallel, in O(words * log segments) comparisons. The first 8 bytes decide
//! nearly all of these. The table takes 8 bytes for each word of each segment; words are not copied.
//!
//! # Folds
//!
//! Words that a query treats as equal share a row. Nothing of it is stored.
//!
//! ```text
//! vocabulary   0 Apple   1 BEAR   2 apple   3 bear   4 cat
//! folded       0 apple = rows 0, 2          1 bear = rows 1, 3          2 cat = row 4
//! ```
//!
//! The words of a folded [`Vocabulary`] are the folded texts, in byte order, copied once. Each row has the
//! ids of all words that fold to its text, several of one segment too. Tasks that work by rows fold with
//! the vocabulary and need no code for it. O(words * log words), but most comparisons are saved because
//! words in lower case are already in order.
//!
//! # Word count
//!
//! Rules are numbered with parents before children. So the weight of a rule is known when the sweep
//! reaches its right-hand side, and the sweep adds that weight to every element there
//! ([`Segment::weights_or_derive`], which keeps the result). O(G) for each segment, with segments
//! in parallel. Sums over segments are checked for overflow. TADOC uses a queue of rules and a hash
//! table for each rule (Zhang et al., VLDB Journal 2021, section 4); flat arrays need neither.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::segment::{Corpus, Segment};
use crate::text::{Dictionary, Fold};

/// Number of parallel tasks for each thread of a merge. Several tasks even out uneven ranges.
const TASKS_PER_THREAD: usize = 4;
/// Fewest rows whose sum is worth a task.
const ROWS_PER_TASK: usize = 1 << 14;

/// Rows of words, ascending in byte order, and the ids of each row.
#[derive(Debug, Clone)]
pub struct Vocabulary {
    corpus: Corpus,
    rows: Rows,
    /// Folded words by row, if words are folded.
    texts: Option<Dictionary>,
}

#[derive(Debug, Clone)]
enum Rows {
    /// Rows that are the word ids of the only segment.
    OneSegment,
    /// Rows with the ids `ids[offsets[r]..offsets[r + 1]]`, ascending by segment, then by id.
    Merged { offsets: Vec<u32>, ids: Vec<WordRef> },
}

/// Word of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct WordRef {
    segment_idx: u32,
    word: u32,
}

/// Rows of one range of words.
#[derive(Debug, Default)]
struct MergedRange {
    row_lens: Vec<u32>,
    ids: Vec<WordRef>,
}

impl Vocabulary {
    /// Merges the dictionaries of `corpus`. Words that are in a dictionary but do not occur get no
    /// row.
    ///
    /// # Errors
    /// [`Error::Capacity`] for more than 2^32 - 1 words over all segments.
    pub fn new(corpus: &Corpus) -> Result<Self> {
        let corpus = corpus.clone();
        let is_plain = match corpus.segments() {
            [segment] => !word_weights(segment).contains(&0),
            _ => false,
        };
        let rows = if is_plain { Rows::OneSegment } else { merge(corpus.segments())? };
        Ok(Self { corpus, rows, texts: None })
    }

    /// Returns the corpus of these words.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Returns the number of rows, which are the distinct words of the corpus.
    pub fn len(&self) -> usize {
        match &self.rows {
            Rows::OneSegment => self.corpus.segments()[0].dag.num_words() as usize,
            Rows::Merged { offsets, .. } => offsets.len() - 1,
        }
    }

    /// Returns true if there is no word.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the word of `row`; empty if the vocabulary is [that of a part](Self::for_part) without the word.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    #[inline]
    pub fn word(&self, row: usize) -> &str {
        if let Some(texts) = &self.texts {
            return texts.word((row as u32).into());
        }
        let first = match &self.rows {
            Rows::OneSegment => WordRef { segment_idx: 0, word: row as u32 },
            Rows::Merged { offsets, ids } => match ids[offsets[row] as usize..offsets[row + 1] as usize].first() {
                Some(&first) => first,
                None => return "",
            },
        };
        self.corpus.segments()[first.segment_idx as usize].dictionary.word(first.word.into())
    }

    /// Returns the segments that have the word of `row` and its id there, ascending by segment. A
    /// segment may have several ids of a folded word.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    #[inline]
    pub fn ids(&self, row: usize) -> impl Iterator<Item = (usize, u32)> + '_ {
        let (only, merged) = match &self.rows {
            Rows::OneSegment => (Some((0, row as u32)), &[][..]),
            Rows::Merged { offsets, ids } => (None, &ids[offsets[row] as usize..offsets[row + 1] as usize]),
        };
        let merged = merged.iter().map(|id| (id.segment_idx as usize, id.word));
        only.into_iter().chain(merged)
    }

    /// Returns the row of `word`, or `None` if it does not occur. O(log rows).
    pub fn row_of(&self, word: &str) -> Option<usize> {
        let mut start = 0;
        let mut end = self.len();
        while start < end {
            let middle = start + (end - start) / 2;
            match self.word(middle).cmp(word) {
                std::cmp::Ordering::Less => start = middle + 1,
                std::cmp::Ordering::Equal => return Some(middle),
                std::cmp::Ordering::Greater => end = middle,
            }
        }
        None
    }

    /// Returns the rows that have one of the words of `counts`, ascending, each with the sum of
    /// their counts. A word is given by its segment and its id there. O(rows + counts), or
    /// O(counts) for one segment; 8 bytes of memory for each word of each segment.
    pub fn sums_by_row(&self, counts: impl Iterator<Item = ((usize, u32), u64)>) -> Vec<(usize, u64)> {
        if self.is_one_segment() {
            let mut sums: Vec<(usize, u64)> = counts.map(|((_, word), count)| (word as usize, count)).collect();
            sums.sort_unstable();
            return sums;
        }
        let segments = self.corpus.segments().iter();
        let mut by_id: Vec<Vec<u64>> = segments.map(|segment| vec![0; segment.dag.num_words() as usize]).collect();
        for ((segment_idx, word), count) in counts {
            by_id[segment_idx][word as usize] = count;
        }
        let sum_of = |row| {
            let counts = self.ids(row).map(|(segment_idx, word)| by_id[segment_idx][word as usize]);
            counts.fold(0, u64::saturating_add)
        };
        let sums = (0..self.len()).into_par_iter().with_min_len(ROWS_PER_TASK);
        sums.map(|row| (row, sum_of(row))).filter(|&(_, sum)| sum > 0).collect()
    }

    /// Returns the words of a folded vocabulary, whose ids are the rows. Returns `None` if the
    /// vocabulary is not folded; its words are in the dictionaries of the segments.
    pub fn folded_words(&self) -> Option<&Dictionary> {
        self.texts.as_ref()
    }

    /// Returns the memory of the vocabulary in bytes, without the corpus.
    pub fn memory_bytes(&self) -> usize {
        let rows = match &self.rows {
            Rows::OneSegment => 0,
            Rows::Merged { offsets, ids } => 4 * offsets.capacity() + size_of::<WordRef>() * ids.capacity(),
        };
        rows + self.texts.as_ref().map_or(0, Dictionary::memory_bytes)
    }

    /// Returns true if rows are the word ids of the only segment.
    pub(super) fn is_one_segment(&self) -> bool {
        matches!(self.rows, Rows::OneSegment)
    }

    /// Returns a vocabulary of `texts`, each with the ids of all rows of its group.
    pub(super) fn grouped(&self, texts: Dictionary, groups: impl Iterator<Item = impl Iterator<Item = usize>>) -> Self {
        let mut offsets = Vec::with_capacity(texts.len() as usize + 1);
        let mut ids: Vec<WordRef> = Vec::with_capacity(self.len());
        offsets.push(0);
        for group in groups {
            let start = ids.len();
            let refs = group.flat_map(|row| self.ids(row));
            ids.extend(refs.map(|(at, word)| WordRef { segment_idx: at as u32, word }));
            ids[start..].sort_unstable();
            offsets.push(ids.len() as u32);
        }
        let rows = Rows::Merged { offsets, ids };
        Self { corpus: self.corpus.clone(), rows, texts: Some(texts) }
    }

    /// Returns the vocabulary of `part`, some of the segments of this corpus, with the rows of this one. So machines that
    /// have different segments number words alike. `places` are the places of the segments in this corpus, in the order
    /// of `part`. Rows without a word of `part` have no ids, and no text unless words are folded. O(words of all
    /// segments).
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if a place is no segment with the words of `part`.
    pub fn for_part(&self, part: &Corpus, places: &[usize]) -> Result<Self> {
        let segments = self.corpus.segments();
        let num_words = |segment: &Arc<Segment>| segment.dictionary.num_words();
        let expected: Vec<_> = part.segments().iter().map(num_words).collect();
        let got: Vec<_> = places.iter().filter_map(|&place| segments.get(place)).map(num_words).collect();
        if got != expected {
            let got = format!("segments of {got:?} words");
            let allowed = format!("segments of {expected:?} words");
            return Err(Error::InvalidArgument { name: "segments of a part", got, allowed });
        }
        let mut in_part = vec![None; segments.len()];
        for (at, &place) in places.iter().enumerate() {
            in_part[place] = Some(at as u32);
        }
        let num_ids: usize = expected.iter().map(|&len| len as usize).sum();
        let mut ids = Vec::with_capacity(num_ids);
        let mut offsets = Vec::with_capacity(self.len() + 1);
        offsets.push(0);
        for row in 0..self.len() {
            let here = self.ids(row).filter_map(|(place, word)| Some((in_part[place]?, word)));
            let start = ids.len();
            ids.extend(here.map(|(segment_idx, word)| WordRef { segment_idx, word }));
            ids[start..].sort_unstable();
            offsets.push(ids.len() as u32);
        }
        Ok(Self { corpus: part.clone(), rows: Rows::Merged { offsets, ids }, texts: self.texts.clone() })
    }

    /// Returns, for each segment and word id, the first id of the same row in that segment. The
    /// lists are empty for a vocabulary that is not folded, where that id is the word itself.
    pub(super) fn first_ids(&self) -> Vec<Vec<u32>> {
        let segments = self.corpus.segments().iter();
        if self.texts.is_none() {
            return segments.map(|_| Vec::new()).collect();
        }
        let mut first_ids: Vec<Vec<u32>> = segments.map(|segment| (0..segment.dag.num_words()).collect()).collect();
        for row in 0..self.len() {
            let mut first = (usize::MAX, 0);
            for (segment_idx, word) in self.ids(row) {
                if segment_idx != first.0 {
                    first = (segment_idx, word);
                }
                first_ids[segment_idx][word as usize] = first.1;
            }
        }
        first_ids
    }
}

/// Returns the number of occurrences of each word of `segment`.
pub(super) fn word_weights(segment: &Segment) -> &[u64] {
    &segment.weights_or_derive()[..segment.dag.num_words() as usize]
}

fn merge(segments: &[Arc<Segment>]) -> Result<Rows> {
    let num_words: u64 = segments.iter().map(|segment| u64::from(segment.dag.num_words())).sum();
    if num_words > u64::from(u32::MAX) {
        return Err(Error::Capacity {
            what: "a vocabulary in words of all segments",
            requested: num_words,
            limit: u64::from(u32::MAX),
            knob: "the block size at ingest (larger blocks repeat fewer words)",
        });
    }
    let ranges: Vec<MergedRange> =
        split(segments).into_par_iter().map(|ranges| merge_ranges(segments, ranges)).collect();
    let mut offsets = Vec::with_capacity(ranges.iter().map(|r| r.row_lens.len()).sum::<usize>() + 1);
    let mut ids = Vec::with_capacity(ranges.iter().map(|r| r.ids.len()).sum());
    let mut end = 0;
    offsets.push(end);
    for range in ranges {
        ids.extend_from_slice(&range.ids);
        offsets.extend(range.row_lens.iter().map(|len| {
            end += len;
            end
        }));
    }
    Ok(Rows::Merged { offsets, ids })
}

/// Cuts all dictionaries at the same words. Returns, for each parallel task, its range of word ids
/// in each segment.
fn split(segments: &[Arc<Segment>]) -> Vec<Vec<Range<u32>>> {
    let largest = segments.iter().map(|segment| &segment.dictionary).max_by_key(|d| d.num_words());
    let Some(largest) = largest else { return Vec::new() };
    let num_tasks = (rayon::current_num_threads() * TASKS_PER_THREAD) as u64;
    let cut_ids = (1..num_tasks).map(|t| (u64::from(largest.num_words()) * t / num_tasks) as u32);
    let mut starts: Vec<u32> = vec![0; segments.len()];
    let mut tasks = Vec::new();
    for cut in cut_ids.filter(|&id| id < largest.num_words()) {
        let word = largest.get(cut);
        let ends: Vec<u32> = segments.iter().map(|s| s.dictionary.words_with_prefix(word).start).collect();
        tasks.push(starts.iter().zip(&ends).map(|(&start, &end)| start..end).collect());
        starts = ends;
    }
    let rest = segments.iter().zip(&starts).map(|(s, &start)| start..s.dag.num_words());
    tasks.push(rest.collect());
    tasks
}

fn merge_ranges(segments: &[Arc<Segment>], ranges: Vec<Range<u32>>) -> MergedRange {
    let head = |segment_idx: usize, word: u32| {
        let bytes = segments[segment_idx].dictionary.get(word);
        Reverse((leading(bytes), bytes, segment_idx, word))
    };
    let weights: Vec<&[u64]> = segments.iter().map(|segment| word_weights(segment)).collect();
    let mut heads: BinaryHeap<_> = ranges
        .iter()
        .enumerate()
        .filter(|(_, range)| !range.is_empty())
        .map(|(segment_idx, range)| head(segment_idx, range.start))
        .collect();
    let mut merged = MergedRange::default();
    let mut last: &[u8] = &[];
    while let Some(mut top) = heads.peek_mut() {
        let Reverse((_, bytes, segment_idx, word)) = *top;
        if word + 1 < ranges[segment_idx].end {
            *top = head(segment_idx, word + 1);
        } else {
            std::collections::binary_heap::PeekMut::pop(top);
        }
        if weights[segment_idx][word as usize] == 0 {
            continue;
        }
        merged.ids.push(WordRef { segment_idx: segment_idx as u32, word });
        match merged.row_lens.last_mut().filter(|_| bytes == last) {
            Some(len) => *len += 1,
            None => merged.row_lens.push(1),
        }
        last = bytes;
    }
    merged
}

/// Returns the first 8 bytes as a number with the order of the bytes. Equal numbers need a full
/// comparison.
#[inline]
fn leading(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => {
            let padded = bytes.iter().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte));
            padded << (8 * (8 - bytes.len()) % 64)
        }
    }
}

/// Minimum number of rows of a parallel task, so that one thread folds a small vocabulary.
const TASK_ROWS: usize = 4096;

impl Vocabulary {
    /// Returns the vocabulary in which words that `fold` makes equal share a row.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the folded words have 4 GiB or more.
    pub fn folded(&self, fold: &Fold) -> Result<Self> {
        if *fold == Fold::NONE {
            return Ok(self.clone());
        }
        let rows = (0..self.len()).into_par_iter().with_min_len(TASK_ROWS);
        let mut folded: Vec<(Cow<'_, str>, usize)> = rows.map(|row| (fold.text(self.word(row)), row)).collect();
        // A stable sort is fast where much is in order already, and keeps rows with the same text
        // in order.
        folded.par_sort_by(|a, b| a.0.cmp(&b.0));
        let groups = || folded.chunk_by(|a, b| a.0 == b.0);
        let texts = dictionary(groups().map(|group| &*group[0].0))?;
        Ok(self.grouped(texts, groups().map(|group| group.iter().map(|(_, row)| *row))))
    }
}

/// Builds the dictionary of `words`, which ascend.
fn dictionary<'a>(words: impl Iterator<Item = &'a str>) -> Result<Dictionary> {
    let mut bytes = Vec::new();
    let mut offsets = vec![0];
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        offsets.push(u32::try_from(bytes.len()).map_err(|_| too_large(bytes.len()))?);
    }
    Dictionary::from_parts((offsets.len() - 1) as u32, offsets, bytes.into())
}

fn too_large(len_bytes: usize) -> Error {
    Error::Capacity {
        what: "the folded words of a corpus in bytes",
        requested: len_bytes as u64,
        limit: u64::from(u32::MAX),
        knob: "nothing; query fewer segments at once",
    }
}

/// Rows of the vocabulary by segment and word id.
#[derive(Debug)]
pub(super) struct WordRows {
    /// Rows by segment and word id. Empty if rows are the word ids of the only segment.
    by_segment: Vec<Vec<u32>>,
    are_ascending: bool,
}

/// Rows of one segment by word id. Without a table, the row is the word id.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentRows<'a> {
    rows: Option<&'a [u32]>,
    are_ascending: bool,
}

impl WordRows {
    /// Builds the map in O(words of all segments), with 4 bytes for each. Ids of words that do not
    /// occur get no row.
    pub fn new(vocabulary: &Vocabulary) -> Self {
        let are_ascending = vocabulary.folded_words().is_none();
        if vocabulary.is_one_segment() {
            return Self { by_segment: Vec::new(), are_ascending };
        }
        let segments = vocabulary.corpus().segments().iter();
        let mut by_segment: Vec<Vec<u32>> =
            segments.map(|segment| vec![u32::MAX; segment.dag.num_words() as usize]).collect();
        for row in 0..vocabulary.len() {
            for (segment_idx, word) in vocabulary.ids(row) {
                by_segment[segment_idx][word as usize] = row as u32;
            }
        }
        Self { by_segment, are_ascending }
    }

    /// Returns the rows of the words of segment `segment_idx`.
    pub fn for_segment(&self, segment_idx: usize) -> SegmentRows<'_> {
        let rows = self.by_segment.get(segment_idx).map(Vec::as_slice);
        SegmentRows { rows, are_ascending: self.are_ascending }
    }

    /// Returns the memory of the map in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.by_segment.iter().map(|rows| 4 * rows.capacity()).sum()
    }
}

impl SegmentRows<'_> {
    /// Returns true if rows ascend with word ids and each word has its own row, which is not the
    /// case for folded words.
    pub fn are_ascending(self) -> bool {
        self.are_ascending
    }

    /// Returns the row of `word`, which must occur in the corpus.
    #[inline]
    pub fn row(self, word: u32) -> u32 {
        self.rows.map_or(word, |rows| rows[word as usize])
    }

    /// Appends the rows of `words` to `output`.
    pub fn append(self, words: &[u32], output: &mut Vec<u32>) {
        match self.rows {
            None => output.extend_from_slice(words),
            Some(rows) => output.extend(words.iter().map(|&word| rows[word as usize])),
        }
    }
}

/// Returns the number of occurrences of each word of `segment`, by word id. A document that
/// continues in another segment counts with the part that is in this one.
pub fn segment_word_counts(segment: &Segment) -> &[u64] {
    word_weights(segment)
}

/// Counts the occurrences of each word of `corpus`. Rows are in byte order of the words.
///
/// # Errors
/// [`Error::Capacity`] if a count needs more than 64 bits, and the errors of [`Vocabulary::new`].
pub fn word_count(corpus: &Corpus) -> Result<WordCounts> {
    // The sweeps are most of the work, so they run for all segments in parallel first.
    corpus.segments().par_iter().for_each(|segment| {
        segment.weights_or_derive();
    });
    WordCounts::with_vocabulary(Arc::new(Vocabulary::new(corpus)?))
}

/// Words and their counts as rows.
#[derive(Debug, Clone)]
pub struct WordCounts {
    vocabulary: Arc<Vocabulary>,
    /// Counts by row. Empty if the counts are the weights of one segment whose word ids are the
    /// rows.
    merged: Vec<u64>,
}

impl WordCounts {
    /// Counts the words of `vocabulary`; rows are those of `vocabulary`.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a count needs more than 64 bits.
    pub fn with_vocabulary(vocabulary: Arc<Vocabulary>) -> Result<Self> {
        let mut merged = Vec::new();
        if !vocabulary.is_one_segment() {
            let segments = vocabulary.corpus().segments();
            let weights: Vec<&[u64]> = segments.iter().map(|s| word_weights(s)).collect();
            merged = sums(&vocabulary, &weights)?;
        }
        Ok(Self { vocabulary, merged })
    }

    /// Returns the vocabulary that the rows belong to.
    pub fn vocabulary(&self) -> &Arc<Vocabulary> {
        &self.vocabulary
    }

    /// Returns the number of rows, which are the distinct words.
    pub fn len(&self) -> usize {
        self.vocabulary.len()
    }

    /// Returns true if there is no word.
    pub fn is_empty(&self) -> bool {
        self.vocabulary.is_empty()
    }

    /// Returns the word of `row`. Words ascend in byte order.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn word(&self, row: usize) -> &str {
        self.vocabulary.word(row)
    }

    /// Returns the number of occurrences of the word of `row`, which is 1 or more.
    ///
    /// # Panics
    /// If `row` is not below [`len`](Self::len).
    pub fn count(&self, row: usize) -> u64 {
        self.counts()[row]
    }

    /// Returns the counts of all rows.
    pub fn counts(&self) -> &[u64] {
        if self.merged.is_empty() && self.vocabulary.is_one_segment() {
            return word_weights(&self.vocabulary.corpus().segments()[0]);
        }
        &self.merged
    }

    /// Returns the `num_rows` rows with the highest counts, in descending order of count. Rows with
    /// the same count are in byte order of their words. O(rows log `num_rows`); one comparison
    /// rejects nearly every row.
    pub fn top(&self, num_rows: usize) -> Vec<usize> {
        // The top of the heap is the worst row kept: the least count and, among equal counts, the
        // last row.
        let mut kept: BinaryHeap<(Reverse<u64>, usize)> = BinaryHeap::new();
        for (row, &count) in self.counts().iter().enumerate() {
            if kept.len() < num_rows {
                kept.push((Reverse(count), row));
            } else if let Some(mut worst) = kept.peek_mut().filter(|worst| worst.0.0 < count) {
                *worst = (Reverse(count), row);
            }
        }
        kept.into_sorted_vec().into_iter().map(|(_, row)| row).collect()
    }

    /// Returns the words and counts of all rows.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, u64)> + '_ {
        self.counts().iter().enumerate().map(|(row, &count)| (self.word(row), count))
    }
}

/// Adds up the counts of all segments, given by word id, to counts by row.
fn sums<C: AsRef<[u64]> + Sync>(vocabulary: &Vocabulary, counts: &[C]) -> Result<Vec<u64>> {
    let sum = |row| {
        vocabulary
            .ids(row)
            .try_fold(0u64, |sum, (segment_idx, word)| sum.checked_add(counts[segment_idx].as_ref()[word as usize]))
    };
    (0..vocabulary.len())
        .into_par_iter()
        .with_min_len(1 << 14)
        .map(|row| sum(row).ok_or_else(count_too_large))
        .collect()
}

fn count_too_large() -> Error {
    Error::count_overflow("the count of a word over all segments")
}
