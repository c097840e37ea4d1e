//! Words of a dictionary by their folded texts, so that a folded word is found as fast as another.
//!
//! ```text
//! fold       case
//! ids        7    3    0    9    …          in the order of the hashes of the folded texts
//! hashes     02…  1c…  1c…  5f…  …          not stored: the hash of a probed word is computed again
//! ```
//!
//! Most folds keep the first letter or digit of a word of ASCII letters, digits and underscores, so
//! only words with that of the folded text, and words of other characters, are folded. The first
//! question of a fold and a letter reads all words and folds these, because most statements ask
//! once. The second one builds their order: O(V log V), and 4 bytes a word. Later ones take O(log
//! V) folds. The last orders are kept, with at most [`MAX_FOLDS`] ids for each word.

use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rayon::prelude::*;
use rustc_hash::FxBuildHasher;

use super::fold::Fold;

/// Number of folds whose orders a dictionary keeps, if they are of all words.
const MAX_FOLDS: usize = 4;
/// Number of orders that a dictionary keeps.
const MAX_ORDERS: usize = 64;
/// Minimum number of words of a parallel task.
const TASK_WORDS: usize = 1 << 14;

/// Orders of the words of one dictionary. The order of the last question is the last one. Clones
/// share them.
#[derive(Debug, Clone, Default)]
pub(super) struct FoldedWords(Arc<Mutex<Vec<(Key, Order)>>>);

/// The fold of an order, and how its words begin.
type Key = (Fold, Initial);

/// The words that a fold may map to a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Initial {
    Any,
    /// Words that begin with this letter in either case or with this digit, words that begin with
    /// neither, and words that have other characters than ASCII letters, digits and underscores. 0
    /// stands for the last two alone.
    Byte(u8),
}

impl Initial {
    /// Returns the words that `fold` may map to `folded`.
    fn from_fold(fold: &Fold, folded: &str) -> Self {
        if fold.keeps_first_byte() { Self::Byte(first_byte(folded)) } else { Self::Any }
    }

    fn has(self, word: &str) -> bool {
        let Self::Byte(asked) = self else { return true };
        let first = first_byte(word);
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        first == asked || first == 0 || !word.bytes().all(is_plain)
    }
}

/// Returns the first byte of `text` in lower case if it is an ASCII letter or digit, else 0.
fn first_byte(text: &str) -> u8 {
    let first = text.bytes().next().filter(u8::is_ascii_alphanumeric);
    first.map_or(0, |byte| byte.to_ascii_lowercase())
}

/// Words in the order of the hashes of their folded texts, then of their ids.
#[derive(Debug, Clone)]
enum Order {
    /// One question was asked.
    Unmade,
    Made(Arc<[u32]>),
}

impl Order {
    fn num_words(&self) -> usize {
        match self {
            Self::Unmade => 0,
            Self::Made(ids) => ids.len(),
        }
    }
}

impl FoldedWords {
    /// Returns the number of bytes of memory in use.
    pub fn memory_bytes(&self) -> usize {
        num_ids(&self.lock()) * size_of::<u32>()
    }

    /// Returns the ids of the `words` whose text after `fold` is `folded`, in ascending order.
    pub fn find<'w, W>(&self, words: Words<W>, fold: &Fold, folded: &str) -> Vec<u32>
    where
        W: Fn(u32) -> &'w str + Sync,
    {
        let key = (fold.clone(), Initial::from_fold(fold, folded));
        let Some(order) = self.order(&words, &key) else {
            let fits = |&id: &u32| is_folded_to(fold, (words.word)(id), folded);
            return words.ids(key.1).filter(fits).collect();
        };
        let hash = hash_for(folded);
        let text = |id: u32| fold.text((words.word)(id));
        let begin = order.partition_point(|&id| hash_for(&text(id)) < hash);
        let same = order[begin..].iter().copied().take_while(|&id| hash_for(&text(id)) == hash);
        same.filter(|&id| text(id) == folded).collect()
    }

