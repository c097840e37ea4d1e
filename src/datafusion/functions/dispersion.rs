//! The function `dispersion(corpus, query [, parts] [, fold] [, exact] [, version])`: how evenly a query is spread.
//!
//! ```text
//! parts            documents                                          N equal parts
//! counts           term_count                                         search, by place * N / words
//! sizes            words of documents                                 words / N
//!                       └──────────────▶ one row of measures ◀─────────────┘
//! ```
//!
//! This function is a view: a logical plan over scans of `documents`, and of `term_count` or `search`. It
//! gathers two numbers for each part with a match. Formulas and sources are those of
//! `tadoc::analytics::Dispersion`.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, Float64Array};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::{ScalarValue, TableReference, plan_err};
use datafusion::datasource::{ViewTable, provider_as_source};
use datafusion::error::Result;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::functions_aggregate::expr_fn::{array_agg, count, min, sum};
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::expr::WindowFunction;
use datafusion::logical_expr::{
    ColumnarValue, Expr, ExprFunctionExt, JoinType, LogicalPlanBuilder, ScalarUDF, Volatility,
    WindowFunctionDefinition, col, create_udf, lit,
};

use super::{PlannedFunction, table_named};
use crate::corpora::CorpusCache;
use crate::errors::mask_secrets;
use crate::planning::arguments::Arguments;
use crate::planning::signature::{self, ArgumentKind, Signature};
use tadoc::analytics::{Dispersion, Part, Whole};

/// Most equal parts of a corpus.
const MAX_PARTS: u64 = 1_000_000;

/// The function `dispersion` in SQL.
pub(super) static DEFINITION: PlannedFunction = PlannedFunction {
    signature: Signature {
        name: "dispersion",
        arguments: &[
            signature::CORPUS,
            signature::QUERY,
            signature::optional(
                "parts",
                ArgumentKind::Integer,
                "NULL",
                "cut the corpus into so many equal parts; NULL takes its documents",
            ),
            signature::QUERY_FOLD,
            signature::EXACT,
            signature::VERSION,
            signature::WHERE,
        ],
        columns: &[
            signature::integer("count", "how often the query matches"),
            signature::integer("range", "number of parts with a match"),
            signature::integer("parts", "number of parts with words"),
            signature::number("dp", "deviation of proportions, 0 if even"),
            signature::number("dp_norm", "the same, at most 1"),
            signature::number("juilland_d", "Juilland's D, 1 if even"),
        ],
        summary: "how evenly a query is spread over the parts of a corpus, as one row",
    },
    plan,
};

/// Returns the view for a call.
fn plan(arguments: &Arguments, session: &dyn Session, cache: &Arc<CorpusCache>) -> Result<Arc<dyn TableProvider>> {
    let corpus = CalledCorpus { arguments, session, cache };
    let (counts, sizes) = match arguments.integer("parts") {
        None => (corpus.counts_of_documents()?, corpus.sizes()?),
        Some(parts @ 1..=MAX_PARTS) => {
            let parts = lit(i64::try_from(parts).unwrap_or(i64::MAX));
            (corpus.counts_of_parts(&parts)?, corpus.sizes_of_parts(parts)?)
        }
        Some(parts) => {
            return plan_err!("dispersion: parts: got {parts}, expected 1 to {MAX_PARTS}, or NULL");
        }
    };
    let none: [Expr; 0] = [];
    let gathered = counts.aggregate(
        none,
        [
            array_agg(col("part_count")).alias("counts"),
            array_agg(col("part_words")).alias("lens"),
            sum(col("part_count")).alias("total"),
            count(lit(1)).alias("range"),
        ],
    )?;
    let [dp, dp_norm, juilland_d] = functions();
    let measure = |function: &ScalarUDF| {
        let columns = ["counts", "lens", "parts", "words", "least"].map(col);
        function.call(columns.into())
    };
    let plan = gathered.cross_join(sizes.build()?)?.project([
        coalesce(vec![col("total"), lit(0i64)]).alias("count"),
        col("range"),
        col("parts"),
        measure(&dp).alias("dp"),
        measure(&dp_norm).alias("dp_norm"),
        measure(&juilland_d).alias("juilland_d"),
    ])?;
    Ok(Arc::new(ViewTable::new(plan.build()?, None)))
}

/// The corpus and the query of a call.
struct CalledCorpus<'a> {
    arguments: &'a Arguments,
    session: &'a dyn Session,
    cache: &'a Arc<CorpusCache>,
}

