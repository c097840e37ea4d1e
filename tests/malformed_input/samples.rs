//! The valid files that all others are made from, and what is in them.
//!
//! All tokenizers and builders, one segment and many, documents cut over segments, columns, both
//! codings of paths, no document at all, a segment without documents, and a grammar no builder
//! would make.

use std::collections::BTreeSet;

use datafusion_tadoc::corpus::{
    CorpusBuilder, CorpusWriter, FileFooter, Paths, SectionKind, read_columns,
};
use datafusion_tadoc::grammar::Grammar;
use datafusion_tadoc::text::{Dictionary, TokenizerProfile};
use datafusion_tadoc::{Corpus, Error};

use super::LIMITS;
use super::common::texts::seeds;
use super::common::{BUILDERS, Document, PROFILES, numbered, options};
use super::rewrite::Draft;
use super::scrambled::segment_of;

const COLUMNS: &[u8] = b"PAR1 nobody looks into columns here PAR1";

/// What a user put into a file.
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

/// What is in `file`, which was opened as `corpus`.
pub fn content_of(file: &[u8], footer: &FileFooter, corpus: &Corpus) -> Result<Content, Error> {
    let mut documents = Vec::new();
    for doc_id in 0..corpus.num_docs() {
        let bytes = datafusion_tadoc::access::document_bytes(corpus, doc_id, 1 << 20)?;
        documents.push((super::common::path_of(corpus, doc_id).to_owned(), bytes));
    }
    let columns = footer.columns.as_ref().map(|section| {
        let range = section.offset as usize..(section.offset + section.len) as usize;
        read_columns("columns", section, &file[range]).map(|bytes| bytes.to_vec())
    });
    Ok(Content { documents, columns: columns.transpose()? })
}

/// All samples, a few hundred bytes to a few kilobytes each.
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
                samples.push(Sample {
                    name,
                    file,
                    content: Content { documents: many.clone(), columns },
                });
            }
        }
    }
    samples.push(long_paths());
    samples
}

/// Repetitive text in a few documents, then tiny ones.
fn texts() -> Vec<Vec<u8>> {
    let line = |i: usize| {
        format!("Jan {i} host{} kernel: power loss, don't panic (x{i}) naïve 中文\n", i % 3)
    };
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

/// Segments without documents around one with a document.
fn empty_segments() -> Sample {
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Word, "rounds").unwrap();
    let empty = || Draft {
        dictionary: Dictionary::from_parts(0, vec![0], Default::default()).unwrap(),
        grammar: Grammar {
            num_terminals: 0,
            rule_offsets: vec![0, 0],
            symbols: Vec::new(),
            doc_offsets: vec![0],
        },
        paths: Paths::default(),
        continues: false,
    };
    let full = segment_of(TokenizerProfile::Word, &[b"a b a b".to_vec()], false, 1);
    for draft in [empty(), empty(), Draft::of(&full), empty()] {
        draft.write(&mut writer).unwrap();
    }
    let file = writer.finish(None).unwrap().0;
    let documents = vec![("0.txt".to_owned(), b"a b a b".to_vec())];
    let content = Content { documents, columns: None };
    Sample { name: "segments without documents".into(), file, content }
}

/// A grammar of random shape.
fn scrambled(texts: &[Vec<u8>]) -> Sample {
    let mut writer = CorpusWriter::new(Vec::new(), TokenizerProfile::Uax29, "none").unwrap();
    let segment = segment_of(TokenizerProfile::Uax29, texts, false, 7);
    Draft::of(&segment).write(&mut writer).unwrap();
    let file = writer.finish(Some(COLUMNS)).unwrap().0;
    let named = |(i, text): (usize, &Vec<u8>)| (format!("{i}.txt"), text.clone());
    let documents = texts.iter().enumerate().map(named).collect();
    let content = Content { documents, columns: Some(COLUMNS.to_vec()) };
    Sample { name: "scrambled grammar".into(), file, content }
}

/// Many documents whose paths are made of parts that come again, which zstd codes best.
fn long_paths() -> Sample {
    const PARTS: [&str; 5] = ["introduction", "reference", "administration", "release", "security"];
    let path = |i: usize| {
        let part = |shift: usize| PARTS[i * (shift + 3) % 11 % PARTS.len()];
        format!("{}/{}-{}/{}.{}.md", part(0), part(1), part(2), part(3), part(4))
    };
    let documents: Vec<Document> =
        (0..120).map(|i| (path(i), format!("number {}", i % 10).into_bytes())).collect();
    let options = options(TokenizerProfile::Word, BUILDERS[0], 1 << 20);
    let file = super::common::compress(&documents, &options);
    let content = Content { documents, columns: None };
    Sample { name: "long paths".into(), file, content }
}

#[test]
fn samples_hold_what_was_put_in() {
    let mut path_codecs = BTreeSet::new();
    let mut num_continued = 0;
    for sample in samples() {
        let (footer, corpus) = Corpus::from_bytes("f", &sample.file, &LIMITS).unwrap();
        let content = content_of(&sample.file, &footer, &corpus).unwrap();
        assert_eq!(content, sample.content, "{}", sample.name);
        let sections = footer.segments.iter().flat_map(|segment| &segment.sections);
        let of_paths = sections.filter(|section| section.kind == SectionKind::Documents);
        path_codecs.extend(of_paths.map(|section| section.codec));
        num_continued += footer.segments.iter().filter(|segment| segment.continues).count();
        assert!(sample.file.len() < 40_000, "{}: {} bytes", sample.name, sample.file.len());
    }
    assert_eq!(path_codecs.len(), 2, "both codings of paths: {path_codecs:?}");
    assert!(num_continued > 12, "documents cut over segments: {num_continued}");
}
