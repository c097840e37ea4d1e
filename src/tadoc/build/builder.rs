//! Builder that turns documents into a corpus file, in memory bounded by the block size.
//!
//! ```text
//! push_document ─▶ block of text ─▶ tokens ─▶ grammar ─▶ segment sections ─▶ out
//!                  block_bytes  └──── blocks_at_once of them, of their ────┘
//!                                     pieces as soon as these are complete
//! ```
//!
//! The input is cut into blocks at document borders, and a document larger than a block between two
//! tokens ([`find_cut`]). Blocks depend only on the input and on `block_bytes`. So the file is the same,
//! byte for byte, for any number of threads, and for documents in one or several parts.
//!
//! The memory needed is at worst about 13 bytes for each byte of the block (one token per byte: 1 for the text, 9 for
//! the grammar builder, the rest for counts). Ordinary text needs 4, plus 2 for the block that is filled meanwhile.
//! Measured for the whole process: 3 to 6 for one block at a time, 3 to 5 for each further block. A document needs no
//! more memory than its block, unless one token is longer.

use std::io::Write;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::at_once::BlocksAtOnce;
use super::pieces::{PIECE_BYTES, Piece, Pieces, reserve};
use super::{Block, Cut, IngestOptions, Made, Maker, RemoteBuilder, find_cut};
use crate::error::{Error, Result};
use crate::format::{CorpusWriter, EncodedSegment, FileFooter, SegmentContents, SegmentLayout};

/// Result of [`CorpusBuilder::finish`]: the footer and the time of each step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IngestReport {
    /// Footer of the file: documents, bytes, tokens and elements of each segment.
    pub footer: FileFooter,
    /// Length of the file in bytes.
    pub file_len_bytes: u64,
    /// Time of tokenizing and of building dictionaries. If several blocks are built at a time, it
    /// is the sum over all of them.
    pub tokenizing: Duration,
    /// Time of building grammars, summed in the same way.
    pub grammar: Duration,
    /// Time spent waiting for sections to be encoded and written. It includes the last block, and
    /// for each other block the time beyond the grammar of the next block.
    pub writing: Duration,
    /// Number of segments that a [`RemoteBuilder`] built. They have no part in the times of tokens and grammars.
    pub num_remote: u64,
}

/// Greatest number of bytes of the path of a document that is added.
pub const MAX_PATH_BYTES: usize = 64 << 10;

/// Builder that collects documents and writes a segment when a block is full.
///
/// ```
/// use tadoc::segment::Corpus;
/// use tadoc::build::{CorpusBuilder, IngestOptions};
/// use tadoc::format::OpenLimits;
///
/// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
/// builder.push_document("a.txt", b"to be or not to be")?;
/// let (file, report) = builder.finish(None)?;
/// assert_eq!(report.footer.num_docs(), 1);
///
/// let (_, corpus) = Corpus::from_bytes("memory", &file, &OpenLimits::default())?;
/// assert_eq!(corpus.num_docs(), 1);
/// # Ok::<(), tadoc::Error>(())
/// ```
pub struct CorpusBuilder<W: Write> {
    writer: CorpusWriter<CountingWriter<W>>,
    maker: Maker,
    /// Complete pieces of the block that is being filled.
    pieces: Pieces,
    /// Greatest size of a piece.
    piece_bytes: usize,
    /// Text of the piece that is being filled. What stands behind its last document end belongs to
    /// the open document.
    text: Vec<u8>,
    /// The rest of this piece. Its text is still empty.
    block: Block,
    /// True if the last part of the open document is still to come.
    is_open: bool,
    /// Length of the block's text at which it must be checked again, as far as is known.
    full_bytes: usize,
    /// Previous block, while it is encoded.
    encoding: Option<JoinHandle<Result<EncodedSegment>>>,
    /// Blocks under construction, if several are built at a time.
    at_once: Option<BlocksAtOnce>,
    /// Number of blocks that are built here at a time.
    max_blocks: usize,
    remote: Option<Arc<dyn RemoteBuilder>>,
    num_remote: u64,
    tokenizing: Duration,
    grammar: Duration,
    writing: Duration,
}

