//! Members of archives as inputs of their own: tar and zip, and what is a zip file by another name
//! (jar, whl, epub, docx).
//!
//! ```text
//! input ─▶ decompressed ─┬─ no archive ─▶ reader of the format
//!                        └─ archive ─▶ member ─▶ (the same again, --max-depth)
//! ```
//!
//! An archive is treated as a folder: hidden members and links are left out and counted,
//! and `--glob` chooses members. A tar archive is streamed, to the end of the stream around it, where its
//! checksum stands. A zip file has its list of members at the
//! end, so one that is no file on a disk is first copied to a temporary file. With `--keep-going`, one
//! without a list, as it was cut, is streamed. All decoders of an input share one budget ([`Budget`]),
//! so archives in archives expand no further than one file may.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::NaiveDate;
use tadoc::format::path_text;
use zip::read::{ZipFile, read_zipfile_from_stream};
use zip::result::ZipError;
use zip::{ExtraField, ZipArchive};

use super::faults::{Faults, RAW};
use super::open::{Budget, Counters, Opened, limited, open_member};
use super::pax_sparse::Sparse;
use super::tar_headers::BoundedHeaders;
use crate::display;
use crate::failure::{Failure, Outcome};
use crate::inputs::{Input, Source};
use crate::pattern::Pattern;

/// Place and bytes by which a tar archive is known.
const TAR_MAGIC: (usize, &[u8]) = (257, b"ustar");
/// First bytes of a zip file, and of one without members.
const ZIP_MAGICS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// First bytes of an entry of the list of members of a zip file, and bytes of an entry besides texts.
const ZIP_ENTRY: (&[u8], usize) = (b"PK\x01\x02", 46);
/// Places of the lengths of the texts of an entry: name, extra fields and comment.
const ZIP_LENGTHS: [usize; 3] = [28, 30, 32];

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
        let (max_depth, max_members) = (Self::MAX_DEPTH, Self::MAX_MEMBERS);
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
    /// Number of hidden members that were left out.
    num_hidden: u64,
    /// Number of members of zip files that were left out because a later one has their name.
    num_replaced: u64,
}

#[derive(Clone, Copy)]
enum Kind {
    Tar,
    Zip,
}

