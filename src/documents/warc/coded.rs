//! Bodies of HTTP without their chunks, and without their content encodings: gzip, deflate, br and zstd, also
//! several in a row.
//!
//! ```text
//! Content-Encoding: br, gzip      body ─▶ gzip decoder ─▶ br decoder ─▶ text
//! 5\r\nhello\r\n │ 6;x=y\r\n world\r\n │ 0\r\nTrailer: z\r\n\r\n     ─▶ hello world
//! ```
//!
//! Servers send encodings that they do not name rightly. A body whose first bytes are not packed in the named way
//! stays as it is: gzip and zstd are told by their first bytes, br and deflate by decoding up to [`TRIAL_BYTES`].
//! deflate is read with the head of zlib and without. A body that is cut or damaged behind these bytes ends there,
//! with a warning, because crawlers cut bodies. The limits of expansion hold for each decoder.
//!
//! Source: RFC 9110, 8.4.1; RFC 9112, 7.1 (chunks); RFC 7932 (br), RFC 8878 (zstd), RFC 1950 and 1951 (deflate).

use std::cell::Cell;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::rc::Rc;

use brotli_decompressor::Decompressor;
use flate2::bufread::{DeflateDecoder, ZlibDecoder};

use crate::decoders::{GzipMembers, is_skippable, read_up_to};
use crate::failure::Failure;
use crate::inputs::Input;
use crate::open::{Budget, Counters, limited, zstd_decoder};

/// Bytes that are decoded to tell if a body is packed.
const TRIAL_BYTES: usize = 16 << 10;
/// Bytes that a trial may give.
const MAX_TRIAL_TEXT: u64 = 1 << 20;
/// Bytes that the decoder of br reads at once.
const BUFFER_BYTES: usize = 4 << 10;
/// Most encodings in a row.
const MAX_CODINGS: usize = 4;

/// Encodings of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Zlib,
    /// deflate without the head of zlib, as some servers send it.
    Deflate,
    Br,
    Zstd,
}

impl Coding {
    fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zlib | Self::Deflate => "deflate",
            Self::Br => "br",
            Self::Zstd => "zstd",
        }
    }

    /// Returns the encoding `name` of a body that begins with `head`, or none if it is not packed that way.
    /// `is_whole` is true if `head` is all of it.
    fn from_name(name: &str, head: &[u8], is_whole: bool) -> Option<Self> {
        let is_packed = |coding: &Self| coding.is_of(head, is_whole);
        match name {
            "gzip" | "x-gzip" => Some(Self::Gzip).filter(is_packed),
            "br" => Some(Self::Br).filter(is_packed),
            "zstd" | "x-zstd" => Some(Self::Zstd).filter(is_packed),
            "deflate" => [Self::Zlib, Self::Deflate, Self::Gzip].into_iter().find(is_packed),
            _ => None,
        }
    }

    fn is_of(self, head: &[u8], is_whole: bool) -> bool {
        match self {
            Self::Gzip => head.starts_with(&[0x1f, 0x8b, 8]),
            Self::Zstd => head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) || is_skippable(head),
            Self::Zlib => {
                let has_head = matches!(head, [method, flags, ..]
                    if method & 0xf == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31));
                has_head && self.stands_trial(head, is_whole)
            }
            Self::Deflate | Self::Br => self.stands_trial(head, is_whole),
        }
    }

    /// Returns true if `head` is decoded to its end without a fault.
    fn stands_trial(self, head: &[u8], is_whole: bool) -> bool {
        let mut bytes = BufReader::new(Trial { bytes: head, is_passed: false });
        let mut text = Vec::new();
        let outcome = match self {
            // The decoder reads ahead by a byte, so that the rest is known.
            Self::Br => read_trial(Decompressor::new(&mut bytes, 1), &mut text),
            Self::Zlib => read_trial(ZlibDecoder::new(&mut bytes), &mut text),
            _ => read_trial(DeflateDecoder::new(&mut bytes), &mut text),
        };
        let is_at_end = bytes.buffer().is_empty() && bytes.get_ref().bytes.is_empty();
        match outcome {
            Ok(()) => is_at_end || text.len() as u64 == MAX_TRIAL_TEXT,
            // Texts that happen to be decoded are short.
            Err(_) => bytes.get_ref().is_passed && !(is_whole && (text.is_empty() || is_text(head))),
        }
    }

    fn decoder<'a>(self, packed: impl BufRead + 'a, budget: &Budget) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Gzip => Box::new(GzipMembers::new(packed, Rc::default())),
            Self::Zlib => Box::new(ZlibDecoder::new(packed)),
            Self::Deflate => Box::new(DeflateDecoder::new(packed)),
            Self::Br => Box::new(Decompressor::new(packed, BUFFER_BYTES)),
            Self::Zstd => zstd_decoder(packed, budget)?,
        })
    }
}

