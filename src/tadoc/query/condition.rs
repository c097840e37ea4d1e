//! Documents that meet the condition of a query, with the number of hits in each.
//!
//! ```text
//! a (b OR c) NOT d            documents of a segment
//! a          count by document: 1 2 5 8
//! b, c       counted in 1 2 5 8 only: 2 5 │ 5          OR: 2 5
//! d          counted in 2 5 only: 5                    NOT: 2
//! hits in 2  those of a and b; c is not there, d is excluded
//! ```
//!
//! Segments are processed one after the other. Each leaf is counted in the documents that the
//! leaves before it left. Matches of phrases are counted by rule and passed up to the documents,
//! so the time is O(places above the matches), however often these occur; stretches of NEAR are
//! listed. If few documents are left, they are read instead. A document that was cut is reported
//! after its last part. Memory is that of the counts of one segment.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::error::Result;
use crate::ids::DocId;
use crate::segment::Corpus;

use super::hit::{DocCounts, DocumentCount, add_to, checked_sum, segment_item_counts};
use super::matching::resolved::{ResolvedQuery, doc_cut_after};
use super::matching::sets::DocSet;
use crate::query::hits::listed;
use crate::query::language::{Expression, Leaf};

/// Occurrences of each leaf so far in a document that continues in the next segment with documents.
type OpenDoc = Vec<u64>;

/// Documents of one segment that meet the condition. A document that was cut belongs to the segment
/// of its last part.
#[derive(Debug, Default)]
pub(in crate::query) struct Met {
    /// Documents, ascending, each with the number of hits of all leaves.
    pub counts: Vec<DocumentCount>,
    /// For each leaf the ids of the documents in which it has hits, ascending.
    pub by_leaf: Vec<Vec<u64>>,
}

/// Calls `visit` with the documents that meet the condition of the query in one segment after the
/// other, out of `docs`, which ascend, or out of all documents.
pub(in crate::query) fn meet_condition(
    resolved: &ResolvedQuery<'_>,
    docs: Option<&[u64]>,
    visit: &mut dyn FnMut(&Met) -> Result<ControlFlow<()>>,
) -> Result<()> {
    let corpus = resolved.corpus();
    let mut open: Option<OpenDoc> = None;
    for segment_idx in 0..corpus.segments().len() {
        let filter = docs.map(|docs| local_docs(corpus, segment_idx, docs));
        if resolved.num_docs(segment_idx) == 0 || filter.as_ref().is_some_and(DocSet::is_empty) {
            continue;
        }
        let mut evaluation = Evaluation::new(resolved, segment_idx, filter, open.take());
        let met = evaluation.met()?;
        open = evaluation.open();
        if visit(&met)?.is_break() {
            break;
        }
    }
    Ok(())
}

/// Evaluates the condition for the documents that end in one segment.
struct Evaluation<'r, 'q> {
    resolved: &'r ResolvedQuery<'q>,
    segment_idx: usize,
    /// Documents that are asked for; `None` for all.
    filter: Option<Arc<DocSet>>,
    /// The first document, if it continues from an earlier segment.
    before: Option<OpenDoc>,
    /// The last document, if it continues in a later segment.
    cut_doc: Option<DocId>,
    /// Number of places in the condition where each leaf stands.
    num_uses: Vec<usize>,
    /// Counts of each leaf that was asked for, without the document that continues.
    counts: Vec<Option<DocCounts>>,
    /// Counts of the document that continues.
    open_counts: OpenDoc,
}

/// Documents that meet an expression, and the same for its parts.
#[derive(Default)]
struct Found {
    docs: Vec<DocId>,
    parts: Vec<Found>,
}

impl<'r, 'q> Evaluation<'r, 'q> {
    fn new(
        resolved: &'r ResolvedQuery<'q>,
        segment_idx: usize,
        filter: Option<DocSet>,
        before: Option<OpenDoc>,
    ) -> Self {
        let num_leaves = resolved.query().leaves().len();
        let cut_doc = doc_cut_after(resolved.corpus(), segment_idx)
            .filter(|&doc| filter.as_ref().is_none_or(|docs| docs.contains(doc)));
        let mut num_uses = vec![0; num_leaves];
        count_uses(resolved.query().root(), &mut num_uses);
        Self {
            resolved,
            segment_idx,
            filter: filter.map(Arc::new),
            before,
            cut_doc,
            num_uses,
            counts: vec![None; num_leaves],
            open_counts: vec![0; num_leaves],
        }
    }

