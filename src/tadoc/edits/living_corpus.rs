//! A corpus that is edited: the base stays as it is, edited documents lie beside it.
//!
//! ```text
//! ids        0      1      2      3      4      5
//! base       doc    doc    doc    doc
//! edited            pieces               text   text    added ones have no base
//! dropped                  x                            its id is never used again
//! ```
//!
//! Documents of further files may come after added ones ([`LivingCorpus::append_base`]): ids then run
//! through the base and the added documents by turns. Whoever reads few documents leaves others out
//! ([`LivingCorpus::append_absent`]), so that their files are not even opened.
//!
//! Every read sees every edit at once. A document that was never edited is read from the base with no
//! more than a look-up; an edited one through its [pieces](super::document). Edits cost O(log pieces)
//! and the bytes beside them, whatever the size of the corpus. Clones share what neither changes, so a
//! writer can edit a clone while others read the original.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::base_words;
use super::document::EditedDocument;
use super::edit::{Answer, EditBatch, EditMode, Operation};
use super::plan::{Item, Step, checked_offset, plan};
use crate::error::{Error, Result};
use crate::query::check_word;
use crate::read::{DEFAULT_MAX_OUTPUT_BYTES, document_len_bytes, extract_into};
use crate::segment::Corpus;

/// A base corpus and all that was edited since.
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
    /// Ids in order, each run up to the first id of the next one; the first run is of the base.
    runs: Vec<Run>,
    num_docs: u64,
    /// Documents that were edited or added, by id.
    documents: FxHashMap<u64, Arc<EditedDocument>>,
    dropped: BTreeSet<u64>,
    added_paths: Vec<Arc<str>>,
}

/// Documents of consecutive ids that are all in the base, all added, or all left out.
#[derive(Debug, Clone)]
pub(super) struct Run {
    first_id: u64,
    pub(super) source: RunSource,
}

/// Where the documents of a run are.
#[derive(Debug, Clone)]
pub(super) enum RunSource {
    /// In the base from document `first_doc` on, which are those of `segments`.
    Base { first_doc: u64, segments: Range<usize> },
    /// Added, the first of them as number `first`.
    Added { first: u64 },
    /// Left out.
    Absent,
}

/// Where one document was before any edit.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// A document of the base.
    Base(u64),
    /// An added one, by its number among those.
    Added(u64),
}

impl LivingCorpus {
    /// `base` before any edit.
    pub fn new(base: Corpus) -> Self {
        let source = RunSource::Base { first_doc: 0, segments: 0..base.segments().len() };
        Self {
            runs: vec![Run { first_id: 0, source }],
            num_docs: base.num_docs(),
            base,
            documents: FxHashMap::default(),
            dropped: BTreeSet::new(),
            added_paths: Vec::new(),
        }
    }

    /// Notes that the documents `doc_ids` are only there to keep the ids of the others.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where one of them is not there; nothing is noted then.
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

