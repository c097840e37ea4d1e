//! A wrapper around any scalar function: its arguments and its answer are counted by a memory pool.
//!
//! ```text
//! bytes of arguments * factor ─┐
//! bound of the answer ─────────┴─ largest ─▶ pool ─▶ the function runs ─▶ bytes of the answer ─▶ pool
//!                                                                                    given back after the call
//! ```
//!
//! DataFusion counts the memory of operators, not of expressions. The factor stands for what a function makes
//! while it runs: a text is copied a few times, and elements of lists become rows and entries of tables. Small
//! calls ask nobody. The names, types, rewrites and orders of a function stay those of the function.
//!
//! A large constant is [not folded](super::room::fold_little) while a statement is planned.
//! The operator `||` of texts becomes a function ([`JoinedTexts`]), so that its memory is charged, too.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, RecordBatch};
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema};
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, exec_err, resources_err};
use datafusion::error::Result;
use datafusion::execution::FunctionRegistry;
use datafusion::execution::memory_pool::MemoryPool;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::preimage::PreimageResult;
use datafusion::logical_expr::simplify::{ExprSimplifyResult, SimplifyContext};
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, ColumnarValue, Documentation, Expr, ExprSchemable, LogicalPlan, Operator, ReturnFieldArgs,
    ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::optimizer::AnalyzerRule;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{BinaryExpr as PhysicalBinary, Column};
use datafusion::prelude::SessionContext;
use datafusion::scalar::ScalarValue;
use tokio::runtime::{Handle, RuntimeFlavor};

use super::CorpusFunction;
use super::bounded::{answer_bytes, check_num_pairs, is_bounded};
use super::quality::QualityFunction;
use super::room::{AskForRoom, Room, is_folding, lambdas_with_room};
use super::text::TextFunction;
use crate::functions::scalar::room::{AnswerMemory, FREE_BYTES, repeated_bytes, value_bytes};
use crate::stop::Stop;

/// Bytes that a call makes for each byte of a text, a number and the like, the argument itself included.
const FACTOR_OF_FLAT: u64 = 5;
/// Bytes that a call makes for each byte of its arguments if its answer is a number, such as a length.
const FACTOR_OF_NUMBER: u64 = 2;
/// Bytes that a call makes for each byte of a list or a map, if its answer is one, too.
const FACTOR_OF_NESTED: u64 = 12;
/// Most bytes of the arguments of a call that is folded.
const MAX_FOLDED_ARGUMENTS: u64 = 64 << 10;
/// Most bytes of an answer that is folded.
const MAX_FOLDED_ANSWER: u64 = 1 << 20;
/// Functions that others know by their type; [`room`](super::room) stands before those that copy.
const KNOWN_BY_TYPE: [&str; 5] = ["get_field", "struct", "named_struct", "input_file_name", "file_row_index"];

/// Puts the functions of `registry` under the limit of `pool`: a call fails where it has too few bytes for
/// the arguments and the answer.
///
/// # Errors
/// The errors of `registry`.
pub fn bound_functions(registry: &mut dyn FunctionRegistry, pool: &Arc<dyn MemoryPool>) -> Result<()> {
    let room = Arc::new(ScalarUDF::from(Room::new(Some(pool))));
    for function in TextFunction::all(Some(pool)).chain(QualityFunction::all(Some(pool))).chain([room]) {
        if registry.udf(function.name()).is_ok() {
            registry.register_udf(function)?;
        }
    }
    for name in registry.udfs() {
        if let Some(function) = charged(&registry.udf(&name)?, pool) {
            registry.register_udf(function)?;
        }
    }
    Ok(())
}

/// Puts all expressions in statements of `context` under the limit of `pool`: calls of functions as
/// [`bound_functions`] does, operators that join texts, which become calls, and what copies long values.
///
/// # Errors
/// The errors of the registry.
pub fn charge_calls(context: &SessionContext, pool: &Arc<dyn MemoryPool>) -> Result<()> {
    let state = context.state_ref();
    let mut state = state.write();
    bound_functions(&mut *state, pool)?;
    state.add_analyzer_rule(Arc::new(ChargeCalls(Arc::clone(pool))));
    drop(state);
    context.add_optimizer_rule(Arc::new(AskForRoom(Arc::clone(pool))));
    Ok(())
}

