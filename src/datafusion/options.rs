//! Settings under `tadoc.`: one struct for `SET`/`SHOW`, for `COPY … OPTIONS` and for
//! `CREATE EXTERNAL TABLE … OPTIONS`.
//!
//! ```text
//! SET tadoc.max_hits = '1000'            ConfigOptions::set  hands over  "max_hits"
//! OPTIONS ('tadoc.tokenizer' 'uax29')    TableOptions::set   hands over  "tadoc.tokenizer"
//! OPTIONS (tokenizer 'uax29')            the SQL planner     hands over  "format.tokenizer"
//! ```
//!
//! All three spellings are accepted. Values are checked when they are set. Every entry is listed under its full name,
//! so that `SHOW tadoc.max_hits` works. DataFusion's `extensions_options!` supports only the first spelling, so the
//! trait is implemented by hand. Options of a table or of a `COPY` override those of the session.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use datafusion::common::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};
use datafusion::error::{DataFusionError, Result};
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use gsst::parquet::{GsstColumns, GsstParquetOptions};
use gsst::{BlockOptions, CodeWidth, Parse};
use tadoc::analytics::Traversal;
use tadoc::build::{BuilderKind, IngestOptions, MAX_BLOCKS_AT_ONCE, usual_blocks_at_once};
use tadoc::edits::EditMode;
use tadoc::format::{OpenLimits, SegmentLayout};
use tadoc::query::QueryLimits;
use tadoc::text::TokenizerProfile;
use tadoc_store::RECOMPRESS_RATIO;

/// Largest value of `tadoc.max_statement_depth`.
const MAX_STATEMENT_DEPTH: u64 = 4_000;

/// The processor that runs queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Device {
    /// Chosen for each query. GSST columns use the throughput model; tasks over corpora use the
    /// times of earlier runs.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU, if the query has work for it. Such a query fails without a device. Corpus tasks
    /// without a kernel run on the CPU, and so do corpus tasks that fail on the device. EXPLAIN
    /// gives the reason.
    Gpu,
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Cpu => "cpu",
            Self::Gpu => "gpu",
        })
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "gpu" => Ok(Self::Gpu),
            _ => Err("auto, cpu or gpu".into()),
        }
    }
}

