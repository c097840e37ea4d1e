//! HTTP: the page, `/query` for its statements and for other programs, `/healthz` and `/metrics`.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /` | the page, one file |
//! | `POST /query` | the rows of a statement |
//! | `GET /healthz` | `ok` |
//! | `GET /metrics` | counters for Prometheus |
//!
//! `/query` takes JSON only, which a page of another site may not send:
//!
//! | key | meaning |
//! | --- | --- |
//! | `sql` | one statement |
//! | `max_rows` | most rows of the answer |
//! | `parameters` | values for `$name` by name, or for `$1` and `?` in a list |
//! | `format` | `json`, `objects`, `csv` or `arrow` |
//!
//! `json` gives `{"columns": […], "rows": [[…]], "truncated": false}`, and `"notices": […]` if there are any. `objects`
//! gives `[{"column": value, …}, …]`, as dashboards take it; it is whole or an error, because nobody would see that
//! rows are missing.
//!
//! `csv` and `arrow` are files with all rows, written while the statement runs; memory holds one batch. A statement
//! that fails behind its first batch breaks the transfer off, so that nobody takes a part of a file for the whole. CSV
//! has a line with the names of the columns, NULL as nothing, and lists and structs as JSON. Texts are written as they
//! are: a spreadsheet may take a text that begins with `=` for a formula.
//!
//! The page is put together from `page.html` (the elements), `page.css`, and scripts: `statements.js` (the statements
//! of each view), `rows.js` (rows, charts and the bars over time), `document.js` (the text of a document around a hit)
//! and `main.js` (the form, the address and the requests). It makes elements of texts, never HTML. Should it fail in
//! that, its policy lets the browser run no script but its own, load nothing from elsewhere, and write no HTML from
//! strings. The policy names script and style by their digests, so a part that somebody puts into the page does not
//! run.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use datafusion::arrow::array::{ArrayRef, RecordBatch, StringArray};
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::writer::FileWriter;
use futures::stream;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use uuid::Uuid;

use crate::connections::InUse;
use crate::refusal::{Kind, Refusal};
use crate::statements::{MAX_STATEMENT_BYTES, Rows, Statements, Text};
use crate::wire::{Given, Values};

/// Keys of a request.
const KEYS: [&str; 4] = ["sql", "max_rows", "parameters", "format"];
/// Maximum number of rows of an answer in JSON.
const MAX_ROWS: usize = 10_000;
/// Number of rows of an answer in JSON, if the request does not say.
const USUAL_ROWS: usize = 1000;
/// Most characters of a value that an error repeats.
const MAX_SHOWN_CHARS: usize = 120;
/// Media type of a file of Arrow.
const ARROW: &str = "application/vnd.apache.arrow.file";
/// Media type of CSV.
const CSV: &str = "text/csv; charset=utf-8";
/// Media type of JSON.
const JSON: &str = "application/json";
/// Maximum bytes of an answer in JSON.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Time for the body of a request.
const BODY: Duration = Duration::from_secs(10);

const HTML: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    include_str!("page/statements.js"),
    include_str!("page/rows.js"),
    include_str!("page/document.js"),
    include_str!("page/main.js")
);

/// Returns the routes of the page and of its statements.
pub fn routes(statements: Arc<Statements>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(metrics))
        .route("/query", post(query))
        .layer(DefaultBodyLimit::max(MAX_STATEMENT_BYTES))
        .with_state(statements)
}

async fn metrics(State(statements): State<Arc<Statements>>) -> impl IntoResponse {
    let text = statements.metrics().text(statements.reserved_bytes());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

async fn query(State(statements): State<Arc<Statements>>, request: Request) -> Response {
    let (status, media_type, body) = match answer(&statements, request).await {
        Ok((media_type, body)) => (StatusCode::OK, media_type, body),
        Err(refusal) => {
            let text = json!({ "error": refusal.text }).to_string();
            (refusal.http_status(), JSON, Body::from(text))
        }
    };
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media_type)),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    ];
    (status, headers, body).into_response()
}

