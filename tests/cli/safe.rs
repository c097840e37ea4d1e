//! Tests of `tadoc sql --safe`: attempts to leave the sandbox, none of which succeeds.
//!
//! Each attempt is one statement. It must fail with the error of safe mode, and its output must not
//! contain what is outside. Most of them are also run without `--safe`, where they must succeed: so a
//! refusal is no accident. Servers are stand-ins on the loopback.
//!
//! ```text
//! inside/    c.tadoc, t.csv, notes/ (living), and links to outside     --allow inside
//! outside/   c.tadoc, t.csv, t.json, t.parquet, living/                not allowed
//! ```

use std::fs;
use std::os::unix::fs::symlink;

use crate::harness::{Folder, Ran, new_folder};
#[cfg(feature = "stores")]
use testkit::command::http_server;

/// Word of the files outside, in the form of the corpora and tables.
const OUTSIDE: &str = "0utsideW0rd";
/// What the error of safe mode begins with.
const REFUSED: &str = "safe mode refuses";

/// An attempt.
struct Attempt {
    sql: String,
    /// True if it works without safe mode.
    works: bool,
}

fn attempts(works: bool, texts: &[&str]) -> Vec<Attempt> {
    texts.iter().map(|sql| Attempt { sql: (*sql).to_owned(), works }).collect()
}

fn scene() -> Folder {
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    folder.write("out/a.txt", OUTSIDE);
    fs::create_dir(folder.join("inside")).unwrap();
    fs::create_dir(folder.join("outside")).unwrap();
    for (place, from) in [("inside", "in"), ("outside", "out")] {
        folder.ok(&["ingest", from, "-o", &format!("{place}/c.tadoc")]);
    }
    folder.ok(&["ingest", "in", "-o", "inside/notes", "--append"]);
    folder.ok(&["ingest", "out", "-o", "outside/living", "--append"]);
    folder.write("inside/t.csv", "a\nto be\n");
    folder.write("outside/t.csv", format!("a\n{OUTSIDE}\n"));
    folder.write("outside/t.json", format!("{{\"a\": \"{OUTSIDE}\"}}\n"));
    let copy = format!("COPY (SELECT '{OUTSIDE}' AS a) TO 'outside/t.parquet'");
    folder.ok(&["sql", "-q", "-c", &copy]);
    let outside = folder.join("outside");
    symlink("../outside/c.tadoc", folder.join("inside/link.tadoc")).unwrap();
    symlink("link.tadoc", folder.join("inside/chain.tadoc")).unwrap();
    symlink(outside.join("c.tadoc"), folder.join("inside/absolute.tadoc")).unwrap();
    symlink("../outside/t.csv", folder.join("inside/link.csv")).unwrap();
    symlink(&outside, folder.join("inside/folder")).unwrap();
    symlink("../outside/living", folder.join("inside/living")).unwrap();
    symlink("../outside/missing.tadoc", folder.join("inside/broken.tadoc")).unwrap();
    folder
}

/// Runs `sql` with `--safe` and `options`.
fn run_safe(folder: &Folder, options: &[&str], sql: &str) -> Ran {
    let arguments = [&["sql", "-q", "--safe"], options, &["-c", sql]].concat();
    folder.run(&arguments)
}

/// Checks that all attempts fail with the error of safe mode, and that those that should work
/// without it do.
fn none_succeeds(folder: &Folder, options: &[&str], attempts: &[Attempt]) {
    for Attempt { sql, works } in attempts {
        let sql = sql.replace("{dir}", folder.path().to_str().unwrap());
        // Before the attempt without safe mode, which may write.
        let ran = run_safe(folder, options, &sql);
        let stdout = String::from_utf8_lossy(&ran.stdout);
        assert!(!stdout.contains(OUTSIDE) && !ran.stderr.contains(OUTSIDE), "{sql}\n{stdout}");
        // DataFusion shows an error of a plan that is only explained as a row.
        let is_explained = sql.starts_with("EXPLAIN") && stdout.contains(REFUSED);
        let is_refused = ran.status == 1 && ran.stderr.starts_with(&format!("error: {REFUSED}"));
        assert!(is_refused || is_explained, "{sql}\n{stdout}\n{}", ran.stderr);
        let shown = if is_explained { &stdout } else { ran.stderr.as_str() };
        assert!(shown.contains("--") || shown.contains("environment"), "no way out: {shown}");
        if *works {
            let ran = folder.run(&["sql", "-q", "-c", &sql]);
            assert_eq!(ran.status, 0, "{sql}\n{}", ran.stderr);
        }
    }
}