/// The settings under `tadoc.`. `SHOW ALL` lists them.
///
/// ```
/// use datafusion::prelude::*;
/// # fn main() -> datafusion::error::Result<()> {
/// let ctx = SessionContext::new();
/// datafusion_tadoc::register_all(&ctx)?;
/// let options = datafusion_tadoc::TadocOptions::from_config(ctx.state().config_options());
/// assert_eq!(options.max_hits, 10_000_000);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct TadocOptions {
    /// Processor that runs queries.
    pub device: Device,
    /// Traversal of the grammar in corpus functions.
    pub traversal: Traversal,
    /// Maximum size, in bytes, of the text of one document or one extraction.
    pub max_output_bytes: u64,
    /// Maximum number of rows that one `search` may find.
    pub max_hits: u64,
    /// Maximum number of words and patterns in one query of `search`, `term_count` and `kwic`.
    pub max_query_terms: u64,
    /// Maximum length, in bytes, of such a query.
    pub max_query_bytes: u64,
    /// Maximum depth of a statement that `tadoc sql` plans; see
    /// [`check_statement_depth`](crate::check_statement_depth). At most 4,000.
    pub max_statement_depth: u64,
    /// Memory, in bytes, for the decoded corpora that a session keeps. Also the size of the largest
    /// corpus that it opens. The memory is reserved in the session's memory pool.
    pub max_memory_bytes: u64,
    /// Tokenizer profile of corpora written by `COPY`.
    pub tokenizer: TokenizerProfile,
    /// Grammar builder for corpora written by `COPY`.
    pub builder: BuilderKind,
    /// Layout of corpora written by `COPY` and `INSERT`.
    pub layout: SegmentLayout,
    /// Text, in bytes, of one segment written by `COPY`. Determines the peak memory of `COPY`.
    pub block_bytes: u64,
    /// Number of blocks that `COPY` and `INSERT` build in parallel; `None` derives it from the
    /// number of cores. If the session's memory is too small, fewer blocks are built in parallel.
    /// The file is the same.
    pub blocks_at_once: Option<u16>,
    /// Permission for `COPY` to replace an existing corpus.
    pub overwrite: bool,
    /// Permission for `COPY` to write a file without rows.
    pub allow_empty: bool,
    /// Permission for `CREATE EXTERNAL TABLE` to create a living corpus at a location without
    /// files.
    pub create: bool,
    /// If true, `INSERT` into a living corpus refuses documents whose path is there already.
    pub unique_paths: bool,
    /// Text that the offsets of `INSERT INTO "d$edits"` refer to.
    pub edit_mode: EditMode,
    /// Statements that workers answer.
    pub divide: Divide,
    /// If true, workers write the segments of a `COPY` to a living corpus themselves, where its query is
    /// divided between them.
    pub workers_write: bool,
    /// Share of edits in the bytes of a living corpus. A statement whose commit exceeds it
    /// compresses the edits. 0 and 1 disable this.
    pub recompress_ratio: f64,
    /// Columns that become GSST columns in files written `STORED AS GSST`, separated by commas. An
    /// empty list selects all text columns but those with few different values.
    pub gsst_columns: String,
    /// Width of GSST codes in bits, 8 or 12. `None` takes the one with which scans of the files are predicted to be
    /// faster.
    pub gsst_code_bits: Option<CodeWidth>,
    /// Method that cuts rows into symbols.
    pub gsst_parse: Parse,
    /// Number of rows in a row group of files written `STORED AS GSST`.
    pub gsst_row_group_rows: u64,
    /// Compression of the ordinary columns of such files, by Parquet's names.
    pub gsst_compression: Compression,
    /// Maximum memory, in bytes, on each device, and maximum pinned host memory kept for it (at
    /// most 1 GiB). Each session has a limit of its own.
    pub gpu_memory_bytes: u64,
}

/// Statements that the workers of a session answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Divide {
    /// The statements that they answer faster than one process, by estimated times.
    #[default]
    Auto,
    /// All that can be divided.
    Always,
}

impl Default for TadocOptions {
    fn default() -> Self {
        let ingest = IngestOptions::default();
        Self {
            device: Device::Auto,
            traversal: Traversal::Auto,
            max_output_bytes: 1 << 30,
            max_hits: 10_000_000,
            max_query_terms: QueryLimits::default().max_terms,
            max_query_bytes: QueryLimits::default().max_bytes,
            max_statement_depth: MAX_STATEMENT_DEPTH / 2,
            max_memory_bytes: OpenLimits::default().max_memory_bytes,
            tokenizer: ingest.profile,
            builder: ingest.builder,
            layout: ingest.layout,
            block_bytes: ingest.block_bytes as u64,
            blocks_at_once: None,
            overwrite: false,
            allow_empty: false,
            create: false,
            unique_paths: false,
            edit_mode: EditMode::default(),
            divide: Divide::Auto,
            workers_write: false,
            recompress_ratio: RECOMPRESS_RATIO,
            gsst_columns: String::new(),
            gsst_code_bits: Some(CodeWidth::Eight),
            gsst_parse: Parse::Greedy,
            gsst_row_group_rows: 1 << 20,
            gsst_compression: Compression::ZSTD(ZstdLevel::default()),
            gpu_memory_bytes: 4 << 30,
        }
    }
}

impl TadocOptions {
    /// Returns the session's settings, or the defaults if [`register_all`](crate::register_all) was
    /// not called on it.
    pub fn from_config(config: &ConfigOptions) -> Self {
        config.extensions.get::<Self>().cloned().unwrap_or_default()
    }

