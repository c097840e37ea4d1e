//! Signatures of table functions: arguments and columns.
//!
//! Each function declares one signature beside its code. The signature determines argument parsing, schemas, error
//! texts and the reference, so that they cannot differ. There are few types on purpose: counts and places are `Int64`,
//! rates `Float64`, strings `Utf8View` and exact bytes `BinaryView`.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef, TimeUnit};
use datafusion::error::{DataFusionError, Result};

use crate::errors::closest;

/// Kind of value that an argument accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Text, not empty.
    Text,
    /// A whole number, 0 or more.
    Integer,
    /// A number, 0 or more.
    Number,
    /// `true` or `false`.
    Boolean,
    /// A fold: `true`, `false`, or the text of one.
    Fold,
    /// A fold of case at most: `true`, `false` or `'case'`.
    CaseFold,
    /// A condition of SQL on columns of documents, as a text.
    Condition,
}

impl ArgumentKind {
    /// Returns the Arrow type of its values, by name. Folds are also `true` and `false`.
    pub(crate) fn data_type(self) -> &'static str {
        match self {
            Self::Text | Self::Fold | Self::CaseFold | Self::Condition => "String",
            Self::Integer => "Int64",
            Self::Number => "Float64",
            Self::Boolean => "Boolean",
        }
    }
}

impl fmt::Display for ArgumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text in single quotes",
            Self::Integer => "a whole number, 0 or more",
            Self::Number => "a number, 0 or more",
            Self::Boolean => "true or false",
            Self::Fold => "true, false or text such as 'case,accents' or 'stem:english'",
            Self::CaseFold => "true, false or 'case'",
            Self::Condition => "a condition in quotes, such as 'year < 1850'",
        })
    }
}

/// An argument of a table function.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Name, as in `name => value`.
    pub name: &'static str,
    /// Kind of value that the argument accepts.
    pub kind: ArgumentKind,
    /// Default as SQL text; `None` if the argument is required.
    pub default: Option<&'static str>,
    /// One line for the reference.
    pub summary: &'static str,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnKind {
    /// `Int64`.
    Integer,
    /// `Float64`.
    Number,
    /// `Boolean`.
    Boolean,
    /// `Utf8View`.
    Text,
    /// `BinaryView`.
    Bytes,
    /// `Timestamp(Microsecond, UTC)`.
    Time,
    /// `List<Int64>`.
    IntegerList,
    /// `List<Utf8View>`.
    TextList,
}

impl ColumnKind {
    /// Returns the Arrow type.
    pub fn data_type(self) -> DataType {
        let list_of = |item| DataType::List(Arc::new(Field::new("item", item, false)));
        match self {
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Boolean => DataType::Boolean,
            Self::Text => DataType::Utf8View,
            Self::Bytes => DataType::BinaryView,
            Self::Time => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            Self::IntegerList => list_of(DataType::Int64),
            Self::TextList => list_of(DataType::Utf8View),
        }
    }
}

/// A column of a table function.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name of the column.
    pub name: &'static str,
    /// Type of the column.
    pub kind: ColumnKind,
    /// True if the column can hold NULL.
    pub nullable: bool,
    /// One line for the reference.
    pub summary: &'static str,
    /// The place where filters on the column are evaluated.
    pub(crate) claim: Claim,
}

/// The place where filters on a column are evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// Above the scan, by DataFusion.
    Above,
    /// In the scan, before rows are made.
    Early,
    /// In the scan, over decoded text.
    Text,
}

impl Column {
    fn field(&self) -> Field {
        Field::new(self.name, self.kind.data_type(), self.nullable)
    }

    /// Returns the column of `kind`, which is never NULL and on which the scan evaluates no filters.
    const fn new(name: &'static str, kind: ColumnKind, summary: &'static str) -> Self {
        Self { name, kind, nullable: false, summary, claim: Claim::Above }
    }

    /// Returns the same column, which can hold NULL.
    pub(crate) const fn nullable(self) -> Self {
        Self { nullable: true, ..self }
    }

    /// Returns the same column, on which the scan evaluates filters before it makes rows.
    pub(crate) const fn claimed(self) -> Self {
        Self { claim: Claim::Early, ..self }
    }

