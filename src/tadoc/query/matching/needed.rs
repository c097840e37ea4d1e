//! Choice of the segments that a query or a predicate on the text needs, by their dictionaries.
//!
//! ```text
//! segments        | a b | a | b c | a | a .. | .. | .. b |      .. a document that was cut
//! "a b" needs     |  x  |   |     |   |   x  |  x |   x  |
//! ```
//!
//! Segments that share a document form a *chain*, mostly of one segment. A document lies in one
//! chain, so a chain is needed only if each pattern of the query matches a word in it. In a longer
//! chain the segments with a match are needed, and with each all other segments of its documents:
//! offsets count from the start of a document, and contexts leave the segment. Positions between
//! two matches in one document are therefore complete.

use crate::query::language::query::Query;
use crate::query::matching::candidates::TextPattern;
use crate::text::{Dictionary, TokenizerProfile};

/// Words and size of a segment that is perhaps not opened.
#[derive(Debug, Clone, Copy)]
pub struct SegmentWords<'a> {
    /// Words and separators.
    pub dictionary: &'a Dictionary,
    /// Number of documents, including a continued part.
    pub num_docs: u64,
    /// True if the first document continues the last one of the previous segment.
    pub continues: bool,
}

/// Returns true for each of the successive `segments` without which the occurrences of `query`, or
/// their contexts, would be incomplete.
pub fn segments_for_query(query: &Query, segments: &[SegmentWords<'_>]) -> Vec<bool> {
    let patterns: Vec<_> = query.items().iter().flatten().collect();
    let mut is_needed = Vec::with_capacity(segments.len());
    for chain in segments.chunk_by(|_, next| next.continues) {
        let mut is_found = vec![false; patterns.len()];
        let matches = chain.iter().map(|segment| {
            let mut matches = false;
            for (pattern, is_found) in patterns.iter().zip(&mut is_found) {
                // In a chain of one segment the first missing word decides.
                if !pattern.find(segment.dictionary).is_empty() {
                    (matches, *is_found) = (true, true);
                } else if chain.len() == 1 {
                    break;
                }
            }
            matches
        });
        let matches: Vec<bool> = matches.collect();
        match is_found.iter().all(|&is_found| is_found) {
            true => is_needed.extend(with_whole_documents(chain, &matches)),
            false => is_needed.extend(vec![false; chain.len()]),
        }
    }
    is_needed
}

/// Returns true for each of the successive `segments` of a corpus of `profile` that may have a
/// document whose text matches, for each entry of `demands`, one of its patterns. A fragment may
/// cross a cut, so all segments of documents that were cut are needed.
pub fn segments_for_texts(
    demands: &[Vec<TextPattern>],
    profile: TokenizerProfile,
    segments: &[SegmentWords<'_>],
) -> Vec<bool> {
    let may_match = |dictionary| {
        let mut demands = demands.iter();
        demands
            .all(|patterns| patterns.iter().any(|pattern| pattern.may_match(profile, dictionary)))
    };
    let chains = segments.chunk_by(|_, next| next.continues);
    let needed = chains.flat_map(|chain| {
        let is_needed = chain.len() > 1 || chain.iter().any(|s| may_match(s.dictionary));
        vec![is_needed; chain.len()]
    });
    needed.collect()
}

/// Returns true for each segment of `chain` that `matches`, or shares a document with one that does.
fn with_whole_documents(chain: &[SegmentWords<'_>], matches: &[bool]) -> Vec<bool> {
    let mut is_needed = matches.to_vec();
    // The open document comes from a segment that matches.
    let mut is_open = false;
    for (idx, segment) in chain.iter().enumerate() {
        is_needed[idx] |= is_open;
        is_open = matches[idx] || is_open && segment.num_docs <= 1;
    }
    is_open = false;
    for (idx, segment) in chain.iter().enumerate().rev() {
        is_needed[idx] |= is_open;
        is_open = matches[idx] || is_open && segment.num_docs <= 1;
    }
    is_needed
}
