//! Leaves of a query: the documents with hits of each, kept between queries, or counted from word lists without opening
//! the segment.
//!
//! # Lists
//!
//! ```text
//! storm        │ 2:1  5:3  8:1  9:2 │          document:hits
//! night        │ 5:1  7:4  9:1      │          storm night      5:4  9:3
//! "the calm"   │ 9:1                │          storm NOT "the calm"   2:1  5:3  8:1
//! ```
//!
//! These are the posting lists of an inverted index (Zobel and Moffat, "Inverted Files for Text Search Engines", 2006),
//! but made from the grammar for the leaves that people ask for again: words, phrases, wildcards, NEAR lists. A list is
//! made when its leaf is asked for the second time. Lists of documents then cost O(shortest list · log of the others)
//! for AND, O(sum of the lists) for OR, whatever the occurrences.
//!
//! Memory: 16 bytes for each document of a list, at most 32 MiB together. A leaf with a longer list
//! is counted in the grammar each time.
//!
//! # Words
//!
//! ```text
//! alarm "power loss"        leaf 0: alarm      leaf 1: power, then loss
//!
//! lists   alarm 2:5  7:1                       leaf 0 is known:  2:5  7:1
//!         power 1 2 9    loss 2 9              leaf 1 may stand in documents 2 and 9
//! then    these documents alone, or all of the grammar without its words: 2:1
//! ```
//!
//! The numbers of all leaves make a [segment](leaf_segment) that answers the query of [leaf
//! words](Query::with_leaf_words). So conditions, sums and ranks are those of any corpus. It holds for
//! phrases and words of segments in which no document was cut, and for words in all. A count on the
//! grammar takes O(its elements) for each leaf.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Interrupt, Result};
use crate::grammar::Grammar;
use crate::query::language::{Expression, Leaf, Query};
use crate::segment::{Corpus, ListedWord, Segment, SegmentFacts, WordList};
use crate::text::Dictionary;

use super::matching::{ResolvedQuery, WordCondition, count_in_grammar};
use super::search::{meet_condition, send_counts, term_count};
use super::{DocumentCount, SearchOptions, checked_sum, count_by_document};

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

/// Ids of the words of each leaf of a query in a segment.
///
/// ```
/// use tadoc::query::{LeafCounts, LeafWords, Query};
/// use tadoc::segment::{ListedWord, WordList};
/// use tadoc::text::TokenizerProfile;
///
/// let query = Query::parse(TokenizerProfile::Word, "alarm \"power loss\"")?;
/// let words = ["alarm", "loss", "power"];
/// let id = |word: &str| Ok((0..).zip(words).find(|(_, other)| *other == word).map(|(id, _)| id));
/// let leaves = LeafWords::from_exact(&query, id)?;
/// let Some(leaves) = leaves else { panic!("all words are exact") };
/// assert_eq!(leaves.ids(), [0, 1, 2]);
///
/// let alarm = WordList { docs: vec![2, 7], counts: vec![5, 1] };
/// let lists = [ListedWord::Counted(alarm.clone()), ListedWord::Near(vec![2, 9]), ListedWord::Near(vec![1, 2, 9])];
/// let counts = leaves.counts(&|id| lists.get(id as usize));
/// assert_eq!(counts, [LeafCounts::Known(alarm), LeafCounts::InDocs(vec![2, 9])]);
/// # Ok::<(), tadoc::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeafWords {
    /// The ids at each place of each leaf, ascending.
    leaves: Vec<Vec<Vec<u32>>>,
}

/// Numbers of a leaf, as far as word lists tell them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LeafCounts {
    /// All of them.
    Known(WordList),
    /// Other documents than these, which ascend, do not have it.
    InDocs(Vec<u32>),
    /// Any document may have it.
    Anywhere,
}

impl LeafWords {
    /// Finds the words of `query`, whose leaves are [phrases](Query::is_of_phrases), in `dictionary`.
    pub fn from_dictionary(query: &Query, dictionary: &Dictionary) -> Self {
        let items = query.items().iter();
        let items = items.map(|item| item.iter().map(|word| word.find(dictionary).ids().collect()).collect());
        Self::from_items(query, &items.collect::<Vec<_>>())
    }

    /// Variant of [`from_dictionary`](Self::from_dictionary) for exact words, whose ids `word_id` finds. Returns `None`
    /// for a query with other patterns.
    ///
    /// # Errors
    /// The errors of `word_id`.
    pub fn from_exact(query: &Query, mut word_id: impl FnMut(&str) -> Result<Option<u32>>) -> Result<Option<Self>> {
        let mut items = Vec::with_capacity(query.items().len());
        for item in query.items() {
            let mut places = Vec::with_capacity(item.len());
            for pattern in item {
                let Some(spellings) = pattern.as_spellings() else { return Ok(None) };
                let mut ids = Vec::with_capacity(spellings.len());
                for spelling in spellings {
                    ids.extend(word_id(spelling)?);
                }
                ids.sort_unstable();
                places.push(ids);
            }
            items.push(places);
        }
        Ok(Some(Self::from_items(query, &items)))
    }

