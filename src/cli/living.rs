//! Opens and creates living corpora, and waits for their reads and writes.

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
use crate::location::{is_living_folder, url_of};
use crate::output::note;
use crate::resolver::{BlockingResolver, Corpora};

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

    /// Opens the corpus at `location`, or creates one without documents there.
    ///
    /// # Errors
    /// The corpus exists and has another tokenizer than `profile`, or it cannot be opened or
    /// created.
    pub fn open_or_create(location: &Path, profile: Option<TokenizerProfile>) -> Outcome<Self> {
        let resolver = BlockingResolver::new()?;
        let storage = resolver.inner.storage(location)?;
        let store = resolver.wait(open_or_create(storage, profile.unwrap_or_default()))?;
        match profile {
            Some(asked) if asked != store.profile() => Err(Failure::new(format!(
                "{}: --tokenizer {asked}, but the corpus was created with {}; leave it out",
                location.display(),
                store.profile()
            ))),
            _ => Ok(Self { store, resolver }),
        }
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

    /// Compresses the corpus anew if its edits exceed the share `ratio` after the commit of
    /// `version`.
    ///
    /// Returns a message if it did. If compression fails, the commit remains valid, and the
    /// function prints a note.
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
        let location = self.store.location();
        match self.wait(self.store.recompress_if_due(version, &options)) {
            Ok(done) => {
                done.map(|done| format!("{location}: version {}: compressed anew", done.number))
            }
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
            // Another process created the corpus in the meantime.
            Err(_) if open().await.is_ok() => {}
            created => return created,
        }
    }
}
