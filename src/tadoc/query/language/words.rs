//! Cuts the text of an item of a query into the patterns of its words.
//!
//! ```text
//! item      power pl* /stat.*/ quik~1
//! words     power  pl*  /stat.*/  quik~1           by the tokenizer, regular expressions whole
//! ```
//!
//! While an item is cut into words, a wildcard counts as a letter. In every profile a letter joins the letters and
//! digits beside it: `well-kno*` is `well` then `kno*`, and a wildcard alone is a word. (An underscore alone is no word
//! in profile `uax29`; it would join the separators beside it.) Words of `uax29` can touch, and there a wildcard joins
//! the words that it touches where these can have more characters:
//!
//! ```text
//! カ?カナ     カ?カナ          a run of katakana is one word
//! 東京*ワー   東 京 *ワー      an ideograph is always a word of its own
//! 日本*       日 本*           `*` is none here
//! 日?語       日 ? 語
//! ```
//!
//! A word and `~1` or `~2` at its end is a word within that edit distance. A star behind the
//! closing quote makes the last word inside a prefix.
//!
//! Items that mean something in the query languages of other engines are refused with what to write here.
//! Time is O(text). A limit that is exceeded ends the parse at that point.

use crate::error::{Error, Result};
use crate::text::{TokenizerProfile, for_each_token, in_one_word};

use super::Item;
use super::pattern::{FuzzyWord, MAX_CHARS, PatternChar, Wildcard, WordPattern, is_special};
use super::regex::WordRegex;

/// Character that replaces a wildcard while the text around it is cut.
const PLACEHOLDER: char = 'x';
/// Most wildcards and regular expressions of a query. Each reads all words of a dictionary.
const MAX_PATTERNS: usize = 256;
/// Most bytes of the compiled forms of all regular expressions of a query.
const MAX_REGEXES_BYTES: usize = 16 << 20;
/// Most question marks in a row that are text.
const MAX_MARKS: usize = 8;
/// Most characters of a parameter's name.
const MAX_NAME_CHARS: usize = 100;
/// Most characters of a query that an error repeats.
const MAX_SHOWN_CHARS: usize = 80;

/// A character with its index in the query, from 0.
pub(in crate::query) type Character = (usize, char);

/// Limits of the size of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueryLimits {
    /// Most bytes of the text of a query.
    pub max_bytes: u64,
    /// Most words and patterns of all items together.
    pub max_terms: u64,
}

impl Default for QueryLimits {
    fn default() -> Self {
        Self { max_bytes: 1 << 20, max_terms: 10_000 }
    }
}

/// Counters of the parts of a query so far, and their limit.
#[derive(Default)]
pub(in crate::query) struct Budget {
    max_terms: u64,
    num_terms: u64,
    num_patterns: usize,
    regexes_bytes: usize,
}

impl Budget {
    pub fn new(limits: &QueryLimits) -> Self {
        Self { max_terms: limits.max_terms, ..Self::default() }
    }

    /// Adds the words of an item, the first of which is at `character` of the query.
    fn add(&mut self, words: &[WordPattern], character: usize) -> Result<()> {
        self.num_terms += words.len() as u64;
        if self.num_terms > self.max_terms {
            return Err(Error::Capacity {
                what: "a query in words",
                requested: self.num_terms,
                limit: self.max_terms,
                knob: "tadoc.max_query_terms",
            });
        }
        let num_patterns = words.iter().filter(|word| word.as_spellings().is_none()).count();
        self.regexes_bytes += words.iter().map(WordPattern::compiled_bytes).sum::<usize>();
        self.add_patterns(num_patterns, character)
    }

    fn add_patterns(&mut self, num_patterns: usize, character: usize) -> Result<()> {
        self.num_patterns += num_patterns;
        if self.num_patterns > MAX_PATTERNS || self.regexes_bytes > MAX_REGEXES_BYTES {
            let got = format!("more, up to character {}", character + 1);
            let allowed = format!(
                "at most {MAX_PATTERNS} wildcards and regular expressions, which take at most \
                 {MAX_REGEXES_BYTES} bytes compiled"
            );
            return Err(invalid(got, &allowed));
        }
        Ok(())
    }
}

