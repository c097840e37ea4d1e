//! The files of a folder, or below a prefix of a store, with their sizes and times; and the knowledge of a
//! sync: the files that it has brought into a version.
//!
//! The files are those that `tadoc ingest FOLDER` takes: without hidden files, links and what is no file. Sizes and
//! times are noted before a file is read. So a file that changes while it is read has another time the next time.
//!
//! ```text
//! format u8 | version u64 | commit id 16 | num_ids | folder | options | num_files
//! | files, by path: shared bytes, other bytes | len_bytes | 0, or 1 and the time (zigzag) | num_docs
//! ```
//!
//! All that is known is one frame of zstd (numbers are LEB128, texts have their length) with a CRC32C behind
//! it. A document of the version with an id below `num_ids`, whose path is that of a file or lies below it,
//! came from this file. What cannot be read is as if it was not there: all documents are compared.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use tadoc::format::cursor::{Cursor, Origin, pack, push_varint};
use tadoc::{Error, Result};
use tadoc_documents::pattern::Pattern;
use tadoc_documents::{Input, Source, display};
use tadoc_session::location::{local_path, text_of, url_of};
use tadoc_session::{BlockingResolver, Failure, Outcome};
use tadoc_store::{CommitId, Version};

use crate::inputs::{Skipped, Wanted, walk};

/// A time this close to that of the listing may not be the last one with which the file was written: clocks of files
/// tick, in nanoseconds.
const TICK: i64 = 20_000_000;
/// The same for file systems whose times have whole seconds.
const LONG_TICK: i64 = 2_000_000_000;
/// A time so far in the future was chosen, and a write sets another one.
const FAR: i64 = 86_400_000_000_000;

/// A folder of files.
pub struct Folder {
    /// Its path or URL, as the user wrote it.
    name: PathBuf,
    /// Globs of which a file must match at least one. Without globs, all files are taken.
    globs: Vec<Pattern>,
    follow_links: bool,
    /// Real path or URL of the corpus.
    corpus: PathBuf,
}

/// A file, as it was when it was listed.
#[derive(Debug)]
pub struct Listed {
    pub input: Input,
    pub stamp: Stamp,
}

/// The size of a file and the time of its last change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    pub len_bytes: u64,
    /// Nanoseconds since 1970. `None` if the file may be changed without another time.
    pub modified: Option<i64>,
}

/// The files of a folder.
#[derive(Debug, Default)]
pub struct Files {
    /// In order of name.
    pub files: Vec<Listed>,
    /// Notes about what was left out.
    pub notes: Vec<String>,
}

impl Files {
    /// Returns true if the files of this machine still have their lengths. Those of stores are not looked at.
    pub fn is_still_so(&self) -> bool {
        self.files.iter().all(|file| match &file.input.source {
            Source::File(path) => path.metadata().is_ok_and(|now| now.len() == file.stamp.len_bytes),
            _ => true,
        })
    }

    /// Returns the place of each file by its path.
    pub fn by_path(&self) -> HashMap<&str, usize> {
        self.files.iter().enumerate().map(|(idx, file)| (file.input.path.as_str(), idx)).collect()
    }
}

impl Folder {
    /// Creates a folder whose files go into the corpus at `corpus`.
    ///
    /// # Errors
    /// There is no such folder, or the corpus is it.
    pub fn new(name: &Path, globs: &[Pattern], follow_links: bool, corpus: &Path) -> Outcome<Self> {
        let corpus = match local_path(corpus)? {
            Some(path) => real(&path),
            None => corpus.to_owned(),
        };
        let folder = Self { name: name.to_owned(), globs: globs.to_vec(), follow_links, corpus };
        if let Some(path) = folder.check()?
            && real(&path) == folder.corpus
        {
            let shown = folder.shown();
            return Err(Failure::new(format!("{shown} is the corpus itself; name the folder of its files")));
        }
        Ok(folder)
    }

    /// Returns the folder as text that tells it from others.
    pub fn identity(&self) -> Outcome<String> {
        Ok(match local_path(&self.name)? {
            Some(path) => text_of(&real(&path)).into_owned(),
            None => self.name.to_string_lossy().trim_end_matches('/').to_owned(),
        })
    }

    /// Returns its name for messages.
    pub fn shown(&self) -> String {
        display::path(&self.name)
    }

    /// Lists the files.
    ///
    /// # Errors
    /// The folder is not there, or it cannot be read.
    pub fn list(&self) -> Outcome<Files> {
        let now = nanos(SystemTime::now()).unwrap_or_default();
        match self.check()? {
            Some(path) => self.local(&path, now),
            None => self.stored(now),
        }
    }

