//! Reads the zone behind a time: an offset, the short name of a zone, or the name of a place.
//!
//! ```text
//! 07:08:09Z   07:08:09+02:00   07:08:09 +0200   07:08:09-03   07:08:09 UTC+2   07:08:09 CEST
//! 07:08:09 (CEST)   07:08:09[Europe/Berlin]   07:08:09|UTC|
//! ```
//!
//! A text that looks like a zone and is none that is known is [unclear](Unclear): short names that mean several zones,
//! and offsets that no clock has. A number with a sign that stands apart is one only with four digits, with a colon, or
//! with two digits of which the first is 0.

use arrow::array::timezone::Tz;

use super::scan::Scan;

/// Largest hours of an offset.
const MAX_HOURS: u32 = 15;

/// A zone that a text states.
#[derive(Debug, Clone, Copy)]
pub enum Zone {
    /// Seconds east of UTC.
    Offset(i32),
    /// A zone whose clocks are put forward and back.
    Place(Tz),
}

/// A stamp that is not understood as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unclear {
    /// It has the name of several zones.
    ZoneName,
    /// It has something else that may be a part of it.
    Part,
    /// A number ends the line that may be the parts of its second, and else it is understood.
    Number,
    /// A number that may be its year begins this many bytes before the end, with what is before it.
    Year(usize),
}

/// Names of a zone in front of it.
const LABELS: [&[u8]; 5] = [b"tz", b"timezone", b"time_zone", b"zone", b"tzone"];
/// First parts of the names of places.
const AREAS: [&[u8]; 13] = [
    b"Africa",
    b"America",
    b"Antarctica",
    b"Arctic",
    b"Asia",
    b"Atlantic",
    b"Australia",
    b"Brazil",
    b"Canada",
    b"Europe",
    b"Indian",
    b"Mexico",
    b"Pacific",
];
/// Largest number of words of the long name of a zone.
const MAX_WORDS: usize = 6;

/// Bytes between a time and its zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    Nothing,
    Blanks,
    /// The sign that separates cells.
    Cell,
}

/// Reads the zone behind a time, if there is one.
///
/// # Errors
/// Something there looks like a zone and is none that is known.
pub fn zone(scan: &mut Scan<'_>) -> Result<Option<Zone>, Unclear> {
    let mut inner = *scan;
    let mut gap = if inner.blanks() > 0 { Gap::Blanks } else { Gap::Nothing };
    if inner.one_of(b",;|").is_some() {
        inner.blanks();
        gap = Gap::Cell;
    }
    let closing = match inner.one_of(b"([{") {
        Some(b'(') => Some(b')'),
        Some(b'{') => Some(b'}'),
        Some(_) => Some(b']'),
        None => None,
    };
    let within = if closing.is_some() { Gap::Nothing } else { gap };
    let is_name = inner.peek().is_some_and(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii());
    if is_name && is_long_name(inner) {
        return Err(Unclear::Part);
    }
    let zone = if is_label(&mut inner) { Some(labelled(&mut inner)?) } else { None };
    let stated = zone.map_or_else(|| stated(&mut inner, within), |zone| Ok(Some(zone)));
    let Some(zone) = stated.or_else(|unclear| {
        // In brackets may be any number.
        let is_text = closing.is_some() && unclear == Unclear::Part && !is_name;
        if is_text { Ok(None) } else { Err(unclear) }
    })?
    else {
        return Ok(None);
    };
    if let Some(closing) = closing
        && inner.one_of(&[closing]).is_none()
    {
        return Ok(None);
    }
    *scan = inner;
    Ok(Some(zone))
}

/// Reads the short name of a zone, and returns its offset in seconds.
pub fn zone_name(scan: &mut Scan<'_>) -> Option<i32> {
    let mut inner = *scan;
    let Ok(Some(Zone::Offset(offset))) = named(&mut inner, Gap::Nothing) else { return None };
    *scan = inner;
    Some(offset)
}

