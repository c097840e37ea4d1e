//! Opens and creates living corpora, and waits for their reads and writes.

use std::fs;
use std::future::Future;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use datafusion_tadoc::user_columns::merge_columns;
use tadoc::build::IngestOptions;
use tadoc::edits::LivingCorpus;
use tadoc::format::OpenLimits;
use tadoc::text::TokenizerProfile;
use tadoc::{Error, Result};
use tadoc_session::location::{FOLDERS, is_living_folder, local_path, url_of};
use tadoc_session::{BlockingResolver, Corpora, Failure, Outcome, note};
use tadoc_store::{Change, LivingStore, OptimizeOptions, Storage, StoreOptions, Version};

/// An open living corpus.
pub struct Living {
    /// The library's handle of the corpus.
    pub store: LivingStore,
    /// Resolver and runtime that opened the corpus.
    pub resolver: BlockingResolver,
}

impl Living {
    /// Opens the corpus at `location`.
    ///
    /// # Errors
    /// There is no living corpus at `location`, or its latest version cannot be read.
    pub fn open(location: &Path) -> Outcome<Self> {
        let is_local = url_of(location).is_none();
        if is_local && !is_living_folder(location) {
            return Err(no_corpus(location));
        }
        let resolver = BlockingResolver::new()?;
        match resolver.corpora(location, None)? {
            Corpora::Living(store) => Ok(Self { store, resolver }),
            Corpora::Files(_) => Err(no_corpus(location)),
        }
    }

    /// Calls `work` with the corpus at `location`, or with one without documents that is created there.
    /// If `work` fails, a corpus that was created is removed, unless it holds a commit.
    ///
    /// # Errors
    /// The corpus exists and has another tokenizer than `profile`, it cannot be opened or created, and
    /// those of `work`.
    pub fn with_open_or_created(
        location: &Path,
        profile: Option<TokenizerProfile>,
        work: impl FnOnce(&Self) -> Outcome,
    ) -> Outcome {
        let resolver = BlockingResolver::new()?;
        let storage = resolver.inner.storage(location)?;
        let new_folders = missing_folders(location)?;
        let opened = resolver.wait(open_or_create(storage, profile.unwrap_or_default()));
        let (store, is_new) = opened.inspect_err(|_| remove_empty(&new_folders))?;
        if let Some(asked) = profile.filter(|asked| *asked != store.profile()) {
            return Err(Failure::new(format!(
                "{}: --tokenizer {asked}, but the corpus was created with {}; leave it out",
                location.display(),
                store.profile()
            )));
        }
        let living = Self { store, resolver };
        work(&living).inspect_err(|_| {
            // What cannot be removed stays as a corpus without documents. The failure of `work` counts.
            if is_new && living.wait(living.store.remove_unused()).is_ok_and(|is_gone| is_gone) {
                remove_empty(&new_folders);
            }
        })
    }

    /// Waits for `future` and returns its output.
    ///
    /// # Errors
    /// Returns the error of `future`.
    pub fn wait<T>(&self, future: impl Future<Output = Result<T>>) -> Outcome<T> {
        Ok(self.resolver.wait(future)?)
    }

    /// Returns version `number`, or the latest version if `number` is `None`.
    ///
    /// # Errors
    /// There is no such version.
    pub fn version(&self, number: Option<u64>) -> Outcome<Version> {
        match number {
            Some(number) => self.wait(self.store.version(number)),
            None => self.wait(self.store.latest()),
        }
    }

    /// Commits the change that `make` returns for `base`. If others commit first, it is made anew for the latest
    /// version. So a change is committed on exactly the version that `make` has seen.
    ///
    /// # Errors
    /// The errors of `make`, or the change cannot be committed.
    pub fn update(&self, mut base: Version, mut make: impl FnMut(&Version) -> Outcome<Change>) -> Outcome<Version> {
        loop {
            let change = make(&base)?.pinned();
            match self.wait(async { Ok(self.store.commit(&base, &change).await) })? {
                Err(Error::Conflict { .. }) => base = self.version(None)?,
                committed => return Ok(committed?),
            }
        }
    }

    /// Compresses the corpus anew if its edits exceed the share `ratio` after the commit of
    /// `version`.
    ///
    /// Returns a message if it did. If compression fails, the commit remains valid, and the
    /// function prints a note.
    pub fn recompress(&self, version: &Version, ratio: f64, ingest: IngestOptions) -> Option<String> {
        let options = OptimizeOptions {
            recompress_ratio: ratio,
            ingest,
            merge_columns: Some(Arc::new(merge_columns)),
            ..OptimizeOptions::default()
        };
        let location = self.store.location();
        match self.wait(self.store.recompress_if_due(version, &options)) {
            Ok(done) => done.map(|done| format!("{location}: version {}: compressed anew", done.number)),
            Err(failure) => {
                note(format!("note: {location}: not compressed anew: {}", failure.into_text()));
                None
            }
        }
    }

    /// Returns all documents of `version`.
    ///
    /// # Errors
    /// A file of the version is missing or damaged.
    pub fn corpus(&self, version: &Version) -> Outcome<LivingCorpus> {
        self.wait(self.store.corpus(version, &OpenLimits::default()))
    }
}

/// Parses a share, such as 0.2.
///
/// # Errors
/// `text` is not a number from 0 to 1.
pub fn parse_share(text: &str) -> std::result::Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".into())
}

/// Builds the error for a location without a living corpus.
fn no_corpus(location: &Path) -> Failure {
    let shown = location.display();
    let what = match (url_of(location), location.metadata()) {
        (Some(_), _) => format!("{shown} holds files that do not change"),
        (None, Ok(metadata)) if metadata.is_dir() => format!("{shown} holds no living corpus"),
        (None, Ok(_)) => format!("{shown} is a file and does not change"),
        (None, Err(_)) => format!("{shown} does not exist"),
    };
    Failure::new(format!("{what}; `tadoc ingest PATH -o FOLDER --append` begins a living corpus"))
}

/// Opens or creates a corpus. Returns true if it was created.
async fn open_or_create(storage: Arc<dyn Storage>, profile: TokenizerProfile) -> Result<(LivingStore, bool)> {
    let open = || LivingStore::open(Arc::clone(&storage), StoreOptions::default());
    loop {
        match open().await {
            Err(Error::Missing { .. }) => {}
            opened => return opened.map(|store| (store, false)),
        }
        match LivingStore::create(Arc::clone(&storage), profile, StoreOptions::default()).await {
            // Another process created the corpus in the meantime.
            Err(_) if open().await.is_ok() => {}
            created => return created.map(|store| (store, true)),
        }
    }
}

/// Returns the folders of a corpus at `location` that do not exist yet, inner ones first. A store has none.
fn missing_folders(location: &Path) -> Outcome<Vec<PathBuf>> {
    let Some(root) = local_path(location)? else { return Ok(Vec::new()) };
    // The folder of versions makes a folder a corpus, so it is the first to be removed.
    let inside = FOLDERS.iter().rev().map(|name| root.join(name));
    let folders = inside.chain(root.ancestors().map(Path::to_owned));
    Ok(folders.filter(|folder| folder.symlink_metadata().is_err()).collect())
}

/// Removes `folders`, inner ones first, up to one that somebody else has put a file into.
fn remove_empty(folders: &[PathBuf]) {
    let is_gone = |folder: &PathBuf| match fs::remove_dir(folder) {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::NotFound,
    };
    let _all_are_gone = folders.iter().all(is_gone);
}
