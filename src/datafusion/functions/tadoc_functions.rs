//! The function `tadoc_functions()`: every function of this crate, with its arguments, its columns
//! and an example.
//!
//! The rows are made from the signatures of the table functions and from the documentation of the
//! scalar functions. The examples are those of `sql/examples/reference.sql`, which a test runs. So no
//! function can be left out.

use std::sync::Arc;

use datafusion::arrow::array::ArrayRef;
use datafusion::error::Result;
use datafusion::logical_expr::Documentation;
use futures::FutureExt;
use futures::future::BoxFuture;

use super::strings::{list_array, views};
use super::{documented_scalars, signatures};
use crate::planning::function::{Definition, Reads, TableFunction};
use crate::planning::signature::{self, Argument, Column, ColumnKind, Signature};
use crate::planning::{Execution, no_column};

/// Statements of which each shows one function or more.
const EXAMPLES: &str = include_str!("../../../sql/examples/reference.sql");

/// The function `tadoc_functions` in SQL.
pub(super) static DEFINITION: Definition = Definition {
    signature: Signature {
        name: "tadoc_functions",
        arguments: &[],
        columns: &[
            signature::text("function", "its name"),
            signature::text("kind", "table or scalar"),
            signature::text("summary", "the answer in one line"),
            signature::text("signature", "how it is called"),
            signature::column("arguments", ColumnKind::TextList, "each argument, explained"),
            signature::column(
                "columns",
                ColumnKind::TextList,
                "each column with its type, explained; the type of the answer of a scalar",
            ),
            signature::text("example", "a statement with this function"),
        ],
        summary: "every function of this crate, with arguments, columns and an example",
    },
    bind: |_, _| Arc::new(TadocFunctions),
};

#[derive(Debug)]
struct TadocFunctions;

impl TableFunction for TadocFunctions {
    fn signature(&self) -> &'static Signature {
        &DEFINITION.signature
    }

    fn reads(&self) -> Reads {
        Reads::Nothing
    }

    fn run(self: Arc<Self>, mut run: Execution) -> BoxFuture<'static, Result<()>> {
        async move {
            let scalars = documented_scalars().map(|(answer, about)| Described::scalar(answer, about));
            let rows: Vec<Described> = signatures().map(Described::table).chain(scalars).collect();
            run.send_async(rows.len(), |name| column(name, &rows)).await.map(drop)
        }
        .boxed()
    }
}

/// A function as a row shows it.
struct Described {
    name: String,
    kind: &'static str,
    summary: String,
    signature: String,
    arguments: Vec<String>,
    columns: Vec<String>,
    example: String,
}

impl Described {
    fn table(signature: &'static Signature) -> Self {
        let argument = |argument: &Argument| match argument.default {
            None => format!("{}: {}", argument.name, argument.summary),
            Some(default) => format!("{} => {default}: {}", argument.name, argument.summary),
        };
        let column = |column: &Column| format!("{} {}: {}", column.name, column.kind.data_type(), column.summary);
        Self {
            name: signature.name.to_owned(),
            kind: "table",
            summary: signature.summary.to_owned(),
            signature: signature.to_string(),
            arguments: signature.arguments.iter().map(argument).collect(),
            columns: signature.columns.iter().map(column).collect(),
            example: example_of(signature.name),
        }
    }

    fn scalar(answer: String, about: &Documentation) -> Self {
        let usage = &about.syntax_example;
        let name = usage.split_once('(').map_or(usage.as_str(), |(name, _)| name);
        let arguments = about.arguments.iter().flatten();
        Self {
            name: name.to_owned(),
            kind: "scalar",
            summary: about.description.clone(),
            signature: usage.clone(),
            arguments: arguments.map(|(name, summary)| format!("{name}: {summary}")).collect(),
            columns: vec![answer],
            example: example_of(name),
        }
    }
}

/// Returns the first statement of the examples that calls the function `name`, on one line.
fn example_of(name: &str) -> String {
    let call = format!(" {name}(");
    let lines = EXAMPLES.lines().filter(|line| !line.starts_with("--"));
    let code: Vec<&str> = lines.map(str::trim).filter(|line| !line.is_empty()).collect();
    let code = code.join(" ");
    let example = code.split(';').find(|statement| statement.contains(&call));
    example.unwrap_or_default().trim().to_owned()
}

fn column(name: &str, rows: &[Described]) -> Result<ArrayRef> {
    let text = |of: fn(&Described) -> &str| -> Result<ArrayRef> { Ok(views(rows.iter().map(of))) };
    let list = |of: fn(&Described) -> &Vec<String>| -> Result<ArrayRef> {
        let texts: Vec<&str> = rows.iter().flat_map(of).map(String::as_str).collect();
        let ends = rows.iter().scan(0, |end, row| {
            *end += of(row).len();
            Some(*end)
        });
        Ok(Arc::new(list_array(views(texts.into_iter()), ends, None)?))
    };
    match name {
        "function" => text(|row| &row.name),
        "kind" => text(|row| row.kind),
        "summary" => text(|row| &row.summary),
        "signature" => text(|row| &row.signature),
        "arguments" => list(|row| &row.arguments),
        "columns" => list(|row| &row.columns),
        "example" => text(|row| &row.example),
        other => no_column(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_function_has_an_example_that_calls_it() {
        let names = signatures().map(|signature| signature.name.to_owned());
        let scalars = documented_scalars().map(|(answer, about)| Described::scalar(answer, about).name);
        for name in names.chain(scalars) {
            let example = example_of(&name);
            assert!(example.starts_with("SELECT") && !example.contains('\n'), "{name}: {example}");
        }
    }
}
