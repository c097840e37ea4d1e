//! Benchmark of tasks over corpora on the device beside the CPU, on one core and on all. Goals: at
//! least 30 times one core for counts, and at least 50 times for batches of 100,000 passages.
//!
//! `REQUIRE_GPU=1 cargo bench --bench gpu_corpus` makes text of three kinds, compresses it, and
//! runs each task on it. The device's time is that of its own clock, with the corpus in device
//! memory. "Whole" begins with the upload of the grammars and ends with the rows on the host. Every answer
//! is compared with the CPU's. Without a device the benchmark says so and does nothing, unless
//! `REQUIRE_GPU=1`.
//!
//! ```text
//! TADOC_GPU_MIB    sizes of text                       208; 10,100,1000 for crossover.py
//! TADOC_GPU_KINDS  kinds of text                       log,versioned,prose
//! TADOC_GPU_TASKS  prefixes of the tasks to run        all; terms,sequence_count(3)
//! TADOC_GPU_RUNS   runs on the device, the median counts    11; 1 under a profiler
//! ```
//!
//! `benches/peers/crossover.py` draws figures from the output, and `kernels/profile.py` explains
//! it.

#![allow(clippy::unwrap_used, missing_docs)]

mod measuring;
#[path = "gpu_corpus/mod.rs"]
mod texts;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use cudarc::driver::{CudaContext, DriverError};
use measuring::{AMPLE, CpuRuns, Pools, built, number, open_device, variable};
use rayon::ThreadPool;
use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::analytics::{
    Cooccurrences, DocSelection, DocumentSequenceCounts, DocumentSequences, InvertedIndex, RankedInvertedIndex,
    SegmentDocumentSequences, SegmentShape, SequenceCounts, TermVectorChunk, TermVectors, Traversal, TraversalTask,
    Vocabulary, choose_task_traversal,
};
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::grammar::Grammar;
use tadoc::ids::DocId;
use tadoc::read::extract_into;
use tadoc::segment::{Dag, EdgeWords, Inverse, Measure, PrefixSums, Segment};
use tadoc_cuda::{
    Device, DeviceCorpus, DeviceGroup, DocumentSequenceRows, DocumentWords, GpuError, PassageQuery, WordDocuments,
};
use texts::{Random, documents};

const NUM_QUERIES: usize = 100_000;
const QUERY_BYTES: u64 = 64;
/// Number of runs of a task on the device unless `TADOC_GPU_RUNS` sets it. The median counts.
const NUM_RUNS: usize = 11;
/// Words of the documents that are counted at once, as SQL does.
const CHUNK_WORDS: u64 = 1 << 18;
/// Number of bytes of a copy in device memory.
const COPY_BYTES: usize = 1 << 30;
/// Runs of a task on the CPU. The least time counts.
const CPU_RUNS: CpuRuns = CpuRuns { max_runs: 5, max_seconds: 1.5 };

/// Seconds of a task, summed over the segments of a corpus.
#[derive(Default)]
struct Times {
    one_core: f64,
    all_cores: f64,
    device: f64,
    whole: f64,
    bytes: u64,
}

impl Times {
    fn add_cpu(&mut self, (one_core, all_cores): (f64, f64)) {
        self.one_core += one_core;
        self.all_cores += all_cores;
    }
}

fn main() -> Result<(), GpuError> {
    let Some(device) = open_device()? else { return Ok(()) };
    let sizes = variable("TADOC_GPU_MIB", "208");
    let kinds = variable("TADOC_GPU_KINDS", "log,versioned,prose");
    let pools = Pools::new();
    println!("{}, {} CPU cores", device.name(), pools.all.current_num_threads());
    println!("copies in device memory: {:.0} GB/s, read and written", copied_gb_per_s().unwrap());
    for kind in kinds.split(',') {
        for mib in sizes.split(',') {
            measure_kind(&device, &pools, kind, mib.parse::<usize>().unwrap() << 20)?;
        }
    }
    Ok(())
}

/// Measures the rate of copies, with which `sort` and the other streaming kernels are compared.
fn copied_gb_per_s() -> Result<f64, DriverError> {
    let stream = CudaContext::new(0)?.default_stream();
    let from = stream.alloc_zeros::<u8>(COPY_BYTES)?;
    let mut to = stream.alloc_zeros::<u8>(COPY_BYTES)?;
    stream.memcpy_dtod(&from, &mut to)?;
    stream.synchronize()?;
    let start = Instant::now();
    for _ in 0..NUM_RUNS {
        stream.memcpy_dtod(&from, &mut to)?;
    }
    stream.synchronize()?;
    let copied = 2 * COPY_BYTES * NUM_RUNS;
    Ok(copied as f64 / start.elapsed().as_secs_f64() / 1e9)
}

