//! Tables `"d$history"`, `"d$segments"` and `"d$edits"` of a living table `d`, and the catalogs that resolve their
//! names, and locations of corpora.
//!
//! | table | one row for each | scope |
//! | --- | --- | --- |
//! | history | version, in order of number | all versions that are kept, up to the statement's |
//! | segments | part: a file, or the documents added by edits of a version | the version of `d` |
//! | edits | edit that is not part of a segment file yet | the version of `d` |
//!
//! Edits are shown as they were committed: `pos` refers to the text at that time, by the `mode` of the version.
//!
//! The session's list of catalogs is wrapped, as DataFusion itself does for files as tables. A name is first looked up
//! in the catalog. If it is not found, it is split at the `$`. So `"d$history"` exists exactly as long as `d` does,
//! however `d` was registered, and lists of tables stay short.
//!
//! A name that is no table can be a location: `FROM 'notes.tadoc'` has the columns of a table over it, and
//! `FROM 'notes/$history'` the versions of a living corpus. A name with the ending `.tadoc` is one, also a glob or URL.
//! A folder that is written with a slash, or a URL that ends with one, is one if a living corpus or a `.tadoc` file is
//! there. All other names are left to the catalog below, which may know Parquet files by name.

use std::collections::HashMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, Int64Array, RecordBatch, StringViewArray, StringViewBuilder, TimestampMicrosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProviderList, SchemaProvider, Session, TableProvider,
};
use datafusion::common::plan_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use futures::future::ready;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt};

use crate::corpora::CorpusCache;
use crate::corpora::living::{FoundCorpus, LivingView, Reading};
use crate::corpora::location::{CORPUS_EXTENSION, Wanted, check_location, resolve_files};
use crate::errors::datafusion_error;
use crate::functions::{Documents, find_signature};
use crate::options::TadocOptions;
use crate::planning::table::TadocTable;
use crate::write::living::insert::insert_into;
use tadoc::edits::Edit;
use tadoc::format::FileFooter;
use tadoc_store::{Part, Version, VersionEdits};

/// Tables of a living corpus beside its documents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LivingTableKind {
    History,
    Segments,
    Edits,
}

impl LivingTableKind {
    const ALL: [Self; 3] = [Self::History, Self::Segments, Self::Edits];

    fn as_str(self) -> &'static str {
        match self {
            Self::History => "history",
            Self::Segments => "segments",
            Self::Edits => "edits",
        }
    }

    /// Splits a name into the table of the documents and the kind of table.
    pub(super) fn from_name(name: &str) -> Option<(&str, Self)> {
        let (documents, kind) = name.rsplit_once('$')?;
        Self::ALL.into_iter().find(|k| k.as_str() == kind).map(|kind| (documents, kind))
    }
}

impl fmt::Display for LivingTableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A table beside the documents of a living corpus; see the module's description.
#[derive(Debug)]
pub(crate) struct LivingTable {
    kind: LivingTableKind,
    /// Name of the table of the documents.
    name: String,
    documents: Arc<TadocTable>,
    schema: SchemaRef,
}

impl LivingTable {
    pub(super) fn new(kind: LivingTableKind, name: &str, documents: Arc<TadocTable>) -> Self {
        let schema = match kind {
            LivingTableKind::History => history_schema(),
            LivingTableKind::Segments => part_schema(),
            LivingTableKind::Edits => edit_schema(),
        };
        Self { kind, name: name.to_string(), documents, schema }
    }

    /// Returns this table, reading the versions of `reading`.
    pub(super) fn with_reading(&self, reading: &Arc<Reading>) -> Self {
        let documents = self.documents.as_ref().clone().with_reading(Some(reading));
        Self::new(self.kind, &self.name, Arc::new(documents))
    }

    /// Returns the table of the documents if this is the table of their edits.
    pub(super) fn edited_documents(&self) -> Option<&Arc<TadocTable>> {
        (self.kind == LivingTableKind::Edits).then_some(&self.documents)
    }

    /// Returns the error for documents that are not a living corpus.
    fn not_living(&self) -> DataFusionError {
        let name = &self.name;
        let kind = self.kind;
        plan_datafusion_err!(
            "{name}${kind}: {name} is a table of .tadoc files, which never change; expected one of a \
             living corpus, a folder with versions"
        )
    }

