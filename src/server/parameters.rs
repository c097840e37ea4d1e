//! Values for the parameters of statements, from rows of Arrow and from JSON.
//!
//! | client | values | names |
//! | --- | --- | --- |
//! | Flight SQL | a row | `$1`, `?` and `$name`, in their order |
//! | HTTP | an object | `$name` |
//! | HTTP | a list | `$1` and `?` |
//!
//! A value becomes a literal of the parsed statement. It is never a part of its text, so no value changes a statement.

use std::collections::BTreeMap;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::ScalarValue;
use datafusion::logical_expr::{Expr, lit};
use datafusion::sql::parser::Statement;
use datafusion::sql::sqlparser::ast;
use datafusion::sql::unparser::expr_to_sql;
use serde_json::Value;
use tadoc_session::{Parameters, parameter_names};

use crate::refusal::{Kind, Refusal};
use crate::wire::literal;

/// Values for the parameters of a statement.
#[derive(Debug, Clone, Default)]
pub enum Given {
    /// No values.
    #[default]
    Nothing,
    /// One row, in the order of the names.
    Row(RecordBatch),
    /// Literals by name.
    Named(BTreeMap<String, ast::Expr>),
}

impl Given {
    /// Takes `texts` for `$1`, `$2` and so on.
    ///
    /// # Errors
    /// A text has no form in SQL.
    pub fn from_texts(texts: &[String]) -> Result<Self, Refusal> {
        let mut literals = BTreeMap::new();
        for (at, text) in texts.iter().enumerate() {
            literals.insert((at + 1).to_string(), expr_to_sql(&lit(text.as_str()))?);
        }
        Ok(Self::Named(literals))
    }

    /// Reads values by name, or in a list for `$1`, `$2` and so on. Null stands for no values.
    ///
    /// # Errors
    /// A value is a list or an object.
    pub fn from_json(given: &Value) -> Result<Self, Refusal> {
        let named: Vec<(String, &Value)> = match given {
            Value::Null => return Ok(Self::Nothing),
            Value::Object(values) => values.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(values) => {
                values.iter().enumerate().map(|(at, value)| ((at + 1).to_string(), value)).collect()
            }
            _ => return Err(Refusal::new(Kind::Invalid, "parameters: expected an object, or a list")),
        };
        let literals = named.into_iter().map(|(name, value)| {
            let literal = expr_to_sql(&literal_from_json(&name, value)?)?;
            Ok((name, literal))
        });
        literals.collect::<Result<_, Refusal>>().map(Self::Named)
    }

    /// Returns the literals, by the names of the parameters of `statement`.
    ///
    /// # Errors
    /// A row has not one value for each parameter.
    pub fn bound(&self, statement: &mut Statement) -> Result<Parameters, Refusal> {
        let values = match self {
            Self::Nothing => return Ok(Parameters::default()),
            Self::Named(literals) => return Ok(Parameters::new(literals.clone())),
            Self::Row(values) => values,
        };
        let names = parameter_names(statement);
        if values.num_rows() != 1 || values.num_columns() != names.len() {
            let text = format!(
                "expected one row with {} values, one for each parameter, got {} rows with {}",
                names.len(),
                values.num_rows(),
                values.num_columns()
            );
            return Err(Refusal::new(Kind::Invalid, text));
        }
        let mut literals = BTreeMap::new();
        for (name, column) in names.into_iter().zip(values.columns()) {
            literals.insert(name, expr_to_sql(&literal(column, 0)?)?);
        }
        Ok(Parameters::new(literals))
    }
}

fn literal_from_json(name: &str, value: &Value) -> Result<Expr, Refusal> {
    match value {
        Value::Null => Ok(lit(ScalarValue::Null)),
        Value::Bool(value) => Ok(lit(*value)),
        Value::String(value) => Ok(lit(value.as_str())),
        Value::Number(value) => match (value.as_i64(), value.as_u64(), value.as_f64()) {
            (Some(value), _, _) => Ok(lit(value)),
            (None, Some(value), _) => Ok(lit(value)),
            (None, None, Some(value)) => Ok(lit(value)),
            (None, None, None) => Err(Refusal::new(Kind::Invalid, format!("parameters: {name} is no number of SQL"))),
        },
        Value::Array(_) | Value::Object(_) => {
            let text =
                format!("parameters: {name} is a list or an object, expected a text, number, true, false or null");
            Err(Refusal::new(Kind::Invalid, text))
        }
    }
}
