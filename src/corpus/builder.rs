//! Documents in, corpus file out, in memory bounded by the block and not by the input.
//!
//! ```text
//! push_document ─▶ block of text ─▶ tokens ─▶ grammar ─▶ segment sections ─▶ out
//!                  block_bytes      (all threads)        (two threads, while the
//!                                                         next block is built)
//! ```
//!
//! Input is cut into blocks at document borders; each becomes one segment with its own dictionary.
//! A document larger than a block is cut between two tokens, and the next segment says that it
//! continues. Blocks depend on the input and `block_bytes` alone, so the file is the same, byte for
//! byte, for any number of threads.
//!
//! Memory is about 13 bytes for each byte of the block at worst (a token a byte: 1 for the text, 9
//! for the builder, the rest for counts), 4-6 on ordinary text.

use std::collections::VecDeque;
use std::io::Write;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{CorpusWriter, EncodedSegment, FileFooter, Paths, SegmentParts};
use crate::error::{Error, Result};
use crate::grammar::{Dedup, RoundsOptions, build_rounds, build_sequitur};
use crate::text::{TokenizedBlock, TokenizerProfile, for_each_token, tokenize_block};

/// Text of a block unless chosen otherwise.
pub const DEFAULT_BLOCK_BYTES: usize = 128 << 20;

/// Which grammar builder runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BuilderKind {
    /// Round-based, parallel (the default).
    #[default]
    Rounds,
    /// Sequitur, the papers' builder: serial, several times slower.
    Sequitur,
}

impl BuilderKind {
    /// Name in files, options and messages.
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
            _ => Err(Error::InvalidArgument {
                name: "builder",
                got: name.into(),
                allowed: "rounds or sequitur".into(),
            }),
        }
    }
}

/// How a corpus is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IngestOptions {
    /// What a word is.
    pub profile: TokenizerProfile,
    /// Which grammar builder runs.
    pub builder: BuilderKind,
    /// Bytes of text in one segment; memory is proportional to it. At least 1.
    pub block_bytes: usize,
    /// Whether the rounds builder shares repeated segments first.
    pub dedup: Dedup,
}

impl Default for IngestOptions {
    fn default() -> Self {
        Self {
            profile: TokenizerProfile::default(),
            builder: BuilderKind::default(),
            block_bytes: DEFAULT_BLOCK_BYTES,
            dedup: Dedup::default(),
        }
    }
}

/// What was built, and where the time went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestReport {
    /// Footer of the file: documents, bytes, tokens, elements by segment.
    pub footer: FileFooter,
    /// Bytes of the file.
    pub file_len_bytes: u64,
    /// Time spent cutting text into tokens and making dictionaries.
    pub tokenizing: Duration,
    /// Time spent building grammars.
    pub grammar: Duration,
    /// Time spent waiting until sections were coded and written: the last block's, and what others
    /// took longer than the grammar of the block after them.
    pub writing: Duration,
}

/// Collects documents and writes a segment whenever a block is full.
///
/// ```
/// use datafusion_tadoc::corpus::{Corpus, CorpusBuilder, IngestOptions, OpenLimits};
///
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a.txt", b"to be or not to be")?;
/// let (file, report) = builder.finish(None)?;
/// assert_eq!(report.footer.num_docs(), 1);
///
/// let (_, corpus) = Corpus::from_bytes("memory", &file, &OpenLimits::default())?;
/// assert_eq!(corpus.num_docs(), 1);
/// # Ok::<(), datafusion_tadoc::Error>(())
/// ```
pub struct CorpusBuilder<W: Write> {
    writer: CorpusWriter<CountingWriter<W>>,
    options: IngestOptions,
    text: Vec<u8>,
    doc_ends: Vec<usize>,
    paths: Paths,
    continues: bool,
    /// The block before, while it is encoded.
    encoding: Option<JoinHandle<Result<EncodedSegment>>>,
    tokenizing: Duration,
    grammar: Duration,
    writing: Duration,
}

