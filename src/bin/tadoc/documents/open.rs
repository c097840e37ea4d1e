//! Opens an input for reading; gzip and zstd are recognised by their first bytes.
//!
//! Decompression is streamed, so a small file that expands to a huge one costs disk and time but
//! no memory (unless it is one document). Bytes are counted before decompression, as sizes on disk
//! are what a progress bar can know.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use crate::failure::{Failure, Outcome};
use crate::inputs::{Input, Source};

const BUFFER_BYTES: usize = 1 << 18;
/// Windows of `zstd --long=31` and below are accepted.
const WINDOW_LOG_MAX: u32 = 31;

/// An opened input and a count of the bytes taken from disk.
pub struct Opened {
    /// The text, decompressed.
    pub reader: Box<dyn BufRead>,
    /// Counts the bytes taken from disk.
    pub counter: Counter,
    /// `gzip` or `zstd` where the input is compressed.
    pub codec: Option<&'static str>,
}

/// A count of bytes, taken out by whoever reports them.
#[derive(Debug, Clone, Default)]
pub struct Counter(Rc<Cell<u64>>);

impl Counter {
    /// The count since the last call.
    pub fn take(&self) -> u64 {
        self.0.take()
    }
}

/// Opens `input`; compressed ones give their text unless `decompress` is false.
///
/// # Errors
/// The file does not exist or cannot be read.
pub fn open(input: &Input, decompress: bool) -> Outcome<Opened> {
    let raw: Box<dyn Read> = match &input.source {
        Source::Stdin => Box::new(io::stdin()),
        Source::File(path) => Box::new(File::open(path).map_err(|error| failed(input, &error))?),
    };
    let counter = Counter::default();
    let mut raw = Counted { inner: raw, counter: counter.clone() };
    let mut magic = [0; 4];
    let len = read_up_to(&mut raw, &mut magic).map_err(|error| failed(input, &error))?;
    let bytes = Cursor::new(magic).take(len as u64).chain(raw);
    let bytes = BufReader::with_capacity(BUFFER_BYTES, bytes);
    let (reader, codec): (Box<dyn BufRead>, _) = match &magic[..len] {
        _ if !decompress => (Box::new(bytes), None),
        [0x1f, 0x8b, 8, _] => (buffered(MultiGzDecoder::new(bytes)), Some("gzip")),
        [0x28, 0xb5, 0x2f, 0xfd] => {
            let mut decoder = zstd::Decoder::with_buffer(bytes).map_err(|e| failed(input, &e))?;
            decoder.window_log_max(WINDOW_LOG_MAX).map_err(|error| failed(input, &error))?;
            (buffered(decoder), Some("zstd"))
        }
        _ => (Box::new(bytes), None),
    };
    Ok(Opened { reader, counter, codec })
}

impl Opened {
    /// The failure to report when reading fails.
    pub fn failed(&self, input: &Input, error: &io::Error) -> Failure {
        match self.codec {
            Some(codec) => Failure::new(format!(
                "{}: the {codec} stream is cut or damaged ({error}); repair it, or pass \
                 --no-decompress to store the bytes as they are",
                input.shown()
            )),
            None => failed(input, error),
        }
    }
}

fn failed(input: &Input, error: &io::Error) -> Failure {
    Failure::with_cause(format!("{}: cannot read", input.shown()), error)
}

fn buffered(reader: impl Read + 'static) -> Box<dyn BufRead> {
    Box::new(BufReader::with_capacity(BUFFER_BYTES, reader))
}

/// Fills `bytes` as far as the input goes.
fn read_up_to(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    let mut len = 0;
    while len < bytes.len() {
        match reader.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(len)
}

struct Counted<R> {
    inner: R,
    counter: Counter,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes)?;
        self.counter.0.set(self.counter.0.get() + len as u64);
        Ok(len)
    }
}
