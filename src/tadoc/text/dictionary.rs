//! Dictionary of one block or segment: every distinct token once, in byte order.
//!
//! ```text
//! id      0 .. num_words            num_words .. len
//!         words, ascending          separators, ascending ("" first if present)
//! bytes   |a|and|the|...            |\n|, |.|. |...        one arena
//! offsets 0 1 4 7 ...                                      len + 1 entries
//! heads   a       thi     ...                              8 bytes of every 16th word, as a number
//! ```
//!
//! Ids follow byte order. So comparing the ids of two words compares the words, and a prefix is an
//! id range. A word is found by binary search with O(log V) comparisons. All but the last four
//! compare heads, which stay in the cache. The words and offsets of a large dictionary do not.
//!
//! Limits: the arena holds at most `u32::MAX` bytes, and ids are `u32`. Only the segment file uses
//! front coding. In memory the arena is plain, so `get` needs two loads.
//!
//! # Folded words
//!
//! Tokens never change. The orders of folded words, which a few questions make, are kept beside them, so
//! that a folded word is found as fast as another.
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

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use bytestring::ByteString;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;

use super::fold::Fold;
use crate::error::{Error, Result};
use crate::ids::WordId;

/// Words and separators of one segment in one arena, each class in byte order.
#[derive(Debug, Clone)]
pub struct Dictionary {
    bytes: Bytes,
    /// Part of the arena with the words.
    words: ByteString,
    offsets: Vec<u32>,
    heads: Vec<u64>,
    num_words: u32,
    max_token_len: usize,
    folded_words: FoldedWords,
}

/// Number of words for each head.
const WORDS_PER_HEAD: usize = 16;

impl Default for Dictionary {
    /// Returns the dictionary without tokens.
    fn default() -> Self {
        let bytes = Bytes::new();
        let words = ByteString::new();
        let offsets = vec![0];
        let heads = Vec::new();
        let folded_words = FoldedWords::default();
        Self { bytes, words, offsets, heads, num_words: 0, max_token_len: 0, folded_words }
    }
}

impl PartialEq for Dictionary {
    /// Compares the tokens. Everything else follows from them.
    fn eq(&self, other: &Self) -> bool {
        (self.num_words, &self.offsets, &self.bytes) == (other.num_words, &other.offsets, &other.bytes)
    }
}

impl Eq for Dictionary {}

impl Dictionary {
    /// Takes an arena and checks everything that the other methods rely on, in O(bytes).
    ///
    /// `offsets` has one entry for each token and a last one equal to `bytes.len()`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] unless the offsets start at 0, never fall and end at the end of
    /// the arena, words are non-empty valid UTF-8 without NUL and strictly ascending, and
    /// separators are strictly ascending.
    pub fn from_parts(num_words: u32, offsets: Vec<u32>, bytes: Bytes) -> Result<Self> {
        check_offsets(num_words, &offsets, bytes.len())?;
        let num_words_len = num_words as usize;
        let words = check_words(&offsets[..=num_words_len], &bytes)?;
        check_ascending("separator", &offsets[num_words_len..], &bytes)?;
        let max_token_len = offsets.windows(2).map(|pair| (pair[1] - pair[0]) as usize).max().unwrap_or(0);
        let ends = offsets[..=num_words_len].windows(2).step_by(WORDS_PER_HEAD);
        let heads = ends.map(|ends| head_for(&words.as_bytes()[ends[0] as usize..ends[1] as usize]));
        let heads = heads.collect();
        let folded_words = FoldedWords::default();
        Ok(Self { bytes, words, offsets, heads, num_words, max_token_len, folded_words })
    }

    /// Returns the dictionary of the tokens `ids`, which ascend.
    ///
    /// # Errors
    /// [`Error::OutOfRange`] for an id that does not exist, [`Error::InvalidArgument`] if they do not
    /// ascend.
    pub fn subset(&self, ids: &[u32]) -> Result<Self> {
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        for &id in ids {
            let len = u64::from(self.len());
            if id >= self.len() {
                return Err(Error::OutOfRange { what: "token", got: id.into(), len });
            }
            bytes.extend_from_slice(self.get(id));
            offsets.push(bytes.len() as u32);
        }
        let num_words = ids.iter().filter(|&&id| self.is_word(id)).count() as u32;
        Self::from_parts(num_words, offsets, bytes.into())
    }

    /// Returns the number of tokens (words and separators).
    pub fn len(&self) -> u32 {
        (self.offsets.len() - 1) as u32
    }

    /// Returns true if there is no token.
    pub fn is_empty(&self) -> bool {
        self.offsets.len() == 1
    }

