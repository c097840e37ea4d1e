//! The precedence of `IS [NOT] DISTINCT FROM` in statements and conditions, as SQL has it.
//!
//! ```text
//! a IS DISTINCT FROM b AND c    is parsed as   a IS DISTINCT FROM (b AND c)
//!                               and becomes    (a IS DISTINCT FROM b) AND c
//! ```
//!
//! sqlparser (0.62) takes everything behind `FROM` for the right side. So such an expression is taken apart into its
//! operands and operators, which stand in the order of the text, and put together again. Parentheses are operands.
//! Cost: one walk over the statement. `SessionContext::sql` does not do this: it is a part of
//! [`plan_statement`](crate::plan_statement).

use std::iter::Peekable;
use std::ops::ControlFlow;
use std::vec::IntoIter;

use datafusion::sql::parser::{CopyToSource, Statement};
use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, Ident, UnaryOperator, VisitMut, VisitorMut};

/// Walks over all expressions and queries of `statement`, of the kinds of DataFusion, too.
pub(crate) fn visit_statement(statement: &mut Statement, visitor: &mut impl VisitorMut) {
    let _ = match statement {
        Statement::Statement(plain) => VisitMut::visit(plain, visitor),
        Statement::Explain(explained) => {
            visit_statement(&mut explained.statement, visitor);
            ControlFlow::Continue(())
        }
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => VisitMut::visit(query, visitor),
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        _ => ControlFlow::Continue(()),
    };
}

/// Gives all comparisons in `statement` their precedence.
pub(crate) fn mend_statement(statement: &mut Statement) {
    visit_statement(statement, &mut Comparisons);
}

/// Gives all comparisons in `expr` their precedence.
pub(crate) fn mend_expr(expr: &mut Expr) {
    let _ = VisitMut::visit(expr, &mut Comparisons);
}

struct Comparisons;

impl VisitorMut for Comparisons {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if takes_too_much(expr) {
            let mut pieces = Vec::new();
            take_apart(std::mem::replace(expr, Expr::Identifier(Ident::new(""))), &mut pieces);
            *expr = put_together(&mut pieces.into_iter().peekable(), 0);
        }
        ControlFlow::Continue(())
    }
}

/// Returns true if a comparison in the conditions that `expr` joins has one of them on its right side.
fn takes_too_much(expr: &Expr) -> bool {
    let operands = operands(expr);
    let is_comparison = matches!(expr, Expr::IsDistinctFrom(..) | Expr::IsNotDistinctFrom(..));
    let has_joined_right = operands.last().is_some_and(|right| !self::operands(right).is_empty());
    is_comparison && has_joined_right || operands.into_iter().any(takes_too_much)
}

/// Returns the operands of an operator that binds no more than a comparison; none of another expression.
fn operands(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And | BinaryOperator::Or, right }
        | Expr::IsDistinctFrom(left, right)
        | Expr::IsNotDistinctFrom(left, right) => vec![left, right],
        Expr::UnaryOp { op: UnaryOperator::Not, expr }
        | Expr::IsNull(expr)
        | Expr::IsNotNull(expr)
        | Expr::IsTrue(expr)
        | Expr::IsNotTrue(expr)
        | Expr::IsFalse(expr)
        | Expr::IsNotFalse(expr)
        | Expr::IsUnknown(expr)
        | Expr::IsNotUnknown(expr) => vec![expr],
        _ => Vec::new(),
    }
}

/// Makes the expression of an operator that stands behind its operand.
type Suffix = fn(Box<Expr>) -> Expr;

/// A piece of an expression.
enum Piece {
    Operand(Box<Expr>),
    Not,
    /// An operator between two operands.
    Between(Between),
    /// An operator behind its operand.
    Behind(Suffix),
}

#[derive(Clone, Copy)]
enum Between {
    And,
    Or,
    DistinctFrom,
    NotDistinctFrom,
}

/// Precedences: a greater one binds more.
const OR: u8 = 1;
const AND: u8 = 2;
const NOT: u8 = 3;
const IS: u8 = 4;

