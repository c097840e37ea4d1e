//! Tests that numbers with a point have the same digits in every run, whatever the threads and partitions do.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Float64Type;
use datafusion::prelude::SessionConfig;
use tadoc::build::IngestOptions;

use super::{batches, session_with};
use crate::fixtures::write_corpus;

/// Returns the bits of all numbers with a point in the rows of `sql`, in an order that rows do not decide.
async fn bits(target_partitions: usize, batch_size: usize, sql: &str) -> Vec<u64> {
    let config = SessionConfig::new().with_target_partitions(target_partitions);
    let ctx = session_with(config.with_batch_size(batch_size));
    let mut bits = Vec::new();
    for batch in batches(&ctx, sql).await.unwrap_or_else(|error| panic!("{sql}: {error}")) {
        for column in batch.columns() {
            if let Some(numbers) = column.as_primitive_opt::<Float64Type>() {
                bits.extend(numbers.values().iter().map(|number| number.to_bits()));
            }
        }
    }
    bits.sort_unstable();
    bits
}

#[tokio::test(flavor = "multi_thread")]
async fn digits_do_not_depend_on_threads() {
    let dir = tempfile::tempdir().unwrap();
    // Documents of many lengths, in many segments, and words of many frequencies.
    let mut state = 7u64;
    let mut number = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut text = || {
        let num_words = 1 + number(97);
        let mut word = || {
            let below = 1 + number(40);
            format!("w{} ", number(below))
        };
        (0..num_words).map(|_| word()).collect::<String>()
    };
    let texts: Vec<String> = (0..240).map(|_| text()).collect();
    let names: Vec<String> = (0..texts.len()).map(|id| format!("{id}.txt")).collect();
    let documents: Vec<(&str, &[u8])> =
        names.iter().zip(&texts).map(|(name, text)| (name.as_str(), text.as_bytes())).collect();
    let options = IngestOptions { block_bytes: 4_000, ..IngestOptions::default() };
    let whole = dir.path().join("c.tadoc");
    let half = dir.path().join("half.tadoc");
    write_corpus(&whole, options, &documents);
    write_corpus(&half, options, &documents[120..]);
    let whole = whole.display();
    let half = half.display();
    for sql in [
        format!("SELECT * FROM dispersion('{whole}', 'w3')"),
        format!("SELECT * FROM dispersion('{whole}', 'w1 OR w7', parts => 77)"),
        format!("SELECT * FROM rank('{whole}', 'w1 OR w2 OR (w5 NOT w9)', top => 400)"),
        format!("SELECT * FROM rank('{whole}', 'w1 OR w2 OR w3 OR w30', top => 50)"),
        format!("SELECT * FROM tfidf('{whole}', top => 5)"),
        format!("SELECT * FROM collocates('{whole}', 'w3 OR w4', measure => 'll')"),
        format!("SELECT * FROM keyness('{whole}', '{half}')"),
        format!("SELECT * FROM near_duplicates('{whole}', threshold => 0.02, n => 2)"),
    ] {
        let expected = bits(1, 8192, &sql).await;
        assert!(!expected.is_empty(), "{sql}");
        for (partitions, batch_size) in [(2, 8192), (3, 16), (8, 7)] {
            for _ in 0..2 {
                let found = bits(partitions, batch_size, &sql).await;
                assert!(found == expected, "{sql}: {partitions} partitions");
            }
        }
    }
}
