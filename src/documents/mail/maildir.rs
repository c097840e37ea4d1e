//! Files with one message in folders of mail: Maildir and MH.
//!
//! ```text
//! Maildir/cur/1204680122.27c448.host:2,S     a message; flags stand behind the colon
//! Maildir/new/1204680123.27c449.host         a message that nobody has seen
//! Maildir/tmp/1204680124.27c44a.host         left out: it is being delivered
//! inbox/17                                   a message of MH
//! ```
//!
//! Source: "Using maildir format" (D. J. Bernstein), <https://cr.yp.to/proto/maildir.html>; mh-mail(5) of nmh.

use super::from_line::{START, name_of_header};

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
