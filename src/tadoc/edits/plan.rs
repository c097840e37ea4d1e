//! Plan of a batch: from its operations to steps that cannot fail.
//!
//! Lengths of documents are tracked through the batch, so every document and offset is checked
//! before anything is changed. Offsets of both modes become offsets in the text at the point of the
//! step. Cost: O(1) for each operation in mode `in_sequence`, O(log operations) in mode `in_batch`.
//!
//! # Offsets of a batch
//!
//! Translation of offsets in the text before a batch to offsets in the text at some point of the
//! batch.
//!
//! ```text
//! before      a b c d e f g     insert "X" at 3, delete 1..5, insert "Y" at 3, in this order
//! places      0 . 1 . 2 . 3     of the edits: 1, 3, 5
//! now         a b c X d e f g   3 is still 3, and from now on 3 + 1 for what comes later at 3
//!             a X f g           1..3 goes at 1, 3..5 goes at 2
//!             a X Y f g         3 + 1 inserted - 2 deleted = 2
//! ```
//!
//! All edits of a document are known before the first one is made. Their offsets are sorted, and
//! the index of an offset is the number of its *place*. Two Fenwick trees return the bytes inserted
//! up to a place and the bytes deleted before it, in O(log edits) for each edit. The range between
//! two places is deleted once, even if several edits delete it.
//!
//! # Applying
//!
//! Batches of edits and mixed batches on a living corpus, all or none.

use std::collections::hash_map::Entry;
use std::ops::Range;

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::query::check_word;

