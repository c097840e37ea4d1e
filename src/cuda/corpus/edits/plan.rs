//! Plans of batches: converts edits to changes of documents, and finds the states that reads see.
//!
//! ```text
//! document   0 ........ 10 ........ 20     insert "X" at 4, delete 8..12, append "Y"
//! changes    4..4 "X"   8..12 ""   20..20 "Y"      bytes of the text before the batch
//! ```
//!
//! Offsets of edits in sequence refer to the text after the earlier edits. A [`PieceTree`] per document applies them,
//! O(log edits) each. Offsets of edits in batch are converted to such offsets first ([`BatchOffsets`]), as on the CPU
//! (`src/tadoc/edits/plan.rs`). All operations are checked before anything is built.

use rustc_hash::FxHashMap;

use crate::error::GpuError;
use tadoc::edits::{BatchOffsets, Edit, EditMode, Operation, Piece, PieceTree, Source};
use tadoc::ids::DocId;

use super::text::BaseText;
use crate::corpus::check_limit;

/// A range of bytes of a document before the batch, with the text that replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) text: Vec<u8>,
}

/// A document of a new text: an old document with its changes. The changes are ascending and do not
/// touch.
#[derive(Debug, Clone)]
pub(super) struct NewDocument {
    pub(super) doc: DocId,
    pub(super) len_bytes: u64,
    pub(super) changes: Vec<Change>,
}

/// A read of a mixed batch, with the state that it sees.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateRead<'a> {
    pub(super) state: DocId,
    pub(super) read: &'a Operation,
}

/// The plan of a batch.
#[derive(Debug, Default)]
pub(super) struct BatchPlan<'a> {
    /// States of documents that reads see.
    pub(super) states: Vec<NewDocument>,
    pub(super) reads: Vec<StateRead<'a>>,
    /// All documents at the end of the batch, in order.
    pub(super) last: Vec<NewDocument>,
}

/// The current state of one document within a batch.
struct Followed {
    pieces: PieceTree,
    text: Vec<u8>,
    /// State for reads since the last edit.
    state: Option<DocId>,
}

struct Planner<'a, T> {
    text: &'a T,
    followed: FxHashMap<DocId, Followed>,
    /// Offsets by document, if they refer to the text before the batch.
    offsets: Option<FxHashMap<DocId, BatchOffsets>>,
}

impl<'a> BatchPlan<'a> {
    /// Builds the plan of `operations` on `text`.
    ///
    /// # Errors
    ///
    /// [`GpuError::Mismatch`] for a document or an offset that does not exist, and for edits that
    /// add, drop or replace documents.
    pub(super) fn new(
        text: &impl BaseText,
        mode: EditMode,
        operations: impl Iterator<Item = OperationRef<'a>> + Clone,
    ) -> Result<Self, GpuError> {
        let mut planner = Planner { text, followed: FxHashMap::default(), offsets: None };
        if mode == EditMode::InBatch {
            planner.offsets = Some(planner.places(operations.clone())?);
        }
        let mut plan = Self::default();
        for operation in operations {
            match operation {
                OperationRef::Edit(edit) => planner.make(edit)?,
                OperationRef::Read(read) => {
                    let state = planner.state(read, &mut plan.states)?;
                    plan.reads.push(StateRead { state, read });
                }
            }
        }
        plan.last =
            DocId::range(0..text.num_docs()).map(|doc| planner.document(doc)).collect::<Result<_, GpuError>>()?;
        Ok(plan)
    }
}

/// One operation of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) enum OperationRef<'a> {
    Edit(&'a Edit),
    Read(&'a Operation),
}

impl<'a> From<&'a Operation> for OperationRef<'a> {
    fn from(operation: &'a Operation) -> Self {
        match operation {
            Operation::Edit(edit) => Self::Edit(edit),
            read => Self::Read(read),
        }
    }
}

