//! Benchmark of opening grammar sections, in all layouts and with one and two threads. Goal: the `small`
//! layout is decoded at 30 ns for an element of a large grammar by two threads.
//!
//! Command: `TADOC_CORPORA=/path cargo bench --bench grammar_sections`, with at least 100 MB of text in
//! one of the folders. It prints bytes and nanoseconds for each element of the grammar. The time is of
//! everything but the dictionary: checksums, the grammar, its lengths and paths. It is the shortest of
//! seven runs. The grammars of all layouts are compared.

#![allow(clippy::unwrap_used, missing_docs)]

mod corpora;

use std::hint::black_box;
use std::time::{Duration, Instant};

use corpora::{Subject, subjects};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::{
    FileFooter, OpenLimits, SectionKind, SegmentLayout, SegmentMeta, StoredDictionary, read_segment_with,
};

const NUM_RUNS: usize = 7;

fn main() {
    let pools = [1, 2].map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    println!("| corpus | layout | elements | bytes / element | ns, 1 thread | ns, 2 threads |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for subject in subjects() {
        for layout in [SegmentLayout::Small, SegmentLayout::Fast, SegmentLayout::INDEXED] {
            print_row(&subject, layout, &pools);
        }
    }
}

fn print_row(subject: &Subject, layout: SegmentLayout, pools: &[ThreadPool]) {
    let options = IngestOptions { layout, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc_id, doc) in subject.docs.iter().enumerate() {
        builder.push_document(&doc_id.to_string(), doc).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    let (footer, corpus) = Corpus::from_bytes("bench", &file, &OpenLimits::default()).unwrap();
    for (segment, other) in corpus.segments().iter().zip(subject.corpus.segments()) {
        let (grammar, other) = (segment.dag.grammar(), other.dag.grammar());
        assert_eq!(grammar.symbols.len(), other.symbols.len());
        assert_eq!(grammar.doc_offsets, other.doc_offsets);
    }
    let sections = footer.segments.iter().flat_map(|segment| &segment.sections);
    let grammars = sections.filter(|section| section.kind == SectionKind::Grammar);
    let num_bytes: u64 = grammars.map(|section| section.len).sum();
    let num_elements: u64 = footer.segments.iter().map(|segment| segment.num_elements).sum();
    let ns = pools.iter().map(|pool| {
        let runs = (0..NUM_RUNS).map(|_| pool.install(|| open(&footer, &file)));
        runs.min().unwrap().as_nanos() as f64 / num_elements as f64
    });
    let ns: Vec<String> = ns.map(|ns| format!("{ns:.1}")).collect();
    println!(
        "| {} | {layout} | {num_elements} | {:.3} | {} |",
        subject.name,
        num_bytes as f64 / num_elements as f64,
        ns.join(" | ")
    );
}

/// Opens all segments and returns the time of everything but their dictionaries.
fn open(footer: &FileFooter, file: &[u8]) -> Duration {
    let limits = OpenLimits::default();
    let part = |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
    let times = footer.segments.iter().enumerate().map(|(at, meta)| {
        let stored = part(meta.dictionary_range()).to_vec().into();
        let stored = StoredDictionary::new("bench", footer, at, stored).unwrap();
        let dictionary = stored.decode(&limits).unwrap();
        let rest = part(SegmentMeta::rest_range(meta));
        let start = Instant::now();
        let opened = read_segment_with("bench", footer, at, rest, dictionary, &limits);
        black_box(opened.unwrap());
        start.elapsed()
    });
    times.sum()
}
