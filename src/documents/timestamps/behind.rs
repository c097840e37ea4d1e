//! Decides which bytes behind a date or a time are parts of its stamp, and where it ends.

use super::scan::Scan;
use super::zones::{self, Unclear};

/// Words behind a date alone, which is then not midnight.
const TIME_WORDS: [&[u8]; 16] = [
    b"noon",
    b"midday",
    b"midnight",
    b"morning",
    b"afternoon",
    b"evening",
    b"night",
    b"at",
    b"um",
    b"kl",
    b"to",
    b"until",
    b"till",
    b"bis",
    b"mittags",
    b"mitternacht",
];
/// Years that four digits can mean where another number may stand.
pub const YEARS: std::ops::Range<u32> = 1900..2200;

/// Returns true if a comma and digits follow, and no further comma that makes them a cell.
pub fn is_decimal_comma(mut scan: Scan<'_>) -> bool {
    scan.one_of(b",").is_some() && scan.number().is_some() && scan.peek() != Some(b',')
}

/// Returns true if a word in capitals, which may be a zone, and a year follow, or any word and a year at the end.
pub fn has_word_and_year(mut scan: Scan<'_>) -> bool {
    if scan.blanks() == 0 {
        return false;
    }
    let len = scan.0.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (word, rest) = scan.0.split_at(len);
    scan.0 = rest;
    if !(1..=5).contains(&len) || scan.blanks() == 0 || scan.num_digits() != 4 {
        return false;
    }
    let is_year = scan.digits(4).is_some_and(|year| YEARS.contains(&year));
    let is_name = word.iter().all(u8::is_ascii_uppercase) && matches!(scan.peek(), None | Some(b' ' | b']'));
    is_year && (is_name || scan.0.trim_ascii().is_empty())
}

/// Reads the parts of a second, and returns nanoseconds. `is_cell` is true if a comma separates cells.
///
/// # Errors
/// The digits may be something else: there is a comma before and behind them, or a colon before them.
pub fn fraction(scan: &mut Scan<'_>, is_cell: bool) -> Result<u32, Unclear> {
    if !scan.has_digit_at(1) {
        return Ok(0);
    }
    let mut inner = *scan;
    let sign = inner.one_of(if is_cell { b".:" } else { b".,:" });
    let len = inner.num_digits();
    let Some(nanos) = sign.and_then(|_| inner.fraction_digits()) else { return Ok(0) };
    let is_odd = match sign {
        Some(b',') => inner.peek() == Some(b','),
        Some(b':') => !matches!(len, 3 | 6 | 9),
        _ => false,
    };
    if is_odd {
        return Err(Unclear::Part);
    }
    *scan = inner;
    Ok(nanos)
}

/// Reads a year behind blanks, and behind the name of the zone in brackets. It is clear if `has_weekday` is
/// true, as `asctime` and `date` write it, and otherwise if a zone follows, or nothing.
///
/// # Errors
/// The year may belong to another date, or may be another number, such as that of a process.
pub fn year_behind(scan: &mut Scan<'_>, has_weekday: bool) -> Result<Option<u32>, Unclear> {
    let mut inner = *scan;
    if let Some(name) = inner.0.strip_prefix(b" (") {
        let is_name = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b' ';
        let len = name.iter().take_while(is_name).count();
        if let Some([b')', rest @ ..]) = name.get(len..) {
            inner.0 = rest;
        }
    }
    inner.one_of(b",;|");
    if inner.blanks() == 0 || inner.num_digits() != 4 {
        return Ok(None);
    }
    let year = inner.digits(4).filter(|year| YEARS.contains(year));
    let next = inner.0.get(1).copied().unwrap_or_default();
    let goes_on = match inner.peek() {
        // An address of IPv6, as the name of a machine.
        Some(b':') => next.is_ascii_hexdigit() || next == b':',
        Some(b'.' | b'-') => next.is_ascii_alphabetic(),
        _ => !inner.is_at_word_end() && matches!(zones::zone(&mut { inner }), Ok(None)),
    };
    if year.is_none() || goes_on {
        return Ok(None);
    }
    if matches!(inner.peek(), Some(b'-' | b'/' | b'.')) && next.is_ascii_digit() {
        return Err(Unclear::Part);
    }
    let is_followed_by_zone = !matches!(zones::zone(&mut { inner }), Ok(None));
    if !has_weekday && !is_closed(inner) && !is_followed_by_zone {
        return Err(Unclear::Year(scan.0.len()));
    }
    *scan = inner;
    Ok(year)
}

/// Returns true if a bracket or a quotation mark follows, or nothing else to the end.
fn is_closed(scan: Scan<'_>) -> bool {
    let is_end = |byte: &u8| b"])>}\"'. \t\r".contains(byte);
    matches!(scan.peek(), Some(b']' | b')' | b'>' | b'"')) || scan.0.iter().all(is_end)
}

