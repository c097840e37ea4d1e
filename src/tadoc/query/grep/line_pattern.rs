//! Regular expressions over lines, in the syntax of the regex crate, on bytes.
//!
//! ```text
//! expression    parsed                   compiled
//! a[^b]c\s$     a [^b] c [ \t\n…] (?m:$)   a [^b\n] c [ \t…] (?m:$)
//! ```
//!
//! No part of the compiled form matches a line end, and the borders of the text count as borders of a line. So one
//! search over many lines finds the first match of the first line that has one. ripgrep does the same. A literal line
//! end can never match, and is refused. So is the flag `R`, whose borders depend on more than the line.
//!
//! # Smart case
//!
//! An expression in small letters matches letters of any case, as with `rg --smart-case`.
//!
//! Only letters that stand for themselves count: `\W` and `\pL` say nothing about case, `[A-Z]`
//! does. O(length of the expressions).

use std::borrow::Cow;
use std::convert::Infallible;
use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr, memrchr};
use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_syntax::ParserBuilder;
use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, ClassSetItem, Literal, Visitor, visit};
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition,
};

use crate::error::{Error, Result};
use crate::query::language::regex::{MAX_SOURCE_BYTES, RegexFault, size_fault, syntax_fault};
use crate::query::matching::candidates::TextPattern;

use super::places::demands_from;

/// Most bytes of the compiled form, the limit of the regex crate.
pub(super) const MAX_COMPILED_BYTES: usize = 10 << 20;

/// Most bytes of all expressions of a pattern together.
const MAX_SOURCES_BYTES: usize = 1 << 20;

/// An expression and the way in which it is read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineExpression<'a> {
    /// The expression.
    pub source: &'a str,
    /// If true, upper and lower case count as equal, as if it began with `(?i)`.
    pub is_any_case: bool,
    /// If true, it is a text and not a regular expression.
    pub is_literal: bool,
    /// If true, a match begins and ends at the border of a word.
    pub is_word: bool,
    /// If true, a match is a whole line. A line is a border of words, so `is_word` adds nothing.
    pub is_line: bool,
    /// If true, lines without a match are selected.
    pub is_inverted: bool,
}

/// A compiled expression that selects lines.
#[derive(Debug, Clone)]
pub struct LinePattern {
    /// The expression that is compiled. No part of it matches a line end.
    expression: Arc<Hir>,
    regex: Regex,
    demands: Vec<Vec<TextPattern>>,
    is_inverted: bool,
}

impl LinePattern {
    /// Compiles `expression`.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] named `pattern`, with the character that is at fault, counted
    /// from 1, if it is known: it cannot be parsed, it has a line end, or it is too large.
    pub fn new(expression: &LineExpression<'_>) -> Result<Self> {
        Self::any_of(&[expression.source], expression)
    }

    /// Compiles a pattern that matches where one of `sources` does; the first of them where several
    /// do. Each is read as `expression` says, whose own source is not used.
    ///
    /// ```
    /// use tadoc::query::{LineExpression, LinePattern};
    ///
    /// let words = LineExpression { is_word: true, ..LineExpression::default() };
    /// let pattern = LinePattern::any_of(&["disk", "(power|fan)"], &words)?;
    /// assert_eq!(pattern.matches(b"fan, disks, disk").collect::<Vec<_>>(), [0..3, 12..16]);
    /// # Ok::<(), tadoc::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new). Without a source nothing matches.
    pub fn any_of(sources: &[&str], expression: &LineExpression<'_>) -> Result<Self> {
        let len_bytes = sources.iter().map(|source| source.len()).sum();
        let parts = sources.iter().map(|source| {
            let parsed = Self::parsed(source, len_bytes, expression);
            parsed.map_err(|fault| fault.explained((sources.len() > 1).then_some(source)))
        });
        let parts = parts.collect::<Result<Vec<_>>>()?;
        let compiled = Self::compiled(Hir::alternation(parts), expression);
        compiled.map_err(|fault| fault.explained(None))
    }

    /// Parses one of the sources, which have `len_bytes` together.
    fn parsed(source: &str, len_bytes: usize, expression: &LineExpression<'_>) -> std::result::Result<Hir, LineFault> {
        within_lines(parsed(source, len_bytes, expression)?).map_err(|fault| fault.located(source))
    }

