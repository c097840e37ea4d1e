//! Batches of words in documents: counts and offsets.
//!
//! Reading order: `words` (the functions, and the answers), `plan` (parts and groups),
//! `offset_lists` (the result of a batch of searches).

pub(in crate::query) mod offset_lists;
pub(in crate::query) mod plan;
pub(in crate::query) mod words;

pub use offset_lists::OffsetLists;
pub use plan::WordQuery;
pub use words::{count_batch, search_batch};

pub(crate) use plan::check_word;
