//! The documents of a version, and digests of texts: of some of them, and of files that are read without
//! being stored.
//!
//! Paths and lengths are read from the facts of each file, without a grammar. A digest needs the text, so the segments
//! with these documents are opened, one chain at a time. Only documents with edits that no optimize has merged need
//! the whole version.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use blake3::{Hash, Hasher};
use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::edits::Edit;
use tadoc::format::{OpenLimits, SegmentMeta, read_segment};
use tadoc::read::{DocumentDecoder, document_len_bytes, extract};
use tadoc_documents as documents;
use tadoc_documents::display::{grouped, plain};
use tadoc_documents::{Batch, Input, Sink};
use tadoc_session::{CorpusFile, Failure, Outcome, interrupt};
use tadoc_store::{Part, Version, VersionEdits};

use crate::columns::Columns;
use crate::ingest::Job;
use crate::living::Living;
use crate::ls::facts_of;
use crate::tasks::{Task, tasks_of};

/// Bytes of a long document that are read at once.
const PIECE_BYTES: u64 = 16 << 20;

/// A document of a version.
#[derive(Debug)]
pub struct Document {
    pub doc_id: u64,
    pub path: Box<str>,
    /// Length of its text, if it is known without the text.
    pub len_bytes: Option<u64>,
}

/// The documents of a version that are not dropped, in order of id.
#[derive(Default)]
pub struct Documents {
    pub all: Vec<Document>,
    /// Ids of documents whose text is in edits, or is changed by them.
    edited: HashSet<u64>,
    /// True if documents have columns.
    has_columns: bool,
}

impl Documents {
    /// Reads the documents of `version` of the corpus at `location`.
    ///
    /// # Errors
    /// A file of the version cannot be read, or it is damaged.
    pub fn read(living: &Living, location: &Path, version: &Version) -> Outcome<Self> {
        let edits = match version.edit_versions() {
            none if none.is_empty() => Vec::new(),
            versions => living.wait(living.store.edits(versions))?,
        };
        let mut edited = HashSet::new();
        let mut dropped = HashSet::new();
        for edit in edits.iter().flat_map(|edits| &edits.batch.edits) {
            if let Edit::DropDocument { doc_id } = edit {
                dropped.insert(*doc_id);
            } else {
                edited.extend(edit.doc_id());
            }
        }
        let is_there = |doc_id: &u64| {
            let next = version.dropped.partition_point(|ids| ids.end <= *doc_id);
            !dropped.contains(doc_id) && !version.dropped.get(next).is_some_and(|ids| ids.contains(doc_id))
        };
        let parts: Vec<(&Part, Range<u64>)> = version.part_ids().collect();
        let read = |(part, ids): &(&Part, Range<u64>)| match part {
            Part::File { .. } => documents_of_file(living, location, part, ids.start, &is_there),
            Part::Edits { version, .. } => Ok((added(&edits, *version, ids.start, &is_there), false)),
        };
        let of_parts = parts.par_iter().map(read).collect::<Outcome<Vec<_>>>()?;
        for (part, ids) in &parts {
            if matches!(part, Part::Edits { .. }) {
                edited.extend(ids.clone());
            }
        }
        let mut documents = Self { edited, has_columns: version.sets_columns, all: Vec::new() };
        for (of_part, has_columns) in of_parts {
            documents.all.extend(of_part);
            documents.has_columns |= has_columns;
        }
        for document in documents.all.iter_mut().filter(|document| documents.edited.contains(&document.doc_id)) {
            document.len_bytes = None;
        }
        Ok(documents)
    }

    /// Refuses documents that are no whole files. `is_below` tells if a path lies in an archive.
    ///
    /// # Errors
    /// A failure that says how such a corpus grows.
    pub fn check_are_files(&self, location: &str, is_below: impl Fn(&str) -> bool) -> Outcome {
        let way_out = "a folder is kept in step with documents that are whole files: sync it with a new corpus, and \
                       `tadoc ingest --append`, or --follow for a log, adds to this one";
        if self.has_columns {
            return Err(Failure::new(format!("{location}: its documents have columns, as rows have; {way_out}")));
        }
        let mut num_of_path: HashMap<&str, u64> = HashMap::new();
        for document in &self.all {
            *num_of_path.entry(&document.path).or_default() += 1;
        }
        let shared = num_of_path.into_iter().filter(|(path, number)| *number > 1 && !is_below(path));
        match shared.max_by_key(|(path, number)| (*number, *path)) {
            None => Ok(()),
            Some((path, number)) => Err(Failure::new(format!(
                "{location}: {} documents have the path {}, as lines and rows of a file have; {way_out}",
                grouped(number),
                plain(path)
            ))),
        }
    }

