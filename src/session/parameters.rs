//! Parameters of statements, and statements that are prepared.
//!
//! ```text
//! SELECT * FROM kwic($1, :query) ─parse─▶ kwic(Placeholder, Placeholder) ─replace─▶ kwic('a', 'b')
//!
//! PREPARE s AS SELECT … FROM search('c', $1)   not planned: kept as it was parsed
//! EXECUTE s('storm')                           ─▶ SELECT … FROM search('c', 'storm')
//! ```
//!
//! Literals take the place of placeholders in the parsed statement. Values never become part of the text, so no
//! value can change a statement. DataFusion plans table functions from literals, so parameters have to be literals
//! before planning.
//!
//! DataFusion plans a statement when it is prepared, and the literals of its table functions are not there yet. So
//! a statement with parameters that DataFusion cannot plan is kept here, and each `EXECUTE` plans it with its
//! values. All others are DataFusion's own.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;
use std::sync::{Mutex, MutexGuard, PoisonError};

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{self, Expr, Value, VisitMut, visit_expressions_mut};

use crate::failure::{Failure, Outcome};

/// The literals of the parameters of statements, by name: `1` for `$1`, `word` for `$word`.
#[derive(Debug, Default)]
pub struct Parameters {
    literals: BTreeMap<String, Expr>,
    used: BTreeSet<String>,
    /// Number of `?` that were replaced.
    num_anonymous: usize,
}

impl Parameters {
    /// Creates parameters from literals by name.
    pub fn new(literals: BTreeMap<String, Expr>) -> Self {
        Self { literals, ..Self::default() }
    }

    /// Replaces the placeholders of `statement`. Those of `PREPARE` stay, as `EXECUTE` gives their values.
    ///
    /// # Errors
    /// A placeholder has no value.
    pub fn replace(&mut self, statement: &mut Statement) -> Outcome {
        if let Statement::Statement(plain) = statement
            && matches!(plain.as_ref(), ast::Statement::Prepare { .. })
        {
            return Ok(());
        }
        visit_placeholders(statement, &mut |name| self.literal_of(name).map(Some))
    }

    /// Checks that all values were used.
    ///
    /// # Errors
    /// A value belongs to no placeholder.
    pub fn finish(self) -> Outcome {
        match self.literals.keys().find(|name| !self.used.contains(*name)) {
            None => Ok(()),
            Some(name) => {
                Err(Failure::new(format!("the statement has no parameter ${name}; it uses: {}", listed(&self.used))))
            }
        }
    }

    fn literal_of(&mut self, placeholder: &str) -> Outcome<Expr> {
        let name = match placeholder {
            "?" => {
                self.num_anonymous += 1;
                self.num_anonymous.to_string()
            }
            _ => plain_name(placeholder).to_owned(),
        };
        let found = self.literals.get(&name).cloned();
        let literal = found.ok_or_else(|| {
            let given = self.literals.keys().cloned().collect();
            Failure::new(format!("no value for the parameter {placeholder}; given: {}", listed(&given)))
        })?;
        self.used.insert(name);
        Ok(literal)
    }
}

/// Returns the names of the parameters of `statement`, in the order in which values are bound: by
/// number if all are numbers, else by place. The nth `?` has the name `n`.
pub fn parameter_names(statement: &mut Statement) -> Vec<String> {
    let mut names = Vec::new();
    let mut num_anonymous = 0;
    // Collecting cannot fail.
    let _ = visit_placeholders(statement, &mut |placeholder| {
        let name = match placeholder {
            "?" => {
                num_anonymous += 1;
                num_anonymous.to_string()
            }
            _ => plain_name(placeholder).to_owned(),
        };
        if !names.contains(&name) {
            names.push(name);
        }
        Ok(None)
    });
    if names.iter().all(|name| name.parse::<u64>().is_ok()) {
        names.sort_by_key(|name| name.parse::<u64>().unwrap_or(u64::MAX));
    }
    names
}

fn plain_name(placeholder: &str) -> &str {
    placeholder.trim_start_matches(['$', ':', '@'])
}

/// Calls `literal` for each placeholder of `statement` and puts what it returns in its place.
fn visit_placeholders(statement: &mut Statement, literal: &mut dyn FnMut(&str) -> Outcome<Option<Expr>>) -> Outcome {
    match statement {
        Statement::Statement(statement) => visit_node(statement.as_mut(), literal),
        Statement::Explain(explain) => visit_placeholders(&mut explain.statement, literal),
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => visit_node(query.as_mut(), literal),
            CopyToSource::Relation(_) => Ok(()),
        },
        Statement::CreateExternalTable(_) | Statement::Reset(_) => Ok(()),
    }
}

fn visit_node(node: &mut impl VisitMut, literal: &mut dyn FnMut(&str) -> Outcome<Option<Expr>>) -> Outcome {
    let visited = visit_expressions_mut(node, |expression| {
        let Expr::Value(value) = &*expression else { return ControlFlow::Continue(()) };
        let Value::Placeholder(placeholder) = &value.value else {
            return ControlFlow::Continue(());
        };
        match literal(placeholder) {
            Ok(Some(literal)) => *expression = literal,
            Ok(None) => {}
            Err(failure) => return ControlFlow::Break(failure),
        }
        ControlFlow::Continue(())
    });
    match visited {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(failure) => Err(failure),
    }
}

fn listed(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        "none".to_owned()
    } else {
        names.iter().map(|name| format!("${name}")).collect::<Vec<_>>().join(", ")
    }
}

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
    /// Returns the statements that are not planned, by name.
    pub fn statements(&self) -> MutexGuard<'_, HashMap<String, Statement>> {
        self.statements.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the declared types of the parameters of `name`. A statement of this name may stay if it cannot be
    /// prepared anew, so decimals stay decimals.
    pub fn declare(&self, name: &str, types: &[ast::DataType]) {
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
    pub fn are_decimals(&self, name: &ast::ObjectName) -> Vec<bool> {
        let decimals = self.decimals.lock().unwrap_or_else(PoisonError::into_inner);
        let last = name.0.last().and_then(ast::ObjectNamePart::as_ident);
        let known = last.and_then(|name| decimals.get(&name.value.to_ascii_lowercase()));
        known.cloned().unwrap_or_default()
    }
}
