//! Shared code of functions that search: the query, the documents and segments that a partition
//! searches, the limit of hits, and the counts of words near hits.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::error::Result;

use super::doc_rows::{all_selected_documents, num_partitions, passing_documents};
use super::strings::{int64, shown_fold};
use crate::corpora::{LoadedCorpus, Sought};
use crate::errors::{datafusion_error, task_error};
use crate::planning::arguments::Arguments;
use crate::planning::function::{Facts, Merge, NO_KERNEL};
use crate::planning::signature::Signature;
use crate::planning::{Execution, ScanSpec};
use tadoc::analytics::Fold;
use tadoc::query::{NeighbourCounts, Query, QueryLimits, SearchOptions, Window, check_num_hits, count_neighbours};
use tadoc::segment::Corpus;

/// A query as it was written. The corpora of a scan determine how it is cut into words.
#[derive(Debug, Clone)]
pub(super) struct QueryText {
    text: String,
    fold: Fold,
    is_exact: bool,
}

impl QueryText {
    /// Reads the arguments `query`, `fold` and `exact`.
    pub(super) fn from_arguments(arguments: &Arguments) -> Self {
        Self {
            text: arguments.text("query").to_owned(),
            fold: arguments.fold("fold"),
            is_exact: arguments.boolean("exact"),
        }
    }

    /// Parses the query for `scan`.
    ///
    /// # Errors
    /// A plan error of the function with `signature`.
    pub(super) fn parse(&self, signature: &Signature, scan: &ScanSpec) -> Result<Query> {
        #[cfg(test)]
        tests::note_parsed(&self.text);
        let parse = if self.is_exact { Query::parse_exact } else { Query::parse_within };
        let query = parse(scan.source.profile(), &self.text, &limits(scan));
        let query = query.and_then(|query| query.folded(&self.fold));
        query.map_err(|error| signature.error(error))
    }

    /// Returns the normal form of `query` if it is more than a phrase, and the punctuation of its
    /// phrases that is ignored, for EXPLAIN.
    pub(super) fn explain(&self, scan: &ScanSpec, query: &Query) -> Vec<(&'static str, String)> {
        let is_plain = query.is_leaf() && query.items().len() == 1;
        let parsed = (!is_plain).then(|| ("parsed", query.to_string()));
        let profile = scan.source.profile();
        let ignored = Query::ignored_punctuation(profile, &self.text, &limits(scan));
        let ignored = ignored.ok().filter(|all| !self.is_exact && !all.is_empty());
        let ignored = ignored.map(|all| ("ignored", all.join(" ")));
        parsed.into_iter().chain(ignored).collect()
    }

    /// Returns the facts of a function that lists the hits of `query`.
    pub(super) fn hit_facts(&self, scan: &ScanSpec, query: &Query) -> Facts {
        let mut explain = self.explain(scan, query);
        explain.push(("hits", format!("at most {}", scan.options.max_hits)));
        Facts {
            ordering: &["doc_id"],
            num_partitions: num_search_partitions(scan, query),
            finds_few: true,
            merge: Merge::Behind,
            task: NO_KERNEL,
            explain,
            ..Facts::default()
        }
    }

    /// Returns the arguments for EXPLAIN.
    pub(super) fn shown(&self) -> Vec<(&'static str, String)> {
        let query = ("query", self.text.clone());
        let exact = self.is_exact.then(|| ("exact", "true".to_owned()));
        [query].into_iter().chain(shown_fold(&self.fold)).chain(exact).collect()
    }
}

fn limits(scan: &ScanSpec) -> QueryLimits {
    let options = &scan.options;
    QueryLimits { max_bytes: options.max_query_bytes, max_terms: options.max_query_terms }
}

/// Returns the corpus, with the segments that `query` needs in document `doc_id`, or in all documents
/// that pass the filters on `doc_id`.
pub(super) async fn load_searched(run: &Execution, query: &Query, doc_id: Option<u64>) -> Result<Arc<LoadedCorpus>> {
    let doc_ids = match doc_id {
        Some(doc_id) => Some(vec![doc_id]),
        None => sought_documents(run).await?,
    };
    let num_hits = run.scan.limit.filter(|_| are_first_enough(run, query) && doc_ids.is_none());
    let num_hits = num_hits.map(|limit| limit as u64);
    let sought = Sought { query: Some(query.clone()), doc_ids, num_hits, ..Sought::default() };
    let loaded = run.load_sought(sought).await?;
    if let Some(doc_id) = doc_id {
        run.note_kept(&(0..run.scan.num_doc_ids()), &[doc_id]);
    }
    Ok(loaded)
}

