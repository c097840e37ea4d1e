//! The page in a headless browser, by keyboard.

use std::io::Cursor;
use std::time::Duration;

use datafusion::arrow::ipc::reader::FileReader;
use serde_json::{Value, json};

use crate::browser::{Browser, DOWN, ENTER, ESCAPE, RIGHT, TAB};
use crate::server::{SCRIPT, Server, corpora};

/// A statement has ended: nothing is running, and the status says how.
const DONE: &str = "document.getElementById('stop').hidden && \
                    /\\d+ rows?, |error/.test(document.getElementById('status').textContent + \
                    document.getElementById('status').className)";
/// A statement that computes for hours.
const ENDLESS: &str = "SELECT count(*) FROM lines a, lines b, lines c WHERE a.doc_id + b.doc_id = c.doc_id + 1";
/// Number of lines of the log `app`, one a minute.
const NUM_LOG_LINES: u64 = 600;

/// A server with a log, which has times and a path for many lines, and rows with columns of their own.
fn server_with_log() -> Server {
    let folder = corpora();
    let line = |n: u64| {
        let hour = n / 60;
        let minute = n % 60;
        let level = if n.is_multiple_of(10) || hour == 5 { "ERROR lost" } else { "INFO kept" };
        format!("2026-11-28T{hour:02}:{minute:02}:00Z {level} connection {n} <b>x</b>\n")
    };
    folder.write("app.log", (0..NUM_LOG_LINES).map(line).collect::<String>());
    folder.ok(&["ingest", "app.log", "--documents", "lines", "--timestamp", "auto", "-o", "app.tadoc"]);
    let row = |n: u64| {
        let author = if n.is_multiple_of(3) { "O'Hara" } else { SCRIPT };
        json!({ "body": format!("row {n} of power"), "author": author, "severity": n % 5 }).to_string() + "\n"
    };
    folder.write("rows.jsonl", (0..60).map(row).collect::<String>());
    folder.ok(&["ingest", "rows.jsonl", "--documents", "jsonl:body", "-o", "rows.tadoc"]);
    // A long document with few hits, far from its beginning.
    let mut long = String::new();
    for n in 0..3000 {
        let word = if n % 1000 == 999 { "needle" } else { "straw" };
        long.push_str(&format!("line {n} é has {word} in it {SCRIPT}\n"));
    }
    folder.write("long/long.txt", long);
    folder.ok(&["ingest", "long", "-o", "long.tadoc"]);
    Server::start_in(folder, &["app.tadoc", "rows.tadoc", "long.tadoc"], &[])
}

/// Opens the page at an address of its own, and waits for what it shows.
fn open(browser: &Browser, server: &Server, address: &str) {
    browser.open("about:blank");
    browser.open(&format!("http://127.0.0.1:{}/#{address}", server.port));
    browser.wait(DONE);
}

fn num_rows(browser: &Browser) -> u64 {
    browser.run("return document.querySelectorAll('#result td:first-child').length").as_u64().unwrap()
}

