//! Benchmark of opening grammar sections, in all layouts and with one and two threads. Goal: the `small`
//! layout is decoded at 30 ns for an element of a large grammar by two threads.
//!
//! Command: `TADOC_CORPORA=/path cargo bench --bench grammar_sections`, with at least 100 MB of text in
//! one of the folders. It prints bytes and nanoseconds for each element of the grammar. The time is of
//! everything but the dictionary: checksums, the grammar, its lengths and paths. It is the shortest of
//! seven runs. The grammars of all layouts are compared.
//!
//! A second table has the layout `indexed`: bytes of its dictionaries over those of `small`, and the time
//! of one document, and of 50 spread over the corpus, over the time of all. That of a document is of its
//! units and of their words.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod corpora;

use std::hint::black_box;
use std::time::{Duration, Instant};

use corpora::{Subject, subjects};
use rayon::{ThreadPool, ThreadPoolBuilder};
use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::{
    FileFooter, FooterOutcome, OpenLimits, SectionKind, SegmentLayout, SegmentMeta, StoredDictionary,
    read_documents_with, read_segment_with,
};

const NUM_RUNS: usize = 7;

fn main() {
    let pools = [1, 2].map(|threads| ThreadPoolBuilder::new().num_threads(threads).build().unwrap());
    println!("| corpus | layout | elements | bytes / element | ns, 1 thread | ns, 2 threads |");
    println!("| --- | --- | ---: | ---: | ---: | ---: |");
    for subject in subjects() {
        for layout in [SegmentLayout::Small, SegmentLayout::INDEXED] {
            print_row(&subject, layout, &pools);
        }
    }
    println!("\n| corpus | tokens | dictionary / small | one document / all | 50 documents / all |");
    println!("| --- | ---: | ---: | ---: | ---: |");
    for subject in subjects() {
        print_documents(&subject);
    }
}

fn file_in(subject: &Subject, layout: SegmentLayout) -> (FileFooter, Vec<u8>) {
    let options = IngestOptions { layout, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc_id, doc) in subject.docs.iter().enumerate() {
        builder.push_document(&doc_id.to_string(), doc).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    let limits = OpenLimits::default();
    let footer = FileFooter::parse("bench", &file, file.len() as u64, &limits).unwrap();
    let FooterOutcome::Footer(footer) = footer else { panic!("the whole file was passed") };
    (footer, file)
}

fn print_documents(subject: &Subject) {
    let (footer, file) = file_in(subject, SegmentLayout::INDEXED);
    let (small, _) = file_in(subject, SegmentLayout::Small);
    let dictionary_bytes = |footer: &FileFooter| {
        let ranges = footer.segments.iter().map(SegmentMeta::dictionary_range);
        ranges.map(|range| range.end - range.start).sum::<u64>() as f64
    };
    let num_tokens: u64 = footer.segments.iter().map(|meta| u64::from(meta.num_words + meta.num_separators)).sum();
    let shortest = |num_docs: Option<usize>| {
        let runs = (0..NUM_RUNS).map(|_| open_documents(&footer, &file, num_docs));
        runs.min().unwrap().as_secs_f64()
    };
    let [all, one, fifty] = [None, Some(1), Some(50)].map(shortest);
    let ratio = dictionary_bytes(&footer) / dictionary_bytes(&small);
    println!("| {} | {num_tokens} | {ratio:.3} | {:.3} | {:.3} |", subject.name, one / all, fifty / all);
}

/// Reads documents of the first segment, spread over it, or all of it, and returns the time.
fn open_documents(footer: &FileFooter, file: &[u8], num_docs: Option<usize>) -> Duration {
    let limits = OpenLimits::default();
    let part = |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
    let meta = &footer.segments[0];
    let stored = part(meta.dictionary_range()).to_vec().into();
    let rest = part(meta.rest_range());
    let start = Instant::now();
    let words = StoredDictionary::new("bench", footer, 0, stored).unwrap();
    match num_docs {
        None => {
            let dictionary = words.decode(&limits).unwrap();
            black_box(read_segment_with("bench", footer, 0, rest, dictionary, &limits).unwrap());
        }
        Some(num_docs) => {
            let step = (meta.num_docs as usize / num_docs).max(1);
            let docs: Vec<u32> = (0..meta.num_docs as u32).skip(step / 2).step_by(step).take(num_docs).collect();
            let tokens =
                |ids: Option<&[u32]>| ids.map_or_else(|| words.decode(&limits), |ids| words.subset(ids, &limits));
            black_box(read_documents_with("bench", footer, 0, rest, tokens, &docs, &limits).unwrap());
        }
    }
    start.elapsed()
}

fn print_row(subject: &Subject, layout: SegmentLayout, pools: &[ThreadPool]) {
    let (footer, file) = file_in(subject, layout);
    let (_, corpus) = Corpus::from_bytes("bench", &file, &OpenLimits::default()).unwrap();
    for (segment, other) in corpus.segments().iter().zip(subject.corpus.segments()) {
        let grammar = segment.dag.grammar();
        let other = other.dag.grammar();
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
