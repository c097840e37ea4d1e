//! Corpora in memory: segments of a file and of a whole corpus with the data that queries share, ids of words of
//! segments that are not read, and facts about documents.
//!
//! ```text
//! FactTable   [ A: ids 0.. ][ B: ids 40.. (not read) ][ C: ids 70.. ]      read without grammars
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use datafusion::arrow::array::{StringViewArray, make_view};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::Count;

use crate::corpora::CommonWords;
use crate::corpora::memory::{self, Uses};
use crate::errors::datafusion_error;
use crate::options::TadocOptions;
use crate::placement::{BatchRates, DeviceSession, KnownTasks};
use tadoc::analytics::{Fold, TermVectors, Vocabulary, WordCounts, document_counts_until};
use tadoc::format::{DictionaryHead, StoredDictionary};
use tadoc::query::{LeafLists, Query, Ranker};
use tadoc::segment::{Corpus, DocumentFacts, DocumentLength, Segment, SegmentFacts};
use tadoc::text::{Dictionary, TokenizerProfile};

/// Places of absent segments in their file, and what was found of each.
pub(super) type Unopened = BTreeMap<usize, AbsentSegment>;

/// What was found of an absent segment.
#[derive(Debug, Clone, Default)]
pub(super) struct AbsentSegment {
    pub(super) words: AbsentWords,
    /// Units that statements decoded without keeping them.
    pub(super) units: Arc<UnitsDecoded>,
}

/// Units of an absent segment that statements decoded without keeping them.
#[derive(Debug, Default)]
pub(super) struct UnitsDecoded {
    /// Sum of the shares of the segment, in thousandths.
    thousandths: AtomicUsize,
}

impl UnitsDecoded {
    /// Notes that `num_decoded` of `num_units` units were decoded.
    pub(super) fn note(&self, num_decoded: usize, num_units: usize) {
        let thousandths = num_decoded.saturating_mul(1000) / num_units.max(1);
        self.thousandths.fetch_add(thousandths, Ordering::Relaxed);
    }

    /// Returns true if decoding the whole segment takes not much longer than what was decoded, so that it pays
    /// to keep it.
    pub(super) fn are_many(&self) -> bool {
        self.thousandths.load(Ordering::Relaxed) >= 500
    }
}

/// Words of an absent segment.
#[derive(Debug, Clone, Default)]
pub(super) enum AbsentWords {
    /// Nothing was read.
    #[default]
    Unread,
    /// The stored dictionary, which was searched.
    Stored {
        dictionary: Arc<StoredDictionary>,
        /// The last query searched for may have a match.
        may_match: bool,
    },
    /// Some words, which were found by the head of the dictionary.
    Searched {
        ids: WordIds,
        /// The last query searched for may have a match.
        may_match: bool,
    },
    /// All words.
    Decoded(Arc<Dictionary>),
}

impl AbsentWords {
    /// Returns all words, if they were decoded.
    pub(super) fn decoded(&self) -> Option<&Arc<Dictionary>> {
        match self {
            Self::Decoded(dictionary) => Some(dictionary),
            Self::Unread | Self::Stored { .. } | Self::Searched { .. } => None,
        }
    }

    /// Returns the directory of the word lists, if it was read.
    pub(super) fn directory(&self) -> Option<Bytes> {
        match self {
            Self::Searched { ids, .. } => ids.directory.clone(),
            Self::Unread | Self::Stored { .. } | Self::Decoded(_) => None,
        }
    }

    /// Returns true if the searched dictionary has the words of the last query.
    pub(super) fn may_match(&self) -> bool {
        matches!(self, Self::Stored { may_match: true, .. } | Self::Searched { may_match: true, .. })
    }

    /// Returns the number of bytes of main memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Self::Unread => 0,
            Self::Stored { dictionary, .. } => dictionary.memory_bytes(),
            Self::Searched { ids, .. } => ids.memory_bytes(),
            Self::Decoded(dictionary) => dictionary.memory_bytes(),
        }
    }
}

