//! An edited or added document: its base, a buffer of new text, and pieces of both.
//!
//! ```text
//! base     the power loss of          insert "wer ro" at 6:  the po|wer ro|wer loss of
//! text     power rower                the words beside the place move to the buffer
//! pieces   base 0..4 | text 0..11 | base 9..17
//! ```
//!
//! Pieces begin and end at cuts ([`crate::text::last_cut`]). The text between the cut before an edit and the cut after
//! it is written to the buffer again. So each piece can be tokenized alone, and the tokens of the document are those of
//! its pieces, one after the other. A base piece is a run of whole tokens of the base document. Counts, search and
//! snapshots need only this. An edit costs O(log pieces + bytes between the cuts), a few dozen bytes in ordinary text.
//!
//! If there is no cut nearby (a base64 blob has none), an edit inserts only its
//! own text. The document is then *not aligned*: its counts and searches read all of its text.
//!
//! # Loose ends
//!
//! The cut of one border, before text at the end of a document, is found when it is needed.
//!
//! ```text
//! document   … the po│wer loss     appended as it is, no byte of the base is read
//! settled    … the |power| loss    at the first count, search, snapshot or edit elsewhere
//! ```
//!
//! To find the last cut, an append would have to read the base before it, which is most of its time and
//! useless if the document is only extracted from later. So the border stays where it is, and text that
//! follows is appended in O(1). No data that depends on words is kept in this state. A document that is
//! only read gets a settled copy beside it. The next edit continues from that copy.
//!
//! # Words
//!
//! The count of a word is its count in the base, minus the lost occurrences, plus those in new text. Both
//! numbers are kept by word after they were first asked for, so a count costs one more look-up. Each edit
//! then updates the numbers of the words beside it, O(bytes that are tokenized again).
//!
//! A search in one document of the base climbs from the places of the word in the grammar to the root and
//! skips places in other documents. If the steps exceed a budget, the word is frequent or the grammar has
//! long chains of rules. Then [`count`](crate::query::count) or [`search_with`] answer. Their costs are
//! bounded, and they read the document instead if that is less work. If the segments keep the words
//! of documents, these give the counts, and show that a word does not occur.
//!
//! # Surroundings
//!
//! ```text
//! document   … the power lo|ss of …        an insert inside a word
//! kept                   lo|ss             from the last cut before to the first one after
//! ```
//!
//! A window of [`WINDOW_BYTES`] on each side of an edit has a cut in nearly every text. If it has none, wider
//! windows up to [`MAX_WINDOW_BYTES`] are read, so an edit reads 8 KiB at most.

use std::collections::HashMap;
use std::ops::{ControlFlow, Range};
use std::sync::OnceLock;

use super::piece_tree::{Piece, PieceTree, Source};
use crate::error::{Error, Result};
use crate::query::{self, Query, Question, SearchOptions, Way, search_with};
use crate::read::{DEFAULT_MAX_OUTPUT_BYTES, extract_into};
use crate::segment::Corpus;
use crate::text::{TokenizerProfile, first_cut, for_each_token, last_cut};

/// Most bytes of an edit after which the word changes are updated; after a larger edit they are
/// computed anew on demand.
const MAX_COUNTED_BYTES: u64 = 1 << 20;
/// Least bytes of the buffer at which it is first checked for text that is in no piece.
const FIRST_SWEEP_BYTES: usize = 1 << 12;

/// A document whose text differs from the base corpus.
#[derive(Debug, Clone)]
pub(super) struct EditedDocument {
    /// Document of the base corpus to which base pieces refer.
    base_doc: Option<u64>,
    text: Vec<u8>,
    pieces: PieceTree,
    borders: Borders,
    /// Word changes, computed when a word is first counted or searched for and the borders are
    /// settled.
    changes: OnceLock<Box<WordChanges>>,
    /// Copy of the document with settled borders, created when they are first needed.
    settled: OnceLock<Box<EditedDocument>>,
    /// Bytes of the buffer at which it is next checked for text that is in no piece.
    next_sweep_bytes: usize,
}

/// Position of the borders of pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Borders {
    /// At cuts.
    AtCuts,
    /// At cuts, except the start of the last piece, at byte `start` of the document.
    LooseEnd { start: u64 },
    /// At any byte.
    Anywhere,
}

