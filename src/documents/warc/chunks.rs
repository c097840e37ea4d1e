//! Bodies of HTTP in chunks, joined.
//!
//! ```text
//! 5\r\nhello\r\n │ 6;x=y\r\n world\r\n │ 0\r\nTrailer: z\r\n\r\n     ─▶ hello world
//! ```
//!
//! Source: RFC 9112, 7.1.

use std::io::{self, BufRead, Cursor, Read};

/// Maximum bytes of the line in front of a chunk.
const MAX_CHUNK_LINE: u64 = 1 << 10;

/// A body in chunks, each behind a line with its length. A body whose first line is none, although the
/// header lines say so, stays as it is; so does the rest behind a line that is none.
pub struct Chunks<R> {
    inner: R,
    /// Bytes of a line that is no length of a chunk.
    line: Cursor<Vec<u8>>,
    /// Bytes up to the next length, or none if there are no chunks any more.
    rest: Option<u64>,
}

impl<R: BufRead> Chunks<R> {
    /// Reads the first length of `inner`.
    ///
    /// # Errors
    /// The errors of `inner`.
    pub fn new(inner: R) -> io::Result<Self> {
        let mut chunks = Self { inner, line: Cursor::default(), rest: Some(0) };
        chunks.next_chunk()?;
        Ok(chunks)
    }

    /// Reads the length of the next chunk. The last one has the length 0.
    fn next_chunk(&mut self) -> io::Result<()> {
        let mut line = Vec::new();
        (&mut self.inner).take(MAX_CHUNK_LINE).read_until(b'\n', &mut line)?;
        let text = std::str::from_utf8(&line).unwrap_or_default();
        let digits = text.split(';').next().unwrap_or_default().trim();
        match u64::from_str_radix(digits, 16) {
            Ok(0) => {
                io::copy(&mut self.inner, &mut io::sink())?;
                self.rest = None;
            }
            Ok(len) if line.ends_with(b"\n") => self.rest = Some(len),
            _ => (self.line, self.rest) = (Cursor::new(line), None),
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Chunks<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.line.read(bytes)?;
        let Some(rest) = self.rest.filter(|_| len == 0) else {
            return if len > 0 { Ok(len) } else { self.inner.read(bytes) };
        };
        let len = (&mut self.inner).take(rest).read(bytes)?;
        self.rest = Some(rest - len as u64);
        if self.rest == Some(0) {
            // The line end behind the chunk.
            let mut line = Vec::new();
            (&mut self.inner).take(2).read_until(b'\n', &mut line)?;
            self.next_chunk()?;
        } else if len == 0 && !bytes.is_empty() {
            self.rest = None;
        }
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(body: &str) -> String {
        let mut text = String::new();
        Chunks::new(body.as_bytes()).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn chunks_are_joined() {
        assert_eq!(joined("3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n"), "abcde");
        assert_eq!(joined("A\r\n0123456789\r\n0\r\n\r\n"), "0123456789");
        assert_eq!(joined("0\r\n\r\n"), "");
    }

    #[test]
    fn other_bodies_stay() {
        for body in ["", "<html>\n</html>", "no line end", "zz\r\nabc", "3"] {
            assert_eq!(joined(body), body);
        }
        assert_eq!(joined("3\r\nabc\r\nmore\r\n3\r\n"), "abcmore\r\n3\r\n");
        assert_eq!(joined("9\r\ncut"), "cut");
    }
}
