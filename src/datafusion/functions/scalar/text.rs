//! Scalar functions over texts that are in no corpus, or are decoded already: `matches`, `highlight`
//! and `snippet`, with the query language of `search`.
//!
//! ```text
//! SELECT path, snippet(text, 'NEAR(power loss, 5)') FROM notes WHERE matches(text, 'power OR loss')
//! ```
//!
//! Each text is cut into words and read once: O(words * patterns of the query) for each row. A query
//! that is a constant is parsed once for each batch. A row with NULL gives NULL.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanBuilder, StringViewArray, StringViewBuilder};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::errors::datafusion_error;
use crate::functions::scalar::room::{AnswerMemory, FREE_BYTES};
use crate::options::TadocOptions;
use crate::planning::signature::ColumnKind;
use tadoc::query::{Query, QueryLimits, SnippetOptions, highlight_hits, snippet, text_hits};
use tadoc::text::{Fold, TokenizerProfile, for_each_token};

/// A function over a text and a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Matches,
    Highlight,
    Snippet,
}

/// An argument: name, default as SQL text (`None` if it is required), summary.
type Argument = (&'static str, Option<&'static str>, &'static str);

const TEXT: Argument = ("text", None, "the text to read");
const QUERY: Argument = ("query", None, "a query, as search takes it");
const OPEN: Argument = ("open", Some("'<b>'"), "text before each hit");
const CLOSE: Argument = ("close", Some("'</b>'"), "text after each hit");
const ELLIPSIS: Argument = ("ellipsis", Some("'…'"), "text in place of what is left out");
const MAX_WORDS: Argument = ("max_words", Some("16"), "most words of the part, 1 to 1000");
const FOLD: Argument = ("fold", Some("false"), "match words of any case, accents or ending, as in search");
const TOKENIZER: Argument = ("tokenizer", Some("'auto'"), "profile that cuts text and query");
const EXACT: Argument = ("exact", Some("false"), "match phrases only where the text around their words is the same");

/// Bytes of a word of a text while it is read: its place, in a vector that grows.
const WORD_BYTES: u64 = 64;
/// Bytes of a hit of a part of a query: its word, its place, and its answer, in vectors that grow.
const HIT_BYTES: u64 = 112;
/// Largest number of words of a snippet.
const MAX_SNIPPET_WORDS: i64 = 1000;

impl Kind {
    const ALL: [Self; 3] = [Self::Matches, Self::Highlight, Self::Snippet];

    fn name(self) -> &'static str {
        match self {
            Self::Matches => "matches",
            Self::Highlight => "highlight",
            Self::Snippet => "snippet",
        }
    }

    fn arguments(self) -> &'static [Argument] {
        match self {
            Self::Matches => &[TEXT, QUERY, FOLD, TOKENIZER, EXACT],
            Self::Highlight => &[TEXT, QUERY, OPEN, CLOSE, FOLD, TOKENIZER, EXACT],
            Self::Snippet => &[TEXT, QUERY, OPEN, CLOSE, ELLIPSIS, MAX_WORDS, FOLD, TOKENIZER, EXACT],
        }
    }

    fn column(self) -> ColumnKind {
        match self {
            Self::Matches => ColumnKind::Boolean,
            Self::Highlight | Self::Snippet => ColumnKind::Text,
        }
    }

    fn summary(self) -> &'static str {
        match self {
            Self::Matches => "True if a text meets the condition of a query.",
            Self::Highlight => "A text with the hits of a query marked.",
            Self::Snippet => "The part of a text with the best hits of a query, marked.",
        }
    }

    /// Returns the usage, `name(required, optional => default)`.
    fn usage(self) -> String {
        let argument = |&(name, default, _): &Argument| match default {
            Some(default) => format!("{name} => {default}"),
            None => name.to_owned(),
        };
        let arguments: Vec<String> = self.arguments().iter().map(argument).collect();
        format!("{}({})", self.name(), arguments.join(", "))
    }

    fn documentation(self) -> Documentation {
        let section = DocSection { include: true, label: "Corpora", description: None };
        let builder = Documentation::builder(section, self.summary(), self.usage());
        let arguments = self.arguments().iter();
        arguments.fold(builder, |builder, &(name, _, text)| builder.with_argument(name, text)).build()
    }
}

