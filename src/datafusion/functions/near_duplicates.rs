//! Documents that have most of their n-grams in common: pairs of them by
//! `near_duplicates(corpus [, threshold] [, n] [, fold])`, and with the one to keep of those that pairs join by
//! `near_duplicate_clusters(corpus [, threshold] [, n] [, fold])`.
//!
//! ```text
//! SELECT … FROM 'c.tadoc' LEFT ANTI JOIN
//!   (SELECT doc_id FROM near_duplicate_clusters('c.tadoc') WHERE NOT is_kept) USING (doc_id)
//! ```
//!
//! A corpus larger than memory is read portion by portion, several times ([`PortionReader`]). Pairs are sent while
//! others are still looked for, so that `LIMIT 10` finds few. Their paths are looked up for many at a time, because
//! their documents lie in all portions. For clusters the core joins the pairs, so their number takes no memory, and
//! portions are read once more if paths are asked for.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::arrow::array::{BooleanArray, Float64Array};
use datafusion::error::Result;
use futures::future::BoxFuture;

use super::doc_rows::{path_of, paths};
use super::portion_reader::{LoadedPortion, PortionReader, with_portions};
use super::sequence_rows::length;
use super::strings::{int64, shown_fold, views};
use crate::corpora::memory::Uses;
use crate::errors::core_error;
use crate::planning::arguments::Arguments;
use crate::planning::function::{BoundFunction, Definition, Facts, NO_KERNEL, Prepared, TableFunction, Walk};
use crate::planning::signature::{self, Argument, ArgumentKind, ColumnKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::Corpus;
use tadoc::analytics::{self, ClusteredDoc, CorpusParts, Fold, SimilarPair};

/// Number of pairs whose paths are looked up at a time.
const PAIRS_PER_LOOKUP: usize = 1 << 18;

/// Arguments of both functions.
const ARGUMENTS: &[Argument] = &[
    signature::CORPUS,
    signature::optional("threshold", ArgumentKind::Number, "0.8", "least similarity of a pair, above 0 and up to 1"),
    signature::optional("n", ArgumentKind::Integer, "5", "words of an n-gram"),
    signature::FOLD,
    signature::VERSION,
    signature::WHERE,
];

/// The function `near_duplicates` in SQL.
pub(super) static PAIRS: Definition = Definition {
    signature: Signature {
        name: "near_duplicates",
        arguments: ARGUMENTS,
        columns: &[
            signature::integer("doc_id_a", "number of the first document of the pair"),
            signature::text("path_a", "its path"),
            signature::integer("doc_id_b", "number of the second document, which is higher"),
            signature::text("path_b", "its path"),
            signature::number("similarity", "distinct n-grams of both, divided by those of either"),
        ],
        summary: "pairs of documents that have most of their n-grams in common, by document",
    },
    bind: |arguments, _| bound(arguments, Rows::Pairs),
};

/// The function `near_duplicate_clusters` in SQL.
pub(super) static CLUSTERS: Definition = Definition {
    signature: Signature {
        name: "near_duplicate_clusters",
        arguments: ARGUMENTS,
        columns: &[
            signature::DOC_ID,
            signature::PATH,
            signature::integer("first_doc_id", "number of the first document of its cluster"),
            signature::integer("docs", "documents of the cluster, 2 or more"),
            signature::column("is_kept", ColumnKind::Boolean, "true for the first document of the cluster"),
        ],
        summary: "documents that pairs of near_duplicates join, with the one to keep, by document",
    },
    bind: |arguments, _| bound(arguments, Rows::Clusters),
};

fn bound(arguments: &Arguments, rows: Rows) -> BoundFunction {
    Arc::new(NearDuplicates {
        rows,
        threshold: arguments.number("threshold").unwrap_or(0.8),
        num_words: length(arguments.integer("n"), 5),
        fold: arguments.fold("fold"),
    })
}

#[derive(Debug, Clone, Copy)]
enum Rows {
    Pairs,
    Clusters,
}

#[derive(Debug)]
struct NearDuplicates {
    rows: Rows,
    threshold: f64,
    num_words: usize,
    fold: Fold,
}

/// Documents of which some are near duplicates.
type Documents<'a> = analytics::NearDuplicates<'a, PortionReader>;

impl TableFunction for NearDuplicates {
    fn signature(&self) -> &'static Signature {
        match self.rows {
            Rows::Pairs => &PAIRS.signature,
            Rows::Clusters => &CLUSTERS.signature,
        }
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let threshold = self.threshold.to_string();
        let n = self.num_words.to_string();
        let mut arguments = vec![("threshold", threshold), ("n", n)];
        arguments.extend(shown_fold(&self.fold));
        arguments
    }

    fn prepare(&self, _scan: &ScanSpec) -> Result<Prepared> {
        let checked = analytics::check_similarity(self.threshold, self.num_words);
        checked.map_err(|error| self.signature().error(error))?;
        Ok(Prepared::default())
    }

    fn facts(&self, _scan: &ScanSpec, _prepared: &Prepared) -> Facts {
        let how = "token_scan: sets of n-grams, those compared whose rarest n-grams meet";
        Facts {
            ordering: match self.rows {
                Rows::Pairs => &["doc_id_a", "doc_id_b"],
                Rows::Clusters => &["doc_id"],
            },
            uses: Uses::Text,
            task: NO_KERNEL,
            walk: Some(Walk::Only(how)),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        with_portions(run, "NearDuplicates", move |mut run, portions| match self.send_rows(&mut run, portions) {
            Err(tadoc::Error::Cancelled) => Ok(()),
            sent => sent.map_err(|error| portions.error(error)),
        })
    }
}

impl NearDuplicates {
    fn send_rows(&self, run: &mut Execution, portions: &PortionReader) -> tadoc::Result<()> {
        let memory_bytes = portions.memory_bytes();
        let documents = Documents::new(portions, self.threshold, self.num_words, &self.fold, memory_bytes)?;
        match self.rows {
            Rows::Pairs => send_pairs(run, &documents, portions),
            Rows::Clusters => send_clusters(run, documents, portions),
        }
    }
}

fn send_pairs(run: &mut Execution, documents: &Documents<'_>, portions: &PortionReader) -> tadoc::Result<()> {
    let needs_paths = run.scan.projects("path_a") || run.scan.projects("path_b");
    documents.for_each_pairs(|pairs| {
        for pairs in pairs.chunks(PAIRS_PER_LOOKUP) {
            let paths = if needs_paths { Paths::from_pairs(pairs, documents, portions)? } else { Paths::default() };
            if !send_some_pairs(run, pairs, &paths).map_err(core_error)? {
                return Ok(false);
            }
        }
        Ok(true)
    })
}

/// Sends the rows of `pairs`. Returns false if the function should stop.
fn send_some_pairs(run: &mut Execution, pairs: &[SimilarPair], paths: &Paths) -> Result<bool> {
    for pairs in pairs.chunks(run.output.batch_size()) {
        let ids = |id: fn(&SimilarPair) -> u64| pairs.iter().map(id);
        let more = run.send(pairs.len(), |column| match column {
            "doc_id_a" => int64(ids(|pair| pair.doc_id_a)),
            "path_a" => Ok(views(ids(|pair| pair.doc_id_a).map(|id| paths.get(id)))),
            "doc_id_b" => int64(ids(|pair| pair.doc_id_b)),
            "path_b" => Ok(views(ids(|pair| pair.doc_id_b).map(|id| paths.get(id)))),
            "similarity" => {
                let similarities = pairs.iter().map(|pair| pair.similarity);
                Ok(Arc::new(Float64Array::from_iter_values(similarities)))
            }
            other => no_column(other),
        })?;
        if !more {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Paths of documents.
#[derive(Default)]
struct Paths {
    doc_ids: Vec<u64>,
    /// Paths, one after another, and their ends.
    text: String,
    ends: Vec<usize>,
}

impl Paths {
    /// Reads the paths of the documents of `pairs`. Loads each portion that has one of them.
    fn from_pairs(pairs: &[SimilarPair], documents: &Documents<'_>, portions: &PortionReader) -> tadoc::Result<Self> {
        let mut paths = Self::default();
        paths.doc_ids.extend(pairs.iter().flat_map(|pair| [pair.doc_id_a, pair.doc_id_b]));
        paths.doc_ids.sort_unstable();
        paths.doc_ids.dedup();
        let mut start = 0;
        for index in 0..portions.num_parts() {
            let first = documents.first_doc_id(index);
            let behind = documents.first_doc_id(index + 1);
            let end = paths.doc_ids.partition_point(|&doc_id| doc_id < behind);
            if start == end {
                continue;
            }
            let portion = portions.part(index)?;
            let corpus: &Corpus = portion.borrow();
            for doc_id in &paths.doc_ids[start..end] {
                paths.text.push_str(path_of(corpus, doc_id - first));
                paths.ends.push(paths.text.len());
            }
            start = end;
            portions.hold(documents.memory_bytes() + paths.memory_bytes())?;
        }
        Ok(paths)
    }

    /// Returns the path of document `doc_id`; empty if it was not read.
    fn get(&self, doc_id: u64) -> &str {
        let Ok(at) = self.doc_ids.binary_search(&doc_id) else { return "" };
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[at]]
    }

    fn memory_bytes(&self) -> u64 {
        (self.text.capacity() + 8 * (self.ends.capacity() + self.doc_ids.capacity())) as u64
    }
}

fn send_clusters(run: &mut Execution, documents: Documents<'_>, portions: &PortionReader) -> tadoc::Result<()> {
    let starts: Vec<u64> = (0..=portions.num_parts()).map(|part| documents.first_doc_id(part)).collect();
    let clusters = documents.clusters()?;
    let needs_paths = run.scan.projects("path");
    for (index, bounds) in starts.windows(2).enumerate() {
        let mut docs = clusters.docs(bounds[0]..bounds[1]).peekable();
        if docs.peek().is_none() {
            continue;
        }
        let portion: Option<LoadedPortion> = if needs_paths { Some(portions.part(index)?) } else { None };
        let corpus: Option<&Corpus> = portion.as_ref().map(Borrow::borrow);
        while docs.peek().is_some() {
            let rows: Vec<ClusteredDoc> = docs.by_ref().take(run.output.batch_size()).collect();
            if !send_docs(run, &rows, corpus, bounds[0]).map_err(core_error)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// Sends the rows of documents of `corpus`, whose first one is `first_doc_id`. Returns false if the function should
/// stop.
fn send_docs(run: &mut Execution, docs: &[ClusteredDoc], corpus: Option<&Corpus>, first_doc_id: u64) -> Result<bool> {
    run.send(docs.len(), |column| match (column, corpus) {
        ("doc_id", _) => int64(docs.iter().map(|doc| doc.doc_id)),
        ("path", Some(corpus)) => {
            let ids: Vec<u64> = docs.iter().map(|doc| doc.doc_id - first_doc_id).collect();
            Ok(paths(corpus, &ids))
        }
        ("first_doc_id", _) => int64(docs.iter().map(|doc| doc.first_doc_id)),
        ("docs", _) => int64(docs.iter().map(|doc| doc.num_docs)),
        ("is_kept", _) => {
            let are_first: Vec<bool> = docs.iter().map(ClusteredDoc::is_first).collect();
            Ok(Arc::new(BooleanArray::from(are_first)))
        }
        (other, _) => no_column(other),
    })
}
