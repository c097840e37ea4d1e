//! The table provider of every table function and of every table `STORED AS TADOC`: its schema, the filters that it
//! claims, scans and changes.
//!
//! A location that is the plain name (or `schema.name`) of a registered table refers to that table.
//! The table has priority over a file of the same name; `./name` refers to the file. Names with a
//! slash, a glob character or the ending `.tadoc` are never looked up. A living corpus is read in
//! its latest version at the time of the statement, or in the requested one.
//!
//! Planning changes nothing. It reads footers and checks which corpora are loaded already.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::{FieldRef, SchemaRef};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{DFSchema, TableReference, plan_datafusion_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::metrics::Count;
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::corpora::living::{FoundCorpus, LivingView, Reading, no_versions, open_view, read_only};
use crate::corpora::location::{CORPUS_EXTENSION, SourceFile, Wanted, resolve_files};
use crate::corpora::memory::Uses;
use crate::corpora::{CorpusCache, LoadContext, LoadedCorpus, Source};
use crate::options::TadocOptions;
use crate::placement::DeviceSession;
use crate::planning::arguments::Arguments;
use crate::planning::exec::TadocExec;
use crate::planning::file_names::{FileColumn, WantedColumns};
use crate::planning::filter::{Filters, is_claimable};
use crate::planning::function::{Bind, BoundFunction, Facts, Merge, Prepared, Reads, TableFunction};
use crate::planning::plan::used;
use crate::planning::portions::{Planner, Portions, growing_portions, portions_of, runs_of, spreading_of};
use crate::planning::side_tables::{self, TEXTS, Texts};
use crate::planning::signature::{Claim, Columns, QUERY, Signature};
use crate::planning::{ScanPlan, ScanSpec};
use tadoc::text::Synonyms;
use tadoc_store::LivingStore;

/// The location, version and settings that a scan of a table uses.
pub(super) struct Target {
    pub(super) location: String,
    pub(super) version: Option<u64>,
    pub(super) options: TadocOptions,
}

/// The place that a table reads, if its statement was made in another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedLocation {
    /// Absolute path or URL.
    pub location: String,
    /// Folder above a relative location, with a slash at its end. Rows and messages do not show it.
    pub folder: String,
}

/// A function that plans an `INSERT` into a table. Writing stands above planning, and gives it to the tables that it
/// makes.
pub(crate) type InsertInto = for<'a> fn(
    &'a TadocTable,
    &'a dyn Session,
    Arc<dyn ExecutionPlan>,
    InsertOp,
) -> BoxFuture<'a, Result<Arc<dyn ExecutionPlan>>>;

/// The condition of a call, and the function of the documents with their user columns.
#[derive(Debug, Clone)]
pub(crate) struct Condition {
    pub(super) text: String,
    pub(super) documents: fn(Vec<FieldRef>) -> BoundFunction,
}

/// A bound function over a location. See the module's description.
#[derive(Debug, Clone)]
pub struct TadocTable {
    pub(super) function: Arc<dyn TableFunction>,
    pub(super) location: String,
    pub(super) cache: Arc<CorpusCache>,
    /// Requested version of a living corpus.
    pub(super) version: Option<u64>,
    pub(super) options: HashMap<String, String>,
    pub(super) definition: Option<String>,
    pub(super) insert: Option<InsertInto>,
    pub(super) user_columns: Vec<FieldRef>,
    /// Versions that the statement with this table reads.
    pub(super) reading: Option<Arc<Reading>>,
    /// The call whose synonyms each scan reads.
    pub(super) call: Option<(Arguments, Bind)>,
    /// Synonyms that were read.
    pub(super) synonyms: Option<Arc<Synonyms>>,
    /// Texts of another table that were read.
    pub(super) texts: Option<Arc<Texts>>,
    /// Signature of the function that the user called, if its plan made this table.
    pub(super) called: Option<&'static Signature>,
    pub(super) place: Option<ResolvedLocation>,
    /// Columns with files, behind those of the function.
    pub(super) file_columns: Vec<FileColumn>,
    /// The condition that documents meet, if not all are asked about.
    pub(super) condition: Option<Condition>,
}

