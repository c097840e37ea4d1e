//! The files of a folder, or below a prefix of a store, with their sizes and times.
//!
//! The files are those that `tadoc ingest FOLDER` takes: without hidden files, links and what is no file. Sizes and times
//! are noted before a file is read. So a file that changes while it is read has another time the next time.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tadoc_documents::pattern::Pattern;
use tadoc_documents::{Input, Source, display};
use tadoc_session::location::{local_path, text_of, url_of};
use tadoc_session::{BlockingResolver, Failure, Outcome};

use crate::inputs::{Skipped, Wanted, walk};

/// A time this close to that of the listing may not be the last one with which the file was written: clocks of files
/// tick, in nanoseconds.
const TICK: i64 = 20_000_000;
/// The same for file systems whose times have whole seconds.
const LONG_TICK: i64 = 2_000_000_000;
/// A time so far in the future was chosen, and a write sets another one.
const FAR: i64 = 86_400_000_000_000;

/// A folder of files.
pub struct Folder {
    /// Its path or URL, as the user wrote it.
    name: PathBuf,
    /// Globs of which a file must match at least one. Without globs, all files are taken.
    globs: Vec<Pattern>,
    follow_links: bool,
    /// Real path or URL of the corpus.
    corpus: PathBuf,
}

/// A file, as it was when it was listed.
#[derive(Debug)]
pub struct Listed {
    pub input: Input,
    pub stamp: Stamp,
}

/// The size of a file and the time of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub len_bytes: u64,
    /// Nanoseconds since 1970. `None` if the file may be changed without another time.
    pub modified: Option<i64>,
}

/// The files of a folder.
#[derive(Debug, Default)]
pub struct Files {
    /// In order of name.
    pub files: Vec<Listed>,
    /// Notes about what was left out.
    pub notes: Vec<String>,
}

impl Files {
    /// Returns true if the files of this machine still have their lengths. Those of stores are not looked at.
    pub fn is_still_so(&self) -> bool {
        self.files.iter().all(|file| match &file.input.source {
            Source::File(path) => path.metadata().is_ok_and(|now| now.len() == file.stamp.len_bytes),
            _ => true,
        })
    }

    /// Returns the place of each file by its path.
    pub fn by_path(&self) -> HashMap<&str, usize> {
        self.files.iter().enumerate().map(|(idx, file)| (file.input.path.as_str(), idx)).collect()
    }
}

impl Folder {
    /// Creates a folder whose files go into the corpus at `corpus`.
    ///
    /// # Errors
    /// There is no such folder, or the corpus is it.
    pub fn new(name: &Path, globs: &[Pattern], follow_links: bool, corpus: &Path) -> Outcome<Self> {
        let corpus = match local_path(corpus)? {
            Some(path) => real(&path),
            None => corpus.to_owned(),
        };
        let folder = Self { name: name.to_owned(), globs: globs.to_vec(), follow_links, corpus };
        if let Some(path) = folder.check()?
            && real(&path) == folder.corpus
        {
            let shown = folder.shown();
            return Err(Failure::new(format!("{shown} is the corpus itself; name the folder of its files")));
        }
        Ok(folder)
    }

    /// Returns the folder as text that tells it from others.
    pub fn identity(&self) -> Outcome<String> {
        Ok(match local_path(&self.name)? {
            Some(path) => text_of(&real(&path)).into_owned(),
            None => self.name.to_string_lossy().trim_end_matches('/').to_owned(),
        })
    }

    /// Returns its name for messages.
    pub fn shown(&self) -> String {
        display::path(&self.name)
    }

    /// Lists the files.
    ///
    /// # Errors
    /// The folder is not there, or it cannot be read.
    pub fn list(&self) -> Outcome<Files> {
        let now = nanos(SystemTime::now()).unwrap_or_default();
        match self.check()? {
            Some(path) => self.local(&path, now),
            None => self.stored(now),
        }
    }

