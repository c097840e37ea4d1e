//! Members of archives as inputs of their own: tar and zip, and what is a zip file by another name
//! (jar, whl, epub). An office file (docx, odt) is one input with its text, if that is wanted.
//!
//! ```text
//! input ─▶ decompressed ─┬─ no archive ─▶ reader of the format
//!                        └─ archive ─▶ member ─▶ (the same again, --max-depth)
//!
//! zip: (program) │ PK 3 4: member │ … │ PK 1 2: entry of the list │ … │ PK 5 6: end of the list │ comment
//! ```
//!
//! An archive is treated as a folder: hidden members and symbolic links are left out and counted, and `--glob` chooses
//! members. A hard link is a member with the text of another one ([`tar_links`]).
//! A tar archive is streamed, to the end of the stream around it, where its checksum stands. A zip file has its list of
//! members at the end, so one that is no file on a disk is first copied to a temporary file. A program that unpacks
//! itself is a zip file behind a program. With `--keep-going`, one without a list, as it was cut, is streamed. All
//! decoders of an input share one budget ([`Budget`]), so archives in archives expand no further than one file may.
//!
//! Source of the bytes of zip: APPNOTE.TXT 6.3.10 (PKWARE), 4.3 and appendix D.

mod tar_links;
mod tar_members;
#[cfg(feature = "office")]
mod zip_members;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs::File;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::time::SystemTime;

use memchr::memmem;
use tadoc::build::MAX_PATH_BYTES;
use tadoc::format::path_text;

use self::tar_links::HardLinks;
use self::tar_members::{BoundedHeaders, SparseMember, VOLUME_LABEL, is_tar};
use crate::display;
use crate::failure::{Failure, Faults, Outcome, RAW};
use crate::inputs::{Input, Source, since_1970};
#[cfg(feature = "office")]
use crate::office::is_rtf;
use crate::open::{Budget, Opened, limited, open_member};
use crate::pattern::Pattern;
use crate::remarks::is_script;

/// Options for archives.
#[derive(Debug, Clone)]
pub struct ArchiveOptions {
    /// If false, archives are stored as they are.
    pub is_opened: bool,
    /// Globs of which a member must match at least one. Without globs, all members are taken.
    pub globs: Vec<Pattern>,
    /// Greatest number of archives that lie in each other.
    pub max_depth: u32,
    /// Greatest number of members of an input.
    pub max_members: u64,
}

impl ArchiveOptions {
    /// Default of [`max_depth`](Self::max_depth).
    pub const MAX_DEPTH: u32 = 4;
    /// Default of [`max_members`](Self::max_members).
    pub const MAX_MEMBERS: u64 = 10_000_000;
}

impl Default for ArchiveOptions {
    fn default() -> Self {
        let max_depth = Self::MAX_DEPTH;
        let max_members = Self::MAX_MEMBERS;
        Self { is_opened: true, globs: Vec::new(), max_depth, max_members }
    }
}

/// A reader of one file, which gets its first bytes, too.
pub type Visit<'v> = dyn FnMut(Opened<'_>, &Input, &[u8]) -> Outcome + 'v;

/// Opener of archives.
pub struct Archives<'a> {
    options: &'a ArchiveOptions,
    /// Number of links and special files that were left out.
    num_skipped: u64,
    /// Number of hard links without their member.
    num_unread_links: u64,
    /// Number of hidden members that were left out.
    num_hidden: u64,
    /// Number of members of zip files that were left out because a later one has their name.
    num_replaced: u64,
    /// Number of members of tar archives that have the name of an earlier one.
    num_repeated: u64,
    /// Bytes that the reader of office files may hold in memory, if their text is wanted.
    office_bytes: Option<u64>,
    hasher: RandomState,
}

/// Characters of a name that is too long that are shown.
const MAX_SHOWN_CHARS: usize = 60;

#[derive(Clone, Copy)]
enum Kind {
    Tar,
    Zip,
}

impl Kind {
    fn from_head(head: &[u8]) -> Option<Self> {
        match () {
            () if is_tar(head) => Some(Self::Tar),
            () if is_zip(head) => Some(Self::Zip),
            () => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Tar => "tar archive",
            Self::Zip => "zip file",
        }
    }
}

impl<'a> Archives<'a> {
    pub fn new(options: &'a ArchiveOptions) -> Self {
        Self {
            options,
            num_skipped: 0,
            num_unread_links: 0,
            num_hidden: 0,
            num_replaced: 0,
            num_repeated: 0,
            office_bytes: None,
            hasher: RandomState::new(),
        }
    }

    /// Reads office files as text, with at most `max_held_bytes` in memory.
    pub fn with_office_text(self, max_held_bytes: u64) -> Self {
        Self { office_bytes: Some(max_held_bytes), ..self }
    }

