//! The members of tar archives: how an archive is told, a limit of headers, archives behind each other, and sparse
//! members.
//!
//! ```text
//! ┌ header, 512 bytes ┬ content, padded to 512 ┬ header ┬ …
//! │ size at 124       │ type at 156: L, K, x or g: a name or attributes, held in memory as a whole
//! ```
//!
//! GNU's long names (`L`, `K`) and the attributes of pax (`x`, `g`) are members of their own before the member that
//! they are about. The crate `tar` reads them into memory whatever they state as their size. This reader stands
//! before it and refuses large ones. It also takes out the mark between archives that were put behind each other,
//! as `tar -i` does, and corrects the checksums of old programs. Source: POSIX.1-2017, pax, "ustar Interchange
//! Format"; GNU tar manual, "Basic Tar Format". Time is linear in the number of headers.
//!
//! Of a sparse member pax states the name, and the bytes with the holes:
//!
//! ```text
//! 0.0   GNU.sparse.offset, GNU.sparse.numbytes, …     many times        GNU.sparse.size
//! 0.1   GNU.sparse.map = offset,length,…              GNU.sparse.name   GNU.sparse.size
//! 1.0   count \n offset \n length \n …, padded to 512, before the data; GNU.sparse.name   GNU.sparse.realsize
//! ```
//!
//! The crate `tar` reads the sparse members of GNU's own format, and not these. Source: GNU tar manual,
//! "Storing Sparse Files". Memory is linear in the map, which [`MAX_MAP_BYTES`] limit.

use std::io::{self, Read};
use std::ops::Range;
use std::vec::IntoIter;

use tar::PaxExtensions;

use crate::decoders::read_up_to;

/// Bytes of a block, which headers have and contents are padded to.
pub const BLOCK_BYTES: usize = 512;

/// Greatest number of bytes of a name or of the attributes of a member.
pub const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Place and bytes by which a tar archive is known.
const TAR_MAGIC: (usize, &[u8]) = (257, b"ustar");
/// Fields of numbers in a header: mode, user, group, size and time. They are octal.
const NUMBERS: [Range<usize>; 5] = [100..108, 108..116, 116..124, 124..136, 136..148];
const SIZE: Range<usize> = 124..136;
/// Field of the checksum.
const CHECKSUM: Range<usize> = 148..156;
/// Bytes that are zeros in a header of Unix V7, and those of them in which GNU tar (`--format=v7`) writes a zero as
/// digits: the numbers of a device.
const V7_PADDING: Range<usize> = 257..BLOCK_BYTES;
const V7_DEVICE: Range<usize> = 329..345;

/// Type of the member that is the label of a GNU tar archive (`tar -V`), and its place. Its header has no magic, and only
/// a time and a checksum.
pub const VOLUME_LABEL: u8 = b'V';
const TYPE_AT: usize = 156;

/// Returns true if `head` begins a tar archive. One of Unix V7 has no magic, and is known by its checksum.
pub fn is_tar(head: &[u8]) -> bool {
    let (at, magic) = TAR_MAGIC;
    head.get(at..).is_some_and(|bytes| bytes.starts_with(magic)) || is_v7_header(head)
}

fn is_v7_header(head: &[u8]) -> bool {
    let Some(header) = head.first_chunk::<BLOCK_BYTES>() else { return false };
    let has_name = header[0] != 0;
    let mut padding = V7_PADDING.map(|at| (at, header[at]));
    let is_padded = padding.all(|(at, byte)| byte == 0 || byte == b'0' && V7_DEVICE.contains(&at));
    let is_number = |field: &[u8]| octal(field).is_some() || (is_label(header) && is_zero(field));
    let has_numbers = NUMBERS.into_iter().all(|field| is_number(&header[field]));
    has_name && is_padded && has_numbers && checksum(header).is_some()
}

fn is_label(header: &[u8; BLOCK_BYTES]) -> bool {
    header[TYPE_AT] == VOLUME_LABEL
}

