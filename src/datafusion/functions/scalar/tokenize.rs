//! The function `tokenize(text [, profile])`: the words of a text, as an ingest cuts it.
//!
//! It shows the words that a corpus of the text would have, before there is one. Separators are left
//! out. O(bytes of the text).

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, ListArray, StringViewArray, StringViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{exec_datafusion_err, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use super::text::{ListedFunction, ListedParameter};
use crate::errors::shown;
use crate::functions::strings::list_array;
use crate::planning::signature::ColumnKind;
use tadoc::text::{TokenizerProfile, for_each_token};

const NAME: &str = "tokenize";
const SUMMARY: &str = "The words of a text, as an ingest cuts it.";
const USAGE: &str = "tokenize(text, profile => 'auto')";
/// Names of the arguments.
const ARGUMENTS: [&str; 2] = ["text", "profile"];

static DOCUMENTATION: LazyLock<Documentation> = LazyLock::new(|| {
    let section = DocSection { include: true, label: "Corpora", description: None };
    Documentation::builder(section, SUMMARY, USAGE)
        .with_argument(ARGUMENTS[0], "the text")
        .with_argument(ARGUMENTS[1], "rule for words: 'auto', 'word', 'uax29' or 'whitespace'; a constant")
        .build()
});

/// Returns the function as `information_schema` lists it.
pub(super) fn listed() -> ListedFunction {
    let parameter = |name, default| ListedParameter { name, data_type: "String", default };
    ListedFunction {
        name: NAME,
        summary: SUMMARY,
        usage: USAGE.to_owned(),
        answer: "List(String)",
        parameters: vec![parameter(ARGUMENTS[0], None), parameter(ARGUMENTS[1], Some("'auto'"))],
    }
}

/// Returns the documentation of the function.
pub(super) fn documentation() -> &'static Documentation {
    &DOCUMENTATION
}

/// The function `tokenize` in SQL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct Tokenize {
    signature: Signature,
}

impl Default for Tokenize {
    fn default() -> Self {
        let signature = Signature::user_defined(Volatility::Immutable);
        // Names are refused only if two are equal. A test calls the function by name.
        let named = signature.clone().with_parameter_names(ARGUMENTS.to_vec());
        Self { signature: named.unwrap_or(signature) }
    }
}

impl ScalarUDFImpl for Tokenize {
    fn name(&self) -> &str {
        NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(ColumnKind::TextList.data_type())
    }

    fn documentation(&self) -> Option<&Documentation> {
        Some(documentation())
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        if given.is_empty() || given.len() > ARGUMENTS.len() {
            let got = given.len();
            return plan_err!("{NAME}: got {got} arguments, expected 1 to 2; usage: {USAGE}");
        }
        let is_text = |given: &DataType| match given {
            DataType::Dictionary(_, values) => values.is_string(),
            other => other.is_string() || other.is_null(),
        };
        match given.iter().zip(ARGUMENTS).find(|(given, _)| !is_text(given)) {
            Some((given, name)) => {
                plan_err!("{NAME}: {name}: got {given}, expected text; usage: {USAGE}")
            }
            None => Ok(vec![DataType::Utf8View; given.len()]),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(text) = args.args.first() else {
            return exec_err!("{NAME}: text is missing; usage: {USAGE}");
        };
        let profile = match args.args.get(1) {
            None => TokenizerProfile::default(),
            Some(ColumnarValue::Scalar(name)) => profile(name)?,
            Some(ColumnarValue::Array(_)) => {
                return exec_err!(
                    "{NAME}: profile: got a column, expected text in single quotes, the same for \
                     all rows; usage: {USAGE}"
                );
            }
        };
        let is_one = matches!(text, ColumnarValue::Scalar(_));
        let texts = text.to_array(if is_one { 1 } else { args.number_rows })?;
        let lists = words_of(cast(&texts, &DataType::Utf8View)?.as_string_view(), profile)?;
        if is_one {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&lists, 0)?))
        } else {
            Ok(ColumnarValue::Array(Arc::new(lists) as ArrayRef))
        }
    }
}

/// Returns the profile with this name. NULL means the default.
fn profile(name: &ScalarValue) -> Result<TokenizerProfile> {
    match name.try_as_str().flatten() {
        None => Ok(TokenizerProfile::default()),
        Some(name) => name.parse().map_err(|_| {
            exec_datafusion_err!(
                "{NAME}: profile: got '{}', expected 'auto', 'word', 'uax29' or 'whitespace'; usage: \
                 {USAGE}",
                shown(name)
            )
        }),
    }
}

/// Returns the words of each text. A text that is NULL gives NULL.
fn words_of(texts: &StringViewArray, profile: TokenizerProfile) -> Result<ListArray> {
    let mut words = StringViewBuilder::new();
    let mut ends = Vec::with_capacity(texts.len());
    let mut num_words = 0;
    for text in texts.iter() {
        let mut outcome = Ok(());
        for_each_token(profile, text.unwrap_or_default().as_bytes(), |token| {
            if token.is_word && outcome.is_ok() {
                num_words += 1;
                outcome = words.try_append_value(String::from_utf8_lossy(token.bytes));
            }
        });
        outcome?;
        ends.push(num_words);
    }
    list_array(Arc::new(words.finish()), ends.into_iter(), texts.nulls().cloned())
}
