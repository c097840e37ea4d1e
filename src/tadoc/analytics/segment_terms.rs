//! Term vectors and inverted indexes of single segments, which were counted elsewhere (on a device)
//! or earlier ([`DocWords`]).
//!
//! ```text
//! SegmentTerms      document 0: b 1, c 2 | 1: | 2: b 1      by word id ──▶ TermVectors
//! SegmentDocuments  word a: | b: 0 2 | c: 0                 by word id ──▶ InvertedIndex
//! ```
//!
//! Both are sparse matrices by rows. Their shape is checked, O(entries), and the data is then used
//! as it is: cursors and lists handle rows of the vocabulary, folded words and documents that are
//! cut over segments. Only the lists of words that fold to the same text are joined here, O(entries
//! * log lists). The meaning of the numbers is not checked.
//!
//! The words of a chunk are rows of the [`Vocabulary`](super::Vocabulary), ascending. So a chunk is the
//! document-term matrix of its documents (CSR), and chunks joined in order are the matrix of all of them.

use std::cmp::Reverse;
use std::ops::Range;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::ids::DocId;
use crate::segment::{DocWords, Segment};

use super::postings::Postings;
use super::vocabulary::SegmentRows;

/// Minimum number of words of a document for each range of words that is searched in it.
const PAIRS_PER_LOOK: usize = 64;
/// Number of ranges of words for each thread. Several ranges even out their different sizes.
const RANGES_PER_THREAD: usize = 4;

/// Words of each document of a segment, with their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentTerms {
    /// Start of the entries of each document, and the end of the last.
    pub offsets: Vec<u32>,
    /// Word ids, ascending inside a document.
    pub words: Vec<u32>,
    /// Number of occurrences of each word in its document, 1 or more.
    pub counts: Vec<u32>,
}

/// Documents of each word of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentDocuments {
    /// Start of the entries of each word, and the end of the last.
    pub offsets: Vec<u32>,
    /// Ids of documents in the segment, ascending inside a word.
    pub docs: Vec<u32>,
}

impl SegmentTerms {
    /// Checks the shape of the matrix against `segment`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not one of its documents and words.
    pub(super) fn check(&self, segment: &Segment) -> Result<()> {
        let num_docs = segment.dag.grammar().num_docs();
        check_matrix(&self.offsets, num_docs, &self.words, segment.dag.num_words() as usize)?;
        check(self.counts.len() == self.words.len(), || {
            format!("{} counts of {} words", self.counts.len(), self.words.len())
        })
    }

    /// Returns the words of document `doc` and their counts.
    #[inline]
    fn for_doc(&self, doc: DocId) -> (&[u32], &[u32]) {
        let range = self.offsets[doc.index()] as usize..self.offsets[doc.index() + 1] as usize;
        (&self.words[range.clone()], &self.counts[range])
    }

    /// Returns the memory of the entries in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        4 * (self.offsets.capacity() + self.words.capacity() + self.counts.capacity())
    }
}

/// Words of the documents of a segment that are counted already.
#[derive(Debug, Clone, Copy)]
pub(super) enum Counted<'a> {
    /// Words that were counted elsewhere.
    Elsewhere(&'a SegmentTerms),
    /// Words that the segment keeps.
    Kept(&'a DocWords),
}

impl Counted<'_> {
    /// Returns the words of document `doc`, ascending, and their counts.
    #[inline]
    fn for_doc(&self, doc: DocId) -> (&[u32], &[u32]) {
        match self {
            Self::Elsewhere(terms) => terms.for_doc(doc),
            Self::Kept(doc_words) => doc_words.for_doc(doc),
        }
    }

    /// Appends the words of document `doc` to `chunk`.
    #[inline]
    pub fn append(&self, doc: DocId, rows: SegmentRows<'_>, chunk: &mut TermVectorChunk) {
        let (words, counts) = self.for_doc(doc);
        chunk.extend(rows, words, counts);
    }

    /// Appends rows and counts of the words of document `doc` to `parts`.
    pub fn append_parts(&self, doc: DocId, rows: SegmentRows<'_>, parts: &mut Vec<(u32, u64)>) {
        let (words, counts) = self.for_doc(doc);
        parts.extend(words.iter().zip(counts).map(|(&word, &count)| (rows.row(word), count.into())));
    }

    /// Returns the number of documents among `docs` that contain each of `num_words` words. If
    /// `first_ids` is not empty, words that fold to the same text are counted with the first of
    /// them.
    pub fn doc_counts(&self, docs: Range<usize>, first_ids: &[u32], num_words: usize) -> Vec<u32> {
        let mut counts = vec![0u32; num_words];
        if first_ids.is_empty() {
            let (offsets, words) = self.lists();
            let entries = offsets[docs.start] as usize..offsets[docs.end] as usize;
            words[entries].iter().for_each(|&word| counts[word as usize] += 1);
            return counts;
        }
        // Number of the last document that contains each word, counted from 1.
        let mut last = vec![0u32; num_words];
        for (number, doc) in (1..).zip(DocId::range(docs)) {
            for &word in self.for_doc(doc).0 {
                let first = first_ids[word as usize] as usize;
                if std::mem::replace(&mut last[first], number) != number {
                    counts[first] += 1;
                }
            }
        }
        counts
    }

    /// Returns the start of the words of each document with the end of the last, and the words.
    fn lists(&self) -> (&[u32], &[u32]) {
        match self {
            Self::Elsewhere(terms) => (&terms.offsets, &terms.words),
            Self::Kept(doc_words) => doc_words.lists(),
        }
    }
}

