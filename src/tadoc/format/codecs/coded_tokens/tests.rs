//! Tests of coded tokens: they come back whole, one by one and by word, and damaged bytes are refused or answer.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const PLACE: Origin<'static> = Origin { file: "f", section: "dictionary", offset: 0 };

fn dictionary(words: &BTreeSet<String>, separators: &BTreeSet<Vec<u8>>) -> (Dictionary, SegmentMeta) {
    let tokens = words.iter().map(|word| word.as_bytes()).chain(separators.iter().map(|bytes| &bytes[..]));
    let mut arena = Vec::new();
    let mut offsets = vec![0u32];
    for token in tokens {
        arena.extend_from_slice(token);
        offsets.push(arena.len() as u32);
    }
    let meta = SegmentMeta {
        num_docs: 1,
        dictionary_bytes: arena.len() as u64,
        num_words: words.len() as u32,
        num_separators: separators.len() as u32,
        num_rules: 1,
        ..SegmentMeta::default()
    };
    (Dictionary::from_parts(meta.num_words, offsets, arena.into()).unwrap(), meta)
}

/// Words of a few letters, some of them longer than an escape, and enough of them for several groups.
fn words() -> impl Strategy<Value = BTreeSet<String>> {
    let long = prop::collection::vec("[ab]{1,3}[a-é]{0,50}", 0..60);
    (long, 0u32..2500, any::<u32>()).prop_map(|(long, num_words, seed)| {
        let word = |at: u32| format!("{}w{}", ["", "the", "x"][at as usize % 3], (at ^ seed).wrapping_mul(2654435761));
        long.into_iter().chain((0..num_words).map(word)).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn tokens_come_back(
        words in words(),
        separators in prop::collection::btree_set(prop::collection::vec(any::<u8>(), 0..40), 0..80),
        others in prop::collection::vec("[abtx]{0,2}[a-z0-9é]{0,4}", 0..20),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
    ) {
        let (dictionary, meta) = dictionary(&words, &separators);
        for (coded, bytes) in both_codecs(&dictionary, &meta) {
            let Tokens { arena, offsets } = coded.decode(PLACE, &bytes).unwrap();
            prop_assert_eq!((&arena[..], &offsets[..]), (&dictionary.bytes()[..], dictionary.offsets()));
            for word in words.iter().chain(&others) {
                let id = words.contains(word).then(|| words.range(..word.clone()).count() as u32);
                prop_assert_eq!(word_id(&coded, &bytes, word).unwrap(), id, "{}", word);
            }
            if !dictionary.is_empty() {
                let ids = picks.iter().map(|pick| pick.index(dictionary.len() as usize) as u32);
                let ids: BTreeSet<u32> = ids.collect();
                let ids: Vec<u32> = ids.into_iter().collect();
                let some = coded.subset(PLACE, &bytes, &ids).unwrap();
                prop_assert_eq!(some.len() as usize, ids.len());
                for (at, &id) in ids.iter().enumerate() {
                    prop_assert_eq!(some.get(at as u32), dictionary.get(id));
                    prop_assert_eq!(some.is_word(at as u32), dictionary.is_word(id));
                }
            }
        }
    }

    #[test]
    fn damaged_sections_are_refused_or_answer(at in any::<prop::sample::Index>(), bit in 0u32..8, cut in any::<bool>()) {
        let words: BTreeSet<String> = (0..1500).map(|n| format!("w{}", n * n)).collect();
        let (dictionary, meta) = dictionary(&words, &BTreeSet::from([vec![b' ']]));
        let mut bytes = encode(&dictionary).unwrap();
        damage(&mut bytes, at, bit, cut);
        if let Ok(coded) = CodedTokens::read(PLACE, &bytes, &meta) {
            ask(&coded, &bytes);
        }
        let (head, mut tokens) = encode_with_head(&dictionary).unwrap();
        let mut damaged = head.clone();
        damage(&mut damaged, at, bit, cut);
        if let Ok(coded) = CodedTokens::read_head(PLACE, &damaged, &meta, tokens.len() as u64) {
            ask(&coded, &tokens);
        }
        let coded = CodedTokens::read_head(PLACE, &head, &meta, tokens.len() as u64).unwrap();
        damage(&mut tokens, at, bit, cut);
        ask(&coded, &tokens);
    }
}

fn damage(bytes: &mut Vec<u8>, at: prop::sample::Index, bit: u32, cut: bool) {
    let at = at.index(bytes.len());
    bytes[at] ^= 1 << bit;
    if cut {
        bytes.truncate(at);
    }
}

fn ask(coded: &CodedTokens, bytes: &[u8]) {
    let _ = word_id(coded, bytes, "w10000");
    let _ = coded.decode(PLACE, bytes);
    let _ = coded.subset(PLACE, bytes, &[0, 700, 1400, 9000]);
}

fn word_id(coded: &CodedTokens, bytes: &[u8], word: &str) -> Result<Option<u32>> {
    let Some(group) = coded.group_of(word.as_bytes()) else { return Ok(None) };
    let bytes = coded.places().map_or(Ok(bytes), |places| places.part(PLACE, bytes, group))?;
    coded.word_id(PLACE, group, bytes, word.as_bytes())
}

/// Returns the codes of `dictionary` with the bytes of its tokens, without a head and with one.
fn both_codecs(dictionary: &Dictionary, meta: &SegmentMeta) -> [(CodedTokens, Vec<u8>); 2] {
    let bytes = encode(dictionary).unwrap();
    let (head, tokens) = encode_with_head(dictionary).unwrap();
    let with_head = CodedTokens::read_head(PLACE, &head, meta, tokens.len() as u64).unwrap();
    [(CodedTokens::read(PLACE, &bytes, meta).unwrap(), bytes), (with_head, tokens)]
}

#[test]
fn lies_of_the_footer_are_refused() {
    let words: BTreeSet<String> = (0..100).map(|n| format!("word{n}")).collect();
    let (dictionary, meta) = dictionary(&words, &BTreeSet::new());
    let bytes = encode(&dictionary).unwrap();
    for (num_words, len) in [(99, meta.dictionary_bytes), (100, 40), (u32::MAX, meta.dictionary_bytes), (0, 0)] {
        let lie = SegmentMeta { num_words, dictionary_bytes: len, ..meta.clone() };
        let decoded = CodedTokens::read(PLACE, &bytes, &lie).and_then(|coded| coded.decode(PLACE, &bytes));
        assert!(decoded.is_err(), "{num_words} {len}");
    }
}
