//! Scalar functions that read the fields of a text: `parse`, `grok`, `logfmt` and `json_get`.
//!
//! ```text
//! SELECT f['name'], f['ms'] FROM (SELECT parse(text, 'user {name} took {ms:int} ms') AS f FROM documents('l.tadoc'))
//!
//! pattern (constant) ─▶ compiled, once ─▶ type of the answer (planning)
//!                                     └─▶ fields of each text (batches)
//! ```
//!
//! A text that a pattern does not match gives NULL, and so does NULL. Answers are no longer than the texts.
//! Patterns are limited in length and size, and the depth of JSON by its reader.
//!
//! `json_get` is that of datafusion-functions-json with a path in place of a list of keys. That crate takes
//! sub-crates of DataFusion with other features.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, MapBuilder, StringBuilder, StringViewArray, StructArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Fields};
use datafusion::common::{exec_err, plan_datafusion_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion::scalar::ScalarValue;
use serde::de::IgnoredAny;

use super::text::{ListedFunction, ListedParameter};
use crate::errors::shown;
use crate::fields::{
    Compiled, FieldSpec, JsonPath, Kind, Pairs, Reader as PatternReader, Value, ValuesBuilder, compiled, without_blanks,
};

/// A function over the fields of texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Reader {
    Parse,
    Grok,
    Logfmt,
    JsonGet,
    JsonGetInt,
    JsonGetFloat,
    JsonGetBool,
}

impl Reader {
    const ALL: [Self; 7] =
        [Self::Parse, Self::Grok, Self::Logfmt, Self::JsonGet, Self::JsonGetInt, Self::JsonGetFloat, Self::JsonGetBool];

    fn name(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Grok => "grok",
            Self::Logfmt => "logfmt",
            Self::JsonGet => "json_get",
            Self::JsonGetInt => "json_get_int",
            Self::JsonGetFloat => "json_get_float",
            Self::JsonGetBool => "json_get_bool",
        }
    }

    /// Returns name and summary of the second argument, and true if it can be left out.
    fn argument(self) -> (&'static str, &'static str, bool) {
        match self {
            Self::Parse => ("pattern", "text with fields such as {name} or {ms:int}; a constant", false),
            Self::Grok => ("pattern", "an expression with patterns such as %{IP:client}; a constant", false),
            Self::Logfmt => ("key", "the key whose value is the answer; a constant", true),
            _ => ("path", "keys and places, such as 'a.b[0]'; a constant", false),
        }
    }

    fn usage(self) -> String {
        let (argument, _, is_optional) = self.argument();
        format!("{}(text, {argument}{})", self.name(), if is_optional { " => NULL" } else { "" })
    }

    fn summary(self) -> &'static str {
        match self {
            Self::Parse => "The fields of a text by a pattern, as a struct.",
            Self::Grok => "The fields of a text by an expression with named patterns, as a struct.",
            Self::Logfmt => "The pairs of logfmt in a text, as a map, or the value of one key.",
            Self::JsonGet => "The value at a path of a text of JSON, as text.",
            Self::JsonGetInt => "The whole number at a path of a text of JSON.",
            Self::JsonGetFloat => "The number at a path of a text of JSON.",
            Self::JsonGetBool => "The flag at a path of a text of JSON.",
        }
    }

    /// Returns the type of the answer in DataFusion's words.
    fn answer(self) -> &'static str {
        match self {
            Self::Parse | Self::Grok => "Struct",
            Self::Logfmt => "Map(String, String)",
            Self::JsonGet => "String",
            Self::JsonGetInt => "Int64",
            Self::JsonGetFloat => "Float64",
            Self::JsonGetBool => "Boolean",
        }
    }

    fn documentation(self) -> Documentation {
        let section = DocSection { include: true, label: "Fields", description: None };
        let (argument, about, _) = self.argument();
        Documentation::builder(section, self.summary(), self.usage())
            .with_argument("text", "the text to read")
            .with_argument(argument, about)
            .build()
    }

    fn is_json(self) -> bool {
        matches!(self, Self::JsonGet | Self::JsonGetInt | Self::JsonGetFloat | Self::JsonGetBool)
    }
}

/// Keys of a text that are compared one by one. Most texts have no more.
const MAX_COMPARED: usize = 16;

static DOCUMENTATION: LazyLock<[Documentation; 7]> = LazyLock::new(|| Reader::ALL.map(Reader::documentation));

/// Returns the type of the answer and the documentation of each function.
pub(super) fn documented() -> impl Iterator<Item = (String, &'static Documentation)> {
    Reader::ALL.iter().map(|reader| reader.answer().to_owned()).zip(DOCUMENTATION.iter())
}

/// Returns all functions, with the types of their arguments.
pub(super) fn listed() -> impl Iterator<Item = ListedFunction> {
    Reader::ALL.into_iter().map(|reader| {
        let (argument, _, is_optional) = reader.argument();
        let parameter = |name, default| ListedParameter { name, data_type: "String", default };
        ListedFunction {
            name: reader.name(),
            summary: reader.summary(),
            usage: reader.usage(),
            answer: reader.answer(),
            parameters: vec![parameter("text", None), parameter(argument, is_optional.then_some("NULL"))],
        }
    })
}

