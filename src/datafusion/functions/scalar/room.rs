//! Memory of the answers of a function's call, under the limit of a pool while the function runs, the function `room`
//! that asks for that of copies of a value, and the rule that puts it into plans.
//!
//! ```text
//! CASE WHEN … THEN t ELSE u END   ─▶   CASE WHEN … THEN room(t) ELSE room(u) END
//! CAST(list AS text)              ─▶   CAST(room(list) AS text)
//! SELECT repeat('x', 900000) …    ─▶   SELECT room(repeat('x', 900000)) …
//! ```
//!
//! DataFusion counts the memory of operators, not of expressions. Expressions that are no calls of scalar functions,
//! and those that others know by their type, cannot be [charged](super::charged). They copy long values, or repeat a
//! constant for each row of a batch. So `room` stands below them. It returns its argument if the pool has room for the
//! copies, else an error. A column needs it only where lists are cast: a copy of a batch is as long as the batch.
//!
//! [`AskForRoom`] is the last rule of the optimizer, because the others know the expressions by their form. Filters
//! that tables answer by themselves stay as they are.
//!
//! A plan would hold a large constant for as long as it lives, and planning cannot be stopped. So [`fold_little`] plans
//! with a small limit for each call: a larger constant is computed when the statement runs.

use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{DFSchema, plan_err, resources_datafusion_err, resources_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation, human_readable_size};
use datafusion::logical_expr::expr::{Case, Cast, ScalarFunction, TryCast};
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::interval_arithmetic::Interval;
use datafusion::logical_expr::sort_properties::{ExprProperties, SortProperties};
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprSchemable, LogicalPlan, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    Signature, Volatility,
};
use datafusion::optimizer::{ApplyOrder, OptimizerConfig, OptimizerRule};
use datafusion::scalar::ScalarValue;

/// Calls of fewer bytes do not ask the pool.
pub(super) const FREE_BYTES: u64 = 1 << 20;

/// Bytes for each byte of a constant that is repeated: in a buffer that grows, and copied by the operator above.
const COPIES_OF_REPEATED: u64 = 3;

/// Name of the memory of calls, before the name of the function.
const CALL: &str = "a call of ";

/// Returns true if the memory of the consumer of this name is that of the call of a function, which asks for it
/// before it takes any.
///
/// ```
/// assert!(datafusion_tadoc::is_memory_of_calls("a call of upper"));
/// assert!(!datafusion_tadoc::is_memory_of_calls("SortExec[0]"));
/// ```
pub fn is_memory_of_calls(consumer: &str) -> bool {
    consumer.starts_with(CALL)
}

/// Memory of the answers of one call of a function.
pub(crate) struct AnswerMemory<'a> {
    name: &'a str,
    /// `None` without a limit.
    pool: Option<&'a Arc<dyn MemoryPool>>,
    /// `None` as long as no memory was asked for: the pool has one lock for all consumers.
    reservation: Option<MemoryReservation>,
    len_bytes: u64,
}

impl<'a> AnswerMemory<'a> {
    /// Creates an account of no bytes for a call of `name`.
    pub(crate) fn new(name: &'a str, pool: Option<&'a Arc<dyn MemoryPool>>) -> Self {
        Self { name, pool, reservation: None, len_bytes: 0 }
    }

    /// Creates an account of the same call for memory that is given back earlier.
    pub(super) fn beside(&self) -> Self {
        Self::new(self.name, self.pool)
    }

    /// Asks for `len_bytes` more.
    ///
    /// # Errors
    /// Resources exhausted, if the pool has not so many left.
    pub(crate) fn add(&mut self, len_bytes: u64) -> Result<()> {
        self.len_bytes = self.len_bytes.saturating_add(len_bytes);
        let Some(pool) = self.pool.filter(|_| self.len_bytes > FREE_BYTES) else { return Ok(()) };
        let name = self.name;
        let consumer = || MemoryConsumer::new(format!("{CALL}{name}")).register(pool);
        let reservation = self.reservation.get_or_insert_with(consumer);
        let len_bytes = usize::try_from(self.len_bytes).unwrap_or(usize::MAX);
        let resized = reservation.try_resize(len_bytes);
        resized.map_err(|cause| too_long(self.name, len_bytes, &cause))
    }
}

