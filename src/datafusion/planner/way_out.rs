//! Hints for names that nobody knows and for errors that DataFusion explains only in its own terms, and notices:
//! what a statement does that its author may not have meant.
//!
//! DataFusion does not know that a name is a table function of this crate, that user columns of a corpus
//! belong to a table, or which type of files a name was meant for ([`way_out`]). It says only that it has no
//! table `datafusion.public.NAME`, where a name can also be a file: [`explain_missing_table`] says what was
//! looked for, and lists similar names; in safe mode it tells nothing about files. [`MisspelledFunctions`] is
//! the last planner of a session, so it sees only the calls that no other planner handled.
//!
//! A notice is no error: the statement is valid and has its rows. Each door of the session shows notices in its own
//! way. They follow from the planned statement alone, so no state is shared between statements.

use std::collections::BTreeSet;
use std::path::Path;

use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::common::{plan_datafusion_err, plan_err};
use datafusion::datasource::DefaultTableSource;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::SessionState;
use datafusion::logical_expr::planner::{RelationPlanner, RelationPlannerContext, RelationPlanning};
use datafusion::logical_expr::sqlparser::ast::{Ident, ObjectName, TableFactor};
use datafusion::logical_expr::{Expr, LogicalPlan};

use crate::errors::{closest, did_you_mean, files_beside, shown};
use crate::functions::{find_signature, signatures, takes_query};
use crate::planning::TadocTable;
use crate::safety::sandbox_of;
use tadoc::query::{Query, QueryLimits};
use tadoc::text::TokenizerProfile;

/// Types of files that `STORED AS` takes.
const FILE_TYPES: [&str; 9] = ["tadoc", "gsst", "parquet", "csv", "tsv", "json", "jsonl", "ndjson", "arrow"];

/// Returns a hint for a DataFusion error with this `text`, if it is about table functions, columns of
/// corpora or types of files.
///
/// ```
/// use datafusion_tadoc::way_out;
///
/// let hint = way_out("Invalid function 'word_count'. Did you mean 'regr_count'?");
/// assert!(hint.unwrap().contains("write SELECT … FROM word_count(…)"));
/// ```
pub fn way_out(text: &str) -> Option<String> {
    if let Some((_, rest)) = text.split_once("Invalid function '") {
        let (name, _) = rest.split_once('\'')?;
        let name = find_signature(name)?.name;
        let for_rows = match name {
            "extract" => ", or extract_text(corpus, doc_id, byte_offset, byte_len) for a passage of each row",
            _ => "",
        };
        return Some(format!("{name} is a table function: write SELECT … FROM {name}(…){for_rows}"));
    }
    if let Some(name) = missing_type(text) {
        let meant = closest(name, FILE_TYPES.iter().copied()).map(str::to_uppercase);
        let meant = meant.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
        let all = FILE_TYPES.map(str::to_uppercase).join(", ");
        return Some(format!("{meant}STORED AS takes {all}"));
    }
    if text.contains("Expected JSON record to be an object") {
        return Some(
            "a file of JSON has an object on each line; for an array of objects write CREATE EXTERNAL TABLE t \
             STORED AS JSON LOCATION '…' OPTIONS ('format.newline_delimited' 'false'), and for other values \
             read_lines('…'), which takes lines as text"
                .to_owned(),
        );
    }
    if text.contains("Missing required parameter '") {
        return Some(
            "a function of rows takes its arguments in order, and those in front of a named one must be given, \
             too; `SELECT * FROM tadoc_functions()` lists them"
                .to_owned(),
        );
    }
    if let Some(name) = missing_table(text).filter(|name| name.contains(['/', '*'])) {
        return Some(format!(
            "a path is no table: documents('{name}') reads corpora, read_text('{name}') plain files, such as \
             'src/**'"
        ));
    }
    way_to_column(text).map(str::to_owned)
}

/// Returns a hint for a column that DataFusion did not find, or found twice, where it may be one of documents.
fn way_to_column(text: &str) -> Option<&'static str> {
    let is_of_documents = ["path", "corpus", "doc_id"].iter().any(|name| text.contains(&format!(" field {name}")));
    if text.contains("Ambiguous reference to unqualified field") && is_of_documents {
        return Some(
            "name its table, or join tables of documents by all columns that they share: USING (doc_id, path)",
        );
    }
    if !text.contains("No field named") {
        return None;
    }
    // Only for documents without user columns in their schema.
    if text.trim_end_matches('.').ends_with(".content") {
        return Some(
            "columns that came with the documents are those of a table, and of a location in quotes: FROM \
             'notes.tadoc' instead of FROM documents('notes.tadoc')",
        );
    }
    let has_documents = text.contains(".doc_id") && !text.contains(".content");
    has_documents.then_some(
        "columns that came with the documents are joined by number: FROM kwic('notes.tadoc', 'storm') AS k JOIN \
         'notes.tadoc' AS d USING (doc_id)",
    )
}

