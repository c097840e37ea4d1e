//! What the test suites of the workspace share: texts, models, naive oracles.
//!
//! Nothing here is published; unit tests and suites name it as a dev-dependency. It depends on the
//! core only, so that suites of the core build without DataFusion.

#![allow(clippy::unwrap_used, clippy::panic)]

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
