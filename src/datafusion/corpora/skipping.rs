//! Skipping: files of which only the segments with sought words are opened.
//!
//! ```text
//! stored dictionaries ─▶ those that may have the words ─▶ needed segments
//! ```
//!
//! Exact words are found by the heads of dictionaries and groups of their words. Everything else needs all words.
//!
//! A statement that looks for words needs the segments that have them, and one that looks for documents the segments
//! that hold these. All others are [absent](Segment::absent). The cache keeps the file with the dictionaries that were
//! read, so the next statement reads only the segments that it needs and no statement before. A file whose last segment
//! was opened in this way is a whole file like others. A statement that needs whole files loads the other files anew.
//!
//! The corpus of the opened segments is kept with its lists of documents and lengths, until a statement opens another
//! segment. They hold for each query that needs no more segments than these.
//!
//! Of a file with word lists, [`units`](super::units) of the needed segments suffice.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use datafusion::error::Result;
use futures::FutureExt;

use crate::corpora::cache::FILES_AT_ONCE;
use crate::corpora::living::explain_missing;
use crate::corpora::loaded::{
    AbsentSegment, AbsentWords, HeldMemory, LoadContext, LoadedCorpus, LoadedFile, Unopened, WordIds, exact_words,
};
use crate::corpora::loading::{consumer_of, files_at_once, segments_at_once, too_little};
use crate::corpora::memory::{estimate_bytes, peak_bytes, text_memory};
use crate::corpora::open_file::{OpenFile, Sections, decoded, in_order};
use crate::corpora::stored_file::{SMALL_FILE_BYTES, StoredFile, len};
use crate::corpora::{CorpusCache, Source};
use crate::errors::{datafusion_error, task_error};
use tadoc::format::{FileFooter, OpenLimits, StoredDictionary, read_segment, read_segment_with};
use tadoc::query::{
    Query, SegmentWords, TextPattern, WordCondition, may_match, segments_for_query, segments_for_texts,
};
use tadoc::segment::{DocumentFacts, Segment};
use tadoc::text::{Dictionary, TokenizerProfile};

/// Number of heads of dictionaries that are read in parallel.
const HEADS_AT_ONCE: usize = 64;
/// Memory for the tables of codes by which words are found, until they are.
const TABLES_BYTES: u64 = 2 << 20;

/// Words of a segment: as they are stored, or all of them.
pub(super) enum SomeWords {
    Stored(Arc<StoredDictionary>),
    Decoded(Arc<Dictionary>),
}

impl SomeWords {
    /// Returns the dictionary of the tokens `ids`, which ascend, or of all.
    pub(super) fn tokens(&self, ids: Option<&[u32]>, limits: &OpenLimits) -> tadoc::Result<Dictionary> {
        match (self, ids) {
            (Self::Stored(dictionary), Some(ids)) => dictionary.subset(ids, limits),
            (Self::Stored(dictionary), None) => dictionary.decode(limits),
            (Self::Decoded(dictionary), Some(ids)) => dictionary.subset(ids),
            (Self::Decoded(dictionary), None) => Ok(Dictionary::clone(dictionary)),
        }
    }
}

/// Words, texts or documents that a statement looks for.
#[derive(Debug, Default)]
pub(crate) struct Sought {
    /// A query whose occurrences are looked for.
    pub(crate) query: Option<Query>,
    /// Patterns of texts. The text of a document matches, for each entry, one of its patterns.
    pub(crate) demands: Vec<Vec<TextPattern>>,
    /// Ids in the source, ascending, of the only documents that are looked at.
    pub(crate) doc_ids: Option<Vec<u64>>,
    /// True if the words of the query are counted by their lists, so that each segment is looked at alone.
    pub(crate) is_of_lists: bool,
    /// Number of occurrences that suffice, the first in order of documents, if the query is one word.
    pub(crate) num_hits: Option<u64>,
}

