//! The words of a whole corpus, by which machines that read some of its segments number words alike.
//!
//! ```text
//! segments of the corpus    0 1 2 3 4 5     words and their counts alone: a tenth of the corpus
//! segments of a machine         2 3         opened with the dictionaries that are there already
//! ```

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use datafusion::common::internal_err;
use datafusion::error::Result;

use crate::corpora::OpenFile;
use tadoc::segment::Corpus;
use tadoc::text::Dictionary;

/// The words of a whole corpus. See the module's description.
#[derive(Debug)]
pub(crate) struct CommonWords {
    /// The corpus, at least its words.
    corpus: Corpus,
    /// Place of the first segment of each file, and its segments, by the version of the file.
    files: HashMap<String, (usize, Range<usize>)>,
}

impl CommonWords {
    /// Takes the words of `corpus`, which has the segments of `files`.
    pub(crate) fn new(corpus: Corpus, files: &[OpenFile]) -> Self {
        let mut first = 0;
        let mut known = HashMap::new();
        for open in files {
            known.insert(open.file.version_key(), (first, segments_of(open)));
            first += open.footer.segments.len();
        }
        Self { corpus, files: known }
    }

    /// Returns the places of the segments of `files` in the corpus, in order.
    ///
    /// # Errors
    /// An internal error if the corpus does not have them.
    pub(crate) fn places(&self, files: &[OpenFile]) -> Result<Vec<usize>> {
        let mut places = Vec::new();
        for open in files {
            for at in 0..open.footer.segments.len() {
                match self.place(open, at) {
                    Some(place) => places.push(place),
                    None => return internal_err!("the corpus lacks segment {at} of {}", open.file.path),
                }
            }
        }
        Ok(places)
    }

    /// Returns the dictionary of segment `segment_idx` of `open`, if the corpus has it.
    pub(super) fn dictionary(&self, open: &OpenFile, segment_idx: usize) -> Option<&Dictionary> {
        Some(&self.corpus.segments().get(self.place(open, segment_idx)?)?.dictionary)
    }

    fn place(&self, open: &OpenFile, segment_idx: usize) -> Option<usize> {
        let (first, known) = self.files.get(&open.file.version_key())?;
        let segment = segments_of(open).start + segment_idx;
        known.contains(&segment).then(|| first + segment - known.start)
    }
}

/// Returns the segments of its file that `open` has.
fn segments_of(open: &OpenFile) -> Range<usize> {
    open.segments().unwrap_or(0..open.footer.segments.len())
}

/// Returns true if the words of `files` can number those of their segments: each has its words apart, and none is
/// there twice.
pub(crate) fn have_common_words(files: &[OpenFile]) -> bool {
    let mut known = HashSet::new();
    let mut segments = files.iter().flat_map(|open| &open.footer.segments);
    files.iter().all(|open| known.insert(open.file.version_key()))
        && segments.all(|segment| segment.words_range().is_some())
}
