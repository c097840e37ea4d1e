//! A headless browser with one window, which chromedriver drives (WebDriver).
//!
//! Debian has both: `apt-get install chromium chromium-driver`. Without them the tests print that they were skipped;
//! with `REQUIRE_BROWSER=1` they fail. `SCREENSHOTS=FOLDER` writes pictures of the page there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The Enter key of WebDriver, the Tab key, Escape, and the arrows down and right.
pub const ENTER: &str = "\u{e007}";
pub const TAB: &str = "\u{e004}";
pub const ESCAPE: &str = "\u{e00c}";
pub const DOWN: &str = "\u{e015}";
pub const RIGHT: &str = "\u{e014}";

/// A browser with one window.
pub struct Browser {
    driver: Child,
    port: u16,
    session: String,
    /// Folder for the files that the browser leaves behind, and for downloads.
    folder: TempDir,
}

impl Browser {
    pub fn start() -> Option<Self> {
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
        let mut browser = Self { driver, port: port.unwrap(), session: String::new(), folder };
        let options = json!({
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
        });
        let wanted = json!({ "capabilities": { "alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } } } });
        let session = browser.call("POST", "", &wanted);
        browser.session = format!("/{}", session["sessionId"].as_str().unwrap());
        let downloads = json!({ "behavior": "allow", "downloadPath": browser.folder.path() });
        browser.devtools("Browser.setDownloadBehavior", downloads);
        Some(browser)
    }

    /// Calls a command of WebDriver and returns its value.
    pub fn call(&self, method: &str, command: &str, body: &Value) -> Value {
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

    pub fn open(&self, url: &str) {
        self.call("POST", "/url", &json!({ "url": url }));
    }

    /// Runs a script in the page, which has `return`.
    pub fn run(&self, script: &str) -> Value {
        self.call("POST", "/execute/sync", &json!({ "script": script, "args": [] }))
    }

    pub fn text(&self, selector: &str) -> String {
        let script = format!("return document.querySelector({}).textContent", json!(selector));
        self.run(&script).as_str().unwrap().to_owned()
    }

    /// Presses keys, one after the other, wherever the focus is.
    pub fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key })))
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keys", "actions": actions }] });
        self.call("POST", "/actions", &actions);
    }

    /// Waits until `script` returns true.
    pub fn wait(&self, script: &str) {
        let started = Instant::now();
        while self.run(&format!("return {script}")) != Value::Bool(true) {
            let seen = self.text("body");
            assert!(started.elapsed() < Duration::from_secs(20), "{script}\n{seen:.2000}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses Tab until the focus is on the element `selector`.
    pub fn tab_to(&self, selector: &str) {
        let script = format!("return document.activeElement.matches({})", json!(selector));
        for _ in 0..60 {
            if self.run(&script) == Value::Bool(true) {
                return;
            }
            self.press(TAB);
        }
        panic!("Tab does not reach {selector}");
    }

    /// Sets the width of the page, and its colors: `dark` or `light`.
    pub fn emulate(&self, width: u32, scheme: &str) {
        let metrics = json!({ "width": width, "height": 800, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", metrics);
        let feature = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools("Emulation.setEmulatedMedia", json!({ "features": feature }));
    }

    /// Writes a picture of the page, for people who look at it, if `SCREENSHOTS` names a folder.
    pub fn picture(&self, name: &str) {
        let Some(folder) = std::env::var_os("SCREENSHOTS") else { return };
        let picture = self.call("GET", "/screenshot", &json!({}));
        let bytes = BASE64_STANDARD.decode(picture.as_str().unwrap()).unwrap();
        std::fs::write(Path::new(&folder).join(format!("{name}.png")), bytes).unwrap();
    }

    /// Waits for the download of the file `name`, and returns its bytes.
    pub fn downloaded(&self, name: &str) -> Vec<u8> {
        let path = self.folder.path().join(name);
        let started = Instant::now();
        while !path.exists() {
            assert!(started.elapsed() < Duration::from_secs(20), "{name}: {}", self.text("#status"));
            std::thread::sleep(Duration::from_millis(50));
        }
        std::fs::read(path).unwrap()
    }

    /// Returns what the console of the page says but what `expected` names.
    pub fn console_without(&self, expected: &[&str]) -> Vec<String> {
        let log = self.call("POST", "/se/log", &json!({ "type": "browser" }));
        let lines = log.as_array().unwrap().iter();
        let lines = lines.map(|entry| entry["message"].as_str().unwrap_or_default().to_owned());
        lines.filter(|line| !expected.iter().any(|text| line.contains(text))).collect()
    }

    pub fn devtools(&self, command: &str, parameters: Value) {
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
