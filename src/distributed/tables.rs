//! The codec of tables in logical plans, for engines that plan a statement on another machine.
//!
//! ```text
//! client      SQL ─▶ logical plan ─▶ resolve_tables ─▶ codec ══ messages ══▶ scheduler
//! scheduler   message ─▶ table: opens nothing ─ scan: footers ─▶ physical plan ─▶ TadocCodec ══▶
//! ```
//!
//! A table function travels as its name and arguments, a table `STORED AS TADOC` as the function that
//! reads it. [`resolve_tables`] first puts in what only the session knows: the locations behind names,
//! absolute paths, the version of a living corpus, the rows of synonyms, and settings. Scalar functions
//! travel by name. The table that arrives does no input or output before it is scanned, and refuses a
//! living corpus whose version has another commit.
//!
//! Tables that a statement changes, and tables beside a living corpus (`"d$history"`), stay.
//!
//! DataFusion has messages of tables of files, but they know only its own formats, and they lose globs. So
//! tables of JSON files, and of Parquet files with and without GSST columns, travel in messages of this crate
//! ([`ListedTable`]). A file that changes after the statement was planned is refused where its columns are
//! read, as with any scan of GSST columns.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::common::config::{ConfigField, JsonOptions, ParquetOptions, TableParquetOptions, Visit};
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::datasource::{DefaultTableSource, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, TableProviderFilterPushDown, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use url::Url;

use crate::arrived::find_version;
use crate::files::check_no_user;
use crate::message::{
    self, FormatKind, ListingMessage, LivingMessage, NodeMessage, PairMessage, PlaceMessage, TableMessage,
};
use crate::scans::{bound_call, call, living, options_of, schema_bytes, schema_of, synonyms_of, texts_of};
use crate::{TravelError, refused};
use datafusion_tadoc::travel::{
    CorpusCache, ResolvedLocation, ResolvedTable, datafusion_error, gsst_format, gsst_options, json_format,
    json_options, object_store, parquet_format, parquet_options, with_condition,
};
use datafusion_tadoc::{TadocTable, mask_secrets};
use tadoc::text::{Fold, Synonyms};

/// Codec of the tables of this crate in logical plans: table functions, tables `STORED AS TADOC`, and
/// tables of Parquet files with and without GSST columns. [`resolve_tables`] prepares a plan for it.
///
/// A session that decodes needs [`with_tadoc`](datafusion_tadoc::TadocSessionStateBuilderExt::with_tadoc).
///
/// ```
/// use datafusion::prelude::*;
/// use datafusion_proto::bytes::{
///     logical_plan_from_bytes_with_extension_codec as read,
///     logical_plan_to_bytes_with_extension_codec as written,
/// };
/// use datafusion_tadoc_distributed::{TadocLogicalCodec, resolve_tables};
///
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let (here, there) = (SessionContext::new(), SessionContext::new());
/// datafusion_tadoc::register_all(&here)?;
/// datafusion_tadoc::register_all(&there)?;
/// let plan = here.sql("SELECT function FROM tadoc_functions()").await?.into_optimized_plan()?;
/// let plan = resolve_tables(plan, &here.state()).await?;
/// let bytes = written(&plan, &TadocLogicalCodec)?;
/// let plan = read(&bytes, &there.task_ctx(), &TadocLogicalCodec)?;
/// assert!(there.execute_logical_plan(plan).await?.count().await? > 20);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TadocLogicalCodec;

impl LogicalExtensionCodec for TadocLogicalCodec {
    fn try_decode(&self, _buf: &[u8], _inputs: &[LogicalPlan], _context: &TaskContext) -> Result<Extension> {
        refused("expected a table, got a node of a logical plan")
    }

    fn try_encode(&self, node: &Extension, _buf: &mut Vec<u8>) -> Result<()> {
        let what = format!("{} is no node of datafusion-tadoc", node.node.name());
        Err(TravelError::Stays(what).into())
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        _name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let table: Arc<dyn TableProvider> = match message::open(buf)? {
            NodeMessage { table: Some(table), .. } => Arc::new(PlannedTable::from_message(&table, &schema, context)?),
            NodeMessage { listing: Some(listing), .. } => Arc::new(ListedTable::from_message(&listing, context)?),
            _ => return refused("expected a table, got a node of a physical plan"),
        };
        if table.schema() == schema {
            Ok(table)
        } else {
            refused(format!("expected the columns of the table, got {schema}"))
        }
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let message = if let Some(table) = table.downcast_ref::<PlannedTable>() {
            NodeMessage { table: Some(Box::new(table.message()?)), ..NodeMessage::default() }
        } else if let Some(listed) = table.downcast_ref::<ListedTable>() {
            NodeMessage { listing: Some(listed.message()?), ..NodeMessage::default() }
        } else {
            let what = if table.is::<TadocTable>() {
                format!("{name} is read after resolve_tables, and written in its session")
            } else {
                format!("{name} is no table of datafusion-tadoc that is read")
            };
            return Err(TravelError::Stays(what).into());
        };
        message::seal(&message, buf);
        Ok(())
    }

    fn try_decode_file_format(&self, _buf: &[u8], _context: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        refused("expected a table, got the format of a file")
    }

    fn try_encode_file_format(&self, _buf: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        let what = format!("a statement that writes .{} files", format.get_ext());
        Err(TravelError::Stays(what).into())
    }
}

/// Returns `plan` with the tables of this crate as another machine scans them: all that `session` knows
/// of them is looked up. A version of a living corpus is fixed now.
///
/// # Errors
/// The plan errors of scans; an error for files that another machine would not find by the same glob.
pub async fn resolve_tables(plan: LogicalPlan, session: &dyn Session) -> Result<LogicalPlan> {
    let mut sources: Vec<Arc<dyn TableSource>> = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && !sources.iter().any(|source| Arc::ptr_eq(source, &scan.source))
        {
            sources.push(Arc::clone(&scan.source));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut resolved: Vec<(Arc<dyn TableSource>, Arc<dyn TableSource>)> = Vec::new();
    for source in sources {
        if let Some(table) = resolve(&source, session).await? {
            resolved.push((source, provider_as_source(table)));
        }
    }
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let found = resolved.iter().find(|(source, _)| Arc::ptr_eq(source, &scan.source));
        let Some((_, table)) = found else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        scan.source = Arc::clone(table);
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })
    .data()
}

