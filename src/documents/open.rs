//! Opens an input for reading. gzip, zstd, bzip2, xz, lzip and lz4 are recognised by their first bytes.
//!
//! ```text
//! disk ─▶ counted ─▶ decoder ─▶ counted, limited ─▶ ends at damage ─▶ buffer ─▶ reader of the format
//! ```
//!
//! A stream ends at its damage only with `--keep-going`, see [`Faults`].
//!
//! A member of an archive is opened in the same way. Its bytes count for the input that has it.
//!
//! Decompression is streamed. A small file that expands to a huge one takes disk space and time but
//! no memory, and [`ExpansionLimits`] stop it before it takes too much of these. Bytes are counted
//! before decompression, because a progress bar knows only sizes on disk, and after it.

use std::cell::Cell;
use std::error::Error;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::AddAssign;
use std::rc::Rc;

use liblzma::read::XzDecoder;
use liblzma::stream::{CONCATENATED, Stream};

use crate::charset::{Charset, Damage, Given, Utf8Page};
use crate::decoders::{self, Bzip2Streams, GzipMembers, Lz4Frames, SkippableFrames, read_up_to};
use crate::display;
use crate::failure::{DamagedMember, Failure, Faults, Outcome, RAW};
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
/// Error of the decoder of xz for a window above its limit.
const XZ_WINDOW: liblzma::stream::Error = liblzma::stream::Error::MemLimit;
/// Error text of zstd for a frame that needs a dictionary which is not there.
const ZSTD_DICTIONARY: &str = "Dictionary mismatch";
/// Bytes at the start of an input that tell its format, and if it is binary.
pub const HEAD_BYTES: usize = 512;

/// Limits on the expansion of a compressed input.
#[derive(Debug, Clone, Copy)]
pub struct ExpansionLimits {
    /// Maximum bytes of text per byte of the input. The first 64 MiB are always allowed.
    pub max_ratio: u64,
    /// Maximum bytes of text in total.
    pub max_bytes: u64,
    /// Maximum bytes of a window of zstd, xz or lzip, which is held in memory.
    pub max_window_bytes: u64,
}

impl ExpansionLimits {
    /// Default limits, which nearly all files meet. gzip reaches at most 1,032 to 1, and files with
    /// a ratio above 1,000 are usually made for that purpose.
    pub const DEFAULT: Self = Self { max_ratio: 1000, max_bytes: 1 << 38, max_window_bytes: 128 << 20 };