/// A loaded table, for functions that are not scans.
#[derive(Debug)]
pub(crate) struct LoadedTable {
    pub(crate) corpus: Arc<LoadedCorpus>,
    pub(crate) source: Source,
    pub(crate) options: TadocOptions,
}

impl TadocTable {
    pub(crate) fn new(function: Arc<dyn TableFunction>, location: String, cache: Arc<CorpusCache>) -> Self {
        Self {
            function,
            location,
            cache,
            version: None,
            options: HashMap::new(),
            definition: None,
            insert: None,
            user_columns: Vec::new(),
            reading: None,
            call: None,
            synonyms: None,
            texts: None,
            called: None,
            place: None,
            file_columns: Vec::new(),
            condition: None,
        }
    }

    /// Adds columns with the files of documents, of a location with several.
    pub(crate) fn with_files(self) -> Self {
        let file_columns = FileColumn::all(&self.function.columns().schema);
        Self { file_columns, ..self }
    }

    /// Lets each scan bind the function again, with the rows that the table of synonyms of `arguments`
    /// has then. Without synonyms in `arguments` the function stays as it is.
    pub(crate) fn with_synonyms_of(self, arguments: &Arguments, bind: Bind) -> Self {
        let call = arguments.unread_synonyms().map(|_| (arguments.clone(), bind));
        Self { call, ..self }
    }

    /// Restricts the table to the documents that meet `text`, if it is not empty. `documents` builds the function of
    /// documents with user columns.
    pub(crate) fn with_condition(self, text: &str, documents: fn(Vec<FieldRef>) -> BoundFunction) -> Self {
        let condition = (!text.is_empty()).then(|| Condition { text: text.to_owned(), documents });
        Self { condition, ..self }
    }

    /// Gives errors of the arguments the name of the function that the user called.
    pub(crate) fn called_by(self, called: &'static Signature) -> Self {
        Self { called: Some(called), ..self }
    }

    /// Returns an error of the function's arguments under the name of the function that the user called.
    pub(super) fn named(&self, error: DataFusionError) -> DataFusionError {
        match self.called {
            Some(called) => self.function.signature().error_of_call(error, called),
            None => error,
        }
    }

    /// Returns the same table with synonyms that were read, if it has any.
    pub(super) async fn read_synonyms(&self, session: &dyn Session) -> Result<Option<Self>> {
        let Some((arguments, bind)) = &self.call else { return Ok(None) };
        let Some((fold, name)) = arguments.unread_synonyms() else { return Ok(None) };
        let Some(table) = registered(session, name).await? else {
            return plan_err!("fold: there is no table {name}, expected {}", side_tables::EXPECTED);
        };
        let synonyms = side_tables::read(session, &table, name, fold).await?;
        let function = bind(&arguments.clone().with_synonyms(synonyms.clone()), session);
        let synonyms = Some(Arc::new(synonyms));
        Ok(Some(Self { function, call: None, synonyms, ..self.clone() }))
    }

    /// Returns the texts of another table that the function compares with the corpus, if it does.
    pub(super) async fn read_texts(&self, session: &dyn Session) -> Result<Option<Arc<Texts>>> {
        if self.texts.is_some() {
            return Ok(self.texts.clone());
        }
        let Some(name) = self.argument(TEXTS) else { return Ok(None) };
        let table = match registered(session, &name).await? {
            Some(table) => Some(table),
            None => named_by_catalog(session, &name).await?,
        };
        let Some(table) = table else {
            return plan_err!("texts: there is no table {name} and no file or corpus that is read by this name");
        };
        Ok(Some(Arc::new(Texts::read(session, &table, &name).await?)))
    }

