//! The knowledge of a sync: the files that it has brought into a version.
//!
//! ```text
//! format u8 | version u64 | commit id 16 | num_ids | folder | options | num_files
//! | files, by path: shared bytes, other bytes | len_bytes | 0, or 1 and the time (zigzag) | num_docs
//! ```
//!
//! All of it is one frame of zstd (numbers are LEB128, texts have their length) with a CRC32C behind it. A document of
//! the version with an id below `num_ids`, whose path is that of a file or lies below it, came from this file. What
//! cannot be read is as if it was not there: all documents are compared.

use std::collections::BTreeMap;

use bytes::Bytes;
use tadoc::format::cursor::{Cursor, Origin, pack, push_varint};
use tadoc::{Error, Result};
use tadoc_store::{CommitId, Version};

use super::folder::Stamp;

/// Number of this format.
const FORMAT: u8 = 1;
const LEVEL: i32 = 3;
const CRC_BYTES: usize = 4;
/// Most bytes of a file's list, unpacked.
const MAX_BYTES: usize = 1 << 31;
const NAME: &str = "what the last sync knew";

/// A file in the corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFile {
    pub stamp: Stamp,
    /// Number of its documents.
    pub num_docs: u64,
}

/// The knowledge of a sync about a version; see the module's description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// Number of the version, and the id of its commit.
    pub version: u64,
    pub commit_id: CommitId,
    /// Number of ids that the version has given.
    pub num_ids: u64,
    /// The folder, and the options with which its files were read.
    pub folder: String,
    pub options: String,
    pub files: BTreeMap<String, KnownFile>,
}

impl Known {
    /// Creates what is known of `version`.
    pub fn new(version: &Version, folder: String, options: String, files: BTreeMap<String, KnownFile>) -> Self {
        let (commit_id, num_ids) = (version.commit_id, version.num_doc_ids());
        Self { version: version.number, commit_id, num_ids, folder, options, files }
    }

    /// Returns the bytes to keep.
    ///
    /// # Errors
    /// [`Error::Io`] from zstd.
    pub fn encode(&self) -> Result<Bytes> {
        let mut raw = vec![FORMAT];
        raw.extend(self.version.to_le_bytes());
        raw.extend(self.commit_id.as_bytes());
        push_varint(&mut raw, self.num_ids);
        push_text(&mut raw, &self.folder);
        push_text(&mut raw, &self.options);
        push_varint(&mut raw, self.files.len() as u64);
        let mut before: &[u8] = &[];
        for (path, KnownFile { stamp, num_docs }) in &self.files {
            let path = path.as_bytes();
            let num_shared = before.iter().zip(path).take_while(|(one, other)| one == other).count();
            push_varint(&mut raw, num_shared as u64);
            push_varint(&mut raw, (path.len() - num_shared) as u64);
            raw.extend(&path[num_shared..]);
            push_varint(&mut raw, stamp.len_bytes);
            raw.push(u8::from(stamp.modified.is_some()));
            if let Some(modified) = stamp.modified {
                push_varint(&mut raw, ((modified << 1) ^ (modified >> 63)).cast_unsigned());
            }
            push_varint(&mut raw, *num_docs);
            before = path;
        }
        let mut bytes = Vec::new();
        pack(&mut bytes, &raw, LEVEL)?;
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
        Ok(bytes.into())
    }