const PATHS: &[&str] = &[
    "outside/c.tadoc",
    "./outside/c.tadoc",
    "{dir}/outside/c.tadoc",
    "inside/../outside/c.tadoc",
    "{dir}/inside/../outside/c.tadoc",
    "file://{dir}/outside/c.tadoc",
    "FILE://{dir}/outside/c.tadoc",
    "file://localhost{dir}/outside/c.tadoc",
    "file://{dir}/inside/%2e%2e/outside/c.tadoc",
    "file://{dir}/inside/.%2E/outside/c.tadoc",
    "file://{dir}/%6futside/c.tadoc",
    "inside/link.tadoc",
    "inside/chain.tadoc",
    "inside/absolute.tadoc",
    "file://{dir}/inside/link.tadoc",
    "inside/folder/c.tadoc",
    "file://{dir}/inside/folder/c.tadoc",
    "inside/folder/../outside/c.tadoc",
    "inside/notes/../../outside/c.tadoc",
    "outside/*.tadoc",
    "{dir}/outside/*.tadoc",
    "file://{dir}/outside/*.tadoc",
    "inside/../outside/?.tadoc",
    "inside/../outside/**/c.tadoc",
    "inside/folder/[a-c].tadoc",
    "inside/lin[k].tadoc",
    "out*/c.tadoc",
    "**/c.tadoc",
    "outside/living",
    "outside/living/",
    "inside/living",
    "file://{dir}/outside/living/",
];

#[test]
fn no_path_leads_out() {
    let all =
        PATHS.iter().map(|path| Attempt { sql: format!("SELECT word, count FROM word_count('{path}')"), works: true });
    none_succeeds(&scene(), &["--allow", "inside"], &all.collect::<Vec<_>>());
}

#[test]
fn no_file_that_is_missing_is_told_from_one_that_is_not() {
    let folder = scene();
    let error = |path: &str| {
        let ran = run_safe(&folder, &["--allow", "inside"], &format!("SELECT * FROM '{path}'"));
        ran.stderr.replace("missing", "c")
    };
    assert_eq!(error("outside/c.tadoc"), error("outside/missing.tadoc"));
    let broken = attempts(false, &["SELECT * FROM documents('inside/broken.tadoc')"]);
    none_succeeds(&folder, &["--allow", "inside"], &broken);
}