/// Analyzer rule for functions that are in no registry: those of operators and of literals.
#[derive(Debug)]
struct ChargeCalls(Arc<dyn MemoryPool>);

impl AnalyzerRule for ChargeCalls {
    fn analyze(&self, plan: LogicalPlan, _config: &ConfigOptions) -> Result<LogicalPlan> {
        let charge = |plan: LogicalPlan| {
            let names = NamePreserver::new(&plan);
            let schema = merge_schema(&plan.inputs());
            plan.map_expressions(|expr| {
                let name = names.save(&expr);
                let joined = joined_texts(expr, &schema)?;
                let charged = joined.transform_data(|expr| charged_calls(expr, &self.0))?;
                let roomy = charged.transform_data(|expr| lambdas_with_room(expr, &schema, &self.0))?;
                Ok(roomy.update_data(|expr| name.restore(expr)))
            })
        };
        plan.transform_up_with_subqueries(charge).map(|plan| plan.data)
    }

    fn name(&self) -> &str {
        "memory of calls"
    }
}

/// Returns `expr` with all its functions charged to `pool`.
fn charged_calls(expr: Expr, pool: &Arc<dyn MemoryPool>) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::ScalarFunction(call) => Ok(match charged(&call.func, pool) {
            Some(func) => Transformed::yes(Expr::ScalarFunction(ScalarFunction { func, args: call.args })),
            None => Transformed::no(Expr::ScalarFunction(call)),
        }),
        other => Ok(Transformed::no(other)),
    })
}

/// Returns `function` charged to `pool`; `None` if it is, or counts its memory by itself.
fn charged(function: &Arc<ScalarUDF>, pool: &Arc<dyn MemoryPool>) -> Option<Arc<ScalarUDF>> {
    let inner = function.inner();
    let is_left = inner.is::<ChargedFunction>()
        || inner.is::<Room>()
        || inner.is::<CorpusFunction>()
        || function.as_async().is_some()
        || KNOWN_BY_TYPE.contains(&function.name());
    let charged = || ChargedFunction { inner: Arc::clone(function), pool: Arc::clone(pool) };
    (!is_left).then(|| Arc::new(ScalarUDF::from(charged())))
}

/// A function whose calls are charged; see the module's description.
#[derive(Debug)]
struct ChargedFunction {
    inner: Arc<ScalarUDF>,
    pool: Arc<dyn MemoryPool>,
}

impl PartialEq for ChargedFunction {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for ChargedFunction {}

impl Hash for ChargedFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl ChargedFunction {
    fn function(&self) -> &dyn ScalarUDFImpl {
        self.inner.inner().as_ref()
    }

    /// Returns the bytes that a call may make.
    fn needed_bytes(&self, args: &ScalarFunctionArgs, arguments_bytes: u64) -> Result<u64> {
        let is_nested =
            args.return_type().is_nested() && args.arg_fields.iter().any(|field| field.data_type().is_nested());
        let factor = match args.return_type() {
            kind if kind.is_numeric() => FACTOR_OF_NUMBER,
            _ if is_nested => FACTOR_OF_NESTED,
            _ => FACTOR_OF_FLAT,
        };
        let answer = answer_bytes(self.inner.name(), &args.args, args.number_rows)?;
        let copied_bytes = arguments_bytes.saturating_mul(factor);
        let made_bytes = answer.max(self.repeated_bytes(args)).saturating_add(arguments_bytes);
        Ok(copied_bytes.max(made_bytes))
    }

    /// Returns the bytes of constants that a call repeats for each row: those beside a column, in an answer
    /// that may have them.
    fn repeated_bytes(&self, args: &ScalarFunctionArgs) -> u64 {
        let is_column = |value: &ColumnarValue| matches!(value, ColumnarValue::Array(_));
        let has_them = !args.return_type().is_primitive() || self.inner.inner().is::<TextFunction>();
        if !has_them || is_bounded(self.inner.name()) || !args.args.iter().any(is_column) {
            return 0;
        }
        let repeated = args.args.iter().map(|value| repeated_bytes(value, args.number_rows));
        repeated.fold(0, u64::saturating_add)
    }

