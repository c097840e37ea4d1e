//! The rows of a cluster are those of one session.

use std::time::Duration;

use testkit::plans::{CALLS, seeds, statement};

use super::cluster::{Cluster, program};
use super::scene::{Scene, rows, session, sorted};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_function_has_the_rows_of_one_process() {
    let scene = Scene::new().await;
    let alone = session();
    for num_executors in [1, 2] {
        let cluster = Cluster::start(num_executors, &[]);
        let together = cluster.session();
        rows(&together, "SET tadoc.divide = 'always'").await.unwrap();
        for call in CALLS {
            let sql = format!("SELECT * FROM {}", scene.call(call));
            let expected = rows(&alone, &sql).await.unwrap();
            let got = rows(&together, &sql).await;
            let got = got.unwrap_or_else(|error| panic!("{sql}\n{error}\n{}", cluster.said()));
            assert_eq!(sorted(got), sorted(expected), "{num_executors} executors: {sql}");
        }
        for executor in &cluster.executors {
            assert!(executor.computed() > 0.0);
        }
    }
}

/// Number of random statements. `PLANS` asks for others.
const NUM_STATEMENTS: u64 = 100;
/// Time after which a random statement hangs.
const HANGS_AFTER: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_statements_have_the_rows_of_one_process() {
    let scene = Scene::new().await;
    let alone = session();
    let cluster = Cluster::start(3, &[]);
    let together = cluster.session();
    for seed in seeds(NUM_STATEMENTS) {
        let sql = scene.call(&statement(seed));
        // DataFusion cannot plan all of them.
        let Ok(expected) = rows(&alone, &sql).await else { continue };
        let got = tokio::time::timeout(HANGS_AFTER, rows(&together, &sql)).await;
        let got = got.unwrap_or_else(|_| panic!("{seed} hangs: {sql}\n{}", cluster.said()));
        let got = got.unwrap_or_else(|error| panic!("{seed}: {sql}\n{error}\n{}", cluster.said()));
        assert_eq!(got, expected, "{seed}: {sql}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_have_the_rows_of_one_process() {
    let scene = Scene::new().await;
    let alone = session();
    let cluster = Cluster::start(2, &[]);
    let together = cluster.session();
    rows(&together, "SET tadoc.divide = 'always'").await.unwrap();
    for ctx in [&alone, &together] {
        scene.tables(ctx).await;
    }
    for sql in [
        "SELECT path, words FROM many WHERE doc_id BETWEEN 3 AND 7 AND bytes > 100",
        "SELECT path FROM many WHERE text LIKE '%dynamic%' AND text NOT LIKE '%fold%'",
        "SELECT count(*), sum(byte_offset) FROM search('many', 'scan') WHERE doc_id > 4",
        "SELECT w.word, d.path FROM word_count(@) w JOIN inverted_index(@) i ON w.word = i.word \
         JOIN many d ON d.doc_id = i.doc_ids[1] WHERE w.count > 40",
        "SELECT path, count FROM term_count(@, 'scan') ORDER BY count DESC, path LIMIT 3",
        "SELECT word, row_number() OVER (ORDER BY word) FROM word_count(#)",
        "SELECT doc_id, lag(nullif(count, 1)) IGNORE NULLS OVER (ORDER BY doc_id) FROM term_count(@, 'scan')",
        "SELECT word FROM word_count(@) WHERE word NOT IN (SELECT word FROM word_count(#)) \
         AND count > 30",
        "SELECT path, count FROM term_count(@, 'file', fold => 'case,synonyms:alike')",
        "SELECT path, unnest(tokenize(text, 'uax29')) AS token FROM living",
        "SELECT path, count_word('~/many.tadoc', doc_id, 'scan') FROM living",
        "SELECT * FROM columns WHERE text LIKE '%filter%'",
        "SELECT doc_id, count(*) FROM columns WHERE path <> 'mod.rs' GROUP BY doc_id",
        "SELECT c.doc_id, w.count FROM columns c JOIN plain w ON c.text = w.word || ' of scan'",
        "SELECT word, sum(count) FROM plain WHERE word LIKE 's%' GROUP BY word",
        "SELECT count(*) FROM (SELECT doc_id, word FROM term_vector(#) UNION ALL \
         SELECT doc_count, max(word) FROM inverted_index(@) GROUP BY doc_count)",
        "SELECT a, n FROM (SELECT 7 AS a, 1 AS n UNION ALL SELECT count, count(*) FROM word_count(@) \
         GROUP BY count) AS u WHERE a > (SELECT min(count) FROM word_count(#)) ORDER BY a, n LIMIT 3",
        "SELECT count(*) FROM search(@, 'scan') x LEFT JOIN (SELECT doc_id, byte_offset FROM search(@, 'the') \
         ORDER BY 1, 2 LIMIT 10) y ON x.doc_id = y.doc_id AND x.byte_offset < y.byte_offset",
        // The semi join has tasks in which the scan of its second side never runs.
        "SELECT a, b FROM (SELECT doc_id AS a, path::varchar AS b FROM documents(#) ORDER BY a, b LIMIT 4) \
         WHERE a IN (SELECT z FROM (SELECT a AS z FROM (SELECT x.a AS a, x.b AS b FROM \
         (SELECT doc_id AS a, path::varchar AS b FROM documents(#)) x LEFT SEMI JOIN (SELECT a, b FROM \
         (SELECT doc_id AS a, words::varchar AS b FROM documents(@)) ORDER BY a, b LIMIT 22) y \
         ON x.a = y.a AND x.b <> y.b)) WHERE z IS NOT NULL) ORDER BY a DESC, b LIMIT 8",
        "SELECT 1 AS one",
        "SELECT * FROM alike",
        "SELECT version, kind FROM \"living$history\" ORDER BY version",
    ] {
        let sql = scene.call(sql);
        let expected = rows(&alone, &sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}"));
        let got = rows(&together, &sql).await;
        let got = got.unwrap_or_else(|error| panic!("{sql}\n{error}\n{}", cluster.said()));
        assert_eq!(sorted(got), sorted(expected), "{sql}");
    }
    let plan = rows(&together, "EXPLAIN ANALYZE SELECT * FROM search('many', 'scan')").await;
    let plan = plan.unwrap().join("\n");
    assert!(plan.contains("TadocRunsExec") && plan.contains("bytes_read"), "{plan}");
    // Tables of this process and of files in one statement.
    let mixed = "SELECT * FROM alike JOIN word_count('many') ON column1 = word";
    let error = rows(&together, mixed).await.unwrap_err().to_string();
    assert!(error.contains("alike") && error.contains("another machine"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn text_files_are_read_as_in_one_process() {
    let scene = Scene::new().await;
    let alone = session();
    let cluster = Cluster::start(2, &[]);
    let together = cluster.session();
    // Of these numbers Arrow makes others.
    let number = |n: usize| format!("{n}.{}e1", "0".repeat(60));
    let json: String = (1..=500).map(|n| format!("{{\"n\": {n}, \"x\": {}}}\n", number(n))).collect();
    let csv: String = (1..=500).map(|n| format!("{n},{}\n", number(n))).collect();
    for (name, text) in [
        ("exact.json", json.clone()),
        ("exact.csv", format!("n,x\n{csv}")),
        ("marked.json", format!("\u{feff}{json}")),
        ("open.csv", format!("n,x\n{csv}501,\"an open quote\n{csv}")),
        ("unordered.csv", format!("n,x\n{csv}5,1\n")),
    ] {
        std::fs::write(scene.path(name), text).unwrap();
    }
    for ctx in [&alone, &together] {
        for table in [
            "exact_json (n BIGINT, x DECIMAL(20, 2)) STORED AS JSON LOCATION '~/exact.json'",
            "exact_csv (n BIGINT, x DECIMAL(20, 2)) STORED AS CSV LOCATION '~/exact.csv'",
            "marked (n BIGINT, x DECIMAL(20, 2)) STORED AS JSON LOCATION '~/marked.json'",
            "open (n BIGINT, x VARCHAR) STORED AS CSV LOCATION '~/open.csv'",
            "unordered (n BIGINT, x VARCHAR) STORED AS CSV WITH ORDER (n) LOCATION '~/unordered.csv'",
        ] {
            rows(ctx, &scene.call(&format!("CREATE EXTERNAL TABLE {table}"))).await.unwrap();
        }
    }
    for table in ["exact_json", "exact_csv", "marked"] {
        for sql in [
            format!("SELECT count(*), sum(x) FROM {table}"),
            format!("SELECT n % 3, sum(x) FROM {table} GROUP BY n % 3"),
        ] {
            let expected = rows(&alone, &sql).await.unwrap();
            let got = rows(&together, &sql).await.unwrap_or_else(|error| panic!("{sql}\n{error}\n{}", cluster.said()));
            assert_eq!(sorted(got), sorted(expected), "{sql}");
        }
    }
    for (sql, fault) in [
        ("SELECT n, x FROM open", "quot"),
        ("SELECT x, count(*) FROM open GROUP BY x", "quot"),
        ("SELECT n, x FROM unordered ORDER BY n", "leave WITH ORDER out"),
    ] {
        for ctx in [&alone, &together] {
            let error = rows(ctx, sql).await.unwrap_err().to_string();
            assert!(error.contains(fault), "{sql}: {error}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writes_stay_and_their_queries_run_on_the_cluster() {
    let scene = Scene::new().await;
    let alone = session();
    let cluster = Cluster::start(2, &[]);
    let together = cluster.session();
    for (name, ctx) in [("alone", &alone), ("together", &together)] {
        for statement in [
            "CREATE EXTERNAL TABLE d STORED AS TADOC LOCATION '~/NAME_living' \
             OPTIONS ('tadoc.create' 'true')",
            "INSERT INTO d (path, text) SELECT path, text FROM documents(@) ORDER BY doc_id",
            "DELETE FROM d WHERE path IN (SELECT path FROM search(@, 'repartition'))",
            "UPDATE d SET text = 'short' WHERE doc_id = 2",
            "COPY (SELECT path, text FROM documents(@) ORDER BY path) TO '~/NAME_copy.tadoc'",
            "COPY (SELECT word, count FROM word_count(@) ORDER BY word) TO '~/NAME_copy.csv' \
             STORED AS CSV",
        ] {
            let statement = scene.call(statement).replace("NAME", name);
            let done = rows(ctx, &statement).await;
            done.unwrap_or_else(|error| panic!("{statement}\n{error}\n{}", cluster.said()));
        }
    }
    for corpus in ["living", "copy.tadoc"] {
        let read = |name: &str| {
            let path = scene.path(&format!("{name}_{corpus}"));
            format!("SELECT doc_id, path, text FROM documents('{}')", path.display())
        };
        let expected = rows(&alone, &read("alone")).await.unwrap();
        assert_eq!(rows(&alone, &read("together")).await.unwrap(), expected, "{corpus}");
        assert_eq!(sorted(rows(&together, &read("together")).await.unwrap()), sorted(expected));
    }
    let copies =
        ["alone", "together"].map(|name| std::fs::read_to_string(scene.path(&format!("{name}_copy.csv"))).unwrap());
    assert_eq!(copies[0], copies[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_client_is_a_program_in_any_folder() {
    let scene = Scene::new().await;
    let cluster = Cluster::start(1, &[]);
    let statements = [
        "SELECT path, text FROM read_lines('notes/*.md') ORDER BY path, text",
        "SELECT path, words FROM documents('many.tadoc') ORDER BY path",
        "SELECT path FROM documents('./living') ORDER BY path",
    ];
    let mut client = program("client", scene.dir.path(), "client.log");
    client.arg(&cluster.url).args(statements).current_dir(scene.dir.path());
    let output = client.output().unwrap();
    let got = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{got}\n{}", cluster.said());
    assert!(got.contains("| notes/one.md | and another |"), "{got}");
    assert!(got.contains("| exec.rs") && got.contains("| c    |"), "{got}");
}
