//! Options of printed rows: the format, and the number of rows of a table. Their names are those of
//! datafusion-cli.

use std::str::FromStr;

use clap::ValueEnum;

/// An output format. datafusion-cli calls ndjson `nd-json` in some places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Csv,
    Tsv,
    Json,
    #[value(alias = "nd-json")]
    Ndjson,
    Automatic,
}

/// The maximum number of rows that a table shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxRows {
    Unlimited,
    Limited(usize),
}

impl FromStr for MaxRows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if ["inf", "infinite", "none"].iter().any(|name| text.eq_ignore_ascii_case(name)) {
            return Ok(Self::Unlimited);
        }
        let max_rows = text.parse().map(Self::Limited);
        max_rows.map_err(|_| format!("expected a number of rows, or inf for all; got `{text}`"))
    }
}

/// Options of printed rows.
#[derive(Debug, Clone, Copy)]
pub struct PrintOptions {
    pub format: Format,
    pub max_rows: MaxRows,
    /// Prints only rows.
    pub quiet: bool,
}

impl PrintOptions {
    /// Returns the options of tables that are shown whole.
    pub fn whole_tables() -> Self {
        Self { format: Format::Table, max_rows: MaxRows::Unlimited, quiet: true }
    }
}