impl<W: Write> CorpusBuilder<W> {
    /// Starts a file on `out`; the caller makes it appear atomically (temporary file, multipart
    /// upload) once [`finish`](Self::finish) has returned.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a block of no bytes, [`Error::Io`] from `out`.
    pub fn new(out: W, options: IngestOptions) -> Result<Self> {
        if options.block_bytes == 0 {
            return Err(Error::InvalidArgument {
                name: "block_bytes",
                got: "0".into(),
                allowed: "1 or more".into(),
            });
        }
        let out = CountingWriter { out, written: 0 };
        Ok(Self {
            writer: CorpusWriter::new(out, options.profile, options.builder.as_str())?,
            options,
            text: Vec::new(),
            doc_ends: Vec::new(),
            paths: Paths::default(),
            continues: false,
            encoding: None,
            tokenizing: Duration::ZERO,
            grammar: Duration::ZERO,
            writing: Duration::ZERO,
        })
    }

    /// Adds the next document. Its bytes come back exactly, whatever they are.
    ///
    /// # Errors
    /// [`Error::Io`] from the output, [`Error::Capacity`] where a block is too large to be indexed.
    pub fn push_document(&mut self, path: &str, text: &[u8]) -> Result<()> {
        let mut rest = text;
        if self.text.len() + rest.len() > self.options.block_bytes && !self.doc_ends.is_empty() {
            self.write_block(false)?;
        }
        while rest.len() > self.options.block_bytes {
            let cut = cut_position(self.options.profile, rest, self.options.block_bytes);
            if cut == rest.len() {
                break;
            }
            self.add_part(path, &rest[..cut]);
            rest = &rest[cut..];
            self.write_block(true)?;
        }
        self.add_part(path, rest);
        Ok(())
    }

    /// Adds the documents of a segment that is built already, behind those pushed before.
    ///
    /// # Errors
    /// As for [`push_document`](Self::push_document); [`Error::InvalidArgument`] where the parts
    /// contradict one another.
    pub fn push_segment(&mut self, parts: &SegmentParts) -> Result<()> {
        if !self.doc_ends.is_empty() {
            self.write_block(false)?;
        }
        self.write_encoded()?;
        self.writer.write_segment(EncodedSegment::new(parts)?)
    }

    fn add_part(&mut self, path: &str, text: &[u8]) {
        self.text.extend_from_slice(text);
        self.doc_ends.push(self.text.len());
        self.paths.push(path);
    }

    /// Turns the block into a segment. `is_cut`: its last document goes on in the next one.
    fn write_block(&mut self, is_cut: bool) -> Result<()> {
        let len_bytes = self.text.len() as u64;
        let started = Instant::now();
        let block = tokenize_block(self.options.profile, &self.text, &self.doc_ends)?;
        // The text is not needed any more; give its memory to the builder.
        self.text = Vec::new();
        self.doc_ends.clear();
        self.tokenizing += started.elapsed();

        let started = Instant::now();
        let TokenizedBlock { dictionary, tokens, doc_offsets, num_word_tokens } = block;
        let (num_tokens, num_terminals) = (tokens.len() as u64, dictionary.len());
        let grammar = match self.options.builder {
            BuilderKind::Rounds => {
                let options = RoundsOptions { dedup: self.options.dedup };
                build_rounds(tokens, &doc_offsets, num_terminals, &options)?
            }
            BuilderKind::Sequitur => build_sequitur(&tokens, &doc_offsets, num_terminals)?,
        };
        self.grammar += started.elapsed();

        let parts = SegmentParts {
            dictionary,
            grammar,
            paths: std::mem::take(&mut self.paths),
            continues: std::mem::replace(&mut self.continues, is_cut),
            num_tokens,
            num_word_tokens,
            len_bytes,
        };
        self.write_encoded()?;
        if rayon::current_thread_index().is_some() {
            // A worker that waited for a thread that needs workers could wait for itself.
            return self.writer.write_segment(EncodedSegment::new(&parts)?);
        }
        self.encoding = Some(std::thread::spawn(move || EncodedSegment::new(&parts)));
        Ok(())
    }

    /// Waits for the segment that is being encoded, if one is, and writes it.
    fn write_encoded(&mut self) -> Result<()> {
        let started = Instant::now();
        if let Some(encoding) = self.encoding.take() {
            let encoded = encoding.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            self.writer.write_segment(encoded)?;
        }
        self.writing += started.elapsed();
        Ok(())
    }

