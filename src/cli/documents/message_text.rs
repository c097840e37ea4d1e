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

use std::sync::Arc;

use datafusion_tadoc::contain_panics;
use mail_parser::{MessageParser, PartType};

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
    let parsed = contain_panics(&name, || MessageParser::new().parse(message));
    let Some(parsed) = parsed.map_err(Failure::from)? else { return Ok(()) };
    for &part in &parsed.text_body {
        rows.sink.append(path, b"\n")?;
        match parsed.parts.get(part as usize).map(|part| &part.body) {
            Some(PartType::Text(text)) => rows.sink.append(path, text.as_bytes())?,
            Some(PartType::Html(page)) => {
                let failed = |error| Failure::with_cause(name.clone(), &error);
                let mut page = page.as_bytes();
                html::append_text(Form::Html, Given::Utf8, path, &mut page, rows, &failed)?;
            }
            _ => {}
        }
    }
    Ok(())
}
