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
//! Some files have no lists, a budget leaves out the longest ones, and a pattern may match too many words.
//! Then the segments are opened as by any search.

use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::Result;
use futures::{FutureExt, StreamExt, TryStreamExt, stream};

use crate::corpora::cache::FILES_AT_ONCE;
use crate::corpora::loaded::{AbsentWords, LoadContext, LoadedCorpus, LoadedFile};
use crate::corpora::loading::{consumer_of, segments_at_once};
use crate::corpora::memory::{positions_memory, text_memory};
use crate::corpora::sections::Sections;
use crate::corpora::skipping::{Sought, StoredFile};
use crate::corpora::{CorpusCache, Source};
use crate::errors::{datafusion_error, task_error};
use tadoc::format::StoredLists;
use tadoc::query::Query;
use tadoc::segment::{Segment, SegmentFacts, WordList};
use tadoc::text::Dictionary;

/// Most words of a segment whose lists are read.
const MAX_WORDS: usize = 4096;

/// Words of a segment by id, ascending, with their texts.
type FoundWords = Vec<(u32, String)>;

impl CorpusCache {
    /// Returns a corpus for questions about the number of words of `query` in the documents of
    /// `source`, from word lists alone. Returns `None` if the corpus is loaded, or the lists do not
    /// tell.
    pub(crate) async fn load_counted(
        &self,
        context: &LoadContext,
        source: &Source,
        query: &Query,
    ) -> Result<Option<Arc<LoadedCorpus>>> {
        let mut segments = source.corpora().iter().flat_map(|open| &open.footer.segments);
        let has_lists = segments.all(|segment| segment.lists_range().is_some()) && source.has_document_facts();
        if !query.is_of_words() || !has_lists || self.loaded(source).is_some() {
            return Ok(None);
        }
        let keys = Sections::All.keys(source);
        let query = Arc::new(query.clone().any_leaf());
        let facts = self.load_facts(context, source, None).await?;
        let mut files = Vec::with_capacity(source.corpora().len());
        for (place, open) in source.corpora().iter().enumerate() {
            let stored = StoredFile::new(context, open, segments_at_once(context, source))?;
            let words = self.find_words(context, stored, &keys, &query).await?;
            let stored = StoredFile::new(context, open, words.len())?;
            let count = |(segment_idx, words): (usize, FoundWords)| {
                let facts = facts.segment(place, segment_idx).cloned().unwrap_or_default();
                count_segment(&stored, segment_idx, words, facts).boxed()
            };
            let counts: Vec<_> = words.into_iter().enumerate().map(count).collect();
            let counted = stream::iter(counts).buffered(FILES_AT_ONCE);
            let counted: Vec<Option<Arc<Segment>>> = counted.try_collect().await?;
            let Some(segments) = counted.into_iter().collect::<Option<Vec<_>>>() else { return Ok(None) };
            segments.iter().for_each(|segment| segment.keep_no_copies());
            let held_bytes = text_memory(&segments) + positions_memory(&segments);
            let reservation = self.reserve(context, consumer_of(open), held_bytes, &keys)?;
            files.push(Arc::new(LoadedFile::new(segments, reservation, Arc::clone(&context.devices), Vec::new())));
        }
        Ok(Some(Arc::new(LoadedCorpus::new(context, source.profile(), files))))
    }