impl SegmentDocuments {
    /// Checks the shape of the matrix against `segment`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if it is not one of its words and documents.
    pub(super) fn check(&self, segment: &Segment) -> Result<()> {
        let num_words = segment.dag.num_words();
        let num_docs = segment.dag.grammar().num_docs();
        check_matrix(&self.offsets, num_words as usize, &self.docs, num_docs)
    }

    /// Builds the lists from the words of each document. Ranges of words are handled in parallel;
    /// each range searches all documents for its words.
    pub(super) fn from_doc_words(doc_words: &DocWords, num_words: usize) -> Self {
        let (starts, words) = doc_words.lists();
        let max_ranges = words.len() / (PAIRS_PER_LOOK * starts.len());
        let num_ranges = max_ranges.min(RANGES_PER_THREAD * rayon::current_num_threads());
        if num_ranges < 2 {
            return Self::from_few_pairs(doc_words, num_words);
        }
        let range_words = num_words.div_ceil(num_ranges).max(1);
        let mut offsets = vec![0u32; num_words + 1];
        let counts = offsets[1..].par_chunks_mut(range_words);
        counts.enumerate().for_each(|(range, counts)| {
            let first = (range * range_words) as u32;
            for_each_pair(doc_words, first, counts.len(), |at, _| counts[at] += 1);
        });
        for word in 0..num_words {
            offsets[word + 1] += offsets[word];
        }
        let mut docs = vec![0u32; offsets[num_words] as usize];
        let mut parts = Vec::new();
        let mut rest = docs.as_mut_slice();
        for first in (0..num_words).step_by(range_words) {
            let end = num_words.min(first + range_words);
            let (part, after) = rest.split_at_mut((offsets[end] - offsets[first]) as usize);
            parts.push((first, &offsets[first..end], part));
            rest = after;
        }
        parts.into_par_iter().for_each(|(first, offsets, docs)| {
            let mut next: Vec<u32> = offsets.iter().map(|offset| offset - offsets[0]).collect();
            for_each_pair(doc_words, first as u32, next.len(), |at, doc| {
                docs[next[at] as usize] = doc.into();
                next[at] += 1;
            });
        });
        Self { offsets, docs }
    }

    /// Builds the lists on one thread, which reads all words twice without a search.
    fn from_few_pairs(doc_words: &DocWords, num_words: usize) -> Self {
        let (_, words) = doc_words.lists();
        let mut offsets = vec![0u32; num_words + 1];
        words.iter().for_each(|&word| offsets[word as usize + 1] += 1);
        for word in 0..num_words {
            offsets[word + 1] += offsets[word];
        }
        let mut next = offsets.clone();
        let mut docs = vec![0u32; offsets[num_words] as usize];
        for doc in doc_words.docs() {
            for &word in doc_words.for_doc(doc).0 {
                let at = &mut next[word as usize];
                docs[*at as usize] = doc.into();
                *at += 1;
            }
        }
        Self { offsets, docs }
    }

