//! Registration of everything that this crate adds to a session, in one call or as one value for programs that put
//! sessions together.
//!
//! ```text
//! TadocExtension ─ settings ─┬─ extend(SessionStateBuilder) ─▶ the same builder
//!                            ├─ install(&SessionContext)    ─▶ a session that exists already
//!                            └─ parts()                     ─▶ names of all that comes with it
//! ```
//!
//! [`register_all`] and [`with_tadoc`](TadocSessionStateBuilderExt::with_tadoc) are short for an extension without
//! settings. To install twice is to install once.
//!
//! Scans are spans of the crate `tracing`: `tadoc_scan` for each partition, with the fields `function`, `corpus` and
//! `partition`, and in it `tadoc_load` and `tadoc_compute`. A subscriber that follows DataFusion's operators, such as
//! that of `datafusion-tracing`, has them below its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::catalog::MemoryCatalogProviderList;
use datafusion::common::GetExt;
use datafusion::common::config::TableOptions;
use datafusion::config::ExtensionOptions;
use datafusion::datasource::provider::DefaultTableFactory;
use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::corpora::CorpusCache;
use crate::depth::functions_of_types;
use crate::equal_names::guard_equal_names;
use crate::functions::{AtWorker, Home, TadocFunction, functions_of_plans, scalar_functions};
use crate::gsst::{GsstFormatFactory, RowsOnDevice};
use crate::options::TadocOptions;
use crate::parquet_files::{NameParquetFiles, wrap_parquet_format};
use crate::placement::DeviceSession;
use crate::planner::{
    DecimalText, DecimalTexts, EqualZeros, MisspelledFunctions, SetQueries, TadocRelationPlanner, keep_conditions,
};
use crate::planning::{BatchRows, SpreadRows};
use crate::promises::NullableConstants;
use crate::safety::{SafeStatements, Sandbox, sandbox_of};
use crate::text_files::{DeclaredValue, DeclaredValues, TextFile, wrap_json_format};
use crate::write::living::{CorpusOpener, LivingCatalogs, LivingStatements};
use crate::write::whole_files::WholeFiles;
use crate::write::{TadocFormatFactory, TadocTableFactory};

/// Name of the file type of corpora in `STORED AS`.
pub const FILE_TYPE: &str = "TADOC";
/// Name of the file type of Parquet files with GSST columns in `STORED AS`.
pub const GSST_FILE_TYPE: &str = "GSST";

/// Registers the table functions, the scalar functions, the file type `TADOC`, named arguments, the
/// `tadoc.` options and the tables of living corpora (`"d$history"`) with `ctx`. The registration
/// caches the corpora that queries open. A session that has them stays as it is.
///
/// # Errors
/// Never fails today. The result matches DataFusion's own registrations.
pub fn register_all(ctx: &SessionContext) -> Result<()> {
    let state = ctx.state_ref();
    let mut state = state.write();
    let is_there = |name| state.table_functions().contains_key(name);
    if TadocFunction::all(&Arc::default()).all(|(name, _)| is_there(name)) {
        return Ok(());
    }
    let session_id = state.session_id().to_owned();
    *state = SessionStateBuilder::new_from_existing(state.clone()).with_session_id(session_id).with_tadoc().build();
    Ok(())
}

/// Variant of [`register_all`] for sessions that are still being built.
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
    /// Adds everything that [`register_all`] registers. Set the run-time environment and the list
    /// of catalogs of the builder before this call.
    #[must_use]
    fn with_tadoc(self) -> Self;
}

impl TadocSessionStateBuilderExt for SessionStateBuilder {
    fn with_tadoc(mut self) -> Self {
        let config = self.config().get_or_insert_with(SessionConfig::new);
        let is_worker = config.get_extension::<AtWorker>().is_some();
        // The sessions of a worker's tasks share what they open. Other sessions have pools of their own.
        let shared = config.get_extension::<CorpusCache>().filter(|_| is_worker);
        let cache = shared.unwrap_or_default();
        config.set_extension(Arc::clone(&cache));
        if config.get_extension::<DeviceSession>().is_none() {
            config.set_extension(Arc::new(DeviceSession::new()));
        }
        let devices = DeviceSession::from_config(config);
        let runtime = Arc::clone(self.runtime_env().get_or_insert_default());
        let catalogs = self.catalog_list();
        let catalogs = catalogs.get_or_insert_with(|| Arc::<MemoryCatalogProviderList>::default());
        let catalogs = Arc::clone(catalogs);
        let home = Home { runtime: Arc::clone(&runtime), catalogs, cache: Arc::clone(&cache), devices, is_worker };
        add_functions(&mut self, home);
        add_options(&mut self);
        let catalogs = self.catalog_list();
        let opener = CorpusOpener { cache: Arc::clone(&cache), runtime: Arc::clone(&runtime) };
        *catalogs = Some(LivingCatalogs::over(catalogs.take(), opener));
        add_files(&mut self, cache);
        add_rules(&mut self, sandbox_of(&runtime));
        self
    }
}

