//! Occurrences of the leaves of a query that begin in one segment, in order.
//!
//! ```text
//! phrase     occurrences inside the segment, then those that cross its end
//! placed     those of the phrase at the first word of a document; exact ones, whose text is read and
//!            compared
//! NEAR       occurrences of its items ─▶ Windows ─▶ stretches
//!            (behind the end of the segment: while a stretch that begins in it can go on)
//! query      hits of all leaves, merged by a heap
//! ```
//!
//! Hits of phrases are produced one by one, stretches are listed for one segment at a time. Memory
//! is that of the places in the grammar and of these lists. Cost: O(log leaves) for each hit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::DocId;
use crate::read::extract;
use crate::segment::Corpus;

use crate::query::language::{Leaf, Place};
use crate::query::text_hits::{Rule, Windows};

use super::matching::occurrences::ItemStream;
use super::matching::sets::DocSet;
use super::matching::{PartStart, ResolvedQuery, doc_cut_after, part_start};
use super::text_hits::words;
use super::{Hit, segment_item_counts};

/// Documents of a segment, shared by the streams that are restricted to them.
type Filter<'a> = Option<&'a Arc<DocSet>>;

/// Hits of one leaf that begin in one segment, in order.
pub(in crate::query) struct LeafHits {
    /// Hits that end in the segment, if the leaf is a phrase.
    inside: Option<ItemStream>,
    /// Hits that end in a later segment. They begin in the last document, after all other hits.
    /// All hits, if the leaf is no phrase.
    listed: std::vec::IntoIter<Hit>,
    first_doc_id: u64,
    continued: PartStart,
}

impl LeafHits {
    fn from_list(hits: Vec<Hit>) -> Self {
        let first_doc_id = 0;
        let continued = PartStart::default();
        Self { inside: None, listed: hits.into_iter(), first_doc_id, continued }
    }

    /// Finds the occurrences of an item where `place` fits.
    fn from_part(
        resolved: &ResolvedQuery<'_>,
        segment_idx: usize,
        (item_idx, place): (usize, &Place),
        filter: Filter<'_>,
    ) -> Result<Self> {
        let all = Self::from_item(resolved, segment_idx, item_idx, filter)?;
        if place.is_any() {
            return Ok(all);
        }
        let mut fitting = Vec::new();
        for hit in all.filter(|hit| !place.is_first || hit.word_index == 0) {
            if has_gaps(resolved.corpus(), &hit, &place.gaps)? {
                fitting.push(hit);
            }
        }
        Ok(Self::from_list(fitting))
    }

    fn from_item(
        resolved: &ResolvedQuery<'_>,
        segment_idx: usize,
        item_idx: usize,
        filter: Filter<'_>,
    ) -> Result<Self> {
        let corpus = resolved.corpus();
        let cut_doc = doc_cut_after(corpus, segment_idx).filter(|&doc| filter.is_none_or(|docs| docs.contains(doc)));
        let item = resolved.item(segment_idx, item_idx);
        let inside = item.map(|item| item.stream(filter)).transpose()?;
        let mut across = Vec::new();
        if let Some(doc) = cut_doc {
            let matches = resolved.matches_across(segment_idx, item_idx)?;
            across.extend(matches.iter().map(|found| Hit {
                doc_id: corpus.doc_id(segment_idx, doc),
                byte_offset: found.byte_offset,
                byte_len: found.byte_len,
                word_index: found.word_idx,
            }));
        }
        Ok(Self {
            inside,
            listed: across.into_iter(),
            first_doc_id: corpus.first_doc_id(segment_idx),
            continued: part_start(corpus, segment_idx)?,
        })
    }

    /// Adds hits to `batch` until it has `max_len` or none are left.
    fn fill(&mut self, batch: &mut Vec<Hit>, max_len: usize) {
        if let Some(ItemStream::Walked { walk, byte_lens }) = &mut self.inside {
            // Most hits come from here: one loop without the layers between.
            while batch.len() < max_len
                && let Some(spot) = walk.next()
            {
                let start = if spot.doc == DocId::FIRST { self.continued } else { PartStart::default() };
                batch.push(Hit {
                    doc_id: self.first_doc_id + u64::from(spot.doc),
                    byte_offset: start.bytes + spot.offsets[0],
                    byte_len: byte_lens[spot.match_idx as usize],
                    word_index: start.words + spot.offsets[1],
                });
            }
        }
        let num_left = max_len - batch.len();
        batch.extend(self.take(num_left));
    }
}

