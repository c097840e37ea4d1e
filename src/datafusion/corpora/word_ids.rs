//! Ids of exact words in a segment, of whose dictionary only the head is kept.

use std::collections::BTreeMap;
use std::sync::Arc;

use tadoc::format::DictionaryHead;
use tadoc::query::Query;

/// Most words of a segment whose ids are kept.
const MAX_IDS: usize = 256;

/// The head of a dictionary, and ids of words that were found by it.
#[derive(Debug, Clone)]
pub(super) struct WordIds {
    pub(super) head: Arc<DictionaryHead>,
    /// None for a word that the segment does not have.
    ids: Arc<BTreeMap<String, Option<u32>>>,
}

impl WordIds {
    pub(super) fn new(head: DictionaryHead) -> Self {
        Self { head: Arc::new(head), ids: Arc::default() }
    }

    /// Returns the id of `word`, `None` inside if it is not one of its words, or `None` if it is not known.
    pub(super) fn id(&self, word: &str) -> Option<Option<u32>> {
        self.ids.get(word).copied()
    }

    /// Returns it with more words. Earlier ones are given up where they are too many.
    pub(super) fn with(self, found: impl Iterator<Item = (String, Option<u32>)>) -> Self {
        let Self { head, ids } = self;
        let mut ids = if ids.len() < MAX_IDS { Arc::unwrap_or_clone(ids) } else { BTreeMap::new() };
        ids.extend(found);
        Self { head, ids: Arc::new(ids) }
    }

    /// Returns the number of bytes of main memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        let texts: usize = self.ids.keys().map(|word| word.len() + size_of::<(String, Option<u32>)>()).sum();
        self.head.memory_bytes() + texts
    }
}

/// Returns the exact words of `query`, ascending.
pub(super) fn exact_words(query: &Query) -> Vec<String> {
    let spellings = query.items().iter().flatten().filter_map(|pattern| pattern.as_spellings());
    let mut words: Vec<String> = spellings.flatten().cloned().collect();
    words.sort_unstable();
    words.dedup();
    words
}
