//! Benchmark of batches of 100,000 operations on the device beside the CPU, on one core and on all:
//! the table of figure 8 of the random-access paper. Goal: at least 50 times one core in the
//! geometric mean.
//!
//! `REQUIRE_GPU=1 cargo bench -p tadoc-cuda --features edits --bench gpu_corpus_batch -- [MIB]` makes text of three
//! kinds (208 MiB of each by default), compresses it, and runs batches on its first segment. "One core" and "all
//! cores" are the CPU's own batch calls. The device's time is that of its own clock, with text and
//! queries in device memory. "Whole" is one call from the host: it checks and sends the queries,
//! tokenizes the edits, does the work and returns the answer. Every answer is compared with the
//! CPU's. Without a device the benchmark says so and does nothing, unless `REQUIRE_GPU=1`.

#![allow(clippy::unwrap_used, missing_docs)]

mod measuring;
#[path = "gpu_corpus/mod.rs"]
mod texts;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use measuring::{AMPLE, CpuRuns, Pools, built, device_seconds, median, open_device};
use rayon::ThreadPool;
use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, EditBatch, EditMode, LivingCorpus, Operation};
use tadoc::ids::DocId;
use tadoc::query::{WordQuery, count_batch, search_batch};
use tadoc::read::{ExtractQuery, extract_batch, extract_into};
use tadoc::segment::Segment;
use tadoc::text::for_each_token;
use tadoc_cuda::{CorpusText, Device, DeviceCorpus, DocWord, GpuError, PassageQuery};
use texts::{Random, documents};

const NUM_QUERIES: usize = 100_000;
const QUERY_BYTES: u64 = 64;
/// Number of runs on the device and of whole runs. The median counts.
const NUM_RUNS: usize = 7;
/// Runs of a batch on the CPU. The least time counts.
const CPU_RUNS: CpuRuns = CpuRuns { max_runs: 3, max_seconds: 2.0 };

/// The device, threads and corpus that batches run on.
struct Bench<'a> {
    device: &'a Device,
    pools: &'a Pools,
    corpus: Corpus,
    segment: Arc<Segment>,
    text: CorpusText,
    ratios: Vec<f64>,
}

/// Seconds of a batch.
struct Times {
    one_core: f64,
    all_cores: f64,
    device: f64,
    whole: f64,
}

fn main() -> Result<(), GpuError> {
    let Some(device) = open_device()? else { return Ok(()) };
    let mib = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(208);
    let pools = Pools::new();
    println!("{}, {} CPU cores", device.name(), pools.all.current_num_threads());
    let mut ratios = Vec::new();
    for kind in ["log", "versioned", "prose"] {
        ratios.extend(measure_kind(&device, &pools, kind, mib << 20)?);
    }
    println!("\nall kinds, geometric mean of one core : device: {:.1}", geometric_mean(&ratios));
    Ok(())
}

fn measure_kind(device: &Device, pools: &Pools, kind: &str, len_bytes: usize) -> Result<Vec<f64>, GpuError> {
    let builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    let corpus = built(builder, &documents(kind, len_bytes));
    let segment = corpus.segments()[0].clone();
    let grammar = segment.dag.grammar();
    let root = segment.dag.num_terminals();
    println!(
        "\n{kind}: {} bytes, {} documents, N = {} words, G = {}, {} words in the dictionary",
        segment.dag.len_bytes(root),
        grammar.num_docs(),
        segment.dag.len_words(root),
        grammar.symbols.len(),
        segment.dag.num_words(),
    );
    let start = Instant::now();
    let text = DeviceCorpus::upload(device, &segment)?.text()?;
    device.synchronize()?;
    println!("upload: {:.2} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("| batch | one core, ms | all cores | device | whole | one core : device | all cores : whole |");
    let corpus = Corpus::new(corpus.profile(), vec![segment.clone()]);
    let mut bench = Bench { device, pools, corpus, segment, text, ratios: Vec::new() };
    bench.extract()?;
    bench.words()?;
    bench.edits("insert in sequence", EditMode::InSequence, inserts)?;
    bench.edits("insert in batch", EditMode::InBatch, inserts)?;
    bench.edits("append", EditMode::InBatch, appends)?;
    bench.mixed()?;
    println!("geometric mean of one core : device: {:.1}", geometric_mean(&bench.ratios));
    println!("device memory at most: {} MiB", device.peak_bytes() >> 20);
    Ok(bench.ratios)
}

fn geometric_mean(ratios: &[f64]) -> f64 {
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64).exp()
}

