//! Versions that one statement reads. The first scan that asks for a location looks it up; the
//! others reuse the result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::error::Result;
use datafusion::execution::runtime_env::RuntimeEnv;
use tokio::sync::OnceCell;

use crate::corpora::living::cache::{FoundCorpus, LivingCache};
use crate::corpora::living::location::LivingLocation;

/// Versions that one statement reads, by location; see the module's description.
#[derive(Debug, Default)]
pub(crate) struct Reading(Mutex<HashMap<String, Found>>);

/// Corpus at a location, once it has been looked up.
type Found = Arc<OnceCell<Option<FoundCorpus>>>;

impl Reading {
    /// Returns the living corpus at `location` as it was at the first lookup.
    ///
    /// # Errors
    /// The errors of [`LivingCache::find`].
    pub(crate) async fn find(
        &self,
        known: &LivingCache,
        runtime: &RuntimeEnv,
        location: &str,
    ) -> Result<Option<FoundCorpus>> {
        let Some(living) = LivingLocation::from_folder_or_prefix(runtime, location)? else {
            return Ok(None);
        };
        let cell = {
            let mut cells = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(cells.entry(living.key()).or_default())
        };
        cell.get_or_try_init(|| known.find(runtime, location)).await.cloned()
    }
}