/// Reads the name of a field with a zone, such as `tz:` or `zone=`. Returns true if there is one.
fn is_label(scan: &mut Scan<'_>) -> bool {
    if !matches!(scan.peek(), Some(b't' | b'T' | b'z' | b'Z')) {
        return false;
    }
    let is_part = |byte: &&u8| byte.is_ascii_alphabetic() || **byte == b'_';
    let len = scan.0.iter().take_while(is_part).count();
    let (word, rest) = scan.0.split_at(len);
    let mut behind = Scan(rest);
    let is_label = LABELS.iter().any(|label| label.eq_ignore_ascii_case(word));
    // `timezone +0200`, too.
    let has_sign = behind.one_of(b":=").is_some() || behind.blanks() > 0 && behind.peek() == Some(b'+');
    if !is_label || !has_sign {
        return false;
    }
    *scan = behind;
    true
}

/// Reads the zone of a field that has it, also in quotation marks.
///
/// # Errors
/// The field has something else.
pub fn labelled(scan: &mut Scan<'_>) -> Result<Zone, Unclear> {
    scan.blanks();
    let quote = scan.one_of(b"\"'");
    let zone = stated(scan, Gap::Nothing)?.ok_or(Unclear::Part)?;
    if let Some(quote) = quote {
        scan.one_of(&[quote]).ok_or(Unclear::Part)?;
    }
    Ok(zone)
}

/// Returns true if the long name of a zone follows, such as `W. Europe Daylight Time` or `Mitteleuropäische
/// Sommerzeit`. They differ between systems and languages, so none is read.
fn is_long_name(scan: Scan<'_>) -> bool {
    let mut is_season = false;
    for word in scan.0.split(|byte| b" )],;|".contains(byte)).take(MAX_WORDS) {
        if is_season && word == b"Time" {
            return true;
        }
        if [&b"ommerzeit"[..], b"interzeit", b"ormalzeit"].iter().any(|end| word.ends_with(end)) {
            return true;
        }
        is_season = matches!(word, b"Standard" | b"Daylight" | b"Summer" | b"Winter");
        if !word.first().is_some_and(|byte| byte.is_ascii_uppercase() || !byte.is_ascii()) {
            return false;
        }
    }
    false
}

fn stated(scan: &mut Scan<'_>, gap: Gap) -> Result<Option<Zone>, Unclear> {
    match scan.peek() {
        Some(b'+' | b'-' | 0xe2 | 0xef) => offset(scan, gap),
        Some(byte) if byte.is_ascii_alphabetic() => named(scan, gap),
        _ => Ok(None),
    }
}

/// Reads `+02:00`, `+0200` or `+02`; behind blanks `+12` may be another number, and is none.
fn offset(scan: &mut Scan<'_>, gap: Gap) -> Result<Option<Zone>, Unclear> {
    let mut inner = *scan;
    let Some(is_minus) = inner.sign() else { return Ok(None) };
    let num_digits = inner.num_digits();
    if num_digits == 0 {
        return Ok(None);
    }
    let digits = inner;
    let has_zero = gap == Gap::Blanks && digits.peek() == Some(b'0');
    let is_allowed = num_digits != 2 || gap == Gap::Nothing || has_zero || digits.0.get(2) == Some(&b':');
    if let Some(seconds) = hours_and_minutes(&mut inner).filter(|_| is_allowed && num_digits > 1) {
        *scan = inner;
        return Ok(Some(Zone::Offset(if is_minus { -seconds } else { seconds })));
    }
    let behind = Scan(digits.0.get(num_digits..).unwrap_or_default());
    let is_decimal = behind.peek() == Some(b'.') && behind.has_digit_at(1);
    let is_like_offset = match gap {
        Gap::Nothing => true,
        Gap::Blanks => behind.peek() == Some(b':') || (2..=4).contains(&num_digits) && !is_decimal,
        Gap::Cell => false,
    };
    if is_like_offset { Err(Unclear::Part) } else { Ok(None) }
}

