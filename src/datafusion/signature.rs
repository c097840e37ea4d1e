//! The table of signatures: arguments and columns of every table function.
//!
//! One constant drives argument parsing, schemas, error texts and the generated reference, so
//! they cannot differ. Types are few on purpose: counts and places are `Int64`, rates `Float64`,
//! strings `Utf8View`, exact bytes `BinaryView`.

use std::fmt;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::utils::datafusion_strsim::levenshtein;
use datafusion::error::{DataFusionError, Result};

/// What an argument may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentKind {
    /// Text, not empty.
    Text,
    /// A whole number, 0 or more.
    Integer,
    /// A number above 0.
    Number,
    /// `true` or `false`.
    Boolean,
}

impl fmt::Display for ArgumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text in single quotes",
            Self::Integer => "a whole number, 0 or more",
            Self::Number => "a number above 0",
            Self::Boolean => "true or false",
        })
    }
}

/// An argument of a table function.
#[derive(Debug, Clone, Copy)]
pub struct Argument {
    /// Name, as in `name => value`.
    pub name: &'static str,
    /// What it may hold.
    pub kind: ArgumentKind,
    /// Its default as SQL text; `None` where it must be given.
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
    /// `Utf8View`.
    Text,
    /// `BinaryView`.
    Bytes,
    /// `List<Int64>`.
    IntegerList,
}

impl ColumnKind {
    /// The Arrow type.
    pub fn data_type(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Number => DataType::Float64,
            Self::Text => DataType::Utf8View,
            Self::Bytes => DataType::BinaryView,
            Self::IntegerList => {
                DataType::List(Arc::new(Field::new("item", DataType::Int64, false)))
            }
        }
    }
}

/// A column of a table function.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Name.
    pub name: &'static str,
    /// Type.
    pub kind: ColumnKind,
    /// Whether it can hold NULL.
    pub nullable: bool,
    /// One line for the reference.
    pub summary: &'static str,
}

/// Name, arguments and columns of a table function.
#[derive(Debug, Clone, Copy)]
pub struct Signature {
    /// SQL name.
    pub name: &'static str,
    /// Arguments in positional order; the first is the location, where files are read.
    pub arguments: &'static [Argument],
    /// Columns in order.
    pub columns: &'static [Column],
    /// One line for the reference.
    pub summary: &'static str,
}

impl Signature {
    /// Position of the argument `name`, in any case.
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

    /// The schema of the columns.
    pub fn schema(&self) -> SchemaRef {
        Arc::new(Schema::new(self.fields()))
    }

    /// The columns as Arrow fields.
    pub fn fields(&self) -> Vec<Field> {
        let field = |c: &Column| Field::new(c.name, c.kind.data_type(), c.nullable);
        self.columns.iter().map(field).collect()
    }

    /// A plan error that begins with the function's name and ends with its signature.
    pub(crate) fn error(&self, what: impl fmt::Display) -> DataFusionError {
        DataFusionError::Plan(format!("{}: {what}; usage: {self}", self.name))
    }
}

/// `name(required, optional => default)`.
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

/// The candidate closest to `name`, if one is near enough to be a slip of the finger.
pub(crate) fn closest<'a>(
    name: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    candidates
        .map(|c| (levenshtein(&name, c), c))
        .filter(|(distance, c)| *distance <= c.len().max(name.len()) / 3 + 1 && *distance < c.len())
        .min()
        .map(|(_, c)| c)
}

/// The entry of the table function `name`. In a constant, a name that is not there does not compile.
pub(crate) const fn entry(name: &str) -> &'static Signature {
    let mut i = 0;
    while !is_same(SIGNATURES[i].name, name) {
        i += 1;
    }
    &SIGNATURES[i]
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// The signature of the table function `name`, in any case.
pub fn find_signature(name: &str) -> Option<&'static Signature> {
    SIGNATURES.iter().find(|s| s.name.eq_ignore_ascii_case(name))
}

const fn required(name: &'static str, kind: ArgumentKind, summary: &'static str) -> Argument {
    Argument { name, kind, default: None, summary }
}

const fn optional(
    name: &'static str,
    kind: ArgumentKind,
    default: &'static str,
    summary: &'static str,
) -> Argument {
    Argument { name, kind, default: Some(default), summary }
}

