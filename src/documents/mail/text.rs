//! The text of a message: its header lines, and what a reader of the mail sees below them.
//!
//! ```text
//! multipart/mixed                          From: …            header lines, as they are
//! ├─ multipart/alternative                 Subject: …
//! │  ├─ text/plain, quoted-printable ──▶
//! │  └─ text/html                          Grüße, …           decoded, in UTF-8
//! ├─ message/rfc822                  ──▶   Subject: inner     its header lines, and its text
//! │
//! │                                        the message in it
//! └─ application/pdf, base64               (left out)
//!
//! multipart/mixed          each text without a name, and the first one
//! multipart/related        the part that `start` names, or the first that has text; no pictures
//! multipart/alternative    plain text, or a page, or any text: the first of these that is not blank
//! message/rfc822           the message in it, unless it is attached
//! alone in a message       a text of any type
//! ```
//!
//! Sources: RFC 2045 to 2049, above all RFC 2046, 5.1.4 and 5.2.1, RFC 2387 and RFC 2183, and what mail readers do. The
//! message is [divided](parts), the parts that a reader sees ([`views`]) are [decoded](transfer), broken lines are
//! [joined](flowed), and pages become text as any other ([`html`]). A multipart that is cut is read to its end, and the
//! body of one without a boundary is text as it stands there. A message in an encoding is divided on its own, at most
//! [`MAX_LEVELS`] inside each other. Time is linear in the bytes. The message is in memory, and so are its texts.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use tadoc::error::contain_panics;

use super::headers::{self, Witness};
use super::parts::{self, Kind, Lines, Multipart, Part};
use super::{flowed, transfer};
use crate::charset::Given;
use crate::failure::{Failure, Outcome};
use crate::html::{self, Form};
use crate::rows::Rows;

/// Most messages in an encoding that are divided inside each other. What lies deeper is text as it stands.
const MAX_LEVELS: usize = 3;

/// Appends the text of `message` to the open document.
///
/// # Errors
/// A page in it is larger than a row may be.
pub fn append_text(path: &Arc<str>, message: &[u8], rows: &mut Rows<'_, '_>) -> Outcome {
    let name = format!("{}: message", rows.input.shown());
    Writer { path, name, rows }.append_message(message, MAX_LEVELS)
}

/// The open document.
struct Writer<'w, 'r, 's> {
    path: &'w Arc<str>,
    name: String,
    rows: &'w mut Rows<'r, 's>,
}

