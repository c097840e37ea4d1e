//! Joins masked lines to templates.
//!
//! ```text
//! masked lines, by falling count          templates
//! 9  user alice logged in from <*>        user <*> logged in from <*>
//! 5  user bob logged in from <*>      ┘   4 of 6 tokens are equal
//! 2  user list is empty                   user list is empty
//! ```
//!
//! This follows Drain (He, Zhu, Zheng, Lyu, "Drain: an online log parsing approach with fixed depth tree", ICWS 2017):
//! lines of equally many tokens and with the same first words are compared with the templates so far. A line joins the
//! one with most equal tokens, if these are at least the share `similarity` of its tokens; of several, the oldest.
//! Tokens that differ become [`PLACEHOLDER`]. Otherwise the line is a template of its own. Differences to Drain:
//!
//! - The lines come by falling count, then in byte order, not as they stand in the text. So the
//!   templates depend on nothing but the counted lines.
//! - Only tokens with a letter count as equal, and only they are first words. So numbers and times
//!   at the beginning of a line neither separate templates nor join them.
//! - Lines with fewer first words than asked for join no others.
//! - The number of templates behind the same first words has no bound.
//!
//! A template that has enough tokens in common with a line has one of the line's rarest tokens at
//! its place, so few templates are compared. O(tokens), and the comparisons.
//!
//! # Masks
//!
//! ```text
//! line     [   12.5] usb 1-1.2: new device, id=0x1D6B, May  4 10:02:11
//! words        ── ─  ─── ─ ─ ─  ─── ──────  ── ──────  ─── ─  ── ── ──
//! masked   [<*>] usb <*>: new device, id=<*>, <*> <*> <*>
//! ```
//!
//! A *word* here is a run of ASCII letters, ASCII digits, `_` and characters beyond ASCII, whatever
//! the profile of the corpus is. These words are variable, and no others:
//!
//! - words with a digit, and words of 8 or more hexadecimal digits
//! - words of hexadecimal digits beside a variable word, with only `:` and `-` between: groups of
//!   UUIDs, of hardware addresses and of IPv6 addresses
//! - short English names of months and days (`Jan`, `Mon`) in front of a variable word
//!
//! A variable word becomes [`PLACEHOLDER`]. Variable words with only `. : , - + /` between are one, so an IP address, a
//! time, a version and a UUID are one placeholder each. A sign in front of a variable word is part of it, unless it
//! stands behind a word. Runs of ASCII white space become one blank and vanish at the ends of the line, and between `[`
//! or `(` and a digit, where loggers pad numbers. O(bytes).
//!
//! # Masked lines
//!
//! ```text
//! lines        usb 1: ok     usb 2: ok     disk full
//! masked       usb <*>: ok, 2 times, least line "usb 1: ok"     disk full, 1 time
//! ```
//!
//! Each task numbers the lines that it meets itself. Numbers are joined afterwards, so they depend
//! on the tasks, and nothing else does: counts are added, and the example is the least line.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use rustc_hash::FxHashMap;

use crate::error::{Error, Interrupt, Result};

/// Number of the token [`PLACEHOLDER`].
const ANY: u32 = 0;

/// Rules by which masked lines are joined.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Share of equal tokens.
    pub similarity: f64,
    /// Number of first words that are equal.
    pub num_first_words: usize,
}

/// Returns for each of `lines`, masked lines with their counts, the number of its template, and the
/// templates in no order. Templates differ.
///
/// # Errors
/// [`Error::Cancelled`].
pub(super) fn merge(
    lines: &[(&str, u64)],
    rules: Rules,
    interrupt: &mut Interrupt<'_>,
) -> Result<(Vec<u32>, Vec<String>)> {
    let tokens = Tokens::new(lines);
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_unstable_by_key(|&at| (Reverse(lines[at].1), lines[at].0));
    let mut templates = Templates::default();
    let mut template_of = vec![0; lines.len()];
    for at in order {
        template_of[at] = templates.place(&tokens, tokens.for_line(at), rules, interrupt)?;
    }
    Ok(distinct(&templates, &tokens, template_of))
}

