//! Values of Arrow as JSON, for the page and for agents.
//!
//! Arrow writes a column as lines, each an object with one value, and this module cuts the values out. Structs are
//! objects, binary values are hexadecimal digits, and columns may have the same name.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{Field, Schema};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::json::writer::{LineDelimited, WriterBuilder};

/// Bytes before each value in a line.
const BEFORE: &[u8] = b"{\"v\":";

/// The values of a column.
pub struct Values {
    lines: Vec<u8>,
    /// Begin of each line, and the end of the last one.
    starts: Vec<usize>,
}

impl Values {
    /// Writes the values of `column`. O(bytes of the text).
    ///
    /// # Errors
    /// The type of the column has no form in JSON.
    pub fn new(column: &ArrayRef) -> Result<Self, ArrowError> {
        let field = Field::new("v", column.data_type().clone(), true);
        let schema = Arc::new(Schema::new(vec![field]));
        let builder = WriterBuilder::new().with_explicit_nulls(true);
        let mut writer = builder.build::<_, LineDelimited>(Vec::new());
        writer.write(&RecordBatch::try_new(schema, vec![Arc::clone(column)])?)?;
        writer.finish()?;
        let lines = writer.into_inner();
        let ends = lines.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Ok(Self { lines, starts })
    }

    /// Returns the value of row `row` as JSON.
    pub fn value(&self, row: usize) -> &[u8] {
        let line = match (self.starts.get(row), self.starts.get(row + 1)) {
            (Some(&start), Some(&end)) => &self.lines[start..end],
            _ => &[],
        };
        let value = line.strip_prefix(BEFORE).and_then(|line| line.strip_suffix(b"}\n"));
        value.unwrap_or(b"null")
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int64Array, StringArray};

    use super::*;

    #[test]
    fn each_row_has_a_value() {
        let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a\nb"), None, Some("\"}")]));
        let texts = Values::new(&texts).unwrap();
        assert_eq!(texts.value(0), br#""a\nb""#);
        assert_eq!((texts.value(1), texts.value(3)), (b"null".as_slice(), b"null".as_slice()));
        assert_eq!(texts.value(2), br#""\"}""#);
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![i64::MAX]));
        assert_eq!(Values::new(&numbers).unwrap().value(0), b"9223372036854775807");
    }
}
