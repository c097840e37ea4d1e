//! Values of Python in statements: Arrow objects as tables, variables as tables of one statement, and parameters,
//! which are literals of SQL.
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
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use datafusion::common::TableReference;
use datafusion::datasource::MemTable;
use datafusion::logical_expr::LogicalPlan;
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::{CopyToSource, Statement as Parsed};
use datafusion::sql::sqlparser::ast::{
    Array, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentList,
    FunctionArguments, Ident, Interval, ObjectName, Query, Statement, TableAlias, TableFactor, TimezoneInfo,
    TypedString, UnaryOperator, Value, VisitMut, VisitorMut,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt, PyList,
    PyString, PyTime, PyTuple, PyTzInfoAccess,
};
use tadoc_session::{Failure, Outcome, Parameters, Session};

use crate::capsules::reader_of;
use crate::{Error, error_of};

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

/// Lists in each other that a parameter may have.
const MAX_DEPTH: usize = 16;
/// Digits of the widest decimal.
const MAX_DIGITS: i64 = 38;
/// Years of which all moments fit into 64 bits of nanoseconds, as SQL's timestamps are.
const NANOSECOND_YEARS: Range<i32> = 1678..2262;

/// Reads a list, a tuple or a dictionary of values.
///
/// # Errors
/// A value has no literal in SQL, or lists are too deep in each other.
pub fn parameters_of(values: Option<&Bound<'_, PyAny>>) -> PyResult<Parameters> {
    let mut literals = BTreeMap::new();
    let Some(values) = values else { return Ok(Parameters::default()) };
    if let Ok(named) = values.cast::<PyDict>() {
        for (name, value) in named {
            literals.insert(name.extract()?, literal(&value, MAX_DEPTH)?);
        }
    } else if values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>() {
        for (at, value) in values.try_iter()?.enumerate() {
            literals.insert((at + 1).to_string(), literal(&value?, MAX_DEPTH)?);
        }
    } else {
        return Err(PyTypeError::new_err("parameters are a list, a tuple or a dictionary"));
    }
    Ok(Parameters::new(literals))
}

/// Returns the literal of a Python value with at most `depth` lists in each other.
fn literal(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Expr> {
    Ok(if value.is_none() {
        plain(Value::Null)
    } else if let Ok(value) = value.cast::<PyBool>() {
        plain(Value::Boolean(value.is_true()))
    } else if value.is_instance_of::<PyInt>() {
        integer(value)?
    } else if let Ok(value) = value.cast::<PyFloat>() {
        float(value.extract()?)
    } else if let Ok(value) = value.cast::<PyString>() {
        plain(Value::SingleQuotedString(value.to_str()?.to_owned()))
    } else if let Ok(value) = value.cast::<PyBytes>() {
        let hex = value.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        plain(Value::HexStringLiteral(hex))
    } else if let Ok(moment) = value.cast::<PyDateTime>() {
        let text: String = value.call_method0("isoformat")?.extract()?;
        match moment.get_tzinfo() {
            // pandas has a moment that is none.
            _ if text == "NaT" => plain(Value::Null),
            // `TIMESTAMP WITH TIME ZONE` takes the zone of the session, which may be none.
            Some(_) => arrow_cast(text, "Timestamp(Microsecond, Some(\"+00:00\"))"),
            None if NANOSECOND_YEARS.contains(&moment.get_year()) => {
                typed(DataType::Timestamp(None, TimezoneInfo::None), text)
            }
            None => arrow_cast(text, "Timestamp(Microsecond, None)"),
        }
    } else if let Ok(span) = value.cast::<PyDelta>() {
        interval(span)
    } else if value.is_instance_of::<PyDate>() {
        typed(DataType::Date, value.call_method0("isoformat")?.extract()?)
    } else if value.is_instance_of::<PyTime>() {
        typed(DataType::Time(None, TimezoneInfo::None), value.call_method0("isoformat")?.extract()?)
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let depth = depth
            .checked_sub(1)
            .ok_or_else(|| Error::new_err(format!("a parameter has more than {MAX_DEPTH} lists in each other")))?;
        let elem = value.try_iter()?.map(|item| literal(&item?, depth));
        let elem = elem.collect::<PyResult<_>>()?;
        Expr::Array(Array { elem, named: true })
    } else if is_decimal(value)? {
        decimal(value)?
    } else if value.hasattr("__fspath__")? {
        let path: String = value.call_method0("__fspath__")?.extract()?;
        plain(Value::SingleQuotedString(path))
    } else if let Some(value) = plain_value(value)? {
        literal(&value, depth)?
    } else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a parameter is None, a bool, int, float, str, bytes, date, time, datetime, timedelta, \
             Decimal, path, scalar of numpy or list of these, and not {kind}"
        )));
    })
}

