//! `tadoc mcp`: an agent asks corpora with the client of the protocol's SDK, over standard input and output.

use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams, ResourceContents};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use testkit::command::{Folder, Ran};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::server::{NUM_LINES, corpora};

const TOOLS: [&str; 8] = ["search", "grep", "kwic", "rank", "read", "list_documents", "templates", "sql"];

/// A statement that runs for hours.
const ENDLESS: &str =
    "SELECT count(*) FROM range(100000) AS a(x), range(100000) AS b(y), range(1000) AS c(z) WHERE x + y = z";

/// An agent, and the server that it has started.
struct Agent {
    client: RunningService<RoleClient, ()>,
    server: Child,
    folder: Folder,
}

/// The answer of a tool: rows or a text, and the note behind it.
#[derive(Debug)]
struct Told {
    is_error: bool,
    text: String,
    note: String,
}

impl Told {
    fn rows(&self) -> Vec<Value> {
        assert!(!self.is_error, "{self:?}");
        self.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns a column of the rows.
    fn column(&self, name: &str) -> Vec<Value> {
        self.rows().iter().map(|row| row[name].clone()).collect()
    }
}

impl Agent {
    async fn start(arguments: &[&str]) -> Self {
        Self::start_in(corpora(), arguments).await
    }

    async fn start_in(folder: Folder, arguments: &[&str]) -> Self {
        let mut command = Command::from(folder.command(&[&["mcp"], arguments].concat()));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut server = command.spawn().unwrap();
        let streams = (server.stdout.take().unwrap(), server.stdin.take().unwrap());
        let client = ().serve(streams).await.unwrap();
        Self { client, server, folder }
    }

    async fn call(&self, tool: &'static str, arguments: Value) -> Told {
        let arguments = arguments.as_object().cloned().unwrap();
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = self.client.call_tool(request).await.unwrap();
        let is_error = result.is_error.unwrap_or(false);
        let mut texts = result.content.iter().map(|block| block.as_text().unwrap().text.clone());
        let first = texts.next().unwrap_or_default();
        match texts.next() {
            Some(note) => Told { is_error, text: first, note },
            None => Told { is_error, text: String::new(), note: first },
        }
    }

    /// Asks one corpus of two.
    async fn ask(&self, tool: &'static str, corpus: &str, mut arguments: Value) -> Told {
        arguments["corpus"] = corpus.into();
        self.call(tool, arguments).await
    }

    /// Returns the error of a call.
    async fn refused(&self, tool: &'static str, arguments: Value) -> String {
        let told = self.call(tool, arguments).await;
        assert!(told.is_error, "{told:?}");
        told.note
    }

    /// Ends the input of the server, and waits for it.
    async fn leave(mut self) -> ExitStatus {
        self.client.cancel().await.unwrap();
        timeout(Duration::from_secs(60), self.server.wait()).await.unwrap().unwrap()
    }
}

#[tokio::test]
async fn an_agent_learns_what_there_is() {
    let agent = Agent::start(&["notes.tadoc", "long=lines.tadoc"]).await;
    let info = agent.client.peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "tadoc");
    assert!(info.instructions.as_deref().unwrap().contains("notes, long"));
    let tools = agent.client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, TOOLS);
    for tool in &tools {
        assert!(tool.description.as_deref().unwrap().len() > 50, "{}", tool.name);
        assert_eq!(tool.annotations.as_ref().unwrap().read_only_hint, Some(true));
        let schema = Value::Object(tool.input_schema.as_ref().clone());
        assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)));
        for (name, property) in schema["properties"].as_object().unwrap() {
            let described = property["description"].as_str().unwrap_or_default();
            assert!(described.len() > 10 && property["type"].is_string(), "{} {name}", tool.name);
        }
        let corpus = &schema["properties"]["corpus"]["enum"];
        assert!(tool.name == "sql" || *corpus == json!(["notes", "long"]), "{}: {corpus}", tool.name);
    }
    let required = |name: &str| tools.iter().find(|tool| tool.name == name).unwrap().input_schema["required"].clone();
    assert_eq!(required("search"), json!(["query", "corpus"]));
    assert_eq!(required("sql"), json!(["statement"]));
    assert!(agent.leave().await.success());
}