/// Returns the item whose opening quote is at `start`, with doubled quotes made single, and the
/// index after its closing quote.
pub(in crate::query) fn quoted(text: &[Character], start: usize) -> Result<(Vec<Character>, usize)> {
    let mut item = Vec::new();
    let mut at = start + 1;
    while let Some(&(place, character)) = text.get(at) {
        let is_quote = character == '"';
        if is_quote && text.get(at + 1).is_none_or(|&(_, next)| next != '"') {
            return Ok((item, at + 1));
        }
        item.push((place, character));
        at += if is_quote { 2 } else { 1 };
    }
    Err(invalid(
        format!("a quote that is not closed, at character {}", start + 1),
        "quotes in pairs; write \"\" inside quotes for a quote character",
    ))
}

/// Returns the index after the slash that closes the regular expression whose first slash is at `start`, or `None`
/// if the slash is text: `/usr/bin`, `sum= / n`. An expression ends where a word ends, and does not begin with
/// white space.
///
/// # Errors
/// The text cannot be an expression, but has characters that only expressions have.
pub(in crate::query) fn regex_end(text: &[Character], start: usize) -> Result<Option<usize>> {
    let inside = &text[start + 1..];
    if inside.first().is_none_or(|&(_, first)| first.is_whitespace()) {
        return Ok(None);
    }
    let mut is_escaped = false;
    let closes = |&(_, character): &Character| {
        let is_slash = character == '/' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_slash
    };
    let len = inside.iter().position(closes);
    let behind = len.and_then(|len| inside.get(len + 1));
    match (len, behind) {
        (Some(len), None) => return Ok(Some(start + len + 2)),
        (Some(len), Some(&(_, next))) if ends_regex(next) => return Ok(Some(start + len + 2)),
        _ => {}
    }
    let written = inside.iter().take(len.unwrap_or(inside.len())).take_while(|&&(_, c)| !c.is_whitespace());
    if !written.clone().any(|&(_, character)| is_of_regexes(character)) {
        return Ok(None);
    }
    let (got, allowed) = match behind {
        None => (
            format!("a regular expression that is not closed, at character {}", text[start].0 + 1),
            "/…/ with a slash at both ends; write \\/ for a slash that begins a word",
        ),
        Some((at, next)) => (
            format!(
                "`{}` followed by `{next}` at character {}",
                shown(&text[start..=start + 1 + len.unwrap_or(0)]),
                at + 1
            ),
            "white space behind a regular expression; write \\/ for a slash that begins a word",
        ),
    };
    Err(invalid(got, allowed))
}

/// Returns true if `character` ends a regular expression that is closed before it.
fn ends_regex(character: char) -> bool {
    character.is_whitespace() || matches!(character, '"' | '(' | ')' | ',')
}

/// Returns true for characters of regular expressions that paths seldom have.
fn is_of_regexes(character: char) -> bool {
    matches!(character, '(' | ')' | '[' | ']' | '{' | '}' | '|' | '+' | '^' | '$' | '\\')
}

/// Meaning of question marks behind a word at the end of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) enum Marks {
    /// One character each.
    Characters,
    /// One character each, or text: `"who is on first?"`.
    Either,
    /// Text.
    Text,
}

/// Returns true if the question mark at `at` is text: in front of a parameter, as in `x.org/p?q=1`, and at the end of
/// the item if `marks` are text there.
fn is_question(item: &[Character], at: usize, marks: Marks) -> bool {
    begins_parameter(&item[at + 1..]) && at > 0 && item[at - 1].1.is_alphanumeric()
        || marks == Marks::Text && at >= item.len() - num_final_marks(item)
}

/// Returns the number of question marks behind a word at the end of `item`, at most [`MAX_MARKS`].
fn num_final_marks(item: &[Character]) -> usize {
    let num_marks = item.iter().rev().take(MAX_MARKS).take_while(|(_, character)| *character == '?').count();
    let is_behind_word = num_marks < item.len() && item[item.len() - 1 - num_marks].1.is_alphanumeric();
    if is_behind_word { num_marks } else { 0 }
}