impl Kind {
    fn of(head: &[u8]) -> Option<Self> {
        let (at, tar) = TAR_MAGIC;
        match () {
            () if head.get(at..).is_some_and(|bytes| bytes.starts_with(tar)) => Some(Self::Tar),
            () if ZIP_MAGICS.iter().any(|magic| head.starts_with(magic)) => Some(Self::Zip),
            () if is_old_tar(head) => Some(Self::Tar),
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

/// Returns what the attributes of `entry` say of a sparse file.
fn sparse_file(entry: &mut tar::Entry<'_, impl Read>) -> io::Result<Option<Sparse>> {
    let Some(attributes) = entry.pax_extensions()? else { return Ok(None) };
    let attributes = attributes.collect::<io::Result<Vec<_>>>()?;
    let pairs = attributes.iter().map(|pair| (pair.key_bytes(), pair.value_bytes()));
    Sparse::from_attributes(pairs)
}

/// Returns true for a header of tar as Unix version 7 wrote it, without a magic, by its checksum.
fn is_old_tar(head: &[u8]) -> bool {
    let Ok(block) = <&[u8; 512]>::try_from(head) else { return false };
    let header = tar::Header::from_byte_slice(block);
    let is_sum = |place: usize| (148..156).contains(&place);
    let places = block.iter().enumerate();
    let sum = places.map(|(place, &byte)| if is_sum(place) { 32 } else { u32::from(byte) });
    block[0] != 0 && header.cksum().is_ok_and(|written| written == sum.sum::<u32>())
}

impl<'a> Archives<'a> {
    pub fn new(options: &'a ArchiveOptions) -> Self {
        Self { options, num_skipped: 0, num_hidden: 0, num_replaced: 0 }
    }

    /// Returns a warning for each kind of members that were left out.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        let counts = [
            (self.num_skipped, "link or special file", "of archives left out"),
            (self.num_hidden, "hidden member", "of archives left out"),
            (self.num_replaced, "member", "of zip files left out: a later one has the same name"),
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

    fn visit_below(
        &mut self,
        mut opened: Opened<'_>,
        input: &Input,
        depth: u32,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        let head = opened.head().map_err(|error| opened.failed(input, &error))?;
        if head.is_empty() && opened.budget.faults.is_latest(input) {
            return Ok(());
        }
        let mut opened = opened;
        let mut kind = Kind::of(&head);
        if kind.is_none() && self.options.is_opened && may_extract_itself(input, &head) {
            (opened, kind) = self_extracting(opened, input)?;
        }
        let Some(kind) = kind.filter(|_| self.options.is_opened) else {
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

    fn tar(
        &mut self,
        opened: Opened<'_>,
        input: &Input,
        depth: u32,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        let (budget, codec) = (opened.budget.clone(), opened.codec);
        let failed = |error: io::Error| match Budget::is_exceeded(&error) {
            true => budget.failed(codec, input, &error),
            false => damaged(&budget.faults, input, Kind::Tar, &error),
        };
        let mut archive = tar::Archive::new(Ending {
            inner: BoundedHeaders::new(opened.reader),
            has_ended: false,
        });
        for entry in archive.entries().map_err(failed)? {
            let mut entry = entry.map_err(failed)?;
            let sparse = sparse_file(&mut entry).map_err(failed)?;
            let entry_type = entry.header().entry_type();
            if entry_type.is_dir() || entry_type.is_pax_global_extensions() {
                continue;
            }
            if !(entry_type.is_file() || entry_type.is_contiguous() || entry_type.is_gnu_sparse()) {
                self.num_skipped += 1;
                continue;
            }
            let own_name = sparse.as_ref().and_then(|sparse| sparse.name.as_deref());
            let name = match own_name {
                Some(name) => path_text(name).into_owned(),
                None => path_text(&entry.path_bytes()).into_owned(),
            };
            // Folders of version 7 are known by their names.
            if name.ends_with('/') {
                continue;
            }
            let len_bytes = sparse.as_ref().map_or(entry.size(), |sparse| sparse.len_bytes);
            let changed = entry.header().mtime().ok().and_then(since_1970);
            if let Some(member) = self.member(input, &name, len_bytes, changed, &budget)? {
                let content: Box<dyn Read> = match sparse {
                    Some(sparse) => {
                        let counters = budget.counters(entry.size());
                        let expanded = sparse.expanded(entry).map_err(failed)?;
                        limited(Box::new(expanded), &counters, &budget)
                    }
                    None => Box::new(entry),
                };
                let outcome = open_member(&member, content, true, &budget)
                    .and_then(|opened| self.visit_below(opened, &member, depth + 1, visit));
                budget.faults.pass(&member, outcome)?;
            }
        }
        let rest = archive.into_inner();
        if rest.has_ended {
            let shown = input.shown();
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
        io::copy(&mut rest.inner.into_inner(), &mut io::sink()).map_err(failed)?;
        Ok(())
    }

    fn zip(
        &mut self,
        opened: Opened<'_>,
        input: &Input,
        depth: u32,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        let budget = opened.budget.clone();
        let file = seekable(opened, input)?;
        let file_bytes =
            file.metadata().map_err(|e| damaged(&budget.faults, input, Kind::Zip, &e))?.len();
        let failed = |error: ZipError| match error {
            ZipError::UnsupportedArchive(ZipError::PASSWORD_REQUIRED) => Failure::new(format!(
                "{}: the zip file is encrypted; unpack it with its password first, or pass {RAW}",
                input.shown()
            )),
            error => damaged(&budget.faults, input, Kind::Zip, &error),
        };
        // All members together may expand as far as one file of this length.
        let counters = budget.counters(file_bytes);
        let mut archive = match ZipArchive::new(BufReader::new(&file)) {
            Ok(archive) => archive,
            Err(error) => {
                budget.faults.pass(input, Err(failed(error)))?;
                return self.cut_zip(&file, input, &counters, &budget, depth, visit);
            }
        };
        let num_listed = num_listed(&file, archive.central_directory_start())
            .map_err(|error| damaged(&budget.faults, input, Kind::Zip, &error))?;
        self.num_replaced += num_listed.saturating_sub(archive.len() as u64);
        for idx in 0..archive.len() {
            let packed = match archive.by_index(idx) {
                Ok(packed) => packed,
                Err(error) => {
                    budget.faults.pass(input, Err(failed(error)))?;
                    continue;
                }
            };
            let packed_bytes = packed.compressed_size().min(file_bytes);
            self.zip_member(packed, input, &counters, &budget, depth, visit)?;
            budget.add_disk_bytes(packed_bytes);
        }
        Ok(())
    }

    /// Reads the members of the zip file `input` without its list of members, up to the first one whose
    /// length does not stand before it. The last one may be cut.
    fn cut_zip(
        &mut self,
        mut file: &File,
        input: &Input,
        counters: &Counters,
        budget: &Budget,
        depth: u32,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        file.rewind().map_err(|error| damaged(&budget.faults, input, Kind::Zip, &error))?;
        let mut bytes = BufReader::new(file);
        while let Ok(Some(packed)) = read_zipfile_from_stream(&mut bytes) {
            self.zip_member(packed, input, counters, budget, depth, visit)?;
        }
        Ok(())
    }

    fn zip_member(
        &mut self,
        packed: ZipFile<'_, impl Read>,
        input: &Input,
        counters: &Counters,
        budget: &Budget,
        depth: u32,
        visit: &mut Visit<'_>,
    ) -> Outcome {
        if packed.is_dir() {
            return Ok(());
        }
        if packed.is_symlink() {
            self.num_skipped += 1;
            return Ok(());
        }
        // Tools of Unix and macOS write UTF-8 without the flag that says so. Others are in code page 437.
        let raw = std::str::from_utf8(packed.name_raw()).unwrap_or(packed.name());
        let name = path_text(raw.as_bytes()).into_owned();
        let len_bytes = packed.size();
        let changed = zip_changed(&packed);
        let Some(member) = self.member(input, &name, len_bytes, changed, budget)? else {
            return Ok(());
        };
        let bytes = limited(Box::new(packed), counters, budget);
        let outcome = open_member(&member, bytes, true, budget)
            .and_then(|opened| self.visit_below(opened, &member, depth + 1, visit));
        budget.faults.pass(&member, outcome)
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
        let globs = &self.options.globs;
        let is_hidden = |part: &str| part.starts_with('.') && part != "..";
        if !(globs.is_empty() || globs.iter().any(|g| g.matches(name))) {
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
        Ok(Some(Input { changed: changed.or(archive.changed), ..member }))
    }
}

/// Returns the time `seconds` after 1970, or none for 0, which stands for no time.
fn since_1970(seconds: u64) -> Option<SystemTime> {
    UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).filter(|_| seconds > 0)
}

/// Returns the time at which a member of a zip file was last changed: that of Unix, or that of a clock whose
/// zone is not stated.
fn zip_changed(packed: &ZipFile<'_, impl Read>) -> Option<SystemTime> {
    let unix = packed.extra_data_fields().find_map(|field| match field {
        ExtraField::ExtendedTimestamp(times) => times.mod_time(),
        _ => None,
    });
    if let Some(seconds) = unix {
        return since_1970(seconds.into());
    }
    let shown = packed.last_modified().filter(|time| *time != zip::DateTime::default())?;
    let day =
        NaiveDate::from_ymd_opt(shown.year().into(), shown.month().into(), shown.day().into())?;
    let (hour, minute, second) = (shown.hour(), shown.minute(), shown.second());
    let time = day.and_hms_opt(hour.into(), minute.into(), second.into())?;
    u64::try_from(time.and_utc().timestamp()).ok().and_then(since_1970)
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

/// Returns the number of entries in the list of members of a zip file, which begins at `start`. The reader of
/// zip keeps one of those with the same name.
fn num_listed(file: &File, start: u64) -> io::Result<u64> {
    let (magic, mut num) = (ZIP_ENTRY.0, 0);
    let mut list = BufReader::new(file);
    list.seek(SeekFrom::Start(start))?;
    let mut entry = [0; ZIP_ENTRY.1];
    while list.read_exact(&mut entry).is_ok() && entry.starts_with(magic) {
        num += 1;
        let len = |at: usize| i64::from(u16::from_le_bytes([entry[at], entry[at + 1]]));
        list.seek_relative(ZIP_LENGTHS.map(len).iter().sum())?;
    }
    Ok(num)
}

/// Returns true for a program, or for a zip file by its name: a zip file may stand behind other bytes.
fn may_extract_itself(input: &Input, head: &[u8]) -> bool {
    let is_program = head.starts_with(b"MZ") || head.starts_with(b"\x7fELF");
    let path = input.path.to_ascii_lowercase();
    is_program || [".zip", ".sfx", ".run"].iter().any(|end| path.ends_with(end))
}

/// Returns `opened`, and that it is a zip file if it ends with a list of members.
fn self_extracting<'a>(opened: Opened<'a>, input: &Input) -> Outcome<(Opened<'a>, Option<Kind>)> {
    let budget = opened.budget.clone();
    let file = seekable(opened, input)?;
    let has_members = ZipArchive::new(BufReader::new(&file)).is_ok_and(|zip| !zip.is_empty());
    let mut file = file;
    file.rewind().map_err(|error| budget.failed(None, input, &error))?;
    let opened = open_member(input, Box::new(file), false, &budget)?;
    Ok((opened, has_members.then_some(Kind::Zip)))
}

/// Returns the bytes of `opened` as a file that can be read at any place.
///
/// # Errors
/// They cannot be read, or copied to a temporary file.
pub fn seekable(mut opened: Opened<'_>, input: &Input) -> Outcome<File> {
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
    copy(&mut opened).map_err(|error: io::Error| opened.failed(input, &error))
}

fn damaged(
    faults: &Faults,
    input: &Input,
    kind: Kind,
    error: &(dyn std::error::Error + 'static),
) -> Failure {
    if let Some(ZipError::UnsupportedArchive(reason)) = error.downcast_ref() {
        return Failure::new(format!(
            "{}: {reason}; members may be stored or packed by deflate, bzip2 or zstd: pack it anew, or pass {RAW}",
            input.shown()
        ));
    }
    Failure::with_cause(
        format!(
            "{}: the {} is cut or damaged; repair it, or pass {}",
            input.shown(),
            kind.name(),
            faults.ways_out()
        ),
        error,
    )
}
