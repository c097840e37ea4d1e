//! Planner for calls of table functions that nobody knows: it names the function that was meant.
//!
//! It is the last planner of a session, so it sees only the calls that no other planner handled. If
//! DataFusion knows no such table function either, the error says that the name is that of a function
//! of rows, or suggests a table function of this crate with its signature: one with a similar name, or the
//! one that other engines give this name.

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::sqlparser::ast::{Ident, ObjectName, TableFactor};

use crate::errors::closest;
use crate::functions::{find_signature, signatures};

/// Names that other engines and tools of corpora give to functions of this crate.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("bm25", "rank"),
    ("match_bm25", "rank"),
    ("fts", "search"),
    ("concordance", "kwic"),
    ("ngrams", "sequence_count"),
    ("frequency", "word_count"),
    ("keywords", "keyness"),
    ("dedup", "near_duplicates"),
    ("minhash", "near_duplicates"),
];

/// Planner that suggests names of functions; see the module's description.
#[derive(Debug)]
pub(crate) struct MisspelledFunctions;

impl RelationPlanner for MisspelledFunctions {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = &relation
            && let Some(name) = last_name(name)
            && is_unknown(&name.value, context)
        {
            if let Some(usage) = usage_in_rows(context.normalize_ident(name.clone()), context) {
                return plan_err!("{name} is no table function, it answers for each row: write SELECT {usage} FROM …");
            }
            if let Some(meant) = meant_by(&name.value)
                && let Some(signature) = find_signature(meant)
            {
                return plan_err!("there is no table function {name}; did you mean {meant}? usage: {signature}");
            }
        }
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}

/// Returns the table function of this crate that `name` may stand for.
fn meant_by(name: &str) -> Option<&'static str> {
    let other = OTHER_NAMES.iter().find(|(other, _)| name.eq_ignore_ascii_case(other));
    let names = signatures().map(|signature| signature.name);
    other.map(|&(_, meant)| meant).or_else(|| closest(name, names))
}

fn last_name(name: &ObjectName) -> Option<Ident> {
    name.0.last()?.as_ident().cloned()
}

/// Returns the usage of the scalar, aggregate or window function `name`, if there is one.
fn usage_in_rows(name: String, context: &dyn RelationPlannerContext) -> Option<String> {
    let functions = context.context_provider();
    let about = match functions.get_function_meta(&name) {
        Some(scalar) => scalar.documentation().cloned(),
        None => match functions.get_aggregate_meta(&name) {
            Some(aggregate) => aggregate.documentation().cloned(),
            None => functions.get_window_meta(&name)?.documentation().cloned(),
        },
    };
    Some(about.map_or_else(|| format!("{name}(…)"), |about| about.syntax_example))
}

/// Returns true if the session has no table function `name`. DataFusion looks for the function
/// before it looks at the arguments.
fn is_unknown(name: &str, context: &dyn RelationPlannerContext) -> bool {
    let found = context.context_provider().get_table_function_source(name, Vec::new());
    let expected = format!("table function '{name}' not found");
    matches!(found, Err(DataFusionError::Plan(text)) if text == expected)
}
