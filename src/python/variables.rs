//! Arrow objects of Python as tables, and variables of Python as tables of one statement.
//!
//! ```text
//! SELECT word FROM words w ─plan─▶ no table of this name ─▶ the variable `words` of the caller, if it has rows
//!         │                                                         │ registered as tadoc_rows_…
//!         └─ FROM tadoc_rows_… AS w ─plan─▶ the plan has the rows ◀──┘ and the table is removed
//! ```
//!
//! A variable stands in only where planning failed, for a name that is no table and no `WITH`. So tables come
//! first. The rows are copied when the statement is planned, under a name that no other statement has. So threads that
//! share a session see their own variables. Only what is read is looked up: the source of a query, of `COPY`, `INSERT`
//! and `CREATE TABLE`. A view lives longer than a variable.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    Ident, ObjectName, Query, Statement, TableAlias, TableFactor, VisitMut, VisitorMut,
};
use pyo3::prelude::*;
use tadoc_session::{Failure, Outcome, Session};

use crate::capsules::reader_of;
use crate::error_of;

/// Numbers of the tables of variables.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Reads the rows of an Arrow object into memory, as a table.
///
/// # Errors
/// `rows` is no Arrow object, reading fails, or a signal handler raises (`KeyboardInterrupt`).
pub fn memory_table(py: Python<'_>, rows: &Bound<'_, PyAny>) -> PyResult<MemTable> {
    let mut reader = reader_of(rows)?;
    let schema = reader.schema();
    let mut batches = Vec::new();
    loop {
        let next = &mut reader;
        let Some(batch) = py.detach(move || next.next()) else { break };
        batches.push(batch.map_err(error_of)?);
        py.check_signals()?;
    }
    MemTable::try_new(schema, vec![batches]).map_err(error_of)
}

/// The variables that statements may name: a function of Python that returns an Arrow object, or `None`.
pub struct Variables(Option<Py<PyAny>>);

impl Variables {
    /// Creates the variables of a function, or none.
    pub fn new(function: Option<Py<PyAny>>) -> Self {
        Self(function)
    }

    /// Plans a statement.
    ///
    /// # Errors
    /// The errors of planning, or the rows of a variable cannot be read.
    pub async fn plan(&self, session: &Session, mut statement: Parsed) -> Outcome<Option<LogicalPlan>> {
        let Some(function) = &self.0 else { return session.plan(statement).await };
        let missing = missing_tables(session.context(), &mut statement);
        if missing.is_empty() {
            return session.plan(statement).await;
        }
        let failure = match session.plan(statement.clone()).await {
            Ok(plan) => return Ok(plan),
            Err(failure) => failure,
        };
        let mut made = MadeTables { context: session.context(), names: BTreeMap::new() };
        for name in missing {
            if let Some(table) = tokio::task::block_in_place(|| table_of(function, &name))? {
                made.register(name, table)?;
            }
        }
        if made.names.is_empty() {
            return Err(failure);
        }
        visit(&mut statement, &mut Renaming(&made.names));
        session.plan(statement).await
    }
}

/// Returns the rows of the variable `name`, if there is such a one.
fn table_of(function: &Py<PyAny>, name: &str) -> Outcome<Option<MemTable>> {
    let found = Python::try_attach(|py| {
        let rows = function.bind(py).call1((name,))?;
        if rows.is_none() { Ok(None) } else { memory_table(py, &rows).map(Some) }
    });
    let about = |error: PyErr| Failure::new(format!("the variable {name}: {error}"));
    found.unwrap_or(Ok(None)).map_err(about)
}

/// Tables of variables under their made names. They are removed when this is dropped.
struct MadeTables<'a> {
    context: &'a SessionContext,
    names: BTreeMap<String, String>,
}

impl MadeTables<'_> {
    fn register(&mut self, name: String, table: MemTable) -> Outcome {
        let made = format!("tadoc_rows_{:032x}", NEXT.fetch_add(1, Ordering::Relaxed));
        self.context.register_table(made.as_str(), Arc::new(table))?;
        self.names.insert(name, made);
        Ok(())
    }
}

impl Drop for MadeTables<'_> {
    fn drop(&mut self) {
        for made in self.names.values() {
            // A table that is gone is removed, too.
            let _ = self.context.deregister_table(made.as_str());
        }
    }
}

/// Returns the plain names that `statement` reads from and that are no tables.
fn missing_tables(context: &SessionContext, statement: &mut Parsed) -> BTreeSet<String> {
    let mut names = Names::default();
    visit(statement, &mut names);
    let is_table = |name: &str| context.table_exist(TableReference::bare(name)).unwrap_or(true);
    let is_missing = |name: &String| {
        let small = name.to_lowercase();
        !names.withs.contains(&small) && !is_table(name) && !is_table(&small)
    };
    names.tables.into_iter().filter(is_missing).collect()
}

/// Visits what `statement` reads.
fn visit(statement: &mut Parsed, visitor: &mut impl VisitorMut<Break = ()>) {
    // No visitor ends early.
    let _ = match statement {
        Parsed::Statement(plain) if is_read_only_here(plain) => plain.as_mut().visit(visitor),
        Parsed::Explain(explain) => return visit(&mut explain.statement, visitor),
        Parsed::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => query.as_mut().visit(visitor),
            CopyToSource::Relation(_) => return,
        },
        _ => return,
    };
}

/// Returns true if all tables of the `FROM` clauses of a statement are read and not changed.
fn is_read_only_here(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(_) | Statement::Insert(_) | Statement::CreateTable(_))
}

/// Names of tables as written, and of `WITH` in lower case.
#[derive(Default)]
struct Names {
    tables: BTreeSet<String>,
    withs: BTreeSet<String>,
}

impl VisitorMut for Names {
    type Break = ();

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<()> {
        let withs = query.with.iter().flat_map(|with| &with.cte_tables);
        self.withs.extend(withs.map(|with| with.alias.name.value.to_lowercase()));
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, args: None, .. } = factor
            && let Some(name) = plain_name(name)
        {
            self.tables.insert(name.value.clone());
        }
        ControlFlow::Continue(())
    }
}

/// Gives tables other names. The name that was written stays as an alias, so columns may have it before them.
struct Renaming<'a>(&'a BTreeMap<String, String>);

impl VisitorMut for Renaming<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Table { name, alias, args: None, .. } = factor
            && let Some(written) = plain_name(name).cloned()
            && let Some(made) = self.0.get(&written.value)
        {
            *name = ObjectName::from(vec![Ident::new(made)]);
            if alias.is_none() {
                *alias = Some(TableAlias { explicit: true, name: written, columns: Vec::new(), at: None });
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the only part of a name. A text in single quotes is a file, and no name.
fn plain_name(name: &ObjectName) -> Option<&Ident> {
    match name.0.as_slice() {
        [part] => part.as_ident().filter(|ident| ident.quote_style != Some('\'')),
        _ => None,
    }
}
