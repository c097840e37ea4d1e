//! Tests of the round trip: decode(encode(x)) == x for every byte string, tokenizer, builder and
//! block size. Any number of threads makes the same file.

use std::collections::BTreeSet;

use proptest::prelude::*;
use rayon::ThreadPoolBuilder;
use tadoc::build::{BuilderKind, IngestOptions};
use tadoc::format::SegmentLayout;
use tadoc::grammar::Dedup;
use tadoc::read::{DocumentDecoder, document_bytes, document_len_bytes, document_num_words, extract};
use tadoc::text::TokenizerProfile;
use tadoc::{Corpus, Error};
use testkit::documents::{
    BUILDERS, Document, PROFILES, any_block_bytes, any_texts, compress, corpus_of, numbered, open, options,
    own_sources, path_of, real_corpora, seeds, unbroken,
};

const DEFAULT: IngestOptions = IngestOptions {
    profile: TokenizerProfile::Word,
    builder: BuilderKind::Rounds,
    block_bytes: 16 << 20,
    dedup: Dedup::Auto,
    layout: SegmentLayout::Small,
};

/// Describes the first document that does not come back as it went in.
fn first_difference(corpus: &Corpus, documents: &[Document]) -> Option<String> {
    if corpus.num_docs() != documents.len() as u64 {
        return Some(format!("{} documents instead of {}", corpus.num_docs(), documents.len()));
    }
    let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
    for (doc_id, (path, text)) in (0..).zip(documents) {
        decoder.clear();
        decoder.append_document(doc_id).unwrap();
        if path_of(corpus, doc_id) != path {
            return Some(format!("path {} instead of {path}", path_of(corpus, doc_id)));
        }
        if decoder.bytes() != text {
            let decoded = String::from_utf8_lossy(decoder.bytes());
            let same = decoder.bytes().iter().zip(text).take_while(|(a, b)| a == b).count();
            let decoded: String = decoded.chars().take(200).collect();
            return Some(format!("{path} differs from byte {same}: {decoded:?}"));
        }
        if document_len_bytes(corpus, doc_id).unwrap() != text.len() as u64 {
            return Some(format!("{path}: length"));
        }
    }
    None
}

#[track_caller]
fn assert_round_trip(documents: &[Document], options: &IngestOptions) -> Corpus {
    let corpus = corpus_of(documents, options);
    assert_eq!(first_difference(&corpus, documents), None, "{options:?}");
    corpus
}

#[test]
fn an_empty_corpus_has_no_documents() {
    for profile in PROFILES {
        let corpus = assert_round_trip(&[], &options(profile, BuilderKind::Rounds, 1 << 20));
        let error = document_bytes(&corpus, 0, 10).unwrap_err();
        assert!(matches!(error, Error::OutOfRange { what: "doc_id", got: 0, len: 0 }), "{error}");
    }
}

#[test]
fn every_seed_comes_back_alone_and_among_the_others() {
    for profile in PROFILES {
        for builder in BUILDERS {
            for seed in seeds() {
                assert_round_trip(&numbered([seed]), &options(profile, builder, 3));
            }
            for block_bytes in [1, 5, 100, 1 << 20] {
                let options = options(profile, builder, block_bytes);
                assert_round_trip(&numbered(seeds()), &options);
                assert_round_trip(&numbered([seeds().concat()]), &options);
            }
        }
    }
}

#[test]
fn own_sources_come_back_for_every_tokenizer_and_builder() {
    let documents = own_sources();
    assert!(documents.len() > 20);
    for profile in PROFILES {
        for builder in BUILDERS {
            for block_bytes in [10_000, 16 << 20] {
                let corpus = assert_round_trip(&documents, &options(profile, builder, block_bytes));
                assert_eq!(corpus.segments().len() > 10, block_bytes == 10_000);
            }
        }
    }
}

#[test]
fn the_corpora_come_back() {
    for (name, documents) in real_corpora() {
        for profile in PROFILES {
            let whole = IngestOptions { profile, ..DEFAULT };
            assert_round_trip(&documents, &whole);
        }
        let num_bytes: usize = documents.iter().map(|(_, text)| text.len()).sum();
        let pieces = IngestOptions { block_bytes: num_bytes / 20 + 1, ..DEFAULT };
        let corpus = assert_round_trip(&documents, &pieces);
        println!("{name}: {num_bytes} bytes, up to {} segments", corpus.segments().len());
        let layout = SegmentLayout::INDEXED;
        assert_round_trip(&documents, &IngestOptions { layout, ..DEFAULT });
        let sequitur = IngestOptions { builder: BuilderKind::Sequitur, ..DEFAULT };
        assert_round_trip(&documents, &sequitur);
    }
}