static DOCUMENTATION: LazyLock<[Documentation; 3]> = LazyLock::new(|| Kind::ALL.map(Kind::documentation));

/// Returns true if `name` is a function whose second argument is a query.
pub(crate) fn takes_query(name: &str) -> bool {
    Kind::ALL.iter().any(|kind| kind.name() == name)
}

/// Returns the type of the answer and the documentation of each function.
pub(super) fn documented() -> impl Iterator<Item = (ColumnKind, &'static Documentation)> {
    Kind::ALL.iter().map(|kind| kind.column()).zip(DOCUMENTATION.iter())
}

/// A function as `information_schema` lists it. DataFusion knows no types of functions that coerce
/// their arguments by themselves.
#[derive(Debug)]
pub(crate) struct ListedFunction {
    pub(crate) name: &'static str,
    pub(crate) summary: &'static str,
    pub(crate) usage: String,
    /// Name of the type of the answer, in DataFusion's words.
    pub(crate) answer: &'static str,
    pub(crate) parameters: Vec<ListedParameter>,
}

/// An argument of a [`ListedFunction`], with the name of its type in DataFusion's words.
#[derive(Debug)]
pub(crate) struct ListedParameter {
    pub(crate) name: &'static str,
    pub(crate) data_type: &'static str,
    pub(crate) default: Option<&'static str>,
}

/// Returns all functions over texts, with the types of their arguments.
pub(super) fn listed() -> impl Iterator<Item = ListedFunction> {
    Kind::ALL.into_iter().map(|kind| {
        let parameter = |&argument: &Argument| ListedParameter {
            name: argument.0,
            data_type: match argument {
                MAX_WORDS => "Int64",
                EXACT => "Boolean",
                _ => "String",
            },
            default: argument.1,
        };
        ListedFunction {
            name: kind.name(),
            summary: kind.summary(),
            usage: kind.usage(),
            answer: if kind == Kind::Matches { "Boolean" } else { "String" },
            parameters: kind.arguments().iter().map(parameter).collect(),
        }
    })
}

/// A scalar function over texts.
#[derive(Debug)]
pub(super) struct TextFunction {
    kind: Kind,
    signature: Signature,
    /// Memory for the markers of answers; `None` without a limit.
    pool: Option<Arc<dyn MemoryPool>>,
}