#[test]
fn no_function_and_no_clause_leads_out() {
    let functions = attempts(
        true,
        &[
            "SELECT * FROM documents('outside/c.tadoc')",
            "SELECT * FROM search('outside/c.tadoc', '0utsideW0rd')",
            "SELECT * FROM extract('outside/c.tadoc', 0, 0, 5)",
            "SELECT * FROM grep('outside/c.tadoc', '.')",
            "SELECT * FROM corpus_info('outside/c.tadoc')",
            "SELECT * FROM corpus_verify('outside/c.tadoc')",
            "SELECT * FROM tokens('outside/c.tadoc')",
            "SELECT * FROM WORD_COUNT(corpus => 'outside/c.tadoc')",
            "SELECT * FROM public.word_count('outside/c.tadoc')",
            "SELECT * FROM keyness('inside/c.tadoc', 'outside/c.tadoc')",
            "SELECT extract_text('outside/c.tadoc', 0, 0, 5)",
            "SELECT count_word('outside/c.tadoc', 0, '0utsideW0rd')",
            "SELECT * FROM 'outside/c.tadoc'",
            "SELECT * FROM \"outside/living/\"",
            "SELECT * FROM 'outside/t.csv'",
            "SELECT * FROM '{dir}/outside/t.csv'",
            "SELECT * FROM 'file://{dir}/outside/t.csv'",
            "SELECT * FROM 'outside/t.json'",
            "SELECT * FROM 'outside/t.parquet'",
            "SELECT * FROM 'outside/*.csv'",
            "SELECT * FROM 'inside/link.csv'",
            "SELECT * FROM 'inside/folder/t.csv'",
            "SELECT * FROM 'inside/../outside/t.parquet'",
            "SELECT (SELECT max(a) FROM 'outside/t.csv')",
            "SELECT 1 WHERE EXISTS (SELECT * FROM 'outside/t.csv')",
            "SELECT 1 WHERE '0utsideW0rd' IN (SELECT word FROM word_count('outside/c.tadoc'))",
            "WITH t AS (SELECT * FROM 'outside/t.csv') SELECT * FROM t",
            "SELECT a FROM 'inside/t.csv' UNION ALL SELECT a FROM 'outside/t.csv'",
            "SELECT * FROM 'inside/t.csv' JOIN 'outside/t.csv' ON true",
            "SELECT * FROM (VALUES (1)) JOIN documents('outside/c.tadoc') ON true",
            "DESCRIBE 'outside/t.csv'",
            "EXPLAIN SELECT * FROM word_count('outside/c.tadoc')",
            "EXPLAIN ANALYZE SELECT * FROM word_count('outside/c.tadoc')",
            "EXPLAIN SELECT * FROM 'outside/t.csv'",
        ],
    );
    none_succeeds(&scene(), &["--allow", "inside"], &functions);
    let plain = attempts(
        true,
        &[
            "SELECT * FROM read_text('outside/t.csv')",
            "SELECT * FROM read_text('inside/t.csv')",
            "SELECT * FROM READ_TEXT(glob => 'inside/*.csv')",
            "SELECT * FROM \"read_text\"('inside/link.csv')",
            "SELECT * FROM read_lines('inside/t.csv')",
            "SELECT (SELECT max(text) FROM public.read_text('inside/t.csv'))",
            "EXPLAIN SELECT * FROM read_text('inside/t.csv')",
        ],
    );
    none_succeeds(&scene(), &["--allow", "inside"], &plain);
}

#[test]
fn no_statement_changes_anything() {
    let statements = attempts(
        true,
        &[
            "COPY (SELECT 1 AS a) TO 'inside/new.csv'",
            "COPY (SELECT 1 AS a) TO 'outside/new.parquet'",
            "COPY (SELECT 'x' AS text) TO 'inside/new.tadoc'",
            "EXPLAIN COPY (SELECT 1 AS a) TO 'inside/new2.csv'",
            "EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO 'inside/new3.csv'",
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'outside/c.tadoc'",
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'inside/c.tadoc'",
            "CREATE EXTERNAL TABLE d STORED AS CSV LOCATION 'outside/t.csv'",
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'inside/new/' OPTIONS ('tadoc.create' 'true')",
            "CREATE TABLE t AS VALUES (1)",
            "CREATE VIEW v AS SELECT * FROM 'outside/t.csv'",
            "CREATE SCHEMA s",
            "CREATE DATABASE b",
            "DROP TABLE IF EXISTS t",
            "DROP VIEW IF EXISTS v",
            "INSERT INTO 'inside/notes/' (path, text) VALUES ('b.txt', 'x')",
            "DELETE FROM 'inside/notes/' WHERE path = 'b.txt'",
            "UPDATE 'inside/notes/' SET text = 'y' WHERE path = 'b.txt'",
            "PREPARE p AS SELECT 1",
            "SET tadoc.max_hits = '1'",
            "SET tadoc.max_memory_bytes = '99999999999'",
            "SET tadoc.max_output_bytes = '99999999999'",
            "SET tadoc.device = 'cpu'",
            "SET datafusion.runtime.memory_limit = '99G'",
            "SET datafusion.runtime.temp_directory = '/tmp'",
            "SET datafusion.execution.batch_size = 1",
            "SET datafusion.sql_parser.recursion_limit = 100000",
            "RESET datafusion.execution.batch_size",
        ],
    );
    let folder = scene();
    none_succeeds(&folder, &["--allow", "inside"], &statements);
    let refused = attempts(
        false,
        &[
            "START TRANSACTION",
            "COMMIT",
            "EXECUTE p",
            "DEALLOCATE p",
            "CREATE FUNCTION f(DOUBLE) RETURNS DOUBLE RETURN $1",
            "CREATE EXTERNAL TABLE d STORED AS CSV LOCATION 's3://b/x.csv' OPTIONS ('aws.endpoint' 'x')",
        ],
    );
    none_succeeds(&folder, &["--allow", "inside"], &refused);
}

