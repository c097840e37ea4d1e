//! The text of an edited document as pieces of other texts: a B+-tree with byte sums.
//!
//! ```text
//! document   The quick brown | red and | fox jumps | .
//! pieces     base 0..15      | text 0..9 | base 15..25 | text 9..10
//! tree       inner: 24 bytes, 11 bytes  ─▶  leaves of up to 32 pieces
//! ```
//!
//! A piece is a range of the base document or of the buffer of new text. Replacing bytes touches the
//! leaves that hold them and the nodes above: O(log pieces + leaves that go), no offset of anything
//! behind is moved. Nodes split when they are full and go when they are empty; half-empty ones are not
//! joined, so the height is that of all pieces ever put in, at most 15 for 2^60 of them. Nodes lie in
//! one vector and are found by number, so dropping and walking do not recurse.

/// Most pieces of a leaf and children of an inner node.
const MAX_FANOUT: usize = 32;

/// What a piece is a range of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    /// The document as it is in the base corpus.
    Base,
    /// The buffer of new text.
    Text,
}

/// A range of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Piece {
    pub source: Source,
    pub start: u64,
    pub len: u64,
}

impl Piece {
    pub fn end(self) -> u64 {
        self.start + self.len
    }

    fn head(self, len: u64) -> Self {
        Self { len, ..self }
    }

    pub fn tail(self, skipped: u64) -> Self {
        Self { start: self.start + skipped, len: self.len - skipped, ..self }
    }
}

/// Pieces in order.
#[derive(Debug, Clone)]
pub(crate) struct PieceTree {
    leaves: Vec<Vec<Piece>>,
    inner: Vec<Vec<Child>>,
    /// Numbers of leaves and of inner nodes that are not used.
    free_leaves: Vec<u32>,
    free_inner: Vec<u32>,
    /// A leaf where the height is 0, else an inner node with so many levels of them.
    root: u32,
    height: usize,
    len_bytes: u64,
}

/// A node one level below and the bytes of its pieces.
#[derive(Debug, Clone, Copy)]
struct Child {
    node: u32,
    len_bytes: u64,
}

/// An inner node and the index of one of its children.
type Step = (u32, usize);

/// What a node's parent has to be told.
enum Change {
    IsEmpty,
    Split(Child),
}

impl PieceTree {
    /// The tree of one piece, or of none where it is empty.
    pub fn new(piece: Piece) -> Self {
        let pieces = if piece.len > 0 { vec![piece] } else { Vec::new() };
        Self {
            leaves: vec![pieces],
            inner: Vec::new(),
            free_leaves: Vec::new(),
            free_inner: Vec::new(),
            root: 0,
            height: 0,
            len_bytes: piece.len,
        }
    }