impl PartialEq for TextFunction {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for TextFunction {}

impl Hash for TextFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl TextFunction {
    /// Returns all functions over texts, whose answers are under the limit of `pool`.
    pub(super) fn all(pool: Option<&Arc<dyn MemoryPool>>) -> impl Iterator<Item = Arc<ScalarUDF>> {
        Kind::ALL.into_iter().map(move |kind| {
            let names = kind.arguments().iter().map(|(name, ..)| *name).collect();
            let signature = Signature::user_defined(Volatility::Immutable);
            // Names are refused only if two are equal. A test calls every function by name.
            let signature = signature.clone().with_parameter_names(names).unwrap_or(signature);
            Arc::new(ScalarUDF::from(Self { kind, signature, pool: pool.cloned() }))
        })
    }
}

impl ScalarUDFImpl for TextFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.kind.column().data_type())
    }

    fn documentation(&self) -> Option<&Documentation> {
        let at = Kind::ALL.iter().position(|kind| *kind == self.kind)?;
        DOCUMENTATION.get(at)
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let arguments = self.kind.arguments();
        let num_required = arguments.iter().filter(|(_, default, _)| default.is_none()).count();
        if given.len() < num_required || given.len() > arguments.len() {
            return plan_err!(
                "{name}: got {} arguments, expected {num_required} to {}; usage: {}",
                given.len(),
                arguments.len(),
                self.kind.usage()
            );
        }
        let coerced = given.iter().zip(arguments).map(|(given, &argument)| {
            let is_null = given.is_null();
            if argument == MAX_WORDS && (given.is_integer() || is_null) {
                return Ok(DataType::Int64);
            }
            let is_flag = matches!(given, DataType::Boolean);
            if argument == EXACT && (is_flag || is_null) {
                return Ok(DataType::Boolean);
            }
            let takes_text = argument != MAX_WORDS && argument != EXACT;
            if takes_text && (given.is_string() || is_null || argument == FOLD && is_flag) {
                return Ok(DataType::Utf8View);
            }
            let expected = match argument {
                MAX_WORDS => "a whole number",
                EXACT => "true or false",
                _ => "text",
            };
            plan_err!("{name}: {}: got {given}, expected {expected}; usage: {}", argument.0, self.kind.usage())
        });
        coerced.collect()
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let num_rows = if is_one { 1 } else { args.number_rows };
        let options = args.config_options.extensions.get::<TadocOptions>();
        let limits = options.map_or_else(QueryLimits::default, |options| QueryLimits {
            max_bytes: options.max_query_bytes,
            max_terms: options.max_query_terms,
        });
        let columns = args.args.iter().map(|value| value.to_array(num_rows));
        let columns: Vec<ArrayRef> = columns.collect::<Result<_>>()?;
        let call = Call { kind: self.kind, columns: &columns, limits };
        let mut memory = AnswerMemory::new(self.name(), self.pool.as_ref());
        let answer = call.answer(num_rows, &mut memory)?;
        if is_one {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?))
        } else {
            Ok(ColumnarValue::Array(answer))
        }
    }
}

/// Returns the bytes of the words of a text, and of its hits if all words are hits. Those of a short text are
/// not counted.
fn reading_bytes(query: &Query, profile: TokenizerProfile, text: &str) -> u64 {
    if (text.len() as u64) < FREE_BYTES {
        return 0;
    }
    let mut num_words: u64 = 0;
    for_each_token(profile, text.as_bytes(), |token| num_words += u64::from(token.is_word));
    let num_items = query.items().len() as u64;
    num_words.saturating_mul(WORD_BYTES + num_items * HIT_BYTES)
}

/// One batch of rows.
struct Call<'a> {
    kind: Kind,
    columns: &'a [ArrayRef],
    limits: QueryLimits,
}

/// Query of the row before, with the arguments that it was made of.
type Parsed = ((String, Fold, TokenizerProfile, bool), Query);

