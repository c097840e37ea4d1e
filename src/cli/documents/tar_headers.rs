//! The headers of tar archives: how an archive is told, and a limit.
//!
//! ```text
//! ┌ header, 512 bytes ┬ content, padded to 512 ┬ header ┬ …
//! │ size at 124       │ type at 156: L, K, x or g: a name or attributes, held in memory as a whole
//! ```
//!
//! GNU's long names (`L`, `K`) and the attributes of pax (`x`, `g`) are members of their own before the
//! member that they are about. The crate `tar` reads them into memory whatever they state as their size.
//! This reader stands before it and refuses large ones. Source: POSIX.1-2017, pax, "ustar Interchange
//! Format"; GNU tar manual, "Basic Tar Format". Time is linear in the number of headers.

use std::io::{self, Read};
use std::ops::Range;

/// Bytes of a block, which headers have and contents are padded to.
pub const BLOCK_BYTES: usize = 512;

/// Greatest number of bytes of a name or of the attributes of a member.
pub const MAX_HEADER_BYTES: u64 = 1 << 20;

/// Place and bytes by which a tar archive is known.
const TAR_MAGIC: (usize, &[u8]) = (257, b"ustar");
/// Fields of numbers in a header: mode, user, group, size and time. They are octal.
const NUMBERS: [Range<usize>; 5] = [100..108, 108..116, 116..124, 124..136, 136..148];
/// Field of the checksum.
const CHECKSUM: Range<usize> = 148..156;
/// Bytes that are zeros in a header of Unix V7.
const V7_PADDING: Range<usize> = 257..BLOCK_BYTES;

/// Returns true if `head` begins a tar archive. One of Unix V7 has no magic, and is known by its checksum.
pub fn is_tar(head: &[u8]) -> bool {
    let (at, magic) = TAR_MAGIC;
    head.get(at..).is_some_and(|bytes| bytes.starts_with(magic)) || is_v7_header(head)
}

fn is_v7_header(head: &[u8]) -> bool {
    let Some(header) = head.first_chunk::<BLOCK_BYTES>() else { return false };
    let has_name = header[0] != 0;
    let is_padded = header[V7_PADDING].iter().all(|&byte| byte == 0);
    let has_numbers = NUMBERS.into_iter().all(|field| octal(&header[field]).is_some());
    let bytes_but_sum = header[..CHECKSUM.start].iter().chain(&header[CHECKSUM.end..]);
    let sum = bytes_but_sum.map(|&byte| u64::from(byte)).sum::<u64>() + 8 * u64::from(b' ');
    has_name && is_padded && has_numbers && octal(&header[CHECKSUM]) == Some(sum)
}

/// Returns the number of an octal field: digits with blanks before them, and blanks and zeros behind them.
fn octal(field: &[u8]) -> Option<u64> {
    let text = str::from_utf8(field).ok()?;
    let digits = text.trim_start_matches(' ').trim_end_matches([' ', '\0']);
    u64::from_str_radix(digits, 8).ok()
}

/// A reader of an archive that fails at a header that is too large.
pub struct BoundedHeaders<R> {
    inner: R,
    header: [u8; BLOCK_BYTES],
    /// Bytes of the header that were read.
    num_read: usize,
    /// Bytes up to the next header.
    content_bytes: u64,
    /// True if the next block continues the map of a sparse file.
    is_map: bool,
}

impl<R: Read> BoundedHeaders<R> {
    /// Reads from `inner`, which is at a header.
    pub fn new(inner: R) -> Self {
        Self { inner, header: [0; BLOCK_BYTES], num_read: 0, content_bytes: 0, is_map: false }
    }

    /// Returns the inner reader.
    pub fn into_inner(self) -> R {
        self.inner
    }

    /// Follows `bytes` of the archive.
    fn follow(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.content_bytes > 0 {
                let len =
                    usize::try_from(self.content_bytes).unwrap_or(usize::MAX).min(bytes.len());
                self.content_bytes -= len as u64;
                bytes = &bytes[len..];
                continue;
            }
            let len = (BLOCK_BYTES - self.num_read).min(bytes.len());
            self.header[self.num_read..][..len].copy_from_slice(&bytes[..len]);
            self.num_read += len;
            bytes = &bytes[len..];
            if self.num_read == BLOCK_BYTES {
                self.num_read = 0;
                self.end_header()?;
            }
        }
        Ok(())
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
                format!(
                    "a name or attributes of {size} bytes; {MAX_HEADER_BYTES} at most are read"
                ),
            ));
        }
        self.is_map = kind.is_gnu_sparse() && self.header[482] == 1;
        self.content_bytes = size.checked_next_multiple_of(BLOCK_BYTES as u64).unwrap_or(u64::MAX);
        Ok(())
    }
}

impl<R: Read> Read for BoundedHeaders<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes)?;
        self.follow(&bytes[..len])?;
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
    fn large_names_are_refused_in_pieces_of_any_size() {
        for piece in [1, 7, 512, 8192] {
            let small = archive(1000);
            assert_eq!(read(&small, piece), Ok(small.len()));
            let error = read(&archive(MAX_HEADER_BYTES as usize + 1), piece).unwrap_err();
            assert!(error.contains("a name or attributes of 1048577 bytes"), "{error}");
        }
    }
}
