//! Rows that do not stand in the order that their table declares.

use std::fs;
use std::path::Path;

use datafusion::prelude::{SessionConfig, SessionContext};

use super::{batches, session_with, table};

async fn create(ctx: &SessionContext, folder: &Path, format: &str, order: &str) {
    ctx.sql("DROP TABLE IF EXISTS t").await.unwrap();
    let sql = format!(
        "CREATE EXTERNAL TABLE t (x BIGINT, y TEXT) STORED AS {format} WITH ORDER ({order}) LOCATION '{}/'",
        folder.display()
    );
    ctx.sql(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn session(num_parts: usize) -> SessionContext {
    session_with(SessionConfig::new().with_target_partitions(num_parts).with_batch_size(2))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_in_another_order_than_declared_are_an_error() {
    for (order, values, is_right) in [
        ("x", "1 2 2 3 5 ", true),
        ("x", "1 2 2 1 5", false),
        // The wrong row begins a batch.
        ("x", "1 2 1 3 5", false),
        ("x DESC", "5 3 3 1", true),
        ("x DESC NULLS LAST", "5 3 3 1 ", true),
        ("x DESC", "5 3 4", false),
        ("x, y DESC NULLS LAST", "1z 1a 2z", true),
        ("x, y DESC NULLS LAST", "1a 1z 2z", false),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let ctx = session(3);
        let cells = |value: &str| {
            let (x, y): (String, String) = value.chars().partition(char::is_ascii_digit);
            (x, y)
        };
        let rows = values.split(' ').map(cells).collect::<Vec<_>>();
        let csv = rows.iter().map(|(x, y)| format!("{x},{y}\n")).collect::<String>();
        let json = rows.iter().map(|(x, y)| {
            let x = if x.is_empty() { "null" } else { x };
            format!("{{\"x\": {x}, \"y\": \"{y}\"}}\n")
        });
        for format in ["CSV", "JSON", "PARQUET"] {
            let folder = dir.path().join(format);
            fs::create_dir(&folder).unwrap();
            match format {
                "CSV" => fs::write(folder.join("t.csv"), format!("x,y\n{csv}")).unwrap(),
                "JSON" => fs::write(folder.join("t.json"), json.clone().collect::<String>()).unwrap(),
                _ => {
                    create(&ctx, &dir.path().join("CSV"), "CSV", "y").await;
                    ctx.sql("DROP TABLE t").await.unwrap();
                    let read = format!(
                        "CREATE EXTERNAL TABLE t (x BIGINT, y TEXT) STORED AS CSV LOCATION '{}'",
                        dir.path().join("CSV/t.csv").display()
                    );
                    ctx.sql(&read).await.unwrap();
                    let copy = format!("COPY t TO '{}' STORED AS PARQUET", folder.join("t.parquet").display());
                    batches(&ctx, &copy).await.unwrap();
                }
            }
            create(&ctx, &folder, format, order).await;
            let plan = table(&ctx, "EXPLAIN SELECT x, y FROM t").await;
            assert!(plan.contains("CheckedOrderExec"), "{plan}");
            let read = batches(&ctx, &format!("SELECT x, y FROM t ORDER BY {order}")).await;
            if is_right {
                let num_rows = read.unwrap().iter().map(|batch| batch.num_rows()).sum::<usize>();
                assert_eq!(num_rows, rows.len(), "{format} {order} {values}");
            } else {
                let error = read.unwrap_err().to_string();
                assert!(error.contains("t.") && error.contains("leave WITH ORDER out"), "{format}: {error}");
            }
            // Where the declared columns are not read, nobody relies on their order.
            batches(&ctx, "SELECT count(*) FROM t").await.unwrap();
        }
    }
}
