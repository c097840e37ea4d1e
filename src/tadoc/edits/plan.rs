//! Plan of a batch: from its operations to steps that cannot fail.
//!
//! Lengths of documents are tracked through the batch, so every document and offset is checked
//! before anything is changed. Offsets of both modes become offsets in the text at the point of the
//! step. Cost: O(1) for each operation in mode `in_sequence`, O(log operations) in mode `in_batch`.

use std::collections::hash_map::Entry;
use std::ops::Range;

use rustc_hash::FxHashMap;

use super::batch_offsets::BatchOffsets;
use super::edit::{Edit, EditMode, Operation};
use super::living_corpus::{
    LivingCorpus, Step, checked_offset, dropped_document, unknown_document,
};
use crate::error::{Error, Result};
use crate::query::check_word;

/// One operation of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) enum Item<'a> {
    /// An edit of a batch of edits.
    Edit(&'a Edit),
    /// An operation of a mixed batch, which has an answer.
    Operation(&'a Operation),
}

impl<'a> Item<'a> {
    fn edit(self) -> Option<&'a Edit> {
        match self {
            Self::Edit(edit) | Self::Operation(Operation::Edit(edit)) => Some(edit),
            Self::Operation(_) => None,
        }
    }
}

/// The steps of a batch.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    pub steps: Vec<Step<'a>>,
    /// Number of documents that the batch refers to.
    pub num_docs: usize,
}

/// Returns the steps of `items` on `living`.
///
/// # Errors
/// As [`LivingCorpus::apply`] and, for reads, those of the method that answers the read.
pub(super) fn plan<'a>(
    living: &LivingCorpus,
    mode: EditMode,
    items: impl ExactSizeIterator<Item = Item<'a>> + Clone,
) -> Result<Plan<'a>> {
    let offsets = match mode {
        EditMode::InSequence => None,
        EditMode::InBatch => Some(batch_offsets(living, items.clone())?),
    };
    let num_docs = living.num_docs();
    let (mut lens, mut steps) = (FxHashMap::default(), Vec::new());
    lens.reserve(usize::try_from(num_docs).unwrap_or(usize::MAX).min(items.len()));
    steps.reserve(items.len());
    let mut planner = Planner { living, num_docs, lens, offsets, steps };
    for item in items {
        match item {
            Item::Edit(edit) => planner.add_edit(edit)?,
            Item::Operation(operation) => planner.add_operation(operation)?,
        }
    }
    Ok(Plan { steps: planner.steps, num_docs: planner.lens.len() })
}

struct Planner<'a, 'l> {
    living: &'l LivingCorpus,
    /// Number of ids in use at this point of the batch.
    num_docs: u64,
    /// Lengths in bytes of the documents that the batch refers to; `None` for those it dropped.
    lens: FxHashMap<u64, Option<u64>>,
    /// Offsets by document, with its length before the batch, if offsets refer to the text before
    /// the batch.
    offsets: Option<FxHashMap<u64, (BatchOffsets, u64)>>,
    steps: Vec<Step<'a>>,
}