/// Adds the table functions and the scalar functions, which have what they need from `home`.
fn add_functions(builder: &mut SessionStateBuilder, home: Home) {
    let is_worker = home.is_worker;
    let functions = builder.table_functions().get_or_insert_default();
    for (name, function) in TadocFunction::all(&home.cache) {
        let function = datafusion::catalog::TableFunction::new(name.to_string(), function);
        functions.insert(name.to_string(), Arc::new(function));
    }
    let scalars = builder.scalar_functions().get_or_insert_default();
    scalars.extend(scalar_functions(home));
    scalars.extend(functions_of_types());
    if is_worker {
        scalars.extend(functions_of_plans());
        let casts = [false, true].map(DecimalText::new);
        scalars.extend(casts.map(|function| Arc::new(function.into())));
        scalars.push(Arc::new(DeclaredValue::new().into()));
    }
}

/// Adds the settings of sessions and of tables.
fn add_options(builder: &mut SessionStateBuilder) {
    let config = builder.config().get_or_insert_with(SessionConfig::new);
    if config.options().extensions.get::<TadocOptions>().is_none() {
        config.options_mut().extensions.insert(TadocOptions::default());
    }
    let defaults = TableOptions::default_from_session_config(config.options());
    let table_options = builder.table_options().get_or_insert(defaults);
    table_options.extensions.insert(TadocOptions::default());
}

/// Adds the types of tables and the formats of files.
fn add_files(builder: &mut SessionStateBuilder, cache: Arc<CorpusCache>) {
    let factories = builder.table_factories().get_or_insert_default();
    factories.insert(FILE_TYPE.to_string(), Arc::new(TadocTableFactory::new(cache)));
    factories.insert(GSST_FILE_TYPE.to_string(), Arc::new(DefaultTableFactory::new()));
    for file in TextFile::ALL {
        let file_type = file.get_ext().to_uppercase();
        factories.insert(file_type, Arc::new(DefaultTableFactory::new()));
    }
    let formats = builder.file_formats().get_or_insert_default();
    *formats = std::mem::take(formats).into_iter().map(wrap_parquet_format).map(wrap_json_format).collect();
    formats.push(Arc::<GsstFormatFactory>::default());
    formats.push(Arc::new(TadocFormatFactory));
    formats.extend(TextFile::ALL.map(|file| Arc::new(file) as _));
}

/// Adds the planners and the rules of plans. In a safe session they follow the rules of its `sandbox`.
fn add_rules(builder: &mut SessionStateBuilder, sandbox: Option<Sandbox>) {
    // First in the list, so that the function names of this crate take precedence.
    let planners = builder.relation_planners().get_or_insert_default();
    planners.insert(0, Arc::new(TadocRelationPlanner));
    planners.push(Arc::new(MisspelledFunctions));
    let analyzers = builder.analyzer_rules().get_or_insert_default();
    // Before the rule that makes nodes of its own of statements.
    analyzers.extend(sandbox.map(|sandbox| Arc::new(SafeStatements(sandbox)) as _));
    analyzers.push(Arc::new(SetQueries));
    analyzers.push(Arc::new(LivingStatements));
    analyzers.push(Arc::new(DecimalTexts));
    keep_conditions(builder.optimizer().get_or_insert_default());
    builder.optimizer_rules().get_or_insert_default().push(Arc::new(EqualZeros));
    let physical_optimizer = builder.physical_optimizers().get_or_insert_default();
    guard_equal_names(physical_optimizer);
    physical_optimizer.rules.insert(0, Arc::new(NullableConstants));
    let rules = builder.physical_optimizer_rules().get_or_insert_default();
    rules.push(Arc::new(SpreadRows));
    rules.push(Arc::new(BatchRows));
    rules.push(Arc::new(DeclaredValues));
    rules.push(Arc::new(NameParquetFiles));
    rules.push(Arc::new(WholeFiles));
    rules.push(Arc::new(RowsOnDevice));
}

