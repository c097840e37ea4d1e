//! Documents in, corpus file out, in memory bounded by the block and not by the input.
//!
//! ```text
//! push_document ─▶ block of text ─▶ tokens ─▶ grammar ─▶ segment sections ─▶ out
//!                  block_bytes      (all threads)        (two threads, while the
//!                                                         next block is built)
//!                              └─────── blocks_at_once of them ────────┘
//! ```
//!
//! Input is cut into blocks at document borders; each becomes one segment with its own dictionary.
//! A document larger than a block is cut between two tokens, and the next segment says that it
//! continues. Blocks depend on the input and `block_bytes` alone, so the file is the same, byte for
//! byte, for any number of threads.
//!
//! One block at a time leaves most of many cores idle: coding is serial for the most part, and so is a
//! third of a grammar's time on 16 threads. Where several are built at once, each has its share of the
//! threads from its text to its sections, and a device runs the rounds of one while others do the rest.
//!
//! Memory is about 13 bytes for each byte of the block at worst (a token a byte: 1 for the text, 9
//! for the builder, the rest for counts), on ordinary text 4, and 2 for the block that is filled meanwhile
//! (measured, all of a process: 3 to 6 for one block at a time, 3 to 5 for each more).

use std::collections::VecDeque;
use std::io::Write;
use std::panic::resume_unwind;
use std::str::FromStr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::blocks::{Block, BlocksAtOnce, Made, Maker};
use super::{CorpusWriter, EncodedSegment, FileFooter, SegmentParts};
use crate::error::{Error, Result};
use crate::grammar::{Dedup, RoundsEngine};
use crate::text::{TokenizerProfile, for_each_token};

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
    /// Time spent cutting text into tokens and making dictionaries; where several blocks are built at
    /// once, of all of them together.
    pub tokenizing: Duration,
    /// Time spent building grammars, likewise.
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
    maker: Maker,
    block: Block,
    /// The block before, while it is encoded.
    encoding: Option<JoinHandle<Result<EncodedSegment>>>,
    /// Where several are built at once.
    at_once: Option<BlocksAtOnce>,
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
            maker: Maker { options, engine: None },
            block: Block::default(),
            encoding: None,
            at_once: None,
            tokenizing: Duration::ZERO,
            grammar: Duration::ZERO,
            writing: Duration::ZERO,
        })
    }

    /// The same, whose grammars' rounds `engine` runs where it can. The file is the same.
    #[must_use]
    pub fn with_engine(mut self, engine: Arc<dyn RoundsEngine>) -> Self {
        self.maker.engine = Some(engine);
        self
    }

    /// The same, which builds up to `max_blocks` blocks at a time, each with its share of the threads, and
    /// takes memory for as many. The file is the same. 1 unless chosen otherwise; to be called first.
    #[must_use]
    pub fn with_blocks_at_once(mut self, max_blocks: usize) -> Self {
        self.at_once = (max_blocks > 1).then(|| BlocksAtOnce::new(max_blocks));
        self
    }

    /// Builds up to `max_blocks` blocks at a time from now on, once those that are being built are
    /// written: for whoever finds that memory is short.
    ///
    /// # Errors
    /// As for [`push_document`](Self::push_document).
    pub fn set_blocks_at_once(&mut self, max_blocks: usize) -> Result<()> {
        self.write_encoded()?;
        self.at_once = (max_blocks > 1).then(|| BlocksAtOnce::new(max_blocks));
        Ok(())
    }

    /// Adds the next document. Its bytes come back exactly, whatever they are.
    ///
    /// # Errors
    /// [`Error::Io`] from the output, [`Error::Capacity`] where a block is too large to be indexed.
    pub fn push_document(&mut self, path: &str, text: &[u8]) -> Result<()> {
        let IngestOptions { block_bytes, profile, .. } = self.maker.options;
        let mut rest = text;
        if self.block.text.len() + rest.len() > block_bytes && !self.block.doc_ends.is_empty() {
            self.write_block(false)?;
        }
        while rest.len() > block_bytes {
            let cut = cut_position(profile, rest, block_bytes);
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
        if !self.block.doc_ends.is_empty() {
            self.write_block(false)?;
        }
        self.write_encoded()?;
        self.writer.write_segment(EncodedSegment::new(parts)?)
    }

    fn add_part(&mut self, path: &str, text: &[u8]) {
        self.block.text.extend_from_slice(text);
        self.block.doc_ends.push(self.block.text.len());
        self.block.paths.push(path);
    }

    /// Turns the block into a segment. `is_cut`: its last document goes on in the next one.
    fn write_block(&mut self, is_cut: bool) -> Result<()> {
        let next = Block { continues: is_cut, ..Block::default() };
        let block = std::mem::replace(&mut self.block, next);
        // A worker that waited for a thread that needs workers could wait for itself.
        let is_worker = rayon::current_thread_index().is_some();
        if self.at_once.is_some() && !is_worker {
            return self.begin(block);
        }
        let made = self.maker.parts(block)?;
        let parts = self.count(made);
        self.write_encoded()?;
        if is_worker {
            return self.writer.write_segment(EncodedSegment::new(&parts)?);
        }
        self.encoding = Some(std::thread::spawn(move || EncodedSegment::new(&parts)));
        Ok(())
    }

    /// Begins to build `block` beside others, once there is room.
    fn begin(&mut self, block: Block) -> Result<()> {
        while self.at_once.as_ref().is_some_and(BlocksAtOnce::is_full) {
            self.write_oldest()?;
        }
        if let Some(at_once) = &mut self.at_once {
            at_once.begin(block, self.maker.clone());
        }
        Ok(())
    }

    /// Waits for the oldest of the blocks that are built at once, and writes it; false where there is
    /// none.
    fn write_oldest(&mut self) -> Result<bool> {
        let started = Instant::now();
        let Some(made) = self.at_once.as_mut().and_then(BlocksAtOnce::take_oldest) else {
            return Ok(false);
        };
        let segment = self.count(made?);
        self.writer.write_segment(segment)?;
        self.writing += started.elapsed();
        Ok(true)
    }

    /// Adds up what a segment took.
    fn count<T>(&mut self, made: Made<T>) -> T {
        self.tokenizing += made.tokenizing;
        self.grammar += made.grammar;
        made.segment
    }

    /// Waits for all segments that are being built or encoded, and writes them.
    fn write_encoded(&mut self) -> Result<()> {
        while self.write_oldest()? {}
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
        if !self.block.doc_ends.is_empty() {
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

    #[test]
    fn blocks_at_once_give_the_same_file() {
        let options = IngestOptions { block_bytes: 200, ..IngestOptions::default() };
        let file = |max_blocks| {
            let mut builder =
                CorpusBuilder::new(Vec::new(), options).unwrap().with_blocks_at_once(max_blocks);
            for doc in 0..40 {
                // Some are cut.
                let text = format!("to be or not to be {doc} ").repeat(1 + doc % 20);
                builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
            }
            builder.finish(None).unwrap()
        };
        let (expected, report) = file(1);
        assert!(report.footer.segments.len() > 20);
        for max_blocks in [2, 3, 16, 100] {
            let (got, report) = file(max_blocks);
            assert!(got == expected, "{max_blocks}");
            assert!(report.tokenizing > Duration::ZERO && report.grammar > Duration::ZERO);
        }
    }

    #[test]
    fn blocks_at_once_may_change_on_the_way() {
        let options = IngestOptions { block_bytes: 200, ..IngestOptions::default() };
        let file = |changes: &[(usize, usize)]| {
            let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
            for doc in 0..40 {
                for (_, max_blocks) in changes.iter().filter(|(at, _)| *at == doc) {
                    builder.set_blocks_at_once(*max_blocks).unwrap();
                }
                let text = format!("to be or not to be {doc} ").repeat(1 + doc % 20);
                builder.push_document(&doc.to_string(), text.as_bytes()).unwrap();
            }
            builder.finish(None).unwrap().0
        };
        let expected = file(&[]);
        for changes in [&[(0, 4), (13, 2), (30, 1)][..], &[(3, 16), (17, 1), (18, 3)]] {
            assert!(file(changes) == expected, "{changes:?}");
        }
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