    async fn rows(&self, session: &dyn Session) -> Result<Rows> {
        Ok(match self.kind {
            LivingTableKind::History => {
                let found = self.documents.living(session).await?;
                Rows::History(Arc::new(found.ok_or_else(|| self.not_living())?))
            }
            kind => {
                let view = self.documents.living_view(session).await?;
                let view = view.ok_or_else(|| self.not_living())?;
                if kind == LivingTableKind::Edits { Rows::Edits(view) } else { Rows::Segments(view) }
            }
        })
    }
}

#[async_trait]
impl TableProvider for LivingTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let rows = LivingRows { schema: self.schema(), rows: self.rows(session).await? };
        let schema = self.schema();
        let rows: Arc<dyn PartitionStream> = Arc::new(rows);
        let exec = StreamingTableExec::try_new(schema, vec![rows], projection, [], false, limit)?;
        Ok(Arc::new(exec))
    }
}

/// Source of the rows of a table.
#[derive(Debug, Clone)]
enum Rows {
    History(Arc<FoundCorpus>),
    Segments(Arc<LivingView>),
    Edits(Arc<LivingView>),
}

/// Partition of a scan. A scan has only one.
#[derive(Debug)]
struct LivingRows {
    schema: SchemaRef,
    rows: Rows,
}

impl PartitionStream for LivingRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let schema = Arc::clone(&self.schema);
        let batches: BoxStream<'static, Result<RecordBatch>> = match self.rows.clone() {
            Rows::History(found) => async move {
                let mut versions = found.store.history().await.map_err(datafusion_error)?;
                versions.retain(|version| version.number <= found.latest.number);
                history_rows(&schema, &versions)
            }
            .into_stream()
            .boxed(),
            Rows::Segments(view) => stream::once(ready(part_rows(&schema, &view))).boxed(),
            Rows::Edits(view) => {
                stream::iter(0..view.edits.len()).map(move |i| edit_rows(&schema, &view.edits[i])).boxed()
            }
        };
        Box::pin(RecordBatchStreamAdapter::new(Arc::clone(&self.schema), batches))
    }
}

const UTC: &str = "+00:00";

/// Returns the schema of `"d$history"`.
pub(super) fn history_schema() -> SchemaRef {
    let time = DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into()));
    Arc::new(Schema::new(vec![
        integer("version"),
        text("commit_id"),
        Field::new("time", time, false),
        text("kind"),
        integer("docs_added"),
        integer("docs_dropped"),
        integer("edits"),
        integer("text_bytes"),
        text("writer"),
    ]))
}

/// Returns the schema of `"d$segments"`.
pub(super) fn part_schema() -> SchemaRef {
    Arc::new(Schema::new(vec![
        integer("part"),
        text("kind"),
        text("file").with_nullable(true),
        integer("first_doc_id"),
        integer("num_docs"),
        integer("docs_dropped"),
        integer("docs_edited"),
        integer("len_bytes").with_nullable(true),
        integer("text_bytes"),
        integer("segments").with_nullable(true),
        integer("tokens").with_nullable(true),
        integer("elements").with_nullable(true),
    ]))
}

/// Returns the schema of `"d$edits"`. All columns are nullable, so that an `INSERT` may give only
/// some of them.
pub(super) fn edit_schema() -> SchemaRef {
    let integers = ["version", "place"].map(integer);
    let texts = ["mode", "kind"].map(text);
    let places = ["doc_id", "pos", "len_bytes"].map(integer);
    let fields = integers.into_iter().chain(texts).chain(places);
    let fields = fields.chain(["text", "path"].map(text));
    Arc::new(Schema::new(fields.map(|field| field.with_nullable(true)).collect::<Vec<_>>()))
}

fn integer(name: &str) -> Field {
    Field::new(name, DataType::Int64, false)
}

fn text(name: &str) -> Field {
    Field::new(name, DataType::Utf8View, false)
}

