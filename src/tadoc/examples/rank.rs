//! Ranks the documents of a corpus file for queries and counts the documents that match. Prints the best documents and
//! the number of all, each with the time of the first call and the shortest time of later ones: `cargo run -p tadoc
//! --example rank -- CORPUS.tadoc 'storm OR night' '"power loss"'`.

use std::ops::ControlFlow;
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
    let ranker = Ranker::new(&corpus, None, None)?;
    let lists = LeafLists::default();
    let options = RankOptions::default();
    let search = SearchOptions::default();
    for text in arguments {
        let query = Query::parse(corpus.profile(), &text)?;
        let best = timed(|| ranker.rank(&corpus, &lists, &query, &options, &search))?;
        let num_docs = timed(|| {
            let mut num_docs = 0;
            lists.term_count(&corpus, &query, &search, &mut |counts| {
                num_docs += counts.len();
                ControlFlow::Continue(())
            })?;
            Ok(num_docs)
        })?;
        let rows: Vec<String> = best.answer.iter().map(|row| format!("{}:{:.6}", row.doc_id, row.score)).collect();
        println!("{text}\t{best}\t{}\t{num_docs}\t{}", rows.join(" "), num_docs.answer);
    }
    Ok(())
}

/// An answer, and the times of calls that give it.
struct Timed<T> {
    answer: T,
    first: Duration,
    later: Duration,
}

impl<T> std::fmt::Display for Timed<T> {
    /// Writes the time of the first call and the shortest time of later ones, in nanoseconds.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}\t{}", self.first.as_nanos(), self.later.as_nanos())
    }
}

fn timed<T>(call: impl Fn() -> tadoc::Result<T>) -> tadoc::Result<Timed<T>> {
    let start = Instant::now();
    let answer = call()?;
    let first = start.elapsed();
    let mut later = Duration::MAX;
    for _ in 0..NUM_CALLS {
        let start = Instant::now();
        call()?;
        later = later.min(start.elapsed());
    }
    Ok(Timed { answer, first, later })
}
