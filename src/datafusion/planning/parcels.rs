//! Scans whose rows go to other machines as parcels, and the columns of such rows.
//!
//! ```text
//! parcel   machine   rows
//! 7        0         bytes of a chunk        the exchange by hash of `parcel` sends equal ones to one place
//! 3        0         ...
//! ```
//!
//! A parcel is named by a number whose hash leads to a partition of its own, if the exchange has as many
//! partitions as there are parcels. With another number of partitions some get more parcels than others.
//! [`tadoc::analytics::ParcelPacker`] has the layout of the bytes.
//!
//! Machines that keep the words of the whole corpus, a tenth of it, number words alike. Then packed rows have no texts.

use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{ArrayRef, Int64Array};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::common::hash_utils::create_hashes;
use datafusion::error::Result;
use datafusion::physical_plan::repartition::REPARTITION_RANDOM_STATE;

/// Name of the column by which rows are exchanged.
pub(crate) const PARCEL: &str = "parcel";
/// Name of the column that tells machines apart.
pub(crate) const MACHINE: &str = "machine";
/// Name of the column with the packed rows.
pub(crate) const ROWS: &str = "rows";
/// Most parcels of a scan. Each has the words that its rows use.
pub(crate) const MAX_PARCELS: u32 = 1 << 10;

static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let field = |name, data_type| Field::new(name, data_type, false);
    let columns = [(PARCEL, DataType::Int64), (MACHINE, DataType::Int64), (ROWS, DataType::Binary)];
    Arc::new(Schema::new(columns.map(|(name, data_type)| field(name, data_type)).to_vec()))
});

/// Description of a scan whose rows are packed for other machines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcels {
    /// Number of parcels.
    pub num_parcels: u32,
    /// Id in the whole corpus of the first document of each file of the scan.
    pub first_doc_ids: Vec<u64>,
    /// True if rows have lists of documents.
    pub has_lists: bool,
}

impl Parcels {
    /// Returns the columns of packed rows.
    pub fn schema() -> SchemaRef {
        Arc::clone(&SCHEMA)
    }

    /// Returns the number that tells the scan from others of the statement: no other begins with the same
    /// document.
    pub(crate) fn machine(&self) -> i64 {
        self.first_doc_ids.first().map_or(0, |&id| id as i64)
    }

    /// Returns the name of each parcel, in order.
    ///
    /// # Errors
    /// The errors of DataFusion's hashes.
    pub(crate) fn names(&self) -> Result<Vec<i64>> {
        let num_parcels = u64::from(self.num_parcels.clamp(1, MAX_PARCELS));
        let mut names: Vec<Option<i64>> = vec![None; num_parcels as usize];
        let mut num_left = names.len();
        let mut start = 0;
        while num_left > 0 {
            // Of so many numbers, few parcels get none.
            let numbers = start..start + 4 * num_parcels as i64;
            start = numbers.end;
            let column: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers.clone()));
            let mut hashes = vec![0; column.len()];
            create_hashes([&column], REPARTITION_RANDOM_STATE.random_state(), &mut hashes)?;
            for (number, hash) in numbers.zip(hashes) {
                let name = &mut names[(hash % num_parcels) as usize];
                num_left -= usize::from(name.is_none());
                name.get_or_insert(number);
            }
        }
        Ok(names.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{BinaryArray, RecordBatch};
    use datafusion::physical_expr::Partitioning;
    use datafusion::physical_expr::expressions::col;
    use datafusion::physical_plan::metrics::Time;
    use datafusion::physical_plan::repartition::BatchPartitioner;

    use super::*;

    #[test]
    fn each_parcel_has_a_partition_of_its_own() {
        for num_parcels in [1, 2, 3, 7, 16, 100, MAX_PARCELS] {
            let parcels = Parcels { num_parcels, first_doc_ids: vec![5, 9], has_lists: false };
            let names = parcels.names().unwrap();
            assert_eq!((names.len(), parcels.machine()), (num_parcels as usize, 5));
            let columns: Vec<ArrayRef> = vec![
                Arc::new(Int64Array::from(names.clone())),
                Arc::new(Int64Array::from(vec![0; names.len()])),
                Arc::new(BinaryArray::from_vec(vec![&b""[..]; names.len()])),
            ];
            let batch = RecordBatch::try_new(Parcels::schema(), columns).unwrap();
            let by = vec![col(PARCEL, &Parcels::schema()).unwrap()];
            let partitioning = Partitioning::Hash(by, num_parcels as usize);
            let mut partitioner = BatchPartitioner::try_new(partitioning, Time::new(), 0, 1).unwrap();
            let mut got = Vec::new();
            partitioner
                .partition(batch, |partition, rows| {
                    got.push((partition, rows.num_rows()));
                    Ok(())
                })
                .unwrap();
            got.sort_unstable();
            assert_eq!(got, (0..num_parcels as usize).map(|partition| (partition, 1)).collect::<Vec<_>>());
        }
    }
}
