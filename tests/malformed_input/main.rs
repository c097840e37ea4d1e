//! Tests of files that are damaged or written with bad intent. The result is an error that says so,
//! or the right answer, but never a panic, a hang, or memory without bound.
//!
//! `testkit::malformed` has the files, the mutations, and the questions to mutants that open.
//! `swaps` tests sections of another file, `bombs` small grammars with long expansions,
//! `large_dictionary` a dictionary that is cut into parts, and `samples` the content of the valid
//! files.
//!
//! This suite is a binary of its own, because it measures the memory of the process while mutants
//! open.
//!
//! Every mutant has a number. `TADOC_MUTATIONS` sets the number of mutants (100,000), and
//! `TADOC_FIRST_MUTATION` sets the number of the first. To run case 4711 alone, set them to 1 and
//! 4711.

#![allow(clippy::unwrap_used, clippy::panic)]

mod bombs;
mod large_dictionary;
mod samples;
mod swaps;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use tadoc::analytics::{Traversal, inverted_index, word_count};
use tadoc::build::{BuilderKind, CorpusBuilder};
use tadoc::format::{CorpusWriter, FileFooter, FooterOutcome, SegmentLayout};
use tadoc::grammar::Grammar;
use tadoc::query::{Query, search};
use tadoc::read::{DEFAULT_MAX_OUTPUT_BYTES, document_bytes, extract, extract_into};
use tadoc::segment::Paths;
use tadoc::text::{Dictionary, TokenizerProfile};
use tadoc::{Corpus, Error};
use testkit::documents::{corpus_of, options};
use testkit::malformed::mutations::{Allowed, Mutant, kinds, mutant};
use testkit::malformed::samples::{Draft, Sample, content_of, samples};
use testkit::malformed::{self, LIMITS, anatomy, busy_time};
use testkit::random::Random;

/// Time limit of a case, for the only thread that works on it.
const MAX_CASE_TIME: Duration = Duration::from_secs(1);

fn number_from(variable: &str, default: u64) -> u64 {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// Returns true if a mutant opened. Panics on a wrong error or a wrong answer.
fn try_mutant(seed: u64, mutant: &Mutant<'_>) -> bool {
    let bytes = &mutant.bytes;
    let (footer, corpus) = match Corpus::from_bytes("mutant", bytes, &LIMITS) {
        Ok(opened) => opened,
        Err(Error::Format { .. } | Error::Checksum { .. } | Error::Version { .. } | Error::Capacity { .. }) => {
            return false;
        }
        Err(other) => panic!("an error of another kind: {other:?}"),
    };
    if let Allowed::Error(contents) = &mutant.allowed {
        let content = content_of(bytes, &footer, &corpus).unwrap();
        assert!(contents.contains(&&content), "damage was not noticed");
        return true;
    }
    check_tail(bytes, &footer);
    malformed::ask_everything(&mut Random(!seed), &footer, &corpus);
    true
}

/// Checks that the footer read alone is the same.
fn check_tail(bytes: &[u8], footer: &FileFooter) {
    let len = bytes.len() as u64;
    match FileFooter::parse("mutant", &bytes[bytes.len().min(64)..], len, &LIMITS).unwrap() {
        FooterOutcome::Footer(alone) => assert_eq!(&alone, footer),
        FooterOutcome::NeedsTail(needed) => assert!(needed <= len),
    }
}

/// Tries mutant `seed`. Returns its kind and true if it opened, or a description of the failure.
fn try_case(seed: u64, samples: &[Sample]) -> Result<(&'static str, bool), String> {
    let mutant = mutant(seed, samples);
    let kind = mutant.kind;
    let sample = mutant.sample;
    let failed = |what: &str| format!("TADOC_FIRST_MUTATION={seed} TADOC_MUTATIONS=1: {what} ({kind} of {sample})");
    let before = busy_time();
    let outcome = catch_unwind(AssertUnwindSafe(|| try_mutant(seed, &mutant)));
    let is_open = outcome.map_err(|_| failed("panicked, see above"))?;
    let taken = busy_time() - before;
    if taken <= MAX_CASE_TIME { Ok((kind, is_open)) } else { Err(failed(&format!("took {taken:?} of a processor"))) }
}

/// Returns the result of `work` and its processor time.
fn timed<T: Send>(work: impl FnOnce() -> T + Send) -> (T, Duration) {
    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let before = busy_time();
        let done = work();
        (done, busy_time() - before)
    })
}

