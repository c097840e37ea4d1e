//! A corpus in parts, for tasks that load parts one by one.

use tadoc::Corpus;
use tadoc::analytics::CorpusParts;

/// A corpus in parts that are never in memory together by themselves.
pub(crate) struct Parts(pub(crate) Vec<Corpus>);

impl Parts {
    /// Cuts `corpus` wherever no document crosses.
    pub(crate) fn of(corpus: &Corpus) -> Self {
        let mut parts = Vec::new();
        for segment in corpus.segments() {
            match segment.continues && !parts.is_empty() {
                true => parts.last_mut().map(|part: &mut Vec<_>| part.push(segment.clone())),
                false => Some(parts.push(vec![segment.clone()])),
            };
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
