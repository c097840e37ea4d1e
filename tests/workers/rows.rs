//! Every function has the rows of one process.

use testkit::calls::CALLS;

use super::cluster::{Worker, corpora, list, sorted, sql};

#[test]
fn two_and_three_workers_have_the_rows_of_one_process() {
    let folder = corpora();
    for num_workers in [2, 3] {
        let workers: Vec<Worker> = (0..num_workers).map(|_| Worker::start(&folder, &[])).collect();
        let urls = list(&workers);
        for call in CALLS {
            let path = folder.path().display().to_string();
            let call =
                call.replace('@', "'many.tadoc'").replace('#', "'living'").replace('~', &path);
            let statement = format!("SELECT * FROM {call}");
            let expected = sorted(sql(&folder, "", &statement));
            let got = sorted(sql(&folder, &urls, &statement));
            assert_eq!(got, expected, "{num_workers} workers: {statement}");
        }
        for worker in workers {
            let (status, rest) = worker.end();
            assert_eq!((status, rest.as_str()), (0, ""));
        }
    }
}

#[test]
fn plans_show_stages_and_add_up_metrics() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let urls = list(&workers);
    let plan = sql(
        &folder,
        &urls,
        "EXPLAIN SELECT path, count(*) FROM search('many.tadoc', 'scan') GROUP BY path",
    )
    .ok();
    assert!(plan.contains("Stage 1") && plan.contains("TadocRunsExec"), "{plan}");
    let analyzed =
        sql(&folder, &urls, "EXPLAIN ANALYZE SELECT count(*) FROM search('many.tadoc', 'scan')")
            .ok();
    assert!(analyzed.contains("bytes_read="), "{analyzed}");
}

#[test]
fn workers_are_named_by_a_file_and_by_the_environment() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let list = list(&workers);
    folder.write("workers.txt", format!("# ours\n{}\n", list.replace(',', "\n")));
    let explain = "EXPLAIN SELECT * FROM search('many.tadoc', 'scan')";
    let file = folder.ok(&["sql", "--workers-file", "workers.txt", "-c", explain]);
    assert!(file.contains("Stage 1"), "{file}");
    let output =
        folder.command(&["sql", "-c", explain]).env("TADOC_WORKERS", &list).output().unwrap();
    assert!(String::from_utf8(output.stdout).unwrap().contains("Stage 1"));
    let ran = folder.run(&["sql", "--workers", "one:1", "-c", "SELECT 1"]);
    assert_eq!(ran.status, 1);
    assert!(
        ran.stderr.contains("expected a URL") && ran.stderr.contains("one:1"),
        "{}",
        ran.stderr
    );
}

#[test]
fn plots_have_the_rows_of_workers() {
    let folder = corpora();
    let workers = [Worker::start(&folder, &[]), Worker::start(&folder, &[])];
    let statement =
        "SELECT word, count FROM word_count('many.tadoc') ORDER BY count DESC, word LIMIT 9";
    let expected = folder.ok(&["plot", statement]);
    assert_eq!(folder.ok(&["plot", "--workers", &list(&workers), statement]), expected);
    // Both workers have computed: the statement was divided.
    assert!(workers.iter().all(|worker| worker.computed() > 0.0));
}
