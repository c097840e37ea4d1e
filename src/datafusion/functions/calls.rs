//! Calls of table functions from Rust, without SQL text.
//!
//! ```text
//! word_count(&ctx, "c.tadoc").with("fold", true).await  ─▶  DataFrame of word_count('c.tadoc', fold => true)
//! ```
//!
//! Each table function has a call of its name. It takes the required arguments, and [`Call::with`] the others by
//! their names. The session has to know the functions ([`register_all`](crate::register_all)). A corpus is named as
//! in SQL: a file, a living corpus, a folder, a glob, a URL or a table.
//!
//! ```
//! use datafusion::prelude::*;
//! use datafusion_tadoc::functions::{search, word_count};
//!
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let file = dir.path().join("plays.tadoc").display().to_string();
//! let ctx = SessionContext::new();
//! datafusion_tadoc::register_all(&ctx)?;
//! # let copy = format!("COPY (SELECT 'a.txt' AS path, 'To be or not to be' AS text) TO '{file}'");
//! # ctx.sql(&copy).await?.collect().await?;
//! let words = word_count(&ctx, &file).with("fold", true).await?;
//! let frequent = words.filter(col("count").gt(lit(1)))?.sort(vec![col("word").sort(true, false)])?;
//! assert!(frequent.to_string().await?.contains("| to   | 2     |"));
//! assert_eq!(search(&ctx, &file, "be").await?.count().await?, 2);
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::future::{Ready, ready};
use std::sync::Arc;

use datafusion::catalog::TableFunctionArgs;
use datafusion::common::{TableReference, plan_err};
use datafusion::dataframe::DataFrame;
use datafusion::datasource::provider_as_source;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, LogicalPlan, LogicalPlanBuilder, TableSource};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;

use super::find_signature;
use crate::errors::mask_secrets;
use crate::planning::signature::Signature;

/// A call of a table function. Awaited, it is a `DataFrame` with the columns of the function.
#[derive(Clone)]
#[must_use = "a call is made when it is awaited"]
pub struct Call {
    ctx: SessionContext,
    function: &'static str,
    required: Vec<ScalarValue>,
    named: Vec<(String, ScalarValue)>,
}

impl Call {
    fn new<const N: usize>(ctx: &SessionContext, function: &'static str, required: [ScalarValue; N]) -> Self {
        Self { ctx: ctx.clone(), function, required: required.into(), named: Vec::new() }
    }

    /// Sets the argument `name`, as `name => value` does in SQL.
    pub fn with(mut self, name: &str, value: impl Into<ScalarValue>) -> Self {
        self.named.push((name.to_owned(), value.into()));
        self
    }

    /// Plans the call.
    ///
    /// # Errors
    /// A plan error that names the argument and the signature; an error if the session does not know the function.
    pub fn data_frame(&self) -> Result<DataFrame> {
        let state = self.ctx.state();
        let (Some(signature), Some(function)) =
            (find_signature(self.function), state.table_functions().get(self.function))
        else {
            return plan_err!(
                "the session has no table function {}; call datafusion_tadoc::register_all first",
                self.function
            );
        };
        let exprs = self.exprs(signature)?;
        let provider = function.create_table_provider_with_args(TableFunctionArgs::new(&exprs, &state))?;
        let plan = planned_call(signature, &exprs, provider_as_source(provider))?;
        Ok(DataFrame::new(state, plan))
    }

    /// Returns the arguments in the order of `signature`, up to the last that is given.
    fn exprs(&self, signature: &Signature) -> Result<Vec<Expr>> {
        let mut values: Vec<Option<&ScalarValue>> = self.required.iter().map(Some).collect();
        for (name, value) in &self.named {
            let position = signature.position(name)?;
            if values.len() <= position {
                values.resize(position + 1, None);
            }
            if values[position].replace(value).is_some() {
                return Err(signature.error(format!("argument {name} is given twice")));
            }
        }
        let literal = |value: Option<&ScalarValue>| Expr::Literal(value.cloned().unwrap_or(ScalarValue::Null), None);
        Ok(values.into_iter().map(literal).collect())
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?}, {:?})", self.function, self.required, self.named)
    }
}

impl IntoFuture for Call {
    type Output = Result<DataFrame>;
    type IntoFuture = Ready<Result<DataFrame>>;

    fn into_future(self) -> Self::IntoFuture {
        ready(self.data_frame())
    }
}

/// Returns the plan of a call of the function `signature`, whose rows are those of `source`.
///
/// The relation has the name of the function, so that `word_count.word` is valid. The scan has the name of the whole
/// call: DataFusion treats scans with the same name and schema as equal, even if they read different data, and runs
/// only one of several equal scalar subqueries. This also happens with `generate_series`.
///
/// # Errors
/// The errors of planning.
pub(crate) fn planned_call(signature: &Signature, exprs: &[Expr], source: Arc<dyn TableSource>) -> Result<LogicalPlan> {
    let shown: Vec<String> = exprs.iter().map(shown_argument).collect();
    let call = TableReference::bare(format!("{}({})", signature.name, shown.join(", ")));
    LogicalPlanBuilder::scan(call, source, None)?.alias(signature.name)?.build()
}

