//! Tables of Parquet files in logical plans, with and without GSST columns.
//!
//! DataFusion has messages of tables of files, but they know only its own formats, and they lose globs.
//! So these tables travel in messages of this crate. A file that changes after the statement was planned
//! is refused where its columns are read, as with any scan of GSST columns.

use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::config::{ConfigField, ParquetOptions, TableParquetOptions, Visit};
use datafusion::datasource::file_format::FileFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use url::Url;

use crate::files::check_no_user;
use crate::message::{FormatKind, ListingMessage, PairMessage};
use crate::scans::{schema_bytes, schema_of};
use crate::{TravelError, refused};
use datafusion_tadoc::travel::{gsst_format, gsst_options, object_store, parquet_format, parquet_options};

/// A table of Parquet files, whose format DataFusion's own messages do not know.
#[derive(Debug)]
pub(super) struct ListedTable(ListingTable);

impl ListedTable {
    /// Returns the table of `listing` if it is one of Parquet files.
    ///
    /// # Errors
    /// An error for files of another format that a glob names, because DataFusion's message has no glob.
    pub(super) fn from_listing(listing: &ListingTable) -> Result<Option<Self>> {
        let format = listing.options().format.as_ref();
        if gsst_options(format).is_some() || parquet_options(format).is_some() {
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
        let (table, num_folders) = (self.0.schema(), folders.len());
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

/// Settings of a Parquet reader, by name.
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