fn too_long(name: &str, len_bytes: usize, cause: &DataFusionError) -> DataFusionError {
    resources_datafusion_err!(
        "a call of {name} may take {}, and so much memory is not left; ask for less, or raise the limit \
         (--memory-limit of tadoc): {}",
        human_readable_size(len_bytes),
        cause.strip_backtrace()
    )
}

/// Returns the bytes that a constant takes while it is written to each of `num_rows` rows; 0 for a column.
pub(super) fn repeated_bytes(value: &ColumnarValue, num_rows: usize) -> u64 {
    let ColumnarValue::Scalar(scalar) = value else { return 0 };
    let row_bytes = match scalar {
        ScalarValue::Utf8(text) | ScalarValue::LargeUtf8(text) | ScalarValue::Utf8View(text) => {
            text.as_ref().map_or(0, String::len)
        }
        ScalarValue::Binary(bytes) | ScalarValue::LargeBinary(bytes) | ScalarValue::BinaryView(bytes) => {
            bytes.as_ref().map_or(0, Vec::len)
        }
        other if other.data_type().is_nested() => other.size(),
        _ => 0,
    };
    (row_bytes as u64).saturating_mul(num_rows as u64).saturating_mul(COPIES_OF_REPEATED)
}

/// Returns the bytes of an argument or an answer. Rows of views count what they show.
pub(crate) fn value_bytes(value: &ColumnarValue) -> u64 {
    match value {
        ColumnarValue::Scalar(scalar) => scalar.size() as u64,
        ColumnarValue::Array(array) => match array.data_type() {
            DataType::Utf8View => {
                let views = array.as_string_view();
                views.lengths().map(|len| u64::from(len) + 16).sum()
            }
            DataType::BinaryView => {
                let views = array.as_binary_view();
                views.lengths().map(|len| u64::from(len) + 16).sum()
            }
            _ => {
                let whole = || array.get_array_memory_size();
                array.to_data().get_slice_memory_size().unwrap_or_else(|_| whole()) as u64
            }
        },
    }
}

/// Copies of a flat value that exist at a time, the value itself included.
const COPIES_OF_FLAT: u64 = 2;
/// Bytes that a cast or a function with a lambda makes for each byte of a list, the list included.
const COPIES_OF_NESTED: u64 = 6;
/// Most bytes of a literal that needs no room: a batch of them is short.
const MAX_SHORT_LITERAL: usize = 4 << 10;
/// Functions that cannot be charged, because others know them by their type, and that repeat constants.
const REPEATING: [&str; 2] = ["struct", "named_struct"];

/// The last rule of the optimizer; see the module's description.
#[derive(Debug)]
pub(super) struct AskForRoom(pub(super) Arc<dyn MemoryPool>);