    /// Returns the exceeded limit, if there is one. `read` are the bytes of one decoder, and
    /// `expanded_bytes` those of all decoders of an input.
    fn exceeded(&self, read: Counts, expanded_bytes: u64) -> Option<Expansion> {
        let max_by_ratio = read.disk_bytes.saturating_mul(self.max_ratio).max(FREE_BYTES);
        match read.text_bytes {
            _ if expanded_bytes > self.max_bytes => Some(Expansion::Bytes(self.max_bytes)),
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

impl Error for Expansion {}

/// Returns the exceeded limit behind `error`, if that is the cause. Readers of archives wrap errors.
fn expansion(error: &io::Error) -> Option<&Expansion> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(limit) = error.downcast_ref() {
            return Some(limit);
        }
        cause = match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

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

/// An opened input, or member of one, that counts its bytes.
pub struct Opened<'a> {
    /// The text, decompressed.
    pub reader: Box<dyn BufRead + 'a>,
    /// Codec, such as `gzip`, if the input is decompressed.
    pub codec: Option<&'static str>,
    /// Seconds since 1970 at which the text was last changed, as the member of gzip that is read states it;
    /// 0 if it does not.
    pub changed: Rc<Cell<u32>>,
    /// Name of the character set, once U+FFFD stands for bytes that mean nothing in it.
    pub damage: Damage,
    /// True if the text is in UTF-8, whatever the character set of files is.
    pub is_utf8: bool,
    counters: Counters,
    /// Bytes of text that were counted.
    text_taken: u64,
    /// Numbers of the whole input, which its members share.
    pub budget: Budget,
}

type Counter = Rc<Cell<u64>>;

/// Numbers of an input and of all its members.
#[derive(Clone)]
pub struct Budget {
    limits: ExpansionLimits,
    disk_bytes: Counter,
    /// Bytes from disk that were counted.
    disk_taken: Counter,
    /// Bytes that decoders gave, one layer below the other added up.
    expanded_bytes: Counter,
    /// Members of archives so far.
    pub num_members: Counter,
    /// Faults of all inputs.
    pub faults: Faults,
}

/// Bytes that go into a decoder, and bytes of text that come out.
#[derive(Clone)]
pub struct Counters {
    packed_bytes: Counter,
    text_bytes: Counter,
}

impl Counters {
    /// Adds bytes that go into the decoder.
    pub fn add_packed_bytes(&self, len_bytes: u64) {
        self.packed_bytes.set(self.packed_bytes.get() + len_bytes);
    }
}

/// Opens `input`, whose bytes `reader` gives if it is there already. Compressed inputs are decompressed
/// within `limits`, unless `decompress` is false. Faults of the streams go to `faults`.
///
/// # Errors
/// The file does not exist or cannot be read.
pub fn open(
    input: &Input,
    reader: Option<Box<dyn Read>>,
    decompress: bool,
    limits: ExpansionLimits,
    faults: &Faults,
) -> Outcome<Opened<'static>> {
    let raw: Box<dyn Read> = match (reader, &input.source) {
        (Some(reader), _) => reader,
        (None, Source::Stdin) => Box::new(io::stdin()),
        (None, Source::File(path)) => Box::new(File::open(path).map_err(|error| failed(input, &error))?),
        (None, Source::Stored(stored)) => stored.reader(0, Box::new(|_| {})),
        (None, Source::Text { bytes, .. }) => Box::new(Cursor::new(bytes.clone())),
        (None, Source::Member(_)) => Box::new(io::empty()),
    };
    let budget = Budget {
        limits,
        disk_bytes: Counter::default(),
        disk_taken: Counter::default(),
        expanded_bytes: Counter::default(),
        num_members: Counter::default(),
        faults: faults.clone(),
    };
    let bytes = Rc::clone(&budget.disk_bytes);
    let raw = RawBytes { inner: raw, faults: faults.clone() };
    let counted = Counted { inner: raw, bytes: Rc::clone(&bytes) };
    decode(input, Box::new(counted), bytes, decompress, budget)
}

/// Opens a member of the input that has the numbers `budget`. `packed` are its bytes.
///
/// # Errors
/// They cannot be read.
pub fn open_member<'a>(
    member: &Input,
    packed: Box<dyn Read + 'a>,
    decompress: bool,
    budget: &Budget,
) -> Outcome<Opened<'a>> {
    let bytes = Counter::default();
    let counted = Counted { inner: packed, bytes: Rc::clone(&bytes) };
    decode(member, Box::new(counted), bytes, decompress, budget.clone())
}

/// Wraps `inner`, a decoder whose bytes are added to `counters`, by the limits of `budget`.
pub fn limited<'a>(inner: Box<dyn Read + 'a>, counters: &Counters, budget: &Budget) -> Box<dyn Read + 'a> {
    Box::new(Limited { inner, counters: counters.clone(), budget: budget.clone() })
}

