//! Condition on the words of a document that follows from a query, or from predicates on its text.
//!
//! ```text
//! "power loss" AND (alarm OR err*) NOT test      loss ∧ power ∧ (alarm ∨ (error ∨ errors))
//! text LIKE '%er, the quick b%'                  (… "…er" …) ∧ the ∧ quick ∧ (… "b…" …)
//! ```
//!
//! Lists of the documents of each word answer it without the text. Order, neighbours, separators and what
//! NOT excludes are left out, so it holds for every document that matches and for others. Cost: that of
//! finding the words in a dictionary, then O(entries of their lists · log).

use crate::error::Result;
use crate::query::language::Expression;
use crate::query::language::query::Query;
use crate::segment::ListedWord;
use crate::text::{Dictionary, TokenizerProfile};

use super::candidates::{TextPattern, words_of_text};

/// Most words one of which a document must have. More say too little for the lists that they need.
const MAX_ALTERNATIVES: usize = 4096;

/// A condition on the words of a document, by their ids in a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordCondition {
    /// Every document meets it.
    Any,
    /// The document has one of these words, which ascend.
    OneOf(Vec<u32>),
    /// The document meets all of these.
    All(Vec<WordCondition>),
    /// The document meets one of these.
    Either(Vec<WordCondition>),
}

impl WordCondition {
    /// Returns the condition that all documents meet which match `query`.
    ///
    /// ```
    /// use tadoc::query::{Query, WordCondition};
    /// use tadoc::segment::{ListedWord, WordList};
    /// use tadoc::text::{Dictionary, TokenizerProfile};
    ///
    /// let dictionary = Dictionary::from_parts(3, vec![0, 4, 8, 12], "lossmainpump".into())?;
    /// let query = Query::parse(TokenizerProfile::Word, "\"main pump\" NOT loss")?;
    /// let condition = WordCondition::for_query(&query, &dictionary);
    /// assert_eq!(condition.words(), [1, 2]);
    /// let list = |docs: &[u32]| {
    ///     ListedWord::Counted(WordList { docs: docs.to_vec(), counts: vec![1; docs.len()] })
    /// };
    /// let lists = [list(&[]), list(&[0, 3, 4]), list(&[3, 4, 5])];
    /// assert_eq!(condition.documents(&|word| lists.get(word as usize)), Some(vec![3, 4]));
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    pub fn for_query(query: &Query, dictionary: &Dictionary) -> Self {
        let items = query.items().iter().map(|item| {
            let words = item.iter().map(|pattern| Self::one_of(pattern.find(dictionary).ids().collect()));
            Self::all(words.collect())
        });
        Self::for_items(query, &items.collect::<Vec<_>>())
    }

    /// Variant of [`for_query`](Self::for_query) for exact words, whose ids `word_id` finds. Returns `None` for a
    /// query with other patterns.
    ///
    /// # Errors
    /// The errors of `word_id`.
    pub fn for_exact_query(
        query: &Query,
        mut word_id: impl FnMut(&str) -> Result<Option<u32>>,
    ) -> Result<Option<Self>> {
        let mut items = Vec::with_capacity(query.items().len());
        for item in query.items() {
            let mut words = Vec::with_capacity(item.len());
            for pattern in item {
                let Some(spellings) = pattern.as_spellings() else { return Ok(None) };
                let mut ids = Vec::new();
                for spelling in spellings {
                    ids.extend(word_id(spelling)?);
                }
                ids.sort_unstable();
                words.push(Self::one_of(ids));
            }
            items.push(Self::all(words));
        }
        Ok(Some(Self::for_items(query, &items)))
    }

    /// Returns the condition of `query`, whose words meet `items`.
    fn for_items(query: &Query, items: &[Self]) -> Self {
        let leaves = query.leaves().iter().map(|leaf| {
            let items = leaf.items().iter().map(|&item| items[item].clone());
            Self::all(items.collect())
        });
        let leaves: Vec<Self> = leaves.collect();
        Self::for_expression(query.root(), &leaves)
    }

    fn for_expression(expression: &Expression, leaves: &[Self]) -> Self {
        let each = |parts: &[Expression]| parts.iter().map(|part| Self::for_expression(part, leaves)).collect();
        match expression {
            Expression::Leaf(leaf) => leaves[*leaf].clone(),
            Expression::And(parts) => Self::all(each(parts)),
            Expression::Or(parts) => Self::either(each(parts)),
            Expression::Not(parts) => Self::for_expression(&parts[0], leaves),
        }
    }