/// Returns the checksum of a header with the right one: the sum of its bytes, which some old programs took for
/// numbers with a sign.
fn checksum(header: &[u8; BLOCK_BYTES]) -> Option<Checksum> {
    let stated = octal(&header[CHECKSUM])?;
    let bytes_but_sum = || header[..CHECKSUM.start].iter().chain(&header[CHECKSUM.end..]);
    let blanks = 8 * i64::from(b' ');
    let unsigned = bytes_but_sum().map(|&byte| i64::from(byte)).sum::<i64>() + blanks;
    let signed = bytes_but_sum().map(|&byte| i64::from(byte.cast_signed())).sum::<i64>() + blanks;
    match i64::try_from(stated).ok()? {
        sum if sum == unsigned => Some(Checksum::Unsigned),
        sum if sum == signed => Some(Checksum::Signed),
        _ => None,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Checksum {
    Unsigned,
    Signed,
}

/// Returns the number of an octal field: digits with blanks before them, and blanks and zeros behind them.
fn octal(field: &[u8]) -> Option<u64> {
    let text = str::from_utf8(field).ok()?;
    let digits = text.trim_start_matches(' ').trim_end_matches([' ', '\0']);
    u64::from_str_radix(digits, 8).ok()
}

/// A reader of an archive that fails at a header that is too large, and goes on behind the mark at the end of an
/// archive if another archive was put there.
pub struct BoundedHeaders<R> {
    inner: R,
    header: [u8; BLOCK_BYTES],
    /// Bytes of the header that were read, and those of them that were taken.
    num_read: usize,
    num_taken: usize,
    /// Bytes up to the next header.
    content_bytes: u64,
    /// True if the next block continues the map of a sparse file.
    is_map: bool,
    /// True if other bytes than another archive stand behind the mark at the end.
    has_rest: bool,
    /// Error behind the mark at the end.
    error: Option<io::Error>,
}

impl<R: Read> BoundedHeaders<R> {
    /// Reads from `inner`, which is at a header.
    pub fn new(inner: R) -> Self {
        Self {
            inner,
            header: [0; BLOCK_BYTES],
            num_read: 0,
            num_taken: 0,
            content_bytes: 0,
            is_map: false,
            has_rest: false,
            error: None,
        }
    }

    /// Reads what is behind the archives. Returns true if bytes were left out there.
    ///
    /// # Errors
    /// The errors of the inner reader.
    pub fn finish(mut self) -> io::Result<bool> {
        match self.error.take() {
            Some(error) => Err(error),
            None => io::copy(&mut self.inner, &mut io::sink()).map(|_| self.has_rest),
        }
    }

    /// Reads the next header, or the next block of a map.
    fn next_header(&mut self) -> io::Result<()> {
        self.num_taken = 0;
        self.num_read = read_up_to(&mut self.inner, &mut self.header)?;
        if self.num_read < BLOCK_BYTES {
            return Ok(());
        }
        if !self.is_map && is_zero(&self.header) {
            self.skip_end_mark();
        }
        // The crate knows one kind of checksum, and no header without a size.
        let sum = if self.is_map { None } else { checksum(&self.header) };
        let is_sizeless = is_label(&self.header) && octal(&self.header[SIZE]).is_none();
        if sum == Some(Checksum::Signed) || (sum.is_some() && is_sizeless) {
            let mut header = tar::Header::from_byte_slice(&self.header).clone();
            if is_sizeless {
                header.set_size(0);
            }
            header.set_cksum();
            self.header = *header.as_bytes();
        }
        self.end_header()
    }

    /// Skips zeros up to the header of another archive. The header is the mark again if there is none.
    fn skip_end_mark(&mut self) {
        let mut block = [0; BLOCK_BYTES];
        loop {
            match read_up_to(&mut self.inner, &mut block) {
                Ok(BLOCK_BYTES) if is_zero(&block) => continue,
                Ok(BLOCK_BYTES) if checksum(&block).is_some() => self.header = block,
                Ok(len) => self.has_rest = !is_zero(&block[..len]),
                Err(error) => self.error = Some(error),
            }
            return;
        }
    }

    fn end_header(&mut self) -> io::Result<()> {
        if self.is_map {
            self.is_map = self.header[504] == 1;
            return Ok(());
        }
        let header = tar::Header::from_byte_slice(&self.header);
        let size = header.entry_size().unwrap_or(0);
        let kind = header.entry_type();
        let is_about_member = kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions();
        if is_about_member && size > MAX_HEADER_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("a name or attributes of {size} bytes; {MAX_HEADER_BYTES} at most are read"),
            ));
        }
        self.is_map = kind.is_gnu_sparse() && self.header[482] == 1;
        self.content_bytes = size.checked_next_multiple_of(BLOCK_BYTES as u64).unwrap_or(u64::MAX);
        Ok(())
    }
}

