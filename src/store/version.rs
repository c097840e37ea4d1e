//! The value type of one version of a living corpus.
//!
//! ```text
//! parts        [ file A: 3 ids ][ file B: 2 ids ][ edits of version 9: 1 id ]
//! ids            0   1   2         3   4            5
//! dropped            1..2                                  ids whose documents are dropped
//! edits_since  8: the edits of versions 8, 9, … up to this one apply to the parts, in order
//! ```
//!
//! Ids are dense over the parts and permanent: a dropped document keeps its id. Files hold a
//! document for every id. Those of dropped ids are empty.

use std::fmt;
use std::ops::{Range, RangeInclusive};
use std::time::{Duration, SystemTime};

use super::names::{CommitId, segment_name};
use tadoc::text::TokenizerProfile;

/// Largest number of a version.
const MAX_NUMBER: u64 = u64::MAX >> 1;

/// Purpose of a commit, as the history shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum CommitKind {
    /// Creation of the corpus.
    Create = 0,
    /// Addition of documents from files.
    Append = 1,
    /// Insertion of rows.
    Insert = 2,
    /// Dropping of documents.
    Delete = 3,
    /// Replacement of documents' bytes.
    Update = 4,
    /// Edits of the text of documents.
    Edit = 5,
    /// Optimization of parts and edits, which changes no document.
    Optimize = 6,
}

impl CommitKind {
    const ALL: [Self; 7] =
        [Self::Create, Self::Append, Self::Insert, Self::Delete, Self::Update, Self::Edit, Self::Optimize];

    /// Returns the number that is stored in files.
    pub fn as_u8(self) -> u8 {
        self as u8
    }

    /// Returns the kind stored under this number, if this build knows it.
    pub fn from_u8(stored: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_u8() == stored)
    }

    /// Returns the name used in SQL and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Append => "append",
            Self::Insert => "insert",
            Self::Delete => "delete",
            Self::Update => "update",
            Self::Edit => "edit",
            Self::Optimize => "optimize",
        }
    }
}

impl fmt::Display for CommitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Counts of the changes of a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommitCounts {
    /// Number of documents added, in files and by edits.
    pub docs_added: u64,
    /// Number of documents dropped.
    pub docs_dropped: u64,
    /// Number of edits, those that add and drop documents included.
    pub edits: u64,
    /// Bytes of text added by documents, insertions and replacements.
    pub text_bytes: u64,
}

/// A run of documents with consecutive ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// A `.tadoc` file of one or more segments.
    File {
        /// Id that names the file: `segments/<id>.tadoc`.
        id: CommitId,
        /// Length of the file, in bytes.
        len_bytes: u64,
        /// CRC32C of all bytes of the file.
        crc32c: u32,
        /// Number of documents in the file.
        num_docs: u64,
    },
    /// Documents that the edits of a version added.
    Edits {
        /// Number of the version.
        version: u64,
        /// Number of documents that it added.
        num_docs: u64,
    },
}

impl Part {
    /// Returns the number of ids that the part covers.
    pub fn num_docs(&self) -> u64 {
        match self {
            Self::File { num_docs, .. } | Self::Edits { num_docs, .. } => *num_docs,
        }
    }

    /// Returns the length of the file in bytes, if the part is a file.
    pub fn file_len_bytes(&self) -> Option<u64> {
        match self {
            Self::File { len_bytes, .. } => Some(*len_bytes),
            Self::Edits { .. } => None,
        }
    }

    /// Returns the name of the file, relative to the location of the corpus, if the part is a file.
    pub fn file_name(&self) -> Option<String> {
        match self {
            Self::File { id, .. } => Some(segment_name(*id)),
            Self::Edits { .. } => None,
        }
    }
}

/// The place up to which a source was read into a corpus, such as a log that grows. Commits carry
/// it on, so that a writer that was killed goes on where its last commit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bookmark {
    /// Name of the source, as its reader chose it.
    pub source: String,
    /// Place in the source, in the form of its reader.
    pub place: String,
}

