//! Edits of documents, which stay compressed.
//!
//! ```text
//! edits ──plan──▶ steps ──▶ pieces of the base and of new text ──▶ extract, count, search
//!                                         │
//!                                         └──snapshot──▶ a corpus: base rules under new roots
//! ```
//!
//! ```
//! use tadoc::Corpus;
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::edits::{Edit, EditBatch, LivingCorpus};
//! use tadoc::format::OpenLimits;
//! use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes};
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be")?;
//! let (file, _report) = builder.finish(None)?;
//! let (_footer, base) = Corpus::from_bytes("plays.tadoc", &file, &OpenLimits::default())?;
//!
//! let mut living = LivingCorpus::new(base);
//! let insert = Edit::InsertText { doc_id: 0, offset_bytes: 5, text: b" or not".to_vec() };
//! let add = Edit::AddDocument { path: "b.txt".to_owned(), content: b"let it be".to_vec() };
//! let added = living.apply(&EditBatch { edits: vec![insert, add], ..Default::default() })?;
//! assert_eq!(added, 1..2);
//! assert_eq!(living.count(1, "be")?, 1);
//!
//! let corpus = living.snapshot()?;
//! assert_eq!(document_bytes(&corpus, 0, DEFAULT_MAX_OUTPUT_BYTES)?, b"to be or not");
//! assert_eq!(document_bytes(&corpus, 1, DEFAULT_MAX_OUTPUT_BYTES)?, b"let it be");
//! # Ok(())
//! # }
//! ```
//!
//! The base is not changed, edited documents are stored beside it:
//!
//! ```text
//! ids        0      1      2      3      4      5
//! base       doc    doc    doc    doc
//! edited            pieces               text   text    added ones have no base
//! dropped                  x                            its id is never used again
//! ```
//!
//! Documents of further files can follow added documents ([`LivingCorpus::append_base`]). The ids
//! then alternate between runs of the base and runs of added documents. A reader of few documents
//! can leave others out ([`LivingCorpus::append_absent`]), so that their files are not even opened.
//!
//! Every read sees every edit at once. A document that was never edited is read from the base after one look-up; an
//! edited document is read through its pieces. Edits cost O(log pieces) and the bytes beside them, whatever the size of
//! the corpus. Clones share unchanged data, so a writer can edit a clone while others read the original.
//!
//! Reading order: `edit` (changes, the text that offsets refer to, edits as bytes), `plan` (from operations
//! to steps that cannot fail; batches of edits and of reads), `document` with `piece_tree` (one edited
//! document), `snapshot` (from a living corpus to a corpus).
//!
//! The papers keep records of inserted text and move every offset after them, which takes more than
//! 90 % of the time of an insert (Hu et al., section on random access operations). Here an edit
//! changes only one path of a tree of the pieces of the document.

mod document;
mod edit;
mod piece_tree;
mod plan;
mod snapshot;

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::query::check_word;
use crate::read::{DEFAULT_MAX_OUTPUT_BYTES, document_len_bytes, extract_into};
use crate::segment::Corpus;
use document::EditedDocument;

pub use edit::{Answer, Edit, EditBatch, EditMode, Operation, column_tables, decode_batch, encode_batch};
pub use piece_tree::{Piece, PieceTree, Source};
pub use plan::BatchOffsets;

/// A base corpus and all edits since.
///
/// ```
/// use tadoc::segment::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
/// use tadoc::edits::{Edit, EditBatch, LivingCorpus};
///
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a.txt", b"to be or not")?;
/// let (file, _) = builder.finish(None)?;
/// let (_, base) = Corpus::from_bytes("memory", &file, &OpenLimits::default())?;
///
/// let mut living = LivingCorpus::new(base);
/// let edits = vec![Edit::AppendText { doc_id: 0, text: b" to be".to_vec() }];
/// living.apply(&EditBatch { edits, ..Default::default() })?;
/// assert_eq!(living.extract(0, 9, 99)?, b"not to be");
/// assert_eq!(living.search(0, "be")?, [3, 16]);
/// # Ok::<(), tadoc::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct LivingCorpus {
    base: Corpus,
    /// Runs of ids in order, each up to the first id of the next one. The first run is of the base.
    runs: Vec<DocRange>,
    num_docs: u64,
    /// Documents that were edited or added, by id.
    documents: FxHashMap<u64, Arc<EditedDocument>>,
    dropped: BTreeSet<u64>,
    added_paths: Vec<Arc<str>>,
}

/// A run of documents with consecutive ids that are all in the base, all added, or all left out.
#[derive(Debug, Clone)]
struct DocRange {
    first_id: u64,
    source: RunSource,
}

