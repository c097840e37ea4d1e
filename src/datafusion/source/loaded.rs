//! Segments in memory: those of one file, and those of a whole corpus with the data that queries
//! share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use datafusion::arrow::array::{StringViewArray, make_view};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{
    MemoryConsumer, MemoryLimit, MemoryPool, MemoryReservation,
};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::Count;

use crate::errors::datafusion_error;
use crate::options::TadocOptions;
use crate::placement::{DeviceSession, KnownTasks};
use crate::source::memory::Uses;
use tadoc::analytics::{Fold, TermVectors, Vocabulary, document_counts};
use tadoc::query::{Ranker, Totals};
use tadoc::segment::{Corpus, DocumentFacts, Segment};
use tadoc::text::{Dictionary, TokenizerProfile};

/// Places of absent segments in their file, each with its dictionary if that was read.
pub(super) type Unopened = BTreeMap<usize, Option<Arc<Dictionary>>>;

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
        let (segments, unopened) = (Vec::new(), BTreeMap::new());
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
    /// Vocabularies, indexed by [`Fold`].
    pub(super) vocabularies: [OnceLock<Arc<Vocabulary>>; 2],
    pub(super) words: [OnceLock<StringViewArray>; 2],
    pub(super) doc_counts: [OnceLock<Arc<[u64]>>; 2],
    /// Lengths of documents and counts of words, with their memory.
    ranker: OnceLock<(Ranker, MemoryReservation)>,
    /// Rows and times of completed tasks.
    pub(crate) tasks: KnownTasks,
    pub(super) reservation: MemoryReservation,
    /// Files of the segments. Keeps their reservations as long as the segments are used here.
    pub(super) _files: Vec<Arc<LoadedFile>>,
}

impl LoadedCorpus {
    /// Creates the corpus of `files`, from which nothing is derived yet.
    pub(super) fn new(
        context: &LoadContext,
        profile: TokenizerProfile,
        files: Vec<Arc<LoadedFile>>,
    ) -> Self {
        let segments = files.iter().flat_map(|file| file.segments.iter().cloned()).collect();
        Self {
            corpus: Corpus::new(profile, segments),
            vocabularies: Default::default(),
            words: Default::default(),
            doc_counts: Default::default(),
            ranker: OnceLock::new(),
            tasks: KnownTasks::default(),
            reservation: MemoryConsumer::new("TadocVocabulary").register(context.pool()),
            _files: files,
        }
    }

    /// Returns the words of the corpus in byte order. They are merged over segments and folded on
    /// first use.
    pub(crate) fn vocabulary(&self, fold: Fold) -> Result<Arc<Vocabulary>> {
        let slot = &self.vocabularies[fold as usize];
        if let Some(vocabulary) = slot.get() {
            return Ok(Arc::clone(vocabulary));
        }
        let vocabulary = match fold {
            Fold::None => self.merged()?,
            Fold::Case => {
                let words = self.vocabulary(Fold::None)?;
                let held = self.reservation.new_empty();
                // Each word with its place, and the texts in lower case.
                held.try_grow(64 * words.len())?;
                let folded = words.folded(fold).map_err(datafusion_error)?;
                self.reservation.try_grow(folded.memory_bytes())?;
                folded
            }
        };
        Ok(Arc::clone(slot.get_or_init(|| Arc::new(vocabulary))))
    }

    fn merged(&self) -> Result<Vocabulary> {
        let segments = self.corpus.segments();
        if segments.len() > 1 {
            // A row of the merge holds at most one (segment, id) pair and an offset for each word.
            let words: u64 = segments.iter().map(|s| u64::from(s.dictionary.num_words())).sum();
            self.reservation.try_grow(16 * words as usize)?;
        }
        Vocabulary::new(&self.corpus).map_err(datafusion_error)
    }

    /// Returns, for each word of the vocabulary of `vectors`, the number of documents that contain
    /// it. Counted on first use, because counting takes longer than a pass over all term vectors.
    pub(crate) fn doc_counts(&self, fold: Fold, vectors: &TermVectors) -> Result<Arc<[u64]>> {
        let slot = &self.doc_counts[fold as usize];
        if let Some(counts) = slot.get() {
            return Ok(Arc::clone(counts));
        }
        let counts = document_counts(vectors).map_err(datafusion_error)?;
        self.reservation.try_grow(8 * counts.len())?;
        Ok(Arc::clone(slot.get_or_init(|| counts.into())))
    }

    /// Returns the answer of `ask` to the ranker of the corpus, whose totals are `totals`.
    ///
    /// # Errors
    /// The errors of `ask` and of [`Ranker::new`].
    pub(crate) fn with_ranker<T>(
        &self,
        totals: Totals,
        ask: impl FnOnce(&Ranker) -> tadoc::Result<T>,
    ) -> tadoc::Result<T> {
        if self.ranker.get().is_none() {
            let ranker = Ranker::new(&self.corpus, Some(totals))?;
            self.ranker.get_or_init(|| (ranker, self.reservation.new_empty()));
        }
        let Some((ranker, held)) = self.ranker.get() else {
            return ask(&Ranker::new(&self.corpus, Some(totals))?);
        };
        let answer = ask(ranker);
        if held.try_resize(ranker.memory_bytes()).is_err() {
            ranker.clear();
        }
        answer
    }

    /// Returns the vocabulary as an array whose views point into the dictionaries: 16 bytes for
    /// each word, and no word is copied.
    pub(crate) fn words(&self, fold: Fold) -> Result<&StringViewArray> {
        let slot = &self.words[fold as usize];
        if let Some(words) = slot.get() {
            return Ok(words);
        }
        let vocabulary = self.vocabulary(fold)?;
        self.reservation.try_grow(16 * vocabulary.len())?;
        let words = word_views(&self.corpus, &vocabulary)?;
        Ok(slot.get_or_init(|| words))
    }
}

fn word_views(corpus: &Corpus, vocabulary: &Vocabulary) -> Result<StringViewArray> {
    let folded = vocabulary.folded_words();
    let dictionaries: Vec<_> = match folded {
        Some(words) => vec![words],
        None => corpus.segments().iter().map(|segment| &segment.dictionary).collect(),
    };
    let buffers: Vec<Buffer> =
        dictionaries.iter().map(|d| Buffer::from(d.bytes().clone())).collect();
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