#[tokio::test]
async fn each_tool_answers() {
    let agent = Agent::start(&["notes.tadoc", "lines.tadoc"]).await;
    let found = agent.ask("search", "notes", json!({"query": "\"power LOSS\" hall", "glob": "note0?.txt"})).await;
    assert_eq!(found.rows().len(), 10);
    let first = json!({"path": "note00.txt", "doc_id": 0, "hits": 2,
        "snippet": "note 0: **power loss** in **hall** 0, then power failure again"});
    assert_eq!(found.rows()[0], first);
    assert_eq!(found.note, "rows 1 to 10, which are all");

    let found = agent.ask("grep", "notes", json!({"pattern": "^NOTE 1[12]:", "ignore_case": true})).await;
    let line = "note 11: power loss in hall 4, then power failure again";
    assert_eq!(found.rows()[0], json!({"path": "note11.txt", "doc_id": 11, "line_number": 1, "line": line}));
    assert_eq!(found.rows().len(), 2);

    let found = agent.ask("kwic", "notes", json!({"query": "failure", "width": 2, "limit": 1})).await;
    let row = json!({"path": "note00.txt", "doc_id": 0, "left": "then power ", "match": "failure", "right": " again"});
    assert_eq!(found.rows(), [row]);
    assert_eq!(found.note, "rows 1 to 1; there are more: call again with offset=1");

    let found = agent.ask("rank", "notes", json!({"query": "hall OR onerror", "limit": 2})).await;
    assert_eq!(found.column("path"), ["script.html", "note00.txt"]);
    assert!(found.rows()[0]["snippet"].as_str().unwrap().contains("**onerror**"));
    assert!(found.rows()[0]["score"].as_f64() > found.rows()[1]["score"].as_f64());

    let found = agent.ask("read", "notes", json!({"path": "note11.txt"})).await;
    assert_eq!(found.text, line);
    assert_eq!(found.note, "note11.txt (doc_id 11): lines 1 to 1, bytes 0 to 55 of 55, the end of the document");

    let found = agent.ask("list_documents", "notes", json!({"glob": "*.html"})).await;
    assert_eq!(found.column("path"), ["script.html"]);
    assert!(found.rows()[0]["bytes"].as_u64().unwrap() > 50);

    let found = agent.ask("templates", "lines", json!({"limit": 1})).await;
    assert_eq!(found.rows()[0]["template"], "line <*> says <*> of <*>");
    assert_eq!(found.rows()[0]["count"], NUM_LINES);
    assert_eq!(found.rows()[0]["first_ts"], Value::Null);

    let twice = "SELECT a.doc_id, b.doc_id, c.doc_id AS n FROM notes AS a JOIN notes AS b ON a.doc_id = b.doc_id \
                 JOIN lines AS c ON a.doc_id = c.doc_id WHERE a.doc_id = 7";
    let found = agent.call("sql", json!({"statement": twice})).await;
    assert_eq!(found.rows(), [json!({"doc_id": 7, "doc_id_2": 7, "n": 7})]);
    assert!(agent.leave().await.success());
}

#[tokio::test]
async fn a_query_with_a_doubtful_word_has_a_notice() {
    let agent = Agent::start(&["notes.tadoc"]).await;
    let told = agent.call("search", json!({"query": "power or loss"})).await;
    assert!(told.note.starts_with("no rows\nnotice: ") && told.note.contains("or"), "{}", told.note);
}

