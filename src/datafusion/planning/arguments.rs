//! Arguments of a table function: checked values from planned expressions.
//!
//! DataFusion folds constants before, so `'a' || 'b'` and `1 + 2` arrive as literals. Anything else (a column, a `$1`
//! parameter, a subquery) is refused with a plan error that names the argument, the value and the function's signature.
//! NULL means the default for an optional argument and is refused for a required one.

use std::mem;

use datafusion::arrow::datatypes::DataType;
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::Expr;
use datafusion::scalar::ScalarValue;

use crate::errors::{closest, datafusion_error, shown};
use crate::planning::side_tables;
use crate::planning::signature::{Argument, ArgumentKind, Signature};
use tadoc::text::{Fold, Language, Synonyms};

/// Name of the argument that selects a version of a living corpus.
const VERSION: &str = "version";

/// Checked arguments of one call, by name.
#[derive(Debug, Clone)]
pub(crate) struct Arguments {
    signature: &'static Signature,
    values: Vec<Value>,
}

#[derive(Debug, Clone, PartialEq)]
enum Value {
    Default,
    Text(String),
    Integer(u64),
    Number(f64),
    Boolean(bool),
    /// A fold, and the name of its table of synonyms.
    Fold(Fold, Option<String>),
}

impl Arguments {
    /// Checks `exprs`, which are in the order of `signature`.
    ///
    /// # Errors
    /// A plan error that names the argument, its value and the signature.
    pub(crate) fn parse(signature: &'static Signature, exprs: &[Expr]) -> Result<Self> {
        if exprs.len() > signature.arguments.len() {
            let got = exprs.len();
            let most = signature.arguments.len();
            return Err(signature.error(format!("got {got} arguments, expected at most {most}")));
        }
        let value = |(i, argument): (usize, &Argument)| match exprs.get(i) {
            Some(expr) => parse_value(signature, argument, expr),
            None => missing(signature, argument),
        };
        let values = signature.arguments.iter().enumerate().map(value).collect::<Result<_>>()?;
        Ok(Self { signature, values })
    }