    /// Returns a warning for each kind of members that were left out.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let counts = [
            (self.num_skipped, "link or special file", "of archives left out"),
            (
                self.num_unread_links,
                "hard link",
                "of tar archives left out: no member of that name stands before it, or the archive is a pipe, lies in \
                 another one or is damaged; unpack it, and ingest the folder",
            ),
            (self.num_hidden, "hidden member", "of archives left out"),
            (self.num_replaced, "member", "of zip files left out: a later one has the same name"),
            (
                self.num_repeated,
                "member",
                "of tar archives with the name of an earlier one (tar -r): each is stored, and restore joins them",
            ),
        ];
        let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
        counts.map(|(count, noun, end)| format!("{} {end}", display::plural(count, noun)))
    }

    /// Calls `visit` with `opened`, or with each member if it is an archive.
    ///
    /// # Errors
    /// The archive is damaged or encrypted, it exceeds a limit, and the errors of `visit`.
    pub fn visit(&mut self, opened: Opened<'_>, input: &Input, visit: &mut Visit<'_>) -> Outcome {
        self.visit_below(opened, input, 0, visit)
    }

    fn visit_below(&mut self, mut opened: Opened<'_>, input: &Input, depth: u32, visit: &mut Visit<'_>) -> Outcome {
        let head = opened.head().map_err(|error| opened.failed(input, &error))?;
        if head.is_empty() && opened.budget.faults.is_latest(input) {
            return Ok(());
        }
        if !self.options.is_opened {
            return visit(opened, input, &head);
        }
        let mut kind = Kind::from_head(&head);
        let is_behind = kind.is_none()
            && may_be_zip_behind(&mut opened, input, &head).map_err(|error| opened.failed(input, &error))?;
        if is_behind {
            let mut file = seekable(&mut opened, input)?;
            let failed = |error| damaged(&opened.budget.faults, input, Kind::Zip, &error);
            kind = is_zip_behind(&mut file).map_err(failed)?.then_some(Kind::Zip);
            // A copy was made of the bytes, which are read.
            if opened.reader.fill_buf().is_ok_and(<[u8]>::is_empty) {
                opened.reader = Box::new(BufReader::new(file));
            }
        }
        let Some(kind) = kind else {
            #[cfg(feature = "office")]
            if is_rtf(&head) {
                return self.rtf(opened, input, &head, visit);
            }
            return visit(opened, input, &head);
        };
        if depth == self.options.max_depth {
            return Err(Failure::new(format!(
                "{}: archives lie more than {depth} deep in each other; where that is right, pass a larger \
                 --max-depth, or {RAW}",
                input.shown()
            )));
        }
        match kind {
            Kind::Tar => self.tar(opened, input, depth, visit),
            Kind::Zip => self.zip(opened, input, depth, visit),
        }
    }

    fn tar(&mut self, opened: Opened<'_>, input: &Input, depth: u32, visit: &mut Visit<'_>) -> Outcome {
        let budget = opened.budget.clone();
        let codec = opened.codec;
        let failed = |error: io::Error| {
            if Budget::is_exceeded(&error) {
                budget.failed(codec, input, &error)
            } else {
                damaged(&budget.faults, input, Kind::Tar, &error)
            }
        };
        let mut archive = tar::Archive::new(Ending { inner: BoundedHeaders::new(opened.reader), has_ended: false });
        let mut links = HardLinks::default();
        // Hashes of the names so far.
        let mut names = HashSet::new();
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let entry_type = entry.header().entry_type();
            if entry_type.is_dir() || entry_type.is_pax_global_extensions() || entry_type.as_byte() == VOLUME_LABEL {
                continue;
            }
            if entry_type.is_hard_link() {
                links.add(&entry);
                continue;
            }
            if !(entry_type.is_file() || entry_type.is_contiguous() || entry_type.is_gnu_sparse()) {
                self.num_skipped += 1;
                continue;
            }
            let data_bytes = entry.size();
            let sparse = match entry.pax_extensions().map_err(failed)? {
                Some(extensions) => SparseMember::from_pax(extensions).map_err(failed)?,
                None => None,
            };
            let stated = sparse.as_ref().and_then(|sparse| sparse.name.as_deref());
            let name = stated.map_or_else(|| entry.path_bytes(), Cow::Borrowed);
            // Unix V7 has no type of folders.
            if name.ends_with(b"/") {
                continue;
            }
            let name = path_text(&name).into_owned();
            let len_bytes = sparse.as_ref().map_or(data_bytes, |sparse| sparse.len_bytes);
            let changed = entry.header().mtime().ok().and_then(since_1970);
            if let Some(member) = self.member(input, &name, len_bytes, changed, &budget)? {
                let is_new = names.insert(self.hasher.hash_one(&member.path));
                self.num_repeated += u64::from(!is_new);
                let packed_bytes =
                    if entry_type.is_gnu_sparse() { entry.header().entry_size().map_err(failed)? } else { data_bytes };
                let bytes: io::Result<Box<dyn Read>> = match sparse {
                    Some(sparse) => sparse.open(entry, data_bytes).map(|bytes| Box::new(bytes) as _),
                    None => Ok(Box::new(entry)),
                };
                // Holes take no bytes in the archive.
                let bytes = if len_bytes == packed_bytes {
                    bytes
                } else {
                    bytes.map(|bytes| limited(bytes, &budget.counters(packed_bytes), &budget))
                };
                let outcome = bytes
                    .map_err(failed)
                    .and_then(|bytes| open_member(&member, bytes, true, &budget))
                    .and_then(|opened| self.visit_below(opened, &member, depth + 1, visit));
                budget.faults.pass(&member, outcome)?;
            }
        }
        let rest = archive.into_inner();
        let shown = input.shown();
        if rest.has_ended {
            budget.faults.note(
                input,
                Failure::new(format!(
                    "{shown}: the tar archive has no mark at its end; if it is cut there, members are missing"
                )),
            );
        }
        // The checksum of the stream stands behind the archive.
        let failed = |error: io::Error| match codec {
            Some(_) => budget.failed(codec, input, &error),
            None => failed(error),
        };
        if rest.inner.finish().map_err(failed)? {
            budget.faults.note(
                input,
                Failure::new(format!(
                    "{shown}: bytes behind the end of the tar archive are left out; if they are wanted, split the \
                     file there, or pass {RAW}"
                )),
            );
        }
        self.hard_links(&links, input, depth, &budget, visit)
    }

    /// Refuses a zip file, because this build has no reader of them.
    #[cfg(not(feature = "office"))]
    fn zip(&mut self, _opened: Opened<'_>, input: &Input, _depth: u32, _visit: &mut Visit<'_>) -> Outcome {
        Err(Failure::left_out("zip files", "office").within(input.shown()))
    }

    fn is_wanted(&self, name: &str) -> bool {
        let globs = &self.options.globs;
        globs.is_empty() || globs.iter().any(|glob| glob.matches(name))
    }

    /// Returns the member `name` of `archive` as an input, unless it is not wanted.
    fn member(
        &mut self,
        archive: &Input,
        name: &str,
        len_bytes: u64,
        changed: Option<SystemTime>,
        budget: &Budget,
    ) -> Outcome<Option<Input>> {
        let name = name.trim_start_matches("./");
        let is_hidden = |part: &str| part.starts_with('.') && part != "..";
        if !self.is_wanted(name) {
            return Ok(None);
        }
        if name.split('/').any(is_hidden) {
            self.num_hidden += 1;
            return Ok(None);
        }
        let num_members = budget.num_members.get() + 1;
        budget.num_members.set(num_members);
        if num_members > self.options.max_members {
            return Err(Failure::new(format!(
                "{}: archives have more than {}; where that is right, pass a larger --max-members, or {RAW}",
                archive.shown(),
                display::plural(self.options.max_members, "member")
            )));
        }
        let shown = format!("{}/{}", archive.shown(), display::plain(name));
        let path = format!("{}{name}", archive.members);
        let member = Input::new(Source::Member(shown), path, len_bytes);
        if member.path.len() > MAX_PATH_BYTES {
            let start: String = name.chars().take(MAX_SHOWN_CHARS).collect();
            let failure = Failure::new(format!(
                "{}: the path of the member {}… has {} bytes, and documents have paths of {MAX_PATH_BYTES} at \
                 most; shorten it, or pass {}",
                archive.shown(),
                display::plain(&start),
                member.path.len(),
                budget.faults.ways_out()
            ));
            return budget.faults.pass(&member, Err(failure)).map(|()| None);
        }
        Ok(Some(Input { changed: changed.or(archive.changed), ..member }))
    }
}

