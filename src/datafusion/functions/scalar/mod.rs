//! Scalar functions: many questions to one corpus, asked by the rows of a query.
//!
//! ```text
//! SELECT q.id, extract_text('c.tadoc', q.doc_id, q.pos, 64) FROM queries q
//!
//! rows of a batch ─▶ columns of arguments ─▶ read::extract_batch, on all cores or a device ─▶ column
//! ```
//!
//! Table functions accept only constants. Scalar functions accept columns, so that no user has to loop; joins, filters
//! and other functions around them are DataFusion's. The corpus is a constant, which the first batch of a query looks
//! up ([`answers`]). A row with NULL gives NULL. The same limits bound an answer as in table functions:
//! `tadoc.max_output_bytes` and `tadoc.max_hits`, here for one batch of rows.
//!
//! Functions over texts without a corpus are in [`text`].
//!
//! [`batches`] chooses the cores or a device for each batch of rows. With `tadoc.device = 'gpu'` a missing device is an
//! error, as for table functions.
//!
//! [`tokenize`] asks no corpus: it cuts a text as an ingest does, [`fields`] reads the fields of a text, and
//! [`quality`] measures it for training data. [`bounded`] has no function of its own: it puts DataFusion's under a
//! limit of memory.

mod answers;
mod batches;
mod bounded;
mod charged;
mod fields;
mod quality;
mod room;
mod text;
mod tokenize;

use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::datatypes::DataType;
use datafusion::common::exec_err;
use datafusion::common::types::{NativeType, logical_int64, logical_string};
use datafusion::error::Result;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    Coercion, ColumnarValue, DocSection, Documentation, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    TypeSignatureClass, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::corpora::living::Reading;
use crate::planning::signature::ColumnKind;

pub use answers::AtWorker;
use answers::BoundCorpus;
pub(crate) use answers::Home;
pub(crate) use charged::JoinedTexts;
pub use charged::{bound_functions, charge_calls};
use fields::FieldFunction;
use quality::QualityFunction;
pub(crate) use room::{AnswerMemory, Room, value_bytes};
pub use room::{fold_little, is_memory_of_calls};
pub(crate) use text::takes_query;
use text::{ListedFunction, TextFunction};
use tokenize::Tokenize;

/// Returns all scalar functions, for sessions that `home` knows.
pub(crate) fn scalar_functions(home: Home) -> Vec<Arc<ScalarUDF>> {
    let mut functions = CorpusFunction::all(home);
    functions.extend(TextFunction::all(None));
    functions.push(Arc::new(ScalarUDF::from(Tokenize::default())));
    functions.extend(FieldFunction::all());
    functions.extend(QualityFunction::all(None));
    functions
}

/// Returns the functions that coerce their arguments by themselves, as `information_schema` lists them.
pub(crate) fn listed_functions() -> impl Iterator<Item = ListedFunction> {
    text::listed().chain([tokenize::listed()]).chain(fields::listed()).chain(quality::listed())
}

/// Returns the type of the answer and the documentation of each scalar function.
pub(super) fn documented() -> impl Iterator<Item = (String, &'static Documentation)> {
    let about_corpora = Kind::ALL.iter().map(|kind| kind.column()).zip(DOCUMENTATION.iter());
    let about_texts = text::documented();
    let about_words = (ColumnKind::TextList, tokenize::documentation());
    let with_columns = about_corpora.chain(about_texts).chain([about_words]);
    let with_types = with_columns.map(|(kind, about)| (kind.data_type().to_string(), about));
    with_types.chain(fields::documented()).chain(quality::documented())
}

/// A scalar function over a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    ExtractText,
    CountWord,
    SearchWord,
}

impl Kind {
    const ALL: [Self; 3] = [Self::ExtractText, Self::CountWord, Self::SearchWord];

    fn name(self) -> &'static str {
        match self {
            Self::ExtractText => "extract_text",
            Self::CountWord => "count_word",
            Self::SearchWord => "search_word",
        }
    }

    fn arguments(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ExtractText => &[
                ("corpus", "a location, or the name of a table STORED AS TADOC; a constant"),
                ("doc_id", "number of the document"),
                ("byte_offset", "where to begin"),
                ("byte_len", "how many bytes, cut at the document's end"),
            ],
            Self::CountWord | Self::SearchWord => &[
                ("corpus", "a location, or the name of a table STORED AS TADOC; a constant"),
                ("doc_id", "number of the document"),
                ("word", "one word, as it stands in the text"),
            ],
        }
    }

    fn column(self) -> ColumnKind {
        match self {
            Self::ExtractText => ColumnKind::Text,
            Self::CountWord => ColumnKind::Integer,
            Self::SearchWord => ColumnKind::IntegerList,
        }
    }

    fn summary(self) -> &'static str {
        match self {
            Self::ExtractText => "A passage of a document, U+FFFD for invalid bytes.",
            Self::CountWord => "How often a word occurs in a document.",
            Self::SearchWord => "The byte offsets of a word in a document, ascending.",
        }
    }

    /// Returns the usage, `name(argument, …)`.
    fn usage(self) -> String {
        let names: Vec<&str> = self.arguments().iter().map(|(name, _)| *name).collect();
        format!("{}({})", self.name(), names.join(", "))
    }

    fn documentation(self) -> Documentation {
        let section = DocSection { include: true, label: "Corpora", description: None };
        let builder = Documentation::builder(section, self.summary(), self.usage());
        let add = |builder: datafusion::logical_expr::DocumentationBuilder, argument: &(&str, &str)| {
            builder.with_argument(argument.0, argument.1)
        };
        self.arguments().iter().fold(builder, add).build()
    }

    fn signature(self) -> Signature {
        let text = || Coercion::new_exact(TypeSignatureClass::Native(logical_string()));
        let number = || {
            let integers = vec![TypeSignatureClass::Integer];
            let target = TypeSignatureClass::Native(logical_int64());
            Coercion::new_implicit(target, integers, NativeType::Int64)
        };
        let types = match self {
            Self::ExtractText => vec![text(), number(), number(), number()],
            Self::CountWord | Self::SearchWord => vec![text(), number(), text()],
        };
        let names: Vec<&str> = self.arguments().iter().map(|(name, _)| *name).collect();
        // The result is stable, not immutable: files can change between two queries.
        let signature = Signature::coercible(types, Volatility::Stable);
        // Names are refused only if their number differs from the number of types. A test compares
        // both.
        signature.clone().with_parameter_names(names).unwrap_or(signature)
    }
}