fn decode<'a>(
    input: &Input,
    mut raw: Box<dyn Read + 'a>,
    packed_bytes: Counter,
    decompress: bool,
    budget: Budget,
) -> Outcome<Opened<'a>> {
    let failed = |error: io::Error| budget.failed(None, input, &error);
    let mut magic = [0; 10];
    let mut len = read_up_to(&mut raw, &mut magic).map_err(failed)?;
    let mut skippable = SkippableFrames::default();
    if decompress && decoders::is_skippable(&magic[..len]) {
        skippable = SkippableFrames::read(&magic[..len], &mut raw).map_err(failed)?;
        len = skippable.next_magic(&mut magic);
    }
    let dictionary = decoders::dictionary(&skippable.bytes, budget.limits.max_window_bytes);
    let held = if skippable.bytes.is_empty() { magic[..len].to_vec() } else { std::mem::take(&mut skippable.bytes) };
    let bytes = Cursor::new(held).chain(raw);
    if !decompress {
        return Ok(Opened::plain(bytes, input, packed_bytes, budget));
    }
    let bytes = BufReader::with_capacity(BUFFER_BYTES, bytes);
    let changed = Rc::default();
    let (decoder, codec): (Box<dyn Read + 'a>, _) = match &magic[..len] {
        [0x1f, 0x8b, 8, ..] => (Box::new(GzipMembers::new(bytes, Rc::clone(&changed))), "gzip"),
        // Skippable frames alone are an empty text.
        [] if skippable.are_whole => (zstd_decoder(bytes, &budget).map_err(failed)?, "zstd"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            let dictionary = dictionary.map_err(failed)?;
            (zstd_with_dictionary(bytes, &dictionary, &budget).map_err(failed)?, "zstd")
        }
        // The six bytes behind the level are the digits of pi, or of its square root in an empty file.
        [b'B', b'Z', b'h', b'1'..=b'9', b'1', b'A', b'Y', b'&', b'S', b'Y']
        | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90] => {
            (Box::new(Bzip2Streams::new(bytes)), "bzip2")
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => (xz_decoder(bytes, &budget).map_err(failed)?, "xz"),
        [b'L', b'Z', b'I', b'P', 1, ..] => {
            let stream = Stream::new_lzip_decoder(budget.limits.max_window_bytes, CONCATENATED);
            let stream = stream.map_err(|error| failed(error.into()))?;
            (Box::new(XzDecoder::new_stream(bytes, stream)), "lzip")
        }
        [0x04, 0x22, 0x4d, 0x18, ..] => (Box::new(Lz4Frames::new(bytes)), "lz4"),
        _ => return Ok(Opened::plain(bytes.into_inner(), input, packed_bytes, budget)),
    };
    let counters = Counters { packed_bytes, text_bytes: Counter::default() };
    let limited = Limited { inner: decoder, counters: counters.clone(), budget: budget.clone() };
    let reader = Box::new(UntilFault::buffered(limited, Some(codec), input, &budget));
    let damage = Damage::default();
    Ok(Opened { reader, codec: Some(codec), changed, damage, is_utf8: false, counters, text_taken: 0, budget })
}

/// Builds a decoder of zstd within the window of `budget`.
///
/// # Errors
/// There is no memory.
pub fn zstd_decoder<'a>(packed: impl BufRead + 'a, budget: &Budget) -> io::Result<Box<dyn Read + 'a>> {
    zstd_with_dictionary(packed, &[], budget)
}

/// Builds a decoder of zstd frames that may need `dictionary`, which is empty if there is none.
fn zstd_with_dictionary<'a>(
    packed: impl BufRead + 'a,
    dictionary: &[u8],
    budget: &Budget,
) -> io::Result<Box<dyn Read + 'a>> {
    let mut decoder = zstd::Decoder::with_dictionary(packed, dictionary)?;
    decoder.window_log_max(budget.limits.window_log())?;
    Ok(Box::new(decoder))
}

/// Builds a decoder of xz within the window of `budget`.
///
/// # Errors
/// There is no memory.
pub fn xz_decoder<'a>(packed: impl BufRead + 'a, budget: &Budget) -> io::Result<Box<dyn Read + 'a>> {
    let stream = Stream::new_stream_decoder(budget.limits.max_window_bytes, CONCATENATED)?;
    Ok(Box::new(XzDecoder::new_stream(packed, stream)))
}

impl<'a> Opened<'a> {
    /// Returns an input whose bytes are its text.
    fn plain(reader: impl Read + 'a, input: &Input, bytes: Counter, budget: Budget) -> Self {
        let reader = Box::new(UntilFault::buffered(reader, None, input, &budget));
        let counters = Counters { packed_bytes: Rc::clone(&bytes), text_bytes: bytes };
        let changed = Rc::default();
        let damage = Damage::default();
        Self { reader, codec: None, changed, damage, is_utf8: false, counters, text_taken: 0, budget }
    }

    /// Returns the bytes read since the last call.
    pub fn take_counts(&mut self) -> Counts {
        let disk_bytes = self.budget.disk_bytes.get();
        let text_bytes = self.counters.text_bytes.get();
        let disk_taken = self.budget.disk_taken.replace(disk_bytes);
        let text_taken = std::mem::replace(&mut self.text_taken, text_bytes);
        Counts { disk_bytes: disk_bytes - disk_taken, text_bytes: text_bytes - text_taken }
    }

