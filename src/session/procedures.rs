//! Procedures, which `CALL name('a', option => 'b')` runs: what a program has besides SQL, such as a sync of a folder.
//!
//! A procedure runs once, while its statement is planned, and its answer is one row of numbers. It may read files
//! and write a corpus, so safe mode refuses it. A session without procedures leaves `CALL` to DataFusion.

use datafusion::error::Result;
use datafusion::logical_expr::{LogicalPlan, LogicalPlanBuilder, col, lit};
use datafusion::sql::sqlparser::ast::{Expr, Function, FunctionArg, FunctionArgExpr, FunctionArguments, Value};

use crate::failure::{Failure, Outcome};

/// The row that a procedure returns: names and counts.
pub type ProcedureRow = Vec<(&'static str, u64)>;

/// A procedure of a program.
pub struct Procedure {
    /// Its name in SQL.
    pub name: &'static str,
    /// A call of it, for messages.
    pub usage: &'static str,
    /// Runs it on a thread that may block. The answer has the names and values of the columns.
    pub run: fn(&[CallArgument]) -> Outcome<ProcedureRow>,
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallArgument {
    /// Its name, if it is given by name.
    pub name: Option<String>,
    /// Its value.
    pub value: CallValue,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallValue {
    /// A text, or a number as it is written.
    Text(String),
    /// `true` or `false`.
    Truth(bool),
}

/// Runs that of `procedures` that `function` calls, and returns the plan of its row.
///
/// # Errors
/// There is no such procedure, an argument is no literal, and the errors of the procedure.
pub(crate) async fn call(procedures: &'static [Procedure], function: &Function) -> Outcome<LogicalPlan> {
    let name = function.name.to_string();
    let Some(procedure) = procedures.iter().find(|other| other.name.eq_ignore_ascii_case(&name)) else {
        let known: Vec<&str> = procedures.iter().map(|procedure| procedure.usage).collect();
        return Err(Failure::new(format!("there is no procedure {name}; there is {}", known.join(", "))));
    };
    let arguments = arguments_of(function).ok_or_else(|| {
        Failure::usage(format!("CALL {name}: expected texts, numbers, true and false, as in {}", procedure.usage))
    })?;
    let run = procedure.run;
    let row = tokio::task::spawn_blocking(move || run(&arguments)).await;
    let row = row.map_err(|_| Failure::new(format!("CALL {name} broke down")))??;
    Ok(plan_of_row(&row)?)
}

/// Returns the arguments of a call; `None` if one is no literal.
fn arguments_of(function: &Function) -> Option<Vec<CallArgument>> {
    let FunctionArguments::List(list) = &function.args else { return None };
    let argument = |argument: &FunctionArg| {
        let (name, value) = match argument {
            FunctionArg::Named { name, arg, .. } => (Some(name.value.clone()), arg),
            FunctionArg::ExprNamed { name: Expr::Identifier(name), arg, .. } => (Some(name.value.clone()), arg),
            FunctionArg::ExprNamed { .. } => return None,
            FunctionArg::Unnamed(arg) => (None, arg),
        };
        let FunctionArgExpr::Expr(Expr::Value(value)) = value else { return None };
        let value = match &value.value {
            Value::SingleQuotedString(text) | Value::Number(text, _) => CallValue::Text(text.clone()),
            Value::Boolean(is_true) => CallValue::Truth(*is_true),
            _ => return None,
        };
        Some(CallArgument { name, value })
    };
    list.args.iter().map(argument).collect()
}

fn plan_of_row(row: &[(&str, u64)]) -> Result<LogicalPlan> {
    let values = row.iter().map(|(_, value)| lit(*value)).collect();
    let names = (1..).zip(row).map(|(number, (name, _))| col(format!("column{number}")).alias(*name));
    LogicalPlanBuilder::values(vec![values])?.project(names)?.build()
}
