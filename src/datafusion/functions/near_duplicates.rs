//! The function `near_duplicates(corpus [, threshold] [, n] [, fold])`: pairs of documents that have
//! most of their n-grams in common.
//!
//! Pairs are sent while others are still looked for, so that `LIMIT 10` finds few. A corpus larger than
//! memory is read portion by portion, several times. Paths are looked up for many pairs at a time, because
//! their documents lie in all portions.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::arrow::array::Float64Array;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::doc_rows::path_of;
use super::portion_reader::PortionReader;
use super::sequence_rows::length;
use super::strings::{int64, shown_fold, views};
use crate::corpora::memory::Uses;
use crate::errors::core_error;
use crate::planning::function::{Definition, Facts, NO_KERNEL, Prepared, TableFunction, Walk};
use crate::planning::signature::{self, ArgumentKind, Signature};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::Corpus;
use tadoc::analytics::{self, CorpusParts, Fold, SimilarPair};

/// Number of pairs whose paths are looked up at a time.
const PAIRS_PER_LOOKUP: usize = 1 << 18;

/// The function `near_duplicates` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "near_duplicates",
        arguments: &[
            signature::CORPUS,
            signature::optional(
                "threshold",
                ArgumentKind::Number,
                "0.8",
                "least similarity of a pair, above 0 and up to 1",
            ),
            signature::optional("n", ArgumentKind::Integer, "5", "words of an n-gram"),
            signature::FOLD,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::integer("doc_id_a", "number of the first document of the pair"),
            signature::text("path_a", "its path"),
            signature::integer("doc_id_b", "number of the second document, which is higher"),
            signature::text("path_b", "its path"),
            signature::number("similarity", "distinct n-grams of both, divided by those of either"),
        ],
        summary: "pairs of documents that have most of their n-grams in common, by document",
    },
    bind: |arguments, _| {
        Arc::new(NearDuplicates {
            threshold: arguments.number("threshold").unwrap_or(0.8),
            num_words: length(arguments.integer("n"), 5),
            fold: arguments.fold("fold"),
        })
    },
};

#[derive(Debug)]
pub(crate) struct NearDuplicates {
    threshold: f64,
    num_words: usize,
    fold: Fold,
}

impl TableFunction for NearDuplicates {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn arguments(&self) -> Vec<(&'static str, String)> {
        let (threshold, n) = (self.threshold.to_string(), self.num_words.to_string());
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
            ordering: &["doc_id_a", "doc_id_b"],
            uses: Uses::Text,
            task: NO_KERNEL,
            walk: Some(Walk::Only(how)),
            ..Facts::default()
        }
    }

    fn run(self: Arc<Self>, run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let portions = PortionReader::open(&run, "NearDuplicates").await?;
            run.blocking(move |run| self.send_pairs(run, &portions)).await
        }
        .boxed()
    }
}

impl NearDuplicates {
    fn send_pairs(&self, mut run: Execution, portions: &PortionReader) -> Result<()> {
        match self.find_pairs(&mut run, portions) {
            Err(tadoc::Error::Cancelled) => Ok(()),
            sent => sent.map_err(|error| portions.error(error)),
        }
    }

    fn find_pairs(&self, run: &mut Execution, portions: &PortionReader) -> tadoc::Result<()> {
        let documents = analytics::NearDuplicates::new(
            portions,
            self.threshold,
            self.num_words,
            &self.fold,
            portions.memory_bytes(),
        )?;
        let needs_paths = run.scan.projects("path_a") || run.scan.projects("path_b");
        documents.for_each_pairs(|pairs| {
            for pairs in pairs.chunks(PAIRS_PER_LOOKUP) {
                let paths =
                    if needs_paths { Paths::from_pairs(pairs, &documents, portions)? } else { Paths::default() };
                if !send(run, pairs, &paths).map_err(core_error)? {
                    return Ok(false);
                }
            }
            Ok(true)
        })
    }
}

/// Sends the rows of `pairs`. Returns false if the function should stop.
fn send(run: &mut Execution, pairs: &[SimilarPair], paths: &Paths) -> Result<bool> {
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
    fn from_pairs(
        pairs: &[SimilarPair],
        documents: &analytics::NearDuplicates<'_, PortionReader>,
        portions: &PortionReader,
    ) -> tadoc::Result<Self> {
        let mut paths = Self::default();
        paths.doc_ids.extend(pairs.iter().flat_map(|pair| [pair.doc_id_a, pair.doc_id_b]));
        paths.doc_ids.sort_unstable();
        paths.doc_ids.dedup();
        let mut start = 0;
        for index in 0..portions.num_parts() {
            let (first, behind) = (documents.first_doc_id(index), documents.first_doc_id(index + 1));
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