    /// Returns the first bytes of the text, at most [`HEAD_BYTES`]. They are read again afterwards.
    pub fn head(&mut self) -> io::Result<Vec<u8>> {
        self.first_bytes(HEAD_BYTES)
    }

    /// Returns the first bytes of the text, at most `max_bytes`. They are read again afterwards.
    pub fn first_bytes(&mut self, max_bytes: usize) -> io::Result<Vec<u8>> {
        let mut head = vec![0; max_bytes];
        let len = read_up_to(&mut self.reader, &mut head)?;
        head.truncate(len);
        let rest = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = Box::new(Cursor::new(head.clone()).chain(rest));
        Ok(head)
    }

    /// Returns the same input with its text in UTF-8, decoded from `charset`.
    ///
    /// # Errors
    /// The first bytes cannot be read.
    pub fn in_utf8(mut self, charset: Charset, input: &Input) -> Outcome<Self> {
        if self.is_utf8 {
            return Ok(self);
        }
        let bytes = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        let page = Utf8Page::new(bytes, Given::Charset(charset));
        let page = page.map_err(|error| self.failed(input, &error))?;
        self.damage = page.damage();
        self.reader = Box::new(BufReader::with_capacity(BUFFER_BYTES, page));
        Ok(self)
    }

    /// Returns the input with the reader that `wrap` makes of its own.
    pub fn map(mut self, wrap: impl FnOnce(Box<dyn BufRead + 'a>) -> Box<dyn BufRead + 'a>) -> Self {
        let reader = std::mem::replace(&mut self.reader, Box::new(io::empty()));
        self.reader = wrap(reader);
        self
    }

    /// Builds the failure for a read error.
    pub fn failed(&self, input: &Input, error: &io::Error) -> Failure {
        self.budget.failed(self.codec, input, error)
    }
}

impl Budget {
    /// Returns counters of a decoder that reads `packed_bytes` bytes in all.
    pub fn counters(&self, packed_bytes: u64) -> Counters {
        Counters { packed_bytes: Rc::new(Cell::new(packed_bytes)), text_bytes: Counter::default() }
    }

    /// Opens `input`, which has these numbers, again. What is read of it now is in other numbers.
    ///
    /// # Errors
    /// Same as [`open`].
    pub fn open_again(&self, input: &Input) -> Outcome<Opened<'static>> {
        open(input, None, true, self.limits, &self.faults)
    }

    /// Adds bytes that were read beside the reader of the input.
    pub fn add_disk_bytes(&self, len_bytes: u64) {
        self.disk_bytes.set(self.disk_bytes.get() + len_bytes);
    }

    /// Counts `len_bytes` more bytes that the decoder of `counters` gives, and checks the limits.
    ///
    /// # Errors
    /// The limit that is exceeded.
    pub fn count(&self, counters: &Counters, len_bytes: u64) -> io::Result<()> {
        let Counters { packed_bytes, text_bytes } = counters;
        text_bytes.set(text_bytes.get() + len_bytes);
        let expanded_bytes = self.expanded_bytes.get() + len_bytes;
        self.expanded_bytes.set(expanded_bytes);
        let read = Counts { disk_bytes: packed_bytes.get(), text_bytes: text_bytes.get() };
        match self.limits.exceeded(read, expanded_bytes) {
            Some(limit) => Err(io::Error::other(limit)),
            None => Ok(()),
        }
    }

    /// Counts `expanded_bytes` that a reader will make of `packed_bytes`, and checks the limits.
    ///
    /// # Errors
    /// The limit that is exceeded, in words.
    pub fn expand(&self, packed_bytes: u64, expanded_bytes: u64) -> Result<(), String> {
        let sum = self.expanded_bytes.get().saturating_add(expanded_bytes);
        self.expanded_bytes.set(sum);
        let read = Counts { disk_bytes: packed_bytes, text_bytes: expanded_bytes };
        match self.limits.exceeded(read, sum) {
            Some(limit) => Err(format!("it {limit}")),
            None => Ok(()),
        }
    }

    /// Returns true if `error` comes from a limit.
    pub fn is_exceeded(error: &io::Error) -> bool {
        expansion(error).is_some()
    }

