//! Sessions of engines that plan and run statements of other machines.
//!
//! ```text
//! planning    logical plan ─▶ tables ─▶ runs of segments, one for each partition ─▶ physical plan
//! executing   part of a physical plan ─▶ rows
//! ```
//!
//! An engine makes a session for each statement or task. [`EngineHome`] is what they share: corpora that
//! are open, devices, stores and memory. Engines with workers of this crate need none
//! ([`worker_of`](crate::worker_of)).

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::execution::runtime_env::RuntimeEnv;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::prelude::SessionConfig;

use crate::codec::{know_windows, name_windows};
use crate::exchanges::PlainExchanges;
use datafusion_tadoc::travel::{AtWorker, CorpusCache, NameParquetFiles};
use datafusion_tadoc::{DeviceSession, Spreading, TadocOptions, TadocSessionStateBuilderExt};

/// State that the sessions of an engine share in a process.
///
/// ```
/// use std::sync::Arc;
/// use datafusion::execution::SessionStateBuilder;
/// use datafusion::execution::runtime_env::RuntimeEnvBuilder;
/// use datafusion_tadoc_distributed::{EngineHome, with_stores};
///
/// # fn main() -> datafusion::error::Result<()> {
/// let runtime = with_stores(RuntimeEnvBuilder::new()).build_arc()?;
/// let home = EngineHome::new(runtime);
/// let state = home.planning(SessionStateBuilder::new().with_default_features()).build();
/// assert!(state.table_functions().contains_key("word_count"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct EngineHome {
    runtime: Arc<RuntimeEnv>,
    cache: Arc<CorpusCache>,
    devices: Arc<DeviceSession>,
}

impl EngineHome {
    /// Makes a home whose statements run in `runtime`, with its stores and its memory. A runtime of a
    /// [`Sandbox`](datafusion_tadoc::safety::Sandbox) keeps the statements of other machines inside.
    pub fn new(runtime: Arc<RuntimeEnv>) -> Self {
        Self { runtime, cache: Arc::default(), devices: Arc::new(DeviceSession::new()) }
    }

    /// Returns the runtime.
    pub fn runtime(&self) -> &Arc<RuntimeEnv> {
        &self.runtime
    }

    /// Adds to `config` what is shared, and the settings under `tadoc.`.
    #[must_use]
    pub fn config(&self, config: SessionConfig) -> SessionConfig {
        let mut config = config
            .with_extension(Arc::clone(&self.cache))
            .with_extension(Arc::clone(&self.devices))
            .with_extension(Arc::new(AtWorker));
        if config.options().extensions.get::<TadocOptions>().is_none() {
            config.options_mut().extensions.insert(TadocOptions::default());
        }
        config
    }

    /// Makes a session that plans statements of other machines, for others that run them. Scans are cut
    /// into a run of segments for each partition.
    #[must_use]
    pub fn planning(&self, builder: SessionStateBuilder) -> SessionStateBuilder {
        let mut builder = self.executing(builder);
        let config = builder.config().get_or_insert_default();
        config.set_extension(Arc::new(Spreading { num_workers: 0 }));
        let mut rules = builder.physical_optimizers().take().unwrap_or_default().rules;
        rules.extend(builder.physical_optimizer_rules().take().into_iter().flatten());
        // The source of a scan whose errors name the file cannot travel.
        rules.retain(|rule| rule.name() != NameParquetFiles.name());
        PlainExchanges::add_to(&mut rules);
        name_windows(builder).with_physical_optimizer_rules(rules)
    }

    /// Makes a session that runs parts of plans of other machines: it has the functions that they name.
    #[must_use]
    pub fn executing(&self, mut builder: SessionStateBuilder) -> SessionStateBuilder {
        let config = builder.config().take().unwrap_or_default();
        know_windows(&mut builder);
        builder.with_config(self.config(config)).with_runtime_env(Arc::clone(&self.runtime)).with_tadoc()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_share_what_they_open() {
        let home = EngineHome::new(Arc::default());
        let cache = |state: datafusion::execution::SessionState| state.config().get_extension::<CorpusCache>().unwrap();
        let builder = || SessionStateBuilder::new().with_default_features();
        let planned = cache(home.planning(builder()).build());
        assert!(Arc::ptr_eq(&planned, &cache(home.executing(builder()).build())));
    }
}
