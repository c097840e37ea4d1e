//! The file of a corpus: its layout, the codecs of its sections, reading and writing.
//!
//! ```text
//! layout     what stands where: header, sections, footer, postscript
//! codecs     one for each kind of section, over the coder in entropy
//! writer     segments ─▶ bytes          reader    bytes ─▶ checked segments
//! ```
//!
//! Bytes from outside never make a panic: every read goes through a [`cursor`], whose failures name
//! the file, the section and the offset. Sizes are checked before memory is taken.

mod codecs;
pub mod cursor;
mod entropy;
#[cfg(test)]
mod file_tests;
mod layout;
mod path_text;
mod postscript;
mod reader;
mod strings;
mod writer;

pub use layout::{
    FileFooter, FooterOutcome, SectionKind, SectionMeta, SegmentMeta, check_header, check_version,
};
pub use path_text::{path_bytes, path_text};
pub use reader::{OpenLimits, read_columns, read_paths, read_segment, read_words};
pub use writer::{CorpusWriter, EncodedSegment, SegmentParts};
