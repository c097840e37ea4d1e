//! A fuzz target: from bytes to a mutant, and from the mutant to a verdict.
//!
//! ```text
//! input   0 | pick | bytes      the mutant's part is `bytes`; `pick` chooses the sample for it
//!         1 | number            mutant of that number (8 bytes), made from the samples
//! ```
//!
//! The first form is for seeds and for fuzzers that learn from coverage. The second form makes
//! changes that keep most of a part's structure. Both get right checksums, so that they reach the
//! code behind the checks.

use std::sync::LazyLock;
use std::time::Duration;

use tadoc::Error;
use testkit::malformed::busy_time;
use testkit::malformed::samples::{Sample, samples};

use super::{gsst, living, parquet, sections, statements, strings};

/// Time limit of a case.
const MAX_CASE_TIME: Duration = Duration::from_secs(1);

/// Outcome of a mutant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A checksum or a tie did not match.
    StoppedByChecksum,
    /// A typed error for another reason.
    Refused,
    /// The mutant opened, and its answers were right.
    Answered,
}

impl Verdict {
    /// Returns the verdict on a mutant that was refused with `error`.
    pub fn from_error(error: &Error) -> Self {
        match error {
            Error::Checksum { .. } => Self::StoppedByChecksum,
            Error::Format { section: "footer", reason, .. } if reason.contains("from a copy") => {
                Self::StoppedByChecksum
            }
            Error::Format { .. } | Error::Version { .. } | Error::Capacity { .. } => Self::Refused,
            other => panic!("an error of another kind: {other:?}"),
        }
    }
}

/// One parser under test.
#[derive(Clone, Copy)]
pub struct Target {
    /// Name of the target, of its test, and of the folder of its seeds.
    pub name: &'static str,
    /// A function that returns inputs of the first form from parts that the writers make.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// A function that tries an input and panics on any fault.
    pub run: fn(&Input<'_>) -> Verdict,
}

/// All targets.
pub const TARGETS: [Target; 14] = [
    Target { name: "footer", seeds: sections::footer_seeds, run: sections::footer },
    Target { name: "dictionary", seeds: sections::dictionary_seeds, run: sections::dictionary },
    Target { name: "grammar", seeds: sections::grammar_seeds, run: sections::grammar },
    Target { name: "documents", seeds: sections::documents_seeds, run: sections::documents },
    Target { name: "word_counts", seeds: sections::word_counts_seeds, run: sections::word_counts },
    Target { name: "document_lengths", seeds: sections::document_lengths_seeds, run: sections::document_lengths },
    Target { name: "user_columns", seeds: statements::columns_seeds, run: statements::columns },
    Target { name: "manifest", seeds: living::manifest_seeds, run: living::manifest },
    Target { name: "edit_records", seeds: living::edits_seeds, run: living::edits },
    Target { name: "gsst_block", seeds: gsst::block_seeds, run: gsst::block },
    Target { name: "gsst_parquet", seeds: gsst::index_seeds, run: gsst::index },
    Target { name: "parquet_file", seeds: parquet::file_seeds, run: parquet::file },
    Target { name: "query", seeds: strings::query_seeds, run: strings::query },
    Target { name: "location", seeds: statements::location_seeds, run: statements::location },
];

/// Returns the target called `name`.
pub fn target(name: &str) -> Target {
    *TARGETS.iter().find(|target| target.name == name).unwrap()
}

/// A recipe for a mutant.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// Bytes that replace a part of sample `pick`.
    Part { pick: usize, bytes: &'a [u8] },
    /// The mutant of this number.
    Number(u64),
}

impl<'a> Input<'a> {
    /// Returns the input that `bytes` encode.
    pub fn new(bytes: &'a [u8]) -> Self {
        match bytes {
            [1, number @ ..] => {
                let mut le_bytes = [0; 8];
                let len = number.len().min(8);
                le_bytes[..len].copy_from_slice(&number[..len]);
                Self::Number(u64::from_le_bytes(le_bytes))
            }
            [_, pick, bytes @ ..] => Self::Part { pick: usize::from(*pick), bytes },
            _ => Self::Part { pick: 0, bytes: &[] },
        }
    }

    /// Returns a number that differs from input to input. The questions to a mutant depend on it.
    pub fn number(&self) -> u64 {
        match self {
            Self::Part { pick, bytes } => u64::from(crc32c::crc32c(bytes)) + *pick as u64,
            Self::Number(number) => *number,
        }
    }
}

/// Returns the bytes of the input that replaces a part of sample `pick` by `bytes`.
pub fn part_input(pick: usize, bytes: &[u8]) -> Vec<u8> {
    [&[0, pick as u8][..], bytes].concat()
}

/// Returns the bytes of the input for mutant `number`.
pub fn number_input(number: u64) -> Vec<u8> {
    [&[1][..], &number.to_le_bytes()].concat()
}

/// Returns the corpora that mutants are made from.
pub fn corpora() -> &'static [Sample] {
    static SAMPLES: LazyLock<Vec<Sample>> = LazyLock::new(samples);
    &SAMPLES
}

/// Tries `input` and checks that it takes at most a second of processor time. Only the time of this
/// thread counts; in a pool of one thread that is all of the time.
pub fn try_input(target: &Target, input: &[u8]) -> Verdict {
    let before = busy_time();
    let verdict = (target.run)(&Input::new(input));
    let taken = busy_time() - before;
    assert!(taken <= MAX_CASE_TIME, "a case took {taken:?}");
    verdict
}
