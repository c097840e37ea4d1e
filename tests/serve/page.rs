//! The page in a headless browser, which chromedriver drives (WebDriver).
//!
//! Debian has both: `apt-get install chromium chromium-driver`. Without them the test prints that it
//! was skipped; with `REQUIRE_BROWSER=1` it fails.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::server::{Server, corpora};

/// The Enter key of WebDriver, the Tab key, and the arrow down.
const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";
const DOWN: &str = "\u{e015}";

/// A browser with one window.
struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Folder for the files that the browser leaves behind.
    _folder: TempDir,
}

impl Browser {
    fn start() -> Option<Self> {
        let is_required = std::env::var_os("REQUIRE_BROWSER").is_some_and(|value| value != "0");
        let folder = TempDir::new().unwrap();
        let mut driver = Command::new("chromedriver");
        driver.arg("--port=0").env("TMPDIR", folder.path()).stdout(Stdio::piped());
        let driver = driver.spawn();
        let mut driver = match driver {
            Ok(driver) => driver,
            Err(error) if is_required => panic!("REQUIRE_BROWSER is set: chromedriver: {error}"),
            Err(error) => {
                let line = format!("skipped: the page in a browser: chromedriver: {error}\n");
                std::io::stderr().write_all(line.as_bytes()).unwrap();
                return None;
            }
        };
        let lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.map_while(Result::ok).find_map(|line| {
            let rest = line.split("successfully on port ").nth(1)?;
            rest.trim_end_matches('.').parse().ok()
        });
        let mut browser = Self { driver, port: port.unwrap(), session: String::new(), _folder: folder };
        let options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } } } });
        let session = browser.call("POST", "", &wanted);
        browser.session = format!("/{}", session["sessionId"].as_str().unwrap());
        Some(browser)
    }

    /// Calls a command of WebDriver and returns its value.
    fn call(&self, method: &str, command: &str, body: &Value) -> Value {
        let body = if method == "GET" { String::new() } else { body.to_string() };
        let head = format!(
            "{method} /session{}{command} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
             content-length: {}\r\n\r\n",
            self.session,
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let (status, body) = read_response(BufReader::new(stream));
        assert_eq!(status, 200, "{command}: {body}");
        body["value"].clone()
    }

    fn open(&self, url: &str) {
        self.call("POST", "/url", &json!({ "url": url }));
    }

    /// Runs a script in the page, which has `return`.
    fn run(&self, script: &str) -> Value {
        self.call("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({}).textContent", json!(selector));
        self.run(&script).as_str().unwrap().to_owned()
    }

    /// Presses keys, one after the other, wherever the focus is.
    fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })))
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] });
        self.call("POST", "/actions", &actions);
    }

    /// Waits until `script` returns true.
    fn wait(&self, script: &str) {
        let started = Instant::now();
        while self.run(&format!("return {script}")) != Value::Bool(true) {
            let seen = self.text("body");
            assert!(started.elapsed() < Duration::from_secs(20), "{script}\n{seen:.2000}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    fn devtools(&self, command: &str, parameters: Value) {
        let body = json!({ "cmd": command, "params": parameters });
        self.call("POST", "/goog/cdp/execute", &body);
    }
}

/// Reads a response of chromedriver, which keeps the connection open.
fn read_response(mut stream: BufReader<TcpStream>) -> (u16, Value) {
    let mut line = String::new();
    stream.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    let mut length = 0;
    while !line.trim().is_empty() {
        line.clear();
        stream.read_line(&mut line).unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    (status, serde_json::from_slice(&body).unwrap())
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.call("DELETE", "", &json!({}));
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

const DONE: &str = "/\\d+ rows?/.test(document.getElementById('status').textContent)";

#[test]
fn the_page_works_with_the_keyboard_and_runs_nothing_of_documents() {
    let Some(browser) = Browser::start() else { return };
    let server = Server::start(&[]);
    browser.open(&format!("http://127.0.0.1:{}/", server.port));
    browser.wait("document.getElementById('corpus').options.length === 2");
    browser.run("document.getElementById('corpus').value = 'notes'");

    // Search: the key / goes to the query, Enter runs it.
    browser.press(&format!("/\"power loss\"{ENTER}"));
    browser.wait(DONE);
    assert_eq!(browser.run("return document.querySelectorAll('tbody tr').length"), 40);
    assert_eq!(browser.text("mark"), "power loss");
    // All views are reached with Tab and the arrow keys, from the beginning of the page.
    let views = ["kwic", "words", "collocates", "documents", "sql"];
    browser.run("document.querySelector('input[name=view]:checked').focus()");
    for view in views {
        browser.press(DOWN);
        let script = "return document.querySelector('input[name=view]:checked').value";
        assert_eq!(browser.run(script), view);
        browser.run("document.getElementById('status').textContent = ''");
        if view == "words" {
            browser.run("document.getElementById('query').value = ''");
        } else {
            browser.run("document.getElementById('query').value = 'power'");
        }
        // From the views to the button Run: it is in the order of Tab.
        let mut presses = 0;
        while browser.run("return document.activeElement.textContent") != "Run" {
            browser.press(TAB);
            presses += 1;
            assert!(presses < 10, "{view}: Tab does not reach Run");
        }
        browser.press(ENTER);
        browser.wait(DONE);
        assert_ne!(browser.run("return document.querySelectorAll('tbody tr').length"), 0, "{view}");
        let has_chart = browser.run("return document.querySelector('#chart rect') !== null");
        assert_eq!(has_chart, ["words", "collocates", "documents"].contains(&view), "{view}");
        browser.run("document.querySelector('input[name=view]:checked').focus()");
    }

    // The statement that is copied is the one that runs.
    browser.run(
        "document.querySelector('input[value=kwic]').click(); \
                 document.getElementById('query').value = \"it's\"; \
                 document.getElementById('copy').click()",
    );
    let copied = browser.text("#shown");
    assert!(copied.starts_with("SELECT") && copied.contains("'it''s'"), "{copied}");
    assert_eq!(server.query(copied.trim_end_matches(';')).status, 200, "{copied}");

    // A document with a script in it, in every way in which the page shows texts.
    for (view, query) in [("search", "power AND loss AND script"), ("kwic", "script"), ("sql", "")] {
        let sql = "SELECT text, path AS \"<b onclick=x>name</b>\" FROM notes WHERE path LIKE '%script%'";
        browser.run(&format!(
            "document.getElementById('status').textContent = ''; \
             document.querySelector('input[value={view}]').click(); \
             document.getElementById('query').value = {}; \
             document.getElementById('sql').value = {}; \
             document.getElementById('form').requestSubmit()",
            json!(query),
            json!(sql)
        ));
        browser.wait(DONE);
        assert!(browser.text("#result").contains("window.pwned"), "{view}");
        let elements = "return document.querySelectorAll('#result img, #result script, #result b').length";
        assert_eq!(browser.run(elements), 0, "{view}");
    }
    assert_eq!(browser.run("return window.pwned === undefined"), true);
    // The policy stops what the page would not do.
    let injected = "const made = document.createElement('script'); made.text = 'window.pwned = 1';";
    browser.run(&format!("try {{ {injected} document.body.append(made) }} catch {{}}"));
    browser.run("try { document.body.innerHTML += '<img src=x onerror=\"window.pwned=1\">' } catch {}");
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(browser.run("return window.pwned === undefined"), true);

    // An error is told, and a link brings a search back.
    browser.open(&format!("http://127.0.0.1:{}/#view=sql&sql=SELECT+*+FROM+nobody", server.port));
    browser.call("POST", "/refresh", &json!({}));
    browser.wait("document.querySelector('#status.error') !== null");
    assert!(browser.text("#status").contains("nobody"));

    // Dark and light.
    let color = "return getComputedStyle(document.body).backgroundColor";
    let colors = ["dark", "light"].map(|scheme| {
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.devtools("Emulation.setEmulatedMedia", json!({ "features": feature }));
        browser.run(color)
    });
    assert_ne!(colors[0], colors[1]);

    let log = browser.call("POST", "/se/log", &json!({ "type": "browser" }));
    let errors: Vec<&Value> = log.as_array().unwrap().iter().collect();
    let is_expected = |entry: &&&Value| {
        let text = entry["message"].as_str().unwrap_or_default();
        // The refusals above.
        ["Trusted", "TrustedScript", "Content Security Policy", "400"].iter().any(|t| text.contains(t))
    };
    let others: Vec<_> = errors.iter().filter(|entry| !is_expected(entry)).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn the_page_asks_for_the_token() {
    let Some(browser) = Browser::start() else { return };
    let folder = corpora();
    folder.write("token", "s3cret");
    let server = Server::start_in(folder, &["--token-file", "token"], &[]);
    browser.open(&format!("http://127.0.0.1:{}/", server.port));
    browser.wait("document.querySelector('#status.error') !== null");
    assert_eq!(browser.run("return document.getElementById('token').hidden"), false);
    browser.run("setTimeout(() => document.getElementById('token').click())");
    std::thread::sleep(Duration::from_millis(300));
    browser.call("POST", "/alert/text", &json!({ "text": "s3cret" }));
    browser.call("POST", "/alert/accept", &json!({}));
    browser.wait("document.getElementById('corpus').options.length === 2");
}
