//! Searches a corpus file and prints each hit in its context, or writes every document of it to standard output,
//! exactly as it was: `cargo run -p tadoc --example search -- CORPUS.tadoc ['"power loss"']`.

use std::io::Write;
use std::path::Path;

use tadoc::Corpus;
use tadoc::format::OpenLimits;
use tadoc::query::{Query, search};
use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes, extract};

/// Bytes that are shown on each side of a hit.
const CONTEXT_BYTES: u64 = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("expected CORPUS.tadoc, and a query if hits are wanted")?;
    let (footer, corpus) = Corpus::open(Path::new(&path), &OpenLimits::default())?;
    match arguments.next() {
        Some(query) => print_hits(&corpus, &query)?,
        None => write_documents(&corpus, footer.num_docs())?,
    }
    Ok(())
}

fn print_hits(corpus: &Corpus, query: &str) -> tadoc::Result<()> {
    let query = Query::parse(corpus.profile(), query)?;
    for hit in search(corpus, &query, None)? {
        let start = hit.byte_offset.saturating_sub(CONTEXT_BYTES);
        let len = hit.byte_offset - start + hit.byte_len + CONTEXT_BYTES;
        let passage = extract(corpus, hit.doc_id, start, len)?;
        let shown = String::from_utf8_lossy(&passage).replace('\n', " ");
        println!("{}:{}: {shown}", hit.doc_id, hit.byte_offset);
    }
    Ok(())
}

fn write_documents(corpus: &Corpus, num_docs: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    for doc_id in 0..num_docs {
        out.write_all(&document_bytes(corpus, doc_id, DEFAULT_MAX_OUTPUT_BYTES)?)?;
    }
    Ok(())
}
