//! Builder of corpus files: documents in, file out, in bounded memory.
//!
//! ```text
//! documents ─▶ builder (cuts) ─▶ blocks (pieces, tokens, grammar; several at once) ─▶ writer ─▶ file
//! ```
//!
//! A document may be longer than a block. It then continues in the next segment. In the layout
//! `fast` a block is divided into smaller segments where they share little text.
//!
//! ```
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//!
//! # fn main() -> tadoc::Result<()> {
//! let options = IngestOptions { block_bytes: 16, ..IngestOptions::default() };
//! let mut builder = CorpusBuilder::new(Vec::new(), options)?;
//! builder.push_document("a.txt", b"to be or not")?;
//! builder.push_document("b.txt", b"to be")?;
//! let (file, report) = builder.finish(None)?;
//! assert_eq!(report.footer.segments.len(), 2);
//! assert_eq!(report.file_len_bytes, file.len() as u64);
//! # Ok(())
//! # }
//! ```

mod blocks;
mod builder;

use std::str::FromStr;

use crate::error::{Error, Result};
use crate::format::SegmentLayout;
use crate::grammar::{Dedup, Effort};
use crate::text::TokenizerProfile;

pub use blocks::{MAX_BLOCKS_AT_ONCE, usual_blocks_at_once};
pub use builder::{CorpusBuilder, IngestReport, MAX_PATH_BYTES};

/// Default size of a block's text.
pub const DEFAULT_BLOCK_BYTES: usize = 128 << 20;

/// Algorithm that builds the grammar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuilderKind {
    /// The parallel builder that works in rounds (the default).
    #[default]
    Rounds,
    /// Sequitur, the builder of the TADOC papers. It is serial and several times slower.
    Sequitur,
}

impl BuilderKind {
    /// Returns the name used in files, options and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rounds => "rounds",
            Self::Sequitur => "sequitur",
        }
    }
}

impl std::fmt::Display for BuilderKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for BuilderKind {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "rounds" => Ok(Self::Rounds),
            "sequitur" => Ok(Self::Sequitur),
            _ => {
                Err(Error::InvalidArgument { name: "builder", got: name.into(), allowed: "rounds or sequitur".into() })
            }
        }
    }
}

/// Settings of a [`CorpusBuilder`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestOptions {
    /// Rule by which words are found.
    pub profile: TokenizerProfile,
    /// Algorithm that builds the grammar.
    pub builder: BuilderKind,
    /// Bytes of text in one segment, at least 1. Memory use is proportional to it.
    pub block_bytes: usize,
    /// Choice of whether the rounds builder shares repeated passages first.
    pub dedup: Dedup,
    /// Time that the rounds builder spends on a smaller grammar. Sequitur has one effort.
    pub effort: Effort,
    /// Codecs of the segments.
    pub layout: SegmentLayout,
}

impl IngestOptions {
    /// Returns the name of builder and effort in the footer of a file: `rounds`, `rounds fast`,
    /// `rounds small` or `sequitur`.
    pub fn builder_name(&self) -> String {
        match (self.builder, self.effort) {
            (BuilderKind::Sequitur, _) | (_, Effort::Balanced) => self.builder.to_string(),
            (BuilderKind::Rounds, effort) => format!("{} {effort}", self.builder),
        }
    }
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            profile: TokenizerProfile::default(),
            builder: BuilderKind::default(),
            block_bytes: DEFAULT_BLOCK_BYTES,
            dedup: Dedup::default(),
            effort: Effort::default(),
            layout: SegmentLayout::default(),
        }
    }
}

/// Builds a corpus of `texts` in blocks of `block_bytes`. The path of each document is its number.
#[cfg(test)]
pub(crate) fn corpus_from_texts(block_bytes: usize, texts: &[String]) -> crate::Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for (doc, text) in texts.iter().enumerate() {
        builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    crate::Corpus::from_bytes("memory", &file, &crate::format::OpenLimits::default()).unwrap().1
}