impl Iterator for LeafHits {
    type Item = Hit;

    #[inline]
    fn next(&mut self) -> Option<Hit> {
        let Some((doc, found)) = self.inside.as_mut().and_then(Iterator::next) else {
            return self.listed.next();
        };
        let start = if doc == DocId::FIRST { self.continued } else { PartStart::default() };
        Some(Hit {
            doc_id: self.first_doc_id + u64::from(doc),
            byte_offset: start.bytes + found.byte_offset,
            byte_len: found.byte_len,
            word_index: start.words + found.word_idx,
        })
    }
}

/// Hits of several leaves or items in order, each with the index of its leaf or item.
pub(in crate::query) struct Merged {
    /// Next hit of each source that has one, and the index of the source; the least hit comes
    /// first.
    next: BinaryHeap<Reverse<(Hit, usize)>>,
    sources: Vec<LeafHits>,
}

impl Merged {
    fn new(mut sources: Vec<LeafHits>) -> Self {
        let first = |(idx, source): (usize, &mut LeafHits)| Some(Reverse((source.next()?, idx)));
        let next = sources.iter_mut().enumerate().filter_map(first).collect();
        Self { next, sources }
    }
}

impl Iterator for Merged {
    type Item = (Hit, usize);

    #[inline]
    fn next(&mut self) -> Option<(Hit, usize)> {
        let mut least = self.next.peek_mut()?;
        let Reverse((hit, idx)) = *least;
        match self.sources[idx].next() {
            Some(following) => least.0.0 = following,
            None => drop(PeekMut::pop(least)),
        }
        Some((hit, idx))
    }
}

/// Returns the hits of a leaf that is no plain phrase, which begin in segment `segment_idx`, in
/// order.
pub(in crate::query) fn listed(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    leaf: &Leaf,
    filter: Filter<'_>,
) -> Result<Vec<Hit>> {
    let Leaf::Placed { item, place } = leaf else {
        return stretches(resolved, segment_idx, leaf, filter);
    };
    let fitting = LeafHits::from_part(resolved, segment_idx, (*item, place), filter)?;
    Ok(fitting.collect())
}

/// Returns true if the texts around the words of `hit` are `gaps`, or if there are none.
fn has_gaps(corpus: &Corpus, hit: &Hit, gaps: &[String]) -> Result<bool> {
    let [before, between @ .., behind] = gaps else { return Ok(true) };
    let Some(start) = hit.byte_offset.checked_sub(before.len() as u64) else { return Ok(false) };
    let len = hit.byte_len + (before.len() + behind.len()) as u64;
    let text = extract(corpus, hit.doc_id, start, len)?;
    let inside = text.strip_prefix(before.as_bytes());
    let inside = inside.and_then(|text| text.strip_suffix(behind.as_bytes()));
    let Some(inside) = inside.filter(|inside| inside.len() as u64 == hit.byte_len) else {
        return Ok(false);
    };
    let words = words(corpus.profile(), inside);
    let found = words.windows(2).map(|pair| &inside[pair[0].1.end..pair[1].1.start]);
    Ok(found.eq(between.iter().map(String::as_bytes)))
}

