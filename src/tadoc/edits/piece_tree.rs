//! Text of an edited document as pieces of other texts: a B+-tree with byte sums.
//!
//! ```text
//! document   The quick brown | red and | fox jumps | .
//! pieces     base 0..15      | text 0..9 | base 15..25 | text 9..10
//! tree       inner: 24 bytes, 11 bytes  ─▶  leaves of up to 32 pieces
//! ```
//!
//! A piece is a range of the base document or of the buffer of new text. A replacement changes only the leaves that
//! hold them and the nodes above: O(log pieces + leaves removed). No offset of later text is moved. Most documents have
//! few edits, so a tree is a single leaf until that is full. Then it gets nodes, and keeps them.
//!
//! # Nodes
//!
//! ```text
//! root ─▶ inner nodes, `height` levels of them ─▶ leaves, each of pieces
//! ```
//!
//! Nodes are split when they are full and removed when they are empty. Half-empty nodes are not joined, so the height
//! depends on the number of all pieces ever inserted; it is at most 15 for 2^60 of them. Nodes are stored in one vector
//! and found by number, so dropping and walking do not recurse.

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
    pub(crate) fn last_byte(&self) -> Option<Piece> {
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
    pub(crate) fn extend_last(&mut self, len: u64) {
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
fn replace_in_leaf(pieces: &mut Vec<Piece>, idx: usize, within: u64, removed: u64, added: Piece) -> u64 {
    let mut left = removed;
    let mut last = idx;
    let mut skipped = within;
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
    let mut kept = [nothing; 3];
    let mut num_kept = 0;
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

/// The leaves and the nodes above them.
#[derive(Debug, Clone)]
struct NodeTree {
    leaves: Vec<Vec<Piece>>,
    inner: Vec<Vec<Child>>,
    /// Numbers of unused leaves and of unused inner nodes.
    free_leaves: Vec<u32>,
    free_inner: Vec<u32>,
    /// A leaf if the height is 0, else an inner node with `height` levels of inner nodes.
    root: u32,
    height: usize,
    len_bytes: u64,
}

/// A node one level below, with the number of bytes of its pieces.
#[derive(Debug, Clone, Copy)]
struct Child {
    node: u32,
    len_bytes: u64,
}

/// An inner node and the index of one of its children.
type Step = (u32, usize);

/// Change of a node that its parent must record.
enum Change {
    IsEmpty,
    Split(Child),
}

impl NodeTree {
    /// Creates the tree of `pieces`, which have `len_bytes` bytes.
    pub fn from_leaf(pieces: Vec<Piece>, len_bytes: u64) -> Self {
        let mut tree = Self {
            leaves: vec![pieces],
            inner: Vec::new(),
            free_leaves: Vec::new(),
            free_inner: Vec::new(),
            root: 0,
            height: 0,
            len_bytes,
        };
        tree.balance(0, &mut Vec::new());
        tree
    }

    /// Returns the number of bytes of all pieces.
    pub fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Returns the number of bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        let leaves: usize = self.leaves.iter().map(Vec::capacity).sum();
        let inner: usize = self.inner.iter().map(Vec::capacity).sum();
        let nodes = self.leaves.capacity() + self.inner.capacity();
        size_of::<Self>()
            + size_of::<Piece>() * leaves
            + size_of::<Child>() * inner
            + size_of::<Vec<Piece>>() * nodes
            + 4 * (self.free_leaves.capacity() + self.free_inner.capacity())
    }

    /// Returns the pieces of a leaf.
    #[inline]
    pub fn leaf(&self, leaf: u32) -> &[Piece] {
        &self.leaves[leaf as usize]
    }

    /// Returns the leaf after the one to which `path` leads, and moves `path` to it.
    pub fn next_leaf(&self, path: &mut Vec<Step>) -> Option<&[Piece]> {
        let mut node = loop {
            let (node, idx) = path.pop()?;
            if let Some(next) = self.inner[node as usize].get(idx + 1) {
                path.push((node, idx + 1));
                break next.node;
            }
        };
        while path.len() < self.height {
            path.push((node, 0));
            node = self.inner[node as usize].first()?.node;
        }
        Some(self.leaf(node))
    }

    /// Replaces the bytes from `start` to `end`, which is at most the length, with `piece`. An
    /// empty piece only deletes them.
    pub fn replace(&mut self, start: u64, end: u64, piece: Piece) {
        let mut remaining = end - start;
        let mut path = Vec::new();
        loop {
            path.clear();
            let (leaf, idx, within) = self.descend(start, &mut path);
            let before = remaining;
            let pieces = &mut self.leaves[leaf as usize];
            remaining = replace_in_leaf(pieces, idx, within, before, piece);
            let added = if remaining == 0 { piece.len } else { 0 };
            self.adjust(&path, added, before - remaining);
            self.balance(leaf, &mut path);
            if remaining == 0 {
                return;
            }
        }
    }

    /// Extends the last piece, which must exist, by `len` bytes.
    pub fn extend_last(&mut self, len: u64) {
        let mut path = Vec::new();
        let (leaf, _, _) = self.descend(self.len_bytes, &mut path);
        if let Some(last) = self.leaves[leaf as usize].last_mut() {
            last.len += len;
            self.adjust(&path, len, 0);
        }
    }

    /// Finds the piece that holds byte `offset`, or the position after the last piece. Returns the
    /// leaf, the index there and the number of bytes of the piece before `offset`. Adds the nodes
    /// above to `path`.
    #[inline]
    pub fn descend(&self, mut offset: u64, path: &mut Vec<Step>) -> (u32, usize, u64) {
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
        let (idx, within) = find_in_leaf(self.leaf(node), offset);
        (node, idx, within)
    }

    fn adjust(&mut self, path: &[Step], added: u64, removed: u64) {
        self.len_bytes = self.len_bytes - removed + added;
        for &(node, idx) in path {
            let child = &mut self.inner[node as usize][idx];
            child.len_bytes = child.len_bytes - removed + added;
        }
    }

    /// Splits `leaf` and the nodes of `path` above it if they are too full, and removes them if
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

    /// Removes nodes with one child from the top.
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

    #[cfg(test)]
    pub fn height(&self) -> usize {
        self.height
    }

    /// Returns the number of leaves and of inner nodes in use.
    #[cfg(test)]
    pub fn num_used(&self) -> (usize, usize) {
        (self.leaves.len() - self.free_leaves.len(), self.inner.len() - self.free_inner.len())
    }
}

/// Adds `node` at a free number, or after all others. Returns its number.
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
