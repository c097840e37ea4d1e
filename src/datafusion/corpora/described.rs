//! Columns of the documents at a location: those that users added, and the file of each document.
//!
//! ```text
//! location ─┬─ living corpus ─▶ files, edits that set columns ─▶ user columns
//!           ├─ one file       ─▶ footer ─▶ schema of its columns ─▶ user columns
//!           └─ several files  ─▶ the same, and `corpus`
//! ```
//!
//! Footers are read, and the section of columns of each file, whose schema is kept. No text is decoded.

use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::runtime_env::RuntimeEnv;

use crate::corpora::columns::{user_fields, with_file_names};
use crate::corpora::glob::is_glob;
use crate::corpora::living::{no_versions, open_columns};
use crate::corpora::location::{Wanted, resolve_files};
use crate::corpora::{CorpusCache, Source};
use crate::options::TadocOptions;

/// Columns of the documents at a location behind those that every corpus has.
#[derive(Debug)]
pub(crate) struct FoundColumns {
    pub(crate) fields: Vec<FieldRef>,
    /// True for a living corpus.
    pub(crate) is_living: bool,
}

impl CorpusCache {
    /// Returns the columns of the documents that exist at `location` now, in `version` of a living corpus. `explain`
    /// adds to the error where nothing is there.
    ///
    /// # Errors
    /// A plan error if nothing is there, if plain files have no versions, or if a column of two files has types that
    /// fit no third one; errors of the store and of footers.
    pub(crate) async fn columns_at(
        &self,
        runtime: &Arc<RuntimeEnv>,
        options: &TadocOptions,
        location: &str,
        version: Option<u64>,
        explain: impl FnOnce(DataFusionError) -> DataFusionError,
    ) -> Result<FoundColumns> {
        if let Some(found) = self.living.find(runtime, location).await? {
            let version = found.version(version).await?;
            let (files, edits) = open_columns(self, runtime, options, &found, version).await?;
            let fields = user_fields(self, runtime, &files, &edits).await?;
            return Ok(FoundColumns { fields, is_living: true });
        }
        let files = resolve_files(runtime, location, Wanted::Corpora).await.map_err(explain)?;
        if let Some(version) = version {
            return Err(no_versions(location, version, files.len()));
        }
        let files = self.open(runtime, &options.open_limits(), files).await?;
        let fields = user_fields(self, runtime, &files, &[]).await?;
        let has_several = files.len() > 1 || is_glob(location);
        let fields = if has_several { with_file_names(fields) } else { fields };
        Ok(FoundColumns { fields, is_living: false })
    }

    /// Returns the user columns of `source`, which was opened.
    ///
    /// # Errors
    /// The errors of [`columns_at`](Self::columns_at).
    pub(crate) async fn columns_in(&self, runtime: &RuntimeEnv, source: &Source) -> Result<Vec<FieldRef>> {
        let edits = source.living().filter(|view| view.version.sets_columns);
        let edits = edits.map_or(&[][..], |view| &view.edits);
        user_fields(self, runtime, source.corpora(), edits).await
    }
}
