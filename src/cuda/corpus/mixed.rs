//! Batches of edits and reads on a device. Each read sees the text at its place in the batch.
//!
//! ```text
//! operations   insert 3   search 3   append 7   extract 3   insert 3   count 3
//! states                  3 after 1             the same               3 after 5
//! new texts    one of all states that are read, which answers all reads at once;
//!              one of all documents at the end of the batch
//! ```
//!
//! A document in several states becomes several documents of the first text. So its memory grows
//! with the elements of the roots of the states that are read. Batches whose states have 2^31
//! elements or more are refused; split them into smaller ones.

use crate::error::GpuError;
use tadoc::edits::{Answer, EditMode, Operation};
use tadoc::text::{TokenizerProfile, for_each_token};

use super::edits_plan::{BatchPlan, OperationRef, StateRead};
use super::search::{DeviceOffsets, DocWord};
use super::text::{PassageBatch, PassageQuery};
use super::{CorpusEdits, CorpusText, check_limit};

/// A planned batch of edits and reads of a text.
#[derive(Debug)]
pub struct MixedBatch {
    states: CorpusEdits,
    last: CorpusEdits,
    passages: Vec<PassageQuery>,
    words: Vec<DocWord>,
    kinds: Vec<Kind>,
}

/// The kinds of operations.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Edit,
    Extract,
    Search,
    Count,
}

/// The text at the end of a batch and the results of its reads, in device memory.
#[derive(Debug)]
pub struct MixedResults {
    text: CorpusText,
    passages: PassageBatch,
    words: DeviceOffsets,
    kinds: Vec<Kind>,
}

impl CorpusText {
    /// Plans the edits and reads of `operations` on this text, whose corpus has the tokenizer
    /// `profile`. Offsets of reads refer to the text at their place in the batch, in either mode.
    ///
    /// # Errors
    ///
    /// The errors of [`plan_edits`](Self::plan_edits), and [`GpuError::Mismatch`] for a search that
    /// is not one word.
    pub fn plan_mixed(
        &self,
        profile: TokenizerProfile,
        mode: EditMode,
        operations: &[Operation],
    ) -> Result<MixedBatch, GpuError> {
        let plan = BatchPlan::new(self, mode, operations.iter().map(OperationRef::from))?;
        let states = CorpusEdits::new(self, profile, &plan.states)?;
        let last = CorpusEdits::new(self, profile, &plan.last)?;
        let kinds = operations.iter().map(Kind::from_operation).collect();
        let (mut passages, mut words) = (Vec::new(), Vec::new());
        let new_words = states.new_words();
        for &StateRead { state: doc, read } in &plan.reads {
            match read {
                Operation::Extract { offset_bytes: offset, len_bytes, .. } => {
                    passages.push(PassageQuery { doc, offset: *offset, len_bytes: *len_bytes });
                }
                Operation::Search { word, .. } | Operation::Count { word, .. } => {
                    check_word(profile, word)?;
                    let new = || new_words.get(word.as_bytes()).copied();
                    words.push(DocWord { doc, word: self.word_id(word.as_bytes()).or_else(new) });
                }
                Operation::Edit(_) => {}
            }
        }
        drop(new_words);
        Ok(MixedBatch { states, last, passages, words, kinds })
    }
}

impl Kind {
    fn from_operation(operation: &Operation) -> Self {
        match operation {
            Operation::Edit(_) => Self::Edit,
            Operation::Extract { .. } => Self::Extract,
            Operation::Search { .. } => Self::Search,
            Operation::Count { .. } => Self::Count,
        }
    }
}

impl MixedBatch {
    /// Applies the edits and answers the reads. The original text stays unchanged.
    ///
    /// # Errors
    ///
    /// The errors of [`CorpusEdits::write`], and those of the reads.
    pub fn run(&self) -> Result<MixedResults, GpuError> {
        let states = self.states.write()?;
        let reader = states.passages()?;
        let mut passages = reader.batch(&self.passages)?;
        reader.run(&mut passages)?;
        let finder = states.words()?;
        let words = finder.find(&mut finder.batch(&self.words)?, u64::MAX)?;
        let text = self.last.write()?;
        Ok(MixedResults { text, passages, words, kinds: self.kinds.clone() })
    }
}

impl MixedResults {
    /// Returns the text after all edits.
    pub fn text(&self) -> &CorpusText {
        &self.text
    }

    /// Copies the answers to the host, in the order of the operations.
    ///
    /// # Errors
    ///
    /// [`GpuError::Driver`], also for faults of the work.
    pub fn to_host(&self) -> Result<Vec<Answer>, GpuError> {
        let (passages, words) = (self.passages.to_host()?, self.words.to_host()?);
        let (mut passage, mut word) = (0.., 0..);
        let mut next_words = || words.get(word.next().unwrap_or_default());
        let mut next_passage = || passages.get(passage.next().unwrap_or_default());
        let answer = |kind: &Kind| match kind {
            Kind::Edit => Answer::Edited,
            Kind::Extract => Answer::Text(next_passage().to_vec()),
            Kind::Search => Answer::Offsets(next_words().to_vec()),
            Kind::Count => Answer::Count(next_words().len() as u64),
        };
        Ok(self.kinds.iter().map(answer).collect())
    }
}

/// Checks that `word` is exactly one word. Anything else would never be found.
fn check_word(profile: TokenizerProfile, word: &str) -> Result<(), GpuError> {
    let (mut num_tokens, mut is_word) = (0, false);
    for_each_token(profile, word.as_bytes(), |token| {
        num_tokens += 1;
        is_word = token.is_word;
    });
    check_limit("searches for what is not one word", usize::from(num_tokens != 1 || !is_word), 0)
}
