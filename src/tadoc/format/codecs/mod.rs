//! Codecs of the sections: dictionary, documents, document lengths, word counts, grammar.

pub(in crate::format) mod dictionary;
pub(in crate::format) mod dictionary_blocks;
pub(in crate::format) mod document_lengths;
pub(in crate::format) mod documents;
pub(in crate::format) mod grammar;
pub(in crate::format) mod packed_grammar;
mod token_list;
pub(in crate::format) mod word_counts;