impl EditedDocument {
    /// Creates document `doc_id` of the base corpus, which has `len_bytes`, without edits.
    pub fn from_base(doc_id: u64, len_bytes: u64) -> Self {
        let piece = Piece { source: Source::Base, start: 0, len: len_bytes };
        Self {
            base_doc: Some(doc_id),
            text: Vec::new(),
            pieces: PieceTree::new(piece),
            borders: Borders::AtCuts,
            changes: OnceLock::new(),
            settled: OnceLock::new(),
            next_sweep_bytes: FIRST_SWEEP_BYTES,
        }
    }

    /// Creates a document of new text.
    pub fn from_text(text: Vec<u8>) -> Self {
        let piece = Piece { source: Source::Text, start: 0, len: text.len() as u64 };
        let next_sweep_bytes = FIRST_SWEEP_BYTES.max(text.len().saturating_mul(2));
        Self {
            base_doc: None,
            text,
            pieces: PieceTree::new(piece),
            borders: Borders::AtCuts,
            changes: OnceLock::new(),
            settled: OnceLock::new(),
            next_sweep_bytes,
        }
    }

    /// Returns the length of the document in bytes.
    pub fn len_bytes(&self) -> u64 {
        self.pieces.len_bytes()
    }

    /// Returns true if each piece can be tokenized alone, once the document is
    /// [settled](Self::settled).
    pub fn is_aligned(&self) -> bool {
        self.borders == Borders::AtCuts
    }