    /// Returns the words of `query` in each segment of the file `stored`, by its dictionary.
    async fn find_words(
        &self,
        context: &LoadContext,
        mut stored: StoredFile<'_>,
        keep: &[String],
        query: &Arc<Query>,
    ) -> Result<Vec<FoundWords>> {
        let key = stored.open.key();
        let opening = Arc::clone(&self.lock().slot(&key).opening);
        let _turn = opening.lock().await;
        let known = self.lock().slot(&key).file().cloned();
        let mut file = match known {
            Some(file) => file,
            None => Arc::new(self.reserve_file(context, &stored, keep)?),
        };
        let is_unknown = |words: &AbsentWords| match words {
            AbsentWords::Unread => true,
            AbsentWords::Stored { .. } => !query.is_exact(),
            AbsentWords::Decoded(_) => false,
        };
        let unknown = file.unopened.iter().filter(|(_, absent)| is_unknown(&absent.words));
        let unknown: Vec<usize> = unknown.map(|(&place, _)| place).collect();
        if !unknown.is_empty() {
            stored.read_if_small().await?;
            let sought = Arc::new(Sought { query: Some(Query::clone(query)), ..Sought::default() });
            let read = self.open_dictionaries(context, &stored, &file, unknown, keep, &sought);
            file = Arc::new(read.await?);
            file = self.lock().slot(&key).keep(file);
        }
        let query = Arc::clone(query);
        let find = move || (0..file.segments.len()).map(|place| words_in(&file, place, &query)).collect();
        let found: tadoc::Result<Vec<FoundWords>> = tokio::task::spawn_blocking(find).await.map_err(task_error)?;
        found.map_err(datafusion_error)
    }
}

/// Returns the words of `query` in the segment of `file` at `place`.
fn words_in(file: &LoadedFile, place: usize, query: &Query) -> tadoc::Result<FoundWords> {
    let from_dictionary = |dictionary: &Dictionary| {
        let ids = query.word_ids(dictionary).into_iter();
        ids.map(|id| (id, dictionary.word(id.into()).to_owned())).collect()
    };
    match file.unopened.get(&place).map(|absent| &absent.words) {
        None => Ok(from_dictionary(&file.segments[place].dictionary)),
        Some(AbsentWords::Decoded(dictionary)) => Ok(from_dictionary(dictionary)),
        // A stored dictionary is decoded unless the query is exact or has no word in it.
        Some(AbsentWords::Stored { dictionary, .. }) => {
            let spellings = query.items().iter().flatten().filter_map(|pattern| pattern.as_spellings());
            let mut found = FoundWords::new();
            for word in spellings.flatten() {
                if let Some(id) = dictionary.word_id(word)?.flatten() {
                    found.push((id, word.clone()));
                }
            }
            found.sort_unstable();
            found.dedup();
            Ok(found)
        }
        Some(AbsentWords::Unread) => Ok(FoundWords::new()),
    }
}

/// Returns the segment at `segment_idx` with the documents of `words`. Returns `None` if a list is
/// left out.
async fn count_segment(
    stored: &StoredFile<'_>,
    segment_idx: usize,
    words: FoundWords,
    facts: SegmentFacts,
) -> Result<Option<Arc<Segment>>> {
    let meta = &stored.open.footer.segments[segment_idx];
    if words.is_empty() {
        let absent = Segment::absent(meta.num_docs as usize, meta.continues);
        return absent.map(|segment| Some(Arc::new(segment))).map_err(datafusion_error);
    }
    let Some(range) = meta.lists_range().filter(|_| words.len() <= MAX_WORDS) else { return Ok(None) };
    let directory = stored.read(range).await?;
    let (path, footer) = (&stored.open.file.path, &stored.open.footer);
    let lists = StoredLists::new(path, footer, segment_idx, &directory).map_err(datafusion_error)?;
    let ids: Vec<u32> = words.iter().map(|(id, _)| *id).collect();
    let reads = lists.ranges(&ids).into_iter().map(|range| stored.read(range).boxed()).collect::<Vec<_>>();
    let groups: Vec<Bytes> = stream::iter(reads).buffered(FILES_AT_ONCE).try_collect().await?;
    let make = move || -> tadoc::Result<Option<Arc<Segment>>> {
        let Some(found) = lists.read(&ids, &groups)?.into_iter().collect::<Option<Vec<WordList>>>() else {
            return Ok(None);
        };
        let words: Vec<(&str, WordList)> = words.iter().map(|(_, word)| &word[..]).zip(found).collect();
        Segment::from_lists(&words, facts).map(|segment| Some(Arc::new(segment)))
    };
    tokio::task::spawn_blocking(make).await.map_err(task_error)?.map_err(datafusion_error)
}