impl<W: Write> CorpusBuilder<W> {
    /// Starts a file on `out`. The caller makes it appear atomically (temporary file, multipart
    /// upload) after [`finish`](Self::finish) has returned.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `block_bytes` is 0, [`Error::Io`] from `out`.
    pub fn new(out: W, options: IngestOptions) -> Result<Self> {
        if options.block_bytes == 0 {
            return Err(Error::InvalidArgument { name: "block_bytes", got: "0".into(), allowed: "1 or more".into() });
        }
        let out = CountingWriter { out, written: 0 };
        Ok(Self {
            writer: CorpusWriter::new(out, options.profile, &options.builder.to_string())?,
            maker: Maker { options },
            pieces: Pieces::default(),
            piece_bytes: if options.layout == SegmentLayout::Small { usize::MAX } else { PIECE_BYTES },
            text: Vec::new(),
            block: Block::default(),
            is_open: false,
            full_bytes: options.block_bytes.saturating_add(1),
            encoding: None,
            at_once: BlocksAtOnce::new(1, &options, None),
            max_blocks: 1,
            remote: None,
            num_remote: 0,
            tokenizing: Duration::ZERO,
            grammar: Duration::ZERO,
            writing: Duration::ZERO,
        })
    }

    /// Sets the number of blocks that are built at a time, 1 by default. They share the threads,
    /// and each needs its own memory. Where blocks become several segments, twice as many of these are built at a
    /// time, which have at most the bytes of the blocks. The file stays the same. Call this before documents are added.
    #[must_use]
    pub fn with_blocks_at_once(mut self, max_blocks: usize) -> Self {
        self.equip(max_blocks);
        self
    }

    /// Lets `remote` build the segments. What it does not build is built here, as many blocks at a time as
    /// [`with_blocks_at_once`](Self::with_blocks_at_once) says. The file stays the same. Call this before documents are
    /// added.
    #[must_use]
    pub fn with_remote(mut self, remote: Arc<dyn RemoteBuilder>) -> Self {
        self.remote = Some(remote);
        self.equip(self.max_blocks);
        self
    }

    /// Sets the greatest size of a piece, for tests.
    #[cfg(test)]
    pub(super) fn with_piece_bytes(mut self, piece_bytes: usize) -> Self {
        self.piece_bytes = piece_bytes;
        self
    }

    /// Ends the block here, for tests.
    #[cfg(test)]
    pub(super) fn end_block(&mut self) {
        self.write_last_block().unwrap();
    }

    fn equip(&mut self, max_blocks: usize) {
        self.max_blocks = max_blocks;
        self.at_once = BlocksAtOnce::new(max_blocks, &self.maker.options, self.remote.as_ref());
    }

    /// Changes the number of blocks that are built at a time from now on. Blocks under construction
    /// are written first. This helps a caller who finds that memory is short.
    ///
    /// # Errors
    /// Same as [`push_document`](Self::push_document).
    pub fn set_blocks_at_once(&mut self, max_blocks: usize) -> Result<()> {
        self.pieces.begin_anew();
        self.write_encoded()?;
        self.equip(max_blocks);
        Ok(())
    }

    /// Adds the next document, or the last part of the open document. Any bytes are allowed and are
    /// returned exactly.
    ///
    /// # Errors
    /// [`Error::Io`] if the output fails or memory for a block cannot be allocated,
    /// [`Error::Capacity`] if a block is too large to be indexed, or a path is longer than
    /// [`MAX_PATH_BYTES`].
    pub fn push_document(&mut self, path: &str, text: &[u8]) -> Result<()> {
        self.push_part(path, text, true)
    }

    /// Adds the next part of a document, which need not be in memory as a whole. `is_last` ends the
    /// document. The file does not depend on where a document is divided. All parts must have the
    /// same `path`.
    ///
    /// ```
    /// use tadoc::build::{CorpusBuilder, IngestOptions};
    ///
    /// let mut whole = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// whole.push_document("a.txt", b"to be or not to be")?;
    ///
    /// let mut parts = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// parts.push_part("a.txt", b"to be or n", false)?;
    /// parts.push_part("a.txt", b"ot to be", true)?;
    /// assert_eq!(parts.finish(None)?.0, whole.finish(None)?.0);
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    ///
    /// # Errors
    /// Same as [`push_document`](Self::push_document).
    pub fn push_part(&mut self, path: &str, part: &[u8], is_last: bool) -> Result<()> {
        check_path(path)?;
        self.is_open = true;
        let mut rest = part;
        loop {
            let room = self.full_bytes.saturating_sub(self.len_bytes());
            let (now, later) = rest.split_at(room.min(rest.len()));
            append(&mut self.text, now)?;
            rest = later;
            self.close_piece()?;
            let is_end = is_last && rest.is_empty();
            if !self.write_what_is_full(path, is_end)? && rest.is_empty() {
                break;
            }
        }
        if is_last {
            self.end_part(path);
            self.is_open = false;
            self.full_bytes = self.maker.options.block_bytes.saturating_add(1);
        }
        Ok(())
    }

