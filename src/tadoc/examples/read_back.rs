//! Writes every document of a corpus file to standard output, exactly as it was:
//! `cargo run -p tadoc --example read_back -- CORPUS.tadoc`.

use std::io::Write;
use std::path::Path;

use tadoc::Corpus;
use tadoc::format::OpenLimits;
use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("expected CORPUS.tadoc")?;
    let (footer, corpus) = Corpus::open(Path::new(&path), &OpenLimits::default())?;
    let mut out = std::io::stdout().lock();
    for doc_id in 0..footer.num_docs() {
        out.write_all(&document_bytes(&corpus, doc_id, DEFAULT_MAX_OUTPUT_BYTES)?)?;
    }
    Ok(())
}
