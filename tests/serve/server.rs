//! A running server, and simple clients of it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use arrow_flight::FlightInfo;
use arrow_flight::sql::client::FlightSqlServiceClient;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use futures::TryStreamExt;
use serde_json::{Value, json};
use testkit::command::Folder;
use tonic::transport::{Channel, Endpoint};

pub type Client = FlightSqlServiceClient<Channel>;

/// A text that would run in a page that takes it for HTML.
pub const SCRIPT: &str = "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script>";

/// Number of documents of the corpus `lines`.
pub const NUM_LINES: u64 = 20_000;

/// A folder with two corpora. `notes` has a few documents, `lines` has many lines.
pub fn corpora() -> Folder {
    let folder = Folder::for_program(env!("CARGO_BIN_EXE_tadoc"));
    for n in 0..40 {
        let text = format!("note {n}: power loss in hall {}, then power failure again", n % 7);
        folder.write(&format!("notes/note{n:02}.txt"), text);
    }
    folder.write("notes/script.html", format!("power {SCRIPT} loss"));
    let lines = (0..NUM_LINES).map(|n| format!("line {n} says {} of {}\n", n % 97, n / 97));
    folder.write("lines.txt", lines.collect::<String>());
    folder.ok(&["ingest", "notes", "-o", "notes.tadoc"]);
    folder.ok(&["ingest", "lines.txt", "--documents", "lines", "-o", "lines.tadoc"]);
    folder
}

/// A server. It is killed when this is dropped.
pub struct Server {
    pub folder: Folder,
    pub port: u16,
    child: Child,
    stderr: BufReader<ChildStderr>,
}

impl Server {
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_in(corpora(), arguments, &[])
    }

    pub fn start_in(folder: Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        Self::start_at("127.0.0.1:0", folder, arguments, variables)
    }

    /// Variant of [`Server::start_in`] that listens at `address`.
    pub fn start_at(address: &str, folder: Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let arguments = [&["notes.tadoc", "lines.tadoc"], arguments].concat();
        Self::serving(address, folder, &arguments, variables)
    }

    /// Serves the corpora among `arguments`, and no others.
    pub fn serving(address: &str, folder: Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let serve = ["serve", "--listen", address];
        Self::running(folder, &[&serve, arguments].concat(), variables)
    }

    /// Starts `tadoc` with `arguments`. The first line that it notes ends with its address, and perhaps a path.
    pub fn running(folder: Folder, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = folder.command(arguments);
        command.env_remove("TADOC_TOKEN").envs(variables.iter().copied());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        let port = line.trim().rsplit(':').next().and_then(|port| port.split('/').next()?.parse().ok());
        let port = port.unwrap_or_else(|| panic!("no server: {line}"));
        Self { folder, port, child, stderr }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub async fn client(&self) -> Client {
        let endpoint = Endpoint::new(format!("http://127.0.0.1:{}", self.port)).unwrap();
        FlightSqlServiceClient::new(endpoint.connect().await.unwrap())
    }

    /// Sends SIGTERM.
    pub fn ask_to_stop(&self) {
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-TERM", &self.id().to_string()]).status().unwrap().success());
    }

    /// Waits for the end. Returns the exit status and the rest of standard error.
    pub fn wait(mut self) -> (ExitStatus, String) {
        let deadline = Instant::now() + Duration::from_secs(60);
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None => assert!(Instant::now() < deadline, "the server does not end"),
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        (status, rest)
    }

    pub fn get(&self, path: &str) -> Response {
        self.request(&format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n"), "")
    }

    pub fn query(&self, sql: &str) -> Response {
        let head = "POST /query HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
        self.request(head, &json!({ "sql": sql }).to_string())
    }

    /// Sends a request with the lines `head`, and reads the response to its end.
    pub fn request(&self, head: &str, body: &str) -> Response {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let length = body.len();
        let head = format!("{head}content-length: {length}\r\nconnection: close\r\n\r\n");
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        Response::read(stream)
    }

    /// Returns the value of a metric without labels, or with the labels in `name`.
    pub fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").body;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// Waits until a metric has a value, for at most `limit`.
    pub fn wait_for_metric(&self, name: &str, value: f64, limit: Duration) {
        let started = Instant::now();
        while (self.metric(name) - value).abs() > 0.5 {
            assert!(started.elapsed() < limit, "{name} is {}", self.metric(name));
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A response over HTTP/1.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: String,
}

impl Response {
    pub fn read(mut stream: impl Read) -> Self {
        let mut text = Vec::new();
        // A server that closes early may reset the connection; what came counts.
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
        Self { status, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.body))
    }
}

/// Runs a query and returns its batches.
pub async fn batches(client: &mut Client, sql: &str) -> Result<Vec<RecordBatch>, String> {
    let info = client.execute(sql.to_owned(), None).await.map_err(|error| error.to_string())?;
    fetch(client, info).await
}

/// Returns the batches of `info`.
pub async fn fetch(client: &mut Client, info: FlightInfo) -> Result<Vec<RecordBatch>, String> {
    let schema = info.clone().try_decode_schema().unwrap();
    let ticket = info.endpoint[0].ticket.clone().unwrap();
    let stream = client.do_get(ticket).await.map_err(|error| error.to_string())?;
    let batches: Vec<RecordBatch> = stream.try_collect().await.map_err(|error| error.to_string())?;
    for batch in &batches {
        assert_eq!(batch.schema().as_ref(), &schema, "the plan and the rows have one schema");
    }
    Ok(batches)
}

/// Runs a query and returns its rows as texts, with `|` between the columns.
pub async fn rows(client: &mut Client, sql: &str) -> Vec<String> {
    rows_of(&batches(client, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")))
}

pub fn rows_of(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let of_batch = |batch: &RecordBatch| {
        let columns: Vec<ArrayFormatter<'_>> =
            batch.columns().iter().map(|column| ArrayFormatter::try_new(column, &options).unwrap()).collect();
        let row = |row| {
            let values: Vec<String> = columns.iter().map(|column| column.value(row).to_string()).collect();
            values.join("|")
        };
        (0..batch.num_rows()).map(row).collect::<Vec<_>>()
    };
    batches.iter().flat_map(of_batch).collect()
}
