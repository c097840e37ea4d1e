//! Corpora of a few texts, for tests.

use crate::build::{CorpusBuilder, IngestOptions};
use crate::format::OpenLimits;
use crate::segment::Corpus;

/// Builds a corpus of `texts` in blocks of `block_bytes`. The path of each document is its number.
pub(crate) fn corpus_of_texts(block_bytes: usize, texts: &[String]) -> Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in texts.iter().enumerate() {
        builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1
}