    /// Returns the signature of the function that was called.
    pub(crate) fn signature(&self) -> &'static Signature {
        self.signature
    }

    /// Parses arguments that a plan shows: names and values. Arguments that it does not show have their
    /// defaults. `first` is the value of the first argument. `synonyms` are those of the fold.
    ///
    /// # Errors
    /// A plan error that names the argument, its value and the signature.
    pub(crate) fn from_shown(
        signature: &'static Signature,
        shown: &[(&str, &str)],
        first: &str,
        synonyms: Option<(String, Vec<(String, String)>)>,
    ) -> Result<Self> {
        if let Some((name, _)) = shown.iter().find(|(name, _)| !signature.arguments.iter().any(|a| a.name == *name)) {
            return Err(signature.error(format!("unknown argument {name}")));
        }
        let of = |(at, argument): (usize, &Argument)| {
            let mut shown = shown.iter().filter(|(name, _)| *name == argument.name);
            match shown.next() {
                Some((_, value)) => literal(signature, argument, value),
                None if at == 0 && !first.is_empty() => literal(signature, argument, first),
                None => Ok(Expr::Literal(ScalarValue::Null, None)),
            }
        };
        let exprs = signature.arguments.iter().enumerate().map(of).collect::<Result<Vec<_>>>()?;
        let arguments = Self::parse(signature, &exprs)?;
        match (arguments.unread_synonyms(), synonyms) {
            (Some((fold, _)), Some((name, rows))) => {
                let synonyms = Synonyms::new(&name, fold, rows).map_err(datafusion_error)?;
                Ok(arguments.with_synonyms(synonyms))
            }
            (None, None) => Ok(arguments),
            _ => Err(signature.error("expected the rows of synonyms where the fold has them")),
        }
    }

    /// Returns the value of the argument `name`. Returns the default if the function has no such
    /// argument.
    fn value(&self, name: &str) -> &Value {
        let arguments = self.signature.arguments.iter();
        let mut named = arguments.zip(&self.values).filter(|(argument, _)| argument.name == name);
        named.next().map_or(&Value::Default, |(_, value)| value)
    }

    /// Returns the text of the argument `name`, or an empty text if it was omitted.
    pub(crate) fn text(&self, name: &str) -> &str {
        match self.value(name) {
            Value::Text(text) => text,
            _ => "",
        }
    }

    /// Returns the number of the argument `name`, if it was given.
    pub(crate) fn integer(&self, name: &str) -> Option<u64> {
        match self.value(name) {
            Value::Integer(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the argument `version`, if it was given.
    pub(crate) fn version(&self) -> Option<u64> {
        self.integer(VERSION)
    }

    /// Returns the floating-point number of the argument `name`, if it was given.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        match self.value(name) {
            Value::Number(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns the flag of the argument `name`, or false if it was omitted.
    pub(crate) fn boolean(&self, name: &str) -> bool {
        *self.value(name) == Value::Boolean(true)
    }

    /// Returns the fold of the argument `name`, or none if it was omitted. Its synonyms are missing
    /// before [`with_synonyms`](Self::with_synonyms).
    pub(crate) fn fold(&self, name: &str) -> Fold {
        match self.value(name) {
            Value::Fold(fold, _) => fold.clone(),
            _ => Fold::NONE,
        }
    }

    /// Returns the fold whose synonyms are to be read, and the name of their table.
    pub(crate) fn unread_synonyms(&self) -> Option<(&Fold, &str)> {
        self.values.iter().find_map(|value| match value {
            Value::Fold(fold, Some(table)) => Some((fold, table.as_str())),
            _ => None,
        })
    }

    /// Returns the same arguments with the synonyms that were read.
    pub(crate) fn with_synonyms(mut self, synonyms: Synonyms) -> Self {
        let unread = |value: &&mut Value| matches!(value, Value::Fold(_, Some(_)));
        if let Some(value) = self.values.iter_mut().find(unread)
            && let Value::Fold(fold, _) = value
        {
            *value = Value::Fold(mem::take(fold).with_synonyms(synonyms), None);
        }
        self
    }

    /// Returns the first argument as a plan shows it. This is the location if the function reads
    /// files.
    pub(crate) fn shown_first(&self) -> String {
        match self.values.first() {
            None | Some(Value::Default) => String::new(),
            Some(Value::Text(text)) => text.clone(),
            Some(Value::Integer(number)) => number.to_string(),
            Some(Value::Number(number)) => number.to_string(),
            Some(Value::Boolean(flag)) => flag.to_string(),
            Some(Value::Fold(fold, _)) => fold.to_string(),
        }
    }
}

/// Returns the literal that a plan shows as `value`.
fn literal(signature: &Signature, argument: &Argument, value: &str) -> Result<Expr> {
    let scalar = match argument.kind {
        ArgumentKind::Text | ArgumentKind::Fold | ArgumentKind::Condition => Some(ScalarValue::from(value)),
        ArgumentKind::Integer => value.parse().ok().map(|number: u64| ScalarValue::from(number)),
        ArgumentKind::Number => value.parse().ok().map(|number: f64| ScalarValue::from(number)),
        ArgumentKind::Boolean | ArgumentKind::CaseFold => value.parse().ok().map(|flag: bool| ScalarValue::from(flag)),
    };
    let name = argument.name;
    let kind = argument.kind;
    let scalar = scalar.ok_or_else(|| signature.error(format!("{name}: got {value}, expected {kind}")))?;
    Ok(Expr::Literal(scalar, None))
}

fn missing(signature: &Signature, argument: &Argument) -> Result<Value> {
    if argument.default.is_some() {
        return Ok(Value::Default);
    }
    Err(signature.error(format!("argument {} is missing, expected {}", argument.name, argument.kind)))
}

fn parse_value(signature: &Signature, argument: &Argument, expr: &Expr) -> Result<Value> {
    let refuse = |got: String| -> DataFusionError {
        signature.error(format!("{}: got {got}, expected {}", argument.name, argument.kind))
    };
    let literal = match expr {
        Expr::Literal(literal, _) => literal,
        Expr::Placeholder(parameter) => {
            let hint = "a constant, because table functions are planned before parameters are bound";
            return Err(signature.error(format!("{}: got parameter {}, expected {hint}", argument.name, parameter.id)));
        }
        Expr::Column(column) => return Err(refuse(format!("column {}", column.name))),
        other => {
            let other = other.to_string();
            return Err(refuse(format!("the expression {}, which is no constant", shown(&other))));
        }
    };
    if literal.is_null() {
        return match argument.default {
            Some(_) => Ok(Value::Default),
            None => Err(refuse("NULL".into())),
        };
    }
    let as_text = || match literal.try_as_str() {
        Some(Some(text)) => format!("'{}'", shown(text)),
        _ => shown(&literal.to_string()).into_owned(),
    };
    let value = match argument.kind {
        ArgumentKind::Text | ArgumentKind::Condition => match literal.try_as_str().flatten() {
            Some("") => {
                let fault = format!("{}: got '', expected text that is not empty", argument.name);
                return Err(signature.error(fault));
            }
            text => text.map(|text| Value::Text(text.to_owned())),
        },
        ArgumentKind::Integer => integer(literal).map(Value::Integer),
        ArgumentKind::Number => number(literal).map(Value::Number),
        ArgumentKind::Boolean => match literal {
            ScalarValue::Boolean(Some(flag)) => Some(Value::Boolean(*flag)),
            _ => None,
        },
        ArgumentKind::CaseFold => match (literal, literal.try_as_str().flatten()) {
            (ScalarValue::Boolean(Some(flag)), _) => Some(Value::Boolean(*flag)),
            (_, Some("case")) => Some(Value::Boolean(true)),
            _ => None,
        },
        ArgumentKind::Fold => match (literal, literal.try_as_str().flatten()) {
            (ScalarValue::Boolean(Some(true)), _) => Some(Value::Fold(Fold::CASE, None)),
            (ScalarValue::Boolean(Some(false)), _) => Some(Value::Fold(Fold::NONE, None)),
            (_, Some(text)) => {
                let (parts, table) = side_tables::split(text).map_err(|fault| signature.error(fault))?;
                let fold = parts.parse().map_err(|fault| signature.error(unknown_fold(fault)))?;
                Some(Value::Fold(fold, table))
            }
            _ => None,
        },
    };
    value.ok_or_else(|| refuse(as_text()))
}

/// Returns the message for a text that is no fold, with the closest text that is one.
fn unknown_fold(fault: tadoc::Error) -> String {
    let tadoc::Error::InvalidArgument { name, got, allowed } = fault else {
        return fault.to_string();
    };
    let close = closest_fold(got.trim_matches('\''));
    let hint = close.map(|close| format!("; did you mean '{close}'?")).unwrap_or_default();
    format!("{name}: got {}, expected {allowed}{hint}", shown(&got))
}

/// Returns the fold that `part` is close to. A stem is close by the name of its language.
fn closest_fold(part: &str) -> Option<String> {
    let stem = |language| Fold::with_stem(language).to_string();
    let languages = || Language::all().map(|language| language.to_string());
    if let Some(language) = part.strip_prefix("stem:") {
        let known: Vec<String> = languages().collect();
        return closest(language, known.iter().map(String::as_str)).map(|one| format!("stem:{one}"));
    }
    part.parse().ok().map(stem).or_else(|| {
        let others = ["true", "false", "none", "case", "accents"].map(str::to_owned);
        let known: Vec<String> = others.into_iter().chain(Language::all().map(stem)).collect();
        closest(part, known.iter().map(String::as_str)).map(str::to_owned)
    })
}

/// Returns the value of an integer literal, if it is 0 or more.
fn integer(literal: &ScalarValue) -> Option<u64> {
    let signed = match literal {
        ScalarValue::Int8(Some(v)) => i64::from(*v),
        ScalarValue::Int16(Some(v)) => i64::from(*v),
        ScalarValue::Int32(Some(v)) => i64::from(*v),
        ScalarValue::Int64(Some(v)) => *v,
        ScalarValue::UInt8(Some(v)) => i64::from(*v),
        ScalarValue::UInt16(Some(v)) => i64::from(*v),
        ScalarValue::UInt32(Some(v)) => i64::from(*v),
        ScalarValue::UInt64(Some(v)) => i64::try_from(*v).ok()?,
        _ => return None,
    };
    u64::try_from(signed).ok()
}

/// Returns the value of a number literal, if it is 0 or more.
fn number(literal: &ScalarValue) -> Option<f64> {
    let ScalarValue::Float64(number) = literal.cast_to(&DataType::Float64).ok()? else {
        return None;
    };
    number.filter(|number| literal.data_type().is_numeric() && *number >= 0.0 && number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::find_signature;
    use datafusion::prelude::lit;

    fn error(name: &str, exprs: &[Expr]) -> String {
        Arguments::parse(find_signature(name).unwrap(), exprs).unwrap_err().to_string()
    }

    #[test]
    fn values_come_back_by_name() {
        let signature = find_signature("search").unwrap();
        let arguments = Arguments::parse(signature, &[lit("c"), lit("w"), lit(3i64)]).unwrap();
        assert_eq!((arguments.text("corpus"), arguments.text("query")), ("c", "w"));
        assert_eq!(arguments.integer("doc_id"), Some(3));
        let null = lit(ScalarValue::Null);
        let arguments = Arguments::parse(signature, &[lit("c"), lit("w"), null]).unwrap();
        assert_eq!(arguments.integer("doc_id"), None);
        let signature = find_signature("ingestion_model").unwrap();
        let arguments = Arguments::parse(signature, &[lit(2.5)]).unwrap();
        assert_eq!((arguments.number("link_gb_per_s"), arguments.shown_first()), (Some(2.5), "2.5".to_owned()));
        assert_eq!(Arguments::parse(signature, &[lit(7i32)]).unwrap().number("link_gb_per_s"), Some(7.0));
    }

    #[test]
    fn folds_are_booleans_or_texts() {
        let signature = find_signature("word_count").unwrap();
        let fold = |value: Expr| Arguments::parse(signature, &[lit("c"), value]).unwrap().fold("fold").to_string();
        assert_eq!([fold(lit(true)), fold(lit(false))], ["case", "none"]);
        assert_eq!(fold(lit(ScalarValue::Null)), "none");
        assert_eq!(fold(lit("none")), "none");
        assert_eq!(fold(lit(ScalarValue::Utf8View(Some("accents,Case".into())))), "case,accents");
        assert_eq!(fold(lit("stem:German, accents")), "accents,stem:german");
        for (text, expected) in [
            ("yes", "fold: got 'yes', expected none, case, accents, stem:LANGUAGE, synonyms:TABLE"),
            ("", "fold: got '', expected none, case, accents"),
            ("case,synonyms:", "fold: got 'case,synonyms:', expected one synonyms:TABLE; usage"),
            ("accent", "; did you mean 'accents'?; usage: word_count("),
            ("case,stem:englsh", "got 'stem:englsh', expected stem:LANGUAGE with one of arabic, "),
            ("case,stem:englsh", "did you mean 'stem:english'?"),
            ("german", "did you mean 'stem:german'?"),
            ("stem:german,stem:dutch", "expected one stem; usage"),
        ] {
            let text = error("word_count", &[lit("c"), lit(text)]);
            assert!(text.contains(expected), "{text}");
        }
        let far = error("word_count", &[lit("c"), lit("stem:klingon")]);
        assert!(far.contains("got 'stem:klingon'") && !far.contains("did you mean"), "{far}");
    }

    #[test]
    fn refusals_name_argument_value_and_usage() {
        let usage = "usage: extract(corpus, doc_id, byte_offset, byte_len, version => NULL)";
        let text = error("extract", &[lit("c"), lit(0i64), lit(-1i64), lit(4i64)]);
        assert!(text.contains("byte_offset: got -1, expected a whole number, 0 or more"), "{text}");
        assert!(text.ends_with(usage), "{text}");
        assert!(error("extract", &[lit("c")]).contains("argument doc_id is missing"));
        assert!(error("documents", &[lit(1i64)]).contains("got 1, expected text"));
        assert!(error("documents", &[lit("")]).contains("got '', expected text"));
        assert!(error("documents", &[lit(ScalarValue::Null)]).contains("got NULL"));
        let four = [lit("a"), lit(1i64), lit("b"), lit(2i64)];
        assert!(error("documents", &four).contains("got 4 arguments"));
        assert!(error("word_count", &[lit("a"), lit(1i64)]).contains("got 1, expected true, false"));
        for other in [lit("fast"), lit(-1i64), lit(f64::NAN)] {
            let text = error("ingestion_model", &[other]);
            assert!(text.contains("expected a number, 0 or more"), "{text}");
        }
    }
}
