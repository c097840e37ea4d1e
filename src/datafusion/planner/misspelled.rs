//! Planner for calls of functions that nobody knows: it names the function that was meant.
//!
//! It is the last planner of a session, so it sees only the calls that no other planner handled. If
//! DataFusion does not know the function either, and the name is close to that of a function of this
//! crate, the error suggests that function with its signature.

use datafusion::common::plan_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::planner::{
    RelationPlanner, RelationPlannerContext, RelationPlanning,
};
use datafusion::logical_expr::sqlparser::ast::{ObjectName, TableFactor};

use crate::errors::closest;
use crate::functions::{find_signature, signatures};

/// Planner that suggests names of functions; see the module's description.
#[derive(Debug)]
pub(crate) struct MisspelledFunctions;

impl RelationPlanner for MisspelledFunctions {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } =
            &relation
            && let Some(name) = last_name(name)
            && is_unknown(&name, context)
            && let Some(meant) = closest(&name, signatures().map(|signature| signature.name))
            && let Some(signature) = find_signature(meant)
        {
            return plan_err!(
                "there is no table function {name}; did you mean {meant}? usage: {signature}"
            );
        }
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}

fn last_name(name: &ObjectName) -> Option<String> {
    name.0.last()?.as_ident().map(|ident| ident.value.clone())
}

/// Returns true if the session has no table function `name`. DataFusion looks for the function
/// before it looks at the arguments.
fn is_unknown(name: &str, context: &dyn RelationPlannerContext) -> bool {
    let found = context.context_provider().get_table_function_source(name, Vec::new());
    let expected = format!("table function '{name}' not found");
    matches!(found, Err(DataFusionError::Plan(text)) if text == expected)
}
