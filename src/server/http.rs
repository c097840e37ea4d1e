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
//! gives `[{"column": value, …}, …]`, as dashboards take it; it is whole or an error, because nobody would see that rows
//! are missing. `csv` and `arrow` are files with all rows ([`files`]).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::error::ArrowError;
use serde_json::{Value, json};
use tokio::time::timeout;
use uuid::Uuid;

use crate::connections::InUse;
use crate::files::{self, FileFormat};
use crate::json::Values;
use crate::page::page;
use crate::parameters::Given;
use crate::refusal::{Kind, Refusal};
use crate::statements::{MAX_STATEMENT_BYTES, Rows, Statements, Text};

/// Keys of a request.
const KEYS: [&str; 4] = ["sql", "max_rows", "parameters", "format"];
/// Maximum number of rows of an answer in JSON.
const MAX_ROWS: usize = 10_000;
/// Number of rows of an answer in JSON, if the request does not say.
const USUAL_ROWS: usize = 1000;
/// Most characters of a value that an error repeats.
const MAX_SHOWN_CHARS: usize = 120;
/// Media type of JSON.
const JSON: &str = "application/json";
/// Maximum bytes of an answer in JSON.
const MAX_ANSWER_BYTES: usize = 16 << 20;
/// Time for the body of a request.
const BODY: Duration = Duration::from_secs(10);

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
    Ok((media_type, files::body(rows, format, max_rows.unwrap_or(usize::MAX)).await?))
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
