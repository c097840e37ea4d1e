//! Lists of the documents with hits of a leaf, kept between the queries of one corpus.
//!
//! ```text
//! storm        │ 2:1  5:3  8:1  9:2 │          document:hits
//! night        │ 5:1  7:4  9:1      │          storm night      5:4  9:3
//! "the calm"   │ 9:1                │          storm NOT "the calm"   2:1  5:3  8:1
//! ```
//!
//! These are the posting lists of an inverted index (Zobel and Moffat, "Inverted Files for Text
//! Search Engines", 2006), but made from the grammar for the leaves that people ask for again:
//! words, phrases, wildcards, NEAR lists. A list is made when its leaf is asked for the second
//! time. Lists of documents then cost O(shortest list · log of the others) for AND, O(sum of the
//! lists) for OR, whatever the occurrences.
//!
//! Memory: 16 bytes for each document of a list, at most 32 MiB together. A leaf with a longer list
//! is counted in the grammar each time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;
use crate::segment::Corpus;

use super::matching::resolved::ResolvedQuery;
use super::search::{meet_condition, send_counts, term_count};
use super::{DocumentCount, SearchOptions, checked_sum};
use crate::query::language::{Expression, Query};

/// Memory of all lists: 32 MiB, two million documents.
const MAX_KEPT_BYTES: usize = 32 << 20;

/// Documents with hits of a leaf.
#[derive(Debug)]
pub(in crate::query) struct LeafList {
    /// Ascending.
    pub docs: Vec<DocumentCount>,
    /// Largest number of hits in a document.
    pub max_count: u64,
}

/// Lists of documents by leaf, for queries of one corpus. See the module's description.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use tadoc::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
/// use tadoc::query::{LeafLists, Query, SearchOptions};
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a", b"storm and storm")?;
/// builder.push_document("b", b"a storm in the night")?;
/// let (file, _report) = builder.finish(None)?;
/// let (_footer, corpus) = Corpus::from_bytes("c.tadoc", &file, &OpenLimits::default())?;
///
/// let lists = LeafLists::default();
/// let query = Query::parse(corpus.profile(), "storm NOT night")?;
/// for _ in 0..3 {
///     let mut found = Vec::new();
///     lists.term_count(&corpus, &query, &SearchOptions::default(), &mut |counts| {
///         found.extend(counts.iter().map(|count| (count.doc_id, count.count)));
///         ControlFlow::Continue(())
///     })?;
///     assert_eq!(found, [(0, 2)]);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct LeafLists {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    by_leaf: HashMap<Query, Entry>,
    num_bytes: usize,
}

/// State of a leaf that was asked for.
#[derive(Debug, Clone)]
enum Entry {
    /// It was asked for once.
    Asked,
    List(Arc<LeafList>),
    /// Its list is longer than all lists may be.
    TooLong,
}

