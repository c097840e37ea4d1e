//! Functions that are views, logical plans over scans of other functions:
//! `keyness(corpus, reference [, min_count] [, fold] [, where] [, reference_where])` has the words that tell a corpus,
//! or a part of it, from another, `dispersion(corpus, query [, parts] [, fold] [, exact] [, version])` says how evenly
//! a query is spread, and `context(corpus, doc_id [, before] [, after] [, version])` has the documents around one.
//!
//! ```text
//! word_count(corpus) ──┐                    sum of counts ─┐
//!                      ├─ full join on word ───────────────┴─▶ score, log_ratio
//! word_count(reference)┘                    sum of counts ─┘
//!
//! parts            documents                                          N equal parts
//! counts           term_count                                         search, by place * N / words
//! sizes            words of documents                                 words / N
//!                       └──────────────▶ one row of measures ◀─────────────┘
//!
//! documents ─▶ those with the path of the document ─┬▶ the last ones up to it ─┐
//!                                                   └▶ the first ones after it ┴▶ numbered ─▶ documents
//! ```
//!
//! A dispersion gathers two numbers for each part with a match. Lines, records and rows of a file have its path, so a
//! context is the lines around a line. Its first two scans read ids and paths only. The last one reads the columns that
//! the statement asks for, of few documents. Everything else is DataFusion's. Formulas and sources of the measures are
//! those of `tadoc::analytics`.

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
    WindowFunctionDefinition, col, create_udf, ident, lit,
};

use crate::corpora::CorpusCache;
use crate::errors::mask_secrets;
use crate::functions::word_count::WordCount;
use crate::functions::{PlannedFunction, table_named, with_condition};
use crate::planning::TadocTable;
use crate::planning::arguments::Arguments;
use crate::planning::function::Bind;
use crate::planning::signature::{self, ArgumentKind, ColumnKind, Signature};
use tadoc::analytics::{self, Dispersion, Fold, Part, Whole};

/// Returns the functions that the plans call.
pub(super) fn functions() -> impl Iterator<Item = ScalarUDF> {
    [score(), log_ratio()].into_iter().chain(measures())
}

/// The corpus of a call.
struct CalledCorpus<'a> {
    arguments: &'a Arguments,
    session: &'a dyn Session,
    cache: &'a Arc<CorpusCache>,
}

impl CalledCorpus<'_> {
    /// Returns a scan of the function `name`. Scans of one name are taken for equal, so the name has the location and
    /// `shown`, which tell calls apart.
    fn scan(&self, name: &str, shown: &str) -> Result<LogicalPlanBuilder> {
        let table = table_named(name, self.arguments, self.session, self.cache)?;
        let location = mask_secrets(table.location());
        let shown = TableReference::bare(format!("{name}({location:?}{shown})"));
        LogicalPlanBuilder::scan(shown, provider_as_source(Arc::new(table)), None)
    }
}

/// Returns the sum of `value` of the rows in order of `id` up to each one.
fn running_sum(value: Expr, id: Expr, is_ascending: bool) -> Result<Expr> {
    let sum = WindowFunctionDefinition::AggregateUDF(sum_udaf());
    let sum = Expr::from(WindowFunction::new(sum, vec![value]));
    sum.order_by(vec![id.sort(is_ascending, false)]).build()
}

/// The argument with the condition of the reference.
const REFERENCE_WHERE: &str = "reference_where";

/// The function `keyness` in SQL.
pub(super) static KEYNESS: PlannedFunction = PlannedFunction {
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
    plan: plan_keyness,
};

/// Returns the view for a call.
fn plan_keyness(
    arguments: &Arguments,
    session: &dyn Session,
    cache: &Arc<CorpusCache>,
) -> Result<Arc<dyn TableProvider>> {
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
        let location = mask_secrets(&location);
        let fold = shown_fold(arguments);
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
            let counts = [number(0, row), number(1, row)];
            let sizes = [number(2, row), number(3, row)];
            pick(analytics::keyness(counts, sizes))
        });
        Ok(ColumnarValue::Array(Arc::new(Float64Array::from_iter_values(scores)) as ArrayRef))
    };
    let numbers = vec![DataType::Int64; 4];
    create_udf(name, numbers, DataType::Float64, Volatility::Immutable, Arc::new(answer))
}

/// Most equal parts of a corpus.
const MAX_PARTS: u64 = 1_000_000;

/// The function `dispersion` in SQL.
pub(super) static DISPERSION: PlannedFunction = PlannedFunction {
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
    plan: plan_dispersion,
};