/// Location of the documents of a run.
#[derive(Debug, Clone)]
enum RunSource {
    /// Documents of the base from `first_doc` on; they are the documents of `segments`.
    Base { first_doc: u64, segments: Range<usize> },
    /// Added documents; the first of them has number `first`.
    Added { first: u64 },
    /// Documents that were left out.
    Absent,
}

/// Location of one document before any edit.
#[derive(Debug, Clone, Copy)]
enum Origin {
    /// A document of the base.
    Base(u64),
    /// An added document, by its number among the added documents.
    Added(u64),
}

impl LivingCorpus {
    /// Creates a living corpus from `base`, without edits.
    pub fn new(base: Corpus) -> Self {
        let source = RunSource::Base { first_doc: 0, segments: 0..base.segments().len() };
        Self {
            runs: vec![DocRange { first_id: 0, source }],
            num_docs: base.num_docs(),
            base,
            documents: FxHashMap::default(),
            dropped: BTreeSet::new(),
            added_paths: Vec::new(),
        }
    }

    /// Marks the documents `doc_ids` as dropped. They only keep the ids of the others.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if one of them does not exist. Nothing is marked then.
    pub fn mark_dropped(&mut self, doc_ids: Range<u64>) -> Result<()> {
        if doc_ids.end > self.num_docs {
            return Err(unknown_document(doc_ids.end - 1, self.num_docs));
        }
        for doc_id in doc_ids {
            self.documents.remove(&doc_id);
            self.dropped.insert(doc_id);
        }
        Ok(())
    }

    /// Appends the documents of `files` after all others, with the next ids.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if another tokenizer cut them, or if they begin inside a
    /// document.
    pub fn append_base(&mut self, files: &Corpus) -> Result<()> {
        if files.profile() != self.base.profile() {
            return Err(Error::InvalidArgument {
                name: "tokenizer",
                got: files.profile().to_string(),
                allowed: format!("{}, as of the documents before", self.base.profile()),
            });
        }
        let first_doc = self.base.num_docs();
        let first_segment = self.base.segments().len();
        let segments = [self.base.segments(), files.segments()].concat();
        let segments_end = segments.len();
        let base = Corpus::new(self.base.profile(), segments);
        if base.num_docs() - first_doc != files.num_docs() {
            return Err(Error::InvalidArgument {
                name: "files",
                got: "a first segment that goes on with the document before it".into(),
                allowed: "files that begin with a document".into(),
            });
        }
        self.base = base;
        match self.runs.last_mut() {
            Some(DocRange { source: RunSource::Base { segments, .. }, .. }) => {
                segments.end = segments_end;
            }
            _ => {
                let segments = first_segment..segments_end;
                let source = RunSource::Base { first_doc, segments };
                self.runs.push(DocRange { first_id: self.num_docs, source });
            }
        }
        self.num_docs += files.num_docs();
        Ok(())
    }

    /// Gives the next `num_docs` ids to documents that are absent. They cannot be read or edited,
    /// and no snapshot can be made of the corpus.
    pub fn append_absent(&mut self, num_docs: u64) {
        let goes_on = matches!(self.runs.last(), Some(DocRange { source: RunSource::Absent, .. }));
        if num_docs > 0 && !goes_on {
            self.runs.push(DocRange { first_id: self.num_docs, source: RunSource::Absent });
        }
        self.num_docs = self.num_docs.saturating_add(num_docs);
    }

    /// Returns the corpus under the edits. Its ids are those of the documents of this corpus up to
    /// the first added document.
    pub fn base(&self) -> &Corpus {
        &self.base
    }

    /// Returns the number of ids in use, including those of dropped documents. It is the id of the
    /// next document.
    pub fn num_docs(&self) -> u64 {
        self.num_docs
    }

    /// Returns the ids of dropped documents, in ascending order.
    pub fn dropped_docs(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.dropped.iter().copied()
    }

    /// Returns true if document `doc_id` was dropped.
    pub fn is_dropped(&self, doc_id: u64) -> bool {
        self.dropped.contains(&doc_id)
    }

    /// Returns the ids of edited or added documents that were not dropped, in ascending order.
    pub fn edited_docs(&self) -> Vec<u64> {
        let mut doc_ids: Vec<u64> = self.documents.keys().copied().collect();
        doc_ids.sort_unstable();
        doc_ids
    }

    /// Returns the path of document `doc_id`, also of a dropped one; `None` if it was left out.
    pub fn path(&self, doc_id: u64) -> Option<&str> {
        match self.origin(doc_id)? {
            Origin::Added(added) => self.added_paths.get(added as usize).map(|path| &**path),
            Origin::Base(doc) => self.base.path(doc),
        }
    }

