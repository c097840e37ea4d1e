//! Segments in memory: those of one file, and those of a whole corpus with what queries share.

use std::sync::{Arc, Mutex, OnceLock};

use datafusion::arrow::array::{StringViewArray, make_view};
use datafusion::arrow::buffer::{Buffer, ScalarBuffer};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryLimit, MemoryPool, MemoryReservation};
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_plan::metrics::Count;

use crate::errors::datafusion_error;
use crate::options::TadocOptions;
use crate::placement::{self, KnownTasks};
use crate::source::memory::Uses;
use tadoc::analytics::{Fold, TermVectors, Vocabulary, document_counts};
use tadoc::segment::{Corpus, Segment};
use tadoc::text::TokenizerProfile;

/// The segments of one file and the memory they hold.
#[derive(Debug)]
pub(crate) struct LoadedFile {
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(super) reservation: MemoryReservation,
    /// Of the reservation, what finding places takes; 0 before that is asked for.
    pub(super) places_bytes: Mutex<usize>,
    /// Keeps the reservations of the files that segments are shared with.
    pub(super) _shared: Vec<Arc<LoadedFile>>,
}

impl LoadedFile {
    /// `segments`, of which some are those of the files `shared`, and all the memory for the others.
    pub(crate) fn new(
        segments: Vec<Arc<Segment>>,
        reservation: MemoryReservation,
        shared: Vec<Arc<LoadedFile>>,
    ) -> Self {
        Self { segments, reservation, places_bytes: Mutex::new(usize::MAX), _shared: shared }
    }

    /// The file as a corpus, whose words were cut by `profile`.
    pub(crate) fn corpus(&self, profile: TokenizerProfile) -> Corpus {
        Corpus::new(profile, self.segments.clone())
    }
}

impl Drop for LoadedFile {
    fn drop(&mut self) {
        let is_shared = |segment: &&Arc<Segment>| {
            let mut shared = self._shared.iter().flat_map(|file| &file.segments);
            shared.any(|other| Arc::ptr_eq(segment, other))
        };
        placement::forget(self.segments.iter().filter(|segment| !is_shared(segment)));
    }
}

/// A corpus ready for queries, with what several queries share.
#[derive(Debug)]
pub(crate) struct LoadedCorpus {
    pub(crate) corpus: Corpus,
    /// By [`Fold`].
    pub(super) vocabularies: [OnceLock<Arc<Vocabulary>>; 2],
    pub(super) words: [OnceLock<StringViewArray>; 2],
    pub(super) doc_counts: [OnceLock<Arc<[u64]>>; 2],
    /// Rows and times of tasks that were done.
    pub(crate) tasks: KnownTasks,
    pub(super) reservation: MemoryReservation,
    /// Keeps the reservations of the files for as long as their segments are used here.
    pub(super) _files: Vec<Arc<LoadedFile>>,
}

impl LoadedCorpus {
    /// Words of the corpus in byte order, merged over segments and folded on first use.
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
                // Each word with its place, and texts in lower case.
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

    /// Number of documents with each word of the vocabulary, which `vectors` are of, counted on first
    /// use: it takes longer than a sweep over all term vectors.
    pub(crate) fn doc_counts(&self, fold: Fold, vectors: &TermVectors) -> Result<Arc<[u64]>> {
        let slot = &self.doc_counts[fold as usize];
        if let Some(counts) = slot.get() {
            return Ok(Arc::clone(counts));
        }
        let counts = document_counts(vectors).map_err(datafusion_error)?;
        self.reservation.try_grow(8 * counts.len())?;
        Ok(Arc::clone(slot.get_or_init(|| counts.into())))
    }

    /// The vocabulary as an array whose views point into the dictionaries: 16 bytes a word, and
    /// no word is copied.
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

/// What loading needs from a query.
#[derive(Debug)]
pub(crate) struct LoadContext {
    pub(crate) runtime: Arc<RuntimeEnv>,
    /// What memory is taken for; of living corpora for everything.
    pub(crate) uses: Uses,
    pub(crate) options: TadocOptions,
    pub(crate) bytes_read: Count,
    /// Of living corpora only.
    pub(crate) versions_made: Option<Count>,
}

impl LoadContext {
    pub(super) fn pool(&self) -> &Arc<dyn MemoryPool> {
        &self.runtime.memory_pool
    }

    /// Memory that may be kept: the setting, and at most half of a bounded pool.
    pub(super) fn memory_limit_bytes(&self) -> u64 {
        match self.pool().memory_limit() {
            MemoryLimit::Finite(pool) => self.options.max_memory_bytes.min(pool as u64 / 2),
            _ => self.options.max_memory_bytes,
        }
    }
}
