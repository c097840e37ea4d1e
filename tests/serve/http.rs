//! The requests of the page, and those of the people who run the server.

use serde_json::{Value, json};

use crate::server::{NUM_LINES, Response, SCRIPT, Server};

#[test]
fn the_page_allows_no_script_but_its_own() {
    let server = Server::start(&[]);
    let page = server.get("/");
    assert_eq!(page.status, 200);
    let policy = page.head.lines().find(|line| line.starts_with("content-security-policy:"));
    let policy = policy.unwrap();
    for part in ["default-src 'none'", "script-src 'sha256-", "frame-ancestors 'none'", "base-uri"] {
        assert!(policy.contains(part), "{part} in {policy}");
    }
    assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
    assert!(page.head.contains("x-content-type-options: nosniff"));
    assert_eq!(server.get("/nothing").status, 404);
    assert_eq!(server.get("/query").status, 405);
}

#[test]
fn statements_have_rows_in_json() {
    let server = Server::start(&[]);
    let answer = server.query("SELECT 1 AS one, NULL AS nothing, 'é\"\\' AS text, 1.5 AS x, [1, 2] AS list, 2 AS one2");
    let json = answer.json();
    assert_eq!(json["rows"], json!([[1, null, "é\"\\", 1.5, [1, 2], 2]]));
    assert_eq!(json["columns"][2], json!({"name": "text", "type": "Utf8"}));
    assert_eq!(json["truncated"], false);
    let sql = "SELECT {a: 1, b: ['x\ny']} AS s, 9007199254740993 AS n, 1 AS x, NULL AS y";
    let nested = server.query(sql);
    assert_eq!(nested.json()["rows"], json!([[{"a": 1, "b": ["x\ny"]}, 9_007_199_254_740_993_i64, 1, null]]));
    assert!(answer.head.contains("content-type: application/json"));
    assert!(answer.head.contains("nosniff"));
    let none = server.query("SELECT * FROM notes WHERE false").json();
    assert_eq!((none["rows"].clone(), none["columns"][1]["name"].clone()), (json!([]), "path".into()));
    // HTML stays a text.
    let script = server.query("SELECT text FROM notes WHERE path LIKE '%script.html'").json();
    assert_eq!(script["rows"][0][0], format!("power {SCRIPT} loss"));

    let head = "POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let body = json!({"sql": "SELECT doc_id FROM lines", "max_rows": 2500}).to_string();
    let some = server.request(head, &body).json();
    assert_eq!(some["rows"].as_array().unwrap().len(), 2500);
    assert_eq!(some["truncated"], true);
    let usual = server.query("SELECT doc_id FROM lines").json();
    assert_eq!(usual["rows"].as_array().unwrap().len(), 1000);

    let null = server.request(head, r#"{"sql": "SELECT doc_id FROM lines", "max_rows": null}"#);
    assert_eq!(null.json()["rows"].as_array().unwrap().len(), 1000);
    for wrong in ["\"many\"", "-1", "1.5", "[]", "true"] {
        let body = format!(r#"{{"sql": "SELECT 1", "max_rows": {wrong}}}"#);
        let refused = server.request(head, &body);
        assert_eq!(refused.status, 400, "{wrong}");
        let text = format!("max_rows: got {wrong}, expected a whole number, 0 or more");
        assert_eq!(refused.json()["error"], text);
    }

    let unknown = r#"{"sql": "SELECT 1", "timeout": 1}"#;
    let deep = "[".repeat(100_000);
    for body in ["", "[]", "{}", r#"{"sql": 1}"#, unknown, "\u{0}", &deep] {
        let refused = server.request(head, body);
        assert_eq!(refused.status, 400, "{body:.20}");
        assert!(refused.json()["error"].is_string());
    }
    let error = server.query("SELECT * FROM nobody");
    assert!(error.status == 400 && error.json()["error"].as_str().unwrap().contains("nobody"));
    // Refusals name options of this command only.
    assert_eq!(server.query("DROP TABLE notes").status, 403);
    let plain = server.query("SELECT * FROM read_text('notes.tadoc')");
    let expected = "the server refuses read_text; it reads corpora only";
    assert_eq!((plain.status, &plain.json()["error"]), (403, &expected.into()));
    let place = server.query("SELECT * FROM documents('/etc/hosts.tadoc')");
    let text = place.json()["error"].as_str().unwrap().to_owned();
    assert!(text.ends_with("; start it with --allow LOCATION to allow the place"), "{text}");
}

/// Sends a request to `/query`.
fn ask(server: &Server, body: &Value) -> Response {
    let head = "POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    server.request(head, &body.to_string())
}

#[test]
fn parameters_are_values_and_never_statements() {
    let server = Server::start(&[]);
    let count = "SELECT count(*) AS n FROM notes WHERE path LIKE $path AND doc_id >= $from";
    let rows = |parameters: Value| ask(&server, &json!({ "sql": count, "parameters": parameters })).json();
    assert_eq!(rows(json!({ "path": "%note1%", "from": 0 }))["rows"], json!([[10]]));
    for hostile in ["' OR true --", "%' OR '1'='1", "'; DROP TABLE notes; --", "\\' OR 1=1 --"] {
        assert_eq!(rows(json!({ "path": hostile, "from": 0 }))["rows"], json!([[0]]), "{hostile}");
    }
    let listed = json!({ "sql": "SELECT $1 AS a, $2 AS b, $3 AS c, $4 AS d", "parameters": ["it's", 1.5, true, null] });
    assert_eq!(ask(&server, &listed).json()["rows"], json!([["it's", 1.5, true, null]]));
    let large = json!({ "sql": "SELECT $n = 18446744073709551615 AS n", "parameters": { "n": u64::MAX } });
    assert_eq!(ask(&server, &large).json()["rows"], json!([[true]]));
    // Arguments of functions take them, too, and so places are refused.
    let hits =
        json!({ "sql": "SELECT count(*) FROM search($c, $q)", "parameters": { "c": "notes", "q": "\"power loss\"" } });
    assert_eq!(ask(&server, &hits).json()["rows"], json!([[40]]));
    let place = json!({ "sql": "SELECT count(*) FROM search($c, 'x')", "parameters": { "c": "/etc/x.tadoc" } });
    assert_eq!(ask(&server, &place).status, 403);
    for (parameters, told) in [
        (json!({ "path": "x" }), "from"),
        (json!({ "path": "x", "from": 0, "to": 1 }), "to"),
        (json!({ "path": ["x"], "from": 0 }), "expected a text"),
        (json!("x"), "expected an object"),
    ] {
        let refused = ask(&server, &json!({ "sql": count, "parameters": parameters }));
        assert_eq!(refused.status, 400, "{parameters}");
        assert!(refused.json()["error"].as_str().unwrap().contains(told), "{}", refused.body);
    }
}

#[test]
fn rows_come_as_objects_and_as_files() {
    let server = Server::start(&[]);
    let get = |sql: &str, format: &str| ask(&server, &json!({ "sql": sql, "format": format }));
    let sql = "SELECT doc_id, path AS \"a \"\"b\"\"\" FROM notes WHERE doc_id < 2 ORDER BY doc_id";
    let objects = get(sql, "objects").json();
    assert_eq!(objects[0], json!({ "doc_id": 0, "a \"b\"": "note00.txt" }));
    assert_eq!(objects.as_array().unwrap().len(), 2);
    assert_eq!(get("SELECT 1 AS n WHERE false", "objects").json(), json!([]));
    let twice = get("SELECT a.doc_id, b.doc_id FROM notes a JOIN notes b USING (path)", "objects");
    assert!(twice.status == 400 && twice.body.contains("two columns have the name doc_id"), "{}", twice.body);
    // A list of objects is whole, unless the client asks for a part.
    let many = get("SELECT doc_id FROM lines", "objects");
    assert!(many.status == 400 && many.body.contains("more than 10,000 rows"), "{}", many.body);
    let some = ask(&server, &json!({ "sql": "SELECT doc_id FROM lines", "format": "objects", "max_rows": 7 }));
    assert_eq!(some.json().as_array().unwrap().len(), 7);

    let csv = get("SELECT 1 AS n, 'a,\"b\"' AS t, [1, NULL] AS l, NULL AS x", "csv");
    assert!(csv.head.contains("content-type: text/csv; charset=utf-8") && csv.head.contains("nosniff"));
    assert_eq!(unchunked(&csv.body), "n,t,l,x\n1,\"a,\"\"b\"\"\",\"[1,null]\",\n");
    let all = get("SELECT doc_id FROM lines", "csv");
    assert_eq!(unchunked(&all.body).lines().count() as u64, NUM_LINES + 1);
    let part = ask(&server, &json!({ "sql": "SELECT doc_id FROM lines", "format": "csv", "max_rows": 3 }));
    assert_eq!(unchunked(&part.body).lines().count(), 4);
    // A file that fails in the middle has no end.
    let failing = "SELECT 1 / (doc_id - 19000) FROM (SELECT doc_id FROM lines ORDER BY doc_id)";
    let broken = get(failing, "csv");
    assert!(broken.status != 200 || !broken.body.ends_with("\r\n0\r\n\r\n"), "{:.100}", broken.body);

    // What is refused is refused in each form.
    for format in ["json", "objects", "csv", "arrow"] {
        for (sql, status) in [
            ("SELECT text FROM documents('/etc/hosts.tadoc')", 403),
            ("SELECT * FROM read_text('notes/*')", 403),
            ("SELECT * FROM extract('../notes.tadoc', 0, 0, 9)", 403),
            ("COPY (SELECT 1) TO 'x.csv'", 403),
            ("DROP TABLE notes", 403),
            ("SELECT * FROM nobody", 400),
        ] {
            let refused = get(sql, format);
            assert_eq!(refused.status, status, "{format} {sql}: {}", refused.body);
            assert!(refused.json()["error"].is_string(), "{format} {sql}");
        }
    }
    let wrong = get("SELECT 1", "xml");
    assert!(wrong.status == 400 && wrong.body.contains("expected json, objects, csv or arrow"), "{}", wrong.body);
}

/// Returns the content of a body in chunks.
fn unchunked(mut body: &str) -> String {
    let mut content = String::new();
    while let Some((length, rest)) = body.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        content.push_str(&rest[..length]);
        body = &rest[length + 2..];
        if length == 0 {
            break;
        }
    }
    content
}

#[test]
fn health_and_metrics_are_there() {
    let server = Server::start(&[]);
    assert_eq!(server.get("/healthz").body, "ok\n");
    server.query("SELECT doc_id FROM notes");
    server.query("SELEC");
    assert_eq!(server.metric("tadoc_statements_total{outcome=\"done\"}"), 1.0);
    assert_eq!(server.metric("tadoc_statements_total{outcome=\"invalid\"}"), 1.0);
    assert_eq!(server.metric("tadoc_rows_total"), 41.0);
    assert_eq!(server.metric("tadoc_statements"), 0.0);
    assert_eq!(server.metric("tadoc_statement_seconds_count"), 2.0);
    let metrics = server.get("/metrics");
    assert!(metrics.head.contains("text/plain; version=0.0.4"));
    for line in metrics.body.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("tadoc_") && value.parse::<f64>().is_ok(), "{line}");
    }
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let server = Server::start(&[]);
    let listen = format!("127.0.0.1:{}", server.port);
    let ran = server.folder.run(&["serve", "--listen", &listen, "notes.tadoc"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.starts_with(&format!("error: listening at {listen}: ")), "{}", ran.stderr);
    let ran = server.folder.run(&["serve", "--listen", "127.0.0.1:0", "missing.tadoc"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("missing.tadoc"), "{}", ran.stderr);
    let ran = server.folder.run(&["serve", "--listen", "127.0.0.1:0", "notes.tadoc", "notes.tadoc"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("write NAME=notes.tadoc"), "{}", ran.stderr);
    assert_eq!(server.folder.run(&["serve"]).status, 2);
}