#[test]
fn permissions_open_one_door_each() {
    let folder = scene();
    let options = ["--allow", "inside", "--permit", "copy,create"];
    for sql in [
        "COPY (SELECT 1 AS a) TO 'inside/new.csv'",
        "COPY (SELECT 'x' AS text) TO 'inside/new.tadoc'",
        "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'inside/c.tadoc'; SELECT * FROM d",
        "CREATE VIEW v AS SELECT 1; SELECT * FROM v; DROP VIEW v",
    ] {
        run_safe(&folder, &options, sql).ok();
    }
    assert_eq!(folder.rows("SELECT text FROM documents('inside/new.tadoc')"), ["x"]);
    let outside = attempts(
        true,
        &[
            "COPY (SELECT 1 AS a) TO 'outside/new.csv'",
            "COPY (SELECT 'x' AS text) TO 'outside/new.tadoc'",
            "COPY (SELECT 'x' AS text) TO 'inside/folder/new2.tadoc'",
            "COPY (SELECT 1 AS a) TO 'inside/../outside/new.json'",
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'outside/c.tadoc'",
            "CREATE EXTERNAL TABLE d STORED AS CSV LOCATION 'outside/t.csv'",
            "CREATE EXTERNAL TABLE d STORED AS CSV LOCATION 'inside/folder/t.csv'",
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'inside/c.tadoc' OPTIONS ('tadoc.max_hits' '1')",
            "SELECT * FROM read_text('inside/t.csv')",
            "INSERT INTO 'inside/notes/' (path, text) VALUES ('b.txt', 'x')",
        ],
    );
    none_succeeds(&folder, &options, &outside);
    let stores = ["aws.endpoint", "aws.secret_access_key", "AWS.REGION", "gcp.service_account_key"];
    let stores = stores.map(|key| Attempt {
        sql: format!("CREATE EXTERNAL TABLE d STORED AS CSV LOCATION 's3://b/x.csv' OPTIONS ('{key}' 'x')"),
        works: false,
    });
    let with_bucket = [&options[..], &["--allow", "s3://b/"]].concat();
    none_succeeds(&folder, &with_bucket, &stores);
    let create = attempts(
        true,
        &["CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 'inside/new/' OPTIONS ('tadoc.create' 'true')"],
    );
    none_succeeds(&folder, &["--allow", "inside", "--permit", "create"], &create);
    let read = ["--allow", "inside", "--permit", "read-text", "--permit", "set"];
    let sql = "SET tadoc.max_hits = '5'; SELECT text FROM read_text('inside/t.csv')";
    assert!(String::from_utf8(run_safe(&folder, &read, sql).stdout).unwrap().contains("to be"));
    let outside = attempts(
        true,
        &[
            "SELECT text FROM read_text('outside/t.csv')",
            "SELECT text FROM read_text('inside/link.csv')",
            "SELECT text FROM read_text('inside/folder/*.csv')",
            "SELECT text FROM read_lines('inside/../outside/t.csv')",
        ],
    );
    none_succeeds(&folder, &read, &outside);
}

