//! Text of an edited document as pieces of other texts: a B+-tree with byte sums.
//!
//! ```text
//! document   The quick brown | red and | fox jumps | .
//! pieces     base 0..15      | text 0..9 | base 15..25 | text 9..10
//! tree       inner: 24 bytes, 11 bytes  ─▶  leaves of up to 32 pieces
//! ```
//!
//! A piece is a range of the base document or of the buffer of new text. A replacement changes
//! only the leaves that hold them and the nodes above: O(log pieces + leaves removed). No offset of
//! later text is moved. Most documents have few edits, so a tree is a single leaf until that is
//! full. Then it gets [nodes](nodes), and keeps them.

mod nodes;

use nodes::{NodeTree, Step};

/// Most pieces of a leaf, and most children of an inner node.
const MAX_FANOUT: usize = 32;
/// Capacity of a new leaf in pieces: an insert into the middle of a document makes so many.
const NEW_LEAF_LEN: usize = 3;

/// The text that a piece is a range of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The document in the base corpus.
    Base,
    /// The buffer of new text.
    Text,
}

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// The text that the piece is a range of.
    pub source: Source,
    /// Offset of the first byte in that text.
    pub start: u64,
    /// Length in bytes.
    pub len: u64,
}

impl Piece {
    /// Returns the offset after the last byte.
    pub fn end(self) -> u64 {
        self.start + self.len
    }

    fn head(self, len: u64) -> Self {
        Self { len, ..self }
    }

    /// Returns the piece without its first `skipped` bytes.
    pub fn tail(self, skipped: u64) -> Self {
        Self { start: self.start + skipped, len: self.len - skipped, ..self }
    }
}

/// The pieces of a document, in order.
#[derive(Debug, Clone)]
pub struct PieceTree(Shape);

#[derive(Debug, Clone)]
enum Shape {
    Leaf { pieces: Vec<Piece>, len_bytes: u64 },
    Nodes(Box<NodeTree>),
}

impl PieceTree {
    /// Creates the tree of one piece. An empty piece gives an empty tree.
    pub fn new(piece: Piece) -> Self {
        let mut pieces = Vec::with_capacity(NEW_LEAF_LEN);
        if piece.len > 0 {
            pieces.push(piece);
        }
        Self(Shape::Leaf { pieces, len_bytes: piece.len })
    }

    /// Returns the number of bytes of all pieces.
    pub fn len_bytes(&self) -> u64 {
        match &self.0 {
            Shape::Leaf { len_bytes, .. } => *len_bytes,
            Shape::Nodes(nodes) => nodes.len_bytes(),
        }
    }

    /// Returns the number of bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        match &self.0 {
            Shape::Leaf { pieces, .. } => size_of::<Piece>() * pieces.capacity(),
            Shape::Nodes(nodes) => nodes.memory_bytes(),
        }
    }

    /// Returns the pieces from byte `offset` on, which is at most the length. The first piece is
    /// cut there.
    #[inline]
    pub fn pieces_from(&self, offset: u64) -> Pieces<'_> {
        match &self.0 {
            Shape::Leaf { pieces, .. } => {
                let (idx, within) = find_in_leaf(pieces, offset);
                Pieces { nodes: None, path: Vec::new(), leaf: pieces, idx, within }
            }
            Shape::Nodes(nodes) => {
                let mut path = Vec::new();
                let (leaf, idx, within) = nodes.descend(offset, &mut path);
                Pieces { nodes: Some(nodes), path, leaf: nodes.leaf(leaf), idx, within }
            }
        }
    }

    /// Returns the last byte as a piece, if there is one.
    pub fn last_byte(&self) -> Option<Piece> {
        self.pieces_from(self.len_bytes().checked_sub(1)?).next()
    }

    /// Replaces the bytes from `start` to `end`, which is at most the length, with `piece`. An
    /// empty piece only deletes them.
    pub fn replace(&mut self, start: u64, end: u64, piece: Piece) {
        match &mut self.0 {
            Shape::Leaf { pieces, len_bytes } => {
                let (idx, within) = find_in_leaf(pieces, start);
                replace_in_leaf(pieces, idx, within, end - start, piece);
                *len_bytes = *len_bytes - (end - start) + piece.len;
                if pieces.len() > MAX_FANOUT {
                    let nodes = NodeTree::from_leaf(std::mem::take(pieces), *len_bytes);
                    self.0 = Shape::Nodes(Box::new(nodes));
                }
            }
            Shape::Nodes(nodes) => nodes.replace(start, end, piece),
        }
    }

    /// Extends the last piece, which must exist, by `len` bytes.
    pub fn extend_last(&mut self, len: u64) {
        match &mut self.0 {
            Shape::Leaf { pieces, len_bytes } => {
                if let Some(last) = pieces.last_mut() {
                    last.len += len;
                    *len_bytes += len;
                }
            }
            Shape::Nodes(nodes) => nodes.extend_last(len),
        }
    }
}