impl Sought {
    /// Returns the documents of the segment at `place` of a file that may have what is sought, which count from its
    /// first one, or `None` if all may. The first document of the file has the id `first_doc_id`. `found` are the
    /// documents whose words allow it.
    pub(super) fn docs_in(
        &self,
        footer: &FileFooter,
        place: usize,
        first_doc_id: u64,
        found: Option<Vec<u32>>,
    ) -> Option<Vec<u32>> {
        let num_docs = footer.segments[place].num_docs as u32;
        let found = found.map(|mut docs| {
            // The words of a document that was cut are in several segments.
            let is_cut = |place: usize| footer.segments.get(place).is_some_and(|segment| segment.continues);
            docs.extend(is_cut(place).then_some(0));
            docs.extend(num_docs.checked_sub(1).filter(|_| is_cut(place + 1)));
            docs.sort_unstable();
            docs.dedup();
            docs
        });
        let Some(doc_ids) = &self.doc_ids else { return found };
        let docs = footer.docs_of_segments()[place].clone();
        let [begin, end] = [docs.start, docs.end].map(|id| doc_ids.partition_point(|&at| at < first_doc_id + id));
        let asked = doc_ids[begin..end].iter().map(|id| (id - first_doc_id - docs.start) as u32);
        let is_found = |doc: &u32| found.as_ref().is_none_or(|found| found.binary_search(doc).is_ok());
        Some(asked.filter(is_found).collect())
    }

    /// Returns the condition on the words of a document that has what is sought, for a segment with these `words`.
    /// Words are decoded if it takes more than exact ones.
    pub(super) fn word_condition(
        &self,
        profile: TokenizerProfile,
        words: SomeWords,
        limits: &OpenLimits,
    ) -> tadoc::Result<(SomeWords, WordCondition)> {
        let dictionary = match words {
            SomeWords::Stored(dictionary) => match self.exact_condition(|word| dictionary.word_id(word))? {
                Some(condition) => return Ok((SomeWords::Stored(dictionary), condition)),
                None => Arc::new(dictionary.decode(limits)?),
            },
            SomeWords::Decoded(dictionary) => dictionary,
        };
        let condition = self.decoded_condition(profile, &dictionary);
        Ok((SomeWords::Decoded(dictionary), condition))
    }

    /// Returns the condition if only documents or exact words are sought, whose ids `word_id` finds.
    pub(super) fn exact_condition(
        &self,
        word_id: impl Fn(&str) -> tadoc::Result<Option<Option<u32>>>,
    ) -> tadoc::Result<Option<WordCondition>> {
        if !self.demands.is_empty() {
            return Ok(None);
        }
        let Some(query) = &self.query else { return Ok(Some(WordCondition::Any)) };
        let mut is_found = true;
        let condition = WordCondition::for_exact_query(query, |word| {
            let found = word_id(word)?;
            is_found &= found.is_some();
            Ok(found.flatten())
        })?;
        Ok(condition.filter(|_| is_found))
    }

    fn decoded_condition(&self, profile: TokenizerProfile, dictionary: &Dictionary) -> WordCondition {
        let for_query = self.query.iter().map(|query| WordCondition::for_query(query, dictionary));
        let for_texts = WordCondition::for_texts(&self.demands, profile, dictionary);
        WordCondition::all(for_query.chain([for_texts]).collect())
    }

    /// Returns, for each segment of a file, true if it has one of the documents, if there is a choice.
    /// The first document of the file has the id `first_doc_id`.
    fn segments_of_docs(&self, footer: &FileFooter, first_doc_id: u64) -> Option<Vec<bool>> {
        let doc_ids = self.doc_ids.as_ref()?;
        let begin = doc_ids.partition_point(|&id| id < first_doc_id);
        let here: Vec<u64> = doc_ids[begin..].iter().map(|id| id - first_doc_id).collect();
        Some(footer.segments_of(&here))
    }

    /// Returns the places of the absent segments of `file` whose dictionaries tell if they are needed
    /// and were not decoded yet.
    fn undecoded(&self, footer: &FileFooter, file: &LoadedFile, first_doc_id: u64) -> Vec<usize> {
        if self.query.is_none() && self.demands.is_empty() {
            return Vec::new();
        }
        let for_docs = self.segments_of_docs(footer, first_doc_id);
        let has_doc = |place: usize| for_docs.as_ref().is_none_or(|for_docs| for_docs[place]);
        let undecoded = file.unopened.iter().filter(|(_, absent)| absent.words.decoded().is_none());
        undecoded.map(|(&place, _)| place).filter(|&place| has_doc(place)).collect()
    }

