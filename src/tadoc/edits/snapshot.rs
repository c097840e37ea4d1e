//! Snapshot of a living corpus: a corpus for everything that is answered from rules.
//!
//! Segments without an edited document are shared. The others get new roots, and added documents form segments of their
//! own. Ids do not change: a dropped document becomes an empty one. A document that is cut over segments stays cut;
//! inserted text belongs to the part before it.
//!
//! Cost: O(G + V) for each segment with an edited document, in parallel on all threads, plus the
//! time of the grammar builder for added text.
//!
//! # Roots
//!
//! The rules stay, the roots of edited documents are rewritten.
//!
//! ```text
//! document   root elements of the base         | new text    | base again
//! new root   [rule 9] [rule 3] the [rule 7]      tokens        [rule 2] of
//!                              └ a rule that was cut is entered, down to the cut
//! ```
//!
//! Elements of the base are copied whole if they lie in a piece, and entered only at its ends. New words join the
//! dictionary, whose ids follow byte order, so all terminals get new numbers. Rules and terminals that are no longer
//! used are removed, so that no answer lists them. Cost: O(G + V + new text). The spaceless model holds across pieces:
//! a blank is held back until it is known if a word follows.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::grammar::{Dedup, Grammar, build_rounds};
use crate::ids::{DocId, RuleId};
use crate::read::DEFAULT_MAX_OUTPUT_BYTES;
use crate::segment::{Corpus, Dag, Measure, Paths, Segment};
use crate::text::{Dictionary, TokenizedBlock, TokenizerProfile, for_each_token, tokenize_block};

use super::document::EditedDocument;
use super::piece_tree::Source;
use super::{Current, LivingCorpus, Origin, RunSource, absent_document};

/// Most bytes of text of a segment of added documents, unless one document has more.
const BLOCK_BYTES: usize = 64 << 20;

/// A piece of one part of a document.
enum PartPiece<'a> {
    /// Range of bytes of the part in the base.
    Base(Range<u64>),
    Fresh(&'a [u8]),
    Read(Vec<u8>),
}

/// Pieces of the documents of a segment that differ from the base.
type NewDocuments<'a> = BTreeMap<DocId, Vec<PartPiece<'a>>>;

impl LivingCorpus {
    /// Returns the current state as a corpus, on which every analysis and every access runs.
    /// Documents keep their ids. A [dropped](Self::dropped_docs) document is empty there and keeps
    /// its path.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a segment has too many words or elements for
    /// 32 bits, or if a document without any place to cut is larger than
    /// [`DEFAULT_MAX_OUTPUT_BYTES`]; [`Error::InvalidArgument`] for
    /// an added document of 4 GiB or more.
    pub fn snapshot(&self) -> Result<Corpus> {
        let base = self.base();
        let mut by_segment: Vec<NewDocuments<'_>> = Vec::new();
        by_segment.resize_with(base.segments().len(), BTreeMap::new);
        for doc_id in self.dropped_docs() {
            if let Some(Origin::Base(doc)) = self.origin(doc_id) {
                for (segment_idx, doc) in base.doc_parts(doc) {
                    by_segment[segment_idx].insert(doc, Vec::new());
                }
            }
        }
        for doc_id in self.edited_docs() {
            if let (Some(Origin::Base(doc)), Current::Edited(document)) = (self.origin(doc_id), self.current(doc_id)?) {
                for (segment_idx, doc, pieces) in parts(base, doc, document)? {
                    by_segment[segment_idx].insert(doc, pieces);
                }
            }
        }
        let changed = base.segments().par_iter().zip(by_segment);
        let changed = changed
            .map(|(segment, documents)| with_documents(base.profile(), segment, &documents))
            .collect::<Result<Vec<_>>>()?;
        let mut segments = Vec::with_capacity(changed.len());
        for (doc_ids, source) in self.runs() {
            match source {
                RunSource::Base { segments: of_run, .. } => {
                    segments.extend_from_slice(&changed[of_run.clone()]);
                }
                RunSource::Added { .. } => segments.extend(self.added_segments(doc_ids)?),
                RunSource::Absent => return Err(absent_document(doc_ids.start)),
            }
        }
        Ok(Corpus::new(base.profile(), segments))
    }