/// Returns true if four digits, or hours and minutes with a colon, follow that are an offset.
pub fn is_whole_offset(scan: Scan<'_>) -> bool {
    let num_digits = scan.num_digits();
    let has_colon = num_digits == 2 && scan.0.get(2) == Some(&b':');
    (num_digits == 4 || has_colon) && hours_and_minutes(&mut { scan }).is_some()
}

/// Reads `2`, `02`, `2:00`, `02:00` or `0200`, and returns seconds.
fn hours_and_minutes(scan: &mut Scan<'_>) -> Option<i32> {
    let mut inner = *scan;
    let (hours, minutes) = match inner.num_digits() {
        4 => (inner.digits(2)?, inner.digits(2)?),
        len @ 1..=2 => {
            let hours = inner.digits(len)?;
            if inner.one_of(b":").is_some() { (hours, inner.digits(2)?) } else { (hours, 0) }
        }
        _ => return None,
    };
    let goes_on = matches!(inner.peek(), Some(b':' | b'.')) && inner.has_digit_at(1);
    if hours > MAX_HOURS || minutes > 59 || goes_on || !inner.is_at_word_end() {
        return None;
    }
    *scan = inner;
    i32::try_from(hours * 3600 + minutes * 60).ok()
}

/// Reads the name of a zone or of a place, which may be followed by an offset.
fn named(scan: &mut Scan<'_>, gap: Gap) -> Result<Option<Zone>, Unclear> {
    let len = scan.0.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let (name, rest) = scan.0.split_at(len);
    let behind = Scan(rest);
    if behind.peek() == Some(b'/') {
        return place(scan);
    }
    if name.len() > 4 {
        return Ok(None);
    }
    let is_small_z = name == b"z" && gap == Gap::Nothing;
    // Behind these an offset may stand.
    let is_zero = matches!(name, b"UTC" | b"GMT" | b"UT" | b"UCT" | b"utc" | b"gmt" | b"Utc" | b"Gmt");
    let known = if is_zero || is_small_z { Some(0) } else { named_minutes(name).map(|minutes| minutes * 60) };
    let is_odd = known.is_none() && is_name_in_other_case(name);
    if known.is_none() && !is_odd && !is_unclear_name(name) {
        return Ok(None);
    }
    if behind.peek() == Some(b'_') || goes_on_as_name(behind) {
        return Ok(None);
    }
    if behind.has_digit_at(0) {
        return Err(Unclear::Part);
    }
    if is_odd {
        return Err(Unclear::Part);
    }
    let Some(known) = known else { return Err(Unclear::ZoneName) };
    let mut offset = behind;
    if let Some(is_minus) = offset.sign()
        && offset.has_digit_at(0)
    {
        let seconds = hours_and_minutes(&mut offset).filter(|_| is_zero);
        let seconds = seconds.ok_or(Unclear::Part)?;
        *scan = offset;
        return Ok(Some(Zone::Offset(if is_minus { -seconds } else { seconds })));
    }
    if name == b"Z" && gap == Gap::Cell {
        return Ok(None);
    }
    *scan = behind;
    offset_apart(scan, known, is_zero).map(|seconds| Some(Zone::Offset(seconds)))
}

/// Reads the offset that stands apart behind a name, as in `GMT +0200` or `CDT (-0500)`, and returns it, or
/// `known`, the offset that the name means, if there is none.
///
/// # Errors
/// The name means another offset, or the number may be one and may be something else.
fn offset_apart(scan: &mut Scan<'_>, known: i32, is_zero: bool) -> Result<i32, Unclear> {
    let mut inner = *scan;
    if inner.blanks() == 0 {
        return Ok(known);
    }
    let has_bracket = inner.one_of(b"(").is_some();
    let is_plus = inner.peek() == Some(b'+');
    let Some(is_minus) = inner.sign() else { return Ok(known) };
    // `UTC - 2 files` has no offset.
    if is_plus && is_zero {
        inner.blanks();
    }
    let num_digits = inner.num_digits();
    let is_clear = num_digits == 4 || inner.0.get(num_digits) == Some(&b':') && num_digits > 0;
    let is_short = matches!(num_digits, 1 | 2) && is_zero;
    if !is_clear && !is_short {
        return Ok(known);
    }
    let seconds = hours_and_minutes(&mut inner).filter(|_| is_clear || is_plus).ok_or(Unclear::Part)?;
    let seconds = if is_minus { -seconds } else { seconds };
    if has_bracket && inner.one_of(b")").is_none() || seconds != known && !is_zero {
        return Err(Unclear::Part);
    }
    *scan = inner;
    Ok(seconds)
}

