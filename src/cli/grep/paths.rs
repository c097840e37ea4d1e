//! Paths of all documents that are searched: for `--files`, and for those without a line.
//!
//! Each path comes once, in order of its first document. No grammar is read. Memory: O(paths).

use std::collections::{HashMap, HashSet};

use tadoc_session::{BlockingResolver, Corpora, Outcome};

use super::output::Output;
use super::printer::{Format, Style};
use super::selection::Selection;
use crate::ls::Listing;

/// The paths of a corpus.
pub struct Paths<'a> {
    listing: Listing,
    selection: Option<&'a Selection>,
    /// Text in front of each path.
    prefix: &'a str,
}

impl<'a> Paths<'a> {
    /// Reads the paths of `corpora`.
    ///
    /// # Errors
    /// They cannot be read, or they are damaged.
    pub fn read(
        resolver: &BlockingResolver,
        corpora: Corpora,
        version: Option<u64>,
        selection: Option<&'a Selection>,
        prefix: &'a str,
    ) -> Outcome<Self> {
        Ok(Self { listing: Listing::from_corpora(resolver, corpora, version)?, selection, prefix })
    }

    /// Writes the paths of texts without a line, all paths if `is_listing`, or counts of all texts. The output for
    /// those that have a line is `found`.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn write(
        &self,
        style: &Style,
        is_listing: bool,
        found: &HashMap<String, Vec<u8>>,
        output: &mut Output,
    ) -> Outcome {
        let shows_counts = style.format == Format::Counts && !is_listing;
        let mut seen: HashSet<Box<str>> = HashSet::new();
        self.listing.for_each(&mut |document| {
            let is_left_out = self.selection.is_some_and(|selection| !selection.chooses(document.path));
            if seen.contains(document.path) || is_left_out || output.is_complete() {
                return Ok(());
            }
            seen.insert(document.path.into());
            let path = style.shown(&format!("{}{}", self.prefix, document.path));
            let mut text = Vec::new();
            match found.get(&path) {
                Some(counted) if shows_counts => output.write(counted, true),
                Some(_) => Ok(()),
                None if shows_counts => {
                    style.push_count(&mut text, &path, 0);
                    output.write(&text, false)
                }
                None => {
                    style.push_path_alone(&mut text, &path);
                    output.write(&text, true)
                }
            }
        })
    }
}