fn shown_argument(argument: &Expr) -> String {
    match argument {
        Expr::Literal(value, _) => match value.try_as_str() {
            Some(Some(text)) => format!("{:?}", mask_secrets(text)),
            _ => value.to_string(),
        },
        other => other.to_string(),
    }
}

/// Returns the documents of `corpus`, one row each.
pub fn documents(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "documents", [corpus.into()])
}

/// Counts how often each word occurs in `corpus`.
pub fn word_count(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "word_count", [corpus.into()])
}

/// Counts the words of `corpus`, the most frequent first.
pub fn word_sort(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "word_sort", [corpus.into()])
}

/// Lists the documents of each word of `corpus`.
pub fn inverted_index(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "inverted_index", [corpus.into()])
}

/// Lists the most frequent words of each document of `corpus`.
pub fn term_vector(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "term_vector", [corpus.into()])
}

/// Lists the words that set each document of `corpus` apart.
pub fn tfidf(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "tfidf", [corpus.into()])
}

/// Returns the matrix of documents and words of `corpus`, in triples.
pub fn doc_term_matrix(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "doc_term_matrix", [corpus.into()])
}

/// Returns the tokens of `corpus` in order of the text.
pub fn tokens(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "tokens", [corpus.into()])
}

/// Counts the sequences of words of `corpus`.
pub fn sequence_count(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "sequence_count", [corpus.into()])
}

/// Lists the documents of each sequence of words of `corpus`, by count.
pub fn ranked_inverted_index(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "ranked_inverted_index", [corpus.into()])
}

/// Counts the pairs of words of `corpus` that stand near each other.
pub fn cooccurrence(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "cooccurrence", [corpus.into()])
}

/// Lists the longest phrases that `corpus` repeats.
pub fn repeated_phrases(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "repeated_phrases", [corpus.into()])
}

/// Lists the pairs of documents of `corpus` that are almost the same.
pub fn near_duplicates(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "near_duplicates", [corpus.into()])
}

/// Lists the documents of `corpus` that have near duplicates, with the one of each cluster to keep.
pub fn near_duplicate_clusters(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "near_duplicate_clusters", [corpus.into()])
}

/// Groups the lines of `corpus` by their template.
pub fn log_templates(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "log_templates", [corpus.into()])
}

/// Lists the long spans of text that `corpus` repeats.
pub fn repeated_spans(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "repeated_spans", [corpus.into()])
}

/// Lists the texts of the table `texts` that share sequences of words with `corpus`.
pub fn overlap(ctx: &SessionContext, corpus: &str, texts: &str) -> Call {
    Call::new(ctx, "overlap", [corpus.into(), texts.into()])
}

/// Lists the hits of `query` in `corpus`.
pub fn search(ctx: &SessionContext, corpus: &str, query: &str) -> Call {
    Call::new(ctx, "search", [corpus.into(), query.into()])
}

/// Counts the hits of `query` in each document of `corpus`.
pub fn term_count(ctx: &SessionContext, corpus: &str, query: &str) -> Call {
    Call::new(ctx, "term_count", [corpus.into(), query.into()])
}

/// Lists the hits of `query` in `corpus` with the words around them.
pub fn kwic(ctx: &SessionContext, corpus: &str, query: &str) -> Call {
    Call::new(ctx, "kwic", [corpus.into(), query.into()])
}

/// Ranks the documents of `corpus` by `query` (BM25).
pub fn rank(ctx: &SessionContext, corpus: &str, query: &str) -> Call {
    Call::new(ctx, "rank", [corpus.into(), query.into()])
}

/// Lists the lines of `corpus` that match the regular expression `pattern`.
pub fn grep(ctx: &SessionContext, corpus: &str, pattern: &str) -> Call {
    Call::new(ctx, "grep", [corpus.into(), pattern.into()])
}

/// Lists the words of `corpus` that stand near hits of `query`.
pub fn collocates(ctx: &SessionContext, corpus: &str, query: &str) -> Call {
    Call::new(ctx, "collocates", [corpus.into(), query.into()])
}

/// Returns `byte_len` bytes of the document `doc_id` of `corpus`, from `byte_offset`.
pub fn extract(ctx: &SessionContext, corpus: &str, doc_id: u64, byte_offset: u64, byte_len: u64) -> Call {
    Call::new(ctx, "extract", [corpus.into(), doc_id.into(), byte_offset.into(), byte_len.into()])
}

/// Describes the files of `corpus`.
pub fn corpus_info(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "corpus_info", [corpus.into()])
}

/// Checks every byte of `corpus`.
pub fn corpus_verify(ctx: &SessionContext, corpus: &str) -> Call {
    Call::new(ctx, "corpus_verify", [corpus.into()])
}

/// Reads the files of `glob`, one row each.
pub fn read_text(ctx: &SessionContext, glob: &str) -> Call {
    Call::new(ctx, "read_text", [glob.into()])
}

/// Reads the lines of the files of `glob`.
pub fn read_lines(ctx: &SessionContext, glob: &str) -> Call {
    Call::new(ctx, "read_lines", [glob.into()])
}

