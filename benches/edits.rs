//! Benchmark of edits. Goals: an append of 64 bytes in 2 us and an insert in 5 us, at any size of
//! the corpus, and reads as fast as before the edits. The plainest possible store runs beside it:
//! one `Vec<u8>` per document.
//!
//! Command: `TADOC_CORPORA=/path cargo bench --bench edits`. Each row has 100,000 operations on
//! random documents (fewer if documents are large). Times are the time of the one thread that runs
//! the operations, not of the clock, so other programs do not count. A row shows the least of some
//! rounds; the two stores take turns. The mixes are those of the random-access paper, 20 % of each
//! operation, in both modes. Words are drawn from the dictionary (`rare`) or from the text
//! (`usual`). Lengths and counts of both stores are compared. `edits/batches.rs` asks many
//! questions in one call, of a corpus as it is in its files and of one with 10,000 inserts.
//!
//! `-- sizes` measures only sizes, `-- mixes` only the mixes, and `-- batches` only batches. `--
//! dump FOLDER` writes documents and mixes for `peers/edits.py` and measures nothing.

#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

#[path = "edits/batches.rs"]
mod batches;
mod corpora;
#[path = "edits/dump.rs"]
mod dump;

use std::hint::black_box;

use corpora::{Subject, subjects};
use memchr::memmem;
use tadoc::analytics::word_count;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::edits::{Edit, EditBatch, EditMode, LivingCorpus, Operation};
use tadoc::format::OpenLimits;
use tadoc::read::ExtractQuery;
use tadoc_store::{Change, CommitKind, LivingStore, LocalFolder, OptimizeOptions, StoreOptions, Version};

const NUM_OPERATIONS: usize = 100_000;
const TEXT_BYTES: u64 = 64;
const ROUNDS: usize = 3;
/// Limit for the bytes that the plain store reads in a row of operations with counts or searches.
/// Large documents therefore get fewer operations.
const MAX_READ_BYTES: u64 = 2 << 30;
/// Mixes of a fifth of each operation, with rare or usual words.
const MIXES: [(&str, [&str; 5]); 2] = [
    ("rare", ["extract", "search rare", "count rare", "insert", "append"]),
    ("usual", ["extract", "search usual", "count usual", "insert", "append"]),
];
/// Least number of operations of a row.
const MIN_OPERATIONS: u64 = 1_000;

/// A generator (SplitMix64) that gives the same random numbers in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % end.max(1)
    }
}

/// Returns the nanoseconds that this thread has run.
fn thread_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = stat.split(' ').next().and_then(|nanos| nanos.parse().ok());
    nanos.unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap().as_nanos() as u64
    })
}

/// The plain store: one array of bytes per document.
#[derive(Clone)]
struct Plain {
    docs: Vec<Vec<u8>>,
}

impl Plain {
    fn extract(&self, query: &ExtractQuery) -> Vec<u8> {
        let text = &self.docs[query.doc_id as usize];
        let end = (query.byte_offset + query.byte_len).min(text.len() as u64);
        text[query.byte_offset as usize..end as usize].to_vec()
    }

    fn find(&self, doc_id: u64, word: &str) -> Vec<u64> {
        let text = &self.docs[doc_id as usize];
        let is_word_byte = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || *byte > 127;
        let found = memmem::find_iter(text, word.as_bytes()).filter(|&at| {
            let before = at.checked_sub(1).and_then(|at| text.get(at));
            let behind = text.get(at + word.len());
            !before.is_some_and(is_word_byte) && !behind.is_some_and(is_word_byte)
        });
        found.map(|at| at as u64).collect()
    }

