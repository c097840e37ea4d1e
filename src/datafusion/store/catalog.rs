//! Catalogs that also resolve names such as `"d$history"`.
//!
//! The session's list of catalogs is wrapped, as DataFusion itself does for files as tables. A name
//! is first looked up in the catalog. If it is not found, it is split at the `$`. So `"d$history"`
//! exists exactly as long as `d` does, however `d` was registered, and lists of tables stay short.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::catalog::{
    CatalogProvider, CatalogProviderList, MemoryCatalogProviderList, SchemaProvider, TableProvider,
};
use datafusion::error::Result;
use datafusion::logical_expr::TableType;

use crate::functions::find_signature;
use crate::scan::table::TadocTable;
use crate::store::tables::{LivingTable, LivingTableKind};

/// List of catalogs that resolve the tables of living corpora.
#[derive(Debug)]
pub(crate) struct LivingCatalogs(Arc<dyn CatalogProviderList>);

impl LivingCatalogs {
    /// Wraps `catalogs`, or a new list. A list that is wrapped already is returned unchanged.
    pub(crate) fn over(
        catalogs: Option<Arc<dyn CatalogProviderList>>,
    ) -> Arc<dyn CatalogProviderList> {
        let catalogs = catalogs.unwrap_or_else(|| Arc::new(MemoryCatalogProviderList::new()));
        if catalogs.is::<Self>() { catalogs } else { Arc::new(Self(catalogs)) }
    }
}

impl CatalogProviderList for LivingCatalogs {
    fn register_catalog(
        &self,
        name: String,
        catalog: Arc<dyn CatalogProvider>,
    ) -> Option<Arc<dyn CatalogProvider>> {
        self.0.register_catalog(name, catalog)
    }

    fn catalog_names(&self) -> Vec<String> {
        self.0.catalog_names()
    }

    fn catalog(&self, name: &str) -> Option<Arc<dyn CatalogProvider>> {
        self.0.catalog(name).map(|catalog| Arc::new(LivingCatalog(catalog)) as _)
    }
}

#[derive(Debug)]
struct LivingCatalog(Arc<dyn CatalogProvider>);

impl CatalogProvider for LivingCatalog {
    fn schema_names(&self) -> Vec<String> {
        self.0.schema_names()
    }

    fn schema(&self, name: &str) -> Option<Arc<dyn SchemaProvider>> {
        self.0.schema(name).map(|schema| Arc::new(LivingSchema(schema)) as _)
    }

    fn register_schema(
        &self,
        name: &str,
        schema: Arc<dyn SchemaProvider>,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.0.register_schema(name, schema)
    }

    fn deregister_schema(
        &self,
        name: &str,
        cascade: bool,
    ) -> Result<Option<Arc<dyn SchemaProvider>>> {
        self.0.deregister_schema(name, cascade)
    }
}

#[derive(Debug)]
struct LivingSchema(Arc<dyn SchemaProvider>);

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
        if let Some(table) = self.0.table(name).await? {
            return Ok(Some(table));
        }
        let Some((documents, kind)) = LivingTableKind::of_name(name) else { return Ok(None) };
        let Some(table) = self.0.table(documents).await? else { return Ok(None) };
        let table: Arc<dyn std::any::Any + Send + Sync> = table;
        let Ok(table) = table.downcast::<TadocTable>() else { return Ok(None) };
        Ok(Some(Arc::new(LivingTable::new(kind, documents, table))))
    }

    async fn table_type(&self, name: &str) -> Result<Option<TableType>> {
        match self.0.table_exist(name) {
            true => self.0.table_type(name).await,
            false => Ok(self.table(name).await?.map(|table| table.table_type())),
        }
    }

    fn register_table(
        &self,
        name: String,
        table: Arc<dyn TableProvider>,
    ) -> Result<Option<Arc<dyn TableProvider>>> {
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