/// Returns the pattern of `pieces`, whose last `num_marks` may be missing.
fn with_optional_end(pieces: impl Iterator<Item = PatternChar>, num_marks: usize) -> Option<WordPattern> {
    let pieces: Vec<PatternChar> = pieces.collect();
    let is_end = |pieces: &[PatternChar]| pieces.iter().all(|piece| *piece == PatternChar::One);
    let (word, end) = pieces.split_at_checked(pieces.len().checked_sub(num_marks)?)?;
    if !is_end(end) || literals(word).next().is_none() {
        return None;
    }
    let mut source = String::new();
    for piece in word {
        match piece {
            PatternChar::Literal(character) => source += &regex_syntax::escape(&character.to_string()),
            PatternChar::One => source.push('.'),
            PatternChar::Many => source += ".*",
        }
    }
    source += &".?".repeat(num_marks);
    WordRegex::new(&source.replace('/', "\\/")).ok().map(WordPattern::regex)
}

/// Returns true for a name and a sign of equality, as in the query of a URL.
fn begins_parameter(text: &[Character]) -> bool {
    let is_name = |&&(_, c): &&Character| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '%' | '.');
    let len = text.iter().take(MAX_NAME_CHARS).take_while(is_name).count();
    len > 0 && text.get(len).is_some_and(|&(_, sign)| sign == '=')
}

/// Words of an item, and the text between them.
#[derive(Default)]
pub(in crate::query) struct Words {
    pub patterns: Item,
    /// Text before the first word, between neighbours, and behind the last word; one more than
    /// words.
    pub gaps: Vec<String>,
}

impl Words {
    fn push(&mut self, pattern: WordPattern) {
        self.push_gap("");
        self.patterns.push(pattern);
    }

    /// Adds the words of `run`, pieces that touch each other.
    fn push_run(&mut self, profile: TokenizerProfile, run: Vec<Vec<PatternChar>>) {
        for pieces in joined(profile, run) {
            self.push(if pieces.iter().any(is_wildcard) {
                WordPattern::wildcard(Wildcard::new(pieces))
            } else {
                WordPattern::exact(literals(&pieces).collect())
            });
        }
    }

    fn push_gap(&mut self, text: &str) {
        self.gaps.resize(self.patterns.len() + 1, String::new());
        if let Some(last) = self.gaps.last_mut() {
            last.push_str(text);
        }
    }
}

/// Returns the words of an item that starts at character `start` of the query.
pub(in crate::query) fn words_from(
    profile: TokenizerProfile,
    start: usize,
    item: &[Character],
    marks: Marks,
    budget: &mut Budget,
) -> Result<Words> {
    let mut words = Words::default();
    let mut num_counted = 0;
    let mut plain = Plain::default();
    let mut at = 0;
    while let Some(&(_, character)) = item.get(at) {
        let begins_word = at == 0 || item[at - 1].1.is_whitespace();
        let next = item.get(at + 1).map(|&(_, next)| next);
        match (character, next) {
            ('/', _) if begins_word && let Some(end) = regex_end(item, at)? => {
                plain.cut(profile, &mut words);
                words.push(regex(profile, &item[at..end])?);
                budget.add(&words.patterns[num_counted..], start)?;
                num_counted = words.patterns.len();
                at = end;
            }
            ('\\', Some(next)) if is_special(next) => {
                plain.push(PatternChar::Literal(next));
                at += 2;
            }
            ('~', Some(_)) if let Some(digits) = edits_at(item, at)? => {
                if plain.cut(profile, &mut words) {
                    edit(&mut words, &item[at..at + 1 + digits.len()], &digits)?;
                } else {
                    plain.push(PatternChar::Literal('~'));
                    digits.iter().for_each(|&digit| plain.push(PatternChar::Literal(digit)));
                }
                at += 1 + digits.len();
            }
            _ => {
                plain.push(match character {
                    '*' => PatternChar::Many,
                    '?' if !is_question(item, at, marks) => PatternChar::One,
                    other => PatternChar::Literal(other),
                });
                at += 1;
            }
        }
    }
    plain.cut(profile, &mut words);
    words.push_gap("");
    let num_marks = if marks == Marks::Either { num_final_marks(item) } else { 0 };
    if let Some(last) = words.patterns.last_mut().filter(|_| num_marks > 0)
        && let Some(pattern) = last.as_wildcard().and_then(|wildcard| with_optional_end(wildcard.pieces(), num_marks))
    {
        *last = pattern;
    }
    budget.add(&words.patterns[num_counted..], start)?;
    if words.patterns.is_empty() {
        let item = shown(item);
        let allowed = match item.as_str() {
            "&" => "AND between parts, or nothing",
            "|" => "OR between parts",
            "+" | "<->" => "one phrase, as in \"a b\"",
            ":" => "a query without column filters, and a condition on the column in WHERE",
            _ => "items with at least one word; grep finds any text",
        };
        let place = format!("at character {}, which holds no word in profile {profile}", start + 1);
        return Err(invalid(format!("`{item}` {place}"), allowed));
    }
    Ok(words)
}

