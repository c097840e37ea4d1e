//! Tables for people: cells of bounded width, on one line each.
//!
//! ```text
//! +--------+----------------------------------------+------------------------------+
//! | doc_id | content                                | text                         |
//! +--------+----------------------------------------+------------------------------+
//! | 0      | 546f206265206f72206e6f7420746f … 386 kB | To be\nor not to be … 386 kB |
//! +--------+----------------------------------------+------------------------------+
//! ```
//!
//! A cell that is too wide shows its beginning, and how much of it was cut. Of bytes, the first are shown.
//! Control characters, line ends too, are escaped: a terminal would obey them. The cells of a batch are
//! made when it arrives, so a table holds no batch. Its memory is O(rows * columns * width), and counted by
//! the pool of the session. Formats for machines write all of a value and do not come here.

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};
use tadoc_documents::display;
use unicode_width::UnicodeWidthStr;

/// Number of characters of a cell unless the user says another.
const DEFAULT_WIDTH: usize = 120;
/// Bytes that are shown of bytes that are too many for a cell.
const FIRST_BYTES: usize = 16;
/// Bytes of a nested value that are counted after its cell is full.
const MAX_COUNTED_BYTES: u64 = 1 << 20;
/// Copies of a cell while the cells of a batch are made.
const COPIES_OF_CELL: usize = 2;
/// Bytes of a cell besides its text while the cells of a batch are made.
const BESIDE_CELL_BYTES: usize = 32;

/// Maximum number of characters of a cell, without the note of what was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaxWidth {
    /// So many characters, on one line.
    Chars(usize),
    /// All characters, on one line.
    Unlimited,
    /// All characters, with the line ends of the value: plans and descriptions.
    Lines,
}

impl MaxWidth {
    fn num_chars(self) -> usize {
        match self {
            Self::Chars(num_chars) => num_chars,
            Self::Unlimited | Self::Lines => usize::MAX,
        }
    }
}

impl Default for MaxWidth {
    fn default() -> Self {
        Self::Chars(DEFAULT_WIDTH)
    }
}

impl FromStr for MaxWidth {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if ["inf", "infinite", "none"].contains(&text.to_ascii_lowercase().as_str()) {
            return Ok(Self::Unlimited);
        }
        match text.parse() {
            Ok(num_chars) if num_chars > 0 => Ok(Self::Chars(num_chars)),
            _ => Err(format!("got `{text}`, expected a number of characters above 0, or inf")),
        }
    }
}

impl fmt::Display for MaxWidth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chars(num_chars) => num_chars.fmt(f),
            Self::Unlimited | Self::Lines => f.write_str("inf"),
        }
    }
}

/// A table under construction. Its cells are bounded.
pub struct BoundedTable<'a> {
    options: FormatOptions<'a>,
    max_width: MaxWidth,
    /// Columns of texts, with the names as they are shown.
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
    memory: MemoryReservation,
}

impl<'a> BoundedTable<'a> {
    /// Creates a table of columns of `schema`, without rows. It takes its memory from `pool`.
    pub fn new(schema: &Schema, options: FormatOptions<'a>, max_width: MaxWidth, pool: &Arc<dyn MemoryPool>) -> Self {
        let shown = |field: &Arc<Field>| {
            let name = bounded_text(field.name(), max_width);
            let kind = bounded_text(&field.data_type().to_string(), max_width);
            let head = if options.types_info() { format!("{name}\n{kind}") } else { name };
            Field::new(head, DataType::Utf8, true)
        };
        let fields: Vec<Field> = schema.fields().iter().map(shown).collect();
        let schema = Arc::new(Schema::new(fields));
        let batches = vec![RecordBatch::new_empty(Arc::clone(&schema))];
        let memory = MemoryConsumer::new("a table of rows").register(pool);
        Self { options, max_width, schema, batches, memory }
    }

    /// Appends the rows of `batch`.
    ///
    /// # Errors
    /// A value cannot be shown, or the pool has no memory for more rows.
    pub fn push(&mut self, batch: &RecordBatch) -> Result<()> {
        if batch.num_rows() == 0 || batch.num_columns() == 0 {
            return Ok(());
        }
        let columns = batch.columns().iter();
        let cells = columns.map(|column| cells(column, &self.options, self.max_width));
        let cells: Vec<Vec<String>> = cells.collect::<Result<_>>()?;
        let texts_bytes: usize = cells.iter().flatten().map(String::len).sum();
        let num_cells = batch.num_rows() * batch.num_columns();
        self.memory.try_grow(texts_bytes * COPIES_OF_CELL + num_cells * BESIDE_CELL_BYTES)?;
        let columns = cells.into_iter().map(|cells| Arc::new(StringArray::from(cells)) as ArrayRef);
        self.batches.push(RecordBatch::try_new(Arc::clone(&self.schema), columns.collect())?);
        Ok(())
    }

