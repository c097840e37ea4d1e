//! Parser of queries: from text to an expression.
//!
//! ```text
//! query     = not-part { "AND" not-part | "OR" … }
//! or        = and { "OR" and }
//! and       = not { "AND" not }
//! not       = list { "NOT" list }
//! list      = part { part }                               AND is implied
//! part      = "(" or ")"
//!           | "NEAR" "(" phrase { phrase } [ "," number ] ")"
//!           | quoted [ "~" number ]
//!           | [ "^" ] ( quoted [ "*" ] | word )
//! ```
//!
//! The order of binding is that of SQLite's FTS5 (section 3.6 of its documentation). Operators are words in capitals
//! that stand alone. A parenthesis opens a group only where a part begins: `main(argc)` is the phrase `main argc`.
//! Every error names the character at which it was found, counted from 1.
//!
//! FTS5 takes `path:power` for a filter on a column. A query of ours is about the text of documents only, and most
//! colons in queries are text: `12:30`, `std::io`, `http://x`. So a column filter is refused where it names a column
//! that documents have, and all else is words as before. Likewise `-word`, `!word`, `word~`, `word^2`, `*:*`, `[a TO
//! b]`, `[word="a"]`, `&&`, `“a b”` and `near(a b)` mean something in other languages. They are refused, and all other
//! minus signs, tildes and words `near` are text. FTS5 takes operators in small letters for words, and so does this
//! parser. It notes those that stand between two parts, because who writes `heart or soul` seldom means the word `or`.
//!
//! Time is O(text). Groups nest to a depth of [`MAX_DEPTH`]; a limit that is exceeded ends the parse at that point.

use crate::error::{Error, Result};
use crate::text::TokenizerProfile;

use super::words::{
    Budget, Character, Marks, QueryLimits, STRAIGHT_QUOTES, Words, ending_in_prefix, invalid, meant_otherwise, quoted,
    regex_end, shown, words_from,
};
use crate::query::language::{Expression, Item, Leaf, Leaves, Place};

/// Most groups that contain each other, as in FTS5.
const MAX_DEPTH: usize = 256;
/// Words that lie between the parts of NEAR, unless a number is given; as in FTS5.
const DEFAULT_NEAR_WORDS: u64 = 10;
/// Operator before a list of words that lie near each other.
const NEAR: &str = "NEAR";
const AND: &str = "AND";
const OR: &str = "OR";
const NOT: &str = "NOT";
/// All operators that are words.
const OPERATORS: [&str; 4] = [AND, OR, NOT, NEAR];
/// Characters up to which the list of a `near` in other case is looked for. So time stays O(text).
const MAX_OTHER_NEAR: usize = 1000;
/// Characters up to which the end of a range `[a TO b]` or of a single quote is looked for.
const MAX_RANGE_CHARS: usize = 100;
/// Largest number of words of NEAR and behind a quoted phrase.
const MAX_NEAR_WORDS: u64 = 1_000_000;
/// Columns of documents, which other engines filter by `column:word`.
const COLUMNS: [&str; 5] = ["content", "doc_id", "path", "text", "title"];

/// A parsed query.
pub(in crate::query) struct Parsed {
    pub items: Vec<Item>,
    pub leaves: Vec<Leaf>,
    pub root: Expression,
    /// Text around the words of each part, without blanks at its ends, if it is not blank.
    pub punctuation: Vec<String>,
    /// Words between parts that would be operators in capitals, each once.
    pub small_operators: Vec<String>,
}

/// Parses `text`; `None` if it is blank. If it is exact, the text between words counts.
pub(in crate::query) fn parse(
    profile: TokenizerProfile,
    text: &str,
    limits: &QueryLimits,
    is_exact: bool,
) -> Result<Option<Parsed>> {
    if text.len() as u64 > limits.max_bytes {
        return Err(Error::Capacity {
            what: "a query in bytes",
            requested: text.len() as u64,
            limit: limits.max_bytes,
            knob: "tadoc.max_query_bytes",
        });
    }
    let text: Vec<Character> = text.chars().enumerate().collect();
    let budget = Budget::new(limits);
    let mut parser = Parser {
        text: &text,
        at: 0,
        depth: 0,
        profile,
        budget,
        is_exact,
        leaves: Leaves::new(),
        punctuation: Vec::new(),
        small_operators: Vec::new(),
    };
    if parser.next() == Next::End {
        return Ok(None);
    }
    let root = parser.any()?;
    if parser.next() != Next::End {
        return Err(invalid(
            format!("a closing parenthesis that closes nothing, {}", parser.here()),
            "parentheses in pairs; one behind a word, as in f(a, opens no group; write one inside quotes to \
             search beside it",
        ));
    }
    let Parser { punctuation, small_operators, leaves, .. } = parser;
    let (items, leaves) = leaves.finish();
    Ok(Some(Parsed { items, leaves, root, punctuation, small_operators }))
}