    /// Returns the same column, on which the scan evaluates filters over decoded text.
    pub(crate) const fn claimed_as_text(self) -> Self {
        Self { claim: Claim::Text, ..self }
    }
}

/// Columns of a bound function: those of its signature, fewer, or user columns after them.
#[derive(Debug, Clone)]
pub struct Columns {
    pub schema: SchemaRef,
    /// The place where filters on each column are evaluated.
    claims: Vec<Claim>,
}

impl Columns {
    /// Returns the columns of `signature`.
    pub(crate) fn from_signature(signature: &Signature) -> Self {
        Self::from_columns(signature.columns.iter())
    }

    /// Returns `columns`.
    pub(crate) fn from_columns<'a>(columns: impl Iterator<Item = &'a Column> + Clone) -> Self {
        let fields: Vec<Field> = columns.clone().map(Column::field).collect();
        let claims = columns.map(|column| column.claim).collect();
        Self { schema: Arc::new(Schema::new(fields)), claims }
    }

    /// Returns the same columns with `fields` after them, on which the scan evaluates filters.
    pub(crate) fn followed_by(&self, fields: Vec<FieldRef>) -> Self {
        let mut claims = self.claims.clone();
        claims.resize(claims.len() + fields.len(), Claim::Early);
        let all = self.schema.fields().iter().cloned().chain(fields);
        Self { schema: Arc::new(Schema::new(all.collect::<Vec<_>>())), claims }
    }

    /// Returns the same columns, without filters in the scan.
    pub(crate) fn unclaimed(mut self) -> Self {
        self.claims.fill(Claim::Above);
        self
    }

    /// Returns the same columns, with filters in the scan only on the column `name`.
    pub(crate) fn claimed_only(mut self, name: &str) -> Self {
        for (field, claim) in self.schema.fields().iter().zip(&mut self.claims) {
            if field.name() != name {
                *claim = Claim::Above;
            }
        }
        self
    }

    /// Returns the place where filters on the column `name` are evaluated.
    pub(crate) fn claim(&self, name: &str) -> Claim {
        let position = self.schema.index_of(name).ok();
        position.and_then(|position| self.claims.get(position).copied()).unwrap_or(Claim::Above)
    }
}

/// Name, arguments and columns of a table function.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// SQL name.
    pub name: &'static str,
    /// Arguments in positional order. The first is the location if files are read.
    pub arguments: &'static [Argument],
    /// Columns in order.
    pub columns: &'static [Column],
    /// One line for the reference.
    pub summary: &'static str,
}

impl Signature {
    /// Returns the position of the argument `name`, in any case.
    ///
    /// # Errors
    /// A plan error with the closest name and the whole signature.
    pub fn position(&self, name: &str) -> Result<usize> {
        let found = self.arguments.iter().position(|a| a.name.eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names = self.arguments.iter().map(|a| a.name);
            let hint = closest(name, names).map(|close| format!("; did you mean {close}?"));
            self.error(format!("unknown argument {name}{}", hint.unwrap_or_default()))
        })
    }

    /// Returns the schema of the columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.fields()))
    }

    /// Returns the columns as Arrow fields.
    pub fn fields(&self) -> Vec<Field> {
        self.columns.iter().map(Column::field).collect()
    }

    /// Returns a plan error that begins with the function's name and ends with its signature.
    pub(crate) fn error(&self, what: impl fmt::Display) -> DataFusionError {
        DataFusionError::Plan(format!("{}: {what}; usage: {self}", self.name))
    }

    /// Returns `error` under the name of `called`, the function that the user called, if it is an
    /// [`error`](Self::error) of this function. Other errors stay as they are.
    pub(crate) fn error_of_call(&self, error: DataFusionError, called: &Self) -> DataFusionError {
        let usage = format!("; usage: {self}");
        let what = match &error {
            DataFusionError::Plan(message) => message
                .strip_prefix(self.name)
                .and_then(|message| message.strip_prefix(": ")?.strip_suffix(&usage))
                .map(str::to_owned),
            _ => None,
        };
        what.map_or(error, |what| called.error(what))
    }
}