    /// Returns the path of a folder of this machine that is there, and `None` for a URL of a store.
    fn check(&self) -> Outcome<Option<PathBuf>> {
        let shown = self.shown();
        if self.name.as_os_str() == "-" {
            return Err(Failure::usage("sync takes a folder; `tadoc ingest - --append` adds standard input"));
        }
        let Some(path) = local_path(&self.name)? else { return Ok(None) };
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => Ok(Some(path)),
            Ok(_) => Err(Failure::new(format!(
                "{shown} is a file, and sync takes a folder; `tadoc edit CORPUS --replace ID {shown}` changes a document"
            ))),
            Err(error) => Err(Failure::with_cause(
                format!("{shown}: no document was dropped, as the folder cannot be read"),
                &error,
            )),
        }
    }

    fn takes(&self, path: &str) -> bool {
        self.globs.is_empty() || self.globs.iter().any(|glob| glob.matches(path))
    }

    fn local(&self, folder: &Path, now: i64) -> Outcome<Files> {
        let real_folder = real(folder);
        let corpus = self.corpus.strip_prefix(&real_folder).ok().map(|below| format!("{}/", text_of(below)));
        let is_corpus = |file: &Path, path: &str| {
            let is_below = corpus.as_ref().is_some_and(|corpus| path.starts_with(corpus));
            is_below || self.follow_links && real(file).starts_with(&self.corpus)
        };
        let mut files = Vec::new();
        let wanted = Wanted { hidden: false, links: self.follow_links };
        let skipped: Skipped = walk(folder, wanted, None, &mut |file, path, metadata| {
            if self.takes(path) && !is_corpus(file, path) {
                let len_bytes = metadata.len();
                let modified = metadata.modified().ok();
                let stamp = Stamp::new(len_bytes, modified, now);
                let input = Input::new(Source::File(file.to_owned()), path.to_owned(), len_bytes);
                files.push(Listed { input, stamp });
            }
        })?;
        Ok(Files { files, notes: skipped.notes() })
    }

    fn stored(&self, now: i64) -> Outcome<Files> {
        let url = self.name.to_string_lossy();
        let folder = format!("{}/", url.trim_end_matches('/'));
        let mut files = Vec::new();
        for stored in BlockingResolver::new()?.files(&self.name)? {
            let name = stored.file.name().to_owned();
            let Some(path) = name.strip_prefix(&folder) else {
                return Err(Failure::new(format!("{} is not a folder; name a prefix, such as {folder}", self.shown())));
            };
            let is_corpus = url_of(&self.corpus).is_some_and(|corpus| {
                name.strip_prefix(corpus.trim_end_matches('/')).is_some_and(|rest| rest.starts_with('/'))
            });
            if !self.takes(path) || is_corpus {
                continue;
            }
            let path = path.to_owned();
            let len_bytes = stored.file.len_bytes();
            let stamp = Stamp::new(len_bytes, Some(stored.file.modified()), now);
            let input = Input::new(Source::Stored(Arc::new(stored)), path, len_bytes);
            files.push(Listed { input, stamp });
        }
        Ok(Files { files, notes: Vec::new() })
    }
}

impl Stamp {
    /// Creates the stamp of a file that was changed last at `modified` and is listed at `now`.
    fn new(len_bytes: u64, modified: Option<SystemTime>, now: i64) -> Self {
        let tick = |modified: i64| if modified % 1_000_000_000 == 0 { LONG_TICK } else { TICK };
        let is_settled =
            |modified: i64| !(now.saturating_sub(tick(modified))..now.saturating_add(FAR)).contains(&modified);
        let modified = modified.and_then(nanos).filter(|&modified| is_settled(modified));
        Self { len_bytes, modified }
    }

    /// Returns true if a file with both stamps was not changed between them.
    pub fn is_unchanged(self, later: Self) -> bool {
        self == later && self.modified.is_some()
    }
}

/// Returns a time in nanoseconds since 1970, if it fits.
fn nanos(time: SystemTime) -> Option<i64> {
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_nanos()).ok(),
        Err(before) => i64::try_from(before.duration().as_nanos()).ok().map(|nanos| -nanos),
    }
}

/// Returns the real path, also of what is not there yet.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match (absolute.parent(), absolute.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => absolute,
    }
}

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
        let commit_id = version.commit_id;
        let num_ids = version.num_doc_ids();
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
        let folder = text(&mut cursor)?;
        let options = text(&mut cursor)?;
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
    use std::time::Duration;

    use super::*;

    #[test]
    fn times_near_the_listing_are_not_trusted() {
        let at = |nanos: u64| Some(UNIX_EPOCH + Duration::from_nanos(nanos));
        let now = 1_700_000_000_500_000_000;
        for (modified, is_trusted) in [
            (1_700_000_000_500_000_000, false),
            (1_700_000_000_490_000_001, false),
            (1_700_000_000_470_000_001, true),
            (1_700_000_000_000_000_000, false),
            (1_699_999_999_000_000_000, false),
            (1_699_999_998_000_000_000, true),
            (1_700_000_001_000_000_001, false),
            (1_800_000_000_000_000_000, true),
        ] {
            let stamp = Stamp::new(7, at(modified), now);
            assert_eq!(stamp.modified.is_some(), is_trusted, "{modified}");
            assert_eq!(stamp.is_unchanged(stamp), is_trusted);
        }
        let before_1970 = Stamp::new(7, UNIX_EPOCH.checked_sub(Duration::from_nanos(5)), now);
        assert_eq!(before_1970.modified, Some(-5));
        assert!(!Stamp::new(7, None, now).is_unchanged(Stamp::new(7, None, now)));
    }

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
