//! SQL on corpora: everything that names DataFusion.
//!
//! ```text
//! SQL ─ planner ─▶ functions/… (bound arguments, no I/O) ─▶ table ─ scan ─▶ exec ─▶ rows
//!       named args            CREATE EXTERNAL TABLE ─ factory ┘      │         ▲
//!       any case              COPY TO ─ file_format ─ sink           └ corpora ┘ footers, segments
//! ```
//!
//! One call registers all of it:
//!
//! ```
//! use datafusion::prelude::*;
//!
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let file = dir.path().join("plays.tadoc").display().to_string();
//! let ctx = SessionContext::new();
//! datafusion_tadoc::register_all(&ctx)?;
//!
//! let copy = format!("COPY (SELECT 'a.txt' AS path, 'to be or not to be' AS text) TO '{file}'");
//! ctx.sql(&copy).await?.collect().await?;
//! let query = format!("SELECT word, count FROM word_count('{file}') WHERE word IN ('be', 'or')");
//! let rows = ctx.sql(&query).await?.to_string().await?;
//! assert!(rows.contains("| be   | 2     |"));
//! # Ok(())
//! # }
//! ```
//!
//! Reading order: `signature` (the table of functions, which drives parsing, schemas and error
//! texts), `planner` and `arguments`, `location` (what a location may be), `table` and `scan`,
//! `exec`, `functions`, `filter` (what is pushed down), `corpora` (what is cached), `portions` (what memory has no
//! room for at once), `batch_rows` (long rows), `device_tasks` (what devices count), `opening` (when they are opened), `living`
//! (corpora that change), then `factory`, `file_format`, `sink` and `building`, and `options` (everything under
//! `SET tadoc.`); `resolver` (locations without statements), `parquet_files` (files that are no corpora). Before a statement is planned comes
//! `statement_depth`; errors and plans go through `secrets` and `way_out`.
//! What to ask: [`recipes`].

mod arguments;
mod batch_rows;
mod building;
mod columns;
mod containment;
mod corpora;
mod device_tasks;
mod enough;
mod exec;
mod factory;
mod failure;
mod file_format;
mod filter;
mod footer;
mod functions;
mod gsst;
mod living;
mod local_files;
mod location;
mod memory;
#[cfg(feature = "cuda")]
mod opening;
mod options;
mod output;
mod parquet_files;
mod planner;
mod portions;
pub mod recipes;
mod resolver;
mod scan;
mod secrets;
mod sections;
mod signature;
mod sink;
mod statement_depth;
mod table;
pub mod throughput;
mod upload;
pub mod user_columns;
mod way_out;

pub use self::containment::{contain_panics, quiet_readers};
pub use self::enough::enough_memory;
pub use self::exec::TadocExec;
pub use self::factory::TadocTableFactory;
pub use self::failure::contain_panics_of;
pub use self::file_format::TadocFormatFactory;
pub use self::gsst::{GsstFormatFactory, GsstSource};
pub use self::options::{Device, TadocOptions};
pub use self::planner::TadocRelationPlanner;
pub use self::resolver::{FileAt, Found, Resolver};
pub use self::secrets::{Secrets, mask_secrets};
pub use self::signature::{
    Argument, ArgumentKind, Column, ColumnKind, SIGNATURES, Signature, find_signature,
};
pub use self::statement_depth::check_statement_depth;
pub use self::table::TadocTable;
pub use self::way_out::way_out;

use std::sync::Arc;

use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::common::config::TableOptions;
use datafusion::datasource::provider::DefaultTableFactory;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::logical_expr::ScalarUDF;
use datafusion::prelude::{SessionConfig, SessionContext};

use self::batch_rows::BatchRows;
use self::corpora::CorpusCache;
use self::device_tasks::SpreadRows;
use self::functions::{CorpusFunction, Home, TadocFunction};
use self::living::{LivingCatalogs, LivingStatements};
use self::parquet_files::{NameParquetFiles, wrap_parquet_format};

/// Name of corpora in `STORED AS`.
pub const FILE_TYPE: &str = "TADOC";
/// Name of Parquet files with GSST columns in `STORED AS`.
pub const GSST_FILE_TYPE: &str = "GSST";