#[tokio::test]
async fn long_answers_are_cut_and_go_on() {
    let agent = Agent::start(&["lines.tadoc"]).await;
    // The pages of each tool are one list without gaps.
    for (tool, question) in [
        ("search", json!({"query": "says", "limit": 7})),
        ("grep", json!({"pattern": "says 1", "limit": 7})),
        ("kwic", json!({"query": "says", "limit": 7})),
        ("rank", json!({"query": "says", "limit": 7})),
        ("list_documents", json!({"limit": 7})),
        ("sql", json!({"statement": "SELECT doc_id FROM lines ORDER BY doc_id DESC", "limit": 7})),
    ] {
        let mut longer = question.clone();
        longer["limit"] = 14.into();
        let whole = agent.call(tool, longer).await;
        let first = agent.call(tool, question.clone()).await;
        assert_eq!(first.note, "rows 1 to 7; there are more: call again with offset=7", "{tool}");
        let mut next = question;
        next["offset"] = 7.into();
        let second = agent.call(tool, next).await;
        assert!(second.note.starts_with("rows 8 to 14; there are more"), "{tool}: {}", second.note);
        assert_eq!(format!("{}{}", first.text, second.text), whole.text, "{tool}");
    }
    let last = agent.call("list_documents", json!({"offset": NUM_LINES - 2})).await;
    assert_eq!(last.note, format!("rows {} to {NUM_LINES}, which are the last", NUM_LINES - 1));
    let none = agent.call("list_documents", json!({"offset": NUM_LINES})).await;
    assert_eq!((none.text.as_str(), none.note), ("", format!("no rows from offset={NUM_LINES} on")));

    let few = agent.call("grep", json!({"pattern": "says", "limit": 1000, "max_bytes": 500})).await;
    let num_rows = few.rows().len();
    assert!(few.text.len() <= 500 && num_rows > 3, "{}", few.text);
    assert!(few.note.ends_with(&format!("max_bytes=500 is full: call again with offset={num_rows}")), "{}", few.note);
    let wide = "SELECT repeat('word ', 100000) AS long, 7 AS n";
    let cut = agent.call("sql", json!({"statement": wide, "max_bytes": 1000})).await;
    assert!(cut.text.len() <= 1000 && cut.rows()[0]["n"] == 7, "{}", cut.text);
    assert!(cut.rows()[0]["long"].as_str().unwrap().ends_with('…'));
    assert!(cut.note.contains("ask for a larger max_bytes"), "{}", cut.note);
    let many: Vec<String> = (0..100).map(|n| format!("{n} AS column{n}")).collect();
    let refused =
        agent.refused("sql", json!({"statement": format!("SELECT {}", many.join(", ")), "max_bytes": 500})).await;
    assert!(refused.contains("ask for fewer columns"), "{refused}");
}

