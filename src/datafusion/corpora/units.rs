//! Units: documents that may have what a statement looks for, without the rest of their segments.
//!
//! ```text
//! needed segments ─┬─ dictionary ─▶ words ─ their lists ─▶ documents ─┬─ their units ─▶ partial segments
//!                  └─ head of the grammar ────────────────────────────┘
//! ```
//!
//! In files of the layout `indexed` the lists of the words of a question say which documents may have it, and the units
//! of these are decoded alone. All documents keep their numbers, and the others have no text. So phrases, contexts and
//! texts cost what their documents cost. Exact words are found by the head of the dictionary or in the dictionary as it
//! is stored, and of a large one only the words of the units are decoded. Of a large grammar only the blocks of the
//! units and the rules are read. Its head says where they are. It is read beside the words and lists, so that a
//! statement waits no more often for a store. Partial segments serve one statement. When statements together have
//! decoded half as many units as a segment has, the next one opens it whole, and it is kept.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use datafusion::error::Result;
use futures::FutureExt;
use futures::future::try_join;

use crate::corpora::CorpusCache;
use crate::corpora::loaded::{AbsentSegment, AbsentWords, LoadContext, LoadedFile, WordIds, exact_words};
use crate::corpora::loading::consumer_of;
use crate::corpora::memory::{peak_bytes, positions_memory, text_memory};
use crate::corpora::open_file::{Sections, decoded, in_order};
use crate::corpora::skipping::{FilePart, SomeWords, Sought};
use crate::corpora::stored_file::{READ_AT_ONCE, StoredFile};
use crate::errors::datafusion_error;
use tadoc::Corpus;
use tadoc::format::{FileFooter, GrammarHead, PartialSegment, StoredDictionary, StoredUnits, read_documents_with};
use tadoc::query::{WordCondition, leaf_list};
use tadoc::segment::{ListedWord, Segment};

/// Number of documents that are read for each of the first occurrences of a word without a list, and the part of a
/// segment that they are at most.
const FIRST_DOCS_PER_HIT: u64 = 2;
const MAX_FIRST_PART: u64 = 16;

/// A needed segment as far as a statement needs it.
enum Part {
    /// Most of its documents are needed.
    Whole,
    /// None of its documents has what is sought.
    Nothing,
    /// Some of its documents, the number of units that were decoded for them, and the dictionary if it was read
    /// behind its head.
    Units(Arc<Segment>, usize, Option<Arc<StoredDictionary>>),
}