/// Returns true for the short name of a zone that is not in capitals, unless it is a word, too.
fn is_name_in_other_case(name: &[u8]) -> bool {
    let Some(letters) = name.get(..name.len().min(4)) else { return false };
    if letters.len() < 3 || letters.iter().all(u8::is_ascii_uppercase) {
        return false;
    }
    let mut capitals = [0; 4];
    let Some(capitals) = capitals.get_mut(..letters.len()) else { return false };
    capitals.copy_from_slice(letters);
    capitals.make_ascii_uppercase();
    let is_word = matches!(
        &*capitals,
        b"ACT"
            | b"ART"
            | b"BOT"
            | b"CAT"
            | b"COT"
            | b"EAT"
            | b"IST"
            | b"MET"
            | b"PET"
            | b"WAT"
            | b"WEST"
            | b"WET"
            | b"WIT"
            | b"AMT"
    );
    !is_word && (named_minutes(capitals).is_some() || is_unclear_name(capitals))
}

/// Returns the offset in minutes of the zone with a short name: those of RFC 822 and others that mean one zone.
pub fn named_minutes(name: &[u8]) -> Option<i32> {
    let minutes = match name {
        b"HST" => -600,
        b"AKST" => -540,
        b"PST" | b"AKDT" => -480,
        b"MST" | b"PDT" => -420,
        b"MDT" => -360,
        b"EST" | b"CDT" => -300,
        b"CLT" | b"VET" | b"EDT" => -240,
        b"NST" => -210,
        b"BRT" | b"UYT" | b"CLST" => -180,
        b"NDT" => -150,
        b"BRST" => -120,
        b"Z" | b"UTC" | b"GMT" | b"UT" | b"UCT" | b"WET" => 0,
        b"WEST" | b"WAT" | b"CET" | b"MET" | b"MEZ" => 60,
        b"CEST" | b"MEST" | b"MESZ" | b"SAST" | b"EET" => 120,
        b"EEST" | b"IDT" | b"MSK" | b"TRT" => 180,
        b"IRST" => 210,
        b"MSD" | b"SAMT" => 240,
        b"YEKT" | b"PKT" => 300,
        b"NPT" => 345,
        b"OMST" => 360,
        b"NOVT" | b"KRAT" | b"ICT" | b"WIB" => 420,
        b"WITA" | b"IRKT" | b"HKT" | b"SGT" | b"MYT" | b"PHT" | b"AWST" => 480,
        b"YAKT" | b"JST" | b"KST" => 540,
        b"ACST" => 570,
        b"VLAT" | b"AEST" | b"ChST" => 600,
        b"ACDT" => 630,
        b"AEDT" | b"MAGT" => 660,
        b"NZST" => 720,
        b"NZDT" => 780,
        _ => return None,
    };
    Some(minutes)
}

/// Returns true for a short name that means several zones, or is a word, too.
fn is_unclear_name(name: &[u8]) -> bool {
    matches!(
        name,
        b"ACT"
            | b"ADT"
            | b"AMST"
            | b"AMT"
            | b"ART"
            | b"AST"
            | b"BDT"
            | b"BOT"
            | b"BST"
            | b"CAT"
            | b"CCT"
            | b"COT"
            | b"CST"
            | b"EAT"
            | b"ECT"
            | b"GST"
            | b"HDT"
            | b"HKST"
            | b"IST"
            | b"LMT"
            | b"PET"
            | b"PYT"
            | b"SST"
            | b"WIT"
            | b"WST"
            | b"WAST"
    )
}