    /// Builds segments of the documents `doc_ids`, which were added.
    fn added_segments(&self, doc_ids: Range<u64>) -> Result<Vec<Arc<Segment>>> {
        let mut segments = Vec::new();
        let mut text = Vec::new();
        let mut doc_ends = Vec::new();
        let mut paths = Paths::default();
        for doc_id in doc_ids {
            if !self.is_dropped(doc_id)
                && let Current::Edited(document) = self.current(doc_id)?
            {
                let len = document.len_bytes();
                if !doc_ends.is_empty() && text.len() as u64 + len > BLOCK_BYTES as u64 {
                    segments.push(built(self.base().profile(), &text, &doc_ends, paths)?);
                    text.clear();
                    doc_ends.clear();
                    paths = Paths::default();
                }
                document.read(self.base(), 0..len, u64::MAX, &mut text)?;
            }
            doc_ends.push(text.len());
            paths.push(self.path(doc_id).unwrap_or_default());
        }
        if !doc_ends.is_empty() {
            segments.push(built(self.base().profile(), &text, &doc_ends, paths)?);
        }
        Ok(segments)
    }
}

/// Returns the pieces of each part of document `doc_id` of the base: segment, id there, pieces.
fn parts<'a>(
    base: &Corpus,
    doc_id: u64,
    document: &'a EditedDocument,
) -> Result<Vec<(usize, DocId, Vec<PartPiece<'a>>)>> {
    let mut parts: Vec<_> = base.doc_parts(doc_id).map(|(segment_idx, doc)| (segment_idx, doc, Vec::new())).collect();
    let document = document.settled(base);
    if !document.is_aligned() {
        let mut text = Vec::new();
        let len = document.len_bytes();
        document.read(base, 0..len, DEFAULT_MAX_OUTPUT_BYTES, &mut text)?;
        parts.iter_mut().take(1).for_each(|part| part.2.push(PartPiece::Read(std::mem::take(&mut text))));
        return Ok(parts);
    }
    let part_len = |part: &(usize, DocId, _)| base.segments()[part.0].doc_length_or_derive(part.1).len_bytes;
    let mut part_idx = 0;
    let mut part_start = 0;
    for piece in document.pieces() {
        if piece.source == Source::Text {
            parts[part_idx].2.push(PartPiece::Fresh(document.fresh_text(piece)));
            continue;
        }
        let mut at = piece.start;
        while at < piece.end() {
            let part_end = part_start + part_len(&parts[part_idx]);
            if at >= part_end && part_idx + 1 < parts.len() {
                (part_idx, part_start) = (part_idx + 1, part_end);
                continue;
            }
            let end = piece.end().min(part_end);
            parts[part_idx].2.push(PartPiece::Base(at - part_start..end - part_start));
            at = end;
        }
    }
    Ok(parts)
}

/// Returns `segment` with its documents replaced by `documents`.
fn with_documents(
    profile: TokenizerProfile,
    segment: &Arc<Segment>,
    documents: &NewDocuments<'_>,
) -> Result<Arc<Segment>> {
    if documents.is_empty() {
        return Ok(segment.clone());
    }
    let mut writer = RootWriter::new(segment, profile);
    for doc in segment.dag.grammar().docs() {
        let Some(pieces) = documents.get(&doc) else {
            writer.copy_document(doc);
            continue;
        };
        for piece in pieces {
            match piece {
                PartPiece::Base(bytes) => writer.push_base(doc, bytes.clone()),
                PartPiece::Fresh(text) => writer.push_text(text),
                PartPiece::Read(text) => writer.push_text(text),
            }
        }
        writer.end_document();
    }
    Ok(Arc::new(writer.finish()?))
}

/// Builds a segment of new documents.
fn built(profile: TokenizerProfile, text: &[u8], doc_ends: &[usize], paths: Paths) -> Result<Arc<Segment>> {
    let TokenizedBlock { dictionary, tokens, doc_offsets, .. } = tokenize_block(profile, text, doc_ends)?;
    let grammar = build_rounds(tokens, &doc_offsets, dictionary.len(), Dedup::Auto)?;
    let dag = Dag::new(grammar, dictionary.num_words(), dictionary.lengths())?;
    Ok(Arc::new(Segment::new(dictionary, dag, paths, false)))
}

/// A writer of the root of a segment.
pub(super) struct RootWriter<'a> {
    segment: &'a Segment,
    profile: TokenizerProfile,
    symbols: Vec<u32>,
    doc_offsets: Vec<u32>,
    /// Ids of the terminals of new text, by class and bytes. Ids that are not in the base follow
    /// all ids of the base.
    terminals: FxHashMap<(bool, Box<[u8]>), u32>,
    /// Terminals that are not in the base, in order of id.
    new_terminals: Vec<(bool, Box<[u8]>)>,
    after_word: bool,
    /// Flag: a blank comes before the next element, or is implied there.
    blank_before: bool,
}

