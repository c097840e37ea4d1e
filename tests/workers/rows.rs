//! Every function has the rows of one process.

use testkit::plans::{CALLS, seeds, statement};

use super::cluster::{DIVIDE, Worker, corpora, list, needles, sorted, sql};
use testkit::command::Folder;

#[test]
fn workers_have_the_rows_of_one_process() {
    let folder = corpora();
    let path = folder.path().display().to_string();
    let statement = |call: &&str| {
        let call = call.replace('@', "'many.tadoc'").replace('#', "'living'").replace('~', &path);
        format!("SELECT * FROM {call}")
    };
    let statements: Vec<String> = CALLS.iter().map(statement).collect();
    let expected: Vec<Vec<String>> = statements.iter().map(|asked| sorted(sql(&folder, "", asked))).collect();
    for num_workers in [1, 2, 3, 5] {
        let workers: Vec<Worker> = (0..num_workers).map(|_| Worker::start(&folder, &[])).collect();
        let urls = list(&workers);
        for (asked, expected) in statements.iter().zip(&expected) {
            let got = sorted(sql(&folder, &urls, asked));
            assert_eq!(&got, expected, "{num_workers} workers: {asked}");
        }
        for worker in workers {
            let (status, rest) = worker.end();
            assert_eq!((status, rest.as_str()), (0, ""));
        }
    }
}

/// Number of random statements. `PLANS` asks for others.
const NUM_STATEMENTS: u64 = 8;

#[test]
fn random_statements_have_the_rows_of_one_process() {
    let folder = corpora();
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    let mut num_compared = 0;
    for seed in seeds(NUM_STATEMENTS) {
        let asked = statement(seed).replace('@', "'many.tadoc'").replace('#', "'living'");
        // DataFusion cannot plan all of them.
        let alone = sql(&folder, "", &asked);
        if alone.status != 0 {
            continue;
        }
        num_compared += 1;
        let expected = alone.ok();
        for num_workers in 1..=workers.len() {
            let got = sql(&folder, &list(&workers[..num_workers]), &asked).ok();
            assert_eq!(got, expected, "{seed}, {num_workers} workers: {asked}");
        }
    }
    assert!(num_compared > seeds(NUM_STATEMENTS).end / 2, "{num_compared}");
}

/// Files are read by several workers only as far as they can be divided.
#[test]
fn files_of_all_kinds_have_the_rows_of_one_process() {
    let folder = corpora();
    let numbers = "SELECT value AS n, concat('text ', value % 7) AS text FROM generate_series(1, 20000)";
    let copies = [
        ("plain.csv", "STORED AS CSV"),
        ("packed.csv.gz", "STORED AS CSV OPTIONS ('format.compression' 'gzip')"),
        ("plain.json", "STORED AS JSON"),
        ("packed.json.gz", "STORED AS JSON OPTIONS ('format.compression' 'gzip')"),
        ("plain.parquet", "STORED AS PARQUET"),
        ("codes.parquet", "STORED AS GSST"),
        ("plain.arrow", "STORED AS ARROW"),
    ];
    for (name, format) in copies {
        sql(&folder, "", &format!("COPY ({numbers}) TO '{name}' {format}")).ok();
    }
    let array: Vec<String> = (1..=20_000).map(|n| format!("{{\"n\":{n},\"text\":\"t\"}}")).collect();
    folder.write("array.json", format!("[{}]", array.join(",\n")));
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    let table = "CREATE EXTERNAL TABLE array STORED AS JSON LOCATION 'array.json' \
                 OPTIONS ('format.newline_delimited' 'false'); ";
    let settings = "SET datafusion.optimizer.repartition_file_min_size = 1; ";
    let names = copies.iter().map(|(name, _)| format!("'{name}'"));
    for name in names.chain(["array".to_owned()]) {
        let rows = format!("SELECT count(*) AS c, sum(n) AS s, min(text) AS t FROM {name}");
        // DataFusion refuses to divide an array.
        let before = if name == "array" { table } else { settings };
        let asked = format!("{before}{rows}");
        let expected = sql(&folder, "", &asked).ok();
        assert!(expected.contains("\"c\":20000") && expected.contains("200010000"), "{expected}");
        for num_workers in 1..=workers.len() {
            let got = sql(&folder, &list(&workers[..num_workers]), &asked).ok();
            assert_eq!(got, expected, "{name}, {num_workers} workers");
        }
    }
}

