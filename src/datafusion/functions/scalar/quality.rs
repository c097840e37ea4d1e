//! Scalar functions that measure a text for training data: `text_quality` and `language`.
//!
//! ```text
//! SELECT path FROM (SELECT path, text_quality(text) AS q, language(text) AS l FROM documents('c.tadoc'))
//! WHERE q['words'] BETWEEN 50 AND 100000 AND q['repeated_lines'] <= 0.3 AND l['code'] = 'eng'
//! ```
//!
//! Each is a struct. DataFusion asks for the struct once for each field that a statement names, in the same batch. So
//! the answer for the last batch of a thread is kept, and a text is read once for all of its fields. The measures are
//! those of [`TextQuality`]. Languages are those of the crate whatlang, by trigrams and alphabets; a text is judged by
//! its first [`JUDGED_BYTES`] bytes. NULL gives NULL.

use std::cell::RefCell;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, Float64Builder, Int64Builder, StringViewArray, StringViewBuilder, StructArray,
};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{exec_err, plan_err};
use datafusion::error::Result;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::{
    ColumnarValue, DocSection, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::scalar::ScalarValue;

use super::room::{AnswerMemory, FREE_BYTES};
use super::text::{ListedFunction, ListedParameter};
use tadoc::text::TextQuality;

/// Bytes of a text that its language is judged by.
const JUDGED_BYTES: usize = 16 << 10;
/// Bytes of memory for each word of a text that is measured.
const WORD_BYTES: u64 = 70;

/// Bytes of the texts of a batch whose answer is kept.
const MAX_KEPT_BYTES: usize = 4 << 20;

thread_local! {
    /// The last answer of each function on this thread.
    static LAST: RefCell<[Option<Answered>; Kind::ALL.len()]> = const { RefCell::new([None, None]) };
}

/// An answer, and the texts that it is for. They stay in memory, so no other texts take their place.
struct Answered {
    texts: StringViewArray,
    answer: ArrayRef,
}

impl Answered {
    /// Returns true if the answer is that for `texts`: the same ones, not others that are equal.
    fn is_for(&self, texts: &StringViewArray) -> bool {
        let ours = self.texts.data_buffers();
        let theirs = texts.data_buffers();
        let are_same_buffers =
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(one, other)| one.ptr_eq(other));
        are_same_buffers && self.texts.views().ptr_eq(texts.views()) && self.texts.nulls() == texts.nulls()
    }
}

/// A measure of a text, in a field of the answer.
type Measure<T> = (&'static str, fn(&TextQuality) -> T);

/// Whole numbers of `text_quality`.
const NUMBERS: [Measure<u64>; 4] = [
    ("characters", |quality| quality.num_chars),
    ("words", |quality| quality.num_words),
    ("lines", |quality| quality.num_lines),
    ("stop_words", |quality| quality.num_stop_words),
];

/// Shares and means of `text_quality`.
const SHARES: [Measure<Option<f64>>; 21] = [
    ("mean_word_length", |quality| quality.mean_word_chars),
    ("non_alphabetic", |quality| quality.non_alphabetic_chars),
    ("alphabetic_words", |quality| quality.alphabetic_words),
    ("symbols_per_word", |quality| quality.symbols_per_word),
    ("bullet_lines", |quality| quality.bullet_lines),
    ("ellipsis_lines", |quality| quality.ellipsis_lines),
    ("punctuated_lines", |quality| quality.punctuated_lines),
    ("short_lines", |quality| quality.short_lines),
    ("repeated_lines", |quality| quality.repeated_lines),
    ("repeated_line_chars", |quality| quality.repeated_line_chars),
    ("repeated_paragraphs", |quality| quality.repeated_paragraphs),
    ("repeated_paragraph_chars", |quality| quality.repeated_paragraph_chars),
    ("top_2gram", |quality| quality.top_ngram_chars[0]),
    ("top_3gram", |quality| quality.top_ngram_chars[1]),
    ("top_4gram", |quality| quality.top_ngram_chars[2]),
    ("repeated_5grams", |quality| quality.repeated_ngram_chars[0]),
    ("repeated_6grams", |quality| quality.repeated_ngram_chars[1]),
    ("repeated_7grams", |quality| quality.repeated_ngram_chars[2]),
    ("repeated_8grams", |quality| quality.repeated_ngram_chars[3]),
    ("repeated_9grams", |quality| quality.repeated_ngram_chars[4]),
    ("repeated_10grams", |quality| quality.repeated_ngram_chars[5]),
];

/// A function that measures texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Kind {
    Quality,
    Language,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Quality, Self::Language];

    fn name(self) -> &'static str {
        match self {
            Self::Quality => "text_quality",
            Self::Language => "language",
        }
    }

    fn usage(self) -> String {
        format!("{}(text)", self.name())
    }

    fn summary(self) -> &'static str {
        match self {
            Self::Quality => "Lengths, shares of symbols and shares of repetitions of a text, as a struct.",
            Self::Language => "The language of a text (ISO 639-3), its script, and how sure this is, as a struct.",
        }
    }

    fn fields(self) -> Fields {
        match self {
            Self::Quality => {
                let numbers = NUMBERS.iter().map(|(name, _)| Field::new(*name, DataType::Int64, true));
                let shares = SHARES.iter().map(|(name, _)| Field::new(*name, DataType::Float64, true));
                numbers.chain(shares).collect()
            }
            Self::Language => Fields::from(vec![
                Field::new("code", DataType::Utf8View, true),
                Field::new("script", DataType::Utf8View, true),
                Field::new("confidence", DataType::Float64, true),
            ]),
        }
    }

    fn documentation(self) -> Documentation {
        let section = DocSection { include: true, label: "Training data", description: None };
        Documentation::builder(section, self.summary(), self.usage()).with_argument("text", "the text to read").build()
    }
}