impl<'a> RootWriter<'a> {
    /// Creates a writer for `segment` without any document.
    pub fn new(segment: &'a Segment, profile: TokenizerProfile) -> Self {
        Self {
            segment,
            profile,
            symbols: Vec::new(),
            doc_offsets: vec![0],
            terminals: FxHashMap::default(),
            new_terminals: Vec::new(),
            after_word: false,
            blank_before: false,
        }
    }

    /// Appends document `doc` of the segment as it is, and ends the document.
    pub fn copy_document(&mut self, doc: DocId) {
        let dag = &self.segment.dag;
        self.symbols.extend_from_slice(&dag.grammar().symbols[dag.doc_range(doc)]);
        self.doc_offsets.push(self.symbols.len() as u32);
    }

    /// Ends the document.
    pub fn end_document(&mut self) {
        if self.blank_before {
            let blank = self.terminal(false, b" ");
            self.symbols.push(blank);
        }
        (self.after_word, self.blank_before) = (false, false);
        self.doc_offsets.push(self.symbols.len() as u32);
    }

    /// Appends new text, which begins and ends at a cut.
    pub fn push_text(&mut self, text: &[u8]) {
        for_each_token(self.profile, text, |token| {
            if token.is_word {
                let word = self.terminal(true, token.bytes);
                self.push(word, true, true);
            } else {
                self.push_separator(token.bytes);
            }
        });
    }

    /// Appends bytes `bytes` of document `doc` of the segment.
    pub fn push_base(&mut self, doc: DocId, bytes: Range<u64>) {
        if bytes.is_empty() {
            return;
        }
        let segment = self.segment;
        let dag = &segment.dag;
        let sums = segment.prefix_sums_or_derive();
        let mut stack = vec![enter(segment, dag.doc_range(doc), 0, bytes.start)];
        while let Some(frame) = stack.last_mut() {
            let Some(position) = frame.positions.next() else {
                stack.pop();
                continue;
            };
            let element = dag.grammar().symbols[position];
            let (len, has_blank) = sums.len_bytes_at(dag, position);
            if has_blank {
                self.blank_before |= bytes.contains(&frame.at);
                frame.at += 1;
            }
            let start = frame.at;
            let end = frame.at + len;
            frame.at = end;
            if start >= bytes.end {
                return;
            }
            let from = bytes.start.max(start);
            let to = bytes.end.min(end);
            match dag.rule_of(element) {
                _ if from >= to => {}
                Some(rule_id) if to - from < len => {
                    stack.push(enter(segment, dag.rule_range(rule_id), start, from));
                }
                Some(_) => {
                    let begins = dag.begins_with_word(element);
                    self.push(element, begins, dag.ends_with_word(element));
                }
                None if to - from < len => {
                    let token = segment.dictionary.get(element);
                    self.push_text(&token[(from - start) as usize..(to - start) as usize]);
                }
                None if dag.begins_with_word(element) => self.push(element, true, true),
                None if len == 1 => self.push_separator(segment.dictionary.get(element)),
                None => self.push(element, false, false),
            }
        }
    }

    fn push_separator(&mut self, separator: &[u8]) {
        if separator == b" " && !self.blank_before {
            self.blank_before = true;
        } else {
            let separator = self.terminal(false, separator);
            self.push(separator, false, false);
        }
    }

    fn push(&mut self, element: u32, begins_with_word: bool, ends_with_word: bool) {
        let meets_word = self.after_word && begins_with_word;
        if std::mem::take(&mut self.blank_before) != meets_word {
            // A blank that is not implied, or words that touch.
            let separator = self.terminal(false, if meets_word { b"" } else { b" " });
            self.symbols.push(separator);
        }
        self.symbols.push(element);
        self.after_word = ends_with_word;
    }

    fn terminal(&mut self, is_word: bool, bytes: &[u8]) -> u32 {
        let key = (is_word, Box::from(bytes));
        if let Some(&id) = self.terminals.get(&key) {
            return id;
        }
        let dictionary = &self.segment.dictionary;
        let known = if is_word { dictionary.word_id(bytes).map(u32::from) } else { dictionary.separator_id(bytes) };
        let id = known.unwrap_or_else(|| {
            self.new_terminals.push(key.clone());
            (self.segment.dag.num_elements() + self.new_terminals.len() - 1) as u32
        });
        self.terminals.insert(key, id);
        id
    }

