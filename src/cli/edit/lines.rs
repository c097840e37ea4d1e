//! Reads edits from JSON lines: one object per line, with `op` and only the fields of that
//! operation.

use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::{Map, Value};
use tadoc::edits::Edit;
use tadoc_session::{Failure, Outcome};

use super::{Asked, read};

/// Names of the operations and their fields. `file` may stand instead of `text`.
const OPERATIONS: [(&str, &[&str]); 6] = [
    ("append", &["doc_id", "text"]),
    ("insert", &["doc_id", "pos", "text"]),
    ("delete", &["doc_id", "pos", "len"]),
    ("add", &["path", "text"]),
    ("replace", &["doc_id", "text"]),
    ("drop", &["doc_id"]),
];

/// Reads the edits of a file; `-` is standard input.
///
/// # Errors
/// The file cannot be read, or a line is not a valid edit. The text names the line and the field.
pub fn read_edits(path: &Path) -> Outcome<Vec<Asked>> {
    let is_stdin = path.as_os_str() == "-";
    let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
    let failed = |error: std::io::Error| Failure::with_cause(&name, &error);
    let reader: Box<dyn BufRead> = if is_stdin {
        Box::new(std::io::stdin().lock())
    } else {
        Box::new(BufReader::new(std::fs::File::open(path).map_err(failed)?))
    };
    let mut edits = Vec::new();
    for (line_idx, line) in reader.split(b'\n').enumerate() {
        let line = line.map_err(failed)?;
        let line = match line_idx {
            0 => line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&line),
            _ => &line,
        };
        if line.trim_ascii().is_empty() {
            continue;
        }
        let place = format!("{name}: line {}", line_idx + 1);
        let edit = edit_of(line).map_err(|failure| failure.within(&place))?;
        edits.push(Asked { edit, place });
    }
    Ok(edits)
}

fn edit_of(line: &[u8]) -> Outcome<Edit> {
    let value: Value = serde_json::from_slice(line).map_err(|error| {
        // The parser's line number counts lines inside this line, so it is cut off.
        let text = error.to_string();
        let text = text.split(" at line").next().unwrap_or_default().to_owned();
        Failure::new(format!("column {}: no JSON: {text}", error.column()))
    })?;
    let Value::Object(members) = value else {
        return Err(Failure::new("expected a JSON object such as {\"op\":\"drop\",\"doc_id\":7}"));
    };
    let fields = Fields { members };
    let operation = fields.text("op")?;
    let Some((_, names)) = OPERATIONS.iter().find(|(name, _)| *name == operation) else {
        let names = OPERATIONS.map(|(name, _)| name).join(", ");
        return Err(Failure::new(format!("field `op`: expected {names}, got \"{operation}\"")));
    };
    fields.refuse_others(names)?;
    Ok(match operation {
        "append" => Edit::AppendText { doc_id: fields.number("doc_id")?, text: fields.content()? },
        "insert" => Edit::InsertText {
            doc_id: fields.number("doc_id")?,
            offset_bytes: fields.number("pos")?,
            text: fields.content()?,
        },
        "delete" => Edit::DeleteText {
            doc_id: fields.number("doc_id")?,
            offset_bytes: fields.number("pos")?,
            len_bytes: fields.number("len")?,
        },
        "add" => {
            Edit::AddDocument { path: fields.text("path")?.to_owned(), content: fields.content()? }
        }
        "replace" => {
            Edit::ReplaceDocument { doc_id: fields.number("doc_id")?, content: fields.content()? }
        }
        _ => Edit::DropDocument { doc_id: fields.number("doc_id")? },
    })
}

/// The members of one object.
struct Fields {
    members: Map<String, Value>,
}

impl Fields {
    fn get(&self, name: &str, expected: &str) -> Outcome<&Value> {
        let missing =
            || Failure::new(format!("field `{name}`: expected {expected}, it is missing"));
        self.members.get(name).ok_or_else(missing)
    }

    fn text(&self, name: &str) -> Outcome<&str> {
        let value = self.get(name, "a text")?;
        value.as_str().ok_or_else(|| misfit(name, "a text", value))
    }

