//! The plan node that tells the scans of portions a number of each word in the whole corpus, and those numbers.
//!
//! ```text
//! portions of inverted_index   word, doc_count ─▶ sum ─┐ every machine gets the number of every word
//! portions of tfidf            doc_id, word, tf ◀──────┴─▶ tf * ln(documents / df), rows behind one another
//! ```
//!
//! So rows of words of documents stay where they are counted, and no two of them are joined by texts: a portion looks
//! each word of its dictionary up once. The numbers reach a scan as an extension of the configuration of its task.
//! They are in memory until the last partition has them and has ended: O(words).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::arrow::array::{Array, AsArray, RecordBatch, StringViewArray};
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::common::{Statistics, exec_err, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::execution_plan::{ChildrenPropertiesMode, ReplaceChildrenOptions};
use datafusion::physical_plan::filter_pushdown::{ChildFilterDescription, FilterDescription, FilterPushdownPhase};
use datafusion::physical_plan::statistics::{ChildStats, StatisticsArgs};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties, PhysicalExpr, PlanProperties,
};
use futures::{FutureExt, StreamExt, TryFutureExt};
use tokio::sync::Mutex;

use crate::planning::long_rows::context_with;

/// Bytes of a word in memory besides its text.
const WORD_BYTES: usize = 48;

/// A number for each word of a corpus.
#[derive(Debug)]
pub(crate) struct WordNumbers {
    numbers: HashMap<Box<str>, u64>,
    num_docs: u64,
    held: MemoryReservation,
}

impl WordNumbers {
    /// Returns the number of documents of the corpus.
    pub(crate) fn num_docs(&self) -> u64 {
        self.num_docs
    }

    /// Returns the numbers of `words`.
    ///
    /// # Errors
    /// An error if a word has none: it is no word of the corpus.
    pub(crate) fn for_words(&self, words: &StringViewArray) -> Result<Vec<u64>> {
        let number = |word: &str| match self.numbers.get(word) {
            Some(&number) => Ok(number),
            None => exec_err!("the numbers of words: expected one for {word:?}, got none; run the statement again"),
        };
        words.iter().flatten().map(number).collect()
    }

    fn add(&mut self, batch: &RecordBatch) -> Result<()> {
        let words = batch.column(0).as_string_view();
        let numbers = batch.column(1).as_primitive::<Int64Type>();
        if words.null_count() + numbers.null_count() > 0 {
            return exec_err!("the numbers of words: expected no NULL");
        }
        let text_bytes: usize = words.iter().flatten().map(str::len).sum();
        self.held.try_grow(text_bytes.saturating_add(WORD_BYTES.saturating_mul(words.len())))?;
        for (word, &number) in words.iter().flatten().zip(numbers.values()) {
            let number = u64::try_from(number).map_err(|_| {
                DataFusionError::Execution(format!("the numbers of words: expected 0 or more, got {number}"))
            })?;
            self.numbers.insert(word.into(), number);
        }
        Ok(())
    }
}

/// Plan node that returns the rows of scans of portions, which it tells the numbers of words. See the module's
/// description.
#[derive(Debug)]
pub struct WordNumbersExec {
    numbers: Arc<dyn ExecutionPlan>,
    rows: Arc<dyn ExecutionPlan>,
    num_docs: u64,
    gathered: Arc<Gathered>,
}

/// The numbers, as long as a partition is to get them.
#[derive(Debug)]
struct Gathered {
    numbers: Mutex<Option<Arc<WordNumbers>>>,
    num_left: AtomicUsize,
}

impl WordNumbersExec {
    /// Builds a node that returns the rows of `rows`. `numbers` has a row of each word of the corpus, which has
    /// `num_docs` documents: the word and its number.
    ///
    /// # Errors
    /// An error if `numbers` has other columns.
    pub fn try_new(numbers: Arc<dyn ExecutionPlan>, rows: Arc<dyn ExecutionPlan>, num_docs: u64) -> Result<Self> {
        let schema = numbers.schema();
        let types: Vec<&DataType> = schema.fields().iter().map(|field| field.data_type()).collect();
        if types != [&DataType::Utf8View, &DataType::Int64] {
            return internal_err!("TadocWordNumbersExec has words and numbers, got {schema}");
        }
        let num_left = AtomicUsize::new(rows.output_partitioning().partition_count());
        let gathered = Arc::new(Gathered { numbers: Mutex::new(None), num_left });
        Ok(Self { numbers, rows, num_docs, gathered })
    }

    /// Returns the number of documents of the corpus.
    pub fn num_docs(&self) -> u64 {
        self.num_docs
    }

    /// Returns the node that returns the numbers.
    pub fn numbers(&self) -> &Arc<dyn ExecutionPlan> {
        &self.numbers
    }
}

impl Gathered {
    /// Returns the numbers. The first partition that asks reads them from `input`.
    async fn get(
        &self,
        input: &Arc<dyn ExecutionPlan>,
        num_docs: u64,
        context: &Arc<TaskContext>,
    ) -> Result<Arc<WordNumbers>> {
        let mut kept = self.numbers.lock().await;
        let numbers = match kept.take() {
            Some(numbers) => numbers,
            None => Arc::new(read(input, num_docs, context).await?),
        };
        if self.num_left.fetch_sub(1, Ordering::Relaxed) > 1 {
            *kept = Some(Arc::clone(&numbers));
        }
        Ok(numbers)
    }
}