impl<R: Read> Read for BoundedHeaders<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.num_taken == self.num_read {
            // The map of a sparse file stands before its content.
            if self.content_bytes > 0 && !self.is_map {
                let room = usize::try_from(self.content_bytes).unwrap_or(usize::MAX);
                let room = room.min(bytes.len());
                let len = self.inner.read(&mut bytes[..room])?;
                self.content_bytes -= len as u64;
                return Ok(len);
            }
            self.next_header()?;
        }
        let len = (&self.header[self.num_taken..self.num_read]).read(bytes)?;
        self.num_taken += len;
        Ok(len)
    }
}

fn is_zero(block: &[u8]) -> bool {
    block.iter().all(|&byte| byte == 0)
}

/// Greatest number of bytes of a map before the data.
const MAX_MAP_BYTES: u64 = 8 << 20;

/// The attributes of a sparse member.
#[derive(Debug, Default)]
pub struct SparseMember {
    /// Name of the member, if it is not that in its header.
    pub name: Option<Vec<u8>>,
    /// Bytes of the member with its holes.
    pub len_bytes: u64,
    /// Offsets and lengths, one behind the other.
    map: Vec<u64>,
    /// True if the map stands before the data.
    is_map_in_data: bool,
}

impl SparseMember {
    /// Returns the attributes among `extensions`, if these say that the member is sparse.
    ///
    /// # Errors
    /// They are damaged.
    pub fn from_pax(extensions: PaxExtensions<'_>) -> io::Result<Option<Self>> {
        let mut member = Self::default();
        let mut is_sparse = false;
        for extension in extensions {
            let extension = extension?;
            let Some(key) = extension.key_bytes().strip_prefix(b"GNU.sparse.") else { continue };
            let value = extension.value_bytes();
            match key {
                b"name" => member.name = Some(value.to_vec()),
                b"size" | b"realsize" => {
                    member.len_bytes = number(value)?;
                    is_sparse = true;
                }
                b"offset" | b"numbytes" => member.map.push(number(value)?),
                b"map" if value.is_empty() => {}
                b"map" => {
                    let numbers = value.split(|&byte| byte == b',').map(number);
                    member.map = numbers.collect::<io::Result<_>>()?;
                }
                b"major" => member.is_map_in_data = number(value)? == 1,
                _ => {}
            }
        }
        Ok(is_sparse.then_some(member))
    }

    /// Returns a reader of the member with its holes. `data` has `data_bytes` bytes.
    ///
    /// # Errors
    /// The map is damaged, or does not fit the data.
    pub fn open<R: Read>(self, mut data: R, data_bytes: u64) -> io::Result<Sparse<R>> {
        let mut map = self.map;
        let mut map_bytes = 0;
        if self.is_map_in_data {
            (map, map_bytes) = read_map(&mut data)?;
        }
        let (pairs, rest) = map.as_chunks::<2>();
        let mut end = 0;
        let mut sum_bytes = map_bytes;
        for [offset, len] in pairs {
            let next = offset.checked_add(*len).filter(|_| *offset >= end);
            end = next.ok_or_else(damaged)?;
            sum_bytes += len;
        }
        if !rest.is_empty() || end > self.len_bytes || sum_bytes != data_bytes {
            return Err(damaged());
        }
        let len_bytes = self.len_bytes;
        Ok(Sparse { data, pieces: Vec::from(pairs).into_iter(), piece: [0, 0], at: 0, len_bytes })
    }
}

