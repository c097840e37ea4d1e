//! The files to read, one [`Input`] each.

use std::fmt;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::display;

/// Source of the bytes of an [`Input`].
#[derive(Debug, Clone)]
pub enum Source {
    /// A file or a named pipe.
    File(PathBuf),
    /// A file in a store.
    Stored(Arc<dyn StoredFile>),
    /// Standard input.
    Stdin,
    /// Bytes in memory. Messages call them by the path of their documents.
    Text {
        /// The bytes.
        bytes: Bytes,
        /// Number of lines before them, if they are a part of a file.
        lines_before: u64,
    },
    /// A member of an archive, with its name for messages. Only its reader can open it.
    Member(String),
}

/// A file in a store, which the caller knows how to reach.
pub trait StoredFile: fmt::Debug + Send + Sync {
    /// Returns the URL of the file.
    fn name(&self) -> &str;

    /// Returns the time of the last change.
    fn modified(&self) -> SystemTime;

    /// Requests the file and returns a reader of all its bytes. The first `ahead_bytes` come while nobody
    /// waits for them. `answered` gets the time up to the answer of the store.
    fn reader(&self, ahead_bytes: u64, answered: Box<dyn FnOnce(Duration) + Send>) -> Box<dyn StoredBytes>;
}

/// A reader of the bytes of a file that was requested.
pub trait StoredBytes: Read {
    /// Returns true if reading does not wait for the request.
    fn has_answer(&self) -> bool;
}

/// One file to read.
///
/// ```
/// use tadoc_documents::{Input, Source};
///
/// let source = Source::Text { bytes: "to be".into(), lines_before: 0 };
/// let input = Input::new(source, "a.txt".to_owned(), 5);
/// assert_eq!((input.shown(), input.members), ("a.txt".to_owned(), "a.txt/".to_owned()));
/// ```
#[derive(Debug, Clone)]
pub struct Input {
    /// Source of the bytes.
    pub source: Source,
    /// Path of the documents in the input: its name as text, see [`path_text`](tadoc::format::path_text).
    pub path: String,
    /// Text in front of the paths of members, if the input is an archive. It is empty for an archive
    /// that is named alone, as for a folder.
    pub members: String,
    /// Size on disk in bytes, or 0 if unknown.
    pub len_bytes: u64,
    /// Time of the last change, if an archive around the input states it.
    pub changed: Option<SystemTime>,
}

impl Input {
    /// Creates the input `path`. Members have its path in front.
    pub fn new(source: Source, path: String, len_bytes: u64) -> Self {
        let members = format!("{path}/");
        Self { source, path, members, len_bytes, changed: None }
    }

    /// Returns the name of the input for messages.
    pub fn shown(&self) -> String {
        match &self.source {
            Source::File(path) => display::path(path),
            Source::Stored(stored) => display::plain(stored.name()).into_owned(),
            Source::Stdin => "standard input".to_owned(),
            Source::Text { .. } => display::plain(&self.path).into_owned(),
            Source::Member(shown) => shown.clone(),
        }
    }

    /// Returns the number of lines before the input, if it is a part of a file.
    pub fn lines_before(&self) -> usize {
        match self.source {
            Source::Text { lines_before, .. } => usize::try_from(lines_before).unwrap_or_default(),
            _ => 0,
        }
    }
}

/// Returns the time `seconds` after 1970, or none for 0, which stands for no time.
pub fn since_1970(seconds: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).filter(|_| seconds > 0)
}
