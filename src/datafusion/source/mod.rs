//! What is read: locations, files, footers, and corpora in memory.
//!
//! ```text
//! location ─▶ SourceFile ─ footer ─▶ OpenFile ─ loading ─▶ LoadedFile ─▶ LoadedCorpus
//!                                                              └── cache: kept while memory allows
//! ```
//!
//! [`Source`] is what one scan reads. `resolver` resolves locations outside of statements.

pub(crate) mod cache;
pub(crate) mod columns;
mod enough;
mod footer;
pub(crate) mod loaded;
mod loading;
pub(crate) mod local_files;
pub(crate) mod location;
pub(crate) mod memory;
pub(crate) mod open_file;
mod resolver;
mod sections;

pub(crate) use cache::CorpusCache;
pub use enough::enough_memory;
pub(crate) use loaded::{LoadContext, LoadedCorpus};
pub(crate) use open_file::OpenFile;
pub use resolver::{FileAt, Found, Resolver};

use std::sync::Arc;

use crate::store::{FoundCorpus, LivingView};
use location::SourceFile;
use tadoc::text::TokenizerProfile;
use tadoc_store::Version;

/// The files a scan reads.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// Corpora, with their footers.
    Corpora(Vec<OpenFile>),
    /// A version of a living corpus, with the footers of its files.
    Living(Arc<LivingView>),
    /// A version of a living corpus whose files are still to be opened.
    Unchecked(Arc<FoundCorpus>, Version),
    /// Files of which nothing is known yet.
    Files(Vec<SourceFile>),
}

impl Source {
    /// The corpora that are read; none where plain files are.
    pub(crate) fn corpora(&self) -> &[OpenFile] {
        match self {
            Source::Corpora(files) => files,
            Source::Living(view) => &view.files,
            Source::Unchecked(..) | Source::Files(_) => &[],
        }
    }

    /// The version that is read, of a living corpus.
    pub(crate) fn living(&self) -> Option<&Arc<LivingView>> {
        match self {
            Source::Living(view) => Some(view),
            _ => None,
        }
    }

    /// Whether all files say how often each word occurs, and no edit changed it.
    pub(crate) fn has_word_counts(&self) -> bool {
        let mut segments = self.corpora().iter().flat_map(|open| &open.footer.segments);
        segments.all(|segment| segment.words_range().is_some())
            && self.living().is_none_or(|view| view.has_texts_of_files())
    }

    /// How text is cut into tokens.
    pub(crate) fn profile(&self) -> TokenizerProfile {
        let living = self.living().map(|view| view.version.profile);
        let first = || self.corpora().first().map(|open| open.footer.profile);
        living.or_else(first).unwrap_or_default()
    }

    /// Ids of dropped documents, ascending.
    pub(crate) fn dropped(&self) -> &[u64] {
        self.living().map_or(&[], |view| &view.dropped)
    }

    /// Whether document `doc_id` was dropped.
    pub(crate) fn is_dropped(&self, doc_id: u64) -> bool {
        self.dropped().binary_search(&doc_id).is_ok()
    }
}
