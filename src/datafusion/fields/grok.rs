//! Patterns of `grok`, in the way of Logstash: `%{IP:client} %{NUMBER:ms:float}`.
//!
//! ```text
//! %{IP:client}   a named pattern as a field     %{NAME:field:int}   with its type
//! %{WORD}        one that is not kept           (?<field>…)         a group of the expression
//! ```
//!
//! Patterns are expressions of the regex crate, whose time is linear in the text. It has no look-around, so the
//! patterns of numbers and addresses end where Logstash's would look ahead. The first match in a text counts.

use regex::{CaptureLocations, Regex, RegexBuilder};

use super::parse_pattern::{FieldSpec, PatternFault};
use super::{Kind, Value};

/// Most bytes of a pattern, of the expression that is made of it, and of its compiled form.
const MAX_PATTERN_BYTES: usize = 8 << 10;
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
            let (field, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or("text"));
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
        assert_eq!(read("%{COMMONAPACHELOG}", line).unwrap().join(" "), expected);
        assert_eq!(read("%{COMMONAPACHELOG}", "no log"), None);
        let line = "Oct  7 12:00:01 web1 sshd[42]: Failed";
        let expected = "timestamp=Oct  7 12:00:01 logsource=web1 program=sshd pid=42";
        assert_eq!(read("%{SYSLOGBASE}", line).unwrap().join(" "), expected);
        assert_eq!(read("took %{NUMBER:ms:float} (?<rest>.*)", "took 1.5 s").unwrap(), ["ms=1.5", "rest=s"]);
        assert_eq!(read("%{IP:a}", "from 2001:db8::1 on").unwrap(), ["a=2001:db8::1"]);
    }

    #[test]
    fn faults_have_a_place() {
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