    /// Returns the pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = Piece> + '_ {
        self.pieces.pieces_from(0)
    }

    /// Returns the bytes of a piece of new text.
    pub fn fresh_text(&self, piece: Piece) -> &[u8] {
        &self.text[piece.start as usize..piece.end() as usize]
    }

    /// Returns the number of bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let changes = self.changes.get().map_or(0, |changes| changes.memory_bytes());
        let settled = self.settled.get().map_or(0, |settled| settled.memory_bytes());
        let own = size_of::<Self>() + self.text.capacity() + self.pieces.memory_bytes();
        own + changes + settled
    }

    /// Appends bytes `range` of the document to `output`, which may grow to `max_output_bytes`.
    pub fn read(&self, corpus: &Corpus, range: Range<u64>, max_output_bytes: u64, output: &mut Vec<u8>) -> Result<()> {
        let mut left = range.end - range.start;
        let requested = left.saturating_add(output.len() as u64);
        if requested > max_output_bytes {
            return Err(Error::Capacity {
                what: "decoded text in bytes",
                requested,
                limit: max_output_bytes,
                knob: "tadoc.max_output_bytes",
            });
        }
        let mut pieces = self.pieces.pieces_from(range.start);
        while left > 0
            && let Some(piece) = pieces.next()
        {
            let piece = Piece { len: piece.len.min(left), ..piece };
            left -= piece.len;
            self.read_piece(corpus, piece, max_output_bytes, output)?;
        }
        Ok(())
    }

    fn read_piece(&self, corpus: &Corpus, piece: Piece, max_output_bytes: u64, output: &mut Vec<u8>) -> Result<()> {
        match (piece.source, self.base_doc) {
            (Source::Base, Some(doc)) => extract_into(corpus, doc, piece.start, piece.len, max_output_bytes, output),
            _ => {
                output.extend_from_slice(self.fresh_text(piece));
                Ok(())
            }
        }
    }

    /// Replaces the bytes of `range`, which lies in the document, with `text`.
    pub fn splice(&mut self, corpus: &Corpus, range: Range<u64>, text: &[u8]) {
        if range.is_empty() && text.is_empty() {
            return;
        }
        if let Some(settled) = self.settled.take() {
            *self = *settled;
        }
        if self.extends_last_piece(&range) {
            self.append(corpus, text);
        } else if self.can_end_loose(&range) {
            self.borders = Borders::LooseEnd { start: range.start };
            self.replace(range, &[text]);
        } else if self.settle(corpus)
            && let Some(around) = self.surroundings(corpus, &range)
        {
            let added = [around.before(), text, around.behind()];
            let start = range.start - added[0].len() as u64;
            let end = range.end + added[2].len() as u64;
            self.follow_words(corpus, start..end, &added);
            self.replace(start..end, &added);
        } else {
            self.borders = Borders::Anywhere;
            self.changes.take();
            self.replace(range, &[text]);
        }
        if self.text.len() >= self.next_sweep_bytes {
            self.sweep();
        }
    }

    /// Extends the last piece. Its first character does not change, so the piece still begins at a
    /// cut.
    fn append(&mut self, corpus: &Corpus, text: &[u8]) {
        let end = self.len_bytes();
        if self.changes.get().is_some() {
            match self.surroundings(corpus, &(end..end)) {
                Some(around) => {
                    let start = end - around.before().len() as u64;
                    self.follow_words(corpus, start..end, &[around.before(), text]);
                }
                None => {
                    self.changes.take();
                }
            }
        }
        self.text.extend_from_slice(text);
        self.pieces.extend_last(text.len() as u64);
    }

    /// Returns the bytes around `range` up to the next cuts, if there are some nearby.
    fn surroundings(&self, corpus: &Corpus, range: &Range<u64>) -> Option<Surroundings> {
        let read = |range, output: &mut Vec<u8>| self.read(corpus, range, DEFAULT_MAX_OUTPUT_BYTES, output);
        surroundings(corpus.profile(), self.len_bytes(), range, read)
    }

    /// Replaces the bytes of `range` with `texts`, one after the other.
    fn replace(&mut self, range: Range<u64>, texts: &[&[u8]]) {
        let start = self.text.len() as u64;
        self.text.reserve(texts.iter().map(|text| text.len()).sum());
        texts.iter().for_each(|text| self.text.extend_from_slice(text));
        let len = self.text.len() as u64 - start;
        self.pieces.replace(range.start, range.end, Piece { source: Source::Text, start, len });
    }

    /// Returns true if text inserted at `range` follows that of the last piece, in the buffer too.
    fn extends_last_piece(&self, range: &Range<u64>) -> bool {
        range.start == self.len_bytes()
            && self
                .pieces
                .last_byte()
                .is_some_and(|last| last.source == Source::Text && last.end() == self.text.len() as u64)
    }

    /// Updates the word changes, if there are any. `range`, which begins and ends at cuts, is about
    /// to be replaced with `added`, one after the other.
    fn follow_words(&mut self, corpus: &Corpus, range: Range<u64>, added: &[&[u8]]) {
        let Some(mut changes) = self.changes.take() else { return };
        let is_short = range.end - range.start <= MAX_COUNTED_BYTES;
        if is_short && self.leave(corpus, range, &mut changes).is_ok() {
            changes.add(corpus.profile(), &added.concat());
            self.changes = OnceLock::from(changes);
        }
    }

    /// Records that the words of `range`, which begins and ends at cuts, are removed.
    fn leave(&self, corpus: &Corpus, range: Range<u64>, changes: &mut WordChanges) -> Result<()> {
        let mut left = range.end - range.start;
        let mut pieces = self.pieces.pieces_from(range.start);
        let mut text = Vec::new();
        while left > 0
            && let Some(piece) = pieces.next()
        {
            let piece = Piece { len: piece.len.min(left), ..piece };
            left -= piece.len;
            if piece.source == Source::Text {
                changes.remove(corpus.profile(), self.fresh_text(piece));
                continue;
            }
            text.clear();
            self.read_piece(corpus, piece, DEFAULT_MAX_OUTPUT_BYTES, &mut text)?;
            changes.lose(corpus.profile(), &text);
        }
        Ok(())
    }

    /// Removes text that is in no piece from the buffer, if it is at least half of the buffer.
    fn sweep(&mut self) {
        let is_fresh = |piece: &Piece| piece.source == Source::Text;
        let live_bytes: u64 = self.pieces().filter(is_fresh).map(|piece| piece.len).sum();
        if live_bytes <= self.text.len() as u64 / 2 {
            let mut text = Vec::with_capacity(live_bytes as usize);
            let mut pieces = PieceTree::new(Piece { source: Source::Text, start: 0, len: 0 });
            for mut piece in self.pieces() {
                if is_fresh(&piece) {
                    let start = text.len() as u64;
                    text.extend_from_slice(self.fresh_text(piece));
                    piece.start = start;
                }
                let end = pieces.len_bytes();
                pieces.replace(end, end, piece);
            }
            (self.text, self.pieces) = (text, pieces);
        }
        self.next_sweep_bytes = FIRST_SWEEP_BYTES.max(self.text.len().saturating_mul(2));
    }

    /// Returns the number of occurrences of `word`.
    pub fn count(&self, corpus: &Corpus, word: &str) -> Result<u64> {
        let settled = self.settled(corpus);
        if !settled.is_aligned() {
            let mut offsets = Vec::new();
            self.find_by_reading(corpus, word, &mut offsets)?;
            return Ok(offsets.len() as u64);
        }
        let change = settled.changes(corpus)?.for_word(word.as_bytes());
        let by_base = match self.base_doc {
            Some(doc) => count(corpus, doc, word)?,
            None => 0,
        };
        Ok(by_base.saturating_sub(change.lost) + change.fresh)
    }

    /// Appends the byte offsets of `word`, in ascending order, to `offsets`.
    pub fn find(&self, corpus: &Corpus, word: &str, offsets: &mut Vec<u64>) -> Result<()> {
        let settled = self.settled(corpus);
        if !settled.is_aligned() {
            return self.find_by_reading(corpus, word, offsets);
        }
        let num_fresh = settled.changes(corpus)?.for_word(word.as_bytes()).fresh;
        let mut in_base = Vec::new();
        if let Some(doc) = self.base_doc {
            find(corpus, doc, word, &mut in_base)?;
        }
        let mut in_base = in_base.as_slice();
        let mut fresh_left = num_fresh;
        let mut at = 0u64;
        for piece in settled.pieces() {
            if in_base.is_empty() && fresh_left == 0 {
                break;
            }
            if piece.source == Source::Base {
                let num_before = in_base.partition_point(|&offset| offset < piece.start);
                let here = &in_base[num_before..];
                let num_here = here.partition_point(|&offset| offset < piece.end());
                offsets.extend(here[..num_here].iter().map(|offset| at + (offset - piece.start)));
                in_base = &here[num_here..];
            } else if fresh_left > 0 {
                let num_before = offsets.len();
                let text = settled.fresh_text(piece);
                find_word(corpus.profile(), text, word, |offset| offsets.push(at + offset));
                fresh_left -= (offsets.len() - num_before) as u64;
            }
            at += piece.len;
        }
        Ok(())
    }

    fn find_by_reading(&self, corpus: &Corpus, word: &str, offsets: &mut Vec<u64>) -> Result<()> {
        let mut text = Vec::new();
        self.read(corpus, 0..self.len_bytes(), DEFAULT_MAX_OUTPUT_BYTES, &mut text)?;
        find_word(corpus.profile(), &text, word, |offset| offsets.push(offset));
        Ok(())
    }

    /// Returns the word changes of this document, which is aligned.
    fn changes(&self, corpus: &Corpus) -> Result<&WordChanges> {
        if let Some(changes) = self.changes.get() {
            return Ok(changes);
        }
        let changes = self.changes_of_pieces(corpus)?;
        Ok(self.changes.get_or_init(|| Box::new(changes)))
    }

    /// Computes the word changes from the pieces, by reading all text that differs from the base.
    fn changes_of_pieces(&self, corpus: &Corpus) -> Result<WordChanges> {
        let mut changes = WordChanges::default();
        let mut base_at = 0;
        let mut text = Vec::new();
        let mut lose = |changes: &mut WordChanges, lost: Range<u64>| -> Result<()> {
            text.clear();
            let piece = Piece { source: Source::Base, start: lost.start, len: lost.end - lost.start };
            self.read_piece(corpus, piece, DEFAULT_MAX_OUTPUT_BYTES, &mut text)?;
            changes.lose(corpus.profile(), &text);
            Ok(())
        };
        for piece in self.pieces() {
            if piece.source == Source::Text {
                changes.add(corpus.profile(), self.fresh_text(piece));
                continue;
            }
            lose(&mut changes, base_at..piece.start)?;
            base_at = piece.end();
        }
        if let Some(doc) = self.base_doc {
            let end = crate::read::document_len_bytes(corpus, doc)?;
            lose(&mut changes, base_at..end)?;
        }
        Ok(changes)
    }
}

