//! From the word ids of a segment to rows of the vocabulary.

use super::Vocabulary;

/// Rows by segment and word id.
#[derive(Debug)]
pub(super) struct WordRows {
    /// Empty where rows are the word ids of the only segment.
    by_segment: Vec<Vec<u32>>,
    are_ascending: bool,
}

/// Rows by word id of one segment; without a table they are equal.
#[derive(Debug, Clone, Copy)]
pub(super) struct SegmentRows<'a> {
    rows: Option<&'a [u32]>,
    are_ascending: bool,
}

impl WordRows {
    /// O(words of all segments); 4 bytes each. Ids of words that occur nowhere get no row.
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

    /// The rows of the words of segment `segment_idx`.
    pub fn of(&self, segment_idx: usize) -> SegmentRows<'_> {
        let rows = self.by_segment.get(segment_idx).map(Vec::as_slice);
        SegmentRows { rows, are_ascending: self.are_ascending }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.by_segment.iter().map(|rows| 4 * rows.capacity()).sum()
    }
}

impl SegmentRows<'_> {
    /// Whether rows ascend with words, each word with a row of its own: not where words are folded.
    pub fn are_ascending(self) -> bool {
        self.are_ascending
    }

    /// The row of `word`, which occurs.
    #[inline]
    pub fn row(self, word: u32) -> u32 {
        self.rows.map_or(word, |rows| rows[word as usize])
    }

    /// Appends the rows of `words`.
    pub fn append(self, words: &[u32], output: &mut Vec<u32>) {
        match self.rows {
            None => output.extend_from_slice(words),
            Some(rows) => output.extend(words.iter().map(|&word| rows[word as usize])),
        }
    }
}
