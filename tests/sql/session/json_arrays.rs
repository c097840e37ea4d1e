//! Arrays of JSON: their rows are those of the same values in lines, from local files and from a store, and a file that
//! is no whole array is an error.

use std::fs;
use std::sync::Arc;

use datafusion::prelude::{SessionConfig, SessionContext};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutPayload};

use super::{batches, session_with, table};

const VALUES: [&str; 3] =
    [r#"{"n": 1, "t": "a ] , [ \" b", "l": [1, 2]}"#, r#"{"n": 2, "l": []}"#, r#"{"t": null, "n": -3}"#];
const SELECT: &str = "SELECT n, t, l FROM t ORDER BY n";

async fn declare(ctx: &SessionContext, location: &str, is_array: bool) {
    let sql = format!(
        "CREATE EXTERNAL TABLE t (n BIGINT, t TEXT, l BIGINT[]) STORED AS JSON LOCATION '{location}' \
         OPTIONS ('format.newline_delimited' '{}')",
        !is_array
    );
    batches(ctx, "DROP TABLE IF EXISTS t").await.unwrap();
    batches(ctx, &sql).await.unwrap();
}

#[tokio::test]
async fn an_array_is_read_whole_or_not_at_all() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.json");
    let config = SessionConfig::new().set_bool("datafusion.optimizer.repartition_file_scans", false);
    let ctx = session_with(config);
    let files = Arc::new(InMemory::new());
    ctx.register_object_store(&"memory://store".parse().unwrap(), Arc::clone(&files) as Arc<dyn ObjectStore>);
    let places = [file.display().to_string(), "memory://store/t.json".to_owned()];
    let write = async |text: &[u8]| {
        fs::write(&file, text).unwrap();
        files.put(&Path::from("t.json"), PutPayload::from(text.to_vec())).await.unwrap();
    };
    write(VALUES.join("\n").as_bytes()).await;
    declare(&ctx, &places[0], false).await;
    let expected = table(&ctx, SELECT).await;
    assert_eq!(expected.lines().count(), 4 + VALUES.len(), "{expected}");
    let array = format!("\u{feff} [{}\n]\n", VALUES.join(" ,\n"));
    let end = array.rfind(']').unwrap();
    for place in &places {
        write(array.as_bytes()).await;
        declare(&ctx, place, true).await;
        assert_eq!(table(&ctx, SELECT).await, expected, "{place}");
        for len in 1..array.len() {
            write(&array.as_bytes()[..len]).await;
            let got = batches(&ctx, SELECT).await;
            assert_eq!(got.is_ok(), len > end, "{place}, {len} bytes");
        }
        for (text, expected) in [
            (&array[..end], "ends without `]`"),
            (VALUES[0], "expected an array of JSON"),
            (" \n", "expected an array of JSON"),
            ("[{\"n\": 1}] {\"n\": 2}", "more behind the array"),
            ("[{\"n\": 1}],", "more behind the array"),
        ] {
            write(text.as_bytes()).await;
            let error = batches(&ctx, SELECT).await.unwrap_err().to_string();
            assert!(error.contains("t.json: ") && error.contains(expected), "{place}: {text}\n{error}");
        }
    }
}
