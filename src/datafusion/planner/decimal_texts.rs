//! Bound on texts that are cast to decimals.
//!
//! ```text
//! CAST(text AS DECIMAL(p, s))   ─▶   CAST(decimal_text(text, 76 - s) AS DECIMAL(p, s))
//! ```
//!
//! Arrow reads the digits of a decimal in pieces of 38 and recurses once for each piece. A text of 300 million
//! digits overflows the stack, which ends the process. So a function stands below each cast from text to a decimal,
//! also inside lists and structs. It refuses texts that are too long for any decimal, and numbers with more digits
//! before the point than such a decimal has room for: Arrow takes some of them for others. Below `TRY_CAST` they are
//! NULL. Literals of usual length need no function. Values of `EXECUTE` are evaluated before a rule sees them, and
//! so are arguments of DataFusion's own table functions. There such a cast is refused unless its text is a literal
//! of usual length ([`check_parameters`]). A scan refuses a text column of a Parquet file that is declared as a
//! decimal (`parquet_files.rs`). Scans of CSV and JSON read declared decimals by a
//! function of their own (`text_files/mod.rs`).

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, GenericStringArray, OffsetSizeTrait, StringViewArray, make_array,
};
use datafusion::arrow::compute::nullif;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::utils::take_function_args;
use datafusion::common::{DFSchema, exec_err, plan_err};
use datafusion::error::Result;
use datafusion::logical_expr::expr::{Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Statement, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::scalar::ScalarValue;

use crate::depth::inner_types;

/// Longest text of a decimal in bytes. A decimal has 76 digits at most; leading zeros and blanks may stand
/// before them.
const MAX_BYTES: usize = 1000;
/// Digits of the largest decimals.
const MAX_DIGITS: usize = 76;

/// Analyzer rule that puts a [`DecimalText`] below casts; see the module's description.
#[derive(Debug)]
pub(crate) struct DecimalTexts;

impl AnalyzerRule for DecimalTexts {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        plan.transform_up_with_subqueries(bounded_plan).map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "texts of decimals"
    }
}

fn bounded_plan(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    let schema = merge_schema(&plan.inputs());
    let names = NamePreserver::new(&plan);
    plan.map_expressions(|expr| {
        let name = names.save(&expr);
        let bounded = bounded_casts(expr, &schema)?;
        Ok(bounded.update_data(|expr| name.restore(expr)))
    })
}

/// Refuses values of `EXECUTE` that cast a text to a decimal, also because the parameter is declared as one: of such
/// parameters `are_decimals` is true. Literals of usual length are cast. Other plans pass.
///
/// ```
/// use datafusion::prelude::*;
/// use datafusion_tadoc::{check_parameters, register_all};
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let ctx = SessionContext::new();
/// register_all(&ctx)?;
/// ctx.sql("PREPARE double AS SELECT $1 * 2").await?;
/// let long = "EXECUTE double(CAST(repeat('1', 20000) AS DECIMAL))";
/// let long = ctx.state().create_logical_plan(long).await?;
/// assert!(check_parameters(&long, &[]).is_err());
/// let short = ctx.state().create_logical_plan("EXECUTE double(CAST('1' AS DECIMAL))").await?;
/// check_parameters(&short, &[])?;
/// # Ok::<(), datafusion::error::DataFusionError>(())
/// # }).unwrap();
/// ```
///
/// # Errors
/// A plan error that names the value by its number.
pub fn check_parameters(plan: &LogicalPlan, are_decimals: &[bool]) -> Result<()> {
    let LogicalPlan::Statement(Statement::Execute(execute)) = plan else { return Ok(()) };
    let schema = DFSchema::empty();
    for (idx, value) in execute.parameters.iter().enumerate() {
        let is_decimal = are_decimals.get(idx).copied().unwrap_or_default();
        let is_long = is_decimal && is_long_text(value, &schema);
        if is_long || bounded_casts(value.clone(), &schema)?.transformed {
            return plan_err!(
                "EXECUTE {}: value {} casts a text to a decimal, expected a number; write the number",
                execute.name,
                idx + 1
            );
        }
    }
    Ok(())
}