    /// Returns the order of `key`. It is made if this is not the first question.
    fn order<'w, W>(&self, words: &Words<W>, key: &Key) -> Option<Arc<[u32]>>
    where
        W: Fn(u32) -> &'w str + Sync,
    {
        let known = self.lock().iter().find(|(other, _)| other == key).map(|(_, order)| order.clone());
        // Without the lock: a thread that waits here for others may work for one that wants it.
        let order = match known {
            None => Order::Unmade,
            Some(Order::Unmade) => Order::Made(words.in_order(key)),
            Some(made) => made,
        };
        let max_ids = MAX_FOLDS * words.num_words as usize;
        let mut orders = self.lock();
        orders.retain(|(other, _)| other != key);
        while orders.len() == MAX_ORDERS || num_ids(&orders) + order.num_words() > max_ids {
            orders.remove(0);
        }
        orders.push((key.clone(), order.clone()));
        match order {
            Order::Unmade => None,
            Order::Made(ids) => Some(ids),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Key, Order)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn num_ids(orders: &[(Key, Order)]) -> usize {
    orders.iter().map(|(_, order)| order.num_words()).sum()
}

/// The words of a dictionary: their number, and the text of each.
pub(super) struct Words<W> {
    pub num_words: u32,
    pub word: W,
}

impl<'w, W: Fn(u32) -> &'w str + Sync> Words<W> {
    /// Returns the ids of the words of `initial`.
    fn ids(&self, initial: Initial) -> impl ParallelIterator<Item = u32> {
        let ids = (0..self.num_words).into_par_iter().with_min_len(TASK_WORDS);
        ids.filter(move |&id| initial.has((self.word)(id)))
    }

    fn in_order(&self, (fold, initial): &Key) -> Arc<[u32]> {
        let hashed = |id: u32| (hash_for(&fold.text((self.word)(id))), id);
        let mut hashed: Vec<(u32, u32)> = self.ids(*initial).map(hashed).collect();
        hashed.par_sort_unstable();
        hashed.into_iter().map(|(_, id)| id).collect()
    }
}

/// Returns true if `word` after `fold` is `folded`.
pub(crate) fn is_folded_to(fold: &Fold, word: &str, folded: &str) -> bool {
    if *fold == Fold::CASE && word.is_ascii() {
        return folded.eq_ignore_ascii_case(word);
    }
    fold.text(word) == folded
}

fn hash_for(folded: &str) -> u32 {
    (FxBuildHasher.hash_one(folded) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;
    use crate::text::{Dictionary, Synonyms};

    fn dictionary(words: &BTreeSet<String>) -> Dictionary {
        let mut offsets = vec![0];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.bytes()).collect();
        offsets.extend(words.iter().scan(0, |end, word| {
            *end += word.len() as u32;
            Some(*end)
        }));
        Dictionary::from_parts(words.len() as u32, offsets, bytes.into()).unwrap()
    }

    proptest! {
        #[test]
        fn every_question_finds_what_a_scan_finds(
            words in prop::collection::btree_set("[abAB]{1,3}|[äÄaßsS_]{1,4}|\\pL{1,5}|ge[ab]{1,3}|[0_aA]{1,3}", 0..60),
            fold in prop::sample::select(vec![
                "case", "accents", "case,accents", "stem:english", "accents,stem:german", "stem:dutch",
            ]),
            meanings in prop::collection::btree_map("[ab]{1,3}", "[ab]{1,3}", 0..4),
            asked in prop::collection::vec("[abAB]{1,3}|[äÄaßsS_]{1,4}|[0_aA]{1,3}", 1..9),
        ) {
            let dictionary = dictionary(&words);
            let fold: Fold = fold.parse().unwrap();
            let fold = match Synonyms::new("t", &fold, &meanings) {
                Ok(synonyms) => fold.with_synonyms(synonyms),
                // Two words of a stem with two meanings.
                Err(_) => fold,
            };
            for text in words.iter().chain(&asked) {
                let folded = fold.text(text);
                let expected: Vec<u32> = words
                    .iter()
                    .zip(0..)
                    .filter(|(word, _)| fold.text(word) == folded)
                    .map(|(_, id)| id)
                    .collect();
                prop_assert_eq!(dictionary.words_folded_to(&fold, &folded), expected);
            }
        }
    }

    #[test]
    fn the_second_question_makes_an_order_and_old_ones_go() {
        let words: BTreeSet<String> = (0..1000).map(|number| format!("Word{number}")).collect();
        let dictionary = dictionary(&words);
        let before = dictionary.memory_bytes();
        let ask = |fold: &str| dictionary.words_folded_to(&fold.parse().unwrap(), "word7").len();
        assert_eq!(ask("case"), 1);
        assert_eq!(dictionary.memory_bytes(), before);
        assert_eq!(ask("case"), 1);
        assert_eq!(dictionary.memory_bytes(), before + 4000);
        for fold in ["accents", "case,accents", "stem:english", "stem:german", "stem:dutch"] {
            ask(fold);
            ask(fold);
        }
        assert_eq!(dictionary.memory_bytes(), before + MAX_FOLDS * 4000);
        assert_eq!(dictionary.clone(), dictionary);
    }
}
