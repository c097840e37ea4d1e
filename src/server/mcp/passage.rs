//! Passages: the tool `read`.
//!
//! ```text
//! path or doc_id ─▶ the document ─▶ its bytes ─▶ from a line or a byte, up to a number of lines and bytes
//!   │      └─ around ▶ the documents around it that have its path, such as lines of a file
//!   └─ of several documents ▶ the file again, of which they are the lines
//! ```
//!
//! A passage ends at the end of a line, unless the line alone is too long. The document is decoded as a whole, within
//! the memory of a statement.

use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Int64Type;
use schemars::JsonSchema;
use serde::Deserialize;
use tadoc_documents::display::grouped;

use super::answer::{Answer, page_of_rows};
use super::arguments::{Page, check, invalid};
use super::source::{Source, Statement};
use crate::refusal::{Kind, Refusal};

/// Most lines of a passage.
const MAX_LINES: u64 = 10_000;
/// Most documents on each side.
const MAX_AROUND: u64 = 500;

/// Arguments of `read`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Asked {
    /// Path of the document, as other tools give it.
    #[serde(default)]
    path: Option<String>,

    /// Number of the document, instead of the path.
    #[serde(default)]
    doc_id: Option<u64>,

    /// First line, from 1. Of a path whose documents are lines of a file, it is a line of this file.
    #[serde(default)]
    #[schemars(range(min = 1))]
    line: Option<u64>,

    /// First byte, from 0, instead of the line.
    #[serde(default)]
    byte_offset: Option<u64>,

    /// Most lines, 1 to 10,000.
    #[serde(default = "usual_lines")]
    #[schemars(range(min = 1, max = 10000))]
    lines: u64,

    /// With doc_id: the document and this many before and after it that have its path, 0 to 500. For documents that
    /// are lines or rows of one file.
    #[serde(default)]
    #[schemars(range(max = 500))]
    around: u64,
}

fn usual_lines() -> u64 {
    500
}

impl Asked {
    /// Returns the question for the whole document `path`.
    pub fn from_path(path: &str) -> Self {
        Self { path: Some(path.to_owned()), lines: u64::MAX, ..Self::default() }
    }

    /// Checks the bounds, and that the arguments go together.
    ///
    /// # Errors
    /// They do not.
    pub fn check(&self) -> Result<(), Refusal> {
        check("lines", self.lines, 1, MAX_LINES)?;
        check("around", self.around, 0, MAX_AROUND)?;
        match (&self.path, self.doc_id) {
            (None, None) => return Err(invalid("expected path or doc_id; list_documents lists them")),
            (Some(_), Some(_)) => return Err(invalid("expected either path or doc_id, got both")),
            _ => {}
        }
        if self.around > 0 && self.doc_id.is_none() {
            return Err(invalid("around: expected a doc_id beside it"));
        }
        match (self.line, self.byte_offset) {
            (Some(0), _) => Err(invalid("line: got 0, expected 1 or more")),
            (Some(_), Some(_)) => Err(invalid("expected either line or byte_offset, got both")),
            _ => Ok(()),
        }
    }
}

/// A document.
struct Document {
    doc_id: u64,
    path: String,
}

/// The documents that a request names.
enum Found {
    One(Document),
    /// Several documents of this path.
    Several(String),
}

/// Reads a passage of a document of `corpus`, of at most `max_bytes`.
///
/// # Errors
/// The arguments are wrong, or there is no such document.
pub async fn read(source: &Source, corpus: &str, asked: &Asked, max_bytes: usize) -> Result<Answer, Refusal> {
    let document = match find(source, corpus, asked).await? {
        Found::One(document) => document,
        Found::Several(path) => return lines_of_file(source, corpus, &path, asked, max_bytes).await,
    };
    if asked.around > 0 {
        return neighbours(source, corpus, document.doc_id, asked.around).await;
    }
    let content = content(source, corpus, document.doc_id).await?;
    let passage = Passage::new(&content, asked, max_bytes)?;
    let text = &content[passage.start..passage.end];
    let note = passage.note(&document, &content);
    let has_more = passage.end < content.len();
    Ok(Answer { text: String::from_utf8_lossy(text).into_owned(), note, has_more })
}