/// Returns the texts of `templates` and the number of the text of each line. Templates may become
/// equal when they lose tokens.
fn distinct(templates: &Templates, tokens: &Tokens<'_>, mut template_of: Vec<u32>) -> (Vec<u32>, Vec<String>) {
    let mut numbers: FxHashMap<String, u32> = FxHashMap::default();
    let renumbered: Vec<u32> = templates
        .tokens
        .iter()
        .map(|template| {
            let next = numbers.len() as u32;
            *numbers.entry(tokens.text(template)).or_insert(next)
        })
        .collect();
    let mut texts = vec![String::new(); numbers.len()];
    for (text, number) in numbers {
        texts[number as usize] = text;
    }
    template_of.iter_mut().for_each(|template| *template = renumbered[*template as usize]);
    (template_of, texts)
}

/// Lines as numbered tokens.
struct Tokens<'a> {
    texts: Vec<&'a str>,
    /// True for each token with a letter.
    have_letter: Vec<bool>,
    /// Tokens of all lines, one after another, and their ends.
    all: Vec<u32>,
    ends: Vec<usize>,
}

impl<'a> Tokens<'a> {
    fn new(lines: &[(&'a str, u64)]) -> Self {
        let mut numbers: FxHashMap<&str, u32> = FxHashMap::from_iter([(PLACEHOLDER, ANY)]);
        let mut tokens = Self { texts: vec![PLACEHOLDER], have_letter: vec![false], all: Vec::new(), ends: Vec::new() };
        for (line, _) in lines {
            for token in line.split(' ') {
                let next = numbers.len() as u32;
                let number = *numbers.entry(token).or_insert(next);
                if number == next {
                    tokens.texts.push(token);
                    tokens.have_letter.push(has_letter(token));
                }
                tokens.all.push(number);
            }
            tokens.ends.push(tokens.all.len());
        }
        tokens
    }

    fn for_line(&self, line: usize) -> &[u32] {
        let start = line.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[line]]
    }

    fn has_letter(&self, token: u32) -> bool {
        self.have_letter[token as usize]
    }

    /// Returns the number of first tokens of `line` up to its `num_words`-th token with a letter,
    /// if it has so many.
    fn first_words_end(&self, line: &[u32], num_words: usize) -> Option<usize> {
        let mut words = (0..line.len()).filter(|&at| self.has_letter(line[at]));
        match num_words {
            0 => Some(0),
            _ => words.nth(num_words - 1).map(|at| at + 1),
        }
    }

    fn text(&self, tokens: &[u32]) -> String {
        let texts: Vec<&str> = tokens.iter().map(|&token| self.texts[token as usize]).collect();
        texts.join(" ")
    }
}

/// Templates so far.
#[derive(Debug, Default)]
struct Templates {
    tokens: Vec<Vec<u32>>,
    /// Number of each group: tokens of a line, and its first ones.
    groups: FxHashMap<(usize, Vec<u32>), u32>,
    /// Templates of each group, oldest first.
    of_group: Vec<Vec<u32>>,
    /// Templates of a group that had a token at a place when they were made, oldest first.
    with_token: FxHashMap<(u32, u32, u32), Vec<u32>>,
}

impl Templates {
    /// Joins `line` to its template, or makes one. Returns the template's number.
    fn place(&mut self, tokens: &Tokens<'_>, line: &[u32], rules: Rules, interrupt: &mut Interrupt<'_>) -> Result<u32> {
        let Some(num_first) = tokens.first_words_end(line, rules.num_first_words) else {
            return Ok(self.push(line));
        };
        let next = self.groups.len() as u32;
        let group = *self.groups.entry((line.len(), line[..num_first].to_vec())).or_insert(next);
        if group == next {
            self.of_group.push(Vec::new());
        }
        let places: Vec<(u32, u32, u32)> = (num_first..line.len())
            .filter(|&at| tokens.has_letter(line[at]))
            .map(|at| (group, at as u32, line[at]))
            .collect();
        let num_missing = least_equal(line.len(), rules.similarity).saturating_sub(rules.num_first_words);
        let mut best: Option<(usize, Reverse<u32>)> = None;
        for template in self.candidates(group, &places, num_missing) {
            interrupt.check()?;
            let template_tokens = &self.tokens[template as usize];
            let is_equal = |&&(_, at, token): &&(u32, u32, u32)| template_tokens[at as usize] == token;
            let num_equal = places.iter().filter(is_equal).count();
            if num_equal >= num_missing {
                best = best.max(Some((num_equal, Reverse(template))));
            }
        }
        if let Some((_, Reverse(template))) = best {
            for (token, &of_line) in self.tokens[template as usize].iter_mut().zip(line) {
                *token = if *token == of_line { of_line } else { ANY };
            }
            return Ok(template);
        }
        let template = self.push(line);
        self.of_group[group as usize].push(template);
        for place in places {
            self.with_token.entry(place).or_default().push(template);
        }
        Ok(template)
    }

