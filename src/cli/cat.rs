//! `tadoc cat`: writes the exact bytes of documents to standard output.
//!
//! With `--all` chains of segments are opened one after the other, and cores decode runs of documents side by
//! side. Memory is that of as many segments as there are cores, of the text of their tasks, and of all paths.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::edits::LivingCorpus;
use tadoc::format::{OpenLimits, StoredDictionary, path_text, read_documents, read_paths};
use tadoc::read::{DocumentDecoder, document_len_bytes, extract};
use tadoc::segment::{Paths, Segment};
use tadoc_session::{BlockingResolver, Corpora, CorpusFile, Failure, Outcome, StoredFile};

use crate::living::Living;
use crate::ls::Listing;
use crate::tasks::{Meta, Task, for_each_chain, num_at_once, path_of, read_few, tasks_of};

/// Maximum bytes that are read at once. Longer documents are written in several steps.
const PIECE_BYTES: u64 = 64 << 20;
/// Number of paths that an error suggests.
const NUM_SUGGESTIONS: usize = 3;
/// Maximum number of paths that are compared for a suggestion.
const MAX_COMPARED: usize = 100_000;

/// Write the exact bytes of documents
///
/// A path that several documents share (lines or rows of one file) writes all of them, each
/// followed by a line end.
#[derive(Args)]
#[command(
    disable_version_flag = true,
    after_long_help = "Examples:\n  \
    tadoc cat notes.tadoc todo/monday.md\n  \
    tadoc cat notes.tadoc --doc-id 0 --doc-id 7 | less\n  \
    tadoc cat notes/ --version 3 todo/monday.md        a living corpus, as it was\n  \
    tadoc cat s3://bucket/notes.tadoc todo/monday.md   the same file in an object store\n  \
    tadoc cat notes.tadoc --all | wc                   everything\n  \
    tadoc ls notes.tadoc                               lists the paths"
)]
pub struct Arguments {
    /// The corpus: a file, a living corpus, or a folder or glob of files; a path or URL
    #[arg(value_name = "CORPUS")]
    corpus: PathBuf,

    /// Paths of documents, as `SELECT path FROM documents(…)` shows them, or the names of their
    /// files
    #[arg(value_name = "PATH", required_unless_present_any = ["doc_ids", "all"])]
    paths: Vec<OsString>,

    /// Write all documents, in order of their numbers
    #[arg(long, conflicts_with_all = ["paths", "doc_ids"])]
    all: bool,

    /// Number of a document to write after those named by path (may be given several times)
    #[arg(long = "doc-id", value_name = "N")]
    doc_ids: Vec<u64>,

    /// For a living corpus: write the documents as of this version
    #[arg(long, value_name = "N")]
    version: Option<u64>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    let resolver = BlockingResolver::new()?;
    if arguments.all {
        return All::new(Listing::read(&resolver, &arguments.corpus, arguments.version)?)?.write();
    }
    let (corpus, named) = match resolver.corpora(&arguments.corpus, arguments.version)? {
        Corpora::Living(store) => {
            let living = Living { store, resolver };
            all_of(living.corpus(&living.version(arguments.version)?)?, arguments)?
        }
        Corpora::Files(files) => match <[StoredFile; 1]>::try_from(files) {
            Ok([file]) => some_of(&file.open()?, arguments)?,
            Err(files) => all_of(LivingCorpus::new(resolver.open(files)?), arguments)?,
        },
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    for doc_ids in &named {
        for &doc_id in doc_ids {
            write_document(&corpus, doc_id, &mut out)?;
            if doc_ids.len() > 1 {
                out.write_all(b"\n")?;
            }
        }
    }
    for &doc_id in &arguments.doc_ids {
        write_document(&corpus, doc_id, &mut out)?;
    }
    Ok(out.flush()?)
}

/// All documents of a corpus.
struct All {
    listing: Listing,
    /// Ids of the documents.
    doc_ids: Vec<u64>,
    /// Paths of several documents.
    shared: HashSet<Box<str>>,
}

impl All {
    fn new(listing: Listing) -> Outcome<Self> {
        let mut doc_ids = Vec::new();
        let mut known = HashSet::new();
        let mut shared = HashSet::new();
        listing.for_each(&mut |document| {
            doc_ids.push(document.doc_id);
            if !known.insert(Box::<str>::from(document.path)) {
                shared.insert(document.path.into());
            }
            Ok(())
        })?;
        Ok(Self { listing, doc_ids, shared })
    }

    fn write(&self) -> Outcome {
        let out = &mut io::stdout().lock();
        match &self.listing {
            Listing::Living(corpus) => self.corpus(&corpus.snapshot()?, &self.doc_ids, out)?,
            Listing::Files(files) => {
                for (file, _) in files {
                    let visit = &mut |corpus: &Corpus| {
                        let doc_ids: Vec<u64> = (0..corpus.num_docs()).collect();
                        self.corpus(corpus, &doc_ids, out)?;
                        Ok(ControlFlow::Continue(()))
                    };
                    if for_each_chain(file, None, visit)?.is_break() {
                        break;
                    }
                }
            }
        }
        Ok(out.flush()?)
    }

