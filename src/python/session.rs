//! A session: statements with parameters, and tables of Python's objects.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::logical_expr::LogicalPlan;
use datafusion::sql::parser::Statement as Parsed;
use datafusion_tadoc::notices;
use pyo3::prelude::*;
use tadoc_session::{Failure, Outcome, Parameters, Statements, remember_secrets};

use crate::capsules::{HostFactory, HostFunction, HostScalar};
use crate::error_of;
use crate::feed::Feed;
use crate::gathered::{Gathered, gather};
use crate::statement::Statement;
use crate::variables::{Variables, memory_table, parameters_of};
use crate::waiting::{Interrupts, Task, wait};

/// A session of the engine. Threads may share it.
#[pyclass(frozen, module = "datafusion_tadoc._native")]
pub struct Session {
    session: Arc<tadoc_session::Session>,
    interrupts: Interrupts,
}

#[pymethods]
impl Session {
    /// Opens a session with a limit of the memory of the process, and with settings.
    #[new]
    fn new(py: Python<'_>, memory_limit: Option<u64>, settings: Vec<(String, String)>) -> PyResult<Self> {
        let open = async move { tadoc_session::Session::for_program(memory_limit, &settings).await };
        let interrupts = Interrupts::default();
        Ok(Self { session: Arc::new(wait(py, &interrupts, open)?), interrupts })
    }

    /// Plans the last statement of `sql`, and runs the statements before it. The last one runs too
    /// if it is no query. `variables` gives the Arrow object of a name that no table has, or `None`.
    #[pyo3(signature = (sql, parameters=None, variables=None))]
    fn statement(
        &self,
        py: Python<'_>,
        sql: String,
        parameters: Option<&Bound<'_, PyAny>>,
        variables: Option<Py<PyAny>>,
    ) -> PyResult<Statement> {
        let parameters = parameters_of(parameters)?;
        let session = Arc::clone(&self.session);
        let interrupts = self.interrupts.clone();
        let variables = Variables::new(variables);
        wait(py, &self.interrupts, async move { prepare(session, interrupts, &sql, parameters, &variables).await })
    }

    /// Ends the statements that run, with `Interrupted` for those who wait for them.
    fn interrupt(&self) {
        self.interrupts.ask();
    }

    /// Registers the rows of an Arrow object as the table `name`, in place of one of that name.
    fn register(&self, py: Python<'_>, name: &str, rows: &Bound<'_, PyAny>) -> PyResult<()> {
        let table = memory_table(py, rows)?;
        let context = self.session.context();
        context.deregister_table(name).map_err(error_of)?;
        context.register_table(name, Arc::new(table)).map_err(error_of)?;
        Ok(())
    }

    /// Removes the table `name`, and says whether there was one.
    fn unregister(&self, name: &str) -> PyResult<bool> {
        let removed = self.session.context().deregister_table(name).map_err(error_of)?;
        Ok(removed.is_some())
    }

    /// Returns a table function for sessions of the package `datafusion`.
    fn host_function(&self, name: String) -> HostFunction {
        HostFunction::new(Arc::clone(&self.session), name)
    }

    /// Returns a scalar function for sessions of the package `datafusion`.
    fn host_scalar(&self, name: String) -> HostScalar {
        HostScalar::new(Arc::clone(&self.session), name)
    }

    /// Returns the tables `STORED AS` a file type for sessions of the package `datafusion`.
    fn host_factory(&self, file_type: String) -> HostFactory {
        HostFactory::new(Arc::clone(&self.session), file_type)
    }

    /// Runs `sql`, which reads the table `name` once, while this thread fills the table from an
    /// Arrow object or from an iterable of paths and texts. `counter` is called with the number of
    /// documents and their bytes, as they come.
    #[pyo3(signature = (name, source, sql, counter=None))]
    fn feed<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        source: &Bound<'py, PyAny>,
        sql: String,
        counter: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Gathered> {
        let feed = Feed::new(source)?;
        let (table, sender) = feed.table().map_err(error_of)?;
        let context = self.session.context();
        context.register_table(name, table).map_err(error_of)?;
        let session = Arc::clone(&self.session);
        let task = Task::spawn(&self.interrupts, async move {
            let statement = parsed(&session, &sql, Parameters::default())?.pop();
            let statement = statement.ok_or_else(no_statement)?;
            run(&session, statement).await
        });
        let fed = task.and_then(|task| feed.run(py, sender, task, counter));
        context.deregister_table(name).map_err(error_of)?;
        fed
    }
}

/// Runs all statements of `sql` but the last, and plans that one.
async fn prepare(
    session: Arc<tadoc_session::Session>,
    interrupts: Interrupts,
    sql: &str,
    parameters: Parameters,
    variables: &Variables,
) -> Outcome<Statement> {
    let mut statements = parsed(&session, sql, parameters)?;
    let last = statements.pop().ok_or_else(no_statement)?;
    let mut all_notices = Vec::new();
    for statement in statements {
        if let Some(plan) = variables.plan(&session, statement).await? {
            all_notices.extend(notices(&plan));
            gather(&session, plan, None).await?;
        }
    }
    let plan = variables.plan(&session, last).await?;
    all_notices.extend(plan.iter().flat_map(notices));
    let statement = match plan {
        None => Statement::done(no_rows()),
        Some(plan) if runs_at_once(&plan) => Statement::done(gather(&session, plan, None).await?),
        Some(plan) => Statement::query(session, interrupts, plan),
    };
    Ok(statement.with_notices(all_notices))
}

/// Runs `statement` and returns its rows.
async fn run(session: &tadoc_session::Session, statement: Parsed) -> Outcome<Gathered> {
    match session.plan(statement).await? {
        Some(plan) => gather(session, plan, None).await,
        None => Ok(no_rows()),
    }
}

fn no_rows() -> Gathered {
    Gathered::new(Arc::new(Schema::empty()), Vec::new())
}

/// Parses `sql`, with its parameters replaced.
fn parsed(session: &tadoc_session::Session, sql: &str, mut parameters: Parameters) -> Outcome<Vec<Parsed>> {
    remember_secrets(sql);
    let dialect = session.dialect()?;
    let mut statements = Statements::new(sql, dialect.as_ref())?;
    let mut parsed = Vec::new();
    while let Some(mut statement) = statements.next(session.max_depth())? {
        parameters.replace(&mut statement)?;
        parsed.push(statement);
    }
    parameters.finish()?;
    Ok(parsed)
}

fn no_statement() -> Failure {
    Failure::usage("there is no statement")
}

/// Returns true if a statement is run for what it does, and not for its rows.
fn runs_at_once(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Ddl(_) | LogicalPlan::Dml(_) | LogicalPlan::Copy(_) | LogicalPlan::Statement(_))
}
