//! Nodes of a B+-tree, for a document with more pieces than one leaf holds.
//!
//! ```text
//! root ─▶ inner nodes, `height` levels of them ─▶ leaves, each of pieces
//! ```
//!
//! Nodes are split when they are full and removed when they are empty. Half-empty nodes are not
//! joined, so the height depends on the number of all pieces ever inserted; it is at most 15 for
//! 2^60 of them. Nodes are stored in one vector and found by number, so dropping and walking do not
//! recurse.

use super::{MAX_FANOUT, Piece, find_in_leaf, replace_in_leaf};

/// The leaves and the nodes above them.
#[derive(Debug, Clone)]
pub(super) struct NodeTree {
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
pub(super) type Step = (u32, usize);

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