    /// Returns the number of words. Smaller ids are words, all others are separators.
    pub fn num_words(&self) -> u32 {
        self.num_words
    }

    /// Returns true if `id` is a word.
    #[inline]
    pub fn is_word(&self, id: u32) -> bool {
        id < self.num_words
    }

    /// Returns the bytes of a token.
    ///
    /// # Panics
    ///
    /// If `id` is not less than [`len`](Self::len).
    #[inline]
    pub fn get(&self, id: u32) -> &[u8] {
        let id_idx = id as usize;
        &self.bytes[self.offsets[id_idx] as usize..self.offsets[id_idx + 1] as usize]
    }

    /// Returns the text of a word. For the id of a separator it returns the text, or the empty
    /// string if it is not UTF-8.
    ///
    /// # Panics
    ///
    /// If `id` is not less than [`len`](Self::len).
    pub fn word(&self, id: WordId) -> &str {
        let id_idx = id.index();
        let range = self.offsets[id_idx] as usize..self.offsets[id_idx + 1] as usize;
        match self.words.get(range) {
            Some(word) => word,
            None => std::str::from_utf8(self.get(id.into())).unwrap_or_default(),
        }
    }

    /// Returns the id of the word with exactly these bytes.
    pub fn word_id(&self, word: &[u8]) -> Option<WordId> {
        let head = head_for(word);
        // Words with this head begin behind the last smaller head, and end before the first larger
        // one.
        let before = self.heads.partition_point(|&other| other < head).saturating_sub(1);
        let rest = &self.heads[before..];
        // The next head is almost always larger.
        let end = before
            + match rest.get(1) {
                Some(&next) if next > head => 1,
                _ => rest.partition_point(|&other| other <= head),
            };
        let [start, end] = [before, end].map(|heads| (heads * WORDS_PER_HEAD) as u32);
        self.find(start..end.min(self.num_words), word).map(WordId::from)
    }

    /// Returns the id of the separator with exactly these bytes.
    pub fn separator_id(&self, separator: &[u8]) -> Option<u32> {
        self.find(self.num_words..self.len(), separator)
    }

    /// Returns the ids of the words that begin with `prefix`, or of all words if it is empty.
    pub(crate) fn words_with_prefix(&self, prefix: &[u8]) -> Range<u32> {
        let start = self.first_where(0..self.num_words, |word| word >= prefix);
        let end = self.first_where(start..self.num_words, |word| !word.starts_with(prefix));
        start..end
    }

    /// Returns the words whose text after `fold` is `folded`, in ascending order. Reads all words
    /// at the first question of a fold. Later ones take O(log V) folds, and 4 bytes a word.
    pub(crate) fn words_folded_to(&self, fold: &Fold, folded: &str) -> Vec<u32> {
        let word = |id: u32| self.word(id.into());
        self.folded_words.find(Words { num_words: self.num_words, word }, fold, folded)
    }

    /// Returns the length of each token in bytes, in id order.
    pub fn lengths(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.offsets.windows(2).map(|pair| pair[1] - pair[0])
    }

    /// Returns the start of each token in [`bytes`](Self::bytes), and the arena's length as last
    /// entry.
    pub fn offsets(&self) -> &[u32] {
        &self.offsets
    }

    /// Returns the arena: all tokens in id order without gaps.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the length of the longest token in bytes, 0 for the empty dictionary.
    pub(crate) fn max_token_len(&self) -> usize {
        self.max_token_len
    }

    /// Returns the bytes of main memory in use. The arena is included even if it is shared.
    pub fn memory_bytes(&self) -> usize {
        let tables = self.offsets.capacity() * size_of::<u32>() + self.heads.len() * size_of::<u64>();
        size_of::<Self>() + self.bytes.len() + tables + self.folded_words.memory_bytes()
    }

    fn find(&self, ids: Range<u32>, token: &[u8]) -> Option<u32> {
        let end = ids.end;
        let id = self.first_where(ids, |entry| entry >= token);
        (id < end && self.get(id) == token).then_some(id)
    }

    /// Returns the first id whose token satisfies `reached`, else `ids.end`. `reached` must stay
    /// true once it is true.
    fn first_where(&self, ids: Range<u32>, reached: impl Fn(&[u8]) -> bool) -> u32 {
        let Range { mut start, mut end } = ids;
        while start < end {
            let middle = start + (end - start) / 2;
            if reached(self.get(middle)) {
                end = middle;
            } else {
                start = middle + 1;
            }
        }
        start
    }
}

