//! The table provider of every function and of every table `STORED AS TADOC`.
//!
//! A location that is a plain name (or `schema.name`) of a registered table means that table; the
//! table wins over a file of the same name, and `./name` means the file. Names with a slash, a
//! glob character or the ending `.tadoc` are never looked up. A location that is a living corpus is
//! read in its latest version as of the statement, or in the one asked for.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{TableReference, plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::metrics::Count;
use futures::FutureExt;

use super::corpora::{CorpusCache, LoadContext, LoadedCorpus};
use super::device_tasks::{Placement, Task, place};
use super::exec::TadocExec;
use super::failure::task_error;
use super::filter::{Stage, demands, is_claimable, mentions};
use super::functions::{Reads, TableFunction};
use super::living::{
    FoundCorpus, LivingView, Reading, insert_into, no_versions, read_only, unfiltered,
};
use super::location::{CORPUS_EXTENSION, Wanted, resolve_files};
use super::memory::Uses;
use super::options::{Device, TadocOptions};
use super::portions::{Merge, Planner, Portions, portions_of};
use super::scan::{Scan, Source};
use tadoc_store::LivingStore;

/// What a scan of a table reads.
struct Target {
    location: String,
    version: Option<u64>,
    options: TadocOptions,
}

/// A bound function over a location; see the module's description.
#[derive(Debug, Clone)]
pub struct TadocTable {
    function: Arc<dyn TableFunction>,
    location: String,
    cache: Arc<CorpusCache>,
    /// The version asked for, of a living corpus.
    version: Option<u64>,
    options: HashMap<String, String>,
    definition: Option<String>,
    user_columns: Vec<FieldRef>,
    /// What the statement reads that this table is in.
    reading: Option<Arc<Reading>>,
}

/// What functions that are no scans get of a table.
#[derive(Debug)]
pub(crate) struct LoadedTable {
    pub(crate) corpus: Arc<LoadedCorpus>,
    pub(crate) source: Source,
    pub(crate) options: TadocOptions,
}

impl TadocTable {
    pub(crate) fn new(
        function: Arc<dyn TableFunction>,
        location: String,
        cache: Arc<CorpusCache>,
    ) -> Self {
        let (version, options, definition, user_columns, reading) = Default::default();
        Self { function, location, cache, version, options, definition, user_columns, reading }
    }

    /// Asks for a version of a living corpus; the latest one where it is `None`.
    pub(crate) fn with_version(self, version: Option<u64>) -> Self {
        Self { version, ..self }
    }