/// Part of a query that begins at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    End,
    Open,
    Close,
    Operator(&'static str),
    /// The list of NEAR, whose parenthesis has this index.
    Near(usize),
    Quoted,
    /// The sign in front of a part at the first word of a document.
    First,
    Word,
}

struct Parser<'t> {
    text: &'t [Character],
    /// Index of the next character.
    at: usize,
    depth: usize,
    profile: TokenizerProfile,
    budget: Budget,
    is_exact: bool,
    leaves: Leaves,
    punctuation: Vec<String>,
    small_operators: Vec<String>,
}

impl Parser<'_> {
    /// Skips white space and returns the part that begins there.
    fn next(&mut self) -> Next {
        while self.char_at(self.at).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        let Some(first) = self.char_at(self.at) else { return Next::End };
        match first {
            '(' => return Next::Open,
            ')' => return Next::Close,
            '"' => return Next::Quoted,
            '^' => return Next::First,
            _ => {}
        }
        for operator in [AND, OR, NOT] {
            if self.is_word_at(operator) {
                return Next::Operator(operator);
            }
        }
        self.near_list().map_or(Next::Word, Next::Near)
    }

    fn char_at(&self, at: usize) -> Option<char> {
        self.text.get(at).map(|&(_, character)| character)
    }

    /// Returns true if `word` stands alone at the next character.
    fn is_word_at(&self, word: &str) -> bool {
        self.starts_with(word)
            && self.char_at(self.at + word.len()).is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ')' | '"'))
    }

    fn starts_with(&self, word: &str) -> bool {
        (self.at..).zip(word.chars()).all(|(at, expected)| self.char_at(at) == Some(expected))
    }

    /// Returns the index of the parenthesis of `NEAR(` or `NEAR (` at the next character.
    fn near_list(&self) -> Option<usize> {
        let behind = self.at + NEAR.len();
        let rest = self.text.get(behind..).filter(|_| self.starts_with(NEAR))?;
        let num_blanks = rest.iter().take_while(|(_, c)| c.is_whitespace()).count();
        (self.char_at(behind + num_blanks) == Some('(')).then_some(behind + num_blanks)
    }

    fn here(&self) -> String {
        format!("at character {}", self.at + 1)
    }

    /// Parses parts joined by OR.
    fn any(&mut self) -> Result<Expression> {
        let mut parts = vec![self.all()?];
        while self.skip_operator(OR) {
            parts.push(self.all()?);
        }
        Ok(Expression::any(parts))
    }

    /// Parses parts joined by AND.
    fn all(&mut self) -> Result<Expression> {
        let mut parts = vec![self.without()?];
        while self.skip_operator(AND) {
            parts.push(self.without()?);
        }
        Ok(Expression::all(parts))
    }

    /// Parses a part, and the parts that NOT excludes.
    fn without(&mut self) -> Result<Expression> {
        let kept = self.list()?;
        let mut excluded = Vec::new();
        while self.skip_operator(NOT) {
            excluded.push(self.list()?);
        }
        Ok(Expression::without(kept, excluded))
    }

    fn skip_operator(&mut self, operator: &str) -> bool {
        let is_next = matches!(self.next(), Next::Operator(next) if next == operator);
        if is_next {
            self.at += operator.len();
        }
        is_next
    }

    /// Parses parts side by side, one or more.
    fn list(&mut self) -> Result<Expression> {
        let mut parts = Vec::new();
        // The part before, if it looks like an operator. A part behind it makes it one between
        // parts.
        let mut small_operator = None;
        loop {
            let next = self.next();
            if let Some(word) = small_operator.take().filter(|_| begins_part(next)) {
                self.note_small_operator(word);
            }
            let part = match next {
                Next::End | Next::Close | Next::Operator(_) => break,
                Next::Open => self.group()?,
                Next::Near(open) => self.near(open)?,
                Next::Quoted => self.quoted()?,
                Next::First => self.first()?,
                Next::Word => {
                    let start = self.at;
                    let words = self.word(bare_end)?;
                    small_operator = self.small_operator(start).filter(|_| !parts.is_empty());
                    self.phrase(words, false)
                }
            };
            parts.push(part);
        }
        if parts.is_empty() {
            let got = match self.next() {
                Next::Operator(operator) => {
                    format!("{operator} with nothing before it, {}", self.here())
                }
                Next::Close => format!("nothing before the parenthesis {}", self.here()),
                _ => format!("nothing behind the last operator or parenthesis, {}", self.here()),
            };
            return Err(invalid(
                got,
                "words, \"phrases\" or (groups) on both sides of AND, OR and NOT, as in (a OR b) \
                 NOT c; write \"AND\" in quotes for the word",
            ));
        }
        Ok(Expression::all(parts))
    }

    fn group(&mut self) -> Result<Expression> {
        let start = self.at;
        if self.depth == MAX_DEPTH {
            return Err(invalid(
                format!("groups that nest more deeply, {}", self.here()),
                &format!("groups that nest at most {MAX_DEPTH} deep"),
            ));
        }
        self.depth += 1;
        self.at += 1;
        let inner = self.any()?;
        if self.next() != Next::Close {
            return Err(unclosed(start));
        }
        self.at += 1;
        self.depth -= 1;
        Ok(inner)
    }

    fn near(&mut self, open: usize) -> Result<Expression> {
        let start = self.at;
        self.at = open + 1;
        let mut items = Vec::new();
        let mut max_between = DEFAULT_NEAR_WORDS;
        let mut has_number = false;
        let mut small_operator = None;
        loop {
            let next = self.next();
            let is_number = self.char_at(self.at) == Some(',');
            if let Some(word) = small_operator.take().filter(|_| begins_part(next) && !is_number) {
                self.note_small_operator(word);
            }
            match (next, self.char_at(self.at)) {
                (Next::End, _) => return Err(unclosed(start)),
                (Next::Close, _) => break,
                (_, Some(',')) => {
                    self.at += 1;
                    self.next();
                    (max_between, has_number) = (self.number("NEAR(a b, 10)")?, true);
                    match self.next() {
                        Next::Close => break,
                        Next::End => return Err(unclosed(start)),
                        _ => return Err(self.not_in_near()),
                    }
                }
                (Next::Quoted, _) => {
                    let words = self.quoted_item()?;
                    items.push(self.placed(words));
                }
                (Next::Word, _) => {
                    let start = self.at;
                    let words = self.word(near_end)?;
                    small_operator = self.small_operator(start).filter(|_| !items.is_empty());
                    items.push(self.placed(words));
                }
                _ => return Err(self.not_in_near()),
            }
            if self.slop_number().is_some() {
                return Err(self.not_in_near());
            }
        }
        let fault = match items.len() {
            0 => Some("without words"),
            1 if has_number => Some("with a number for one part"),
            _ => None,
        };
        if let Some(fault) = fault {
            return Err(invalid(format!("NEAR {fault}, at character {}", start + 1), NEAR_SYNTAX));
        }
        self.at += 1;
        Ok(Expression::Leaf(self.leaves.near(items, max_between)))
    }

    /// Returns the item from character `start` up to here, if it is an operator but for its case.
    fn small_operator(&self, start: usize) -> Option<String> {
        let item = &self.text[start..self.at];
        let is_short = item.len() <= NEAR.len();
        let written = is_short.then(|| item.iter().map(|&(_, c)| c).collect::<String>());
        written.filter(|word| OPERATORS.iter().any(|name| word.eq_ignore_ascii_case(name)))
    }

    fn note_small_operator(&mut self, word: String) {
        if !self.small_operators.contains(&word) {
            self.small_operators.push(word);
        }
    }

    fn not_in_near(&self) -> Error {
        let shown: String = self.text[self.at..].iter().map(|&(_, character)| character).take(10).collect();
        invalid(format!("`{shown}` inside NEAR, {}", self.here()), NEAR_SYNTAX)
    }

    fn quoted(&mut self) -> Result<Expression> {
        let start = self.at;
        let words = self.quoted_item()?;
        if self.char_at(self.at) != Some('~') {
            return Ok(self.phrase(words, false));
        }
        self.at += 1;
        let max_between = self.number("\"a b\"~5")?;
        if max_between == 0 || words.patterns.len() == 1 {
            return Ok(self.phrase(words, false));
        }
        if let Some(punctuation) = punctuation_for(&words).next().filter(|_| self.is_exact) {
            return Err(invalid(
                format!("`{punctuation}` in a phrase with gaps, at character {}", start + 1),
                "words and blanks where exact => true and other words may stand between them; \
                 NEAR(\"§ a\" b, 5) keeps the text around its parts",
            ));
        }
        Ok(Expression::Leaf(self.leaves.gapped(words.patterns, max_between)))
    }

    /// Parses a part behind `^`.
    fn first(&mut self) -> Result<Expression> {
        let start = self.at;
        let before = start.checked_sub(1).and_then(|at| self.char_at(at));
        if matches!(before, Some('"' | ')')) {
            return Err(not_first("directly behind a part", start));
        }
        self.at += 1;
        let is_blank = self.char_at(self.at).is_none_or(char::is_whitespace);
        let words = match self.next() {
            Next::Quoted if !is_blank => self.quoted_item()?,
            Next::Word if !is_blank => self.word(bare_end)?,
            _ => return Err(not_first("without a word or phrase behind it", start)),
        };
        match self.slop_number() {
            Some(_) => Err(not_first("before a phrase with gaps", start)),
            None => Ok(self.phrase(words, true)),
        }
    }

    /// Returns the first digit of `~5` behind a quoted phrase.
    fn slop_number(&self) -> Option<char> {
        let is_slop = self.char_at(self.at) == Some('~');
        self.char_at(self.at + 1).filter(|digit| is_slop && digit.is_ascii_digit())
    }

    /// Adds words that follow each other, at the first word of a document if `is_first`.
    fn phrase(&mut self, words: Words, is_first: bool) -> Expression {
        let (item, place) = self.placed(words);
        Expression::Leaf(self.leaves.placed(item, Place { is_first, ..place }))
    }

    /// Returns an item with the texts that must stand around its words: none unless they count.
    fn placed(&self, words: Words) -> (Item, Place) {
        // Words can touch without a gap, as in `日本`.
        let has_gaps = words.gaps.len() > 2 || words.gaps.iter().any(|gap| !gap.is_empty());
        let gaps = if self.is_exact && has_gaps { words.gaps } else { Vec::new() };
        (words.patterns, Place { is_first: false, gaps })
    }

    fn quoted_item(&mut self) -> Result<Words> {
        let start = self.at;
        let (item, end) = quoted(self.text, start)?;
        self.at = end;
        let star = self.star_behind();
        let marks = match star {
            Some(_) => Marks::Characters,
            None if self.is_exact => Marks::Text,
            None => Marks::Either,
        };
        let words = self.words(start, &item, marks)?;
        let Some(star) = star else { return Ok(words) };
        self.at = star + 1;
        ending_in_prefix(words, star, &mut self.budget)
    }

    /// Returns the index of a star that stands alone behind the quote that was closed here. Blanks
    /// may stand before it, as in FTS5.
    fn star_behind(&self) -> Option<usize> {
        let is_blank = |at: &usize| self.char_at(*at).is_some_and(char::is_whitespace);
        let star = self.at + (self.at..self.text.len()).take_while(is_blank).count();
        let is_end = |c: char| c.is_whitespace() || matches!(c, '(' | ')' | '"' | ',');
        let is_alone = self.char_at(star + 1).is_none_or(is_end);
        (self.char_at(star) == Some('*') && is_alone).then_some(star)
    }

    /// Cuts an item that starts at character `start` into words, and notes its punctuation.
    fn words(&mut self, start: usize, item: &[Character], marks: Marks) -> Result<Words> {
        let words = words_from(self.profile, start, item, marks, &mut self.budget)?;
        self.punctuation.extend(punctuation_for(&words).map(str::to_owned));
        Ok(words)
    }

    /// Parses an item without quotes, which ends where `end_of` returns.
    fn word(&mut self, end_of: fn(&[Character], usize) -> usize) -> Result<Words> {
        let start = self.at;
        if self.starts_with(NEAR) && self.is_near_without_list() {
            return Err(invalid(format!("NEAR without a list, {}", self.here()), NEAR_SYNTAX));
        }
        if let Some(column) = self.column_filter() {
            let got = format!("`{column}:` before a word, {}", self.here());
            return Err(invalid(got, &not_a_filter(column)));
        }
        if self.is_near_in_other_case() {
            let word = shown(&self.text[start..start + NEAR.len()]);
            return Err(invalid(format!("`{word}` before a list, {}", self.here()), NEAR_SYNTAX));
        }
        let word_at = match self.char_at(start) {
            Some('/') => regex_end(self.text, start)?.unwrap_or(start),
            _ => start,
        };
        self.at = end_of(self.text, word_at);
        let item = &self.text[start..self.at];
        if word_at == start {
            self.refuse_other_languages(start, item)?;
        }
        self.words(start, item, Marks::Characters)
    }

    /// Refuses an item without quotes, from character `start`, that means something in the language
    /// of another engine and would be text here.
    fn refuse_other_languages(&self, start: usize, item: &[Character]) -> Result<()> {
        let before = start.checked_sub(1).and_then(|at| self.char_at(at));
        let begins = before.is_none_or(|c| c.is_whitespace() || c == '(');
        let written: String = item.iter().map(|&(_, character)| character).collect();
        let behind_sign = self.char_at(start + 1);
        let is_group = behind_sign.is_some_and(|c| matches!(c, '"' | '('));
        let is_part = is_group || behind_sign.is_some_and(char::is_alphabetic);
        let end = start + item.len();
        let allowed = match written.as_str() {
            text if begins && is_part && text.starts_with(['-', '!']) => {
                "NOT before what is excluded, as in a NOT b; write \"-b\" in quotes for the text"
            }
            text if begins && is_group && text.starts_with('+') => {
                "parts without a sign: documents hold all of them anyway"
            }
            text if text.len() > 1 && text.ends_with(':') && self.char_at(end) == Some('"') => {
                "a query without column filters; write a colon inside quotes for the text, or a condition \
                 on the column in WHERE"
            }
            text if text.starts_with('[') && text.ends_with('=') && self.char_at(end) == Some('"') => {
                "words, patterns such as pre* and /expressions/; a query has no attributes of words"
            }
            text if text.starts_with(['[', '{']) && self.is_range_from(end) => {
                "words or patterns; a query has no ranges, and WHERE has them for columns"
            }
            text if text.starts_with(['\'', '‘']) && self.closes_single_quote(end) => STRAIGHT_QUOTES,
            text => match meant_otherwise(text) {
                Some(allowed) => allowed,
                None => return Ok(()),
            },
        };
        Err(invalid(format!("`{}` at character {}", shown(item), start + 1), allowed))
    }

    /// Returns the text at character `at`, at most [`MAX_RANGE_CHARS`] of it.
    fn text_from(&self, at: usize) -> String {
        self.text[at..].iter().map(|&(_, character)| character).take(MAX_RANGE_CHARS).collect()
    }

    /// Returns true if an item ends with a single quote behind character `at`.
    fn closes_single_quote(&self, at: usize) -> bool {
        self.text_from(at).split_whitespace().any(|word| word.ends_with(['\'', '’']))
    }

    /// Returns true if ` TO b]` or ` TO b}` is at character `at`.
    fn is_range_from(&self, at: usize) -> bool {
        let rest = self.text_from(at);
        let mut words = rest.split_whitespace();
        words.next() == Some("TO") && words.next().is_some_and(|word| word.ends_with([']', '}']))
    }

    /// Returns true if `near(a b)` or `near (a b, 5)` begins at the next character, in any case. A
    /// parenthesis without a blank inside is text, as in `near(x)`.
    fn is_near_in_other_case(&self) -> bool {
        let behind = self.at + NEAR.len();
        let Some(rest) = self.text.get(behind..) else { return false };
        let written = self.text[self.at..behind].iter().map(|&(_, c)| c.to_ascii_uppercase());
        let num_blanks = rest.iter().take_while(|(_, c)| c.is_whitespace()).count();
        let Some(((_, '('), list)) = rest.get(num_blanks..).and_then(<[_]>::split_first) else {
            return false;
        };
        if !written.eq(NEAR.chars()) {
            return false;
        }
        let mut ends = list.iter().take(MAX_OTHER_NEAR).map(|&(_, c)| c == ')');
        let Some(close) = ends.position(|is_end| is_end) else { return false };
        let list: String = list[..close].iter().map(|&(_, c)| c).collect();
        let list = list.trim();
        let number = list.rsplit_once(',').map(|(_, number)| number.trim());
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        list.contains(char::is_whitespace) && (num_blanks == 0 || number.is_some_and(is_number))
    }

    /// Returns the column of a filter `column:word` at the next character.
    fn column_filter(&self) -> Option<&'static str> {
        let is_column = |column: &&str| {
            let written = self.text[self.at..].iter().map(|&(_, c)| c.to_ascii_lowercase());
            let behind = self.at + column.len() + 1;
            written.take(column.len() + 1).eq(column.chars().chain([':']))
                && self.char_at(behind).is_some_and(|c| !c.is_whitespace() && !matches!(c, ':' | ')'))
        };
        COLUMNS.into_iter().find(is_column)
    }

    /// Returns true for `NEAR` alone and for `NEAR/5`, as other languages write it.
    fn is_near_without_list(&self) -> bool {
        let behind = self.at + NEAR.len();
        self.is_word_at(NEAR)
            || self.char_at(behind) == Some('/') && self.char_at(behind + 1).is_some_and(|c| c.is_ascii_digit())
    }

    /// Parses a number of words. `example` shows where it belongs.
    fn number(&mut self, example: &str) -> Result<u64> {
        let start = self.at;
        let mut number = Some(0u64);
        while let Some(digit) = self.char_at(self.at).and_then(|c| c.to_digit(10)) {
            number = number.and_then(|n| n.checked_mul(10)?.checked_add(digit.into()));
            self.at += 1;
        }
        let is_border = self.char_at(self.at).is_none_or(|c| c.is_whitespace() || matches!(c, '(' | ')' | '"'));
        let number = number.filter(|&n| self.at > start && is_border && n <= MAX_NEAR_WORDS);
        number.ok_or_else(|| {
            let shown: String = self.text[start..].iter().map(|&(_, character)| character).take(20).collect();
            invalid(
                format!("`{shown}` at character {}", start + 1),
                &format!("a number of words up to {MAX_NEAR_WORDS}, as in {example}"),
            )
        })
    }
}