/// A scalar function over the fields of texts.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct FieldFunction {
    reader: Reader,
    signature: Signature,
}

impl FieldFunction {
    /// Returns all functions.
    pub(super) fn all() -> impl Iterator<Item = Arc<ScalarUDF>> {
        Reader::ALL.into_iter().map(|reader| {
            let signature = Signature::user_defined(Volatility::Immutable);
            let names = vec!["text", reader.argument().0];
            // Names are refused only if two are equal.
            let signature = signature.clone().with_parameter_names(names).unwrap_or(signature);
            Arc::new(ScalarUDF::from(Self { reader, signature }))
        })
    }

    /// Returns the compiled argument of a call, `None` if it is NULL or left out.
    fn compiled(&self, argument: Option<&ScalarValue>) -> Result<Option<Arc<Compiled>>> {
        let Some(source) = argument.and_then(|argument| argument.try_as_str().flatten()) else { return Ok(None) };
        let reader = match self.reader {
            Reader::Parse => PatternReader::Parse,
            Reader::Grok => PatternReader::Grok,
            Reader::Logfmt => PatternReader::Logfmt,
            _ => PatternReader::Json,
        };
        compiled(reader, source).map(Some).map_err(|fault| {
            let (name, (argument, ..), usage) = (self.name(), self.reader.argument(), self.reader.usage());
            let character = fault.character;
            let reason = fault.reason;
            plan_datafusion_err!(
                "{name}: {argument}: got '{}', a fault at character {character}: {reason}; usage: {usage}",
                shown(source)
            )
        })
    }

    fn refuse_column<T>(&self) -> Result<T> {
        let (name, (argument, ..)) = (self.name(), self.reader.argument());
        let usage = self.reader.usage();
        plan_err!(
            "{name}: {argument}: got a column, expected text in single quotes, the same for all rows; usage: {usage}"
        )
    }

    fn data_type(&self, compiled: Option<&Compiled>) -> DataType {
        match self.reader {
            Reader::Parse | Reader::Grok => {
                DataType::Struct(struct_fields(compiled.map(Compiled::specs).unwrap_or_default()))
            }
            Reader::Logfmt if compiled.is_none() => map_builder().finish().data_type().clone(),
            Reader::Logfmt | Reader::JsonGet => DataType::Utf8View,
            Reader::JsonGetInt => DataType::Int64,
            Reader::JsonGetFloat => DataType::Float64,
            Reader::JsonGetBool => DataType::Boolean,
        }
    }
}

fn struct_fields(specs: &[FieldSpec]) -> Fields {
    specs.iter().map(|spec| Field::new(&spec.name, spec.kind.data_type(), true)).collect()
}

fn map_builder() -> MapBuilder<StringBuilder, StringBuilder> {
    MapBuilder::new(None, StringBuilder::new(), StringBuilder::new())
}

impl ScalarUDFImpl for FieldFunction {
    fn name(&self) -> &str {
        self.reader.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        self.refuse_column()
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let compiled = match args.scalar_arguments.get(1) {
            Some(None) => return self.refuse_column(),
            Some(argument) => self.compiled(*argument)?,
            None => None,
        };
        Ok(Arc::new(Field::new(self.name(), self.data_type(compiled.as_deref()), true)))
    }

    fn documentation(&self) -> Option<&Documentation> {
        let at = Reader::ALL.iter().position(|reader| *reader == self.reader)?;
        DOCUMENTATION.get(at)
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let usage = self.reader.usage();
        let (argument, _, is_optional) = self.reader.argument();
        let least = if is_optional { 1 } else { 2 };
        if given.len() < least || given.len() > 2 {
            let expected = if is_optional { "1 to 2" } else { "2" };
            return plan_err!("{name}: got {} arguments, expected {expected}; usage: {usage}", given.len());
        }
        let is_text = |given: &DataType| match given {
            DataType::Dictionary(_, values) => values.is_string(),
            other => other.is_string() || other.is_null(),
        };
        match given.iter().zip(["text", argument]).find(|(given, _)| !is_text(given)) {
            Some((given, argument)) => plan_err!("{name}: {argument}: got {given}, expected text; usage: {usage}"),
            // A cast would hide the constant of which the type of the answer is made.
            None => Ok(given.to_vec()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(text) = args.args.first() else {
            return exec_err!("{}: text is missing; usage: {}", self.name(), self.reader.usage());
        };
        let compiled = match args.args.get(1) {
            Some(ColumnarValue::Array(_)) => return self.refuse_column(),
            Some(ColumnarValue::Scalar(argument)) => self.compiled(Some(argument))?,
            None => None,
        };
        let is_one = matches!(text, ColumnarValue::Scalar(_));
        let texts = text.to_array(if is_one { 1 } else { args.number_rows })?;
        let texts = cast(&texts, &DataType::Utf8View)?;
        let answer = self.answer(texts.as_string_view(), compiled.as_deref())?;
        if is_one {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?))
        } else {
            Ok(ColumnarValue::Array(answer))
        }
    }
}