    /// Returns the number of bytes of memory held beside the base.
    pub fn memory_bytes(&self) -> usize {
        let documents = self.documents.values().map(|document| document.memory_bytes());
        documents.sum::<usize>()
            + self.documents.capacity() * size_of::<(u64, Arc<EditedDocument>)>()
            + self.added_paths.iter().map(|path| path.len()).sum::<usize>()
    }

    /// Makes `steps`, which refer to at most `num_docs` documents.
    fn make_all(&mut self, steps: &[Step<'_>], num_docs: usize) {
        self.documents.reserve(num_docs);
        steps.iter().for_each(|step| self.make(step));
    }

    /// Makes one step. It cannot fail, because the plan was checked.
    fn make(&mut self, step: &Step<'_>) {
        match step {
            Step::Splice { range, text, .. } if range.is_empty() && text.is_empty() => {}
            Step::Splice { doc_id, range, text } => {
                let base = &self.base;
                let origin = self.origin(*doc_id);
                let document = self.documents.entry(*doc_id).or_insert_with(|| {
                    Arc::new(match origin {
                        Some(Origin::Base(doc)) => {
                            let len_bytes = document_len_bytes(base, doc).unwrap_or_default();
                            EditedDocument::from_base(doc, len_bytes)
                        }
                        _ => EditedDocument::from_text(Vec::new()),
                    })
                });
                Arc::make_mut(document).splice(base, range.clone(), text);
            }
            Step::Replace { doc_id, content } => {
                let document = EditedDocument::from_text(content.to_vec());
                self.documents.insert(*doc_id, Arc::new(document));
            }
            Step::Drop { doc_id } => {
                self.documents.remove(doc_id);
                self.dropped.insert(*doc_id);
            }
            Step::Add { path, content } => {
                let document = EditedDocument::from_text(content.to_vec());
                self.documents.insert(self.num_docs, Arc::new(document));
                if !matches!(self.runs.last(), Some(DocRange { source: RunSource::Added { .. }, .. })) {
                    let source = RunSource::Added { first: self.added_paths.len() as u64 };
                    self.runs.push(DocRange { first_id: self.num_docs, source });
                }
                self.added_paths.push((*path).into());
                self.num_docs += 1;
            }
            Step::Read(_) | Step::Edited => {}
        }
    }

    /// Returns the length of document `doc_id` in bytes.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] if there is no such document, [`Error::InvalidArgument`] if it was
    /// dropped, [`Error::Capacity`] if it has 2^64 bytes or more.
    pub fn len_bytes(&self, doc_id: u64) -> Result<u64> {
        match self.current(doc_id)? {
            Current::Edited(document) => Ok(document.len_bytes()),
            Current::Base(doc) => document_len_bytes(&self.base, doc),
        }
    }

    /// Returns up to `len_bytes` bytes of document `doc_id` from `offset_bytes`. A passage that
    /// reaches beyond the end of the document is cut there.
    ///
    /// # Errors
    /// As [`len_bytes`](Self::len_bytes); [`Error::PastEnd`] for an offset larger than the
    /// length; [`Error::Capacity`] for more than [`DEFAULT_MAX_OUTPUT_BYTES`].
    pub fn extract(&self, doc_id: u64, offset_bytes: u64, len_bytes: u64) -> Result<Vec<u8>> {
        let mut output = Vec::new();
        let limit = DEFAULT_MAX_OUTPUT_BYTES;
        self.extract_into(doc_id, offset_bytes, len_bytes, limit, &mut output)?;
        Ok(output)
    }

    /// Appends a passage to `output`, as [`extract`](Self::extract) reads it. The output may grow
    /// to `max_output_bytes`.
    ///
    /// # Errors
    /// As [`extract`](Self::extract). The output is unchanged then.
    pub fn extract_into(
        &self,
        doc_id: u64,
        offset_bytes: u64,
        len_bytes: u64,
        max_output_bytes: u64,
        output: &mut Vec<u8>,
    ) -> Result<()> {
        let document = match self.current(doc_id)? {
            Current::Edited(document) => document,
            Current::Base(doc) => {
                let base = &self.base;
                let read = extract_into(base, doc, offset_bytes, len_bytes, max_output_bytes, output);
                return read.map_err(|error| error.in_document(doc_id, self.path(doc_id)));
            }
        };
        let start = checked_offset(doc_id, offset_bytes, document.len_bytes())
            .map_err(|error| error.in_document(doc_id, self.path(doc_id)))?;
        let end = document.len_bytes().min(start.saturating_add(len_bytes));
        let len_before = output.len();
        let read = document.read(&self.base, start..end, max_output_bytes, output);
        read.inspect_err(|_| output.truncate(len_before))
    }

    /// Returns the number of occurrences of `word` in document `doc_id`.
    ///
    /// # Errors
    /// As [`len_bytes`](Self::len_bytes); [`Error::InvalidArgument`] if `word` is not one word;
    /// [`Error::Capacity`] if more than [`DEFAULT_MAX_OUTPUT_BYTES`] of edited text would have to
    /// be read.
    pub fn count(&self, doc_id: u64, word: &str) -> Result<u64> {
        check_word(self.base.profile(), word)?;
        match self.current(doc_id)? {
            Current::Edited(document) => document.count(&self.base, word),
            Current::Base(doc) => document::count(&self.base, doc, word),
        }
    }

    /// Returns the byte offsets of `word` in document `doc_id`, in ascending order.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn search(&self, doc_id: u64, word: &str) -> Result<Vec<u64>> {
        check_word(self.base.profile(), word)?;
        let mut offsets = Vec::new();
        match self.current(doc_id)? {
            Current::Edited(document) => document.find(&self.base, word, &mut offsets)?,
            Current::Base(doc) => document::find(&self.base, doc, word, &mut offsets)?,
        }
        Ok(offsets)
    }

