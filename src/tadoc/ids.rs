//! Ids as types of their own, so that the id of a rule is not taken for that of an element, nor a word for a document.
//!
//! ```
//! use tadoc::ids::{DocId, RuleId, WordId};
//!
//! let word = WordId::from(7);
//! let counts = [0; 8];
//! assert_eq!((counts[word.index()], word.to_string()), (0, "7".to_owned()));
//! assert_eq!(u32::from(RuleId::from(3)), 3);
//!
//! let docs: Vec<DocId> = DocId::range(1..3).collect();
//! let first_doc_id = 40;
//! assert_eq!(docs.iter().map(|&doc| first_doc_id + u64::from(doc)).max(), Some(42));
//! ```

use std::fmt;
use std::ops::Range;

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
    /// (`Grammar::element_for`).
    RuleId
}

impl RuleId {
    /// The root.
    pub const ROOT: Self = Self(0);
}

id! {
    /// Id of a document in its segment: documents are numbered from 0.
    ///
    /// Its id in the corpus, `doc_id` in rows, is larger by the segment's first id
    /// ([`Corpus::doc_id`](crate::segment::Corpus::doc_id)).
    DocId
}

impl DocId {
    /// The first document, the only one that can continue a document of an earlier segment.
    pub const FIRST: Self = Self(0);

    /// Returns the id of the document at `index` among those of its segment, fewer than 2^32.
    #[inline]
    pub fn from_index(index: usize) -> Self {
        debug_assert!(u32::try_from(index).is_ok(), "{index} is no index of a document");
        Self(index as u32)
    }

    /// Returns the ids of the documents at `indexes`.
    pub fn range(indexes: Range<usize>) -> impl ExactSizeIterator<Item = Self> + DoubleEndedIterator + use<> {
        indexes.map(Self::from_index)
    }
}