const fn column(name: &'static str, kind: ColumnKind, summary: &'static str) -> Column {
    Column { name, kind, nullable: false, summary }
}

const CORPUS: Argument = required(
    "corpus",
    ArgumentKind::Text,
    "a .tadoc file, a living corpus, a folder or prefix, a glob, a URL, or the name of a table STORED AS TADOC",
);
const GLOB: Argument = required("glob", ArgumentKind::Text, "a file, a folder, a glob or a URL");

const QUERY: Argument = required(
    "query",
    ArgumentKind::Text,
    "words, prefixes (pow*), wildcards (p?wer), /regular expressions/, or phrases of them in double quotes",
);
const NUM_WORDS: Argument = optional("n", ArgumentKind::Integer, "3", "words of a sequence");

const TOP: Argument =
    optional("top", ArgumentKind::Integer, "NULL", "so many words of each document only");

const FOLD: Argument =
    optional("fold", ArgumentKind::Boolean, "false", "take words of the same lower case as one");

/// What `fold` is where there is a query.
const ANY_CASE: Argument =
    optional("fold", ArgumentKind::Boolean, "false", "match words of any case");

const VERSION: Argument = optional(
    "version",
    ArgumentKind::Integer,
    "NULL",
    "a version of a living corpus; the latest one where left out",
);

const WORD: Column = column("word", ColumnKind::Text, "the word");
const SEQUENCE: Column = column("sequence", ColumnKind::Text, "its words, joined by one blank");
const DOC_ID: Column = column("doc_id", ColumnKind::Integer, "number of the document, from 0");
const PATH: Column = column("path", ColumnKind::Text, "path given at ingest");