    /// Returns the `OPTIONS` of a `COPY` or of a table's format without those of DataFusion itself
    /// (`execution.`).
    pub(crate) fn for_format(options: &HashMap<String, String>) -> HashMap<String, String> {
        let ours = options.iter().filter(|(key, _)| !key.starts_with("execution."));
        ours.map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Returns these settings, overridden by the `OPTIONS` of a statement.
    ///
    /// # Errors
    /// A configuration error that names the first unknown key or refused value.
    pub fn with_overrides(&self, overrides: &HashMap<String, String>) -> Result<Self> {
        let mut options = self.clone();
        let mut keys: Vec<&String> = overrides.keys().collect();
        keys.sort_unstable();
        for key in keys {
            options.set(key, &overrides[key])?;
        }
        Ok(options)
    }

    /// Returns the limits for opening files.
    pub fn open_limits(&self) -> OpenLimits {
        OpenLimits { max_memory_bytes: self.max_memory_bytes, ..OpenLimits::default() }
    }

    /// Returns the options with which `COPY` builds a corpus.
    pub fn ingest_options(&self) -> IngestOptions {
        IngestOptions {
            profile: self.tokenizer,
            builder: self.builder,
            layout: self.layout,
            block_bytes: self.block_bytes as usize,
            ..IngestOptions::default()
        }
    }

    /// Returns the number of blocks that `COPY` builds in parallel if memory suffices.
    pub(crate) fn max_blocks_at_once(&self) -> usize {
        self.blocks_at_once.map_or_else(usual_blocks_at_once, usize::from)
    }

    /// Returns the width of GSST codes, or the default where the planner has not chosen one.
    pub(crate) fn code_width(&self) -> CodeWidth {
        self.gsst_code_bits.unwrap_or(CodeWidth::Eight)
    }

    /// Returns the options for writing files `STORED AS GSST`.
    pub fn gsst_parquet_options(&self) -> GsstParquetOptions {
        let names = self.gsst_columns.split(',').map(str::trim).filter(|name| !name.is_empty());
        let names: Vec<String> = names.map(str::to_owned).collect();
        GsstParquetOptions {
            columns: if names.is_empty() { GsstColumns::AllText } else { GsstColumns::Named(names) },
            block: BlockOptions { parse: self.gsst_parse, ..BlockOptions::new(self.code_width()) },
            properties: WriterProperties::builder()
                .set_max_row_group_row_count(usize::try_from(self.gsst_row_group_rows).ok())
                .set_compression(self.gsst_compression)
                .build(),
        }
    }
}

impl ConfigExtension for TadocOptions {
    const PREFIX: &'static str = "tadoc";
}

impl ExtensionOptions for TadocOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<()> {
        let name = ["tadoc.", "format."].iter().find_map(|p| key.strip_prefix(p)).unwrap_or(key);
        match name {
            "device" => self.device = parse(name, value)?,
            "traversal" => self.traversal = parse(name, value)?,
            "max_output_bytes" => self.max_output_bytes = parse_len(name, value, 1)?,
            "max_hits" => self.max_hits = parse_len(name, value, 0)?,
            "max_query_terms" => self.max_query_terms = parse_len(name, value, 1)?,
            "max_query_bytes" => self.max_query_bytes = parse_len(name, value, 1)?,
            "max_statement_depth" => self.max_statement_depth = parse_depth(name, value)?,
            "max_memory_bytes" => self.max_memory_bytes = parse_len(name, value, 1)?,
            "tokenizer" => self.tokenizer = parse(name, value)?,
            "builder" => self.builder = parse(name, value)?,
            "layout" => self.layout = parse(name, value)?,
            "block_bytes" => self.block_bytes = parse_len(name, value, 1024)?,
            "blocks_at_once" => self.blocks_at_once = parse_blocks(name, value)?,
            "overwrite" => self.overwrite = parse_flag(name, value)?,
            "allow_empty" => self.allow_empty = parse_flag(name, value)?,
            "create" => self.create = parse_flag(name, value)?,
            "unique_paths" => self.unique_paths = parse_flag(name, value)?,
            "edit_mode" => self.edit_mode = parse(name, value)?,
            "divide" => {
                self.divide = match value {
                    "auto" => Divide::Auto,
                    "always" => Divide::Always,
                    _ => return Err(refused(name, value, "auto or always")),
                }
            }
            "workers_write" => self.workers_write = parse_flag(name, value)?,
            "recompress_ratio" => {
                let ratio = value.parse().ok().filter(|ratio| (0.0..=1.0).contains(ratio));
                self.recompress_ratio = ratio.ok_or_else(|| refused(name, value, "a number from 0 to 1"))?;
            }
            "gsst_columns" => self.gsst_columns = value.to_owned(),
            "gsst_code_bits" => {
                self.gsst_code_bits = match value {
                    "auto" => None,
                    "8" => Some(CodeWidth::Eight),
                    "12" => Some(CodeWidth::Twelve),
                    _ => return Err(refused(name, value, "auto, 8 or 12")),
                }
            }
            "gsst_parse" => {
                self.gsst_parse = match value {
                    "greedy" => Parse::Greedy,
                    "optimal" => Parse::Optimal,
                    _ => return Err(refused(name, value, "greedy or optimal")),
                }
            }
            "gsst_row_group_rows" => self.gsst_row_group_rows = parse_len(name, value, 1)?,
            "gsst_compression" => {
                self.gsst_compression = value
                    .to_ascii_uppercase()
                    .parse()
                    .map_err(|_| refused(name, value, "uncompressed, snappy, lz4_raw, gzip(LEVEL) or zstd(LEVEL)"))?;
            }
            "gpu_memory_bytes" => self.gpu_memory_bytes = parse_len(name, value, 1)?,
            _ => return Err(unknown_key(name)),
        }
        Ok(())
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        let values = [
            self.device.to_string(),
            self.traversal.to_string(),
            self.max_output_bytes.to_string(),
            self.max_hits.to_string(),
            self.max_query_terms.to_string(),
            self.max_query_bytes.to_string(),
            self.max_statement_depth.to_string(),
            self.max_memory_bytes.to_string(),
            self.tokenizer.to_string(),
            self.builder.to_string(),
            self.layout.to_string(),
            self.block_bytes.to_string(),
            self.blocks_at_once.map_or_else(|| "auto".to_owned(), |at_once| at_once.to_string()),
            self.overwrite.to_string(),
            self.allow_empty.to_string(),
            self.create.to_string(),
            self.unique_paths.to_string(),
            self.edit_mode.to_string(),
            shown_divide(self.divide).to_owned(),
            self.workers_write.to_string(),
            self.recompress_ratio.to_string(),
            self.gsst_columns.clone(),
            shown_bits(self.gsst_code_bits),
            shown_parse(self.gsst_parse).to_owned(),
            self.gsst_row_group_rows.to_string(),
            shown_compression(self.gsst_compression),
            self.gpu_memory_bytes.to_string(),
        ];
        let entry = |(&(name, description), value): (&(&str, &'static str), String)| ConfigEntry {
            key: format!("tadoc.{name}"),
            value: Some(value),
            description,
        };
        OPTIONS.iter().zip(values).map(entry).collect()
    }
}

/// Name and description of each option, in the order of the struct's fields.
pub(crate) const OPTIONS: [(&str, &str); 27] = [
    ("device", "Where queries run: auto, cpu or gpu."),
    ("traversal", "How the grammar is walked: auto, top_down, bottom_up or token_scan."),
    ("max_output_bytes", "Largest text one document or one extraction may expand to."),
    ("max_hits", "Largest number of rows one search may find."),
    ("max_query_terms", "Most words and patterns of one query of search, term_count and kwic."),
    ("max_query_bytes", "Longest text of one query of search, term_count and kwic."),
    ("max_statement_depth", "Deepest chain of operators, UNIONs and subqueries in tadoc sql."),
    ("max_memory_bytes", "Memory for the decoded form of the corpora a session keeps open."),
    ("tokenizer", "What a word is in corpora written by COPY: auto, word, uax29 or whitespace."),
    ("builder", "Grammar builder of COPY: rounds or sequitur."),
    ("layout", "Layout of corpora written by COPY: indexed (indexed:PERCENT) or small."),
    ("block_bytes", "Text of one segment written by COPY, which sets its peak memory."),
    ("blocks_at_once", "Blocks that COPY and INSERT build side by side: auto (by cores), 1 to 64."),
    ("overwrite", "Whether COPY may replace a corpus that is there."),
    ("allow_empty", "Whether COPY writes a file without rows."),
    ("create", "Whether CREATE EXTERNAL TABLE begins a living corpus where nothing is."),
    ("unique_paths", "Whether INSERT refuses documents whose path a living corpus has already."),
    ("edit_mode", "What offsets of inserted edits refer to: in_sequence or in_batch."),
    ("divide", "Which statements workers answer: auto (where they are faster) or always."),
    ("workers_write", "Whether workers write the segments of COPY to a living corpus: true or false."),
    ("recompress_ratio", "Share of edits in a living corpus above which they are compressed."),
    ("gsst_columns", "Columns STORED AS GSST, with commas between them; empty is text that repeats little."),
    ("gsst_code_bits", "Width of GSST codes: auto (by predicted scans), 8 or 12."),
    ("gsst_parse", "How text is cut into GSST symbols: greedy or optimal."),
    ("gsst_row_group_rows", "Rows of a row group STORED AS GSST."),
    ("gsst_compression", "Compression of the ordinary columns STORED AS GSST: zstd(1), snappy, …"),
    ("gpu_memory_bytes", "Most memory of the session on each device."),
];

/// Returns the value of `tadoc.divide`.
fn shown_divide(divide: Divide) -> &'static str {
    match divide {
        Divide::Auto => "auto",
        Divide::Always => "always",
    }
}