    /// Writes the last block, `columns` (opaque Parquet bytes with one row a document) and the
    /// footer.
    ///
    /// # Errors
    /// As for [`push_document`](Self::push_document).
    pub fn finish(mut self, columns: Option<Vec<u8>>) -> Result<(W, IngestReport)> {
        if !self.doc_ends.is_empty() {
            self.write_block(false)?;
        }
        self.write_encoded()?;
        let started = Instant::now();
        let (out, footer) = self.writer.finish(columns.as_deref())?;
        let report = IngestReport {
            footer,
            file_len_bytes: out.written,
            tokenizing: self.tokenizing,
            grammar: self.grammar,
            writing: self.writing + started.elapsed(),
        };
        Ok((out.out, report))
    }
}

/// Counts the bytes that pass.
struct CountingWriter<W> {
    out: W,
    written: u64,
}

impl<W: Write> Write for CountingWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

/// Where to cut `text` near `limit` (below its length) so that both parts tokenise as they would
/// together: between two tokens. The end of the text if one token reaches that far.
fn cut_position(profile: TokenizerProfile, text: &[u8], limit: usize) -> usize {
    // An ASCII word byte before an ASCII blank is a border in every profile, and nearly every text
    // has one close by.
    let is_border =
        |i: &usize| text[*i].is_ascii_whitespace() && text[*i - 1].is_ascii_alphanumeric();
    if let Some(border) = (limit / 2 + 1..=limit).rev().find(is_border) {
        return border;
    }
    let mut window = limit.saturating_mul(2);
    loop {
        let visible = &text[..window.min(text.len())];
        let is_whole = visible.len() == text.len();
        if let Some(border) = last_token_end(profile, visible, limit, is_whole) {
            return border;
        }
        if is_whole {
            return text.len();
        }
        window = window.saturating_mul(2);
    }
}

/// The last end of a token at or before `limit`, else the first one after it. Where `is_whole` is
/// false, `visible` goes on: its end may cut a character, and what follows may join the last tokens
/// (`can.` + `t` in UAX #29), so a border counts only with two more token ends behind it.
fn last_token_end(
    profile: TokenizerProfile,
    visible: &[u8],
    limit: usize,
    is_whole: bool,
) -> Option<usize> {
    let num_unsure = if is_whole { 1 } else { 3 };
    let (mut end, mut best) = (0, None);
    let mut unsure = VecDeque::with_capacity(num_unsure + 1);
    for_each_token(profile, visible, |token| {
        end += token.bytes.len();
        unsure.push_back(end);
        if unsure.len() > num_unsure
            && let Some(sure) = unsure.pop_front()
            && (sure <= limit || best.is_none())
        {
            best = Some(sure);
        }
    });
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayon::prelude::*;

    use super::*;

    fn tokens(profile: TokenizerProfile, text: &[u8]) -> Vec<Vec<u8>> {
        let mut tokens = Vec::new();
        for_each_token(profile, text, |token| tokens.push(token.bytes.to_vec()));
        tokens
    }

    #[test]
    fn workers_may_build() {
        let build = |_| {
            let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
            builder.push_document("a", b"to be or not to be").unwrap();
            builder.finish(None).unwrap().0
        };
        let built: Vec<Vec<u8>> = (0..64).into_par_iter().map(build).collect();
        assert!(built.iter().all(|file| *file == built[0]));
    }

    proptest! {
        #[test]
        fn a_cut_leaves_the_tokens_as_they_were(
            text in prop_oneof!["[a-c ._é\n]{2,60}", "[a ]{2,40}", "[\u{1F1E6}-\u{1F1E8}a' ]{2,20}"],
            limit in 1usize..30,
        ) {
            let text = text.as_bytes();
            prop_assume!(limit < text.len());
            for profile in
                [TokenizerProfile::Word, TokenizerProfile::Uax29, TokenizerProfile::Whitespace]
            {
                let cut = cut_position(profile, text, limit);
                prop_assert!(cut > 0);
                let mut parts = tokens(profile, &text[..cut]);
                parts.extend(tokens(profile, &text[cut..]));
                prop_assert_eq!(parts, tokens(profile, text));
            }
        }
    }
}
