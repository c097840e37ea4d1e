//! Tests that `count(DISTINCT column)` and the most frequent rows on a device are those of the cores, and where they are
//! counted.

use super::corpora::sum_of;
use super::scene::{Scene, shown};

/// Texts with equal prefixes, some of them empty or long, with NULL and values that come in several files.
const TEXT: &str = "CASE value % 13 WHEN 0 THEN NULL WHEN 1 THEN '' WHEN 2 THEN repeat('long text ', 40) || (value % 97) \
                    ELSE 'row ' || ((value * 7919) % VALUES) END";

/// Writes a folder of files with GSST columns `a` of few and `b` of many values, and makes it the table `t`.
async fn create(scene: &Scene) {
    let folder = scene.dir.path().display().to_string();
    for (file, bits) in [(0, 8), (1, 12), (2, 8)] {
        let columns =
            [("a", "50"), ("b", "30000")].map(|(name, num)| format!("{} AS {name}", TEXT.replace("VALUES", num)));
        let first = file * 20_000;
        let rows = format!("SELECT {}, value AS n FROM range({first}, {})", columns.join(", "), first + 30_000);
        let options = format!("gsst_columns 'a, b', gsst_row_group_rows '7000', gsst_code_bits '{bits}'");
        scene.run(&format!("COPY ({rows}) TO '{folder}/t/{file}.parquet' STORED AS GSST OPTIONS ({options})")).await;
    }
    scene.run(&format!("CREATE EXTERNAL TABLE t STORED AS GSST LOCATION '{folder}/t/'")).await;
}

#[tokio::test]
async fn different_rows_are_counted_on_the_device() {
    let Some(scene) = Scene::new().await else { return };
    create(&scene).await;
    for num_partitions in [1, 3, 16] {
        scene.run(&format!("SET datafusion.execution.target_partitions = {num_partitions}")).await;
        scene.run("SET datafusion.optimizer.repartition_file_min_size = 1").await;
        for column in ["a", "b"] {
            let sql = format!("SELECT count(DISTINCT {column}) FROM t");
            let on_cores = scene.plan("cpu", &sql).await;
            let (expected, _) = scene.collect(&on_cores).await.unwrap();
            let plan = scene.plan("gpu", &sql).await;
            let node = format!("TadocDistinctCountExec: column={column}, device=gpu");
            assert!(shown(&plan).contains(&node), "{}", shown(&plan));
            let (got, done) = scene.collect(&plan).await.unwrap();
            assert_eq!((got, done.fallbacks), (expected, 0), "{sql}");
            // All row groups went to the device for the count, and none for a scan.
            let num_row_groups = sum_of(&on_cores, "row_groups_read");
            assert!(num_row_groups >= 9 && sum_of(&plan, "device_row_groups") == num_row_groups, "{sql}");
        }
    }
    let sql = "SELECT count(DISTINCT a) + 1 AS more FROM t";
    scene.check(sql).await;
}

#[tokio::test]
async fn the_most_frequent_rows_are_counted_on_the_device() {
    let Some(scene) = Scene::new().await else { return };
    create(&scene).await;
    for num_partitions in [1, 3, 16] {
        scene.run(&format!("SET datafusion.execution.target_partitions = {num_partitions}")).await;
        scene.run("SET datafusion.optimizer.repartition_file_min_size = 1").await;
        for column in ["a", "b"] {
            for condition in ["", "WHERE c LIKE '%1%'", "WHERE c <> '' AND c NOT LIKE 'long%'", "WHERE c = 'row 7'"] {
                for order in ["n DESC, c LIMIT 10", "n DESC, c DESC LIMIT 100 OFFSET 3"] {
                    let sql = format!(
                        "SELECT c, count(*) AS n FROM (SELECT {column} AS c FROM t) {condition} GROUP BY c ORDER BY {order}"
                    );
                    let on_cores = scene.plan("cpu", &sql).await;
                    let (expected, _) = scene.collect(&on_cores).await.unwrap();
                    let plan = scene.plan("gpu", &sql).await;
                    let node = format!("TadocFrequentRowsExec: column={column}, rows=");
                    assert!(shown(&plan).contains(&node), "{}", shown(&plan));
                    let (got, done) = scene.collect(&plan).await.unwrap();
                    assert_eq!((got, done.fallbacks), (expected, 0), "{sql}");
                    // Row groups went to the device for the counts, and none for a scan.
                    assert_eq!(sum_of(&plan, "device_row_groups"), sum_of(&on_cores, "row_groups_read"), "{sql}");
                }
            }
        }
    }
    // All groups come back.
    let sql = "SELECT count(*) FROM (SELECT b, count(*) AS n FROM t GROUP BY b ORDER BY n DESC, b LIMIT 1000000)";
    assert_eq!(scene.check(sql).await.fallbacks, 0);
    // A condition that a device can count for count(DISTINCT), too.
    let done = scene.check("SELECT count(DISTINCT b) FROM t WHERE b LIKE '%9%'").await;
    assert_eq!(done.fallbacks, 0);
}

#[tokio::test]
async fn files_with_an_ordinary_column_are_counted_by_the_cores() {
    let Some(scene) = Scene::new().await else { return };
    create(&scene).await;
    let folder = scene.dir.path().display().to_string();
    // A Parquet file with the same columns, and other values in them.
    let rows = "SELECT 'plain ' || value AS a, NULL::VARCHAR AS b, value AS n FROM range(0, 100)";
    scene.run(&format!("COPY ({rows}) TO '{folder}/t/plain.parquet' STORED AS PARQUET")).await;
    scene.run(&format!("CREATE EXTERNAL TABLE mixed STORED AS GSST LOCATION '{folder}/t/'")).await;
    for column in ["a", "b"] {
        let done = scene.check(&format!("SELECT count(DISTINCT {column}) FROM mixed")).await;
        assert_eq!(done.fallbacks, 0);
        let top = format!("SELECT {column}, count(*) AS n FROM mixed GROUP BY 1 ORDER BY n DESC, 1 LIMIT 20");
        assert_eq!(scene.check(&top).await.fallbacks, 0);
    }
}