    fn damaged_member(&self, input: &Input, error: &io::Error) -> Failure {
        Failure::new(format!(
            "{}: the member of the zip file is cut or damaged ({error}); repair it, or pass {}",
            input.shown(),
            self.faults.ways_out()
        ))
    }

    /// Builds the failure for an error of the decoder `codec`.
    pub fn failed(&self, codec: Option<&str>, input: &Input, error: &io::Error) -> Failure {
        let shown = input.shown();
        let raw = RAW;
        if let Some(limit) = expansion(error) {
            // A member has the limit from the stream around it.
            let codec = codec.unwrap_or("packed");
            return Failure::new(format!("{shown}: the {codec} stream {limit}, or {raw}"));
        }
        let Some(codec) = codec else {
            let is_damage = error.get_ref().is_some_and(|error| error.is::<DamagedMember>());
            return if is_damage { self.damaged_member(input, error) } else { failed(input, error) };
        };
        let text = error.to_string();
        let xz_error = error.get_ref().and_then(|e| e.downcast_ref::<liblzma::stream::Error>());
        if text == ZSTD_WINDOW || xz_error == Some(&XZ_WINDOW) {
            let max = display::bytes(self.limits.max_window_bytes);
            return Failure::new(format!(
                "{shown}: the {codec} stream needs a window of more than {max} of memory; pass a larger \
                 --max-window, or {raw}"
            ));
        }
        if text == ZSTD_DICTIONARY {
            return Failure::new(format!(
                "{shown}: the zstd stream needs a dictionary that it does not begin with; decompress it first \
                 (zstd -D DICTIONARY -dc FILE | tadoc ingest -), or pass {raw}"
            ));
        }
        if error.kind() == io::ErrorKind::OutOfMemory || text == ZSTD_NO_MEMORY {
            return Failure::new(format!(
                "{shown}: there is no memory to decompress the {codec} stream; free some, or pass {raw}"
            ));
        }
        Failure::new(format!(
            "{shown}: the {codec} stream is cut or damaged ({text}); repair it, or pass {}",
            self.faults.ways_out()
        ))
    }
}

fn failed(input: &Input, error: &io::Error) -> Failure {
    Failure::with_cause(format!("{}: cannot read", input.shown()), error)
}

/// The bytes of a disk or store. An error of it ends the ingest.
struct RawBytes {
    inner: Box<dyn Read>,
    faults: Faults,
}

impl Read for RawBytes {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.inner.read(bytes).inspect_err(|error| {
            if error.kind() != io::ErrorKind::Interrupted {
                self.faults.end();
            }
        })
    }
}

/// A reader that ends where `inner` has a fault, and notes it, if faults do not end the ingest.
struct UntilFault<R> {
    inner: R,
    input: Input,
    codec: Option<&'static str>,
    budget: Budget,
    is_at_end: bool,
}

impl<R: Read> UntilFault<R> {
    /// Wraps `inner` in this reader, and a buffer around it.
    fn buffered(inner: R, codec: Option<&'static str>, input: &Input, budget: &Budget) -> BufReader<Self> {
        let input = input.clone();
        let budget = budget.clone();
        let until_fault = Self { inner, input, codec, budget, is_at_end: false };
        BufReader::with_capacity(BUFFER_BYTES, until_fault)
    }
}

impl<R: Read> Read for UntilFault<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if self.is_at_end {
            return Ok(0);
        }
        let faults = &self.budget.faults;
        match self.inner.read(bytes) {
            Err(error) if error.kind() != io::ErrorKind::Interrupted && faults.are_left_out() => {
                faults.note(&self.input, self.budget.failed(self.codec, &self.input, &error));
                self.is_at_end = true;
                Ok(0)
            }
            other => other,
        }
    }
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
struct Limited<'a> {
    inner: Box<dyn Read + 'a>,
    counters: Counters,
    budget: Budget,
}

impl Read for Limited<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let len = self.inner.read(bytes)?;
        self.budget.count(&self.counters, len as u64)?;
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_of_ratio_and_of_bytes() {
        let limits = ExpansionLimits { max_ratio: 10, max_bytes: 1 << 30, max_window_bytes: 1 };
        let exceeded = |disk_bytes, text_bytes| limits.exceeded(Counts { disk_bytes, text_bytes }, text_bytes);
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
