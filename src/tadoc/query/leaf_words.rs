//! Leaves of a query in one segment, counted without opening the segment.
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

use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::segment::{Corpus, ListedWord, Segment, SegmentFacts, WordList};
use crate::text::Dictionary;

use super::language::Query;
use super::matching::{WordCondition, count_in_grammar};
use super::{SearchOptions, count_by_document};

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
        let of_leaf =
            |items_of_leaf: &[usize]| items_of_leaf.first().map_or_else(Vec::new, |&item| items[item].clone());
        Self { leaves: query.leaves().iter().map(|leaf| of_leaf(leaf.items())).collect() }
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
        let of_leaf = |places: &Vec<Vec<u32>>| {
            if !is_possible(places) {
                return LeafCounts::Known(WordList::default());
            }
            if let [words] = &places[..]
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
        };
        self.leaves.iter().map(of_leaf).collect()
    }

    /// Counts leaf `leaf` in the documents of `grammar`, the whole one of the segment, whose first `num_words` elements
    /// are words. Returns `None` as [`count_in_grammar`] does.
    pub fn count_in(&self, leaf: usize, grammar: &Grammar, num_words: u32) -> Option<WordList> {
        let places = &self.leaves[leaf];
        if !is_possible(places) {
            return Some(WordList::default());
        }
        count_in_grammar(grammar, num_words, places)
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

    use super::*;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::segment::{DocumentLength, Paths};
    use crate::text::TokenizerProfile;

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