    /// Returns the query if it decides alone on the segment at `place`, which has no part of a document
    /// that was cut.
    fn query_of(&self, footer: &FileFooter, place: usize) -> Option<&Query> {
        let mut here_and_next = footer.segments[place..].iter().take(2);
        let query = self.query.as_ref().filter(|_| self.demands.is_empty());
        query.filter(|_| self.is_of_lists || !here_and_next.any(|segment| segment.continues))
    }

    /// Returns the exact words that decide alone on the segment at `place`, whose dictionary has a head.
    fn exact_words_in(&self, footer: &FileFooter, place: usize) -> Option<Vec<String>> {
        footer.segments[place].head_range()?;
        self.query_of(footer, place).filter(|query| query.is_exact()).map(exact_words)
    }

    /// Returns true if the segment at `place` may have the query by its words, whose ids `word_id` finds, and
    /// `None` if the dictionary has to be decoded to tell.
    fn may_be_in(
        &self,
        footer: &FileFooter,
        place: usize,
        word_id: impl Fn(&str) -> tadoc::Result<Option<Option<u32>>>,
    ) -> tadoc::Result<Option<bool>> {
        let Some(query) = self.query_of(footer, place) else { return Ok(None) };
        let mut is_known = query.is_exact();
        let may_match = may_match(query, |word| {
            let found = word_id(word)?;
            is_known &= found.is_some();
            Ok(found.map(|id| id.is_some()))
        })?;
        Ok((is_known || !may_match).then_some(may_match))
    }

    /// Returns the places of the absent segments of `file` that are needed. Its first document has the
    /// id `first_doc_id`.
    fn missing(&self, footer: &FileFooter, file: &LoadedFile, first_doc_id: u64) -> Vec<usize> {
        let segments = footer.segments.iter().zip(&file.segments).enumerate();
        let words = segments.map(|(place, (meta, segment))| SegmentWords {
            dictionary: match file.unopened.get(&place).and_then(|absent| absent.words.decoded()) {
                Some(dictionary) => dictionary,
                None => &segment.dictionary,
            },
            num_docs: meta.num_docs,
            continues: meta.continues,
        });
        let words: Vec<_> = words.collect();
        let for_query = self.query.as_ref().map(|query| segments_for_query(query, &words));
        let for_texts = (!self.demands.is_empty()).then(|| segments_for_texts(&self.demands, footer.profile, &words));
        let for_docs = self.segments_of_docs(footer, first_doc_id);
        let for_query = for_query.map(|mut needed| {
            let found = file.unopened.iter().filter(|(_, absent)| absent.words.may_match());
            found.for_each(|(&place, _)| needed[place] = true);
            needed
        });
        let needs: Vec<Vec<bool>> = [for_query, for_texts, for_docs].into_iter().flatten().collect();
        let absent = file.unopened.keys().copied();
        absent.filter(|&place| needs.iter().all(|needed| needed[place])).collect()
    }
}

/// A file as far as a statement needs it.
pub(super) struct FilePart {
    pub(super) file: Arc<LoadedFile>,
    /// Number of units that were decoded for this statement alone.
    pub(super) num_units: usize,
}

