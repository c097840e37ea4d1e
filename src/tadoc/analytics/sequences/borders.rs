//! Windows across the places where a document is cut at the border of segments.

use std::ops::Range;

use crate::ids::DocId;
use crate::segment::Corpus;

use super::Sink;
use super::edges::Edges;

/// Passes the parts of each document that has several to `sink`, as the children of a rule of
/// weight 1. Does so for all documents, or for `only`.
pub(in crate::analytics) fn walk_borders(
    edges: &[Edges],
    corpus: &Corpus,
    only: Option<u64>,
    sink: &mut impl Sink,
) {
    match only {
        Some(doc_id) => walk_parts(edges, corpus.doc_parts(doc_id), sink),
        None => {
            let segments = corpus.segments().iter().enumerate();
            let mut last = None;
            for (at, _) in segments.filter(|(at, segment)| *at > 0 && segment.continues) {
                let doc_id = corpus.first_doc_id(at);
                if last.replace(doc_id) != Some(doc_id) {
                    walk_parts(edges, corpus.doc_parts(doc_id), sink);
                }
            }
        }
    }
}

fn walk_parts(edges: &[Edges], parts: impl Iterator<Item = (usize, DocId)>, sink: &mut impl Sink) {
    let (mut head, mut tail) = (Vec::new(), Vec::new());
    sink.begin(1);
    for (at, doc) in parts {
        let edges = &edges[at];
        let range: Range<usize> = edges.dag().doc_range(doc);
        edges.head(range.clone(), &mut head);
        edges.tail(range.clone(), &mut tail);
        let has_tail = edges.has_more_words(range, head.len() as u64);
        sink.push_child(&head, has_tail.then_some(tail.as_slice()));
    }
}