/// A change of a document: deletes bytes and inserts text at their start.
struct Splice<'a> {
    doc: DocId,
    /// Start in bytes; `None` for the end of the document.
    start: Option<u64>,
    num_deleted: u64,
    text: &'a [u8],
}

impl<'a> Splice<'a> {
    fn from_edit(edit: &'a Edit) -> Result<Self, GpuError> {
        let splice = |doc_id, start, num_deleted, text| Self { doc: doc_for(doc_id), start, num_deleted, text };
        match edit {
            Edit::InsertText { doc_id, offset_bytes, text } => Ok(splice(*doc_id, Some(*offset_bytes), 0, text)),
            Edit::AppendText { doc_id, text } => Ok(splice(*doc_id, None, 0, text)),
            Edit::DeleteText { doc_id, offset_bytes, len_bytes } => {
                Ok(splice(*doc_id, Some(*offset_bytes), *len_bytes, &[]))
            }
            Edit::AddDocument { .. }
            | Edit::DropDocument { .. }
            | Edit::ReplaceDocument { .. }
            | Edit::SetColumns { .. } => {
                let what = "edits that add, drop or replace documents, or set columns";
                Err(GpuError::Mismatch { what, got: 1, expected: 0 })
            }
        }
    }
}

impl<T: BaseText> Planner<'_, T> {
    /// Collects the offsets of all edits of each document.
    fn places<'a>(
        &self,
        operations: impl Iterator<Item = OperationRef<'a>>,
    ) -> Result<FxHashMap<DocId, BatchOffsets>, GpuError> {
        let mut places: FxHashMap<DocId, Vec<u64>> = FxHashMap::default();
        for operation in operations {
            let OperationRef::Edit(edit) = operation else { continue };
            let splice = Splice::from_edit(edit)?;
            let len = self.text.doc_len_bytes(splice.doc)?;
            let start = splice.start.unwrap_or(len);
            let ends = [start, start.saturating_add(splice.num_deleted)];
            places.entry(splice.doc).or_default().extend(ends);
        }
        Ok(places.into_iter().map(|(doc, at)| (doc, BatchOffsets::new(at))).collect())
    }

    fn make(&mut self, edit: &Edit) -> Result<(), GpuError> {
        let Splice { doc, start, num_deleted, text } = Splice::from_edit(edit)?;
        let before = self.text.doc_len_bytes(doc)?;
        let offsets = self.offsets.as_mut().and_then(|offsets| offsets.get_mut(&doc));
        let followed = self.followed.entry(doc).or_insert_with(|| Followed::new(before));
        let len = if offsets.is_some() { before } else { followed.pieces.len_bytes() };
        let start = start.unwrap_or(len);
        check_offset(start, len)?;
        check_offset(start.saturating_add(num_deleted), len)?;
        followed.state = None;
        match offsets {
            Some(offsets) if num_deleted > 0 => {
                for range in offsets.delete(start..start + num_deleted) {
                    followed.splice(range.start, range.end, &[]);
                }
            }
            Some(offsets) => {
                let at = offsets.insert(start, text.len() as u64);
                followed.splice(at, at, text);
            }
            None => followed.splice(start, start + num_deleted, text),
        }
        Ok(())
    }

    /// Returns the state that `read` sees, as a document of the text of all states. Adds a state if
    /// there was an edit since the last read.
    fn state(&mut self, read: &Operation, states: &mut Vec<NewDocument>) -> Result<DocId, GpuError> {
        let (doc_id, offset) = match read {
            Operation::Extract { doc_id, offset_bytes, .. } => (*doc_id, *offset_bytes),
            Operation::Search { doc_id, .. } | Operation::Count { doc_id, .. } => (*doc_id, 0),
            Operation::Edit(_) => (u64::MAX, 0),
        };
        let doc = doc_for(doc_id);
        let before = self.text.doc_len_bytes(doc)?;
        let followed = self.followed.entry(doc).or_insert_with(|| Followed::new(before));
        check_offset(offset, followed.pieces.len_bytes())?;
        if let Some(state) = followed.state {
            return Ok(state);
        }
        let state = DocId::from_index(states.len());
        followed.state = Some(state);
        states.push(self.document(doc)?);
        Ok(state)
    }

    /// Returns the current state of document `doc`.
    fn document(&self, doc: DocId) -> Result<NewDocument, GpuError> {
        let before = self.text.doc_len_bytes(doc)?;
        Ok(match self.followed.get(&doc) {
            None => NewDocument { doc, len_bytes: before, changes: Vec::new() },
            Some(followed) => {
                NewDocument { doc, len_bytes: followed.pieces.len_bytes(), changes: followed.changes(before) }
            }
        })
    }
}