/// Returns `expr` over `schema` with the function below its casts from texts to decimals.
///
/// # Errors
/// Never fails today.
pub(crate) fn bounded_casts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        Ok(match expr {
            Expr::Cast(Cast { expr, field }) if needs_bound(&expr, field.data_type(), schema) => {
                let expr = Box::new(bounded_text(*expr, most_digits(field.data_type()), false));
                Transformed::yes(Expr::Cast(Cast { expr, field }))
            }
            Expr::TryCast(TryCast { expr, field }) if needs_bound(&expr, field.data_type(), schema) => {
                let expr = Box::new(bounded_text(*expr, most_digits(field.data_type()), true));
                Transformed::yes(Expr::TryCast(TryCast { expr, field }))
            }
            Expr::ScalarFunction(call) => bounded_call(call, schema),
            other => Transformed::no(other),
        })
    })
}

/// Bounds the argument of `arrow_cast` and `arrow_try_cast`, which become casts later.
fn bounded_call(mut call: ScalarFunction, schema: &DFSchema) -> Transformed<Expr> {
    let is_try = call.func.name() == "arrow_try_cast";
    if !is_try && call.func.name() != "arrow_cast" {
        return Transformed::no(Expr::ScalarFunction(call));
    }
    let kind = match call.args.get(1) {
        Some(Expr::Literal(kind, _)) => kind.try_as_str().flatten(),
        _ => None,
    };
    let is_decimal = kind.is_none_or(|kind| kind.contains("Decimal"));
    let num_digits = kind.and_then(|kind| kind.parse().ok()).map_or(MAX_DIGITS, |kind| most_digits(&kind));
    match call.args.first_mut() {
        Some(value) if is_decimal && is_long_text(value, schema) => {
            let inner = std::mem::take(value);
            *value = bounded_text(inner, num_digits, is_try);
            Transformed::yes(Expr::ScalarFunction(call))
        }
        _ => Transformed::no(Expr::ScalarFunction(call)),
    }
}

fn bounded_text(text: Expr, num_digits: usize, is_try: bool) -> Expr {
    let num_digits = Expr::Literal(ScalarValue::UInt64(Some(num_digits as u64)), None);
    ScalarUDF::from(DecimalText::new(is_try)).call(vec![text, num_digits])
}

/// Returns how many digits stand before the point of all decimals in `target` that Arrow reads rightly.
fn most_digits(target: &DataType) -> usize {
    match target {
        DataType::Decimal32(_, scale)
        | DataType::Decimal64(_, scale)
        | DataType::Decimal128(_, scale)
        | DataType::Decimal256(_, scale) => MAX_DIGITS.saturating_sub(usize::try_from(*scale).unwrap_or(0)),
        other => inner_types(other).into_iter().map(most_digits).min().unwrap_or(MAX_DIGITS),
    }
}

fn needs_bound(text: &Expr, target: &DataType, schema: &DFSchema) -> bool {
    has_type(target, &DataType::is_decimal) && is_long_text(text, schema)
}

/// Returns true if `expr` may be a text that is too long, or hold one.
fn is_long_text(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::Literal(ScalarValue::Utf8(text) | ScalarValue::Utf8View(text), _) => {
            text.as_ref().is_some_and(|text| text.len() > MAX_DIGITS)
        }
        Expr::ScalarFunction(call) if call.func.inner().is::<DecimalText>() => false,
        other => other.get_type(schema).is_ok_and(|kind| has_type(&kind, &DataType::is_string)),
    }
}

/// Returns true if `kind` or a type inside of it has a property.
pub(crate) fn has_type(kind: &DataType, has: &impl Fn(&DataType) -> bool) -> bool {
    has(kind) || inner_types(kind).into_iter().any(|inner| has_type(inner, has))
}

/// The function that refuses texts which are too long for a decimal.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct DecimalText {
    /// True if long texts are NULL.
    is_try: bool,
    signature: Signature,
}

impl DecimalText {
    /// Creates the function below a cast, or below a `TRY_CAST`.
    pub(crate) fn new(is_try: bool) -> Self {
        Self { is_try, signature: Signature::any(2, Volatility::Immutable) }
    }
}

