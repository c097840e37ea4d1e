//! The valid files that all other files are made from, and their content.
//!
//! They cover all tokenizers and builders, one segment and many, documents cut over segments,
//! columns, both codings of paths and of dictionaries, no document at all, a segment without
//! documents, and a grammar that no builder makes.

use std::ops::Range;

use tadoc::build::CorpusBuilder;
use tadoc::format::{CorpusWriter, FileFooter, SegmentLayout, read_columns};
use tadoc::grammar::Grammar;
use tadoc::segment::Paths;
use tadoc::text::{Dictionary, TokenizerProfile};
use tadoc::{Corpus, Error};

use super::LIMITS;
use super::anatomy::Anatomy;
use super::rewrite::Draft;
use crate::documents::{BUILDERS, Document, PROFILES, compress, numbered, options, path_of};
use crate::scrambled::segment_of;
use crate::texts::seeds;

/// Kind of the dictionary's section in the footer.
const DICTIONARY: [u8; 2] = [1, 0];
const COLUMNS: &[u8] = b"PAR1 nobody looks into columns here PAR1";

/// The user's data in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    pub documents: Vec<Document>,
    pub columns: Option<Vec<u8>>,
}

/// A valid file.
pub struct Sample {
    pub name: String,
    pub file: Vec<u8>,
    pub content: Content,
}

/// Reads the content of `file`, which was opened as `corpus`.
pub fn content_of(file: &[u8], footer: &FileFooter, corpus: &Corpus) -> Result<Content, Error> {
    let mut documents = Vec::new();
    for doc_id in 0..corpus.num_docs() {
        let bytes = tadoc::read::document_bytes(corpus, doc_id, 1 << 20)?;
        documents.push((path_of(corpus, doc_id).to_owned(), bytes));
    }
    let columns = footer.columns.as_ref().map(|section| {
        let range = section.offset as usize..(section.offset + section.len) as usize;
        read_columns("columns", section, &file[range]).map(|bytes| bytes.to_vec())
    });
    Ok(Content { documents, columns: columns.transpose()? })
}

/// Returns all samples. Each has a few hundred bytes to a few kilobytes.
pub fn samples() -> Vec<Sample> {
    let texts = texts();
    let many = numbered(texts.iter().cloned());
    let mut samples = vec![empty_corpus(), empty_segments(), scrambled(&texts)];
    for profile in PROFILES {
        for builder in BUILDERS {
            for (what, block_bytes) in [("one segment", 1 << 20), ("cut documents", 150)] {
                let name = format!("{profile}, {builder}, {what}");
                let columns = (builder == BUILDERS[0]).then_some(COLUMNS);
                let options = options(profile, builder, block_bytes);
                let mut ingest = CorpusBuilder::new(Vec::new(), options).unwrap();
                for (path, text) in &many {
                    ingest.push_document(path, text).unwrap();
                }
                let file = ingest.finish(columns.map(<[u8]>::to_vec)).unwrap().0;
                let columns = columns.map(<[u8]>::to_vec);
                samples.push(Sample { name, file, content: Content { documents: many.clone(), columns } });
            }
        }
    }
    samples.extend([long_paths(), many_words(), parts_of_a_dictionary(), layout_before_indexed()]);
    samples
}

/// Returns repetitive text in a few documents, then tiny documents.
fn texts() -> Vec<Vec<u8>> {
    let line = |i: usize| format!("Jan {i} host{} kernel: power loss, don't panic (x{i}) naïve 中文\n", i % 3);
    let mut texts: Vec<Vec<u8>> =
        (0..6).map(|doc| (0..6).map(|i| line(doc * i % 7)).collect::<String>().into()).collect();
    texts.extend(seeds().into_iter().filter(|seed| seed.len() < 40).step_by(3));
    texts
}

fn empty_corpus() -> Sample {
    let options = options(TokenizerProfile::Word, BUILDERS[0], 1 << 20);
    let file = CorpusBuilder::new(Vec::new(), options).unwrap().finish(None).unwrap().0;
    let content = Content { documents: Vec::new(), columns: None };
    Sample { name: "empty".into(), file, content }
}

/// Builds a sample with segments without documents around a segment with one document.
fn empty_segments() -> Sample {
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Word, "rounds").unwrap();
    let empty = || Draft {
        dictionary: Dictionary::from_parts(0, vec![0], Default::default()).unwrap(),
        grammar: Grammar { num_terminals: 0, rule_offsets: vec![0, 0], symbols: Vec::new(), doc_offsets: vec![0] },
        paths: Paths::default(),
        continues: false,
    };
    let full = segment_of(TokenizerProfile::Word, &[b"a b a b".to_vec()], false, 1);
    for draft in [empty(), empty(), Draft::from_segment(&full), empty()] {
        draft.write(&mut writer, SegmentLayout::INDEXED).unwrap();
    }
    let file = writer.finish(None).unwrap().0;
    let documents = vec![("0.txt".to_owned(), b"a b a b".to_vec())];
    let content = Content { documents, columns: None };
    Sample { name: "segments without documents".into(), file, content }
}

