//! Searches a corpus file and prints each hit in its context:
//! `cargo run -p tadoc --example search -- CORPUS.tadoc '"power loss"'`.

use std::path::Path;

use tadoc::Corpus;
use tadoc::format::OpenLimits;
use tadoc::query::{Query, search};
use tadoc::read::extract;

/// Bytes that are shown on each side of a hit.
const CONTEXT_BYTES: u64 = 40;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(query)) = (arguments.next(), arguments.next()) else {
        return Err("expected CORPUS.tadoc and a query".into());
    };
    let (_footer, corpus) = Corpus::open(Path::new(&path), &OpenLimits::default())?;
    let query = Query::parse(corpus.profile(), &query)?;
    for hit in search(&corpus, &query, None)? {
        let start = hit.byte_offset.saturating_sub(CONTEXT_BYTES);
        let len = hit.byte_offset - start + hit.byte_len + CONTEXT_BYTES;
        let passage = extract(&corpus, hit.doc_id, start, len)?;
        let shown = String::from_utf8_lossy(&passage).replace('\n', " ");
        println!("{}:{}: {shown}", hit.doc_id, hit.byte_offset);
    }
    Ok(())
}
