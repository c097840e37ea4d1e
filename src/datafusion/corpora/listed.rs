//! Words from lists: corpora that have only the words of a query, each as often as in the documents.
//!
//! ```text
//! dictionaries ─▶ ids of the words ─▶ ranges of their lists ─▶ documents and counts ─┐
//! paths and lengths of the documents ────────────────────────────────────────────────┴▶ counted segments
//! ```
//!
//! Files of the layout `indexed` have a list of documents for each word. A query of single words about
//! documents and numbers reads the lists of its words and no grammar, so it costs what its answer costs.
//! Such a corpus answers this query alone and is not kept. The dictionaries and the facts about documents
//! are kept, as for other statements.
//!
//! Under a budget the lists of words of few documents name documents near them, which are decoded and counted.
//! The budget leaves out the longest lists, too, and a pattern may match too many words. The segments in which that
//! is so are opened, and kept as by any search. So are segments without lists: texts that repeat so much that their
//! grammar is shorter than lists. Files without any lists are searched as others are.

use std::sync::Arc;

use datafusion::error::Result;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use crate::corpora::cache::FILES_AT_ONCE;
use crate::corpora::loaded::{AbsentWords, LoadContext, LoadedCorpus, LoadedFile};
use crate::corpora::loading::{consumer_of, segments_at_once};
use crate::corpora::memory::{positions_memory, text_memory};
use crate::corpora::sections::Sections;
use crate::corpora::skipping::{SomeWords, Sought};
use crate::corpora::stored_file::StoredFile;
use crate::corpora::units::read_docs;
use crate::corpora::word_ids::exact_words;
use crate::corpora::{CorpusCache, Source};
use crate::errors::{datafusion_error, task_error};
use tadoc::Corpus;
use tadoc::format::{FileFooter, PartialSegment};
use tadoc::query::{Query, SearchOptions, count_by_document};
use tadoc::segment::{ListedWord, Segment, SegmentFacts, WordList};

/// Most words of a segment whose lists are read.
const MAX_WORDS: usize = 4096;

/// Words of a segment by id, ascending, with their texts.
type FoundWords = Vec<(u32, String)>;

/// Words of a query in the segments of a file.
struct WordsOfFile {
    /// The file with its dictionaries.
    file: Arc<LoadedFile>,
    /// Words of each segment, or `None` for one that is open and needs no lists.
    by_segment: Vec<Option<FoundWords>>,
}

impl CorpusCache {
    /// Returns a corpus for questions about the number of words of the query that is `sought` in the
    /// documents of `source`, from word lists. Returns `None` if the corpus is loaded, or has no lists at all.
    pub(crate) async fn load_counted(
        &self,
        context: &LoadContext,
        source: &Source,
        sought: &Sought,
    ) -> Result<Option<CountedCorpus>> {
        let Some(query) = sought.query.as_ref().filter(|query| query.is_of_words()) else { return Ok(None) };
        let mut segments = source.corpora().iter().flat_map(|open| &open.footer.segments);
        let has_lists = segments.any(|segment| segment.lists_range().is_some()) && source.has_document_facts();
        if !has_lists || self.loaded(source).is_some() {
            return Ok(None);
        }
        let keys = Sections::All.keys(source);
        let query = query.clone().any_leaf();
        let sought = Arc::new(Sought { query: Some(query.clone()), is_of_lists: true, ..Sought::default() });
        let query = Arc::new(query);
        let at_once = segments_at_once(context, source);
        let mut words_by_file = Vec::with_capacity(source.corpora().len());
        for open in source.corpora() {
            let mut stored = StoredFile::new(context, open, at_once)?;
            let words = self.find_words(context, &mut stored, &keys, &query, &sought).await?;
            let are_counted = counted_segments(&open.footer, &words.by_segment);
            words_by_file.push((stored, words, are_counted));
        }
        let places = words_by_file.iter().enumerate().filter(|(_, (_, _, are_counted))| are_counted.contains(&true));
        let places: Vec<usize> = places.map(|(place, _)| place).collect();
        let facts = self.load_facts(context, source, Some(&places)).await?;
        let mut files = Vec::with_capacity(source.corpora().len());
        let (mut num_listed, mut num_units) = (0, 0);
        for (place, (stored, words, are_counted)) in words_by_file.into_iter().enumerate() {
            let WordsOfFile { file, by_segment } = words;
            let counting = Counting { context, stored: &stored, file };
            let count = |((segment_idx, words), is_counted)| {
                let facts = facts.segment(place, segment_idx).filter(|_| is_counted);
                counting.count_segment(segment_idx, words, facts).boxed()
            };
            let counts: Vec<_> = by_segment.into_iter().enumerate().zip(are_counted).map(count).collect();
            let counted = stream::iter(counts).buffered(FILES_AT_ONCE);
            let counted: Vec<Option<(Arc<Segment>, usize)>> = counted.try_collect().await?;
            num_units += counted.iter().flatten().map(|(_, num_units)| num_units).sum::<usize>();
            let counted: Vec<Option<Arc<Segment>>> =
                counted.into_iter().map(|counted| counted.map(|(segment, _)| segment)).collect();
            let left_out = (0..counted.len()).filter(|&segment_idx| counted[segment_idx].is_none());
            let whole = self.open_places(context, &stored, left_out.collect(), &keys).await?;
            let own: Vec<Arc<Segment>> = counted.iter().flatten().cloned().collect();
            own.iter().for_each(|segment| segment.keep_no_copies());
            num_listed += own.iter().filter(|segment| !segment.is_absent()).count();
            let held_bytes = text_memory(&own) + positions_memory(&own);
            let reservation = self.reserve(context, consumer_of(stored.open), held_bytes, &keys)?;
            let segments = counted.into_iter().zip(&whole.segments);
            let segments = segments.map(|(counted, whole)| counted.unwrap_or_else(|| Arc::clone(whole)));
            let devices = Arc::clone(&context.devices);
            files.push(Arc::new(LoadedFile::new(segments.collect(), reservation, devices, vec![whole])));
        }
        let corpus = Arc::new(LoadedCorpus::new(context, source.profile(), files));
        Ok(Some(CountedCorpus { corpus, num_listed, num_units }))
    }