/// Returns the rows of `"d$history"`, one for each of `versions`.
pub(super) fn history_rows(schema: &SchemaRef, versions: &[Version]) -> Result<RecordBatch> {
    let time = versions.iter().map(|version| signed(version.time_us));
    let time = TimestampMicrosecondArray::from_iter_values(time).with_timezone(UTC);
    let columns: Vec<ArrayRef> = vec![
        integers(versions, |version| version.number),
        texts(versions, |version| version.commit_id.to_string()),
        Arc::new(time),
        texts(versions, |version| version.kind.to_string()),
        integers(versions, |version| version.counts.docs_added),
        integers(versions, |version| version.counts.docs_dropped),
        integers(versions, |version| version.counts.edits),
        integers(versions, |version| version.counts.text_bytes),
        texts(versions, |version| version.writer.clone()),
    ];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// A part of a version and its figures.
struct PartRow<'a> {
    part: &'a Part,
    ids: Range<u64>,
    footer: Option<&'a FileFooter>,
    num_dropped: usize,
    num_edited: usize,
    text_bytes: u64,
}

/// Returns the rows of `"d$segments"`, one for each part of the version.
pub(super) fn part_rows(schema: &SchemaRef, view: &LivingView) -> Result<RecordBatch> {
    let edited = view.edited();
    let mut files = view.files.iter();
    let rows: Vec<PartRow<'_>> = view
        .version
        .part_ids()
        .map(|(part, ids)| {
            let open = part.file_name().and_then(|_| files.next());
            let below = |end| view.dropped.partition_point(|&id| id < end);
            let footer = open.map(|open| &*open.footer);
            PartRow {
                part,
                num_dropped: below(ids.end) - below(ids.start),
                num_edited: edited.range(ids.clone()).count(),
                ids,
                footer,
                text_bytes: footer.map_or_else(|| added_bytes(view, part), FileFooter::len_bytes),
            }
        })
        .collect();
    let footer_numbers = |of: fn(&FileFooter) -> u64| -> ArrayRef {
        Arc::new(Int64Array::from_iter(rows.iter().map(|row| row.footer.map(of).map(signed))))
    };
    let len_bytes = rows.iter().map(|row| match row.part {
        Part::File { len_bytes, .. } => Some(signed(*len_bytes)),
        Part::Edits { .. } => None,
    });
    let files = rows.iter().map(|row| row.part.file_name());
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from_iter_values(0..rows.len() as i64)),
        texts(&rows, |row| if row.footer.is_some() { "file".into() } else { "edits".into() }),
        Arc::new(StringViewArray::from_iter(files)),
        integers(&rows, |row| row.ids.start),
        integers(&rows, |row| row.part.num_docs()),
        integers(&rows, |row| row.num_dropped as u64),
        integers(&rows, |row| row.num_edited as u64),
        Arc::new(Int64Array::from_iter(len_bytes)),
        integers(&rows, |row| row.text_bytes),
        footer_numbers(|footer| footer.segments.len() as u64),
        footer_numbers(FileFooter::num_tokens),
        footer_numbers(FileFooter::num_elements),
    ];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

/// Returns the bytes of the documents that the edits of a part added, before later edits.
fn added_bytes(view: &LivingView, part: &Part) -> u64 {
    let Part::Edits { version, .. } = part else { return 0 };
    let place = view.edits.binary_search_by_key(version, |edits| edits.version);
    let edits = place.ok().map(|place| &view.edits[place]);
    let added = edits.into_iter().flat_map(|edits| &edits.batch.edits).map(|edit| match edit {
        Edit::AddDocument { content, .. } => content.len() as u64,
        _ => 0,
    });
    added.sum()
}

/// Returns the rows of `"d$edits"` for one version.
pub(super) fn edit_rows(schema: &SchemaRef, of_version: &VersionEdits) -> Result<RecordBatch> {
    let edits = &of_version.batch.edits;
    let optional = |of: &dyn Fn(&Edit) -> Option<u64>| -> ArrayRef {
        Arc::new(Int64Array::from_iter(edits.iter().map(|edit| of(edit).map(signed))))
    };
    let mut text = StringViewBuilder::with_capacity(edits.len());
    for edit in edits {
        match text_of(edit) {
            Some(bytes) => text.try_append_value(String::from_utf8_lossy(bytes))?,
            None => text.append_null(),
        }
    }
    let path = edits.iter().map(|edit| match edit {
        Edit::AddDocument { path, .. } => Some(path),
        _ => None,
    });
    let columns: Vec<ArrayRef> = vec![
        integers(edits, |_| of_version.version),
        Arc::new(Int64Array::from_iter_values(0..edits.len() as i64)),
        texts(edits, |_| of_version.batch.mode.to_string()),
        texts(edits, |edit| kind_of(edit).to_string()),
        optional(&Edit::doc_id),
        optional(&|edit| match edit {
            Edit::InsertText { offset_bytes, .. } | Edit::DeleteText { offset_bytes, .. } => Some(*offset_bytes),
            _ => None,
        }),
        optional(&|edit| match edit {
            Edit::DeleteText { len_bytes, .. } => Some(*len_bytes),
            edit => text_of(edit).map(|text| text.len() as u64),
        }),
        Arc::new(text.finish()),
        Arc::new(StringViewArray::from_iter(path)),
    ];
    Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
}

