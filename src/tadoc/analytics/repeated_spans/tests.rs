//! Tests of what only the module can force: hashes that collide.

use super::*;
use crate::build::{CorpusBuilder, IngestOptions};
use crate::format::OpenLimits;

const AMPLE: u64 = 1 << 30;

fn corpus_for(texts: &[String]) -> Corpus {
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    for text in texts {
        builder.push_document("text", text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    Corpus::from_bytes("spans.tadoc", &file, &OpenLimits::default()).unwrap().1
}

/// If no bit of a value is kept, all windows have one hash. The first search fails.
#[test]
fn colliding_hashes_cost_only_time() {
    let text =
        |from: u32, to: u32| (from..to).map(|at| format!("w{} ", at * at % 97)).collect::<String>();
    let corpus = corpus_for(&[text(0, 90), text(40, 130), text(0, 60), "alone".into()]);
    for min_words in [1, 2, 5, 12] {
        let parts = OnePart(&corpus);
        let weak = 0;
        let strong = u64::MAX;
        assert!(find_runs(&parts, min_words, AMPLE, weak).unwrap().is_none(), "{min_words}");
        let [weak, strong] = [weak, strong].map(|kept_bits| {
            let spans = RepeatedSpans::find_with(&parts, min_words, AMPLE, kept_bits).unwrap();
            spans.rows(0, &corpus, spans.for_part(0))
        });
        assert!(!strong.is_empty());
        assert_eq!(weak, strong, "{min_words} words");
    }
}