/// Predicts the rates of all codecs behind a link of `link_gb_per_s`.
pub fn ingestion_model(ctx: &SessionContext, link_gb_per_s: f64) -> Call {
    Call::new(ctx, "ingestion_model", [link_gb_per_s.into()])
}

/// Lists the functions of this crate.
pub fn tadoc_functions(ctx: &SessionContext) -> Call {
    Call::new(ctx, "tadoc_functions", [])
}

/// Compares the words of `corpus` with those of the corpus `reference`.
pub fn keyness(ctx: &SessionContext, corpus: &str, reference: &str) -> Call {
    Call::new(ctx, "keyness", [corpus.into(), reference.into()])
}

/// Measures how evenly the terms of `query` are spread over `corpus`.
pub fn dispersion(ctx: &SessionContext, corpus: &str, query: &str) -> Call {
    Call::new(ctx, "dispersion", [corpus.into(), query.into()])
}

/// Returns document `doc_id` of `corpus` with those around it that have its path.
pub fn context(ctx: &SessionContext, corpus: &str, doc_id: u64) -> Call {
    Call::new(ctx, "context", [corpus.into(), doc_id.into()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::signatures;
    use crate::planning::signature::Column;

    fn all(ctx: &SessionContext) -> Vec<Call> {
        let corpus = "c.tadoc";
        let text = "word";
        vec![
            documents(ctx, corpus),
            word_count(ctx, corpus),
            word_sort(ctx, corpus),
            inverted_index(ctx, corpus),
            term_vector(ctx, corpus),
            tfidf(ctx, corpus),
            doc_term_matrix(ctx, corpus),
            tokens(ctx, corpus),
            sequence_count(ctx, corpus),
            ranked_inverted_index(ctx, corpus),
            cooccurrence(ctx, corpus),
            repeated_phrases(ctx, corpus),
            near_duplicates(ctx, corpus),
            near_duplicate_clusters(ctx, corpus),
            log_templates(ctx, corpus),
            repeated_spans(ctx, corpus),
            overlap(ctx, corpus, text),
            search(ctx, corpus, text),
            term_count(ctx, corpus, text),
            kwic(ctx, corpus, text),
            rank(ctx, corpus, text),
            grep(ctx, corpus, text),
            collocates(ctx, corpus, text),
            extract(ctx, corpus, 0, 0, 0),
            corpus_info(ctx, corpus),
            corpus_verify(ctx, corpus),
            read_text(ctx, corpus),
            read_lines(ctx, corpus),
            ingestion_model(ctx, 22.0),
            tadoc_functions(ctx),
            keyness(ctx, corpus, text),
            dispersion(ctx, corpus, text),
            context(ctx, corpus, 0),
        ]
    }

    fn session() -> SessionContext {
        let ctx = SessionContext::new();
        crate::register_all(&ctx).unwrap();
        ctx
    }

    #[tokio::test]
    async fn every_table_function_has_a_call_with_its_columns() {
        let ctx = session();
        let calls = all(&ctx);
        assert_eq!(calls.len(), signatures().count());
        for (call, signature) in calls.into_iter().zip(signatures()) {
            assert_eq!(call.function, signature.name);
            let required = signature.arguments.iter().filter(|argument| argument.default.is_none());
            assert_eq!(call.required.len(), required.count(), "{signature}");
            let rows = call.await.unwrap();
            for field in rows.schema().fields() {
                let is_same = |column: &Column| column.name == field.name();
                assert!(signature.columns.iter().any(is_same), "{signature}: {field}");
            }
        }
    }

    #[tokio::test]
    async fn a_call_has_the_plan_of_its_statement() {
        let ctx = session();
        let call = kwic(&ctx, "c.tadoc", "a b").with("width", 3_u64).with("fold", "case,accents");
        let sql = "SELECT * FROM kwic('c.tadoc', 'a b', width => 3, fold => 'case,accents')";
        let statement = ctx.sql(sql).await.unwrap().into_unoptimized_plan();
        let plan = call.await.unwrap().into_unoptimized_plan();
        assert!(statement.to_string().contains(&plan.to_string().replace('\n', "\n  ")), "{plan}");
    }

    #[tokio::test]
    async fn wrong_arguments_are_plan_errors_with_the_signature() {
        let ctx = session();
        let corpus = "c.tadoc";
        for (call, fault) in [
            (word_count(&ctx, corpus).with("foldd", true), "did you mean fold?"),
            (word_count(&ctx, corpus).with("fold", 3_i64), "expected true, false"),
            (word_count(&ctx, corpus).with("fold", true).with("FOLD", true), "given twice"),
            (word_count(&ctx, corpus).with("corpus", corpus), "given twice"),
            (search(&ctx, corpus, ""), "text that is not empty"),
        ] {
            let error = call.await.unwrap_err().to_string();
            assert!(error.contains(fault) && error.contains("usage: "), "{error}");
        }
        let error = word_count(&SessionContext::new(), corpus).await.unwrap_err().to_string();
        assert!(error.contains("register_all"), "{error}");
    }
}
