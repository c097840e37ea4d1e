//! Helpers that the test suites of the workspace share: texts, models and naive oracles.
//!
//! This crate is not published. Unit tests and suites use it as a dev-dependency. It depends only on the core. The
//! feature `store` adds living corpora, and `cuda` adds devices. So suites of these build without DataFusion.
//!
//! ```text
//! documents           inputs: real and random text, files of it, and corpora
//! scrambled           corpora under grammars that no builder makes, and their plain text
//! naive               the answers, computed in the slow way
//! edit_model, living  edited texts, and stored versions of them
//! malformed           damaged and falsified files
//! random              the random numbers of a test case
//! plans               calls of every table function, and random statements over them
//! command             processes: the program `tadoc`, one test again, and servers of files
//! device              the first device
//! ```

#![allow(clippy::unwrap_used, clippy::panic)]

pub mod command;
pub mod documents;
pub mod edit_model;
#[cfg(feature = "store")]
pub mod living;
pub mod malformed;
pub mod naive;
pub mod plans;
pub mod random;
pub mod scrambled;

use std::io::Write;
use std::path::Path;

use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;

/// Builds a corpus of `texts` in blocks of `block_bytes`. Paths are the numbers of the texts.
pub fn corpus_of_texts(block_bytes: usize, texts: &[String]) -> Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in texts.iter().enumerate() {
        builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1
}

/// Returns the root folder of the workspace.
pub fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap()
}

/// Prints a line directly to standard error, as the test harness shows captured output only for
/// failed tests.
pub fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The first device, and what suites of it share.
#[cfg(feature = "cuda")]
pub mod device {
    use gsst::CodeWidth;
    use tadoc_cuda::Device;

    /// Bytes that fill outputs before a kernel writes them.
    pub const POISONS: [u8; 2] = [0xA5, 0x5A];

    pub const WIDTHS: [CodeWidth; 2] = [CodeWidth::Eight, CodeWidth::Twelve];

    /// Opens the first device. Without a device, prints a note and returns `None`.
    ///
    /// # Panics
    /// The device cannot be opened and `REQUIRE_GPU` is set to a value other than 0.
    pub fn open_device() -> Option<Device> {
        match Device::open(0) {
            Ok(device) => Some(device),
            Err(error) if std::env::var_os("REQUIRE_GPU").is_none_or(|value| value == "0") => {
                super::say(&format!("skipped: {error}"));
                None
            }
            Err(error) => panic!("REQUIRE_GPU is set: {error}"),
        }
    }
}