/// Segments of one file and the memory they hold.
#[derive(Debug)]
pub(crate) struct LoadedFile {
    pub(crate) segments: Vec<Arc<Segment>>,
    /// Facts about the documents, if only these are loaded. There are no segments then.
    pub(super) facts: DocumentFacts,
    /// The segments that are absent.
    pub(super) unopened: Unopened,
    /// Memory of the file. It is the same for the file with more of its segments opened.
    pub(super) held: Arc<HeldMemory>,
    /// Devices that may hold copies of the segments.
    pub(super) devices: Arc<DeviceSession>,
    /// Files with which segments are shared. Keeps their reservations.
    pub(super) _shared: Vec<Arc<LoadedFile>>,
}

/// Memory that the segments of a file hold.
#[derive(Debug)]
pub(super) struct HeldMemory {
    pub(super) reservation: MemoryReservation,
    /// Bytes of the reservation for data that finds the positions of words; 0 until a query needs
    /// it.
    pub(super) places_bytes: Mutex<usize>,
}

impl HeldMemory {
    pub(super) fn new(reservation: MemoryReservation) -> Self {
        Self { reservation, places_bytes: Mutex::default() }
    }
}

impl LoadedFile {
    /// Creates a file of `segments`. Some of them may belong to the files `shared`; `reservation`
    /// holds all memory of the others.
    pub(crate) fn new(
        segments: Vec<Arc<Segment>>,
        reservation: MemoryReservation,
        devices: Arc<DeviceSession>,
        shared: Vec<Arc<LoadedFile>>,
    ) -> Self {
        let held = Arc::new(HeldMemory { reservation, places_bytes: Mutex::new(usize::MAX) });
        let facts = DocumentFacts::default();
        Self { segments, facts, unopened: BTreeMap::new(), held, devices, _shared: shared }
    }

    /// Creates a file of which only the `facts` about its documents are loaded. `reservation` holds
    /// their memory.
    pub(super) fn from_facts(
        facts: DocumentFacts,
        reservation: MemoryReservation,
        devices: Arc<DeviceSession>,
    ) -> Self {
        let held = Arc::new(HeldMemory::new(reservation));
        let segments = Vec::new();
        let unopened = BTreeMap::new();
        Self { segments, facts, unopened, held, devices, _shared: Vec::new() }
    }

    /// Returns the file as a corpus with the tokenizer `profile`.
    pub(crate) fn corpus(&self, profile: TokenizerProfile) -> Corpus {
        Corpus::new(profile, self.segments.clone())
    }
}

impl Drop for LoadedFile {
    fn drop(&mut self) {
        if Arc::strong_count(&self.held) > 1 {
            // The segments belong to the same file with more of them opened.
            return;
        }
        let is_shared = |segment: &&Arc<Segment>| {
            let mut shared = self._shared.iter().flat_map(|file| &file.segments);
            shared.any(|other| Arc::ptr_eq(segment, other))
        };
        self.devices.forget(self.segments.iter().filter(|segment| !is_shared(segment)));
    }
}

/// A corpus ready for queries, with the data that several queries share.
#[derive(Debug)]
pub(crate) struct LoadedCorpus {
    pub(crate) corpus: Corpus,
    /// Words by fold, the fold that was used last at the end.
    folds: Mutex<Vec<(Fold, Arc<FoldedWords>)>>,
    /// Lengths of documents, with their memory.
    ranker: OnceLock<(Ranker, MemoryReservation)>,
    /// Documents of the leaves of queries.
    leaf_lists: LeafLists,
    /// Memory of `leaf_lists`.
    lists_held: MemoryReservation,
    /// Times of completed tasks.
    pub(crate) tasks: KnownTasks,
    /// Rates of batches of questions.
    pub(crate) batches: BatchRates,
    pub(super) reservation: MemoryReservation,
    /// Files of the segments. Keeps their reservations as long as the segments are used here.
    pub(super) files: Vec<Arc<LoadedFile>>,
}

