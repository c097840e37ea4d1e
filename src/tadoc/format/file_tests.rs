//! Tests of a whole file: round trips, false data, limits. `tests/malformed_input/main.rs` tests damage of every kind.

use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;

use crate::error::{Error, Result};
use crate::format::framing::{ALIGNMENT, HEADER_BYTES, POSTSCRIPT_BYTES, header};
use crate::format::*;
use crate::grammar::{Grammar, expand_tokens};
use crate::ids::DocId;
use crate::segment::{Corpus, Dag, DocumentFacts, DocumentLength, Paths, PrefixSums, Segment};
use crate::text::{Dictionary, TokenizerProfile};

const LIMITS: OpenLimits = OpenLimits { max_footer_bytes: 1 << 20, max_memory_bytes: 64 << 20 };

/// Inputs of a segment.
#[derive(Debug, Clone)]
struct Inputs {
    dictionary: Dictionary,
    grammar: Grammar,
    paths: Paths,
}

/// Builds a dictionary of `num_words` words and the separators `""` and `"\n"`.
fn dictionary(num_words: u32) -> Dictionary {
    let words: Vec<String> = (0..num_words).map(|i| format!("word{i:05}")).collect();
    let mut offsets = vec![0u32];
    let mut bytes = Vec::new();
    for token in words.iter().map(String::as_str).chain(["", "\n"]) {
        bytes.extend_from_slice(token.as_bytes());
        offsets.push(bytes.len() as u32);
    }
    Dictionary::from_parts(num_words, offsets, Bytes::from(bytes)).unwrap()
}

/// Builds a grammar from rule bodies, root first. Rule ids are already offset by the terminals.
fn grammar(num_terminals: u32, bodies: &[Vec<u32>], doc_offsets: Vec<u32>) -> Grammar {
    let mut rule_offsets = vec![0];
    let mut symbols = Vec::new();
    for body in bodies {
        symbols.extend_from_slice(body);
        rule_offsets.push(symbols.len() as u32);
    }
    Grammar { num_terminals, rule_offsets, symbols, doc_offsets }
}

fn inputs(num_words: u32, bodies: &[Vec<u32>], doc_offsets: Vec<u32>) -> Inputs {
    let mut paths = Paths::default();
    (1..doc_offsets.len()).for_each(|doc| paths.push(&format!("folder/é{}", doc / 2)));
    let grammar = grammar(num_words + 2, bodies, doc_offsets);
    grammar.validate().unwrap();
    Inputs { dictionary: dictionary(num_words), grammar, paths }
}

fn write(segments: &[Inputs], continues: bool, columns: Option<&[u8]>) -> Vec<u8> {
    write_in(SegmentLayout::Small, segments, continues, columns)
}

fn write_in(layout: SegmentLayout, segments: &[Inputs], continues: bool, columns: Option<&[u8]>) -> Vec<u8> {
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Word, "test").unwrap();
    for (i, p) in segments.iter().enumerate() {
        let (tokens, words) = codecs::grammar::count_tokens(&p.grammar, p.dictionary.num_words()).unwrap();
        let dag = Dag::new(p.grammar.clone(), p.dictionary.num_words(), p.dictionary.lengths()).unwrap();
        let sums = PrefixSums::new(&dag);
        let len_bytes = p.grammar.docs().map(|doc| sums.doc_len_bytes(doc)).sum();
        let parts = SegmentContents {
            dictionary: p.dictionary.clone(),
            grammar: p.grammar.clone(),
            paths: p.paths.clone(),
            continues: continues && i > 0,
            num_tokens: tokens,
            num_word_tokens: words,
            len_bytes,
        };
        writer.write_segment(EncodedSegment::new(&parts, layout).unwrap()).unwrap();
    }
    let (bytes, footer) = writer.finish(columns).unwrap();
    assert_eq!(footer.body_len() as usize % ALIGNMENT as usize, 0);
    bytes
}

fn small_file() -> Vec<u8> {
    small_file_in(SegmentLayout::Small)
}