    fn number(&self, name: &str) -> Outcome<u64> {
        let expected = "a whole number, 0 or more";
        let value = self.get(name, expected)?;
        value.as_u64().ok_or_else(|| misfit(name, expected, value))
    }

    /// Returns the bytes of `text`, or of the file that `file` names.
    fn content(&self) -> Outcome<Vec<u8>> {
        match (self.members.contains_key("file"), self.members.contains_key("text")) {
            (true, true) => Err(Failure::new("field `file`: expected it or `text`, got both")),
            (true, false) => read(Path::new(self.text("file")?)),
            (false, _) => Ok(self.text("text")?.as_bytes().to_vec()),
        }
    }

    fn refuse_others(&self, names: &[&str]) -> Outcome {
        let has_content = names.contains(&"text");
        let is_known =
            |name: &str| name == "op" || names.contains(&name) || has_content && name == "file";
        match self.members.keys().find(|name| !is_known(name)) {
            Some(other) => {
                let names = names.join(", ");
                Err(Failure::new(format!("field `{other}`: expected op, {names}")))
            }
            None => Ok(()),
        }
    }
}

fn misfit(name: &str, expected: &str, got: &Value) -> Failure {
    Failure::new(format!("field `{name}`: expected {expected}, got {got}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_is_read() {
        let lines = [
            r#"{"op":"append","doc_id":7,"text":"a\n"}"#,
            r#"{"op":"insert","doc_id":7,"pos":120,"text":"é"}"#,
            r#"{"op":"delete","doc_id":3,"pos":0,"len":5}"#,
            r#"{"op":"add","path":"p","text":""}"#,
            r#"{"op":"replace","doc_id":18446744073709551615,"text":"x"}"#,
            r#" {"doc_id":3,"op":"drop"} "#,
        ];
        let edits: Vec<Edit> = lines.iter().map(|line| edit_of(line.as_bytes()).unwrap()).collect();
        assert_eq!(edits[0], Edit::AppendText { doc_id: 7, text: b"a\n".to_vec() });
        let insert = Edit::InsertText { doc_id: 7, offset_bytes: 120, text: "é".into() };
        assert_eq!(edits[1], insert);
        assert_eq!(edits[2], Edit::DeleteText { doc_id: 3, offset_bytes: 0, len_bytes: 5 });
        assert_eq!(edits[3], Edit::AddDocument { path: "p".into(), content: Vec::new() });
        let replace = Edit::ReplaceDocument { doc_id: u64::MAX, content: b"x".to_vec() };
        assert_eq!(edits[4], replace);
        assert_eq!(edits[5], Edit::DropDocument { doc_id: 3 });
    }

    #[test]
    fn what_is_no_edit_names_the_field() {
        for (line, expected) in [
            (r#"{"op":"drop""#, "column 12: no JSON: "),
            (r#"[1]"#, "expected a JSON object such as"),
            (r#"{"doc_id":7}"#, "field `op`: expected a text, it is missing"),
            (r#"{"op":"cut","doc_id":7}"#, "field `op`: expected append, insert, "),
            (
                r#"{"op":"drop"}"#,
                "field `doc_id`: expected a whole number, 0 or more, it is missing",
            ),
            (
                r#"{"op":"drop","doc_id":-1}"#,
                "field `doc_id`: expected a whole number, 0 or more, got -1",
            ),
            (r#"{"op":"drop","doc_id":1.5}"#, "field `doc_id`: expected a whole number"),
            (r#"{"op":"drop","doc_id":1,"pos":2}"#, "field `pos`: expected op, doc_id"),
            (r#"{"op":"append","doc_id":1}"#, "field `text`: expected a text, it is missing"),
            (r#"{"op":"append","doc_id":1,"text":2}"#, "field `text`: expected a text, got 2"),
            (r#"{"op":"append","doc_id":1,"text":"","file":""}"#, "field `file`: expected it or"),
            (r#"{"op":"append","doc_id":1,"file":"no/such"}"#, "no/such: "),
        ] {
            let text = edit_of(line.as_bytes()).unwrap_err().into_text();
            assert!(text.starts_with(expected), "{line}: {text}");
        }
    }
}
