//! Tests of the overlap of texts with a corpus against sets of all sequences.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tadoc::Error;
use tadoc::analytics::{Fold, OverlapTexts, TextOverlap, overlap};
use tadoc::text::TokenizerProfile;
use testkit::naive::{self, Plain};
use testkit::scrambled::{PIECES, bomb, recipes};

use crate::parts::Parts;

const AMPLE: u64 = 1 << 30;

/// Returns the overlap of `text` by the definition.
fn slow_overlap(plain: &Plain, profile: TokenizerProfile, fold: &Fold, text: &[u8], n: usize) -> TextOverlap {
    let mut docs_of: BTreeMap<Vec<String>, BTreeSet<u64>> = BTreeMap::new();
    for (doc_id, words) in (0..).zip(&plain.words) {
        let words: Vec<String> = words.iter().map(|word| fold.text(&word.text).into()).collect();
        for sequence in words.windows(n) {
            docs_of.entry(sequence.to_vec()).or_default().insert(doc_id);
        }
    }
    let words = naive::words(profile, text);
    let words: Vec<String> = words.iter().map(|word| fold.text(word.text).into()).collect();
    let found: Vec<bool> = words.windows(n).map(|words| docs_of.contains_key(words)).collect();
    let stretches = found.split(|found| !found).map(<[bool]>::len);
    let longest = stretches.max().filter(|&len| len > 0).map_or(0, |len| len + n - 1);
    let docs: BTreeSet<u64> = words.windows(n).filter_map(|words| docs_of.get(words)).flatten().copied().collect();
    TextOverlap {
        num_ngrams: found.len() as u64,
        num_found: found.iter().filter(|&&found| found).count() as u64,
        longest_match_words: longest as u64,
        num_docs: docs.len() as u64,
        doc_ids: docs.into_iter().take(10).collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Texts are pieces of the same kind as documents, and a document of the corpus itself.
    #[test]
    fn overlaps_are_those_of_the_definition(
        recipe in recipes(),
        pieces in prop::collection::vec(prop::collection::vec(0..PIECES.len(), 0..30), 0..6),
        n in prop::sample::select(vec![1, 2, 3, 5, 13, usize::MAX]),
        fold in prop::sample::select(vec![Fold::NONE, Fold::CASE]),
    ) {
        let case = recipe.cook();
        let text = |pieces: &Vec<usize>| -> Vec<u8> {
            pieces.iter().flat_map(|&piece| PIECES[piece].to_vec()).collect()
        };
        let mut texts: Vec<Vec<u8>> = pieces.iter().map(text).collect();
        texts.extend(case.plain.docs.first().cloned());
        let mut prepared = OverlapTexts::new(recipe.profile, fold.clone(), n);
        for text in &texts {
            prepared.push(text).unwrap();
        }
        let answers = overlap(&prepared, &Parts::of(&case.corpus), AMPLE).unwrap();
        let whole = overlap(&prepared, &Parts(vec![case.corpus.clone()]), AMPLE).unwrap();
        prop_assert_eq!(&answers, &whole);
        if n < usize::MAX {
            let slow = |text: &Vec<u8>| slow_overlap(&case.plain, recipe.profile, &fold, text, n);
            prop_assert_eq!(answers, texts.iter().map(slow).collect::<Vec<_>>());
        } else {
            prop_assert_eq!(answers, vec![TextOverlap::default(); texts.len()]);
        }
    }
}

#[test]
fn too_little_memory_is_an_error() {
    let mut texts = OverlapTexts::new(TokenizerProfile::Word, Fold::NONE, 2);
    texts.push(b"to be or not to be").unwrap();
    let refused = overlap(&texts, &Parts(Vec::new()), 100).unwrap_err();
    assert!(matches!(refused, Error::Capacity { .. }), "{refused}");
    let refused = overlap(&texts, &Parts(vec![bomb()]), AMPLE).unwrap_err();
    assert!(matches!(refused, Error::Capacity { .. }), "{refused}");
    let answers = overlap(&texts, &Parts(Vec::new()), AMPLE).unwrap();
    assert_eq!((answers[0].num_ngrams, answers[0].share()), (5, Some(0.0)));
    assert_eq!(TextOverlap::default().share(), None);
}