    /// Converts the documents to lists by word. If `first_ids` is not empty, words that fold to the
    /// same text share the list of the first of them.
    ///
    /// # Errors
    /// The errors of [`Postings::from_lists`].
    pub(super) fn into_postings(self, first_ids: &[u32]) -> Result<Postings> {
        let (offsets, docs) = if first_ids.is_empty() {
            (self.offsets.iter().map(|&offset| offset as usize).collect(), self.docs)
        } else {
            folded(&self, first_ids)
        };
        Postings::from_lists(offsets, docs)
    }
}

/// Calls `f` for each document, ascending, with each of its words in `first..first + num_words`.
/// The word is passed as its distance from `first`.
fn for_each_pair(doc_words: &DocWords, first: u32, num_words: usize, mut f: impl FnMut(usize, DocId)) {
    for doc in doc_words.docs() {
        let (words, _) = doc_words.for_doc(doc);
        let start = words.partition_point(|&word| word < first);
        for &word in &words[start..] {
            let at = (word - first) as usize;
            if at >= num_words {
                break;
            }
            f(at, doc);
        }
    }
}

/// Joins the lists of words that fold to the same text to the list of the first of them, each
/// document once. The lists of the other words become empty.
fn folded(part: &SegmentDocuments, first_ids: &[u32]) -> (Vec<usize>, Vec<u32>) {
    let list = |word: usize| &part.docs[part.offsets[word] as usize..part.offsets[word + 1] as usize];
    let mut ends = vec![0usize; first_ids.len() + 1];
    for (word, &first) in first_ids.iter().enumerate() {
        ends[first as usize + 1] += list(word).len();
    }
    for word in 0..first_ids.len() {
        ends[word + 1] += ends[word];
    }
    let mut next = ends.clone();
    let mut gathered = vec![0u32; part.docs.len()];
    for (word, &first) in first_ids.iter().enumerate() {
        let start = next[first as usize];
        let docs = list(word);
        gathered[start..start + docs.len()].copy_from_slice(docs);
        next[first as usize] += docs.len();
    }
    let mut offsets = vec![0usize];
    let mut docs = Vec::with_capacity(gathered.len());
    for ends in ends.windows(2) {
        let list = &mut gathered[ends[0]..ends[1]];
        if !list.is_sorted_by(|a, b| a < b) {
            // A stable sort uses ascending runs as they are.
            list.sort();
        }
        docs.extend(list.chunk_by(|a, b| a == b).map(|same| same[0]));
        offsets.push(docs.len());
    }
    (offsets, docs)
}

/// Checks that `offsets` cut `columns` into `num_rows` rows, and that all columns are below
/// `num_columns`.
fn check_matrix(offsets: &[u32], num_rows: usize, columns: &[u32], num_columns: usize) -> Result<()> {
    let ends = (offsets.first().copied(), offsets.last().map(|&end| end as usize));
    let is_cut = offsets.len() == num_rows + 1 && offsets.is_sorted() && ends == (Some(0), Some(columns.len()));
    check(is_cut, || format!("{} offsets for {num_rows} rows", offsets.len()))?;
    let largest = columns.iter().max().copied();
    check(largest.is_none_or(|largest| (largest as usize) < num_columns), || {
        format!("{} for one of {num_columns}", largest.unwrap_or_default())
    })
}

/// Checks that there is one part for each segment.
///
/// # Errors
/// [`Error::InvalidArgument`] if not.
pub(super) fn check_number(got: usize, expected: usize) -> Result<()> {
    check(got == expected, || format!("{got} parts of {expected} segments"))
}

fn check(is_right: bool, got: impl FnOnce() -> String) -> Result<()> {
    if is_right {
        return Ok(());
    }
    let allowed = "one matrix for each segment, of its documents and words".to_owned();
    Err(Error::InvalidArgument { name: "counts of segments", got: got(), allowed })
}

/// Term vectors of consecutive documents of the selection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TermVectorChunk {
    doc_ids: Vec<u64>,
    offsets: Vec<u64>,
    rows: Vec<u32>,
    counts: Vec<u64>,
}

impl Default for TermVectorChunk {
    /// Creates a chunk without documents.
    fn default() -> Self {
        Self { doc_ids: Vec::new(), offsets: vec![0], rows: Vec::new(), counts: Vec::new() }
    }
}

impl TermVectorChunk {
    /// Returns the number of documents, including those without words.
    pub fn num_docs(&self) -> usize {
        self.doc_ids.len()
    }

