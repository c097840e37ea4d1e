//! The sources of the rows of `documents`: a query reads no more of a corpus than it uses.
//!
//! | the query uses | data that is read |
//! | --- | --- |
//! | ids and user columns | nothing of the corpus |
//! | of a living corpus, paths too | path sections of its files, or of those with ids that pass |
//! | paths and lengths, and no edit changed a text | their sections of files, or of those with ids that pass |
//! | of a living corpus, lengths or texts of few documents | their files and edits |
//! | texts that are filtered on | dictionaries, and the segments whose words the filters demand |
//! | of files, texts of documents that other columns choose | their columns or facts, and the segments with these documents |
//! | anything else, or a corpus that is loaded already | the corpus |
//!
//! A version is assembled with all its edits, for all statements that follow. A statement that changes one row need not
//! wait for that. The documents that a query reads are known before only if its filters are on ids, paths, lengths and
//! user columns.
//!
//! ```text
//! ids 3, 40   parts   [ file A: 0..9 ][ edits of 7: 9..11 ][ file B: 11..30 ][ file C: 30.. ]
//!             loaded        A                                                      C
//! ```
//!
//! [`FewDocuments`] takes O(edits) plus the time for the files that hold them.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, UInt64Array};
use datafusion::arrow::compute::take;
use datafusion::common::internal_err;
use datafusion::error::Result;

use super::doc_rows::{DOC_ID, passing_documents, path_of, range_of};
use super::strings::{int64, views};
use crate::corpora::living::{LivingView, PathTable};
use crate::corpora::loaded::LoadedFile;
use crate::corpora::{FactTable, LoadedCorpus, Sought};
use crate::errors::{datafusion_error, task_error};
use crate::planning::{Execution, ScanSpec, no_column};
use tadoc::edits::{Edit, LivingCorpus};
use tadoc::error::Error;
use tadoc::read::{DocumentDecoder, ExtractQuery, document_len_bytes, document_num_words, extract_into};
use tadoc::segment::Corpus;
use tadoc_store::assemble_documents;

/// Columns of facts that files have beside their grammars.
const FACTS: [&str; 3] = ["path", "bytes", "words"];
/// Columns that are made of texts.
const TEXTS: [&str; 2] = ["text", "content"];

/// User columns that a query needs, by name.
pub(super) type UserColumns = Arc<HashMap<String, ArrayRef>>;

/// Returns true if `name` is a user column.
pub(super) fn is_user(name: &str) -> bool {
    name != DOC_ID && !FACTS.contains(&name) && !TEXTS.contains(&name)
}

/// Source of the rows of `documents`. See the module's description.
pub(super) enum DocumentSource {
    /// Nothing of the corpus is used.
    Ids,
    /// Only paths of the corpus are used.
    Named(PathTable),
    /// Only paths and lengths of documents are used.
    Facts(FactTable),
    Made(Arc<LoadedCorpus>, DocumentDecoder),
    /// Few documents, and the bytes of texts that were appended and not yet taken.
    Few(FewDocuments, Vec<u8>),
}

impl DocumentSource {
    /// Opens the source that the scan of `run` needs. Also returns the ids of the rows before
    /// filters on text, if opening the source has found them.
    pub(super) async fn open(run: &Execution, user: &UserColumns) -> Result<(Self, Option<Vec<u64>>)> {
        let scan = &run.scan;
        if !FACTS.iter().chain(&TEXTS).any(|name| scan.uses(name)) {
            return Ok((Self::Ids, None));
        }
        let uses_lengths = scan.uses("bytes") || scan.uses("words");
        if are_facts_enough(scan)
            && (uses_lengths || scan.living().is_none())
            && run.cache.loaded(&scan.source).is_none()
        {
            return Self::from_facts(run, user).await;
        }
        if let Some(view) = scan.living()
            && may_be_few(scan)
            && run.cache.loaded(&scan.source).is_none()
            && let Some(few) = Self::from_few(run, view, user).await?
        {
            return Ok(few);
        }
        let passing = if tells_before(scan) && run.cache.loaded(&scan.source).is_none() {
            Some(run.shared.passing.get_or_try_init(|| passing(run, user)).await?)
        } else {
            None
        };
        let doc_ids = passing.cloned().or_else(|| first_documents(scan));
        let loaded = if scan.filters.demands.is_empty() && doc_ids.is_none() {
            run.load().await?
        } else {
            let demands = scan.filters.demands.clone();
            run.load_sought(Sought { demands, doc_ids: doc_ids.clone(), ..Sought::default() }).await?
        };
        let decoder = DocumentDecoder::new(loaded.corpus.clone(), max_output_bytes(scan));
        let ids = doc_ids.map(|ids| {
            let range = range_of(run);
            let [begin, end] = [range.start, range.end].map(|at| ids.partition_point(|&id| id < at));
            if passing.is_some() {
                run.counter("documents_pruned_by_columns").add(scan.num_docs_of(range) - (end - begin));
            }
            ids[begin..end].to_vec()
        });
        Ok((Self::Made(loaded, decoder), ids))
    }

