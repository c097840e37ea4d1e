//! Literals that a matching line has, as demands on the text of its document.
//!
//! ```text
//! expression                 demands: one literal of each is in the line
//! disk (full|error) on sd    {disk full on sd, disk error on sd}
//! a.*(foo|bar)+x             {foo, bar} {a} {x}
//! (?i)disk                   {DISK} in any case
//! foo.*abcd|bar.*abc         {foo, bar} {abcd, abc}
//! ```
//!
//! Each position of a sequence is tried as the start of literals, and each part that must match is
//! tried alone. Of two demands, one of which follows from the other, only the stronger is kept. If
//! the expression has a class that is one character in several cases, all literals are taken in any
//! case. This only adds candidates.

use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Repetition,
};

use crate::query::matching::candidates::TextPattern;

/// Most demands that are kept, the strongest.
const MAX_DEMANDS: usize = 4;
/// Most literals of one demand.
const MAX_LITERALS: usize = 64;
/// Most characters of a class that are told apart.
const MAX_CLASS_CHARS: usize = 10;
/// Most parts of a sequence that are tried as the start of literals, and most parts of one.
const MAX_STARTS: usize = 128;
const MAX_PARTS: usize = 16;

/// Literals of which every match has one.
type Literals = Vec<String>;

/// Returns the demands on a text in which `hir` matches, at most [`MAX_DEMANDS`].
pub(super) fn demands_of(hir: &Hir) -> Vec<Vec<TextPattern>> {
    let (folded, is_any_case) = folded(hir);
    let mut found = required(if is_any_case { &folded } else { hir });
    found.sort_by_key(|literals| std::cmp::Reverse(strength(literals)));
    let mut kept: Vec<Literals> = Vec::new();
    for literals in found {
        if kept.len() < MAX_DEMANDS && !kept.iter().any(|other| implies(other, &literals)) {
            kept.push(literals);
        }
    }
    let pattern = |literal: String| {
        if is_any_case {
            TextPattern::contains_in_any_case(&literal)
        } else {
            TextPattern::contains(&literal)
        }
    };
    kept.into_iter().map(|literals| literals.into_iter().map(pattern).collect()).collect()
}

/// Returns sets of literals; every match of `hir` has one of each.
fn required(hir: &Hir) -> Vec<Literals> {
    let mut found = Vec::new();
    match hir.kind() {
        HirKind::Repetition(repetition) if repetition.min > 0 => {
            found = required(&repetition.sub);
        }
        HirKind::Concat(parts) => {
            for (start, part) in parts.iter().enumerate().take(MAX_STARTS) {
                let end = parts.len().min(start + MAX_PARTS);
                found.extend(prefixes(&Hir::concat(parts[start..end].to_vec())));
                if matches!(part.kind(), HirKind::Alternation(_) | HirKind::Repetition(_)) {
                    found.extend(required(part));
                }
            }
        }
        HirKind::Alternation(parts) => {
            found.extend(prefixes(hir));
            let strongest = |part| required(part).into_iter().max_by_key(strength);
            let of_each: Option<Vec<Literals>> = parts.iter().map(strongest).collect();
            found.extend(of_each.map(|of_each| of_each.concat()));
        }
        _ => found.extend(prefixes(hir)),
    }
    found.retain(|literals| literals.len() <= MAX_LITERALS && strength(literals) > 0);
    found
}

/// Returns the literals with which matches begin.
fn prefixes(hir: &Hir) -> Option<Literals> {
    let mut extractor = Extractor::new();
    extractor.limit_class(MAX_CLASS_CHARS).limit_total(MAX_LITERALS);
    let found = extractor.extract(hir);
    let literals = found.literals()?.iter();
    // A literal may be cut inside a character, or have bytes that are not UTF-8.
    let text = |bytes: &[u8]| {
        let valid = bytes.utf8_chunks().map(|chunk| chunk.valid());
        valid.max_by_key(|valid| valid.len()).unwrap_or_default().to_owned()
    };
    let mut literals: Literals = literals.map(|literal| text(literal.as_bytes())).collect();
    literals.sort_unstable();
    literals.dedup();
    Some(literals)
}

/// Returns the length in bytes of the shortest literal, and 0 if the literals exclude next to
/// nothing: several of one byte each.
fn strength(literals: &Literals) -> usize {
    let shortest = literals.iter().map(String::len).min().unwrap_or(0);
    if shortest == 1 && literals.len() > 1 { 0 } else { shortest }
}

/// Returns true if a text with one of `literals` has one of `others`.
fn implies(literals: &Literals, others: &Literals) -> bool {
    literals.iter().all(|literal| others.iter().any(|other| literal.contains(other)))
}

