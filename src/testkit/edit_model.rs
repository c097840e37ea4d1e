//! A model of edited documents as a list of texts, with random operations on them.

use std::collections::{BTreeMap, BTreeSet};

use tadoc::edits::{Answer, Edit, EditMode, Operation};
use tadoc::text::TokenizerProfile;

use crate::scrambled::PIECES;
use crate::{naive, random};

/// Upper bound for the number of operations in a batch (exclusive).
pub const MAX_OPERATIONS: usize = 120;

/// Random numbers, texts and offsets.
pub struct Random(random::Random);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(random::Random(seed.wrapping_mul(0xD134_2543_DE82_EF95)))
    }

    pub fn number(&mut self) -> u64 {
        self.0.number()
    }

    pub fn below(&mut self, end: usize) -> usize {
        self.0.below(end)
    }

    /// Returns a text of fewer than `num_pieces` pieces, rarely with a long run that has no place
    /// to cut.
    pub fn text(&mut self, num_pieces: usize) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..self.below(num_pieces) {
            text.extend_from_slice(PIECES[self.below(PIECES.len())]);
        }
        if self.below(400) == 0 {
            let len = [600, 5_000, 70_000][self.below(40) / 19];
            text.extend(std::iter::repeat_n(b'x', len));
        }
        text
    }

    /// Returns an offset in `len` bytes. Both ends are more likely than other offsets.
    fn offset(&mut self, len: usize) -> usize {
        match self.below(8) {
            0 => 0,
            1 => len,
            _ => self.below(len + 1),
        }
    }
}

/// The documents, with `None` for dropped ones.
pub struct Model {
    pub docs: Vec<Option<Vec<u8>>>,
}

/// Start and end of the deleted range in the text before the batch, and the inserted text.
type Change = (usize, usize, Vec<u8>);

/// A batch in progress.
struct Batch {
    mode: EditMode,
    profile: TokenizerProfile,
    before: Vec<Option<Vec<u8>>>,
    /// Changes by document.
    changes: BTreeMap<usize, Vec<Change>>,
    /// Documents that were dropped or replaced.
    whole: BTreeSet<usize>,
}

impl Model {
    pub fn new(docs: Vec<Vec<u8>>) -> Self {
        Self { docs: docs.into_iter().map(Some).collect() }
    }

    /// Generates a batch and runs it. Returns the operations and their answers.
    pub fn run_batch(
        &mut self,
        random: &mut Random,
        profile: TokenizerProfile,
        mode: EditMode,
    ) -> (Vec<Operation>, Vec<Answer>) {
        let before = self.docs.clone();
        let changes = BTreeMap::new();
        let whole = BTreeSet::new();
        let mut batch = Batch { mode, profile, before, changes, whole };
        let mut run = (Vec::new(), Vec::new());
        for _ in 0..random.below(MAX_OPERATIONS) {
            if let Some(operation) = self.operation(random, &batch) {
                run.1.push(self.answer(&mut batch, &operation));
                run.0.push(operation);
            }
        }
        run
    }

    /// Generates an operation that is valid next.
    fn operation(&self, random: &mut Random, batch: &Batch) -> Option<Operation> {
        let alive: Vec<usize> = (0..self.docs.len()).filter(|&i| self.docs[i].is_some()).collect();
        let kind = random.below(100);
        if kind == 0 && self.docs.len() < 12 || alive.is_empty() {
            let path = format!("added/{}", self.docs.len());
            return Some(Operation::Edit(Edit::AddDocument { path, content: random.text(60) }));
        }
        let doc = alive[random.below(alive.len())];
        let doc_id = doc as u64;
        if kind >= 60 {
            let word = self.word(random, batch.profile);
            return Some(match kind {
                60..73 => {
                    let offset_bytes = random.offset(self.text(doc_id).len()) as u64;
                    Operation::Extract { doc_id, offset_bytes, len_bytes: random.below(99) as u64 }
                }
                73..86 => Operation::Search { doc_id, word },
                _ => Operation::Count { doc_id, word },
            });
        }
        let is_in_batch = batch.mode == EditMode::InBatch;
        if is_in_batch && (doc >= batch.before.len() || batch.whole.contains(&doc)) {
            return None;
        }
        let len = batch.text_before(self, doc_id).len();
        let can_be_whole = !is_in_batch || !batch.changes.contains_key(&doc);
        Some(Operation::Edit(match kind {
            1 if can_be_whole && alive.len() > 1 => Edit::DropDocument { doc_id },
            2..4 if can_be_whole => Edit::ReplaceDocument { doc_id, content: random.text(60) },
            0..30 => {
                let offset_bytes = random.offset(len) as u64;
                Edit::InsertText { doc_id, offset_bytes, text: random.text(12) }
            }
            30..40 => Edit::AppendText { doc_id, text: random.text(12) },
            _ => {
                let start = random.offset(len);
                let most = if random.below(10) == 0 { len } else { 20 };
                let len_bytes = random.below(most + 1).min(len - start) as u64;
                Edit::DeleteText { doc_id, offset_bytes: start as u64, len_bytes }
            }
        }))
    }

