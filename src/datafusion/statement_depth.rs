//! Depth of a statement, measured before the statement is parsed.
//!
//! ```text
//! SELECT a + b + c + (d + e)      SELECT     x = 1 OR y = 2 OR z = 3
//!          └1┘ └2┘ └3┘ └1┘ └1┘               └1┘ └1┘└1┘  └2┘└1┘       deepest: 2 + 1
//! WITH c AS (SELECT …), d AS (SELECT … FROM c) SELECT …               queries add up
//! ```
//!
//! Chains of operators become trees that lean to the left, with one level for each operator. The
//! same holds for `UNION`s, joins and queries that read each other. A parser limits only the depth
//! of parentheses. Code that plans, shows or drops such a tree recurses once for each level, with 7
//! to 27 KB of stack without optimizations. So the depth is counted on the tokens, in one pass
//! without recursion. The result is an upper bound, except for levels that operator precedence adds
//! on the right: a dozen in each parenthesis.

use std::borrow::Borrow;

use datafusion::error::Result;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::tokenizer::Token;

use crate::errors::datafusion_error;
use tadoc::error::Error;

/// Refuses the statement of `tokens` if it is deeper than `max_depth`. Takes O(tokens) time and
/// O(open parentheses) memory.
///
/// ```
/// use datafusion::sql::sqlparser::{dialect::GenericDialect, tokenizer::Tokenizer};
/// use datafusion_tadoc::check_statement_depth;
///
/// let sql = format!("SELECT {}", vec!["1"; 5000].join(" + "));
/// let tokens = Tokenizer::new(&GenericDialect, &sql).tokenize()?;
/// let error = check_statement_depth(&tokens, 2000).unwrap_err().to_string();
/// assert!(error.contains("the limit is 2000; raise tadoc.max_statement_depth"), "{error}");
/// # Ok::<(), datafusion::sql::sqlparser::tokenizer::TokenizerError>(())
/// ```
///
/// # Errors
/// `ResourcesExhausted`, which names the depth that was counted so far.
pub fn check_statement_depth(tokens: impl IntoIterator<Item = impl Borrow<Token>>, max_depth: u64) -> Result<()> {
    let mut meter = Meter { open: vec![Level::default()], before: Before::Other, closed: 0 };
    for token in tokens {
        meter.add(token.borrow());
        let requested = meter.depth();
        if requested > max_depth {
            return Err(datafusion_error(Error::Capacity {
                what: "a statement that chains or nests operators, queries or joins so deep",
                requested,
                limit: max_depth,
                knob: "tadoc.max_statement_depth",
            }));
        }
    }
    Ok(())
}

/// Counter of depth, one token at a time.
struct Meter {
    /// Open levels, outermost first; never empty.
    open: Vec<Level>,
    before: Before,
    /// Depth of all levels except the innermost.
    closed: u64,
}

/// Class of the token before.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    /// A token that may end an expression: a name that is no keyword, a value, a closing
    /// parenthesis.
    Operand,
    Other,
}

/// Level between two parentheses, or of a CASE.
#[derive(Default)]
struct Level {
    is_case: bool,
    /// True for a query.
    is_query: bool,
    is_from: bool,
    /// Operators of an expression since the last AND or OR, above the deepest operand.
    tight: u64,
    /// Levels of AND and OR, and the operators below them.
    loose: u64,
    /// Depth of the deepest expression before the last comma or clause.
    deepest: u64,
    /// Number of queries, set operators and joins.
    relations: u64,
}

impl Level {
    fn expression(&self) -> u64 {
        self.deepest.max(self.loose).max(self.tight)
    }

    fn depth(&self) -> u64 {
        self.relations + self.expression()
    }

    /// Ends an expression.
    fn cut(&mut self) {
        self.deepest = self.expression();
        (self.tight, self.loose) = (0, 0);
    }

    fn tie(&mut self) {
        self.loose = self.loose.max(self.tight) + 1;
        self.tight = 0;
    }
}

impl Meter {
    fn depth(&self) -> u64 {
        self.closed + self.open.last().map_or(0, Level::depth)
    }

    fn add(&mut self, token: &Token) {
        let before = self.before;
        self.before = Before::Other;
        match token {
            Token::Whitespace(_) => self.before = before,
            Token::LParen | Token::LBrace => self.open(false),
            Token::LBracket => {
                self.innermost().tight += 1;
                self.open(false);
            }
            Token::RParen | Token::RBrace | Token::RBracket => {
                while self.innermost().is_case {
                    self.close();
                }
                self.close();
                self.before = Before::Operand;
            }
            Token::Comma => {
                let level = self.innermost();
                level.relations += u64::from(level.is_from);
                level.cut();
            }
            Token::Word(word) if word.quote_style.is_some() => self.before = Before::Operand,
            Token::Word(word) => self.add_word(word.keyword, before),
            Token::Number(..) | Token::SingleQuotedString(_) | Token::Placeholder(_) => {
                self.before = Before::Operand;
            }
            Token::Period | Token::DoubleQuotedString(_) | Token::SemiColon | Token::EOF => {}
            _ => self.innermost().tight += 1,
        }
    }

