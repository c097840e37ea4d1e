//! Tables of a statement that another process scans.
//!
//! ```text
//! this process     name, relative path, latest version, tables of synonyms and texts ─▶ resolved table
//! the other one    resolved table: no name is looked up, no folder and no later version counts
//! ```
//!
//! A table reads what a session knows: registered names, the working folder, settings, and the rows of
//! synonyms and of texts to compare. [`TadocTable::resolved`] looks all of this up. It reads the number of
//! the latest version of a living corpus, and none of the corpus's files.

use datafusion::catalog::Session;
use datafusion::common::plan_err;
use datafusion::config::ExtensionOptions;
use datafusion::error::Result;

use crate::corpora::location::SourceFile;
use crate::planning::function::Reads;
use crate::planning::table::{ResolvedLocation, TadocTable};
use tadoc_store::Version;

impl TadocTable {
    /// Returns the table as another process scans it, and the version of a living corpus with its
    /// location.
    ///
    /// # Errors
    /// The plan errors of a scan; an error if the location cannot be said elsewhere.
    pub(crate) async fn resolved(&self, session: &dyn Session) -> Result<(Self, Option<(String, Version)>)> {
        let read = self.read_synonyms(session).await?;
        let table = read.as_ref().unwrap_or(self);
        let target = table.target(session).await?;
        let living = match table.function.reads() {
            Reads::Files | Reads::Nothing => None,
            Reads::Corpora | Reads::UncheckedCorpora => table.found(session.runtime_env(), &target.location).await?,
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
            _ => Some(ResolvedLocation::from_location(&target.location)?),
        };
        let entries = target.options.entries().into_iter();
        let resolved = Self {
            place,
            version: living.as_ref().map(|(_, version)| version.number).or(target.version),
            options: entries.filter_map(|entry| Some((entry.key, entry.value?))).collect(),
            texts: table.read_texts(session).await?,
            definition: None,
            reading: None,
            called: None,
            ..table.clone()
        };
        Ok((resolved, living))
    }

    /// Returns true if a scan of the table depends on nothing that only its session knows.
    pub(crate) fn is_resolved(&self) -> bool {
        self.call.is_none() && (self.place.is_some() || self.function.reads() == Reads::Nothing)
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