impl CorpusCache {
    /// Variant of [`CorpusCache::load`] for statements that only look for `sought`. Segments in
    /// which it cannot be are absent, if the corpus is not loaded yet, and documents in which it cannot be
    /// may lack their text. Also returns the number of units that were decoded for this statement alone.
    pub(crate) async fn load_sought(
        &self,
        context: &LoadContext,
        source: &Source,
        sought: Sought,
    ) -> Result<(Arc<LoadedCorpus>, usize)> {
        let is_of_files = source.living().is_none_or(|view| view.has_texts_of_files());
        if !is_of_files || self.loaded(source).is_some() {
            return Ok((self.load(context, source).await?, 0));
        }
        let keys = Sections::All.keys(source);
        let sought = Arc::new(sought);
        let at_once = segments_at_once(context, source);
        // Boxed: the compiler cannot prove that futures of borrowed files are `Send`.
        let mut first_doc_id = 0;
        let loads = source.corpora().iter().map(|open| {
            let first = first_doc_id;
            first_doc_id += open.footer.num_docs();
            let stored = StoredFile::new(context, open, at_once)?;
            Ok(self.load_part(context, source, stored, first, &keys, &sought).boxed())
        });
        let loads = loads.collect::<Result<Vec<_>>>()?;
        let explain = |error| too_little(context, source, error);
        let files_at_once = files_at_once(source.corpora().iter(), at_once);
        let parts: Vec<FilePart> = in_order(loads, files_at_once).await.map_err(explain)?;
        let num_units = parts.iter().map(|part| part.num_units).sum();
        let files: Vec<Arc<LoadedFile>> = parts.into_iter().map(|part| part.file).collect();
        if files.iter().all(|file| file.unopened.is_empty()) {
            return Ok((self.load(context, source).await?, 0));
        }
        self.hold(context, &files, &keys).map_err(explain)?;
        if num_units > 0 {
            return Ok((Arc::new(LoadedCorpus::new(context, source.profile(), files)), num_units));
        }
        let mut state = self.lock();
        let now = state.tick();
        if let Some((last_used, corpus)) = state.corpora.get_mut(&keys)
            && (corpus.is_whole() || corpus.has_segments_of(&files))
        {
            *last_used = now;
            return Ok((Arc::clone(corpus), 0));
        }
        let corpus = Arc::new(LoadedCorpus::new(context, source.profile(), files));
        state.corpora.insert(keys.clone(), (now, Arc::clone(&corpus)));
        state.evict(context.memory_limit_bytes(), &keys);
        Ok((corpus, 0))
    }

    /// Returns the file `stored` of `source` with at least what is needed. If several statements open
    /// segments of it at the same time, they do so one after the other.
    async fn load_part(
        &self,
        context: &LoadContext,
        source: &Source,
        mut stored: StoredFile<'_>,
        first_doc_id: u64,
        keep: &[String],
        sought: &Arc<Sought>,
    ) -> Result<FilePart> {
        let explain = |error| match source.living() {
            Some(view) => explain_missing(&view.location, error),
            None => error,
        };
        let opened = self.open_needed(context, &mut stored, first_doc_id, keep, sought).await;
        let (file, of_units) = opened.map_err(explain)?;
        let part = self.read_units(context, &stored, file, first_doc_id, of_units, keep, sought).await;
        part.map_err(explain)
    }

    /// Opens the needed segments of the file `stored`, and keeps it. Also returns the places of those
    /// that are needed and of which units suffice.
    async fn open_needed(
        &self,
        context: &LoadContext,
        stored: &mut StoredFile<'_>,
        first_doc_id: u64,
        keep: &[String],
        sought: &Arc<Sought>,
    ) -> Result<(Arc<LoadedFile>, Vec<usize>)> {
        let open = stored.open;
        let key = open.key();
        let opening = Arc::clone(&self.lock().slot(&key).opening);
        let _turn = opening.lock().await;
        let mut file = self.known_or_reserved(context, stored, keep)?;
        if file.unopened.is_empty() {
            return Ok((file, Vec::new()));
        }
        let undecoded = sought.undecoded(&open.footer, &file, first_doc_id);
        if !undecoded.is_empty() {
            stored.read_if_small().await?;
            let read = self.open_dictionaries(context, stored, &file, undecoded, keep, sought);
            file = Arc::new(read.await?);
        }
        let searched = Arc::clone(&file);
        let footer = Arc::clone(&open.footer);
        let wanted = Arc::clone(sought);
        let search = move || wanted.missing(&footer, &searched, first_doc_id);
        let missing = tokio::task::spawn_blocking(search).await.map_err(task_error)?;
        let (of_units, whole) = missing.into_iter().partition::<Vec<_>, _>(|&place| {
            let has_units = open.footer.segments[place].lists_range().is_some();
            has_units && !file.unopened[&place].units.are_many()
        });
        if !whole.is_empty() {
            file = Arc::new(self.open_more(context, stored, &file, whole, keep).await?);
        }
        Ok((self.lock().slot(&key).keep(file), of_units))
    }