    fn call(&self, args: ScalarFunctionArgs, needed_bytes: u64) -> Result<ColumnarValue> {
        let is_of_runtime =
            || Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread);
        // A long call cannot be stopped. So other tasks of its thread go on elsewhere.
        if needed_bytes > FREE_BYTES && is_of_runtime() {
            return tokio::task::block_in_place(|| self.function().invoke_with_args(args));
        }
        self.function().invoke_with_args(args)
    }
}

impl ScalarUDFImpl for ChargedFunction {
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let arguments_bytes = args.args.iter().map(value_bytes).fold(0, u64::saturating_add);
        let needed_bytes = self.needed_bytes(&args, arguments_bytes)?;
        let is_folding = is_folding();
        if is_folding && (arguments_bytes > MAX_FOLDED_ARGUMENTS || needed_bytes > MAX_FOLDED_ANSWER) {
            return resources_err!("{} is not folded", self.name());
        }
        Stop::check_in(&args.config_options)?;
        check_num_pairs(self.name(), &args)?;
        let mut memory = AnswerMemory::new(self.inner.name(), Some(&self.pool));
        memory.add(needed_bytes)?;
        let answer = self.call(args, needed_bytes)?;
        let answer_bytes = value_bytes(&answer);
        if is_folding && answer_bytes > MAX_FOLDED_ANSWER {
            return resources_err!("{} is not folded", self.name());
        }
        let held_bytes = answer_bytes.saturating_add(arguments_bytes);
        memory.add(held_bytes.saturating_sub(needed_bytes))?;
        Ok(answer)
    }

    fn simplify(&self, args: Vec<Expr>, info: &SimplifyContext) -> Result<ExprSimplifyResult> {
        // Functions look for others among their arguments.
        let plain = args.iter().cloned().map(uncharged).collect::<Result<_>>()?;
        Ok(match self.function().simplify(plain, info)? {
            ExprSimplifyResult::Original(_) => ExprSimplifyResult::Original(args),
            ExprSimplifyResult::Simplified(expr) => {
                ExprSimplifyResult::Simplified(charged_calls(expr, &self.pool)?.data)
            }
        })
    }

    fn with_updated_config(&self, config: &ConfigOptions) -> Option<ScalarUDF> {
        let updated = Arc::new(self.function().with_updated_config(config)?);
        Some(ScalarUDF::from(Self { inner: updated, pool: Arc::clone(&self.pool) }))
    }

    fn name(&self) -> &str {
        self.function().name()
    }

    fn aliases(&self) -> &[String] {
        self.function().aliases()
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        self.function().schema_name(args)
    }

    fn signature(&self) -> &Signature {
        self.function().signature()
    }

    fn return_type(&self, arg_types: &[DataType]) -> Result<DataType> {
        self.function().return_type(arg_types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        self.function().return_field_from_args(args)
    }

    fn is_strict(&self) -> bool {
        self.function().is_strict()
    }

    fn preimage(&self, args: &[Expr], literal: &Expr, info: &SimplifyContext) -> Result<PreimageResult> {
        self.function().preimage(args, literal, info)
    }

    fn short_circuits(&self) -> bool {
        self.function().short_circuits()
    }

    fn conditional_arguments<'a>(&self, args: &'a [Expr]) -> Option<(Vec<&'a Expr>, Vec<&'a Expr>)> {
        self.function().conditional_arguments(args)
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        self.function().evaluate_bounds(input)
    }

    fn propagate_constraints(&self, interval: &Interval, inputs: &[&Interval]) -> Result<Option<Vec<Interval>>> {
        self.function().propagate_constraints(interval, inputs)
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        self.function().output_ordering(inputs)
    }

    fn preserves_lex_ordering(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.function().preserves_lex_ordering(inputs)
    }

    fn strictly_order_preserving(&self, inputs: &[ExprProperties]) -> Result<bool> {
        self.function().strictly_order_preserving(inputs)
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        self.function().coerce_types(arg_types)
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.function().documentation()
    }
}