async fn find(source: &Source, corpus: &str, asked: &Asked) -> Result<Found, Refusal> {
    let mut texts = vec![corpus.to_owned()];
    let condition = match (asked.doc_id, &asked.path) {
        (Some(doc_id), _) => format!("doc_id = {doc_id}"),
        (None, path) => {
            texts.extend(path.clone());
            "path = $2".to_owned()
        }
    };
    let sql = format!("SELECT doc_id, path FROM documents($1) WHERE {condition} ORDER BY doc_id LIMIT 2");
    let mut rows = source.run(Statement { sql, texts }).await?;
    let mut found = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        let ids = batch.column(0).as_primitive::<Int64Type>();
        let paths = batch.column(1).as_string::<i32>();
        for (doc_id, path) in ids.iter().zip(paths) {
            let doc_id = doc_id.and_then(|doc_id| doc_id.try_into().ok()).unwrap_or_default();
            found.push(Document { doc_id, path: path.unwrap_or_default().to_owned() });
        }
    }
    let is_alone = found.len() < 2;
    match found.into_iter().next() {
        Some(document) if is_alone => Ok(Found::One(document)),
        Some(document) => Ok(Found::Several(document.path)),
        None => {
            let got = asked.doc_id.map(|doc_id| format!("the number {doc_id}"));
            let got = got.unwrap_or_else(|| format!("the path {}", asked.path.as_deref().unwrap_or_default()));
            Err(invalid(format!("no document of {corpus} has {got}; list_documents with a glob lists them")))
        }
    }
}

/// Returns the bytes of a document.
async fn content(source: &Source, corpus: &str, doc_id: u64) -> Result<Vec<u8>, Refusal> {
    let sql = format!("SELECT content FROM documents($1) WHERE doc_id = {doc_id}");
    let mut rows = source.run(Statement { sql, texts: vec![corpus.to_owned()] }).await?;
    let mut content = Vec::new();
    while let Some(batch) = rows.next().await {
        let batch = batch?;
        for bytes in batch.column(0).as_binary::<i32>().iter().flatten() {
            content.extend_from_slice(bytes);
        }
    }
    Ok(content)
}

/// Reads the documents of a path as lines of a file, from the line that is asked for on.
async fn lines_of_file(
    source: &Source,
    corpus: &str,
    path: &str,
    asked: &Asked,
    max_bytes: usize,
) -> Result<Answer, Refusal> {
    if asked.byte_offset.is_some() {
        return Err(invalid(format!(
            "byte_offset: several documents have the path {path}, such as lines of one file; give line, or a doc_id"
        )));
    }
    let line = asked.line.unwrap_or(1);
    // A line takes at least a byte.
    let num_wanted = asked.lines.min(max_bytes as u64);
    let texts = || vec![corpus.to_owned(), path.to_owned()];
    let sql = format!(
        "SELECT doc_id FROM documents($1) WHERE path = $2 ORDER BY doc_id LIMIT {} OFFSET {}",
        num_wanted.saturating_add(1),
        line - 1
    );
    let mut rows = source.run(Statement { sql, texts: texts() }).await?;
    let mut ids: Vec<i64> = Vec::new();
    while let Some(batch) = rows.next().await {
        ids.extend(batch?.column(0).as_primitive::<Int64Type>().values());
    }
    let (Some(first), Some(last)) = (ids.first(), ids.last()) else {
        return Err(invalid(format!("line: got {line}, {path} has fewer")));
    };
    let sql = format!(
        "SELECT content FROM documents($1) WHERE path = $2 AND doc_id BETWEEN {first} AND {last} ORDER BY doc_id \
         LIMIT {num_wanted}"
    );
    let mut rows = source.run(Statement { sql, texts: texts() }).await?;
    let mut lines = FileLines { max_bytes, ..FileLines::default() };
    'rows: while let Some(batch) = rows.next().await {
        let batch = batch?;
        for content in batch.column(0).as_binary::<i32>().iter().flatten() {
            if !lines.add(content) {
                break 'rows;
            }
        }
    }
    let has_more = lines.num_lines < ids.len();
    let last_id = ids.get(lines.num_lines.saturating_sub(1)).unwrap_or(last);
    let last_line = line + (lines.num_lines as u64).saturating_sub(1);
    let mut note = format!("{path}: lines {line} to {last_line}, each a document (doc_id {first} to {last_id})");
    note.push_str(&match (lines.is_cut, has_more) {
        (true, _) => format!("; the line is long: read doc_id={last_id} from byte_offset={} on", lines.text.len()),
        (false, true) => format!("; go on with line={}", last_line + 1),
        (false, false) => ", the end of the file".to_owned(),
    });
    let text = String::from_utf8_lossy(&lines.text).into_owned();
    Ok(Answer { text, note, has_more: has_more || lines.is_cut })
}

