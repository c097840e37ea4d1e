//! Fuzz targets for every parser of bytes and strings that strangers write. `tests/fuzz/README.md`
//! describes them.
//!
//! ```text
//! cases 0, 1, 2, …  ─▶ input ─▶ mutant with right checksums ─▶ verdict  (this file: stable Rust)
//! libFuzzer         ─▶ input ─▶ the same                       (tests/fuzz/Cargo.toml: nightly)
//! ```
//!
//! Each test tries the seeds of its target, then numbered cases for `TADOC_FUZZ_SECONDS` (1). To
//! run case 4711 alone, set `TADOC_FIRST_CASE=4711 TADOC_CASES=1`. Any case may take at most a
//! second and little memory. At least 30 of 100 mutants must pass all checksums. This suite is a
//! binary of its own, because its allocator counts the memory.

#![cfg_attr(fuzzing, no_main)]
#![allow(clippy::unwrap_used, clippy::panic)]

mod gsst;
mod living;
mod parquet;
mod sections;
mod statements;
mod strings;
mod target;

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    static TARGET: std::sync::LazyLock<target::Target> =
        std::sync::LazyLock::new(|| target::target(option_env!("CARGO_BIN_NAME").unwrap()));
    target::try_input(&TARGET, input);
});

#[cfg(not(fuzzing))]
mod stable {
    //! Numbered cases in stable Rust.

    use std::fs;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;
    use std::time::{Duration, Instant};

    use peak_alloc::PeakAlloc;
    use rayon::ThreadPoolBuilder;
    use testkit::malformed::mutations::changed_bytes;
    use testkit::random::Random;

    use super::target::{TARGETS, Target, Verdict, number_input, target, try_input};

    #[global_allocator]
    static MEMORY: PeakAlloc = PeakAlloc;

    /// Limit for the memory of a case: to open the mutant, and as much again for derived data and
    /// for the oracle of the answers.
    const MAX_CASE_BYTES: usize = 256 << 20;
    /// Least share of mutants that pass checksums, in percent.
    const MIN_PAST_CHECKSUMS: u64 = 30;

    fn number_from(variable: &str, default: u64) -> u64 {
        std::env::var(variable).map_or(default, |text| text.parse().unwrap())
    }

    fn seeds_folder(target: &Target) -> PathBuf {
        testkit::root().join("tests/fuzz/seeds").join(target.name)
    }

    /// Returns the seeds of a target with their names, sorted by name.
    fn seeds(target: &Target) -> Vec<(String, Vec<u8>)> {
        let entries = fs::read_dir(seeds_folder(target)).unwrap();
        let mut seeds: Vec<_> = entries
            .map(|entry| entry.unwrap().path())
            .map(|path| (path.file_name().unwrap().to_str().unwrap().into(), fs::read(path).unwrap()))
            .collect();
        seeds.sort();
        seeds
    }

    /// Returns input number `case`. Every other input is a seed with a few changes.
    fn input(case: u64, seeds: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut random = Random(case);
        if case.is_multiple_of(2) {
            return number_input(case);
        }
        let mut input = random.pick(seeds).1.clone();
        for _ in 0..1 + random.below(4) {
            if input.len() > 2 {
                let other = &random.pick(seeds).1;
                let changed = changed_bytes(&mut random, &input[2..], other);
                input.splice(2.., changed);
            }
        }
        input
    }

    /// Numbers of cases of a target, by verdict.
    #[derive(Debug, Default)]
    struct Tally {
        num_cases: u64,
        num_stopped: u64,
        num_answered: u64,
    }

    impl Tally {
        fn add(&mut self, verdict: Verdict) {
            self.num_cases += 1;
            self.num_stopped += u64::from(verdict == Verdict::StoppedByChecksum);
            self.num_answered += u64::from(verdict == Verdict::Answered);
        }
    }

    /// Tries `input`. Panics with the name of the case if it fails.
    fn checked(target: &Target, input: &[u8], what: &str) -> Verdict {
        MEMORY.reset_peak_usage();
        let before = MEMORY.current_usage();
        let verdict = catch_unwind(AssertUnwindSafe(|| try_input(target, input)));
        // Tests that run at the same time count too, so this is an upper bound.
        let num_beside = std::thread::available_parallelism().map_or(1, usize::from);
        let taken = MEMORY.peak_usage().saturating_sub(before);
        assert!(taken <= num_beside * MAX_CASE_BYTES, "{what}: took {taken} bytes of memory");
        verdict.unwrap_or_else(|_| panic!("{what} of {}: see above", target.name))
    }

    fn fuzz(name: &str) {
        let target = target(name);
        // Samples are made once, and their memory does not belong to a case.
        assert!(!(target.seeds)().is_empty());
        let seeds = seeds(&target);
        let mut tally = Tally::default();
        let num_answered =
            seeds.iter().filter(|(name, seed)| checked(&target, seed, &format!("seed {name}")) == Verdict::Answered);
        let num_answered = num_answered.count();
        assert!(num_answered > 0, "no seed of {name} is right: write them anew, see the README");
        let time = Duration::from_secs(number_from("TADOC_FUZZ_SECONDS", 1));
        let first = number_from("TADOC_FIRST_CASE", 0);
        let end = first.saturating_add(number_from("TADOC_CASES", u64::MAX));
        let started = Instant::now();
        for case in first..end {
            let what = format!("TADOC_FIRST_CASE={case} TADOC_CASES=1");
            tally.add(checked(&target, &input(case, &seeds), &what));
            if started.elapsed() >= time {
                break;
            }
        }
        let Tally { num_cases, num_stopped, num_answered } = tally;
        println!("{name}: {num_cases} cases, {num_stopped} stopped by a checksum, {num_answered} answered");
        let num_past = num_cases - num_stopped;
        assert!(num_past * 100 >= num_cases * MIN_PAST_CHECKSUMS, "{num_past} of {num_cases}");
    }

    macro_rules! tests_of_targets {
        ($($name:ident)*) => {
            const TESTED: &[&str] = &[$(stringify!($name)),*];
            $(
                #[test]
                fn $name() {
                    let pool = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
                    pool.install(|| fuzz(stringify!($name)));
                }
            )*
        };
    }

    tests_of_targets! {
        footer dictionary grammar documents word_counts document_lengths user_columns manifest
        edit_records gsst_block gsst_parquet parquet_file query location
    }

    #[test]
    fn every_target_has_a_test_and_a_fuzzer() {
        let names: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
        assert_eq!(names, TESTED);
        let manifest = include_str!("Cargo.toml");
        let lacks = |name: &&str| !manifest.contains(&format!("name = \"{name}\""));
        assert_eq!(names.into_iter().find(lacks), None, "tests/fuzz/Cargo.toml lacks it");
    }

    #[test]
    #[ignore = "writes into the tree: when a format changes, see tests/fuzz/README.md"]
    fn write_seeds() {
        for target in &TARGETS {
            let folder = seeds_folder(target);
            fs::create_dir_all(&folder).unwrap();
            for (i, seed) in (target.seeds)().iter().enumerate() {
                fs::write(folder.join(format!("{i:02}")), seed).unwrap();
            }
        }
    }
}