fn kind_of(edit: &Edit) -> &'static str {
    match edit {
        Edit::InsertText { .. } => "insert",
        Edit::AppendText { .. } => "append",
        Edit::DeleteText { .. } => "delete",
        Edit::AddDocument { .. } => "add",
        Edit::DropDocument { .. } => "drop",
        Edit::ReplaceDocument { .. } => "replace",
        Edit::SetColumns { .. } => "set",
    }
}

fn text_of(edit: &Edit) -> Option<&[u8]> {
    match edit {
        Edit::InsertText { text, .. } | Edit::AppendText { text, .. } => Some(text),
        Edit::AddDocument { content, .. } | Edit::ReplaceDocument { content, .. } => Some(content),
        Edit::DeleteText { .. } | Edit::DropDocument { .. } | Edit::SetColumns { .. } => None,
    }
}

fn integers<T>(rows: &[T], of: impl Fn(&T) -> u64) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.iter().map(|row| signed(of(row)))))
}

fn texts<T>(rows: &[T], of: impl Fn(&T) -> String) -> ArrayRef {
    Arc::new(StringViewArray::from_iter_values(rows.iter().map(of)))
}

/// Converts an unsigned number. Real numbers of files and versions stay below 2^63; larger ones
/// come from damaged data and are clamped.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// List of catalogs that resolve the tables of living corpora.
#[derive(Debug)]
pub(crate) struct LivingCatalogs(Arc<dyn CatalogProviderList>, CorpusOpener);

impl LivingCatalogs {
    /// Wraps `catalogs`, or a new list. A list that is wrapped already is returned unchanged.
    pub(crate) fn over(
        catalogs: Option<Arc<dyn CatalogProviderList>>,
        opener: CorpusOpener,
    ) -> Arc<dyn CatalogProviderList> {
        let catalogs = catalogs.unwrap_or_else(|| Arc::new(MemoryCatalogProviderList::new()));
        if catalogs.is::<Self>() { catalogs } else { Arc::new(Self(catalogs, opener)) }
    }
}

impl CatalogProviderList for LivingCatalogs {
    fn register_catalog(&self, name: String, catalog: Arc<dyn CatalogProvider>) -> Option<Arc<dyn CatalogProvider>> {
        self.0.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.0.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        let living = |catalog| Arc::new(LivingCatalog(catalog, self.1.clone())) as _;
        self.0.catalog(name).map(living)
    }
}

/// The memory and the stores with which corpora are opened by location.
#[derive(Debug, Clone)]
pub(crate) struct CorpusOpener {
    pub(crate) cache: Arc<CorpusCache>,
    pub(crate) runtime: Arc<RuntimeEnv>,
}

impl CorpusOpener {
    /// Returns true if `name` is the location of corpora.
    async fn is_corpus(&self, name: &str) -> Result<bool> {
        if name.ends_with(CORPUS_EXTENSION) {
            return Ok(true);
        }
        let is_folder = if name.contains("://") {
            name.ends_with('/') && !name.starts_with("http")
        } else {
            name.contains('/') && std::path::Path::new(name).is_dir()
        };
        if !is_folder {
            return Ok(false);
        }
        let is_living = self.cache.living.find(&self.runtime, name).await?.is_some();
        // An error means that no corpus is there. The catalog below says what is.
        Ok(is_living || resolve_files(&self.runtime, name, Wanted::CorpusFiles).await.is_ok())
    }