async fn read(input: &Arc<dyn ExecutionPlan>, num_docs: u64, context: &Arc<TaskContext>) -> Result<WordNumbers> {
    let held = MemoryConsumer::new("TadocWordNumbers").register(context.memory_pool());
    let mut numbers = WordNumbers { numbers: HashMap::new(), num_docs, held };
    let num_partitions = input.output_partitioning().partition_count();
    for partition in 0..num_partitions {
        let mut batches = input.execute(partition, Arc::clone(context))?;
        while let Some(batch) = batches.next().await {
            numbers.add(&batch?)?;
        }
    }
    Ok(numbers)
}

impl DisplayAs for WordNumbersExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match format {
            DisplayFormatType::TreeRender => writeln!(f, "documents={}", self.num_docs),
            _ => write!(f, "TadocWordNumbersExec: documents={}", self.num_docs),
        }
    }
}

impl ExecutionPlan for WordNumbersExec {
    fn name(&self) -> &str {
        "TadocWordNumbersExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.rows.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.numbers, &self.rows]
    }

    fn required_input_distribution(&self) -> Vec<Distribution> {
        vec![Distribution::SinglePartition, Distribution::UnspecifiedDistribution]
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        vec![false, true]
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false, false]
    }

    fn apply_expressions(
        &self,
        _f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        _options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match <[_; 2]>::try_from(children) {
            Ok([numbers, rows]) => Ok(Arc::new(Self::try_new(numbers, rows, self.num_docs)?)),
            Err(children) => internal_err!("TadocWordNumbersExec has two children, got {}", children.len()),
        }
    }

    fn with_new_children(self: Arc<Self>, children: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<dyn ExecutionPlan>> {
        self.replace_children(children, ReplaceChildrenOptions::new(ChildrenPropertiesMode::Keep))
    }

    fn execute(&self, partition: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let input = Arc::clone(&self.numbers);
        let rows = Arc::clone(&self.rows);
        let gathered = Arc::clone(&self.gathered);
        let num_docs = self.num_docs;
        let told = async move {
            let numbers = gathered.get(&input, num_docs, &context).await?;
            let config = context.session_config().clone().with_extension(numbers);
            rows.execute(partition, context_with(&context, config, context.runtime_env()))
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), told.boxed().try_flatten_stream())))
    }

    fn gather_filters_for_pushdown(
        &self,
        _phase: FilterPushdownPhase,
        parent_filters: Vec<Arc<dyn PhysicalExpr>>,
        _config: &ConfigOptions,
    ) -> Result<FilterDescription> {
        let numbers_filters = ChildFilterDescription::all_unsupported(&parent_filters);
        let rows_filters = ChildFilterDescription::from_child(&parent_filters, &self.rows)?;
        Ok(FilterDescription::new().with_child(numbers_filters).with_child(rows_filters))
    }

    fn child_stats_requests(&self, partition: Option<usize>) -> Vec<ChildStats> {
        vec![ChildStats::Skip, ChildStats::At(partition)]
    }

    fn statistics_from_inputs(
        &self,
        input_stats: &[Arc<Statistics>],
        _args: &StatisticsArgs,
    ) -> Result<Arc<Statistics>> {
        Ok(Arc::clone(&input_stats[1]))
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::Int64Array;
    use datafusion::arrow::datatypes::{Field, Schema};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, MemoryPool};

    use super::*;

    fn numbers(limit: usize) -> WordNumbers {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(limit));
        let held = MemoryConsumer::new("numbers").register(&pool);
        WordNumbers { numbers: HashMap::new(), num_docs: 3, held }
    }

    fn batch(words: &[&str], numbers: Vec<Option<i64>>) -> RecordBatch {
        let field = |name, data_type| Field::new(name, data_type, true);
        let schema = Schema::new(vec![field("word", DataType::Utf8View), field("number", DataType::Int64)]);
        let words = StringViewArray::from_iter_values(words);
        RecordBatch::try_new(Arc::new(schema), vec![Arc::new(words), Arc::new(Int64Array::from(numbers))]).unwrap()
    }

    #[test]
    fn words_have_their_numbers() {
        let mut numbers = numbers(1 << 20);
        numbers.add(&batch(&["a", "b"], vec![Some(1), Some(7)])).unwrap();
        numbers.add(&batch(&["c"], vec![Some(2)])).unwrap();
        let words = |words: &[&str]| StringViewArray::from_iter_values(words);
        assert_eq!((numbers.for_words(&words(&["c", "a"])).unwrap(), numbers.num_docs()), (vec![2, 1], 3));
        let error = numbers.for_words(&words(&["a", "d"])).unwrap_err().to_string();
        assert!(error.contains("expected one for \"d\""), "{error}");
    }

    #[test]
    fn numbers_that_are_none_are_refused() {
        for (number, expected) in [(None, "no NULL"), (Some(-1), "0 or more, got -1")] {
            let error = numbers(1 << 20).add(&batch(&["a"], vec![number])).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let error = numbers(10).add(&batch(&["a"], vec![Some(1)])).unwrap_err();
        assert!(matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)), "{error}");
    }
}
