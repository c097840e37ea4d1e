//! Checksums over every byte of a file that a reader uses, apart from blocks, which have their own.
//!
//! ```text
//! "PAR1" │ chunks of row group 0 │ chunks of row group 1 │ page indexes │ footer, length, "PAR1"
//!          CRC32C of each chunk: in the index            └─────────── seal: CRC32C ───────────┘
//!
//! "tadoc.gsst.seal" ─▶ start of the sealed bytes (16 digits), their CRC32C (8 digits)
//! ```
//!
//! The seal lies among the bytes that it covers. So its last 8 digits count as `0` in the checksum.
//! The seal is found by its key and the lengths that Parquet writes around it (the compact protocol
//! of Thrift), at the last place that has them.

use std::io::{self, Write};
use std::ops::Range;

use memchr::memmem;
use parquet::file::metadata::ParquetMetaData;

use crate::error::{Error, Result};

use super::index::{SOURCE, are_keys_left_over, fault, value_for};

/// Key of the seal in the footer.
pub const SEAL_KEY: &str = "tadoc.gsst.seal";

const START_DIGITS: usize = 16;
const CHECKSUM_DIGITS: usize = 8;
const DIGITS: usize = START_DIGITS + CHECKSUM_DIGITS;
/// Head of the second field of a structure, a text, and the length of the text.
const BETWEEN: [u8; 2] = [0x18, DIGITS as u8];
const SECTION: &str = "footer";

/// Checksum of the end of a file: page indexes and footer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FooterSeal {
    start: u64,
    checksum: u32,
}

impl FooterSeal {
    /// Returns the seal of the file with this footer. `None` if it has none, as files of the first
    /// version and files without GSST columns.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if the value of the key is no seal.
    pub fn find(footer: &ParquetMetaData) -> Result<Option<Self>> {
        let digits = value_for(footer, SEAL_KEY).filter(|_| !are_keys_left_over(footer));
        let Some(digits) = digits else { return Ok(None) };
        let is_seal = digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let parsed = digits.split_at_checked(START_DIGITS).filter(|_| is_seal);
        let parsed = parsed.and_then(|(start, checksum)| {
            let start = u64::from_str_radix(start, 16).ok()?;
            Some(Self { start, checksum: u32::from_str_radix(checksum, 16).ok()? })
        });
        let reason = "expected 24 hexadecimal digits as the checksum of the footer";
        parsed.map(Some).ok_or_else(|| fault(0, reason))
    }

    /// Returns the range of the sealed bytes in a file of this length.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if they start behind the end of the file.
    pub fn range(&self, file_len_bytes: u64) -> Result<Range<u64>> {
        if self.start < file_len_bytes {
            Ok(self.start..file_len_bytes)
        } else {
            Err(fault(0, "a checksum of bytes behind the end of the file"))
        }
    }

    /// Compares the sealed bytes with their checksum.
    ///
    /// # Errors
    ///
    /// [`Error::Checksum`] if they are not those that were written.
    pub fn check(&self, sealed: &[u8]) -> Result<()> {
        let got = match places(sealed) {
            Some(places) => checksum_without(sealed, &places),
            None => crc32c::crc32c(sealed),
        };
        if got == self.checksum {
            return Ok(());
        }
        let file = SOURCE.to_owned();
        let expected = self.checksum;
        Err(Error::Checksum { file, section: SECTION, offset: self.start, expected, got })
    }
}

/// Returns the value of the seal's key before the checksum is known.
pub(super) fn open_seal(start: u64) -> String {
    format!("{start:016x}{:08x}", 0)
}

/// Writes the checksum of `sealed` into the value of the seal's key.
pub(super) fn close_seal(sealed: &mut [u8]) -> io::Result<()> {
    let places = places(sealed);
    let places = places.ok_or_else(|| io::Error::other("the footer has no place for its checksum"))?;
    let digits = format!("{:08x}", checksum_without(sealed, &places));
    sealed[places].copy_from_slice(digits.as_bytes());
    Ok(())
}

/// Returns the places of the digits of the checksum among the sealed bytes.
fn places(sealed: &[u8]) -> Option<Range<usize>> {
    let around = [SEAL_KEY.as_bytes(), &BETWEEN].concat();
    let start = memmem::rfind(sealed, &around)? + around.len() + START_DIGITS;
    let places = start..start + CHECKSUM_DIGITS;
    (places.end <= sealed.len()).then_some(places)
}

/// Returns the CRC32C of `sealed` with `0` at `places`.
fn checksum_without(sealed: &[u8], places: &Range<usize>) -> u32 {
    let before = crc32c::crc32c(&sealed[..places.start]);
    let zeros = crc32c::crc32c_append(before, &[b'0'; CHECKSUM_DIGITS]);
    crc32c::crc32c_append(zeros, &sealed[places.end..])
}