    /// Returns the words of `query` in each segment of the file `stored`. The dictionaries are kept.
    async fn find_words(
        &self,
        context: &LoadContext,
        stored: &mut StoredFile<'_>,
        keep: &[String],
        query: &Arc<Query>,
        sought: &Arc<Sought>,
    ) -> Result<WordsOfFile> {
        let key = stored.open.key();
        let opening = Arc::clone(&self.lock().slot(&key).opening);
        let _turn = opening.lock().await;
        let mut file = self.known_or_reserved(context, stored, keep)?;
        let exact = exact_words(query);
        let is_unknown = |words: &AbsentWords| match words {
            AbsentWords::Unread => true,
            AbsentWords::Stored { .. } => !query.is_exact(),
            AbsentWords::Searched { ids, .. } => !query.is_exact() || exact.iter().any(|word| ids.id(word).is_none()),
            AbsentWords::Decoded(_) => false,
        };
        let unknown = file.unopened.iter().filter(|(_, absent)| is_unknown(&absent.words));
        let unknown: Vec<usize> = unknown.map(|(&place, _)| place).collect();
        if !unknown.is_empty() {
            stored.read_if_small().await?;
            let read = self.open_dictionaries(context, stored, &file, unknown, keep, sought);
            file = Arc::new(read.await?);
            file = self.lock().slot(&key).keep(file);
        }
        let query = Arc::clone(query);
        let known = Arc::clone(&file);
        let find = move || (0..known.segments.len()).map(|place| words_in(&known, place, &query)).collect();
        let found: tadoc::Result<Vec<_>> = tokio::task::spawn_blocking(find).await.map_err(task_error)?;
        Ok(WordsOfFile { file, by_segment: found.map_err(datafusion_error)? })
    }
}

/// Returns true for each segment that has a part of a document with one of its `words`. A document that was cut may
/// have its path and most of its length in segments without them.
fn counted_segments(footer: &FileFooter, words: &[Option<FoundWords>]) -> Vec<bool> {
    let segments: Vec<_> = footer.segments.iter().zip(words).collect();
    let chains = segments.chunk_by(|_, (next, _)| next.continues);
    let has_words = |words: &Option<FoundWords>| words.as_ref().is_none_or(|words| !words.is_empty());
    let are_counted = chains.flat_map(|chain| {
        let is_counted = chain.iter().any(|(_, words)| has_words(words));
        chain.iter().map(move |_| is_counted)
    });
    are_counted.collect()
}

/// Returns the words of `query` in the segment of `file` at `place`, or `None` if it is open.
fn words_in(file: &LoadedFile, place: usize, query: &Query) -> tadoc::Result<Option<FoundWords>> {
    let Some(absent) = file.unopened.get(&place) else { return Ok(None) };
    match &absent.words {
        AbsentWords::Unread => Ok(Some(FoundWords::new())),
        AbsentWords::Decoded(dictionary) => {
            let ids = query.word_ids(dictionary).into_iter();
            Ok(Some(ids.map(|id| (id, dictionary.word(id.into()).to_owned())).collect()))
        }
        // A stored dictionary is decoded unless the query is exact or has no word in it.
        AbsentWords::Stored { dictionary, .. } => {
            let mut found = FoundWords::new();
            for word in exact_words(query) {
                found.extend(dictionary.word_id(&word)?.flatten().map(|id| (id, word)));
            }
            Ok(Some(found))
        }
        AbsentWords::Searched { ids, .. } => {
            let words = exact_words(query).into_iter();
            Ok(Some(words.filter_map(|word| Some((ids.id(&word)??, word))).collect()))
        }
    }
}

