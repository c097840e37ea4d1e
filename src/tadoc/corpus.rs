//! Questions to a corpus as methods of it, named as the SQL functions are.
//!
//! ```text
//! search, count, term_count, kwic       a query, written as text     (query)
//! word_count, inverted_index, tfidf,    the whole corpus             (analytics)
//! sequence_count, statistics
//! document_text, extract                one document                 (read)
//! ```
//!
//! Each takes the usual settings. The modules in brackets have the functions behind them, with
//! limits of memory, selections of documents, folds of words, traversals and ways to stop.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::analytics::{
    CorpusStatistics, InvertedIndex, SequenceCounts, TaskLimits, TermVectors, Tfidf, Traversal, Vocabulary, WordCounts,
    corpus_statistics, inverted_index, sequence_count, word_count,
};
use crate::error::Result;
use crate::query::{ContextBatch, DocumentCount, Hit, Query, SearchOptions, count, count_by_document, kwic, search};
use crate::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes, extract};
use crate::segment::Corpus;

/// # Questions
///
/// The commonest questions. Each has the name of its SQL function.
///
/// ```
/// use tadoc::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a.txt", b"to be or not to be")?;
/// builder.push_document("b.txt", b"let it be")?;
/// let (file, _report) = builder.finish(None)?;
/// let (_footer, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
///
/// let hits = corpus.search("\"not to be\" OR let")?;
/// let places: Vec<(u64, u64)> = hits.iter().map(|hit| (hit.doc_id, hit.byte_offset)).collect();
/// assert_eq!(places, [(0, 9), (1, 0)]);
/// assert_eq!(corpus.extract(0, hits[0].byte_offset, hits[0].byte_len)?, b"not to be");
/// # Ok(())
/// # }
/// ```
impl Corpus {
    /// Returns the occurrences of `query`, by document and place.
    ///
    /// # Errors
    /// The errors of [`Query::parse`] and of [`search()`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// let hits = corpus.search("b*")?;
    /// assert_eq!(hits.len(), 3);
    /// assert_eq!((hits[2].doc_id, hits[2].byte_offset, hits[2].word_index), (1, 7, 2));
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn search(&self, query: &str) -> Result<Vec<Hit>> {
        search(self, &Query::parse(self.profile(), query)?, None)
    }

    /// Returns the number of occurrences of `query` in all documents.
    ///
    /// # Errors
    /// The errors of [`Query::parse`] and of [`count()`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// assert_eq!(corpus.count("be")?, 3);
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn count(&self, query: &str) -> Result<u64> {
        count(self, &Query::parse(self.profile(), query)?, &SearchOptions::default())
    }

    /// Returns the documents with an occurrence of `query`, and the number of occurrences in each.
    ///
    /// # Errors
    /// The errors of [`Query::parse`] and of [`count_by_document`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// let counts = corpus.term_count("to")?;
    /// assert_eq!((counts.len(), counts[0].doc_id, counts[0].count), (1, 0, 2));
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn term_count(&self, query: &str) -> Result<Vec<DocumentCount>> {
        count_by_document(self, &Query::parse(self.profile(), query)?, &SearchOptions::default())
    }

    /// Calls `visit` with the occurrences of `query` between `width` words before and after them,
    /// in batches, until it breaks (keyword in context).
    ///
    /// # Errors
    /// The errors of [`Query::parse`] and of [`kwic()`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// use std::ops::ControlFlow;
    ///
    /// let mut lines = Vec::new();
    /// corpus.kwic("not", 1, &mut |batch| {
    ///     lines.extend(batch.iter().map(|hit| [hit.left, hit.matched, hit.right].concat()));
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(lines, [b"or not to"]);
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn kwic(
        &self,
        query: &str,
        width: usize,
        visit: &mut dyn FnMut(&ContextBatch) -> ControlFlow<()>,
    ) -> Result<()> {
        let query = Query::parse(self.profile(), query)?;
        let options = SearchOptions::default();
        kwic(self, &query, width, DEFAULT_MAX_OUTPUT_BYTES, &options, visit)
    }