    /// Returns the digests of the texts of the documents `doc_ids` of `version`.
    ///
    /// # Errors
    /// A file of the version cannot be read, or it is damaged; or the user has interrupted.
    pub fn digests(
        &self,
        living: &Living,
        location: &Path,
        version: &Version,
        doc_ids: &[u64],
    ) -> Outcome<HashMap<u64, Hash>> {
        let (edited, plain): (Vec<u64>, Vec<u64>) = doc_ids.iter().partition(|doc_id| self.edited.contains(doc_id));
        let mut digests = HashMap::new();
        for (part, ids) in version.part_ids() {
            let range = plain.partition_point(|id| *id < ids.start)..plain.partition_point(|id| *id < ids.end);
            let of_part: Vec<u64> = plain[range].iter().map(|id| id - ids.start).collect();
            if of_part.is_empty() {
                continue;
            }
            if let Some(file) = living.resolver.part(location, part)? {
                let of_file = digests_of_file(&file, &of_part)?;
                digests.extend(of_file.into_iter().map(|(doc, digest)| (ids.start + doc, digest)));
            }
        }
        if !edited.is_empty() {
            let corpus = living.corpus(version)?;
            for doc_id in edited {
                let len_bytes = corpus.len_bytes(doc_id)?;
                let piece = |offset| Ok(corpus.extract(doc_id, offset, PIECE_BYTES)?);
                digests.insert(doc_id, digest_of_pieces(len_bytes, piece)?);
            }
        }
        Ok(digests)
    }
}

/// Returns the documents of a file that are there, and true if they have columns.
fn documents_of_file(
    living: &Living,
    location: &Path,
    part: &Part,
    first_id: u64,
    is_there: &(dyn Fn(&u64) -> bool + Sync),
) -> Outcome<(Vec<Document>, bool)> {
    let Some(file) = living.resolver.part(location, part)? else { return Ok((Vec::new(), false)) };
    let facts = facts_of(&file)?;
    let ids = (0..facts.num_docs()).filter(|doc| is_there(&(first_id + doc)));
    let document = |doc: u64| Document {
        doc_id: first_id + doc,
        path: facts.path(doc).unwrap_or_default().into(),
        len_bytes: facts.length(doc).map(|length| length.len_bytes),
    };
    Ok((ids.map(document).collect(), file.footer.columns.is_some()))
}

/// Returns the documents that version `number` added by edits and that are there.
fn added(edits: &[VersionEdits], number: u64, first_id: u64, is_there: &dyn Fn(&u64) -> bool) -> Vec<Document> {
    let of_version = edits.iter().filter(|edits| edits.version == number);
    let paths = of_version.flat_map(|edits| &edits.batch.edits).filter_map(|edit| match edit {
        Edit::AddDocument { path, .. } => Some(path.as_str()),
        _ => None,
    });
    let documents = (first_id..).zip(paths).filter(|(doc_id, _)| is_there(doc_id));
    documents.map(|(doc_id, path)| Document { doc_id, path: path.into(), len_bytes: None }).collect()
}

