//! The parts of a session that a scalar function keeps, and the way in which it finds corpora with
//! them.
//!
//! Functions of rows receive values and settings, not the session. So they keep its catalogs (for
//! the names of tables), its run-time environment (stores and memory) and the cache of corpora.
//! They cannot wait asynchronously: the first batch of a query blocks its thread until the corpus
//! is loaded. Meanwhile the runtime moves the thread's other tasks to another thread.

use std::fmt;
use std::future::Future;
use std::sync::{Arc, OnceLock};

use datafusion::catalog::CatalogProviderList;
use datafusion::common::config::ConfigOptions;
use datafusion::common::exec_err;
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::execution::session_state::SessionState;
use datafusion::prelude::SessionConfig;
use tokio::runtime::{Builder, Handle, RuntimeFlavor};

use crate::corpora::CorpusCache;
use crate::corpora::living::Reading;
use crate::corpora::location::CORPUS_EXTENSION;
use crate::errors::datafusion_error;
use crate::functions::Documents;
use crate::planning::table::{LoadedTable, TadocTable};
use tadoc::Error;

/// The session is that of a worker. Its configuration holds it as an extension.
#[derive(Debug, Clone, Copy)]
pub struct AtWorker;

/// Parts of a session that scalar functions keep.
pub(crate) struct Home {
    pub(crate) runtime: Arc<RuntimeEnv>,
    pub(crate) catalogs: Arc<dyn CatalogProviderList>,
    pub(crate) cache: Arc<CorpusCache>,
    /// True if statements come from another machine, with other folders and tables.
    pub(crate) is_worker: bool,
}

impl fmt::Debug for Home {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Home")
    }
}

impl Home {
    /// Builds a session with the kept parts and `settings`.
    fn session(&self, settings: &ConfigOptions) -> SessionState {
        let config = SessionConfig::from(settings.clone());
        SessionStateBuilder::new()
            // The kept catalogs have a default catalog. A new one would replace it.
            .with_config(config.with_create_default_catalog_and_schema(false))
            .with_runtime_env(Arc::clone(&self.runtime))
            .with_catalog_list(Arc::clone(&self.catalogs))
            .build()
    }
}

/// Corpus of one call in one query.
#[derive(Debug)]
pub(super) struct BoundCorpus {
    home: Arc<Home>,
    reading: Option<Arc<Reading>>,
    location: String,
    loaded: OnceLock<LoadedTable>,
}

impl BoundCorpus {
    pub(super) fn new(home: Arc<Home>, reading: Option<Arc<Reading>>, location: &str) -> Self {
        Self { home, reading, location: location.to_owned(), loaded: OnceLock::new() }
    }

    pub(super) fn location(&self) -> &str {
        &self.location
    }

    /// Returns the corpus and the settings for it. The first caller looks it up and loads it.
    pub(super) fn loaded(&self, settings: &ConfigOptions) -> Result<&LoadedTable> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        if self.home.is_worker {
            check_is_whole(&self.location)?;
        }
        let function = Arc::new(Documents::new(Vec::new()));
        let cache = Arc::clone(&self.home.cache);
        let table = TadocTable::new(function, self.location.clone(), cache);
        let table = table.with_reading(self.reading.as_ref());
        let session = self.home.session(settings);
        let loaded = wait_for(table.load(&session))??;
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

/// Checks that `location` means the same on all machines.
fn check_is_whole(location: &str) -> Result<()> {
    let is_file = location.ends_with(CORPUS_EXTENSION);
    let is_whole = location.contains("://") || location.starts_with('/');
    if is_file && is_whole {
        Ok(())
    } else {
        exec_err!("corpus: got '{location}' on a worker, expected a .tadoc file with its whole path, or its URL")
    }
}

/// Runs `future` to its end from synchronous code.
fn wait_for<T: Send>(future: impl Future<Output = T> + Send) -> Result<T> {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            Ok(tokio::task::block_in_place(|| handle.block_on(future)))
        }
        // The waiting thread is the only one of its runtime, or there is no runtime.
        _ => std::thread::scope(|scope| {
            let run = || Ok(Builder::new_current_thread().enable_all().build()?.block_on(future));
            let outcome: std::io::Result<T> = match scope.spawn(run).join() {
                Ok(outcome) => outcome,
                Err(_) => Err(std::io::Error::other("the thread that opens a corpus broke")),
            };
            outcome.map_err(|error| datafusion_error(Error::io("opening a corpus", error)))
        }),
    }
}