#[test]
fn the_page_works_with_the_keyboard_and_runs_nothing_of_documents() {
    let Some(browser) = Browser::start() else { return };
    let server = Server::start(&[]);
    browser.open(&format!("http://127.0.0.1:{}/", server.port));
    browser.wait("document.getElementById('corpus').options.length === 2");
    browser.run("document.getElementById('corpus').value = 'notes'; document.getElementById('corpus').focus()");

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

    // The refusals above.
    let others = browser.console_without(&["Trusted", "TrustedScript", "Content Security Policy", "400"]);
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

#[test]
fn a_visitor_types_at_once_and_comes_back_to_the_start() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    browser.open(&format!("http://127.0.0.1:{}/", server.port));
    browser.wait("document.getElementById('corpus').options.length > 1");
    browser.press("needle");
    assert_eq!(browser.run("return document.getElementById('query').value"), "needle");
    // A slash leaves the list of corpora, too.
    browser.run("document.getElementById('corpus').focus()");
    browser.press("long/");
    assert_eq!(browser.run("return document.getElementById('corpus').value"), "long");
    browser.press(&format!("needle{ENTER}"));
    browser.wait("document.querySelectorAll('#result tbody tr').length > 0");
    // By keyboard the rows get another order, and the focus stays there.
    browser.tab_to("#result th button");
    browser.press(ENTER);
    let is_there = "document.querySelector('th[aria-sort] button') === document.activeElement";
    browser.wait(is_there);
    let first = browser.run("return location.hash");
    browser.press(ENTER);
    browser.wait(&format!("location.hash !== {first} && document.getElementById('stop').hidden && {is_there}"));
    browser.call("POST", "/back", &json!({}));
    browser.call("POST", "/back", &json!({}));
    browser.wait("!location.hash.includes('sort=')");
    browser.wait(DONE);
    // And to the first hit.
    browser.tab_to("#result tbody a");
    browser.press(ENTER);
    browser.wait("document.getElementById('document').open");
    browser.call("POST", "/back", &json!({}));
    browser.wait("!document.getElementById('document').open");
    browser.call("POST", "/back", &json!({}));
    browser.wait("location.hash === '' && document.querySelectorAll('#result tbody tr').length === 0");
    assert_eq!(browser.run("return document.getElementById('query').value"), "");
    assert_eq!(browser.console_without(&[]), Vec::<String>::new());
}

#[test]
fn a_hit_opens_its_document_at_the_place() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    open(&browser, &server, "view=kwic&corpus=long&query=needle");
    assert_eq!(num_rows(&browser), 3);
    // By keyboard: to the link of the second hit, and into the document.
    browser.run("document.querySelectorAll('#result tbody tr')[1].querySelector('a').focus()");
    browser.press(ENTER);
    browser.wait("document.querySelector('#passage mark.current') !== null");
    assert_eq!(browser.text("mark.current"), "needle");
    assert!(browser.text("#hit").starts_with("hit 2 of 3, line 2,000"), "{}", browser.text("#hit"));
    let text = browser.text("#passage");
    for line in ["line 1990 é has straw", "line 1999 é has needle", "line 2010 é has straw"] {
        assert!(text.contains(line), "{line}");
    }
    assert!(!text.contains('\u{fffd}') && !text.contains("line 1 é"));
    let place = "const mark = document.querySelector('mark.current').getBoundingClientRect(); \
                 return mark.top > 0 && mark.bottom < innerHeight";
    assert_eq!(browser.run(place), true, "the hit is in sight");
    assert!(browser.text("#facts").contains("words ") && browser.text("#path").ends_with("long.txt"));
    browser.picture("document");

    // More text, the next hit, and the address of it.
    let before = browser.text("#passage").len();
    browser.tab_to("#earlier");
    browser.press(ENTER);
    browser.wait(&format!("document.getElementById('passage').textContent.length > {before}"));
    browser.tab_to("#hit-after");
    browser.press(ENTER);
    browser.wait("document.getElementById('hit').textContent.startsWith('hit 3 of 3')");
    assert_eq!(browser.run("return document.getElementById('hit-after').disabled"), true);
    let address = browser.run("return location.href");
    let rows_of_place = browser.run("return new URLSearchParams(location.hash.slice(1)).get('at')");
    let sql = format!("SELECT text FROM extract('long', 0, {}, 6)", rows_of_place.as_str().unwrap());
    assert_eq!(server.query(&sql).json()["rows"], json!([["needle"]]));
    // Escape leaves the document, and the rows are those of before.
    browser.press(ESCAPE);
    browser.wait("!document.getElementById('document').open");
    assert_eq!(num_rows(&browser), 3);
    assert!(!browser.run("return location.hash").as_str().unwrap().contains("doc="));
    // Back goes into the document again, and the address opens it by itself.
    browser.call("POST", "/back", &json!({}));
    browser.wait("document.getElementById('hit').textContent.startsWith('hit 3 of 3')");
    browser.open("about:blank");
    browser.open(address.as_str().unwrap());
    browser.wait("document.getElementById('hit').textContent.startsWith('hit 3 of 3')");
    // Nothing of the text became an element.
    assert_eq!(browser.run("return document.querySelectorAll('#passage img, #passage script').length"), 0);
    assert_eq!(browser.run("return window.pwned === undefined"), true);
    assert_eq!(browser.console_without(&[]), Vec::<String>::new());
}