impl LoadedCorpus {
    /// Creates the corpus of `files`, from which nothing is derived yet.
    pub(super) fn new(context: &LoadContext, profile: TokenizerProfile, files: Vec<Arc<LoadedFile>>) -> Self {
        let segments = files.iter().flat_map(|file| file.segments.iter().cloned()).collect();
        let reservation = MemoryConsumer::new(memory::VOCABULARY).register(context.pool());
        Self {
            corpus: Corpus::new(profile, segments),
            folds: Mutex::default(),
            ranker: OnceLock::new(),
            leaf_lists: LeafLists::default(),
            lists_held: reservation.new_empty(),
            tasks: KnownTasks::default(),
            batches: BatchRates::default(),
            reservation,
            files,
        }
    }

    /// Returns true if no segment is absent.
    pub(super) fn is_whole(&self) -> bool {
        self.files.iter().all(|file| file.unopened.is_empty())
    }

    /// Returns true if the segments are those of `files`.
    pub(super) fn has_segments_of(&self, files: &[Arc<LoadedFile>]) -> bool {
        let own = self.files.iter().flat_map(|file| &file.segments);
        let others = files.iter().flat_map(|file| &file.segments);
        own.map(Arc::as_ptr).eq(others.map(Arc::as_ptr))
    }

    /// Returns the words of the corpus in byte order. They are merged over segments and folded on
    /// first use.
    pub(crate) fn vocabulary(&self, fold: &Fold) -> Result<Arc<Vocabulary>> {
        let kept = self.folded(fold);
        if let Some(vocabulary) = kept.vocabulary.get() {
            return Ok(Arc::clone(vocabulary));
        }
        let vocabulary = match fold {
            &Fold::NONE => self.merged(&kept.reservation)?,
            fold => {
                let words = self.vocabulary(&Fold::NONE)?;
                let held = kept.reservation.new_empty();
                // Each word with its place, and the folded texts.
                held.try_grow(64 * words.len())?;
                let folded = words.folded(fold).map_err(datafusion_error)?;
                kept.reservation.try_grow(folded.memory_bytes())?;
                folded
            }
        };
        Ok(Arc::clone(kept.vocabulary.get_or_init(|| Arc::new(vocabulary))))
    }

