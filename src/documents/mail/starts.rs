//! Starts of messages: the line in front of one in a mailbox, and the place of a file with one in a folder of mail.
//!
//! ```text
//! From ann@example.com Mon May  6 07:08:09 2024            asctime: any header line or a blank one follows
//! From ann@example.com Mon, 6 May 2024 09:08:09 +0200      a form of [`date`], up to the end of the line
//! From ann@example.com                                     no date: a header line of a usual name follows
//! From my side there is nothing                            text
//!
//! Maildir/cur/1204680122.27c448.host:2,S     a message; flags stand behind the colon
//! Maildir/new/1204680123.27c449.host         a message that nobody has seen
//! Maildir/tmp/1204680124.27c44a.host         left out: it is being delivered
//! inbox/17                                   a message of MH
//! ```
//!
//! Sources: "Using maildir format" (D. J. Bernstein), <https://cr.yp.to/proto/maildir.html>; mh-mail(5) of nmh.

use super::date;

/// First bytes of the line in front of a message.
pub const START: &[u8] = b"From ";
/// Starts of names of header lines that messages begin with.
const USUAL_STARTS: [&str; 14] = [
    "arc-",
    "auto-",
    "content-",
    "disposition-notification-",
    "dkim-",
    "domainkey-",
    "list-",
    "mail-followup-",
    "nntp-",
    "received-",
    "resent-",
    "return-receipt-",
    "thread-",
    "x-",
];
/// Other names of header lines that messages begin with.
const USUAL_NAMES: [&str; 45] = [
    "accept-language",
    "apparently-to",
    "archived-at",
    "authentication-results",
    "autocrypt",
    "bcc",
    "bounces-to",
    "cancel-lock",
    "cc",
    "comments",
    "date",
    "delivered-to",
    "delivery-date",
    "envelope-from",
    "envelope-to",
    "errors-to",
    "feedback-id",
    "followup-to",
    "from",
    "importance",
    "in-reply-to",
    "injection-info",
    "lines",
    "mailing-list",
    "message-id",
    "mime-version",
    "newsgroups",
    "openpgp",
    "organization",
    "original-recipient",
    "path",
    "posted-date",
    "precedence",
    "received",
    "references",
    "reply-to",
    "return-path",
    "sender",
    "status",
    "subject",
    "supersedes",
    "to",
    "user-agent",
    "x400-received",
    "xref",
];
/// Names of header lines that are words of a text, too. Messages begin with them behind an address alone.
const WORDS: [&str; 12] = [
    "approved",
    "control",
    "distribution",
    "encoding",
    "expires",
    "face",
    "keywords",
    "language",
    "priority",
    "sensitivity",
    "summary",
    "via",
];

/// Returns true if `line`, which begins with `From `, begins a message before the line `next`.
pub fn begins_message(line: &[u8], next: &[u8]) -> bool {
    let Some(name) = name_of_header(next) else {
        let may_follow = next.trim_ascii().is_empty() || next.starts_with(b">From ");
        return has_date(line) && may_follow;
    };
    let name = name.to_ascii_lowercase();
    let is_usual = USUAL_STARTS.iter().any(|start| name.starts_with(start.as_bytes()))
        || USUAL_NAMES.iter().any(|usual| usual.as_bytes() == name);
    let is_word = || WORDS.iter().any(|word| word.as_bytes() == name);
    is_usual || has_date(line) || is_word() && is_address_alone(line)
}

/// Returns true if a line `From ` has an address and nothing else.
fn is_address_alone(line: &[u8]) -> bool {
    let rest = line.strip_prefix(START).unwrap_or_default().trim_ascii();
    rest.contains(&b'@') && !rest.iter().any(u8::is_ascii_whitespace)
}

/// Returns the name of a header line: printable ASCII before a colon, perhaps with blanks before the colon.
pub fn name_of_header(line: &[u8]) -> Option<&[u8]> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    let name = line.get(..colon)?.trim_ascii_end();
    (!name.is_empty() && name.iter().all(u8::is_ascii_graphic)).then_some(name)
}

/// Returns true if a line `From ` has a date. Lines that end with CR alone are one line, which has none.
pub fn has_date(line: &[u8]) -> bool {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    !line.contains(&b'\r') && (has_asctime(line) || has_date_of_mail(line))
}

/// Returns true if a line has a date as `asctime` writes it: `Mon May  6 07:08`.
fn has_asctime(line: &[u8]) -> bool {
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
    words.windows(4).any(is_date)
}