    fn from_items(query: &Query, items: &[Vec<Vec<u32>>]) -> Self {
        let first_item = |leaf: &Leaf| leaf.items().first().map_or_else(Vec::new, |&item| items[item].clone());
        Self { leaves: query.leaves().iter().map(first_item).collect() }
    }

    /// Returns the words of `query` in a segment without any of them.
    pub fn none(query: &Query) -> Self {
        Self { leaves: query.leaves().iter().map(|_| vec![Vec::new()]).collect() }
    }

    /// Returns true if the segment cannot have any leaf.
    pub fn are_absent(&self) -> bool {
        !self.leaves.iter().any(|places| is_possible(places))
    }

    /// Returns the ids of the words whose lists tell about the leaves, ascending.
    pub fn ids(&self) -> Vec<u32> {
        let possible = self.leaves.iter().filter(|places| is_possible(places));
        let mut ids: Vec<u32> = possible.flatten().flatten().copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Returns the numbers of each leaf as far as the lists of words tell them. `list` returns that of a word, or
    /// `None` if it is not known.
    pub fn counts<'l>(&self, list: &impl Fn(u32) -> Option<&'l ListedWord>) -> Vec<LeafCounts> {
        self.leaves.iter().map(|places| leaf_counts(places, list)).collect()
    }

    /// Returns the words as they are numbered in a part of the segment that has the `terminals`, which ascend.
    pub fn within(&self, terminals: &[u32]) -> Self {
        let within = |ids: &Vec<u32>| {
            let found = ids.iter().filter_map(|id| terminals.binary_search(id).ok());
            found.map(|number| number as u32).collect()
        };
        let leaves = self.leaves.iter().map(|places| places.iter().map(within).collect());
        Self { leaves: leaves.collect() }
    }

    /// Counts leaf `leaf` in the documents of `grammar`, that of the segment or of a part, whose first `num_words`
    /// elements are words. Returns `None` as [`count_in_grammar`] does.
    pub fn count_in(&self, leaf: usize, grammar: &Grammar, num_words: u32) -> Option<WordList> {
        let places = &self.leaves[leaf];
        if !is_possible(places) {
            return Some(WordList::default());
        }
        count_in_grammar(grammar, num_words, places)
    }
}

/// Returns the numbers of a leaf with the words of `places` as far as their lists tell them.
fn leaf_counts<'l>(places: &[Vec<u32>], list: &impl Fn(u32) -> Option<&'l ListedWord>) -> LeafCounts {
    if !is_possible(places) {
        return LeafCounts::Known(WordList::default());
    }
    if let [words] = places
        && let Some(known) = sum_of_lists(words, list)
    {
        return LeafCounts::Known(known);
    }
    let places = places.iter().map(|words| WordCondition::OneOf(words.clone()));
    match WordCondition::all(places.collect()).documents(list) {
        Some(docs) if docs.is_empty() => LeafCounts::Known(WordList::default()),
        Some(docs) => LeafCounts::InDocs(docs),
        None => LeafCounts::Anywhere,
    }
}

/// Returns true if each of `places` has a word.
fn is_possible(places: &[Vec<u32>]) -> bool {
    places.iter().all(|words| !words.is_empty())
}

/// Returns how often documents have one of `words`, or `None` if a list does not tell it.
fn sum_of_lists<'l>(words: &[u32], list: &impl Fn(u32) -> Option<&'l ListedWord>) -> Option<WordList> {
    let mut entries = Vec::new();
    for &word in words {
        let Some(ListedWord::Counted(list)) = list(word) else { return None };
        entries.extend(list.docs.iter().copied().zip(list.counts.iter().copied()));
    }
    entries.sort_unstable();
    let mut sum = WordList::default();
    for same_doc in entries.chunk_by(|one, other| one.0 == other.0) {
        let count = same_doc.iter().try_fold(0u32, |sum, (_, count)| sum.checked_add(*count))?;
        sum.docs.push(same_doc[0].0);
        sum.counts.push(count);
    }
    Some(sum)
}

/// Counts leaf `leaf` of `query` in the documents of `corpus`.
///
/// # Errors
/// As [`count_by_document`], and [`Error::Capacity`] for documents and numbers of more than 32 bits.
pub fn leaf_list(corpus: &Corpus, query: &Query, leaf: usize) -> Result<WordList> {
    let mut list = WordList::default();
    for row in count_by_document(corpus, &query.leaf_alone(leaf), &SearchOptions::default())? {
        list.docs.push(in_32_bits("document of a leaf", row.doc_id)?);
        list.counts.push(in_32_bits("occurrences of a leaf in a document", row.count)?);
    }
    Ok(list)
}