    /// Selects a version of a living corpus; `None` selects the latest one.
    pub(crate) fn with_version(self, version: Option<u64>) -> Self {
        Self { version, ..self }
    }

    /// Lets statements insert rows with `insert`.
    pub(crate) fn with_insert(self, insert: InsertInto) -> Self {
        Self { insert: Some(insert), ..self }
    }

    /// Returns the same table in the versions of `reading`.
    pub(crate) fn with_reading(self, reading: Option<&Arc<Reading>>) -> Self {
        Self { reading: reading.cloned(), ..self }
    }

    /// Adds the options, the definition and the user columns of a `CREATE EXTERNAL TABLE`
    /// statement.
    pub(crate) fn with_definition(
        mut self,
        options: HashMap<String, String>,
        definition: Option<String>,
        user_columns: Vec<FieldRef>,
    ) -> Self {
        (self.options, self.definition, self.user_columns) = (options, definition, user_columns);
        self
    }

    /// Returns the user columns.
    pub(crate) fn user_columns(&self) -> Vec<FieldRef> {
        self.user_columns.clone()
    }

    /// Returns the location, the version and the settings of a scan. The settings of the table
    /// override those of the session.
    pub(super) async fn target(&self, session: &dyn Session) -> Result<Target> {
        let options = TadocOptions::from_config(session.config_options());
        let options = options.with_overrides(&self.options)?;
        let location = self.location.clone();
        let version = self.version;
        if let Some(place) = &self.place {
            return Ok(Target { location: place.location.clone(), version, options });
        }
        if matches!(self.function.reads(), Reads::Files | Reads::Nothing) {
            return Ok(Target { location, version, options });
        }
        match registered(session, &self.location).await? {
            Some(table) => {
                let table = as_tadoc(&table, &self.location)?;
                let location = table.location.clone();
                let version = version.or(table.version);
                Ok(Target { location, version, options: options.with_overrides(&table.options)? })
            }
            None => Ok(Target { location, version, options }),
        }
    }

    /// Returns the living corpus at the table's location, if there is one.
    ///
    /// # Errors
    /// A plan error if a name at the location is not a table `STORED AS TADOC`; the errors of the
    /// store.
    pub(crate) async fn living(&self, session: &dyn Session) -> Result<Option<FoundCorpus>> {
        let target = self.target(session).await?;
        self.found(session.runtime_env(), &target.location).await
    }

    /// Returns the living corpus at `location`, in the version that the statement reads.
    pub(super) async fn found(&self, runtime: &RuntimeEnv, location: &str) -> Result<Option<FoundCorpus>> {
        let known = &self.cache.living;
        match &self.reading {
            Some(reading) => reading.find(known, runtime, location).await,
            None => known.find(runtime, location).await,
        }
    }

