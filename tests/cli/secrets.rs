//! Tests that no output of `tadoc` contains passwords, keys and tokens of statements.

use crate::harness::new_folder;
use testkit::command::http_server;

const SECRET: &str = "T0pS3cret";

#[test]
fn no_output_has_a_secret() {
    let folder = new_folder();
    folder.write("a.txt", "to be or not to be");
    folder.ok(&["ingest", "a.txt", "-o", "c.tadoc"]);
    folder.write("a.csv", "a\n1\n");
    let key = format!("'aws.secret_access_key' '{SECRET}', 'aws.access_key_id' 'AK{SECRET}', 'aws.region' 'eu'");
    // No store has this scheme, so nothing goes to the network.
    let url = format!("nosuch://ann:{SECRET}@host");
    let copy = "COPY (SELECT 'x' AS text) TO 's3://no-such/x";
    let statements = [
        format!("EXPLAIN {copy}.csv' OPTIONS ({key})"),
        format!("EXPLAIN VERBOSE {copy}.tadoc' OPTIONS ({key})"),
        format!("EXPLAIN FORMAT TREE {copy}.parquet' OPTIONS ({key})"),
        format!("EXPLAIN {copy}.tadoc' OPTIONS ({key}, 'aws.session_token' '{SECRET}', 'tadoc.nothing' '1')"),
        format!(
            "EXPLAIN {copy}.csv' OPTIONS ('aws.region' 'eu', 'aws.access_key_id' 'AK', 'aws.secret_access_key' = '{SECRET}')"
        ),
        format!(
            "EXPLAIN {copy}.csv' OPTIONS ('aws.region' 'eu', 'aws.access_key_id' 'AK', 'aws.secret_access_key' {SECRET})"
        ),
        format!("CREATE EXTERNAL TABLE t STORED AS TADOC LOCATION 's3://b/x.tadoc' OPTIONS ({key}, 'x.y' 'z')"),
        format!("SELECT * FROM documents('{url}/x.tadoc')"),
        format!("EXPLAIN SELECT * FROM word_count('{url}/x.tadoc')"),
        format!("SELECT * FROM read_text('{url}/*.txt')"),
        format!("CREATE VIEW v AS SELECT * FROM word_count('{url}/x.tadoc'); SHOW CREATE TABLE v"),
        format!("SELECT * FROM 'nosuch://{SECRET}@h/x?sig={SECRET}'"),
    ];
    for sql in &statements {
        let ran = folder.run(&["sql", "--maxrows", "inf", "-c", sql]);
        let stdout = String::from_utf8(ran.stdout).unwrap();
        assert!(!stdout.contains(SECRET) && !ran.stderr.contains(SECRET), "{sql}\n{stdout}\n{}", ran.stderr);
        assert!(ran.status < 2, "{sql}: {}", ran.stderr);
    }
}

#[test]
fn reports_on_urls_have_no_password() {
    let folder = new_folder();
    folder.write("a.txt", "to be or not to be");
    folder.ok(&["ingest", "a.txt", "-o", "c.tadoc"]);
    let port = http_server(&folder, &["c.tadoc"]);
    let url = format!("http://ann:{SECRET}@127.0.0.1:{port}/c.tadoc");
    for command in [&["info"][..], &["info", "--json"], &["verify"]] {
        let text = folder.ok(&[command, &[url.as_str()]].concat());
        assert!(text.contains("***@127.0.0.1") && !text.contains(SECRET), "{command:?}: {text}");
    }
}

#[test]
fn explained_copies_know_the_options_of_their_store() {
    let folder = new_folder();
    for (file, plan) in [("x.csv", "CsvSink"), ("x.tadoc", "TadocSink")] {
        let sql = format!(
            "EXPLAIN COPY (SELECT 'x' AS text) TO 's3://b/{file}' OPTIONS ('aws.region' 'eu', \
             'aws.access_key_id' 'AKIA', 'aws.secret_access_key' '{SECRET}')"
        );
        let text = folder.ok(&["sql", "-q", "-c", &sql]);
        assert!(text.contains(plan) && !text.contains("physical_plan_error"), "{text}");
    }
}