#[tokio::test]
async fn documents_are_read_in_parts() {
    let folder = corpora();
    let text: String = (1..=300).map(|n| format!("this is line {n}\n")).collect();
    folder.write("book/part.txt", &text);
    folder.write("book/wide.txt", "é".repeat(1000));
    folder.ok(&["ingest", "book", "-o", "book.tadoc"]);
    let agent = Agent::start_in(folder, &["book.tadoc", "lines.tadoc"]).await;
    let part = agent.ask("read", "book", json!({"path": "part.txt", "line": 10, "lines": 2})).await;
    assert_eq!(part.text, "this is line 10\nthis is line 11\n");
    assert!(part.note.contains("lines 10 to 11") && part.note.ends_with("go on with line=12"), "{}", part.note);
    let part = agent.ask("read", "book", json!({"path": "part.txt", "max_bytes": 500})).await;
    assert!(part.text.len() <= 500 && part.text.ends_with('\n'));
    assert!(part.note.contains("go on with line="), "{}", part.note);
    let part = agent.ask("read", "book", json!({"path": "wide.txt", "max_bytes": 501})).await;
    assert_eq!(part.text, "é".repeat(250));
    assert!(part.note.ends_with("go on with byte_offset=500"), "{}", part.note);
    let part = agent.ask("read", "book", json!({"doc_id": 1, "byte_offset": 1998})).await;
    assert_eq!(part.text, "é");

    let lines = agent.ask("read", "lines", json!({"doc_id": 100, "around": 2})).await;
    assert_eq!(lines.column("doc_id"), [98, 99, 100, 101, 102]);
    assert_eq!(lines.rows()[2]["text"], "line 100 says 3 of 1");
    // A path whose documents are lines is a file again.
    let file = agent.ask("read", "lines", json!({"path": "lines.txt", "line": 101, "lines": 2})).await;
    assert_eq!(file.text, "line 100 says 3 of 1\nline 101 says 4 of 1\n");
    let told = "lines.txt: lines 101 to 102, each a document (doc_id 100 to 101); go on with line=103";
    assert_eq!(file.note, told);
    let file = agent.ask("read", "lines", json!({"path": "lines.txt", "line": 90, "max_bytes": 500})).await;
    assert!(file.text.len() <= 500 && file.text.starts_with("line 89 says ") && file.text.ends_with('\n'));
    let next = 90 + file.text.lines().count();
    assert!(next > 95 && file.note.ends_with(&format!("go on with line={next}")), "{}", file.note);
    let end = agent.ask("read", "lines", json!({"path": "lines.txt", "line": 19_990, "lines": 10000})).await;
    assert!(end.note.ends_with(", the end of the file"), "{}", end.note);
    let behind = agent.refused("read", json!({"corpus": "lines", "path": "lines.txt", "line": 1_000_000})).await;
    assert_eq!(behind, "line: got 1000000, lines.txt has fewer");
    let bytes = agent.refused("read", json!({"corpus": "lines", "path": "lines.txt", "byte_offset": 7})).await;
    assert!(bytes.ends_with("give line, or a doc_id"), "{bytes}");
    let none = agent.refused("read", json!({"corpus": "book", "path": "no.txt"})).await;
    assert!(none.contains("no document of book has the path no.txt; list_documents"), "{none}");
    let behind = agent.refused("read", json!({"corpus": "book", "path": "part.txt", "line": 301})).await;
    assert_eq!(behind, "line: got 301, the document has 300 lines");
}

#[tokio::test]
async fn nothing_is_written_and_nothing_else_is_read() {
    let folder = corpora();
    folder.write("secret.txt", "s3cr3t");
    folder.ok(&["ingest", "secret.txt", "-o", "secret.tadoc"]);
    let before = std::fs::read(folder.join("notes.tadoc")).unwrap();
    let agent = Agent::start_in(folder, &["notes.tadoc"]).await;
    for statement in [
        "CREATE TABLE t AS SELECT 1",
        "COPY (SELECT 1) TO 'x.csv'",
        "INSERT INTO notes (path, text) VALUES ('a', 'b')",
        "DROP TABLE notes",
        "SET datafusion.execution.batch_size = 1",
    ] {
        let refused = agent.refused("sql", json!({"statement": statement})).await;
        assert!(refused.contains("only reads"), "{statement}: {refused}");
    }
    for statement in [
        "SELECT * FROM read_text('secret.txt')",
        "SELECT * FROM 'secret.tadoc'",
        "SELECT * FROM documents('./secret.tadoc')",
        "SELECT * FROM documents('../secret.tadoc')",
        "SELECT * FROM word_count('/etc')",
        "SELECT * FROM word_count('http://127.0.0.1:9/x.tadoc')",
    ] {
        let refused = agent.refused("sql", json!({"statement": statement})).await;
        assert!(!refused.contains("s3cr3t"), "{statement}: {refused}");
    }
    // Neither does an argument lead elsewhere, nor does its text become a part of a statement.
    let refused = agent.refused("grep", json!({"corpus": "secret.tadoc", "pattern": "s"})).await;
    assert_eq!(refused, "corpus: got `secret.tadoc`, expected one of: notes");
    let odd = "x' OR '1'='1";
    assert_eq!(agent.call("search", json!({"query": "power", "glob": odd})).await.note, "no rows");
    agent.call("search", json!({"query": "power'); DROP TABLE notes; --"})).await;
    assert_eq!(agent.call("search", json!({"query": "power", "limit": 100})).await.rows().len(), 41);
    assert_eq!(std::fs::read(agent.folder.join("notes.tadoc")).unwrap(), before);
    assert!(!agent.folder.join("x.csv").exists());
}