/// Returns true if the first occurrences of the words of `query` are the first rows of a search.
fn are_first_enough(run: &Execution, query: &Query) -> bool {
    let is_word = query.is_leaf() && query.is_of_words();
    is_word && !run.scan.is_filtered() && run.scan.source.dropped().is_empty()
}

/// Variant of [`load_searched`] for functions that ask for nothing but the numbers of the leaves of `query`
/// in documents. Returns the query, too, as it is asked of this corpus.
pub(super) async fn load_counted(run: &Execution, query: &Query) -> Result<(Arc<LoadedCorpus>, Query)> {
    let doc_ids = sought_documents(run).await?;
    run.load_counted(query, Sought { query: Some(query.clone()), doc_ids, ..Sought::default() }).await
}

/// Returns the documents of all partitions that pass the filters on `doc_id`, ascending, if they choose
/// segments to load. Returns `None` if there are no filters or the corpus is in memory.
pub(super) async fn sought_documents(run: &Execution) -> Result<Option<Vec<u64>>> {
    if !run.scan.is_filtered() || run.cache.loaded(&run.scan.source).is_some() {
        return Ok(None);
    }
    let scan = Arc::clone(&run.scan);
    let ids = 0..scan.num_doc_ids();
    let pick = move || passing_documents(&scan, ids, |_, ids| int64(ids.iter().copied()));
    Ok(Some(tokio::task::spawn_blocking(pick).await.map_err(task_error)??))
}

/// State that the partitions of a search share.
pub(super) struct Searched {
    docs: Option<Vec<u64>>,
    pub(super) num_hits: NumHits,
}

impl Searched {
    /// Returns the state of a search. The first partition makes it.
    pub(super) fn shared(run: &Execution) -> Result<Arc<Self>> {
        run.shared.once(|| {
            let docs = if run.scan.is_filtered() {
                Some(all_selected_documents(run)?.iter().collect::<Vec<u64>>())
            } else {
                None
            };
            if let Some(docs) = &docs {
                run.counter("documents_searched").add(docs.len());
            }
            Ok(Self { docs, num_hits: NumHits::new(run) })
        })
    }

    /// Returns the documents that are searched, ascending: those of all partitions that pass the filters on
    /// `doc_id`, as partitions divide the segments and a document may be in several. Returns `None` if
    /// there are no filters.
    pub(super) fn docs(&self) -> Option<&[u64]> {
        self.docs.as_deref()
    }
}

/// Number of hits that all partitions have found together.
pub(super) struct NumHits {
    found: AtomicU64,
    max_hits: u64,
}

impl NumHits {
    fn new(run: &Execution) -> Self {
        Self { found: AtomicU64::new(0), max_hits: run.scan.options.max_hits }
    }

    /// Returns the number of an execution that shares nothing else.
    pub(super) fn shared(run: &Execution) -> Result<Arc<Self>> {
        run.shared.once(|| Ok(Self::new(run)))
    }

    /// Adds `num_hits`.
    ///
    /// # Errors
    /// An error if there are more hits than `tadoc.max_hits`.
    pub(super) fn add(&self, num_hits: usize) -> Result<()> {
        let found = self.found.fetch_add(num_hits as u64, Ordering::Relaxed) + num_hits as u64;
        check_num_hits(found, self.max_hits).map_err(datafusion_error)
    }
}

/// Returns the number of partitions that are worth their threads if segments are searched. It is
/// one if only some documents or rows are asked for. It is also one if `query` has several leaves,
/// because each partition would first have to count the documents of all leaves.
fn num_search_partitions(scan: &ScanSpec, query: &Query) -> usize {
    if scan.is_filtered() || scan.limit.is_some() || !query.is_leaf() {
        return 1;
    }
    let segments = scan.corpora().iter().map(|open| open.footer.segments.len());
    num_partitions(scan).min(segments.sum()).max(1)
}

/// Returns the segments of `corpus` that the run's partition searches. Partitions have equal
/// shares, in order.
pub(super) fn searched_segments(run: &Execution, corpus: &Corpus) -> Range<usize> {
    let share = |partition: usize| corpus.segments().len() * partition / run.plan.num_partitions;
    share(run.partition)..share(run.partition + 1)
}