    /// Returns the condition that all documents meet whose text matches, for each entry of `demands`, one of its
    /// patterns. The dictionary is that of a corpus of `profile`.
    pub fn for_texts(demands: &[Vec<TextPattern>], profile: TokenizerProfile, dictionary: &Dictionary) -> Self {
        let for_pattern = |pattern: &TextPattern| {
            let words = words_of_text(pattern, profile, dictionary);
            Self::all(words.into_iter().map(Self::one_of).collect())
        };
        let for_entry = |patterns: &Vec<TextPattern>| Self::either(patterns.iter().map(for_pattern).collect());
        Self::all(demands.iter().map(for_entry).collect())
    }

    fn one_of(words: Vec<u32>) -> Self {
        if words.len() > MAX_ALTERNATIVES { Self::Any } else { Self::OneOf(words) }
    }

    /// Returns the condition that all of `parts` are met.
    pub fn all(mut parts: Vec<Self>) -> Self {
        parts.retain(|part| *part != Self::Any);
        match parts.len() {
            0 => Self::Any,
            1 => parts.remove(0),
            _ => Self::All(parts),
        }
    }

    fn either(mut parts: Vec<Self>) -> Self {
        if parts.contains(&Self::Any) {
            return Self::Any;
        }
        if parts.len() == 1 { parts.remove(0) } else { Self::Either(parts) }
    }

    /// Returns the words whose lists decide, ascending.
    pub fn words(&self) -> Vec<u32> {
        let mut words = Vec::new();
        self.push_words(&mut words);
        words.sort_unstable();
        words.dedup();
        words
    }

    fn push_words(&self, out: &mut Vec<u32>) {
        match self {
            Self::Any => {}
            Self::OneOf(words) => out.extend(words),
            Self::All(parts) | Self::Either(parts) => parts.iter().for_each(|part| part.push_words(out)),
        }
    }

    /// Returns the documents that meet the condition, ascending, or `None` if it leaves out none. `list` returns the
    /// documents of a word, or `None` if they are not known.
    pub fn documents<'l>(&self, list: &impl Fn(u32) -> Option<&'l ListedWord>) -> Option<Vec<u32>> {
        match self {
            Self::Any => None,
            Self::OneOf(words) => {
                let lists = words.iter().map(|&word| list(word).map(ListedWord::docs));
                lists.collect::<Option<Vec<_>>>().map(|lists| sorted(lists.concat()))
            }
            Self::All(parts) => {
                let found = parts.iter().filter_map(|part| part.documents(list));
                found.reduce(|one, other| common(&one, &other))
            }
            Self::Either(parts) => {
                let found = parts.iter().map(|part| part.documents(list));
                found.collect::<Option<Vec<_>>>().map(|found| sorted(found.concat()))
            }
        }
    }

    /// Variant of [`documents`](Self::documents) for a search whose hits are all occurrences of the words of the
    /// condition: returns only the first documents, with `num_hits` occurrences if there are as many.
    pub fn first_documents<'l>(
        &self,
        list: &impl Fn(u32) -> Option<&'l ListedWord>,
        num_hits: u64,
    ) -> Option<Vec<u32>> {
        let docs = self.documents(list)?;
        let Self::OneOf(words) = self else { return Some(docs) };
        let count_in = |doc: u32| {
            let counts = words.iter().filter_map(|&word| list(word).map(|list| u64::from(list.least_count(doc))));
            counts.sum::<u64>()
        };
        let mut num_before = 0;
        let is_wanted = |&doc: &u32| {
            let is_wanted = num_before < num_hits;
            num_before += count_in(doc);
            is_wanted
        };
        Some(docs.into_iter().take_while(is_wanted).collect())
    }
}

fn sorted(mut docs: Vec<u32>) -> Vec<u32> {
    docs.sort_unstable();
    docs.dedup();
    docs
}

