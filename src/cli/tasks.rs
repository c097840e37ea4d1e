//! Documents of a corpus a few at a time: runs of documents of about equal length, one for each task of a core, and
//! the segments of a corpus file that have what is looked for.
//!
//! ```text
//! segments   | a | b | c ..|.. d |     .. a document that was cut at a block border
//! chains     | a | b | c       d |     documents lie in one chain
//! ```
//!
//! A *chain* is a run of segments that share a document, mostly one segment. As many chains as there
//! are cores are opened at a time: first their dictionaries, then the rest of those whose words may match. The
//! next ones are opened while the documents of one are worked on.

use std::collections::{HashSet, VecDeque};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use rayon::prelude::*;
use tadoc::Corpus;
use tadoc::format::{
    GrammarHead, OpenLimits, SegmentMeta, StoredDictionary, StoredLists, read_documents_with, read_path_runs,
    read_segment_with,
};
use tadoc::query::{SegmentWords, TextPattern, WordCondition, segments_for_texts};
use tadoc::read::document_len_bytes;
use tadoc::segment::{PathRuns, Segment};
use tadoc::text::Dictionary;
use tadoc_session::{CorpusFile, Outcome};

/// Least and greatest number of bytes of documents in one task. Texts that repeat are decoded once
/// in each task, and the texts of all tasks that are worked on together are held.
const MIN_TASK_BYTES: u64 = 1 << 20;
const MAX_TASK_BYTES: u64 = 4 << 20;
/// Length of a document from which on it is a task of its own, which is worked on in pieces.
pub const LONG_BYTES: u64 = 16 << 20;
/// Tasks for each core that are worked on together.
const TASKS_PER_CORE: usize = 2;

/// Documents that are worked on one after the other.
pub struct Task<'a> {
    pub docs: &'a [u64],
    /// True for one long document.
    pub is_long: bool,
}

/// Returns the number of tasks that are worked on together.
pub fn num_at_once() -> usize {
    TASKS_PER_CORE * rayon::current_num_threads()
}

/// Cuts `docs` into tasks, some for each core.
///
/// # Errors
/// A document does not exist.
pub fn tasks_of<'a>(corpus: &Corpus, docs: &'a [u64]) -> Outcome<Vec<Task<'a>>> {
    let lens = docs.iter().map(|&doc_id| document_len_bytes(corpus, doc_id));
    let lens = lens.collect::<tadoc::Result<Vec<u64>>>()?;
    let num_bytes = lens.iter().copied().fold(0, u64::saturating_add);
    let task_bytes = (num_bytes / num_at_once() as u64).clamp(MIN_TASK_BYTES, MAX_TASK_BYTES);
    let mut tasks = Vec::new();
    let mut start = 0;
    let mut len_bytes = 0;
    for (idx, doc_bytes) in lens.into_iter().enumerate() {
        let is_long = doc_bytes >= LONG_BYTES;
        if start < idx && (is_long || len_bytes + doc_bytes > task_bytes) {
            tasks.push(Task { docs: &docs[start..idx], is_long: false });
            (start, len_bytes) = (idx, 0);
        }
        if is_long {
            tasks.push(Task { docs: &docs[idx..=idx], is_long });
            start = idx + 1;
        } else {
            len_bytes += doc_bytes;
        }
    }
    if start < docs.len() {
        tasks.push(Task { docs: &docs[start..], is_long: false });
    }
    Ok(tasks)
}

/// Returns the path of document `doc_id`; empty if there is none.
pub fn path_of(corpus: &Corpus, doc_id: u64) -> &str {
    corpus.path(doc_id).unwrap_or_default()
}

/// Runs `jobs` on the cores, as many ahead as there are cores, and calls `visit` with their results in order until it
/// breaks.
///
/// # Errors
/// The first error of a job or of `visit`.
pub fn for_each_ahead<J, T>(
    jobs: impl Iterator<Item = J>,
    visit: &mut dyn FnMut(T) -> Outcome<ControlFlow<()>>,
) -> Outcome<ControlFlow<()>>
where
    J: FnOnce() -> Outcome<T> + Send,
    T: Send,
{
    let mut jobs = jobs.fuse();
    let mut ahead = VecDeque::new();
    rayon::in_place_scope(|scope| {
        loop {
            while ahead.len() < rayon::current_num_threads()
                && let Some(job) = jobs.next()
            {
                let (sender, result) = mpsc::sync_channel(1);
                scope.spawn(move |_| {
                    // Nobody waits for it after a break.
                    let _ = sender.send(job());
                });
                ahead.push_back(result);
            }
            let Some(result) = ahead.pop_front() else { return Ok(ControlFlow::Continue(())) };
            // Without a result the job has panicked, and so does the scope when it ends.
            let Ok(result) = result.recv() else { return Ok(ControlFlow::Break(())) };
            if visit(result?)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
    })
}

/// Calls `visit` with each chain of `file`, until it breaks. If `docs` is given, a chain has at least one of these
/// documents, whose ids ascend. Otherwise all documents are expected to be decoded.
///
/// # Errors
/// The file cannot be read or is damaged, and the errors of `visit`.
pub fn for_each_chain(
    file: &CorpusFile,
    docs: Option<&[u64]>,
    visit: &mut dyn FnMut(&Corpus) -> Outcome<ControlFlow<()>>,
) -> Outcome<ControlFlow<()>> {
    let metas = metas_of(file);
    let with_docs = docs.map(|docs| file.footer.segments_of(docs));
    let has_doc = |(place, _): &Meta<'_>| with_docs.as_ref().is_none_or(|with_docs| with_docs[*place]);
    let chains = metas.chunk_by(|_, (_, next)| next.continues);
    let open = chains.filter(|chain| chain.iter().any(has_doc)).map(|chain| {
        move || {
            let segments = read_rest(file, read_words(file, chain)?)?;
            if docs.is_none() {
                segments.par_iter().for_each(|segment| segment.prepare_to_decode_all());
            }
            Ok(Corpus::new(file.footer.profile, segments))
        }
    });
    for_each_ahead(open, &mut |corpus| visit(&corpus))
}

/// A segment's place in its file, and its sections.
pub type Meta<'f> = (usize, &'f SegmentMeta);

