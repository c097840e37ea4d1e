//! Tests of WARC, mbox and HTML.

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
        record("request", "http://a.example/1", "application/http; msgtype=request", "GET / HTTP/1.1"),
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
            "http://a.example/2,response,,3".to_owned(),
            "http://a.example/3,resource,text/plain,0".to_owned(),
            "http://a.example/4,conversion,text/plain,5242880".to_owned(),
        ]
    );
    folder.ok(&[command.as_slice(), &["--timestamp", "date", "--no-columns"]].concat());
    assert_eq!(folder.table_rows("c.tadoc", "SELECT count(ts) AS n FROM d"), ["4"]);

    let cut = record("resource", "http://a.example/", "text/plain", "0123456789");
    folder.write("cut.warc", &cut[..cut.len() - 7]);
    let ingest = |name| ["ingest", name, "--documents", "warc", "-o", "d.tadoc"];
    folder.fails(
        &ingest("cut.warc"),
        "cut.warc: record 1: it is cut: 3 bytes are missing; pass --keep-going to store what can be read",
    );
    folder.write("no.warc", "From ann\n");
    folder.fails(
        &ingest("no.warc"),
        "no.warc: record 1: expected a line WARC/1.0 or WARC/1.1, found \"From ann\\n\"; pass --keep-going to store \
         what can be read",
    );
}

/// Some crawlers write no type of the block, which is a response of HTTP nevertheless.
#[test]
fn responses_without_a_type_have_their_body_as_text() {
    let folder = new_folder();
    let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>one";
    let untyped = |uri, block| record("response", uri, "", block).replace("Content-Type: \r\n", "");
    let records = [untyped("http://a.example/1", page), untyped("http://a.example/2", "no HTTP\r\n\r\ntext")];
    folder.write("a.warc", records.concat());
    folder.ok(&["ingest", "a.warc", "--documents", "warc", "--html", "text", "-o", "c.tadoc"]);
    let rows = folder.table_rows("c.tadoc", "SELECT path, content_type, bytes FROM d ORDER BY path");
    assert_eq!(rows, ["http://a.example/1,text/html,4", "http://a.example/2,,15"]);
    assert_eq!(folder.cat("c.tadoc", "http://a.example/2"), b"no HTTP\r\n\r\ntext");
}

#[test]
fn packed_bodies_of_a_crawl_are_unpacked_for_text() {
    let folder = new_folder();
    let response = |uri: &str, kind: &str, encoding: &str, body: &[u8]| {
        let http = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Encoding: {encoding}\r\n\r\n");
        let len = http.len() + body.len();
        let head = format!(
            "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{uri}\r\nContent-Type: {HTTP}\r\n\
             Content-Length: {len}\r\n\r\n"
        );
        [head.as_bytes(), http.as_bytes(), body, b"\r\n\r\n"].concat()
    };
    let packed = gzip(PAGE.as_bytes());
    let zstd = zstd::encode_all(packed.as_slice(), 3).unwrap();
    let chunked = [format!("{:x}\r\n", packed.len()).as_bytes(), &packed, b"\r\n0\r\n\r\n"].concat();
    let records = [
        response("page", "text/html", "gzip", &packed),
        response("twice", "text/html", "gzip, zstd", &zstd),
        response("text", "text/plain", "x-gzip", &gzip(b"plain words")),
        response("cut", "text/plain", "gzip", &packed[..packed.len() - 12]),
        response("last", "text/plain", "gzip", b"not packed"),
        // Packed by the server on its way, and sent in chunks.
        response("sent", "text/html", "identity\r\nTransfer-Encoding: gzip, Chunked", &chunked),
    ];
    folder.write("crawl.warc", records.concat());
    let command = ["ingest", "crawl.warc", "--documents", "warc", "-o", "c.tadoc", "--force"];
    folder.ok(&command);
    assert_eq!(folder.cat("c.tadoc", "http://a.example/page"), packed);
    let ran = folder.run(&[&command[..], &["--html", "text"]].concat());
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("crawl.warc: record 4: the body in gzip is cut or damaged"), "{}", ran.stderr);
    let pages = [("page", PAGE_TEXT), ("twice", PAGE_TEXT), ("sent", PAGE_TEXT)];
    for (uri, text) in pages.into_iter().chain([("text", "plain words"), ("last", "not packed")]) {
        assert_eq!(folder.cat("c.tadoc", &format!("http://a.example/{uri}")), text.as_bytes(), "{uri}");
    }
    let cut = folder.cat("c.tadoc", "http://a.example/cut");
    assert!(PAGE.as_bytes().starts_with(&cut), "{}", String::from_utf8_lossy(&cut));
}

