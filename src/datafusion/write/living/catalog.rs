//! Catalogs that also resolve names such as `"d$history"`, and locations of corpora.
//!
//! The session's list of catalogs is wrapped, as DataFusion itself does for files as tables. A name
//! is first looked up in the catalog. If it is not found, it is split at the `$`. So `"d$history"`
//! exists exactly as long as `d` does, however `d` was registered, and lists of tables stay short.
//!
//! A name that is no table can be a location: `FROM 'notes.tadoc'` is `FROM documents('notes.tadoc')`.
//! A name with the ending `.tadoc` is one, also a glob or URL. A folder that is written with a slash,
//! or a URL that ends with one, is one if a living corpus or a `.tadoc` file is there. All other names
//! are left to the catalog below, which may know Parquet files by name.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProviderList, SchemaProvider, TableProvider,
};
use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::TableType;

use crate::corpora::CorpusCache;
use crate::corpora::location::{CORPUS_EXTENSION, Wanted, check_location, resolve_files};
use crate::functions::{Documents, find_signature};
use crate::planning::table::TadocTable;
use crate::write::living::insert::insert_into;
use crate::write::living::tables::{LivingTable, LivingTableKind};

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

    /// Returns the table of the documents at `location`.
    fn documents(&self, location: &str) -> TadocTable {
        let function = Arc::new(Documents::from_location(location));
        TadocTable::new(function, location.to_owned(), Arc::clone(&self.cache)).with_insert(insert_into)
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
            return Ok(Some(Arc::new(self.1.documents(name))));
        }
        if let Some(table) = self.0.table(name).await? {
            return Ok(Some(table));
        }
        let Some((documents, kind)) = LivingTableKind::from_name(name) else { return Ok(None) };
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
