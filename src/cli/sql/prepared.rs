//! `PREPARE`, `EXECUTE` and `DEALLOCATE` of statements whose parameters are arguments of table functions.
//!
//! ```text
//! PREPARE s AS SELECT … FROM search('c', $1)   not planned: kept as it was parsed
//! EXECUTE s('storm')                           ─▶ SELECT … FROM search('c', 'storm')
//! ```
//!
//! DataFusion plans a statement when it is prepared, and table functions from literals, which are not there
//! yet. So a statement with parameters that DataFusion cannot plan is kept here, and each `EXECUTE` plans it
//! with its values. All others are DataFusion's own.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion_tadoc::{check_clauses, explain_missing_table};

use super::Session;
use super::parameters::{Parameters, parameter_names};
use crate::failure::{Failure, Outcome};

/// Statements that were prepared and are not planned, by name.
#[derive(Debug, Default)]
pub struct Prepared(Mutex<HashMap<String, Statement>>);

impl Prepared {
    fn statements(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// Plans `statement`. Returns `None` for a statement that is done with this.
    ///
    /// # Errors
    /// The errors of planning; a parameter of `EXECUTE` has no value, or too many are given.
    pub async fn plan(&self, statement: Statement) -> Outcome<Option<LogicalPlan>> {
        let plain = match &statement {
            Statement::Statement(plain) => plain.as_ref(),
            _ => return Ok(Some(self.plan_alone(statement).await?)),
        };
        let statement = match plain {
            ast::Statement::Prepare { name, statement: inner, .. } if self.sandbox.is_none() => {
                let mut inner = Statement::Statement(inner.clone());
                let name = name.value.clone();
                check_clauses(&self.context.state_ref().read(), &inner)?;
                let planned = self.plan_alone(statement).await;
                if planned.is_ok() || parameter_names(&mut inner).is_empty() {
                    return Ok(Some(planned?));
                }
                return match self.prepared.statements().entry(name) {
                    Entry::Vacant(free) => {
                        free.insert(inner);
                        Ok(None)
                    }
                    Entry::Occupied(taken) => {
                        let name = taken.key();
                        let text = format!("{name} is prepared already; DEALLOCATE {name} first");
                        Err(Failure::new(text))
                    }
                };
            }
            ast::Statement::Execute { name: Some(name), parameters, .. } => {
                match self.executed(&name.to_string(), parameters)? {
                    Some(inner) => inner,
                    None => statement,
                }
            }
            ast::Statement::Deallocate { name, .. } => {
                match self.prepared.statements().remove(&name.value) {
                    Some(_) => return Ok(None),
                    None => statement,
                }
            }
            _ => statement,
        };
        Ok(Some(self.plan_alone(statement).await?))
    }

    /// Plans `statement` as DataFusion does, if all of its clauses are executed.
    ///
    /// # Errors
    /// The errors of planning.
    pub async fn plan_alone(&self, statement: Statement) -> Result<LogicalPlan> {
        let state = self.context.state();
        check_clauses(&state, &statement)?;
        let planned = state.statement_to_plan(statement).await;
        planned.map_err(|error| explain_missing_table(&state, error))
    }

    /// Returns the prepared statement `name` with `values` in place of its parameters, if it is kept here.
    fn executed(&self, name: &str, values: &[ast::Expr]) -> Outcome<Option<Statement>> {
        let Some(mut inner) = self.prepared.statements().get(name).cloned() else {
            return Ok(None);
        };
        let names = parameter_names(&mut inner);
        if names.len() != values.len() {
            return Err(Failure::new(format!(
                "EXECUTE {name}: expected {} values, one for each parameter, got {}",
                names.len(),
                values.len()
            )));
        }
        let literals: BTreeMap<String, ast::Expr> =
            names.into_iter().zip(values.iter().cloned()).collect();
        Parameters::new(literals).replace(&mut inner)?;
        Ok(Some(inner))
    }
}