    /// Runs a batch and returns the sum of all lengths, counts and hits. In batch mode, `inserts`
    /// keeps the offsets and lengths of inserts by document.
    fn run(&mut self, mode: EditMode, operations: &[Operation]) -> u64 {
        let mut inserts: Vec<Vec<(u64, u64)>> = vec![Vec::new(); self.docs.len()];
        let before: Vec<u64> = self.docs.iter().map(|doc| doc.len() as u64).collect();
        let mut sum = 0;
        for operation in operations {
            match operation {
                Operation::Extract { doc_id, offset_bytes, len_bytes } => {
                    let doc_id = *doc_id;
                    let byte_offset = *offset_bytes;
                    let byte_len = *len_bytes;
                    let query = ExtractQuery { doc_id, byte_offset, byte_len };
                    sum += black_box(self.extract(&query)).len() as u64;
                }
                Operation::Search { doc_id, word } => sum += self.find(*doc_id, word).len() as u64,
                Operation::Count { doc_id, word } => sum += self.find(*doc_id, word).len() as u64,
                Operation::Edit(edit) => {
                    let (doc_id, offset, text) = match edit {
                        Edit::InsertText { doc_id, offset_bytes, text } => (*doc_id as usize, *offset_bytes, text),
                        Edit::AppendText { doc_id, text } => {
                            let doc = *doc_id as usize;
                            let end = match mode {
                                EditMode::InSequence => self.docs[doc].len() as u64,
                                EditMode::InBatch => before[doc],
                            };
                            (doc, end, text)
                        }
                        _ => continue,
                    };
                    let mut at = offset;
                    if mode == EditMode::InBatch {
                        let earlier = inserts[doc_id].iter().filter(|insert| insert.0 <= offset);
                        at += earlier.map(|insert| insert.1).sum::<u64>();
                        inserts[doc_id].push((offset, text.len() as u64));
                    }
                    let at = at as usize;
                    self.docs[doc_id].splice(at..at, text.iter().copied());
                }
            }
        }
        sum
    }
}

/// The inputs from which operations of one kind, or a fifth of each kind, are made.
struct Workload<'a> {
    subject: &'a Subject,
    rare: Vec<String>,
    usual: Vec<String>,
}

impl<'a> Workload<'a> {
    fn new(subject: &'a Subject) -> Self {
        let counts = word_count(&subject.corpus).unwrap();
        let mut random = Random(7);
        let rare = (0..NUM_OPERATIONS).map(|_| counts.word(random.below(counts.len() as u64) as usize).to_owned());
        let rare = rare.collect();
        let usual = (0..200).flat_map(|_| {
            let words = subject.words(random.below(subject.docs.len() as u64) as usize);
            (0..500 * u64::from(!words.is_empty()))
                .map(|_| words[random.below(words.len() as u64) as usize].clone())
                .collect::<Vec<_>>()
        });
        Self { subject, rare, usual: usual.collect() }
    }

    /// Returns operations of the kinds named in `kinds`, chosen at random.
    fn operations(&self, mode: EditMode, kinds: &[&str]) -> Vec<Operation> {
        let mut random = Random(kinds.len() as u64);
        let mut lens: Vec<u64> = self.subject.docs.iter().map(|doc| doc.len() as u64).collect();
        let first_lens = lens.clone();
        let operation = |_| {
            let doc_id = random.below(lens.len() as u64);
            let len = &mut lens[doc_id as usize];
            let words = random.below(u64::MAX) as usize;
            let word_of = |words: &[String], at: usize| words[at % words.len()].clone();
            let source = random.below(1 << 40);
            let text = || {
                let doc = &self.subject.docs[(source % self.subject.docs.len() as u64) as usize];
                let at = source as usize % (doc.len() + 1);
                let mut text = doc[at..(at + TEXT_BYTES as usize).min(doc.len())].to_vec();
                text.resize(TEXT_BYTES as usize, b'.');
                text
            };
            let operation = match kinds[random.below(kinds.len() as u64) as usize] {
                "extract" => {
                    let offset_bytes = random.below(*len + 1);
                    Operation::Extract { doc_id, offset_bytes, len_bytes: TEXT_BYTES }
                }
                "search rare" => Operation::Search { doc_id, word: word_of(&self.rare, words) },
                "search usual" => Operation::Search { doc_id, word: word_of(&self.usual, words) },
                "count rare" => Operation::Count { doc_id, word: word_of(&self.rare, words) },
                "count usual" => Operation::Count { doc_id, word: word_of(&self.usual, words) },
                "append" => Operation::Edit(Edit::AppendText { doc_id, text: text() }),
                _ => {
                    let end = match mode {
                        EditMode::InSequence => *len,
                        EditMode::InBatch => first_lens[doc_id as usize],
                    };
                    let offset_bytes = random.below(end + 1);
                    Operation::Edit(Edit::InsertText { doc_id, offset_bytes, text: text() })
                }
            };
            *len += if let Operation::Edit(_) = operation { TEXT_BYTES } else { 0 };
            operation
        };
        (0..self.num_operations(kinds)).map(operation).collect()
    }

