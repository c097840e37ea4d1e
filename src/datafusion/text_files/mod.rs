//! Names of files that DataFusion can read and does not know: `.jsonl`, `.ndjson` and `.tsv`.
//!
//! DataFusion finds a format by the name of a file or by `STORED AS`. It knows `json`, by which it means a JSON
//! value in each line, and `csv`. Here these two get more names. Endings of compressed files (`.jsonl.gz`)
//! follow from them. Declared decimals in these files are read exactly ([`decimals`]), and a byte order mark before
//! JSON is skipped ([`marks`]).

use std::collections::HashMap;
use std::sync::Arc;

use datafusion::catalog::Session;
use datafusion::common::GetExt;
use datafusion::datasource::file_format::csv::{CsvFormat, CsvFormatFactory};
use datafusion::datasource::file_format::{FileFormat, FileFormatFactory};
use datafusion::error::Result;

mod decimals;
mod json;

pub(crate) use decimals::{DeclaredDecimal, DeclaredDecimals, with_exact_json};

/// A name of a format of DataFusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextFile {
    /// A JSON value in each line.
    Jsonl,
    /// The same by its other name.
    Ndjson,
    /// Values with tabs between them.
    Tsv,
}

impl TextFile {
    /// All names.
    pub(crate) const ALL: [Self; 3] = [Self::Jsonl, Self::Ndjson, Self::Tsv];
}

impl GetExt for TextFile {
    fn get_ext(&self) -> String {
        match self {
            Self::Jsonl => "jsonl".into(),
            Self::Ndjson => "ndjson".into(),
            Self::Tsv => "tsv".into(),
        }
    }
}

impl FileFormatFactory for TextFile {
    fn create(&self, session: &dyn Session, format_options: &HashMap<String, String>) -> Result<Arc<dyn FileFormat>> {
        match self {
            Self::Jsonl | Self::Ndjson => json::json_format(session, format_options),
            Self::Tsv => {
                let mut format_options = format_options.clone();
                let delimiter = format_options.entry("format.delimiter".into());
                delimiter.or_insert_with(|| "\t".into());
                CsvFormatFactory::new().create(session, &format_options)
            }
        }
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        match self {
            Self::Jsonl | Self::Ndjson => json::default_json_format(),
            Self::Tsv => Arc::new(CsvFormat::default().with_delimiter(b'\t')),
        }
    }
}