/// Every table function, in the order of the reference.
pub const SIGNATURES: &[Signature] = &[
    Signature {
        name: "documents",
        arguments: &[CORPUS, VERSION],
        columns: &[
            DOC_ID,
            PATH,
            column("bytes", ColumnKind::Integer, "length of the text"),
            column("words", ColumnKind::Integer, "number of words in the text"),
            column("text", ColumnKind::Text, "the text, U+FFFD for invalid bytes"),
            column("content", ColumnKind::Bytes, "the exact bytes"),
        ],
        summary: "one row per document; text is decoded only where it is asked for",
    },
    Signature {
        name: "word_count",
        arguments: &[CORPUS, FOLD, VERSION],
        columns: &[
            column("word", ColumnKind::Text, "the word, in lower case where folded"),
            column("count", ColumnKind::Integer, "how often it occurs"),
        ],
        summary: "how often each word occurs, in byte order of word",
    },
    Signature {
        name: "word_sort",
        arguments: &[CORPUS, FOLD, VERSION],
        columns: &[WORD, column("count", ColumnKind::Integer, "how often it occurs")],
        summary: "how often each word occurs, in byte order of word",
    },
    Signature {
        name: "inverted_index",
        arguments: &[CORPUS, FOLD, VERSION],
        columns: &[
            WORD,
            column("doc_count", ColumnKind::Integer, "number of documents that hold it"),
            column("doc_ids", ColumnKind::IntegerList, "those documents, ascending"),
        ],
        summary: "the documents of each word, in byte order of word",
    },
    Signature {
        name: "term_vector",
        arguments: &[CORPUS, TOP, FOLD, VERSION],
        columns: &[
            DOC_ID,
            WORD,
            column("count", ColumnKind::Integer, "how often it occurs in the document"),
        ],
        summary: "the words of each document; with top, its most frequent ones, these first",
    },
    Signature {
        name: "tfidf",
        arguments: &[CORPUS, TOP, FOLD, VERSION],
        columns: &[
            DOC_ID,
            WORD,
            column("tf", ColumnKind::Integer, "how often it occurs in the document"),
            column("df", ColumnKind::Integer, "number of documents that hold it"),
            column("score", ColumnKind::Number, "tf * ln(documents / df)"),
        ],
        summary: "how much each word tells about each document; with top, the best ones first",
    },
    Signature {
        name: "doc_term_matrix",
        arguments: &[CORPUS, FOLD, VERSION],
        columns: &[
            DOC_ID,
            column("word_ids", ColumnKind::IntegerList, "its words, ascending: rows of word_count"),
            column("counts", ColumnKind::IntegerList, "how often each occurs in the document"),
        ],
        summary: "a sparse matrix of documents and words, one row a document",
    },
    Signature {
        name: "tokens",
        arguments: &[CORPUS, FOLD, VERSION],
        columns: &[
            DOC_ID,
            column("word_index", ColumnKind::Integer, "words before it in the document"),
            column("word_id", ColumnKind::Integer, "row of word_count, from 0"),
            WORD,
        ],
        summary: "the words of each document in order",
    },
    Signature {
        name: "sequence_count",
        arguments: &[
            CORPUS,
            NUM_WORDS,
            optional("by_doc", ArgumentKind::Boolean, "false", "count in each document"),
            FOLD,
            VERSION,
        ],
        columns: &[
            column("doc_id", ColumnKind::Integer, "number of the document; with by_doc only"),
            SEQUENCE,
            column("count", ColumnKind::Integer, "how often it occurs"),
        ],
        summary: "how often each sequence of n words occurs, ascending by word",
    },
    Signature {
        name: "ranked_inverted_index",
        arguments: &[CORPUS, NUM_WORDS, FOLD, VERSION],
        columns: &[
            SEQUENCE,
            DOC_ID,
            column("count", ColumnKind::Integer, "how often it occurs in the document"),
            column("rank", ColumnKind::Integer, "from 1: the document that repeats it most"),
        ],
        summary: "the documents of each sequence of n words, those that repeat it most first",
    },
    Signature {
        name: "cooccurrence",
        arguments: &[
            CORPUS,
            optional("window", ArgumentKind::Integer, "5", "words, of which a pair is two"),
            optional("min_count", ArgumentKind::Integer, "1", "leave out rarer pairs"),
            FOLD,
            VERSION,
        ],
        columns: &[
            column("word1", ColumnKind::Text, "the word that is less in byte order"),
            column("word2", ColumnKind::Text, "the other, or the same"),
            column("count", ColumnKind::Integer, "how often both stand in one window"),
        ],
        summary: "which words stand near each other, and how often",
    },
    Signature {
        name: "repeated_phrases",
        arguments: &[
            CORPUS,
            optional("min_words", ArgumentKind::Integer, "8", "leave out shorter phrases"),
            optional("min_count", ArgumentKind::Integer, "2", "leave out rarer phrases"),
            FOLD,
            VERSION,
        ],
        columns: &[
            column(
                "phrase",
                ColumnKind::Text,
                "its words, joined by one blank; after 64 KiB an ellipsis",
            ),
            column("words", ColumnKind::Integer, "number of its words"),
            column("count", ColumnKind::Integer, "how often it occurs"),
        ],
        summary: "what the corpus repeats, as long as it can be, that which covers most words first",
    },
    Signature {
        name: "search",
        arguments: &[
            CORPUS,
            QUERY,
            optional("doc_id", ArgumentKind::Integer, "NULL", "search this document only"),
            ANY_CASE,
            VERSION,
        ],
        columns: &[
            DOC_ID,
            PATH,
            column("byte_offset", ColumnKind::Integer, "where the match begins in the document"),
            column("byte_len", ColumnKind::Integer, "length of the match"),
            column("word_index", ColumnKind::Integer, "words before the match in the document"),
        ],
        summary: "every place of a word or a phrase, in order of document and offset",
    },
    Signature {
        name: "term_count",
        arguments: &[CORPUS, QUERY, ANY_CASE, VERSION],
        columns: &[
            DOC_ID,
            PATH,
            column("count", ColumnKind::Integer, "how often it matches there"),
        ],
        summary: "how often a query matches in each document that has a match",
    },
    Signature {
        name: "kwic",
        arguments: &[
            CORPUS,
            QUERY,
            optional("width", ArgumentKind::Integer, "8", "words on each side, at most 64 KiB"),
            ANY_CASE,
            VERSION,
        ],
        columns: &[
            DOC_ID,
            PATH,
            column("left", ColumnKind::Text, "text before the match"),
            column("match", ColumnKind::Text, "text of the match"),
            column("right", ColumnKind::Text, "text behind the match"),
        ],
        summary: "every match in its context, in order of document and offset",
    },
    Signature {
        name: "extract",
        arguments: &[
            CORPUS,
            required("doc_id", ArgumentKind::Integer, "number of the document"),
            required("byte_offset", ArgumentKind::Integer, "where to begin"),
            required(
                "byte_len",
                ArgumentKind::Integer,
                "how many bytes, cut at the document's end",
            ),
            VERSION,
        ],
        columns: &[column("text", ColumnKind::Text, "the passage, U+FFFD for invalid bytes")],
        summary: "one passage of one document, without decoding the rest",
    },
    Signature {
        name: "corpus_info",
        arguments: &[CORPUS, VERSION],
        columns: &[
            column("name", ColumnKind::Text, "the fact"),
            column("value", ColumnKind::Text, "its value"),
        ],
        summary: "one row per fact; reads only footers",
    },
    Signature {
        name: "corpus_verify",
        arguments: &[CORPUS, VERSION],
        columns: &[
            column("file", ColumnKind::Text, "the file"),
            Column {
                name: "segment",
                kind: ColumnKind::Integer,
                nullable: true,
                summary: "number of the segment inside the file; NULL for parts of the file itself",
            },
            column("section", ColumnKind::Text, "the section, or decode for the whole segment"),
            Column {
                name: "offset",
                kind: ColumnKind::Integer,
                nullable: true,
                summary: "where the section begins in the file",
            },
            Column {
                name: "bytes",
                kind: ColumnKind::Integer,
                nullable: true,
                summary: "stored bytes of the section; decoded bytes for decode",
            },
            column("status", ColumnKind::Text, "ok or damaged"),
            Column {
                name: "detail",
                kind: ColumnKind::Text,
                nullable: true,
                summary: "what is wrong, NULL where nothing is",
            },
        ],
        summary: "checks every checksum and decodes every document",
    },
    Signature {
        name: "read_text",
        arguments: &[GLOB],
        columns: &[
            column("path", ColumnKind::Text, "the file"),
            column("bytes", ColumnKind::Integer, "its length"),
            column("text", ColumnKind::Text, "the text, U+FFFD for invalid bytes"),
            column("content", ColumnKind::Bytes, "the exact bytes"),
        ],
        summary: "one row per file",
    },
    Signature {
        name: "read_lines",
        arguments: &[GLOB],
        columns: &[
            column("path", ColumnKind::Text, "the file"),
            column("line_number", ColumnKind::Integer, "number of the line in its file, from 1"),
            column("text", ColumnKind::Text, "the line without its end, U+FFFD for invalid bytes"),
        ],
        summary: "one row per line",
    },
    Signature {
        name: "ingestion_model",
        arguments: &[required(
            "link_gb_per_s",
            ArgumentKind::Number,
            "speed of the link that stored bytes come over, in GB/s",
        )],
        columns: &[
            column("codec", ColumnKind::Text, "codec, with device and text of its measurement"),
            column("regime", ColumnKind::Text, "serial, overlapped, to_host, resident or cpu"),
            column("ratio", ColumnKind::Number, "text : stored bytes"),
            Column {
                name: "decode_gb_per_s",
                kind: ColumnKind::Number,
                nullable: true,
                summary: "text decoded per second; NULL where nothing is decoded",
            },
            column("predicted_gb_per_s", ColumnKind::Number, "text that arrives per second"),
            column("binding_stage", ColumnKind::Text, "the stage that works longest"),
        ],
        summary: "how fast text arrives with each codec, fastest first in each regime",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_print_as_they_are_called() {
        let signature = find_signature("SEARCH").unwrap();
        assert_eq!(
            signature.to_string(),
            "search(corpus, query, doc_id => NULL, fold => false, version => NULL)"
        );
    }

    #[test]
    fn near_names_are_suggested_and_far_ones_are_not() {
        let names = || ["corpus", "fold"].into_iter();
        assert_eq!(closest("flod", names()), Some("fold"));
        assert_eq!(closest("Corpse", names()), Some("corpus"));
        assert_eq!(closest("separator", names()), None);
    }

    #[test]
    fn required_arguments_come_first_and_names_are_unique() {
        for signature in SIGNATURES {
            let first_optional = signature.arguments.iter().position(|a| a.default.is_some());
            let rest = &signature.arguments[first_optional.unwrap_or(signature.arguments.len())..];
            assert!(rest.iter().all(|a| a.default.is_some()), "{signature}");
            for (i, column) in signature.columns.iter().enumerate() {
                assert!(signature.columns[..i].iter().all(|c| c.name != column.name));
            }
        }
    }
}