/// Returns the table that replaces the one behind `source`, if any.
async fn resolve(source: &Arc<dyn TableSource>, session: &dyn Session) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(source) = source.downcast_ref::<DefaultTableSource>() else { return Ok(None) };
    if let Some(table) = source.table_provider.downcast_ref::<TadocTable>() {
        let (resolved, version) = ResolvedTable::from_table(table, session).await?;
        let living = version.map(|(url, version)| living(&url, &version)).transpose()?;
        return Ok(Some(Arc::new(PlannedTable::new(resolved, living))));
    }
    match source.table_provider.downcast_ref::<ListingTable>() {
        Some(listing) => Ok(ListedTable::from_listing(listing)?.map(|table| Arc::new(table) as _)),
        None => Ok(None),
    }
}

/// A table whose statement was planned, here or on another machine.
#[derive(Debug)]
struct PlannedTable {
    resolved: ResolvedTable,
    /// The table of `resolved`.
    table: TadocTable,
    /// The version of a living corpus that the statement reads.
    living: Option<LivingMessage>,
}

impl PlannedTable {
    fn new(resolved: ResolvedTable, living: Option<LivingMessage>) -> Self {
        let table = resolved.to_table();
        let table = match &resolved.condition {
            Some(condition) => with_condition(table, condition),
            None => table,
        };
        Self { table, resolved, living }
    }

    fn message(&self) -> Result<TableMessage> {
        let table = &self.resolved;
        let place = table.place.clone();
        let place = place.map(|ResolvedLocation { location, folder }| PlaceMessage { location, folder });
        for said in place.iter().map(|place| &place.location).chain([&table.location]) {
            let shown = mask_secrets(said);
            if shown != **said {
                let way_out = "leave them out and give them to each machine by its environment";
                let what = format!("{shown} has credentials; {way_out}");
                return Err(TravelError::Stays(what).into());
            }
        }
        let synonyms = table.synonyms.as_deref();
        let texts = table.texts.as_deref();
        let options = table.options.iter();
        let mut options: Vec<PairMessage> =
            options.map(|(name, value)| PairMessage { name: name.clone(), value: value.clone() }).collect();
        options.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(TableMessage {
            call: Some(call(&table.function, &table.location, synonyms, texts)?),
            place,
            living: self.living.clone(),
            version: table.version,
            options,
            has_user_columns: !table.user_columns.is_empty(),
            has_files: table.has_files,
            condition: table.condition.clone(),
        })
    }