#[test]
fn queries_over_allowed_places_answer_as_without_safe_mode() {
    let folder = scene();
    for sql in [
        "SELECT word, count FROM word_count('inside/c.tadoc') ORDER BY word",
        "SELECT word, count FROM word_count('{dir}/inside/c.tadoc') ORDER BY word",
        "SELECT path, text FROM documents('file://{dir}/inside/c.tadoc')",
        "SELECT path, text FROM documents('inside/notes')",
        "SELECT path, text FROM documents('inside/notes/')",
        "SELECT path, text FROM 'inside/notes/'",
        "SELECT path, text FROM 'inside/c.tadoc'",
        "SELECT path FROM documents('inside/[c].tadoc')",
        "SELECT * FROM 'inside/t.csv'",
        "SELECT * FROM corpus_info('inside/notes')",
        "SELECT * FROM search('inside/c.tadoc', 'to be')",
        "SELECT extract_text('inside/c.tadoc', 0, 0, 5)",
        "DESCRIBE 'inside/t.csv'",
        "SHOW tadoc.max_hits",
        "SET datafusion.format.null = 'nothing'; SELECT NULL",
        "SET datafusion.explain.format = 'tree'; EXPLAIN SELECT 1",
        "SET TIME ZONE = '+02:00'; SELECT 1",
        "VALUES (1), (2)",
        "SELECT count(*) FROM tadoc_functions()",
    ] {
        let sql = sql.replace("{dir}", folder.path().to_str().unwrap());
        let plain = folder.ok(&["sql", "-q", "--format", "csv", "-c", &sql]);
        let options = ["--allow", "inside", "--format", "csv"];
        assert_eq!(run_safe(&folder, &options, &sql).ok(), plain, "{sql}");
    }
    // One file is allowed, and not its neighbours.
    let one = ["--allow", "inside/c.tadoc"];
    run_safe(&folder, &one, "SELECT * FROM word_count('inside/c.tadoc')").ok();
    let beside = attempts(true, &["SELECT * FROM 'inside/t.csv'", "SELECT * FROM documents('inside/notes')"]);
    none_succeeds(&folder, &one, &beside);
    let nothing = attempts(true, &["SELECT * FROM word_count('inside/c.tadoc')"]);
    none_succeeds(&folder, &[], &nothing);
}

#[test]
fn listings_leave_out_what_links_outside() {
    let folder = new_folder();
    folder.write("in/a.txt", "to be");
    folder.write("out/a.txt", OUTSIDE);
    fs::create_dir(folder.join("inside")).unwrap();
    fs::create_dir(folder.join("outside")).unwrap();
    folder.ok(&["ingest", "in", "-o", "inside/c.tadoc"]);
    folder.ok(&["ingest", "out", "-o", "outside/o.tadoc"]);
    symlink("../outside", folder.join("inside/folder")).unwrap();
    symlink("..", folder.join("inside/above")).unwrap();
    symlink("c.tadoc", folder.join("inside/d.tadoc")).unwrap();
    let sql = |location: &str| format!("SELECT text FROM documents('{location}')");
    for location in ["inside", "inside/**/*.tadoc", "inside/*.tadoc"] {
        let ran = run_safe(&folder, &["--allow", "inside", "--format", "csv"], &sql(location));
        assert_eq!(ran.ok(), "text\nto be\nto be\n", "{location}");
    }
    assert!(folder.ok(&["sql", "-c", &sql("inside/**/*.tadoc")]).contains(OUTSIDE));
    folder.write("inside/t.txt", "plain");
    let read = "SELECT count(*) AS n FROM read_text('inside/*')";
    let ran = run_safe(&folder, &["--allow", "inside", "--permit", "read-text", "--format", "csv"], read);
    assert_eq!(ran.ok(), "n\n3\n");
    std::fs::remove_file(folder.join("inside/t.txt")).unwrap();
    // A link to a file is seen, and refused.
    symlink("../outside/o.tadoc", folder.join("inside/e.tadoc")).unwrap();
    let seen = ["inside", "inside/**/*.tadoc", "inside/*.tadoc"];
    let seen = seen.map(|location| Attempt { sql: sql(location), works: true });
    none_succeeds(&folder, &["--allow", "inside"], &seen);
}

