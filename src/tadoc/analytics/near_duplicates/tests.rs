//! Tests of what only the module can force: hashes that collide, and classes and blocks of few bytes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::analytics::OnePart;
use crate::build::{CorpusBuilder, IngestOptions};
use crate::format::OpenLimits;
use crate::segment::Corpus;

const AMPLE: u64 = 1 << 30;

/// A corpus cut wherever no document crosses.
struct Parts(Vec<Corpus>);

impl CorpusParts for Parts {
    type Part = Corpus;

    fn num_parts(&self) -> usize {
        self.0.len()
    }

    fn num_words(&self) -> u64 {
        0
    }

    fn part(&self, index: usize) -> Result<Corpus> {
        Ok(self.0[index].clone())
    }

    fn hold(&self, _bytes: u64) -> Result<()> {
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

fn corpus_for(texts: &[String], block_bytes: usize) -> Corpus {
    let options = IngestOptions { block_bytes, ..IngestOptions::default() };
    let mut builder = CorpusBuilder::new(Vec::new(), options).unwrap();
    for text in texts {
        builder.push_document("text", text.as_bytes()).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    Corpus::from_bytes("pairs.tadoc", &file, &OpenLimits::default()).unwrap().1
}

fn parts_for(corpus: &Corpus) -> Parts {
    let mut parts: Vec<Vec<_>> = Vec::new();
    for segment in corpus.segments() {
        match parts.last_mut().filter(|_| segment.continues) {
            Some(part) => part.push(segment.clone()),
            None => parts.push(vec![segment.clone()]),
        }
    }
    Parts(parts.into_iter().map(|part| Corpus::new(corpus.profile(), part)).collect())
}

/// Searches once, with hashes of which few bits are kept.
fn find_once(
    parts: &(impl CorpusParts + Sync),
    (threshold, num_words): (f64, usize),
    fold: &Fold,
    kept_bits: u64,
    max_memory_bytes: u64,
) -> Result<Option<Vec<SimilarPair>>> {
    let hashing = Hashing::new(kept_bits);
    let task = Task { parts, fold, threshold, num_words, max_memory_bytes, hashing };
    let Some(found) = NearDuplicates::read(task)? else { return Ok(None) };
    let mut pairs = Vec::new();
    found.for_each_pairs(|some| {
        pairs.extend_from_slice(some);
        Ok(true)
    })?;
    Ok(Some(pairs))
}

/// Compares the sets of all documents.
fn slow(docs: &[Vec<String>], (threshold, num_words): (f64, usize)) -> Vec<SimilarPair> {
    let sets: Vec<BTreeSet<&[String]>> =
        docs.iter().map(|doc| doc.windows(num_words).collect()).collect();
    let is_copy = |of: usize| sets[..of].contains(&sets[of]);
    let mut pairs = Vec::new();
    for a in (0..docs.len()).filter(|&a| !sets[a].is_empty() && !is_copy(a)) {
        for b in a + 1..docs.len() {
            let common = sets[a].intersection(&sets[b]).count();
            let similarity = common as f64 / sets[a].union(&sets[b]).count() as f64;
            if similarity >= threshold && (sets[a] == sets[b] || !is_copy(b)) {
                pairs.push(SimilarPair { doc_id_a: a as u64, doc_id_b: b as u64, similarity });
            }
        }
    }
    pairs
}

/// If no bit of a value is kept, all n-grams have one hash. The search fails, and begins again.
#[test]
fn colliding_hashes_cost_only_time() {
    let find = |texts: &[String], kept_bits: u64| {
        let corpus = corpus_for(texts, 1 << 20);
        find_once(&OnePart(&corpus), (0.5, 2), &Fold::NONE, kept_bits, AMPLE).unwrap()
    };
    let text = |from: u32, to: u32| (from..to).map(|at| format!("w{at} ")).collect::<String>();
    let texts = [text(0, 90), text(4, 90), text(0, 90), "alone".into()];
    assert!(find(&texts, 0).is_none());
    assert_eq!(find(&texts, u64::MAX).unwrap().len(), 2);
    // Documents of one n-gram each seem to be copies, and are none.
    assert!(find(&["a b".into(), "c d".into()], 0).is_none());
    assert_eq!(find(&["a b".into(), "a b".into(), "a b".into()], 0).unwrap().len(), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever hashes collide and however little memory there is, a search that ends has all pairs.
    #[test]
    fn searches_that_end_are_right(
        docs in prop::collection::vec(prop::collection::vec(0..9_usize, 0..14), 1..40),
        threshold in prop::sample::select(vec![0.1, 0.3, 0.5, 0.8, 1.0]),
        num_words in 1..4_usize,
        is_folded in any::<bool>(),
        block_bytes in 8..300_usize,
        bits in 2..12_u32,
        memory in 2_000..40_000_u64,
    ) {
        const WORDS: [&str; 9] = ["a", "b", "c", "d", "A", "B", "g", "h", "i"];
        let fold = if is_folded { Fold::CASE } else { Fold::NONE };
        let words = |doc: &Vec<usize>| -> Vec<&str> { doc.iter().map(|&at| WORDS[at]).collect() };
        let texts: Vec<String> = docs.iter().map(|doc| words(doc).join(" ")).collect();
        let corpus = corpus_for(&texts, block_bytes);
        let folded = |word: &str| fold.text(word).into_owned();
        let folded: Vec<Vec<String>> =
            docs.iter().map(|doc| words(doc).into_iter().map(folded).collect()).collect();
        let how = (threshold, num_words);
        let parts = parts_for(&corpus);
        let expected = slow(&folded, how);
        for kept_bits in [u64::MAX, (1 << bits) - 1] {
            let whole = find_once(&OnePart(&corpus), how, &fold, kept_bits, AMPLE).unwrap();
            prop_assert_eq!(whole.as_ref().unwrap_or(&expected), &expected);
            let in_parts = find_once(&parts, how, &fold, kept_bits, AMPLE).unwrap();
            prop_assert_eq!(in_parts.as_ref().unwrap_or(&expected), &expected);
            prop_assert!(kept_bits < u64::MAX || whole.is_some() && in_parts.is_some());
        }
        match find_once(&parts, how, &fold, u64::MAX, memory) {
            Ok(pairs) => prop_assert_eq!(pairs.unwrap(), expected),
            Err(error) => prop_assert!(matches!(error, Error::Capacity { .. }), "{}", error),
        }
    }
}
