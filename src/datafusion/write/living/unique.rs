//! The rule of `tadoc.unique_paths`: an `INSERT` adds no document whose path the corpus has already.
//!
//! ```text
//! latest version n ─▶ its paths ─▶ rows are checked as they come ─▶ commit on n
//!      ▲                                                              │ another commit was first
//!      └── the paths of all rows are checked again ◀──────────────────┘
//! ```
//!
//! The paths are read after version n was, and versions only grow. If the version after n can be put, they were
//! those of n. So two statements at the same time store a path once. Rows of one statement may share a path, as
//! lines of a file do, and rows without a path are never refused. Memory is that of all paths.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use datafusion::arrow::array::RecordBatch;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::cast::as_string_view_array;
use datafusion::common::{exec_datafusion_err, plan_datafusion_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SessionState, TaskContext};
use datafusion::physical_plan::execute_stream;
use futures::StreamExt;

use crate::errors::{datafusion_error, mask_secrets};
use crate::planning::table::TadocTable;
use tadoc::error::Error;
use tadoc_store::{Change, LivingStore, Version};

/// The table whose paths are unique.
pub(super) struct UniquePaths {
    table: TadocTable,
    session: SessionState,
}

/// The check of the rows of one statement.
pub(super) struct PathCheck<'a> {
    unique: &'a UniquePaths,
    store: &'a LivingStore,
    context: &'a Arc<TaskContext>,
    /// Version of which the paths are known.
    version: Version,
    taken: Paths,
    /// Paths of the rows so far.
    added: Mutex<Paths>,
}

/// Paths, and their memory.
struct Paths {
    set: HashSet<Box<str>>,
    reservation: MemoryReservation,
}

impl UniquePaths {
    /// Keeps what reads the paths of `table` later, in the latest version.
    ///
    /// # Errors
    /// A plan error if the session is one of another process.
    pub(super) fn new(table: &TadocTable, session: &dyn Session) -> Result<Self> {
        let state = session.as_any().downcast_ref::<SessionState>().ok_or_else(|| {
            plan_datafusion_err!("{}: only a session of this process checks paths", mask_secrets(table.location()))
        })?;
        Ok(Self { table: table.clone().with_reading(None), session: state.clone() })
    }

    /// Reads the paths of the latest version of `store`.
    ///
    /// # Errors
    /// The corpus cannot be read, or the memory of the session is exceeded.
    pub(super) async fn begin<'a>(
        &'a self,
        store: &'a LivingStore,
        context: &'a Arc<TaskContext>,
    ) -> Result<PathCheck<'a>> {
        let version = store.latest().await.map_err(datafusion_error)?;
        let taken = self.read(context).await?;
        Ok(PathCheck { unique: self, store, context, version, taken, added: Mutex::new(Paths::new(context)) })
    }

    async fn read(&self, context: &Arc<TaskContext>) -> Result<Paths> {
        let projection = vec![self.table.schema().index_of("path")?];
        let plan = self.table.scan(&self.session, Some(&projection), &[], None).await?;
        let mut rows = execute_stream(plan, Arc::clone(context))?;
        let mut paths = Paths::new(context);
        while let Some(batch) = rows.next().await {
            for path in as_string_view_array(batch?.column(0))?.iter().flatten() {
                paths.insert(path)?;
            }
        }
        Ok(paths)
    }
}

impl PathCheck<'_> {
    /// Refuses a row whose path is there already, and keeps the paths of the others.
    ///
    /// # Errors
    /// An execution error that names the document.
    pub(super) fn check(&self, documents: &RecordBatch) -> Result<()> {
        let mut added = self.added();
        for path in as_string_view_array(documents.column(0))?.iter().flatten().filter(|path| !path.is_empty()) {
            if self.taken.set.contains(path) {
                return Err(self.refusal(path));
            }
            added.insert(path)?;
        }
        Ok(())
    }

    /// Commits `change` on the version whose paths were checked, or on a later one after another check.
    ///
    /// # Errors
    /// A row has a path that came into the corpus meanwhile, and the errors of a commit.
    pub(super) async fn commit(&self, change: &Change) -> Result<Version> {
        let change = change.clone().pinned();
        let mut version = self.version.clone();
        loop {
            match self.store.commit(&version, &change).await {
                Err(Error::Conflict { .. }) => {}
                committed => return committed.map_err(datafusion_error),
            }
            version = self.store.latest().await.map_err(datafusion_error)?;
            let taken = self.unique.read(self.context).await?;
            if let Some(path) = self.added().set.intersection(&taken.set).min() {
                return Err(self.refusal(path));
            }
        }
    }

    fn added(&self) -> MutexGuard<'_, Paths> {
        self.added.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refusal(&self, path: &str) -> DataFusionError {
        exec_datafusion_err!(
            "{}: a document {path} is there already; nothing was added: UPDATE or DELETE it; without \
             tadoc.unique_paths it is stored once more",
            mask_secrets(self.unique.table.location())
        )
    }
}

impl Paths {
    fn new(context: &TaskContext) -> Self {
        let memory = MemoryConsumer::new("TadocUniquePaths");
        Self { set: HashSet::new(), reservation: memory.register(&context.runtime_env().memory_pool) }
    }

    fn insert(&mut self, path: &str) -> Result<()> {
        if !self.set.contains(path) {
            self.reservation.try_grow(path.len() + 2 * size_of::<Box<str>>())?;
            self.set.insert(path.into());
        }
        Ok(())
    }
}
