//! A corpus in parts, for tasks that load parts one by one.

use tadoc::Corpus;
use tadoc::analytics::CorpusParts;

/// A corpus in parts that are never in memory together by themselves.
pub(crate) struct Parts(pub(crate) Vec<Corpus>);

impl Parts {
    /// Cuts `corpus` wherever no document crosses.
    pub(crate) fn of(corpus: &Corpus) -> Self {
        let mut parts: Vec<Vec<_>> = Vec::new();
        for segment in corpus.segments() {
            match parts.last_mut().filter(|_| segment.continues) {
                Some(part) => part.push(segment.clone()),
                None => parts.push(vec![segment.clone()]),
            }
        }
        let part = |segments| Corpus::new(corpus.profile(), segments);
        Self(parts.into_iter().map(part).collect())
    }
}

impl CorpusParts for Parts {
    type Part = Corpus;

    fn num_parts(&self) -> usize {
        self.0.len()
    }

    fn num_words(&self) -> u64 {
        1_000
    }

    fn part(&self, index: usize) -> tadoc::Result<Corpus> {
        Ok(self.0[index].clone())
    }

    fn hold(&self, _bytes: u64) -> tadoc::Result<()> {
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}