impl CorpusCache {
    /// Returns the `file`, which is `stored`, with the units of the absent segments at `places` that may have what
    /// is `sought`. Its first document has the id `first_doc_id`. Segments of which most is needed are opened.
    #[expect(clippy::too_many_arguments)]
    pub(super) async fn read_units(
        &self,
        context: &LoadContext,
        stored: &StoredFile<'_>,
        file: Arc<LoadedFile>,
        first_doc_id: u64,
        places: Vec<usize>,
        keep: &[String],
        sought: &Arc<Sought>,
    ) -> Result<FilePart> {
        if places.is_empty() {
            return Ok(FilePart { file, num_units: 0 });
        }
        let open = stored.open;
        let opening = file.held.reservation.new_empty();
        let reserve = |at_once: usize| {
            let metas = places.iter().map(|&place| &open.footer.segments[place]);
            self.resize(&opening, peak_bytes(metas, at_once, Sections::All) as usize, keep)
        };
        // More are read than decoded at a time, if there is room.
        let mut read_at_once = READ_AT_ONCE.max(stored.at_once);
        if reserve(read_at_once).is_err() {
            read_at_once = stored.at_once;
            reserve(read_at_once)?;
        }
        let read = |&place: &usize| {
            let absent = file.unopened.get(&place).cloned().unwrap_or_default();
            read_part(context, stored, place, absent, first_doc_id, sought).boxed()
        };
        let parts: Vec<Part> = in_order(places.iter().map(read), read_at_once).await?;
        opening.free();
        let is_whole = |(&place, part): (&usize, &Part)| matches!(part, Part::Whole).then_some(place);
        let whole: Vec<usize> = places.iter().zip(&parts).filter_map(is_whole).collect();
        let kept = if whole.is_empty() { file } else { self.open_places(context, stored, whole, keep).await? };
        let dictionaries = places.iter().zip(&parts).filter_map(|(&place, part)| match part {
            Part::Units(_, _, dictionary) => Some((place, dictionary.clone()?)),
            Part::Whole | Part::Nothing => None,
        });
        let dictionaries: Vec<_> = dictionaries.collect();
        let kept = if dictionaries.is_empty() {
            kept
        } else {
            self.keep_dictionaries(context, stored, dictionaries, keep).await?
        };
        let mut segments = kept.segments.clone();
        let mut own = Vec::new();
        let mut num_units = 0;
        for (place, part) in places.into_iter().zip(parts) {
            if let Part::Units(segment, num_decoded, _) = part {
                own.push(Arc::clone(&segment));
                segments[place] = segment;
                num_units += num_decoded;
            }
        }
        if own.is_empty() {
            return Ok(FilePart { file: kept, num_units: 0 });
        }
        if open.portion.is_some() {
            own.iter().for_each(|segment| segment.keep_no_copies());
        }
        let held_bytes = text_memory(&own) + positions_memory(&own);
        let reservation = self.reserve(context, consumer_of(open), held_bytes, keep)?;
        let unopened = kept.unopened.clone();
        let mut part = LoadedFile::new(segments, reservation, Arc::clone(&context.devices), vec![kept]);
        part.unopened = unopened;
        Ok(FilePart { file: Arc::new(part), num_units })
    }
}

/// Reads the part of the segment at `place`, which is `absent`, that may have what is `sought`.
async fn read_part(
    context: &LoadContext,
    stored: &StoredFile<'_>,
    place: usize,
    absent: AbsentSegment,
    first_doc_id: u64,
    sought: &Arc<Sought>,
) -> Result<Part> {
    let meta = &stored.open.footer.segments[place];
    // Both at once, because stores answer slowly.
    let found = find_documents(context, stored, place, absent.words.clone(), sought);
    let ((words, found), head) = try_join(found, stored.read_grammar_head(place)).await?;
    let docs = sought.docs_in(&stored.open.footer, place, first_doc_id, found);
    match docs {
        Some(docs) if docs.is_empty() => Ok(Part::Nothing),
        Some(docs) if meta.has_few(docs.len()) => {
            let (part, dictionary) = read_docs(context, stored, place, words, docs, head).await?;
            absent.units.note(part.num_decoded, part.num_units);
            Ok(Part::Units(Arc::new(part.segment), part.num_decoded, dictionary))
        }
        None if sought.num_hits.is_some() && meta.lists_range().is_some() => {
            read_first(context, stored, place, absent, words, sought, head).await
        }
        _ => Ok(Part::Whole),
    }
}

/// Returns the words of the segment at `place`, of which `words` are there already, if they were read, and the
/// documents that may have what is `sought` by its lists, or `None` if these leave out none.
async fn find_documents(
    context: &LoadContext,
    stored: &StoredFile<'_>,
    place: usize,
    words: AbsentWords,
    sought: &Arc<Sought>,
) -> Result<(Option<SomeWords>, Option<Vec<u32>>)> {
    let directory = words.directory();
    let by_head = match &words {
        AbsentWords::Searched { ids, .. } => condition_by_head(stored, place, ids, sought).await?,
        AbsentWords::Unread | AbsentWords::Stored { .. } | AbsentWords::Decoded(_) => None,
    };
    let (words, condition) = match by_head {
        Some(condition) => (None, condition),
        None => {
            let (words, condition) = find_words(context, stored, place, words, sought).await?;
            (Some(words), condition)
        }
    };
    let found = documents_from_lists(stored, place, directory, condition, sought.num_hits).await?;
    Ok((words, found))
}