    fn from_message(message: &TableMessage, schema: &SchemaRef, context: &TaskContext) -> Result<Self> {
        let Some(call) = &message.call else { return refused("a table without a function") };
        let function = bound_call(call, schema)?;
        options_of(&message.options)?;
        let options: HashMap<String, String> =
            message.options.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect();
        // The words are folded already.
        let synonyms = synonyms_of(call).map(|(name, rows)| Synonyms::new(&name, &Fold::NONE, rows));
        let num_fixed = function.signature().columns.len();
        let user_columns = schema.fields().iter().skip(num_fixed);
        let user_columns = user_columns.filter(|_| message.has_user_columns).cloned().collect();
        let Some(cache) = context.session_config().get_extension::<CorpusCache>() else {
            return refused("a table in a session without datafusion-tadoc");
        };
        let place = message.place.clone();
        let resolved = ResolvedTable {
            function,
            location: call.location.clone(),
            place: place.map(|PlaceMessage { location, folder }| ResolvedLocation { location, folder }),
            version: message.version,
            options,
            user_columns,
            synonyms: synonyms.transpose().map_err(datafusion_error)?.map(Arc::new),
            texts: texts_of(call),
            has_files: message.has_files,
            condition: message.condition.clone(),
            cache,
        };
        if !resolved.has_place() {
            return refused("a table of files without their place");
        }
        Ok(Self::new(resolved, message.living.clone()))
    }
}

#[async_trait]
impl TableProvider for PlannedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(living) = &self.living
            && let Some(cache) = session.config().get_extension::<CorpusCache>()
        {
            find_version(session.runtime_env(), &cache, living).await?;
        }
        self.table.scan(session, projection, filters, limit).await
    }
}

/// A table of Parquet or JSON files, whose format DataFusion's own messages do not know.
#[derive(Debug)]
pub(super) struct ListedTable(ListingTable);

impl ListedTable {
    /// Returns the table of `listing` if it is one of Parquet or JSON files.
    ///
    /// # Errors
    /// An error for files of another format that a glob names, because DataFusion's message has no glob.
    pub(super) fn from_listing(listing: &ListingTable) -> Result<Option<Self>> {
        let format = listing.options().format.as_ref();
        if gsst_options(format).is_some() || parquet_options(format).is_some() || json_options(format).is_some() {
            return Ok(Some(Self(listing.clone())));
        }
        match listing.table_paths().iter().find_map(|url| url.get_glob().as_ref()) {
            Some(glob) => {
                let what = format!("a table of the files {glob}; name their folder instead");
                Err(TravelError::Stays(what).into())
            }
            None => Ok(None),
        }
    }

    /// Returns the message of the table.
    ///
    /// # Errors
    /// An error if a URL has a user, or a glob that is not on the local disk.
    pub(super) fn message(&self) -> Result<ListingMessage> {
        let options = self.0.options();
        let folders = &options.table_partition_cols;
        let table = self.0.schema();
        let num_folders = folders.len();
        let files: Vec<usize> = (0..table.fields().len().saturating_sub(num_folders)).collect();
        let column = |(name, kind): &(String, DataType)| Field::new(name, kind.clone(), false);
        let folders: Vec<Field> = folders.iter().map(column).collect();
        let message = ListingMessage {
            urls: self.0.table_paths().iter().map(url_of).collect::<Result<_>>()?,
            extension: options.file_extension.clone(),
            schema: schema_bytes(&table.project(&files)?)?,
            folders: schema_bytes(&Schema::new(folders))?,
            ..ListingMessage::default()
        };
        let format = options.format.as_ref();
        if let Some(options) = gsst_options(format) {
            let pair = |(name, value): (&String, &String)| PairMessage { name: name.clone(), value: value.clone() };
            let mut options: Vec<PairMessage> = options.iter().map(pair).collect();
            options.sort_unstable_by(|one, other| one.name.cmp(&other.name));
            return Ok(ListingMessage { format: FormatKind::Gsst.into(), options, ..message });
        }
        if let Some(json) = json_options(format) {
            let mut options = Settings::default();
            json.visit(&mut options, "", "");
            return Ok(ListingMessage { format: FormatKind::Json.into(), options: options.0, ..message });
        }
        let options = parquet_options(format).map(|options| changed(&options.global));
        let options = options.unwrap_or_default();
        Ok(ListingMessage { format: FormatKind::Parquet.into(), options, ..message })
    }