    /// Returns the number of rows, one for each word of each document.
    pub fn num_rows(&self) -> usize {
        self.rows.len()
    }

    /// Returns the ids of the documents, ascending.
    pub fn doc_ids(&self) -> &[u64] {
        &self.doc_ids
    }

    /// Returns the start of the rows of each document, and the end of the last (`indptr` of a CSR
    /// matrix).
    pub fn offsets(&self) -> &[u64] {
        &self.offsets
    }

    /// Returns the words, as rows of the vocabulary (`indices` of a CSR matrix).
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Returns the number of occurrences of each of [`rows`](Self::rows) in its document (`data` of
    /// a CSR matrix).
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Returns the indexes of the rows of the document at `index`.
    ///
    /// # Panics
    /// If `index` is not below [`num_docs`](Self::num_docs).
    pub fn range(&self, index: usize) -> Range<usize> {
        self.offsets[index] as usize..self.offsets[index + 1] as usize
    }

    /// Returns document ids, words as rows of the vocabulary, and counts.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32, u64)> + '_ {
        self.doc_ids
            .iter()
            .enumerate()
            .flat_map(move |(index, &doc_id)| self.range(index).map(move |at| (doc_id, self.rows[at], self.counts[at])))
    }

    /// Returns the memory of the chunk in bytes.
    pub fn memory_bytes(&self) -> usize {
        8 * (self.doc_ids.capacity() + self.offsets.capacity() + self.counts.capacity()) + 4 * self.rows.capacity()
    }

    /// Reserves room for `num_rows` more rows.
    pub(super) fn reserve(&mut self, num_rows: usize) {
        self.rows.reserve(num_rows);
        self.counts.reserve(num_rows);
    }

    /// Appends the documents of `next`.
    pub(super) fn append(&mut self, next: &Self) {
        let base = self.num_rows() as u64;
        self.doc_ids.extend_from_slice(&next.doc_ids);
        self.offsets.extend(next.offsets[1..].iter().map(|offset| base + offset));
        self.rows.extend_from_slice(&next.rows);
        self.counts.extend_from_slice(&next.counts);
    }

    /// Appends the words of a document, or of a part of it.
    pub(super) fn extend<C: Copy + Into<u64>>(&mut self, rows: SegmentRows<'_>, words: &[u32], counts: &[C]) {
        let start = self.rows.len();
        rows.append(words, &mut self.rows);
        self.counts.extend(counts.iter().map(|&count| count.into()));
        if !rows.are_ascending() {
            self.join_from(start);
        }
    }

    /// Sorts the rows from `start` on, and adds up the counts of words that fold to the same text.
    fn join_from(&mut self, start: usize) {
        let counts = self.counts.drain(start..);
        let mut counted: Vec<(u32, u64)> = self.rows.drain(start..).zip(counts).collect();
        counted.sort_unstable_by_key(|(row, _)| *row);
        for same in counted.chunk_by(|a, b| a.0 == b.0) {
            self.rows.push(same[0].0);
            // A segment has fewer than 2^64 words, so a sum of their counts fits 64 bits.
            self.counts.push(same.iter().map(|(_, count)| count).sum());
        }
    }

    /// Appends the rows of the parts of a document, which may be in any order.
    pub(super) fn extend_joined(&mut self, parts: &mut [(u32, u64)]) -> Result<()> {
        parts.sort_unstable();
        for same in parts.chunk_by(|a, b| a.0 == b.0) {
            let count = same.iter().try_fold(0u64, |sum, part| sum.checked_add(part.1));
            self.rows.push(same[0].0);
            self.counts.push(count.ok_or_else(too_large)?);
        }
        Ok(())
    }

    /// Ends document `doc_id` behind the current rows.
    pub(super) fn end_document(&mut self, doc_id: u64) {
        self.doc_ids.push(doc_id);
        self.offsets.push(self.rows.len() as u64);
    }

    /// Keeps the `top` most frequent words of the last document, or all words without `top`.
    pub(super) fn keep_frequent(&mut self, top: Option<usize>) {
        if let Some(top) = top {
            self.keep_top(top, |count, _| Reverse(count));
        }
    }