/// Returns the value of `tadoc.gsst_code_bits`.
fn shown_bits(width: Option<CodeWidth>) -> String {
    width.map_or_else(|| "auto".to_owned(), |width| width.bits().to_string())
}

/// Returns the value of `tadoc.gsst_parse`.
pub(crate) fn shown_parse(parse: Parse) -> &'static str {
    match parse {
        Parse::Greedy => "greedy",
        Parse::Optimal => "optimal",
    }
}

/// Returns the value of `tadoc.gsst_compression`, with its level if it has one.
fn shown_compression(compression: Compression) -> String {
    match compression {
        Compression::GZIP(level) => format!("gzip({})", level.compression_level()),
        Compression::BROTLI(level) => format!("brotli({})", level.compression_level()),
        Compression::ZSTD(level) => format!("zstd({})", level.compression_level()),
        other => other.to_string().to_ascii_lowercase(),
    }
}

fn parse<T: FromStr>(name: &str, value: &str) -> Result<T>
where
    T::Err: fmt::Display,
{
    value.parse().map_err(|allowed: T::Err| {
        // A typed error of the core already contains the expected values.
        let text = allowed.to_string();
        let allowed = text.rsplit_once("expected ").map_or(text.as_str(), |(_, allowed)| allowed);
        refused(name, value, allowed)
    })
}

