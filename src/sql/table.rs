//! The table provider of every function and of every table `STORED AS TADOC`.
//!
//! A location that is a plain name (or `schema.name`) of a registered table means that table; the
//! table wins over a file of the same name, and `./name` means the file. Names with a slash, a
//! glob character or the ending `.tadoc` are never looked up.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{TableReference, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use futures::FutureExt;

use super::corpora::CorpusCache;
use super::exec::TadocExec;
use super::filter::{Stage, demands, is_claimable, mentions};
use super::functions::{Reads, TableFunction};
use super::location::{CORPUS_EXTENSION, Wanted, resolve_files};
use super::options::{Device, TadocOptions};
use super::scan::{Scan, Source};

/// A bound function over a location; see the module's description.
#[derive(Debug)]
pub struct TadocTable {
    function: Arc<dyn TableFunction>,
    location: String,
    cache: Arc<CorpusCache>,
    options: HashMap<String, String>,
    definition: Option<String>,
    user_columns: Vec<FieldRef>,
}

impl TadocTable {
    pub(crate) fn new(
        function: Arc<dyn TableFunction>,
        location: String,
        cache: Arc<CorpusCache>,
    ) -> Self {
        let (options, definition, user_columns) = Default::default();
        Self { function, location, cache, options, definition, user_columns }
    }

    /// Adds what a `CREATE EXTERNAL TABLE` statement says.
    pub(crate) fn with_definition(
        mut self,
        options: HashMap<String, String>,
        definition: Option<String>,
        user_columns: Vec<FieldRef>,
    ) -> Self {
        (self.options, self.definition, self.user_columns) = (options, definition, user_columns);
        self
    }

    /// Columns that came with the documents.
    pub(crate) fn user_columns(&self) -> Vec<FieldRef> {
        self.user_columns.clone()
    }

    /// Where the table's files are, and its settings on top of the session's.
    async fn target(&self, session: &dyn Session) -> Result<(String, TadocOptions)> {
        let options = TadocOptions::from_config(session.config_options());
        let options = options.with_overrides(&self.options)?;
        if matches!(self.function.reads(), Reads::Files | Reads::Nothing) {
            return Ok((self.location.clone(), options));
        }
        match registered(session, &self.location).await? {
            Some(table) => {
                let table = as_tadoc(&table, &self.location)?;
                Ok((table.location.clone(), options.with_overrides(&table.options)?))
            }
            None => Ok((self.location.clone(), options)),
        }
    }

    async fn source(
        &self,
        session: &dyn Session,
        location: &str,
        options: &TadocOptions,
    ) -> Result<Source> {
        let reads = self.function.reads();
        if reads == Reads::Nothing {
            return Ok(Source::Files(Vec::new()));
        }
        let wanted = if reads == Reads::Files { Wanted::Files } else { Wanted::Corpora };
        let files = resolve_files(session, location, wanted).await?;
        if reads != Reads::Corpora {
            return Ok(Source::Files(files));
        }
        let limits = options.open_limits();
        Ok(Source::Corpora(self.cache.open(session.runtime_env(), &limits, files).await?))
    }

    fn claims(&self, filter: &Expr) -> bool {
        is_claimable(filter, &|column| self.function.claims_column(column))
    }
}

#[async_trait]
impl TableProvider for TadocTable {
    fn schema(&self) -> SchemaRef {
        self.function.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let answer = |filter: &&Expr| match self.claims(filter) {
            true => TableProviderFilterPushDown::Exact,
            false => TableProviderFilterPushDown::Unsupported,
        };
        Ok(filters.iter().map(answer).collect())
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let (location, options) = self.target(session).await?;
        if options.device == Device::Gpu && self.function.reads() == Reads::Corpora {
            return plan_err!(
                "tadoc.device = gpu: corpora are read on the CPU; SET tadoc.device = 'auto'"
            );
        }
        let source = self.source(session, &location, &options).await?;
        let schema = self.function.schema();
        let (text_filters, column_filters): (Vec<Expr>, Vec<Expr>) = filters
            .iter()
            .filter(|filter| self.claims(filter))
            .cloned()
            .partition(|filter| needs_text(self.function.as_ref(), filter));
        let all = || (0..schema.fields().len()).collect();
        let mut scan = Scan {
            location: self.location.clone(),
            source,
            projection: projection.cloned().unwrap_or_else(all),
            columns_stage: Stage::compile(session, &schema, &column_filters)?,
            dynamic_stages: Vec::new(),
            text_stage: Stage::compile(session, &schema, &text_filters)?,
            demands: text_filters.iter().filter_map(|filter| demands(filter, "text")).collect(),
            schema,
            limit,
            options,
            num_partitions: 1,
        };
        scan.demands.retain(|patterns| patterns.iter().all(|p| !p.fragments.is_empty()));
        self.function.prepare(&scan)?;
        let config = session.config();
        // A small limit is met by the first rows: more partitions would only decode in vain.
        if limit.is_none_or(|limit| limit > config.batch_size()) {
            let num_partitions = self.function.num_partitions(&scan, config.target_partitions());
            scan.num_partitions = num_partitions.max(1);
        }
        let function = Arc::clone(&self.function);
        Ok(Arc::new(TadocExec::try_new(function, scan, Arc::clone(&self.cache))?))
    }
}

fn needs_text(function: &dyn TableFunction, filter: &Expr) -> bool {
    let schema = function.schema();
    let text: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let text: Vec<&str> = text.into_iter().filter(|name| function.needs_text(name)).collect();
    mentions(filter, &text)
}

/// The registered table that `location` names.
async fn registered(
    session: &dyn Session,
    location: &str,
) -> Result<Option<Arc<dyn TableProvider>>> {
    let is_path = |c: char| matches!(c, '/' | '\\' | '*' | '?' | '[');
    if location.contains(is_path) || location.ends_with(CORPUS_EXTENSION) {
        return Ok(None);
    }
    let defaults = &session.config_options().catalog;
    let name = TableReference::parse_str(location)
        .resolve(&defaults.default_catalog, &defaults.default_schema);
    let catalogs = session.catalog_list();
    let schema = catalogs.catalog(&name.catalog).and_then(|catalog| catalog.schema(&name.schema));
    match schema.filter(|schema| schema.table_exist(&name.table)) {
        Some(schema) => schema.table(&name.table).await,
        None => Ok(None),
    }
}

/// The table `STORED AS TADOC` that `location` names, where a catalog answers without waiting.
pub(crate) fn registered_now(session: &dyn Session, location: &str) -> Option<Arc<TadocTable>> {
    let table = registered(session, location).now_or_never()?.ok()??;
    let any: Arc<dyn std::any::Any + Send + Sync> = table;
    any.downcast::<TadocTable>().ok()
}

fn as_tadoc<'a>(table: &'a Arc<dyn TableProvider>, name: &str) -> Result<&'a TadocTable> {
    table.downcast_ref::<TadocTable>().ok_or_else(|| {
        plan_datafusion_err!(
            "table {name} is not STORED AS TADOC; name such a table, or write ./{name} for a file"
        )
    })
}