/// Documents as lines of a file, of bounded length.
#[derive(Default)]
struct FileLines {
    text: Vec<u8>,
    num_lines: usize,
    max_bytes: usize,
    /// True if the only line is not whole.
    is_cut: bool,
}

impl FileLines {
    /// Adds a line, and returns true if there may be room for another one. The first one is cut where it is too long.
    fn add(&mut self, line: &[u8]) -> bool {
        let room = self.max_bytes.saturating_sub(self.text.len());
        if line.len() < room {
            self.text.extend_from_slice(line);
            self.text.push(b'\n');
            self.num_lines += 1;
            return true;
        }
        if self.num_lines == 0 {
            let end = character_boundary(line, room.min(line.len()));
            self.text.extend_from_slice(&line[..end]);
            self.num_lines = 1;
            self.is_cut = end < line.len();
        }
        false
    }
}

/// Returns the documents around one, as rows.
async fn neighbours(source: &Source, corpus: &str, doc_id: u64, around: u64) -> Result<Answer, Refusal> {
    let sql = format!(
        "SELECT doc_id, distance, text FROM context($1, {doc_id}, before => {around}, after => {around}) \
         ORDER BY distance"
    );
    let rows = source.run(Statement { sql, texts: vec![corpus.to_owned()] }).await?;
    page_of_rows(rows, &Page::new(2 * around + 1, 0), 0).await
}

/// A part of a document.
#[derive(Debug, PartialEq, Eq)]
struct Passage {
    start: usize,
    end: usize,
    /// Number of the first line, from 1.
    first_line: usize,
}

impl Passage {
    fn new(content: &[u8], asked: &Asked, max_bytes: usize) -> Result<Self, Refusal> {
        let start = match (asked.line, asked.byte_offset) {
            (Some(line), _) => start_of_line(content, line)?,
            (None, offset) => {
                check("byte_offset", offset.unwrap_or(0), 0, content.len() as u64)?;
                offset.and_then(|offset| offset.try_into().ok()).unwrap_or(0)
            }
        };
        let rest = &content[start..];
        let num_lines = usize::try_from(asked.lines).unwrap_or(usize::MAX);
        let wanted = line_ends(rest).nth(num_lines.saturating_sub(1)).unwrap_or(rest.len());
        let mut len = wanted.min(max_bytes);
        if len < wanted {
            let whole = line_ends(&rest[..len]).last();
            len = whole.unwrap_or_else(|| character_boundary(rest, len));
        }
        Ok(Self { start, end: start + len, first_line: 1 + num_line_ends(&content[..start]) })
    }

    /// Returns the note: which part this is, and how to go on.
    fn note(&self, document: &Document, content: &[u8]) -> String {
        let text = &content[self.start..self.end];
        let ends_line = text.ends_with(b"\n");
        let last_line = self.first_line + num_line_ends(text) - usize::from(ends_line);
        let [start, end, len] = [self.start, self.end, content.len()].map(|bytes| grouped(bytes as u64));
        let mut note = format!(
            "{} (doc_id {}): lines {} to {last_line}, bytes {start} to {end} of {len}",
            document.path, document.doc_id, self.first_line
        );
        if self.end == content.len() {
            note.push_str(", the end of the document");
        } else if ends_line {
            note.push_str(&format!("; go on with line={}", last_line + 1));
        } else {
            note.push_str(&format!("; the line is long: go on with byte_offset={}", self.end));
        }
        if std::str::from_utf8(text).is_err() {
            note.push_str("; bytes that are not UTF-8 are shown as U+FFFD");
        }
        note
    }
}