impl Writer<'_, '_, '_> {
    fn append(&mut self, bytes: &[u8]) -> Outcome {
        self.rows.sink.append(self.path, bytes)
    }

    /// Appends a message, with `levels` of messages in an encoding inside each other.
    fn append_message(&mut self, message: &[u8], levels: usize) -> Outcome {
        let parts = contain_panics(&self.name, || parts::split(message)).map_err(Failure::from)?;
        if parts.first().is_none_or(|part| part.head.is_empty()) {
            // There are no header lines.
            return self.append(message);
        }
        let views = views(message, &parts);
        for (part, view) in parts.iter().zip(views).filter(|(_, view)| *view != View::Nothing) {
            let is_message = part.parent.is_none_or(|parent| parts[parent].kind == Kind::Message);
            if is_message && !part.head.is_empty() {
                if part.parent.is_some() {
                    self.append(b"\n")?;
                }
                self.append(&message[part.head.clone()])?;
            }
            // Without a blank line behind its header lines a part has no body.
            if view == View::Text && part.body != (part.head.end..part.head.end) {
                self.append(b"\n")?;
                self.append_part(part, message, levels)?;
            }
        }
        Ok(())
    }

    /// Appends the text of a part of `message`.
    fn append_part(&mut self, part: &Part, message: &[u8], levels: usize) -> Outcome {
        let bytes = transfer::decoded(&message[part.body.clone()], part.encoding());
        if part.kind == Kind::PackedMessage && levels > 0 {
            return self.append_message(&bytes, levels - 1);
        }
        let is_page = part.kind == Kind::Page;
        let (text, given) = self.in_utf8(&bytes, part.charset(), is_page);
        if let Lines::Flowed { deletes_blanks } = part.lines() {
            return self.append(&flowed::joined(&text, deletes_blanks));
        }
        if !is_page {
            return self.append(&text);
        }
        let failed = |error| Failure::with_cause(self.name.clone(), &error);
        html::append_text(Form::Html, given, self.path, &mut text.as_ref(), self.rows, &failed)
    }

    /// Returns a text in UTF-8, or its bytes if nobody knows their character set, and what is known of it if
    /// it is a page.
    fn in_utf8<'b>(
        &mut self,
        bytes: &'b [u8],
        charset: Option<&str>,
        is_page: bool,
    ) -> (Cow<'b, [u8]>, Given<'static>) {
        let is_utf8 = std::str::from_utf8(bytes).is_ok();
        if is_page && charset.is_none() {
            let given = if is_utf8 { Given::Utf8 } else { Given::Html(None) };
            return (Cow::Borrowed(bytes), given);
        }
        let charset = charset.unwrap_or(headers::DEFAULT_CHARSET);
        if is_utf8 && headers::is_utf8(charset) || bytes.is_ascii() && headers::is_unheard_of(charset) {
            return (Cow::Borrowed(bytes), Given::Utf8);
        }
        let mut witness = Witness { input: self.rows.input, undecoded: &mut self.rows.sink.undecoded };
        match witness.decode(charset, bytes) {
            Some(text) => (Cow::Owned(text.into_bytes()), Given::Utf8),
            None => (Cow::Borrowed(bytes), Given::Html(None)),
        }
    }
}

/// View that a reader has of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// Nothing, and nothing of the parts in it.
    Nothing,
    /// Its header lines if it is a message, and the parts in it.
    Outside,
    /// Its text, too.
    Text,
}

/// Kinds of texts that say the same, the best one first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Plain,
    Page,
    Other,
}

/// Returns what a reader sees of each part of `message`.
pub fn views(message: &[u8], parts: &[Part]) -> Vec<View> {
    let viewer = Viewer { message, parts, roots: related_roots(parts) };
    let ranks = viewer.ranks();
    let mut views: Vec<View> = Vec::with_capacity(parts.len());
    for (idx, part) in parts.iter().enumerate() {
        let is_reached = part.parent.is_none_or(|idx_outside| {
            let outside = &parts[idx_outside];
            let is_alternative = outside.kind == Kind::Multipart(Multipart::Alternative);
            let is_best = ranks[idx_outside].is_none() || ranks[idx] == ranks[idx_outside];
            let is_attached = outside.kind == Kind::Message && outside.is_attached();
            views[idx_outside] != View::Nothing && !is_attached && (is_best || !is_alternative)
        });
        let view = if !is_reached {
            View::Nothing
        } else if viewer.has_text(idx) {
            View::Text
        } else {
            View::Outside
        };
        views.push(view);
    }
    views
}

/// Returns the part that each multipart about one part is about.
fn related_roots(parts: &[Part]) -> HashMap<usize, usize> {
    let mut roots = HashMap::new();
    let mut named = HashMap::new();
    for (idx, part) in parts.iter().enumerate() {
        let Some(parent) = part.parent else { continue };
        let may_be_root = !matches!(part.kind, Kind::Binary | Kind::OtherText) && !part.is_attached();
        if parts[parent].kind != Kind::Multipart(Multipart::Related) || !may_be_root {
            continue;
        }
        roots.entry(parent).or_insert(idx);
        if is_start(&parts[parent], part) {
            named.entry(parent).or_insert(idx);
        }
    }
    roots.extend(named);
    roots
}

/// Returns true if `parent` names `part` as the one to look at first.
fn is_start(parent: &Part, part: &Part) -> bool {
    let bare = |name: &str| name.trim().trim_start_matches('<').trim_end_matches('>').to_owned();
    let start = parent.facts.as_ref().and_then(|facts| facts.start.as_deref());
    let id = part.facts.as_ref().and_then(|facts| facts.id.as_deref());
    start.is_some() && start.map(bare) == id.map(bare)
}

