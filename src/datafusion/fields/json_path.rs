//! Paths of `json_get`: `a.b[0]`, `["a.b"].c`, `[2]`.

use serde_json::Value as Json;

use super::PatternFault;

/// Most bytes of a path.
const MAX_PATH_BYTES: usize = 8 << 10;

/// A step into a value of JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Key(String),
    Index(usize),
}

/// A compiled path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JsonPath(Vec<Step>);

impl JsonPath {
    /// Compiles `path`. An empty one is the whole value.
    ///
    /// # Errors
    /// It is too long, or a step cannot be read.
    pub fn new(path: &str) -> Result<Self, PatternFault> {
        let fault = |at: usize, reason: &str| {
            let character = path[..at].chars().count() + 1;
            PatternFault { character, reason: reason.to_owned() }
        };
        if path.len() > MAX_PATH_BYTES {
            return Err(fault(0, &format!("it has {} bytes, more than {MAX_PATH_BYTES}", path.len())));
        }
        let mut steps = Vec::new();
        let mut at = 0;
        while at < path.len() {
            let rest = &path[at..];
            if let Some(inner) = rest.strip_prefix("[\"") {
                let len = inner.find("\"]").ok_or_else(|| fault(at, "`[\"` has no `\"]`"))?;
                steps.push(Step::Key(inner[..len].to_owned()));
                at += len + 4;
            } else if let Some(inner) = rest.strip_prefix('[') {
                let len = inner.find(']').ok_or_else(|| fault(at, "`[` has no `]`"))?;
                let index = inner[..len].parse().map_err(|_| fault(at, "expected a number as in [0]"))?;
                steps.push(Step::Index(index));
                at += len + 2;
            } else {
                let start = at + usize::from(rest.starts_with('.') && !steps.is_empty());
                let key = &path[start..];
                let len = key.find(['.', '[']).unwrap_or(key.len());
                if len == 0 {
                    return Err(fault(at, "a key is missing"));
                }
                steps.push(Step::Key(key[..len].to_owned()));
                at = start + len;
            }
        }
        Ok(Self(steps))
    }

    /// Returns the value at the path.
    pub fn find<'v>(&self, value: &'v Json) -> Option<&'v Json> {
        self.0.iter().try_fold(value, |value, step| match step {
            Step::Key(key) => value.get(key),
            Step::Index(index) => value.get(index),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lead_into_a_value() {
        let value = serde_json::json!({"a": {"b": [1, {"c": 2}]}, "x.y": 3, "é": null});
        for (path, expected) in [
            ("a.b[0]", Some("1")),
            ("a.b[1].c", Some("2")),
            ("[\"x.y\"]", Some("3")),
            ("é", Some("null")),
            ("a.b[2]", None),
            ("a[0]", None),
            ("b", None),
        ] {
            let path = JsonPath::new(path).unwrap();
            assert_eq!(path.find(&value).map(ToString::to_string).as_deref(), expected, "{path:?}");
        }
        assert_eq!(JsonPath::new("").unwrap().find(&value), Some(&value));
    }

    #[test]
    fn faults_have_a_place() {
        for (path, character) in [("é[", 2), ("a[x]", 2), ("a..b", 2), (".a", 1), ("a.", 2), ("[\"a", 1)] {
            assert_eq!(JsonPath::new(path).unwrap_err().character, character, "{path}");
        }
    }
}