    /// Returns the table of the documents at `location`, with their user columns.
    ///
    /// # Errors
    /// Nothing is at `location`, or it cannot be opened.
    async fn documents(&self, location: &str) -> Result<TadocTable> {
        let options = TadocOptions::default();
        let found = self.cache.columns_at(&self.runtime, &options, location, None, |error| error).await?;
        let function = Arc::new(Documents::new(found.fields.clone()));
        let table = TadocTable::new(function, location.to_owned(), Arc::clone(&self.cache)).with_insert(insert_into);
        Ok(table.with_definition(HashMap::new(), None, found.fields))
    }
}

#[derive(Debug)]
struct LivingCatalog(Arc<dyn CatalogProvider>, CorpusOpener);

impl CatalogProvider for LivingCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.0.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        let living = |schema| Arc::new(LivingSchema(schema, self.1.clone())) as _;
        self.0.schema(name).map(living)
    }

    fn register_schema(&self, name: &str, schema: Arc<dyn SchemaProvider>) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.0.register_schema(name, schema)
    }

    fn deregister_schema(&self, name: &str, cascade: bool) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.0.deregister_schema(name, cascade)
    }
}

#[derive(Debug)]
struct LivingSchema(Arc<dyn SchemaProvider>, CorpusOpener);

impl LivingSchema {
    /// Refuses a name that is the location of something that a guarded session must not read. The
    /// catalog below would say only that there is no such table.
    fn check_place(&self, name: &str) -> Result<()> {
        let is_table = |name: &str| self.0.table_exist(name);
        let is_beside = LivingTableKind::from_name(name).is_some_and(|(table, _)| is_table(table));
        if name.contains(['/', '.']) && !is_table(name) && !is_beside {
            check_location(&self.1.runtime, name)?;
        }
        Ok(())
    }
}

#[async_trait]
impl SchemaProvider for LivingSchema {
    fn owner_name(&self) -> Option<&str> {
        self.0.owner_name()
    }

    fn table_names(&self) -> Vec<String> {
        self.0.table_names()
    }

    async fn table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        if is_function_alone(name) && !self.0.table_exist(name) {
            return Ok(None);
        }
        self.check_place(name)?;
        if !self.0.table_exist(name) && self.1.is_corpus(name).await? {
            return Ok(Some(Arc::new(self.1.documents(name).await?)));
        }
        if let Some(table) = self.0.table(name).await? {
            return Ok(Some(table));
        }
        let Some((documents, kind)) = LivingTableKind::from_name(name) else { return Ok(None) };
        if !self.0.table_exist(documents) && self.1.is_corpus(documents).await? {
            let table = Arc::new(self.1.documents(documents).await?);
            return Ok(Some(Arc::new(LivingTable::new(kind, documents, table))));
        }
        let Some(table) = self.0.table(documents).await? else { return Ok(None) };
        let table: Arc<dyn std::any::Any + Send + Sync> = table;
        let Ok(table) = table.downcast::<TadocTable>() else { return Ok(None) };
        Ok(Some(Arc::new(LivingTable::new(kind, documents, table))))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        if self.0.table_exist(name) {
            self.0.table_type(name).await
        } else {
            Ok(self.table(name).await?.map(|table| table.table_type()))
        }
    }

    fn register_table(&self, name: String, table: Arc<dyn TableProvider>) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.register_table(name, table)
    }

    fn deregister_table(&self, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
        self.0.deregister_table(name)
    }

    fn table_exist(&self, name: &str) -> bool {
        self.0.table_exist(name)
    }
}

/// Returns true if `name` can only name a function. DataFusion also looks up each function of a
/// statement as a table, and catalogs that treat names as files then ask the file system twice,
/// with four hand-overs between threads. That is a tenth of the time of a small statement.
fn is_function_alone(name: &str) -> bool {
    find_signature(name).is_some() && !std::path::Path::new(name).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_apart_at_the_last_dollar() {
        assert_eq!(LivingTableKind::from_name("d$history"), Some(("d", LivingTableKind::History)));
        assert_eq!(LivingTableKind::from_name("a$b$edits"), Some(("a$b", LivingTableKind::Edits)));
        for other in ["d", "d$", "d$files", "history", "d$History"] {
            assert_eq!(LivingTableKind::from_name(other), None, "{other}");
        }
    }
}