    /// Opens the source of document `id`, which exists.
    pub(super) async fn from_document(run: &Execution, id: u64) -> Result<Self> {
        let scan = &run.scan;
        if let Some(view) = scan.living()
            && run.cache.loaded(&scan.source).is_none()
            && FewDocuments::are_few(view, &[id])
        {
            let few = FewDocuments::read(run, view, &[id], max_output_bytes(scan)).await?;
            return Ok(Self::Few(few, Vec::new()));
        }
        let loaded = run.load_sought(Sought { doc_ids: Some(vec![id]), ..Sought::default() }).await?;
        run.note_kept(&(0..scan.num_doc_ids()), &[id]);
        let decoder = DocumentDecoder::new(loaded.corpus.clone(), max_output_bytes(scan));
        Ok(Self::Made(loaded, decoder))
    }

    /// Opens the source of paths and lengths. If the filters need no more than ids and user columns,
    /// only the files with documents that pass are read, and the ids of these documents are returned.
    async fn from_facts(run: &Execution, user: &UserColumns) -> Result<(Self, Option<Vec<u64>>)> {
        let scan = &run.scan;
        if !scan.is_filtered() || !scan.filters_only_on(|name| name == DOC_ID || is_user(name)) {
            return Ok((Self::Facts(run.load_facts(None).await?), None));
        }
        let range = range_of(run);
        let num_docs = scan.num_docs_of(range.clone());
        let picking = Picking { scan: Arc::clone(scan), names: Names::None, user: Arc::clone(user) };
        let pick = move || picking.passing(range);
        let ids = tokio::task::spawn_blocking(pick).await.map_err(task_error)??;
        run.counter("documents_pruned_by_columns").add(num_docs - ids.len());
        let places = scan.source.files_with(&ids);
        Ok((Self::Facts(run.load_facts(Some(&places)).await?), Some(ids)))
    }

    /// Opens the source of the documents that pass the filters, and returns their ids. Returns
    /// `None` if the query uses more than their paths and they are not few.
    async fn from_few(
        run: &Execution,
        view: &Arc<LivingView>,
        user: &UserColumns,
    ) -> Result<Option<(Self, Option<Vec<u64>>)>> {
        let scan = &run.scan;
        let context = run.load_context();
        let uses_texts = uses_texts(scan);
        let paths = if !scan.filters_only_on(|name| name != "path") {
            Some(PathTable::read(&run.cache, &context, view, None).await?)
        } else {
            None
        };
        let range = range_of(run);
        let num_docs = scan.num_docs_of(range.clone());
        let names = paths.map_or(Names::None, Names::Paths);
        let picking = Picking { scan: Arc::clone(scan), names, user: Arc::clone(user) };
        let pick = move || picking.passing(range).map(|ids| (ids, picking.names));
        let (ids, names) = tokio::task::spawn_blocking(pick).await.map_err(task_error)??;
        if uses_texts && !FewDocuments::are_few(view, &ids) {
            return Ok(None);
        }
        run.counter("documents_pruned_by_columns").add(num_docs - ids.len());
        let source = match (names, uses_texts && !ids.is_empty()) {
            (_, true) => {
                let few = FewDocuments::read(run, view, &ids, max_output_bytes(scan)).await?;
                Self::Few(few, Vec::new())
            }
            (Names::Paths(paths), false) => Self::Named(paths),
            (_, false) => {
                let places = view.files_with(&ids);
                Self::Named(PathTable::read(&run.cache, &context, view, Some(&places)).await?)
            }
        };
        Ok(Some((source, Some(ids))))
    }

