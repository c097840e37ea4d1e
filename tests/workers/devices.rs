//! Workers with a device use it, and the rows are those of the CPU of one process.
//!
//! `REQUIRE_GPU=1` makes these tests fail where there is no device. They are skipped otherwise.

use testkit::device::open_device;

use super::cluster::{Worker, counter, list, needles, on_columns, sorted, sql, write_columns};

#[test]
fn row_groups_are_decoded_on_devices_of_workers() {
    if open_device().is_none() {
        return;
    }
    let folder = needles();
    write_columns(&folder);
    let workers = [(), ()].map(|()| Worker::start(&folder, &[]));
    for statement in [
        "SELECT doc_id, text FROM g WHERE text LIKE '%needle'",
        "SELECT count(*), min(text), max(text) FROM g WHERE text LIKE '%of%'",
    ] {
        let analyze = format!("EXPLAIN ANALYZE {statement}");
        let plan = on_columns(&folder, &list(&workers), "gpu", &analyze).ok();
        let num_groups = counter(&plan, "device_row_groups");
        assert!(num_groups > 0, "{plan}");
        assert_eq!(counter(&plan, "row_groups_read"), num_groups, "{plan}");
        assert_eq!(counter(&plan, "device_fallbacks"), 0, "{plan}");
        let rows = sorted(on_columns(&folder, &list(&workers), "gpu", statement));
        assert_eq!(rows, sorted(on_columns(&folder, "", "cpu", statement)), "{statement}");
    }
}

/// Words of documents are counted where their segments are. Functions that add up over all segments are
/// answered by the cores of workers, each for a share of the words.
#[test]
fn documents_are_counted_on_devices_of_workers() {
    if open_device().is_none() {
        return;
    }
    let folder = needles();
    let workers = [(), ()].map(|()| Worker::start(&folder, &[]));
    let on_device =
        |workers: &str, statement: &str| sql(&folder, workers, &format!("SET tadoc.device = 'gpu'; {statement}"));
    for statement in ["SELECT * FROM term_vector('needles.tadoc')", "SELECT * FROM tfidf('needles.tadoc')"] {
        let plan = on_device(&list(&workers), &format!("EXPLAIN ANALYZE {statement}")).ok();
        assert_eq!(plan.matches("device=gpu").count(), 2, "{statement}\n{plan}");
        assert!(plan.contains("device_rows="), "{statement}\n{plan}");
        assert_eq!(counter(&plan, "device_fallbacks"), 0, "{statement}\n{plan}");
        let rows = sorted(on_device(&list(&workers), statement));
        assert_eq!(rows, sorted(sql(&folder, "", statement)), "{statement}");
    }
}