/// Returns true if `task` is to run.
fn is_asked(task: &str) -> bool {
    let tasks = variable("TADOC_GPU_TASKS", "");
    tasks.split(',').any(|start| task.starts_with(start))
}

fn measure_kind(device: &Device, pools: &Pools, kind: &str, len_bytes: usize) -> Result<(), GpuError> {
    let start = Instant::now();
    let documents = documents(kind, len_bytes);
    let builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    let corpus = built(builder, &documents);
    let text_bytes: usize = documents.iter().map(Vec::len).sum();
    drop(documents);
    let segments = corpus.segments();
    let sum = |of: fn(&Segment) -> usize| segments.iter().map(|s| of(s)).sum::<usize>();
    println!(
        "\n{kind}: {text_bytes} bytes, {} documents, {} segments, N = {} words, G = {}, {} rules, \
         {} words in dictionaries; made in {:.1} s",
        corpus.num_docs(),
        segments.len(),
        sum(|s| s.dag.len_words(s.dag.num_terminals()) as usize),
        sum(|s| s.dag.grammar().symbols.len()),
        sum(|s| s.dag.grammar().num_rules()),
        sum(|s| s.dag.num_words() as usize),
        start.elapsed().as_secs_f64(),
    );
    println!("| task | one core, ms | all cores | device | whole | one core : device | all cores : whole | GB/s |");
    let mut uploads = Vec::new();
    for segment in segments {
        uploads.push(DeviceCorpus::upload(device, segment)?);
    }
    if is_asked("index generation") {
        measure_index(device, pools, segments, &uploads)?;
    }
    if is_asked("word_count") {
        measure_words(device, pools, segments)?;
    }
    if is_asked("passages") {
        measure_passages(device, pools, &corpus, &uploads)?;
    }
    if is_asked("terms") {
        measure_terms(device, pools, segments)?;
    }
    for n in [2, 3] {
        if is_asked(&format!("sequence_count({n})")) {
            measure_sequences(device, pools, segments, n)?;
        }
    }
    if is_asked("ranked_inverted_index(3)") {
        measure_ranked(device, pools, segments, 3)?;
    }
    if is_asked("sequence_count(3, by_doc)") {
        measure_document_sequences(device, pools, &corpus, 3)?;
    }
    if is_asked("cooccurrence(5)") {
        measure_pairs(device, pools, segments, 5)?;
    }
    println!("device memory at most: {} MiB", device.peak_bytes() >> 20);
    Ok(())
}

/// Returns the median seconds of `run` by the device's clock.
fn device_seconds(device: &Device, run: impl FnMut() -> Result<(), GpuError>) -> Result<f64, GpuError> {
    measuring::device_seconds(device, number("TADOC_GPU_RUNS", NUM_RUNS), run)
}

fn print(task: &str, times: &Times) {
    let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
    println!(
        "| {task} | {} | {} | {} | {} | {:.1} | {:.2} | {:.0} |",
        ms(times.one_core),
        ms(times.all_cores),
        ms(times.device),
        ms(times.whole),
        times.one_core / times.device,
        times.all_cores / times.whole,
        times.bytes as f64 / times.device / 1e9,
    );
}

/// Returns the graphs of the segments.
fn fresh(segments: &[Arc<Segment>]) -> Vec<Dag> {
    let dag = |segment: &Arc<Segment>| {
        let grammar = segment.dag.grammar().clone();
        Dag::new(grammar, segment.dag.num_words(), segment.dictionary.lengths()).unwrap()
    };
    segments.iter().map(dag).collect()
}