/// Returns `hir` with the first of all cases of a character in place of each, and true if a class
/// is smaller for that. Large classes stay as they are: they give no literals.
fn folded(hir: &Hir) -> (Hir, bool) {
    let mut is_smaller = false;
    let folded = match hir.kind() {
        HirKind::Literal(literal) => match std::str::from_utf8(&literal.0) {
            Ok(text) => Hir::literal(text.chars().map(first_case).collect::<String>().into_bytes()),
            Err(_) => hir.clone(),
        },
        HirKind::Class(class) => {
            let folded = folded_class(class);
            is_smaller = num_chars(&folded) < num_chars(class);
            Hir::class(folded)
        }
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => {
            let (sub, smaller) = self::folded(sub);
            is_smaller = smaller;
            let (min, max, greedy, sub) = (*min, *max, *greedy, Box::new(sub));
            Hir::repetition(Repetition { min, max, greedy, sub })
        }
        HirKind::Concat(parts) => {
            let parts = parts.iter().map(self::folded);
            Hir::concat(parts.inspect(|part| is_smaller |= part.1).map(|part| part.0).collect())
        }
        HirKind::Alternation(parts) => {
            let parts = parts.iter().map(self::folded);
            let parts = parts.inspect(|part| is_smaller |= part.1).map(|part| part.0);
            Hir::alternation(parts.collect())
        }
        HirKind::Capture(capture) => return self::folded(&capture.sub),
        HirKind::Empty | HirKind::Look(_) => hir.clone(),
    };
    (folded, is_smaller)
}

fn folded_class(class: &Class) -> Class {
    if num_chars(class) > MAX_CLASS_CHARS {
        return class.clone();
    }
    match class {
        Class::Unicode(class) => {
            let chars = class.iter().flat_map(|range| range.start()..=range.end());
            let folded = chars.map(first_case).map(|c| ClassUnicodeRange::new(c, c));
            Class::Unicode(ClassUnicode::new(folded))
        }
        Class::Bytes(class) => {
            let bytes = class.iter().flat_map(|range| range.start()..=range.end());
            let folded = bytes.map(|byte| byte.to_ascii_uppercase());
            Class::Bytes(ClassBytes::new(folded.map(|byte| ClassBytesRange::new(byte, byte))))
        }
    }
}

fn num_chars(class: &Class) -> usize {
    match class {
        Class::Unicode(class) => class.iter().map(|range| range.len()).sum(),
        Class::Bytes(class) => class.iter().map(|range| range.len()).sum(),
    }
}

/// Returns the first of all cases of `character`, by Unicode's simple case folding: the capital
/// letter for ASCII.
fn first_case(character: char) -> char {
    let mut cases = ClassUnicode::new([ClassUnicodeRange::new(character, character)]);
    match cases.try_case_fold_simple() {
        Ok(()) => cases.iter().next().map_or(character, |range| range.start()),
        Err(_) => character,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{TokenizerProfile, for_each_token};

    fn demands(source: &str) -> Vec<Vec<String>> {
        let hir = regex_syntax::ParserBuilder::new().utf8(false).build().parse(source).unwrap();
        let shown = |pattern: TextPattern| {
            let text = pattern.fragments.concat();
            if pattern.is_any_case { format!("{text}*") } else { text }
        };
        let found = demands_of(&hir).into_iter();
        found.map(|patterns| patterns.into_iter().map(shown).collect()).collect()
    }

    #[test]
    fn every_match_has_a_literal_of_each_demand() {
        for (source, expected) in [
            ("disk (full|error) on sd", vec![vec!["disk error on sd", "disk full on sd"]]),
            ("a.*(foo|bar)+x", vec![vec!["bar", "foo"], vec!["a"], vec!["x"]]),
            ("foo.*bar", vec![vec!["foo"], vec!["bar"]]),
            ("foo.*abcd|bar.*abc", vec![vec!["bar", "foo"], vec!["abcd", "abc"]]),
            ("^(error|warning)$", vec![vec!["error", "warning"]]),
            ("(?i)disk", vec![vec!["DISK*"]]),
            ("(?i:é)x|Y", vec![]),
            ("[Ff]oo", vec![vec!["FOO*"]]),
            ("x", vec![vec!["x"]]),
            ("x*", vec![]),
            (".", vec![]),
            ("a|b", vec![]),
            ("(?-u:\\xff)ab", vec![vec!["ab"]]),
        ] {
            let found = demands(source);
            let found: Vec<Vec<&str>> =
                found.iter().map(|set| set.iter().map(String::as_str).collect()).collect();
            assert_eq!(found, expected, "{source}");
        }
    }

    /// The tokens of a literal are those of the text in any other case.
    #[test]
    fn all_cases_of_a_character_have_one_class() {
        for profile in [TokenizerProfile::Word, TokenizerProfile::Whitespace] {
            let is_word = |c: char| {
                let mut is_word = false;
                for_each_token(profile, c.to_string().as_bytes(), |token| is_word |= token.is_word);
                is_word
            };
            for character in '\0'..=char::MAX {
                let first = first_case(character);
                if first != character {
                    assert_eq!(is_word(first), is_word(character), "{character}");
                }
            }
        }
    }
}
