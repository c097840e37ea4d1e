//! The corpora of a place, searched one after the other.

use std::ops::ControlFlow;

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
    /// As [`corpora`](Self::corpora).
    fn file(&mut self, file: &CorpusFile) -> Outcome<ControlFlow<()>>;

    /// Writes the lines of `corpora`.
    ///
    /// # Errors
    /// They cannot be read, or they are damaged.
    fn corpora(
        &mut self,
        resolver: &BlockingResolver,
        corpora: Corpora,
        version: Option<u64>,
    ) -> Outcome<ControlFlow<()>> {
        match corpora {
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
