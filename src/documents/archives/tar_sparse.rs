//! Sparse members of tar archives as pax states them: their name, and their bytes with the holes.
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
use std::vec::IntoIter;

use tar::PaxExtensions;

use super::tar_headers::BLOCK_BYTES;

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
        let (mut map, mut map_bytes) = (self.map, 0);
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
    let (mut num_missing, mut map_bytes) = (None, 0);
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