impl<'a> Planner<'a, '_> {
    fn add_edit(&mut self, edit: &'a Edit) -> Result<()> {
        match edit {
            Edit::InsertText { doc_id, offset_bytes, text } => {
                self.add_insert(*doc_id, Some(*offset_bytes), text)?;
            }
            Edit::AppendText { doc_id, text } => self.add_insert(*doc_id, None, text)?,
            Edit::DeleteText { doc_id, offset_bytes, len_bytes } => {
                self.add_delete(*doc_id, *offset_bytes, *len_bytes)?;
            }
            Edit::AddDocument { path, content } => {
                self.lens.insert(self.num_docs, Some(content.len() as u64));
                self.num_docs += 1;
                self.steps.push(Step::Add { path, content });
            }
            Edit::DropDocument { doc_id } => {
                self.len_of(*doc_id)?;
                self.lens.insert(*doc_id, None);
                self.steps.push(Step::Drop { doc_id: *doc_id });
            }
            Edit::ReplaceDocument { doc_id, content } => {
                self.len_of(*doc_id)?;
                self.lens.insert(*doc_id, Some(content.len() as u64));
                self.steps.push(Step::Replace { doc_id: *doc_id, content });
            }
            Edit::SetColumns { doc_id, .. } => self.check_document(*doc_id)?,
        }
        Ok(())
    }

    /// Checks that a document exists at this point of the batch.
    fn check_document(&self, doc_id: u64) -> Result<()> {
        match self.lens.get(&doc_id) {
            Some(Some(_)) => Ok(()),
            Some(None) => Err(dropped_document(doc_id)),
            None => self.living.current(doc_id).map(|_| ()),
        }
    }

    /// Adds an insert at `offset`; `None` is the end.
    fn add_insert(&mut self, doc_id: u64, offset: Option<u64>, text: &'a [u8]) -> Result<()> {
        let len = self.len_of(doc_id)?;
        let added = text.len() as u64;
        let new_len = len.checked_add(added).ok_or(Error::Capacity {
            what: "a document in bytes",
            requested: u64::MAX,
            limit: u64::MAX - 1,
            knob: "nothing (lengths are 64-bit numbers)",
        })?;
        let at = match self.offsets_of(doc_id) {
            Some((offsets, before)) => {
                let at = checked_offset(doc_id, offset.unwrap_or(before), before)?;
                offsets.insert(at, added)
            }
            None => checked_offset(doc_id, offset.unwrap_or(len), len)?,
        };
        self.lens.insert(doc_id, Some(new_len));
        self.steps.push(Step::Splice { doc_id, range: at..at, text });
        Ok(())
    }

    fn add_delete(&mut self, doc_id: u64, offset: u64, num_deleted: u64) -> Result<()> {
        let len = self.len_of(doc_id)?;
        let ranges = match self.offsets_of(doc_id) {
            Some((offsets, before)) => {
                offsets.delete(checked_range(doc_id, offset, num_deleted, before)?)
            }
            None => vec![checked_range(doc_id, offset, num_deleted, len)?],
        };
        let removed: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        self.lens.insert(doc_id, Some(len - removed));
        let splices = ranges.into_iter().map(|range| Step::Splice { doc_id, range, text: &[] });
        self.steps.extend(splices);
        Ok(())
    }

    fn add_operation(&mut self, operation: &'a Operation) -> Result<()> {
        match operation {
            Operation::Extract { doc_id, offset_bytes, .. } => {
                checked_offset(*doc_id, *offset_bytes, self.len_of(*doc_id)?)?;
            }
            Operation::Search { doc_id, word } | Operation::Count { doc_id, word } => {
                self.len_of(*doc_id)?;
                check_word(self.living.base().profile(), word)?;
            }
            Operation::Edit(edit) => {
                self.add_edit(edit)?;
                if edit.doc_id().is_some() {
                    self.steps.push(Step::Edited);
                }
                return Ok(());
            }
        }
        self.steps.push(Step::Read(operation));
        Ok(())
    }

    /// Returns the offsets of the document and its length before the batch, if offsets refer to the
    /// text before the batch.
    fn offsets_of(&mut self, doc_id: u64) -> Option<(&mut BatchOffsets, u64)> {
        let (offsets, before) = self.offsets.as_mut()?.get_mut(&doc_id)?;
        Some((offsets, *before))
    }

    /// Returns the length of document `doc_id` in bytes, at this point of the batch.
    fn len_of(&mut self, doc_id: u64) -> Result<u64> {
        match self.lens.get(&doc_id) {
            Some(Some(len)) => Ok(*len),
            Some(None) => Err(dropped_document(doc_id)),
            None if doc_id >= self.num_docs => Err(unknown_document(doc_id, self.num_docs)),
            None => {
                let len = self.living.len_bytes(doc_id)?;
                self.lens.insert(doc_id, Some(len));
                Ok(len)
            }
        }
    }
}

/// Collects the offsets of all edits by document. An edited document must exist before the batch. A
/// document that is dropped or replaced cannot have other edits, because they would have no
/// meaning.
fn batch_offsets<'a>(
    living: &LivingCorpus,
    items: impl Iterator<Item = Item<'a>>,
) -> Result<FxHashMap<u64, (BatchOffsets, u64)>> {
    /// Offsets of the edits of a document, its length before the batch, and a flag: it is dropped
    /// or replaced.
    type DocEdits = (Vec<u64>, u64, bool);
    let mut edited: FxHashMap<u64, DocEdits> = FxHashMap::default();
    for edit in items.filter_map(Item::edit).filter(|edit| !edit.sets_columns()) {
        let Some(doc_id) = edit.doc_id() else { continue };
        let is_whole = matches!(edit, Edit::DropDocument { .. } | Edit::ReplaceDocument { .. });
        let known = edited.get(&doc_id).map(|(.., is_whole)| *is_whole);
        if known == Some(true) || known.is_some() && is_whole {
            return Err(Error::InvalidArgument {
                name: "edits",
                got: format!("an edit of document {doc_id} beside its drop or replacement"),
                allowed: "one or the other, where offsets refer to the text before the batch; \
                          or edit mode in_sequence"
                    .into(),
            });
        }
        let (offsets, len, _) = match edited.entry(doc_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert((Vec::new(), living.len_bytes(doc_id)?, is_whole)),
        };
        match edit {
            Edit::InsertText { offset_bytes, .. } => offsets.push(*offset_bytes),
            Edit::AppendText { .. } => offsets.push(*len),
            Edit::DeleteText { offset_bytes, len_bytes, .. } => {
                offsets.extend([*offset_bytes, offset_bytes.saturating_add(*len_bytes)]);
            }
            _ => {}
        }
    }
    let edited = edited.into_iter();
    Ok(edited.map(|(doc_id, (at, len, _))| (doc_id, (BatchOffsets::new(at), len))).collect())
}

fn checked_range(doc_id: u64, offset: u64, num_deleted: u64, len: u64) -> Result<Range<u64>> {
    let end = checked_offset(doc_id, offset, len)?.saturating_add(num_deleted);
    if end <= len {
        return Ok(offset..end);
    }
    let what = "end of the deleted bytes";
    Err(Error::PastEnd { what, got: end, doc_id, path: None, len_bytes: len })
}