/// Checks that no part of a stamp follows. Behind a blank, words and most numbers are text.
///
/// # Errors
/// A letter, a digit, or a sign and a digit follow. Behind other signs, an offset follows if `has_zone` is false, or
/// digits that may be parts of the second if `has_fraction` is false: with a point or an apostrophe, or 3, 6 or
/// 9 of them as the last word if it `has_seconds`. A word for a part of the day follows.
pub fn check_end(scan: Scan<'_>, has_zone: bool, has_fraction: bool, has_seconds: bool) -> Result<(), Unclear> {
    let goes_on = matches!(scan.peek(), Some(b':' | b'.' | b'+')) && scan.has_digit_at(1);
    let is_in_word = !scan.is_at_word_end() || scan.wide_char().is_some_and(char::is_alphanumeric);
    if goes_on || is_in_word || scan.is_at_day_part() {
        return Err(Unclear::Part);
    }
    let is_sign = |byte: &&u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    let mut behind = scan;
    behind.blanks();
    let gap = behind.0.iter().take_while(is_sign).count();
    let num_blanks = scan.0.len() - behind.0.len();
    if !behind.has_digit_at(gap) {
        return Ok(());
    }
    let last = gap.checked_sub(1).and_then(|at| behind.0.get(at));
    behind.0 = behind.0.get(gap..).unwrap_or_default();
    let len = behind.num_digits();
    let end = behind.0.get(len).copied();
    let may_be_fraction = !has_fraction && !has_zone;
    let is_last = behind.0.get(len..).unwrap_or_default().trim_ascii().is_empty();
    if last.is_none() && is_last && num_blanks == 1 && is_fraction_len(len) {
        let is_clear = !(may_be_fraction && has_seconds);
        return if is_clear { Ok(()) } else { Err(Unclear::Number) };
    }
    let is_part = match last {
        Some(b'\'') => may_be_fraction && end != Some(b'\''),
        Some(b'.') => may_be_fraction && num_blanks > 0 && gap == 1,
        Some(b'+' | b'-') => !has_zone && zones::is_whole_offset(behind),
        _ => false,
    };
    if is_part { Err(Unclear::Part) } else { Ok(()) }
}

/// Returns true for the number of digits of milliseconds, microseconds and nanoseconds.
fn is_fraction_len(len: usize) -> bool {
    matches!(len, 3 | 6 | 9)
}

/// Returns true if a blank and something else than parts of a second follow. So the program that wrote the line
/// puts no parts of a second there, and a number there is text.
pub fn has_text(scan: Scan<'_>) -> bool {
    let Some(rest) = scan.0.strip_prefix(b" ") else { return false };
    let is_text = rest.first().is_some_and(|byte| !byte.is_ascii_whitespace());
    is_text && !is_fraction_len(Scan(rest).num_digits())
}

/// Returns the time of `line` among the lines of an input. `stamp` returns the time of a line, and true if text stands
/// behind it. `has_texts` is true if that holds for a line of the input, so that a number is text, too; it is set by
/// such a line.
pub fn among_texts<T>(
    line: &[u8],
    has_texts: &mut bool,
    stamp: impl Fn(&[u8]) -> Option<Result<(T, bool), Unclear>>,
) -> Option<T> {
    let found = match stamp(line)? {
        Err(Unclear::Number) if *has_texts => stamp(without_number(line))?,
        Err(Unclear::Year(len)) if *has_texts => stamp(line.get(..line.len() - len).unwrap_or_default())?,
        found => found,
    };
    let (time, is_before_text) = found.ok()?;
    *has_texts = *has_texts || is_before_text;
    Some(time)
}

/// Returns the line without the blank and the number at its end.
fn without_number(line: &[u8]) -> &[u8] {
    let line = line.trim_ascii_end();
    let len = line.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    line.get(..(line.len() - len).saturating_sub(1)).unwrap_or_default()
}

/// Checks that no time follows a date that stands alone.
///
/// # Errors
/// A number or a word for a time of the day comes next, or the rest of the line has a time of a day.
pub fn day_alone(scan: Scan<'_>) -> Result<(), Unclear> {
    if !scan.is_at_word_end() || is_at_time_word(scan) {
        return Err(Unclear::Part);
    }
    let is_between = |byte: &&u8| !byte.is_ascii_alphanumeric();
    let gap = scan.0.iter().take_while(is_between).count();
    let has_zone = !matches!(zones::zone(&mut { scan }), Ok(None));
    if scan.has_digit_at(gap) || has_zone || has_time(scan) {
        return Err(Unclear::Part);
    }
    Ok(())
}

/// Returns true if the next word tells a time, or that one follows.
fn is_at_time_word(mut scan: Scan<'_>) -> bool {
    scan.blanks();
    if scan.is_at_day_part() || scan.wide_char().is_some_and(char::is_numeric) {
        return true;
    }
    if matches!(scan.peek(), Some(b'T' | b't')) && scan.has_digit_at(1) {
        return true;
    }
    let len = scan.0.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let word = scan.0.get(..len).unwrap_or_default();
    TIME_WORDS.iter().any(|known| known.eq_ignore_ascii_case(word))
}

/// Returns true if a time of a day stands anywhere in the text.
fn has_time(scan: Scan<'_>) -> bool {
    let mut scan = scan;
    let mut is_in_word = false;
    while let Some(byte) = scan.peek() {
        let mut behind = scan;
        if byte.is_ascii_digit() && !is_in_word {
            let has_half = behind.one_or_two_digits().is_some() && behind.half().is_some();
            let is_compact = scan.num_digits() == 6 && scan.compact_time().is_some();
            if has_half || is_compact || scan.day_time().is_some() {
                return true;
            }
        }
        is_in_word = byte.is_ascii_alphanumeric();
        scan.0 = scan.0.get(1..).unwrap_or_default();
    }
    false
}