    /// The same table, of the versions of `reading`.
    pub(crate) fn with_reading(self, reading: Option<&Arc<Reading>>) -> Self {
        Self { reading: reading.cloned(), ..self }
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

    /// What the table reads, its settings on top of the session's.
    async fn target(&self, session: &dyn Session) -> Result<Target> {
        let options = TadocOptions::from_config(session.config_options());
        let options = options.with_overrides(&self.options)?;
        let (location, version) = (self.location.clone(), self.version);
        if matches!(self.function.reads(), Reads::Files | Reads::Nothing) {
            return Ok(Target { location, version, options });
        }
        match registered(session, &self.location).await? {
            Some(table) => {
                let table = as_tadoc(&table, &self.location)?;
                let (location, version) = (table.location.clone(), version.or(table.version));
                Ok(Target { location, version, options: options.with_overrides(&table.options)? })
            }
            None => Ok(Target { location, version, options }),
        }
    }

    /// The living corpus that the table is, if it is one.
    ///
    /// # Errors
    /// A plan error where its location is none; those of the store.
    pub(crate) async fn living(&self, session: &dyn Session) -> Result<Option<FoundCorpus>> {
        let target = self.target(session).await?;
        self.found(session.runtime_env(), &target.location).await
    }

    /// The living corpus at `location`, in the version that the statement reads.
    async fn found(&self, runtime: &RuntimeEnv, location: &str) -> Result<Option<FoundCorpus>> {
        let known = &self.cache.living;
        match &self.reading {
            Some(reading) => reading.find(known, runtime, location).await,
            None => known.find(runtime, location).await,
        }
    }

    /// The living corpus that a statement changes, and its settings.
    ///
    /// # Errors
    /// A plan error where the table cannot be changed.
    pub(crate) async fn changeable(
        &self,
        session: &dyn Session,
    ) -> Result<(LivingStore, TadocOptions)> {
        let target = self.target(session).await?;
        let found = self.cache.living.find(session.runtime_env(), &target.location).await?;
        match (found, target.version) {
            (None, _) => Err(read_only(&self.location)),
            (Some(_), Some(version)) => plan_err!(
                "{}: the table shows version {version} for ever; change one without that option",
                self.location
            ),
            (Some(found), None) => Ok((found.store, target.options)),
        }
    }

    /// Refuses a change whose rows are not known for sure.
    async fn refuse_change(&self, session: &dyn Session) -> DataFusionError {
        match self.changeable(session).await {
            Ok(_) => unfiltered(&self.location),
            Err(error) => error,
        }
    }

    /// Where it is, in the words of the user.
    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// The version of a living corpus that a scan would read now; `None` of other corpora.
    ///
    /// # Errors
    /// As a scan.
    pub(crate) async fn living_view(
        &self,
        session: &dyn Session,
    ) -> Result<Option<Arc<LivingView>>> {
        let target = self.target(session).await?;
        let runtime = session.runtime_env();
        match self.found(runtime, &target.location).await? {
            None => Ok(None),
            Some(found) => self.view(runtime, &target, &found).await.map(Some),
        }
    }

    async fn view(
        &self,
        runtime: &Arc<RuntimeEnv>,
        target: &Target,
        found: &FoundCorpus,
    ) -> Result<Arc<LivingView>> {
        let version = found.version(target.version).await?;
        self.cache.living.view(&self.cache, runtime, &target.options, found, version).await
    }

    async fn source(&self, session: &dyn Session, target: &Target) -> Result<Source> {
        let (location, runtime) = (&target.location, session.runtime_env());
        let reads = self.function.reads();
        match reads {
            Reads::Nothing => return Ok(Source::Files(Vec::new())),
            Reads::Files => {
                return Ok(Source::Files(resolve_files(runtime, location, Wanted::Files).await?));
            }
            Reads::Corpora | Reads::UncheckedCorpora => {}
        }
        if let Some(found) = self.found(runtime, location).await? {
            if reads == Reads::Corpora {
                return Ok(Source::Living(self.view(runtime, target, &found).await?));
            }
            let version = found.version(target.version).await?;
            return Ok(Source::Unchecked(Arc::new(found), version));
        }
        let files = resolve_files(runtime, location, Wanted::Corpora).await?;
        if let Some(version) = target.version {
            return Err(no_versions(location, version, files.len()));
        }
        if reads == Reads::UncheckedCorpora {
            return Ok(Source::Files(files));
        }
        let limits = target.options.open_limits();
        Ok(Source::Corpora(self.cache.open(runtime, &limits, files).await?))
    }

    /// The corpus as it is now, for functions that are no scans.
    ///
    /// # Errors
    /// As a scan.
    pub(crate) async fn load(&self, session: &dyn Session) -> Result<LoadedTable> {
        let target = self.target(session).await?;
        let source = self.source(session, &target).await?;
        let context = LoadContext {
            runtime: Arc::clone(session.runtime_env()),
            uses: Uses::Places,
            options: target.options.clone(),
            bytes_read: Count::new(),
            versions_made: None,
        };
        let corpus = self.cache.load(&context, &source).await?;
        Ok(LoadedTable { corpus, source, options: target.options })
    }

    /// The portions in which `scan`, whose corpus is not loaded, is answered where memory has no room for all; `None`
    /// where it has, or where nothing can be made of them.
    fn portions(&self, session: &dyn Session, scan: &Scan, filters: &[Expr]) -> Option<Portions> {
        let is_readable = self.function.reads() == Reads::Corpora;
        if !is_readable || self.function.merge(scan) == Merge::Never {
            return None;
        }
        let may_be_set = scan.living().is_some_and(|view| view.version.sets_columns);
        if may_be_set && self.uses_user_columns(scan, filters) {
            return None;
        }
        let uses = uses(self.function.as_ref(), scan, filters);
        portions_of(&scan.source, session, &scan.options, uses)
    }

    /// Whether user columns go out of `scan` or are filtered on.
    fn uses_user_columns(&self, scan: &Scan, filters: &[Expr]) -> bool {
        self.user_columns.iter().any(|field| {
            let is_out = |&i: &usize| scan.schema.field(i).name() == field.name();
            let is_named = |filter: &Expr| mentions(filter, &[field.name()]);
            scan.projection.iter().any(is_out) || filters.iter().any(is_named)
        })
    }

    /// Plans `scan`, which has no filters yet, with `filters`, all of which `function` takes over; `loaded` is its corpus, where it
    /// is loaded.
    fn exec(
        &self,
        session: &dyn Session,
        function: Arc<dyn TableFunction>,
        mut scan: Scan,
        filters: &[Expr],
        loaded: Option<&LoadedCorpus>,
        target_partitions: usize,
    ) -> Result<TadocExec> {
        let (text_filters, column_filters): (Vec<Expr>, Vec<Expr>) =
            filters.iter().cloned().partition(|filter| needs_text(function.as_ref(), filter));
        scan.columns_stage = Stage::compile(session, &scan.schema, &column_filters)?;
        scan.text_stage = Stage::compile(session, &scan.schema, &text_filters)?;
        scan.demands = text_filters.iter().filter_map(|filter| demands(filter, "text")).collect();
        scan.demands.retain(|patterns| patterns.iter().all(|p| !p.fragments.is_empty()));
        function.prepare(&scan)?;
        scan.uses = uses(function.as_ref(), &scan, filters);
        if function.reads() == Reads::Corpora {
            let task = function.device_task(&scan);
            scan.placement = place(&scan, task, loaded);
            scan.are_words_kept = are_words_kept(&scan, task, loaded);
        }
        // A small limit is met by the first rows: more partitions would only decode in vain.
        if scan.limit.is_none_or(|limit| limit > session.config().batch_size()) {
            scan.num_partitions = function.num_partitions(&scan, target_partitions).max(1);
        }
        TadocExec::try_new(function, scan, Arc::clone(&self.cache))
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
        let target = self.target(session).await?;
        let source = self.source(session, &target).await?;
        let schema = self.function.schema();
        let filters: Vec<Expr> = filters.iter().filter(|f| self.claims(f)).cloned().collect();
        let all = || (0..schema.fields().len()).collect();
        let scan = Scan {
            location: self.location.clone(),
            source,
            projection: projection.cloned().unwrap_or_else(all),
            columns_stage: None,
            dynamic_stages: Vec::new(),
            text_stage: None,
            demands: Vec::new(),
            schema,
            limit,
            options: target.options,
            num_partitions: 1,
            uses: Uses::default(),
            placement: Placement::default(),
            are_words_kept: Vec::new(),
        };
        let function = Arc::clone(&self.function);
        let loaded = self.cache.loaded(&scan.source);
        let portions =
            if loaded.is_none() { self.portions(session, &scan, &filters) } else { None };
        let Some(portions) = portions else {
            keep_words(&scan, function.device_task(&scan), loaded.clone()).await?;
            let target = session.config().target_partitions();
            let exec = self.exec(session, function, scan, &filters, loaded.as_deref(), target)?;
            return Ok(Arc::new(exec));
        };
        function.prepare(&scan)?;
        let planner = Planner { session, scan, function, filters };
        let plan = |function, scan: Scan, filters: &[Expr]| {
            let loaded = self.cache.loaded(&scan.source);
            let exec = self.exec(session, function, scan, filters, loaded.as_deref(), 1)?;
            Ok(Arc::new(exec) as Arc<dyn ExecutionPlan>)
        };
        planner.plan(&portions, &plan).await
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        insert_into(self, session, input, operation).await
    }

    async fn delete_from(
        &self,
        session: &dyn Session,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(self.refuse_change(session).await)
    }

    async fn update(
        &self,
        session: &dyn Session,
        _assignments: Vec<(String, Expr)>,
        _filters: Vec<Expr>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Err(self.refuse_change(session).await)
    }
}

/// Makes the words of documents that are worth it by now, which a query for `task` would do when it runs: EXPLAIN shows what
/// will be done.
async fn keep_words(
    scan: &Scan,
    task: std::result::Result<Task, &'static str>,
    loaded: Option<Arc<LoadedCorpus>>,
) -> Result<()> {
    let is_asked = |task: Task| task.is_in_doc_words(&scan.options);
    let is_asked = scan.options.device != Device::Gpu && task.is_ok_and(is_asked);
    let Some(loaded) = loaded.filter(|_| is_asked) else { return Ok(()) };
    let make = move || {
        for segment in loaded.corpus.segments() {
            segment.dag.doc_words_if_worth();
        }
    };
    tokio::task::spawn_blocking(make).await.map_err(task_error)
}

/// For each segment of the corpus `loaded` whether `task` is answered from the words of its documents.
fn are_words_kept(
    scan: &Scan,
    task: std::result::Result<Task, &'static str>,
    loaded: Option<&LoadedCorpus>,
) -> Vec<bool> {
    let is_asked = |task: Task| task.is_in_doc_words(&scan.options);
    let is_asked = !scan.placement.is_on_device() && task.is_ok_and(is_asked);
    let segments = loaded.into_iter().flat_map(|loaded| loaded.corpus.segments());
    segments.filter(|_| is_asked).map(|segment| segment.dag.has_doc_words()).collect()
}

/// What `function` uses of segments behind `filters`: those on text look for documents that may pass first, by places.
fn uses(function: &dyn TableFunction, scan: &Scan, filters: &[Expr]) -> Uses {
    let is_on_text = |filter: &Expr| needs_text(function, filter);
    match scan.living().is_some() || filters.iter().any(is_on_text) {
        true => Uses::Places,
        false => function.uses(scan),
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
