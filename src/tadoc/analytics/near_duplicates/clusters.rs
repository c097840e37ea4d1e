//! Clusters of near duplicates: documents that pairs join, directly or through others.
//!
//! ```text
//! pairs      0, 4    1, 2    4, 7          parent   0  1  1  3  0  5  6  0
//! clusters   0: 0 4 7    1: 1 2            3, 5 and 6 are alone
//! ```
//!
//! A cluster is named by its first document, which is the one to keep. Two documents of a cluster
//! need not be similar themselves: 0 and 7 are not. The clusters do not depend on the order of the
//! pairs. Of documents with equal n-grams only the first has pairs with others, and it has one with
//! each of them. So the clusters are those of all pairs.
//!
//! A forest with a parent for each document (Galler, Fischer, "An improved equivalence algorithm",
//! CACM 1964), in which a parent is never behind its child, with paths that are halved. O(log
//! documents) for each pair, amortized. 8 bytes of memory for each document beside the search.

use super::NearDuplicates;
use crate::analytics::task_limits::CorpusParts;
use crate::error::Result;

/// Bytes of memory for each document: its parent, and the number of documents.
const CLUSTER_BYTES: u64 = 8;

/// Clusters of near duplicates.
#[derive(Debug, Clone)]
pub struct DuplicateClusters {
    /// First document of the cluster of each document.
    firsts: Vec<u32>,
    /// Number of documents of each cluster, at its first document.
    lens: Vec<u32>,
}

/// A document that has near duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusteredDoc {
    /// Id of the document.
    pub doc_id: u64,
    /// Id of the first document of its cluster.
    pub first_doc_id: u64,
    /// Number of documents of the cluster, 2 or more.
    pub num_docs: u64,
}

impl ClusteredDoc {
    /// Returns true if the document is the first of its cluster.
    pub fn is_first(&self) -> bool {
        self.doc_id == self.first_doc_id
    }
}

impl DuplicateClusters {
    /// Puts each of `num_docs` documents into a cluster of its own.
    fn new(num_docs: u32) -> Self {
        Self { firsts: (0..num_docs).collect(), lens: Vec::new() }
    }

    /// Joins the clusters of two documents.
    fn join(&mut self, a: u32, b: u32) {
        let a = self.root(a);
        let b = self.root(b);
        self.firsts[a.max(b) as usize] = a.min(b);
    }

    /// Returns the first document that is reached from `doc`, and halves the path to it.
    fn root(&mut self, mut doc: u32) -> u32 {
        while self.firsts[doc as usize] != doc {
            let parent = self.firsts[doc as usize];
            self.firsts[doc as usize] = self.firsts[parent as usize];
            doc = self.firsts[doc as usize];
        }
        doc
    }

    /// Leads each document to the first of its cluster, and counts the documents.
    fn finish(&mut self) {
        self.lens = vec![0; self.firsts.len()];
        for doc in 0..self.firsts.len() {
            // No parent is behind its child, so the parent is done.
            let first = self.firsts[self.firsts[doc] as usize];
            self.firsts[doc] = first;
            self.lens[first as usize] += 1;
        }
    }

    /// Returns the documents with an id in `doc_ids` that have near duplicates, ascending.
    pub fn docs(&self, doc_ids: std::ops::Range<u64>) -> impl Iterator<Item = ClusteredDoc> + '_ {
        let all = |id: u64| usize::try_from(id).unwrap_or(usize::MAX).min(self.firsts.len());
        let start = all(doc_ids.start);
        let end = all(doc_ids.end);
        let docs = (start..end).map(|doc| {
            let first = self.firsts[doc];
            let num_docs = self.lens[first as usize];
            ClusteredDoc { doc_id: doc as u64, first_doc_id: first.into(), num_docs: num_docs.into() }
        });
        docs.filter(|doc| doc.num_docs > 1)
    }
}

impl<P: CorpusParts + Sync> NearDuplicates<'_, P> {
    /// Returns the clusters that all pairs make.
    ///
    /// ```
    /// use tadoc::Corpus;
    /// use tadoc::analytics::{Fold, NearDuplicates, OnePart};
    /// use tadoc::build::{CorpusBuilder, IngestOptions};
    /// use tadoc::format::OpenLimits;
    ///
    /// # fn main() -> tadoc::Result<()> {
    /// let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default())?;
    /// for text in ["a b c d e", "alone", "a b c d f", "b c d f g"] {
    ///     builder.push_document("a path", text.as_bytes())?;
    /// }
    /// let (file, _report) = builder.finish(None)?;
    /// let (_footer, corpus) = Corpus::from_bytes("c.tadoc", &file, &OpenLimits::default())?;
    ///
    /// let parts = OnePart(&corpus);
    /// let clusters = NearDuplicates::new(&parts, 0.6, 2, &Fold::NONE, 1 << 30)?.clusters()?;
    /// let docs: Vec<u64> = clusters.docs(0..4).map(|doc| doc.doc_id).collect();
    /// assert_eq!(docs, [0, 2, 3]);
    /// assert!(clusters.docs(1..4).all(|doc| doc.first_doc_id == 0 && doc.num_docs == 3));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`for_each_pairs`](Self::for_each_pairs).
    pub fn clusters(mut self) -> Result<DuplicateClusters> {
        let num_docs = self.documents.len() as u32;
        self.bytes_beside = CLUSTER_BYTES * u64::from(num_docs);
        self.task.hold(self.memory_bytes())?;
        let mut clusters = DuplicateClusters::new(num_docs);
        self.for_each_pairs(|pairs| {
            for pair in pairs {
                // Documents have numbers of 32 bits.
                clusters.join(pair.doc_id_a as u32, pair.doc_id_b as u32);
            }
            Ok(true)
        })?;
        clusters.finish();
        Ok(clusters)
    }
}
