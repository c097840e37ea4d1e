//! Map from the word ids of a segment to rows of the vocabulary.

use super::Vocabulary;

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