    /// Returns the words of the corpus with the numbers that they have among the `words` of a larger one, whose segments
    /// at `places` are those of this one. They are numbered on first use.
    ///
    /// # Errors
    /// An error if memory is short, and if the segments have other words.
    pub(crate) fn vocabulary_in(&self, words: &Self, places: &[usize], fold: &Fold) -> Result<Arc<Vocabulary>> {
        let whole = words.vocabulary(fold)?;
        let kept = self.folded(fold);
        let mut numbered = kept.numbered.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, vocabulary)) = &*numbered
            && std::ptr::eq(known.as_ptr(), Arc::as_ptr(&whole))
        {
            return Ok(Arc::clone(vocabulary));
        }
        let vocabulary = Arc::new(whole.for_part(&self.corpus, places).map_err(datafusion_error)?);
        kept.reservation.try_grow(vocabulary.memory_bytes())?;
        *numbered = Some((Arc::downgrade(&whole), Arc::clone(&vocabulary)));
        Ok(vocabulary)
    }

    fn merged(&self, reservation: &MemoryReservation) -> Result<Vocabulary> {
        let segments = self.corpus.segments();
        if segments.len() > 1 {
            // A row of the merge holds at most one (segment, id) pair and an offset for each word.
            let words: u64 = segments.iter().map(|s| u64::from(s.dictionary.num_words())).sum();
            reservation.try_grow(16 * words as usize)?;
        }
        Vocabulary::new(&self.corpus).map_err(datafusion_error)
    }

    /// Returns, for each word of the vocabulary of `vectors`, the number of documents that contain
    /// it. Counted on first use, because counting takes longer than a pass over all term vectors. Nothing
    /// is kept if `is_cancelled` says that the reader has left.
    pub(crate) fn doc_counts(
        &self,
        fold: &Fold,
        vectors: &TermVectors,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Arc<[u64]>> {
        let kept = self.folded(fold);
        if let Some(counts) = kept.doc_counts.get() {
            return Ok(Arc::clone(counts));
        }
        let counts = document_counts_until(vectors, is_cancelled).map_err(datafusion_error)?;
        kept.reservation.try_grow(8 * counts.len())?;
        Ok(Arc::clone(kept.doc_counts.get_or_init(|| counts.into())))
    }

    /// Returns the number of occurrences of each word. Counted on first use.
    pub(crate) fn word_counts(&self, fold: &Fold) -> Result<Arc<WordCounts>> {
        let vocabulary = self.vocabulary(fold)?;
        let kept = self.folded(fold);
        if let Some(counts) = kept.word_counts.get() {
            return Ok(Arc::clone(counts));
        }
        kept.reservation.try_grow(8 * vocabulary.len())?;
        let counts = WordCounts::with_vocabulary(vocabulary).map_err(datafusion_error)?;
        Ok(Arc::clone(kept.word_counts.get_or_init(|| Arc::new(counts))))
    }

    /// Returns the ranker of the corpus, which has `num_docs` documents and `num_words` words
    /// (`None` for the words of its segments, if all are open). It is made on first use.
    ///
    /// # Errors
    /// The errors of [`Ranker::new`], and an error if the memory pool refuses its memory.
    pub(crate) fn ranker(&self, num_docs: u64, num_words: Option<u64>) -> Result<&Ranker> {
        if let Some((ranker, _)) = self.ranker.get() {
            return Ok(ranker);
        }
        let ranker = Ranker::new(&self.corpus, Some(num_docs), num_words);
        let ranker = ranker.map_err(datafusion_error)?;
        let held = self.reservation.new_empty();
        held.try_grow(ranker.memory_bytes())?;
        Ok(&self.ranker.get_or_init(|| (ranker, held)).0)
    }

    /// Returns the answer of `ask` to the lists of documents by leaf. The lists are dropped if the
    /// memory pool has no room for them.
    pub(crate) fn with_leaf_lists<T>(&self, ask: impl FnOnce(&LeafLists) -> T) -> T {
        let answer = ask(&self.leaf_lists);
        if self.lists_held.try_resize(self.leaf_lists.memory_bytes()).is_err() {
            self.leaf_lists.clear();
            self.lists_held.free();
        }
        answer
    }

    /// Returns the vocabulary as an array whose views point into the dictionaries: 16 bytes for
    /// each word, and no word is copied.
    pub(crate) fn words(&self, fold: &Fold) -> Result<Arc<StringViewArray>> {
        let kept = self.folded(fold);
        if let Some(words) = kept.words.get() {
            return Ok(Arc::clone(words));
        }
        let vocabulary = self.vocabulary(fold)?;
        kept.reservation.try_grow(16 * vocabulary.len())?;
        let words = Arc::new(word_views(&self.corpus, &vocabulary)?);
        Ok(Arc::clone(kept.words.get_or_init(|| words)))
    }

    /// Returns the words of `fold`, which becomes the fold that was used last. Of more folds than
    /// are kept, those that were used first are given up, unless a query uses them.
    fn folded(&self, fold: &Fold) -> Arc<FoldedWords> {
        let mut folds = self.folds.lock().unwrap_or_else(PoisonError::into_inner);
        let place = folds.iter().position(|(known, _)| known == fold);
        let words = match place {
            Some(place) => folds.remove(place).1,
            None => Arc::new(FoldedWords::new(self.reservation.new_empty())),
        };
        folds.push((fold.clone(), Arc::clone(&words)));
        while folds.len() > MAX_KEPT_FOLDS {
            let unused = |(fold, words): &(Fold, Arc<FoldedWords>)| {
                *fold != Fold::NONE && Arc::strong_count(words) == 1 && !words.is_used()
            };
            match folds.iter().position(unused) {
                Some(place) => drop(folds.remove(place)),
                None => break,
            }
        }
        words
    }
}

