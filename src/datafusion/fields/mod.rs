//! Fields of texts: patterns, pairs and paths that say where they are, and here their values, and columns of them.
//!
//! | file | what it reads |
//! | --- | --- |
//! | `patterns` | literals with fields between them, and expressions with named patterns, in the way of Logstash |
//! | `keyed` | pairs of keys and values of logfmt, and the value at a path of JSON |
//!
//! Patterns are constants. They are compiled once for a statement: the compiled ones are kept, the last used one first.

mod keyed;
mod patterns;

pub(crate) use keyed::{JsonPath, Pairs, without_blanks};
pub(crate) use patterns::{FieldSpec, GrokPattern, ParsePattern, PatternFault};

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use datafusion::arrow::array::{
    ArrayRef, Float64Builder, Int64Builder, StringViewBuilder, TimestampMicrosecondBuilder,
};
use datafusion::arrow::compute::kernels::cast_utils::string_to_timestamp_nanos;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::error::Result;

/// Most compiled patterns that are kept.
const MAX_KEPT: usize = 32;

/// Way to read fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reader {
    Parse,
    Grok,
    Logfmt,
    Json,
}

/// A compiled pattern, key or path.
#[derive(Debug)]
pub(crate) enum Compiled {
    Parse(Box<ParsePattern>),
    Grok(GrokPattern),
    Path(JsonPath),
    Key(String),
}

impl Compiled {
    /// Returns the fields that a pattern names.
    pub(crate) fn specs(&self) -> &[FieldSpec] {
        match self {
            Self::Parse(pattern) => pattern.specs(),
            Self::Grok(pattern) => pattern.specs(),
            Self::Path(_) | Self::Key(_) => &[],
        }
    }
}

/// Compiled patterns with their sources, the last used one first.
type Kept = Vec<(Reader, String, Arc<Compiled>)>;

static KEPT: Mutex<Kept> = Mutex::new(Vec::new());

/// Returns the compiled form of `source`.
///
/// # Errors
/// It cannot be read, with the character at fault.
pub(crate) fn compiled(reader: Reader, source: &str) -> Result<Arc<Compiled>, PatternFault> {
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(at) = kept.iter().position(|(of, text, _)| *of == reader && text == source) {
        kept[..=at].rotate_right(1);
        return Ok(Arc::clone(&kept[0].2));
    }
    drop(kept);
    let compiled = Arc::new(match reader {
        Reader::Parse => Compiled::Parse(Box::new(ParsePattern::new(source)?)),
        Reader::Grok => Compiled::Grok(GrokPattern::new(source)?),
        Reader::Logfmt => Compiled::Key(source.to_owned()),
        Reader::Json => Compiled::Path(JsonPath::new(source)?),
    });
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    kept.insert(0, (reader, source.to_owned(), Arc::clone(&compiled)));
    kept.truncate(MAX_KEPT);
    Ok(compiled)
}

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    Text,
    Int,
    Float,
    /// Microseconds since 1970 in UTC.
    Timestamp,
}

impl Kind {
    /// Returns the type in Arrow.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Text => DataType::Utf8View,
            Self::Int => DataType::Int64,
            Self::Float => DataType::Float64,
            Self::Timestamp => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        }
    }
}

/// Value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'t> {
    Null,
    Text(Cow<'t, str>),
    Int(i64),
    Float(f64),
    Timestamp(i64),
}

