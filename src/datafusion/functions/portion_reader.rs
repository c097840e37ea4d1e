//! Reading of a corpus in portions, for functions that read all of it several times.
//!
//! If memory has room for the corpus, it is one portion. Otherwise a portion is loaded when it is
//! asked for, and the cache keeps it while memory allows.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryReservation;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::sync::mpsc::Sender;

use super::sequence_rows::task_memory_bytes;
use crate::corpora::{CorpusCache, LoadContext, LoadedCorpus, Source};
use crate::errors::{core_error, datafusion_error};
use crate::planning::Execution;
use crate::planning::portions::portions_of;
use tadoc::Corpus;
use tadoc::analytics::CorpusParts;

/// Setting that limits the memory of functions.
const MEMORY_KNOB: &str = "tadoc.max_memory_bytes";

/// A corpus in portions. Its methods block, so they are called on blocking threads.
pub(super) struct PortionReader {
    portions: Vec<Portion>,
    cache: Arc<CorpusCache>,
    context: LoadContext,
    runtime: Handle,
    reservation: MemoryReservation,
    reader: Sender<Result<RecordBatch>>,
    num_words: u64,
    memory_bytes: u64,
}

/// A portion that is loaded, or that can be loaded.
enum Portion {
    Loaded(Arc<LoadedCorpus>),
    Stored(Source),
}

/// A portion in memory.
pub(super) struct LoadedPortion(Arc<LoadedCorpus>);

impl Borrow<Corpus> for LoadedPortion {
    fn borrow(&self) -> &Corpus {
        &self.0.corpus
    }
}

/// Runs `work` on a blocking thread with the corpus of `run` in portions. `what` names the memory of the function.
pub(super) fn with_portions(
    run: Execution,
    what: &'static str,
    work: impl FnOnce(Execution, &PortionReader) -> Result<()> + Send + 'static,
) -> BoxFuture<'static, Result<()>> {
    async move {
        let portions = PortionReader::open(&run, what).await?;
        run.blocking(move |run| work(run, &portions)).await
    }
    .boxed()
}

impl PortionReader {
    /// Opens the corpus of `run`, in portions if memory has no room for all of it. `what` names the
    /// memory of the function.
    ///
    /// # Errors
    /// The errors of loading the corpus.
    async fn open(run: &Execution, what: &str) -> Result<Self> {
        let scan = &run.scan;
        let portions = match run.cache.loaded(&scan.source) {
            Some(_) => None,
            None => portions_of(&scan.source, &run.runtime, &scan.options, run.plan.uses),
        };
        let (portions, memory_bytes) = match portions {
            None => {
                let loaded = Portion::Loaded(run.load().await?);
                (vec![loaded], task_memory_bytes(run))
            }
            Some(portions) => {
                run.cache.evict_but(&[]);
                let sources = portions.into_sources().into_iter();
                // The other half is for two portions.
                (sources.map(Portion::Stored).collect(), task_memory_bytes(run) / 2)
            }
        };
        run.counter("portions").add(portions.len());
        Ok(Self {
            portions,
            cache: Arc::clone(&run.cache),
            context: run.load_context(),
            runtime: Handle::current(),
            reservation: run.reservation(what),
            reader: run.output.canceller(),
            num_words: scan.num_word_tokens(),
            memory_bytes,
        })
    }

    /// Returns the bytes of memory that the function may take beside the portions.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns the error of the function. If portions take the other half of the memory, it asks for twice
    /// as much.
    pub(super) fn error(&self, error: tadoc::Error) -> DataFusionError {
        let takes_half = matches!(self.portions.first(), Some(Portion::Stored(_)));
        datafusion_error(match error {
            tadoc::Error::Capacity { what, requested, limit, knob } if takes_half && knob.starts_with(MEMORY_KNOB) => {
                let [requested, limit] = [requested, limit].map(|bytes| bytes.saturating_mul(2));
                tadoc::Error::Capacity { what, requested, limit, knob }
            }
            other => other,
        })
    }
}

impl CorpusParts for PortionReader {
    type Part = LoadedPortion;

    fn num_parts(&self) -> usize {
        self.portions.len()
    }

    fn num_words(&self) -> u64 {
        self.num_words
    }

    fn part(&self, index: usize) -> tadoc::Result<LoadedPortion> {
        match &self.portions[index] {
            Portion::Loaded(loaded) => Ok(LoadedPortion(Arc::clone(loaded))),
            Portion::Stored(source) => {
                let loaded = self.runtime.block_on(self.cache.load(&self.context, source));
                loaded.map(LoadedPortion).map_err(core_error)
            }
        }
    }

    fn hold(&self, bytes: u64) -> tadoc::Result<()> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        self.cache.resize(&self.reservation, bytes, &[]).map_err(core_error)
    }

    fn is_cancelled(&self) -> bool {
        self.reader.is_closed()
    }
}
