//! Helpers that the test suites of the workspace share: texts, models and naive oracles.
//!
//! This crate is not published. Unit tests and suites use it as a dev-dependency. It depends only
//! on the core. The feature `store` adds living corpora, and `cuda` adds devices. So suites of
//! these build without DataFusion.
//!
//! ```text
//! documents, texts              inputs: real and random text, and files of it
//! scrambled                     corpora under grammars that no builder makes, and their plain text
//! naive, reading                the answers, computed in the slow way
//! edit_model, living            edited texts, and stored versions of them
//! malformed                     damaged and falsified files
//! random                        the random numbers of a test case
//! plans                         calls of every table function, and random statements over them
//! command, device               processes, the program `tadoc` among them, and the first device
//! servers                       servers of files
//! ```

#![allow(clippy::unwrap_used, clippy::panic)]

pub mod command;
#[cfg(feature = "cuda")]
pub mod device;
pub mod documents;
pub mod edit_model;
#[cfg(feature = "store")]
pub mod living;
pub mod malformed;
pub mod naive;
pub mod plans;
pub mod random;
pub mod reading;
pub mod scrambled;
pub mod servers;
pub mod texts;

use std::path::Path;

use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;

/// Builds a corpus of `texts` in blocks of `block_bytes`. Paths are the numbers of the texts.
pub fn corpus_of_texts(block_bytes: usize, texts: &[String]) -> Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in texts.iter().enumerate() {
        builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1
}

/// Returns the root folder of the workspace.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap()
}