fn small_file_in(layout: SegmentLayout) -> Vec<u8> {
    // Ids: words 0 to 2, separators 3 and 4, rules 5 (the root), 6 and 7.
    let one = inputs(3, &[vec![6, 0, 7, 7, 4], vec![7, 7, 1], vec![2, 4]], vec![0, 2, 2, 5]);
    let two = inputs(1, &[vec![0, 2]], vec![0, 2]);
    write_in(layout, &[one, two], true, Some(b"PAR1 columns PAR1"))
}

fn open(bytes: &[u8]) -> Result<(FileFooter, Corpus)> {
    Corpus::from_bytes("test.tadoc", bytes, &LIMITS)
}

#[test]
fn an_empty_corpus_is_a_file() {
    let bytes = write(&[], false, None);
    assert!(bytes.len() < 256, "{}", bytes.len());
    let (footer, corpus) = open(&bytes).unwrap();
    assert_eq!((footer.num_docs(), corpus.num_docs()), (0, 0));
}

#[test]
fn a_file_says_what_it_holds() {
    let bytes = small_file();
    let (footer, corpus) = open(&bytes).unwrap();
    assert_eq!((footer.num_docs(), corpus.num_docs()), (3, 3));
    assert_eq!(footer.segments[1].num_tokens, 2);
    assert_eq!(corpus.segments()[1].paths.get(0), Some("folder/é0"));
    let columns = footer.columns.as_ref().unwrap();
    let range = columns.offset as usize..(columns.offset + columns.len) as usize;
    assert_eq!(read_columns("f", columns, &bytes[range]).unwrap(), &b"PAR1 columns PAR1"[..]);
    assert!(bytes.len() < 1_800, "{}", bytes.len());
}

#[test]
fn the_tail_alone_gives_the_footer() {
    let bytes = small_file();
    let len = bytes.len() as u64;
    let parse = |n: usize| FileFooter::parse("f", &bytes[bytes.len() - n..], len, &LIMITS).unwrap();
    let FooterOutcome::NeedsTail(needed) = parse(POSTSCRIPT_BYTES) else { panic!() };
    let FooterOutcome::Footer(footer) = parse(needed as usize) else { panic!() };
    assert_eq!(footer, open(&bytes).unwrap().0);
    assert!(matches!(parse(3), FooterOutcome::NeedsTail(_)));
    for (i, segment) in footer.segments.iter().enumerate() {
        let range = segment.byte_range();
        let bytes = &bytes[range.start as usize..range.end as usize];
        read_segment("f", &footer, i, bytes, &LIMITS).unwrap();
        assert!(read_segment("f", &footer, i, &bytes[1..], &LIMITS).is_err());
    }
}

#[test]
fn words_are_read_without_the_rest() {
    let bytes = small_file();
    let (footer, corpus) = open(&bytes).unwrap();
    for (i, (meta, segment)) in footer.segments.iter().zip(corpus.segments()).enumerate() {
        let range = meta.words_range().unwrap();
        assert!(range.start >= meta.byte_range().start && range.end < meta.byte_range().end);
        let part = &bytes[range.start as usize..range.end as usize];
        let words = read_words("f", &footer, i, part, &LIMITS).unwrap();
        assert_eq!(words.dictionary.bytes(), segment.dictionary.bytes());
        let num_words = words.dictionary.num_words() as usize;
        assert_eq!(words.weights_or_derive()[..num_words], segment.weights_or_derive()[..num_words]);
        assert_eq!((words.dag.grammar().num_docs(), words.paths.len()), (0, 0));
        assert!(read_words("f", &footer, i, &part[1..], &LIMITS).is_err());
        let limits = OpenLimits { max_memory_bytes: 1000, ..LIMITS };
        assert!(read_words("f", &footer, i, part, &limits).is_err());
        let mut old = footer.clone();
        old.segments[i].sections.retain(|section| section.kind != SectionKind::WordCounts);
        let error = read_words("f", &old, i, part, &LIMITS).unwrap_err().to_string();
        assert!(error.contains("a segment with tied word counts"), "{error}");
    }
}

