//! Patterns of `parse`: literals with fields between them.
//!
//! ```text
//! user {name} took {ms:int} ms        literal, field, literal, field, literal
//! ```
//!
//! The pattern is looked for anywhere in a text; one that begins with a field begins with the text. A field of
//! text ends at the first place where the literal after it stands, or with the text. Other fields are read as
//! far as their type goes, and the literal must stand there. If it does not, the next place of the first literal
//! is tried.
//!
//! Places of literals are found once for each text, so a text is read O(fields) times, besides the first
//! literal.

use memchr::memmem::Finder;

use super::{Kind, Value};

/// Most bytes of a pattern, and most fields.
const MAX_PATTERN_BYTES: usize = 8 << 10;
const MAX_FIELDS: usize = 256;

/// A field of a pattern, or of another way to read a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldSpec {
    pub name: String,
    pub kind: Kind,
}

/// The texts that a field takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Text up to the next literal.
    Any,
    /// The same without white space, at least one character.
    Word,
    /// A text in quotation marks, with a backslash in front of such marks in it.
    Quoted,
    Int,
    Float,
    /// Text up to the next literal that is a time as a whole.
    Timestamp,
}

#[derive(Debug)]
struct Field {
    form: Form,
    /// Index among the named fields; `None` if its value is not kept.
    number: Option<usize>,
    /// The literal behind it.
    literal: Finder<'static>,
}

/// A compiled pattern.
#[derive(Debug)]
pub struct ParsePattern {
    first: Finder<'static>,
    fields: Vec<Field>,
    specs: Vec<FieldSpec>,
}

/// A part of a pattern that cannot be read, with its character counted from 1.
#[derive(Debug, PartialEq, Eq)]
pub struct PatternFault {
    pub character: usize,
    pub reason: String,
}

