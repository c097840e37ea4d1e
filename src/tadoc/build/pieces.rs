//! Pieces of the block that is being filled, and the choice between them and the whole block.
//!
//! ```text
//! block     │ doc doc doc │ doc doc │ doc ▒▒▒        pieces of up to 16 MiB, whole documents each; the last is open
//! begun       ■             ■                        while few lines are shared, before the block is complete
//!
//! lines       a b c a       d e       f a g          a is repeated in another piece: few bytes are
//! segments  │      1      │    2    │      3      │  … one segment for each piece
//!
//! lines       a b c         a b d     a b d e        versions of a text: most bytes are
//! segments  │                  1                  │  … one segment for the block, and what began is void
//! ```
//!
//! With smaller segments a statement that looks for a word or for a document opens less text, on more
//! threads. But what two of them share is stored twice. So the lines of the block are hashed, in one
//! pass, and the bytes of lines that stand in an earlier piece are added up, of one hash in eight. A
//! line that repeats one of the same piece costs nothing. The block is divided if the shared bytes are
//! few. Ends of sentences end a line, too, for text with long lines.
//!
//! Sources of crates share about 1 % and become a little smaller. Many versions of a source tree
//! share 80 % and would become five times as large.
//!
//! The choice depends on the whole block. A piece begins sooner, when the one behind it is complete and the lines so
//! far share little. So the cores work while the block is read. Versions that lie side by side are seen before
//! anything begins; where it turns out later, the begun pieces stop at their next step.

use std::hash::Hasher;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rustc_hash::{FxHashMap, FxHasher};

use super::Block;
use crate::error::{Error, Result};

/// Greatest size of the text of a piece, unless one document is larger.
pub(super) const PIECE_BYTES: usize = 16 << 20;
/// Shorter lines are repeated everywhere and cost little.
const MIN_LINE_BYTES: usize = 24;
/// Part of the text of a block that its pieces may share.
const SHARED_PART: usize = 32;
/// Bits that are zero in the hash of a line that is counted. The others would take as long as the
/// tokens.
const SAMPLED_BITS: u32 = 3;

/// Decision about a text, which becomes a segment or does not.
#[derive(Debug)]
pub(super) struct Fate(AtomicU8);

impl Fate {
    const OPEN: u8 = 0;
    const KEPT: u8 = 1;
    const VOID: u8 = 2;

    /// Makes the fate of a text that becomes a segment.
    fn kept() -> Arc<Self> {
        Arc::new(Self(AtomicU8::new(Self::KEPT)))
    }

    /// Makes a fate that is decided later.
    fn open() -> Arc<Self> {
        Arc::new(Self(AtomicU8::new(Self::OPEN)))
    }

    /// Decides that the text becomes a segment.
    fn keep(&self) {
        self.0.store(Self::KEPT, Ordering::Relaxed);
    }

    /// Decides that the text becomes no segment.
    pub(super) fn void(&self) {
        self.0.store(Self::VOID, Ordering::Relaxed);
    }

    /// Returns true if the text becomes no segment.
    pub(super) fn is_void(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::VOID
    }

    /// Returns true if it is not decided.
    pub(super) fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) == Self::OPEN
    }
}

/// A block or a piece of one, which becomes a segment unless it is void.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) block: Arc<Block>,
    pub(super) fate: Arc<Fate>,
}

impl Piece {
    /// Makes a piece that becomes a segment.
    fn kept(block: Block) -> Self {
        Self { block: Arc::new(block), fate: Fate::kept() }
    }
}

/// The complete pieces of the block that is being filled.
#[derive(Debug)]
pub(super) struct Pieces {
    closed: Vec<Arc<Block>>,
    len_bytes: usize,
    lines: SharedLines,
    /// Number of pieces that have begun.
    num_begun: usize,
    /// Fate of those.
    fate: Arc<Fate>,
}

impl Default for Pieces {
    fn default() -> Self {
        let lines = SharedLines::default();
        Self { closed: Vec::new(), len_bytes: 0, lines, num_begun: 0, fate: Fate::open() }
    }
}

impl Pieces {
    /// Returns the bytes of all pieces.
    pub(super) fn len_bytes(&self) -> usize {
        self.len_bytes
    }

    /// Returns true if there is no piece.
    pub(super) fn is_empty(&self) -> bool {
        self.closed.is_empty()
    }

    /// Adds a piece. The block has at most `block_bytes`.
    pub(super) fn close(&mut self, piece: Block, block_bytes: usize) {
        self.lines.add(&piece.text);
        self.len_bytes += piece.text.len();
        self.closed.push(Arc::new(piece));
        if self.lines.are_many_in(block_bytes.max(self.len_bytes)) {
            self.fate.void();
        }
    }

    /// Returns the next piece that begins before the block is complete, if there is one.
    pub(super) fn next_early(&mut self) -> Option<Piece> {
        let has_next = self.num_begun + 1 < self.closed.len();
        if !has_next || self.fate.is_void() || self.lines.are_many_in(self.len_bytes) {
            return None;
        }
        let block = Arc::clone(&self.closed[self.num_begun]);
        self.num_begun += 1;
        Some(Piece { block, fate: Arc::clone(&self.fate) })
    }