impl OptimizerRule for AskForRoom {
    fn name(&self) -> &str {
        "room for copies"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(&self, plan: LogicalPlan, _config: &dyn OptimizerConfig) -> Result<Transformed<LogicalPlan>> {
        if matches!(plan, LogicalPlan::TableScan(_)) {
            return Ok(Transformed::no(plan));
        }
        let schema = merge_schema(&plan.inputs());
        let names = NamePreserver::new(&plan);
        plan.map_expressions(|expr| {
            let name = names.save(&expr);
            let inside = expr.transform_up(|expr| Ok(self.inside(expr, &schema)))?;
            let whole = inside.transform_data(|expr| Ok(self.around_constant(expr, &schema)))?;
            Ok(whole.update_data(|expr| name.restore(expr)))
        })
    }
}

impl AskForRoom {
    /// Puts the function below `expr` if `expr` copies or repeats values.
    fn inside(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        let mut is_changed = false;
        let mut ask = |expr: &mut Expr, needs: &dyn Fn(&Expr) -> bool| {
            if needs(expr) && is_long(expr, schema) {
                *expr = self.asked(std::mem::take(expr));
                is_changed = true;
            }
        };
        let is_made = |expr: &Expr| !matches!(expr, Expr::Column(_));
        let expr = match expr {
            Expr::Cast(Cast { mut expr, field }) => {
                let is_nested = field.data_type().is_nested() || is_nested(&expr, schema);
                ask(&mut expr, &|expr| is_nested || is_made(expr));
                Expr::Cast(Cast { expr, field })
            }
            Expr::TryCast(TryCast { mut expr, field }) => {
                let is_nested = field.data_type().is_nested() || is_nested(&expr, schema);
                ask(&mut expr, &|expr| is_nested || is_made(expr));
                Expr::TryCast(TryCast { expr, field })
            }
            Expr::Case(Case { expr, mut when_then_expr, mut else_expr }) => {
                let thens = when_then_expr.iter_mut().map(|(_, then)| then);
                thens.chain(&mut else_expr).for_each(|expr| ask(expr, &is_made));
                Expr::Case(Case { expr, when_then_expr, else_expr })
            }
            Expr::ScalarFunction(ScalarFunction { func, mut args }) if REPEATING.contains(&func.name()) => {
                args.iter_mut().for_each(|expr| ask(expr, &is_made));
                Expr::ScalarFunction(ScalarFunction { func, args })
            }
            Expr::AggregateFunction(mut call) => {
                call.params.args.iter_mut().for_each(|expr| ask(expr, &is_constant));
                Expr::AggregateFunction(call)
            }
            Expr::WindowFunction(mut call) => {
                call.params.args.iter_mut().for_each(|expr| ask(expr, &is_constant));
                Expr::WindowFunction(call)
            }
            other => other,
        };
        if is_changed { Transformed::yes(expr) } else { Transformed::no(expr) }
    }

    /// Puts the function around a constant that becomes a column.
    fn around_constant(&self, expr: Expr, schema: &DFSchema) -> Transformed<Expr> {
        match expr {
            Expr::Alias(mut alias) => {
                let inner = self.around_constant(std::mem::take(alias.expr.as_mut()), schema);
                inner.update_data(|expr| {
                    *alias.expr = expr;
                    Expr::Alias(alias)
                })
            }
            expr if is_constant(&expr) && is_long(&expr, schema) => Transformed::yes(self.asked(expr)),
            other => Transformed::no(other),
        }
    }