impl ParsePattern {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// It is too long, has no field, has two fields with nothing between them, or one that cannot be read.
    pub fn new(pattern: &str) -> Result<Self, PatternFault> {
        let fault = |at: usize, reason: String| PatternFault { character: pattern[..at].chars().count() + 1, reason };
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(fault(0, format!("it has {} bytes, more than {MAX_PATTERN_BYTES}", pattern.len())));
        }
        let mut literals = vec![String::new()];
        let mut heads: Vec<(Form, Option<usize>)> = Vec::new();
        let mut specs: Vec<FieldSpec> = Vec::new();
        let mut at = 0;
        while let Some(c) = pattern[at..].chars().next() {
            let rest = &pattern[at..];
            if rest.starts_with("{{") || rest.starts_with("}}") {
                literals.last_mut().into_iter().for_each(|literal| literal.push(c));
                at += 2;
            } else if c == '{' {
                let Some(len) = rest.find('}') else {
                    return Err(fault(at, "`{` has no `}`; write {{ for the character itself".to_owned()));
                };
                if !heads.is_empty() && literals.last().is_some_and(String::is_empty) {
                    return Err(fault(at, "two fields have nothing between them".to_owned()));
                }
                let (name, form) = field(&rest[1..len]).map_err(|reason| fault(at, reason))?;
                if heads.len() == MAX_FIELDS {
                    return Err(fault(at, format!("it has more than {MAX_FIELDS} fields")));
                }
                if name.is_some_and(|name| specs.iter().any(|spec| spec.name == name)) {
                    return Err(fault(at, "another field has this name".to_owned()));
                }
                heads.push((form, name.map(|_| specs.len())));
                specs.extend(name.map(|name| FieldSpec { name: name.to_owned(), kind: form.kind() }));
                literals.push(String::new());
                at += len + 1;
            } else if c == '}' {
                return Err(fault(at, "`}` has no `{`; write }} for the character itself".to_owned()));
            } else {
                literals.last_mut().into_iter().for_each(|literal| literal.push(c));
                at += c.len_utf8();
            }
        }
        if specs.is_empty() {
            return Err(fault(0, "it has no field such as {name} or {ms:int}".to_owned()));
        }
        let mut finders = literals.iter().map(|literal| Finder::new(literal.as_bytes()).into_owned());
        let first = finders.next().unwrap_or_else(|| Finder::new(b"").into_owned());
        let fields = heads.into_iter().zip(finders);
        let fields = fields.map(|((form, number), literal)| Field { form, number, literal }).collect();
        Ok(Self { first, fields, specs })
    }

    /// Returns the fields in order.
    pub fn specs(&self) -> &[FieldSpec] {
        &self.specs
    }

    /// Returns the literals that a text has that the pattern matches, in order.
    pub fn literals(&self) -> Vec<String> {
        let finders = std::iter::once(&self.first).chain(self.fields.iter().map(|field| &field.literal));
        let literals = finders.map(|finder| String::from_utf8_lossy(finder.needle()).into_owned());
        literals.filter(|literal| !literal.is_empty()).collect()
    }

    /// Reads the fields of `text` into `values`, which has one for each of [`specs`](Self::specs). Returns false if
    /// the pattern does not match.
    pub fn read<'t>(&self, text: &'t str, values: &mut [Value<'t>]) -> bool {
        // The last place found for the literal of each field. Later starts find no earlier one.
        let mut known = vec![None; self.fields.len()];
        let needle_len = self.first.needle().len();
        if needle_len == 0 {
            return self.read_from(text, 0, values, &mut known);
        }
        let mut places = self.first.find_iter(text.as_bytes());
        places.any(|place| self.read_from(text, place + needle_len, values, &mut known))
    }

    fn read_from<'t>(
        &self,
        text: &'t str,
        mut at: usize,
        values: &mut [Value<'t>],
        known: &mut [Option<(usize, Option<usize>)>],
    ) -> bool {
        for (field, known) in self.fields.iter().zip(known) {
            let rest = &text[at..];
            let literal_len = field.literal.needle().len();
            let (end, value) = match field.form {
                Form::Any | Form::Timestamp => {
                    let Some(end) = field.end(text, at, known) else { return false };
                    let taken = &text[at..end];
                    match field.form {
                        Form::Timestamp => match Value::timestamp(taken) {
                            Some(value) => (end, value),
                            None => return false,
                        },
                        _ => (end, Value::Text(taken.into())),
                    }
                }
                Form::Word => {
                    let most = rest.find(char::is_whitespace).unwrap_or(rest.len());
                    let len = if literal_len == 0 {
                        Some(most)
                    } else {
                        // The literal may begin with a blank.
                        let within = (most + literal_len).min(rest.len());
                        field.literal.find(&rest.as_bytes()[..within]).filter(|&len| len <= most)
                    };
                    match len {
                        Some(len) if len > 0 => (at + len, Value::Text(rest[..len].into())),
                        _ => return false,
                    }
                }
                Form::Quoted => match Value::quoted(rest) {
                    Some((len, value)) => (at + len, value),
                    None => return false,
                },
                Form::Int | Form::Float => {
                    let is_float = field.form == Form::Float;
                    match Value::number(rest, is_float) {
                        Some((len, value)) => (at + len, value),
                        None => return false,
                    }
                }
            };
            if !text.as_bytes()[end..].starts_with(field.literal.needle()) {
                return false;
            }
            if let Some(number) = field.number {
                values[number] = value;
            }
            at = end + literal_len;
        }
        true
    }
}

impl Field {
    /// Returns the first place of the literal from `at`, or the end of the text if there is no literal.
    fn end(&self, text: &str, at: usize, known: &mut Option<(usize, Option<usize>)>) -> Option<usize> {
        if self.literal.needle().is_empty() {
            return Some(text.len());
        }
        match *known {
            Some((from, place)) if from <= at && place.is_none_or(|place| at <= place) => place,
            _ => {
                let place = self.literal.find(&text.as_bytes()[at..]).map(|place| at + place);
                *known = Some((at, place));
                place
            }
        }
    }
}