/// Returns the media type and the body of an answer.
async fn answer(statements: &Arc<Statements>, request: Request) -> Result<(&'static str, Body), Refusal> {
    let in_use = request.extensions().get::<InUse>().cloned();
    let in_use = in_use.ok_or_else(|| Refusal::new(Kind::Broken, "no connection"))?;
    if !is_json(request.headers()) {
        return Err(invalid("expected Content-Type: application/json"));
    }
    let body = timeout(BODY, to_bytes(request.into_body(), MAX_STATEMENT_BYTES)).await;
    let body = body.map_err(|_| invalid("the request did not come within 10 s"))?;
    let body = body.map_err(|_| invalid("expected a request of at most 1 MiB"))?;
    let asked: Value = serde_json::from_slice(&body).map_err(|error| invalid(&format!("expected JSON: {error}")))?;
    let mut keys = asked.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    if let Some(key) = keys.find(|key| !KEYS.contains(key)) {
        return Err(invalid(&format!("expected the keys {}, got {key}", KEYS.join(", "))));
    }
    let sql = asked.get("sql").and_then(Value::as_str);
    let sql = sql.ok_or_else(|| invalid(r#"expected {"sql": "SELECT …", "max_rows": 100}"#))?;
    let max_rows = max_rows_from(asked.get("max_rows").unwrap_or(&Value::Null))?;
    let format = format_from(asked.get("format").unwrap_or(&Value::Null))?;
    let parameters = Given::from_json(asked.get("parameters").unwrap_or(&Value::Null))?;
    let text = Text { id: Uuid::new_v4(), sql: sql.to_owned(), parameters };
    let rows = statements.run(text, in_use).await?;
    match format {
        Format::Json => Ok((JSON, json_answer(rows, max_rows).await?.into())),
        Format::Objects => Ok((JSON, objects(rows, max_rows).await?.into())),
        Format::Csv => file(rows, FileFormat::csv(), max_rows).await,
        Format::Arrow => {
            let format = FileFormat::arrow(&rows.schema)?;
            file(rows, format, max_rows).await
        }
    }
}

fn invalid(text: &str) -> Refusal {
    Refusal::new(Kind::Invalid, text)
}

/// Returns the media type and the body of a file, with all rows if the request does not say how many.
async fn file(rows: Rows, format: FileFormat, max_rows: Option<usize>) -> Result<(&'static str, Body), Refusal> {
    let media_type = format.media_type();
    Ok((media_type, file_body(rows, format, max_rows.unwrap_or(usize::MAX)).await?))
}

/// Returns columns and rows, up to `max_rows` and the limits of an answer.
async fn json_answer(mut rows: Rows, max_rows: Option<usize>) -> Result<Vec<u8>, Refusal> {
    let max_rows = max_rows.unwrap_or(USUAL_ROWS).min(MAX_ROWS);
    let columns = serde_json::to_vec(&columns(&rows.schema)).unwrap_or_default();
    let mut written = Answer::begin([b"{\"columns\":", columns.as_slice(), b",\"rows\":["].concat());
    let mut is_truncated = false;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let wanted = batch.num_rows().min(max_rows - written.num_rows);
        written.add_lists(&batch.slice(0, wanted))?;
        is_truncated = wanted < batch.num_rows() || written.bytes.len() > MAX_ANSWER_BYTES;
        if is_truncated {
            break;
        }
    }
    written.bytes.extend(format!("],\"truncated\":{is_truncated}").into_bytes());
    if !rows.notices.is_empty() {
        written.bytes.extend(format!(",\"notices\":{}", json!(rows.notices)).into_bytes());
    }
    written.bytes.push(b'}');
    Ok(written.bytes)
}

/// Returns the rows as a list of objects, at most `max_rows` if the request says so, else all of them.
async fn objects(mut rows: Rows, max_rows: Option<usize>) -> Result<Vec<u8>, Refusal> {
    let names: Vec<String> = rows.schema.fields().iter().map(|field| field.name().clone()).collect();
    let mut distinct = HashSet::new();
    if let Some(name) = names.iter().find(|name| !distinct.insert(name.as_str())) {
        return Err(invalid(&format!("two columns have the name {name}: name one with AS")));
    }
    let limit = max_rows.unwrap_or(MAX_ROWS).min(MAX_ROWS);
    let mut written = Answer::begin(b"[".to_vec());
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let wanted = batch.num_rows().min(limit - written.num_rows);
        written.add_objects(&batch.slice(0, wanted), &names)?;
        if written.bytes.len() > MAX_ANSWER_BYTES || (wanted < batch.num_rows() && max_rows.is_none_or(|n| n > limit)) {
            let text = "the answer has more than 10,000 rows or 16 MiB, and a list of objects is whole: count rows in \
                        larger steps, write a LIMIT, or ask for the format csv or arrow";
            return Err(invalid(text));
        }
        if wanted < batch.num_rows() {
            break;
        }
    }
    written.bytes.push(b']');
    Ok(written.bytes)
}