/// Returns `words` with a prefix in place of the last one, for the star at character `star`.
pub(in crate::query) fn ending_in_prefix(mut words: Words, star: usize, budget: &mut Budget) -> Result<Words> {
    let last = words.patterns.pop();
    let prefix = last.as_ref().and_then(WordPattern::prefix).ok_or_else(|| {
        invalid(
            format!("`*` at character {}, behind a phrase whose last part is no word", star + 1),
            "a star behind a phrase that ends with a word, as in \"a b\"*; write \"*\" in quotes for \
             any word",
        )
    })?;
    budget.add_patterns(usize::from(last.is_some_and(|last| last.as_spellings().is_some())), star)?;
    words.patterns.push(prefix);
    Ok(words)
}

/// Returns the beginning of `text` as errors repeat it.
pub(in crate::query) fn shown(text: &[Character]) -> String {
    let shown = text.iter().take(MAX_SHOWN_CHARS).map(|&(_, character)| character);
    let rest = (text.len() > MAX_SHOWN_CHARS).then_some('…');
    shown.chain(rest).collect()
}

/// Returns the pattern of the regular expression `text`, which includes its slashes.
fn regex(profile: TokenizerProfile, text: &[Character]) -> Result<WordPattern> {
    let shown = shown(text);
    let start = text[0].0;
    let source: String = text[1..text.len() - 1].iter().map(|&(_, character)| character).collect();
    let fault = if source.is_empty() {
        (start, "it is empty".to_owned())
    } else {
        match WordRegex::new(&source) {
            Ok(regex) if regex.can_match_word(profile) => return Ok(WordPattern::regex(regex)),
            Ok(_) => (start, format!("no word of profile {profile} can match it")),
            Err(fault) => (start + 1 + fault.character, fault.reason),
        }
    };
    Err(invalid(
        format!("the regular expression {shown}, at character {}: {}", fault.0 + 1, fault.1),
        "the syntax of the regex crate, over one word; write \\/ for a slash",
    ))
}

/// Returns the digits of an edit distance at `at`: `~`, then digits up to the end of the word.
fn edits_at(item: &[Character], at: usize) -> Result<Option<Vec<char>>> {
    let digits = item[at + 1..].iter().map(|&(_, character)| character);
    let digits: Vec<char> = digits.take_while(char::is_ascii_digit).collect();
    if digits.is_empty() {
        return Ok(None);
    }
    let Some(&(place, behind)) = item.get(at + 1 + digits.len()) else { return Ok(Some(digits)) };
    if behind.is_whitespace() {
        return Ok(Some(digits));
    }
    let is_behind_word = at > 0 && (item[at - 1].1.is_alphanumeric() || matches!(item[at - 1].1, '*' | '?'));
    if !is_behind_word || behind.is_alphanumeric() {
        return Ok(None);
    }
    Err(invalid(
        format!("`{behind}` at character {}, behind an edit distance", place + 1),
        "white space behind word~1; write \\~ for the character",
    ))
}

