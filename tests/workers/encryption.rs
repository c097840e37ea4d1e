//! Workers behind TLS: they and the command trust certificates that are named, and no others.

use super::cluster::{DIVIDE, TOKEN, Worker, corpora, list, sorted, sql};
use testkit::command::{Folder, Ran};

const STATEMENTS: [&str; 3] = [
    "SELECT path, count FROM term_count('many.tadoc', 'scan')",
    // Workers read of each other.
    "SELECT word, sum(count) AS sum FROM word_count('many.tadoc') GROUP BY word",
    "SELECT a.word, b.doc_id FROM word_count('many.tadoc') a JOIN search('many.tadoc', 'sea') b \
     ON a.count = b.doc_id",
];

fn folder() -> Folder {
    let folder = corpora();
    folder.write("cert.pem", include_str!("../serve/tls/cert.pem"));
    folder.write("key.pem", include_str!("../serve/tls/key.pem"));
    folder.write("own_authority.pem", include_str!("../serve/tls/own_authority.pem"));
    folder.write("own_key.pem", include_str!("../serve/tls/own_key.pem"));
    folder.write("token", TOKEN);
    folder.write("text.pem", "no certificate");
    folder
}

fn start(folder: &Folder) -> [Worker; 2] {
    let tls = ["--tls-cert", "cert.pem", "--tls-key", "key.pem", "--workers-ca", "cert.pem"];
    let arguments = [&tls[..], &["--token-file", "token"]].concat();
    [Worker::start(folder, &arguments), Worker::start(folder, &arguments)]
}

fn ask(folder: &Folder, workers: &str, statement: &str, more: &[&str]) -> Ran {
    let command = ["sql", "--format", "ndjson", "-q", "--workers", workers, "--workers-token-file", "token"];
    folder.run(&[&command[..], more, &DIVIDE, &["-c", statement]].concat())
}

#[test]
fn rows_are_the_same_behind_tls() {
    let folder = folder();
    let workers = start(&folder);
    let urls = list(&workers);
    assert!(urls.starts_with("https://"), "{urls}");
    for statement in STATEMENTS {
        let expected = sorted(sql(&folder, "", statement));
        let ran = ask(&folder, &urls, statement, &["--workers-ca", "cert.pem"]);
        assert_eq!(sorted(ran), expected, "{statement}");
    }
    for worker in workers {
        assert_eq!(worker.end(), (0, String::new()));
    }
}

#[test]
fn other_certificates_are_refused() {
    let folder = folder();
    let workers = start(&folder);
    let urls = list(&workers);
    let refused = |urls: &str, more: &[&str], text: &str| {
        let ran = ask(&folder, urls, STATEMENTS[0], more);
        assert_eq!(ran.status, 1, "{more:?}");
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    };
    // A server that speaks without TLS, or with it, is no worker.
    let done_without = |urls: &str, more: &[&str], warning: &str| {
        let ran = ask(&folder, urls, STATEMENTS[0], more);
        assert!(ran.stderr.starts_with(warning), "{}", ran.stderr);
        assert_eq!(sorted(ran), sorted(sql(&folder, "", STATEMENTS[0])));
    };
    refused(&urls, &[], "certificate");
    done_without(&urls.replace("https", "http"), &[], "warning: worker http://127.0.0.1");
    refused(&urls, &["--workers-ca", "text.pem"], "text.pem: expected certificates");
    refused(&urls, &["--workers-ca", "missing.pem"], "missing.pem");
    let plain = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let urls = list(&plain).replace("http", "https");
    done_without(&urls, &["--workers-ca", "cert.pem"], "warning: worker https://127.0.0.1");
    assert_eq!(folder.run(&["worker", "--tls-cert", "cert.pem"]).status, 2);
}

#[test]
fn a_certificate_that_is_its_own_authority_has_a_way_out() {
    let folder = folder();
    let own = ["--tls-cert", "own_authority.pem", "--tls-key", "own_key.pem"];
    let arguments = [&own[..], &["--workers-ca", "own_authority.pem", "--token-file", "token"]].concat();
    let workers = [Worker::start(&folder, &arguments), Worker::start(&folder, &arguments)];
    let refused = |workers: &[Worker], text: &str| {
        let more = ["--workers-ca", "own_authority.pem"];
        let ran = ask(&folder, &list(workers), STATEMENTS[0], &more);
        assert_eq!(ran.status, 1);
        assert!(ran.stderr.contains(text), "{}", ran.stderr);
    };
    refused(&workers, "its certificate is its own authority; give it a certificate that");
    refused(&start(&folder), "no authority that is trusted here signed its certificate");
}
