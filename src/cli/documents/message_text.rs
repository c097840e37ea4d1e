//! The text of a message: its header lines, and what a reader of the mail sees below them.
//!
//! ```text
//! multipart/mixed                          From: …            header lines, as they are
//! ├─ multipart/alternative                 Subject: …
//! │  ├─ text/plain, quoted-printable ──▶
//! │  └─ text/html                          Grüße, …           decoded, in UTF-8
//! └─ application/pdf, base64               (left out)
//! ```
//!
//! Sources: RFC 2045 to 2049 for parts, encodings and character sets, by the crate mail-parser. Of
//! alternatives the plain text counts; a page without one becomes text as any other ([`html`]). Messages
//! inside a message and attachments are left out. The message is in memory, and so are its texts.
//!
//! mail-parser makes a tree of messages inside messages and recurses once for each level when the tree is
//! copied or dropped. So the types that hold messages are [hidden](without_messages) from it before it is
//! called, and the tree has one level. Parts inside parts are a list, at any depth.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use datafusion_tadoc::contain_panics;
use mail_parser::{Message, MessageParser, MimeHeaders, PartType};

use super::charset::Given;
use super::html::{self, Form};
use super::rows::Rows;
use crate::failure::{Failure, Outcome};

/// Appends the text of `message`, whose header lines have `head_bytes` bytes, to the open document.
///
/// # Errors
/// A page in it is larger than a row may be.
pub fn append_text(
    path: &Arc<str>,
    message: &[u8],
    head_bytes: usize,
    rows: &mut Rows<'_, '_>,
) -> Outcome {
    rows.sink.append(path, message.get(..head_bytes).unwrap_or(message))?;
    let name = format!("{}: message", rows.input.shown());
    let flat = without_messages(message);
    let parsed = contain_panics(&name, || MessageParser::new().parse(flat.as_ref()));
    let Some(parsed) = parsed.map_err(Failure::from)? else { return Ok(()) };
    let in_digests = messages_in_digests(&parsed);
    for part in parsed.text_body.iter().filter(|part| !in_digests.contains(part)) {
        rows.sink.append(path, b"\n")?;
        match parsed.parts.get(*part as usize).map(|part| &part.body) {
            Some(PartType::Text(text)) => {
                rows.sink.append(path, with_messages(text.as_bytes()).as_ref())?;
            }
            Some(PartType::Html(page)) => {
                let failed = |error| Failure::with_cause(name.clone(), &error);
                let page = with_messages(page.as_bytes());
                let mut page = page.as_ref();
                html::append_text(Form::Html, Given::Utf8, path, &mut page, rows, &failed)?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Subtypes of parts that hold messages: `message/rfc822`, `message/global`, `multipart/digest`.
const HOLDERS: [&[u8; 6]; 3] = [b"rfc822", b"global", b"digest"];
/// Index of the letter of a subtype that is hidden.
const HIDDEN: usize = 2;
/// Marks in the place of a hidden letter, large or small.
const MARKS: [u8; 2] = [0x02, 0x03];

/// Returns `message` with a mark in the place of a letter of each subtype that holds messages. mail-parser
/// takes such a part for an attachment. It reads a subtype as it stands in the message, so none is missed.
fn without_messages(message: &[u8]) -> Cow<'_, [u8]> {
    let is_holder =
        |window: &[u8]| HOLDERS.iter().any(|holder| window.eq_ignore_ascii_case(holder.as_slice()));
    let places = message.windows(HOLDERS[0].len()).enumerate();
    let places = places.filter(|(_, window)| is_holder(window)).map(|(at, _)| at + HIDDEN);
    let mut flat = Cow::Borrowed(message);
    for at in places {
        let letter = &mut flat.to_mut()[at];
        *letter = MARKS[usize::from(letter.is_ascii_lowercase())];
    }
    flat
}

/// Undoes [`without_messages`] in a text of the message.
fn with_messages(text: &[u8]) -> Cow<'_, [u8]> {
    let mut whole = Cow::Borrowed(text);
    for (at, window) in text.windows(HOLDERS[0].len()).enumerate() {
        let Some(is_small) = MARKS.iter().position(|&mark| mark == window[HIDDEN]) else {
            continue;
        };
        let matches = |holder: &&[u8; 6]| {
            window[..HIDDEN].eq_ignore_ascii_case(&holder[..HIDDEN])
                && window[HIDDEN + 1..].eq_ignore_ascii_case(&holder[HIDDEN + 1..])
        };
        if let Some(holder) = HOLDERS.into_iter().find(matches) {
            let letter = holder[HIDDEN];
            whole.to_mut()[at + HIDDEN] =
                if is_small == 1 { letter } else { letter.to_ascii_uppercase() };
        }
    }
    whole
}

/// Returns the parts of hidden digests that name no type, which are messages.
fn messages_in_digests(parsed: &Message<'_>) -> HashSet<u32> {
    let mut messages = HashSet::new();
    for part in &parsed.parts {
        let subtype = part.content_type().and_then(|kind| kind.subtype()).unwrap_or_default();
        let PartType::Multipart(children) = &part.body else { continue };
        if with_messages(subtype.as_bytes()).eq_ignore_ascii_case(b"digest") {
            let has_no_type = |child: &&u32| {
                parsed.parts.get(**child as usize).is_some_and(|part| part.content_type().is_none())
            };
            messages.extend(children.iter().filter(has_no_type));
        }
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_letters_come_back() {
        let message = b"type: message/RFC822 or Message/rfc822, multipart/Digest, dIGEST, global";
        let flat = without_messages(message);
        assert!(HOLDERS.iter().all(|holder| {
            !flat.to_ascii_lowercase().windows(6).any(|window| window == holder.as_slice())
        }));
        assert_eq!(with_messages(&flat).as_ref(), message);
        let plain = b"no such type, and \x02 and rf\x02 822";
        assert!(matches!(without_messages(plain), Cow::Borrowed(_)));
        assert!(matches!(with_messages(plain), Cow::Borrowed(_)));
    }

    #[test]
    fn messages_inside_messages_have_one_level() {
        let deep = "Content-Type: message/rfc822\n\n".repeat(100_000) + "Subject: x\n\nend\n";
        let flat = without_messages(deep.as_bytes());
        let parsed = MessageParser::new().parse(flat.as_ref()).unwrap();
        assert!(parsed.text_body.is_empty());
        let digest = "Content-Type: multipart/digest; boundary=b\n\n--b\n\nSubject: in\n\ninner\n--b\n\
                      Content-Type: text/plain\n\nouter\n--b--\n";
        let flat = without_messages(digest.as_bytes());
        let parsed = MessageParser::new().parse(flat.as_ref()).unwrap();
        let messages = messages_in_digests(&parsed);
        let texts: Vec<u32> =
            parsed.text_body.iter().copied().filter(|part| !messages.contains(part)).collect();
        assert_eq!(texts.len(), 1);
        let PartType::Text(text) = &parsed.parts[texts[0] as usize].body else { panic!("no text") };
        assert_eq!(text.trim_end(), "outer");
    }
}
