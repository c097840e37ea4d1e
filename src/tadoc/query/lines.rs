//! Lines and columns of hits.
//!
//! A document is read once, up to its last hit, in pieces of 1 MiB. Lines end with `\n`.

use memchr::{memchr_iter, memrchr};

use crate::error::Result;
use crate::read::extract;
use crate::segment::Corpus;

/// Bytes that are read at once.
const PIECE_BYTES: u64 = 1 << 20;

/// Line and column of a byte of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinePlace {
    /// Number of the line, from 1.
    pub line: u64,
    /// Number of the byte in the line, from 1.
    pub column: u64,
}

/// Counts the lines of documents of a corpus up to given places.
///
/// ```
/// use tadoc::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
/// use tadoc::query::{LineCounter, LinePlace};
///
/// # fn main() -> tadoc::Result<()> {
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a", b"one\ntwo three\n")?;
/// let (file, _report) = builder.finish(None)?;
/// let (_footer, corpus) = Corpus::from_bytes("c.tadoc", &file, &OpenLimits::default())?;
/// let mut lines = LineCounter::new(&corpus);
/// assert_eq!(lines.locate(0, 8)?, LinePlace { line: 2, column: 5 });
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct LineCounter<'c> {
    corpus: &'c Corpus,
    doc_id: u64,
    /// Bytes of the document that were read.
    offset: u64,
    /// Line ends before `offset`, and the start of the line there.
    num_ends: u64,
    line_start: u64,
}

impl<'c> LineCounter<'c> {
    /// Creates the counter.
    pub fn new(corpus: &'c Corpus) -> Self {
        Self { corpus, doc_id: 0, offset: 0, num_ends: 0, line_start: 0 }
    }

    /// Returns the place of byte `offset` of document `doc_id`. Places are cheap if they ascend
    /// within a document.
    ///
    /// # Errors
    /// Those of [`extract`].
    pub fn locate(&mut self, doc_id: u64, offset: u64) -> Result<LinePlace> {
        if doc_id != self.doc_id || offset < self.offset {
            *self = Self { doc_id, ..Self::new(self.corpus) };
        }
        while self.offset < offset {
            let len = PIECE_BYTES.min(offset - self.offset);
            let piece = extract(self.corpus, doc_id, self.offset, len)?;
            if piece.is_empty() {
                break;
            }
            self.num_ends += memchr_iter(b'\n', &piece).count() as u64;
            if let Some(at) = memrchr(b'\n', &piece) {
                self.line_start = self.offset + at as u64 + 1;
            }
            self.offset += piece.len() as u64;
        }
        Ok(LinePlace { line: self.num_ends + 1, column: offset - self.line_start + 1 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::of_texts::corpus_of_texts;

    #[test]
    fn lines_are_those_of_the_text() {
        let texts = ["a\n\nb c\r\nd".to_owned(), String::new(), "no line end".to_owned()];
        for block_bytes in [1 << 20, 3] {
            let corpus = corpus_of_texts(block_bytes, &texts);
            let mut lines = LineCounter::new(&corpus);
            for (doc_id, text) in (0..).zip(&texts) {
                for offset in (0..=text.len()).chain([0, 2]).filter(|&at| at <= text.len()) {
                    let before = &text[..offset];
                    let line = 1 + before.matches('\n').count() as u64;
                    let start = before.rfind('\n').map_or(0, |at| at + 1);
                    let expected = LinePlace { line, column: (offset - start) as u64 + 1 };
                    assert_eq!(lines.locate(doc_id, offset as u64).unwrap(), expected);
                }
            }
        }
    }
}
