//! What the test suites of the workspace share: texts, models, naive oracles.
//!
//! Nothing here is published; unit tests and suites name it as a dev-dependency. It depends on the
//! core only, with the feature `store` on living corpora and with `cuda` on devices too, so that suites of
//! these build without DataFusion.
//!
//! ```text
//! documents, texts, grammars     what suites try: real and random text, grammars that a test says
//! scrambled                      random corpora under arbitrary grammars, and their plain text
//! naive, reading                 the answers the slow way
//! edit_model, living             texts that are edited, and versions of them that are stored
//! malformed                      files that are damaged or falsified
//! random                         numbers of a case
//! alone, command, device         processes, the program `tadoc`, and the first device
//! ```

#![allow(clippy::unwrap_used, clippy::panic)]

pub mod alone;
pub mod command;
#[cfg(feature = "cuda")]
pub mod device;
pub mod documents;
pub mod edit_model;
pub mod grammars;
#[cfg(feature = "store")]
pub mod living;
pub mod malformed;
pub mod naive;
pub mod random;
pub mod reading;
pub mod scrambled;
pub mod texts;

use std::path::Path;

use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;

/// Returns a corpus of `texts` whose paths are their numbers, built in blocks of `block_bytes`.
pub fn corpus_of_texts(block_bytes: usize, texts: &[String]) -> Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in texts.iter().enumerate() {
        builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1
}

/// The root folder of the workspace.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap()
}
