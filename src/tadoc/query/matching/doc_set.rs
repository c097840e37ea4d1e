//! Set of documents of one segment, as a bitmap with one bit for each document.

use crate::ids::DocId;

/// A set of documents of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocSet {
    bits: Vec<u64>,
    num_docs: usize,
}

impl DocSet {
    /// Creates an empty set for a segment with `num_docs` documents.
    pub fn none(num_docs: usize) -> Self {
        Self { bits: vec![0; num_docs.div_ceil(64)], num_docs }
    }

    /// Creates the set of all documents of a segment with `num_docs` documents.
    pub fn all(num_docs: usize) -> Self {
        let mut bits = vec![u64::MAX; num_docs.div_ceil(64)];
        if let Some(last) = bits.last_mut().filter(|_| !num_docs.is_multiple_of(64)) {
            *last = (1 << (num_docs % 64)) - 1;
        }
        Self { bits, num_docs }
    }

    /// Returns the number of documents of the segment, in the set or not.
    pub fn num_docs(&self) -> usize {
        self.num_docs
    }

    /// Returns the number of documents in the set.
    pub fn len(&self) -> usize {
        self.bits.iter().map(|bits| bits.count_ones() as usize).sum()
    }

    /// Returns true if no document is in the set.
    pub fn is_empty(&self) -> bool {
        self.bits.iter().all(|&bits| bits == 0)
    }

    /// Returns true if `doc` is in the set. It is false beyond the segment.
    #[inline]
    pub fn contains(&self, doc: DocId) -> bool {
        let doc = doc.index();
        self.bits.get(doc / 64).is_some_and(|bits| bits >> (doc % 64) & 1 != 0)
    }

    /// Adds `doc`, which must be below [`num_docs`](Self::num_docs). Returns true if it was not in
    /// the set.
    #[inline]
    pub fn insert(&mut self, doc: DocId) -> bool {
        let doc = doc.index();
        debug_assert!(doc < self.num_docs);
        let bits = &mut self.bits[doc / 64];
        let is_new = *bits >> (doc % 64) & 1 == 0;
        *bits |= 1 << (doc % 64);
        is_new
    }

    /// Removes all documents that are not in `other`, a set of the same segment.
    pub fn intersect(&mut self, other: &DocSet) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(bits, other)| *bits &= other);
    }

    /// Returns the documents, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = DocId> + '_ {
        self.bits.iter().enumerate().flat_map(|(at, &bits)| {
            let mut rest = bits;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
                rest &= rest - 1;
                Some(DocId::from_index(at * 64 + bit))
            })
        })
    }
}

impl Extend<DocId> for DocSet {
    fn extend<I: IntoIterator<Item = DocId>>(&mut self, docs: I) {
        for doc in docs {
            self.insert(doc);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn agrees_with_a_tree_set(
            num_docs in 0_usize..200,
            a in prop::collection::btree_set((0u32..200).prop_map(DocId::from), 0..50),
            b in prop::collection::btree_set((0u32..200).prop_map(DocId::from), 0..50),
        ) {
            let is_here = |doc: &DocId| doc.index() < num_docs;
            let set_of = |docs: &BTreeSet<DocId>| {
                let mut set = DocSet::none(num_docs);
                docs.iter().copied().filter(is_here).for_each(|doc| {
                    assert!(set.insert(doc) && !set.insert(doc));
                });
                set
            };
            let mut both = set_of(&a);
            prop_assert_eq!(both.len(), a.iter().copied().filter(is_here).count());
            both.intersect(&set_of(&b));
            let slow: Vec<DocId> = a.intersection(&b).copied().filter(is_here).collect();
            prop_assert_eq!(both.iter().collect::<Vec<_>>(), slow.clone());
            prop_assert_eq!(both.is_empty(), slow.is_empty());
            prop_assert!(DocId::range(0..210).all(|doc| both.contains(doc) == slow.contains(&doc)));
            let all = DocSet::all(num_docs);
            prop_assert!(all.iter().eq(DocId::range(0..num_docs)));
            prop_assert_eq!((all.len(), all.num_docs()), (num_docs, num_docs));
        }
    }
}
