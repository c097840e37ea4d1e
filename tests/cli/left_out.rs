//! A build without the feature `full` says what it leaves out, and so do its tests.

use crate::harness::new_folder;

#[test]
fn what_is_left_out_is_named() {
    println!("skipped without --features full: tests of stores, of `tadoc serve` and of workers");
    let folder = new_folder();
    for (arguments, what) in [
        (&["serve", "c.tadoc", "--port", "1"][..], "`tadoc serve`"),
        (&["mcp", "c.tadoc"], "`tadoc mcp`"),
        (&["worker", "--listen", "x"], "`tadoc worker`"),
        (&["serve", "--help"], "`tadoc serve`"),
        (&["sql", "-c", "SELECT * FROM word_count('s3://b/c.tadoc')"], "s3://"),
        (&["sql", "-c", "COPY (SELECT 1) TO 'gs://b/x.csv'"], "gs://"),
        (&["sql", "-c", "CREATE EXTERNAL TABLE t STORED AS CSV LOCATION 'http://h.invalid/x.csv'"], "http://"),
    ] {
        let ran = folder.run(arguments);
        assert_ne!(ran.status, 0, "{arguments:?}");
        let is_named = ran.stderr.contains(what) && ran.stderr.contains("--features full");
        assert!(is_named, "{arguments:?}: {}", ran.stderr);
    }
}
