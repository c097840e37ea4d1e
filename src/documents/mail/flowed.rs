//! Plain text whose lines a mailer broke, `format=flowed`.
//!
//! ```text
//! This is ␠                      This is one line.        a blank at the end: the line goes on
//! one line.
//! > what you ␠            ──▶    > what you wrote
//! > wrote
//!  From here                     From here                the blank in front is no text
//! -- ␠                           -- ␠                     a signature follows
//! ```
//!
//! Source: RFC 3676, 4. Lines go on in lines of their own depth of `>` only, and never in or behind the line in front
//! of a signature. With `DelSp=yes` the blank at their end is no text. A line keeps the marks, and the blank behind
//! them, of the first one that it was broken into. Time is linear in the bytes.

/// A mark of quoted text.
const QUOTE: u8 = b'>';
/// Line in front of a signature.
const SIGNATURE: &[u8] = b"-- ";

/// Joins the lines of `text`. If `deletes_blanks`, the blank at the end of those that go on is left out.
pub fn joined(text: &[u8], deletes_blanks: bool) -> Vec<u8> {
    let mut joined = Vec::with_capacity(text.len());
    let mut open: Option<Line<'_>> = None;
    for written in text.split_inclusive(|&byte| byte == b'\n') {
        let line = Line::parse(written);
        let is_next = |open: &Line<'_>| open.depth == line.depth && line.text != SIGNATURE;
        match open.take() {
            Some(before) if is_next(&before) => {
                if deletes_blanks {
                    joined.pop();
                }
            }
            before => {
                joined.extend_from_slice(before.map_or(b"", |before| before.end));
                joined.extend_from_slice(line.marks);
            }
        }
        joined.extend_from_slice(line.text);
        if line.goes_on() {
            open = Some(line);
        } else {
            joined.extend_from_slice(line.end);
        }
    }
    joined.extend_from_slice(open.map_or(b"", |line| line.end));
    joined
}

/// A line of a text.
struct Line<'t> {
    /// Number of marks in front.
    depth: usize,
    /// The marks, with the blank behind them.
    marks: &'t [u8],
    text: &'t [u8],
    end: &'t [u8],
}

impl<'t> Line<'t> {
    fn parse(written: &'t [u8]) -> Self {
        let line = written.strip_suffix(b"\n").unwrap_or(written);
        let line = line.strip_suffix(b"\r").filter(|_| line.len() < written.len()).unwrap_or(line);
        let depth = line.iter().take_while(|&&byte| byte == QUOTE).count();
        let num_blanks = usize::from(line.get(depth) == Some(&b' '));
        let (marks, text) = line.split_at(depth + num_blanks);
        let marks = if depth == 0 { b"" } else { marks };
        Self { depth, marks, text, end: &written[line.len()..] }
    }

    /// Returns true if the next line belongs to this one.
    fn goes_on(&self) -> bool {
        self.text.ends_with(b" ") && self.text != SIGNATURE
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    fn joined(text: &str, deletes_blanks: bool) -> String {
        String::from_utf8(super::joined(text.as_bytes(), deletes_blanks)).unwrap()
    }

    #[test]
    fn lines_that_end_with_a_blank_go_on() {
        for (text, expected) in [
            ("This is \r\none line.\r\nnext\r\n", "This is one line.\r\nnext\r\n"),
            ("a \nb \nc\n\nd\n", "a b c\n\nd\n"),
            ("bye \nnow \n-- \nme \nhere\n", "bye now \n-- \nme here\n"),
            ("> a \n> b\n>> c \n>d\nx", "> a b\n>> c \n>d\nx"),
            (">a \n> b\n> -- \n> me\n", ">a b\n> -- \n> me\n"),
            (" From x\n > y\n  z\n", "From x\n> y\n z\n"),
            ("a \n > b\n> c\n", "a > b\n> c\n"),
            (">> \n>> a\n", ">> \n>> a\n"),
            ("a \n\nb\n", "a \nb\n"),
            ("a ", "a "),
            ("a \n", "a \n"),
            ("a\r \nb", "a\r b"),
            ("", ""),
        ] {
            assert_eq!(joined(text, false), expected, "{text:?}");
        }
        for (text, expected) in [
            ("Donau \r\ndampf \r\nschiff\r\n", "Donaudampfschiff\r\n"),
            ("> one  \n> two\nb \n> c\n-- \nd\n", "> one two\nb \n> c\n-- \nd\n"),
        ] {
            assert_eq!(joined(text, true), expected, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn all_but_line_ends_marks_and_blanks_stays(text in "[ab> \r\n-]{0,60}", deletes_blanks: bool) {
            let kept = |text: &str| text.replace([' ', '>', '\r', '\n'], "");
            let joined = joined(&text, deletes_blanks);
            prop_assert_eq!(kept(&joined), kept(&text));
            prop_assert!(joined.len() <= text.len());
        }

        #[test]
        fn lines_that_do_not_go_on_stay(text in "([a-c>]{0,5}(\r\n|\n)){0,20}") {
            prop_assert_eq!(joined(&text, true), text);
        }
    }
}