/// Reads the first documents of the segment at `place`, which is `absent`, if they have the first occurrences of the
/// word that is `sought`. A word without a list stands in many documents.
async fn read_first(
    context: &LoadContext,
    stored: &StoredFile<'_>,
    place: usize,
    absent: AbsentSegment,
    words: Option<SomeWords>,
    sought: &Arc<Sought>,
    head: Option<GrammarHead>,
) -> Result<Part> {
    let num_hits = sought.num_hits.unwrap_or_default();
    let num_docs =
        num_hits.saturating_mul(FIRST_DOCS_PER_HIT).min(stored.open.footer.segments[place].num_docs / MAX_FIRST_PART);
    let Some(query) = sought.query.clone().filter(|_| num_docs > 0) else { return Ok(Part::Whole) };
    let docs = (0..num_docs as u32).collect();
    let (part, dictionary) = read_docs(context, stored, place, words, docs, head).await?;
    absent.units.note(part.num_decoded, part.num_units);
    let segment = Arc::new(part.segment);
    let corpus = Corpus::new(stored.open.footer.profile, vec![Arc::clone(&segment)]);
    let count = move || Ok(leaf_list(&corpus, &query, 0)?.counts.into_iter().map(u64::from).sum::<u64>());
    let suffices = decoded(count).await? >= num_hits;
    Ok(if suffices { Part::Units(segment, part.num_decoded, dictionary) } else { Part::Whole })
}

/// Documents of a segment that were read, and its dictionary, if that was read for them.
type ReadDocs = (PartialSegment, Option<Arc<StoredDictionary>>);

/// Reads the documents `docs`, which ascend, of the segment at `place` with these `words`, or with those that are read
/// with them. Without the `head` of the grammar the whole segment is read.
async fn read_docs(
    context: &LoadContext,
    stored: &StoredFile<'_>,
    place: usize,
    words: Option<SomeWords>,
    docs: Vec<u32>,
    head: Option<GrammarHead>,
) -> Result<ReadDocs> {
    let limits = context.options.open_limits();
    let units = match head {
        Some(head) => head.units(&docs, &limits).map_err(datafusion_error)?,
        None => None,
    };
    if let Some(units) = units {
        return read_blocks(context, stored, place, words, units).await;
    }
    let meta = &stored.open.footer.segments[place];
    // Dictionary and rest with one request.
    let range = if words.is_some() { meta.rest_range() } else { meta.byte_range() };
    let bytes = stored.read(range.clone()).await?;
    let path = stored.open.file.path.clone();
    let footer = Arc::clone(&stored.open.footer);
    let decode = move || -> tadoc::Result<_> {
        let meta = &footer.segments[place];
        let part =
            |part: Range<u64>| bytes.slice((part.start - range.start) as usize..(part.end - range.start) as usize);
        // A copy, which does not keep the rest.
        let dictionary = || Bytes::copy_from_slice(&part(meta.dictionary_range()));
        let (words, read) = words_or_read(&path, &footer, place, words, dictionary)?;
        let tokens = |ids: Option<&[u32]>| words.tokens(ids, &limits);
        let decoded = read_documents_with(&path, &footer, place, &part(meta.rest_range()), tokens, &docs, &limits)?;
        Ok((decoded, read))
    };
    decoded(decode).await
}

/// Reads the blocks of `units` of the segment at `place`, as [`read_docs`] does.
async fn read_blocks(
    context: &LoadContext,
    stored: &StoredFile<'_>,
    place: usize,
    words: Option<SomeWords>,
    units: StoredUnits,
) -> Result<ReadDocs> {
    let mut ranges = units.ranges().to_vec();
    let num_parts = ranges.len();
    if words.is_none() {
        ranges.push(stored.open.footer.segments[place].dictionary_range());
    }
    let parts = stored.read_each(ranges).await?;
    let path = stored.open.file.path.clone();
    let footer = Arc::clone(&stored.open.footer);
    let limits = context.options.open_limits();
    let decode = move || -> tadoc::Result<_> {
        let (parts, dictionary) = parts.split_at(num_parts);
        let dictionary = || dictionary.concat().into();
        let (words, read) = words_or_read(&path, &footer, place, words, dictionary)?;
        let tokens = |ids: Option<&[u32]>| words.tokens(ids, &limits);
        Ok((units.read(parts, tokens, &limits)?, read))
    };
    decoded(decode).await
}