    fn push(&mut self, line: &[u32]) -> u32 {
        self.tokens.push(line.to_vec());
        self.tokens.len() as u32 - 1
    }

    /// Returns the templates of `group` that may have `num_missing` of the tokens at `places`. Of
    /// any `places.len() - num_missing + 1` places, such a template has the token of at least one.
    fn candidates(&self, group: u32, places: &[(u32, u32, u32)], num_missing: usize) -> Vec<u32> {
        if num_missing == 0 {
            // All templates of the group are similar enough, so there is one.
            return self.of_group[group as usize].clone();
        }
        let Some(num_spare) = places.len().checked_sub(num_missing) else { return Vec::new() };
        let mut lists: Vec<&[u32]> =
            places.iter().map(|place| self.with_token.get(place).map_or(&[][..], |l| l)).collect();
        lists.sort_unstable_by_key(|list| list.len());
        let mut candidates = lists[..num_spare + 1].concat();
        candidates.sort_unstable();
        candidates.dedup();
        candidates
    }
}

/// Returns the least number of equal tokens of `num_tokens` that is the share `similarity`.
fn least_equal(num_tokens: usize, similarity: f64) -> usize {
    let is_enough = |num_equal: usize| num_equal as f64 / num_tokens as f64 >= similarity;
    let about = (similarity * num_tokens as f64) as usize;
    (about.saturating_sub(1)..num_tokens).find(|&num_equal| is_enough(num_equal)).unwrap_or(num_tokens)
}

/// Text of a variable part.
pub(super) const PLACEHOLDER: &str = "<*>";

/// Hexadecimal digits of a word that is variable without a digit below 10.
const MIN_HEX_LEN: usize = 8;

/// Short names of months and days.
const NAMES: [&str; 19] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Mon", "Tue", "Wed", "Thu",
    "Fri", "Sat", "Sun",
];

const LETTER: u8 = 1;
const DIGIT: u8 = 2;
const UNDERSCORE: u8 = 4;
const WORD: u8 = LETTER | DIGIT | UNDERSCORE;
const HEX: u8 = 8;
const BLANK: u8 = 16;
/// Bytes between variable words that are one.
const JOINER: u8 = 32;
/// Bytes between a word of hexadecimal digits and a variable word.
const LINK: u8 = 64;

/// Classes of each byte, as bits.
static CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let at = byte as u8;
        classes[byte] = match at {
            b'0'..=b'9' => DIGIT | HEX,
            b'a'..=b'f' | b'A'..=b'F' => LETTER | HEX,
            b'_' => UNDERSCORE,
            b':' | b'-' => JOINER | LINK,
            b'.' | b',' | b'+' | b'/' => JOINER,
            _ if at.is_ascii_alphabetic() || !at.is_ascii() => LETTER,
            _ if at.is_ascii_whitespace() => BLANK,
            _ => 0,
        };
        byte += 1;
    }
    classes
}

fn class(byte: u8) -> u8 {
    CLASSES[byte as usize]
}

/// Returns true if `text` has a letter. Placeholders have none.
pub(super) fn has_letter(text: &str) -> bool {
    text.bytes().any(|byte| class(byte) & LETTER != 0)
}

/// Word of a line.
#[derive(Debug, Clone, Copy)]
struct Word {
    start: usize,
    end: usize,
    is_variable: bool,
    /// True if all its bytes are hexadecimal digits.
    is_hex: bool,
}

/// Masks lines, with memory that it uses again.
#[derive(Debug, Default)]
pub(super) struct Masker {
    words: Vec<Word>,
}

impl Masker {
    /// Writes the masked form of `line` to `output`, which it clears first. The form of a line of
    /// white space is empty.
    pub fn mask(&mut self, line: &str, output: &mut String) {
        output.clear();
        self.find_words(line.as_bytes());
        self.spread(line);
        let mut behind = 0;
        for (at, word) in self.words.iter().enumerate() {
            let gap = &line[behind..word.start];
            behind = word.end;
            if !word.is_variable {
                push_gap(gap, output);
                output.push_str(&line[word.start..word.end]);
                continue;
            }
            let follows_variable = at > 0 && self.words[at - 1].is_variable;
            if follows_variable && all(gap, JOINER) {
                continue;
            }
            push_gap(gap_before_variable(gap, at == 0, &line[word.start..]), output);
            output.push_str(PLACEHOLDER);
        }
        push_gap(&line[behind..], output);
        output.truncate(output.trim_ascii_end().len());
    }

