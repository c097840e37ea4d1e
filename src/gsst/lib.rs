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
//! A *symbol* is a string of 1 to 8 bytes. A *code* is the number of a symbol. An *escape* is the
//! code that says that a literal byte follows (Boncz, Neumann, Leis: FSST, VLDB 2020). A *block*
//! holds rows whose codes share one symbol table. A *split* is a run of codes of fixed length whose
//! place in the text is stored, so that it decodes alone (Vonk, Hoozemans, Al-Ars: GSST, 2025).
//! Each row has its own codes, so a single row decodes alone.
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
//! Reading order: [`symbol_table`](SymbolTable) (symbols and codes), [`layout`] (the bytes of a
//! block), `encode` with `matcher`, `decode`, [`block`](Block), `training`,
//! [`pattern`](Pattern) and `matching` (predicates). The crate's core knows neither Arrow nor
//! Parquet nor devices and hands out plain slices. The modules `arrow` and `parquet` are optional
//! features.

#[cfg(feature = "arrow")]
pub mod arrow;
mod block;
mod decode;
mod encode;
mod error;
pub mod layout;
mod matcher;
mod matching;
#[cfg(feature = "parquet")]
pub mod parquet;
mod pattern;
mod symbol_table;
mod training;

pub use block::{
    Block, BlockOptions, DecodedRows, RowFrames, SealedBlock, num_rows_that_fit, write_block, write_block_with,
};
pub use encode::Parse;
pub use error::{Error, Result};
pub use layout::RowFrame;
pub use matching::RowMask;
pub use pattern::{ByteAutomaton, Pattern};
pub use symbol_table::{CodeWidth, ESCAPE_CODE, MAX_SYMBOL_BYTES, Symbol, SymbolTable};
pub use training::TrainingOptions;

#[cfg(test)]
mod tests;