/// Returns the bytes of main memory that this process holds (`VmRSS`) or held at its peak
/// (`VmHWM`), or `None` if the system does not tell. Tests that run at the same time count too, so
/// this is an upper bound.
fn memory_bytes(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))?;
    line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kib| kib << 10)
}

#[test]
fn what_is_taken_apart_goes_together_again() {
    for sample in samples() {
        let parts = anatomy::Anatomy::from_file(&sample.file);
        assert!(parts.assemble() == sample.file, "{}", sample.name);
        assert!(parts.clone().tied().assemble() == sample.file, "{}", sample.name);
        let mut resealed = sample.file.clone();
        anatomy::reseal(&mut resealed, &parts);
        assert!(resealed == sample.file, "{}", sample.name);
    }
}

#[test]
fn mutants_are_refused_or_answer() {
    let first = number_from("TADOC_FIRST_MUTATION", 0);
    let end = first + number_from("TADOC_MUTATIONS", 100_000);
    let samples = samples();
    let before = memory_bytes("VmRSS");
    let num_threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(first);
    let opened: Mutex<BTreeMap<&str, (u64, u64)>> = Mutex::default();
    let failures: Mutex<Vec<String>> = Mutex::default();
    // Each thread has its own pool: a thread that waits for a part of its case must not begin
    // another case, or its time would count here.
    let work = || {
        let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= end || failures.lock().unwrap().len() >= 10 {
                return;
            }
            match pool.install(|| try_case(seed, &samples)) {
                Ok((kind, is_open)) => {
                    let mut opened = opened.lock().unwrap();
                    let (num_cases, num_open) = opened.entry(kind).or_default();
                    *num_cases += 1;
                    *num_open += u64::from(is_open);
                }
                Err(failure) => failures.lock().unwrap().push(failure),
            }
        }
    };
    std::thread::scope(|scope| {
        (0..num_threads).for_each(|_| drop(scope.spawn(work)));
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let opened = opened.into_inner().unwrap();
    for kind in kinds() {
        let (num_cases, num_open) = opened.get(kind).copied().unwrap_or_default();
        println!("{kind}: {num_cases} mutants, {num_open} opened");
    }
    if let Some((before, peak)) = before.zip(memory_bytes("VmHWM")) {
        // The limit is for each thread, and one more for other tests: memory to open a mutant, as
        // much again for data that queries derive, and a share of the allocator.
        let allowed = (num_threads as u64 + 1) * 4 * LIMITS.max_memory_bytes;
        let taken = peak.saturating_sub(before);
        println!("memory: {} MiB at most", taken >> 20);
        assert!(taken < allowed, "{taken} bytes of memory, {allowed} are allowed");
    }
}

/// Returns a file of about 64 KiB in one segment, with columns that do not compress.
fn large_file() -> Vec<u8> {
    let options = options(TokenizerProfile::Word, BuilderKind::Rounds, 1 << 20);
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    let mut random = Random(64);
    for doc in 0..50 {
        let words = (0..220).map(|_| format!("w{} ", random.below(4_000) * random.below(9)));
        builder.push_document(&format!("doc/{doc}"), words.collect::<String>().as_bytes()).unwrap();
    }
    let columns = (0..46_000).map(|_| random.number() as u8).collect();
    builder.finish(Some(columns)).unwrap().0
}

#[test]
fn every_flipped_bit_is_found() {
    let file = large_file();
    assert!((60_000..80_000).contains(&file.len()), "{} bytes", file.len());
    assert!(Corpus::from_bytes("f", &file, &LIMITS).is_ok());
    let missed = (0..file.len()).into_par_iter().map_init(
        || file.clone(),
        |damaged, byte| {
            let flips_missed = (0..8).filter(|bit| {
                damaged[byte] ^= 1 << bit;
                let is_open = Corpus::from_bytes("f", damaged, &LIMITS).is_ok();
                damaged[byte] ^= 1 << bit;
                is_open
            });
            flips_missed.count()
        },
    );
    assert_eq!(missed.sum::<usize>(), 0, "bits that may flip unseen");
}

#[test]
fn every_torn_tail_is_found() {
    let file = large_file();
    (0..file.len()).into_par_iter().for_each(|len| {
        assert!(Corpus::from_bytes("f", &file[..len], &LIMITS).is_err(), "{len} bytes");
    });
    // This file has its full length, but its last pages were never written.
    (0..file.len()).into_par_iter().step_by(16).for_each(|len| {
        let mut torn = file.clone();
        torn[len..].fill(0);
        assert!(Corpus::from_bytes("f", &torn, &LIMITS).is_err(), "{len} bytes");
    });
}

#[test]
fn every_flipped_bit_and_every_cut_of_a_file_of_segments_is_found() {
    for sample in samples().iter().filter(|sample| sample.file.len() < 3_000) {
        let file = &sample.file;
        (0..file.len()).into_par_iter().for_each(|len| {
            let mut damaged = file.clone();
            for bit in 0..8 {
                damaged[len] ^= 1 << bit;
                let is_open = Corpus::from_bytes("f", &damaged, &LIMITS).is_ok();
                assert!(!is_open, "{}, byte {len} bit {bit}", sample.name);
                damaged[len] ^= 1 << bit;
            }
            for part in [&file[..len], &file[len + 1..]] {
                assert!(Corpus::from_bytes("f", part, &LIMITS).is_err(), "{}", sample.name);
            }
        });
    }
}

/// Returns a file of one segment with the rules `bodies`, the root first.
fn file_of(dictionary: Dictionary, bodies: &[Vec<u32>], doc_offsets: Vec<u32>) -> Vec<u8> {
    let num_terminals = dictionary.len();
    let mut rule_offsets = vec![0];
    rule_offsets.extend(bodies.iter().scan(0, |end, body| {
        *end += body.len() as u32;
        Some(*end)
    }));
    let mut paths = Paths::default();
    (1..doc_offsets.len()).for_each(|_| paths.push("hostile"));
    let grammar = Grammar { num_terminals, rule_offsets, symbols: bodies.concat(), doc_offsets };
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Word, "hostile").unwrap();
    let draft = Draft { dictionary, grammar, paths, continues: false };
    draft.write(&mut writer, SegmentLayout::Small).unwrap();
    writer.finish(None).unwrap().0
}