    /// Returns the corpus, if all of it is loaded.
    pub(super) fn corpus(&self) -> Option<&Corpus> {
        match self {
            Self::Made(loaded, _) => Some(&loaded.corpus),
            Self::Ids | Self::Named(_) | Self::Facts(_) | Self::Few(..) => None,
        }
    }

    /// Returns the bytes of memory that are not shared with others.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Few(few, _) => few.memory_bytes(),
            Self::Named(paths) => paths.memory_bytes(),
            Self::Ids | Self::Facts(_) | Self::Made(..) => 0,
        }
    }

    /// Returns the bytes of the text of document `id`.
    pub(super) fn len_bytes(&self, id: u64) -> Result<u64> {
        match self {
            Self::Made(loaded, _) => document_len_bytes(&loaded.corpus, id),
            Self::Few(few, _) => few.len_bytes(id),
            Self::Facts(facts) => return Ok(facts.length(id)?.len_bytes),
            Self::Ids | Self::Named(_) => {
                return internal_err!("the length of document {id} was not asked for");
            }
        }
        .map_err(datafusion_error)
    }

    /// Appends the bytes of document `id` to the pending text.
    pub(super) fn append_text(&mut self, id: u64) -> Result<()> {
        match self {
            Self::Made(_, decoder) => decoder.append_document(id),
            Self::Few(few, output) => few.append_passage(&whole(id), output),
            Self::Ids | Self::Named(_) | Self::Facts(_) => {
                return internal_err!("the text of document {id} was not asked for");
            }
        }
        .map_err(datafusion_error)
    }

    /// Reads the passage that `query` of `scan` asks for.
    pub(super) fn passage(&self, scan: &ScanSpec, query: &ExtractQuery) -> Result<Vec<u8>> {
        let mut passage = Vec::new();
        match self {
            Self::Made(loaded, _) => {
                let ExtractQuery { doc_id, byte_offset, byte_len } = *query;
                let corpus = &loaded.corpus;
                let limit = max_output_bytes(scan);
                extract_into(corpus, doc_id, byte_offset, byte_len, limit, &mut passage)
            }
            Self::Few(few, _) => few.append_passage(query, &mut passage),
            Self::Ids | Self::Named(_) | Self::Facts(_) => {
                return internal_err!("the text of document {} was not asked for", query.doc_id);
            }
        }
        .map_err(datafusion_error)?;
        Ok(passage)
    }

    /// Returns the number of bytes of the pending text.
    pub(super) fn text_len_bytes(&self) -> usize {
        match self {
            Self::Made(_, decoder) => decoder.bytes().len(),
            Self::Few(_, output) => output.len(),
            Self::Ids | Self::Named(_) | Self::Facts(_) => 0,
        }
    }

    /// Takes the pending text.
    pub(super) fn take_text(&mut self) -> Vec<u8> {
        match self {
            Self::Made(_, decoder) => decoder.take(),
            Self::Few(_, output) => std::mem::take(output),
            Self::Ids | Self::Named(_) | Self::Facts(_) => Vec::new(),
        }
    }

    /// Returns the column `name`, which has no text of documents, for the documents `ids`.
    pub(super) fn column(&self, name: &str, ids: &[u64], user: &UserColumns) -> Result<ArrayRef> {
        match (name, self) {
            (DOC_ID, _) => int64(ids.iter().copied()),
            ("path", Self::Made(loaded, _)) => Ok(views(ids.iter().map(|&id| path_of(&loaded.corpus, id)))),
            ("path", Self::Few(few, _)) => Ok(views(ids.iter().map(|&id| few.path(id)))),
            ("path" | "bytes" | "words", Self::Facts(facts)) => fact_column(name, ids, facts),
            ("path", Self::Named(paths)) => Ok(views(ids.iter().map(|&id| paths.get(id)))),
            ("bytes", _) => {
                let lens = ids.iter().map(|&id| self.len_bytes(id)).collect::<Result<Vec<_>>>();
                int64(lens?.into_iter())
            }
            ("words", Self::Made(loaded, _)) => {
                let numbers = ids.iter().map(|&id| document_num_words(&loaded.corpus, id));
                let numbers = numbers.collect::<tadoc::Result<Vec<_>>>();
                int64(numbers.map_err(datafusion_error)?.into_iter())
            }
            _ => user_column(name, ids, user),
        }
    }
}

