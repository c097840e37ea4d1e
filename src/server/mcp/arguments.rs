//! Arguments of tools: from the object of a client to values, and the schemas that clients see.
//!
//! ```text
//! {"query": …, "corpus": …, "limit": …} ─┬─▶ the tool's own        query, fold
//!                                        ├─▶ Of                    corpus
//!                                        ├─▶ Page                  limit, offset, max_bytes
//!                                        └─▶ anything left: an error that lists the names
//! ```
//!
//! Arguments are structs. Their fields, with the comments as descriptions, are the schema.

use rmcp::model::JsonObject;
use schemars::{JsonSchema, schema_for};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::refusal::{Kind, Refusal};

/// Rows of an answer that does not say.
const USUAL_ROWS: u64 = 20;
/// Maximum rows of an answer.
const MAX_ROWS: u64 = 1000;
/// Bytes of an answer that does not say: some 5,000 tokens.
const USUAL_BYTES: u64 = 20_000;
/// Fewest bytes of an answer.
const MIN_BYTES: u64 = 500;
/// Maximum bytes of an answer.
const MAX_BYTES: u64 = 1_000_000;

/// The corpus of a question.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct Corpus {
    /// Name of the corpus.
    #[serde(default)]
    pub corpus: Option<String>,
}

/// The size of an answer.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Size {
    /// Most bytes of the answer, 500 to 1,000,000; a token has about 4.
    #[serde(default = "usual_bytes")]
    #[schemars(range(min = 500, max = 1000000))]
    max_bytes: u64,
}

/// A page of rows.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Page {
    /// Most rows of the answer, 1 to 1,000.
    #[serde(default = "usual_rows")]
    #[schemars(range(min = 1, max = 1000))]
    limit: u64,

    /// Rows to leave out: the number that the note of the answer before gives.
    #[serde(default)]
    offset: u64,

    /// Most bytes of the answer, 500 to 1,000,000; a token has about 4.
    #[serde(default = "usual_bytes")]
    #[schemars(range(min = 500, max = 1000000))]
    max_bytes: u64,
}

fn usual_rows() -> u64 {
    USUAL_ROWS
}

fn usual_bytes() -> u64 {
    USUAL_BYTES
}

impl Size {
    /// Checks the bounds.
    ///
    /// # Errors
    /// A value is outside of its bounds.
    pub fn check(&self) -> Result<(), Refusal> {
        check("max_bytes", self.max_bytes, MIN_BYTES, MAX_BYTES)
    }

    /// Returns the most bytes of the answer.
    pub fn max_bytes(&self) -> usize {
        usize::try_from(self.max_bytes).unwrap_or(usize::MAX)
    }
}

impl Page {
    /// Creates the page of `limit` rows from `offset` on.
    pub fn new(limit: u64, offset: u64) -> Self {
        Self { limit, offset, max_bytes: USUAL_BYTES }
    }

    /// Checks the bounds.
    ///
    /// # Errors
    /// A value is outside of its bounds.
    pub fn check(&self) -> Result<(), Refusal> {
        check("limit", self.limit, 1, MAX_ROWS)?;
        check("offset", self.offset, 0, u64::from(u32::MAX))?;
        check("max_bytes", self.max_bytes, MIN_BYTES, MAX_BYTES)
    }

    /// Returns the most rows of the answer.
    pub fn limit(&self) -> usize {
        usize::try_from(self.limit).unwrap_or(usize::MAX)
    }

    /// Returns the number of rows before the page.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the most bytes of the answer.
    pub fn max_bytes(&self) -> usize {
        usize::try_from(self.max_bytes).unwrap_or(usize::MAX)
    }

    /// Returns the number of rows up to the end of the page, and one more that says whether there are more.
    pub fn num_ranked(&self) -> u64 {
        self.offset + self.limit + 1
    }

    /// Returns the clause that leads to the page, with one more row.
    pub fn clause(&self) -> String {
        format!("LIMIT {} OFFSET {}", self.limit + 1, self.offset)
    }
}

/// Checks that the argument `name` is in its bounds.
///
/// # Errors
/// It is not.
pub fn check(name: &str, got: u64, least: u64, most: u64) -> Result<(), Refusal> {
    if (least..=most).contains(&got) {
        return Ok(());
    }
    Err(invalid(format!("{name}: got {got}, expected {least} to {most}")))
}

/// Returns the refusal of arguments.
pub fn invalid(text: impl Into<String>) -> Refusal {
    Refusal::new(Kind::Invalid, text)
}

/// The arguments of a call. Each struct takes its own, and none may be left.
pub struct Given {
    values: JsonObject,
    known: Vec<String>,
}

impl Given {
    /// Creates the arguments `values`.
    pub fn new(values: JsonObject) -> Self {
        Self { values, known: Vec::new() }
    }