/// Measures lengths, starts, inverse grammar, weights, and first and last words of rules. The CPU
/// also validates the grammar.
fn measure_index(
    device: &Device,
    pools: &Pools,
    segments: &[Arc<Segment>],
    uploads: &[DeviceCorpus],
) -> Result<(), GpuError> {
    let mut times = Times::default();
    let grammars = || -> Vec<_> { segments.iter().map(|s| s.dag.grammar().clone()).collect() };
    let derive = |grammars: Vec<Grammar>| {
        grammars.into_par_iter().zip(segments).for_each(|(grammar, segment)| {
            let lens = segment.dictionary.lengths();
            let dag = Dag::new(grammar, segment.dag.num_words(), lens).unwrap();
            let inverse = Inverse::new(dag.grammar());
            let weights = dag.grammar().weights();
            black_box((inverse, weights, PrefixSums::new(&dag), EdgeWords::new(&dag)));
        });
    };
    let seconds = |pool: &ThreadPool| pool.install(|| CPU_RUNS.least_seconds(grammars, derive));
    times.add_cpu((seconds(&pools.one), seconds(&pools.all)));
    for (segment, upload) in segments.iter().zip(uploads) {
        let make = |upload: &DeviceCorpus| -> Result<(), GpuError> {
            drop((upload.index()?, upload.weights()?, upload.sequences(2)?));
            Ok(())
        };
        let start = Instant::now();
        make(&DeviceCorpus::upload(device, segment)?)?;
        device.synchronize()?;
        times.whole += start.elapsed().as_secs_f64();
        times.device += device_seconds(device, || make(upload))?;
        let starts = upload.index()?.starts_to_host()?;
        let dag = &segment.dag;
        let start = |at| segment.prefix_sums_or_derive().start(dag, Measure::Bytes, at);
        assert!((0..starts.len()).into_par_iter().all(|at| starts[at] == start(at)));
    }
    print("index generation", &times);
    Ok(())
}

fn measure_words(device: &Device, pools: &Pools, segments: &[Arc<Segment>]) -> Result<(), GpuError> {
    let mut times = Times::default();
    let count = |dags: Vec<Dag>| {
        dags.par_iter().for_each(|dag| {
            black_box(dag.grammar().weights());
        });
    };
    let seconds = |pool: &ThreadPool| pool.install(|| CPU_RUNS.least_seconds(|| fresh(segments), count));
    (times.one_core, times.all_cores) = (seconds(&pools.one), seconds(&pools.all));
    for segment in segments {
        let start = Instant::now();
        let mut weights = DeviceCorpus::upload(device, segment)?.weights()?;
        let counts = weights.word_counts_to_host()?;
        times.whole += start.elapsed().as_secs_f64();
        assert!(counts[..] == segment.weights_or_derive()[..counts.len()]);
        times.device += device_seconds(device, || weights.run())?;
        assert!(weights.to_host()? == segment.weights_or_derive());
        times.bytes += weights.traffic_bytes();
    }
    print("word_count", &times);
    Ok(())
}

fn queries(segment: &Segment) -> Vec<PassageQuery> {
    let mut random = Random(1);
    let num_docs = segment.dag.grammar().num_docs();
    let query = |_| {
        let doc = DocId::from_index(random.below(num_docs));
        let len = segment.doc_length_or_derive(doc).len_bytes as usize;
        let offset = random.below((len + 1).saturating_sub(QUERY_BYTES as usize).max(1)) as u64;
        PassageQuery { doc, offset, len_bytes: QUERY_BYTES }
    };
    (0..NUM_QUERIES).map(query).collect()
}