#[test]
fn lines_of_a_log_stand_together() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    open(&browser, &server, "view=search&corpus=app&query=lost");
    // One heading for the file, and the lines in their order.
    assert_eq!(
        browser.run("return [...document.querySelectorAll('tbody th')].map((cell) => cell.textContent)"),
        json!(["app.log"])
    );
    let ids =
        "return [...document.querySelectorAll('#result td:first-child')].slice(0, 4).map((cell) => cell.textContent)";
    assert_eq!(browser.run(ids), json!(["0", "10", "20", "30"]));
    let status = browser.text("#status");
    assert!(status.ends_with(". 114 documents, 114 hits"), "{status}");
    browser.picture("log");
    // A line opens among its neighbours.
    browser.run("document.querySelectorAll('#result a')[3].focus()");
    browser.press(ENTER);
    browser.wait("document.querySelector('#passage .current') !== null");
    assert!(browser.text("#passage .current").contains("ERROR lost connection 30"));
    let lines = "return document.querySelectorAll('#passage p').length";
    assert_eq!(browser.run(lines), 41);
    assert_eq!(browser.text("#passage p:first-child small"), "10");
    assert_eq!(browser.run("return document.querySelectorAll('#passage mark').length"), 5);
    browser.picture("lines");
    browser.tab_to("#later");
    browser.press(ENTER);
    browser.wait("document.querySelectorAll('#passage p').length === 141");
    browser.tab_to("#earlier");
    browser.press(ENTER);
    // There are 30 lines before it.
    browser.wait("document.querySelectorAll('#passage p').length === 151 && document.getElementById('earlier').hidden");
    browser.press(ESCAPE);
    browser.wait("!document.getElementById('document').open");
}

#[test]
fn time_is_a_histogram_and_a_filter() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    open(&browser, &server, "view=search&corpus=app&query=lost");
    let bars = "return [...document.querySelectorAll('#histogram rect.all')].map((bar) => bar.ariaLabel ?? bar.getAttribute('aria-label'))";
    let labels = browser.run(bars);
    let labels: Vec<&str> = labels.as_array().unwrap().iter().map(|label| label.as_str().unwrap()).collect();
    assert_eq!(labels.len(), 20, "{labels:?}");
    assert_eq!(labels[9..12], ["2026-11-28T04:30:00: 3", "2026-11-28T05:00:00: 30", "2026-11-28T05:30:00: 30"]);
    let sum: u64 = labels.iter().map(|label| label.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 114);
    // By keyboard: the bars are one stop of Tab, arrows go on, Enter chooses.
    browser.run("document.getElementById('status').focus()");
    browser.tab_to("rect.all");
    browser.press(&RIGHT.repeat(10));
    browser.press(ENTER);
    browser.wait("document.getElementById('from').value !== ''");
    browser.wait(DONE);
    assert!(browser.text("#status").ends_with(". 30 documents, 30 hits"), "{}", browser.text("#status"));
    let times = "return [document.getElementById('from').value, document.getElementById('to').value].map((time) => time.slice(0, 16))";
    assert_eq!(browser.run(times), json!(["2026-11-28T05:00", "2026-11-28T05:30"]));
    let sql = "SELECT count(*) FROM app WHERE ts >= '2026-11-28T05:00:00Z' AND ts < '2026-11-28T05:30:00Z' AND contains(text, 'lost')";
    assert_eq!(server.query(sql).json()["rows"], json!([[30]]));
    // Back takes the filter away.
    browser.call("POST", "/back", &json!({}));
    browser.wait("document.getElementById('from').value === ''");
    browser.wait(DONE);
    assert!(browser.text("#status").ends_with(". 114 documents, 114 hits"));
    // Without a query all documents are counted, and words are those of a time.
    open(&browser, &server, "view=search&corpus=app&query=&from=2026-11-28T05:00:00");
    assert!(browser.text("#status").ends_with(". 300 documents"), "{}", browser.text("#status"));
    open(&browser, &server, "view=words&corpus=app&query=lost&from=2026-11-28T05:00&to=2026-11-28T06:00");
    assert_eq!(browser.text("tbody td.number"), "60");
}

