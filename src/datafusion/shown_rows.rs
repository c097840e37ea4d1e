//! Rows of statements as texts, for tests.

use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;

/// Returns each row of `sql` as its values with blanks between them. NULL and the empty text are left out.
pub(crate) async fn shown_rows(ctx: &SessionContext, sql: &str) -> Vec<String> {
    let rows = ctx.sql(sql).await.unwrap().collect().await.unwrap();
    let table = pretty_format_batches(&rows).unwrap().to_string();
    let lines = table.lines().skip(3).filter(|line| line.starts_with('|'));
    let values = lines.map(|line| line.split('|').map(str::trim).filter(|value| !value.is_empty()));
    values.map(|values| values.collect::<Vec<_>>().join(" ")).collect()
}