/// Returns a dictionary of words, then separators.
fn dictionary(words: &[&str], separators: &[&str]) -> Dictionary {
    let mut offsets = vec![0];
    let mut bytes = String::new();
    for token in words.iter().chain(separators) {
        bytes.push_str(token);
        offsets.push(bytes.len() as u32);
    }
    Dictionary::from_parts(words.len() as u32, offsets, bytes.into()).unwrap()
}

/// Returns a file of 2^60 copies of one word. Each rule is the next one twice.
fn bomb() -> Vec<u8> {
    let mut bodies: Vec<Vec<u32>> = (2..=60).map(|rule| vec![rule; 2]).collect();
    bodies.push(vec![0, 0]);
    file_of(dictionary(&["word"], &[]), &bodies, vec![0, 2])
}

#[test]
fn a_bomb_is_counted_and_not_decoded() {
    let file = bomb();
    assert!(file.len() < 4096, "{} bytes", file.len());
    let count = || {
        let (footer, corpus) = Corpus::from_bytes("bomb", &file, &LIMITS).unwrap();
        let counts = word_count(&corpus).unwrap();
        assert_eq!(counts.iter().collect::<Vec<_>>(), [("word", 1 << 60)]);
        assert_eq!(footer.num_tokens(), 1 << 60);
        corpus
    };
    let (corpus, fastest) = (0..5).map(|_| timed(count)).min_by_key(|(_, time)| *time).unwrap();
    println!("{} bytes opened and counted in {fastest:?}", file.len());
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
    let len_bytes = 5 * (1u64 << 60) - 1;
    let refused = |error: Error, asked: u64| {
        let text = error.to_string();
        let Error::Capacity { requested, limit, knob, .. } = error else { panic!("{text}") };
        assert_eq!((requested, knob), (asked, "tadoc.max_output_bytes"));
        assert!(text.contains(knob) && text.contains(&limit.to_string()), "{text}");
    };
    for limit in [100, DEFAULT_MAX_OUTPUT_BYTES, 1 << 40] {
        refused(document_bytes(&corpus, 0, limit).unwrap_err(), len_bytes);
        let mut output = Vec::new();
        let all = extract_into(&corpus, 0, 0, u64::MAX, limit, &mut output);
        refused(all.unwrap_err(), len_bytes);
        assert_eq!(output.capacity(), 0);
    }
    refused(extract(&corpus, 0, 0, u64::MAX).unwrap_err(), len_bytes);
    assert_eq!(extract(&corpus, 0, len_bytes - 7, 100).unwrap(), b"rd word");
}

