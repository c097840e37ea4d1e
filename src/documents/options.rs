//! Options of readers: the division of inputs into documents, the form of the rows of CSV, limits and repairs.

use regex::bytes::Regex;

use crate::charset::Charset;
use crate::documents::Documents;
use crate::open::ExpansionLimits;
use crate::timestamps::Timestamps;

/// Default for the maximum bytes of a row. It equals the default size of a block.
const MAX_ROW_BYTES: u64 = 128 << 20;

/// Default maximum number of user columns.
pub const MAX_COLUMNS: usize = 1000;

/// The division of inputs into documents, and the place of their timestamps.
#[derive(Debug, Clone)]
pub struct Division {
    /// The unit that becomes one document.
    pub documents: Documents,
    /// Matches the first line of a record, if a document is a record of several lines.
    pub record_start: Option<Regex>,
    /// Place of the timestamps, if there is to be a column of them.
    pub timestamps: Option<Timestamps>,
    /// Form of the rows of CSV.
    pub dialect: Dialect,
}

impl From<Documents> for Division {
    fn from(documents: Documents) -> Self {
        Self { documents, record_start: None, timestamps: None, dialect: Dialect::default() }
    }
}

/// Options for reading inputs.
#[derive(Debug, Clone, Copy)]
pub struct ReadOptions {
    /// If true, compressed inputs are decompressed.
    pub decompress: bool,
    /// Limits of decompression.
    pub expansion: ExpansionLimits,
    /// Maximum bytes of a row.
    pub max_row_bytes: u64,
    /// If true, rows without a text become empty documents instead of an error.
    pub allow_missing: bool,
    /// If true, user columns of rows are kept, besides text and path.
    pub keep_columns: bool,
    /// Maximum number of user columns, with the fields of structures.
    pub max_columns: usize,
    /// If true, HTML becomes text, and so do messages.
    pub html_to_text: bool,
    /// If true, office files are one document with their text, and not their members. It is for files and lines.
    pub office_to_text: bool,
    /// Character set of the text. `None` keeps the bytes, and warns if they are UTF-16.
    pub charset: Option<Charset>,
    /// If true, damaged inputs are left out from their damage on, and rows that do not fit are left out.
    pub keep_going: bool,
    /// If true, codes of terminals are left out of files and lines. `None` means of lines.
    pub strip_ansi: Option<bool>,
    /// If true, the parts of lines that container runtimes divide are joined.
    pub join_partial: bool,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            decompress: true,
            expansion: ExpansionLimits::DEFAULT,
            max_row_bytes: MAX_ROW_BYTES,
            allow_missing: false,
            keep_columns: true,
            max_columns: MAX_COLUMNS,
            html_to_text: false,
            office_to_text: true,
            charset: None,
            keep_going: false,
            strip_ansi: None,
            join_partial: true,
        }
    }
}

/// The quotation mark around cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quote {
    /// This byte.
    Byte(u8),
    /// There is none: every byte of a cell is text.
    None,
}

/// Form of the rows of CSV.
#[derive(Debug, Clone, Copy)]
pub struct Dialect {
    /// Byte between cells. If there is none, it is a tab for names that end in `.tsv`, else a comma.
    pub delimiter: Option<u8>,
    /// True if the first row has the names of the columns.
    pub has_header: bool,
    /// First byte of lines that are left out.
    pub comment: Option<u8>,
    /// Quotation mark. If it is not given, it is none where a tab is between cells, else `"`.
    pub quote: Option<Quote>,
    /// Number of lines before the first row.
    pub skip_lines: u64,
}

impl Default for Dialect {
    fn default() -> Self {
        Self { delimiter: None, has_header: true, comment: None, quote: None, skip_lines: 0 }
    }
}