    /// Returns the names of the columns and the cells of each row.
    pub fn rows(&self) -> (Vec<String>, Vec<Vec<String>>) {
        let names = self.schema.fields().iter().map(|field| field.name().clone()).collect();
        let rows = self.batches.iter().flat_map(|batch| {
            (0..batch.num_rows()).map(|row| {
                let columns = batch.columns().iter();
                columns.map(|column| column.as_string::<i32>().value(row).to_owned()).collect()
            })
        });
        (names, rows.collect())
    }
}

/// Writes the table as Arrow's `pretty_format_batches` does, which breaks cells of more than 65,535 columns of a
/// terminal into lines.
impl fmt::Display for BoundedTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.schema.fields();
        let heads: Vec<&str> = fields.iter().map(|field| field.name().as_str()).collect();
        let mut widths: Vec<usize> = heads.iter().map(|head| width_of_lines(head)).collect();
        for batch in &self.batches {
            for (width, column) in widths.iter_mut().zip(batch.columns()) {
                let cells = column.as_string::<i32>();
                let widest = cells.iter().flatten().map(width_of_lines).max();
                *width = widest.unwrap_or(0).max(*width);
            }
        }
        let border = border_for(&widths);
        writeln!(f, "{border}")?;
        write_row(f, &heads, &widths)?;
        writeln!(f, "{border}")?;
        for batch in &self.batches {
            let columns = batch.columns().iter();
            let columns: Vec<&StringArray> = columns.map(|column| column.as_string()).collect();
            for row in 0..batch.num_rows() {
                let cells: Vec<&str> = columns.iter().map(|cells| cells.value(row)).collect();
                write_row(f, &cells, &widths)?;
            }
        }
        f.write_str(&border)
    }
}

fn border_for(widths: &[usize]) -> String {
    let mut border = String::from("+");
    for width in widths {
        border.push_str(&"-".repeat(width + 2));
        border.push('+');
    }
    if widths.is_empty() {
        border.push('+');
    }
    border
}

/// Writes a row, which has as many lines as its cell with most lines.
fn write_row(f: &mut fmt::Formatter<'_>, cells: &[&str], widths: &[usize]) -> fmt::Result {
    let mut lines: Vec<_> = cells.iter().map(|cell| cell.split('\n')).collect();
    let num_lines = cells.iter().map(|cell| cell.split('\n').count()).max();
    for _ in 0..num_lines.unwrap_or(0) {
        f.write_str("|")?;
        for (lines, width) in lines.iter_mut().zip(widths) {
            let line = lines.next().unwrap_or("");
            let padding = " ".repeat(width - line.width());
            write!(f, " {line}{padding} |")?;
        }
        f.write_str("\n")?;
    }
    Ok(())
}

fn width_of_lines(cell: &str) -> usize {
    cell.split('\n').map(UnicodeWidthStr::width).max().map_or(1, |width| width.max(1))
}

/// Returns the cells of a column.
fn cells(column: &ArrayRef, options: &FormatOptions<'_>, max_width: MaxWidth) -> Result<Vec<String>> {
    if let Some(bytes_at) = bytes_of(column) {
        let cell = |row: usize| {
            if column.is_null(row) { options.null().to_owned() } else { bounded_bytes(bytes_at(row), max_width) }
        };
        return Ok((0..column.len()).map(cell).collect());
    }
    let formatter = ArrayFormatter::try_new(column.as_ref(), options)?;
    let cell = |row: usize| {
        let mut cell = Cell::new(max_width);
        // A full cell ends the formatting of a long value with an error.
        match formatter.value(row).write(&mut cell) {
            Err(error) if !cell.is_given_up && options.safe() => Ok(format!("ERROR: {error}")),
            Err(error) if !cell.is_given_up => Err(error.into()),
            _ => Ok(cell.finish()),
        }
    };
    (0..column.len()).map(cell).collect()
}