    fn compiled(mut within: Hir, expression: &LineExpression<'_>) -> std::result::Result<Self, LineFault> {
        let borders = match expression {
            LineExpression { is_line: true, .. } => Some([Look::StartLF, Look::EndLF]),
            LineExpression { is_word: true, .. } => Some([Look::WordStartHalfUnicode, Look::WordEndHalfUnicode]),
            _ => None,
        };
        if let Some([start, end]) = borders.map(|borders| borders.map(Hir::look)) {
            within = Hir::concat(vec![start, within, end]);
        }
        let demands = if expression.is_inverted { Vec::new() } else { demands_from(&within) };
        let config = Regex::config().nfa_size_limit(Some(MAX_COMPILED_BYTES)).utf8_empty(false);
        let regex = Regex::builder().configure(config).build_from_hir(&within);
        let regex = regex.map_err(|fault| LineFault::new(&size_fault(&fault).reason))?;
        Ok(Self { expression: Arc::new(within), regex, demands, is_inverted: expression.is_inverted })
    }

    /// Returns the demands on a document with a selected line. Its text matches, for each entry,
    /// one of the patterns.
    pub fn demands(&self) -> &[Vec<TextPattern>] {
        &self.demands
    }

    /// Returns the expression that selected lines match, or `None` if they do not match.
    pub(super) fn matched_expression(&self) -> Option<&Hir> {
        (!self.is_inverted).then_some(&*self.expression)
    }

    /// Returns true if `line`, which has no line end, is selected.
    pub fn selects(&self, line: &[u8]) -> bool {
        self.regex.is_match(line) != self.is_inverted
    }

    /// Returns the places of the successive matches in `line`, which has no line end.
    pub fn matches<'a>(&'a self, line: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
        self.regex.find_iter(line).map(|found| found.range())
    }

    /// Returns the first selected line of `text` from `at`, and the place of its first match.
    /// `text` consists of whole lines; one of them begins at `at`.
    pub(super) fn find_line(&self, text: &[u8], at: usize) -> Option<(Range<usize>, Range<usize>)> {
        if self.is_inverted { self.find_other_line(text, at) } else { self.find_matching_line(text, at) }
    }

    fn find_matching_line(&self, text: &[u8], at: usize) -> Option<(Range<usize>, Range<usize>)> {
        if at == text.len() {
            return None;
        }
        let found = self.regex.find(Input::new(text).range(at..))?;
        // Behind the last line end there is no line.
        if found.start() == text.len() && text.ends_with(b"\n") {
            return None;
        }
        let start = memrchr(b'\n', &text[at..found.start()]).map_or(at, |end| at + end + 1);
        Some((start..end_of_line(text, found.end()), found.range()))
    }

    /// Returns the first line without a match.
    fn find_other_line(&self, text: &[u8], mut at: usize) -> Option<(Range<usize>, Range<usize>)> {
        while at < text.len() {
            let line = at..end_of_line(text, at);
            if !self.regex.is_match(Input::new(text).range(line.clone())) {
                return Some((line.clone(), line));
            }
            at = line.end + 1;
        }
        None
    }
}

/// Parses one of the sources, which have `len_bytes` together.
fn parsed(source: &str, len_bytes: usize, expression: &LineExpression<'_>) -> std::result::Result<Hir, LineFault> {
    let too_long = |len: usize, most: usize| LineFault::new(&format!("it has {len} bytes, more than {most}"));
    if source.len() > MAX_SOURCE_BYTES {
        return Err(too_long(source.len(), MAX_SOURCE_BYTES));
    }
    if len_bytes > MAX_SOURCES_BYTES {
        return Err(too_long(len_bytes, MAX_SOURCES_BYTES));
    }
    let text = if expression.is_literal { Cow::Owned(regex_syntax::escape(source)) } else { Cow::Borrowed(source) };
    let mut parser = ParserBuilder::new();
    parser.case_insensitive(expression.is_any_case).multi_line(true).utf8(false);
    Ok(parser.build().parse(&text).map_err(|fault| syntax_fault(&text, &fault))?)
}

