//! Pairs of words, in buckets by their first word, and their sums.
//!
//! Reading order: `buckets` (the first words of each bucket), `met` (the pairs that a walk meets),
//! `sums` (the counts of the pairs of a bucket).

pub(super) mod buckets;
pub(super) mod met;
pub(super) mod sums;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use crate::analytics::{Cooccurrences, Traversal, Vocabulary};
    use crate::build::{CorpusBuilder, IngestOptions};
    use crate::format::OpenLimits;
    use crate::segment::Corpus;

    const WINDOW: usize = 4;
    const AMPLE: u64 = 1 << 30;

    /// Returns documents of random words. The lowest words occur together with all others, the
    /// highest with few.
    fn documents() -> Vec<Vec<String>> {
        let mut state = 7u64;
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % limit
        };
        let mut word = move || {
            let range = [9, 90, 900, 9000][below(4) as usize];
            format!("w{:04}", below(range))
        };
        (0..30).map(|_| (0..400).map(|_| word()).collect()).collect()
    }

    fn vocabulary(documents: &[Vec<String>]) -> Arc<Vocabulary> {
        let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
        for (doc, words) in documents.iter().enumerate() {
            builder.push_document(&doc.to_string(), words.join(" ").as_bytes()).unwrap();
        }
        let (file, _) = builder.finish(None).unwrap();
        let corpus = Corpus::from_bytes("memory", &file, &OpenLimits::default()).unwrap().1;
        Arc::new(Vocabulary::new(&corpus).unwrap())
    }

    #[test]
    fn sums_are_those_of_a_map() {
        let mut documents = documents();
        // A pair that many rules contain, each with its own weight.
        let again = |len: usize| (0..len).map(|at| ["on", "at"][at % 2].to_owned()).collect();
        documents.extend((1..6).map(|len| again(40 * len)));
        let mut expected: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for words in &documents {
            for (at, a) in words.iter().enumerate() {
                for b in words.iter().skip(at + 1).take(WINDOW - 1) {
                    *expected.entry((a.min(b), a.max(b))).or_default() += 1;
                }
            }
        }
        let vocabulary = vocabulary(&documents);
        let least_bytes = 2 * 16 * 8_000;
        for way in [Traversal::TopDown, Traversal::TokenScan] {
            for (min_count, memory_bytes) in [(1, AMPLE), (3, AMPLE), (1, least_bytes)] {
                let words = vocabulary.clone();
                let found =
                    Cooccurrences::with_vocabulary(words, WINDOW, min_count, way, memory_bytes)
                        .unwrap();
                let word = |row: u32| vocabulary.word(row as usize);
                let rows = (0..found.len()).map(|row| {
                    let pair: Vec<&str> = found.pairs().words(row).map(word).collect();
                    ((pair[0], pair[1]), found.counts()[row])
                });
                let kept = expected.iter().filter(|(_, count)| **count >= min_count);
                assert!(rows.eq(kept.map(|(pair, count)| (*pair, *count))), "{way} {min_count}");
            }
        }
    }
}