/// Returns the name of the table that DataFusion did not find, without catalog and schema.
fn missing_table(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("table '")?;
    let (name, _) = rest.split_once("' not found")?;
    // A path may have dots.
    name.splitn(3, '.').last()
}

/// Returns the type of files that a session does not know.
fn missing_type(text: &str) -> Option<&str> {
    let in_tables = text.split_once("Unable to find factory for ");
    let in_copies = || text.split_once("There is no registered file format with ext ");
    let (_, rest) = in_tables.or_else(in_copies)?;
    rest.split_whitespace().next()
}

/// Most tables that an error lists if no name is similar.
const MAX_TABLES: usize = 8;

/// Returns `error`, or one that says more if a statement names a table that is not there.
///
/// ```
/// # use datafusion::prelude::SessionContext;
/// # #[tokio::main]
/// # async fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// datafusion_tadoc::register_all(&ctx)?;
/// ctx.sql("CREATE TABLE letters AS SELECT 1 AS n").await?;
/// let error = ctx.sql("SELECT * FROM leters").await.unwrap_err();
/// let error = datafusion_tadoc::explain_missing_table(&ctx.state(), error).to_string();
/// assert!(error.contains("there is no table leters, and no file of this name; did you mean letters?"));
/// # Ok(())
/// # }
/// ```
pub fn explain_missing_table(state: &SessionState, error: DataFusionError) -> DataFusionError {
    let DataFusionError::Plan(text) = error.find_root() else { return error };
    let Some(full) = text.strip_prefix("table '").and_then(|rest| rest.strip_suffix("' not found")) else {
        return error;
    };
    let catalog = &state.config_options().catalog;
    let name = full.strip_prefix(&format!("{}.", catalog.default_catalog)).unwrap_or(full);
    let name = name.strip_prefix(&format!("{}.", catalog.default_schema)).unwrap_or(name);
    let is_safe = sandbox_of(state.runtime_env()).is_some();
    let known = Known { tables: table_names(state), has_files: !is_safe };
    plan_datafusion_err!("{}", known.text(name))
}

/// The names that a statement can use.
struct Known {
    tables: BTreeSet<String>,
    /// True if files may be looked for.
    has_files: bool,
}

impl Known {
    /// Returns the error for `name`.
    fn text(&self, name: &str) -> String {
        let short = shown(name);
        let is_file = self.has_files && Path::new(name).exists();
        if is_file && !name.contains('/') && name.ends_with(".tadoc") {
            return format!("there is no table {short}; for the file of this name write '{short}' in quotes");
        }
        if is_file {
            return format!(
                "{short} is no table, and no file that FROM reads by its name; read_text('{short}') reads plain \
                 files, documents('{short}') corpora, and CREATE EXTERNAL TABLE … STORED AS takes the format of \
                 a file"
            );
        }
        let way_out = self.way_out(name);
        if self.has_files {
            format!("there is no table {short}, and no file of this name{way_out}")
        } else {
            format!("there is no table {short}{way_out}")
        }
    }

    /// Returns the similar names, or the tables that there are.
    fn way_out(&self, name: &str) -> String {
        if name.contains('*') {
            return format!(
                "; a pattern is no table: documents('{name}') reads corpora, read_text('{name}') plain files, \
                 such as 'src/**'"
            );
        }
        let mut all = self.tables.clone();
        if self.has_files {
            all.extend(files_beside(name));
        }
        if let Some(meant) = did_you_mean(name, all) {
            return format!("; {meant}");
        }
        let mut tables: Vec<&str> = self.tables.iter().map(String::as_str).collect();
        if tables.is_empty() {
            return String::new();
        }
        let more = if tables.len() > MAX_TABLES { " …" } else { "" };
        tables.truncate(MAX_TABLES);
        format!("; the tables are {}{more}", tables.join(", "))
    }
}

