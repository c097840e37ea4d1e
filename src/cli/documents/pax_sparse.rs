//! Sparse files in tar archives of the form pax: their names, and their bytes with the holes.
//!
//! ```text
//! attributes of pax             name, size, and in 0.0 and 0.1 the map of the data
//! content    ┌ map, in 1.0 ┬ data 0 ┬ data 1 ┐
//! file       │ zeros up to offset 0, data 0, zeros up to offset 1, data 1, zeros up to the size
//! ```
//!
//! Source: GNU tar manual, "Storing Sparse Files", formats 0.0, 0.1 and 1.0. The map ascends, and its parts lie
//! inside the file; others are refused. Time is linear in the bytes of the file. Memory is that of the map.

use std::io::{self, ErrorKind, Read};

/// Bytes of a block. The map of format 1.0 is padded to it.
const BLOCK_BYTES: usize = 512;
/// Greatest number of parts of a map in the content of a member.
const MAX_PARTS: u64 = 1 << 20;

/// What the attributes of a member say of a sparse file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sparse {
    /// Name of the file, unless it is that of the member.
    pub name: Option<Vec<u8>>,
    /// Bytes of the file.
    pub len_bytes: u64,
    /// Offset and length of each part.
    parts: Vec<(u64, u64)>,
    /// True if the map stands before the data.
    has_map_before: bool,
}

impl Sparse {
    /// Reads the `attributes` of a member; `None` if it is no sparse file.
    ///
    /// # Errors
    /// A number is none.
    pub fn from_attributes<'a>(
        attributes: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> io::Result<Option<Self>> {
        let mut sparse = Self::default();
        let mut is_sparse = false;
        let mut offset = 0;
        for (key, value) in attributes {
            let Some(key) = key.strip_prefix(b"GNU.sparse.") else { continue };
            is_sparse = true;
            match key {
                b"name" => sparse.name = Some(value.to_vec()),
                b"realsize" | b"size" => sparse.len_bytes = number(value)?,
                b"major" => sparse.has_map_before = number(value)? > 0,
                b"offset" => offset = number(value)?,
                b"numbytes" => sparse.parts.push((offset, number(value)?)),
                b"map" => sparse.parts = parts(value)?,
                _ => {}
            }
        }
        Ok(is_sparse.then_some(sparse))
    }

    /// Returns the bytes of the file, whose member has the content `content`.
    ///
    /// # Errors
    /// The map cannot be read, or it does not ascend within the file.
    pub fn expanded<R: Read>(mut self, mut content: R) -> io::Result<Expanded<R>> {
        if self.has_map_before {
            self.parts = map_before(&mut content)?;
        }
        let mut end = 0;
        for &(offset, len) in &self.parts {
            let part_end = offset.checked_add(len).filter(|_| offset >= end);
            end = part_end.filter(|&part_end| part_end <= self.len_bytes).ok_or_else(damaged)?;
        }
        let parts = self.parts.into_iter();
        Ok(Expanded { content, parts, part: (0, 0), position: 0, len_bytes: self.len_bytes })
    }
}

/// Reader of a sparse file.
#[derive(Debug)]
pub struct Expanded<R> {
    content: R,
    parts: std::vec::IntoIter<(u64, u64)>,
    /// The part at or behind the position, or the last one.
    part: (u64, u64),
    position: u64,
    len_bytes: u64,
}

impl<R: Read> Read for Expanded<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        while self.position >= self.part.0 + self.part.1 {
            let Some(part) = self.parts.next() else {
                self.part = (self.len_bytes, 0);
                break;
            };
            self.part = part;
        }
        let (offset, len) = self.part;
        let is_hole = self.position < offset;
        let end = if is_hole { offset } else { offset + len };
        let room = usize::try_from(end - self.position).unwrap_or(usize::MAX).min(bytes.len());
        if room == 0 {
            return Ok(0);
        }
        let read = if is_hole {
            bytes[..room].fill(0);
            room
        } else {
            self.content.read(&mut bytes[..room])?
        };
        if read == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.position += read as u64;
        Ok(read)
    }
}