/// Measures passages of the first segment.
fn measure_passages(device: &Device, pools: &Pools, corpus: &Corpus, uploads: &[DeviceCorpus]) -> Result<(), GpuError> {
    let alone = Corpus::new(corpus.profile(), vec![corpus.segments()[0].clone()]);
    let queries = queries(&corpus.segments()[0]);
    let read = |queries: &[PassageQuery], text: &mut Vec<u8>| {
        for query in queries {
            let doc = u64::from(query.doc);
            let offset = query.offset;
            extract_into(&alone, doc, offset, query.len_bytes, AMPLE, text).unwrap();
        }
    };
    let mut expected = Vec::new();
    read(&queries, &mut expected);
    let mut times = Times::default();
    let one = || {
        CPU_RUNS.least_seconds(
            || (),
            |()| {
                let mut text = Vec::with_capacity(expected.len());
                read(&queries, &mut text);
                black_box(&text);
            },
        )
    };
    times.one_core = pools.one.install(one);
    let all = || {
        CPU_RUNS.least_seconds(
            || (),
            |()| {
                queries.par_chunks(1024).for_each(|queries| {
                    let mut text = Vec::new();
                    read(queries, &mut text);
                    black_box(&text);
                });
            },
        )
    };
    times.all_cores = pools.all.install(all);
    let start = Instant::now();
    let mut reader = uploads[0].passages()?;
    device.synchronize()?;
    println!("upload for passages: {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
    for chunk_bytes in [8, 16, 32, 64, 128] {
        reader = reader.with_chunk_bytes(chunk_bytes);
        let start = Instant::now();
        let mut batch = reader.batch(&queries)?;
        reader.run(&mut batch)?;
        let passages = batch.to_host()?;
        times.whole = start.elapsed().as_secs_f64();
        let got = (0..passages.len()).map(|at| passages.get(at)).collect::<Vec<_>>().concat();
        assert!(got == expected);
        times.device = device_seconds(device, || reader.run(&mut batch))?;
        times.bytes = batch.text_len_bytes();
        print(&format!("extract, 100,000 x 64 bytes, {chunk_bytes} bytes a thread"), &times);
    }
    Ok(())
}

/// Returns the seconds of `task` on one core and on all cores.
fn cpu_seconds<T>(pools: &Pools, task: impl Fn() -> T + Sync) -> (f64, f64)
where
    T: Send,
{
    let least = || CPU_RUNS.least_seconds(|| (), |()| drop(black_box(task())));
    (pools.one.install(least), pools.all.install(least))
}

/// Returns the seconds of the fastest of some runs, which begin and end on the host.
fn least_whole(run: impl Fn() -> Result<(), GpuError>) -> Result<f64, GpuError> {
    run()?;
    Ok(CPU_RUNS.least_seconds(|| (), |()| run().unwrap()))
}

/// Measures tasks about words of documents. All segments are one group on the device. The cores read the grammar; what
/// they take once segments keep the words of their documents is printed too.
fn measure_terms(device: &Device, pools: &Pools, segments: &[Arc<Segment>]) -> Result<(), GpuError> {
    let corpus = Corpus::new(Default::default(), segments.to_vec());
    let vocabulary = Arc::new(Vocabulary::new(&corpus).unwrap());
    measure_documents(device, pools, segments, &vocabulary)?;
    measure_vectors(device, pools, segments, &vocabulary)?;
    print_steps(device, segments)
}

fn measure_documents(
    device: &Device,
    pools: &Pools,
    segments: &[Arc<Segment>],
    vocabulary: &Arc<Vocabulary>,
) -> Result<(), GpuError> {
    let index = |way| InvertedIndex::with_vocabulary(vocabulary.clone(), way).unwrap();
    let group = DeviceGroup::upload(device, segments)?;
    let mut documents = group.documents()?;
    let mut sorted = group.terms()?;
    let found = documents.run()?;
    let rows = found.to_host()?;
    assert!(rows == group.documents_by_masks()?.run()?.to_host()?);
    assert!(rows == sorted.run()?.into_documents().to_host()?);
    check_index(&index(Traversal::Auto), vocabulary, &rows);
    let (num_rows, bytes) = (found.len(), found.traffic_bytes());
    drop((rows, found));
    let walk = walk_for(TraversalTask::InvertedIndex, segments);
    let (one_core, all_cores) = cpu_seconds(pools, || index(walk));
    let whole = least_whole(|| DeviceGroup::upload(device, segments)?.documents()?.run()?.to_host().map(drop))?;
    let resident = device_seconds(device, || documents.run().map(drop))?;
    print("inverted_index", &Times { one_core, all_cores, device: resident, whole, bytes });
    let sorting = device_seconds(device, || sorted.run().map(drop))?;
    let (has_masks, sorting) = (documents.has_masks(), sorting * 1e3);
    println!("inverted_index: {num_rows} rows, masks {has_masks}; by sorting {sorting:.3} ms on the device");
    print_kept("inverted_index", cpu_seconds(pools, || index(Traversal::Auto)));
    Ok(())
}

fn measure_vectors(
    device: &Device,
    pools: &Pools,
    segments: &[Arc<Segment>],
    vocabulary: &Arc<Vocabulary>,
) -> Result<(), GpuError> {
    let all = DocSelection::all(vocabulary.corpus());
    let vectors = |way| TermVectors::new(vocabulary.clone(), way).collect(&all, None).unwrap();
    let mut terms = DeviceGroup::upload(device, segments)?.terms()?;
    let found = terms.run()?;
    check_vectors(&vectors(Traversal::Auto), vocabulary, &found.by_document()?.to_host()?);
    let bytes = found.traffic_bytes() + found.len() as u64 * 52;
    drop(found);
    let walk = walk_for(TraversalTask::TermVector, segments);
    let (one_core, all_cores) = cpu_seconds(pools, || vectors(walk));
    let whole = || DeviceGroup::upload(device, segments)?.terms()?.run()?.by_document()?.to_host().map(drop);
    let whole = least_whole(whole)?;
    let resident = device_seconds(device, || terms.run()?.by_document().map(drop))?;
    print("term_vector", &Times { one_core, all_cores, device: resident, whole, bytes });
    print_kept("term_vector", cpu_seconds(pools, || vectors(Traversal::Auto)));
    Ok(())
}

fn print_kept(task: &str, (one_core, all_cores): (f64, f64)) {
    let [one_core, all_cores] = [one_core, all_cores].map(|seconds| seconds * 1e3);
    println!("{task}: {one_core:.3} ms on one core, {all_cores:.3} on all, where segments may keep words of documents");
}

/// Returns the traversal that the cores choose for all segments together.
fn walk_for(task: TraversalTask, segments: &[Arc<Segment>]) -> Traversal {
    let shape = segments.iter().map(|segment| SegmentShape::from(segment.as_ref())).sum();
    choose_task_traversal(task, shape, 2).0
}

/// Prints the milliseconds of each step of a whole run: the least of some.
fn print_steps(device: &Device, segments: &[Arc<Segment>]) -> Result<(), GpuError> {
    let mut steps: Vec<(&str, f64)> = Vec::new();
    for _ in 0..CPU_RUNS.max_runs {
        let mut at = Instant::now();
        let mut number = 0;
        let mut step = |name: &'static str| -> Result<(), GpuError> {
            device.synchronize()?;
            let seconds = at.elapsed().as_secs_f64();
            match steps.get_mut(number) {
                Some((_, least)) => *least = least.min(seconds),
                None => steps.push((name, seconds)),
            }
            number += 1;
            at = Instant::now();
            Ok(())
        };
        let group = DeviceGroup::upload(device, segments)?;
        step("upload")?;
        let mut masks = group.documents_by_masks()?;
        step("masks made")?;
        let found = masks.run()?;
        step("masks")?;
        black_box(found.to_host()?);
        step("index to host")?;
        drop((found, masks));
        step("freed")?;
        let mut terms = group.terms()?;
        step("terms made")?;
        let found = terms.run()?;
        step("terms")?;
        let vectors = found.by_document()?;
        step("by document")?;
        black_box(vectors.to_host()?);
        step("vectors to host")?;
        drop((vectors, found, terms, group));
        step("freed")?;
    }
    let texts: Vec<String> = steps.iter().map(|(name, seconds)| format!("{name} {:.3}", seconds * 1e3)).collect();
    println!("steps, ms: {}", texts.join(", "));
    Ok(())
}