/// Returns the first 8 bytes of `word` as a number with the same order. Words have no NUL, so a
/// shorter word comes before those that it begins.
#[inline]
fn head_for(word: &[u8]) -> u64 {
    let mut head = [0; 8];
    let len = word.len().min(head.len());
    head[..len].copy_from_slice(&word[..len]);
    u64::from_be_bytes(head)
}

fn check_offsets(num_words: u32, offsets: &[u32], len_bytes: usize) -> Result<()> {
    let (Some(&first), Some(&last)) = (offsets.first(), offsets.last()) else {
        return Err(unusable("no offsets", "one more offset than tokens".into()));
    };
    let num_tokens = offsets.len() - 1;
    if u32::try_from(num_tokens).is_err() || num_tokens < num_words as usize {
        let got = format!("{num_tokens} tokens, {num_words} of them words");
        return Err(unusable(got, "at most 2^32 - 1 tokens, and no more words than tokens".into()));
    }
    if first != 0 || last as usize != len_bytes {
        let got = format!("offsets from {first} to {last}");
        return Err(unusable(got, format!("offsets from 0 to {len_bytes}, the arena's length")));
    }
    match offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        None => Ok(()),
        Some(id) => {
            let got = format!("offset {} after {} at token {id}", offsets[id + 1], offsets[id]);
            Err(unusable(got, "offsets that never fall".into()))
        }
    }
}

/// Checks the words. One pass over the whole region checks UTF-8 for all of them, if each begins at
/// a char boundary.
fn check_words(offsets: &[u32], bytes: &Bytes) -> Result<ByteString> {
    let end_offset = offsets[offsets.len() - 1] as usize;
    let words = ByteString::try_from(bytes.slice(..end_offset))
        .map_err(|fault| unusable(format!("a word with {fault}"), "words of valid UTF-8".into()))?;
    if let Some(&at) = offsets.iter().find(|&&at| !words.is_char_boundary(at as usize)) {
        let got = format!("a word cut inside a character at byte {at}");
        return Err(unusable(got, "words of valid UTF-8".into()));
    }
    if let Some(at) = memchr::memchr(0, words.as_bytes()) {
        return Err(unusable(format!("a NUL at byte {at} of the words"), "words without".into()));
    }
    if let Some(id) = offsets.windows(2).position(|pair| pair[0] == pair[1]) {
        return Err(unusable(format!("an empty word with id {id}"), "words of 1 byte up".into()));
    }
    check_ascending("word", offsets, bytes)?;
    Ok(words)
}

fn check_ascending(class: &str, offsets: &[u32], bytes: &[u8]) -> Result<()> {
    let fault = offsets.windows(3).position(|ends| {
        let start = ends[0] as usize;
        let middle = ends[1] as usize;
        let end = ends[2] as usize;
        bytes[start..middle].cmp(&bytes[middle..end]) != Ordering::Less
    });
    match fault {
        None => Ok(()),
        Some(at) => {
            let got = format!("{class} {} not above {class} {at}", at + 1);
            Err(unusable(got, format!("{class}s strictly ascending in byte order")))
        }
    }
}