impl Between {
    fn precedence(self) -> u8 {
        match self {
            Self::Or => OR,
            Self::And => AND,
            Self::DistinctFrom | Self::NotDistinctFrom => IS,
        }
    }

    fn joined(self, left: Expr, right: Expr) -> Expr {
        let left = Box::new(left);
        let right = Box::new(right);
        match self {
            Self::And => Expr::BinaryOp { left, op: BinaryOperator::And, right },
            Self::Or => Expr::BinaryOp { left, op: BinaryOperator::Or, right },
            Self::DistinctFrom => Expr::IsDistinctFrom(left, right),
            Self::NotDistinctFrom => Expr::IsNotDistinctFrom(left, right),
        }
    }
}

/// Appends the pieces of `expr` in the order of the text.
fn take_apart(expr: Expr, pieces: &mut Vec<Piece>) {
    let mut between = |left: Box<Expr>, operator: Between, right: Box<Expr>| {
        take_apart(*left, pieces);
        pieces.push(Piece::Between(operator));
        take_apart(*right, pieces);
    };
    let (operand, operator): (Box<Expr>, Suffix) = match expr {
        Expr::BinaryOp { left, op: BinaryOperator::And, right } => return between(left, Between::And, right),
        Expr::BinaryOp { left, op: BinaryOperator::Or, right } => return between(left, Between::Or, right),
        Expr::IsDistinctFrom(left, right) => return between(left, Between::DistinctFrom, right),
        Expr::IsNotDistinctFrom(left, right) => return between(left, Between::NotDistinctFrom, right),
        Expr::UnaryOp { op: UnaryOperator::Not, expr } => {
            pieces.push(Piece::Not);
            return take_apart(*expr, pieces);
        }
        Expr::IsNull(expr) => (expr, Expr::IsNull),
        Expr::IsNotNull(expr) => (expr, Expr::IsNotNull),
        Expr::IsTrue(expr) => (expr, Expr::IsTrue),
        Expr::IsNotTrue(expr) => (expr, Expr::IsNotTrue),
        Expr::IsFalse(expr) => (expr, Expr::IsFalse),
        Expr::IsNotFalse(expr) => (expr, Expr::IsNotFalse),
        Expr::IsUnknown(expr) => (expr, Expr::IsUnknown),
        Expr::IsNotUnknown(expr) => (expr, Expr::IsNotUnknown),
        operand => return pieces.push(Piece::Operand(Box::new(operand))),
    };
    take_apart(*operand, pieces);
    pieces.push(Piece::Behind(operator));
}