    fn add_word(&mut self, keyword: Keyword, before: Before) {
        let ends_expression = before == Before::Operand;
        match keyword {
            Keyword::NoKeyword | Keyword::NULL | Keyword::TRUE | Keyword::FALSE => {
                self.before = Before::Operand;
            }
            Keyword::AND | Keyword::OR | Keyword::XOR => self.innermost().tie(),
            Keyword::CASE => self.open(true),
            Keyword::END if self.innermost().is_case => {
                self.close();
                self.before = Before::Operand;
            }
            Keyword::WHEN | Keyword::THEN | Keyword::ELSE if self.innermost().is_case => {
                self.innermost().cut();
            }
            Keyword::SELECT => {
                let level = self.innermost();
                (level.is_query, level.is_from) = (true, false);
                // Inside an expression the word is a name, which must not end a chain without being
                // counted.
                level.relations += u64::from(level.tight + level.loose > 0);
                level.cut();
            }
            Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::MINUS => {
                let level = self.innermost();
                (level.is_query, level.is_from) = (true, false);
                level.relations += 1;
                level.cut();
            }
            Keyword::JOIN => {
                self.innermost().relations += 1;
                self.innermost().cut();
            }
            Keyword::FROM => {
                self.innermost().is_from = true;
                self.cut_if(ends_expression);
            }
            Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::VALUES
            | Keyword::SET => {
                self.innermost().is_from = false;
                self.cut_if(ends_expression);
            }
            Keyword::ON => self.cut_if(ends_expression),
            Keyword::IS
            | Keyword::NOT
            | Keyword::IN
            | Keyword::BETWEEN
            | Keyword::LIKE
            | Keyword::ILIKE
            | Keyword::SIMILAR
            | Keyword::RLIKE
            | Keyword::REGEXP
            | Keyword::COLLATE
            | Keyword::AT
            | Keyword::DIV
            | Keyword::NOTNULL
            | Keyword::OPERATOR
            | Keyword::OVERLAPS => self.innermost().tight += 1,
            _ => {}
        }
    }

    /// Begins a clause, unless the word may be the name of an operand.
    fn cut_if(&mut self, ends_expression: bool) {
        if ends_expression {
            self.innermost().cut();
        }
    }

    fn innermost(&mut self) -> &mut Level {
        if self.open.is_empty() {
            self.open.push(Level::default());
        }
        let last = self.open.len() - 1;
        &mut self.open[last]
    }

    fn open(&mut self, is_case: bool) {
        self.closed += self.innermost().depth() + 1;
        self.open.push(Level { is_case, ..Level::default() });
    }

    fn close(&mut self) {
        let Some(level) = self.open.pop() else { return };
        let parent = self.innermost();
        let before = parent.depth();
        if level.is_query {
            parent.relations += level.depth() + 1;
        } else {
            parent.relations += level.relations;
            parent.tight = parent.tight.max(level.expression() + 1);
        }
        self.closed = self.closed.saturating_sub(before + 1);
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::tokenizer::Tokenizer;

    use super::*;

    fn fits(sql: &str, max_depth: u64) -> bool {
        let tokens = Tokenizer::new(&GenericDialect, sql).tokenize().unwrap();
        check_statement_depth(&tokens, max_depth).is_ok()
    }

    #[test]
    fn chains_count_once_for_each_operator() {
        let chain = |part: &str| format!("SELECT x FROM t WHERE 1 {}", format!("{part} ").repeat(1000));
        let parts = [
            "+ 1",
            "OR a = 1",
            "AND f(a, b) > 1",
            "OR (a = 1 AND b = 2)",
            "IS NULL",
            "::int",
            "|| 'a'",
            "+ CASE WHEN a THEN 1 ELSE 2 END",
            "AND limit",
            "+ t.limit",
            "IS DISTINCT FROM x",
            "UNION ALL SELECT 1",
            "EXCEPT SELECT a + b FROM t",
            "[1]",
            "AT TIME ZONE limit",
            "COLLATE x",
            "BETWEEN 1 AND 2",
            "- select",
            "+ \"from\"",
        ];
        for part in parts {
            assert!(!fits(&chain(part), 999), "{part}");
            assert!(fits(&chain(part), 4010), "{part}");
        }
        assert!(fits(&chain("OR a = 1"), 1003) && fits(&chain("OR (a = 1 AND b = 2)"), 1006));
    }

    #[test]
    fn what_nests_adds_up() {
        let nested = |open: &str, close: &str| format!("SELECT {} 1 {}", open.repeat(1000), close.repeat(1000));
        for (open, close) in [("(", ")"), ("abs(", ")"), ("(SELECT 1 + ", ")"), ("CASE WHEN a THEN ", " END")] {
            assert!(!fits(&nested(open, close), 999), "{open}");
        }
        let ctes: String = (1..1000).map(|i| format!(", c{i} AS (SELECT x FROM c{})", i - 1)).collect();
        assert!(!fits(&format!("WITH c0 AS (SELECT 1 AS x) {ctes} SELECT * FROM c999"), 999));
        let joins = "JOIN t ON a = b ".repeat(1000);
        assert!(!fits(&format!("SELECT * FROM t {joins}"), 999));
        assert!(!fits(&format!("SELECT * FROM t{}", ", t".repeat(1000)), 999));
    }

    #[test]
    fn what_is_flat_is_not_deep() {
        let listed = |part: &str| vec![part; 10_000].join(", ");
        assert!(fits(&format!("SELECT {} FROM t", listed("a + b")), 8));
        assert!(fits(&format!("INSERT INTO t VALUES {}", listed("(-1, 'a', 2 * 3)")), 8));
        assert!(fits(&format!("SELECT * FROM t WHERE a IN ({})", listed("-1")), 8));
        let branches = "WHEN a = 1 AND b = 2 THEN 1 + 2 ".repeat(10_000);
        assert!(fits(&format!("SELECT CASE {branches} END FROM t"), 12));
        assert!(fits("))) end ]", 8));
    }
}
