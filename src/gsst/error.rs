//! The error type of the crate, with variants by cause.
//!
//! Every text says what was expected, what came, and the way out; variants that concern bytes name
//! the file, the section and the offset. The *type* is public API, the text is not.

/// `Result` with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can go wrong while encoding, opening or decoding string columns.
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
    /// A library below us failed.
    #[error("{what}: {source}")]
    External {
        /// What was being done.
        what: String,
        /// The cause.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

impl Error {
    /// Returns true where stored bytes are not what was written.
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Format { .. } | Self::Checksum { .. })
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
