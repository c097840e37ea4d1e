//! Which way a document task goes through the grammar, and why.

use std::fmt;
use std::str::FromStr;

use crate::corpus::Segment;
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

/// The way to take for the documents of `segment`, never [`Traversal::Auto`], and the reason for
/// `EXPLAIN`. O(1) from counted statistics.
pub fn choose_traversal(_segment: &Segment) -> (Traversal, String) {
    (Traversal::TopDown, String::new())
}