    /// Returns the living corpus that a statement changes, and its settings.
    ///
    /// # Errors
    /// A plan error if the table cannot be changed.
    pub(crate) async fn changeable(&self, session: &dyn Session) -> Result<(LivingStore, TadocOptions)> {
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

    /// Returns the error that refuses a change whose rows are not known for sure.
    pub(super) async fn refuse_change(&self, session: &dyn Session) -> DataFusionError {
        match self.changeable(session).await {
            Ok(_) => unfiltered(&self.location),
            Err(error) => error,
        }
    }

    /// Returns the query of the call, if its function takes one.
    pub(crate) fn query(&self) -> Option<String> {
        self.argument(QUERY.name)
    }

    fn argument(&self, name: &str) -> Option<String> {
        let mut arguments = self.function.arguments().into_iter();
        arguments.find(|(argument, _)| *argument == name).map(|(_, value)| value)
    }

    /// Returns the location as the user wrote it.
    pub(crate) fn location(&self) -> &str {
        &self.location
    }

    /// Returns the version of a living corpus that a scan would read now; `None` for other corpora.
    ///
    /// # Errors
    /// The errors of a scan.
    pub(crate) async fn living_view(&self, session: &dyn Session) -> Result<Option<Arc<LivingView>>> {
        let target = self.target(session).await?;
        let runtime = session.runtime_env();
        match self.found(runtime, &target.location).await? {
            None => Ok(None),
            Some(found) => self.view(runtime, &target, &found).await.map(Some),
        }
    }

    async fn view(&self, runtime: &Arc<RuntimeEnv>, target: &Target, found: &FoundCorpus) -> Result<Arc<LivingView>> {
        let version = found.version(target.version).await?;
        open_view(&self.cache, runtime, &target.options, found, version).await
    }

    pub(super) async fn source(&self, session: &dyn Session, target: &Target) -> Result<Source> {
        let location = &target.location;
        let runtime = session.runtime_env();
        let reads = self.function.reads();
        match reads {
            Reads::Nothing => return Ok(Source::Files(Vec::new())),
            Reads::Files => {
                return Ok(Source::Files(self.files(runtime, location, Wanted::Files).await?));
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
        let files = self.files(runtime, location, Wanted::Corpora).await?;
        if let Some(version) = target.version {
            return Err(no_versions(location, version, files.len()));
        }
        if reads == Reads::UncheckedCorpora {
            return Ok(Source::Files(files));
        }
        let limits = target.options.open_limits();
        Ok(Source::Corpora(self.cache.open(runtime, &limits, files).await?))
    }

    /// Returns the files of `location`, as a statement in the folder of the table shows them.
    async fn files(&self, runtime: &RuntimeEnv, location: &str, wanted: Wanted) -> Result<Vec<SourceFile>> {
        let files = resolve_files(runtime, location, wanted).await?;
        let files = match &self.place {
            Some(place) => files.into_iter().map(|file| place.shown(file)).collect(),
            None => files,
        };
        Ok(files)
    }

    /// Loads the current corpus, for functions that are not scans.
    ///
    /// # Errors
    /// The errors of a scan.
    pub(crate) async fn load(&self, session: &dyn Session) -> Result<LoadedTable> {
        let target = self.target(session).await?;
        let source = self.source(session, &target).await?;
        let context = LoadContext {
            runtime: Arc::clone(session.runtime_env()),
            uses: Uses::Positions,
            options: target.options.clone(),
            devices: DeviceSession::from_config(session.config()),
            bytes_read: Count::new(),
            common: None,
            versions_made: None,
        };
        let corpus = self.cache.load(&context, &source).await?;
        Ok(LoadedTable { corpus, source, options: target.options })
    }
}

/// Returns the registered table that `location` names.
async fn registered(session: &dyn Session, location: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    let is_path = |c: char| matches!(c, '/' | '\\' | '*' | '?' | '[');
    if location.contains(is_path) || location.ends_with(CORPUS_EXTENSION) {
        return Ok(None);
    }
    let defaults = &session.config_options().catalog;
    let name = TableReference::parse_str(location).resolve(&defaults.default_catalog, &defaults.default_schema);
    let catalogs = session.catalog_list();
    let schema = catalogs.catalog(&name.catalog).and_then(|catalog| catalog.schema(&name.schema));
    match schema.filter(|schema| schema.table_exist(&name.table)) {
        Some(schema) => schema.table(&name.table).await,
        None => Ok(None),
    }
}

/// Returns what the default schema has by `name`: also corpora, and files if the session reads files by
/// their names.
async fn named_by_catalog(session: &dyn Session, name: &str) -> Result<Option<Arc<dyn TableProvider>>> {
    let defaults = &session.config_options().catalog;
    let catalog = session.catalog_list().catalog(&defaults.default_catalog);
    match catalog.and_then(|catalog| catalog.schema(&defaults.default_schema)) {
        Some(schema) => schema.table(name).await,
        None => Ok(None),
    }
}

/// Returns the table `STORED AS TADOC` that `location` names, if a catalog answers without waiting.
pub(crate) fn registered_now(session: &dyn Session, location: &str) -> Option<Arc<TadocTable>> {
    let table = registered(session, location).now_or_never()?.ok()??;
    let any: Arc<dyn std::any::Any + Send + Sync> = table;
    any.downcast::<TadocTable>().ok()
}

fn as_tadoc<'a>(table: &'a Arc<dyn TableProvider>, name: &str) -> Result<&'a TadocTable> {
    table.downcast_ref::<TadocTable>().ok_or_else(|| {
        plan_datafusion_err!("table {name} is not STORED AS TADOC; name such a table, or write ./{name} for a file")
    })
}

/// Returns the error for filters that may be incomplete.
fn unfiltered(location: &str) -> DataFusionError {
    plan_datafusion_err!(
        "{location}: DataFusion's planner may have dropped a part of the WHERE clause, so nothing is \
         changed; set the session up with register_all or with_tadoc, which keep the whole"
    )
}

impl TadocTable {
    /// Returns the portions in which `spec` is answered if memory has no room for the whole corpus,
    /// which is not loaded, if its first rows are enough, or if several machines answer. If one process is
    /// faster than several machines, `facts` say so. Returns `None` then, if
    /// there is room for all of it, if the rows of portions cannot be combined, or if the scan uses user
    /// columns that edits set.
    fn portions(&self, session: &dyn Session, spec: &ScanSpec, facts: &mut Facts) -> Option<Portions> {
        if facts.merge == Merge::Never {
            return None;
        }
        let may_be_set = spec.living().is_some_and(|view| view.version.sets_columns);
        if may_be_set && (facts.reads_user_columns || self.uses_user_columns(spec)) {
            return None;
        }
        let uses = used(spec, facts);
        match spreading_of(session.config()) {
            Some(spreading) => runs_of(spec, session, uses, spreading, facts, &self.cache),
            None if self.cache.loaded(&spec.source).is_some() => None,
            None => {
                let larger = portions_of(&spec.source, session.runtime_env(), &spec.options, uses);
                larger.or_else(|| first_portions(session, spec, facts, uses))
            }
        }
    }