    /// Returns the counts of the document that continues after the segment.
    fn open(self) -> Option<OpenDoc> {
        self.cut_doc.map(|_| self.open_counts)
    }

    fn met(&mut self) -> Result<Met> {
        let root = self.resolved.query().root();
        let found = self.find(root, self.filter.clone())?;
        let mut of_leaves = vec![Vec::new(); self.counts.len()];
        note_hits(root, &found, &found.docs, &mut of_leaves);
        let mut sums: DocCounts = found.docs.iter().map(|&doc| (doc, 0)).collect();
        for (docs, counts) in of_leaves.iter().zip(&self.counts) {
            add_counts(&mut sums, docs, counts.as_deref().unwrap_or_default())?;
        }
        let corpus = self.resolved.corpus();
        let doc_id = |doc: DocId| corpus.doc_id(self.segment_idx, doc);
        let row = |(doc, count)| DocumentCount { doc_id: doc_id(doc), count };
        let ids = |docs: Vec<DocId>| docs.into_iter().map(doc_id).collect();
        Ok(Met { counts: sums.into_iter().map(row).collect(), by_leaf: of_leaves.into_iter().map(ids).collect() })
    }

    /// Returns the documents of `filter` that meet `expression`.
    fn find(&mut self, expression: &Expression, filter: Option<Arc<DocSet>>) -> Result<Found> {
        match expression {
            Expression::Leaf(leaf) => {
                let docs = self.docs_of_leaf(*leaf, filter)?;
                Ok(Found { docs, parts: Vec::new() })
            }
            Expression::And(parts) => {
                let mut all = Found::default();
                let mut left = filter;
                for part in parts {
                    let found = self.find(part, left)?;
                    all.docs.clone_from(&found.docs);
                    all.parts.push(found);
                    let docs = self.narrowed(&all.docs);
                    if docs.is_empty() {
                        // No document is left for the parts that follow, and none is cut.
                        return Ok(Found::default());
                    }
                    left = Some(docs);
                }
                Ok(all)
            }
            Expression::Or(parts) => {
                let found = parts.iter().map(|part| self.find(part, filter.clone()));
                let parts: Vec<Found> = found.collect::<Result<_>>()?;
                let mut docs: Vec<DocId> = parts.iter().flat_map(|part| &part.docs).copied().collect();
                docs.sort_unstable();
                docs.dedup();
                Ok(Found { docs, parts })
            }
            Expression::Not(parts) => {
                let [kept, excluded] = parts.as_ref();
                let kept = self.find(kept, filter)?;
                let left = self.narrowed(&kept.docs);
                if left.is_empty() {
                    return Ok(Found::default());
                }
                let excluded = self.find(excluded, Some(left))?;
                let mut excluded = excluded.docs.iter().peekable();
                let is_kept = |doc: &DocId| {
                    while excluded.next_if(|&next| next < doc).is_some() {}
                    excluded.peek() != Some(&doc)
                };
                let docs = kept.docs.iter().copied().filter(is_kept).collect();
                Ok(Found { docs, parts: vec![kept] })
            }
        }
    }

    /// Returns `docs` as a set, with the document that continues: later parts of it decide.
    fn narrowed(&self, docs: &[DocId]) -> Arc<DocSet> {
        let mut narrowed = DocSet::none(self.resolved.num_docs(self.segment_idx));
        narrowed.extend(docs.iter().copied().chain(self.cut_doc));
        Arc::new(narrowed)
    }

    /// Returns the documents of `filter` with hits of a leaf.
    fn docs_of_leaf(&mut self, leaf: usize, filter: Option<Arc<DocSet>>) -> Result<Vec<DocId>> {
        if self.counts[leaf].is_none() {
            // A leaf that stands in several places is counted once, for all of them.
            let is_shared = self.num_uses[leaf] > 1;
            let counted = if is_shared { self.filter.clone() } else { filter.clone() };
            self.counts[leaf] = Some(self.count(leaf, counted.as_ref())?);
        }
        let docs = self.counts[leaf].iter().flatten().map(|&(doc, _)| doc);
        Ok(docs.filter(|&doc| filter.as_ref().is_none_or(|docs| docs.contains(doc))).collect())
    }

