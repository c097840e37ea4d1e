//! Fields of texts: patterns, pairs and paths that say where they are, and their values.
//!
//! | file | what it reads |
//! | --- | --- |
//! | `parse_pattern` | literals with fields between them |
//! | `grok` | expressions with named patterns, in the way of Logstash |
//! | `keyed` | pairs of keys and values of logfmt, and the value at a path of JSON |
//! | `values` | values, and columns of them |
//!
//! Patterns are constants. They are compiled once for a statement: the compiled ones are kept, the last used one
//! first.

mod grok;
mod keyed;
mod parse_pattern;
mod values;

use std::sync::{Arc, Mutex, PoisonError};

pub(crate) use grok::GrokPattern;
pub(crate) use keyed::{JsonPath, Pairs};
pub(crate) use parse_pattern::{FieldSpec, ParsePattern, PatternFault};
pub(crate) use values::{Kind, Value, ValuesBuilder};

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
