//! Tests of the core against programs that do the same in a slow way.
//!
//! `naive_oracle` tests everything from the documents' own bytes. `round_trip` tests that documents
//! come back as they went in. Each of the other oracles tests a part, on random corpora whose
//! grammars no builder would make.

#![allow(clippy::unwrap_used, clippy::panic)]

mod access_oracle;
mod analytics_oracle;
mod batch_oracle;
mod cancel_oracle;
mod document_oracle;
mod edit_oracle;
mod fixtures;
mod fold_oracle;
mod grep_oracle;
mod grep_texts;
mod language_limits;
mod language_oracle;
mod naive_oracle;
mod near_duplicate_oracle;
mod overlap_oracle;
mod parts;
mod phrase_oracle;
mod query_oracle;
mod question_oracle;
mod round_trip;
mod sequence_oracle;
mod skipping_oracle;
mod span_oracle;
mod template_oracle;