/// Returns the documents that are in both, which ascend.
fn common(one: &[u32], other: &[u32]) -> Vec<u32> {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    few.iter().copied().filter(|doc| many.binary_search(doc).is_ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::Corpus;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::query::{SearchOptions, count_by_document};
    use crate::segment::{Segment, WordList};

    fn segment(texts: &[String]) -> (TokenizerProfile, Arc<Segment>) {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        texts.iter().for_each(|text| builder.push_document("a", text.as_bytes()).unwrap());
        let (file, _) = builder.finish(None).unwrap();
        let (footer, corpus) = Corpus::from_bytes("a", &file, &OpenLimits::default()).unwrap();
        (footer.profile, Arc::clone(&corpus.segments()[0]))
    }

    /// Returns the documents that meet `condition` by the words of each, some of whose lists are not known.
    fn documents(condition: &WordCondition, texts: &[String], dictionary: &Dictionary, unknown: u32) -> Vec<u32> {
        let list = |word: u32| -> ListedWord {
            let text = dictionary.word(word.into());
            let has_word = |doc: &u32| {
                let mut words = texts[*doc as usize].split(|c: char| !c.is_alphanumeric());
                words.any(|word| word == text)
            };
            let docs: Vec<u32> = (0..texts.len() as u32).filter(has_word).collect();
            ListedWord::Counted(WordList { counts: vec![1; docs.len()], docs })
        };
        let lists: Vec<ListedWord> = (0..dictionary.num_words()).map(list).collect();
        let found = condition.documents(&|word| (word != unknown).then(|| &lists[word as usize]));
        found.unwrap_or_else(|| (0..texts.len() as u32).collect())
    }

    proptest! {
        #[test]
        fn matching_documents_meet_the_condition(
            texts in prop::collection::vec("([abc]{1,2}[ ,]){0,6}", 1..12),
            query in prop::sample::select(vec![
                "a", "a b", "a OR \"b c\"", "\"a b\" NOT c", "a*", "(a b) OR NOT_ a", "NEAR(a b, 2) c",
                "\"a b\"~3", "a (b OR (c NOT aa))", "b~1", "/a.?/ NOT a", "^a b",
            ]),
            literal in "[abc]{1,2}( [abc]{1,2}){0,2}",
            unknown in 0u32..12,
        ) {
            let (profile, segment) = segment(&texts);
            let dictionary = &segment.dictionary;
            let corpus = Corpus::new(profile, vec![Arc::clone(&segment)]);
            if let Ok(query) = Query::parse(profile, query) {
                let found = count_by_document(&corpus, &query, &SearchOptions::default()).unwrap();
                let condition = WordCondition::for_query(&query, dictionary);
                let id_of = |word: &str| Ok(dictionary.word_id(word.as_bytes()).map(u32::from));
                if let Some(exact) = WordCondition::for_exact_query(&query, id_of).unwrap() {
                    prop_assert_eq!(&exact, &condition);
                }
                let kept = documents(&condition, &texts, dictionary, unknown);
                for row in found {
                    prop_assert!(kept.contains(&(row.doc_id as u32)), "{} in {:?}", query, texts);
                }
            }
            let demands = [vec![TextPattern::contains(&literal), TextPattern::equals("a b")]];
            let condition = WordCondition::for_texts(&demands, profile, dictionary);
            let kept = documents(&condition, &texts, dictionary, unknown);
            for (doc, text) in (0..).zip(&texts) {
                if text.contains(&literal) || text == "a b" {
                    prop_assert!(kept.contains(&doc), "{} in {}", literal, text);
                }
            }
        }
    }

    #[test]
    fn rare_words_leave_out_documents_and_unknown_ones_do_not() {
        let texts = ["a b", "a c", "b c", "a b c"].map(str::to_owned);
        let (profile, segment) = segment(&texts);
        let condition =
            |query: &str| WordCondition::for_query(&Query::parse(profile, query).unwrap(), &segment.dictionary);
        let found = |query: &str, unknown| documents(&condition(query), &texts, &segment.dictionary, unknown);
        assert_eq!(found("\"a b\"", 9), [0, 3]);
        assert_eq!(found("\"a b\"", 1), [0, 1, 3]);
        assert_eq!(found("a OR b", 1), [0, 1, 2, 3]);
        assert_eq!(found("a NOT b", 9), [0, 1, 3]);
        assert_eq!(found("a missing", 9), Vec::<u32>::new());
        assert_eq!(condition("a (b OR b)").words(), [0, 1]);
    }

    #[test]
    fn the_first_documents_have_as_many_occurrences_as_are_asked_for() {
        let lists = [(vec![1, 4, 9], vec![2, 1, 5]), (vec![4, 7], vec![3, 1])];
        let lists = lists.map(|(docs, counts)| ListedWord::Counted(WordList { docs, counts }));
        let first = |words: &[u32], num_hits| {
            let condition = WordCondition::OneOf(words.to_vec());
            condition.first_documents(&|word| lists.get(word as usize), num_hits)
        };
        assert_eq!(first(&[0], 2), Some(vec![1]));
        assert_eq!(first(&[0], 3), Some(vec![1, 4]));
        assert_eq!(first(&[0, 1], 6), Some(vec![1, 4]));
        assert_eq!(first(&[0, 1], 7), Some(vec![1, 4, 7]));
        assert_eq!(first(&[0, 1], 99), Some(vec![1, 4, 7, 9]));
        assert_eq!(first(&[0, 2], 1), None);
    }
}
