//! The parts of a message that a reader of it sees.
//!
//! ```text
//! multipart/mixed          each text without a name, and the first one
//! multipart/related        the part that `start` names, or the first that has text; no pictures
//! multipart/alternative    plain text, or a page, or any text: the first of these that is not blank
//! message/rfc822           the message in it, unless it is attached
//! alone in a message       a text of any type
//! ```
//!
//! Sources: RFC 2046, 5.1.4 and 5.2.1, RFC 2387 and RFC 2183, and what mail readers do. Time is linear in the
//! bytes.

use std::collections::HashMap;

use super::headers;
use super::parts::{Kind, Multipart, Part};
use super::transfer;

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
        let text = headers::decode(part.charset().unwrap_or("utf-8"), &bytes);
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
    use super::super::parts::split;
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