#[test]
fn records_with_wrong_lengths_are_left_for_the_next() {
    let folder = new_folder();
    let lie = |uri: &str, len: usize| {
        let whole = record("resource", &format!("http://a.example/{uri}"), "text/plain", "0123456789");
        whole.replace("Content-Length: 10", &format!("Content-Length: {len}"))
    };
    let command = ["ingest", "a.warc", "--documents", "warc", "-o", "c.tadoc", "--force"];
    for (len, text, paths) in [(4, "0123", 3), (40, "0123456789\r\n\r\nWARC/1.0\r\nWARC-Type: resou", 2)] {
        folder.write("a.warc", [lie("1", len), lie("2", 10), lie("3", 10)].concat());
        for more in [&[][..], &["--keep-going"]] {
            let ran = folder.run(&[&command[..], more].concat());
            assert_eq!(ran.status, 0, "{}", ran.stderr);
            let expected = "warning: a.warc: record 2: expected a line WARC/1.0 or WARC/1.1, found ";
            assert!(ran.stderr.starts_with(expected), "{}", ran.stderr);
            assert_eq!(folder.cat("c.tadoc", "http://a.example/1"), text.as_bytes());
            assert_eq!(folder.cat("c.tadoc", "http://a.example/3"), b"0123456789");
            assert_eq!(folder.ok(&["ls", "c.tadoc"]).lines().count(), paths);
        }
    }
}

