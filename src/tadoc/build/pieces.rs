//! Division of a block into smaller segments where that costs no space.
//!
//! ```text
//! block     │ doc doc doc │ doc doc │ doc doc doc │     pieces of up to 16 MiB, whole documents each
//! lines       a b c a       d e       f a g             a is repeated in another piece: few bytes are
//! segments  │      1      │    2    │      3      │     … one segment for each piece
//!
//! lines       a b c         a b d     a b d e           versions of a text: most bytes are
//! segments  │                  1                  │     … one segment for the block
//! ```
//!
//! A statement that looks for a word or for a document opens whole segments. With smaller ones it opens less
//! text, on more threads. But each segment has its own rules. What two of them share is stored twice.
//!
//! So the lines of the block are hashed, in one pass, and the bytes of lines that stand in an earlier piece are
//! added up, of one hash in eight. A line that repeats one of the same piece costs nothing. The block is divided
//! if the shared bytes are few. Ends of sentences end a line, too, for text with long lines.
//!
//! Measured with blocks of 128 MiB against pieces of 16 MiB, layout `fast`: sources of crates (272 MB, 1 % shared)
//! become 0.99 times as large, 56 versions of a source tree (283 MB, 80 % shared) five times as large.

use std::hash::Hasher;
use std::ops::Range;

use rustc_hash::{FxHashMap, FxHasher};

use crate::build::blocks::Block;
use crate::segment::Paths;

/// Greatest size of the text of a piece, unless one document is larger.
pub(super) const PIECE_BYTES: usize = 16 << 20;
/// Shorter lines are repeated everywhere and cost little.
const MIN_LINE_BYTES: usize = 24;
/// Part of the text of a block that its pieces may share.
const SHARED_PART: usize = 32;
/// Bits that are zero in the hash of a line that is counted. The others would take as long as the tokens.
const SAMPLED_BITS: u32 = 3;

/// Divides `block` into pieces of at most `piece_bytes` of text, larger ones where a document is. Returns the
/// whole block if the pieces share much text.
pub(super) fn pieces(block: Block, piece_bytes: usize) -> Pieces {
    let mut ends = piece_ends(&block.doc_ends, piece_bytes);
    if ends.len() > 1 && shares_much(&block, &ends) {
        ends = vec![block.doc_ends.len()];
    }
    Pieces { block, ends: ends.into_iter(), docs: 0..0 }
}

/// Pieces of a block, in order.
pub(super) struct Pieces {
    block: Block,
    /// End of each piece as a number of documents.
    ends: std::vec::IntoIter<usize>,
    /// Documents of the last piece.
    docs: Range<usize>,
}

impl Iterator for Pieces {
    type Item = Block;

    fn next(&mut self) -> Option<Block> {
        let end = self.ends.next()?;
        if self.docs.end == 0 && self.ends.len() == 0 {
            return Some(std::mem::take(&mut self.block));
        }
        self.docs = self.docs.end..end;
        let Block { text, doc_ends, paths, continues } = &self.block;
        let bytes = bytes_of(doc_ends, &self.docs);
        let mut of_piece = Paths::default();
        self.docs.clone().for_each(|doc| of_piece.push(paths.get(doc).unwrap_or_default()));
        Some(Block {
            text: text[bytes.clone()].to_vec(),
            doc_ends: doc_ends[self.docs.clone()].iter().map(|end| end - bytes.start).collect(),
            paths: of_piece,
            continues: *continues && self.docs.start == 0,
        })
    }
}

/// Returns the end of each piece as a number of documents.
fn piece_ends(doc_ends: &[usize], piece_bytes: usize) -> Vec<usize> {
    let mut ends = Vec::new();
    let (mut start, mut before) = (0, 0);
    for (doc, &end) in doc_ends.iter().enumerate() {
        if end - start > piece_bytes && before > start {
            ends.push(doc);
            start = before;
        }
        before = end;
    }
    ends.push(doc_ends.len());
    ends
}