#[test]
fn declared_decimals_and_orders_hold_on_workers() {
    let folder = corpora();
    // Of these numbers Arrow makes others.
    let number = |n: usize| format!("{n}.{}e1", "0".repeat(60));
    let csv = (1..=5000).map(|n| format!("{n},{}\n", number(n))).collect::<String>();
    let json = (1..=5000).map(|n| format!("{{\"n\": {n}, \"x\": {}}}\n", number(n))).collect::<String>();
    folder.write("t.csv", format!("n,x\n{csv}5,1\n"));
    folder.write("t.json", format!("{json}{{\"n\": 5, \"x\": 1}}\n"));
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    let settings = "SET datafusion.optimizer.repartition_file_min_size = 1; ";
    for format in ["csv", "json"] {
        let create = |order| {
            format!(
                "{settings}CREATE EXTERNAL TABLE t (n BIGINT, x DECIMAL(20, 2)) STORED AS {format} {order} \
                 LOCATION 't.{format}'; "
            )
        };
        for rows in ["SELECT count(*) AS c, sum(x) AS s FROM t", "SELECT sum(x) AS s FROM t GROUP BY n % 3 ORDER BY s"]
        {
            let asked = format!("{}{rows}", create(""));
            let expected = sql(&folder, "", &asked).ok();
            assert!(rows.contains("GROUP") || expected.contains("125025001"), "{expected}");
            for num_workers in 1..=workers.len() {
                let got = sql(&folder, &list(&workers[..num_workers]), &asked).ok();
                assert_eq!(got, expected, "{format}, {num_workers} workers: {rows}");
            }
        }
        for rows in ["SELECT n FROM t ORDER BY n", "SELECT n, count(*) AS c FROM t GROUP BY n ORDER BY n"] {
            let asked = format!("{}{rows}", create("WITH ORDER (n)"));
            for num_workers in 0..=workers.len() {
                let ran = sql(&folder, &list(&workers[..num_workers]), &asked);
                assert!(ran.stderr.contains("leave WITH ORDER out"), "{num_workers} workers: {rows}: {}", ran.stderr);
            }
        }
    }
}

/// Runs all calls over `needles.tadoc` in one process, and returns the sorted rows of each.
fn rows_of_calls(folder: &Folder, workers: &str) -> Vec<Vec<String>> {
    let calls = CALLS.iter().filter(|call| !call.contains(['#', '~']));
    let statements =
        calls.map(|call| format!("SELECT 'next' AS next; SELECT * FROM {}", call.replace('@', "'needles.tadoc'")));
    let statements: Vec<String> = statements.collect();
    let text = sql(folder, workers, &statements.join("; ")).ok();
    let of_call = text.split("{\"next\":\"next\"}\n").skip(1).map(|rows| {
        let mut rows: Vec<String> = rows.lines().map(str::to_owned).collect();
        rows.sort_unstable();
        rows
    });
    let of_call: Vec<_> = of_call.collect();
    assert_eq!(of_call.len(), statements.len());
    of_call
}

#[test]
fn sixty_four_segments_have_the_rows_of_one_process() {
    let folder = needles();
    let segments = "SELECT value FROM corpus_info('needles.tadoc') WHERE name = 'segments'";
    assert_eq!(folder.rows(segments), ["64"]);
    let workers = [(), (), ()].map(|()| Worker::start(&folder, &[]));
    let expected = rows_of_calls(&folder, "");
    let got = rows_of_calls(&folder, &list(&workers));
    let calls = CALLS.iter().filter(|call| !call.contains(['#', '~']));
    for (call, (got, expected)) in calls.zip(got.iter().zip(&expected)) {
        assert_eq!(got, expected, "{call}");
    }
    assert!(expected.iter().filter(|rows| rows.is_empty()).count() < 5, "calls without rows");
    assert!(workers.iter().all(|worker| worker.computed() > 0.0));
}

#[test]
fn products_with_series_have_the_rows_of_one_process() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    for series in ["generate_series(1, 3)", "range(0)", "generate_series(10, 1, -2)"] {
        for columns in ["count(*) AS rows", "min(value) AS first, count(*) AS rows"] {
            let statement =
                format!("SELECT {columns} FROM documents('many.tadoc') a, documents('many.tadoc') b, {series}");
            let expected = sql(&folder, "", &statement).ok();
            assert_eq!(sql(&folder, &list(&workers), &statement).ok(), expected, "{statement}");
        }
    }
}

#[test]
fn a_divided_copy_to_a_living_corpus_is_one_version() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let names = |below: &str| std::fs::read_dir(folder.join(below)).unwrap().count();
    let num_names = names("living");
    let num_segments = names("living/segments");
    let copy = "COPY (SELECT path, text FROM documents('many.tadoc')) TO 'living/' STORED AS TADOC";
    sql(&folder, &list(&workers), copy).ok();
    assert_eq!((names("living"), names("living/segments")), (num_names, num_segments + 1));
    // Below the header: one to create it, two of `ingest`, one of the copy.
    assert_eq!(folder.ok(&["history", "living"]).lines().count(), 1 + 4);
    let rows = |corpus: &str, first: u64| {
        let documents = format!("documents('{corpus}') WHERE doc_id >= {first}");
        sorted(sql(&folder, "", &format!("SELECT path, md5(text) AS digest FROM {documents}")))
    };
    let expected = rows("many.tadoc", 0);
    assert_eq!((expected.len(), rows("living", 3)), (60, expected));
}

