//! The tools: a name, a description, arguments, and the statement that answers them.
//!
//! ```text
//! search, grep, kwic, rank, list_documents, templates    arguments ─▶ a statement of ours, one page of it
//! sql                                                    the statement of the client, from some row on
//! read                                                   a passage of a document
//! ```
//!
//! Pages are pages of an ordered statement: it runs again for each, with an offset.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tadoc_documents::pattern::Pattern;

use super::answer::{Answer, page_of_rows};
use super::arguments::{Corpus, Given, Page, Schema, Size, check, invalid};
use super::passage::{self, Asked};
use super::source::{Source, Statement};
use crate::refusal::Refusal;

/// Most words of a snippet or of a side of a context.
const MAX_WORDS: u64 = 500;
/// Most lines around a line.
const MAX_AROUND: u64 = 100;

/// A question with one page of rows as its answer.
trait Question: DeserializeOwned + JsonSchema {
    /// The function of SQL that answers it, which errors name first.
    const FUNCTION: &'static str;

    /// Returns the statement whose rows are the page, with one more row if there are more.
    fn statement(self, corpus: &str, page: &Page) -> Result<Statement, Refusal>;
}

fn usual_fold() -> String {
    "case".to_owned()
}

fn usual_snippet_words() -> u64 {
    24
}

fn usual_width() -> u64 {
    8
}

/// Arguments of `search`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Search {
    /// Query: words and "phrases" (parts side by side must all occur), OR, NOT, parentheses, NEAR(a b, 5), prefix*,
    /// w?ldcard, word~1 (one edit), /regular expression of a word/.
    query: String,

    /// Only documents whose path matches this glob, such as "src/**/*.rs" or "*.md".
    #[serde(default)]
    glob: Option<String>,

    /// Words that count as equal: "none", "case" (any case), "accents", "case,accents" or "stem:LANGUAGE", such as
    /// "stem:english".
    #[serde(default = "usual_fold")]
    fold: String,

    /// Words of a snippet, 1 to 500.
    #[serde(default = "usual_snippet_words")]
    #[schemars(range(min = 1, max = 500))]
    snippet_words: u64,
}

impl Question for Search {
    const FUNCTION: &'static str = "term_count";

    fn statement(self, corpus: &str, page: &Page) -> Result<Statement, Refusal> {
        check("snippet_words", self.snippet_words, 1, MAX_WORDS)?;
        let mut texts = vec![corpus.to_owned(), self.query, self.fold];
        let chosen = chosen_paths(self.glob.as_deref(), &mut texts)?;
        let page = page.clause();
        let snippet = snippet(self.snippet_words);
        let sql = format!(
            "SELECT t.path, t.doc_id, t.count AS hits, {snippet} FROM \
             (SELECT path, doc_id, count FROM term_count($1, $2, fold => $3) {chosen} ORDER BY doc_id {page}) AS t \
             JOIN documents($1) AS d ON d.doc_id = t.doc_id ORDER BY t.doc_id"
        );
        Ok(Statement { sql, texts })
    }
}

/// Arguments of `rank`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Rank {
    /// Query in the language of `search`. Join words by OR to rank documents that have only some of them.
    query: String,

    /// Words that count as equal: "none", "case" (any case), "accents", "case,accents" or "stem:LANGUAGE", such as
    /// "stem:english".
    #[serde(default = "usual_fold")]
    fold: String,

    /// Words of a snippet, 1 to 500.
    #[serde(default = "usual_snippet_words")]
    #[schemars(range(min = 1, max = 500))]
    snippet_words: u64,
}

impl Question for Rank {
    const FUNCTION: &'static str = "rank";

    fn statement(self, corpus: &str, page: &Page) -> Result<Statement, Refusal> {
        check("snippet_words", self.snippet_words, 1, MAX_WORDS)?;
        let texts = vec![corpus.to_owned(), self.query, self.fold];
        let top = page.num_ranked();
        let page = page.clause();
        let snippet = snippet(self.snippet_words);
        let sql = format!(
            "SELECT t.path, t.doc_id, round(t.bm25, 3) AS score, {snippet} FROM \
             (SELECT path, doc_id, score AS bm25 FROM rank($1, $2, top => {top}, fold => $3) \
             ORDER BY score DESC, doc_id {page}) AS t \
             JOIN documents($1) AS d ON d.doc_id = t.doc_id ORDER BY t.bm25 DESC, t.doc_id"
        );
        Ok(Statement { sql, texts })
    }
}

/// Arguments of `kwic`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Kwic {
    /// Query in the language of `search`.
    query: String,

    /// Only documents whose path matches this glob, such as "src/**/*.rs" or "*.md".
    #[serde(default)]
    glob: Option<String>,

    /// Words that count as equal: "none", "case" (any case), "accents", "case,accents" or "stem:LANGUAGE", such as
    /// "stem:english".
    #[serde(default = "usual_fold")]
    fold: String,

    /// Words on each side, 0 to 500.
    #[serde(default = "usual_width")]
    #[schemars(range(max = 500))]
    width: u64,
}

