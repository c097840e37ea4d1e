//! Counters of workers, and what they leave unread.

use super::cluster::{Worker, counter, list, needles, on_columns, sorted, sql, write_columns};
use testkit::command::Folder;

/// Counters that do not depend on where segments are read.
const COUNTERS: [&str; 4] = ["segments_skipped", "documents_decoded", "documents_total", "row_groups_read"];

fn analyzed(folder: &Folder, workers: &str, statement: &str) -> String {
    sql(folder, workers, &format!("EXPLAIN ANALYZE {statement}")).ok()
}

/// Starts workers that have opened nothing yet.
fn two(folder: &Folder) -> [Worker; 2] {
    [(), ()].map(|()| Worker::start(folder, &[]))
}

#[test]
fn counters_of_workers_add_up_to_those_of_one_process() {
    let folder = needles();
    for (statement, num_skipped) in [
        ("SELECT * FROM search('needles.tadoc', 'needle')", 62),
        ("SELECT * FROM term_count('needles.tadoc', 'needle')", 62),
        ("SELECT * FROM kwic('needles.tadoc', 'needle', width => 3)", 62),
        ("SELECT * FROM search('needles.tadoc', 'of')", 0),
        ("SELECT path, length(text) FROM documents('needles.tadoc')", 0),
        ("SELECT path, line_number FROM grep('needles.tadoc', 'needle')", 0),
    ] {
        let alone = analyzed(&folder, "", statement);
        let together = analyzed(&folder, &list(&two(&folder)), statement);
        for name in COUNTERS {
            let counts = (counter(&together, name), counter(&alone, name));
            assert_eq!(counts.0, counts.1, "{statement}: {name}\n{together}");
        }
        let skipped = counter(&together, "segments_skipped");
        assert!(skipped >= num_skipped, "{statement}: {skipped} of {num_skipped}");
        let rows = sorted(sql(&folder, &list(&two(&folder)), statement));
        assert_eq!(rows, sorted(sql(&folder, "", statement)), "{statement}");
    }
}

#[test]
fn a_join_with_few_rows_decodes_few_documents() {
    let folder = needles();
    let documents = "documents('needles.tadoc') d";
    for statement in [
        format!("FROM (VALUES (17), (3)) v (id) JOIN {documents} ON d.doc_id = v.id"),
        // The place of a rare word. The search is the side that all workers get.
        format!("FROM {documents} JOIN search('needles.tadoc', 'needle') s ON d.doc_id = s.doc_id"),
        format!("FROM {documents} WHERE doc_id IN (SELECT doc_id FROM search('needles.tadoc', 'needle'))"),
    ] {
        let statement = format!("SELECT d.doc_id, d.path, md5(d.text) {statement}");
        let workers = two(&folder);
        let plan = analyzed(&folder, &list(&workers), &statement);
        assert!(plan.contains("TadocRunsExec"), "{plan}");
        let decoded = counter(&plan, "documents_decoded");
        assert!((1..=2).contains(&decoded), "{statement}: {decoded} documents\n{plan}");
        let skipped = counter(&plan, "segments_skipped");
        assert!(skipped >= 60, "{statement}: {skipped} segments\n{plan}");
        let rows = sorted(sql(&folder, &list(&workers), &statement));
        assert_eq!(rows, sorted(sql(&folder, "", &statement)), "{statement}");
    }
}

#[test]
fn filters_do_not_cross_stages_and_rows_are_right() {
    let folder = needles();
    let workers = two(&folder);
    for statement in [
        // Both sides are large, so their rows are sent by hash.
        "SELECT t.doc_id, t.word, d.path FROM tokens('needles.tadoc') t JOIN documents('needles.tadoc') d \
         ON t.doc_id = d.doc_id WHERE t.word = 'needle'",
        "SELECT a.doc_id, b.count FROM documents('needles.tadoc') a JOIN term_vector('needles.tadoc') b \
         ON a.doc_id = b.doc_id AND b.word = 'needle'",
        "SELECT path, md5(text) FROM documents('needles.tadoc') ORDER BY bytes DESC, path LIMIT 3",
        "SELECT path, doc_id FROM documents('needles.tadoc') ORDER BY doc_id DESC LIMIT 5",
        "SELECT max(doc_id), min(doc_id) FROM search('needles.tadoc', 'of')",
        "SELECT count(*) FROM documents('needles.tadoc') a, (SELECT max(doc_id) AS id FROM \
         documents('needles.tadoc')) b WHERE a.doc_id = b.id",
    ] {
        let rows = sorted(sql(&folder, &list(&workers), statement));
        assert_eq!(rows, sorted(sql(&folder, "", statement)), "{statement}");
    }
}

#[test]
fn row_groups_are_spread_over_tasks() {
    let folder = needles();
    write_columns(&folder);
    let run = |workers: &str, statement: &str| on_columns(&folder, workers, "cpu", statement);
    let statement = "SELECT doc_id, text FROM g WHERE text LIKE '%needle'";
    let analyze = format!("EXPLAIN ANALYZE {statement}");
    let workers = two(&folder);
    let together = run(&list(&workers), &analyze).ok();
    let tasks = [" t0: DataSourceExec", " t1: DataSourceExec"];
    assert!(tasks.iter().all(|task| together.contains(task)), "{together}");
    let alone = counter(&run("", &analyze).ok(), "row_groups_read");
    assert!(alone >= 10, "{alone} row groups");
    assert_eq!(counter(&together, "row_groups_read"), alone, "{together}");
    let rows = sorted(run(&list(&workers), statement));
    assert_eq!((rows.len(), rows), (1, sorted(run("", statement))));
}
