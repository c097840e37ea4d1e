//! Patterns that say where the fields of a text are: those of `parse`, literals with fields between them, and those of
//! `grok`, in the way of Logstash.
//!
//! ```text
//! user {name} took {ms:int} ms        literal, field, literal, field, literal
//!
//! %{IP:client}   a named pattern as a field     %{NAME:field:int}   with its type
//! %{WORD}        one that is not kept           (?<field>…)         a group of the expression
//! ```
//!
//! A pattern of `parse` is looked for anywhere in a text; one that begins with a field begins with the text. A field of
//! text ends at the first place where the literal after it stands, or with the text. Other fields are read as far as
//! their type goes, and the literal must stand there. If it does not, the next place of the first literal is tried.
//! Places of literals are found once for each text, so a text is read O(fields) times, besides the first literal.
//!
//! Patterns of `grok` are expressions of the regex crate, whose time is linear in the text. It has no look-around, so
//! the patterns of numbers and addresses end where Logstash's would look ahead. The first match in a text counts.

use memchr::memmem::Finder;
use regex::{CaptureLocations, Regex, RegexBuilder};

use crate::fields::{Kind, Value};

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

/// Most bytes of the expression that is made of a pattern of `grok`, and of its compiled form.
const MAX_SOURCE_BYTES: usize = 256 << 10;
const MAX_COMPILED_BYTES: usize = 10 << 20;
/// Most patterns that lie in each other.
const MAX_DEPTH: usize = 16;

