//! The interface of a table to DataFusion: its schema, the filters that it claims, scans and
//! changes.
//!
//! Planning changes nothing. It reads footers and checks which corpora are loaded already.

use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result;
use datafusion::logical_expr::dml::InsertOp;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::placement::{DeviceSession, Placement, Task, place};
use crate::portions::{Planner, Portions, portions_of, runs_of, spreading_of};
use crate::scan::Scan;
use crate::scan::exec::TadocExec;
use crate::scan::filter::{Stage, demands, is_claimable, mentions};
use crate::scan::function::{Merge, Reads, TableFunction};
use crate::scan::table::TadocTable;
use crate::source::LoadedCorpus;
use crate::source::memory::Uses;
use crate::store::insert_into;
use tadoc::analytics::Share;

impl TadocTable {
    /// Returns the portions in which `scan` is answered if memory has no room for the whole corpus,
    /// which is not loaded, or if several machines answer. Returns `None` if there is room, if the rows
    /// of portions cannot be combined, or if the scan uses user columns that edits set.
    fn portions(
        &self,
        session: &dyn Session,
        scan: &Scan,
        filters: &[Expr],
        is_loaded: bool,
    ) -> Option<Portions> {
        let is_readable = self.function.reads() == Reads::Corpora;
        if !is_readable || self.function.merge(scan) == Merge::Never {
            return None;
        }
        let may_be_set = scan.living().is_some_and(|view| view.version.sets_columns);
        let reads_user_columns = self.function.reads_user_columns(scan);
        if may_be_set && (reads_user_columns || self.uses_user_columns(scan, filters)) {
            return None;
        }
        let is_on_text = |filter: &Expr| needs_text(self.function.as_ref(), filter);
        let uses = uses(self.function.as_ref(), scan, filters.iter().any(is_on_text));
        match spreading_of(session.config()) {
            Some(spreading) => runs_of(&scan.source, session, &scan.options, uses, spreading),
            None if is_loaded => None,
            None => portions_of(&scan.source, session.runtime_env(), &scan.options, uses),
        }
    }

    /// Returns true if `scan` returns user columns or filters on them.
    fn uses_user_columns(&self, scan: &Scan, filters: &[Expr]) -> bool {
        self.user_columns.iter().any(|field| {
            let is_out = |&i: &usize| scan.schema.field(i).name() == field.name();
            let is_named = |filter: &Expr| mentions(filter, &[field.name()]);
            scan.projection.iter().any(is_out) || filters.iter().any(is_named)
        })
    }

    /// Plans `scan`, which has no filters yet, with `filters`. `function` claims all of them.
    /// `loaded` is the corpus, if it is loaded.
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
        decide(function.as_ref(), &mut scan, loaded).map_err(|error| self.named(error))?;
        // The first rows satisfy a small limit: more partitions would only decode in vain.
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
        let answer = |filter: &&Expr| {
            if self.claims(filter) {
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
        let schema = table.function.schema();
        let filters: Vec<Expr> = filters.iter().filter(|f| table.claims(f)).cloned().collect();
        let all = || (0..schema.fields().len()).collect();
        let scan = Scan {
            location: table.location.clone(),
            source,
            projection: projection.cloned().unwrap_or_else(all),
            columns_stage: None,
            dynamic_stages: Vec::new(),
            text_stage: None,
            demands: Vec::new(),
            schema,
            limit,
            options: target.options,
            devices: DeviceSession::from_config(session.config()),
            num_partitions: 1,
            share: Share::default(),
            synonyms: table.synonyms.clone(),
            uses: Uses::default(),
            placement: Placement::default(),
            are_words_kept: Vec::new(),
        };
        let function = table.function_with_texts(session).await?;
        let loaded = table.cache.loaded(&scan.source);
        let portions = table.portions(session, &scan, &filters, loaded.is_some());
        let Some(portions) = portions else {
            let target = session.config().target_partitions();
            let exec = table.exec(session, function, scan, &filters, loaded.as_deref(), target)?;
            return Ok(Arc::new(exec));
        };
        function.prepare(&scan).map_err(|error| table.named(error))?;
        let planner = Planner { session, scan, function, filters };
        let plan = |function, scan: Scan, filters: &[Expr]| {
            let loaded = table.cache.loaded(&scan.source);
            let exec = table.exec(session, function, scan, filters, loaded.as_deref(), 1)?;
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

/// Checks `scan`, whose files and filters are known, and decides what it uses and where it runs.
/// `loaded` is the corpus, if it is loaded.
///
/// # Errors
/// The plan errors of `function`.
pub(crate) fn decide(
    function: &dyn TableFunction,
    scan: &mut Scan,
    loaded: Option<&LoadedCorpus>,
) -> Result<()> {
    function.prepare(scan)?;
    scan.uses = uses(function, scan, scan.text_stage.is_some());
    if function.reads() == Reads::Corpora {
        let task = function.device_task(scan);
        let placed =
            if scan.share.is_all() { task } else { Err("cores count a share of the rows") };
        scan.placement = place(scan, placed, loaded);
        scan.are_words_kept = are_words_kept(scan, task, loaded);
    }
    Ok(())
}

/// Returns, for each segment of the corpus `loaded`, true if `task` is answered from the words of
/// documents that the segment keeps.
fn are_words_kept(
    scan: &Scan,
    task: std::result::Result<Task, &'static str>,
    loaded: Option<&LoadedCorpus>,
) -> Vec<bool> {
    let is_asked = |task: Task| task.is_in_doc_words(&scan.options);
    let is_asked = !scan.placement.is_on_device() && task.is_ok_and(is_asked);
    let segments = loaded.into_iter().flat_map(|loaded| loaded.corpus.segments());
    segments.filter(|_| is_asked).map(|segment| segment.keeps_doc_words()).collect()
}

/// Returns the parts of segments that `function` uses. Filters on text first look for documents that
/// may pass, with the places of words.
fn uses(function: &dyn TableFunction, scan: &Scan, is_filtered_on_text: bool) -> Uses {
    if scan.living().is_some() || is_filtered_on_text {
        Uses::Positions
    } else {
        function.uses(scan)
    }
}

fn needs_text(function: &dyn TableFunction, filter: &Expr) -> bool {
    let schema = function.schema();
    let text: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    let text: Vec<&str> = text.into_iter().filter(|name| function.needs_text(name)).collect();
    mentions(filter, &text)
}