#[test]
fn rows_have_pages_an_order_and_filters() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    open(&browser, &server, "view=search&corpus=rows&query=power&rows=10");
    assert_eq!((num_rows(&browser), browser.text("#page")), (10, "Page 1 of 6".to_owned()));
    browser.tab_to("#next");
    browser.press(ENTER);
    browser.wait("document.getElementById('page').textContent === 'Page 2 of 6'");
    browser.wait(DONE);
    assert_eq!(browser.text("#result td:first-child"), "10");
    // The order is that of all rows, not of the page.
    browser.run("document.querySelectorAll('th button')[0].focus()");
    browser.tab_to("th:nth-child(4) button");
    browser.press(ENTER);
    browser.wait("document.querySelector('th[aria-sort=descending]') !== null");
    browser.wait(DONE);
    let severities = "return [...document.querySelectorAll('#result tr')].map((row) => row.lastElementChild.previousElementSibling?.textContent).slice(2)";
    assert_eq!(browser.run(severities), json!(vec!["4"; 10]));
    assert_eq!(browser.text("#page"), "Page 1 of 6");
    // Filters, by keyboard. The value has a quote.
    browser.run("document.getElementById('filters').open = true; document.querySelector('#filters summary').focus()");
    browser.tab_to("#add");
    browser.press(ENTER);
    assert_eq!(browser.run("return document.activeElement.value"), "author");
    browser.press(&format!("{TAB}{TAB}O'Hara{ENTER}"));
    browser.wait("/ 20 documents/.test(document.getElementById('status').textContent)");
    browser.tab_to("#add");
    browser.press(&format!("{ENTER}sev{TAB}{TAB}3{ENTER}"));
    browser.wait("/ 8 documents/.test(document.getElementById('status').textContent)");
    assert_eq!(browser.text("#num-filters"), "(2)");
    browser.picture("filters");
    // The address has all of it.
    let address = browser.run("return location.hash.slice(1)");
    open(&browser, &server, address.as_str().unwrap());
    assert!(browser.text("#status").ends_with(". 8 documents, 8 hits"), "{}", browser.text("#status"));
    // Over the empty page and the second filter.
    for _ in 0..3 {
        browser.call("POST", "/back", &json!({}));
    }
    browser.wait("/ 20 documents/.test(document.getElementById('status').textContent)");

    // A statement of the user is ordered and divided in the page.
    let sql = "sql&corpus=rows&rows=7&sort=-n&page=2&sql=SELECT+doc_id+AS+n+FROM+rows";
    open(&browser, &server, &format!("view={sql}"));
    assert_eq!((num_rows(&browser), browser.text("#page")), (7, "Page 2 of 9".to_owned()));
    assert_eq!(browser.text("#result td"), "52");
    // Orders of all views are taken by the server.
    for (view, columns) in [
        ("search", "score,count,doc_id,path,author,severity"),
        ("kwic", "left,match,right,path"),
        ("words", "word,count"),
        ("collocates", "word,score,count,corpus_count"),
        ("documents", "path,count,doc_id"),
    ] {
        for column in columns.split(',') {
            open(&browser, &server, &format!("view={view}&corpus=rows&query=power&rows=5&sort=-{column}"));
            assert_eq!(
                browser.run("return document.querySelector('#status.error')"),
                Value::Null,
                "{view} {column}: {}",
                browser.text("#status")
            );
            // The path of a log is the heading of its lines.
            if column != "path" || view == "documents" {
                assert!(browser.text("th[aria-sort=descending]").starts_with(column), "{view} {column}");
            }
        }
    }
    assert_eq!(browser.run("return window.pwned === undefined"), true);
}