/// Everything that this crate adds to a session; see the module's description.
///
/// ```
/// use datafusion::prelude::SessionContext;
/// use datafusion_tadoc::TadocExtension;
///
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let tadoc = TadocExtension::default().with_setting("max_memory_bytes", "1GiB")?;
/// let ctx = SessionContext::new();
/// tadoc.install(&ctx)?;
///
/// let rows = ctx.sql("SHOW tadoc.max_memory_bytes").await;
/// assert!(tadoc.parts().table_functions.contains(&"kwic".to_owned()));
/// # let _ = rows;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct TadocExtension {
    options: TadocOptions,
    devices: Option<Arc<DeviceSession>>,
}

impl TadocExtension {
    /// Sets the setting `tadoc.NAME`, as `SET` does.
    ///
    /// # Errors
    /// A configuration error if there is no such setting, or if it does not take the value.
    pub fn with_setting(mut self, name: &str, value: &str) -> Result<Self> {
        self.options.set(name, value)?;
        Ok(self)
    }

    /// Shares the devices of another session.
    #[must_use]
    pub fn with_devices(self, devices: Arc<DeviceSession>) -> Self {
        Self { devices: Some(devices), ..self }
    }

    /// Adds everything to `builder`. Set its run-time environment and its list of catalogs before.
    #[must_use]
    pub fn extend(&self, mut builder: SessionStateBuilder) -> SessionStateBuilder {
        let config = builder.config().get_or_insert_with(SessionConfig::new);
        config.options_mut().extensions.insert(self.options.clone());
        if let Some(devices) = &self.devices {
            config.set_extension(Arc::clone(devices));
        }
        builder.with_tadoc()
    }

    /// Adds everything to `ctx`. If it is there already, only the settings are set.
    ///
    /// # Errors
    /// Never fails today. The result matches DataFusion's own registrations.
    pub fn install(&self, ctx: &SessionContext) -> Result<()> {
        register_all(ctx)?;
        let state = ctx.state_ref();
        let mut state = state.write();
        let config = state.config_mut();
        config.options_mut().extensions.insert(self.options.clone());
        if let Some(devices) = &self.devices {
            config.set_extension(Arc::clone(devices));
        }
        Ok(())
    }

    /// Returns the names of all parts: what a session with the extension has, and an empty one has not.
    pub fn parts(&self) -> Parts {
        let with = Parts::from_state(&self.extend(SessionStateBuilder::new()).build());
        with.beside(Parts::from_state(&SessionStateBuilder::new().build()))
    }
}

/// Names of the parts of an extension, each list in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Functions in `FROM`.
    pub table_functions: Vec<String>,
    /// Functions of rows.
    pub scalar_functions: Vec<String>,
    /// Types of files in `STORED AS`, in capitals.
    pub file_types: Vec<String>,
    /// Rules that analyze logical plans.
    pub analyzer_rules: Vec<String>,
    /// Rules that change physical plans.
    pub physical_rules: Vec<String>,
    /// Number of planners of relations.
    pub num_relation_planners: usize,
}

impl Parts {
    fn from_state(state: &SessionState) -> Self {
        let sorted = |names: &mut dyn Iterator<Item = String>| names.collect::<BTreeSet<_>>().into_iter().collect();
        Self {
            table_functions: sorted(&mut state.table_functions().keys().cloned()),
            scalar_functions: sorted(&mut state.scalar_functions().keys().cloned()),
            file_types: sorted(&mut state.table_factories().keys().cloned()),
            analyzer_rules: sorted(&mut state.analyzer().rules.iter().map(|rule| rule.name().to_owned())),
            physical_rules: sorted(&mut state.physical_optimizers().iter().map(|rule| rule.name().to_owned())),
            num_relation_planners: state.relation_planners().len(),
        }
    }

    /// Returns the parts that `other` has not.
    fn beside(self, other: Self) -> Self {
        let beside = |names: Vec<String>, others: &[String]| {
            names.into_iter().filter(|name| !others.contains(name)).collect::<Vec<_>>()
        };
        Self {
            table_functions: beside(self.table_functions, &other.table_functions),
            scalar_functions: beside(self.scalar_functions, &other.scalar_functions),
            file_types: beside(self.file_types, &other.file_types),
            analyzer_rules: beside(self.analyzer_rules, &other.analyzer_rules),
            physical_rules: beside(self.physical_rules, &other.physical_rules),
            num_relation_planners: self.num_relation_planners - other.num_relation_planners,
        }
    }
}
