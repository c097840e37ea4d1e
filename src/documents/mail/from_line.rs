//! The line in front of a message of a mailbox.

/// First bytes of the line in front of a message.
pub const START: &[u8] = b"From ";
/// Names of header lines that messages begin with, beside those that begin with `X-` and `Content-`.
const USUAL_NAMES: [&str; 28] = [
    "arc-seal",
    "authentication-results",
    "bcc",
    "cc",
    "comments",
    "date",
    "delivered-to",
    "dkim-signature",
    "envelope-to",
    "errors-to",
    "from",
    "in-reply-to",
    "lines",
    "list-id",
    "message-id",
    "mime-version",
    "newsgroups",
    "organization",
    "path",
    "received",
    "references",
    "reply-to",
    "return-path",
    "sender",
    "status",
    "subject",
    "to",
    "user-agent",
];

/// Returns true if `line`, which begins with `From `, begins a message before the line `next`.
pub fn begins_message(line: &[u8], next: &[u8]) -> bool {
    let Some(name) = name_of_header(next) else {
        let may_follow = next.trim_ascii().is_empty() || next.starts_with(b">From ");
        return has_date(line) && may_follow;
    };
    let name = name.to_ascii_lowercase();
    let is_usual = name.starts_with(b"x-")
        || name.starts_with(b"content-")
        || USUAL_NAMES.iter().any(|usual| usual.as_bytes() == name);
    has_date(line) || is_usual
}

/// Returns the name of a header line: printable ASCII before a colon, perhaps with blanks before the colon.
pub fn name_of_header(line: &[u8]) -> Option<&[u8]> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = line.get(..colon)?.trim_ascii_end();
    (!name.is_empty() && name.iter().all(u8::is_ascii_graphic)).then_some(name)
}

/// Returns true if a line has a date as `asctime` writes it: `Mon May  6 07:08`. Lines that end with CR alone are
/// one line, which has none.
pub fn has_date(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let words: Vec<&[u8]> = line.split(u8::is_ascii_whitespace).filter(|w| !w.is_empty()).collect();
    let is_number = |word: &[u8]| matches!(word.len(), 1..=2) && word.iter().all(u8::is_ascii_digit);
    let is_date = |words: &[&[u8]]| {
        let [weekday, month, day, time] = words else { return false };
        let is_time = time.split(|&byte| byte == b':').take(2).all(is_number);
        let has_name = |names: &str, word: &[u8]| {
            word.len() == 3 && names.as_bytes().chunks(3).any(|name| name.eq_ignore_ascii_case(word))
        };
        has_name("MonTueWedThuFriSatSun", weekday)
            && has_name("JanFebMarAprMayJunJulAugSepOctNovDec", month)
            && is_number(day)
            && is_time
            && time.contains(&b':')
    };
    !line.contains(&b'\r') && words.windows(4).any(is_date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_begin_where_a_date_or_a_usual_header_says_so() {
        let dated = "From ann Mon May  6 07:08:09 2024\n";
        for (line, next) in [
            (dated, "From: Ann\n"),
            (dated, "X-A:b"),
            (dated, "Subject : x\r\n"),
            (dated, "Anything: x\n"),
            (dated, "\n"),
            (dated, ">From bob Mon May  6 07:08:09 2024\n"),
            ("From - mon may 06 7:08\r\n", "\r\n"),
            ("From ann\n", "Subject:\r\n"),
            ("From ann\n", "x-mailer: y\n"),
        ] {
            assert!(begins_message(line.as_bytes(), next.as_bytes()), "{line}{next}");
        }
        for (line, next) in [
            (dated, "From a: b\n"),
            (dated, " a: b"),
            (dated, "no colon\n"),
            (dated, "é: b"),
            (dated, ":\n"),
            ("From the link:\n", "https://x.org/p says so\n"),
            ("From our side:\n", "Budget: 100\n"),
            ("From ann\n", "\n"),
            ("From Mon May 6 :\n", "\n"),
            ("From a Mon May  6 07:08:09 2024\rSubject: 1\r\rbody\r", "Subject: x\n"),
        ] {
            let is_usual = next.starts_with("Subject");
            assert_eq!(begins_message(line.as_bytes(), next.as_bytes()), is_usual, "{line}{next}");
        }
    }
}