/// Reads the map before the data, and its padding. Returns it with the bytes of both.
fn read_map(data: &mut impl Read) -> io::Result<(Vec<u64>, u64)> {
    let mut map = Vec::new();
    let mut num_missing = None;
    let mut map_bytes = 0;
    let mut line = Vec::new();
    let mut block = [0; BLOCK_BYTES];
    loop {
        data.read_exact(&mut block)?;
        map_bytes += BLOCK_BYTES as u64;
        if map_bytes > MAX_MAP_BYTES {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("the map of a sparse member has more than {MAX_MAP_BYTES} bytes"),
            ));
        }
        for byte in block {
            if byte != b'\n' {
                line.push(byte);
                continue;
            }
            let value = number(&line)?;
            line.clear();
            match &mut num_missing {
                None => num_missing = Some(value.checked_mul(2).ok_or_else(damaged)?),
                Some(num_missing) => {
                    map.push(value);
                    *num_missing -= 1;
                }
            }
            if num_missing == Some(0) {
                return Ok((map, map_bytes));
            }
        }
    }
}

fn number(digits: &[u8]) -> io::Result<u64> {
    let text = str::from_utf8(digits).ok();
    text.and_then(|text| text.parse().ok()).ok_or_else(damaged)
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the map of a sparse member is damaged")
}

/// A reader of a sparse member.
pub struct Sparse<R> {
    data: R,
    /// Pieces behind the next one: offsets and lengths.
    pieces: IntoIter<[u64; 2]>,
    /// Offset and length of the next bytes of the data.
    piece: [u64; 2],
    at: u64,
    len_bytes: u64,
}

