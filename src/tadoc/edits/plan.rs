//! Batches on a living corpus: edits, all or none, by a plan of steps that cannot fail; and reads, on all cores.
//!
//! Lengths of documents are tracked through the batch, so every document and offset is checked
//! before anything is changed. Offsets of both modes become offsets in the text at the point of the
//! step. Cost: O(1) for each operation in mode `in_sequence`, O(log operations) in mode `in_batch`.
//!
//! # Offsets of a batch
//!
//! ```text
//! before      a b c d e f g     insert "X" at 3, delete 1..5, insert "Y" at 3, in this order
//! places      0 . 1 . 2 . 3     of the edits: 1, 3, 5
//! now         a b c X d e f g   3 is still 3, and from now on 3 + 1 for what comes later at 3
//!             a X f g           1..3 goes at 1, 3..5 goes at 2
//!             a X Y f g         3 + 1 inserted - 2 deleted = 2
//! ```
//!
//! All edits of a document are known before the first one is made. Their offsets are sorted, and the index of an offset
//! is the number of its *place*. Two Fenwick trees return the bytes inserted up to a place and the bytes deleted before
//! it, in O(log edits) for each edit. The range between two places is deleted once, even if several edits delete it.
//!
//! # Reads
//!
//! Documents that were never edited are read from the base in one batch ([`crate::read::extract_batch`],
//! [`crate::query::count_batch`], [`crate::query::search_batch`]), where queries share work. Edited documents are
//! answered one by one. Answers are stored in the order of the queries.

use std::collections::hash_map::Entry;
use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use super::document::EditedDocument;
use super::edit::{Answer, Edit, EditBatch, EditMode, Operation};
use super::{Current, LivingCorpus, Step, checked_offset, dropped_document, unknown_document};
use crate::error::{Error, Result};
use crate::query::{OffsetLists, WordQuery, check_word, count_batch, search_batch};
use crate::read::{self, ExtractQuery, Passages, extract_batch};

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
    let mut lens = FxHashMap::default();
    let mut steps = Vec::new();
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
        let mut node = place;
        let mut sum = 0;
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

/// Number of answers of edited documents that one task computes at least.
const MIN_QUERIES: usize = 16;

/// Queries of unedited and of edited documents, each with its index in the batch.
struct Parted<'a, Q> {
    from_base: Vec<Q>,
    base_idxs: Vec<usize>,
    edited: Vec<(usize, Q, &'a EditedDocument)>,
}

impl LivingCorpus {
    /// Returns the passages of `queries`, in their order, of at most `max_output_bytes` in total.
    ///
    /// # Errors
    /// [`Error::InBatch`] for the first query that [`extract`](Self::extract) would refuse;
    /// [`Error::Capacity`] for more bytes than allowed.
    pub fn extract_batch(&self, queries: &[ExtractQuery], max_output_bytes: u64) -> Result<Passages> {
        let parted = self.parted(queries, |_| Ok(()))?;
        let from_base = extract_batch(self.base(), &parted.from_base, max_output_bytes);
        let from_edited = parted.answer_edited(|query, document| {
            let start = checked_offset(query.doc_id, query.byte_offset, document.len_bytes())?;
            let end = document.len_bytes().min(start.saturating_add(query.byte_len));
            let mut text = Vec::new();
            document.read(self.base(), start..end, max_output_bytes, &mut text)?;
            Ok(text)
        });
        let both = parted.both(from_base, from_edited);
        let (from_base, from_edited) = both.map_err(|error| self.naming_document(error, queries))?;
        if from_edited.is_empty() {
            return Ok(from_base);
        }
        let mut texts = vec![&[][..]; queries.len()];
        for (place, &query_idx) in parted.base_idxs.iter().enumerate() {
            texts[query_idx] = from_base.get(place).unwrap_or_default();
        }
        for ((query_idx, ..), text) in parted.edited.iter().zip(&from_edited) {
            texts[*query_idx] = text;
        }
        Passages::joined(&texts, max_output_bytes)
    }

