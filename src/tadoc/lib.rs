//! Text as a word-level grammar (TADOC), counted, searched and read without decompressing it.
//!
//! ```text
//! documents ──text──▶ tokens ──grammar──▶ rules ──format──▶ file.tadoc     (all of it: build)
//!                                                              │ open
//!          edits ◀── analytics, query, read ◀────── segment ◀──┘
//! ```
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::format::OpenLimits;
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be or not to be")?;
//! builder.push_document("b.txt", b"let it be")?;
//! let (file, _report) = builder.finish(None)?;
//!
//! let (_footer, corpus) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
//! let counts = corpus.word_count()?;
//! assert!(counts.iter().any(|(word, count)| (word, count) == ("be", 3)));
//!
//! let hits = corpus.search("\"not to be\"")?;
//! assert_eq!((hits.len(), hits[0].doc_id, hits[0].byte_offset), (1, 0, 9));
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: [`text`] (bytes to tokens), [`grammar`] (tokens to rules), [`segment`] (rules as
//! flat arrays, and the corpus as a value), [`mod@format`] (the file), [`build`] (documents to a
//! file), [`read`] (documents and passages), [`query`] (search), [`analytics`] (tasks over a
//! corpus), [`edits`] (documents that change). [`Corpus`] answers the commonest questions itself.
//!
//! The crate knows neither Arrow nor DataFusion, no runtime, no object store and no device. Those
//! are the crates around it: `tadoc-store`, `tadoc-cuda`, `datafusion-tadoc`.
//!
//! # Glossary
//!
//! One word for one idea, in code, SQL, CUDA and documents.
//!
//! | term | meaning |
//! | --- | --- |
//! | **Text** | |
//! | document | one text with an id and a path; a file, a line or a row, as chosen at ingest |
//! | file | a path on a disk or the bytes behind it, never a document |
//! | path | the name of a document inside a corpus, as bytes |
//! | location | a path, URL, glob or table name that a user writes to name a corpus |
//! | token | a unit that the tokenizer emits; the tokens of a text tile its bytes |
//! | word | a token of the word class; a dictionary entry of that class |
//! | separator | a token that is no word; the single blank between two words is implied |
//! | profile | the rule by which the tokenizer finds words: `auto`, `word`, `uax29` or `whitespace` |
//! | dictionary | the distinct words and separators of a segment, sorted, with their ids |
//! | vocabulary | the distinct words of all segments of a corpus, or their folds |
//! | fold | a map from words to words that a query applies, such as lower case |
//! | **Grammar** | |
//! | element | an entry of a right-hand side: a word, a separator or a rule |
//! | rule | a sequence of elements that stands for itself wherever it occurs |
//! | root | the rule that is the segment's text, cut into documents by splitters |
//! | splitter | the mark between two documents in the root |
//! | barrier | a place that no rule crosses while a grammar is built |
//! | round | one pass of the builder that replaces pairs by new rules |
//! | DAG | the grammar as a graph: rules are nodes, numbered with parents before children |
//! | parent, child | a rule that contains another one, and the one contained |
//! | expansion | the text of a rule |
//! | G | the number of elements on all right-hand sides, the root included |
//! | N | the number of tokens of the text; G/N says how much the grammar reuses |
//! | weight | how often a rule occurs in the corpus, or in one document |
//! | inverse grammar | for each element, the rules that contain it and the positions there |
//! | traversal | the order in which a task visits rules |
//! | top-down | weights flow from parents to children |
//! | bottom-up | tables flow from children to parents |
//! | token scan | the task reads the expanded tokens and ignores the rules |
//! | climb | to follow parents from an occurrence inside a rule up to the root |
//! | **Corpus** | |
//! | corpus | one or more segments with one profile |
//! | segment | an immutable part with its own dictionary, grammar and documents |
//! | block | at ingest, the text that becomes one segment; in GSST, rows with one symbol table |
//! | section | a part of a file with a type, a codec, a length and a checksum |
//! | codec | the way in which a section's values are stored as bytes |
//! | footer | the section that lists the sections, the schema and the totals of a file |
//! | postscript | the last bytes of a file, which locate the footer |
//! | user columns | columns of documents beside path and text, stored as Parquet in a section |
//! | **Questions** | |
//! | task | a question about a whole corpus, such as word count |
//! | sequence | n words in a row within one document (an n-gram) |
//! | window | the range of positions in which a sequence or a pair is looked for |
//! | pair | two words that occur within one window |
//! | phrase | a sequence that a query looks for |
//! | pattern | a query's condition on one word: exact, prefix, wildcard or regular expression |
//! | occurrence | one position at which a word or phrase stands |
//! | hit | an occurrence as a result: document, byte offset, length, word index |
//! | passage | a range of bytes of a document |
//! | context | the words before and after a hit |
//! | tf, df | occurrences of a word in a document; documents that contain it |
//! | rank | the place of a document in a list by falling count |
//! | **Change** | |
//! | edit | an insert, append, delete or new column value of one document |
//! | edit record | an edit that is stored and not yet part of a grammar |
//! | piece | a range of the base text or of new text, in the piece tree of an edited document |
//! | living corpus | a folder or prefix of immutable segment files and numbered versions |
//! | version | the state of a living corpus behind one commit |
//! | manifest | the file of a version: its parts and edits |
//! | part | a segment file that a version lists, or a range of it |
//! | commit | the step that creates the next version, if nobody else has |
//! | optimize | to build segments anew so that edits become part of their grammars |
//! | clean-up | to remove the files that only old versions need |
//! | **String columns** | |
//! | symbol, code | a string of 1 to 8 bytes, and the number that stands for it |
//! | escape | the code that says that a literal byte follows |
//! | split | a run of codes whose place in the text is stored, so that it decodes alone |
//! | stretch | the rows of a row group whose values stand in one block |
//! | run | consecutive things of one kind: blocks of a column, pieces of a text, rows |
//! | **Execution** | |
//! | portion | a run of segments that fits into memory and is answered before the next one |
//! | partition | DataFusion's unit of parallel work |
//! | execution | one partition of a scan while it runs |
//! | slice | rows of a result that are made and sent together |
//! | device | a GPU; the cores are the processor's |
//! | placement | the decision whether cores or a device answer a task |
//! | place | the cores or a device, as a placement decides |
//! | route | the way of stored bytes to the cores or the device that decodes them |
//! | rate | work per second, as measured or assumed by the throughput model |

pub mod accelerator;
pub mod analytics;
pub mod build;
pub mod edits;
pub mod error;
pub mod format;
pub mod grammar;
pub mod ids;
pub mod query;
pub mod read;
pub mod segment;
pub mod text;

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::analytics::{
    CorpusStatistics, InvertedIndex, SequenceCounts, TaskLimits, TermVectors, Tfidf, Traversal, Vocabulary, WordCounts,
    corpus_statistics, inverted_index, sequence_count, word_count,
};
use crate::query::{ContextBatch, DocumentCount, Hit, Query, SearchOptions, count, count_by_document, kwic, search};
use crate::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes, extract};

pub use error::{Error, Result};
pub use segment::Corpus;

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