    /// Returns the file `stored` with at least the segments at `places`, and keeps it.
    pub(super) async fn open_places(
        &self,
        context: &LoadContext,
        stored: &StoredFile<'_>,
        places: Vec<usize>,
        keep: &[String],
    ) -> Result<Arc<LoadedFile>> {
        let key = stored.open.key();
        let opening = Arc::clone(&self.lock().slot(&key).opening);
        let _turn = opening.lock().await;
        let mut file = self.known_or_reserved(context, stored, keep)?;
        let missing: Vec<usize> = places.into_iter().filter(|place| file.unopened.contains_key(place)).collect();
        if !missing.is_empty() {
            file = Arc::new(self.open_more(context, stored, &file, missing, keep).await?);
            file = self.lock().slot(&key).keep(file);
        }
        self.hold(context, std::slice::from_ref(&file), keep)?;
        Ok(file)
    }

    /// Keeps the `dictionaries` of absent segments of the file `stored`, each with its place, where only heads were
    /// there. Returns the file.
    pub(super) async fn keep_dictionaries(
        &self,
        context: &LoadContext,
        stored: &StoredFile<'_>,
        dictionaries: Vec<(usize, Arc<StoredDictionary>)>,
        keep: &[String],
    ) -> Result<Arc<LoadedFile>> {
        let key = stored.open.key();
        let opening = Arc::clone(&self.lock().slot(&key).opening);
        let _turn = opening.lock().await;
        let file = self.known_or_reserved(context, stored, keep)?;
        let mut unopened = file.unopened.clone();
        for (place, dictionary) in dictionaries {
            let absent = unopened.get_mut(&place);
            if let Some(absent) = absent.filter(|absent| matches!(absent.words, AbsentWords::Searched { .. })) {
                absent.words = AbsentWords::Stored { dictionary, may_match: true };
            }
        }
        let file = self.with_segments(context, &file, file.segments.clone(), unopened, keep)?;
        Ok(self.lock().slot(&key).keep(Arc::new(file)))
    }

    /// Returns the file `stored` as it is known, or with nothing read. The caller has the turn to open it.
    pub(super) fn known_or_reserved(
        &self,
        context: &LoadContext,
        stored: &StoredFile<'_>,
        keep: &[String],
    ) -> Result<Arc<LoadedFile>> {
        let known = self.lock().slot(&stored.open.key()).file().cloned();
        match known {
            Some(file) => Ok(file),
            None => self.reserve_file(context, stored, keep).map(Arc::new),
        }
    }

    /// Returns the file `open` with a reservation. All of its segments are absent, and nothing is read.
    fn reserve_file(&self, context: &LoadContext, stored: &StoredFile<'_>, keep: &[String]) -> Result<LoadedFile> {
        let open = stored.open;
        let segments = &open.footer.segments;
        let parallel = stored.at_once.min(segments.len()).max(1);
        // A file that is too large to be opened is refused at once.
        estimate_bytes(&open.footer, parallel, Sections::All, &context.options)?;
        let absent = segments.iter().map(|meta| {
            let segment = Segment::absent(meta.num_docs as usize, meta.continues)?;
            segment.keep_no_copies();
            Ok(Arc::new(segment))
        });
        let absent = absent.collect::<tadoc::Result<Vec<_>>>().map_err(datafusion_error)?;
        let held_bytes = memory(&absent, &BTreeMap::new());
        let reservation = self.reserve(context, consumer_of(open), held_bytes, keep)?;
        Ok(LoadedFile {
            unopened: (0..absent.len()).map(|place| (place, AbsentSegment::default())).collect(),
            segments: absent,
            facts: DocumentFacts::default(),
            held: Arc::new(HeldMemory::new(reservation)),
            devices: Arc::clone(&context.devices),
            _shared: Vec::new(),
        })
    }

