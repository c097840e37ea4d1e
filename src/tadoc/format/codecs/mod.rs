//! Codecs of the sections: dictionary, coded tokens and groups of them, documents, document lengths, word
//! counts, word lists, grammar.

pub(in crate::format) mod coded_tokens;
pub(in crate::format) mod dictionary;
pub(in crate::format) mod documents;
pub(in crate::format) mod grammar;
pub(in crate::format) mod grammar_stream;
pub(in crate::format) mod packed_grammar;
mod token_groups;
pub(in crate::format) mod word_counts;
pub(in crate::format) mod word_lists;

/// Returns true if `codec` is the number of a grammar section in static codes.
pub(in crate::format) fn has_static_codes(codec: u16) -> bool {
    codec == packed_grammar::CODEC || grammar_stream::is_stream(codec)
}
