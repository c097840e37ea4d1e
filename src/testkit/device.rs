//! Helpers that suites of the device share: the first device, fill bytes, and random text.

use std::io::Write;

use gsst::CodeWidth;
use tadoc_cuda::Device;

/// Bytes that fill outputs before a kernel writes them.
pub const POISONS: [u8; 2] = [0xA5, 0x5A];

pub const WIDTHS: [CodeWidth; 2] = [CodeWidth::Eight, CodeWidth::Twelve];

/// Opens the first device. Without a device, prints a note and returns `None`.
///
/// # Panics
/// The device cannot be opened and `REQUIRE_GPU` is set to a value other than 0.
pub fn open_device() -> Option<Device> {
    match Device::open(0) {
        Ok(device) => Some(device),
        Err(error) if std::env::var_os("REQUIRE_GPU").is_none_or(|value| value == "0") => {
            say(&format!("skipped: {error}"));
            None
        }
        Err(error) => panic!("REQUIRE_GPU is set: {error}"),
    }
}

/// Prints a line directly to standard error, as the test harness shows captured output only for
/// failed tests.
pub fn say(line: &str) {
    std::io::stderr().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A generator of reproducible numbers (xorshift).
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % limit
    }

    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }

    pub fn words(&mut self, len: usize) -> Vec<u8> {
        const WORDS: [&str; 12] = [
            "the ",
            "furiously ",
            "regular ",
            "deposits ",
            "a",
            "sleep ",
            "über ",
            "—",
            "\n",
            "0",
            "carefully ",
            "12345678",
        ];
        let mut text = Vec::new();
        while text.len() < len {
            text.extend_from_slice(WORDS[self.below(WORDS.len())].as_bytes());
        }
        text.truncate(len);
        text
    }
}