/// Checks the documents that the device found of each word.
fn check_index(index: &InvertedIndex, vocabulary: &Vocabulary, found: &[WordDocuments]) {
    let is_same = |row: usize| {
        let docs = vocabulary.ids(row).flat_map(|(segment, word)| {
            let first = vocabulary.corpus().first_doc_id(segment);
            found[segment].docs(word).iter().map(move |&doc| first + u64::from(doc))
        });
        docs.eq(index.doc_ids(row))
    };
    assert!((0..index.len()).into_par_iter().all(is_same));
}

/// Checks the words that the device found of each document.
fn check_vectors(vectors: &TermVectorChunk, vocabulary: &Vocabulary, found: &[DocumentWords]) {
    let segments = vocabulary.corpus().segments();
    let mut rows: Vec<Vec<u32>> = segments.iter().map(|s| vec![0; s.dag.num_words() as usize]).collect();
    for row in 0..vocabulary.len() {
        vocabulary.ids(row).for_each(|(segment, word)| rows[segment][word as usize] = row as u32);
    }
    let is_same = |doc: usize| {
        let (segment, own) = vocabulary.corpus().doc_parts(doc as u64).next().unwrap();
        let (words, counts) = found[segment].for_doc(own);
        let range = vectors.range(doc);
        counts.iter().map(|&count| u64::from(count)).eq(vectors.counts()[range.clone()].iter().copied())
            && words.iter().map(|&word| rows[segment][word as usize]).eq(vectors.rows()[range].iter().copied())
    };
    assert!((0..vectors.num_docs()).into_par_iter().all(is_same));
}