impl Call<'_> {
    fn answer(&self, num_rows: usize, memory: &mut AnswerMemory<'_>) -> Result<ArrayRef> {
        let mut parsed: Option<Parsed> = None;
        let mut flags = BooleanBuilder::new();
        let mut texts = StringViewBuilder::new();
        for row in 0..num_rows {
            let answer = match (self.text(TEXT, row), self.text(QUERY, row)) {
                (Some(text), Some(query)) => {
                    let query = self.parse(&query, row, &mut parsed)?;
                    Some((query, text))
                }
                _ => None,
            };
            let Some(((query, profile), text)) = answer else {
                match self.kind {
                    Kind::Matches => flags.append_null(),
                    Kind::Highlight | Kind::Snippet => texts.append_null(),
                }
                continue;
            };
            let open = self.text(OPEN, row).unwrap_or("<b>".into());
            let close = self.text(CLOSE, row).unwrap_or("</b>".into());
            let markers_bytes = (open.len() + close.len()) as u64;
            let mut reading = memory.beside();
            reading.add(reading_bytes(query, profile, &text))?;
            match self.kind {
                Kind::Matches => {
                    flags.append_value(!text_hits(query, profile, text.as_bytes()).is_empty());
                }
                Kind::Highlight => {
                    let hits = text_hits(query, profile, text.as_bytes());
                    memory.add(markers_bytes.saturating_mul(hits.len() as u64))?;
                    texts.try_append_value(highlight_hits(&text, &hits, &open, &close))?;
                }
                Kind::Snippet => {
                    let ellipsis = self.text(ELLIPSIS, row).unwrap_or("…".into());
                    let max_words = self.max_words(row)?;
                    let hits_bytes = markers_bytes.saturating_mul(max_words as u64);
                    memory.add(hits_bytes.saturating_add(2 * ellipsis.len() as u64))?;
                    let open = &*open;
                    let close = &*close;
                    let ellipsis = &*ellipsis;
                    let options = SnippetOptions { open, close, ellipsis, max_words };
                    texts.try_append_value(snippet(query, profile, &text, &options))?;
                }
            }
        }
        Ok(match self.kind {
            Kind::Matches => Arc::new(flags.finish()),
            Kind::Highlight | Kind::Snippet => Arc::new(texts.finish()),
        })
    }

    fn column(&self, argument: Argument) -> Option<&ArrayRef> {
        let at = self.kind.arguments().iter().position(|&other| other == argument)?;
        self.columns.get(at)
    }

    /// Returns a text of a row; `None` if it is NULL or left out.
    fn text(&self, argument: Argument, row: usize) -> Option<Cow<'_, str>> {
        let texts: &StringViewArray = self.column(argument)?.as_string_view();
        texts.is_valid(row).then(|| Cow::Borrowed(texts.value(row)))
    }

    fn is_exact(&self, row: usize) -> bool {
        let flags = self.column(EXACT).map(|column| column.as_boolean());
        flags.is_some_and(|flags| flags.is_valid(row) && flags.value(row))
    }

    fn max_words(&self, row: usize) -> Result<usize> {
        let column = self.column(MAX_WORDS).map(|column| column.as_primitive::<Int64Type>());
        let Some(column) = column.filter(|column| column.is_valid(row)) else {
            return Ok(SnippetOptions::default().max_words);
        };
        match column.value(row) {
            number @ 1..=MAX_SNIPPET_WORDS => Ok(number as usize),
            other => {
                self.refuse(format!("max_words: got {other}, expected a whole number from 1 to {MAX_SNIPPET_WORDS}"))
            }
        }
    }

    /// Returns the query of a row, with the profile that cuts it.
    fn parse<'p>(
        &self,
        text: &str,
        row: usize,
        parsed: &'p mut Option<Parsed>,
    ) -> Result<(&'p Query, TokenizerProfile)> {
        let fold = match self.text(FOLD, row).as_deref() {
            None | Some("false") => Ok(Fold::NONE),
            Some("true") => Ok(Fold::CASE),
            Some(other) => other.parse(),
        };
        let fold = match fold {
            Ok(fold) => fold,
            Err(error) => return self.refuse(error.to_string()),
        };
        let profile = match self.text(TOKENIZER, row) {
            Some(name) => name.parse().map_err(datafusion_error)?,
            None => TokenizerProfile::default(),
        };
        let is_exact = self.is_exact(row);
        let is_same = parsed.as_ref().is_some_and(|((known, folded, cut, exact), _)| {
            known == text && *folded == fold && *cut == profile && *exact == is_exact
        });
        if !is_same {
            let parse = if is_exact { Query::parse_exact } else { Query::parse_within };
            let query = parse(profile, text, &self.limits).and_then(|query| query.folded(&fold));
            match query {
                Ok(query) => *parsed = Some(((text.to_owned(), fold, profile, is_exact), query)),
                Err(error) => return self.refuse(error.to_string()),
            }
        }
        match parsed {
            Some((_, query)) => Ok((query, profile)),
            None => self.refuse("no query".to_owned()),
        }
    }

    fn refuse<T>(&self, what: String) -> Result<T> {
        exec_err!("{}: {what}; usage: {}", self.kind.name(), self.kind.usage())
    }
}
