//! Writing a `.tadoc` file, segment by segment.
//!
//! A segment's sections go out as soon as it is handed over, so the writer holds one coded segment
//! at most. The bytes depend on the arguments alone, never on threads or time. Nothing is synced:
//! who owns the file decides about durability. Encoding takes O(G + dictionary + paths).

use std::io::Write;

use super::format::{
    COLUMNS_CODEC, FileFooter, SectionKind, SectionMeta, SegmentMeta, align_up, header,
};
use super::grammar_codec::count_tokens;
use super::{Paths, dictionary_codec, documents_codec, grammar_codec};
use crate::error::{Error, Result};
use crate::grammar::Grammar;
use crate::text::{Dictionary, TokenizerProfile};

/// Writes header, segments and footer of one file.
#[derive(Debug)]
pub struct CorpusWriter<W: Write> {
    out: W,
    footer: FileFooter,
    offset: u64,
}

impl<W: Write> CorpusWriter<W> {
    /// Begins a file in `out` whose text is cut by `profile` and compressed by the builder named
    /// `builder`.
    ///
    /// # Errors
    /// [`Error::Io`] where `out` refuses the header.
    pub fn new(out: W, profile: TokenizerProfile, builder: &str) -> Result<Self> {
        let footer = FileFooter {
            profile,
            unicode_version: profile.unicode_version(),
            writer: concat!("datafusion-tadoc ", env!("CARGO_PKG_VERSION")).into(),
            builder: builder.into(),
            segments: Vec::new(),
            columns: None,
            unknown: Vec::new(),
        };
        let mut writer = Self { out, footer, offset: 0 };
        writer.write(&header())?;
        Ok(writer)
    }

    /// Appends a segment: `paths` has one path a document of `grammar`; `num_tokens` (stored
    /// tokens: words and separators, no implied blanks), `num_word_tokens` and `len_bytes` are
    /// those of its text. Where it `continues`, its first document is the rest of the last one of
    /// the segment before.
    ///
    /// Rules may be numbered in another order when the segment is read back.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the arguments contradict one another, [`Error::Io`] where
    /// the output refuses, [`Error::Capacity`] for segments of 2^32 elements.
    #[expect(clippy::too_many_arguments, reason = "the parts of a segment, each of its own type")]
    pub fn write_segment(
        &mut self,
        dictionary: &Dictionary,
        grammar: &Grammar,
        paths: &Paths,
        continues: bool,
        num_tokens: u64,
        num_word_tokens: u64,
        len_bytes: u64,
    ) -> Result<()> {
        grammar.validate()?;
        let num_docs = grammar.num_docs() as u64;
        check_equal("paths", paths.len() as u64, num_docs)?;
        check_equal(
            "num_terminals",
            u64::from(grammar.num_terminals),
            u64::from(dictionary.len()),
        )?;
        let (tokens, words) = count_tokens(grammar, dictionary.num_words())
            .ok_or_else(|| mismatch("grammar", u64::MAX, u64::MAX))?;
        check_equal("num_tokens", num_tokens, tokens)?;
        check_equal("num_word_tokens", num_word_tokens, words)?;
        if continues && !self.footer.may_continue(self.footer.segments.len(), num_docs) {
            return Err(Error::InvalidArgument {
                name: "continues",
                got: "true".into(),
                allowed: "false where no document is there to continue".into(),
            });
        }
        let (dictionary_section, grammar_section) = rayon::join(
            || dictionary_codec::encode(dictionary),
            || grammar_codec::encode(grammar, dictionary.num_words()),
        );
        let (documents_codec, documents) = documents_codec::encode(paths)?;
        let sections = vec![
            self.section(SectionKind::Dictionary, dictionary_codec::CODEC, &dictionary_section)?,
            self.section(SectionKind::Grammar, grammar_codec::CODEC, &grammar_section)?,
            self.section(SectionKind::Documents, documents_codec, &documents)?,
        ];
        self.footer.segments.push(SegmentMeta {
            num_docs,
            continues,
            len_bytes,
            num_tokens,
            num_word_tokens,
            dictionary_bytes: dictionary.bytes().len() as u64,
            paths_bytes: paths.bytes.len() as u64,
            num_words: dictionary.num_words(),
            num_separators: dictionary.len() - dictionary.num_words(),
            num_rules: grammar.num_rules() as u32,
            num_elements: grammar.symbols.len() as u64,
            sections,
        });
        Ok(())
    }

    /// Ends the file with `columns`, a Parquet file of one row a document, if there are any, and
    /// the footer. The output is flushed and handed back with what was written.
    ///
    /// # Errors
    /// [`Error::Io`] where the output refuses.
    pub fn finish(mut self, columns: Option<&[u8]>) -> Result<(W, FileFooter)> {
        if let Some(bytes) = columns {
            self.footer.columns = Some(self.section(SectionKind::Columns, COLUMNS_CODEC, bytes)?);
        }
        let footer = self.footer.to_bytes()?;
        self.write(&footer)?;
        self.out.flush().map_err(|e| Error::io("flushing a corpus file", e))?;
        Ok((self.out, self.footer))
    }

    fn section(&mut self, kind: SectionKind, codec: u16, bytes: &[u8]) -> Result<SectionMeta> {
        let (offset, len) = (self.offset, bytes.len() as u64);
        self.write(bytes)?;
        let padding = align_up(self.offset) - self.offset;
        self.write(&[0; 64][..padding as usize])?;
        Ok(SectionMeta { kind, codec, offset, len, crc32c: crc32c::crc32c(bytes) })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.out.write_all(bytes).map_err(|e| Error::io("writing a corpus file", e))?;
        self.offset += bytes.len() as u64;
        Ok(())
    }
}

fn check_equal(name: &'static str, got: u64, expected: u64) -> Result<()> {
    if got == expected { Ok(()) } else { Err(mismatch(name, got, expected)) }
}

fn mismatch(name: &'static str, got: u64, allowed: u64) -> Error {
    Error::InvalidArgument { name, got: got.to_string(), allowed: allowed.to_string() }
}