/// Returns the outcome of a search whose rows were sent while it ran. An error of sending has
/// priority. A search that was cancelled because nobody reads any more is no error.
pub(super) fn finished(sent: Result<()>, searched: tadoc::Result<()>) -> Result<()> {
    sent?;
    match searched {
        Err(tadoc::Error::Cancelled) => Ok(()),
        other => other.map_err(datafusion_error),
    }
}

/// Bytes of a row in the end for each byte of a count: the word as text, and numbers.
const ROW_BYTES_FOR_EACH: usize = 4;

/// Counts the words in the windows of all hits of `query`. Hits are not listed, so their number has no
/// limit. Returns `None` if the reader has left.
pub(super) fn count_near(
    run: &Execution,
    loaded: &LoadedCorpus,
    query: &Query,
    window: Window,
) -> Result<Option<NeighbourCounts>> {
    let cancel = run.output.canceller();
    let is_cancelled = move || cancel.is_closed();
    let options = SearchOptions { max_hits: u64::MAX, is_cancelled: &is_cancelled, ..Default::default() };
    let reservation = run.reservation("Neighbours");
    let mut reserved = Ok(());
    let mut keep = |counts: &NeighbourCounts| {
        reserved = reservation.try_resize(ROW_BYTES_FOR_EACH * counts.memory_bytes());
        if reserved.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let segments = 0..loaded.corpus.segments().len();
    let counts = count_neighbours(&loaded.corpus, query, segments, window, &options, &mut keep);
    reserved?;
    match counts {
        Ok(counts) => {
            run.counter("hits").add(usize::try_from(counts.num_hits()).unwrap_or(usize::MAX));
            Ok(Some(counts))
        }
        Err(tadoc::Error::Cancelled) => Ok(None),
        Err(error) => Err(datafusion_error(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use datafusion::arrow::array::RecordBatch;
    use datafusion::prelude::{SessionConfig, SessionContext};

    /// The texts of queries that were parsed.
    static PARSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

    pub(super) fn note_parsed(text: &str) {
        PARSED.lock().unwrap().push(text.to_owned());
    }

    fn session() -> SessionContext {
        let config = SessionConfig::new().with_target_partitions(3);
        let context = SessionContext::new_with_config(config);
        crate::register_all(&context).unwrap();
        context
    }

    async fn run(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
        context.sql(sql).await.unwrap().collect().await.unwrap()
    }

    fn times_parsed(query: &str) -> usize {
        PARSED.lock().unwrap().iter().filter(|parsed| *parsed == query).count()
    }

    #[tokio::test]
    async fn a_statement_parses_its_query_once() {
        let folder = tempfile::tempdir().unwrap();
        let corpus = folder.path().join("c.tadoc").display().to_string();
        let context = session();
        // Blocks of some texts, so that partitions divide segments.
        let copy = format!(
            "COPY (SELECT CAST(value AS TEXT) AS path, repeat('a storm of ' || value || ' ', 99) AS text \
             FROM range(0, 300)) TO '{corpus}' STORED AS TADOC OPTIONS ('tadoc.block_bytes' '64KiB')"
        );
        run(&context, &copy).await;
        for (number, call) in [
            "search('{c}', '{q}')",
            "term_count('{c}', '{q}')",
            "kwic('{c}', '{q}')",
            "collocates('{c}', '{q}')",
            "rank('{c}', '{q}')",
        ]
        .into_iter()
        .enumerate()
        {
            let query = format!("storm AND {number}");
            let call = call.replace("{c}", &corpus).replace("{q}", &query);
            let rows = run(&context, &format!("SELECT * FROM {call}")).await;
            assert!(rows.iter().any(|batch| batch.num_rows() > 0), "{call}");
            assert_eq!(times_parsed(&query), 1, "{call}");
        }
        // Portions share what the scan of the whole corpus prepared.
        let context = session();
        run(&context, "SET tadoc.max_memory_bytes = '4MiB'").await;
        let query = "storm AND 99";
        let sql = format!("SELECT * FROM search('{corpus}', '{query}')");
        let rows = context.sql(&sql).await.unwrap();
        let plan = rows.clone().explain(false, false).unwrap().to_string().await.unwrap();
        assert!(plan.contains("TadocPortionsExec"), "{plan}");
        let before = times_parsed(query);
        assert!(!rows.collect().await.unwrap().is_empty());
        assert_eq!(times_parsed(query) - before, 1);
    }
}
