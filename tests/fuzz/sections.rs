//! Fuzz targets for the footer and the sections of a corpus file. A mutant is refused, or gives a
//! corpus that answers as its own expansion does. Its parts are the same if they are read alone,
//! and the corpus is the same after it is written and read once more.

use tadoc::format::{
    CorpusWriter, FileFooter, FooterOutcome, read_columns, read_document_facts, read_paths, read_words,
};
use tadoc::segment::{DocumentLength, Segment, SegmentFacts};
use tadoc::{Corpus, Error};
use testkit::malformed::anatomy::{Anatomy, POSTSCRIPT_BYTES, footer_start, reseal};
use testkit::malformed::mutations::{mutant_of_footer, mutant_of_kind};
use testkit::malformed::samples::{Draft, content_of};
use testkit::malformed::{self, LIMITS};
use testkit::random::Random;

use super::target::{Input, Verdict, corpora, part_input};

const DICTIONARY: [u8; 2] = [1, 0];
const GRAMMAR: [u8; 2] = [2, 0];
const DOCUMENTS: [u8; 2] = [3, 0];
const WORD_COUNTS: [u8; 2] = [5, 0];
const DOCUMENT_LENGTHS: [u8; 2] = [7, 0];
/// Largest number of seeds of a target.
const MAX_SEEDS: usize = 8;
/// Largest number of tokens and bytes of a text that is written once more.
const MAX_REWRITTEN: u64 = 50_000;

pub fn dictionary(input: &Input<'_>) -> Verdict {
    section(DICTIONARY, input)
}

pub fn dictionary_seeds() -> Vec<Vec<u8>> {
    section_seeds(DICTIONARY)
}

pub fn grammar(input: &Input<'_>) -> Verdict {
    section(GRAMMAR, input)
}

pub fn grammar_seeds() -> Vec<Vec<u8>> {
    section_seeds(GRAMMAR)
}

pub fn documents(input: &Input<'_>) -> Verdict {
    section(DOCUMENTS, input)
}

pub fn documents_seeds() -> Vec<Vec<u8>> {
    section_seeds(DOCUMENTS)
}

pub fn word_counts(input: &Input<'_>) -> Verdict {
    section(WORD_COUNTS, input)
}

pub fn word_counts_seeds() -> Vec<Vec<u8>> {
    section_seeds(WORD_COUNTS)
}

pub fn document_lengths(input: &Input<'_>) -> Verdict {
    section(DOCUMENT_LENGTHS, input)
}

pub fn document_lengths_seeds() -> Vec<Vec<u8>> {
    section_seeds(DOCUMENT_LENGTHS)
}

/// Tries a file whose footer, without postscript, is the input.
pub fn footer(input: &Input<'_>) -> Verdict {
    let file = match *input {
        Input::Number(number) => mutant_of_footer(number, corpora()),
        Input::Part { pick, bytes } => {
            let sample = &corpora()[pick % corpora().len()].file;
            let body = &sample[..footer_start(sample)];
            let postscript = &sample[sample.len() - POSTSCRIPT_BYTES..];
            let mut file = [body, bytes, postscript].concat();
            let len_at = file.len() - POSTSCRIPT_BYTES + 8;
            file[len_at..len_at + 4].copy_from_slice(&(bytes.len() as u32).to_le_bytes());
            reseal(&mut file, &Anatomy::from_file(sample));
            file
        }
    };
    judge(input.number(), &file)
}

pub fn footer_seeds() -> Vec<Vec<u8>> {
    let footer = |file: &[u8]| file[footer_start(file)..file.len() - POSTSCRIPT_BYTES].to_vec();
    smallest(corpora().iter().map(|sample| footer(&sample.file)))
}

/// Returns inputs of the shortest of `parts`. The parts come from the samples, in their order.
fn smallest(parts: impl Iterator<Item = Vec<u8>>) -> Vec<Vec<u8>> {
    let mut inputs: Vec<Vec<u8>> = parts.enumerate().map(|(pick, bytes)| part_input(pick, &bytes)).collect();
    inputs.sort_by_key(Vec::len);
    inputs.dedup_by(|a, b| a[2..] == b[2..]);
    inputs.truncate(MAX_SEEDS);
    inputs
}

fn section_seeds(kind: [u8; 2]) -> Vec<Vec<u8>> {
    let part = |file: &[u8]| {
        let mut parts = Anatomy::from_file(file);
        let section = parts.sections_mut().into_iter().find(|section| section.kind == kind);
        section.map_or(Vec::new(), |section| section.bytes.clone())
    };
    smallest(corpora().iter().map(|sample| part(&sample.file)))
}

/// Tries a file in which the input replaces a section of `kind`.
fn section(kind: [u8; 2], input: &Input<'_>) -> Verdict {
    let file = match *input {
        Input::Number(number) => mutant_of_kind(number, kind, corpora()),
        Input::Part { pick, bytes } => {
            let mut parts = Anatomy::from_file(&corpora()[pick % corpora().len()].file);
            let mut sections = parts.sections_mut();
            sections.retain(|section| section.kind == kind);
            let at = pick / corpora().len();
            let num_sections = sections.len().max(1);
            if let Some(section) = sections.get_mut(at % num_sections) {
                section.bytes = bytes.to_vec();
            }
            parts.tied().assemble()
        }
    };
    judge(input.number(), &file)
}