fn plain(value: Value) -> Expr {
    Expr::Value(value.with_empty_span())
}

fn typed(data_type: DataType, text: String) -> Expr {
    let value = Value::SingleQuotedString(text).with_empty_span();
    Expr::TypedString(TypedString { data_type, value, uses_odbc_syntax: false })
}

/// Returns the interval of a span of time. It has no days, because SQL orders intervals by days first.
fn interval(span: &Bound<'_, PyDelta>) -> Expr {
    let seconds = i128::from(span.get_days()) * 86_400 + i128::from(span.get_seconds());
    let microseconds = seconds * 1_000_000 + i128::from(span.get_microseconds());
    let seconds = microseconds / 1_000_000;
    let microseconds = microseconds % 1_000_000;
    let text = format!("{seconds} seconds {microseconds} microseconds");
    Expr::Interval(Interval {
        value: Box::new(plain(Value::SingleQuotedString(text))),
        leading_field: None,
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    })
}

/// Returns the value of Python that a scalar of numpy stands for, or `None` if there is none.
fn plain_value<'py>(scalar: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
    let is_numpy = scalar.get_type().module()?.to_str()? == "numpy";
    if !is_numpy || !scalar.hasattr("dtype")? || !scalar.getattr("shape")?.is_empty()? {
        return Ok(None);
    }
    let kind: String = scalar.getattr("dtype")?.getattr("kind")?.extract()?;
    let value = match kind.as_str() {
        "b" | "i" | "u" | "f" => scalar.call_method0("item")?,
        // Finer units are integers in Python.
        "M" | "m" => {
            let name = if kind == "M" { "datetime64[us]" } else { "timedelta64[us]" };
            let in_microseconds = scalar.call_method1("astype", (name,))?;
            let is_none = scalar.ne(scalar)?;
            // Months have no length, so numpy does not compare them with microseconds.
            if !is_none && in_microseconds.ne(scalar).unwrap_or(true) {
                return Ok(None);
            }
            in_microseconds.call_method0("item")?
        }
        _ => return Ok(None),
    };
    let is_moment = value.is_instance_of::<PyDateTime>() || value.is_instance_of::<PyDelta>();
    let is_expected = match kind.as_str() {
        "M" | "m" => is_moment || value.is_none(),
        _ => value.get_type().module()?.to_str()? == "builtins",
    };
    Ok(is_expected.then_some(value))
}

/// Returns `text` as a value of the Arrow type `data_type`.
fn arrow_cast(text: String, data_type: &str) -> Expr {
    let arguments = [text, data_type.to_owned()].map(|text| {
        let text = plain(Value::SingleQuotedString(text));
        FunctionArg::Unnamed(FunctionArgExpr::Expr(text))
    });
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("arrow_cast")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: arguments.into(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
    })
}

/// Returns the literal of an integer of 64 bits. SQL reads a longer one as a float.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    let signed = value.extract::<i64>().map(|value| value.to_string());
    let digits = signed.or_else(|_| value.extract::<u64>().map(|value| value.to_string()));
    digits.map(|digits| number(&digits)).map_err(|_| {
        // Python refuses to write an integer of thousands of digits.
        let shown = value.str().map_or_else(|_| "an integer".to_owned(), |text| text.to_string());
        Error::new_err(format!("a parameter: got {shown}, which does not fit into 64 bits; pass a Decimal or a text"))
    })
}

/// Returns the literal of a number in decimal digits, perhaps with a minus.
fn number(digits: &str) -> Expr {
    match digits.strip_prefix('-') {
        Some(digits) => Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(number(digits)) },
        None => plain(Value::Number(digits.to_owned(), false)),
    }
}

fn float(value: f64) -> Expr {
    if value.is_finite() {
        number(&format!("{value:e}"))
    } else {
        typed(DataType::Double(ExactNumberInfo::None), value.to_string())
    }
}

fn is_decimal(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = value.get_type();
    Ok(kind.name()? == "Decimal" && kind.module()?.to_str()? == "decimal")
}

/// Returns a literal with all digits of a decimal, and with the most room before the point.
fn decimal(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    // The text below has no exponent, so a large one would become that many digits.
    let exponent: i64 = value.call_method0("adjusted")?.extract()?;
    if !(-MAX_DIGITS..MAX_DIGITS).contains(&exponent) {
        let shown = value.str()?;
        return Err(Error::new_err(format!(
            "a parameter: got {shown}, expected a decimal of at most {MAX_DIGITS} digits; pass a float \
             or a text"
        )));
    }
    let text: String = value.call_method1("__format__", ("f",))?.extract()?;
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let scale = i64::try_from(scale).unwrap_or(i64::MAX);
    Ok(typed(DataType::Decimal(ExactNumberInfo::PrecisionAndScale(38, scale)), text))
}