/// Returns the names of the tables of the default schema, without those that a program made for itself.
fn table_names(state: &SessionState) -> BTreeSet<String> {
    let defaults = &state.config_options().catalog;
    let catalog = state.catalog_list().catalog(&defaults.default_catalog);
    let schema = catalog.and_then(|catalog| catalog.schema(&defaults.default_schema));
    let names = schema.map(|schema| schema.table_names()).unwrap_or_default();
    let is_made = |name: &String| {
        let digits = name.rsplit_once('_').map(|(_, digits)| digits);
        digits.is_some_and(|digits| digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
    };
    names.into_iter().filter(|name| !is_made(name)).collect()
}

/// Names that other engines and tools of corpora give to functions of this crate.
const OTHER_NAMES: [(&str, &str); 10] = [
    ("bm25", "rank"),
    ("match_bm25", "rank"),
    ("fts", "search"),
    ("concordance", "kwic"),
    ("ngrams", "sequence_count"),
    ("frequency", "word_count"),
    ("keywords", "keyness"),
    ("dedup", "near_duplicates"),
    ("connected_components", "near_duplicate_clusters"),
    ("minhash", "near_duplicates"),
];

/// Planner that suggests names of functions; see the module's description.
#[derive(Debug)]
pub(crate) struct MisspelledFunctions;

impl RelationPlanner for MisspelledFunctions {
    fn plan_relation(
        &self,
        relation: TableFactor,
        context: &mut dyn RelationPlannerContext,
    ) -> Result<RelationPlanning> {
        if let TableFactor::Table { name, args: Some(_), .. } | TableFactor::Function { name, .. } = &relation
            && let Some(name) = last_name(name)
            && is_unknown(&name.value, context)
        {
            if let Some(usage) = usage_in_rows(context.normalize_ident(name.clone()), context) {
                return plan_err!("{name} is no table function, it answers for each row: write SELECT {usage} FROM …");
            }
            if let Some(meant) = meant_by(&name.value)
                && let Some(signature) = find_signature(meant)
            {
                return plan_err!("there is no table function {name}; did you mean {meant}? usage: {signature}");
            }
        }
        Ok(RelationPlanning::Original(Box::new(relation)))
    }
}

/// Returns the table function of this crate that `name` may stand for.
fn meant_by(name: &str) -> Option<&'static str> {
    let other = OTHER_NAMES.iter().find(|(other, _)| name.eq_ignore_ascii_case(other));
    let names = signatures().map(|signature| signature.name);
    other.map(|&(_, meant)| meant).or_else(|| closest(name, names))
}

fn last_name(name: &ObjectName) -> Option<Ident> {
    name.0.last()?.as_ident().cloned()
}

/// Returns the usage of the scalar, aggregate or window function `name`, if there is one.
fn usage_in_rows(name: String, context: &dyn RelationPlannerContext) -> Option<String> {
    let functions = context.context_provider();
    let about = match functions.get_function_meta(&name) {
        Some(scalar) => scalar.documentation().cloned(),
        None => match functions.get_aggregate_meta(&name) {
            Some(aggregate) => aggregate.documentation().cloned(),
            None => functions.get_window_meta(&name)?.documentation().cloned(),
        },
    };
    Some(about.map_or_else(|| format!("{name}(…)"), |about| about.syntax_example))
}

/// Returns true if the session has no table function `name`. DataFusion looks for the function
/// before it looks at the arguments.
fn is_unknown(name: &str, context: &dyn RelationPlannerContext) -> bool {
    let found = context.context_provider().get_table_function_source(name, Vec::new());
    let expected = format!("table function '{name}' not found");
    matches!(found, Err(DataFusionError::Plan(text)) if text == expected)
}

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
    use std::fs;

    use super::*;

    #[test]
    fn paths_and_missing_arguments_have_a_way_out() {
        let hint = way_out("Error during planning: table 'datafusion.public.src/a.b/' not found");
        assert!(hint.unwrap().contains("read_text('src/a.b/')"));
        assert_eq!(way_out("Error during planning: table 'datafusion.public.notes' not found"), None);
        let hint = way_out("Execution error: Unable to find factory for TADC");
        assert!(hint.unwrap().starts_with("did you mean TADOC? STORED AS takes TADOC, GSST,"));
        let hint = way_out("There is no registered file format with ext xyz");
        assert!(hint.unwrap().starts_with("STORED AS takes TADOC"));
        let hint = way_out("Json error: Expected JSON record to be an object, found Array [Number(1)]");
        assert!(hint.unwrap().contains("'format.newline_delimited' 'false'"));
        let hint = way_out("Error during planning: Missing required parameter 'open'");
        assert!(hint.unwrap().contains("in order"));
    }

    #[test]
    fn similar_names_are_listed_and_else_the_tables() {
        let tables = ["letters", "news"].map(str::to_owned).into();
        let known = Known { tables, has_files: false };
        assert_eq!(known.text("leters"), "there is no table leters; did you mean letters?");
        assert_eq!(known.text("zebras_of_1990"), "there is no table zebras_of_1990; the tables are letters, news");
        let none = Known { tables: BTreeSet::new(), has_files: true };
        let text = none.text("no/such/folder/x.tadoc");
        assert_eq!(text, "there is no table no/such/folder/x.tadoc, and no file of this name");
        assert!(none.text("src/*.rs").contains("read_text('src/*.rs')"));
    }

    #[test]
    fn files_are_found_and_in_safe_mode_not() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).display().to_string();
        fs::write(path("notes.csv"), "a").unwrap();
        let open = Known { tables: BTreeSet::new(), has_files: true };
        assert!(open.text(&path("notse.csv")).ends_with(&format!("did you mean {}?", path("notes.csv"))));
        assert!(open.text(&path("notes.csv")).contains("no file that FROM reads by its name"));
        let safe = Known { tables: BTreeSet::new(), has_files: false };
        assert_eq!(safe.text(&path("notes.csv")), format!("there is no table {}", path("notes.csv")));
    }

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
