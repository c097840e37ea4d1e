//! Data sources: locations, files, footers, and corpora in memory.
//!
//! ```text
//! location ─▶ SourceFile ─ footer ─▶ OpenFile ─ loading ─▶ LoadedFile ─▶ LoadedCorpus
//!                                                              └── cache: kept while memory allows
//! ```
//!
//! [`Source`] is the input of one scan. `resolver` resolves locations outside of statements.
//!
//! Reading order: `glob`, `location` and `local_files` (files behind a location), `open_file` (files with footers,
//! and parts of them), `memory` (of these parts), `loaded`, `stored_file`, `loading`, `skipping`, `listed`, `units` and
//! `cache` (corpora in memory, and what is read instead), `columns` (user columns), `living` (versions of living
//! corpora), `common_words` (of corpora that several machines read), `resolver`.

pub(crate) mod cache;
pub(crate) mod columns;
mod common_words;
pub(crate) mod glob;
mod listed;
pub(crate) mod living;
pub(crate) mod loaded;
mod loading;
pub(crate) mod local_files;
pub(crate) mod location;
pub(crate) mod memory;
pub(crate) mod open_file;
mod resolver;
mod skipping;
mod stored_file;
mod units;

pub use cache::CorpusCache;
pub(crate) use columns::FoundColumns;
pub(crate) use common_words::{CommonWords, have_common_words};
pub(crate) use listed::CountedCorpus;
pub(crate) use loaded::{FactTable, LoadContext, LoadedCorpus};
pub use location::made_store;
pub use memory::is_memory_of_corpora;
pub use open_file::OpenFile;
pub use resolver::{FileAt, Found, Resolver, with_stores};
pub(crate) use skipping::Sought;

use std::ops::Range;
use std::sync::Arc;

use crate::corpora::living::{FoundCorpus, LivingView};
use location::SourceFile;
use tadoc::text::TokenizerProfile;
use tadoc_store::Version;

/// Files that a scan reads.
#[derive(Debug, Clone)]
pub enum Source {
    /// Corpora, with their footers.
    Corpora(Vec<OpenFile>),
    /// A version of a living corpus, with the footers of its files.
    Living(Arc<LivingView>),
    /// A version of a living corpus whose files are still to be opened.
    Unchecked(Arc<FoundCorpus>, Version),
    /// Files whose footers are not read yet.
    Files(Vec<SourceFile>),
}

impl Source {
    /// Returns the corpora that are read; an empty slice if plain files are read.
    pub(crate) fn corpora(&self) -> &[OpenFile] {
        match self {
            Source::Corpora(files) => files,
            Source::Living(view) => &view.files,
            Source::Unchecked(..) | Source::Files(_) => &[],
        }
    }

    /// Returns the version of a living corpus that is read.
    pub(crate) fn living(&self) -> Option<&Arc<LivingView>> {
        match self {
            Source::Living(view) => Some(view),
            _ => None,
        }
    }

    /// Returns true if all files contain word counts and no edit changed them.
    pub(crate) fn has_word_counts(&self) -> bool {
        let mut segments = self.corpora().iter().flat_map(|open| &open.footer.segments);
        segments.all(|segment| segment.words_range().is_some())
            && self.living().is_none_or(|view| view.has_texts_of_files())
    }

    /// Returns true if all files contain the lengths of their documents and no edit changed them.
    pub(crate) fn has_document_facts(&self) -> bool {
        let mut segments = self.corpora().iter().flat_map(|open| &open.footer.segments);
        segments.all(|segment| segment.facts_range().is_some())
            && self.living().is_none_or(|view| {
                let mut parts = view.version.parts.iter();
                view.has_texts_of_files() && parts.all(|part| part.file_name().is_some())
            })
    }

    /// Returns the positions of the files that hold documents of `doc_ids` (ascending), in a source
    /// that [has facts](Self::has_document_facts).
    pub(crate) fn files_with(&self, doc_ids: &[u64]) -> Vec<usize> {
        let mut first_id = 0;
        let mut holds_any = |open: &OpenFile| {
            let end = first_id + open.footer.num_docs();
            let place = doc_ids.partition_point(|&id| id < first_id);
            first_id = end;
            doc_ids.get(place).is_some_and(|&id| id < end)
        };
        let files = self.corpora().iter().enumerate();
        files.filter(|(_, open)| holds_any(open)).map(|(place, _)| place).collect()
    }

    /// Returns, for each segment of the corpora in order, the documents of which it has a part.
    pub(crate) fn docs_of_segments(&self) -> Vec<Range<u64>> {
        let firsts: Vec<u64> = match self.living() {
            Some(view) => view.first_ids_of_files(),
            None => {
                let num_docs = self.corpora().iter().map(|open| open.footer.num_docs());
                let first = |end: &mut u64, num_docs: u64| {
                    let first = *end;
                    *end = first.saturating_add(num_docs);
                    Some(first)
                };
                num_docs.scan(0, first).collect()
            }
        };
        let docs_in_file = |(open, first): (&OpenFile, u64)| {
            let docs = open.footer.docs_of_segments().into_iter();
            docs.map(move |docs| first + docs.start..first + docs.end)
        };
        self.corpora().iter().zip(firsts).flat_map(docs_in_file).collect()
    }

    /// Returns the tokenizer profile of questions to all files, which were checked to have one.
    pub(crate) fn profile(&self) -> TokenizerProfile {
        let living = self.living().map(|view| view.version.profile);
        let profiles = || self.corpora().iter().map(|open| open.footer.profile);
        living.or_else(|| profiles().reduce(|one, other| one.together(other).unwrap_or(one))).unwrap_or_default()
    }

    /// Returns the ids of dropped documents, ascending.
    pub(crate) fn dropped(&self) -> &[u64] {
        self.living().map_or(&[], |view| &view.dropped)
    }

    /// Returns true if document `doc_id` was dropped.
    pub(crate) fn is_dropped(&self, doc_id: u64) -> bool {
        self.dropped().binary_search(&doc_id).is_ok()
    }
}
