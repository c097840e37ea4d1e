//! Counts the words of files: `cargo run -p tadoc --example count_words -- FILE…`.

use tadoc::Corpus;
use tadoc::analytics::word_count;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;

/// Words that are printed.
const TOP: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    for path in std::env::args().skip(1) {
        builder.push_document(&path, &std::fs::read(&path)?)?;
    }
    let (file, report) = builder.finish(None)?;
    println!("{} documents in {} bytes", report.footer.num_docs(), file.len());

    let (_footer, corpus) = Corpus::from_bytes("memory", &file, &OpenLimits::default())?;
    let counts = word_count(&corpus)?;
    for row in counts.top(TOP) {
        println!("{:>8} {}", counts.count(row), counts.word(row));
    }
    Ok(())
}
