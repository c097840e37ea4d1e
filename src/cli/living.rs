//! Living corpora: how one is opened or begins, and what runs its reads and writes.

use std::fs;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use datafusion_tadoc::user_columns::merge_columns;
use tadoc::build::IngestOptions;
use tadoc::edits::LivingCorpus;
use tadoc::format::OpenLimits;
use tadoc::text::TokenizerProfile;
use tadoc::{Error, Result};
use tadoc_store::{LivingStore, OptimizeOptions, Storage, StoreOptions, Version};

use crate::failure::{Failure, Outcome};
use crate::output::note;
use crate::places::{Corpora, Places};

/// The folders of a living corpus.
const FOLDERS: [&str; 2] = ["segments", "versions"];

/// Tells whether `path` is a folder that holds a living corpus.
pub fn is_living_folder(path: &Path) -> bool {
    path.join(FOLDERS[1]).is_dir()
}

/// An open living corpus.
pub struct Living {
    /// The handle.
    pub store: LivingStore,
    /// What found it.
    pub places: Places,
}

impl Living {
    /// Opens the corpus at `place`.
    ///
    /// # Errors
    /// There is none, or its latest version cannot be read.
    pub fn open(place: &Path) -> Outcome<Self> {
        let is_local = url_of(place).is_none();
        if is_local && !is_living_folder(place) {
            return Err(no_corpus(place));
        }
        match Places::new()?.corpora(place, None)? {
            Corpora::Living(living) => Ok(living),
            Corpora::Files(_) => Err(no_corpus(place)),
        }
    }

    /// Opens the corpus at `place`, or begins one of no documents there.
    ///
    /// # Errors
    /// Another tokenizer than `profile` was asked for.
    pub fn open_or_create(place: &Path, profile: Option<TokenizerProfile>) -> Outcome<Self> {
        let places = Places::new()?;
        let storage = places.resolver.storage(place)?;
        let store = places.wait(open_or_create(storage, profile.unwrap_or_default()))?;
        match profile {
            Some(asked) if asked != store.profile() => Err(Failure::new(format!(
                "{}: --tokenizer {asked}, but the corpus was created with {}; leave it out",
                place.display(),
                store.profile()
            ))),
            _ => Ok(Self { store, places }),
        }
    }

    /// Waits for `future`.
    ///
    /// # Errors
    /// Its own.
    pub fn wait<T>(&self, future: impl Future<Output = Result<T>>) -> Outcome<T> {
        Ok(self.places.wait(future)?)
    }

    /// Version `number`, or the latest.
    ///
    /// # Errors
    /// There is no such version.
    pub fn version(&self, number: Option<u64>) -> Outcome<Version> {
        match number {
            Some(number) => self.wait(self.store.version(number)),
            None => self.wait(self.store.latest()),
        }
    }

    /// Compresses the corpus anew where `version`, just committed, makes that due by `ratio`; returns
    /// what was done, in words. The commit stands where this fails.
    pub fn recompress(
        &self,
        version: &Version,
        ratio: f64,
        ingest: IngestOptions,
    ) -> Option<String> {
        let options = OptimizeOptions {
            recompress_ratio: ratio,
            ingest,
            merge_columns: Some(Arc::new(merge_columns)),
            ..OptimizeOptions::default()
        };
        let place = self.store.place();
        match self.wait(self.store.recompress_if_due(version, &options)) {
            Ok(done) => {
                done.map(|done| format!("{place}: version {}: compressed anew", done.number))
            }
            Err(failure) => {
                note(format!("note: {place}: not compressed anew: {}", failure.into_text()));
                None
            }
        }
    }

    /// All documents of `version`.
    ///
    /// # Errors
    /// A file that is missing or damaged.
    pub fn corpus(&self, version: &Version) -> Outcome<LivingCorpus> {
        self.wait(self.store.corpus(version, &OpenLimits::default()))
    }
}

/// A share such as 0.2.
///
/// # Errors
/// What was expected.
pub fn parse_share(text: &str) -> std::result::Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a number from 0 to 1".into())
}

/// The error for a place without a living corpus.
fn no_corpus(place: &Path) -> Failure {
    let shown = place.display();
    let what = match (url_of(place), place.metadata()) {
        (Some(_), _) => format!("{shown} holds files that do not change"),
        (None, Ok(metadata)) if metadata.is_dir() => format!("{shown} holds no living corpus"),
        (None, Ok(_)) => format!("{shown} is a file and does not change"),
        (None, Err(_)) => format!("{shown} does not exist"),
    };
    Failure::new(format!("{what}; `tadoc ingest PATH -o FOLDER --append` begins a living corpus"))
}

/// Refuses places where there is no living corpus and none should begin.
///
/// # Errors
/// A file, or a folder of other files.
pub fn check_place(place: &Path) -> Outcome {
    let shown = place.display();
    if url_of(place).is_some() || place.symlink_metadata().is_err() {
        return Ok(());
    }
    if !place.is_dir() {
        return Err(Failure::new(format!(
            "{shown} is a file; --append adds to a folder or URL that holds a living corpus"
        )));
    }
    let entries = fs::read_dir(place).map_err(|error| Failure::with_cause(shown, &error))?;
    let names = entries.flatten().map(|entry| entry.file_name());
    match names.filter(|name| !FOLDERS.iter().any(|folder| name == folder)).min() {
        Some(other) if !is_living_folder(place) => Err(Failure::new(format!(
            "{} holds other files, such as {}; name a new folder for the living corpus",
            place.display(),
            other.to_string_lossy()
        ))),
        _ => Ok(()),
    }
}

/// The URL that `place` is, if it is one.
pub fn url_of(place: &Path) -> Option<&str> {
    place.to_str().filter(|text| text.contains("://"))
}

async fn open_or_create(
    storage: Arc<dyn Storage>,
    profile: TokenizerProfile,
) -> Result<LivingStore> {
    let open = || LivingStore::open(Arc::clone(&storage), StoreOptions::default());
    loop {
        match open().await {
            Err(Error::Missing { .. }) => {}
            opened => return opened,
        }
        match LivingStore::create(Arc::clone(&storage), profile, StoreOptions::default()).await {
            // Someone else began it a moment ago.
            Err(_) if open().await.is_ok() => {}
            created => return created,
        }
    }
}
