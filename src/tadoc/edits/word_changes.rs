//! How the words of an edited document differ from those of its base.
//!
//! A count in an edited document is that in the base, less what the base lost, and what stands in
//! new text. Both are kept by word once they were asked for, so a count costs one look-up more; an edit
//! then changes the numbers of the words beside it, O(bytes that are cut anew).

use std::collections::HashMap;

use crate::text::{TokenizerProfile, for_each_token};

/// Numbers of one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WordChange {
    /// Occurrences in the base document that are no more.
    pub lost: u64,
    /// Occurrences in new text.
    pub fresh: u64,
}

/// Numbers of all words that are not as in the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WordChanges {
    by_word: HashMap<Box<[u8]>, WordChange>,
}

impl WordChanges {
    /// The numbers of `word`.
    pub fn of(&self, word: &[u8]) -> WordChange {
        self.by_word.get(word).copied().unwrap_or_default()
    }

    /// Notes that the base lost `text`, which is cut at both ends.
    pub fn lose(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.lost += 1);
    }

    /// Notes that `text`, which is cut at both ends, was put in.
    pub fn add(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.fresh += 1);
    }

    /// Notes that `text`, which was put in before and is cut at both ends, is no more.
    pub fn remove(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.fresh -= 1);
    }

    /// Bytes of memory held, about.
    pub fn memory_bytes(&self) -> usize {
        let words: usize = self.by_word.keys().map(|word| word.len()).sum();
        words + self.by_word.capacity() * size_of::<(Box<[u8]>, WordChange)>()
    }

    fn for_each_word(
        &mut self,
        profile: TokenizerProfile,
        text: &[u8],
        mut change: impl FnMut(&mut WordChange),
    ) {
        for_each_token(profile, text, |token| {
            if !token.is_word {
                return;
            }
            match self.by_word.get_mut(token.bytes) {
                Some(known) => change(known),
                None => change(self.by_word.entry(token.bytes.into()).or_default()),
            }
        });
    }
}
