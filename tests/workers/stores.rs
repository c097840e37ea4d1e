//! Workers that read from S3 and over HTTP: each opens the files itself.

use super::cluster::{DIVIDE, Worker, corpora, list, sorted};
use testkit::command::{BUCKET, Folder, Ran, http_server, s3_server};

/// Statements of a corpus `@`: a scan, a sum and a join.
const STATEMENTS: [&str; 3] = [
    "SELECT doc_id, byte_offset FROM search('@', 'storm')",
    "SELECT word, sum(count) AS count FROM term_vector('@') GROUP BY word",
    "SELECT a.doc_id, md5(a.text) AS digest FROM documents('@') a JOIN term_count('@', 'grammar') b \
     ON a.doc_id = b.doc_id",
];

/// Runs `statement` with variables of the environment.
fn run(folder: &Folder, workers: &str, statement: &str, variables: &[(&str, String)]) -> Ran {
    let mut arguments = vec!["sql", "--format", "ndjson", "--quiet"];
    if !workers.is_empty() {
        arguments.extend(["--workers", workers]);
        arguments.extend(DIVIDE);
    }
    arguments.extend(["-c", statement]);
    let mut command = folder.command(&arguments);
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    Ran::from(command.output().unwrap())
}

/// Compares the rows of workers that read the corpus at `url` with those of a process that reads
/// `local`.
fn compare(folder: &Folder, url: &str, local: &str, variables: &[(&str, String)]) {
    let workers = [(), ()].map(|()| Worker::start_with(folder, &[], variables));
    for statement in STATEMENTS {
        let got = run(folder, &list(&workers), &statement.replace('@', url), variables);
        let expected = run(folder, "", &statement.replace('@', local), &[]);
        assert_eq!(sorted(got), sorted(expected), "{url}: {statement}");
    }
    // Both have computed: the statements were divided.
    assert!(workers.iter().all(|worker| worker.computed() > 0.0));
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
}

#[test]
fn corpora_behind_http() {
    let folder = corpora();
    let port = http_server(&folder, &["many.tadoc"]);
    compare(&folder, &format!("http://127.0.0.1:{port}/many.tadoc"), "many.tadoc", &[]);
}

#[test]
fn corpora_in_s3() {
    let Some(server) = s3_server() else { return };
    let folder = corpora();
    let variables = server.variables();
    let bucket = format!("s3://{}/workers", BUCKET);
    let copy = format!(
        "COPY (SELECT path, text FROM documents('many.tadoc') ORDER BY doc_id) TO '{bucket}/many.tadoc' \
         STORED AS TADOC OPTIONS ('tadoc.block_bytes' '20000')"
    );
    run(&folder, "", &copy, &variables).ok();
    compare(&folder, &format!("{bucket}/many.tadoc"), "many.tadoc", &variables);
    // A living corpus, to which a divided statement adds documents.
    let begin = ["ingest", "first", "-o", &format!("{bucket}/living"), "--append"];
    let mut begin = folder.command(&begin);
    begin.envs(variables.iter().map(|(name, value)| (name, value)));
    Ran::from(begin.output().unwrap()).ok();
    let workers = [(), ()].map(|()| Worker::start_with(&folder, &[], &variables));
    let copy =
        format!("COPY (SELECT path, text FROM documents('{bucket}/many.tadoc')) TO '{bucket}/living/' STORED AS TADOC");
    run(&folder, &list(&workers), &copy, &variables).ok();
    let count = format!("SELECT count(*) AS n FROM documents('{bucket}/living/')");
    let counted = run(&folder, &list(&workers), &count, &variables).ok();
    assert_eq!(counted, "{\"n\":62}\n");
}
