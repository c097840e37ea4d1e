//! Ranks the documents of a corpus file for queries and prints the best of each, with the time of
//! the first and the shortest time of later calls:
//! `cargo run -p tadoc --example rank -- CORPUS.tadoc 'storm OR night' '"power loss"'`.

use std::path::Path;
use std::time::{Duration, Instant};

use tadoc::Corpus;
use tadoc::format::OpenLimits;
use tadoc::query::{LeafLists, Query, RankOptions, Ranker, SearchOptions};

/// Number of calls of which the shortest counts.
const NUM_CALLS: usize = 20;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("expected CORPUS.tadoc and queries")?;
    let (_footer, corpus) = Corpus::open(Path::new(&path), &OpenLimits::default())?;
    let (ranker, lists) = (Ranker::new(&corpus, None, None)?, LeafLists::default());
    let (options, search) = (RankOptions::default(), SearchOptions::default());
    for text in arguments {
        let query = Query::parse(corpus.profile(), &text)?;
        let rank = || ranker.rank(&corpus, &lists, &query, &options, &search);
        let start = Instant::now();
        let best = rank()?;
        let first = start.elapsed();
        let later = (0..NUM_CALLS).map(|_| {
            let start = Instant::now();
            rank().map(|_| start.elapsed())
        });
        let later: Duration =
            later.collect::<tadoc::Result<Vec<_>>>()?.into_iter().min().ok_or("")?;
        let best: Vec<String> =
            best.iter().map(|row| format!("{}:{:.6}", row.doc_id, row.score)).collect();
        println!("{text}\t{}\t{}\t{}", first.as_nanos(), later.as_nanos(), best.join(" "));
    }
    Ok(())
}