impl ScalarUDFImpl for DecimalText {
    fn name(&self) -> &str {
        if self.is_try { "try_decimal_text" } else { "decimal_text" }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        let [text, _] = take_function_args(self.name(), arguments)?;
        Ok(text.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [value, num_digits] = take_function_args(self.name(), args.args)?;
        let num_digits = match num_digits {
            ColumnarValue::Scalar(ScalarValue::UInt64(Some(number))) => usize::try_from(number).unwrap_or(MAX_DIGITS),
            _ => MAX_DIGITS,
        };
        match value {
            ColumnarValue::Array(array) => self.bounded(array, num_digits).map(ColumnarValue::Array),
            ColumnarValue::Scalar(scalar) => {
                let array = self.bounded(scalar.to_array()?, num_digits)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?))
            }
        }
    }
}

impl DecimalText {
    fn bounded(&self, array: ArrayRef, num_digits: usize) -> Result<ArrayRef> {
        let longest = longest_bytes(&array);
        if longest <= num_digits {
            return Ok(array);
        }
        let are_large = are_large(&array, num_digits);
        if longest <= MAX_BYTES && !has_large(&array, are_large.as_ref(), num_digits) {
            return Ok(array);
        }
        match are_large {
            Some(are_large) if self.is_try => Ok(nullif(&array, &are_large)?),
            _ if longest > MAX_BYTES => exec_err!(
                "a text of {longest} bytes is no decimal: expected at most {MAX_BYTES} bytes; \
                 a decimal has up to {MAX_DIGITS} digits"
            ),
            _ => exec_err!(
                "a number of more than {num_digits} digits before its point is no decimal of this scale; write fewer \
                 digits behind the point of the type"
            ),
        }
    }
}

/// Returns the bytes of the longest text in `array`, at any depth.
fn longest_bytes(array: &ArrayRef) -> usize {
    match array.data_type() {
        DataType::Utf8 => longest_of(array.as_string::<i32>()),
        DataType::LargeUtf8 => longest_of(array.as_string::<i64>()),
        DataType::Utf8View => longest_view(array.as_string_view()),
        kind if kind.is_nested() || matches!(kind, DataType::Dictionary(..)) => {
            let data = array.to_data();
            let children = data.child_data().iter().cloned().map(make_array);
            children.map(|child| longest_bytes(&child)).max().unwrap_or(0)
        }
        _ => 0,
    }
}

fn longest_of<O: OffsetSizeTrait>(texts: &GenericStringArray<O>) -> usize {
    texts.offsets().lengths().max().unwrap_or(0)
}

fn longest_view(texts: &StringViewArray) -> usize {
    texts.lengths().max().unwrap_or(0) as usize
}

/// Returns which texts of a column of texts are too long or too large; `None` for other columns.
fn are_large(array: &ArrayRef, num_digits: usize) -> Option<BooleanArray> {
    let is_large = |text: Option<&str>| Some(text.is_some_and(|text| is_large(text, num_digits)));
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().map(is_large).collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().map(is_large).collect(),
        DataType::Utf8View => array.as_string_view().iter().map(is_large).collect(),
        _ => return None,
    })
}

/// Returns true if a text in `array` is too large, at any depth. `are_large` are those of a column of texts.
fn has_large(array: &ArrayRef, are_large_texts: Option<&BooleanArray>, num_digits: usize) -> bool {
    if let Some(are_large) = are_large_texts {
        return are_large.true_count() > 0;
    }
    let data = array.to_data();
    let mut children = data.child_data().iter().cloned().map(make_array);
    children.any(|child| has_large(&child, are_large(&child, num_digits).as_ref(), num_digits))
}