/// Reads the map of format 1.0: a number of parts, offset and length of each, a line for each number.
fn map_before(content: &mut impl Read) -> io::Result<Vec<(u64, u64)>> {
    let mut numbers: Vec<u64> = Vec::new();
    let mut line = Vec::new();
    let mut block = [0; BLOCK_BYTES];
    loop {
        content.read_exact(&mut block)?;
        for &byte in &block {
            if byte != b'\n' {
                line.push(byte);
                if line.len() > BLOCK_BYTES {
                    return Err(damaged());
                }
                continue;
            }
            numbers.push(number(&line)?);
            line.clear();
            let num_parts = numbers[0];
            if num_parts > MAX_PARTS {
                return Err(damaged());
            }
            if numbers.len() as u64 == 1 + 2 * num_parts {
                return Ok(numbers[1..].chunks_exact(2).map(|part| (part[0], part[1])).collect());
            }
        }
    }
}

/// Reads the map of format 0.1: offset, length, offset, length.
fn parts(map: &[u8]) -> io::Result<Vec<(u64, u64)>> {
    let numbers = map.split(|&byte| byte == b',').map(number).collect::<io::Result<Vec<u64>>>()?;
    if !numbers.len().is_multiple_of(2) {
        return Err(damaged());
    }
    Ok(numbers.chunks_exact(2).map(|part| (part[0], part[1])).collect())
}

fn number(digits: &[u8]) -> io::Result<u64> {
    let text = std::str::from_utf8(digits).map_err(|_| damaged())?;
    text.parse().map_err(|_| damaged())
}

fn damaged() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the map of a sparse file is no map of its parts")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(attributes: &[(&str, &str)]) -> io::Result<Option<Sparse>> {
        let bytes = attributes.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes()));
        Sparse::from_attributes(bytes)
    }

    fn expanded(attributes: &[(&str, &str)], content: &[u8]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        sparse(attributes)?.unwrap().expanded(content)?.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    #[test]
    fn each_format_has_its_holes() {
        let expected = b"ab\0\0\0cd\0";
        let old = [
            ("GNU.sparse.size", "8"),
            ("GNU.sparse.numblocks", "2"),
            ("GNU.sparse.offset", "0"),
            ("GNU.sparse.numbytes", "2"),
            ("GNU.sparse.offset", "5"),
            ("GNU.sparse.numbytes", "2"),
        ];
        assert_eq!(expanded(&old, b"abcd").unwrap(), expected);
        let middle = [
            ("mtime", "1"),
            ("GNU.sparse.name", "dir/x"),
            ("GNU.sparse.size", "8"),
            ("GNU.sparse.map", "0,2,5,2"),
        ];
        assert_eq!(expanded(&middle, b"abcd").unwrap(), expected);
        assert_eq!(sparse(&middle).unwrap().unwrap().name.unwrap(), b"dir/x");
        let new = [("GNU.sparse.major", "1"), ("GNU.sparse.realsize", "8")];
        let mut content = b"2\n0\n2\n5\n2\n".to_vec();
        content.resize(512, 0);
        content.extend(b"abcd");
        assert_eq!(expanded(&new, &content).unwrap(), expected);
        assert_eq!(sparse(&[("path", "x")]).unwrap(), None);
    }

    #[test]
    fn damage_is_an_error() {
        let with =
            |map, size| expanded(&[("GNU.sparse.size", size), ("GNU.sparse.map", map)], b"ab");
        for (map, size) in [
            ("0,2", "1"),
            ("5,2,0,2", "9"),
            ("0,2,1,2", "9"),
            ("0", "9"),
            ("x,2", "9"),
            ("18446744073709551615,2", "18446744073709551615"),
            ("0,3", "9"),
            ("0,2", "-1"),
        ] {
            assert!(with(map, size).is_err(), "{map} {size}");
        }
        let new = [("GNU.sparse.major", "1"), ("GNU.sparse.realsize", "8")];
        for content in ["", "99999999\n", "1\n0\n"] {
            let mut block = content.as_bytes().to_vec();
            block.resize(512, b'7');
            assert!(expanded(&new, &block).is_err(), "{content:?}");
        }
        assert_eq!(with("", "0").map(|bytes| bytes.len()).ok(), None);
    }
}