/// Form of an answer.
#[derive(Debug, Clone, Copy)]
enum Format {
    Json,
    Objects,
    Csv,
    Arrow,
}

fn format_from(asked: &Value) -> Result<Format, Refusal> {
    match (asked, asked.as_str()) {
        (Value::Null, _) | (_, Some("json")) => Ok(Format::Json),
        (_, Some("objects")) => Ok(Format::Objects),
        (_, Some("csv")) => Ok(Format::Csv),
        (_, Some("arrow")) => Ok(Format::Arrow),
        _ => Err(invalid(&format!("format: got {}, expected json, objects, csv or arrow", shown(asked)))),
    }
}

/// Returns the number of rows that a request asks for. Null is `None`.
fn max_rows_from(asked: &Value) -> Result<Option<usize>, Refusal> {
    match (asked, asked.as_u64()) {
        (Value::Null, _) => Ok(None),
        (_, Some(number)) => Ok(Some(usize::try_from(number).unwrap_or(usize::MAX))),
        _ => Err(invalid(&format!("max_rows: got {}, expected a whole number, 0 or more", shown(asked)))),
    }
}

/// Returns a value as an error repeats it.
fn shown(value: &Value) -> String {
    value.to_string().chars().take(MAX_SHOWN_CHARS).collect()
}

/// An answer in JSON, up to some row.
struct Answer {
    bytes: Vec<u8>,
    num_rows: usize,
}

impl Answer {
    fn begin(bytes: Vec<u8>) -> Self {
        Self { bytes, num_rows: 0 }
    }

    /// Adds each row as a list.
    fn add_lists(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let no_keys = vec![String::new(); batch.num_columns()];
        self.add(batch, [b'[', b']'], &no_keys)
    }

    /// Adds each row as an object with the keys `names`.
    fn add_objects(&mut self, batch: &RecordBatch, names: &[String]) -> Result<(), ArrowError> {
        let keys: Vec<String> = names.iter().map(|name| format!("{}:", json!(name))).collect();
        self.add(batch, [b'{', b'}'], &keys)
    }

    fn add(&mut self, batch: &RecordBatch, brackets: [u8; 2], keys: &[String]) -> Result<(), ArrowError> {
        let columns = batch.columns().iter().map(Values::new).collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            self.bytes.extend((self.num_rows > 0).then_some(b','));
            self.bytes.push(brackets[0]);
            for (idx, (column, key)) in columns.iter().zip(keys).enumerate() {
                self.bytes.extend((idx > 0).then_some(b','));
                self.bytes.extend(key.as_bytes());
                self.bytes.extend(column.value(row));
            }
            self.bytes.push(brackets[1]);
            self.num_rows += 1;
        }
        Ok(())
    }
}