use super::edit::{Answer, Edit, EditBatch, EditMode, Operation};
use super::living_corpus::{LivingCorpus, Step, checked_offset, dropped_document, unknown_document};

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
                self.len_for(*doc_id)?;
                self.lens.insert(*doc_id, None);
                self.steps.push(Step::Drop { doc_id: *doc_id });
            }
            Edit::ReplaceDocument { doc_id, content } => {
                self.len_for(*doc_id)?;
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
        let len = self.len_for(doc_id)?;
        let added = text.len() as u64;
        let new_len = len.checked_add(added).ok_or(Error::Capacity {
            what: "a document in bytes",
            requested: u64::MAX,
            limit: u64::MAX - 1,
            knob: "nothing (lengths are 64-bit numbers)",
        })?;
        let at = match self.offsets_for(doc_id) {
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
        let len = self.len_for(doc_id)?;
        let ranges = match self.offsets_for(doc_id) {
            Some((offsets, before)) => offsets.delete(checked_range(doc_id, offset, num_deleted, before)?),
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
                checked_offset(*doc_id, *offset_bytes, self.len_for(*doc_id)?)?;
            }
            Operation::Search { doc_id, word } | Operation::Count { doc_id, word } => {
                self.len_for(*doc_id)?;
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
    fn offsets_for(&mut self, doc_id: u64) -> Option<(&mut BatchOffsets, u64)> {
        let (offsets, before) = self.offsets.as_mut()?.get_mut(&doc_id)?;
        Some((offsets, *before))
    }

    /// Returns the length of document `doc_id` in bytes, at this point of the batch.
    fn len_for(&mut self, doc_id: u64) -> Result<u64> {
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

/// Offsets of the edits of one document.
#[derive(Debug)]
pub struct BatchOffsets {
    /// Distinct offsets of edits before the batch, in ascending order.
    places: Vec<u64>,
    inserted: Sums,
    deleted: Sums,
    /// For each place, itself if the range after it is not deleted, else a later place that is
    /// nearer to the next range that is not deleted.
    next_kept: Vec<usize>,
}

impl BatchOffsets {
    /// Creates the translation for edits at `places`: offsets of inserts, and both ends of deletes.
    pub fn new(mut places: Vec<u64>) -> Self {
        places.sort_unstable();
        places.dedup();
        let num_places = places.len();
        Self {
            places,
            inserted: Sums::new(num_places),
            deleted: Sums::new(num_places),
            next_kept: (0..=num_places).collect(),
        }
    }

    /// Records an insert of `len` bytes at `offset`, one of the places. Returns its current offset.
    pub fn insert(&mut self, offset: u64, len: u64) -> u64 {
        let place = self.place_idx(offset);
        let now = self.now(place);
        self.inserted.add(place, len);
        now
    }

    /// Records the deletion of `range`, which begins and ends at places. Returns the ranges to
    /// delete, one after the other.
    pub fn delete(&mut self, range: Range<u64>) -> Vec<Range<u64>> {
        let end = self.place_idx(range.end);
        let mut deleted: Vec<Range<u64>> = Vec::new();
        let mut place = self.kept(self.place_idx(range.start));
        while place < end {
            let len = self.places[place + 1] - self.places[place];
            let start = self.now(place);
            self.deleted.add(place, len);
            self.next_kept[place] = place + 1;
            match deleted.last_mut().filter(|last| last.start == start) {
                Some(last) => last.end += len,
                None => deleted.push(start..start + len),
            }
            place = self.kept(place + 1);
        }
        deleted
    }

    fn place_idx(&self, offset: u64) -> usize {
        self.places.partition_point(|&place| place < offset)
    }

    /// Returns the current offset of the byte at `place`, after all text inserted there.
    fn now(&self, place: usize) -> u64 {
        self.places[place] + self.inserted.before(place + 1) - self.deleted.before(place)
    }

    /// Returns the first place from `place` on whose range is not deleted.
    fn kept(&mut self, mut place: usize) -> usize {
        while self.next_kept[place] != place {
            // Halves the path for later calls.
            self.next_kept[place] = self.next_kept[self.next_kept[place]];
            place = self.next_kept[place];
        }
        place
    }
}

/// Sums over the first places (Fenwick, 1994).
#[derive(Debug)]
struct Sums(Vec<u64>);

impl Sums {
    fn new(num_places: usize) -> Self {
        Self(vec![0; num_places + 1])
    }

    fn add(&mut self, place: usize, len: u64) {
        let mut node = place + 1;
        while node < self.0.len() {
            self.0[node] += len;
            node += node & node.wrapping_neg();
        }
    }

    fn before(&self, place: usize) -> u64 {
        let (mut node, mut sum) = (place, 0);
        while node > 0 {
            sum += self.0[node];
            node &= node - 1;
        }
        sum
    }
}

impl LivingCorpus {
    /// Makes the edits of `batch`, all or none. Returns the ids of the documents that it adds.
    ///
    /// # Errors
    /// [`OutOfRange`](crate::Error::OutOfRange) for a document that does not exist,
    /// [`PastEnd`](crate::Error::PastEnd) for an offset behind the end of its document, and
    /// [`InvalidArgument`](crate::Error::InvalidArgument) for a dropped document. In mode
    /// `in_batch` also [`InvalidArgument`](crate::Error::InvalidArgument) for a document that is
    /// dropped or replaced and has other edits. Nothing is changed then.
    pub fn apply(&mut self, batch: &EditBatch) -> Result<Range<u64>> {
        let first_added = self.num_docs();
        let plan = plan(self, batch.mode, batch.edits.iter().map(Item::Edit))?;
        self.make_all(&plan.steps, plan.num_docs);
        Ok(first_added..self.num_docs())
    }

    /// Makes the edits of a mixed batch, all or none, and answers its reads. Each read sees the
    /// edits before it.
    ///
    /// # Errors
    /// As [`apply`](Self::apply), and those of the reads. Nothing is changed then.
    pub fn run(&mut self, mode: EditMode, operations: &[Operation]) -> Result<Vec<Answer>> {
        let plan = plan(self, mode, operations.iter().map(Item::Operation))?;
        // A read may still fail for lack of memory. Then the edits before it must not be visible.
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
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the text from the texts inserted before each old byte and at the end, and the old
    /// bytes that are left.
    fn slow(old: &[u8], edits: &[(u64, u64, Vec<u8>)]) -> Vec<u8> {
        let mut before = vec![Vec::new(); old.len() + 1];
        let mut is_kept = vec![true; old.len()];
        for (start, end, text) in edits {
            before[*start as usize].extend_from_slice(text);
            is_kept[*start as usize..*end as usize].fill(false);
        }
        let bytes = before.into_iter().enumerate().flat_map(|(at, mut text)| {
            text.extend(old.get(at).filter(|_| is_kept[at]));
            text
        });
        bytes.collect()
    }

    proptest! {
           #![proptest_config(ProptestConfig::with_cases(2_000))]

           #[test]
           fn edits_are_as_if_made_at_once(
               len in 0..30u64,
               edits in prop::collection::vec((any::<u64>(), any::<u64>(), 0..4usize, any::<bool>()), 0..12),
           ) {
               let old: Vec<u8> = (0..len as u8).collect();
               let edits: Vec<(u64, u64, Vec<u8>)> = edits.iter().zip(b'A'..).map(|(edit, mark)| {
                   let (a, b) = (edit.0 % (len + 1), edit.1 % (len + 1));
                   if edit.3 { (a.min(b), a.max(b), Vec::new())
    } else { (a, a, vec![mark; edit.2])
    }
               }).collect();
               let places = edits.iter().flat_map(|edit| [edit.0, edit.1]).collect();
               let mut offsets = BatchOffsets::new(places);
               let mut now = old.clone();
               for (start, end, text) in &edits {
                   if text.is_empty() {
                       for range in offsets.delete(*start..*end) {
                           now.drain(range.start as usize..range.end as usize);
                       }
                   } else {
                       let at = offsets.insert(*start, text.len() as u64) as usize;
                       now.splice(at..at, text.iter().copied());
                   }
               }
               prop_assert_eq!(now, slow(&old, &edits));
           }
       }
}