impl FieldFunction {
    fn answer(&self, texts: &StringViewArray, compiled: Option<&Compiled>) -> Result<ArrayRef> {
        match compiled {
            Some(Compiled::Parse(pattern)) => {
                structs(texts, pattern.specs(), |text, values| pattern.read(text, values))
            }
            Some(Compiled::Grok(pattern)) => {
                let groups = pattern.groups();
                let mut locations = pattern.locations();
                structs(texts, pattern.specs(), |text, values| pattern.read(text, &groups, &mut locations, values))
            }
            Some(Compiled::Key(key)) => {
                let value = |text| Pairs::new(text).find(|(name, _)| name == key).map(|(_, value)| Value::Text(value));
                column(texts, Kind::Text, value)
            }
            Some(Compiled::Path(path)) => self.json(texts, path),
            None if self.reader == Reader::Logfmt => maps(texts),
            None if self.reader.is_json() => {
                Ok(datafusion::arrow::array::new_null_array(&self.data_type(None), texts.len()))
            }
            None => {
                let nulls = Some(NullBuffer::new_null(texts.len()));
                Ok(Arc::new(StructArray::new_empty_fields(texts.len(), nulls)))
            }
        }
    }

    fn json(&self, texts: &StringViewArray, path: &JsonPath) -> Result<ArrayRef> {
        match self.reader {
            Reader::JsonGetInt => {
                column(texts, Kind::Int, |text| serde_json::from_str(json_at(path, text)?).ok().map(Value::Int))
            }
            Reader::JsonGetFloat => {
                column(texts, Kind::Float, |text| serde_json::from_str(json_at(path, text)?).ok().map(Value::Float))
            }
            Reader::JsonGetBool => {
                let flag = |text| serde_json::from_str::<bool>(json_at(path, text)?).ok();
                Ok(Arc::new(texts.iter().map(|text| text.and_then(flag)).collect::<BooleanArray>()))
            }
            _ => column(texts, Kind::Text, |text| text_at(path, text)),
        }
    }
}

/// Returns the JSON at `path` of a text of JSON.
fn json_at<'t>(path: &JsonPath, text: &'t str) -> Option<&'t str> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    path.find(text)
}

/// Returns the text at `path` of a text of JSON: that of a string, and other values as they are written, without
/// blanks.
fn text_at<'t>(path: &JsonPath, text: &'t str) -> Option<Value<'t>> {
    let json = json_at(path, text)?;
    let found = match json.as_bytes().first()? {
        b'n' => return None,
        b'"' => Cow::Owned(serde_json::from_str::<String>(json).ok()?),
        b'{' | b'[' => Cow::Owned(without_blanks(json)),
        _ => Cow::Borrowed(json),
    };
    Some(Value::Text(found))
}

/// Returns a column with the value of each text.
fn column<'t>(
    texts: &'t StringViewArray,
    kind: Kind,
    value: impl Fn(&'t str) -> Option<Value<'t>>,
) -> Result<ArrayRef> {
    let mut values = ValuesBuilder::new(kind);
    for text in texts.iter() {
        values.push(&text.and_then(&value).unwrap_or(Value::Null))?;
    }
    Ok(values.finish())
}

/// Returns a struct with the fields of each text, NULL where `read` returns false.
fn structs<'t>(
    texts: &'t StringViewArray,
    specs: &[FieldSpec],
    mut read: impl FnMut(&'t str, &mut [Value<'t>]) -> bool,
) -> Result<ArrayRef> {
    let mut builders: Vec<ValuesBuilder> = specs.iter().map(|spec| ValuesBuilder::new(spec.kind)).collect();
    let mut values = vec![Value::Null; specs.len()];
    let mut matched = Vec::with_capacity(texts.len());
    for text in texts.iter() {
        let is_match = text.is_some_and(|text| read(text, &mut values));
        matched.push(is_match);
        for (builder, value) in builders.iter_mut().zip(&values) {
            builder.push(if is_match { value } else { &Value::Null })?;
        }
    }
    let columns = builders.into_iter().map(ValuesBuilder::finish).collect();
    let nulls = Some(NullBuffer::from(matched));
    Ok(Arc::new(StructArray::try_new(struct_fields(specs), columns, nulls)?))
}

/// Returns the pairs of logfmt in each text. The first value of a key counts.
fn maps(texts: &StringViewArray) -> Result<ArrayRef> {
    let mut maps = map_builder();
    let mut first_keys = Vec::with_capacity(MAX_COMPARED);
    let mut more_keys = HashSet::new();
    for text in texts.iter() {
        first_keys.clear();
        more_keys.clear();
        for (key, value) in text.into_iter().flat_map(Pairs::new) {
            let is_new = if first_keys.contains(&key) {
                false
            } else if first_keys.len() < MAX_COMPARED {
                first_keys.push(key);
                true
            } else {
                more_keys.insert(key)
            };
            if is_new {
                maps.keys().append_value(key);
                maps.values().append_value(value);
            }
        }
        maps.append(text.is_some())?;
    }
    Ok(Arc::new(maps.finish()))
}