/// Returns `expr` with the functions themselves in the place of charged ones.
fn uncharged(expr: Expr) -> Result<Expr> {
    let plain = expr.transform_up(|expr| match expr {
        Expr::ScalarFunction(ScalarFunction { func, args }) => {
            let inner = func.inner().downcast_ref::<ChargedFunction>();
            let inner = inner.map(|charged| Arc::clone(&charged.inner));
            let call = |func| Expr::ScalarFunction(ScalarFunction { func, args });
            Ok(match inner {
                Some(inner) => Transformed::yes(call(inner)),
                None => Transformed::no(call(func)),
            })
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(plain?.data)
}

/// Returns `expr` over `schema` with calls of [`JoinedTexts`] in the place of `||` between texts.
pub(super) fn joined_texts(expr: Expr, schema: &DFSchema) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| match expr {
        Expr::BinaryExpr(BinaryExpr { left, op: Operator::StringConcat, right })
            if is_text(&left, schema) && is_text(&right, schema) =>
        {
            let func = Arc::new(ScalarUDF::from(JoinedTexts::new()));
            let call = ScalarFunction { func, args: vec![*left, *right] };
            Ok(Transformed::yes(Expr::ScalarFunction(call)))
        }
        other => Ok(Transformed::no(other)),
    })
}

fn is_text(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|kind| kind.is_string())
}

/// The operator `||` of texts: NULL where a side is NULL.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct JoinedTexts {
    signature: Signature,
}

impl JoinedTexts {
    /// Creates the function.
    pub(crate) fn new() -> Self {
        Self { signature: Signature::any(2, Volatility::Immutable) }
    }
}

/// Returns the operator over two columns of a batch.
fn operator() -> PhysicalBinary {
    let column = |name, at| Arc::new(Column::new(name, at)) as Arc<dyn PhysicalExpr>;
    PhysicalBinary::new(column("left", 0), Operator::StringConcat, column("right", 1))
}

fn schema(left: &DataType, right: &DataType) -> Schema {
    let field = |name, kind: &DataType| Field::new(name, kind.clone(), true);
    Schema::new(vec![field("left", left), field("right", right)])
}