    /// Puts the documents of `files` behind all others, with the next ids.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where they were cut by another tokenizer, or begin inside a document.
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
            Some(Run { source: RunSource::Base { segments, .. }, .. }) => {
                segments.end = segments_end;
            }
            _ => {
                let segments = first_segment..segments_end;
                let source = RunSource::Base { first_doc, segments };
                self.runs.push(Run { first_id: self.num_docs, source });
            }
        }
        self.num_docs += files.num_docs();
        Ok(())
    }

    /// Gives the next `num_docs` ids to documents that are not here: neither can they be read or edited,
    /// nor can the corpus as a whole.
    pub fn append_absent(&mut self, num_docs: u64) {
        let goes_on = matches!(self.runs.last(), Some(Run { source: RunSource::Absent, .. }));
        if num_docs > 0 && !goes_on {
            self.runs.push(Run { first_id: self.num_docs, source: RunSource::Absent });
        }
        self.num_docs = self.num_docs.saturating_add(num_docs);
    }

    /// The corpus that edits are on top of; its ids are those of the documents here up to the first
    /// one that was added.
    pub fn base(&self) -> &Corpus {
        &self.base
    }

    /// Ids given out, those of dropped documents included; the next document gets this one.
    pub fn num_docs(&self) -> u64 {
        self.num_docs
    }

    /// Ids of dropped documents, ascending.
    pub fn dropped_docs(&self) -> impl ExactSizeIterator<Item = u64> + '_ {
        self.dropped.iter().copied()
    }

    /// Whether document `doc_id` is one that was dropped.
    pub fn is_dropped(&self, doc_id: u64) -> bool {
        self.dropped.contains(&doc_id)
    }

    /// Ids of documents that were edited or added and are still there, ascending.
    pub fn edited_docs(&self) -> Vec<u64> {
        let mut doc_ids: Vec<u64> = self.documents.keys().copied().collect();
        doc_ids.sort_unstable();
        doc_ids
    }

    /// Path of document `doc_id`, of a dropped one too; none where it was left out.
    pub fn path(&self, doc_id: u64) -> Option<&str> {
        match self.origin(doc_id)? {
            Origin::Added(added) => self.added_paths.get(added as usize).map(|path| &**path),
            Origin::Base(doc) => {
                let (segment_idx, doc) = self.base.doc_parts(doc).next()?;
                self.base.segments()[segment_idx].paths.get(doc)
            }
        }
    }

    /// Bytes of memory held beside the base.
    pub fn memory_bytes(&self) -> usize {
        let documents = self.documents.values().map(|document| document.memory_bytes());
        documents.sum::<usize>()
            + self.documents.capacity() * size_of::<(u64, Arc<EditedDocument>)>()
            + self.added_paths.iter().map(|path| path.len()).sum::<usize>()
    }

    /// Makes the edits of `batch`, all or none; returns the ids of the documents that it adds.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for a document or an offset that is not there, and
    /// [`Error::InvalidArgument`] for a dropped document and, in batch, for a document that is dropped
    /// or replaced and has other edits. Nothing is changed then.
    pub fn apply(&mut self, batch: &EditBatch) -> Result<Range<u64>> {
        let first_added = self.num_docs();
        let plan = plan(self, batch.mode, batch.edits.iter().map(Item::Edit))?;
        self.documents.reserve(plan.num_docs);
        plan.steps.iter().for_each(|step| self.make(step));
        Ok(first_added..self.num_docs())
    }

    /// Makes the edits of a mixed batch, all or none, and answers its reads, each as of its place.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and those of the reads. Nothing is changed then.
    pub fn run(&mut self, mode: EditMode, operations: &[Operation]) -> Result<Vec<Answer>> {
        let plan = plan(self, mode, operations.iter().map(Item::Operation))?;
        // A read may still fail for want of memory, and then the edits before it must not be seen.
        let mut next = self.clone();
        let mut answers = Vec::with_capacity(operations.len());
        for step in &plan.steps {
            match step {
                Step::Read(read) => answers.push(next.answer(read)?),
                Step::Edited => answers.push(Answer::Edited),
                edit => {
                    next.make(edit);
                    if let Step::Add { .. } = edit {
                        answers.push(Answer::Added { doc_id: next.num_docs() - 1 });
                    }
                }
            }
        }
        *self = next;
        Ok(answers)
    }

    fn make(&mut self, step: &Step<'_>) {
        match step {
            Step::Splice { range, text, .. } if range.is_empty() && text.is_empty() => {}
            Step::Splice { doc_id, range, text } => {
                let (base, origin) = (&self.base, self.origin(*doc_id));
                let document = self.documents.entry(*doc_id).or_insert_with(|| {
                    Arc::new(match origin {
                        Some(Origin::Base(doc)) => {
                            let len_bytes = document_len_bytes(base, doc).unwrap_or_default();
                            EditedDocument::of_base(doc, len_bytes)
                        }
                        _ => EditedDocument::of_text(Vec::new()),
                    })
                });
                Arc::make_mut(document).splice(base, range.clone(), text);
            }
            Step::Replace { doc_id, content } => {
                let document = EditedDocument::of_text(content.to_vec());
                self.documents.insert(*doc_id, Arc::new(document));
            }
            Step::Drop { doc_id } => {
                self.documents.remove(doc_id);
                self.dropped.insert(*doc_id);
            }
            Step::Add { path, content } => {
                let document = EditedDocument::of_text(content.to_vec());
                self.documents.insert(self.num_docs, Arc::new(document));
                if !matches!(self.runs.last(), Some(Run { source: RunSource::Added { .. }, .. })) {
                    let source = RunSource::Added { first: self.added_paths.len() as u64 };
                    self.runs.push(Run { first_id: self.num_docs, source });
                }
                self.added_paths.push((*path).into());
                self.num_docs += 1;
            }
            Step::Read(_) | Step::Edited => {}
        }
    }

    fn answer(&self, read: &Operation) -> Result<Answer> {
        Ok(match read {
            Operation::Extract { doc_id, offset_bytes, len_bytes } => {
                Answer::Text(self.extract(*doc_id, *offset_bytes, *len_bytes)?)
            }
            Operation::Search { doc_id, word } => Answer::Offsets(self.search(*doc_id, word)?),
            Operation::Count { doc_id, word } => Answer::Count(self.count(*doc_id, word)?),
            Operation::Edit(_) => Answer::Edited,
        })
    }

    /// Bytes of document `doc_id`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] where there is no such document, [`Error::InvalidArgument`] where it was
    /// dropped, [`Error::Capacity`] where it has 2^64 bytes or more.
    pub fn len_bytes(&self, doc_id: u64) -> Result<u64> {
        match self.current(doc_id)? {
            Current::Edited(document) => Ok(document.len_bytes()),
            Current::Base(doc) => document_len_bytes(&self.base, doc),
        }
    }

    /// Up to `len_bytes` bytes of document `doc_id` from `offset_bytes`; what lies beyond the end of
    /// the document is left out.
    ///
    /// # Errors
    /// As [`len_bytes`](Self::len_bytes); [`Error::OutOfRange`] for an offset larger than the length;
    /// [`Error::Capacity`] for more than [`DEFAULT_MAX_OUTPUT_BYTES`].
    pub fn extract(&self, doc_id: u64, offset_bytes: u64, len_bytes: u64) -> Result<Vec<u8>> {
        let mut output = Vec::new();
        let limit = DEFAULT_MAX_OUTPUT_BYTES;
        self.extract_into(doc_id, offset_bytes, len_bytes, limit, &mut output)?;
        Ok(output)
    }

    /// [`extract`](Self::extract), appended to `output`, which may grow to `max_output_bytes`.
    ///
    /// # Errors
    /// As [`extract`](Self::extract); `output` is then as it was.
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
                return extract_into(base, doc, offset_bytes, len_bytes, max_output_bytes, output);
            }
        };
        let start = checked_offset(offset_bytes, document.len_bytes())?;
        let end = document.len_bytes().min(start.saturating_add(len_bytes));
        let len_before = output.len();
        let read = document.read(&self.base, start..end, max_output_bytes, output);
        read.inspect_err(|_| output.truncate(len_before))
    }

    /// How often `word` occurs in document `doc_id`.
    ///
    /// # Errors
    /// As [`len_bytes`](Self::len_bytes); [`Error::InvalidArgument`] where `word` is not one word;
    /// [`Error::Capacity`] where more than [`DEFAULT_MAX_OUTPUT_BYTES`] of edited text would have to be
    /// read.
    pub fn count(&self, doc_id: u64, word: &str) -> Result<u64> {
        check_word(self.base.profile(), word)?;
        match self.current(doc_id)? {
            Current::Edited(document) => document.count(&self.base, word),
            Current::Base(doc) => base_words::count(&self.base, doc, word),
        }
    }

    /// Byte offsets of `word` in document `doc_id`, ascending.
    ///
    /// # Errors
    /// As [`count`](Self::count).
    pub fn search(&self, doc_id: u64, word: &str) -> Result<Vec<u64>> {
        check_word(self.base.profile(), word)?;
        let mut offsets = Vec::new();
        match self.current(doc_id)? {
            Current::Edited(document) => document.find(&self.base, word, &mut offsets)?,
            Current::Base(doc) => base_words::find(&self.base, doc, word, &mut offsets)?,
        }
        Ok(offsets)
    }

    /// What document `doc_id` is now.
    pub(super) fn current(&self, doc_id: u64) -> Result<Current<'_>> {
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

    /// Where document `doc_id` was before any edit, if there is one and it was not left out.
    pub(super) fn origin(&self, doc_id: u64) -> Option<Origin> {
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

    /// The runs of ids, each with its ids.
    pub(super) fn runs(&self) -> impl Iterator<Item = (Range<u64>, &RunSource)> + '_ {
        let ends = self.runs.iter().skip(1).map(|run| run.first_id).chain([self.num_docs]);
        self.runs.iter().zip(ends).map(|(run, end)| (run.first_id..end, &run.source))
    }
}

/// What a document is, edits made.
pub(super) enum Current<'a> {
    /// As in the base, where it is this document.
    Base(u64),
    /// Edited or added.
    Edited(&'a EditedDocument),
}

pub(super) fn unknown_document(doc_id: u64, num_docs: u64) -> Error {
    Error::OutOfRange { what: "doc_id", got: doc_id, len: num_docs }
}

pub(super) fn dropped_document(doc_id: u64) -> Error {
    Error::InvalidArgument {
        name: "doc_id",
        got: format!("{doc_id}, a document that was dropped"),
        allowed: "the id of a document that is there (a new document gets a new id)".into(),
    }
}

pub(super) fn absent_document(doc_id: u64) -> Error {
    Error::InvalidArgument {
        name: "doc_id",
        got: format!("{doc_id}, a document that was left out"),
        allowed: "one of the documents that the corpus was opened for".into(),
    }
}
