//! Memory of the answers of a function's call, under the limit of a pool while the function runs.
//!
//! DataFusion counts the memory of operators, not of expressions.

use std::sync::Arc;

use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::resources_datafusion_err;
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation, human_readable_size};
use datafusion::logical_expr::ColumnarValue;
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