#[test]
fn document_facts_are_read_without_the_rest() {
    for layout in [SegmentLayout::Small, SegmentLayout::Indexed { max_lists_percent: 0 }] {
        let bytes = small_file_in(layout);
        let (footer, corpus) = open(&bytes).unwrap();
        let mut all = Vec::new();
        for (i, (meta, segment)) in footer.segments.iter().zip(corpus.segments()).enumerate() {
            let range = meta.facts_range().unwrap();
            assert!(range.start > meta.byte_range().start && range.end < meta.byte_range().end);
            let part = &bytes[range.start as usize..range.end as usize];
            let facts = read_document_facts("f", &footer, i, part, &LIMITS).unwrap();
            assert_eq!((&facts.paths, facts.continues), (&segment.paths, segment.continues));
            let lengths = segment.dag.grammar().docs().map(|doc| DocumentLength {
                len_bytes: segment.doc_length_or_derive(doc).len_bytes,
                num_words: segment.doc_length_or_derive(doc).num_words,
            });
            assert_eq!(facts.lengths, lengths.collect::<Vec<_>>());
            all.push(facts);
            assert!(read_document_facts("f", &footer, i, &part[1..], &LIMITS).is_err());
            let limits = OpenLimits { max_memory_bytes: 10, ..LIMITS };
            assert!(read_document_facts("f", &footer, i, part, &limits).is_err());
            for kind in [SectionKind::DocumentLengths, SectionKind::Ties] {
                let mut old = footer.clone();
                old.segments[i].sections.retain(|section| section.kind != kind);
                assert_eq!(old.segments[i].facts_range(), None);
                let error = read_document_facts("f", &old, i, part, &LIMITS).unwrap_err();
                assert!(error.to_string().contains("tied document lengths"), "{error}");
            }
        }
        let all = DocumentFacts::new(all);
        assert_eq!(all.num_docs(), corpus.num_docs());
        for doc_id in 0..corpus.num_docs() {
            let length = all.length(doc_id).unwrap();
            let parts = corpus.doc_parts(doc_id);
            let parts = parts.map(|(i, doc)| corpus.segments()[i].dag.doc_length(doc));
            let parts: Vec<DocumentLength> = parts.collect();
            assert_eq!(length.len_bytes, parts.iter().map(|part| part.len_bytes).sum::<u64>());
            assert_eq!(length.num_words, parts.iter().map(|part| part.num_words).sum::<u64>());
        }
    }
}

