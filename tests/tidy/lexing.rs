//! Reads Rust as text: blanks out comments and the content of literals, and finds names.

/// Returns `text` with blanks in place of comments and of the content of literals.
pub fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (kept, blanked) = match first {
            '/' if rest.starts_with("//") => (0, rest.find('\n').unwrap_or(rest.len())),
            '/' if rest.starts_with("/*") => (0, rest.find("*/").map_or(rest.len(), |end| end + 2)),
            '"' => (1, quoted_len(&rest[1..])),
            'r' if raw_quote_len(rest) > 0 && !code.ends_with(is_name_char) => {
                let quote = raw_quote_len(rest);
                let close = format!("\"{}", "#".repeat(quote - 2));
                (quote, rest[quote..].find(&close).map_or(rest.len() - quote, |end| end + close.len()))
            }
            '\'' => (1, char_len(&rest[1..])),
            _ => (first.len_utf8(), 0),
        };
        code.push_str(&rest[..kept]);
        let blank = |c: char| if c == '\n' { c } else { ' ' };
        code.extend(rest[kept..kept + blanked].chars().map(blank));
        rest = &rest[kept + blanked..];
    }
    code
}

/// Returns the number of bytes of a string literal behind its opening quote, closing quote
/// included.
fn quoted_len(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// Returns the number of bytes of `r"`, `r#"` and so on at the start of `rest`, or 0 without one.
fn raw_quote_len(rest: &str) -> usize {
    let hashes = rest[1..].bytes().take_while(|&b| b == b'#').count();
    if rest[1 + hashes..].starts_with('"') { hashes + 2 } else { 0 }
}

/// Returns the number of bytes of a character literal behind its opening quote, or 0 for a
/// lifetime.
fn char_len(rest: &str) -> usize {
    let mut chars = rest.char_indices();
    match chars.next() {
        Some((_, '\\')) => rest[2..].find('\'').map_or(0, |end| end + 3),
        Some(_) => chars.next().filter(|&(_, c)| c == '\'').map_or(0, |(at, _)| at + 1),
        None => 0,
    }
}

pub fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns the names (identifiers and keywords) in a piece of code.
pub fn names(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c| !is_name_char(c)).filter(|name| !name.is_empty())
}