#[tokio::test]
async fn wrong_arguments_are_answers_with_a_way_out() {
    let agent = Agent::start(&["notes.tadoc", "lines.tadoc"]).await;
    for (tool, arguments, expected) in [
        ("search", json!({"query": "power"}), "corpus: got nothing, expected one of: notes, lines"),
        ("search", json!({"corpus": "notes"}), "missing field `query`"),
        ("search", json!({"corpus": "notes", "query": 7}), "query: got 7, expected a text"),
        ("search", json!({"corpus": "notes", "query": "a", "top": 1}), "there is no argument `top`; the tool has: "),
        ("search", json!({"corpus": "notes", "query": "a", "limit": 5000}), "limit: got 5000, expected 1 to 1000"),
        ("search", json!({"corpus": "notes", "query": "\"a"}), "query: got a quote that is not closed"),
        ("search", json!({"corpus": "notes", "query": "a", "fold": "soft"}), "fold: got 'soft', expected none, case"),
        ("search", json!({"corpus": "notes", "query": "a", "glob": "{a"}), "glob: `{a`: a `{` is not closed"),
        ("grep", json!({"corpus": "notes", "pattern": "(a"}), "pattern"),
        ("read", json!({"corpus": "notes"}), "expected path or doc_id; list_documents lists them"),
        ("read", json!({"corpus": "notes", "doc_id": 999}), "no document of notes has the number 999"),
        ("sql", json!({"statement": "SELECT x FROM notes"}), "No field named x"),
        ("sql", json!({"statement": "SELEC"}), "no valid SQL"),
        ("sql", json!({"statement": "SELECT 1; SELECT 2"}), "one statement"),
    ] {
        let refused = agent.refused(tool, arguments.clone()).await;
        assert!(refused.contains(expected) && !refused.contains('\n'), "{tool} {arguments}: {refused}");
        assert!(!refused.contains("term_count") && !refused.contains("usage"), "{refused}");
    }
    let unknown = agent.client.call_tool(CallToolRequestParams::new("delete")).await.unwrap_err().to_string();
    assert!(unknown.contains("there is no tool delete; there is search, grep"), "{unknown}");
    let told = agent.ask("sql", "notes", json!({"statement": "SELECT 1"})).await;
    assert!(told.is_error && told.note.starts_with("there is no argument `corpus`"), "{told:?}");
}

#[tokio::test]
async fn a_statement_has_a_time() {
    let agent = Agent::start(&["--timeout", "1s", "notes.tadoc"]).await;
    let refused = agent.refused("sql", json!({"statement": ENDLESS})).await;
    assert!(refused.contains("which is all a statement may take"), "{refused}");
    assert_eq!(agent.call("sql", json!({"statement": "SELECT 1 AS n"})).await.column("n"), [1]);
}

#[tokio::test]
async fn corpora_and_documents_are_resources() {
    let agent = Agent::start(&["my notes=notes.tadoc", "lines.tadoc"]).await;
    let resources = agent.client.list_all_resources().await.unwrap();
    let uris: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
    assert_eq!(uris, ["tadoc:///my%20notes", "tadoc:///lines"]);
    let templates = agent.client.list_all_resource_templates().await.unwrap();
    assert_eq!(templates[0].uri_template, "tadoc:///{corpus}/{+path}");
    let read = async |uri: &str| {
        let result = agent.client.read_resource(ReadResourceRequestParams::new(uri)).await;
        let result = result.map_err(|error| error.to_string())?;
        match result.contents.into_iter().next() {
            Some(ResourceContents::TextResourceContents { text, mime_type, .. }) => {
                let is_document = uri.contains("note00");
                assert_eq!(mime_type.as_deref(), Some(if is_document { "text/plain" } else { "application/x-ndjson" }));
                Ok(text)
            }
            other => Err(format!("{other:?}")),
        }
    };
    assert!(read(uris[0]).await.unwrap().contains("{\"name\":\"documents\",\"value\":\"41\"}"));
    let document = read("tadoc:///my%20notes/note00.txt").await.unwrap();
    assert_eq!(document, "note 0: power loss in hall 0, then power failure again");
    assert!(
        read("tadoc:///my%20notes/no.txt").await.unwrap_err().contains("no document of my notes has the path no.txt")
    );
    assert!(read("tadoc:///secret").await.unwrap_err().contains("expected one of: my notes, lines"));
    assert!(read("file:///etc/passwd").await.unwrap_err().contains("expected tadoc:///CORPUS"));
}