    /// Takes the fields of `T`.
    ///
    /// # Errors
    /// A value is missing, or it has another type.
    pub fn take<T: DeserializeOwned + JsonSchema>(&mut self) -> Result<T, Refusal> {
        let mut taken = JsonObject::new();
        for (name, property) in properties::<T>() {
            // A null is what a client sends for an argument that it leaves out.
            if let Some(value) = self.values.remove(&name).filter(|value| !value.is_null()) {
                check_type(&name, &value, &property)?;
                taken.insert(name.clone(), value);
            }
            self.known.push(name);
        }
        let taken = serde_json::from_value(Value::Object(taken));
        taken.map_err(|error| invalid(format!("arguments: {error}; see the schema of the tool")))
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// The tool does not have an argument that was given.
    pub fn finish(self) -> Result<(), Refusal> {
        match self.values.keys().next() {
            None => Ok(()),
            Some(name) => {
                let known = self.known.join(", ");
                Err(invalid(format!("there is no argument `{name}`; the tool has: {known}")))
            }
        }
    }
}

/// Checks that a value has the type of its property.
fn check_type(name: &str, value: &Value, property: &Value) -> Result<(), Refusal> {
    let expected = match &property["type"] {
        Value::Array(types) => types.first().cloned().unwrap_or_default(),
        one => one.clone(),
    };
    let (is_right, expected) = match expected.as_str() {
        Some("string") => (value.is_string(), "a text"),
        Some("boolean") => (value.is_boolean(), "true or false"),
        Some("integer") => (value.is_u64(), "a whole number, 0 or more"),
        _ => (true, ""),
    };
    if is_right {
        return Ok(());
    }
    let got: String = value.to_string().chars().take(100).collect();
    Err(invalid(format!("{name}: got {got}, expected {expected}")))
}

/// Returns the fields of `T` with their schemas.
fn properties<T: JsonSchema>() -> JsonObject {
    let schema = schema_for!(T).to_value();
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.cloned().unwrap_or_default()
}

/// Returns the schema of a field as models and clients understand it best.
fn for_model(mut property: Value) -> Value {
    let Some(fields) = property.as_object_mut() else { return property };
    // Clients warn of formats that they do not know, such as those of Rust's numbers.
    fields.remove("format");
    // Comments are wrapped.
    if let Some(Value::String(description)) = fields.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    // An argument that may be left out. Null is no type of its own for a model.
    if let Some(Value::Array(types)) = fields.get("type").cloned() {
        fields.insert("type".to_owned(), types.first().cloned().unwrap_or_default());
        fields.remove("default");
    }
    property
}

/// The schema of a tool, in parts.
#[derive(Default)]
pub struct Schema {
    properties: JsonObject,
    required: Vec<Value>,
}

impl Schema {
    /// Adds the fields of `T`.
    pub fn with<T: JsonSchema>(mut self) -> Self {
        for (name, property) in properties::<T>() {
            self.properties.insert(name, for_model(property));
        }
        let schema = schema_for!(T).to_value();
        let required = schema.get("required").and_then(Value::as_array);
        self.required.extend(required.cloned().unwrap_or_default());
        self
    }

    /// Adds the corpus, which is one of `names`.
    pub fn with_corpus(mut self, names: &[String]) -> Self {
        self = self.with::<Corpus>();
        if let Some(corpus) = self.properties.get_mut("corpus") {
            corpus["enum"] = json!(names);
        }
        if names.len() > 1 {
            self.required.push("corpus".into());
        }
        self
    }

    /// Returns the schema.
    pub fn into_object(self) -> JsonObject {
        let schema = json!({
            "type": "object",
            "properties": self.properties,
            "required": self.required,
            "additionalProperties": false,
        });
        match schema {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(value: Value) -> Given {
        Given::new(value.as_object().cloned().unwrap())
    }

    #[test]
    fn arguments_are_checked_with_a_way_out() {
        let mut arguments = given(json!({"limit": 5, "offset": null, "words": 1}));
        let page: Page = arguments.take().unwrap();
        assert_eq!((page.limit(), page.offset(), page.max_bytes()), (5, 0, 20_000));
        let refused = arguments.finish().unwrap_err().text;
        assert_eq!(refused, "there is no argument `words`; the tool has: limit, max_bytes, offset");
        let refused = given(json!({"limit": "5"})).take::<Page>().unwrap_err().text;
        assert_eq!(refused, "limit: got \"5\", expected a whole number, 0 or more");
        let refused = Page::new(0, 0).check().unwrap_err().text;
        assert_eq!(refused, "limit: got 0, expected 1 to 1000");
    }

    #[test]
    fn schemas_say_all_that_a_model_needs() {
        let schema = Schema::default().with::<Page>().with_corpus(&["a".into(), "b".into()]).into_object();
        let schema = Value::Object(schema);
        assert_eq!(schema["properties"]["corpus"]["enum"], json!(["a", "b"]));
        assert_eq!(schema["properties"]["corpus"]["type"], "string");
        assert_eq!(schema["properties"]["limit"]["default"], 20);
        assert_eq!(schema["properties"]["limit"]["maximum"], MAX_ROWS);
        assert_eq!(schema["properties"]["max_bytes"]["minimum"], MIN_BYTES);
        assert_eq!(schema["properties"]["max_bytes"]["maximum"], MAX_BYTES);
        assert!(schema["properties"]["limit"]["description"].as_str().unwrap().starts_with("Most rows"));
        assert_eq!(schema["properties"]["limit"].get("format"), None);
        assert_eq!(schema["required"], json!(["corpus"]));
    }
}