/// A corpus that answers one question about numbers of words.
pub(crate) struct CountedCorpus {
    pub(crate) corpus: Arc<LoadedCorpus>,
    /// Number of segments that are made from word lists.
    pub(crate) num_listed: usize,
    /// Number of units that were decoded for words whose lists have no counts.
    pub(crate) num_units: usize,
}

/// A file whose segments are made from word lists.
struct Counting<'a> {
    context: &'a LoadContext,
    stored: &'a StoredFile<'a>,
    /// The file with its dictionaries.
    file: Arc<LoadedFile>,
}

impl Counting<'_> {
    /// Returns the segment at `segment_idx` with the documents of `words`, whose `facts` are there unless all documents
    /// lack the words, and the number of units that it took. Returns `None` if a list is left out, or there are no
    /// `words` because the segment is open.
    async fn count_segment(
        &self,
        segment_idx: usize,
        words: Option<FoundWords>,
        facts: Option<&SegmentFacts>,
    ) -> Result<Option<(Arc<Segment>, usize)>> {
        let Some(words) = words else { return Ok(None) };
        let meta = &self.stored.open.footer.segments[segment_idx];
        let Some(facts) = facts.cloned() else {
            let absent = Segment::absent(meta.num_docs as usize, meta.continues);
            return absent.map(|segment| Some((Arc::new(segment), 0))).map_err(datafusion_error);
        };
        if words.is_empty() {
            let counted = Segment::from_lists(&[], facts);
            return counted.map(|segment| Some((Arc::new(segment), 0))).map_err(datafusion_error);
        }
        let Some(range) = meta.lists_range().filter(|_| words.len() <= MAX_WORDS) else { return Ok(None) };
        let ids: Vec<u32> = words.iter().map(|(id, _)| *id).collect();
        let (lists, groups) = self.stored.read_lists(segment_idx, range, &ids).await?;
        let Some(found) = lists.read(&ids, &groups).map_err(datafusion_error)?.into_iter().collect::<Option<Vec<_>>>()
        else {
            return Ok(None);
        };
        let (mut decoded, mut num_units) = (None, 0);
        if found.iter().any(is_near) {
            let Some(part) = self.read_near(segment_idx, &found).await? else { return Ok(None) };
            num_units = part.num_decoded;
            decoded = Some(Corpus::new(self.stored.open.footer.profile, vec![Arc::new(part.segment)]));
        }
        let make = move || -> tadoc::Result<Arc<Segment>> {
            let mut lists = Vec::with_capacity(words.len());
            for ((_, word), list) in words.iter().zip(found) {
                let list = match (list, &decoded) {
                    (ListedWord::Counted(list), _) => list,
                    (ListedWord::Near(_), Some(decoded)) => list_from_text(decoded, word)?,
                    (ListedWord::Near(_), None) => WordList::default(),
                };
                lists.push((&word[..], list));
            }
            Segment::from_lists(&lists, facts).map(Arc::new)
        };
        let made = tokio::task::spawn_blocking(make).await.map_err(task_error)?;
        made.map(|segment| Some((segment, num_units))).map_err(datafusion_error)
    }

    /// Returns the segment at `segment_idx` with the text of the documents that the lists `found` name without counts, or
    /// `None` if it is better opened whole.
    async fn read_near(&self, segment_idx: usize, found: &[ListedWord]) -> Result<Option<PartialSegment>> {
        let mut docs: Vec<u32> =
            found.iter().filter(|list| is_near(list)).flat_map(ListedWord::docs).copied().collect();
        docs.sort_unstable();
        docs.dedup();
        let absent = self.file.unopened.get(&segment_idx).cloned().unwrap_or_default();
        if absent.units.are_many() || !self.stored.open.footer.segments[segment_idx].has_few(docs.len()) {
            return Ok(None);
        }
        let words = match absent.words {
            AbsentWords::Decoded(dictionary) => Some(SomeWords::Decoded(dictionary)),
            AbsentWords::Stored { dictionary, .. } => Some(SomeWords::Stored(dictionary)),
            AbsentWords::Searched { .. } | AbsentWords::Unread => None,
        };
        let (part, _) = read_docs(self.context, self.stored, segment_idx, words, docs).await?;
        absent.units.note(part.num_decoded, part.num_units);
        Ok(Some(part))
    }
}

fn is_near(list: &ListedWord) -> bool {
    matches!(list, ListedWord::Near(_))
}

/// Returns the documents of `word` in a corpus of one segment, by their text.
fn list_from_text(corpus: &Corpus, word: &str) -> tadoc::Result<WordList> {
    let found = count_by_document(corpus, &Query::for_word(word), &SearchOptions::default())?;
    let (docs, counts) = found.iter().map(|row| (row.doc_id as u32, row.count as u32)).unzip();
    Ok(WordList { docs, counts })
}