/// Returns the `words` of the segment at `place`, or those of the `dictionary` that was read for them. Returns that
/// dictionary, too.
fn words_or_read(
    path: &str,
    footer: &FileFooter,
    place: usize,
    words: Option<SomeWords>,
    dictionary: impl FnOnce() -> Bytes,
) -> tadoc::Result<(SomeWords, Option<Arc<StoredDictionary>>)> {
    if let Some(words) = words {
        return Ok((words, None));
    }
    let dictionary = Arc::new(StoredDictionary::new(path, footer, place, dictionary())?);
    Ok((SomeWords::Stored(Arc::clone(&dictionary)), Some(dictionary)))
}

/// Returns the condition on words of the segment at `place` that the head of its dictionary finds, of which `ids` are
/// there already, or `None` if more than exact words are sought.
async fn condition_by_head(
    stored: &StoredFile<'_>,
    place: usize,
    ids: &WordIds,
    sought: &Sought,
) -> Result<Option<WordCondition>> {
    let Some(query) = sought.query.as_ref().filter(|query| query.is_exact()) else { return Ok(None) };
    let ids = stored.find_ids(place, Some(ids.clone()), exact_words(query)).await?;
    sought.exact_condition(|word| Ok(ids.id(word))).map_err(datafusion_error)
}

/// Returns the words of the segment at `place`, of which `words` are there already, with the condition on them.
async fn find_words(
    context: &LoadContext,
    stored: &StoredFile<'_>,
    place: usize,
    words: AbsentWords,
    sought: &Arc<Sought>,
) -> Result<(SomeWords, WordCondition)> {
    let path = stored.open.file.path.clone();
    let footer = Arc::clone(&stored.open.footer);
    let bytes = match &words {
        AbsentWords::Unread | AbsentWords::Searched { .. } => {
            Some(stored.read(stored.open.footer.segments[place].dictionary_range()).await?)
        }
        AbsentWords::Stored { .. } | AbsentWords::Decoded(_) => None,
    };
    let limits = context.options.open_limits();
    let conditions = Arc::clone(sought);
    let find = move || -> tadoc::Result<(SomeWords, WordCondition)> {
        let words = match (words, bytes) {
            (AbsentWords::Decoded(dictionary), _) => SomeWords::Decoded(dictionary),
            (AbsentWords::Stored { dictionary, .. }, _) => SomeWords::Stored(dictionary),
            (AbsentWords::Unread | AbsentWords::Searched { .. }, bytes) => {
                let bytes = bytes.unwrap_or_default();
                SomeWords::Stored(Arc::new(StoredDictionary::new(&path, &footer, place, bytes)?))
            }
        };
        conditions.word_condition(footer.profile, words, &limits)
    };
    decoded(find).await
}

/// Returns the documents of the segment at `place` that meet `condition` by the lists of its words, or `None` if it
/// leaves out none. The `directory` of the lists may be there already. With `num_hits` the first documents with as many
/// occurrences suffice.
async fn documents_from_lists(
    stored: &StoredFile<'_>,
    place: usize,
    directory: Option<Bytes>,
    condition: WordCondition,
    num_hits: Option<u64>,
) -> Result<Option<Vec<u32>>> {
    let ids = condition.words();
    let Some(range) = stored.open.footer.segments[place].lists_range().filter(|_| !ids.is_empty()) else {
        return Ok(condition.documents(&|_| None));
    };
    let (lists, groups) = stored.read_lists(place, range, directory, &ids).await?;
    let find = move || -> tadoc::Result<Option<Vec<u32>>> {
        let found: Vec<Option<ListedWord>> = lists.read(&ids, &groups)?;
        let list = |word: u32| found[ids.binary_search(&word).ok()?].as_ref();
        Ok(match num_hits {
            Some(num_hits) => condition.first_documents(&list, num_hits),
            None => condition.documents(&list),
        })
    };
    decoded(find).await
}