/// Returns the demands on a text in which one of `sources` matches, also over several lines. Each is read as
/// `expression` says, whose own source is not used. The demands are those of [`LinePattern::demands`].
///
/// ```
/// use tadoc::query::{LineExpression, demands_across_lines};
///
/// let demands = demands_across_lines(&[r"disk\s+full", "fan"], &LineExpression::default())?;
/// assert_eq!(demands[0].len(), 2);
/// # Ok::<(), tadoc::Error>(())
/// ```
///
/// # Errors
/// [`Error::InvalidArgument`] named `pattern`: a source cannot be parsed, or it is too large.
pub fn demands_across_lines(sources: &[&str], expression: &LineExpression<'_>) -> Result<Vec<Vec<TextPattern>>> {
    let len_bytes = sources.iter().map(|source| source.len()).sum();
    let parts = sources.iter().map(|source| {
        let parsed = parsed(source, len_bytes, expression);
        parsed.map_err(|fault| fault.explained((sources.len() > 1).then_some(source)))
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    Ok(if expression.is_inverted { Vec::new() } else { demands_from(&Hir::alternation(parts)) })
}

/// Returns the end of the line of `text` that has position `at`.
fn end_of_line(text: &[u8], at: usize) -> usize {
    memchr(b'\n', &text[at..]).map_or(text.len(), |end| at + end)
}

/// A reason why an expression cannot be used.
#[derive(Debug)]
struct LineFault {
    /// Index of the character at fault, if it is known.
    character: Option<usize>,
    reason: String,
}

impl From<RegexFault> for LineFault {
    fn from(RegexFault { character, reason }: RegexFault) -> Self {
        Self { character: Some(character), reason }
    }
}

impl LineFault {
    fn new(reason: &str) -> Self {
        Self { character: None, reason: reason.to_owned() }
    }

    /// Returns the error for this fault, in `source` if there are others.
    fn explained(self, source: Option<&&str>) -> Error {
        let from_source = source.map_or_else(String::new, |source| format!(" of `{source}`"));
        Error::InvalidArgument {
            name: "pattern",
            got: match self.character {
                Some(character) => format!("a fault at character {}{from_source}", character + 1),
                None => "a fault".to_owned(),
            },
            allowed: format!("a regular expression over one line: {}", self.reason),
        }
    }

    /// Adds the place of the first line end in `source`, if it is written as such.
    fn located(self, source: &str) -> Self {
        let place = source.find('\n').or_else(|| source.find(r"\n"));
        let character = place.map(|place| source[..place].chars().count());
        Self { character, ..self }
    }
}

/// Returns `hir` without anything that matches a line end, and without groups.
fn within_lines(hir: Hir) -> std::result::Result<Hir, LineFault> {
    Ok(match hir.into_kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => {
            let reason = "a line end is never inside a line; use two patterns, or documents with \
                          regexp_like";
            return Err(LineFault::new(reason));
        }
        HirKind::Literal(literal) => Hir::literal(literal.0),
        HirKind::Class(Class::Unicode(mut class)) => {
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(mut class)) => {
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End) => Hir::look(Look::EndLF),
        HirKind::Look(Look::StartCRLF | Look::EndCRLF) => {
            return Err(LineFault::new(r"the flag R is not known here; write \r?$"));
        }
        HirKind::Look(look) => Hir::look(look),
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let sub = Box::new(within_lines(*sub)?);
            Hir::repetition(Repetition { min, max, greedy, sub })
        }
        HirKind::Capture(capture) => within_lines(*capture.sub)?,
        HirKind::Concat(parts) => {
            Hir::concat(parts.into_iter().map(within_lines).collect::<std::result::Result<_, _>>()?)
        }
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.into_iter().map(within_lines).collect::<std::result::Result<_, _>>()?)
        }
    })
}

/// Returns true if upper and lower case count as equal by smart case: `sources` have a character
/// that stands for itself, and none of these is an upper-case letter. They are texts if
/// `is_literal` is true, else regular expressions. One that cannot be parsed says nothing.
///
/// ```
/// use tadoc::query::is_any_case_by_smart_case;
///
/// assert!(is_any_case_by_smart_case(&[r"disk\W+full"], false));
/// assert!(!is_any_case_by_smart_case(&["disk", "Full"], false));
/// assert!(!is_any_case_by_smart_case(&[r"\w+"], false));
/// ```
pub fn is_any_case_by_smart_case(sources: &[&str], is_literal: bool) -> bool {
    let mut found = Found::default();
    for source in sources {
        if is_literal {
            source.chars().for_each(|c| found.note(c));
        } else if let Ok(ast) = Parser::new().parse(source) {
            let Ok(from_source) = visit(&ast, Found::default());
            found.has_literal |= from_source.has_literal;
            found.has_upper_case |= from_source.has_upper_case;
        }
    }
    found.has_literal && !found.has_upper_case
}

/// Characters that stand for themselves.
#[derive(Default)]
struct Found {
    has_literal: bool,
    has_upper_case: bool,
}

