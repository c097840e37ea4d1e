//! Table functions, one per file, and the trait they share.
//!
//! A function is bound to its arguments while the query is planned (no I/O), prepared when the
//! scan is made (files and footers are known, so that more can be refused with a plan error), and
//! run once per partition.

mod cooccurrence;
mod corpus_info;
mod corpus_verify;
mod doc_rows;
mod doc_term_matrix;
mod document_source;
mod documents;
mod extract;
mod few_documents;
mod ingestion_model;
mod inverted_index;
mod kwic;
mod ranked_inverted_index;
mod read_lines;
mod read_text;
mod repeated_phrases;
mod scalar;
mod search;
mod sequence_count;
mod sequence_rows;
mod sequence_texts;
mod strings;
mod term_count;
mod term_vector;
mod tfidf;
mod tokens;
mod verify_version;
mod word_count;

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::not_impl_err;
use datafusion::common::stats::Precision;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlanBuilder;
use futures::future::BoxFuture;

use super::arguments::Arguments;
use super::corpora::CorpusCache;
use super::device_tasks::Task;
use super::memory::Uses;
use super::portions::{Merge, OfPortion, PortionRows};
use super::scan::{Run, Scan};
use super::signature::{SIGNATURES, Signature};
use super::table::{TadocTable, registered_now};

pub(crate) use documents::Documents;
pub(crate) use scalar::{CorpusFunction, Home};

/// What a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Corpora, whose footers are read and checked when the scan is made.
    Corpora,
    /// Corpora that may be damaged: nothing is read when the scan is made.
    UncheckedCorpora,
    /// Any files.
    Files,
    /// None.
    Nothing,
}

/// A table function bound to its arguments.
pub(crate) trait TableFunction: Debug + Send + Sync + 'static {
    /// Its entry in the table of signatures.
    fn signature(&self) -> &'static Signature;

    /// All its columns.
    fn schema(&self) -> SchemaRef {
        self.signature().schema()
    }

    /// What it reads.
    fn reads(&self) -> Reads {
        Reads::Corpora
    }

    /// Arguments after the location, for EXPLAIN.
    fn arguments(&self) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// Whether filters on this column are evaluated inside.
    fn claims_column(&self, _column: &str) -> bool {
        false
    }

    /// Whether a filter on this column needs decoded text.
    fn needs_text(&self, _column: &str) -> bool {
        false
    }

    /// Columns by which every partition is sorted, ascending.
    fn ordering(&self, _scan: &Scan) -> &'static [&'static str] {
        &[]
    }

    /// Checks arguments against what the footers say.
    ///
    /// # Errors
    /// A plan error.
    fn prepare(&self, _scan: &Scan) -> Result<()> {
        Ok(())
    }

    /// Rows without filter and limit.
    fn num_rows(&self, _scan: &Scan) -> Precision<usize> {
        Precision::Absent
    }

    /// Partitions worth having, at most `target`.
    fn num_partitions(&self, _scan: &Scan, _target: usize) -> usize {
        1
    }

    /// Bytes of a row by the mean, of the segment with the longest; 0 where rows are some numbers and words.
    fn row_bytes(&self, _scan: &Scan) -> u64 {
        0
    }

    /// What it uses of segments, behind filters that need no text.
    fn uses(&self, _scan: &Scan) -> Uses {
        Uses::Places
    }

    /// Whether rows that a device counted can go out of any number of partitions.
    fn can_spread(&self) -> bool {
        false
    }

    /// What rows of parts of a corpus become together, where memory has no room for all of it.
    fn merge(&self, _scan: &Scan) -> Merge {
        Merge::Never
    }

    /// How rows of the whole are made of `rows` of portions, for [`Merge::Combined`]: a plan with the columns that are asked for.
    ///
    /// # Errors
    /// Those of planning.
    fn combine(&self, _rows: &PortionRows<'_>) -> Result<LogicalPlanBuilder> {
        not_impl_err!("{} of portions", self.signature().name)
    }

    /// Whether of rows that [`combine`](Self::combine) makes those of one word become one, with the documents of all.
    fn joins_lists(&self) -> bool {
        false
    }

    /// What is asked of a part of the corpus that has the documents `docs`.
    fn of_portion(&self, _docs: Range<u64>) -> OfPortion {
        OfPortion::Same
    }

    /// What a device would do for a scan, or why none is asked.
    ///
    /// # Errors
    /// The reason.
    fn device_task(&self, _scan: &Scan) -> std::result::Result<Task, &'static str> {
        Err("there is no kernel for this function")
    }

    /// How the answer is computed, for EXPLAIN.
    fn explain(&self, _scan: &Scan) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// Sends the rows of one partition.
    fn run(self: Arc<Self>, run: Run) -> BoxFuture<'static, Result<()>>;
}