/// Calls `found` with the offset of each `word` of `text`, which begins and ends at a cut.
fn find_word(profile: TokenizerProfile, text: &[u8], word: &str, mut found: impl FnMut(u64)) {
    if memchr::memmem::find(text, word.as_bytes()).is_none() {
        return;
    }
    let mut at = 0;
    for_each_token(profile, text, |token| {
        if token.is_word && token.bytes == word.as_bytes() {
            found(at);
        }
        at += token.bytes.len() as u64;
    });
}

impl EditedDocument {
    /// Returns true if text for `range` is appended at the end, and there are no word changes to
    /// update.
    fn can_end_loose(&self, range: &Range<u64>) -> bool {
        range.start == self.len_bytes()
            && range.start > 0
            && self.borders == Borders::AtCuts
            && self.changes.get().is_none()
    }

    /// Finds the cuts beside a loose border. Returns true if all borders are then at cuts.
    fn settle(&mut self, corpus: &Corpus) -> bool {
        if let Borders::LooseEnd { start } = self.borders {
            self.borders = match self.settle_at(corpus, start) {
                Some(()) => Borders::AtCuts,
                None => Borders::Anywhere,
            };
        }
        self.borders == Borders::AtCuts
    }

    /// Writes the text beside the border at `start` again, from cut to cut. If there is no cut
    /// nearby in the last piece, all of that piece is written again.
    fn settle_at(&mut self, corpus: &Corpus, start: u64) -> Option<()> {
        let ranges = [start..start, start..self.len_bytes()];
        let mut found = ranges.into_iter().filter_map(|range| {
            let around = self.surroundings(corpus, &range)?;
            Some((range, around))
        });
        let (range, around) = found.next()?;
        let mut text = Vec::new();
        self.read(corpus, range.clone(), u64::MAX, &mut text).ok()?;
        let before = around.before();
        let behind = around.behind();
        let replaced = range.start - before.len() as u64..range.end + behind.len() as u64;
        self.replace(replaced, &[before, &text, behind]);
        Some(())
    }

