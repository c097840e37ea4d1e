//! Pages of HTML: how one is told by its name or type, and their text.
//!
//! [`append_text`] reads with the feature `html`. Without it, a page that is to become text is an error.

#[cfg(feature = "html")]
mod open_elements;
#[cfg(feature = "html")]
mod text;

#[cfg(not(feature = "html"))]
use std::io::{self, BufRead};
use std::sync::Arc;

#[cfg(feature = "html")]
pub use self::text::append_text;
use crate::charset::Given;
#[cfg(not(feature = "html"))]
use crate::failure::Failure;
use crate::failure::Outcome;
use crate::open::Opened;
use crate::rows::Rows;

/// Endings of compressed files, which stand behind that of the page.
const PACKED: [&str; 6] = ["gz", "zst", "bz2", "xz", "lz", "lz4"];

/// Forms of HTML, which differ in the elements that end themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// HTML: a script goes on to its end tag.
    Html,
    /// HTML behind an XML declaration, as in many books: `<script/>` is empty, and another script goes on to its end
    /// tag.
    Declared,
    /// XHTML: `<script/>` is empty.
    Xhtml,
}

impl Form {
    /// Returns the form of the file `path` by its ending, or none if it is no page.
    pub fn from_path(path: &str) -> Option<Self> {
        let is_packed = |ending: &str| PACKED.iter().any(|packed| ending.eq_ignore_ascii_case(packed));
        let plain = match path.rsplit_once('.') {
            Some((plain, ending)) if is_packed(ending) => plain,
            _ => path,
        };
        match plain.rsplit_once('.')?.1.to_ascii_lowercase().as_str() {
            "html" | "htm" => Some(Self::Html),
            "xhtml" | "xht" => Some(Self::Xhtml),
            _ => None,
        }
    }

    /// Returns the form of a body of HTTP with this type, or none if it is no page.
    pub fn from_type(content_type: Option<&str>) -> Option<Self> {
        let essence = content_type?.split(';').next().unwrap_or_default().trim();
        match essence.to_ascii_lowercase().as_str() {
            "text/html" => Some(Self::Html),
            "application/xhtml+xml" => Some(Self::Xhtml),
            _ => None,
        }
    }
}

/// Reads an input as one document: the text of the page.
pub fn read_file(form: Form, mut opened: Opened<'_>, rows: &mut Rows<'_, '_>) -> Outcome {
    let path: Arc<str> = Arc::from(rows.input.path.as_str());
    let budget = opened.budget.clone();
    let codec = opened.codec;
    let input = rows.input;
    let given = Given::ContentType(None);
    append_text(form, given, &path, &mut *opened.reader, rows, &|error| budget.failed(codec, input, &error))?;
    rows.sink.count_read(opened.take_counts());
    rows.sink.end_document(&path)
}

/// Refuses a page, because this build has no reader of HTML.
///
/// # Errors
/// Always.
#[cfg(not(feature = "html"))]
pub fn append_text(
    _form: Form,
    _given: Given<'_>,
    _path: &Arc<str>,
    _reader: &mut dyn BufRead,
    rows: &mut Rows<'_, '_>,
    _failed: &dyn Fn(io::Error) -> Failure,
) -> Outcome {
    Err(Failure::left_out("HTML", "html").within(rows.input.shown()))
}