/// Returns the index of the piece of a leaf that holds byte `offset`, or the index after the last
/// piece, and the number of bytes of that piece before `offset`.
#[inline]
fn find_in_leaf(pieces: &[Piece], mut offset: u64) -> (usize, u64) {
    let mut idx = 0;
    while let Some(piece) = pieces.get(idx).filter(|piece| offset >= piece.len) {
        offset -= piece.len;
        idx += 1;
    }
    (idx, offset)
}

/// Removes `removed` bytes of a leaf, from byte `within` of piece `idx` on, and inserts `added`
/// there. If the leaf has fewer bytes, they are removed and nothing is inserted. Returns the number
/// of bytes that are still to be removed.
fn replace_in_leaf(
    pieces: &mut Vec<Piece>,
    idx: usize,
    within: u64,
    removed: u64,
    added: Piece,
) -> u64 {
    let mut left = removed;
    let (mut last, mut skipped) = (idx, within);
    while let Some(at) = pieces.get(last).filter(|_| left > 0) {
        let taken = left.min(at.len - skipped);
        left -= taken;
        skipped += taken;
        if skipped == at.len {
            (last, skipped) = (last + 1, 0);
        }
    }
    let nothing = added.head(0);
    let head = if within > 0 { pieces[idx].head(within) } else { nothing };
    let added = if left == 0 { added } else { nothing };
    let tail = if skipped > 0 { pieces[last].tail(skipped) } else { nothing };
    let (mut kept, mut num_kept) = ([nothing; 3], 0);
    for piece in [head, added, tail].into_iter().filter(|piece| piece.len > 0) {
        kept[num_kept] = piece;
        num_kept += 1;
    }
    // The number of pieces is known, so `splice` does not allocate a temporary list.
    let kept = kept[..num_kept].iter().copied();
    let _ = pieces.splice(idx..last + usize::from(skipped > 0), kept);
    left
}

/// An iterator over pieces in order, from some byte on.
#[derive(Debug)]
pub struct Pieces<'a> {
    nodes: Option<&'a NodeTree>,
    path: Vec<Step>,
    leaf: &'a [Piece],
    idx: usize,
    /// Number of bytes of the next piece that are skipped.
    within: u64,
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    #[inline]
    fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.leaf.get(self.idx) {
                self.idx += 1;
                return Some(piece.tail(std::mem::take(&mut self.within)));
            }
            (self.leaf, self.idx) = (self.nodes?.next_leaf(&mut self.path)?, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns every byte of the pieces, as its source and offset there.
    fn places(pieces: impl Iterator<Item = Piece>) -> Vec<(bool, u64)> {
        let of = |piece: Piece| {
            assert!(piece.len > 0);
            (piece.start..piece.end()).map(move |at| (piece.source == Source::Base, at))
        };
        pieces.flat_map(of).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn replaces_as_a_list_of_bytes_does(
            len in 0..4_000u64,
            edits in prop::collection::vec((any::<u16>(), 0..60u64, 0..3u64, any::<u8>()), 0..400),
        ) {
            let mut tree = PieceTree::new(Piece { source: Source::Base, start: 0, len });
            let mut bytes = places(tree.pieces_from(0));
            let mut num_new = 0;
            for (at, removed, added, kind) in edits {
                let start = u64::from(at) % (tree.len_bytes() + 1);
                // In some cases most of the document is removed.
                let removed = if kind < 3 { removed * 50 } else { removed * u64::from(kind % 2) };
                let end = (start + removed).min(tree.len_bytes());
                let piece = Piece { source: Source::Text, start: num_new, len: added };
                num_new += added;
                tree.replace(start, end, piece);
                bytes.splice(start as usize..end as usize, places([piece].into_iter().filter(|p| p.len > 0)));
                prop_assert_eq!(tree.len_bytes(), bytes.len() as u64);
                if kind % 16 == 0 && tree.last_byte().is_some_and(|last| last.source == Source::Text && last.end() == num_new) {
                    tree.extend_last(2);
                    bytes.extend([(false, num_new), (false, num_new + 1)]);
                    num_new += 2;
                }
                let from = u64::from(kind) * 7 % (tree.len_bytes() + 1);
                prop_assert_eq!(&places(tree.pieces_from(from)), &bytes[from as usize..]);
            }
            let end = tree.len_bytes();
            tree.replace(0, end, Piece { source: Source::Text, start: 0, len: 0 });
            prop_assert_eq!((tree.pieces_from(0).next(), tree.last_byte()), (None, None));
            if let Shape::Nodes(nodes) = &tree.0 {
                prop_assert_eq!(nodes.num_used(), (1, 0));
            }
        }
    }

    #[test]
    fn many_pieces_make_a_low_tree() {
        let mut tree = PieceTree::new(Piece { source: Source::Base, start: 0, len: 1 << 60 });
        for start in 0..100_000u64 {
            let at = start.wrapping_mul(0x9E37_79B9_7F4A_7C15) % tree.len_bytes();
            tree.replace(at, at, Piece { source: Source::Text, start, len: 1 });
        }
        assert!(matches!(&tree.0, Shape::Nodes(nodes) if nodes.height() <= 3), "{tree:?}");
        assert_eq!(tree.len_bytes(), (1 << 60) + 100_000);
    }
}
