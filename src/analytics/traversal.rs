//! Which way a document task goes through the grammar, and why.

use std::fmt;
use std::str::FromStr;

use crate::corpus::{Segment, SegmentMeta};
use crate::error::{Error, Result};

/// How a task that tells documents apart goes through the grammar. All ways give the same rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Traversal {
    /// Chosen for each segment by [`choose_traversal`].
    #[default]
    Auto,
    /// Sets of documents flow from parents to children, 64 documents in one sweep.
    TopDown,
    /// Sets of words flow from children to parents; documents add up the sets of their rules.
    BottomUp,
    /// Every token of every document is looked at.
    TokenScan,
}

impl Traversal {
    const ALL: [Self; 4] = [Self::Auto, Self::TopDown, Self::BottomUp, Self::TokenScan];

    /// Name as used in SQL.
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

/// Documents below this many words on average are too small for sweeps of 64 to pay: what they
/// share is found sooner in the sets of words of their rules.
const MIN_SWEEP_WORDS_PER_DOC: u64 = 150;
/// Bytes of text for each element of the grammar at most where every token is looked at. Small
/// documents that share nothing have about 6; a hostile file of 1 KB may have 2^60.
const MAX_SCAN_BYTES_PER_ELEMENT: u64 = 64;

/// The way to take for the documents of a segment of this `shape`, never [`Traversal::Auto`], and the reason for
/// `EXPLAIN`. O(1) from counted statistics.
///
/// Milliseconds of processor time for an inverted index (top-down, bottom-up, token scan):
///
/// | corpus | documents | words each | G / words | times |
/// | --- | --- | --- | --- | --- |
/// | Rust sources, 240 MB | 16,259 | 1,892 | 0.40 | **273**, 368, 597 |
/// | logs, 13 MB | 33 | 77,619 | 0.19 | **2.7**, 4.9, 18.6 |
/// | revisions of 18 texts, 7 MB | 361 | 3,084 | 0.14 | **2.2**, 5.1, 13.1 |
/// | English novels, 7 MB | 9 | 146,833 | 0.77 | **7.1**, 10.5, 17.9 |
/// | Markdown pages, 5 MB | 4,486 | 180 | 0.49 | **8.2**, 8.8, 13.0 |
/// | JSON lines, 4 MB | 8,817 | 109 | 0.67 | 14.3, **12.7**, 16.2 |
/// | log lines, 13 MB | 109,428 | 23 | 0.21 | 21.9, **19.6**, 30.3 |
/// | short strings, 13 MB | 686,399 | 2 | 1.19 | 129, 123, **122** |
pub fn choose_traversal(shape: impl Into<SegmentShape>) -> (Traversal, String) {
    let SegmentShape { num_docs, num_words, num_elements, len_bytes } = shape.into();
    let words_per_doc = num_words / num_docs.max(1);
    let reuse = num_elements as f64 / num_words.max(1) as f64;
    let size = format!("documents of {words_per_doc} words, {reuse:.2} grammar elements a word");
    if words_per_doc >= MIN_SWEEP_WORDS_PER_DOC {
        let reason = format!("{size}: each rule is looked at once for 64 documents");
        return (Traversal::TopDown, reason);
    }
    if reuse < 1.0 || len_bytes > num_elements.saturating_mul(MAX_SCAN_BYTES_PER_ELEMENT) {
        let reason = format!("{size}: small documents share sets of words by rule");
        return (Traversal::BottomUp, reason);
    }
    (Traversal::TokenScan, format!("{size}: hardly any rule is used twice in small documents"))
}

/// What the choice of a traversal depends on. A footer has it, so EXPLAIN needs no grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentShape {
    /// Documents.
    pub num_docs: u64,
    /// Words of the text.
    pub num_words: u64,
    /// G: elements on all right-hand sides.
    pub num_elements: u64,
    /// Bytes of text.
    pub len_bytes: u64,
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