    /// Counts a leaf in the documents of `filter`. Of the document that continues, the count goes
    /// to `open_counts`.
    fn count(&mut self, leaf: usize, filter: Option<&Arc<DocSet>>) -> Result<DocCounts> {
        let mut counts = segment_leaf_counts(self.resolved, self.segment_idx, leaf, filter)?;
        if let Some(before) = &self.before {
            add_to(&mut counts, DocId::FIRST, before[leaf])?;
        }
        if let Some(cut) = self.cut_doc {
            self.open_counts[leaf] = counts.pop_if(|last| last.0 == cut).map_or(0, |last| last.1);
        }
        Ok(counts)
    }
}

/// Adds the `counts` of `docs` to their `sums`. All three ascend, and `docs` are in both others.
fn add_counts(sums: &mut DocCounts, docs: &[DocId], counts: &[(DocId, u64)]) -> Result<()> {
    let (mut sums, mut counts) = (sums.iter_mut(), counts.iter());
    for &doc in docs {
        let sum = sums.find(|sum| sum.0 == doc);
        let count = counts.find(|count| count.0 == doc);
        if let (Some(sum), Some(count)) = (sum, count) {
            sum.1 = checked_sum([sum.1, count.1].into_iter())?;
        }
    }
    Ok(())
}

/// Counts the places where each leaf stands.
fn count_uses(expression: &Expression, num_uses: &mut [usize]) {
    match expression {
        Expression::Leaf(leaf) => num_uses[*leaf] += 1,
        Expression::And(parts) | Expression::Or(parts) => {
            parts.iter().for_each(|part| count_uses(part, num_uses));
        }
        Expression::Not(parts) => parts.iter().for_each(|part| count_uses(part, num_uses)),
    }
}

/// Adds the documents in which each leaf of `expression` has hits to `of_leaves`: those of `docs`,
/// which meet it, as far as the parts around the leaf hold, too.
fn note_hits(expression: &Expression, found: &Found, docs: &[DocId], of_leaves: &mut [Vec<DocId>]) {
    match expression {
        Expression::Leaf(leaf) => {
            let all = &mut of_leaves[*leaf];
            let is_first = all.is_empty();
            all.extend_from_slice(docs);
            if !is_first {
                all.sort_unstable();
                all.dedup();
            }
        }
        Expression::And(parts) => {
            let parts = parts.iter().zip(&found.parts);
            parts.for_each(|(part, found)| note_hits(part, found, docs, of_leaves));
        }
        Expression::Or(parts) => {
            for (part, found) in parts.iter().zip(&found.parts) {
                let mut asked = docs.iter().peekable();
                let is_asked = |doc: &DocId| {
                    while asked.next_if(|&next| next < doc).is_some() {}
                    asked.peek() == Some(&doc)
                };
                let both: Vec<DocId> = found.docs.iter().copied().filter(is_asked).collect();
                note_hits(part, found, &both, of_leaves);
            }
        }
        Expression::Not(parts) => {
            let kept = found.parts.first().into_iter();
            kept.for_each(|found| note_hits(&parts[0], found, docs, of_leaves));
        }
    }
}

/// Returns the number of hits of a leaf that begin in segment `segment_idx`, by document.
pub(in crate::query) fn segment_leaf_counts(
    resolved: &ResolvedQuery<'_>,
    segment_idx: usize,
    leaf: usize,
    filter: Option<&Arc<DocSet>>,
) -> Result<DocCounts> {
    let leaf = match &resolved.query().leaves()[leaf] {
        Leaf::Phrase(item) => {
            return segment_item_counts(resolved, segment_idx, *item, filter.map(Arc::as_ref));
        }
        leaf => leaf,
    };
    let first_doc_id = resolved.corpus().first_doc_id(segment_idx);
    let hits = listed(resolved, segment_idx, leaf, filter)?;
    let by_document = hits.chunk_by(|a, b| a.doc_id == b.doc_id);
    // Documents of a segment have numbers of 32 bits.
    let count = |hits: &[_]| hits.len() as u64;
    Ok(by_document.map(|hits| (DocId::from((hits[0].doc_id - first_doc_id) as u32), count(hits))).collect())
}

/// Returns the documents of `docs` (ascending ids) that have a part in segment `segment_idx`.
pub(in crate::query) fn local_docs(corpus: &Corpus, segment_idx: usize, docs: &[u64]) -> DocSet {
    let num_docs = corpus.segments()[segment_idx].dag.grammar().num_docs();
    let mut local = DocSet::none(num_docs);
    let begin = docs.partition_point(|&doc_id| doc_id < corpus.first_doc_id(segment_idx));
    local.extend(docs[begin..].iter().map_while(|&doc_id| corpus.doc_in(segment_idx, doc_id)));
    local
}
