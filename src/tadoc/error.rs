//! The one error type of the crate, with variants by cause.
//!
//! Every text says what was expected, what came, and the way out; variants that concern
//! bytes name the file, the section and the offset. The *type* is public API, the text is not.
//! Foreign errors are boxed, so the core names neither Arrow nor DataFusion nor CUDA.

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong while building, opening or querying a corpus.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not what the format asks for.
    #[error("{file}: section {section}, offset {offset}: {reason}")]
    Format {
        /// File (or URL) the bytes came from.
        file: String,
        /// Section of the file, such as `footer` or `grammar`.
        section: &'static str,
        /// Byte offset inside the file where the section starts or the fault was seen.
        offset: u64,
        /// What was expected and what came.
        reason: String,
    },
    /// The file asks for something this build does not know.
    #[error(
        "{file}: written with {got}, this build reads {expected}; use a newer datafusion-tadoc"
    )]
    Version {
        /// File (or URL) the bytes came from.
        file: String,
        /// What this build reads.
        expected: String,
        /// What the file asks for.
        got: String,
    },
    /// Stored and computed checksums differ.
    #[error(
        "{file}: section {section}, offset {offset}: checksum {got:#010x} instead of {expected:#010x}; \
         the file is damaged, restore it from a copy"
    )]
    Checksum {
        /// File (or URL) the bytes came from.
        file: String,
        /// Section of the file.
        section: &'static str,
        /// Byte offset of the section inside the file.
        offset: u64,
        /// CRC32C that is stored.
        expected: u32,
        /// CRC32C of the bytes that are there.
        got: u32,
    },
    /// A caller's argument cannot be used.
    #[error("{name}: got {got}, expected {allowed}")]
    InvalidArgument {
        /// Name of the argument.
        name: &'static str,
        /// What was passed.
        got: String,
        /// What would have been accepted.
        allowed: String,
    },
    /// An index or offset lies outside what it points into.
    #[error("{what} {got} is out of range, there are {len}")]
    OutOfRange {
        /// What is indexed, such as `doc_id`.
        what: &'static str,
        /// The value that was passed.
        got: u64,
        /// One past the largest accepted value.
        len: u64,
    },
    /// A configured limit would be exceeded.
    #[error("{what} needs {requested}, the limit is {limit}; raise {knob} to allow it")]
    Capacity {
        /// What would grow too large.
        what: &'static str,
        /// How much was asked for.
        requested: u64,
        /// The limit in force.
        limit: u64,
        /// Name of the setting that moves the limit.
        knob: &'static str,
    },
    /// One query of a batch cannot be answered; no other is answered either.
    #[error("query {query_idx} of the batch: {source}")]
    InBatch {
        /// Its index in the batch, the least of those that fail.
        query_idx: usize,
        /// What is wrong with it.
        source: Box<Error>,
    },
    /// The operating system or a store refused.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, with the path.
        what: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A library below us failed.
    #[error("{what}: {source}")]
    External {
        /// What was being done.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A living corpus has no such version or file.
    #[error("{place}: there is no {what}; {existing}")]
    Missing {
        /// Folder or prefix of the corpus.
        place: String,
        /// What was asked for, such as `version 7`.
        what: String,
        /// What there is, or what may have happened.
        existing: String,
    },
    /// Another commit came first and changed what this one was about; nothing happened.
    #[error("{what}: version {version} came first; look at it and try again")]
    Conflict {
        /// What was being done, with the place.
        what: String,
        /// The version of the other commit.
        version: u64,
    },
    /// A commit was sent off and it is not known whether it happened.
    #[error(
        "{place}: no answer whether version {version} was committed: {source}; before trying again, \
         look for commit {commit_id} in the history"
    )]
    UnknownCommit {
        /// Folder or prefix of the corpus.
        place: String,
        /// The version it would be.
        version: u64,
        /// The commit.
        commit_id: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// What is done at once needs more memory than a task was given: of a session the setting, or what its pool has left.
    pub fn memory_of_task(what: &'static str, requested: u64, limit: u64) -> Self {
        let knob = "tadoc.max_memory_bytes, or the session's memory limit where that is less,";
        Self::Capacity { what, requested, limit, knob }
    }

    /// What is counted does not fit into 64 bits.
    pub fn count_overflow(what: &'static str) -> Self {
        let (requested, limit) = (u64::MAX, u64::MAX - 1);
        Self::Capacity { what, requested, limit, knob: "nothing (counts are 64-bit numbers)" }
    }

    /// Returns true where stored bytes are not what was written. False says nothing of them: they could
    /// not be read, or a limit or a version of the format stands in the way.
    pub fn is_damage(&self) -> bool {
        match self {
            Self::Format { .. } | Self::Checksum { .. } => true,
            Self::InBatch { source, .. } => source.is_damage(),
            _ => false,
        }
    }

    /// Wraps an I/O error with what was being done.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { what: what.into(), source }
    }

    /// Wraps a library's error with what was being done.
    pub fn external(
        what: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self::External { what: what.into(), source: source.into() }
    }
}

const _: () = assert!(size_of::<Error>() <= 96);