/// Writes `name(required, optional => default)`.
impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        for (i, argument) in self.arguments.iter().enumerate() {
            f.write_str(if i == 0 { "" } else { ", " })?;
            match argument.default {
                None => f.write_str(argument.name)?,
                Some(default) => write!(f, "{} => {default}", argument.name)?,
            }
        }
        f.write_str(")")
    }
}

/// Returns a required argument.
pub(crate) const fn required(name: &'static str, kind: ArgumentKind, summary: &'static str) -> Argument {
    Argument { name, kind, default: None, summary }
}

/// Returns an argument with a default.
pub(crate) const fn optional(
    name: &'static str,
    kind: ArgumentKind,
    default: &'static str,
    summary: &'static str,
) -> Argument {
    Argument { name, kind, default: Some(default), summary }
}

/// Returns a column of `kind`.
pub(crate) const fn column(name: &'static str, kind: ColumnKind, summary: &'static str) -> Column {
    Column::new(name, kind, summary)
}

/// Returns a column of whole numbers.
pub(crate) const fn integer(name: &'static str, summary: &'static str) -> Column {
    Column::new(name, ColumnKind::Integer, summary)
}

/// Returns a column of numbers.
pub(crate) const fn number(name: &'static str, summary: &'static str) -> Column {
    Column::new(name, ColumnKind::Number, summary)
}

/// Returns a column of texts.
pub(crate) const fn text(name: &'static str, summary: &'static str) -> Column {
    Column::new(name, ColumnKind::Text, summary)
}

/// Time zone of columns with times.
pub(crate) const UTC: &str = "UTC";

/// Argument for the location of a corpus.
pub(crate) const CORPUS: Argument = required(
    "corpus",
    ArgumentKind::Text,
    "a .tadoc file, a living corpus, a folder or prefix, a glob, a URL, or the name of a table STORED AS TADOC",
);
/// Argument for the location of files.
pub(crate) const GLOB: Argument = required("glob", ArgumentKind::Text, "a file, a folder, a glob or a URL");

/// Argument for a query.
pub(crate) const QUERY: Argument = required(
    "query",
    ArgumentKind::Text,
    "words, prefixes (pow*), wildcards (p?wer), edits (word~1), /regular expressions/ and \"phrases\" of them, joined by AND, OR, NOT, NEAR(a b, 5) and parentheses; ^word is the first of a document",
);
/// Argument for the length of sequences.
pub(crate) const NUM_WORDS: Argument = optional("n", ArgumentKind::Integer, "3", "words of a sequence");

/// Argument that limits the words of each document.
pub(crate) const TOP: Argument = optional("top", ArgumentKind::Integer, "NULL", "so many words of each document only");

/// Argument for folding a vocabulary.
pub(crate) const FOLD: Argument = optional(
    "fold",
    ArgumentKind::Fold,
    "false",
    "take words of the same lower case, base letters, stem or meaning as one",
);

/// Argument `fold` of functions with a query.
pub(crate) const QUERY_FOLD: Argument =
    optional("fold", ArgumentKind::Fold, "false", "match words of any case, accents, ending or meaning");

/// Argument `exact` of functions with a query.
pub(crate) const EXACT: Argument = optional(
    "exact",
    ArgumentKind::Boolean,
    "false",
    "match phrases and parts of NEAR only with the same punctuation and blanks",
);

/// Argument for the version of a living corpus.
pub(crate) const VERSION: Argument =
    optional("version", ArgumentKind::Integer, "NULL", "a version of a living corpus; the latest one where left out");

/// Argument for a sub-corpus.
pub(crate) const WHERE: Argument = optional(
    "where",
    ArgumentKind::Condition,
    "NULL",
    "a condition on columns of documents; only those that meet it are asked about",
);

/// Column with a word.
pub(crate) const WORD: Column = text("word", "the word");
/// Column with a sequence.
pub(crate) const SEQUENCE: Column = text("sequence", "its words, joined by one blank");
/// Column with the id of a document.
pub(crate) const DOC_ID: Column = integer("doc_id", "number of the document, from 0");
/// Column with the path of a document.
pub(crate) const PATH: Column = text("path", "path given at ingest");