impl Question for Kwic {
    const FUNCTION: &'static str = "kwic";

    fn statement(self, corpus: &str, page: &Page) -> Result<Statement, Refusal> {
        check("width", self.width, 0, MAX_WORDS)?;
        let mut texts = vec![corpus.to_owned(), self.query, self.fold];
        let chosen = chosen_paths(self.glob.as_deref(), &mut texts)?;
        let width = self.width;
        let page = page.clause();
        let sql = format!(
            "SELECT path, doc_id, \"left\", match, \"right\" FROM kwic($1, $2, width => {width}, fold => $3) \
             {chosen} ORDER BY doc_id {page}"
        );
        Ok(Statement { sql, texts })
    }
}

/// Arguments of `grep`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Grep {
    /// Regular expression in the syntax of Rust's regex crate. A match lies in one line.
    pattern: String,

    /// Only documents whose path matches this glob, such as "src/**/*.rs" or "*.md".
    #[serde(default)]
    glob: Option<String>,

    /// Match letters of any case.
    #[serde(default)]
    ignore_case: bool,

    /// Lines before and after each line, 0 to 100.
    #[serde(default)]
    #[schemars(range(max = 100))]
    context: u64,
}

impl Question for Grep {
    const FUNCTION: &'static str = "grep";

    fn statement(self, corpus: &str, page: &Page) -> Result<Statement, Refusal> {
        check("context", self.context, 0, MAX_AROUND)?;
        let mut texts = vec![corpus.to_owned(), self.pattern];
        let chosen = chosen_paths(self.glob.as_deref(), &mut texts)?;
        let context = self.context;
        let page = page.clause();
        let columns = if context == 0 { "line" } else { "before, line, after" };
        let fold = if self.ignore_case { "true" } else { "false" };
        let sql = format!(
            "SELECT path, doc_id, line_number, {columns} FROM grep($1, $2, context => {context}, fold => {fold}) \
             {chosen} ORDER BY doc_id, line_number {page}"
        );
        Ok(Statement { sql, texts })
    }
}

/// Arguments of `list_documents`.
#[derive(Debug, Deserialize, JsonSchema)]
struct ListDocuments {
    /// Only documents whose path matches this glob, such as "src/**/*.rs". Without a slash it is compared with the
    /// name of the document: "*.md".
    #[serde(default)]
    glob: Option<String>,
}

impl Question for ListDocuments {
    const FUNCTION: &'static str = "documents";

    fn statement(self, corpus: &str, page: &Page) -> Result<Statement, Refusal> {
        let mut texts = vec![corpus.to_owned()];
        let chosen = chosen_paths(self.glob.as_deref(), &mut texts)?;
        let page = page.clause();
        let sql = format!("SELECT path, doc_id, bytes, words FROM documents($1) {chosen} ORDER BY doc_id {page}");
        Ok(Statement { sql, texts })
    }
}

/// Arguments of `templates`: none of its own.
#[derive(Debug, Deserialize, JsonSchema)]
struct Templates {}

impl Question for Templates {
    const FUNCTION: &'static str = "log_templates";

    fn statement(self, corpus: &str, page: &Page) -> Result<Statement, Refusal> {
        let page = page.clause();
        let sql = format!(
            "SELECT template, count, doc_count, first_doc_id, last_doc_id, first_ts, last_ts, example \
             FROM log_templates($1) ORDER BY count DESC, template {page}"
        );
        Ok(Statement { sql, texts: vec![corpus.to_owned()] })
    }
}

/// Arguments of `sql`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Sql {
    /// One statement that reads: SELECT, EXPLAIN, SHOW or DESCRIBE.
    statement: String,
}

/// Returns the column `snippet` of a document `d`.
fn snippet(max_words: u64) -> String {
    format!("snippet(d.text, $2, '**', '**', '…', {max_words}, fold => $3) AS snippet")
}

/// Returns the condition that `glob` sets on paths, as a clause; its parameters go behind `texts`.
fn chosen_paths(glob: Option<&str>, texts: &mut Vec<String>) -> Result<String, Refusal> {
    let Some(glob) = glob else { return Ok(String::new()) };
    let pattern = Pattern::new(glob).map_err(|fault| invalid(format!("glob: {fault}")))?;
    texts.extend([glob.to_owned(), pattern.as_regex().to_owned()]);
    let whole = texts.len() - 1;
    let regex = texts.len();
    let part = if glob.contains('/') { "path" } else { "split_part(path, '/', -1)" };
    Ok(format!("WHERE (path = ${whole} OR regexp_like({part}, ${regex}))"))
}