fn judge(number: u64, file: &[u8]) -> Verdict {
    let opened = Corpus::from_bytes("mutant", file, &LIMITS);
    check_parts_alone(file, opened.as_ref().ok().map(|(_, corpus)| corpus));
    check_on_disk(file, &opened);
    match opened {
        Err(error) => Verdict::from_error(&error),
        Ok((footer, corpus)) => {
            malformed::ask_everything(&mut Random(!number), &footer, &corpus);
            check_rewritten(file, &footer, &corpus);
            Verdict::Answered
        }
    }
}

/// Checks that the file on disk opens with the same result as its bytes. The columns section is
/// read separately.
fn check_on_disk(file: &[u8], opened: &Result<(FileFooter, Corpus), Error>) {
    thread_local!(static FOLDER: tempfile::TempDir = tempfile::tempdir().unwrap());
    let path = FOLDER.with(|folder| folder.path().join("mutant"));
    std::fs::write(&path, file).unwrap();
    match (Corpus::open(&path, &LIMITS), opened) {
        (Ok((footer, corpus)), Ok((expected, whole))) => {
            assert_eq!((&footer, corpus.num_docs()), (expected, whole.num_docs()));
            check_columns(file, &footer);
        }
        (Ok(_), Err(error)) => {
            let is_of_columns = matches!(
                error,
                Error::Checksum { section: "columns", .. }
                    | Error::Format { section: "columns", .. }
                    | Error::Version { .. }
            );
            assert!(is_of_columns, "only its bytes are refused: {error}");
        }
        (Err(error), Err(_)) => assert_ne!(Verdict::from_error(&error), Verdict::Answered),
        (Err(error), Ok(_)) => panic!("only its bytes open: {error}"),
    }
}

fn check_columns(file: &[u8], footer: &FileFooter) {
    let Some(section) = &footer.columns else { return };
    let bytes = &file[section.offset as usize..(section.offset + section.len) as usize];
    assert_eq!(read_columns("mutant", section, bytes).unwrap(), bytes);
    let cut = read_columns("mutant", section, &bytes[..bytes.len().saturating_sub(1)]);
    assert!(bytes.is_empty() || matches!(cut, Err(Error::InvalidArgument { .. })));
}

/// Checks that words, paths and lengths read alone are errors, or equal to those of the whole.
fn check_parts_alone(file: &[u8], corpus: Option<&Corpus>) {
    let parsed = FileFooter::parse("mutant", file, file.len() as u64, &LIMITS);
    let Ok(FooterOutcome::Footer(footer)) = parsed else { return };
    for (i, meta) in footer.segments.iter().enumerate() {
        let segment = corpus.map(|corpus| &corpus.segments()[i]);
        let bytes = |range: std::ops::Range<u64>| &file[range.start as usize..range.end as usize];
        let paths = read_paths("mutant", &footer, i, bytes(meta.paths_range()), &LIMITS);
        let words = meta.words_range().map(|range| read_words("mutant", &footer, i, bytes(range), &LIMITS));
        let facts = meta.facts_range().map(|range| read_document_facts("mutant", &footer, i, bytes(range), &LIMITS));
        let Some(segment) = segment else { continue };
        assert_eq!(paths.unwrap(), segment.paths);
        if let Some(facts) = facts {
            check_facts(&facts.unwrap(), segment);
        }
        if let Some(words) = words {
            check_words(&words.unwrap(), segment);
        }
    }
}

fn check_words(words: &Segment, segment: &Segment) {
    let num_words = segment.dictionary.num_words() as usize;
    assert_eq!(words.dictionary.bytes(), segment.dictionary.bytes());
    assert_eq!(words.weights_or_derive()[..num_words], segment.weights_or_derive()[..num_words]);
}

fn check_facts(facts: &SegmentFacts, segment: &Segment) {
    assert_eq!((&facts.paths, facts.continues), (&segment.paths, segment.continues));
    let lengths = segment.dag.grammar().docs().map(|doc| DocumentLength {
        len_bytes: segment.doc_length_or_derive(doc).len_bytes,
        num_words: segment.doc_length_or_derive(doc).num_words,
    });
    assert_eq!(facts.lengths, lengths.collect::<Vec<_>>());
}

/// Checks that the corpus is the same after it is written and read once more.
fn check_rewritten(file: &[u8], footer: &FileFooter, corpus: &Corpus) {
    if footer.num_tokens().max(footer.len_bytes()) > MAX_REWRITTEN {
        return;
    }
    let mut writer = CorpusWriter::new(Vec::new(), corpus.profile(), "fuzz").unwrap();
    for (segment, meta) in corpus.segments().iter().zip(&footer.segments) {
        Draft::from_segment(segment).write(&mut writer, meta.layout()).unwrap();
    }
    let (again, _) = writer.finish(None).unwrap();
    let (again_footer, again_corpus) = Corpus::from_bytes("again", &again, &LIMITS).unwrap();
    let content = content_of(file, footer, corpus).unwrap();
    let again_content = content_of(&again, &again_footer, &again_corpus).unwrap();
    assert_eq!(content.documents, again_content.documents);
}
