//! Notices: what a statement does that its author may not have meant.
//!
//! A notice is no error: the statement is valid and has its rows. Each door of the session shows notices in
//! its own way. They follow from the planned statement alone, so no state is shared between statements.

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::datasource::DefaultTableSource;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::errors::shown;
use crate::functions::takes_query;
use crate::planning::TadocTable;
use tadoc::query::{Query, QueryLimits};
use tadoc::text::TokenizerProfile;

/// Returns the notices about a planned statement, each once, in order of its parts: words of queries that
/// would be operators in capitals.
///
/// ```
/// # use datafusion::prelude::SessionContext;
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// datafusion_tadoc::register_all(&ctx)?;
/// let plan = ctx.state().create_logical_plan("SELECT matches('my heart', 'heart or soul')").await?;
/// let notices = datafusion_tadoc::notices(&plan);
/// assert!(notices[0].starts_with("the query `heart or soul` asks for the word `or`, too;"));
/// # Ok(())
/// # }
/// ```
pub fn notices(plan: &LogicalPlan) -> Vec<String> {
    let mut queries = Vec::new();
    let visited = plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node
            && let Some(source) = scan.source.downcast_ref::<DefaultTableSource>()
            && let Some(table) = source.table_provider.downcast_ref::<TadocTable>()
        {
            queries.extend(table.query());
        }
        node.apply_expressions(|expr| expr.apply(|expr| note_query(expr, &mut queries)))
    });
    // The visitor has no errors of its own.
    drop(visited);
    let mut notices = Vec::new();
    for query in queries {
        let notice = small_operators(&query);
        notices.extend(notice.filter(|notice| !notices.contains(notice)));
    }
    notices
}

/// Adds the query of `expr`, if that is a call of a function of rows with a constant query.
fn note_query(expr: &Expr, queries: &mut Vec<String>) -> Result<TreeNodeRecursion> {
    if let Expr::ScalarFunction(call) = expr
        && takes_query(call.func.name())
        && let Some(Expr::Literal(query, _)) = call.args.get(1).map(without_casts)
        && let Some(Some(query)) = query.try_as_str()
    {
        queries.push(query.to_owned());
    }
    Ok(TreeNodeRecursion::Continue)
}

fn without_casts(mut expr: &Expr) -> &Expr {
    loop {
        expr = match expr {
            Expr::Cast(cast) => cast.expr.as_ref(),
            Expr::Alias(alias) => alias.expr.as_ref(),
            other => return other,
        };
    }
}

/// Returns the notice about words of `query` that would be operators in capitals. The profile of the corpus
/// has no influence on these.
fn small_operators(query: &str) -> Option<String> {
    let limits = QueryLimits::default();
    // A query that cannot be parsed is an error of its own.
    let words = Query::small_operators(TokenizerProfile::default(), query, &limits).ok()?;
    let first = words.first()?;
    let capitals: Vec<String> = words.iter().map(|word| operator(word)).collect();
    let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
    let (operators, are) = match words.len() {
        1 => ("the operator", "word"),
        _ => ("operators", "words"),
    };
    Some(format!(
        "the query `{}` asks for the {are} {}, too; write {} for {operators}, or \"{first}\" in quotes for the word",
        shown(query),
        quoted.join(" and "),
        capitals.join(" and ")
    ))
}

/// Returns the operator that `word` would be in capitals.
fn operator(word: &str) -> String {
    match word.to_ascii_uppercase() {
        near if near == "NEAR" => "NEAR(a b, 10)".to_owned(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_names_the_words_and_what_to_write() {
        assert_eq!(
            small_operators("heart or soul").unwrap(),
            "the query `heart or soul` asks for the word `or`, too; write OR for the operator, or \"or\" in \
             quotes for the word"
        );
        let several = small_operators("a near b And c").unwrap();
        assert!(several.contains("the words `near` and `And`, too; write NEAR(a b, 10) and AND"));
        assert_eq!(small_operators("heart OR soul"), None);
        assert_eq!(small_operators("heart or \"soul"), None);
    }
}
