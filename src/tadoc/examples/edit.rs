//! Edits a document without building its grammar anew: `cargo run -p tadoc --example edit`.

use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, EditBatch, EditMode, LivingCorpus};
use tadoc::format::OpenLimits;
use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    builder.push_document("a.txt", b"to be or not to be")?;
    let (file, _report) = builder.finish(None)?;
    let (_footer, corpus) = Corpus::from_bytes("memory", &file, &OpenLimits::default())?;

    let mut living = LivingCorpus::new(corpus);
    let insert = Edit::InsertText { doc_id: 0, offset_bytes: 5, text: b", friend,"[..].into() };
    living.apply(&EditBatch { mode: EditMode::InSequence, edits: vec![insert] })?;
    let edited = living.snapshot()?;
    println!("{}", String::from_utf8_lossy(&document_bytes(&edited, 0, DEFAULT_MAX_OUTPUT_BYTES)?));
    Ok(())
}