/// The parts of a message.
struct Viewer<'m> {
    message: &'m [u8],
    parts: &'m [Part],
    roots: HashMap<usize, usize>,
}

impl Viewer<'_> {
    /// Returns true if a part without parts has a text that may be seen.
    fn has_text(&self, idx: usize) -> bool {
        let part = &self.parts[idx];
        match part.kind {
            Kind::Multipart(_) | Kind::Message | Kind::Binary => return false,
            _ if part.is_attached() => return false,
            Kind::PackedMessage | Kind::Undivided => return true,
            Kind::Plain | Kind::Page | Kind::OtherText => {}
        }
        let Some(parent) = part.parent else { return true };
        match self.parts[parent].kind {
            Kind::Message | Kind::Multipart(Multipart::Alternative) => true,
            Kind::Multipart(Multipart::Related) => self.roots.get(&parent) == Some(&idx),
            _ => {
                let is_first = parent + 1 == idx;
                let has_name = part.facts.as_ref().is_some_and(|facts| facts.has_name);
                part.kind != Kind::OtherText && (is_first || !has_name)
            }
        }
    }

    /// Returns the rank of each part that may be an alternative, or of the first text in it. A blank text has
    /// none.
    fn ranks(&self) -> Vec<Option<Rank>> {
        let is_alternative = |part: &Part| part.kind == Kind::Multipart(Multipart::Alternative);
        let mut is_inside = Vec::with_capacity(self.parts.len());
        for part in self.parts {
            let is_in = part.parent.is_some_and(|parent| is_inside[parent] || is_alternative(&self.parts[parent]));
            is_inside.push(is_in);
        }
        let mut ranks: Vec<Option<Rank>> = vec![None; self.parts.len()];
        for (idx, part) in self.parts.iter().enumerate().rev().filter(|(idx, _)| is_inside[*idx]) {
            match part.kind {
                Kind::Multipart(_) => {}
                Kind::Message | Kind::PackedMessage => ranks[idx] = (!part.is_attached()).then_some(Rank::Other),
                _ if self.has_text(idx) && !self.is_blank(part) => ranks[idx] = Some(rank(part.kind)),
                _ => {}
            }
            let (Some(parent), Some(rank)) = (part.parent, ranks[idx]) else { continue };
            let known = ranks[parent].filter(|_| is_alternative(&self.parts[parent]));
            ranks[parent] = Some(known.map_or(rank, |known| known.min(rank)));
        }
        ranks
    }

    /// Returns true if the text of a part has no sign that is seen.
    fn is_blank(&self, part: &Part) -> bool {
        let bytes = transfer::decoded(&self.message[part.body.clone()], part.encoding());
        let text = headers::decode(part.charset().unwrap_or(headers::DEFAULT_CHARSET), &bytes);
        let is_unseen = |sign: char| sign.is_whitespace() || matches!(sign, '\u{200b}' | '\u{feff}');
        text.map_or(bytes.trim_ascii().is_empty(), |decoded| decoded.text.chars().all(is_unseen))
    }
}

