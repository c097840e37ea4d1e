//! Tokenizer profiles and the dictionary: bytes of documents to token ids.
//!
//! Each document is cut into *word* and *separator* tokens. Their concatenation is the document, byte for byte, for any
//! bytes. Then the spaceless model (de Moura, Navarro, Ziviani, Baeza-Yates, TOIS 2000) removes every separator that is
//! exactly one blank between two words (-32 % tokens on prose). It inserts an empty separator between two word tokens
//! that touch. So the decoder needs only one rule: two neighbouring words have a blank between them.
//!
//! Reading order: [`TokenizerProfile`] (rule for words), [`Dictionary`] (ids), [`tokenize_block`]
//! (documents to ids, on all threads), [`Fold`] (words that count as equal), [`first_cut`] and
//! [`last_cut`] (places at which a text can be cut), [`TextQuality`] (measures of a text).
//!
//! ```
//! use tadoc::text::{TokenizerProfile, tokenize_block};
//!
//! # fn main() -> tadoc::Result<()> {
//! let block = tokenize_block(TokenizerProfile::Word, b"to be, or", &[9])?;
//! // Words: be, or, to. Separator: a comma and a blank. The blank behind "to" is implied.
//! assert_eq!(block.dictionary.word_id(b"to"), Some(2.into()));
//! assert_eq!(block.tokens, [2, 0, 3, 1]);
//! # Ok(())
//! # }
//! ```

mod block;
mod dictionary;
mod fold;
mod interner;
mod quality;
mod segments;
mod tokenizer;
mod unspaced;

pub use block::{TokenizedBlock, tokenize_block};
pub use dictionary::Dictionary;
pub(crate) use dictionary::is_folded_to;
pub use fold::{Fold, Language, Synonyms};
pub(crate) use fold::{composed, spellings};
pub use quality::TextQuality;
pub use segments::MAX_TOKEN_BYTES;
pub(crate) use tokenizer::in_one_word;
pub use tokenizer::{Token, TokenizerProfile, first_cut, for_each_token, last_cut};
pub(crate) use unspaced::{INVISIBLE, is_invisible};