/// Returns the places behind the line ends of `text`.
fn line_ends(text: &[u8]) -> impl Iterator<Item = usize> {
    text.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1)
}

fn num_line_ends(text: &[u8]) -> usize {
    line_ends(text).count()
}

/// Returns the begin of a line, which counts from 1.
fn start_of_line(content: &[u8], line: u64) -> Result<usize, Refusal> {
    let Some(before) = usize::try_from(line).unwrap_or(usize::MAX).checked_sub(2) else { return Ok(0) };
    match line_ends(content).nth(before) {
        Some(start) if start < content.len() => Ok(start),
        _ => {
            let open = usize::from(!content.is_empty() && !content.ends_with(b"\n"));
            let num_lines = num_line_ends(content) + open;
            Err(Refusal::new(Kind::Invalid, format!("line: got {line}, the document has {num_lines} lines")))
        }
    }
}

/// Returns the largest place up to `end` where a character of UTF-8 begins; `end` if there is none nearby.
fn character_boundary(text: &[u8], end: usize) -> usize {
    let is_start = |at: &usize| text.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80);
    let places = (end.saturating_sub(3).max(1)..=end).rev();
    places.into_iter().find(is_start).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] = "one\ntwo\nthree, ééé\nfour".as_bytes();

    fn note(asked: &Asked, max_bytes: usize) -> (String, String) {
        let passage = Passage::new(TEXT, asked, max_bytes).unwrap();
        let document = Document { doc_id: 7, path: "a".into() };
        let text = String::from_utf8(TEXT[passage.start..passage.end].to_vec()).unwrap();
        (text, passage.note(&document, TEXT))
    }

    #[test]
    fn passages_end_at_lines_and_say_how_to_go_on() {
        let from = |line| Asked { line: Some(line), lines: 2, ..Asked::default() };
        let (text, told) = note(&from(1), 1000);
        assert_eq!(
            (text.as_str(), told.as_str()),
            ("one\ntwo\n", "a (doc_id 7): lines 1 to 2, bytes 0 to 8 of 26; go on with line=3")
        );
        let (text, told) = note(&from(3), 1000);
        assert_eq!(text, "three, ééé\nfour");
        assert!(told.ends_with("lines 3 to 4, bytes 8 to 26 of 26, the end of the document"), "{told}");
        let (text, told) = note(&from(1), 6);
        assert_eq!(text, "one\n");
        assert!(told.contains("lines 1 to 1,") && told.ends_with("go on with line=2"), "{told}");
        let (text, told) = note(&from(3), 8);
        assert_eq!(text, "three, ");
        assert!(told.ends_with("go on with byte_offset=15"), "{told}");
        let rest = Asked { byte_offset: Some(15), lines: 1, ..Asked::default() };
        assert_eq!(note(&rest, 1000).0, "ééé\n");
        let refused = Passage::new(TEXT, &from(5), 10).unwrap_err().text;
        assert_eq!(refused, "line: got 5, the document has 4 lines");
        assert!(Passage::new(TEXT, &Asked { byte_offset: Some(27), lines: 1, ..Asked::default() }, 10).is_err());
    }

    #[test]
    fn lines_of_a_file_end_where_the_room_ends() {
        let mut lines = FileLines { max_bytes: 9, ..FileLines::default() };
        assert!(lines.add(b"one") && lines.add("é".as_bytes()) && !lines.add(b"two"));
        assert_eq!((lines.text.as_slice(), lines.num_lines, lines.is_cut), ("one\né\n".as_bytes(), 2, false));
        let mut long = FileLines { max_bytes: 4, ..FileLines::default() };
        assert!(!long.add("aéé".as_bytes()));
        assert_eq!((long.text.as_slice(), long.num_lines, long.is_cut), ("aé".as_bytes(), 1, true));
    }

    #[test]
    fn empty_documents_and_odd_bytes_are_passages() {
        let first = Asked { line: Some(1), lines: 1, ..Asked::default() };
        assert_eq!(Passage::new(b"", &first, 10).unwrap(), Passage { start: 0, end: 0, first_line: 1 });
        let passage = Passage::new(&[0x80; 20], &first, 10).unwrap();
        assert_eq!(passage.end, 10);
    }
}