/// Recomputes the checksums of footer and postscript.
fn reseal(bytes: &mut [u8]) {
    let postscript = bytes.len() - POSTSCRIPT_BYTES;
    let field = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    let footer = field(postscript)..field(postscript) + field(postscript + 8);
    let crc = crc32c::crc32c(&bytes[footer]);
    bytes[postscript + 12..postscript + 16].copy_from_slice(&crc.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[postscript..postscript + 28]);
    bytes[postscript + 28..postscript + 32].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn lies_under_a_good_checksum_are_found() {
    let bytes = small_file();
    let footer_start = open(&bytes).unwrap().0.body_len() as usize;
    let footer_end = bytes.len() - POSTSCRIPT_BYTES;
    // These bits may have any value: profile, Unicode version, names, the continuation flag of a
    // segment, and kind or codec of the ties of the file. A change of any other bit of the footer
    // must be detected.
    let names_end = footer_start + 4 + 1 + usize::from(bytes[footer_start + 4]);
    let names = footer_start..names_end + 1 + usize::from(bytes[names_end]);
    let ties_of_file = footer_end - 4..footer_end;
    let continues = names.end + 8 + 2 * 68 - 4;
    for byte in footer_start..footer_end {
        for bit in 0..8 {
            let mut lying = bytes.clone();
            lying[byte] ^= 1 << bit;
            reseal(&mut lying);
            let is_free = names.contains(&byte) || ties_of_file.contains(&byte) || (byte, bit) == (continues, 0);
            if !is_free {
                assert!(open(&lying).is_err(), "byte {} bit {bit}", byte - footer_start);
            }
        }
    }
}

/// Builds a segment of `num_docs` documents with one word each.
fn words(num_docs: u32) -> Inputs {
    let body = vec![0; num_docs as usize];
    inputs(1, &[body], (0..=num_docs).collect())
}

#[test]
fn only_the_segment_right_before_is_continued() {
    let refused = |segments: &[u32]| {
        let bytes = write(&segments.iter().map(|&n| words(n)).collect::<Vec<_>>(), false, None);
        let flags_of_last = open(&bytes).unwrap().0.body_len() as usize
            + (4 + 2 + 4 + 4 + 68 * segments.len() - 4)
            + bytes_of_names(&bytes);
        let mut lying = bytes.clone();
        lying[flags_of_last] ^= 1;
        reseal(&mut lying);
        open(&lying).err().map(|e| e.to_string())
    };
    assert_eq!(refused(&[2, 1]), None);
    assert_eq!(refused(&[0, 2, 3]), None);
    for segments in [&[1][..], &[0, 1], &[2, 0], &[2, 0, 1]] {
        let error = refused(segments).unwrap_or_default();
        assert!(error.contains("continues no document"), "{segments:?}: {error}");
    }
}

/// Returns the length of the two names in the footer of a file.
fn bytes_of_names(bytes: &[u8]) -> usize {
    let footer = open(bytes).unwrap().0;
    footer.writer.len() + footer.builder.len()
}

#[test]
fn document_ids_of_any_segments_fit_their_parts() {
    let of = |num_docs: u32, continues: bool| {
        let p = words(num_docs);
        let dag = Dag::new(p.grammar, 1, p.dictionary.lengths()).unwrap();
        Arc::new(Segment::new(p.dictionary, dag, p.paths, continues))
    };
    let kinds: Vec<_> = (0..3).flat_map(|n| [of(n, false), of(n, true)]).collect();
    for picks in 0..kinds.len().pow(5) {
        let pick = |i| kinds[picks / kinds.len().pow(i) % kinds.len()].clone();
        let segments: Vec<_> = (0..5).map(pick).collect();
        let mut docs: Vec<Vec<(usize, DocId)>> = Vec::new();
        for (segment_idx, segment) in segments.iter().enumerate() {
            for doc in segment.dag.grammar().docs() {
                if docs.is_empty() || doc > DocId::FIRST || !segment.continues {
                    docs.push(Vec::new());
                }
                docs.last_mut().unwrap().push((segment_idx, doc));
            }
        }
        let corpus = Corpus::new(TokenizerProfile::Word, segments);
        assert_eq!(corpus.num_docs(), docs.len() as u64);
        for (doc_id, parts) in docs.iter().enumerate() {
            assert_eq!(&corpus.doc_parts(doc_id as u64).collect::<Vec<_>>(), parts, "{picks}");
        }
        assert_eq!(corpus.doc_parts(corpus.num_docs()).count(), 0);
    }
}

#[test]
fn later_versions_are_refused_by_name() {
    let refused = |from_end: usize| {
        let mut bytes = small_file();
        let at = bytes.len() - from_end;
        bytes[at] ^= 4;
        reseal(&mut bytes);
        open(&bytes).unwrap_err().to_string()
    };
    assert!(refused(24).contains("required feature 2"), "{}", refused(24));
    assert!(refused(16).contains("format 5"), "{}", refused(16));
}

#[test]
fn memory_is_limited_before_it_is_taken() {
    let bytes = small_file();
    let limits = OpenLimits { max_memory_bytes: 1000, ..LIMITS };
    let error = Corpus::from_bytes("f", &bytes, &limits).unwrap_err();
    assert!(matches!(error, Error::Capacity { knob: "max_memory_bytes", .. }), "{error}");
    let limits = OpenLimits { max_footer_bytes: 10, ..LIMITS };
    let error = Corpus::from_bytes("f", &bytes, &limits).unwrap_err();
    assert!(matches!(error, Error::Capacity { knob: "max_footer_bytes", .. }), "{error}");
}

#[test]
fn deep_grammars_need_no_stack() {
    let num_rules = 200_000u32;
    let bodies: Vec<Vec<u32>> =
        (0..num_rules).map(|r| if r + 1 == num_rules { vec![0] } else { vec![2, 3 + r + 1] }).collect();
    let bytes = write(&[inputs(1, &bodies, vec![0, 2])], false, None);
    assert_eq!(open(&bytes).unwrap().0.num_tokens(), u64::from(num_rules));
}

#[test]
fn the_writer_refuses_contradictions() {
    let p = inputs(1, &[vec![0, 2]], vec![0, 2]);
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Word, "test").unwrap();
    let mut write = |paths: &Paths, continues, num_tokens, num_word_tokens| {
        let parts = SegmentContents {
            dictionary: p.dictionary.clone(),
            grammar: p.grammar.clone(),
            paths: paths.clone(),
            continues,
            num_tokens,
            num_word_tokens,
            len_bytes: 10,
        };
        EncodedSegment::new(&parts, SegmentLayout::default()).and_then(|encoded| writer.write_segment(encoded))
    };
    assert!(write(&Paths::default(), false, 2, 1).is_err());
    assert!(write(&p.paths, true, 2, 1).is_err());
    assert!(write(&p.paths, false, 3, 1).is_err());
    assert!(write(&p.paths, false, 2, 2).is_err());
    assert!(write(&p.paths, false, 2, 1).is_ok());
}

