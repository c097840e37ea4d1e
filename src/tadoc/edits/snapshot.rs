//! Snapshot of a living corpus: a corpus for everything that is answered from rules.
//!
//! Segments without an edited document are shared. The others get [new roots](super::root_writer),
//! and added documents form segments of their own. Ids do not change: a dropped document becomes an
//! empty one. A document that is cut over segments stays cut; inserted text belongs to the part
//! before it.
//!
//! Cost: O(G + V) for each segment with an edited document, in parallel on all threads, plus the
//! time of the grammar builder for added text.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::document::EditedDocument;
use super::living_corpus::{Current, LivingCorpus, Origin, RunSource, absent_document};
use super::piece_tree::Source;
use super::root_writer::RootWriter;
use crate::error::Result;
use crate::grammar::{RoundsOptions, build_rounds};
use crate::ids::DocId;
use crate::read::DEFAULT_MAX_OUTPUT_BYTES;
use crate::segment::{Corpus, Dag, Paths, Segment};
use crate::text::{TokenizedBlock, TokenizerProfile, tokenize_block};

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
    /// [`Error::Capacity`](crate::Error::Capacity) if a segment has too many words or elements for
    /// 32 bits, or if a document without any place to cut is larger than
    /// [`DEFAULT_MAX_OUTPUT_BYTES`]; [`Error::InvalidArgument`](crate::Error::InvalidArgument) for
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
            if let (Some(Origin::Base(doc)), Current::Edited(document)) =
                (self.origin(doc_id), self.current(doc_id)?)
            {
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
        let (mut text, mut doc_ends, mut paths) = (Vec::new(), Vec::new(), Paths::default());
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
    let mut parts: Vec<_> =
        base.doc_parts(doc_id).map(|(segment_idx, doc)| (segment_idx, doc, Vec::new())).collect();
    let document = document.settled(base);
    if !document.is_aligned() {
        let mut text = Vec::new();
        let len = document.len_bytes();
        document.read(base, 0..len, DEFAULT_MAX_OUTPUT_BYTES, &mut text)?;
        parts
            .iter_mut()
            .take(1)
            .for_each(|part| part.2.push(PartPiece::Read(std::mem::take(&mut text))));
        return Ok(parts);
    }
    let part_len =
        |part: &(usize, DocId, _)| base.segments()[part.0].doc_length_or_derive(part.1).len_bytes;
    let (mut part_idx, mut part_start) = (0, 0);
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
fn built(
    profile: TokenizerProfile,
    text: &[u8],
    doc_ends: &[usize],
    paths: Paths,
) -> Result<Arc<Segment>> {
    let TokenizedBlock { dictionary, tokens, doc_offsets, .. } =
        tokenize_block(profile, text, doc_ends)?;
    let grammar = build_rounds(tokens, &doc_offsets, dictionary.len(), &RoundsOptions::default())?;
    let dag = Dag::new(grammar, dictionary.num_words(), dictionary.lengths())?;
    Ok(Arc::new(Segment::new(dictionary, dag, paths, false)))
}
