//! File format of a corpus: its layout, the codecs of its sections, reading and writing.
//!
//! ```text
//! layout     header, sections, footer and postscript, with their offsets
//! memory     bytes that opening a segment takes, by its footer
//! codecs     one for each kind of section, based on the coder in entropy
//! writer     segments ─▶ bytes          reader    bytes ─▶ checked segments
//! ```
//!
//! Bytes from outside never cause a panic. Every read uses a [`cursor`], whose errors name the
//! file, the section and the offset. Sizes are checked before memory is allocated.
//!
//! Reading order: `framing`, `codec_numbers` and `layout` (the parts of a file), [`cursor`] (reads of untrusted
//! bytes), `entropy` (coders of symbols and bits), `strings` (coders of strings, and paths as text),
//! `codecs` (sections), `writer`, `reader`, `stored_parts` (parts of a segment that are read alone),
//! `grammar_blocks` (parts of a grammar).
//!
//! ```
//! use tadoc::build::{CorpusBuilder, IngestOptions};
//! use tadoc::format::{FileFooter, FooterOutcome, OpenLimits, read_segment};
//!
//! # fn main() -> tadoc::Result<()> {
//! let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
//! builder.push_document("a.txt", b"to be or not to be")?;
//! let (file, _report) = builder.finish(None)?;
//!
//! let limits = OpenLimits::default();
//! let outcome = FileFooter::parse("a.tadoc", &file, file.len() as u64, &limits)?;
//! let FooterOutcome::Footer(footer) = outcome else { panic!("the whole file was passed") };
//! assert_eq!((footer.num_docs(), footer.num_word_tokens()), (1, 6));
//!
//! let range = footer.segments[0].byte_range();
//! let bytes = &file[range.start as usize..range.end as usize];
//! let segment = read_segment("a.tadoc", &footer, 0, bytes, &limits)?;
//! assert_eq!(segment.dictionary.num_words(), 4);
//! # Ok(())
//! # }
//! ```

mod codec_numbers;
mod codecs;
pub mod cursor;
mod entropy;
#[cfg(test)]
mod file_tests;
mod framing;
mod grammar_blocks;
mod layout;
mod memory;
mod reader;
mod stored_parts;
mod strings;
mod writer;

pub use framing::{OpenLimits, SectionKind, SectionMeta, SegmentLayout, check_header, check_version};
pub use grammar_blocks::{GrammarHead, StoredUnits};
pub use layout::{FileFooter, FooterOutcome, SegmentMeta};
pub use reader::{
    read_columns, read_document_facts, read_path_runs, read_paths, read_segment, read_segment_with, read_words,
    verify_segment,
};
pub use stored_parts::{
    DictionaryHead, PartialSegment, SomeGrammar, StoredDictionary, StoredLists, read_documents, read_documents_with,
    read_grammar,
};
pub use strings::{path_bytes, path_text};
pub use writer::{CorpusWriter, EncodedSegment, SegmentContents, WRITER};