    fn measure_mixes(&self) {
        for mode in [EditMode::InSequence, EditMode::InBatch] {
            for (words, kinds) in &MIXES {
                self.measure(&format!("mix, {words} words"), mode, kinds);
            }
        }
    }

    /// Measures batches of reads, before and after 10,000 inserts.
    fn measure_batches(&self) {
        let mut living = LivingCorpus::new(self.subject.corpus.clone());
        let mut plain = Plain { docs: self.subject.docs.clone() };
        batches::measure(self, "as in files", &living, &plain);
        let inserts = self.operations(EditMode::InBatch, &["insert"]);
        let inserts = &inserts[..inserts.len() / 10];
        living.run(EditMode::InBatch, inserts).unwrap();
        plain.run(EditMode::InBatch, inserts);
        batches::measure(self, "edited", &living, &plain);
    }

    fn num_operations(&self, kinds: &[&str]) -> usize {
        if kinds.iter().all(|kind| ["extract", "append", "insert"].contains(kind)) {
            return NUM_OPERATIONS;
        }
        let doc_bytes = self.subject.len_bytes() / self.subject.docs.len() as u64;
        let few = MAX_READ_BYTES / doc_bytes.max(1);
        few.clamp(MIN_OPERATIONS, NUM_OPERATIONS as u64) as usize
    }

    fn measure(&self, name: &str, mode: EditMode, kinds: &[&str]) {
        let operations = self.operations(mode, kinds);
        let edits = operations.iter().map(|operation| match operation {
            Operation::Edit(edit) => Some(edit.clone()),
            _ => None,
        });
        let batch = edits.collect::<Option<Vec<_>>>().map(|edits| EditBatch { mode, edits });
        let base = LivingCorpus::new(self.subject.corpus.clone());
        let store = Plain { docs: self.subject.docs.clone() };
        let mut living_nanos = u64::MAX;
        let mut plain_nanos = u64::MAX;
        for _ in 0..ROUNDS {
            let mut living = base.clone();
            let mut plain = store.clone();
            let started = thread_nanos();
            match &batch {
                Some(batch) => drop(living.apply(batch).unwrap()),
                None => drop(black_box(living.run(mode, &operations).unwrap())),
            }
            living_nanos = living_nanos.min(thread_nanos() - started);
            let started = thread_nanos();
            black_box(plain.run(mode, &operations));
            plain_nanos = plain_nanos.min(thread_nanos() - started);
            for (doc_id, doc) in (0..).zip(&plain.docs).step_by(97) {
                assert_eq!(living.extract(doc_id, 0, u64::MAX).unwrap(), *doc);
            }
        }
        let per = |nanos: u64| nanos as f64 / operations.len() as f64;
        let living = per(living_nanos);
        let plain = per(plain_nanos);
        let name = format!("{} {mode}: {name}", self.subject.name);
        println!("{name:<44} {living:>9.0} ns {plain:>9.0} ns {:>8.2}x", plain / living);
    }
}

/// Returns the bytes of a corpus file of `docs`.
fn built(docs: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    for (doc_id, doc) in docs.iter().enumerate() {
        builder.push_document(&doc_id.to_string(), doc).unwrap();
    }
    builder.finish(None).unwrap().0
}

/// Returns the number of bytes of the files that `version` needs.
async fn stored_bytes(store: &LivingStore, version: &Version) -> u64 {
    let plan = store.optimize_plan(version, &OptimizeOptions::default()).await.unwrap();
    plan.file_bytes + plan.edit_bytes
}