impl Followed {
    fn new(len: u64) -> Self {
        let pieces = PieceTree::new(Piece { source: Source::Base, start: 0, len });
        Self { pieces, text: Vec::new(), state: None }
    }

    fn splice(&mut self, start: u64, end: u64, text: &[u8]) {
        if start == end && text.is_empty() {
            return;
        }
        let at = self.text.len() as u64;
        let len = text.len() as u64;
        self.text.extend_from_slice(text);
        self.pieces.replace(start, end, Piece { source: Source::Text, start: at, len });
    }

    /// Returns the changes relative to a document of `len` bytes.
    fn changes(&self, len: u64) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut start = 0;
        let mut text = Vec::new();
        let last = Piece { source: Source::Base, start: len, len: 0 };
        for piece in self.pieces.pieces_from(0).chain([last]) {
            if piece.source == Source::Text {
                text.extend_from_slice(&self.text[piece.start as usize..piece.end() as usize]);
                continue;
            }
            if piece.start > start || !text.is_empty() {
                let text = std::mem::take(&mut text);
                changes.push(Change { start, end: piece.start, text });
            }
            start = piece.end();
        }
        changes
    }
}

/// Returns the id of a document in its segment; the largest id if it does not fit. No document has
/// the largest id.
fn doc_for(doc_id: u64) -> DocId {
    u32::try_from(doc_id).unwrap_or(u32::MAX).into()
}

fn check_offset(got: u64, expected: u64) -> Result<(), GpuError> {
    let what = "offset of an operation in its document";
    if got > expected {
        return Err(GpuError::Mismatch { what, got, expected });
    }
    Ok(())
}

