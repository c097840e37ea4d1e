//! Tests of folded words against folding the decoded text first. Every task gives the same answer
//! for a folded vocabulary and for a corpus whose words were folded before the build.

use std::sync::Arc;

use proptest::prelude::*;
use tadoc::analytics::{
    Cooccurrences, DocSelection, DocumentSequences, Fold, InvertedIndex, RankedInvertedIndex, RepeatedPhrases,
    SequenceCounts, Sequences, TermVectors, Tfidf, TokenCursor, Traversal, Vocabulary, WordCounts,
};
use tadoc::text::{Synonyms, TokenizerProfile};
use testkit::scrambled::{self, Case, recipes};

/// Memory limit in bytes that is larger than any of these tests needs.
const AMPLE: u64 = 1 << 30;
const WAYS: [Traversal; 4] = [Traversal::Auto, Traversal::TopDown, Traversal::BottomUp, Traversal::TokenScan];

/// Returns folds of each kind.
fn folds() -> impl Strategy<Value = Fold> {
    let names = ["none", "case", "accents", "case,accents", "stem:english", "accents,stem:french"];
    let plain = prop::sample::select(names.map(|name| name.parse().unwrap()).to_vec());
    let words = || prop::sample::select(vec!["a", "b", "ab", "aa", "power", "loss", "c1", "A", "Power"]);
    let meanings = prop::collection::btree_map(words(), words(), 0..6);
    (plain, meanings).prop_map(|(fold, meanings): (Fold, _)| {
        // Two words of one stem may have two meanings.
        match Synonyms::new("t", &fold, &meanings) {
            Ok(synonyms) => fold.with_synonyms(synonyms),
            Err(_) => fold,
        }
    })
}

/// Returns the words of `case` after `fold`, and the words of its text after `fold`.
fn both(case: &Case, fold: Fold) -> [Arc<Vocabulary>; 2] {
    let docs = case.plain.words.iter().map(|words| {
        let folded: Vec<String> = words.iter().map(|word| fold.text(&word.text).into_owned()).collect();
        folded.join(" ").into_bytes()
    });
    let plain = scrambled::case_of(TokenizerProfile::Whitespace, docs.collect(), 7);
    let folded = Vocabulary::new(&case.corpus).unwrap().folded(&fold).unwrap();
    [Arc::new(folded), Arc::new(Vocabulary::new(&plain.corpus).unwrap())]
}

/// Checks that both vocabularies give the same answer.
fn agree<T: PartialEq + std::fmt::Debug>(both: &[Arc<Vocabulary>; 2], answer: impl Fn(Arc<Vocabulary>) -> T) {
    let [folded, plain] = both.clone().map(answer);
    assert_eq!(folded, plain);
}