/// Parses a number of blocks; `auto` gives `None`.
fn parse_blocks(name: &str, value: &str) -> Result<Option<u16>> {
    if value == "auto" {
        return Ok(None);
    }
    let number = value.parse().ok().filter(|number| (1..=MAX_BLOCKS_AT_ONCE).contains(number));
    let allowed = || format!("auto, or a whole number from 1 to {MAX_BLOCKS_AT_ONCE}");
    number.map(Some).ok_or_else(|| refused(name, value, &allowed()))
}

/// Parses a maximum depth of statements, limited by the stacks of `tadoc sql`.
fn parse_depth(name: &str, value: &str) -> Result<u64> {
    let depth = value.parse().ok().filter(|depth| (1..=MAX_STATEMENT_DEPTH).contains(depth));
    let allowed = || format!("a whole number from 1 to {MAX_STATEMENT_DEPTH}");
    depth.ok_or_else(|| refused(name, value, &allowed()))
}

fn parse_flag(name: &str, value: &str) -> Result<bool> {
    value.parse().map_err(|_| refused(name, value, "true or false"))
}

/// Parses a count, or a number of bytes with an optional KiB, MiB or GiB.
fn parse_len(name: &str, value: &str, least: u64) -> Result<u64> {
    let text = value.trim();
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let (digits, shift) = units
        .iter()
        .find_map(|(unit, shift)| text.strip_suffix(unit).map(|digits| (digits.trim_end(), *shift)))
        .unwrap_or((text, 0));
    let allowed = || format!("a whole number from {least} on, with KiB, MiB or GiB if you like");
    let number: u64 = digits.parse().map_err(|_| refused(name, value, &allowed()))?;
    number
        .checked_mul(1 << shift)
        .filter(|&len| len >= least && len <= i64::MAX as u64)
        .ok_or_else(|| refused(name, value, &allowed()))
}