/// A reader that notes if its end was read.
struct Ending<R> {
    inner: R,
    has_ended: bool,
}

impl<R: Read> Read for Ending<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes)?;
        self.has_ended |= len == 0 && !bytes.is_empty();
        Ok(len)
    }
}

/// Returns the bytes of `opened` as a file that can be read at any place.
///
/// # Errors
/// They cannot be read, or copied to a temporary file.
pub fn seekable(opened: &mut Opened<'_>, input: &Input) -> Outcome<File> {
    if let (Source::File(path), None) = (&input.source, opened.codec)
        && let Ok(file) = File::open(path)
        && file.metadata().is_ok_and(|metadata| metadata.is_file())
    {
        return Ok(file);
    }
    let copy = |opened: &mut Opened<'_>| {
        let mut file = tempfile::tempfile()?;
        io::copy(&mut opened.reader, &mut file)?;
        file.rewind()?;
        Ok(file)
    };
    copy(opened).map_err(|error: io::Error| opened.failed(input, &error))
}

fn damaged(faults: &Faults, input: &Input, kind: Kind, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::with_cause(
        format!("{}: the {} is cut or damaged; repair it, or pass {}", input.shown(), kind.name(), faults.ways_out()),
        error,
    )
}

/// First bytes of a member.
const MEMBER: &[u8] = b"PK\x03\x04";
/// First bytes of a zip file, of one without members, and of the first of several parts.
const MAGICS: [&[u8]; 4] = [MEMBER, b"PK\x05\x06", b"PK\x07\x08PK\x03\x04", b"PK00PK\x03\x04"];
/// First bytes of programs: of Windows, of Unix, and scripts.
const PROGRAMS: [&[u8]; 3] = [b"MZ", b"\x7fELF", b"#!"];
/// Bytes of a script in front of a zip file, where it is no file on a disk.
const MAX_SCRIPT_BYTES: usize = 64 << 10;
/// Ends of the names of zip files and of programs that unpack themselves.
const NAMES: [&str; 3] = [".zip", ".exe", ".sfx"];

