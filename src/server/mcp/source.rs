//! Statements of tools: a text of ours with the texts of a client as parameters.
//!
//! ```text
//! grep($1, $2) + ["notes", "power loss"] ─▶ statements ─▶ rows
//! ```

use std::sync::Arc;

use uuid::Uuid;

use crate::connections::InUse;
use crate::refusal::{Kind, Refusal};
use crate::statements::{Rows, Statements, Text};
use crate::wire::Given;

/// A statement, and the texts of its parameters `$1`, `$2` and so on.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    /// One statement.
    pub sql: String,
    /// A text for each parameter.
    pub texts: Vec<String>,
}

/// The corpora that tools ask.
pub struct Source {
    statements: Arc<Statements>,
    names: Vec<String>,
}

impl Source {
    /// Creates the source of `statements`, whose session has a table for each of `names`.
    pub fn new(statements: Arc<Statements>, names: Vec<String>) -> Self {
        Self { statements, names }
    }

    /// Returns the names of the corpora, at least one.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the corpus `asked`, or the only one if a client names none.
    ///
    /// # Errors
    /// There is no such corpus, or there are several and none is named.
    pub fn corpus(&self, asked: Option<&str>) -> Result<&str, Refusal> {
        let found = match (asked, self.names.as_slice()) {
            (None, [only]) => Some(only),
            (None, _) => None,
            (Some(asked), names) => names.iter().find(|name| *name == asked),
        };
        found.map(String::as_str).ok_or_else(|| {
            let got = asked.map_or_else(|| "nothing".to_owned(), |asked| format!("`{asked}`"));
            let text = format!("corpus: got {got}, expected one of: {}", self.names.join(", "));
            Refusal::new(Kind::Invalid, text)
        })
    }

    /// Starts `statement`.
    ///
    /// # Errors
    /// It is refused, or it fails before its first row.
    pub async fn run(&self, statement: Statement) -> Result<Rows, Refusal> {
        let parameters = Given::from_texts(&statement.texts)?;
        let text = Text { id: Uuid::new_v4(), sql: statement.sql, parameters };
        self.statements.run(text, InUse::without_place()).await
    }
}