/// A state of a living corpus after one commit. It never changes and is cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// Number of the version: 1 for the commit that created the corpus.
    pub number: u64,
    /// Id of the commit that made this version.
    pub commit_id: CommitId,
    /// Id of the commit that made the version before. Zeros for the first version.
    pub parent_id: CommitId,
    /// Time of the commit, in microseconds since 1970, by the writer's clock. Never before the
    /// parent's.
    pub time_us: u64,
    /// Purpose of the commit.
    pub kind: CommitKind,
    /// Counts of the commit's changes.
    pub counts: CommitCounts,
    /// Name and version of the program that wrote the version.
    pub writer: String,
    /// Tokenizer profile of all parts.
    pub profile: TokenizerProfile,
    /// Parts with the documents in order of id.
    pub parts: Vec<Part>,
    /// Ranges of ids whose documents are dropped in the parts. Ascending, neither empty nor
    /// adjacent.
    pub dropped: Vec<Range<u64>>,
    /// First version whose edits are not in the parts, or the next version's number if there is
    /// none.
    pub edits_since: u64,
    /// True if edits that are not in the parts may set user columns.
    pub sets_columns: bool,
    /// Bookmarks of all sources that were read up to a place, in ascending order of their names.
    pub bookmarks: Vec<Bookmark>,
}

impl Version {
    /// Returns the number of document ids given so far, those of dropped documents included.
    pub fn num_doc_ids(&self) -> u64 {
        self.parts.iter().map(Part::num_docs).fold(0, u64::saturating_add)
    }

    /// Returns each part with its range of ids.
    pub fn part_ids(&self) -> impl Iterator<Item = (&Part, Range<u64>)> {
        self.parts.iter().scan(0u64, |end, part| {
            let first = *end;
            *end = end.saturating_add(part.num_docs());
            Some((part, first..*end))
        })
    }

    /// Returns the versions whose edits apply to the parts, in order. Empty if all edits are in the
    /// parts.
    pub fn edit_versions(&self) -> RangeInclusive<u64> {
        self.edits_since..=self.number
    }

    /// Returns the place up to which `source` was read, if a commit has stored one.
    pub fn bookmark(&self, source: &str) -> Option<&str> {
        let idx = self.bookmark_idx(source).ok()?;
        self.bookmarks.get(idx).map(|bookmark| bookmark.place.as_str())
    }

    /// Stores the place up to which a source was read.
    pub(super) fn set_bookmark(&mut self, bookmark: Bookmark) {
        match self.bookmark_idx(&bookmark.source) {
            Ok(idx) => self.bookmarks[idx] = bookmark,
            Err(idx) => self.bookmarks.insert(idx, bookmark),
        }
    }

    fn bookmark_idx(&self, source: &str) -> std::result::Result<usize, usize> {
        self.bookmarks.binary_search_by(|bookmark| bookmark.source.as_str().cmp(source))
    }

    /// Returns the time of the commit.
    pub fn time(&self) -> SystemTime {
        // The sum stays in the clock's range, because decoding a manifest limits the time.
        SystemTime::UNIX_EPOCH + Duration::from_micros(self.time_us)
    }

    /// Returns a description of the first contradiction between the fields, or `None` if there is
    /// none.
    pub(super) fn contradiction(&self) -> Option<String> {
        let number = self.number;
        // The limit leaves room for the numbers of later versions.
        if !(1..=MAX_NUMBER).contains(&number) || !(1..=number + 1).contains(&self.edits_since) {
            return Some(format!("edits since {}, version {number}", self.edits_since));
        }
        let mut num_ids = Some(0u64);
        let mut files = std::collections::HashSet::new();
        let mut last_edits = self.edits_since - 1;
        for part in &self.parts {
            num_ids = num_ids.and_then(|sum| sum.checked_add(part.num_docs()));
            match part {
                Part::File { id, .. } if !files.insert(*id) => {
                    return Some(format!("two parts of the file {id}"));
                }
                Part::Edits { version, .. } if *version <= last_edits || *version > number => {
                    return Some(format!("a part of the edits of version {version}"));
                }
                Part::Edits { version, .. } => last_edits = *version,
                Part::File { .. } => {}
            }
        }
        let Some(num_ids) = num_ids else { return Some("more than 2^64 documents".into()) };
        let mut end = None;
        for range in &self.dropped {
            if range.is_empty() || end.is_some_and(|end| range.start <= end) || range.end > num_ids {
                return Some(format!("dropped documents {range:?} of {num_ids}"));
            }
            end = Some(range.end);
        }
        let is_disordered = |pair: &[Bookmark]| pair[0].source >= pair[1].source;
        let disordered = self.bookmarks.windows(2).find(|pair| is_disordered(pair));
        disordered.map(|pair| format!("bookmarks of {:?} before {:?}", pair[0].source, pair[1].source))
    }
}