    /// Keeps the `top` rows of the last document with the least keys, in the order of keys, then of
    /// rows. `key` gets the count and the row.
    pub(super) fn keep_top<K: Ord>(&mut self, top: usize, key: impl Fn(u64, u32) -> K) {
        let Some(last) = self.num_docs().checked_sub(1) else { return };
        let range = self.range(last);
        let start = range.start;
        let mut ranked: Vec<(K, u32, u64)> =
            range.map(|at| (key(self.counts[at], self.rows[at]), self.rows[at], self.counts[at])).collect();
        let by_rank = |a: &(K, u32, u64), b: &(K, u32, u64)| (&a.0, a.1).cmp(&(&b.0, b.1));
        if top > 0 && top < ranked.len() {
            ranked.select_nth_unstable_by(top - 1, by_rank);
        }
        ranked.truncate(top);
        ranked.sort_unstable_by(by_rank);
        self.rows.truncate(start);
        self.counts.truncate(start);
        self.rows.extend(ranked.iter().map(|ranked| ranked.1));
        self.counts.extend(ranked.iter().map(|ranked| ranked.2));
        self.offsets[last + 1] = self.rows.len() as u64;
    }
}

fn too_large() -> Error {
    Error::count_overflow("the count of a word in a document")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::analytics::{
        DocSelection, Fold, InvertedIndex, TermVectors, Tfidf, Traversal, Vocabulary, document_counts,
    };
    use crate::build::corpus_from_texts;
    use crate::segment::Corpus;

    use super::*;

    /// Returns documents with words that fold to others, documents without words, and one document that
    /// is cut if blocks are small.
    fn documents() -> Vec<String> {
        let word = |at: usize| ["be", "To", "or", "not", "to", "Be", "an"][at * at % 31 % 7];
        let text = |doc: usize| (0..doc * 7 % 40).map(|at| word(at + doc * 3)).collect::<Vec<_>>();
        let mut texts: Vec<_> = (0..150).map(|doc| text(doc).join(" ")).collect();
        texts.push("Not one TO be but many ".repeat(60));
        texts.extend(texts.clone());
        texts
    }

    fn folds(corpus: &Corpus) -> [Arc<Vocabulary>; 2] {
        let plain = Vocabulary::new(corpus).unwrap();
        let folded = plain.folded(&Fold::CASE).unwrap();
        [plain, folded].map(Arc::new)
    }

    /// Makes the segments keep the words of their documents.
    fn keep_words(corpus: &Corpus) {
        corpus.segments().iter().for_each(|segment| segment.note_words_read(u64::MAX / 2));
    }

    /// Returns the answer of a device for each segment, from the words of its documents.
    fn parts(corpus: &Corpus) -> (Vec<SegmentTerms>, Vec<SegmentDocuments>) {
        let part = |segment: &Arc<Segment>| {
            let alone = Corpus::new(corpus.profile(), vec![segment.clone()]);
            let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
            let vectors = TermVectors::new(vocabulary.clone(), Traversal::TopDown);
            let chunk = vectors.collect(&DocSelection::all(&alone), None).unwrap();
            let id = |row: u32| vocabulary.ids(row as usize).next().unwrap().1;
            let words: Vec<u32> = chunk.rows().iter().map(|&row| id(row)).collect();
            let mut lists = vec![Vec::new(); segment.dag.num_words() as usize];
            for doc in 0..chunk.num_docs() {
                chunk.range(doc).for_each(|at| lists[words[at] as usize].push(doc as u32));
            }
            let ends = lists.iter().scan(0, |end, list| {
                *end += list.len() as u32;
                Some(*end)
            });
            let from_words =
                SegmentDocuments { offsets: std::iter::once(0).chain(ends).collect(), docs: lists.concat() };
            let offsets = chunk.offsets().iter().map(|&offset| offset as u32).collect();
            let counts = chunk.counts().iter().map(|&count| count as u32).collect();
            (SegmentTerms { offsets, words, counts }, from_words)
        };
        corpus.segments().iter().map(part).unzip()
    }

    #[test]
    fn parts_give_the_rows_of_the_corpus() {
        for block_bytes in [1 << 20, 700, 300] {
            let corpus = corpus_from_texts(block_bytes, &documents());
            assert_eq!(corpus.segments().len() == 1, block_bytes == 1 << 20);
            let is_cut = (0..corpus.num_docs()).any(|doc| corpus.doc_parts(doc).count() > 1);
            assert_eq!(is_cut, block_bytes < 1 << 20);
            for vocabulary in folds(&corpus) {
                let (terms, docs) = parts(&corpus);
                let counted = TermVectors::from_segments(vocabulary.clone(), terms).unwrap();
                keep_words(&corpus);
                let kept = TermVectors::new(vocabulary.clone(), Traversal::Auto);
                assert!(kept.counted(0).is_some());
                let expected = TermVectors::new(vocabulary.clone(), Traversal::TopDown);
                assert!(expected.counted(0).is_none());
                let all = DocSelection::all(&corpus);
                let some = DocSelection::list([0, 1, 7, 149, 150, 151, 301]).unwrap();
                assert!(counted.memory_bytes() > expected.memory_bytes());
                for got in [counted, kept] {
                    for (docs, top) in [(&all, None), (&all, Some(2)), (&some, None), (&some, Some(0))] {
                        let expected = expected.collect(docs, top).unwrap();
                        assert_eq!(got.collect(docs, top).unwrap(), expected);
                    }
                    let doc_counts = document_counts(&got).unwrap();
                    assert_eq!(doc_counts, document_counts(&expected).unwrap());
                    let score = |vectors| Tfidf::new(vectors).unwrap().score(2, 3);
                    assert_eq!(score(got).to_bits(), score(expected.clone()).to_bits());
                }
                let index = |way| InvertedIndex::with_vocabulary(vocabulary.clone(), way).unwrap();
                let expected = index(Traversal::TopDown);
                let counted = InvertedIndex::from_segments(vocabulary.clone(), docs).unwrap();
                for got in [counted, index(Traversal::Auto)] {
                    for row in 0..expected.len() {
                        assert!(got.doc_ids(row).eq(expected.doc_ids(row)), "{}", expected.word(row));
                        assert_eq!(got.num_docs(row), expected.num_docs(row));
                    }
                }
            }
        }
    }

    /// Documents with many words are searched by ranges of words; other documents are read at once.
    #[test]
    fn documents_of_words_are_the_same_in_ranges() {
        let text = |doc: usize| (0..900).map(|at| format!("w{}", at * (doc + 1))).collect::<Vec<_>>();
        let corpus = corpus_from_texts(1 << 20, &(0..6).map(|doc| text(doc).join(" ")).collect::<Vec<_>>());
        keep_words(&corpus);
        let [segment] = corpus.segments() else { panic!("{} segments", corpus.segments().len()) };
        let doc_words = segment.doc_words_or_derive_if_worth().unwrap();
        let num_words = segment.dag.num_words();
        let (starts, words) = doc_words.lists();
        assert!(words.len() >= 2 * PAIRS_PER_LOOK * starts.len());
        let num_words = num_words as usize;
        let in_ranges = SegmentDocuments::from_doc_words(doc_words, num_words);
        assert_eq!(in_ranges, SegmentDocuments::from_few_pairs(doc_words, num_words));
    }

    #[test]
    fn what_is_no_such_matrix_is_refused() {
        let corpus = corpus_from_texts(1 << 20, &documents());
        let [vocabulary, folded] = folds(&corpus);
        let (terms, docs) = parts(&corpus);
        let refused = |change: fn(&mut SegmentTerms)| {
            let mut terms = terms.clone();
            change(&mut terms[0]);
            let got = TermVectors::from_segments(vocabulary.clone(), terms).unwrap_err();
            assert!(matches!(got, Error::InvalidArgument { name: "counts of segments", .. }), "{got}");
        };
        refused(|part| part.offsets[0] = 1);
        refused(|part| part.offsets[1] = u32::MAX);
        refused(|part| part.offsets.truncate(3));
        refused(|part| part.offsets.clear());
        refused(|part| part.words[0] = 99);
        refused(|part| part.words.truncate(1));
        refused(|part| part.counts.truncate(1));
        assert!(TermVectors::from_segments(vocabulary, Vec::new()).is_err());
        assert!(InvertedIndex::from_segments(folded.clone(), Vec::new()).is_err());
        let changes: [fn(&mut SegmentDocuments); 2] = [|part| part.docs[0] = 9999, |part| part.offsets[0] = 1];
        for change in changes {
            let mut docs = docs.clone();
            change(&mut docs[0]);
            assert!(InvertedIndex::from_segments(folded.clone(), docs).is_err());
        }
    }
}
