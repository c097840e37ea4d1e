//! The codec of tables in logical plans, for engines that plan a statement on another machine.
//!
//! ```text
//! client      SQL ─▶ logical plan ─▶ resolve_tables ─▶ codec ══ messages ══▶ scheduler
//! scheduler   message ─▶ table: opens nothing ─ scan: footers ─▶ physical plan ─▶ TadocCodec ══▶
//! ```
//!
//! A table function travels as its name and arguments, a table `STORED AS TADOC` as the function that
//! reads it. [`resolve_tables`] first puts in what only the session knows: the locations behind names,
//! absolute paths, the version of a living corpus, the rows of synonyms, and settings. Scalar functions
//! travel by name. The table that arrives does no input or output before it is scanned, and refuses a
//! living corpus whose version has another commit.
//!
//! Tables that a statement changes, and tables beside a living corpus (`"d$history"`), stay.

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNodeRecursion};
use datafusion::datasource::file_format::FileFormatFactory;
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::{DefaultTableSource, provider_as_source};
use datafusion::error::Result;
use datafusion::execution::TaskContext;
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, TableProviderFilterPushDown, TableSource, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::logical_plan::LogicalExtensionCodec;
use tadoc::text::{Fold, Synonyms};

use crate::listings::ListedTable;
use crate::message::{self, LivingMessage, NodeMessage, PairMessage, PlaceMessage, TableMessage};
use crate::scans::{bound_call, call, living, options_of, synonyms_of, texts_of};
use crate::travelled::find_version;
use crate::{TravelError, refused};
use datafusion_tadoc::travel::{CorpusCache, ResolvedLocation, ResolvedTable, datafusion_error};
use datafusion_tadoc::{TadocTable, mask_secrets};

/// Codec of the tables of this crate in logical plans: table functions, tables `STORED AS TADOC`, and
/// tables of Parquet files with and without GSST columns. [`resolve_tables`] prepares a plan for it.
///
/// A session that decodes needs [`with_tadoc`](datafusion_tadoc::TadocSessionStateBuilderExt::with_tadoc).
///
/// ```
/// use datafusion::prelude::*;
/// use datafusion_proto::bytes::{
///     logical_plan_from_bytes_with_extension_codec as read,
///     logical_plan_to_bytes_with_extension_codec as written,
/// };
/// use datafusion_tadoc_distributed::{TadocLogicalCodec, resolve_tables};
///
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let (here, there) = (SessionContext::new(), SessionContext::new());
/// datafusion_tadoc::register_all(&here)?;
/// datafusion_tadoc::register_all(&there)?;
/// let plan = here.sql("SELECT function FROM tadoc_functions()").await?.into_optimized_plan()?;
/// let plan = resolve_tables(plan, &here.state()).await?;
/// let bytes = written(&plan, &TadocLogicalCodec)?;
/// let plan = read(&bytes, &there.task_ctx(), &TadocLogicalCodec)?;
/// assert!(there.execute_logical_plan(plan).await?.count().await? > 20);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, Default)]
pub struct TadocLogicalCodec;

impl LogicalExtensionCodec for TadocLogicalCodec {
    fn try_decode(&self, _buf: &[u8], _inputs: &[LogicalPlan], _context: &TaskContext) -> Result<Extension> {
        refused("expected a table, got a node of a logical plan")
    }

    fn try_encode(&self, node: &Extension, _buf: &mut Vec<u8>) -> Result<()> {
        let what = format!("{} is no node of datafusion-tadoc", node.node.name());
        Err(TravelError::Stays(what).into())
    }

    fn try_decode_table_provider(
        &self,
        buf: &[u8],
        _name: &TableReference,
        schema: SchemaRef,
        context: &TaskContext,
    ) -> Result<Arc<dyn TableProvider>> {
        let table: Arc<dyn TableProvider> = match message::open(buf)? {
            NodeMessage { table: Some(table), .. } => Arc::new(PlannedTable::from_message(&table, &schema, context)?),
            NodeMessage { listing: Some(listing), .. } => Arc::new(ListedTable::from_message(&listing, context)?),
            _ => return refused("expected a table, got a node of a physical plan"),
        };
        if table.schema() == schema {
            Ok(table)
        } else {
            refused(format!("expected the columns of the table, got {schema}"))
        }
    }

    fn try_encode_table_provider(
        &self,
        name: &TableReference,
        table: Arc<dyn TableProvider>,
        buf: &mut Vec<u8>,
    ) -> Result<()> {
        let message = if let Some(table) = table.downcast_ref::<PlannedTable>() {
            NodeMessage { table: Some(Box::new(table.message()?)), ..NodeMessage::default() }
        } else if let Some(listed) = table.downcast_ref::<ListedTable>() {
            NodeMessage { listing: Some(listed.message()?), ..NodeMessage::default() }
        } else {
            let what = if table.is::<TadocTable>() {
                format!("{name} is read after resolve_tables, and written in its session")
            } else {
                format!("{name} is no table of datafusion-tadoc that is read")
            };
            return Err(TravelError::Stays(what).into());
        };
        message::seal(&message, buf);
        Ok(())
    }

    fn try_decode_file_format(&self, _buf: &[u8], _context: &TaskContext) -> Result<Arc<dyn FileFormatFactory>> {
        refused("expected a table, got the format of a file")
    }

    fn try_encode_file_format(&self, _buf: &mut Vec<u8>, format: Arc<dyn FileFormatFactory>) -> Result<()> {
        let what = format!("a statement that writes .{} files", format.get_ext());
        Err(TravelError::Stays(what).into())
    }
}