#[test]
fn crawls_in_arc_are_read_as_those_in_warc() {
    let folder = new_folder();
    let first = |version: &str, fields: &str| {
        let block = format!("{version} Capture\nURL IP-address Archive-date {fields}\n");
        format!("filedesc://a.arc 0.0.0.0 20140216050221 text/plain {}\n{block}\n", block.len())
    };
    let http = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n{PAGE}");
    let one = [
        first("1 0", "Content-type Archive-length"),
        format!("http://a.example/x y 192.0.2.1 20240506070809 text/html {}\n{http}\n", http.len()),
        // Four bytes too few are stated.
        format!("http://a.example/short 192.0.2.1 20240506070809 text/html {}\n{http}\n", http.len() - 4),
        "dns:a.example 192.0.2.1 20240506070809 text/dns 7\n1.2.3.4\n".to_owned(),
    ];
    let two = [
        first("2 0", "Content-type Result-code Checksum Location Offset Filename Archive-length"),
        format!("http://a.example/2 192.0.2.1 20240506070809 text/html 200 abc - 0 a.arc {}\n{http}\n", http.len()),
    ];
    folder.write("in/one.arc.gz", one.iter().flat_map(|record| gzip(record.as_bytes())).collect::<Vec<u8>>());
    folder.write("in/two.arc", two.concat());
    let ran = folder.run(&["ingest", "in", "--documents", "warc", "--html", "text", "-o", "c.tadoc"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.starts_with("warning: in/one.arc.gz: record 4: expected a line of ARC"), "{}", ran.stderr);
    assert_eq!(
        folder.table_rows("c.tadoc", "SELECT path, type, content_type, date FROM d ORDER BY doc_id"),
        [
            "http://a.example/x y,response,text/html; charset=utf-8,2024-05-06T07:08:09Z",
            "http://a.example/short,response,text/html; charset=utf-8,2024-05-06T07:08:09Z",
            "dns:a.example,response,text/dns,2024-05-06T07:08:09Z",
            "http://a.example/2,response,text/html; charset=utf-8,2024-05-06T07:08:09Z",
        ]
    );
    assert_eq!(folder.cat("c.tadoc", "http://a.example/x y"), PAGE_TEXT.as_bytes());
    assert_eq!(folder.cat("c.tadoc", "http://a.example/2"), PAGE_TEXT.as_bytes());
    assert_eq!(folder.cat("c.tadoc", "dns:a.example"), b"1.2.3.4");
}

#[test]
fn files_of_maildir_and_mh_are_messages() {
    let folder = new_folder();
    let mail = "Return-Path: <ann@example.com>\nSubject: one\n\nHello\n\nFrom here\n>From\n\n";
    folder.write("mail/cur/1204680122.27c448.host:2,S", mail);
    folder.write("mail/new/1204680123.27c449.host", "Subject: two\n\n");
    folder.write("mail/tmp/1204680124.27c44a.host", "Subject: not whole");
    folder.write("mail/mh/17", "Subject: three\n\nbody");
    folder.write("mail/new/box", MAIL);
    let ran = folder.run(&["ingest", "mail", "--documents", "mbox", "-o", "c.tadoc"]);
    assert_eq!(ran.status, 0, "{}", ran.stderr);
    assert!(ran.stderr.contains("1 file in folders tmp of Maildir left out"), "{}", ran.stderr);
    assert_eq!(folder.cat("c.tadoc", "cur/1204680122.27c448.host:2,S"), mail.as_bytes());
    assert_eq!(
        folder.table_rows("c.tadoc", "SELECT path, subject FROM d ORDER BY path, doc_id"),
        [
            "\"cur/1204680122.27c448.host:2,S\",one",
            "mh/17,three",
            "new/1204680123.27c449.host,two",
            "new/box,Grüße",
            "new/box,no body",
            "new/box,last",
        ]
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

#[test]
fn a_line_from_in_a_body_begins_no_message() {
    let folder = new_folder();
    let mail = "From ann@example.com Mon May  6 07:08:09 2024\n\
        From: =?iso-8859-1?Q?J=F6rg?= <j@example.com>\nTo: \"=?utf-8?B?0JTQ?= =?utf-8?B?uw==?=\" <d@x.org>\n\
        Subject: =?UTF-8?Q?pasi=C5=BEad=C4?=\n =?UTF-8?Q?=97jim=C5=B3?=\n\
        Date: Tue, 6 May 24 07:08:09\n\n\
        Update;\n\nFrom my side there are two questions.\nFrom now on we meet weekly.\n\n\
        From bob@example.com Mon May  6 07:08:10 2024\n\
        Subject: caf\u{e9}\nDate: Mon May  6 07:08:10 2024\n\nshort\n";
    folder.write("a.mbox", mail);
    folder.write("crlf.mbox", mail.replace('\n', "\r\n"));
    for name in ["a.mbox", "crlf.mbox"] {
        folder.ok(&["ingest", name, "--documents", "mbox", "-o", "c.tadoc", "--force"]);
        let text = folder.ok(&["cat", "c.tadoc", "--doc-id", "0"]);
        assert!(text.contains("\nFrom my side there are two questions."), "{text}");
        let sql = "SELECT \"from\", \"to\", subject, date FROM d ORDER BY doc_id";
        let expected = [
            "Jörg <j@example.com>,\"\"\"Дл\"\" <d@x.org>\",pasižadėjimų,2024-05-06T07:08:09Z",
            ",,café,2024-05-06T07:08:10Z",
        ];
        assert_eq!(folder.table_rows("c.tadoc", sql), expected);
    }
    folder.write("no.mbox", "From my side\nthere is nothing\n");
    folder.fails(
        &["ingest", "no.mbox", "--documents", "mbox", "-o", "d.tadoc"],
        "no.mbox: no mbox: expected a header line behind the first line",
    );
}

#[test]
fn messages_may_be_stored_as_their_text() {
    let folder = new_folder();
    let mail = "From ann@example.com Mon May  6 07:08:09 2024\n\
        From: Ann <ann@example.com>\nSubject: parts\n\
        Content-Type: multipart/mixed; boundary=\"m\"\n\n\
        not shown\n\
        --m\nContent-Type: multipart/alternative; boundary=\"a\"\n\n\
        --a\nContent-Type: text/plain; charset=\"iso-8859-1\"\n\
        Content-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe, long=\n line\n\
        --a\nContent-Type: text/html\n\n<p>not <b>this</b></p>\n--a--\n\
        --m\nContent-Type: application/pdf\nContent-Transfer-Encoding: base64\n\
        Content-Disposition: attachment; filename=\"x.pdf\"\n\nJVBERi0xLjQK\n--m--\n\n\
        From bob@example.com Mon May  6 07:08:10 2024\n\
        Subject: page\nContent-Type: text/html; charset=utf-8\n\
        Content-Transfer-Encoding: base64\n\nPHA+b25lPC9wPjxwPnR3byAmYW1wOyB0aHJlZTwvcD4=\n\n\
        From carl@example.com Mon May  6 07:08:11 2024\n\
        Subject: plain\n\nas it is\n";
    folder.write("inbox.mbox", mail);
    let command = ["ingest", "inbox.mbox", "--documents", "mbox", "--html", "text", "-o", "c.tadoc"];
    folder.ok(&command);
    let text = |id| folder.ok(&["cat", "c.tadoc", "--doc-id", id]);
    let first = text("0");
    assert!(first.starts_with("From: Ann <ann@example.com>\nSubject: parts\n"), "{first}");
    assert!(first.contains("\n\nGrüße, long line"), "{first}");
    assert!(!first.contains("JVBER") && !first.contains("not"), "{first}");
    let second = text("1");
    assert!(second.ends_with("\n\none\ntwo & three\n"), "{second}");
    assert_eq!(text("2"), "Subject: plain\n\nas it is\n");
    folder.fails(
        &[&command[..], &["--force", "--max-row-size", "300"]].concat(),
        "inbox.mbox: message 1 is larger than 300 bytes; a row is held in memory as a whole: pass a \
         larger --max-row-size",
    );
    // Any bytes are a message.
    for at in (0..mail.len()).step_by(7) {
        let mut changed = mail.as_bytes().to_vec();
        changed[at] ^= 0x8d;
        changed.truncate(mail.len() - at);
        folder.write("inbox.mbox", changed);
        let ran = folder.run(&[&command[..], &["--force"]].concat());
        assert!(ran.status <= 1 && !ran.stderr.contains("panicked"), "{at}: {}", ran.stderr);
    }
}

#[test]
fn no_text_of_a_damaged_message_is_lost() {
    let folder = new_folder();
    let text_of = |mail: &str| {
        folder.write("a.eml", mail);
        let command = ["ingest", "a.eml", "--documents", "mbox", "--html", "text", "-o", "c.tadoc"];
        folder.ok(&[&command[..], &["--force"]].concat());
        folder.ok(&["cat", "c.tadoc", "--doc-id", "0"])
    };
    let mixed = "Content-Type: multipart/mixed; boundary=b\n\n";
    let inner = "Content-Type: multipart/alternative; boundary=a\n\n";
    let page = "Content-Type: text/html\n\n<p>a <b>page</b></p>\n";
    for (mail, texts) in [
        (format!("{mixed}--b\nContent-Type: text/plain\n\nthe body\n"), vec!["the body"]),
        (format!("{mixed}--b\r\n\r\none\r\n--b\r\n\r\ntwo"), vec!["one", "two"]),
        (format!("{mixed}--b\n{page}"), vec!["a page"]),
        (format!("{mixed}--b\n{inner}--a\n{page}"), vec!["a page"]),
        (format!("{mixed}--b\n{inner}--a\n\none\n--b\n{page}--b--\n"), vec!["one", "a page"]),
        (format!("{mixed}--b\n{inner}--a\n\none\n--b\n{inner}--a\n\ntwo\n--b\n\nthree"), vec!["one", "two", "three"]),
        (
            format!(
                "{mixed}--b\nContent-Transfer-Encoding: quoted-printable\nContent-Type: text/plain\n\n\
                 caf=C3=A9\n"
            ),
            vec!["café"],
        ),
        ("Content-Type: multipart/mixed\n\nthe body\n".to_owned(), vec!["the body"]),
        (format!("{mixed}no boundary here\n"), vec!["no boundary here"]),
        (format!("{mixed}--b\nContent-Type: multipart/mixed\n\nthe body\n--b--\n"), vec!["the body"]),
        ("Content-Type: text/x-own\n\nthe body\n".to_owned(), vec!["the body"]),
        ("\nonly a body\n".to_owned(), vec!["only a body"]),
        (
            "Content-Type: text/html\nContent-Transfer-Encoding: base64\n\n<p>not *base64*</p>\n".to_owned(),
            vec!["not *base64*"],
        ),
    ] {
        let text = text_of(&mail);
        let lines: Vec<&str> = text.lines().collect();
        assert!(texts.iter().all(|line| lines.contains(line)), "{mail}\n─▶ {text}");
        assert!(!text.contains("<p>"), "{mail}\n─▶ {text}");
    }
}

#[test]
fn character_sets_of_mail_that_do_not_fit_are_told() {
    let folder = new_folder();
    let read = |mail: &[u8]| {
        folder.write("a.eml", mail);
        let command = ["ingest", "a.eml", "--documents", "mbox", "--html", "text", "-o", "c.tadoc"];
        let ran = folder.run(&[&command[..], &["--force"]].concat());
        assert_eq!(ran.status, 0, "{}", ran.stderr);
        (folder.cat("c.tadoc", "a.eml"), ran.stderr)
    };
    let body = |charset: &str, bytes: &[u8]| {
        let head = format!("Content-Type: text/plain; charset={charset}\n\n");
        let (text, told) = read(&[head.as_bytes(), bytes].concat());
        (text[head.len()..].to_vec(), told)
    };
    for (charset, bytes, text) in [
        ("cp437", &b"caf\x82"[..], "café"),
        ("eucgb2312_cn", b"\xd6\xd0", "中"),
        ("big5_tw", b"\xa4\xa4", "中"),
        ("\"'iso-8859-1'\"", b"\xe9", "é"),
        ("cp437", "é".as_bytes(), "├⌐"),
        ("utf-8", "\u{fffd}".as_bytes(), "\u{fffd}"),
        ("utf-7", b"1 +- 1 is Gr+APwA3w-e +AKM.", "1 + 1 is Grüße £."),
        ("unicode-1-1-utf-7", b"+ZeVnLIqe", "日本語"),
    ] {
        let (found, told) = body(charset, bytes);
        assert_eq!(String::from_utf8(found).unwrap(), text, "{charset}");
        assert!(!told.contains("note:") && !told.contains("mean nothing"), "{charset}: {told}");
    }
    for (charset, bytes, text) in [
        ("utf-8", &b"K\xf6ln"[..], "K\u{fffd}ln"),
        ("gb2312", b"a\xff", "a\u{fffd}"),
        ("utf-7", b"a +! +AO", "a \u{fffd}! \u{fffd}"),
        ("iso-2022-kr", b"\x1b$)C\x0eGQ19\x0f", "\x1b$)C\x0eGQ19\x0f"),
        ("hz-gb-2312", b"~{VP~}", "~{VP~}"),
    ] {
        let (found, told) = body(charset, bytes);
        assert_eq!(String::from_utf8(found).unwrap(), text, "{charset}");
        assert!(told.contains(charset) && told.contains("a.eml"), "{charset}: {told}");
    }
    let (found, told) = body("x-none", b"K\xf6ln");
    assert_eq!(found, b"K\xf6ln");
    assert!(told.contains("1 file with texts in x-none, a character set that is not known"), "{told}");
    let (text, told) = read(b"Content-Type: text/html\n\n<meta charset=iso-8859-1><p>caf\xe9</p>");
    assert!(text.ends_with("café\n".as_bytes()), "{told}");
    let (_, told) = read(b"Subject: =?utf-8?Q?=E9?= caf\xe9\n\nx\n");
    assert!(told.contains("1 file with bytes that mean nothing in utf-8, for which U+FFFD"), "{told}");

    // Texts and pages, too.
    folder.write("in/a.txt", b"K\xf6ln");
    folder.write("in/b.txt", b"K\xf6ln");
    let ran = folder.run(&["ingest", "in", "--charset", "utf-8", "-o", "t.tadoc"]);
    assert!(ran.stderr.contains("2 files with bytes that mean nothing in utf-8"), "{}", ran.stderr);
    folder.write("p.html", b"<meta charset=euc-jp><p>\xff</p>");
    let ran = folder.run(&["ingest", "p.html", "--html", "text", "-o", "p.tadoc"]);
    assert!(ran.stderr.contains("1 file with bytes that mean nothing in euc-jp"), "{}", ran.stderr);
}

#[test]
fn a_byte_order_mark_is_no_part_of_mail() {
    let folder = new_folder();
    folder.write("a.mbox", format!("\u{feff}{MAIL}"));
    folder.write("b.eml", "\u{feff}Subject: one\n\nbody\n");
    folder.write("c.eml", "\u{feff}");
    folder.ok(&["ingest", "a.mbox", "b.eml", "c.eml", "--documents", "mbox", "-o", "c.tadoc"]);
    let sql = "SELECT path, subject FROM d ORDER BY doc_id";
    assert_eq!(
        folder.table_rows("c.tadoc", sql),
        ["a.mbox,Grüße", "a.mbox,no body", "a.mbox,last", "b.eml,one", "c.eml,"]
    );
    assert_eq!(folder.cat("c.tadoc", "b.eml"), b"Subject: one\n\nbody\n");
}

#[test]
fn a_file_may_be_one_message() {
    let folder = new_folder();
    let mail = "From: Ann <ann@example.com>\r\nSubject: one\r\n\r\nHello,\r\n\r\nFrom here\r\n>From\r\n\r\n";
    folder.write("in/a.eml", mail);
    folder.write("in/B.EML", "Subject: two\n\n");
    folder.write("in/c.eml", "");
    folder.ok(&["ingest", "in", "--documents", "mbox", "-o", "c.tadoc"]);
    assert_eq!(folder.cat("c.tadoc", "a.eml"), mail.as_bytes());
    assert_eq!(folder.cat("c.tadoc", "B.EML"), b"Subject: two\n\n");
    let sql = "SELECT path, \"from\", subject, bytes FROM d ORDER BY path";
    assert_eq!(
        folder.table_rows("c.tadoc", sql),
        ["B.EML,,two,14".to_owned(), format!("a.eml,Ann <ann@example.com>,one,{}", mail.len()), "c.eml,,,0".to_owned()]
    );
}

const PAGE: &str = "<!DOCTYPE html><title>Castle</title><script>no()</script>\n\
    <h1>The &ldquo;castle&rdquo;</h1><p>two <b>three</b><br>four</p>\
    <table><tr><td>a<td>b</table>";
const PAGE_TEXT: &str = "Castle\nThe “castle”\ntwo three\nfour\na\tb\n";

#[test]
fn pages_are_stored_as_text_on_demand() {
    let folder = new_folder();
    folder.write("site/a.html", PAGE);
    folder.write("site/b.HTM.gz", gzip(PAGE.as_bytes()));
    folder.write("site/c.xhtml", "<html><script src='x'/><p>c</p></html>");
    folder.write("site/d.txt", PAGE);
    folder.write("site/e.html", "");
    // Books name pages of XHTML so.
    let chapter = "\u{feff}<?xml version='1.0'?><html><head><title/><script src='x'/></head><p>f</p></html>";
    folder.write("site/f.html", chapter);
    folder.ok(&["ingest", "site", "--html", "text", "-o", "c.tadoc"]);
    assert_eq!(folder.cat("c.tadoc", "a.html"), PAGE_TEXT.as_bytes());
    assert_eq!(folder.cat("c.tadoc", "b.HTM.gz"), PAGE_TEXT.as_bytes());
    assert_eq!(folder.cat("c.tadoc", "c.xhtml"), b"c\n");
    assert_eq!(folder.cat("c.tadoc", "d.txt"), PAGE.as_bytes());
    assert_eq!(folder.cat("c.tadoc", "e.html"), b"");
    assert_eq!(folder.cat("c.tadoc", "f.html"), b"f\n");
    // Without the option the bytes stay.
    folder.ok(&["ingest", "site/a.html", "-o", "bytes.tadoc"]);
    assert_eq!(folder.cat("bytes.tadoc", "site/a.html"), PAGE.as_bytes());

    // Members of archives, under their paths.
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(PAGE.len() as u64);
    header.set_cksum();
    archive.append_data(&mut header, "deep/x.html", PAGE.as_bytes()).unwrap();
    folder.write("site.tar", archive.into_inner().unwrap());
    folder.ok(&["ingest", "site.tar", "--html", "text", "-o", "tar.tadoc"]);
    assert_eq!(folder.cat("tar.tadoc", "deep/x.html"), PAGE_TEXT.as_bytes());

    let long = format!("<p>{}", "x".repeat(70_000));
    folder.write("long.html", &long);
    let command = ["ingest", "long.html", "--html", "text", "-o", "d.tadoc"];
    let ran = folder.run(&[&command[..], &["--max-row-size", "64KiB"]].concat());
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("long.html: the HTML of a page is larger than"), "{}", ran.stderr);
    folder.ok(&command);
    assert_eq!(folder.cat("d.tadoc", "long.html").len(), 70_001);
    let refused = folder.run(&[&command[..], &["--documents", "lines"]].concat());
    assert_eq!(refused.status, 2);
    assert!(refused.stderr.contains("--html text goes with"), "{}", refused.stderr);
}

#[test]
fn pages_of_a_crawl_are_stored_as_text_on_demand() {
    let folder = new_folder();
    let response = |kind: &str, more: &str| format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n{more}\r\n{PAGE}");
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{PAGE}\r\n0\r\n\r\n",
        PAGE.len()
    );
    let records = [
        record("response", "http://a.example/1", HTTP, &response("text/html; charset=utf-8", "")),
        record("response", "http://a.example/2", HTTP, &response("text/plain", "")),
        record("response", "http://a.example/3", HTTP, &response("text/html", "Content-Encoding: br\r\n")),
        record("response", "http://a.example/4", HTTP, &chunked),
        record("resource", "http://a.example/5", "text/html", PAGE),
    ];
    folder.write("crawl.warc", records.concat());
    folder.ok(&["ingest", "crawl.warc", "--documents", "warc", "--html", "text", "-o", "c.tadoc"]);
    // The third one is not packed, although its header lines say so.
    for (page, text) in [(1, PAGE_TEXT), (2, PAGE), (3, PAGE_TEXT), (4, PAGE_TEXT), (5, PAGE_TEXT)] {
        let path = format!("http://a.example/{page}");
        assert_eq!(folder.cat("c.tadoc", &path), text.as_bytes(), "{page}");
    }
    assert_eq!(
        folder.table_rows("c.tadoc", "SELECT content_type FROM d WHERE doc_id = 0"),
        ["text/html; charset=utf-8"]
    );
}

#[test]
fn pages_of_other_character_sets_become_utf_8() {
    let folder = new_folder();
    let utf16 = |text: &str| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    folder.write("in/mark.html", utf16("<p>日本 é</p>"));
    folder.write("in/meta.html", b"<meta charset=iso-8859-1><p>caf\xe9</p>");
    folder.write("in/utf8.html", "\u{feff}<p>café</p>");
    folder.write("in/plain.txt", utf16("日本 é"));
    folder.write("in/marked.txt", "\u{feff}café");
    folder.ok(&["ingest", "in", "--html", "text", "-o", "c.tadoc"]);
    for (path, text) in [
        ("mark.html", "日本 é\n".as_bytes()),
        ("meta.html", "café\n".as_bytes()),
        ("utf8.html", "café\n".as_bytes()),
        // Plain text keeps its bytes.
        ("plain.txt", &utf16("日本 é")),
        ("marked.txt", "\u{feff}café".as_bytes()),
    ] {
        assert_eq!(folder.cat("c.tadoc", path), text, "{path}");
    }
    // A mark of UTF-8 is no part of a word.
    let rows = folder.rows("SELECT path FROM search('c.tadoc', '^café') ORDER BY path");
    assert_eq!(rows, ["marked.txt", "meta.html", "utf8.html"]);

    let response = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=windows-1251\r\n\r\n<p>\xe9</p>";
    let head = record("response", "http://a.example/1", HTTP, &"x".repeat(response.len()));
    let (head, _) = head.split_once("\r\n\r\nx").unwrap();
    folder.write("crawl.warc", [head.as_bytes(), b"\r\n\r\n", response, b"\r\n\r\n"].concat());
    folder.ok(&["ingest", "crawl.warc", "--documents", "warc", "--html", "text", "-o", "w.tadoc"]);
    assert_eq!(folder.cat("w.tadoc", "http://a.example/1"), "й\n".as_bytes());
}
