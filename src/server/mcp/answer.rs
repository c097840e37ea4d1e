//! Answers of tools: rows as lines of JSON, of bounded size, and a note that says how to go on.
//!
//! ```text
//! {"path":"a.txt","doc_id":0,"hits":2}      a row in a line
//! {"path":"b.txt","doc_id":4,"hits":1}
//! ───────────────────────────────────       another block of text
//! rows 1 to 2; there are more: call again with offset=2
//! ```
//!
//! A model pays for each byte, so names of columns are the only ones that repeat. Texts that take more than a quarter
//! of an answer are cut. An answer has at most the bytes that were asked for, without its note.

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;
use rmcp::model::ContentBlock;
use serde_json::Value;

use super::arguments::Page;
use crate::refusal::{Kind, Refusal};
use crate::statements::Rows;
use crate::wire::Values;

/// Parts of an answer that one value may take, from the usual one to those of rows with many long values.
const SHARES: [usize; 3] = [4, 32, 256];
/// Bytes of a value that is never cut.
const SHORT_BYTES: usize = 64;

/// An answer.
#[derive(Debug, Default)]
pub struct Answer {
    /// The rows or the text, empty if there are none.
    pub text: String,
    /// The rest: how much this is, and how to go on.
    pub note: String,
    /// True if there is more than this.
    pub has_more: bool,
}

impl Answer {
    /// Returns the blocks of the answer.
    pub fn into_blocks(self) -> Vec<ContentBlock> {
        let blocks = [self.text, self.note].into_iter().filter(|text| !text.is_empty());
        blocks.map(ContentBlock::text).collect()
    }
}

/// Returns the rows of a page. The first `num_skipped` rows of the statement belong to earlier pages.
///
/// # Errors
/// The statement fails, or one row does not fit.
pub async fn page_of_rows(mut rows: Rows, page: &Page, num_skipped: u64) -> Result<Answer, Refusal> {
    let names = unique_names(&rows.schema);
    let mut lines = Lines { names, max_bytes: page.max_bytes(), ..Lines::default() };
    let mut left_to_skip = num_skipped;
    let mut end = End::Last;
    'batches: while let Some(batch) = rows.next().await {
        let batch = batch?;
        let here = usize::try_from(left_to_skip).unwrap_or(usize::MAX).min(batch.num_rows());
        left_to_skip -= here as u64;
        let values = values(&batch)?;
        for row in here..batch.num_rows() {
            if lines.num_rows == page.limit() {
                end = End::Limit;
                break 'batches;
            }
            if !lines.add(&values, row)? {
                end = End::Bytes;
                break 'batches;
            }
        }
    }
    let note = lines.note(page, end, &rows.notices);
    Ok(Answer { text: lines.text, note, has_more: end != End::Last })
}

/// The end of the rows of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The last row of the statement.
    Last,
    /// The number of rows that was asked for.
    Limit,
    /// The bytes that were asked for.
    Bytes,
}

/// Rows as lines.
#[derive(Default)]
struct Lines {
    names: Vec<String>,
    max_bytes: usize,
    text: String,
    num_rows: usize,
    /// Number of values that are cut.
    num_cut: usize,
}

impl Lines {
    /// Adds a row and returns true if there is room for it.
    fn add(&mut self, values: &[Values], row: usize) -> Result<bool, Refusal> {
        let room = self.max_bytes.saturating_sub(self.text.len());
        let shares = if self.num_rows == 0 { SHARES.as_slice() } else { &SHARES[..1] };
        for share in shares {
            let value_bytes = (self.max_bytes / share).max(SHORT_BYTES);
            let (line, num_cut) = self.line(values, row, value_bytes);
            if line.len() <= room {
                self.text.push_str(&line);
                self.num_rows += 1;
                self.num_cut += num_cut;
                return Ok(true);
            }
        }
        if self.num_rows == 0 {
            let text = format!(
                "a row has more than {} bytes; ask for fewer columns, or for a larger max_bytes",
                self.max_bytes
            );
            return Err(Refusal::new(Kind::Exhausted, text));
        }
        Ok(false)
    }

    /// Returns a row, and the number of its values that are cut.
    fn line(&self, values: &[Values], row: usize, value_bytes: usize) -> (String, usize) {
        let mut line = String::from("{");
        let mut num_cut = 0;
        for (name, values) in self.names.iter().zip(values) {
            if line.len() > 1 {
                line.push(',');
            }
            let value = values.value(row);
            line.push_str(&Value::from(name.as_str()).to_string());
            line.push(':');
            if value.len() <= value_bytes {
                line.push_str(&String::from_utf8_lossy(value));
            } else {
                line.push_str(&shortened(value, value_bytes).to_string());
                num_cut += 1;
            }
        }
        line.push_str("}\n");
        (line, num_cut)
    }