    /// Returns the number of occurrences of each word in its document, in the order of `queries`.
    ///
    /// # Errors
    /// [`Error::InBatch`] for the first query that [`count`](Self::count) would refuse.
    pub fn count_batch(&self, queries: &[WordQuery<'_>]) -> Result<Vec<u64>> {
        let parted = self.parted(queries, |query| check_word(self.base().profile(), query.word))?;
        let from_base = count_batch(self.base(), &parted.from_base);
        let from_edited = parted.answer_edited(|query, document| document.count(self.base(), query.word));
        let (from_base, from_edited) = parted.both(from_base, from_edited)?;
        let mut counts = vec![0; queries.len()];
        for (&query_idx, count) in parted.base_idxs.iter().zip(from_base) {
            counts[query_idx] = count;
        }
        for ((query_idx, ..), count) in parted.edited.iter().zip(from_edited) {
            counts[*query_idx] = count;
        }
        Ok(counts)
    }

    /// Returns the byte offsets of each word in its document, in ascending order, in the order of
    /// `queries`; at most `max_hits` in total.
    ///
    /// # Errors
    /// [`Error::InBatch`] for the first query that [`search`](Self::search) would refuse;
    /// [`Error::Capacity`] for more offsets than allowed.
    pub fn search_batch(&self, queries: &[WordQuery<'_>], max_hits: u64) -> Result<OffsetLists> {
        let parted = self.parted(queries, |query| check_word(self.base().profile(), query.word))?;
        let from_base = search_batch(self.base(), &parted.from_base, max_hits);
        let from_edited = parted.answer_edited(|query, document| {
            let mut offsets = Vec::new();
            document.find(self.base(), query.word, &mut offsets)?;
            Ok(offsets)
        });
        let (from_base, from_edited) = parted.both(from_base, from_edited)?;
        if from_edited.is_empty() {
            return Ok(from_base);
        }
        let mut lists = vec![&[][..]; queries.len()];
        for (place, &query_idx) in parted.base_idxs.iter().enumerate() {
            lists[query_idx] = from_base.get(place).unwrap_or_default();
        }
        for ((query_idx, ..), offsets) in parted.edited.iter().zip(&from_edited) {
            lists[*query_idx] = offsets;
        }
        OffsetLists::joined(&lists, max_hits)
    }

    /// Returns `error` with the id and path that the document has here, not in the base.
    fn naming_document(&self, error: Error, queries: &[ExtractQuery]) -> Error {
        match error {
            Error::InBatch { query_idx, source } => {
                let doc_id = queries[query_idx].doc_id;
                let source = Box::new(source.in_document(doc_id, self.path(doc_id)));
                Error::InBatch { query_idx, source }
            }
            other => other,
        }
    }

    /// Divides `queries` by the state of their documents. Each document must exist, and each query
    /// must pass `check`.
    fn parted<Q: InDocument>(&self, queries: &[Q], check: impl Fn(&Q) -> Result<()>) -> Result<Parted<'_, Q>> {
        let mut parted = Parted { from_base: Vec::new(), base_idxs: Vec::new(), edited: Vec::new() };
        for (query_idx, query) in queries.iter().enumerate() {
            let current = self.current(query.doc_id()).and_then(|current| {
                check(query)?;
                Ok(current)
            });
            match current.map_err(|error| read::in_batch(query_idx, error))? {
                Current::Edited(document) => parted.edited.push((query_idx, *query, document)),
                Current::Base(doc) => {
                    parted.from_base.push(query.for_document(doc));
                    parted.base_idxs.push(query_idx);
                }
            }
        }
        Ok(parted)
    }
}

/// A query about one document.
trait InDocument: Copy {
    fn doc_id(&self) -> u64;

    /// Returns the same query about another document.
    fn for_document(self, doc_id: u64) -> Self;
}

impl InDocument for ExtractQuery {
    fn doc_id(&self) -> u64 {
        self.doc_id
    }

    fn for_document(self, doc_id: u64) -> Self {
        Self { doc_id, ..self }
    }
}

impl InDocument for WordQuery<'_> {
    fn doc_id(&self) -> u64 {
        self.doc_id
    }

    fn for_document(self, doc_id: u64) -> Self {
        Self { doc_id, ..self }
    }
}

impl<Q: Copy + Sync> Parted<'_, Q> {
    /// Answers the queries of edited documents. An error names the index of the query in the batch.
    fn answer_edited<T: Send>(&self, answer: impl Fn(Q, &EditedDocument) -> Result<T> + Sync) -> Result<Vec<T>> {
        let answers = self.edited.par_iter().with_min_len(MIN_QUERIES);
        let answers: Vec<Result<T>> = answers.map(|(_, query, document)| answer(*query, document)).collect();
        let numbered = self.edited.iter().zip(answers);
        numbered.map(|(at, answer)| answer.map_err(|e| read::in_batch(at.0, e))).collect()
    }

    /// Returns both kinds of answers, or the error of the first query that has one.
    fn both<A, B>(&self, from_base: Result<A>, from_edited: Result<B>) -> Result<(A, B)> {
        let from_base = from_base.map_err(|error| match error {
            Error::InBatch { query_idx, source } => Error::InBatch { query_idx: self.base_idxs[query_idx], source },
            other => other,
        });
        match (from_base, from_edited) {
            (Ok(from_base), Ok(from_edited)) => Ok((from_base, from_edited)),
            (Err(Error::InBatch { query_idx: a, source }), Err(Error::InBatch { query_idx: b, source: other })) => {
                Err(if a < b {
                    Error::InBatch { query_idx: a, source }
                } else {
                    Error::InBatch { query_idx: b, source: other }
                })
            }
            (Err(error), _) | (_, Err(error)) => Err(error),
        }
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
                   let a = edit.0 % (len + 1);
                   let b = edit.1 % (len + 1);
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