    /// Bytes of all pieces.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let leaves: usize = self.leaves.iter().map(Vec::capacity).sum();
        let inner: usize = self.inner.iter().map(Vec::capacity).sum();
        let nodes = self.leaves.capacity() + self.inner.capacity();
        size_of::<Piece>() * leaves
            + size_of::<Child>() * inner
            + size_of::<Vec<Piece>>() * nodes
            + 4 * (self.free_leaves.capacity() + self.free_inner.capacity())
    }

    /// The pieces from byte `offset` on, which is at most the length; the first is cut there.
    #[inline]
    pub fn pieces_from(&self, offset: u64) -> Pieces<'_> {
        let mut path = Vec::new();
        let (leaf, idx, within) = self.descend(offset, &mut path);
        Pieces { tree: self, path, leaf: &self.leaves[leaf as usize], idx, within }
    }

    /// The last byte as a piece, if there is one.
    pub fn last_byte(&self) -> Option<Piece> {
        self.pieces_from(self.len_bytes.checked_sub(1)?).next()
    }

    /// Puts `piece` in the place of the bytes from `start` to `end`, which is at most the length. An
    /// empty piece is none.
    pub fn replace(&mut self, start: u64, end: u64, piece: Piece) {
        let mut remaining = end - start;
        let mut path = Vec::new();
        loop {
            path.clear();
            let (leaf, idx, within) = self.descend(start, &mut path);
            let pieces = &mut self.leaves[leaf as usize];
            let before = remaining;
            let (mut last, mut skipped) = (idx, within);
            while let Some(at) = pieces.get(last).filter(|_| remaining > 0) {
                let taken = remaining.min(at.len - skipped);
                remaining -= taken;
                skipped += taken;
                if skipped == at.len {
                    (last, skipped) = (last + 1, 0);
                }
            }
            let is_done = remaining == 0;
            let added = Piece { len: if is_done { piece.len } else { 0 }, ..piece };
            let head = if within > 0 { pieces[idx].head(within) } else { piece.head(0) };
            let tail = if skipped > 0 { pieces[last].tail(skipped) } else { piece.head(0) };
            let kept = [head, added, tail].into_iter().filter(|piece| piece.len > 0);
            let _ = pieces.splice(idx..last + usize::from(skipped > 0), kept);
            self.adjust(&path, added.len, before - remaining);
            self.balance(leaf, &mut path);
            if is_done {
                return;
            }
        }
    }

    /// Makes the last piece, which there must be, longer by `len`.
    pub fn extend_last(&mut self, len: u64) {
        let mut path = Vec::new();
        let (leaf, _, _) = self.descend(self.len_bytes, &mut path);
        if let Some(last) = self.leaves[leaf as usize].last_mut() {
            last.len += len;
            self.adjust(&path, len, 0);
        }
    }

    /// Finds the piece that holds byte `offset`, or the place behind the last piece: the leaf, the
    /// index there and the bytes of the piece before it. `path` takes the nodes above.
    #[inline]
    fn descend(&self, mut offset: u64, path: &mut Vec<Step>) -> (u32, usize, u64) {
        let mut node = self.root;
        for _ in 0..self.height {
            let children = &self.inner[node as usize];
            let mut idx = 0;
            while idx + 1 < children.len() && offset >= children[idx].len_bytes {
                offset -= children[idx].len_bytes;
                idx += 1;
            }
            path.push((node, idx));
            node = children[idx].node;
        }
        let pieces = &self.leaves[node as usize];
        let mut idx = 0;
        while let Some(piece) = pieces.get(idx).filter(|piece| offset >= piece.len) {
            offset -= piece.len;
            idx += 1;
        }
        (node, idx, offset)
    }

    fn adjust(&mut self, path: &[Step], added: u64, removed: u64) {
        self.len_bytes = self.len_bytes - removed + added;
        for &(node, idx) in path {
            let child = &mut self.inner[node as usize][idx];
            child.len_bytes = child.len_bytes - removed + added;
        }
    }

    /// Splits `leaf` and the nodes of `path` above it where they are too full, takes them out where
    /// they are empty.
    fn balance(&mut self, leaf: u32, path: &mut Vec<Step>) {
        let mut change = match self.leaves[leaf as usize].len() {
            0 => Change::IsEmpty,
            1..=MAX_FANOUT => return,
            _ => Change::Split(self.split_leaf(leaf)),
        };
        if let (Change::IsEmpty, false) = (&change, path.is_empty()) {
            self.free_leaves.push(leaf);
        }
        while let Some((node, idx)) = path.pop() {
            let children = &mut self.inner[node as usize];
            match change {
                Change::IsEmpty => {
                    children.remove(idx);
                }
                Change::Split(right) => {
                    children[idx].len_bytes -= right.len_bytes;
                    children.insert(idx + 1, right);
                }
            }
            change = match children.len() {
                0 => {
                    self.free_inner.push(node);
                    Change::IsEmpty
                }
                1..=MAX_FANOUT => return self.shrink(),
                _ => Change::Split(self.split_inner(node)),
            };
        }
        match change {
            Change::Split(right) => {
                let left = Child { node: self.root, len_bytes: self.len_bytes - right.len_bytes };
                self.root = added(&mut self.inner, &mut self.free_inner, vec![left, right]);
                self.height += 1;
            }
            Change::IsEmpty if self.height > 0 => {
                self.root = added(&mut self.leaves, &mut self.free_leaves, Vec::new());
                self.height = 0;
            }
            Change::IsEmpty => {}
        }
    }

    /// Takes nodes of one child from the top.
    fn shrink(&mut self) {
        while self.height > 0
            && let [only] = self.inner[self.root as usize].as_slice()
        {
            let root = only.node;
            self.free_inner.push(std::mem::replace(&mut self.root, root));
            self.height -= 1;
        }
    }

    /// Moves the second half of a leaf to a new one.
    fn split_leaf(&mut self, leaf: u32) -> Child {
        let pieces = &mut self.leaves[leaf as usize];
        let right = pieces.split_off(pieces.len() / 2);
        let len_bytes = right.iter().map(|piece| piece.len).sum();
        Child { node: added(&mut self.leaves, &mut self.free_leaves, right), len_bytes }
    }

    /// Moves the second half of an inner node to a new one.
    fn split_inner(&mut self, node: u32) -> Child {
        let children = &mut self.inner[node as usize];
        let right = children.split_off(children.len() / 2);
        let len_bytes = right.iter().map(|child| child.len_bytes).sum();
        Child { node: added(&mut self.inner, &mut self.free_inner, right), len_bytes }
    }
}

/// Puts `node` where a number is free, or behind all others; returns its number.
fn added<T>(nodes: &mut Vec<T>, free: &mut Vec<u32>, node: T) -> u32 {
    match free.pop() {
        Some(number) => {
            nodes[number as usize] = node;
            number
        }
        None => {
            nodes.push(node);
            (nodes.len() - 1) as u32
        }
    }
}

/// Pieces in order, from some byte on.
#[derive(Debug)]
pub(crate) struct Pieces<'a> {
    tree: &'a PieceTree,
    path: Vec<Step>,
    leaf: &'a [Piece],
    idx: usize,
    /// Bytes of the next piece that are passed over.
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
            self.next_leaf()?;
        }
    }
}

impl Pieces<'_> {
    fn next_leaf(&mut self) -> Option<()> {
        let mut node = loop {
            let (node, idx) = self.path.pop()?;
            if let Some(next) = self.tree.inner[node as usize].get(idx + 1) {
                self.path.push((node, idx + 1));
                break next.node;
            }
        };
        while self.path.len() < self.tree.height {
            self.path.push((node, 0));
            node = self.tree.inner[node as usize].first()?.node;
        }
        (self.leaf, self.idx) = (&self.tree.leaves[node as usize], 0);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Every byte of the pieces, as its source and place there.
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
                // Now and then most of the document goes.
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
            prop_assert_eq!(tree.leaves.len() - tree.free_leaves.len(), 1);
            prop_assert_eq!(tree.inner.len(), tree.free_inner.len());
        }
    }

    #[test]
    fn many_pieces_make_a_low_tree() {
        let mut tree = PieceTree::new(Piece { source: Source::Base, start: 0, len: 1 << 60 });
        for start in 0..100_000u64 {
            let at = start.wrapping_mul(0x9E37_79B9_7F4A_7C15) % tree.len_bytes();
            tree.replace(at, at, Piece { source: Source::Text, start, len: 1 });
        }
        assert!(tree.height <= 3, "{}", tree.height);
        assert_eq!(tree.len_bytes(), (1 << 60) + 100_000);
    }
}