#[test]
fn stop_ends_the_statement_on_the_server() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    open(&browser, &server, "view=sql&sql=SELECT+1+AS+before");
    browser.run(&format!("document.getElementById('sql').value = {}", json!(ENDLESS)));
    let soon = Duration::from_secs(10);
    for (key, ended) in [(ESCAPE, 1.0), (ENTER, 2.0)] {
        browser.run("document.getElementById('form').requestSubmit()");
        server.wait_for_metric("tadoc_statements", 1.0, soon);
        // The rows of before are there, and dimmed.
        assert_eq!(browser.text("#result td"), "1");
        assert_eq!(browser.run("return getComputedStyle(document.getElementById('result')).opacity < 1"), true);
        browser.tab_to("#stop");
        browser.press(key);
        browser.wait("document.getElementById('status').textContent === 'Stopped.'");
        server.wait_for_metric("tadoc_statements", 0.0, soon);
        assert_eq!(server.metric("tadoc_statements_total{outcome=\"cancelled\"}"), ended);
        assert_eq!(browser.run("return getComputedStyle(document.getElementById('result')).opacity"), "1");
    }
}

#[test]
fn all_rows_are_downloaded() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    open(&browser, &server, "view=search&corpus=app&query=lost&rows=5&sort=doc_id");
    browser.tab_to("#csv");
    browser.press(ENTER);
    let csv = String::from_utf8(browser.downloaded("app-search.csv")).unwrap();
    assert_eq!(csv.lines().next(), Some("doc_id,count,path,ts,snippet"));
    assert_eq!(csv.lines().count(), 115);
    assert!(csv.lines().nth(1).unwrap().starts_with("0,1,app.log,2026-11-28T00:00:00Z,"), "{csv:.200}");
    browser.tab_to("#arrow");
    browser.press(ENTER);
    let bytes = browser.downloaded("app-search.arrow");
    let reader = FileReader::try_new(Cursor::new(bytes), None).unwrap();
    let num_rows: usize = reader.map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(num_rows, 114);
    // More rows than an answer in JSON has.
    open(&browser, &server, "view=sql&sql=SELECT+doc_id+FROM+lines&corpus=lines");
    browser.tab_to("#csv");
    browser.press(ENTER);
    let csv = String::from_utf8(browser.downloaded("lines-sql.csv")).unwrap();
    assert_eq!(csv.lines().count() as u64, crate::server::NUM_LINES + 1);
}