impl CalledCorpus<'_> {
    fn scan(&self, name: &str) -> Result<LogicalPlanBuilder> {
        let table = table_named(name, self.arguments, self.session, self.cache)?;
        // Scans of one name are taken for equal, so the name has all that tells calls apart.
        let location = mask_secrets(table.location());
        let (query, condition) = (self.arguments.text("query"), self.arguments.text("where"));
        let shown = TableReference::bare(format!("{name}({location:?}, {query:?}, {condition:?})"));
        LogicalPlanBuilder::scan(shown, provider_as_source(Arc::new(table)), None)
    }

    /// Returns `part_id` and `part_words` of all documents with words.
    fn documents(&self) -> Result<LogicalPlanBuilder> {
        let documents = self.scan("documents")?;
        let named = [col("doc_id").alias("part_id"), col("words").alias("part_words")];
        documents.project(named)?.filter(col("part_words").gt(lit(0i64)))
    }

    /// Returns `parts`, `words` and `least` of all documents with words, as one row.
    fn sizes(&self) -> Result<LogicalPlanBuilder> {
        let none: [Expr; 0] = [];
        let numbers = [count(lit(1)), sum(col("part_words")), min(col("part_words"))];
        let names = ["parts", "words", "least"];
        let named = numbers.into_iter().zip(names).map(|(number, name)| number.alias(name));
        self.documents()?.aggregate(none, named)
    }

    /// Returns `part_count` and `part_words` of all documents with a match.
    fn counts_of_documents(&self) -> Result<LogicalPlanBuilder> {
        let matched =
            self.scan("term_count")?.project([col("doc_id").alias("hit_id"), col("count").alias("part_count")])?;
        let on = (vec!["hit_id"], vec!["part_id"]);
        matched.join(self.documents()?.build()?, JoinType::Inner, on, None)
    }

    /// Returns `parts`, `words` and `least` of `parts` equal parts, as one row.
    fn sizes_of_parts(&self, parts: Expr) -> Result<LogicalPlanBuilder> {
        let least = (col("words") / parts.clone()).alias("least");
        self.sizes()?.project([parts.alias("parts"), col("words"), least])
    }

    /// Returns `part_count` and `part_words` of all of `parts` equal parts with a match.
    fn counts_of_parts(&self, parts: &Expr) -> Result<LogicalPlanBuilder> {
        let hits = self.scan("search")?.project([col("doc_id").alias("hit_id"), col("word_index")])?;
        let words_before = || -> Result<Expr> {
            let sum = WindowFunctionDefinition::AggregateUDF(sum_udaf());
            let sum = Expr::from(WindowFunction::new(sum, vec![col("part_words")]));
            sum.order_by(vec![col("part_id").sort(true, false)]).build()
        };
        let ends = self.documents()?.window([words_before()?.alias("end_words")])?;
        let on = (vec!["hit_id"], vec!["part_id"]);
        let place = col("end_words") - col("part_words") + col("word_index");
        let total = || col("words");
        // The first place of a part is the least one with place * parts / words at or above it.
        let first = |part: Expr| (part * total() + parts.clone() - lit(1i64)) / parts.clone();
        let places = hits.join(ends.build()?, JoinType::Inner, on, None)?.build()?;
        // The one row comes first: a cross join makes a batch for each row before.
        self.sizes()?
            .project([total()])?
            .cross_join(places)?
            .project([(place * parts.clone() / total()).alias("part"), total()])?
            .aggregate([col("part"), total()], [count(lit(1)).alias("part_count")])?
            .project([col("part_count"), (first(col("part") + lit(1i64)) - first(col("part"))).alias("part_words")])
    }
}

/// Returns the functions that the plan calls.
pub(super) fn functions() -> [ScalarUDF; 3] {
    [
        measured("dispersion_dp", |d| d.dp),
        measured("dispersion_dp_norm", |d| d.dp_norm),
        measured("dispersion_juilland_d", |d| d.juilland_d),
    ]
}

/// Returns a function of the counts and words of the parts with a match, and of the number of parts,
/// their words and the words of the shortest. `pick` picks the measure that it returns.
fn measured(name: &str, pick: fn(&Dispersion) -> f64) -> ScalarUDF {
    let answer = move |arguments: &[ColumnarValue]| {
        let columns = ColumnarValue::values_to_arrays(arguments)?;
        let [counts, lens, numbers @ ..] = columns.as_slice() else {
            return Ok(ColumnarValue::Scalar(ScalarValue::Float64(None)));
        };
        let measures = (0..counts.len()).map(|row| {
            let number = |at: usize| numbers[at].as_primitive::<Int64Type>().value(row).unsigned_abs();
            let whole = Whole { parts: number(0), words: number(1), least_words: number(2) };
            Dispersion::from_parts(&parts_of(counts, lens, row), &whole).map(|measures| pick(&measures))
        });
        Ok(ColumnarValue::Array(Arc::new(measures.collect::<Float64Array>()) as ArrayRef))
    };
    let list = DataType::new_list(DataType::Int64, true);
    let arguments = [vec![list; 2], vec![DataType::Int64; 3]].concat();
    create_udf(name, arguments, DataType::Float64, Volatility::Immutable, Arc::new(answer))
}

/// Returns the parts with a match of row `row`; none if the lists are NULL.
fn parts_of(counts: &ArrayRef, lens: &ArrayRef, row: usize) -> Vec<Part> {
    let [counts, lens] = [counts, lens].map(|lists| lists.as_list::<i32>());
    if counts.is_null(row) || lens.is_null(row) {
        return Vec::new();
    }
    let [counts, lens] = [counts.value(row), lens.value(row)];
    let numbers = |list: &ArrayRef| list.as_primitive::<Int64Type>().values().to_vec();
    let pairs = numbers(&counts).into_iter().zip(numbers(&lens));
    pairs.map(|(count, words)| Part { count: count.unsigned_abs(), words: words.unsigned_abs() }).collect()
}
