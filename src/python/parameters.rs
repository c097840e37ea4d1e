//! Parameters of statements: Python values become literals in the parsed statement.
//!
//! ```text
//! SELECT * FROM kwic($1, :query) ─parse─▶ kwic(Placeholder, Placeholder) ─replace─▶ kwic('a', 'b')
//! ```
//!
//! Values never become part of the text, so no value can change a statement. DataFusion plans table
//! functions from literals, so parameters have to be literals before planning.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{
    Array, DataType, ExactNumberInfo, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident, ObjectName, TimezoneInfo, TypedString,
    UnaryOperator, Value, VisitMut, visit_expressions_mut,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyBytes, PyDate, PyDateTime, PyDict, PyFloat, PyInt, PyList, PyString, PyTime, PyTuple,
    PyTzInfoAccess,
};
use tadoc_cli::{Failure, Outcome};

/// The literals of the parameters of statements, by name: `1` for `$1`, `word` for `$word`.
#[derive(Default)]
pub struct Parameters {
    literals: BTreeMap<String, Expr>,
    used: BTreeSet<String>,
    /// Number of `?` that were replaced.
    num_anonymous: usize,
}

impl Parameters {
    /// Reads a list, a tuple or a dictionary of values.
    ///
    /// # Errors
    /// A value has no literal in SQL.
    pub fn from_python(values: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let mut literals = BTreeMap::new();
        let Some(values) = values else { return Ok(Self::default()) };
        if let Ok(named) = values.cast::<PyDict>() {
            for (name, value) in named {
                literals.insert(name.extract()?, literal(&value)?);
            }
        } else if values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>() {
            for (at, value) in values.try_iter()?.enumerate() {
                literals.insert((at + 1).to_string(), literal(&value?)?);
            }
        } else {
            return Err(PyTypeError::new_err("parameters are a list, a tuple or a dictionary"));
        }
        Ok(Self { literals, ..Self::default() })
    }

    /// Replaces the placeholders of `statement`.
    ///
    /// # Errors
    /// A placeholder has no value.
    pub fn replace(&mut self, statement: &mut Statement) -> Outcome {
        match statement {
            Statement::Statement(statement) => self.replace_in(statement.as_mut()),
            Statement::Explain(explain) => self.replace(&mut explain.statement),
            Statement::CopyTo(copy) => match &mut copy.source {
                CopyToSource::Query(query) => self.replace_in(query.as_mut()),
                CopyToSource::Relation(_) => Ok(()),
            },
            Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
        }
    }

    /// Checks that all values were used.
    ///
    /// # Errors
    /// A value belongs to no placeholder.
    pub fn finish(self) -> Outcome {
        match self.literals.keys().find(|name| !self.used.contains(*name)) {
            None => Ok(()),
            Some(name) => Err(Failure::new(format!(
                "the statement has no parameter ${name}; it uses: {}",
                listed(&self.used)
            ))),
        }
    }

    fn replace_in(&mut self, node: &mut impl VisitMut) -> Outcome {
        let replaced = visit_expressions_mut(node, |expression| {
            let Expr::Value(value) = &*expression else { return ControlFlow::Continue(()) };
            let Value::Placeholder(placeholder) = &value.value else {
                return ControlFlow::Continue(());
            };
            match self.literal_of(placeholder) {
                Ok(literal) => *expression = literal,
                Err(failure) => return ControlFlow::Break(failure),
            }
            ControlFlow::Continue(())
        });
        match replaced {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(failure) => Err(failure),
        }
    }

    fn literal_of(&mut self, placeholder: &str) -> Outcome<Expr> {
        let name = match placeholder {
            "?" => {
                self.num_anonymous += 1;
                self.num_anonymous.to_string()
            }
            _ => placeholder.trim_start_matches(['$', ':', '@']).to_owned(),
        };
        let found = self.literals.get(&name).cloned();
        let literal = found.ok_or_else(|| {
            let given = self.literals.keys().cloned().collect();
            Failure::new(format!(
                "no value for the parameter {placeholder}; given: {}",
                listed(&given)
            ))
        })?;
        self.used.insert(name);
        Ok(literal)
    }
}