impl LeafLists {
    /// Returns the bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        self.kept().num_bytes
    }

    /// Drops all lists.
    pub fn clear(&self) {
        *self.kept() = Kept::default();
    }

    /// Does the same as [`term_count`], from the lists if all leaves of `query` were asked for
    /// before and all documents are counted. `corpus` is always the same one.
    ///
    /// # Errors
    /// As [`term_count`].
    pub fn term_count(
        &self,
        corpus: &Corpus,
        query: &Query,
        options: &SearchOptions<'_>,
        visit: &mut dyn FnMut(&[DocumentCount]) -> ControlFlow<()>,
    ) -> Result<()> {
        let counts_all = options.doc_id.is_none() && options.docs.is_none();
        if !counts_all || !stands_once(query) {
            return term_count(corpus, query, options, visit);
        }
        let Some(lists) = self.all_asked_again(corpus, query, options)? else {
            return term_count(corpus, query, options, visit);
        };
        let lists: Vec<&[DocumentCount]> = lists.iter().map(|list| &list.docs[..]).collect();
        let mut interrupt = options.canceller().interrupt();
        let counts = merged(query.root(), &lists, &mut interrupt)?;
        send_counts(&counts, options, visit).map(drop)
    }

    /// Returns the list of leaf `leaf` of `query`. Only `search.is_cancelled` is used.
    ///
    /// # Errors
    /// The errors of [`term_count`].
    pub(in crate::query) fn list(
        &self,
        corpus: &Corpus,
        query: &Query,
        leaf: usize,
        search: &SearchOptions<'_>,
    ) -> Result<Arc<LeafList>> {
        let alone = query.leaf_alone(leaf);
        if let Some(Entry::List(list)) = self.entry(&alone) {
            return Ok(list);
        }
        let (list, _) = read_list(corpus, &alone, usize::MAX, search)?;
        let list = Arc::new(list);
        self.keep(alone, &list);
        Ok(list)
    }

    /// Returns the lists of all leaves of `query`, if they are kept or each leaf was asked for
    /// before. Otherwise notes that the leaves were asked for.
    fn all_asked_again(
        &self,
        corpus: &Corpus,
        query: &Query,
        search: &SearchOptions<'_>,
    ) -> Result<Option<Vec<Arc<LeafList>>>> {
        let leaves: Vec<Query> = (0..query.leaves().len()).map(|leaf| query.leaf_alone(leaf)).collect();
        if !self.were_asked(&leaves) {
            return Ok(None);
        }
        let mut lists = Vec::with_capacity(leaves.len());
        for leaf in leaves {
            let list = match self.entry(&leaf) {
                Some(Entry::List(list)) => list,
                Some(Entry::TooLong) => return Ok(None),
                Some(Entry::Asked) | None => {
                    let (list, is_whole) = read_list(corpus, &leaf, MAX_KEPT_BYTES, search)?;
                    if !is_whole {
                        self.kept().insert(leaf, Entry::TooLong, 0);
                        return Ok(None);
                    }
                    let list = Arc::new(list);
                    self.keep(leaf, &list);
                    list
                }
            };
            lists.push(list);
        }
        Ok(Some(lists))
    }

    /// Returns true if all `leaves` were asked for before, and notes them.
    fn were_asked(&self, leaves: &[Query]) -> bool {
        let mut kept = self.kept();
        let mut were_asked = true;
        for leaf in leaves {
            if !kept.by_leaf.contains_key(leaf) {
                were_asked = false;
                kept.insert(leaf.clone(), Entry::Asked, 0);
            }
        }
        were_asked
    }

    /// Returns the state of a leaf. Reading a list does not hold the lock.
    fn entry(&self, leaf: &Query) -> Option<Entry> {
        self.kept().by_leaf.get(leaf).cloned()
    }

    fn keep(&self, leaf: Query, list: &Arc<LeafList>) {
        let num_bytes = size_of_val(&list.docs[..]);
        if num_bytes <= MAX_KEPT_BYTES {
            self.kept().insert(leaf, Entry::List(Arc::clone(list)), num_bytes);
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // The map is whole whenever the lock is free.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// Inserts `entry` with a list of `num_bytes`. If there is no room, all entries are dropped
    /// before: leaves that are asked for again come back soon.
    fn insert(&mut self, leaf: Query, entry: Entry, num_bytes: usize) {
        let from_leaf = leaf.memory_bytes();
        if self.num_bytes + from_leaf + num_bytes > MAX_KEPT_BYTES {
            *self = Self::default();
        }
        let is_new = match self.by_leaf.insert(leaf, entry) {
            None => true,
            Some(Entry::List(list)) => {
                self.num_bytes -= size_of_val(&list.docs[..]);
                false
            }
            Some(Entry::Asked | Entry::TooLong) => false,
        };
        self.num_bytes += num_bytes + if is_new { from_leaf } else { 0 };
    }
}

/// Counts the hits of `leaf`, a query with one leaf, in all documents. Returns the list, and false
/// if it ends early because it takes more than `max_bytes`.
fn read_list(corpus: &Corpus, leaf: &Query, max_bytes: usize, search: &SearchOptions<'_>) -> Result<(LeafList, bool)> {
    let mut docs = Vec::new();
    let mut is_whole = true;
    let resolved = ResolvedQuery::new(corpus, leaf, search.canceller());
    meet_condition(&resolved, None, &mut |met| {
        docs.extend_from_slice(&met.counts);
        is_whole = size_of_val(&docs[..]) <= max_bytes;
        match ((search.is_cancelled)(), is_whole) {
            (true, _) => Err(Error::Cancelled),
            (false, true) => Ok(ControlFlow::Continue(())),
            (false, false) => Ok(ControlFlow::Break(())),
        }
    })?;
    let max_count = docs.iter().map(|count| count.count).max().unwrap_or(0);
    Ok((LeafList { docs, max_count }, is_whole))
}

/// Returns true if each leaf of `query` stands in one place of its condition. Its hits would be
/// added several times otherwise.
fn stands_once(query: &Query) -> bool {
    let mut is_met = vec![false; query.leaves().len()];
    let mut pending = vec![query.root()];
    while let Some(expression) = pending.pop() {
        match expression {
            Expression::Leaf(leaf) if std::mem::replace(&mut is_met[*leaf], true) => return false,
            Expression::Leaf(_) => {}
            Expression::And(parts) | Expression::Or(parts) => pending.extend(parts),
            Expression::Not(parts) => pending.extend(parts.iter()),
        }
    }
    true
}

/// Returns the documents that meet `expression` and the sums of hits of its leaves in them, as far
/// as the parts around each leaf hold. The depth of an expression is bounded by the parser.
fn merged<'l>(
    expression: &Expression,
    lists: &[&'l [DocumentCount]],
    interrupt: &mut Interrupt<'_>,
) -> Result<Cow<'l, [DocumentCount]>> {
    match expression {
        Expression::Leaf(leaf) => Ok(Cow::Borrowed(lists[*leaf])),
        Expression::And(parts) => {
            let mut parts = shortest_first(parts, lists, interrupt)?.into_iter();
            let mut met = parts.next().unwrap_or_default();
            for part in parts {
                met = Cow::Owned(in_both(&met, &part, interrupt)?);
            }
            Ok(met)
        }
        Expression::Or(parts) => {
            let mut met: Cow<'l, [DocumentCount]> = Cow::default();
            for part in shortest_first(parts, lists, interrupt)? {
                met = if met.is_empty() { part } else { Cow::Owned(in_any(&met, &part, interrupt)?) };
            }
            Ok(met)
        }
        Expression::Not(parts) => {
            let [kept, excluded] = parts.as_ref();
            let kept = merged(kept, lists, interrupt)?;
            let excluded = merged(excluded, lists, interrupt)?;
            let mut rest = &excluded[..];
            let is_kept = |count: &&DocumentCount| skip_to(&mut rest, count.doc_id).is_none();
            Ok(Cow::Owned(kept.iter().filter(is_kept).copied().collect()))
        }
    }
}