/// Returns the bytes of each row of a column of bytes; `None` for other columns.
fn bytes_of<'a>(column: &'a ArrayRef) -> Option<Box<dyn Fn(usize) -> &'a [u8] + 'a>> {
    Some(match column.data_type() {
        DataType::Binary => Box::new(|row| column.as_binary::<i32>().value(row)),
        DataType::LargeBinary => Box::new(|row| column.as_binary::<i64>().value(row)),
        DataType::BinaryView => Box::new(|row| column.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => Box::new(|row| column.as_fixed_size_binary().value(row)),
        _ => return None,
    })
}

fn bounded_bytes(bytes: &[u8], max_width: MaxWidth) -> String {
    let room = max_width.num_chars() / 2;
    let shown = if bytes.len() > room { &bytes[..room.clamp(1, FIRST_BYTES)] } else { bytes };
    let mut text = String::with_capacity(2 * shown.len() + 16);
    for byte in shown {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    append_cut(&mut text, (bytes.len() - shown.len()) as u64, false);
    text
}

fn bounded_text(text: &str, max_width: MaxWidth) -> String {
    let mut cell = Cell::new(max_width);
    // Only a second text after a long one is refused.
    let _ = cell.write_str(text);
    cell.finish()
}

/// Appends a note of how much was cut.
fn append_cut(text: &mut String, cut_bytes: u64, is_more: bool) {
    if cut_bytes > 0 {
        let more = if is_more { "over " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, " … {more}{}", display::bytes(cut_bytes));
    }
}

/// The cell of a value that is being formatted. It keeps the beginning, and counts the rest.
struct Cell {
    text: String,
    /// Number of characters that still fit.
    room: usize,
    keeps_lines: bool,
    cut_bytes: u64,
    /// True if so much was cut that the rest is not counted.
    is_given_up: bool,
}

impl Cell {
    fn new(max_width: MaxWidth) -> Self {
        let room = max_width.num_chars();
        let keeps_lines = max_width == MaxWidth::Lines;
        Self { text: String::new(), room, keeps_lines, cut_bytes: 0, is_given_up: false }
    }

    fn finish(mut self) -> String {
        append_cut(&mut self.text, self.cut_bytes, self.is_given_up);
        self.text
    }
}

impl fmt::Write for Cell {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.cut_bytes > MAX_COUNTED_BYTES {
            self.is_given_up = true;
            return Err(fmt::Error);
        }
        if self.keeps_lines {
            self.text.push_str(text);
            return Ok(());
        }
        for (at, c) in text.char_indices() {
            let is_escaped = is_obeyed(c);
            let num_chars = if is_escaped { c.escape_default().len() } else { 1 };
            if num_chars > self.room {
                self.room = 0;
                self.cut_bytes = self.cut_bytes.saturating_add((text.len() - at) as u64);
                return Ok(());
            }
            self.room -= num_chars;
            if is_escaped {
                self.text.extend(c.escape_default());
            } else {
                self.text.push(c);
            }
        }
        Ok(())
    }
}

/// Returns true for characters that a terminal obeys: controls, line ends, and directions of writing.
fn is_obeyed(c: char) -> bool {
    let is_direction = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}') || is_direction
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{
        BinaryArray, FixedSizeBinaryArray, Int64Array, Int64Builder, ListBuilder, RecordBatchOptions,
    };
    use datafusion::arrow::util::pretty::pretty_format_batches;
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};

    use super::*;

    fn shown(column: impl Array + 'static, max_width: MaxWidth) -> Vec<String> {
        cells(&(Arc::new(column) as ArrayRef), &FormatOptions::default(), max_width).unwrap()
    }

    #[test]
    fn short_cells_are_as_they_were() {
        let width = MaxWidth::default();
        assert_eq!(shown(Int64Array::from(vec![Some(1), None]), width), ["1", ""]);
        assert_eq!(shown(StringArray::from(vec!["grüße", ""]), width), ["grüße", ""]);
        assert_eq!(shown(BinaryArray::from_vec(vec![b"PK\x03"]), width), ["504b03"]);
        let sum = FixedSizeBinaryArray::try_from_iter([[7u8; 32]].into_iter()).unwrap();
        assert_eq!(shown(sum, width), ["07".repeat(32)]);
    }

    #[test]
    fn long_cells_are_cut_and_say_so() {
        let width = MaxWidth::Chars(4);
        let texts = StringArray::from(vec!["abcd", "abcde", "a\nbcd", "日本語の字", "\u{1b}[31m"]);
        assert_eq!(
            shown(texts, width),
            ["abcd", "abcd … 1 byte", "a\\nb … 2 bytes", "日本語の … 3 bytes", " … 5 bytes"]
        );
        let long = "x".repeat(386_004);
        assert_eq!(shown(StringArray::from(vec![long.as_str()]), width), ["xxxx … 386.0 kB"]);
        let bytes = BinaryArray::from_vec(vec![long.as_bytes()]);
        assert_eq!(shown(bytes.clone(), width), ["7878 … 386.0 kB"]);
        let first = shown(bytes, MaxWidth::default());
        assert_eq!(first, [format!("{} … 386.0 kB", "78".repeat(16))]);
    }

    #[test]
    fn long_lists_are_not_formatted_to_their_end() {
        let mut lists = ListBuilder::new(Int64Builder::new());
        lists.append_value((0..3).map(Some));
        lists.append_value((0..3_000_000).map(Some));
        let cells = shown(lists.finish(), MaxWidth::Chars(12));
        assert_eq!(cells[0], "[0, 1, 2]");
        assert_eq!(cells[1], "[0, 1, 2, 3, … over 1.0 MB");
    }

    #[test]
    fn a_table_without_limit_has_all() {
        let text = "line\n".repeat(100_000);
        let cells = shown(StringArray::from(vec![text.as_str()]), MaxWidth::Unlimited);
        assert_eq!(cells, [text.replace('\n', "\\n")]);
        let lines = shown(StringArray::from(vec![text.as_str()]), MaxWidth::Lines);
        assert_eq!(lines, [text]);
        for (text, width) in [("inf", MaxWidth::Unlimited), ("7", MaxWidth::Chars(7))] {
            assert_eq!(text.parse(), Ok(width));
            assert_eq!(width.to_string(), text);
        }
        for text in ["0", "-1", "all", ""] {
            assert!(text.parse::<MaxWidth>().is_err(), "{text}");
        }
    }

    #[test]
    fn characters_that_a_terminal_obeys_are_escaped() {
        let text = "a\u{202e}b\u{2028}c\u{1b}[1m\u{2066}\u{feff}👩‍👧 é";
        let cells = shown(StringArray::from(vec![text]), MaxWidth::default());
        assert_eq!(cells, [r"a\u{202e}b\u{2028}c\u{1b}[1m\u{2066}\u{feff}👩‍👧 é"]);
    }

    #[test]
    fn tables_are_laid_out_as_those_of_arrow() {
        let texts = ["", "a", "日本語", "e\u{301}", "👩‍👩‍👧", "Scan\n  Filter\n", "two\nlines"];
        for names in [vec![], vec!["n"], vec!["n", "名前"], vec!["a\nb", "", "c"]] {
            for num_rows in [0, 1, texts.len()] {
                let fields = names.iter().map(|name| Field::new(*name, DataType::Utf8, true));
                let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
                let column = |at: usize| {
                    let cells = (0..num_rows).map(|row| texts[(row * (at + 1)) % texts.len()]);
                    Arc::new(StringArray::from_iter_values(cells)) as ArrayRef
                };
                let columns = (0..names.len()).map(column).collect();
                let options = RecordBatchOptions::new().with_row_count(Some(num_rows));
                let batch = RecordBatch::try_new_with_options(Arc::clone(&schema), columns, &options);
                let batch = batch.unwrap();
                let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
                let options = FormatOptions::default();
                let mut table = BoundedTable::new(&schema, options, MaxWidth::Lines, &pool);
                table.push(&batch).unwrap();
                let expected = pretty_format_batches(&[batch]).unwrap().to_string();
                assert_eq!(table.to_string(), expected, "{names:?}, {num_rows} rows");
            }
        }
    }

    #[test]
    fn tables_take_their_memory_from_the_pool() {
        let schema = Schema::new(vec![Field::new("n".repeat(200), DataType::Int64, true)]);
        let rows = Int64Array::from_iter_values(0..8192);
        let batch = RecordBatch::try_new(Arc::new(schema.clone()), vec![Arc::new(rows)]).unwrap();
        let width = MaxWidth::default();
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(4 << 20));
        let mut table = BoundedTable::new(&schema, FormatOptions::default(), width, &pool);
        table.push(&batch).unwrap();
        assert!((0..64).any(|_| table.push(&batch).is_err()));
        drop(table);
        assert_eq!(pool.reserved(), 0);
        let pool: Arc<dyn MemoryPool> = Arc::new(UnboundedMemoryPool::default());
        let mut table = BoundedTable::new(&schema, FormatOptions::default(), width, &pool);
        table.push(&batch.slice(0, 2)).unwrap();
        let text = table.to_string();
        assert_eq!(text.lines().count(), 6);
        assert!(text.contains(&format!("| {} … 80 bytes |", "n".repeat(120))), "{text}");
        let (names, rows) = table.rows();
        assert_eq!((names.len(), rows), (1, vec![vec!["0".to_owned()], vec!["1".to_owned()]]));
    }
}