static DOCUMENTATION: LazyLock<[Documentation; 2]> = LazyLock::new(|| Kind::ALL.map(Kind::documentation));

/// Returns the type of the answer and the documentation of each function.
pub(super) fn documented() -> impl Iterator<Item = (String, &'static Documentation)> {
    DOCUMENTATION.iter().map(|about| ("Struct".to_owned(), about))
}

/// Returns all functions, with the types of their arguments.
pub(super) fn listed() -> impl Iterator<Item = ListedFunction> {
    Kind::ALL.into_iter().map(|kind| ListedFunction {
        name: kind.name(),
        summary: kind.summary(),
        usage: kind.usage(),
        answer: "Struct",
        parameters: vec![ListedParameter { name: "text", data_type: "String", default: None }],
    })
}

/// A scalar function that measures texts.
#[derive(Debug)]
pub(super) struct QualityFunction {
    kind: Kind,
    signature: Signature,
    /// Memory for the words of long texts; `None` without a limit.
    pool: Option<Arc<dyn MemoryPool>>,
}

impl PartialEq for QualityFunction {
    fn eq(&self, other: &Self) -> bool {
        self.kind == other.kind
    }
}

impl Eq for QualityFunction {}

impl Hash for QualityFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.kind.hash(state);
    }
}

impl QualityFunction {
    /// Returns all functions, whose memory is under the limit of `pool`.
    pub(super) fn all(pool: Option<&Arc<dyn MemoryPool>>) -> impl Iterator<Item = Arc<ScalarUDF>> {
        Kind::ALL.into_iter().map(move |kind| {
            let signature = Signature::user_defined(Volatility::Immutable);
            // Names are refused only if two are equal.
            let signature = signature.clone().with_parameter_names(vec!["text"]).unwrap_or(signature);
            Arc::new(ScalarUDF::from(Self { kind, signature, pool: pool.cloned() }))
        })
    }

    /// Returns the answer for `texts`, which may be the one for the call before.
    fn answer(&self, texts: &StringViewArray) -> Result<ArrayRef> {
        let place = self.kind as usize;
        let kept = LAST.with_borrow(|last| {
            let answered = last[place].as_ref().filter(|answered| answered.is_for(texts));
            answered.map(|answered| Arc::clone(&answered.answer))
        });
        if let Some(answer) = kept {
            return Ok(answer);
        }
        let answer = self.measure(texts)?;
        let is_small = texts.get_array_memory_size() <= MAX_KEPT_BYTES;
        let answered = is_small.then(|| Answered { texts: texts.clone(), answer: Arc::clone(&answer) });
        LAST.with_borrow_mut(|last| last[place] = answered);
        Ok(answer)
    }

    fn measure(&self, texts: &StringViewArray) -> Result<ArrayRef> {
        let columns = match self.kind {
            Kind::Quality => {
                let mut memory = AnswerMemory::new(self.name(), self.pool.as_ref());
                let field_bytes = size_of::<f64>() * (NUMBERS.len() + SHARES.len());
                memory.add((texts.len() * field_bytes) as u64)?;
                qualities(texts, &memory)?
            }
            Kind::Language => languages(texts)?,
        };
        let nulls = texts.nulls().map(|nulls| NullBuffer::new(nulls.inner().clone()));
        Ok(Arc::new(StructArray::try_new(self.kind.fields(), columns, nulls)?))
    }
}

impl ScalarUDFImpl for QualityFunction {
    fn name(&self) -> &str {
        self.kind.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Struct(self.kind.fields()))
    }

    fn documentation(&self) -> Option<&Documentation> {
        let at = Kind::ALL.iter().position(|kind| *kind == self.kind)?;
        DOCUMENTATION.get(at)
    }

    fn coerce_types(&self, given: &[DataType]) -> Result<Vec<DataType>> {
        let name = self.name();
        let usage = self.kind.usage();
        match given {
            [DataType::Dictionary(_, values)] if values.is_string() => Ok(vec![DataType::Utf8View]),
            [text] if text.is_string() || text.is_null() => Ok(vec![DataType::Utf8View]),
            [other] => plan_err!("{name}: text: got {other}, expected text; usage: {usage}"),
            _ => plan_err!("{name}: got {} arguments, expected 1; usage: {usage}", given.len()),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(text) = args.args.first() else {
            return exec_err!("{}: text is missing; usage: {}", self.name(), self.kind.usage());
        };
        let is_one = matches!(text, ColumnarValue::Scalar(_));
        let texts = text.to_array(if is_one { 1 } else { args.number_rows })?;
        let answer = self.answer(cast(&texts, &DataType::Utf8View)?.as_string_view())?;
        if is_one {
            Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answer, 0)?))
        } else {
            Ok(ColumnarValue::Array(answer))
        }
    }
}