/// Builds a sample with a grammar of random shape.
fn scrambled(texts: &[Vec<u8>]) -> Sample {
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Uax29, "none").unwrap();
    let segment = segment_of(TokenizerProfile::Uax29, texts, false, 7);
    Draft::from_segment(&segment).write(&mut writer, SegmentLayout::INDEXED).unwrap();
    let file = writer.finish(Some(COLUMNS)).unwrap().0;
    let named = |(i, text): (usize, &Vec<u8>)| (format!("{i}.txt"), text.clone());
    let documents = texts.iter().enumerate().map(named).collect();
    let content = Content { documents, columns: Some(COLUMNS.to_vec()) };
    Sample { name: "scrambled grammar".into(), file, content }
}

/// Builds a sample with many documents whose paths share parts. zstd codes such paths best.
fn long_paths() -> Sample {
    const PARTS: [&str; 5] = ["introduction", "reference", "administration", "release", "security"];
    let path = |i: usize| {
        let part = |shift: usize| PARTS[i * (shift + 3) % 11 % PARTS.len()];
        format!("{}/{}-{}/{}.{}.md", part(0), part(1), part(2), part(3), part(4))
    };
    let documents: Vec<Document> = (0..120).map(|i| (path(i), format!("number {}", i % 10).into_bytes())).collect();
    let options = options(TokenizerProfile::Word, BUILDERS[0], 1 << 20);
    let file = compress(&documents, &options);
    let content = Content { documents, columns: None };
    Sample { name: "long paths".into(), file, content }
}

/// Builds a sample with many words, which are repeated in different orders.
fn many_words() -> Sample {
    let word = |i: usize| format!("w{:03} ", i * i % 397);
    let text = |doc: usize| (0..300).map(|i| word(i * (doc + 1))).collect::<String>().into_bytes();
    let documents = numbered((0..4).map(text));
    let file = compress(&documents, &options(PROFILES[0], BUILDERS[0], 1 << 20));
    let content = Content { documents, columns: None };
    Sample { name: "many words".into(), file, content }
}

/// Returns a file in the layout `fast`, the one before `indexed`, which is no longer written.
fn layout_before_indexed() -> Sample {
    let file = include_bytes!("../../../tests/core/fixtures/2026-11-30.tadoc").to_vec();
    let (footer, corpus) = Corpus::from_bytes("fixture", &file, &LIMITS).unwrap();
    let content = content_of(&file, &footer, &corpus).unwrap();
    Sample { name: "layout fast".into(), file, content }
}

/// Builds a sample with a dictionary in two parts. Writers split only large dictionaries. A part is
/// coded like a dictionary of its own.
fn parts_of_a_dictionary() -> Sample {
    let Sample { file, content, .. } = many_words();
    let mut anatomy = Anatomy::from_file(&file);
    let (_, corpus) = Corpus::from_bytes("f", &file, &LIMITS).unwrap();
    let dictionary = &corpus.segments()[0].dictionary;
    let half = dictionary.num_words() / 2;
    let (mut numbers, mut lists) = (vec![2], Vec::new());
    for range in [0..half, half..dictionary.len()] {
        let list = coded_alone(dictionary, range.clone());
        let end_of = |id: u32| u64::from(dictionary.offsets()[id as usize]);
        let len = end_of(range.end) - end_of(range.start);
        for number in [range.len() as u64, len, list.len() as u64] {
            push_varint(&mut numbers, number);
        }
        lists.extend(list);
    }
    let section = &mut anatomy.segments[0].sections[0];
    assert_eq!(section.kind, DICTIONARY);
    section.codec = [2, 0];
    section.bytes = [numbers, lists].concat();
    let file = anatomy.tied().assemble();
    Sample { name: "parts of a dictionary".into(), file, content }
}

/// Codes the tokens `ids` as the section of a dictionary of their own, words first.
fn coded_alone(dictionary: &Dictionary, ids: Range<u32>) -> Vec<u8> {
    let offsets = &dictionary.offsets()[ids.start as usize..=ids.end as usize];
    let bytes = &dictionary.bytes()[offsets[0] as usize..offsets[ids.len()] as usize];
    let offsets = offsets.iter().map(|offset| offset - offsets[0]).collect();
    let num_words = dictionary.num_words().saturating_sub(ids.start).min(ids.len() as u32);
    let alone = Dictionary::from_parts(num_words, offsets, bytes.to_vec().into()).unwrap();
    let grammar =
        Grammar { num_terminals: alone.len(), rule_offsets: vec![0, 0], symbols: Vec::new(), doc_offsets: vec![0] };
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Word, "rounds").unwrap();
    let draft = Draft { dictionary: alone, grammar, paths: Paths::default(), continues: false };
    draft.write(&mut writer, SegmentLayout::Small).unwrap();
    let mut anatomy = Anatomy::from_file(&writer.finish(None).unwrap().0);
    anatomy.segments.remove(0).sections.remove(0).bytes
}

fn push_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}