impl Bench<'_> {
    fn on_cpu<T: Send>(&self, prepare: impl Fn() -> T + Sync + Send, run: impl Fn(T) + Sync + Send) -> (f64, f64) {
        let seconds = |pool: &ThreadPool| pool.install(|| CPU_RUNS.least_seconds(&prepare, &run));
        (seconds(&self.pools.one), seconds(&self.pools.all))
    }

    /// Returns the median seconds of `run` by the device's clock.
    fn on_device(&self, run: impl FnMut() -> Result<(), GpuError>) -> Result<f64, GpuError> {
        device_seconds(self.device, NUM_RUNS, run)
    }

    /// Returns the median seconds of `run` by the host's clock, with all cores available to it.
    fn whole<T: Send>(&self, run: impl Fn() -> Result<T, GpuError> + Sync) -> Result<f64, GpuError> {
        let mut seconds = Vec::new();
        for _ in 0..NUM_RUNS {
            let start = Instant::now();
            let result = self.pools.all.install(&run)?;
            self.device.synchronize()?;
            seconds.push(start.elapsed().as_secs_f64());
            drop(result);
        }
        Ok(median(seconds))
    }

    fn print(&mut self, batch: &str, times: &Times) {
        let ms = |seconds: f64| format!("{:.3}", seconds * 1e3);
        println!(
            "| {batch} | {} | {} | {} | {} | {:.1} | {:.2} |",
            ms(times.one_core),
            ms(times.all_cores),
            ms(times.device),
            ms(times.whole),
            times.one_core / times.device,
            times.all_cores / times.whole,
        );
        self.ratios.push(times.one_core / times.device);
    }

    /// Returns a random document and an offset in it.
    fn place(&self, random: &mut Random) -> (DocId, u64) {
        let doc = DocId::from_index(random.below(self.segment.dag.grammar().num_docs()));
        let len = self.segment.doc_length_or_derive(doc).len_bytes as usize;
        (doc, random.below(len.saturating_sub(QUERY_BYTES as usize).max(1)) as u64)
    }

    /// Returns a random document and a word of it.
    fn word(&self, random: &mut Random) -> (DocId, String) {
        loop {
            let (doc, offset) = self.place(random);
            let mut passage = Vec::new();
            let doc_id = u64::from(doc);
            extract_into(&self.corpus, doc_id, offset, QUERY_BYTES, AMPLE, &mut passage).unwrap();
            let mut words = Vec::new();
            for_each_token(self.corpus.profile(), &passage, |token| {
                words.extend(token.is_word.then(|| token.bytes.to_vec()));
            });
            // The first word may have begun before the offset, so this takes the second one.
            let word = words.get(1).and_then(|word| String::from_utf8(word.clone()).ok());
            if let Some(word) = word {
                return (doc, word);
            }
        }
    }

    fn extract(&mut self) -> Result<(), GpuError> {
        let mut random = Random(1);
        let query = |_| {
            let (doc, offset) = self.place(&mut random);
            PassageQuery { doc, offset, len_bytes: QUERY_BYTES }
        };
        let queries: Vec<PassageQuery> = (0..NUM_QUERIES).map(query).collect();
        let of_cpu = |query: &PassageQuery| ExtractQuery {
            doc_id: query.doc.into(),
            byte_offset: query.offset,
            byte_len: query.len_bytes,
        };
        let cpu_queries: Vec<ExtractQuery> = queries.iter().map(of_cpu).collect();
        let expected = extract_batch(&self.corpus, &cpu_queries, AMPLE).unwrap();
        let read = |()| {
            black_box(extract_batch(&self.corpus, &cpu_queries, AMPLE).unwrap());
        };
        let (one_core, all_cores) = self.on_cpu(|| (), read);
        let reader = self.text.passages()?;
        let whole = self.whole(|| {
            let mut batch = reader.batch(&queries)?;
            reader.run(&mut batch)?;
            batch.to_host()
        })?;
        let mut batch = reader.batch(&queries)?;
        let device = self.on_device(|| reader.run(&mut batch))?;
        let got = batch.to_host()?;
        assert!((0..queries.len()).all(|at| got.get(at) == expected.get(at).unwrap()));
        self.print("extract, 64 bytes", &Times { one_core, all_cores, device, whole });
        Ok(())
    }

    fn words(&mut self) -> Result<(), GpuError> {
        let mut random = Random(2);
        let words: Vec<(DocId, String)> = (0..NUM_QUERIES).map(|_| self.word(&mut random)).collect();
        let cpu_queries: Vec<WordQuery<'_>> =
            words.iter().map(|(doc, word)| WordQuery { doc_id: u64::from(*doc), word }).collect();
        let of_device = || -> Vec<DocWord> {
            let query = |(doc, word): &(DocId, String)| {
                let word = self.text.word_id(word.as_bytes());
                DocWord { doc: *doc, word }
            };
            words.par_iter().map(query).collect()
        };
        let queries = of_device();
        let counts = count_batch(&self.corpus, &cpu_queries).unwrap();
        let lists = search_batch(&self.corpus, &cpu_queries, AMPLE).unwrap();
        let number: u64 = counts.iter().sum();
        for chunk_bytes in [128, 256, 512, 1024, 2048] {
            let finder = self.text.words()?.with_chunk_bytes(chunk_bytes);
            let mut batch = finder.batch(&queries)?;
            let seconds = self.on_device(|| finder.find(&mut batch, AMPLE).map(drop))?;
            println!("search, {chunk_bytes} bytes a thread: {:.3} ms", seconds * 1e3);
        }
        let finder = self.text.words()?;
        let mut batch = finder.batch(&queries)?;
        let got = finder.count(&mut batch)?.to_host()?;
        assert!(got == counts);
        let got = finder.find(&mut batch, AMPLE)?.to_host()?;
        assert!((0..words.len()).all(|at| got.get(at) == lists.get(at).unwrap()));

        let count = |()| {
            black_box(count_batch(&self.corpus, &cpu_queries).unwrap());
        };
        let (one_core, all_cores) = self.on_cpu(|| (), count);
        let device = self.on_device(|| finder.count(&mut batch).map(drop))?;
        let whole = self.whole(|| finder.count(&mut finder.batch(&of_device())?)?.to_host())?;
        let count_times = Times { one_core, all_cores, device, whole };
        let search = |()| {
            black_box(search_batch(&self.corpus, &cpu_queries, AMPLE).unwrap());
        };
        let (one_core, all_cores) = self.on_cpu(|| (), search);
        let device = self.on_device(|| finder.find(&mut batch, AMPLE).map(drop))?;
        let whole = self.whole(|| finder.find(&mut finder.batch(&of_device())?, AMPLE)?.to_host())?;
        let search_times = Times { one_core, all_cores, device, whole };
        self.print("count", &count_times);
        self.print(&format!("search, {number} found"), &search_times);
        Ok(())
    }

    fn edits(&mut self, name: &str, mode: EditMode, make: impl Fn(&Bench<'_>) -> Vec<Edit>) -> Result<(), GpuError> {
        let batch = EditBatch { mode, edits: make(self) };
        let profile = self.corpus.profile();
        let apply = |mut living: LivingCorpus| {
            living.apply(&batch).unwrap();
            black_box(&living);
        };
        let prepare = || LivingCorpus::new(self.corpus.clone());
        let (one_core, all_cores) = self.on_cpu(prepare, apply);
        let planning = self.whole(|| self.text.plan_edits(profile, &batch))?;
        let whole = self.whole(|| self.text.with_edits(profile, &batch))?;
        let planned = self.pools.all.install(|| self.text.plan_edits(profile, &batch))?;
        let device = self.on_device(|| planned.write().map(drop))?;
        let mut living = LivingCorpus::new(self.corpus.clone());
        living.apply(&batch).unwrap();
        self.check_texts(&planned.write()?, &living)?;
        let share = 100.0 * planning / whole;
        let name = format!("{name} (planned on the host: {share:.0} % of whole)");
        self.print(&name, &Times { one_core, all_cores, device, whole });
        Ok(())
    }

    /// Compares the text of every document.
    fn check_texts(&self, text: &CorpusText, living: &LivingCorpus) -> Result<(), GpuError> {
        let query = |doc| PassageQuery { doc, offset: 0, len_bytes: u64::MAX };
        let queries: Vec<PassageQuery> = DocId::range(0..text.num_docs()).map(query).collect();
        let reader = text.passages()?;
        let mut batch = reader.batch(&queries)?;
        reader.run(&mut batch)?;
        let got = batch.to_host()?;
        self.pools.all.install(|| {
            (0..queries.len()).into_par_iter().for_each(|doc| {
                assert!(got.get(doc) == living.extract(doc as u64, 0, u64::MAX).unwrap());
            });
        });
        Ok(())
    }

    fn mixed(&mut self) -> Result<(), GpuError> {
        let mut random = Random(4);
        let operation = |_| match random.below(5) {
            0 => {
                let (doc, offset_bytes) = self.place(&mut random);
                Operation::Extract { doc_id: doc.into(), offset_bytes, len_bytes: QUERY_BYTES }
            }
            1 => {
                let (doc, word) = self.word(&mut random);
                Operation::Search { doc_id: doc.into(), word }
            }
            2 => {
                let (doc, word) = self.word(&mut random);
                Operation::Count { doc_id: doc.into(), word }
            }
            3 => Operation::Edit(self.insert(&mut random)),
            _ => Operation::Edit(self.append(&mut random)),
        };
        let operations: Vec<Operation> = (0..NUM_QUERIES).map(operation).collect();
        let profile = self.corpus.profile();
        let mode = EditMode::InSequence;
        let mut living = LivingCorpus::new(self.corpus.clone());
        let expected = living.run(mode, &operations).unwrap();
        let run = |mut living: LivingCorpus| {
            black_box(living.run(mode, &operations).unwrap());
        };
        let prepare = || LivingCorpus::new(self.corpus.clone());
        let (one_core, all_cores) = self.on_cpu(prepare, run);
        let plan = || self.text.plan_mixed(profile, mode, &operations);
        let planning = self.whole(plan)?;
        let whole = self.whole(|| plan()?.run()?.to_host())?;
        let planned = self.pools.all.install(plan)?;
        let device = self.on_device(|| planned.run().map(drop))?;
        let results = planned.run()?;
        assert!(results.to_host()? == expected);
        self.check_texts(results.text(), &living)?;
        let share = 100.0 * planning / whole;
        let name = format!("mixed, 20 % each (planned on the host: {share:.0} % of whole)");
        self.print(&name, &Times { one_core, all_cores, device, whole });
        Ok(())
    }

    fn insert(&self, random: &mut Random) -> Edit {
        let (doc, offset_bytes) = self.place(random);
        Edit::InsertText { doc_id: doc.into(), offset_bytes, text: new_text(random) }
    }

    fn append(&self, random: &mut Random) -> Edit {
        let (doc, _) = self.place(random);
        Edit::AppendText { doc_id: doc.into(), text: new_text(random) }
    }
}

/// Returns three words. Some of them are in no dictionary.
fn new_text(random: &mut Random) -> Vec<u8> {
    format!(" status {} word{} ", random.below(1000), random.below(5000)).into_bytes()
}

fn inserts(bench: &Bench<'_>) -> Vec<Edit> {
    let mut random = Random(3);
    (0..NUM_QUERIES).map(|_| bench.insert(&mut random)).collect()
}

fn appends(bench: &Bench<'_>) -> Vec<Edit> {
    let mut random = Random(5);
    (0..NUM_QUERIES).map(|_| bench.append(&mut random)).collect()
}