impl Found {
    fn note(&mut self, c: char) {
        self.has_literal = true;
        self.has_upper_case |= c.is_uppercase();
    }

    fn note_literal(&mut self, literal: &Literal) {
        self.note(literal.c);
    }
}

impl Visitor for Found {
    type Output = Self;
    type Err = Infallible;

    fn finish(self) -> Result<Self, Infallible> {
        Ok(self)
    }

    fn visit_pre(&mut self, ast: &Ast) -> Result<(), Infallible> {
        if let Ast::Literal(literal) = ast {
            self.note_literal(literal);
        }
        Ok(())
    }

    fn visit_class_set_item_pre(&mut self, item: &ClassSetItem) -> Result<(), Infallible> {
        match item {
            ClassSetItem::Literal(literal) => self.note_literal(literal),
            ClassSetItem::Range(range) => {
                self.note_literal(&range.start);
                self.note_literal(&range.end);
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(source: &str) -> String {
        LinePattern::new(&LineExpression { source, ..Default::default() }).unwrap_err().to_string()
    }

    #[test]
    fn faults_name_their_place() {
        assert!(fault("é(").starts_with("pattern: got a fault at character 2, expected"));
        assert!(fault(r"a\n").contains("character 2") && fault(r"a\x0a").contains("a line end"));
        assert!(fault(r"(?mR)a$").contains("flag R"));
        assert!(fault(r"\w{500}{500}").contains("size"));
        assert!(fault(&"a".repeat(9000)).contains("9000 bytes, more than 8192"));
        let several =
            |sources: &[&str]| LinePattern::any_of(sources, &LineExpression::default()).unwrap_err().to_string();
        assert!(several(&["a", "é("]).contains("a fault at character 2 of `é(`, expected"));
        let half = "a".repeat(5000);
        assert!(several(&[&half, &half, "("]).contains("character 1 of `(`"));
        assert!(several(&[half.as_str(); 300]).contains("1500000 bytes, more than 1048576"));
    }

    #[test]
    fn the_first_of_several_expressions_has_precedence() {
        let matches = |sources: &[&str], expression: &LineExpression<'_>| {
            let pattern = LinePattern::any_of(sources, expression).unwrap();
            pattern.matches(b"abc a+b AB").collect::<Vec<_>>()
        };
        let plain = LineExpression::default();
        assert_eq!(matches(&["a", "abc"], &plain), [0..1, 4..5]);
        assert_eq!(matches(&["abc", "a"], &plain), [0..3, 4..5]);
        // A flag of one holds in this one only.
        assert_eq!(matches(&["(?i)ab", "c a"], &plain), [0..2, 2..5, 8..10]);
        let texts = LineExpression { is_literal: true, is_any_case: true, ..plain };
        assert_eq!(matches(&["a+b", "ab"], &texts), [0..2, 4..7, 8..10]);
        assert!(matches(&[], &plain).is_empty());
    }

    #[test]
    fn classes_lose_the_line_end_and_keep_the_rest() {
        let pattern = LinePattern::new(&LineExpression { source: r"a\s*b", ..Default::default() }).unwrap();
        assert_eq!(pattern.find_line(b"a\nb\n a \tb", 0), Some((4..9, 5..9)));
        assert_eq!(pattern.matches(b"ab a b").collect::<Vec<_>>(), [0..2, 3..6]);
    }

    /// Expected answers are those of ripgrep 15 (`rg -S`).
    #[test]
    fn letters_that_stand_for_themselves_count() {
        for (source, is_any_case) in [
            ("disk", true),
            ("Disk", false),
            ("é", true),
            ("É", false),
            ("ß42", true),
            (r"\bdisk\S\W\D", true),
            (r"\pL\p{Lu}a", true),
            (r"\pL", false),
            ("", false),
            (".*", false),
            ("^$", false),
            ("42", true),
            ("[a-z]x", true),
            ("[A-Z]x", false),
            ("[[:upper:]]x", true),
            ("[^aB]", false),
            ("[a&&[bC]]", false),
            (r"\x41", false),
            (r"\x61", true),
            ("a|(b|(?:C))", false),
            ("(a", false),
        ] {
            assert_eq!(is_any_case_by_smart_case(&[source], false), is_any_case, "{source}");
        }
        assert!(is_any_case_by_smart_case(&[r"\s(", "x"], true));
        assert!(!is_any_case_by_smart_case(&[r"\S", "x"], true));
    }
}