fn unusable(got: impl Into<String>, allowed: String) -> Error {
    Error::InvalidArgument { name: "dictionary", got: got.into(), allowed }
}

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
        return folded.eq_ignore_ascii_case(Fold::bare(word));
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

    fn build(words: &[&str], separators: &[&[u8]]) -> Result<Dictionary> {
        let mut bytes = Vec::new();
        let mut offsets = vec![0];
        for token in words.iter().map(|word| word.as_bytes()).chain(separators.iter().copied()) {
            bytes.extend_from_slice(token);
            offsets.push(bytes.len() as u32);
        }
        Dictionary::from_parts(words.len() as u32, offsets, bytes.into())
    }

    #[test]
    fn finds_words_separators_and_prefixes() {
        let dictionary = build(&["a", "ab", "abc", "b", "é"], &[b"", b"\n", b" ", b"\xff"]).unwrap();
        assert_eq!(dictionary.len(), 9);
        assert_eq!(dictionary.word_id(b"abc"), Some(2.into()));
        assert_eq!(dictionary.word_id(b" "), None);
        assert_eq!(dictionary.word_id(b""), None);
        assert_eq!(dictionary.separator_id(b""), Some(5));
        assert_eq!(dictionary.separator_id(b"\xff"), Some(8));
        assert_eq!(dictionary.separator_id(b"a"), None);
        assert_eq!(dictionary.words_with_prefix(b"ab"), 1..3);
        assert_eq!(dictionary.words_with_prefix(b""), 0..5);
        assert_eq!(dictionary.words_with_prefix(b"c"), 4..4);
        assert_eq!(dictionary.words_with_prefix(b"\xc3"), 4..5);
        assert_eq!(dictionary.word(4.into()), "é");
        assert_eq!(dictionary.get(8), b"\xff");
        assert!(dictionary.is_word(4) && !dictionary.is_word(5));
        assert_eq!(dictionary.max_token_len(), 3);
        assert_eq!(dictionary.lengths().collect::<Vec<_>>(), [1, 2, 3, 1, 2, 0, 1, 1, 1]);
        assert_eq!(dictionary.lengths().len(), 9);
    }

    #[test]
    fn the_empty_dictionary_answers() {
        let dictionary = build(&[], &[]).unwrap();
        assert_eq!(dictionary, Dictionary::default());
        assert!(dictionary.is_empty());
        assert_eq!(dictionary.words_with_prefix(b""), 0..0);
        assert_eq!(dictionary.separator_id(b""), None);
    }

    #[test]
    fn refuses_what_it_could_not_answer_from() {
        let parts = |num_words, offsets: &[u32], bytes: &'static [u8]| {
            Dictionary::from_parts(num_words, offsets.to_vec(), Bytes::from_static(bytes))
        };
        let refused = [
            ("no offsets", parts(0, &[], b"")),
            ("more words than tokens", parts(2, &[0, 1], b"a")),
            ("late start", parts(1, &[1, 2], b"aa")),
            ("short end", parts(1, &[0, 1], b"aa")),
            ("beyond the end", parts(1, &[0, 3], b"aa")),
            ("falling", parts(0, &[0, 2, 1, 2], b"ab")),
            ("falling beyond", parts(1, &[0, u32::MAX, 2], b"ab")),
            ("empty word", parts(1, &[0, 0], b"")),
            ("words not ascending", parts(2, &[0, 1, 2], b"ba")),
            ("equal words", parts(2, &[0, 1, 2], b"aa")),
            ("invalid word", parts(1, &[0, 1], b"\xff")),
            ("cut character", parts(2, &[0, 1, 2], "é".as_bytes())),
            ("NUL word", parts(1, &[0, 1], b"\0")),
            ("separators not ascending", parts(0, &[0, 1, 2], b"\n\n")),
        ];
        for (what, result) in refused {
            assert!(matches!(result, Err(Error::InvalidArgument { .. })), "{what}: {result:?}");
        }
    }

    proptest! {
        #[test]
        fn lookups_agree_with_a_scan(
            words in prop::collection::btree_set("(aaaaaaa|abbbbbbbb)?[a-c]{1,4}", 0..90),
            separators in prop::collection::btree_set(prop::collection::vec(0_u8..4, 0..3), 0..9),
            query in "(aaaaaaa|abbbbbbbb)?[a-c]{0,4}",
        ) {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let separators: Vec<&[u8]> = separators.iter().map(Vec::as_slice).collect();
            let dictionary = build(&words, &separators).unwrap();
            let slow = words.iter().position(|word| *word == query).map(|id| WordId::from(id as u32));
            prop_assert_eq!(dictionary.word_id(query.as_bytes()), slow);
            for (id, word) in words.iter().enumerate() {
                prop_assert_eq!(dictionary.word_id(word.as_bytes()), Some((id as u32).into()));
            }
            for (at, separator) in separators.iter().enumerate() {
                let id = (words.len() + at) as u32;
                prop_assert_eq!(dictionary.separator_id(separator), Some(id));
                prop_assert_eq!(dictionary.get(id), *separator);
            }
            let range = dictionary.words_with_prefix(query.as_bytes());
            let slow: BTreeSet<u32> = (0..words.len() as u32)
                .filter(|&id| words[id as usize].starts_with(&query)).collect();
            prop_assert_eq!(range.collect::<BTreeSet<_>>(), slow);
        }

        #[test]
        fn hostile_parts_never_panic(
            num_words in 0_u32..6,
            offsets in prop::collection::vec(0_u32..9, 0..8),
            bytes in prop::collection::vec(any::<u8>(), 0..8),
        ) {
            if let Ok(dictionary) = Dictionary::from_parts(num_words, offsets, bytes.into()) {
                for id in 0..dictionary.len() {
                    let token = dictionary.get(id).to_vec();
                    if dictionary.is_word(id) {
                        prop_assert_eq!(dictionary.word(id.into()).as_bytes(), &token[..]);
                        prop_assert_eq!(dictionary.word_id(&token), Some(id.into()));
                    } else {
                        prop_assert_eq!(dictionary.separator_id(&token), Some(id));
                    }
                }
            }
        }
    }

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