/// Checks that the number of `documents` and changes fits into 32 bits.
pub(super) fn check_num_documents(documents: &[NewDocument]) -> Result<(), GpuError> {
    let num_changes: usize = documents.iter().map(|document| document.changes.len()).sum();
    check_limit("documents and changes of a batch", documents.len() + num_changes, 1 << 30)
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tests::HostText;
    use super::*;
    use tadoc::edits::Answer;

    /// A pseudorandom generator with a seed.
    struct Random(u64);

    impl Random {
        fn below(&mut self, limit: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % limit
        }
    }

    fn changed(text: &HostText, document: &NewDocument) -> Vec<u8> {
        let old = &text.docs[document.doc.index()];
        let mut new = Vec::new();
        let mut at = 0;
        for Change { start, end, text } in &document.changes {
            assert!(*start >= at && (*start > at || at == 0 || new.is_empty()));
            new.extend_from_slice(&old[at as usize..*start as usize]);
            new.extend_from_slice(text);
            at = *end;
        }
        new.extend_from_slice(&old[at as usize..]);
        assert_eq!(new.len() as u64, document.len_bytes);
        new
    }

    /// Applies one edit in sequence to the texts as plain bytes.
    fn slow(docs: &mut [Vec<u8>], edit: &Edit) {
        match edit {
            Edit::InsertText { doc_id, offset_bytes, text } => {
                let at = *offset_bytes as usize;
                docs[*doc_id as usize].splice(at..at, text.iter().copied());
            }
            Edit::AppendText { doc_id, text } => docs[*doc_id as usize].extend_from_slice(text),
            Edit::DeleteText { doc_id, offset_bytes, len_bytes } => {
                let at = *offset_bytes as usize;
                docs[*doc_id as usize].drain(at..at + *len_bytes as usize);
            }
            _ => unreachable!("no such edit is made here"),
        }
    }

    #[test]
    fn changes_and_states_are_those_of_edits_one_by_one() {
        for seed in 0..200 {
            let mut random = Random(seed);
            let docs: Vec<Vec<u8>> =
                (0..3).map(|doc| (0..random.below(30)).map(|at| b'a' + (doc + at) as u8 % 26).collect()).collect();
            let text = HostText::new(docs.clone());
            let mut now = docs.clone();
            let mut operations = Vec::new();
            let mut expected = Vec::new();
            for at in 0..random.below(30) {
                let doc_id = random.below(3);
                let len = now[doc_id as usize].len() as u64;
                let offset_bytes = random.below(len + 1);
                let new = vec![b'A' + at as u8 % 26; random.below(4) as usize];
                let operation = match random.below(4) {
                    0 => Operation::Edit(Edit::InsertText { doc_id, offset_bytes, text: new }),
                    1 => Operation::Edit(Edit::AppendText { doc_id, text: new }),
                    2 => {
                        let len_bytes = random.below(len - offset_bytes + 1).min(5);
                        Operation::Edit(Edit::DeleteText { doc_id, offset_bytes, len_bytes })
                    }
                    _ => Operation::Extract { doc_id, offset_bytes, len_bytes: 9 },
                };
                match &operation {
                    Operation::Edit(edit) => slow(&mut now, edit),
                    _ => expected.push(Answer::Text(now[doc_id as usize].clone())),
                }
                operations.push(operation);
            }
            let refs = operations.iter().map(OperationRef::from);
            let plan = BatchPlan::new(&text, EditMode::InSequence, refs).unwrap();
            let state = |read: &StateRead<'_>| Answer::Text(changed(&text, &plan.states[read.state.index()]));
            assert_eq!(plan.reads.iter().map(state).collect::<Vec<_>>(), expected);
            assert_eq!(plan.last.iter().map(|last| changed(&text, last)).collect::<Vec<_>>(), now);
        }
    }

    #[test]
    fn offsets_in_batch_are_those_before() {
        let text = HostText::new(vec![b"abcdefg".to_vec()]);
        let insert = |offset_bytes, text: &[u8]| Edit::InsertText { doc_id: 0, offset_bytes, text: text.to_vec() };
        let append = Edit::AppendText { doc_id: 0, text: b"Z".to_vec() };
        let delete = Edit::DeleteText { doc_id: 0, offset_bytes: 1, len_bytes: 4 };
        let edits = [insert(3, b"X"), append, delete, insert(3, b"Y"), insert(0, b"W")];
        let plan = BatchPlan::new(&text, EditMode::InBatch, edits.iter().map(OperationRef::Edit)).unwrap();
        assert_eq!(changed(&text, &plan.last[0]), b"WaXYfgZ");
        let wrong = |mode, edit: &Edit| {
            let made = BatchPlan::new(&text, mode, [OperationRef::Edit(edit)].into_iter());
            matches!(made, Err(GpuError::Mismatch { .. }))
        };
        for mode in [EditMode::InBatch, EditMode::InSequence] {
            assert!(wrong(mode, &insert(8, b"")) && !wrong(mode, &insert(7, b"")));
            assert!(wrong(mode, &Edit::AppendText { doc_id: 1, text: Vec::new() }));
            assert!(wrong(mode, &Edit::AppendText { doc_id: u64::MAX, text: Vec::new() }));
            assert!(wrong(mode, &Edit::DropDocument { doc_id: 0 }));
            let end = Edit::DeleteText { doc_id: 0, offset_bytes: 7, len_bytes: u64::MAX };
            assert!(wrong(mode, &end));
        }
    }
}
