//! Differences between the words of an edited document and those of its base.
//!
//! The count of a word in an edited document is its count in the base, minus the lost occurrences,
//! plus those in new text. Both numbers are kept by word after they were first asked for, so a
//! count costs one more look-up. Each edit then updates the numbers of the words beside it, O(bytes
//! that are tokenized again).

use std::collections::HashMap;

use crate::text::{TokenizerProfile, for_each_token};

/// Change of the occurrences of one word.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct WordChange {
    /// Number of occurrences in the base document that were removed.
    pub lost: u64,
    /// Number of occurrences in new text.
    pub fresh: u64,
}

/// Changes of all words whose occurrences differ from the base.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct WordChanges {
    by_word: HashMap<Box<[u8]>, WordChange>,
}

impl WordChanges {
    /// Returns the change of `word`.
    pub fn for_word(&self, word: &[u8]) -> WordChange {
        self.by_word.get(word).copied().unwrap_or_default()
    }

    /// Records that the base lost `text`, which begins and ends at a cut.
    pub fn lose(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.lost += 1);
    }

    /// Records that `text`, which begins and ends at a cut, was inserted.
    pub fn add(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.fresh += 1);
    }

    /// Records that `text`, which was inserted before and begins and ends at a cut, was removed.
    pub fn remove(&mut self, profile: TokenizerProfile, text: &[u8]) {
        self.for_each_word(profile, text, |change| change.fresh -= 1);
    }

    /// Returns the approximate number of bytes of memory held.
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
