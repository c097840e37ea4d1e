//! The units that become one document, as `--documents` names them.

use std::fmt;
use std::str::FromStr;

/// The unit that becomes one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Documents {
    /// A whole file.
    Files,
    /// A line, without its line end.
    Lines,
    /// A row of JSON lines; the text is in this field.
    Jsonl(String),
    /// A row of CSV, or of a log of Zeek; the text is in this column.
    Csv(String),
    /// A row of CSV with tabs between the cells; the text is in this column.
    Tsv(String),
    /// A row of Parquet; the text is in this column.
    Parquet(String),
    /// A row of Arrow IPC, a stream or a file; the text is in this column.
    Arrow(String),
    /// A row of Avro; the text is in this field.
    Avro(String),
    /// A response, resource or conversion of WARC.
    Warc,
    /// A message of a mailbox, or a file with one message.
    Mbox,
}

impl FromStr for Documents {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, column) = match text.split_once(':') {
            Some((kind, column)) => (kind, Some(column).filter(|column| !column.is_empty())),
            None => (text, None),
        };
        match (kind, column.map(str::to_owned)) {
            ("files", None) => Ok(Self::Files),
            ("lines", None) => Ok(Self::Lines),
            ("warc", None) => Ok(Self::Warc),
            ("mbox", None) => Ok(Self::Mbox),
            ("jsonl" | "ndjson", Some(field)) => Ok(Self::Jsonl(field)),
            ("csv", Some(column)) => Ok(Self::Csv(column)),
            ("tsv", Some(column)) => Ok(Self::Tsv(column)),
            ("parquet", Some(column)) => Ok(Self::Parquet(column)),
            ("arrow" | "feather", Some(column)) => Ok(Self::Arrow(column)),
            ("avro", Some(field)) => Ok(Self::Avro(field)),
            ("jsonl" | "ndjson" | "csv" | "tsv" | "parquet" | "arrow" | "feather" | "avro", None) => {
                Err(format!("say which column holds the text, such as {kind}:text"))
            }
            _ => {
                let tables = "jsonl:FIELD, csv:COLUMN, tsv:COLUMN, parquet:COLUMN, arrow:COLUMN, \
                              avro:FIELD";
                Err(format!("expected files, lines, {tables}, warc or mbox"))
            }
        }
    }
}

impl fmt::Display for Documents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Files => write!(f, "files"),
            Self::Lines => write!(f, "lines"),
            Self::Warc => write!(f, "warc"),
            Self::Mbox => write!(f, "mbox"),
            Self::Jsonl(field) => write!(f, "jsonl:{field}"),
            Self::Csv(column) => write!(f, "csv:{column}"),
            Self::Tsv(column) => write!(f, "tsv:{column}"),
            Self::Parquet(column) => write!(f, "parquet:{column}"),
            Self::Arrow(column) => write!(f, "arrow:{column}"),
            Self::Avro(field) => write!(f, "avro:{field}"),
        }
    }
}