impl<'t> Value<'t> {
    /// Reads the number at the start of `text`, and returns it with its length.
    pub fn number(text: &'t str, is_float: bool) -> Option<(usize, Self)> {
        let bytes = text.as_bytes();
        let digits = |from: usize| bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let start = usize::from(matches!(bytes.first(), Some(b'-' | b'+')));
        let whole = digits(start);
        let mut end = start + whole;
        if !is_float {
            return text[..end].parse().ok().map(|value| (end, Self::Int(value)));
        }
        if bytes.get(end) == Some(&b'.') {
            let fraction = digits(end + 1);
            end += if whole + fraction > 0 { 1 + fraction } else { 0 };
        }
        if matches!(bytes.get(end), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(end + 1), Some(b'-' | b'+')));
            let exponent = digits((end + 1 + sign).min(bytes.len()));
            end += if exponent > 0 { 1 + sign + exponent } else { 0 };
        }
        text[..end].parse().ok().map(|value| (end, Self::Float(value)))
    }

    /// Reads the text in quotation marks at the start of `text`, and returns it with its length. A backslash
    /// stands for itself, unless a quotation mark or another one is behind it.
    pub fn quoted(text: &'t str) -> Option<(usize, Self)> {
        let inner = text.strip_prefix('"')?;
        let mut is_escaped = false;
        let mut has_escapes = false;
        for (at, byte) in inner.bytes().enumerate() {
            if is_escaped {
                is_escaped = false;
            } else if byte == b'\\' {
                (is_escaped, has_escapes) = (true, true);
            } else if byte == b'"' {
                let inner = &inner[..at];
                let value = if has_escapes { Cow::Owned(unescaped(inner)) } else { Cow::Borrowed(inner) };
                return Some((at + 2, Self::Text(value)));
            }
        }
        None
    }

    /// Reads a time between the years 1678 and 2261 as SQL does. One without a zone is in UTC.
    pub fn timestamp(text: &str) -> Option<Self> {
        let nanos = string_to_timestamp_nanos(text.trim()).ok()?;
        Some(Self::Timestamp(nanos.div_euclid(1000)))
    }
}

/// Returns `text` without the backslashes in front of quotation marks and backslashes.
fn unescaped(text: &str) -> String {
    let mut output = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let next = chars.as_str().chars().next();
        if c == '\\' && matches!(next, Some('"' | '\\')) {
            output.extend(chars.next());
        } else {
            output.push(c);
        }
    }
    output
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Text(text) => f.write_str(text),
            Self::Int(number) | Self::Timestamp(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number}"),
        }
    }
}

/// A builder of a column of values of one kind.
pub enum ValuesBuilder {
    Text(StringViewBuilder),
    Int(Int64Builder),
    Float(Float64Builder),
    Timestamp(TimestampMicrosecondBuilder),
}

impl ValuesBuilder {
    /// Creates the builder of a column of `kind`.
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(StringViewBuilder::new()),
            Kind::Int => Self::Int(Int64Builder::new()),
            Kind::Float => Self::Float(Float64Builder::new()),
            Kind::Timestamp => {
                Self::Timestamp(TimestampMicrosecondBuilder::new().with_data_type(Kind::Timestamp.data_type()))
            }
        }
    }

    /// Appends a value; NULL if it is of another kind.
    ///
    /// # Errors
    /// A text is too long.
    pub fn push(&mut self, value: &Value<'_>) -> Result<()> {
        match (self, value) {
            (Self::Text(texts), Value::Text(text)) => texts.try_append_value(text)?,
            (Self::Text(texts), _) => texts.append_null(),
            (Self::Int(numbers), Value::Int(number)) => numbers.append_value(*number),
            (Self::Int(numbers), _) => numbers.append_null(),
            (Self::Float(numbers), Value::Float(number)) => numbers.append_value(*number),
            (Self::Float(numbers), _) => numbers.append_null(),
            (Self::Timestamp(times), Value::Timestamp(time)) => times.append_value(*time),
            (Self::Timestamp(times), _) => times.append_null(),
        }
        Ok(())
    }

    /// Returns the column.
    pub fn finish(self) -> ArrayRef {
        match self {
            Self::Text(mut texts) => Arc::new(texts.finish()),
            Self::Int(mut numbers) => Arc::new(numbers.finish()),
            Self::Float(mut numbers) => Arc::new(numbers.finish()),
            Self::Timestamp(mut times) => Arc::new(times.finish()),
        }
    }
}