/// First bytes of an entry, and bytes of an entry besides texts.
const ENTRY: (&[u8], usize) = (b"PK\x01\x02", 46);
/// First bytes of the end of the list, and its bytes without the comment.
const END: (&[u8], usize) = (b"PK\x05\x06", 22);
/// Greatest number of bytes of a comment.
const MAX_COMMENT_BYTES: u64 = 65_535;
/// Place of the size of the list in its end. All bits are set if it stands elsewhere (zip64).
const END_LIST_BYTES: usize = 12;

/// Returns true if `head` begins a zip file.
fn is_zip(head: &[u8]) -> bool {
    MAGICS.iter().any(|magic| head.starts_with(magic))
}

/// Returns true if a zip file may stand behind `head`: the input has the name of one, is a program on a disk,
/// or a script with a member behind it.
///
/// # Errors
/// The script cannot be read.
fn may_be_zip_behind(opened: &mut Opened<'_>, input: &Input, head: &[u8]) -> io::Result<bool> {
    let name = input.path.to_ascii_lowercase();
    let is_on_disk = matches!(input.source, Source::File(_)) && opened.codec.is_none();
    let is_program = PROGRAMS.iter().any(|magic| head.starts_with(magic));
    if NAMES.iter().any(|end| name.ends_with(end)) || (is_on_disk && is_program) {
        return Ok(true);
    }
    let has_member = |bytes: &[u8]| memmem::find(bytes, MEMBER).is_some();
    Ok(is_script(head) && has_member(&opened.first_bytes(MAX_SCRIPT_BYTES)?))
}

/// Returns true if `file` ends with the list of members of a zip file. The next byte is the first one then.
///
/// # Errors
/// The errors of the disk.
fn is_zip_behind(file: &mut File) -> io::Result<bool> {
    let (magic, end_bytes) = END;
    let (tail_at, tail) = tail(file)?;
    let mut is_zip = false;
    for at in memmem::rfind_iter(&tail, magic) {
        let Some(end) = tail[at..].get(..end_bytes) else { continue };
        let comment_bytes = usize::from(u16::from_le_bytes([end[20], end[21]]));
        if at + end_bytes + comment_bytes != tail.len() {
            continue;
        }
        let size = &end[END_LIST_BYTES..][..4];
        let list_bytes = u64::from(u32::from_le_bytes([size[0], size[1], size[2], size[3]]));
        let end_at = tail_at + at as u64;
        let begins_list = match end_at.checked_sub(list_bytes) {
            _ if list_bytes == u64::from(u32::MAX) => true,
            Some(list_at) if list_bytes > 0 => has_at(file, list_at, ENTRY.0)?,
            _ => false,
        };
        is_zip |= begins_list;
    }
    file.rewind()?;
    Ok(is_zip)
}

/// Returns true if the bytes of `file` from `at` are `magic`.
fn has_at(mut file: &File, at: u64, magic: &[u8]) -> io::Result<bool> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::new();
    file.take(magic.len() as u64).read_to_end(&mut bytes)?;
    Ok(bytes == magic)
}

/// Returns the last bytes of `file`, in which the end of the list stands, and their place.
///
/// # Errors
/// The errors of the disk.
fn tail(mut file: &File) -> io::Result<(u64, Vec<u8>)> {
    let len_bytes = file.metadata()?.len();
    let tail_bytes = len_bytes.min(MAX_COMMENT_BYTES + END.1 as u64);
    let tail_at = file.seek(SeekFrom::Start(len_bytes - tail_bytes))?;
    let mut tail = Vec::new();
    file.take(tail_bytes).read_to_end(&mut tail)?;
    Ok((tail_at, tail))
}
