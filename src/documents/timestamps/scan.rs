//! Reads the words of stamps: numbers, names, times of the day, offsets.
//!
//! A reader that fails leaves the bytes as they were. Time is linear in the bytes that are looked at.

use chrono::NaiveTime;

/// Marks of the halves of a day, in lower case, and true for the second half.
const HALVES: [(&str, bool); 6] =
    [("上午", false), ("下午", true), ("午前", false), ("午後", true), ("오전", false), ("오후", true)];
/// Words for parts of a day in other languages. A time with one of them is not understood.
const DAY_PARTS: [&str; 16] = [
    "nachm",
    "vorm",
    "nachmittags",
    "vormittags",
    "morgens",
    "abends",
    "nachts",
    "μμ",
    "πμ",
    "μ.μ",
    "π.μ",
    "凌晨",
    "早上",
    "中午",
    "晚上",
    "正午",
];
/// Signs that are a minus or a plus besides those of ASCII, and true for a minus.
const SIGNS: [(&str, bool); 8] = [
    ("\u{2212}", true),
    ("\u{2010}", true),
    ("\u{2011}", true),
    ("\u{2012}", true),
    ("\u{2013}", true),
    ("\u{fe63}", true),
    ("\u{ff0d}", true),
    ("\u{ff0b}", false),
];
/// Largest number of digits behind the point of a second that count.
const MAX_FRACTION: usize = 9;

/// The bytes that are not read yet.
#[derive(Debug, Clone, Copy)]
pub struct Scan<'a>(pub &'a [u8]);

/// A time of the day as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DayTime {
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub nanos: u32,
    /// True if it has seconds.
    pub has_seconds: bool,
}

impl DayTime {
    /// Returns the time. A leap second is the second before it, and one.
    pub fn time(&self) -> Option<NaiveTime> {
        let Self { hour, minute, second, nanos, .. } = *self;
        if second == 60 {
            return NaiveTime::from_hms_nano_opt(hour, minute, 59, nanos + 1_000_000_000);
        }
        NaiveTime::from_hms_nano_opt(hour, minute, second, nanos)
    }

    /// Returns the time in a half of the day, the second one if `is_second`.
    pub fn in_half(self, is_second: bool) -> Option<Self> {
        if !(1..=12).contains(&self.hour) {
            return None;
        }
        let hour = self.hour % 12 + if is_second { 12 } else { 0 };
        Some(Self { hour, ..self })
    }
}

impl<'a> Scan<'a> {
    /// Returns the first byte.
    pub fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    /// Returns true if the byte at `place` is a digit.
    pub fn has_digit_at(&self, place: usize) -> bool {
        self.0.get(place).is_some_and(u8::is_ascii_digit)
    }