#[test]
fn a_mebibyte_without_a_blank_comes_back() {
    let alike = vec![b'x'; 1 << 20];
    let mixed = unbroken(1 << 20);
    let letters = "日本語テキスト".repeat((1 << 20) / 21).into_bytes();
    let noise: Vec<u8> = unbroken(1 << 20).iter().map(|b| b.wrapping_mul(151)).collect();
    let documents = numbered([alike, mixed, letters, noise, vec![0; 1 << 20], vec![0xff; 1 << 20]]);
    for profile in PROFILES {
        for builder in BUILDERS {
            for block_bytes in [100_000, 16 << 20] {
                assert_round_trip(&documents, &options(profile, builder, block_bytes));
            }
        }
    }
}

#[test]
fn a_million_empty_documents_come_back() {
    let documents = numbered(std::iter::repeat_n(Vec::new(), 1_000_000));
    for builder in BUILDERS {
        let corpus = assert_round_trip(&documents, &IngestOptions { builder, ..DEFAULT });
        assert_eq!(document_num_words(&corpus, 999_999).unwrap(), 0);
    }
}

#[test]
fn the_file_is_the_same_for_any_number_of_threads() {
    let small_blocks = |profile| options(profile, BuilderKind::Rounds, 50_000);
    for options in [DEFAULT].into_iter().chain(PROFILES.map(small_blocks)) {
        assert_same_file("own sources", &own_sources(), &options);
    }
    for (name, documents) in real_corpora() {
        assert_same_file(&name, &documents, &IngestOptions { block_bytes: 1 << 20, ..DEFAULT });
    }
}

fn assert_same_file(name: &str, documents: &[Document], options: &IngestOptions) {
    let with_threads = |num_threads| {
        let pool = ThreadPoolBuilder::new().num_threads(num_threads).build().unwrap();
        pool.install(|| compress(documents, options))
    };
    let files: BTreeSet<Vec<u8>> = [1, 2, 5].map(with_threads).into_iter().collect();
    assert_eq!(files.len(), 1, "{name}, {options:?}");
}

#[test]
fn a_file_of_one_corpus_is_written_once() {
    // The same documents give the same bytes: a file contains no times or places.
    let documents = own_sources();
    assert!(compress(&documents, &DEFAULT) == compress(&documents, &DEFAULT));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_texts_come_back(texts in any_texts(), block_bytes in any_block_bytes()) {
        let documents = numbered(texts);
        for profile in PROFILES {
            for builder in BUILDERS {
                let corpus = corpus_of(&documents, &options(profile, builder, block_bytes));
                prop_assert_eq!(first_difference(&corpus, &documents), None);
            }
        }
    }

    #[test]
    fn any_bytes_come_back(
        texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..10),
        block_bytes in any_block_bytes(),
    ) {
        let documents = numbered(texts);
        for profile in PROFILES {
            let corpus = corpus_of(&documents, &options(profile, BuilderKind::Rounds, block_bytes));
            prop_assert_eq!(first_difference(&corpus, &documents), None);
        }
    }

    #[test]
    fn any_passage_comes_back(
        texts in any_texts(),
        block_bytes in any_block_bytes(),
        passages in prop::collection::vec(any::<(prop::sample::Index, prop::sample::Index, u8)>(), 20),
    ) {
        let documents = numbered(texts);
        for profile in PROFILES {
            let corpus = open(&compress(&documents, &options(profile, BuilderKind::Rounds, block_bytes)));
            for (doc, start, len) in &passages {
                let doc = doc.index(documents.len());
                let text = &documents[doc].1;
                let start = start.index(text.len() + 1);
                let end = text.len().min(start + usize::from(*len));
                let passage = extract(&corpus, doc as u64, start as u64, u64::from(*len)).unwrap();
                prop_assert_eq!(&passage, &text[start..end]);
            }
        }
    }
}
