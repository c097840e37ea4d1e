//! Damaged and forged messages: a typed error or a right answer, never a panic.

use datafusion::prelude::SessionContext;
use datafusion_proto::physical_plan::{DefaultPhysicalProtoConverter, PhysicalExtensionCodec};
use datafusion_tadoc::distributed::{TadocCodec, TravelError};
use proptest::prelude::*;
use tokio::runtime::Runtime;

use super::fixtures::{Scene, rows_of, session, spreading_session};

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
            (session(1), "SELECT * FROM read_lines('~/notes/*.md')"),
        ] {
            let plan =
                ctx.sql(&scene.call(sql)).await.unwrap().create_physical_plan().await.unwrap();
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

fn decode(
    ctx: &SessionContext,
    bytes: &[u8],
) -> datafusion::error::Result<std::sync::Arc<dyn datafusion::physical_plan::ExecutionPlan>> {
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
                prop_assert!(matches!(TravelError::of(&error), Some(TravelError::Message(_))));
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