    /// Returns the number of occurrences of each word.
    ///
    /// # Errors
    /// The errors of [`word_count()`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// let counts = corpus.word_count()?;
    /// assert!(counts.iter().any(|(word, count)| (word, count) == ("be", 3)));
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn word_count(&self) -> Result<WordCounts> {
        word_count(self)
    }

    /// Returns the documents of each word.
    ///
    /// # Errors
    /// The errors of [`inverted_index()`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// let index = corpus.inverted_index()?;
    /// // The words in byte order: be, it, let, not, or, to.
    /// assert_eq!(index.doc_ids(0).collect::<Vec<u64>>(), [0, 1]);
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn inverted_index(&self) -> Result<InvertedIndex> {
        inverted_index(self, Traversal::Auto)
    }

    /// Prepares the scores tf * ln(D / df) of the words of each document. A cursor over some
    /// documents or all of them has the rows.
    ///
    /// # Errors
    /// The errors of [`Vocabulary::new`] and of [`Tfidf::new`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// use tadoc::analytics::DocSelection;
    ///
    /// let tfidf = corpus.tfidf()?;
    /// let mut cursor = tfidf.cursor(&DocSelection::all(&corpus), Some(1));
    /// let best = cursor.next_chunk()?.unwrap();
    /// // `to` stands twice in the first of two documents, and in no other.
    /// assert_eq!(best.scores()[0], 2.0 * 2f64.ln());
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn tfidf(&self) -> Result<Tfidf> {
        let vocabulary = Arc::new(Vocabulary::new(self)?);
        Tfidf::new(TermVectors::new(vocabulary, Traversal::Auto))
    }

    /// Returns the number of occurrences of each sequence of `n` words (n-grams), within the memory
    /// of `limits`, such as a number of bytes.
    ///
    /// # Errors
    /// The errors of [`sequence_count()`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// let pairs = corpus.sequence_count(2, 1 << 30)?;
    /// assert_eq!((pairs.len(), pairs.counts().iter().max()), (6, Some(&2)));
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn sequence_count<'a>(&self, n: usize, limits: impl Into<TaskLimits<'a>>) -> Result<SequenceCounts> {
        sequence_count(self, n, limits)
    }

    /// Returns the text of document `doc_id`. Bytes that are not UTF-8 are read as U+FFFD;
    /// [`document_bytes`] has the exact bytes.
    ///
    /// # Errors
    /// The errors of [`document_bytes`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// assert_eq!(corpus.document_text(1)?, "let it be");
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn document_text(&self, doc_id: u64) -> Result<String> {
        let bytes = document_bytes(self, doc_id, DEFAULT_MAX_OUTPUT_BYTES)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns `byte_len` bytes of document `doc_id` from `byte_offset` on.
    ///
    /// # Errors
    /// The errors of [`extract()`].
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// assert_eq!(corpus.extract(0, 9, 3)?, b"not");
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn extract(&self, doc_id: u64, byte_offset: u64, byte_len: u64) -> Result<Vec<u8>> {
        extract(self, doc_id, byte_offset, byte_len)
    }

    /// Returns the numbers of documents, words, rules and bytes.
    ///
    /// ```
    /// # use tadoc::{Corpus, build::{CorpusBuilder, IngestOptions}, format::OpenLimits};
    /// # let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// # builder.push_document("a.txt", b"to be or not to be")?;
    /// # builder.push_document("b.txt", b"let it be")?;
    /// # let (file, _report) = builder.finish(None)?;
    /// # let (_, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
    /// let statistics = corpus.statistics();
    /// assert_eq!((statistics.num_docs, statistics.num_words), (2, 9));
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn statistics(&self) -> CorpusStatistics {
        corpus_statistics(self)
    }
}