/// Names of the loopback that name servers do not know; URLs are read as browsers read them.
#[cfg(feature = "stores")]
const LOOPBACKS: &[&str] = &[
    "127.0.0.1",
    "localhost",
    "LocalHost",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "127.1",
    "127.0.0.1.",
    "0",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[0:0:0:0:0:ffff:7f00:1]",
    "[64:ff9b::7f00:1]",
    "%31%32%37.0.0.1",
];

#[cfg(feature = "stores")]
#[test]
fn no_url_leads_to_hosts_that_are_not_public() {
    let folder = scene();
    let port = http_server(&folder, &["inside/c.tadoc", "inside/t.csv"]);
    for host in LOOPBACKS {
        let server = format!("http://{host}:{port}");
        let sql = format!("SELECT word FROM word_count('{server}/pub/inside/c.tadoc')");
        // The stand-in listens at one address only.
        let works = ["127.0.0.1", "2130706433", "0x7f.1"].contains(host);
        let attempt = Attempt { sql: sql.clone(), works };
        none_succeeds(&folder, &["--allow", &server], &[attempt]);
        if works {
            run_safe(&folder, &["--allow", &server, "--allow-private"], &sql).ok();
        }
    }
    let server = format!("http://127.0.0.1:{port}");
    let csv = format!("SELECT * FROM '{server}/pub/inside/t.csv'");
    let readers = [Attempt { sql: csv.clone(), works: true }];
    none_succeeds(&folder, &["--allow", &server], &readers);
    run_safe(&folder, &["--allow", &server, "--allow-private"], &csv).ok();
}

#[cfg(feature = "stores")]
#[test]
fn no_url_leads_out_of_an_allowed_one() {
    let folder = scene();
    let port = http_server(&folder, &["inside/c.tadoc", "inside/t.csv"]);
    let allowed = format!("http://127.0.0.1:{port}/pub");
    let corpora = [
        "/private/inside/c.tadoc",
        "/pub/../private/inside/c.tadoc",
        "/pub/%2e%2e/private/inside/c.tadoc",
        "/pub\\..\\private/inside/c.tadoc",
        "/public/inside/c.tadoc",
    ];
    let corpora = corpora
        .map(|path| Attempt { sql: format!("SELECT * FROM word_count('http://127.0.0.1:{port}{path}')"), works: true });
    let options = ["--allow", &allowed, "--allow-private"];
    none_succeeds(&folder, &options, &corpora);
    let csv = format!("SELECT * FROM 'http://127.0.0.1:{port}/private/inside/t.csv'");
    none_succeeds(&folder, &options, &[Attempt { sql: csv, works: true }]);
    let others = [
        format!("https://127.0.0.1:{port}/pub/c.tadoc"),
        "http://127.0.0.1:1/pub/c.tadoc".to_owned(),
        "s3://pub/c.tadoc".to_owned(),
        "gs://pub/c.tadoc".to_owned(),
        "abfs://pub@account.invalid/c.tadoc".to_owned(),
        "memory:///c.tadoc".to_owned(),
        "ftp://127.0.0.1/c.tadoc".to_owned(),
        "nosuch://pub/c.tadoc".to_owned(),
        "tadoc-safe://sandbox/c.tadoc".to_owned(),
    ];
    let others = others.map(|url| Attempt { sql: format!("SELECT * FROM documents('{url}')"), works: false });
    none_succeeds(&folder, &options, &others);
}

