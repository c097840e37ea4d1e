//! Choice of the segments that a query or a predicate on the text needs: by their dictionaries, and for
//! phrases by their rules.
//!
//! ```text
//! segments        | a b | a | b c | a | a .. | .. | .. b |      .. a document that was cut
//! "a b" needs     |  x  |   |     |   |   x  |  x |   x  |
//! ```
//!
//! Segments that share a document form a *chain*, mostly of one segment. A document lies in one
//! chain, so a chain is needed only if the query can hold with the patterns that match a word in
//! it. In a longer chain the segments with a match are needed, and with each all other segments of its documents:
//! offsets count from the start of a document, and contexts leave the segment. Positions between
//! two matches in one document are therefore complete.

use crate::error::Result;
use crate::format::StoredGrammar;
use crate::query::language::pattern::WordPattern;
use crate::query::language::query::Query;
use crate::query::matching::candidates::TextPattern;
use crate::query::matching::sweep::may_occur;
use crate::query::matching::word_set::WordSet;
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
    let mut is_needed = Vec::with_capacity(segments.len());
    for chain in segments.chunk_by(|_, next| next.continues) {
        if let [only] = chain {
            // The first missing word decides.
            let is_there = |pattern: &WordPattern| !pattern.find(only.dictionary).is_empty();
            is_needed.push(can_hold(query, &mut |item| query.items()[item].iter().all(is_there)));
            continue;
        }
        let patterns = || query.items().iter().flatten();
        let found: Vec<Vec<bool>> = chain
            .iter()
            .map(|segment| patterns().map(|p| !p.find(segment.dictionary).is_empty()).collect())
            .collect();
        let first_patterns: Vec<usize> = query
            .items()
            .iter()
            .scan(0, |next, item| Some(std::mem::replace(next, *next + item.len())))
            .collect();
        let mut is_found = |item: usize| {
            let first = first_patterns[item];
            let mut patterns = first..first + query.items()[item].len();
            patterns.all(|pattern| found.iter().any(|found| found[pattern]))
        };
        let matches: Vec<bool> = found.iter().map(|found| found.contains(&true)).collect();
        if can_hold(query, &mut is_found) {
            is_needed.extend(with_whole_documents(chain, &matches))
        } else {
            is_needed.extend(vec![false; chain.len()])
        }
    }
    is_needed
}

/// Returns true if a document of a segment without parts of cut documents can match `query`. `is_there`
/// returns true if the segment has a word, and `None` if that is not known.
///
/// # Errors
/// The errors of `is_there`.
pub fn may_match(
    query: &Query,
    mut is_there: impl FnMut(&str) -> Result<Option<bool>>,
) -> Result<bool> {
    let mut failed = Ok(());
    let mut is_word_there = |pattern: &WordPattern| match pattern.as_word().map(&mut is_there) {
        None | Some(Ok(None)) => true,
        Some(Ok(Some(is_there))) => is_there,
        Some(Err(error)) => {
            failed = Err(error);
            true
        }
    };
    let may_match = can_hold(query, &mut |item| query.items()[item].iter().all(&mut is_word_there));
    failed.map(|()| may_match)
}

/// Returns true if a document of a segment without parts of cut documents can match `query`. Looks for its
/// phrases in `grammar`, which has the words of `dictionary`. O(G) for each phrase, without any array that is
/// derived from the grammar.
///
/// # Errors
/// [`Error::Format`](crate::Error::Format) if the elements of the documents do not fit the rules.
pub fn may_match_rules(
    query: &Query,
    grammar: &StoredGrammar<'_>,
    dictionary: &Dictionary,
) -> Result<bool> {
    let find = |pattern: &WordPattern| Ok(Some(pattern.find(dictionary)));
    may_match_sets(query, grammar, dictionary.num_words(), find)
}

/// Variant of [`may_match_rules`] for a query of [exact](Query::is_exact) words, whose segment has
/// `num_words` words. `id_of` returns the id of a word that is there.
///
/// # Errors
/// Same as [`may_match_rules`], and the errors of `id_of`.
pub fn may_match_rules_with(
    query: &Query,
    grammar: &StoredGrammar<'_>,
    num_words: u32,
    mut id_of: impl FnMut(&str) -> Result<Option<u32>>,
) -> Result<bool> {
    let find = |pattern: &WordPattern| {
        let id = pattern.as_word().map(&mut id_of).transpose()?.flatten();
        Ok(id.map(|id| WordSet::from_ids(&[id])))
    };
    may_match_sets(query, grammar, num_words, find)
}

/// Returns true if a document can match `query`, whose words `find` finds.
fn may_match_sets(
    query: &Query,
    grammar: &StoredGrammar<'_>,
    num_words: u32,
    mut find: impl FnMut(&WordPattern) -> Result<Option<WordSet>>,
) -> Result<bool> {
    let mut is_there = |item: usize| {
        let sets = query.items()[item].iter().map(&mut find);
        let sets = sets.collect::<Result<Option<Vec<WordSet>>>>()?;
        match sets.filter(|sets| sets.iter().all(|set| !set.is_empty())) {
            None => Ok(false),
            // Words alone occur, as they are in the dictionary.
            Some(words) => Ok(words.len() == 1 || may_occur(grammar, num_words, &words)?),
        }
    };
    let mut failed = Ok(());
    let mut is_item_there = |item: usize| {
        is_there(item).unwrap_or_else(|error| {
            failed = Err(error);
            true
        })
    };
    let may_match = can_hold(query, &mut is_item_there);
    failed.map(|()| may_match)
}

/// Returns true if a document can meet the condition of `query` where at most the items that
/// `is_there` returns true for occur.
fn can_hold(query: &Query, is_there: &mut dyn FnMut(usize) -> bool) -> bool {
    query.root().can_hold(&mut |leaf| query.leaves()[leaf].items().iter().all(|&i| is_there(i)))
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