fn is_large(text: &str, num_digits: usize) -> bool {
    if text.len() <= num_digits {
        return false;
    }
    let number = text.trim().trim_start_matches(['-', '+']).trim_start_matches('0');
    let whole = number.split('.').next().unwrap_or_default();
    text.len() > MAX_BYTES || whole.len() > num_digits
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::util::display::array_value_to_string;
    use datafusion::prelude::SessionContext;

    use super::*;

    async fn value(expression: &str) -> Result<String> {
        let context = SessionContext::new();
        crate::register_all(&context)?;
        let rows = context.sql(&format!("SELECT {expression}")).await?.collect().await?;
        Ok(array_value_to_string(rows[0].column(0), 0)?)
    }

    #[tokio::test]
    async fn usual_texts_are_cast_as_before() {
        for (expression, expected) in [
            ("CAST('1.50' AS DECIMAL(10, 2))", "1.50"),
            ("CAST(text AS DECIMAL(10, 2)) FROM (VALUES ('2.25')) AS t (text)", "2.25"),
            ("TRY_CAST(text AS DECIMAL(10, 2)) FROM (VALUES ('x')) AS t (text)", ""),
            ("CAST(repeat('0', 900) || '7' AS DECIMAL(5, 1))", "7.0"),
            ("arrow_cast('12', 'Decimal128(10, 1)')", "12.0"),
            ("CAST(make_array('1', '2') AS DECIMAL(5, 1)[])", "[1.0, 2.0]"),
            ("TRY_CAST(repeat('1', 2000) AS DECIMAL)", ""),
            (
                "CAST(repeat('9', 70) AS DECIMAL(76, 6))",
                "9999999999999999999999999999999999999999999999999999999999999999999999.000000",
            ),
            ("CAST(repeat('0', 200) || '12.5' AS DECIMAL(5, 1))", "12.5"),
        ] {
            assert_eq!(value(expression).await.unwrap(), expected, "{expression}");
        }
    }

    #[tokio::test]
    async fn texts_without_end_are_refused_before_they_are_parsed() {
        let long = "repeat('1', 20000000)";
        for expression in [
            format!("CAST({long} AS DECIMAL)"),
            format!("CAST({long} AS DECIMAL(60, 2))"),
            format!("{long}::DECIMAL + 1"),
            format!("1.5::DECIMAL(10, 2) = {long}"),
            format!("CAST(t.text AS DECIMAL) FROM (SELECT {long} AS text) AS t"),
            format!("arrow_cast({long}, 'Decimal256(60, 2)')"),
            format!("CAST(make_array({long}) AS DECIMAL[])"),
            format!("TRY_CAST(make_array({long}) AS DECIMAL[])"),
            format!("coalesce({long}::DECIMAL, 1)"),
        ] {
            let error = value(&expression).await.unwrap_err().to_string();
            assert!(error.contains("is no decimal"), "{expression}: {error}");
        }
        let none = value(&format!("TRY_CAST({long} AS DECIMAL)")).await.unwrap();
        assert_eq!(none, "");
        let none = value(&format!("arrow_try_cast({long}, 'Decimal128(10, 2)')")).await;
        assert_eq!(none.unwrap(), "");
    }

    /// Times a power of ten, each of these numbers is 0 in 256 bits.
    #[tokio::test]
    async fn numbers_with_too_many_digits_before_the_point_are_no_decimals() {
        let large = [
            ("28948022309329048855892746252171976963317496166410141009864396001978282409984.001", "DECIMAL(10, 2)"),
            (
                "113078212145816597093331040047546785012958969400039613319782796882727665664.00000000001",
                "DECIMAL(38, 10)",
            ),
        ];
        for (number, kind) in large {
            for expression in [
                format!("CAST('{number}' AS {kind})"),
                format!("CAST(text AS {kind}) FROM (VALUES ('{number}')) AS t (text)"),
                format!("CAST(make_array('{number}') AS {kind}[])"),
                format!("arrow_cast(' -0{number}', 'Decimal128(38, 10)')"),
            ] {
                let error = value(&expression).await.unwrap_err().to_string();
                assert!(error.contains("digits before its point"), "{expression}: {error}");
            }
            assert_eq!(value(&format!("TRY_CAST('{number}' AS {kind})")).await.unwrap(), "");
        }
    }

    #[tokio::test]
    async fn names_of_columns_stay() {
        let context = SessionContext::new();
        crate::register_all(&context).unwrap();
        let sql = "SELECT CAST(text AS DECIMAL(5, 1)) FROM (VALUES ('1')) AS t (text)";
        let rows = context.sql(sql).await.unwrap().collect().await.unwrap();
        assert_eq!(rows[0].schema().field(0).name(), "t.text");
    }
}