/// Returns `plan` with the tables of this crate as another machine scans them: all that `session` knows
/// of them is looked up. A version of a living corpus is fixed now.
///
/// # Errors
/// The plan errors of scans; an error for files that another machine would not find by the same glob.
pub async fn resolve_tables(plan: LogicalPlan, session: &dyn Session) -> Result<LogicalPlan> {
    let mut sources: Vec<Arc<dyn TableSource>> = Vec::new();
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && !sources.iter().any(|source| Arc::ptr_eq(source, &scan.source))
        {
            sources.push(Arc::clone(&scan.source));
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    let mut resolved: Vec<(Arc<dyn TableSource>, Arc<dyn TableSource>)> = Vec::new();
    for source in sources {
        if let Some(table) = resolve(&source, session).await? {
            resolved.push((source, provider_as_source(table)));
        }
    }
    plan.transform_up_with_subqueries(|node| {
        let LogicalPlan::TableScan(mut scan) = node else { return Ok(Transformed::no(node)) };
        let found = resolved.iter().find(|(source, _)| Arc::ptr_eq(source, &scan.source));
        let Some((_, table)) = found else {
            return Ok(Transformed::no(LogicalPlan::TableScan(scan)));
        };
        scan.source = Arc::clone(table);
        Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
    })
    .data()
}

/// Returns the table that replaces the one behind `source`, if any.
async fn resolve(source: &Arc<dyn TableSource>, session: &dyn Session) -> Result<Option<Arc<dyn TableProvider>>> {
    let Some(source) = source.downcast_ref::<DefaultTableSource>() else { return Ok(None) };
    if let Some(table) = source.table_provider.downcast_ref::<TadocTable>() {
        let (resolved, version) = ResolvedTable::from_table(table, session).await?;
        let living = version.map(|(url, version)| living(&url, &version)).transpose()?;
        return Ok(Some(Arc::new(PlannedTable::new(resolved, living))));
    }
    match source.table_provider.downcast_ref::<ListingTable>() {
        Some(listing) => Ok(ListedTable::from_listing(listing)?.map(|table| Arc::new(table) as _)),
        None => Ok(None),
    }
}

/// A table whose statement was planned, here or on another machine.
#[derive(Debug)]
struct PlannedTable {
    resolved: ResolvedTable,
    /// The table of `resolved`.
    table: TadocTable,
    /// The version of a living corpus that the statement reads.
    living: Option<LivingMessage>,
}

impl PlannedTable {
    fn new(resolved: ResolvedTable, living: Option<LivingMessage>) -> Self {
        Self { table: resolved.to_table(), resolved, living }
    }

    fn message(&self) -> Result<TableMessage> {
        let table = &self.resolved;
        let place = table.place.clone();
        let place = place.map(|ResolvedLocation { location, folder }| PlaceMessage { location, folder });
        for said in place.iter().map(|place| &place.location).chain([&table.location]) {
            let shown = mask_secrets(said);
            if shown != **said {
                let way_out = "leave them out and give them to each machine by its environment";
                let what = format!("{shown} has credentials; {way_out}");
                return Err(TravelError::Stays(what).into());
            }
        }
        let (synonyms, texts) = (table.synonyms.as_deref(), table.texts.as_deref());
        let options = table.options.iter();
        let mut options: Vec<PairMessage> =
            options.map(|(name, value)| PairMessage { name: name.clone(), value: value.clone() }).collect();
        options.sort_unstable_by(|one, other| one.name.cmp(&other.name));
        Ok(TableMessage {
            call: Some(call(&table.function, &table.location, synonyms, texts)?),
            place,
            living: self.living.clone(),
            version: table.version,
            options,
            has_user_columns: !table.user_columns.is_empty(),
        })
    }

    fn from_message(message: &TableMessage, schema: &SchemaRef, context: &TaskContext) -> Result<Self> {
        let Some(call) = &message.call else { return refused("a table without a function") };
        let function = bound_call(call, schema)?;
        options_of(&message.options)?;
        let options: HashMap<String, String> =
            message.options.iter().map(|pair| (pair.name.clone(), pair.value.clone())).collect();
        // The words are folded already.
        let synonyms = synonyms_of(call).map(|(name, rows)| Synonyms::new(&name, &Fold::NONE, rows));
        let num_fixed = function.signature().columns.len();
        let user_columns = schema.fields().iter().skip(num_fixed);
        let user_columns = user_columns.filter(|_| message.has_user_columns).cloned().collect();
        let Some(cache) = context.session_config().get_extension::<CorpusCache>() else {
            return refused("a table in a session without datafusion-tadoc");
        };
        let place = message.place.clone();
        let resolved = ResolvedTable {
            function,
            location: call.location.clone(),
            place: place.map(|PlaceMessage { location, folder }| ResolvedLocation { location, folder }),
            version: message.version,
            options,
            user_columns,
            synonyms: synonyms.transpose().map_err(datafusion_error)?.map(Arc::new),
            texts: texts_of(call),
            cache,
        };
        if !resolved.has_place() {
            return refused("a table of files without their place");
        }
        Ok(Self::new(resolved, message.living.clone()))
    }
}

#[async_trait]
impl TableProvider for PlannedTable {
    fn schema(&self) -> SchemaRef {
        self.table.schema()
    }

    fn table_type(&self) -> TableType {
        self.table.table_type()
    }

    fn supports_filters_pushdown(&self, filters: &[&Expr]) -> Result<Vec<TableProviderFilterPushDown>> {
        self.table.supports_filters_pushdown(filters)
    }

    async fn scan(
        &self,
        session: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if let Some(living) = &self.living
            && let Some(cache) = session.config().get_extension::<CorpusCache>()
        {
            find_version(session.runtime_env(), &cache, living).await?;
        }
        self.table.scan(session, projection, filters, limit).await
    }
}