impl ScalarUDFImpl for JoinedTexts {
    fn name(&self) -> &str {
        "||"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        let names: Vec<String> = args.iter().map(|arg| arg.schema_name().to_string()).collect();
        Ok(names.join(" || "))
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [left, right] => operator().data_type(&schema(left, right)),
            other => exec_err!("||: got {} arguments, expected two", other.len()),
        }
    }

    fn return_field_from_args(&self, args: datafusion::logical_expr::ReturnFieldArgs) -> Result<FieldRef> {
        let kinds: Vec<DataType> = args.arg_fields.iter().map(|field| field.data_type().clone()).collect();
        let is_nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(self.name(), self.return_type(&kinds)?, is_nullable)))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let is_one = args.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let num_rows = if is_one { 1 } else { args.number_rows };
        let columns: Vec<ArrayRef> = args.args.iter().map(|value| value.to_array(num_rows)).collect::<Result<_>>()?;
        let [left, right] = columns.as_slice() else {
            return exec_err!("||: got {} arguments, expected two", columns.len());
        };
        let schema = Arc::new(schema(left.data_type(), right.data_type()));
        let joined = operator().evaluate(&RecordBatch::try_new(schema, columns)?)?;
        match joined {
            ColumnarValue::Array(array) if is_one => Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&array, 0)?)),
            joined => Ok(joined),
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::execution::memory_pool::GreedyMemoryPool;
    use datafusion::physical_plan::collect;

    use super::super::room::fold_little;
    use super::*;

    fn session(bytes: usize) -> (SessionContext, Arc<dyn MemoryPool>) {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(bytes));
        let context = SessionContext::new();
        crate::register_all(&context).unwrap();
        charge_calls(&context, &pool).unwrap();
        (context, pool)
    }

    #[tokio::test]
    async fn every_function_is_charged() {
        let (context, pool) = session(8 << 20);
        let many = "range(0, 400000)";
        let long = "repeat('a ', 2000000)";
        for expression in [
            format!("array_distinct({many})"),
            format!("reverse({long})"),
            format!("upper({long})"),
            format!("tokenize({long})"),
            format!("encode({long}, 'hex')"),
            format!("translate({long}, 'a', 'b')"),
            format!("{long} || {long}"),
            format!("array_concat({many}, {many})"),
            format!("{many} || {many}"),
            format!("concat({long}, {long}, {long})"),
            format!("string_to_array({long}, ' ')"),
            format!("matches({long}, 'a')"),
            "concat(repeat('x', 100000), value) FROM range(0, 8000)".to_owned(),
            "repeat('x', 100000) FROM range(0, 8000)".to_owned(),
            "max(repeat('x', 100000)) FROM range(0, 8000)".to_owned(),
            "named_struct('a', repeat('x', 100000), 'b', value) FROM range(0, 8000)".to_owned(),
            "CASE WHEN value > 5 THEN repeat('x', 100000) ELSE 'y' END FROM range(0, 8000)".to_owned(),
            "CAST(range(0, value + 400000) AS text) FROM range(0, 1)".to_owned(),
        ] {
            let sql = format!("SELECT {expression}");
            let rows = async { context.sql(&sql).await?.collect().await };
            let error = rows.await.unwrap_err().to_string();
            assert!(error.contains("so much memory is not left"), "{expression}: {error}");
            assert_eq!(pool.reserved(), 0, "{expression}");
        }
    }

    #[tokio::test]
    async fn answers_and_plans_are_those_without_a_limit() {
        let (context, pool) = session(64 << 20);
        let plain = SessionContext::new();
        crate::register_all(&plain).unwrap();
        for sql in [
            "SELECT upper('a') || 'b', concat('a', NULL, 'c'), NULL || 'x'",
            "SELECT value, log(2, power(2, value)) FROM generate_series(1, 3)",
            "SELECT named_struct('a', 1)['a'], make_array(1, 2) || 3, coalesce(NULL, 'x')",
            "SELECT date_trunc('day', TIMESTAMP '2026-01-02 03:04:05'), array_sort([3, 1, 2])",
            "SELECT regexp_like('abc', 'b'), nullif(1, 1), to_timestamp(0), round(2.5)",
            "SELECT value FROM generate_series(1, 9) WHERE abs(value) > 7 ORDER BY -value",
            "SELECT CASE WHEN value > 2 THEN upper('a') WHEN value > 1 THEN concat('b', value) END \
             FROM generate_series(1, 3)",
            "SELECT CAST([1, NULL, 3] AS text), CAST(concat('4', value) AS int), struct('x', value) \
             FROM generate_series(1, 2)",
            "SELECT string_agg(concat('y', random() * 0), ','), max(repeat('x', 3)), count(*) \
             FROM generate_series(1, 3)",
            "SELECT value, repeat('z', 5000) AS z FROM generate_series(1, 3) ORDER BY z, value DESC",
            "WITH t AS (SELECT value % 2 AS k, repeat('z', 9) AS z FROM generate_series(1, 5)) \
             SELECT z, k, count(*), max(CAST(k AS text)) FROM t GROUP BY z, k ORDER BY k",
            "SELECT (SELECT repeat('s', 3)) AS s, lag('p', 1, 'd') OVER (ORDER BY value) AS l \
             FROM generate_series(1, 3) ORDER BY value",
        ] {
            let shown = async |context: &SessionContext| context.sql(sql).await.unwrap().to_string().await.unwrap();
            assert_eq!(shown(&context).await, shown(&plain).await, "{sql}");
            assert_eq!(pool.reserved(), 0, "{sql}");
        }
    }

    #[tokio::test]
    async fn calls_end_after_a_stop() {
        let (context, _) = session(64 << 20);
        let stop = Stop::default();
        let frame = context.sql("SELECT upper(concat('x', value)) FROM range(0, 9)").await.unwrap();
        let (mut state, plan) = frame.into_parts();
        let options = stop.added_to(state.config_options());
        state.execution_props_mut().config_options = Some(Arc::new(options));
        let plan = || state.create_physical_plan(&plan);
        assert!(collect(plan().await.unwrap(), context.task_ctx()).await.is_ok());
        stop.set();
        let stopped = collect(plan().await.unwrap(), context.task_ctx()).await;
        let error = stopped.unwrap_err().to_string();
        assert!(error.contains("the statement was stopped"), "{error}");
    }

    #[tokio::test]
    async fn large_constants_are_not_folded() {
        let (context, _) = session(64 << 20);
        let optimized = async |sql: &str| {
            let plan = context.sql(sql).await.unwrap().into_unoptimized_plan();
            let state = context.state();
            fold_little(|| state.optimize(&plan)).unwrap().to_string()
        };
        let large = optimized("SELECT repeat('x', 2000000) AS x").await;
        assert!(large.len() < 1000 && large.contains("repeat"), "{}", large.len());
        assert!(!optimized("SELECT repeat('x', 20) AS x").await.contains("repeat"));
        assert!(!is_folding());
    }
}