    /// Makes the begun pieces void. They begin anew.
    pub(super) fn begin_anew(&mut self) {
        self.fate.void();
        self.fate = Fate::open();
        self.num_begun = 0;
    }

    /// Ends the block with its last piece. Returns what must begin: the pieces that have not, or the whole block.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no memory for the whole block.
    pub(super) fn end(mut self, last: Block) -> Result<Vec<Piece>> {
        if self.closed.is_empty() {
            return Ok(vec![Piece::kept(last)]);
        }
        // The last document may have gone to the next block.
        if !last.doc_ends.is_empty() {
            self.close(last, 0);
        }
        if self.closed.len() > 1 && self.lines.are_many_in(self.len_bytes) {
            self.fate.void();
            return Ok(vec![Piece::kept(joined(self.closed)?)]);
        }
        self.fate.keep();
        let rest = self.closed.split_off(self.num_begun).into_iter();
        Ok(rest.map(|block| Piece { block, fate: Arc::clone(&self.fate) }).collect())
    }
}

/// Joins the pieces of a block.
fn joined(pieces: Vec<Arc<Block>>) -> Result<Block> {
    let mut text = Vec::new();
    let len_bytes = pieces.iter().map(|piece| piece.text.len()).sum();
    reserve(&mut text, len_bytes)?;
    let mut whole = Block { continues: pieces.first().is_some_and(|piece| piece.continues), ..Block::default() };
    // Each piece is freed when it is copied.
    for piece in pieces {
        let start = text.len();
        text.extend_from_slice(&piece.text);
        whole.doc_ends.extend(piece.doc_ends.iter().map(|end| start + end));
        (0..piece.paths.len()).for_each(|doc| whole.paths.push(piece.paths.get(doc).unwrap_or_default()));
    }
    whole.text = text.into();
    Ok(whole)
}

/// Makes room for `additional` bytes. Fails without a panic if memory cannot be allocated.
///
/// # Errors
/// [`Error::Io`] if there is no memory.
pub(super) fn reserve(text: &mut Vec<u8>, additional: usize) -> Result<()> {
    text.try_reserve(additional).map_err(|_| {
        let len_bytes = text.len() + additional;
        let what = format!("memory for {len_bytes} bytes of text; a smaller block takes less");
        Error::io(what, io::ErrorKind::OutOfMemory.into())
    })
}

/// Count of the bytes of lines that stand in an earlier piece.
#[derive(Debug, Default)]
struct SharedLines {
    /// Last piece of each line, by the hash of the line.
    piece_of_line: FxHashMap<u64, u32>,
    num_pieces: u32,
    shared_bytes: usize,
}

impl SharedLines {
    /// Adds the lines of the next piece.
    fn add(&mut self, text: &[u8]) {
        let piece = self.num_pieces;
        self.num_pieces += 1;
        for line in lines(text) {
            let mut hasher = FxHasher::default();
            hasher.write(line);
            let hash = hasher.finish();
            if hash >> (u64::BITS - SAMPLED_BITS) == 0 {
                // The first piece with a line pays for it, and each other piece pays once.
                let last = self.piece_of_line.insert(hash, piece);
                self.shared_bytes += if last.is_some_and(|last| last != piece) { line.len() } else { 0 };
            }
        }
    }

    /// Returns true if the shared bytes are many of `len_bytes`.
    fn are_many_in(&self, len_bytes: usize) -> bool {
        self.shared_bytes > (len_bytes / SHARED_PART) >> SAMPLED_BITS
    }
}

