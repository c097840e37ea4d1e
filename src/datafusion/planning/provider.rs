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

use crate::corpora::living::read_only;
use crate::corpora::memory::Uses;
use crate::placement::DeviceSession;
use crate::planning::exec::TadocExec;
use crate::planning::filter::{Filters, is_claimable};
use crate::planning::function::{Facts, Merge, Prepared};
use crate::planning::plan::used;
use crate::planning::portions::{Planner, Portions, growing_portions, portions_of, runs_of, spreading_of};
use crate::planning::signature::{Claim, Columns};
use crate::planning::table::TadocTable;
use crate::planning::{ScanPlan, ScanSpec};
use tadoc::analytics::Share;

impl TadocTable {
    /// Returns the portions in which `spec` is answered if memory has no room for the whole corpus,
    /// which is not loaded, if its first rows are enough, or if several machines answer. Returns `None` if
    /// there is room for all of it, if the rows of portions cannot be combined, or if the scan uses user
    /// columns that edits set.
    fn portions(&self, session: &dyn Session, spec: &ScanSpec, facts: &Facts, is_loaded: bool) -> Option<Portions> {
        if facts.merge == Merge::Never {
            return None;
        }
        let may_be_set = spec.living().is_some_and(|view| view.version.sets_columns);
        if may_be_set && (facts.reads_user_columns || self.uses_user_columns(spec)) {
            return None;
        }
        let uses = used(spec, facts);
        match spreading_of(session.config()) {
            Some(spreading) => runs_of(&spec.source, session, &spec.options, uses, spreading),
            None if is_loaded => None,
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
        self.function.columns().schema
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
        let columns = table.function.columns();
        let filters: Vec<Expr> = filters.iter().filter(|filter| is_claimed(filter, &columns)).cloned().collect();
        let all = || (0..columns.schema.fields().len()).collect();
        let spec = ScanSpec {
            function: Arc::clone(&table.function),
            location: table.location.clone(),
            source,
            projection: projection.cloned().unwrap_or_else(all),
            filters: Filters::compile(session, &columns, &filters)?,
            schema: columns.schema,
            limit,
            options: target.options,
            share: Share::default(),
            synonyms: table.synonyms.clone(),
            texts: table.read_texts(session).await?,
        };
        let prepared = spec.function.prepare(&spec).map_err(|error| table.named(error))?;
        let facts = spec.function.facts(&spec, &prepared);
        let is_loaded = table.cache.loaded(&spec.source).is_some();
        let Some(portions) = table.portions(session, &spec, &facts, is_loaded) else {
            let most_partitions = session.config().target_partitions();
            return table.exec(session, spec, (prepared, facts), most_partitions);
        };
        let plan = |spec: ScanSpec, prepared: Prepared| {
            let facts = spec.function.facts(&spec, &prepared);
            table.exec(session, spec, (prepared, facts), 1)
        };
        let planner = Planner { session, spec, prepared, facts, filters, plan: &plan };
        planner.plan(&portions).await
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
