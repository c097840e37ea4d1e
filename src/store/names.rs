//! The names of commits and of the files of a living corpus.
//!
//! ```text
//! versions/00000000000000000007.tadoc-version    version 7
//! versions/known-00000000000000000007-<id>.tadoc-known
//!                                                what a program knows of version 7
//! segments/<id>.tadoc                            a segment file
//! segments/<id>.unfinished                       its mark while its writer is alive
//! ```

use std::fmt;
use std::str::FromStr;

use tadoc::error::{Error, Result};

/// Folder of the versions.
pub(super) const VERSIONS: &str = "versions";
/// Folder of the segment files.
pub(super) const SEGMENTS: &str = "segments";
/// Ending of a file's name while it is written, on disks that show unfinished files.
pub(super) const UNFINISHED: &str = ".unfinished";
/// Beginning of the names of files with what a program knows of a version.
pub(super) const KNOWN: &str = "versions/known-";
const VERSION_EXTENSION: &str = ".tadoc-version";
const KNOWN_EXTENSION: &str = ".tadoc-known";
const SEGMENT_EXTENSION: &str = ".tadoc";

/// Returns the name of the file of version `number`, relative to the location of the corpus.
pub(super) fn version_name(number: u64) -> String {
    format!("{VERSIONS}/{number:020}{VERSION_EXTENSION}")
}

/// Returns the number of the version in the file `name`, if the name has the form of a version's.
pub(super) fn version_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix("versions/")?.strip_suffix(VERSION_EXTENSION)?;
    let number = number.parse().ok()?;
    (version_name(number) == name).then_some(number)
}

/// Returns the name of the file `id` with what a program knows of version `number`, relative to the location of the
/// corpus.
pub(super) fn known_name(number: u64, id: CommitId) -> String {
    format!("{KNOWN}{number:020}-{id}{KNOWN_EXTENSION}")
}

/// Returns the number of the version that the file `name` tells about, if the name has the form of such a file's.
pub(super) fn known_number(name: &str) -> Option<u64> {
    let (number, id) = name.strip_prefix(KNOWN)?.strip_suffix(KNOWN_EXTENSION)?.split_once('-')?;
    let number = number.parse().ok()?;
    let id: CommitId = id.parse().ok()?;
    (known_name(number, id) == name).then_some(number)
}

/// Returns the name of the segment file `id`, relative to the location of the corpus.
pub(super) fn segment_name(id: CommitId) -> String {
    format!("{SEGMENTS}/{id}{SEGMENT_EXTENSION}")
}

/// Returns the name of the file that marks the segment file `name` as unfinished.
pub(super) fn mark_name(name: &str) -> String {
    format!("{}{UNFINISHED}", name.strip_suffix(SEGMENT_EXTENSION).unwrap_or(name))
}

/// Returns the name of the segment file that the file `mark` marks.
pub(super) fn marked_name(mark: &str) -> Option<String> {
    let name = format!("{SEGMENTS}/{}{SEGMENT_EXTENSION}", mark.strip_suffix(UNFINISHED)?);
    segment_id(&name).map(|_| name)
}

/// Returns the id of the segment file `name`, if the name has the form of a segment file's.
pub(super) fn segment_id(name: &str) -> Option<CommitId> {
    name.strip_prefix("segments/")?.strip_suffix(SEGMENT_EXTENSION)?.parse().ok()
}

/// A random number that names a commit or a file: 16 bytes, written as a UUID of version 4.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId([u8; 16]);

impl CommitId {
    /// Creates a new random id.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has no random numbers.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::getrandom(&mut bytes).map_err(|e| Error::io("asking the system for random numbers", e.into()))?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Ok(Self(bytes))
    }

    /// Creates an id from its bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            let dash = if matches!(i, 4 | 6 | 8 | 10) { "-" } else { "" };
            write!(f, "{dash}{byte:02x}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for CommitId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let refuse = || Error::InvalidArgument {
            name: "commit id",
            got: text.into(),
            allowed: "a UUID such as 01234567-89ab-4cde-8f01-23456789abcd".into(),
        };
        let digits: Vec<u8> = text.bytes().filter(|&byte| byte != b'-').collect();
        let mut bytes = [0; 16];
        if digits.len() != 32 {
            return Err(refuse());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |c: u8| char::from(c).to_digit(16).ok_or_else(refuse);
            *byte = (digit(pair[0])? << 4 | digit(pair[1])?) as u8;
        }
        match Self(bytes) {
            // Only one spelling is valid, so that a file has only one name.
            id if id.to_string() == text => Ok(id),
            _ => Err(refuse()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_back_from_their_only_spelling() {
        let id = CommitId::random().unwrap();
        let text = id.to_string();
        assert_eq!(text.parse::<CommitId>().unwrap(), id);
        assert_eq!((text.len(), &text[14..15]), (36, "4"));
        for wrong in ["", "x", &text.replace('-', ""), &text.to_uppercase(), &text[1..]] {
            // An id may have only digits, which are the same in upper and lower case.
            if wrong != text {
                assert!(wrong.parse::<CommitId>().is_err(), "{wrong}");
            }
        }
        assert_ne!(id, CommitId::random().unwrap());
    }

    #[test]
    fn names_come_back() {
        assert_eq!(version_name(7), "versions/00000000000000000007.tadoc-version");
        assert_eq!(version_number(&version_name(u64::MAX)), Some(u64::MAX));
        for wrong in [
            "versions/7.tadoc-version",
            "versions/+0000000000000000007.tadoc-version",
            "versions/00000000000000000007.tadoc-version.unfinished",
            "00000000000000000007.tadoc-version",
        ] {
            assert_eq!(version_number(wrong), None, "{wrong}");
        }
        let id = CommitId::from_bytes([7; 16]);
        assert_eq!(segment_id(&segment_name(id)), Some(id));
        assert_eq!(segment_id("segments/x.tadoc"), None);
        let mark = mark_name(&segment_name(id));
        assert_eq!(marked_name(mark.strip_prefix("segments/").unwrap()), Some(segment_name(id)));
        assert_eq!(marked_name("x.unfinished"), None);
    }
}
