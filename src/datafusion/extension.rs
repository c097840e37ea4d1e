//! Everything that this crate adds to a session, as one value for programs that put sessions together.
//!
//! ```text
//! TadocExtension ─ settings ─┬─ extend(SessionStateBuilder) ─▶ the same builder
//!                            ├─ install(&SessionContext)    ─▶ a session that exists already
//!                            └─ parts()                     ─▶ names of all that comes with it
//! ```
//!
//! [`register_all`](crate::register_all) and
//! [`with_tadoc`](crate::TadocSessionStateBuilderExt::with_tadoc) are short for an extension without settings. To install
//! twice is to install once.
//!
//! ```
//! use datafusion::prelude::SessionContext;
//! use datafusion_tadoc::TadocExtension;
//!
//! # #[tokio::main]
//! # async fn main() -> datafusion::error::Result<()> {
//! let tadoc = TadocExtension::default().with_setting("max_memory_bytes", "1GiB")?;
//! let ctx = SessionContext::new();
//! tadoc.install(&ctx)?;
//!
//! let rows = ctx.sql("SHOW tadoc.max_memory_bytes").await;
//! assert!(tadoc.parts().table_functions.contains(&"kwic".to_owned()));
//! # let _ = rows;
//! # Ok(())
//! # }
//! ```
//!
//! Scans are spans of the crate `tracing`: `tadoc_scan` for each partition, with the fields `function`, `corpus` and
//! `partition`, and in it `tadoc_load` and `tadoc_compute`. A subscriber that follows DataFusion's operators, such as
//! that of `datafusion-tracing`, has them below its own.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion::config::ExtensionOptions;
use datafusion::error::Result;
use datafusion::execution::{SessionState, SessionStateBuilder};
use datafusion::prelude::{SessionConfig, SessionContext};

use crate::options::TadocOptions;
use crate::placement::DeviceSession;
use crate::session::TadocSessionStateBuilderExt;

/// Everything that this crate adds to a session; see the module's description.
#[derive(Debug, Clone, Default)]
pub struct TadocExtension {
    options: TadocOptions,
    devices: Option<Arc<DeviceSession>>,
}

impl TadocExtension {
    /// Sets the setting `tadoc.NAME`, as `SET` does.
    ///
    /// # Errors
    /// A configuration error if there is no such setting, or if it does not take the value.
    pub fn with_setting(mut self, name: &str, value: &str) -> Result<Self> {
        self.options.set(name, value)?;
        Ok(self)
    }

    /// Shares the devices of another session.
    #[must_use]
    pub fn with_devices(self, devices: Arc<DeviceSession>) -> Self {
        Self { devices: Some(devices), ..self }
    }

    /// Adds everything to `builder`. Set its run-time environment and its list of catalogs before.
    #[must_use]
    pub fn extend(&self, mut builder: SessionStateBuilder) -> SessionStateBuilder {
        let config = builder.config().get_or_insert_with(SessionConfig::new);
        config.options_mut().extensions.insert(self.options.clone());
        if let Some(devices) = &self.devices {
            config.set_extension(Arc::clone(devices));
        }
        builder.with_tadoc()
    }

    /// Adds everything to `ctx`. If it is there already, only the settings are set.
    ///
    /// # Errors
    /// Never fails today. The result matches DataFusion's own registrations.
    pub fn install(&self, ctx: &SessionContext) -> Result<()> {
        crate::register_all(ctx)?;
        let state = ctx.state_ref();
        let mut state = state.write();
        let config = state.config_mut();
        config.options_mut().extensions.insert(self.options.clone());
        if let Some(devices) = &self.devices {
            config.set_extension(Arc::clone(devices));
        }
        Ok(())
    }

    /// Returns the names of all parts: what a session with the extension has, and an empty one has not.
    pub fn parts(&self) -> Parts {
        let with = Parts::from_state(&self.extend(SessionStateBuilder::new()).build());
        with.beside(Parts::from_state(&SessionStateBuilder::new().build()))
    }
}

/// Names of the parts of an extension, each list in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// Functions in `FROM`.
    pub table_functions: Vec<String>,
    /// Functions of rows.
    pub scalar_functions: Vec<String>,
    /// Types of files in `STORED AS`, in capitals.
    pub file_types: Vec<String>,
    /// Rules that analyze logical plans.
    pub analyzer_rules: Vec<String>,
    /// Rules that change physical plans.
    pub physical_rules: Vec<String>,
    /// Number of planners of relations.
    pub num_relation_planners: usize,
}

impl Parts {
    fn from_state(state: &SessionState) -> Self {
        let sorted = |names: &mut dyn Iterator<Item = String>| names.collect::<BTreeSet<_>>().into_iter().collect();
        Self {
            table_functions: sorted(&mut state.table_functions().keys().cloned()),
            scalar_functions: sorted(&mut state.scalar_functions().keys().cloned()),
            file_types: sorted(&mut state.table_factories().keys().cloned()),
            analyzer_rules: sorted(&mut state.analyzer().rules.iter().map(|rule| rule.name().to_owned())),
            physical_rules: sorted(&mut state.physical_optimizers().iter().map(|rule| rule.name().to_owned())),
            num_relation_planners: state.relation_planners().len(),
        }
    }

    /// Returns the parts that `other` has not.
    fn beside(self, other: Self) -> Self {
        let beside = |names: Vec<String>, others: &[String]| {
            names.into_iter().filter(|name| !others.contains(name)).collect::<Vec<_>>()
        };
        Self {
            table_functions: beside(self.table_functions, &other.table_functions),
            scalar_functions: beside(self.scalar_functions, &other.scalar_functions),
            file_types: beside(self.file_types, &other.file_types),
            analyzer_rules: beside(self.analyzer_rules, &other.analyzer_rules),
            physical_rules: beside(self.physical_rules, &other.physical_rules),
            num_relation_planners: self.num_relation_planners - other.num_relation_planners,
        }
    }
}
