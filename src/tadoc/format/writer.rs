//! Writing a `.tadoc` file, segment by segment.
//!
//! A segment's sections go out as soon as it is handed over, so the writer holds one coded segment
//! at most. The bytes depend on the arguments alone, never on threads or time. Nothing is synced:
//! who owns the file decides about durability. Encoding takes O(G + dictionary + paths).

use std::io::Write;

use crate::error::{Error, Result};
use crate::format::codecs;
use crate::format::codecs::grammar::count_tokens;
use crate::format::layout::{
    COLUMNS_CODEC, FileFooter, SectionKind, SectionMeta, SegmentMeta, TIES_CODEC, align_up, header,
};
use crate::grammar::Grammar;
use crate::segment::Paths;
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
            others: Vec::new(),
        };
        let mut writer = Self { out, footer, offset: 0 };
        writer.write(&header())?;
        Ok(writer)
    }

    /// Appends a segment.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where it continues a document that is not there, [`Error::Io`]
    /// where the output refuses.
    pub fn write_segment(&mut self, segment: EncodedSegment) -> Result<()> {
        let EncodedSegment { mut meta, sections } = segment;
        if meta.continues && !self.footer.may_continue(self.footer.segments.len(), meta.num_docs) {
            return Err(Error::InvalidArgument {
                name: "continues",
                got: "true".into(),
                allowed: "false where no document is there to continue".into(),
            });
        }
        for (kind, codec, bytes) in sections {
            meta.sections.push(self.section(kind, codec, &bytes)?);
        }
        meta.sections.push(self.section(SectionKind::Ties, TIES_CODEC, &meta.ties())?);
        self.footer.segments.push(meta);
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
            let ties = self.section(SectionKind::Ties, TIES_CODEC, &self.footer.ties())?;
            self.footer.others.push(ties);
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

/// What a segment is made of.
#[derive(Debug)]
pub struct SegmentParts {
    /// Its terminals.
    pub dictionary: Dictionary,
    /// Its documents and rules.
    pub grammar: Grammar,
    /// One path a document.
    pub paths: Paths,
    /// Whether the first document is the rest of the last one of the segment before.
    pub continues: bool,
    /// Stored tokens of the text: words and separators, no implied blanks.
    pub num_tokens: u64,
    /// How many of them are words.
    pub num_word_tokens: u64,
    /// Bytes of the text.
    pub len_bytes: u64,
}

/// The sections of a segment, ready to be written.
#[derive(Debug)]
pub struct EncodedSegment {
    /// Without sections.
    meta: SegmentMeta,
    /// Kind, codec and bytes.
    sections: [(SectionKind, u16, Vec<u8>); 4],
}

impl EncodedSegment {
    /// Encodes a segment. Rules may be numbered in another order when it is read back.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] where the parts contradict one another, [`Error::Capacity`] for
    /// segments of 2^32 elements.
    pub fn new(parts: &SegmentParts) -> Result<Self> {
        let SegmentParts { dictionary, grammar, paths, .. } = parts;
        grammar.validate()?;
        let num_docs = grammar.num_docs() as u64;
        check_equal("paths", paths.len() as u64, num_docs)?;
        let num_terminals = u64::from(grammar.num_terminals);
        check_equal("num_terminals", num_terminals, u64::from(dictionary.len()))?;
        let (tokens, words) = count_tokens(grammar, dictionary.num_words())
            .ok_or_else(|| mismatch("grammar", u64::MAX, u64::MAX))?;
        check_equal("num_tokens", parts.num_tokens, tokens)?;
        check_equal("num_word_tokens", parts.num_word_tokens, words)?;
        let (words_sections, grammar_section) = rayon::join(
            || {
                let counts = crate::segment::dag::weights(grammar);
                (
                    codecs::dictionary::encode(dictionary),
                    codecs::word_counts::encode(dictionary, &counts),
                )
            },
            || codecs::grammar::encode(grammar, dictionary.num_words()),
        );
        let ((dictionary_codec, dictionary_section), counts_section) = words_sections;
        let (documents_codec, documents) = codecs::documents::encode(paths)?;
        let meta = SegmentMeta {
            num_docs,
            continues: parts.continues,
            len_bytes: parts.len_bytes,
            num_tokens: parts.num_tokens,
            num_word_tokens: parts.num_word_tokens,
            dictionary_bytes: dictionary.bytes().len() as u64,
            paths_bytes: paths.len_bytes() as u64,
            num_words: dictionary.num_words(),
            num_separators: dictionary.len() - dictionary.num_words(),
            num_rules: grammar.num_rules() as u32,
            num_elements: grammar.symbols.len() as u64,
            sections: Vec::new(),
        };
        let sections = [
            (SectionKind::Dictionary, dictionary_codec, dictionary_section),
            (SectionKind::WordCounts, codecs::word_counts::CODEC, counts_section),
            (SectionKind::Grammar, codecs::grammar::CODEC, grammar_section),
            (SectionKind::Documents, documents_codec, documents),
        ];
        Ok(Self { meta, sections })
    }
}

fn check_equal(name: &'static str, got: u64, expected: u64) -> Result<()> {
    if got == expected { Ok(()) } else { Err(mismatch(name, got, expected)) }
}

fn mismatch(name: &'static str, got: u64, allowed: u64) -> Error {
    Error::InvalidArgument { name, got: got.to_string(), allowed: allowed.to_string() }
}