fn measure_pairs(device: &Device, pools: &Pools, segments: &[Arc<Segment>], window: usize) -> Result<(), GpuError> {
    let mut times = Times::default();
    for segment in segments {
        let alone = Corpus::new(Default::default(), vec![segment.clone()]);
        let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
        let count = || {
            let vocabulary = vocabulary.clone();
            let way = Traversal::Auto;
            Cooccurrences::with_vocabulary(vocabulary, window, 1, way, AMPLE).unwrap()
        };
        times.add_cpu(cpu_seconds(pools, count));
        let expected = pools.all.install(count);
        let start = Instant::now();
        let upload = DeviceCorpus::upload(device, segment)?;
        let mut weights = upload.weights()?;
        let mut pairs = upload.cooccurrences(window)?;
        let rows = pairs.count(&weights)?.to_host()?;
        times.whole += start.elapsed().as_secs_f64();
        assert!(rows.counts() == expected.counts());
        let id = |word: u32| vocabulary.ids(word as usize).next().unwrap().1;
        let is_same = |row: usize| rows.words(row).eq(expected.pairs().words(row).map(id));
        assert!((0..rows.len()).into_par_iter().all(is_same));
        let mut bytes = 0;
        times.device += device_seconds(device, || {
            weights.run()?;
            bytes = pairs.count(&weights)?.traffic_bytes();
            Ok(())
        })?;
        times.bytes += bytes;
    }
    print(&format!("cooccurrence({window})"), &times);
    Ok(())
}

fn measure_ranked(device: &Device, pools: &Pools, segments: &[Arc<Segment>], n: usize) -> Result<(), GpuError> {
    let mut times = Times::default();
    for segment in segments {
        let alone = Corpus::new(Default::default(), vec![segment.clone()]);
        let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
        let rank = || {
            let vocabulary = vocabulary.clone();
            let way = Traversal::Auto;
            RankedInvertedIndex::with_vocabulary(vocabulary, n, way, AMPLE).unwrap()
        };
        times.add_cpu(cpu_seconds(pools, rank));
        let expected = pools.all.install(rank);
        let start = Instant::now();
        let mut ranked = DeviceGroup::upload(device, std::slice::from_ref(segment))?.ranked(n)?;
        let rows = ranked.run()?.to_host()?;
        times.whole += start.elapsed().as_secs_f64();
        let id = |word: u32| vocabulary.ids(word as usize).next().unwrap().1;
        let is_same = |row: usize| {
            let (places, (docs, counts)) = (expected.entries_of(row), rows.docs(row));
            let doc_ids = expected.doc_ids()[places.clone()].iter().copied();
            rows.words(row).eq(expected.sequences().words(row).map(id))
                && docs.iter().map(|&doc| u64::from(doc)).eq(doc_ids)
                && *counts == expected.counts()[places]
        };
        assert_eq!(rows.len(), expected.len());
        assert!((0..rows.len()).into_par_iter().all(is_same));
        let mut bytes = 0;
        times.device += device_seconds(device, || {
            bytes = ranked.run()?.traffic_bytes();
            Ok(())
        })?;
        times.bytes += bytes;
    }
    print(&format!("ranked_inverted_index({n})"), &times);
    Ok(())
}