fn rank(kind: Kind) -> Rank {
    match kind {
        Kind::Plain => Rank::Plain,
        Kind::Page => Rank::Page,
        _ => Rank::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::parts::split;
    use super::*;

    /// Returns the bodies of the texts that are seen.
    fn texts(message: &str) -> Vec<&str> {
        let parts = split(message.as_bytes());
        let views = views(message.as_bytes(), &parts);
        let seen = parts.iter().zip(views).filter(|(_, view)| *view == View::Text);
        seen.map(|(part, _)| message[part.body.clone()].trim_end()).collect()
    }

    fn multipart(kind: &str, parts: &[&str]) -> String {
        let mut message = format!("Content-Type: multipart/{kind}; boundary=\"{kind}\"\n\n");
        for part in parts {
            message += &format!("--{kind}\n{part}\n");
        }
        message + &format!("--{kind}--\n")
    }

    const PLAIN: &str = "\nplain";
    const BLANK: &str = "Content-Transfer-Encoding: quoted-printable\n\n =C2=A0\n ";
    const PAGE: &str = "Content-Type: text/html\n\npage";
    const PICTURE: &str = "Content-Type: image/png\n\npicture";
    const OTHER: &str = "Content-Type: text/calendar\n\nother";
    const NAMED: &str = "Content-Type: text/plain; name=x\n\nnamed";
    const ATTACHED: &str = "Content-Disposition: attachment\n\nattached";
    const MESSAGE: &str = "Content-Type: message/rfc822\n\nSubject: x\n\nmessage";

    #[test]
    fn the_best_alternative_that_is_not_blank_is_seen() {
        let related = multipart("related", &[PAGE, PICTURE]);
        let mixed = multipart("mixed", &[PAGE, PLAIN]);
        for (parts, expected) in [
            (&[PLAIN, PAGE][..], &["plain"][..]),
            (&[PAGE, PLAIN], &["plain"]),
            (&[BLANK, PAGE], &["page"]),
            (&[BLANK, &related], &["page"]),
            (&[PLAIN, &related], &["plain"]),
            (&[PLAIN, &mixed], &["plain"]),
            (&[BLANK, &mixed], &["page", "plain"]),
            (&[BLANK, OTHER], &["other"]),
            (&[PAGE, OTHER], &["page"]),
            (&[PICTURE, PAGE], &["page"]),
        ] {
            assert_eq!(texts(&multipart("alternative", parts)), expected, "{parts:?}");
        }
    }

    #[test]
    fn a_picture_is_no_text() {
        let start = "related; start=\"<r>\"";
        let root = "Content-Type: text/html\nContent-ID: <r>\n\nroot";
        for (kind, parts, expected) in [
            ("related", &[PICTURE, PAGE][..], &["page"][..]),
            ("related", &[PAGE, PICTURE], &["page"]),
            (start, &[PLAIN, root], &["root"]),
            (start, &[PICTURE, root], &["root"]),
            (start, &[PICTURE, PLAIN], &["plain"]),
            ("mixed", &[PICTURE, PLAIN], &["plain"]),
            ("mixed", &[PLAIN, NAMED, OTHER, ATTACHED, PAGE], &["plain", "page"]),
            ("mixed", &[NAMED], &["named"]),
        ] {
            let message = multipart(kind, parts).replace(&format!("--{kind}"), "--x");
            let message = message.replace(&format!("boundary=\"{kind}\""), "boundary=x");
            assert_eq!(texts(&message), expected, "{message}");
        }
        assert!(texts(PICTURE).is_empty());
        assert_eq!(texts(OTHER), ["other"]);
    }

    #[test]
    fn messages_inside_a_message_are_seen_unless_they_are_attached() {
        let attached = format!("Content-Disposition: attachment\n{MESSAGE}");
        let inline = format!("Content-Disposition: inline\n{MESSAGE}");
        let digest = multipart("digest", &["\nSubject: a\n\none", "Content-Type: text/plain\n\ntwo"]);
        let message = multipart("mixed", &[PLAIN, MESSAGE, &attached, &inline, &digest]);
        assert_eq!(texts(&message), ["plain", "message", "message", "one", "two"]);
        let alone = split(attached.as_bytes());
        assert_eq!(views(attached.as_bytes(), &alone), [View::Outside, View::Nothing]);
    }
}

#[cfg(feature = "html")]
#[cfg(test)]
mod page_tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;

    use testkit::random::Random;

    use super::super::tests::documents_read;
    use super::parts::split;
    use crate::ReadOptions;

    /// Returns the text of a message.
    fn text_of(mail: &[u8]) -> String {
        let options = ReadOptions { html_to_text: true, ..ReadOptions::default() };
        let texts = documents_read(mail, "a.eml", options).unwrap();
        String::from_utf8_lossy(&texts.concat()).into_owned()
    }

    #[test]
    fn a_text_has_what_a_reader_sees() {
        let mixed = "Content-Type: multipart/mixed; boundary=b\n\n";
        let inner = "Content-Type: multipart/alternative; boundary=a\n\n";
        let digest = "Content-Type: multipart/digest; boundary=b\n\n";
        let message = "Content-Type: message/rfc822\n\nSubject: d1\n\nbody one\n";
        let page = "Content-Type: text/html\n\n<p>a <b>page</b></p>\n";
        let base64 = "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: base64\n\n";
        let related = "Content-Type: multipart/related; boundary=b; start=\"<r>\"\n\n";
        let picture = "Content-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n";
        for (mail, text) in [
            (
                format!("{digest}--b\n\nSubject: d1\n\nbody one\n--b\n\nSubject: d2\n\nbody two\n--b--\n"),
                "\nSubject: d1\n\nbody one\nSubject: d2\n\nbody two",
            ),
            (format!("{mixed}--b\n\nfirst\n--b\n{message}--b--\n"), "\nfirst\nSubject: d1\n\nbody one"),
            (message.to_owned(), "\nSubject: d1\n\nbody one\n"),
            (format!("{mixed}--b\nContent-Disposition: attachment\n{message}--b\n\ntwo\n"), "\ntwo\n"),
            (
                format!("{mixed}--b\nContent-Type: message/rfc822\n\n{inner}--a\n\nin\n--b\n\ntwo\n"),
                "\nContent-Type: multipart/alternative; boundary=a\n\nin\ntwo\n",
            ),
            (format!("{related}--b\n{picture}--b\nContent-ID: <r>\n{page}--b--\n"), "\na page\n"),
            (format!("{mixed}--b\n{picture}--b\n\nas it is\n--b--\n"), "\nas it is"),
            (format!("{base64}bmVlZGxl\n____\na mailing list\n"), "\nneedle\n____\na mailing list\n"),
            (format!("{base64}RGVy!IFRleHQ*"), "\nDer Text"),
            (
                format!("{mixed}--b\n\nfirst\n--bar is a signature\nsecond\n--b--\n"),
                "\nfirst\n--bar is a signature\nsecond",
            ),
            (format!("{inner}--a\n\n \n\n--a\n{page}--a--\n"), "\na page\n"),
            (format!("{inner}--a\n\nplain\n--a\n{page}--a--\n"), "\nplain"),
            (format!("{mixed}--b\n{inner}--a\n{page}"), "\na page\n"),
            (format!("{mixed}--b\n{inner}--a\n\none\n--b\n{page}--b--\n"), "\none\na page\n"),
            (format!("{mixed}no boundary here\n"), "\nno boundary here\n"),
            (format!("{mixed}--b\nContent-Type: multipart/mixed\n\nthe body\n--b--\n"), "\nthe body"),
            ("Content-Type: text/x-own\n\nthe body\n".to_owned(), "\nthe body\n"),
            ("Subject: no blank line\n".to_owned(), ""),
            ("Content-Type: text/plain; Format=Flowed\n\none \nline\n".to_owned(), "\none line\n"),
            ("Content-Type: text/plain; format=flowed; delsp=\"Yes\"\n\none \nline\n".to_owned(), "\noneline\n"),
            ("Content-Type: text/plain; format=fixed; delsp=yes\n\none \nline\n".to_owned(), "\none \nline\n"),
            ("Content-Type: text/x-own; format=flowed\n\none \nline\n".to_owned(), "\none \nline\n"),
            (
                format!(
                    "{mixed}--b\nContent-Type: text/plain; charset=utf-8; format=flowed\n\
                     Content-Transfer-Encoding: quoted-printable\n\n caf=C3=A9=20\n> a\n--=20\n--b--\n"
                ),
                "\ncafé \n> a\n-- ",
            ),
        ] {
            let (head, _) = mail.split_once("\n\n").unwrap_or((mail.trim_end(), ""));
            assert_eq!(text_of(mail.as_bytes()), format!("{head}\n{text}"), "{mail}");
        }
        assert_eq!(text_of(b"\nonly a body \xc3\xa9\n"), "\nonly a body é\n");
        let ascii = "Content-Type: text/plain; charset=us-ascii\n\ncafé";
        assert_eq!(text_of(ascii.as_bytes()), ascii);
    }

    #[test]
    fn texts_without_a_character_set_are_in_ascii_or_what_mailers_take_for_it() {
        let with = |head: &str, body: &[u8]| [head.as_bytes(), b"\n\n", body].concat();
        let mixed = "Content-Type: multipart/mixed; boundary=b\n\n--b\nContent-Type: text/plain";
        let quoted = "Content-Type: text/plain\nContent-Transfer-Encoding: quoted-printable";
        for (head, body, text) in [
            ("Subject: x", b"caf\xe9 \x93x\x94\n".as_slice(), "café “x”\n"),
            ("Content-Type: text/plain", b"caf\xe9\n", "café\n"),
            ("Content-Type: text/plain", b"caf\xc3\xa9\n", "café\n"),
            (quoted, b"caf=E9\n", "café\n"),
            (mixed, b"caf\xe9\n", "café\n"),
            ("Content-Type: text/plain; charset=unknown-8bit", b"caf\xe9\n", "café\n"),
            ("Content-Type: text/html", b"<p>caf\xe9 \x93x\x94</p>", "café “x”\n"),
            ("Content-Type: text/html", b"<meta charset=iso-8859-2><p>\xb1</p>", "ą\n"),
            ("Content-Type: text/html; charset=x-no", b"<p>caf\xe9</p>", "café\n"),
            // What a mailer names counts.
            ("Content-Type: text/plain; charset=utf-8", b"caf\xe9\n", "caf\u{fffd}\n"),
        ] {
            let (first, _) = head.split_once("\n\n").unwrap_or((head, ""));
            assert_eq!(text_of(&with(head, body)), format!("{first}\n\n{text}"), "{head}");
        }
    }

    #[test]
    fn messages_in_an_encoding_have_few_levels() {
        let mut mail = "Subject: inner\n\nthe text\n".to_owned();
        for _ in 0..5 {
            let packed = STANDARD.encode(&mail);
            mail = format!("Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{packed}\n");
            let text = text_of(mail.as_bytes());
            assert_eq!(text.contains("\nSubject: inner\n\nthe text\n"), text.matches("rfc822").count() < 5, "{text}");
        }
    }

    #[test]
    fn any_lines_are_a_message() {
        let lines = [
            "Content-Type: multipart/mixed; boundary=b",
            "Content-Type: multipart/alternative; boundary=\"b--\"",
            "Content-Type: multipart/related; boundary=-",
            "Content-Type: multipart/digest; boundary=b",
            "Content-Type: message/rfc822",
            "Content-Type: text/html",
            "Content-Transfer-Encoding: base64",
            "Content-Disposition: attachment",
            "Subject: x",
            "--b",
            "--b--",
            "--b----",
            "---",
            "--",
            "dGV4dA==",
            " text",
            "",
            "",
        ];
        for case in 0..3000 {
            let random = &mut Random(case);
            let end = if case % 3 == 0 { "\r\n" } else { "\n" };
            let mut mail = "Subject: first".to_owned();
            for _ in 0..random.below(30) {
                mail += end;
                mail += *random.pick(&lines);
            }
            let text = text_of(mail.as_bytes());
            assert!(text.starts_with("Subject: first"), "{mail}");
            let parts = split(mail.as_bytes());
            for (idx, part) in parts.iter().enumerate() {
                assert!(part.parent.is_none_or(|parent| parent < idx), "{mail}");
                assert!(part.head.end <= part.body.start && part.body.start <= part.body.end, "{mail}");
                assert!(part.body.end <= mail.len(), "{mail}");
            }
        }
    }
}