    /// Reads one of `bytes`.
    pub fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        if !bytes.contains(first) {
            return None;
        }
        self.0 = rest;
        Some(*first)
    }

    /// Reads `text`.
    pub fn text(&mut self, text: &[u8]) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// Reads blanks of any width and tabs, and returns the number of their bytes.
    pub fn blanks(&mut self) -> usize {
        let mut len = 0;
        loop {
            len += match self.0.get(len..).unwrap_or_default() {
                [b' ' | b'\t', ..] => 1,
                [0xc2, 0xa0, ..] => 2,
                [0xe2, 0x80, 0x80..=0x8a | 0xaf, ..] | [0xe2, 0x81, 0x9f, ..] | [0xe3, 0x80, 0x80, ..] => 3,
                _ => break,
            };
        }
        self.0 = self.0.get(len..).unwrap_or_default();
        len
    }

    /// Returns the first character, if it is not of ASCII and the text has it whole.
    pub fn wide_char(&self) -> Option<char> {
        self.peek().filter(|byte| !byte.is_ascii())?;
        let start = self.0.get(..4).unwrap_or(self.0);
        start.utf8_chunks().next()?.valid().chars().next()
    }

    /// Reads exactly `len` digits, without looking at the byte behind them.
    pub fn digits(&mut self, len: usize) -> Option<u32> {
        let (digits, rest) = self.0.split_at_checked(len)?;
        let mut number = 0u32;
        for byte in digits {
            if !byte.is_ascii_digit() {
                return None;
            }
            number = number.checked_mul(10)?.checked_add(u32::from(byte - b'0'))?;
        }
        self.0 = rest;
        Some(number)
    }

    /// Returns the number of digits at the start.
    pub fn num_digits(&self) -> usize {
        self.0.iter().take_while(|byte| byte.is_ascii_digit()).count()
    }

    /// Reads one digit or two, behind which no digit stands.
    pub fn one_or_two_digits(&mut self) -> Option<u32> {
        let len = self.num_digits();
        if len > 2 {
            return None;
        }
        self.digits(len.max(1))
    }

    /// Reads all digits, at least one.
    pub fn number(&mut self) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(self.num_digits())?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        self.0 = rest;
        Some(number)
    }

    /// Reads the digits behind a point, and returns them as nanoseconds. Further digits are left out.
    pub fn fraction_digits(&mut self) -> Option<u32> {
        let len = self.num_digits();
        let (digits, rest) = self.0.split_at_checked(len).filter(|_| len > 0)?;
        let digits = digits.iter().chain(std::iter::repeat(&b'0')).take(MAX_FRACTION);
        self.0 = rest;
        Some(digits.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0')))
    }

    /// Reads the name of a month, its first three letters or the whole, and returns its number from 1.
    pub fn month(&mut self) -> Option<u32> {
        let (month, rest): (u32, &[u8]) = match &self.three_letters()? {
            b"jan" => (1, b"uary"),
            b"feb" => (2, b"ruary"),
            b"mar" => (3, b"ch"),
            b"apr" => (4, b"il"),
            b"may" => (5, b""),
            b"jun" => (6, b"e"),
            b"jul" => (7, b"y"),
            b"aug" => (8, b"ust"),
            b"sep" => (9, b"tember"),
            b"oct" => (10, b"ober"),
            b"nov" => (11, b"ember"),
            b"dec" => (12, b"ember"),
            _ => return None,
        };
        self.name_behind(rest).map(|()| month)
    }

    /// Reads the name of a day of the week, its first three letters or the whole.
    pub fn weekday(&mut self) -> Option<()> {
        let rest: &[u8] = match &self.three_letters()? {
            b"mon" | b"fri" | b"sun" => b"day",
            b"tue" => b"sday",
            b"wed" => b"nesday",
            b"thu" => b"rsday",
            b"sat" => b"urday",
            _ => return None,
        };
        self.name_behind(rest)
    }

    /// Returns the first three letters in lower case, without reading them.
    fn three_letters(&self) -> Option<[u8; 3]> {
        let letters: &[u8; 3] = self.0.first_chunk()?;
        Some(letters.map(|letter| letter.to_ascii_lowercase()))
    }

    /// Reads three letters, and `rest` in any case, if it is there.
    fn name_behind(&mut self, rest: &[u8]) -> Option<()> {
        let behind = self.0.get(3..)?;
        let is_whole = behind.get(..rest.len()).is_some_and(|text| text.eq_ignore_ascii_case(rest));
        let behind = if is_whole { behind.get(rest.len()..)? } else { behind };
        if behind.first().is_some_and(u8::is_ascii_alphabetic) {
            return None;
        }
        self.0 = behind;
        Some(())
    }

    /// Reads `h:mm` or `hh:mm` with or without seconds, or `hh.mm.ss`. Parts of a second are left.
    pub fn day_time(&mut self) -> Option<DayTime> {
        let mut scan = *self;
        let num_digits = scan.num_digits();
        let hour = scan.one_or_two_digits()?;
        let (minute, second, has_seconds) = if scan.one_of(b":").is_some() {
            let minute = scan.digits(2)?;
            if scan.peek() == Some(b':') && scan.has_digit_at(1) {
                scan.one_of(b":");
                (minute, scan.digits(2)?, true)
            } else {
                (minute, 0, false)
            }
        } else {
            scan.one_of(b".").filter(|_| num_digits == 2)?;
            let minute = scan.digits(2)?;
            scan.one_of(b".")?;
            (minute, scan.digits(2)?, true)
        };
        *self = scan;
        Some(DayTime { hour, minute, second, nanos: 0, has_seconds })
    }

    /// Reads `hhmmss`. Parts of a second are left.
    pub fn compact_time(&mut self) -> Option<DayTime> {
        let mut scan = *self;
        let (hour, minute, second) = (scan.digits(2)?, scan.digits(2)?, scan.digits(2)?);
        *self = scan;
        Some(DayTime { hour, minute, second, nanos: 0, has_seconds: true })
    }

    /// Reads a mark of a half of the day, directly or behind blanks. Returns true for the second half.
    pub fn half(&mut self) -> Option<bool> {
        let mut scan = *self;
        scan.blanks();
        // Nearly every text has something else here.
        if !matches!(scan.peek()?, b'a' | b'A' | b'p' | b'P' | 0x80..) {
            return None;
        }
        if let Some(letter) = scan.one_of(b"aApP") {
            // `p.m.`, `p. m.` and `PMZ`, too.
            if scan.one_of(b".").is_some() {
                scan.blanks();
            }
            scan.one_of(b"mM")?;
            let is_word = scan.is_at_word_end() || scan.peek() == Some(b'Z');
            if !is_word || scan.wide_char().is_some_and(char::is_alphanumeric) {
                return None;
            }
            scan.one_of(b".");
            *self = scan;
            return Some(letter.eq_ignore_ascii_case(&b'p'));
        }
        let (mark, is_second) = HALVES.iter().find(|(mark, _)| scan.0.starts_with(mark.as_bytes()))?;
        scan.0 = scan.0.get(mark.len()..)?;
        *self = scan;
        Some(*is_second)
    }

    /// Returns true if a word for a part of the day follows that is not read, such as `nachm.`.
    pub fn is_at_day_part(&self) -> bool {
        let mut scan = *self;
        scan.blanks();
        // Nearly every text has something else here.
        if !matches!(scan.peek(), Some(b'n' | b'v' | b'm' | b'a' | 0x80..)) {
            return false;
        }
        let is_here =
            |word: &&str| scan.0.strip_prefix(word.as_bytes()).is_some_and(|rest| Scan(rest).is_at_word_end());
        DAY_PARTS.iter().any(is_here)
    }

    /// Reads a sign. Returns true for a minus.
    pub fn sign(&mut self) -> Option<bool> {
        if let Some(sign) = self.one_of(b"+-") {
            return Some(sign == b'-');
        }
        self.peek().filter(|byte| !byte.is_ascii())?;
        let (sign, is_minus) = SIGNS.iter().find(|(sign, _)| self.0.starts_with(sign.as_bytes()))?;
        self.0 = self.0.get(sign.len()..)?;
        Some(*is_minus)
    }

    /// Returns true unless a letter, a digit or `_` follows.
    pub fn is_at_word_end(&self) -> bool {
        !self.0.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
    }
}
