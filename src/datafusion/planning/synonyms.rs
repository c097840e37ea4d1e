//! Synonyms of a fold: `fold => 'case,synonyms:TABLE'`, a table of two columns.
//!
//! ```text
//! CREATE TABLE cars AS VALUES ('automobile', 'car'), ('cab', 'taxi')        word, and what it counts as
//! search('notes.tadoc', 'car', fold => 'case,synonyms:cars')
//! ```
//!
//! The table is any table or view of the session. Each scan reads it, because it may change between
//! two statements. It has at most [`MAX_ROWS`] rows; rows with NULL are left out.

use std::sync::Arc;

use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::physical_plan::collect;

use crate::errors::datafusion_error;
use tadoc::text::{Fold, Synonyms};

/// Maximum number of rows of a table of synonyms.
const MAX_ROWS: usize = 1 << 20;
const PREFIX: &str = "synonyms:";
/// The table that is expected, for messages.
pub(super) const EXPECTED: &str = "a table of two columns of text: a word, and the word that it counts as";

/// Splits the text of a fold into the parts that need no table, and the name of the table.
///
/// # Errors
/// A message if there are several tables, or if the name is missing.
pub(super) fn split(text: &str) -> std::result::Result<(String, Option<String>), String> {
    let table_of = |part: &str| {
        let prefix = part.get(..PREFIX.len())?;
        prefix.eq_ignore_ascii_case(PREFIX).then(|| part[PREFIX.len()..].trim().to_owned())
    };
    let (mut tables, mut parts) = (Vec::new(), Vec::new());
    for part in text.split(',') {
        match table_of(part.trim()) {
            Some(table) => tables.push(table),
            None => parts.push(part),
        }
    }
    match tables.as_slice() {
        [] => Ok((text.to_owned(), None)),
        [table] if !table.is_empty() => {
            let parts = if parts.is_empty() { Fold::NONE.to_string() } else { parts.join(",") };
            Ok((parts, Some(table.clone())))
        }
        _ => Err(format!("fold: got '{text}', expected one synonyms:TABLE")),
    }
}

/// Reads the synonyms of words after `fold` from the table `name`.
///
/// # Errors
/// A plan error if its rows are not words and meanings; the errors of the table.
pub(super) async fn read(
    session: &dyn Session,
    table: &Arc<dyn TableProvider>,
    name: &str,
    fold: &Fold,
) -> Result<Synonyms> {
    let num_columns = table.schema().fields().len();
    if num_columns != 2 {
        return plan_err!("fold: table {name} has {num_columns} columns, expected {EXPECTED}");
    }
    let plan = table.scan(session, None, &[], Some(MAX_ROWS + 1)).await?;
    let mut rows = Vec::new();
    for batch in collect(plan, session.task_ctx()).await? {
        let [words, meanings] = [0, 1].map(|column| cast(batch.column(column), &DataType::Utf8View));
        let (words, meanings) = (words?, meanings?);
        let pairs = words.as_string_view().iter().zip(meanings.as_string_view());
        rows.extend(pairs.filter_map(|(word, meaning)| Some((word?.to_owned(), meaning?.to_owned()))));
        if rows.len() > MAX_ROWS {
            return plan_err!("fold: table {name} has more than {MAX_ROWS} rows of synonyms");
        }
    }
    Synonyms::new(name, fold, rows).map_err(datafusion_error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tables_are_split_off() {
        for (text, parts, table) in [
            ("case", "case", None),
            ("synonyms:cars", "none", Some("cars")),
            ("case, Synonyms: s.Cars ,accents", "case,accents", Some("s.Cars")),
            ("none,synonyms:t", "none", Some("t")),
            ("", "", None),
        ] {
            assert_eq!(split(text).unwrap(), (parts.to_owned(), table.map(str::to_owned)));
        }
        for text in ["synonyms:", "synonyms:a,synonyms:b", "case,synonyms: "] {
            assert!(split(text).unwrap_err().contains("expected one synonyms:TABLE"), "{text}");
        }
    }
}