#[test]
fn rules_that_are_all_walk_and_no_text_are_refused() {
    // 0 is the word, 1 the empty separator, 2 a comma, and 3 the root. A rule of one byte occurs
    // 20,000 times.
    let of = |rules: Vec<Vec<u32>>| {
        let bodies = [vec![vec![4; 20_000]], rules].concat();
        let file = file_of(dictionary(&["a"], &["", ","]), &bodies, vec![0, 20_000]);
        assert!(file.len() < 1_000, "{} bytes", file.len());
        Corpus::from_bytes("slow", &file, &LIMITS)
    };
    let chain = (5..20_000).map(|rule| vec![rule]).chain([vec![0]]).collect();
    let run = vec![[vec![1; 20_000], vec![0]].concat()];
    for rules in [chain, run] {
        let refused = of(rules).unwrap_err();
        assert!(matches!(refused, Error::Format { section: "grammar", .. }), "{refused}");
    }
    assert!(of(vec![vec![1, 5, 1], vec![0, 2]]).is_ok());
}

#[test]
fn an_index_is_as_small_as_its_text_or_refused() {
    // 50,000 documents of one word and 50,000 commas have a long text and a short index.
    let rule = [vec![1; 50_000], vec![0]].concat();
    let root = vec![3; 50_000];
    let file = file_of(dictionary(&["a"], &[","]), &[root, rule], (0..=50_000).collect());
    let (_, corpus) = Corpus::from_bytes("commas", &file, &LIMITS).unwrap();
    let (index, taken) = timed(|| inverted_index(&corpus, Traversal::Auto).unwrap());
    assert!(taken < MAX_CASE_TIME, "{taken:?}");
    assert_eq!((index.len(), index.num_docs(0)), (1, 50_000));

    // 100,000 documents of the same 10,000 words have a short grammar and 10^9 entries.
    let words: Vec<String> = (0..10_000).map(|i| format!("{i:04}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let bodies = [vec![10_001; 100_000], (0..10_000).collect()];
    let file = file_of(dictionary(&words, &[]), &bodies, (0..=100_000).collect());
    assert!(file.len() < 40_000, "{} bytes", file.len());
    let (_, corpus) = Corpus::from_bytes("entries", &file, &LIMITS).unwrap();
    let refused = inverted_index(&corpus, Traversal::Auto).unwrap_err();
    assert!(matches!(refused, Error::Capacity { limit: 0x2000_0000, .. }), "{refused}");
}

#[test]
fn a_document_of_very_many_parts_is_searched_at_once() {
    const NUM_PARTS: u64 = 2_000;
    let options = options(TokenizerProfile::Word, BuilderKind::Rounds, 6);
    let document = ("x".to_owned(), "ab cd ".repeat(NUM_PARTS as usize).into_bytes());
    let corpus = corpus_of(&[document], &options);
    assert!(corpus.segments().len() as u64 >= NUM_PARTS);
    let query = Query::parse(TokenizerProfile::Word, "\"cd ab\"").unwrap();
    let started = Instant::now();
    assert_eq!(search(&corpus, &query, None).unwrap().len() as u64, NUM_PARTS - 1);
    // This takes a tenth of a second. It took a minute and more when each pair of parts placed a
    // part behind all parts before it. The limit is generous, because other programs may use the
    // processors.
    assert!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
}