/// Returns the query for the whole document `doc_id`.
fn whole(doc_id: u64) -> ExtractQuery {
    ExtractQuery { doc_id, byte_offset: 0, byte_len: u64::MAX }
}

/// Returns the user column `name` for the documents `ids`.
fn user_column(name: &str, ids: &[u64], user: &UserColumns) -> Result<ArrayRef> {
    match user.get(name) {
        Some(array) => rows_of(array, ids),
        None => internal_err!("column {name} was not read"),
    }
}

fn rows_of(array: &ArrayRef, ids: &[u64]) -> Result<ArrayRef> {
    let is_run = ids.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    match ids.first() {
        Some(&first) if is_run => Ok(array.slice(first as usize, ids.len())),
        _ => Ok(take(array, &UInt64Array::from_iter_values(ids.iter().copied()), None)?),
    }
}

/// Returns the largest number of bytes of text at once. A view addresses 2^31 - 1 bytes.
fn max_output_bytes(scan: &ScanSpec) -> u64 {
    scan.options.max_output_bytes.min(i32::MAX as u64)
}

/// Returns true if the query uses no text, and its files contain all that it uses beside their
/// grammars.
pub(super) fn are_facts_enough(scan: &ScanSpec) -> bool {
    !TEXTS.iter().any(|name| scan.uses(name)) && scan.source.has_document_facts()
}

/// Returns true if the query uses lengths or texts of documents.
fn uses_texts(scan: &ScanSpec) -> bool {
    ["bytes", "text", "content"].iter().any(|name| scan.uses(name))
}

/// Returns the documents of a scan that asks for some number of any.
fn first_documents(scan: &ScanSpec) -> Option<Vec<u64>> {
    let limit = scan.limit.filter(|_| !scan.is_filtered())?;
    Some(scan.documents(0..scan.num_doc_ids()).take(limit).collect())
}

/// Returns true if filters may leave few documents, and if they can be evaluated without any text.
/// Returns false if words are counted, because this needs an assembled version.
fn may_be_few(scan: &ScanSpec) -> bool {
    let mut stages = scan.filters.before_text();
    let tells = |name: &str| matches!(name, DOC_ID | "path") || is_user(name);
    let is_filtered = stages.clone().next().is_some();
    !scan.uses("words") && (is_filtered || !uses_texts(scan)) && stages.all(|stage| scan.names_in(stage).all(tells))
}

/// Returns true if the filters on columns can be evaluated before the corpus is opened: by ids and user
/// columns, and by the facts of files that have them. Living corpora have ways of their own.
fn tells_before(scan: &ScanSpec) -> bool {
    let has_facts = scan.source.has_document_facts();
    let tells = |name: &str| name == DOC_ID || is_user(name) || (has_facts && FACTS.contains(&name));
    let mut stages = scan.filters.before_text().peekable();
    scan.living().is_none() && stages.peek().is_some() && stages.all(|stage| scan.names_in(stage).all(tells))
}

/// Returns the documents of all partitions that pass the filters on columns.
async fn passing(run: &Execution, user: &UserColumns) -> Result<Vec<u64>> {
    let scan = Arc::clone(&run.scan);
    let names = if !scan.filters_only_on(|name| !FACTS.contains(&name)) {
        Names::Facts(run.load_facts(None).await?)
    } else {
        Names::None
    };
    let range = 0..scan.num_doc_ids();
    let picking = Picking { scan, names, user: Arc::clone(user) };
    tokio::task::spawn_blocking(move || picking.passing(range)).await.map_err(task_error)?
}

/// Facts about documents by which they are chosen, beside their ids and user columns.
enum Names {
    None,
    Paths(PathTable),
    Facts(FactTable),
}

/// Choice of documents by columns, before the corpus is opened or assembled.
struct Picking {
    scan: Arc<ScanSpec>,
    names: Names,
    user: UserColumns,
}

