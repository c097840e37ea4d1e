//! Ids as types of their own, so that the id of a rule is not taken for that of an element.

use std::fmt;

/// Id of a rule of a grammar: 0 is the root, and parents come before children.
///
/// The id of the rule as an element is larger by the number of terminals
/// ([`Grammar::element_of`](crate::grammar::Grammar::element_of)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(transparent)]
pub struct RuleId(u32);

impl RuleId {
    /// The root.
    pub const ROOT: Self = Self(0);

    /// Returns the id as an index of an array with one entry for each rule.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<u32> for RuleId {
    #[inline]
    fn from(id: u32) -> Self {
        Self(id)
    }
}

impl From<RuleId> for u32 {
    #[inline]
    fn from(id: RuleId) -> Self {
        id.0
    }
}

impl From<RuleId> for u64 {
    #[inline]
    fn from(id: RuleId) -> Self {
        id.0.into()
    }
}

impl fmt::Display for RuleId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