fn refused(name: &str, value: &str, allowed: &str) -> DataFusionError {
    DataFusionError::Configuration(format!("tadoc.{name}: got {value:?}, expected {allowed}"))
}

fn unknown_key(name: &str) -> DataFusionError {
    let names: Vec<&str> = OPTIONS.iter().map(|(name, _)| *name).collect();
    let hint = crate::errors::closest(name, names.iter().copied())
        .map(|close| format!("did you mean tadoc.{close}?"))
        .unwrap_or_else(|| format!("there are {}", names.join(", ")));
    DataFusionError::Configuration(format!("unknown option tadoc.{name}; {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_spellings_set_the_same_value() {
        for key in ["max_hits", "tadoc.max_hits", "format.max_hits"] {
            let mut options = TadocOptions::default();
            options.set(key, "7").unwrap();
            assert_eq!(options.max_hits, 7);
        }
    }

    #[test]
    fn every_entry_can_be_set_to_its_own_value() {
        let mut options = TadocOptions::default();
        let entries = options.entries();
        assert_eq!(entries.len(), OPTIONS.len());
        for entry in entries {
            options.set(&entry.key, &entry.value.unwrap()).unwrap();
        }
        assert_eq!(options, TadocOptions::default());
    }

    #[test]
    fn units_are_bytes() {
        let mut options = TadocOptions::default();
        options.set("max_memory_bytes", "64MiB").unwrap();
        assert_eq!(options.max_memory_bytes, 64 << 20);
        assert!(options.set("max_memory_bytes", "99999999999GiB").is_err());
    }

    #[test]
    fn bad_keys_and_values_name_the_way_out() {
        let mut options = TadocOptions::default();
        let text = |e: Result<()>| e.unwrap_err().to_string();
        assert!(text(options.set("max_hit", "1")).contains("did you mean tadoc.max_hits?"));
        assert!(text(options.set("device", "tpu")).contains("auto, cpu or gpu"));
        assert!(text(options.set("gsst_code_bits", "9")).contains("auto, 8 or 12"));
        assert!(text(options.set("gsst_compression", "rar")).contains("zstd(LEVEL)"));
        assert!(text(options.set("traversal", "up")).contains("bottom_up"));
        for number in ["0", "65", "all"] {
            assert!(text(options.set("blocks_at_once", number)).contains("auto, or a whole number"));
        }
        assert!(text(options.set("block_bytes", "-1")).contains("a whole number from 1024 on"));
    }
}