    /// Returns the segment of the documents written, which are as many as `segment` has.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the root, the words or the ids have more than 32 bits.
    pub fn finish(self) -> Result<Segment> {
        let dag = &self.segment.dag;
        check_size("elements of a segment", self.symbols.len() + dag.grammar().symbols.len())?;
        check_size("elements of a segment", dag.num_elements() + self.new_terminals.len())?;
        let is_used = self.used_elements();
        let mut ids = vec![u32::MAX; is_used.len()];
        let (dictionary, num_words) = self.number_terminals(&is_used, &mut ids)?;
        let num_terminals = dictionary.len();
        let element_for = |rule_id| dag.grammar().element_for(rule_id) as usize;
        let is_rule_used = |&rule_id: &RuleId| is_used[element_for(rule_id)];
        let used_rules: Vec<RuleId> = dag.grammar().rule_ids().skip(1).filter(is_rule_used).collect();
        for (&rule_id, id) in used_rules.iter().zip(num_terminals + 1..) {
            ids[element_for(rule_id)] = id;
        }
        let mut symbols: Vec<u32> = self.symbols.iter().map(|&element| ids[element as usize]).collect();
        let mut rule_offsets = vec![0, symbols.len() as u32];
        for rule_id in used_rules {
            let rule = dag.grammar().rule(rule_id);
            symbols.extend(rule.iter().map(|&element| ids[element as usize]));
            rule_offsets.push(symbols.len() as u32);
        }
        let grammar = Grammar { num_terminals, rule_offsets, symbols, doc_offsets: self.doc_offsets };
        let dag = Dag::new(grammar, num_words, dictionary.lengths())?;
        let paths = self.segment.paths.clone();
        let continues = self.segment.continues;
        Ok(Segment::new(dictionary, dag, paths, continues))
    }

    /// Returns for each element of the base and each new terminal true if a document contains it.
    fn used_elements(&self) -> Vec<bool> {
        let dag = &self.segment.dag;
        let mut is_used = vec![false; dag.num_elements() + self.new_terminals.len()];
        self.symbols.iter().for_each(|&element| is_used[element as usize] = true);
        // Parents come before their children, so one pass reaches all.
        for rule_id in dag.grammar().rule_ids().skip(1) {
            if is_used[dag.grammar().element_for(rule_id) as usize] {
                let rule = dag.grammar().rule(rule_id);
                rule.iter().for_each(|&element| is_used[element as usize] = true);
            }
        }
        is_used
    }

    /// Builds the dictionary of all terminals in use and sets their `ids` in it. Returns the
    /// dictionary and its number of words.
    fn number_terminals(&self, is_used: &[bool], ids: &mut [u32]) -> Result<(Dictionary, u32)> {
        let base = &self.segment.dictionary;
        let first_new = self.segment.dag.num_elements();
        let mut arena = Vec::new();
        let mut offsets = vec![0u32];
        let mut num_words = 0;
        for (is_word, base_ids) in [(true, 0..base.num_words()), (false, base.num_words()..base.len())] {
            let mut new: Vec<(&[u8], usize)> = self
                .new_terminals
                .iter()
                .zip(first_new..)
                .filter(|((class, _), _)| *class == is_word)
                .map(|((_, bytes), element)| (&**bytes, element))
                .collect();
            new.sort_unstable();
            let mut new = new.into_iter().peekable();
            let mut take = |bytes: &[u8], element: usize| {
                ids[element] = offsets.len() as u32 - 1;
                arena.extend_from_slice(bytes);
                offsets.push(arena.len() as u32);
            };
            for id in base_ids.filter(|&id| is_used[id as usize]) {
                let bytes = base.get(id);
                while let Some((bytes, element)) = new.next_if(|new| new.0 < bytes) {
                    take(bytes, element);
                }
                take(bytes, id as usize);
            }
            new.for_each(|(bytes, element)| take(bytes, element));
            if is_word {
                num_words = offsets.len() as u32 - 1;
            }
        }
        check_size("bytes of the words of a segment", arena.len())?;
        Ok((Dictionary::from_parts(num_words, offsets, arena.into())?, num_words))
    }
}

/// Positions of one rule or document that are not visited yet.
struct Frame {
    positions: Range<usize>,
    /// Offset in the document of the next position, before its blank.
    at: u64,
}

/// Returns the positions of `range`, which begins at byte `start`, from the one that holds byte
/// `from` on.
fn enter(segment: &Segment, range: Range<usize>, start: u64, from: u64) -> Frame {
    let sums = segment.prefix_sums_or_derive();
    let (position, offset) = sums.locate(&segment.dag, Measure::Bytes, range.clone(), from - start);
    let blank = u64::from(sums.has_blank_before(position));
    Frame { positions: position..range.end, at: start + offset - blank }
}

fn check_size(what: &'static str, requested: usize) -> Result<()> {
    if u32::try_from(requested).is_ok() {
        return Ok(());
    }
    Err(Error::Capacity {
        what,
        requested: requested as u64,
        limit: u64::from(u32::MAX),
        knob: "the number of segments (rebuild the corpus, with smaller blocks)",
    })
}
