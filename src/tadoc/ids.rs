//! Ids as types of their own, so that the id of a rule is not taken for that of an element, nor a
//! word for a document.
//!
//! ```
//! use tadoc::ids::{RuleId, WordId};
//!
//! let word = WordId::from(7);
//! let counts = [0; 8];
//! assert_eq!((counts[word.index()], word.to_string()), (0, "7".to_owned()));
//! assert_eq!(u32::from(RuleId::from(3)), 3);
//! ```

use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
        #[repr(transparent)]
        pub struct $name(u32);

        impl $name {
            /// Returns the id as an index of an array.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl From<u32> for $name {
            #[inline]
            fn from(id: u32) -> Self {
                Self(id)
            }
        }

        impl From<$name> for u32 {
            #[inline]
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl From<$name> for u64 {
            #[inline]
            fn from(id: $name) -> Self {
                id.0.into()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(formatter)
            }
        }
    };
}

id! {
    /// Id of a word in the dictionary of a segment. It is also the word's id as an element.
    WordId
}

id! {
    /// Id of a rule of a grammar: 0 is the root, and parents come before children.
    ///
    /// The id of the rule as an element is larger by the number of terminals
    /// ([`Grammar::element_of`](crate::grammar::Grammar::element_of)).
    RuleId
}

impl RuleId {
    /// The root.
    pub const ROOT: Self = Self(0);
}