    /// Returns the bytes of the block that is being filled.
    fn len_bytes(&self) -> usize {
        self.pieces.len_bytes() + self.text.len()
    }

    /// Closes the piece that is being filled if the open document does not fit into it and begins the next one. Begins
    /// to build pieces before.
    fn close_piece(&mut self) -> Result<()> {
        let start = self.block.doc_ends.last().copied().unwrap_or_default();
        if self.text.len() <= self.piece_bytes || start == 0 {
            return Ok(());
        }
        let mut open = split_off(&mut self.text, start)?;
        reserve(&mut open, self.piece_bytes)?;
        let piece = self.take_piece(Block::default(), open);
        self.pieces.close(piece, self.maker.options.block_bytes);
        while self.builds_beside()
            && let Some(piece) = self.pieces.next_early()
        {
            self.begin(piece)?;
        }
        Ok(())
    }

    /// Returns the piece that is being filled. The next one begins as `next` with `text`.
    fn take_piece(&mut self, next: Block, text: Vec<u8>) -> Block {
        let mut piece = std::mem::replace(&mut self.block, next);
        piece.text = std::mem::replace(&mut self.text, text).into();
        piece
    }

    /// Writes the documents before the open one if both do not fit into one block. Otherwise writes
    /// as much of the open document as one block holds. Returns false if nothing is written: the
    /// text fits, it cannot be cut, or more text must be seen first. `is_end` is true if the
    /// document has no more text.
    fn write_what_is_full(&mut self, path: &str, is_end: bool) -> Result<bool> {
        let IngestOptions { block_bytes, profile, .. } = self.maker.options;
        let len = self.len_bytes();
        if len <= block_bytes || len < self.full_bytes && !is_end {
            return Ok(false);
        }
        let start = self.block.doc_ends.last().copied();
        if start.is_some() || !self.pieces.is_empty() {
            let open = split_off(&mut self.text, start.unwrap_or_default())?;
            self.write_block(false, open)?;
            return Ok(true);
        }
        match find_cut(profile, &self.text, block_bytes, is_end) {
            Cut::At(cut) => {
                let rest = split_off(&mut self.text, cut)?;
                self.end_part(path);
                self.write_block(true, rest)?;
                Ok(true)
            }
            Cut::Nowhere => Ok(false),
            Cut::Unseen(len_bytes) => {
                self.full_bytes = len_bytes;
                Ok(false)
            }
        }
    }

    /// Appends the documents of a segment that is already built.
    ///
    /// # Errors
    /// Same as [`push_document`](Self::push_document), and [`Error::InvalidArgument`] if the parts
    /// contradict each other.
    pub fn push_segment(&mut self, parts: &SegmentContents) -> Result<()> {
        self.write_last_block()?;
        self.write_encoded()?;
        self.writer.write_segment(EncodedSegment::new(parts, self.maker.options.layout)?)
    }

    fn end_part(&mut self, path: &str) {
        self.block.doc_ends.push(self.text.len());
        self.block.paths.push(path);
    }

    /// Writes the remaining complete documents.
    fn write_last_block(&mut self) -> Result<()> {
        if self.is_open {
            return Err(Error::InvalidArgument {
                name: "is_last",
                got: "no part of the last document with it".into(),
                allowed: "true for the last part of each document".into(),
            });
        }
        let is_empty = self.block.doc_ends.is_empty() && self.pieces.is_empty();
        if is_empty { Ok(()) } else { self.write_block(false, Vec::new()) }
    }

    /// Turns the block into a segment, or in the layout `indexed` into one for each of its [`Pieces`].
    /// The next block begins with `text`. `is_cut` is true if the last document continues there.
    fn write_block(&mut self, is_cut: bool, text: Vec<u8>) -> Result<()> {
        let last = self.take_piece(Block { continues: is_cut, ..Block::default() }, text);
        self.full_bytes = self.maker.options.block_bytes.saturating_add(1);
        let pieces = std::mem::take(&mut self.pieces);
        pieces.end(last)?.into_iter().try_for_each(|piece| self.write_segment_from(piece))
    }

    /// Returns true if several texts are built at a time.
    fn builds_beside(&self) -> bool {
        // A worker must not wait for a thread that needs workers: it could wait for itself.
        self.at_once.is_some() && rayon::current_thread_index().is_none()
    }