/// An output that computes the checksums of column chunks as they pass, and seals the footer.
pub(super) struct SealedOutput<W> {
    output: W,
    /// Number of bytes that were written.
    len_bytes: u64,
    /// Chunks whose bytes are awaited or have passed, ascending.
    chunks: Vec<Chunk>,
    /// First of them that is not complete.
    next: usize,
    /// Bytes of the end of the file, once it begins.
    end: Option<Vec<u8>>,
}

struct Chunk {
    range: Range<u64>,
    checksum: u32,
}

impl<W> SealedOutput<W> {
    pub(super) fn new(output: W) -> Self {
        Self { output, len_bytes: 0, chunks: Vec::new(), next: 0, end: None }
    }

    /// Notes that the bytes in `range` will be a column chunk. Ranges must ascend.
    pub(super) fn expect_chunk(&mut self, range: Range<u64>) {
        self.chunks.push(Chunk { range, checksum: 0 });
    }

    /// Returns the checksums of all chunks, in the order in which they were noted.
    pub(super) fn checksums(&self) -> Vec<u32> {
        self.chunks.iter().map(|chunk| chunk.checksum).collect()
    }

    /// Keeps all following bytes until [`SealedOutput::finish`].
    pub(super) fn begin_end(&mut self) {
        self.end = Some(Vec::new());
    }

    fn count(&mut self, written: &[u8]) {
        let start = self.len_bytes;
        self.len_bytes += written.len() as u64;
        while let Some(chunk) = self.chunks.get_mut(self.next) {
            let from = chunk.range.start.clamp(start, self.len_bytes) - start;
            let to = chunk.range.end.clamp(start, self.len_bytes) - start;
            let part = &written[from as usize..to as usize];
            chunk.checksum = crc32c::crc32c_append(chunk.checksum, part);
            if chunk.range.end > self.len_bytes {
                return;
            }
            self.next += 1;
        }
    }
}

impl<W: Write> SealedOutput<W> {
    /// Writes the end of the file with its checksum, and returns the output.
    pub(super) fn finish(mut self) -> io::Result<W> {
        if let Some(mut end) = self.end.take() {
            close_seal(&mut end)?;
            self.output.write_all(&end)?;
        }
        Ok(self.output)
    }
}

impl<W: Write> Write for SealedOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(end) = &mut self.end {
            end.extend_from_slice(bytes);
            return Ok(bytes.len());
        }
        let num_written = self.output.write(bytes)?;
        self.count(&bytes[..num_written]);
        Ok(num_written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output that takes at most 3 bytes at a time.
    struct Slow(Vec<u8>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let part = &bytes[..bytes.len().min(3)];
            self.0.extend_from_slice(part);
            Ok(part.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn chunks_have_the_checksums_of_their_bytes() {
        let bytes: Vec<u8> = (0..100).collect();
        let ranges = [4..4, 4..9, 9..50, 60..61, 61..100];
        for piece in [1, 2, 7, 100] {
            let mut output = SealedOutput::new(Slow(Vec::new()));
            for range in ranges.clone() {
                output.expect_chunk(range);
            }
            bytes.chunks(piece).for_each(|part| output.write_all(part).unwrap());
            let of = |range: Range<u64>| crc32c::crc32c(&bytes[range.start as usize..range.end as usize]);
            assert_eq!(output.checksums(), ranges.clone().map(of));
            assert_eq!(output.finish().unwrap().0, bytes);
        }
    }

    #[test]
    fn a_seal_covers_each_of_its_bytes() {
        let mut output = SealedOutput::new(Vec::new());
        output.write_all(b"rows").unwrap();
        output.begin_end();
        let pair = [SEAL_KEY.as_bytes(), &BETWEEN, open_seal(4).as_bytes()].concat();
        // A value that looks like a seal comes before it.
        let end = [&b"min "[..], &pair, b" footer ", &pair, b" PAR1"].concat();
        output.write_all(&end).unwrap();
        let file = output.finish().unwrap();
        let sealed = &file[4..];
        let found = places(sealed).unwrap();
        let digits = std::str::from_utf8(&sealed[found]).unwrap();
        let seal = FooterSeal { start: 4, checksum: u32::from_str_radix(digits, 16).unwrap() };
        seal.check(sealed).unwrap();
        assert_eq!(seal.range(file.len() as u64).unwrap(), 4..file.len() as u64);
        assert!(seal.range(4).is_err());
        let digits = places(sealed).unwrap();
        for at in (0..sealed.len()).filter(|at| !digits.contains(at)) {
            let mut damaged = sealed.to_vec();
            damaged[at] ^= 0x10;
            assert!(matches!(seal.check(&damaged), Err(Error::Checksum { .. })), "{at}");
        }
    }

    #[test]
    fn an_end_without_a_seal_is_refused() {
        let mut output = SealedOutput::new(Vec::new());
        output.begin_end();
        output.write_all(b"footer").unwrap();
        assert!(output.finish().is_err());
    }
}
