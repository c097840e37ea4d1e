//! Joins masked lines to templates.
//!
//! ```text
//! masked lines, by falling count          templates
//! 9  user alice logged in from <*>        user <*> logged in from <*>
//! 5  user bob logged in from <*>      ┘   4 of 6 tokens are equal
//! 2  user list is empty                   user list is empty
//! ```
//!
//! This follows Drain (He, Zhu, Zheng, Lyu, "Drain: an online log parsing approach with fixed depth
//! tree", ICWS 2017): lines of equally many tokens and with the same first words are compared with
//! the templates so far. A line joins the one with most equal tokens, if these are at least the
//! share `similarity` of its tokens; of several, the oldest. Tokens that differ become
//! [`PLACEHOLDER`]. Otherwise the line is a template of its own. Differences to Drain:
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

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use crate::error::Result;
use crate::interrupt::Interrupt;

use super::mask::{PLACEHOLDER, has_letter};

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
/// [`Error::Cancelled`](crate::Error::Cancelled).
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
fn distinct(
    templates: &Templates,
    tokens: &Tokens<'_>,
    mut template_of: Vec<u32>,
) -> (Vec<u32>, Vec<String>) {
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
        let mut tokens = Self {
            texts: vec![PLACEHOLDER],
            have_letter: vec![false],
            all: Vec::new(),
            ends: Vec::new(),
        };
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

    /// Returns the number of first tokens of `line` up to its `num_words`-th token with a letter, if it
    /// has so many.
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
    fn place(
        &mut self,
        tokens: &Tokens<'_>,
        line: &[u32],
        rules: Rules,
        interrupt: &mut Interrupt<'_>,
    ) -> Result<u32> {
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
        let num_missing =
            least_equal(line.len(), rules.similarity).saturating_sub(rules.num_first_words);
        let mut best: Option<(usize, Reverse<u32>)> = None;
        for template in self.candidates(group, &places, num_missing) {
            interrupt.check()?;
            let template_tokens = &self.tokens[template as usize];
            let is_equal =
                |&&(_, at, token): &&(u32, u32, u32)| template_tokens[at as usize] == token;
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

    /// Returns the templates of `group` that may have `num_missing` of the tokens at `places`. Of any
    /// `places.len() - num_missing + 1` places, such a template has the token of at least one.
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
    (about.saturating_sub(1)..num_tokens)
        .find(|&num_equal| is_enough(num_equal))
        .unwrap_or(num_tokens)
}
