//! Statements: parses them one by one, and starts them within the limits of the session.
//!
//! Statements of a script are parsed one at a time, so the statements before a syntax error have run. `SET` can
//! change the dialect for the next script.

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::parser::{DFParser, DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast;
use datafusion::sql::sqlparser::dialect::{Dialect, dialect_from_str};
use datafusion::sql::sqlparser::tokenizer::Token;
use datafusion_tadoc::{
    Stop, TadocOptions, asking, check_clauses, check_parameters, check_statement_depth, cooperative, enough_memory,
    explain_missing_table, fold_little, plan_statement, stoppable,
};
use futures::StreamExt;

use crate::failure::{self, Failure, Outcome};
use crate::memory::Statement as LimitedStatement;
use crate::parameters::{Parameters, parameter_names};
use crate::session::{Session, call};

/// The statements of a script, parsed on demand.
pub struct Statements<'a>(DFParser<'a>);

/// The rows of a statement that has started.
pub struct Rows {
    /// The rows. They are taken within the memory limit.
    stream: SendableRecordBatchStream,
    limited: Option<LimitedStatement>,
}

impl Rows {
    /// Runs `take` with the rows, within the memory limit of the session.
    ///
    /// # Errors
    /// The error of `take`, or the process has too much resident memory.
    pub async fn take<T, F>(self, take: impl FnOnce(SendableRecordBatchStream) -> F) -> Result<T>
    where
        F: Future<Output = Result<T>>,
    {
        let taken = take(self.stream);
        match self.limited {
            Some(limited) => limited.run(taken).await,
            None => taken.await,
        }
    }
}

impl<'a> Statements<'a> {
    /// Creates the statements of `script`.
    ///
    /// # Errors
    /// A token of the script is not valid.
    pub fn new(script: &'a str, dialect: &'a dyn Dialect) -> Result<Self> {
        Ok(Self(DFParserBuilder::new(script).with_dialect(dialect).build()?))
    }

    /// Returns true if no statement is left.
    pub fn is_at_end(&mut self) -> bool {
        let parser = &mut self.0.parser;
        while parser.consume_token(&Token::SemiColon) {}
        parser.peek_token().token == Token::EOF
    }

    /// Parses the next statement. The depth is checked before parsing, because a parsed statement
    /// deeper than `max_depth` cannot even be dropped safely.
    ///
    /// # Errors
    /// The next statement is no valid SQL, or it is too deep.
    pub fn next(&mut self, max_depth: u64) -> Result<Option<Statement>> {
        if self.is_at_end() {
            return Ok(None);
        }
        let parser = &mut self.0;
        let tokens = (0..).map(|n| parser.parser.peek_nth_token_no_skip(n).token);
        let statement_tokens = tokens.take_while(|token| !matches!(token, Token::SemiColon | Token::EOF));
        check_statement_depth(statement_tokens, max_depth)?;
        let statement = parser.parse_statement()?;
        let next = parser.parser.peek_token();
        if next.token != Token::SemiColon && next.token != Token::EOF {
            let parsed = parser.parser.expected("end of statement", next);
            return parsed.map_err(|error: _| DataFusionError::SQL(Box::new(error), None));
        }
        Ok(Some(statement))
    }
}

/// Returns true if `maxrows` and `maxwidth` do not apply, as plans and descriptions are always shown whole.
pub fn is_shown_whole(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Explain(_) | LogicalPlan::Analyze(_) | LogicalPlan::DescribeTable(_))
}

/// Masks the secrets of the session in plans and descriptions.
fn masked(stream: SendableRecordBatchStream) -> SendableRecordBatchStream {
    let schema = stream.schema();
    let masked = stream.map(|batch| masked_batch(&batch?));
    Box::pin(RecordBatchStreamAdapter::new(schema, masked))
}

fn masked_batch(batch: &RecordBatch) -> Result<RecordBatch> {
    let column = |column: &ArrayRef| match column.as_string_opt::<i32>() {
        Some(texts) => {
            let masked = texts.iter().map(|text| text.map(failure::masked));
            Arc::new(masked.collect::<StringArray>())
        }
        None => Arc::clone(column),
    };
    let columns = batch.columns().iter().map(column).collect();
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}

impl Session {
    /// Returns the maximum depth of statements.
    pub fn max_depth(&self) -> u64 {
        // A copy of the state would copy the lists of all functions.
        let state = self.context().state_ref();
        TadocOptions::from_config(state.read().config_options()).max_statement_depth
    }