    /// Turns all documents of `piece` into a segment.
    fn write_segment_from(&mut self, piece: Piece) -> Result<()> {
        if self.builds_beside() {
            return self.begin(piece);
        }
        let made = self.maker.parts(piece.block)?;
        let parts = self.count(made);
        let layout = self.maker.options.layout;
        self.write_encoded()?;
        if rayon::current_thread_index().is_some() {
            return self.writer.write_segment(EncodedSegment::new(&parts, layout)?);
        }
        self.encoding = Some(std::thread::spawn(move || EncodedSegment::new(&parts, layout)));
        Ok(())
    }

    /// Starts to build `piece` beside others. Waits while many are in line for a place.
    fn begin(&mut self, piece: Piece) -> Result<()> {
        while self.at_once.as_ref().is_some_and(BlocksAtOnce::is_due) {
            self.write_oldest()?;
        }
        if let Some(at_once) = &mut self.at_once {
            at_once.begin(piece, self.maker.clone());
        }
        Ok(())
    }

    /// Waits for the oldest block under construction and writes it. Returns false if there is none.
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

    /// Adds the times of a segment to the totals.
    fn count<T>(&mut self, made: Made<T>) -> T {
        self.tokenizing += made.tokenizing;
        self.grammar += made.grammar;
        self.num_remote += u64::from(made.is_remote);
        made.segment
    }

    /// Waits for all segments under construction and writes them.
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

    /// Writes the last block, `columns` (opaque Parquet bytes with one row for each document) and
    /// the footer.
    ///
    /// # Errors
    /// Same as [`push_document`](Self::push_document).
    pub fn finish(mut self, columns: Option<Vec<u8>>) -> Result<(W, IngestReport)> {
        self.at_once.iter_mut().for_each(BlocksAtOnce::end);
        self.write_last_block()?;
        self.write_encoded()?;
        let started = Instant::now();
        let (out, footer) = self.writer.finish(columns.as_deref())?;
        let report = IngestReport {
            footer,
            file_len_bytes: out.written,
            tokenizing: self.tokenizing,
            grammar: self.grammar,
            writing: self.writing + started.elapsed(),
            num_remote: self.num_remote,
        };
        Ok((out.out, report))
    }
}

/// Writer that counts the bytes written to it.
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

fn check_path(path: &str) -> Result<()> {
    if path.len() <= MAX_PATH_BYTES {
        return Ok(());
    }
    Err(Error::Capacity {
        what: "the path of a document, in bytes",
        requested: path.len() as u64,
        limit: MAX_PATH_BYTES as u64,
        knob: "nothing (shorten it)",
    })
}

/// Appends `part` to `text`. Fails without a panic if memory cannot be allocated.
fn append(text: &mut Vec<u8>, part: &[u8]) -> Result<()> {
    reserve(text, part.len())?;
    text.extend_from_slice(part);
    Ok(())
}

