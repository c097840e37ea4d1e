//! Damaged and forged messages: a typed error or a right answer, never a panic.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion_tadoc_distributed::proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};
use datafusion_tadoc_distributed::{TadocCodec, TravelError};
use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::fixtures::{Scene, rows, rows_of, session, spreading_session};

/// Bytes before the body of a message: magic, version and checksum.
const HEAD_BYTES: usize = 12;
const CHECKSUM_AT: usize = 8;

fn messages(runtime: &Runtime) -> (Scene, Vec<Vec<u8>>) {
    runtime.block_on(async {
        let scene = Scene::new().await;
        let mut all = Vec::new();
        for (ctx, sql) in [
            (session(1), "SELECT path FROM documents(@) WHERE doc_id > 3 AND text LIKE '%a%'"),
            (session(1), "SELECT * FROM documents(#)"),
            (spreading_session(2), "SELECT * FROM search(@, 'scan')"),
            (spreading_session(2), "SELECT * FROM cooccurrence(@, 3)"),
            (session(1), "SELECT * FROM read_lines('~/notes/*.md')"),
        ] {
            let plan = ctx.sql(&scene.call(sql)).await.unwrap().create_physical_plan().await.unwrap();
            let mut leaf = plan;
            while let Some(child) = leaf.children().first().map(|&child| child.clone()) {
                leaf = child;
            }
            let mut bytes = Vec::new();
            TadocCodec.try_encode(leaf, &mut bytes, &DefaultPhysicalProtoConverter {}).unwrap();
            all.push(bytes);
        }
        (scene, all)
    })
}

fn decode(ctx: &SessionContext, bytes: &[u8]) -> datafusion::error::Result<Arc<dyn ExecutionPlan>> {
    TadocCodec.try_decode(bytes, &[], &ctx.task_ctx(), &DefaultPhysicalProtoConverter {})
}

#[test]
fn damage_is_found_and_forgery_is_no_panic() {
    let runtime = Runtime::new().unwrap();
    let (_scene, messages) = messages(&runtime);
    let ctx = session(1);
    for bytes in &messages {
        runtime.block_on(async { rows_of(decode(&ctx, bytes).unwrap(), &ctx).await }).unwrap();
    }
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(2000) };
    proptest!(config, |(
        which in 0..messages.len(),
        changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..4),
        cut: Option<usize>,
        is_forged: bool,
    )| {
        let original = &messages[which];
        let mut bytes = original.clone();
        for (at, byte) in changes {
            let at = at % (bytes.len() - HEAD_BYTES) + HEAD_BYTES;
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(HEAD_BYTES + cut % (bytes.len() - HEAD_BYTES));
        }
        if !is_forged {
            let outcome = decode(&ctx, &bytes);
            if bytes != *original {
                let error = outcome.unwrap_err();
                prop_assert!(matches!(TravelError::from_error(&error), Some(TravelError::Message(_))));
            }
        } else {
            // Somebody computed the checksum anew: the node may be another one, or an error.
            let checksum = crc32c::crc32c(&bytes[HEAD_BYTES..]).to_le_bytes();
            bytes[CHECKSUM_AT..HEAD_BYTES].copy_from_slice(&checksum);
            if let Ok(plan) = decode(&ctx, &bytes) {
                drop(runtime.block_on(rows_of(plan, &ctx)));
            }
        }
    });
}

/// Returns the messages and the numbers of inputs of the operators of a plan.
fn operators(plan: &Arc<dyn ExecutionPlan>, found: &mut Vec<(String, Vec<u8>, usize)>) {
    let mut bytes = Vec::new();
    let converter = DefaultPhysicalProtoConverter {};
    let num_inputs = plan.children().len();
    if num_inputs > 0 && TadocCodec.try_encode(plan.clone(), &mut bytes, &converter).is_ok() {
        found.push((plan.name().to_owned(), bytes, num_inputs));
    }
    plan.children().into_iter().for_each(|child| operators(child, found));
}

#[tokio::test]
async fn operators_over_rows_that_are_not_theirs_are_no_panic() {
    let scene = Scene::new().await;
    let small = session(1);
    let ctx = session(1);
    // Portions are read one after another where memory is short.
    rows(&small, "SET tadoc.max_memory_bytes = '100KiB'").await.unwrap();
    let mut found = Vec::new();
    for (from, call) in [
        (&small, "inverted_index(@)"),
        (&small, "term_vector(@)"),
        (&small, "tfidf(@)"),
        (&spreading_session(2), "inverted_index(@)"),
        (&spreading_session(2), "ranked_inverted_index(@)"),
    ] {
        let sql = format!("SELECT * FROM {}", scene.call(call));
        let plan = from.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        operators(&plan, &mut found);
    }
    let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
    assert!(names.contains(&"TadocJoinedLists") && names.contains(&"TadocPortionsExec"));
    assert!(names.contains(&"TadocMergedRowsExec") && names.contains(&"TadocWordNumbersExec"));
    let word = "arrow_cast('a', 'Utf8View') AS word";
    for sql in [
        "SELECT 'a' AS word, [1, 2] AS doc_ids, 1 AS doc_count".to_owned(),
        format!("SELECT {word}, 1 AS doc_count, 'b' AS doc_ids"),
        format!("SELECT {word}, 1.5 AS doc_count, [1] AS doc_ids"),
        format!("SELECT {word}, 1 AS doc_count, ['x'] AS doc_ids"),
        "SELECT 'b' AS doc_id, 1 AS word, 2 AS count".to_owned(),
        "SELECT 1 AS one".to_owned(),
        "SELECT 1 AS parcel, 2 AS machine, 'x' AS rows".to_owned(),
        "SELECT 1 AS parcel, 2 AS machine, x'00ffffffffffffffffff01' AS rows".to_owned(),
        "SELECT 1 AS parcel, 2 AS machine, x'03200000000005' AS rows UNION ALL SELECT 1, 2, x'01000161'".to_owned(),
        format!("SELECT {word}, -1 AS number"),
        format!("SELECT {word}, CAST(NULL AS BIGINT) AS number"),
        "SELECT 1 AS parcel, 2 AS machine, x'020001' AS rows UNION ALL SELECT 1, 2, x'01000161'".to_owned(),
    ] {
        let input = ctx.sql(&sql).await.unwrap().create_physical_plan().await.unwrap();
        for (name, bytes, num_inputs) in &found {
            let inputs = vec![input.clone(); *num_inputs];
            let converter = DefaultPhysicalProtoConverter {};
            match TadocCodec.try_decode(bytes, &inputs, &ctx.task_ctx(), &converter) {
                Ok(plan) => drop(rows_of(plan, &ctx).await),
                Err(error) if name == "TadocJoinedLists" => {
                    assert!(TravelError::from_error(&error).is_some(), "{error}");
                }
                Err(_) => {}
            }
        }
    }
}