    /// Decodes the dictionaries of the absent segments of `file` at `places` that may have what is
    /// `sought`. The others are kept as they are stored.
    pub(super) async fn open_dictionaries(
        &self,
        context: &LoadContext,
        stored: &StoredFile<'_>,
        file: &LoadedFile,
        places: Vec<usize>,
        keep: &[String],
        sought: &Arc<Sought>,
    ) -> Result<LoadedFile> {
        let open = stored.open;
        let parallel = stored.at_once.min(places.len()).max(1);
        let opening = file.held.reservation.new_empty();
        self.resize(&opening, opening_bytes(open, &places, parallel, sought) as usize, keep)?;
        let read = |&place: &usize| read_words(stored, place, &file.unopened[&place].words, sought).boxed();
        let has_heads = places.iter().all(|&place| sought.exact_words_in(&open.footer, place).is_some());
        let at_once = if has_heads { HEADS_AT_ONCE } else { FILES_AT_ONCE };
        let reads: Vec<StoredWords> = in_order(places.iter().map(read), at_once).await?;
        let decode = |(&place, words)| open_dictionary(context, open, place, words, sought).boxed();
        let dictionaries: Vec<(usize, AbsentWords)> = in_order(places.iter().zip(reads).map(decode), parallel).await?;
        let mut unopened = file.unopened.clone();
        for (place, words) in dictionaries {
            unopened.entry(place).or_default().words = words;
        }
        opening.free();
        self.with_segments(context, file, file.segments.clone(), unopened, keep)
    }

    /// Returns `file` with other segments and dictionaries, whose memory is reserved.
    fn with_segments(
        &self,
        context: &LoadContext,
        file: &LoadedFile,
        segments: Vec<Arc<Segment>>,
        unopened: Unopened,
        keep: &[String],
    ) -> Result<LoadedFile> {
        let HeldMemory { reservation, places_bytes } = file.held.as_ref();
        let places_bytes = places_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let needed = || memory(&segments, &unopened) + *places_bytes;
        if self.resize(reservation, needed(), keep).is_err() {
            segments.iter().for_each(|segment| segment.keep_no_copies());
            self.resize(reservation, needed(), keep)?;
        }
        let held = Arc::clone(&file.held);
        let devices = Arc::clone(&context.devices);
        drop(places_bytes);
        let facts = DocumentFacts::default();
        Ok(LoadedFile { segments, facts, unopened, held, devices, _shared: Vec::new() })
    }

    /// Opens the segments of `file` at the places `missing`.
    pub(super) async fn open_more(
        &self,
        context: &LoadContext,
        stored: &StoredFile<'_>,
        file: &LoadedFile,
        missing: Vec<usize>,
        keep: &[String],
    ) -> Result<LoadedFile> {
        let open = stored.open;
        let parallel = stored.at_once.min(missing.len());
        let metas = missing.iter().map(|&place| &open.footer.segments[place]);
        let peak = peak_bytes(metas, parallel, Sections::All);
        let opening = file.held.reservation.new_empty();
        self.resize(&opening, peak as usize, keep)?;
        let mut segments = file.segments.clone();
        let mut unopened = file.unopened.clone();
        let load = |&place: &usize| {
            let words = file.unopened.get(&place).map(|absent| absent.words.clone()).unwrap_or_default();
            open_segment(context, stored, place, words).boxed()
        };
        let opened: Vec<(usize, Segment)> = in_order(missing.iter().map(load), parallel).await?;
        for (place, segment) in opened {
            unopened.remove(&place);
            segments[place] = Arc::new(segment);
        }
        if open.portion.is_some() {
            segments.iter().for_each(|segment| segment.keep_no_copies());
        }
        opening.free();
        self.with_segments(context, file, segments, unopened, keep)
    }
}

/// Returns the memory for finding what is `sought` in the dictionaries of the segments at `places`, of which `parallel`
/// are decoded at once.
fn opening_bytes(open: &OpenFile, places: &[usize], parallel: usize, sought: &Sought) -> u64 {
    let by_head = |place: &usize| sought.exact_words_in(&open.footer, *place).is_some();
    let (by_head, whole) = places.iter().copied().partition::<Vec<_>, _>(by_head);
    let metas = |places: &[usize]| places.iter().map(|&place| &open.footer.segments[place]).collect::<Vec<_>>();
    let by_head = metas(&by_head);
    let whole = metas(&whole);
    let heads = by_head.iter().filter_map(|meta| meta.head_range()).map(|range| 2 * len(&range)).sum::<u64>();
    let directories = by_head.iter().filter_map(|meta| meta.lists_range()).map(|range| len(&range)).sum::<u64>();
    let tables = by_head.len().min(HEADS_AT_ONCE) as u64 * TABLES_BYTES;
    let stored_bytes: u64 = whole.iter().map(|meta| len(&meta.dictionary_range())).sum();
    let decoded = peak_bytes(whole.into_iter(), parallel, Sections::Words);
    heads + directories + tables + decoded + stored_bytes.max(SMALL_FILE_BYTES) + 4 * open.footer.num_docs()
}

