//! Hints for errors that DataFusion explains only in its own terms.
//!
//! DataFusion does not know that a name is a table function of this crate, that user columns of a corpus
//! belong to a table, or which type of files a name was meant for.

use crate::errors::closest;
use crate::functions::find_signature;

/// Types of files that `STORED AS` takes.
const FILE_TYPES: [&str; 9] = ["tadoc", "gsst", "parquet", "csv", "tsv", "json", "jsonl", "ndjson", "arrow"];

/// Returns a hint for a DataFusion error with this `text`, if it is about table functions, columns of
/// corpora or types of files.
///
/// ```
/// use datafusion_tadoc::way_out;
///
/// let hint = way_out("Invalid function 'word_count'. Did you mean 'regr_count'?");
/// assert!(hint.unwrap().contains("write SELECT … FROM word_count(…)"));
/// ```
pub fn way_out(text: &str) -> Option<String> {
    if let Some((_, rest)) = text.split_once("Invalid function '") {
        let (name, _) = rest.split_once('\'')?;
        let name = find_signature(name)?.name;
        let of_rows = match name {
            "extract" => ", or extract_text(corpus, doc_id, byte_offset, byte_len) for a passage of each row",
            _ => "",
        };
        return Some(format!("{name} is a table function: write SELECT … FROM {name}(…){of_rows}"));
    }
    if let Some(name) = missing_type(text) {
        let meant = closest(name, FILE_TYPES.iter().copied()).map(str::to_uppercase);
        let meant = meant.map_or_else(String::new, |meant| format!("did you mean {meant}? "));
        let all = FILE_TYPES.map(str::to_uppercase).join(", ");
        return Some(format!("{meant}STORED AS takes {all}"));
    }
    if text.contains("Expected JSON record to be an object") {
        return Some(
            "a file of JSON has an object on each line; for an array of objects write CREATE EXTERNAL TABLE t \
             STORED AS JSON LOCATION '…' OPTIONS ('format.newline_delimited' 'false'), and for other values \
             read_lines('…'), which takes lines as text"
                .to_owned(),
        );
    }
    if text.contains("Missing required parameter '") {
        return Some(
            "a function of rows takes its arguments in order, and those in front of a named one must be given, \
             too; `SELECT * FROM tadoc_functions()` lists them"
                .to_owned(),
        );
    }
    if let Some(name) = missing_table(text).filter(|name| name.contains(['/', '*'])) {
        return Some(format!(
            "a path is no table: documents('{name}') reads corpora, read_text('{name}') plain files, such as \
             'src/**'"
        ));
    }
    // Only for a corpus without user columns in its schema, as when its path names it.
    let is_unknown_column = text.contains("No field named") && text.trim_end_matches('.').ends_with(".content");
    is_unknown_column.then(|| {
        "columns that came with the documents are those of a table: CREATE EXTERNAL TABLE d STORED AS \
         TADOC LOCATION '…'"
            .to_owned()
    })
}

/// Returns the name of the table that DataFusion did not find, without catalog and schema.
fn missing_table(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("table '")?;
    let (name, _) = rest.split_once("' not found")?;
    // A path may have dots.
    name.splitn(3, '.').last()
}

/// Returns the type of files that a session does not know.
fn missing_type(text: &str) -> Option<&str> {
    let of_tables = text.split_once("Unable to find factory for ");
    let of_copies = || text.split_once("There is no registered file format with ext ");
    let (_, rest) = of_tables.or_else(of_copies)?;
    rest.split_whitespace().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_missing_arguments_have_a_way_out() {
        let hint = way_out("Error during planning: table 'datafusion.public.src/a.b/' not found");
        assert!(hint.unwrap().contains("read_text('src/a.b/')"));
        assert_eq!(way_out("Error during planning: table 'datafusion.public.notes' not found"), None);
        let hint = way_out("Execution error: Unable to find factory for TADC");
        assert!(hint.unwrap().starts_with("did you mean TADOC? STORED AS takes TADOC, GSST,"));
        let hint = way_out("There is no registered file format with ext xyz");
        assert!(hint.unwrap().starts_with("STORED AS takes TADOC"));
        let hint = way_out("Json error: Expected JSON record to be an object, found Array [Number(1)]");
        assert!(hint.unwrap().contains("'format.newline_delimited' 'false'"));
        let hint = way_out("Error during planning: Missing required parameter 'open'");
        assert!(hint.unwrap().contains("in order"));
    }
}