    fn find_words(&mut self, line: &[u8]) {
        self.words.clear();
        let mut at = 0;
        while let Some(&byte) = line.get(at) {
            if class(byte) & WORD == 0 {
                at += 1;
                continue;
            }
            let start = at;
            let mut any = 0;
            let mut every = u8::MAX;
            while let Some(class) = line.get(at).map(|&b| class(b)).filter(|c| c & WORD != 0) {
                (any, every) = (any | class, every & class);
                at += 1;
            }
            let is_hex = every & HEX != 0;
            let is_variable = any & DIGIT != 0 || is_hex && at - start >= MIN_HEX_LEN;
            self.words.push(Word { start, end: at, is_variable, is_hex });
        }
    }

    /// Marks the words that are variable because of the word beside them. A name needs the word
    /// behind it, so the pass from the end comes last.
    fn spread(&mut self, line: &str) {
        if !self.words.iter().any(|word| word.is_variable) {
            return;
        }
        let is_linked = |first: Word, second: Word| all(&line[first.end..second.start], LINK);
        for at in 1..self.words.len() {
            let before = self.words[at - 1];
            let word = self.words[at];
            self.words[at].is_variable |= before.is_variable && word.is_hex && is_linked(before, word);
        }
        for at in (1..self.words.len()).rev() {
            let word = self.words[at - 1];
            let behind = self.words[at];
            self.words[at - 1].is_variable |= behind.is_variable
                && (word.is_hex && is_linked(word, behind) || NAMES.contains(&&line[word.start..word.end]));
        }
    }
}

/// Returns true if all bytes of `text` have one of the `classes`.
fn all(text: &str, classes: u8) -> bool {
    text.bytes().all(|byte| class(byte) & classes != 0)
}

/// Returns `gap` without the sign of the variable word behind it, or without the blanks that pad
/// it. `rest` begins with the word.
fn gap_before_variable<'a>(gap: &'a str, is_first: bool, rest: &str) -> &'a str {
    let unsigned = gap.strip_suffix(['+', '-']).filter(|before| is_first || !before.is_empty());
    if let Some(unsigned) = unsigned {
        return unsigned;
    }
    let trimmed = gap.trim_ascii_end();
    let is_padded = trimmed.ends_with(['[', '(']) && rest.starts_with(|c: char| c.is_ascii_digit());
    if is_padded { trimmed } else { gap }
}

/// Appends `gap`, with one blank for each run of white space but one at the start of the output.
fn push_gap(gap: &str, output: &mut String) {
    if gap == " " {
        if !output.is_empty() {
            output.push(' ');
        }
        return;
    }
    for byte in gap.bytes() {
        match class(byte) & BLANK {
            0 => output.push(char::from(byte)),
            _ if output.is_empty() || output.ends_with(' ') => {}
            _ => output.push(' '),
        }
    }
}

/// Bytes of a masked line beside its text and its example.
const ENTRY_BYTES: u64 = 128;

/// Memory that a search for templates may take. Tasks share it.
#[derive(Debug)]
pub(super) struct Budget {
    used_bytes: AtomicU64,
    max_bytes: u64,
}

impl Budget {
    /// Creates a budget of `max_bytes`, of which nothing is used.
    pub fn new(max_bytes: u64) -> Self {
        Self { used_bytes: AtomicU64::new(0), max_bytes }
    }

    /// Uses `len_bytes` more.
    ///
    /// # Errors
    /// [`Error::Capacity`] if there is not so much left.
    pub fn take(&self, len_bytes: u64) -> Result<()> {
        let before = self.used_bytes.fetch_add(len_bytes, Ordering::Relaxed);
        let used_bytes = before.saturating_add(len_bytes);
        if used_bytes <= self.max_bytes {
            Ok(())
        } else {
            Err(Error::memory_of_task("looking for templates of lines (bytes)", used_bytes, self.max_bytes))
        }
    }