impl<R: Read> Read for Sparse<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.piece[1] == 0 {
            let Some(piece) = self.pieces.next() else { break };
            self.piece = piece;
        }
        let [offset, data_bytes] = self.piece;
        let is_data = data_bytes > 0 && self.at == offset;
        let room_bytes = match (is_data, data_bytes) {
            (true, _) => data_bytes,
            (false, 0) => self.len_bytes - self.at,
            (false, _) => offset - self.at,
        };
        let len = usize::try_from(room_bytes).unwrap_or(usize::MAX).min(bytes.len());
        if !is_data {
            bytes[..len].fill(0);
            self.at += len as u64;
            return Ok(len);
        }
        let len = self.data.read(&mut bytes[..len])?;
        if len == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += len as u64;
        self.piece = [offset + len as u64, data_bytes - len as u64];
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An archive with a member, a long name of `len` bytes, and the member that has it.
    fn archive(len: usize) -> Vec<u8> {
        let mut builder = tar::Builder::new(Vec::new());
        let mut header = tar::Header::new_gnu();
        header.set_size(600);
        builder.append_data(&mut header, "first.txt", &[b'a'; 600][..]).unwrap();
        let mut name = tar::Header::new_gnu();
        name.set_entry_type(tar::EntryType::GNULongName);
        name.set_size(len as u64);
        name.set_cksum();
        builder.append(&name, &vec![b'n'; len][..]).unwrap();
        header.set_size(3);
        builder.append_data(&mut header, "second.txt", &b"end"[..]).unwrap();
        builder.into_inner().unwrap()
    }

    /// Returns the number of bytes read in pieces of `piece` bytes, or the error.
    fn read(bytes: &[u8], piece: usize) -> Result<usize, String> {
        let mut reader = BoundedHeaders::new(bytes);
        let mut buffer = vec![0; piece];
        let mut num_read = 0;
        loop {
            match reader.read(&mut buffer).map_err(|error| error.to_string())? {
                0 => return Ok(num_read),
                len => num_read += len,
            }
        }
    }

    #[test]
    fn archives_of_v7_are_told_by_their_checksum() {
        let mut header = tar::Header::new_old();
        header.set_path("old.txt").unwrap();
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(1_700_000_000);
        header.set_size(3);
        header.set_cksum();
        let block = header.as_bytes();
        assert!(is_tar(block) && !is_tar(&block[..511]));
        let mut by_gnu = header.clone();
        by_gnu.as_mut_bytes()[329..344].copy_from_slice(b"0000000\x000000000");
        by_gnu.set_cksum();
        assert!(is_tar(by_gnu.as_bytes()));
        for at in [0, 3, 101, 130, 150, 156, 300] {
            let mut flipped = *block;
            flipped[at] ^= 1;
            assert!(!is_tar(&flipped), "{at}");
        }
        for text in [[b'0'; 512], [b' '; 512], [b'\n'; 512], [0; 512]] {
            assert!(!is_tar(&text), "{text:?}");
        }
    }

    #[test]
    fn a_label_has_no_numbers_and_no_magic() {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes()[..7].copy_from_slice(b"backups");
        header.as_mut_bytes()[TYPE_AT] = VOLUME_LABEL;
        header.as_mut_bytes()[136..147].copy_from_slice(b"15303545120");
        header.set_cksum();
        assert!(is_tar(header.as_bytes()));
        let mut member = tar::Header::new_gnu();
        member.set_path("a.txt").unwrap();
        member.set_size(2);
        member.set_cksum();
        let mut archive = [header.as_bytes().as_slice(), member.as_bytes(), b"hi"].concat();
        archive.resize(5 * BLOCK_BYTES, 0);
        let mut archive = tar::Archive::new(BoundedHeaders::new(&archive[..]));
        let mut names = Vec::new();
        for entry in archive.entries().unwrap() {
            let entry = entry.unwrap();
            names.push((entry.path().unwrap().display().to_string(), entry.size()));
        }
        assert_eq!(names, [("backups".to_owned(), 0), ("a.txt".to_owned(), 2)]);
    }

    #[test]
    fn checksums_may_have_a_sign() {
        let mut header = tar::Header::new_gnu();
        header.set_path("caf\u{e9}.txt").unwrap();
        header.set_size(0);
        header.set_cksum();
        assert_eq!(checksum(header.as_bytes()), Some(Checksum::Unsigned));
        let sum = octal(&header.as_bytes()[CHECKSUM]).unwrap();
        let signed = format!("{:06o}\0 ", sum - 2 * 256);
        let mut old = *header.as_bytes();
        old[CHECKSUM].copy_from_slice(signed.as_bytes());
        assert_eq!(checksum(&old), Some(Checksum::Signed));
        let mut read = Vec::new();
        BoundedHeaders::new(old.as_slice()).read_to_end(&mut read).unwrap();
        assert_eq!(read, header.as_bytes());
        old[0] ^= 1;
        assert_eq!(checksum(&old), None);
    }

    #[test]
    fn archives_behind_each_other_are_one() {
        let one = archive(10);
        let members = &one[..one.len() - 2 * BLOCK_BYTES];
        let mark = [0; BLOCK_BYTES];
        for piece in [1, 7, 512, 8192] {
            for num_marks in [1, 2, 30] {
                let marks = mark.repeat(num_marks);
                let joined = [members, &marks, &one, &marks].concat();
                // The mark at the end is one block.
                let expected = 2 * members.len() + BLOCK_BYTES;
                let mut reader = BoundedHeaders::new(joined.as_slice());
                let mut read = 0;
                let mut buffer = vec![0; piece];
                while read < expected {
                    read += reader.read(&mut buffer).unwrap();
                }
                assert!(read == expected && !reader.finish().unwrap());
                for rest in [&b"text"[..], &[7; 2000]] {
                    let joined = [members, &marks, rest].concat();
                    let mut reader = BoundedHeaders::new(joined.as_slice());
                    let mut read = vec![0; members.len() + BLOCK_BYTES];
                    reader.read_exact(&mut read).unwrap();
                    assert!(reader.finish().unwrap(), "{num_marks}");
                }
            }
        }
    }

    #[test]
    fn large_names_are_refused_in_pieces_of_any_size() {
        for piece in [1, 7, 512, 8192] {
            let small = archive(1000);
            // The second block of the mark at the end is looked at only.
            assert_eq!(read(&small, piece), Ok(small.len() - BLOCK_BYTES));
            let error = read(&archive(MAX_HEADER_BYTES as usize + 1), piece).unwrap_err();
            assert!(error.contains("a name or attributes of 1048577 bytes"), "{error}");
        }
    }
}