    /// Returns the document with every border at a cut, or [not aligned](Self::is_aligned).
    pub fn settled(&self, corpus: &Corpus) -> &EditedDocument {
        if !matches!(self.borders, Borders::LooseEnd { .. }) {
            return self;
        }
        self.settled.get_or_init(|| {
            let mut settled = Box::new(self.clone());
            settled.settle(corpus);
            settled
        })
    }
}

/// Returns the number of occurrences of `word` in document `doc_id`, which must exist.
pub(super) fn count(corpus: &Corpus, doc_id: u64, word: &str) -> Result<u64> {
    let kept = query::kept_count(corpus, doc_id, word);
    let question = Question::Living { keeps_words: kept.is_some() };
    match (question.way(None, []), kept) {
        (Way::KeptWords, Some(count)) => return Ok(count),
        (Way::Climb { max_positions }, _) => {
            let mut count = 0;
            if climb::<false>(corpus, doc_id, word, max_positions, &mut |_| count += 1) {
                return Ok(count);
            }
        }
        _ => {}
    }
    let options = SearchOptions { doc_id: Some(doc_id), ..Default::default() };
    query::count(corpus, &Query::for_word(word), &options)
}

/// Appends the byte offsets of `word` in document `doc_id`, which must exist, to `offsets`, in
/// ascending order.
pub(super) fn find(corpus: &Corpus, doc_id: u64, word: &str, offsets: &mut Vec<u64>) -> Result<()> {
    let kept = query::kept_count(corpus, doc_id, word);
    let question = Question::Living { keeps_words: kept.is_some() };
    let mut way = question.way(None, []);
    if way == Way::KeptWords {
        if kept == Some(0) {
            return Ok(());
        }
        way = question.way(Some(way), []);
    }
    if let Way::Climb { max_positions } = way {
        let num_before = offsets.len();
        if climb::<true>(corpus, doc_id, word, max_positions, &mut |offset| offsets.push(offset)) {
            offsets[num_before..].sort_unstable();
            return Ok(());
        }
        offsets.truncate(num_before);
    }
    let options = SearchOptions { doc_id: Some(doc_id), ..Default::default() };
    search_with(corpus, &Query::for_word(word), &options, &mut |hits| {
        offsets.extend(hits.iter().map(|hit| hit.byte_offset));
        ControlFlow::Continue(())
    })
}

/// Calls `found` with the offset (if `OFFSETS`, else 0) of each occurrence, in no order. Returns
/// false if there are more than `max_positions` places; `found` may have been called before.
fn climb<const OFFSETS: bool>(
    corpus: &Corpus,
    doc_id: u64,
    word: &str,
    max_positions: usize,
    found: &mut dyn FnMut(u64),
) -> bool {
    let mut places_left = max_positions;
    let mut part_start = 0u64;
    let mut parts = corpus.doc_parts(doc_id).peekable();
    while let Some((segment_idx, doc)) = parts.next() {
        let segment = &corpus.segments()[segment_idx];
        if let Some(word) = segment.dictionary.word_id(word.as_bytes()) {
            let range = segment.dag.doc_range(doc);
            let placed = |_, offset: u64| found(part_start.wrapping_add(offset));
            if !query::climb::<OFFSETS>(segment, &[range], word, &mut places_left, placed) {
                return false;
            }
        }
        if parts.peek().is_some() {
            part_start = part_start.wrapping_add(segment.doc_length_or_derive(doc).len_bytes);
        }
    }
    true
}