/// Returns the text of the documents `docs`.
fn bytes_of(doc_ends: &[usize], docs: &Range<usize>) -> Range<usize> {
    let end_of = |num_docs: usize| num_docs.checked_sub(1).map_or(0, |doc| doc_ends[doc]);
    end_of(docs.start)..end_of(docs.end)
}

/// Returns true if many bytes of the pieces are lines that stand in an earlier piece. Stops when it is sure.
fn shares_much(block: &Block, ends: &[usize]) -> bool {
    let Block { text, doc_ends, .. } = block;
    let max_shared = (text.len() / SHARED_PART) >> SAMPLED_BITS;
    let mut piece_of_line: FxHashMap<u64, u32> = FxHashMap::default();
    let (mut shared, mut start) = (0, 0);
    for (piece, &end) in (0..).zip(ends) {
        for line in lines(&text[bytes_of(doc_ends, &(start..end))]) {
            let mut hasher = FxHasher::default();
            hasher.write(line);
            let hash = hasher.finish();
            if hash >> (u64::BITS - SAMPLED_BITS) == 0 {
                // The first piece with a line pays for it, and each other piece pays once.
                let last = piece_of_line.insert(hash, piece);
                shared += if last.is_some_and(|last| last != piece) { line.len() } else { 0 };
            }
        }
        if shared > max_shared {
            return true;
        }
        start = end;
    }
    false
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

    fn block_of(docs: &[Vec<u8>], continues: bool) -> Block {
        let mut block = Block { continues, ..Block::default() };
        for (doc_id, doc) in docs.iter().enumerate() {
            block.text.extend(doc);
            block.doc_ends.push(block.text.len());
            block.paths.push(&doc_id.to_string());
        }
        block
    }

    proptest! {
        #[test]
        fn pieces_are_the_block(
            docs in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..20),
            piece_bytes in 0usize..90,
            continues in any::<bool>(),
        ) {
            let mut together = Block::default();
            let pieces: Vec<Block> = pieces(block_of(&docs, continues), piece_bytes).collect();
            for (idx, piece) in pieces.iter().enumerate() {
                prop_assert_eq!(piece.continues, continues && idx == 0);
                prop_assert_eq!(piece.paths.len(), piece.doc_ends.len());
                let is_within = piece.text.len() <= piece_bytes;
                let is_one_doc = piece.doc_ends.iter().filter(|&&end| end > 0).count() == 1;
                prop_assert!(is_within || is_one_doc || pieces.len() == 1);
                let before = together.text.len();
                together.text.extend(&piece.text);
                together.doc_ends.extend(piece.doc_ends.iter().map(|end| end + before));
                (0..piece.paths.len()).for_each(|doc| together.paths.push(piece.paths.get(doc).unwrap()));
            }
            let expected = block_of(&docs, continues);
            prop_assert_eq!(together.text, expected.text);
            prop_assert_eq!(together.doc_ends, expected.doc_ends);
            prop_assert_eq!(together.paths, expected.paths);
        }
    }

    /// Makes documents of lines; each line has the number that `number` returns for its place.
    fn documents(num_docs: usize, number: impl Fn(usize, usize) -> usize) -> Vec<Vec<u8>> {
        let line = |doc, at| format!("line number {:04} of this document\n", number(doc, at));
        let doc = |doc| (0..50).map(|at| line(doc, at)).collect::<String>().into_bytes();
        (0..num_docs).map(doc).collect()
    }

    fn num_pieces(docs: &[Vec<u8>]) -> usize {
        pieces(block_of(docs, false), 2 * docs[0].len()).count()
    }

    #[test]
    fn versions_of_a_text_stay_together_and_other_texts_are_divided() {
        assert_eq!(num_pieces(&documents(8, |doc, at| doc * 50 + at)), 4);
        assert_eq!(num_pieces(&documents(8, |doc, at| doc + at)), 1);
        // Repeats within a piece do not count.
        assert_eq!(num_pieces(&documents(8, |doc, at| doc / 2 * 50 + at)), 4);
        assert_eq!(num_pieces(&documents(1, |_, at| at)), 1);
    }
}