fn listed(names: &BTreeSet<String>) -> String {
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.iter().map(|name| format!("${name}")).collect::<Vec<_>>().join(", "),
    }
}

/// Returns the literal of a Python value.
fn literal(value: &Bound<'_, PyAny>) -> PyResult<Expr> {
    Ok(if value.is_none() {
        plain(Value::Null)
    } else if let Ok(value) = value.cast::<PyBool>() {
        plain(Value::Boolean(value.is_true()))
    } else if value.is_instance_of::<PyInt>() {
        number(&value.str()?.to_string())
    } else if let Ok(value) = value.cast::<PyFloat>() {
        float(value.extract()?)
    } else if let Ok(value) = value.cast::<PyString>() {
        plain(Value::SingleQuotedString(value.to_str()?.to_owned()))
    } else if let Ok(value) = value.cast::<PyBytes>() {
        let hex = value.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        plain(Value::HexStringLiteral(hex))
    } else if let Ok(moment) = value.cast::<PyDateTime>() {
        let text = value.call_method0("isoformat")?.extract()?;
        match moment.get_tzinfo() {
            Some(_) => zoned(text),
            None => typed(DataType::Timestamp(None, TimezoneInfo::None), text),
        }
    } else if value.is_instance_of::<PyDate>() {
        typed(DataType::Date, value.call_method0("isoformat")?.extract()?)
    } else if value.is_instance_of::<PyTime>() {
        typed(DataType::Time(None, TimezoneInfo::None), value.call_method0("isoformat")?.extract()?)
    } else if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let elem = value.try_iter()?.map(|item| literal(&item?)).collect::<PyResult<_>>()?;
        Expr::Array(Array { elem, named: true })
    } else if is_decimal(value)? {
        decimal(value.str()?.to_string())
    } else if value.hasattr("__fspath__")? {
        let path: String = value.call_method0("__fspath__")?.extract()?;
        plain(Value::SingleQuotedString(path))
    } else {
        let kind = value.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "a parameter is None, a bool, int, float, str, bytes, date, time, datetime, Decimal, \
             path or list of these, and not {kind}"
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

/// Returns a moment with a zone. `TIMESTAMP WITH TIME ZONE` takes the zone of the session, which may
/// be none.
fn zoned(text: String) -> Expr {
    let utc = "Timestamp(Microsecond, Some(\"+00:00\"))";
    let texts = [text, utc.to_owned()].map(|text| {
        let text = plain(Value::SingleQuotedString(text));
        FunctionArg::Unnamed(FunctionArgExpr::Expr(text))
    });
    Expr::Function(Function {
        name: ObjectName::from(vec![Ident::new("arrow_cast")]),
        uses_odbc_syntax: false,
        parameters: FunctionArguments::None,
        args: FunctionArguments::List(FunctionArgumentList {
            duplicate_treatment: None,
            args: texts.into(),
            clauses: Vec::new(),
        }),
        filter: None,
        null_treatment: None,
        over: None,
        within_group: Vec::new(),
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
    match value.is_finite() {
        true => number(&format!("{value:e}")),
        false => typed(DataType::Double(ExactNumberInfo::None), value.to_string()),
    }
}

fn is_decimal(value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let kind = value.get_type();
    Ok(kind.name()? == "Decimal" && kind.module()?.to_str()? == "decimal")
}

/// Returns a literal with all digits of a decimal, and with the most room before the point.
fn decimal(text: String) -> Expr {
    let scale = text.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let scale = i64::try_from(scale).unwrap_or(i64::MAX);
    typed(DataType::Decimal(ExactNumberInfo::PrecisionAndScale(38, scale)), text)
}
