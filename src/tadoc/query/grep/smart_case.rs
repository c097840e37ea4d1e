//! Smart case: an expression in small letters matches letters of any case, as with `rg --smart-case`.
//!
//! Only letters that stand for themselves count: `\W` and `\pL` say nothing about case, `[A-Z]` does. O(length of
//! the expressions).

use std::convert::Infallible;

use regex_syntax::ast::parse::Parser;
use regex_syntax::ast::{Ast, ClassSetItem, Literal, Visitor, visit};

/// Returns true if upper and lower case count as equal by smart case: `sources` have a character that
/// stands for itself, and none of these is an upper-case letter. They are texts if `is_literal` is true,
/// else regular expressions. One that cannot be parsed says nothing.
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
            let Ok(of_source) = visit(&ast, Found::default());
            found.has_literal |= of_source.has_literal;
            found.has_upper_case |= of_source.has_upper_case;
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