/// Returns the stretches of a leaf of several items that begin in segment `segment_idx`, in order.
fn stretches(resolved: &ResolvedQuery<'_>, segment_idx: usize, leaf: &Leaf, filter: Filter<'_>) -> Result<Vec<Hit>> {
    let (corpus, items) = (resolved.corpus(), leaf.items());
    let lens = items.iter().map(|&item| resolved.query().items()[item].len() as u64).collect();
    let rule = match leaf {
        Leaf::Gapped { max_between, .. } => Rule::Gapped(*max_between),
        Leaf::Near { max_between, .. } => Rule::Near(*max_between),
        Leaf::Phrase(_) | Leaf::Placed { .. } => Rule::Near(0),
    };
    let mut windows = Windows::new(rule, lens);
    let mut found = Vec::new();
    let mut last = None;
    let mut note = |hit: Hit| found.push(hit);
    let docs = Arc::new(docs_with_all(resolved, segment_idx, items, filter)?);
    for (hit, part) in occurrences(resolved, segment_idx, leaf, &docs)? {
        last = Some(hit);
        windows.push(part, hit, true, &mut note);
    }
    // A stretch of the last document can end in a later segment.
    let last_word = last.map_or(0, |hit| hit.word_index).saturating_add(windows.reach_words());
    let cut_doc = doc_cut_after(corpus, segment_idx).map(|doc| corpus.doc_id(segment_idx, doc));
    let cut_doc = last.map(|hit| hit.doc_id).filter(|&doc_id| cut_doc == Some(doc_id));
    let parts = cut_doc.map(|doc_id| corpus.doc_parts(doc_id));
    let later = parts.into_iter().flatten().filter(|&(idx, _)| idx > segment_idx);
    'segments: for (idx, doc) in later {
        let mut docs = DocSet::none(resolved.num_docs(idx));
        docs.insert(doc);
        for (hit, part) in occurrences(resolved, idx, leaf, &Arc::new(docs))? {
            if hit.word_index > last_word {
                break 'segments;
            }
            windows.push(part, hit, false, &mut note);
        }
    }
    windows.finish(&mut note);
    Ok(found)
}

fn occurrences(resolved: &ResolvedQuery<'_>, segment_idx: usize, leaf: &Leaf, docs: &Arc<DocSet>) -> Result<Merged> {
    let of = |(part, &item): (usize, &usize)| {
        LeafHits::from_part(resolved, segment_idx, (item, leaf.place(part)), Some(docs))
    };
    let sources =
        if docs.is_empty() { Vec::new() } else { leaf.items().iter().enumerate().map(of).collect::<Result<_>>()? };
    Ok(Merged::new(sources))
}

/// Returns the documents of `filter` that have all `items` in segment `segment_idx`, and those that
/// are cut there and may have them in another segment.
fn docs_with_all(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    items: &[usize],
    filter: Filter<'_>,
) -> Result<DocSet> {
    let corpus = resolved.corpus();
    let num_docs = resolved.num_docs(segment_idx);
    let mut docs = match filter {
        Some(docs) => docs.as_ref().clone(),
        None => DocSet::all(num_docs),
    };
    let cut = doc_cut_after(corpus, segment_idx).into_iter().filter(|&doc| docs.contains(doc));
    let cut: Vec<DocId> = cut.collect();
    for &item in items {
        if docs.is_empty() {
            break;
        }
        let is_all = filter.is_none() && docs.len() == num_docs;
        let counts = segment_item_counts(resolved, segment_idx, item, Some(&docs).filter(|_| !is_all))?;
        docs = DocSet::none(num_docs);
        docs.extend(counts.iter().map(|&(doc, _)| doc).chain(cut.iter().copied()));
    }
    Ok(docs)
}

/// Hits of all leaves that begin in one segment, in order.
pub(in crate::query) enum SegmentHits {
    One(Box<LeafHits>),
    Many(Merged),
}

impl SegmentHits {
    /// Finds the hits of `leaves`, each with the documents that it is restricted to.
    pub fn new<'f>(
        resolved: &ResolvedQuery<'_>,
        segment_idx: usize,
        leaves: impl Iterator<Item = (&'f Leaf, Filter<'f>)>,
    ) -> Result<Self> {
        let hits = leaves.map(|(leaf, filter)| match leaf {
            Leaf::Phrase(item) => LeafHits::from_item(resolved, segment_idx, *item, filter),
            _ => listed(resolved, segment_idx, leaf, filter).map(LeafHits::from_list),
        });
        let hits: Vec<LeafHits> = hits.collect::<Result<_>>()?;
        Ok(match <[LeafHits; 1]>::try_from(hits) {
            Ok([leaf]) => Self::One(Box::new(leaf)),
            Err(leaves) => Self::Many(Merged::new(leaves)),
        })
    }

    /// Fills the empty `batch` with at most `max_len` hits. It stays empty if no hits are left.
    pub fn fill(&mut self, batch: &mut Vec<Hit>, max_len: usize) {
        match self {
            Self::One(leaf) => leaf.fill(batch, max_len),
            Self::Many(leaves) => batch.extend(leaves.take(max_len).map(|(hit, _)| hit)),
        }
    }
}
