//! Words that count as one: a map from rows to rows, made for a query, never in storage.
//!
//! ```text
//! vocabulary   0 Apple   1 BEAR   2 apple   3 bear   4 cat
//! folded       0 apple = rows 0, 2          1 bear = rows 1, 3          2 cat = row 4
//! ```
//!
//! A folded [`Vocabulary`] has the folded texts as its words, in byte order, and behind each row the
//! ids of all words that fold to it. Tasks that go by rows fold with it and need not know. O(words *
//! log words), most of it spared because words in lower case are in order already; the texts are
//! copied once.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::text::{Dictionary, Fold};

use super::Vocabulary;

/// Rows of a task, so that small vocabularies are folded by one thread.
const TASK_ROWS: usize = 4096;

impl Vocabulary {
    /// The words with those joined that `fold` makes equal.
    ///
    /// # Errors
    /// [`Error::Capacity`] for 4 GiB of folded words or more.
    pub fn folded(&self, fold: Fold) -> Result<Self> {
        if fold == Fold::None {
            return Ok(self.clone());
        }
        let rows = (0..self.len()).into_par_iter().with_min_len(TASK_ROWS);
        let mut folded: Vec<(Cow<'_, str>, usize)> =
            rows.map(|row| (fold.text(self.word(row)), row)).collect();
        // Stable and quick where much is in order; rows of the same text stay in order.
        folded.par_sort_by(|a, b| a.0.cmp(&b.0));
        let groups = || folded.chunk_by(|a, b| a.0 == b.0);
        let texts = dictionary(groups().map(|group| &*group[0].0))?;
        Ok(self.grouped(texts, groups().map(|group| group.iter().map(|(_, row)| *row))))
    }
}

/// The dictionary of `words`, ascending.
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