/// Gives the last of `words` the edit distance `digits`, which is written as `text`.
fn edit(words: &mut Words, text: &[Character], digits: &[char]) -> Result<()> {
    let character = text[0].0 + 1;
    let max_distance = match digits {
        ['1'] => 1,
        ['2'] => 2,
        _ => {
            return Err(invalid(
                format!("`{}` at character {character}", shown(text)),
                "an edit distance of 1 or 2, as in word~1; write \\~ for the character",
            ));
        }
    };
    if words.patterns.len() > 1 && words.gaps.last().is_some_and(String::is_empty) {
        return Err(invalid(
            format!("`{}` at character {character} behind words that touch", shown(text)),
            "an edit distance behind one word; blanks between the words give it to the last",
        ));
    }
    let last = words.patterns.last_mut().and_then(|last| {
        let word = last.as_spellings()?.first().filter(|word| word.chars().count() <= MAX_CHARS)?.clone();
        *last = WordPattern::fuzzy(FuzzyWord { word, max_distance });
        Some(())
    });
    last.ok_or_else(|| {
        invalid(
            format!("`{}` at character {character} behind no word", shown(text)),
            &format!(
                "an edit distance behind a word of at most {MAX_CHARS} characters without \
                 wildcards"
            ),
        )
    })
}

/// Text between regular expressions, which the tokenizer cuts into words.
#[derive(Default)]
struct Plain {
    text: String,
    /// Positions of the placeholders in `text`, in ascending order, each with its wildcard.
    wildcards: Vec<(usize, PatternChar)>,
}

impl Plain {
    fn push(&mut self, piece: PatternChar) {
        if let PatternChar::Literal(character) = piece {
            self.text.push(character);
            return;
        }
        self.wildcards.push((self.text.len(), piece));
        self.text.push(PLACEHOLDER);
    }

    /// Cuts the text into words, moves them to `words` and becomes empty. Returns true if a word
    /// stands at the end.
    fn cut(&mut self, profile: TokenizerProfile, words: &mut Words) -> bool {
        let text = std::mem::take(&mut self.text);
        let wildcards = std::mem::take(&mut self.wildcards);
        let mut start = 0;
        let mut wildcards = wildcards.into_iter().peekable();
        // Words that touch each other.
        let mut run: Vec<Vec<PatternChar>> = Vec::new();
        for_each_token(profile, text.as_bytes(), |token| {
            let part = text.get(start..start + token.bytes.len()).unwrap_or_default();
            let pieces = part.char_indices().map(|(at, character)| {
                let wildcard = wildcards.next_if(|wildcard| wildcard.0 == start + at);
                wildcard.map_or(PatternChar::Literal(character), |found| found.1)
            });
            if token.is_word {
                run.push(pieces.collect());
            } else {
                words.push_run(profile, std::mem::take(&mut run));
                words.push_gap(part);
            }
            start += part.len();
        });
        let ends_in_word = !run.is_empty();
        words.push_run(profile, run);
        ends_in_word
    }
}

/// Returns the words of `run`, pieces that touch each other, with the wildcards that stand alone
/// joined to the words that they touch.
fn joined(profile: TokenizerProfile, run: Vec<Vec<PatternChar>>) -> Vec<Vec<PatternChar>> {
    let mut words: Vec<Vec<PatternChar>> = Vec::new();
    let mut run = run.into_iter().peekable();
    while let Some(pieces) = run.next() {
        let joins = match (words.last(), literals(&pieces).next()) {
            (Some(last), Some(first)) => joins_behind(profile, last, first),
            (Some(last), None) => literals(last).next_back().is_none_or(|c| grows(profile, c)),
            (None, _) => false,
        };
        let next = run.peek();
        let is_before_growing = next.is_some_and(|next| literals(next).next().is_none_or(|c| grows(profile, c)));
        let is_all = words.is_empty() && next.is_none();
        match words.last_mut() {
            Some(last) if joins => last.extend(pieces),
            _ if !is_open(&pieces) || is_before_growing || is_all => words.push(pieces),
            _ => pieces.into_iter().for_each(|wildcard| push_alone(&mut words, wildcard)),
        }
    }
    words
}