/// Registers the table functions, the scalar functions, the file type `TADOC`, named arguments, the
/// `tadoc.` options and the tables of living corpora (`"d$history"`) with `ctx`. Corpora that queries
/// open are kept by this registration.
///
/// # Errors
/// Where the session refuses a registration.
pub fn register_all(ctx: &SessionContext) -> Result<()> {
    let cache = Arc::new(CorpusCache::default());
    for (name, function) in TadocFunction::all(&cache) {
        ctx.register_udtf(name, function);
    }
    ctx.register_relation_planner(Arc::new(TadocRelationPlanner))?;
    ctx.add_analyzer_rule(Arc::new(LivingStatements));
    ctx.register_table_options_extension(TadocOptions::default());
    let catalogs = Arc::clone(ctx.state().catalog_list());
    let home = Home { runtime: ctx.runtime_env(), catalogs, cache: Arc::clone(&cache) };
    for function in CorpusFunction::all(home)? {
        ctx.register_udf(ScalarUDF::clone(&function));
    }
    let state = ctx.state_ref();
    let mut state = state.write();
    let session_id = state.session_id().to_owned();
    *state = SessionStateBuilder::new_from_existing(state.clone())
        .with_session_id(session_id)
        .with_physical_optimizer_rule(Arc::new(SpreadRows))
        .with_physical_optimizer_rule(Arc::new(BatchRows))
        .with_physical_optimizer_rule(Arc::new(NameParquetFiles))
        .build();
    let extensions = &mut state.config_mut().options_mut().extensions;
    if extensions.get::<TadocOptions>().is_none() {
        extensions.insert(TadocOptions::default());
    }
    let catalogs = LivingCatalogs::over(Some(Arc::clone(state.catalog_list())));
    state.register_catalog_list(catalogs);
    let factory = Arc::new(TadocTableFactory::new(cache));
    let factories = state.table_factories_mut();
    factories.insert(FILE_TYPE.to_string(), factory);
    factories.insert(GSST_FILE_TYPE.to_string(), Arc::new(DefaultTableFactory::new()));
    if let Some(parquet) = state.get_file_format_factory("parquet") {
        state.register_file_format(wrap_parquet_format(parquet), true)?;
    }
    state.register_file_format(Arc::<GsstFormatFactory>::default(), true)?;
    state.register_file_format(Arc::new(TadocFormatFactory), true)
}

/// Says that no statement comes after the next one in this process: with `tadoc.device = auto` no device is opened beside
/// it for statements after it.
pub fn expect_last_statement() {
    self::gsst::device::expect_nothing_more();
}

/// Returns true while a thread opens a GPU. Nobody waits for it. A process that ends meanwhile should end without what
/// is registered with `atexit`: the driver's part of that waits until the GPU is open.
pub fn is_opening_device() -> bool {
    self::gsst::device::is_opening()
}

/// [`register_all`] for sessions that are still being built.
///
/// ```
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::prelude::SessionContext;
/// use datafusion_tadoc::TadocSessionStateBuilderExt;
///
/// let state = SessionStateBuilder::new().with_default_features().with_tadoc().build();
/// let ctx = SessionContext::new_with_state(state);
/// assert!(ctx.state().table_functions().contains_key("word_count"));
/// ```
pub trait TadocSessionStateBuilderExt: Sized {
    /// Adds everything that [`register_all`] registers. A run-time environment or a list of catalogs of
    /// the builder's own must be set before.
    #[must_use]
    fn with_tadoc(self) -> Self;
}

impl TadocSessionStateBuilderExt for SessionStateBuilder {
    fn with_tadoc(mut self) -> Self {
        let cache = Arc::new(CorpusCache::default());
        let functions = self.table_functions().get_or_insert_default();
        for (name, function) in TadocFunction::all(&cache) {
            let function = datafusion::catalog::TableFunction::new(name.to_string(), function);
            functions.insert(name.to_string(), Arc::new(function));
        }
        let runtime = Arc::clone(self.runtime_env().get_or_insert_default());
        let catalogs = self.catalog_list();
        let catalogs = catalogs.get_or_insert_with(|| Arc::<MemoryCatalogProviderList>::default());
        let home = Home { runtime, catalogs: Arc::clone(catalogs), cache: Arc::clone(&cache) };
        if let Ok(functions) = CorpusFunction::all(home) {
            self.scalar_functions().get_or_insert_default().extend(functions);
        }
        let config = self.config().get_or_insert_with(SessionConfig::new);
        if config.options().extensions.get::<TadocOptions>().is_none() {
            config.options_mut().extensions.insert(TadocOptions::default());
        }
        let defaults = TableOptions::default_from_session_config(config.options());
        let table_options = self.table_options().get_or_insert(defaults);
        table_options.extensions.insert(TadocOptions::default());
        let catalogs = self.catalog_list();
        *catalogs = Some(LivingCatalogs::over(catalogs.take()));
        let factory = Arc::new(TadocTableFactory::new(cache));
        let factories = self.table_factories().get_or_insert_default();
        factories.insert(FILE_TYPE.to_string(), factory);
        factories.insert(GSST_FILE_TYPE.to_string(), Arc::new(DefaultTableFactory::new()));
        let formats = self.file_formats().get_or_insert_default();
        *formats = std::mem::take(formats).into_iter().map(wrap_parquet_format).collect();
        formats.push(Arc::<GsstFormatFactory>::default());
        formats.push(Arc::new(TadocFormatFactory));
        self.relation_planners().get_or_insert_default().push(Arc::new(TadocRelationPlanner));
        self.analyzer_rules().get_or_insert_default().push(Arc::new(LivingStatements));
        let rules = self.physical_optimizer_rules().get_or_insert_default();
        rules.push(Arc::new(SpreadRows));
        rules.push(Arc::new(BatchRows));
        rules.push(Arc::new(NameParquetFiles));
        self
    }
}

/// The Rust examples of the README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct ReadmeExamples;
