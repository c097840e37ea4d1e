//! From bytes to token ids: tokenizer profiles and the dictionary.
//!
//! Tokens tile the bytes: each document is cut into *word* and *separator* tokens whose
//! concatenation is the document, byte for byte, whatever the bytes are. Then the spaceless model
//! (de Moura, Navarro, Ziviani, Baeza-Yates, TOIS 2000) removes every separator that is exactly one
//! blank between two words (-32 % tokens on prose), and inserts an empty separator where two word
//! tokens touch, so that the decoder's rule is: two neighbouring words have a blank between them.
//!
//! Reading order: [`TokenizerProfile`] (what a word is), [`Dictionary`] (ids), [`tokenize_block`]
//! (documents in, ids out, all threads).

mod block;
mod classes;
mod cuts;
mod dictionary;
mod fold;
mod interner;
mod repeats;
mod segments;
mod tokenizer;

pub use block::{TokenizedBlock, tokenize_block};
pub use cuts::{first_cut, last_cut};
pub use dictionary::Dictionary;
pub use fold::Fold;
pub use tokenizer::{MAX_TOKEN_BYTES, Token, TokenizerProfile, UNICODE_VERSION, for_each_token};