/// Returns true if a word that begins with `first` goes on with `last`, which stands before it.
fn joins_behind(profile: TokenizerProfile, last: &[PatternChar], first: char) -> bool {
    match literals(last).next_back() {
        None => grows(profile, first) || last.iter().all(|piece| *piece == PatternChar::Many),
        Some(before) => last.last().is_some_and(is_wildcard) && in_one_word(profile, before, first),
    }
}

/// Adds a wildcard between characters that are words of their own: `*` is none of them there, `?`
/// is a word.
fn push_alone(words: &mut Vec<Vec<PatternChar>>, wildcard: PatternChar) {
    match words.last_mut() {
        Some(last) if wildcard == PatternChar::Many || *last == [PatternChar::Many] => {
            last.push(wildcard);
        }
        _ => words.push(vec![wildcard]),
    }
}

/// Returns true if words can have `character` and more.
fn grows(profile: TokenizerProfile, character: char) -> bool {
    in_one_word(profile, character, character)
}

fn literals(pieces: &[PatternChar]) -> impl DoubleEndedIterator<Item = char> + '_ {
    pieces.iter().filter_map(|piece| match piece {
        PatternChar::Literal(character) => Some(*character),
        PatternChar::One | PatternChar::Many => None,
    })
}

/// Returns true if nothing but wildcards is in `pieces`.
fn is_open(pieces: &[PatternChar]) -> bool {
    pieces.iter().all(is_wildcard)
}

fn is_wildcard(piece: &PatternChar) -> bool {
    !matches!(piece, PatternChar::Literal(_))
}

/// Returns the error of an invalid query.
pub(in crate::query) fn invalid(got: String, allowed: &str) -> Error {
    Error::InvalidArgument { name: "query", got, allowed: allowed.into() }
}

/// Quotes that a phrase has.
pub(super) const STRAIGHT_QUOTES: &str = "straight double quotes around a phrase, as in \"a b\"; write other quotes \
                               inside them for the characters";

/// Returns what to write in place of `text`, an item without quotes, if it means something in the
/// language of another engine.
pub(super) fn meant_otherwise(text: &str) -> Option<&'static str> {
    let ends_in_tilde = || {
        let before = text.strip_suffix('~').and_then(|text| text.chars().next_back());
        before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '*' | '?'))
    };
    Some(match text {
        "&&" => "AND between parts, or nothing; write \"&&\" in quotes for the text",
        "||" => "OR between parts; write \"||\" in quotes for the text",
        "*:*" => "words; documents(corpus) lists all documents, and * finds every word",
        _ if is_distance(text) => {
            "NEAR(a b, 5) or \"a b\"~5 for words near each other; write it in quotes for the text"
        }
        _ if text.contains(['“', '”', '„', '«', '»']) => STRAIGHT_QUOTES,
        _ if text.contains("}:") => "a query without column filters; write a condition on the column in WHERE",
        _ if text.rsplit_once('^').is_some_and(|(_, weight)| is_number(weight)) => {
            "parts without weights; write \"a^2\" in quotes for the text"
        }
        _ if text.strip_prefix('~').is_some_and(is_number) => {
            "a number of edits or words directly behind a word or phrase, as in word~1 or \"a b\"~5; \
             write \\~ for the character"
        }
        _ if ends_in_tilde() => "word~1 or word~2 for words within so many edits; write \\~ for the character",
        _ => return None,
    })
}

/// Returns true for an operator between words that lie near each other: `w/3`, `pre/3`,
/// `AROUND(3)`, `<3>`.
fn is_distance(text: &str) -> bool {
    let around = text.strip_prefix("AROUND(").and_then(|text| text.strip_suffix(')'));
    let angles = text.strip_prefix('<').and_then(|text| text.strip_suffix('>'));
    let slash = text
        .split_once('/')
        .filter(|(name, _)| ["w", "pre"].iter().any(|operator| name.eq_ignore_ascii_case(operator)));
    let number = around.or(angles).or(slash.map(|(_, number)| number));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns true for digits, with or without a point among them.
fn is_number(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit()) && text.chars().all(|c| c.is_ascii_digit() || c == '.')
}
