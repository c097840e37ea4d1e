//! Opens an input for reading. gzip and zstd are recognised by their first bytes.
//!
//! ```text
//! disk ─▶ counted ─▶ gzip, zstd ─▶ counted, limited ─▶ buffer ─▶ reader of the format
//! ```
//!
//! Decompression is streamed. A small file that expands to a huge one takes disk space and time but
//! no memory, and [`ExpansionLimits`] stop it before it takes too much of these. Bytes are counted
//! before decompression, because a progress bar knows only sizes on disk, and after it.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::AddAssign;
use std::rc::Rc;

use flate2::read::MultiGzDecoder;

use crate::display;
use crate::failure::{Failure, Outcome};
use crate::inputs::{Input, Source};

const BUFFER_BYTES: usize = 1 << 18;
/// Base-2 logarithms of the window sizes of zstd.
const WINDOW_LOGS: std::ops::RangeInclusive<u32> = 10..=31;
/// Bytes of text that every input may expand to. The ratios of small inputs say nothing.
const FREE_BYTES: u64 = 64 << 20;
/// Error text of zstd for a window above its limit.
const ZSTD_WINDOW: &str = "Frame requires too much memory for decoding";
/// Error text of zstd for memory that it cannot allocate.
const ZSTD_NO_MEMORY: &str = "Allocation error : not enough memory";

/// Limits on the expansion of a compressed input.
#[derive(Debug, Clone, Copy)]
pub struct ExpansionLimits {
    /// Maximum bytes of text per byte of the input. The first 64 MiB are always allowed.
    pub max_ratio: u64,
    /// Maximum bytes of text in total.
    pub max_bytes: u64,
    /// Maximum bytes of a zstd window, which is held in memory.
    pub max_window_bytes: u64,
}

impl ExpansionLimits {
    /// Default limits, which nearly all files meet. gzip reaches at most 1,032 to 1, and files with
    /// a ratio above 1,000 are usually made for that purpose.
    pub const DEFAULT: Self =
        Self { max_ratio: 1000, max_bytes: 1 << 38, max_window_bytes: 128 << 20 };

    /// Returns the exceeded limit, if there is one.
    fn exceeded(&self, read: Counts) -> Option<Expansion> {
        let max_by_ratio = read.disk_bytes.saturating_mul(self.max_ratio).max(FREE_BYTES);
        match read.text_bytes {
            bytes if bytes > self.max_bytes => Some(Expansion::Bytes(self.max_bytes)),
            bytes if bytes > max_by_ratio => Some(Expansion::Ratio(self.max_ratio, read)),
            _ => None,
        }
    }

    fn window_log(&self) -> u32 {
        self.max_window_bytes.ilog2().clamp(*WINDOW_LOGS.start(), *WINDOW_LOGS.end())
    }
}

/// A limit that decompression has exceeded.
#[derive(Debug)]
enum Expansion {
    Ratio(u64, Counts),
    Bytes(u64),
}

impl fmt::Display for Expansion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ratio(max_ratio, read) => write!(
                f,
                "gives more than {max_ratio} times its bytes ({} of the first {}); where that is \
                 right, pass a larger --max-expansion",
                display::bytes(read.text_bytes),
                display::bytes(read.disk_bytes)
            ),
            Self::Bytes(max_bytes) => write!(
                f,
                "gives more than {}; where that is right, pass a larger --max-expanded-size",
                display::bytes(*max_bytes)
            ),
        }
    }
}

impl std::error::Error for Expansion {}

/// Numbers of bytes read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes from disk, before decompression.
    pub disk_bytes: u64,
    /// Bytes of text, after decompression.
    pub text_bytes: u64,
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.disk_bytes += more.disk_bytes;
        self.text_bytes += more.text_bytes;
    }
}

/// An opened input that counts its bytes.
pub struct Opened {
    /// The text, decompressed.
    pub reader: Box<dyn BufRead>,
    /// Codec, `gzip` or `zstd`, if the input is decompressed.
    pub codec: Option<&'static str>,
    disk_bytes: Counter,
    text_bytes: Counter,
    taken: Counts,
    max_window_bytes: u64,
}

type Counter = Rc<Cell<u64>>;