    /// Writes the documents `doc_ids` of `corpus`.
    fn corpus(&self, corpus: &Corpus, doc_ids: &[u64], out: &mut impl Write) -> Outcome {
        let tasks = tasks_of(corpus, doc_ids)?;
        for tasks in tasks.chunk_by(|one, next| !one.is_long && !next.is_long) {
            if let [Task { docs: [doc_id], is_long: true }] = tasks {
                for offset in (0..document_len_bytes(corpus, *doc_id)?).step_by(PIECE_BYTES as usize) {
                    out.write_all(&extract(corpus, *doc_id, offset, PIECE_BYTES)?)?;
                }
                out.write_all(self.end_of(corpus, *doc_id))?;
                continue;
            }
            // Texts are decoded while those before them are written.
            let mut written = Vec::new();
            for tasks in tasks.chunks(num_at_once()).chain([&[][..]]) {
                let mut decoded = Vec::new();
                rayon::in_place_scope(|scope| {
                    scope.spawn(|_| decoded = self.tasks(corpus, tasks));
                    write_texts(std::mem::take(&mut written), out)
                })?;
                written = decoded;
            }
        }
        Ok(())
    }

    /// Returns the texts of each of `tasks`, in their order.
    fn tasks(&self, corpus: &Corpus, tasks: &[Task<'_>]) -> Vec<Outcome<Vec<u8>>> {
        tasks.par_iter().map(|task| self.task(corpus, task.docs)).collect()
    }

    /// Returns the texts of `doc_ids`, end to end.
    fn task(&self, corpus: &Corpus, doc_ids: &[u64]) -> Outcome<Vec<u8>> {
        let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
        let mut texts = Vec::new();
        for &doc_id in doc_ids {
            decoder.append_document(doc_id)?;
            let end = self.end_of(corpus, doc_id);
            if !end.is_empty() {
                texts.append(&mut decoder.take());
                texts.extend_from_slice(end);
            }
        }
        let mut rest = decoder.take();
        if texts.is_empty() {
            return Ok(rest);
        }
        texts.append(&mut rest);
        Ok(texts)
    }

    /// Returns the bytes behind document `doc_id`: a line end if others have its path.
    fn end_of(&self, corpus: &Corpus, doc_id: u64) -> &'static [u8] {
        if self.shared.contains(path_of(corpus, doc_id)) { b"\n" } else { b"" }
    }
}

fn write_texts(texts: Vec<Outcome<Vec<u8>>>, out: &mut impl Write) -> Outcome {
    for text in texts {
        out.write_all(&text?)?;
    }
    Ok(())
}

fn write_document(corpus: &LivingCorpus, doc_id: u64, out: &mut impl Write) -> Outcome {
    let len_bytes = corpus.len_bytes(doc_id)?;
    let mut offset = 0;
    while offset < len_bytes {
        out.write_all(&corpus.extract(doc_id, offset, PIECE_BYTES)?)?;
        offset += PIECE_BYTES;
    }
    Ok(())
}

/// Returns `corpus`, and the ids of the documents that each path refers to.
fn all_of(corpus: LivingCorpus, arguments: &Arguments) -> Outcome<(LivingCorpus, Vec<Vec<u64>>)> {
    let there = (0..corpus.num_docs()).filter(|&doc_id| !corpus.is_dropped(doc_id));
    let documents: Vec<(u64, &str)> = there.filter_map(|doc_id| Some((doc_id, corpus.path(doc_id)?))).collect();
    let named = ids_of(&documents, &arguments.paths)?;
    Ok((corpus, named))
}

/// Variant of [`all_of`] for a corpus file. Decodes only the documents that are written, or the segments
/// with them. The others are absent.
fn some_of(file: &CorpusFile, arguments: &Arguments) -> Outcome<(LivingCorpus, Vec<Vec<u64>>)> {
    let name = &file.name;
    let footer = &file.footer;
    let limits = OpenLimits::default();
    let mut paths: Vec<Paths> = Vec::with_capacity(footer.segments.len());
    for (segment_idx, meta) in footer.segments.iter().enumerate() {
        let bytes = file.read(meta.paths_range())?;
        paths.push(read_paths(name, footer, segment_idx, &bytes, &limits)?);
    }
    let paths = footer.segments.iter().zip(&paths).flat_map(|(meta, paths)| {
        // The path of a continued document stands in the segment before, too.
        (usize::from(meta.continues)..paths.len()).filter_map(|doc| paths.get(doc))
    });
    let documents: Vec<(u64, &str)> = (0..).zip(paths).collect();
    let named = ids_of(&documents, &arguments.paths)?;
    let mut doc_ids = [named.concat(), arguments.doc_ids.clone()].concat();
    doc_ids.sort_unstable();
    doc_ids.dedup();
    let mut segments = Vec::with_capacity(footer.segments.len());
    for (segment_idx, (meta, docs)) in footer.segments.iter().zip(footer.docs_of_segments()).enumerate() {
        let [start, end] = [docs.start, docs.end].map(|id| doc_ids.partition_point(|&doc_id| doc_id < id));
        let here: Vec<u32> = doc_ids[start..end].iter().map(|doc_id| (doc_id - docs.start) as u32).collect();
        segments.push(Arc::new(if here.is_empty() {
            Segment::absent(meta.num_docs as usize, meta.continues)?
        } else {
            read_here(file, (segment_idx, meta), &here)?
        }));
    }
    Ok((LivingCorpus::new(Corpus::new(footer.profile, segments)), named))
}

/// Reads the documents `docs`, which ascend, of a segment with their words.
fn read_here(file: &CorpusFile, (segment_idx, meta): Meta<'_>, docs: &[u32]) -> Outcome<Segment> {
    let limits = OpenLimits::default();
    let Some(head) = meta.grammar_head_range() else {
        let bytes = file.read(meta.byte_range())?;
        return Ok(read_documents(&file.name, &file.footer, segment_idx, &bytes, docs, &limits)?);
    };
    let mut read = file.read_each([meta.dictionary_range(), head])?;
    let head = read.pop();
    let words = StoredDictionary::new(&file.name, &file.footer, segment_idx, read.pop().unwrap_or_default())?;
    let tokens = |ids: Option<&[u32]>| match ids {
        Some(ids) => words.subset(ids, &limits),
        None => words.decode(&limits),
    };
    read_few(file, (segment_idx, meta), head, tokens, docs)
}

/// Returns the ids of those `documents`, with their paths, that each of `names` refers to, in order.
fn ids_of(documents: &[(u64, &str)], names: &[OsString]) -> Outcome<Vec<Vec<u64>>> {
    let mut found: HashMap<Cow<'_, str>, Vec<u64>> =
        names.iter().flat_map(|name| paths_of(name)).map(|path| (path, Vec::new())).collect();
    for &(doc_id, path) in documents {
        if let Some(doc_ids) = found.get_mut(path) {
            doc_ids.push(doc_id);
        }
    }
    let ids_of = |name: &OsString| {
        let doc_ids = paths_of(name).into_iter().filter_map(|path| found.get(&path));
        let mut doc_ids = doc_ids.filter(|doc_ids| !doc_ids.is_empty());
        doc_ids.next().cloned().ok_or_else(|| unknown_path(documents, &path_text(name.as_encoded_bytes())))
    };
    names.iter().map(ids_of).collect()
}

/// Returns the paths that `name` may refer to: `name` itself, and the escaped path of a file with
/// that name (see [`path_text`]).
fn paths_of(name: &OsStr) -> Vec<Cow<'_, str>> {
    let file_text = path_text(name.as_encoded_bytes());
    name.to_str().map(Cow::Borrowed).into_iter().chain([file_text]).collect()
}

