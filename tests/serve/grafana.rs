//! The provisioned dashboard of `sql/examples/grafana`, asked as Grafana asks: the plugin Infinity over HTTP, and the
//! plugin of Flight SQL. Their texts are made as the plugins make them from variables and macros.

use datafusion::arrow::datatypes::{DataType, TimeUnit};
use serde_json::{Value, json};
use testkit::root;

use crate::server::{Response, SCRIPT, Server, batches, corpora, rows_of};

/// Begin and end of the time that a person chose.
const FROM: &str = "2026-11-28T02:00:00.000Z";
const TO: &str = "2026-11-28T05:00:00.000Z";

/// A server of the corpus `logs`: 10 hours of two files, a line a minute in each.
fn server() -> Server {
    let folder = corpora();
    for (name, text) in [("web", "GET /cart lost"), ("db", SCRIPT)] {
        let line = |n: u64| format!("2026-11-28T{:02}:{:02}:00Z INFO {text} {n}\n", n / 60, n % 60);
        folder.write(&format!("{name}.log"), (0..600).map(line).collect::<String>());
    }
    folder.ok(&["ingest", "web.log", "db.log", "--documents", "lines", "--timestamp", "auto", "-o", "logs.tadoc"]);
    Server::start_in(folder, &["logs.tadoc"], &[])
}

fn dashboard() -> Value {
    let text = std::fs::read_to_string(root().join("sql/examples/grafana/logs.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The choice of all paths.
const ALL: &str = "$__all";

/// Puts the values of variables into a text as Grafana does. The format `doublequote` writes quotes around a value, and
/// leaves the text for *All* as the dashboard has it.
fn interpolated(text: &str, query: &str, path: &str) -> String {
    let quoted = |value: &str| match value {
        ALL => dashboard()["templating"]["list"][1]["allValue"].as_str().unwrap().to_owned(),
        value => format!("\"{}\"", value.replace('"', "\\\"")),
    };
    let text = text.replace("${__from:date:iso}", FROM).replace("${__to:date:iso}", TO);
    let text = text.replace("${__interval_ms}", "1800000");
    let text = text.replace("${query:doublequote}", &quoted(query)).replace("${path:doublequote}", &quoted(path));
    // Grafana would replace every other `$name`, too, or leave it and fail.
    assert!(!text.contains('$'), "{text}");
    text
}

/// Sends the request of a target of the plugin Infinity.
fn ask(server: &Server, target: &Value, query: &str, path: &str) -> Response {
    let options = &target["url_options"];
    assert_eq!((&target["url"], &options["method"]), (&json!("/query"), &json!("POST")));
    assert_eq!(options["body_content_type"], "application/json");
    let body = interpolated(options["data"].as_str().unwrap(), query, path);
    let head = "POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    server.request(head, &body)
}

/// Returns the rows of a target, which have the columns that it declares.
fn rows(server: &Server, target: &Value, query: &str, path: &str) -> Vec<Value> {
    let response = ask(server, target, query, path);
    assert_eq!(response.status, 200, "{}", response.body);
    let rows = response.json().as_array().unwrap().clone();
    for row in &rows {
        for column in target["columns"].as_array().unwrap() {
            let value = &row[column["selector"].as_str().unwrap()];
            let fits = match column["type"].as_str().unwrap() {
                "number" => value.is_number(),
                "timestamp" => {
                    value.as_str().is_some_and(|text| text.starts_with("2026-11-28T") && text.ends_with('Z'))
                }
                _ => value.is_string(),
            };
            assert!(fits, "{column}: {value}");
        }
    }
    rows
}

#[test]
fn the_dashboard_shows_lines_in_a_range_of_time() {
    let server = server();
    let dashboard = dashboard();
    let targets: Vec<&Value> =
        dashboard["panels"].as_array().unwrap().iter().map(|panel| &panel["targets"][0]).collect();
    let variable = &dashboard["templating"]["list"][1]["query"]["infinityQuery"];
    assert_eq!(rows(&server, variable, "", ALL), [json!({ "path": "db.log" }), json!({ "path": "web.log" })]);
    // Six steps of half an hour, with a line a minute of each file.
    let steps = rows(&server, targets[0], "", ALL);
    assert_eq!(steps.len(), 6);
    assert_eq!(steps[0], json!({ "time": "2026-11-28T02:00:00Z", "lines": 60 }));
    let of_query: u64 = rows(&server, targets[0], "lost", ALL).iter().map(|row| row["lines"].as_u64().unwrap()).sum();
    assert_eq!(of_query, 180);
    assert_eq!(rows(&server, targets[1], "", ALL).len(), 2);
    assert_eq!(rows(&server, targets[1], "cart", ALL), rows(&server, targets[1], "", "web.log"));
    let kinds = rows(&server, targets[1], "", "web.log");
    assert_eq!(kinds.len(), 1, "{kinds:?}");
    assert_eq!((&kinds[0]["lines"], &kinds[0]["first"]), (&json!(180), &json!("2026-11-28T02:00:00Z")));
    let lines = rows(&server, targets[2], "onerror", ALL);
    assert_eq!(lines.len(), 180);
    assert!(lines[0]["text"].as_str().unwrap().contains(SCRIPT));
    assert_eq!(lines[0]["time"], "2026-11-28T04:59:00Z");
    // Values of variables are values, whatever they are.
    for hostile in ["%' OR '1'='1", "x\" OR 1", "'; DROP TABLE logs; --"] {
        assert_eq!(rows(&server, targets[2], "", hostile), Vec::<Value>::new(), "{hostile}");
    }
    assert_eq!(ask(&server, targets[0], "' OR 1=1 --", ALL).status, 400);
    assert_eq!(ask(&server, targets[0], "\\", ALL).status, 400);
}

/// Writes a statement as the plugin of Flight SQL does: macros become conditions and steps of 30 minutes.
fn expanded(sql: &str) -> String {
    let bin = "date_bin(interval '1800 second', ts, timestamp '1970-01-01T00:00:00Z')";
    let [from, to] = [FROM, TO].map(|time| time.replace(".000", ""));
    let sql = sql.replace("$__timeFilter(ts)", &format!("ts >= '{from}' AND ts <= '{to}'"));
    sql.replace("$__dateBin(ts)", bin)
}

#[tokio::test(flavor = "multi_thread")]
async fn flight_sql_gives_the_types_that_the_plugin_reads() {
    let server = server();
    let reference = std::fs::read_to_string(root().join("sql/README.md")).unwrap();
    let (_, section) = reference.split_once("\n### Dashboards\n").unwrap();
    let (_, block) = section.split_once("```text\n").unwrap();
    let sql = expanded(block.split("```").next().unwrap().trim().trim_end_matches(';'));
    assert!(!sql.contains('$'), "{sql}");
    let mut client = server.client().await;
    let found = batches(&mut client, &sql).await.unwrap();
    // The plugin takes the number of a time for nanoseconds, and knows few types of numbers.
    let schema = found[0].schema();
    let types: Vec<_> = schema.fields().iter().map(|field| (field.name().as_str(), field.data_type())).collect();
    assert_eq!(types, [("time", &DataType::Timestamp(TimeUnit::Nanosecond, None)), ("lines", &DataType::Int64)]);
    let rows = rows_of(&found);
    // The end belongs to the range of the macro.
    assert_eq!(rows.len(), 7);
    assert_eq!((rows[0].as_str(), rows[6].as_str()), ("2026-11-28T02:00:00|60", "2026-11-28T05:00:00|2"));
    // What the plugin asks to see that the server is there.
    assert_eq!(rows_of(&batches(&mut client, "select 1").await.unwrap()), ["1"]);
}
