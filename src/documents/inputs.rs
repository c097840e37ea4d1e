//! The files to read, one [`Input`] each, and the requests for those that lie in stores ([`Ahead`]).
//!
//! ```text
//! inputs     a  b  c  d … z  …        a is being read
//! requests   a  b  c  d … z           the next begins when a is done
//! ```
//!
//! Inputs are read in their order, and so the first error in this order is the one that is reported. Files
//! are requested before the reader comes to them, so that many small ones do not wait for one another.
//!
//! The number of requests at a time begins with [`MIN_REQUESTS`]. It grows by a quarter whenever the reader has to
//! wait, up to [`MAX_REQUESTS`]. An answer that takes longer than [`SLOW`] halves it, down to the least: the store may
//! have refused requests because there were too many, and those are repeated after a time. Together the requests hold
//! at most [`MAX_BYTES`] of their files in memory, but for a chunk of each.

use std::collections::VecDeque;
use std::fmt;
use std::io::Read;
use std::iter::Peekable;
use std::path::PathBuf;
use std::slice::Iter;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
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

/// Number of files that are requested at the same time, at first and at least.
const MIN_REQUESTS: usize = 32;
/// Largest number of files that are requested at the same time.
const MAX_REQUESTS: usize = 256;
/// Most bytes of files that are in memory before anybody asks for them.
const MAX_BYTES: u64 = 32 << 20;
/// Most bytes of one of these files.
const MAX_FILE_BYTES: u64 = 1 << 20;
/// Time of an answer that shows that a store has too much to do.
const SLOW: Duration = Duration::from_secs(1);

/// Inputs with readers of those that lie in stores.
pub struct Ahead<'a> {
    requested: VecDeque<Requested<'a>>,
    /// Bytes that the requests hold at most.
    held_bytes: u64,
    inputs: Peekable<Iter<'a, Input>>,
    window: Arc<Window>,
}

struct Requested<'a> {
    input: &'a Input,
    reader: Option<Box<dyn StoredBytes>>,
    held_bytes: u64,
}

impl<'a> Ahead<'a> {
    pub fn new(inputs: &'a [Input]) -> Self {
        let inputs = inputs.iter().peekable();
        Self { requested: VecDeque::new(), held_bytes: 0, inputs, window: Arc::default() }
    }

    /// Requests files while there is room, at least one.
    fn request(&mut self) {
        while let Some(&input) = self.inputs.peek() {
            let held_bytes = held_bytes(input);
            let has_room = self.requested.len() < self.window.len() && self.held_bytes + held_bytes <= MAX_BYTES;
            if !has_room && !self.requested.is_empty() {
                break;
            }
            self.inputs.next();
            self.held_bytes += held_bytes;
            let reader = match &input.source {
                Source::Stored(stored) => {
                    let window = Arc::clone(&self.window);
                    Some(stored.reader(held_bytes, Box::new(move |took| window.answered(took))))
                }
                _ => None,
            };
            self.requested.push_back(Requested { input, reader, held_bytes });
        }
    }
}

impl<'a> Iterator for Ahead<'a> {
    /// An input, and its reader if it lies in a store.
    type Item = (&'a Input, Option<Box<dyn Read>>);

    fn next(&mut self) -> Option<Self::Item> {
        self.request();
        let Requested { input, reader, held_bytes } = self.requested.pop_front()?;
        self.held_bytes -= held_bytes;
        if reader.as_ref().is_some_and(|reader| !reader.has_answer()) {
            self.window.widen();
            self.request();
        }
        Some((input, reader.map(|reader| reader as Box<dyn Read>)))
    }
}

/// Returns the bytes of `input` that its request holds at most.
fn held_bytes(input: &Input) -> u64 {
    match (&input.source, input.len_bytes) {
        (Source::Stored(_), 0) => MAX_FILE_BYTES,
        (Source::Stored(_), len_bytes) => len_bytes.min(MAX_FILE_BYTES),
        _ => 0,
    }
}

/// Number of requests at a time.
struct Window(AtomicUsize);

impl Default for Window {
    fn default() -> Self {
        Self(AtomicUsize::new(MIN_REQUESTS))
    }
}

impl Window {
    fn len(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn widen(&self) {
        self.change(|len| (len + len / 4).min(MAX_REQUESTS));
    }

    fn answered(&self, took: Duration) {
        if took > SLOW {
            self.change(|len| (len / 2).max(MIN_REQUESTS));
        }
    }

    fn change(&self, new: impl Fn(usize) -> usize) {
        // Both sides of the result are the length before, which nobody needs.
        let _before = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |len| Some(new(len)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_keep_their_order() {
        let text = |n: u32| {
            let bytes = n.to_string().into_bytes().into();
            Source::Text { bytes, lines_before: 0 }
        };
        let inputs: Vec<Input> = (0..1000).map(|n| Input::new(text(n), n.to_string(), 0)).collect();
        let paths = Ahead::new(&inputs).map(|(input, _)| &input.path);
        assert!(paths.eq(inputs.iter().map(|input| &input.path)));
    }

    #[test]
    fn requests_grow_with_waiting_and_shrink_with_slow_answers() {
        let window = Window::default();
        let mut lens = vec![];
        for _ in 0..12 {
            window.widen();
            lens.push(window.len());
        }
        assert!(lens.is_sorted() && lens[0] == 40 && lens[11] == MAX_REQUESTS, "{lens:?}");
        window.answered(Duration::from_millis(20));
        assert_eq!(window.len(), MAX_REQUESTS);
        window.answered(Duration::from_secs(2));
        assert_eq!(window.len(), MAX_REQUESTS / 2);
        (0..9).for_each(|_| window.answered(Duration::from_secs(2)));
        assert_eq!(window.len(), MIN_REQUESTS);
    }
}