/// Removes the bytes from `at` on and returns them.
fn split_off(text: &mut Vec<u8>, at: usize) -> Result<Vec<u8>> {
    if at == 0 {
        return Ok(std::mem::take(text));
    }
    let mut behind = Vec::new();
    append(&mut behind, &text[at..])?;
    text.truncate(at);
    Ok(behind)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rayon::prelude::*;

    use super::*;
    use crate::text::{MAX_TOKEN_BYTES, TokenizerProfile};

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
            let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap().with_blocks_at_once(max_blocks);
            for doc in 0..40 {
                // Some documents are longer than a block.
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
    fn the_layout_indexed_has_smaller_segments_where_documents_share_little() {
        let docs = |step: usize| {
            let line = move |at: usize| format!("the line with the number {at:07}\n");
            (0..2).map(move |doc| (0..270_000).map(|at| line(at + doc * step)).collect::<String>())
        };
        let num_segments = |layout, step| {
            let options = IngestOptions { layout, ..IngestOptions::default() };
            let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
            for (path, text) in ["a", "b"].iter().zip(docs(step)) {
                assert!(2 * text.len() > PIECE_BYTES);
                builder.push_document(path, text.as_bytes()).unwrap();
            }
            builder.finish(None).unwrap().1.footer.segments.len()
        };
        assert_eq!(num_segments(SegmentLayout::INDEXED, 270_000), 2);
        assert_eq!(num_segments(SegmentLayout::INDEXED, 1), 1);
        assert_eq!(num_segments(SegmentLayout::Small, 270_000), 1);
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

    /// Fills blocks by the rule for whole documents. It is the oracle for
    /// [`CorpusBuilder::push_part`].
    fn push_whole(builder: &mut CorpusBuilder<Vec<u8>>, path: &str, text: &[u8]) {
        let IngestOptions { block_bytes, profile, .. } = builder.maker.options;
        let mut rest = text;
        let is_full = builder.len_bytes() + rest.len() > block_bytes;
        if is_full && !builder.block.doc_ends.is_empty() {
            builder.write_block(false, Vec::new()).unwrap();
        }
        while rest.len() > block_bytes {
            let Cut::At(cut) = find_cut(profile, rest, block_bytes, true) else { break };
            builder.text.extend_from_slice(&rest[..cut]);
            builder.end_part(path);
            builder.write_block(true, Vec::new()).unwrap();
            rest = &rest[cut..];
        }
        builder.text.extend_from_slice(rest);
        builder.end_part(path);
    }

    /// Builds three files: by the oracle, from whole documents, and from parts with lengths from
    /// `lens`.
    fn files(options: IngestOptions, docs: &[Vec<u8>], lens: &[usize]) -> [Vec<u8>; 3] {
        let builder = || CorpusBuilder::new(Vec::new(), options).unwrap();
        let mut oracle = builder();
        let mut whole = builder();
        let mut parts = builder();
        let mut lens = lens.iter().copied().cycle();
        for (idx, doc) in docs.iter().enumerate() {
            let path = idx.to_string();
            push_whole(&mut oracle, &path, doc);
            whole.push_document(&path, doc).unwrap();
            let mut rest = doc.as_slice();
            loop {
                let (now, later) = rest.split_at(lens.next().unwrap().min(rest.len()));
                rest = later;
                // The end may come with text or with an empty part.
                let is_last = rest.is_empty() && (now.len() % 2 == 0 || now.is_empty());
                parts.push_part(&path, now, is_last).unwrap();
                if is_last {
                    break;
                }
            }
        }
        [oracle, whole, parts].map(|builder| builder.finish(None).unwrap().0)
    }

    fn any_doc() -> impl Strategy<Value = Vec<u8>> {
        let text = prop_oneof![
            "[a-c ._é\n]{0,60}",
            "[a ]{0,40}",
            "a{0,40}",
            "[日本語]{0,20}",
            "[\u{1F1E6}-\u{1F1E8}a' ]{0,20}",
        ];
        prop_oneof![text.prop_map(String::into_bytes), proptest::collection::vec(any::<u8>(), 0..50),]
    }

    proptest! {
        // Each case builds nine files.
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn a_document_in_parts_gives_the_same_file(
            docs in proptest::collection::vec(any_doc(), 0..12),
            lens in proptest::collection::vec(0usize..40, 1..12),
            block_bytes in 1usize..60,
        ) {
            prop_assume!(lens.iter().any(|&len| len > 0));
            for profile in TokenizerProfile::ALL {
                let options = IngestOptions { profile, block_bytes, ..IngestOptions::default() };
                let [oracle, whole, parts] = files(options, &docs, &lens);
                prop_assert!(whole == oracle && parts == oracle);
            }
        }
    }

    #[test]
    fn long_documents_in_parts_give_the_same_file() {
        let no_border = "日本語。".repeat(50_000).into_bytes();
        let one_word = vec![b'a'; 5 * MAX_TOKEN_BYTES + 7];
        let ordinary = b"to be, or not to be: that is the question. ".repeat(9_000);
        let docs = [one_word, b"short".to_vec(), no_border, Vec::new(), vec![0; 300_000], ordinary];
        let profiles = TokenizerProfile::ALL;
        for (profile, block_bytes) in profiles.into_iter().zip([70_000, 100_000, 1 << 17, 80_000]) {
            let options = IngestOptions { profile, block_bytes, ..IngestOptions::default() };
            let [oracle, whole, parts] = files(options, &docs, &[4_096, 65_537, 1, 300_000]);
            assert!(whole == oracle && parts == oracle, "{profile}");
        }
    }

    #[test]
    fn what_is_held_is_bounded_by_the_block() {
        let options = IngestOptions { block_bytes: 1 << 18, ..IngestOptions::default() };
        let part = [b"to be or not ".repeat(1000), "日本語。".repeat(1000).into_bytes()].concat();
        let mut builder = CorpusBuilder::new(std::io::sink(), options).unwrap();
        for _ in 0..200 {
            builder.push_part("a", &part, false).unwrap();
            assert!(builder.text.len() <= 2 * options.block_bytes);
        }
        builder.push_document("a", b"").unwrap();
        let (_, report) = builder.finish(None).unwrap();
        assert_eq!(report.footer.num_docs(), 1);
        assert_eq!(report.footer.len_bytes(), 200 * part.len() as u64);
    }

    #[test]
    fn a_document_without_its_last_part_is_refused() {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        builder.push_part("a", b"to be", false).unwrap();
        assert!(matches!(builder.finish(None), Err(Error::InvalidArgument { .. })));
    }
}