    /// Returns the table of a message.
    ///
    /// # Errors
    /// An error if the message is not that of a table.
    pub(super) fn from_message(message: &ListingMessage, context: &TaskContext) -> Result<Self> {
        let format: Arc<dyn FileFormat> = match message.format() {
            FormatKind::Gsst => {
                let pair = |pair: &PairMessage| (pair.name.clone(), pair.value.clone());
                gsst_format(message.options.iter().map(pair).collect())?
            }
            FormatKind::Parquet => {
                let mut options = TableParquetOptions::default();
                for PairMessage { name, value } in &message.options {
                    options.global.set(name, value)?;
                }
                parquet_format(options)
            }
            FormatKind::Json => {
                let mut options = JsonOptions::default();
                for PairMessage { name, value } in &message.options {
                    options.set(name, value)?;
                }
                json_format(options)
            }
            FormatKind::Unknown => return refused("a table of files of no format"),
        };
        let folders = schema_of(&message.folders)?;
        let folders = folders.fields().iter().map(|field| (field.name().clone(), field.data_type()));
        let options = ListingOptions::new(format)
            .with_file_extension(&message.extension)
            .with_table_partition_cols(folders.map(|(name, kind)| (name, kind.clone())).collect());
        let urls = message.urls.iter().map(|url| parsed(url)).collect::<Result<Vec<_>>>()?;
        let Some(first) = urls.first() else { return refused("a table of no files") };
        let store = first.object_store();
        if urls.iter().any(|url| url.object_store() != store) {
            return refused("expected the files of a table in one store");
        }
        let config = ListingTableConfig::new_with_multi_paths(urls)
            .with_listing_options(options)
            .with_schema(schema_of(&message.schema)?);
        let known = context.runtime_env().cache_manager.get_file_statistic_cache();
        Ok(Self(ListingTable::try_new(config)?.with_cache(known)))
    }
}

/// Settings of a reader, by name.
#[derive(Default)]
struct Settings(Vec<PairMessage>);

impl Visit for Settings {
    fn some<V: Display>(&mut self, key: &str, value: V, _description: &'static str) {
        let name = key.trim_start_matches('.').to_owned();
        self.0.push(PairMessage { name, value: value.to_string() });
    }

    fn none(&mut self, _key: &str, _description: &'static str) {}
}

/// Returns the settings of `options` that have no default value.
fn changed(options: &ParquetOptions) -> Vec<PairMessage> {
    let [mut settings, mut defaults] = [Settings::default(), Settings::default()];
    options.visit(&mut settings, "", "");
    ParquetOptions::default().visit(&mut defaults, "", "");
    settings.0.retain(|setting| !defaults.0.contains(setting));
    settings.0
}

/// Returns the text of a URL with its glob.
fn url_of(url: &ListingTableUrl) -> Result<String> {
    check_no_user(url.as_ref(), url.as_str())?;
    let Some(glob) = url.get_glob() else { return Ok(url.as_str().to_owned()) };
    let on_disk = Url::parse(url.as_str()).ok().and_then(|url| url.to_file_path().ok());
    match on_disk.as_deref().and_then(|path| path.to_str()) {
        Some(folder) => Ok(format!("{}/{}", folder.trim_end_matches('/'), glob.as_str())),
        None => {
            let what = format!("a table of the files {}{}", url.as_str(), glob.as_str());
            Err(TravelError::Stays(what).into())
        }
    }
}

/// Returns the URL of a text of [`url_of`].
fn parsed(text: &str) -> Result<ListingTableUrl> {
    if text.starts_with('/') {
        return ListingTableUrl::parse(text);
    }
    let Ok(url) = Url::parse(text) else {
        return refused(format!("expected the URL of files, got {text:?}"));
    };
    check_no_user(&url, text)?;
    ListingTableUrl::try_new(url, None)
}

#[async_trait]
impl TableProvider for ListedTable {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.0.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        for url in self.0.table_paths() {
            // Registers a store that this machine has not used yet.
            object_store(session.runtime_env(), url.as_ref())?;
        }
        self.0.scan(session, projection, filters, limit).await
    }
}
