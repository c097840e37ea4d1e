//! Tables of a statement that another process scans.
//!
//! ```text
//! this process     name, relative path, latest version, tables of synonyms and texts ─▶ resolved table
//! the other one    resolved table: no name is looked up, no folder and no later version counts
//! ```
//!
//! A table reads what a session knows: registered names, the working folder, settings, and the rows of
//! synonyms and of texts to compare. [`ResolvedTable::from_table`] looks all of this up. It reads the number of
//! the latest version of a living corpus, and none of the corpus's files.

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::arrow::datatypes::FieldRef;
use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::config::ExtensionOptions;
use datafusion::error::Result;

use crate::corpora::CorpusCache;
use crate::corpora::location::SourceFile;
use crate::planning::Texts;
use crate::planning::function::{BoundFunction, Reads};
use crate::planning::table::{ResolvedLocation, TadocTable};
use tadoc::text::Synonyms;
use tadoc_store::Version;

/// A table of which nothing is left to look up in its session, except the corpora that are open there.
#[derive(Debug, Clone)]
pub struct ResolvedTable {
    /// The function of the call.
    pub function: BoundFunction,
    /// Location as the user wrote it.
    pub location: String,
    /// The place that is read, if the function reads files.
    pub place: Option<ResolvedLocation>,
    /// Version of a living corpus.
    pub version: Option<u64>,
    /// Settings under `tadoc.` that those of the session do not change.
    pub options: HashMap<String, String>,
    /// Columns that users have added to those of the function.
    pub user_columns: Vec<FieldRef>,
    /// Synonyms of the function's fold, if it has any.
    pub synonyms: Option<Arc<Synonyms>>,
    /// Texts of another table that the function compares with the corpus, if it does.
    pub texts: Option<Arc<Texts>>,
    /// True if columns with the files of documents stand behind those of the function.
    pub has_files: bool,
    /// The condition that documents meet, if not all are asked about.
    pub condition: Option<String>,
    /// Corpora that are open where the table is scanned.
    pub cache: Arc<CorpusCache>,
}

impl ResolvedTable {
    /// Looks up all that `session` knows of `table`. Returns the version of a living corpus, too, with the URL of the
    /// corpus.
    ///
    /// # Errors
    /// The plan errors of a scan; an error if the location cannot be said elsewhere.
    pub async fn from_table(table: &TadocTable, session: &dyn Session) -> Result<(Self, Option<(String, Version)>)> {
        let read = table.read_synonyms(session).await?;
        let table = read.as_ref().unwrap_or(table);
        let target = table.target(session).await?;
        let reads = table.function.reads();
        let living = match reads {
            Reads::Files | Reads::Nothing => None,
            Reads::Corpora | Reads::UncheckedCorpora => table.found(session.runtime_env(), &target.location).await?,
        };
        let living = match living {
            Some(found) => {
                let version = found.version(target.version).await?;
                Some((found.url(), version))
            }
            None => None,
        };
        let place = match reads {
            Reads::Nothing => None,
            _ => Some(ResolvedLocation::from_location(&target.location)?),
        };
        let entries = target.options.entries().into_iter();
        let resolved = Self {
            function: Arc::clone(&table.function),
            location: table.location.clone(),
            place,
            version: living.as_ref().map(|(_, version)| version.number).or(target.version),
            options: entries.filter_map(|entry| Some((entry.key, entry.value?))).collect(),
            user_columns: table.user_columns.clone(),
            synonyms: table.synonyms.clone(),
            texts: table.read_texts(session).await?,
            has_files: !table.file_columns.is_empty(),
            condition: table.condition.as_ref().map(|condition| condition.text.clone()),
            cache: Arc::clone(&table.cache),
        };
        Ok((resolved, living))
    }

    /// Returns true unless the function reads files and there is no place to read them.
    pub fn has_place(&self) -> bool {
        self.place.is_some() || self.function.reads() == Reads::Nothing
    }

    /// Returns the table that scans read.
    pub fn to_table(&self) -> TadocTable {
        let table = TadocTable::new(Arc::clone(&self.function), self.location.clone(), Arc::clone(&self.cache))
            .with_version(self.version)
            .with_definition(self.options.clone(), None, self.user_columns.clone());
        let place = self.place.clone();
        let synonyms = self.synonyms.clone();
        let texts = self.texts.clone();
        let table = TadocTable { place, synonyms, texts, ..table };
        if self.has_files { table.with_files() } else { table }
    }
}

impl ResolvedLocation {
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
        let of = |location: &str| ResolvedLocation::from_location(location).unwrap();
        assert_eq!(of("notes/*.md").location, format!("{here}notes/*.md"));
        assert_eq!(of("notes/*.md").folder, here);
        for absolute in ["/srv/c.tadoc", "s3://bucket/c.tadoc", "file:///srv/c.tadoc"] {
            assert_eq!((of(absolute).location.as_str(), of(absolute).folder), (absolute, "".into()));
        }
    }
}
