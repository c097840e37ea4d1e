//! Depth of statements and of types, measured before a parser or a reader recurses over them.
//!
//! ```text
//! SELECT a + b + c + (d + e)      SELECT     x = 1 OR y = 2 OR z = 3
//!          └1┘ └2┘ └3┘ └1┘ └1┘               └1┘ └1┘└1┘  └2┘└1┘       deepest: 2 + 1
//! WITH c AS (SELECT …), d AS (SELECT … FROM c) SELECT …               queries add up
//! arrow_cast(x, 'List(List(…))')                                      types in texts and in schemas of files
//! ```
//!
//! Chains of operators become trees that lean to the left, with one level for each operator. The same holds for
//! `UNION`s, joins and queries that read each other. A parser limits only the depth of parentheses. Code that plans,
//! shows or drops such a tree recurses once for each level, with 7 to 27 KB of stack without optimizations. So the
//! depth is counted on the tokens, in one pass without recursion. The result is an upper bound, except for levels that
//! operator precedence adds on the right: a dozen in each parenthesis.
//!
//! Arrow's parser of types recurses once for each parenthesis, and whoever shows, compares or drops such a type does
//! so, too. A text of 20,000 levels overflows the stack, which ends the process. So functions of the same names stand
//! before those of DataFusion, and refuse deep texts. Schemas of Parquet files are refused where they are read; those
//! of Arrow files have at most 64 levels by their format. Cost: one look at the text for each call in a statement, one
//! walk over each schema. Limit: the reader of Parquet's footers recurses by itself before.

use std::borrow::Borrow;
use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, FieldRef, Schema};
use datafusion::common::plan_err;
use datafusion::error::Result;
use datafusion::functions::core::{arrow_cast, arrow_try_cast};
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use datafusion::scalar::ScalarValue;
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

/// Most levels of a type in a text.
const MAX_LEVELS: usize = 64;
/// Most levels of a type in a file.
const MAX_LEVELS_OF_FILES: usize = 256;

/// Refuses a schema with a type that is nested too deep to be worked with. Takes O(fields) time, and no stack.
///
/// ```
/// use datafusion::arrow::datatypes::{DataType, Field, Schema};
/// use datafusion_tadoc::check_type_depth;
///
/// let list = DataType::new_list(DataType::Utf8, true);
/// check_type_depth(&Schema::new(vec![Field::new("words", list, true)]))?;
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// ```
///
/// # Errors
/// A plan error, which names the column and the bound.
pub fn check_type_depth(schema: &Schema) -> Result<()> {
    for column in schema.fields() {
        let mut open = vec![(column.data_type(), 0)];
        while let Some((kind, num_levels)) = open.pop() {
            if num_levels > MAX_LEVELS_OF_FILES {
                return plan_err!(
                    "column `{}` has a type of more than {MAX_LEVELS_OF_FILES} levels; write it flat, or as JSON \
                     in a text",
                    column.name()
                );
            }
            open.extend(inner_types(kind).into_iter().map(|inner| (inner, num_levels + 1)));
        }
    }
    Ok(())
}

/// Returns the types directly inside of a type.
pub(crate) fn inner_types(kind: &DataType) -> Vec<&DataType> {
    match kind {
        DataType::Dictionary(_, values) => vec![values],
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::ListView(field)
        | DataType::LargeListView(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _)
        | DataType::RunEndEncoded(_, field) => vec![field.data_type()],
        DataType::Struct(fields) => fields.iter().map(|field| field.data_type()).collect(),
        DataType::Union(fields, _) => fields.iter().map(|(_, field)| field.data_type()).collect(),
        _ => Vec::new(),
    }
}

/// Returns `arrow_cast` and `arrow_try_cast` with the bound.
pub(crate) fn functions_of_types() -> [Arc<ScalarUDF>; 2] {
    [arrow_cast(), arrow_try_cast()].map(|inner| Arc::new(BoundedCast { inner }.into()))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct BoundedCast {
    inner: Arc<ScalarUDF>,
}

impl BoundedCast {
    fn check(&self, kind: Option<&ScalarValue>) -> Result<()> {
        let text = kind.and_then(|kind| kind.try_as_str().flatten()).unwrap_or_default();
        let num_levels = text.bytes().filter(|byte| matches!(byte, b'(' | b'<' | b'[')).count();
        if num_levels > MAX_LEVELS {
            return plan_err!(
                "{}: got a type with {num_levels} parentheses, expected at most {MAX_LEVELS}",
                self.inner.name()
            );
        }
        Ok(())
    }
}

impl ScalarUDFImpl for BoundedCast {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        self.inner.return_type(arguments)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.check(args.scalar_arguments.get(1).copied().flatten())?;
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        self.inner.invoke_with_args(args)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        if let Some(Expr::Literal(kind, _)) = args.get(1) {
            self.check(Some(kind))?;
        }
        self.inner.simplify(args, info)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.inner.documentation()
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::prelude::SessionContext;
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

    #[test]
    fn deep_schemas_are_refused() {
        let nested = |num_levels: usize| {
            let wrap = |kind, _| DataType::Struct(vec![Field::new("a", kind, true)].into());
            let kind = (0..num_levels).fold(DataType::Int8, wrap);
            Schema::new(vec![Field::new("a", DataType::new_list(kind, true), true)])
        };
        assert!(check_type_depth(&nested(MAX_LEVELS_OF_FILES - 1)).is_ok());
        let error = check_type_depth(&nested(MAX_LEVELS_OF_FILES)).unwrap_err().to_string();
        assert!(error.contains("column `a` has a type of more than 256 levels"), "{error}");
    }

    #[tokio::test]
    async fn deep_types_are_refused_before_they_are_parsed() {
        let context = SessionContext::new();
        crate::register_all(&context).unwrap();
        for (open, close) in [("List(", ")"), ("Dictionary(Int8, ", ")"), ("Struct(\"a\": ", ")")] {
            let kind = format!("{}Int8{}", open.repeat(300_000), close.repeat(300_000));
            for function in ["arrow_cast", "arrow_try_cast"] {
                let sql = format!("SELECT {function}(1, '{kind}')");
                let error = context.sql(&sql).await.unwrap_err().to_string();
                assert!(error.contains("expected at most 64"), "{open}: {error}");
            }
        }
        let sql = "SELECT arrow_typeof(arrow_cast([1], 'List(Int8)')), arrow_try_cast('x', 'Int8')";
        let rows = context.sql(sql).await.unwrap().to_string().await.unwrap();
        assert!(rows.contains("List(Int8)"), "{rows}");
    }
}