/// Returns the bytes of the segments and of the dictionaries of those that are absent.
fn memory(segments: &[Arc<Segment>], unopened: &Unopened) -> usize {
    text_memory(segments) + unopened.values().map(|absent| absent.words.memory_bytes()).sum::<usize>()
}

/// A dictionary that was just read, one that was kept, or the words of one that were found by its head.
enum StoredWords {
    Read(Bytes),
    Kept(Arc<StoredDictionary>),
    Found(WordIds),
}

/// Reads the dictionary of the segment at `place`, of which `words` are there already, or its head if this finds what
/// is `sought`.
async fn read_words(
    stored: &StoredFile<'_>,
    place: usize,
    words: &AbsentWords,
    sought: &Sought,
) -> Result<StoredWords> {
    let known = match words {
        AbsentWords::Stored { dictionary, .. } => return Ok(StoredWords::Kept(Arc::clone(dictionary))),
        AbsentWords::Searched { ids, .. } => Some(ids.clone()),
        AbsentWords::Unread | AbsentWords::Decoded(_) => None,
    };
    match sought.exact_words_in(&stored.open.footer, place) {
        Some(words) => stored.find_ids(place, known, words).await.map(StoredWords::Found),
        None => {
            let range = stored.open.footer.segments[place].dictionary_range();
            stored.read(range).await.map(StoredWords::Read)
        }
    }
}

/// Keeps a dictionary as it is stored if that is enough to tell if the segment may have what is `sought`,
/// or decodes it.
async fn open_dictionary(
    context: &LoadContext,
    open: &OpenFile,
    place: usize,
    words: StoredWords,
    sought: &Arc<Sought>,
) -> Result<(usize, AbsentWords)> {
    let path = open.file.path.clone();
    let footer = Arc::clone(&open.footer);
    let limits = context.options.open_limits();
    let sought = Arc::clone(sought);
    let open = move || -> tadoc::Result<(usize, AbsentWords)> {
        let dictionary = match words {
            StoredWords::Kept(stored) => stored,
            StoredWords::Read(bytes) => Arc::new(StoredDictionary::new(&path, &footer, place, bytes)?),
            StoredWords::Found(ids) => {
                let may_match = sought.may_be_in(&footer, place, |word| Ok(ids.id(word)))?.unwrap_or(true);
                return Ok((place, AbsentWords::Searched { ids, may_match }));
            }
        };
        let words = match sought.may_be_in(&footer, place, |word| dictionary.word_id(word))? {
            Some(may_match) => AbsentWords::Stored { dictionary, may_match },
            None => AbsentWords::Decoded(Arc::new(dictionary.decode(&limits)?)),
        };
        Ok((place, words))
    };
    decoded(open).await
}

/// Opens the absent segment at `place`, of which `words` are there already. Returns the place, too.
async fn open_segment(
    context: &LoadContext,
    stored: &StoredFile<'_>,
    place: usize,
    words: AbsentWords,
) -> Result<(usize, Segment)> {
    let open = stored.open;
    let meta = &stored.open.footer.segments[place];
    let is_unread = matches!(words, AbsentWords::Unread | AbsentWords::Searched { .. });
    let range = if is_unread { meta.byte_range() } else { meta.rest_range() };
    let bytes = stored.read(range).await?;
    let path = open.file.path.clone();
    let footer = Arc::clone(&open.footer);
    let limits = context.options.open_limits();
    let read = move || -> tadoc::Result<Segment> {
        let dictionary = match words {
            AbsentWords::Unread | AbsentWords::Searched { .. } => {
                return read_segment(&path, &footer, place, &bytes, &limits);
            }
            AbsentWords::Decoded(dictionary) => Dictionary::clone(&dictionary),
            AbsentWords::Stored { dictionary, .. } => dictionary.decode(&limits)?,
        };
        read_segment_with(&path, &footer, place, &bytes, dictionary, &limits)
    };
    Ok((place, decoded(read).await?))
}