fn columns(schema: &Schema) -> Vec<Value> {
    let of = |field: &Arc<Field>| json!({ "name": field.name(), "type": field.data_type().to_string() });
    schema.fields().iter().map(of).collect()
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.map(|kind| kind.split(';').next().unwrap_or_default().trim());
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

/// Writes batches as parts of a file.
enum FileFormat {
    /// CSV; true before the line with the names of the columns.
    Csv(bool),
    /// A file of Arrow's IPC. `None` behind its last byte.
    Arrow(Option<Box<FileWriter<Vec<u8>>>>),
}

impl FileFormat {
    /// Creates CSV.
    fn csv() -> Self {
        Self::Csv(true)
    }

    /// Creates a file of Arrow with the columns of `schema`.
    ///
    /// # Errors
    /// A type has no form in IPC.
    fn arrow(schema: &Schema) -> Result<Self, ArrowError> {
        Ok(Self::Arrow(Some(Box::new(FileWriter::try_new(Vec::new(), schema)?))))
    }

    /// Returns the media type of the file.
    fn media_type(&self) -> &'static str {
        match self {
            Self::Csv(_) => CSV,
            Self::Arrow(_) => ARROW,
        }
    }

    /// Returns the bytes of `batch`.
    ///
    /// # Errors
    /// A value has no form in the file.
    fn write(&mut self, batch: &RecordBatch) -> Result<Vec<u8>, ArrowError> {
        match self {
            Self::Csv(is_first) => {
                let with_header = std::mem::take(is_first);
                let mut writer = csv::WriterBuilder::new().with_header(with_header).build(Vec::new());
                writer.write(&without_nesting(batch)?)?;
                Ok(writer.into_inner())
            }
            Self::Arrow(Some(writer)) => {
                writer.write(batch)?;
                Ok(std::mem::take(writer.get_mut()))
            }
            Self::Arrow(None) => Ok(Vec::new()),
        }
    }

    /// Returns the bytes behind the last batch.
    fn finish(&mut self, schema: &SchemaRef) -> Result<Vec<u8>, ArrowError> {
        match self {
            // An answer without rows has its line of names, too.
            Self::Csv(true) => self.write(&RecordBatch::new_empty(Arc::clone(schema))),
            Self::Csv(false) | Self::Arrow(None) => Ok(Vec::new()),
            Self::Arrow(writer) => {
                let Some(mut writer) = writer.take() else { return Ok(Vec::new()) };
                writer.finish()?;
                writer.into_inner()
            }
        }
    }
}