/// Returns the segments of `file` in order.
pub fn metas_of(file: &CorpusFile) -> Vec<Meta<'_>> {
    file.footer.segments.iter().enumerate().collect()
}

/// Returns true for each segment of successive chains, of which the dictionaries were read, that may have a document
/// as [`for_each_chain`] says.
pub fn are_needed(file: &CorpusFile, demands: &[Vec<TextPattern>], read: &[(Meta<'_>, Dictionary)]) -> Vec<bool> {
    let words = read.iter().map(|((_, meta), dictionary)| SegmentWords {
        dictionary,
        num_docs: meta.num_docs,
        continues: meta.continues,
    });
    segments_for_texts(demands, file.footer.profile, &words.collect::<Vec<_>>())
}

/// Reads the dictionaries of segments.
///
/// # Errors
/// The file cannot be read or is damaged.
pub fn read_words<'f>(file: &CorpusFile, metas: &[Meta<'f>]) -> Outcome<Vec<(Meta<'f>, Dictionary)>> {
    let read = |&meta: &Meta<'f>| Ok((meta, file.read(meta.1.dictionary_range())?));
    let stored: Vec<(Meta<'f>, Bytes)> = metas.iter().map(read).collect::<Outcome<_>>()?;
    let decode = |(meta, bytes): (Meta<'f>, Bytes)| {
        let limits = OpenLimits::default();
        let dictionary = StoredDictionary::new(&file.name, &file.footer, meta.0, bytes)?;
        Ok((meta, dictionary.decode(&limits)?))
    };
    Ok(stored.into_par_iter().map(decode).collect::<tadoc::Result<_>>()?)
}

/// Reads what is left of segments of which the dictionaries were read.
///
/// # Errors
/// The file cannot be read or is damaged.
pub fn read_rest(file: &CorpusFile, read: Vec<(Meta<'_>, Dictionary)>) -> Outcome<Vec<Arc<Segment>>> {
    let rest = |(meta, dictionary): (Meta<'_>, Dictionary)| Ok((meta.0, dictionary, file.read(meta.1.rest_range())?));
    let stored: Vec<(usize, Dictionary, Bytes)> = read.into_iter().map(rest).collect::<Outcome<_>>()?;
    let decode = |(segment_idx, dictionary, bytes): (usize, Dictionary, Bytes)| {
        let limits = OpenLimits::default();
        let footer = &file.footer;
        read_segment_with(&file.name, footer, segment_idx, &bytes, dictionary, &limits).map(Arc::new)
    };
    Ok(stored.into_par_iter().map(decode).collect::<tadoc::Result<_>>()?)
}

/// Reads the paths of a segment.
///
/// # Errors
/// The file cannot be read or is damaged.
pub fn paths_of(file: &CorpusFile, (segment_idx, meta): Meta<'_>) -> Outcome<PathRuns> {
    let bytes = file.read(meta.paths_range())?;
    Ok(read_path_runs(&file.name, &file.footer, segment_idx, &bytes, &OpenLimits::default())?)
}

/// A segment that may match, and the documents that may, ascending, if they are known.
pub type Matching = (Arc<Segment>, Option<Vec<u64>>);

/// Documents that are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decoded {
    /// The documents that may match.
    Matching,
    /// All of their texts, and of texts that may go on in other segments.
    WholeTexts,
}

/// Reads what is left of a segment that is no part of a longer chain and of which the dictionary was read; `None` if no
/// document can match `demands`. With `chosen`, only these documents count. If few are `wanted`, these and neighbours
/// of them are decoded.
///
/// # Errors
/// The file cannot be read or is damaged.
pub fn read_matching(
    file: &CorpusFile,
    ((segment_idx, meta), dictionary): (Meta<'_>, Dictionary),
    demands: &[Vec<TextPattern>],
    chosen: Option<Vec<u32>>,
    wanted: Decoded,
) -> Outcome<Option<Matching>> {
    let from_lists = documents_from_lists(file, (segment_idx, meta), &dictionary, demands)?;
    let are_listed = from_lists.is_some();
    let docs = match (from_lists, chosen) {
        (Some(mut docs), Some(chosen)) => {
            docs.retain(|doc| chosen.binary_search(doc).is_ok());
            Some(docs)
        }
        (docs, chosen) => docs.or(chosen),
    };
    if docs.as_ref().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    let few = match docs.clone().filter(|docs| meta.has_few(docs.len())) {
        Some(docs) if wanted == Decoded::WholeTexts => {
            Some(with_texts(file, (segment_idx, meta), &docs)?).filter(|docs| meta.has_few(docs.len()))
        }
        docs => docs,
    };
    let are_known = are_listed || few.is_some();
    let segment = match few {
        Some(docs) => {
            let head = meta.grammar_head_range().map(|range| file.read(range)).transpose()?;
            let tokens = |ids: Option<&[u32]>| ids.map_or_else(|| Ok(dictionary.clone()), |ids| dictionary.subset(ids));
            read_few(file, (segment_idx, meta), head, tokens, &docs)?
        }
        None => {
            let bytes = file.read(meta.rest_range())?;
            read_segment_with(&file.name, &file.footer, segment_idx, &bytes, dictionary, &OpenLimits::default())?
        }
    };
    let docs = docs.filter(|_| are_known);
    Ok(Some((Arc::new(segment), docs.map(|docs| docs.into_iter().map(u64::from).collect()))))
}

/// Returns the documents of a segment that have the path of one of `docs`, which ascend, and, if there are other
/// segments, those of its first and its last path.
fn with_texts(file: &CorpusFile, meta: Meta<'_>, docs: &[u32]) -> Outcome<Vec<u32>> {
    let paths = paths_of(file, meta)?;
    let runs: Vec<(&str, Range<u32>)> = runs_of(&paths).collect();
    let mut wanted: HashSet<&str> = HashSet::new();
    if file.footer.segments.len() > 1 {
        wanted.extend([runs.first(), runs.last()].into_iter().flatten().map(|(path, _)| path));
    }
    let mut rest = docs;
    for (path, run) in &runs {
        let (here, behind) = rest.split_at(rest.partition_point(|doc| *doc < run.end));
        wanted.extend((!here.is_empty()).then_some(path));
        rest = behind;
    }
    Ok(runs.into_iter().filter(|(path, _)| wanted.contains(path)).flat_map(|(_, run)| run).collect())
}

/// Returns each run of documents with their path.
pub fn runs_of(paths: &PathRuns) -> impl Iterator<Item = (&str, Range<u32>)> {
    paths.iter().scan(0u32, |start, (path, num_docs)| {
        let run = *start..start.saturating_add(u32::try_from(num_docs).unwrap_or(u32::MAX));
        *start = run.end;
        Some((path, run))
    })
}

/// Reads the documents `docs`, which ascend, of a segment: the blocks of their units, or the whole segment. `head` has
/// the bytes of its [`grammar_head_range`](SegmentMeta::grammar_head_range). `tokens` returns the dictionary of some of
/// its tokens, which ascend, or of all.
///
/// # Errors
/// The file cannot be read or is damaged.
pub fn read_few(
    file: &CorpusFile,
    (segment_idx, meta): Meta<'_>,
    head: Option<Bytes>,
    tokens: impl FnOnce(Option<&[u32]>) -> tadoc::Result<Dictionary>,
    docs: &[u32],
) -> Outcome<Segment> {
    let limits = OpenLimits::default();
    let footer = &file.footer;
    let units = match head {
        Some(head) => GrammarHead::new(&file.name, footer, segment_idx, &head)?.units(docs, &limits)?,
        None => None,
    };
    if let Some(units) = units {
        let parts = file.read_each(units.ranges().iter().cloned())?;
        return Ok(units.read(&parts, tokens, &limits)?.segment);
    }
    let bytes = file.read(meta.rest_range())?;
    Ok(read_documents_with(&file.name, footer, segment_idx, &bytes, tokens, docs, &limits)?.segment)
}

/// Returns the documents of a segment that may match `demands` by its word lists, or `None` if it has none of their
/// words.
fn documents_from_lists(
    file: &CorpusFile,
    (segment_idx, meta): Meta<'_>,
    dictionary: &Dictionary,
    demands: &[Vec<TextPattern>],
) -> Outcome<Option<Vec<u32>>> {
    let condition = WordCondition::for_texts(demands, file.footer.profile, dictionary);
    let ids = condition.words();
    let Some(range) = meta.lists_range().filter(|_| !ids.is_empty()) else { return Ok(None) };
    let lists = StoredLists::new(&file.name, &file.footer, segment_idx, &file.read(range)?)?;
    let groups = lists.ranges(&ids).into_iter().map(|range| file.read(range));
    let groups: Vec<Bytes> = groups.collect::<Outcome<_>>()?;
    let found = lists.read(&ids, &groups)?;
    let docs = condition.documents(&|word| found[ids.binary_search(&word).ok()?].as_ref());
    // Words without a list stand in most documents.
    Ok(Some(docs.unwrap_or_else(|| (0..meta.num_docs as u32).collect())))
}