    /// Returns the note behind the rows.
    fn note(&self, page: &Page, end: End, notices: &[String]) -> String {
        let first = page.offset() + 1;
        let next = page.offset() + self.num_rows as u64;
        let mut note = match (self.num_rows, end) {
            (0, _) if page.offset() > 0 => format!("no rows from offset={} on", page.offset()),
            (0, _) => "no rows".to_owned(),
            (_, End::Last) if page.offset() == 0 => format!("rows {first} to {next}, which are all"),
            (_, End::Last) => format!("rows {first} to {next}, which are the last"),
            (_, End::Limit) => format!("rows {first} to {next}; there are more: call again with offset={next}"),
            (_, End::Bytes) => format!(
                "rows {first} to {next}; there are more, and max_bytes={} is full: call again with offset={next}",
                self.max_bytes
            ),
        };
        if self.num_cut > 0 {
            let cut = format!("; values that are cut end with … ({}): ask for a larger max_bytes", self.num_cut);
            note.push_str(&cut);
        }
        for notice in notices {
            note.push_str(&format!("\nnotice: {notice}"));
        }
        note
    }
}

fn values(batch: &RecordBatch) -> Result<Vec<Values>, Refusal> {
    Ok(batch.columns().iter().map(Values::new).collect::<Result<_, _>>()?)
}

/// Returns the names of columns. Those that stood before get a number.
fn unique_names(schema: &Schema) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for field in schema.fields() {
        let mut name = field.name().clone();
        let mut number = 2;
        while names.contains(&name) {
            name = format!("{}_{number}", field.name());
            number += 1;
        }
        names.push(name);
    }
    names
}

/// Returns a value in JSON of about `max_bytes`: texts and lists are cut.
fn shortened(value: &[u8], max_bytes: usize) -> Value {
    match serde_json::from_slice(value) {
        Ok(Value::Array(mut items)) => {
            items.truncate(max_bytes / SHORT_BYTES);
            let num_items = items.len().max(1);
            let mut items: Vec<Value> = items.into_iter().map(|item| cut(item, max_bytes / num_items)).collect();
            items.push("…".into());
            Value::Array(items)
        }
        Ok(value) => cut(value, max_bytes),
        Err(_) => Value::Null,
    }
}

/// Cuts a text at `max_bytes`, and anything else that is longer as text.
fn cut(value: Value, max_bytes: usize) -> Value {
    let text = match value {
        Value::String(text) => text,
        other => {
            let text = other.to_string();
            if text.len() <= max_bytes {
                return other;
            }
            text
        }
    };
    if text.len() <= max_bytes {
        return text.into();
    }
    // Escapes make the text longer: a sixth of it always fits.
    let fits = |bytes: usize| Value::from(&text[..text.floor_char_boundary(bytes)]).to_string().len() <= max_bytes;
    let bytes = [max_bytes, max_bytes / 2, max_bytes / 6].into_iter().find(|&bytes| fits(bytes));
    let end = text.floor_char_boundary(bytes.unwrap_or(0));
    format!("{}…", &text[..end]).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use datafusion::arrow::array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    fn lines(max_bytes: usize, text: &str) -> Result<Lines, Refusal> {
        let columns: [ArrayRef; 2] =
            [Arc::new(StringArray::from(vec![text; 3])), Arc::new(Int64Array::from(vec![1, 2, 3]))];
        let values: Vec<Values> = columns.iter().map(|column| Values::new(column).unwrap()).collect();
        let mut lines = Lines { names: vec!["t".into(), "n".into()], max_bytes, ..Lines::default() };
        for row in 0..3 {
            if !lines.add(&values, row)? {
                break;
            }
        }
        Ok(lines)
    }

    #[test]
    fn rows_are_objects_up_to_a_size() {
        let all = lines(1000, "é").unwrap();
        assert_eq!(all.text, "{\"t\":\"é\",\"n\":1}\n{\"t\":\"é\",\"n\":2}\n{\"t\":\"é\",\"n\":3}\n");
        assert_eq!(all.num_cut, 0);
        let long = lines(1000, &"é".repeat(2000)).unwrap();
        assert!(long.text.len() <= 1000 && long.num_rows == 3 && long.num_cut == 3, "{}", long.text);
        assert!(long.text.contains("é…\""));
        let few = lines(200, &"x".repeat(60)).unwrap();
        assert_eq!(few.num_rows, 2);
        assert!(lines(20, "0123456789").is_err(), "one row is too long");
    }

    #[test]
    fn notes_say_how_to_go_on() {
        let lines = lines(1000, "x").unwrap();
        let page = Page::new(3, 6);
        assert_eq!(lines.note(&page, End::Limit, &[]), "rows 7 to 9; there are more: call again with offset=9");
        assert_eq!(lines.note(&page, End::Last, &["n".into()]), "rows 7 to 9, which are the last\nnotice: n");
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let long = Value::from("é\n".repeat(500)).to_string();
        let short = shortened(long.as_bytes(), 100).to_string();
        assert!(short.len() <= 105 && short.ends_with("…\""), "{short}");
        let list = serde_json::to_vec(&vec!["word"; 1000]).unwrap();
        assert_eq!(shortened(&list, 128), serde_json::json!(["word", "word", "…"]));
    }
}