    /// Gives `len_bytes` back.
    fn give_back(&self, len_bytes: u64) {
        self.used_bytes.fetch_sub(len_bytes, Ordering::Relaxed);
    }

    /// Returns the bytes that are used.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }
}

/// Facts of a masked line.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Number of lines with this form.
    pub count: u64,
    /// Least of these lines.
    pub example: String,
}

/// Distinct masked lines, numbered as they were met.
#[derive(Debug, Default)]
pub(super) struct MaskedLines {
    numbers: FxHashMap<Box<str>, u32>,
    facts: Vec<Facts>,
}

impl MaskedLines {
    /// Adds `count` lines `line`, which are masked as `masked`, and returns the number of the form.
    ///
    /// # Errors
    /// [`Error::Capacity`] if a new form does not fit into `budget`.
    pub fn add(&mut self, masked: &str, line: &str, count: u64, budget: &Budget) -> Result<u32> {
        if let Some(&number) = self.numbers.get(masked) {
            self.facts[number as usize].join(count, line);
            return Ok(number);
        }
        budget.take(entry_bytes(masked, line))?;
        let number = self.facts.len() as u32;
        self.numbers.insert(masked.into(), number);
        self.facts.push(Facts { count, example: line.to_owned() });
        Ok(number)
    }

    /// Adds the lines of `others`. Returns the new number of each of their forms. `budget` gets the
    /// memory of forms back that both have.
    pub fn absorb(&mut self, others: Self, budget: &Budget) -> Vec<u32> {
        let mut facts: Vec<Option<Facts>> = others.facts.into_iter().map(Some).collect();
        let mut renumbered = vec![0; facts.len()];
        for (masked, number) in others.numbers {
            let Some(facts) = facts[number as usize].take() else { continue };
            renumbered[number as usize] = match self.numbers.entry(masked) {
                Entry::Occupied(known) => {
                    budget.give_back(entry_bytes(known.key(), &facts.example));
                    self.facts[*known.get() as usize].join(facts.count, &facts.example);
                    *known.get()
                }
                Entry::Vacant(free) => {
                    self.facts.push(facts);
                    *free.insert(self.facts.len() as u32 - 1)
                }
            };
        }
        renumbered
    }

    /// Returns the forms and their facts, by number.
    pub fn into_parts(self) -> (Vec<Box<str>>, Vec<Facts>) {
        let mut forms: Vec<Box<str>> = vec![Box::default(); self.facts.len()];
        for (form, number) in self.numbers {
            forms[number as usize] = form;
        }
        (forms, self.facts)
    }
}

fn entry_bytes(masked: &str, example: &str) -> u64 {
    (masked.len() + example.len()) as u64 + ENTRY_BYTES
}

impl Facts {
    /// Adds `count` lines, of which `example` is the least.
    pub fn join(&mut self, count: u64, example: &str) {
        self.count = self.count.saturating_add(count);
        if example < self.example.as_str() {
            self.example.clear();
            self.example.push_str(example);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variable_parts_are_masked() {
        let mut masker = Masker::default();
        let mut masked = String::new();
        for (line, expected) in [
            ("", ""),
            (" \t ", ""),
            ("  plain   text\r", "plain text"),
            ("[    0.000000] Linux version 4.19.0-21-amd64", "[<*>] Linux version <*>"),
            ("[12345.678] x", "[<*>] x"),
            ("[ OK ] Reached (  5%)", "[ OK ] Reached (<*>%)"),
            ("Jan  2 03:04:05 host sshd[1]: from 10.0.0.1/24", "<*> <*> <*> host sshd[<*>]: from <*>"),
            ("Thu May 12 10:00:00 2017 May not", "<*> <*> <*> <*> <*> May not"),
            ("17/May/2015:10:05:03 +0000", "<*> <*>"),
            ("id 550e8400-e29b-41d4-dead-beefbeefbeef", "id <*>"),
            ("mac aa:bb:cc:00:dd:ee dead beef", "mac <*> dead beef"),
            ("cafebabe facade fe80::1 ::1", "<*> facade <*> ::<*>"),
            ("x=-5 -5 x-5 --5 5-5", "x=<*> <*> x-<*> -<*> <*>"),
            ("eth0: réseau2, /dev/sda1 50%", "<*>: <*>, /dev/<*> <*>%"),
        ] {
            masker.mask(line, &mut masked);
            assert_eq!(masked, expected, "{line}");
        }
    }
}
