//! The core against programs that do the same the slow way.
//!
//! `naive_oracle`: all of it, from the documents' own bytes. `round_trip`: what goes in comes out. The other oracles
//! take a part each, over random corpora whose grammars no builder would make.

#![allow(clippy::unwrap_used, clippy::panic)]

mod access_oracle;
mod analytics_oracle;
mod batch_oracle;
mod document_oracle;
mod edit_oracle;
mod fold_oracle;
mod naive_oracle;
mod phrase_oracle;
mod query_oracle;
mod round_trip;
mod sequence_oracle;