#[test]
fn workers_write_segments_if_they_may() {
    let folder = corpora();
    let names = |below: &str| std::fs::read_dir(folder.join(below)).unwrap().count();
    let num_segments = names("living/segments");
    let copy = "SET tadoc.workers_write = true; \
                COPY (SELECT path, text FROM documents('many.tadoc')) TO 'living/' STORED AS TADOC";
    let readers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let ran = sql(&folder, &list(&readers), copy);
    assert_eq!(ran.status, 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("start it with --writable"), "{}", ran.stderr);
    assert_eq!(names("living/segments"), num_segments);
    let writers = [Worker::start(&folder, &["--writable"]), Worker::start(&folder, &["--writable"])];
    sql(&folder, &list(&writers), copy).ok();
    assert!(names("living/segments") > num_segments + 1);
    assert_eq!(folder.ok(&["history", "living"]).lines().count(), 1 + 4);
    let rows = |corpus: &str, first: u64| {
        let documents = format!("documents('{corpus}') WHERE doc_id >= {first}");
        sorted(sql(&folder, "", &format!("SELECT path, md5(text) AS digest FROM {documents}")))
    };
    assert_eq!(rows("living", 3), rows("many.tadoc", 0));
}

#[test]
fn plans_show_stages_and_add_up_metrics() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let urls = list(&workers);
    let plan =
        sql(&folder, &urls, "EXPLAIN SELECT path, count(*) FROM search('many.tadoc', 'scan') GROUP BY path").ok();
    assert!(plan.contains("Stage 1") && plan.contains("TadocRunsExec"), "{plan}");
    let analyzed = sql(&folder, &urls, "EXPLAIN ANALYZE SELECT count(*) FROM search('many.tadoc', 'scan')").ok();
    assert!(analyzed.contains("bytes_read="), "{analyzed}");
}

#[test]
fn what_is_faster_in_one_process_stays_there() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let urls = list(&workers);
    for call in
        ["search('many.tadoc', 'scan')", "documents('many.tadoc')", "sequence_count('many.tadoc', by_doc => true)"]
    {
        let explain = format!("EXPLAIN SELECT * FROM {call}");
        let plan = folder.ok(&["sql", "--workers", &urls, "-c", &explain]);
        assert!(plan.contains("workers=none: ") && !plan.contains("Stage 1"), "{plan}");
        let plan = sql(&folder, &urls, &explain).ok();
        assert!(plan.contains("Stage 1"), "{plan}");
        let times = plan.split("workers=2: ").nth(1).and_then(|rest| rest.split(", ").nth(1));
        assert!(times.is_some_and(|alone| alone.ends_with(" in one process")), "{plan}");
        assert_eq!(plan.matches("workers=").count(), 1, "{plan}");
    }
}

#[test]
fn workers_are_named_by_a_file_and_by_the_environment() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let list = list(&workers);
    folder.write("workers.txt", format!("# ours\n{}\n", list.replace(',', "\n")));
    let explain = "EXPLAIN SELECT * FROM search('many.tadoc', 'scan')";
    let divided = [&DIVIDE[..], &["-c", explain]].concat();
    let file = folder.ok(&[&["sql", "--workers-file", "workers.txt"][..], &divided].concat());
    assert!(file.contains("Stage 1"), "{file}");
    let arguments = [&["sql"][..], &divided].concat();
    let output = folder.command(&arguments).env("TADOC_WORKERS", &list).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("Stage 1"));
    let ran = folder.run(&["sql", "--workers", "one:1", "-c", "SELECT 1"]);
    assert_eq!(ran.status, 1);
    assert!(ran.stderr.contains("expected a URL") && ran.stderr.contains("one:1"), "{}", ran.stderr);
}

#[test]
fn plots_have_the_rows_of_workers() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let statement = "SELECT path, count(*) AS hits FROM search('many.tadoc', 'scan') GROUP BY path ORDER BY hits DESC, path LIMIT 9";
    let expected = folder.ok(&["plot", statement]);
    let divided = format!("{}; {statement}", DIVIDE[1]);
    assert_eq!(folder.ok(&["plot", "--workers", &list(&workers), &divided]), expected);
    // Both workers have computed: the statement was divided.
    assert!(workers.iter().all(|worker| worker.computed() > 0.0));
}