    /// Returns the path of a folder of this machine that is there, and `None` for a URL of a store.
    fn check(&self) -> Outcome<Option<PathBuf>> {
        let shown = self.shown();
        if self.name.as_os_str() == "-" {
            return Err(Failure::usage("sync takes a folder; `tadoc ingest - --append` adds standard input"));
        }
        let Some(path) = local_path(&self.name)? else { return Ok(None) };
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => Ok(Some(path)),
            Ok(_) => Err(Failure::new(format!(
                "{shown} is a file, and sync takes a folder; `tadoc edit CORPUS --replace ID {shown}` changes a document"
            ))),
            Err(error) => Err(Failure::with_cause(
                format!("{shown}: no document was dropped, as the folder cannot be read"),
                &error,
            )),
        }
    }

    fn takes(&self, path: &str) -> bool {
        self.globs.is_empty() || self.globs.iter().any(|glob| glob.matches(path))
    }

    fn local(&self, folder: &Path, now: i64) -> Outcome<Files> {
        let real_folder = real(folder);
        let corpus = self.corpus.strip_prefix(&real_folder).ok().map(|below| format!("{}/", text_of(below)));
        let is_corpus = |file: &Path, path: &str| {
            let is_below = corpus.as_ref().is_some_and(|corpus| path.starts_with(corpus));
            is_below || self.follow_links && real(file).starts_with(&self.corpus)
        };
        let mut files = Vec::new();
        let wanted = Wanted { hidden: false, links: self.follow_links };
        let skipped: Skipped = walk(folder, wanted, None, &mut |file, path, metadata| {
            if self.takes(path) && !is_corpus(file, path) {
                let (len_bytes, modified) = (metadata.len(), metadata.modified().ok());
                let stamp = Stamp::new(len_bytes, modified, now);
                let input = Input::new(Source::File(file.to_owned()), path.to_owned(), len_bytes);
                files.push(Listed { input, stamp });
            }
        })?;
        Ok(Files { files, notes: skipped.notes() })
    }

    fn stored(&self, now: i64) -> Outcome<Files> {
        let url = self.name.to_string_lossy();
        let folder = format!("{}/", url.trim_end_matches('/'));
        let mut files = Vec::new();
        for stored in BlockingResolver::new()?.files(&self.name)? {
            let name = stored.file.name().to_owned();
            let Some(path) = name.strip_prefix(&folder) else {
                return Err(Failure::new(format!("{} is not a folder; name a prefix, such as {folder}", self.shown())));
            };
            let is_corpus = url_of(&self.corpus).is_some_and(|corpus| {
                name.strip_prefix(corpus.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
            });
            if !self.takes(path) || is_corpus {
                continue;
            }
            let (path, len_bytes) = (path.to_owned(), stored.file.len_bytes());
            let stamp = Stamp::new(len_bytes, Some(stored.file.modified()), now);
            let input = Input::new(Source::Stored(Arc::new(stored)), path, len_bytes);
            files.push(Listed { input, stamp });
        }
        Ok(Files { files, notes: Vec::new() })
    }
}

impl Stamp {
    /// Creates the stamp of a file that was changed last at `modified` and is listed at `now`.
    fn new(len_bytes: u64, modified: Option<SystemTime>, now: i64) -> Self {
        let tick = |modified: i64| if modified % 1_000_000_000 == 0 { LONG_TICK } else { TICK };
        let is_settled =
            |modified: i64| !(now.saturating_sub(tick(modified))..now.saturating_add(FAR)).contains(&modified);
        let modified = modified.and_then(nanos).filter(|&modified| is_settled(modified));
        Self { len_bytes, modified }
    }

    /// Returns true if a file with both stamps was not changed between them.
    pub fn is_unchanged(self, later: Self) -> bool {
        self == later && self.modified.is_some()
    }
}

/// Returns a time in nanoseconds since 1970, if it fits.
fn nanos(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).ok(),
        Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|nanos| -nanos),
    }
}

/// Returns the real path, also of what is not there yet.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => absolute,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_near_the_listing_are_not_trusted() {
        let at = |nanos: u64| Some(UNIX_EPOCH + Duration::from_nanos(nanos));
        let now = 1_700_000_000_500_000_000;
        for (modified, is_trusted) in [
            (1_700_000_000_500_000_000, false),
            (1_700_000_000_490_000_001, false),
            (1_700_000_000_470_000_001, true),
            (1_700_000_000_000_000_000, false),
            (1_699_999_999_000_000_000, false),
            (1_699_999_998_000_000_000, true),
            (1_700_000_001_000_000_001, false),
            (1_800_000_000_000_000_000, true),
        ] {
            let stamp = Stamp::new(7, at(modified), now);
            assert_eq!(stamp.modified.is_some(), is_trusted, "{modified}");
            assert_eq!(stamp.is_unchanged(stamp), is_trusted);
        }
        let before_1970 = Stamp::new(7, UNIX_EPOCH.checked_sub(Duration::from_nanos(5)), now);
        assert_eq!(before_1970.modified, Some(-5));
        assert!(!Stamp::new(7, None, now).is_unchanged(Stamp::new(7, None, now)));
    }
}
