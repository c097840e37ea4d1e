//! Corpora for the benchmarks: those of a folder, or generated text.
//!
//! `TADOC_CORPORA` names a folder. Each of its subfolders is a corpus, and each file below a
//! subfolder is a document. Without the variable there is one corpus of generated text, so that the
//! benchmarks run on any machine; figures of generated text mean little. `benches/README.md` lists
//! the files that are not documents.

#![allow(dead_code, reason = "each bench uses its part")]

use std::path::{Path, PathBuf};

use tadoc::Corpus;
use tadoc::build::{CorpusBuilder, IngestOptions};
use tadoc::format::OpenLimits;
use tadoc::read::DocumentDecoder;
use tadoc::text::for_each_token;

/// Files that state the origin of a corpus and are not documents.
const NO_DOCUMENTS: [&str; 2] = ["PROVENANCE.md", "LICENSE"];

/// A corpus under test and the bytes of its documents.
pub struct Subject {
    pub name: String,
    pub corpus: Corpus,
    pub docs: Vec<Vec<u8>>,
}

impl Subject {
    /// Returns the number of bytes of all documents.
    pub fn len_bytes(&self) -> u64 {
        self.docs.iter().map(|doc| doc.len() as u64).sum()
    }

    /// Returns the words of document `doc_id`.
    pub fn words(&self, doc_id: usize) -> Vec<String> {
        let mut words = Vec::new();
        for_each_token(self.corpus.profile(), &self.docs[doc_id], |token| {
            if token.is_word {
                words.push(String::from_utf8_lossy(token.bytes).into_owned());
            }
        });
        words
    }
}

/// Returns the corpora of the folder in `TADOC_CORPORA`, or the generated corpus.
pub fn subjects() -> Vec<Subject> {
    let Some(folder) = std::env::var_os("TADOC_CORPORA") else {
        return vec![subject("generated".into(), generated())];
    };
    let mut names = entries(Path::new(&folder));
    names.retain(|path| path.is_dir());
    let subjects = names.iter().map(|path| {
        let mut files = Vec::new();
        collect_files(path, &mut files);
        let docs = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        subject(path.file_name().unwrap().to_string_lossy().into_owned(), docs)
    });
    subjects.collect()
}

fn subject(name: String, docs: Vec<Vec<u8>>) -> Subject {
    let mut builder = CorpusBuilder::new(Vec::new(), IngestOptions::default()).unwrap();
    for (doc_id, doc) in docs.iter().enumerate() {
        builder.push_document(&doc_id.to_string(), doc).unwrap();
    }
    let (file, _) = builder.finish(None).unwrap();
    let (_, corpus) = Corpus::from_bytes(&name, &file, &OpenLimits::default()).unwrap();
    let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
    for (doc_id, doc) in docs.iter().enumerate() {
        decoder.append_document(doc_id as u64).unwrap();
        assert_eq!(decoder.bytes(), doc);
        decoder.clear();
    }
    Subject { name, corpus, docs }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.collect();
    paths.sort();
    paths
}

fn collect_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for path in entries(folder) {
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            collect_files(&path, files);
        } else if !(name.starts_with('.') || name.ends_with(".list") || NO_DOCUMENTS.contains(&&*name)) {
            files.push(path);
        }
    }
}

/// Returns two thousand documents of sentences that recur, with a Zipf-like vocabulary.
fn generated() -> Vec<Vec<u8>> {
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    let mut below = |end: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % end
    };
    let sentences: Vec<String> = (0..4000)
        .map(|_| {
            let words: Vec<String> = (0..6 + below(12))
                .map(|_| {
                    let rank = 20_000 / (1 + below(20_000));
                    format!("word{rank}")
                })
                .collect();
            words.join(" ") + ". "
        })
        .collect();
    (0..2000)
        .map(|_| {
            let picks = (0..40).map(|_| sentences[below(4000) as usize].as_str());
            picks.collect::<String>().into_bytes()
        })
        .collect()
}
