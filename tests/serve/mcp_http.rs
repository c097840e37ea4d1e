//! `tadoc mcp --http`: an agent asks corpora with the client of the protocol's SDK, over HTTP; and requests that no
//! agent sends.
//!
//! ```text
//! client of the SDK ─▶ socket of the test ─▶ 127.0.0.1:PORT/mcp
//! ```
//!
//! The client of the SDK that needs no other version of reqwest speaks to a socket, so the test passes its bytes on.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rmcp::model::{CallToolRequestParams, ReadResourceRequestParams, ResourceContents};
use rmcp::service::RunningService;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::transport::{StreamableHttpClientTransport, UnixSocketHttpClient};
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use tokio::io::copy_bidirectional;
use tokio::net::UnixListener;

use crate::server::{Response, Server, corpora};

/// A statement that runs for hours.
const ENDLESS: &str =
    "SELECT count(*) FROM range(100000) AS a(x), range(100000) AS b(y), range(1000) AS c(z) WHERE x + y = z";

fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Server {
    let mcp = ["mcp", "--http", "127.0.0.1:0", "notes.tadoc", "lines.tadoc"];
    Server::running(corpora(), &[&mcp, arguments].concat(), variables)
}

/// Passes connections of a socket on to `port`, and returns the path of the socket.
fn passed_on(server: &Server) -> PathBuf {
    let path = server.folder.join("mcp.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let port = server.port;
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut server = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                // A side that closes early ends the copy.
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    path
}

async fn client(server: &Server, token: Option<&str>) -> Result<RunningService<RoleClient, ()>, String> {
    let uri = format!("http://127.0.0.1:{}/mcp", server.port);
    let http = UnixSocketHttpClient::new(passed_on(server).to_str().unwrap(), &uri);
    let mut config = StreamableHttpClientTransportConfig::with_uri(uri);
    if let Some(token) = token {
        config = config.auth_header(token);
    }
    let transport = StreamableHttpClientTransport::with_client(http, config);
    ().serve(transport).await.map_err(|error| error.to_string())
}

/// Calls a tool, and returns the texts of its answer, or of its error.
async fn call(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: Value,
) -> Result<Vec<String>, String> {
    let arguments = arguments.as_object().cloned().unwrap();
    let result = client.call_tool(CallToolRequestParams::new(tool).with_arguments(arguments)).await.unwrap();
    let texts: Vec<String> = result.content.iter().map(|block| block.as_text().unwrap().text.clone()).collect();
    if result.is_error == Some(true) { Err(texts.concat()) } else { Ok(texts) }
}

/// Sends a call of the tool `sql` with the lines `head`.
fn post(server: &Server, head: &str) -> Response {
    let accept = "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n";
    let head = format!("POST /mcp HTTP/1.1\r\n{accept}mcp-protocol-version: 2025-06-18\r\n{head}");
    server.request(&head, &call_of("SELECT 1 AS one"))
}

fn call_of(statement: &str) -> String {
    let params = json!({"name": "sql", "arguments": {"statement": statement}});
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_asks_over_http() {
    let server = start(&[], &[]);
    let agent = client(&server, None).await.unwrap();
    assert_eq!(agent.peer_info().unwrap().server_info.as_ref().unwrap().name, "tadoc");
    let tools = agent.list_all_tools().await.unwrap();
    assert_eq!(tools.len(), 8);
    let question = json!({"corpus": "notes", "query": "\"power LOSS\" hall", "glob": "note0?.txt"});
    let found = call(&agent, "search", question).await.unwrap();
    assert_eq!(found[0].lines().count(), 10);
    assert_eq!(found[1], "rows 1 to 10, which are all");
    let found = call(&agent, "read", json!({"corpus": "notes", "path": "note11.txt"})).await.unwrap();
    assert_eq!(found[0], "note 11: power loss in hall 4, then power failure again");
    let refused = call(&agent, "read", json!({"corpus": "notes", "path": "no.txt"})).await.unwrap_err();
    assert!(refused.contains("no document of notes has the path no.txt"), "{refused}");
    let read = agent.read_resource(ReadResourceRequestParams::new("tadoc:///notes/note11.txt")).await.unwrap();
    let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else { panic!("{read:?}") };
    assert_eq!(*text, found[0]);
    // Many questions at a time.
    let ask = |n: u64| {
        let statement = format!("SELECT text FROM lines WHERE doc_id = {n}");
        call(&agent, "sql", json!({ "statement": statement }))
    };
    let answers = futures::future::join_all((0..20).map(ask)).await;
    for (n, answer) in answers.into_iter().enumerate() {
        assert!(answer.unwrap()[0].contains(&format!("line {n} says")));
    }
    agent.cancel().await.unwrap();
    server.ask_to_stop();
    let (status, rest) = server.wait();
    assert!(status.success(), "{rest}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_over_http_is_in_safe_mode() {
    let server = start(&[], &[]);
    server.folder.write("secret.txt", "s3cr3t");
    let agent = client(&server, None).await.unwrap();
    for statement in [
        "CREATE TABLE t AS SELECT 1",
        "COPY (SELECT 1) TO 'x.csv'",
        "DROP TABLE notes",
        "SET datafusion.execution.batch_size = 1",
        "SELECT * FROM read_text('secret.txt')",
        "SELECT * FROM 'secret.txt'",
    ] {
        let refused = call(&agent, "sql", json!({ "statement": statement })).await.unwrap_err();
        assert!(!refused.is_empty() && !refused.contains("s3cr3t"), "{statement}: {refused}");
    }
    assert!(!server.folder.join("x.csv").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_token_opens_the_server() {
    let server = start(&[], &[("TADOC_TOKEN", "opensesame")]);
    assert!(client(&server, None).await.is_err());
    fs::remove_file(server.folder.join("mcp.sock")).unwrap();
    assert!(client(&server, Some("sesame")).await.is_err());
    fs::remove_file(server.folder.join("mcp.sock")).unwrap();
    let agent = client(&server, Some("opensesame")).await.unwrap();
    let one = call(&agent, "sql", json!({"statement": "SELECT 1 AS one"})).await.unwrap();
    assert_eq!(one[0], "{\"one\":1}\n");
    assert_eq!(post(&server, "host: localhost\r\n").status, 401);
    assert_eq!(server.get("/healthz").body, "ok\n");
    // With a token a name of another machine is served, which may be that of this one.
    let named = post(&server, "host: notes.example\r\nauthorization: Bearer opensesame\r\n");
    assert_eq!(named.status, 200, "{named:?}");
}

/// DNS rebinding: a page that a browser shows must not reach the server, by whatever name.
#[test]
fn requests_of_pages_are_refused() {
    let server = start(&[], &[]);
    let local = format!("host: 127.0.0.1:{}\r\n", server.port);
    let answered = post(&server, &local);
    assert_eq!(answered.status, 200, "{answered:?}");
    assert!(answered.head.contains("application/json") && answered.body.contains(r#"{\"one\":1}"#), "{answered:?}");
    let origins = ["http://evil.example", "null", &format!("http://127.0.0.1:{}", server.port), "file://"];
    for origin in origins {
        let refused = post(&server, &format!("{local}origin: {origin}\r\n"));
        assert_eq!(refused.status, 403, "{origin}: {refused:?}");
    }
    for host in ["evil.example", "evil.example:8817", "localhost.evil.example", "127.0.0.1.evil.example"] {
        let refused = post(&server, &format!("host: {host}\r\n"));
        assert_eq!(refused.status, 403, "{host}: {refused:?}");
    }
    // A form of a page of another site can send no JSON without a preflight, which is refused, too.
    let form = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
                content-type: text/plain\r\n";
    assert_eq!(server.request(form, &call_of("SELECT 1")).status, 415);
    let preflight = "OPTIONS /mcp HTTP/1.1\r\nhost: localhost\r\norigin: http://evil.example\r\n\
                     access-control-request-method: POST\r\n";
    let refused = server.request(preflight, "");
    assert!(refused.status >= 400 && !refused.head.contains("access-control-allow"), "{refused:?}");
    assert_eq!(server.get("/mcp").status, 405);
    assert_eq!(server.get("/").status, 404);
}

#[test]
fn requests_are_bounded_and_rubbish_is_refused() {
    let server = start(&["--timeout", "1s"], &[]);
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\n\
                content-type: application/json\r\n";
    let long = call_of(&"x".repeat(2 << 20));
    assert_eq!(server.request(head, &long).status, 413);
    for rubbish in ["", "{", "[]", "{\"jsonrpc\": \"2.0\"}", "\u{0}"] {
        let refused = server.request(head, rubbish);
        assert!((400..500).contains(&refused.status), "{rubbish:?}: {refused:?}");
    }
    let late = server.request(head, &call_of(ENDLESS));
    assert!(late.status == 200 && late.body.contains("isError\":true") && late.body.contains("--timeout"), "{late:?}");
    assert_eq!(post(&server, "host: localhost\r\n").status, 200);
}

#[test]
fn a_client_that_goes_away_ends_its_statement() {
    let server = start(&["--timeout", "10m"], &[]);
    let mut stream = TcpStream::connect(("127.0.0.1", server.port)).unwrap();
    let body = call_of(ENDLESS);
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\naccept: application/json, text/event-stream\r\ncontent-type: \
         application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let busy_for = |time: Duration| {
        let before = cpu_ticks(server.id());
        std::thread::sleep(time);
        cpu_ticks(server.id()) - before
    };
    let deadline = Instant::now() + Duration::from_secs(60);
    while busy_for(Duration::from_millis(500)) < 15 {
        assert!(Instant::now() < deadline, "the statement does not begin");
    }
    drop(stream);
    while busy_for(Duration::from_millis(500)) > 2 {
        assert!(Instant::now() < deadline, "the statement does not end");
    }
    assert_eq!(post(&server, "host: localhost\r\n").status, 200);
}

/// Returns the time on processors of a process, in ticks of 10 ms.
fn cpu_ticks(process: u32) -> u64 {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[test]
fn other_machines_need_a_token() {
    let folder = corpora();
    let without_token = folder.run(&["mcp", "--http", "0.0.0.0:0", "notes.tadoc"]);
    assert!(
        without_token.status == 2 && without_token.stderr.contains("a token is needed"),
        "{}",
        without_token.stderr
    );
    let without_http = folder.run(&["mcp", "--token-file", "x", "notes.tadoc"]);
    assert!(without_http.status == 2 && without_http.stderr.contains("--http"), "{}", without_http.stderr);
}