/// Returns true if `-` or `.` and a letter follow, as in the name of a machine.
fn goes_on_as_name(behind: Scan<'_>) -> bool {
    let next = behind.0.get(1).copied().unwrap_or_default();
    match behind.peek() {
        Some(b'-') => next.is_ascii_alphabetic(),
        Some(b'.') => next.is_ascii_alphanumeric(),
        Some(b'=' | b'@') => true,
        _ => false,
    }
}

/// Reads the name of a place, such as `Europe/Berlin`.
///
/// # Errors
/// There is no such place in an area of the world.
fn place(scan: &mut Scan<'_>) -> Result<Option<Zone>, Unclear> {
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || b"/_+-".contains(byte);
    let len = scan.0.iter().take_while(is_part).count();
    let (name, rest) = scan.0.split_at(len);
    let area = name.split(|byte| *byte == b'/').next().unwrap_or_default();
    let Some(place) = std::str::from_utf8(name).ok().and_then(|name| name.parse().ok()) else {
        let is_area = AREAS.iter().any(|known| known.eq_ignore_ascii_case(area));
        return if is_area { Err(Unclear::Part) } else { Ok(None) };
    };
    scan.0 = rest;
    Ok(Some(Zone::Place(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> (Result<Option<i32>, Unclear>, &str) {
        let mut scan = Scan(text.as_bytes());
        let minutes = zone(&mut scan).map(|zone| match zone {
            Some(Zone::Offset(seconds)) => Some(seconds / 60),
            Some(Zone::Place(_)) => Some(i32::MAX),
            None => None,
        });
        (minutes, &text[text.len() - scan.0.len()..])
    }

    #[test]
    fn zones_are_read_whole() {
        for (text, minutes, rest) in [
            ("Z x", 0, " x"),
            ("z", 0, ""),
            (" Z", 0, ""),
            ("+02:00 x", 120, " x"),
            (" -0130]", -90, "]"),
            ("-03 x", -180, " x"),
            ("\u{2212}02:30", -150, ""),
            (" CEST: x", 120, ": x"),
            ("CEST,", 120, ","),
            (" UTC+2", 120, ""),
            (" GMT-5 x", -300, " x"),
            (" GMT+0200 (CEST)", 120, " (CEST)"),
            (" utc x", 0, " x"),
            (" (CEST) x", 120, " x"),
            (" [+05:30]", 330, ""),
            (" {UTC+2} x", 120, " x"),
            (" timezone +0200 x", 120, " x"),
            ("[Europe/Berlin] x", i32::MAX, " x"),
            (" America/Argentina/Buenos_Aires", i32::MAX, ""),
            ("|UTC|up", 0, "|up"),
            (",+0200,x", 120, ",x"),
        ] {
            assert_eq!(shown(text), (Ok(Some(minutes)), rest), "{text}");
        }
    }

    #[test]
    fn other_texts_are_no_zones() {
        for text in [
            "",
            " ",
            " x",
            " GET /",
            " INFO",
            " ESTABLISHED",
            " Zebra",
            " z",
            "-web",
            " - 80",
            " -1 x",
            " -1.5",
            " -12.5",
            " -12345",
            ",-12,x",
            "|CEST-host",
            " MET-server sshd",
            " PST.example.org",
            " EST_x",
            " UTC=1",
            " app/web.1",
            " (main) x",
            " [1] x",
            "[-1]",
            " (UTC x)",
            ",Z,",
        ] {
            assert_eq!(shown(text), (Ok(None), text), "{text}");
        }
    }

    #[test]
    fn what_looks_like_a_zone_is_unclear() {
        for text in [
            "+99:00",
            " +99:00",
            " +12",
            " -10",
            " -530",
            " -9999",
            "+2:000",
            "-1",
            "+0200x",
            "+02:00:00",
            " EST5EDT",
            " UTC2",
            " EST-5",
            " UTC+99",
        ] {
            assert_eq!(shown(text), (Err(Unclear::Part), text), "{text}");
        }
        for text in [" CST", " IST x", ",BST,", " (CST)"] {
            assert_eq!(shown(text), (Err(Unclear::ZoneName), text), "{text}");
        }
    }
}