    /// Returns true if `spec` returns user columns or filters on them.
    fn uses_user_columns(&self, spec: &ScanSpec) -> bool {
        self.user_columns.iter().any(|field| spec.uses(field.name()))
    }

    /// Plans the scan of `source`, which was opened, with `options`.
    ///
    /// # Errors
    /// The errors of preparing the function, and of planning.
    pub(super) async fn scan_of(
        &self,
        session: &dyn Session,
        (options, source): (TadocOptions, Source),
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let columns = self.function.columns();
        let is_answered = |filter: &Expr| is_claimed(filter, &columns);
        let (filters, others): (Vec<Expr>, Vec<Expr>) = filters.iter().cloned().partition(is_answered);
        // Rows count towards the limit that meet all conditions.
        let limit = limit.filter(|_| others.is_empty());
        let num_own = columns.schema.fields().len();
        let all = || (0..num_own + self.file_columns.len()).collect();
        let wanted = WantedColumns::new(projection.cloned().unwrap_or_else(all), num_own, &self.file_columns);
        let spec = ScanSpec {
            function: Arc::clone(&self.function),
            location: self.location.clone(),
            source: source.clone(),
            projection: wanted.own.clone(),
            filters: Filters::compile(session, &columns, &filters)?,
            schema: columns.schema,
            limit,
            options,
            parcels: None,
            numbered_by: None,
            synonyms: self.synonyms.clone(),
            texts: self.read_texts(session).await?,
        };
        let prepared = spec.function.prepare(&spec).map_err(|error| self.named(error))?;
        let mut facts = spec.function.facts(&spec, &prepared);
        let plan = match self.portions(session, &spec, &mut facts) {
            None => {
                let most_partitions = session.config().target_partitions();
                self.exec(session, spec, (prepared, facts), most_partitions)?
            }
            Some(portions) => {
                let plan = |spec: ScanSpec, prepared: Prepared| {
                    let facts = spec.function.facts(&spec, &prepared);
                    self.exec(session, spec, (prepared, facts), 1)
                };
                let planner = Planner { session, spec, prepared, facts, filters, plan: &plan };
                planner.plan(&portions).await?
            }
        };
        below_conditions(session, others, wanted.over(session, &source, plan)?)
    }