impl Picking {
    /// Returns the documents of `range` that pass the filters on columns.
    fn passing(&self, range: Range<u64>) -> Result<Vec<u64>> {
        passing_documents(&self.scan, range, |name, ids| match (name, &self.names) {
            (DOC_ID, _) => int64(ids.iter().copied()),
            ("path", Names::Paths(paths)) => Ok(views(ids.iter().map(|&id| paths.get(id)))),
            ("path" | "bytes" | "words", Names::Facts(facts)) => fact_column(name, ids, facts),
            _ => user_column(name, ids, &self.user),
        })
    }
}

/// Returns the paths or lengths of the documents `ids`.
fn fact_column(name: &str, ids: &[u64], facts: &FactTable) -> Result<ArrayRef> {
    let lengths = || ids.iter().map(|&id| facts.length(id)).collect::<Result<Vec<_>>>();
    match name {
        "path" => Ok(views(ids.iter().map(|&id| facts.path(id)))),
        "bytes" => int64(lengths()?.into_iter().map(|length| length.len_bytes)),
        "words" => int64(lengths()?.into_iter().map(|length| length.num_words)),
        other => no_column(other),
    }
}

/// Largest number of documents that are read without the others.
const MAX_FEW_DOCS: usize = 1024;
/// Largest number of edits of these documents. With more edits the version is assembled, once for
/// all statements.
const MAX_FEW_EDITS: usize = 4096;

/// Few documents of a living corpus. See the module's description.
pub(super) struct FewDocuments {
    corpus: LivingCorpus,
    max_output_bytes: u64,
    /// Files of the documents. They are kept so that their memory stays reserved.
    _files: Vec<Arc<LoadedFile>>,
}

impl FewDocuments {
    /// Returns true if it pays to read `ids` of `view`, ascending, without the others.
    pub(super) fn are_few(view: &LivingView, ids: &[u64]) -> bool {
        let edits = view.edits.iter().flat_map(|edits| &edits.batch.edits);
        let is_asked = |id: &u64| ids.binary_search(id).is_ok();
        let mut asked_edits = edits.filter_map(Edit::doc_id).filter(is_asked);
        ids.len() <= MAX_FEW_DOCS && asked_edits.nth(MAX_FEW_EDITS).is_none()
    }

    /// Reads the documents `ids` of `view`, ascending. A text that is read later may have at most
    /// `max_output_bytes`.
    ///
    /// # Errors
    /// Errors of the store, of damaged files, and of insufficient memory.
    pub(super) async fn read(
        run: &Execution,
        view: &Arc<LivingView>,
        ids: &[u64],
        max_output_bytes: u64,
    ) -> Result<Self> {
        let places = view.files_with(ids);
        let files = run.cache.load_files(&run.load_context(), &run.scan.source, &places).await?;
        let view = Arc::clone(view);
        let ids = BTreeSet::from_iter(ids.iter().copied());
        let read = move || {
            let corpora = files.iter().map(|file| file.corpus(view.version.profile)).collect();
            let corpus = assemble_documents(&view.version, corpora, &view.edits, &ids)?;
            Ok(Self { corpus, max_output_bytes, _files: files })
        };
        tokio::task::spawn_blocking(read).await.map_err(task_error)?.map_err(datafusion_error)
    }

    /// Returns the bytes of memory held beside the files.
    pub(super) fn memory_bytes(&self) -> usize {
        self.corpus.memory_bytes()
    }

    /// Returns the path of document `id`; empty if there is none.
    pub(super) fn path(&self, id: u64) -> &str {
        self.corpus.path(id).unwrap_or_default()
    }

    /// Returns the bytes of the text of document `id`.
    pub(super) fn len_bytes(&self, id: u64) -> tadoc::Result<u64> {
        self.corpus.len_bytes(id)
    }

    /// Appends the passage that `query` asks for to `output`.
    pub(super) fn append_passage(&self, query: &ExtractQuery, output: &mut Vec<u8>) -> tadoc::Result<()> {
        let ExtractQuery { doc_id, byte_offset, byte_len } = *query;
        let len_bytes = self.corpus.len_bytes(doc_id)?;
        if byte_offset > len_bytes {
            let what = "byte_offset";
            let path = Some(self.path(doc_id).to_owned());
            return Err(Error::PastEnd { what, got: byte_offset, doc_id, path, len_bytes });
        }
        self.corpus.extract_into(doc_id, byte_offset, byte_len, self.max_output_bytes, output)
    }
}