/// Measures sequences by document. Segments are few groups on the device. A run ends with the rows of all documents,
/// in chunks as SQL takes them.
fn measure_document_sequences(device: &Device, pools: &Pools, corpus: &Corpus, n: usize) -> Result<(), GpuError> {
    let segments = corpus.segments();
    let vocabulary = Arc::new(Vocabulary::new(corpus).unwrap());
    let docs: Vec<u64> = (0..corpus.num_docs()).collect();
    let num_words: u64 = segments.iter().map(|segment| segment.dag.len_words(segment.dag.num_terminals())).sum();
    let docs_per_chunk = (CHUNK_WORDS * corpus.num_docs() / num_words.max(1)).max(1) as usize;
    let rows = |counter: &DocumentSequences<'_>| {
        let chunks = docs.chunks(docs_per_chunk).map(|docs| counter.chunk(docs).unwrap());
        chunks.map(|chunk| chunk.counts().iter().sum::<u64>() ^ chunk.counts().len() as u64).collect::<Vec<u64>>()
    };
    let on_cores = || DocumentSequences::new(vocabulary.clone(), n, Traversal::Auto, AMPLE).unwrap();
    let (one_core, all_cores) = cpu_seconds(pools, || rows(&on_cores()));
    let groups = groups(segments, n);
    let found_rows = || -> Result<Vec<SegmentDocumentSequences>, GpuError> {
        let mut rows = Vec::new();
        for group in &groups {
            let found = DeviceGroup::upload(device, group)?.ranked(n)?.by_document()?.to_host()?;
            rows.extend(found.into_iter().map(DocumentSequenceRows::into_segment));
        }
        Ok(rows)
    };
    let counted = |rows| DocumentSequences::from_segments(vocabulary.clone(), n, rows, AMPLE).unwrap();
    let on_device = counted(found_rows()?);
    let expected = pools.all.install(on_cores);
    for docs in docs.chunks(docs_per_chunk) {
        let [got, expected] = [&on_device, &expected].map(|counter| counter.chunk(docs).unwrap());
        let row = |counts: &DocumentSequenceCounts, row: usize| counts.sequences().words(row).collect::<Vec<u32>>();
        let is_same = |at: usize| {
            got.rows_of(at) == expected.rows_of(at) && got.rows_of(at).all(|at| row(&got, at) == row(&expected, at))
        };
        assert!((0..docs.len()).into_par_iter().all(is_same) && got.counts() == expected.counts());
    }
    drop((on_device, expected));
    let copied = least_whole(|| found_rows().map(drop))?;
    let whole = least_whole(|| found_rows().map(|found| drop(black_box(rows(&counted(found))))))?;
    let mut times = Times { one_core, all_cores, whole, ..Times::default() };
    let mut num_rows = 0;
    for group in &groups {
        let mut ranked = DeviceGroup::upload(device, group)?.ranked(n)?;
        let found = ranked.by_document()?;
        times.bytes += found.traffic_bytes();
        num_rows += found.len();
        drop(found);
        times.device += device_seconds(device, || ranked.by_document().map(drop))?;
    }
    print(&format!("sequence_count({n}, by_doc)"), &times);
    println!("{num_rows} rows in {} groups, {:.3} ms to rows on the host", groups.len(), copied * 1e3);
    Ok(())
}

/// Returns the groups of `segments` for rows with keys of `n` words.
fn groups(segments: &[Arc<Segment>], n: usize) -> Vec<&[Arc<Segment>]> {
    let mut left = segments;
    let group = |len: usize| {
        let (group, rest) = left.split_at(len);
        left = rest;
        group
    };
    DeviceGroup::lens(segments, AMPLE, n).into_iter().map(group).collect()
}

fn measure_sequences(device: &Device, pools: &Pools, segments: &[Arc<Segment>], n: usize) -> Result<(), GpuError> {
    let mut times = Times::default();
    let mut num_windows = 0;
    let mut num_rows = 0;
    for segment in segments {
        let alone = Corpus::new(Default::default(), vec![segment.clone()]);
        let vocabulary = Arc::new(Vocabulary::new(&alone).unwrap());
        let count = || {
            let vocabulary = vocabulary.clone();
            SequenceCounts::with_vocabulary(vocabulary, n, Traversal::Auto, AMPLE).unwrap()
        };
        let seconds = |pool: &ThreadPool| pool.install(|| CPU_RUNS.least_seconds(|| (), |()| drop(black_box(count()))));
        times.one_core += seconds(&pools.one);
        times.all_cores += seconds(&pools.all);
        let expected = pools.all.install(count);
        let start = Instant::now();
        let upload = DeviceCorpus::upload(device, segment)?;
        let mut weights = upload.weights()?;
        let mut sequences = upload.sequences(n)?;
        let rows = sequences.count(&weights)?.to_host()?;
        times.whole += start.elapsed().as_secs_f64();
        assert!(rows.counts() == expected.counts());
        let id = |word: u32| vocabulary.ids(word as usize).next().unwrap().1;
        let is_same = |row: usize| rows.words(row).eq(expected.sequences().words(row).map(id));
        assert!((0..rows.len()).into_par_iter().all(is_same));
        let mut bytes = 0;
        times.device += device_seconds(device, || {
            weights.run()?;
            let counted = sequences.count(&weights)?;
            bytes = counted.traffic_bytes();
            num_windows = counted.num_windows();
            num_rows = counted.len();
            Ok(())
        })?;
        times.bytes += bytes;
    }
    let size = format!("{num_windows} windows and {num_rows} rows in the last segment");
    print(&format!("sequence_count({n}), {size}"), &times);
    Ok(())
}
