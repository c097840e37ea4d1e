//! Folding of a vocabulary: words that a query treats as equal share a row. Nothing of it is
//! stored.
//!
//! ```text
//! vocabulary   0 Apple   1 BEAR   2 apple   3 bear   4 cat
//! folded       0 apple = rows 0, 2          1 bear = rows 1, 3          2 cat = row 4
//! ```
//!
//! The words of a folded [`Vocabulary`] are the folded texts, in byte order. Each row has the ids
//! of all words that fold to its text. Tasks that work by rows fold with the vocabulary and need no
//! code for it. O(words * log words), but most comparisons are saved because words in lower case
//! are already in order. The texts are copied once.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::text::{Dictionary, Fold};

use super::Vocabulary;

/// Minimum number of rows of a parallel task, so that one thread folds a small vocabulary.
const TASK_ROWS: usize = 4096;

impl Vocabulary {
    /// Returns the vocabulary in which words that `fold` makes equal share a row.
    ///
    /// # Errors
    /// [`Error::Capacity`] if the folded words have 4 GiB or more.
    pub fn folded(&self, fold: &Fold) -> Result<Self> {
        if *fold == Fold::NONE {
            return Ok(self.clone());
        }
        let rows = (0..self.len()).into_par_iter().with_min_len(TASK_ROWS);
        let mut folded: Vec<(Cow<'_, str>, usize)> =
            rows.map(|row| (fold.text(self.word(row)), row)).collect();
        // A stable sort is fast where much is in order already, and keeps rows with the same text
        // in order.
        folded.par_sort_by(|a, b| a.0.cmp(&b.0));
        let groups = || folded.chunk_by(|a, b| a.0 == b.0);
        let texts = dictionary(groups().map(|group| &*group[0].0))?;
        Ok(self.grouped(texts, groups().map(|group| group.iter().map(|(_, row)| *row))))
    }
}

/// Builds the dictionary of `words`, which ascend.
fn dictionary<'a>(words: impl Iterator<Item = &'a str>) -> Result<Dictionary> {
    let (mut bytes, mut offsets) = (Vec::new(), vec![0]);
    for word in words {
        bytes.extend_from_slice(word.as_bytes());
        offsets.push(u32::try_from(bytes.len()).map_err(|_| too_large(bytes.len()))?);
    }
    Dictionary::from_parts((offsets.len() - 1) as u32, offsets, bytes.into())
}

fn too_large(len_bytes: usize) -> Error {
    Error::Capacity {
        what: "the folded words of a corpus in bytes",
        requested: len_bytes as u64,
        limit: u64::from(u32::MAX),
        knob: "nothing; query fewer segments at once",
    }
}