/// Returns `batch` with lists, structs and maps as texts in JSON.
fn without_nesting(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema();
    let mut fields = Vec::with_capacity(schema.fields().len());
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(schema.fields().len());
    for (field, column) in schema.fields().iter().zip(batch.columns()) {
        if field.data_type().is_nested() {
            let values = Values::new(column)?;
            let texts = (0..column.len()).map(|row| nested_text(&values, column, row)).collect::<StringArray>();
            fields.push(Field::new(field.name(), DataType::Utf8, true));
            columns.push(Arc::new(texts));
        } else {
            fields.push(field.as_ref().clone());
            columns.push(Arc::clone(column));
        }
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn nested_text(values: &Values, column: &ArrayRef, row: usize) -> Option<String> {
    column.is_valid(row).then(|| String::from_utf8_lossy(values.value(row)).into_owned())
}

/// A file that is being written.
struct Writing {
    rows: Rows,
    /// The batch that was taken to see that the statement runs.
    first: Option<RecordBatch>,
    format: FileFormat,
    num_rows_left: usize,
    is_finished: bool,
}

impl Writing {
    /// Returns the next bytes, or `None` behind the last.
    async fn next(&mut self) -> Result<Option<Bytes>, Refusal> {
        if self.is_finished {
            return Ok(None);
        }
        let batch = match self.first.take() {
            Some(batch) => Some(batch),
            None if self.num_rows_left == 0 => None,
            None => self.rows.next().await.transpose()?,
        };
        let Some(batch) = batch else {
            self.is_finished = true;
            return Ok(Some(self.format.finish(&self.rows.schema)?.into()));
        };
        let num_rows = batch.num_rows().min(self.num_rows_left);
        self.num_rows_left -= num_rows;
        Ok(Some(self.format.write(&batch.slice(0, num_rows))?.into()))
    }
}

/// Returns the body of a response with at most `max_rows` rows in a file.
///
/// # Errors
/// The statement fails before its first rows.
async fn file_body(mut rows: Rows, format: FileFormat, max_rows: usize) -> Result<Body, Refusal> {
    let first = rows.next().await.transpose()?;
    let writing = Writing { rows, first, format, num_rows_left: max_rows, is_finished: false };
    let parts = stream::try_unfold(writing, async |mut writing| match writing.next().await {
        Ok(part) => Ok(part.map(|part| (part, writing))),
        Err(refusal) => Err(io::Error::other(refusal.text)),
    });
    Ok(Body::from_stream(parts))
}

/// The page.
static PAGE: LazyLock<String> = LazyLock::new(|| {
    let with_style = HTML.replacen("<style></style>", &format!("<style>{STYLE}</style>"), 1);
    with_style.replacen("<script></script>", &format!("<script>{SCRIPT}</script>"), 1)
});

/// Answers a request for the page.
async fn page() -> impl IntoResponse {
    static POLICY: LazyLock<HeaderValue> =
        LazyLock::new(|| HeaderValue::try_from(policy()).unwrap_or(HeaderValue::from_static("sandbox")));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
        (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
        (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    ];
    (headers, PAGE.as_str())
}

/// Returns the Content-Security-Policy of the page: its one script and its one style, by digest.
fn policy() -> String {
    let digest = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        digest(SCRIPT),
        digest(STYLE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use datafusion::arrow::array::{Int64Array, ListArray};
    use datafusion::arrow::datatypes::Int64Type;
    use datafusion::arrow::ipc::reader::FileReader;
    use std::io::Cursor;

    fn batch(numbers: Vec<i64>) -> RecordBatch {
        let lists = numbers.iter().map(|&number| (number > 1).then(|| vec![Some(number), None]));
        let lists = ListArray::from_iter_primitive::<Int64Type, _, _>(lists);
        let texts = StringArray::from_iter_values(numbers.iter().map(|number| format!("a,\"b\"\n{number}")));
        let numbers = Int64Array::from(numbers);
        let columns: Vec<(&str, ArrayRef)> =
            vec![("n", Arc::new(numbers)), ("text", Arc::new(texts)), ("list", Arc::new(lists))];
        let nullable = columns.into_iter().map(|(name, column)| (name, column, true));
        RecordBatch::try_from_iter_with_nullable(nullable).unwrap()
    }

    fn file(mut format: FileFormat, batches: &[RecordBatch]) -> Vec<u8> {
        let schema = batch(Vec::new()).schema();
        let mut bytes = Vec::new();
        for batch in batches {
            bytes.extend(format.write(batch).unwrap());
        }
        bytes.extend(format.finish(&schema).unwrap());
        bytes
    }

    #[test]
    fn csv_has_one_header_and_lists_as_json() {
        let bytes = file(FileFormat::csv(), &[batch(vec![1, 2]), batch(vec![3])]);
        let expected = "n,text,list\n1,\"a,\"\"b\"\"\n1\",\n2,\"a,\"\"b\"\"\n2\",\"[2,null]\"\n\
                        3,\"a,\"\"b\"\"\n3\",\"[3,null]\"\n";
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
        assert_eq!(file(FileFormat::csv(), &[]), b"n,text,list\n");
    }

    #[test]
    fn files_of_arrow_are_those_that_were_written() {
        let batches = [batch(vec![1, 2]), batch(vec![3])];
        for written in [&batches[..], &[]] {
            let format = FileFormat::arrow(&batches[0].schema()).unwrap();
            let read = FileReader::try_new(Cursor::new(file(format, written)), None).unwrap();
            assert_eq!(read.collect::<Result<Vec<_>, _>>().unwrap(), written);
        }
    }

    #[test]
    fn the_page_is_one_file_with_one_script_and_one_style() {
        for (element, part) in [("script", SCRIPT), ("style", STYLE)] {
            assert_eq!(PAGE.matches(&format!("<{element}")).count(), 1, "{element}");
            assert!(PAGE.contains(&format!("<{element}>{part}</{element}>")), "{element}");
        }
        for outside in ["src=", "@import", "url(", "innerHTML", "style=", " on"] {
            let found = PAGE.match_indices(outside).any(|(at, _)| {
                outside != " on"
                    || PAGE[at..]
                        .split_once('=')
                        .is_some_and(|(name, _)| name.len() < 14 && name[1..].chars().all(|c| c.is_ascii_lowercase()))
            });
            assert!(!found, "{outside}");
        }
        let policy = policy();
        assert!(HeaderValue::try_from(&policy).is_ok());
        assert_eq!(policy.matches("'sha256-").count(), 2);
        assert!(!policy.contains("unsafe"));
    }
}