/// The first bytes of a body. Reading behind them fails, because nobody knows what follows.
struct Trial<'a> {
    bytes: &'a [u8],
    /// True once bytes behind them were asked for.
    is_passed: bool,
}

impl Read for Trial<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.bytes.is_empty() && !bytes.is_empty() {
            self.is_passed = true;
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.bytes.read(bytes)
    }
}

fn read_trial(decoder: impl Read, text: &mut Vec<u8>) -> io::Result<()> {
    decoder.take(MAX_TRIAL_TEXT).read_to_end(text).map(|_| ())
}

/// Returns true if `bytes` are UTF-8 without control characters, as packed bytes are not.
fn is_text(bytes: &[u8]) -> bool {
    let is_control = |character: char| character.is_control() && !character.is_ascii_whitespace();
    str::from_utf8(bytes).is_ok_and(|text| !text.contains(is_control))
}

/// Returns `body` without `encodings`, the value of a line `Content-Encoding`, as far as it has them. `place` names
/// the body for messages.
///
/// # Errors
/// The errors of `body`.
pub fn decoded<'a>(
    mut body: Box<dyn BufRead + 'a>,
    encodings: &str,
    budget: &Budget,
    input: &Input,
    place: &str,
) -> io::Result<Box<dyn BufRead + 'a>> {
    let names: Vec<&str> = encodings.split(',').map(str::trim).filter(|name| !name.is_empty()).collect();
    for name in names.iter().rev().take(MAX_CODINGS) {
        let mut head = vec![0; TRIAL_BYTES];
        let len = read_up_to(&mut body, &mut head)?;
        let is_whole = len < TRIAL_BYTES;
        head.truncate(len);
        let coding = Coding::from_name(&name.to_ascii_lowercase(), &head, is_whole);
        body = Box::new(Cursor::new(head).chain(body));
        let Some(coding) = coding else { continue };
        let counters = budget.counters(0);
        let has_failed = Rc::new(Cell::new(false));
        let packed = Packed { inner: body, counters: counters.clone(), has_failed: Rc::clone(&has_failed) };
        let decoder = coding.decoder(BufReader::new(packed), budget)?;
        let input = input.clone();
        let place = place.to_owned();
        let until_fault = UntilFault { decoder, has_failed, coding, budget: budget.clone(), input, place };
        body = Box::new(BufReader::new(limited(Box::new(until_fault), &counters, budget)));
    }
    Ok(body)
}

/// A body that is packed. It counts its bytes, and notes if it cannot be read.
struct Packed<R> {
    inner: R,
    counters: Counters,
    has_failed: Rc<Cell<bool>>,
}

impl<R: Read> Read for Packed<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes).inspect_err(|_| self.has_failed.set(true))?;
        self.counters.add_packed_bytes(len as u64);
        Ok(len)
    }
}

/// A decoded body that ends with a warning where it is damaged.
struct UntilFault<'a> {
    decoder: Box<dyn Read + 'a>,
    /// True if the packed bytes cannot be read.
    has_failed: Rc<Cell<bool>>,
    coding: Coding,
    budget: Budget,
    input: Input,
    place: String,
}

