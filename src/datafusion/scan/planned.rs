//! Tables of a statement that another process scans.
//!
//! ```text
//! this process     name, relative path, latest version, table of synonyms ─▶ Planned
//! the other one    Planned ─▶ table: no name is looked up, no folder and no later version counts
//! ```
//!
//! A table reads what a session knows: registered names, the working folder, settings, and the rows of
//! synonyms and of texts to compare. [`TadocTable::planned`] looks all of this up. It reads the number of
//! the latest version of a living corpus, and none of the corpus's files.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::config::ExtensionOptions;
use datafusion::error::Result;

use crate::scan::function::{Reads, TableFunction};
use crate::scan::table::{Place, TadocTable};
use crate::source::CorpusCache;
use crate::source::location::SourceFile;
use tadoc::text::Synonyms;
use tadoc_store::Version;

/// Parts of a table that another process scans.
#[derive(Debug, Clone)]
pub(crate) struct Planned {
    pub(crate) function: Arc<dyn TableFunction>,
    /// The first argument as it was written.
    pub(crate) location: String,
    /// The place that is read, if the function reads files.
    pub(crate) place: Option<Place>,
    /// Requested version, or that of a living corpus.
    pub(crate) version: Option<u64>,
    pub(crate) options: HashMap<String, String>,
    pub(crate) user_columns: Vec<FieldRef>,
    pub(crate) synonyms: Option<Arc<Synonyms>>,
}

impl TadocTable {
    /// Returns the table as another process scans it, and the version of a living corpus with its
    /// location.
    ///
    /// # Errors
    /// The plan errors of a scan; an error if the location cannot be said elsewhere.
    pub(crate) async fn planned(
        &self,
        session: &dyn Session,
    ) -> Result<(Self, Option<(String, Version)>)> {
        let read = self.read_synonyms(session).await?;
        let table = read.as_ref().unwrap_or(self);
        let target = table.target(session).await?;
        let living = match table.function.reads() {
            Reads::Files | Reads::Nothing => None,
            Reads::Corpora | Reads::UncheckedCorpora => {
                table.found(session.runtime_env(), &target.location).await?
            }
        };
        let living = match living {
            Some(found) => {
                let version = found.version(target.version).await?;
                Some((found.location.url(), version))
            }
            None => None,
        };
        let place = match table.function.reads() {
            Reads::Nothing => None,
            _ => Some(Place::from_location(&target.location)?),
        };
        let entries = target.options.entries().into_iter();
        let planned = Planned {
            function: table.function_with_texts(session).await?,
            location: table.location.clone(),
            place,
            version: living.as_ref().map(|(_, version)| version.number).or(target.version),
            options: entries.filter_map(|entry| Some((entry.key, entry.value?))).collect(),
            user_columns: table.user_columns.clone(),
            synonyms: table.synonyms.clone(),
        };
        Ok((Self::from_planned(planned, Arc::clone(&table.cache)), living))
    }

    /// Builds the table of `planned`.
    pub(crate) fn from_planned(planned: Planned, cache: Arc<CorpusCache>) -> Self {
        let Planned { function, location, place, version, options, user_columns, synonyms } =
            planned;
        let table = Self::new(function, location, cache).with_version(version);
        let mut table = table.with_definition(options, None, user_columns);
        (table.place, table.synonyms) = (place, synonyms);
        table
    }

    /// Returns the parts of a table that was planned; `None` if this one depends on its session.
    pub(crate) fn as_planned(&self) -> Option<Planned> {
        if self.call.is_some() || (self.place.is_none() && self.function.reads() != Reads::Nothing)
        {
            return None;
        }
        Some(Planned {
            function: Arc::clone(&self.function),
            location: self.location.clone(),
            place: self.place.clone(),
            version: self.version,
            options: self.options.clone(),
            user_columns: self.user_columns.clone(),
            synonyms: self.synonyms.clone(),
        })
    }
}

impl Place {
    /// Returns the place that `location` means in this process.
    ///
    /// # Errors
    /// A plan error if the working folder has a name that is no text.
    fn from_location(location: &str) -> Result<Self> {
        let is_absolute = location.contains("://") || location.starts_with('/');
        let (location, folder) = if is_absolute {
            (location.to_owned(), String::new())
        } else {
            let folder = std::env::current_dir().ok();
            let folder = folder.as_deref().and_then(std::path::Path::to_str);
            let Some(folder) = folder else {
                return plan_err!(
                    "{location}: the working folder has no name that other machines know; \
                         write an absolute path"
                );
            };
            let folder = format!("{}/", folder.trim_end_matches('/'));
            (format!("{folder}{location}"), folder)
        };
        Ok(Self { location, folder })
    }

    /// Returns `file` with the path that a statement in the folder shows.
    pub(super) fn shown(&self, file: SourceFile) -> SourceFile {
        match file.path.strip_prefix(&self.folder) {
            Some(path) => SourceFile { path: path.to_owned(), ..file },
            None => file,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_mean_the_same_everywhere() {
        let here = format!("{}/", std::env::current_dir().unwrap().display());
        let of = |location: &str| Place::from_location(location).unwrap();
        assert_eq!(of("notes/*.md").location, format!("{here}notes/*.md"));
        assert_eq!(of("notes/*.md").folder, here);
        for absolute in ["/srv/c.tadoc", "s3://bucket/c.tadoc", "file:///srv/c.tadoc"] {
            assert_eq!(
                (of(absolute).location.as_str(), of(absolute).folder),
                (absolute, "".into())
            );
        }
    }
}
