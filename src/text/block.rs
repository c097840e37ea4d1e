//! From a block of documents to token ids: first, straightforward version.

use std::collections::BTreeMap;

use super::{Dictionary, Token, TokenizerProfile, for_each_token};
use crate::error::{Error, Result};

/// A block of documents as token ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenizedBlock {
    /// Words and separators of the block.
    pub dictionary: Dictionary,
    /// Ids of all documents, one after the other, without implied blanks.
    pub tokens: Vec<u32>,
    /// Where each document starts in `tokens`, and the number of tokens as last entry.
    pub doc_offsets: Vec<usize>,
    /// How many of the tokens are words.
    pub num_word_tokens: u64,
}

/// Tokenizes documents that lie one after the other in `text`, each ending at its `doc_ends`.
///
/// # Errors
///
/// [`Error::InvalidArgument`] when `doc_ends` falls or does not end at the text's end.
pub fn tokenize_block(
    profile: TokenizerProfile,
    text: &[u8],
    doc_ends: &[usize],
) -> Result<TokenizedBlock> {
    if doc_ends.last().copied().unwrap_or(0) != text.len() || !doc_ends.is_sorted() {
        return Err(Error::InvalidArgument {
            name: "doc_ends",
            got: format!("{} ends, the last {:?}", doc_ends.len(), doc_ends.last()),
            allowed: format!("ends that never fall and finish at {}", text.len()),
        });
    }
    let mut stored: Vec<Token<'_>> = Vec::new();
    let mut doc_offsets = vec![0];
    let mut start = 0;
    for &end in doc_ends {
        let mut doc: Vec<Token<'_>> = Vec::new();
        for_each_token(profile, &text[start..end], |token| doc.push(token));
        for (idx, &token) in doc.iter().enumerate() {
            let after_word = idx > 0 && doc[idx - 1].is_word;
            let before_word = doc.get(idx + 1).is_some_and(|next| next.is_word);
            if token.is_word && after_word {
                stored.push(Token { bytes: b"", is_word: false });
            }
            if token.is_word || token.bytes != b" " || !after_word || !before_word {
                stored.push(token);
            }
        }
        doc_offsets.push(stored.len());
        start = end;
    }
    let mut ids: BTreeMap<(bool, &[u8]), u32> = BTreeMap::new();
    stored.iter().for_each(|token| {
        ids.insert((!token.is_word, token.bytes), 0);
    });
    let mut bytes = Vec::new();
    let mut offsets = vec![0];
    let num_words = ids.keys().filter(|key| !key.0).count() as u32;
    for (id, (key, slot)) in ids.iter_mut().enumerate() {
        *slot = id as u32;
        bytes.extend_from_slice(key.1);
        offsets.push(bytes.len() as u32);
    }
    let tokens = stored.iter().map(|token| ids[&(!token.is_word, token.bytes)]).collect();
    Ok(TokenizedBlock {
        dictionary: Dictionary::from_parts(num_words, offsets, bytes.into())?,
        tokens,
        doc_offsets,
        num_word_tokens: stored.iter().filter(|token| token.is_word).count() as u64,
    })
}
