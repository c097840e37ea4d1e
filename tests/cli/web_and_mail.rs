//! Tests of WARC and mbox.

use crate::harness::{gzip, new_folder};

/// Returns a record of WARC.
fn record(kind: &str, uri: &str, content_type: &str, block: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\n\
         WARC-Date: 2024-05-06T07:08:09Z\r\nContent-Type: {content_type}\r\n\
         Content-Length: {}\r\n\r\n{block}\r\n\r\n",
        block.len()
    )
}

const HTTP: &str = "application/http; msgtype=response";

#[test]
fn responses_of_a_crawl_are_documents() {
    let folder = new_folder();
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<html>one</html>";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\ntwo\r\n0\r\n\r\n";
    let long = "x".repeat(5 << 20);
    let records = [
        record("warcinfo", "", "application/warc-fields", "software: test\r\n"),
        record(
            "request",
            "http://a.example/1",
            "application/http; msgtype=request",
            "GET / HTTP/1.1",
        ),
        record("response", "http://a.example/1", HTTP, page),
        record("response", "http://a.example/2", HTTP, chunked),
        record("resource", "<http://a.example/3>", "text/plain", ""),
        record("conversion", "http://a.example/4", "text/plain", &long),
    ];
    // Crawlers compress each record on its own.
    let bytes: Vec<u8> = records.iter().flat_map(|record| gzip(record.as_bytes())).collect();
    folder.write("crawl.warc.gz", bytes);
    let command = ["ingest", "crawl.warc.gz", "--documents", "warc", "-o", "c.tadoc", "--force"];
    folder.ok(&command);
    assert_eq!(folder.cat("c.tadoc", "http://a.example/1"), b"<html>one</html>");
    assert_eq!(folder.cat("c.tadoc", "http://a.example/2"), b"two");
    assert_eq!(folder.cat("c.tadoc", "http://a.example/4"), long.as_bytes());
    let sql = "SELECT path, type, content_type, bytes FROM d \
               WHERE date = '2024-05-06T07:08:09Z' ORDER BY path";
    assert_eq!(
        folder.table_rows("c.tadoc", sql),
        [
            "http://a.example/1,response,text/html,16".to_owned(),
            format!("http://a.example/2,response,{HTTP},3"),
            "http://a.example/3,resource,text/plain,0".to_owned(),
            "http://a.example/4,conversion,text/plain,5242880".to_owned(),
        ]
    );
    folder.ok(&[command.as_slice(), &["--timestamp", "date", "--no-columns"]].concat());
    assert_eq!(folder.table_rows("c.tadoc", "SELECT count(ts) AS n FROM d"), ["4"]);

    let cut = record("resource", "http://a.example/", "text/plain", "0123456789");
    folder.write("cut.warc", &cut[..cut.len() - 7]);
    let ingest = |name| ["ingest", name, "--documents", "warc", "-o", "d.tadoc"];
    folder.fails(&ingest("cut.warc"), "cut.warc: record 1: it is cut: 3 bytes are missing");
    folder.write("no.warc", "From ann\n");
    folder.fails(
        &ingest("no.warc"),
        "no.warc: record 1: expected a line WARC/1.0 or WARC/1.1, found \"From ann\\n\"",
    );
}

const MAIL: &str = "From ann@example.com Mon May  6 07:08:09 2024\n\
    From: Ann <ann@example.com>\nTo: bob@example.com,\n carl@example.com\n\
    Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?=\nDate: Mon, 06 May 2024 09:08:09 +0200\n\n\
    Hello,\n\n>From now on\nFrom here\n\n\
    From bob@example.com Mon May  6 07:08:10 2024\n\
    Subject: no body\n\n\
    From carl@example.com Mon May  6 07:08:11 2024\n\
    Subject: last\n\nno line end";

#[test]
fn messages_of_a_mailbox_are_documents() {
    let folder = new_folder();
    folder.write("inbox.mbox", MAIL);
    folder.ok(&["ingest", "inbox.mbox", "--documents", "mbox", "-o", "c.tadoc"]);
    let text = |id| folder.ok(&["cat", "c.tadoc", "--doc-id", id]);
    let first = text("0");
    assert!(first.starts_with("From: Ann <ann@example.com>\nTo: "), "{first}");
    assert!(first.ends_with("+0200\n\nHello,\n\nFrom now on\nFrom here\n"), "{first}");
    assert_eq!(text("1"), "Subject: no body\n");
    assert_eq!(text("2"), "Subject: last\n\nno line end");
    let sql = "SELECT \"from\", \"to\", subject, date FROM d ORDER BY doc_id";
    assert_eq!(
        folder.table_rows("c.tadoc", sql),
        [
            "Ann <ann@example.com>,\"bob@example.com, carl@example.com\",Grüße,2024-05-06T07:08:09Z",
            ",,no body,",
            ",,last,",
        ]
    );
    folder.write("no.mbox", "\nSubject: x\n");
    folder.fails(
        &["ingest", "no.mbox", "--documents", "mbox", "-o", "d.tadoc"],
        "no.mbox: no mbox: expected a first line that begins with `From `",
    );
}