impl Read for UntilFault<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self.decoder.read(bytes) {
            Err(error) if error.kind() != ErrorKind::Interrupted && !self.has_failed.get() => {
                let failure = Failure::new(format!(
                    "{}: {}: the body in {} is cut or damaged ({error}); its text up to there is stored, and so are \
                     the records behind it",
                    self.input.shown(),
                    self.place,
                    self.coding.name()
                ));
                self.budget.faults.note(&self.input, failure);
                self.decoder = Box::new(io::empty());
                Ok(0)
            }
            other => other,
        }
    }
}

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
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use testkit::random::Random;

    use super::*;
    use crate::failure::Faults;
    use crate::inputs::Source;
    use crate::open::{ExpansionLimits, open};

    /// `<p>castle</p> ` 40 times in br, by the reference encoder (`brotli -q 5`).
    const BR: &[u8] =
        b"\x1b\x2f\x02\x00\x04\x1c\x72\xa4\x81\x05\xf2\x65\x96\x05\x95\x26\xb4\xd5\xc3\xe1\xa9\x9b\x7b\xc5\x8f\x00";

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(text: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn deflate(text: &[u8]) -> Vec<u8> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn decoded_text(body: &[u8], encodings: &str, budget: &Budget) -> io::Result<Vec<u8>> {
        let input = Input::new(Source::Stdin, "a".to_owned(), 0);
        let mut text = Vec::new();
        decoded(Box::new(body), encodings, budget, &input, "record 1")?.read_to_end(&mut text)?;
        Ok(text)
    }

    fn budget() -> Budget {
        let input = Input::new(Source::Stdin, "a".to_owned(), 0);
        let limits = ExpansionLimits { max_ratio: 10, max_bytes: 100 << 20, ..ExpansionLimits::DEFAULT };
        let reader: Box<dyn Read> = Box::new(io::empty());
        open(&input, Some(reader), true, limits, &Faults::default()).unwrap().budget
    }

    /// Texts that are decoded, and those that are not packed at all.
    fn texts() -> Vec<Vec<u8>> {
        let mut random = Random(7);
        let noise: Vec<u8> = (0..100_000).map(|_| random.below(256) as u8).collect();
        let page = "<p>castle</p> ".repeat(10_000).into_bytes();
        let small = [
            "",
            "a",
            "{\"a\":1}",
            "[1,2,3]",
            "<!DOCTYPE html><p>x",
            "kkkk",
            "#!/bin/sh",
            "cSS{color:red}",
            ";",
            "\u{e9}t\u{e9}",
        ];
        small.iter().map(|text| text.as_bytes().to_vec()).chain([noise, page]).collect()
    }

    #[test]
    fn bodies_lose_their_encodings_and_others_stay() {
        let budget = budget();
        for text in texts() {
            let zstd = zstd::encode_all(text.as_slice(), 3).unwrap();
            for (name, body) in [
                ("gzip", gzip(&text)),
                ("X-GZIP", gzip(&text)),
                ("deflate", zlib(&text)),
                ("deflate", deflate(&text)),
                ("zstd", zstd.clone()),
                ("gzip, zstd", zstd::encode_all(gzip(&text).as_slice(), 3).unwrap()),
                ("zstd,deflate , identity", zlib(&zstd)),
                ("identity", text.clone()),
                ("unknown", text.clone()),
                ("", text.clone()),
            ] {
                let got = decoded_text(&body, name, &budget).unwrap();
                assert!(got == text, "{name} {:?}", String::from_utf8_lossy(&text[..text.len().min(20)]));
            }
            for name in ["gzip", "zstd", "deflate", "br"] {
                // A single semicolon is an empty text in br.
                if (name, text.as_slice()) != ("br", b";") {
                    let got = decoded_text(&text, name, &budget).unwrap();
                    assert!(got == text, "{name} {:?}", String::from_utf8_lossy(&text[..text.len().min(20)]));
                }
            }
        }
        assert!(budget.faults.warnings().is_empty());
        assert_eq!(decoded_text(BR, "br", &budget).unwrap(), "<p>castle</p> ".repeat(40).into_bytes());
    }

    #[test]
    fn bodies_that_are_cut_end_there_with_a_warning() {
        let mut random = Random(3);
        let text: Vec<u8> = (0..500_000).map(|_| b'a' + random.below(16) as u8).collect();
        for (name, body) in [("gzip", gzip(&text)), ("zstd", zstd::encode_all(text.as_slice(), 3).unwrap())] {
            let budget = budget();
            let got = decoded_text(&body[..body.len() / 4 * 3], name, &budget).unwrap();
            assert!(text.starts_with(&got) && got.len() > 1000, "{name} {}", got.len());
            assert_eq!(budget.faults.warnings().len(), 1, "{name}");
        }
        let got = decoded_text(&BR[..BR.len() - 4], "br", &budget()).unwrap();
        assert!("<p>castle</p> ".repeat(40).as_bytes().starts_with(&got));
    }

    #[test]
    fn bodies_expand_within_the_limits() {
        let bomb = gzip(&vec![b'a'; 70 << 20]);
        let error = decoded_text(&bomb, "gzip", &budget()).unwrap_err();
        assert!(Budget::is_exceeded(&error), "{error}");
        let error = decoded_text(&gzip(&bomb), "gzip, gzip", &budget()).unwrap_err();
        assert!(Budget::is_exceeded(&error), "{error}");
    }

    #[test]
    fn any_bytes_are_read() {
        let mut random = Random(5);
        for _ in 0..2000 {
            let len = random.below(200);
            let mut body: Vec<u8> = (0..len).map(|_| random.below(256) as u8).collect();
            if random.one_in(2) {
                body = zlib(&body);
                let at = random.below(body.len());
                body[at] ^= 1 << random.below(8);
            }
            for name in ["gzip", "deflate", "br", "zstd"] {
                decoded_text(&body, name, &budget()).unwrap();
            }
        }
    }

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