fn texts(sequences: &Sequences) -> Vec<String> {
    let text = |row| {
        let mut text = String::new();
        sequences.append_text(row, &mut text);
        text
    };
    (0..sequences.len()).map(text).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn words_are_folded(recipe in recipes(), fold in folds(), picks in any::<u8>()) {
        let case = recipe.cook();
        let both = both(&case, fold);
        let num_docs = case.plain.docs.len() as u64;
        let docs: Vec<u64> = (0..num_docs).filter(|doc| picks >> doc & 1 == 1).collect();
        let docs = DocSelection::list(docs).unwrap();
        agree(&both, |words| {
            (0..words.len()).map(|row| {
                assert_eq!(words.row_of(words.word(row)), Some(row));
                words.word(row).to_owned()
            }).collect::<Vec<_>>()
        });
        agree(&both, |words| WordCounts::with_vocabulary(words).unwrap().counts().to_vec());
        agree(&both, |words| {
            let mut cursor = TokenCursor::new(words, &docs);
            let mut tokens = Vec::new();
            while let Some(chunk) = cursor.next_chunk().unwrap() {
                tokens.extend_from_slice(chunk.rows());
            }
            tokens
        });
    }

    #[test]
    fn documents_are_folded(recipe in recipes(), fold in folds()) {
        let case = recipe.cook();
        let both = both(&case, fold);
        for way in WAYS {
            agree(&both, |words| {
                let index = InvertedIndex::with_vocabulary(words, way).unwrap();
                let row = |row| (index.num_docs(row), index.doc_ids(row).collect::<Vec<_>>());
                (0..index.len()).map(row).collect::<Vec<_>>()
            });
            agree(&both, |words| {
                let docs = DocSelection::all(words.corpus());
                let vectors = TermVectors::new(words, way);
                let chunk = vectors.collect(&docs, None).unwrap();
                (chunk, vectors.collect(&docs, Some(2)).unwrap())
            });
        }
        agree(&both, |words| {
            let docs = DocSelection::all(words.corpus());
            let tfidf = Tfidf::new(TermVectors::new(words, Traversal::Auto)).unwrap();
            let mut cursor = tfidf.cursor(&docs, Some(3));
            let mut scores = Vec::new();
            while let Some(chunk) = cursor.next_chunk().unwrap() {
                scores.extend(chunk.terms().rows().iter().copied().zip(chunk.scores().to_vec()));
            }
            (tfidf.doc_counts().to_vec(), scores)
        });
    }

    #[test]
    fn sequences_are_folded(
        recipe in recipes(),
        fold in folds(),
        n in prop::sample::select(vec![1, 2, 3, 8, 33]),
    ) {
        let case = recipe.cook();
        let both = both(&case, fold);
        for way in WAYS {
            agree(&both, |words| {
                let counts = SequenceCounts::with_vocabulary(words, n, way, AMPLE).unwrap();
                (texts(counts.sequences()), counts.counts().to_vec())
            });
            agree(&both, |words| {
                let docs: Vec<u64> = (0..words.corpus().num_docs()).collect();
                let sequences = DocumentSequences::new(words, n, way, AMPLE).unwrap();
                let counts = sequences.chunk(&docs).unwrap();
                (texts(counts.sequences()), counts.counts().to_vec())
            });
            agree(&both, |words| {
                let index = RankedInvertedIndex::with_vocabulary(words, n, way, AMPLE).unwrap();
                (texts(index.sequences()), index.doc_ids().to_vec(), index.counts().to_vec())
            });
            agree(&both, |words| {
                let pairs = Cooccurrences::with_vocabulary(words, n + 1, 1, way, AMPLE).unwrap();
                (texts(pairs.pairs()), pairs.counts().to_vec())
            });
        }
        agree(&both, |words| {
            let docs = DocSelection::all(words.corpus());
            let phrases = RepeatedPhrases::with_vocabulary(words, &docs, n, 2, AMPLE).unwrap();
            let row = |row| (phrases.words(row).to_vec(), phrases.count(row));
            (0..phrases.len()).map(row).collect::<Vec<_>>()
        });
    }
}

/// More words are folded than one task takes, and they come from several segments.
#[test]
fn many_words_are_folded() {
    let word = |number: u32| match number % 3 {
        0 => format!("W{:x} ", number / 3 % 5000),
        1 => format!("w{:X} ", number / 3 % 5000),
        _ => format!("É{:x} ", number % 4999),
    };
    let docs: Vec<Vec<u8>> =
        (0..30u32).map(|doc| (0..1000).map(|at| word(doc * 617 + at)).collect::<String>().into_bytes()).collect();
    let case = scrambled::case_of(TokenizerProfile::Word, docs, 3);
    let both = both(&case, Fold::CASE);
    agree(&both, |words| {
        let counts = WordCounts::with_vocabulary(words).unwrap();
        counts.iter().map(|(word, count)| (word.to_owned(), count)).collect::<Vec<_>>()
    });
    let [folded, plain] = both;
    assert!(plain.folded(&Fold::NONE).unwrap().folded_words().is_none());
    let words = folded.folded_words().unwrap();
    assert_eq!(words.num_words() as usize, folded.len());
    assert!(folded.memory_bytes() >= words.memory_bytes() + 12 * folded.len());
}