/// Generates valid grammars: rules over words and separators, cut into documents.
fn any_inputs() -> impl Strategy<Value = Inputs> {
    (1u32..300, 1usize..40)
        .prop_flat_map(|(num_words, num_rules)| {
            let num_terminals = num_words + 2;
            let body = move |r: usize| {
                let children = (num_rules - r - 1) as u32;
                let element = (0..num_terminals + 3 * children).prop_map(move |e| {
                    if e < num_terminals { e } else { num_terminals + r as u32 + 1 + (e - num_terminals) / 3 }
                });
                prop::collection::vec(element, usize::from(r > 0)..8)
            };
            let bodies: Vec<_> = (0..num_rules).map(body).collect();
            (Just(num_words), bodies, prop::collection::vec(0u32..8, 0..6))
        })
        .prop_map(|(num_words, mut bodies, mut cuts)| {
            for rule in 1..bodies.len() {
                let id = num_words + 2 + rule as u32;
                if !bodies[..rule].iter().any(|body| body.contains(&id)) {
                    bodies[rule / 2].push(id);
                }
                // A rule must not expand to nothing. `num_words` is the empty separator.
                if bodies[rule].iter().all(|&element| element == num_words) {
                    bodies[rule].push(0);
                }
            }
            let root_len = bodies[0].len() as u32;
            cuts.iter_mut().for_each(|cut| *cut = (*cut).min(root_len));
            cuts.extend([0, root_len]);
            cuts.sort_unstable();
            inputs(num_words, &bodies, cuts)
        })
}

/// Returns true if the text fits into the types of lengths and counts, and is short enough for a
/// test.
fn is_small(p: &Inputs) -> bool {
    codecs::grammar::count_tokens(&p.grammar, 0).is_some_and(|(tokens, _)| tokens < 100_000)
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        segments in prop::collection::vec(any_inputs(), 1..4),
        is_indexed in any::<bool>(),
    ) {
        prop_assume!(segments.iter().all(is_small));
        let layout = if is_indexed { SegmentLayout::INDEXED } else { SegmentLayout::Small };
        let bytes = write_in(layout, &segments, false, None);
        let (_, corpus) = open(&bytes).unwrap();
        let mut again = Vec::new();
        for (p, segment) in segments.iter().zip(corpus.segments()) {
            prop_assert_eq!(p.dictionary.bytes(), segment.dictionary.bytes());
            prop_assert_eq!(p.dictionary.offsets(), segment.dictionary.offsets());
            prop_assert_eq!(&p.paths, &segment.paths);
            let grammar = segment.dag.grammar();
            for doc in grammar.docs() {
                let DocumentLength { len_bytes, num_words } = segment.dag.doc_length(doc);
                prop_assert_eq!(len_bytes, segment.doc_length_or_derive(doc).len_bytes);
                prop_assert_eq!(num_words, segment.doc_length_or_derive(doc).num_words);
            }
            prop_assert_eq!(expand_tokens(&p.grammar), expand_tokens(grammar));
            again.push(Inputs { dictionary: dictionary(p.dictionary.num_words()), grammar: grammar.clone(), paths: p.paths.clone() });
        }
        // The file that was read is in canonical order, so writing it again yields the same file.
        prop_assert_eq!(&write_in(layout, &again, false, None), &bytes);
    }

    #[test]
    fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut file = header().to_vec();
        file.extend(&bytes);
        prop_assert!(open(&bytes).is_err() && open(&file).is_err());
        prop_assert!(file.len() >= HEADER_BYTES);
    }
}
