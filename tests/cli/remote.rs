//! Tests of corpora and other files behind HTTP and S3, with a stand-in for the server.

use std::ffi::OsStr;

use testkit::command::http_server;

use crate::harness::{Folder, Ran, new_folder};

fn corpus() -> (Folder, u16) {
    let folder = new_folder();
    folder.write("in/a.txt", "to be or not to be");
    folder.ok(&["ingest", "in", "-o", "c.tadoc"]);
    let port = http_server(&folder, &["c.tadoc"]);
    (folder, port)
}

#[test]
fn http() {
    let (folder, port) = corpus();
    let url = format!("http://127.0.0.1:{port}/c.tadoc");
    let sql = format!("SELECT word, count FROM word_count('{url}') ORDER BY word LIMIT 2");
    assert_eq!(folder.rows(&sql), ["be,2", "not,1"]);
    let missing = format!("SELECT * FROM word_count('http://127.0.0.1:{port}/other.tadoc')");
    let ran = folder.run(&["sql", "-c", &missing]);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("/other.tadoc"), "{}", ran.stderr);
}

#[test]
fn s3() {
    let (folder, port) = corpus();
    let sql = "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 's3://bucket/c.tadoc';
               SELECT byte_offset FROM search('d', 'not')";
    let mut command = folder.command(&["sql", "-q", "--format", "csv", "-c", sql]);
    command.env("AWS_ENDPOINT", format!("http://127.0.0.1:{port}"));
    command.envs([
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "anybody"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
    ]);
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "byte_offset\n9\n", "{}", ran.stderr);
}

#[test]
fn other_hosts_are_played_by_this_machine() {
    let (folder, port) = corpus();
    let sql = "SELECT count(*) FROM word_count('http://elsewhere.invalid/c.tadoc')";
    let mut command = folder.command(&["sql", "-q", "--format", "csv", "-c", sql]);
    // The harness names port 9, so that a test without this line reaches nobody.
    let proxies = ["http_proxy", "HTTP_PROXY"];
    let names_nobody = |(name, value): (&OsStr, Option<&OsStr>)| {
        proxies.map(OsStr::new).contains(&name) && value == Some(OsStr::new("http://127.0.0.1:9"))
    };
    assert_eq!(command.get_envs().filter(|env| names_nobody(*env)).count(), 2);
    command.envs(proxies.map(|name| (name, format!("http://127.0.0.1:{port}"))));
    assert_eq!(Ran::from(command.output().unwrap()).ok(), "count(*)\n4\n");
}

/// Returns a folder with a CSV file without header and a GSST file, and the port that serves them.
fn tables() -> (Folder, u16) {
    let folder = new_folder();
    folder.write("c.csv", "1;to be\n2;or not\n");
    let copy = "COPY (SELECT 'storm ' || value AS text FROM generate_series(1, 3)) TO 'c.parquet' \
                STORED AS GSST";
    folder.ok(&["sql", "-q", "-c", copy]);
    let port = http_server(&folder, &["c.csv", "c.parquet"]);
    (folder, port)
}

#[test]
fn tables_of_other_formats_keep_their_columns_and_options() {
    let (folder, port) = tables();
    let server = format!("http://127.0.0.1:{port}");
    let rows = |sql: String| {
        let mut command = folder.command(&["sql", "-q", "--format", "csv", "-c", &sql]);
        // A configuration file of the user would be another source of credentials.
        command.env("AWS_CONFIG_FILE", "none").env("AWS_SHARED_CREDENTIALS_FILE", "none");
        Ran::from(command.output().unwrap())
    };
    let keys = format!(
        "'aws.endpoint' '{server}', 'aws.allow_http' 'true', 'aws.region' 'eu-west-1', \
         'aws.access_key_id' 'anybody', 'aws.secret_access_key' 'secret'"
    );
    let csv = "'format.has_header' 'false', 'format.delimiter' ';'";
    for (location, options) in [
        ("c.csv", csv.to_string()),
        (&format!("{server}/c.csv"), csv.to_string()),
        ("s3://bucket/c.csv", format!("{keys}, {csv}")),
    ] {
        let ran = rows(format!(
            "CREATE EXTERNAL TABLE t (n BIGINT, words VARCHAR NOT NULL) STORED AS CSV
             LOCATION '{location}' OPTIONS ({options});
             SELECT n + 1 AS n, words FROM t ORDER BY n"
        ));
        assert_eq!(ran.ok(), "n,words\n2,to be\n3,or not\n", "{location}");
    }
    // Formats of this crate also know the options of stores, and refuse all options that neither of
    // them knows.
    let gsst = |location: &str, options: &str| {
        rows(format!(
            "CREATE EXTERNAL TABLE g STORED AS GSST LOCATION '{location}' OPTIONS ({options});
             SELECT count(*) AS n FROM g WHERE text LIKE '%2'"
        ))
    };
    let url = format!("{server}/c.parquet");
    for (location, options) in [(url.as_str(), "'tadoc.device' 'cpu'"), ("s3://bucket/c.parquet", &keys)] {
        assert_eq!(gsst(location, options).ok(), "n\n1\n", "{location}");
    }
    let ran = gsst("s3://bucket/c.parquet", &format!("{keys}, 'tadoc.devise' 'cpu'"));
    assert!(ran.status == 1 && ran.stderr.contains("devise"), "{}", ran.stderr);
    let ran = gsst("s3://bucket/c.parquet", &format!("{keys}, 'aws.nothing' '1'"));
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    let ran = gsst(&url, &keys);
    assert!(ran.status == 1 && ran.stderr.contains("aws."), "{}", ran.stderr);
}

#[test]
fn corpora_take_keys_from_options() {
    let (folder, port) = corpus();
    let sql = format!(
        "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION 's3://bucket/c.tadoc' OPTIONS (
         'aws.endpoint' 'http://127.0.0.1:{port}', 'aws.allow_http' 'true', 'aws.region' 'eu-west-1',
         'aws.access_key_id' 'anybody', 'aws.secret_access_key' 'secret');
         SELECT byte_offset FROM search('d', 'not')"
    );
    assert_eq!(folder.ok(&["sql", "-q", "--format", "csv", "-c", &sql]), "byte_offset\n9\n");
}