    /// Returns the node of `spec`, in at most `most_partitions` partitions.
    fn exec(
        &self,
        session: &dyn Session,
        spec: ScanSpec,
        (prepared, facts): (Prepared, Facts),
        most_partitions: usize,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let loaded = self.cache.loaded(&spec.source);
        // More partitions would only decode in vain.
        let most_partitions = if is_few_rows(session, &spec) { 1 } else { most_partitions };
        let devices = DeviceSession::from_config(session.config());
        let plan = ScanPlan::new(spec, prepared, facts, devices, loaded.as_deref(), most_partitions);
        Ok(Arc::new(TadocExec::try_new(plan, Arc::clone(&self.cache))?))
    }
}

#[async_trait]
impl TableProvider for TadocTable {
    fn schema(&self) -> SchemaRef {
        FileColumn::behind(&self.function.columns().schema, &self.file_columns)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn get_table_definition(&self) -> Option<&str> {
        self.definition.as_deref()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        let columns = self.function.columns();
        let answer = |filter: &&Expr| {
            if is_claimed(filter, &columns) {
                TableProviderFilterPushDown::Exact
            } else {
                TableProviderFilterPushDown::Unsupported
            }
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
        let read = self.read_synonyms(session).await?;
        let table = read.as_ref().unwrap_or(self);
        let target = table.target(session).await?;
        let source = table.source(session, &target).await?;
        let source = table.narrowed(session, &target.options, source).await?;
        table.scan_of(session, (target.options, source), projection, filters, limit).await
    }

    async fn insert_into(
        &self,
        session: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        operation: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match self.insert {
            Some(insert) => insert(self, session, input, operation).await,
            None => Err(read_only(&self.location)),
        }
    }

    async fn delete_from(&self, session: &dyn Session, _filters: Vec<Expr>) -> Result<Arc<dyn ExecutionPlan>> {
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

/// Returns `plan` below `conditions` without columns. A scan claims no such condition, but the optimizer makes one of
/// a condition that is claimed: of `doc_id NOT IN (1, NULL)` first `doc_id <> NULL`, then NULL.
///
/// # Errors
/// An error if a condition has columns, or cannot be computed.
fn below_conditions(
    session: &dyn Session,
    conditions: Vec<Expr>,
    plan: Arc<dyn ExecutionPlan>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(condition) = conjunction(conditions) else { return Ok(plan) };
    let condition = session.create_physical_expr(condition, &DFSchema::empty())?;
    Ok(Arc::new(FilterExec::try_new(condition, plan)?))
}

/// Returns true if the first rows satisfy `spec`, because its limit is small.
fn is_few_rows(session: &dyn Session, spec: &ScanSpec) -> bool {
    spec.limit.is_some_and(|limit| limit <= session.config().batch_size())
}

/// Returns portions that are read until there are as many rows as `spec` asks for, if these are few and
/// come in order of documents.
fn first_portions(session: &dyn Session, spec: &ScanSpec, facts: &Facts, uses: Uses) -> Option<Portions> {
    let is_by_document = facts.merge == Merge::Behind && facts.ordering.first() == Some(&"doc_id");
    if !is_by_document || !is_few_rows(session, spec) {
        return None;
    }
    growing_portions(&spec.source, uses, session.config().target_partitions())
}

/// Returns true if a scan with `columns` evaluates `filter` itself.
fn is_claimed(filter: &Expr, columns: &Columns) -> bool {
    is_claimable(filter, &|column| columns.claim(column) != Claim::Above)
}