    /// Returns the current state of document `doc_id`.
    fn current(&self, doc_id: u64) -> Result<Current<'_>> {
        if let Some(document) = self.documents.get(&doc_id) {
            return Ok(Current::Edited(document));
        }
        if self.is_dropped(doc_id) {
            return Err(dropped_document(doc_id));
        }
        match self.origin(doc_id) {
            Some(Origin::Base(doc)) => Ok(Current::Base(doc)),
            None if doc_id < self.num_docs => Err(absent_document(doc_id)),
            _ => Err(unknown_document(doc_id, self.num_docs)),
        }
    }

    /// Returns the location of document `doc_id` before any edit, if it exists and was not left
    /// out.
    fn origin(&self, doc_id: u64) -> Option<Origin> {
        if doc_id >= self.num_docs {
            return None;
        }
        let behind = self.runs.partition_point(|run| run.first_id <= doc_id);
        let run = &self.runs[behind.checked_sub(1)?];
        let place = doc_id - run.first_id;
        Some(match run.source {
            RunSource::Base { first_doc, .. } => Origin::Base(first_doc + place),
            RunSource::Added { first } => Origin::Added(first + place),
            RunSource::Absent => return None,
        })
    }

    /// Returns the runs of documents, each with its ids.
    fn runs(&self) -> impl Iterator<Item = (Range<u64>, &RunSource)> + '_ {
        let ends = self.runs.iter().skip(1).map(|run| run.first_id).chain([self.num_docs]);
        self.runs.iter().zip(ends).map(|(run, end)| (run.first_id..end, &run.source))
    }
}

/// A step of a plan. Steps are made in order.
#[derive(Debug)]
enum Step<'a> {
    Splice {
        doc_id: u64,
        range: Range<u64>,
        text: &'a [u8],
    },
    Replace {
        doc_id: u64,
        content: &'a [u8],
    },
    Drop {
        doc_id: u64,
    },
    Add {
        path: &'a str,
        content: &'a [u8],
    },
    Read(&'a Operation),
    /// All steps of an edit of a mixed batch are made.
    Edited,
}

/// State of a document after all edits.
enum Current<'a> {
    /// Unchanged; the number is its id in the base.
    Base(u64),
    /// Edited or added.
    Edited(&'a EditedDocument),
}

fn unknown_document(doc_id: u64, num_docs: u64) -> Error {
    Error::OutOfRange { what: "doc_id", got: doc_id, len: num_docs }
}

fn dropped_document(doc_id: u64) -> Error {
    Error::InvalidArgument {
        name: "doc_id",
        got: format!("{doc_id}, a document that was dropped"),
        allowed: "the id of a document that is there (a new document gets a new id)".into(),
    }
}

fn absent_document(doc_id: u64) -> Error {
    Error::InvalidArgument {
        name: "doc_id",
        got: format!("{doc_id}, a document that was left out"),
        allowed: "one of the documents that the corpus was opened for".into(),
    }
}

/// Returns `offset`, if it is at most the length `len` of document `doc_id`.
fn checked_offset(doc_id: u64, offset: u64, len: u64) -> Result<u64> {
    if offset <= len {
        return Ok(offset);
    }
    let what = "offset_bytes";
    Err(Error::PastEnd { what, got: offset, doc_id, path: None, len_bytes: len })
}