/// Returns the digests of the documents `docs` of `file`, which ascend.
fn digests_of_file(file: &CorpusFile, docs: &[u64]) -> Outcome<Vec<(u64, Hash)>> {
    let docs_of_segments = file.footer.docs_of_segments();
    let metas: Vec<_> = file.footer.segments.iter().zip(docs_of_segments).enumerate().collect();
    let mut digests = Vec::with_capacity(docs.len());
    for chain in metas.chunk_by(|_, (_, (next, _))| next.continues) {
        if interrupt::is_asked() {
            return Err(Failure::interrupted());
        }
        let [(_, (_, first)), ..] = chain else { continue };
        let [.., (_, (_, last))] = chain else { continue };
        let of_chain =
            &docs[docs.partition_point(|doc| *doc < first.start)..docs.partition_point(|doc| *doc < last.end)];
        if !of_chain.is_empty() {
            let read = |(segment_idx, (meta, _)): &(usize, (&SegmentMeta, Range<u64>))| {
                let bytes = file.read(meta.byte_range())?;
                let limits = OpenLimits::default();
                Ok(Arc::new(read_segment(&file.name, &file.footer, *segment_idx, &bytes, &limits)?))
            };
            let segments = chain.par_iter().map(read).collect::<Outcome<Vec<_>>>()?;
            let corpus = Corpus::new(file.footer.profile, segments);
            let local: Vec<u64> = of_chain.iter().map(|doc| doc - first.start).collect();
            let tasks = tasks_of(&corpus, &local)?;
            let of_tasks = tasks.par_iter().map(|task| digests_of_task(&corpus, task)).collect::<Outcome<Vec<_>>>()?;
            digests.extend(of_tasks.into_iter().flatten().map(|(doc, digest)| (first.start + doc, digest)));
        }
    }
    Ok(digests)
}

fn digests_of_task(corpus: &Corpus, task: &Task<'_>) -> Outcome<Vec<(u64, Hash)>> {
    if let (true, [doc_id]) = (task.is_long, task.docs) {
        let piece = |offset| Ok(extract(corpus, *doc_id, offset, PIECE_BYTES)?);
        return Ok(vec![(*doc_id, digest_of_pieces(document_len_bytes(corpus, *doc_id)?, piece)?)]);
    }
    let mut decoder = DocumentDecoder::new(corpus.clone(), u64::MAX);
    let digest = |&doc_id: &u64| {
        decoder.clear();
        decoder.append_document(doc_id)?;
        Ok((doc_id, blake3::hash(decoder.bytes())))
    };
    task.docs.iter().map(digest).collect()
}

fn digest_of_pieces(len_bytes: u64, piece: impl Fn(u64) -> Outcome<Vec<u8>>) -> Outcome<Hash> {
    let mut hasher = Hasher::new();
    for offset in (0..len_bytes).step_by(PIECE_BYTES as usize) {
        if interrupt::is_asked() {
            return Err(Failure::interrupted());
        }
        hasher.update(&piece(offset)?);
    }
    Ok(hasher.finalize())
}

/// A document as its file has it now.
#[derive(Debug)]
pub struct Print {
    pub path: Arc<str>,
    pub len_bytes: u64,
    pub digest: Hash,
}

/// Reads `inputs` as `job` does, and returns the prints of their documents, in order, and the faults of
/// inputs that were left out from there on.
///
/// # Errors
/// An input cannot be read, or the user has interrupted.
pub fn prints(inputs: &[Input], job: &Job) -> Outcome<(Vec<Print>, Vec<String>)> {
    let mut prints = Prints::default();
    let mut columns = Columns::for_documents(&documents::Documents::Files);
    let read = documents::read(inputs, &job.division, job.read, &job.archives, &mut columns, &mut prints);
    if interrupt::is_asked() {
        return Err(Failure::interrupted());
    }
    Ok((prints.done, read?.faults))
}

#[derive(Default)]
struct Prints {
    done: Vec<Print>,
    /// Hasher and length of the document that goes on.
    open: Option<(Hasher, u64)>,
}

impl Sink for Prints {
    fn take(&mut self, batch: Batch) -> documents::Outcome {
        if interrupt::is_asked() {
            return Err(documents::Failure::new("interrupted"));
        }
        for (part, (path, _)) in batch.iter().zip(&batch.documents) {
            let (mut hasher, before) = self.open.take().unwrap_or_default();
            hasher.update(part.text);
            let len_bytes = before + part.text.len() as u64;
            if part.is_last {
                self.done.push(Print { path: Arc::clone(path), len_bytes, digest: hasher.finalize() });
            } else {
                self.open = Some((hasher, len_bytes));
            }
        }
        Ok(())
    }
}