static DOCUMENTATION: LazyLock<[Documentation; 3]> = LazyLock::new(|| Kind::ALL.map(Kind::documentation));

/// A scalar function. It is bound to a corpus as soon as a query names one.
#[derive(Debug)]
pub struct CorpusFunction {
    kind: Kind,
    signature: Signature,
    home: Arc<Home>,
    /// Versions that the calling statement reads.
    reading: Option<Arc<Reading>>,
    bound: Option<Arc<BoundCorpus>>,
}

impl CorpusFunction {
    /// Returns the scalar functions over corpora, for sessions that `home` knows.
    fn all(home: Home) -> Vec<Arc<ScalarUDF>> {
        let home = Arc::new(home);
        let function = |kind: Kind| {
            let signature = kind.signature();
            let home = Arc::clone(&home);
            let function = Self { kind, signature, home, reading: None, bound: None };
            Arc::new(ScalarUDF::from(function))
        };
        Kind::ALL.map(function).into()
    }

    /// Returns the same function over the versions of `reading`.
    pub(crate) fn with_reading(&self, reading: &Arc<Reading>) -> Arc<ScalarUDF> {
        let kind = self.kind;
        let signature = self.signature.clone();
        let home = Arc::clone(&self.home);
        let reading = Some(Arc::clone(reading));
        Arc::new(ScalarUDF::from(Self { kind, signature, home, reading, bound: None }))
    }

    fn bind(&self, corpus: &ScalarValue) -> Result<Arc<BoundCorpus>> {
        match corpus.try_as_str().flatten() {
            Some(location) if !location.is_empty() => {
                let home = Arc::clone(&self.home);
                let reading = self.reading.clone();
                Ok(Arc::new(BoundCorpus::new(home, reading, location)))
            }
            _ => self.refuse_corpus(&format!("'{corpus}'")),
        }
    }

    fn refuse_corpus<T>(&self, got: &str) -> Result<T> {
        let usage = self.kind.usage();
        exec_err!(
            "{}: corpus: got {got}, expected text in single quotes, the same for all rows; usage: {usage}",
            self.kind.name()
        )
    }
}

impl PartialEq for CorpusFunction {
    fn eq(&self, other: &Self) -> bool {
        let location = |function: &Self| function.bound.as_ref().map(|b| b.location().to_owned());
        self.kind == other.kind && Arc::ptr_eq(&self.home, &other.home) && location(self) == location(other)
    }
}

impl Eq for CorpusFunction {}

impl Hash for CorpusFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
        self.bound.as_ref().map(|bound| bound.location()).hash(state);
    }
}

impl ScalarUDFImpl for CorpusFunction {
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

    /// Binds the call to its corpus, so that all batches of a query see one version of it.
    fn simplify(&self, args: Vec<Expr>, _info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        let bound = match args.first() {
            Some(Expr::Literal(location, _)) if self.bound.is_none() => self.bind(location).ok(),
            _ => None,
        };
        // A call that cannot be bound returns an error when it runs.
        if bound.is_none() {
            return Ok(ExprSimplifyResult::Original(args));
        }
        let signature = self.signature.clone();
        let home = Arc::clone(&self.home);
        let kind = self.kind;
        let reading = self.reading.clone();
        let function = ScalarUDF::from(Self { kind, signature, home, reading, bound });
        Ok(ExprSimplifyResult::Simplified(function.call(args)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (Some(corpus), arguments) = (args.args.first(), args.args.get(1..).unwrap_or_default()) else {
            return self.refuse_corpus("none");
        };
        let bound = match (corpus, &self.bound) {
            (ColumnarValue::Scalar(corpus), _) if corpus.is_null() => {
                let null = ScalarValue::try_from(&self.kind.column().data_type())?;
                return Ok(ColumnarValue::Scalar(null));
            }
            (_, Some(bound)) => Arc::clone(bound),
            (ColumnarValue::Scalar(corpus), None) => self.bind(corpus)?,
            (ColumnarValue::Array(_), None) => return self.refuse_corpus("a column"),
        };
        let table = bound.loaded(&args.config_options)?;
        let is_one = arguments.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let num_rows = if is_one { 1 } else { args.number_rows };
        let columns = arguments.iter().map(|value| value.to_array(num_rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let ask = answers::Ask { kind: self.kind, table, batches: bound.batches(), columns };
        let mut memory = AnswerMemory::new(self.name(), Some(&self.home.runtime.memory_pool));
        memory.add(ask.answer_bytes(num_rows))?;
        let answer = ask.answer(num_rows)?;
        if is_one {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?))
        } else {
            Ok(ColumnarValue::Array(answer))
        }
    }
}