/// Measures sizes after inserts and after an optimization, beside a fresh build.
async fn measure_sizes(subject: &Subject, inserts: &[Operation]) {
    let folder = tempfile::tempdir().unwrap();
    let place = LocalFolder::new(folder.path().join("corpus"));
    let profile = subject.corpus.profile();
    let store = LivingStore::create(place, profile, StoreOptions::default()).await.unwrap();
    let docs = subject.docs.clone();
    let written = store.write_part(move |out| {
        let mut builder = CorpusBuilder::new(out, IngestOptions::default())?;
        for (doc_id, doc) in docs.iter().enumerate() {
            builder.push_document(&doc_id.to_string(), doc)?;
        }
        Ok(builder.finish(None)?.1.footer)
    });
    let change = Change::append(CommitKind::Append, &[written.await.unwrap()]);
    let base = store.commit(&store.latest().await.unwrap(), &change).await.unwrap();
    let edits = inserts.iter().filter_map(|operation| match operation {
        Operation::Edit(edit) => Some(edit.clone()),
        _ => None,
    });
    let batch = EditBatch { mode: EditMode::InSequence, edits: edits.collect() };
    let started = std::time::Instant::now();
    let change = Change::edit(CommitKind::Edit, &batch);
    let edited = store.commit(&base, &change).await.unwrap();
    let commit = started.elapsed().as_secs_f64();
    let corpus = store.corpus(&edited, &OpenLimits::default()).await.unwrap();
    let docs: Vec<Vec<u8>> = (0..corpus.num_docs()).map(|id| corpus.extract(id, 0, u64::MAX).unwrap()).collect();
    let fresh = built(&docs).len() as u64;
    let before = stored_bytes(&store, &edited).await;
    let started = std::time::Instant::now();
    let optimized = store.optimize(&OptimizeOptions::default()).await.unwrap().unwrap();
    let optimize = started.elapsed().as_secs_f64();
    let after = stored_bytes(&store, &optimized).await;
    let ratio = |len_bytes: u64| len_bytes as f64 / fresh as f64;
    println!(
        "  {} inserts in one commit of {commit:.2} s: {before} bytes, {:.3}x of a fresh build \
         ({fresh}); optimized in {optimize:.2} s: {after} bytes, {:.3}x",
        batch.edits.len(),
        ratio(before),
        ratio(after),
    );
    let corpus = store.corpus(&optimized, &OpenLimits::default()).await.unwrap();
    for (doc_id, doc) in (0..).zip(&docs) {
        assert_eq!(corpus.extract(doc_id, 0, u64::MAX).unwrap(), *doc);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "dump") {
        let folder = std::path::Path::new(&arguments[at + 1]);
        let subjects = subjects();
        return subjects.iter().for_each(|subject| dump::dump(&Workload::new(subject), folder));
    }
    let parts = ["sizes", "mixes", "batches"];
    let asked = |part: &str| {
        let is_part = |argument: &String| parts.contains(&argument.as_str());
        !arguments.iter().any(is_part) || arguments.iter().any(|argument| argument == part)
    };
    let is_all = parts.iter().all(|part| asked(part));
    println!("{:<44} {:>12} {:>12} {:>9}", "", "living", "Vec<u8>s", "ratio");
    for subject in &subjects() {
        let megabytes = subject.len_bytes() as f64 / 1e6;
        println!("{}: {megabytes:.1} MB, {} documents", subject.name, subject.docs.len());
        let workload = Workload::new(subject);
        let inserts = workload.operations(EditMode::InSequence, &["insert"]);
        if asked("sizes") {
            futures::executor::block_on(measure_sizes(subject, &inserts));
        }
        if asked("mixes") {
            workload.measure_mixes();
        }
        if asked("batches") {
            workload.measure_batches();
        }
        if !is_all {
            continue;
        }
        let reads = ["extract", "count rare", "count usual", "search rare", "search usual"];
        for kind in reads.into_iter().chain(["append", "insert"]) {
            workload.measure(kind, EditMode::InSequence, &[kind]);
        }
        workload.measure("insert", EditMode::InBatch, &["insert"]);
        let mut living = LivingCorpus::new(subject.corpus.clone());
        living.run(EditMode::InSequence, &inserts).unwrap();
        let started = std::time::Instant::now();
        let snapshot = living.snapshot().unwrap();
        let seconds = started.elapsed().as_secs_f64();
        let elements: usize = snapshot.segments().iter().map(|segment| segment.dag.grammar().symbols.len()).sum();
        let held = living.memory_bytes() as f64 / 1e6;
        println!("  after {NUM_OPERATIONS} inserts: {held:.1} MB held, snapshot {seconds:.2} s, G {elements}");
    }
}