/// Puts the pieces together up to an operator that binds no more than `least`.
fn put_together(pieces: &mut Peekable<IntoIter<Piece>>, least: u8) -> Expr {
    let mut expr = match pieces.next() {
        Some(Piece::Operand(operand)) => *operand,
        // Operators stand behind operands, as they were taken apart.
        Some(Piece::Not | Piece::Between(_) | Piece::Behind(_)) | None => {
            Expr::UnaryOp { op: UnaryOperator::Not, expr: Box::new(put_together(pieces, NOT)) }
        }
    };
    loop {
        match pieces.peek() {
            Some(Piece::Between(operator)) if operator.precedence() > least => {
                let operator = *operator;
                pieces.next();
                expr = operator.joined(expr, put_together(pieces, operator.precedence()));
            }
            Some(Piece::Behind(operator)) if IS > least => {
                let operator = *operator;
                pieces.next();
                expr = operator(Box::new(expr));
            }
            _ => return expr,
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::sql::sqlparser::dialect::GenericDialect;
    use datafusion::sql::sqlparser::parser::Parser;
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Expr {
        Parser::new(&GenericDialect).try_with_sql(text).unwrap().parse_expr().unwrap()
    }

    fn mended(text: &str) -> Expr {
        let mut expr = parsed(text);
        mend_expr(&mut expr);
        expr
    }

    /// Returns `expr` with parentheses around each operator.
    fn shown(expr: &Expr) -> String {
        match expr {
            Expr::Nested(expr) => shown(expr),
            Expr::BinaryOp { left, op, right } => format!("({} {op} {})", shown(left), shown(right)),
            Expr::UnaryOp { op, expr } => format!("({op} {})", shown(expr)),
            Expr::IsDistinctFrom(left, right) => format!("({} IS DISTINCT FROM {})", shown(left), shown(right)),
            Expr::IsNotDistinctFrom(left, right) => {
                format!("({} IS NOT DISTINCT FROM {})", shown(left), shown(right))
            }
            Expr::Cast { expr, .. } => format!("CAST {}", shown(expr)),
            Expr::IsNull(expr) => format!("({} IS NULL)", shown(expr)),
            Expr::IsNotTrue(expr) => format!("({} IS NOT TRUE)", shown(expr)),
            other => other.to_string(),
        }
    }

    #[test]
    fn comparisons_take_one_operand() {
        for (text, expected) in [
            ("a IS DISTINCT FROM b", "(a IS DISTINCT FROM b)"),
            ("a IS DISTINCT FROM b AND c", "((a IS DISTINCT FROM b) AND c)"),
            ("a IS NOT DISTINCT FROM b OR c AND d", "((a IS NOT DISTINCT FROM b) OR (c AND d))"),
            ("a AND b IS DISTINCT FROM c OR d", "((a AND (b IS DISTINCT FROM c)) OR d)"),
            (
                "a IS DISTINCT FROM b AND c IS DISTINCT FROM d OR e",
                "(((a IS DISTINCT FROM b) AND (c IS DISTINCT FROM d)) OR e)",
            ),
            ("NOT a IS DISTINCT FROM b AND c", "((NOT (a IS DISTINCT FROM b)) AND c)"),
            ("a IS DISTINCT FROM b + 1 > c", "(a IS DISTINCT FROM ((b + 1) > c))"),
            ("a IS DISTINCT FROM b IS NULL", "((a IS DISTINCT FROM b) IS NULL)"),
            ("a IS DISTINCT FROM (b AND c)", "(a IS DISTINCT FROM (b AND c))"),
            ("CAST(a IS DISTINCT FROM b AND c AS TEXT)", "CAST ((a IS DISTINCT FROM b) AND c)"),
            ("a IS DISTINCT FROM b IS DISTINCT FROM c", "((a IS DISTINCT FROM b) IS DISTINCT FROM c)"),
        ] {
            assert_eq!(shown(&mended(text)), expected, "{text}");
        }
    }

    /// A condition with parentheses around everything.
    fn conditions() -> impl Strategy<Value = String> {
        let operand = prop_oneof!["[a-d]", "[a-d] = [a-d]"].prop_map(|text| format!("({text})"));
        operand.prop_recursive(5, 24, 2, |inner| {
            prop_oneof![
                (inner.clone(), "AND|OR|IS DISTINCT FROM|IS NOT DISTINCT FROM", inner.clone())
                    .prop_map(|(left, op, right)| format!("({left} {op} {right})")),
                inner.clone().prop_map(|inner| format!("(NOT {inner})")),
                inner.prop_map(|inner| format!("({inner} IS NULL)")),
            ]
        })
    }

    proptest! {
        /// Parentheses say all: nothing changes where they stand, and without comparisons nothing changes at all.
        #[test]
        fn expressions_with_parentheses_stay(text in conditions()) {
            prop_assert_eq!(mended(&text), parsed(&text));
        }

        #[test]
        fn other_expressions_stay(words in prop::collection::vec("AND|OR|AND NOT|OR NOT|IS NULL AND", 0..8)) {
            let text = words.iter().fold("NOT a".to_owned(), |text, word| format!("{text} {word} b"));
            let mut pieces = Vec::new();
            take_apart(parsed(&text), &mut pieces);
            prop_assert_eq!(put_together(&mut pieces.into_iter().peekable(), 0), parsed(&text));
        }
    }
}
