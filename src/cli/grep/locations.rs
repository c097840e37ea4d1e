//! The corpora at a location, searched one after the other.

use std::ops::ControlFlow;
use std::path::Path;

use tadoc::Corpus;
use tadoc::query::PathTexts;
use tadoc_session::{BlockingResolver, Corpora, CorpusFile, Outcome};

use crate::living::Living;

/// A search through corpora. Each call breaks when the output needs no more.
pub trait CorpusSearch {
    /// Writes the lines of a corpus that is all there is.
    ///
    /// # Errors
    /// The corpus is damaged, or the output cannot be written.
    fn whole_corpus(&mut self, corpus: &Corpus, texts: PathTexts) -> Outcome<ControlFlow<()>>;

    /// Writes the lines of a file.
    ///
    /// # Errors
    /// As [`location`](Self::location).
    fn file(&mut self, file: &CorpusFile) -> Outcome<ControlFlow<()>>;

    /// Writes the lines at `location`.
    ///
    /// # Errors
    /// Nothing is at `location`, it cannot be read, or it is damaged.
    fn location(
        &mut self,
        resolver: &BlockingResolver,
        location: &Path,
        version: Option<u64>,
    ) -> Outcome<ControlFlow<()>> {
        match resolver.corpora(location, version)? {
            Corpora::Living(store) => {
                let living = Living { store, resolver: resolver.clone() };
                let living = living.corpus(&living.version(version)?)?;
                let corpus = living.snapshot()?;
                let texts = PathTexts::without(&corpus, &|doc_id| living.is_dropped(doc_id));
                self.whole_corpus(&corpus, texts)
            }
            Corpora::Files(files) => {
                for file in files {
                    if self.file(&file.open()?)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }
}
