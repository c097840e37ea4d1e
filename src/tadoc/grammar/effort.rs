//! Effort of the rounds builder: the time that it spends on a smaller grammar.
//!
//! The numbers are those of one thread, time from text to sections and size of the file against
//! `balanced`, by a driver that is not kept (26 November 2026, least of two runs on a machine with other
//! work). `tadoc ingest --threads 1 --effort NAME` shows the same.
//!
//! | text | fast: time, size | small: time, size |
//! | --- | --- | --- |
//! | Markdown pages, 6 MB | 0.77, 1.031 | 1.7, 0.998 |
//! | prose, 8 MB | 0.93, 1.009 | 1.6, 0.999 |
//! | logs, 14 MB | 0.88, 1.117 | 1.3, 0.997 |
//! | revisions of documents, 7.5 MB | 0.69, 1.143 | 1.5, 0.972 |
//! | sources of crates, 40 MB | 0.82, 1.059 | 1.2, 0.996 |
//!
//! `fast` cannot be much faster: without any round, tokens, learning, numbering pairs and coding take
//! half to nine tenths of the time, and files of logs and sources are 1.24 to 1.5 times as large.
//! Rejected experiments: threshold 6 at the end (no faster), falling by 16 (logs 1.17 times as large),
//! samples half and twice as long (slower, or larger), no repeats (revisions 1.22). `small` gains most where
//! text repeats in revisions; a fourth pass gains 0.1 % at most, samples of half the text gain nothing.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Time that the rounds builder spends on a smaller grammar. Every reader reads every grammar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Effort {
    /// Fewer rounds, in one pass.
    Fast,
    /// A second pass where text repeats itself.
    #[default]
    Balanced,
    /// Rounds for pairs that occur twice, in four passes.
    Small,
}

impl Effort {
    /// All efforts, the fastest first.
    pub const ALL: [Self; 3] = [Self::Fast, Self::Balanced, Self::Small];

    /// Returns the name in options, files and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Balanced => "balanced",
            Self::Small => "small",
        }
    }

    /// Returns the number of passes over the builder's own result, for a grammar of `num_elements`
    /// elements and a text of `num_tokens` tokens.
    pub(super) fn num_more_passes(self, num_elements: usize, num_tokens: usize) -> usize {
        match self {
            Self::Fast => 0,
            Self::Balanced => usize::from(num_elements <= num_tokens / REPEAT_SHARE),
            Self::Small => 3,
        }
    }
}

/// If G is at most N / 3, the rounds of `balanced` run a second time over their own result (root and
/// rule bodies). Inlining moves rule borders, so repeats that were cut differently in two places become
/// equal. On e-peps-revisions G falls by 5.7 % and time rises by a fifth, on d-logs G falls by 1 %,
/// on prose by 0.3 %. A third run reduces G by another 1.7 % on e-peps-revisions and by nothing on
/// logs.
const REPEAT_SHARE: usize = 3;

impl fmt::Display for Effort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Effort {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|effort| effort.as_str() == name).ok_or_else(|| {
            let allowed = "fast, balanced or small".into();
            Error::InvalidArgument { name: "effort", got: name.into(), allowed }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back() {
        for effort in Effort::ALL {
            assert_eq!(effort.to_string().parse::<Effort>().unwrap(), effort);
        }
        let refused = "tiny".parse::<Effort>().unwrap_err().to_string();
        assert!(refused.contains("fast, balanced or small"), "{refused}");
    }
}