#[cfg(feature = "stores")]
#[test]
fn redirects_are_refused() {
    let folder = scene();
    let port = http_server(&folder, &["inside/c.tadoc"]);
    let url = format!("http://127.0.0.1:{port}/moved/inside/c.tadoc");
    let sql = format!("SELECT * FROM word_count('{url}')");
    let allowed = format!("http://127.0.0.1:{port}/");
    let moved = [Attempt { sql, works: true }];
    none_succeeds(&folder, &["--allow", &allowed, "--allow-private"], &moved);
}

#[cfg(feature = "stores")]
#[test]
fn endpoints_of_stores_are_checked_too() {
    let folder = scene();
    let port = http_server(&folder, &["inside/c.tadoc"]);
    let sql = "SELECT * FROM word_count('s3://bucket/inside/c.tadoc')";
    let run = |options: &[&str]| {
        let arguments = [&["sql", "-q", "--safe", "--allow", "s3://bucket/"], options, &["-c", sql]];
        let mut command = folder.command(&arguments.concat());
        command.env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}"));
        command.env("AWS_ALLOW_HTTP", "true").env("AWS_REGION", "eu-west-1");
        command.env("AWS_ACCESS_KEY_ID", "AKT0pS3cret").env("AWS_SECRET_ACCESS_KEY", "T0pS3cret");
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, error) = run(&[]);
    assert!(status == Some(1) && error.starts_with(&format!("error: {REFUSED} the host")), "{error}");
    let (status, error) = run(&["--allow-private"]);
    assert_eq!((status, error.as_str()), (Some(0), ""));
}

#[cfg(feature = "stores")]
#[test]
fn no_credential_is_shown() {
    let folder = scene();
    let port = http_server(&folder, &["inside/c.tadoc", "inside/t.csv"]);
    let host = format!("127.0.0.1:{port}");
    let secret = "T0pS3cret";
    let allowed = format!("http://{host}/");
    let urls = [
        format!("http://ann:{secret}@{host}/inside/c.tadoc"),
        format!("http://{secret}@{host}/inside/c.tadoc"),
        format!("http://ann:{secret}@127.0.0.1:1/c.tadoc?sig={secret}"),
        format!("s3://AK:{secret}@bucket/c.tadoc"),
        format!("http://127.0.0.1:1/c.tadoc?X-Amz-Signature={secret}"),
    ];
    for url in &urls {
        for sql in [
            format!("SELECT * FROM documents('{url}')"),
            format!("SELECT * FROM '{url}'"),
            format!("EXPLAIN SELECT * FROM word_count('{url}')"),
            format!("EXPLAIN VERBOSE SELECT * FROM '{url}'"),
        ] {
            let options = ["--allow", &allowed, "--allow-private"];
            let ran = run_safe(&folder, &options, &sql);
            let shown = format!("{}{}", String::from_utf8(ran.stdout).unwrap(), ran.stderr);
            assert!(!shown.contains(secret), "{sql}\n{shown}");
            assert!(shown.contains(REFUSED), "{sql}\n{shown}");
        }
    }
    folder.fails(
        &["sql", "--safe", "--allow", &format!("http://ann:{secret}@{host}/"), "-c", "SELECT 1"],
        &format!(
            "safe mode refuses a user or password in http://{host}; credentials and servers come from \
             the environment of the process"
        ),
    );
}

#[test]
fn prompts_and_options_are_closed_too() {
    let folder = scene();
    let ran = folder.run(&["sql", "--allow", "inside", "-c", "SELECT 1"]);
    assert!(ran.status == 2 && ran.stderr.contains("--safe"), "{}", ran.stderr);
    let ran = folder.run(&["sql", "--safe", "--permit", "all", "-c", "SELECT 1"]);
    assert!(ran.status == 2 && ran.stderr.contains("read-text, copy, create or set"), "{}", ran.stderr);
    let ran = folder.run(&["sql", "--safe", "--allow", "no/such", "-c", "SELECT 1"]);
    assert!(ran.status == 1 && ran.stderr.contains("no/such: cannot be allowed"), "{}", ran.stderr);
}
