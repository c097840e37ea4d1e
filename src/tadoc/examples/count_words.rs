//! Counts the words of files, inserts a text into the first of them without building its grammar anew, and shows how
//! the count of a word changes: `cargo run -p tadoc --example count_words -- FILE…`.

use tadoc::Corpus;
use tadoc::analytics::word_count;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, EditBatch, EditMode, LivingCorpus};
use tadoc::format::OpenLimits;
use tadoc::query::{Query, SearchOptions, count_by_document};

/// Words that are printed.
const TOP: usize = 20;
/// Text that is inserted.
const INSERTED: &str = "friend, ";

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
    if report.footer.num_docs() == 0 {
        return Ok(());
    }
    println!("{:>8} friend", num_friends(&corpus)?);
    let mut living = LivingCorpus::new(corpus);
    let insert = Edit::InsertText { doc_id: 0, offset_bytes: 0, text: INSERTED.as_bytes().into() };
    living.apply(&EditBatch { mode: EditMode::InSequence, edits: vec![insert] })?;
    println!("{:>8} friend, behind the insert", num_friends(&living.snapshot()?)?);
    Ok(())
}

/// Returns the occurrences of the word of [`INSERTED`] in the first document.
fn num_friends(corpus: &Corpus) -> tadoc::Result<u64> {
    let query = Query::parse(corpus.profile(), "friend")?;
    let counts = count_by_document(corpus, &query, &SearchOptions::default())?;
    Ok(counts.iter().filter(|row| row.doc_id == 0).map(|row| row.count).sum())
}