/// Runs the server on `input` to its end.
fn ran(folder: &Folder, input: &[u8]) -> Ran {
    folder.run_with_input(&["mcp", "notes.tadoc"], input)
}

/// Returns the messages of a client that starts, and a call of the tool `sql` with this number.
fn opening(id: u32, statement: &str) -> (String, String) {
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let params = json!({"name": "sql", "arguments": {"statement": statement}});
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params});
    (format!("{initialize}\n{initialized}\n"), format!("{call}\n"))
}

#[test]
fn damaged_requests_do_not_end_the_server() {
    let folder = corpora();
    let (start, call) = opening(9, "SELECT 6 * 7 AS answer");
    let early = r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}"#;
    let mut input = format!("no JSON\n{early}\n{start}").into_bytes();
    for damaged in [
        &b"no JSON"[..],
        b"",
        b"{\"jsonrpc\": \"2.0\", \"id\": 2, \"method\": ",
        b"[]",
        b"\xFF\xFE\x00",
        b"{\"jsonrpc\": \"2.0\"}",
        br#"{"jsonrpc": "2.0", "id": 3, "method": "no/such"}"#,
        br#"{"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": {"arguments": 7}}"#,
        br#"{"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "read", "arguments": [1]}}"#,
    ] {
        input.extend([damaged, b"\n"].concat());
    }
    // Too deep, and then too long.
    input.extend([vec![b'['; 1 << 20], b"\n".to_vec(), vec![b'['; 20 << 20]].concat());
    input.extend(format!("\n{call}").into_bytes());
    let ran = ran(&folder, &input);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    // Standard output has messages and nothing else.
    let messages = String::from_utf8(ran.stdout).unwrap();
    let messages: Vec<Value> = messages.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(messages.iter().all(|message| message["jsonrpc"] == "2.0"), "{messages:?}");
    let answer = messages.iter().find(|message| message["id"] == 9).unwrap();
    assert_eq!(answer["result"]["content"][0]["text"], "{\"answer\":42}\n", "{answer}");
    assert!(messages.iter().any(|message| message["id"] == 3 && message["error"]["code"] == -32601));
}

#[test]
fn a_statement_that_runs_does_not_hold_up_the_end() {
    let (start, call) = opening(2, ENDLESS);
    let ran = ran(&corpora(), format!("{start}{call}").as_bytes());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert_eq!(String::from_utf8(ran.stdout).unwrap().lines().count(), 1);
}

#[test]
fn the_end_of_the_input_ends_the_server() {
    let folder = corpora();
    let early = br#"{"jsonrpc": "2.0", "method": "notifications/initialized"}
{"jsonrpc": "2.0", "id": 1, "result": {}}
"#;
    for input in [&b""[..], b"\n", b"no JSON\n", early] {
        let ran = ran(&folder, input);
        assert_eq!((ran.status, ran.stdout.len()), (0, 0), "{}", ran.stderr);
        assert_eq!(ran.stderr, "answering on standard input and output about notes\n");
    }
    let missing = folder.run(&["mcp", "no.tadoc"]);
    assert!(missing.status == 1 && missing.stderr.starts_with("error: no.tadoc"), "{}", missing.stderr);
    assert_eq!(folder.run(&["mcp"]).status, 2);
    let help = folder.ok(&["mcp", "--help"]);
    assert!(help.contains("claude_desktop_config.json") && help.contains(".vscode/mcp.json"), "{help}");
}