const NEAR_SYNTAX: &str = "NEAR(a \"b c\", 5): words and phrases, then the most words between them; \
                           write \"NEAR\" in quotes for the word";

/// Returns true if a part begins here, and no operator.
fn begins_part(next: Next) -> bool {
    !matches!(next, Next::End | Next::Close | Next::Operator(_))
}

/// Returns the texts around words that are not blank, without blanks at their ends.
fn punctuation_for(words: &Words) -> impl Iterator<Item = &str> {
    words.gaps.iter().map(|gap| gap.trim()).filter(|gap| !gap.is_empty())
}

/// Returns the error of a `^` at index `start`.
fn not_first(what: &str, start: usize) -> Error {
    invalid(
        format!("`^` {what}, at character {}", start + 1),
        "^word or ^\"a phrase\", at the first word of a document; write \"^\" inside quotes for the \
         character",
    )
}

/// Returns what to write instead of a filter on `column`.
fn not_a_filter(column: &str) -> String {
    format!(
        "a query without column filters, because it is about the text of documents; write \
         \"{column}:word\" in quotes for the text, or a condition on {column} in WHERE"
    )
}

fn unclosed(start: usize) -> Error {
    invalid(
        format!("a parenthesis that is not closed, at character {}", start + 1),
        "parentheses in pairs; write one inside quotes to search beside it",
    )
}

/// Returns the end of an item without quotes: white space, a quote, or a parenthesis that closes
/// none of the item.
fn bare_end(text: &[Character], start: usize) -> usize {
    let mut num_open = 0;
    let is_end = |&(_, character): &Character| match character {
        '(' => {
            num_open += 1;
            false
        }
        ')' if num_open > 0 => {
            num_open -= 1;
            false
        }
        other => other.is_whitespace() || matches!(other, '"' | ')'),
    };
    text[start..].iter().position(is_end).map_or(text.len(), |len| start + len)
}

/// Returns the end of an item inside NEAR.
fn near_end(text: &[Character], start: usize) -> usize {
    let is_end = |&(_, c): &Character| c.is_whitespace() || matches!(c, '"' | ')' | ',');
    text[start..].iter().position(is_end).map_or(text.len(), |len| start + len)
}