/// Most folds whose words a corpus keeps, with that of words as they are.
const MAX_KEPT_FOLDS: usize = 5;

/// Words of a corpus after a fold, each part made on first use.
#[derive(Debug)]
struct FoldedWords {
    vocabulary: OnceLock<Arc<Vocabulary>>,
    words: OnceLock<Arc<StringViewArray>>,
    word_counts: OnceLock<Arc<WordCounts>>,
    doc_counts: OnceLock<Arc<[u64]>>,
    /// The vocabulary with the numbers of a larger one, and that one.
    numbered: Mutex<Option<(Weak<Vocabulary>, Arc<Vocabulary>)>>,
    reservation: MemoryReservation,
}

impl FoldedWords {
    fn new(reservation: MemoryReservation) -> Self {
        let (vocabulary, words, word_counts, doc_counts, numbered) = Default::default();
        Self { vocabulary, words, word_counts, doc_counts, numbered, reservation }
    }

    /// Returns true if a query holds a part.
    fn is_used(&self) -> bool {
        // The counts hold the vocabulary, too.
        let num_own = 1 + usize::from(self.word_counts.get().is_some());
        self.vocabulary.get().is_some_and(|vocabulary| Arc::strong_count(vocabulary) > num_own)
            || self.words.get().is_some_and(|words| Arc::strong_count(words) > 1)
            || self.word_counts.get().is_some_and(|counts| Arc::strong_count(counts) > 1)
            || self.doc_counts.get().is_some_and(|counts| Arc::strong_count(counts) > 1)
    }
}

fn word_views(corpus: &Corpus, vocabulary: &Vocabulary) -> Result<StringViewArray> {
    let folded = vocabulary.folded_words();
    let dictionaries: Vec<_> = match folded {
        Some(words) => vec![words],
        None => corpus.segments().iter().map(|segment| &segment.dictionary).collect(),
    };
    let buffers: Vec<Buffer> = dictionaries.iter().map(|d| Buffer::from(d.bytes().clone())).collect();
    let view = |row: usize| {
        let place = match folded {
            Some(_) => Some((0, row as u32)),
            None => vocabulary.ids(row).next(),
        };
        place.map_or(0, |(dictionary_idx, id)| {
            let dictionary = dictionaries[dictionary_idx];
            make_view(dictionary.get(id), dictionary_idx as u32, dictionary.offsets()[id as usize])
        })
    };
    let views: ScalarBuffer<u128> = (0..vocabulary.len()).map(view).collect::<Vec<_>>().into();
    Ok(StringViewArray::try_new(views, buffers, None)?)
}

/// Context of a query that loading needs.
#[derive(Debug)]
pub(crate) struct LoadContext {
    pub(crate) runtime: Arc<RuntimeEnv>,
    /// Use of the segments, for which memory is reserved. Living corpora reserve memory for every
    /// use.
    pub(crate) uses: Uses,
    pub(crate) options: TadocOptions,
    /// Devices of the session, which copy segments.
    pub(crate) devices: Arc<DeviceSession>,
    pub(crate) bytes_read: Count,
    /// Words that are read already.
    pub(crate) common: Option<Arc<CommonWords>>,
    /// Number of versions made; only for living corpora.
    pub(crate) versions_made: Option<Count>,
}

impl LoadContext {
    pub(super) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.runtime.memory_pool
    }

    /// Returns the limit of memory for the cache: the setting, and at most half of a bounded pool.
    pub(super) fn memory_limit_bytes(&self) -> u64 {
        match self.pool().memory_limit() {
            MemoryLimit::Finite(pool) => self.options.max_memory_bytes.min(pool as u64 / 2),
            _ => self.options.max_memory_bytes,
        }
    }
}

