//! The function `keyness(corpus, reference [, min_count] [, fold] [, where] [, reference_where])`: the words that tell a
//! corpus, or a part of it, from another.
//!
//! ```text
//! word_count(corpus) ──┐                    sum of counts ─┐
//!                      ├─ full join on word ───────────────┴─▶ score, log_ratio
//! word_count(reference)┘                    sum of counts ─┘
//! ```
//!
//! A scan reads one corpus, so this function is a view: a logical plan over two scans of `word_count`.
//! Everything else is DataFusion's. Formulas and sources are those of `tadoc::analytics::keyness`.

use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::sum;
use datafusion::logical_expr::{
    ColumnarValue, Expr, JoinType, LogicalPlanBuilder, ScalarUDF, Volatility, col, create_udf, lit,
};

use super::word_count::WordCount;
use super::{PlannedFunction, with_condition};
use crate::corpora::CorpusCache;
use crate::errors::mask_secrets;
use crate::planning::TadocTable;
use crate::planning::arguments::Arguments;
use crate::planning::function::Bind;
use crate::planning::signature::{self, ArgumentKind, Signature};
use tadoc::analytics::{self, Fold};

/// The argument with the condition of the reference.
const REFERENCE_WHERE: &str = "reference_where";

/// The function `keyness` in SQL.
pub(super) static DEFINITION: PlannedFunction = PlannedFunction {
    signature: Signature {
        name: "keyness",
        arguments: &[
            signature::CORPUS,
            signature::required("reference", ArgumentKind::Text, "the corpus to compare with, in the same forms"),
            signature::optional(
                "min_count",
                ArgumentKind::Integer,
                "1",
                "leave out words that are rarer in both together",
            ),
            signature::FOLD,
            signature::WHERE,
            signature::optional(
                REFERENCE_WHERE,
                ArgumentKind::Condition,
                "NULL",
                "the same for the reference, which may be another part of the corpus",
            ),
        ],
        columns: &[
            signature::text("word", "the word, folded if it is asked for"),
            signature::integer("count", "how often it occurs in the corpus"),
            signature::integer("reference_count", "how often it occurs in the reference"),
            signature::number("score", "log-likelihood, negative where the word is rarer than in the reference"),
            signature::number("log_ratio", "how often its share of the words doubles"),
        ],
        summary: "the words that tell a corpus from another, in no order",
    },
    plan,
};

/// Returns the view for a call.
fn plan(arguments: &Arguments, session: &dyn Session, cache: &Arc<CorpusCache>) -> Result<Arc<dyn TableProvider>> {
    let counted = |argument: &str, name: &str| {
        let condition = if argument == "reference" { REFERENCE_WHERE } else { signature::WHERE.name };
        let condition = arguments.text(condition);
        let bind: Bind = |arguments, _| Arc::new(WordCount::new(arguments.fold("fold")));
        let location = arguments.text(argument).to_owned();
        let table = TadocTable::new(bind(arguments, session), location.clone(), Arc::clone(cache))
            .with_synonyms_of(arguments, bind);
        let table = with_condition(table, condition);
        let source = provider_as_source(Arc::new(table));
        // Scans of one name are taken for equal, so the name has the location, the fold and the condition.
        let (location, fold) = (mask_secrets(&location), shown_fold(arguments));
        let condition = if condition.is_empty() { String::new() } else { format!(", where => {condition:?}") };
        let shown = TableReference::bare(format!("word_count({location:?}{fold}{condition})"));
        let scan = LogicalPlanBuilder::scan(shown, source, None)?;
        scan.project([col("word").alias(format!("{name}_word")), col("count").alias(name)])
    };
    let size = |argument: &str, name: &str| {
        let counts = counted(argument, name)?;
        let size = coalesce(vec![sum(col(name)), lit(0i64)]).alias(format!("{name}_size"));
        let none: [Expr; 0] = [];
        counts.aggregate(none, [size])?.build()
    };
    let reference = counted("reference", "there")?.build()?;
    let words = counted("corpus", "here")?
        .join(reference, JoinType::Full, (vec!["here_word"], vec!["there_word"]), None)?
        .build()?;
    // The one row comes first: a cross join makes a batch of the rows behind for each row before. Workers
    // send rows without statistics, by which DataFusion would change the sides.
    let joined =
        LogicalPlanBuilder::from(size("corpus", "here")?).cross_join(size("reference", "there")?)?.cross_join(words)?;
    let count = |name: &str| coalesce(vec![col(name), lit(0i64)]);
    let min_count = i64::try_from(arguments.integer("min_count").unwrap_or(1)).unwrap_or(i64::MAX);
    let numbers = || vec![count("here"), count("there"), col("here_size"), col("there_size")];
    let plan = joined
        .filter((count("here") + count("there")).gt_eq(lit(min_count)))?
        .project([
            coalesce(vec![col("here_word"), col("there_word")]).alias("word"),
            count("here").alias("count"),
            count("there").alias("reference_count"),
            score().call(numbers()).alias("score"),
            log_ratio().call(numbers()).alias("log_ratio"),
        ])?
        .build()?;
    Ok(Arc::new(ViewTable::new(plan, None)))
}

/// Returns the fold of a call as the name of a scan shows it.
fn shown_fold(arguments: &Arguments) -> String {
    let shown = match arguments.unread_synonyms() {
        Some((fold, table)) => format!("{fold},synonyms:{table}"),
        None => arguments.fold("fold").to_string(),
    };
    if shown == Fold::NONE.to_string() { String::new() } else { format!(", fold => '{shown}'") }
}

/// Returns the functions that the plan calls.
pub(super) fn functions() -> [ScalarUDF; 2] {
    [score(), log_ratio()]
}

fn score() -> ScalarUDF {
    scored("keyness_score", |(score, _)| score)
}

fn log_ratio() -> ScalarUDF {
    scored("keyness_log_ratio", |(_, log_ratio)| log_ratio)
}

/// Returns a function of the two counts of a word and the two numbers of words. `pick` picks the
/// number that it returns.
fn scored(name: &str, pick: fn((f64, f64)) -> f64) -> ScalarUDF {
    let answer = move |arguments: &[ColumnarValue]| {
        let columns = ColumnarValue::values_to_arrays(arguments)?;
        let numbers: Vec<_> = columns.iter().map(|c| c.as_primitive::<Int64Type>()).collect();
        let number = |column: usize, row: usize| numbers[column].value(row).unsigned_abs();
        let num_rows = numbers.first().map_or(0, |column| column.len());
        let scores = (0..num_rows).map(|row| {
            let (counts, sizes) = ([number(0, row), number(1, row)], [number(2, row), number(3, row)]);
            pick(analytics::keyness(counts, sizes))
        });
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from_iter_values(scores)) as ArrayRef))
    };
    let numbers = vec![DataType::Int64; 4];
    create_udf(name, numbers, DataType::Float64, Volatility::Immutable, Arc::new(answer))
}
