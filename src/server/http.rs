//! HTTP: the page, `/query` for its statements, `/healthz` and `/metrics`.
//!
//! | request | answer |
//! | --- | --- |
//! | `GET /` | the page, one file |
//! | `POST /query` | `{"sql": "…", "max_rows": 100}` gives `{"columns": […], "rows": [[…]], "truncated": false}`, and `"notices": […]` if there are any |
//! | `GET /healthz` | `ok` |
//! | `GET /metrics` | counters for Prometheus |
//!
//! The page makes elements of texts, never HTML. Should it fail in that, its policy lets the browser
//! run no script but its own, load nothing from elsewhere, and write no HTML from strings. `/query`
//! takes JSON only, which a page of another site may not send.

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
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::error::ArrowError;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::timeout;
use uuid::Uuid;

use crate::connections::InUse;
use crate::json::Values;
use crate::refusal::{Kind, Refusal};
use crate::statements::{MAX_STATEMENT_BYTES, Statements, Text};

/// The page.
const PAGE: &str = include_str!("page.html");
/// Maximum number of rows of an answer in JSON.
const MAX_ROWS: usize = 10_000;
/// Number of rows of an answer in JSON, if the request does not say.
const USUAL_ROWS: usize = 1000;
/// Most characters of a value that an error repeats.
const MAX_SHOWN_CHARS: usize = 120;
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
    (headers, PAGE)
}

/// Returns the Content-Security-Policy of the page: its one script and its one style, by digest.
fn policy() -> String {
    let digest = |element: &str| {
        let (start, end) = (format!("<{element}>"), format!("</{element}>"));
        let text = PAGE.split_once(&start).and_then(|(_, rest)| rest.split_once(&end));
        let digest = Sha256::digest(text.map_or("", |(text, _)| text));
        format!("'sha256-{}'", BASE64_STANDARD.encode(digest))
    };
    format!(
        "default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'",
        digest("script"),
        digest("style")
    )
}

async fn metrics(State(statements): State<Arc<Statements>>) -> impl IntoResponse {
    let text = statements.metrics().text(statements.reserved_bytes());
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text)
}

async fn query(State(statements): State<Arc<Statements>>, request: Request) -> Response {
    let answer = match answer(&statements, request).await {
        Ok(answer) => (StatusCode::OK, answer),
        Err(refusal) => {
            let text = json!({ "error": refusal.text }).to_string();
            (refusal.http_status(), text.into_bytes())
        }
    };
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (answer.0, headers, Body::from(answer.1)).into_response()
}

async fn answer(statements: &Arc<Statements>, request: Request) -> Result<Vec<u8>, Refusal> {
    let invalid = |text: &str| Refusal::new(Kind::Invalid, text);
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
    if let Some(key) = keys.find(|key| !["sql", "max_rows"].contains(key)) {
        return Err(invalid(&format!("expected the keys sql and max_rows, got {key}")));
    }
    let sql = asked.get("sql").and_then(Value::as_str);
    let sql = sql.ok_or_else(|| invalid(r#"expected {"sql": "SELECT …", "max_rows": 100}"#))?;
    let max_rows = max_rows_of(asked.get("max_rows").unwrap_or(&Value::Null))?;
    let text = Text { id: Uuid::new_v4(), sql: sql.to_owned(), parameters: None };
    let mut rows = statements.run(text, in_use).await?;
    let columns = serde_json::to_vec(&columns(&rows.schema)).unwrap_or_default();
    let mut written = Answer { bytes: [b"{\"columns\":", columns.as_slice()].concat(), num_rows: 0 };
    written.bytes.extend(b",\"rows\":[");
    let mut is_truncated = false;
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let wanted = batch.num_rows().min(max_rows - written.num_rows);
        written.add(&batch.slice(0, wanted))?;
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

/// Returns the number of rows that a request asks for, up to [`MAX_ROWS`]. Null is [`USUAL_ROWS`].
fn max_rows_of(asked: &Value) -> Result<usize, Refusal> {
    match (asked, asked.as_u64()) {
        (Value::Null, _) => Ok(USUAL_ROWS),
        (_, Some(number)) => Ok(usize::try_from(number).unwrap_or(MAX_ROWS).min(MAX_ROWS)),
        _ => {
            let got: String = asked.to_string().chars().take(MAX_SHOWN_CHARS).collect();
            let text = format!("max_rows: got {got}, expected a whole number, 0 or more");
            Err(Refusal::new(Kind::Invalid, text))
        }
    }
}

/// An answer in JSON, up to some row.
struct Answer {
    bytes: Vec<u8>,
    num_rows: usize,
}

impl Answer {
    fn add(&mut self, batch: &RecordBatch) -> Result<(), ArrowError> {
        let columns = batch.columns().iter().map(Values::new).collect::<Result<Vec<_>, _>>()?;
        for row in 0..batch.num_rows() {
            self.bytes.extend(if self.num_rows > 0 { ",[".bytes() } else { "[".bytes() });
            for (idx, column) in columns.iter().enumerate() {
                self.bytes.extend((idx > 0).then_some(b','));
                self.bytes.extend(column.value(row));
            }
            self.bytes.push(b']');
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_one_file_with_one_script_and_one_style() {
        for element in ["script", "style"] {
            assert_eq!(PAGE.matches(&format!("<{element}")).count(), 1, "{element}");
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