fn in_32_bits(what: &'static str, number: u64) -> Result<u32> {
    let limit = u64::from(u32::MAX);
    let knob = "nothing (search for its places)";
    u32::try_from(number).map_err(|_| Error::Capacity { what, requested: number, limit, knob })
}

/// Creates a segment in which the documents of `facts` have the words of [leaf words](Query::with_leaf_words) as often
/// as `lists` say, one for each leaf.
///
/// # Errors
/// As [`Segment::from_lists`].
pub fn leaf_segment(lists: Vec<WordList>, facts: SegmentFacts) -> Result<Segment> {
    let words: Vec<String> = (0..lists.len()).map(Query::leaf_word).collect();
    let words: Vec<(&str, WordList)> = words.iter().map(String::as_str).zip(lists).collect();
    Segment::from_lists(&words, facts)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::segment::{DocumentLength, Paths};
    use crate::text::TokenizerProfile;

    use super::*;

    fn corpus_from(texts: &[String]) -> Corpus {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        texts.iter().for_each(|text| builder.push_document("a", text.as_bytes()).unwrap());
        let (file, _) = builder.finish(None).unwrap();
        Corpus::from_bytes("a", &file, &OpenLimits::default()).unwrap().1
    }

    fn facts_for(num_docs: usize) -> SegmentFacts {
        let mut paths = Paths::default();
        (0..num_docs).for_each(|doc| paths.push(&doc.to_string()));
        let lengths = vec![DocumentLength { len_bytes: 99, num_words: 9 }; num_docs];
        SegmentFacts { paths, lengths, continues: false }
    }

    const QUERIES: [&str; 12] = [
        "a",
        "\"a b\"",
        "\"a b\" OR a",
        "\"a a\"",
        "\"b* a\"",
        "a* NOT \"b a\"",
        "zz",
        "\"a zz\" OR b",
        "\"a b\" \"b a\"",
        "(a OR \"c ? b\") NOT ab",
        "\"a b a b a b a b a b a b a b a b a b\" OR b",
        "b~1 \"ab c\"",
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(120))]
        #[test]
        fn numbers_of_leaves_answer_as_the_text_does(
            texts in prop::collection::vec("([abc]{1,2}[ ,\n]){0,40}", 1..20),
            query in prop::sample::select(QUERIES.to_vec()),
            unknown in 0u32..9,
        ) {
            let corpus = corpus_from(&texts);
            let segment = &corpus.segments()[0];
            let query = Query::parse(TokenizerProfile::Auto, query).unwrap();
            prop_assert!(query.is_of_phrases());
            let words = LeafWords::from_dictionary(&query, &segment.dictionary);
            if let Some(exact) =
                LeafWords::from_exact(&query, |word| Ok(segment.dictionary.word_id(word.as_bytes()).map(u32::from)))
                    .unwrap()
            {
                prop_assert_eq!(&exact, &words);
            }
            let lists: Vec<ListedWord> = (0..segment.dictionary.num_words())
                .map(|id| {
                    let word = Query::for_word(segment.dictionary.word(id.into()));
                    let list = leaf_list(&corpus, &word, 0).unwrap();
                    if id % 3 == unknown % 3 { ListedWord::Near(list.docs) } else { ListedWord::Counted(list) }
                })
                .collect();
            let list = |id: u32| lists.get(id as usize).filter(|_| id != unknown);
            let mut counted = Vec::new();
            for (leaf, counts) in words.counts(&list).into_iter().enumerate() {
                let expected = leaf_list(&corpus, &query, leaf).unwrap();
                if let LeafCounts::InDocs(docs) = &counts {
                    prop_assert!(expected.docs.iter().all(|doc| docs.contains(doc)));
                }
                let in_grammar = words.count_in(leaf, segment.dag.grammar(), segment.dag.num_words());
                prop_assert!(in_grammar.is_none_or(|list| list == expected));
                match counts {
                    LeafCounts::Known(list) => counted.push(list),
                    LeafCounts::InDocs(_) | LeafCounts::Anywhere => counted.push(expected),
                }
            }
            prop_assert!(!words.are_absent() || counted.iter().all(|list| list.docs.is_empty()));
            let made = leaf_segment(counted, facts_for(texts.len())).unwrap();
            let made = Corpus::new(TokenizerProfile::Auto, vec![Arc::new(made)]);
            let options = SearchOptions::default();
            let found = count_by_document(&made, &query.with_leaf_words(), &options).unwrap();
            prop_assert_eq!(found, count_by_document(&corpus, &query, &options).unwrap());
        }
    }
}
