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
use datafusion_tadoc::{check_clauses, check_parameters, explain_missing_table, plan_statement};

use super::Session;
use super::parameters::{Parameters, parameter_names};
use crate::failure::{Failure, Outcome};

/// Statements that were prepared.
#[derive(Debug, Default)]
pub struct Prepared {
    /// Statements that are not planned, by name.
    statements: Mutex<HashMap<String, Statement>>,
    /// By name in small letters, which parameters of the others were declared as decimals. DataFusion casts their
    /// values itself.
    decimals: Mutex<HashMap<String, Vec<bool>>>,
}

impl Prepared {
    fn statements(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the declared types of the parameters of `name`. A statement of this name may stay if it cannot be
    /// prepared anew, so decimals stay decimals.
    fn declare(&self, name: &str, types: &[ast::DataType]) {
        let is_decimal = |kind: &ast::DataType| {
            let kind = kind.to_string().to_ascii_uppercase();
            kind.contains("DEC") || kind.contains("NUMERIC")
        };
        let mut decimals = self.decimals.lock().unwrap_or_else(PoisonError::into_inner);
        let known = decimals.entry(name.to_ascii_lowercase()).or_default();
        known.resize(known.len().max(types.len()), false);
        for (known, kind) in known.iter_mut().zip(types) {
            *known = *known || is_decimal(kind);
        }
    }

    /// Returns which parameters of `name` were declared as decimals.
    fn are_decimals(&self, name: &ast::ObjectName) -> Vec<bool> {
        let decimals = self.decimals.lock().unwrap_or_else(PoisonError::into_inner);
        let last = name.0.last().and_then(ast::ObjectNamePart::as_ident);
        let known = last.and_then(|name| decimals.get(&name.value.to_ascii_lowercase()));
        known.cloned().unwrap_or_default()
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
            ast::Statement::Prepare { name, data_types, statement: inner }
                if self.sandbox.is_none() =>
            {
                self.prepared.declare(&name.value, data_types);
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
                    None => {
                        let are_decimals = self.prepared.are_decimals(name);
                        let plan = self.plan_alone(statement).await?;
                        check_parameters(&plan, &are_decimals)?;
                        return Ok(Some(plan));
                    }
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
        let planned = plan_statement(&state, statement).await;
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