/// Binds the function of `signature` to `arguments`.
fn bind(
    signature: &'static Signature,
    arguments: &Arguments,
    session: &dyn Session,
) -> Arc<dyn TableFunction> {
    match signature.name {
        "documents" => {
            let table = registered_now(session, arguments.text(0));
            Arc::new(Documents::new(table.map(|t| t.user_columns()).unwrap_or_default()))
        }
        "word_count" => Arc::new(word_count::WordCount::new(arguments.boolean(1))),
        "word_sort" => Arc::new(word_count::WordCount::sorted(arguments.boolean(1))),
        "inverted_index" => Arc::new(inverted_index::InvertedIndex::new(arguments.boolean(1))),
        "term_vector" => {
            Arc::new(term_vector::TermVector::new(arguments.integer(1), arguments.boolean(2)))
        }
        "tfidf" => Arc::new(tfidf::Tfidf::new(arguments.integer(1), arguments.boolean(2))),
        "doc_term_matrix" => Arc::new(doc_term_matrix::DocTermMatrix::new(arguments.boolean(1))),
        "tokens" => Arc::new(tokens::Tokens::new(arguments.boolean(1))),
        "sequence_count" => {
            let (by_doc, is_folded) = (arguments.boolean(2), arguments.boolean(3));
            Arc::new(sequence_count::SequenceCount::new(arguments.integer(1), by_doc, is_folded))
        }
        "ranked_inverted_index" => {
            let num_words = arguments.integer(1);
            let is_folded = arguments.boolean(2);
            Arc::new(ranked_inverted_index::RankedInvertedIndex::new(num_words, is_folded))
        }
        "cooccurrence" => {
            let (window, min_count) = (arguments.integer(1), arguments.integer(2));
            Arc::new(cooccurrence::Cooccurrence::new(window, min_count, arguments.boolean(3)))
        }
        "repeated_phrases" => {
            let (min_words, min_count) = (arguments.integer(1), arguments.integer(2));
            let is_folded = arguments.boolean(3);
            Arc::new(repeated_phrases::RepeatedPhrases::new(min_words, min_count, is_folded))
        }
        "term_count" => {
            Arc::new(term_count::TermCount::new(arguments.text(1), arguments.boolean(2)))
        }
        "kwic" => {
            let (width, is_folded) = (arguments.integer(2), arguments.boolean(3));
            Arc::new(kwic::Kwic::new(arguments.text(1), width, is_folded))
        }
        "search" => {
            let (doc_id, is_folded) = (arguments.integer(2), arguments.boolean(3));
            Arc::new(search::Search::new(arguments.text(1), doc_id, is_folded))
        }
        "extract" => Arc::new(extract::Extract::new(
            arguments.integer(1).unwrap_or_default(),
            arguments.integer(2).unwrap_or_default(),
            arguments.integer(3).unwrap_or_default(),
        )),
        "corpus_info" => Arc::new(corpus_info::CorpusInfo),
        "corpus_verify" => Arc::new(corpus_verify::CorpusVerify),
        "read_text" => Arc::new(read_text::ReadText),
        "ingestion_model" => Arc::new(ingestion_model::IngestionModel::new(arguments.number(0))),
        _ => Arc::new(read_lines::ReadLines),
    }
}

/// DataFusion's view of one of our functions: parses arguments, nothing else.
#[derive(Debug)]
pub(crate) struct TadocFunction {
    signature: &'static Signature,
    cache: Arc<CorpusCache>,
}

impl TadocFunction {
    /// Every function of the table of signatures, over one cache.
    pub(crate) fn all(cache: &Arc<CorpusCache>) -> impl Iterator<Item = (&'static str, Arc<Self>)> {
        let function = |signature| Self { signature, cache: Arc::clone(cache) };
        SIGNATURES.iter().map(move |signature| (signature.name, Arc::new(function(signature))))
    }
}

impl TableFunctionImpl for TadocFunction {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let arguments = Arguments::parse(self.signature, args.exprs())?;
        let function = bind(self.signature, &arguments, args.session());
        let location = arguments.shown(0);
        let version = arguments.version(self.signature);
        let table = TadocTable::new(function, location, Arc::clone(&self.cache));
        Ok(Arc::new(table.with_version(version)))
    }
}