    fn asked(&self, expr: Expr) -> Expr {
        asked(expr, &self.0)
    }
}

/// Returns `expr` over `schema` with the function around the lists of functions with lambdas, and around the answers
/// of lambdas. An answer that is the same for all elements is repeated for each. Such functions are not folded
/// then, so this comes before the optimizer.
pub(super) fn lambdas_with_room(
    expr: Expr,
    schema: &DFSchema,
    pool: &Arc<dyn MemoryPool>,
) -> Result<Transformed<Expr>> {
    expr.transform_up(|expr| {
        let Expr::HigherOrderFunction(mut call) = expr else { return Ok(Transformed::no(expr)) };
        for arg in &mut call.args {
            let value = if let Expr::Lambda(lambda) = arg { lambda.body.as_mut() } else { arg };
            if is_long(value, schema) {
                *value = asked(std::mem::take(value), pool);
            }
        }
        Ok(Transformed::yes(Expr::HigherOrderFunction(call)))
    })
}

fn asked(expr: Expr, pool: &Arc<dyn MemoryPool>) -> Expr {
    ScalarUDF::from(Room::new(Some(pool))).call(vec![expr])
}

/// Returns true if `expr` has the same value in all rows, and is computed.
fn is_constant(expr: &Expr) -> bool {
    let is_computed = !matches!(expr, Expr::AggregateFunction(_) | Expr::WindowFunction(_) | Expr::GroupingSet(_));
    is_computed && !expr.any_column_refs()
}

/// Returns true if `expr` may be long, and is not asked for yet.
fn is_long(expr: &Expr, schema: &DFSchema) -> bool {
    match expr {
        Expr::ScalarFunction(call) if call.func.inner().is::<Room>() => false,
        Expr::Literal(value, _) => value.size() > MAX_SHORT_LITERAL,
        other => other.get_type(schema).is_ok_and(|kind| !has_width(&kind)),
    }
}

fn is_nested(expr: &Expr, schema: &DFSchema) -> bool {
    expr.get_type(schema).is_ok_and(|kind| kind.is_nested())
}

/// Returns true if all values of a type have the same short width.
fn has_width(kind: &DataType) -> bool {
    kind.primitive_width().is_some() || matches!(kind, DataType::Boolean | DataType::Null)
}

fn no_value<T>() -> Result<T> {
    plan_err!("room: got no argument, expected a value")
}

/// The function `room`: its answer is its argument.
#[derive(Debug)]
pub(crate) struct Room {
    signature: Signature,
    /// `None` without a limit.
    pool: Option<Arc<dyn MemoryPool>>,
}

impl Room {
    /// Creates the function, which asks `pool`.
    pub(crate) fn new(pool: Option<&Arc<dyn MemoryPool>>) -> Self {
        Self { signature: Signature::any(1, Volatility::Immutable), pool: pool.cloned() }
    }
}

impl PartialEq for Room {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Room {}

impl Hash for Room {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
    }
}

impl ScalarUDFImpl for Room {
    fn name(&self) -> &str {
        "room"
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        Ok(args.first().map(|arg| arg.schema_name().to_string()).unwrap_or_default())
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        match arguments {
            [kind, ..] => Ok(kind.clone()),
            [] => no_value(),
        }
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs) -> Result<FieldRef> {
        match args.arg_fields {
            [field, ..] => Ok(Arc::clone(field)),
            [] => no_value(),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first() else { return no_value() };
        // The constant would be repeated without a question then.
        if is_folding() {
            return resources_err!("room is not folded");
        }
        let is_nested = value.data_type().is_nested();
        let copies = if is_nested { COPIES_OF_NESTED } else { COPIES_OF_FLAT };
        let copied_bytes = value_bytes(value).saturating_mul(copies);
        let bytes = copied_bytes.max(repeated_bytes(value, args.number_rows));
        AnswerMemory::new("a copy of values", self.pool.as_ref()).add(bytes)?;
        Ok(value.clone())
    }

    fn evaluate_bounds(&self, input: &[&Interval]) -> Result<Interval> {
        match input {
            [bounds, ..] => Ok((*bounds).clone()),
            [] => no_value(),
        }
    }

    fn output_ordering(&self, inputs: &[ExprProperties]) -> Result<SortProperties> {
        Ok(inputs.first().map_or(SortProperties::Unordered, |input| input.sort_properties))
    }

    fn preserves_lex_ordering(&self, _inputs: &[ExprProperties]) -> Result<bool> {
        Ok(true)
    }
}

thread_local! {
    static IS_FOLDING: Cell<bool> = const { Cell::new(false) };
}

/// Runs `plan`, which plans a statement, without folding large constants.
///
/// ```
/// assert_eq!(datafusion_tadoc::fold_little(|| 7), 7);
/// ```
pub fn fold_little<T>(plan: impl FnOnce() -> T) -> T {
    /// Sets the flag back, also after a panic.
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IS_FOLDING.set(self.0);
        }
    }
    let _before = Before(IS_FOLDING.replace(true));
    plan()
}

/// Returns true while [`fold_little`] runs.
pub(super) fn is_folding() -> bool {
    IS_FOLDING.get()
}