/// Returns all tools, over corpora with these names.
pub fn tools(names: &[String]) -> Vec<Tool> {
    let paged = |schema: Schema| schema.with_corpus(names).with::<Page>();
    vec![
        tool(
            "search",
            "Full-text search: each document that matches a query, in order of document, with its path, its number \
             (doc_id), the number of hits and a snippet with the hits in **stars**. Use `rank` for the best documents, \
             `kwic` for every hit, `grep` for regular expressions over whole lines.",
            paged(Schema::default().with::<Search>()),
        ),
        tool(
            "grep",
            "Lines that match a regular expression, with path and line number, in order of document and line. The \
             exact text counts, punctuation included. Literal texts in the pattern make it fast.",
            paged(Schema::default().with::<Grep>()),
        ),
        tool(
            "kwic",
            "Keyword in context: every hit of a query with the words before and after it, to see how words are used.",
            paged(Schema::default().with::<Kwic>()),
        ),
        tool(
            "rank",
            "The best documents for a query by BM25, best first, with path, doc_id, score and a snippet with the hits \
             in **stars**.",
            paged(Schema::default().with::<Rank>()),
        ),
        tool(
            "read",
            "The text of a document, named by path or doc_id: from a line or a byte on, up to a number of lines and \
             bytes. Where the documents are lines or rows of one file, path with `line` reads the file, and doc_id with \
             `around` shows the neighbours.",
            Schema::default().with::<Asked>().with_corpus(names).with::<Size>(),
        ),
        tool(
            "list_documents",
            "Documents of a corpus with path, doc_id, bytes and words, in order; all of them or those of a glob.",
            paged(Schema::default().with::<ListDocuments>()),
        ),
        tool(
            "templates",
            "Templates of log lines: lines that differ only in numbers, names and the like are one template, with \
             count, documents and an example. The most frequent come first. The quickest overview of a log.",
            paged(Schema::default().with::<Templates>()),
        ),
        tool(
            "sql",
            "Runs one statement of SQL (DataFusion) that reads. Each corpus is a table with the columns doc_id, path, \
             text, bytes, words and those of its own (DESCRIBE name), and an argument of functions: \
             SELECT word, count FROM word_count('name') ORDER BY count DESC LIMIT 10. SELECT function, signature, \
             summary, example FROM tadoc_functions() lists the functions. Prefer LIMIT and ORDER BY.",
            Schema::default().with::<Sql>().with::<Page>(),
        ),
    ]
}

fn tool(name: &'static str, description: &'static str, schema: Schema) -> Tool {
    let reads = ToolAnnotations::new().read_only(true).idempotent(true).open_world(false);
    Tool::new(name, description, Arc::new(schema.into_object())).with_annotations(reads)
}

/// Runs the tool `name`; `None` if there is none.
pub async fn call(source: &Source, name: &str, arguments: JsonObject) -> Option<Result<Answer, Refusal>> {
    let given = Given::new(arguments);
    Some(match name {
        "search" => ask::<Search>(source, given).await,
        "grep" => ask::<Grep>(source, given).await,
        "kwic" => ask::<Kwic>(source, given).await,
        "rank" => ask::<Rank>(source, given).await,
        "read" => read(source, given).await,
        "list_documents" => ask::<ListDocuments>(source, given).await,
        "templates" => ask::<Templates>(source, given).await,
        "sql" => run_sql(source, given).await,
        _ => return None,
    })
}

async fn ask<Q: Question>(source: &Source, mut given: Given) -> Result<Answer, Refusal> {
    let (question, corpus, page): (Q, Corpus, Page) = (given.take()?, given.take()?, given.take()?);
    given.finish()?;
    page.check()?;
    let corpus = source.corpus(corpus.corpus.as_deref())?;
    let statement = question.statement(corpus, &page)?;
    let answered = match source.run(statement).await {
        Ok(rows) => page_of_rows(rows, &page, 0).await,
        Err(refusal) => Err(refusal),
    };
    answered.map_err(|refusal| without_function(refusal, Q::FUNCTION))
}

/// Returns a refusal without the function of SQL and its usage, of which the client of a tool knows nothing.
fn without_function(refusal: Refusal, function: &str) -> Refusal {
    let (text, _) = refusal.text.split_once("; usage: ").unwrap_or((&refusal.text, ""));
    let fault = text.strip_prefix(function).and_then(|rest| rest.strip_prefix(": "));
    Refusal::new(refusal.kind, fault.unwrap_or(text))
}

async fn run_sql(source: &Source, mut given: Given) -> Result<Answer, Refusal> {
    let (asked, page): (Sql, Page) = (given.take()?, given.take()?);
    given.finish()?;
    page.check()?;
    let statement = Statement { sql: asked.statement, texts: Vec::new() };
    page_of_rows(source.run(statement).await?, &page, page.offset()).await
}

async fn read(source: &Source, mut given: Given) -> Result<Answer, Refusal> {
    let (asked, corpus, size): (Asked, Corpus, Size) = (given.take()?, given.take()?, given.take()?);
    given.finish()?;
    size.check()?;
    asked.check()?;
    let corpus = source.corpus(corpus.corpus.as_deref())?;
    passage::read(source, corpus, &asked, size.max_bytes()).await
}