    /// Returns a word of a document, or one that may occur.
    pub fn word(&self, random: &mut Random, profile: TokenizerProfile) -> String {
        let words = match self.docs.get(random.below(self.docs.len().max(1))) {
            Some(Some(text)) if text.len() < 10_000 => naive::words(profile, text),
            _ => Vec::new(),
        };
        if words.is_empty() {
            ["power", "a", "b", "中"][random.below(4)].to_owned()
        } else {
            words[random.below(words.len())].text.to_owned()
        }
    }

    fn answer(&mut self, batch: &mut Batch, operation: &Operation) -> Answer {
        let profile = batch.profile;
        let edit = match operation {
            Operation::Edit(edit) => edit,
            Operation::Extract { doc_id, offset_bytes, len_bytes } => {
                let text = self.text(*doc_id);
                let start = *offset_bytes as usize;
                let end = (start + *len_bytes as usize).min(text.len());
                return Answer::Text(text[start..end].to_vec());
            }
            Operation::Search { doc_id, word } => {
                return Answer::Offsets(offsets(profile, self.text(*doc_id), word));
            }
            Operation::Count { doc_id, word } => {
                return Answer::Count(offsets(profile, self.text(*doc_id), word).len() as u64);
            }
        };
        match edit {
            Edit::AddDocument { content, .. } => {
                self.docs.push(Some(content.clone()));
                return Answer::Added { doc_id: self.docs.len() as u64 - 1 };
            }
            Edit::DropDocument { doc_id } => {
                batch.whole.insert(*doc_id as usize);
                self.docs[*doc_id as usize] = None;
            }
            Edit::ReplaceDocument { doc_id, content } => {
                batch.whole.insert(*doc_id as usize);
                self.docs[*doc_id as usize] = Some(content.clone());
            }
            Edit::InsertText { doc_id, offset_bytes, text } => {
                let at = *offset_bytes as usize;
                self.change(batch, *doc_id, (at, at, text.clone()));
            }
            Edit::AppendText { doc_id, text } => {
                let end = batch.text_before(self, *doc_id).len();
                self.change(batch, *doc_id, (end, end, text.clone()));
            }
            Edit::DeleteText { doc_id, offset_bytes, len_bytes } => {
                let at = *offset_bytes as usize;
                self.change(batch, *doc_id, (at, at + *len_bytes as usize, Vec::new()));
            }
            Edit::SetColumns { .. } => {}
        }
        Answer::Edited
    }

    fn change(&mut self, batch: &mut Batch, doc_id: u64, change: Change) {
        let doc = doc_id as usize;
        if batch.mode == EditMode::InSequence {
            self.docs[doc].as_mut().unwrap().splice(change.0..change.1, change.2);
            return;
        }
        let changes = batch.changes.entry(doc).or_default();
        changes.push(change);
        self.docs[doc] = Some(all_at_once(batch.before[doc].as_ref().unwrap(), changes));
    }

    fn text(&self, doc_id: u64) -> &[u8] {
        self.docs[doc_id as usize].as_ref().unwrap()
    }
}

impl Batch {
    /// Returns the text that the offsets of edits refer to.
    fn text_before<'a>(&'a self, model: &'a Model, doc_id: u64) -> &'a [u8] {
        match self.mode {
            EditMode::InSequence => model.text(doc_id),
            EditMode::InBatch => self.before[doc_id as usize].as_ref().unwrap(),
        }
    }
}

/// Applies `changes` to `text`. The offsets of all changes refer to `text`.
fn all_at_once(text: &[u8], changes: &[Change]) -> Vec<u8> {
    let mut is_kept = vec![true; text.len()];
    let mut put_in: BTreeMap<usize, Vec<u8>> = BTreeMap::new();
    for (start, end, added) in changes {
        is_kept[*start..*end].fill(false);
        put_in.entry(*start).or_default().extend_from_slice(added);
    }
    let mut result = Vec::new();
    for (at, byte) in text.iter().enumerate() {
        result.extend(put_in.remove(&at).unwrap_or_default());
        result.extend(Some(byte).filter(|_| is_kept[at]));
    }
    result.extend(put_in.remove(&text.len()).unwrap_or_default());
    result
}

/// Returns the offsets of `word` in `text`.
pub fn offsets(profile: TokenizerProfile, text: &[u8], word: &str) -> Vec<u64> {
    if memchr::memmem::find(text, word.as_bytes()).is_none() {
        return Vec::new();
    }
    let words = naive::words(profile, text);
    let found = words.iter().filter(|found| found.text == word);
    found.map(|found| found.byte_offset as u64).collect()
}