/// Returns the documents of each of `parts`, the shortest list first: the long ones are read once.
fn shortest_first<'l>(
    parts: &[Expression],
    lists: &[&'l [DocumentCount]],
    interrupt: &mut Interrupt<'_>,
) -> Result<Vec<Cow<'l, [DocumentCount]>>> {
    let parts = parts.iter().map(|part| merged(part, lists, interrupt));
    let mut parts: Vec<_> = parts.collect::<Result<_>>()?;
    parts.sort_by_key(|part| part.len());
    Ok(parts)
}

/// Returns the documents of both lists, with the sums of their counts.
fn in_both(
    shorter: &[DocumentCount],
    mut longer: &[DocumentCount],
    interrupt: &mut Interrupt<'_>,
) -> Result<Vec<DocumentCount>> {
    let mut both = Vec::new();
    for count in shorter {
        interrupt.check()?;
        if let Some(other) = skip_to(&mut longer, count.doc_id) {
            both.push(sum(*count, other)?);
        }
    }
    Ok(both)
}

/// Returns the documents of either list, with the sums of their counts.
fn in_any(
    mut first: &[DocumentCount],
    mut second: &[DocumentCount],
    interrupt: &mut Interrupt<'_>,
) -> Result<Vec<DocumentCount>> {
    let mut any = Vec::with_capacity(first.len().max(second.len()));
    while let ([a, after_a @ ..], [b, after_b @ ..]) = (first, second) {
        interrupt.check()?;
        let is_both = a.doc_id == b.doc_id;
        let is_first = a.doc_id <= b.doc_id;
        any.push(if is_both {
            sum(*a, *b)?
        } else if is_first {
            *a
        } else {
            *b
        });
        first = if is_first { after_a } else { first };
        second = if is_both || !is_first { after_b } else { second };
    }
    any.extend_from_slice(first);
    any.extend_from_slice(second);
    Ok(any)
}

fn sum(a: DocumentCount, b: DocumentCount) -> Result<DocumentCount> {
    let count = checked_sum([a.count, b.count].into_iter())?;
    Ok(DocumentCount { doc_id: a.doc_id, count })
}

/// Moves `list` to its first document from `doc_id` on, by steps that double. Returns its count of
/// `doc_id`.
pub(in crate::query) fn skip_to(list: &mut &[DocumentCount], doc_id: u64) -> Option<DocumentCount> {
    let mut step = 1;
    while step < list.len() && list[step].doc_id < doc_id {
        step *= 2;
    }
    let reach = &list[..list.len().min(step + 1)];
    *list = &list[reach.partition_point(|count| count.doc_id < doc_id)..];
    list.first().filter(|count| count.doc_id == doc_id).copied()
}