/// Returns the columns of `text_quality`.
fn qualities(texts: &StringViewArray, memory: &AnswerMemory<'_>) -> Result<Vec<ArrayRef>> {
    let mut numbers = NUMBERS.map(|_| Int64Builder::with_capacity(texts.len()));
    let mut shares = SHARES.map(|_| Float64Builder::with_capacity(texts.len()));
    for text in texts.iter() {
        let quality = match text {
            Some(text) => {
                let mut reading = memory.beside();
                reading.add(reading_bytes(text))?;
                Some(TextQuality::measure(text))
            }
            None => None,
        };
        for (builder, (_, number)) in numbers.iter_mut().zip(NUMBERS) {
            let number = quality.as_ref().map(number);
            builder.append_option(number.map(|number| i64::try_from(number).unwrap_or(i64::MAX)));
        }
        for (builder, (_, share)) in shares.iter_mut().zip(SHARES) {
            builder.append_option(quality.as_ref().and_then(share));
        }
    }
    let numbers = numbers.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
    let shares = shares.iter_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
    Ok(numbers.chain(shares).collect())
}

/// Returns the bytes of memory for measuring a text. Those of a short text are not counted.
fn reading_bytes(text: &str) -> u64 {
    if (text.len() as u64) < FREE_BYTES {
        return 0;
    }
    WORD_BYTES.saturating_mul(text.split_whitespace().count() as u64)
}

/// Returns the columns of `language`.
fn languages(texts: &StringViewArray) -> Result<Vec<ArrayRef>> {
    let mut codes = StringViewBuilder::new();
    let mut scripts = StringViewBuilder::new();
    let mut confidences = Float64Builder::with_capacity(texts.len());
    for text in texts.iter() {
        let judged = text.map(|text| &text[..text.floor_char_boundary(JUDGED_BYTES)]);
        let found = judged.and_then(whatlang::detect);
        codes.append_option(found.as_ref().map(|found| found.lang().code()));
        let script = found.as_ref().map(whatlang::Info::script);
        scripts.append_option(script.as_ref().map(whatlang::Script::name));
        confidences.append_option(found.map(|found| found.confidence()));
    }
    Ok(vec![Arc::new(codes.finish()), Arc::new(scripts.finish()), Arc::new(confidences.finish())])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn fields_have_names_of_their_own() {
        for kind in Kind::ALL {
            let fields = kind.fields();
            let names: std::collections::HashSet<&String> = fields.iter().map(|field| field.name()).collect();
            assert_eq!(names.len(), fields.len());
        }
    }

    #[test]
    fn an_answer_is_kept_for_the_same_texts_only() {
        let function = |kind| QualityFunction { kind, signature: Signature::any(1, Volatility::Immutable), pool: None };
        let texts = |text: &str| StringViewArray::from(vec![Some(text), None, Some("short")]);
        let first = texts("a text of more than twelve bytes");
        let [quality, language] = Kind::ALL.map(function);
        let answer = quality.answer(&first).unwrap();
        assert!(Arc::ptr_eq(&answer, &quality.answer(&first.clone()).unwrap()));
        assert_ne!(quality.answer(&first).unwrap().data_type(), language.answer(&first).unwrap().data_type());
        // The same places, fewer of them, and equal texts elsewhere.
        assert_eq!(quality.answer(&first.slice(1, 2)).unwrap().len(), 2);
        for text in ["a text of more than twelve letters", "a text of more than twelve bytes"] {
            let other = texts(text);
            assert!(!Arc::ptr_eq(&answer, &quality.answer(&other).unwrap()));
            assert_eq!(&*quality.answer(&other).unwrap(), &*quality.measure(&other).unwrap());
        }
    }

    #[test]
    fn the_end_of_a_long_text_does_not_change_its_language() {
        let english = "The quick brown fox jumps over the lazy dog, and nobody knows why it does that. ".repeat(300);
        let text = format!("{english}{}", "Le chien dort dans la maison avec le chat. ".repeat(3000));
        let texts = StringViewArray::from(vec![Some(text.as_str()), None, Some("123 …")]);
        let columns = languages(&texts).unwrap();
        let codes: Vec<Option<&str>> = columns[0].as_string_view().iter().collect();
        assert_eq!(codes, [Some("eng"), None, None]);
    }

    proptest! {
        #[test]
        fn any_text_has_a_language_or_none(text in any::<String>()) {
            let columns = languages(&StringViewArray::from(vec![text.as_str()])).unwrap();
            let confidences = columns[2].as_primitive::<datafusion::arrow::datatypes::Float64Type>();
            for confidence in confidences.iter().flatten() {
                prop_assert!((0.0..=1.0).contains(&confidence), "{}", confidence);
            }
        }
    }
}
