//! The valid files that all other files are made from, and their content.
//!
//! They cover all tokenizers and builders, one segment and many, documents cut over segments, columns, both codings of
//! paths and of dictionaries, no document at all, a segment without documents, and a grammar that no builder makes.
//!
//! [`rewritten`] makes files that are valid in every byte and written by the crate itself, but with
//! grammars that no builder makes. In this way, hostile content passes checksums and entropy coding.

use std::ops::Range;

use tadoc::Error;
use tadoc::build::CorpusBuilder;
use tadoc::error::Result;
use tadoc::format::{CorpusWriter, EncodedSegment, FileFooter, SegmentContents, SegmentLayout, read_columns};
use tadoc::grammar::Grammar;
use tadoc::ids::RuleId;
use tadoc::segment::{Corpus, Dag, Paths, PrefixSums, Segment};
use tadoc::text::{Dictionary, TokenizerProfile};

use super::LIMITS;
use super::anatomy::Anatomy;
use crate::documents::{BUILDERS, Document, PROFILES, compress, numbered, options, path_of, seeds};
use crate::random::Random;
use crate::scrambled::segment_of;

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
    let mut numbers = vec![2];
    let mut lists = Vec::new();
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

/// A segment to be written.
#[derive(Debug, Clone)]
pub struct Draft {
    pub dictionary: Dictionary,
    pub grammar: Grammar,
    pub paths: Paths,
    pub continues: bool,
}

impl Draft {
    pub fn from_segment(segment: &Segment) -> Self {
        Self {
            dictionary: segment.dictionary.clone(),
            grammar: segment.dag.grammar().clone(),
            paths: segment.paths.clone(),
            continues: segment.continues,
        }
    }

    /// Writes the segment in the layout `layout`, with the right totals, if they exist.
    pub fn write(&self, writer: &mut CorpusWriter<Vec<u8>>, layout: SegmentLayout) -> Result<()> {
        let num_words = self.dictionary.num_words();
        let (num_tokens, num_word_tokens) = count_tokens(&self.grammar, num_words);
        let dag = Dag::new(self.grammar.clone(), num_words, self.dictionary.lengths());
        let len_bytes = dag.map_or(0, |dag| {
            let sums = PrefixSums::new(&dag);
            self.grammar.docs().map(|doc| sums.doc_len_bytes(doc)).sum()
        });
        let parts = SegmentContents {
            dictionary: self.dictionary.clone(),
            grammar: self.grammar.clone(),
            paths: self.paths.clone(),
            continues: self.continues,
            num_tokens,
            num_word_tokens,
            len_bytes,
        };
        writer.write_segment(EncodedSegment::new(&parts, layout)?)
    }

    /// Returns true if the draft is a valid segment.
    fn is_sound(&self) -> bool {
        let num_words = self.dictionary.num_words();
        Dag::new(self.grammar.clone(), num_words, self.dictionary.lengths()).is_ok()
    }

    /// Makes a random change that leaves most grammars valid.
    fn change(&mut self, random: &mut Random) {
        match random.below(11) {
            0..4 => self.replace_element(random),
            4..6 => self.repeat_elements(random),
            6..8 => self.add_rule(random),
            8 => self.add_border(random),
            9 => self.move_border(random),
            _ => self.continues = !self.continues,
        }
    }

    fn replace_element(&mut self, random: &mut Random) {
        let grammar = &mut self.grammar;
        if grammar.symbols.is_empty() {
            return;
        }
        let position = random.below(grammar.symbols.len());
        let rule_idx = grammar.rule_offsets.partition_point(|&start| start as usize <= position) - 1;
        let num_below = grammar.num_rules() - rule_idx - 1;
        let rule = grammar.num_terminals as usize + rule_idx + 1;
        let element = if num_below > 0 && random.one_in(2) {
            rule + random.below(num_below)
        } else {
            random.below(grammar.num_terminals as usize)
        };
        grammar.symbols[position] = element as u32;
    }

