//! A grammar as it is stored, which can be searched before all of it is decoded.
//!
//! ```text
//! layout    rules      elements of the documents
//! fast      decoded    read as marks, one byte each, or decoded when all are asked for
//! small     decoded    decoded
//! ```
//!
//! Most elements are those of documents. A search only needs to know if an element can be a part of what
//! it looks for, and reads them as marks in half of the time.

use crate::error::Result;
use crate::format::codecs::packed_grammar::RulesFirst;
use crate::grammar::Grammar;

/// A grammar whose rules are decoded and valid.
#[derive(Debug)]
pub struct StoredGrammar<'a>(Parts<'a>);

#[derive(Debug)]
enum Parts<'a> {
    Whole(Grammar),
    RulesFirst(Box<RulesFirst<'a>>),
}

impl<'a> StoredGrammar<'a> {
    /// Takes a valid grammar.
    pub(crate) fn whole(grammar: Grammar) -> Self {
        Self(Parts::Whole(grammar))
    }

    /// Takes a grammar whose [`rules`](Self::rules) are valid.
    pub(super) fn rules_first(grammar: RulesFirst<'a>) -> Self {
        Self(Parts::RulesFirst(Box::new(grammar)))
    }

    /// Returns the rules. The root may lack elements of documents.
    pub(crate) fn rules(&self) -> &Grammar {
        match &self.0 {
            Parts::Whole(grammar) => grammar,
            Parts::RulesFirst(grammar) => grammar.rules(),
        }
    }

    /// Returns the offsets of the documents in the root, and the marks of all its elements. `marks` has one
    /// below 255 for each element.
    ///
    /// # Errors
    /// [`Error::Format`](crate::Error::Format) if the elements of the documents do not fit the rules.
    pub(crate) fn root_marks(&self, marks: &[u8]) -> Result<(&[u32], Vec<u8>)> {
        match &self.0 {
            Parts::Whole(grammar) => {
                let root = grammar.root().iter().map(|&element| marks[element as usize]);
                Ok((&grammar.doc_offsets, root.collect()))
            }
            Parts::RulesFirst(grammar) => grammar.root_marks(marks),
        }
    }

    /// Decodes what is left.
    ///
    /// # Errors
    /// Same as [`root_marks`](Self::root_marks).
    pub(super) fn complete(self) -> Result<Grammar> {
        match self.0 {
            Parts::Whole(grammar) => Ok(grammar),
            Parts::RulesFirst(grammar) => grammar.complete(),
        }
    }
}