/// Change of the occurrences of one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WordChange {
    /// Number of occurrences in the base document that were removed.
    pub lost: u64,
    /// Number of occurrences in new text.
    pub fresh: u64,
}

/// Changes of all words whose occurrences differ from the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WordChanges {
    by_word: HashMap<Box<[u8]>, WordChange>,
}

impl WordChanges {
    /// Returns the change of `word`.
    pub fn for_word(&self, word: &[u8]) -> WordChange {
        self.by_word.get(word).copied().unwrap_or_default()
    }

    /// Records that the base lost `text`, which begins and ends at a cut.
    pub fn lose(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.lost += 1);
    }

    /// Records that `text`, which begins and ends at a cut, was inserted.
    pub fn add(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.fresh += 1);
    }

    /// Records that `text`, which was inserted before and begins and ends at a cut, was removed.
    pub fn remove(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.fresh -= 1);
    }

    /// Returns the approximate number of bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let words: usize = self.by_word.keys().map(|word| word.len()).sum();
        words + self.by_word.capacity() * size_of::<(Box<[u8]>, WordChange)>()
    }

    fn for_each_word(&mut self, profile: TokenizerProfile, text: &[u8], mut change: impl FnMut(&mut WordChange)) {
        for_each_token(profile, text, |token| {
            if !token.is_word {
                return;
            }
            match self.by_word.get_mut(token.bytes) {
                Some(known) => change(known),
                None => change(self.by_word.entry(token.bytes.into()).or_default()),
            }
        });
    }
}

/// Number of bytes on each side of an edit that are first searched for a cut.
const WINDOW_BYTES: u64 = 48;
/// Factor by which each window is wider than the one before.
const WINDOW_GROWTH: u64 = 9;
/// Most bytes on each side that are searched.
const MAX_WINDOW_BYTES: u64 = 4096;

/// The bytes between two cuts around an edit, before and after it.
pub(super) struct Surroundings {
    seen: Vec<u8>,
    kept: Range<usize>,
    /// Position of the edit in `seen`.
    place: usize,
}

impl Surroundings {
    pub fn before(&self) -> &[u8] {
        &self.seen[self.kept.start..self.place]
    }

    pub fn behind(&self) -> &[u8] {
        &self.seen[self.place..self.kept.end]
    }
}

/// Returns the bytes from the last cut before `range` to its start, and from its end to the first
/// cut after it, in a document of `len_bytes`. `read` appends a range of its bytes. Returns `None`
/// if there is no cut nearby or the bytes cannot be read.
pub(super) fn surroundings(
    profile: TokenizerProfile,
    len_bytes: u64,
    range: &Range<u64>,
    read: impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
) -> Option<Surroundings> {
    let mut window = WINDOW_BYTES;
    while window <= MAX_WINDOW_BYTES {
        if let Some(around) = within(profile, len_bytes, range, window, &read).ok()? {
            return Some(around);
        }
        window *= WINDOW_GROWTH;
    }
    None
}

fn within(
    profile: TokenizerProfile,
    len_bytes: u64,
    range: &Range<u64>,
    window: u64,
    read: &impl Fn(Range<u64>, &mut Vec<u8>) -> Result<()>,
) -> Result<Option<Surroundings>> {
    let first = range.start.saturating_sub(window);
    let last = len_bytes.min(range.end.saturating_add(window));
    let mut seen = Vec::with_capacity(2 * window as usize + 16);
    let stays = if range.is_empty() { [first..last, last..last] } else { [first..range.start, range.end..last] };
    for range in stays.into_iter().filter(|range| !range.is_empty()) {
        read(range, &mut seen)?;
    }
    let place = (range.start - first) as usize;
    let (before, behind) = seen.split_at(place);
    let start = last_cut(profile, before).or((first == 0).then_some(0));
    let is_end_seen = last == len_bytes;
    let end = first_cut(profile, behind).or(is_end_seen.then_some(behind.len()));
    let (Some(start), Some(num_behind)) = (start, end) else { return Ok(None) };
    Ok(Some(Surroundings { seen, kept: start..place + num_behind, place }))
}