fn unknown_path(documents: &[(u64, &str)], path: &str) -> Failure {
    let nearest = nearest_paths(path, documents.iter().map(|&(_, path)| path));
    let hint = if nearest.is_empty() {
        "the corpus is empty".to_owned()
    } else {
        format!("the nearest are {}", nearest.join(", "))
    };
    Failure::new(format!("there is no document `{path}`; {hint}"))
}

/// Returns suggestions for `path`: paths that end or begin with it, then those with the fewest
/// differences.
fn nearest_paths<'a>(path: &str, paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut nearest: Vec<(usize, &str)> = Vec::new();
    for candidate in paths.take(MAX_COMPARED) {
        let is_part = candidate.ends_with(path) || path.ends_with(candidate);
        let distance = match (is_part, candidate.starts_with(path)) {
            (true, _) => 0,
            (_, true) => 1,
            _ => 2 + edit_distance(path, candidate),
        };
        let at = nearest.partition_point(|&(other, _)| other <= distance);
        if at < NUM_SUGGESTIONS && nearest.iter().all(|&(_, known)| known != candidate) {
            nearest.insert(at, (distance, candidate));
            nearest.truncate(NUM_SUGGESTIONS);
        }
    }
    nearest.into_iter().map(|(_, path)| format!("`{path}`")).collect()
}

/// Returns the number of letters to insert, remove or replace to turn one text into the other.
fn edit_distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (left_idx, left) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = left_idx + 1;
        for (idx, &right) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(left != right);
            diagonal = row[idx + 1];
            row[idx + 1] = replaced.min(diagonal + 1).min(row[idx] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        assert_eq!(edit_distance("", "abc"), 3);
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("same", "same"), 0);
    }

    #[test]
    fn the_nearest_paths_come_first() {
        let paths = ["src/main.rs", "docs/readme.md", "docs/readmy.md", "zzz"];
        assert_eq!(nearest_paths("main.rs", paths.into_iter())[0], "`src/main.rs`");
        assert_eq!(nearest_paths("docs/readme.m", paths.into_iter())[0], "`docs/readme.md`");
        assert_eq!(nearest_paths("docs/", paths.into_iter())[0], "`docs/readme.md`");
        assert!(nearest_paths("x", std::iter::empty()).is_empty());
    }
}
