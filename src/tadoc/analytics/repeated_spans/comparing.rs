//! The exact check of repeats: their words are compared one by one.
//!
//! Words of one segment are equal if their ids are. For words of two segments, the id in the other
//! segment is noted when their bytes were compared for the first time, 4 bytes for each word of the
//! dictionary. Each word has one id in a segment, so a pair of other ids is a difference.

use super::places::{PartAt, Places, Word};
use super::runs::Run;
use crate::error::Result;
use crate::interrupt::Canceller;

/// Number of words that are read at a time.
const CHUNK_WORDS: u64 = 1024;
/// No id was noted yet. Ids are smaller.
const UNKNOWN: u32 = u32::MAX;

/// Comparison of the words of two parts, which may be the same.
#[derive(Debug)]
pub(super) struct Comparison<'a> {
    places: &'a Places,
    min_words: u64,
    later: PartAt<'a>,
    earlier: PartAt<'a>,
    /// For each segment of the later part, the part and segment to which its words were compared last,
    /// and their ids there.
    ids: Vec<((usize, usize), Vec<u32>)>,
    later_words: Vec<Word>,
    earlier_words: Vec<Word>,
}

impl<'a> Comparison<'a> {
    /// Creates the comparison of windows of `min_words` words in two parts.
    pub fn new(places: &'a Places, min_words: u64, later: PartAt<'a>, earlier: PartAt<'a>) -> Self {
        Self {
            places,
            min_words,
            later,
            earlier,
            ids: vec![((usize::MAX, 0), Vec::new()); later.corpus.segments().len()],
            later_words: Vec::new(),
            earlier_words: Vec::new(),
        }
    }

    /// Returns the greatest number of bytes of memory of a comparison of words of `later`: an id for each
    /// word of its dictionaries.
    pub fn max_memory_bytes(later: PartAt<'_>) -> u64 {
        let of_segments = later.corpus.segments().iter().map(|segment| segment.dag.num_words());
        of_segments.map(|num_words| 4 * u64::from(num_words)).sum()
    }

    /// Returns true if the words of `run` are those that it repeats. Behind the first period, each word
    /// must be the one that stands a period before it. Then the windows there are those a period before.
    ///
    /// # Errors
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn is_repeat(&mut self, run: &Run, canceller: Canceller<'_>) -> Result<bool> {
        let (words, source) = (run.words(self.min_words), run.source_words(self.min_words));
        let num_words = source.end - source.start;
        let shifted = words.start + run.period..words.end;
        let [(start, from), (shifted_start, before)] = [
            (words.start, (self.earlier, source.start)),
            (shifted.start, (self.later, words.start)),
        ];
        Ok(self.are_same(start, from, num_words, canceller)?
            && (run.period == run.num_windows
                || self.are_same(shifted_start, before, shifted.end - shifted.start, canceller)?))
    }

    /// Returns true if `num_words` words of the later part, from `at` on, are those of `earlier` from
    /// `source` on.
    fn are_same(
        &mut self,
        at: u64,
        (earlier, source): (PartAt<'a>, u64),
        num_words: u64,
        canceller: Canceller<'_>,
    ) -> Result<bool> {
        let (places, later) = (self.places, self.later);
        let is_one_part = later.index == earlier.index;
        for done in (0..num_words).step_by(CHUNK_WORDS as usize) {
            canceller.check()?;
            let num_words = CHUNK_WORDS.min(num_words - done) as usize;
            places.read_words(later, at + done, num_words, &mut self.later_words);
            places.read_words(earlier, source + done, num_words, &mut self.earlier_words);
            if self.later_words.len() != num_words || self.earlier_words.len() != num_words {
                return Ok(false);
            }
            for at in 0..num_words {
                let (word, other) = (self.later_words[at], self.earlier_words[at]);
                let is_same = if is_one_part && word.segment_idx == other.segment_idx {
                    word.id == other.id
                } else {
                    self.have_same_bytes(later, word, earlier, other)
                };
                if !is_same {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Returns true if two words of different segments are the same.
    fn have_same_bytes(
        &mut self,
        later: PartAt<'_>,
        word: Word,
        earlier: PartAt<'_>,
        other: Word,
    ) -> bool {
        let (compared_to, ids) = &mut self.ids[word.segment_idx];
        let segment = (earlier.index, other.segment_idx);
        if *compared_to != segment {
            *compared_to = segment;
            ids.clear();
            let num_words = later.corpus.segments()[word.segment_idx].dag.num_words();
            ids.resize(num_words as usize, UNKNOWN);
        }
        let id = &mut ids[word.id as usize];
        if *id == UNKNOWN {
            if bytes_of(later, word) != bytes_of(earlier, other) {
                return false;
            }
            *id = other.id;
        }
        *id == other.id
    }
}

fn bytes_of(part: PartAt<'_>, word: Word) -> &[u8] {
    part.corpus.segments()[word.segment_idx].dictionary.get(word.id)
}