/// Returns the view for a call.
fn plan_dispersion(
    arguments: &Arguments,
    session: &dyn Session,
    cache: &Arc<CorpusCache>,
) -> Result<Arc<dyn TableProvider>> {
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
    let [dp, dp_norm, juilland_d] = measures();
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

impl CalledCorpus<'_> {
    /// Returns a scan of the function `name` for the query of the call.
    fn scan_of_query(&self, name: &str) -> Result<LogicalPlanBuilder> {
        let query = self.arguments.text("query");
        let condition = self.arguments.text("where");
        self.scan(name, &format!(", {query:?}, {condition:?}"))
    }

    /// Returns `part_id` and `part_words` of all documents with words.
    fn documents(&self) -> Result<LogicalPlanBuilder> {
        let documents = self.scan_of_query("documents")?;
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
        let matched = self
            .scan_of_query("term_count")?
            .project([col("doc_id").alias("hit_id"), col("count").alias("part_count")])?;
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
        let hits = self.scan_of_query("search")?.project([col("doc_id").alias("hit_id"), col("word_index")])?;
        let end_words = running_sum(col("part_words"), col("part_id"), true)?;
        let ends = self.documents()?.window([end_words.alias("end_words")])?;
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

/// Returns the functions of the measures.
fn measures() -> [ScalarUDF; 3] {
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

/// Most documents on a side.
const MAX_DOCUMENTS: u64 = 1_000_000;

/// Names of the columns in front of those of `documents`.
const OWN: [&str; 3] = ["doc_id", "path", "distance"];

/// The function `context` in SQL.
pub(super) static CONTEXT: PlannedFunction = PlannedFunction {
    signature: Signature {
        name: "context",
        arguments: &[
            signature::CORPUS,
            signature::required("doc_id", ArgumentKind::Integer, "number of the document"),
            signature::optional("before", ArgumentKind::Integer, "2", "documents before it"),
            signature::optional("after", ArgumentKind::Integer, "2", "documents after it"),
            signature::VERSION,
        ],
        columns: &[
            signature::DOC_ID,
            signature::PATH,
            signature::integer("distance", "place from the document on, negative before it"),
            signature::integer("bytes", "length of the text"),
            signature::integer("words", "number of words in the text"),
            signature::text("text", "the text, U+FFFD for invalid bytes"),
            signature::column("content", ColumnKind::Bytes, "the exact bytes"),
        ],
        summary: "a document with those around it that have its path, such as the lines around a line",
    },
    plan: plan_context,
};

/// Returns the view for a call.
fn plan_context(
    arguments: &Arguments,
    session: &dyn Session,
    cache: &Arc<CorpusCache>,
) -> Result<Arc<dyn TableProvider>> {
    let called = CalledCorpus { arguments, session, cache };
    let doc_id = lit(i64::try_from(arguments.integer("doc_id").unwrap_or_default()).unwrap_or(i64::MAX));
    let before = num_documents("before", arguments.integer("before"))?;
    let after = num_documents("after", arguments.integer("after"))?;
    let documents = || called.scan("documents", "");
    let here = documents()?.filter(col("doc_id").eq(doc_id.clone()))?.project([col("path").alias("own_path")])?;
    let named = documents()?.project([col("doc_id").alias("near_id"), col("path").alias("near_path")])?;
    let same = here.join(named.build()?, JoinType::Inner, (vec!["own_path"], vec!["near_path"]), None)?;
    let side = |is_before: bool, num_documents: usize| -> Result<LogicalPlanBuilder> {
        let id = col("near_id");
        let chosen = if is_before { id.clone().lt_eq(doc_id.clone()) } else { id.clone().gt(doc_id.clone()) };
        let sorted = same.clone().filter(chosen)?.sort([id.clone().sort(!is_before, false)])?;
        let number = running_sum(lit(1i64), id.clone(), !is_before)?.alias("number");
        let distance = if is_before { lit(1i64) - col("number") } else { col("number") };
        sorted.limit(0, Some(num_documents))?.window([number])?.project([id, distance.alias("distance")])
    };
    let near = side(true, before + 1)?.union(side(false, after)?.build()?)?;
    let documents = documents()?.build()?;
    let own = OWN.map(ident).to_vec();
    let others = documents.schema().fields().iter().map(|field| field.name().clone());
    let others = others.filter(|name| !OWN.contains(&name.as_str())).map(ident);
    let columns: Vec<Expr> = own.into_iter().chain(others).collect();
    let joined = near.join(documents, JoinType::Inner, (vec!["near_id"], vec!["doc_id"]), None)?;
    let plan = joined.project(columns)?.sort([col("doc_id").sort(true, false)])?;
    Ok(Arc::new(ViewTable::new(plan.build()?, None)))
}

/// Returns the number of documents on the side `name` of the document.
fn num_documents(name: &str, number: Option<u64>) -> Result<usize> {
    match number.unwrap_or(2) {
        number @ 0..=MAX_DOCUMENTS => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        number => plan_err!("context: {name}: got {number}, expected at most {MAX_DOCUMENTS}"),
    }
}