/// Returns the longer lines of `text`. A full stop ends a line, too.
fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut start = 0;
    let ends = memchr::memchr2_iter(b'\n', b'.', text).chain([text.len()]);
    let lines = ends.map(move |end| {
        let line = &text[start.min(end)..end];
        start = end + 1;
        line
    });
    lines.filter(|line| line.len() >= MIN_LINE_BYTES)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::SegmentLayout;

    /// Returns the end of each piece as a number of documents, by the rule for a whole block.
    fn piece_ends(docs: &[Vec<u8>], piece_bytes: usize) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut len = 0;
        for (doc, text) in docs.iter().enumerate() {
            if len > 0 && len + text.len() > piece_bytes {
                ends.push(doc);
                len = 0;
            }
            len += text.len();
        }
        ends.push(docs.len());
        ends
    }

    /// Returns the segments of a block as ranges of its documents, by the rule for a whole block.
    fn segments(docs: &[Vec<u8>], piece_bytes: usize) -> Vec<usize> {
        let ends = piece_ends(docs, piece_bytes);
        let mut shared = SharedLines::default();
        let starts = [0].into_iter().chain(ends.iter().copied());
        for (start, &end) in starts.zip(&ends) {
            shared.add(&docs[start..end].concat());
        }
        let is_whole = ends.len() > 1 && shared.are_many_in(docs.iter().map(Vec::len).sum());
        if is_whole { vec![docs.len()] } else { ends }
    }

    /// Returns the ends of blocks of whole documents.
    fn block_ends(docs: &[Vec<u8>], block_bytes: usize) -> Vec<usize> {
        let mut ends = Vec::new();
        let mut len = 0;
        for (doc, text) in docs.iter().enumerate() {
            if doc > 0 && ends.last() != Some(&doc) && len + text.len() > block_bytes {
                ends.push(doc);
                len = 0;
            }
            len += text.len();
        }
        ends.push(docs.len());
        ends
    }

    fn push(builder: &mut CorpusBuilder<Vec<u8>>, doc: usize, text: &[u8]) {
        builder.push_document(&doc.to_string(), text).unwrap();
    }

    /// Builds the file with a block for each segment of the oracle.
    fn expected(options: IngestOptions, docs: &[Vec<u8>], piece_bytes: usize) -> (Vec<u8>, usize) {
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap().with_piece_bytes(usize::MAX);
        let mut num_segments = 0;
        let mut doc = 0;
        for end in block_ends(docs, options.block_bytes) {
            let start = doc;
            for segment_end in segments(&docs[start..end], piece_bytes) {
                for (number, text) in (doc..).zip(&docs[doc..start + segment_end]) {
                    push(&mut builder, number, text);
                }
                doc = start + segment_end;
                builder.end_block();
                num_segments += 1;
            }
        }
        (builder.finish(None).unwrap().0, num_segments)
    }

    /// Builds the file from parts of documents. `changes` are documents before which the number of blocks changes.
    fn in_parts(
        options: IngestOptions,
        docs: &[Vec<u8>],
        piece_bytes: usize,
        part_bytes: usize,
        changes: &[(usize, usize)],
    ) -> Vec<u8> {
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap().with_piece_bytes(piece_bytes);
        for (number, text) in docs.iter().enumerate() {
            for &(_, max_blocks) in changes.iter().filter(|(before, _)| *before == number) {
                builder.set_blocks_at_once(max_blocks).unwrap();
            }
            let path = number.to_string();
            for part in text.chunks(part_bytes) {
                builder.push_part(&path, part, false).unwrap();
            }
            builder.push_part(&path, b"", true).unwrap();
        }
        builder.finish(None).unwrap().0
    }

    /// Makes a document of lines with the numbers from `first` on.
    fn lines_from(first: usize, num_lines: usize) -> Vec<u8> {
        let line = |at| format!("line number {at:05} of this document\n");
        (first..first + num_lines).map(line).collect::<String>().into_bytes()
    }

    fn any_docs() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let new = (0usize..99_000, 0usize..60).prop_map(|(first, num)| lines_from(first, num));
        let repeated = (0usize..4, 1usize..60).prop_map(|(first, num)| lines_from(first, num));
        prop::collection::vec(prop_oneof![4 => new, 1 => repeated, 1 => Just(Vec::new())], 1..24)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn pieces_that_begin_early_give_the_file_of_whole_blocks(
            docs in any_docs(),
            piece_bytes in 1usize..6_000,
            part_bytes in 1usize..3_000,
            block_bytes in 2_500usize..40_000,
            changes in prop::collection::vec((0usize..24, 1usize..5), 0..4),
        ) {
            let options = IngestOptions { block_bytes, ..IngestOptions::default() };
            let (expected, _) = expected(options, &docs, piece_bytes);
            prop_assert!(in_parts(options, &docs, piece_bytes, part_bytes, &changes) == expected);
        }
    }

    #[test]
    fn versions_of_a_text_stay_together_and_other_texts_are_divided() {
        let options = IngestOptions::default();
        let num_segments = |first_of: &dyn Fn(usize) -> usize, num_docs: usize| {
            let docs: Vec<Vec<u8>> = (0..num_docs).map(|doc| lines_from(first_of(doc), 50)).collect();
            let piece_bytes = 2 * docs[0].len();
            let (expected, num_segments) = expected(options, &docs, piece_bytes);
            assert!(in_parts(options, &docs, piece_bytes, 100, &[]) == expected);
            num_segments
        };
        assert_eq!(num_segments(&|doc| doc * 50, 8), 4);
        assert_eq!(num_segments(&|doc| doc, 8), 1);
        // Repeats within a piece do not count.
        assert_eq!(num_segments(&|doc| doc / 2 * 50, 8), 4);
        assert_eq!(num_segments(&|_| 0, 1), 1);
        // Pieces have begun when the last ones turn out to be versions of the first ones.
        assert_eq!(num_segments(&|doc| doc % 10 * 50, 20), 1);
    }

    #[test]
    fn a_small_layout_has_no_pieces() {
        let options = IngestOptions { layout: SegmentLayout::Small, ..IngestOptions::default() };
        let docs: Vec<Vec<u8>> = (0..8).map(|doc| lines_from(50 * doc, 50)).collect();
        let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
        docs.iter().enumerate().for_each(|(number, text)| push(&mut builder, number, text));
        assert!(builder.finish(None).unwrap().0 == expected(options, &docs, usize::MAX).0);
    }
}
