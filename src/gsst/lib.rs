//! String columns as FSST codes, in blocks and splits that threads or GPU warps decode in parallel.
//!
//! ```text
//! rows ──training──▶ symbol table ─┐
//!   │                              ▼
//!   └───────────encode──────▶ codes of all rows ──write──▶ block (bytes)
//!                                                            │ open: checksum, then every part
//!   rows, ranges, selections ◀──decode── codes of some rows ◀┘
//! ```
//!
//! A *symbol* is a string of 1 to 8 bytes. A *code* is the number of a symbol. An *escape* is the code that says that a
//! literal byte follows (Boncz, Neumann, Leis: FSST, VLDB 2020). A *block* holds rows whose codes share one symbol
//! table. A *split* is a run of codes of fixed length whose place in the text is stored, so that it decodes alone
//! (Vonk, Hoozemans, Al-Ars: GSST, 2025). Each row has its own codes, so a single row decodes alone.
//!
//! ```
//! use gsst::{Block, BlockOptions, Pattern, write_block};
//!
//! let rows = [Some(&b"to be"[..]), None, Some(b"or not to be")];
//! let block = Block::open(write_block(&rows, &BlockOptions::default())?)?;
//! let found = block.rows_like(&Pattern::like("%not%", None)).rows();
//! assert_eq!(found, [2]);
//! assert_eq!(block.decode_selected(&found)?.text, b"or not to be");
//! # Ok::<(), gsst::Error>(())
//! ```
//!
//! Reading order: [`symbol_table`](SymbolTable) (symbols and codes), [`layout`] (the bytes of a block), `encode` with
//! `matcher`, `decode`, [`block`](Block), `training`, [`pattern`](Pattern) and `matching` (predicates). The crate's
//! core knows neither Arrow nor Parquet nor devices and hands out plain slices. The modules `arrow` and `parquet` are
//! optional features.
//!
//! Messages of errors say what was expected, what was found, and how to resolve the problem. Variants that concern
//! bytes name the file, the section and the offset. The *type* is public API, the text is not.

#[cfg(feature = "arrow")]
pub mod arrow;
mod block;
mod decode;
mod encode;
pub mod layout;
mod matcher;
mod matching;
#[cfg(feature = "parquet")]
pub mod parquet;
mod pattern;
mod symbol_table;
#[cfg(test)]
mod tests;
mod training;

pub use block::{
    Block, BlockOptions, DecodedRows, RowFrames, SealedBlock, num_rows_that_fit, write_block, write_block_with,
};
pub use encode::Parse;
pub use layout::RowFrame;
pub use matching::RowMask;
pub use pattern::{ByteAutomaton, Pattern};
pub use symbol_table::{CodeWidth, ESCAPE_CODE, MAX_SYMBOL_BYTES, Symbol, SymbolTable};
pub use training::TrainingOptions;

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Failure of encoding, opening or decoding string columns.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Bytes that do not follow the format.
    #[error("{file}: section {section}, offset {offset}: {reason}")]
    Format {
        /// File (or URL) that the bytes came from.
        file: String,
        /// Section of the file, such as `footer` or `grammar`.
        section: &'static str,
        /// Byte offset inside the file, of the start of the section or of the fault.
        offset: u64,
        /// Expected and found content.
        reason: String,
    },
    /// A file of a version that this build does not support.
    #[error("{file}: written with {got}, this build reads {expected}; use a newer datafusion-tadoc")]
    Version {
        /// File (or URL) that the bytes came from.
        file: String,
        /// Versions that this build reads.
        expected: String,
        /// Version of the file.
        got: String,
    },
    /// A stored checksum that differs from the computed one.
    #[error(
        "{file}: section {section}, offset {offset}: checksum {got:#010x} instead of {expected:#010x}; \
         the file is damaged, restore it from a copy"
    )]
    Checksum {
        /// File (or URL) that the bytes came from.
        file: String,
        /// Section of the file.
        section: &'static str,
        /// Byte offset of the section inside the file.
        offset: u64,
        /// Stored CRC32C.
        expected: u32,
        /// CRC32C that was computed from the bytes.
        got: u32,
    },
    /// An argument of the caller that is not valid.
    #[error("{name}: got {got}, expected {allowed}")]
    InvalidArgument {
        /// Name of the argument.
        name: &'static str,
        /// Value that was passed.
        got: String,
        /// Values that are accepted.
        allowed: String,
    },
    /// An index or offset that lies outside its target.
    #[error("{what} {got} is out of range, there are {len}")]
    OutOfRange {
        /// Name of the indexed value, such as `doc_id`.
        what: &'static str,
        /// The value that was passed.
        got: u64,
        /// One past the largest accepted value.
        len: u64,
    },
    /// A request that exceeds a configured limit.
    #[error("{what} needs {requested}, the limit is {limit}; raise {knob} to allow it")]
    Capacity {
        /// Name of the value that would grow too large.
        what: &'static str,
        /// Requested amount.
        requested: u64,
        /// The limit in force.
        limit: u64,
        /// Name of the setting that changes the limit.
        knob: &'static str,
    },
    /// A failure of a library that this crate calls.
    #[error("{what}: {source}")]
    External {
        /// Description of the failed operation.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Returns true if the stored bytes differ from the bytes that were written.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Format { .. } | Self::Checksum { .. })
    }

    /// Wraps a library's error with a description of the failed operation.
    pub fn external(what: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::External { what: what.into(), source: source.into() }
    }
}

/// File name in errors about a block. Only the callers know the origin of a block.
const SOURCE: &str = "GSST block";

/// Returns a format error at `offset` of `section` of a block.
fn fault(section: &'static str, offset: usize, reason: impl Into<String>) -> Error {
    Error::Format { file: SOURCE.to_owned(), section, offset: offset as u64, reason: reason.into() }
}

const _: () = assert!(size_of::<Error>() <= 96);