    /// Repeats a run of elements of a rule.
    fn repeat_elements(&mut self, random: &mut Random) {
        let grammar = &mut self.grammar;
        let rule_idx = random.below(grammar.num_rules());
        let run = random.range(grammar.rule(RuleId::from(rule_idx as u32)).len());
        let start = grammar.rule_offsets[rule_idx] as usize;
        let positions = start + run.start..start + run.end;
        let copy = grammar.symbols[positions.clone()].to_vec();
        let added = copy.len() as u32;
        grammar.symbols.splice(positions.end..positions.end, copy);
        grammar.rule_offsets[rule_idx + 1..].iter_mut().for_each(|offset| *offset += added);
        if rule_idx == 0 {
            let behind = |offset: &&mut u32| **offset as usize >= run.end;
            grammar.doc_offsets.iter_mut().skip(1).filter(behind).for_each(|o| *o += added);
        }
    }

    /// Replaces an element by a rule of one or two tokens, or by a chain of such rules.
    fn add_rule(&mut self, random: &mut Random) {
        let grammar = &mut self.grammar;
        if grammar.num_terminals == 0 || grammar.symbols.is_empty() {
            return;
        }
        let mut position = random.below(grammar.symbols.len());
        for _ in 0..1 + random.below(3) {
            let rule = grammar.num_terminals + grammar.num_rules() as u32;
            let mut token = || random.below(grammar.num_terminals as usize) as u32;
            let mut body = vec![token()];
            if token() % 2 == 0 {
                body.push(token());
            }
            grammar.symbols[position] = rule;
            position = grammar.symbols.len();
            grammar.symbols.extend(body);
            grammar.rule_offsets.push(grammar.symbols.len() as u32);
        }
    }

    fn add_border(&mut self, random: &mut Random) {
        let root_len = self.grammar.root().len();
        self.grammar.doc_offsets.push(random.below(root_len + 1) as u32);
        self.grammar.doc_offsets.sort_unstable();
        if self.grammar.doc_offsets.len() == 2 {
            self.grammar.doc_offsets = vec![0, root_len as u32];
        }
        self.paths.push(&"x/y".repeat(random.below(4)));
    }

    fn move_border(&mut self, random: &mut Random) {
        let root_len = self.grammar.root().len();
        let num_docs = self.grammar.num_docs();
        if num_docs > 1 {
            let border = 1 + random.below(num_docs - 1);
            self.grammar.doc_offsets[border] = random.below(root_len + 1) as u32;
            self.grammar.doc_offsets.sort_unstable();
        }
    }
}

/// Counts the tokens and words of the text. Totals from 2^64 on saturate; the writer refuses them.
fn count_tokens(grammar: &Grammar, num_words: u32) -> (u64, u64) {
    let mut counts = vec![(0u64, 0u64); grammar.num_rules()];
    for rule_id in grammar.rule_ids().rev() {
        counts[rule_id.index()] = grammar.rule(rule_id).iter().fold((0, 0), |(tokens, words), &e| {
            let (t, w) = match grammar.rule_of(e) {
                Some(child) => counts.get(child.index()).copied().unwrap_or_default(),
                None => (1, u64::from(e < num_words)),
            };
            (tokens.saturating_add(t), words.saturating_add(w))
        });
    }
    counts[0]
}

/// Writes `corpus` again with changed, copied, removed and reordered segments. Returns `None` if
/// the writer refuses them.
pub fn rewritten(random: &mut Random, corpus: &Corpus) -> Option<Vec<u8>> {
    let mut drafts: Vec<Draft> = corpus.segments().iter().map(|s| Draft::from_segment(s)).collect();
    if !drafts.is_empty() && random.one_in(3) {
        let copied = random.pick(&drafts).clone();
        drafts.insert(random.below(drafts.len() + 1), copied);
        let other = random.below(drafts.len());
        let last = drafts.len() - 1;
        drafts.swap(other, last);
        drafts.truncate(1 + random.below(last + 1));
    }
    for _ in 0..random.below(12) {
        let at = random.below(drafts.len());
        let draft = drafts.get_mut(at)?;
        let mut changed = draft.clone();
        changed.change(random);
        // Invalid drafts are refused early. A few of them are useful, but most are not interesting.
        if changed.is_sound() || random.one_in(10) {
            *draft = changed;
        }
    }
    let mut writer = CorpusWriter::new(Vec::new(), corpus.profile(), "hostile").ok()?;
    for (i, draft) in drafts.iter_mut().enumerate() {
        draft.continues &= i > 0;
        let layout = *random.pick(&[SegmentLayout::Small, SegmentLayout::INDEXED]);
        draft.write(&mut writer, layout).ok()?;
    }
    Some(writer.finish(None).ok()?.0)
}