    /// Parses `sql`, which is one statement of one of many users: its secrets are not remembered, as
    /// they would be masked in the messages of others.
    ///
    /// # Errors
    /// It is no statement or several, or it is too deep.
    pub fn parse_one(&self, sql: &str) -> Outcome<Statement> {
        let dialect = self.dialect()?;
        let mut statements = Statements::new(sql, dialect.as_ref())?;
        let statement = statements.next(self.max_depth())?;
        let statement = statement.ok_or_else(|| Failure::usage("there is no statement"))?;
        if statements.is_at_end() {
            Ok(statement)
        } else {
            Err(Failure::usage("expected one statement, got several; send one by one"))
        }
    }

    /// Returns the SQL dialect of scripts.
    ///
    /// # Errors
    /// The setting names no dialect.
    pub fn dialect(&self) -> Result<Box<dyn Dialect>> {
        let state = self.context().state_ref();
        let state = state.read();
        let name = &state.config_options().sql_parser.dialect;
        dialect_from_str(name)
            .ok_or_else(|| DataFusionError::Configuration(format!("there is no SQL dialect `{name}`")))
    }

    /// Starts the statement of `plan`. DDL is done when this returns.
    ///
    /// # Errors
    /// The statement cannot be planned for execution, or its DDL fails.
    pub async fn start(&self, plan: LogicalPlan) -> Result<Rows> {
        self.start_in(plan, None, None).await
    }

    /// Starts the statement of `plan` as [`Session::start`] does. Its operators take their memory
    /// from `pool` instead of that of the session, and end after `stop` is set.
    ///
    /// # Errors
    /// As [`Session::start`].
    pub async fn start_in(
        &self,
        plan: LogicalPlan,
        pool: Option<Arc<dyn MemoryPool>>,
        stop: Option<&Stop>,
    ) -> Result<Rows> {
        let whole = is_shown_whole(&plan);
        let frame = self.execute(plan).await?;
        let mut context = frame.task_ctx();
        if let Some(memory_pool) = pool {
            let runtime = RuntimeEnv { memory_pool, ..context.runtime_env().as_ref().clone() };
            context = context.with_runtime(Arc::new(runtime));
        }
        let context = Arc::new(context);
        let (mut state, plan) = frame.into_parts();
        if let Some(stop) = stop {
            let options = Arc::new(stop.added_to(state.config_options()));
            state.execution_props_mut().config_options = Some(options);
        }
        let plan = fold_little(|| state.optimize(&plan))?;
        let plan = state.query_planner().create_physical_plan(&plan, &state).await?;
        let plan = cooperative(plan)?;
        let plan = match stop {
            Some(stop) => stoppable(plan, stop)?,
            None => plan,
        };
        let plan = if self.memory.is_some() && !self.has_engine() { asking(plan)? } else { plan };
        let limited = self.memory.as_ref().map(|pool| pool.statement(enough_memory(&plan)));
        let mut stream = execute_stream(plan, context)?;
        if whole {
            stream = masked(stream);
        }
        Ok(Rows { stream, limited })
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
            ast::Statement::Prepare { name, data_types, statement: inner } if self.sandbox.is_none() => {
                self.prepared.declare(&name.value, data_types);
                let mut inner = Statement::Statement(inner.clone());
                let name = name.value.clone();
                check_clauses(&self.context().state_ref().read(), &inner)?;
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
            ast::Statement::Call(function) if !self.procedures.is_empty() => {
                if self.sandbox.is_some() {
                    let name = &function.name;
                    return Err(Failure::new(format!("CALL {name}: safe mode reads only, and a procedure may write")));
                }
                return call(self.procedures, function).await.map(Some);
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
            ast::Statement::Deallocate { name, .. } => match self.prepared.statements().remove(&name.value) {
                Some(_) => return Ok(None),
                None => statement,
            },
            _ => statement,
        };
        Ok(Some(self.plan_alone(statement).await?))
    }

    /// Plans `statement` as DataFusion does, if all of its clauses are executed.
    ///
    /// # Errors
    /// The errors of planning.
    pub async fn plan_alone(&self, statement: Statement) -> Result<LogicalPlan> {
        let state = self.context().state();
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
        let literals: BTreeMap<String, ast::Expr> = names.into_iter().zip(values.iter().cloned()).collect();
        Parameters::new(literals).replace(&mut inner)?;
        Ok(Some(inner))
    }
}