/// Named patterns.
static PATTERNS: [(&str, &str); 54] = [
    ("USERNAME", r"[a-zA-Z0-9._-]+"),
    ("USER", "%{USERNAME}"),
    ("EMAILLOCALPART", r"[a-zA-Z0-9!#$%&'*+\-/=?^_`{|}~]+(?:\.[a-zA-Z0-9!#$%&'*+\-/=?^_`{|}~]+)*"),
    ("EMAILADDRESS", "%{EMAILLOCALPART}@%{HOSTNAME}"),
    ("INT", r"[+-]?[0-9]+"),
    ("BASE10NUM", r"[+-]?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"),
    ("NUMBER", "%{BASE10NUM}"),
    ("BASE16NUM", r"[+-]?(?:0x)?[0-9A-Fa-f]+"),
    ("POSINT", r"\b[1-9][0-9]*\b"),
    ("NONNEGINT", r"\b[0-9]+\b"),
    ("WORD", r"\b\w+\b"),
    ("NOTSPACE", r"\S+"),
    ("SPACE", r"\s*"),
    ("DATA", r".*?"),
    ("GREEDYDATA", r".*"),
    ("QUOTEDSTRING", r#""(?:\\.|[^\\"])*"|'(?:\\.|[^\\'])*'"#),
    ("QS", "%{QUOTEDSTRING}"),
    ("UUID", r"[A-Fa-f0-9]{8}-(?:[A-Fa-f0-9]{4}-){3}[A-Fa-f0-9]{12}"),
    ("MAC", r"(?:[A-Fa-f0-9]{2}[:-]){5}[A-Fa-f0-9]{2}|(?:[A-Fa-f0-9]{4}\.){2}[A-Fa-f0-9]{4}"),
    ("IPV4", r"\b(?:(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\.){3}(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])\b"),
    (
        "IPV6",
        r"(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}|(?:[0-9A-Fa-f]{1,4}:){1,7}:(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,6})?|::(?:[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{1,4}){0,6})?",
    ),
    ("IP", "(?:%{IPV6}|%{IPV4})"),
    ("HOSTNAME", r"\b[0-9A-Za-z](?:[0-9A-Za-z-]{0,62})(?:\.[0-9A-Za-z](?:[0-9A-Za-z-]{0,62}))*\.?"),
    ("IPORHOST", "(?:%{IP}|%{HOSTNAME})"),
    ("HOSTPORT", "%{IPORHOST}:%{POSINT}"),
    ("UNIXPATH", r"(?:/[[[:alnum:]]_%!$@:.,+~-]*)+"),
    ("WINPATH", r"(?:[A-Za-z]+:|\\)(?:\\[^\\?*]*)+"),
    ("PATH", "(?:%{UNIXPATH}|%{WINPATH})"),
    ("URIPROTO", r"[A-Za-z][A-Za-z0-9+\-.]+"),
    ("URIHOST", "%{IPORHOST}(?::%{POSINT})?"),
    ("URIPATH", r"(?:/[A-Za-z0-9$.+!*'(){},~:;=@#%&_\-]*)+"),
    ("URIPARAM", r"\?[A-Za-z0-9$.+!*'|(){},~@#%&/=:;_?\-\[\]<>]*"),
    ("URIPATHPARAM", "%{URIPATH}(?:%{URIPARAM})?"),
    ("URI", "%{URIPROTO}://(?:%{USER}(?::[^@]*)?@)?(?:%{URIHOST})?(?:%{URIPATHPARAM})?"),
    (
        "MONTH",
        r"\b(?:[Jj]an(?:uary)?|[Ff]eb(?:ruary)?|[Mm]ar(?:ch)?|[Aa]pr(?:il)?|[Mm]ay|[Jj]une?|[Jj]uly?|[Aa]ug(?:ust)?|[Ss]ep(?:tember)?|[Oo]ct(?:ober)?|[Nn]ov(?:ember)?|[Dd]ec(?:ember)?)\b",
    ),
    ("MONTHNUM", "(?:0[1-9]|1[0-2]|[1-9])"),
    ("MONTHDAY", "(?:0[1-9]|[12][0-9]|3[01]|[1-9])"),
    ("DAY", "(?:Mon(?:day)?|Tue(?:sday)?|Wed(?:nesday)?|Thu(?:rsday)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)"),
    ("YEAR", "[0-9]{2}(?:[0-9]{2})?"),
    ("HOUR", "(?:2[0-3]|[01]?[0-9])"),
    ("MINUTE", "[0-5][0-9]"),
    ("SECOND", "(?:[0-5]?[0-9]|60)(?:[:.,][0-9]+)?"),
    ("TIME", "%{HOUR}:%{MINUTE}(?::%{SECOND})?"),
    ("ISO8601_TIMEZONE", "(?:Z|[+-]%{HOUR}(?::?%{MINUTE}))"),
    (
        "TIMESTAMP_ISO8601",
        "%{YEAR}-%{MONTHNUM}-%{MONTHDAY}[T ]%{HOUR}:?%{MINUTE}(?::?%{SECOND})?(?:%{ISO8601_TIMEZONE})?",
    ),
    ("SYSLOGTIMESTAMP", "%{MONTH} +%{MONTHDAY} %{TIME}"),
    ("HTTPDATE", "%{MONTHDAY}/%{MONTH}/%{YEAR}:%{TIME} %{INT}"),
    ("PROG", r"[!-Z\\^-~]+"),
    ("SYSLOGPROG", r"%{PROG:program}(?:\[%{POSINT:pid}\])?"),
    ("SYSLOGBASE", "%{SYSLOGTIMESTAMP:timestamp} (?:%{IPORHOST:logsource}) %{SYSLOGPROG}:"),
    (
        "LOGLEVEL",
        r"(?i:trace|debug|notice|info(?:rmation)?|warn(?:ing)?|err(?:or)?|crit(?:ical)?|fatal|severe|emerg(?:ency)?|alert)",
    ),
    ("HTTPDUSER", "(?:%{EMAILADDRESS}|%{USER})"),
    (
        "COMMONAPACHELOG",
        r#"%{IPORHOST:clientip} %{HTTPDUSER:ident} %{HTTPDUSER:auth} \[%{HTTPDATE:timestamp}\] "(?:%{WORD:verb} %{NOTSPACE:request}(?: HTTP/%{NUMBER:httpversion})?|%{DATA:rawrequest})" (?:%{INT:response}|-) (?:%{INT:bytes}|-)"#,
    ),
    ("COMBINEDAPACHELOG", r#"%{COMMONAPACHELOG} %{QS:referrer} %{QS:agent}"#),
];

/// A compiled pattern.
#[derive(Debug)]
pub struct GrokPattern {
    regex: Regex,
    specs: Vec<FieldSpec>,
}

/// An expression under way.
#[derive(Default)]
struct Source {
    regex: String,
    specs: Vec<FieldSpec>,
}

impl GrokPattern {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// It is too long, names a pattern that is not known, has no field, or is no expression.
    pub fn new(pattern: &str) -> Result<Self, PatternFault> {
        let fault = |reason: String| PatternFault { character: 1, reason };
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(fault(format!("it has {} bytes, more than {MAX_PATTERN_BYTES}", pattern.len())));
        }
        let mut source = Source::default();
        source.expand(pattern, 0)?;
        let built = RegexBuilder::new(&source.regex).size_limit(MAX_COMPILED_BYTES).build();
        let regex = built.map_err(|error| fault(error.to_string().replace('\n', " ")))?;
        let own = regex.capture_names().flatten().filter(|name| !name.starts_with("grok_"));
        let own: Vec<FieldSpec> = own.map(|name| FieldSpec { name: name.to_owned(), kind: Kind::Text }).collect();
        if source.specs.is_empty() && own.is_empty() {
            return Err(fault("it has no field such as %{IP:client}".to_owned()));
        }
        if let Some(spec) = own.iter().find(|spec| source.specs.iter().any(|other| other.name == spec.name)) {
            return Err(fault(format!("two fields have the name {}", spec.name)));
        }
        // The groups of fields have numbers, so that names may have any characters.
        source.specs.extend(own);
        Ok(Self { regex, specs: source.specs })
    }

    /// Returns the fields in order.
    pub fn specs(&self) -> &[FieldSpec] {
        &self.specs
    }

    /// Returns memory for [`read`](Self::read).
    pub fn locations(&self) -> CaptureLocations {
        self.regex.capture_locations()
    }

    /// Returns the group of the expression of each field.
    pub fn groups(&self) -> Vec<usize> {
        let names: Vec<Option<&str>> = self.regex.capture_names().collect();
        let group = |(idx, spec): (usize, &FieldSpec)| {
            let numbered = format!("grok_{idx}");
            let find = |wanted: &str| names.iter().position(|name| *name == Some(wanted));
            find(&numbered).or_else(|| find(&spec.name)).unwrap_or_default()
        };
        self.specs.iter().enumerate().map(group).collect()
    }

    /// Reads the fields of `text` into `values`. Returns false if the pattern does not match.
    pub fn read<'t>(
        &self,
        text: &'t str,
        groups: &[usize],
        locations: &mut CaptureLocations,
        values: &mut [Value<'t>],
    ) -> bool {
        if self.regex.captures_read(locations, text).is_none() {
            return false;
        }
        for ((spec, group), value) in self.specs.iter().zip(groups).zip(values) {
            let found = locations.get(*group).map(|(start, end)| &text[start..end]);
            let read = found.and_then(|found| match spec.kind {
                Kind::Int => found.parse().ok().map(Value::Int),
                Kind::Float => found.parse().ok().map(Value::Float),
                _ => Some(Value::Text(found.into())),
            });
            *value = read.unwrap_or(Value::Null);
        }
        true
    }
}

impl Source {
    /// Appends `pattern` with its named patterns in place.
    fn expand(&mut self, pattern: &str, depth: usize) -> Result<(), PatternFault> {
        let mut rest = pattern;
        while let Some(start) = rest.find("%{") {
            let at = pattern.len() - rest.len() + start;
            let fault = |reason: String| PatternFault { character: pattern[..at].chars().count() + 1, reason };
            self.regex.push_str(&rest[..start]);
            let Some(len) = rest[start..].find('}') else { return Err(fault("`%{` has no `}`".to_owned())) };
            let mut parts = rest[start + 2..start + len].split(':');
            let name = parts.next().unwrap_or_default();
            let Some((_, inner)) = PATTERNS.iter().find(|(known, _)| *known == name) else {
                return Err(fault(format!("no pattern has the name `{name}`")));
            };
            if depth == MAX_DEPTH || self.regex.len() > MAX_SOURCE_BYTES {
                return Err(fault("its patterns are too large".to_owned()));
            }
            let field = parts.next().unwrap_or_default();
            let kind = parts.next().unwrap_or("text");
            let kind = match kind {
                "int" | "long" => Kind::Int,
                "float" | "double" => Kind::Float,
                "text" | "string" => Kind::Text,
                other => return Err(fault(format!("got the type `{other}`, expected text, int or float"))),
            };
            if field.is_empty() {
                self.regex.push_str("(?:");
            } else if self.specs.iter().any(|spec| spec.name == field) {
                return Err(fault(format!("two fields have the name {field}")));
            } else {
                self.regex.push_str(&format!("(?<grok_{}>", self.specs.len()));
                self.specs.push(FieldSpec { name: field.to_owned(), kind });
            }
            self.expand(inner, depth + 1)?;
            self.regex.push(')');
            rest = &rest[start + len + 1..];
        }
        self.regex.push_str(rest);
        Ok(())
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

    fn read_grok(pattern: &str, text: &str) -> Option<Vec<String>> {
        let pattern = GrokPattern::new(pattern).unwrap();
        let mut values = vec![Value::Null; pattern.specs().len()];
        let is_match = pattern.read(text, &pattern.groups(), &mut pattern.locations(), &mut values);
        let named = pattern.specs().iter().zip(&values).map(|(spec, value)| format!("{}={value}", spec.name));
        is_match.then(|| named.collect())
    }

    #[test]
    fn every_pattern_compiles() {
        for (name, _) in PATTERNS {
            GrokPattern::new(&format!("%{{{name}:field_of_all}}")).unwrap();
        }
    }

    #[test]
    fn fields_are_those_of_logstash() {
        let line = r#"127.0.0.1 - frank [10/Oct/2000:13:55:36 -0700] "GET /a.gif HTTP/1.0" 200 2326"#;
        let expected = "clientip=127.0.0.1 ident=- auth=frank timestamp=10/Oct/2000:13:55:36 -0700 verb=GET \
                        request=/a.gif httpversion=1.0 rawrequest=NULL response=200 bytes=2326";
        assert_eq!(read_grok("%{COMMONAPACHELOG}", line).unwrap().join(" "), expected);
        assert_eq!(read_grok("%{COMMONAPACHELOG}", "no log"), None);
        let line = "Oct  7 12:00:01 web1 sshd[42]: Failed";
        let expected = "timestamp=Oct  7 12:00:01 logsource=web1 program=sshd pid=42";
        assert_eq!(read_grok("%{SYSLOGBASE}", line).unwrap().join(" "), expected);
        assert_eq!(read_grok("took %{NUMBER:ms:float} (?<rest>.*)", "took 1.5 s").unwrap(), ["ms=1.5", "rest=s"]);
        assert_eq!(read_grok("%{IP:a}", "from 2001:db8::1 on").unwrap(), ["a=2001:db8::1"]);
    }

    #[test]
    fn faults_of_grok_have_a_place() {
        for (pattern, character, reason) in [
            ("é %{NOPE:a}", 3, "no pattern has the name `NOPE`"),
            ("%{IP:a", 1, "has no `}`"),
            ("%{IP:a} %{IP:a}", 9, "two fields"),
            ("%{IP:a:date}", 1, "got the type `date`"),
            ("%{IP}", 1, "no field"),
            ("(%{IP:a}", 1, "unclosed"),
        ] {
            let fault = GrokPattern::new(pattern).unwrap_err();
            assert_eq!(fault.character, character, "{pattern}");
            assert!(fault.reason.contains(reason), "{}", fault.reason);
        }
    }
}