/// Returns true if a line has a date of mail behind the sender, which is one word or ends with an address,
/// and nothing else, but for the host that UUCP puts there.
fn has_date_of_mail(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line.strip_prefix(START).unwrap_or_default());
    let text = text.split(" remote from ").next().unwrap_or_default().trim();
    let address = text.rfind('@').unwrap_or(0);
    let rest = text.get(address..).unwrap_or_default();
    let is_address = address > 0;
    let Some((_, behind)) = rest.split_once(|sign: char| sign.is_ascii_whitespace()) else { return false };
    // `From Monday, 6 May 2024 07:08` has no sender.
    date::micros(behind).is_some() && (is_address || date::micros(text).is_none())
}

/// Place of a file in a folder of mail, by its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A folder `cur` or `new`.
    Maildir,
    /// A folder `tmp`, in which mail is being delivered.
    Delivery,
    /// A name that is a number.
    Mh,
    /// Any other place.
    Other,
}

impl Place {
    /// Returns the place of the file `path`.
    pub fn from_path(path: &str) -> Self {
        let mut parts = path.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        match parts.next() {
            Some("cur" | "new") => Self::Maildir,
            // Names begin with a time.
            Some("tmp") if name.split_once('.').is_some_and(|(time, _)| is_number(time)) => Self::Delivery,
            _ if is_number(name) => Self::Mh,
            _ => Self::Other,
        }
    }

    /// Returns true if a file here, whose first line is `line`, is one message.
    pub fn is_of_message(self, line: &[u8]) -> bool {
        match self {
            Self::Maildir => !line.starts_with(START),
            Self::Mh => !line.starts_with(START) && name_of_header(line).is_some(),
            Self::Delivery | Self::Other => false,
        }
    }
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
            ("From ann\n", "Resent-From: y\n"),
            ("From c@d\n", "Mailing-List: y\n"),
            ("From c@d\n", "Priority: y\n"),
            ("From c@d\n", "DomainKey-Signature: y\n"),
            ("From c@d Mon, 6 May 2024 07:09:09 +0200\n", "Received-SPF: pass\n"),
            ("From c@d Mon, 6 May 2024 07:09:09 +0200 (CEST)\r\n", "Anything: x\r\n"),
            ("From \"Ann Lee\" <c@d> 6 May 2024 07:09 GMT\n", "\n"),
            ("From MAILER-DAEMON Mon, 06-May-24 07:09:09 GMT remote from x\n", "A: b\n"),
            ("From c@d 2024-05-06 07:08:09\n", "A: b\n"),
            ("From - 2024-05-06T07:08:09Z\n", "A: b\n"),
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
            ("From our side\n", "Priority: high\n"),
            ("From ann\n", "Summary: none\n"),
            ("From c@d\n", "Phone: 100\n"),
            ("From Monday, 6 May 2024 07:09\n", "\n"),
            ("From 2024-05-06 07:08:09\n", "\n"),
            ("From c@d on 6 May 2024 07:09 we meet\n", "Note: x\n"),
            ("From here on 6 May 2024 07:09\n", "\n"),
            ("From ann\n", "\n"),
            ("From Mon May 6 :\n", "\n"),
            ("From a Mon May  6 07:08:09 2024\rSubject: 1\r\rbody\r", "Subject: x\n"),
        ] {
            let is_usual = next.starts_with("Subject");
            assert_eq!(begins_message(line.as_bytes(), next.as_bytes()), is_usual, "{line}{next}");
        }
    }

    #[test]
    fn places_are_told_by_folder_and_name() {
        for (path, place) in [
            ("Maildir/cur/1204680122.27c448.host:2,S", Place::Maildir),
            ("a.tar/.Sent/new/x", Place::Maildir),
            ("new/a.mbox", Place::Maildir),
            ("Maildir/tmp/1204680122.x.host", Place::Delivery),
            ("tmp/inbox.mbox", Place::Other),
            ("inbox/17", Place::Mh),
            ("17", Place::Mh),
            ("cur", Place::Other),
            ("inbox/.17", Place::Other),
            ("", Place::Other),
        ] {
            assert_eq!(Place::from_path(path), place, "{path}");
        }
        assert!(Place::Maildir.is_of_message(b"no header line\n"));
        assert!(!Place::Maildir.is_of_message(b"From ann Mon May  6 07:08:09 2024\n"));
        assert!(Place::Mh.is_of_message(b"Subject: x\n"));
        assert!(!Place::Mh.is_of_message(b"17\n"));
    }
}
