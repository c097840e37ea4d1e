//! Traversals of a document task, and the shape of a segment that decides between them.

use std::fmt;
use std::iter::Sum;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::format::SegmentMeta;
use crate::segment::Segment;

/// Order in which a task by document visits the rules. All traversals give the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Traversal {
    /// Traversal that [`choose_task_traversal`](super::choose_task_traversal) chooses.
    #[default]
    Auto,
    /// Top-down: sets or counts of documents flow from parents to children, several documents in
    /// one sweep.
    TopDown,
    /// Bottom-up: sets of words flow from children to parents, or sequences get numbers. Documents
    /// add up the results of their rules.
    BottomUp,
    /// Token scan: every token of every document is read.
    TokenScan,
}

impl Traversal {
    const ALL: [Self; 4] = [Self::Auto, Self::TopDown, Self::BottomUp, Self::TokenScan];

    /// Returns the name used in SQL.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::TopDown => "top_down",
            Self::BottomUp => "bottom_up",
            Self::TokenScan => "token_scan",
        }
    }
}

impl fmt::Display for Traversal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

impl FromStr for Traversal {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|traversal| traversal.as_str() == name).ok_or_else(|| {
            Error::InvalidArgument {
                name: "traversal",
                got: name.to_owned(),
                allowed: "one of auto, top_down, bottom_up, token_scan".to_owned(),
            }
        })
    }
}

/// Statistics that decide about a traversal. A footer has them, so `EXPLAIN` needs no grammar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SegmentShape {
    /// Number of documents.
    pub num_docs: u64,
    /// Number of words of the text.
    pub num_words: u64,
    /// G: number of elements on all right-hand sides.
    pub num_elements: u64,
    /// Bytes of text.
    pub len_bytes: u64,
    /// Number of distinct words. Several segments are counted as if they had no word in common,
    /// which is closer to the truth than the number of one segment.
    pub vocabulary_len: u64,
}

/// Adds up the shapes of several segments to the shape of one.
impl Sum for SegmentShape {
    fn sum<I: Iterator<Item = Self>>(shapes: I) -> Self {
        shapes.fold(Self::default(), |sum, shape| Self {
            num_docs: sum.num_docs.saturating_add(shape.num_docs),
            num_words: sum.num_words.saturating_add(shape.num_words),
            num_elements: sum.num_elements.saturating_add(shape.num_elements),
            len_bytes: sum.len_bytes.saturating_add(shape.len_bytes),
            vocabulary_len: sum.vocabulary_len.saturating_add(shape.vocabulary_len),
        })
    }
}

impl From<&Segment> for SegmentShape {
    fn from(segment: &Segment) -> Self {
        let dag = &segment.dag;
        let root = dag.num_terminals();
        Self {
            num_docs: dag.grammar().num_docs() as u64,
            num_words: dag.len_words(root),
            num_elements: dag.grammar().symbols.len() as u64,
            len_bytes: dag.len_bytes(root),
            vocabulary_len: u64::from(dag.num_words()),
        }
    }
}

impl From<&SegmentMeta> for SegmentShape {
    fn from(meta: &SegmentMeta) -> Self {
        Self {
            num_docs: meta.num_docs,
            num_words: meta.num_word_tokens,
            num_elements: meta.num_elements,
            len_bytes: meta.len_bytes,
            vocabulary_len: u64::from(meta.num_words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_setting() {
        for way in Traversal::ALL {
            assert_eq!(way.to_string().parse::<Traversal>().unwrap(), way);
        }
        let fault = "sideways".parse::<Traversal>().unwrap_err();
        assert!(matches!(fault, Error::InvalidArgument { name: "traversal", .. }), "{fault}");
    }
}