/// Opens `input`. Compressed inputs are decompressed within `limits`, unless `decompress` is false.
///
/// # Errors
/// The file does not exist or cannot be read.
pub fn open(input: &Input, decompress: bool, limits: ExpansionLimits) -> Outcome<Opened> {
    let raw: Box<dyn Read> = match &input.source {
        Source::Stdin => Box::new(io::stdin()),
        Source::File(path) => Box::new(File::open(path).map_err(|error| failed(input, &error))?),
        Source::Stored(stored) => Box::new(stored.reader()),
    };
    let disk_bytes = Counter::default();
    let mut raw = Counted { inner: raw, bytes: Rc::clone(&disk_bytes) };
    let mut magic = [0; 4];
    let len = read_up_to(&mut raw, &mut magic).map_err(|error| failed(input, &error))?;
    let bytes = Cursor::new(magic).take(len as u64).chain(raw);
    let bytes = BufReader::with_capacity(BUFFER_BYTES, bytes);
    let (decoder, codec): (Box<dyn Read>, _) = match &magic[..len] {
        [0x1f, 0x8b, 8, _] if decompress => (Box::new(MultiGzDecoder::new(bytes)), "gzip"),
        [0x28, 0xb5, 0x2f, 0xfd] if decompress => {
            let mut decoder = zstd::Decoder::with_buffer(bytes).map_err(|e| failed(input, &e))?;
            let log = limits.window_log();
            decoder.window_log_max(log).map_err(|error| failed(input, &error))?;
            (Box::new(decoder), "zstd")
        }
        _ => {
            let text_bytes = Rc::clone(&disk_bytes);
            return Ok(Opened::new(Box::new(bytes), None, disk_bytes, text_bytes, limits));
        }
    };
    let text_bytes = Counter::default();
    let counters = (Rc::clone(&disk_bytes), Rc::clone(&text_bytes));
    let limited = Limited { inner: decoder, limits, counters };
    let reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, limited));
    Ok(Opened::new(reader, Some(codec), disk_bytes, text_bytes, limits))
}

impl Opened {
    fn new(
        reader: Box<dyn BufRead>,
        codec: Option<&'static str>,
        disk_bytes: Counter,
        text_bytes: Counter,
        limits: ExpansionLimits,
    ) -> Self {
        let (taken, max_window_bytes) = (Counts::default(), limits.max_window_bytes);
        Self { reader, codec, disk_bytes, text_bytes, taken, max_window_bytes }
    }

    /// Returns the bytes read since the last call.
    pub fn take_counts(&mut self) -> Counts {
        let all = Counts { disk_bytes: self.disk_bytes.get(), text_bytes: self.text_bytes.get() };
        let before = std::mem::replace(&mut self.taken, all);
        Counts {
            disk_bytes: all.disk_bytes - before.disk_bytes,
            text_bytes: all.text_bytes - before.text_bytes,
        }
    }

    /// Builds the failure for a read error.
    pub fn failed(&self, input: &Input, error: &io::Error) -> Failure {
        let Some(codec) = self.codec else { return failed(input, error) };
        let shown = input.shown();
        let raw = "--no-decompress to store the bytes as they are";
        if let Some(limit) = error.get_ref().and_then(|e| e.downcast_ref::<Expansion>()) {
            return Failure::new(format!("{shown}: the {codec} stream {limit}, or {raw}"));
        }
        let text = error.to_string();
        if text == ZSTD_WINDOW {
            let max = display::bytes(self.max_window_bytes);
            return Failure::new(format!(
                "{shown}: the zstd stream needs a window of more than {max} of memory; pass a larger \
                 --max-window, or {raw}"
            ));
        }
        if error.kind() == io::ErrorKind::OutOfMemory || text == ZSTD_NO_MEMORY {
            return Failure::new(format!(
                "{shown}: there is no memory to decompress the {codec} stream; free some, or pass {raw}"
            ));
        }
        Failure::new(format!(
            "{shown}: the {codec} stream is cut or damaged ({text}); repair it, or pass {raw}"
        ))
    }
}

fn failed(input: &Input, error: &io::Error) -> Failure {
    Failure::with_cause(format!("{}: cannot read", input.shown()), error)
}

/// Fills `bytes` as far as the input goes, and returns the number of bytes read.
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

/// A reader that counts its bytes.
struct Counted<R> {
    inner: R,
    bytes: Counter,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes)?;
        self.bytes.set(self.bytes.get() + len as u64);
        Ok(len)
    }
}

/// A reader that counts the text and stops at the limits.
struct Limited {
    inner: Box<dyn Read>,
    limits: ExpansionLimits,
    /// Counters of bytes from disk and bytes of text.
    counters: (Counter, Counter),
}

impl Read for Limited {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes)?;
        let (disk, text) = &self.counters;
        text.set(text.get() + len as u64);
        let read = Counts { disk_bytes: disk.get(), text_bytes: text.get() };
        match self.limits.exceeded(read) {
            Some(limit) => Err(io::Error::other(limit)),
            None => Ok(len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_of_ratio_and_of_bytes() {
        let limits = ExpansionLimits { max_ratio: 10, max_bytes: 1 << 30, max_window_bytes: 1 };
        let exceeded = |disk_bytes, text_bytes| limits.exceeded(Counts { disk_bytes, text_bytes });
        assert!(exceeded(1, FREE_BYTES).is_none());
        assert!(matches!(exceeded(1, FREE_BYTES + 1), Some(Expansion::Ratio(10, _))));
        assert!(exceeded(FREE_BYTES, 10 * FREE_BYTES).is_none());
        assert!(exceeded(FREE_BYTES, 10 * FREE_BYTES + 1).is_some());
        assert!(matches!(exceeded(1 << 40, (1 << 30) + 1), Some(Expansion::Bytes(_))));
        assert_eq!(limits.window_log(), 10);
        assert_eq!(ExpansionLimits::DEFAULT.window_log(), 27);
        assert_eq!(ExpansionLimits { max_window_bytes: u64::MAX, ..limits }.window_log(), 31);
    }
}
