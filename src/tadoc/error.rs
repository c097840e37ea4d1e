//! Error type of the crate, with one variant for each cause.
//!
//! Every message says what was expected, what came, and what the user can do. Variants that concern
//! bytes name the file, the section and the offset. The *type* is public API, the text is not.
//! Errors of other libraries are boxed, so the crate names neither Arrow nor DataFusion nor CUDA.
//!
//! ```
//! use tadoc::format::OpenLimits;
//! use tadoc::{Corpus, Error};
//!
//! let opened = Corpus::from_bytes("notes.tadoc", b"no corpus", &OpenLimits::default());
//! match opened {
//!     Err(Error::Format { file, reason, .. }) => println!("{file} is no corpus: {reason}"),
//!     _ => unreachable!(),
//! }
//! ```

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error of building, opening or querying a corpus.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes violate the file format.
    #[error("{file}: section {section}, offset {offset}: {reason}")]
    Format {
        /// Location of the file.
        file: String,
        /// Section of the file, such as `footer` or `grammar`.
        section: &'static str,
        /// Byte offset in the file of the section, or of the fault inside it.
        offset: u64,
        /// Explanation that names the expected and the actual value.
        reason: String,
    },
    /// The file needs something that this build does not know.
    #[error("{file}: written with {got}, this build reads {expected}; use a newer datafusion-tadoc")]
    Version {
        /// Location of the file.
        file: String,
        /// Versions or names that this build reads.
        expected: String,
        /// Version or name that the file needs.
        got: String,
    },
    /// The stored and the computed checksum differ.
    #[error(
        "{file}: section {section}, offset {offset}: checksum {got:#010x} instead of {expected:#010x}; \
         the file is damaged, restore it from a copy"
    )]
    Checksum {
        /// Location of the file.
        file: String,
        /// Section of the file.
        section: &'static str,
        /// Byte offset of the section in the file.
        offset: u64,
        /// CRC32C stored in the file.
        expected: u32,
        /// CRC32C of the bytes in the file.
        got: u32,
    },
    /// An argument of the caller cannot be used.
    #[error("{name}: got {got}, expected {allowed}")]
    InvalidArgument {
        /// Name of the argument.
        name: &'static str,
        /// Value that was passed.
        got: String,
        /// Description of the values that are accepted.
        allowed: String,
    },
    /// An index or offset lies outside its range.
    #[error("{what} {got} is out of range, there are {len}")]
    OutOfRange {
        /// Name of the index, such as `doc_id`.
        what: &'static str,
        /// Value that was passed.
        got: u64,
        /// One past the largest accepted value.
        len: u64,
    },
    /// An offset lies behind the end of a document.
    #[error(
        "{what} {got} is behind the end of {}, which has {len_bytes} bytes",
        name_for(*doc_id, path)
    )]
    PastEnd {
        /// Name of the offset, such as `byte_offset`.
        what: &'static str,
        /// Value that was passed.
        got: u64,
        /// Id of the document.
        doc_id: u64,
        /// Path of the document, where it is at hand. The message has it in place of the id.
        path: Option<String>,
        /// Length of the document, which is the largest accepted value.
        len_bytes: u64,
    },
    /// A configured limit would be exceeded.
    #[error("{what} needs {requested}, the limit is {limit}; raise {knob} to allow it")]
    Capacity {
        /// Thing that would grow too large.
        what: &'static str,
        /// Amount that was requested.
        requested: u64,
        /// Limit in force.
        limit: u64,
        /// Name of the setting that changes the limit.
        knob: &'static str,
    },
    /// One query of a batch cannot be answered, so no query of the batch is answered.
    #[error("query {query_idx} of the batch: {source}")]
    InBatch {
        /// Index of the query in the batch, the smallest of those that fail.
        query_idx: usize,
        /// Error of this query.
        source: Box<Error>,
    },
    /// The operating system or a store reported an error.
    #[error("{what}: {source}")]
    Io {
        /// Operation that failed, with the path.
        what: String,
        /// Cause of the failure.
        source: std::io::Error,
    },
    /// A library that this crate calls failed.
    #[error("{what}: {source}")]
    External {
        /// Operation that failed.
        what: String,
        /// Cause of the failure.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A living corpus does not have this version or file.
    #[error("{location}: there is no {what}; {existing}")]
    Missing {
        /// Folder or prefix of the corpus.
        location: String,
        /// Thing that was requested, such as `version 7`.
        what: String,
        /// Things that exist, or a possible explanation.
        existing: String,
    },
    /// Another commit came first and changed the same documents. This commit changed nothing.
    #[error("{what}: version {version} came first; look at it and try again")]
    Conflict {
        /// Operation that failed, with the location.
        what: String,
        /// Version that the other commit created.
        version: u64,
    },
    /// A commit was sent, and its outcome is unknown.
    #[error(
        "{location}: no answer whether version {version} was committed: {source}; before trying \
         again, look for commit {commit_id} in the history"
    )]
    UnknownCommit {
        /// Folder or prefix of the corpus.
        location: String,
        /// Version that the commit would create.
        version: u64,
        /// Id of the commit.
        commit_id: String,
        /// Cause of the failure.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Returns the error for a step that needs more memory than its task may use. The limit is the
    /// setting of the session, or the rest of the session's memory pool if that is less.
    pub(crate) fn memory_of_task(what: &'static str, requested: u64, limit: u64) -> Self {
        let knob = "tadoc.max_memory_bytes, or the session's memory limit where that is less,";
        Self::Capacity { what, requested, limit, knob }
    }

    /// Returns the error for a count that does not fit into 64 bits.
    pub(crate) fn count_overflow(what: &'static str) -> Self {
        let requested = u64::MAX;
        let limit = u64::MAX - 1;
        Self::Capacity { what, requested, limit, knob: "nothing (counts are 64-bit numbers)" }
    }

    /// Returns the same error about document `id` at `path`, if it is about an offset in a
    /// document.
    pub(crate) fn in_document(self, id: u64, path: Option<&str>) -> Self {
        match self {
            Self::PastEnd { what, got, len_bytes, .. } => {
                Self::PastEnd { what, got, doc_id: id, path: path.map(str::to_owned), len_bytes }
            }
            other => other,
        }
    }

    /// Returns true if stored bytes differ from the bytes that were written. False does not mean
    /// that they are intact: they could not be read, or a limit or a format version prevented it.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Format { .. } | Self::Checksum { .. } => true,
            Self::InBatch { source, .. } => source.is_damage(),
            _ => false,
        }
    }

    /// Wraps an I/O error with a description of the operation.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }

    /// Wraps an error of a library with a description of the operation.
    pub fn external(what: impl Into<String>, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::External { what: what.into(), source: source.into() }
    }
}

fn name_for(doc_id: u64, path: &Option<String>) -> String {
    match path {
        Some(path) if !path.is_empty() => path.clone(),
        _ => format!("document {doc_id}"),
    }
}

const _: () = assert!(size_of::<Error>() <= 96);