#[test]
fn addresses_of_strangers_open_nothing_else() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    server.folder.write("secret/a.txt", "the secret text");
    server.folder.ok(&["ingest", "secret", "-o", "secret.tadoc"]);
    let secret = server.folder.join("secret.tadoc").display().to_string();
    let filter =
        |filter: Value| format!("view=search&corpus=rows&query=&filter={}", filter.to_string().replace('"', "%22"));
    let path = secret.replace('/', "%2F");
    for (address, told) in [
        (format!("view=search&corpus={path}&query=secret"), "There is no corpus"),
        (format!("view=kwic&corpus={path}&query=secret&doc=0"), "There is no corpus"),
        (format!("view=sql&sql=SELECT+text+FROM+documents('{path}')"), "the server refuses"),
        (format!("view=sql&sql=SELECT+*+FROM+extract('{path}',0,0,100)"), "the server refuses"),
        (format!("view=sql&sql=SELECT+*+FROM+context('{path}',0)"), "the server refuses"),
        ("view=sql&sql=COPY+(SELECT+1)+TO+'x.csv'".to_owned(), "only reads"),
        (filter(json!(["nobody\" OR true --", "is", "x"])), "There is no filter"),
        (filter(json!(["severity", "at least", "1 OR true"])), "expected a number"),
        (filter(json!(["severity", "constructor", "1"])), "There is no filter"),
    ] {
        open(&browser, &server, &address);
        let status = browser.text("#status");
        assert!(status.contains(told), "{address}: {status}");
        assert!(!browser.text("body").contains("the secret text"), "{address}");
        // A download of the same is refused, too.
        browser.run("document.getElementById('status').textContent = ''; document.getElementById('csv').click()");
        browser.wait("document.getElementById('stop').hidden && document.getElementById('status').className === 'error' && document.getElementById('status').textContent !== ''");
    }
    // A value stays a value, and rubbish is left out.
    open(&browser, &server, &filter(json!(["author", "is", "x' OR '1'='1"])));
    assert!(browser.text("#status").ends_with(". 0 documents"), "{}", browser.text("#status"));
    open(
        &browser,
        &server,
        "view=search&corpus=rows&query=&page=-4&rows=99999999&width=x&sort=__proto__&filter=%7B&from=x'&doc=99999999",
    );
    browser.wait("/There is no document 99999999 in rows/.test(document.getElementById('passage').textContent)");
    assert_eq!(num_rows(&browser), 60);
    browser.press(ESCAPE);
    open(&browser, &server, "view=search&corpus=rows&query=&doc=1%20OR%201=1");
    assert_eq!(browser.run("return document.getElementById('document').open"), false);
    assert_eq!(browser.run("return window.pwned === undefined"), true);
    let others = browser.console_without(&["400", "403"]);
    assert!(others.is_empty(), "{others:?}");
}

#[test]
fn nothing_overflows_on_a_phone_in_both_colors() {
    let Some(browser) = Browser::start() else { return };
    let server = server_with_log();
    let overflow = "const over = [...document.querySelectorAll('body *')].filter((element) => \
        !element.closest('details:not([open]) > :not(summary)') && \
        element.getBoundingClientRect().right > innerWidth + 1).map((element) => element.tagName + '#' + element.id); \
        return document.documentElement.scrollWidth > innerWidth ? ['page', ...over] : over";
    let mut colors = Vec::new();
    for (width, scheme) in [(360, "dark"), (360, "light"), (1100, "dark"), (1100, "light")] {
        browser.emulate(width, scheme);
        for (name, address) in [
            ("search", "view=search&corpus=rows&query=power&filter=[%22author%22,%22is%20not%22,%22x%22]"),
            ("times", "view=search&corpus=app&query=lost&from=2026-11-28T05:00"),
            ("kwic", "view=kwic&corpus=long&query=needle"),
            ("words", "view=words&corpus=notes&query="),
            ("collocates", "view=collocates&corpus=notes&query=power"),
            ("documents", "view=documents&corpus=notes&query=power"),
            ("sql", "view=sql&sql=SELECT+*+FROM+long"),
            ("error", "view=search&corpus=rows&query=%22power"),
            ("opened", "view=search&corpus=long&query=needle&doc=0"),
        ] {
            open(&browser, &server, address);
            if name == "opened" {
                browser.wait("document.querySelector('#passage mark') !== null");
            }
            assert_eq!(browser.run(overflow), json!([]), "{width} {scheme} {name}");
            browser.picture(&format!("{name}-{width}-{scheme}"));
        }
        colors.push(browser.run("return getComputedStyle(document.body).backgroundColor"));
    }
    assert_ne!(colors[0], colors[1]);
    assert_eq!(colors[0], colors[2]);
}