/// Most words of a segment whose ids are kept.
const MAX_IDS: usize = 256;

/// The head of a dictionary, and ids of words that were found by it.
#[derive(Debug, Clone)]
pub(super) struct WordIds {
    pub(super) head: Arc<DictionaryHead>,
    /// Bytes of the directory of the word lists, which are read with the head.
    pub(super) directory: Option<Bytes>,
    /// None for a word that the segment does not have.
    ids: Arc<BTreeMap<String, Option<u32>>>,
}

impl WordIds {
    pub(super) fn new(head: DictionaryHead, directory: Option<Bytes>) -> Self {
        Self { head: Arc::new(head), directory, ids: Arc::default() }
    }

    /// Returns the id of `word`, `None` inside if it is not one of its words, or `None` if it is not known.
    pub(super) fn id(&self, word: &str) -> Option<Option<u32>> {
        self.ids.get(word).copied()
    }

    /// Returns it with more words. Earlier ones are given up where they are too many.
    pub(super) fn with(self, found: impl Iterator<Item = (String, Option<u32>)>) -> Self {
        let Self { head, directory, ids } = self;
        let mut ids = if ids.len() < MAX_IDS { Arc::unwrap_or_clone(ids) } else { BTreeMap::new() };
        ids.extend(found);
        Self { head, directory, ids: Arc::new(ids) }
    }

    /// Returns the number of bytes of main memory in use.
    pub(super) fn memory_bytes(&self) -> usize {
        let texts: usize = self.ids.keys().map(|word| word.len() + size_of::<(String, Option<u32>)>()).sum();
        self.head.memory_bytes() + self.directory.as_ref().map_or(0, Bytes::len) + texts
    }
}

/// Returns the exact words of `query`, ascending.
pub(super) fn exact_words(query: &Query) -> Vec<String> {
    let spellings = query.items().iter().flatten().filter_map(|pattern| pattern.as_spellings());
    let mut words: Vec<String> = spellings.flatten().cloned().collect();
    words.sort_unstable();
    words.dedup();
    words
}

/// Paths and lengths by document id; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct FactTable {
    /// Files in order, each with the id of its first document. The facts of a file that is not read
    /// are missing.
    files: Vec<(u64, Option<Arc<LoadedFile>>)>,
    num_ids: u64,
}

impl FactTable {
    /// Appends a file of `num_docs` documents.
    pub(super) fn push(&mut self, num_docs: u64, file: Option<Arc<LoadedFile>>) {
        self.files.push((self.num_ids, file));
        self.num_ids += num_docs;
    }

    /// Returns the path of document `id`; empty if there is none.
    pub(crate) fn path(&self, id: u64) -> &str {
        self.file_with(id).and_then(|(facts, index)| facts.path(index)).unwrap_or_default()
    }

    /// Returns the length of document `id`.
    ///
    /// # Errors
    /// An internal error if its file was not read.
    pub(crate) fn length(&self, id: u64) -> Result<DocumentLength> {
        match self.file_with(id).and_then(|(facts, index)| facts.length(index)) {
            Some(length) => Ok(length),
            None => internal_err!("the length of document {id} was not read"),
        }
    }

    /// Returns the facts of segment `segment_idx` of the file at `place`, if it was read.
    pub(super) fn segment(&self, place: usize, segment_idx: usize) -> Option<&SegmentFacts> {
        let (_, file) = self.files.get(place)?;
        file.as_ref()?.facts.segments().get(segment_idx)
    }

    /// Returns the facts of the file with document `id`, and the id of the document in the file.
    fn file_with(&self, id: u64) -> Option<(&DocumentFacts, u64)> {
        let behind = self.files.partition_point(|&(first_id, _)| first_id <= id);
        let (first_id, file) = &self.files[behind.checked_sub(1)?];
        Some((&file.as_ref()?.facts, id - first_id))
    }
}