impl Form {
    fn kind(self) -> Kind {
        match self {
            Self::Any | Self::Word | Self::Quoted => Kind::Text,
            Self::Int => Kind::Int,
            Self::Float => Kind::Float,
            Self::Timestamp => Kind::Timestamp,
        }
    }
}

/// Returns name and form of a field, given without its braces.
fn field(text: &str) -> Result<(Option<&str>, Form), String> {
    let (name, form) = text.split_once(':').unwrap_or((text, "any"));
    let form = match form.trim() {
        "any" | "text" => Form::Any,
        "word" => Form::Word,
        "quoted" => Form::Quoted,
        "int" => Form::Int,
        "float" => Form::Float,
        "timestamp" => Form::Timestamp,
        other => {
            return Err(format!("got the type `{other}`, expected any, word, quoted, int, float or timestamp"));
        }
    };
    let name = name.trim();
    let is_name = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '@'));
    match name {
        "" | "_" => Ok((None, form)),
        name if is_name => Ok((Some(name), form)),
        name => Err(format!("got the name `{name}`, expected letters, digits, _, ., - or @")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pattern: &str, text: &str) -> Option<Vec<String>> {
        let pattern = ParsePattern::new(pattern).unwrap();
        let mut values = vec![Value::Null; pattern.specs().len()];
        pattern.read(text, &mut values).then(|| values.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn fields_end_at_the_next_literal() {
        for (pattern, text, expected) in [
            ("user {name} took {ms:int} ms", "x user ann lee took 12 ms.", Some(vec!["ann lee", "12"])),
            ("user {name} took {ms:int} ms", "user a took b ms, user c took -4 ms", Some(vec!["c", "-4"])),
            ("{ip:word} - {_} [{at}]", "1.2.3.4 - bob [now] x", Some(vec!["1.2.3.4", "now"])),
            ("{a},{b}", "1,2,3", Some(vec!["1", "2,3"])),
            ("{a:word},{b:word}", "1,2 3", Some(vec!["1", "2"])),
            ("{a:word},", "1 2,", None),
            ("{{{a}}}", "x{1}", Some(vec!["1"])),
            ("a={a:quoted} b", r#"a="x \"y\"" b"#, Some(vec![r#"x "y""#])),
            ("a={a:quoted}", r#"a="x"#, None),
            ("t={t:float}s", "t=1.5e3s", Some(vec!["1500"])),
            ("n={n:int}", "n=99999999999999999999", None),
            ("[{t:timestamp}]", "[2024-05-06T07:08:09Z]", Some(vec!["1714979289000000"])),
            ("[{t:timestamp}]", "[yesterday]", None),
            ("é{a}é", "xéyéz", Some(vec!["y"])),
            ("{a:word}", "", None),
            ("{a}", "", Some(vec![""])),
        ] {
            let expected = expected.map(|values| values.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(read(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn faults_have_a_place() {
        for (pattern, character, reason) in [
            ("é {a", 3, "has no `}`"),
            ("a}", 2, "has no `{`"),
            ("{a}{b}", 4, "nothing between"),
            ("{a} {a}", 5, "has this name"),
            ("{a:date}", 1, "got the type `date`"),
            ("{a b}", 1, "got the name"),
            ("a", 1, "no field"),
        ] {
            let fault = ParsePattern::new(pattern).unwrap_err();
            assert_eq!(fault.character, character, "{pattern}");
            assert!(fault.reason.contains(reason), "{}", fault.reason);
        }
        assert!(ParsePattern::new(&"x".repeat(9000)).unwrap_err().reason.contains("more than 8192"));
    }

    #[test]
    fn texts_of_one_literal_are_read_in_time() {
        let text = "x ".repeat(200_000);
        assert_eq!(read("x {a} END {b:int}", &format!("{text} END z")), None);
        assert_eq!(read("x {a} END {b:int}", &text), None);
    }
}
