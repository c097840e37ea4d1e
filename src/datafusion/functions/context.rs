//! The function `context(corpus, doc_id [, before] [, after] [, version])`: the documents around one.
//!
//! ```text
//! documents ─▶ those with the path of the document ─┬▶ the last ones up to it ─┐
//!                                                   └▶ the first ones after it ┴▶ numbered ─▶ documents
//! ```
//!
//! Lines, records and rows of a file have its path, so these are the lines around a line. This function is a view: a
//! logical plan over scans of `documents`. The first two read ids and paths only. The last one reads the columns
//! that the statement asks for, of few documents.

use std::sync::Arc;

use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{TableReference, plan_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    Expr, ExprFunctionExt, JoinType, LogicalPlanBuilder, WindowFunctionDefinition, col, ident, lit,
};

use super::{PlannedFunction, table_named};
use crate::corpora::CorpusCache;
use crate::errors::mask_secrets;
use crate::planning::arguments::Arguments;
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Signature};

/// Most documents on a side.
const MAX_DOCUMENTS: u64 = 1_000_000;

/// Names of the columns in front of those of `documents`.
const OWN: [&str; 3] = ["doc_id", "path", "distance"];

/// The function `context` in SQL.
pub(super) static DEFINITION: PlannedFunction = PlannedFunction {
    signature: Signature {
        name: "context",
        arguments: &[
            signature::CORPUS,
            signature::required("doc_id", ArgumentKind::Integer, "number of the document"),
            signature::optional("before", ArgumentKind::Integer, "2", "documents before it"),
            signature::optional("after", ArgumentKind::Integer, "2", "documents after it"),
            signature::VERSION,
        ],
        columns: &[
            signature::DOC_ID,
            signature::PATH,
            signature::integer("distance", "place from the document on, negative before it"),
            signature::integer("bytes", "length of the text"),
            signature::integer("words", "number of words in the text"),
            signature::text("text", "the text, U+FFFD for invalid bytes"),
            signature::column("content", ColumnKind::Bytes, "the exact bytes"),
        ],
        summary: "a document with those around it that have its path, such as the lines around a line",
    },
    plan,
};

/// Returns the view for a call.
fn plan(arguments: &Arguments, session: &dyn Session, cache: &Arc<CorpusCache>) -> Result<Arc<dyn TableProvider>> {
    let called = CalledCorpus { arguments, session, cache };
    let doc_id = lit(i64::try_from(arguments.integer("doc_id").unwrap_or_default()).unwrap_or(i64::MAX));
    let [before, after] = [called.num_documents("before")?, called.num_documents("after")?];
    let here =
        called.documents()?.filter(col("doc_id").eq(doc_id.clone()))?.project([col("path").alias("own_path")])?;
    let named = called.documents()?.project([col("doc_id").alias("near_id"), col("path").alias("near_path")])?;
    let same = here.join(named.build()?, JoinType::Inner, (vec!["own_path"], vec!["near_path"]), None)?;
    let side = |is_before: bool, num_documents: usize| -> Result<LogicalPlanBuilder> {
        let id = col("near_id");
        let chosen = if is_before { id.clone().lt_eq(doc_id.clone()) } else { id.clone().gt(doc_id.clone()) };
        let sorted = same.clone().filter(chosen)?.sort([id.clone().sort(!is_before, false)])?;
        let number = number_by(id.clone(), !is_before)?.alias("number");
        let distance = if is_before { lit(1i64) - col("number") } else { col("number") };
        sorted.limit(0, Some(num_documents))?.window([number])?.project([id, distance.alias("distance")])
    };
    let near = side(true, before + 1)?.union(side(false, after)?.build()?)?;
    let documents = called.documents()?.build()?;
    let own = OWN.map(ident).to_vec();
    let others = documents.schema().fields().iter().map(|field| field.name().clone());
    let others = others.filter(|name| !OWN.contains(&name.as_str())).map(ident);
    let columns: Vec<Expr> = own.into_iter().chain(others).collect();
    let joined = near.join(documents, JoinType::Inner, (vec!["near_id"], vec!["doc_id"]), None)?;
    let plan = joined.project(columns)?.sort([col("doc_id").sort(true, false)])?;
    Ok(Arc::new(ViewTable::new(plan.build()?, None)))
}

/// Returns the number of a row in order of `id`, from 1.
fn number_by(id: Expr, is_ascending: bool) -> Result<Expr> {
    let sum = WindowFunctionDefinition::AggregateUDF(sum_udaf());
    let sum = Expr::from(WindowFunction::new(sum, vec![lit(1i64)]));
    sum.order_by(vec![id.sort(is_ascending, false)]).build()
}

/// The corpus of a call.
struct CalledCorpus<'a> {
    arguments: &'a Arguments,
    session: &'a dyn Session,
    cache: &'a Arc<CorpusCache>,
}

impl CalledCorpus<'_> {
    fn documents(&self) -> Result<LogicalPlanBuilder> {
        let table = table_named("documents", self.arguments, self.session, self.cache)?;
        // Scans of one name are taken for equal, and these are.
        let location = mask_secrets(table.location());
        let shown = TableReference::bare(format!("documents({location:?})"));
        LogicalPlanBuilder::scan(shown, provider_as_source(Arc::new(table)), None)
    }

    fn num_documents(&self, name: &str) -> Result<usize> {
        let number = match name {
            "before" => self.arguments.integer("before"),
            _ => self.arguments.integer("after"),
        };
        match number.unwrap_or(2) {
            number @ 0..=MAX_DOCUMENTS => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
            number => plan_err!("context: {name}: got {number}, expected at most {MAX_DOCUMENTS}"),
        }
    }
}