    /// Returns what [`encode`](Self::encode) has written.
    ///
    /// # Errors
    /// [`Error::Format`] and [`Error::Checksum`] for other bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let place = Origin { file: NAME, section: "files", offset: 0 };
        let Some(len) = bytes.len().checked_sub(CRC_BYTES) else { return Err(place.fault(0, "expected a checksum")) };
        let (body, crc32c) = bytes.split_at(len);
        place.verify(body, Cursor::new(place, crc32c).u32()?)?;
        let mut packed = Cursor::new(place, body);
        let raw = packed.unpack(MAX_BYTES)?;
        packed.finish()?;
        let mut cursor = Cursor::new(place, &raw);
        if cursor.u8()? != FORMAT {
            return Err(cursor.fault("expected the format of this build"));
        }
        let version = cursor.u64()?;
        let mut commit_id = [0; 16];
        commit_id.copy_from_slice(cursor.take(16)?);
        let commit_id = CommitId::from_bytes(commit_id);
        let num_ids = cursor.varint()?;
        let (folder, options) = (text(&mut cursor)?, text(&mut cursor)?);
        let mut files = BTreeMap::new();
        let mut path = Vec::new();
        for _ in 0..cursor.varint()? {
            let num_shared = len_of(&mut cursor)?;
            if num_shared > path.len() {
                return Err(cursor.fault("expected a path that shares bytes with the one before"));
            }
            path.truncate(num_shared);
            let num_others = len_of(&mut cursor)?;
            path.extend(cursor.take(num_others)?);
            let len_bytes = cursor.varint()?;
            let modified = match cursor.u8()? {
                0 => None,
                _ => Some(cursor.varint()?),
            };
            let modified = modified.map(|zigzag| (zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed());
            let num_docs = cursor.varint()?;
            let path = String::from_utf8(path.clone()).map_err(|_| cursor.fault("expected a path in UTF-8"))?;
            files.insert(path, KnownFile { stamp: Stamp { len_bytes, modified }, num_docs });
        }
        cursor.finish()?;
        Ok(Self { version, commit_id, num_ids, folder, options, files })
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_varint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

fn text(cursor: &mut Cursor<'_>) -> Result<String> {
    let len = len_of(cursor)?;
    let bytes = cursor.take(len)?.to_vec();
    String::from_utf8(bytes).map_err(|_| cursor.fault("expected a text in UTF-8"))
}

fn len_of(cursor: &mut Cursor<'_>) -> Result<usize> {
    let len = cursor.varint()?;
    usize::try_from(len).map_err(|_| -> Error { cursor.fault("expected a shorter text") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known() -> Known {
        let file = |len_bytes, modified, num_docs| KnownFile { stamp: Stamp { len_bytes, modified }, num_docs };
        let files = [
            ("a.txt", file(7, Some(1_700_000_000_123_456_789), 1)),
            ("a.txt.gz", file(0, Some(-5), 1)),
            ("ä/b", file(u64::MAX, None, 0)),
            ("ä/m.tar", file(1, Some(i64::MIN), 12)),
            ("é", file(1, Some(i64::MAX), 1)),
        ];
        Known {
            version: 7,
            commit_id: CommitId::random().unwrap(),
            num_ids: 300,
            folder: "/w/x".into(),
            options: String::new(),
            files: files.map(|(path, file)| (path.to_owned(), file)).into(),
        }
    }

    #[test]
    fn what_is_known_comes_back() {
        let known = known();
        assert_eq!(Known::decode(&known.encode().unwrap()).unwrap(), known);
        let none = Known { files: BTreeMap::new(), ..known };
        assert_eq!(Known::decode(&none.encode().unwrap()).unwrap(), none);
    }

    #[test]
    fn other_bytes_are_an_error() {
        let bytes = known().encode().unwrap();
        for len in 0..bytes.len() {
            assert!(Known::decode(&bytes[..len]).is_err(), "{len}");
            let mut flipped = bytes.to_vec();
            flipped[len] ^= 0x10;
            assert!(Known::decode(&flipped).is_err(), "{len}");
        }
        // Sealed again, so that only the content is wrong.
        let mut raw = Cursor::new(Origin { file: "", section: "", offset: 0 }, &bytes).unpack(MAX_BYTES).unwrap();
        for at in 0..raw.len() {
            raw[at] ^= 0x55;
            let mut sealed = Vec::new();
            pack(&mut sealed, &raw, LEVEL).unwrap();
            sealed.extend(crc32c::crc32c(&sealed).to_le_bytes());
            let _any = Known::decode(&sealed);
            raw[at] ^= 0x55;
        }
    }
}
