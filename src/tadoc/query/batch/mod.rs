//! Words in documents, many at once: how often, and where.

pub(in crate::query) mod offset_lists;
pub(in crate::query) mod plan;
pub(in crate::query) mod words;

pub use offset_lists::OffsetLists;
pub use words::{WordQuery, count_batch, search_batch};

pub(crate) use words::check_word;
